//! A whole agent on a virtual clock: a client that answers by rule, a simulated world, and the log
//! of every input and effect. Nothing here waits; every drive is bounded.

use std::time::Duration;

use reasonix_core::agent::{Agent, CloseReason, Config, Effect, Input, Report, WallClock};
use reasonix_core::call::{Append, Call, HttpRequest, News};
use reasonix_core::ids::CallId;
use reasonix_core::secret::Secret;
use reasonix_core::settings::{Host, Model, Provider, Sandboxing};
use reasonix_core::time::{Deadline, Instant};
use reasonix_core::{Machine, Next, Source};

use crate::disk::Disk;
use crate::editor::Editor;
use crate::json::{self, Value};
use crate::laws::Laws;
use crate::process::{PLANTED, no_leak};
use crate::world::World;

/// How a client answers a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Card {
    /// The option of this kind: `allow_once`, `allow_always`, `reject_once`.
    Choose(&'static str),
    /// An `outcome` of this shape, whatever was offered.
    Raw(String),
    /// A JSON-RPC error.
    Error,
    /// No answer at all.
    Silence,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// What the machine was told, and when.
    In(Instant, Told),
    /// What it wanted, as text.
    Out(String),
}

/// An input that owns its bytes, so that a run can be given again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Bytes of the client.
    Received(Vec<u8>),
    /// Unsent output.
    Unsent(usize),
    /// The client finished.
    PeerFinished,
    /// The client is gone.
    PeerGone,
    /// News of a call.
    Call(CallId, crate::world::Say),
    /// Wall-clock time.
    Wall(WallClock),
    /// Time passed.
    Timeout,
}

/// How things stood between two effects.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The disk.
    pub disk: Disk,
    /// How many frames the client had heard.
    pub frames: usize,
    /// How many lines it had sent.
    pub sent: usize,
    /// How many commands had been started.
    pub ran: usize,
    /// How often the provider had been asked.
    pub requests: usize,
}

/// An agent, its client, its world and their clock.
pub struct Sim {
    agent: Agent,
    /// The world it acts on.
    pub world: World,
    /// The time now.
    pub now: Instant,
    /// Every frame it sent, as JSON.
    pub frames: Vec<Value>,
    /// The same, as they went over the wire.
    pub bytes: Vec<u8>,
    /// Everything told and wanted, in order.
    pub log: Vec<Entry>,
    /// What was reported.
    pub reports: Vec<Report>,
    /// Why it closed, once it did.
    pub closed: Option<CloseReason>,
    /// Every moment between two effects at which something had changed, if somebody wants them.
    pub moments: Option<Vec<Moment>>,
    /// Whether the log and the bytes are kept: thousands of short runs need neither.
    pub keeps: bool,
    /// The laws of the exchange.
    pub laws: Laws,
    /// How the client answers permission requests; the last one counts for all that follow.
    pub cards: Vec<Card>,
    /// The editor's buffers: answers to `fs/read_text_file`.
    pub buffers: std::collections::BTreeMap<String, String>,
    /// Who answers to `fs/*`, `terminal/*` and `elicitation/*` in the place of those buffers.
    pub editor: Option<Editor>,
    /// Whether the client takes bytes; if not, everything stays unsent.
    pub reads: bool,
    unsent: usize,
    wrote: bool,
    outbox: std::collections::VecDeque<u8>,
    deadline: Option<Deadline>,
    line: Vec<u8>,
    sent: usize,
    steps: usize,
}

/// Steps one drive may take. A drive that needs more does not end.
const MOST_STEPS: usize = 300_000;

impl Sim {
    /// A new agent in this world. The clock stands at zero.
    pub fn new(config: Config, world: World) -> Self {
        let mut sim = Self {
            agent: Agent::new(config),
            world,
            now: Instant::ZERO,
            frames: Vec::new(),
            bytes: Vec::new(),
            log: Vec::new(),
            reports: Vec::new(),
            closed: None,
            moments: None,
            keeps: true,
            laws: Laws::default(),
            cards: vec![Card::Choose("allow_once")],
            buffers: Default::default(),
            editor: None,
            reads: true,
            unsent: 0,
            wrote: false,
            outbox: Default::default(),
            deadline: None,
            line: Vec::new(),
            sent: 0,
            steps: 0,
        };
        sim.tell(Told::Wall(WallClock {
            unix_ms: 1_700_000_000_000,
        }));
        sim
    }

    /// The client sends a message; it is read when there is room.
    pub fn send(&mut self, message: &Value) {
        self.send_bytes(&json::line(message));
    }

    /// The client sends bytes, whole lines or not.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(at) = memchr::memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(at + 1);
            self.line.extend_from_slice(line);
            self.sent += 1;
            self.laws.sent(&std::mem::take(&mut self.line));
            rest = behind;
        }
        self.line.extend_from_slice(rest);
        self.outbox.extend(bytes);
    }

    /// Gives the machine one input and drains it.
    pub fn tell(&mut self, told: Told) {
        self.note();
        match &told {
            Told::Received(bytes) => {
                self.agent.handle_input(self.now, Input::Received(bytes));
            }
            Told::Unsent(bytes) => self.agent.handle_input(self.now, Input::Unsent(*bytes)),
            Told::PeerFinished => self.agent.handle_input(self.now, Input::PeerFinished),
            Told::PeerGone => self.agent.handle_input(self.now, Input::PeerGone),
            Told::Call(id, say) => {
                let (id, news): (CallId, News<'_>) = (*id, say.news());
                self.agent.handle_input(self.now, Input::Call { id, news });
            }
            Told::Wall(wall) => self.agent.handle_input(self.now, Input::Wall(*wall)),
            Told::Timeout => self.agent.handle_timeout(self.now),
        }
        self.keep(told);
        self.drain();
        // As a driver does: after every write it says what is unsent, also when that is nothing.
        while std::mem::take(&mut self.wrote) && self.closed.is_none() {
            let told = Told::Unsent(self.unsent);
            self.agent
                .handle_input(self.now, Input::Unsent(self.unsent));
            self.keep(told);
            self.drain();
        }
    }

    fn keep(&mut self, told: Told) {
        if self.keeps {
            self.log.push(Entry::In(self.now, told));
        }
    }

    /// Runs until nothing more will happen within `time`, and lets that time pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now.plus(time);
        while self.step(end) {}
        self.now = self.now.max(end);
    }

    /// Runs until `done`, or panics after a minute of virtual time.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let end = self.now.plus(Duration::from_secs(60));
        while !done(self) {
            assert!(
                self.step(end),
                "never came: {what}\n{:#?}\n{:#?}",
                self.frames.iter().rev().take(5).collect::<Vec<_>>(),
                self.reports
            );
        }
    }

    /// Runs until the request `id` is answered, and gives the answer.
    #[track_caller]
    pub fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        // What was looked at is not looked at again: long exchanges have many frames.
        let mut from = 0;
        let mut found = None;
        self.until(&format!("the answer to {id}"), |sim| {
            if from < sim.frames.len() {
                found = json::answer_to(&sim.frames[from..], id.clone()).cloned();
                from = sim.frames.len();
            }
            found.is_some()
        });
        found.expect("just seen")
    }

    /// Sends a request and runs until it is answered.
    #[track_caller]
    pub fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        self.answer(message["id"].clone())
    }

    /// Shakes hands with these capabilities and opens a session in `cwd`; gives its id.
    #[track_caller]
    pub fn open(&mut self, capabilities: Value, cwd: &str) -> String {
        self.ask(&json::initialize_with(9001, capabilities));
        self.open_another(9002, cwd)
    }

    /// Opens one more session.
    #[track_caller]
    pub fn open_another(&mut self, id: u64, cwd: &str) -> String {
        let answer = self.ask(&json::new_session(id, cwd));
        let session = answer["result"]["sessionId"].as_str();
        session
            .unwrap_or_else(|| panic!("no session: {answer}"))
            .into()
    }

    /// The client ends its input; runs until the agent has closed.
    #[track_caller]
    pub fn finish(&mut self) -> CloseReason {
        self.run_for(Duration::ZERO);
        self.tell(Told::PeerFinished);
        self.until("the end", |sim| sim.closed.is_some());
        self.closed.expect("just seen")
    }

    /// How many bytes the machine takes from the client now.
    pub fn room(&self) -> usize {
        self.agent.room(Source::Peer)
    }

    /// How many lines the client has sent.
    pub fn sent(&self) -> usize {
        self.sent
    }

    /// The deadline the last drain ended with.
    pub fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// Only what the machine wanted.
    pub fn effects(&self) -> Vec<&str> {
        let outs = self.log.iter().filter_map(|entry| match entry {
            Entry::Out(effect) => Some(effect.as_str()),
            Entry::In(..) => None,
        });
        outs.collect()
    }

    /// The next thing that happens not later than `end`: bytes of the client first, then news, then
    /// the deadline. False if there is none.
    fn step(&mut self, end: Instant) -> bool {
        self.steps += 1;
        assert!(self.steps < MOST_STEPS, "a drive that does not end");
        let room = self.room();
        if !self.outbox.is_empty() && room > 0 && self.closed.is_none() {
            let bytes = match room >= self.outbox.len() {
                true => std::mem::take(&mut self.outbox).into(),
                false => self.outbox.drain(..room).collect(),
            };
            self.tell(Told::Received(bytes));
            return true;
        }
        let news = self.world.next_due(|id| self.agent.room(Source::Call(id)));
        let wake = self.deadline.map(|deadline| deadline.at);
        let spoken = self.editor.as_ref().and_then(Editor::next_due);
        let sooner = |at: Option<Instant>| at.is_none_or(|at| spoken.is_some_and(|it| it <= at));
        if let Some(at) = spoken
            && at <= end
            && self.closed.is_none()
            && sooner(news.map(|(due, _)| due))
            && sooner(wake)
        {
            self.now = self.now.max(at);
            let now = self.now;
            let said = self.editor.as_mut().and_then(|editor| editor.take(now));
            if let Some(said) = said {
                self.send(&said);
            }
            return true;
        }
        match (news, wake) {
            (Some((due, id)), wake) if wake.is_none_or(|at| due <= at) && due <= end => {
                self.now = self.now.max(due);
                let room = self.agent.room(Source::Call(id));
                if let Some(said) = self.world.take(self.now, id, room) {
                    self.tell(Told::Call(id, said));
                }
                true
            }
            (_, Some(at)) if at <= end => {
                self.now = self.now.max(at);
                let before = self.deadline;
                self.tell(Told::Timeout);
                assert!(
                    self.deadline != before || at > self.now,
                    "a served deadline stays: {before:?}"
                );
                true
            }
            _ => false,
        }
    }

    fn drain(&mut self) {
        let mut left = MOST_STEPS;
        loop {
            left -= 1;
            assert!(left > 0, "a drain that does not end");
            let effect = match self.agent.poll_effect() {
                Next::Do(effect) => effect,
                Next::Wait(deadline) => {
                    self.deadline = deadline;
                    break;
                }
            };
            assert!(
                self.closed.is_none(),
                "an effect after the close: {effect:?}"
            );
            // No key is in what it says, writes or reports, whatever happened in the world.
            match &effect {
                Effect::Transmit(bytes) => no_leak("a frame", bytes),
                Effect::Report(report) => no_leak("a report", report.text.as_bytes()),
                Effect::Start { call, .. } => match call {
                    Call::Append(append) => no_leak("a record", &append.bytes),
                    Call::Write(write) => no_leak("a file", &write.bytes),
                    Call::Http(request) => no_leak("a request", &request.body),
                    call => no_leak("a call", format!("{call:?}").as_bytes()),
                },
                Effect::Feed { .. } | Effect::FeedEnd { .. } | Effect::Abort { .. } => {}
                Effect::Close(_) => {}
            }
            if self.keeps {
                self.log.push(Entry::Out(show(&effect)));
            }
            match effect {
                Effect::Transmit(bytes) => {
                    let frame = self.laws.heard(bytes).expect("a frame is JSON");
                    if self.keeps {
                        self.bytes.extend_from_slice(bytes);
                    }
                    self.unsent += bytes.len();
                    self.wrote = true;
                    let now = self.now;
                    let disk = &mut self.world.disk;
                    let heard = |editor: &mut Editor| {
                        let heard = editor.hear(now, &frame);
                        for (path, text) in editor.take_unsaved() {
                            disk.save(&path, &text);
                        }
                        heard
                    };
                    if !self.editor.as_mut().is_some_and(heard)
                        && let Some(reply) = self.reply(&frame)
                    {
                        self.send(&reply);
                    }
                    self.frames.push(frame);
                }
                Effect::Start { id, call } => self.world.start(self.now, id, &call),
                Effect::Feed { id, bytes } => self.world.feed(self.now, id, bytes.len()),
                Effect::FeedEnd { .. } => {}
                Effect::Abort { id } => self.world.abort(self.now, id),
                Effect::Report(report) => self.reports.push(report),
                Effect::Close(reason) => {
                    self.closed = Some(reason);
                    self.laws.closed();
                }
            }
            self.note();
        }
        if self.reads {
            self.unsent = 0;
        }
    }

    /// Keeps this moment, if moments are wanted and it is not like the last one.
    fn note(&mut self) {
        let Some(moments) = &mut self.moments else {
            return;
        };
        let moment = |disk: Disk| Moment {
            disk,
            frames: self.frames.len(),
            sent: self.sent,
            ran: self.world.ran.len(),
            requests: self.world.requests.len(),
        };
        let same = moments.last().is_some_and(|last| {
            last.disk.changes() == self.world.disk.changes()
                && (last.frames, last.sent) == (self.frames.len(), self.sent)
                && last.ran == self.world.ran.len()
                && last.requests == self.world.requests.len()
        });
        if !same {
            moments.push(moment(self.world.disk.clone()));
        }
    }

    /// The client starts to read again, all that was sent.
    pub fn read_again(&mut self) {
        self.reads = true;
        self.unsent = 0;
        self.tell(Told::Unsent(0));
    }

    /// What the client says to a request of the agent.
    fn reply(&mut self, frame: &Value) -> Option<Value> {
        let (id, method) = (frame.get("id")?, frame.get("method")?.as_str()?);
        let params = &frame["params"];
        Some(match method {
            "session/request_permission" => {
                let card = match self.cards.len() {
                    0 => Card::Silence,
                    1 => self.cards[0].clone(),
                    _ => self.cards.remove(0),
                };
                return reply_to_card(id, params, &card);
            }
            "fs/read_text_file" => {
                match self
                    .buffers
                    .get(params["path"].as_str().unwrap_or_default())
                {
                    Some(text) => json::result(id, json::json!({"content": text})),
                    None => json::error(id, -32002, "not open"),
                }
            }
            "fs/write_text_file" => {
                let path = params["path"].as_str().unwrap_or_default().to_string();
                let text = params["content"].as_str().unwrap_or_default().to_string();
                self.buffers.insert(path, text);
                json::result(id, json::json!({}))
            }
            _ => json::error(id, -32601, "not here"),
        })
    }
}

/// What a client says to a permission request.
pub fn reply_to_card(id: &Value, params: &Value, card: &Card) -> Option<Value> {
    match card {
        Card::Choose(kind) => {
            let options = params["options"].as_array()?;
            let option = options.iter().find(|option| option["kind"] == *kind)?;
            let outcome = json::json!({"outcome": "selected", "optionId": option["optionId"]});
            Some(json::result(id, json::json!({"outcome": outcome})))
        }
        Card::Raw(text) => {
            let result: Value = serde_json::from_str(text).expect("a card's answer is JSON");
            Some(json::result(id, result))
        }
        Card::Error => Some(json::error(id, -32603, "the editor failed")),
        Card::Silence => None,
    }
}

/// The effect as text in which a frame, a request and a record can be read.
fn show(effect: &Effect<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_string();
    match effect {
        Effect::Transmit(bytes) => format!("Transmit {}", text(bytes)),
        Effect::Start { id, call } => match call {
            Call::Http(request) => {
                let body = text(&request.body);
                let head = HttpRequest {
                    body: Vec::new(),
                    ..request.clone()
                };
                format!("Start {id} {head:?} {body}")
            }
            Call::Append(append) => {
                let Append { path, durable, .. } = append;
                format!("Start {id} Append {path} {durable} {}", text(&append.bytes))
            }
            call => format!("Start {id} {call:?}"),
        },
        effect => format!("{effect:?}"),
    }
}

/// The same inputs at the same times to a new agent: what it wants now.
pub fn replay(config: Config, log: &[Entry]) -> Vec<String> {
    let mut agent = Agent::new(config);
    let mut wanted = Vec::new();
    for entry in log {
        let Entry::In(now, told) = entry else {
            continue;
        };
        match told {
            Told::Received(bytes) => agent.handle_input(*now, Input::Received(bytes)),
            Told::Unsent(bytes) => agent.handle_input(*now, Input::Unsent(*bytes)),
            Told::PeerFinished => agent.handle_input(*now, Input::PeerFinished),
            Told::PeerGone => agent.handle_input(*now, Input::PeerGone),
            Told::Call(id, say) => agent.handle_input(
                *now,
                Input::Call {
                    id: *id,
                    news: say.news(),
                },
            ),
            Told::Wall(wall) => agent.handle_input(*now, Input::Wall(*wall)),
            Told::Timeout => agent.handle_timeout(*now),
        }
        while let Next::Do(effect) = agent.poll_effect() {
            wanted.push(show(&effect));
        }
    }
    wanted
}

/// A configuration with nothing ambient in it, and one model whose key nobody may ever see.
pub fn config() -> Config {
    let host = Host {
        os: "linux".into(),
        shell: "bash".into(),
        user_home: Some("/home/user".into()),
        home: Some("/home/user/.reasonix".into()),
        tmp: "/tmp".into(),
        sandbox: Sandboxing::Landlock { abi: 7 },
    };
    let mut config = Config::new([7; 32], host);
    config.ephemeral = true;
    config.settings.default_model = Some("local/tiny".into());
    config.settings.providers = vec![Provider {
        name: "local".into(),
        base_url: "http://model.test/v1".into(),
        api_key_env: Some(PLANTED[0].0.into()),
        api_key: Some(Secret::new(PLANTED[0].0, PLANTED[0].1)),
        max_retries: 2,
        idle_timeout: Duration::from_secs(30),
        models: vec![Model {
            id: "tiny".into(),
            context_window: Some(128_000),
            ..Model::default()
        }],
    }];
    config
}
