//! The client's side of a connection: the mirror of [`AgentSide`](super::AgentSide). Knows nothing
//! of editors. This file is what an embedder sees and the order in which effects are given.

mod incoming;
mod mirror;

use core::fmt;
use core::ops::Range;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::ids::AskId;
use crate::limits::Limits;
use crate::machine::{Machine, Next, Source};
use crate::time::{Deadline, Instant, Timer};
use crate::wire::requests::write_cancel_request;
use crate::wire::rpc::{write_error, write_notification, write_request, write_result};
use crate::wire::{FrameDecoder, IncomingRequests, OutgoingRequests, RequestId, RpcError};

use super::events::{ClientEvent, CloseReason, PeerInput, SideEffect};
use super::gates::Gates;
use super::methods::{AgentMethod, AgentMethodKind, Asked, ClientMethodKind, Method};
use super::output::Output;
use super::schema::{
    AgentCapabilities, CancelNotification, RequestPermissionOutcome, RequestPermissionResponse,
    SessionId,
};
use super::states::{Connection, ConnectionEvent, Request, RequestEvent};
use alloc::collections::VecDeque;
use mirror::Mirror;

/// The client's side of one connection.
///
/// It never refuses to send: an agent that is asked for what it did not advertise answers so. It
/// passes what the agent sends through the same table of states, and says what breaks a rule by
/// [`ClientEvent::Misbehaved`].
pub struct ClientSide {
    input: FrameDecoder,
    core: Core,
}

impl fmt::Debug for ClientSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSide")
            .field("connection", &self.core.connection)
            .field("pressure", &self.core.output.pressure())
            .field("lost", &self.core.lost)
            .finish_non_exhaustive()
    }
}

struct Core {
    limits: Limits,
    now: Instant,
    connection: Connection,
    finished: bool,
    ended: bool,
    lost: Option<CloseReason>,
    closed: bool,
    /// What was advertised to the agent.
    gates: Gates,
    /// What the agent advertised.
    agent: AgentCapabilities,
    output: Output,
    events: VecDeque<ClientEvent>,
    requests: IncomingRequests<Open>,
    asks: OutgoingRequests<Ask>,
    mirror: Mirror,
}

/// An open request of ours.
struct Ask {
    kind: AgentMethodKind,
    session: Option<SessionId>,
}

/// An open request of the agent.
struct Open {
    kind: ClientMethodKind,
    state: Request,
    session: Option<SessionId>,
}

impl ClientSide {
    /// A fresh connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            input: FrameDecoder::new(limits.max_frame),
            core: Core {
                requests: IncomingRequests::new(limits.max_open_requests),
                limits,
                now: Instant::ZERO,
                connection: Connection::Fresh,
                finished: false,
                ended: false,
                lost: None,
                closed: false,
                gates: Gates::default(),
                agent: AgentCapabilities::default(),
                output: Output::default(),
                events: VecDeque::new(),
                asks: OutgoingRequests::new(),
                mirror: Mirror::default(),
            },
        }
    }

    /// What the agent advertised in its last answer to `initialize`.
    pub fn agent(&self) -> &AgentCapabilities {
        &self.core.agent
    }

    /// Asks the agent. [`ClientEvent::Answered`] follows.
    pub fn request<M: AgentMethod>(&mut self, request: &M::Request) -> AskId {
        let core = &mut self.core;
        if let Some(gates) = M::gates(request) {
            core.gates = gates;
            core.connect(ConnectionEvent::Initialize);
        }
        let session = M::scope(request).cloned();
        let id = core.send(
            M::NAME,
            request,
            Ask {
                kind: M::KIND,
                session: session.clone(),
            },
        );
        if let Some(session) = session {
            core.mirror.asked(M::KIND, &session, id);
        }
        id
    }

    /// Asks the agent by any method with any parameters: a vendor's, or one that is to be refused.
    pub fn vendor_request(&mut self, method: &str, params: &RawValue) -> AskId {
        self.core.send(
            method,
            params,
            Ask {
                kind: AgentMethodKind::Vendor,
                session: None,
            },
        )
    }

    /// Tells the agent something by any method.
    pub fn vendor_notify(&mut self, method: &str, params: &RawValue) {
        self.core
            .output
            .frame(|out| write_notification(out, method, params));
    }

    /// `session/cancel`. Open permission requests of the session are answered as `cancelled`, as a
    /// client has to (ACP page: prompt turn); [`ClientEvent::CancelRequest`] tells of each.
    pub fn notify_cancel(&mut self, session: &SessionId) {
        let core = &mut self.core;
        let params = CancelNotification::new(session);
        core.output
            .frame(|out| write_notification(out, "session/cancel", &params));
        let open = |(key, _, open): (_, _, &Open)| {
            let permission = open.kind == ClientMethodKind::RequestPermission;
            (permission && open.session.as_ref() == Some(session)).then_some(key)
        };
        let cards: alloc::vec::Vec<_> = core.requests.iter().filter_map(open).collect();
        for key in cards {
            if let Some((id, open)) = core.requests.settle(key) {
                let response = RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled);
                core.output.frame(|out| write_result(out, &id, &response));
                if open.state == Request::Open {
                    core.events.push_back(ClientEvent::CancelRequest { key });
                }
            }
        }
    }

    /// `$/cancel_request` for a request of ours; its answer still comes.
    pub fn cancel_request(&mut self, ask: AskId) {
        if self.core.asks.get(ask.number()).is_some() {
            let id = wire_id(ask.number());
            self.core.output.frame(|out| write_cancel_request(out, &id));
        }
    }

    /// Answers a request of the agent. Ignored if it is settled already.
    pub fn answer<M: Method>(&mut self, asked: Asked<M>, result: Result<M::Response, RpcError>) {
        let Some((id, open)) = self.core.requests.settle(asked.key) else {
            return;
        };
        // Open requests are open or cancelled, and both can be answered.
        open.state
            .on(RequestEvent::Answer)
            .expect("an open request can be answered");
        self.core.output.frame(|out| match &result {
            Ok(response) => write_result(out, &id, response),
            Err(error) => write_error(out, &id, error),
        });
    }

    /// Whether a frame waits to be transmitted: the next effect is its `Transmit`.
    pub fn has_frame(&self) -> bool {
        self.core.output.has_frame()
    }

    /// The embedder is done: requests of ours are settled as cancelled, those of the agent answered
    /// so, then `Close`.
    pub fn close(&mut self) {
        let core = &mut self.core;
        if core.closed || core.lost.is_some() {
            return;
        }
        core.finished = true;
        core.end();
    }

    fn step(&mut self) -> Step {
        let core = &mut self.core;
        loop {
            if let Some(frame) = core.output.next(core.now) {
                return Step::Frame(frame);
            }
            if let Some(event) = core.events.pop_front() {
                return Step::Event(event);
            }
            if core.closed {
                return Step::Wait(None);
            }
            if let Some(reason) = core.lost.or(core.ended.then_some(CloseReason::Finished)) {
                core.closed = true;
                core.output.kill();
                core.connect(match reason {
                    CloseReason::Finished => ConnectionEvent::Settle,
                    CloseReason::Gone | CloseReason::Stalled => ConnectionEvent::Lose,
                });
                return Step::Close(reason);
            }
            if let Some(line) = self.input.next_line() {
                core.take_line(line);
                continue;
            }
            if core.finished {
                core.events.push_back(ClientEvent::PeerFinished);
                core.end();
                continue;
            }
            return Step::Wait(core.deadline());
        }
    }
}

#[allow(clippy::large_enum_variant)] // moved once, from the queue to the embedder
enum Step {
    Frame(Range<usize>),
    Event(ClientEvent),
    Close(CloseReason),
    Wait(Option<Deadline>),
}

impl Core {
    fn connect(&mut self, event: ConnectionEvent) {
        if let Ok(next) = self.connection.on(event) {
            self.connection = next;
        }
    }

    fn send(&mut self, method: &str, params: &(impl Serialize + ?Sized), ask: Ask) -> AskId {
        let kind = ask.kind;
        let id = self.asks.open(ask);
        if self.finished || self.lost.is_some() {
            self.asks.settle(&wire_id(id));
            if !self.closed {
                self.events.push_back(ClientEvent::Answered {
                    ask: AskId::new(id),
                    answer: kind.failed(closed()),
                });
            }
        } else {
            self.output
                .frame(|out| write_request(out, id, method, params));
        }
        AskId::new(id)
    }

    /// No more can come of what is open.
    fn end(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.connect(ConnectionEvent::Finish);
        let keys: alloc::vec::Vec<_> = self.requests.iter().map(|(key, ..)| key).collect();
        for key in keys {
            if let Some((id, _)) = self.requests.settle(key) {
                self.output
                    .frame(|out| write_error(out, &id, &RpcError::cancelled()));
            }
        }
        for (id, ask) in self.asks.abandon() {
            self.events.push_back(ClientEvent::Answered {
                ask: AskId::new(id),
                answer: ask.kind.failed(closed()),
            });
        }
    }

    fn lose(&mut self, reason: CloseReason) {
        if self.closed || self.lost.is_some() {
            return;
        }
        self.lost = Some(reason);
        self.finished = true;
        self.output.kill();
        self.end();
        self.events.push_back(ClientEvent::PeerGone);
    }

    fn stalled_at(&self) -> Option<Instant> {
        let unheard = self.output.unheard_since(self.limits.soft_output);
        let since = self.output.waiting_since().or(unheard)?;
        Some(since.plus(self.limits.peer_stalled))
    }

    fn deadline(&self) -> Option<Deadline> {
        Some(Deadline {
            at: self.stalled_at()?,
            why: Timer::PeerStalled,
        })
    }
}

/// The id of a request of ours on the wire; they are counted and do not come near 2^63.
fn wire_id(number: u64) -> RequestId {
    RequestId::from(number as i64)
}

/// Why a request of ours gets no answer.
fn closed() -> RpcError {
    RpcError::internal("The connection to the agent is closed")
}

impl Machine for ClientSide {
    type Input<'a> = PeerInput<'a>;
    type Effect<'a> = SideEffect<'a, ClientEvent>;

    fn handle_input(&mut self, now: Instant, input: PeerInput<'_>) {
        let core = &mut self.core;
        core.now = core.now.max(now);
        if core.closed {
            return;
        }
        match input {
            PeerInput::Received(bytes) => {
                if !core.finished {
                    self.input.push(bytes);
                }
            }
            PeerInput::Unsent(bytes) => core.output.written(core.now, bytes),
            PeerInput::PeerFinished => {
                if !core.finished {
                    self.input.finish();
                    core.finished = true;
                }
            }
            PeerInput::PeerGone => core.lose(CloseReason::Gone),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let core = &mut self.core;
        core.now = core.now.max(now);
        if core.stalled_at().is_some_and(|at| at <= core.now) {
            core.lose(CloseReason::Stalled);
        }
    }

    fn poll_effect(&mut self) -> Next<SideEffect<'_, ClientEvent>> {
        match self.step() {
            Step::Frame(frame) => Next::Do(SideEffect::Transmit(self.core.output.bytes(frame))),
            Step::Event(event) => Next::Do(SideEffect::Event(event)),
            Step::Close(reason) => Next::Do(SideEffect::Close(reason)),
            Step::Wait(deadline) => Next::Wait(deadline),
        }
    }

    fn room(&self, source: Source) -> usize {
        match source {
            Source::Call(_) => 0,
            Source::Peer if self.core.finished || self.core.closed => 0,
            Source::Peer if self.core.output.pressure() >= self.core.limits.hard_output => 0,
            Source::Peer if self.input.is_incomplete() => self.core.limits.peer_window,
            Source::Peer => self
                .core
                .limits
                .peer_window
                .saturating_sub(self.input.buffered()),
        }
    }
}
