//! What a list shows of a session: from its summary, or from the beginning of its transcript. Pure.

use super::super::content;
use crate::engine::record::Record;
use crate::protocol::schema::{SessionId, SessionInfo};
use crate::store::{Lines, Summary};
use crate::time::rfc3339;

pub(super) fn session_info(summary: &Summary) -> SessionInfo {
    let id = SessionId::from(summary.id.clone());
    let mut info = SessionInfo::new(id, summary.cwd.clone());
    info.additional_directories.clone_from(&summary.directories);
    info.title = (!summary.title.is_empty()).then(|| summary.title.clone());
    info.updated_at = (summary.updated > 0).then(|| rfc3339(summary.updated));
    info
}

/// The summary of a session whose transcript begins like this.
pub(super) fn read_head(bytes: &[u8], id: &SessionId, max: usize) -> Option<Summary> {
    let mut head = Lines::new(bytes.len());
    head.push(bytes);
    let mut summary: Option<Summary> = None;
    while let Some(records) = head.next_line::<Record>() {
        for record in records {
            match (record, &mut summary) {
                (Record::Session(header), None) if header.id == id.as_str() => {
                    summary = Some(Summary::new(&header.id, &header.cwd, header.created));
                }
                (Record::User(user), Some(summary)) if user.from.begins_turn() => {
                    summary.prompts += 1;
                    if summary.title.is_empty() {
                        summary.title = content::title_of(&user, max);
                    }
                }
                (Record::Roots { directories }, Some(summary)) => summary.directories = directories,
                (_, _) => {}
            }
        }
    }
    if let Some(summary) = &mut summary {
        summary.updated = summary.updated.max(head.latest());
    }
    summary
}
