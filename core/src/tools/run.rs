//! One tool call from its arguments to its result.

use alloc::vec::Vec;

use super::catalogue::Class;
use super::state::ToolState;
use super::step::{Answer, Card, Step};
use super::workspace::Workspace;
use crate::call::News;
use crate::time::{Deadline, Instant};

/// One tool call. Its parent drives it: [`next_step`](Self::next_step) until
/// [`Step::Wait`] or [`Step::Done`], after every input.
#[derive(Debug)]
pub struct ToolRun {
    card: Card,
    class: Class,
}

impl ToolRun {
    /// Begins a call. Never fails: an unknown tool or bad arguments make a run that is `Done` with
    /// the reason at its first step.
    pub fn start(name: &str, arguments: &str, ws: &Workspace) -> Self {
        let _ = (name, arguments, ws);
        todo!()
    }

    /// What to show of the call from the beginning.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Whether it may run beside others: readers may, with readers. An unknown tool is a reader,
    /// since it does nothing.
    pub fn class(&self) -> Class {
        self.class
    }

    /// What must happen next.
    pub fn next_step(&mut self, now: Instant, ws: &Workspace, state: &mut ToolState) -> Step {
        let _ = (now, ws, state);
        todo!()
    }

    /// Takes news of the open call. Ignored if there is none.
    pub fn handle_news(
        &mut self,
        now: Instant,
        news: News<'_>,
        ws: &Workspace,
        state: &mut ToolState,
    ) {
        let _ = (now, news, ws, state);
        todo!()
    }

    /// The gate or the user allowed what [`Step::Permit`] proposed.
    pub fn permitted(&mut self) {
        todo!()
    }

    /// The gate or the user did not. The run ends without having done anything.
    pub fn denied(&mut self, why: &str) {
        let _ = why;
        todo!()
    }

    /// The user answered what [`Step::Ask`] asked: one answer a question, in order. Fewer count as
    /// unanswered.
    pub fn answered(&mut self, answers: Vec<Answer>) {
        let _ = answers;
        todo!()
    }

    /// The turn is cancelled: an open call is aborted, nothing more is started, and the run ends
    /// when that call has settled, at once if there is none.
    pub fn cancel(&mut self) {
        todo!()
    }

    /// Takes the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// When it wants to be woken.
    pub fn deadline(&self) -> Option<Deadline> {
        todo!()
    }

    /// How many bytes its open call may deliver now.
    pub fn room(&self) -> usize {
        todo!()
    }

    /// Whether it has an open call.
    pub fn has_open_call(&self) -> bool {
        todo!()
    }
}
