//! One answer of a model as a machine, whether over HTTP or from a script. Knows no JSON.

use alloc::boxed::Box;

use super::endpoint::Endpoint;
use super::http::HttpRun;
use super::playback::ScriptRun;
use super::script::{Position, ScriptAnswer};
use super::types::{ChatMessage, ModelEvent, ToolSpec};
use crate::call::News;
use crate::limits::Limits;
use crate::time::{Deadline, Instant};

/// One answer of a model with all its attempts. A machine inside a machine: its parent hands in
/// news and time, and drains [`next_event`](Self::next_event) after each.
///
/// A parent whose client is slow stops calling `next_event`; nothing then runs ahead: bytes stay
/// where [`room`](Self::room) counts them, a script stands still, and there is no deadline. After
/// the last event (`Finished`, `Failed`) the run is silent.
#[derive(Debug)]
pub struct ModelRun(Kind);

#[derive(Debug)]
enum Kind {
    Http(Box<HttpRun>),
    Script(Box<ScriptRun>),
}

impl ModelRun {
    /// A run over HTTP. Equal messages and tools give equal bytes. `seed` spreads the pauses
    /// between attempts.
    pub fn http(
        _now: Instant,
        endpoint: &Endpoint,
        messages: &[ChatMessage],
        tools: &[ToolSpec],
        limits: &Limits,
        seed: u64,
    ) -> Self {
        let run = HttpRun::new(endpoint, messages, tools, limits, seed);
        Self(Kind::Http(Box::new(run)))
    }

    /// A run of the next answer of a script.
    pub fn script(now: Instant, answer: ScriptAnswer, limits: &Limits) -> Self {
        Self(Kind::Script(Box::new(ScriptRun::new(now, answer, limits))))
    }

    /// The wall clock, seconds since 1970 at `now`: only for a `Retry-After` that is a date in an
    /// answer without a date of its own.
    pub fn set_wall(&mut self, now: Instant, unix_seconds: u64) {
        match &mut self.0 {
            Kind::Http(run) => run.set_wall(now, unix_seconds),
            Kind::Script(_) => {}
        }
    }

    /// News of the current call: the one of the last [`ModelEvent::Start`]. News of an earlier one
    /// must not be handed in.
    pub fn handle_news(&mut self, now: Instant, news: &News<'_>) {
        match &mut self.0 {
            Kind::Http(run) => run.handle_news(now, news),
            Kind::Script(_) => {}
        }
    }

    /// The passing of time. Early, late or twice is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        match &mut self.0 {
            Kind::Http(run) => run.handle_timeout(now),
            Kind::Script(run) => run.handle_timeout(now),
        }
    }

    /// When it wants to be woken. Ask after the drain: what is not drained waits for its parent,
    /// not for time.
    pub fn deadline(&self) -> Option<Deadline> {
        match &self.0 {
            Kind::Http(run) => run.deadline(),
            Kind::Script(run) => run.deadline(),
        }
    }

    /// The next event; `None` until there is news or the deadline.
    pub fn next_event(&mut self, now: Instant) -> Option<ModelEvent> {
        match &mut self.0 {
            Kind::Http(run) => run.next_event(now),
            Kind::Script(run) => run.next_event(now),
        }
    }

    /// Bytes it will take now from its current call.
    pub fn room(&self) -> usize {
        match &self.0 {
            Kind::Http(run) => run.room(),
            Kind::Script(_) => 0,
        }
    }

    /// The parent did not drain or read until `now` because its own client was slow: the silence
    /// up to here is not the model's.
    pub fn held_until(&mut self, now: Instant) {
        match &mut self.0 {
            Kind::Http(run) => run.held_until(now),
            Kind::Script(run) => run.held_until(now),
        }
    }

    /// Gives up. An open call is aborted by one last [`ModelEvent::Abort`]; nothing follows.
    pub fn cancel(&mut self) {
        match &mut self.0 {
            Kind::Http(run) => run.cancel(),
            Kind::Script(run) => run.cancel(),
        }
    }

    /// What the current attempt has said so far and was handed out: for the history of a turn that
    /// was cancelled or failed. Empty once the answer was given.
    pub fn partial_text(&self) -> &str {
        match &self.0 {
            Kind::Http(run) => run.partial_text(),
            Kind::Script(run) => run.partial_text(),
        }
    }

    /// The same of what it has thought.
    pub fn partial_thought(&self) -> &str {
        match &self.0 {
            Kind::Http(run) => run.partial_thought(),
            Kind::Script(run) => run.partial_thought(),
        }
    }

    /// Where the script stands behind the attempts that were really made; hand it to
    /// [`ScriptCursor::rewind`](super::ScriptCursor::rewind) when a run ends by cancel, so that
    /// repeats that never came are not used up.
    pub fn script_position(&self) -> Option<Position> {
        match &self.0 {
            Kind::Http(_) => None,
            Kind::Script(run) => run.position(),
        }
    }
}
