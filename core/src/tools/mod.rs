//! The built-in tools as pure logic: arguments → calls → result text, diff, locations. Knows
//! nothing of ACP and of models.
//!
//! Each tool is a small state machine over the call table ([`crate::call`]): [`ToolRun::start`]
//! reads the arguments, [`ToolRun::next_step`] says what must happen next, the answers come back by
//! [`ToolRun::handle_news`], [`ToolRun::permitted`] and their like. Every tool passes the gate by
//! one [`Step::Permit`], readers too, before it does what it is about.

mod args;
mod catalogue;
mod kind;
mod run;
mod state;
mod step;
mod workspace;

pub use catalogue::{Class, Tool, catalogue, find, light};
pub use kind::ToolKind;
pub use run::ToolRun;
pub use state::{JobId, ToolState};
pub use step::{
    Answer, Card, Choice, Diff, Location, Proposal, Question, Step, Todo, TodoStatus, ToolOutcome,
};
pub use workspace::Workspace;
