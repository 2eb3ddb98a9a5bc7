//! A session as it was left: its records are taken in, and what the end of the agent broke off is ended by
//! records of its own.

use super::mode::Mode;
use super::record::{End, Extent, Reason, Record, ToolResult};
use super::verify::Unverified;
use super::{Context, Engine, subagent};

/// More messages than the attempts of one answer can be.
const UNREMEMBERED: u32 = 1000;

/// What the model is told of a call that was under way when the agent ended.
const BROKEN_OFF: &str = "The agent ended while this ran: it may have taken effect in part.";

impl Engine {
    /// Takes in a record of the session as it was left. In their order, before anything else.
    pub fn restore(&mut self, record: &Record) {
        self.history.apply(record);
        match record {
            Record::User(user) => {
                self.spoken.skip(user.id);
                self.broken_off = true;
                if let Some(mode) = user.mode.as_deref().and_then(Mode::named) {
                    self.told = mode;
                }
                if user.from.begins_turn() {
                    self.paused = None;
                    self.unverified.begin_turn();
                }
            }
            Record::Assistant(answer) => {
                self.messages.skip(answer.id);
                let tokens = answer
                    .usage
                    .map(|usage| usage.prompt.saturating_add(usage.completion));
                self.used = tokens.or(self.used);
                // Until a record of the goal says how many there were.
                if self.pursuit.runs() && answer.extent == Extent::Whole {
                    self.pursuit.spent(tokens.unwrap_or(0));
                }
            }
            Record::Goal(pursuit) => {
                if self.pursuit.is_draft() && !pursuit.is_draft() && pursuit.runs() {
                    // A goal is set: what was open before is no part of it.
                    self.unverified = Unverified::default();
                }
                self.pursuit = pursuit.clone();
            }
            Record::Options(options) => {
                self.enter(Mode::named(&options.mode).unwrap_or_default());
            }
            Record::Call { id, .. } => {
                self.shown_open.insert(id.clone());
            }
            Record::Result(result) => {
                self.shown_open.remove(&result.id);
                let ran = result.ran.as_deref();
                self.unverified
                    .take(&self.verifier, result.wrote, ran, result.ok);
            }
            Record::Plan { todos } => self.state.restore_todos(todos.clone()),
            Record::Subagent(subagent) => {
                if subagent.title.is_some() {
                    self.subagents.next();
                    self.child_open = Some(subagent.clone());
                }
                if subagent.ended.is_some() {
                    self.child_open = None;
                }
                if let Some(usage) = subagent.usage.filter(|_| self.pursuit.runs()) {
                    self.pursuit
                        .spent(usage.prompt.saturating_add(usage.completion));
                }
            }
            Record::Summary { id, .. } => {
                self.messages.skip(*id);
                self.used = None;
                self.told = Mode::Normal;
            }
            Record::End(end) => {
                self.broken_off = false;
                if end.reason == Reason::EndTurn {
                    self.paused.clone_from(&end.message);
                }
            }
            Record::Session(_)
            | Record::Roots { .. }
            | Record::Command { .. }
            | Record::Note { .. }
            | Record::Mended { .. }
            | Record::Unknown => {}
        }
    }

    /// All records were taken in: ends what the end of the agent broke off, by records of its own.
    pub fn mend(&mut self, cx: &mut Context<'_>) {
        if self.broken_off {
            // Messages were shown that are not remembered: no other one may have their numbers.
            self.messages.leap(UNREMEMBERED);
        }
        if let Some(open) = self.child_open.take() {
            self.record(cx, subagent::broken_off(open));
        }
        // A plan that was put before the person is a call of no answer.
        let shown = core::mem::take(&mut self.shown_open);
        let mut open = self.history.open_calls().to_vec();
        open.extend(
            shown
                .into_iter()
                .filter(|id| !self.history.open_calls().contains(id)),
        );
        for id in open {
            self.record(
                cx,
                Record::Result(ToolResult {
                    id,
                    text: BROKEN_OFF.into(),
                    ..ToolResult::default()
                }),
            );
        }
        if core::mem::take(&mut self.broken_off) {
            self.pursue(cx, |pursuit, _| {
                pursuit.break_round(None, core::time::Duration::ZERO);
            });
            self.record(
                cx,
                Record::End(End {
                    reason: Reason::Interrupted,
                    message: None,
                }),
            );
        }
    }
}
