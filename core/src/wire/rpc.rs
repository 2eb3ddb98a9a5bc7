//! JSON-RPC 2.0: ids, errors, messages in and out. Knows no method.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::PeerFault;

/// The id of a request, echoed exactly as it came (`Display` and `Serialize` give the JSON token).
///
/// Equal by JSON type and value: `"a"` is `"\u0061"`, `1` is not `"1"`. A number that is not
/// written as a 64-bit integer (`1.0`, `1e3`, 2^64) is equal to the same literal only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(Repr);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Repr {
    Null,
    Int(i64),
}

impl RequestId {
    /// `null`: the id of an answer to what had no readable id.
    pub const NULL: Self = Self(Repr::Null);

    /// The id that the JSON text is: a string, a number or null; else none.
    pub fn from_json(text: &str) -> Option<Self> {
        let _ = text;
        todo!()
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self.0, Repr::Null)
    }

    /// The number, if it is an integer that fits.
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Int(number) => number.try_into().ok(),
            Repr::Null => None,
        }
    }

    /// Appends the JSON token.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let _ = out;
        todo!()
    }
}

impl From<u64> for RequestId {
    fn from(_number: u64) -> Self {
        todo!()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({self})")
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
        todo!()
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(_deserializer: D) -> Result<Self, D::Error> {
        todo!()
    }
}

/// A JSON-RPC error: ours, or the peer's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RpcError {
    /// The code; any 32-bit integer.
    pub code: i32,
    /// One short sentence for people; at most 2048 bytes when it is ours.
    pub message: String,
    /// More, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// An error with any code. The message is cut to 2048 bytes on a character boundary.
    pub fn new(code: i32, message: &str) -> Self {
        let _ = (code, message);
        todo!()
    }

    /// −32700: a line is not JSON.
    pub fn parse_error() -> Self {
        todo!()
    }

    /// −32600: JSON, but not a request, or one that cannot be taken now.
    pub fn invalid_request(message: &str) -> Self {
        Self::new(-32600, message)
    }

    /// −32601: no such method.
    pub fn method_not_found(name: &str) -> Self {
        let _ = name;
        todo!()
    }

    /// −32602: the parameters do not fit.
    pub fn invalid_params(message: &str) -> Self {
        Self::new(-32602, message)
    }

    /// −32603: something failed on our side.
    pub fn internal(message: &str) -> Self {
        Self::new(-32603, message)
    }

    /// −32800: the request was cancelled.
    pub fn cancelled() -> Self {
        todo!()
    }

    /// −32000: authentication is required.
    pub fn auth_required(message: &str) -> Self {
        Self::new(-32000, message)
    }

    /// −32002: no such resource or session.
    pub fn resource_not_found(message: &str) -> Self {
        Self::new(-32002, message)
    }

    /// The same error with data.
    #[must_use]
    pub fn with_data(self, data: &impl Serialize) -> Self {
        let _ = data;
        todo!()
    }
}

/// One message. Texts of values are valid JSON: they passed the scan.
#[derive(Clone, Debug)]
pub enum Message<'a> {
    /// A request: has to be answered exactly once.
    Request {
        /// Its id.
        id: RequestId,
        /// Its method.
        method: Cow<'a, str>,
        /// The text of a JSON object or array; none if absent or null.
        params: Option<&'a str>,
    },
    /// A notification: never answered.
    Notification {
        /// Its method.
        method: Cow<'a, str>,
        /// The text of a JSON object or array; none if absent or null.
        params: Option<&'a str>,
    },
    /// The answer to a request of ours.
    Response {
        /// The id of our request, if it is one.
        id: RequestId,
        /// The text of the result, or the error.
        result: Result<&'a str, RpcError>,
    },
}

/// What is wrong with a frame, and what has to follow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadFault {
    /// For logs.
    pub fault: PeerFault,
    /// The answer that is due, with its id (`null` if none could be read). None for what looks
    /// like a response or a notification.
    pub reply: Option<(RequestId, RpcError)>,
    /// The id of a request of ours whose answer this was: it has failed.
    pub spoils: Option<RequestId>,
}

/// Reads one frame (without its line end) that may be nested `max_depth` deep.
///
/// The text of params and result is not copied or parsed again: `serde_json::from_str` it.
pub fn read(frame: &[u8], max_depth: usize) -> Result<Message<'_>, ReadFault> {
    let _ = (frame, max_depth);
    todo!()
}

/// Appends a request of ours as one whole frame, LF included.
pub fn write_request(out: &mut Vec<u8>, id: u64, method: &str, params: &(impl Serialize + ?Sized)) {
    let _ = (out, id, method, params);
    todo!()
}

/// Appends a notification as one whole frame, LF included.
pub fn write_notification(out: &mut Vec<u8>, method: &str, params: &(impl Serialize + ?Sized)) {
    let _ = (out, method, params);
    todo!()
}

/// Appends the answer to a request as one whole frame, LF included.
pub fn write_result(out: &mut Vec<u8>, id: &RequestId, result: &(impl Serialize + ?Sized)) {
    let _ = (out, id, result);
    todo!()
}

/// Appends the answer to a request that failed as one whole frame, LF included.
pub fn write_error(out: &mut Vec<u8>, id: &RequestId, error: &RpcError) {
    let _ = (out, id, error);
    todo!()
}
