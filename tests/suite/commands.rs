//! Slash commands that the agent does itself: no model is asked, what was typed and said is
//! remembered, and what they change is changed.

use reasonix_core::settings::{Permissions, Settings};
use reasonix_tests::disk::Keep;
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::provider::{Answer, say, tool};
use reasonix_tests::sim::{Card, Sim, config};
use reasonix_tests::world::{Command, World, http};

/// An agent whose sessions are stored, with one open.
fn begin(answers: &[Answer], change: impl FnOnce(&mut Settings)) -> (Sim, String) {
    let mut config = config();
    config.ephemeral = false;
    change(&mut config.settings);
    let mut world = World::with_files("/w", &[]);
    world.commands = vec![Command {
        contains: String::new(),
        output: b"done\n".to_vec(),
        takes: Some(std::time::Duration::ZERO),
        code: 0,
    }];
    world.answers = answers.iter().map(http).collect();
    world.settings = Some(Ok(config.settings.clone()));
    let mut sim = Sim::new(config, world);
    let session = sim.open(json!({}), "/w");
    (sim, session)
}

/// Sends a prompt; gives what was said to it.
#[track_caller]
fn said(sim: &mut Sim, id: u64, session: &str, text: &str) -> String {
    let heard = sim.frames.len();
    let answer = sim.ask(&json::prompt(id, session, text));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    json::said(&sim.frames[heard..], session)
}

fn bash(id: &str, command: &str) -> Answer {
    tool(id, "bash", json!({"command": command}))
}

fn cards(sim: &Sim) -> usize {
    let asks = |frame: &&Value| frame["method"] == "session/request_permission";
    sim.frames.iter().filter(asks).count()
}

#[test]
fn commands_are_told_after_the_answer_that_opens() {
    let (sim, session) = begin(&[], |_| {});
    let opened = sim.frames.iter().position(|frame| frame["id"] == 9002);
    let told = sim.frames.iter().position(|frame| {
        json::update(frame, &session)
            .is_some_and(|update| update["sessionUpdate"] == "available_commands_update")
    });
    assert!(opened.is_some() && opened < told, "{opened:?} {told:?}");
    let update = json::update(&sim.frames[told.expect("told")], &session).expect("an update");
    let names: Vec<&str> = update["availableCommands"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|command| command["name"].as_str())
        .collect();
    assert_eq!(
        names,
        ["permissions", "status", "goal", "compact", "mcp", "reload"]
    );
}

#[test]
fn what_was_allowed_is_listed_taken_back_and_asked_about_again() {
    let answers = [
        bash("c1", "cargo test"),
        say("k"),
        bash("c2", "cargo test --lib"),
        say("k"),
        bash("c3", "git push"),
        say("k"),
        bash("c4", "cargo test"),
        say("k"),
    ];
    let (mut sim, session) = begin(&answers, |settings| {
        settings.permissions.deny = vec!["Bash(git push:*)".into()];
    });
    sim.cards = vec![Card::Choose("allow_always")];
    said(&mut sim, 1, &session, "go");
    said(&mut sim, 2, &session, "go");
    said(&mut sim, 3, &session, "go");
    assert_eq!(cards(&sim), 1, "it was allowed for good");
    let shown = said(&mut sim, 4, &session, "/permissions");
    for line in [
        "Approvals: ask.",
        "- deny `Bash(git push:*)`",
        "1. `cargo test`",
        "- denied: bash git push: the rule `Bash(git push:*)` of permissions.deny forbids it",
        "- allowed: bash cargo test --lib: `cargo test` was allowed for this session",
        "- allowed: bash cargo test: the person allowed it for this session",
        "- asked: bash cargo test: no rule and no grant allows it",
    ] {
        assert!(shown.contains(line), "no {line:?} in\n{shown}");
    }
    let wrong = said(&mut sim, 5, &session, "/permissions revoke 2");
    assert!(wrong.contains("no number 2"), "{wrong}");
    let back = said(&mut sim, 6, &session, "/permissions revoke 1");
    assert!(back.contains("`cargo test`"), "{back}");
    said(&mut sim, 7, &session, "go");
    assert_eq!(cards(&sim), 2, "it is asked about again");
    // The same is in the log.
    let log = sim.reports.iter().map(|report| &report.text);
    let denied = log.filter(|text| text.contains("denied: bash git push"));
    assert_eq!(denied.count(), 1, "{:#?}", sim.reports);
    assert_eq!(sim.world.requests.len(), 8, "no command asked the model");
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_command_is_remembered_shown_on_a_load_and_not_heard_by_the_model() {
    let (mut sim, session) = begin(&[say("k")], |_| {});
    let shown = said(&mut sim, 1, &session, "/status");
    assert!(shown.contains("Model: local/tiny"), "{shown}");
    said(&mut sim, 2, &session, "hello");
    let body = String::from_utf8_lossy(&sim.world.requests[0].body).into_owned();
    assert!(!body.contains("/status"), "the model hears of it");
    sim.finish();
    let disk = sim.world.disk.after_crash(true, |_| Keep::All);
    let mut config = config();
    config.ephemeral = false;
    let mut next = Sim::new(config, World::on(disk));
    next.ask(&json::initialize(1));
    let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
    next.ask(&json::request(2, "session/load", params));
    assert_eq!(
        json::text_of(&next.frames, &session, "user_message_chunk"),
        "/statushello"
    );
    let said = json::said(&next.frames, &session);
    assert_eq!(said, format!("{shown}k"));
    next.finish();
    next.laws.check();
}

#[test]
fn what_is_no_command_is_said_to_the_model() {
    let texts = ["/nothing", "/usr/bin/status", "// status", "say /status"];
    let (mut sim, session) = begin(&texts.map(|_| say("k")), |_| {});
    for (id, text) in (1..).zip(texts) {
        assert_eq!(said(&mut sim, id, &session, text), "k", "{text}");
    }
}

#[test]
fn rules_that_are_read_again_count_at_once_and_bad_ones_change_nothing() {
    let run = |id: &str| [bash(id, "make"), say("k")];
    let answers = [run("c1"), run("c2"), run("c3"), run("c4")].concat();
    let (mut sim, session) = begin(&answers, |_| {});
    let base = sim
        .world
        .settings
        .clone()
        .expect("it has some")
        .expect("good ones");
    let with = |deny: &[&str], allow: &[&str]| Settings {
        permissions: Permissions {
            deny: deny.iter().map(ToString::to_string).collect(),
            allow: allow.iter().map(ToString::to_string).collect(),
            ..Permissions::default()
        },
        ..base.clone()
    };
    said(&mut sim, 1, &session, "go");
    assert_eq!((cards(&sim), sim.world.ran.len()), (1, 1));
    sim.world.settings = Some(Ok(with(&[], &["Bash(make)"])));
    let told = said(&mut sim, 2, &session, "/reload");
    assert!(told.contains("1 models, 1 rules"), "{told}");
    said(&mut sim, 3, &session, "go");
    assert_eq!(
        (cards(&sim), sim.world.ran.len()),
        (1, 2),
        "the rule allows it"
    );
    sim.world.settings = Some(Ok(with(&["Bash("], &[])));
    let told = said(&mut sim, 4, &session, "/reload");
    assert!(
        told.contains("Nothing is changed") && told.contains("Bash("),
        "{told}"
    );
    sim.world.settings = Some(Err("config.toml, line 1: no".into()));
    let told = said(&mut sim, 5, &session, "/reload");
    assert!(
        told.contains("Nothing is changed: config.toml, line 1"),
        "{told}"
    );
    said(&mut sim, 6, &session, "go");
    assert_eq!(
        (cards(&sim), sim.world.ran.len()),
        (1, 3),
        "the rule still allows it"
    );
    sim.world.settings = Some(Ok(with(&["Bash(make)"], &[])));
    said(&mut sim, 7, &session, "/reload");
    said(&mut sim, 8, &session, "go");
    assert_eq!(
        (cards(&sim), sim.world.ran.len()),
        (1, 3),
        "the rule forbids it"
    );
}

#[test]
fn a_reload_that_is_cancelled_changes_nothing() {
    let (mut sim, session) = begin(&[bash("c1", "make"), say("k")], |_| {});
    if let Some(Ok(settings)) = &mut sim.world.settings {
        settings.permissions.allow = vec!["Bash(make)".into()];
    }
    // Both are read before the configuration is.
    sim.send(&json::prompt(1, &session, "/reload"));
    sim.send(&json::cancel(&session));
    assert_eq!(sim.answer(1)["result"]["stopReason"], "cancelled");
    said(&mut sim, 2, &session, "go");
    assert_eq!(cards(&sim), 1);
}

#[test]
fn a_goal_is_set_shown_paused_and_given_up() {
    let report = |id: &str, status: &str| {
        tool(
            id,
            "update_goal",
            json!({"status": status, "reason": "r", "next_action": "n"}),
        )
    };
    let answers = [report("c1", "blocked"), say("stuck")];
    let (mut sim, session) = begin(&answers, |_| {});
    assert!(said(&mut sim, 1, &session, "/goal").contains("There is no goal"));
    said(&mut sim, 2, &session, "/goal make it green");
    let body = String::from_utf8_lossy(&sim.world.requests[0].body).into_owned();
    assert!(
        body.contains("make it green") && !body.contains("/goal make"),
        "{body}"
    );
    let shown = said(&mut sim, 3, &session, "/goal");
    assert!(
        shown.contains("is blocked") && shown.contains("make it green"),
        "{shown}"
    );
    let none = said(&mut sim, 4, &session, "/goal pause");
    assert!(!none.is_empty());
    let cleared = said(&mut sim, 5, &session, "/goal clear");
    assert!(cleared.contains("There is no goal"), "{cleared}");
    let modes: Vec<&str> = sim
        .frames
        .iter()
        .filter_map(|frame| json::update(frame, &session)?["currentModeId"].as_str())
        .collect();
    assert_eq!(modes, ["goal", "normal"]);
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_history_is_compacted_when_it_is_asked_for() {
    let mut answers: Vec<Answer> = (0..8).map(|n| say(&format!("answer {n}"))).collect();
    answers.push(say("in short"));
    answers.push(say("after"));
    let (mut sim, session) = begin(&answers, |_| {});
    assert!(said(&mut sim, 1, &session, "/compact").contains("nothing to compact"));
    for n in 0..8 {
        said(&mut sim, 10 + n, &session, "more");
    }
    let told = said(&mut sim, 30, &session, "/compact");
    assert!(told.contains("[compacted"), "{told}");
    said(&mut sim, 31, &session, "and now");
    let body = String::from_utf8_lossy(&sim.world.requests[9].body).into_owned();
    assert!(
        body.contains("in short") && !body.contains("answer 0"),
        "{body}"
    );
    sim.finish();
    sim.laws.check();
}
