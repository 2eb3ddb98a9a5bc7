//! What the turns of the session do with their inbox.

use alloc::string::String;
use alloc::vec::Vec;

use super::item::{Block, BlockCode, Intent, Item, State};
use super::record::{Change, End, Set};
use super::{Done, Inbox, Refusal};

impl Inbox {
    /// The item whose turn is next; none if none waits, or nothing may begin.
    pub fn next(&self) -> Option<&Item> {
        if self.paused || self.read_only.is_some() {
            return None;
        }
        self.items.iter().find(|item| item.state == State::Queued)
    }

    /// The turn of an item begins. What decides is the item's message in the transcript: this is
    /// for those who look.
    pub fn begin(&mut self, at: i64, id: &str) -> Result<Done<()>, Refusal> {
        self.writable()?;
        let item = self.find(id)?;
        if item.state != State::Queued {
            return Err(Refusal::WrongState { state: item.state });
        }
        if self.paused {
            return Err(Refusal::Paused);
        }
        let set = Set {
            state: State::Running,
            ..item.as_it_is(at)
        };
        Ok(self.done((), Change::Set(set)))
    }

    /// The turn of an item did not begin after all: nothing of it is in the transcript.
    pub fn release(&mut self, at: i64, id: &str) -> Done<()> {
        self.set_if(id, at, State::Running, |set| set.state = State::Queued)
    }

    /// The turn of an item, or the one that read it as guidance, is over: it is gone. A cancelled
    /// turn is over too.
    pub fn finish(&mut self, id: &str) -> Done<()> {
        let over = |state| matches!(state, State::Running | State::SteerConsumed);
        match self.get(id) {
            Some(item) if over(item.state) => self.done(
                (),
                Change::Drop {
                    id: id.into(),
                    end: End::Acknowledged,
                },
            ),
            Some(_) | None => nothing(),
        }
    }

    /// The turn of an item failed. `passing`: the turn had done nothing, and the same may succeed
    /// at another time, so the item waits for it, until it has failed as often as the limit says.
    /// Otherwise it is set aside until a person decides.
    pub fn fail(&mut self, at: i64, id: &str, passing: bool, error: &str) -> Done<()> {
        let error = self.reason(error);
        let max = self.bounds.attempts;
        self.set_if(id, at, State::Running, |set| {
            set.settled += 1;
            failed(set, passing, &error, max);
        })
    }

    /// It is not known how far an item's turn came, or whether it began. The inbox is paused.
    pub fn uncertain(&mut self, at: i64, id: &str, code: BlockCode, reason: &str) -> Done<()> {
        let block = Block {
            code,
            reason: self.reason(reason),
        };
        match self.get(id) {
            Some(item) => {
                let set = Set {
                    state: State::Uncertain,
                    block: Some(block),
                    pause: true,
                    ..item.as_it_is(at)
                };
                self.done((), Change::Set(set))
            }
            None => nothing(),
        }
    }

    /// Guidance that the running turn took and has not read, in order.
    pub fn accepted(&self) -> impl Iterator<Item = &Item> {
        let accepted = |item: &&Item| item.state == State::SteerAccepted;
        self.items.iter().filter(accepted)
    }

    /// Guidance that the running turn has read, in order.
    pub fn consumed(&self) -> impl Iterator<Item = &Item> {
        let consumed = |item: &&Item| item.state == State::SteerConsumed;
        self.items.iter().filter(consumed)
    }

    /// The running turn has read guidance that it took.
    pub fn consume(&mut self, at: i64, id: &str) -> Done<()> {
        self.set_if(id, at, State::SteerAccepted, |set| {
            set.state = State::SteerConsumed;
        })
    }

    /// The turn is over, or cancelled: guidance that it took and did not read waits for a turn of
    /// its own, in its place. The answer is how much there was.
    pub fn give_back(&mut self, at: i64) -> Done<usize> {
        let ids: Vec<String> = self.accepted().map(|item| item.id.clone()).collect();
        let mut lines = Vec::new();
        for id in &ids {
            let done = self.set_if(id, at, State::SteerAccepted, ordinary);
            lines.extend(done.lines);
        }
        Done {
            answer: ids.len(),
            lines,
        }
    }

    /// Changes an item that is in this state; does nothing to others, so that what comes late does
    /// no harm.
    fn set_if(&mut self, id: &str, at: i64, state: State, act: impl FnOnce(&mut Set)) -> Done<()> {
        match self.get(id) {
            Some(item) if item.state == state => {
                let mut set = item.as_it_is(at);
                act(&mut set);
                self.done((), Change::Set(set))
            }
            Some(_) | None => nothing(),
        }
    }
}

/// Makes guidance an ordinary follow-up.
pub(super) fn ordinary(set: &mut Set) {
    set.state = State::Queued;
    set.intent = Intent::FollowUp;
    set.block = None;
}

/// What a failed turn does to its item.
pub(super) fn failed(set: &mut Set, passing: bool, error: &str, max: u32) {
    set.last_error = Some(error.into());
    let code = if !passing {
        Some(BlockCode::TurnFailed)
    } else {
        set.failures += 1;
        (set.failures >= max).then_some(BlockCode::AttemptsExhausted)
    };
    set.state = match code {
        Some(_) => State::Blocked,
        None => State::Queued,
    };
    set.block = code.map(|code| Block {
        code,
        reason: error.into(),
    });
}

fn nothing() -> Done<()> {
    Done {
        answer: (),
        lines: Vec::new(),
    }
}
