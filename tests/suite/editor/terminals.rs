//! Commands in the editor's terminals: where each runs, once, and that every terminal is given back.

use super::*;

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
fn a_load_shows_what_was_in_a_terminal_and_names_none() {
    let config = scripted(&[make()]);
    let (mut sim, session) = start(terminals(), open_buffer("", ""), world(&[]), config);
    sim.ask(&json::prompt(1, &session, "go"));
    let live = sim.frames.len();
    let shown = sim
        .frames
        .iter()
        .any(|frame| frame.to_string().contains("\"terminal\""));
    assert!(shown, "it is shown while it lives");
    let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
    let loaded = sim.ask(&json::request(2, "session/load", params));
    assert!(loaded.get("result").is_some(), "{loaded}");
    let updates = sim.frames[live..]
        .iter()
        .filter_map(|frame| json::update(frame, ""));
    let contents: String = updates
        .map(|update| update["content"].to_string())
        .collect();
    assert!(contents.contains("from the terminal"), "{contents}");
    assert!(
        !contents.contains("term_1") && !contents.contains("\"terminal\""),
        "{contents}"
    );
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
