//! The scripted model: a JSON Lines file that says what a model answers. Knows no time.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use super::chunk;
pub use super::cursor::{Position, ScriptAnswer, ScriptCursor};
use super::types::{FinishReason, Usage};
use crate::limits::Limits;

/// A parsed script. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script(Arc<Steps>);

/// Everything a script says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Steps {
    /// Answers before any `when`.
    pub(super) plain: Vec<Scripted>,
    /// Branches: what a prompt must contain, and the answers.
    pub(super) branches: Vec<(String, Vec<Scripted>)>,
}

/// One answer: steps and how it ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scripted {
    pub(super) steps: Vec<Step>,
    pub(super) end: End,
}

/// One thing a scripted model does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Text, in pieces of at most so many bytes.
    Text(String, Option<usize>),
    /// A thought, in pieces of at most so many bytes.
    Thought(String, Option<usize>),
    /// A tool use: id, name, arguments.
    Tool(String, String, String),
    /// Silence.
    Sleep(Duration),
    /// Tokens.
    Usage(Usage),
    /// Load.
    Repeat(Load),
    /// Load, as the prompt says.
    Plan,
}

/// How a scripted answer ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Well; `None`: the reason that fits what it did.
    Finish(Option<FinishReason>),
    /// With a refusal.
    Error {
        status: u16,
        retry_after: Option<Duration>,
        message: Option<String>,
    },
    /// The stream breaks off.
    Cut,
    /// Never.
    Hang,
}

/// Chunks of text, all alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Load {
    /// How many.
    pub(super) chunks: u64,
    /// Bytes of each.
    pub(super) size: usize,
    /// Of what.
    pub(super) text: LoadText,
    /// Microseconds after each.
    pub(super) pace_us: u64,
}

/// What the chunks of a load are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LoadText {
    /// The alphabet.
    #[default]
    Plain,
    /// Line ends, quotes, a backslash, characters of several bytes.
    Mixed,
}

/// A line that is no step.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {reason}")]
#[non_exhaustive]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl Script {
    /// Parses the text of a script.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut parser = Parser::default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (at, line) in text.split('\n').enumerate() {
            let line = line.trim();
            if !line.is_empty() {
                parser.line(at + 1, line).map_err(|reason| ScriptError {
                    line: at + 1,
                    reason,
                })?;
            }
        }
        parser.end_answer(None);
        Ok(Self(Arc::new(parser.done)))
    }

    /// The answers of one session, from the beginning.
    pub fn answers(&self, limits: &Limits) -> ScriptCursor {
        ScriptCursor::new(self.0.clone(), limits)
    }
}

/// One line: exactly one member.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
struct LineWire<'a> {
    text: Option<String>,
    thought: Option<String>,
    tool: Option<String>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    id: Option<String>,
    sleep_ms: Option<u64>,
    chunk: Option<usize>,
    error: Option<ErrorWire>,
    cut: Option<bool>,
    hang: Option<bool>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    repeat: Option<Load>,
    plan: Option<PlanWire>,
    finish: Option<FinishWire>,
    when: Option<WhenWire>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorWire {
    status: u16,
    retry_after: Option<u64>,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PlanWire {
    Prompt,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FinishWire {
    Stop,
    Length,
    ContentFilter,
    ToolCalls,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhenWire {
    prompt_contains: String,
}

#[derive(Default)]
struct Parser {
    done: Steps,
    steps: Vec<Step>,
    chunk: Option<usize>,
}

impl Parser {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let wire: LineWire<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let members = [
            wire.text.is_some(),
            wire.thought.is_some(),
            wire.tool.is_some(),
            wire.sleep_ms.is_some(),
            wire.chunk.is_some(),
            wire.error.is_some(),
            wire.cut.is_some(),
            wire.hang.is_some(),
            wire.usage.is_some(),
            wire.repeat.is_some(),
            wire.plan.is_some(),
            wire.finish.is_some(),
            wire.when.is_some(),
        ];
        match members.iter().filter(|given| **given).count() {
            1 => {}
            0 => return Err("no step: one of text, thought, tool, sleep_ms, chunk, error, cut, hang, usage, repeat, plan, finish, when".into()),
            _ => return Err("more than one step".into()),
        }
        if wire.tool.is_none() && (wire.args.is_some() || wire.id.is_some()) {
            return Err("args and id belong to a tool".into());
        }

        if let Some(text) = wire.text {
            self.steps.push(Step::Text(text, self.chunk));
        } else if let Some(thought) = wire.thought {
            self.steps.push(Step::Thought(thought, self.chunk));
        } else if let Some(name) = wire.tool {
            let id = wire.id.unwrap_or_else(|| format!("script_{number}"));
            // A string is the text itself, so that broken arguments can be scripted.
            let arguments = wire.args.map_or_else(String::new, |args| {
                chunk::text(args)
                    .filter(|_| args.get().starts_with('"'))
                    .unwrap_or_else(|| args.get().into())
            });
            self.steps.push(Step::Tool(id, name, arguments));
        } else if let Some(ms) = wire.sleep_ms {
            self.steps.push(Step::Sleep(Duration::from_millis(ms)));
        } else if let Some(bytes) = wire.chunk {
            if bytes == 0 {
                return Err("chunk: at least 1 byte".into());
            }
            self.chunk = Some(bytes);
        } else if let Some(error) = wire.error {
            if !(400..600).contains(&error.status) {
                return Err(format!("error: {} is no status of a refusal", error.status));
            }
            self.end_answer(Some(End::Error {
                status: error.status,
                retry_after: error.retry_after.map(Duration::from_secs),
                message: error.message,
            }));
        } else if let Some(usage) = wire.usage {
            let usage = chunk::usage(usage)
                .ok_or("usage: an object with prompt_tokens and completion_tokens")?;
            self.steps.push(Step::Usage(usage));
        } else if let Some(load) = wire.repeat {
            self.steps.push(Step::Repeat(load));
        } else if let Some(PlanWire::Prompt) = wire.plan {
            self.steps.push(Step::Plan);
        } else if let Some(finish) = wire.finish {
            self.end_answer(Some(End::Finish(Some(match finish {
                FinishWire::Stop => FinishReason::Stop,
                FinishWire::Length => FinishReason::Length,
                FinishWire::ContentFilter => FinishReason::ContentFilter,
                FinishWire::ToolCalls => FinishReason::ToolCalls,
            }))));
        } else if let Some(when) = wire.when {
            self.end_answer(None);
            self.done.branches.push((when.prompt_contains, Vec::new()));
        } else {
            let (end, on) = match (wire.cut, wire.hang) {
                (Some(on), _) => (End::Cut, on),
                (None, on) => (End::Hang, on == Some(true)),
            };
            if !on {
                return Err("cut and hang take only true".into());
            }
            self.end_answer(Some(end));
        }
        Ok(())
    }

    /// Ends an answer; without a step for it, only if one has begun.
    fn end_answer(&mut self, end: Option<End>) {
        let steps = core::mem::take(&mut self.steps);
        let end = match end {
            Some(end) => end,
            None if steps.is_empty() => return,
            None => End::Finish(None),
        };
        let answers = match self.done.branches.last_mut() {
            Some((_, answers)) => answers,
            None => &mut self.done.plain,
        };
        answers.push(Scripted { steps, end });
    }
}
