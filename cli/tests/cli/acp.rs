//! `acp`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use reasonix_tests::laws::Laws;

use crate::{PROGRAMS, Place, arg, finish, say};

const HELLO: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\
    \"params\":{\"protocolVersion\":1,\"clientCapabilities\":{}}}\n";

#[test]
fn an_editor_gets_frames_and_nothing_else() {
    for program in PROGRAMS {
        let place = Place::new();
        let log = place.path("log");
        let mut command = place.command(program, &["acp", "-vv", "--log-file", arg(&log)]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        say(&mut child, HELLO);
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut answer = String::new();
        out.read_line(&mut answer).expect("an answer");
        let mut laws = Laws::default();
        laws.sent(HELLO.as_bytes());
        laws.heard(answer.as_bytes());
        laws.check();
        assert!(
            answer.starts_with("{\"jsonrpc\":\"2.0\",\"id\":1,"),
            "{answer}"
        );
        assert!(answer.contains("\"protocolVersion\":1"), "{answer}");
        assert!(answer.contains("\"name\":\"reasonix\""), "{answer}");
        drop(child.stdin.take());
        let mut rest = String::new();
        for line in out.lines() {
            rest.push_str(&line.expect("text"));
        }
        assert_eq!(rest, "", "nothing was asked");
        let ended = finish(child);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
        assert!(log.exists());
    }
}

#[test]
fn a_broken_configuration_does_not_keep_it_from_answering() {
    for program in PROGRAMS {
        let place = Place::new();
        std::fs::create_dir(place.path("home/.reasonix")).expect("home");
        place.write("home/.reasonix/config.toml", "default_model =\n");
        let args = ["acp", "--model", "some/thing"];
        let mut command = place.command(program, &args);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        say(&mut child, HELLO);
        let ended = finish(child);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.out.contains("\"protocolVersion\":1"), "{}", ended.out);
        let ended = place.run(program, &["run", "x"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains("config.toml"), "{}", ended.err);
    }
}

#[test]
fn setup_can_be_appended_to_the_command_line() {
    for program in PROGRAMS {
        let place = Place::new();
        let args = [
            "acp",
            "--preset",
            "light",
            "setup",
            "--provider",
            "local",
            "--model",
            "tiny",
            "--no-test",
        ];
        let ended = place.run(program, &args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let config = place.read("home/.reasonix/config.toml").expect("written");
        assert!(
            config.contains("default_model = \"local/tiny\""),
            "{config}"
        );
    }
}
