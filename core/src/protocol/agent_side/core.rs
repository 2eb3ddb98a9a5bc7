//! What the agent's side holds, and the helpers that all its rules use.

use alloc::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use crate::error::PeerFault;
use crate::limits::Limits;
use crate::time::Instant;
use crate::wire::rpc::{write_error, write_notification, write_result};
use crate::wire::{
    FrameDecoder, IncomingRequests, OutgoingRequests, RequestId, RequestKey, RpcError,
};

use super::super::events::{AgentEvent, CloseReason};
use super::super::gates::{Gates, Offers};
use super::super::methods::AgentMethodKind;
use super::super::output::Output;
use super::super::schema::{ClientCapabilities, Patch, SessionId, SessionUpdate};
use super::super::slab::Slab;
use super::super::states::{Connection, Request, RequestEvent};
use super::asks::Ask;
use super::sessions::{Held, Sessions};
use super::turns::{Replay, Turn, Waiter};

/// The state of the side, but for the bytes that came in.
pub(super) struct Core {
    pub(super) limits: Limits,
    pub(super) now: Instant,
    pub(super) connection: Connection,
    /// No more input comes.
    pub(super) finished: bool,
    /// It was the peer who finished.
    pub(super) peer_finished: bool,
    /// Why nothing can be sent any more.
    pub(super) lost: Option<CloseReason>,
    /// It stalled because the driver never said what became of its frames.
    pub(super) unheard: bool,
    /// `Close` was given.
    pub(super) closed: bool,
    /// When what is open is answered whatever the embedder does.
    pub(super) grace: Option<Instant>,
    pub(super) client: ClientCapabilities,
    pub(super) gates: Gates,
    pub(super) offers: Offers,
    pub(super) output: Output,
    pub(super) events: VecDeque<AgentEvent>,
    pub(super) requests: IncomingRequests<Open>,
    pub(super) asks: OutgoingRequests<Ask>,
    pub(super) sessions: Sessions,
    pub(super) turns: Slab<Turn>,
    pub(super) replays: BTreeMap<RequestKey, Replay>,
    pub(super) waiters: VecDeque<Waiter>,
    /// Subagents whose sessions the client may cancel, and the session of each one's parent.
    pub(super) children: BTreeMap<SessionId, u64>,
    /// Frames that waited for a session and wait no more.
    pub(super) released: VecDeque<Held>,
    /// Bytes of all frames that wait for a session.
    pub(super) held_bytes: usize,
}

/// An open request of the client.
pub(super) struct Open {
    pub(super) kind: AgentMethodKind,
    pub(super) state: Request,
    pub(super) what: What,
    /// What the client takes in the answer.
    pub(super) gates: Gates,
    /// Whether anything was asked within it.
    pub(super) asks: bool,
}

/// What an open request waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The embedder's answer.
    Answer,
    /// The embedder's answer, which opens this session.
    Opening(u64),
    /// The embedder's answer, which closes this session.
    Closing(u64),
    /// The end of this turn.
    Turn(u64),
    /// This session's opening or closing.
    Session(u64),
}

impl Core {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            requests: IncomingRequests::new(limits.max_open_requests),
            limits,
            now: Instant::ZERO,
            connection: Connection::Fresh,
            finished: false,
            peer_finished: false,
            lost: None,
            unheard: false,
            closed: false,
            grace: None,
            client: ClientCapabilities::default(),
            gates: Gates::default(),
            offers: Offers::default(),
            output: Output::default(),
            events: VecDeque::new(),
            asks: OutgoingRequests::new(),
            sessions: Sessions::new(),
            turns: Slab::new(),
            replays: BTreeMap::new(),
            waiters: VecDeque::new(),
            children: BTreeMap::new(),
            released: VecDeque::new(),
            held_bytes: 0,
        }
    }

    /// Bytes the peer may send now.
    pub(super) fn room(&self, input: &FrameDecoder) -> usize {
        if self.finished || self.closed || self.output.pressure() >= self.limits.hard_output {
            return 0;
        }
        if input.is_incomplete() {
            // What it holds is bounded by the decoder, which skips what is too long.
            return self.limits.peer_window;
        }
        self.limits.peer_window.saturating_sub(input.buffered())
    }

    pub(super) fn event(&mut self, event: AgentEvent) {
        self.events.push_back(event);
    }

    pub(super) fn misbehaved(&mut self, fault: PeerFault) {
        self.event(AgentEvent::Misbehaved(fault));
    }

    /// Settles a request by a result. Gives what it was, the first time only.
    pub(super) fn succeed(&mut self, key: RequestKey, result: &impl Serialize) -> Option<Open> {
        let (id, open) = self.settle(key)?;
        self.output.frame(|out| write_result(out, &id, result));
        Some(open)
    }

    /// Settles a request by an error. Gives what it was, the first time only.
    pub(super) fn fail(&mut self, key: RequestKey, error: &RpcError) -> Option<Open> {
        let (id, open) = self.settle(key)?;
        self.output.frame(|out| write_error(out, &id, error));
        Some(open)
    }

    /// Answers what was never opened.
    pub(super) fn refuse(&mut self, id: &RequestId, error: &RpcError) {
        self.output.frame(|out| write_error(out, id, error));
    }

    pub(super) fn notify(&mut self, method: &str, params: &impl Serialize) {
        self.output
            .frame(|out| write_notification(out, method, params));
    }

    /// An update of this session goes out: what it says of a subagent is what the client may do with
    /// it from then on.
    pub(super) fn tells_of_child(&mut self, session: u64, update: &SessionUpdate) {
        let SessionUpdate::SubagentUpdate(update) = update else {
            return;
        };
        match &update.capabilities {
            Patch::Absent => {}
            Patch::Value(may) if may.cancel.is_some() => {
                self.children.insert(update.session_id.clone(), session);
            }
            Patch::Value(_) | Patch::Null => {
                self.children.remove(&update.session_id);
            }
        }
    }

    fn settle(&mut self, key: RequestKey) -> Option<(RequestId, Open)> {
        let (id, open) = self.requests.settle(key)?;
        // Open requests are open or cancelled, and both can be answered.
        open.state
            .on(RequestEvent::Answer)
            .expect("an open request can be answered");
        self.replays.remove(&key);
        if open.asks {
            self.abandon_asks_within(key);
        }
        Some((id, open))
    }
}
