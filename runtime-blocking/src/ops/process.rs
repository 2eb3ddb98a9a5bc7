//! One running program: its process group, its pipes, what of its output is kept, and its end.
//! Never waits: a driver waits on [`Running::wants`] and [`Running::deadline`], then calls
//! [`Running::step`]. Knows nothing of why the program runs.

mod group;
mod guard;
mod kin;
mod output;
mod start;

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin};
use std::time::{Duration, Instant};

use reasonix_core::call::{Exit, Outcome, Stream};
use rustix::event::PollFlags;

use super::Told;
pub use group::{Group, end_all};
pub use guard::Guard;
pub use kin::{Mark, Tag};
use output::Output;
pub use start::spawn;

/// From the polite signal to the one that cannot be ignored.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// How long the outputs may stay open when the program itself has ended: others in its group may
/// hold them for ever.
const LINGER: Duration = Duration::from_millis(100);

/// A program that runs, or ran and is not settled.
#[derive(Debug)]
pub struct Running {
    child: Child,
    group: Group,
    /// What it and all it starts have in their environment.
    tag: Option<Tag>,
    /// It was asked to end, or is one that others talk to: what it started ends with it.
    ends_kin: bool,
    exited: OwnedFd,
    exit: Option<Exit>,
    outputs: Vec<Output>,
    stdin: Option<ChildStdin>,
    feed: VecDeque<u8>,
    feed_ends: bool,
    close_at: Option<Instant>,
    /// That has come, and was seen to: what is still to be told waits for room, not for time.
    late: bool,
    kill_at: Option<Instant>,
    settled: bool,
}

/// A descriptor of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// Readable when it has ended.
    Exit,
    /// Its standard input.
    In,
    /// Its standard output.
    Out,
    /// Its standard error, if that is apart.
    Err,
}

impl Running {
    /// Its process group.
    pub fn group(&self) -> Group {
        self.group
    }

    /// What it and all it starts can be found by, wherever they went.
    pub fn tag(&self) -> Option<&Tag> {
        self.tag.as_ref()
    }

    /// Whether all it started ends with it, also what left its group.
    pub fn ends_kin(&self) -> bool {
        self.ends_kin
    }

    /// Whether its last news were told.
    pub fn settled(&self) -> bool {
        self.settled
    }

    /// Whether nothing is left to do for it, a kill of its group included.
    pub fn over(&self) -> bool {
        self.settled && self.kill_at.is_none()
    }

    /// Puts bytes behind those that wait for its standard input.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.stdin.is_some() {
            self.feed.extend(bytes);
        }
    }

    /// Closes its standard input when what was fed is taken.
    pub fn feed_end(&mut self) {
        self.feed_ends = true;
        if self.feed.is_empty() {
            self.stdin = None;
        }
    }

    /// Ends it, all of its group, and who left that: politely first, after half a second for sure.
    pub fn abort(&mut self, now: Instant) {
        if self.kill_at.is_none() {
            self.group.ask_to_end();
            self.tag.as_ref().map(Tag::ask_to_end);
            self.ends_kin = true;
            self.kill_at = Some(now + PATIENCE);
        }
    }

    /// When [`step`](Self::step) is due even if no descriptor is ready.
    pub fn deadline(&self) -> Option<Instant> {
        let close_at = self.close_at.filter(|_| !self.settled && !self.late);
        match (close_at, self.kill_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The descriptors to wait on, and for what; `room` as in [`step`](Self::step). The slots are
    /// names for them: one is never used for another descriptor of the same process.
    pub fn wants(&self, room: usize) -> impl Iterator<Item = (Slot, BorrowedFd<'_>, PollFlags)> {
        let exited = self
            .exit
            .is_none()
            .then(|| (Slot::Exit, self.exited.as_fd()));
        let outputs = self.outputs.iter().filter_map(move |it| {
            let slot = match it.stream() {
                Stream::Out => Slot::Out,
                Stream::Err => Slot::Err,
            };
            Some((slot, it.wants(room)?))
        });
        let inputs = exited.into_iter().chain(outputs);
        let stdin = self.stdin.as_ref().filter(|_| !self.feed.is_empty());
        inputs
            .map(|(slot, fd)| (slot, fd, PollFlags::IN))
            .chain(stdin.map(|pipe| (Slot::In, pipe.as_fd(), PollFlags::OUT)))
    }

    /// Whether this descriptor may be wanted again.
    pub fn is_open(&self, slot: Slot) -> bool {
        match slot {
            Slot::Exit => self.exit.is_none(),
            Slot::In => self.stdin.is_some(),
            Slot::Out => self.outputs.first().is_some_and(Output::is_open),
            Slot::Err => self.outputs.get(1).is_some_and(Output::is_open),
        }
    }

    /// Does what can be done now without waiting, and tells it. At most `room` bytes of output are
    /// told; what is beyond is left in the pipe, or kept within the bounds of [`Keep`](reasonix_core::call::Keep).
    pub fn step(&mut self, now: Instant, mut room: usize, tell: &mut dyn FnMut(Told)) {
        if self.kill_at.is_some_and(|at| now >= at) {
            self.group.kill();
            self.tag.iter().for_each(Tag::kill);
            self.kill_at = None;
        }
        if self.settled {
            if self.kill_at.is_some() && !self.group.exists() {
                self.kill_at = None;
            }
            return;
        }
        if self.exit.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.exit = Some(Exit {
                code: status.code(),
                signal: status.signal(),
                dropped: 0,
                left: false,
            });
            self.close_at = Some(now + LINGER);
            self.stdin = None;
        }
        self.write(tell);
        let late = self.close_at.is_some_and(|at| now >= at);
        self.late = late;
        for output in &mut self.outputs {
            output.read(late, &mut room, tell);
        }
        if let Some(exit) = self.exit
            && self.outputs.iter().all(Output::over)
        {
            let dropped = self.outputs.iter().map(Output::dropped).sum();
            self.settled = true;
            let left = self.group.exists();
            tell(Told::Done(Outcome::Exited(Exit {
                dropped,
                left,
                ..exit
            })));
        }
    }

    fn write(&mut self, tell: &mut dyn FnMut(Told)) {
        let Some(pipe) = &mut self.stdin else { return };
        let mut taken = 0;
        while !self.feed.is_empty() {
            match pipe.write(self.feed.as_slices().0) {
                Ok(count) => {
                    self.feed.drain(..count);
                    taken += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    // It does not listen any more; that is no fault.
                    self.feed.clear();
                    self.feed_ends = true;
                }
            }
        }
        if self.feed_ends && self.feed.is_empty() {
            self.stdin = None;
        }
        if taken > 0 {
            tell(Told::Fed(taken));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.group.kill();
            let _ = self.child.wait();
        } else if self.kill_at.is_some() {
            self.group.kill();
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it is about"
)]
pub(super) mod tests;
