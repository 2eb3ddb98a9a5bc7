//! A command line that the person runs themselves: one tool call, shown and decided on as those of the
//! model are, and no model is asked. The model hears of it, with its output, when it is asked next.

use alloc::format;

use super::batch::Batch;
use super::record::Record;
use super::turn::{Phase, Turn};
use super::{Context, Ending, Engine};
use crate::tools::ToolRun;

/// What the call is called, if nothing is called so yet.
const ID: &str = "line";

impl Engine {
    /// Runs a command line of the person's own in place of a turn. The parent sees to it that no turn
    /// runs.
    pub fn run_line(&mut self, cx: &mut Context<'_>, line: &str) {
        debug_assert!(self.turn.is_none(), "a line is run in place of a turn");
        let id = self.history.mint(ID);
        // A string always has a JSON form.
        let command = serde_json::to_string(line).unwrap_or_default();
        let arguments = format!("{{\"command\":{command}}}");
        let run = ToolRun::start("bash", &arguments, &self.workspace);
        self.record(
            cx,
            Record::Call {
                id: id.clone(),
                card: run.card().clone(),
                line: Some(line.into()),
            },
        );
        let mut turn = Turn::new(cx.now, false);
        turn.only_runs = true;
        turn.phase = Phase::Tools(Batch::of_line(id, run));
        self.turn = Some(turn);
    }

    /// Every call of an answer has ended.
    pub(super) fn tools_over(&mut self, cx: &mut Context<'_>) {
        match &self.turn {
            Some(turn) if turn.only_runs => self.finish(cx, Ending::EndTurn),
            Some(_) | None => self.ask_model(cx),
        }
    }

    /// What the person ran may have verified what was open.
    pub(super) fn line_over(&mut self) {
        if !self.unverified.is_open() {
            self.paused = None;
        }
    }
}
