//! What a client is told of servers without having asked: how they stand, which commands their prompts
//! are, what they ask the person. Nothing of it waits in the output: what has changed is marked, and
//! told when the client has read nearly all there was, as it is then. So a server that changes without
//! end, and a client that does not read, cost what one change costs.
//!
//! | what | kept till then | told |
//! | --- | --- | --- |
//! | questions, and that a page is done | each that is open, which the machine bounds; one that is taken back is not asked | first, in order |
//! | commands | a mark | behind those |
//! | how servers stand | a mark | last, to clients that want it |
//!
//! One frame at a time, and one session after the other.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use crate::agent::Agent;
use crate::ids::SessionKey;
use crate::mcp::Question;

/// What the client of one session is to be told.
#[derive(Default)]
pub(super) struct Untold {
    asks: VecDeque<About>,
    commands: bool,
    status: bool,
    /// Its session stands in the queue of those with something to tell.
    queued: bool,
}

/// Something about a question, with its number in the hub.
enum About {
    Ask(u64, Question),
    /// The page of that name is done.
    Done(u64, String),
}

/// One thing to tell.
enum Next {
    About(About),
    Commands,
    Status,
}

impl Untold {
    /// A question is not to be asked any more.
    pub(super) fn take_back(&mut self, ask: u64) {
        let mut asked = true;
        self.asks.retain(|about| match about {
            About::Ask(number, _) if *number == ask => {
                asked = false;
                false
            }
            // Of what was never asked nothing is said.
            About::Done(number, _) => asked || *number != ask,
            About::Ask(..) => true,
        });
    }

    /// Its servers end: nothing of them is told any more, but which pages are done.
    pub(super) fn end(&mut self) -> Vec<(u64, String)> {
        (self.commands, self.status) = (false, false);
        let done = |about| match about {
            About::Done(ask, id) => Some((ask, id)),
            About::Ask(..) => None,
        };
        self.asks.drain(..).filter_map(done).collect()
    }

    fn next(&mut self) -> Option<Next> {
        if let Some(about) = self.asks.pop_front() {
            return Some(Next::About(about));
        }
        if core::mem::take(&mut self.commands) {
            return Some(Next::Commands);
        }
        core::mem::take(&mut self.status).then_some(Next::Status)
    }

    fn is_empty(&self) -> bool {
        self.asks.is_empty() && !self.commands && !self.status
    }
}

impl Agent {
    /// A server asks the person.
    pub(super) fn ask_later(&mut self, key: SessionKey, ask: u64, question: Question) {
        self.tell_later(key, |untold| {
            untold.asks.push_back(About::Ask(ask, question))
        });
    }

    /// A page that the person was asked to open is done.
    pub(super) fn complete_later(&mut self, key: SessionKey, ask: u64, id: String) {
        self.tell_later(key, |untold| untold.asks.push_back(About::Done(ask, id)));
    }

    /// There are other commands than the client was told.
    pub(super) fn tell_commands_later(&mut self, key: SessionKey) {
        self.tell_later(key, |untold| untold.commands = true);
    }

    /// Servers stand in another way than the client was told, if it wants to be.
    pub(super) fn tell_servers_later(&mut self, key: SessionKey) {
        let session = self.sessions.get(&key);
        if session.is_some_and(|session| session.servers.tells) {
            self.tell_later(key, |untold| untold.status = true);
        }
    }

    fn tell_later(&mut self, key: SessionKey, what: impl FnOnce(&mut Untold)) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let untold = &mut session.servers.untold;
        what(untold);
        if !core::mem::replace(&mut untold.queued, true) {
            self.untold.push_back(key);
        }
    }

    /// Tells one thing, if there is one and the client has read nearly all that was told before.
    /// Returns whether it was.
    pub(in crate::agent) fn tell_next(&mut self) -> bool {
        if self.untold.is_empty() || !self.side.is_quiet() {
            return false;
        }
        let Some(key) = self.untold.pop_front() else {
            return false;
        };
        // It may have been closed meanwhile.
        let Some(session) = self.sessions.get_mut(&key) else {
            return true;
        };
        let untold = &mut session.servers.untold;
        let next = untold.next();
        untold.queued = !untold.is_empty();
        if untold.queued {
            self.untold.push_back(key);
        }
        match next {
            Some(Next::About(About::Ask(ask, question))) => self.elicit(key, ask, question),
            Some(Next::About(About::Done(ask, id))) => self.complete_elicitation(key, ask, &id),
            Some(Next::Commands) => self.tell_commands(key),
            Some(Next::Status) => self.tell_servers(key),
            None => {}
        }
        true
    }
}
