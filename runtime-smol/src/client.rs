//! A client in the same process, as futures: see [`reasonix_blocking::client`] for the same with
//! waits.

use std::collections::VecDeque;
use std::future::Future;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use reasonix_blocking::client::{Conversation, Heard};
use reasonix_blocking::{ClientError, Ended, Error, Hooks, Stdio};
use reasonix_core::agent::{Agent, Config};
use reasonix_core::ids::AskId;
use reasonix_core::protocol::methods::{Initialize, Method, NewSession, Prompt};
use reasonix_core::protocol::schema::{
    ClientCapabilities, ContentBlock, InitializeRequest, InitializeResponse, Json,
    NewSessionRequest, PromptRequest, ProtocolVersion, SessionId,
};
use reasonix_core::protocol::{AgentAnswer, AgentMethod, Asked, ClientEvent, ClientSide};
use reasonix_core::wire::RpcError;

use crate::link::{Link, Waiter};
use crate::serve::serve_with;

/// A client of an agent in the same process.
#[derive(Debug)]
pub struct Client {
    talk: Conversation,
    waiter: Waiter,
    /// Events that came while an answer was waited for.
    kept: VecDeque<ClientEvent>,
}

impl Client {
    /// Connects to a new agent. The agent is the future: it has to be polled beside the client (by
    /// an executor of one thread, say), on a thread that lives as long as its programs may run.
    ///
    /// # Errors
    ///
    /// If the system has no sockets left; [`Error::NoTools`] if [`Config::tools`] names any: they need
    /// [`start_with`](Self::start_with).
    pub fn start(
        config: Config,
    ) -> Result<(Self, impl Future<Output = Result<Ended, Error>>), ClientError> {
        Self::start_with(config, Hooks::new())
    }

    /// As [`start`](Self::start), with what of an embedder's own the agent calls.
    ///
    /// # Errors
    ///
    /// If the system has no sockets left, and as [`Hooks::check`].
    pub fn start_with(
        config: Config,
        hooks: Hooks,
    ) -> Result<(Self, impl Future<Output = Result<Ended, Error>>), ClientError> {
        hooks.check(&config)?;
        let (ours, theirs) = UnixStream::pair()?;
        let side = ClientSide::new(config.limits.clone());
        let io = Stdio::over(theirs.try_clone()?.into(), theirs.into());
        let agent = serve_with(Agent::new(config), io, hooks);
        let link = Link::over(ours.try_clone()?.into(), ours.into())?;
        Ok((Self::over(link, side), agent))
    }

    /// A client of the agent at the other end of `link`.
    pub fn over(link: Link, side: ClientSide) -> Self {
        Self {
            talk: Conversation::new(link, side),
            waiter: Waiter::new(),
            kept: VecDeque::new(),
        }
    }

    /// `initialize`.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn initialize(
        &mut self,
        capabilities: ClientCapabilities,
    ) -> Result<InitializeResponse, ClientError> {
        let mut request = InitializeRequest::new(ProtocolVersion::V1);
        request.client_capabilities = capabilities;
        let AgentAnswer::Initialize(answer) = self.call::<Initialize>(&request).await? else {
            unreachable!("an answer is of its request's kind");
        };
        answer.map_err(ClientError::Refused)
    }

    /// `session/new` in the absolute directory `cwd`: the new session's id.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn new_session(&mut self, cwd: &str) -> Result<SessionId, ClientError> {
        let request = NewSessionRequest::new(cwd);
        let AgentAnswer::NewSession(answer) = self.call::<NewSession>(&request).await? else {
            unreachable!("an answer is of its request's kind");
        };
        answer.map(|it| it.session_id).map_err(ClientError::Refused)
    }

    /// `session/prompt`, not waited for: [`next_event`](Self::next_event) brings the updates, the
    /// requests of the agent, and last [`ClientEvent::Answered`] under this name.
    pub fn prompt(&mut self, session: &SessionId, prompt: Vec<ContentBlock>) -> AskId {
        let request = PromptRequest::new(session.clone(), prompt);
        self.ask::<Prompt>(&request)
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
    pub async fn call<M: AgentMethod>(
        &mut self,
        request: &M::Request,
    ) -> Result<AgentAnswer, ClientError> {
        let ask = self.ask::<M>(request);
        self.answer_to(ask).await
    }

    /// Any request of a vendor, and its answer.
    ///
    /// # Errors
    ///
    /// `Refused`, and as [`call`](Self::call).
    pub async fn call_vendor(&mut self, method: &str, params: &Json) -> Result<Json, ClientError> {
        let ask = self.talk.side().vendor_request(method, params.as_raw());
        let AgentAnswer::Vendor(answer) = self.answer_to(ask).await? else {
            unreachable!("an answer is of its request's kind");
        };
        answer.map_err(ClientError::Refused)
    }

    /// The next event; none if the connection is over. May be dropped and asked for again.
    ///
    /// # Errors
    ///
    /// If the reactor cannot wait.
    pub async fn next_event(&mut self) -> Result<Option<ClientEvent>, ClientError> {
        match self.kept.pop_front() {
            Some(event) => Ok(Some(event)),
            None => self.hear().await,
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

    /// Ends the connection. The agent's future is done soon after.
    ///
    /// # Errors
    ///
    /// If the reactor cannot wait.
    pub async fn close(mut self) -> Result<(), ClientError> {
        self.talk.side().close();
        while self.hear().await?.is_some() {}
        self.talk.link.finish(Duration::from_secs(1));
        Ok(())
    }

    async fn answer_to(&mut self, wanted: AskId) -> Result<AgentAnswer, ClientError> {
        loop {
            match self.hear().await? {
                Some(ClientEvent::Answered { ask, answer }) if ask == wanted => return Ok(answer),
                Some(event) => self.kept.push_back(event),
                None => return Err(ClientError::Over),
            }
        }
    }

    async fn hear(&mut self) -> Result<Option<ClientEvent>, ClientError> {
        loop {
            match self.talk.advance() {
                Heard::Event(event) => return Ok(Some(event)),
                Heard::Wait(until) => {
                    let until = until.map(|at| self.talk.clock().system(at));
                    let room = self.talk.room();
                    self.waiter.wait(&mut self.talk.link, room, until).await?;
                    self.talk.woken();
                }
                Heard::Over(_) => return Ok(None),
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
    use futures_lite::future::zip;
    use reasonix_core::model::script::Script;
    use reasonix_core::protocol::schema::{
        RequestPermissionOutcome, RequestPermissionResponse, SelectedPermissionOutcome,
    };
    use reasonix_core::tools::External;

    #[test]
    fn a_tool_of_the_embedder_is_run_by_its_hook_and_not_offered_without_one() {
        let script = "{\"tool\":\"lookup\",\"id\":\"t\",\"args\":{\"of\":\"x\"}}\n\
                      {\"finish\":\"tool_calls\"}\n{\"text\":\"done\"}\n";
        let mut config = Config::new([7; 32], reasonix_blocking::config::host());
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
        let hooks = Hooks::new().tools(|call| Ok(format!("{} of {}", call.name, call.tool_call)));
        let (client, agent) = Client::start_with(config, hooks).expect("it starts");
        let (shown, served) = async_io::block_on(zip(talk(client), agent));
        assert!(shown.contains("lookup of t"), "{shown}");
        assert_eq!(served.expect("it is served"), Ended::Finished);
    }

    async fn talk(mut client: Client) -> String {
        let hello = client.initialize(ClientCapabilities::default()).await;
        hello.expect("it answers");
        let session = client.new_session("/").await.expect("it opens");
        let prompt = client.prompt(&session, vec![ContentBlock::text("go")]);
        let mut shown = String::new();
        while let Some(event) = client.next_event().await.expect("it can wait") {
            match event {
                ClientEvent::Update(note) => shown.push_str(&format!("{:?}", note.update)),
                ClientEvent::RequestPermission { asked, request } => {
                    let option = request.options[0].option_id.clone();
                    let chosen = SelectedPermissionOutcome::new(option);
                    let outcome = RequestPermissionOutcome::Selected(chosen);
                    client.answer(asked, Ok(RequestPermissionResponse::new(outcome)));
                }
                ClientEvent::Answered { ask, .. } if ask == prompt => break,
                _ => {}
            }
        }
        client.close().await.expect("it ends");
        shown
    }
}
