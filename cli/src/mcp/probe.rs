//! One MCP server reached by the same machine that sessions use, without a session: the world around
//! that machine, as far as servers need it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use reasonix_blocking::ops::{Told, http, process};
use reasonix_core::call::Call;
use reasonix_core::error::{IoFault, IoKind};
use reasonix_core::ids::{CallId, Counter};
use reasonix_core::limits::Limits;
use reasonix_core::mcp::{Client, Context, Entry, Hub, Launch, Output, Reply};
use reasonix_core::time::Instant as Moment;

/// How often it is looked what a program did; nothing else is waited for here.
const LOOK: Duration = Duration::from_millis(5);

/// What the end of a session may take at a server's address.
const GOODBYE: Duration = Duration::from_secs(1);

/// What came of it.
pub struct Probed {
    /// Till it was ready, or given up.
    pub took: Duration,
    /// What it calls itself, with its version.
    pub server: Option<String>,
    /// The version of the protocol that was agreed on.
    pub protocol: Option<String>,
    /// Its tools: names as a model has them, and what they are for.
    pub tools: Vec<(String, String)>,
    /// Why it cannot be used; none: it can.
    pub error: Option<String>,
    /// The status of the HTTP answer that said so.
    pub http_status: Option<u16>,
}

/// Reaches the server, in this folder, and ends it. Takes no longer than a session waits for one.
pub fn probe(entry: &Entry, cwd: &str, hidden: &[String]) -> Probed {
    let mut world = World::new(hidden);
    let client = Client {
        name: "reasonix".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..Client::default()
    };
    world.with(|hub, cx| hub.add(cx, entry.clone(), Launch::Now, &client, cwd));
    while world.connecting() {
        world.turn();
    }
    let probed = world.outcome();
    world.end();
    probed
}

type Posted = (CallId, Told);

struct World<'a> {
    hub: Hub,
    ids: Counter,
    limits: Limits,
    begun: Instant,
    hidden: &'a [String],
    /// What the programs have in their environment.
    mark: Option<process::Mark>,
    programs: BTreeMap<CallId, process::Running>,
    requests: BTreeMap<CallId, http::Handle>,
    due: VecDeque<Posted>,
    post: (Sender<Posted>, Receiver<Posted>),
}

impl<'a> World<'a> {
    fn new(hidden: &'a [String]) -> Self {
        Self {
            hub: Hub::default(),
            ids: Counter::default(),
            limits: Limits::default(),
            begun: Instant::now(),
            hidden,
            mark: process::Mark::new(),
            programs: BTreeMap::new(),
            requests: BTreeMap::new(),
            due: VecDeque::new(),
            post: channel(),
        }
    }

    fn with(&mut self, act: impl FnOnce(&mut Hub, &mut Context<'_>)) {
        let mut out = VecDeque::new();
        let mut cx = Context {
            now: Moment::since_start(self.begun.elapsed()),
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
            Output::Start { id, call } => self.start(id, call),
            Output::Feed { id, bytes } => {
                if let Some(program) = self.programs.get_mut(&id) {
                    program.feed(&bytes);
                }
            }
            Output::FeedEnd { id } => {
                if let Some(program) = self.programs.get_mut(&id) {
                    program.feed_end();
                }
            }
            Output::Abort { id } => {
                if let Some(program) = self.programs.get_mut(&id) {
                    program.abort(Instant::now());
                } else if let Some(request) = self.requests.get(&id) {
                    request.abort();
                }
            }
            // Nobody can be asked.
            Output::Ask { ask, .. } => {
                self.with(|hub, cx| hub.answered(cx, ask, &Reply::Decline));
            }
            Output::Log(line) => log::info!("{line}"),
            Output::Done { .. }
            | Output::Progress { .. }
            | Output::Withdraw { .. }
            | Output::Completed { .. }
            | Output::Changed
            | Output::Prompts
            | Output::Recall { .. }
            | Output::Remember { .. } => {}
        }
    }

    fn start(&mut self, id: CallId, call: Call) {
        if let Call::Process(process) = call {
            let tag = self.mark.as_mut().map(process::Mark::tag);
            match process::spawn(&process, "sh", self.hidden, None, tag) {
                Ok(program) => drop(self.programs.insert(id, program)),
                Err(fault) => self.due.push_back((id, Told::Failed(fault))),
            }
        } else if let Call::Http(request) = call {
            let handle = http::Handle::default();
            handle.grant(self.limits.call_window);
            self.requests.insert(id, handle.clone());
            let post = self.post.0.clone();
            thread::spawn(move || {
                http::run(&request, &handle, |told| {
                    // Nobody listens any more at the end.
                    let _ = post.send((id, told));
                });
            });
        } else {
            let fault = IoFault::new(IoKind::Unsupported, "no call of a server");
            self.due.push_back((id, Told::Failed(fault)));
        }
    }

    /// Waits for a moment, and passes on what happened.
    fn turn(&mut self) {
        let first = self.post.1.recv_timeout(LOOK).ok();
        self.due.extend(first);
        self.due.extend(self.post.1.try_iter());
        let (now, due, hub, limits) = (Instant::now(), &mut self.due, &self.hub, &self.limits);
        for (id, program) in &mut self.programs {
            let room = hub.room(*id, limits);
            program.step(now, room, &mut |told| due.push_back((*id, told)));
        }
        self.programs.retain(|_, program| !program.over());
        while let Some((id, told)) = self.due.pop_front() {
            if let (Told::Bytes(_, bytes), Some(request)) = (&told, self.requests.get(&id)) {
                request.grant(bytes.len());
            }
            if told.is_last() {
                self.requests.remove(&id);
            }
            told.into_news(|news| self.with(|hub, cx| hub.handle_news(cx, id, news)));
        }
        self.with(Hub::handle_timeout);
    }

    fn connecting(&self) -> bool {
        self.hub
            .status()
            .any(|it| matches!(it.status, "connecting" | "standby"))
    }

    fn outcome(&self) -> Probed {
        let tools = self.hub.tools();
        let tools = tools.map(|tool| (String::from(&*tool.name), String::from(&*tool.description)));
        let status = self.hub.status().next();
        let ready = status.as_ref().is_some_and(|it| it.status == "ready");
        let error = status.as_ref().and_then(|it| it.error.map(String::from));
        Probed {
            took: self.begun.elapsed(),
            server: status.as_ref().and_then(|it| it.title.map(String::from)),
            protocol: status.as_ref().and_then(|it| it.protocol.map(String::from)),
            tools: tools.collect(),
            error: (!ready).then(|| error.unwrap_or_else(|| "it did not become ready".into())),
            http_status: status.as_ref().and_then(|it| it.http_status),
        }
    }

    fn end(mut self) {
        self.with(Hub::close);
        let end = Instant::now() + GOODBYE;
        while (!self.requests.is_empty() || !self.programs.is_empty()) && Instant::now() < end {
            self.turn();
        }
        self.requests.values().for_each(http::Handle::abort);
        let programs = self.programs.into_values().collect();
        process::end_all(programs, &[], self.mark.as_ref());
    }
}
