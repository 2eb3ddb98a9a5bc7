//! What the programs start dies with them, also when they are killed: real processes, found by what
//! is on their command lines.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};

/// Seconds to sleep that no other process on this system sleeps: what is looked for.
fn mark() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("7{}.{next:03}", std::process::id())
}

/// The processes whose command line holds this. One that is dead and not reaped has none.
fn with(mark: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").expect("a system with /proc");
    let lines = all.flatten().filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(mark)).collect()
}

#[track_caller]
fn till(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < end, "never: {what}");
        // Waits for processes, not for an order of events.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An agent that has begun to run these commands, one after the other, in one turn.
fn run(program: &str, place: &Place, commands: &[String], background: bool) -> Running {
    let mut script = String::new();
    for command in commands {
        let arguments = json!({"command": command, "run_in_background": background});
        let tool = json!({"tool": "bash", "args": arguments});
        let finish = json!({"finish": "tool_calls"});
        script.push_str(&format!("{tool}\n{finish}\n"));
    }
    let script = place.script(&format!("{script}{}\n", json!({"text": "ran"})));
    let model = format!("script:{}", script.display());
    let mut agent = Running::start(program, place, &["--model", &model]);
    let session = agent.open(json!({}), &place.work());
    agent.send(&json::prompt(2, &session, "go"));
    agent.until("a command runs", |frame| {
        json::update(frame, "").is_some_and(|update| update["status"] == "in_progress")
    });
    agent
}

fn sleepers(mark: &str) -> usize {
    let lines = with(mark);
    lines.iter().filter(|it| it.starts_with("sleep")).count()
}

/// Commands with a `$M` where the mark goes, and how many sleep then. The first ends before they
/// do.
const COMMANDS: [(&str, usize); 5] = [
    ("(sleep $M &) ; sleep $M & echo", 2),
    ("sleep $M; echo", 1),
    ("sleep $M | sleep $M", 2),
    ("sleep $M & sleep $M & wait", 2),
    ("trap '' TERM; (trap '' TERM; sleep $M; sleep $M); echo", 1),
];

/// Begins commands, does something to their agent, and looks that nobody is left.
#[track_caller]
fn nobody_is_left(act: impl Fn(&mut Running)) {
    let all: &[_] = &COMMANDS;
    for program in PROGRAMS {
        for (commands, background) in [(&all[..2], false), (&all[4..], false), (all, true)] {
            let name = format!("{program}: {commands:?}, background: {background}");
            let (place, mark) = (Place::new(), mark());
            let lines: Vec<_> = commands
                .iter()
                .map(|it| it.0.replace("$M", &mark))
                .collect();
            let mut agent = run(program, &place, &lines, background);
            if background {
                agent.answer(2);
            } else if commands.len() > 1 {
                // The next one.
                agent.until("a command ends", |frame| {
                    json::update(frame, "").is_some_and(|update| update["status"] == "completed")
                });
                agent.until("a command runs", |frame| {
                    json::update(frame, "").is_some_and(|update| update["status"] == "in_progress")
                });
            }
            let count: usize = commands.iter().map(|it| it.1).sum();
            till(&name, || sleepers(&mark) == count);
            act(&mut agent);
            till(&name, || with(&mark).is_empty());
        }
    }
}

#[test]
fn a_killed_agent_leaves_no_process() {
    nobody_is_left(Running::kill);
}

#[test]
fn an_agent_that_ends_leaves_no_process() {
    nobody_is_left(Running::close_input);
}

#[test]
fn a_session_that_closes_takes_with_it_what_its_commands_left() {
    for program in PROGRAMS {
        let (place, mark) = (Place::new(), mark());
        let command = COMMANDS[0].0.replace("$M", &mark);
        let mut agent = run(program, &place, &[command], false);
        agent.answer(2);
        till("they sleep", || sleepers(&mark) == 2);
        let session = agent.answer(9002)["result"]["sessionId"].clone();
        let closed = agent.ask(&json::request(
            3,
            "session/close",
            json!({"sessionId": session}),
        ));
        assert_eq!(closed["result"], json!({}), "{program}");
        till(program, || with(&mark).is_empty());
    }
}

/// What starts programs that leave the group of whoever started them, and how many sleep then: one
/// that listens to nobody, one whose parent is gone, and one in a session of its own beneath another.
const LEAVERS: (&str, usize) = (
    "setsid sh -c \"trap '' TERM; sleep $M; sleep $M\" & (setsid sleep $M &); \
     setsid sh -c 'setsid sleep $M & wait' & sleep 0",
    3,
);

#[test]
fn who_leaves_its_group_ends_with_the_agent_also_when_that_is_killed() {
    let acts: [fn(&mut Running); 2] = [Running::kill, Running::close_input];
    for program in PROGRAMS {
        for background in [false, true] {
            for act in acts {
                let (place, mark) = (Place::new(), mark());
                let command = LEAVERS.0.replace("$M", &mark);
                let mut agent = run(program, &place, &[command], background);
                agent.answer(2);
                till(program, || sleepers(&mark) == LEAVERS.1);
                act(&mut agent);
                till(program, || with(&mark).is_empty());
            }
        }
    }
}

#[test]
fn who_left_the_group_of_a_command_ends_with_a_cancel_of_it() {
    for program in PROGRAMS {
        let (place, mark) = (Place::new(), mark());
        let command = format!("{}; sleep {mark}; echo", LEAVERS.0.replace("$M", &mark));
        let mut agent = run(program, &place, &[command], false);
        till(program, || sleepers(&mark) == LEAVERS.1 + 1);
        let session = agent.answer(9002)["result"]["sessionId"].clone();
        agent.send(&json::cancel(session.as_str().expect("a session")));
        assert_eq!(agent.answer(2)["result"]["stopReason"], "cancelled");
        till(program, || with(&mark).is_empty());
        let (ended, _) = agent.finish();
        assert_eq!(ended.code, Some(0), "{program}");
    }
}

#[test]
fn who_left_the_group_of_an_mcp_server_ends_with_its_session_and_with_the_agent() {
    let close: fn(&mut Running, &Value) = |agent, session| {
        let params = json!({"sessionId": session});
        let closed = agent.ask(&json::request(3, "session/close", params));
        assert_eq!(closed["result"], json!({}));
    };
    let acts = [
        close,
        |agent: &mut Running, _: &Value| agent.kill(),
        |agent: &mut Running, _: &Value| agent.close_input(),
    ];
    for program in PROGRAMS {
        for act in acts {
            let (place, mark) = (Place::new(), mark());
            let model = format!("script:{}", place.script("{\"text\":\"x\"}\n").display());
            let mut agent = Running::start(program, &place, &["--model", &model]);
            agent.ask(&json::initialize(1));
            let line = format!("{}; cat > /dev/null", LEAVERS.0.replace("$M", &mark));
            let server = json!({"name": "s", "command": "sh", "args": ["-c", line], "env": []});
            let cwd = place.work().display().to_string();
            let params = json!({"cwd": cwd, "mcpServers": [server]});
            let opened = agent.ask(&json::request(2, "session/new", params));
            till(program, || sleepers(&mark) == LEAVERS.1);
            act(&mut agent, &opened["result"]["sessionId"]);
            till(program, || with(&mark).is_empty());
        }
    }
}

#[test]
fn a_guard_ends_with_its_agent_and_comes_only_with_commands() {
    for program in PROGRAMS {
        let (place, mark) = (Place::new(), mark());
        let children = |agent: &Running| {
            let path = format!("/proc/{0}/task/{0}/children", agent.pid());
            let text = std::fs::read_to_string(path).expect("it runs");
            text.split_whitespace()
                .map(String::from)
                .collect::<Vec<_>>()
        };
        let model = format!("script:{}", place.script("{\"text\":\"x\"}\n").display());
        let mut idle = Running::start(program, &place, &["--model", &model]);
        idle.open(json!({}), &place.work());
        assert!(children(&idle).is_empty(), "{program}");
        let mut agent = run(program, &place, &[format!("echo {mark}")], false);
        let done: Value = agent.answer(2);
        assert_eq!(done["result"]["stopReason"], "end_turn", "{program}");
        let guard = children(&agent);
        assert_eq!(guard.len(), 1, "{program}");
        let gone = || !std::path::Path::new(&format!("/proc/{}", guard[0])).exists();
        let (ended, laws) = agent.finish();
        laws.check();
        assert_eq!(ended.code, Some(0), "{program}");
        assert!(gone(), "{program}: it is reaped before the agent ends");
    }
}
