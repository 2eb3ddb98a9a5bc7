//! One server from its start to its end: handshake, calls, deadlines, restart. What it says is taken
//! in `speak`. Knows neither other servers nor who calls.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use super::catalogue::{Pages, Tool, What, one_line};
use super::form::{Question, Reply};
use super::hub::Client;
use super::shapes::{
    CallMeta, CallTool, Cancelled, ClientCapabilities, Elicitation, Elicited, Empty, Info,
    Initialize, LATEST_VERSION, ListParams, ReadResource, ResourceWish,
};
use super::transport::{Arrived, Fault, Outgoing, Transport};
use super::{Context, Entry, Output};
use crate::call::News;
use crate::ids::CallId;
use crate::time::Instant;
use crate::wire::rpc::{write_error, write_notification, write_request, write_result};
use crate::wire::{OutgoingRequests, RequestId, RpcError};

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
    Call(CallId),
}

/// A call of a tool.
#[derive(Debug)]
pub(super) struct Wanted {
    pub tool: String,
    pub arguments: String,
    /// The request it was sent as.
    pub request: Option<u64>,
    /// It was sent again, since the server did not know our session.
    pub renewed: bool,
    pub lists: bool,
    begun: Instant,
    pub heard: Instant,
}

#[derive(Debug)]
pub(super) struct Server {
    pub entry: Entry,
    pub slug: String,
    pub client: Client,
    pub state: State,
    cwd: String,
    transport: Option<Transport>,
    pub requests: OutgoingRequests<Sent>,
    calls: BTreeMap<CallId, Wanted>,
    /// Questions to the person, by their number in the hub.
    pub asks: BTreeMap<u64, (RequestId, Question)>,
    pub tools: Vec<Tool>,
    pub pages: Option<Pages>,
    pub resources: bool,
    version: String,
    failures: u32,
    lines: u32,
    arrived: VecDeque<Arrived>,
}

/// Lines of one server that go to the log.
const MAX_LINES: u32 = 64;

impl Server {
    pub fn new(entry: Entry, slug: String, client: Client, cwd: String, state: State) -> Self {
        Self {
            entry,
            slug,
            client,
            state,
            cwd,
            transport: None,
            requests: OutgoingRequests::new(),
            calls: BTreeMap::new(),
            asks: BTreeMap::new(),
            tools: Vec::new(),
            pages: None,
            resources: false,
            version: String::new(),
            failures: 0,
            lines: 0,
            arrived: VecDeque::new(),
        }
    }

    /// Begins to reach it.
    pub fn start(&mut self, cx: &mut Context<'_>) {
        self.drop_transport(cx);
        self.transport = Some(Transport::start(&self.entry, &self.cwd, cx));
        self.shake_hands(cx);
    }

    /// It may be used now, or not.
    pub fn decide(&mut self, cx: &mut Context<'_>, approved: bool) {
        if self.state == State::Pending {
            if approved {
                return self.start(cx);
            }
            self.state = State::Disabled;
            cx.out.push_back(Output::Changed);
            self.fail_calls(cx, "its launch was not approved");
        }
    }

    fn shake_hands(&mut self, cx: &mut Context<'_>) {
        self.state = State::Connecting {
            until: cx.now.plus(cx.limits.mcp_start),
        };
        self.pages = None;
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
                roots: Empty {},
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
    pub fn agreed(&mut self, cx: &mut Context<'_>, version: &str, tools: bool) {
        self.version = version.into();
        self.notify(cx, "notifications/initialized", &Empty {});
        if let Some(transport) = &mut self.transport {
            transport.listen(cx, version);
        }
        if tools {
            self.list_tools(cx);
        } else {
            self.listed(cx, Pages::default());
        }
    }

    pub fn list_tools(&mut self, cx: &mut Context<'_>) {
        if self.pages.is_none() {
            self.pages = Some(Pages::default());
            self.request(cx, Sent::Tools, "tools/list", &ListParams { cursor: None });
        }
    }

    /// All pages are there: it is ready, and what waits is sent.
    pub fn listed(&mut self, cx: &mut Context<'_>, pages: Pages) {
        for notice in &pages.notices {
            self.log(cx, notice);
        }
        self.tools = pages.finish(&self.slug, self.resources);
        self.failures = 0;
        self.state = State::Ready;
        cx.out.push_back(Output::Changed);
        let unsent = |(id, call): (&CallId, &Wanted)| call.request.is_none().then_some(*id);
        let waiting: Vec<CallId> = self.calls.iter().filter_map(unsent).collect();
        for call in waiting {
            self.send_call(cx, call);
        }
    }

    /// A call of one of its tools. It is answered when the server is up, or told why it is not.
    pub fn call(&mut self, cx: &mut Context<'_>, id: CallId, tool: &str, arguments: &str) {
        let refused = match &self.state {
            State::Ready | State::Connecting { .. } | State::Resting { .. } => None,
            State::Pending => Some("the person has not approved its launch".into()),
            State::Disabled => Some("it is disabled".into()),
            State::Closed => Some("the session is closed".into()),
            State::Down { why, rest, .. } => {
                // Not at once again: what fails at every call would be started at every call.
                let wait = rest.since(cx.now);
                if wait > cx.limits.mcp_pause * 4 {
                    Some(why.clone())
                } else {
                    self.state = State::Resting {
                        until: cx.now.plus(wait),
                    };
                    cx.out.push_back(Output::Changed);
                    None
                }
            }
        };
        if let Some(why) = refused {
            let name = &self.entry.name;
            let text = format!("The MCP server {name} cannot be used: {why}");
            return self.answer(cx, id, Err(text));
        }
        let wanted = Wanted {
            tool: tool.into(),
            arguments: arguments.into(),
            request: None,
            renewed: false,
            lists: false,
            begun: cx.now,
            heard: cx.now,
        };
        self.calls.insert(id, wanted);
        match self.state {
            State::Ready => self.send_call(cx, id),
            State::Resting { until } if until <= cx.now => self.start(cx),
            State::Resting { .. }
            | State::Connecting { .. }
            | State::Pending
            | State::Disabled
            | State::Down { .. }
            | State::Closed => {}
        }
    }

    fn send_call(&mut self, cx: &mut Context<'_>, id: CallId) {
        let Some(wanted) = self.calls.get_mut(&id) else {
            return;
        };
        let found = self.tools.iter().find(|tool| tool.name == wanted.tool);
        let Some(what) = found.map(|tool| tool.what.clone()) else {
            let name = &self.entry.name;
            let text = format!("The MCP server {name} has no tool {}.", wanted.tool);
            self.calls.remove(&id);
            return self.answer(cx, id, Err(text));
        };
        wanted.heard = cx.now;
        let arguments = wanted.arguments.clone();
        match what {
            What::Tool(name) => {
                let empty = if arguments.trim().is_empty() {
                    "{}"
                } else {
                    &arguments
                };
                let Ok(arguments) = serde_json::from_str::<&RawValue>(empty) else {
                    self.calls.remove(&id);
                    return self.answer(cx, id, Err("the arguments are no JSON".into()));
                };
                let number = self.requests.open(Sent::Call(id));
                let meta = CallMeta {
                    progress_token: number,
                };
                let params = CallTool {
                    name: &name,
                    arguments,
                    meta,
                };
                self.sent(id, number, false);
                self.transmit(cx, number, "tools/call", &params);
            }
            What::Resources => {
                let wish = serde_json::from_str::<ResourceWish>(&arguments).ok();
                let uri = wish.and_then(|wish| wish.uri);
                let number = self.requests.open(Sent::Call(id));
                self.sent(id, number, uri.is_none());
                match uri {
                    Some(uri) => {
                        self.transmit(cx, number, "resources/read", &ReadResource { uri: &uri });
                    }
                    None => {
                        let params = ListParams { cursor: None };
                        self.transmit(cx, number, "resources/list", &params);
                    }
                }
            }
        }
    }

    fn sent(&mut self, id: CallId, number: u64, lists: bool) {
        if let Some(wanted) = self.calls.get_mut(&id) {
            wanted.request = Some(number);
            wanted.lists = lists;
        }
    }

    /// Its caller does not wait any more, and has its answer: the server is told, and lives on.
    pub fn cancel(&mut self, cx: &mut Context<'_>, id: CallId) {
        let Some(wanted) = self.calls.remove(&id) else {
            return;
        };
        if let Some(number) = wanted.request {
            self.give_up(cx, number, "the person cancelled it");
        }
        // What the server asked while it ran is asked for nothing now.
        if self.calls.is_empty() {
            self.withdraw_asks(cx, true);
        }
    }

    fn give_up(&mut self, cx: &mut Context<'_>, number: u64, reason: &str) {
        self.requests.settle(&RequestId::from(number as i64));
        let params = Cancelled {
            request_id: number,
            reason,
        };
        if let Some(transport) = &mut self.transport {
            transport.settled(cx, number);
        }
        self.notify(cx, "notifications/cancelled", &params);
    }

    pub fn withdraw_asks(&mut self, cx: &mut Context<'_>, tell: bool) {
        for (ask, (id, _)) in core::mem::take(&mut self.asks) {
            cx.out.push_back(Output::Withdraw { ask });
            if tell {
                self.reply(cx, &id, Reply::Cancel, None);
            }
        }
    }

    /// The person answered.
    pub fn answered(&mut self, cx: &mut Context<'_>, ask: u64, reply: Reply) {
        let Some((id, question)) = self.asks.remove(&ask) else {
            return;
        };
        for wanted in self.calls.values_mut() {
            wanted.heard = cx.now;
        }
        let (reply, content) = match &reply {
            Reply::Accept(values) => match question.accepts(values) {
                Some(content) => (reply, Some(content)),
                None => (Reply::Decline, None),
            },
            Reply::Decline | Reply::Cancel => (reply, None),
        };
        self.log(cx, &super::form::receipt(&reply));
        let page = matches!(question, Question::Page { .. });
        self.reply(cx, &id, reply, content.filter(|_| !page));
    }

    pub fn reply(
        &mut self,
        cx: &mut Context<'_>,
        id: &RequestId,
        reply: Reply,
        content: Option<String>,
    ) {
        let action = match reply {
            Reply::Accept(_) => "accept",
            Reply::Decline => "decline",
            Reply::Cancel => "cancel",
        };
        let content = content.as_deref();
        let content = content.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        let mut bytes = Vec::new();
        write_result(&mut bytes, id, &Elicited { action, content });
        self.send(cx, bytes, None);
    }

    pub fn refuse(&mut self, cx: &mut Context<'_>, id: &RequestId, error: &RpcError) {
        let mut bytes = Vec::new();
        write_error(&mut bytes, id, error);
        self.send(cx, bytes, None);
    }

    pub fn result(&mut self, cx: &mut Context<'_>, id: &RequestId, result: &impl Serialize) {
        let mut bytes = Vec::new();
        write_result(&mut bytes, id, result);
        self.send(cx, bytes, None);
    }

    /// News of a call of the system; false if it is none of its own.
    pub fn handle_news(
        &mut self,
        cx: &mut Context<'_>,
        id: CallId,
        news: News<'_>,
        asks: &mut u64,
    ) -> bool {
        let Some(transport) = &mut self.transport else {
            return false;
        };
        let mut arrived = core::mem::take(&mut self.arrived);
        let mine = transport.handle_news(cx, id, news, &mut arrived);
        while let Some(next) = arrived.pop_front() {
            self.take(cx, next, asks);
        }
        self.arrived = arrived;
        mine
    }

    fn take(&mut self, cx: &mut Context<'_>, arrived: Arrived, asks: &mut u64) {
        // What was said before the end of a connection that is over counts no more.
        if self.transport.is_none() {
            return;
        }
        match arrived {
            Arrived::Frame(frame) => self.frame(cx, &frame, asks),
            Arrived::Unanswered { id, why } => self.unanswered(cx, id, &why),
            Arrived::Expired { id } => self.expired(cx, id),
            Arrived::TooLong => {
                let why = "an answer of the server is longer than is taken";
                let open: Vec<u64> = self.requests.iter().map(|(id, _)| id).collect();
                for id in open {
                    self.unanswered(cx, id, why);
                }
            }
            Arrived::Noise(line) => self.log(cx, &format!("stdout: {line}")),
            Arrived::Down(fault) => self.down(cx, fault),
        }
    }

    /// A request of ours will have no answer.
    pub fn unanswered(&mut self, cx: &mut Context<'_>, id: u64, why: &str) {
        let Some((_, sent)) = self.requests.settle(&RequestId::from(id as i64)) else {
            return;
        };
        match sent {
            Sent::Initialize => self.down(cx, Fault::new(why)),
            Sent::Tools if self.state == State::Ready => {
                self.pages = None;
                self.log(cx, &format!("its tools cannot be listed anew: {why}"));
            }
            Sent::Tools => self.down(cx, Fault::new(format!("its tools cannot be listed: {why}"))),
            Sent::Call(call) => {
                if self.calls.remove(&call).is_some() {
                    let name = &self.entry.name;
                    let text = format!("The MCP server {name} did not answer: {why}");
                    self.answer(cx, call, Err(text));
                }
            }
        }
    }

    /// The HTTP session is over: one new handshake, and the call that was not taken goes once more.
    fn expired(&mut self, cx: &mut Context<'_>, id: Option<u64>) {
        if let Some(id) = id {
            let call = match self.requests.get(id) {
                Some(Sent::Call(call)) => Some(*call),
                Some(Sent::Initialize | Sent::Tools) | None => None,
            };
            let again = call
                .and_then(|call| self.calls.get_mut(&call))
                .filter(|wanted| !wanted.renewed);
            let Some(wanted) = again else {
                return self.unanswered(cx, id, "it does not know the session it just began");
            };
            wanted.renewed = true;
            wanted.request = None;
            self.requests.settle(&RequestId::from(id as i64));
        }
        if self.state == State::Ready {
            if let Some(transport) = &mut self.transport {
                transport.forget_session(cx);
            }
            self.shake_hands(cx);
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
        let mut why = one_line(&why, 600);
        self.entry.redact(&mut why);
        self.drop_transport(cx);
        self.requests.abandon().for_each(drop);
        self.pages = None;
        self.withdraw_asks(cx, false);
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

    fn fail_calls(&mut self, cx: &mut Context<'_>, why: &str) {
        let name = self.entry.name.clone();
        for (id, wanted) in core::mem::take(&mut self.calls) {
            let text = if wanted.request.is_some() {
                format!(
                    "The MCP server {name} was lost while this ran, and it may have taken effect: {why}"
                )
            } else {
                format!("The MCP server {name} cannot be used: {why}")
            };
            self.answer(cx, id, Err(text));
        }
    }

    /// The session ends.
    pub fn close(&mut self, cx: &mut Context<'_>) {
        self.drop_transport(cx);
        self.withdraw_asks(cx, false);
        self.requests.abandon().for_each(drop);
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
                let seconds = cx.limits.mcp_start.as_secs();
                self.down(
                    cx,
                    Fault::new(format!("it was not ready within {seconds} s")),
                );
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
        // A person may think as long as they like.
        if !self.asks.is_empty() {
            return;
        }
        let limits = cx.limits;
        let due = |wanted: &Wanted| wanted.due(limits) <= cx.now && wanted.request.is_some();
        let late: Vec<(CallId, Option<u64>)> = self
            .calls
            .iter()
            .filter(|(_, wanted)| due(wanted))
            .map(|(id, wanted)| (*id, wanted.request))
            .collect();
        for (id, number) in late {
            self.calls.remove(&id);
            if let Some(number) = number {
                self.give_up(cx, number, "it took too long");
            }
            let name = &self.entry.name;
            let text =
                format!("The MCP server {name} did not answer in time; the call was given up.");
            self.answer(cx, id, Err(text));
        }
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
        let calls = self
            .calls
            .values()
            .filter(|wanted| wanted.request.is_some() && self.asks.is_empty())
            .map(|wanted| wanted.due(limits))
            .min();
        own.into_iter().chain(transport).chain(calls).min()
    }

    pub fn room(&self, id: CallId, limits: &crate::limits::Limits) -> Option<usize> {
        self.transport.as_ref()?.room(id, limits)
    }

    pub fn wanted(&self, id: CallId) -> Option<&Wanted> {
        self.calls.get(&id)
    }

    pub fn wanted_mut(&mut self, id: CallId) -> Option<&mut Wanted> {
        self.calls.get_mut(&id)
    }

    /// Takes the call off the list of those that wait: it is answered now.
    pub fn take_call(&mut self, id: CallId) -> bool {
        self.calls.remove(&id).is_some()
    }

    pub fn answer(&mut self, cx: &mut Context<'_>, call: CallId, result: Result<String, String>) {
        let redact = |mut text: String| {
            self.entry.redact(&mut text);
            text
        };
        let result = result.map(redact).map_err(redact);
        cx.out.push_back(Output::Done { call, result });
    }

    pub fn settled(&mut self, cx: &mut Context<'_>, number: u64) {
        if let Some(transport) = &mut self.transport {
            transport.settled(cx, number);
        }
    }

    pub fn root(&self) -> String {
        let mut uri = String::from("file://");
        if !self.cwd.starts_with('/') {
            uri.push('/');
        }
        for byte in self.cwd.bytes() {
            match byte {
                b'A'..=b'Z'
                | b'a'..=b'z'
                | b'0'..=b'9'
                | b'/'
                | b'-'
                | b'.'
                | b'_'
                | b'~'
                | b':' => {
                    uri.push(char::from(byte));
                }
                b'\\' => uri.push('/'),
                byte => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri
    }

    pub fn request(
        &mut self,
        cx: &mut Context<'_>,
        sent: Sent,
        method: &str,
        params: &impl Serialize,
    ) {
        let number = self.requests.open(sent);
        self.transmit(cx, number, method, params);
    }

    fn transmit(
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

    fn notify(&mut self, cx: &mut Context<'_>, method: &str, params: &impl Serialize) {
        let mut bytes = Vec::new();
        write_notification(&mut bytes, method, params);
        self.send(cx, bytes, None);
    }

    fn send(&mut self, cx: &mut Context<'_>, bytes: Vec<u8>, request: Option<u64>) {
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
        let mut text = format!(
            "MCP server {}: {}",
            one_line(&self.entry.name, 80),
            one_line(text, 600)
        );
        self.entry.redact(&mut text);
        cx.out.push_back(Output::Log(text));
    }

    /// Names of its tools, to find out whether a list is another.
    pub fn names(&self) -> BTreeSet<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }
}

impl Wanted {
    fn due(&self, limits: &crate::limits::Limits) -> Instant {
        let silent = self.heard.plus(limits.mcp_silence);
        silent.min(self.begun.plus(limits.mcp_call))
    }
}

fn pause(failures: u32, cx: &Context<'_>) -> Duration {
    let pause = cx.limits.mcp_pause * 2u32.saturating_pow(failures.min(16));
    pause.min(cx.limits.max_mcp_pause)
}
