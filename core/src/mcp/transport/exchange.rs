//! One HTTP request and what comes back of it: a refusal, one JSON text, or events. Knows no
//! sessions and no retries.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::call::{Call, HeaderValue, HttpRequest, Opened};
use crate::ids::CallId;
use crate::limits::Limits;
use crate::mcp::{Context, Output};
use crate::secret::Secret;
use crate::wire::SseDecoder;

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Body {
    /// No head yet.
    Head,
    /// A status that is no success; the text is for people.
    Refused { head: Opened, text: Vec<u8> },
    /// One JSON text.
    Json(Vec<u8>),
    /// Events.
    Events(SseDecoder),
    /// Something that no server of this kind says: what it is called.
    Foreign(String),
    /// Nothing that matters.
    Ignored,
}

/// What a body came to say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Event { name: Option<String>, data: String },
    TooLong,
}

/// What stays of a stream of events to read it on.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// The id of the last event.
    pub last: Option<String>,
    /// What the server asks to wait before it is asked again.
    pub retry: Option<Duration>,
}

impl Body {
    pub fn open(&mut self, head: Opened, limits: &Limits) {
        let kind = head.header("content-type").unwrap_or("");
        let kind = kind.split(';').next().unwrap_or("").trim();
        let encoding = head.header("content-encoding").map(str::trim);
        let encoding = encoding.filter(|it| !it.is_empty() && !it.eq_ignore_ascii_case("identity"));
        *self = if !(200..300).contains(&head.status) {
            Self::Refused {
                head,
                text: Vec::new(),
            }
        } else if let Some(encoding) = encoding {
            let encoding = crate::mcp::catalogue::one_line(encoding, MAX_KIND);
            Self::Foreign(format!(
                "something packed by {encoding}, which was not asked for"
            ))
        } else if kind.eq_ignore_ascii_case("text/event-stream") {
            Self::Events(SseDecoder::new(limits.max_mcp_message))
        } else if kind.eq_ignore_ascii_case("application/json") {
            Self::Json(Vec::new())
        } else if matches!(head.status, 202 | 204) {
            Self::Ignored
        } else {
            let kind = crate::mcp::catalogue::one_line(kind, MAX_KIND);
            Self::Foreign(match kind.is_empty() {
                true => "something without a content type".into(),
                false => kind,
            })
        };
    }

    /// Takes bytes; events that are whole go to `said`.
    pub fn push(
        &mut self,
        bytes: &[u8],
        place: &mut Place,
        said: &mut VecDeque<Said>,
        limits: &Limits,
    ) {
        match self {
            Self::Head | Self::Foreign(_) | Self::Ignored => {}
            Self::Refused { text, .. } => {
                let room = limits.max_error_body.saturating_sub(text.len());
                text.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Self::Json(text) => {
                if text.len() + bytes.len() > limits.max_mcp_message {
                    *self = Self::Ignored;
                    said.push_back(Said::TooLong);
                } else {
                    text.extend_from_slice(bytes);
                }
            }
            Self::Events(events) => {
                events.push(bytes);
                let long = take(events, place, said);
                if long {
                    *self = Self::Ignored;
                    said.push_back(Said::TooLong);
                }
            }
        }
    }

    /// The body is complete; gives the JSON text, if it is one.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        match core::mem::replace(self, Self::Ignored) {
            Self::Json(text) => Some(text),
            // An event without its end may be cut anywhere: it is asked for again.
            Self::Head
            | Self::Refused { .. }
            | Self::Events(_)
            | Self::Foreign(_)
            | Self::Ignored => None,
        }
    }
}

/// Takes what events are whole; whether one is too long.
fn take(events: &mut SseDecoder, place: &mut Place, said: &mut VecDeque<Said>) -> bool {
    loop {
        match events.next_event() {
            Ok(Some(event)) if event.complete => {
                if let Some(id) = event.id.filter(|id| id.len() <= 1024) {
                    place.last = Some(id.into());
                }
                if !event.data.trim().is_empty() {
                    said.push_back(Said::Event {
                        name: event.event.map(String::from),
                        data: event.data.into(),
                    });
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(_) => return true,
        }
    }
    place.retry = events.retry_ms().map(Duration::from_millis).or(place.retry);
    false
}

/// Begins a request.
pub(super) fn start(
    cx: &mut Context<'_>,
    method: &'static str,
    url: &str,
    headers: &[(String, Secret)],
    more: Vec<(&str, HeaderValue)>,
    body: Vec<u8>,
) -> CallId {
    let id = CallId::new(cx.ids.next());
    let own = headers
        .iter()
        .map(|(name, value)| (name.clone(), HeaderValue::Hidden(value.clone())));
    let mut all: Vec<(String, HeaderValue)> = own.collect();
    for (name, value) in more {
        all.retain(|(other, _)| other != name);
        all.push((name.into(), value));
    }
    let request = HttpRequest {
        method,
        url: url.into(),
        headers: all,
        body,
        connect_time: cx.limits.mcp_start,
        reach: crate::reach::Reach::Anywhere,
    };
    let call = Call::Http(request);
    cx.out.push_back(Output::Start { id, call });
    id
}

/// Longest text of a refusal that is handed on, bytes. It is cut when its secrets are out.
const MAX_TOLD: usize = 8 << 10;

/// Longest name of a kind of content that is told, bytes.
const MAX_KIND: usize = 80;

/// What a refusal says to people.
pub(super) fn refusal(head: &Opened, text: &[u8]) -> String {
    let text = crate::mcp::catalogue::one_line(&String::from_utf8_lossy(text), MAX_TOLD);
    let status = head.status;
    let known = match status {
        300..=399 => " (a redirect; its address is not followed)",
        401 => " (it wants credentials: put them into its headers)",
        403 => " (not allowed)",
        404 => " (nothing is at this address)",
        429 => " (too many requests)",
        _ => "",
    };
    if text.is_empty() {
        format!("HTTP {status}{known}")
    } else {
        format!("HTTP {status}{known}: {text}")
    }
}
