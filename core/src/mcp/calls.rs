//! What is asked of one server: its tools, its resources, its prompts. Each call is answered once,
//! by the server, by a fault, by its deadline or by the end. Knows nothing of how a server starts.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::catalogue::{What, one_line};
use super::server::{MAX_WHY, Sent, Server, State};
use super::shapes::{
    CallMeta, CallTool, Cancelled, GetPrompt, ListParams, ReadResource, ResourceWish,
};
use super::transport::Fault;
use super::{Context, Output};
use crate::ids::CallId;
use crate::limits::Limits;
use crate::time::Instant;
use crate::wire::RequestId;

/// Names of tools that are told when one is asked for that is not there.
const MAX_TOLD: usize = 40;

/// What is asked of a server.
#[derive(Clone, Debug)]
pub(super) enum Wish {
    /// A tool.
    Tool {
        /// Its name, as a model knows it.
        name: String,
        /// The text of a JSON object.
        arguments: String,
    },
    /// A prompt.
    Prompt {
        /// Its command.
        command: String,
        /// What was typed behind that.
        typed: String,
    },
}

/// How the answer to a call is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    Tool,
    Resource,
    Resources,
    Prompt,
}

/// A call.
#[derive(Debug)]
pub(super) struct Wanted {
    wish: Wish,
    /// The request it was sent as; none: it waits for the server to be up.
    pub request: Option<u64>,
    /// It was sent again, since the server did not know our session.
    renewed: bool,
    pub reads: Reads,
    begun: Instant,
    pub heard: Instant,
}

impl Wanted {
    fn due(&self, limits: &Limits) -> Instant {
        let silent = self.heard.plus(limits.mcp_silence);
        silent.min(self.begun.plus(limits.mcp_call))
    }
}

impl Server {
    /// A call. It is answered when the server is up, or told why it is not.
    pub fn call(&mut self, cx: &mut Context<'_>, id: CallId, wish: Wish) {
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
            wish,
            request: None,
            renewed: false,
            reads: Reads::Tool,
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

    /// What waited for the server to be up, or for its prompts, is sent.
    pub fn send_waiting(&mut self, cx: &mut Context<'_>) {
        let unsent = |(id, call): (&CallId, &Wanted)| call.request.is_none().then_some(*id);
        let waiting: Vec<CallId> = self.calls.iter().filter_map(unsent).collect();
        for call in waiting {
            self.send_call(cx, call);
        }
    }

    fn send_call(&mut self, cx: &mut Context<'_>, id: CallId) {
        let Some(wanted) = self.calls.get_mut(&id) else {
            return;
        };
        wanted.heard = cx.now;
        let sent = match wanted.wish.clone() {
            // It may be among those that are being listed.
            Wish::Tool { name, .. }
                if self.pages.is_some() && self.tools.iter().all(|it| *it.name != name) =>
            {
                Ok(())
            }
            Wish::Tool { name, arguments } => self.send_tool(cx, id, &name, &arguments),
            // They are being listed.
            Wish::Prompt { .. } if self.prompt_pages.is_some() => Ok(()),
            Wish::Prompt { command, typed } => self.send_prompt(cx, id, &command, &typed),
        };
        if let Err(why) = sent {
            self.calls.remove(&id);
            self.answer(cx, id, Err(why));
        }
    }

    fn send_tool(
        &mut self,
        cx: &mut Context<'_>,
        id: CallId,
        tool: &str,
        arguments: &str,
    ) -> Result<(), String> {
        let found = self.tools.iter().find(|it| *it.name == *tool);
        let what = found.map(|tool| tool.what.clone());
        match what.ok_or_else(|| self.no_tool(tool))? {
            What::Tool(name) => {
                let empty = arguments.trim().is_empty();
                let arguments = if empty { "{}" } else { arguments };
                let arguments: &RawValue = serde_json::from_str(arguments)
                    .map_err(|_| String::from("the arguments are no JSON"))?;
                let number = self.sends(id, Reads::Tool);
                let meta = CallMeta {
                    progress_token: number,
                };
                let params = CallTool {
                    name: &name,
                    arguments,
                    meta,
                };
                self.transmit(cx, number, "tools/call", &params);
            }
            What::Resources => {
                let wish = serde_json::from_str::<ResourceWish>(arguments).ok();
                match wish.and_then(|wish| wish.uri) {
                    Some(uri) => {
                        let number = self.sends(id, Reads::Resource);
                        self.transmit(cx, number, "resources/read", &ReadResource { uri: &uri });
                    }
                    None => {
                        let number = self.sends(id, Reads::Resources);
                        let params = ListParams { cursor: None };
                        self.transmit(cx, number, "resources/list", &params);
                    }
                }
            }
        }
        Ok(())
    }

    /// A model asks for what the server had once, or never had.
    fn no_tool(&self, tool: &str) -> String {
        let name = &self.entry.name;
        let mut text = format!("The MCP server {name} has no tool {tool} now.");
        let names: Vec<&str> = self.tools.iter().map(|it| &*it.name).collect();
        if let Some(told) = names
            .get(..names.len().min(MAX_TOLD))
            .filter(|it| !it.is_empty())
        {
            text.push_str(&format!(" It has: {}", told.join(", ")));
            text.push_str(if told.len() < names.len() {
                ", …"
            } else {
                "."
            });
        }
        text
    }

    fn send_prompt(
        &mut self,
        cx: &mut Context<'_>,
        id: CallId,
        command: &str,
        typed: &str,
    ) -> Result<(), String> {
        let found = self.prompts.iter().find(|it| it.command == command);
        let prompt = found.ok_or_else(|| {
            let name = &self.entry.name;
            format!("The MCP server {name} has no prompt for /{command}.")
        })?;
        let arguments = prompt.fill(typed)?;
        let name = prompt.name.clone();
        let number = self.sends(id, Reads::Prompt);
        let params = GetPrompt {
            name: &name,
            arguments: &arguments,
        };
        self.transmit(cx, number, "prompts/get", &params);
        Ok(())
    }

    /// The number of the request that a call is sent as.
    fn sends(&mut self, id: CallId, reads: Reads) -> u64 {
        let number = self.requests.open(Sent::Call(id));
        if let Some(wanted) = self.calls.get_mut(&id) {
            wanted.request = Some(number);
            wanted.reads = reads;
        }
        number
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
        self.settled(cx, number);
        self.notify(cx, "notifications/cancelled", &params);
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
                self.send_waiting(cx);
            }
            Sent::Tools => self.down(cx, Fault::new(format!("its tools cannot be listed: {why}"))),
            Sent::Prompts => self.no_prompts(cx, why),
            Sent::Call(call) => {
                if self.calls.remove(&call).is_some() {
                    let name = &self.entry.name;
                    let mut why = String::from(why);
                    self.entry.redact(&mut why);
                    let why = one_line(&why, MAX_WHY);
                    let text = format!("The MCP server {name} did not answer: {why}");
                    self.answer(cx, call, Err(text));
                }
            }
        }
    }

    /// The HTTP session is over: one new handshake, and the call that was not taken goes once more.
    pub fn expired(&mut self, cx: &mut Context<'_>, id: Option<u64>) {
        if let Some(id) = id {
            let call = match self.requests.get(id) {
                Some(Sent::Call(call)) => Some(*call),
                Some(Sent::Initialize | Sent::Tools | Sent::Prompts) | None => None,
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
            self.renew(cx);
        }
    }

    /// The server cannot be used: no call of it waits any more.
    pub fn fail_calls(&mut self, cx: &mut Context<'_>, why: &str) {
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

    /// A question is answered or taken back: the time it was open does not count.
    pub fn asked_no_more(&mut self, now: Instant) {
        if !self.asks.is_empty() {
            return;
        }
        let Some(since) = self.asked_since.take() else {
            return;
        };
        for wanted in self.calls.values_mut() {
            let open = now.since(since.max(wanted.begun));
            wanted.begun = wanted.begun.plus(open);
            wanted.heard = now;
        }
    }

    /// Gives up the calls whose time is over.
    pub fn end_late_calls(&mut self, cx: &mut Context<'_>) {
        let limits = cx.limits;
        let late: Vec<(CallId, Option<u64>)> = self
            .timed_calls()
            .filter(|(_, wanted)| wanted.due(limits) <= cx.now)
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

    /// When the time of the first call is over.
    pub fn calls_deadline(&self, limits: &Limits) -> Option<Instant> {
        self.timed_calls()
            .map(|(_, wanted)| wanted.due(limits))
            .min()
    }

    /// Calls whose time runs: what waits for the server to be up ends with its handshake, and a
    /// person who is asked may think as long as they like.
    fn timed_calls(&self) -> impl Iterator<Item = (&CallId, &Wanted)> {
        let (asks, ready) = (!self.asks.is_empty(), self.state == State::Ready);
        let runs = move |wanted: &Wanted| !asks && (ready || wanted.request.is_some());
        self.calls.iter().filter(move |(_, wanted)| runs(wanted))
    }

    /// The answer to a call, which is over with it.
    pub fn answer(&mut self, cx: &mut Context<'_>, call: CallId, result: Result<String, String>) {
        let redact = |mut text: String| {
            self.entry.redact(&mut text);
            text
        };
        let result = result.map(redact).map_err(redact);
        cx.out.push_back(Output::Done { call, result });
    }
}
