//! Where things stand beneath the agent's home. Knows no files, only their names.

use alloc::format;
use alloc::string::String;

/// The folder of all sessions beneath the agent's home.
pub fn sessions(home: &str) -> String {
    format!("{home}/sessions")
}

/// Names of the files of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFiles {
    /// The session's folder; holds all of it.
    pub folder: String,
    /// The agent's home, which no file of a session may leave by a link.
    pub home: String,
}

impl SessionFiles {
    /// The files of the session `id`, which has the shape of an id and so leads nowhere else.
    pub fn new(home: &str, id: &str) -> Self {
        Self {
            folder: format!("{home}/sessions/{id}"),
            home: home.into(),
        }
    }

    /// What was said and done: the truth.
    pub fn transcript(&self) -> String {
        format!("{}/transcript.jsonl", self.folder)
    }

    /// A summary for lists; made again from the transcript when it is gone.
    pub fn state(&self) -> String {
        format!("{}/state.json", self.folder)
    }

    /// The inbox.
    pub fn inbox(&self) -> String {
        format!("{}/inbox.jsonl", self.folder)
    }

    /// Who has it open.
    pub fn lock(&self) -> String {
        format!("{}/lock", self.folder)
    }
}
