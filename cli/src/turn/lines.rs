//! The lines of `run --json`: their shape is a promise to scripts (see the help of `run`).

use reasonix_core::protocol::schema::SessionUpdate;
use serde::Serialize;

/// One line.
#[derive(Serialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum Line<'a> {
    /// A session is open.
    Session {
        /// Its id.
        session_id: &'a str,
        /// Where it works.
        cwd: &'a str,
        /// It was begun earlier.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        resumed: bool,
    },
    /// A session update, exactly as the protocol has it.
    Update {
        /// The update.
        update: &'a SessionUpdate,
    },
    /// A permission card was answered.
    Permission {
        /// The call it was about.
        tool_call_id: &'a str,
        /// What it does.
        title: &'a str,
        /// `allow_once`, `allow_always`, `reject_once`, `reject_always` or `cancelled`.
        answer: &'a str,
        /// Why, if nobody was asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<&'a str>,
    },
    /// The turn ended. The last line.
    End {
        /// Why, as the protocol says it.
        stop_reason: &'a str,
        /// Cards that were denied.
        denied: u32,
        /// The exit code.
        exit: u8,
        /// The session, to go on with it; none: it was not opened.
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<&'a str>,
    },
    /// It failed. The last line.
    Error {
        /// For people.
        message: &'a str,
        /// The code of the JSON-RPC error, if it was one.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// The exit code.
        exit: u8,
        /// The session, to go on with it; none: it was not opened.
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<&'a str>,
    },
}
