//! How a session stands, as `_reasonix.io/session/status` tells it: followed from what its engine
//! says. Pure; sends nothing.
//!
//! What a turn ends as; the first row that fits:
//!
//! | the turn | the goal | phase | outcome | event |
//! | --- | --- | --- | --- | --- |
//! | was cancelled | | cancelled | cancelled | completion |
//! | ended as it should | complete | review_ready | completed | completion |
//! | ended as it should, nothing is unverified | none | completed | completed | completion |
//! | ended as it should | blocked | paused | paused | pause |
//! | ended as it should, something is unverified | | readiness_paused | paused | pause |
//! | failed | | error | error | error |
//! | was broken off by the end of the agent | | recovery_paused | paused | pause |
//! | ended otherwise, or the goal is paused or not complete | | paused | paused | pause |

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::fit::cut_json;
use super::quote;
use crate::engine::goal::{Goal, GoalStatus, Label};
use crate::engine::record::{Assistant, End, Reason, Record, Said};
use crate::limits::Limits;
use crate::model::{Spend, UsageSource};
use crate::protocol::schema::SessionId;
use crate::protocol::schema::vendor::goal as told;
use crate::protocol::schema::vendor::status::{
    OutcomeKind, Phase, SCHEMA_VERSION, Sandbox, SessionState, StatusEvent, StatusSnapshot,
    TurnOutcome,
};
use crate::wire::text::cut;

/// Longest summary, bytes of JSON.
const SUMMARY: usize = 16_384;
/// Longest objective of a goal, bytes of JSON: all of it together has to fit into one frame.
const OBJECTIVE: usize = 8192;
/// Longest reason or risk, bytes of JSON.
const REASON: usize = 2048;

/// How a session stands.
#[derive(Debug, Default)]
pub(super) struct Status {
    sequence: u64,
    running: bool,
    phase: Phase,
    outcome: TurnOutcome,
    ready: bool,
    risks: Vec<String>,
    summary: String,
    turn: Spend,
    cumulative: Spend,
}

/// What is told of a session and followed elsewhere.
pub(super) struct Facts<'a> {
    pub(super) session: SessionId,
    pub(super) model: &'a str,
    pub(super) effort: &'a str,
    pub(super) mode: &'a str,
    pub(super) work_mode: &'a str,
    pub(super) goal: Option<&'a Goal>,
    pub(super) sandbox: Sandbox,
}

impl Status {
    /// The turn does this now; an event if that is to be told. That tools run is shown anyway, and
    /// told only where something was waited for.
    pub(super) fn enter(&mut self, phase: Phase) -> Option<StatusEvent> {
        if !self.running || self.phase == phase {
            return None;
        }
        let told = phase != Phase::Implementing || self.is_waiting();
        self.phase = phase;
        self.moved(told, StatusEvent::Phase)
    }

    /// Whether the person is waited for.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::WaitingPermission | Phase::WaitingInput)
    }

    /// Something was remembered, while the goal stands so; an event if it is to be told. In the
    /// order of the records, also of a session that is loaded.
    pub(super) fn take(&mut self, record: &Record, goal: Option<&Goal>) -> Option<StatusEvent> {
        match record {
            Record::User(user) if user.from.begins_turn() => {
                self.running = true;
                self.phase = Phase::Starting;
                self.outcome = TurnOutcome::default();
                self.ready = false;
                self.risks.clear();
                self.turn = Spend::default();
                self.moved(true, StatusEvent::Phase)
            }
            Record::Assistant(answer) => {
                let text = beginning(answer);
                if !text.is_empty() {
                    self.summary = text;
                }
                for spend in [&mut self.turn, &mut self.cumulative] {
                    let cost = answer.cost.as_ref();
                    spend.add(answer.usage.as_ref(), cost, UsageSource::Executor);
                }
                self.moved(true, StatusEvent::Usage)
            }
            Record::Subagent(subagent) => {
                let (usage, cost) = (subagent.usage.as_ref(), subagent.cost.as_ref());
                if usage.is_none() && cost.is_none() {
                    return None;
                }
                for spend in [&mut self.turn, &mut self.cumulative] {
                    spend.add(usage, cost, UsageSource::Subagent);
                }
                self.moved(true, StatusEvent::Usage)
            }
            Record::Summary { usage, cost, .. } => {
                for spend in [&mut self.turn, &mut self.cumulative] {
                    spend.add(usage.as_ref(), cost.as_ref(), UsageSource::Compaction);
                }
                self.moved(true, StatusEvent::Usage)
            }
            Record::Goal(_) => self.moved(true, StatusEvent::Goal),
            Record::Call { .. } => self.enter(Phase::Implementing),
            Record::Result(_) if self.is_waiting() => self.enter(Phase::Implementing),
            Record::End(end) => {
                let (phase, kind, reason, event) = closing(end, goal);
                self.running = false;
                self.phase = phase;
                self.ready = kind == OutcomeKind::Completed && end.reason == Reason::EndTurn;
                if self.phase == Phase::ReadinessPaused {
                    self.risks = reason.clone().into_iter().collect();
                }
                self.outcome.kind = kind;
                self.outcome.reason = reason;
                self.moved(true, event)
            }
            Record::User(_)
            | Record::Result(_)
            | Record::Session(_)
            | Record::Options(_)
            | Record::Plan { .. }
            | Record::Command { .. }
            | Record::Note { .. }
            | Record::Roots { .. }
            | Record::Mended { .. }
            | Record::Unknown => None,
        }
    }

    /// How the last turn ended.
    pub(super) fn outcome(&self) -> &TurnOutcome {
        &self.outcome
    }

    /// What the session used and cost in all.
    pub(super) fn cumulative(&self) -> &Spend {
        &self.cumulative
    }

    /// All of it as it is now; `redact` takes secrets out of what models and tools said.
    pub(super) fn snapshot(
        &self,
        facts: Facts<'_>,
        limits: &Limits,
        redact: impl Fn(&mut String),
    ) -> StatusSnapshot {
        let clean = |text: &str, most: usize| {
            let mut text = String::from(text);
            redact(&mut text);
            text.truncate(cut_json(&text, most).len());
            text
        };
        let mut status = StatusSnapshot::new(facts.session);
        status.schema_version = SCHEMA_VERSION;
        status.sequence = self.sequence;
        status.state = if self.running {
            SessionState::Running
        } else {
            SessionState::Idle
        };
        status.model = facts.model.into();
        status.effort = facts.effort.into();
        status.mode = facts.mode.into();
        status.work_mode = facts.work_mode.into();
        status.planner_mode = "off".into();
        status.goal = goal_told(facts.goal, limits, &redact);
        status.phase = self.phase.clone();
        status.turn_outcome = self.outcome.clone();
        if let Some(reason) = &mut status.turn_outcome.reason {
            *reason = clean(reason, REASON);
        }
        status.final_readiness.ready_for_review = self.ready;
        status.final_readiness.summary = clean(&self.summary, SUMMARY);
        status.final_readiness.risks = self.risks.iter().map(|risk| clean(risk, REASON)).collect();
        status.sandbox = facts.sandbox;
        status.usage.turn = quote::totals(&self.turn);
        status.usage.cumulative = quote::totals(&self.cumulative);
        status
    }

    #[allow(clippy::unnecessary_wraps)] // it is what its callers give on
    fn moved(&mut self, told: bool, event: StatusEvent) -> Option<StatusEvent> {
        self.sequence += 1;
        told.then_some(event)
    }
}

/// The beginning of what the model said: more than the summary holds, so that a secret at its end is
/// still seen whole.
fn beginning(answer: &Assistant) -> String {
    let mut text = String::new();
    for said in &answer.said {
        if let Said::Text(more) = said {
            text.push_str(cut(more, 2 * SUMMARY - text.len()));
        }
    }
    let start = text.len() - text.trim_start().len();
    text.drain(..start);
    text.truncate(text.trim_end().len());
    text
}

/// A goal as it is told; `redact` takes secrets out of it.
pub(super) fn goal_told(
    goal: Option<&Goal>,
    limits: &Limits,
    redact: &impl Fn(&mut String),
) -> told::Goal {
    let clean = |text: &str, most: usize| {
        let mut text = String::from(text);
        redact(&mut text);
        text.truncate(cut_json(&text, most).len());
        text
    };
    let mut shown = told::Goal::default();
    let Some(goal) = goal else { return shown };
    shown.status = match (goal.label, goal.status) {
        (Some(Label::Cancelled), _) => told::GoalStatus::Cancelled,
        (Some(Label::Failed), _) => told::GoalStatus::Failed,
        (None, GoalStatus::Running) => told::GoalStatus::Running,
        (None, GoalStatus::Paused) => told::GoalStatus::Paused,
        (None, GoalStatus::Blocked) => told::GoalStatus::Blocked,
        (None, GoalStatus::Complete) => told::GoalStatus::Complete,
    };
    if goal.objective.is_empty() {
        return shown;
    }
    shown.objective = Some(clean(&goal.objective, OBJECTIVE));
    shown.runtime = Some(told::GoalRuntime {
        turns_used: goal.turns,
        tokens_used: goal.tokens,
        requests_used: Some(goal.requests),
        work_duration_ms: Some(goal.work_ms),
        tokens_limit: goal.tokens_limit,
        no_progress_turns: goal.no_progress.into(),
        no_progress_limit: limits.goal_stuck.into(),
        last_reason: goal.reason.as_ref().map(|reason| clean(reason, REASON)),
        stop_cause: goal.cause.map(|cause| cause.name().into()),
        ..told::GoalRuntime::default()
    });
    shown
}

/// What a turn has ended as: the table above.
fn closing(end: &End, goal: Option<&Goal>) -> (Phase, OutcomeKind, Option<String>, StatusEvent) {
    let status = goal.map(|goal| goal.status);
    let paused = |phase, reason| (phase, OutcomeKind::Paused, Some(reason), StatusEvent::Pause);
    let completed = |phase| (phase, OutcomeKind::Completed, None, StatusEvent::Completion);
    match (end.reason, status) {
        (Reason::Cancelled, _) => {
            let (phase, kind) = (Phase::Cancelled, OutcomeKind::Cancelled);
            (phase, kind, None, StatusEvent::Completion)
        }
        (Reason::EndTurn, Some(GoalStatus::Complete)) => completed(Phase::ReviewReady),
        (Reason::EndTurn, None) if end.message.is_none() => completed(Phase::Completed),
        (Reason::EndTurn, Some(GoalStatus::Blocked)) => {
            let why = goal.and_then(|goal| goal.reason.as_deref());
            paused(Phase::Paused, because("goal blocked", why))
        }
        (Reason::EndTurn, _) if end.message.is_some() => paused(
            Phase::ReadinessPaused,
            end.message.clone().unwrap_or_default(),
        ),
        (Reason::Failed, _) => {
            let reason = end.message.clone();
            (Phase::Error, OutcomeKind::Error, reason, StatusEvent::Error)
        }
        (Reason::Interrupted, _) => paused(Phase::RecoveryPaused, "the agent ended".into()),
        (Reason::EndTurn, Some(GoalStatus::Paused)) => paused(Phase::Paused, "goal paused".into()),
        (Reason::EndTurn, Some(GoalStatus::Running) | None) => {
            paused(Phase::Paused, "goal not complete".into())
        }
        (Reason::MaxTokens, _) => paused(Phase::Paused, "the answer was cut by its length".into()),
        (Reason::MaxTurnRequests, _) => {
            paused(Phase::Paused, "the turn used all its model calls".into())
        }
        (Reason::Refusal, _) => paused(Phase::Paused, "the provider refused it".into()),
    }
}

fn because(what: &str, why: Option<&str>) -> String {
    match why {
        Some(why) => format!("{what}: {why}"),
        None => what.into(),
    }
}
#[cfg(test)]
mod tests;
