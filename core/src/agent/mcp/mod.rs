//! The MCP servers of sessions: from the entries of a request to servers, from calls of a tool to
//! calls of a server, from a server's questions to the person. What a tool may do is the gate's affair,
//! which servers of a project start the person's, how a server is spoken with that of `mcp`.

mod card;
mod entries;
mod kept;
mod launch;
mod patience;
mod project;
mod prompts;
mod status;
mod telling;

pub(super) use entries::entries;
pub(super) use status::Offers;
pub(super) use status::{OFFERS, STATUS};

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Agent, Level, Owned, Owner};
use crate::call::{News, Outcome, Stream};
use crate::error::{IoFault, IoKind};
use crate::ids::{AskId, CallId, SessionKey};
use crate::mcp::{Client, Context, Entry, Hub, Launch, Output, Question, Reply};
use crate::permission::Grant;
use crate::protocol::ClientAnswer;
use crate::protocol::methods::CreateElicitation;
use crate::protocol::schema::{
    CreateElicitationRequest, ElicitationAction, ElicitationMode, ElicitationScope, Json, McpServer,
};
use crate::time::Instant;
use crate::tools::External;

/// The servers of one session, and what is open between it and them.
#[derive(Default)]
pub(super) struct Servers {
    pub(super) hub: Hub,
    /// What its client named, and behind that what is configured for all.
    entries: Vec<Entry>,
    /// How many of them its client named.
    named: usize,
    /// It was told which it has.
    known: bool,
    /// Calls of the engine that a server answers.
    calls: BTreeSet<CallId>,
    /// Files with what is kept of their tools, being read or written.
    kept: BTreeMap<CallId, kept::Doing>,
    /// What is written when that is done, by the digest of the entry.
    to_keep: BTreeMap<String, Vec<u8>>,
    /// A prompt of one of them that is being filled.
    filling: Option<prompts::Filling>,
    /// Questions to the person.
    asks: BTreeMap<AskId, u64>,
    /// What its client is to be told.
    untold: telling::Untold,
    /// Its engine has other tools of servers than there are.
    stale: bool,
    /// Till when the turn waits to learn what they offer.
    expected: Option<Instant>,
    /// Its client asked to be told how they stand.
    tells: bool,
    /// Who asks them.
    client: Client,
    pub(super) project: project::Project,
}

impl Servers {
    /// The tools of its servers, for its engine, if they are others than those that it has; with
    /// what their names begin with.
    pub(super) fn news_for_engine(&mut self) -> Option<(Vec<External>, Vec<String>)> {
        if !core::mem::take(&mut self.stale) {
            return None;
        }
        let tools = self.hub.tools().map(|tool| External {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        });
        Some((tools.collect(), self.hub.prefixes().collect()))
    }

    /// Who named a server, for people.
    pub(super) fn origin(&self, name: &str) -> &'static str {
        match self.entries.iter().position(|entry| entry.name == name) {
            Some(at) if at < self.named => "the client",
            Some(_) => "config.toml",
            None => crate::mcp::approval::PROJECT_FILE,
        }
    }
}

/// Something of a server that its session has not heard.
pub(super) enum Heard {
    Progress(String),
    Done(Result<String, String>),
    Aborted,
}

impl Agent {
    /// A session has the servers that its client named from now on.
    pub(super) fn take_servers(&mut self, key: SessionKey, servers: &[McpServer]) {
        // They were checked when they were asked for.
        let named = entries(servers, &self.config.limits).unwrap_or_default();
        self.set_servers(key, named);
    }

    /// The configuration was read again: sessions have what it says now.
    pub(super) fn configured_servers_changed(&mut self) {
        let keys: Vec<SessionKey> = self.sessions.keys().copied().collect();
        for key in keys {
            if let Some(session) = self.sessions.get(&key) {
                let servers = &session.servers;
                let named = servers.entries[..servers.named].to_vec();
                self.set_servers(key, named);
            }
        }
    }

    /// A session has these servers from now on, and behind them those that are configured for all;
    /// those it had before end.
    fn set_servers(&mut self, key: SessionKey, named: Vec<Entry>) {
        let mut entries = named;
        let named = entries.len();
        // What the client names is nearer than what is configured for all.
        for configured in &self.config.settings.mcp {
            let most = self.config.limits.max_mcp_servers;
            if entries.len() < most && entries.iter().all(|it| it.name != configured.name) {
                entries.push(configured.clone());
            }
        }
        let client = self.side.client();
        let elicitation = client.elicitation.as_ref();
        let asks = Client {
            name: self.config.identity.name.clone(),
            version: self.config.identity.version.clone(),
            forms: elicitation.is_some_and(|it| it.form.is_some()),
            pages: elicitation.is_some_and(|it| it.url.is_some()),
        };
        let tells = super::standing::wants_status(client);
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        // What the project's file names is not among these.
        if session.servers.known && session.servers.entries == entries {
            return self.with_servers(key, |hub, cx| hub.retry(cx, None));
        }
        self.withdraw_launch(key, None);
        // A turn that waits for servers goes on waiting for the new ones.
        let expected = self.sessions.get_mut(&key);
        let expected = expected.and_then(|session| session.servers.expected.take());
        self.close_servers(key);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        // What was allowed was a tool of the server that had its name.
        let old: Vec<String> = session.servers.hub.prefixes().collect();
        let held = session.engine.authority().grants().list();
        let tools = &self.config.tools;
        let theirs = |grant: &&Grant| match grant {
            Grant::Tool(name) => {
                let embedders = tools.iter().any(|tool| *tool.name == **name);
                !embedders && old.iter().any(|prefix| name.starts_with(prefix.as_str()))
            }
            Grant::Edits | Grant::Command(_) | Grant::Line(_) => false,
        };
        for grant in held.filter(theirs).cloned().collect::<Vec<_>>() {
            session.engine.revoke(&grant);
        }
        let had_prompts = session.servers.hub.prompts().next().is_some();
        session.servers.hub.clear();
        session.servers.entries.clone_from(&entries);
        session.servers.named = named;
        session.servers.known = true;
        session.servers.tells = tells;
        session.servers.client = asks.clone();
        let (cwd, roots) = (session.cwd.clone(), session.directories.all());
        if entries.is_empty() {
            self.tools_changed(key);
        }
        if had_prompts {
            self.tell_commands_later(key);
        }
        self.with_servers(key, |hub, cx| {
            hub.set_roots(cx, roots);
            for entry in entries {
                hub.add(cx, entry, Launch::Now, &asks, &cwd);
            }
        });
        self.know_servers(key);
        self.read_project_servers(key);
        if let Some(session) = self.sessions.get_mut(&key) {
            session.servers.expected = expected;
            self.go_on_when_known(key);
        }
        self.after_launch_card(key);
    }

    /// The person decided on a server of the project's file.
    fn decide_server(&mut self, key: SessionKey, name: &str, approved: bool) {
        self.with_servers(key, |hub, cx| hub.decide(cx, name, approved));
        self.know_servers(key);
    }

    /// Lends the servers of a session what they need, and passes on what they say.
    pub(in crate::agent) fn with_servers(
        &mut self,
        key: SessionKey,
        act: impl FnOnce(&mut Hub, &mut Context<'_>),
    ) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let mut out = VecDeque::new();
        let mut cx = Context {
            now: self.now,
            ids: &mut self.ids,
            limits: &self.config.limits,
            out: &mut out,
        };
        act(&mut session.servers.hub, &mut cx);
        let mut changed = false;
        for output in out {
            match output {
                Output::Start { id, call } => {
                    self.calls.insert(id, Owner::Servers(key));
                    self.servers.push_back(Owned::Start(id, call));
                }
                Output::Feed { id, bytes } => self.servers.push_back(Owned::Feed(id, bytes)),
                Output::FeedEnd { id } => self.servers.push_back(Owned::FeedEnd(id)),
                Output::Abort { id } => self.servers.push_back(Owned::Abort(id)),
                Output::Done { call, result } => self.heard(key, call, Heard::Done(result)),
                Output::Progress { call, text } => self.heard(key, call, Heard::Progress(text)),
                Output::Ask { ask, question } => self.ask_later(key, ask, question),
                Output::Withdraw { ask } => self.withdraw_elicitation(key, ask),
                Output::Completed { ask, id } => self.complete_later(key, ask, id),
                Output::Changed => changed = true,
                Output::Prompts => self.tell_commands_later(key),
                Output::Recall { digest } => self.recall_tools(key, digest),
                Output::Remember { digest, bytes } => self.remember_tools(key, digest, bytes),
                Output::Log(text) => self.report(Level::Info, text),
            }
        }
        if changed {
            self.tools_changed(key);
        }
        self.go_on_when_known(key);
        self.set_timer(key);
    }

    fn heard(&mut self, key: SessionKey, call: CallId, heard: Heard) {
        if let Some(session) = self.sessions.get(&key)
            && session.servers.calls.contains(&call)
        {
            self.heard.push_back((key, call, heard));
        }
    }

    /// Tells the next engine what a server said. Returns whether there was something.
    pub(super) fn pass_heard(&mut self) -> bool {
        let Some((key, call, heard)) = self.heard.pop_front() else {
            return false;
        };
        let over = !matches!(heard, Heard::Progress(_));
        if let Some(session) = self.sessions.get_mut(&key) {
            if over {
                session.servers.calls.remove(&call);
            }
            let filling = session.servers.filling.as_ref();
            if filling.is_some_and(|filling| filling.call == call) {
                match heard {
                    Heard::Done(result) => self.prompt_filled(key, result),
                    Heard::Progress(_) | Heard::Aborted => {}
                }
                return true;
            }
        }
        self.with_engine(key, |engine, cx| {
            let news = match &heard {
                Heard::Progress(text) => News::Bytes {
                    stream: Stream::Out,
                    bytes: text.as_bytes(),
                },
                Heard::Done(result) => News::Done(Outcome::Custom(result.clone())),
                Heard::Aborted => News::Failed(IoFault::new(IoKind::Aborted, "aborted")),
            };
            engine.handle_news(cx, call, news);
        });
        true
    }

    /// The engine calls a tool of a server. One of a server that its session has no more is answered
    /// too.
    pub(super) fn call_server(&mut self, key: SessionKey, id: CallId, name: &str, arguments: &str) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.servers.calls.insert(id);
            self.with_servers(key, |hub, cx| hub.call(cx, id, name, arguments));
        }
    }

    /// The engine ends a call; false if no server has it.
    pub(super) fn cancel_server(&mut self, key: SessionKey, id: CallId) -> bool {
        let known = self
            .sessions
            .get(&key)
            .is_some_and(|session| session.servers.calls.contains(&id));
        if known {
            self.with_servers(key, |hub, cx| hub.cancel(cx, id));
            self.heard(key, id, Heard::Aborted);
        }
        known
    }

    /// The session ends, or gets other servers.
    pub(super) fn close_servers(&mut self, key: SessionKey) {
        self.with_servers(key, Hub::close);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let asks = core::mem::take(&mut session.servers.asks);
        let card = session.servers.project.forget_servers();
        let done = session.servers.untold.end();
        for ask in asks.into_keys().chain(card) {
            self.asks.remove(&ask);
            self.side.withdraw(ask);
        }
        // There is no later for these, and no more of them than were asked.
        for (ask, id) in done {
            self.complete_elicitation(key, ask, &id);
        }
    }

    fn tools_changed(&mut self, key: SessionKey) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.servers.stale = true;
            self.tell_servers_later(key);
        }
    }

    /// A server asks the person.
    fn elicit(&mut self, key: SessionKey, ask: u64, question: Question) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let (message, mode) = match question {
            Question::Form { message, schema } => {
                let schema = Json::from_text(schema);
                let mode =
                    schema.map(|requested_schema| ElicitationMode::Form { requested_schema });
                (message, mode)
            }
            Question::Page { message, url, id } => {
                let mode = ElicitationMode::Url {
                    elicitation_id: elicitation_id(key, ask, &id),
                    url,
                };
                (message, Some(mode))
            }
        };
        let scope = ElicitationScope::Session {
            session_id: session.id.clone(),
            tool_call_id: None,
        };
        let asked = mode.and_then(|mode| {
            let request = CreateElicitationRequest::new(scope, message, mode);
            self.side.ask::<CreateElicitation>(&request).ok()
        });
        match asked {
            Some(id) => {
                session.servers.asks.insert(id, ask);
                self.asks.insert(id, key);
            }
            None => {
                session.servers.untold.take_back(ask);
                self.with_servers(key, |hub, cx| hub.answered(cx, ask, &Reply::Decline));
            }
        }
    }

    /// What the person opened for a server is done.
    fn complete_elicitation(&mut self, key: SessionKey, ask: u64, id: &str) {
        // A client that takes no pages was shown none.
        let _ = self
            .side
            .complete_elicitation(&elicitation_id(key, ask, id));
    }

    fn withdraw_elicitation(&mut self, key: SessionKey, ask: u64) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        session.servers.untold.take_back(ask);
        let asks = &mut session.servers.asks;
        let open = asks.iter().find(|(_, number)| **number == ask);
        if let Some(id) = open.map(|(id, _)| *id) {
            asks.remove(&id);
            self.asks.remove(&id);
            self.side.withdraw(id);
        }
    }

    /// The client's answer to a question of a server; false if it was none.
    pub(super) fn elicited(&mut self, key: SessionKey, ask: AskId, answer: &ClientAnswer) -> bool {
        if self.launch_decided(key, ask, answer) {
            return true;
        }
        let session = self.sessions.get_mut(&key);
        let Some(number) = session.and_then(|session| session.servers.asks.remove(&ask)) else {
            return false;
        };
        let reply = reply(answer);
        self.with_servers(key, |hub, cx| hub.answered(cx, number, &reply));
        true
    }
}

/// What a client knows a page as: what two servers call theirs may be the same, and one server may
/// call several so.
fn elicitation_id(key: SessionKey, ask: u64, id: &str) -> String {
    format!("{}-{ask}-{id}", key.number())
}

/// An error, a malformed answer, a lost connection, an action that is not known: declined.
fn reply(answer: &ClientAnswer) -> Reply {
    let ClientAnswer::CreateElicitation(Ok(response)) = answer else {
        return Reply::Decline;
    };
    match &response.action {
        ElicitationAction::Accept { content } => {
            let values = content.iter().flatten();
            let text = |(name, value): (&String, &Json)| (name.clone(), String::from(value.get()));
            Reply::Accept(values.map(text).collect())
        }
        ElicitationAction::Cancel => Reply::Cancel,
        ElicitationAction::Decline | ElicitationAction::Other(_) => Reply::Decline,
    }
}
