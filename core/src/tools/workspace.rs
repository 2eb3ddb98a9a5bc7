//! What the tools must know of the session they work for, and where a path may lead.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::external::External;
use super::skill::Skill;
use crate::call::Confinement;
use crate::limits::Limits;
use crate::permission::Rules;
use crate::secret::Secrets;
use crate::settings::Host;

/// The surroundings of a session's tools.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Workspace {
    /// The session's working directory: absolute, cleaned, as the client named it.
    pub cwd: String,
    /// The real paths (links resolved) of all roots, the working directory's first. Tools touch
    /// files inside these only.
    pub roots: Vec<String>,
    /// The system.
    pub host: Host,
    /// Bounds.
    pub limits: Limits,
    /// What confines commands; none: nothing.
    pub sandbox: Option<Sandbox>,
    /// The skills that the model can take up.
    pub skills: Vec<Skill>,
    /// `[permissions]`, of which the tools obey the rules that hide files.
    pub rules: Rules,
    /// Tools of the embedder's own; one that is named as a built-in one is never called.
    pub custom: Vec<External>,
    /// Tools of MCP servers, as far as they are known, in the order a model sees them.
    pub external: Vec<External>,
    /// What the names of such tools begin with.
    pub external_prefixes: Vec<String>,
    /// Keys that are in no text which a tool gives, however it came by them.
    pub secrets: Secrets,
    /// What of the web the tools may read.
    pub web: Web,
    /// Whether no folder can be added (`--workspace-only`).
    pub closed: bool,
}

/// What of the web the tools may read, when the person allows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Web {
    /// Nothing: there are no such tools.
    Off,
    /// Public addresses.
    #[default]
    Public,
    /// Those of this machine and of its private networks too.
    Private,
}

/// What confines the commands of a session, beside its roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// The session's folder for temporary files.
    pub tmp: String,
    /// Folders that commands can write in beside the roots, by their real paths.
    pub writable: Vec<String>,
    /// Whether commands reach the network.
    pub network: bool,
}

impl Workspace {
    /// The surroundings of a session's tools.
    pub fn new(cwd: impl Into<String>, roots: Vec<String>, host: Host, limits: Limits) -> Self {
        Self {
            cwd: cwd.into(),
            roots,
            host,
            limits,
            sandbox: None,
            skills: Vec::new(),
            rules: Rules::default(),
            custom: Vec::new(),
            external: Vec::new(),
            external_prefixes: Vec::new(),
            secrets: Secrets::default(),
            web: Web::default(),
            closed: false,
        }
    }

    /// What a command is kept from now.
    pub(super) fn confinement(&self) -> Option<Box<Confinement>> {
        self.sandbox.as_ref().map(|sandbox| {
            Box::new(Confinement {
                writable: self
                    .roots
                    .iter()
                    .chain(&sandbox.writable)
                    .cloned()
                    .collect(),
                tmp: sandbox.tmp.clone(),
                network: sandbox.network,
            })
        })
    }
}
