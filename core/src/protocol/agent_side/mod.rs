//! The agent's side of a connection: who may say what when, who is answered what, and what waits.
//! Knows nothing of models, tools and files. This file is what an embedder sees and the order in
//! which effects are given; the rules are in the files beside it.

mod admit;
mod asks;
mod calls;
mod checks;
mod core;
mod end;
mod sessions;
mod turns;

pub(super) use turns::event_of;
pub use turns::{ReplayMut, TurnMut};

use ::core::fmt;
use ::core::ops::Range;

use crate::error::CommandError;
use crate::ids::{AskId, SessionKey, TurnKey};
use crate::limits::Limits;
use crate::machine::{Machine, Next, Source};
use crate::time::{Deadline, Instant};
use crate::wire::{FrameDecoder, RequestKey, RpcError};

use self::core::Core;
use super::events::{AgentEvent, CloseReason, PeerInput, SideEffect};
use super::gates::Gates;
use super::methods::{AgentMethod, Asked, ClientMethod, LoadSession, Opens};
use super::schema::{
    ClientCapabilities, ElicitationScope, Json, ReleaseTerminalRequest, SessionId, SessionUpdate,
};
use super::states::Connection;

/// The agent's side of one connection.
///
/// An embedder feeds it as a [`Machine`], sends what it transmits, and acts on [`AgentEvent`]s.
/// What it does itself: it answers what breaks a rule, lets through only what both sides
/// advertised, cancels, holds frames back while their session opens or closes, shares the output
/// fairly among turns, and sees to it that every request is answered exactly once.
///
/// Commands are methods here and on the handles [`SessionMut`], [`TurnMut`] and [`ReplayMut`].
pub struct AgentSide {
    input: FrameDecoder,
    core: Core,
}

impl fmt::Debug for AgentSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSide")
            .field("connection", &self.core.connection)
            .field("pressure", &self.core.output.pressure())
            .field("lost", &self.core.lost)
            .finish_non_exhaustive()
    }
}

impl AgentSide {
    /// A fresh connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            input: FrameDecoder::new(limits.max_frame),
            core: Core::new(limits),
        }
    }

    /// What the client advertised in its last `initialize`.
    pub fn client(&self) -> &ClientCapabilities {
        &self.core.client
    }

    /// Answers a request. A good answer to a request that opens a session opens it, as
    /// [`open`](Self::open) does. Ignored if the request is settled already.
    pub fn answer<M: AgentMethod>(
        &mut self,
        asked: Asked<M>,
        result: Result<M::Response, RpcError>,
    ) {
        self.core.answer(asked, result);
    }

    /// Answers a request that opens a session. The answer goes out before anything else of the
    /// session. None if the request is settled already.
    ///
    /// # Panics
    ///
    /// If a new session has the id of an active one, or one that is not of the shape
    /// [`SessionId::check`] asks for.
    pub fn open<M: Opens>(&mut self, asked: Asked<M>, response: M::Response) -> Option<SessionKey> {
        self.core.answer(asked, Ok(response))
    }

    /// The replay that belongs to a `session/load`; none if the request is settled already.
    pub fn replay(&mut self, asked: &Asked<LoadSession>) -> Option<ReplayMut<'_>> {
        self.core.replay(asked.key)
    }

    /// An active session.
    pub fn session(&mut self, key: SessionKey) -> Option<SessionMut<'_>> {
        self.core.sessions.get(key.number())?;
        Some(SessionMut {
            core: &mut self.core,
            key: key.number(),
        })
    }

    /// The key of the active session with this id.
    pub fn find_session(&self, id: &SessionId) -> Option<SessionKey> {
        self.core.sessions.find(id).map(SessionKey::new)
    }

    /// A turn that is not over.
    pub fn turn(&mut self, key: TurnKey) -> Option<TurnMut<'_>> {
        self.core.turn(key.number())
    }

    /// Asks the client. `NotOffered` unless it advertised the method; `Gone` if the session, the
    /// request of the client that it belongs to, or the connection is over. [`AgentEvent::Settled`]
    /// follows.
    pub fn ask<M: ClientMethod>(
        &mut self,
        request: &M::Request,
    ) -> Result<AskId, CommandError<()>> {
        self.core.ask::<M>(request)
    }

    /// The scope of a question that belongs to a request of the client and to no session, such as one
    /// that has to be asked before there is a session (ACP page: elicitation). None if the request is
    /// settled already. A question that is open when its request is answered is withdrawn, and
    /// settled as cancelled.
    pub fn scope_of(&self, request: RequestKey) -> Option<ElicitationScope> {
        let id = self.core.requests.id(request)?;
        let request_id = Json::of(id)?;
        Some(ElicitationScope::Request { request_id })
    }

    /// Asks the client by a vendor's method (its name begins with `_`).
    pub fn ask_vendor(&mut self, method: &str, params: &Json) -> Result<AskId, CommandError<()>> {
        self.core.ask_vendor(method, params)
    }

    /// Gives a request of ours up: the client is told by `$/cancel_request`, no event follows, a
    /// late answer leaves no trace.
    pub fn withdraw(&mut self, ask: AskId) {
        self.core.withdraw(ask.number());
    }

    /// Asks the client to break a request off (`$/cancel_request`). Unlike a request that is
    /// [withdrawn](Self::withdraw) it stays open, also when its session is over: what it answers
    /// still comes as [`AgentEvent::Settled`]. For requests whose success leaves something behind.
    pub fn cancel_ask(&mut self, ask: AskId) {
        self.core.cancel_ask(ask.number());
    }

    /// Whether the client of this session advertised all that `gate` names; not, if there is no
    /// such session.
    pub fn takes(&self, session: SessionKey, gate: Gates) -> bool {
        let session = self.core.sessions.get(session.number());
        session.is_some_and(|session| session.gates.has(gate))
    }

    /// Tells the client to release a terminal that it made. Also for a session that is over and
    /// while the connection ends, since nothing else gives a terminal back. No event follows: to
    /// the answer there is nothing to say.
    pub fn release_terminal(&mut self, request: &ReleaseTerminalRequest) {
        self.core.release_terminal(request);
    }

    /// Tells the client something by a vendor's method (its name begins with `_`).
    pub fn notify_vendor(&mut self, method: &str, params: &Json) {
        self.core.notify(method, params);
    }

    /// Tells the client that what it opened by URL is done.
    pub fn complete_elicitation(&mut self, elicitation_id: &str) -> Result<(), CommandError<()>> {
        self.core.complete_elicitation(elicitation_id)
    }

    /// Whether so little is unsent that the client can be told what it did not ask for
    /// ([`Limits::quiet_output`]).
    pub fn is_quiet(&self) -> bool {
        self.core.output.pressure() < self.core.limits.quiet_output
    }

    /// Whether a frame waits to be transmitted: the next effect is its `Transmit`.
    pub fn has_frame(&self) -> bool {
        self.core.output.has_frame()
    }

    /// The embedder is done: what is open is answered as cancelled, then `Close`.
    pub fn close(&mut self) {
        self.core.give_up();
    }

    /// Whether it [stalled](CloseReason::Stalled) because the driver never said what became of the frames
    /// it was given ([`PeerInput::Unsent`]), and not because of the client.
    pub fn was_unheard(&self) -> bool {
        self.core.unheard
    }

    /// An active session without a turn is over, though the request to close or delete it failed.
    #[cfg(feature = "agent")]
    pub(crate) fn forget(&mut self, key: SessionKey) {
        self.core.forget(key.number());
    }

    /// The bytes of a frame that [`step`](Self::step) gave.
    pub(crate) fn frame(&self, frame: Range<usize>) -> &[u8] {
        self.core.output.bytes(frame)
    }

    /// [`poll_effect`](Machine::poll_effect) without a borrow, for the machine around this one: the
    /// bytes of a frame are those of [`frame`](Self::frame) until the next step.
    pub(crate) fn step(&mut self) -> Step {
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
            if let Some(reason) = core.has_ended() {
                core.closed = true;
                core.output.kill();
                return Step::Close(reason);
            }
            if let Some(held) = core.released.pop_front() {
                core.resume(held);
                continue;
            }
            if matches!(core.connection, Connection::Fresh | Connection::Ready) {
                if let Some(line) = self.input.next_line() {
                    core.take_line(line);
                    continue;
                }
                if core.finished {
                    core.begin_ending();
                    continue;
                }
            }
            if let Some(event) = core.next_ready() {
                return Step::Event(event);
            }
            return Step::Wait(core.deadline());
        }
    }
}

/// One effect, a frame by its place.
#[allow(clippy::large_enum_variant)] // moved once, from the queue to the embedder
pub(crate) enum Step {
    Frame(Range<usize>),
    Event(AgentEvent),
    Close(CloseReason),
    Wait(Option<Deadline>),
}

impl Machine for AgentSide {
    type Input<'a> = PeerInput<'a>;
    type Effect<'a> = SideEffect<'a, AgentEvent>;

    fn handle_input(&mut self, now: Instant, input: PeerInput<'_>) {
        self.core.now = self.core.now.max(now);
        if self.core.closed {
            return;
        }
        match input {
            PeerInput::Received(bytes) => {
                if !self.core.finished {
                    self.input.push(bytes);
                }
            }
            PeerInput::Unsent(bytes) => self.core.output.written(self.core.now, bytes),
            PeerInput::PeerFinished => {
                if !self.core.finished {
                    self.input.finish();
                    self.core.finish_input(true);
                }
            }
            PeerInput::PeerGone => self.core.lose(CloseReason::Gone),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.core.now = self.core.now.max(now);
        self.core.check_time();
    }

    fn poll_effect(&mut self) -> Next<SideEffect<'_, AgentEvent>> {
        match self.step() {
            Step::Frame(frame) => Next::Do(SideEffect::Transmit(self.frame(frame))),
            Step::Event(event) => Next::Do(SideEffect::Event(event)),
            Step::Close(reason) => Next::Do(SideEffect::Close(reason)),
            Step::Wait(deadline) => Next::Wait(deadline),
        }
    }

    fn room(&self, source: Source) -> usize {
        match source {
            Source::Peer => self.core.room(&self.input),
            Source::Call(_) => 0,
        }
    }
}

/// An active session.
pub struct SessionMut<'a> {
    core: &'a mut Core,
    key: u64,
}

impl SessionMut<'_> {
    /// Its id.
    pub fn id(&self) -> &SessionId {
        let session = self.core.sessions.get(self.key);
        // The handle was made for a session that is there, and borrows the side since.
        &session.expect("a session with a handle is there").id
    }

    /// Its turn, if one runs.
    pub fn turn(&self) -> Option<TurnKey> {
        let turn = self.core.sessions.get(self.key)?.turn?;
        Some(TurnKey::new(turn.get()))
    }

    /// Sends an update outside a turn. Never refused for room, so only for the few there are. What
    /// the client does not take becomes something plainer or nothing.
    pub fn notify(&mut self, update: &SessionUpdate) {
        self.core.notify_session(self.key, update);
    }
}
