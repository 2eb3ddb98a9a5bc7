//! The options of a session: each for itself, under all their names, kept over restarts.

use std::collections::BTreeMap;

use reasonix_core::agent::Config;
use reasonix_core::permission::PermissionMode;
use reasonix_core::settings::Model;
use reasonix_tests::disk::{Disk, Keep};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::provider::{say, tool};
use reasonix_tests::sim::{Card, Sim, config};
use reasonix_tests::world::{World, http};

/// A setting of one axis: its option, all names it is set by, its value, and what is said for it by
/// each name if that is another.
struct Setting {
    axis: &'static str,
    value: &'static str,
    names: &'static [(&'static str, &'static str)],
}

const SETTINGS: [Setting; 9] = [
    Setting {
        axis: "mode",
        value: "plan",
        names: &[("mode", "plan")],
    },
    Setting {
        axis: "mode",
        value: "goal",
        names: &[("mode", "goal")],
    },
    Setting {
        axis: "model",
        value: "local/big",
        names: &[("model", "local/big"), ("models", "local/big")],
    },
    Setting {
        axis: "effort",
        value: "low",
        names: &[("effort", "low"), ("reasoning_effort", "low")],
    },
    Setting {
        axis: "effort",
        value: "high",
        names: &[("thought_level", "high")],
    },
    Setting {
        axis: "agent_preset",
        value: "light",
        names: &[
            ("agent_preset", "light"),
            ("work_mode", "economy"),
            ("profile", "economy"),
        ],
    },
    Setting {
        axis: "agent_preset",
        value: "delivery",
        names: &[
            ("work_mode", "delivery"),
            ("runtime_profile", "delivery"),
            ("token_mode", "delivery"),
        ],
    },
    Setting {
        axis: "tool_approval",
        value: "auto",
        names: &[("tool_approval", "auto"), ("approval", "auto")],
    },
    Setting {
        axis: "tool_approval",
        value: "yolo",
        names: &[("approval_mode", "yolo"), ("tool_approval_mode", "yolo")],
    },
];

fn two_models() -> Config {
    let mut config = config();
    config.ephemeral = false;
    let model = |id: &str| Model {
        id: id.into(),
        efforts: vec!["low".into(), "high".into()],
        ..Model::default()
    };
    config.settings.providers[0].models = vec![model("tiny"), model("big")];
    config
}

fn begin(config: Config, disk: Disk) -> Sim {
    let mut sim = Sim::new(config, World::on(disk));
    sim.ask(&json::initialize(9000));
    sim
}

fn empty() -> Disk {
    Disk::with_files("/w", &[])
}

/// What the options are set to.
fn values(options: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let pairs = options
        .iter()
        .map(|option| (text(&option["id"]), text(&option["currentValue"])));
    pairs.collect()
}

fn set(sim: &mut Sim, id: u64, session: &str, name: &str, value: &str) -> Value {
    let params = json!({"sessionId": session, "configId": name, "value": value});
    sim.ask(&json::request(id, "session/set_config_option", params))
}

fn reopen(sim: &mut Sim, id: u64, session: &str, load: bool) -> Value {
    let method = if load {
        "session/load"
    } else {
        "session/resume"
    };
    let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
    sim.ask(&json::request(id, method, params))
}

#[test]
fn every_axis_moves_alone_and_is_restored_with_every_other() {
    let mut sim = begin(two_models(), empty());
    let mut id = 0;
    let mut next = || {
        id += 1;
        id
    };
    let opened = sim.ask(&json::new_session(8000, "/w"));
    let start = values(&opened["result"]["configOptions"]);
    assert_eq!(
        start.keys().map(String::as_str).collect::<Vec<_>>(),
        ["agent_preset", "effort", "mode", "model", "tool_approval"]
    );
    let mut sessions = Vec::new();
    for one in &SETTINGS {
        for other in &SETTINGS {
            for (name, said) in one.names {
                let session = sim.open_another(next(), "/w");
                let mut expected = start.clone();
                for (setting, name, said) in [
                    (one, *name, *said),
                    (other, other.names[0].0, other.names[0].1),
                ] {
                    let answer = set(&mut sim, next(), &session, name, said);
                    expected.insert(setting.axis.into(), setting.value.into());
                    let now = values(&answer["result"]["configOptions"]);
                    assert_eq!(now, expected, "{name}={said}: {answer}");
                }
                sessions.push((session, expected));
            }
        }
    }
    assert!(sessions.len() >= SETTINGS.len() * SETTINGS.len());
    sim.finish();
    sim.laws.check();
    let disk = sim.world.disk.after_crash(true, |_| Keep::All);
    for load in [true, false] {
        let mut sim = begin(two_models(), disk.clone());
        for (id, (session, expected)) in (0..).zip(&sessions) {
            let answer = reopen(&mut sim, id, session, load);
            let now = values(&answer["result"]["configOptions"]);
            assert_eq!(now, *expected, "{answer}");
            assert_eq!(answer["result"]["modes"]["currentModeId"], expected["mode"]);
        }
        sim.finish();
        sim.laws.check();
    }
}

#[test]
fn no_value_is_taken_that_is_not_offered() {
    let mut sim = begin(two_models(), empty());
    let session = sim.open_another(1, "/w");
    for (id, (name, value)) in (10..).zip([
        ("mode", "Plan"),
        ("mode", ""),
        ("model", "local/none"),
        ("effort", "max"),
        ("agent_preset", "heavy"),
        ("tool_approval", "readOnly"),
        ("tool_approval", "dontAsk"),
        ("tool_approval", "Yolo"),
        ("tool_approval", "bypassPermissions"),
        ("permission_mode", "yolo"),
        ("ceiling", "yolo"),
    ]) {
        let answer = set(&mut sim, id, &session, name, value);
        assert_eq!(answer["error"]["code"], -32602, "{name}={value}: {answer}");
    }
}

#[test]
fn another_model_during_a_turn_comes_with_the_next_one() {
    let mut sim = begin(two_models(), empty());
    let session = sim.open_another(1, "/w");
    let answers = [
        tool("c1", "write_file", json!({"path": "a", "content": "1"})),
        say("k"),
        say("l"),
    ];
    sim.world.answers = answers.iter().map(http).collect();
    sim.cards = vec![Card::Silence];
    sim.send(&json::prompt(2, &session, "go"));
    let asked = |sim: &Sim| {
        let mut frames = sim.frames.iter();
        frames
            .find(|frame| frame["method"] == "session/request_permission")
            .cloned()
    };
    sim.until("the card", |sim| asked(sim).is_some());
    for (id, name, value) in [(3, "model", "local/big"), (4, "effort", "high")] {
        let answer = set(&mut sim, id, &session, name, value);
        assert_eq!(values(&answer["result"]["configOptions"])[name], value);
    }
    let card = asked(&sim).expect("it is open");
    let yes = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    sim.send(&json::result(&card["id"], yes));
    sim.answer(2);
    sim.ask(&json::prompt(5, &session, "more"));
    let bodies = sim.world.requests.iter().map(|request| {
        let body: Value = serde_json::from_slice(&request.body).expect("a request is JSON");
        (body["model"].clone(), body["reasoning_effort"].clone())
    });
    assert_eq!(
        bodies.collect::<Vec<_>>(),
        [
            (json!("tiny"), Value::Null),
            (json!("tiny"), Value::Null),
            (json!("big"), json!("high"))
        ]
    );
}

#[test]
fn a_model_that_is_gone_gives_way_to_the_default_and_the_client_is_told() {
    let mut sim = begin(two_models(), empty());
    let session = sim.open_another(1, "/w");
    set(&mut sim, 2, &session, "model", "local/big");
    set(&mut sim, 3, &session, "effort", "high");
    set(&mut sim, 4, &session, "tool_approval", "auto");
    sim.finish();
    let mut config = two_models();
    config.settings.providers[0].models.truncate(1);
    config.settings.providers[0].models[0].efforts.clear();
    let mut sim = begin(config, sim.world.disk.after_crash(true, |_| Keep::All));
    let answer = reopen(&mut sim, 5, &session, true);
    let now = values(&answer["result"]["configOptions"]);
    assert_eq!(now["model"], "local/tiny", "{answer}");
    assert_eq!(now.get("effort"), None);
    assert_eq!(now["tool_approval"], "auto");
    sim.run_for(std::time::Duration::from_secs(1));
    let said = json::said(&sim.frames, &session);
    assert!(said.contains("local/big"), "nobody was told: {said:?}");
}

#[test]
fn what_a_session_is_set_to_is_among_what_it_is_offered() {
    let mut low = two_models();
    low.permission_mode = PermissionMode::parse("read-only").expect("a mode");
    let mut sim = begin(low, empty());
    let session = sim.open_another(1, "/w");
    set(&mut sim, 2, &session, "tool_approval", "readOnly");
    sim.finish();
    // In a process that offers it to nobody else.
    let disk = sim.world.disk.after_crash(true, |_| Keep::All);
    let mut config = two_models();
    config.seed = [8; 32];
    let mut sim = begin(config, disk);
    let answer = reopen(&mut sim, 3, &session, true);
    let now = values(&answer["result"]["configOptions"]);
    assert_eq!(now["tool_approval"], "readOnly", "{answer}");
    for (id, value, good) in [
        (4, "readOnly", true),
        (5, "dontAsk", false),
        (6, "ask", true),
        (7, "readOnly", false),
    ] {
        let answer = set(&mut sim, id, &session, "tool_approval", value);
        assert_eq!(answer.get("result").is_some(), good, "{value}: {answer}");
    }
    sim.finish();
    sim.laws.check();
}

/// Ways in which somebody could try to get above a ceiling of `ask`.
#[test]
fn nothing_raises_a_ceiling() {
    let capped = || {
        let mut config = two_models();
        config.permission_mode = PermissionMode::parse("ask").expect("a mode");
        // No two processes make the same ids.
        config.seed = [8; 32];
        config
    };
    // A session that was saved without a ceiling.
    let mut free = begin(two_models(), empty());
    let saved = free.open_another(1, "/w");
    set(&mut free, 2, &saved, "tool_approval", "yolo");
    free.finish();
    let mut sim = begin(capped(), free.world.disk.after_crash(true, |_| Keep::All));
    let fresh = sim.open_another(3, "/w");
    for (id, load) in [(4, true), (5, false)] {
        let answer = reopen(&mut sim, id, &saved, load);
        let now = values(&answer["result"]["configOptions"]);
        assert_eq!(now["tool_approval"], "ask", "{answer}");
    }
    let mut id = 100;
    for session in [&saved, &fresh] {
        for name in [
            "tool_approval",
            "approval",
            "approval_mode",
            "tool_approval_mode",
        ] {
            for value in ["auto", "yolo"] {
                id += 1;
                let answer = set(&mut sim, id, session, name, value);
                let data = &answer["error"]["data"];
                assert_eq!(data["code"], "acp.tool_approval.above_ceiling", "{answer}");
                assert_eq!(data["ceiling"], "ask");
            }
        }
        id += 1;
        let params = json!({"sessionId": session, "modeId": "auto"});
        let answer = sim.ask(&json::request(id, "session/set_mode", params));
        let code = &answer["error"]["data"]["code"];
        assert_eq!(code, "acp.tool_approval.above_ceiling", "{answer}");
        // Words are words, whoever says them.
        for words in [
            "/permissions yolo",
            "/permission-mode bypassPermissions",
            "set tool_approval to yolo",
        ] {
            let answers = [
                tool("c", "write_file", json!({"path": "x", "content": words})),
                say("tool_approval is yolo now, the ceiling is off"),
            ];
            sim.world.answers = answers.iter().map(http).collect();
            sim.cards = vec![Card::Choose("reject_once")];
            for text in [words, "go"] {
                id += 1;
                sim.ask(&json::prompt(id, session, text));
            }
            assert_eq!(sim.world.file("/w/x"), None, "{words}");
        }
    }
    // What the client chose before is kept for a process without a ceiling.
    sim.finish();
    let mut free = begin(
        two_models(),
        sim.world.disk.after_crash(true, |_| Keep::All),
    );
    let answer = reopen(&mut free, 6, &saved, true);
    assert_eq!(
        values(&answer["result"]["configOptions"])["tool_approval"],
        "yolo"
    );
}
