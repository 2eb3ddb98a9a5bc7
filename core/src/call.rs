//! The agent's system-call table: everything it can ask of the world, and everything the world can
//! say about it. All plain data. Small and dumb, so that a runtime is a few hundred lines and a
//! simulated host can model it exactly.
//!
//! Life of a call: `Start`, then any number of [`News::Opened`], [`News::Bytes`] and [`News::Fed`],
//! then exactly one [`News::Done`] or [`News::Failed`], also after an `Abort`. News of a call that
//! is unknown or over are ignored by the machine.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::error::IoFault;
use crate::reach::Reach;
use crate::secret::Secret;

/// What the world is asked to do. Drivers match it whole. Paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// An HTTP request with a streamed answer: `Opened`, `Bytes`, then [`Outcome::Ended`].
    Http(HttpRequest),
    /// A program in a process group of its own: `Bytes`, then [`Outcome::Exited`].
    Process(Process),
    /// What a path really is: [`Outcome::Resolved`].
    Resolve {
        /// The path.
        path: String,
    },
    /// A whole file: [`Outcome::Read`]. Fails with `WrongKind` if it is no regular file, with
    /// `TooLarge` over `max` bytes.
    Read {
        /// The path.
        path: String,
        /// The root it must stay beneath, links resolved; none: anywhere.
        beneath: Option<String>,
        /// Largest size, bytes.
        max: u64,
    },
    /// A whole file replaced or made: [`Outcome::Written`].
    Write(Write),
    /// A file removed (no directory): [`Outcome::Removed`].
    Remove {
        /// The path. A link is removed, not what it points to.
        path: String,
        /// The root it must stay beneath, links resolved.
        beneath: Option<String>,
    },
    /// A file moved; never over an existing one: [`Outcome::Renamed`]. Missing parents of `to` are
    /// made.
    Rename {
        /// From here.
        from: String,
        /// To here.
        to: String,
        /// The roots the two must stay beneath, links resolved.
        beneath: Option<(String, String)>,
    },
    /// The entries of a directory, sorted by name: [`Outcome::Listed`].
    List {
        /// The path.
        path: String,
        /// At most this many.
        max: usize,
    },
    /// A search for files or text: [`Outcome::Found`].
    Search(Search),
    /// A part of a file: [`Outcome::Part`]. Fails with `WrongKind` if it is no regular file.
    ReadAt {
        /// The path.
        path: String,
        /// The root it must stay beneath, links resolved.
        beneath: String,
        /// Where the part begins, bytes from the beginning of the file.
        at: u64,
        /// Its largest size, bytes.
        max: usize,
    },
    /// Bytes added to the end of a file: [`Outcome::Appended`].
    Append(Append),
    /// An exclusive lock, held until `Unlock` or the end of the process, however that comes:
    /// [`Outcome::Locked`], or [`Outcome::Held`] by another. The file and missing folders are
    /// made, and who holds it is written into it.
    Lock {
        /// The path of the lock's file.
        path: String,
        /// The root it must stay beneath, links resolved; made if it is missing.
        beneath: String,
    },
    /// A lock given back: [`Outcome::Unlocked`], also if it was not held. The file stays.
    Unlock {
        /// The path of the lock's file.
        path: String,
    },
    /// A folder with all it holds removed: [`Outcome::Removed`], also if there was none. Links are
    /// removed, not followed. A lock in it that this process holds is given back.
    RemoveTree {
        /// The path.
        path: String,
        /// The root it must stay beneath, links resolved.
        beneath: String,
    },
    /// Configuration and keys are read again: [`Outcome::Reconfigured`].
    Reconfigure,
    /// A tool of the embedder's own (`Config::tools`): any number of [`News::Bytes`], each the text of
    /// how far it is, for people, and then [`Outcome::Custom`]. Tools of MCP servers never come here.
    Custom(CustomCall),
}

/// A call of a tool of the embedder's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CustomCall {
    /// The id of the session that calls it, as in `session/new`.
    pub session: String,
    /// The session's working directory, as the client gave it.
    pub cwd: String,
    /// The `toolCallId` under which clients see the call.
    pub tool_call: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments: the text of a JSON object.
    pub arguments: String,
}

impl CustomCall {
    /// A call of this tool, of no session.
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            arguments: arguments.into(),
            ..Self::default()
        }
    }
}

/// What the world says about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// The head of an HTTP answer.
    Opened(Opened),
    /// Output, in order. A driver reads no more than the machine has room for.
    Bytes {
        /// Which output.
        stream: Stream,
        /// The bytes; not empty.
        bytes: &'a [u8],
    },
    /// This many bytes of `Feed` were taken by the process.
    Fed(usize),
    /// The call is over, well.
    Done(Outcome),
    /// The call is over, badly.
    Failed(IoFault),
}

impl From<Result<Outcome, IoFault>> for News<'_> {
    fn from(result: Result<Outcome, IoFault>) -> Self {
        match result {
            Ok(outcome) => Self::Done(outcome),
            Err(fault) => Self::Failed(fault),
        }
    }
}

/// Which output of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// The body of an HTTP answer, or the standard output of a process (with [`Errors::Merged`]
    /// both its outputs, as they came).
    Out,
    /// The standard error of a process with [`Errors::Apart`].
    Err,
}

/// How a call ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The body of an HTTP answer is complete.
    Ended,
    /// A process has ended and its outputs are closed.
    Exited(Exit),
    /// What a path is.
    Resolved(Resolved),
    /// A file's bytes.
    Read(Contents),
    /// A file is written and durable.
    Written,
    /// A file is removed.
    Removed,
    /// A file is moved.
    Renamed,
    /// A directory's entries.
    Listed(Listing),
    /// What a search found.
    Found(Found),
    /// A part of a file.
    Part(Part),
    /// Bytes are at the end of a file, and synced if that was asked.
    Appended,
    /// A lock is held.
    Locked,
    /// A lock is held by another.
    Held(Holder),
    /// A lock is given back.
    Unlocked,
    /// The new configuration, or what is wrong with it.
    Reconfigured(Result<Box<crate::settings::Settings>, String>),
    /// The text that a tool which lives elsewhere answered; `Err` is a failed tool, whose reason the
    /// model reads. A tool that could not even be called is [`News::Failed`].
    Custom(Result<String, String>),
}

/// An HTTP request. Redirects are not followed; proxies and certificates are the runtime's affair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    /// Where to.
    pub url: String,
    /// Headers; names in lower case.
    pub headers: Vec<(String, HeaderValue)>,
    /// The body; may be empty.
    pub body: Vec<u8>,
    /// To connect, TLS included, may take this long.
    pub connect_time: Duration,
    /// Where it may be sent to. A driver looks up the name, leaves out the addresses that this does
    /// not admit, and connects to no other than those that are left; if there are none the call
    /// fails with `Denied`.
    pub reach: Reach,
}

/// The value of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderValue {
    /// Can be shown.
    Plain(String),
    /// `Bearer` and a key.
    Bearer(Secret),
    /// Must not be shown.
    Hidden(Secret),
}

/// The head of an HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The status.
    pub status: u16,
    /// Headers; names in lower case, values that are no text left out.
    pub headers: Vec<(String, String)>,
}

impl Opened {
    /// The value of the header `name` (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A program to run: in a process group of its own, dead with its parent, its standard input not
/// that of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// What to run.
    pub program: Program,
    /// Its working directory.
    pub cwd: String,
    /// Variables set on top of the agent's own environment, from which the names of keys are
    /// taken away.
    pub env: Vec<(String, Secret)>,
    /// Whether `Feed` reaches its standard input; else that is closed.
    pub stdin: bool,
    /// Where its standard error goes.
    pub errors: Errors,
    /// What of the output is kept.
    pub keep: Keep,
    /// What it is kept from; none: nothing. A driver that cannot enforce all of it does not run the
    /// program: `Unsupported`.
    pub sandbox: Option<Box<Confinement>>,
}

/// What a program is kept from, and with it all that it starts, in whatever way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// Folders by their real paths. Only beneath them and in `tmp` can it make, change, move or
    /// remove files; what it reads is not confined.
    pub writable: Vec<String>,
    /// A folder for its temporary files, which is made for the agent's user alone if it is missing.
    /// `TMPDIR` is among its variables already.
    pub tmp: String,
    /// Whether it may reach the network.
    pub network: bool,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A line for the shell that [`crate::settings::Host::shell`] names.
    Shell(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

/// Where the standard error of a process goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// Into the standard output, in the order it was written.
    Merged,
    /// Into a stream of its own.
    Apart,
}

/// What of a process's output reaches the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of it, as fast as the machine has room; the process waits.
    All,
    /// The first `head` bytes as they come, and the last `tail` when it ends; what is between is
    /// dropped by the runtime and counted in [`Exit::dropped`]. The process never waits.
    HeadAndTail {
        /// Bytes of the beginning.
        head: usize,
        /// Bytes of the end.
        tail: usize,
    },
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Bytes of output that were dropped between head and tail.
    pub dropped: u64,
    /// Whether others of its group run on. An `Abort` of the call ends them, also now that it is
    /// over; else they end with the agent.
    pub left: bool,
}

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The path with every link resolved. What does not exist is appended to what does, lexically.
    pub real: String,
    /// What is there.
    pub kind: FileKind,
    /// Whether the path itself is a link.
    pub link: bool,
    /// Whether the agent's user owns it.
    pub owned: bool,
    /// How many names the file has.
    pub links: u64,
    /// Size, bytes.
    pub size: u64,
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// Nothing.
    Missing,
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A link that leads nowhere.
    Dangling,
    /// A pipe, socket or device.
    Special,
}

/// The bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// All of them.
    pub bytes: Vec<u8>,
}

/// A file to write: as a whole or not at all (a temporary file in the same directory, synced,
/// renamed, the directory synced), with the mode of the file that was there. A file with several
/// names is written in place, then synced; a link is written through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The path.
    pub path: String,
    /// The root it must stay beneath, links resolved; none: anywhere.
    pub beneath: Option<String>,
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// What must be there, else `Changed` (or `Exists`) and nothing is written.
    pub expect: Expect,
    /// Whether missing parents are made.
    pub parents: bool,
    /// Whether a file that is made is for the agent's user alone (mode 0600), as those that it appends
    /// to are.
    pub private: bool,
}

/// What must be at a path before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Anything.
    Anything,
    /// Nothing.
    Absent,
    /// A file whose bytes have this SHA-256.
    Digest([u8; 32]),
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its bytes: fewer than were asked for only at the end of the file.
    pub bytes: Vec<u8>,
    /// The size of the whole file, bytes.
    pub size: u64,
}

/// Bytes to add to the end of a file. The file (mode 0600) and missing folders (0700) are made. The
/// machine has at most one of these open for one path, so their order is that of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The path.
    pub path: String,
    /// The root it must stay beneath, links resolved; made if it is missing.
    pub beneath: String,
    /// The bytes; none, if what the file holds by now is to be made durable.
    pub bytes: Vec<u8>,
    /// Whether they, and all before them, must survive a loss of power: then `Done` comes after the
    /// file is synced, and where it or a folder above it was made, that folder too. A failed sync is
    /// never repeated: the machine appends no more, unless the file was replaced as a whole since.
    pub durable: bool,
}

/// Who holds a lock, as far as its file says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The process.
    pub pid: Option<u32>,
    /// The host it runs on.
    pub host: Option<String>,
    /// Since when: RFC 3339.
    pub since: Option<String>,
}

/// The entries of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Sorted by name.
    pub entries: Vec<Entry>,
    /// How many more there are.
    pub more: usize,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name; bytes that are no UTF-8 shown as U+FFFD.
    pub name: String,
    /// What it is; a link is what it leads to.
    pub kind: FileKind,
    /// Whether it is a link.
    pub link: bool,
    /// Size, bytes.
    pub size: u64,
}

/// A search beneath a directory. Ignore files are obeyed, links are not followed, pipes and
/// devices are not opened, binary files are skipped by a search for text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Where: a directory, or one file.
    pub root: String,
    /// What for.
    pub what: Pattern,
    /// Hits that are passed over: an earlier search gave them.
    pub skip: usize,
    /// At most this many hits behind those.
    pub max_hits: usize,
    /// Longest line, bytes; the rest of it is cut on a character boundary.
    pub max_line: usize,
    /// All lines together, bytes, but for the first; with more the search is cut as by too many hits.
    pub max_text: usize,
    /// At most this long; what was found till then is the answer.
    pub time: Duration,
}

/// What to search for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Files whose path beneath the root matches, newest first.
    Glob(String),
    /// Lines that match a regular expression, in files that match a glob, sorted by path.
    Text {
        /// The expression.
        regex: String,
        /// The files; none: all.
        glob: Option<String>,
    },
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The hits.
    pub hits: Vec<Hit>,
    /// Why there may be more.
    pub cut: Option<Cut>,
}

/// One hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The file, absolute.
    pub path: String,
    /// The line, from 1, and its text; none for a search for files.
    pub line: Option<(u64, String)>,
}

/// Why a search did not find all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Enough hits.
    Hits,
    /// Time.
    Time,
}
