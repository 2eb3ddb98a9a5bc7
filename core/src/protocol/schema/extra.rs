//! Updates about a session itself: its title, use, notices, compaction, subagents (ACP v1 beyond
//! the turn). All but the first two are only for clients that ask for them.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::content::ContentBlock;
use super::ids::SessionId;
use super::initialize::Marker;
use super::json::{Json, Number, Patch};
use super::object::{object, open_names};

object! {
    /// `session_info_update`.
    SessionInfoUpdate {
        /// Its title.
        "title" title: Patch<String> = Patched,
        /// When it last changed, ISO 8601.
        "updatedAt" updated_at: Patch<String> = Patched,
    }
}

object! {
    /// `usage_update`.
    UsageUpdate {
        /// Tokens in the context now.
        "used" used: u64 = Required,
        /// Tokens that fit in.
        "size" size: u64 = Required,
        ;
        /// What the session has cost so far.
        "cost" cost: Option<Cost> = Lenient,
    }
}

object! {
    /// An amount of money, or of another unit.
    Cost {
        /// How much.
        "amount" amount: Number = Required,
        /// Of what: an ISO 4217 code or another unit.
        "currency" currency: String = Required,
        ;
    }
}

object! {
    /// `notice`. Only for clients with the `session.notices` capability; not part of a replay.
    Notice {
        /// How grave it is.
        "severity" severity: NoticeSeverity = Required,
        /// What happened, plain text, not empty.
        "title" title: String = Required,
        ;
        /// More about it.
        "description" description: Option<String> = Lenient,
    }
}

open_names! {
    /// How grave a notice is.
    NoticeSeverity {
        /// To know.
        Info = "info",
        /// To watch.
        Warning = "warning",
        /// To act on.
        Error = "error",
    }
}

object! {
    /// `compaction_update`. Only for clients with the `session.compaction` capability.
    CompactionUpdate {
        /// The compaction.
        "compactionId" compaction_id: String = Required,
        /// How far it is; one final status.
        "status" status: CompactionStatus = Required,
        ;
        /// What is left of the conversation; only when completed.
        "summary" summary: Patch<Vec<ContentBlock>> = Patched,
        /// What went wrong; only when failed.
        "error" error: Patch<String> = Patched,
    }
}

open_names! {
    /// How far a compaction is.
    CompactionStatus {
        /// It runs.
        InProgress = "in_progress",
        /// It ended well.
        Completed = "completed",
        /// It ended badly.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

/// Our part of the `_meta` of a [`CompactionUpdate`] that is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompactionMeta {
    /// What it holds.
    #[serde(rename = "reasonix.io")]
    pub ours: Compacted,
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Compacted {
    /// How many messages of the conversation the summary stands for.
    #[serde(rename = "compactedMessages")]
    pub messages: usize,
}

impl CompactionMeta {
    /// The summary stands for so many messages.
    pub const fn new(messages: usize) -> Self {
        Self {
            ours: Compacted { messages },
        }
    }
}

object! {
    /// `compaction_summary_chunk`. Only while the compaction is in progress, and only for clients
    /// with the `session.compaction` capability.
    CompactionSummaryChunk {
        /// The compaction.
        "compactionId" compaction_id: String = Required,
        /// A piece of the summary.
        "content" content: ContentBlock = Required,
        ;
    }
}

object! {
    /// `subagent_update`, on the parent's session and before anything of the child. Only for
    /// clients with the `subagents` capability.
    SubagentUpdate {
        /// The child's session.
        "sessionId" session_id: SessionId = Required,
        ;
        /// Its title.
        "title" title: Patch<String> = Patched,
        /// What it does.
        "description" description: Patch<String> = Patched,
        /// What the client may do with it.
        "capabilities" capabilities: Patch<SubagentSessionCapabilities> = Patched,
        /// What it is doing: an object with a `state`.
        "state" state: Patch<Json> = Patched,
        /// Its working directory, absolute.
        "cwd" cwd: Patch<String> = Patched,
        /// Its further roots, absolute.
        "additionalDirectories" additional_directories: Patch<Vec<String>> = Patched,
    }
}

object! {
    /// What a client may do with a child session.
    SubagentSessionCapabilities {
        /// `session/cancel`.
        "cancel" cancel: Option<Marker> = Lenient,
    }
}

object! {
    /// `session_message`. Only for clients with the `subagents` capability.
    SessionMessage {
        /// The message.
        "messageId" message_id: String = Required,
        ;
        /// Who sent it.
        "senderSessionId" sender_session_id: Patch<SessionId> = Patched,
        /// Who gets it.
        "recipientSessionId" recipient_session_id: Patch<SessionId> = Patched,
        /// Its id at the sender's.
        "senderMessageId" sender_message_id: Patch<String> = Patched,
        /// Its id at the recipient's.
        "recipientMessageId" recipient_message_id: Patch<String> = Patched,
        /// What it says.
        "content" content: Patch<Vec<ContentBlock>> = Patched,
    }
}

object! {
    /// `session_message_chunk`. Only for clients with the `subagents` capability.
    SessionMessageChunk {
        /// The message.
        "messageId" message_id: String = Required,
        /// A piece of it.
        "content" content: ContentBlock = Required,
        ;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_null_and_value_are_three_things() {
        for (text, title) in [
            ("{}", Patch::Absent),
            (r#"{"title":null}"#, Patch::Null),
            (r#"{"title":"t"}"#, Patch::Value("t".into())),
        ] {
            let update: SessionInfoUpdate = serde_json::from_str(text).unwrap();
            assert_eq!(update.title, title);
            assert_eq!(serde_json::to_string(&update).unwrap(), text);
        }
        let update: SessionInfoUpdate = serde_json::from_str(r#"{"title":5}"#).unwrap();
        assert_eq!(update.title, Patch::Absent);
    }

    #[test]
    fn an_amount_stays_the_decimal_it_was() {
        let text = r#"{"used":1,"size":2,"cost":{"amount":0.10,"currency":"USD"}}"#;
        let update: UsageUpdate = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&update).unwrap(), text);
    }
}
