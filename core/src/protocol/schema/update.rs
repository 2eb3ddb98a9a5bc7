//! `session/update`: everything an agent says about a session (ACP page: prompt turn). The kinds
//! are a closed set; newer ones are only for clients that ask for them.

use alloc::string::String;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use super::commands::AvailableCommandsUpdate;
use super::config::{ConfigOptionUpdate, CurrentModeUpdate};
use super::content::ContentBlock;
use super::extra::{
    CompactionSummaryChunk, CompactionUpdate, Notice, SessionInfoUpdate, SessionMessage,
    SessionMessageChunk, SubagentUpdate, UsageUpdate,
};
use super::ids::SessionId;
use super::object::{OWN, object, parse, tagged, write_tagged};
use super::plan::{Plan, PlanRemoved, PlanUpdate};
use super::tool_call::{ToolCall, ToolCallUpdate};

object! {
    /// `session/update`.
    SessionNotification {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// What is new.
        "update" update: SessionUpdate = Required,
        ;
    }
}

object! {
    /// A piece of a message.
    ContentChunk {
        /// The piece: valid text on its own.
        "content" content: ContentBlock = Required,
        ;
        /// The same for all pieces of one message.
        "messageId" message_id: Option<String> = Lenient,
    }
}

macro_rules! updates {
    ($( $(#[$doc:meta])* $variant:ident($ty:ident) = $tag:literal, )+) => {
        /// One update.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum SessionUpdate { $( $(#[$doc])* $variant($ty), )+ }

        impl SessionUpdate {
            /// The kind, as `sessionUpdate` says it.
            pub const fn kind(&self) -> &'static str {
                match self { $( Self::$variant(_) => $tag, )+ }
            }
        }

        impl Serialize for SessionUpdate {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                match self {
                    $( Self::$variant(update) => {
                        write_tagged(out, "sessionUpdate", $tag, update)
                    } )+
                }
            }
        }

        impl<'de> Deserialize<'de> for SessionUpdate {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let (raw, tag) = tagged(from, "sessionUpdate")?;
                match tag.as_deref() {
                    $( Some($tag) => parse(raw).map(Self::$variant), )+
                    Some(_) | None => Err(de::Error::custom(format_args!(
                        "{OWN}expected a known kind in `sessionUpdate`"
                    ))),
                }
            }
        }
    };
}

updates! {
    /// A piece of the person's message: an echo or a replay.
    UserMessageChunk(ContentChunk) = "user_message_chunk",
    /// A piece of the agent's message.
    AgentMessageChunk(ContentChunk) = "agent_message_chunk",
    /// A piece of the agent's thoughts.
    AgentThoughtChunk(ContentChunk) = "agent_thought_chunk",
    /// A tool call is announced.
    ToolCall(ToolCall) = "tool_call",
    /// A tool call has changed.
    ToolCallUpdate(ToolCallUpdate) = "tool_call_update",
    /// The plan.
    Plan(Plan) = "plan",
    /// One of several plans.
    PlanUpdate(PlanUpdate) = "plan_update",
    /// A plan is gone.
    PlanRemoved(PlanRemoved) = "plan_removed",
    /// The slash commands.
    AvailableCommandsUpdate(AvailableCommandsUpdate) = "available_commands_update",
    /// The mode has changed.
    CurrentModeUpdate(CurrentModeUpdate) = "current_mode_update",
    /// Options have changed.
    ConfigOptionUpdate(ConfigOptionUpdate) = "config_option_update",
    /// The title or time has changed.
    SessionInfoUpdate(SessionInfoUpdate) = "session_info_update",
    /// Tokens and cost.
    UsageUpdate(UsageUpdate) = "usage_update",
    /// Something to know.
    Notice(Notice) = "notice",
    /// A compaction of the conversation.
    CompactionUpdate(CompactionUpdate) = "compaction_update",
    /// A piece of a compaction's summary.
    CompactionSummaryChunk(CompactionSummaryChunk) = "compaction_summary_chunk",
    /// A child session.
    SubagentUpdate(SubagentUpdate) = "subagent_update",
    /// A message between sessions.
    SessionMessage(SessionMessage) = "session_message",
    /// A piece of such a message.
    SessionMessageChunk(SessionMessageChunk) = "session_message_chunk",
}
