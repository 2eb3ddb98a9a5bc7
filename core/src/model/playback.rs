//! A run of a scripted answer: exact, paced by deadlines, never ahead of its parent. Knows nothing
//! of files.

use alloc::collections::VecDeque;
use alloc::string::String;
use core::time::Duration;

use super::calls::Calls;
use super::chunk::CallPiece;
use super::cursor::{Attempt, Planned, Position, ScriptAnswer};
use super::fault::{FaultKind, ModelFault};
use super::retry::{Cause, Retries};
use super::script::{End, Step};
use super::types::{Answer, FinishReason, ModelEvent, Text, Usage};
use crate::limits::Limits;
use crate::time::{Deadline, Instant, Timer};

/// One answer of a script.
#[derive(Debug)]
pub(super) struct ScriptRun {
    limits: Limits,
    retries: Retries,
    attempts: VecDeque<Attempt>,
    plan: Option<Planned>,
    state: State,
    /// Where the script stands behind the attempts that were made.
    position: Option<Position>,
    /// The next step of the attempt, and how much of it is done: bytes of a text, chunks of a load.
    step: usize,
    done: u64,
    load: Option<Planned>,
    said: Said,
    /// Nothing is due before the deadline.
    drained: bool,
}

/// What an attempt has said.
#[derive(Debug, Default)]
struct Said {
    text: String,
    reasoning: String,
    calls: Calls,
    usage: Option<Usage>,
    /// Load kept, bytes.
    load: usize,
}

#[derive(Debug)]
enum State {
    /// An attempt is to begin, now or then.
    Begin(Instant),
    /// Steps are taken, the next one now or then.
    Playing(Instant),
    /// Silence until it counts as a failure.
    Hanging(Instant),
    /// The last event was given.
    Over,
}

impl ScriptRun {
    pub(super) fn new(now: Instant, answer: ScriptAnswer, limits: &Limits) -> Self {
        Self {
            retries: Retries::new(limits.model_retries, 0, limits),
            limits: limits.clone(),
            attempts: answer.attempts.into(),
            plan: answer.plan,
            state: State::Begin(now),
            position: None,
            step: 0,
            done: 0,
            load: None,
            said: Said::default(),
            drained: false,
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.deadline().is_some_and(|deadline| deadline.at <= now) {
            self.drained = false;
        }
    }

    pub(super) fn deadline(&self) -> Option<Deadline> {
        // What is not drained waits for its parent, not for time.
        if !self.drained {
            return None;
        }
        let (at, why) = match self.state {
            State::Begin(at) => (at, Timer::Retry),
            State::Playing(at) => (at, Timer::Script),
            State::Hanging(at) => (at, Timer::ModelIdle),
            State::Over => return None,
        };
        Some(Deadline { at, why })
    }

    pub(super) fn next_event(&mut self, now: Instant) -> Option<ModelEvent> {
        let event = self.event(now);
        self.drained = event.is_none();
        event
    }

    pub(super) fn held_until(&mut self, now: Instant) {
        if let State::Hanging(until) = &mut self.state {
            *until = now.plus(self.limits.model_idle).max(*until);
        }
    }

    pub(super) fn cancel(&mut self) {
        self.state = State::Over;
    }

    pub(super) fn partial_text(&self) -> &str {
        &self.said.text
    }

    pub(super) fn partial_thought(&self) -> &str {
        &self.said.reasoning
    }

    pub(super) fn position(&self) -> Option<Position> {
        self.position
    }

    fn event(&mut self, now: Instant) -> Option<ModelEvent> {
        match self.state {
            State::Begin(at) if now >= at => {
                self.said = Said::default();
                (self.step, self.done) = (0, 0);
                self.position = self.attempts.front().map(|attempt| attempt.after);
                self.state = State::Playing(now);
                Some(ModelEvent::Attempt)
            }
            State::Playing(at) if now >= at => self.play(now),
            State::Hanging(at) if now >= at => {
                let message = "the script hangs (idle timeout)";
                let fault = ModelFault::new(FaultKind::Timeout, message);
                Some(self.failed(now, Cause::Timeout, None, fault))
            }
            State::Begin(_) | State::Playing(_) | State::Hanging(_) | State::Over => None,
        }
    }

    fn play(&mut self, now: Instant) -> Option<ModelEvent> {
        loop {
            if let Some(load) = &self.load {
                if self.done < load.load.chunks && !load.text.is_empty() {
                    let text = load.text.clone();
                    let pace = Duration::from_micros(load.load.pace_us);
                    self.done += 1;
                    self.said.keep_load(&text, self.limits.load_kept);
                    self.state = State::Playing(now.plus(pace));
                    return Some(ModelEvent::Text(Text::Shared(text)));
                }
                self.load = None;
                self.next_step();
                // The pause after the last chunk.
                if matches!(self.state, State::Playing(at) if now < at) {
                    return None;
                }
            }
            let attempt = self
                .attempts
                .front()
                .expect("an attempt that plays is in front");
            let Some(scripted) = attempt.scripted() else {
                return Some(self.nothing_left());
            };
            match scripted.steps.get(self.step) {
                Some(Step::Text(text, piece)) => {
                    if let Some(text) = next_piece(text, *piece, &mut self.done) {
                        self.said.text.push_str(text);
                        return Some(ModelEvent::Text(text.into()));
                    }
                }
                Some(Step::Thought(text, piece)) => {
                    if let Some(text) = next_piece(text, *piece, &mut self.done) {
                        self.said.reasoning.push_str(text);
                        return Some(ModelEvent::Thought(text.into()));
                    }
                }
                Some(Step::Tool(id, name, arguments)) => self.said.calls.add(CallPiece {
                    index: Some(self.step as u64),
                    id: id.clone(),
                    name: name.clone(),
                    arguments: arguments.clone(),
                }),
                Some(Step::Sleep(pause)) => {
                    self.state = State::Playing(now.plus(*pause));
                    self.next_step();
                    return None;
                }
                Some(Step::Usage(usage)) => self.said.usage = Some(*usage),
                Some(Step::Repeat(load)) => {
                    self.load = Some(Planned::new(*load, &self.limits));
                    continue;
                }
                Some(Step::Plan) if self.plan.is_some() => {
                    self.load = self.plan.take();
                    continue;
                }
                Some(Step::Plan) => {}
                None => {
                    let end = scripted.end.clone();
                    return self.end(now, end);
                }
            }
            self.next_step();
        }
    }

    fn next_step(&mut self) {
        self.step += 1;
        self.done = 0;
    }

    fn nothing_left(&mut self) -> ModelEvent {
        if self.step == 0 {
            self.step = 1;
            self.said.text.push_str(ENDED);
            return ModelEvent::Text(ENDED.into());
        }
        self.finish(Some(FinishReason::Stop))
    }

    fn end(&mut self, now: Instant, end: End) -> Option<ModelEvent> {
        match end {
            End::Finish(reason) => Some(self.finish(reason)),
            End::Error {
                status,
                retry_after,
                message,
            } => {
                let body = message.as_deref().unwrap_or("as the script says");
                let fault = ModelFault::refusal("script", status, body);
                Some(self.failed(now, Cause::Status(status), retry_after, fault))
            }
            End::Cut => {
                let message = "the stream of script ended without a finish reason";
                let fault = ModelFault::new(FaultKind::Transient, message);
                Some(self.failed(now, Cause::Cut, None, fault))
            }
            End::Hang => {
                self.state = State::Hanging(now.plus(self.limits.model_idle));
                None
            }
        }
    }

    fn finish(&mut self, reason: Option<FinishReason>) -> ModelEvent {
        self.state = State::Over;
        let said = core::mem::take(&mut self.said);
        let calls = said.calls.finish();
        ModelEvent::Finished(Answer {
            text: said.text,
            reasoning: said.reasoning,
            finish: FinishReason::of(reason, !calls.is_empty()),
            calls,
            usage: said.usage,
        })
    }

    fn failed(
        &mut self,
        now: Instant,
        cause: Cause,
        asked: Option<Duration>,
        fault: ModelFault,
    ) -> ModelEvent {
        // The cursor gave an attempt for each repeat that the rules allow.
        if self.attempts.len() > 1
            && let Some(after) = self.retries.next(cause, asked)
        {
            self.attempts.pop_front();
            self.state = State::Begin(now.plus(after));
            let why = fault.message;
            return ModelEvent::Retrying { after, why };
        }
        self.state = State::Over;
        ModelEvent::Failed(fault.after_repeats(self.retries.made()))
    }
}

/// What a model says that has nothing left to say.
const ENDED: &str = "script ended";

impl Said {
    /// Load is for the wire; the history keeps its beginning.
    fn keep_load(&mut self, text: &str, max: usize) {
        if self.load < max {
            let kept = crate::wire::text::cut(text, max - self.load);
            self.text.push_str(kept);
            self.load += kept.len().max(1);
        }
    }
}

/// The next piece of `text` behind `done` bytes: at most `max` bytes, but one character at least.
fn next_piece<'a>(text: &'a str, max: Option<usize>, done: &mut u64) -> Option<&'a str> {
    let rest = &text[*done as usize..];
    let first = rest.chars().next()?.len_utf8();
    let piece = crate::wire::text::cut(rest, max.unwrap_or(rest.len()).max(first));
    *done += piece.len() as u64;
    Some(piece)
}
