//! One answer of a model as a machine, whether over HTTP or from a script. Knows no JSON.

use super::endpoint::Endpoint;
use super::script;
use super::types::{ChatMessage, ModelEvent, ToolSpec};
use crate::call::News;
use crate::limits::Limits;
use crate::time::{Deadline, Instant};

/// One answer of a model with all its attempts. A machine inside a machine: its parent hands in
/// news and time, and drains [`next_event`](Self::next_event) after each.
///
/// A parent whose client is slow stops calling `next_event`; nothing then runs ahead: bytes stay
/// where [`room`](Self::room) counts them, and a script stands still. After the last event
/// (`Finished`, `Failed`) the run is silent.
#[derive(Debug)]
pub struct ModelRun {}

impl ModelRun {
    /// A run over HTTP. Equal messages and tools give equal bytes. `seed` spreads the pauses
    /// between attempts.
    pub fn http(
        now: Instant,
        endpoint: &Endpoint,
        messages: &[ChatMessage],
        tools: &[ToolSpec],
        limits: &Limits,
        seed: u64,
    ) -> Self {
        let _ = (now, endpoint, messages, tools, limits, seed);
        todo!()
    }

    /// A run of the next answer of a script.
    pub fn script(now: Instant, answer: script::ScriptAnswer, limits: &Limits) -> Self {
        let _ = (now, answer, limits);
        todo!()
    }

    /// The wall clock, seconds since 1970 at `now`: only for a `Retry-After` that is a date in an
    /// answer without a date of its own.
    pub fn set_wall(&mut self, now: Instant, unix_seconds: u64) {
        let _ = (now, unix_seconds);
        todo!()
    }

    /// News of the current call.
    pub fn handle_news(&mut self, now: Instant, news: &News<'_>) {
        let _ = (now, news);
        todo!()
    }

    /// The passing of time. Early, late or twice is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// When it wants to be woken. Ask after the drain.
    pub fn deadline(&self) -> Option<Deadline> {
        todo!()
    }

    /// The next event; `None` until there is news or the deadline.
    pub fn next_event(&mut self, now: Instant) -> Option<ModelEvent> {
        let _ = now;
        todo!()
    }

    /// Bytes it will take now from its current call.
    pub fn room(&self) -> usize {
        todo!()
    }

    /// The parent did not drain or read until `now` because its own client was slow: the silence
    /// up to here is not the model's.
    pub fn held_until(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// Gives up. An open call is aborted by one last [`ModelEvent::Abort`]; nothing follows.
    pub fn cancel(&mut self) {
        todo!()
    }

    /// What the current attempt has said so far and was handed out: for the history of a turn that
    /// was cancelled or failed.
    pub fn partial_text(&self) -> &str {
        todo!()
    }

    /// Where the script stands after the attempts that were really made; hand it to
    /// [`ScriptCursor::rewind`](script::ScriptCursor::rewind) when a run ends by cancel, so that
    /// repeats that never came are not used up.
    pub fn script_position(&self) -> Option<script::Position> {
        todo!()
    }
}
