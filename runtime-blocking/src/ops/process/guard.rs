//! A process beside ours that ends the groups we made when we are gone, however that came. Knows
//! their numbers and nothing else.
//!
//! The parent-death signal reaches only the first process of a group, and not every system has it.
//! So a shell sits on the other end of a socket whose only other owner we are. Each program is told
//! to it *by the program's own process* before it becomes the program, so that there is no moment
//! in which it runs and is not known; and taken off its list when nobody of the group is left,
//! before its number can mean another one. When the socket ends, the shell ends whom it knows:
//! politely first, half a second later for sure; and with them who has left its group on purpose
//! (`setsid`), as far as it is found by the mark in its environment.

use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::net::{SendFlags, send};
use rustix::process::Pid;

use super::group::Group;
use super::kin::Mark;

/// What it does. Signals of a terminal or of a supervisor that ends all it sees do not concern it:
/// it ends by itself. `failed` takes back what came since `begin`, if anything did.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
all= last=
forget() {
    rest=
    for it in $all; do [ "$it" = "$1" ] || rest="$rest $it"; done
    all=$rest
}
signal() { for it in $all; do kill "$1" "-$it"; done; }
left() { for it in $all; do kill -0 "-$it" && return 0; done; [ -n "$(kin)" ]; }
kin() { [ -z "$mark" ] || grep -lsF -e "$mark" /proc/[0-9]*/environ; }
kin_signal() {
    for it in $(kin); do
        it=${it#/proc/}
        kill "$1" "${it%/environ}"
    done
}
mark=$1
while read -r said group; do
    case $said in
        begin) last= ;;
        runs) all="$all $group" last=$group ;;
        failed) forget "$last" ;;
        over) forget "$group" ;;
    esac
done
signal -TERM
kin_signal -TERM
for _ in 1 2 3 4 5; do
    left || exit 0
    sleep 0.1
done
signal -KILL
for _ in 1 2 3 4 5; do
    kin_signal -KILL
    [ -n "$(kin)" ] || exit 0
done
"#;

/// Where the shell is; the second is looked for. By this name it reads no file of the person's
/// before it begins, whatever shell it is.
const SHELLS: [&str; 2] = ["/bin/sh", "sh"];

/// The guard, while we live.
#[derive(Debug)]
pub struct Guard {
    process: Child,
    line: UnixStream,
    deaf: bool,
}

impl Guard {
    /// Starts it, and tells it of these groups and of the mark of all programs.
    ///
    /// # Errors
    ///
    /// If there is no shell, or the system has no process or descriptor left.
    pub fn start(groups: impl Iterator<Item = Group>, mark: Option<&Mark>) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for shell in SHELLS {
            let (line, far) = UnixStream::pair()?;
            let mut command = Command::new(shell);
            let mark = mark.map_or_else(String::new, Mark::variables);
            command
                .args(["-c", SCRIPT, "reasonix-guard", &mark])
                .current_dir("/");
            // Nothing of ours: a variable can give a shell other commands, or hold a key.
            command.env_clear();
            command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
            command.stdin(OwnedFd::from(far));
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.process_group(0);
            match command.spawn() {
                Ok(process) => {
                    let mut guard = Self {
                        process,
                        line,
                        deaf: false,
                    };
                    groups.for_each(|group| guard.say("runs", Some(group.0)));
                    return Ok(guard);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Whether it can be relied on.
    pub fn lives(&mut self) -> bool {
        !self.deaf && matches!(self.process.try_wait(), Ok(None))
    }

    /// Says that nobody is left of a group.
    pub fn over(&mut self, group: Group) {
        self.say("over", Some(group.0));
    }

    /// Says that a program is about to be started. It says itself that it [`runs`], on this line.
    pub(super) fn begin(&mut self) -> io::Result<OwnedFd> {
        self.say("begin", None);
        self.line.as_fd().try_clone_to_owned()
    }

    /// Says that nothing came of the last beginning.
    pub(super) fn failed(&mut self) {
        self.say("failed", None);
    }

    fn say(&mut self, said: &str, group: Option<Pid>) {
        self.deaf |= tell(self.line.as_fd(), said, group).is_err();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Whoever drops it has ended the groups.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Says that this process is the first of its group. Between fork and exec: it allocates nothing
/// and takes no lock.
pub(super) fn runs(line: BorrowedFd<'_>) {
    // Without a guard the program runs all the same.
    let _ = tell(line, "runs", Some(rustix::process::getpid()));
}

fn tell(line: BorrowedFd<'_>, said: &str, group: Option<Pid>) -> io::Result<()> {
    // A word and a number are shorter than that.
    let mut text = [0; 32];
    let mut room = text.as_mut_slice();
    writeln!(room, "{said} {}", Pid::as_raw(group))?;
    let left = room.len();
    send(line, &text[..text.len() - left], flags())?;
    Ok(())
}

/// A guard that is gone or stuck holds up nobody, and its end is no signal.
fn flags() -> SendFlags {
    #[cfg(not(target_vendor = "apple"))]
    return SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    #[cfg(target_vendor = "apple")]
    SendFlags::DONTWAIT
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::tests::{drive_to_end, shell};
    use super::super::{Running, spawn};
    use super::*;
    use crate::ops::testing::{command_again, own_process};
    use reasonix_core::call::{Process, Program};
    use std::io::{BufRead, BufReader, Read};
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn till(what: &str, mut done: impl FnMut() -> bool) {
        let limit = Instant::now() + Duration::from_secs(10);
        while !done() {
            assert!(Instant::now() < limit, "never: {what}");
            std::thread::yield_now();
        }
    }

    fn begin(line: &str, guard: &mut Guard) -> Running {
        spawn(&shell(line), "sh", &[], Some(guard), None).expect("it starts")
    }

    /// What a guard does when its owner is gone.
    fn abandon(mut guard: Guard) {
        let (line, _) = UnixStream::pair().expect("sockets can be made");
        guard.line = line;
        let ended = guard.process.wait().expect("it ends");
        assert_eq!(ended.code(), Some(0));
    }

    #[test]
    fn who_is_left_is_ended_and_nobody_else() {
        let mut guard = Guard::start(std::iter::empty(), None).expect("it starts");
        let known = begin("sleep 1000 & sleep 1000; echo", &mut guard);
        let stubborn = "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo; wait";
        let stubborn = begin(stubborn, &mut guard);
        let over = begin("true", &mut guard);
        let other = spawn(&shell("sleep 1000"), "sh", &[], None, None).expect("it starts");
        // Its number is one that must not be touched any more: that of the other one, say.
        guard.say("runs", Some(other.group().0));
        guard.over(other.group());
        guard.over(over.group());
        abandon(guard);
        let (known, stubborn) = (known.group(), stubborn.group());
        // Their first processes are children of ours and not reaped, so the groups stay.
        for group in [known, stubborn] {
            till("only the dead are left", || !lives(group));
        }
        assert!(lives(other.group()));
    }

    /// Whether one of this group runs; the dead that are not reaped do not.
    fn lives(group: Group) -> bool {
        let group = group.0.as_raw_nonzero().to_string();
        let all = std::fs::read_dir("/proc").expect("a system with /proc");
        all.flatten().any(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let rest = stat.rsplit(") ").next().unwrap_or_default();
            let fields: Vec<&str> = rest.split(' ').take(3).collect();
            matches!(fields[..], [state, _, of] if of == group && state != "Z" && state != "X")
        })
    }

    #[test]
    fn what_did_not_start_is_not_known() {
        let mut guard = Guard::start(std::iter::empty(), None).expect("it starts");
        let known = begin("sleep 1000", &mut guard);
        let none = Process {
            program: Program::Argv(vec!["/surely/no/such/program".into()]),
            ..shell("")
        };
        let nowhere = Process {
            cwd: "/surely/not/here".into(),
            ..shell("true")
        };
        for process in [none, nowhere] {
            spawn(&process, "sh", &[], Some(&mut guard), None).expect_err("it cannot start");
        }
        // Neither took the one before with it.
        abandon(guard);
        till("it is ended", || !lives(known.group()));
    }

    #[test]
    fn one_that_is_gone_is_missed_and_holds_up_nobody() {
        let mut guard = Guard::start(std::iter::empty(), None).expect("it starts");
        assert!(guard.lives());
        guard.process.kill().expect("it runs");
        let seen = drive_to_end(begin("echo all the same", &mut guard));
        assert_eq!(seen, b"all the same\n");
        till("it is missed", || !guard.lives());
        // Another one is told of who runs.
        let known = begin("sleep 1000", &mut guard);
        let next = Guard::start([known.group()].into_iter(), None).expect("it starts");
        abandon(next);
        till("it is ended", || !lives(known.group()));
    }

    #[test]
    fn it_holds_nothing_of_ours() {
        let (reader, writer) = io::pipe().expect("pipes can be made");
        let guard = Guard::start(std::iter::empty(), None).expect("it starts");
        drop(writer);
        let (send, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut reader = reader;
            let _ = send.send(reader.read(&mut [0]).is_ok_and(|count| count == 0));
        });
        assert_eq!(ended.recv_timeout(Duration::from_secs(10)), Ok(true));
        for fd in ["1", "2"] {
            let to = std::fs::read_link(format!("/proc/{}/fd/{fd}", guard.process.id()));
            assert_eq!(to.expect("it is open"), Path::new("/dev/null"));
        }
        drop(guard);
    }

    #[test]
    fn a_killed_process_leaves_nobody() {
        const NAME: &str = "ops::process::guard::tests::a_killed_process_leaves_nobody";
        const LINES: [&str; 4] = [
            "sleep 1000; echo",
            "sleep 1000 | sleep 1000",
            "sleep 1000 & wait",
            "(sleep 1000 &) ; sleep 1000; echo",
        ];
        if own_process() {
            let mut guard = Guard::start(std::iter::empty(), None).expect("it starts");
            let running = LINES.map(|line| begin(line, &mut guard));
            for it in &running {
                println!("\ngroup {}", it.group().0.as_raw_nonzero());
            }
            println!("\nall");
            // Till it is killed.
            let _ = std::io::stdin().read_line(&mut String::new());
            return;
        }
        let mut other = command_again(NAME)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(other.stdout.take().expect("it is piped")).lines();
        let groups: Vec<Group> = lines
            .map_while(Result::ok)
            .take_while(|line| line != "all")
            .filter_map(|line| line.strip_prefix("group ")?.parse().ok())
            .filter_map(Pid::from_raw)
            .map(Group)
            .collect();
        assert_eq!(groups.len(), LINES.len());
        other.kill().expect("it runs");
        other.wait().expect("it ends");
        for (group, line) in groups.into_iter().zip(LINES) {
            till(line, || !lives(group));
        }
    }
}
