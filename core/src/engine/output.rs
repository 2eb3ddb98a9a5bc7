//! What the engine says to its parent. Plain data, in one order: an update can never overtake the
//! end of its turn.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::record::Record;
use crate::call::Call;
use crate::ids::CallId;
use crate::model::Text;
use crate::tools::{Proposal, Question};

/// One thing for the parent to do or to pass on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Begin a call; its news come back under its id.
    Start {
        /// Its id.
        id: CallId,
        /// What to do.
        call: Call,
        /// The tool call it is for; none: the model's.
        tool: Option<String>,
    },
    /// Call a tool of an MCP server of the session. Its news come back under its id, as those of a
    /// call that the embedder carries out.
    CallServer {
        /// Its id.
        id: CallId,
        /// The name of the tool, as the model knows it.
        name: String,
        /// Its arguments: the text of a JSON object.
        arguments: String,
    },
    /// End a call now.
    Abort {
        /// Which.
        id: CallId,
    },
    /// For the client to see.
    Update(Update),
    /// To be remembered, and to be seen where it is something to see. In the order of everything
    /// else: what is drawn from it stands where it stands live.
    Record(Record),
    /// The person must decide whether a call of a tool may run.
    Permit {
        /// Which decision this is.
        card: CardId,
        /// The id of the tool call, announced before.
        call: String,
        /// What it would do.
        proposal: Proposal,
        /// What "always" would grant, in words; none: once is all that can be allowed.
        always: Option<String>,
    },
    /// The person is asked something.
    Questions {
        /// Which decision this is.
        card: CardId,
        /// The tool call that asks.
        call: String,
        /// What is asked.
        questions: Vec<Question>,
    },
    /// A card or question is no longer open; an answer to it means nothing.
    Withdraw {
        /// Which.
        card: CardId,
    },
    /// The gate or the person decided about a call; for the log, and for people who ask.
    Decided(Decided),
    /// A folder was added to those of the session: its real path.
    Rooted {
        /// Which.
        root: String,
    },
    /// The turn is over. Nothing of it follows.
    Finished(Ending),
    /// For the log.
    Log(String),
}

/// What was decided about a call, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decided {
    /// The call in one line: the tool's name and what it is about.
    pub call: String,
    /// What was decided.
    pub ruling: Ruling,
    /// Why, in words.
    pub why: String,
}

/// What is decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It runs.
    Allowed,
    /// The person is asked.
    Asked,
    /// It does not run.
    Denied,
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allowed => "allowed",
            Self::Asked => "asked",
            Self::Denied => "denied",
        })
    }
}

/// A decision that is waited for, unique in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CardId(pub u64);

/// What the client sees of a turn and the session does not remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Text of the model, as it comes. The record of it follows when the attempt is over.
    Text {
        /// Whether it is thought or said.
        thought: bool,
        /// The text.
        text: Text,
        /// The message it belongs to: one attempt of the model, unique in the session.
        message: u64,
    },
    /// A tool call runs now.
    Running {
        /// Its id.
        id: String,
    },
    /// The output so far of a tool call that runs.
    Progress {
        /// Its id.
        id: String,
        /// All of it, bounded.
        text: String,
        /// The session of the subagent that works for it.
        session: Option<String>,
    },
    /// The older part of the history is being replaced by a summary. That it was replaced is a
    /// record.
    Compacting {
        /// The number of the compaction.
        id: u64,
        /// How far it is.
        stage: Compacting,
    },
    /// The provider could not be reached or broke off, and is asked again.
    Retrying {
        /// The pause before that.
        after: Duration,
        /// Why; for people.
        why: String,
    },
    /// What the context window holds.
    Usage {
        /// Tokens in it.
        used: u64,
        /// Tokens it can hold.
        size: u64,
    },
}

/// How far a compaction is that is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compacting {
    /// It begins.
    Began,
    /// There is no summary: the history stays as it is.
    Failed(String),
    /// The turn was cancelled.
    Cancelled,
}

/// What the person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This call may run.
    Once,
    /// This call and what the card's `always` names may run, in this session.
    Always,
    /// It may not.
    Reject,
    /// The question was put and taken away again: it may not.
    Unanswered,
    /// The client could not ask, or answered something else than was asked: it may not.
    Unasked,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The model has said all.
    EndTurn,
    /// An answer was cut by its length, after one continuation.
    MaxTokens,
    /// The turn used all its model calls.
    MaxSteps,
    /// The provider refused the content; the turn is taken out of the history.
    Refusal,
    /// It was cancelled, and all its calls are settled.
    Cancelled,
    /// It failed.
    Failed {
        /// For people; no secrets.
        message: String,
        /// Whether a key is missing or was refused.
        auth: bool,
    },
}
