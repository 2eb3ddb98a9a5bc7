//! From a journal back to an inbox: whole, torn, damaged, of a newer version, or of a process that
//! ended in the middle of a turn.
//!
//! | what is found | what comes of it |
//! | --- | --- |
//! | a torn last line | it was never acknowledged: dropped, the file is written anew |
//! | a line twice, two lines run together, a torn line that was begun again | taken once |
//! | a line that is missing or is not what was written | the file is kept aside, every item is `uncertain`, the inbox paused |
//! | a newer version, or a file that cannot be read | read-only and paused, the file stays as it is |
//! | an item whose turn is over in the transcript | gone, its key remembered |
//! | an item whose turn began and is not over | `uncertain` |
//! | an item that began but is not in the transcript; guidance that is not | `queued`, in its place |
//! | items of another process | the inbox is paused and says how many it found |
//! | no items | never paused |

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Inbox;
use super::item::{Block, BlockCode, Item, State};
use super::reading::{Aside, Left, Reading};
use super::record::{Change, End, Set, VERSION};
use super::turns::{failed, ordinary};
use crate::limits::Limits;

/// What the transcript shows of an item: of the messages that carry its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The transcript cannot be read.
    Unreadable,
    /// Nothing.
    Absent,
    /// Its message.
    Begun {
        /// How often.
        times: u32,
        /// How the turn of the last of them ended, if it did.
        end: Option<TurnEnd>,
    },
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// By itself.
    Finished,
    /// It was cancelled.
    Cancelled,
    /// With an error.
    Failed {
        /// As [`Inbox::fail`] has it.
        passing: bool,
    },
}

/// An inbox that came back, and what has to be done with its files, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The inbox.
    pub inbox: Inbox,
    /// The journal was damaged: its bytes are to be written to a file of this name beside it. None also
    /// if it was read piece by piece.
    pub aside: Option<String>,
    /// The journal is to be replaced by this.
    pub rewrite: Option<Vec<u8>>,
    /// Lines to append to the journal; empty if it is replaced.
    pub lines: Vec<u8>,
    /// What was found.
    pub findings: Findings,
}

/// What a recovery found, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// Items that are there, if they are of another process, or were damaged.
    pub items: usize,
    /// Items of which it is not known how far their turns came.
    pub uncertain: usize,
    /// Items whose turns were over.
    pub finished: usize,
    /// The journal was damaged.
    pub damaged: bool,
}

impl Findings {
    /// What a person should know; none if it is nothing.
    pub fn notice(&self) -> Option<String> {
        if self.items == 0 && !self.damaged {
            return None;
        }
        let mut notice = match self.items {
            0 => String::from("The inbox was damaged; nothing was left in it."),
            1 => String::from("1 queued message was recovered."),
            n => format!("{n} queued messages were recovered."),
        };
        match self.uncertain {
            0 => {}
            1 => notice.push_str(" It is not known whether 1 of them has run."),
            n => notice.push_str(&format!(" It is not known whether {n} of them have run.")),
        }
        if self.items > 0 {
            if self.damaged {
                notice.push_str(" The inbox was damaged; its file was kept aside.");
            }
            notice.push_str(" The inbox is paused until it is told to go on.");
        }
        Some(notice)
    }
}

impl Reading {
    /// The inbox that comes of it. `claim` says what the transcript shows of an item. No bytes are an
    /// empty inbox. That a damaged one is kept aside is left to the caller.
    pub fn recover(self, at: i64, claim: impl FnMut(&Item) -> Claim) -> Recovery {
        let Left {
            mut inbox,
            damaged,
            anew,
            newer,
        } = self.end();
        if let Some(version) = newer {
            let why =
                format!("it was written by a newer version ({version}; this one is {VERSION})");
            inbox.paused = true;
            inbox.read_only = Some(why);
            inbox.version = version;
            return Recovery {
                inbox,
                aside: None,
                rewrite: None,
                lines: Vec::new(),
                findings: Findings::default(),
            };
        }
        inbox.settled(damaged, anew, at, claim)
    }
}

impl Inbox {
    /// The inbox whose journal holds `bytes`, for the process `run`: all at once, as [`Reading`] and
    /// [`Aside`] have it piece by piece.
    pub fn recover(
        bytes: &[u8],
        run: &str,
        at: i64,
        limits: &Limits,
        claim: impl FnMut(&Item) -> Claim,
    ) -> Recovery {
        let mut reading = Reading::new(run, limits);
        reading.push(bytes);
        reading.finish();
        let aside = reading.is_damaged().then(|| {
            let mut aside = Aside::new(bytes.len() as u64);
            aside.push(bytes);
            aside.end().0
        });
        Recovery {
            aside,
            ..reading.recover(at, claim)
        }
    }

    /// What becomes of an inbox that was left so. `anew`: its journal cannot be continued.
    fn settled(
        self,
        damaged: bool,
        anew: bool,
        at: i64,
        mut claim: impl FnMut(&Item) -> Claim,
    ) -> Recovery {
        let mut inbox = self;
        let foreign = inbox.journal.next > 0 && inbox.journal.run != inbox.run;
        let mut lines = Vec::new();
        let mut findings = Findings {
            damaged,
            ..Findings::default()
        };
        let uncertain = |inbox: &Self| {
            let uncertain = |item: &&Item| item.state == State::Uncertain;
            inbox.items.iter().filter(uncertain).count()
        };
        let before = uncertain(&inbox);
        let known: Vec<_> = inbox.items.iter().map(&mut claim).collect();
        let ids: Vec<_> = inbox.items.iter().map(|item| item.id.clone()).collect();
        for (id, claim) in ids.iter().zip(known) {
            inbox.settle(&mut lines, at, id, claim, &mut findings);
        }
        findings.uncertain = uncertain(&inbox);
        if inbox.items.is_empty() {
            if inbox.paused {
                inbox.commit(&mut lines, Change::Pause(false));
            }
        } else if foreign || damaged || findings.uncertain > before {
            findings.items = inbox.items.len();
            // It holds no more items than a number of 32 bits counts.
            let items = u32::try_from(inbox.items.len()).unwrap_or(u32::MAX);
            inbox.commit(&mut lines, Change::Recover(items));
        }
        let rewrite = match inbox.compaction() {
            Some(file) => Some(file),
            None => anew.then(|| inbox.rewrite()),
        };
        if rewrite.is_some() {
            lines.clear();
        }
        Recovery {
            aside: None,
            inbox,
            rewrite,
            lines,
            findings,
        }
    }

    /// Makes of an item what the transcript shows.
    fn settle(
        &mut self,
        lines: &mut Vec<u8>,
        at: i64,
        id: &str,
        claim: Claim,
        findings: &mut Findings,
    ) {
        let damaged = findings.damaged;
        let max = self.bounds.attempts;
        let Some(item) = self.get(id) else { return };
        let guidance = matches!(item.state, State::SteerAccepted | State::SteerConsumed);
        let before = item.as_it_is(at);
        let mut set = before.clone();
        let uncertain = |set: &mut Set, code, reason: &str| {
            set.state = State::Uncertain;
            set.block = Some(Block {
                code,
                reason: reason.into(),
            });
        };
        match claim {
            Claim::Unreadable => match item.state {
                State::Blocked | State::Uncertain => {}
                State::Queued | State::Running | State::SteerAccepted | State::SteerConsumed => {
                    let why = "the transcript that would tell whether it ran cannot be read";
                    uncertain(&mut set, BlockCode::OwnerInactive, why);
                }
            },
            Claim::Begun { times, end } if times > item.settled => {
                set.settled = times;
                match end {
                    Some(TurnEnd::Failed { passing }) if !guidance => {
                        let why = item.last_error.as_deref().unwrap_or("its turn failed");
                        failed(&mut set, passing, why, max);
                    }
                    Some(TurnEnd::Finished | TurnEnd::Cancelled | TurnEnd::Failed { .. }) => {
                        findings.finished += 1;
                        let id = id.into();
                        let end = End::Acknowledged;
                        return self.commit(lines, Change::Drop { id, end });
                    }
                    None => {
                        let why = "the process that ran it ended before its turn did";
                        uncertain(&mut set, BlockCode::OwnerInactive, why);
                    }
                }
            }
            Claim::Absent | Claim::Begun { .. } => match item.state {
                State::Running => set.state = State::Queued,
                State::SteerAccepted | State::SteerConsumed => ordinary(&mut set),
                State::Queued | State::Blocked | State::Uncertain => {}
            },
        }
        if damaged && set.state != State::Uncertain {
            let why = "the inbox was damaged: it is not known whether this is as it was left";
            uncertain(&mut set, BlockCode::ManifestSalvaged, why);
        }
        if set != before {
            self.commit(lines, Change::Set(set));
        }
    }
}
