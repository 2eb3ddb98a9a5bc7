//! A transcript as clients see it when the session is loaded, record by record. For whoever shows
//! one without opening the session: it needs no lock, no key and no model. Reads no files.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::render;
use crate::engine::record::Record;
use crate::limits::Limits;
use crate::protocol::schema::SessionUpdate;

/// What was shown of a transcript so far, as far as it matters for what comes next.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Calls that were shown.
    announced: BTreeSet<String>,
    /// Command lines that were shown.
    lines: u64,
}

impl Replay {
    /// Before the first record.
    pub const fn new() -> Self {
        Self {
            announced: BTreeSet::new(),
            lines: 0,
        }
    }

    /// What is seen of the next record: nothing, one update, or more where a text is longer than
    /// a frame.
    pub fn updates(&mut self, record: &Record, limits: &Limits) -> Vec<SessionUpdate> {
        if let Record::Call { id, .. } = record {
            self.announced.insert(id.clone());
        }
        // Clients do not know a call that they have not seen.
        if let Record::Result(result) = record
            && !self.announced.contains(&result.id)
        {
            return Vec::new();
        }
        let mut updates = render::record(record, limits);
        if let Record::Command { .. } = record {
            self.lines += 1;
            // Two that follow each other are two messages, and only an id tells clients so.
            let id = format!("l{}", self.lines);
            for update in &mut updates {
                if let SessionUpdate::UserMessageChunk(chunk) = update {
                    chunk.message_id = Some(id.clone());
                }
            }
        }
        updates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::record::ToolResult;

    #[test]
    fn two_command_lines_that_follow_each_other_are_two_messages() {
        let limits = Limits::default();
        let mut replay = Replay::new();
        let mut seen = |text: &str| {
            let (text, shown) = (text.into(), None);
            let updates = replay.updates(&Record::Command { text, shown }, &limits);
            let [SessionUpdate::UserMessageChunk(chunk)] = &updates[..] else {
                panic!("{updates:?}");
            };
            chunk.message_id.clone().expect("an id")
        };
        assert_ne!(seen("/compact"), seen("!make"));
    }

    #[test]
    fn a_result_is_seen_only_after_its_call() {
        let limits = Limits::default();
        let call: Record = serde_json::from_str(
            r#"{"type":"call","id":"a","card":{"name":"read_file","kind":"read","title":"t"}}"#,
        )
        .expect("a call");
        let result = Record::Result(ToolResult {
            id: "a".into(),
            ..ToolResult::default()
        });
        let mut replay = Replay::new();
        assert_eq!(replay.updates(&result, &limits), []);
        assert_eq!(replay.updates(&call, &limits).len(), 1);
        assert_eq!(replay.updates(&result, &limits).len(), 1);
    }
}
