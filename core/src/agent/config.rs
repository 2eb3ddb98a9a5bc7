//! What an agent is made with. Everything ambient is here: limits, seed, host, settings, flags.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::confining::SandboxPolicy;
use crate::limits::Limits;
use crate::model::Script;
use crate::permission::PermissionMode;
use crate::settings::{Host, Settings};
use crate::tools::{self, External};

/// What an agent is made with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Every bound there is.
    pub limits: Limits,
    /// All randomness of the run (session ids, jitter) comes from it. It must be fresh for every agent:
    /// two of one seed draw the same ids. On one home the second one finds them taken and draws others,
    /// but agents that do not share a home, and whoever compares their sessions, are not helped. A
    /// constant is for tests.
    pub seed: [u8; 32],
    /// What `config.toml` and `.env` say.
    pub settings: Settings,
    /// The system it runs on.
    pub host: Host,
    /// What it calls itself in `agentInfo`.
    pub identity: Identity,
    /// `--model`: `provider/model`, an id or an alias; none: the configured default.
    pub model: Option<String>,
    /// `--model script:FILE`: the scripted model, which needs no key and no configuration.
    pub script: Option<Script>,
    /// `--permission-mode`. A flag only: no file, client, saved session, tool output or command can
    /// raise it.
    pub permission_mode: PermissionMode,
    /// `--preset`, `--profile`.
    pub preset: Preset,
    /// `--ephemeral`: sessions live in memory only. Without a home they do so anyway.
    pub ephemeral: bool,
    /// `--workspace-only`: sessions have their working directory and no other folder.
    pub workspace_only: bool,
    /// `--sandbox-bash`, `--require-sandbox`, `--sandbox-network`.
    pub sandbox: SandboxPolicy,
    /// `--web`: whether the model has tools that read the web.
    pub web: bool,
    /// `--max-steps`: model calls in one turn; none: [`Limits::max_steps`].
    pub max_steps: Option<u32>,
    /// Tools of the embedder's own, which the model is offered beside the built-in ones. A call of
    /// one is [`Call::Custom`](crate::call::Call::Custom), and takes at most [`Limits::custom_call`].
    /// They count as writers. No server and no session takes their names. One that
    /// [`External::check`] refuses, or that has the name of a built-in one, is left out, with a report.
    pub tools: Vec<External>,
}

impl Config {
    /// A configuration with defaults for everything but what only the driver can know: 32 bytes of the
    /// system's randomness, drawn for this agent alone ([`seed`](Self::seed)), and where it runs.
    pub fn new(seed: [u8; 32], host: Host) -> Self {
        Self {
            limits: Limits::default(),
            seed,
            settings: Settings::default(),
            host,
            identity: Identity::default(),
            model: None,
            script: None,
            permission_mode: PermissionMode::default(),
            preset: Preset::default(),
            ephemeral: false,
            workspace_only: false,
            sandbox: SandboxPolicy::default(),
            web: true,
            max_steps: None,
            tools: Vec::new(),
        }
    }

    /// Leaves out the tools that no model can be offered: what is wrong with them, and with the limits.
    pub(super) fn leave_out(&mut self) -> Vec<String> {
        let limits = self.limits.check().err();
        let mut faults: Vec<String> = limits.map(|it| format!("{it}")).into_iter().collect();
        let mut good: Vec<External> = Vec::new();
        for tool in self.tools.drain(..) {
            let taken = tools::find(&tool.name).is_some()
                || good.iter().any(|other| other.name == tool.name);
            match tool.check() {
                Err(fault) => faults.push(format!("a tool is left out: {fault}")),
                Ok(()) if taken => faults.push(format!(
                    "the tool `{}` is left out: there is another one of this name",
                    tool.name
                )),
                Ok(()) => good.push(tool),
            }
        }
        self.tools = good;
        faults
    }
}

/// What an agent calls itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// For programs.
    pub name: String,
    /// For people.
    pub title: String,
    /// Its version.
    pub version: String,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            name: "reasonix".into(),
            title: "Reasonix".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// How much of the tools and of the instructions the model gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preset {
    /// A small tool set and a short system prompt.
    Light,
    /// All tools.
    #[default]
    Balanced,
    /// All tools, and nothing counts as done before it was verified.
    Delivery,
}

impl Preset {
    /// All presets, in the order they are offered.
    pub const ALL: [Self; 3] = [Self::Light, Self::Balanced, Self::Delivery];

    /// The name in flags and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Balanced => "balanced",
            Self::Delivery => "delivery",
        }
    }

    /// The preset of this name; the legacy name `economy` is `light`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "light" | "economy" => Some(Self::Light),
            "balanced" => Some(Self::Balanced),
            "delivery" => Some(Self::Delivery),
            _ => None,
        }
    }
}
