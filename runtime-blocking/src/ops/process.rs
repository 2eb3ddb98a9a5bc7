//! One running program: its process group, its pipes, what of its output is kept, and its end.
//! Never waits: a driver waits on [`Running::wants`] and [`Running::deadline`], then calls
//! [`Running::step`]. Knows nothing of why the program runs.

mod guard;
mod output;

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use reasonix_core::call::{Errors, Exit, Outcome, Process, Program, Stream};
use reasonix_core::error::{IoFault, IoKind};
use rustix::event::PollFlags;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::Told;
use super::confine;
pub use guard::Guard;
use output::Output;

/// From the polite signal to the one that cannot be ignored.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// How long the outputs may stay open when the program itself has ended: others in its group may
/// hold them for ever.
const LINGER: Duration = Duration::from_millis(100);

/// A program that runs, or ran and is not settled.
#[derive(Debug)]
pub struct Running {
    child: Child,
    group: Group,
    exited: OwnedFd,
    exit: Option<Exit>,
    outputs: Vec<Output>,
    stdin: Option<ChildStdin>,
    feed: VecDeque<u8>,
    feed_ends: bool,
    close_at: Option<Instant>,
    kill_at: Option<Instant>,
    settled: bool,
}

/// A descriptor of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// Readable when it has ended.
    Exit,
    /// Its standard input.
    In,
    /// Its standard output.
    Out,
    /// Its standard error, if that is apart.
    Err,
}

/// A process group that we made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(Pid);

impl Group {
    /// Whether a process is left in it.
    pub fn exists(self) -> bool {
        test_kill_process_group(self.0) != Err(rustix::io::Errno::SRCH)
    }

    /// Asks whoever is left in it to end.
    pub fn ask_to_end(self) {
        self.signal(Signal::TERM);
    }

    /// Kills whoever is left in it, at once.
    pub fn kill(self) {
        self.signal(Signal::KILL);
    }

    fn signal(self, signal: Signal) {
        // An error means that nobody is left to hear it.
        let _ = kill_process_group(self.0, signal);
    }
}

/// Starts a program. `shell` runs command lines; `hidden` are variables of our own environment
/// that it must not see; the group is known to `guard` before anything of it runs. Call it from a
/// thread that lives as long as the program may run: on Linux the program is killed when that
/// thread ends.
///
/// # Errors
///
/// `NotFound` for a missing program or working directory, `Denied`, `Unsupported` if it cannot be
/// confined as it should be.
pub fn spawn(
    process: &Process,
    shell: &str,
    hidden: &[String],
    mut guard: Option<&mut Guard>,
) -> Result<Running, IoFault> {
    let line = guard.as_deref_mut().and_then(|it| it.begin().ok());
    let started = start(process, shell, hidden, line);
    if let (Err(_), Some(guard)) = (&started, guard) {
        guard.failed();
    }
    started
}

fn start(
    process: &Process,
    shell: &str,
    hidden: &[String],
    line: Option<OwnedFd>,
) -> Result<Running, IoFault> {
    if !Path::new(&process.cwd).is_dir() {
        return Err(IoFault::new(
            IoKind::NotFound,
            format!("the working directory {} is gone", process.cwd),
        ));
    }
    let (mut command, name) = match &process.program {
        Program::Shell(line) => {
            let mut command = Command::new(shell);
            command.arg("-c").arg(line);
            (command, shell)
        }
        Program::Argv(argv) => {
            let Some((name, arguments)) = argv.split_first() else {
                return Err(IoFault::new(IoKind::NotFound, "no program is named"));
            };
            let mut command = Command::new(name);
            command.args(arguments);
            (command, name.as_str())
        }
    };
    let tell = |e: io::Error| super::fault("run", name, &e);
    let rules = process
        .sandbox
        .as_deref()
        .map(confine::prepare)
        .transpose()?;
    command.current_dir(&process.cwd);
    for name in hidden {
        command.env_remove(name);
    }
    command.envs(
        process
            .env
            .iter()
            .map(|(name, value)| (name, value.reveal())),
    );
    command.stdin(if process.stdin {
        Stdio::piped()
    } else {
        Stdio::null()
    });
    let (reader, writer) = io::pipe().map_err(tell)?;
    let mut outputs = vec![Output::new(Stream::Out, reader, process.keep).map_err(tell)?];
    match process.errors {
        Errors::Merged => {
            command.stderr(writer.try_clone().map_err(tell)?);
        }
        Errors::Apart => {
            let (reader, writer) = io::pipe().map_err(tell)?;
            outputs.push(Output::new(Stream::Err, reader, process.keep).map_err(tell)?);
            command.stderr(writer);
        }
    }
    command.stdout(writer);
    isolate(&mut command, line, rules);
    let mut child = command.spawn().map_err(tell)?;
    drop(command); // and with it our ends of its outputs
    let pid = Pid::from_child(&child);
    let stdin = child.stdin.take();
    let ready = stdin
        .as_ref()
        .map_or(Ok(()), |pipe| rustix::io::ioctl_fionbio(pipe, true))
        .map_err(io::Error::from)
        .and_then(|()| exit_notice(pid));
    let exited = match ready {
        Ok(exited) => exited,
        Err(error) => {
            Group(pid).signal(Signal::KILL);
            let _ = child.wait();
            return Err(tell(error));
        }
    };
    Ok(Running {
        child,
        group: Group(pid),
        exited,
        exit: None,
        outputs,
        stdin,
        feed: VecDeque::new(),
        feed_ends: false,
        close_at: None,
        kill_at: None,
        settled: false,
    })
}

impl Running {
    /// Its process group.
    pub fn group(&self) -> Group {
        self.group
    }

    /// Whether its last news were told.
    pub fn settled(&self) -> bool {
        self.settled
    }

    /// Whether nothing is left to do for it, a kill of its group included.
    pub fn over(&self) -> bool {
        self.settled && self.kill_at.is_none()
    }

    /// Puts bytes behind those that wait for its standard input.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.stdin.is_some() {
            self.feed.extend(bytes);
        }
    }

    /// Closes its standard input when what was fed is taken.
    pub fn feed_end(&mut self) {
        self.feed_ends = true;
        if self.feed.is_empty() {
            self.stdin = None;
        }
    }

    /// Ends it and all of its group: politely first, after half a second for sure.
    pub fn abort(&mut self, now: Instant) {
        if self.kill_at.is_none() {
            self.group.signal(Signal::TERM);
            self.kill_at = Some(now + PATIENCE);
        }
    }

    /// When [`step`](Self::step) is due even if no descriptor is ready.
    pub fn deadline(&self) -> Option<Instant> {
        let close_at = self.close_at.filter(|_| !self.settled);
        match (close_at, self.kill_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The descriptors to wait on, and for what; `room` as in [`step`](Self::step). The slots are
    /// names for them: one is never used for another descriptor of the same process.
    pub fn wants(&self, room: usize) -> impl Iterator<Item = (Slot, BorrowedFd<'_>, PollFlags)> {
        let exited = self
            .exit
            .is_none()
            .then(|| (Slot::Exit, self.exited.as_fd()));
        let outputs = self.outputs.iter().filter_map(move |it| {
            let slot = match it.stream() {
                Stream::Out => Slot::Out,
                Stream::Err => Slot::Err,
            };
            Some((slot, it.wants(room)?))
        });
        let inputs = exited.into_iter().chain(outputs);
        let stdin = self.stdin.as_ref().filter(|_| !self.feed.is_empty());
        inputs
            .map(|(slot, fd)| (slot, fd, PollFlags::IN))
            .chain(stdin.map(|pipe| (Slot::In, pipe.as_fd(), PollFlags::OUT)))
    }

    /// Whether this descriptor may be wanted again.
    pub fn is_open(&self, slot: Slot) -> bool {
        match slot {
            Slot::Exit => self.exit.is_none(),
            Slot::In => self.stdin.is_some(),
            Slot::Out => self.outputs.first().is_some_and(Output::is_open),
            Slot::Err => self.outputs.get(1).is_some_and(Output::is_open),
        }
    }

    /// Does what can be done now without waiting, and tells it. At most `room` bytes of output are
    /// told; what is beyond is left in the pipe, or kept within the bounds of [`Keep`](reasonix_core::call::Keep).
    pub fn step(&mut self, now: Instant, mut room: usize, tell: &mut dyn FnMut(Told)) {
        if self.kill_at.is_some_and(|at| now >= at) {
            self.group.signal(Signal::KILL);
            self.kill_at = None;
        }
        if self.settled {
            if self.kill_at.is_some() && !self.group.exists() {
                self.kill_at = None;
            }
            return;
        }
        if self.exit.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.exit = Some(Exit {
                code: status.code(),
                signal: status.signal(),
                dropped: 0,
                left: false,
            });
            self.close_at = Some(now + LINGER);
            self.stdin = None;
        }
        self.write(tell);
        let late = self.close_at.is_some_and(|at| now >= at);
        for output in &mut self.outputs {
            output.read(late, &mut room, tell);
        }
        if let Some(exit) = self.exit
            && self.outputs.iter().all(Output::over)
        {
            let dropped = self.outputs.iter().map(Output::dropped).sum();
            self.settled = true;
            let left = self.group.exists();
            tell(Told::Done(Outcome::Exited(Exit {
                dropped,
                left,
                ..exit
            })));
        }
    }

    fn write(&mut self, tell: &mut dyn FnMut(Told)) {
        let Some(pipe) = &mut self.stdin else { return };
        let mut taken = 0;
        while !self.feed.is_empty() {
            match pipe.write(self.feed.as_slices().0) {
                Ok(count) => {
                    self.feed.drain(..count);
                    taken += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    // It does not listen any more; that is no fault.
                    self.feed.clear();
                    self.feed_ends = true;
                }
            }
        }
        if self.feed_ends && self.feed.is_empty() {
            self.stdin = None;
        }
        if taken > 0 {
            tell(Told::Fed(taken));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.group.signal(Signal::KILL);
            let _ = self.child.wait();
        } else if self.kill_at.is_some() {
            self.group.signal(Signal::KILL);
        }
    }
}

/// Ends all that is left of these, as an abort does, and waits till it is gone: half a second if
/// someone ignores the polite signal.
pub fn end_all(running: Vec<Running>, groups: &[Group]) {
    let mut groups: Vec<Group> = groups.to_vec();
    groups.extend(running.iter().map(|it| it.group));
    groups.retain(|group| group.exists());
    if groups.is_empty() {
        return;
    }
    for group in &groups {
        group.signal(Signal::TERM);
    }
    let mut running = running;
    let end = Instant::now() + PATIENCE;
    while !groups.is_empty() && Instant::now() < end {
        for it in &mut running {
            if it.exit.is_none()
                && let Ok(Some(status)) = it.child.try_wait()
            {
                it.exit = Some(Exit {
                    code: status.code(),
                    signal: status.signal(),
                    dropped: 0,
                    left: false,
                });
            }
        }
        groups.retain(|group| group.exists());
        if !groups.is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    for group in groups {
        group.signal(Signal::KILL);
    }
    drop(running); // reaps
}

/// In a session, and so a group, of its own: no terminal of ours can stop it or be asked for a
/// password. And dead with us; `line` leads to the guard that sees to it where no signal does. And
/// under its rules, last of all: they hold for what it becomes, not for what makes it ready.
fn isolate(command: &mut Command, line: Option<OwnedFd>, mut rules: Option<confine::Rules>) {
    #[cfg(target_os = "linux")]
    let parent = rustix::process::getpid();
    let prepare = move || {
        rustix::process::setsid()?;
        if let Some(line) = &line {
            guard::runs(line.as_fd());
        }
        #[cfg(target_os = "linux")]
        {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // We may have died before that.
            if rustix::process::getppid() != Some(parent) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        rules.take().map_or(Ok(()), confine::Rules::enforce)
    };
    // SAFETY: the closure runs between fork and exec, where only async-signal-safe functions may
    // be called. It makes plain system calls and builds errors that hold no allocation.
    #[expect(unsafe_code, reason = "std has no safe way to say either of the two")]
    unsafe {
        command.pre_exec(prepare);
    }
}

/// A descriptor that becomes readable when the process has ended.
fn exit_notice(pid: Pid) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{PidfdFlags, pidfd_open};
        match pidfd_open(pid, PidfdFlags::empty()) {
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            opened => return Ok(opened?),
        }
    }
    let (reader, writer) = io::pipe()?;
    std::thread::Builder::new()
        .name("wait".into())
        .spawn(move || {
            use rustix::process::{WaitId, WaitIdOptions, waitid};
            // Leaves the status for the one who reaps it.
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), look), Err(rustix::io::Errno::INTR)) {}
            drop(writer);
        })?;
    Ok(reader.into())
}

#[cfg(test)]
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it is about"
)]
pub(super) mod tests {
    use super::*;
    use reasonix_core::call::Keep;
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
        spawn(process, "sh", &["HIDDEN_KEY".into()], None).expect("it starts")
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
            let fault = spawn(&process, "sh", &[], None).expect_err("it cannot start");
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
        end_all(vec![running], &[]);
        gone(group);
        // One that prints for ever in the background holds up nobody either.
        let endless = begin(&shell("yes & sleep 0.2; echo done"));
        let group = endless.group();
        let process = finish(endless);
        assert_eq!(code(&process).0, Some(0));
        end_all(Vec::new(), &[group]);
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
        end_all(vec![stubborn], &[]);
        gone(group);
    }

    fn gone(group: Group) {
        let limit = Instant::now() + Duration::from_secs(5);
        while group.exists() {
            assert!(Instant::now() < limit, "somebody is left");
            std::thread::yield_now(); // who was killed is reaped by init, in its own time
        }
    }
}
