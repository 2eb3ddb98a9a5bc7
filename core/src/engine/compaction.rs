//! What to do before the context window is full: the older part of the history is replaced by a
//! summary that the model makes itself.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::history::History;
use super::turn::{Phase, Turn};
use super::{Context, Engine, Output, Update};
use crate::model::{Answer, ChatMessage, Text};

/// Messages at the end that stay as they are.
const KEEP: usize = 8;

/// The share of the window that may be used, in percent.
const FULL: u64 = 80;

/// Bytes a token has at least, for what the provider has not counted yet: code and prose have
/// three to four.
const BYTES_PER_TOKEN: u64 = 3;

const ASK: &str = "Summarize the conversation so far for yourself, since its older part will be \
    replaced by your summary: what the person wants, what was decided, what was done in which \
    files, what is open, and every fact you will need. Only the summary, no tool calls.";

/// Whether the next request would come too near to the end of the window.
pub(super) fn is_due(
    used: Option<u64>,
    window: Option<u64>,
    history: &History,
    system: &str,
) -> bool {
    let Some(window) = window else { return false };
    let bytes = (history.bytes() + system.len()) as u64;
    let tokens = used.unwrap_or(0).max(bytes / BYTES_PER_TOKEN);
    tokens > window / 100 * FULL && history.cut_for(KEEP) > 0
}

impl Engine {
    /// Begins to compact; false if there is nothing that could go.
    pub(super) fn compact(&mut self, cx: &mut Context<'_>) -> bool {
        let cut = self.history.cut_for(KEEP);
        if cut == 0 || self.turn.is_none() {
            return false;
        }
        let mut messages: Vec<ChatMessage> = Vec::with_capacity(cut + 2);
        messages.push(ChatMessage::System(self.system.clone()));
        messages.extend_from_slice(&self.history.messages()[..cut]);
        messages.push(ChatMessage::user(ASK));
        let run = self.model_run(cx, messages);
        if let Some(turn) = &mut self.turn {
            turn.phase = Phase::Compacting {
                run,
                call: None,
                cut,
            };
        }
        true
    }

    /// The summary is there, or there is none: then the older part goes without one, since the
    /// turn could not go on at all otherwise.
    pub(super) fn compacted(&mut self, cx: &mut Context<'_>, answer: Option<Answer>) {
        let Some(Turn {
            phase: Phase::Compacting { cut, .. },
            ..
        }) = &self.turn
        else {
            return;
        };
        let keep = self.history.messages().len() - cut;
        let summary = match answer {
            Some(answer) if !answer.text.is_empty() => {
                format!("Summary of the conversation so far:\n{}", answer.text)
            }
            Some(_) | None => String::from("The older part of the conversation was left out."),
        };
        let gone = self.history.compact(keep, summary);
        self.used = None;
        if let Some(turn) = &mut self.turn {
            turn.before = turn.before.after_compaction(gone);
        }
        cx.out.push_back(Output::Update(Update::Text {
            thought: false,
            text: Text::Owned(format!("\n\n[compacted {gone} messages]\n\n")),
            message: None,
        }));
        self.ask_model(cx);
    }
}
