//! The world of one hub: what it started, what it said, what it answered.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde_json::value::RawValue;

use crate::call::{Call, Exit, News, Opened, Outcome, Stream};
use crate::ids::{CallId, Counter};
use crate::limits::Limits;
use crate::mcp::{Client, Context, Entry, Hub, Launch, Output, Question, Way};
use crate::secret::Secret;
use crate::time::Instant;

/// The answer to `initialize` of a server with tools and resources.
pub const HELLO: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}}}"#;

/// A list of one tool.
pub const ECHO: &str = r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#;

pub struct World {
    pub hub: Hub,
    pub limits: Limits,
    pub now: Instant,
    ids: Counter,
    next_call: u64,
    /// What runs, and is not aborted.
    pub running: BTreeMap<CallId, Call>,
    /// What was started, in order.
    pub started: Vec<CallId>,
    pub aborted: Vec<CallId>,
    /// Lines for processes that were not looked at.
    pub fed: VecDeque<(CallId, String)>,
    pub done: BTreeMap<CallId, Vec<Result<String, String>>>,
    pub progress: Vec<String>,
    pub asks: Vec<(u64, Question)>,
    pub withdrawn: Vec<u64>,
    /// Pages that are done.
    pub completed: Vec<(u64, String)>,
    pub logs: Vec<String>,
    /// How often it said that something is another than before.
    pub changes: usize,
    /// Digests of entries whose tools were asked for.
    pub recalls: Vec<String>,
    /// What was to be kept of tools.
    pub kept: Vec<String>,
}

pub fn stdio(name: &str) -> Entry {
    let env = Vec::from([("KEY".into(), Secret::new("KEY", "very-secret"))]);
    Entry::new(
        name,
        Way::Stdio {
            command: "srv".into(),
            args: Vec::new(),
            env,
        },
    )
    .unwrap()
}

pub fn http(url: &str) -> Entry {
    let headers = Vec::from([("X-Key".into(), Secret::new("X-Key", "very-secret"))]);
    let url = url.into();
    Entry::new("web", Way::Http { url, headers }).unwrap()
}

pub fn sse(url: &str) -> Entry {
    let headers = Vec::from([("X-Key".into(), Secret::new("X-Key", "very-secret"))]);
    let url = url.into();
    Entry::new("web", Way::Sse { url, headers }).unwrap()
}

impl World {
    pub fn new(entries: Vec<Entry>) -> Self {
        Self::asked(entries, false)
    }

    /// The same, with a person who can be asked to open a page.
    pub fn asked(entries: Vec<Entry>, pages: bool) -> Self {
        let client = Client {
            name: "t".into(),
            version: "1".into(),
            forms: true,
            pages,
        };
        let mut world = Self {
            hub: Hub::default(),
            limits: Limits::default(),
            now: Instant::ZERO,
            ids: Counter::default(),
            next_call: 1 << 32,
            running: BTreeMap::new(),
            started: Vec::new(),
            aborted: Vec::new(),
            fed: VecDeque::new(),
            done: BTreeMap::new(),
            progress: Vec::new(),
            asks: Vec::new(),
            withdrawn: Vec::new(),
            completed: Vec::new(),
            logs: Vec::new(),
            changes: 0,
            recalls: Vec::new(),
            kept: Vec::new(),
        };
        for entry in entries {
            world.with(|hub, cx| hub.add(cx, entry, Launch::Now, &client, "/w"));
        }
        world
    }

    pub fn with(&mut self, act: impl FnOnce(&mut Hub, &mut Context<'_>)) {
        let mut out = VecDeque::new();
        let mut cx = Context {
            now: self.now,
            ids: &mut self.ids,
            limits: &self.limits,
            out: &mut out,
        };
        act(&mut self.hub, &mut cx);
        for output in out {
            self.take(output);
        }
    }

    fn take(&mut self, output: Output) {
        match output {
            Output::Start { id, call } => {
                assert!(!self.running.contains_key(&id), "an id is used twice");
                self.started.push(id);
                self.running.insert(id, call);
            }
            Output::Feed { id, bytes } => {
                assert!(self.running.contains_key(&id), "fed after its end");
                assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
                assert!(bytes.starts_with(b"{") && bytes.ends_with(b"}\n"));
                self.fed.push_back((id, String::from_utf8(bytes).unwrap()));
            }
            Output::FeedEnd { .. } | Output::Prompts => {}
            Output::Changed => self.changes += 1,
            Output::Recall { digest } => self.recalls.push(digest),
            Output::Remember { digest, bytes } => {
                assert!(
                    self.recalls.contains(&digest),
                    "kept what was not asked for"
                );
                self.kept.push(String::from_utf8(bytes).unwrap());
            }
            Output::Abort { id } => {
                self.aborted.push(id);
                self.running.remove(&id);
            }
            Output::Done { call, result } => self.done.entry(call).or_default().push(result),
            Output::Progress { text, .. } => self.progress.push(text),
            Output::Ask { ask, question } => self.asks.push((ask, question)),
            Output::Withdraw { ask } => self.withdrawn.push(ask),
            Output::Completed { ask, id } => self.completed.push((ask, id)),
            Output::Log(line) => {
                assert!(!line.contains("very-secret"), "{line}");
                self.logs.push(line);
            }
        }
    }

    pub fn call(&mut self, tool: &str, arguments: &str) -> CallId {
        self.next_call += 1;
        let id = CallId::new(self.next_call);
        self.with(|hub, cx| hub.call(cx, id, tool, arguments));
        id
    }

    pub fn news(&mut self, id: CallId, news: News<'_>) {
        if matches!(news, News::Done(_) | News::Failed(_)) {
            self.running.remove(&id);
        }
        self.with(|hub, cx| hub.handle_news(cx, id, news));
    }

    pub fn say(&mut self, id: CallId, text: &str) {
        let bytes = text.as_bytes();
        let stream = Stream::Out;
        self.news(id, News::Bytes { stream, bytes });
    }

    pub fn line(&mut self, id: CallId, text: &str) {
        self.say(id, &format!("{text}\n"));
    }

    pub fn exit(&mut self, id: CallId, code: i32) {
        let exit = Exit {
            code: Some(code),
            signal: None,
            dropped: 0,
            left: false,
        };
        self.news(id, News::Done(Outcome::Exited(exit)));
    }

    pub fn opened(&mut self, id: CallId, status: u16, headers: &[(&str, &str)]) {
        let headers = headers.iter().map(|(n, v)| (n.to_string(), v.to_string()));
        let headers = headers.collect();
        self.news(id, News::Opened(Opened { status, headers }));
    }

    pub fn ended(&mut self, id: CallId) {
        self.news(id, News::Done(Outcome::Ended));
    }

    /// Lets time pass; what is due on the way is served.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now.plus(time);
        for _ in 0..1000 {
            match self.hub.deadline(&self.limits) {
                Some(deadline) if deadline.at <= end => {
                    self.now = self.now.max(deadline.at);
                    self.with(Hub::handle_timeout);
                }
                Some(_) | None => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("a deadline that does not move");
    }

    /// The next line for a process: its method and id.
    pub fn next(&mut self) -> Option<(CallId, Asked)> {
        let (id, line) = self.fed.pop_front()?;
        Some((id, Asked::read(&line)))
    }

    /// Answers the handshake of the only process, whose tools are these.
    pub fn shake(&mut self, tools: &str) -> CallId {
        let (id, asked) = self.next().unwrap();
        assert_eq!(asked.method, "initialize");
        self.line(id, &asked.result(HELLO));
        let (_, asked) = self.next().unwrap();
        assert_eq!(asked.method, "notifications/initialized");
        let (_, asked) = self.next().unwrap();
        assert_eq!(asked.method, "tools/list");
        self.line(id, &asked.result(tools));
        id
    }

    pub fn status(&self) -> Vec<&'static str> {
        self.hub.status().map(|status| status.status).collect()
    }

    pub fn names(&self) -> Vec<&str> {
        self.hub.tools().map(|tool| &*tool.name).collect()
    }

    pub fn only(&self, call: CallId) -> Result<&str, &str> {
        let all = self.done.get(&call).map_or(&[][..], Vec::as_slice);
        assert_eq!(all.len(), 1, "answered {} times", all.len());
        match &all[0] {
            Ok(text) => Ok(text),
            Err(text) => Err(text),
        }
    }
}

/// A message to a server.
#[derive(Debug)]
pub struct Asked {
    pub method: String,
    pub id: String,
    pub text: String,
}

impl Asked {
    pub fn read(text: &str) -> Self {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(text.trim()).unwrap();
        let member = |name: &str| members.get(name).map_or("", |it| it.get());
        assert_eq!(member("jsonrpc"), "\"2.0\"");
        Self {
            method: member("method").trim_matches('"').into(),
            id: member("id").into(),
            text: text.into(),
        }
    }

    pub fn result(&self, result: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.id)
    }
}
