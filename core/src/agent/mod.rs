//! All of it as one machine: what the runtimes drive.
//!
//! The agent owns one [`protocol`](crate::protocol) side, one [`engine`](crate::engine) a session,
//! and the numbering of calls. It translates between them and has no rules of its own: what may be
//! said is decided in `protocol`, what is done next in `engine`, what may run in `permission`.

mod config;

pub use crate::permission::PermissionMode;
pub use config::{Config, Identity, Preset};

use alloc::string::String;
use alloc::vec::Vec;

use crate::call::{Call, News};
use crate::ids::CallId;
use crate::machine::{Machine, Next, Source};
use crate::time::Instant;

/// What the world did. Exhaustive: drivers match it whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// Bytes from the client, cut anywhere; at most [`Machine::room`] of them.
    Received(&'a [u8]),
    /// How many bytes of what was transmitted are not yet taken by the operating system.
    Unsent(usize),
    /// No more bytes will come, or the person asked the process to end (SIGTERM, Ctrl-C).
    PeerFinished,
    /// Nothing can be sent any more.
    PeerGone,
    /// What the world says about a call.
    Call {
        /// Which.
        id: CallId,
        /// What.
        news: News<'a>,
    },
    /// Wall-clock time: at the start, and whenever its offset to [`Instant`] moves.
    Wall(WallClock),
}

/// Wall-clock time as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub unix_ms: i64,
}

/// What the world must do. Exhaustive: drivers match it whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<'a> {
    /// Send these bytes to the client: exactly one frame, its line end included. The driver copies
    /// them and writes when it has 32 KiB, or at [`Next::Wait`].
    Transmit(&'a [u8]),
    /// Begin a call. Its news come under its id.
    Start {
        /// Its id, never used before.
        id: CallId,
        /// What to do.
        call: Call,
    },
    /// Bytes for the standard input of a process.
    Feed {
        /// Which.
        id: CallId,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// No more bytes will be fed: close the standard input.
    FeedEnd {
        /// Which.
        id: CallId,
    },
    /// End a call now. One `Done` or `Failed` still follows.
    Abort {
        /// Which.
        id: CallId,
    },
    /// Something for the log; needs no answer.
    Report(Report),
    /// The end: always the last effect, after it there is silence.
    Close(CloseReason),
}

/// Something for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How much it matters.
    pub level: Level,
    /// One line, secrets redacted.
    pub text: String,
}

/// How much a report matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed that a person should know of.
    Error,
    /// Something is odd.
    Warn,
    /// Something worth knowing when looking for a cause.
    Info,
    /// Every step.
    Debug,
}

/// Why the connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The client finished, all was answered and settled: exit code 0.
    Finished,
    /// The client is gone.
    Gone,
    /// The client took no byte for too long.
    Stalled,
}

/// The whole agent as one machine.
pub struct Agent {
    config: Config,
}

impl Agent {
    /// An agent for one connection.
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// What it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

impl Machine for Agent {
    type Input<'a> = Input<'a>;
    type Effect<'a> = Effect<'a>;

    fn handle_input(&mut self, _now: Instant, _input: Input<'_>) {}

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_effect(&mut self) -> Next<Effect<'_>> {
        Next::Wait(None)
    }

    fn room(&self, _source: Source) -> usize {
        self.config.limits.peer_window
    }
}
