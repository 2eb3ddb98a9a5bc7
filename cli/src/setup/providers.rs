//! Providers that people name most: what to fill in when nothing else is said.

/// What is known of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Where its API is.
    pub base_url: &'static str,
    /// The model to begin with; none: it depends on what runs there.
    pub model: Option<&'static str>,
    /// Whether it asks for a key.
    pub key: bool,
}

/// All that are known; the first is what setup proposes.
pub const KNOWN: [Known; 4] = [
    Known {
        name: "deepseek",
        base_url: "https://api.deepseek.com",
        model: Some("deepseek-chat"),
        key: true,
    },
    Known {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        model: None,
        key: true,
    },
    Known {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        model: None,
        key: true,
    },
    Known {
        name: "local",
        base_url: "http://127.0.0.1:8080/v1",
        model: None,
        key: false,
    },
];

/// What is known of the provider `name`.
pub fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}
