//! One attempt's answer out of its chunks. Knows no bytes, no time and no retries.

use alloc::format;
use alloc::string::String;

use super::calls::Calls;
use super::chunk::{Chunk, Delta};
use super::fault::{FaultKind, ModelFault};
use super::types::{Answer, FinishReason, Usage};

/// What one attempt has said so far.
#[derive(Debug)]
pub(super) struct Decoder {
    provider: String,
    max: usize,
    size: usize,
    pub(super) text: String,
    pub(super) reasoning: String,
    calls: Calls,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
}

/// What a chunk added to what is shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Added {
    /// Reasoning; comes before text.
    pub(super) thought: Option<String>,
    /// Text.
    pub(super) text: Option<String>,
    /// Something that is no text: held text must not wait behind it.
    pub(super) other: bool,
}

/// A call costs more than its text.
const CALL_SIZE: usize = 128;

impl Decoder {
    /// Nothing said. `provider` is for messages, `max` bounds what is kept, bytes.
    pub(super) fn new(provider: &str, max: usize) -> Self {
        Self {
            provider: provider.into(),
            max,
            size: 0,
            text: String::new(),
            reasoning: String::new(),
            calls: Calls::default(),
            finish: None,
            usage: None,
        }
    }

    /// Takes the data of one event of a stream, which is not `[DONE]`.
    pub(super) fn chunk(&mut self, json: &str) -> Result<Added, ModelFault> {
        self.take(json, false)
    }

    /// Takes a whole answer in one piece: what proxies give that do not stream.
    pub(super) fn whole(&mut self, json: &str) -> Result<Added, ModelFault> {
        let added = self.take(json, true)?;
        if self.finish.is_none() {
            if !added.other && added.text.is_none() && added.thought.is_none() {
                return Err(self.garbage("answered with JSON that holds no answer"));
            }
            self.finish = Some(FinishReason::Stop);
        }
        Ok(added)
    }

    /// Whether a finish reason came.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The answer. Ask only once it ended: by a finish reason or by `[DONE]`.
    pub(super) fn answer(&mut self) -> Result<Answer, ModelFault> {
        let calls = core::mem::take(&mut self.calls).finish();
        let none = calls.is_empty() && self.text.is_empty();
        if none && self.finish == Some(FinishReason::ToolCalls) {
            return Err(self.garbage("said that it calls tools and called none"));
        }
        Ok(Answer {
            text: core::mem::take(&mut self.text),
            reasoning: core::mem::take(&mut self.reasoning),
            finish: FinishReason::of(self.finish, !calls.is_empty()),
            calls,
            usage: self.usage,
        })
    }

    fn take(&mut self, json: &str, whole: bool) -> Result<Added, ModelFault> {
        let chunk = Chunk::read(json).map_err(|error| {
            let begin = crate::wire::text::cut(json, 80);
            self.garbage(&format!(
                "sent what is no chunk of an answer ({error}): {begin}"
            ))
        })?;
        if let Some(error) = chunk.error() {
            return Err(ModelFault::in_answer(&self.provider, error));
        }
        if let Some(usage) = chunk.usage() {
            self.usage = Some(usage);
        }
        let mut added = Added::default();
        let Some(choice) = chunk.choice() else {
            return Ok(added);
        };
        let said = match (&choice.delta, &choice.message) {
            (Some(delta), _) if !whole => Some(delta),
            // In a stream a whole message only sums up, unless nothing came before it.
            (_, Some(message)) if whole || self.size == 0 => Some(message),
            (delta, _) => delta.as_ref(),
        };
        if let Some(said) = said {
            self.add(said, &mut added)?;
        }
        if let Some(reason) = choice.finish_reason() {
            let reason = self.known(&reason)?;
            self.finish.get_or_insert(reason);
            added.other = true;
        }
        Ok(added)
    }

    fn add(&mut self, said: &Delta<'_>, added: &mut Added) -> Result<(), ModelFault> {
        added.thought = said.reasoning();
        added.text = said.text();
        let calls = said
            .calls()
            .map_err(|error| self.garbage(&format!("sent unreadable tool calls ({error})")))?;
        added.other = !calls.is_empty();
        if let Some(thought) = &added.thought {
            self.size += thought.len();
            self.reasoning.push_str(thought);
        }
        if let Some(text) = &added.text {
            self.size += text.len();
            self.text.push_str(text);
        }
        for call in calls {
            self.size += CALL_SIZE + call.id.len() + call.name.len() + call.arguments.len();
            self.calls.add(call);
        }
        if self.size > self.max {
            let max = self.max;
            return Err(self.garbage(&format!("gave an answer longer than {max} bytes")));
        }
        Ok(())
    }

    fn known(&self, reason: &str) -> Result<FinishReason, ModelFault> {
        Ok(match reason {
            "stop" => FinishReason::Stop,
            "length" => FinishReason::Length,
            "tool_calls" | "function_call" => FinishReason::ToolCalls,
            "content_filter" => FinishReason::ContentFilter,
            // The provider gave up in the middle: DeepSeek without resources, routers whose own
            // provider failed.
            "insufficient_system_resource" | "error" => {
                return Err(ModelFault::new(
                    FaultKind::Transient,
                    &format!("{} broke off its answer: {reason}", self.provider),
                ));
            }
            _ => {
                return Err(
                    self.garbage(&format!("ended with the unknown finish reason {reason:?}"))
                );
            }
        })
    }

    fn garbage(&self, what: &str) -> ModelFault {
        ModelFault::new(FaultKind::Garbage, &format!("{} {what}", self.provider))
    }
}
