//! Rules of both sides, tested without any IO: an agent's side that is fed text, and a pair of both
//! sides with a wire between them.

#![allow(clippy::wildcard_enum_match_arm)] // a test looks for one event and refuses the others
#![allow(clippy::type_complexity)] // tables

mod ending;
mod envelope;
mod pair;
mod pressure;
mod property;
mod sessions;
mod setup;
mod turns;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::schema::*;
use super::*;
use crate::ids::{SessionKey, TurnKey};
use crate::limits::Limits;
use crate::machine::{Machine, Next, Source};
use crate::time::{Deadline, Instant};
use crate::wire::RpcError;

/// An agent's side, what it sent and what it told.
pub(super) struct Agent {
    pub side: AgentSide,
    pub now: Instant,
    pub frames: Vec<String>,
    pub events: Vec<AgentEvent>,
    pub closed: Option<CloseReason>,
    /// Answered by itself, as an embedder would.
    pub capabilities: Option<AgentCapabilities>,
    /// Whether the client reads what it is sent.
    pub reads: bool,
    pub unread: usize,
}

/// All an agent can offer.
pub(super) fn everything() -> AgentCapabilities {
    let mut all = AgentCapabilities {
        load_session: true,
        ..Default::default()
    };
    all.prompt_capabilities.image = true;
    all.prompt_capabilities.embedded_context = true;
    all.mcp_capabilities.http = true;
    all.mcp_capabilities.sse = true;
    let yes = || Some(Marker::default());
    all.session_capabilities.list = yes();
    all.session_capabilities.delete = yes();
    all.session_capabilities.additional_directories = yes();
    all.session_capabilities.system_prompt = Some(SessionSystemPromptCapabilities::default());
    all.session_capabilities.resume = yes();
    all.session_capabilities.close = yes();
    all.auth.logout = yes();
    all
}

pub(super) const INIT: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

pub(super) fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

pub(super) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

pub(super) fn new_session(id: u64) -> String {
    request(id, "session/new", r#"{"cwd":"/w","mcpServers":[]}"#)
}

pub(super) fn prompt(id: u64, session: &str) -> String {
    let params = format!(r#"{{"sessionId":"{session}","prompt":[{{"type":"text","text":"hi"}}]}}"#);
    request(id, "session/prompt", &params)
}

pub(super) fn cancel(session: &str) -> String {
    notification("session/cancel", &format!(r#"{{"sessionId":"{session}"}}"#))
}

impl Agent {
    pub fn with(limits: Limits) -> Self {
        Self {
            side: AgentSide::new(limits),
            now: Instant::ZERO,
            frames: Vec::new(),
            events: Vec::new(),
            closed: None,
            capabilities: Some(everything()),
            reads: true,
            unread: 0,
        }
    }

    pub fn new() -> Self {
        Self::with(Limits::default())
    }

    /// Initialized, with nothing left of that.
    pub fn ready() -> Self {
        Self::ready_for("{}")
    }

    /// As [`ready`](Self::ready), with these client capabilities.
    pub fn ready_for(capabilities: &str) -> Self {
        let mut agent = Self::new();
        let params = format!(r#"{{"protocolVersion":1,"clientCapabilities":{capabilities}}}"#);
        agent.send(&request(0, "initialize", &params));
        assert_eq!(agent.frames.len(), 1);
        agent.frames.clear();
        agent
    }

    /// With a session of this id.
    pub fn with_session(mut self, id: &str) -> (Self, SessionKey) {
        let key = self.open(id);
        (self, key)
    }

    pub fn open(&mut self, id: &str) -> SessionKey {
        self.send(&new_session(900));
        let Some(AgentEvent::NewSession { asked, .. }) = self.events.pop() else {
            panic!("{:?}", self.events)
        };
        let key = self.side.open(asked, NewSessionResponse::new(id)).unwrap();
        self.drain();
        assert_eq!(
            self.frames.pop().unwrap(),
            r(900, &format!(r#"{{"sessionId":"{id}"}}"#))
        );
        key
    }

    /// Begins a turn.
    pub fn prompt(&mut self, id: u64, session: &str) -> TurnKey {
        self.send(&prompt(id, session));
        let Some(AgentEvent::Prompt { turn, .. }) = self.events.pop() else {
            panic!("{:?}", self.frames)
        };
        turn
    }

    pub fn send(&mut self, line: &str) {
        self.feed(line.as_bytes());
        self.feed(b"\n");
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.input(PeerInput::Received(bytes));
    }

    pub fn input(&mut self, input: PeerInput<'_>) {
        self.side.handle_input(self.now, input);
        self.drain();
    }

    pub fn later(&mut self, seconds: u64) {
        self.now = self.now.plus(Duration::from_secs(seconds));
        self.side.handle_timeout(self.now);
        self.drain();
    }

    /// Drains to `Wait`, as a driver does.
    pub fn drain(&mut self) -> Option<Deadline> {
        loop {
            match self.side.poll_effect() {
                Next::Do(SideEffect::Transmit(frame)) => {
                    self.unread += frame.len();
                    let frame = core::str::from_utf8(frame).unwrap();
                    let frame = frame.strip_suffix('\n').expect("a frame ends its line");
                    assert!(!frame.contains('\n'));
                    self.frames.push(frame.to_string());
                }
                Next::Do(SideEffect::Event(event)) => self.told(event),
                Next::Do(SideEffect::Close(reason)) => {
                    assert_eq!(self.closed.replace(reason), None, "closed twice");
                }
                Next::Wait(deadline) => {
                    if !(self.reads && self.unread > 0) {
                        return deadline;
                    }
                    self.unread = 0;
                    self.side.handle_input(self.now, PeerInput::Unsent(0));
                }
            }
        }
    }

    fn told(&mut self, event: AgentEvent) {
        assert_eq!(self.closed, None, "{event:?} after the end");
        match (event, &self.capabilities) {
            (AgentEvent::Initialize { asked, .. }, Some(capabilities)) => {
                let mut response = InitializeResponse::new(ProtocolVersion::V1);
                response.agent_capabilities = capabilities.clone();
                self.side.answer(asked, Ok(response));
            }
            (event, _) => self.events.push(event),
        }
    }

    /// Takes the frames sent so far.
    pub fn sent(&mut self) -> Vec<String> {
        core::mem::take(&mut self.frames)
    }

    /// Takes the names of the events told so far.
    pub fn told_names(&mut self) -> Vec<String> {
        self.events.drain(..).map(|event| name(&event)).collect()
    }

    pub fn finish(&mut self, turn: TurnKey, reason: StopReason) {
        self.side
            .turn(turn)
            .unwrap()
            .finish(PromptResponse::new(reason));
        self.drain();
    }
}

/// A result as a frame.
pub(super) fn r(id: u64, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// The answer to a prompt as a frame.
pub(super) fn stop(id: u64, reason: &str) -> String {
    r(id, &format!(r#"{{"stopReason":"{reason}"}}"#))
}

/// The id, code and `data.code` of an error frame.
pub(super) fn error(frame: &str) -> (String, i32, String) {
    #[derive(serde::Deserialize)]
    struct Frame {
        id: Json,
        error: RpcError,
    }
    #[derive(serde::Deserialize, Default)]
    struct Data {
        #[serde(default)]
        code: String,
    }
    let frame: Frame = serde_json::from_str(frame).unwrap_or_else(|_| panic!("{frame}"));
    let data = frame
        .error
        .data
        .as_ref()
        .map(|raw| raw.get())
        .unwrap_or("{}");
    let data: Data = serde_json::from_str(data).unwrap_or_default();
    (frame.id.get().to_string(), frame.error.code, data.code)
}

/// An event's name, without what it holds.
pub(super) fn name(event: &AgentEvent) -> String {
    let text = format!("{event:?}");
    let end = text
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(text.len());
    text[..end].to_string()
}

pub(super) fn chunk(session: &str, text: &str) -> String {
    notification(
        "session/update",
        &format!(
            r#"{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}"#
        ),
    )
}

pub(super) fn room(agent: &Agent) -> usize {
    agent.side.room(Source::Peer)
}
