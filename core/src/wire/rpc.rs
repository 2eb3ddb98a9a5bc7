//! JSON-RPC 2.0 messages, in and out, as ACP narrows them: one object a line, no batches. Knows no
//! method.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use serde::Serialize;

pub use super::error::RpcError;
pub use super::id::RequestId;
use super::id::write_int;
use super::json::write_value;
use super::salvage::answer_id;
use super::scan::{Envelope, Shape, scan, string_value};
use super::text::{cut, write_string};
use crate::error::PeerFault;

/// One message. The texts of values passed the scan: they are JSON, no key twice. Exhaustive: a
/// message is one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadFault {
    /// For logs.
    pub fault: PeerFault,
    /// The answer that is due, with its id (`null` if none could be read). None for what looks
    /// like a response, so that two peers cannot exchange errors for ever, and for what looks like
    /// a notification.
    pub reply: Option<(RequestId, RpcError)>,
    /// The id of a request of ours whose answer this was: that request has failed. Beside a
    /// `reply` for a frame that holds nothing but its id (a result that is undefined leaves such a
    /// frame in JavaScript), and for a line that is no JSON but looks like an answer (half of an
    /// emoji where a text was cut, NaN): if a request of ours is open under it, this was its
    /// answer, and there is nothing to reply.
    pub spoils: Option<RequestId>,
}

/// Reads one frame (without its line end) that may be nested `max_depth` deep.
///
/// Texts of params and results are neither copied nor parsed: `serde_json::from_str` them.
pub fn read(frame: &[u8], max_depth: usize) -> Result<Message<'_>, Box<ReadFault>> {
    let scan = scan(frame, max_depth).map_err(|fault| {
        let error = RpcError::parse_error(&fault.to_string());
        let fault = refused(PeerFault::NotJson, RequestId::NULL, error);
        Box::new(ReadFault {
            spoils: answer_id(frame),
            ..*fault
        })
    })?;
    let envelope = match scan.shape {
        Shape::Object(envelope) => envelope,
        Shape::Array => return Err(invalid(RequestId::NULL, "Batches are not part of ACP")),
        Shape::Scalar => return Err(invalid(RequestId::NULL, "Not a JSON object")),
    };
    let id = match envelope.id {
        Some(_) if envelope.id_twice => Id::Unreadable,
        Some(token) => RequestId::from_token(token).map_or(Id::Unreadable, Id::Read),
        None => Id::Absent,
    };
    let fault = common_fault(&envelope, scan.duplicates, &id);
    match envelope {
        Envelope {
            method: Some(method),
            result: None,
            error: None,
            params,
            ..
        } => read_call(method, params, id, fault),
        Envelope {
            method: None,
            result,
            error,
            ..
        } if result.is_some() || error.is_some() => read_response(result, error, id, fault),
        Envelope {
            method: Some(_), ..
        } => Err(id.invalid(fault.unwrap_or("A method beside a result or error"))),
        Envelope { method: None, .. } => {
            let spoils = match &id {
                Id::Read(id) if !id.is_null() => Some(id.clone()),
                Id::Read(_) | Id::Absent | Id::Unreadable => None,
            };
            let why = fault.unwrap_or("Neither a method nor a result nor an error");
            let fault = id.invalid(why);
            Err(Box::new(ReadFault { spoils, ..*fault }))
        }
    }
}

/// The fault of a line longer than `limit` bytes, which was skipped: answered with
/// `data.code: "frame_too_large"` and id null.
pub fn too_long(limit: usize) -> Box<ReadFault> {
    #[derive(Serialize)]
    struct Data {
        code: &'static str,
        limit: usize,
    }
    let data = Data {
        code: "frame_too_large",
        limit,
    };
    let error = RpcError::invalid_request("A line is longer than the limit").with_data(&data);
    refused(PeerFault::FrameTooLong { limit }, RequestId::NULL, error)
}

/// Appends a request of ours as one whole frame, LF included. Params that are null are left out.
///
/// Like all writers here: U+2028 and U+2029 leave escaped, the LF is the only one, and what
/// serialises to no JSON at all (a map with keys that are no strings) is a bug and panics.
pub fn write_request(out: &mut Vec<u8>, id: u64, method: &str, params: &(impl Serialize + ?Sized)) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    // Ids are counted from 1 and do not come near 2^63.
    write_int(out, id as i64);
    out.extend_from_slice(b",\"method\":");
    write_method(out, method, params);
}

/// Appends a notification as one whole frame, LF included. Params that are null are left out.
pub fn write_notification(out: &mut Vec<u8>, method: &str, params: &(impl Serialize + ?Sized)) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    write_method(out, method, params);
}

/// Appends the answer to a request as one whole frame, LF included.
pub fn write_result(out: &mut Vec<u8>, id: &RequestId, result: &(impl Serialize + ?Sized)) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write_json(out);
    out.extend_from_slice(b",\"result\":");
    write_value(out, result);
    out.extend_from_slice(b"}\n");
}

/// Appends the answer to a request that failed as one whole frame, LF included.
pub fn write_error(out: &mut Vec<u8>, id: &RequestId, error: &RpcError) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write_json(out);
    out.extend_from_slice(b",\"error\":");
    write_value(out, error);
    out.extend_from_slice(b"}\n");
}

enum Id {
    Absent,
    Unreadable,
    Read(RequestId),
}

impl Id {
    fn or_null(self) -> RequestId {
        match self {
            Self::Read(id) => id,
            Self::Absent | Self::Unreadable => RequestId::NULL,
        }
    }

    fn invalid(self, why: &'static str) -> Box<ReadFault> {
        invalid(self.or_null(), why)
    }
}

/// What is wrong whatever the message was meant to be.
fn common_fault(envelope: &Envelope<'_>, duplicates: bool, id: &Id) -> Option<&'static str> {
    if duplicates {
        return Some("A key occurs twice in one object");
    }
    if envelope.jsonrpc != Some("\"2.0\"")
        && envelope.jsonrpc.and_then(string_value).as_deref() != Some("2.0")
    {
        return Some("The member jsonrpc is not \"2.0\"");
    }
    match id {
        Id::Unreadable => Some("The id is not a string, number or null"),
        Id::Absent | Id::Read(_) => None,
    }
}

fn read_call<'a>(
    method: &'a str,
    params: Option<&'a str>,
    id: Id,
    fault: Option<&'static str>,
) -> Result<Message<'a>, Box<ReadFault>> {
    let Some(method) = string_value(method) else {
        return Err(id.invalid(fault.unwrap_or("The method is not a string")));
    };
    let structured = matches!(
        params.and_then(|text| text.bytes().next()),
        None | Some(b'{' | b'[' | b'n')
    );
    let fault = fault.or((!structured).then_some("The params are not an object or array"));
    let params = params.filter(|text| *text != "null");
    match (id, fault) {
        (Id::Absent, None) => Ok(Message::Notification { method, params }),
        (Id::Read(id), None) => Ok(Message::Request { id, method, params }),
        (Id::Absent, Some(why)) => Err(dropped(why, None)),
        (id, why) => Err(id.invalid(why.unwrap_or("The id cannot be read"))),
    }
}

fn read_response<'a>(
    result: Option<&'a str>,
    error: Option<&'a str>,
    id: Id,
    fault: Option<&'static str>,
) -> Result<Message<'a>, Box<ReadFault>> {
    let fault = match (result, error, fault, &id) {
        (_, _, Some(why), _) => why,
        (_, _, None, Id::Absent | Id::Unreadable) => "An answer without a readable id",
        (Some(_), Some(_), None, _) => "An answer with both a result and an error",
        (Some(result), None, None, Id::Read(id)) => {
            let (id, result) = (id.clone(), Ok(result));
            return Ok(Message::Response { id, result });
        }
        (None, error, None, Id::Read(id)) => match error.and_then(read_error) {
            Some(error) => {
                let (id, result) = (id.clone(), Err(error));
                return Ok(Message::Response { id, result });
            }
            None => "An answer whose error has no code and message",
        },
    };
    let spoils = match id {
        Id::Read(id) if !id.is_null() => Some(id),
        Id::Read(_) | Id::Absent | Id::Unreadable => None,
    };
    Err(dropped(fault, spoils))
}

fn read_error(text: &str) -> Option<RpcError> {
    // An array would be taken for the members in order.
    if !text.starts_with('{') {
        return None;
    }
    let mut error: RpcError = serde_json::from_str(text).ok()?;
    error.message.truncate(cut(&error.message, 2048).len());
    Some(error)
}

fn invalid(id: RequestId, why: &'static str) -> Box<ReadFault> {
    refused(PeerFault::NotRpc(why), id, RpcError::invalid_request(why))
}

fn refused(fault: PeerFault, id: RequestId, error: RpcError) -> Box<ReadFault> {
    Box::new(ReadFault {
        fault,
        reply: Some((id, error)),
        spoils: None,
    })
}

fn dropped(why: &'static str, spoils: Option<RequestId>) -> Box<ReadFault> {
    Box::new(ReadFault {
        fault: PeerFault::NotRpc(why),
        reply: None,
        spoils,
    })
}

fn write_method(out: &mut Vec<u8>, method: &str, params: &(impl Serialize + ?Sized)) {
    write_string(out, method);
    let end = out.len();
    out.extend_from_slice(b",\"params\":");
    let start = out.len();
    write_value(out, params);
    if &out[start..] == b"null" {
        out.truncate(end);
    }
    out.extend_from_slice(b"}\n");
}

#[cfg(test)]
mod tests;
