//! Operations, journals and recoveries of an inbox, as data.

mod journals;
mod operations;
mod recovered;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::reading::replayed;
use super::*;
use crate::limits::Limits;

const RUN: &str = "run-1";

fn limits() -> Limits {
    Limits {
        max_inbox_items: 4,
        max_inbox_item: 200,
        max_inbox: 340,
        max_inbox_receipts: 2,
        max_inbox_attempts: 2,
        max_inbox_waste: 4096,
        ..Limits::default()
    }
}

/// An inbox and its file.
struct Desk {
    inbox: Inbox,
    file: Vec<u8>,
    ids: u32,
}

impl Desk {
    fn new() -> Self {
        Self {
            inbox: Inbox::new(RUN, &limits()),
            file: Vec::new(),
            ids: 0,
        }
    }

    /// Appends what an operation did; what is read back is what is there.
    fn done<T>(&mut self, done: Done<T>) -> T {
        self.file.extend_from_slice(&done.lines);
        assert_eq!(replayed(&self.file, RUN, &limits()), self.inbox);
        done.answer
    }

    fn try_add(&mut self, new: NewItem, steerable: bool) -> Result<Enqueued, Refusal> {
        let done = self.inbox.enqueue(1, new, steerable)?;
        Ok(self.done(done))
    }

    fn new_item(&mut self, text: &str) -> NewItem {
        self.ids += 1;
        NewItem {
            id: self.ids.to_string(),
            intent: Intent::FollowUp,
            source: "acp".into(),
            key: None,
            draft: Draft::plain(text),
        }
    }

    fn add(&mut self, text: &str) -> String {
        let new = self.new_item(text);
        self.try_add(new, false).unwrap().id
    }

    fn keyed(&mut self, key: &str, text: &str) -> Result<Enqueued, Refusal> {
        let mut new = self.new_item(text);
        new.key = Some(key.into());
        self.try_add(new, false)
    }

    fn steer(&mut self, text: &str) -> Enqueued {
        let mut new = self.new_item(text);
        new.intent = Intent::Steer;
        self.try_add(new, true).unwrap()
    }

    fn begin(&mut self) -> String {
        let id = self.inbox.next().unwrap().id.clone();
        let done = self.inbox.begin(2, &id).unwrap();
        self.done(done);
        id
    }

    /// Ids with states.
    fn states(&self) -> String {
        let mut text = String::new();
        for item in self.inbox.items() {
            text.push_str(&format!("{}:{} ", item.id, item.state.as_str()));
        }
        text.trim_end().into()
    }

    fn recover(&self, run: &str, claim: impl Fn(&str) -> Claim) -> Recovery {
        recover(&self.file, run, claim)
    }
}

fn recover(file: &[u8], run: &str, claim: impl Fn(&str) -> Claim) -> Recovery {
    let recovery = Inbox::recover(file, run, 9, &limits(), |item| claim(&item.id));
    // However it is cut into pieces.
    for cut in [1, 7] {
        let mut reading = Reading::new(run, &limits());
        file.chunks(cut).for_each(|piece| reading.push(piece));
        reading.finish();
        assert_eq!(reading.bytes(), file.len() as u64);
        assert_eq!(reading.is_damaged(), recovery.aside.is_some());
        let mut pieces = reading.recover(9, |item| claim(&item.id));
        pieces.aside.clone_from(&recovery.aside);
        assert_eq!(pieces, recovery, "by {cut}");
    }
    let mut after = recovery.rewrite.clone().unwrap_or_else(|| file.to_vec());
    after.extend_from_slice(&recovery.lines);
    if recovery.inbox.read_only().is_none() && !after.is_empty() {
        // What it left on the disk is what it gave.
        assert_eq!(replayed(&after, run, &limits()), recovery.inbox);
        assert!(!recovery.inbox.items().is_empty() || !recovery.inbox.is_paused());
    }
    recovery
}

fn states(inbox: &Inbox) -> Vec<(&str, State)> {
    let items = inbox.items().iter();
    items.map(|item| (item.id.as_str(), item.state)).collect()
}

fn code<T: core::fmt::Debug>(result: Result<T, Refusal>) -> &'static str {
    result.unwrap_err().code()
}
