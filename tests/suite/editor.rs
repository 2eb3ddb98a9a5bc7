//! The editor's side of a turn: files through its buffers, commands in its terminals. A simulated
//! editor that answers well, badly, late, twice or never, and what must be true of all of it.

use std::time::Duration;

use proptest::prelude::*;
use reasonix_core::agent::{Config, PermissionMode};
use reasonix_core::model::Script;
use reasonix_tests::disk::Node;
use reasonix_tests::editor::{Editor, Habit};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::sim::{Card, Sim, Told, config};
use reasonix_tests::world::{Command, World};

const SECOND: Duration = Duration::from_secs(1);

/// Habits that give nothing to work with.
const BAD: [Habit; 4] = [Habit::Fails, Habit::Malformed, Habit::OtherId, Habit::Never];

fn fs(reads: bool, writes: bool) -> Value {
    json!({"fs": {"readTextFile": reads, "writeTextFile": writes}})
}

fn terminals() -> Value {
    json!({"terminal": true})
}

/// A model that makes one call an answer, then says `done`.
fn script(calls: &[(&str, Value)]) -> Script {
    let mut lines = String::new();
    for (name, args) in calls {
        lines += &format!("{}\n", json!({"tool": name, "args": args}));
        lines += "{\"finish\":\"tool_calls\"}\n";
    }
    lines += "{\"text\":\"done\"}\n{\"finish\":\"stop\"}\n";
    Script::parse(&lines).expect("a script")
}

fn world(files: &[(&str, &str)]) -> World {
    let mut world = World::with_files("/w", files);
    world.commands = vec![Command {
        contains: "make".into(),
        output: b"built\n".to_vec(),
        takes: Some(SECOND),
        code: 0,
    }];
    world
}

fn start(capabilities: Value, editor: Editor, world: World, config: Config) -> (Sim, String) {
    let mut sim = Sim::new(config, world);
    sim.editor = Some(editor);
    let session = sim.open(capabilities, "/w");
    (sim, session)
}

fn scripted(calls: &[(&str, Value)]) -> Config {
    let mut config = config();
    config.script = Some(script(calls));
    config
}

fn editor_in(sim: &Sim) -> &Editor {
    sim.editor.as_ref().expect("it was put there")
}

/// One turn from its prompt to its answer, and what was seen of it.
struct Seen {
    sim: Sim,
    stop: Value,
    ends: Vec<String>,
    took: Duration,
}

fn turn(capabilities: Value, editor: Editor, world: World, calls: &[(&str, Value)]) -> Seen {
    turn_with(capabilities, editor, world, scripted(calls))
}

fn turn_with(capabilities: Value, editor: Editor, world: World, config: Config) -> Seen {
    let (mut sim, session) = start(capabilities, editor, world, config);
    let from = sim.now;
    let answer = sim.ask(&json::prompt(1, &session, "go"));
    let took = sim.now.since(from);
    sim.run_for(SECOND * 60);
    sim.finish();
    sim.laws.check();
    assert_eq!(sim.world.running(), 0, "something runs on");
    Seen {
        stop: answer["result"]["stopReason"].clone(),
        ends: json::tool_ends(&sim.frames, ""),
        took,
        sim,
    }
}

impl Seen {
    /// The text that the last tool call ended with.
    fn result(&self) -> String {
        let updates = self.sim.frames.iter().rev();
        let mut texts = updates.filter_map(|frame| {
            let update = json::update(frame, "")?;
            let ended = matches!(update["status"].as_str(), Some("completed" | "failed"));
            let items = update["content"].as_array().filter(|_| ended)?;
            let text = items.last()?["content"]["text"].as_str()?;
            Some(text.to_string())
        });
        texts.next().unwrap_or_default()
    }

    fn file(&self, path: &str) -> String {
        let bytes = self.sim.world.file(path).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }

    fn editor(&self) -> &Editor {
        editor_in(&self.sim)
    }
}

fn open_buffer(path: &str, text: &str) -> Editor {
    Editor {
        buffers: [(path.to_string(), text.to_string())].into(),
        command_takes: Some(SECOND),
        output: "from the terminal\n".into(),
        ..Editor::default()
    }
}

fn always(mut editor: Editor, method: &'static str, habit: Habit) -> Editor {
    editor.always.insert(method, habit);
    editor
}

fn read() -> (&'static str, Value) {
    ("read_file", json!({"path": "a.txt"}))
}

fn edit(old: &str, new: &str) -> (&'static str, Value) {
    let args = json!({"path": "a.txt", "old_string": old, "new_string": new});
    ("edit_file", args)
}

fn make() -> (&'static str, Value) {
    ("bash", json!({"command": "make"}))
}

#[test]
fn a_read_falls_back_to_the_disk() {
    let good = [
        (Habit::Good, Duration::ZERO),
        (Habit::Twice, Duration::ZERO),
        (Habit::Late(9 * SECOND), 9 * SECOND),
    ];
    let bad = [
        (Habit::Fails, Duration::ZERO),
        (Habit::Malformed, Duration::ZERO),
        (Habit::OtherId, 10 * SECOND),
        (Habit::Never, 10 * SECOND),
        (Habit::Late(11 * SECOND), 10 * SECOND),
    ];
    let rows = good.map(|row| (row, "unsaved"));
    let rows = rows.into_iter().chain(bad.map(|row| (row, "saved")));
    for ((habit, takes), text) in rows {
        let editor = always(
            open_buffer("/w/a.txt", "unsaved"),
            "fs/read_text_file",
            habit,
        );
        let seen = turn(
            fs(true, false),
            editor,
            world(&[("a.txt", "saved")]),
            &[read()],
        );
        assert_eq!(seen.ends, ["completed"], "{habit:?}");
        assert_eq!(seen.result(), format!("1→{text}"), "{habit:?}");
        assert!(
            seen.took >= takes && seen.took < takes + SECOND,
            "{habit:?}"
        );
        let given_up = usize::from(takes == 10 * SECOND);
        assert_eq!(seen.editor().broken_off.len(), given_up, "{habit:?}");
    }
}

#[test]
fn a_write_does_not_fall_back() {
    for habit in BAD {
        for call in [
            edit("alpha", "ALPHA"),
            ("write_file", json!({"path": "a.txt", "content": "new"})),
            ("write_file", json!({"path": "n.txt", "content": "new"})),
        ] {
            let editor = always(
                open_buffer("/w/a.txt", "alpha"),
                "fs/write_text_file",
                habit,
            );
            let seen = turn(
                fs(true, true),
                editor,
                world(&[("a.txt", "alpha")]),
                &[read(), call.clone()],
            );
            assert_eq!(seen.stop, "end_turn", "{habit:?}");
            assert_eq!(seen.ends, ["completed", "failed"], "{habit:?} {call:?}");
            assert_eq!(seen.file("/w/a.txt"), "alpha", "{habit:?} {call:?}");
            assert_eq!(seen.sim.world.file("/w/n.txt"), None, "{habit:?}");
            assert!(
                seen.result().contains("the editor did not"),
                "{}",
                seen.result()
            );
            let asked = seen.editor().asked.iter();
            let writes = asked.filter(|method| *method == "fs/write_text_file");
            assert_eq!(writes.count(), 1, "it is asked once");
        }
    }
}

#[test]
fn an_edit_is_made_in_the_text_that_the_model_saw() {
    let edited = |reads, writes, disk: &str, buffer: &str| {
        let editor = open_buffer("/w/a.txt", buffer);
        let files = [("a.txt", disk)];
        turn(
            fs(reads, writes),
            editor,
            world(&files),
            &[read(), edit("beta", "BETA")],
        )
    };
    // The buffer is edited, and the disk is the editor's affair.
    let seen = edited(true, true, "old\r\n", "x\nbeta\n");
    assert_eq!(seen.ends, ["completed", "completed"]);
    assert_eq!(
        seen.editor().writes,
        [("/w/a.txt".to_string(), "x\nBETA\n".to_string())]
    );
    assert_eq!(seen.file("/w/a.txt"), "old\r\n");
    // It reads only: what it shows is written to the disk in the disk's own form.
    let seen = edited(true, false, "\u{feff}beta\r\n", "beta\nmore\n");
    assert_eq!(seen.ends, ["completed", "completed"]);
    assert_eq!(seen.file("/w/a.txt"), "\u{feff}BETA\r\nmore\r\n");
    assert!(
        !seen
            .editor()
            .asked
            .iter()
            .any(|m| m == "fs/write_text_file")
    );
    // It writes only: the disk is what there is to see, byte for byte.
    let seen = edited(false, true, "\u{feff}beta\r\n", "never asked for");
    assert_eq!(seen.ends, ["completed", "completed"]);
    assert_eq!(seen.editor().writes[0].1, "\u{feff}BETA\r\n");
    assert_eq!(seen.editor().asked, ["fs/write_text_file"]);
    // It does neither.
    let seen = edited(false, false, "beta", "never asked for");
    assert_eq!(seen.file("/w/a.txt"), "BETA");
    assert_eq!(seen.editor().asked, [""; 0]);
}

#[test]
fn what_the_person_typed_since_is_not_written_over() {
    let (mut sim, session) = start(
        fs(true, true),
        open_buffer("/w/a.txt", "beta"),
        world(&[("a.txt", "beta")]),
        scripted(&[read(), edit("beta", "BETA"), edit("beta", "BETA")]),
    );
    let type_in = |sim: &mut Sim, text: &str| {
        let editor = sim.editor.as_mut().expect("it was put there");
        editor.buffers.insert("/w/a.txt".into(), text.into());
    };
    // While the card of the first edit is open.
    sim.cards = vec![Card::Silence];
    sim.send(&json::prompt(1, &session, "go"));
    let card = |sim: &Sim, nth: usize| {
        let mut cards = sim
            .frames
            .iter()
            .filter(|frame| frame["method"] == "session/request_permission");
        cards.nth(nth).map(|card| card["id"].clone())
    };
    sim.until("the card", |sim| card(sim, 0).is_some());
    type_in(&mut sim, "beta, and more");
    let allow = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    sim.cards = vec![Card::Choose("allow_once")];
    let id = card(&sim, 0).expect("just seen");
    sim.send(&json::result(&id, allow));
    sim.answer(1);
    // The second edit finds another text than the one that was read: it is not even asked about.
    assert_eq!(
        json::tool_ends(&sim.frames, ""),
        ["completed", "failed", "failed"]
    );
    assert_eq!(card(&sim, 1), None);
    assert_eq!(editor_in(&sim).writes, []);
    assert_eq!(sim.world.file("/w/a.txt"), Some(&b"beta"[..]));
    sim.finish();
    sim.laws.check();
}

#[test]
fn files_that_are_no_plain_utf8_stay_on_the_disk() {
    let utf16: Vec<u8> = [0xFFu8, 0xFE].into_iter().chain(*b"b\0x\0").collect();
    for (before, after) in [
        (&utf16[..], &b"\xff\xfeB\0x\0"[..]),
        (b"caf\xe9 b", b"caf\xe9 B"),
    ] {
        let mut world = world(&[("a.txt", "")]);
        world.disk.put("/w/a.txt", Node::File(before.into()));
        let editor = open_buffer("/w/a.txt", "b in another encoding");
        let seen = turn(fs(true, true), editor, world, &[read(), edit("b", "B")]);
        assert_eq!(seen.ends, ["completed", "completed"]);
        assert_eq!(seen.sim.world.file("/w/a.txt"), Some(after));
        assert_eq!(seen.editor().asked, [""; 0]);
    }
}

#[test]
fn moves_and_deletions_are_the_disks_and_show_what_goes() {
    let calls = [
        (
            "move_file",
            json!({"source_path": "a.txt", "destination_path": "b.txt"}),
        ),
        ("delete_file", json!({"path": "b.txt"})),
    ];
    let seen = turn(
        fs(true, true),
        Editor::default(),
        world(&[("a.txt", "x")]),
        &calls,
    );
    assert_eq!(seen.ends, ["completed", "completed"]);
    assert_eq!(seen.sim.world.file("/w/a.txt"), None);
    assert_eq!(seen.sim.world.file("/w/b.txt"), None);
    assert_eq!(seen.editor().writes, []);
    let mut last = seen
        .sim
        .frames
        .iter()
        .filter_map(|frame| json::update(frame, ""));
    let last = last.rfind(|update| update["status"] == "completed");
    let diff = &last.expect("a call ended")["content"][0];
    assert_eq!(diff["type"], "diff");
    assert_eq!(
        (&diff["oldText"], &diff["newText"]),
        (&json!("x"), &json!(""))
    );
}

#[test]
fn an_edits_only_grant_edits_through_the_editor_and_runs_nothing() {
    let mut config = scripted(&[read(), edit("alpha", "ALPHA"), make()]);
    config.permission_mode = PermissionMode::parse("acceptEdits").expect("a mode");
    let mut capabilities = fs(true, true);
    capabilities["terminal"] = json!(true);
    let (mut sim, session) = start(
        capabilities,
        open_buffer("/w/a.txt", "alpha"),
        world(&[("a.txt", "alpha")]),
        config,
    );
    sim.cards = vec![Card::Choose("reject_once")];
    sim.ask(&json::prompt(1, &session, "go"));
    let cards = sim.frames.iter();
    let cards = cards.filter(|frame| frame["method"] == "session/request_permission");
    assert_eq!(cards.count(), 1, "only the command is asked about");
    assert_eq!(
        json::tool_ends(&sim.frames, ""),
        ["completed", "completed", "failed"]
    );
    assert_eq!(editor_in(&sim).writes.len(), 1);
    assert!(
        !editor_in(&sim)
            .asked
            .iter()
            .any(|method| method.starts_with("terminal/"))
    );
    assert_eq!(sim.world.ran, [""; 0]);
    sim.finish();
    sim.laws.check();
}

#[test]
fn losing_the_editor_refuses() {
    // With a card open, with a write open, with a terminal that is being made.
    for (capabilities, call, method) in [
        (
            fs(true, true),
            edit("alpha", "ALPHA"),
            "session/request_permission",
        ),
        (fs(true, true), edit("alpha", "ALPHA"), "fs/write_text_file"),
        (terminals(), make(), "terminal/create"),
    ] {
        for end in [Told::PeerFinished, Told::PeerGone] {
            let editor = always(open_buffer("/w/a.txt", "alpha"), method, Habit::Never);
            let config = scripted(&[read(), call.clone()]);
            let world = world(&[("a.txt", "alpha")]);
            let (mut sim, session) = start(capabilities.clone(), editor, world, config);
            if method == "session/request_permission" {
                sim.cards = vec![Card::Silence];
            }
            sim.send(&json::prompt(1, &session, "go"));
            sim.until(method, |sim| {
                sim.frames.iter().any(|frame| frame["method"] == method)
            });
            sim.tell(end.clone());
            sim.until("the end", |sim| sim.closed.is_some());
            assert_eq!(sim.world.file("/w/a.txt"), Some(&b"alpha"[..]), "{method}");
            assert_eq!(sim.world.ran, [""; 0], "{method}");
            assert_eq!(sim.world.running(), 0, "{method}");
            editor_in(&sim).check();
            if end == Told::PeerFinished {
                sim.laws.check();
            }
        }
    }
}

#[test]
fn a_command_runs_in_the_editors_terminal() {
    let seen = turn(terminals(), open_buffer("", ""), world(&[]), &[make()]);
    assert_eq!(seen.ends, ["completed"]);
    assert_eq!(
        seen.editor().asked,
        [
            "terminal/create",
            "terminal/wait_for_exit",
            "terminal/output",
            "terminal/release"
        ]
    );
    assert_eq!(seen.sim.world.ran, [""; 0], "it runs once");
    let terminal = &seen.editor().terminals["term_1"];
    assert_eq!((&*terminal.command, &*terminal.cwd), ("make", "/w"));
    assert!(terminal.shown, "its card shows it");
    seen.editor().check();
    // The end names no terminal, and takes the one that is shown away from nobody.
    let mut ends = seen
        .sim
        .frames
        .iter()
        .filter_map(|frame| json::update(frame, ""));
    let end = ends.rfind(|update| update["status"] == "completed");
    let end = end.expect("it ended");
    assert_eq!(end.get("content"), None);
    assert_eq!(end["rawOutput"]["exitCode"], 0);
}

#[test]
fn an_opened_terminal_is_not_repeated() {
    let methods = ["terminal/wait_for_exit", "terminal/output", "terminal/kill"];
    for method in methods {
        for habit in BAD {
            let mut editor = always(open_buffer("", ""), method, habit);
            if method == "terminal/kill" {
                editor.command_takes = None;
            }
            let call = ("bash", json!({"command": "make", "timeout_seconds": 5}));
            let seen = turn(terminals(), editor, world(&[]), &[call]);
            assert_eq!(seen.stop, "end_turn", "{method} {habit:?}");
            assert_eq!(seen.sim.world.ran, [""; 0], "{method} {habit:?}");
            assert_eq!(seen.editor().terminals.len(), 1, "{method} {habit:?}");
            seen.editor().check();
            assert!(seen.took < 7 * SECOND, "{method} {habit:?} {:?}", seen.took);
        }
    }
}

#[test]
fn a_command_runs_here_only_if_no_terminal_was_made() {
    for (habit, waited) in [
        (Habit::Fails, Duration::ZERO),
        (Habit::Malformed, Duration::ZERO),
        (Habit::Never, 10 * SECOND),
        // Made too late: it is given back.
        (Habit::Late(15 * SECOND), 10 * SECOND),
    ] {
        let editor = always(open_buffer("", ""), "terminal/create", habit);
        let seen = turn(terminals(), editor, world(&[]), &[make()]);
        assert_eq!(seen.ends, ["completed"], "{habit:?}");
        assert_eq!(seen.sim.world.ran, ["make"], "{habit:?}");
        assert!(seen.result().contains("built"), "{habit:?}");
        assert!(
            seen.took >= waited && seen.took < waited + 2 * SECOND,
            "{habit:?}"
        );
        seen.editor().check();
    }
    // Confined commands are not given away.
    let mut config = scripted(&[make()]);
    config.sandbox.enforce = true;
    let seen = turn_with(terminals(), open_buffer("", ""), world(&[]), config);
    assert_eq!(seen.sim.world.ran, ["make"]);
    assert_eq!(seen.editor().asked, [""; 0]);
    // What runs in the background is nobody's terminal.
    let call = (
        "bash",
        json!({"command": "make", "run_in_background": true}),
    );
    let seen = turn(terminals(), open_buffer("", ""), world(&[]), &[call]);
    assert_eq!(seen.sim.world.ran, ["make"]);
    assert_eq!(seen.editor().asked, [""; 0]);
}

#[test]
fn a_command_over_its_time_is_killed_read_and_released() {
    let mut editor = open_buffer("", "");
    editor.command_takes = None;
    let call = ("bash", json!({"command": "make", "timeout_seconds": 5}));
    let seen = turn(terminals(), editor, world(&[]), &[call]);
    assert_eq!(seen.ends, ["failed"]);
    assert_eq!(
        seen.editor().asked,
        [
            "terminal/create",
            "terminal/wait_for_exit",
            "terminal/kill",
            "terminal/output",
            "terminal/release"
        ]
    );
    seen.editor().check();
    assert!(seen.took >= 5 * SECOND && seen.took < 6 * SECOND);
}

#[test]
fn a_cancel_kills_and_releases_and_the_turn_ends_in_time() {
    for habit in [Habit::Good, Habit::Never, Habit::Fails] {
        let mut editor = open_buffer("", "");
        editor.command_takes = None;
        let editor = always(editor, "terminal/kill", habit);
        let config = scripted(&[make(), make()]);
        let (mut sim, session) = start(terminals(), editor, world(&[]), config);
        sim.send(&json::prompt(1, &session, "go"));
        sim.until("a wait", |sim| {
            editor_in(sim)
                .asked
                .iter()
                .any(|m| m == "terminal/wait_for_exit")
        });
        let from = sim.now;
        sim.send(&json::cancel(&session));
        let answer = sim.answer(1);
        assert_eq!(answer["result"]["stopReason"], "cancelled");
        assert!(sim.now.since(from) < 2 * SECOND, "{habit:?}");
        sim.run_for(10 * SECOND);
        assert_eq!(editor_in(&sim).terminals.len(), 1, "nothing more begins");
        editor_in(&sim).check();
        sim.finish();
        sim.laws.check();
    }
}

#[test]
fn a_terminal_that_is_made_after_the_cancel_or_the_close_is_given_back() {
    for close in [false, true] {
        let editor = always(
            open_buffer("", ""),
            "terminal/create",
            Habit::Late(5 * SECOND),
        );
        let (mut sim, session) = start(terminals(), editor, world(&[]), scripted(&[make()]));
        sim.send(&json::prompt(1, &session, "go"));
        sim.until("a create", |sim| !editor_in(sim).asked.is_empty());
        match close {
            true => sim.send(&json::request(
                2,
                "session/close",
                json!({"sessionId": session}),
            )),
            false => sim.send(&json::cancel(&session)),
        }
        assert_eq!(sim.answer(1)["result"]["stopReason"], "cancelled");
        assert_eq!(editor_in(&sim).broken_off.len(), 1);
        sim.run_for(20 * SECOND);
        assert_eq!(
            editor_in(&sim).asked,
            ["terminal/create", "terminal/release"]
        );
        editor_in(&sim).check();
        assert_eq!(sim.world.ran, [""; 0]);
        sim.finish();
        sim.laws.check();
    }
}

#[test]
fn what_the_editor_says_of_the_end_is_what_the_model_hears() {
    for (code, end) in [(0, "completed"), (3, "failed")] {
        let mut editor = open_buffer("", "");
        editor.code = code;
        let seen = turn(terminals(), editor, world(&[]), &[make()]);
        assert_eq!(seen.ends, [end]);
    }
}

// Questions.

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn which() -> (&'static str, Value) {
    let args = json!({"questions": [
        {"question": "Which?", "header": "Pick", "options": ["a", "b"]},
        {"question": "And why?"},
    ]});
    ("ask", args)
}

fn answered(form: Value) -> Editor {
    Editor {
        form: Some(form),
        ..Editor::default()
    }
}

#[test]
fn questions_are_one_form_where_the_client_takes_forms() {
    let form = json!({"action": "accept", "content": {"q1": "b", "q2": "it is better"}});
    let seen = turn(forms(), answered(form), world(&[]), &[which()]);
    assert_eq!(seen.ends, ["completed"]);
    assert_eq!(
        seen.result(),
        "Question: Which?\nAnswer: b\nQuestion: And why?\nAnswer: it is better"
    );
    let [form] = &seen.editor().forms[..] else {
        panic!("one form: {:?}", seen.editor().forms);
    };
    assert_eq!(form["mode"], "form");
    assert_eq!(form["requestedSchema"]["properties"]["q1"]["title"], "Pick");
    let cards = seen.sim.frames.iter();
    let cards = cards.filter(|frame| frame["method"] == "session/request_permission");
    assert_eq!(cards.count(), 0);
}

#[test]
fn an_unanswered_form_is_a_result_and_the_turn_goes_on() {
    let unanswered = "The user did not answer";
    let not_asked = "could not be put to the user";
    let content = |q1: Value| json!({"action": "accept", "content": {"q1": q1}});
    for (editor, said) in [
        (answered(json!({"action": "decline"})), unanswered),
        (answered(json!({"action": "cancel"})), unanswered),
        (answered(json!({"action": "approve"})), unanswered),
        (answered(json!({"action": "accept"})), unanswered),
        (answered(content(json!("c"))), not_asked),
        (answered(content(json!(["a"]))), not_asked),
        (answered(json!({"action": 5})), not_asked),
        (
            always(Editor::default(), "elicitation/create", Habit::Fails),
            not_asked,
        ),
        (
            always(Editor::default(), "elicitation/create", Habit::Malformed),
            not_asked,
        ),
    ] {
        let shown = format!("{:?} {:?}", editor.form, editor.always);
        let seen = turn(forms(), editor, world(&[]), &[which()]);
        assert_eq!(seen.stop, "end_turn", "{shown}");
        assert_eq!(seen.ends, ["completed"], "{shown}");
        assert_eq!(
            seen.result().matches(said).count(),
            2,
            "{shown}: {}",
            seen.result()
        );
    }
}

#[test]
fn a_client_without_forms_is_asked_by_cards_and_one_with_pages_only_too() {
    for capabilities in [
        json!({}),
        json!({"elicitation": {}}),
        json!({"elicitation": {"url": {}}}),
        json!({"elicitation": {"form": null}}),
    ] {
        let seen = turn(capabilities, Editor::default(), world(&[]), &[which()]);
        assert_eq!(seen.editor().asked, [""; 0]);
        let mut cards = seen.sim.frames.iter();
        let card = cards.find(|frame| frame["method"] == "session/request_permission");
        let card = card.expect("a card");
        assert_eq!(card["params"]["toolCall"]["title"], "Which?");
        assert!(seen.result().contains("Answer: a"), "{}", seen.result());
    }
}

#[test]
fn a_cancel_withdraws_the_form() {
    let editor = always(
        Editor::default(),
        "elicitation/create",
        Habit::Late(5 * SECOND),
    );
    let (mut sim, session) = start(forms(), editor, world(&[]), scripted(&[which(), make()]));
    sim.send(&json::prompt(1, &session, "go"));
    sim.until("a form", |sim| !editor_in(sim).forms.is_empty());
    sim.send(&json::cancel(&session));
    assert_eq!(sim.answer(1)["result"]["stopReason"], "cancelled");
    assert_eq!(editor_in(&sim).broken_off.len(), 1);
    // The late answer reaches nobody, and the next turn is its own.
    sim.run_for(10 * SECOND);
    assert_eq!(json::tool_ends(&sim.frames, ""), ["failed"]);
    assert_eq!(sim.world.ran, [""; 0]);
    sim.finish();
    sim.laws.check();
}

// Generated schedules.

#[derive(Clone, Debug)]
struct Plan {
    /// Capabilities, a bit each.
    capabilities: u16,
    habits: Vec<Habit>,
    calls: Vec<usize>,
    command_takes: Option<Duration>,
    /// When what happens from outside happens.
    at: Duration,
    outside: Outside,
    slow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    Nothing,
    Cancel,
    CancelRequest,
    Close,
    Finish,
    Gone,
}

fn plan() -> impl Strategy<Value = Plan> {
    let ms = Duration::from_millis;
    let habit = prop_oneof![
        6 => Just(Habit::Good),
        2 => (0..20_000_u64).prop_map(move |late| Habit::Late(ms(late))),
        1 => Just(Habit::Twice),
        1 => Just(Habit::Malformed),
        1 => Just(Habit::Fails),
        1 => Just(Habit::OtherId),
        1 => Just(Habit::Never),
    ];
    let outside = prop::sample::select(vec![
        Outside::Nothing,
        Outside::Cancel,
        Outside::CancelRequest,
        Outside::Close,
        Outside::Finish,
        Outside::Gone,
    ]);
    let takes = prop::option::of((0..4_000_u64).prop_map(ms));
    (
        0..1024_u16,
        prop::collection::vec(habit, 0..12),
        prop::collection::vec(0..7_usize, 1..5),
        takes,
        (0..20_000_u64).prop_map(ms),
        outside,
        any::<bool>(),
    )
        .prop_map(
            |(capabilities, habits, calls, command_takes, at, outside, slow)| Plan {
                capabilities,
                habits,
                calls,
                command_takes,
                at,
                outside,
                slow,
            },
        )
}

impl Plan {
    fn has(&self, bit: u16) -> bool {
        self.capabilities & (1 << bit) != 0
    }

    fn capabilities(&self) -> Value {
        let marker = |bit| match self.has(bit) {
            true => json!({}),
            false => Value::Null,
        };
        json!({
            "fs": {"readTextFile": self.has(0), "writeTextFile": self.has(1)},
            "terminal": self.has(2),
            "elicitation": {"form": marker(3), "url": marker(4)},
            "session": {
                "configOptions": {"boolean": marker(5)},
                "notices": marker(6),
                "compaction": marker(7),
            },
            "subagents": marker(8),
            "plan": marker(9),
        })
    }

    fn config(&self) -> Config {
        let calls: Vec<_> = self
            .calls
            .iter()
            .map(|nth| match nth {
                0 => read(),
                1 => edit("beta", "BETA"),
                2 => ("write_file", json!({"path": "a.txt", "content": "new"})),
                3 => ("write_file", json!({"path": "n.txt", "content": "new"})),
                4 => make(),
                5 => ("ask", json!({"question": "Which?", "options": ["a", "b"]})),
                _ => (
                    "todo_write",
                    json!({"todos": [{"content": "x", "status": "pending"}]}),
                ),
            })
            .collect();
        scripted(&calls)
    }

    /// The capability that a frame needs and this client has not.
    fn ungated(&self, frame: &Value) -> Option<String> {
        let method = frame["method"].as_str()?;
        let kind = frame["params"]["update"]["sessionUpdate"].as_str();
        let bit = match (method, kind) {
            ("fs/read_text_file", _) => 0,
            ("fs/write_text_file", _) => 1,
            ("elicitation/create", _) => match frame["params"]["mode"].as_str() {
                Some("form") => 3,
                _ => 4,
            },
            ("elicitation/complete", _) => 4,
            (_, Some("notice")) => 6,
            (_, Some("compaction_update" | "compaction_summary_chunk")) => 7,
            (_, Some("subagent_update" | "session_message" | "session_message_chunk")) => 8,
            (_, Some("plan_update" | "plan_removed")) => 9,
            _ if method.starts_with("terminal/") => 2,
            _ => return None,
        };
        (!self.has(bit)).then(|| frame.to_string())
    }
}

fn play(plan: &Plan) -> Result<(), TestCaseError> {
    let editor = Editor {
        habits: plan.habits.clone().into(),
        buffers: [("/w/a.txt".to_string(), "beta".to_string())].into(),
        command_takes: plan.command_takes,
        output: "x\n".into(),
        form: Some(json!({"action": "accept", "content": {"q1": "a"}})),
        ..Editor::default()
    };
    let world = world(&[("a.txt", "beta")]);
    let (mut sim, session) = start(plan.capabilities(), editor, world, plan.config());
    sim.reads = !plan.slow;
    sim.send(&json::prompt(1, &session, "go"));
    sim.run_for(plan.at);
    match plan.outside {
        Outside::Nothing => {}
        Outside::Cancel => sim.send(&json::cancel(&session)),
        Outside::CancelRequest => {
            sim.send(&json::notification(
                "$/cancel_request",
                json!({"requestId": 1}),
            ));
        }
        Outside::Close => {
            sim.send(&json::request(
                2,
                "session/close",
                json!({"sessionId": session}),
            ));
        }
        Outside::Finish => sim.tell(Told::PeerFinished),
        Outside::Gone => sim.tell(Told::PeerGone),
    }
    if plan.slow && sim.closed.is_none() {
        sim.run_for(SECOND);
        sim.read_again();
    }
    // Longer than the longest of everything, a command's own limit included.
    sim.run_for(SECOND * 600);
    let gone = plan.outside == Outside::Gone;
    // A person may take as long as they like over a form: the one wait without a limit.
    let mut asked = editor_in(&sim).asked.iter();
    let last = asked.rfind(|method| *method != "terminal/release");
    let form = last.is_some_and(|method| method == "elicitation/create");
    if form && sim.closed.is_none() && !sim.laws.unanswered().is_empty() {
        sim.send(&json::cancel(&session));
        sim.run_for(SECOND * 10);
    }
    if !gone {
        prop_assert!(sim.laws.unanswered().is_empty(), "a turn did not end");
    }
    if sim.closed.is_none() {
        sim.finish();
    }
    if !gone {
        sim.laws.check();
    }
    prop_assert_eq!(sim.world.running(), 0);
    for frame in &sim.frames {
        prop_assert_eq!(plan.ungated(frame), None);
    }
    let editor = sim.editor.as_ref().expect("it was put there");
    if gone {
        // Nothing can be given back to nobody.
        prop_assert_eq!(&editor.wrong, &Vec::<String>::new());
        prop_assert!(editor.terminals.values().all(|it| it.released <= 1));
    } else {
        editor.check();
        // Every call ended, once.
        let ends = json::tool_ends(&sim.frames, "");
        let ended = |end: &String| end == "completed" || end == "failed";
        prop_assert!(ends.iter().all(ended), "{:?}", ends);
        let updates = sim
            .frames
            .iter()
            .filter_map(|frame| json::update(frame, ""));
        let finals =
            updates.filter(|u| matches!(u["status"].as_str(), Some("completed" | "failed")));
        prop_assert_eq!(finals.count(), ends.len());
    }
    // Who writes through the editor leaves the disk alone, refused or not.
    if plan.has(1) {
        prop_assert_eq!(sim.world.file("/w/a.txt"), Some(&b"beta"[..]));
        prop_assert_eq!(sim.world.file("/w/n.txt"), None);
    }
    // A command runs here or there.
    let there = editor
        .terminals
        .values()
        .filter(|it| it.told && it.shown)
        .count();
    let calls = plan.calls.iter().filter(|call| **call == 4).count();
    prop_assert!(there + sim.world.ran.len() <= calls);
    Ok(())
}

proptest! {
    #![proptest_config(crate::machine::cases(256))]

    #[test]
    fn whatever_an_editor_does_everything_ends_once_and_nothing_is_left_with_it(plan in plan()) {
        play(&plan)?;
    }
}
