//! The writing end of an inbox's journal: what was pushed, what is safe, and the one call that is
//! open. Knows lines and files as bytes, not what they mean.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::call::{Append, Call, Expect, Write};
use crate::error::IoFault;
use crate::store::{Place, Safe};

/// The writing end of one inbox's journal.
///
/// As the journal of a session it takes at once what is pushed, writes it in order by one call at a
/// time, and is closed for good by the first that fails. Other than that one, its file can be
/// replaced as a whole.
#[derive(Debug)]
pub struct Lane {
    /// The file and the root it must stay beneath; none: nothing is kept.
    file: Option<(String, String)>,
    /// Whole files to write first: damaged ones that are kept, and the journal anew.
    files: VecDeque<Whole>,
    /// Lines that no append has taken.
    pending: Vec<u8>,
    pushed: Place,
    written: Place,
    synced: Place,
    /// The last place that has to be safe.
    wanted: Place,
    open: Option<Open>,
    fault: Option<IoFault>,
}

#[derive(Debug)]
struct Whole {
    path: String,
    bytes: Vec<u8>,
    upto: Place,
}

#[derive(Debug)]
struct Open {
    upto: Place,
    durable: bool,
}

impl Lane {
    /// A journal in a file.
    pub fn disk(path: String, beneath: String) -> Self {
        Self::new(Some((path, beneath)))
    }

    /// A journal that nobody needs.
    pub fn memory() -> Self {
        Self::new(None)
    }

    fn new(file: Option<(String, String)>) -> Self {
        Self {
            file,
            files: VecDeque::new(),
            pending: Vec::new(),
            pushed: 0,
            written: 0,
            synced: 0,
            wanted: 0,
            open: None,
            fault: None,
        }
    }

    /// Takes lines; none are at the place of those before. `durable`: they must survive a loss of
    /// power.
    pub fn push(&mut self, lines: Vec<u8>, durable: bool) -> Place {
        if lines.is_empty() {
            return self.pushed;
        }
        self.pushed += 1;
        if durable {
            self.wanted = self.pushed;
        }
        match (&self.file, &self.fault) {
            (None, _) => {
                self.written = self.pushed;
                self.synced = self.pushed;
            }
            (Some(_), Some(_)) => {}
            (Some(_), None) if self.pending.is_empty() => self.pending = lines,
            (Some(_), None) => self.pending.extend_from_slice(&lines),
        }
        self.pushed
    }

    /// The journal as a whole, with all that was pushed before.
    pub fn replace(&mut self, bytes: Vec<u8>) {
        self.pending = Vec::new();
        if let (Some((path, _)), None) = (&self.file, &self.fault) {
            self.files.push_back(Whole {
                path: path.clone(),
                bytes,
                upto: self.pushed,
            });
        }
    }

    /// Bytes to keep under another name in the same folder, before anything else is written.
    pub fn keep_aside(&mut self, name: &str, bytes: Vec<u8>) {
        if let Some((path, _)) = &self.file {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            self.files.push_back(Whole {
                path: format!("{folder}/{name}"),
                bytes,
                upto: 0,
            });
        }
    }

    /// The call that is due, if none is open and something waits.
    pub fn begin(&mut self) -> Option<Call> {
        let (path, beneath) = self.file.as_ref()?;
        if self.open.is_some() || self.fault.is_some() {
            return None;
        }
        if let Some(whole) = self.files.pop_front() {
            self.open = Some(Open {
                upto: whole.upto,
                durable: true,
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
        if self.pending.is_empty() {
            return None;
        }
        let durable = self.wanted > self.synced;
        self.open = Some(Open {
            upto: self.pushed,
            durable,
        });
        Some(Call::Append(Append {
            path: path.clone(),
            beneath: beneath.clone(),
            bytes: core::mem::take(&mut self.pending),
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
            }
            Err(fault) => {
                self.pending = Vec::new();
                self.files.clear();
                self.fault = Some(fault);
            }
        }
    }

    /// Whether what is at a place is in the file, and safe if it has to be.
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

    /// Whether nothing is written and nothing waits.
    pub fn is_idle(&self) -> bool {
        let waits = !self.pending.is_empty() || !self.files.is_empty();
        self.open.is_none() && !waits
    }

    /// Why it is closed.
    pub fn fault(&self) -> Option<&IoFault> {
        self.fault.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::IoKind;
    use alloc::string::ToString;

    fn lane() -> Lane {
        Lane::disk("/h/s/inbox.jsonl".into(), "/h".into())
    }

    /// What is called for: a file and its bytes, and whether it is synced.
    fn due(lane: &mut Lane) -> Option<(String, String, bool)> {
        let text = |bytes: &[u8]| core::str::from_utf8(bytes).unwrap().to_string();
        let call = lane.begin()?;
        if let Call::Append(append) = call {
            Some((append.path, text(&append.bytes), append.durable))
        } else if let Call::Write(write) = call {
            Some((write.path, text(&write.bytes), true))
        } else {
            panic!("{call:?}")
        }
    }

    fn is(path: &str, bytes: &str, durable: bool) -> Option<(String, String, bool)> {
        Some((path.into(), bytes.into(), durable))
    }

    #[test]
    fn lines_are_written_in_order_and_synced_where_somebody_waits() {
        let mut lane = lane();
        let first = lane.push(b"a\n".to_vec(), false);
        assert_eq!(due(&mut lane), is("/h/s/inbox.jsonl", "a\n", false));
        let second = lane.push(b"b\n".to_vec(), true);
        let third = lane.push(b"c\n".to_vec(), false);
        assert_eq!(lane.push(Vec::new(), true), third);
        assert_eq!(due(&mut lane), None);
        lane.ended(Ok(()));
        assert_eq!(lane.is_safe(first), Safe::NotYet);
        assert_eq!(due(&mut lane), is("/h/s/inbox.jsonl", "b\nc\n", true));
        lane.ended(Ok(()));
        for place in [first, second, third] {
            assert_eq!(lane.is_safe(place), Safe::Yes);
        }
        assert!(lane.is_idle());
    }

    #[test]
    fn a_new_file_takes_the_place_of_what_waits_and_what_was_damaged_is_kept_first() {
        let mut lane = lane();
        lane.keep_aside("old", b"?".to_vec());
        let place = lane.push(b"a\n".to_vec(), true);
        lane.replace(b"whole\n".to_vec());
        let behind = lane.push(b"b\n".to_vec(), false);
        assert_eq!(due(&mut lane), is("/h/s/old", "?", true));
        lane.ended(Ok(()));
        assert_eq!(lane.is_safe(place), Safe::NotYet);
        assert_eq!(due(&mut lane), is("/h/s/inbox.jsonl", "whole\n", true));
        lane.ended(Ok(()));
        assert_eq!(lane.is_safe(place), Safe::Yes);
        assert_eq!(lane.is_safe(behind), Safe::NotYet);
        assert_eq!(due(&mut lane), is("/h/s/inbox.jsonl", "b\n", false));
    }

    #[test]
    fn the_first_failure_closes_it_and_nothing_more_is_written() {
        let mut lane = lane();
        lane.keep_aside("old", b"?".to_vec());
        lane.replace(b"whole\n".to_vec());
        let place = lane.push(b"b\n".to_vec(), true);
        assert_eq!(due(&mut lane), is("/h/s/old", "?", true));
        lane.ended(Err(IoFault::new(IoKind::Full, "no space")));
        assert_eq!(due(&mut lane), None);
        let late = lane.push(b"c\n".to_vec(), true);
        for place in [place, late] {
            assert_eq!(lane.is_safe(place), Safe::Never);
        }
        assert!(lane.is_idle());
        assert!(lane.fault().is_some());
    }

    #[test]
    fn what_nobody_needs_is_safe_at_once() {
        let mut lane = Lane::memory();
        let place = lane.push(b"a\n".to_vec(), true);
        assert_eq!(lane.is_safe(place), Safe::Yes);
        assert_eq!(due(&mut lane), None);
    }
}
