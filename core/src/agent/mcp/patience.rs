//! The beginning of a turn beside servers that have only just started. What they offer is not known
//! then, and a model that is not told of a tool does without it; so its first request waits a moment:
//!
//! | server | waited for |
//! | --- | --- |
//! | its tools are kept from another time, or it failed | not |
//! | has not said a word | [`Limits::mcp_patience`](crate::limits::Limits) from its start on |
//! | is asked for its tools | [`Limits::mcp_listing`](crate::limits::Limits) from its start on |
//! | may stand in the project's file, which is being read | [`Limits::mcp_patience`](crate::limits::Limits) from the prompt on |

use super::Servers;
use crate::agent::Agent;
use crate::engine::Message;
use crate::ids::SessionKey;
use crate::limits::Limits;
use crate::time::{Deadline, Instant, Timer};

impl Servers {
    /// Till when it is worth waiting; the project's file is waited for till `read_by`.
    fn awaited(&self, limits: &Limits, read_by: Instant) -> Option<Instant> {
        let read = self.project.is_being_read().then_some(read_by);
        read.max(self.hub.awaited(limits))
    }

    /// When its turn goes on, whatever is known by then.
    pub(in crate::agent) fn expected(&self) -> Option<Deadline> {
        let why = Timer::Mcp;
        self.expected.map(|at| Deadline { at, why })
    }
}

impl Agent {
    /// Begins the turn of what a person said.
    pub(in crate::agent) fn prompt_engine(&mut self, key: SessionKey, message: Message) {
        self.lend_tools(key);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let read_by = self.now.plus(self.config.limits.mcp_patience);
        let until = session.servers.awaited(&self.config.limits, read_by);
        let until = until.filter(|until| *until > self.now);
        session.servers.expected = until;
        self.with_engine(key, |engine, cx| match until {
            Some(_) => engine.prompt_and_expect(cx, message),
            None => engine.prompt(cx, message),
        });
    }

    /// The turn goes on if it has waited for servers and does not have to any more.
    pub(super) fn go_on_when_known(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let servers = &mut session.servers;
        let Some(expected) = servers.expected else {
            return;
        };
        // Its cancellation is behind this: nothing new begins.
        if self.finished.is_some() {
            servers.expected = None;
            return;
        }
        let until = servers.awaited(&self.config.limits, expected);
        servers.expected = until.filter(|until| *until > self.now);
        if servers.expected.is_none() {
            self.lend_tools(key);
            self.with_engine(key, |engine, cx| engine.go_on(cx));
        }
    }
}
