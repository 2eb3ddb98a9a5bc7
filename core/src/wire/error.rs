//! JSON-RPC errors. Knows no method.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use super::text::cut;

/// Longest message of an error, bytes.
const MAX_MESSAGE: usize = 2048;

/// A JSON-RPC error: ours, or the peer's.
///
/// The codes are those of JSON-RPC 2.0 and of the ACP schema (`ErrorCode`); any other is a failure
/// like any other.
#[derive(Clone, Debug, Error, Serialize, Deserialize)]
#[error("{message} ({code})")]
#[non_exhaustive]
pub struct RpcError {
    /// The code; any 32-bit integer.
    pub code: i32,
    /// One line for people, at most 2048 bytes. Never holds what the peer sent: that may be secret.
    pub message: String,
    /// More, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// An error with any code. The message becomes one line and is cut to 2048 bytes on a character
    /// boundary.
    pub fn new(code: i32, message: &str) -> Self {
        let mut message = String::from(cut(message, MAX_MESSAGE));
        if message.contains(crate::shown::deceives) {
            message = message.replace(crate::shown::deceives, " ");
        }
        Self {
            code,
            message,
            data: None,
        }
    }

    /// −32700: a line is not JSON that can be taken.
    pub fn parse_error(why: &str) -> Self {
        Self::new(-32700, &format!("Parse error: {why}"))
    }

    /// −32600: no request, or one that cannot be taken now.
    pub fn invalid_request(why: &str) -> Self {
        Self::new(-32600, why)
    }

    /// −32601: no such method. The name is shown if it is short and plain.
    pub fn method_not_found(name: &str) -> Self {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./$:".contains(&byte);
        if name.len() <= 128 && name.bytes().all(plain) {
            Self::new(-32601, &format!("Method not found: {name}"))
        } else {
            Self::new(-32601, "Method not found")
        }
    }

    /// −32602: the parameters do not fit.
    pub fn invalid_params(why: &str) -> Self {
        Self::new(-32602, why)
    }

    /// −32603: something failed on this side.
    pub fn internal(why: &str) -> Self {
        Self::new(-32603, why)
    }

    /// −32800: the request was cancelled.
    pub fn cancelled() -> Self {
        Self::new(-32800, "Request cancelled")
    }

    /// −32000: authentication is required.
    pub fn auth_required(why: &str) -> Self {
        Self::new(-32000, why)
    }

    /// −32002: no such resource or session.
    pub fn resource_not_found(why: &str) -> Self {
        Self::new(-32002, why)
    }

    /// The same error with data.
    #[must_use]
    pub fn with_data(mut self, data: &(impl Serialize + ?Sized)) -> Self {
        let data = serde_json::value::to_raw_value(data);
        self.data = Some(data.expect("a type for the wire has string keys and serialises"));
        self
    }
}

/// Data is compared as text.
impl PartialEq for RpcError {
    fn eq(&self, other: &Self) -> bool {
        let data = |error: &Self| error.data.as_ref().map(|data| String::from(data.get()));
        self.code == other.code && self.message == other.message && data(self) == data(other)
    }
}

impl Eq for RpcError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_short_line() {
        let message = |text: &str| RpcError::new(1, text).message;
        assert_eq!(message("a\nb\r\tc\u{85}"), "a b  c ");
        assert_eq!(message(&"é".repeat(2000)).len(), 2048);
        assert_eq!(message(&format!("a{}", "é".repeat(2000))).len(), 2047);
        assert_eq!(message("short"), "short");
    }

    #[test]
    fn names_that_may_hold_anything_are_not_quoted() {
        assert_eq!(
            RpcError::method_not_found("a/b").message,
            "Method not found: a/b"
        );
        for name in ["my secret", "\u{2028}", &"x".repeat(129)] {
            assert_eq!(RpcError::method_not_found(name).message, "Method not found");
        }
    }

    #[test]
    fn data_is_left_out_if_there_is_none() {
        let error = RpcError::new(-1, "m");
        assert_eq!(
            serde_json::to_string(&error).unwrap(),
            r#"{"code":-1,"message":"m"}"#
        );
        let error = error.with_data(&[1]);
        let text = r#"{"code":-1,"message":"m","data":[1]}"#;
        assert_eq!(serde_json::to_string(&error).unwrap(), text);
        assert_eq!(serde_json::from_str::<RpcError>(text).unwrap(), error);
    }
}
