//! What a list shows of a session. Derived from the transcript, so that a list of thousands need
//! not read them; never the truth.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The version that is written.
const VERSION: u32 = 1;

/// What a list shows of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// The version of the format.
    pub v: u32,
    /// The session.
    pub id: String,
    /// Its working directory, as the client named it.
    pub cwd: String,
    /// The folders it has beside that, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
    /// Its first prompt; empty: there was none.
    pub title: String,
    /// When it was made, milliseconds since 1970.
    pub created: u64,
    /// When it last changed, milliseconds since 1970.
    pub updated: u64,
    /// Turns that were begun.
    pub prompts: u64,
}

impl Summary {
    /// Of a new session.
    pub fn new(id: &str, cwd: &str, now: u64) -> Self {
        Self {
            v: VERSION,
            id: id.into(),
            cwd: cwd.into(),
            created: now,
            updated: now,
            ..Self::default()
        }
    }

    /// Its file.
    pub fn write(&self) -> Vec<u8> {
        // A struct of strings and numbers has a JSON form.
        let mut json = serde_json::to_vec(self).expect("a summary has a JSON form");
        json.push(b'\n');
        json
    }

    /// Reads its file. None: it is no summary of this session, or one of a later version, and is made
    /// from the transcript.
    pub fn read(bytes: &[u8], id: &str) -> Option<Self> {
        serde_json::from_slice::<Self>(bytes)
            .ok()
            .filter(|it| it.v <= VERSION && it.id == id && !it.cwd.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_summary_of_this_session_is_made_again() {
        let summary = Summary::new("a", "/w", 5);
        let file = summary.write();
        let later = Summary {
            v: VERSION + 1,
            ..summary.clone()
        };
        assert_eq!(Summary::read(&file, "a"), Some(summary));
        for (bytes, id) in [
            (&later.write()[..], "a"),
            (&file[..], "b"),
            (&file[..9], "a"),
            (b"", "a"),
            (b"{\"id\":\"a\"}", "a"),
        ] {
            assert_eq!(Summary::read(bytes, id), None);
        }
    }
}
