//! What is asked on a terminal, with a person at it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::{PROGRAMS, Place, Watch, arg};

/// Runs `command` on a terminal of its own; each time the first text appears (after the last
/// one), the second is typed. Gives back the exit code and all that was shown.
fn talk(mut command: Command, steps: &[(&str, &str)]) -> (Option<i32>, String) {
    let master =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&master).expect("ours");
    unlockpt(&master).expect("ours");
    let name = ptsname(&master, Vec::new()).expect("its name");
    let end = || {
        let fd = rustix::fs::open(
            &name,
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        fd.expect("its other end")
    };
    command.stdin(end()).stdout(end()).stderr(end());
    let mut child = command.env("TERM", "xterm").spawn().expect("it starts");
    drop(command);
    let watch = Watch::over(child.id());
    let mut terminal = File::from(master);
    let (mut shown, mut from) = (Vec::new(), 0);
    let mut steps = steps.iter();
    let mut step = steps.next();
    let mut piece = [0; 4096];
    loop {
        match terminal.read(&mut piece) {
            // The other end is closed.
            Ok(0) | Err(_) => break,
            Ok(count) => shown.extend_from_slice(&piece[..count]),
        }
        let text = String::from_utf8_lossy(&shown[from..]).into_owned();
        if let Some((seen, typed)) = step
            && text.contains(seen)
        {
            from = shown.len();
            terminal.write_all(typed.as_bytes()).expect("it listens");
            step = steps.next();
        }
    }
    drop(watch);
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(step.is_none(), "{step:?} was not asked: {shown}");
    (crate::wait(&mut child).code(), shown)
}

/// Two edits and a command.
const SCRIPT: &str = r#"{"tool":"write_file","args":{"path":"one","content":"1\n"}}
{"finish":"tool_calls"}
{"tool":"write_file","args":{"path":"two","content":"2\n"}}
{"finish":"tool_calls"}
{"tool":"bash","args":{"command":"echo 3 >three"}}
{"finish":"tool_calls"}
{"text":"done"}
{"finish":"stop"}
"#;

/// What a question ends with.
const ASKED: &str = "[!]";

/// What is heard when something typed was no answer.
const BELL: &str = "\u{7}";

/// Which of the three files are there after these keys, and the exit code.
#[track_caller]
fn check(keys: &[&str], files: [bool; 3], code: i32) {
    let steps: Vec<_> = keys.iter().map(|key| (ASKED, *key)).collect();
    check_steps(&steps, files, code);
}

#[track_caller]
fn check_steps(steps: &[(&str, &str)], files: [bool; 3], code: i32) {
    let cards = steps.iter().filter(|(seen, _)| *seen == ASKED).count();
    for program in PROGRAMS {
        let place = Place::new();
        let script = place.write("script.jsonl", SCRIPT);
        let model = format!("script:{}", arg(&script));
        let command = place.command(program, &["run", "--model", &model, "do it"]);
        let (ended, shown) = talk(command, steps);
        let there = ["one", "two", "three"].map(|name| place.path("work").join(name).exists());
        assert_eq!((there, ended), (files, Some(code)), "{shown}");
        assert_eq!(shown.matches(ASKED).count(), cards, "{shown}");
        assert!(shown.contains("\u{1b}["), "colours: {shown}");
    }
}

#[test]
fn each_step_is_asked_for() {
    check(&["a", "a", "a"], [true, true, true], 0);
}

#[test]
fn what_is_denied_does_not_happen_and_the_turn_goes_on() {
    check(&["d", "a", "d"], [false, true, false], 3);
}

#[test]
fn always_covers_what_its_name_says() {
    check(&["s", "a"], [true, true, true], 0);
}

#[test]
fn one_key_stops_the_asking() {
    check(&["!"], [true, true, true], 0);
    check(&["a", "A"], [true, true, true], 0);
}

#[test]
fn keys_that_mean_nothing_answer_nothing() {
    let steps = [
        (ASKED, "y"),
        (BELL, " "),
        (BELL, "d"),
        (ASKED, "a"),
        (ASKED, "a"),
    ];
    check_steps(&steps, [false, true, true], 3);
}

#[test]
fn no_letter_of_an_arrow_or_of_what_is_pasted_allows_anything() {
    for typed in [
        "\u{1b}[A",
        "\u{1b}OA",
        "always",
        "\u{1b}[200~a\u{1b}[201~",
        "á",
    ] {
        let steps = [(ASKED, typed), (BELL, "d"), (ASKED, "a"), (ASKED, "a")];
        check_steps(&steps, [false, true, true], 3);
    }
}

#[test]
fn the_end_of_input_denies() {
    check(&["\u{4}", "a", "a"], [false, true, true], 3);
}

#[test]
fn the_demo_asks_before_it_changes_and_before_it_runs() {
    for program in PROGRAMS {
        let place = Place::new();
        let (code, shown) = talk(place.command(program, &["demo"]), &[(ASKED, "a"); 2]);
        assert_eq!(code, Some(0), "{shown}");
        let (code, shown) = talk(place.command(program, &["demo"]), &[(ASKED, "d"); 2]);
        assert_eq!(code, Some(3), "{shown}");
        assert!(shown.contains("is not changed"), "{shown}");
    }
}

#[test]
fn to_ask_no_more_is_for_one_run() {
    for program in PROGRAMS {
        let place = Place::new();
        let script = place.write("script.jsonl", SCRIPT);
        let model = format!("script:{}", arg(&script));
        let run = ["run", "--model", &model, "do it"];
        let (code, shown) = talk(place.command(program, &run), &[(ASKED, "!")]);
        assert_eq!(code, Some(0), "{shown}");
        let id = shown.split("--session ").nth(1).expect("how to go on");
        assert!(shown.contains("To go on: reasonix"), "{shown}");
        let id = id.split(' ').next().expect("an id");
        for name in ["one", "two", "three"] {
            std::fs::remove_file(place.path("work").join(name)).expect("written");
        }
        // It asks again: the first step of the three is denied.
        let on = ["run", "--model", &model, "--session", id, "do it"];
        let steps = [(ASKED, "d"), (ASKED, "a"), (ASKED, "a")];
        let (code, shown) = talk(place.command(program, &on), &steps);
        assert_eq!(code, Some(3), "{shown}");
        assert!(
            shown.contains(&format!("Going on with {id} “do it”")),
            "{shown}"
        );
    }
}

#[test]
fn a_session_is_deleted_only_after_a_yes() {
    for program in PROGRAMS {
        let place = Place::new();
        let script = place.write("script.jsonl", "{\"text\":\"a\"}\n{\"finish\":\"stop\"}\n");
        let model = format!("script:{}", arg(&script));
        let ended = place.run(program, &["run", "--json", "--model", &model, "to go"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let id = ended.out.split('"').nth(7).expect("the session's id");
        let asked = "Delete this session for good? [y/N]";
        for (answer, gone) in [
            ("\n", false),
            ("n\n", false),
            ("\u{4}", false),
            ("y\n", true),
        ] {
            let command = place.command(program, &["sessions", "delete", &id[..8]]);
            let (code, shown) = talk(command, &[(asked, answer)]);
            assert_eq!(code, Some(0), "{shown}");
            assert!(shown.contains("to go"), "it says what goes: {shown}");
            let folder = place.path(&format!("home/.reasonix/sessions/{id}"));
            assert_eq!(folder.exists(), !gone, "{answer:?}: {shown}");
        }
    }
}

#[test]
fn a_transcript_has_colours_on_a_terminal_unless_they_are_not_wanted() {
    let place = Place::new();
    let script = place.write("script.jsonl", SCRIPT);
    let model = format!("script:{}", arg(&script));
    let args = [
        "run",
        "--permission-mode",
        "auto",
        "--model",
        &model,
        "do it",
    ];
    assert_eq!(place.run(PROGRAMS[0], &args).code, Some(0));
    for command in [&["sessions", "show", "last"][..], &["sessions", "list"]] {
        let (code, shown) = talk(place.command(PROGRAMS[0], command), &[]);
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("\u{1b}["), "{shown}");
        let mut plain = place.command(PROGRAMS[0], command);
        plain.env("NO_COLOR", "1");
        let (_, shown) = talk(plain, &[]);
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert!(shown.contains("do it"), "{shown}");
    }
}

#[test]
fn a_key_is_not_shown_while_it_is_typed() {
    let place = Place::new();
    let command = place.command(PROGRAMS[0], &["setup", "--no-test"]);
    let steps = [
        ("Provider", "mine\n"),
        ("Address", "nonsense\n"),
        ("begins with", "https://api.example/v1\n"),
        ("Model", "m\n"),
        ("Key for MINE_API_KEY", "sk-0123456789\n"),
    ];
    let (code, shown) = talk(command, &steps);
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("sk-0123456789"), "{shown}");
    let env = place.read("home/.reasonix/.env");
    assert_eq!(env.as_deref(), Some("MINE_API_KEY=sk-0123456789\n"));
}
