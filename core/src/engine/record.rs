//! What a session remembers, as events: one record a line of its transcript. The live history is
//! made by applying them, and what a client sees of calls, results, plans and notes is drawn from
//! them, so that a session that is loaded is the one that was left. Knows no files.
//!
//! | `type` | written when |
//! | --- | --- |
//! | `session` | the session is made; always the first |
//! | `roots` | it opens with other folders beside its working directory than before, and when one is added |
//! | `options` | it opens, and whenever one of its options changes |
//! | `user` | somebody or something speaks to the model: the person, a queued item, guidance, the agent |
//! | `assistant` | an answer of the model is whole, or broke off |
//! | `call` | a tool call is announced |
//! | `result` | a tool call is over |
//! | `plan` | the list of what is to be done changes |
//! | `command` | the person has the agent do something itself; the model does not hear it |
//! | `note` | the agent itself says something |
//! | `subagent` | a subagent begins, was answered by its model, or is over |
//! | `goal` | the goal changes, and at the end of each of its rounds |
//! | `summary` | the older part of the history is replaced by a summary |
//! | `end` | a turn is over; a prompt is answered only after it |
//! | `mended` | a session that broke off is opened again |
//!
//! Each line also has `at`, milliseconds since 1970. A reader skips types it does not know.

mod facts;

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::goal::Pursuit;
use crate::model::{Cost, Part, ToolUse, Usage};
use crate::tools::{Card, Diff, Location, Todo};

/// The version of the transcript's format that is written, and the newest one that is written to.
pub const VERSION: u32 = 1;

/// One thing that a session remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Record {
    /// What the session is.
    Session(Header),
    /// The folders that it has from here on, beside its working directory.
    Roots {
        /// All of them, in their order, as they were asked for.
        directories: Vec<String>,
    },
    /// What its options are from here on.
    Options(Options),
    /// Something was said to the model.
    User(User),
    /// The model said something.
    Assistant(Assistant),
    /// A tool call is announced.
    Call {
        /// Its id, unique in the session.
        id: String,
        /// What is shown of it.
        card: Card,
        /// The command line, if the person runs it themselves: the model hears of it with its
        /// result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<String>,
    },
    /// A tool call is over.
    Result(ToolResult),
    /// The whole list of what is to be done.
    Plan {
        /// The list.
        todos: Vec<Todo>,
    },
    /// The person has the agent itself do something, by a slash command; the model does not hear it.
    Command {
        /// As it was typed.
        text: String,
        /// What the client sent, where it is not that text alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Vec<Shown>>,
    },
    /// The agent itself says something; the model does not hear it.
    Note {
        /// What.
        text: String,
    },
    /// The first messages of the history are replaced by a summary.
    Summary {
        /// How many.
        gone: usize,
        /// What stands in their place.
        text: String,
        /// The number of the compaction, unique among the session's messages.
        #[serde(default)]
        id: u64,
        /// Tokens that it took, if the provider said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// What it cost, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// A subagent begins, was answered by its model, or is over.
    Subagent(Subagent),
    /// The goal as it stands from here on.
    Goal(Pursuit),
    /// A turn is over.
    End(End),
    /// The session broke off and is opened again: what could not be read before this line is known.
    Mended {
        /// Lines that could not be read.
        unreadable: usize,
    },
    /// Of a version that knows more.
    #[serde(other)]
    Unknown,
}

/// What a session is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// See [`VERSION`].
    pub v: u32,
    /// The session's id.
    pub id: String,
    /// Its working directory, as the client named it.
    pub cwd: String,
    /// When it was made, milliseconds since 1970.
    #[serde(default)]
    pub created: u64,
    /// The agent that made it, with its version.
    #[serde(default)]
    pub agent: String,
}

/// The options of a session, by the names they have on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// `provider/model`.
    pub model: String,
    /// None: the provider decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// How much of the tools the model gets.
    pub preset: String,
    /// What runs without asking; what was chosen, though the ceiling may be lower.
    pub approval: String,
    /// `normal`, `plan` or `goal`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mode: String,
}

/// Something said to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The number of the message, unique in the session.
    pub id: u64,
    /// Who says it.
    #[serde(default)]
    pub from: Author,
    /// What the model gets.
    pub text: String,
    /// Pictures that the model gets with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// What the person said, where it is not the text with its pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Vec<Shown>>,
    /// The item of the inbox that it comes from: this record is its claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The mode that the agent tells the model of with it, at the end of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// Who says something to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The person, by a prompt: a turn begins.
    #[default]
    Person,
    /// The person, by an item of the inbox: a turn begins.
    Queue,
    /// The person, while the turn runs.
    Guidance,
    /// The agent. Not shown.
    Host,
    /// The agent, and another round of the turn begins. Not shown.
    Round,
}

impl Author {
    /// Whether a turn begins with it.
    pub const fn begins_turn(self) -> bool {
        match self {
            Self::Person | Self::Queue => true,
            Self::Guidance | Self::Host | Self::Round => false,
        }
    }

    /// Whether the model forgets what comes from here on if its provider refuses it.
    pub const fn begins_round(self) -> bool {
        match self {
            Self::Person | Self::Queue | Self::Round => true,
            Self::Guidance | Self::Host => false,
        }
    }
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Its media type.
    pub mime: String,
    /// Its bytes in base64.
    pub data: String,
}

/// A part of what the person said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Text.
    Text(String),
    /// A picture, by its place among the message's.
    Image(usize),
    /// Text whose block says more than that.
    TextBlock {
        /// The text.
        text: String,
        /// The block without its text: JSON text.
        block: String,
    },
    /// A picture whose block says more than that.
    ImageBlock {
        /// Its place among the message's pictures.
        at: usize,
        /// The block without the bytes of the picture: JSON text.
        block: String,
    },
    /// Another block, as the client sent it: JSON text.
    Block(String),
}

impl Shown {
    /// Its text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::TextBlock { text, .. } => Some(text),
            Self::Image(_) | Self::ImageBlock { .. } | Self::Block(_) => None,
        }
    }
}

/// Something the model said: one attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assistant {
    /// The number of the message, unique in the session.
    pub id: u64,
    /// What it said and thought, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Said>,
    /// The tools it asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolUse>,
    /// Whether its thoughts are sent back to it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub echo: bool,
    /// How much of an answer it is.
    #[serde(default, skip_serializing_if = "Extent::is_whole")]
    pub extent: Extent,
    /// Tokens, if the provider said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What it cost, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl Assistant {
    /// What it said, in one piece.
    pub fn text(&self) -> String {
        self.joined(|said| match said {
            Said::Text(text) => Some(text),
            Said::Thought(_) => None,
        })
    }

    /// What it thought, in one piece.
    pub fn thought(&self) -> String {
        self.joined(|said| match said {
            Said::Thought(text) => Some(text),
            Said::Text(_) => None,
        })
    }

    fn joined<'a>(&'a self, part: impl Fn(&'a Said) -> Option<&'a String>) -> String {
        let mut joined = String::new();
        for text in self.said.iter().filter_map(part) {
            joined.push_str(text);
        }
        joined
    }
}

/// A piece of what a model says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Said.
    Text(String),
    /// Thought.
    Thought(String),
}

/// How much of an answer a record holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// The turn was cancelled or failed; the model hears of it what there is.
    Partial,
    /// Another attempt took its place; it was only shown.
    Dropped,
}

impl Extent {
    const fn is_whole(&self) -> bool {
        matches!(self, Self::Whole)
    }
}

/// The end of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub id: String,
    /// Whether it did what it should.
    pub ok: bool,
    /// What the model is told.
    pub text: String,
    /// What the person sees, if it is not the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// What it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<Diff>,
    /// Its result as data: JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What it was about, where that is known better than before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// Whether it changed files.
    #[serde(default, skip_serializing_if = "is_false")]
    pub wrote: bool,
    /// The command line that ran to its end: it may have verified what was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<String>,
    /// The session of the subagent that worked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Something about a subagent. Its tool calls are records of their own, as those of its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subagent {
    /// The call that it works for.
    pub call: String,
    /// What its session is called.
    pub id: String,
    /// It begins: what it is to do, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It begins: what it is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Its model answered: tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Its model answered: what that cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// It is over: how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Reason>,
    /// It is over: what it said last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How it ended.
    pub reason: Reason,
    /// Why, for people, if it failed; what is left to do, if it ended as it should but counts as
    /// paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The model has said all.
    EndTurn,
    /// An answer was cut by its length.
    MaxTokens,
    /// All its model calls were used.
    MaxTurnRequests,
    /// The provider refused the content: the model forgets the turn.
    Refusal,
    /// It was cancelled.
    Cancelled,
    /// It failed.
    Failed,
    /// The agent ended while it ran.
    Interrupted,
}

/// A message to the model that is not said yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// What the model gets.
    pub parts: Vec<Part>,
    /// What the person said, where it is not the same.
    pub shown: Option<Vec<Shown>>,
    /// The words of a goal that it sets, where they are not all that the person said.
    pub goal: Option<String>,
    /// The item of the inbox that it comes from.
    pub item: Option<String>,
}

impl Message {
    /// A message of parts.
    pub fn new(parts: Vec<Part>) -> Self {
        Self {
            parts,
            ..Self::default()
        }
    }

    /// A message of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Vec::from([Part::Text(text.into())]))
    }

    pub(super) fn into_user(self, id: u64, from: Author) -> User {
        let mut user = User {
            id,
            from,
            text: String::new(),
            images: Vec::new(),
            shown: self.shown,
            item: self.item,
            mode: None,
        };
        for part in self.parts {
            match part {
                Part::Text(text) if user.text.is_empty() => user.text = text,
                Part::Text(text) => {
                    user.text.push_str("\n\n");
                    user.text.push_str(&text);
                }
                Part::Image { mime, data } => user.images.push(Image { mime, data }),
            }
        }
        user
    }
}

impl User {
    /// Adds something that the agent tells the model and the person is not shown.
    pub(super) fn add_note(&mut self, note: &str) {
        let images = 0..self.images.len();
        let text = &self.text;
        self.shown.get_or_insert_with(|| {
            let said = (!text.is_empty()).then(|| Shown::Text(text.clone()));
            said.into_iter().chain(images.map(Shown::Image)).collect()
        });
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(note);
    }

    /// As the model gets it.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::with_capacity(self.images.len() + 1);
        parts.push(Part::Text(self.text.clone()));
        parts.extend(self.images.iter().map(|image| Part::Image {
            mime: image.mime.clone(),
            data: image.data.clone(),
        }));
        parts
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde calls it so
const fn is_false(flag: &bool) -> bool {
    !*flag
}
