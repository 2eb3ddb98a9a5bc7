//! What a tool call is, for the icon of its card.

use serde::{Deserialize, Serialize};

/// The kinds of ACP's `ToolKind`. It hides nothing and grants nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolKind {
    /// Reads.
    Read,
    /// Changes files.
    Edit,
    /// Removes files.
    Delete,
    /// Moves files.
    Move,
    /// Searches.
    Search,
    /// Runs commands.
    Execute,
    /// Thinks.
    Think,
    /// Fetches from the network.
    Fetch,
    /// Changes the mode of the session.
    SwitchMode,
    /// Anything else.
    #[serde(other)]
    Other,
}

impl ToolKind {
    /// Its name in ACP.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Search => "search",
            Self::Execute => "execute",
            Self::Think => "think",
            Self::Fetch => "fetch",
            Self::SwitchMode => "switch_mode",
            Self::Other => "other",
        }
    }

    /// The kind of a tool that is known by its name only (those of MCP servers): a search for
    /// words in the lower-cased name, in the order of the Reasonix guide.
    pub fn of(name: &str) -> Self {
        let name = name.to_lowercase();
        let any = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if any(&["search", "grep", "find"]) {
            Self::Search
        } else if any(&["edit", "write", "replace"]) {
            Self::Edit
        } else if any(&["read", "cat", "view"]) {
            Self::Read
        } else if any(&["bash", "exec", "shell", "run"]) {
            Self::Execute
        } else {
            Self::Other
        }
    }
}
