//! The servers of one session: whose a tool is, how each one stands. Knows no messages.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::calls::Wish;
use super::catalogue::{Tool, slugs};
use super::form::Reply;
use super::prompts::Prompt;
use super::server::{Server, State};
use super::{Context, Entry};
use crate::call::News;
use crate::ids::CallId;
use crate::limits::Limits;
use crate::secret::Secret;
use crate::time::{Deadline, Instant, Timer};

/// Who asks the servers, and what its person can be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// The name of the program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether the person can be shown forms.
    pub forms: bool,
    /// Whether the person can be asked to open a page.
    pub pages: bool,
}

/// How one server stands, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status<'a> {
    /// What people call it.
    pub name: &'a str,
    /// What stands before `__` in the names of its tools.
    pub slug: &'a str,
    /// `ready`, `connecting`, `standby`, `failed`, `pending`, `disabled` or `idle`.
    pub status: &'static str,
    /// How many tools it offers.
    pub tools: usize,
    /// Why it is not ready; no secrets.
    pub error: Option<&'a str>,
    /// The status of the HTTP answer that said so.
    pub http_status: Option<u16>,
    /// What it calls itself, with its version, on one line.
    pub title: Option<&'a str>,
    /// The version of the protocol that was agreed on last.
    pub protocol: Option<&'a str>,
}

/// When a server is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// At once.
    Now,
    /// When the person has approved it.
    Pending,
    /// Not at all.
    Never,
}

/// The servers of one session.
#[derive(Debug, Default)]
pub struct Hub {
    servers: Vec<Server>,
    shared: Shared,
}

/// What the servers of one session have in common.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Questions that were asked: the number of the last one.
    pub asks: u64,
    /// What a model is told of all their tools, bytes: at most
    /// [`Limits::max_mcp_offered`](crate::limits::Limits::max_mcp_offered).
    pub offered: usize,
    /// Folders that the session has beside the one its servers work in.
    pub roots: Vec<String>,
}

impl Hub {
    /// It has no servers any more, and is as new but for the numbers of its questions, which never
    /// come back. They were closed before.
    pub fn clear(&mut self) {
        self.servers.clear();
        self.shared.offered = 0;
    }

    /// The folders that the session has beside the one its servers work in. Servers that are up are
    /// told if they are others than before.
    pub fn set_roots(&mut self, cx: &mut Context<'_>, roots: Vec<String>) {
        if self.shared.roots != roots {
            self.shared.roots = roots;
            for server in &mut self.servers {
                server.roots_changed(cx);
            }
        }
    }

    /// One more server, behind those there are.
    pub fn add(
        &mut self,
        cx: &mut Context<'_>,
        entry: Entry,
        launch: Launch,
        client: &Client,
        cwd: &str,
    ) {
        let names = self.servers.iter().map(|it| it.entry.name.as_str());
        // Names are given in order, so those of the others stay as they are.
        let slug = slugs(names.chain([entry.name.as_str()])).pop();
        let state = match launch {
            Launch::Now | Launch::Pending => State::Pending,
            Launch::Never => State::Disabled,
        };
        let slug = slug.unwrap_or_default();
        let mut server = Server::new(entry, slug, client.clone(), cwd.into(), state);
        match launch {
            Launch::Now => server.start(cx),
            Launch::Pending | Launch::Never => cx.out.push_back(super::Output::Changed),
        }
        self.servers.push(server);
    }

    /// What a server is, for who is to approve it: what is run or asked, without secrets.
    pub fn describe(&self, name: &str) -> Option<String> {
        let mut servers = self.servers.iter();
        let server = servers.find(|server| server.entry.name == name)?;
        Some(server.entry.describe())
    }

    /// The same at length: every part of it on a line of its own.
    pub fn details(&self, name: &str) -> Option<String> {
        let mut servers = self.servers.iter();
        let server = servers.find(|server| server.entry.name == name)?;
        Some(server.entry.details())
    }

    /// Whether there is no server.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// The person decided on a server: it starts if it does not run, or it ends.
    pub fn decide(&mut self, cx: &mut Context<'_>, name: &str, approved: bool) {
        for server in &mut self.servers {
            if server.entry.name == name {
                server.decide(cx, approved, &mut self.shared);
            }
        }
    }

    /// Starts those that are down again: this one, or (`name` none) all of them.
    pub fn retry(&mut self, cx: &mut Context<'_>, name: Option<&str>) {
        for server in &mut self.servers {
            let meant = name.is_none_or(|name| server.entry.name == name);
            if meant && matches!(server.state, State::Down { .. }) {
                server.start(cx);
            }
        }
    }

    /// The tools of all servers, in the order of the servers.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.servers.iter().flat_map(|server| &server.tools)
    }

    /// What the names of their tools begin with, `__` included.
    pub fn prefixes(&self) -> impl Iterator<Item = String> {
        self.servers
            .iter()
            .map(|server| format!("{}__", server.slug))
    }

    /// How each server stands, in their order.
    pub fn status(&self) -> impl Iterator<Item = Status<'_>> {
        self.servers.iter().map(|server| {
            let (status, error, http_status) = match &server.state {
                State::Pending => ("pending", None, None),
                State::Disabled | State::Closed => ("disabled", None, None),
                State::Connecting { .. } | State::Resting { .. } if server.standby => {
                    ("standby", None, None)
                }
                State::Connecting { .. } | State::Resting { .. } => ("connecting", None, None),
                State::Ready => ("ready", None, None),
                State::Down {
                    why, status, lost, ..
                } => {
                    let shown = if *lost { "idle" } else { "failed" };
                    (shown, Some(why.as_str()), *status)
                }
            };
            Status {
                name: &server.entry.name,
                slug: &server.slug,
                status,
                tools: server.tools.len(),
                error,
                http_status,
                title: Some(server.title.as_str()).filter(|it| !it.is_empty()),
                protocol: Some(server.version.as_str()).filter(|it| !it.is_empty()),
            }
        })
    }

    /// A call of a tool, under a number that its caller gives. It is answered by
    /// [`Output::Done`](super::Output::Done) exactly once, unless it is cancelled before.
    pub fn call(&mut self, cx: &mut Context<'_>, id: CallId, tool: &str, arguments: &str) {
        let of = |server: &&mut Server| {
            tool.strip_prefix(server.slug.as_str())
                .is_some_and(|rest| rest.starts_with("__"))
        };
        match self.servers.iter_mut().find(of) {
            Some(server) => {
                let wish = Wish::Tool {
                    name: tool.into(),
                    arguments: arguments.into(),
                };
                server.call(cx, id, wish);
            }
            None => cx.out.push_back(super::Output::Done {
                call: id,
                result: Err(format!("There is no MCP server with a tool {tool}.")),
            }),
        }
    }

    /// The prompts of all servers, in the order of the servers.
    pub fn prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.servers.iter().flat_map(|server| &server.prompts)
    }

    /// Whether there is a server whose prompts have commands like this one.
    pub fn has_prompts_like(&self, command: &str) -> bool {
        self.server_of(command).is_some()
    }

    /// A prompt, filled with what was typed behind its command; answered as a call is.
    pub fn prompt(&mut self, cx: &mut Context<'_>, id: CallId, command: &str, typed: &str) {
        let at = self.server_of(command);
        match at.and_then(|at| self.servers.get_mut(at)) {
            Some(server) => {
                let wish = Wish::Prompt {
                    command: command.into(),
                    typed: typed.into(),
                };
                server.call(cx, id, wish);
            }
            None => cx.out.push_back(super::Output::Done {
                call: id,
                result: Err(format!(
                    "There is no MCP server with a prompt for /{command}."
                )),
            }),
        }
    }

    fn server_of(&self, command: &str) -> Option<usize> {
        let (slug, _) = command.strip_prefix("mcp:")?.split_once(':')?;
        self.servers.iter().position(|server| server.slug == slug)
    }

    /// What was kept of the tools of servers with this entry.
    pub fn recall(&mut self, cx: &mut Context<'_>, digest: &str, bytes: &[u8]) {
        for server in &mut self.servers {
            if server.entry.digest() == digest {
                server.recall(cx, bytes, &mut self.shared);
            }
        }
    }

    /// The caller of this call does not wait any more; no answer follows.
    pub fn cancel(&mut self, cx: &mut Context<'_>, id: CallId) {
        for server in &mut self.servers {
            server.cancel(cx, id);
        }
    }

    /// The person answered, or could not be asked. Late answers do nothing.
    pub fn answered(&mut self, cx: &mut Context<'_>, ask: u64, reply: &Reply) {
        for server in &mut self.servers {
            if server.asks.contains_key(&ask) {
                server.answered(cx, ask, reply.clone());
            }
        }
    }

    /// News of a call of the system that it began. Late ones do nothing.
    pub fn handle_news(&mut self, cx: &mut Context<'_>, id: CallId, news: News<'_>) {
        for server in &mut self.servers {
            if server.handle_news(cx, id, news.clone(), &mut self.shared) {
                return;
            }
        }
    }

    /// The passing of time. Early, late or twice is harmless.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        for server in &mut self.servers {
            server.handle_timeout(cx);
        }
    }

    /// When to wake it if nothing happens.
    pub fn deadline(&self, limits: &Limits) -> Option<Deadline> {
        let at = self
            .servers
            .iter()
            .filter_map(|server| server.deadline(limits))
            .min()?;
        Some(Deadline {
            at,
            why: Timer::Mcp,
        })
    }

    /// Till when it is worth waiting to learn what servers offer of which nothing is known; none: there
    /// is no such server.
    pub fn awaited(&self, limits: &Limits) -> Option<Instant> {
        let servers = self.servers.iter();
        servers.filter_map(|server| server.awaited(limits)).max()
    }

    /// Bytes that it will take now from a call of the system that it began.
    pub fn room(&self, id: CallId, limits: &Limits) -> usize {
        let room = |server: &Server| server.room(id, limits);
        self.servers
            .iter()
            .find_map(room)
            .unwrap_or(limits.call_window)
    }

    /// The session ends: every server is told, every call answered.
    pub fn close(&mut self, cx: &mut Context<'_>) {
        for server in &mut self.servers {
            server.close(cx);
        }
    }

    /// Hides what must not be shown of any server.
    pub fn redact(&self, text: &mut String) {
        for server in &self.servers {
            server.entry.redact(text);
        }
    }

    /// Keys of the servers that were given to them: not of one that nobody has approved.
    pub fn keys(&self) -> impl Iterator<Item = Secret> {
        let given = |server: &&Server| !matches!(server.state, State::Pending | State::Disabled);
        let servers = self.servers.iter().filter(given);
        servers.flat_map(|server| server.entry.keys())
    }

    /// Names of the servers that wait to be approved.
    pub fn pending(&self) -> BTreeSet<String> {
        self.servers
            .iter()
            .filter(|server| server.state == State::Pending)
            .map(|server| server.entry.name.clone())
            .collect()
    }
}
