//! How the program ends: the exit codes, in one place.

use std::fmt;
use std::process::ExitCode;

use reasonix_core::wire::RpcError;
use serde::Deserialize;

use crate::render::text::safe;

/// How the program ends. The number is what a shell sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All is well: the turn ended, the client closed its end.
    Ok = 0,
    /// It failed: provider, connection, file system.
    Failed = 1,
    /// Flags or files make no sense; nothing was started.
    Usage = 2,
    /// Something was denied, or the model refused.
    Denied = 3,
    /// The turn was cut short by a limit.
    Limit = 4,
    /// Ctrl-C.
    Cancelled = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what it is for, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How the program ends.
    pub exit: Exit,
    /// What is wrong and what can be done.
    pub message: String,
    /// The code of the JSON-RPC error, if the agent answered one.
    pub code: Option<i32>,
}

impl Failure {
    /// Flags or files make no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            message: message.into(),
            code: None,
        }
    }

    /// Something failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Failed,
            message: message.into(),
            code: None,
        }
    }

    /// The agent answered an error: what it says, and what can be done about it.
    pub fn answered(error: &RpcError) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Data {
            how_to: Option<String>,
        }
        let data = error.data.as_ref();
        let data = data.and_then(|data| serde_json::from_str::<Data>(data.get()).ok());
        let mut message = safe(&error.message).into_owned();
        if let Some(how_to) = data.and_then(|data| data.how_to)
            && !message.contains(&how_to)
        {
            message = format!("{message}\n{}", safe(&how_to));
        }
        Self {
            code: Some(error.code),
            ..Self::failed(message)
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
