//! The durable inbox of one session: messages that wait for their turn, and guidance for the turn
//! that runs. Pure and synchronous; knows neither files nor the protocol.
//!
//! Every operation is refused whole, or done at once in memory and handed back as lines to append
//! ([`Done::lines`]). What it did and what recovery does with its line is the same code, so an
//! inbox that is recovered from its journal is the inbox that wrote it. Later operations see
//! earlier ones whose lines are not on the disk yet; what waits for the disk is the answer to
//! whoever asked. The one who appends keeps this order:
//!
//! 1. lines are appended in the order they came, and an answer goes out when its lines are synced;
//! 2. nothing begins ([`Inbox::begin`]) before the lines of its [`Inbox::enqueue`] are synced, so
//!    that no turn was for an item that a crash makes unknown;
//! 3. what is on the disk is told ([`Inbox::kept`]). When an append fails, nothing more is appended,
//!    everybody who waits is refused, and [`Inbox::lost`] undoes what they asked for and makes the
//!    inbox read-only: then nothing begins any more either. What was refused so may still be on the
//!    disk: an idempotency key tells, until a whole new journal ([`Inbox::renewal`]) takes the place
//!    of one of which it is not known what it holds;
//! 4. [`Inbox::compaction`] is asked for when nothing is being appended; its bytes replace the
//!    file as a whole, and with it all lines that came before and are not appended yet.
//!
//! | state | left by | for |
//! | --- | --- | --- |
//! | `queued` | `begin` | `running` |
//! | `steer_accepted` | `consumed` | `steer_consumed` |
//! | | `give_back` (the turn is over or cancelled) | `queued`, as an ordinary follow-up, in its place |
//! | `running` | `release` (its turn did not begin) | `queued` |
//! | `running`, `steer_consumed` | `finish` | gone: `acknowledged` |
//! | `running` | `fail`, passing, fewer than `max_inbox_attempts` times | `queued` |
//! | | `fail` otherwise | `blocked` |
//! | any | `uncertain` | `uncertain`, the inbox paused |
//! | `blocked` | `update`, `refresh` | `queued`; `blocked`, the inbox paused, if a reference fails |
//! | `blocked`, `uncertain` | `retry` | `queued` |
//! | `queued`, `blocked`, `uncertain`, `steer_accepted` | `delete` | gone: `discarded` |
//!
//! An item whose turn was cancelled ran: it is finished. A key stays bound to its content after
//! its item is gone, for as many keys as `max_inbox_receipts` says, the oldest going first.
//!
//! | file | what lives there |
//! | --- | --- |
//! | `item` | an item and its states |
//! | `refs` | references in its text, and what was frozen |
//! | `requests` | what clients ask for |
//! | `turns` | what the turns of the session do with it |
//! | `unsure` | what is undone when the disk does not take it |
//! | `record` | the lines of the journal |
//! | `reading` | a journal, whole or not, in pieces |
//! | `recovery` | what becomes of an inbox that was left |

mod item;
mod reading;
mod record;
mod recovery;
mod refs;
mod refusal;
mod requests;
mod text;
mod turns;
mod unsure;

#[cfg(test)]
mod tests;

pub use item::{Block, BlockCode, Body, Intent, Item, State};
pub use reading::{Aside, Reading};
pub use record::{End, VERSION};
pub use recovery::{Claim, Findings, Recovery, TurnEnd};
pub use refs::{Draft, Found, FrozenRef, RefKind, RefNote, Reference, reference_block, references};
pub use refusal::Refusal;
pub use requests::{Disposition, Enqueued, NewItem};
pub use text::hex;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use record::{
    Change, Head, Numbered, Receipt, write_change, write_head, write_keep, write_receipt,
};
use unsure::Unsure;

/// What an operation did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the lines have to be appended"]
pub struct Done<T> {
    /// What whoever asked is answered, when the lines are synced.
    pub answer: T,
    /// To be appended to the journal; empty if nothing was changed.
    pub lines: Vec<u8>,
}

/// The inbox of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inbox {
    bounds: Bounds,
    items: Vec<Item>,
    /// Length of all items as they are stored, bytes.
    bytes: usize,
    paused: bool,
    /// How many items were found when another process had ended.
    recovered: Option<u32>,
    revision: u64,
    receipts: VecDeque<Arc<Receipt>>,
    /// The process that has the inbox.
    run: String,
    read_only: Option<String>,
    /// It is read-only since its journal could not be written.
    lost: bool,
    unsure: Unsure,
    /// The version of the journal that was found.
    version: u32,
    journal: Journal,
}

/// The journal as far as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Journal {
    /// The number of the next line; 0: the file is not begun.
    next: u64,
    /// Its length, bytes.
    bytes: u64,
    /// Which process wrote last.
    run: String,
}

/// The limits that concern an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    items: usize,
    item: usize,
    bytes: usize,
    preview: usize,
    ref_preview: usize,
    receipts: usize,
    attempts: u32,
    reason: usize,
    waste: u64,
}

impl Bounds {
    fn of(limits: &crate::limits::Limits) -> Self {
        Self {
            items: limits.max_inbox_items,
            item: limits.max_inbox_item,
            bytes: limits.max_inbox,
            preview: limits.inbox_preview,
            ref_preview: limits.inbox_ref_preview,
            receipts: limits.max_inbox_receipts,
            attempts: limits.max_inbox_attempts,
            reason: limits.max_inbox_reason,
            waste: limits.max_inbox_waste,
        }
    }
}

/// What a line of the journal is longer than its body, about.
const LINE: u64 = 512;

impl Inbox {
    /// An empty inbox that has no journal yet; the first change begins one. `run` names this
    /// process and is not empty.
    pub fn new(run: impl Into<String>, limits: &crate::limits::Limits) -> Self {
        Self {
            bounds: Bounds::of(limits),
            items: Vec::new(),
            bytes: 0,
            paused: false,
            recovered: None,
            revision: 0,
            receipts: VecDeque::new(),
            run: run.into(),
            read_only: None,
            lost: false,
            unsure: Unsure::default(),
            version: VERSION,
            journal: Journal::default(),
        }
    }

    /// An inbox whose journal cannot be read: read-only and paused, the file is left as it is.
    pub fn unreadable(
        run: impl Into<String>,
        why: impl Into<String>,
        limits: &crate::limits::Limits,
    ) -> Self {
        let mut inbox = Self::new(run, limits);
        inbox.paused = true;
        inbox.read_only = Some(why.into());
        inbox
    }

    /// The items, in order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The item with this id.
    pub fn get(&self, id: &str) -> Option<&Item> {
        self.items.iter().find(|item| item.id == id)
    }

    /// Whether nothing begins until it is told to go on.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// How many items were found when another process had ended, until it is told to go on.
    pub fn recovered(&self) -> Option<u32> {
        self.recovered
    }

    /// Why it cannot be changed, if so.
    pub fn read_only(&self) -> Option<&str> {
        self.read_only.as_deref()
    }

    /// Grows with every change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Length of all items as they are stored, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The process that has it.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The version of its journal.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// A whole new journal, if more of the old one is of no use than the limit allows. It must
    /// replace the file at once (see the module), and lines that come after it belong to it.
    pub fn compaction(&mut self) -> Option<Vec<u8>> {
        let count = (self.items.len() + self.receipts.len()) as u64 + 1;
        let live = self.bytes as u64 + LINE * count;
        let due = self.read_only.is_none()
            && self.journal.bytes > live.saturating_mul(2).saturating_add(self.bounds.waste);
        due.then(|| self.rewrite())
    }

    /// The whole journal anew.
    fn rewrite(&mut self) -> Vec<u8> {
        let mut file = Vec::new();
        let mut n = 0;
        let kept = (self.items.len() + self.receipts.len()) as u64;
        write_head(&mut file, &self.head(kept));
        for item in &self.items {
            n += 1;
            write_keep(&mut file, n, item);
        }
        for receipt in &self.receipts {
            n += 1;
            write_receipt(&mut file, n, receipt);
        }
        self.journal = Journal {
            next: n + 1,
            bytes: file.len() as u64,
            run: self.run.clone(),
        };
        file
    }

    fn head(&self, kept: u64) -> Head {
        Head {
            version: VERSION,
            revision: self.revision,
            paused: self.paused,
            recovered: self.recovered,
            run: self.run.clone(),
            kept,
        }
    }

    /// Makes a change and appends its line. A read-only inbox writes none: what its turns still do
    /// is only seen in memory, and found again in the transcript.
    fn commit(&mut self, lines: &mut Vec<u8>, change: Change) {
        if self.read_only.is_none() {
            let from = lines.len();
            if self.journal.next == 0 {
                write_head(lines, &self.head(0));
                self.journal.next = 1;
                self.journal.run.clone_from(&self.run);
            }
            let new = self.journal.run != self.run;
            let numbered = Numbered {
                n: self.journal.next,
                run: new.then_some(self.run.as_str()),
            };
            write_change(lines, &numbered, &change);
            if new {
                self.journal.run.clone_from(&self.run);
            }
            self.journal.next += 1;
            self.journal.bytes += (lines.len() - from) as u64;
        }
        self.unsure.follow(self.revision + 1, &change);
        let applied = self.apply(change);
        debug_assert!(applied, "operations look before they change");
    }

    /// A change that a client asked for.
    fn asked<T>(&mut self, answer: T, change: Change) -> Done<T> {
        self.doubt();
        let mut lines = Vec::new();
        self.commit(&mut lines, change);
        Done { answer, lines }
    }

    /// A change that has happened already, in a turn.
    fn done<T>(&mut self, answer: T, change: Change) -> Done<T> {
        let mut lines = Vec::new();
        self.commit(&mut lines, change);
        Done { answer, lines }
    }

    /// What a change does, asked for now or read again. Returns false, and does nothing, if it is
    /// about an item that is not there, or adds one that is.
    fn apply(&mut self, change: Change) -> bool {
        let revision = self.revision + 1;
        match change {
            Change::Add { mut item, pause } => {
                if self.get(&item.id).is_some() {
                    return false;
                }
                item.revision = revision;
                self.take_in(item);
                self.paused |= pause;
            }
            Change::Edit {
                id,
                body,
                state,
                block,
                pause,
                at,
            } => {
                let Some(item) = self.items.iter_mut().find(|item| item.id == id) else {
                    return false;
                };
                self.bytes -= item.bytes();
                self.bytes += body.len();
                item.body = body;
                if item.state == State::Blocked && state == State::Queued {
                    item.failures = 0;
                    item.last_error = None;
                }
                item.state = state;
                item.block = block;
                item.updated = at;
                item.revision = revision;
                self.paused |= pause;
            }
            Change::Set(set) => {
                let Some(item) = self.items.iter_mut().find(|item| item.id == set.id) else {
                    return false;
                };
                item.state = set.state;
                item.intent = set.intent;
                item.block = set.block;
                item.failures = set.failures;
                item.last_error = set.last_error;
                item.settled = set.settled;
                item.updated = set.at;
                item.revision = revision;
                self.paused |= set.pause;
            }
            Change::Move { id, to, at } => {
                let Some(from) = self.position(&id) else {
                    return false;
                };
                let mut item = self.items.remove(from);
                item.updated = at;
                item.revision = revision;
                self.items.insert(to.min(self.items.len()), item);
            }
            Change::Drop { id, end } => {
                let Some(at) = self.position(&id) else {
                    return false;
                };
                let item = self.items.remove(at);
                self.bytes -= item.bytes();
                if let Some(key) = item.key {
                    let item = item.id;
                    self.remember(Receipt { key, item, end });
                }
            }
            Change::Pause(paused) => {
                self.paused = paused;
                if !paused {
                    self.recovered = None;
                }
            }
            Change::Recover(items) => {
                self.paused = true;
                self.recovered = Some(items);
            }
        }
        self.revision = revision;
        true
    }

    /// Puts an item at the end.
    fn take_in(&mut self, item: Item) {
        self.bytes += item.bytes();
        self.items.push(item);
    }

    fn remember(&mut self, receipt: Receipt) {
        self.receipts.push_back(Arc::new(receipt));
        while self.receipts.len() > self.bounds.receipts {
            self.receipts.pop_front();
        }
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.items.iter().position(|item| item.id == id)
    }

    fn find(&self, id: &str) -> Result<&Item, Refusal> {
        self.get(id).ok_or(Refusal::NotFound)
    }

    fn writable(&self) -> Result<(), Refusal> {
        match &self.read_only {
            Some(why) => Err(Refusal::ReadOnly { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// A reason as it is kept.
    fn reason(&self, text: &str) -> String {
        crate::wire::text::cut(text, self.bounds.reason).into()
    }
}
