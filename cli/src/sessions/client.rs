//! Questions about stored sessions, put to an ordinary agent in this process one at a time: what
//! an editor is told is what a person is told.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::thread::{self, JoinHandle};

use reasonix_core::agent::{Agent, Config};
use reasonix_core::limits::Limits;
use reasonix_core::protocol::methods::{AgentMethod, DeleteSession, Initialize, ListSessions};
use reasonix_core::protocol::schema::{
    DeleteSessionRequest, Implementation, InitializeRequest, ListSessionsRequest, ProtocolVersion,
    SessionId, SessionInfo,
};
use reasonix_core::protocol::{AgentAnswer, ClientEvent, ClientSide, PeerInput, SideEffect};
use reasonix_core::time::Instant;
use reasonix_core::{Machine as _, Next};

use crate::Runtime;
use crate::exit::Failure;
use crate::host;

/// Sessions in one page. The agent looks at all of them for each page, and this client is not
/// afraid of long lines.
const PAGE: usize = 10_000;

/// Most bytes of the agent that are read at once.
const PIECE: usize = 64 << 10;

/// An agent that is asked about sessions.
pub struct Client {
    to_agent: PipeWriter,
    from_agent: PipeReader,
    agent: JoinHandle<Result<(), String>>,
    side: ClientSide,
    started: std::time::Instant,
}

impl Client {
    /// Starts it.
    pub fn start(runtime: Runtime, mut config: Config) -> Result<Self, Failure> {
        config.limits.list_page = PAGE;
        let started =
            |error: io::Error| Failure::failed(format!("the agent could not start: {error}"));
        let (agent_in, to_agent) = io::pipe().map_err(started)?;
        let (from_agent, agent_out) = io::pipe().map_err(started)?;
        let agent = thread::Builder::new()
            .name("agent".into())
            .spawn(move || host::serve(runtime, Agent::new(config), agent_in, agent_out))
            .map_err(started)?;
        let mut client = Self {
            to_agent,
            from_agent,
            agent,
            side: ClientSide::new(Limits::default()),
            started: std::time::Instant::now(),
        };
        let mut hello = InitializeRequest::new(ProtocolVersion::V1);
        hello.client_info = Some(Implementation::new(
            "reasonix-sessions",
            env!("CARGO_PKG_VERSION"),
        ));
        client.ask::<Initialize>(&hello)?;
        Ok(client)
    }

    /// All stored sessions, newest first.
    pub fn list(&mut self) -> Result<Vec<SessionInfo>, Failure> {
        let mut all = Vec::new();
        let mut request = ListSessionsRequest::default();
        loop {
            let answer = self.ask::<ListSessions>(&request)?;
            if let AgentAnswer::ListSessions(Ok(page)) = answer {
                all.extend(page.sessions);
                request.cursor = page.next_cursor;
            }
            if request.cursor.is_none() {
                return Ok(all);
            }
        }
    }

    /// Removes one. Fails if it is open in another process.
    pub fn delete(&mut self, id: &SessionId) -> Result<(), Failure> {
        self.ask::<DeleteSession>(&DeleteSessionRequest::new(id.clone()))?;
        Ok(())
    }

    /// Lets the agent end: what it removes on the way is gone then.
    pub fn finish(self) {
        drop(self.to_agent);
        // Its last words are of no use; it must not wait for somebody to read them.
        drop(self.from_agent);
        if self.agent.join().is_err() {
            log::warn!("the agent panicked");
        }
    }

    /// The answer, which is no error.
    fn ask<M: AgentMethod>(&mut self, request: &M::Request) -> Result<AgentAnswer, Failure> {
        let own = self.side.request::<M>(request);
        let mut piece = vec![0; PIECE];
        loop {
            let now = Instant::since_start(self.started.elapsed());
            match self.side.poll_effect() {
                Next::Do(SideEffect::Transmit(frame)) => {
                    let input = match self.to_agent.write_all(frame) {
                        Ok(()) => PeerInput::Unsent(0),
                        Err(_) => PeerInput::PeerGone,
                    };
                    self.side.handle_input(now, input);
                }
                Next::Do(SideEffect::Event(ClientEvent::Answered { ask, answer }))
                    if ask == own =>
                {
                    return match answer.error() {
                        None => Ok(answer),
                        Some(error) => Err(Failure::answered(error)),
                    };
                }
                // Nothing else is offered to the agent, and nobody waits for what it says.
                Next::Do(SideEffect::Event(_)) => {}
                Next::Do(SideEffect::Close(_)) => {
                    return Err(Failure::failed("the agent ended before it answered"));
                }
                Next::Wait(_) => match self.from_agent.read(&mut piece) {
                    Ok(0) => self.side.handle_input(now, PeerInput::PeerFinished),
                    Ok(count) => self
                        .side
                        .handle_input(now, PeerInput::Received(&piece[..count])),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => self.side.handle_input(now, PeerInput::PeerFinished),
                },
            }
        }
    }
}
