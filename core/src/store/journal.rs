//! The writing end of an append-only file of JSON lines. Knows when what was pushed is safe, not
//! what it means.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use crate::call::{Append, Call, Expect, Write};
use crate::error::IoFault;

/// The place of what was pushed into a journal: the first is 1.
pub type Place = u64;

/// The writing end of one append-only file.
///
/// What is pushed is taken at once and written in the order it came, by one call at a time: what is
/// pushed while one is open goes with the next, so much of it shares one sync. The file can be
/// replaced as a whole. A failed call closes the journal: what the file holds from then on is not
/// known, and to try again could write a record twice. Only a whole new file opens it again, behind
/// what is still to be kept aside.
#[derive(Debug)]
pub struct Journal {
    lane: Lane,
    /// Whole files to write first: damaged ones that are kept, and the journal anew.
    files: VecDeque<Whole>,
    /// Lines that no append has taken.
    pending: Vec<u8>,
    /// How far it was pushed, is in the file, is safe.
    pushed: Place,
    written: Place,
    synced: Place,
    /// The last place that has to be safe.
    wanted: Place,
    open: Option<Open>,
    /// The file's last line has no end: what is written next must not be glued to it.
    torn: bool,
    fault: Option<IoFault>,
}

#[derive(Debug)]
enum Lane {
    Disk {
        path: String,
        beneath: String,
        /// Size of the file with all that was written, bytes.
        size: u64,
    },
    Memory {
        kept: Vec<u8>,
        /// The most that is kept, bytes; the oldest lines go.
        most: usize,
        /// Bytes that went.
        gone: u64,
    },
}

#[derive(Clone, Debug)]
struct Whole {
    path: String,
    bytes: Vec<u8>,
    upto: Place,
    /// The file's size from then on; none: it is another file.
    size: Option<u64>,
}

/// A call that has not ended.
#[derive(Debug)]
struct Open {
    upto: Place,
    durable: bool,
    /// The file's size from then on.
    size: u64,
    /// What it keeps aside: still to be kept if it fails.
    aside: Option<Whole>,
}

/// Whether a record is where it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safe {
    /// It is.
    Yes,
    /// Not yet.
    NotYet,
    /// It never will be: the journal is closed.
    Never,
}

impl Journal {
    /// A journal in a file that has `size` bytes by now; `torn` if the last of them is no line end.
    pub fn disk(path: String, beneath: String, size: u64, torn: bool) -> Self {
        Self::new(
            Lane::Disk {
                path,
                beneath,
                size,
            },
            torn,
        )
    }

    /// A journal that lives as long as the process and keeps about `most` bytes: when they are more the
    /// older half goes.
    pub fn memory(most: usize) -> Self {
        let lane = Lane::Memory {
            kept: Vec::new(),
            most,
            gone: 0,
        };
        Self::new(lane, false)
    }

    fn new(lane: Lane, torn: bool) -> Self {
        Self {
            lane,
            files: VecDeque::new(),
            pending: Vec::new(),
            pushed: 0,
            written: 0,
            synced: 0,
            wanted: 0,
            open: None,
            torn,
            fault: None,
        }
    }

    /// Takes a record, with the time it was made at in milliseconds since 1970. `durable`: it must
    /// survive a loss of power. A closed journal takes nothing.
    pub fn push(&mut self, at: Option<u64>, record: &impl Serialize, durable: bool) -> Place {
        self.take(durable, |out| line(out, at, record))
    }

    /// Takes whole lines; none are at the place of those before. As [`push`](Self::push).
    pub fn push_lines(&mut self, lines: &[u8], durable: bool) -> Place {
        match lines {
            [] => self.pushed,
            lines => self.take(durable, |out| out.extend_from_slice(lines)),
        }
    }

    fn take(&mut self, durable: bool, write: impl FnOnce(&mut Vec<u8>)) -> Place {
        self.pushed += 1;
        if durable {
            self.wanted = self.pushed;
        }
        if self.fault.is_some() {
            return self.pushed;
        }
        match &mut self.lane {
            Lane::Disk { .. } => {
                if core::mem::take(&mut self.torn) {
                    self.pending.push(b'\n');
                }
                write(&mut self.pending);
            }
            Lane::Memory { kept, most, gone } => {
                write(kept);
                if kept.len() > *most {
                    let end = line_end(kept, kept.len() / 2);
                    kept.drain(..end);
                    *gone += end as u64;
                }
                self.written = self.pushed;
                self.synced = self.pushed;
            }
        }
        self.pushed
    }

    /// The file as a whole, with all that was pushed before; safe when it is written.
    pub fn replace(&mut self, bytes: Vec<u8>) {
        if let (Lane::Disk { path, .. }, None) = (&self.lane, &self.fault) {
            self.pending = Vec::new();
            self.torn = false;
            self.files.push_back(Whole {
                path: path.clone(),
                upto: self.pushed,
                size: Some(bytes.len() as u64),
                bytes,
            });
        }
    }

    /// Opens a journal that a failure closed, with all that the file has to hold: what that is is known
    /// again when it is written. Places that were lost are safe with it: who was promised what stood
    /// there must be told before.
    pub fn renew(&mut self, bytes: Vec<u8>) {
        self.fault = None;
        self.pushed += 1;
        self.wanted = self.pushed;
        self.replace(bytes);
    }

    /// Bytes to keep under another name in the same folder, before anything else is written; also
    /// before what [`renew`](Self::renew) writes, if they could not be until then.
    pub fn keep_aside(&mut self, name: &str, bytes: Vec<u8>) {
        if let (Lane::Disk { path, .. }, None) = (&self.lane, &self.fault) {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            self.files.push_back(Whole {
                path: format!("{folder}/{name}"),
                bytes,
                upto: 0,
                size: None,
            });
        }
    }

    /// Makes all that the file holds safe, what an earlier process wrote too; the place says when it
    /// is. If nothing was made safe yet and nothing waits to be, the file is synced as it is.
    pub fn sync(&mut self) -> Place {
        if let Lane::Disk { .. } = self.lane
            && self.fault.is_none()
            && self.wanted == 0
        {
            self.pushed += 1;
            self.wanted = self.pushed;
        }
        self.wanted
    }

    /// Whether something has to be made safe, and no call that is open does it.
    fn lacks_sync(&self) -> bool {
        self.open.is_none() && self.fault.is_none() && self.wanted > self.synced
    }

    /// The call that is due, if none is open and something waits.
    pub fn begin(&mut self) -> Option<Call> {
        let Lane::Disk {
            path,
            beneath,
            size,
        } = &self.lane
        else {
            return None;
        };
        if self.open.is_some() {
            return None;
        }
        if self.fault.is_none()
            && let Some(whole) = self.files.pop_front()
        {
            self.open = Some(Open {
                upto: whole.upto,
                durable: true,
                size: whole.size.unwrap_or(*size),
                aside: whole.size.is_none().then(|| whole.clone()),
            });
            return Some(Call::Write(Write {
                path: whole.path,
                beneath: Some(beneath.clone()),
                bytes: whole.bytes,
                expect: Expect::Anything,
                parents: true,
                private: true,
            }));
        }
        let durable = self.lacks_sync();
        if self.pending.is_empty() && !durable {
            return None;
        }
        let bytes = core::mem::take(&mut self.pending);
        self.open = Some(Open {
            upto: self.pushed,
            durable,
            size: size + bytes.len() as u64,
            aside: None,
        });
        Some(Call::Append(Append {
            path: path.clone(),
            beneath: beneath.clone(),
            bytes,
            durable,
        }))
    }

    /// The open call has ended.
    pub fn ended(&mut self, result: Result<(), IoFault>) {
        let Some(open) = self.open.take() else { return };
        match result {
            Ok(()) => {
                self.written = self.written.max(open.upto);
                if open.durable {
                    self.synced = self.synced.max(open.upto);
                }
                if let Lane::Disk { size, .. } = &mut self.lane {
                    *size = open.size;
                }
            }
            Err(fault) => {
                self.pending = Vec::new();
                // The journal itself may hold the only copy of what is to be kept aside.
                self.files.retain(|whole| whole.size.is_none());
                if let Some(aside) = open.aside {
                    self.files.push_front(aside);
                }
                self.fault = Some(fault);
            }
        }
    }

    /// Whether what is at a place is in the file, and safe if it was pushed as durable or something
    /// after it was.
    pub fn is_safe(&self, place: Place) -> Safe {
        let reached = if place <= self.wanted {
            self.synced
        } else {
            self.written
        };
        if reached >= place {
            Safe::Yes
        } else if self.fault.is_some() {
            Safe::Never
        } else {
            Safe::NotYet
        }
    }

    /// The place of what was pushed last.
    pub fn place(&self) -> Place {
        self.pushed
    }

    /// Bytes that wait to be written.
    pub fn backlog(&self) -> usize {
        self.pending.len()
    }

    /// Whether nothing is written and nothing waits to be, as long as nobody renews it.
    pub fn is_idle(&self) -> bool {
        self.open.is_none()
            && self.pending.is_empty()
            && (self.files.is_empty() || self.fault.is_some())
            && !self.lacks_sync()
    }

    /// Why it is closed.
    pub fn fault(&self) -> Option<&IoFault> {
        self.fault.as_ref()
    }

    /// The path of the file; none: it is in memory.
    pub fn path(&self) -> Option<&str> {
        match &self.lane {
            Lane::Disk { path, .. } => Some(path),
            Lane::Memory { .. } => None,
        }
    }

    /// Length of all that was written, bytes: the size of the file, if there is one.
    pub fn size(&self) -> u64 {
        match &self.lane {
            Lane::Disk { size, .. } => *size,
            Lane::Memory { kept, gone, .. } => gone + kept.len() as u64,
        }
    }

    /// All that a journal in memory has kept.
    pub fn kept(&self) -> Option<&[u8]> {
        match &self.lane {
            Lane::Disk { .. } => None,
            Lane::Memory { kept, .. } => Some(kept),
        }
    }

    /// Lines that a journal in memory has kept, those that begin at `at` or behind it: whole ones, at
    /// least one if there is one, and as many as begin within `max` bytes. With them, how many bytes
    /// in front of them went since.
    pub fn kept_from(&self, at: u64, max: usize) -> Option<(u64, &[u8])> {
        let Lane::Memory { kept, gone, .. } = &self.lane else {
            return None;
        };
        let from = at.max(*gone);
        let lines =
            usize::try_from(from - gone).map_or(&[][..], |at| kept.get(at..).unwrap_or_default());
        Some((from - at, &lines[..line_end(lines, max)]))
    }
}

/// Where the line ends that the byte at `at` is in; lines all have an end.
fn line_end(lines: &[u8], at: usize) -> usize {
    let behind = lines.get(at..).unwrap_or_default();
    let end = behind.iter().position(|byte| *byte == b'\n');
    end.map_or(lines.len(), |end| at + end + 1)
}

/// Writes a record as one line, `at` in front.
fn line(out: &mut Vec<u8>, at: Option<u64>, record: &impl Serialize) {
    // Records are structs of strings and numbers: they have a JSON form.
    let json = serde_json::to_vec(record).expect("a record has a JSON form");
    match at {
        Some(at) => {
            out.extend_from_slice(b"{\"at\":");
            out.extend_from_slice(alloc::format!("{at},").as_bytes());
            out.extend_from_slice(json.get(1..).unwrap_or_default());
        }
        None => out.extend_from_slice(&json),
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::IoKind;

    #[derive(Serialize)]
    struct Entry {
        n: u32,
    }

    fn on_disk(torn: bool) -> Journal {
        Journal::disk("/s/t".into(), "/s".into(), 7, torn)
    }

    /// What is called for: a file and its bytes, and whether they are synced.
    fn due(journal: &mut Journal) -> Option<(String, String, bool)> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("lines are text");
        let call = journal.begin()?;
        if let Call::Append(append) = call {
            Some((append.path, text(append.bytes), append.durable))
        } else if let Call::Write(write) = call {
            Some((write.path, text(write.bytes), true))
        } else {
            panic!("{call:?}")
        }
    }

    fn is(path: &str, bytes: &str, durable: bool) -> Option<(String, String, bool)> {
        Some((path.into(), bytes.into(), durable))
    }

    /// An append to the journal.
    fn added(bytes: &str, durable: bool) -> Option<(String, String, bool)> {
        is("/s/t", bytes, durable)
    }

    #[test]
    fn what_is_pushed_while_an_append_is_open_goes_with_the_next() {
        let mut journal = on_disk(false);
        let first = journal.push(Some(5), &Entry { n: 1 }, false);
        assert_eq!(due(&mut journal), added("{\"at\":5,\"n\":1}\n", false));
        let second = journal.push(None, &Entry { n: 2 }, true);
        let third = journal.push_lines(b"{}\n[]\n", false);
        assert_eq!(journal.push_lines(b"", true), third, "nothing to write");
        assert_eq!(due(&mut journal), None, "one at a time");
        journal.ended(Ok(()));
        // A record before one that must be safe is safe with it, not earlier.
        assert_eq!(journal.is_safe(first), Safe::NotYet);
        assert_eq!(due(&mut journal), added("{\"n\":2}\n{}\n[]\n", true));
        assert_eq!(journal.is_safe(second), Safe::NotYet);
        journal.ended(Ok(()));
        for place in [first, second, third] {
            assert_eq!(journal.is_safe(place), Safe::Yes);
        }
        assert!(journal.is_idle());
        assert_eq!(journal.size(), 7 + 15 + 14);
    }

    #[test]
    fn a_line_without_an_end_is_not_continued() {
        let mut journal = on_disk(true);
        journal.push(None, &Entry { n: 1 }, false);
        journal.push(None, &Entry { n: 2 }, false);
        assert_eq!(due(&mut journal), added("\n{\"n\":1}\n{\"n\":2}\n", false));
    }

    #[test]
    fn a_new_file_takes_the_place_of_what_waits_and_what_was_damaged_is_kept_first() {
        let mut journal = on_disk(true);
        journal.keep_aside("old", b"?".to_vec());
        let place = journal.push_lines(b"a\n", true);
        journal.replace(b"whole\n".to_vec());
        let behind = journal.push_lines(b"b\n", false);
        assert_eq!(due(&mut journal), is("/s/old", "?", true));
        journal.ended(Ok(()));
        assert_eq!(journal.size(), 7);
        assert_eq!(journal.is_safe(place), Safe::NotYet);
        assert_eq!(due(&mut journal), is("/s/t", "whole\n", true));
        journal.ended(Ok(()));
        assert_eq!(journal.size(), 6);
        assert_eq!(journal.is_safe(place), Safe::Yes);
        assert_eq!(journal.is_safe(behind), Safe::NotYet);
        assert_eq!(due(&mut journal), added("b\n", false));
    }

    #[test]
    fn the_first_failure_closes_it_and_nothing_is_repeated_or_written_any_more() {
        for whole in [false, true] {
            let mut journal = on_disk(false);
            if whole {
                journal.keep_aside("old", b"?".to_vec());
                journal.replace(b"whole\n".to_vec());
            }
            let lost = journal.push(None, &Entry { n: 1 }, true);
            assert!(due(&mut journal).is_some());
            let waits = journal.push(None, &Entry { n: 2 }, true);
            journal.ended(Err(IoFault::new(IoKind::Full, "no space")));
            let late = journal.push(None, &Entry { n: 3 }, true);
            journal.replace(b"whole\n".to_vec());
            journal.keep_aside("old", b"?".to_vec());
            for place in [lost, waits, late] {
                assert_eq!(journal.is_safe(place), Safe::Never);
            }
            assert_eq!(due(&mut journal), None);
            assert!(journal.is_idle());
            assert_eq!(journal.fault().map(|fault| fault.kind), Some(IoKind::Full));
        }
    }

    #[test]
    fn a_journal_that_failed_is_opened_by_a_whole_new_file_only() {
        let mut journal = on_disk(false);
        let lost = journal.push(None, &Entry { n: 1 }, true);
        assert!(due(&mut journal).is_some());
        journal.ended(Err(IoFault::new(IoKind::Full, "no space")));
        assert_eq!(journal.is_safe(lost), Safe::Never);
        for works in [false, true] {
            journal.renew(b"whole\n".to_vec());
            let place = journal.place();
            let behind = journal.push(None, &Entry { n: 2 }, true);
            assert_eq!(due(&mut journal), is("/s/t", "whole\n", true));
            assert_eq!(journal.is_safe(place), Safe::NotYet);
            journal.ended(match works {
                true => Ok(()),
                false => Err(IoFault::new(IoKind::Full, "no space")),
            });
            let safe = if works { Safe::Yes } else { Safe::Never };
            assert_eq!(journal.is_safe(place), safe);
            assert_eq!(journal.is_safe(behind) == Safe::Never, !works);
        }
        assert_eq!(due(&mut journal), added("{\"n\":2}\n", true));
        journal.ended(Ok(()));
        assert!(journal.is_idle());
        assert_eq!(journal.size(), 6 + 8);
    }

    #[test]
    fn what_is_kept_aside_is_written_before_the_file_is_replaced_however_often_that_fails() {
        let mut journal = on_disk(false);
        journal.keep_aside("old", b"?".to_vec());
        journal.keep_aside("older", b"!".to_vec());
        journal.replace(b"whole\n".to_vec());
        let full = || Err(IoFault::new(IoKind::Full, "no space"));
        for _ in 0..2 {
            assert_eq!(due(&mut journal), is("/s/old", "?", true));
            journal.ended(full());
            assert_eq!(due(&mut journal), None, "it is closed");
            assert!(journal.is_idle());
            journal.renew(b"anew\n".to_vec());
            assert!(!journal.is_idle());
        }
        assert_eq!(due(&mut journal), is("/s/old", "?", true));
        journal.ended(Ok(()));
        assert_eq!(due(&mut journal), is("/s/older", "!", true));
        journal.ended(full());
        journal.renew(b"last\n".to_vec());
        let place = journal.place();
        assert_eq!(due(&mut journal), is("/s/older", "!", true));
        journal.ended(Ok(()));
        assert_eq!(journal.is_safe(place), Safe::NotYet);
        assert_eq!(due(&mut journal), is("/s/t", "last\n", true));
        journal.ended(Ok(()));
        assert_eq!(journal.is_safe(place), Safe::Yes);
        assert_eq!(journal.size(), 5);
        assert!(journal.is_idle() && due(&mut journal).is_none(), "once");
    }

    #[test]
    fn what_was_written_is_made_safe_without_a_line_if_nothing_else_does_it() {
        for torn in [false, true] {
            let mut journal = on_disk(torn);
            let place = journal.sync();
            assert_eq!(journal.sync(), place, "once");
            assert!(!journal.is_idle());
            assert_eq!(due(&mut journal), added("", true));
            assert_eq!(due(&mut journal), None, "it is open");
            assert_eq!(journal.is_safe(place), Safe::NotYet);
            journal.ended(Ok(()));
            assert_eq!(journal.is_safe(place), Safe::Yes);
            assert!(journal.is_idle());
            assert_eq!(due(&mut journal), None);
            journal.push(None, &Entry { n: 1 }, true);
            let line = if torn { "\n{\"n\":1}\n" } else { "{\"n\":1}\n" };
            assert_eq!(due(&mut journal), added(line, true), "it is not glued");
            assert!(journal.sync() > place, "the one that comes does it");
        }
        let mut journal = on_disk(false);
        journal.push(None, &Entry { n: 1 }, false);
        let place = journal.sync();
        assert_eq!(
            due(&mut journal),
            added("{\"n\":1}\n", true),
            "with what waits"
        );
        journal.ended(Err(IoFault::new(IoKind::Full, "no space")));
        assert_eq!(journal.is_safe(place), Safe::Never);
        assert_eq!(due(&mut journal), None);
        assert!(journal.is_idle());
        let mut journal = Journal::memory(1 << 20);
        let place = journal.sync();
        assert_eq!(journal.is_safe(place), Safe::Yes);
    }

    #[test]
    fn what_is_kept_in_memory_is_bounded_and_whole_lines() {
        let mut journal = Journal::memory(64);
        for n in 0..1000 {
            journal.push(None, &Entry { n }, false);
            let kept = journal.kept().expect("it is in memory");
            assert!(kept.len() <= 64 && kept.starts_with(b"{\"n\":") && kept.ends_with(b"}\n"));
        }
        let kept = journal.kept().expect("it is in memory");
        assert!(kept.ends_with(b"{\"n\":998}\n{\"n\":999}\n"));
    }

    #[test]
    fn what_is_kept_in_memory_is_read_by_whole_lines_also_while_the_oldest_go() {
        let mut journal = Journal::memory(64);
        assert_eq!(journal.kept_from(0, 10), Some((0, &b""[..])));
        for n in 0..5 {
            journal.push(None, &Entry { n }, false);
        }
        let two = &b"{\"n\":0}\n{\"n\":1}\n"[..];
        assert_eq!(journal.kept_from(0, 0), Some((0, &two[..8])));
        assert_eq!(journal.kept_from(0, 8), Some((0, two)));
        assert_eq!(journal.kept_from(24, 1), Some((0, &b"{\"n\":3}\n"[..])));
        assert_eq!(journal.kept_from(40, 99), Some((0, &b""[..])));
        for n in 5..9 {
            journal.push(None, &Entry { n }, false);
        }
        // Of nine lines five went.
        assert_eq!(
            (journal.size(), journal.kept().map(<[u8]>::len)),
            (72, Some(32))
        );
        assert_eq!(journal.kept_from(16, 1), Some((24, &b"{\"n\":5}\n"[..])));
        assert_eq!(
            journal.kept_from(40, 99).map(|it| (it.0, it.1.len())),
            Some((0, 32))
        );
        assert_eq!(on_disk(false).kept_from(0, 9), None);
    }

    #[test]
    fn what_is_kept_in_memory_is_safe_at_once() {
        let mut journal = Journal::memory(1 << 20);
        let place = journal.push(None, &Entry { n: 1 }, true);
        journal.replace(b"whole\n".to_vec());
        journal.keep_aside("old", b"?".to_vec());
        assert_eq!(journal.is_safe(place), Safe::Yes);
        assert_eq!(journal.kept(), Some(&b"{\"n\":1}\n"[..]));
        assert_eq!(due(&mut journal), None);
        let mut none = Journal::memory(0);
        let place = none.push_lines(b"a\n", true);
        assert_eq!(none.is_safe(place), Safe::Yes);
        assert_eq!(none.kept(), Some(&b""[..]), "nobody needs it");
    }
}
