//! How a connection ends: no more input, nobody there, or the embedder is done. Every open request
//! gets its one answer, if anybody can hear it.

use alloc::vec::Vec;

use crate::time::{Deadline, Timer};
use crate::wire::RequestKey;

use super::super::events::{AgentEvent, CloseReason};
use super::super::states::{Connection, ConnectionEvent};
use super::core::{Core, What};

impl Core {
    /// No more input comes; what has come is processed first.
    pub(super) fn finish_input(&mut self, by_peer: bool) {
        self.finished = true;
        self.peer_finished = by_peer;
        self.grace = Some(self.now.plus(self.limits.close_grace));
    }

    /// All input is processed: turns are cancelled, our requests settled, frames that wait for a
    /// session answered. Other requests of the client come to their own end.
    pub(super) fn begin_ending(&mut self) {
        let Ok(next) = self.connection.on(ConnectionEvent::Finish) else {
            return;
        };
        self.connection = next;
        if self.peer_finished {
            self.event(AgentEvent::PeerFinished);
        }
        for (key, what) in self.open_requests() {
            match what {
                What::Turn(_) | What::Session(_) => self.cancel_request(key),
                What::Answer | What::Opening(_) | What::Closing(_) => {}
            }
        }
        self.abandon_asks();
    }

    /// The embedder is done, or the grace is over: what is open is answered here.
    pub(super) fn give_up(&mut self) {
        if self.closed || self.lost.is_some() {
            return;
        }
        if !self.finished {
            self.finish_input(false);
        }
        self.begin_ending();
        for (key, _) in self.open_requests() {
            let Some(open) = self.requests.get(key) else {
                continue;
            };
            let (kind, what) = (open.kind, open.what);
            if let What::Turn(turn) = what {
                self.turns.remove(turn);
            }
            self.answer_cancelled(key, kind);
        }
    }

    /// Nothing can be sent any more.
    pub(super) fn lose(&mut self, reason: CloseReason) {
        if self.closed || self.lost.is_some() {
            return;
        }
        self.lost = Some(reason);
        self.finished = true;
        self.output.kill();
        for (key, what) in self.open_requests() {
            if let What::Turn(turn) = what {
                self.cancel_turn(turn);
            }
            self.requests.settle(key);
        }
        self.abandon_asks();
        self.event(AgentEvent::PeerGone);
    }

    /// Whether all has come to rest, and why it ended. Asked when there is no frame and no event.
    pub(super) fn has_ended(&mut self) -> Option<CloseReason> {
        let (event, reason) = match self.lost {
            Some(reason) => (ConnectionEvent::Lose, reason),
            None if self.connection == Connection::Ending && self.requests.is_empty() => {
                (ConnectionEvent::Settle, CloseReason::Finished)
            }
            None => return None,
        };
        self.connection = self.connection.on(event).ok()?;
        self.turns = super::super::slab::Slab::new();
        Some(reason)
    }

    pub(super) fn check_time(&mut self) {
        if self.closed || self.lost.is_some() {
            return;
        }
        if self.grace.is_some_and(|grace| grace <= self.now) {
            self.give_up();
        }
        if self.stalled_at().is_some_and(|at| at <= self.now) {
            self.unheard = self.output.waiting_since().is_none();
            self.lose(CloseReason::Stalled);
        }
    }

    pub(super) fn deadline(&self) -> Option<Deadline> {
        let grace = self.grace.map(|at| Deadline {
            at,
            why: Timer::CloseGrace,
        });
        let stalled = self.stalled_at().map(|at| Deadline {
            at,
            why: Timer::PeerStalled,
        });
        Deadline::earlier(grace, stalled)
    }

    fn stalled_at(&self) -> Option<crate::time::Instant> {
        let unheard = self.output.unheard_since(self.limits.soft_output);
        let since = self.output.waiting_since().or(unheard)?;
        Some(since.plus(self.limits.peer_stalled))
    }

    fn open_requests(&self) -> Vec<(RequestKey, What)> {
        self.requests
            .iter()
            .map(|(key, _, open)| (key, open.what))
            .collect()
    }
}
