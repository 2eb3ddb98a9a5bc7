//! The host operations, as plain blocking functions: what a [`Call`] of the machine means on this
//! system. Both runtimes use them. Nothing here knows of a machine or of the protocol.

pub mod append;
pub mod confine;
pub mod files;
pub mod http;
pub mod list;
pub mod lock;
mod place;
pub mod plain;
#[cfg(unix)]
pub mod process;
pub mod resolve;
pub mod search;
#[cfg(unix)]
mod tree;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reasonix_core::call::{Call, News, Opened, Outcome, Stream};
use reasonix_core::error::{IoFault, IoKind};
use reasonix_core::settings::Host;

/// [`News`] that owns its bytes, so that it can cross threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The head of an HTTP answer.
    Opened(Opened),
    /// Output; not empty.
    Bytes(Stream, Vec<u8>),
    /// Taken from what was fed.
    Fed(usize),
    /// Over, well.
    Done(Outcome),
    /// Over, badly.
    Failed(IoFault),
}

impl Told {
    /// The news, borrowed where it can be.
    pub fn into_news<R>(self, give: impl FnOnce(News<'_>) -> R) -> R {
        match self {
            Self::Opened(head) => give(News::Opened(head)),
            Self::Bytes(stream, bytes) => give(News::Bytes {
                stream,
                bytes: &bytes,
            }),
            Self::Fed(count) => give(News::Fed(count)),
            Self::Done(outcome) => give(News::Done(outcome)),
            Self::Failed(fault) => give(News::Failed(fault)),
        }
    }

    /// Whether nothing can follow.
    pub fn is_last(&self) -> bool {
        match self {
            Self::Done(_) | Self::Failed(_) => true,
            Self::Opened(_) | Self::Bytes(..) | Self::Fed(_) => false,
        }
    }
}

/// Says to an operation that nobody waits for it any more.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Says it.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was said.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What calls leave behind for later ones of the same agent: the locks it holds, and the files
/// whose names are durable. Shared by its clones.
#[derive(Clone, Debug, Default)]
pub struct Kept(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    locks: lock::Locks,
    names: append::Names,
}

impl Kept {
    /// Gives every lock back; one that a call takes after this is given back at once.
    pub fn close(&self) {
        self.0.locks.close();
    }
}

/// Does a call that is neither `Http` nor `Process` nor `Custom`, from its beginning to its end.
///
/// # Panics
///
/// If it is one of these: the first two have a life of their own, in [`http`] and [`process`], and the
/// third is an embedder's.
pub fn run(call: Call, host: &Host, kept: &Kept, stop: &Stop) -> Told {
    let Inner { locks, names } = &*kept.0;
    let outcome = match call {
        Call::Http(_) | Call::Process(_) | Call::Custom(_) => {
            unreachable!("callers send these to their own modules")
        }
        Call::Resolve { path } => resolve::resolve(&path).map(Outcome::Resolved),
        Call::Read { path, beneath, max } => {
            files::read(&path, beneath.as_deref(), max).map(Outcome::Read)
        }
        Call::Write(write) => files::write(&write).map(|()| Outcome::Written),
        Call::Remove { path, beneath } => {
            files::remove(&path, beneath.as_deref()).map(|()| Outcome::Removed)
        }
        Call::Rename { from, to, beneath } => {
            let beneath = beneath.as_ref().map(|(a, b)| (a.as_str(), b.as_str()));
            files::rename(&from, &to, beneath).map(|()| Outcome::Renamed)
        }
        Call::List { path, max } => list::list(&path, max).map(Outcome::Listed),
        Call::Search(search) => search::search(&search, stop).map(Outcome::Found),
        Call::ReadAt {
            path,
            beneath,
            at,
            max,
        } => files::read_at(&path, &beneath, at, max).map(Outcome::Part),
        Call::Append(append) => append::append(&append, names).map(|()| Outcome::Appended),
        Call::Lock { path, beneath } => {
            lock::lock(&path, &beneath, locks).map(|taken| match taken {
                lock::Taken::Ours => Outcome::Locked,
                lock::Taken::Held(holder) => Outcome::Held(holder),
            })
        }
        Call::Unlock { path } => {
            locks.unlock(&path);
            Ok(Outcome::Unlocked)
        }
        Call::RemoveTree { path, beneath } => {
            files::remove_tree(&path, &beneath, kept).map(|()| Outcome::Removed)
        }
        Call::Reconfigure => Ok(Outcome::Reconfigured(Ok(Box::new(
            crate::config::settings(host.home.as_deref().map(Path::new)),
        )))),
    };
    match outcome {
        Ok(outcome) => Told::Done(outcome),
        Err(fault) => Told::Failed(fault),
    }
}

/// The fault that a system error is, told with what was tried.
pub(crate) fn fault(tried: &str, path: &str, error: &io::Error) -> IoFault {
    IoFault::new(
        kind(error),
        format!("cannot {tried} {path}: {}", reason(error)),
    )
}

/// The kind of a system error.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enum is std's, and open"
)]
pub(crate) fn kind(error: &io::Error) -> IoKind {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => IoKind::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => IoKind::Denied,
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => IoKind::Exists,
        io::ErrorKind::IsADirectory => IoKind::WrongKind,
        io::ErrorKind::FileTooLarge => IoKind::TooLarge,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => IoKind::Full,
        io::ErrorKind::TimedOut => IoKind::TimedOut,
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown
        | io::ErrorKind::AddrNotAvailable
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::NotConnected => IoKind::Unreachable,
        io::ErrorKind::Unsupported => IoKind::Unsupported,
        _ => IoKind::Other,
    }
}

/// What the system said, without the number that std appends.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! What tests of several operations use.

    use std::process::Command;

    use reasonix_core::error::{IoFault, IoKind};

    /// A directory that is gone when the test is.
    pub fn dir() -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let real = dir.path().canonicalize().expect("it exists");
        let path = real.to_str().expect("its name is text").to_owned();
        (dir, path)
    }

    /// The kind of the fault that a call must end with.
    pub fn kind<T: std::fmt::Debug>(result: Result<T, IoFault>) -> IoKind {
        result.expect_err("it must be refused").kind
    }

    /// A root in `w` with links of every kind, and `w/outside/secret` that holds an `s`.
    #[cfg(unix)]
    pub fn links(w: &str) -> String {
        use std::os::unix::fs::symlink;
        let home = format!("{w}/home");
        for dir in ["home/s", "outside"] {
            std::fs::create_dir_all(format!("{w}/{dir}")).expect("made");
        }
        for (file, text) in [("home/s/file", "f"), ("outside/secret", "s")] {
            std::fs::write(format!("{w}/{file}"), text).expect("written");
        }
        for (to, link) in [
            ("../outside", "out"),
            ("../../outside", "s/out"),
            ("../gone", "dangling"),
            ("s", "inside"),
            ("file", "s/to_file"),
            ("../../outside/secret", "s/to_outside"),
            ("../../outside/none", "s/to_nothing"),
        ] {
            symlink(to, format!("{home}/{link}")).expect("linked");
        }
        home
    }

    /// Makes a named pipe that nobody else has open.
    #[cfg(unix)]
    pub fn pipe(path: &str) {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::from(0o600), 0).expect("made");
    }

    /// Whether a test runs in a process of its own, because [`command_again`] started it.
    pub fn own_process() -> bool {
        std::env::var_os("REASONIX_TEST_ALONE").is_some()
    }

    /// This test once more, alone in a process.
    pub fn command_again(name: &str) -> Command {
        let this = std::env::current_exe().expect("a test knows where it is");
        let mut command = Command::new(this);
        command.args([name, "--exact", "--nocapture", "--test-threads=1"]);
        command.env("REASONIX_TEST_ALONE", "1");
        command
    }

    /// Runs it, and is as content as it is.
    pub fn again(name: &str) {
        let output = command_again(name).output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}{errors}");
        assert!(text.contains("1 passed"), "{text}");
    }
}
