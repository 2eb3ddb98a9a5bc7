//! What makes no difference: members nobody knows, metadata, nulls, the order of members, lines that
//! are no messages, requests that are refused, a client that leaves early or drops its diagnostics.

use std::process::Command;
use std::time::{Duration, Instant};

use reasonix_core::model::Script;
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running, program};
use reasonix_tests::sim::{Sim, config};
use reasonix_tests::world::World;

const SCRIPT: &str = "{\"thought\":\"hm\"}\n{\"tool\":\"read_file\",\"args\":{\"path\":\"a.txt\"}}\n\
    {\"finish\":\"tool_calls\"}\n\
    {\"tool\":\"edit_file\",\"args\":{\"path\":\"a.txt\",\"old_string\":\"alpha\",\"new_string\":\"beta\"}}\n\
    {\"finish\":\"tool_calls\"}\n{\"text\":\"done\"}\n{\"finish\":\"stop\"}\n";

fn fresh() -> Sim {
    let mut config = config();
    config.script = Some(Script::parse(SCRIPT).expect("a script"));
    Sim::new(config, World::with_files("/w", &[("a.txt", "alpha")]))
}

/// What a client asks, one after the other; `$S` is its session.
fn conversation() -> Vec<Value> {
    let text = json!({"type": "text", "text": "hi"});
    let link = json!({"type": "resource_link", "uri": "file:///w/a.txt", "name": "a.txt"});
    let prompt = json!({"sessionId": "$S", "prompt": [text, link]});
    let option = json!({"sessionId": "$S", "configId": "mode", "value": "normal"});
    vec![
        json::initialize_with(
            1,
            json!({"fs": {"readTextFile": true, "writeTextFile": false}, "plan": {}}),
        ),
        json::new_session(2, "/w"),
        json::request(3, "session/prompt", prompt),
        json::request(
            4,
            "session/set_mode",
            json!({"sessionId": "$S", "modeId": "plan"}),
        ),
        json::request(5, "session/set_config_option", option),
        json::request(6, "session/list", json!({"cwd": "/w"})),
        json::request(7, "_reasonix.io/session/status", json!({"sessionId": "$S"})),
        json::request(8, "session/close", json!({"sessionId": "$S"})),
    ]
}

/// Holds the conversation, each message changed by `change`, with what `between` says before each.
/// Gives all frames but the answers to what was said between.
fn hold(change: impl Fn(&Value) -> Value, between: impl Fn(&str, u64) -> Vec<Value>) -> Vec<Value> {
    let mut sim = fresh();
    let mut session = "none".to_string();
    for (at, message) in (0_u64..).zip(conversation()) {
        // What comes before the handshake is another matter.
        let said = if at == 0 {
            Vec::new()
        } else {
            between(&session, at)
        };
        for wrong in said {
            let answer = sim.ask(&wrong);
            assert!(answer.get("error").is_some(), "{wrong}: {answer}");
        }
        let text = change(&message).to_string().replace("$S", &session);
        let answer = sim.ask(&serde_json::from_str(&text).expect("json"));
        assert!(answer.get("result").is_some(), "{text}: {answer}");
        if let Some(id) = answer["result"]["sessionId"].as_str().filter(|_| at == 1) {
            session = id.into();
        }
    }
    sim.finish();
    sim.laws.check();
    let between = |frame: &&Value| frame["id"].as_u64().is_none_or(|id| id < 1000);
    sim.frames.iter().filter(between).cloned().collect()
}

/// The same message, every object in it changed by `change`; texts of people and maps of names stay.
fn everywhere(value: &Value, change: &dyn Fn(&mut serde_json::Map<String, Value>)) -> Value {
    match value {
        Value::Object(members) => {
            let mut members = members
                .iter()
                .map(|(name, value)| (name.clone(), everywhere(value, change)))
                .collect();
            change(&mut members);
            Value::Object(members)
        }
        Value::Array(all) => all.iter().map(|one| everywhere(one, change)).collect(),
        plain => plain.clone(),
    }
}

#[test]
fn unknown_members_metadata_nulls_and_order_change_nothing() {
    let nothing = |_: &str, _: u64| Vec::new();
    let plain = hold(Value::clone, nothing);
    assert!(plain.len() > 15, "a short conversation says little");
    type Change<'a> = &'a dyn Fn(&mut serde_json::Map<String, Value>);
    let changes: [(&str, Change<'_>); 6] = [
        ("an unknown member", &|all| {
            all.insert("zzz".into(), json!({"a": [1]}));
        }),
        ("metadata", &|all| {
            all.insert(
                "_meta".into(),
                json!({"traceparent": "00-0-0-01", "x": {"y": null}}),
            );
        }),
        ("metadata that is none", &|all| {
            all.insert("_meta".into(), json!(5));
        }),
        ("metadata that is null", &|all| {
            all.insert("_meta".into(), Value::Null);
        }),
        ("nulls for what is optional", &|all| {
            for name in [
                "additionalDirectories",
                "systemPrompt",
                "clientInfo",
                "annotations",
                "title",
            ] {
                all.entry(name).or_insert(Value::Null);
            }
        }),
        ("another order", &|all| {
            *all = std::mem::take(all).into_iter().rev().collect();
        }),
    ];
    for (name, change) in changes {
        assert_eq!(
            hold(|message| everywhere(message, change), nothing),
            plain,
            "{name}"
        );
    }
}

#[test]
fn what_is_refused_leaves_everything_as_it_was() {
    let plain = hold(Value::clone, |_, _| Vec::new());
    let wrong = |session: &str, at: u64| {
        let with = |more: Value| {
            let mut params = json!({"sessionId": session});
            let more = more.as_object().cloned().unwrap_or_default();
            params.as_object_mut().expect("just made").extend(more);
            params
        };
        let rows = [
            ("session/new", json!({"cwd": "rel", "mcpServers": []})),
            (
                "session/new",
                json!({"cwd": "/w", "mcpServers": [{"name": "a"}]}),
            ),
            (
                "session/load",
                json!({"sessionId": "nope", "cwd": "/w", "mcpServers": []}),
            ),
            ("session/prompt", with(json!({"prompt": []}))),
            (
                "session/prompt",
                with(json!({"prompt": [{"type": "hologram"}]})),
            ),
            (
                "session/prompt",
                json!({"sessionId": "nope", "prompt": [{"type": "text", "text": "x"}]}),
            ),
            ("session/set_mode", with(json!({"modeId": "zzz"}))),
            (
                "session/set_config_option",
                with(json!({"configId": "mode", "value": "zzz"})),
            ),
            (
                "session/set_config_option",
                with(json!({"configId": "zzz", "value": "plan"})),
            ),
            ("session/list", json!({"cursor": "zzz"})),
            ("session/fork", with(json!({"cwd": "/w"}))),
            ("authenticate", json!({"methodId": "zzz"})),
            (
                "_reasonix.io/session/steer",
                json!({"sessionId": "nope", "prompt": []}),
            ),
            ("initialize", json!({"protocolVersion": "1"})),
        ];
        let rows = (1000 * at..).zip(rows);
        rows.map(|(id, (method, params))| json::request(id, method, params))
            .collect()
    };
    assert_eq!(hold(Value::clone, wrong), plain);
}

#[test]
fn what_is_no_message_is_answered_and_nothing_more_comes_of_it() {
    let mut sim = fresh();
    let mut expected = 0;
    let mut session = String::new();
    for message in conversation() {
        for line in [
            "Starting...\n",
            "[info] all is well\n",
            "\n",
            "{\"level\":\"info\"\n",
        ] {
            sim.send_bytes(line.as_bytes());
            expected += usize::from(line != "\n");
        }
        let text = message.to_string().replace("$S", &session);
        let answer = sim.ask(&serde_json::from_str(&text).expect("json"));
        assert!(answer.get("result").is_some(), "{answer}");
        if let Some(id) = answer["result"]["sessionId"]
            .as_str()
            .filter(|_| message["id"] == 2)
        {
            session = id.into();
        }
    }
    let refused = sim
        .frames
        .iter()
        .filter(|frame| frame["error"]["code"] == -32700);
    let to_nobody = refused.filter(|frame| frame["id"].is_null());
    assert_eq!(to_nobody.count(), expected);
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_client_may_leave_at_any_moment_in_the_middle_of_a_line_too() {
    let hello = json::line(&json::initialize(1));
    for rest in [
        &b""[..],
        b"{\"method\":\"x\",\"id\":1",
        b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"session/li",
    ] {
        let mut sim = fresh();
        sim.send_bytes(&hello);
        sim.answer(1);
        sim.send_bytes(rest);
        sim.finish();
        sim.run_for(Duration::from_secs(60));
        let results = sim
            .frames
            .iter()
            .filter(|frame| frame.get("result").is_some());
        assert_eq!(results.count(), 1, "{}", String::from_utf8_lossy(rest));
        assert!(
            sim.frames
                .iter()
                .all(|frame| frame["id"] == 1 || frame["id"].is_null())
        );
    }
}

#[test]
fn what_was_asked_is_answered_though_the_input_has_ended() {
    for name in PROGRAMS {
        let place = Place::new();
        let script = place.script("{\"text\":\"x\"}\n");
        let model = format!("script:{}", script.display());
        let mut agent = Running::start(name, &place, &["--model", &model]);
        let work = place.work();
        let cwd = work.to_str().expect("a plain name");
        agent.send_all(&[json::initialize(1), json::new_session(2, cwd)]);
        let (ended, laws) = agent.finish();
        // That both were answered is one of the laws of a whole exchange.
        laws.check();
        assert_eq!(laws.unanswered(), [""; 0], "{name}");
        assert_eq!(ended.code, Some(0), "{name}");
        assert!(ended.took < Duration::from_secs(5), "{name}: {ended:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_session_works_with_nobody_at_its_diagnostics() {
    for name in PROGRAMS {
        let place = Place::new();
        let script = place.script("{\"text\":\"heard\"}\n");
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec \"$0\" acp -vv --model \"$1\" 2>&-"])
            .arg(program(name))
            .arg(format!("script:{}", script.display()))
            .current_dir("/")
            .env("REASONIX_HOME", place.home())
            .env("HOME", place.home());
        let mut agent = Running::spawn(command);
        let session = agent.open(json!({}), &place.work());
        let answer = agent.ask(&json::prompt(1, &session, "hi"));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{name}");
        assert_eq!(json::said(&agent.frames, &session), "heard");
        agent.close_input();
        let end = Instant::now() + Duration::from_secs(10);
        while agent.next("the end", end).is_some() {}
        assert_eq!(agent.wait(Instant::now()).code, Some(0), "{name}");
    }
}
