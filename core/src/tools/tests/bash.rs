use super::host::World;
use crate::call::*;
use crate::error::{IoFault, IoKind};
use crate::limits::Limits;
use crate::permission::Access;
use crate::time::{Duration, Instant, Timer};
use crate::tools::*;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

fn exit(code: i32) -> Exit {
    Exit {
        code: Some(code),
        signal: None,
        dropped: 0,
        left: false,
    }
}

fn out(bytes: &[u8]) -> News<'_> {
    News::Bytes {
        stream: Stream::Out,
        bytes,
    }
}

/// A whole command that gives `output` and ends like `end`.
#[track_caller]
fn run(output: &[u8], end: Exit) -> ToolOutcome {
    let mut world = World::new();
    let mut run = world.start("bash", r#"{"command":"x"}"#);
    world.until_process(&mut run);
    world.wait(1500);
    if !output.is_empty() {
        world.news(&mut run, out(output));
    }
    world.news(&mut run, News::Done(Outcome::Exited(end)));
    world.drive(&mut run)
}

#[test]
fn a_blank_command_is_refused_and_reaches_nobody() {
    let mut world = World::new();
    for arguments in [
        "{}",
        r#"{"command":""}"#,
        r#"{"command":" \n\t "}"#,
        r#"{"command":5}"#,
    ] {
        let outcome = world.run("bash", arguments);
        assert!(
            !outcome.ok && outcome.text.contains("`command`"),
            "{}",
            outcome.text
        );
    }
    assert!(world.calls.is_empty() && world.proposals.is_empty());
}

#[test]
fn a_command_gets_no_input_and_runs_where_it_was_told_to() {
    let mut world = World::new();
    for (workdir, cwd) in [
        ("src", "/w/src"),
        ("/w/src", "/w/src"),
        ("", "/w"),
        (".", "/w"),
    ] {
        let arguments = format!(r#"{{"command":"cat","workdir":"{workdir}"}}"#);
        let mut run = world.start("bash", &arguments);
        let process = world.until_process(&mut run);
        assert!(!process.stdin);
        assert_eq!(process.cwd, cwd);
        assert_eq!(process.errors, Errors::Merged);
        assert!(matches!(process.keep, Keep::HeadAndTail { .. }));
        assert_eq!(process.program, Program::Shell("cat".into()));
    }
}

#[test]
fn a_command_outside_the_roots_says_so_to_the_gate() {
    let mut world = World::new();
    for (workdir, expected) in [("src", true), ("/out", false), ("..", false)] {
        let arguments = format!(r#"{{"command":"cat","workdir":"{workdir}"}}"#);
        let mut run = world.start("bash", &arguments);
        world.until_process(&mut run);
        let proposal = world.proposals.pop().expect("a proposal");
        let Access::Execute { command, inside } = proposal.action.access else {
            panic!()
        };
        assert_eq!((command.as_str(), inside), ("cat", expected), "{workdir}");
    }
}

#[test]
fn a_working_directory_that_is_gone_fails_with_the_reason() {
    let mut world = World::new();
    world.dirs.remove("/w");
    let outcome = world.run("bash", r#"{"command":"pwd"}"#);
    assert!(
        !outcome.ok && outcome.text.contains("/w does not exist"),
        "{}",
        outcome.text
    );
}

#[test]
fn every_end_has_a_text_with_the_exit_code_or_signal_and_the_time() {
    #[track_caller]
    fn check(output: &str, end: Exit, ok: bool, text: &str) {
        let outcome = run(output.as_bytes(), end);
        assert_eq!((outcome.ok, outcome.text.as_str()), (ok, text));
        assert_eq!(outcome.ran.as_deref(), Some("x"));
    }
    check("hi\n", exit(0), true, "hi\n[exit code 0 after 1.5 s]");
    check("", exit(0), true, "(no output)\n[exit code 0 after 1.5 s]");
    check("", exit(1), false, "(no output)\n[exit code 1 after 1.5 s]");
    check("e", exit(127), false, "e\n[exit code 127 after 1.5 s]");
    let killed = Exit {
        code: None,
        signal: Some(9),
        dropped: 0,
        left: false,
    };
    check(
        "",
        killed,
        false,
        "(no output)\n[killed by signal 9 (SIGKILL) after 1.5 s]",
    );
    let raw = run(b"", exit(3)).raw_output.expect("data");
    assert_eq!(
        raw,
        r#"{"exitCode":3,"signal":null,"timedOut":false,"durationMs":1500}"#
    );
}

#[test]
fn a_program_that_cannot_be_started_is_a_failed_call() {
    let mut world = World::new();
    let mut run = world.start("bash", r#"{"command":"x"}"#);
    world.until_process(&mut run);
    world.news(
        &mut run,
        News::Failed(IoFault::new(IoKind::NotFound, "no shell")),
    );
    let outcome = world.drive(&mut run);
    assert!(!outcome.ok && outcome.text.contains("no shell"));
    assert_eq!(outcome.ran, None);
}

#[test]
fn binary_output_keeps_what_can_be_read() {
    let outcome = run(b"\xFF\xFE\0abc\x1b[31mred", exit(0));
    assert!(
        outcome.ok && outcome.text.contains("abc\x1b[31mred"),
        "{}",
        outcome.text
    );
    assert!(!outcome.text.contains('\0'));
}

#[test]
fn output_is_bounded_whole_characters_and_says_how_much_is_missing() {
    for ascii in 0..3 {
        let limits = Limits::default();
        let text = format!("{}{}", "a".repeat(ascii), "漢".repeat(200_000));
        let bytes = text.as_bytes();
        let head = &bytes[..limits.output_head];
        let tail = &bytes[bytes.len() - limits.output_tail..];
        let mut end = exit(0);
        end.dropped = (bytes.len() - head.len() - tail.len()) as u64;
        let outcome = run(&[head, tail].concat(), end);
        assert!(outcome.text.len() <= limits.max_tool_result);
        assert!(
            outcome
                .text
                .starts_with(if ascii == 0 { "漢" } else { "a" })
        );
        assert!(outcome.text.contains("bytes left out …]\n漢"));
        assert!(!outcome.text.contains('\u{FFFD}'));
    }
    // A runtime that sends more than it was asked for does not fill memory.
    let outcome = run(&[b'x'; 1 << 20], exit(0));
    assert!(outcome.text.len() < 64 << 10 && outcome.text.contains("left out"));
}

#[test]
fn a_command_over_its_time_is_aborted_and_reported_as_failed_with_its_output() {
    let mut world = World::new();
    let arguments = r#"{"command":"sleep 20; echo end","timeout_seconds":0.5}"#;
    let mut run = world.start("bash", arguments);
    world.until_process(&mut run);
    world.news(&mut run, out(b"so far\n"));
    assert!(matches!(world.step(&mut run), Step::Progress(_)));
    let deadline = run.deadline().expect("a limit");
    assert_eq!(
        deadline.at,
        Instant::since_start(Duration::from_millis(500))
    );
    assert_eq!(deadline.why, Timer::ToolLimit);
    world.wait(499);
    assert_eq!(world.step(&mut run), Step::Wait);
    world.wait(1);
    run.handle_timeout(world.now);
    assert_eq!(world.step(&mut run), Step::Abort);
    assert_eq!(run.deadline(), None, "a served deadline moves");
    assert_eq!(world.step(&mut run), Step::Wait);
    for aborted in [true, false] {
        let mut world = World::new();
        let mut run = world.start("bash", arguments);
        world.until_process(&mut run);
        world.news(&mut run, out(b"so far\n"));
        world.wait(600);
        while world.step(&mut run) != Step::Abort {}
        world.news(
            &mut run,
            match aborted {
                true => News::Failed(IoFault::new(IoKind::Aborted, "aborted")),
                false => News::Done(Outcome::Exited(exit(0))),
            },
        );
        let outcome = world.drive(&mut run);
        assert!(!outcome.ok && outcome.ran.is_none());
        assert!(
            outcome.text.starts_with("so far\n[timed out after 500 ms"),
            "{}",
            outcome.text
        );
    }
}

#[test]
fn time_limits_are_bounded_or_refused_by_name() {
    let mut world = World::new();
    for bad in ["0", "-1", "\"5\"", "true"] {
        let arguments = format!(r#"{{"command":"x","timeout_seconds":{bad}}}"#);
        let outcome = world.run("bash", &arguments);
        assert!(
            !outcome.ok && outcome.text.contains("`timeout_seconds` must be"),
            "{bad}"
        );
    }
    for (given, seconds) in [("", 120), (r#","timeout_seconds":1e12"#, 3600)] {
        let mut run = world.start("bash", &format!(r#"{{"command":"x"{given}}}"#));
        world.until_process(&mut run);
        let limit = world.now.plus(Duration::from_secs(seconds));
        assert_eq!(run.deadline().map(|deadline| deadline.at), Some(limit));
    }
}

#[test]
fn live_output_comes_at_most_ten_times_a_second_and_nothing_is_forgotten() {
    let mut world = World::new();
    let mut run = world.start("bash", r#"{"command":"x"}"#);
    world.until_process(&mut run);
    let mut shown: Vec<(u64, String)> = Vec::new();
    for n in 0..100 {
        world.wait(10);
        world.news(&mut run, out(format!("{n}\n").as_bytes()));
        while let Step::Progress(text) = world.step(&mut run) {
            shown.push((world.now.elapsed().as_millis() as u64, text));
        }
    }
    assert!((9..=11).contains(&shown.len()), "{}", shown.len());
    assert!(shown.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 100));
    world.news(&mut run, out(b"last\n"));
    assert_eq!(world.step(&mut run), Step::Wait);
    let due = run.deadline().expect("live output is due");
    assert_eq!(due.why, Timer::LiveOutput);
    world.now = due.at;
    let Step::Progress(text) = world.step(&mut run) else {
        panic!()
    };
    assert!(text.ends_with("last\n"));
    assert_ne!(
        run.deadline().map(|deadline| deadline.why),
        Some(Timer::LiveOutput)
    );
}

#[test]
fn live_output_is_bounded() {
    let mut world = World::new();
    let mut run = world.start("bash", r#"{"command":"x"}"#);
    world.until_process(&mut run);
    world.news(&mut run, out("漢".repeat(10_000).as_bytes()));
    let Step::Progress(text) = world.step(&mut run) else {
        panic!()
    };
    assert!(text.len() <= world.ws.limits.max_tool_update && !text.contains('\u{FFFD}'));
}

#[test]
fn a_cancelled_command_is_aborted_and_ends_when_it_has_settled() {
    let mut world = World::new();
    let mut run = world.start("bash", r#"{"command":"x"}"#);
    world.until_process(&mut run);
    run.cancel();
    assert_eq!(world.step(&mut run), Step::Abort);
    assert_eq!(run.deadline(), None);
    world.news(&mut run, out(b"more"));
    assert_eq!(world.step(&mut run), Step::Wait);
    world.news(
        &mut run,
        News::Failed(IoFault::new(IoKind::Aborted, "aborted")),
    );
    let Step::Done(outcome) = world.step(&mut run) else {
        panic!()
    };
    assert!(!outcome.ok && outcome.text.contains("Cancelled"));
}

/// Starts a background command and gives its job.
#[track_caller]
fn background(world: &mut World) -> JobId {
    let mut run = world.start("bash", r#"{"command":"x","run_in_background":true}"#);
    let process = world.until_process(&mut run);
    assert_eq!(process.keep, Keep::All);
    let Step::Detach(job) = world.step(&mut run) else {
        panic!()
    };
    assert!(!run.has_open_call());
    let Step::Done(outcome) = world.step(&mut run) else {
        panic!()
    };
    assert!(
        outcome.ok && outcome.text.contains(&job.to_string()),
        "{}",
        outcome.text
    );
    job
}

#[test]
fn a_background_command_gives_its_output_once() {
    let mut world = World::new();
    let job = background(&mut world);
    let arguments = format!(r#"{{"job_id":"{job}"}}"#);
    assert!(world.state.job_room(job) > 0);
    world.state.handle_job_news(world.now, job, out(b"one\n"));
    let first = world.run("bash_output", &arguments).text;
    assert!(
        first.contains("job-1 runs since") && first.ends_with("one"),
        "{first}"
    );
    assert!(
        world
            .run("bash_output", &arguments)
            .text
            .contains("(no new output)")
    );
    world.state.handle_job_news(world.now, job, out(b"two\n"));
    world
        .state
        .handle_job_news(world.now, job, News::Done(Outcome::Exited(exit(3))));
    let last = world.run("bash_output", &arguments).text;
    assert!(
        last.contains("exit code 3") && last.ends_with("two"),
        "{last}"
    );
    assert_eq!(world.state.job_room(job), 0);
    assert_eq!(world.state.running_jobs().count(), 0);
}

#[test]
fn wait_ends_with_the_jobs_or_with_its_time() {
    let mut world = World::new();
    assert!(
        world
            .run("wait", "")
            .text
            .contains("No background command runs")
    );
    let jobs = [background(&mut world), background(&mut world)];
    let begin = |world: &mut World| {
        let mut run = world.start("wait", r#"{"timeout_seconds":5}"#);
        assert!(matches!(world.step(&mut run), Step::Permit(_)));
        run.permitted();
        assert_eq!(world.step(&mut run), Step::Wait);
        run
    };
    let mut run = begin(&mut world);
    world
        .state
        .handle_job_news(world.now, jobs[0], News::Done(Outcome::Exited(exit(0))));
    assert_eq!(world.step(&mut run), Step::Wait);
    world.wait(5000);
    let outcome = world.drive(&mut run);
    assert!(
        outcome.ok && outcome.text.contains("the time was up"),
        "{}",
        outcome.text
    );
    let mut run = begin(&mut world);
    world
        .state
        .handle_job_news(world.now, jobs[1], News::Done(Outcome::Exited(exit(0))));
    let outcome = world.drive(&mut run);
    assert!(
        outcome.ok && outcome.text.contains("job-2 is over"),
        "{}",
        outcome.text
    );
}

#[test]
fn kill_shell_aborts_the_job_and_says_when_it_is_over() {
    let mut world = World::new();
    let job = background(&mut world);
    let mut run = world.start("kill_shell", r#"{"job_id":"1"}"#);
    assert!(matches!(world.step(&mut run), Step::Permit(_)));
    run.permitted();
    assert_eq!(world.step(&mut run), Step::AbortJob(job));
    assert_eq!(world.step(&mut run), Step::Wait);
    world.state.handle_job_news(
        world.now,
        job,
        News::Failed(IoFault::new(IoKind::Aborted, "aborted")),
    );
    let outcome = world.drive(&mut run);
    assert!(
        outcome.ok && outcome.text.contains("is over, aborted"),
        "{}",
        outcome.text
    );
}

#[test]
fn background_commands_are_bounded_in_number_and_output() {
    let limits = Limits {
        max_jobs: 2,
        ..Limits::default()
    };
    let mut world = World::with(limits);
    let jobs = [background(&mut world), background(&mut world)];
    let refused = world.run("bash", r#"{"command":"x","run_in_background":true}"#);
    assert!(!refused.ok && refused.text.contains("2 background commands run already"));
    for _ in 0..1000 {
        world
            .state
            .handle_job_news(world.now, jobs[0], out(&[b'x'; 1024]));
    }
    let text = world.run("bash_output", r#"{"job_id":"job-1"}"#).text;
    assert!(text.len() < 64 << 10 && text.contains("left out"));
    for job in jobs {
        world
            .state
            .handle_job_news(world.now, job, News::Done(Outcome::Exited(exit(0))));
    }
    for _ in 0..10 {
        let job = background(&mut world);
        world
            .state
            .handle_job_news(world.now, job, News::Done(Outcome::Exited(exit(0))));
    }
    assert!(world.state.describe_jobs(world.now).len() <= 4);
}
