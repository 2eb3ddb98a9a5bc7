//! Why a model gave no answer, and what a provider's refusal says. Knows nothing of retries.

use alloc::format;
use alloc::string::String;

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use super::chunk;
use crate::secret::Secret;
use crate::wire::text;

/// Why there is no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
#[non_exhaustive]
pub struct ModelFault {
    /// What kind of failure.
    pub kind: FaultKind,
    /// The HTTP status, if there was one that was no success.
    pub status: Option<u16>,
    /// For people: what happened, with the provider's own words where it gave some. One line, at
    /// most 2048 bytes, the key taken out.
    pub message: String,
}

/// Kinds of failure that a parent tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// The key is missing, or the provider refused it (401). Nothing else is a matter of keys.
    Auth,
    /// The request will never be taken as it is: 400, 402, 403, 404, 422 and their like.
    Permanent,
    /// The messages are too long for the model: they must be compacted first.
    ContextOverflow,
    /// The network or the provider failed (408, 429, 5xx, a broken stream), and the repeats are
    /// used up.
    Transient,
    /// Silence for too long.
    Timeout,
    /// What came is no answer of a model: no stream, no JSON, a finish reason that is not known.
    Garbage,
}

/// Longest message of a fault, bytes.
const MAX_MESSAGE: usize = 2048;

impl ModelFault {
    /// A fault; the message is made one line and cut.
    pub(super) fn new(kind: FaultKind, message: &str) -> Self {
        Self {
            kind,
            status: None,
            message: one_line(message),
        }
    }

    /// What a provider's refusal means: an answer with `status`, a body, and nothing else.
    pub(super) fn refusal(provider: &str, status: u16, body: &str) -> Self {
        let told = Told::read(body);
        Self {
            status: Some(status),
            ..Self::new(
                kind_of(status, &told.text),
                &format!("{provider} answered {status}: {}", told.text),
            )
        }
    }

    /// What an `error` member in an answer means.
    pub(super) fn in_answer(provider: &str, error: &RawValue) -> Self {
        let told = Told::of_error(error);
        let kind = match told.status {
            Some(status) => kind_of(status, &told.text),
            None if is_overflow(&told.text) => FaultKind::ContextOverflow,
            None => FaultKind::Transient,
        };
        Self {
            status: told.status,
            ..Self::new(
                kind,
                &format!("{provider} reported an error: {}", told.text),
            )
        }
    }

    /// The same, saying how often it was tried again.
    pub(super) fn after_repeats(mut self, repeats: u32) -> Self {
        let more = match repeats {
            0 => return self,
            1 => String::from(" (after 1 repeat)"),
            _ => format!(" (after {repeats} repeats)"),
        };
        let room = MAX_MESSAGE.saturating_sub(more.len());
        let kept = text::cut(&self.message, room).len();
        self.message.truncate(kept);
        self.message.push_str(&more);
        self
    }

    /// The same without the key, should the provider have repeated it.
    pub(super) fn without(mut self, key: Option<&Secret>) -> Self {
        if let Some(key) = key {
            key.redact(&mut self.message);
        }
        self
    }
}

fn kind_of(status: u16, told: &str) -> FaultKind {
    match status {
        401 => FaultKind::Auth,
        400 | 413 | 422 | 500 if is_overflow(told) => FaultKind::ContextOverflow,
        408 | 429 | 500..=599 => FaultKind::Transient,
        _ => FaultKind::Permanent,
    }
}

/// How providers say that the messages are too long; lower case.
const OVERFLOW: [&str; 9] = [
    "context_length_exceeded",
    "maximum context length",
    "exceed_context_size",
    "exceeds the available context size",
    "context window",
    "context length",
    "prompt is too long",
    "input is too long",
    "too many tokens",
];

fn is_overflow(told: &str) -> bool {
    let told = told.to_ascii_lowercase();
    OVERFLOW.iter().any(|words| told.contains(words))
}

/// What a body or an `error` member tells.
struct Told {
    text: String,
    status: Option<u16>,
}

#[derive(Deserialize)]
struct BodyWire<'a> {
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    detail: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ErrorWire<'a> {
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
}

impl Told {
    fn read(body: &str) -> Self {
        let body = body.trim_start_matches('\u{feff}').trim();
        let text = if body.is_empty() {
            "(no body)".into()
        } else if body.starts_with('<') {
            html(body)
        } else if let Ok(wire) = serde_json::from_str::<BodyWire<'_>>(body) {
            match (wire.error, wire.message.or(wire.detail)) {
                (Some(error), _) => return Self::of_error(error),
                (None, Some(told)) => chunk::text(told).unwrap_or_else(|| told.get().into()),
                (None, None) => body.into(),
            }
        } else {
            body.into()
        };
        Self { text, status: None }
    }

    fn of_error(error: &RawValue) -> Self {
        if let Some(text) = chunk::text(error) {
            return Self { text, status: None };
        }
        let Ok(wire) = serde_json::from_str::<ErrorWire<'_>>(error.get()) else {
            return Self {
                text: error.get().into(),
                status: None,
            };
        };
        let code = wire.code.and_then(chunk::word);
        let mut text = wire
            .message
            .and_then(chunk::text)
            .unwrap_or_else(|| error.get().into());
        // The message alone is often "invalid request"; the code then says which.
        for more in [code.clone(), wire.kind.and_then(chunk::word)]
            .into_iter()
            .flatten()
        {
            if more.parse::<u64>().is_err() && !text.contains(&more) {
                text.push_str(&format!(" ({more})"));
            }
        }
        Self {
            text,
            status: code
                .and_then(|code| code.parse().ok())
                .filter(|code| (400..600).contains(code)),
        }
    }
}

/// What an HTML page is about.
pub(super) fn html(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|at| {
        let begin = at + lower[at..].find('>')? + 1;
        let end = begin + lower[begin..].find("</title")?;
        Some(page[begin..end].trim())
    });
    match title {
        Some(title) if !title.is_empty() => format!("an HTML page ({title})"),
        Some(_) | None => "an HTML page".into(),
    }
}

/// The beginning of what somebody said, on one line.
fn one_line(message: &str) -> String {
    crate::shown::line(message, MAX_MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_the_providers_words_and_its_kind() {
        use FaultKind::*;
        for (status, body, kind, message) in [
            (
                401,
                r#"{"error":{"message":"bad key","code":"invalid_api_key"}}"#,
                Auth,
                "p answered 401: bad key (invalid_api_key)",
            ),
            (
                400,
                r#"{"error":{"message":"no such\nfield"}}"#,
                Permanent,
                "p answered 400: no such field",
            ),
            (
                402,
                r#"{"error":{"message":"Insufficient Balance","type":"unknown_error"}}"#,
                Permanent,
                "p answered 402: Insufficient Balance (unknown_error)",
            ),
            (403, "", Permanent, "p answered 403: (no body)"),
            (
                404,
                r#"{"error":"model not found"}"#,
                Permanent,
                "p answered 404: model not found",
            ),
            (
                422,
                r#"{"detail":[{"loc":["body"]}]}"#,
                Permanent,
                r#"p answered 422: [{"loc":["body"]}]"#,
            ),
            (302, "", Permanent, "p answered 302: (no body)"),
            (
                429,
                r#"{"message":"slow down"}"#,
                Transient,
                "p answered 429: slow down",
            ),
            (
                502,
                "<html><head><TITLE>502 Bad Gateway</title>",
                Transient,
                "p answered 502: an HTML page (502 Bad Gateway)",
            ),
            (500, "boom", Transient, "p answered 500: boom"),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 65536 tokens."}}"#,
                ContextOverflow,
                "p answered 400: This model's maximum context length is 65536 tokens.",
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds","type":"exceed_context_size_error"}}"#,
                ContextOverflow,
                "p answered 400: the request exceeds (exceed_context_size_error)",
            ),
            (
                400,
                r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#,
                ContextOverflow,
                "p answered 400: too long (context_length_exceeded)",
            ),
        ] {
            let fault = ModelFault::refusal("p", status, body);
            assert_eq!(
                (fault.kind, fault.message.as_str(), fault.status),
                (kind, message, Some(status))
            );
        }
    }

    #[test]
    fn a_message_is_bounded_and_does_not_hold_the_key() {
        let key = Secret::new("KEY", "sk-0123456789");
        let fault = ModelFault::refusal("p", 401, "sk-0123456789 is wrong").without(Some(&key));
        assert_eq!(fault.message, "p answered 401: [redacted] is wrong");
        for body in ["é".repeat(5000), "é ".repeat(5000)] {
            let fault = ModelFault::refusal("p", 500, &body).after_repeats(2);
            assert!(fault.message.len() <= MAX_MESSAGE);
            assert!(fault.message.ends_with(" (after 2 repeats)"));
        }
    }
}
