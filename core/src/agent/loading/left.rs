//! The inbox of a session that is being opened, read in pieces: other sessions go on between two of
//! them, however much waits in it. One that is damaged is read once more, to be kept.
//!
//! | found | then |
//! | --- | --- |
//! | a piece that is not the last | the next one |
//! | the end of one that is whole | the rest of what opening needs |
//! | the end of one that is damaged | from its beginning again, as bytes to keep |
//! | nothing, or that it cannot be read | the rest of what opening needs |

use alloc::boxed::Box;

use super::super::Agent;
use super::super::inbox::Left;
use super::Stage;
use crate::call::{Call, Outcome, Part};
use crate::error::{IoFault, IoKind};
use crate::store::inbox::{Aside, Reading};
use crate::wire::RequestKey;

impl Agent {
    /// Reads the inbox, which nobody else can change now.
    pub(super) fn read_inbox(&mut self, key: RequestKey) {
        let reading = Reading::new(self.run_id(), &self.config.limits);
        if let Some(loading) = self.loading(key) {
            loading.stage = Stage::Inbox;
            loading.inbox = Some(Left::Read(Box::new(reading), None));
        }
        self.read_inbox_on(key);
    }

    fn read_inbox_on(&mut self, key: RequestKey) {
        let max = self.config.limits.store_piece;
        let Some(opening) = self.openings.get(&key) else {
            return;
        };
        let Some(files) = self.files(&opening.id) else {
            return self.refuse_lost(key);
        };
        let loading = opening.loading.as_ref();
        let at = match loading.and_then(|loading| loading.inbox.as_ref()) {
            Some(Left::Read(reading, None)) => reading.bytes(),
            Some(Left::Read(_, Some(aside))) => aside.bytes(),
            Some(Left::Unreadable(_)) | None => return,
        };
        let call = Call::ReadAt {
            path: files.inbox(),
            beneath: files.home,
            at,
            max,
        };
        self.call_opening(key, call);
    }

    /// What came of reading the next part of the inbox.
    pub(super) fn inbox_part(&mut self, key: RequestKey, outcome: Result<Outcome, IoFault>) {
        let most = self.config.limits.max_inbox_file;
        let Some(loading) = self.loading(key) else {
            return;
        };
        let more = match (&mut loading.inbox, outcome) {
            (Some(Left::Read(reading, aside)), Ok(Outcome::Part(part))) if part.size <= most => {
                take(reading, aside, &part)
            }
            (left, Err(fault)) if fault.kind == IoKind::NotFound => {
                *left = None;
                false
            }
            (left, outcome) => {
                let why = match outcome {
                    Ok(_) => "its file is too long".into(),
                    Err(fault) => fault.message,
                };
                *left = Some(Left::Unreadable(why));
                false
            }
        };
        if more {
            return self.read_inbox_on(key);
        }
        loading.stage = Stage::Setup;
        self.resolve_cwd(key);
    }
}

/// Takes a part of the file in. Returns whether there is more to read.
fn take(reading: &mut Reading, aside: &mut Option<Aside>, part: &Part) -> bool {
    if let Some(aside) = aside {
        aside.push(&part.bytes);
        return !part.bytes.is_empty() && aside.bytes() < part.size;
    }
    reading.push(&part.bytes);
    if !part.bytes.is_empty() && reading.bytes() < part.size {
        return true;
    }
    reading.finish();
    let damaged = reading.is_damaged();
    if damaged {
        *aside = Some(Aside::new(part.size));
    }
    damaged
}
