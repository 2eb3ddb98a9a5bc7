//! A run over HTTP: attempts, the calls they need, pauses between them. Knows nothing of what is in
//! an answer.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::body::{Body, Progress};
use super::encode;
use super::endpoint::Endpoint;
use super::fault::{FaultKind, ModelFault};
use super::retry::{Cause, Retries, retry_after};
use super::types::{ChatMessage, ModelEvent, ToolSpec};
use crate::call::{Call, HeaderValue, HttpRequest, News, Opened};
use crate::error::{IoFault, IoKind};
use crate::limits::Limits;
use crate::reach::Reach;
use crate::secret::Secret;
use crate::time::{Deadline, Instant, Timer};

/// One answer over HTTP.
#[derive(Debug)]
pub(super) struct HttpRun {
    request: HttpRequest,
    provider: String,
    key: Option<Secret>,
    idle: Duration,
    limits: Limits,
    retries: Retries,
    wall: Option<(Instant, u64)>,
    state: State,
    /// The body of the current or last attempt.
    body: Option<Body>,
    /// Bytes of its text that were handed out.
    given: usize,
    given_thought: usize,
    /// The call was started and has neither ended nor been aborted.
    open: bool,
    /// Nothing can be done before the next input or the deadline.
    drained: bool,
    /// Bytes taken since it was drained.
    unread: usize,
    queue: VecDeque<ModelEvent>,
}

#[derive(Debug)]
enum State {
    /// There is no key: this variable should hold one.
    Keyless(String),
    /// The first attempt is due.
    Begin,
    /// No head yet.
    Waiting { heard: Instant },
    /// A head that is no success; its body is for people.
    Refused {
        head: Opened,
        told: Vec<u8>,
        until: Instant,
        ended: bool,
    },
    /// A head that is a success: `body` is there.
    Answering,
    /// Between two attempts.
    Pause { until: Instant },
    /// The last event is queued.
    Over,
}

impl HttpRun {
    pub(super) fn new(
        endpoint: &Endpoint,
        messages: &[ChatMessage],
        tools: &[ToolSpec],
        limits: &Limits,
        seed: u64,
    ) -> Self {
        let plain = |text: &str| HeaderValue::Plain(text.into());
        let mut headers = Vec::from([
            ("content-type".into(), plain("application/json")),
            ("accept".into(), plain("text/event-stream")),
        ]);
        if let Some(key) = &endpoint.key {
            headers.push(("authorization".into(), HeaderValue::Bearer(key.clone())));
        }
        Self {
            request: HttpRequest {
                method: "POST",
                url: endpoint.url.clone(),
                headers,
                body: encode::body(endpoint, messages, tools),
                connect_time: limits.model_connect,
                reach: Reach::Anywhere,
            },
            provider: endpoint.provider.clone(),
            key: endpoint.key.clone(),
            idle: endpoint.idle_timeout,
            retries: Retries::new(endpoint.max_retries, seed, limits),
            wall: None,
            state: match &endpoint.missing_key {
                Some(name) => State::Keyless(name.clone()),
                None => State::Begin,
            },
            body: None,
            given: 0,
            given_thought: 0,
            open: false,
            drained: false,
            unread: 0,
            queue: VecDeque::new(),
            limits: limits.clone(),
        }
    }

    pub(super) fn set_wall(&mut self, now: Instant, unix_seconds: u64) {
        self.wall = Some((now, unix_seconds));
    }

    pub(super) fn handle_news(&mut self, now: Instant, news: &News<'_>) {
        if !self.open {
            return;
        }
        self.drained = false;
        self.open = !matches!(news, News::Done(_) | News::Failed(_));
        if let News::Bytes { bytes, .. } = news {
            self.unread += bytes.len();
        }
        match &mut self.state {
            State::Waiting { .. } => match news {
                News::Opened(head) => self.opened(now, head),
                News::Done(_) => {
                    let message = "the connection ended without an answer";
                    self.unanswered(now, &IoFault::new(IoKind::Unreachable, message));
                }
                News::Failed(fault) => self.unanswered(now, fault),
                News::Bytes { .. } | News::Fed(_) => {}
            },
            State::Refused { told, ended, .. } => match news {
                News::Bytes { bytes, .. } => {
                    let room = self.limits.max_error_body.saturating_sub(told.len());
                    told.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
                News::Done(_) | News::Failed(_) => *ended = true,
                News::Opened(_) | News::Fed(_) => {}
            },
            State::Answering => {
                let body = self.body.as_mut().expect("an answering attempt has a body");
                match news {
                    News::Bytes { bytes, .. } => body.push(now, bytes, &self.limits),
                    News::Done(_) => body.end(Ok(())),
                    News::Failed(fault) => body.end(Err(fault.clone())),
                    News::Opened(_) | News::Fed(_) => {}
                }
            }
            State::Keyless(_) | State::Begin | State::Pause { .. } | State::Over => {}
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
        let at = |at, why| Some(Deadline { at, why });
        match &self.state {
            State::Waiting { heard } => at(heard.plus(self.idle), Timer::ModelIdle),
            State::Refused { until, .. } => at(*until, Timer::ModelIdle),
            State::Answering => self.body.as_ref()?.deadline(&self.limits),
            State::Pause { until } => at(*until, Timer::Retry),
            State::Keyless(_) | State::Begin | State::Over => None,
        }
    }

    pub(super) fn next_event(&mut self, now: Instant) -> Option<ModelEvent> {
        while self.queue.is_empty() && self.step(now) {}
        let event = self.queue.pop_front();
        match &event {
            Some(ModelEvent::Text(text)) => self.given += text.len(),
            Some(ModelEvent::Thought(text)) => self.given_thought += text.len(),
            Some(_) => {}
            None => (self.drained, self.unread) = (true, 0),
        }
        event
    }

    pub(super) fn room(&self) -> usize {
        match &self.state {
            State::Waiting { .. } | State::Answering => {
                self.limits.call_window.saturating_sub(self.unread)
            }
            State::Refused { told, .. } => self.limits.max_error_body.saturating_sub(told.len()),
            State::Keyless(_) | State::Begin | State::Pause { .. } | State::Over => 0,
        }
    }

    pub(super) fn held_until(&mut self, now: Instant) {
        if let State::Waiting { heard } = &mut self.state {
            *heard = now.max(*heard);
        }
        if let Some(body) = &mut self.body {
            body.held_until(now);
        }
    }

    pub(super) fn cancel(&mut self) {
        self.queue.clear();
        self.abort();
        self.state = State::Over;
    }

    pub(super) fn partial_text(&self) -> &str {
        // Whole pieces were handed out. An answer that was given took its text along.
        let text = self.body.as_ref().map_or("", Body::text);
        text.get(..self.given).unwrap_or_default()
    }

    pub(super) fn partial_thought(&self) -> &str {
        let thought = self.body.as_ref().map_or("", Body::thought);
        thought.get(..self.given_thought).unwrap_or_default()
    }

    /// Does one thing; `false`: there is nothing to do now.
    fn step(&mut self, now: Instant) -> bool {
        match &mut self.state {
            State::Keyless(name) => {
                let message = format!("no key for {}: set {name} in .env", self.provider);
                self.give_up(ModelFault::new(FaultKind::Auth, &message));
            }
            State::Begin => self.begin(now),
            State::Pause { until } if now >= *until => self.begin(now),
            State::Waiting { heard } if now >= heard.plus(self.idle) => {
                let message = format!(
                    "{} did not answer for {} s (idle timeout)",
                    self.provider,
                    self.idle.as_secs_f32()
                );
                let fault = ModelFault::new(FaultKind::Timeout, &message);
                self.failed(now, Some(Cause::Timeout), None, fault);
            }
            State::Refused {
                head,
                told,
                until,
                ended,
            } => {
                let full = told.len() >= self.limits.max_error_body;
                if !*ended && !full && now < *until {
                    return false;
                }
                let fault = ModelFault::refusal(
                    &self.provider,
                    head.status,
                    &String::from_utf8_lossy(told),
                );
                let cause = Cause::Status(head.status);
                let wall = self
                    .wall
                    .map(|(then, seconds)| seconds + now.since(then).as_secs());
                let asked = retry_after(head, wall);
                // Too many tokens are no fewer the next time, whatever the status says.
                let cause = (fault.kind == FaultKind::Transient).then_some(cause);
                self.failed(now, cause, asked, fault);
            }
            State::Answering => return self.step_body(now),
            State::Pause { .. } | State::Waiting { .. } | State::Over => return false,
        }
        true
    }

    fn step_body(&mut self, now: Instant) -> bool {
        let body = self.body.as_mut().expect("an answering attempt has a body");
        match body.step(now, &self.limits, &mut self.queue) {
            Progress::Idle => return false,
            Progress::Some => {}
            Progress::Whole => match body.answer() {
                Ok(answer) => {
                    body.flush(&mut self.queue);
                    self.abort();
                    self.queue.push_back(ModelEvent::Finished(answer));
                    self.state = State::Over;
                }
                Err(fault) => self.failed(now, None, None, fault),
            },
            Progress::Failed(cause, fault) => self.failed(now, cause, None, fault),
        }
        true
    }

    fn begin(&mut self, now: Instant) {
        self.body = None;
        self.given = 0;
        self.given_thought = 0;
        self.unread = 0;
        self.open = true;
        self.state = State::Waiting { heard: now };
        self.queue.push_back(ModelEvent::Attempt);
        let call = Call::Http(self.request.clone());
        self.queue.push_back(ModelEvent::Start(call));
    }

    fn opened(&mut self, now: Instant, head: &Opened) {
        if (200..300).contains(&head.status) {
            let body = Body::new(now, &self.provider, head, self.idle, &self.limits);
            self.body = Some(body);
            self.state = State::Answering;
        } else {
            self.state = State::Refused {
                head: head.clone(),
                told: Vec::new(),
                until: now.plus(self.limits.model_tail),
                ended: false,
            };
        }
    }

    /// The call failed before the head of an answer.
    fn unanswered(&mut self, now: Instant, fault: &IoFault) {
        let (kind, cause) = match fault.kind {
            IoKind::TimedOut => (FaultKind::Timeout, Some(Cause::Timeout)),
            IoKind::Unreachable | IoKind::Aborted => (FaultKind::Transient, Some(Cause::Network)),
            IoKind::NotFound
            | IoKind::Denied
            | IoKind::Exists
            | IoKind::WrongKind
            | IoKind::TooLarge
            | IoKind::Changed
            | IoKind::Escapes
            | IoKind::Full
            | IoKind::Unsupported
            | IoKind::Other => (FaultKind::Permanent, None),
        };
        let message = format!("{} cannot be reached: {}", self.provider, fault.message);
        self.failed(now, cause, None, ModelFault::new(kind, &message));
    }

    /// The attempt failed: another one, or none.
    fn failed(
        &mut self,
        now: Instant,
        cause: Option<Cause>,
        asked: Option<Duration>,
        fault: ModelFault,
    ) {
        if let Some(body) = &mut self.body {
            body.flush(&mut self.queue);
        }
        self.abort();
        match cause.and_then(|cause| self.retries.next(cause, asked)) {
            Some(after) => {
                self.state = State::Pause {
                    until: now.plus(after),
                };
                let why = fault.without(self.key.as_ref()).message;
                self.queue.push_back(ModelEvent::Retrying { after, why });
            }
            None => self.give_up(fault),
        }
    }

    fn give_up(&mut self, fault: ModelFault) {
        let fault = fault
            .without(self.key.as_ref())
            .after_repeats(self.retries.made());
        self.queue.push_back(ModelEvent::Failed(fault));
        self.state = State::Over;
    }

    fn abort(&mut self) {
        if core::mem::take(&mut self.open) {
            self.queue.push_back(ModelEvent::Abort);
        }
    }
}
