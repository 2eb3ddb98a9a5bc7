//! Where requests go, and how things are spelled there. Knows no messages.

use alloc::string::String;
use core::time::Duration;

use crate::secret::Secret;
use crate::settings::{Model, Provider};

/// Where the requests of a session go: a provider, one of its models, an effort.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// The whole address.
    pub url: String,
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model, as the provider calls it.
    pub model: String,
    /// The key; none: no key is sent.
    pub key: Option<Secret>,
    /// The variable that should hold a key and holds none.
    pub missing_key: Option<String>,
    /// How the effort is spelled.
    pub dialect: Dialect,
    /// The effort; none (`auto`): nothing is said.
    pub effort: Option<String>,
    /// Most tokens of an answer; none: nothing is said.
    pub max_output: Option<u64>,
    /// Whether images are sent.
    pub images: bool,
    /// Whether reasoning is sent back.
    pub echo_reasoning: bool,
    /// Repeats of an attempt that failed before its first byte.
    pub max_retries: u32,
    /// Silence after which an attempt has failed.
    pub idle_timeout: Duration,
}

/// How an endpoint spells the effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// `reasoning_effort`.
    OpenAi,
    /// `thinking` and `reasoning_effort`.
    DeepSeek,
}

impl Endpoint {
    /// The endpoint for `model` of `provider`; `effort` `None` or `auto` leaves it to the provider.
    pub fn new(provider: &Provider, model: &Model, effort: Option<&str>) -> Self {
        let _ = (provider, model, effort);
        todo!()
    }
}
