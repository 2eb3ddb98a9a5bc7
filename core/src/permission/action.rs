//! What is about to be done, as the gate sees it.

use alloc::string::String;
use alloc::vec::Vec;

/// Something a tool is about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Action {
    /// The tool's name, as the model knows it.
    pub tool: String,
    /// What it touches.
    pub access: Access,
    /// Whether it always asks, under every posture and without an "always": approval of a plan, a
    /// new root, forgetting memory.
    pub protected: bool,
}

impl Action {
    /// An action that is not protected.
    pub fn new(tool: impl Into<String>, access: Access) -> Self {
        Self {
            tool: tool.into(),
            access,
            protected: false,
        }
    }

    /// The same action as one that always asks.
    #[must_use]
    pub fn protected(mut self) -> Self {
        self.protected = true;
        self
    }
}

/// What an action touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing outside the session: the plan, a question to the user, the output of a job.
    Session,
    /// Files or directories that are read.
    Read(Vec<Target>),
    /// Files that are written, moved or removed.
    Edit(Vec<Target>),
    /// A command line.
    Execute {
        /// The line, as the shell gets it.
        command: String,
        /// Whether its working directory is inside the roots. If not, no rule that allows and no
        /// grant covers it.
        inside: bool,
    },
    /// The network.
    Network(String),
    /// Anything else: counts as a writer, whatever it says of itself (tools of MCP servers and of
    /// embedders).
    Other,
}

/// One path of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As it was asked for: absolute, cleaned, links not resolved.
    pub asked: String,
    /// With all links resolved.
    pub real: String,
    /// Whether the real path is inside a root.
    pub inside: bool,
}

impl Target {
    /// Whether leave to edit the files of a project is leave to edit this one: inside the roots, and
    /// nothing of git's own (`.git`, as a folder or a file, at any depth), in which a line names what
    /// git runs.
    pub(super) fn is_project(&self) -> bool {
        let own = |path: &str| {
            path.split('/').any(|part| {
                part.trim_end_matches([' ', '.'])
                    .eq_ignore_ascii_case(".git")
            })
        };
        self.inside && !own(&self.asked) && !own(&self.real)
    }
}
