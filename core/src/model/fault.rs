//! Why a model gave no answer, and what a provider's refusal says. Knows nothing of retries.

use alloc::string::String;
use thiserror::Error;

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
