//! `demo`.

use std::fs;
use std::path::Path;
use std::process::Command;

use reasonix_tests::laws::Laws;

use crate::{Ended, PROGRAMS, Place};

#[track_caller]
fn check(ended: &Ended, place: &Place) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Not what the program says counts, but what is on the disk.
    let kept = ended
        .out
        .lines()
        .find_map(|line| line.strip_prefix("The folder is kept: "))
        .expect("the folder is named");
    let kept = Path::new(kept);
    assert!(kept.starts_with(place.path("tmp")), "{}", kept.display());
    let program = fs::read_to_string(kept.join("celsius.sh")).expect("the program");
    assert!(program.contains("* 9 / 5 + 32"), "{program}");
    let checked = Command::new("sh")
        .arg(kept.join("check.sh"))
        .output()
        .expect("sh");
    assert!(checked.status.success(), "{checked:?}");
    assert!(ended.out.contains("-echo $((celsius * 9 / 5 + 23))\n"));
    assert!(ended.out.contains("+echo $((celsius * 9 / 5 + 32))\n"));
    assert!(!ended.out.contains('\u{1b}'), "colours in a pipe");
}

#[test]
fn the_demo_really_fixes_the_program() {
    for program in PROGRAMS {
        let place = Place::new();
        let ended = place.run(program, &["demo", "--yes", "--keep"]);
        check(&ended, &place);
        assert!(!ended.out.contains("\"jsonrpc\""));
        let home = fs::read_dir(place.path("home")).expect("home").count();
        assert_eq!(home, 0, "it leaves nothing in a fresh home");
    }
}

#[test]
fn the_demo_leaves_no_folder_unless_asked() {
    let place = Place::new();
    let ended = place.run(PROGRAMS[0], &["demo", "--yes"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let left = fs::read_dir(place.path("tmp")).expect("tmp").count();
    assert_eq!(left, 0);
}

#[test]
fn the_demo_shows_every_frame_both_ways() {
    for program in PROGRAMS {
        let place = Place::new();
        let ended = place.run(program, &["demo", "--yes", "--keep", "--frames"]);
        check(&ended, &place);
        let frames = |arrow: &str| -> Vec<&str> {
            let lines = ended.out.lines();
            lines.filter_map(|line| line.strip_prefix(arrow)).collect()
        };
        let sent = frames("client → agent ");
        let got = frames("agent → client ");
        // In the order in which they went, each way.
        let mut laws = Laws::default();
        for line in ended.out.lines() {
            if let Some(frame) = line.strip_prefix("client → agent ") {
                laws.sent(frame.as_bytes());
            } else if let Some(frame) = line.strip_prefix("agent → client ") {
                assert!(laws.heard(format!("{frame}\n").as_bytes()).is_some());
            }
        }
        laws.check();
        for method in ["initialize", "session/new", "session/prompt"] {
            let has = |f: &&str| f.contains(&format!("\"method\":\"{method}\""));
            assert_eq!(sent.iter().filter(|f| has(f)).count(), 1, "{method}");
        }
        for part in [
            "\"method\":\"session/request_permission\"",
            "\"stopReason\":\"end_turn\"",
            "\"sessionUpdate\":\"tool_call\"",
        ] {
            assert!(got.iter().any(|f| f.contains(part)), "{part}");
        }
    }
}

#[test]
fn the_demo_with_nobody_to_ask_starts_nothing() {
    let place = Place::new();
    let ended = place.run(PROGRAMS[0], &["demo"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("--yes"), "{}", ended.err);
    assert_eq!(fs::read_dir(place.path("tmp")).expect("tmp").count(), 0);
}

#[cfg(unix)]
#[test]
fn the_demo_works_where_there_is_no_bash() {
    let place = Place::new();
    let bin = place.path("bin");
    fs::create_dir(&bin).expect("bin");
    for name in ["sh", "dirname"] {
        let found = Command::new("sh")
            .args(["-c", &format!("command -v {name}")])
            .output()
            .expect("sh");
        let path = String::from_utf8(found.stdout).expect("text");
        std::os::unix::fs::symlink(path.trim(), bin.join(name)).expect("link");
    }
    for program in PROGRAMS {
        let mut command = place.command(program, &["demo", "--yes", "--keep"]);
        let child = command.env("PATH", &bin).spawn().expect("it starts");
        check(&crate::finish(child), &place);
    }
}
