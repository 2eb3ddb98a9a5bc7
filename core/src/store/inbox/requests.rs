//! What clients ask an inbox for. Each is refused whole, or done and handed back as lines.

use alloc::string::String;
use alloc::vec::Vec;

use super::item::{Block, BlockCode, Body, Encoded, Intent, Item, Key, State, names};
use super::record::{Change, End, Set};
use super::refs::Draft;
use super::text::digest;
use super::{Done, Inbox, Refusal};

/// An item to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    /// An id that was never used.
    pub id: String,
    /// What it is for.
    pub intent: Intent,
    /// Who puts it in.
    pub source: String,
    /// Its idempotency key.
    pub key: Option<String>,
    /// What it says.
    pub draft: Draft,
}

names! {
    /// What became of an item that was put in.
    Disposition {
        /// The running turn took it.
        SteerAccepted = "steer_accepted",
        /// It waits for its turn.
        QueuedFollowup = "queued_followup",
        /// It was put in before, and has run.
        Acknowledged = "acknowledged",
        /// It was put in before, and was deleted.
        Discarded = "discarded",
    }
}

/// The answer to whoever put an item in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The item.
    pub id: String,
    /// What became of it.
    pub disposition: Disposition,
    /// Its place, from 1; 0 if it is gone.
    pub position: usize,
    /// Whether the inbox is paused.
    pub paused: bool,
    /// It was put in before, by the same key.
    pub idempotent: bool,
}

impl Inbox {
    /// Whether such an item could be put in, as far as that can be known before its references are
    /// frozen. An answer means that it was put in before: nothing needs to be frozen.
    ///
    /// What is looked at first: the text is not empty, the inbox can be changed, the key has the
    /// right shape, the key is new or bound to this content, the text is not too long, there is
    /// room.
    pub fn admits(
        &self,
        text: &str,
        source: &str,
        key: Option<&str>,
    ) -> Result<Option<Enqueued>, Refusal> {
        if text.trim().is_empty() {
            return Err(Refusal::Empty);
        }
        self.writable()?;
        if let Some(key) = key {
            if !is_key(key) {
                return Err(Refusal::InvalidKey);
            }
            if let Some((known, bound)) = self.known(key) {
                if bound != content(text, source) {
                    return Err(Refusal::Conflict);
                }
                return Ok(Some(known));
            }
        }
        self.fits(text.len())?;
        if self.items.len() >= self.bounds.items {
            return Err(Refusal::Full {
                max: self.bounds.items,
            });
        }
        self.has_room(text.len())?;
        Ok(None)
    }

    /// Puts an item in, at the end. With `steerable`, a turn runs that takes guidance: guidance is
    /// accepted by it, unless the inbox is paused; otherwise it waits like the rest. If a
    /// reference could not be frozen the item is kept, blocked, and the inbox is paused.
    pub fn enqueue(
        &mut self,
        at: i64,
        new: NewItem,
        steerable: bool,
    ) -> Result<Done<Enqueued>, Refusal> {
        let text = new.draft.text.as_str();
        if let Some(known) = self.admits(text, &new.source, new.key.as_deref())? {
            return Ok(Done {
                answer: known,
                lines: Vec::new(),
            });
        }
        let bound = content(text, &new.source);
        let failed = new.draft.failed.clone();
        let body = self.encoded(new.draft);
        self.fits(body.len())?;
        self.has_room(body.len())?;
        let block = failed.map(|why| self.reference_failed(&why));
        let state = match (&block, new.intent) {
            (Some(_), _) => State::Blocked,
            (None, Intent::Steer) if steerable && !self.paused => State::SteerAccepted,
            (None, Intent::Steer | Intent::FollowUp) => State::Queued,
        };
        let pause = block.is_some();
        let item = Item {
            id: new.id,
            intent: new.intent,
            state,
            revision: 0,
            source: new.source,
            key: new.key.map(|text| Key { text, bound }),
            created: at,
            updated: at,
            block,
            failures: 0,
            last_error: None,
            settled: 0,
            body,
        };
        let answer = Enqueued {
            id: item.id.clone(),
            disposition: disposition(state),
            position: self.items.len() + 1,
            paused: self.paused || pause,
            idempotent: false,
        };
        Ok(self.asked(answer, Change::Add { item, pause }))
    }

    /// Another text for a pending item. A blocked one is queued again.
    pub fn update(&mut self, at: i64, id: &str, draft: Draft) -> Result<Done<()>, Refusal> {
        let item = self.pending(id)?;
        if draft.text.trim().is_empty() {
            return Err(Refusal::Empty);
        }
        let (old, state, block) = (item.bytes(), item.state, item.block.clone());
        let failed = draft.failed.as_deref();
        let failed = failed.map(|why| self.reference_failed(why));
        let body = self.encoded(draft);
        let same = item.body == body;
        self.fits(body.len())?;
        self.has_room(body.len().saturating_sub(old))?;
        let pause = failed.is_some();
        let (state, block) = match (state, failed) {
            // Whether it ran is still not known.
            (State::Uncertain, _) => (State::Uncertain, block),
            (_, Some(failed)) => (State::Blocked, Some(failed)),
            (_, None) => (State::Queued, None),
        };
        let item = self.find(id)?;
        if same && state == item.state && block == item.block && (self.paused || !pause) {
            return Ok(unchanged(()));
        }
        let id = id.into();
        Ok(self.asked(
            (),
            Change::Edit {
                id,
                body,
                state,
                block,
                pause,
                at,
            },
        ))
    }

    /// The references of a pending item, frozen again: `draft` has its own text. A blocked item is
    /// queued again, unless a reference fails again.
    pub fn refresh(&mut self, at: i64, id: &str, draft: Draft) -> Result<Done<()>, Refusal> {
        self.update(at, id, draft)
    }

    /// Whether an item could be given another text, before its references are frozen.
    pub fn pending(&self, id: &str) -> Result<&Item, Refusal> {
        self.writable()?;
        let item = self.find(id)?;
        match item.state.is_pending() {
            true => Ok(item),
            false => Err(Refusal::WrongState { state: item.state }),
        }
    }

    /// Takes an item out. Guidance that a turn took can be withdrawn until the turn has read it.
    pub fn delete(&mut self, id: &str) -> Result<Done<()>, Refusal> {
        self.writable()?;
        match self.find(id)?.state {
            State::Queued | State::Blocked | State::Uncertain | State::SteerAccepted => {}
            State::SteerConsumed => return Err(Refusal::AlreadyApplied),
            state @ State::Running => return Err(Refusal::WrongState { state }),
        }
        let id = id.into();
        Ok(self.asked(
            (),
            Change::Drop {
                id,
                end: End::Discarded,
            },
        ))
    }

    /// Puts a pending item at another place, from 0; what is less than 0 is 0, what is too large is
    /// the last.
    pub fn move_to(&mut self, at: i64, id: &str, to: i64) -> Result<Done<()>, Refusal> {
        self.pending(id)?;
        let last = self.items.len() - 1;
        let to = usize::try_from(to.max(0)).unwrap_or(last).min(last);
        if self.position(id) == Some(to) {
            return Ok(unchanged(()));
        }
        let id = id.into();
        Ok(self.asked((), Change::Move { id, to, at }))
    }

    /// Pauses it, or lets it go on. The answer is whether it is paused.
    pub fn set_paused(&mut self, paused: bool) -> Result<Done<bool>, Refusal> {
        self.writable()?;
        if self.paused == paused {
            return Ok(unchanged(paused));
        }
        Ok(self.asked(paused, Change::Pause(paused)))
    }

    /// A blocked or uncertain item waits for its turn again, whatever became of it before.
    pub fn retry(&mut self, at: i64, id: &str) -> Result<Done<()>, Refusal> {
        self.writable()?;
        let item = self.find(id)?;
        match item.state {
            State::Blocked | State::Uncertain => {}
            state @ (State::Queued
            | State::SteerAccepted
            | State::SteerConsumed
            | State::Running) => return Err(Refusal::WrongState { state }),
        }
        let set = Set {
            state: State::Queued,
            block: None,
            failures: 0,
            last_error: None,
            ..item.as_it_is(at)
        };
        Ok(self.asked((), Change::Set(set)))
    }

    /// What became of the item with this key, and the content the key is bound to.
    fn known(&self, key: &str) -> Option<(Enqueued, [u8; 32])> {
        let is = |known: &Key| known.text == key;
        let answer = |id: &str, disposition, position| Enqueued {
            id: id.into(),
            disposition,
            position,
            paused: self.paused,
            idempotent: true,
        };
        for (item, position) in self.items.iter().zip(1..) {
            if let Some(key) = item.key.as_ref().filter(|known| is(known)) {
                let answer = answer(&item.id, disposition(item.state), position);
                return Some((answer, key.bound));
            }
        }
        let receipt = self.receipts.iter().rfind(|known| is(&known.key))?;
        let disposition = match receipt.end {
            End::Acknowledged => Disposition::Acknowledged,
            End::Discarded => Disposition::Discarded,
        };
        Some((answer(&receipt.item, disposition, 0), receipt.key.bound))
    }

    fn encoded(&self, draft: Draft) -> Encoded {
        let body = Body {
            text: draft.text,
            refs: draft.refs,
        };
        body.encode(&self.bounds)
    }

    fn fits(&self, bytes: usize) -> Result<(), Refusal> {
        let max = self.bounds.item;
        match bytes > max {
            true => Err(Refusal::TooLarge { bytes, max }),
            false => Ok(()),
        }
    }

    fn has_room(&self, more: usize) -> Result<(), Refusal> {
        let max = self.bounds.bytes;
        match self.bytes.saturating_add(more) > max {
            true => Err(Refusal::NoRoom { max }),
            false => Ok(()),
        }
    }

    fn reference_failed(&self, why: &str) -> Block {
        Block {
            code: BlockCode::ReferenceFailed,
            reason: self.reason(why),
        }
    }
}

impl Item {
    /// A change of state that changes nothing yet.
    pub(super) fn as_it_is(&self, at: i64) -> Set {
        Set {
            id: self.id.clone(),
            state: self.state,
            intent: self.intent,
            block: self.block.clone(),
            failures: self.failures,
            last_error: self.last_error.clone(),
            settled: self.settled,
            pause: false,
            at,
        }
    }
}

fn unchanged<T>(answer: T) -> Done<T> {
    Done {
        answer,
        lines: Vec::new(),
    }
}

fn disposition(state: State) -> Disposition {
    match state {
        State::SteerAccepted | State::SteerConsumed => Disposition::SteerAccepted,
        State::Queued | State::Running | State::Blocked | State::Uncertain => {
            Disposition::QueuedFollowup
        }
    }
}

/// What a key is bound to: what was said and by whom, not what references led to.
fn content(text: &str, source: &str) -> [u8; 32] {
    digest(&[text, source])
}

fn is_key(key: &str) -> bool {
    (1..=128).contains(&key.len())
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'))
}
