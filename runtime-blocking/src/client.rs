//! A client in the same process: an agent on a thread of its own, or any agent at the other end of
//! two descriptors, driven by blocking calls. [`Conversation`] is the same without the waits.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use reasonix_core::agent::{Agent, Config};
use reasonix_core::ids::AskId;
use reasonix_core::machine::{Machine, Next, Source};
use reasonix_core::protocol::methods::{Initialize, Method, NewSession};
use reasonix_core::protocol::schema::{
    ClientCapabilities, ContentBlock, InitializeRequest, InitializeResponse, Json,
    NewSessionRequest, PromptRequest, ProtocolVersion, SessionId,
};
use reasonix_core::protocol::{
    AgentAnswer, AgentMethod, Asked, ClientEvent, ClientSide, CloseReason, SideEffect, methods,
};
use reasonix_core::time::Deadline;
use reasonix_core::wire::RpcError;

use crate::driver::{Ended, Error, Stdio};
use crate::hooks::Hooks;
use crate::link::{Clock, Link};
use crate::serve::serve_with;

/// Why a call of a [`Client`] has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The agent refused.
    #[error("the agent refused ({}): {}", .0.code, .0.message)]
    Refused(RpcError),
    /// The connection is over.
    #[error("the connection is over")]
    Over,
    /// The agent could not be started, or the system cannot wait on its descriptors.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// A client's side and its link.
pub struct Conversation {
    side: ClientSide,
    /// The link, to wait on.
    pub link: Link,
    clock: Clock,
    deadline: Option<Deadline>,
    over: Option<CloseReason>,
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("side", &self.side)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

/// How far a conversation came.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and the large one is the common one"
)]
pub enum Heard {
    /// Something for the client.
    Event(ClientEvent),
    /// Nothing is left to do but to wait on the link, at most till then.
    Wait(Option<reasonix_core::time::Instant>),
    /// The connection is over.
    Over(CloseReason),
}

impl Conversation {
    /// One that begins.
    pub fn new(link: Link, side: ClientSide) -> Self {
        Self {
            side,
            link,
            clock: Clock::start(),
            deadline: None,
            over: None,
        }
    }

    /// The side, for commands. Their frames go out with the next [`advance`](Self::advance).
    pub fn side(&mut self) -> &mut ClientSide {
        &mut self.side
    }

    /// The clock that the side's time is read from.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Bytes it will take.
    pub fn room(&self) -> usize {
        self.side.room(Source::Peer)
    }

    /// Does all there is to do, up to the next event.
    pub fn advance(&mut self) -> Heard {
        loop {
            if let Some(reason) = self.over {
                return Heard::Over(reason);
            }
            match self.side.poll_effect() {
                Next::Do(SideEffect::Transmit(frame)) => self.link.send(frame),
                Next::Do(SideEffect::Event(event)) => return Heard::Event(event),
                Next::Do(SideEffect::Close(reason)) => self.over = Some(reason),
                Next::Wait(deadline) => {
                    let now = self.clock.now();
                    if self.link.exchange(now, &mut self.side) {
                        continue;
                    }
                    self.deadline = Deadline::earlier(deadline, self.link.deadline());
                    return Heard::Wait(self.deadline.map(|deadline| deadline.at));
                }
            }
            if self.link.is_full() {
                self.link.exchange(self.clock.now(), &mut self.side);
            }
        }
    }

    /// Says that the wait is over.
    pub fn woken(&mut self) {
        let now = self.clock.now();
        if self.deadline.is_some_and(|deadline| deadline.at <= now) {
            self.side.handle_timeout(now);
        }
    }
}

/// A client of an agent in the same process.
#[derive(Debug)]
pub struct Client {
    talk: Conversation,
    /// Events that came while an answer was waited for.
    kept: VecDeque<ClientEvent>,
    agent: Option<JoinHandle<Result<Ended, Error>>>,
}

impl Client {
    /// Starts an agent on a thread of its own, and connects to it.
    ///
    /// # Errors
    ///
    /// If the system has no sockets or threads left; [`Error::NoTools`] if [`Config::tools`] names any:
    /// they need [`start_with`](Self::start_with).
    pub fn start(config: Config) -> Result<Self, ClientError> {
        Self::start_with(config, Hooks::new())
    }

    /// As [`start`](Self::start), with what of an embedder's own the agent calls.
    ///
    /// # Errors
    ///
    /// If the system has no sockets or threads left, and as [`Hooks::check`].
    pub fn start_with(config: Config, hooks: Hooks) -> Result<Self, ClientError> {
        hooks.check(&config)?;
        let (ours, theirs) = UnixStream::pair()?;
        let side = ClientSide::new(config.limits.clone());
        let io = Stdio::over(theirs.try_clone()?.into(), theirs.into());
        let agent = thread::Builder::new()
            .name("reasonix-agent".into())
            .spawn(move || serve_with(Agent::new(config), io, hooks))?;
        let link = Link::over(ours.try_clone()?.into(), ours.into())?;
        Ok(Self {
            talk: Conversation::new(link, side),
            kept: VecDeque::new(),
            agent: Some(agent),
        })
    }

    /// A client of the agent at the other end of `link`.
    pub fn over(link: Link, side: ClientSide) -> Self {
        Self {
            talk: Conversation::new(link, side),
            kept: VecDeque::new(),
            agent: None,
        }
    }

    /// `initialize`.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn initialize(
        &mut self,
        capabilities: ClientCapabilities,
    ) -> Result<InitializeResponse, ClientError> {
        let mut request = InitializeRequest::new(ProtocolVersion::V1);
        request.client_capabilities = capabilities;
        let AgentAnswer::Initialize(answer) = self.call::<Initialize>(&request)? else {
            unreachable!("an answer is of its request's kind");
        };
        answer.map_err(ClientError::Refused)
    }

    /// `session/new` in the absolute directory `cwd`: the new session's id.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn new_session(&mut self, cwd: &str) -> Result<SessionId, ClientError> {
        let request = NewSessionRequest::new(cwd);
        let AgentAnswer::NewSession(answer) = self.call::<NewSession>(&request)? else {
            unreachable!("an answer is of its request's kind");
        };
        answer.map(|it| it.session_id).map_err(ClientError::Refused)
    }

    /// `session/prompt`, not waited for: [`next_event`](Self::next_event) brings the updates, the
    /// requests of the agent, and last [`ClientEvent::Answered`] under this name.
    pub fn prompt(&mut self, session: &SessionId, prompt: Vec<ContentBlock>) -> AskId {
        let request = PromptRequest::new(session.clone(), prompt);
        self.ask::<methods::Prompt>(&request)
    }

    /// Any request, not waited for.
    pub fn ask<M: AgentMethod>(&mut self, request: &M::Request) -> AskId {
        self.talk.side().request::<M>(request)
    }

    /// Any request, and its answer. What else comes meanwhile is kept for
    /// [`next_event`](Self::next_event); so a request that waits for the client must not be called.
    ///
    /// # Errors
    ///
    /// `Over` if the connection ends before.
    pub fn call<M: AgentMethod>(
        &mut self,
        request: &M::Request,
    ) -> Result<AgentAnswer, ClientError> {
        let ask = self.ask::<M>(request);
        self.answer_to(ask)
    }

    /// Any request of a vendor, and its answer.
    ///
    /// # Errors
    ///
    /// `Refused`, and as [`call`](Self::call).
    pub fn call_vendor(&mut self, method: &str, params: &Json) -> Result<Json, ClientError> {
        let ask = self.talk.side().vendor_request(method, params.as_raw());
        let AgentAnswer::Vendor(answer) = self.answer_to(ask)? else {
            unreachable!("an answer is of its request's kind");
        };
        answer.map_err(ClientError::Refused)
    }

    /// Waits for the next event; none if the connection is over.
    ///
    /// # Errors
    ///
    /// If the system cannot wait.
    pub fn next_event(&mut self) -> Result<Option<ClientEvent>, ClientError> {
        match self.kept.pop_front() {
            Some(event) => Ok(Some(event)),
            None => self.hear(),
        }
    }

    /// As [`next_event`](Self::next_event), but waits no longer than this: [`Heard::Wait`] if nothing came.
    /// So somebody can look meanwhile whether a person wants to cancel.
    ///
    /// # Errors
    ///
    /// If the system cannot wait.
    pub fn next_event_within(&mut self, time: Duration) -> Result<Heard, ClientError> {
        if let Some(event) = self.kept.pop_front() {
            return Ok(Heard::Event(event));
        }
        let begun = Instant::now();
        loop {
            let until = match self.talk.advance() {
                heard @ (Heard::Event(_) | Heard::Over(_)) => return Ok(heard),
                Heard::Wait(until) => until,
            };
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(Heard::Wait(until));
            }
            let clock = self.talk.clock();
            let wait = until.map_or(left, |at| clock.until(at).min(left));
            let room = self.talk.room();
            self.talk.link.wait(room, Some(wait))?;
            self.talk.woken();
        }
    }

    /// Answers a request of the agent.
    pub fn answer<M: Method>(&mut self, asked: Asked<M>, result: Result<M::Response, RpcError>) {
        self.talk.side().answer(asked, result);
    }

    /// `session/cancel`.
    pub fn cancel(&mut self, session: &SessionId) {
        self.talk.side().notify_cancel(session);
    }

    /// Ends the connection and waits for the agent to end, if it is in this process: no process of
    /// it is left then. How it ended.
    ///
    /// # Errors
    ///
    /// If the agent failed, or panicked (`Over`).
    pub fn close(mut self) -> Result<Option<Ended>, ClientError> {
        self.talk.side().close();
        while self.hear()?.is_some() {}
        let Self { talk, agent, .. } = self;
        talk.link.finish(Duration::from_secs(1));
        match agent {
            Some(agent) => Ok(Some(agent.join().map_err(|_| ClientError::Over)??)),
            None => Ok(None),
        }
    }

    fn answer_to(&mut self, wanted: AskId) -> Result<AgentAnswer, ClientError> {
        loop {
            match self.hear()? {
                Some(ClientEvent::Answered { ask, answer }) if ask == wanted => return Ok(answer),
                Some(event) => self.kept.push_back(event),
                None => return Err(ClientError::Over),
            }
        }
    }

    fn hear(&mut self) -> Result<Option<ClientEvent>, ClientError> {
        loop {
            match self.talk.advance() {
                Heard::Event(event) => return Ok(Some(event)),
                Heard::Over(_) => return Ok(None),
                Heard::Wait(until) => {
                    let clock = self.talk.clock();
                    let room = self.talk.room();
                    let time = until.map(|at| clock.until(at));
                    self.talk.link.wait(room, time)?;
                    self.talk.woken();
                }
            }
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it is about"
)]
mod tests {
    use super::*;
    use crate::ops::testing::dir;
    use reasonix_core::call::CustomCall;
    use reasonix_core::model::script::Script;
    use reasonix_core::protocol::schema::{
        RequestPermissionOutcome, RequestPermissionResponse, SelectedPermissionOutcome,
        SessionUpdate, StopReason,
    };
    use reasonix_core::tools::External;

    fn start(script: &str) -> Client {
        let mut config = Config::new([7; 32], crate::config::host());
        config.ephemeral = true;
        config.script = Some(Script::parse(script).expect("the script is well formed"));
        let mut client = Client::start(config).expect("it starts");
        let hello = client.initialize(ClientCapabilities::default());
        let version = hello.expect("it answers").protocol_version;
        assert_eq!(version, ProtocolVersion::V1);
        client
    }

    #[test]
    fn a_tool_of_the_embedder_is_run_by_its_hook_and_not_offered_without_one() {
        let (_keep, cwd) = dir();
        let script = "{\"tool\":\"lookup\",\"id\":\"t\",\"args\":{\"of\":\"x\"}}\n\
                      {\"finish\":\"tool_calls\"}\n{\"text\":\"done\"}\n";
        let mut config = Config::new([7; 32], crate::config::host());
        config.ephemeral = true;
        config.script = Some(Script::parse(script).expect("the script is well formed"));
        config.tools.push(External {
            name: "lookup".into(),
            description: "looks it up".into(),
            parameters: r#"{"type":"object"}"#.into(),
        });
        let refused = Client::start(config.clone()).err();
        assert!(
            matches!(refused, Some(ClientError::Failed(Error::NoTools(_)))),
            "{refused:?}"
        );
        let hooks = Hooks::new().tools(|call| {
            let CustomCall { cwd, tool_call, .. } = call;
            Ok(format!(
                "{} of {tool_call} in {cwd}: {}",
                call.name, call.arguments
            ))
        });
        let mut client = Client::start_with(config, hooks).expect("it starts");
        let hello = client.initialize(ClientCapabilities::default());
        hello.expect("it answers");
        let session = client.new_session(&cwd).expect("it opens");
        let prompt = client.prompt(&session, vec![ContentBlock::text("go")]);
        let mut shown = String::new();
        loop {
            match next(&mut client) {
                ClientEvent::Update(note) => shown.push_str(&format!("{:?}", note.update)),
                ClientEvent::RequestPermission { asked, request } => {
                    let option = request.options[0].option_id.clone();
                    let chosen = SelectedPermissionOutcome::new(option);
                    let outcome = RequestPermissionOutcome::Selected(chosen);
                    client.answer(asked, Ok(RequestPermissionResponse::new(outcome)));
                }
                ClientEvent::Answered { ask, answer } if ask == prompt => {
                    assert_eq!(stop(answer), StopReason::EndTurn);
                    break;
                }
                _ => {}
            }
        }
        assert!(
            shown.contains(&format!("lookup of t in {cwd}: ")),
            "{shown}"
        );
        client.close().expect("it ends");
    }

    fn next(client: &mut Client) -> ClientEvent {
        let event = client.next_event().expect("it can wait");
        event.expect("the connection is open")
    }

    fn stop(answer: AgentAnswer) -> StopReason {
        match answer {
            AgentAnswer::Prompt(answer) => answer.expect("the turn ends well").stop_reason,
            other => panic!("not the answer to a prompt: {other:?}"),
        }
    }

    #[test]
    fn a_whole_turn_runs_a_command_that_was_allowed() {
        let (_keep, cwd) = dir();
        let mut client = start(
            "{\"text\":\"first \"}\n{\"tool\":\"bash\",\"args\":{\"command\":\"echo x >made\"}}\n\
             {\"finish\":\"tool_calls\"}\n{\"text\":\"last\"}\n",
        );
        let session = client.new_session(&cwd).expect("it opens");
        let prompt = client.prompt(&session, vec![ContentBlock::text("go")]);
        let mut text = String::new();
        let mut allowed = 0;
        let ended = loop {
            match next(&mut client) {
                ClientEvent::Update(note) => {
                    if let SessionUpdate::AgentMessageChunk(chunk) = note.update {
                        text.push_str(chunk.content.as_text().unwrap_or_default());
                    }
                }
                ClientEvent::RequestPermission { asked, request } => {
                    allowed += 1;
                    let option = request.options[0].option_id.clone();
                    let chosen = SelectedPermissionOutcome::new(option);
                    let outcome = RequestPermissionOutcome::Selected(chosen);
                    client.answer(asked, Ok(RequestPermissionResponse::new(outcome)));
                }
                ClientEvent::Answered { ask, answer } if ask == prompt => break stop(answer),
                _ => {}
            }
        };
        assert_eq!((ended, allowed), (StopReason::EndTurn, 1));
        assert_eq!(text, "first last");
        assert_eq!(
            std::fs::read(format!("{cwd}/made")).expect("it ran"),
            b"x\n"
        );
        let ended = client.close().expect("it ends");
        assert_eq!(ended, Some(Ended::Finished));
    }

    #[test]
    fn who_waits_for_an_event_can_look_up_and_cancel() {
        let (_keep, cwd) = dir();
        let mut client = start("{\"hang\":true}\n");
        let session = client.new_session(&cwd).expect("it opens");
        let prompt = client.prompt(&session, vec![ContentBlock::text("go")]);
        let mut looked = false;
        loop {
            let heard = client.next_event_within(Duration::from_millis(5));
            match heard.expect("it can wait") {
                Heard::Wait(_) if !looked => {
                    looked = true;
                    client.cancel(&session);
                }
                Heard::Wait(_) => {}
                Heard::Event(ClientEvent::Answered { ask, answer }) if ask == prompt => {
                    assert_eq!(stop(answer), StopReason::Cancelled);
                    break;
                }
                Heard::Event(_) => {}
                Heard::Over(reason) => panic!("it is over: {reason:?}"),
            }
        }
        assert!(looked);
        client.close().expect("it ends");
    }

    #[test]
    fn a_hanging_turn_can_be_cancelled_and_an_agent_closed_in_one() {
        let (_keep, cwd) = dir();
        let mut client = start("{\"text\":\"on\"}\n{\"hang\":true}\n{\"hang\":true}\n");
        let session = client.new_session(&cwd).expect("it opens");
        let prompt = client.prompt(&session, vec![ContentBlock::text("go")]);
        loop {
            match next(&mut client) {
                ClientEvent::Update(note)
                    if matches!(note.update, SessionUpdate::AgentMessageChunk(_)) =>
                {
                    client.cancel(&session);
                }
                ClientEvent::Answered { ask, answer } if ask == prompt => {
                    assert_eq!(stop(answer), StopReason::Cancelled);
                    break;
                }
                _ => {}
            }
        }
        client.prompt(&session, vec![ContentBlock::text("again")]);
        assert_eq!(client.close().expect("it ends"), Some(Ended::Finished));
    }
}
