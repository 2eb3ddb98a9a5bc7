//! The client's side of a connection: the mirror of [`AgentSide`](super::AgentSide). Knows nothing
//! of editors.
//!
//! It sends what its embedder says and judges what the agent sends: a frame that breaks a rule of
//! the protocol becomes [`ClientEvent::Misbehaved`], and the connection goes on.

mod follow;
mod frames;
mod receive;

use alloc::collections::VecDeque;

use serde_json::value::RawValue;

use crate::ids::AskId;
use crate::limits::Limits;
use crate::machine::{Machine, Next, Source};
use crate::time::{Deadline, Instant, Timer};
use crate::wire::requests::write_cancel_request;
use crate::wire::rpc::{write_error, write_notification, write_request, write_result};
use crate::wire::{FrameDecoder, IncomingRequests, OutgoingRequests, RequestId, RpcError};

use super::events::{ClientEvent, CloseReason, PeerInput, SideEffect};
use super::methods::{AgentMethod, AgentMethodKind, Asked, Method};
use super::schema::{AgentCapabilities, CancelNotification, Json, SessionId};
use super::states::{Connection, ConnectionEvent};

use follow::Follow;
use frames::Frames;

/// The client's side of one connection.
pub struct ClientSide {
    limits: Limits,
    state: Connection,
    decoder: FrameDecoder,
    /// Requests of the agent that wait for an answer; the tag is whether it withdrew them.
    incoming: IncomingRequests<bool>,
    outgoing: OutgoingRequests<Open>,
    frames: Frames,
    events: VecDeque<ClientEvent>,
    follow: Follow,
    agent: AgentCapabilities,
    now: Instant,
    /// Transmitted bytes that the system has not taken.
    unsent: usize,
    /// No more input comes.
    finished: bool,
    /// Since when bytes wait that the agent does not take.
    stalled_since: Option<Instant>,
    closing: Option<CloseReason>,
}

/// A request of ours.
struct Open {
    kind: AgentMethodKind,
    /// The session of a prompt, whose turn ends with the answer.
    prompt: Option<SessionId>,
}

impl ClientSide {
    /// A fresh connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            state: Connection::Fresh,
            decoder: FrameDecoder::new(limits.max_frame),
            incoming: IncomingRequests::new(limits.max_open_requests),
            outgoing: OutgoingRequests::new(),
            frames: Frames::default(),
            events: VecDeque::new(),
            follow: Follow::default(),
            agent: AgentCapabilities::default(),
            now: Instant::ZERO,
            unsent: 0,
            finished: false,
            stalled_since: None,
            closing: None,
            limits,
        }
    }

    /// What the agent advertised in its last answer to `initialize`.
    pub fn agent(&self) -> &AgentCapabilities {
        &self.agent
    }

    /// Asks the agent. [`ClientEvent::Answered`] follows.
    pub fn request<M: AgentMethod>(&mut self, request: &M::Request) -> AskId {
        let kind = M::KIND;
        if kind == AgentMethodKind::Initialize {
            self.advance(ConnectionEvent::Initialize);
        }
        let prompt = (kind == AgentMethodKind::Prompt)
            .then(|| Json::of(request))
            .flatten()
            .and_then(|request| request.read::<CancelNotification>().ok())
            .map(|scope| scope.session_id);
        if let Some(session) = &prompt {
            self.follow.prompted(session);
        }
        let id = self.outgoing.open(Open { kind, prompt });
        self.frames
            .add(|out| write_request(out, id, M::NAME, request));
        AskId::new(id)
    }

    /// Asks the agent by any method with any parameters: a vendor's, or one that is to be refused.
    pub fn vendor_request(&mut self, method: &str, params: &RawValue) -> AskId {
        let id = self.outgoing.open(Open {
            kind: AgentMethodKind::Vendor,
            prompt: None,
        });
        self.frames
            .add(|out| write_request(out, id, method, params));
        AskId::new(id)
    }

    /// Tells the agent something by any method.
    pub fn vendor_notify(&mut self, method: &str, params: &RawValue) {
        self.frames
            .add(|out| write_notification(out, method, params));
    }

    /// `session/cancel`.
    pub fn notify_cancel(&mut self, session: &SessionId) {
        let params = CancelNotification::new(session.clone());
        self.frames
            .add(|out| write_notification(out, "session/cancel", &params));
    }

    /// `$/cancel_request` for a request of ours; its answer still comes.
    pub fn cancel_request(&mut self, ask: AskId) {
        if self.outgoing.get(ask.number()).is_some() {
            // Numbers are counted from 1 and do not come near 2^63.
            let id = RequestId::from(ask.number() as i64);
            self.frames.add(|out| write_cancel_request(out, &id));
        }
    }

    /// Answers a request of the agent. Ignored if it is settled already.
    pub fn answer<M: Method>(&mut self, asked: Asked<M>, result: Result<M::Response, RpcError>) {
        if let Some((id, _)) = self.incoming.settle(asked.key) {
            self.frames.add(|out| match &result {
                Ok(response) => write_result(out, &id, response),
                Err(error) => write_error(out, &id, error),
            });
        }
    }

    /// The embedder is done: what is open is settled as cancelled, then `Close`.
    pub fn close(&mut self) {
        self.end(CloseReason::Finished, &RpcError::cancelled());
    }

    fn advance(&mut self, event: ConnectionEvent) {
        // What the table does not have changes nothing: a client may be hostile on purpose.
        if let Ok(state) = self.state.on(event) {
            self.state = state;
        }
    }

    /// Settles our requests, answers the agent's, and lets what is queued go out before `Close`.
    fn end(&mut self, reason: CloseReason, error: &RpcError) {
        if self.closing.is_some() {
            return;
        }
        for (id, open) in self.outgoing.abandon() {
            self.events.push_back(ClientEvent::Answered {
                ask: AskId::new(id),
                answer: open.kind.failed(error.clone()),
            });
        }
        let keys: alloc::vec::Vec<_> = self.incoming.iter().map(|(key, _, _)| key).collect();
        for key in keys {
            if let Some((id, _)) = self.incoming.settle(key) {
                self.frames
                    .add(|out| write_error(out, &id, &RpcError::cancelled()));
            }
        }
        if reason != CloseReason::Finished {
            self.frames.clear();
        }
        self.advance(ConnectionEvent::Finish);
        self.closing = Some(reason);
    }
}

impl Machine for ClientSide {
    type Input<'a> = PeerInput<'a>;
    type Effect<'a> = SideEffect<'a, ClientEvent>;

    fn handle_input(&mut self, now: Instant, input: PeerInput<'_>) {
        self.now = self.now.max(now);
        if self.state == Connection::Closed {
            return;
        }
        match input {
            PeerInput::Received(bytes) => self.decoder.push(bytes),
            PeerInput::Unsent(bytes) => {
                if bytes < self.unsent || bytes == 0 {
                    self.stalled_since = None;
                }
                if bytes > 0 {
                    self.stalled_since.get_or_insert(self.now);
                }
                self.unsent = bytes;
            }
            PeerInput::PeerFinished => {
                self.decoder.finish();
                self.finished = true;
            }
            PeerInput::PeerGone => {
                self.events.push_back(ClientEvent::PeerGone);
                self.end(CloseReason::Gone, &RpcError::internal("The agent is gone"));
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if let Some(since) = self.stalled_since
            && self.now.since(since) >= self.limits.peer_stalled
        {
            self.end(
                CloseReason::Stalled,
                &RpcError::internal("The agent takes no more input"),
            );
        }
    }

    fn poll_effect(&mut self) -> Next<SideEffect<'_, ClientEvent>> {
        while self.frames.is_empty() && self.events.is_empty() && self.closing.is_none() {
            if self.process_line() {
                continue;
            }
            if !self.finished {
                let deadline = self.stalled_since.map(|since| Deadline {
                    at: since.plus(self.limits.peer_stalled),
                    why: Timer::PeerStalled,
                });
                return Next::Wait(deadline);
            }
            self.events.push_back(ClientEvent::PeerFinished);
            self.end(
                CloseReason::Finished,
                &RpcError::internal("The agent ended"),
            );
        }
        if !self.frames.is_empty() {
            return Next::Do(SideEffect::Transmit(self.frames.next()));
        }
        if let Some(event) = self.events.pop_front() {
            return Next::Do(SideEffect::Event(event));
        }
        match self.closing {
            Some(reason) if self.state != Connection::Closed => {
                self.state = Connection::Closed;
                Next::Do(SideEffect::Close(reason))
            }
            Some(_) | None => Next::Wait(None),
        }
    }

    fn room(&self, source: Source) -> usize {
        if source != Source::Peer || self.closing.is_some() {
            return 0;
        }
        if self.decoder.is_incomplete() {
            return self.limits.peer_window;
        }
        self.limits
            .peer_window
            .saturating_sub(self.decoder.buffered())
    }
}

#[cfg(test)]
mod tests {
    use super::super::methods::{Initialize, Prompt, RequestPermission};
    use super::super::schema::{
        ContentBlock, InitializeRequest, PromptRequest, ProtocolVersion, RequestPermissionOutcome,
        RequestPermissionResponse,
    };
    use super::*;
    use crate::error::PeerFault;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    /// Feeds a line and drains: frames as text, events as they are.
    fn drain(side: &mut ClientSide, line: &str) -> (String, Vec<ClientEvent>) {
        let bytes = format!("{line}\n");
        side.handle_input(Instant::ZERO, PeerInput::Received(bytes.as_bytes()));
        let (mut frames, mut events) = (String::new(), Vec::new());
        loop {
            match side.poll_effect() {
                Next::Do(SideEffect::Transmit(frame)) => {
                    frames.push_str(core::str::from_utf8(frame).unwrap());
                }
                Next::Do(SideEffect::Event(event)) => events.push(event),
                Next::Do(SideEffect::Close(_)) | Next::Wait(_) => return (frames, events),
            }
        }
    }

    fn prompted() -> ClientSide {
        let mut side = ClientSide::new(Limits::default());
        side.request::<Initialize>(&InitializeRequest::new(ProtocolVersion::V1));
        drain(
            &mut side,
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#,
        );
        side.request::<Prompt>(&PromptRequest::new(
            "s",
            Vec::from([ContentBlock::text("hi")]),
        ));
        drain(&mut side, "");
        side
    }

    fn update(text: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{text}}}}}"#
        )
    }

    fn faults(events: &[ClientEvent]) -> usize {
        events
            .iter()
            .filter(|event| matches!(event, ClientEvent::Misbehaved(_)))
            .count()
    }

    #[test]
    fn a_permission_is_answered_once_under_its_own_id() {
        let mut side = prompted();
        let line = r#"{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"a","name":"A","kind":"allow_once"}]}}"#;
        let (_, mut events) = drain(&mut side, line);
        let Some(ClientEvent::RequestPermission { asked, .. }) = events.pop() else {
            panic!()
        };
        let (refused, events) = drain(&mut side, line);
        assert!(
            refused.contains(r#""id":"p","error":{"code":-32600"#),
            "{refused}"
        );
        assert_eq!(faults(&events), 1, "the id is open");
        side.answer::<RequestPermission>(
            asked,
            Ok(RequestPermissionResponse::new(
                RequestPermissionOutcome::Cancelled,
            )),
        );
        let (answer, _) = drain(&mut side, "");
        assert_eq!(
            answer,
            "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}}\n"
        );
    }

    #[test]
    fn what_the_agent_says_out_of_turn_is_a_fault_and_nothing_ends() {
        let call = r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"t"}"#;
        let done = r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}"#;
        let again =
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress"}"#;
        let mut side = prompted();
        for (line, expected) in [
            (update(done), 1),
            (update(call), 0),
            (update(call), 1),
            (update(done), 0),
            (update(again), 1),
            (
                r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#.into(),
                0,
            ),
            (
                r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#.into(),
                1,
            ),
            (update(r#"{"sessionUpdate":"zzz"}"#), 1),
        ] {
            let (_, events) = drain(&mut side, &line);
            assert_eq!(faults(&events), expected, "{line}: {events:?}");
        }
    }

    #[test]
    fn a_turn_that_ends_with_an_open_call_is_a_fault() {
        let mut side = prompted();
        drain(
            &mut side,
            &update(r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"t"}"#),
        );
        let (_, events) = drain(
            &mut side,
            r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#,
        );
        assert!(matches!(
            events.as_slice(),
            [
                ClientEvent::Misbehaved(PeerFault::OutOfTurn { .. }),
                ClientEvent::Answered { .. }
            ]
        ));
    }

    #[test]
    fn the_end_settles_what_is_open_then_closes_then_is_silent() {
        let mut side = prompted();
        side.handle_input(Instant::ZERO, PeerInput::PeerFinished);
        let (_, events) = drain(&mut side, "");
        assert!(matches!(
            events.as_slice(),
            [ClientEvent::PeerFinished, ClientEvent::Answered { .. }]
        ));
        let (frames, events) = drain(&mut side, &update("{}"));
        assert!(frames.is_empty() && events.is_empty());
    }
}
