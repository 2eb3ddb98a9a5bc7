//! The tools by which the model says how it stands with a goal: update_goal, complete_step. They
//! lay it down in the session's [`ToolState`]; what comes of it is decided elsewhere. Outside goal
//! mode they refuse, and say so.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::args::Args;
use super::run::{Begun, Context, Event, Work};
use super::state::ToolState;
use super::step::{Step, TodoStatus};
use super::text;
use super::workspace::Workspace;
use crate::permission::Access;

/// How the model says a goal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GoalClaim {
    /// It goes on.
    Continue,
    /// It is reached.
    Complete,
    /// It cannot be reached without help.
    Blocked,
}

impl GoalClaim {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Continue, Self::Complete, Self::Blocked];

    /// Its name in the tool's arguments.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Complete => "complete",
            Self::Blocked => "blocked",
        }
    }
}

/// What the model says about a goal, with `update_goal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalReport {
    /// How it stands.
    pub claim: GoalClaim,
    /// Why.
    pub reason: String,
    /// What comes next; only with [`GoalClaim::Continue`].
    pub next_action: Option<String>,
}

/// A step that the model says is done, with `complete_step`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalStep {
    /// Which.
    pub step: String,
    /// What came of it.
    pub result: String,
    /// What shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// What else is worth knowing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// What shows that a step is done. A claim of the model: nothing is decided by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// `verification`, `diff`, `files` or `manual`.
    pub kind: String,
    /// In words.
    pub summary: String,
    /// The command that was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The files it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

/// What was laid down since it was last taken. There is one in goal mode only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Desk {
    report: Option<GoalReport>,
    steps: Vec<GoalStep>,
}

impl ToolState {
    /// Goal mode begins or ends: only in it do the tools of a goal work.
    pub fn set_goal_mode(&mut self, on: bool) {
        if !on {
            self.goal = None;
        } else if self.goal.is_none() {
            self.goal = Some(Desk::default());
        }
    }

    /// The last report since this was asked for; each is given once.
    pub fn take_report(&mut self) -> Option<GoalReport> {
        self.goal.as_mut()?.report.take()
    }

    /// The steps completed since this was asked for; each is given once.
    pub fn take_steps(&mut self) -> Vec<GoalStep> {
        let desk = self.goal.as_mut();
        desk.map(|desk| core::mem::take(&mut desk.steps))
            .unwrap_or_default()
    }

    fn desk(&mut self) -> Result<&mut Desk, String> {
        self.goal.as_mut().ok_or_else(|| {
            "There is no goal: this tool works only after the person set one, in goal mode. Say \
             what you have to say in your answer."
                .into()
        })
    }
}

pub(super) fn update_goal(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let words = args.words("status")?;
    let claim = GoalClaim::ALL
        .into_iter()
        .find(|claim| claim.name() == words)
        .ok_or_else(|| {
            format!(
                "`status` must be continue, complete or blocked, not {:?}",
                text::one_line(&words, 40)
            )
        })?;
    let cut = |text: String| bounded(text, ws);
    let next_action = args.opt_string("next_action")?.map(cut);
    let report = GoalReport {
        claim,
        reason: cut(args.words("reason")?),
        next_action: next_action.filter(|next| !next.is_empty() && claim == GoalClaim::Continue),
    };
    Ok(Begun::new(Said::Report(report), claim.name()))
}

pub(super) fn complete_step(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let cut = |text: String| bounded(text, ws);
    let mut evidence = Vec::new();
    for item in args.opt_list("evidence")?.unwrap_or_default() {
        let kind = item.words("kind")?;
        if !["verification", "diff", "files", "manual"].contains(&kind.as_str()) {
            return Err(format!(
                "`kind` of the evidence must be verification, diff, files or manual, not {:?}",
                text::one_line(&kind, 40)
            ));
        }
        let paths = item.opt_strings("paths")?.unwrap_or_default();
        if evidence.len() < ws.limits.max_goal_evidence {
            evidence.push(Evidence {
                kind,
                summary: cut(item.words("summary")?),
                command: item.opt_string("command")?.map(cut),
                paths: paths
                    .into_iter()
                    .take(ws.limits.max_goal_evidence)
                    .map(cut)
                    .collect(),
            });
        }
    }
    let step = GoalStep {
        step: cut(args.words("step")?),
        result: cut(args.words("result")?),
        evidence,
        notes: args.opt_string("notes")?.map(cut).filter(|n| !n.is_empty()),
    };
    let subject = step.step.clone();
    Ok(Begun::new(Said::Step(step), subject))
}

fn bounded(said: String, ws: &Workspace) -> String {
    text::cut_middle(said.trim().into(), ws.limits.max_goal_text)
}

#[derive(Debug)]
enum Said {
    Report(GoalReport),
    Step(GoalStep),
}

impl Work for Said {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        match event {
            Event::Started => cx.permit(Access::Session, Vec::new()),
            Event::Permitted => match (cx.state.desk().err(), self) {
                (Some(why), _) => cx.fail(why),
                (None, Self::Report(report)) => noted(report, cx),
                (None, Self::Step(step)) => done(step, cx),
            },
            Event::Answered(_)
            | Event::Bytes(_)
            | Event::Done(_)
            | Event::Failed(_)
            | Event::Due
            | Event::Idle => {}
        }
    }
}

fn noted(report: &GoalReport, cx: &mut Context<'_>) {
    let open = cx.state.todos().iter();
    let open: Vec<&str> = open
        .filter(|todo| todo.status != TodoStatus::Completed)
        .map(|todo| todo.content.as_str())
        .collect();
    let text = match report.claim {
        GoalClaim::Complete if !open.is_empty() => format!(
            "Noted. The goal counts as reached once nothing is open in the plan; now there is: {}",
            open.join("; ")
        ),
        GoalClaim::Complete => "Noted. End your answer with what was done.".into(),
        GoalClaim::Blocked => "Noted. End your answer with what you need from the person.".into(),
        GoalClaim::Continue => "Noted. Go on, or end your answer and go on after that.".into(),
    };
    if let Ok(desk) = cx.state.desk() {
        desk.report = Some(report.clone());
    }
    cx.succeed(text);
}

fn done(step: &GoalStep, cx: &mut Context<'_>) {
    let most = cx.ws.limits.max_goal_steps;
    if let Ok(desk) = cx.state.desk() {
        desk.steps.push(step.clone());
        let over = desk.steps.len().saturating_sub(most);
        desk.steps.drain(..over);
    }
    let mut todos = cx.state.todos().to_vec();
    let entry = todos
        .iter_mut()
        .find(|todo| todo.content == step.step && todo.status != TodoStatus::Completed);
    let text = match entry {
        Some(todo) => {
            todo.status = TodoStatus::Completed;
            cx.state.set_todos(todos.clone());
            cx.flow.steps.push_back(Step::Plan(todos));
            "Noted; the entry of the plan is marked as completed."
        }
        None => "Noted.",
    };
    cx.succeed(text);
}
