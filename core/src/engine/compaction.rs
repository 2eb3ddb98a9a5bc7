//! What to do before the context window is full: the older part of the history is replaced by a
//! summary that the model makes itself.
//!
//! | why | a summary | the model says no sensible one | the model says that even this is too long | it is away, or refuses |
//! | --- | --- | --- | --- | --- |
//! | the window is nearly full, or the person asked | replaces | the history stays | left out | the history stays |
//! | the provider said that the request is too long | replaces | left out | left out | the turn has failed, the history stays |
//! | the history is larger than it may be | replaces | left out | left out | the same; left out where it is twice as large |
//!
//! "Left out" stands for: replaced by a line that says that it was left out.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::mode::Mode;
use super::record::Record;
use super::turn::{Phase, Turn};
use super::{Brain, Compacting, Context, Ending, Engine, Output, Update};
use crate::limits::Limits;
use crate::model::{Answer, ChatMessage, FaultKind, FinishReason, ModelFault};

/// Messages at the end that stay as they are.
pub(super) const KEEP: usize = 8;

/// The share of the window that may be used, in percent.
const FULL: u64 = 80;

/// Bytes a token has at least, for what the provider has not counted yet: code and prose have
/// three to four.
const BYTES_PER_TOKEN: u64 = 3;

/// What a person can do where no summary could be made and the turn cannot go on without one.
const TOO_LONG: &str = ". The conversation is too long to go on before its older part is summarized, \
    and that is the model's work too: nothing of it is lost. Say it again later, or begin a new session.";

const ASK: &str = "Summarize the conversation so far for yourself, since its older part will be \
    replaced by your summary: what the person wants, what was decided, what was done in which \
    files, what is open, and every fact you will need. Only the summary, no tool calls.";

impl Engine {
    /// Replaces the older part of the history by a summary now. False: there is nothing that could
    /// go.
    pub fn compact_now(&mut self, cx: &mut Context<'_>) -> bool {
        self.take_next();
        if self.history.cut_for(KEEP) < 2 {
            return false;
        }
        let mut turn = Turn::new(cx.now, false);
        turn.only_compacts = true;
        self.turn = Some(turn);
        if let Brain::Nobody(why) = &self.brain {
            let message = why.clone();
            self.finish(
                cx,
                Ending::Failed {
                    message,
                    auth: true,
                },
            );
            return true;
        }
        self.compact(cx, false)
    }

    /// Whether the next request would come too near to the end of the window, or the history has
    /// become too large to keep (then `true`: it has to go).
    pub(super) fn compaction_is_due(&self, limits: &Limits) -> Option<bool> {
        // With one message that could go nothing would be won: it may be a summary itself.
        if self.history.cut_for(KEEP) < 2 {
            return None;
        }
        let forced = self.history.size() > limits.max_history;
        let full = self.context_window.is_some_and(|window| {
            let bytes = (self.history.bytes() + self.system.len()) as u64;
            let tokens = self.used.unwrap_or(0).max(bytes / BYTES_PER_TOKEN);
            tokens > window / 100 * FULL
        });
        (forced || full).then_some(forced)
    }

    /// Begins to compact; false if there is nothing that could go.
    pub(super) fn compact(&mut self, cx: &mut Context<'_>, forced: bool) -> bool {
        let cut = self.history.cut_for(KEEP);
        if cut == 0 || self.turn.is_none() {
            return false;
        }
        let mut messages: Vec<ChatMessage> = Vec::with_capacity(cut + 2);
        messages.push(ChatMessage::System(self.system.clone()));
        messages.extend_from_slice(&self.history.messages()[..cut]);
        messages.push(ChatMessage::user(ASK));
        let run = self.model_run(cx, messages);
        let id = self.messages.next();
        if let Some(turn) = &mut self.turn {
            turn.tried = true;
            turn.phase = Phase::Compacting {
                run,
                call: None,
                id,
                cut,
                forced,
            };
        }
        let stage = Compacting::Began;
        cx.out
            .push_back(Output::Update(Update::Compacting { id, stage }));
        true
    }

    /// The summary is there, or there is none: then the history stays as it is, unless the turn
    /// could not go on with it at all.
    pub(super) fn compacted(&mut self, cx: &mut Context<'_>, answer: Result<Answer, ModelFault>) {
        let Some(Turn {
            phase: Phase::Compacting {
                id, cut, forced, ..
            },
            ..
        }) = &self.turn
        else {
            return;
        };
        let (id, cut, mut forced) = (*id, *cut, *forced);
        let mut why = String::from("the model gave no summary");
        let usage = answer.as_ref().ok().and_then(|answer| answer.usage);
        self.spent(usage.as_ref());
        let cost = self.cost(usage.as_ref());
        let summary = match answer {
            Ok(answer) if !answer.text.trim().is_empty() && counts(answer.finish, forced) => Some(
                format!("Summary of the conversation so far:\n{}", answer.text),
            ),
            Ok(_) => None,
            // The provider may be there again later, and the history is still needed then.
            Err(fault)
                if forced
                    && fault.kind != FaultKind::ContextOverflow
                    && self.history.size() / 2 <= cx.limits.max_history =>
            {
                let stage = Compacting::Failed(fault.message.clone());
                cx.out
                    .push_back(Output::Update(Update::Compacting { id, stage }));
                let auth = fault.kind == FaultKind::Auth;
                let mut message = fault.message;
                if !auth {
                    message = format!("{message}{TOO_LONG}");
                }
                return self.finish(cx, Ending::Failed { message, auth });
            }
            Err(fault) => {
                forced |= fault.kind == FaultKind::ContextOverflow;
                Self::log(cx, format!("no summary: {fault}"));
                why = fault.message;
                None
            }
        };
        if summary.is_none() && !forced {
            let stage = Compacting::Failed(why);
            cx.out
                .push_back(Output::Update(Update::Compacting { id, stage }));
            return self.go_on_after_compaction(cx);
        }
        let summary = summary
            .unwrap_or_else(|| String::from("The older part of the conversation was left out."));
        self.record(
            cx,
            Record::Summary {
                gone: cut,
                text: summary,
                id,
                usage,
                cost,
            },
        );
        self.used = None;
        // What it was told of the mode may be gone with the rest.
        self.told = Mode::Normal;
        self.go_on_after_compaction(cx);
    }

    fn go_on_after_compaction(&mut self, cx: &mut Context<'_>) {
        match &self.turn {
            Some(turn) if turn.only_compacts => self.finish(cx, Ending::EndTurn),
            Some(_) | None => self.ask_model(cx),
        }
    }
}

/// Whether a summary that ended so may stand for what it replaces: one that was cut only where that has
/// to go in any case.
fn counts(finish: FinishReason, forced: bool) -> bool {
    match finish {
        FinishReason::Stop | FinishReason::ToolCalls => true,
        FinishReason::Length => forced,
        FinishReason::ContentFilter => false,
    }
}
