//! The command tool on a real system: its input, its output, its limits, its end.

use std::time::Duration;

use reasonix_tests::json::json;
use reasonix_tests::provider::{Answer, say, tool};

use crate::cases::{Case, Expect, Expect::*, case, check};

fn run(command: &str) -> Vec<Answer> {
    vec![tool("c", "bash", json!({"command": command})), say("k")]
}

fn limited(command: &str, seconds: u64) -> Vec<Answer> {
    let arguments = json!({"command": command, "timeout_seconds": seconds});
    vec![tool("c", "bash", arguments), say("k")]
}

fn row(name: &'static str, command: &str, more: Vec<Expect>) -> Case {
    case(
        name,
        run(command),
        [vec![Stop("end_turn"), Requests(2)], more].concat(),
    )
}

/// The most memory a process ever held, in bytes.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[test]
fn every_end_of_a_command_is_told() {
    let quick = Within(Duration::from_secs(3));
    check(vec![
        row(
            "input is closed: cat",
            "cat",
            vec![Ends(&["completed"]), quick.clone()],
        ),
        row(
            "input is closed: read",
            "read x; echo got",
            vec![Told(1, "got"), quick.clone()],
        ),
        row(
            "a silent failure",
            "false",
            vec![Ends(&["failed"]), Told(1, "exit code 1 after")],
        ),
        row(
            "a silent success",
            "true",
            vec![Ends(&["completed"]), Told(1, "exit code 0 after")],
        ),
        row(
            "an exit code",
            "exit 3",
            vec![Ends(&["failed"]), Told(1, "exit code 3 after")],
        ),
        row(
            "a signal",
            "kill -9 $$",
            vec![
                Ends(&["failed"]),
                Told(1, "killed by signal 9 (SIGKILL) after"),
            ],
        ),
        row(
            "no such command",
            "no-such-command-here",
            vec![Ends(&["failed"]), Told(1, "127")],
        ),
        case(
            "a time limit, with what was printed so far",
            limited("echo begun; sleep 20; echo end", 1),
            vec![
                Stop("end_turn"),
                Ends(&["failed"]),
                Told(1, "begun"),
                Told(1, "timed out after 1.0 s"),
                NotTold(1, "end\n"),
                Within(Duration::from_secs(5)),
            ],
        ),
        row(
            "output that is no text",
            r"printf '\377\376\000abc'",
            vec![Told(1, "abc")],
        ),
        row(
            "the folder is the session's",
            "pwd",
            vec![Ends(&["completed"]), Told(1, "/work")],
        ),
        Case {
            drive: |run| {
                run.turn("go");
                std::fs::remove_dir_all(run.place.work()).expect("it is gone");
                run.turn("again");
            },
            ..case(
                "a working folder that is gone fails the command, not the agent",
                vec![
                    say("k"),
                    tool("b", "bash", json!({"command": "pwd"})),
                    say("k"),
                ],
                vec![
                    Stop("end_turn"),
                    Requests(3),
                    Ends(&["failed"]),
                    Told(2, "does not exist (any more)"),
                ],
            )
        },
    ]);
}

#[test]
fn output_without_bound_is_cut_and_costs_no_memory() {
    let bounded = |name, answers| Case {
        drive: |run| {
            run.turn("go");
            let peak = peak(run.agent.pid());
            assert!(peak < 300 << 20, "{peak} bytes");
            let longest = run.provider.requests()[1]["messages"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|message| message["role"] == "tool")
                .map(|message| message["content"].to_string().len())
                .max();
            assert!(
                longest.is_some_and(|length| length < 400 << 10),
                "{longest:?}"
            );
        },
        ..case(name, answers, vec![Stop("end_turn"), Requests(2)])
    };
    check(vec![
        bounded("output for ever", limited("yes", 1)),
        bounded("a lot of zeros", run("head -c 300000000 /dev/zero")),
        bounded(
            "wide characters",
            run("for i in $(seq 20000); do printf '漢漢漢漢漢漢漢漢漢漢'; done"),
        ),
        bounded(
            "wide characters, one off",
            run("printf x; for i in $(seq 20000); do printf '漢漢漢漢漢漢漢漢漢漢'; done"),
        ),
        bounded(
            "wide characters, two off",
            run("printf xx; for i in $(seq 20000); do printf '漢漢漢漢漢漢漢漢漢漢'; done"),
        ),
    ]);
}
