//! Programs that really run: what is told of them, and who is left.

use super::*;
use reasonix_core::call::{Errors, Keep, Process, Program};
use reasonix_core::error::IoKind;
use rustix::event::{PollFd, Timespec, poll};

pub fn shell(line: &str) -> Process {
    Process {
        program: Program::Shell(line.to_owned()),
        cwd: "/".into(),
        env: Vec::new(),
        stdin: false,
        errors: Errors::Merged,
        keep: Keep::All,
        sandbox: None,
    }
}

fn begin(process: &Process) -> Running {
    spawn(process, "sh", &["HIDDEN_KEY".into()], None, None).expect("it starts")
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    out: Vec<u8>,
    err: Vec<u8>,
    fed: usize,
    exit: Option<Exit>,
}

impl Seen {
    fn take(&mut self, told: Told) {
        match told {
            Told::Bytes(Stream::Out, bytes) => self.out.extend(bytes),
            Told::Bytes(Stream::Err, bytes) => self.err.extend(bytes),
            Told::Fed(count) => self.fed += count,
            Told::Done(Outcome::Exited(exit)) => {
                assert_eq!(self.exit, None, "it ends once");
                self.exit = Some(exit);
            }
            other => panic!("not news of a process: {other:?}"),
        }
    }
}

/// Drives it as a runtime would, till `done`.
fn drive(
    running: &mut Running,
    seen: &mut Seen,
    room: usize,
    done: impl Fn(&Running, &Seen) -> bool,
) {
    let limit = Instant::now() + Duration::from_secs(20);
    loop {
        running.step(Instant::now(), room, &mut |told| seen.take(told));
        if done(running, seen) {
            return;
        }
        assert!(Instant::now() < limit, "it does not end: {seen:?}");
        let wait = running.deadline().unwrap_or(limit) - Instant::now().min(limit);
        let wait = Timespec::try_from(wait).expect("short");
        let mut fds: Vec<_> = running
            .wants(room)
            .map(|(_, fd, flags)| PollFd::from_borrowed_fd(fd, flags))
            .collect();
        poll(&mut fds, Some(&wait)).expect("poll works");
    }
}

/// Its standard output, whole.
pub fn drive_to_end(running: Running) -> Vec<u8> {
    finish(running).out
}

fn finish(mut running: Running) -> Seen {
    let mut seen = Seen::default();
    drive(&mut running, &mut seen, usize::MAX, |it, _| it.over());
    seen
}

fn code(seen: &Seen) -> (Option<i32>, Option<i32>) {
    let exit = seen.exit.expect("it ended");
    (exit.code, exit.signal)
}

#[test]
fn every_end_is_told_silent_or_not() {
    for (line, code_and_signal, out) in [
        ("true", (Some(0), None), ""),
        ("false", (Some(1), None), ""),
        ("exit 3", (Some(3), None), ""),
        ("kill -9 $$", (None, Some(9)), ""),
        (
            "echo out; echo err >&2; exit 2",
            (Some(2), None),
            "out\nerr\n",
        ),
        ("cat; read x; echo got", (Some(0), None), "got\n"),
        ("printf '\\377\\000abc'", (Some(0), None), "\u{fffd}\0abc"),
        ("echo \"[$HIDDEN_KEY]\"", (Some(0), None), "[]\n"),
    ] {
        let seen = finish(begin(&shell(line)));
        assert_eq!(code(&seen), code_and_signal, "{line}");
        assert_eq!(String::from_utf8_lossy(&seen.out), out, "{line}");
    }
    let alone = finish(begin(&shell("sleep 0.01 & wait")));
    assert!(alone.exit.is_some_and(|exit| !exit.left));
    let gone = finish(begin(&shell("surely-no-such-program")));
    assert_eq!(code(&gone), (Some(127), None));
}

#[test]
fn what_cannot_start_says_why() {
    let argv = Process {
        program: Program::Argv(vec!["surely-no-such-program".into()]),
        ..shell("")
    };
    let nowhere = Process {
        cwd: "/surely/not/here".into(),
        ..shell("true")
    };
    for (process, word) in [(argv, "program"), (nowhere, "working directory")] {
        let fault = spawn(&process, "sh", &[], None, None).expect_err("it cannot start");
        assert_eq!(fault.kind, IoKind::NotFound);
        assert!(fault.message.contains(word), "{}", fault.message);
    }
}

#[test]
fn outputs_can_be_apart_and_input_fed() {
    let process = Process {
        stdin: true,
        errors: Errors::Apart,
        ..shell("cat; echo over >&2")
    };
    let mut running = begin(&process);
    let big = vec![b'x'; 300_000];
    running.feed(&big);
    running.feed_end();
    let seen = finish(running);
    assert_eq!((seen.out.len(), seen.fed), (big.len(), big.len()));
    assert_eq!(
        (seen.err.as_slice(), code(&seen).0),
        (b"over\n".as_slice(), Some(0))
    );
}

#[test]
fn with_no_room_the_process_waits_and_nothing_is_lost() {
    let mut running = begin(&shell("head -c 200000 /dev/zero"));
    let mut seen = Seen::default();
    let mut most = 0;
    for _ in 0..20 {
        running.step(Instant::now(), 0, &mut |told| seen.take(told));
        assert_eq!(seen, Seen::default());
    }
    while !running.over() {
        let before = seen.out.len();
        drive(&mut running, &mut seen, 1000, |it, seen| {
            it.over() || seen.out.len() > before
        });
        most = most.max(seen.out.len() - before);
    }
    assert!(most <= 1000, "{most} bytes at once");
    assert_eq!((seen.out.len(), code(&seen).0), (200_000, Some(0)));
}

#[test]
fn an_end_that_has_no_room_to_be_told_is_waited_for_without_a_deadline() {
    let mut running = begin(&shell("echo out"));
    let mut seen = Seen::default();
    let end = Instant::now() + Duration::from_secs(20);
    // Time enough for its outputs to be closed; nobody reads.
    while running.exit.is_none() || running.deadline().is_some() {
        assert!(Instant::now() < end, "it is due again and again");
        running.step(Instant::now(), 0, &mut |told| seen.take(told));
        std::thread::yield_now();
    }
    assert_eq!(seen, Seen::default());
    let seen = finish(running);
    assert_eq!(
        (seen.out.as_slice(), code(&seen).0),
        (b"out\n".as_slice(), Some(0))
    );
}

#[test]
fn endless_output_is_kept_within_bounds() {
    let keep = Keep::HeadAndTail { head: 10, tail: 4 };
    let process = Process {
        keep,
        ..shell("printf 0123456789; head -c 3000000 /dev/zero; printf tail")
    };
    let seen = finish(begin(&process));
    assert_eq!(seen.out, b"0123456789tail");
    assert_eq!(seen.exit.map(|exit| exit.dropped), Some(3_000_000));
    let few = Process {
        keep,
        ..shell("printf 0123456789ab")
    };
    let seen = finish(begin(&few));
    assert_eq!(seen.out, b"0123456789ab");
    assert_eq!(seen.exit.map(|exit| exit.dropped), Some(0));
    // One that never ends is still ended, and the end of its output is there.
    let process = Process {
        keep,
        ..shell("yes")
    };
    let mut running = begin(&process);
    let mut seen = Seen::default();
    drive(&mut running, &mut seen, 100, |_, seen| seen.out.len() == 10);
    running.abort(Instant::now());
    drive(&mut running, &mut seen, 100, |it, _| it.over());
    assert_eq!((seen.out.len(), code(&seen).1), (14, Some(15)));
}

#[test]
fn a_group_is_ended_even_if_it_ignores_the_polite_signal() {
    let line = "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo on; \
                while :; do sleep 0.05; done";
    let mut running = begin(&shell(line));
    let mut seen = Seen::default();
    drive(&mut running, &mut seen, 100, |_, seen| seen.out == b"on\n");
    let before = Instant::now();
    running.abort(before);
    drive(&mut running, &mut seen, 100, |it, _| it.over());
    assert!(before.elapsed() < Duration::from_secs(2));
    assert_eq!(code(&seen).1, Some(9));
    gone(running.group());
}

#[test]
fn who_stays_behind_holds_up_nobody_and_is_ended_at_last() {
    let before = Instant::now();
    let mut running = begin(&shell("sleep 1000 & echo done"));
    let mut seen = Seen::default();
    drive(&mut running, &mut seen, 100, |it, _| it.over());
    assert!(before.elapsed() < Duration::from_secs(5));
    assert_eq!(
        (seen.out.as_slice(), code(&seen).0),
        (b"done\n".as_slice(), Some(0))
    );
    assert!(seen.exit.is_some_and(|exit| exit.left));
    let group = running.group();
    assert!(group.exists(), "it was not asked to end");
    end_all(vec![running], &[], None);
    gone(group);
    // One that prints for ever in the background holds up nobody either.
    let endless = begin(&shell("yes & sleep 0.2; echo done"));
    let group = endless.group();
    let process = finish(endless);
    assert_eq!(code(&process).0, Some(0));
    end_all(Vec::new(), &[group], None);
    gone(group);
}

#[test]
fn what_is_dropped_is_killed() {
    let running = begin(&shell("sleep 1000"));
    let group = running.group();
    assert!(group.exists());
    drop(running);
    gone(group);
    let stubborn = begin(&shell(
        "trap '' TERM; echo on; while :; do sleep 0.05; done",
    ));
    let group = stubborn.group();
    end_all(vec![stubborn], &[], None);
    gone(group);
}

fn gone(group: Group) {
    let limit = Instant::now() + Duration::from_secs(5);
    while group.exists() {
        assert!(Instant::now() < limit, "somebody is left");
        std::thread::yield_now(); // who was killed is reaped by init, in its own time
    }
}
