//! How a program is started: its pipes, its environment, and what holds for it before it is the
//! program. Knows nothing of what becomes of it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use reasonix_core::call::{Errors, Process, Program, Stream};
use reasonix_core::error::{IoFault, IoKind};
use rustix::process::Pid;
#[cfg(target_os = "linux")]
use rustix::process::Signal;

use super::super::{confine, fault};
use super::Running;
use super::group::Group;
use super::guard::{self, Guard};
use super::kin::Tag;
use super::output::Output;

/// Starts a program. `shell` runs command lines; `hidden` are variables of our own environment
/// that it must not see; the group is known to `guard` before anything of it runs, and it has `tag` in
/// its environment. Call it from a thread that lives as long as the program may run: on Linux the program is killed when that
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
    tag: Option<Tag>,
) -> Result<Running, IoFault> {
    let line = guard.as_deref_mut().and_then(|it| it.begin().ok());
    let started = start(process, shell, hidden, line, tag);
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
    tag: Option<Tag>,
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
    let tell = |e: io::Error| fault("run", name, &e);
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
    command.envs(tag.as_ref().map(Tag::variable));
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
            Group(pid).kill();
            let _ = child.wait();
            return Err(tell(error));
        }
    };
    Ok(Running {
        child,
        group: Group(pid),
        tag,
        ends_kin: process.stdin,
        exited,
        exit: None,
        outputs,
        stdin,
        feed: VecDeque::new(),
        feed_ends: false,
        close_at: None,
        late: false,
        kill_at: None,
        settled: false,
    })
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
