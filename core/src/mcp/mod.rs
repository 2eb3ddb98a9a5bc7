//! The client side of MCP (Model Context Protocol): what a session asks of the servers that it was
//! given, and what comes of it. Pure: bytes and time in, calls and answers out. Knows nothing of
//! ACP, of a model or of what may run.
//!
//! | file | what lives there |
//! | --- | --- |
//! | `entry` | one server as somebody named it, its secrets among it |
//! | `approval` | the servers that a project's file names, and which of them may be started |
//! | `hub` | the servers of one session: whose a tool is, how each one stands |
//! | `server` | one server from its start to its end: handshake, deadlines, restart |
//! | `lists` | what it lists: tools, prompts |
//! | `calls` | what is asked of it: tools, resources, prompts |
//! | `asks` | what it asks the person, and our answers to what it asks; when a page is done |
//! | `standby` | its tools as they are kept for another time |
//! | `speak` | what a server says: answers, requests of its own, notifications |
//! | `shapes` | the messages |
//! | `catalogue` | tools out of pages: names made legal, unique and stable, schemas repaired |
//! | `prompts` | templates that a person chooses by a slash command |
//! | `result` | what a tool answered, as one text |
//! | `form` | what a server asks the person, and whether an answer fits |
//! | `transport` | messages as bytes: standard streams, Streamable HTTP, the older SSE |
//! | `address` | URLs, as far as they must be understood |
//!
//! States of a server, and what leads from one to the next:
//!
//! | state | shown as | event | next |
//! | --- | --- | --- | --- |
//! | `Pending` | `pending` | it is approved | `Connecting` |
//! | | | it is not | `Disabled` |
//! | `Connecting` | `connecting`, `standby` with tools of another time | handshake and tools are done | `Ready` |
//! | | | fault, or its deadline | `Down` |
//! | `Ready` | `ready` | its connection is lost | `Down` |
//! | | | its HTTP session is unknown | `Connecting`, once a call |
//! | `Down` | `failed`, `idle` after a loss | a call for it, when its pause is over | `Connecting` |
//! | `Resting` | `connecting`, `standby` | the pause is over | `Connecting` |
//! | `Disabled` | `disabled` | it is approved | `Connecting` |
//! | any | | its approval is taken back | `Disabled` |
//! | any | | the session closes | `Closed` |
//!
//! Every call is answered exactly once: by the server, by a fault, by its deadline, by its cancel
//! (then its caller has the answer already), or by the end of the session.

mod address;
pub mod approval;
mod asks;
mod calls;
mod catalogue;
mod entry;
mod form;
mod hub;
mod lists;
mod prompts;
mod result;
mod server;
mod shapes;
mod speak;
mod standby;
mod transport;

#[cfg(test)]
mod tests;

pub use catalogue::Tool;
pub use entry::{Entry, EntryFault, Loose, Way};
pub use form::{Question, Reply};
pub use hub::{Client, Hub, Launch, Status};
pub use prompts::{Argument, Prompt};
pub use server::State;
pub use shapes::{LATEST_VERSION, VERSIONS};

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use crate::call::Call;
use crate::ids::{CallId, Counter};
use crate::limits::Limits;
use crate::time::Instant;

/// What the parent lends for one call of a method.
pub struct Context<'a> {
    /// The time.
    pub now: Instant,
    /// Numbers for calls of the system; shared with all others who start some.
    pub ids: &'a mut Counter,
    /// Every bound there is.
    pub limits: &'a Limits,
    /// Where everything goes that the parent must do or pass on, in order.
    pub out: &'a mut VecDeque<Output>,
}

/// One thing for the parent to do or to pass on. Exhaustive: a parent does each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Begin a call of the system; its news come back under its id.
    Start {
        /// Its id.
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
    /// No more bytes will be fed.
    FeedEnd {
        /// Which.
        id: CallId,
    },
    /// End a call of the system now.
    Abort {
        /// Which.
        id: CallId,
    },
    /// A tool call is over.
    Done {
        /// The number its caller gave it.
        call: CallId,
        /// What came of it, for the model; `Err` is a failed tool.
        result: Result<String, String>,
    },
    /// A tool call is under way.
    Progress {
        /// The number its caller gave it.
        call: CallId,
        /// One line.
        text: String,
    },
    /// A server asks the person.
    Ask {
        /// The number of the question, unique in the hub.
        ask: u64,
        /// What is asked.
        question: Question,
    },
    /// A question is no longer open; an answer to it means nothing.
    Withdraw {
        /// Its number.
        ask: u64,
    },
    /// A page that the person was asked to open is done: its server said so, or is gone. Said once a
    /// question at most, behind its [`Ask`](Self::Ask).
    Completed {
        /// The number of the question.
        ask: u64,
        /// What the server calls it.
        id: String,
    },
    /// How a server stands, or what tools there are, has changed.
    Changed,
    /// What prompts there are has changed.
    Prompts,
    /// A server starts: what was kept of its tools, if anything, is to come by [`Hub::recall`].
    Recall {
        /// The digest of its entry.
        digest: String,
    },
    /// What to keep of a server's tools, in the place of what was kept before.
    Remember {
        /// The digest of its entry.
        digest: String,
        /// At most twice [`Limits::max_mcp_catalogue`].
        bytes: Vec<u8>,
    },
    /// For the log: one line without secrets.
    Log(String),
}
