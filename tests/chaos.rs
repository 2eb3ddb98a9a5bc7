//! An agent at the mercy of bytes: they choose what the client says, what the world says about open
//! and about unknown calls, and how time runs. Asserts what must hold whatever comes. Uses the core
//! alone, so that the fuzz target and the property tests share it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use reasonix_core::agent::{Agent, Config, Effect, Input, WallClock};
use reasonix_core::call::{
    Call, Contents, Exit, FileKind, Found, Listing, News, Opened, Outcome, Part, Resolved, Stream,
};
use reasonix_core::error::{IoFault, IoKind};
use reasonix_core::ids::CallId;
use reasonix_core::model::Script;
use reasonix_core::time::{Deadline, Instant};
use reasonix_core::{Machine, Next, Source};

/// How the bytes of the client are cut before they are given to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// As much as there is room for.
    Whole,
    /// At most this many at once.
    Pieces(usize),
}

/// How a line of what was said and wanted begins that the client sent.
pub const SENT: &str = "Sent ";

/// What the scripted model does, by the prompts below.
const SCRIPT: &str = r#"{"when":{"prompt_contains":"hello"}}
{"thought":"hm"}
{"text":"hello there"}
{"when":{"prompt_contains":"write"}}
{"tool":"write_file","args":{"path":"n.txt","content":"new"}}
{"finish":"tool_calls"}
{"text":"written"}
{"when":{"prompt_contains":"edit"}}
{"tool":"read_file","args":{"path":"a.txt"}}
{"finish":"tool_calls"}
{"tool":"edit_file","args":{"path":"a.txt","old_string":"a","new_string":"b"}}
{"finish":"tool_calls"}
{"text":"edited"}
{"when":{"prompt_contains":"bash"}}
{"tool":"bash","args":{"command":"make","timeout_seconds":1}}
{"tool":"bash","args":{"command":"serve","run_in_background":true}}
{"tool":"bash_output","args":{"id":"1"}}
{"finish":"tool_calls"}
{"text":"ran"}
{"when":{"prompt_contains":"read"}}
{"tool":"read_file","args":{"path":"a.txt"}}
{"tool":"grep","args":{"pattern":"a"}}
{"tool":"ls","args":{"path":"."}}
{"tool":"ask","args":{"questions":[{"question":"which","options":[{"label":"a"},{"label":"b"}]}]}}
{"finish":"tool_calls"}
{"text":"read"}
{"when":{"prompt_contains":"hang"}}
{"text":"part"}
{"hang":true}
{"when":{"prompt_contains":"many"}}
{"repeat":{"chunks":300,"size":300}}
{"sleep_ms":50}
{"error":{"status":429,"retry_after":1}}
"#;

/// Effects one input may have. More is a machine that does not come to rest.
const MOST_EFFECTS: usize = 100_000;

/// Runs an agent on these bytes; gives its effects as text.
pub fn run(mut config: Config, data: &[u8], cut: Cut) -> Vec<String> {
    let mut data = data;
    // Every other run has a script for a model, the rest talk to a provider.
    if byte(&mut data).unwrap_or(0).is_multiple_of(2) {
        config.script = Some(Script::parse(SCRIPT).expect("the script above parses"));
    }
    let mut chaos = Chaos {
        agent: Agent::new(config),
        now: Instant::ZERO,
        cut,
        open: BTreeMap::new(),
        last_call: 0,
        asked: None,
        session: "none".into(),
        id: 0,
        closed: false,
        slow: false,
        wrote: false,
        deadline: None,
        effects: Vec::new(),
    };
    let wall = WallClock {
        unix_ms: 1_700_000_000_000,
    };
    chaos.input(Input::Wall(wall));
    while let Some(choice) = byte(&mut data) {
        chaos.act(choice, &mut data);
    }
    chaos.end();
    chaos.effects
}

struct Chaos {
    agent: Agent,
    now: Instant,
    cut: Cut,
    open: BTreeMap<CallId, Call>,
    last_call: u64,
    asked: Option<String>,
    session: String,
    id: u64,
    closed: bool,
    /// Whether the client has stopped reading.
    slow: bool,
    wrote: bool,
    deadline: Option<Deadline>,
    effects: Vec<String>,
}

fn byte(data: &mut &[u8]) -> Option<u8> {
    let (first, rest) = data.split_first()?;
    *data = rest;
    Some(*first)
}

fn bytes<'d>(data: &mut &'d [u8], most: usize) -> &'d [u8] {
    let length = usize::from(byte(data).unwrap_or(0)) % (most + 1);
    let (head, rest) = data.split_at(length.min(data.len()));
    *data = rest;
    head
}

/// Prompts that the branches of the script and the commands know.
const PROMPTS: [&str; 8] = [
    "hello", "write", "edit", "bash", "read", "hang", "/status", "many",
];

/// Other requests, with the session put in for `$S`.
const REQUESTS: [(&str, &str); 21] = [
    ("session/close", r#"{"sessionId":"$S"}"#),
    ("session/delete", r#"{"sessionId":"$S"}"#),
    ("session/list", r#"{}"#),
    (
        "session/load",
        r#"{"sessionId":"$S","cwd":"/w","mcpServers":[]}"#,
    ),
    ("session/resume", r#"{"sessionId":"$S","cwd":"/w"}"#),
    ("session/set_mode", r#"{"sessionId":"$S","modeId":"plan"}"#),
    (
        "session/set_config_option",
        r#"{"sessionId":"$S","configId":"tool_approval","value":"yolo"}"#,
    ),
    (
        "session/set_config_option",
        r#"{"sessionId":"$S","configId":"mode","value":"plan"}"#,
    ),
    (
        "session/set_model",
        r#"{"sessionId":"$S","modelId":"local/tiny"}"#,
    ),
    ("authenticate", r#"{"methodId":"x"}"#),
    ("logout", "{}"),
    (
        "_reasonix.io/session/steer",
        r#"{"sessionId":"$S","text":"more"}"#,
    ),
    (
        "_reasonix.io/session/steer",
        r#"{"sessionId":"$S","prompt":[{"type":"text","text":"left"}]}"#,
    ),
    (
        "_reasonix.io/session/inbox/enqueue",
        r#"{"sessionId":"$S","text":"hello later"}"#,
    ),
    (
        "_reasonix.io/session/inbox/enqueue",
        r#"{"sessionId":"$S","text":"read @a.txt and @b/c.txt","idempotencyKey":"k"}"#,
    ),
    (
        "_reasonix.io/session/inbox/enqueue",
        r#"{"sessionId":"$S","text":"edit","intent":"steer"}"#,
    ),
    ("_reasonix.io/session/inbox/list", r#"{"sessionId":"$S"}"#),
    (
        "_reasonix.io/session/inbox/setPaused",
        r#"{"sessionId":"$S","paused":true}"#,
    ),
    (
        "_reasonix.io/session/inbox/setPaused",
        r#"{"sessionId":"$S","paused":false}"#,
    ),
    ("nobody/knows", "null"),
    (
        "session/prompt",
        r#"{"sessionId":"$S","prompt":[{"type":"hologram"}]}"#,
    ),
];

/// What a client may answer to a request of the agent.
const ANSWERS: [&str; 7] = [
    r#""result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}"#,
    r#""result":{"outcome":{"outcome":"selected","optionId":"allow_always"}}"#,
    r#""result":{"outcome":{"outcome":"cancelled"}}"#,
    r#""result":{"content":"from the editor"}"#,
    r#""result":null"#,
    r#""error":{"code":-32603,"message":"no"}"#,
    r#""result":{},"error":{"code":1,"message":"both"}"#,
];

impl Chaos {
    fn act(&mut self, choice: u8, data: &mut &[u8]) {
        match choice % 24 {
            // Most runs begin so; then the rest has something to talk to.
            20 | 21 => {
                self.act(0, data);
                self.act(2, data);
            }
            22 | 23 => self.news(data),
            0 => self.request("initialize", r#"{"protocolVersion":1,"clientCapabilities":{}}"#),
            1 => self.request(
                "initialize",
                r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}}"#,
            ),
            2 => self.request("session/new", r#"{"cwd":"/w","mcpServers":[]}"#),
            3..=5 => {
                let text = PROMPTS[usize::from(byte(data).unwrap_or(0)) % PROMPTS.len()];
                let block = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
                let params = format!(r#"{{"sessionId":"{}","prompt":{block}}}"#, self.session);
                self.request("session/prompt", &params);
            }
            6 => {
                let params = format!(r#"{{"sessionId":"{}"}}"#, self.session);
                self.line(&format!(
                    r#"{{"jsonrpc":"2.0","method":"session/cancel","params":{params}}}"#
                ));
            }
            7 => {
                let id = u64::from(byte(data).unwrap_or(0)) % (self.id + 2);
                self.line(&format!(
                    r#"{{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":{id}}}}}"#
                ));
            }
            8 => {
                let raw = bytes(data, 255).to_vec();
                self.receive(&raw);
            }
            9 => {
                let at = usize::from(byte(data).unwrap_or(0)) % REQUESTS.len();
                let (method, params) = REQUESTS[at];
                let params = params.replace("$S", &self.session);
                self.request(method, &params);
            }
            10 => {
                let answer = ANSWERS[usize::from(byte(data).unwrap_or(0)) % ANSWERS.len()];
                let id = self.asked.clone().unwrap_or_else(|| "77".into());
                self.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
            }
            11..=14 => self.news(data),
            15 => {
                let ms = u64::from(byte(data).unwrap_or(0)).pow(2);
                self.now = self.now.plus(Duration::from_millis(ms));
                self.timeout();
            }
            16 => {
                // The clock of a bad driver: earlier than before.
                let before = self.now;
                self.now = Instant::since_start(before.elapsed() / 2);
                self.timeout();
                self.now = before;
                self.timeout();
            }
            17 => {
                if let Some(deadline) = self.deadline {
                    self.now = self.now.max(deadline.at);
                    self.timeout();
                }
            }
            18 => {
                let unsent = usize::from(byte(data).unwrap_or(0)) << 13;
                self.slow = unsent > 0;
                self.input(Input::Unsent(unsent));
            }
            _ => match byte(data).unwrap_or(0) {
                0 => self.input(Input::PeerFinished),
                1 => self.input(Input::PeerGone),
                _ => {
                    self.slow = false;
                    self.input(Input::Unsent(0));
                }
            },
        }
    }

    /// News of an open call, of one that is over, or of one that never was.
    fn news(&mut self, data: &mut &[u8]) {
        let (which, kind) = (byte(data).unwrap_or(0), byte(data).unwrap_or(0));
        let nth = usize::from(which) % (self.open.len() + 1);
        let id = match self.open.keys().nth(nth) {
            Some(id) => *id,
            None => CallId::new(u64::from(which) % (self.last_call + 3)),
        };
        let payload = bytes(data, 200).to_vec();
        let call = self.open.get(&id).cloned();
        let stream = b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
        let room = self.agent.room(Source::Call(id));
        let news = match kind % 8 {
            0 | 1 => News::Done(fitting(call.as_ref(), payload)),
            2 => News::Opened(Opened {
                status: [200, 200, 200, 400, 401, 429, 500, 204][usize::from(kind / 8) % 8],
                headers: vec![("content-type".into(), "text/event-stream".into())],
            }),
            3 => News::Bytes {
                stream: Stream::Out,
                bytes: &payload[..payload.len().min(room)],
            },
            4 => News::Bytes {
                stream: Stream::Err,
                bytes: &stream[..stream.len().min(room)],
            },
            5 => News::Failed(IoFault::new(IoKind::Unreachable, "gone")),
            6 => News::Fed(payload.len()),
            // An outcome that may fit another call.
            _ => News::Done(Outcome::Written),
        };
        if matches!(news, News::Done(_) | News::Failed(_)) {
            self.open.remove(&id);
        }
        self.input(Input::Call { id, news });
    }

    fn request(&mut self, method: &str, params: &str) {
        self.id += 1;
        let id = self.id;
        self.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
    }

    fn line(&mut self, line: &str) {
        self.effects.push(format!("{SENT}{line}"));
        self.receive(format!("{line}\n").as_bytes());
    }

    fn receive(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.closed {
            let room = self.agent.room(Source::Peer);
            let most = match self.cut {
                Cut::Whole => bytes.len(),
                Cut::Pieces(most) => most,
            };
            let take = bytes.len().min(room).min(most);
            if take == 0 {
                break;
            }
            self.input(Input::Received(&bytes[..take]));
            bytes = &bytes[take..];
        }
    }

    fn input(&mut self, input: Input<'_>) {
        self.agent.handle_input(self.now, input);
        self.settle();
    }

    fn timeout(&mut self) {
        self.agent.handle_timeout(self.now);
        self.settle();
    }

    /// Drains; a client that reads takes everything at once, and the machine is told so.
    fn settle(&mut self) {
        self.drain();
        while std::mem::take(&mut self.wrote) && !self.slow && !self.closed {
            self.agent.handle_input(self.now, Input::Unsent(0));
            self.drain();
        }
    }

    fn drain(&mut self) {
        let mut left = MOST_EFFECTS;
        self.deadline = loop {
            left -= 1;
            assert!(left > 0, "a drain that does not end");
            let effect = match self.agent.poll_effect() {
                Next::Do(effect) => effect,
                Next::Wait(deadline) => break deadline,
            };
            assert!(!self.closed, "after the close: {effect:?}");
            let mut text = String::new();
            match &effect {
                Effect::Transmit(frame) => {
                    self.wrote = true;
                    let ends = frame.iter().filter(|&&byte| byte == b'\n').count();
                    assert!(
                        ends == 1 && frame.ends_with(b"\n"),
                        "not one line: {effect:?}"
                    );
                    let frame = std::str::from_utf8(frame).expect("a frame is UTF-8");
                    let _ = write!(text, "Transmit {frame}");
                    if let Some(id) = between(frame, "\"id\":", ",\"method\":") {
                        self.asked = Some(id.into());
                    }
                    if let Some(session) = between(frame, "\"result\":{\"sessionId\":\"", "\"") {
                        self.session = session.into();
                    }
                }
                Effect::Start { id, call } => {
                    assert!(id.number() > self.last_call, "an id again: {effect:?}");
                    self.last_call = id.number();
                    self.open.insert(*id, call.clone());
                    let _ = write!(text, "{effect:?}");
                }
                Effect::Close(_) => {
                    self.closed = true;
                    let _ = write!(text, "{effect:?}");
                }
                Effect::Feed { .. }
                | Effect::FeedEnd { .. }
                | Effect::Abort { .. }
                | Effect::Report(_) => {
                    let _ = write!(text, "{effect:?}");
                }
            }
            self.effects.push(text);
        };
    }

    /// The client finishes, the world answers nothing more, time passes: it must close.
    fn end(&mut self) {
        self.slow = false;
        self.input(Input::Unsent(0));
        self.input(Input::PeerFinished);
        for _ in 0..1000 {
            let Some(deadline) = self.deadline else { break };
            if self.closed {
                break;
            }
            self.now = self.now.max(deadline.at);
            self.timeout();
        }
        assert!(self.closed, "it never closes");
        // After the close there is silence, whatever is said.
        self.input(Input::Received(b"{}\n"));
        self.input(Input::PeerFinished);
        self.timeout();
    }
}

/// An outcome that fits this call.
fn fitting(call: Option<&Call>, bytes: Vec<u8>) -> Outcome {
    match call {
        None | Some(Call::Http(_)) => Outcome::Ended,
        Some(Call::Process(_)) => Outcome::Exited(Exit {
            code: Some(bytes.len() as i32 % 3),
            signal: None,
            dropped: 0,
            left: bytes.len() % 2 == 1,
        }),
        Some(Call::Resolve { path }) => Outcome::Resolved(Resolved {
            real: path.clone(),
            kind: match bytes.len() % 4 {
                1 => FileKind::Missing,
                2 => FileKind::File,
                _ => FileKind::Directory,
            },
            link: false,
            owned: true,
            links: 1,
            size: 3,
        }),
        Some(Call::Read { .. }) => Outcome::Read(Contents { bytes }),
        Some(Call::Write(_)) => Outcome::Written,
        Some(Call::Remove { .. }) => Outcome::Removed,
        Some(Call::Rename { .. }) => Outcome::Renamed,
        Some(Call::List { .. }) => Outcome::Listed(Listing {
            entries: Vec::new(),
            more: 0,
        }),
        Some(Call::Search(_)) => Outcome::Found(Found {
            hits: Vec::new(),
            cut: None,
        }),
        Some(Call::ReadAt { .. }) => Outcome::Part(Part {
            size: bytes.len() as u64,
            bytes,
        }),
        Some(Call::Append(_)) => Outcome::Appended,
        Some(Call::Lock { .. }) => Outcome::Locked,
        Some(Call::Unlock { .. }) => Outcome::Unlocked,
        Some(Call::RemoveTree { .. }) => Outcome::Removed,
        Some(Call::Reconfigure) => Outcome::Reconfigured(Ok(Box::default())),
        Some(Call::Custom(_)) => Outcome::Custom(Ok("text".into())),
    }
}

fn between<'t>(text: &'t str, head: &str, tail: &str) -> Option<&'t str> {
    let from = text.find(head)? + head.len();
    let length = text[from..].find(tail)?;
    Some(&text[from..from + length])
}
