//! Where requests go, and how things are spelled there. Knows no messages.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use super::price::Tariff;
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
    /// What it costs, if that is known.
    pub tariff: Option<Tariff>,
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
    /// `thinking` and `reasoning_effort`: DeepSeek, told by the provider's name or its host.
    DeepSeek,
}

impl Endpoint {
    /// The endpoint for `model` of `provider`; `effort` `None` or `auto` leaves it to the provider.
    pub fn new(provider: &Provider, model: &Model, effort: Option<&str>) -> Self {
        let base = provider.base_url.trim().trim_end_matches('/');
        let url = if base.ends_with("/chat/completions") {
            base.into()
        } else {
            format!("{base}/chat/completions")
        };
        let host = base
            .split_once("://")
            .map_or(base, |(_, rest)| rest)
            .split(['/', ':'])
            .next()
            .unwrap_or_default();
        let deepseek = provider.name.eq_ignore_ascii_case("deepseek")
            || host == "deepseek.com"
            || host.ends_with(".deepseek.com");
        Self {
            url,
            provider: provider.name.clone(),
            model: model.id.clone(),
            key: provider.api_key.clone(),
            missing_key: match (&provider.api_key_env, &provider.api_key) {
                (Some(name), None) => Some(name.clone()),
                (_, _) => None,
            },
            dialect: if deepseek {
                Dialect::DeepSeek
            } else {
                Dialect::OpenAi
            },
            effort: effort
                .filter(|effort| !effort.is_empty() && *effort != "auto")
                .map(String::from),
            max_output: model.max_output,
            tariff: model.price.as_ref().and_then(Tariff::new),
            images: model.images.unwrap_or(true),
            echo_reasoning: model.echo_reasoning,
            max_retries: provider.max_retries,
            idle_timeout: provider.idle_timeout,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// A provider without a key, for tests.
    pub(in super::super) fn provider(name: &str, base_url: &str) -> Provider {
        Provider {
            name: name.into(),
            base_url: base_url.into(),
            api_key_env: None,
            api_key: None,
            max_retries: 10,
            idle_timeout: Duration::from_secs(300),
            models: Vec::new(),
        }
    }

    #[test]
    fn the_address_is_that_of_chat_completions_however_the_base_ends() {
        for (name, base, url, dialect) in [
            (
                "a",
                "http://h/v1",
                "http://h/v1/chat/completions",
                Dialect::OpenAi,
            ),
            (
                "a",
                "http://h/v1/",
                "http://h/v1/chat/completions",
                Dialect::OpenAi,
            ),
            (
                "a",
                "http://h/chat/completions",
                "http://h/chat/completions",
                Dialect::OpenAi,
            ),
            (
                "a",
                "https://api.deepseek.com",
                "https://api.deepseek.com/chat/completions",
                Dialect::DeepSeek,
            ),
            (
                "a",
                "https://notdeepseek.com:1/deepseek.com",
                "https://notdeepseek.com:1/deepseek.com/chat/completions",
                Dialect::OpenAi,
            ),
            (
                "deepseek",
                "http://127.0.0.1:8080",
                "http://127.0.0.1:8080/chat/completions",
                Dialect::DeepSeek,
            ),
        ] {
            let endpoint = Endpoint::new(&provider(name, base), &Model::default(), Some("auto"));
            assert_eq!((endpoint.url.as_str(), endpoint.dialect), (url, dialect));
            assert_eq!(endpoint.effort, None);
        }
    }

    #[test]
    fn a_key_that_should_be_there_is_named() {
        let mut provider = provider("a", "http://h");
        provider.api_key_env = Some("A_KEY".into());
        let endpoint = Endpoint::new(&provider, &Model::default(), None);
        assert_eq!(endpoint.missing_key.as_deref(), Some("A_KEY"));
    }
}
