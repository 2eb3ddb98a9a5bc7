//! Configuration as data. Files are read and parsed by a runtime; this is what they mean.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::secret::Secret;

/// What `config.toml` and `.env` say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `default_model`: `provider/model`.
    pub default_model: Option<String>,
    /// `[providers.*]`, in the order of their names.
    pub providers: Vec<Provider>,
    /// `[permissions]`.
    pub permissions: Permissions,
    /// `[sandbox] writable`: folders that commands can write in beside those of their session, by
    /// their real paths. Tools do not touch them.
    pub writable: Vec<String>,
    /// Those of them that cannot be that, each with the reason. They are left out, and it is said.
    pub not_writable: Vec<String>,
    /// `[web] allow_private`: the web tools read addresses of this machine and of private networks
    /// too.
    pub web_private: bool,
    /// `pause_unverified`.
    pub pause_unverified: PauseUnverified,
    /// `[verification] commands`: what counts as verification beside the commands that are known;
    /// each is the words a command begins with.
    pub verification: Vec<String>,
    /// `[mcp.servers]`, in the order of their names: every session has these, unless its client
    /// names others of the same name.
    #[cfg(feature = "mcp")]
    pub mcp: Vec<crate::mcp::Entry>,
    /// All that stands in `.env` and is a key by its name, also where no provider asks for it: kept
    /// out of what is shown.
    pub secrets: Vec<Secret>,
    /// Keys that stand in the environment of the process but not in `.env`: names only, so that
    /// an error can say that they are not used.
    pub unused_keys: Vec<String>,
    /// What is wrong with the files (file, line, key), if something is. The agent still answers
    /// `initialize`.
    pub fault: Option<String>,
}

/// An OpenAI-compatible endpoint for chat completions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name in the file.
    pub name: String,
    /// The address before `/chat/completions`.
    pub base_url: String,
    /// The name of the variable in `.env` that holds the key; none: no key is needed.
    pub api_key_env: Option<String>,
    /// The key, if `.env` has it.
    pub api_key: Option<Secret>,
    /// Repeats of an attempt that failed before its first byte.
    pub max_retries: u32,
    /// Silence after which an attempt has failed.
    pub idle_timeout: Duration,
    /// Its models.
    pub models: Vec<Model>,
}

impl Provider {
    /// Whether it can be used: no key is needed, or there is one.
    pub fn usable(&self) -> bool {
        self.api_key_env.is_none() || self.api_key.is_some()
    }
}

/// One model of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// What the provider calls it.
    pub id: String,
    /// Another name for it.
    pub alias: Option<String>,
    /// Tokens it can take in all; none: not known.
    pub context_window: Option<u64>,
    /// Most tokens of an answer; none: the provider's own limit.
    pub max_output: Option<u64>,
    /// Efforts to choose from; empty: no such option.
    pub efforts: Vec<String>,
    /// Whether it takes images; none: not known, so they are sent.
    pub images: Option<bool>,
    /// Whether `reasoning_content` is sent back within a turn.
    pub echo_reasoning: bool,
    /// What it costs.
    pub price: Option<Price>,
}

/// Prices per million tokens, exact decimals as they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// ISO 4217 code.
    pub currency: String,
    /// Input.
    pub input: String,
    /// Input that the provider had in its cache.
    pub cached_input: Option<String>,
    /// Output.
    pub output: String,
}

/// Rules of `[permissions]`: deny > ask > allow. Each is `Tool` or `Tool(pattern)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// What runs unasked.
    pub allow: Vec<String>,
    /// What is asked whatever the posture.
    pub ask: Vec<String>,
    /// What never runs.
    pub deny: Vec<String>,
}

/// When a turn that wrote files and verified nothing is reported as paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PauseUnverified {
    /// In the delivery preset and in goal mode.
    #[default]
    Delivery,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What the machine must know of the system it runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// `linux`, `macos`, `windows` …
    pub os: String,
    /// The shell that runs command lines, by name: `bash`, or `sh` where there is none.
    pub shell: String,
    /// The person's home directory.
    pub user_home: Option<String>,
    /// The agent's own directory: `REASONIX_HOME` or `~/.reasonix`.
    pub home: Option<String>,
    /// The temporary directory, links resolved.
    pub tmp: String,
    /// What commands can be kept from.
    pub sandbox: Sandboxing,
}

/// What a system can keep commands from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sandboxing {
    /// Nothing.
    #[default]
    None,
    /// What this level of Linux's Landlock knows.
    Landlock {
        /// The level.
        abi: u32,
    },
}

impl Sandboxing {
    /// Its name on the wire.
    pub const fn engine(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Landlock { .. } => "landlock",
        }
    }

    /// Its level, if it has one.
    pub const fn abi(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Landlock { abi } => Some(abi),
        }
    }

    /// Whether a command can be kept from changing files outside its folders. Before level 3 files
    /// could still be cut, which is not kept.
    pub const fn confines_files(self) -> bool {
        match self {
            Self::None => false,
            Self::Landlock { abi } => abi >= 3,
        }
    }

    /// Whether a command can be kept from TCP connections; from UDP too since level 10.
    pub const fn confines_network(self) -> bool {
        match self {
            Self::None => false,
            Self::Landlock { abi } => abi >= 4,
        }
    }
}

impl core::fmt::Display for Sandboxing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::None => f.write_str("no sandbox"),
            Self::Landlock { abi } => write!(f, "Landlock, ABI {abi}"),
        }
    }
}
