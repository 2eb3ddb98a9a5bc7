//! The built-in tools as pure logic: arguments → calls → result text, diff, locations. Knows
//! nothing of ACP and of models.
//!
//! Each tool is a small state machine over the call table ([`crate::call`]): [`ToolRun::start`]
//! reads the arguments, [`ToolRun::next_step`] says what must happen next, the answers come back by
//! [`ToolRun::handle_news`], [`ToolRun::permitted`] and their like. Every tool passes the gate by
//! one [`Step::Permit`], readers too, before it does what it is about.

mod add_root;
mod args;
mod bash;
mod catalogue;
mod change;
mod diff;
mod edit;
mod entry;
mod external;
mod goal;
mod kind;
mod look;
mod notebook;
mod paths;
mod roots;
mod run;
mod session;
mod skill;
mod state;
mod step;
mod task;
mod text;
mod web;
mod workspace;

#[cfg(test)]
mod tests;

#[cfg(feature = "engine")]
pub(crate) use add_root::adds_roots;
#[cfg(feature = "agent")]
pub(crate) use args::shown as shown_arguments;
pub use catalogue::{Class, Tool, catalogue, find, light};
pub use external::{External, ExternalFault};
pub use goal::{Evidence, GoalClaim, GoalReport, GoalStep};
pub use kind::ToolKind;
pub use paths::readable;
pub use roots::{RootFault, RootFaultKind, Vetted, Vetting, overlaps};
pub use run::ToolRun;
pub use skill::Skill;
#[cfg(feature = "agent")]
pub(crate) use state::digest;
pub use state::{JobId, ToolState};
pub use step::{
    Answer, AnswerKind, Assignment, Card, Choice, Diff, EditorText, Location, Proposal, Question,
    Step, Todo, TodoStatus, ToolOutcome,
};
pub use task::is_for_subagents;
#[cfg(feature = "engine")]
pub(crate) use web::is_web;
pub use workspace::{Sandbox, Web, Workspace};
