//! All of it as one machine: what the runtimes drive.
//!
//! The agent owns one protocol side, one engine a session,
//! and the numbering of calls. It translates between them and has no rules of its own: what may be
//! said is decided in `protocol`, what is done next in `engine`, what may run in `permission`.

mod asking;
mod cards;
mod commands;
mod config;
mod confining;
mod content;
mod dispatch;
mod drive;
mod editor;
mod ending;
mod fit;
mod forms;
mod inbox;
mod known;
mod links;
mod listing;
mod loading;
mod logout;
mod mcp;
pub mod models;
mod opening;
mod options;
mod prompting;
mod prompts;
mod quote;
mod render;
mod replay;
mod roots;
mod saving;
mod session;
mod standing;
mod status;
mod typed;
mod vendor;

#[cfg(test)]
mod tests;

pub use crate::permission::PermissionMode;
pub use config::{Config, Identity, Preset};
pub use confining::SandboxPolicy;
pub use replay::Replay;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::call::{Call, News};
use crate::engine::Output;
use crate::ids::{AskId, CallId, Counter, SessionKey, TurnKey};
use crate::machine::{Machine, Next, Source};
use crate::protocol::agent_side::Step;
use crate::protocol::methods::Authenticate;
use crate::protocol::{self, AgentSide, Asked, PeerInput};
use crate::time::{Deadline, Instant, Timer};
use crate::wire::RequestKey;

use editor::Late;
use known::Known;
use listing::{Deleting, Listed, Listing, Sweep};
use opening::{Leaving, Opening};
use saving::{Doing, StoreKey, Stored};
use session::Session;

/// What the world did. Exhaustive: drivers match it whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// Bytes from the client, cut anywhere; at most [`Machine::room`] of them.
    Received(&'a [u8]),
    /// How many bytes of what was transmitted are not yet taken by the operating system.
    Unsent(usize),
    /// No more bytes will come, or the person asked the process to end (SIGTERM, Ctrl-C).
    PeerFinished,
    /// Nothing can be sent any more.
    PeerGone,
    /// What the world says about a call.
    Call {
        /// Which.
        id: CallId,
        /// What.
        news: News<'a>,
    },
    /// Wall-clock time: at the start, and whenever its offset to [`Instant`] moves.
    Wall(WallClock),
}

/// Wall-clock time as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub unix_ms: i64,
}

/// What the world must do. Exhaustive: drivers match it whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<'a> {
    /// Send these bytes to the client: exactly one frame, its line end included. The driver copies
    /// them and writes when it has 32 KiB, or at [`Next::Wait`].
    Transmit(&'a [u8]),
    /// Begin a call. Its news come under its id.
    Start {
        /// Its id, never used before.
        id: CallId,
        /// What to do.
        call: Call,
    },
    /// Bytes for the standard input of a process.
    Feed {
        /// Which.
        id: CallId,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// No more bytes will be fed: close the standard input.
    FeedEnd {
        /// Which.
        id: CallId,
    },
    /// End a call now. One `Done` or `Failed` still follows.
    Abort {
        /// Which.
        id: CallId,
    },
    /// Something for the log; needs no answer.
    Report(Report),
    /// The end: always the last effect, after it there is silence.
    Close(CloseReason),
}

/// Something for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How much it matters.
    pub level: Level,
    /// One line, secrets redacted.
    pub text: String,
}

/// How much a report matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed that a person should know of.
    Error,
    /// Something is odd.
    Warn,
    /// Something worth knowing when looking for a cause.
    Info,
    /// Every step.
    Debug,
}

/// Why the connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The client finished, all was answered and settled: exit code 0.
    Finished,
    /// The client is gone.
    Gone,
    /// The client took no byte for too long, or the driver never said what it took
    /// ([`Input::Unsent`]): a report says so.
    Stalled,
}

/// Whose a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// A session that is being opened.
    Opening(RequestKey),
    /// A prompt whose attachments are being saved.
    Preparing(SessionKey),
    /// An engine.
    Session(SessionKey),
    /// A look at the disk on behalf of a call that an editor has a part in.
    Editor(SessionKey),
    /// The MCP servers of a session.
    Servers(SessionKey),
    /// A file that says which servers a project has, or which are approved.
    ServersFile(SessionKey),
    /// `authenticate`.
    Authenticating,
    /// `/reload`.
    Reloading(SessionKey),
    /// The same by a method.
    Refreshing(SessionKey),
    /// A command or skill that stands in a file.
    Command(SessionKey),
    /// A stored session.
    Store(StoreKey, Doing),
    /// A request to an inbox whose files are read.
    Inbox(StoreKey),
    /// `session/list`.
    Listing(RequestKey),
    /// `session/delete`.
    Deleting,
    /// What is left of a session.
    Sweeping,
    /// Nobody waits for what comes of it.
    Nobody,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("now", &self.now)
            .field("sessions", &self.sessions.len())
            .field("calls", &self.calls)
            .field("closing", &self.closing)
            .finish_non_exhaustive()
    }
}

/// The whole agent as one machine.
pub struct Agent {
    config: Config,
    now: Instant,
    /// The wall clock, and when it was said.
    wall: Option<(Instant, WallClock)>,
    side: AgentSide,
    random: ChaCha20Rng,
    /// Numbers for calls.
    ids: Counter,
    /// Calls that have not ended, closed sessions' calls too.
    calls: BTreeMap<CallId, Owner>,
    sessions: BTreeMap<SessionKey, Box<Session>>,
    turns: BTreeMap<TurnKey, SessionKey>,
    asks: BTreeMap<AskId, SessionKey>,
    /// Terminals that may still be made though nobody waits for them.
    late: Late,
    openings: BTreeMap<RequestKey, Opening>,
    /// Openings that are over and have a lock to give back, by the call that is waited for.
    leaving: BTreeMap<CallId, Leaving>,
    stores: BTreeMap<StoreKey, Stored>,
    store_keys: Counter,
    listings: BTreeMap<RequestKey, Box<Listing>>,
    /// What is left of the last list, for its next page.
    listed: Option<Listed>,
    deleting: BTreeMap<CallId, Deleting>,
    sweeping: BTreeMap<CallId, Sweep>,
    authenticating: BTreeMap<CallId, Asked<Authenticate>>,
    /// Keys were forgotten, and are not taken up before somebody authenticates.
    logged_out: bool,
    /// Keys, those that are not used any more too.
    known: Known,
    /// When engines want to be woken.
    timers: BTreeSet<(Deadline, SessionKey)>,
    /// Folders for temporary files that were made for open sessions.
    tmps: BTreeMap<SessionKey, String>,
    /// The same of closed ones.
    old_tmps: BTreeMap<SessionKey, String>,
    /// Sessions whose engines may have something to do.
    queue: VecDeque<SessionKey>,
    /// What the engine of the moment says; empty between two of its steps.
    said: VecDeque<Output>,
    /// Sessions whose clients are to be told something of their MCP servers.
    untold: VecDeque<SessionKey>,
    /// What MCP servers said to calls of engines.
    heard: VecDeque<(SessionKey, CallId, mcp::Heard)>,
    /// Bytes that calls brought to sessions that have not taken them in.
    unread: usize,
    /// When the client finished.
    finished: Option<Instant>,
    /// Effects other than frames.
    effects: VecDeque<Owned>,
    /// The same for MCP servers, in an order of its own: nobody waits till thirty are started.
    servers: VecDeque<Owned>,
    closing: Closing,
}

/// Effects that are not borrowed.
enum Owned {
    Start(CallId, Call),
    Feed(CallId, Vec<u8>),
    FeedEnd(CallId),
    Abort(CallId),
    Report(Report),
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    No,
    /// The side is closed; calls settle.
    Settling {
        reason: CloseReason,
        until: Instant,
    },
    /// `Close` was given: silence.
    Closed,
}

impl Agent {
    /// An agent for one connection.
    ///
    /// Limits of somebody else's are [checked](crate::limits::Limits::check) before: with some that do not pass it
    /// may stand still, and a report says so. A tool that
    /// [`External::new`](crate::tools::External::new) would refuse, or that has the
    /// name of another, is left out, with a report.
    pub fn new(mut config: Config) -> Self {
        let faults = config.leave_out();
        let mut agent = Self {
            now: Instant::ZERO,
            wall: None,
            side: AgentSide::new(config.limits.clone()),
            random: ChaCha20Rng::from_seed(config.seed),
            ids: Counter::default(),
            calls: BTreeMap::new(),
            sessions: BTreeMap::new(),
            turns: BTreeMap::new(),
            asks: BTreeMap::new(),
            late: Late::new(),
            openings: BTreeMap::new(),
            leaving: BTreeMap::new(),
            stores: BTreeMap::new(),
            store_keys: Counter::default(),
            listings: BTreeMap::new(),
            listed: None,
            deleting: BTreeMap::new(),
            sweeping: BTreeMap::new(),
            authenticating: BTreeMap::new(),
            logged_out: false,
            known: Known::default(),
            timers: BTreeSet::new(),
            tmps: BTreeMap::new(),
            old_tmps: BTreeMap::new(),
            queue: VecDeque::new(),
            said: VecDeque::new(),
            untold: VecDeque::new(),
            heard: VecDeque::new(),
            unread: 0,
            finished: None,
            effects: VecDeque::new(),
            servers: VecDeque::new(),
            closing: Closing::No,
            config,
        };
        agent.know_settings();
        for fault in faults {
            agent.report(Level::Error, fault);
        }
        agent
    }

    /// What it was made with, with the settings as they were last read.
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn random(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.random.fill_bytes(&mut bytes);
        bytes
    }

    fn jitter(&mut self) -> u64 {
        self.random.next_u64()
    }

    fn report(&mut self, level: Level, text: String) {
        let mut text = text.replace(['\n', '\r'], " ");
        self.known.secrets().redact(&mut text);
        self.effects
            .push_back(Owned::Report(Report { level, text }));
    }

    fn start(&mut self, owner: Owner, call: Call) -> CallId {
        let id = CallId::new(self.ids.next());
        self.calls.insert(id, owner);
        self.effects.push_back(Owned::Start(id, call));
        id
    }

    fn call_news(&mut self, id: CallId, news: News<'_>) {
        let over = matches!(news, News::Done(_) | News::Failed(_));
        let owner = if over {
            self.calls.remove(&id)
        } else {
            self.calls.get(&id).copied()
        };
        match owner {
            Some(Owner::Opening(key)) => self.opening_news(key, id, news),
            Some(Owner::Preparing(key)) => self.prepared(key, id, news),
            Some(Owner::Session(key)) => {
                if let News::Bytes { bytes, .. } = &news
                    && let Some(session) = self.sessions.get_mut(&key)
                {
                    session.unread += bytes.len();
                    self.unread += bytes.len();
                }
                self.with_engine(key, |engine, cx| engine.handle_news(cx, id, news));
            }
            Some(Owner::Editor(key)) => self.looked(key, id, news),
            Some(Owner::Reloading(key)) => self.reloaded(key, news),
            Some(Owner::Refreshing(key)) => self.refreshed(key, news),
            Some(Owner::Servers(key)) => {
                self.with_servers(key, |hub, cx| hub.handle_news(cx, id, news));
            }
            Some(Owner::ServersFile(key)) => self.servers_file_news(key, id, news),
            Some(Owner::Command(key)) => self.command_news(key, id, news),
            Some(Owner::Authenticating) => self.reconfigured(id, news),
            Some(Owner::Store(key, doing)) => self.store_news(key, doing, news),
            Some(Owner::Inbox(key)) => self.inbox_news(key, id, news),
            Some(Owner::Listing(key)) => self.listing_news(key, id, news),
            Some(Owner::Deleting) => self.delete_news(id, news),
            Some(Owner::Sweeping) => self.sweep_news(id, news),
            Some(Owner::Nobody) => {}
            None => {}
        }
        if over && !self.old_tmps.is_empty() {
            self.remove_tmps();
        }
    }

    /// The end of the connection: commands in the background end too.
    fn dispose(&mut self) {
        let keys: Vec<_> = self.sessions.keys().copied().collect();
        for key in keys {
            self.with_engine(key, |engine, cx| engine.dispose(cx));
            self.close_servers(key);
        }
    }

    fn begin_closing(&mut self, reason: CloseReason) {
        if self.closing != Closing::No {
            return;
        }
        if reason == CloseReason::Stalled && self.side.was_unheard() {
            let why = "the driver has not said what became of the frames that it was given \
                       (`Input::Unsent`), so nothing more can be sent: the connection ends";
            self.report(Level::Error, why.into());
        }
        self.queue.clear();
        self.untold.clear();
        self.heard.clear();
        self.timers.clear();
        // Nothing begins any more.
        self.openings.clear();
        self.leaving.clear();
        self.authenticating.clear();
        self.listings.clear();
        self.deleting.clear();
        self.sweeping.clear();
        for session in self.sessions.values_mut() {
            session.preparing = None;
            session.reloading = false;
            session.calling = None;
            session.scan = None;
        }
        // One grace for all: what was waited for before counts.
        let begun = match reason {
            CloseReason::Finished => self.finished.unwrap_or(self.now),
            CloseReason::Gone | CloseReason::Stalled => self.now,
        };
        let until = begun.plus(self.config.limits.close_grace);
        self.closing = Closing::Settling { reason, until };
        // What ends here has begun before.
        self.effects.append(&mut self.servers);
        // What is to be remembered is still written.
        for (id, owner) in &self.calls {
            if !matches!(owner, Owner::Store(..)) {
                self.effects.push_back(Owned::Abort(*id));
            }
        }
        self.give_up_tmp(None);
    }

    /// Does what can be done now, until something has to be given to the driver.
    fn work(&mut self) -> Work {
        loop {
            if let Some(effect) = self.effects.pop_front() {
                return Work::Effect(effect);
            }
            if let Closing::Settling { reason, until } = self.closing {
                if let Some(effect) = self.servers.pop_front() {
                    return Work::Effect(effect);
                }
                if !self.calls.is_empty() && until > self.now {
                    return Work::Wait(Some(Deadline {
                        at: until,
                        why: Timer::CloseGrace,
                    }));
                }
                self.closing = Closing::Closed;
                return Work::Close(reason);
            }
            if self.pass_heard() || self.tell_next() {
                continue;
            }
            match self.side.step() {
                Step::Frame(frame) => return Work::Frame(frame),
                Step::Event(event) => self.handle_event(event),
                Step::Close(reason) => self.begin_closing(reason.into()),
                Step::Wait(deadline) => {
                    if !self.drive_next() {
                        if let Some(effect) = self.servers.pop_front() {
                            return Work::Effect(effect);
                        }
                        let timer = self.timers.first().map(|(deadline, _)| *deadline);
                        return Work::Wait(Deadline::earlier(deadline, timer));
                    }
                }
            }
        }
    }
}

/// What [`Agent::work`] came to, with a frame by its place: a borrow could not leave the loop.
enum Work {
    Effect(Owned),
    Frame(Range<usize>),
    Close(CloseReason),
    Wait(Option<Deadline>),
}

impl Machine for Agent {
    type Input<'a> = Input<'a>;
    type Effect<'a> = Effect<'a>;

    fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.now = self.now.max(now);
        if self.closing == Closing::Closed {
            return;
        }
        match input {
            Input::Received(bytes) => {
                self.side.handle_input(self.now, PeerInput::Received(bytes));
            }
            Input::Unsent(bytes) => self.side.handle_input(self.now, PeerInput::Unsent(bytes)),
            Input::PeerFinished => {
                self.finished.get_or_insert(self.now);
                self.side.handle_input(self.now, PeerInput::PeerFinished);
            }
            Input::PeerGone => self.side.handle_input(self.now, PeerInput::PeerGone),
            Input::Call { id, news } => self.call_news(id, news),
            Input::Wall(clock) => self.wall = Some((self.now, clock)),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if self.closing == Closing::Closed {
            return;
        }
        self.side.handle_timeout(self.now);
        // Each once: a tool's deadline moves when its engine takes the next step, not here.
        let due: Vec<_> = self
            .timers
            .iter()
            .take_while(|(deadline, _)| deadline.at <= self.now)
            .map(|(_, key)| *key)
            .collect();
        for key in due {
            self.editor_due(key);
            self.with_engine(key, |engine, cx| engine.handle_timeout(cx));
            self.lose_patience(key);
            self.with_servers(key, |hub, cx| hub.handle_timeout(cx));
        }
    }

    fn poll_effect(&mut self) -> Next<Effect<'_>> {
        if self.closing == Closing::Closed {
            return Next::Wait(None);
        }
        match self.work() {
            Work::Effect(Owned::Start(id, call)) => Next::Do(Effect::Start { id, call }),
            Work::Effect(Owned::Feed(id, bytes)) => Next::Do(Effect::Feed { id, bytes }),
            Work::Effect(Owned::FeedEnd(id)) => Next::Do(Effect::FeedEnd { id }),
            Work::Effect(Owned::Abort(id)) => Next::Do(Effect::Abort { id }),
            Work::Effect(Owned::Report(report)) => Next::Do(Effect::Report(report)),
            Work::Frame(frame) => Next::Do(Effect::Transmit(self.side.frame(frame))),
            Work::Close(reason) => Next::Do(Effect::Close(reason)),
            Work::Wait(deadline) => Next::Wait(deadline),
        }
    }

    fn room(&self, source: Source) -> usize {
        match source {
            Source::Peer => self.side.room(Source::Peer),
            Source::Call(id) => match self.calls.get(&id) {
                Some(Owner::Session(key)) => self.engine_room(*key, id),
                Some(Owner::Servers(key)) => self
                    .sessions
                    .get(key)
                    .map_or(self.config.limits.call_window, |session| {
                        session.servers.hub.room(id, &self.config.limits)
                    }),
                // Small answers, or a call nobody waits for: let it come and be over.
                Some(
                    Owner::Opening(_)
                    | Owner::Preparing(_)
                    | Owner::Editor(_)
                    | Owner::ServersFile(_)
                    | Owner::Authenticating
                    | Owner::Reloading(_)
                    | Owner::Refreshing(_)
                    | Owner::Command(_)
                    | Owner::Store(..)
                    | Owner::Inbox(_)
                    | Owner::Listing(_)
                    | Owner::Deleting
                    | Owner::Sweeping
                    | Owner::Nobody,
                )
                | None => self.config.limits.call_window,
            },
        }
    }
}

impl From<protocol::CloseReason> for CloseReason {
    fn from(reason: protocol::CloseReason) -> Self {
        match reason {
            protocol::CloseReason::Finished => Self::Finished,
            protocol::CloseReason::Gone => Self::Gone,
            protocol::CloseReason::Stalled => Self::Stalled,
        }
    }
}
