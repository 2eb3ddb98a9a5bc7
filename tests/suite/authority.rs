//! What may run, over a whole agent and several of its lives: sessions side by side, restarts with
//! other flags and other rules, options under all their names, answers that are no answers. Whatever
//! a client, a file or a saved session says, nothing runs above the ceiling, and what was allowed
//! for good covers what it names, in its session, until the agent ends.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use reasonix_core::model::Script;
use reasonix_core::permission::{PermissionMode, Posture};
use reasonix_core::settings::Permissions;
use reasonix_tests::disk::Keep;
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::sim::{Card, Sim, config};
use reasonix_tests::world::{Command, World};

use crate::permission::{Deed, FILES, Held, Line, Rule, Setting, Word3, line, list};

/// Sessions of one agent.
const SESSIONS: usize = 5;

/// Sequences that are run in every run, one a session, by each of the two tests.
const SEQUENCES: usize = 5_000;

/// What a client does in one session.
#[derive(Clone, Debug)]
enum Act {
    /// Its model wants to run this.
    Run(Line, Said),
    /// Its model wants to write one of the first three files.
    Write(usize, Said),
    /// The client sets the approvals, by one of their names.
    Approve(&'static str, Posture),
    /// The client sets a mode, some of which set the approvals too.
    Mode(&'static str),
    /// The person takes back what was allowed in this session.
    Revoke,
    /// The rules of the configuration change, and it is read again.
    Reload(RuleLists),
}

/// What is denied, asked about and allowed.
type RuleLists = (Vec<Rule>, Vec<Rule>, Vec<Rule>);

/// What the person says to a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Once,
    Always,
    No,
    Failed,
    Nonsense(&'static str),
}

impl Said {
    fn card(self) -> Card {
        let chosen = |id: &str| {
            Card::Raw(format!(
                r#"{{"outcome":{{"outcome":"selected","optionId":"{id}"}}}}"#
            ))
        };
        match self {
            Self::Once => chosen("allow_once"),
            Self::Always => chosen("allow_always"),
            Self::No => chosen("reject_once"),
            Self::Failed => Card::Error,
            Self::Nonsense(text) => Card::Raw(text.into()),
        }
    }
}

/// A life of the agent: its flag, its rules, and what is done meanwhile, each in one of its sessions.
#[derive(Clone, Debug)]
struct Life {
    flag: Option<&'static str>,
    rules: RuleLists,
    /// Whether its sessions are loaded, not resumed.
    loads: bool,
    acts: Vec<(usize, Act)>,
}

fn act() -> impl Strategy<Value = Act> {
    let said = || {
        prop_oneof![
            3 => Just(Said::Once),
            4 => Just(Said::Always),
            2 => Just(Said::No),
            1 => Just(Said::Failed),
            1 => prop::sample::select(vec![
                "{}",
                "null",
                r#"{"outcome":"selected","optionId":"allow_once"}"#,
                r#"{"outcome":{"outcome":"cancelled"}}"#,
                r#"{"outcome":{"outcome":"selected","optionId":"allow"}}"#,
            ]).prop_map(Said::Nonsense),
        ]
    };
    let names = vec![
        "tool_approval",
        "approval",
        "approval_mode",
        "tool_approval_mode",
    ];
    let modes = vec!["default", "auto", "plan", "normal"];
    prop_oneof![
        5 => (line(), said()).prop_map(|(line, said)| Act::Run(line, said)),
        3 => (0..3_usize, said()).prop_map(|(file, said)| Act::Write(file, said)),
        2 => (prop::sample::select(names), prop::sample::select(Posture::ALL.to_vec()))
            .prop_map(|(name, posture)| Act::Approve(name, posture)),
        1 => prop::sample::select(modes).prop_map(Act::Mode),
        1 => Just(Act::Revoke),
        1 => (list(), list(), list()).prop_map(Act::Reload),
    ]
}

fn life() -> impl Strategy<Value = Life> {
    let flags = [
        None,
        Some("read-only"),
        Some("dontAsk"),
        Some("manual"),
        Some("acceptEdits"),
        Some("auto"),
        Some("bypassPermissions"),
    ];
    let flag = prop::sample::select(flags.to_vec());
    let acts = prop::collection::vec((0..SESSIONS, act()), 6..11);
    let parts = (flag, (list(), list(), list()), any::<bool>(), acts);
    parts.prop_map(|(flag, rules, loads, acts)| Life {
        flag,
        rules,
        loads,
        acts,
    })
}

/// What the model knows of one session.
#[derive(Clone, Debug)]
struct Known {
    id: String,
    setting: Setting,
    held: BTreeSet<Held>,
}

fn mode(life: &Life) -> PermissionMode {
    life.flag.map_or(PermissionMode::default(), |flag| {
        PermissionMode::parse(flag).expect("the flags above are known")
    })
}

fn setting(life: &Life) -> Setting {
    let mode = mode(life);
    let (deny, ask, allow) = life.rules.clone();
    Setting {
        posture: mode.start,
        ceiling: mode.ceiling.posture(),
        accept_edits: mode.accept_edits,
        planning: false,
        deny,
        ask,
        allow,
    }
}

/// The words of the prompt that has the model do this act.
fn words(n: usize) -> String {
    format!("do {n}.")
}

/// What the model does at each prompt.
fn script(life: &Life) -> Script {
    let mut text = String::new();
    for (n, (_, act)) in life.acts.iter().enumerate() {
        let (name, args) = match act {
            Act::Run(line, _) => ("bash", json!({"command": line.text()})),
            Act::Write(file, _) => (
                "write_file",
                json!({"path": FILES[*file].0, "content": mark(life, n)}),
            ),
            Act::Approve(..) | Act::Mode(_) | Act::Revoke | Act::Reload(_) => continue,
        };
        let when = json!({"when": {"prompt_contains": words(n)}});
        let call = json!({"tool": name, "args": args, "id": format!("c{n}")});
        text += &format!(
            "{when}\n{call}\n{}\n{}\n",
            json!({"finish": "tool_calls"}),
            json!({"text": "k"})
        );
    }
    Script::parse(&text).expect("it is a script")
}

/// What is written by an act, and by no other.
fn mark(life: &Life, n: usize) -> String {
    format!("{n} of {:p}", life)
}

fn permissions((deny, ask, allow): &RuleLists) -> Permissions {
    let texts = |rules: &[Rule]| rules.iter().map(|rule| rule.text()).collect();
    Permissions {
        deny: texts(deny),
        ask: texts(ask),
        allow: texts(allow),
    }
}

fn begin(life: &Life, mut world: World) -> Sim {
    let mut config = config();
    config.ephemeral = false;
    config.permission_mode = mode(life);
    config.script = Some(script(life));
    config.settings.permissions = permissions(&life.rules);
    world.settings = Some(Ok(config.settings.clone()));
    world.commands = vec![Command {
        contains: String::new(),
        output: Vec::new(),
        takes: Some(Duration::ZERO),
        code: 0,
    }];
    let mut sim = Sim::new(config, world);
    sim.keeps = false;
    sim.ask(&json::initialize(9000));
    sim
}

/// The approvals that a session says it has.
fn shown(options: &Value) -> &Value {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let option = options
        .iter()
        .find(|option| option["id"] == "tool_approval");
    option.map_or(&Value::Null, |option| &option["currentValue"])
}

fn in_force(setting: &Setting) -> &'static str {
    setting.posture.min(setting.ceiling).name()
}

/// The client sets the approvals to `posture`, alone or with a mode: to what is offered to all, or to
/// what is in force already.
fn may_set(life: &Life, setting: &Setting, posture: Posture) -> bool {
    let mut offered = mode(life).offered();
    offered.any(|offered| offered == posture) || posture.name() == in_force(setting)
}

/// Lives one life, with sessions that were there before, if they were.
fn live(
    life: &Life,
    world: World,
    before: Option<Vec<Known>>,
) -> Result<(World, Vec<Known>), TestCaseError> {
    let mut sim = begin(life, world);
    let mut sessions = Vec::new();
    for n in 0..SESSIONS {
        let fresh = setting(life);
        let id = 9100 + n as u64;
        let known = match &before {
            None => Known {
                id: sim.open_another(id, "/w"),
                setting: fresh,
                held: BTreeSet::new(),
            },
            Some(before) => {
                let Known {
                    id: session,
                    setting: old,
                    ..
                } = before[n].clone();
                let method = if life.loads {
                    "session/load"
                } else {
                    "session/resume"
                };
                let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
                let answer = sim.ask(&json::request(id, method, params));
                // What was chosen is kept, what was granted is not.
                let setting = Setting {
                    posture: old.posture,
                    planning: old.planning,
                    ..fresh
                };
                let said = shown(&answer["result"]["configOptions"]);
                prop_assert_eq!(said, in_force(&setting), "{} {:?}", answer, setting);
                Known {
                    id: session,
                    setting,
                    held: BTreeSet::new(),
                }
            }
        };
        sessions.push(known);
    }
    for (n, (at, act)) in life.acts.iter().enumerate() {
        if let Act::Reload(rules) = act {
            if let Some(Ok(settings)) = &mut sim.world.settings {
                settings.permissions = permissions(rules);
            }
            sim.ask(&json::prompt(n as u64, &sessions[*at].id, "/reload"));
            for known in &mut sessions {
                let (deny, ask, allow) = rules.clone();
                known.setting = Setting {
                    deny,
                    ask,
                    allow,
                    ..known.setting.clone()
                };
            }
            continue;
        }
        let Known {
            id: session,
            setting,
            held,
        } = &mut sessions[*at];
        let id = n as u64;
        let (deed, said) = match act {
            Act::Approve(name, posture) => {
                let params =
                    json!({"sessionId": session, "configId": name, "value": posture.name()});
                let answer = sim.ask(&json::request(id, "session/set_config_option", params));
                let may = may_set(life, setting, *posture);
                prop_assert_eq!(answer.get("result").is_some(), may, "{}", answer);
                let above = answer["error"]["data"]["code"] == "acp.tool_approval.above_ceiling";
                prop_assert_eq!(above, *posture > setting.ceiling, "{}", answer);
                if may {
                    setting.posture = *posture;
                    let said = shown(&answer["result"]["configOptions"]);
                    prop_assert_eq!(said, in_force(setting));
                }
                continue;
            }
            Act::Mode(name) => {
                let params = json!({"sessionId": session, "modeId": name});
                let answer = sim.ask(&json::request(id, "session/set_mode", params));
                let posture = match *name {
                    "default" => Some(Posture::Ask),
                    "auto" => Some(Posture::Yolo),
                    _ => None,
                };
                let may = posture.is_none_or(|posture| may_set(life, setting, posture));
                prop_assert_eq!(answer.get("result").is_some(), may, "{}", answer);
                if may {
                    setting.posture = posture.unwrap_or(setting.posture);
                    setting.planning = *name == "plan";
                }
                continue;
            }
            Act::Revoke => {
                sim.ask(&json::prompt(id, session, "/permissions revoke all"));
                held.clear();
                continue;
            }
            // It was done above, in all sessions.
            Act::Reload(_) => continue,
            Act::Run(line, said) => (Deed::Run(line.clone(), true), *said),
            Act::Write(file, said) => (Deed::Edit(vec![*file]), *said),
        };
        if let Act::Write(file, _) = act {
            // What another session wrote would be kept from being overwritten.
            sim.world.disk.take(FILES[*file].0);
        }
        sim.cards = vec![said.card()];
        let (heard, commands) = (sim.frames.len(), sim.world.ran.len());
        let answer = sim.ask(&json::prompt(id, session, &words(n)));
        prop_assert_eq!(&answer["result"]["stopReason"], "end_turn", "{}", answer);
        let cards: Vec<&Value> = sim.frames[heard..]
            .iter()
            .filter(|frame| frame["method"] == "session/request_permission")
            .collect();
        let always = cards.first().map(|card| {
            let options = card["params"]["options"].as_array();
            options.is_some_and(|all| all.iter().any(|option| option["kind"] == "allow_always"))
        });
        let ran = match act {
            Act::Write(file, _) => sim.world.file(FILES[*file].0) == Some(mark(life, n).as_bytes()),
            _ => sim.world.ran.len() > commands,
        };
        let seen = match always {
            Some(always) => Word3::Ask(always),
            None if ran => Word3::Allow,
            None => Word3::Deny,
        };
        let expected = setting.expect(&deed, held);
        prop_assert!(
            expected.contains(&seen),
            "{act:?}: {seen:?}, not {expected:?}\n{setting:?}\nheld: {held:?}"
        );
        prop_assert!(cards.len() <= 1, "asked twice");
        if let Some(always) = always {
            let yes = said == Said::Once || (said == Said::Always && always);
            prop_assert_eq!(ran, yes, "{:?}: {:?}", act, said);
            if ran && said == Said::Always {
                held.extend(Held::by(&deed));
            }
        }
    }
    sim.finish();
    sim.laws.check();
    Ok((sim.world, sessions))
}

/// Runs sequences until there are enough of them.
fn run(name: &'static str) {
    let cases = u32::try_from(SEQUENCES / SESSIONS).expect("a small number");
    let config = ProptestConfig {
        source_file: Some(file!()),
        test_name: Some(name),
        ..crate::machine::cases(cases)
    };
    let enough = config.cases >= cases;
    let mut runner = TestRunner::new(config);
    let sequences = Cell::new(0);
    let lives = (life(), prop::option::weighted(0.3, life()));
    let result = runner.run(&lives, |(life, next)| {
        let (world, sessions) = live(&life, World::with_files("/w", &[]), None)?;
        if let Some(next) = &next {
            let disk = world.disk.after_crash(true, |_| Keep::All);
            live(next, World::on(disk), Some(sessions))?;
        }
        sequences.set(sequences.get() + SESSIONS);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}\n{runner}");
    }
    assert!(!enough || sequences.get() >= SEQUENCES);
}

// Two of them, since tests run side by side.

#[test]
fn nothing_runs_above_the_ceiling_and_no_grant_covers_what_it_does_not_name() {
    run("nothing_runs_above_the_ceiling_and_no_grant_covers_what_it_does_not_name");
}

#[test]
fn nothing_runs_that_nobody_allowed() {
    run("nothing_runs_that_nobody_allowed");
}
