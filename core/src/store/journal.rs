//! The writing end of an append-only file of JSON lines. Knows when what was pushed is safe, not
//! what it means.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use crate::call::Append;
use crate::error::IoFault;

/// The place of a record in a journal: the first one pushed is 1.
pub type Place = u64;

/// The writing end of one append-only file.
///
/// Records are taken at once and written in the order they came, by one
/// [`Append`](crate::call::Call::Append) at a time: what is pushed while one is open goes with the
/// next, so many records share one sync. A failed append closes the journal for good: what the file
/// holds from then on is not known, and to try again could write a record twice.
#[derive(Debug)]
pub struct Journal {
    lane: Lane,
    /// Lines that no append has taken.
    pending: Vec<u8>,
    /// How many records were pushed, are in the file, are safe.
    pushed: Place,
    written: Place,
    synced: Place,
    /// The last record that has to be safe.
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
    },
}

/// An append that has not ended.
#[derive(Debug)]
struct Open {
    upto: Place,
    bytes: u64,
    durable: bool,
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
        let kept = Vec::new();
        Self::new(Lane::Memory { kept, most }, false)
    }

    fn new(lane: Lane, torn: bool) -> Self {
        Self {
            lane,
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
                line(&mut self.pending, at, record);
            }
            Lane::Memory { kept, most } => {
                line(kept, at, record);
                if kept.len() > *most {
                    let half = kept.len() / 2;
                    let end = kept[half..].iter().position(|byte| *byte == b'\n');
                    // The last line has an end.
                    kept.drain(..end.map_or(0, |end| half + end + 1));
                }
                self.written = self.pushed;
                self.synced = self.pushed;
            }
        }
        self.pushed
    }

    /// Makes all that the file holds safe, what an earlier process wrote too; the place says when it
    /// is. Costs an empty line, once, in a file that nothing was made safe in yet.
    pub fn sync(&mut self) -> Place {
        if let Lane::Disk { .. } = self.lane
            && self.fault.is_none()
            && self.wanted == 0
        {
            self.pushed += 1;
            self.wanted = self.pushed;
            self.torn = false;
            self.pending.push(b'\n');
        }
        self.wanted
    }

    /// The append that is due, if none is open and something waits.
    pub fn begin(&mut self) -> Option<Append> {
        let Lane::Disk { path, beneath, .. } = &self.lane else {
            return None;
        };
        if self.open.is_some() || self.pending.is_empty() {
            return None;
        }
        let bytes = core::mem::take(&mut self.pending);
        let durable = self.wanted > self.synced;
        self.open = Some(Open {
            upto: self.pushed,
            bytes: bytes.len() as u64,
            durable,
        });
        Some(Append {
            path: path.clone(),
            beneath: beneath.clone(),
            bytes,
            durable,
        })
    }

    /// The open append has ended.
    pub fn ended(&mut self, result: Result<(), IoFault>) {
        let Some(open) = self.open.take() else { return };
        match result {
            Ok(()) => {
                self.written = open.upto;
                if open.durable {
                    self.synced = open.upto;
                }
                if let Lane::Disk { size, .. } = &mut self.lane {
                    *size += open.bytes;
                }
            }
            Err(fault) => {
                self.pending = Vec::new();
                self.fault = Some(fault);
            }
        }
    }

    /// Whether a record is in the file, and safe if it was pushed as durable or one after it was.
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

    /// The place of the last record that was pushed.
    pub fn place(&self) -> Place {
        self.pushed
    }

    /// Bytes that wait to be written.
    pub fn backlog(&self) -> usize {
        self.pending.len()
    }

    /// Whether nothing is written and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.open.is_none() && self.pending.is_empty()
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

    /// Size of the file with all that was written, bytes.
    pub fn size(&self) -> u64 {
        match &self.lane {
            Lane::Disk { size, .. } => *size,
            Lane::Memory { kept, .. } => kept.len() as u64,
        }
    }

    /// All of a journal in memory.
    pub fn kept(&self) -> Option<&[u8]> {
        match &self.lane {
            Lane::Disk { .. } => None,
            Lane::Memory { kept, .. } => Some(kept),
        }
    }
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
    use alloc::string::ToString;

    #[derive(Serialize)]
    struct Entry {
        n: u32,
    }

    fn on_disk(torn: bool) -> Journal {
        Journal::disk("/s/t".into(), "/s".into(), 7, torn)
    }

    fn text(append: &Append) -> String {
        core::str::from_utf8(&append.bytes)
            .expect("lines are text")
            .to_string()
    }

    #[test]
    fn what_is_pushed_while_an_append_is_open_goes_with_the_next() {
        let mut journal = on_disk(false);
        let first = journal.push(Some(5), &Entry { n: 1 }, false);
        let append = journal.begin().expect("one is due");
        assert_eq!(
            (text(&append).as_str(), append.durable),
            ("{\"at\":5,\"n\":1}\n", false)
        );
        let second = journal.push(None, &Entry { n: 2 }, true);
        let third = journal.push(None, &Entry { n: 3 }, false);
        assert!(journal.begin().is_none(), "one at a time");
        journal.ended(Ok(()));
        // A record before one that must be safe is safe with it, not earlier.
        assert_eq!(journal.is_safe(first), Safe::NotYet);
        let append = journal.begin().expect("the next is due");
        assert_eq!(
            (text(&append).as_str(), append.durable),
            ("{\"n\":2}\n{\"n\":3}\n", true)
        );
        assert_eq!(journal.is_safe(second), Safe::NotYet);
        journal.ended(Ok(()));
        for place in [first, second, third] {
            assert_eq!(journal.is_safe(place), Safe::Yes);
        }
        assert!(journal.is_idle());
        assert_eq!(journal.size(), 7 + 15 + 16);
    }

    #[test]
    fn a_line_without_an_end_is_not_continued() {
        let mut journal = on_disk(true);
        journal.push(None, &Entry { n: 1 }, false);
        journal.push(None, &Entry { n: 2 }, false);
        let append = journal.begin().expect("one is due");
        assert_eq!(text(&append), "\n{\"n\":1}\n{\"n\":2}\n");
    }

    #[test]
    fn a_failed_append_closes_the_journal_and_is_never_repeated() {
        let mut journal = on_disk(false);
        let lost = journal.push(None, &Entry { n: 1 }, true);
        journal.begin().expect("one is due");
        let waits = journal.push(None, &Entry { n: 2 }, true);
        journal.ended(Err(IoFault::new(IoKind::Full, "no space")));
        let late = journal.push(None, &Entry { n: 3 }, true);
        for place in [lost, waits, late] {
            assert_eq!(journal.is_safe(place), Safe::Never);
        }
        assert!(journal.begin().is_none());
        assert!(journal.is_idle());
        assert_eq!(journal.fault().map(|fault| fault.kind), Some(IoKind::Full));
    }

    #[test]
    fn what_was_written_is_made_safe_by_an_empty_line_if_nothing_else_does_it() {
        for torn in [false, true] {
            let mut journal = on_disk(torn);
            let place = journal.sync();
            assert_eq!(journal.sync(), place, "once");
            let append = journal.begin().expect("one is due");
            assert_eq!((text(&append).as_str(), append.durable), ("\n", true));
            assert_eq!(journal.is_safe(place), Safe::NotYet);
            journal.ended(Ok(()));
            assert_eq!(journal.is_safe(place), Safe::Yes);
            journal.push(None, &Entry { n: 1 }, true);
            assert_eq!(text(&journal.begin().expect("one is due")), "{\"n\":1}\n");
            assert!(journal.sync() > place, "the one that comes does it");
        }
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
    fn what_is_kept_in_memory_is_safe_at_once() {
        let mut journal = Journal::memory(1 << 20);
        let place = journal.push(None, &Entry { n: 1 }, true);
        assert_eq!(journal.is_safe(place), Safe::Yes);
        assert_eq!(journal.kept(), Some(&b"{\"n\":1}\n"[..]));
        assert!(journal.begin().is_none());
    }
}
