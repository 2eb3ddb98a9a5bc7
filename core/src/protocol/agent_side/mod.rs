//! The agent's side of a connection: who may say what when, who is answered what, and what waits.
//! Knows nothing of models, tools and files.

use crate::error::CommandError;
use crate::ids::{AskId, SessionKey, TurnKey};
use crate::limits::Limits;
use crate::machine::{Machine, Next, Source};
use crate::time::Instant;
use crate::wire::RpcError;

use super::events::{AgentEvent, PeerInput, SideEffect, TextKind};
use super::methods::{AgentMethod, Asked, ClientMethod, LoadSession, Opens};
use super::schema::{ClientCapabilities, Json, PromptResponse, SessionId, SessionUpdate};

/// The agent's side of one connection.
pub struct AgentSide {
    limits: Limits,
}

impl AgentSide {
    /// A fresh connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits }
    }

    /// What the client advertised in its last `initialize`.
    pub fn client(&self) -> &ClientCapabilities {
        todo!()
    }

    /// Answers a request. A good answer to a request that opens a session opens it, as
    /// [`open`](Self::open) does. Ignored if the request is settled already.
    pub fn answer<M: AgentMethod>(
        &mut self,
        asked: Asked<M>,
        result: Result<M::Response, RpcError>,
    ) {
        let _ = (asked, result);
        todo!()
    }

    /// Answers a request that opens a session. The answer goes out before anything else of the
    /// session. None if the request is settled already.
    pub fn open<M: Opens>(&mut self, asked: Asked<M>, response: M::Response) -> Option<SessionKey> {
        let _ = (asked, response);
        todo!()
    }

    /// The replay that belongs to a `session/load`; none if the request is settled already.
    pub fn replay(&mut self, asked: &Asked<LoadSession>) -> Option<ReplayMut<'_>> {
        let _ = asked;
        todo!()
    }

    /// An active session.
    pub fn session(&mut self, key: SessionKey) -> Option<SessionMut<'_>> {
        let _ = key;
        todo!()
    }

    /// The key of the active session with this id.
    pub fn find_session(&self, id: &SessionId) -> Option<SessionKey> {
        let _ = id;
        todo!()
    }

    /// A turn that is not over.
    pub fn turn(&mut self, key: TurnKey) -> Option<TurnMut<'_>> {
        let _ = key;
        todo!()
    }

    /// Asks the client. `NotOffered` unless it advertised the method; `Gone` if the session or the
    /// connection is over. [`AgentEvent::Settled`] follows.
    pub fn ask<M: ClientMethod>(
        &mut self,
        request: &M::Request,
    ) -> Result<AskId, CommandError<()>> {
        let _ = request;
        todo!()
    }

    /// Asks the client by a vendor's method (its name begins with `_`).
    pub fn ask_vendor(&mut self, method: &str, params: &Json) -> Result<AskId, CommandError<()>> {
        let _ = (method, params);
        todo!()
    }

    /// Gives a request of ours up: the client is told by `$/cancel_request`, no event follows, a
    /// late answer leaves no trace.
    pub fn withdraw(&mut self, ask: AskId) {
        let _ = ask;
        todo!()
    }

    /// Tells the client something by a vendor's method (its name begins with `_`).
    pub fn notify_vendor(&mut self, method: &str, params: &Json) {
        let _ = (method, params);
        todo!()
    }

    /// Tells the client that what it opened by URL is done.
    pub fn complete_elicitation(&mut self, elicitation_id: &str) -> Result<(), CommandError<()>> {
        let _ = elicitation_id;
        todo!()
    }

    /// Whether a frame waits to be transmitted: the next effect is its `Transmit`.
    pub fn has_frame(&self) -> bool {
        todo!()
    }

    /// The embedder is done: what is open is answered as cancelled, then `Close`.
    pub fn close(&mut self) {
        todo!()
    }
}

impl Machine for AgentSide {
    type Input<'a> = PeerInput<'a>;
    type Effect<'a> = SideEffect<'a, AgentEvent>;

    fn handle_input(&mut self, _now: Instant, _input: PeerInput<'_>) {
        todo!()
    }

    fn handle_timeout(&mut self, _now: Instant) {
        todo!()
    }

    fn poll_effect(&mut self) -> Next<SideEffect<'_, AgentEvent>> {
        todo!()
    }

    fn room(&self, _source: Source) -> usize {
        self.limits.peer_window
    }
}

/// An active session.
pub struct SessionMut<'a> {
    side: &'a mut AgentSide,
}

impl SessionMut<'_> {
    /// Its id.
    pub fn id(&self) -> &SessionId {
        let _ = &self.side;
        todo!()
    }

    /// Sends an update outside a turn. Never refused for room, so only for the few there are. What
    /// the client does not take becomes something plainer or nothing.
    pub fn notify(&mut self, update: &SessionUpdate) {
        let _ = update;
        todo!()
    }
}

/// A turn that is not over.
pub struct TurnMut<'a> {
    side: &'a mut AgentSide,
}

impl TurnMut<'_> {
    /// Its session.
    pub fn session(&self) -> SessionKey {
        let _ = &self.side;
        todo!()
    }

    /// Whether it is to end soon.
    pub fn is_cancelled(&self) -> bool {
        todo!()
    }

    /// Sends text of the agent. Longer text goes as several chunks, each at most
    /// [`Limits::max_out_frame`] long. `Full`: nothing was sent, [`AgentEvent::Ready`] says when to
    /// try again.
    pub fn text(
        &mut self,
        kind: TextKind,
        text: &str,
        message_id: Option<&str>,
    ) -> Result<(), CommandError<()>> {
        let _ = (kind, text, message_id);
        todo!()
    }

    /// Sends an update. `Full` as for [`text`](Self::text). What the client does not take becomes
    /// something plainer or nothing. `Gone`: it is about a tool call that ended or never began.
    pub fn update(&mut self, update: &SessionUpdate) -> Result<(), CommandError<()>> {
        let _ = update;
        todo!()
    }

    /// Ends the turn well. Tool calls that did not end are reported as failed first. The stop
    /// reason of a cancelled turn is `cancelled`, whatever is given.
    pub fn finish(self, response: PromptResponse) {
        let _ = response;
        todo!()
    }

    /// Ends the turn with an error; a cancelled turn ends as `cancelled` all the same.
    pub fn fail(self, error: RpcError) {
        let _ = error;
        todo!()
    }
}

/// The replay of a session that is being loaded.
pub struct ReplayMut<'a> {
    side: &'a mut AgentSide,
}

impl ReplayMut<'_> {
    /// Sends an update of the history. `Full`: nothing was sent, [`AgentEvent::ReplayReady`] says
    /// when to try again.
    pub fn update(&mut self, update: &SessionUpdate) -> Result<(), CommandError<()>> {
        let _ = (update, &self.side);
        todo!()
    }
}
