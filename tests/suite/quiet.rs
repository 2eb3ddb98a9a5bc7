//! What is settled once and comes to rest: turns, cards and requests of both sides, whatever is
//! cancelled, closed, lost or said twice, and what a tool's failure leaves.

use std::time::Duration;

use reasonix_core::agent::Config;
use reasonix_core::model::Script;
use reasonix_tests::editor::{Editor, Habit};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::sim::{Card, Sim, Told, config};
use reasonix_tests::world::{Command, World};

const SECOND: Duration = Duration::from_secs(1);

/// A model that makes these calls in one answer, then says `done`.
fn at_once(calls: &[(&str, Value)]) -> Config {
    let mut lines = String::new();
    for (name, args) in calls {
        lines += &format!("{}\n", json!({"tool": name, "args": args}));
    }
    if !calls.is_empty() {
        lines += "{\"finish\":\"tool_calls\"}\n";
    }
    lines += "{\"text\":\"done\"}\n{\"finish\":\"stop\"}\n";
    let mut config = config();
    config.script = Some(Script::parse(&lines).expect("a script"));
    config
}

fn world() -> World {
    let mut world = World::with_files("/w", &[("a.txt", "alpha")]);
    world.commands = vec![Command {
        contains: "make".into(),
        output: b"built\n".to_vec(),
        takes: None,
        code: 0,
    }];
    world
}

fn everything() -> Value {
    json!({
        "fs": {"readTextFile": true, "writeTextFile": true},
        "terminal": true,
        "elicitation": {"form": {}, "url": {}},
    })
}

fn open(capabilities: Value, editor: Editor, config: Config) -> (Sim, String) {
    let mut sim = Sim::new(config, world());
    sim.editor = Some(editor);
    let session = sim.open(capabilities, "/w");
    (sim, session)
}

fn edit() -> (&'static str, Value) {
    let args = json!({"path": "a.txt", "old_string": "alpha", "new_string": "ALPHA"});
    ("edit_file", args)
}

fn read() -> (&'static str, Value) {
    ("read_file", json!({"path": "a.txt"}))
}

fn make() -> (&'static str, Value) {
    ("bash", json!({"command": "make"}))
}

fn ask() -> (&'static str, Value) {
    ("ask", json!({"question": "Which?", "options": ["a", "b"]}))
}

fn asked(sim: &Sim, method: &str) -> Option<Value> {
    let mut frames = sim.frames.iter();
    let frame = frames.find(|frame| frame["method"] == method)?;
    Some(frame["id"].clone())
}

fn ends(sim: &Sim) -> usize {
    let updates = sim
        .frames
        .iter()
        .filter_map(|frame| json::update(frame, ""));
    let ended = |update: &&Value| matches!(update["status"].as_str(), Some("completed" | "failed"));
    updates.filter(ended).count()
}

#[test]
fn a_prompt_and_its_card_are_settled_once() {
    let cancel = |session: &str| json::cancel(session);
    let close = |session: &str| json::request(7, "session/close", json!({"sessionId": session}));
    let take_back = |_: &str| json::notification("$/cancel_request", json!({"requestId": 1}));
    type Way<'a> = &'a dyn Fn(&str) -> Value;
    let ways: [(&str, Way<'_>); 3] = [
        ("cancel", &cancel),
        ("close", &close),
        ("take back", &take_back),
    ];
    for (name, way) in ways {
        let (mut sim, session) = open(json!({}), Editor::default(), at_once(&[edit(), make()]));
        sim.cards = vec![Card::Silence];
        sim.send(&json::prompt(1, &session, "go"));
        let method = "session/request_permission";
        sim.until("a card", |sim| asked(sim, method).is_some());
        let card = asked(&sim, method).expect("just seen");
        // In one write: the end, the end once more, and an answer that comes too late, twice.
        let allow = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        sim.send(&way(&session));
        sim.send(&json::cancel(&session));
        sim.send(&json::result(&card, allow.clone()));
        sim.send(&json::result(&card, allow));
        assert_eq!(sim.answer(1)["result"]["stopReason"], "cancelled", "{name}");
        sim.run_for(60 * SECOND);
        let answers = sim.frames.iter();
        let answers = answers.filter(|frame| frame.get("method").is_none() && frame["id"] == 1);
        assert_eq!(answers.count(), 1, "{name}");
        assert_eq!(ends(&sim), 2, "{name}: each call ends once");
        assert_eq!(sim.world.file("/w/a.txt"), Some(&b"alpha"[..]), "{name}");
        assert_eq!(sim.world.ran, [""; 0], "{name}");
        sim.finish();
        sim.laws.check();
    }
}

#[test]
fn a_cancel_takes_the_turn_that_is_about_to_start_and_starts_nothing_queued() {
    // Behind the prompt in the same write.
    let (mut sim, session) = open(json!({}), Editor::default(), at_once(&[make()]));
    sim.send(&json::prompt(1, &session, "go"));
    sim.send(&json::cancel(&session));
    assert_eq!(sim.answer(1)["result"]["stopReason"], "cancelled");
    sim.run_for(60 * SECOND);
    assert_eq!(sim.world.ran, [""; 0]);
    // While the first of several runs.
    let calls = [make(), make(), edit(), ask()];
    let (mut sim, session) = open(everything(), Editor::default(), at_once(&calls));
    sim.send(&json::prompt(1, &session, "go"));
    sim.until("a command", |sim| {
        asked(sim, "terminal/wait_for_exit").is_some()
    });
    sim.send(&json::cancel(&session));
    assert_eq!(sim.answer(1)["result"]["stopReason"], "cancelled");
    sim.run_for(60 * SECOND);
    let editor = sim.editor.as_ref().expect("it was put there");
    assert_eq!(editor.terminals.len(), 1);
    assert_eq!(editor.writes, []);
    assert_eq!(editor.forms, [Value::Null; 0]);
    assert_eq!(ends(&sim), 4);
    editor.check();
}

#[test]
fn disposal_comes_to_rest() {
    let background = (
        "bash",
        json!({"command": "make", "run_in_background": true}),
    );
    type Calls = Vec<(&'static str, Value)>;
    let kinds: [(&str, Value, Calls); 4] = [
        ("a command", json!({}), vec![make()]),
        ("a terminal", everything(), vec![make()]),
        ("a form", everything(), vec![ask()]),
        ("a job and a command", json!({}), vec![background, make()]),
    ];
    for (name, capabilities, calls) in kinds {
        for end in [Told::PeerFinished, Told::PeerGone] {
            let mut editor = Editor::default();
            editor.always.insert("elicitation/create", Habit::Never);
            let (mut sim, session) = open(capabilities.clone(), editor, at_once(&calls));
            sim.send(&json::prompt(1, &session, "go"));
            sim.run_for(5 * SECOND);
            let from = sim.now;
            sim.tell(end.clone());
            sim.until("the end", |sim| sim.closed.is_some());
            assert!(sim.now.since(from) < 5 * SECOND, "{name}");
            assert_eq!(sim.world.running(), 0, "{name}");
            // And nothing more, ever.
            let said = sim.effects().len();
            sim.run_for(600 * SECOND);
            assert_eq!(sim.effects().len(), said, "{name}");
            if end == Told::PeerFinished {
                sim.laws.check();
                sim.editor.as_ref().expect("it was put there").check();
            }
        }
    }
}

#[test]
fn no_text_is_sent_twice() {
    let words = "one two three four";
    let lines = format!(
        "{{\"chunk\":3}}\n{}\n{}\n{{\"finish\":\"tool_calls\"}}\n{}\n{{\"finish\":\"stop\"}}\n",
        json!({"text": words}),
        json!({"tool": "read_file", "args": {"path": "a.txt"}}),
        json!({"text": words}),
    );
    let mut config = config();
    config.script = Some(Script::parse(&lines).expect("a script"));
    let (mut sim, session) = open(everything(), Editor::default(), config);
    sim.ask(&json::prompt(1, &session, "go"));
    assert_eq!(json::said(&sim.frames, ""), format!("{words}{words}"));
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_tool_that_breaks_fails_its_card_and_not_the_turn() {
    let mut editor = Editor::default();
    editor.always.insert("fs/write_text_file", Habit::Fails);
    let calls = [
        ("no_such_tool", json!({})),
        ("read_file", json!({"path": 5})),
        ("read_file", json!({"path": "none.txt"})),
        ("write_file", json!({"path": "n.txt", "content": "x"})),
        read(),
    ];
    let (mut sim, session) = open(everything(), editor, at_once(&calls));
    let answer = sim.ask(&json::prompt(1, &session, "go"));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let failed = "failed";
    assert_eq!(
        json::tool_ends(&sim.frames, ""),
        [failed, failed, failed, failed, "completed"]
    );
    assert_eq!(json::said(&sim.frames, ""), "done");
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_cancel_withdraws_what_was_asked_of_the_client() {
    for (method, call) in [
        ("session/request_permission", edit()),
        ("fs/read_text_file", read()),
        ("fs/write_text_file", edit()),
        ("terminal/create", make()),
        ("terminal/wait_for_exit", make()),
        ("elicitation/create", ask()),
    ] {
        let mut editor = Editor::default();
        editor.buffers.insert("/w/a.txt".into(), "alpha".into());
        if method != "terminal/wait_for_exit" {
            editor.always.insert(method, Habit::Late(30 * SECOND));
        }
        let (mut sim, session) = open(everything(), editor, at_once(&[call]));
        if method == "session/request_permission" {
            sim.cards = vec![Card::Silence];
        }
        sim.send(&json::prompt(1, &session, "go"));
        sim.until(method, |sim| asked(sim, method).is_some());
        let id = asked(&sim, method).expect("just seen");
        let from = sim.now;
        sim.send(&json::cancel(&session));
        assert_eq!(
            sim.answer(1)["result"]["stopReason"],
            "cancelled",
            "{method}"
        );
        assert!(sim.now.since(from) < 2 * SECOND, "{method}");
        sim.run_for(60 * SECOND);
        let editor = sim.editor.as_ref().expect("it was put there");
        // What was answered because of the cancel need not be withdrawn.
        let expected: &[Value] = match method {
            "terminal/wait_for_exit" => &[],
            _ => std::slice::from_ref(&id),
        };
        assert_eq!(editor.broken_off, expected, "{method}");
        assert_eq!(
            editor.writes.len(),
            usize::from(method == "fs/write_text_file")
        );
        editor.check();
        assert_eq!(ends(&sim), 1, "{method}");
        sim.finish();
        sim.laws.check();
    }
}

#[test]
fn every_request_of_the_client_can_be_taken_back_and_has_one_answer() {
    type Row = (&'static str, fn(&str) -> Value, &'static [&'static str]);
    let with: fn(&str) -> Value = |session| json!({"sessionId": session});
    let none: fn(&str) -> Value = |_| json!({});
    let rows: Vec<Row> = vec![
        ("initialize", |_| json!({"protocolVersion": 1}), &["ok"]),
        (
            "authenticate",
            |_| json!({"methodId": "reasonix-setup"}),
            &["-32800"],
        ),
        (
            "session/new",
            |_| json!({"cwd": "/w", "mcpServers": []}),
            &["-32800"],
        ),
        ("session/list", none, &["-32800"]),
        (
            "session/prompt",
            |session| {
                let block = json!({"type": "text", "text": "go"});
                json!({"sessionId": session, "prompt": [block]})
            },
            &["cancelled"],
        ),
        // What has its effect at once has its own result.
        (
            "session/set_mode",
            |session| json!({"sessionId": session, "modeId": "plan"}),
            &["ok"],
        ),
        (
            "session/set_config_option",
            |session| json!({"sessionId": session, "configId": "mode", "value": "plan"}),
            &["ok"],
        ),
        ("session/close", with, &["ok"]),
        ("session/delete", with, &["ok"]),
        ("no/such", none, &["-32601"]),
    ];
    for (method, params, expected) in rows {
        let mut config = at_once(&[]);
        config.ephemeral = false;
        if method == "authenticate" {
            config.script = None;
            config.settings.default_model = None;
            config.settings.providers.clear();
        }
        let mut sim = Sim::new(config, world());
        sim.ask(&json::initialize(9001));
        let session = match method {
            "authenticate" => String::new(),
            _ => sim.open_another(9002, "/w"),
        };
        // The request, and at once behind it: another id, one of another type, its own, twice.
        sim.send(&json::request(5, method, params(&session)));
        for id in [json!(6), json!("5"), json!(5), json!(5)] {
            sim.send(&json::notification(
                "$/cancel_request",
                json!({"requestId": id}),
            ));
        }
        let answer = sim.answer(5);
        let said = match (&answer["result"]["stopReason"], &answer["error"]["code"]) {
            (Value::String(reason), _) => reason.clone(),
            (_, Value::Number(code)) => code.to_string(),
            _ => "ok".into(),
        };
        assert!(expected.contains(&said.as_str()), "{method}: {answer}");
        sim.run_for(60 * SECOND);
        let answers = sim.frames.iter();
        let answers = answers.filter(|frame| frame.get("method").is_none() && frame["id"] == 5);
        assert_eq!(answers.count(), 1, "{method}");
        sim.finish();
        sim.laws.check();
    }
}
