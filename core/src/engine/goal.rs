//! A goal: what the person wants reached, and whether the agent goes on towards it after a turn.
//! Pure; knows no model, no wire and no clock.
//!
//! In goal mode the next prompt becomes the goal. After each round (one answer of the model without
//! calls) the loop decides, inside the one prompt, whether another round follows.
//!
//! | status | event | status after |
//! | --- | --- | --- |
//! | any | draft, then a prompt | running: a new goal, all counters zero |
//! | running | draft | running, as before, until the next prompt |
//! | any | another mode is chosen | no goal, no draft |
//! | any | a prompt begins | the same; the label of the turn before is gone |
//! | running | a round ends | as [`Pursuit::end_round`] decides |
//! | running | a turn is cancelled, fails or ends otherwise | running, with that label |
//! | running | pause | paused, `manual`; the round that runs is not withdrawn |
//! | not running | pause | refused |
//! | paused, blocked, or running with the label cancelled | resume | running |
//! | none, complete, otherwise running | resume | refused |
//!
//! No second model judges a round. What stands for it: the model's own report (`update_goal`), what
//! is open in its plan, what it wrote and did not verify, and whether anything came of the last
//! rounds at all.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::Limits;
use crate::tools::{GoalClaim, GoalReport, GoalStep};
use crate::wire::text::cut;

/// The goal of a session, if there is one, and whether the next prompt becomes one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pursuit {
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    draft: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<Goal>,
}

/// A goal, how it stands and what it took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Goal {
    /// What is to be reached, in the person's words; empty once it is.
    pub objective: String,
    /// How it stands.
    pub status: GoalStatus,
    /// How the last turn ended, if badly. Says nothing of the goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// Rounds, whole or not.
    pub turns: u64,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Answers of the model.
    pub requests: u64,
    /// Time from the beginning of a round to its end, milliseconds, the person's included.
    pub work_ms: u64,
    /// Rounds in a row in which nothing was got done.
    pub no_progress: u32,
    /// Tokens at which it stops; 0: it does not.
    pub tokens_limit: u64,
    /// What the model or the loop said last of how it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it does not run, if it was not the model that said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<StopCause>,
    /// Its last completed steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<GoalStep>,
}

/// How a goal stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalStatus {
    /// The loop goes on after each round.
    #[default]
    Running,
    /// The person stopped it.
    Paused,
    /// It cannot go on by itself.
    Blocked,
    /// It is reached.
    Complete,
}

/// How the last turn of a goal ended, if badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The person cancelled it.
    Cancelled,
    /// It failed.
    Failed,
}

/// Why a goal does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// The person paused it.
    Manual,
    /// It has used its tokens.
    BudgetSpend,
    /// Nothing came of the last rounds.
    GoalStuck,
}

impl StopCause {
    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::BudgetSpend => "budget_spend",
            Self::GoalStuck => "goal_stuck",
        }
    }
}

/// A goal cannot be paused or resumed as it stands.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum GoalError {
    /// Only a goal that was stopped can be resumed (−32010).
    #[error("there is no stopped goal to resume: set a goal, or let the one that runs go on")]
    NothingToResume,
    /// Only a goal that runs can be paused (−32011).
    #[error("no goal runs that could be paused")]
    NotRunning,
}

/// What a prompt means for the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Nothing: an ordinary turn.
    None,
    /// It is the goal.
    Set,
    /// The goal that runs goes on with it.
    Continued,
}

/// What is known of a round when it has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The last report of the model.
    pub report: Option<GoalReport>,
    /// The steps it completed.
    pub steps: Vec<GoalStep>,
    /// What is not completed in its plan.
    pub open: Vec<String>,
    /// What was written and is not verified, in words, where that counts.
    pub unverified: Option<String>,
    /// Whether anything was done: a call succeeded that was not about the goal itself.
    pub progress: bool,
    /// How long it took.
    pub worked: Duration,
}

/// What follows a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follows {
    /// Another round, which begins with this text to the model.
    Round(String),
    /// The end of the turn.
    End,
}

impl Pursuit {
    /// The goal there is.
    pub fn goal(&self) -> Option<&Goal> {
        self.goal.as_ref()
    }

    /// Whether a goal runs.
    pub fn runs(&self) -> bool {
        self.goal
            .as_ref()
            .is_some_and(|goal| goal.status == GoalStatus::Running)
    }

    /// Whether the next prompt becomes a new goal.
    pub fn is_draft(&self) -> bool {
        self.draft
    }

    /// Goal mode was chosen: the next prompt becomes a new goal. One that runs goes on until then.
    pub fn set_draft(&mut self) {
        self.draft = true;
    }

    /// Another mode was chosen: there is no goal any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// A prompt begins a turn.
    pub fn begin_turn(&mut self, text: &str, limits: &Limits) -> Opening {
        if core::mem::take(&mut self.draft) {
            let words = match text.trim() {
                "" => "what the first prompt shows",
                words => words,
            };
            self.goal = Some(Goal {
                objective: shortened(words, limits.max_goal_objective),
                tokens_limit: limits.goal_tokens,
                ..Goal::default()
            });
            return Opening::Set;
        }
        if let Some(goal) = &mut self.goal {
            goal.label = None;
        }
        if self.runs() {
            Opening::Continued
        } else {
            Opening::None
        }
    }

    /// The model answered while a goal runs.
    pub fn spent(&mut self, tokens: u64) {
        if let Some(goal) = self.running() {
            goal.tokens = goal.tokens.saturating_add(tokens);
            goal.requests = goal.requests.saturating_add(1);
        }
    }

    /// A round has ended as it should. The first of these that is so decides:
    ///
    /// | | | status |
    /// | --- | --- | --- |
    /// | 1 | no goal runs (any more) | as it is |
    /// | 2 | the model says that it is blocked | blocked |
    /// | 3 | the model says that it is complete, and nothing is open or unverified | complete |
    /// | 4 | the tokens are used up | blocked, `budget_spend` |
    /// | 5 | nothing came of so many rounds | blocked, `goal_stuck` |
    /// | 6 | otherwise | running: another round |
    pub fn end_round(&mut self, round: Round, limits: &Limits) -> Follows {
        self.count(round.worked);
        let Some(goal) = &mut self.goal else {
            return Follows::End;
        };
        goal.steps.extend(round.steps);
        let over = goal.steps.len().saturating_sub(limits.max_goal_steps);
        goal.steps.drain(..over);
        if goal.status != GoalStatus::Running {
            return Follows::End;
        }
        goal.no_progress = if round.progress {
            0
        } else {
            goal.no_progress.saturating_add(1)
        };
        let claim = round.report.as_ref().map(|report| report.claim);
        let gaps = gaps(&round.open, round.unverified.as_deref());
        if let Some(report) = &round.report {
            goal.reason = Some(report.reason.clone());
        }
        if claim == Some(GoalClaim::Blocked) {
            goal.stop(GoalStatus::Blocked, None);
        } else if claim == Some(GoalClaim::Complete) && gaps.is_empty() {
            goal.stop(GoalStatus::Complete, None);
            goal.objective.clear();
        } else if goal.tokens_limit > 0 && goal.tokens >= goal.tokens_limit {
            goal.stop(GoalStatus::Blocked, Some(StopCause::BudgetSpend));
            goal.reason = Some(format!(
                "the goal has used its {} tokens",
                goal.tokens_limit
            ));
        } else if goal.no_progress >= limits.goal_stuck {
            goal.stop(GoalStatus::Blocked, Some(StopCause::GoalStuck));
            goal.reason = Some(format!(
                "nothing came of the last {} turns",
                goal.no_progress
            ));
        } else {
            let next = round.report.and_then(|report| report.next_action);
            return Follows::Round(goal.go_on(claim, next, &gaps));
        }
        Follows::End
    }

    /// A turn has ended otherwise, in the middle of a round: with the label, if it was cancelled or
    /// failed. The goal goes on with the next prompt.
    pub fn break_round(&mut self, label: Option<Label>, worked: Duration) {
        self.count(worked);
        if let Some(goal) = self.running() {
            goal.label = label;
        }
    }

    /// The person stops the goal. A round that runs goes on to its end, and none follows.
    pub fn pause(&mut self) -> Result<(), GoalError> {
        let goal = self.running().ok_or(GoalError::NotRunning)?;
        goal.stop(GoalStatus::Paused, Some(StopCause::Manual));
        Ok(())
    }

    /// The person lets the goal go on with the next prompt. Objective and counters stay; one that
    /// had used its tokens gets as many again.
    pub fn resume(&mut self, limits: &Limits) -> Result<(), GoalError> {
        let goal = self.goal.as_mut().ok_or(GoalError::NothingToResume)?;
        match (goal.status, goal.label) {
            (GoalStatus::Paused | GoalStatus::Blocked, _)
            | (GoalStatus::Running, Some(Label::Cancelled)) => {}
            (GoalStatus::Complete, _) | (GoalStatus::Running, Some(Label::Failed) | None) => {
                return Err(GoalError::NothingToResume);
            }
        }
        match goal.cause {
            Some(StopCause::BudgetSpend) => {
                goal.tokens_limit = goal.tokens.saturating_add(limits.goal_tokens);
            }
            Some(StopCause::GoalStuck) => goal.no_progress = 0,
            Some(StopCause::Manual) | None => {}
        }
        goal.status = GoalStatus::Running;
        goal.cause = None;
        goal.label = None;
        self.draft = false;
        Ok(())
    }

    fn count(&mut self, worked: Duration) {
        if let Some(goal) = self
            .goal
            .as_mut()
            .filter(|goal| goal.status != GoalStatus::Complete)
        {
            goal.turns = goal.turns.saturating_add(1);
            let worked = u64::try_from(worked.as_millis()).unwrap_or(u64::MAX);
            goal.work_ms = goal.work_ms.saturating_add(worked);
        }
    }

    fn running(&mut self) -> Option<&mut Goal> {
        self.goal
            .as_mut()
            .filter(|goal| goal.status == GoalStatus::Running)
    }
}

impl Goal {
    fn stop(&mut self, status: GoalStatus, cause: Option<StopCause>) {
        self.status = status;
        self.cause = cause;
        self.label = None;
    }

    /// What the model is told at the beginning of another round.
    fn go_on(&self, claim: Option<GoalClaim>, next: Option<String>, gaps: &[String]) -> String {
        let mut text = String::from("The goal is not reached yet: ");
        text.push_str(&shortened(&self.objective, MAX_REMINDER));
        if let Some(next) = next {
            text.push_str("\n\nNext, as you said: ");
            text.push_str(&next);
        } else if !gaps.is_empty() {
            text.push_str("\n\nStill missing:");
            for gap in gaps {
                text.push_str("\n- ");
                text.push_str(gap);
            }
        }
        text.push_str(match claim {
            Some(_) => "\n\nGo on.",
            None => {
                "\n\nGo on. Before you end an answer call update_goal: complete if the goal is \
                 reached, blocked if you need the person, else continue."
            }
        });
        text
    }
}

/// What the model is told with the person's prompt in goal mode.
pub const GOAL_NOTE: &str = "[The agent: goal mode is on, and what the person wrote is the goal or \
    belongs to it. Work towards it in as many steps as it takes; you are asked to go on after each \
    answer. Keep a plan with todo_write, check your work with the project's own tests or checks, \
    and call update_goal before you end an answer: complete, blocked or continue.]";

/// Longest objective that the model is reminded of whole, bytes.
const MAX_REMINDER: usize = 1024;

fn gaps(open: &[String], unverified: Option<&str>) -> Vec<String> {
    let open = open
        .iter()
        .map(|entry| format!("open in the plan: {entry}"));
    open.chain(unverified.map(String::from)).collect()
}

fn shortened(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.into();
    }
    let sign = "…";
    format!("{}{sign}", cut(text, max.saturating_sub(sign.len())))
}
#[cfg(test)]
mod tests;
