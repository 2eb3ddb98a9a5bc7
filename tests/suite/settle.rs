//! Who is answered what: each side of the protocol against a model that knows no more than lists of
//! what is open. The model says every answer on the wire and everything the embedder is told, in
//! order, so an answer too many, too few or of the wrong kind is a difference.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use proptest::prelude::*;
use reasonix_core::ids::{AskId, TurnKey};
use reasonix_core::limits::Limits;
use reasonix_core::protocol::schema::{
    AgentCapabilities, CloseSessionResponse, InitializeRequest, InitializeResponse, Json, Marker,
    NewSessionResponse, PermissionOption, PermissionOptionKind, PromptResponse, ProtocolVersion,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, StopReason, ToolCallUpdate,
};
use reasonix_core::protocol::{
    AgentAnswer, AgentEvent, AgentSide, Asked, ClientAnswer, ClientEvent, ClientSide, CloseReason,
    PeerInput, SideEffect, Vendor, methods,
};
use reasonix_core::time::Instant;
use reasonix_core::wire::{RequestKey, RpcError};
use reasonix_core::{Machine, Next};
use reasonix_tests::json::{self, Value, json};

/// Ids as they are written. The third and the fourth are the same one.
const IDS: [&str; 7] = [
    "1",
    "\"1\"",
    "\"a\"",
    "\"\\u0061\"",
    "-7",
    "18446744073709551617",
    "null",
];

fn same(one: usize, other: usize) -> bool {
    let class = |id| if id == 3 { 2 } else { id };
    class(one) == class(other)
}

/// An answer on the wire in a word: the stop reason, `ok`, the outcome of a card, `data.code` or
/// the code.
fn word(frame: &Value) -> String {
    let result = &frame["result"];
    let said = [
        &result["stopReason"],
        &result["outcome"]["optionId"],
        &result["outcome"]["outcome"],
        &frame["error"]["data"]["code"],
    ];
    match said.into_iter().find_map(Value::as_str) {
        Some(word) => word.into(),
        None if frame.get("error").is_some() => frame["error"]["code"].to_string(),
        None => "ok".into(),
    }
}

/// The id of a frame as it is written, so that an echo that changes it is seen.
fn raw_id(line: &str) -> &str {
    let from = line.find("\"id\":").expect("an answer has an id") + 5;
    let rest = &line[from..];
    let end = rest.find(",\"").expect("something follows the id");
    &rest[..end]
}

/// What came of a run: answers on the wire, and what the embedder was told.
#[derive(Debug, Default, PartialEq, Eq)]
struct Log {
    answers: Vec<(&'static str, String)>,
    told: Vec<String>,
}

impl Log {
    fn answer(&mut self, id: usize, word: impl Into<String>) {
        self.answers.push((IDS[id], word.into()));
    }

    fn heard(&mut self, line: &str) {
        let frame: Value = serde_json::from_str(line).expect("a frame is JSON");
        if frame.get("method").is_none() {
            let id = raw_id(line);
            let known = IDS.iter().find(|known| **known == id);
            self.answers.push((known.unwrap_or(&"?"), word(&frame)));
        }
    }

    fn tell(&mut self, what: &str, of: impl std::fmt::Display, word: &str) {
        self.told.push(format!("{what} {of} {word}"));
    }
}

/// How the other side answers a request.
#[derive(Clone, Copy, Debug)]
enum Form {
    Good,
    Cancelled,
    NotOffered,
    Error,
    WrongShape,
    Both,
    /// A good answer under the id as a string.
    OtherId,
}

const FORMS: [Form; 7] = [
    Form::Good,
    Form::Cancelled,
    Form::NotOffered,
    Form::Error,
    Form::WrongShape,
    Form::Both,
    Form::OtherId,
];

impl Form {
    fn line(self, id: u64) -> String {
        let chosen = |option: &str| json!({"outcome": {"outcome": "selected", "optionId": option}});
        let good = chosen("yes");
        let failed = json!({"code": -5, "message": "no"});
        let frame = match self {
            Self::Good => json!({"id": id, "result": good}),
            Self::OtherId => json!({"id": id.to_string(), "result": good}),
            Self::Cancelled => json!({"id": id, "result": {"outcome": {"outcome": "cancelled"}}}),
            Self::NotOffered => json!({"id": id, "result": chosen("made-up")}),
            Self::Error => json!({"id": id, "error": failed}),
            Self::WrongShape => json!({"id": id, "result": 7}),
            Self::Both => json!({"id": id, "result": good, "error": failed}),
        };
        let mut frame = frame;
        frame["jsonrpc"] = json!("2.0");
        frame.to_string()
    }

    /// What it settles a permission request with; none: nothing.
    fn of_card(self) -> Option<&'static str> {
        Some(match self {
            Self::Good => "yes",
            Self::Cancelled => "cancelled",
            Self::Error => "-5",
            Self::NotOffered | Self::WrongShape | Self::Both => "-32603",
            Self::OtherId => return None,
        })
    }

    /// The same for a request whose answer may be anything.
    fn of_vendor(self) -> Option<&'static str> {
        Some(match self {
            Self::Good | Self::Cancelled | Self::NotOffered | Self::WrongShape => "ok",
            Self::Error => "-5",
            Self::Both => "-32603",
            Self::OtherId => return None,
        })
    }
}

fn card(session: usize) -> RequestPermissionRequest {
    let option = PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce);
    let call = ToolCallUpdate::new("c");
    RequestPermissionRequest::new(format!("s{session}"), call, vec![option])
}

fn code(error: &RpcError) -> String {
    error.code.to_string()
}

fn request(id: usize, method: &str, params: &Value) -> String {
    let id = IDS[id];
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn cancel_request(id: usize) -> String {
    let params = IDS[id];
    format!(r#"{{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":{params}}}}}"#)
}

// The agent's side.

/// What happens to the agent's side. Numbers pick one of what there is.
#[derive(Clone, Debug)]
enum Act {
    Vendor(usize),
    Unknown(usize),
    Malformed(usize),
    Prompt(usize, usize),
    Close(usize, usize),
    Cancel(usize),
    CancelRequest(usize),
    /// The embedder ends a turn, well or not.
    Finish(usize, bool),
    /// It answers another request.
    Answer(usize, bool),
    Card(usize),
    AskVendor,
    Withdraw(u64),
    /// The client answers a request of the agent that is open, is over, or never was.
    Reply(u64, Form),
}

fn act() -> impl Strategy<Value = Act> {
    let id = || 0..IDS.len();
    let session = || 0..2_usize;
    let form = || prop::sample::select(FORMS.to_vec());
    prop_oneof![
        3 => id().prop_map(Act::Vendor),
        1 => id().prop_map(Act::Unknown),
        1 => id().prop_map(Act::Malformed),
        6 => (id(), session()).prop_map(|(id, session)| Act::Prompt(id, session)),
        2 => (id(), session()).prop_map(|(id, session)| Act::Close(id, session)),
        2 => session().prop_map(Act::Cancel),
        4 => id().prop_map(Act::CancelRequest),
        4 => (0..4_usize, any::<bool>()).prop_map(|(nth, good)| Act::Finish(nth, good)),
        4 => (0..4_usize, any::<bool>()).prop_map(|(nth, good)| Act::Answer(nth, good)),
        2 => session().prop_map(Act::Card),
        1 => Just(Act::AskVendor),
        1 => (0..6_u64).prop_map(Act::Withdraw),
        5 => (0..6_u64, form()).prop_map(|(id, form)| Act::Reply(id, form)),
    ]
}

/// What the model knows of one open request.
#[derive(Clone, Debug)]
struct Open {
    /// Its place among all requests, which names it to the embedder.
    serial: usize,
    id: usize,
    what: What,
    withdrawn: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Vendor,
    Turn { session: usize, cancelled: bool },
    Close { session: usize, asked: bool },
    Held,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    Prompt,
    Close,
    /// A `session/cancel` among what waits.
    Cancel,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Closing,
    Over,
}

/// Lists of what is open, and nothing else.
#[derive(Debug, Default)]
struct Model {
    log: Log,
    open: Vec<Open>,
    sessions: [State; 2],
    held: [VecDeque<(usize, Wants)>; 2],
    /// Requests of the agent: the session, if it is a card.
    asks: BTreeMap<u64, Option<usize>>,
    asked: u64,
}

impl Model {
    /// A request of the client.
    fn request(&mut self, serial: usize, id: usize, what: What, wants: Wants) {
        if self.open.iter().any(|open| same(open.id, id)) {
            return self.log.answer(id, "id_in_use");
        }
        let vendor = what == What::Vendor;
        // What asks for a session is nothing yet before it is there.
        let (session, what) = match what {
            What::Turn { session, .. } | What::Close { session, .. } => (session, What::Held),
            What::Vendor | What::Held => (0, what),
        };
        self.open.push(Open {
            serial,
            id,
            what,
            withdrawn: false,
        });
        match vendor {
            true => self.log.tell("asked", serial, ""),
            false => self.admit(serial, session, wants),
        }
    }

    /// It comes to its session, at once or after it has waited.
    fn admit(&mut self, serial: usize, session: usize, wants: Wants) {
        match (self.sessions[session], wants) {
            (State::Over, Wants::Prompt) => self.settle(serial, "session_not_found"),
            (State::Over, Wants::Close) => self.settle(serial, "ok"),
            (State::Closing, Wants::Prompt | Wants::Close) => {
                self.get(serial).what = What::Held;
                self.held[session].push_back((serial, wants));
            }
            (State::Open, Wants::Prompt) => match self.turn_of(session) {
                Some(_) => self.settle(serial, "session_busy"),
                None => {
                    let cancelled = false;
                    self.get(serial).what = What::Turn { session, cancelled };
                    self.log.tell("asked", serial, "");
                }
            },
            (State::Open, Wants::Close) => {
                self.sessions[session] = State::Closing;
                let turn = self.turn_of(session);
                let asked = turn.is_none();
                self.get(serial).what = What::Close { session, asked };
                match turn {
                    Some(turn) => self.cancel_turn(turn),
                    None => self.log.tell("asked", serial, ""),
                }
            }
            (_, Wants::Cancel) => self.cancel(session),
        }
    }

    fn get(&mut self, serial: usize) -> &mut Open {
        let open = self.open.iter_mut().find(|open| open.serial == serial);
        open.expect("the model names what is open")
    }

    fn settle(&mut self, serial: usize, word: &str) {
        let at = self.open.iter().position(|open| open.serial == serial);
        let open = self.open.remove(at.expect("the model names what is open"));
        self.log.answer(open.id, word);
    }

    fn turn_of(&self, of: usize) -> Option<usize> {
        let mut turns = self.open.iter().filter_map(|open| match open.what {
            What::Turn { session, .. } if session == of => Some(open.serial),
            _ => None,
        });
        turns.next()
    }

    fn cancel_turn(&mut self, serial: usize) {
        if let What::Turn { cancelled, .. } = &mut self.get(serial).what
            && !std::mem::replace(cancelled, true)
        {
            self.log.tell("cancel", serial, "");
        }
    }

    /// `session/cancel`.
    fn cancel(&mut self, session: usize) {
        if self.sessions[session] == State::Over {
            return;
        }
        if let Some(turn) = self.turn_of(session) {
            self.cancel_turn(turn);
        }
        if !self.held[session].is_empty() {
            self.held[session].push_back((0, Wants::Cancel));
        }
    }

    fn cancel_open(&mut self, serial: usize) {
        let open = self.get(serial).clone();
        match open.what {
            What::Turn { .. } => self.cancel_turn(serial),
            What::Held => {
                let mut kind = Wants::Cancel;
                for held in &mut self.held {
                    held.retain(|(held, wants)| {
                        let it = *held == serial && *wants != Wants::Cancel;
                        if it {
                            kind = *wants;
                        }
                        !it
                    });
                }
                let word = if kind == Wants::Prompt {
                    "cancelled"
                } else {
                    "-32800"
                };
                self.settle(serial, word);
            }
            What::Vendor | What::Close { .. } => {
                if !std::mem::replace(&mut self.get(serial).withdrawn, true) {
                    self.log.tell("withdrawn", serial, "");
                }
            }
        }
    }

    /// Turns, or other requests, that the embedder may end: the n-th of them.
    fn pick(&self, turns: bool, nth: usize) -> Option<usize> {
        let mine = |open: &&Open| match open.what {
            What::Turn { .. } => turns,
            What::Vendor | What::Close { asked: true, .. } => !turns,
            What::Close { .. } | What::Held => false,
        };
        let all: Vec<_> = self.open.iter().filter(mine).map(|o| o.serial).collect();
        (!all.is_empty()).then(|| all[nth % all.len()])
    }

    fn finish(&mut self, serial: usize, good: bool) {
        let What::Turn { session, cancelled } = self.get(serial).what else {
            return;
        };
        let word = match (cancelled, good) {
            (true, _) => "cancelled",
            (false, true) => "end_turn",
            (false, false) => "-32603",
        };
        self.settle(serial, word);
        for open in &mut self.open {
            if let What::Close { session: of, asked } = &mut open.what
                && *of == session
                && !std::mem::replace(asked, true)
            {
                self.log.tell("asked", open.serial, "");
            }
        }
    }

    fn answer(&mut self, serial: usize, good: bool) {
        let what = self.get(serial).what.clone();
        self.settle(serial, if good { "ok" } else { "-32603" });
        let What::Close { session, .. } = what else {
            return;
        };
        self.sessions[session] = State::Open;
        if good {
            self.sessions[session] = State::Over;
            let lost: Vec<u64> = self
                .asks
                .iter()
                .filter(|(_, of)| **of == Some(session))
                .map(|(ask, _)| *ask)
                .collect();
            for ask in lost {
                self.asks.remove(&ask);
                self.log.tell("settled", ask, "-32800");
            }
        }
        // What waited comes in its order; what is to wait again does so.
        for (serial, wants) in std::mem::take(&mut self.held[session]) {
            self.admit(serial, session, wants);
        }
    }

    fn reply(&mut self, ask: u64, form: Form) {
        let Some(session) = self.asks.get(&ask) else {
            return;
        };
        let word = match session {
            Some(_) => form.of_card(),
            None => form.of_vendor(),
        };
        if let Some(word) = word {
            self.asks.remove(&ask);
            self.log.tell("settled", ask, word);
        }
    }

    /// No more comes from the client.
    fn finished(&mut self) {
        for open in self.open.clone() {
            if matches!(open.what, What::Turn { .. } | What::Held) {
                self.cancel_open(open.serial);
            }
        }
        for ask in std::mem::take(&mut self.asks).into_keys() {
            self.log.tell("settled", ask, "-32800");
        }
    }

    /// And the embedder had time enough.
    fn given_up(&mut self) {
        for open in self.open.clone() {
            let turn = matches!(open.what, What::Turn { .. });
            self.settle(open.serial, if turn { "cancelled" } else { "-32800" });
        }
    }
}

/// A right to answer.
enum Right {
    Vendor(Asked<Vendor>),
    Close(Asked<methods::CloseSession>),
}

/// The agent's side and an embedder that keeps what it is given.
struct Agent {
    side: AgentSide,
    now: Instant,
    log: Log,
    turns: BTreeMap<usize, TurnKey>,
    rights: BTreeMap<usize, Right>,
    keys: Vec<(RequestKey, usize)>,
    withdrawn: Vec<(usize, RequestKey)>,
    closes: [Vec<usize>; 2],
    fresh: Vec<Asked<methods::NewSession>>,
    closed: Option<CloseReason>,
}

impl Agent {
    /// Initialized, with two sessions.
    fn new() -> Self {
        let mut agent = Self {
            side: AgentSide::new(Limits::default()),
            now: Instant::ZERO,
            log: Log::default(),
            turns: BTreeMap::new(),
            rights: BTreeMap::new(),
            keys: Vec::new(),
            withdrawn: Vec::new(),
            closes: Default::default(),
            fresh: Vec::new(),
            closed: None,
        };
        agent.say(&json::initialize(0).to_string());
        for session in 0..2 {
            agent.say(&json::new_session(0, "/w").to_string());
            let asked = agent.fresh.pop().expect("asked for a session");
            let id = format!("s{session}");
            agent.side.open(asked, NewSessionResponse::new(id));
            agent.drain();
        }
        agent.log = Log::default();
        agent
    }

    fn say(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.side
            .handle_input(self.now, PeerInput::Received(line.as_bytes()));
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            match self.side.poll_effect() {
                Next::Do(SideEffect::Transmit(frame)) => {
                    let line = std::str::from_utf8(frame).expect("a frame is text");
                    self.log.heard(line);
                    self.side.handle_input(self.now, PeerInput::Unsent(0));
                }
                Next::Do(SideEffect::Event(event)) => self.told(event),
                Next::Do(SideEffect::Close(reason)) => {
                    assert_eq!(self.closed.replace(reason), None, "closed twice");
                }
                Next::Wait(_) => return,
            }
        }
    }

    fn told(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Initialize { asked, .. } => {
                let mut response = InitializeResponse::new(ProtocolVersion::V1);
                let mut offers = AgentCapabilities::default();
                offers.session_capabilities.close = Some(Marker::default());
                response.agent_capabilities = offers;
                self.side.answer(asked, Ok(response));
            }
            AgentEvent::NewSession { asked, .. } => self.fresh.push(asked),
            AgentEvent::Prompt { turn, request, .. } => {
                let text = request.prompt[0].as_text().expect("a prompt is text");
                let serial = text.parse().expect("that is a number");
                self.turns.insert(serial, turn);
                self.log.tell("asked", serial, "");
            }
            AgentEvent::Cancel { turn } => {
                let mut known = self.turns.iter().filter(|(_, key)| **key == turn);
                let serial = known.next().map_or(usize::MAX, |(serial, _)| *serial);
                self.log.tell("cancel", serial, "");
            }
            AgentEvent::VendorRequest { asked, params, .. } => {
                let params: Value = serde_json::from_str(params.as_ref().map_or("", Json::get))
                    .expect("params are JSON");
                let serial = params["n"].as_u64().expect("that is a number") as usize;
                self.keys.push((asked.key(), serial));
                self.rights.insert(serial, Right::Vendor(asked));
                self.log.tell("asked", serial, "");
            }
            AgentEvent::CloseSession { asked, request, .. } => {
                let session = usize::from(request.session_id.as_str() == "s1");
                // One close of a session is open at a time: the one that waited longest.
                let serial = self.closes[session].remove(0);
                self.keys.push((asked.key(), serial));
                self.rights.insert(serial, Right::Close(asked));
                self.log.tell("asked", serial, "");
            }
            AgentEvent::CancelRequest { key } => {
                self.withdrawn.push((self.log.told.len(), key));
                self.log.told.push(String::new());
            }
            AgentEvent::Settled { ask, answer } => {
                let word = match &answer {
                    ClientAnswer::RequestPermission(Ok(response)) => match &response.outcome {
                        RequestPermissionOutcome::Selected(option) => {
                            option.option_id.as_str().to_string()
                        }
                        _ => "cancelled".into(),
                    },
                    other => other.error().map_or("ok".into(), code),
                };
                self.log.tell("settled", ask.number(), &word);
            }
            AgentEvent::Misbehaved(_) | AgentEvent::PeerFinished => {}
            other => panic!("not asked for: {other:?}"),
        }
    }

    fn later(&mut self) {
        self.now = self.now.plus(Duration::from_secs(100));
        self.side.handle_timeout(self.now);
        self.drain();
    }

    /// The log, with the withdrawn requests under their names.
    fn log(mut self) -> Log {
        for (at, key) in self.withdrawn {
            let serial = self.keys.iter().find(|(known, _)| *known == key);
            // A close that was never given to the embedder has no name; the model's text says so.
            self.log.told[at] = match serial {
                Some((_, serial)) => format!("withdrawn {serial} "),
                None => "withdrawn ? ".into(),
            };
        }
        self.log
    }
}

fn play_agent(acts: &[Act], answered: usize) -> (Log, Log) {
    let mut model = Model::default();
    let mut agent = Agent::new();
    for (serial, act) in acts.iter().enumerate() {
        let session_id = |session: &usize| json!(format!("s{session}"));
        match act {
            Act::Vendor(id) => {
                model.request(serial, *id, What::Vendor, Wants::Prompt);
                agent.say(&request(*id, "_x", &json!({"n": serial})));
            }
            Act::Unknown(id) | Act::Malformed(id) => {
                let taken = model.open.iter().any(|open| same(open.id, *id));
                let (method, word) = match act {
                    Act::Unknown(_) => ("no/such", "-32601"),
                    _ => ("session/prompt", "-32602"),
                };
                model
                    .log
                    .answer(*id, if taken { "id_in_use" } else { word });
                agent.say(&request(*id, method, &json!([])));
            }
            Act::Prompt(id, session) => {
                let what = What::Turn {
                    session: *session,
                    cancelled: false,
                };
                model.request(serial, *id, what, Wants::Prompt);
                let block = json!([{"type": "text", "text": serial.to_string()}]);
                let params = json!({"sessionId": session_id(session), "prompt": block});
                agent.say(&request(*id, "session/prompt", &params));
            }
            Act::Close(id, session) => {
                let what = What::Close {
                    session: *session,
                    asked: false,
                };
                model.request(serial, *id, what, Wants::Close);
                // One that is answered at once never comes to the embedder.
                if model.open.iter().any(|open| open.serial == serial) {
                    agent.closes[*session].push(serial);
                }
                let params = json!({"sessionId": session_id(session)});
                agent.say(&request(*id, "session/close", &params));
            }
            Act::Cancel(session) => {
                model.cancel(*session);
                agent.say(&json::cancel(&format!("s{session}")).to_string());
            }
            Act::CancelRequest(id) => {
                let mut open = model.open.iter().filter(|open| same(open.id, *id));
                if let Some(serial) = open.next().map(|open| open.serial) {
                    model.cancel_open(serial);
                }
                agent.say(&cancel_request(*id));
            }
            Act::Finish(nth, good) => embed(&mut model, &mut agent, true, *nth, *good),
            Act::Answer(nth, good) => embed(&mut model, &mut agent, false, *nth, *good),
            Act::Card(session) => {
                let made = agent
                    .side
                    .ask::<methods::RequestPermission>(&card(*session));
                let known = model.sessions[*session] != State::Over;
                assert_eq!(made.is_ok(), known, "a card for a session that is over");
                if known {
                    model.asked += 1;
                    model.asks.insert(model.asked, Some(*session));
                }
                agent.drain();
            }
            Act::AskVendor => {
                let params = Json::from_text("{}").expect("that is JSON");
                let made = agent.side.ask_vendor("_y", &params);
                model.asked += 1;
                model.asks.insert(model.asked, None);
                assert_eq!(made.map(AskId::number), Ok(model.asked));
                agent.drain();
            }
            Act::Withdraw(ask) => {
                model.asks.remove(ask);
                agent.side.withdraw(AskId::new(*ask));
                agent.drain();
            }
            Act::Reply(ask, form) => {
                model.reply(*ask, *form);
                agent.say(&form.line(*ask));
            }
        }
        // Closes that are gone from the model will not come any more.
        for closes in &mut agent.closes {
            closes.retain(|serial| model.open.iter().any(|open| open.serial == *serial));
        }
    }
    model.finished();
    agent.side.handle_input(agent.now, PeerInput::PeerFinished);
    agent.drain();
    for nth in 0..answered {
        embed(&mut model, &mut agent, nth % 2 == 0, nth, nth % 3 == 0);
    }
    model.given_up();
    agent.later();
    assert_eq!(agent.closed, Some(CloseReason::Finished));
    let named: Vec<usize> = agent.keys.iter().map(|(_, serial)| *serial).collect();
    for told in &mut model.log.told {
        if let Some(serial) = told.strip_prefix("withdrawn ").map(str::trim_end)
            && !named.iter().any(|named| named.to_string() == serial)
        {
            *told = "withdrawn ? ".into();
        }
    }
    (model.log, agent.log())
}

/// The embedder ends the n-th turn, or answers the n-th other request, if there is one.
fn embed(model: &mut Model, agent: &mut Agent, turns: bool, nth: usize, good: bool) {
    let Some(serial) = model.pick(turns, nth) else {
        return;
    };
    let failed = || RpcError::internal("no");
    if turns {
        model.finish(serial, good);
        let turn = agent.turns.get(&serial).expect("the embedder has the turn");
        let handle = agent.side.turn(*turn).expect("the turn is not over");
        match good {
            true => handle.finish(PromptResponse::new(StopReason::EndTurn)),
            false => handle.fail(failed()),
        }
    } else {
        model.answer(serial, good);
        match agent.rights.remove(&serial).expect("it has the right") {
            Right::Vendor(asked) => {
                let result = Json::from_text("{}").expect("that is JSON");
                agent
                    .side
                    .answer(asked, good.then_some(result).ok_or_else(failed));
            }
            Right::Close(asked) => {
                let result = CloseSessionResponse::default();
                agent
                    .side
                    .answer(asked, good.then_some(result).ok_or_else(failed));
            }
        }
    }
    agent.drain();
}

// The client's side.

/// What happens to the client's side.
#[derive(Clone, Debug)]
enum Turn {
    Vendor,
    Prompt(usize),
    /// The agent answers a request of the client that is open, is over, or never was.
    Reply(u64, Form),
    /// The agent asks: by a vendor's method, for a permission, for a file that was not offered, by
    /// an unknown method.
    Asks(usize, usize),
    Card(usize, usize),
    CancelRequest(usize),
    /// The client cancels a session.
    Cancel(usize),
    /// The embedder answers the n-th open request of the agent.
    Answer(usize, bool),
}

fn turn() -> impl Strategy<Value = Turn> {
    let form = || prop::sample::select(FORMS.to_vec());
    let id = || 0..IDS.len();
    prop_oneof![
        2 => Just(Turn::Vendor),
        2 => (0..2_usize).prop_map(Turn::Prompt),
        6 => (0..8_u64, form()).prop_map(|(id, form)| Turn::Reply(id, form)),
        3 => (id(), 0..4_usize).prop_map(|(id, what)| Turn::Asks(id, what)),
        3 => (id(), 0..2_usize).prop_map(|(id, session)| Turn::Card(id, session)),
        3 => id().prop_map(Turn::CancelRequest),
        2 => (0..2_usize).prop_map(Turn::Cancel),
        3 => (0..4_usize, any::<bool>()).prop_map(|(nth, good)| Turn::Answer(nth, good)),
    ]
}

/// An open request of the agent, to the model.
#[derive(Clone, Debug)]
struct Theirs {
    serial: usize,
    id: usize,
    /// The session, if it is a card.
    card: Option<usize>,
    withdrawn: bool,
}

/// A right to answer the agent.
enum ClientRight {
    Vendor(Asked<Vendor>),
    Card(Asked<methods::RequestPermission>),
}

struct Client {
    side: ClientSide,
    log: Log,
    rights: Vec<(usize, ClientRight)>,
    keys: Vec<(RequestKey, usize)>,
    /// The number of the request that the agent makes now.
    serial: usize,
    closed: bool,
}

impl Client {
    fn new() -> Self {
        let mut client = Self {
            side: ClientSide::new(Limits::default()),
            log: Log::default(),
            rights: Vec::new(),
            keys: Vec::new(),
            serial: 0,
            closed: false,
        };
        client
            .side
            .request::<methods::Initialize>(&InitializeRequest::new(ProtocolVersion::V1));
        client.say(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#);
        client.log = Log::default();
        client
    }

    fn say(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.side
            .handle_input(Instant::ZERO, PeerInput::Received(line.as_bytes()));
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            match self.side.poll_effect() {
                Next::Do(SideEffect::Transmit(frame)) => {
                    let line = std::str::from_utf8(frame).expect("a frame is text");
                    self.log.heard(line);
                    self.side.handle_input(Instant::ZERO, PeerInput::Unsent(0));
                }
                Next::Do(SideEffect::Event(event)) => self.told(event),
                Next::Do(SideEffect::Close(_)) => self.closed = true,
                Next::Wait(_) => return,
            }
        }
    }

    fn told(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Answered { ask, answer } => {
                let word = match &answer {
                    AgentAnswer::Prompt(Ok(_)) => "end_turn".into(),
                    other => other.error().map_or("ok".into(), code),
                };
                self.log.tell("answered", ask.number(), &word);
            }
            ClientEvent::VendorRequest { asked, .. } => {
                self.keys.push((asked.key(), self.serial));
                self.rights.push((self.serial, ClientRight::Vendor(asked)));
                self.log.tell("asked", self.serial, "");
            }
            ClientEvent::RequestPermission { asked, .. } => {
                self.keys.push((asked.key(), self.serial));
                self.rights.push((self.serial, ClientRight::Card(asked)));
                self.log.tell("asked", self.serial, "");
            }
            ClientEvent::CancelRequest { key } => {
                let known = self.keys.iter().find(|(known, _)| *known == key);
                let serial = known.map_or(usize::MAX, |(_, serial)| *serial);
                self.log.tell("withdrawn", serial, "");
            }
            ClientEvent::Misbehaved(_) | ClientEvent::PeerFinished => {}
            other => panic!("not asked for: {other:?}"),
        }
    }
}

fn play_client(turns: &[Turn], hangs_up: bool) -> (Log, Log) {
    let mut expected = Log::default();
    // Open requests of the client, and whether they are prompts; the first was `initialize`.
    let mut ours: BTreeMap<u64, bool> = BTreeMap::new();
    let mut asked = 1;
    let mut theirs: Vec<Theirs> = Vec::new();
    let mut client = Client::new();
    for (serial, turn) in turns.iter().enumerate() {
        client.serial = serial;
        match turn {
            Turn::Vendor | Turn::Prompt(_) => {
                asked += 1;
                ours.insert(asked, matches!(turn, Turn::Prompt(_)));
                let id = match turn {
                    Turn::Prompt(session) => {
                        let request = json!({"sessionId": format!("s{session}"), "prompt": []});
                        let request = serde_json::from_value(request).expect("a prompt");
                        client.side.request::<methods::Prompt>(&request)
                    }
                    _ => {
                        let params = serde_json::value::to_raw_value(&json!({})).expect("JSON");
                        client.side.vendor_request("_x", &params)
                    }
                };
                assert_eq!(id.number(), asked);
                client.drain();
            }
            Turn::Reply(id, form) => {
                let word = match ours.get(id) {
                    // No form above is the answer to a prompt.
                    Some(true) => form
                        .of_vendor()
                        .map(|word| if word == "ok" { "-32603" } else { word }),
                    Some(false) => form.of_vendor(),
                    None => None,
                };
                if let Some(word) = word {
                    ours.remove(id);
                    expected.tell("answered", id, word);
                }
                client.say(&form.line(*id));
            }
            Turn::Asks(id, what) => {
                let taken = theirs.iter().any(|open| same(open.id, *id));
                let (method, refused) = match what {
                    0 | 1 => ("_y", None),
                    2 => ("fs/read_text_file", Some("-32601")),
                    _ => ("no/such", Some("-32601")),
                };
                match (taken, refused) {
                    (true, _) if method != "no/such" => expected.answer(*id, "-32600"),
                    (_, Some(word)) => expected.answer(*id, word),
                    (_, None) => {
                        let (card, withdrawn) = (None, false);
                        let id = *id;
                        theirs.push(Theirs {
                            serial,
                            id,
                            card,
                            withdrawn,
                        });
                        expected.tell("asked", serial, "");
                    }
                }
                let params = json!({"sessionId": "s0", "path": "/f"});
                client.say(&request(*id, method, &params));
            }
            Turn::Card(id, session) => {
                if theirs.iter().any(|open| same(open.id, *id)) {
                    expected.answer(*id, "-32600");
                } else {
                    let (card, withdrawn) = (Some(*session), false);
                    let id = *id;
                    theirs.push(Theirs {
                        serial,
                        id,
                        card,
                        withdrawn,
                    });
                    expected.tell("asked", serial, "");
                }
                let params = serde_json::to_value(card(*session)).expect("a card is JSON");
                client.say(&request(*id, "session/request_permission", &params));
            }
            Turn::CancelRequest(id) => {
                let open = theirs.iter_mut().find(|open| same(open.id, *id));
                if let Some(open) = open
                    && !std::mem::replace(&mut open.withdrawn, true)
                {
                    expected.tell("withdrawn", open.serial, "");
                }
                client.say(&cancel_request(*id));
            }
            Turn::Cancel(session) => {
                for open in &theirs {
                    if open.card == Some(*session) {
                        expected.answer(open.id, "cancelled");
                        if !open.withdrawn {
                            expected.tell("withdrawn", open.serial, "");
                        }
                    }
                }
                theirs.retain(|open| open.card != Some(*session));
                client.side.notify_cancel(&format!("s{session}").into());
                client.drain();
            }
            Turn::Answer(nth, good) => {
                if !theirs.is_empty() {
                    let open = theirs.remove(nth % theirs.len());
                    let word = match (good, open.card) {
                        (false, _) => "-32603",
                        (true, Some(_)) => "yes",
                        (true, None) => "ok",
                    };
                    expected.answer(open.id, word);
                    answer(&mut client, open.serial, *good);
                }
            }
        }
    }
    for open in theirs {
        expected.answer(open.id, "-32800");
    }
    for ask in ours.into_keys() {
        expected.tell("answered", ask, "-32603");
    }
    match hangs_up {
        true => client.side.close(),
        false => client
            .side
            .handle_input(Instant::ZERO, PeerInput::PeerFinished),
    }
    client.drain();
    assert!(client.closed);
    // A right that is used after the end says nothing.
    for serial in client
        .rights
        .iter()
        .map(|(serial, _)| *serial)
        .collect::<Vec<_>>()
    {
        answer(&mut client, serial, true);
    }
    (expected, client.log)
}

fn answer(client: &mut Client, serial: usize, good: bool) {
    let at = client.rights.iter().position(|(known, _)| *known == serial);
    let (_, right) = client
        .rights
        .remove(at.expect("the embedder has the right"));
    let failed = || RpcError::internal("no");
    match right {
        ClientRight::Vendor(asked) => {
            let result = Json::from_text("{}").expect("that is JSON");
            client
                .side
                .answer(asked, good.then_some(result).ok_or_else(failed));
        }
        ClientRight::Card(asked) => {
            let yes = SelectedPermissionOutcome::new("yes");
            let result = RequestPermissionResponse::new(RequestPermissionOutcome::Selected(yes));
            client
                .side
                .answer(asked, good.then_some(result).ok_or_else(failed));
        }
    }
    client.drain();
}

proptest! {
    #![proptest_config(crate::machine::cases(256))]

    #[test]
    fn the_agents_side_answers_as_a_list_of_open_requests_says(
        acts in prop::collection::vec(act(), 0..60),
        answered in 0..5_usize,
    ) {
        let (expected, seen) = play_agent(&acts, answered);
        prop_assert_eq!(expected, seen);
    }

    #[test]
    fn the_clients_side_answers_as_a_list_of_open_requests_says(
        turns in prop::collection::vec(turn(), 0..60),
        hangs_up in any::<bool>(),
    ) {
        let (expected, seen) = play_client(&turns, hangs_up);
        prop_assert_eq!(expected, seen);
    }
}
