//! Tool calls (ACP page: tool calls). Paths are absolute, lines count from 1.

use alloc::string::String;
use alloc::vec::Vec;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use super::content::ContentBlock;
use super::ids::SessionId;
use super::json::Json;
use super::object::{OWN, names, object, parse, tagged, write_tagged};

object! {
    /// `tool_call`: a call is announced.
    ToolCall {
        /// Its id, unique in the session.
        "toolCallId" tool_call_id: String = Required,
        /// What it does, for people.
        "title" title: String = Required,
        ;
        /// The tool's name.
        "name" name: Option<String> = Lenient,
        /// What kind of tool it is.
        "kind" kind: ToolKind = Defaulted,
        /// How far it is.
        "status" status: ToolCallStatus = Defaulted,
        /// What it shows.
        "content" content: Vec<ToolCallContent> = LenientList,
        /// The files it is about.
        "locations" locations: Vec<ToolCallLocation> = LenientList,
        /// Its arguments.
        "rawInput" raw_input: Option<Json> = Lenient,
        /// Its result.
        "rawOutput" raw_output: Option<Json> = Lenient,
    }
}

object! {
    /// `tool_call_update`, and the call in a permission request: what is absent is unchanged.
    ToolCallUpdate {
        /// The call.
        "toolCallId" tool_call_id: String = Required,
        ;
        /// What it does, for people.
        "title" title: Option<String> = Lenient,
        /// The tool's name.
        "name" name: Option<String> = Lenient,
        /// What kind of tool it is.
        "kind" kind: Option<ToolKind> = Lenient,
        /// How far it is.
        "status" status: Option<ToolCallStatus> = Lenient,
        /// What it shows: the whole list.
        "content" content: Option<Vec<ToolCallContent>> = MaybeList,
        /// The files it is about: the whole list.
        "locations" locations: Option<Vec<ToolCallLocation>> = MaybeList,
        /// Its arguments.
        "rawInput" raw_input: Option<Json> = Lenient,
        /// Its result.
        "rawOutput" raw_output: Option<Json> = Lenient,
    }
}

names! {
    /// What kind of tool it is; a hint for the client's icons.
    #[derive(Default)]
    ToolKind {
        /// Reads.
        Read = "read",
        /// Changes files.
        Edit = "edit",
        /// Removes files.
        Delete = "delete",
        /// Moves files.
        Move = "move",
        /// Searches.
        Search = "search",
        /// Runs programs.
        Execute = "execute",
        /// Thinks.
        Think = "think",
        /// Gets something from outside.
        Fetch = "fetch",
        /// Changes the mode.
        SwitchMode = "switch_mode",
        /// Anything else.
        #[default]
        Other = "other",
    }
}

names! {
    /// How far a call is: it only moves on, and its end is final.
    #[derive(Default)]
    ToolCallStatus {
        /// Not begun: its arguments stream in, or it waits for a permission.
        #[default]
        Pending = "pending",
        /// It runs.
        InProgress = "in_progress",
        /// It ended well.
        Completed = "completed",
        /// It ended badly, or was denied or cancelled.
        Failed = "failed",
    }
}

/// Something a call shows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolCallContent {
    /// A content block.
    Content(Content),
    /// A change of a file.
    Diff(Diff),
    /// A terminal of the client; embedded before it is released.
    Terminal(Terminal),
    /// Another session. Only for clients with the `subagents` capability.
    Session(SessionReference),
}

impl ToolCallContent {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Content(Content::new(ContentBlock::text(text)))
    }
}

object! {
    /// A content block.
    Content {
        /// The block.
        "content" content: ContentBlock = Required,
        ;
    }
}

object! {
    /// A change of a file.
    Diff {
        /// The file, absolute.
        "path" path: String = Required,
        /// Its text after the change.
        "newText" new_text: String = Required,
        ;
        /// Its text before; none: it is new.
        "oldText" old_text: Option<String> = Lenient,
    }
}

object! {
    /// A terminal of the client.
    Terminal {
        /// The terminal.
        "terminalId" terminal_id: String = Required,
        ;
    }
}

object! {
    /// Another session.
    SessionReference {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        ;
    }
}

object! {
    /// A place a call is about.
    ToolCallLocation {
        /// The file, absolute.
        "path" path: String = Required,
        ;
        /// The line, from 1.
        "line" line: Option<u32> = Lenient,
    }
}

impl Serialize for ToolCallContent {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Content(item) => write_tagged(out, "type", "content", item),
            Self::Diff(item) => write_tagged(out, "type", "diff", item),
            Self::Terminal(item) => write_tagged(out, "type", "terminal", item),
            Self::Session(item) => write_tagged(out, "type", "session", item),
        }
    }
}

impl<'de> Deserialize<'de> for ToolCallContent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (raw, tag) = tagged(from, "type")?;
        match tag.as_deref() {
            Some("content") => parse(raw).map(Self::Content),
            Some("diff") => parse(raw).map(Self::Diff),
            Some("terminal") => parse(raw).map(Self::Terminal),
            Some("session") => parse(raw).map(Self::Session),
            Some(_) | None => Err(de::Error::custom(format_args!(
                "{OWN}expected content of type content, diff, terminal or session"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_leaves_out_what_it_does_not_say_and_an_update_what_did_not_change() {
        let call = ToolCall::new("c1", "Read");
        assert_eq!(
            serde_json::to_string(&call).unwrap(),
            r#"{"toolCallId":"c1","title":"Read","kind":"other","status":"pending"}"#
        );
        let mut update = ToolCallUpdate::new("c1");
        update.status = Some(ToolCallStatus::Completed);
        update.raw_output = Json::from_text("1e400");
        let text = r#"{"toolCallId":"c1","status":"completed","rawOutput":1e400}"#;
        assert_eq!(serde_json::to_string(&update).unwrap(), text);
        assert_eq!(
            serde_json::from_str::<ToolCallUpdate>(text).unwrap(),
            update
        );
    }

    #[test]
    fn an_empty_text_of_a_diff_is_sent() {
        let mut diff = Diff::new("/a", "");
        diff.old_text = Some("x".into());
        assert_eq!(
            serde_json::to_string(&ToolCallContent::Diff(diff)).unwrap(),
            r#"{"type":"diff","path":"/a","newText":"","oldText":"x"}"#
        );
    }

    #[test]
    fn malformed_entries_of_a_list_are_left_out() {
        let call: ToolCall = serde_json::from_str(
            r#"{"toolCallId":"c","title":"t","kind":"zzz","status":5,"content":[{"type":"zzz"},
                {"type":"terminal","terminalId":"t"},7],"locations":{}}"#,
        )
        .unwrap();
        assert_eq!(call.kind, ToolKind::Other);
        assert_eq!(call.status, ToolCallStatus::Pending);
        assert_eq!(call.content.len(), 1);
        assert!(call.locations.is_empty());
    }
}
