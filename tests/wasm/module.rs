//! A whole agent in a wasm module that imports nothing: bytes and milliseconds in, bytes out. Its
//! world is one folder with nothing in it, its model a script.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use reasonix_core::agent::{Agent, Config, Effect, Input, WallClock};
use reasonix_core::call::{Call, FileKind, News, Outcome, Resolved};
use reasonix_core::error::{IoFault, IoKind};
use reasonix_core::model::Script;
use reasonix_core::settings::Host;
use reasonix_core::time::Instant;
use reasonix_core::{Machine, Next};

static PAGE: Mutex<Option<Page>> = Mutex::new(None);

struct Page {
    agent: Agent,
    input: Vec<u8>,
    output: Vec<u8>,
    deadline: Option<Instant>,
}

/// Makes the agent, at `unix_ms`, with 32 bytes of randomness that are its own; the module is ready for
/// input.
#[unsafe(no_mangle)]
pub extern "C" fn start(unix_ms: i64, a: u64, b: u64, c: u64, d: u64) {
    let mut seed = [0; 32];
    for (part, number) in seed.chunks_exact_mut(8).zip([a, b, c, d]) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    let host = Host {
        os: "wasm".into(),
        shell: "none".into(),
        user_home: None,
        home: None,
        tmp: "/tmp".into(),
        sandbox: Default::default(),
    };
    let mut config = Config::new(seed, host);
    config.script = Script::parse(r#"{"text":"Hello from a module without imports."}"#).ok();
    let mut agent = Agent::new(config);
    agent.handle_input(Instant::ZERO, Input::Wall(WallClock { unix_ms }));
    *page() = Some(Page {
        agent,
        input: Vec::new(),
        output: Vec::new(),
        deadline: None,
    });
}

/// Where `length` bytes of input go.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    page().as_mut().map_or(std::ptr::null_mut(), |page| {
        page.input.resize(length, 0);
        page.input.as_mut_ptr()
    })
}

/// Takes the input and what it leads to, at `ms` after the start; says how many bytes came of it. They are
/// taken by whoever feeds again.
#[unsafe(no_mangle)]
pub extern "C" fn feed(ms: u64) -> usize {
    page().as_mut().map_or(0, |page| {
        let now = Instant::since_start(Duration::from_millis(ms));
        page.output.clear();
        page.agent.handle_input(now, Input::Unsent(0));
        page.agent.handle_timeout(now);
        page.drain(now);
        let bytes = std::mem::take(&mut page.input);
        if !bytes.is_empty() {
            page.agent.handle_input(now, Input::Received(&bytes));
            page.drain(now);
        }
        page.output.len()
    })
}

/// When to feed at the latest, in milliseconds after the start, also if there is no input; -1: whenever
/// there is some.
#[unsafe(no_mangle)]
pub extern "C" fn deadline() -> i64 {
    let at = page().as_ref().and_then(|page| page.deadline);
    at.map_or(-1, |at| i64::try_from(at.elapsed().as_micros().div_ceil(1000)).unwrap_or(i64::MAX))
}

/// No more input will come: the agent ends what it does.
#[unsafe(no_mangle)]
pub extern "C" fn finish(ms: u64) -> usize {
    if let Some(page) = page().as_mut() {
        let now = Instant::since_start(Duration::from_millis(ms));
        page.agent.handle_input(now, Input::PeerFinished);
    }
    feed(ms)
}

/// Where the output is.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    page().as_ref().map_or(std::ptr::null(), |page| page.output.as_ptr())
}

fn page() -> MutexGuard<'static, Option<Page>> {
    PAGE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Page {
    fn drain(&mut self, now: Instant) {
        let mut started = Vec::new();
        loop {
            match self.agent.poll_effect() {
                Next::Do(Effect::Transmit(frame)) => self.output.extend_from_slice(frame),
                Next::Do(Effect::Start { id, call }) => started.push((id, call)),
                // Every call is over at once: there is nothing to feed or to abort.
                Next::Do(
                    Effect::Feed { .. }
                    | Effect::FeedEnd { .. }
                    | Effect::Abort { .. }
                    | Effect::Report(_)
                    | Effect::Close(_),
                ) => {}
                Next::Wait(deadline) => {
                    self.deadline = deadline.map(|deadline| deadline.at);
                    break;
                }
            }
        }
        if started.is_empty() {
            return;
        }
        for (id, call) in started {
            let news = match call {
                Call::Resolve { path } => News::Done(Outcome::Resolved(Resolved {
                    real: path,
                    kind: FileKind::Directory,
                    link: false,
                    owned: true,
                    links: 1,
                    size: 0,
                })),
                _ => News::Failed(IoFault::new(IoKind::NotFound, "there is nothing here")),
            };
            self.agent.handle_input(now, Input::Call { id, news });
        }
        self.drain(now);
    }
}
