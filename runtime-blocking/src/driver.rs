//! The driver, without its way to wait: it owns the machine, does what it wants done, and says what
//! happened. Decides nothing. Both runtimes are this and a wait of their own.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime};

use reasonix_core::agent::{CloseReason, Config, Effect, Input, Level, WallClock};
use reasonix_core::call::Call;
use reasonix_core::ids::CallId;
use reasonix_core::limits::LimitFault;
use reasonix_core::machine::{Machine, Next, Source};
use reasonix_core::protocol::PeerInput;
use reasonix_core::time::{Deadline, Instant};
use rustix::event::PollFlags;

use crate::bell::{Bell, Signals};
use crate::calls::{Calls, Hands};
use crate::hooks::Hooks;
use crate::link::{Attached, Clock, Link};
use crate::ops::process::Slot;

pub use crate::calls::Job;

/// How long the last frames may take to go out.
const LAST_FRAMES: Duration = Duration::from_secs(1);

/// The wall clock is told again when it has moved against ours by more than this.
const DRIFT: i64 = 500;

/// After so many exchanges with the peer others may want the thread.
const BUSY: u32 = 64;

/// Why an agent ended: what it said itself.
pub type Ended = CloseReason;

/// What a driver cannot go on without.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The descriptors of the connection, or the system's means to wait on them.
    #[error("the connection cannot be served: {0}")]
    Io(#[from] io::Error),
    /// The agent would offer a tool to the model that nothing runs: [`Hooks::tools`] is missing.
    #[error("the tool `{0}` is offered to the model, but nothing was given that runs it")]
    NoTools(String),
    /// [`Limits::check`](reasonix_core::limits::Limits::check) does not pass.
    #[error(transparent)]
    Limits(#[from] LimitFault),
}

/// What an agent is connected to.
#[derive(Debug)]
pub struct Stdio {
    over: Option<(OwnedFd, OwnedFd)>,
    signals: bool,
}

impl Stdio {
    /// This process's standard input and output. SIGTERM, SIGINT and SIGHUP count as the end
    /// of the input, and a second one ends the process.
    pub fn process() -> Self {
        Self {
            over: None,
            signals: true,
        }
    }

    /// Any two descriptors to read from and to write to: pipes, sockets, files.
    pub fn over(input: OwnedFd, output: OwnedFd) -> Self {
        Self {
            over: Some((input, output)),
            signals: false,
        }
    }

    fn link(self) -> io::Result<Link> {
        match self.over {
            Some((input, output)) => Link::over(input, output),
            None => Link::stdio(),
        }
    }
}

/// A machine with the agent's inputs and effects.
pub trait Served:
    'static + for<'a> Machine<Input<'a> = Input<'a>, Effect<'a> = Effect<'a>>
{
}

impl<M> Served for M where
    M: 'static + for<'a> Machine<Input<'a> = Input<'a>, Effect<'a> = Effect<'a>>
{
}

/// How far the driver came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advanced {
    /// The machine is at its end: [`Driver::end`] is due.
    Ended(Ended),
    /// Nothing is left to do but to wait on [`Driver::wants`], at most till then; after that
    /// [`Driver::woken`].
    Wait(Option<Instant>),
    /// There is more to do, but others on this thread may go first.
    Busy,
}

/// A descriptor that a driver waits on, by a name that is never used for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// What the peer sends.
    Input,
    /// What the peer receives, while it takes nothing.
    Output,
    /// Rung by threads and signals.
    Bell,
    /// Of a process.
    Process(CallId, Slot),
}

/// A machine, its link and its calls.
pub struct Driver<M> {
    machine: M,
    link: Link,
    calls: Calls,
    clock: Clock,
    bell: Bell,
    signals: Option<Signals>,
    stopping: bool,
    deadline: Option<Deadline>,
    /// Milliseconds from the clock's origin to the Unix epoch, as the machine knows it.
    wall: Option<i64>,
}

impl<M> fmt::Debug for Driver<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("deadline", &self.deadline)
            .field("stopping", &self.stopping)
            .finish_non_exhaustive()
    }
}

impl<M: Served> Driver<M> {
    /// A driver for `machine`, which was made with `config`; `hands` gives work to threads.
    ///
    /// # Errors
    ///
    /// As [`Hooks::check`]. If the descriptors cannot be used, or the system has none left to wait with.
    pub fn new(
        machine: M,
        config: &Config,
        io: Stdio,
        hooks: Hooks,
        hands: Hands,
    ) -> Result<Self, Error> {
        hooks.check(config)?;
        let bell = Bell::new()?;
        let signals = io.signals.then(|| Signals::ring(&bell)).transpose()?;
        let mut driver = Self {
            machine,
            link: io.link()?.with_patience(config.limits.peer_stalled),
            calls: Calls::new(config, hooks, &bell, hands),
            clock: Clock::start(),
            bell,
            signals,
            stopping: false,
            deadline: None,
            wall: None,
        };
        driver.tell_wall();
        Ok(driver)
    }

    /// The clock that the machine's time is read from.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Does all there is to do.
    pub fn advance(&mut self) -> Advanced {
        for _ in 0..BUSY {
            match self.drain() {
                Next::Do(reason) => return Advanced::Ended(reason),
                Next::Wait(deadline) => self.deadline = deadline,
            }
            if let Some((id, told)) = self.calls.next() {
                let now = self.clock.now();
                told.into_news(|news| {
                    self.machine.handle_input(now, Input::Call { id, news });
                });
                continue;
            }
            let now = self.clock.now();
            if self.link.exchange(now, &mut Peer(&mut self.machine)) {
                continue;
            }
            self.deadline = Deadline::earlier(self.deadline, self.link.deadline());
            let room = |id| self.machine.room(Source::Call(id));
            self.calls.grant(room);
            let processes = self.calls.wait_at_most().map(|time| now.plus(time));
            let at = self.deadline.map(|deadline| deadline.at);
            return Advanced::Wait(at.into_iter().chain(processes).min());
        }
        Advanced::Busy
    }

    /// The descriptors to wait on.
    pub fn wants(&self) -> impl Iterator<Item = (Name, BorrowedFd<'_>, PollFlags)> {
        let [input, output] = self.link.wants(self.machine.room(Source::Peer));
        let room = |id| self.machine.room(Source::Call(id));
        let bell = (Name::Bell, self.bell.as_fd(), PollFlags::IN);
        let processes = self
            .calls
            .wants(room)
            .map(|(id, slot, fd, flags)| (Name::Process(id, slot), fd, flags));
        let input = input.map(|(fd, flags)| (Name::Input, fd, flags));
        let output = output.map(|(fd, flags)| (Name::Output, fd, flags));
        input
            .into_iter()
            .chain(output)
            .chain([bell])
            .chain(processes)
    }

    /// Whether this descriptor may be wanted again.
    pub fn is_open(&self, name: Name) -> bool {
        match name {
            Name::Input | Name::Output | Name::Bell => true,
            Name::Process(id, slot) => self.calls.is_open(id, slot),
        }
    }

    /// Says that the wait is over, and which of these two had something; the rest is tried.
    pub fn woken(&mut self, output: bool, bell: bool) {
        if output {
            self.link.unblock();
        }
        if bell {
            self.bell.hush();
        }
        if self.calls.any_processes() {
            let room = |id| self.machine.room(Source::Call(id));
            self.calls.step_all(room);
        }
        let now = self.clock.now();
        if !self.stopping && self.signals.as_ref().is_some_and(Signals::came) {
            self.stopping = true;
            self.machine.handle_input(now, Input::PeerFinished);
        }
        if self.deadline.is_some_and(|deadline| deadline.at <= now) {
            self.machine.handle_timeout(now);
        }
        self.tell_wall();
    }

    /// Sends what is left and ends every process. May take a moment.
    pub fn end(self) {
        self.link.finish(LAST_FRAMES);
        self.calls.end();
    }

    /// Does all that the machine wants done, writing and reading in between.
    fn drain(&mut self) -> Next<CloseReason> {
        loop {
            let mut starts = None;
            match self.machine.poll_effect() {
                Next::Do(Effect::Transmit(frame)) => self.link.send(frame),
                Next::Do(Effect::Start { id, call }) => starts = Some((id, call)),
                Next::Do(Effect::Feed { id, bytes }) => self.calls.feed(id, &bytes),
                Next::Do(Effect::FeedEnd { id }) => self.calls.feed_end(id),
                Next::Do(Effect::Abort { id }) => self.calls.abort(id),
                Next::Do(Effect::Report(report)) => {
                    log::log!(target: "reasonix", level(report.level), "{}", report.text);
                }
                Next::Do(Effect::Close(reason)) => return Next::Do(reason),
                Next::Wait(deadline) => return Next::Wait(deadline),
            }
            // A program or a thread takes a while to start, and there may be many: what was said
            // before does not wait for that, nor does what the client says meanwhile.
            let takes_a_while = matches!(starts, Some((_, Call::Process(_) | Call::Http(_))));
            if self.link.is_full() || takes_a_while {
                let now = self.clock.now();
                self.link.exchange(now, &mut Peer(&mut self.machine));
            }
            if let Some((id, call)) = starts {
                self.calls.start(id, call);
            }
        }
    }

    fn tell_wall(&mut self) {
        let now = self.clock.now();
        let Ok(since) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) else {
            return;
        };
        let unix_ms = millis(since);
        let offset = unix_ms - millis(now.elapsed());
        if self.wall.is_none_or(|known| (known - offset).abs() > DRIFT) {
            self.wall = Some(offset);
            let wall = WallClock { unix_ms };
            self.machine.handle_input(now, Input::Wall(wall));
        }
    }
}

/// The machine, as the link sees it.
struct Peer<'m, M>(&'m mut M);

impl<M: Served> Attached for Peer<'_, M> {
    fn hear(&mut self, now: Instant, said: PeerInput<'_>) {
        let input = match said {
            PeerInput::Received(bytes) => Input::Received(bytes),
            PeerInput::Unsent(count) => Input::Unsent(count),
            PeerInput::PeerFinished => Input::PeerFinished,
            PeerInput::PeerGone => Input::PeerGone,
        };
        self.0.handle_input(now, input);
    }

    fn peer_room(&self) -> usize {
        self.0.room(Source::Peer)
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn level(level: Level) -> log::Level {
    match level {
        Level::Error => log::Level::Error,
        Level::Warn => log::Level::Warn,
        Level::Info => log::Level::Info,
        Level::Debug => log::Level::Debug,
    }
}
