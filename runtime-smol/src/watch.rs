//! Descriptors and a time, waited for by the reactor. Knows only their names.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use async_io::{Async, Timer};
use rustix::event::PollFlags;

/// Registrations by name, kept from one wait to the next.
#[derive(Debug)]
pub(crate) struct Watch<N> {
    known: BTreeMap<N, Option<Async<OwnedFd>>>,
    timer: Timer,
    timer_at: Option<Instant>,
}

impl<N: Copy + Ord> Watch<N> {
    pub fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            timer: Timer::never(),
            timer_at: None,
        }
    }

    /// Forgets what is not open any more: its descriptor may become that of something else.
    pub fn retain(&mut self, mut open: impl FnMut(N) -> bool) {
        self.known.retain(|name, _| open(*name));
    }

    /// Waits till one of `wants` is ready or `until` has come; the ready ones are added to
    /// `ready`.
    pub async fn wait<'a>(
        &mut self,
        wants: impl Iterator<Item = (N, BorrowedFd<'a>, PollFlags)>,
        until: Option<Instant>,
        ready: &mut Vec<N>,
    ) -> io::Result<()> {
        let mut wanted: Vec<(N, PollFlags)> = Vec::with_capacity(4);
        for (name, fd, flags) in wants {
            if let std::collections::btree_map::Entry::Vacant(entry) = self.known.entry(name) {
                entry.insert(register(fd)?);
            }
            wanted.push((name, flags));
        }
        if self.timer_at != until {
            self.timer_at = until;
            match until {
                Some(at) => self.timer.set_at(at),
                None => self.timer = Timer::never(),
            }
        }
        poll_fn(|context| self.poll(&wanted, context, ready)).await
    }

    fn poll(
        &mut self,
        wanted: &[(N, PollFlags)],
        context: &mut Context<'_>,
        ready: &mut Vec<N>,
    ) -> Poll<io::Result<()>> {
        for (name, flags) in wanted {
            let Some(known) = &self.known[name] else {
                ready.push(*name); // a file, which never waits
                continue;
            };
            let polled = if flags.contains(PollFlags::OUT) {
                known.poll_writable(context)
            } else {
                known.poll_readable(context)
            };
            match polled {
                Poll::Ready(Ok(())) => ready.push(*name),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        let mut late = false;
        if self.timer_at.is_some() && Pin::new(&mut self.timer).poll(context).is_ready() {
            self.timer_at = None;
            late = true;
        }
        if late || !ready.is_empty() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }
}

/// The reactor keeps a descriptor of its own for the same open file; none if it is of a kind that
/// cannot be waited for, because it never waits.
fn register(fd: BorrowedFd<'_>) -> io::Result<Option<Async<OwnedFd>>> {
    match Async::new_nonblocking(fd.try_clone_to_owned()?) {
        Ok(known) => Ok(Some(known)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        Err(error) => Err(error),
    }
}
