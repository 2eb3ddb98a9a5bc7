//! The body of one attempt's answer: what shape it has, what it says, where it ends, and the
//! joining of its text. Knows no calls and no repeats.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::decode::{Added, Decoder};
use super::fault::{FaultKind, ModelFault, html};
use super::retry::Cause;
use super::types::{Answer, ModelEvent, Text};
use crate::call::Opened;
use crate::error::{IoFault, IoKind};
use crate::limits::Limits;
use crate::time::{Deadline, Instant, Timer};
use crate::wire::SseDecoder;

/// The body of an answer whose head is a success.
#[derive(Debug)]
pub(super) struct Body {
    provider: String,
    status: u16,
    /// The content type, if it is another one than that of a stream.
    strange: Option<String>,
    idle: Duration,
    shape: Shape,
    decoder: Decoder,
    joined: Joined,
    heard: Instant,
    ended: Option<Result<(), IoFault>>,
    /// When to stop waiting for what may follow: set by a finish reason, `[DONE]` or a page.
    tail: Option<Instant>,
    done: bool,
    any_event: bool,
}

/// What came of one step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is left to do now.
    Idle,
    /// Something was done.
    Some,
    /// The answer is whole: [`Body::answer`].
    Whole,
    /// The attempt failed; another one may help if there is a cause.
    Failed(Option<Cause>, ModelFault),
}

/// What a body turns out to be.
#[derive(Debug)]
enum Shape {
    /// Only blank bytes so far.
    Unknown,
    /// A stream of events; whether its end was told to the decoder.
    Events(SseDecoder, bool),
    /// One JSON object.
    Json(Vec<u8>),
    /// A page for people.
    Page(Vec<u8>),
}

impl Body {
    pub(super) fn new(
        now: Instant,
        provider: &str,
        head: &Opened,
        idle: Duration,
        limits: &Limits,
    ) -> Self {
        let strange = head
            .header("content-type")
            .filter(|kind| !kind.trim_start().starts_with("text/event-stream"));
        Self {
            provider: provider.into(),
            status: head.status,
            strange: strange.map(String::from),
            idle,
            shape: Shape::Unknown,
            decoder: Decoder::new(provider, limits.max_answer),
            joined: Joined::default(),
            heard: now,
            ended: None,
            tail: None,
            done: false,
            any_event: false,
        }
    }

    /// Takes bytes. Where they go is said by the first one that is not blank: content types lie.
    pub(super) fn push(&mut self, now: Instant, bytes: &[u8], limits: &Limits) {
        self.heard = now;
        match &mut self.shape {
            Shape::Events(sse, _) => sse.push(bytes),
            Shape::Json(json) => json.extend_from_slice(bytes),
            Shape::Page(page) => {
                let room = limits.max_error_body.saturating_sub(page.len());
                page.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Shape::Unknown => {
                // Blank bytes in front mean nothing in any of the shapes. A byte order mark is
                // blank: none of its bytes can begin a shape.
                let blank = |byte: &u8| b" \t\r\n\xef\xbb\xbf".contains(byte);
                let Some(first) = bytes.iter().position(|byte| !blank(byte)) else {
                    return;
                };
                self.shape = match bytes[first] {
                    b'{' | b'[' => Shape::Json(Vec::new()),
                    b'<' => {
                        self.tail = Some(now.plus(limits.model_tail));
                        Shape::Page(Vec::new())
                    }
                    _ => Shape::Events(SseDecoder::new(limits.max_sse_event), false),
                };
                self.push(now, &bytes[first..], limits);
            }
        }
    }

    /// The body is over.
    pub(super) fn end(&mut self, how: Result<(), IoFault>) {
        self.ended = Some(how);
    }

    /// Does one thing; what it says goes to `out`.
    pub(super) fn step(
        &mut self,
        now: Instant,
        limits: &Limits,
        out: &mut VecDeque<ModelEvent>,
    ) -> Progress {
        if self.joined.due(limits).is_some_and(|due| due <= now) {
            self.flush(out);
            return Progress::Some;
        }
        let progress = self.read_event(now, limits, out);
        if progress == Progress::Idle {
            return self.rest(now, limits, out);
        }
        progress
    }

    /// Gives what is held back.
    pub(super) fn flush(&mut self, out: &mut VecDeque<ModelEvent>) {
        self.joined.flush(out);
    }

    /// The whole answer, after [`Progress::Whole`].
    pub(super) fn answer(&mut self) -> Result<Answer, ModelFault> {
        self.decoder.answer()
    }

    /// All its text so far.
    pub(super) fn text(&self) -> &str {
        &self.decoder.text
    }

    /// All its thoughts so far.
    pub(super) fn thought(&self) -> &str {
        &self.decoder.reasoning
    }

    /// The silence up to here does not count.
    pub(super) fn held_until(&mut self, now: Instant) {
        self.heard = self.heard.max(now);
    }

    pub(super) fn deadline(&self, limits: &Limits) -> Option<Deadline> {
        let silence = Deadline {
            at: self.tail.unwrap_or(self.heard.plus(self.idle)),
            why: Timer::ModelIdle,
        };
        let held = self.joined.due(limits).map(|at| Deadline {
            at,
            why: Timer::Coalesce,
        });
        Deadline::earlier(Some(silence), held)
    }

    fn read_event(
        &mut self,
        now: Instant,
        limits: &Limits,
        out: &mut VecDeque<ModelEvent>,
    ) -> Progress {
        let Shape::Events(sse, _) = &mut self.shape else {
            return Progress::Idle;
        };
        let event = match sse.next_event() {
            Ok(Some(event)) => event,
            Ok(None) => return Progress::Idle,
            Err(fault) => {
                let message = format!("the stream of {} cannot be read: {fault}", self.provider);
                return Progress::Failed(None, ModelFault::new(FaultKind::Garbage, &message));
            }
        };
        self.heard = now;
        self.any_event = true;
        let data = event.data.trim();
        if self.done || data.is_empty() {
            return Progress::Some;
        }
        if data == "[DONE]" {
            self.done = true;
            self.tail = Some(now.plus(limits.model_linger));
            self.flush(out);
            return Progress::Some;
        }
        match self.decoder.chunk(data) {
            Ok(added) => {
                self.joined.add(now, added, limits, out);
                if self.tail.is_none() && self.decoder.is_finished() {
                    self.tail = Some(now.plus(limits.model_tail));
                }
                Progress::Some
            }
            // The stream broke off inside the event.
            Err(fault) if !event.complete && fault.kind == FaultKind::Garbage => Progress::Some,
            Err(fault) => failed(fault),
        }
    }

    /// All that came is read: is this the end?
    fn rest(&mut self, now: Instant, limits: &Limits, out: &mut VecDeque<ModelEvent>) -> Progress {
        let late = self.tail.is_some_and(|tail| now >= tail);
        match &mut self.shape {
            Shape::Json(json) if json.len() > limits.max_answer => {
                let max = limits.max_answer;
                self.garbage(&format!("gave an answer longer than {max} bytes"))
            }
            Shape::Page(page) => {
                if self.ended.is_none() && page.len() < limits.max_error_body && !late {
                    return Progress::Idle;
                }
                let page = html(&String::from_utf8_lossy(page));
                self.garbage(&format!("answered {} with {page}", self.status))
            }
            Shape::Events(sse, told) if self.ended.is_some() && !*told => {
                *told = true;
                sse.finish();
                Progress::Some
            }
            Shape::Unknown | Shape::Events(..) | Shape::Json(_) => match self.ended.take() {
                Some(how) => self.over(now, how, limits, out),
                None if late => Progress::Whole,
                None if self.tail.is_none() && now >= self.heard.plus(self.idle) => {
                    let message = format!(
                        "{} sent nothing for {} s (idle timeout)",
                        self.provider,
                        self.idle.as_secs_f32()
                    );
                    let fault = ModelFault::new(FaultKind::Timeout, &message);
                    Progress::Failed(Some(Cause::Timeout), fault)
                }
                None => Progress::Idle,
            },
        }
    }

    fn over(
        &mut self,
        now: Instant,
        how: Result<(), IoFault>,
        limits: &Limits,
        out: &mut VecDeque<ModelEvent>,
    ) -> Progress {
        if self.done || self.decoder.is_finished() {
            return Progress::Whole;
        }
        if let Err(fault) = how {
            let message = format!("{} broke off its answer: {}", self.provider, fault.message);
            let (kind, cause) = if fault.kind == IoKind::TimedOut {
                (FaultKind::Timeout, Cause::Timeout)
            } else {
                (FaultKind::Transient, Cause::Cut)
            };
            return Progress::Failed(Some(cause), ModelFault::new(kind, &message));
        }
        match &self.shape {
            Shape::Unknown => self.garbage(&format!("answered {} with an empty body", self.status)),
            Shape::Json(json) => {
                let json = String::from_utf8_lossy(json);
                match self.decoder.whole(&json) {
                    Ok(added) => {
                        self.joined.add(now, added, limits, out);
                        self.flush(out);
                        Progress::Whole
                    }
                    Err(fault) => failed(fault),
                }
            }
            Shape::Events(..) | Shape::Page(_) => match &self.strange {
                Some(kind) if !self.any_event => {
                    let kind = kind.clone();
                    self.garbage(&format!(
                        "answered with {kind} instead of a stream of events"
                    ))
                }
                Some(_) | None => {
                    let message = format!(
                        "the stream of {} ended without a finish reason",
                        self.provider
                    );
                    let fault = ModelFault::new(FaultKind::Transient, &message);
                    Progress::Failed(Some(Cause::Cut), fault)
                }
            },
        }
    }

    fn garbage(&self, what: &str) -> Progress {
        let message = format!("{} {what}", self.provider);
        Progress::Failed(None, ModelFault::new(FaultKind::Garbage, &message))
    }
}

/// A fault that the answer itself reports.
fn failed(fault: ModelFault) -> Progress {
    let cause = match (fault.kind, fault.status) {
        (FaultKind::Transient, Some(status)) => Some(Cause::Status(status)),
        (FaultKind::Transient, None) => Some(Cause::Cut),
        (FaultKind::Timeout, _) => Some(Cause::Timeout),
        (
            FaultKind::Auth
            | FaultKind::Permanent
            | FaultKind::ContextOverflow
            | FaultKind::Garbage,
            _,
        ) => None,
    };
    Progress::Failed(cause, fault)
}

/// Text that is held to be joined with more: it goes out with something that is no text, when it
/// fills a frame, or when its time is over; never because a read ended.
#[derive(Debug, Default)]
struct Joined {
    held: Option<(Kind, String, Instant)>,
    /// The first text of the attempt went out, at once.
    begun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thought,
}

impl Joined {
    fn add(&mut self, now: Instant, added: Added, limits: &Limits, out: &mut VecDeque<ModelEvent>) {
        for (kind, text) in [(Kind::Thought, added.thought), (Kind::Text, added.text)] {
            if let Some(text) = text {
                self.add_text(now, kind, text, limits, out);
            }
        }
        if added.other {
            self.flush(out);
        }
    }

    fn add_text(
        &mut self,
        now: Instant,
        kind: Kind,
        text: String,
        limits: &Limits,
        out: &mut VecDeque<ModelEvent>,
    ) {
        if self.held.as_ref().is_some_and(|(held, ..)| *held != kind) {
            self.flush(out);
        }
        let (_, held, _) = self.held.get_or_insert((kind, String::new(), now));
        held.push_str(&text);
        if !self.begun || held.len() >= limits.model_text {
            self.flush(out);
        }
        self.begun = true;
    }

    fn flush(&mut self, out: &mut VecDeque<ModelEvent>) {
        if let Some((kind, text, _)) = self.held.take() {
            let text = Text::Owned(text);
            out.push_back(match kind {
                Kind::Text => ModelEvent::Text(text),
                Kind::Thought => ModelEvent::Thought(text),
            });
        }
    }

    fn due(&self, limits: &Limits) -> Option<Instant> {
        let (.., began) = self.held.as_ref()?;
        Some(began.plus(limits.coalesce))
    }
}
