//! The client's side of a connection: the mirror of [`AgentSide`](super::AgentSide). Knows nothing
//! of editors.

use serde_json::value::RawValue;

use crate::ids::AskId;
use crate::limits::Limits;
use crate::machine::{Machine, Next, Source};
use crate::time::Instant;
use crate::wire::RpcError;

use super::events::{ClientEvent, PeerInput, SideEffect};
use super::methods::{AgentMethod, Asked, Method};
use super::schema::SessionId;

/// The client's side of one connection.
pub struct ClientSide {
    limits: Limits,
}

impl ClientSide {
    /// A fresh connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits }
    }

    /// Asks the agent. [`ClientEvent::Answered`] follows.
    pub fn request<M: AgentMethod>(&mut self, request: &M::Request) -> AskId {
        let _ = request;
        todo!()
    }

    /// Asks the agent by any method with any parameters: a vendor's, or one that is to be refused.
    pub fn vendor_request(&mut self, method: &str, params: &RawValue) -> AskId {
        let _ = (method, params);
        todo!()
    }

    /// Tells the agent something by any method.
    pub fn vendor_notify(&mut self, method: &str, params: &RawValue) {
        let _ = (method, params);
        todo!()
    }

    /// `session/cancel`.
    pub fn notify_cancel(&mut self, session: &SessionId) {
        let _ = session;
        todo!()
    }

    /// `$/cancel_request` for a request of ours; its answer still comes.
    pub fn cancel_request(&mut self, ask: AskId) {
        let _ = ask;
        todo!()
    }

    /// Answers a request of the agent. Ignored if it is settled already.
    pub fn answer<M: Method>(&mut self, asked: Asked<M>, result: Result<M::Response, RpcError>) {
        let _ = (asked, result);
        todo!()
    }

    /// The embedder is done: what is open is settled as cancelled, then `Close`.
    pub fn close(&mut self) {
        todo!()
    }
}

impl Machine for ClientSide {
    type Input<'a> = PeerInput<'a>;
    type Effect<'a> = SideEffect<'a, ClientEvent>;

    fn handle_input(&mut self, _now: Instant, _input: PeerInput<'_>) {
        todo!()
    }

    fn handle_timeout(&mut self, _now: Instant) {
        todo!()
    }

    fn poll_effect(&mut self) -> Next<SideEffect<'_, ClientEvent>> {
        todo!()
    }

    fn room(&self, _source: Source) -> usize {
        self.limits.peer_window
    }
}
