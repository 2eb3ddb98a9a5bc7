//! What the agent may hold and allocate, counted by an allocator of our own. A binary to itself:
//! the counts are of the whole process, so its tests take turns.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use reasonix_core::agent::{Agent, Config, Effect, Input};
use reasonix_core::call::{
    Call, Entry, FileKind, Listing, News, Opened, Outcome, Part, Resolved, Stream,
};
use reasonix_core::error::{IoFault, IoKind};
use reasonix_core::ids::CallId;
use reasonix_core::store::Summary;
use reasonix_core::time::Instant;
use reasonix_core::{Machine, Next, Source};
use reasonix_tests::json;
use reasonix_tests::provider::{self, text};
use reasonix_tests::sim::config;

struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static TURN: Mutex<()> = Mutex::new(());

fn add(size: isize) {
    let live = LIVE.fetch_add(size, Relaxed) + size;
    PEAK.fetch_max(live, Relaxed);
}

/// The most that is held while something is done, beyond what was held before.
fn most_held(work: impl FnOnce()) -> isize {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    work();
    PEAK.load(Relaxed) - before
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        COUNT.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as isize - layout.size() as isize);
        COUNT.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// An agent and as little around it as can be, so that what is counted is its own.
struct Bare {
    agent: Agent,
    now: Instant,
    reads: bool,
    sent: usize,
    frames: usize,
    last: Vec<u8>,
    started: Vec<(CallId, Call)>,
    aborted: Vec<CallId>,
    /// Sessions that are stored.
    stored: usize,
}

impl Bare {
    fn new() -> Self {
        Self::of(config())
    }

    fn of(config: Config) -> Self {
        Self {
            agent: Agent::new(config),
            now: Instant::ZERO,
            reads: true,
            sent: 0,
            frames: 0,
            last: Vec::with_capacity(64 << 10),
            started: Vec::new(),
            aborted: Vec::new(),
            stored: 0,
        }
    }

    fn input(&mut self, input: Input<'_>) {
        self.agent.handle_input(self.now, input);
        let sent = self.sent;
        self.drain();
        if self.reads && self.sent > sent {
            self.input(Input::Unsent(0));
        }
    }

    fn drain(&mut self) {
        loop {
            match self.agent.poll_effect() {
                Next::Do(Effect::Transmit(frame)) => {
                    self.sent += frame.len();
                    self.frames += 1;
                    if frame.len() < self.last.capacity() {
                        self.last.clear();
                        self.last.extend_from_slice(frame);
                    }
                }
                Next::Do(Effect::Start { id, call }) => self.started.push((id, call)),
                Next::Do(Effect::Abort { id }) => self.aborted.push(id),
                Next::Do(_) => {}
                Next::Wait(_) => break,
            }
        }
    }

    fn send(&mut self, message: &json::Value) {
        self.input(Input::Received(&json::line(message)));
        self.settle();
    }

    /// Answers every call but HTTP: folders are there, files are not, but for the summaries of what is
    /// stored.
    fn settle(&mut self) {
        while let Some(at) = self
            .started
            .iter()
            .position(|(_, call)| !matches!(call, Call::Http(_)))
        {
            let (id, call) = self.started.remove(at);
            let news = if let Call::Resolve { path } = call {
                News::Done(Outcome::Resolved(Resolved {
                    real: path,
                    kind: FileKind::Directory,
                    link: false,
                    owned: true,
                    links: 1,
                    size: 0,
                }))
            } else if let (Call::List { .. }, 1..) = (&call, self.stored) {
                News::Done(Outcome::Listed(folder(self.stored)))
            } else if let (Call::ReadAt { path, .. }, 1..) = (&call, self.stored)
                && let Some(path) = path.strip_suffix("/state.json")
            {
                let id = path.rsplit('/').next().unwrap_or_default();
                News::Done(Outcome::Part(summary(id)))
            } else {
                News::Failed(IoFault::new(IoKind::NotFound, "nothing here"))
            };
            self.input(Input::Call { id, news });
        }
    }

    fn open(&mut self, id: u64) -> String {
        self.send(&json::new_session(id, "/w"));
        // The answer, or an update behind it: both name the session.
        let frame: json::Value = serde_json::from_slice(&self.last).expect("a frame");
        let session = frame["result"]["sessionId"].as_str();
        let session = session.or(frame["params"]["sessionId"].as_str());
        session.expect("a session").into()
    }

    /// Starts a turn; gives the model's call, its head already told.
    fn turn(&mut self, id: u64, session: &str) -> CallId {
        self.send(&json::prompt(id, session, "go"));
        let at = self
            .started
            .iter()
            .rposition(|(_, call)| matches!(call, Call::Http(_)));
        let (call, _) = self.started.remove(at.expect("the model is asked"));
        let opened = Opened {
            status: 200,
            headers: vec![("content-type".into(), "text/event-stream".into())],
        };
        self.input(Input::Call {
            id: call,
            news: News::Opened(opened),
        });
        call
    }

    fn say(&mut self, call: CallId, bytes: &[u8]) {
        let news = News::Bytes {
            stream: Stream::Out,
            bytes,
        };
        self.input(Input::Call { id: call, news });
    }
}

/// The folder of so many sessions.
fn folder(sessions: usize) -> Listing {
    let entry = |n: usize| Entry {
        name: format!("{n:08}-0000-4000-8000-000000000000"),
        kind: FileKind::Directory,
        link: false,
        size: 4096,
    };
    Listing {
        entries: (0..sessions).map(entry).collect(),
        more: 0,
    }
}

/// The summary of one, about as long as they may be.
fn summary(id: &str) -> Part {
    // In no order.
    let number: u64 = id[..8].parse().expect("a number");
    let mut summary = Summary::new(id, &format!("/{}", "w".repeat(1000)), number * 7919 % 5000);
    summary.prompts = 1;
    summary.title = "t".repeat(320);
    let bytes = summary.write();
    Part {
        size: bytes.len() as u64,
        bytes,
    }
}

fn alone() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[test]
fn ten_thousand_deltas_hold_their_text_and_little_more() {
    let _turn = alone();
    let mut bare = Bare::new();
    bare.send(&json::initialize(1));
    let session = bare.open(2);
    let call = bare.turn(3, &session);
    let delta = text("0123456789abcdef0123456789abcdef").into_bytes();
    for _ in 0..100 {
        bare.say(call, &delta);
        bare.now = bare.now.plus(Duration::from_millis(20));
    }
    let (live, count, frames) = (LIVE.load(Relaxed), COUNT.load(Relaxed), bare.frames);
    let deltas = 10_000;
    for _ in 0..deltas {
        bare.say(call, &delta);
        bare.now = bare.now.plus(Duration::from_millis(20));
    }
    let held = LIVE.load(Relaxed) - live;
    let each = (COUNT.load(Relaxed) - count) as f64 / deltas as f64;
    assert!(
        bare.frames - frames >= deltas,
        "{} frames",
        bare.frames - frames
    );
    // The text itself is kept for the history; a vector that grows has twice its size at most.
    let text = 32 * deltas as isize;
    assert!(
        held <= 3 * text + (64 << 10),
        "{held} bytes held for {text} bytes of text"
    );
    assert!(each <= 8.0, "{each} allocations a delta");
}

#[test]
fn sixty_four_sessions_are_small() {
    let _turn = alone();
    let mut bare = Bare::new();
    bare.send(&json::initialize(1));
    bare.open(2);
    let live = LIVE.load(Relaxed);
    for id in 0..64 {
        bare.open(10 + id);
    }
    let each = (LIVE.load(Relaxed) - live) / 64;
    assert!(each < 64 << 10, "{each} bytes an idle session");
}

#[test]
fn a_client_that_stops_reading_costs_a_bounded_amount() {
    let _turn = alone();
    let mut bare = Bare::new();
    bare.send(&json::initialize(1));
    let session = bare.open(2);
    let call = bare.turn(3, &session);
    let delta = text(&"x".repeat(512)).into_bytes();
    bare.reads = false;
    let live = LIVE.load(Relaxed);
    let before = bare.sent;
    let mut given = 0;
    for _ in 0..100_000 {
        bare.input(Input::Unsent(bare.sent - before));
        bare.now = bare.now.plus(Duration::from_millis(20));
        let room = bare.agent.room(Source::Call(call));
        if room < delta.len() {
            break;
        }
        bare.say(call, &delta);
        given += delta.len();
    }
    let held = LIVE.load(Relaxed) - live;
    assert!(given < 1 << 20, "{given} bytes were taken for nobody");
    assert!(
        bare.sent - before < 1 << 20,
        "{} bytes were sent to nobody",
        bare.sent - before
    );
    assert!(held < 2 << 20, "{held} bytes are held");
}

#[test]
fn a_list_holds_a_page_and_of_all_else_the_places() {
    let _turn = alone();
    let most = |sessions: usize| {
        let mut config = config();
        config.ephemeral = false;
        let mut bare = Bare::of(config);
        bare.stored = sessions;
        bare.send(&json::initialize(1));
        let list = json::request(2, "session/list", json::json!({}));
        let held = most_held(|| bare.send(&list));
        assert!(bare.frames > 1, "it is answered");
        held
    };
    let (some, twice) = (most(2500), most(5000));
    // A summary has 1,400 bytes; a name in the folder and a place, with what vectors are too long, 300.
    let each = (twice - some) / 2500;
    assert!(each < 400, "{each} bytes a session");
    assert!(twice < 3 << 20, "{twice} bytes for 5,000 sessions");
}

#[test]
fn a_load_of_a_session_in_memory_takes_no_copy_of_it() {
    let _turn = alone();
    let mut config = config();
    // Nothing is summed up on the way.
    config.settings.providers[0].models[0].context_window = None;
    let mut bare = Bare::of(config);
    bare.send(&json::initialize(1));
    let session = bare.open(2);
    let delta = text(&"x".repeat(16 << 10)).into_bytes();
    for turn in 0..64 {
        let call = bare.turn(3 + turn, &session);
        for _ in 0..4 {
            bare.say(call, &delta);
            bare.now = bare.now.plus(Duration::from_millis(20));
        }
        bare.say(call, provider::finish("stop").as_bytes());
        bare.say(call, provider::done().as_bytes());
        let news = News::Done(Outcome::Ended);
        bare.input(Input::Call { id: call, news });
        bare.settle();
    }
    let params = json::json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
    let load = json::request(99, "session/load", params);
    let sent = bare.sent;
    let held = most_held(|| bare.send(&load));
    let replayed = bare.sent - sent;
    assert!(replayed > 4 << 20, "{replayed} bytes are replayed");
    assert!(held < 2 << 20, "{held} bytes are held");
}
