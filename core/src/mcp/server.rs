//! One server from its start to its end: handshake, deadlines, restart. What it lists is in `lists`,
//! what is asked of it in `calls`, what it says in `speak`. Knows neither other servers nor who calls.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::Serialize;

use super::asks::Asked;
use super::calls::Wanted;
use super::catalogue::{Pages, Tool, one_line};
use super::hub::{Client, Shared};
use super::lists::Again;
use super::prompts::{Prompt, PromptPages};
use super::shapes::{
    ClientCapabilities, Elicitation, Empty, Info, Initialize, LATEST_VERSION, RootsCapability,
};
use super::transport::{Arrived, Fault, Outgoing, Transport};
use super::{Context, Entry, Output, address};
use crate::call::News;
use crate::ids::CallId;
use crate::time::Instant;
use crate::wire::OutgoingRequests;
use crate::wire::rpc::{write_notification, write_request};

/// How a server stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for the person to approve it.
    Pending,
    /// It is not to be used.
    Disabled,
    /// Its handshake is under way.
    Connecting {
        /// When that has failed.
        until: Instant,
    },
    /// Its tools can be called.
    Ready,
    /// It failed, or was lost.
    Down {
        /// For people.
        why: String,
        /// The status of the HTTP answer that said so.
        status: Option<u16>,
        /// It was ready before: it is tried again at its next use.
        lost: bool,
        /// Before this it is not tried again.
        rest: Instant,
    },
    /// It is tried again, a little later.
    Resting {
        /// When.
        until: Instant,
    },
    /// The session is over.
    Closed,
}

/// A request of ours.
#[derive(Debug)]
pub(super) enum Sent {
    Initialize,
    Tools,
    Prompts,
    Call(CallId),
}

#[derive(Debug)]
pub(super) struct Server {
    pub entry: Entry,
    pub slug: String,
    pub client: Client,
    pub state: State,
    cwd: String,
    /// When its handshake began.
    since: Instant,
    transport: Option<Transport>,
    pub requests: OutgoingRequests<Sent>,
    pub calls: BTreeMap<CallId, Wanted>,
    /// Questions to the person, by their number in the hub.
    pub asks: BTreeMap<u64, Asked>,
    /// Pages that the person agreed to open and that are not done, by the numbers of their questions:
    /// what the server calls them.
    pub opened: BTreeMap<u64, String>,
    /// Since when there is always one of them.
    pub asked_since: Option<Instant>,
    pub tools: Vec<Tool>,
    /// What a model is told of them, bytes.
    pub offered: usize,
    pub pages: Option<Pages>,
    pub prompts: Vec<Prompt>,
    pub prompt_pages: Option<PromptPages>,
    pub resources: bool,
    pub has_prompts: bool,
    /// What is known of its tools was asked for.
    pub recalled: bool,
    /// Its tools are those of another time: it has not listed them yet.
    pub standby: bool,
    /// It has listed its tools.
    pub listed: bool,
    /// What is kept of its tools.
    pub kept: Option<[u8; 32]>,
    /// The version of the protocol that was agreed on.
    pub version: String,
    /// What it calls itself, with its version.
    pub title: String,
    pub failures: u32,
    /// Handshakes on this transport since a call was answered.
    pub renewals: u32,
    /// Its lists have changed while they were listed: once more.
    pub list_again: Again,
    /// When a list that is under way is given up.
    pub list_until: Instant,
    lines: u32,
    /// What came in place of the answers that the handshake waits for.
    instead: String,
    arrived: VecDeque<Arrived>,
}

/// Handshakes on one transport without an answer to a call.
const MAX_RENEWALS: u32 = 3;

/// Lines of one server that go to the log.
const MAX_LINES: u32 = 64;

/// What is kept of what came in place of an answer, bytes. It is cut when its secrets are out.
const KEPT_INSTEAD: usize = 4 << 10;

/// What is told of that, bytes.
const MAX_INSTEAD: usize = 200;

/// Longest reason that is told, bytes.
pub(super) const MAX_WHY: usize = 600;

impl Server {
    pub fn new(entry: Entry, slug: String, client: Client, cwd: String, state: State) -> Self {
        Self {
            entry,
            slug,
            client,
            state,
            cwd,
            since: Instant::ZERO,
            transport: None,
            requests: OutgoingRequests::new(),
            calls: BTreeMap::new(),
            asks: BTreeMap::new(),
            opened: BTreeMap::new(),
            asked_since: None,
            tools: Vec::new(),
            offered: 0,
            pages: None,
            prompts: Vec::new(),
            prompt_pages: None,
            resources: false,
            has_prompts: false,
            recalled: false,
            standby: false,
            listed: false,
            kept: None,
            version: String::new(),
            title: String::new(),
            failures: 0,
            renewals: 0,
            list_again: Again::default(),
            list_until: Instant::ZERO,
            lines: 0,
            instead: String::new(),
            arrived: VecDeque::new(),
        }
    }

    /// Begins to reach it.
    pub fn start(&mut self, cx: &mut Context<'_>) {
        self.drop_transport(cx);
        self.renewals = 0;
        self.list_again = Again::default();
        self.transport = Some(Transport::start(&self.entry, &self.cwd, cx));
        self.shake_hands(cx);
        if !core::mem::replace(&mut self.recalled, true) {
            let digest = self.entry.digest();
            cx.out.push_back(Output::Recall { digest });
        }
    }

    /// The session that it had is over: another handshake on the same transport.
    pub fn renew(&mut self, cx: &mut Context<'_>) {
        if self.renewals >= MAX_RENEWALS {
            let why = "again and again it does not know the session that it just began";
            return self.down(cx, Fault::new(why));
        }
        self.renewals += 1;
        // Answers to what was asked in that session would be taken for those of the next.
        self.give_up_lists(cx, true);
        if let Some(transport) = &mut self.transport {
            transport.forget_session(cx);
        }
        self.shake_hands(cx);
    }

    /// It may be used now, or not.
    pub fn decide(&mut self, cx: &mut Context<'_>, approved: bool, shared: &mut Shared) {
        let stands = matches!(self.state, State::Pending | State::Disabled);
        match (approved, &self.state) {
            (_, State::Closed) => {}
            (true, _) if stands => self.start(cx),
            (true, _) | (false, State::Disabled) => {}
            (false, _) => {
                self.end(cx);
                self.set_tools(Vec::new(), shared);
                if !core::mem::take(&mut self.prompts).is_empty() {
                    cx.out.push_back(Output::Prompts);
                }
                self.standby = false;
                self.recalled = false;
                self.listed = false;
                self.state = State::Disabled;
                cx.out.push_back(Output::Changed);
                self.fail_calls(cx, "its launch is not approved");
            }
        }
    }

    fn shake_hands(&mut self, cx: &mut Context<'_>) {
        self.since = cx.now;
        self.state = State::Connecting {
            until: cx.now.plus(self.start_time(cx.limits)),
        };
        self.pages = None;
        self.prompt_pages = None;
        self.instead.clear();
        cx.out.push_back(Output::Changed);
        let modes = Elicitation {
            form: self.client.forms.then_some(Empty {}),
            url: self.client.pages.then_some(Empty {}),
        };
        let asks = self.client.forms || self.client.pages;
        let (name, version) = (self.client.name.clone(), self.client.version.clone());
        let params = Initialize {
            protocol_version: LATEST_VERSION,
            capabilities: ClientCapabilities {
                roots: RootsCapability { list_changed: true },
                elicitation: asks.then_some(modes),
            },
            client_info: Info {
                name: &name,
                version: &version,
            },
        };
        self.request(cx, Sent::Initialize, "initialize", &params);
    }

    /// The server agreed on a version: asks for its tools.
    pub fn agreed(
        &mut self,
        cx: &mut Context<'_>,
        version: &str,
        tools: bool,
        shared: &mut Shared,
    ) {
        self.version = version.into();
        self.notify(cx, "notifications/initialized", &Empty {});
        if let Some(transport) = &mut self.transport {
            transport.listen(cx, version);
        }
        if tools {
            self.list_tools(cx);
        } else {
            self.listed(cx, Pages::default(), shared);
        }
    }

    /// News of a call of the system; false if it is none of its own.
    pub fn handle_news(
        &mut self,
        cx: &mut Context<'_>,
        id: CallId,
        news: News<'_>,
        shared: &mut Shared,
    ) -> bool {
        let Some(transport) = &mut self.transport else {
            return false;
        };
        let mut arrived = core::mem::take(&mut self.arrived);
        let mine = transport.handle_news(cx, id, news, &mut arrived);
        while let Some(next) = arrived.pop_front() {
            self.take(cx, next, shared);
        }
        self.arrived = arrived;
        mine
    }

    fn take(&mut self, cx: &mut Context<'_>, arrived: Arrived, shared: &mut Shared) {
        // What was said before the end of a connection that is over counts no more.
        if self.transport.is_none() {
            return;
        }
        match arrived {
            Arrived::Frame(frame) => self.frame(cx, &frame, shared),
            Arrived::Unanswered { id, why } => self.unanswered(cx, id, &why),
            Arrived::Expired { id } => self.expired(cx, id),
            Arrived::TooLong => {
                let why = "an answer of the server is longer than is taken";
                let open: Vec<u64> = self.requests.iter().map(|(id, _)| id).collect();
                for id in open {
                    self.unanswered(cx, id, why);
                }
            }
            Arrived::Noise(line) => {
                self.strange(&line);
                self.log(cx, &format!("stdout: {line}"));
            }
            Arrived::Down(fault) => self.down(cx, fault),
        }
    }

    /// The connection is lost, or never was.
    pub fn down(&mut self, cx: &mut Context<'_>, fault: Fault) {
        if self.state == State::Closed {
            return;
        }
        let lost = self.state == State::Ready;
        let mut why = fault.why;
        let complaint = self.transport.as_ref().map_or("", Transport::complaint);
        if !complaint.is_empty() {
            why = format!("{why}; its last words: {complaint}");
        }
        // Before it is cut: a part of a secret would be left.
        self.entry.redact(&mut why);
        let why = one_line(&why, MAX_WHY);
        self.end(cx);
        let pause = pause(self.failures, cx);
        self.failures = self.failures.saturating_add(1);
        self.state = State::Down {
            why: why.clone(),
            status: fault.status,
            lost,
            rest: cx.now.plus(pause),
        };
        cx.out.push_back(Output::Changed);
        self.log(cx, &why);
        self.fail_calls(cx, &why);
    }

    fn end(&mut self, cx: &mut Context<'_>) {
        self.drop_transport(cx);
        self.withdraw_asks(cx, false);
        self.complete_all(cx);
        self.requests.abandon().for_each(drop);
        self.pages = None;
        self.prompt_pages = None;
    }

    /// The session ends.
    pub fn close(&mut self, cx: &mut Context<'_>) {
        self.end(cx);
        self.state = State::Closed;
        self.fail_calls(cx, "the session is closed");
    }

    fn drop_transport(&mut self, cx: &mut Context<'_>) {
        if let Some(mut transport) = self.transport.take() {
            transport.close(cx);
        }
    }

    pub fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        match self.state {
            State::Connecting { until } if until <= cx.now => {
                let why = self.not_ready(cx.limits);
                self.down(cx, Fault::new(why));
            }
            State::Resting { until } if until <= cx.now => self.start(cx),
            State::Connecting { .. }
            | State::Resting { .. }
            | State::Pending
            | State::Disabled
            | State::Ready
            | State::Down { .. }
            | State::Closed => {}
        }
        if let Some(transport) = &mut self.transport {
            transport.handle_timeout(cx);
        }
        if self.lists() && self.list_until <= cx.now {
            self.give_up_lists(cx, false);
        }
        self.end_late_calls(cx);
    }

    /// Something came that is no answer. While one is waited for, its first lines are kept.
    pub fn strange(&mut self, text: &str) {
        let room = KEPT_INSTEAD.saturating_sub(self.instead.len());
        if !matches!(self.state, State::Connecting { .. }) || room == 0 {
            return;
        }
        if !self.instead.is_empty() {
            self.instead.push(' ');
        }
        self.instead.push_str(&one_line(text, room));
    }

    /// Why it is given up, as far as that can be told from what it said.
    fn not_ready(&self, limits: &crate::limits::Limits) -> String {
        let seconds = self.start_time(limits).as_secs();
        let mut why = format!("it was not ready within {seconds} s");
        let missing = self.transport.as_ref().and_then(Transport::missing);
        if let Some(missing) = missing {
            why = format!("{why}: {missing}");
        } else if !self.instead.is_empty() {
            let mut instead = self.instead.clone();
            // Before it is cut: a part of a secret would be left.
            self.entry.redact(&mut instead);
            let instead = one_line(&instead, MAX_INSTEAD);
            why = format!("{why}; in place of an answer it said: {instead}");
        }
        why
    }

    /// Till when it is worth waiting to learn what it offers; none: it is known, or will not be soon.
    pub fn awaited(&self, limits: &crate::limits::Limits) -> Option<Instant> {
        let unknown = !self.listed && !self.standby;
        let connects = matches!(self.state, State::Connecting { .. });
        let patience = match self.version.is_empty() {
            true => limits.mcp_patience,
            false => limits.mcp_listing,
        };
        let patience = patience.min(self.start_time(limits));
        (unknown && connects).then(|| self.since.plus(patience))
    }

    /// How long it has to be ready.
    fn start_time(&self, limits: &crate::limits::Limits) -> Duration {
        self.entry.start.unwrap_or(limits.mcp_start)
    }

    pub fn deadline(&self, limits: &crate::limits::Limits) -> Option<Instant> {
        let own = match self.state {
            State::Connecting { until } | State::Resting { until } => Some(until),
            State::Pending
            | State::Disabled
            | State::Ready
            | State::Down { .. }
            | State::Closed => None,
        };
        let transport = self.transport.as_ref().and_then(Transport::deadline);
        let calls = self.calls_deadline(limits);
        let lists = self.lists().then_some(self.list_until);
        let own = own.into_iter().chain(lists);
        own.chain(transport).chain(calls).min()
    }

    pub fn room(&self, id: CallId, limits: &crate::limits::Limits) -> Option<usize> {
        self.transport.as_ref()?.room(id, limits)
    }

    pub fn settled(&mut self, cx: &mut Context<'_>, number: u64) {
        if let Some(transport) = &mut self.transport {
            transport.settled(cx, number);
        }
    }

    /// There are other roots than before: a server that is up is told.
    pub fn roots_changed(&mut self, cx: &mut Context<'_>) {
        if self.state == State::Ready {
            self.notify(cx, "notifications/roots/list_changed", &Empty {});
        }
    }

    /// The folder it works in, as an address.
    pub fn root(&self) -> String {
        address::of_path(&self.cwd)
    }

    pub fn request(
        &mut self,
        cx: &mut Context<'_>,
        sent: Sent,
        method: &str,
        params: &impl Serialize,
    ) {
        self.list_until = cx.now.plus(self.start_time(cx.limits));
        let number = self.requests.open(sent);
        self.transmit(cx, number, method, params);
    }

    pub fn transmit(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        method: &str,
        params: &impl Serialize,
    ) {
        let mut bytes = Vec::new();
        write_request(&mut bytes, number, method, params);
        self.send(cx, bytes, Some(number));
    }

    pub fn notify(&mut self, cx: &mut Context<'_>, method: &str, params: &impl Serialize) {
        let mut bytes = Vec::new();
        write_notification(&mut bytes, method, params);
        self.send(cx, bytes, None);
    }

    pub fn send(&mut self, cx: &mut Context<'_>, bytes: Vec<u8>, request: Option<u64>) {
        if let Some(transport) = &mut self.transport {
            transport.send(cx, Outgoing { bytes, request });
        }
    }

    /// One line for the log, as long as there are not too many of them.
    pub fn log(&mut self, cx: &mut Context<'_>, text: &str) {
        if self.lines >= MAX_LINES {
            return;
        }
        self.lines += 1;
        // Before it is cut: a part of a secret would be left.
        let mut text = one_line(text, 16 * MAX_WHY);
        self.entry.redact(&mut text);
        let name = one_line(&self.entry.name, 80);
        let text = format!("MCP server {name}: {}", one_line(&text, MAX_WHY));
        cx.out.push_back(Output::Log(text));
    }
}

fn pause(failures: u32, cx: &Context<'_>) -> Duration {
    let pause = cx.limits.mcp_pause * 2u32.saturating_pow(failures.min(16));
    pause.min(cx.limits.max_mcp_pause)
}
