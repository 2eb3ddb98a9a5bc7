//! Errors name the party whose fault they are. Bugs panic.

use alloc::string::String;
use thiserror::Error;

/// The embedder asked for something that cannot be done now. The value is given back.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CommandError<T> {
    /// There is no room: the peer reads too slowly. The turn was put in the queue of waiters, and
    /// an event says when to try again.
    #[error("no room: the peer reads too slowly")]
    Full(T),
    /// The session, turn or request is over.
    #[error("over already")]
    Gone(T),
    /// The peer did not advertise what this needs.
    #[error("the peer did not advertise this")]
    NotOffered(T),
}

/// The peer broke a rule. The reply, if one is due, is already queued; this is for logs.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerFault {
    /// A line was not JSON, not UTF-8, or nested too deep.
    #[error("a line is not JSON")]
    NotJson,
    /// JSON, but no JSON-RPC 2.0 message.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    NotRpc(&'static str),
    /// A line was longer than the limit and was skipped.
    #[error("a line is longer than {limit} bytes")]
    FrameTooLong {
        /// The limit, bytes.
        limit: usize,
    },
    /// A message that the state of its subject does not allow.
    #[error("{event} while {state}")]
    OutOfTurn {
        /// The state.
        state: &'static str,
        /// The event.
        event: &'static str,
    },
    /// An answer that does not fit its request.
    #[error("an answer to {method} does not fit: {reason}")]
    BadAnswer {
        /// The method of our request.
        method: &'static str,
        /// Why.
        reason: String,
    },
}

/// The world failed: a file, a process, a socket.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct IoFault {
    /// What kind of failure.
    pub kind: IoKind,
    /// For people: what was tried and what the system said. No secrets.
    pub message: String,
}

impl IoFault {
    /// A fault of this kind.
    pub fn new(kind: IoKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// Kinds of failure that the machine tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoKind {
    /// No such file, directory or program.
    NotFound,
    /// The system refused.
    Denied,
    /// It exists already.
    Exists,
    /// It is not what the call needs: a directory, a pipe, a device.
    WrongKind,
    /// More bytes than the call allows.
    TooLarge,
    /// The file is not as it was expected to be.
    Changed,
    /// The path leads out of the root it must stay in.
    Escapes,
    /// No space is left, or a quota is used up.
    Full,
    /// No connection could be made, or it broke. Worth another try.
    Unreachable,
    /// It took too long.
    TimedOut,
    /// The machine aborted it.
    Aborted,
    /// The call is not supported here.
    Unsupported,
    /// Anything else.
    Other,
}
