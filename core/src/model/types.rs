//! Messages to a model and what comes back, as plain data. Knows no JSON and no transport.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::fault::ModelFault;
use crate::call::Call;

/// One message of the history that a provider gets.
///
/// A history is well formed when every tool use of an assistant message is followed by exactly
/// one [`ChatMessage::Tool`] of its id before the next message of another role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatMessage {
    /// The system prompt.
    System(String),
    /// What the person said, with what belongs to it.
    User(Vec<Part>),
    /// What the model said. Without text and without calls it is not sent.
    Assistant {
        /// Its text; may be empty.
        text: String,
        /// Its reasoning, where it is to be sent back; only endpoints with
        /// [`Endpoint::echo_reasoning`](super::Endpoint) get it.
        reasoning: Option<String>,
        /// The tools it asked for.
        calls: Vec<ToolUse>,
    },
    /// The result of one tool use.
    Tool {
        /// The [`ToolUse::id`] it answers.
        id: String,
        /// The result.
        text: String,
    },
}

impl ChatMessage {
    /// A person's message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(Vec::from([Part::Text(text.into())]))
    }
}

/// A part of a person's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// An image. Models that take none get a line of text in its place.
    Image {
        /// Its media type.
        mime: String,
        /// Its bytes in base64.
        data: String,
    },
}

/// A tool use as it stands in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// Ours: not empty, unique in the session.
    pub id: String,
    /// The tool, as the model named it.
    pub name: String,
    /// The text of a JSON object, always; see [`ModelCall::history_arguments`].
    pub arguments: String,
}

/// A tool that is offered to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it does, for the model.
    pub description: Cow<'static, str>,
    /// The text of the JSON Schema of its arguments.
    pub parameters: Cow<'static, str>,
}

/// One whole answer of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// What it said.
    pub text: String,
    /// What it thought, if the provider shows it.
    pub reasoning: String,
    /// The tools it wants, in its order, copies of one call left out.
    pub calls: Vec<ModelCall>,
    /// Why it stopped.
    pub finish: FinishReason,
    /// What it used, if the provider says so.
    pub usage: Option<Usage>,
}

/// A tool use as the provider gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelCall {
    /// The provider's id: may be empty, may have been used before.
    pub id: String,
    /// The tool; may be empty or unknown.
    pub name: String,
    /// The arguments as they came; empty ones and `null` are `{}`.
    pub arguments: String,
    /// Why the arguments are not the text of a JSON object, if they are not. Such a call must not
    /// run.
    pub fault: Option<String>,
}

impl ModelCall {
    /// The arguments as they may stand in the history: `{}` where what came is no JSON object, as
    /// providers refuse every later request that holds broken text.
    pub fn history_arguments(&self) -> &str {
        if self.fault.is_none() {
            &self.arguments
        } else {
            "{}"
        }
    }
}

/// Why a model stopped. A reason that is none of these is a [`ModelFault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// The answer was cut by a limit on its length; what there is of it is partial.
    Length,
    /// It waits for the results of its calls.
    ToolCalls,
    /// The provider's filter stopped it.
    ContentFilter,
}

impl FinishReason {
    /// The reason that fits what was done: some servers say `stop` and mean the calls they gave,
    /// some say that they call tools and call none.
    pub(super) fn of(said: Option<Self>, calls: bool) -> Self {
        match said {
            Some(Self::Stop) | None if calls => Self::ToolCalls,
            Some(Self::ToolCalls) | None if !calls => Self::Stop,
            Some(said) => said,
            None => Self::Stop,
        }
    }
}

/// Tokens of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Input, cached or not.
    pub prompt: u64,
    /// Output, reasoning included.
    pub completion: u64,
    /// Of the output: reasoning.
    pub reasoning: u64,
    /// Of the input: found in the provider's cache; none: not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_hit: Option<u64>,
    /// Of the input: not found there; none: not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_miss: Option<u64>,
}

/// What a [`ModelRun`](super::ModelRun) wants of its parent or tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelEvent {
    /// Start this call; its news come back by `handle_news`. It replaces the call before.
    Start(Call),
    /// Abort the call. No news of it are expected any more.
    Abort,
    /// An attempt begins, the first one too: text from here on belongs to a new message, and what
    /// came of an attempt before is no part of the answer.
    Attempt,
    /// More of what it says. Not empty.
    Text(Text),
    /// More of what it thinks. Not empty.
    Thought(Text),
    /// The attempt failed and another one comes.
    Retrying {
        /// After this pause.
        after: Duration,
        /// What was wrong, for people.
        why: String,
    },
    /// The answer is whole. The last event.
    Finished(Answer),
    /// There is no answer. The last event.
    Failed(ModelFault),
}

/// A piece of text that is cheap to hand on: a load script gives the same one many times.
#[derive(Clone)]
pub enum Text {
    /// Made for this event.
    Owned(String),
    /// The same as in other events.
    Shared(Arc<str>),
}

impl Text {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Owned(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::Owned(text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::Owned(text.into())
    }
}
