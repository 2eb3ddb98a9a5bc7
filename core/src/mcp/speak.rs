//! What a server says: answers to our requests, requests and notifications of its own. Knows no
//! transport.

use alloc::format;
use alloc::string::String;

use super::asks::Asked;
use super::calls::Reads;
use super::catalogue::{Pages, one_line};
use super::form::{Question, Reply};
use super::hub::Shared;
use super::server::{Sent, Server, State};
use super::shapes::{
    Completed, Empty, Initialized, Logged, Progress, Root, Roots, ServerInfo, VERSIONS,
    WasCancelled,
};
use super::transport::Fault;
use super::{Context, Output, address, prompts, result};
use crate::wire::rpc::{self, Message};
use crate::wire::{RequestId, RpcError};

impl Server {
    /// One message.
    pub(super) fn frame(&mut self, cx: &mut Context<'_>, frame: &[u8], shared: &mut Shared) {
        match rpc::read(frame, cx.limits.max_depth) {
            Ok(Message::Request { id, method, params }) => {
                self.asked(cx, &id, &method, params, shared);
            }
            Ok(Message::Notification { method, params }) => self.told(cx, &method, params),
            Ok(Message::Response { id, result }) => self.heard(cx, &id, result, shared),
            Err(fault) => {
                self.log(cx, &format!("{}", fault.fault));
                self.strange(&String::from_utf8_lossy(frame));
                let spoils = fault.spoils.as_ref().and_then(RequestId::as_u64);
                if let Some(id) = spoils.or_else(|| answered_id(frame)) {
                    self.unanswered(cx, id, "its answer cannot be read");
                }
            }
        }
    }

    fn heard(
        &mut self,
        cx: &mut Context<'_>,
        id: &RequestId,
        answer: Result<&str, RpcError>,
        shared: &mut Shared,
    ) {
        // Late answers, answers given twice and answers to nothing leave no trace.
        let Some((number, sent)) = self.requests.settle(id) else {
            let id = serde_json::to_string(id).unwrap_or_default();
            return self.strange(&format!(
                "an answer to the request {id}, which was not asked"
            ));
        };
        self.settled(cx, number);
        match sent {
            Sent::Initialize => match answer {
                Ok(text) => self.introduced(cx, text, shared),
                Err(error) => self.down(cx, Fault::new(format!("it refused: {error}"))),
            },
            Sent::Tools => match answer {
                Ok(text) => self.page(cx, text, shared),
                // A server without the method has no tools.
                Err(error) if error.code == -32601 => {
                    self.whole(cx, Pages::default(), shared);
                }
                Err(error) => self.no_tools(cx, &format!("{error}")),
            },
            Sent::Prompts => match answer {
                Ok(text) => self.prompt_page(cx, text),
                Err(error) => self.no_prompts(cx, &format!("{error}")),
            },
            Sent::Call(call) => {
                let Some(wanted) = self.calls.remove(&call) else {
                    return;
                };
                if answer.is_ok() {
                    self.renewals = 0;
                }
                let done = match answer {
                    Ok(text) => match wanted.reads {
                        Reads::Tool => result::tool(text),
                        Reads::Resource => result::resource(text),
                        Reads::Resources => result::resources(text),
                        Reads::Prompt => prompts::text(text),
                    },
                    Err(error) => Err(format!("The MCP server answered with an error: {error}")),
                };
                self.answer(cx, call, done);
            }
        }
    }

    fn introduced(&mut self, cx: &mut Context<'_>, text: &str, shared: &mut Shared) {
        let Ok(hello) = serde_json::from_str::<Initialized<'_>>(text) else {
            return self.down(cx, Fault::new("its answer to initialize cannot be read"));
        };
        if !VERSIONS.contains(&hello.protocol_version.as_str()) {
            let version = one_line(&hello.protocol_version, 40);
            let why =
                format!("it speaks version {version} of the protocol, which is not known here");
            return self.down(cx, Fault::new(why));
        }
        // For people; a server that says it wrong is no worse for it.
        let info = hello
            .server_info
            .map(|info| serde_json::from_str::<ServerInfo>(info.get()));
        let info = info.and_then(Result::ok).unwrap_or_default();
        self.title = one_line(&format!("{} {}", info.name, info.version), 120);
        self.entry.redact(&mut self.title);
        self.resources = hello.capabilities.resources.is_some();
        self.has_prompts = hello.capabilities.prompts.is_some();
        let tools = hello.capabilities.tools.is_some();
        self.agreed(cx, &hello.protocol_version, tools, shared);
    }

    fn asked(
        &mut self,
        cx: &mut Context<'_>,
        id: &RequestId,
        method: &str,
        params: Option<&str>,
        shared: &mut Shared,
    ) {
        match method {
            "ping" => self.result(cx, id, &Empty {}),
            "roots/list" => {
                let workspace = Root {
                    uri: self.root(),
                    name: "workspace",
                };
                let more = shared.roots.iter().map(|path| Root {
                    uri: address::of_path(path),
                    name: path
                        .rsplit('/')
                        .find(|part| !part.is_empty())
                        .unwrap_or("/"),
                });
                let roots = core::iter::once(workspace).chain(more).collect();
                self.result(cx, id, &Roots { roots });
            }
            "elicitation/create" => self.elicit(cx, id, params, shared),
            "sampling/createMessage" => {
                let why = "sampling is not offered: servers get no model of the person's";
                self.refuse(cx, id, &RpcError::new(-32601, why));
            }
            other => self.refuse(cx, id, &RpcError::method_not_found(other)),
        }
    }

    fn elicit(
        &mut self,
        cx: &mut Context<'_>,
        id: &RequestId,
        params: Option<&str>,
        shared: &mut Shared,
    ) {
        let question =
            Question::read(params, cx.limits).and_then(|question| question.without(&self.entry));
        let offered = question.as_ref().is_some_and(|question| match question {
            Question::Form { .. } => self.client.forms,
            Question::Page { .. } => self.client.pages,
        });
        if self.asks.values().any(|open| open.id == *id) {
            // A decline would look like the answer of the person, who is still asked.
            let why = "a request with this id is open already";
            return self.refuse(cx, id, &RpcError::new(-32600, why));
        }
        match question {
            Some(question) if offered && self.asks.len() < cx.limits.max_mcp_asks => {
                shared.asks += 1;
                let ask = shared.asks;
                self.asked_since.get_or_insert(cx.now);
                self.asks
                    .insert(ask, Asked::new(id.clone(), question.clone()));
                cx.out.push_back(Output::Ask { ask, question });
            }
            Some(_) | None => self.reply(cx, id, Reply::Decline, None),
        }
    }

    fn told(&mut self, cx: &mut Context<'_>, method: &str, params: Option<&str>) {
        let params = params.unwrap_or("{}");
        match method {
            "notifications/tools/list_changed" => match self.state {
                State::Ready => self.list_tools(cx),
                // What it lists in a moment may be what it was before.
                State::Connecting { .. } => self.list_again.tools = true,
                State::Pending
                | State::Disabled
                | State::Resting { .. }
                | State::Down { .. }
                | State::Closed => {}
            },
            "notifications/prompts/list_changed" if self.state == State::Ready => {
                self.list_prompts(cx);
            }
            "notifications/progress" => {
                if let Ok(progress) = serde_json::from_str::<Progress<'_>>(params) {
                    self.progress(cx, &progress);
                }
            }
            "notifications/cancelled" => {
                let Ok(cancelled) = serde_json::from_str::<WasCancelled<'_>>(params) else {
                    return;
                };
                let Some(id) = RequestId::from_json(cancelled.request_id.get()) else {
                    return;
                };
                let ask = self.asks.iter().find(|(_, open)| open.id == id);
                if let Some(ask) = ask.map(|(ask, _)| *ask) {
                    self.asks.remove(&ask);
                    cx.out.push_back(Output::Withdraw { ask });
                    self.asked_no_more(cx.now);
                }
            }
            "notifications/elicitation/complete" => {
                if let Ok(done) = serde_json::from_str::<Completed>(params) {
                    self.completed(cx, &done.elicitation_id);
                }
            }
            "notifications/message" => {
                if let Ok(logged) = serde_json::from_str::<Logged<'_>>(params) {
                    let level = logged.level.unwrap_or_default();
                    let data = logged.data.map_or("", |data| data.get());
                    self.log(cx, &format!("{level}: {data}"));
                }
            }
            _ => {}
        }
    }

    fn progress(&mut self, cx: &mut Context<'_>, progress: &Progress<'_>) {
        let token = RequestId::from_json(progress.progress_token.get());
        let number = token.as_ref().and_then(RequestId::as_u64);
        let Some(Sent::Call(call)) = number.and_then(|number| self.requests.get(number)) else {
            return;
        };
        let call = *call;
        let Some(wanted) = self.calls.get_mut(&call) else {
            return;
        };
        wanted.heard = cx.now;
        let done = progress.progress.map_or("", |done| done.get());
        let mut text = String::from(done);
        if let Some(total) = progress.total {
            text = format!("{done}/{}", total.get());
        }
        if let Some(message) = &progress.message {
            text = format!("{text} {message}");
        }
        // Before it is cut: a part of a secret would be left.
        self.entry.redact(&mut text);
        let text = one_line(&text, 400);
        cx.out.push_back(Output::Progress { call, text });
    }
}

/// The id of the request that a message answers which is no JSON: half a character, `NaN` and the like
/// are in its result, and whoever waits for it is to hear so at once. None if it is no answer.
fn answered_id(frame: &[u8]) -> Option<u64> {
    let (mut depth, mut id, mut at) = (0_usize, None, 0);
    while let Some(&byte) = frame.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let begin = at;
                while let Some(&byte) = frame.get(at)
                    && byte != b'"'
                {
                    at += if byte == b'\\' { 2 } else { 1 };
                }
                let text = frame.get(begin..at).unwrap_or_default();
                at += 1;
                let rest = frame.get(at..).unwrap_or_default().trim_ascii_start();
                let value = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
                match (depth, text, value) {
                    (1, b"method", Some(_)) => return None,
                    (1, b"id", Some(value)) => {
                        let end = value.iter().position(|byte| !byte.is_ascii_digit());
                        let digits = value.get(..end.unwrap_or(value.len()))?;
                        id = core::str::from_utf8(digits).ok()?.parse().ok();
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    id
}
