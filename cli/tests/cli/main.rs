//! The built programs, as people and editors run them: in a home of their own, offline.

mod acp;
mod demo;
#[cfg(unix)]
mod doctor;
mod flags;
mod mcp;
#[cfg(unix)]
mod person;
mod run;
mod sessions;
mod setup;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Both programs: what one does the other does.
const PROGRAMS: [&str; 2] = [
    env!("CARGO_BIN_EXE_reasonix"),
    env!("CARGO_BIN_EXE_reasonix-blocking"),
];

/// No test waits longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A key that stands in the environment of every program here, and that none may ever say, write or
/// hand on.
const PLANTED: (&str, &str) = ("OPENAI_API_KEY", "sk-planted-for-programs-3b9d1e");

/// Panics if the planted key is in there; not while another panic tells what is wrong.
#[track_caller]
fn no_leak(what: &str, text: &[u8]) {
    let key = PLANTED.1.as_bytes();
    let found = text.windows(key.len()).any(|part| part == key);
    if found && !std::thread::panicking() {
        panic!("the value of {} is in {what}", PLANTED.0);
    }
}

/// A fresh home and an empty folder to work in.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["home", "work", "tmp"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        let root = fs::canonicalize(self.folder.path()).expect("it is there");
        root.join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("written");
        path
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    /// `program` with `args`, in `work`, its standard input closed.
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env(PLANTED.0, PLANTED.1)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, program: &str, args: &[&str]) -> Ended {
        finish(self.command(program, args).spawn().expect("it starts"))
    }
}

impl Drop for Place {
    /// Whatever was left behind holds no key.
    fn drop(&mut self) {
        let mut folders = vec![self.folder.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let kind = entry.file_type();
                if kind.as_ref().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(entry.path());
                } else if kind.is_ok_and(|kind| kind.is_file()) {
                    let text = fs::read(entry.path()).unwrap_or_default();
                    no_leak(&entry.path().display().to_string(), &text);
                }
            }
        }
    }
}

/// How a program ended and what it printed.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        no_leak("its output", &output.stdout);
        no_leak("its diagnostics", &output.stderr);
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

/// Ends a program that does not come to an end, which fails its test.
struct Watch {
    thread: Option<JoinHandle<()>>,
    over: Option<Sender<()>>,
}

impl Watch {
    fn over(id: u32) -> Self {
        let (over, ended) = channel();
        let thread = std::thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                signal(id, "KILL");
            }
        });
        Self {
            thread: Some(thread),
            over: Some(over),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the watch");
        }
    }
}

/// Waits for the end of a program.
fn finish(child: Child) -> Ended {
    let watch = Watch::over(child.id());
    let output = child.wait_with_output().expect("its output");
    drop(watch);
    output.into()
}

/// Waits for the end of a program whose output is read elsewhere.
fn wait(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        match child.try_wait().expect("its status") {
            Some(status) => return status,
            None if started.elapsed() > PATIENCE => {
                let _ = child.kill();
                panic!("it did not end");
            }
            None => std::thread::yield_now(),
        }
    }
}

fn signal(id: u32, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &id.to_string()])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "kill");
}

/// Lines for a program's standard input.
fn say(child: &mut Child, text: &str) {
    let pipe = child.stdin.as_mut().expect("a pipe");
    pipe.write_all(text.as_bytes()).expect("it listens");
}

/// `path` as an argument.
fn arg(path: &Path) -> &str {
    path.to_str().expect("text")
}
