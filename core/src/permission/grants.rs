//! What the user allowed for the rest of a session. In memory, one set a session.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::action::{Access, Action, Target};
use super::shell::{self, By};

/// One "always" of the user: in memory, this session, this scope and nothing beside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Grant {
    /// All edits inside the roots, but for what git keeps for itself there.
    Edits,
    /// Commands that are one literal simple command and begin with exactly these words.
    Command(Vec<String>),
    /// This command line, byte for byte.
    Line(String),
    /// The tool of this name.
    Tool(String),
}

impl Grant {
    /// What an "always" for this action would grant; `None` if there must be none (network,
    /// protected decisions, reads, anything outside the roots).
    pub fn for_action(action: &Action) -> Option<Self> {
        if action.protected {
            return None;
        }
        match &action.access {
            Access::Edit(targets) => targets
                .iter()
                .all(Target::is_project)
                .then_some(Self::Edits),
            Access::Execute { command, inside } => inside.then(|| match shell::prefix(command) {
                Some(words) => Self::Command(words),
                None => Self::Line(command.clone()),
            }),
            Access::Other => Some(Self::Tool(action.tool.clone())),
            Access::Session | Access::Read(_) | Access::Network(_) => None,
        }
    }

    /// Whether it covers the action.
    pub fn covers(&self, action: &Action) -> bool {
        if action.protected {
            return false;
        }
        match (self, &action.access) {
            (Self::Edits, Access::Edit(targets)) => targets.iter().all(Target::is_project),
            (Self::Command(words), Access::Execute { command, inside }) => {
                *inside && shell::covers(command, words, false, By::Grant)
            }
            (Self::Line(line), Access::Execute { command, inside }) => *inside && line == command,
            (Self::Tool(name), Access::Other) => *name == action.tool,
            (Self::Edits | Self::Command(_) | Self::Line(_) | Self::Tool(_), _) => false,
        }
    }

    /// What stands on the card's "always" button.
    pub fn label(&self) -> String {
        format!("Allow {self} in this session")
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edits => f.write_str("edits"),
            Self::Command(words) => write!(f, "`{}`", words.join(" ")),
            Self::Line(line) if line.len() <= 80 && !line.contains(crate::shown::deceives) => {
                write!(f, "exactly `{line}`")
            }
            Self::Line(_) => f.write_str("exactly this command"),
            Self::Tool(name) => write!(f, "`{name}`"),
        }
    }
}

/// The grants of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grants {
    held: BTreeSet<Grant>,
    max: usize,
}

impl Grants {
    /// None yet; at most `max` ever ([`Limits::max_grants`](crate::limits::Limits::max_grants)).
    pub fn new(max: usize) -> Self {
        Self {
            held: BTreeSet::new(),
            max,
        }
    }

    /// Adds one. `false` if there are too many: the action is allowed once and asked again.
    pub fn add(&mut self, grant: Grant) -> bool {
        self.held.contains(&grant) || (self.held.len() < self.max && self.held.insert(grant))
    }

    /// Takes one back. `false` if it was not there.
    pub fn revoke(&mut self, grant: &Grant) -> bool {
        self.held.remove(grant)
    }

    /// All of them, in a stable order.
    pub fn list(&self) -> impl Iterator<Item = &Grant> {
        self.held.iter()
    }

    /// The grant that covers the action.
    pub fn covering(&self, action: &Action) -> Option<&Grant> {
        self.held.iter().find(|grant| grant.covers(action))
    }
}
