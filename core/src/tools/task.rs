//! The tool that gives a task to a subagent. What a subagent is, its parent knows.

use alloc::string::String;

use super::args::Args;
use super::run::{Begun, Context, Event, Work};
use super::step::{Assignment, Step};
use super::workspace::Workspace;
use crate::permission::Access;

/// Tools that a subagent does not have: it has no subagents of its own, and the person, the plan,
/// the folders and the goal are its parent's.
const NOT_FOR_SUBAGENTS: [&str; 6] = [
    "task",
    "ask",
    "todo_write",
    "add_root",
    "update_goal",
    "complete_step",
];

/// Whether a subagent has the tool of this name, if there is one.
pub fn is_for_subagents(name: &str) -> bool {
    !NOT_FOR_SUBAGENTS.contains(&name)
}

pub(super) fn task(args: &Args<'_>, _ws: &Workspace) -> Result<Begun, String> {
    let assignment = Assignment {
        title: args.words("description")?,
        prompt: args.words("prompt")?,
        read_only: args.flag("read_only")?,
    };
    let subject = assignment.title.clone();
    Ok(Begun::new(Task(Some(assignment)), subject))
}

#[derive(Debug)]
struct Task(Option<Assignment>);

impl Work for Task {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        match event {
            Event::Started => cx.permit(Access::Session, alloc::vec::Vec::new()),
            Event::Permitted => {
                let given = self.0.take().map(Step::Delegate);
                cx.flow.steps.extend(given);
            }
            Event::Answered(_)
            | Event::Bytes(_)
            | Event::Done(_)
            | Event::Failed(_)
            | Event::Due
            | Event::Idle => {}
        }
    }
}
