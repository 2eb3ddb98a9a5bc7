//! `run`.

use std::io::{BufRead as _, BufReader};

use crate::{Ended, PROGRAMS, Place, arg, finish, signal};

/// Reads a file, writes a file, says so.
const WRITES: &str = r#"{"text":"I write it.\n"}
{"tool":"write_file","args":{"path":"new.txt","content":"hello\n"},"id":"w"}
{"finish":"tool_calls"}
{"text":"k"}
{"finish":"stop"}
"#;

fn run(place: &Place, program: &str, script: &str, args: &[&str]) -> Ended {
    let script = place.write("script.jsonl", script);
    let model = format!("script:{}", arg(&script));
    let mut all = vec!["run", "--model", &model];
    all.extend(args);
    all.push("do it");
    place.run(program, &all)
}

#[test]
fn with_nobody_to_ask_a_write_is_denied() {
    for program in PROGRAMS {
        let place = Place::new();
        let ended = run(&place, program, WRITES, &[]);
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert_eq!(place.read("work/new.txt"), None);
        assert!(ended.err.contains("Denied:"), "{}", ended.err);
        assert!(ended.err.contains("--permission-mode"), "{}", ended.err);
        assert!(
            ended.out.ends_with("k\n"),
            "the turn went on: {}",
            ended.out
        );
    }
}

#[test]
fn with_nobody_to_ask_a_flag_allows_a_write() {
    for program in PROGRAMS {
        let place = Place::new();
        let ended = run(
            &place,
            program,
            WRITES,
            &["--permission-mode", "acceptEdits"],
        );
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(place.read("work/new.txt").as_deref(), Some("hello\n"));
        assert!(ended.out.contains("+hello\n"), "the diff: {}", ended.out);
        assert_eq!(ended.err, "");
    }
}

#[test]
fn quiet_prints_the_answer_alone() {
    let place = Place::new();
    let args = ["--quiet", "--permission-mode", "acceptEdits"];
    let ended = run(&place, PROGRAMS[0], WRITES, &args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.out, "I write it.\nk\n");
}

#[test]
fn json_lines_have_the_promised_shape() {
    let place = Place::new();
    let mut both = Vec::new();
    for program in PROGRAMS {
        let ended = run(&place, program, WRITES, &["--json"]);
        assert_eq!(ended.code, Some(3), "{ended:?}");
        let out = ended.out.replace(arg(&place.path("work")), "<work>");
        let id = out.split('"').nth(7).expect("the session's id").to_owned();
        both.push(out.replace(&id, "<session>"));
    }
    assert_eq!(both[0], both[1], "both programs print the same");
    // What stands in an update is the protocol's affair.
    let lines = both[0].lines().map(|line| {
        let update = r#"{"type":"update","update":{"sessionUpdate":""#;
        match line
            .strip_prefix(update)
            .and_then(|rest| rest.split_once('"'))
        {
            Some((kind, _)) => format!("{update}{kind}\"…"),
            None => line.to_owned(),
        }
    });
    insta::assert_snapshot!("json", lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn each_end_has_its_exit_code() {
    for (script, args, code) in [
        ("{\"text\":\"a\"}\n{\"finish\":\"stop\"}\n", &[][..], 0),
        ("{\"finish\":\"content_filter\"}\n", &[], 3),
        (
            "{\"text\":\"a\"}\n{\"finish\":\"length\"}\n{\"text\":\"b\"}\n{\"finish\":\"length\"}\n",
            &[],
            4,
        ),
        (WRITES, &["--max-steps", "1"], 4),
        ("{\"error\":{\"status\":400}}\n", &[], 1),
    ] {
        for program in PROGRAMS {
            let place = Place::new();
            let mut all = vec!["--json"];
            all.extend(args);
            let ended = run(&place, program, script, &all);
            assert_eq!(ended.code, Some(code), "{script}: {ended:?}");
            let last = ended.out.lines().last().expect("a last line");
            assert!(last.contains(&format!("\"exit\":{code}")), "{last}");
        }
    }
}

#[test]
fn without_a_model_it_says_what_to_do() {
    for program in PROGRAMS {
        let place = Place::new();
        let ended = place.run(program, &["run", "do it"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.err.contains("reasonix setup"), "{}", ended.err);
    }
}

#[test]
fn a_prompt_can_come_from_standard_input() {
    let place = Place::new();
    let script = place.write(
        "script.jsonl",
        "{\"when\":{\"prompt_contains\":\"second line\"}}\n{\"text\":\"read\"}\n{\"finish\":\"stop\"}\n",
    );
    let model = format!("script:{}", arg(&script));
    for program in PROGRAMS {
        let mut command = place.command(program, &["run", "--model", &model, "-"]);
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("it starts");
        crate::say(&mut child, "first\nsecond line\n");
        let ended = finish(child);
        assert_eq!((ended.code, ended.out.as_str()), (Some(0), "read\n"));
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_cancels_the_turn() {
    let hangs = "{\"text\":\"working\"}\n{\"hang\":true}\n";
    for program in PROGRAMS {
        let place = Place::new();
        let script = place.write("script.jsonl", hangs);
        let model = format!("script:{}", arg(&script));
        let args = ["run", "--json", "--model", &model, "do it"];
        let mut child = place.command(program, &args).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("working") {
            line.clear();
            assert_ne!(
                out.read_line(&mut line).expect("lines"),
                0,
                "it ended early"
            );
        }
        signal(child.id(), "INT");
        let lines: Vec<_> = out.lines().map(|line| line.expect("text")).collect();
        let status = crate::wait(&mut child);
        assert_eq!(status.code(), Some(130));
        let last = lines.last().expect("a last line");
        let end = r#"{"type":"end","stopReason":"cancelled","denied":0,"exit":130,"sessionId":""#;
        assert!(last.starts_with(end), "{last}");
    }
}
