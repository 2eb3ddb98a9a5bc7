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

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::item::{Block, BlockCode, Item, State};
use super::record::{Change, End, Said, Set, VERSION, pieces, read};
use super::text::hex;
use super::turns::{failed, ordinary};
use super::{Inbox, Journal};
use crate::limits::Limits;
use crate::wire::frames::{FrameDecoder, Line};

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

/// The journal of an inbox as far as it was read: it is taken in piece by piece, and no piece costs
/// more than its bytes and one line.
pub struct Reading {
    lines: FrameDecoder,
    replay: Replay,
    /// Bytes that came.
    bytes: u64,
    /// The last of them was a line end, or there was none.
    whole: bool,
    /// There was a line.
    begun: bool,
    /// Its version, if that is newer than ours: then nothing else of it is looked at.
    newer: Option<u32>,
}

impl Reading {
    /// Nothing was read yet. `run` names the process that reads.
    pub fn new(run: impl Into<String>, limits: &Limits) -> Self {
        Self {
            lines: FrameDecoder::new(limits.max_inbox_line),
            replay: Replay::new(Inbox::new(run, limits)),
            bytes: 0,
            whole: true,
            begun: false,
            newer: None,
        }
    }

    /// Takes the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.whole = *last == b'\n';
        self.bytes += bytes.len() as u64;
        if self.newer.is_none() {
            self.lines.push(bytes);
            self.take(true);
        }
    }

    /// There are no more bytes.
    pub fn finish(&mut self) {
        if self.newer.is_none() {
            self.lines.finish();
            self.take(self.whole);
        }
    }

    /// Bytes that came.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the file, which came to its end, is damaged, so that its bytes have to be kept.
    pub fn is_damaged(&self) -> bool {
        let replay = &self.replay;
        self.newer.is_none() && (replay.damaged || replay.broken || replay.kept != 0)
    }

    fn take(&mut self, ended: bool) {
        while let Some(line) = self.lines.next_line() {
            let line = match line {
                Line::Frame(line) => line,
                Line::TooLong => {
                    self.begun = true;
                    self.replay.torn |= !ended;
                    self.replay.broken |= ended;
                    continue;
                }
            };
            if !core::mem::replace(&mut self.begun, true) {
                self.newer = newer(line);
            }
            if self.newer.is_some() {
                return;
            }
            for piece in pieces(line) {
                self.replay.piece(piece.bytes, piece.ended || ended);
            }
        }
    }

    /// The inbox that comes of it. `claim` says what the transcript shows of an item. No bytes are an
    /// empty inbox. That a damaged one is kept aside is left to the caller.
    pub fn recover(self, at: i64, claim: impl FnMut(&Item) -> Claim) -> Recovery {
        let damaged = self.is_damaged();
        let torn = self.replay.torn;
        let mut inbox = self.replay.end(self.bytes);
        if let Some(version) = self.newer {
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
        inbox.settled(damaged, (torn || damaged) && self.begun, at, claim)
    }
}

/// A damaged journal that is kept beside the new one, taken in piece by piece.
pub struct Aside {
    hash: Sha256,
    bytes: Vec<u8>,
}

impl Aside {
    /// Nothing of it came yet; it has `size` bytes.
    pub fn new(size: u64) -> Self {
        Self {
            hash: Sha256::new(),
            bytes: Vec::with_capacity(usize::try_from(size).unwrap_or(0)),
        }
    }

    /// Takes the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that came.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// A name that no other damaged journal has, and all bytes.
    pub fn end(self) -> (String, Vec<u8>) {
        let name = format!("inbox.damaged-{}.jsonl", hex(&self.hash.finalize()[..6]));
        (name, self.bytes)
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

/// The journal as far as it was read.
struct Replay {
    inbox: Inbox,
    /// The number of the line that has to come next.
    next: u64,
    damaged: bool,
    torn: bool,
    /// A line could not be read, and none that was good came since.
    broken: bool,
    /// Lines that belong to the beginning and have not come.
    kept: u64,
    /// Every item there was.
    seen: BTreeSet<String>,
    /// Who wrote last.
    last: String,
}

impl Replay {
    fn new(inbox: Inbox) -> Self {
        Self {
            inbox,
            next: 0,
            damaged: false,
            torn: false,
            broken: false,
            kept: 0,
            seen: BTreeSet::new(),
            last: String::new(),
        }
    }

    /// The inbox as it was when its last line was written.
    fn end(mut self, bytes: u64) -> Inbox {
        self.inbox.journal = Journal {
            next: self.next,
            bytes,
            run: self.last,
        };
        self.inbox
    }

    fn piece(&mut self, bytes: &[u8], ended: bool) {
        self.torn |= !ended;
        let Some(line) = read(bytes, &self.inbox.bounds) else {
            self.broken |= ended;
            return;
        };
        if line.n < self.next {
            // A line that came before; an item that did not come before is a wrong number.
            let new = match &line.said {
                Said::Keep(item) | Said::Change(Change::Add { item, .. }) => {
                    !self.seen.contains(&item.id)
                }
                Said::Head(_) | Said::Receipt(_) | Said::Change(_) => false,
            };
            if !new {
                return;
            }
            self.damaged = true;
        } else {
            self.damaged |= line.n > self.next || line.altered;
            self.broken = false;
            self.next = line.n.saturating_add(1);
        }
        if let Some(run) = line.run {
            self.last = run;
        }
        self.damaged |= !self.take(line.n, line.said);
    }

    /// Takes what a line says. Returns false if it cannot be so.
    fn take(&mut self, n: u64, said: Said) -> bool {
        match said {
            Said::Head(head) => {
                self.inbox.revision = head.revision;
                self.inbox.paused = head.paused;
                self.inbox.recovered = head.recovered;
                self.kept = head.kept;
                n == 0 && head.version == VERSION
            }
            Said::Keep(item) => {
                let new = self.seen.insert(item.id.clone());
                if new {
                    self.inbox.take_in(item);
                }
                self.keep(new)
            }
            Said::Receipt(receipt) => {
                self.inbox.remember(receipt);
                self.keep(true)
            }
            Said::Change(change) => {
                let new = match &change {
                    Change::Add { item, .. } => self.seen.insert(item.id.clone()),
                    Change::Edit { .. }
                    | Change::Set(_)
                    | Change::Move { .. }
                    | Change::Drop { .. }
                    | Change::Pause(_)
                    | Change::Recover(_) => true,
                };
                new && self.inbox.apply(change)
            }
        }
    }

    fn keep(&mut self, good: bool) -> bool {
        let due = self.kept > 0;
        self.kept = self.kept.saturating_sub(1);
        good && due
    }
}

/// The version of a journal that is newer than ours, by its first line, however the rest of it looks.
fn newer(line: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct First<'a> {
        op: &'a str,
        version: u32,
    }
    let first = pieces(line).next()?;
    let first: First<'_> = serde_json::from_slice(first.bytes).ok()?;
    (first.op == "inbox" && first.version > VERSION).then_some(first.version)
}

/// The inbox that wrote a journal, before anything is made of what it left.
#[cfg(test)]
pub(super) fn replayed(bytes: &[u8], run: &str, limits: &Limits) -> Inbox {
    let mut reading = Reading::new(run, limits);
    reading.push(bytes);
    reading.finish();
    reading.replay.end(reading.bytes)
}
