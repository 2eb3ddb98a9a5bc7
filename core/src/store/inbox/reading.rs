//! The journal of an inbox, read in pieces, whole or not: line after line it becomes the inbox that wrote
//! it. Knows not what becomes of that; see `recovery`.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::record::{Change, Said, VERSION, pieces, read};
use super::text::hex;
use super::{Inbox, Journal};
use crate::limits::Limits;
use crate::wire::frames::{FrameDecoder, Line};

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

    /// The inbox that wrote it.
    pub(super) fn end(self) -> Left {
        let damaged = self.is_damaged();
        Left {
            damaged,
            anew: (self.replay.torn || damaged) && self.begun,
            newer: self.newer,
            inbox: self.replay.end(self.bytes),
        }
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
}

/// What a journal was, read to its end.
pub(super) struct Left {
    /// The inbox as it was when its last line was written.
    pub(super) inbox: Inbox,
    pub(super) damaged: bool,
    /// The journal cannot be continued as it is.
    pub(super) anew: bool,
    /// Its version, if that is newer than ours.
    pub(super) newer: Option<u32>,
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
    reading.end().inbox
}
