//! What the engine says to its parent. Plain data, in one order: an update can never overtake the
//! end of its turn.

use alloc::string::String;
use alloc::vec::Vec;

use crate::call::Call;
use crate::ids::CallId;
use crate::model::Text;
use crate::tools::{Card, Diff, Location, Proposal, Question, Todo};

/// One thing for the parent to do or to pass on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Begin a call; its news come back under its id.
    Start {
        /// Its id.
        id: CallId,
        /// What to do.
        call: Call,
    },
    /// End a call now.
    Abort {
        /// Which.
        id: CallId,
    },
    /// For the client to see.
    Update(Update),
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
    /// The turn is over. Nothing of it follows.
    Finished(Ending),
    /// For the log.
    Log(String),
}

/// A decision that is waited for, unique in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CardId(pub u64);

/// What the client sees of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Text of the model, or of the agent itself (then without a message).
    Text {
        /// Whether it is thought or said.
        thought: bool,
        /// The text.
        text: Text,
        /// The message it belongs to: one attempt of the model, unique in the session.
        message: Option<u64>,
    },
    /// A tool call, as it is known before it runs: pending.
    Call {
        /// Its id, unique in the session.
        id: String,
        /// What to show of it.
        card: Card,
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
    },
    /// A tool call is over.
    Ended {
        /// Its id.
        id: String,
        /// Whether it did what it should.
        ok: bool,
        /// What the person sees.
        text: String,
        /// What it changed.
        diffs: Vec<Diff>,
        /// Its result as data: JSON text.
        output: Option<String>,
        /// What it was about, where that is known better than before.
        locations: Vec<Location>,
    },
    /// The whole list of what is to be done.
    Plan(Vec<Todo>),
    /// What the context window holds.
    Usage {
        /// Tokens in it.
        used: u64,
        /// Tokens it can hold.
        size: u64,
    },
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
