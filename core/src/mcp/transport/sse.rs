//! HTTP with server-sent events, as it was before Streamable HTTP (protocol 2024-11-05): one stream
//! of everything the server says, whose first event names the address that messages are posted to.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::exchange::{self, Body, Place, Said};
use super::{Arrived, Fault, Outgoing};
use crate::call::{HeaderValue, News};
use crate::ids::CallId;
use crate::mcp::{Context, Output, address};
use crate::secret::Secret;

/// Requests at once, beyond which answers and notifications are dropped.
const MAX_OPEN: usize = 32;

/// What is said of an address where something else was expected.
const NO_EVENTS: &str = "what is at its address is no stream of events (text/event-stream)";

/// Messages that wait for the address they go to.
const MAX_WAITING: usize = 64;

#[derive(Debug)]
pub(in crate::mcp) struct Sse {
    url: String,
    headers: Vec<(String, Secret)>,
    stream: CallId,
    body: Body,
    endpoint: Option<String>,
    waiting: Vec<Outgoing>,
    posts: BTreeMap<CallId, Post>,
    over: bool,
}

#[derive(Debug)]
struct Post {
    request: Option<u64>,
    body: Body,
}

impl Sse {
    pub fn start(url: &str, headers: &[(String, Secret)], cx: &mut Context<'_>) -> Self {
        let accept = HeaderValue::Plain("text/event-stream".into());
        let more = Vec::from([("accept", accept)]);
        Self {
            stream: exchange::start(cx, "GET", url, headers, more, Vec::new()),
            url: url.into(),
            headers: headers.to_vec(),
            body: Body::Head,
            endpoint: None,
            waiting: Vec::new(),
            posts: BTreeMap::new(),
            over: false,
        }
    }

    pub fn send(&mut self, cx: &mut Context<'_>, message: Outgoing) {
        if self.over {
            return;
        }
        let Some(endpoint) = &self.endpoint else {
            if self.waiting.len() < MAX_WAITING {
                self.waiting.push(message);
            }
            return;
        };
        // What a server is answered that asks without end is not worth more.
        if message.request.is_none() && self.posts.len() >= MAX_OPEN {
            return;
        }
        let json = HeaderValue::Plain("application/json".into());
        let more = Vec::from([("content-type", json)]);
        let id = exchange::start(cx, "POST", endpoint, &self.headers, more, message.bytes);
        let post = Post {
            request: message.request,
            body: Body::Head,
        };
        self.posts.insert(id, post);
    }

    pub fn handle_news(
        &mut self,
        cx: &mut Context<'_>,
        id: CallId,
        news: News<'_>,
        arrived: &mut VecDeque<Arrived>,
    ) -> bool {
        if id == self.stream {
            if !self.over {
                self.stream_news(cx, news, arrived);
            }
            return true;
        }
        let Some(post) = self.posts.get_mut(&id) else {
            return false;
        };
        let why = match news {
            News::Opened(head) => {
                post.body.open(head, cx.limits);
                // What is not a refusal says nothing here.
                if !matches!(post.body, Body::Refused { .. }) {
                    post.body = Body::Ignored;
                }
                None
            }
            News::Bytes { bytes, .. } => {
                let mut place = Place::default();
                post.body
                    .push(bytes, &mut place, &mut VecDeque::new(), cx.limits);
                None
            }
            News::Done(_) => match &post.body {
                Body::Refused { head, text } => Some(exchange::refusal(head, text)),
                Body::Head => Some("no answer to a message".into()),
                Body::Json(_) | Body::Events(_) | Body::Foreign(_) | Body::Ignored => {
                    self.posts.remove(&id);
                    None
                }
            },
            News::Failed(fault) => Some(format!("{fault}")),
            News::Fed(_) => None,
        };
        if let Some(why) = why
            && let Some(post) = self.posts.remove(&id)
            && let Some(id) = post.request
        {
            arrived.push_back(Arrived::Unanswered { id, why });
        }
        true
    }

    /// What the stream did not say, if it is there.
    pub fn missing(&self) -> Option<&'static str> {
        let silent = self.endpoint.is_none() && matches!(self.body, Body::Events(_));
        silent.then_some("its stream of events does not name the address that messages go to")
    }

    pub fn close(&mut self, cx: &mut Context<'_>) {
        if !self.over {
            self.over = true;
            cx.out.push_back(Output::Abort { id: self.stream });
            for id in core::mem::take(&mut self.posts).into_keys() {
                cx.out.push_back(Output::Abort { id });
            }
        }
    }

    fn stream_news(
        &mut self,
        cx: &mut Context<'_>,
        news: News<'_>,
        arrived: &mut VecDeque<Arrived>,
    ) {
        let down = match news {
            News::Opened(head) => {
                self.body.open(head, cx.limits);
                match &self.body {
                    Body::Foreign(kind) => Some(Fault::new(format!("{NO_EVENTS}, but {kind}"))),
                    Body::Json(_) => Some(Fault::new(format!("{NO_EVENTS}, but application/json"))),
                    Body::Ignored => Some(Fault::new(NO_EVENTS)),
                    Body::Head | Body::Refused { .. } | Body::Events(_) => None,
                }
            }
            News::Bytes { bytes, .. } => {
                let mut said = VecDeque::new();
                let mut place = Place::default();
                self.body.push(bytes, &mut place, &mut said, cx.limits);
                said.into_iter()
                    .find_map(|said| self.said(cx, said, arrived))
            }
            News::Done(_) | News::Failed(_) => Some(match (&self.body, news) {
                (Body::Refused { head, text }, _) => {
                    let mut why = exchange::refusal(head, text);
                    if head.status == 405 {
                        why = format!("{why}; if it speaks Streamable HTTP, its `type` is http");
                    }
                    let status = Some(head.status);
                    Fault { why, status }
                }
                (_, News::Failed(fault)) => Fault::new(format!("{fault}")),
                (_, _) => Fault::new("its stream of events ended"),
            }),
            News::Fed(_) => None,
        };
        if let Some(fault) = down {
            self.close(cx);
            arrived.push_back(Arrived::Down(fault));
        }
    }

    /// One event; gives why the server cannot be used.
    fn said(
        &mut self,
        cx: &mut Context<'_>,
        said: Said,
        arrived: &mut VecDeque<Arrived>,
    ) -> Option<Fault> {
        match said {
            Said::Event { name, data } if name.as_deref() == Some("endpoint") => {
                let Some(endpoint) = address::resolve(&self.url, &data) else {
                    return Some(Fault::new(
                        "what its stream names for messages to go to is no http address",
                    ));
                };
                let same = |it: &String| address::origin(it) == address::origin(&self.url);
                let Some(endpoint) = Some(endpoint).filter(same) else {
                    return Some(Fault::new(
                        "it wants messages posted to another host, which is not done",
                    ));
                };
                self.endpoint = Some(endpoint);
                for message in core::mem::take(&mut self.waiting) {
                    self.send(cx, message);
                }
                None
            }
            Said::Event { name, data } if name.as_deref().is_none_or(|it| it == "message") => {
                arrived.push_back(Arrived::Frame(data.into_bytes()));
                None
            }
            Said::Event { .. } => None,
            Said::TooLong => Some(Fault::new("it sent a message longer than is taken")),
        }
    }
}
