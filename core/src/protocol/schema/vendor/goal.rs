//! The goal of a session: `_reasonix.io/session/goal/pause` and `…/resume`, and how a goal is told.

use alloc::string::String;

use crate::protocol::schema::SessionId;
use crate::protocol::schema::object::{object, open_names};

/// The version of these messages, as `initialize` says it.
pub const SCHEMA_VERSION: u32 = 1;

/// Lets a goal that was stopped go on with the next prompt: [`GoalRequest`] to [`GoalResponse`].
pub const RESUME: &str = "_reasonix.io/session/goal/resume";
/// Stops the goal that runs, at the end of its round: [`GoalRequest`] to [`GoalResponse`].
pub const PAUSE: &str = "_reasonix.io/session/goal/pause";

/// The code of the error when there is no goal to resume: none, one that is reached, one that runs.
pub const NOTHING_TO_RESUME: i32 = -32010;
/// The code of the error when no goal runs that could be paused.
pub const NOT_RUNNING: i32 = -32011;

object! {
    /// A session whose goal is paused or resumed.
    GoalRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        ;
    }
}

object! {
    /// The goal as it stands now.
    GoalResponse {
        /// The goal.
        "goal" goal: Goal = Required,
        ;
    }
}

object! {
    /// A goal.
    Goal {
        /// How it stands.
        "status" status: GoalStatus = Defaulted,
        /// What is to be reached, in the person's words; absent when there is none any more.
        "objective" objective: Option<String> = Lenient,
        /// What it took; there when there is an objective.
        "runtime" runtime: Option<GoalRuntime> = Lenient,
    }
}

open_names! {
    /// How a goal stands, or how its last turn ended.
    #[derive(Default)]
    GoalStatus {
        /// The agent goes on after each answer.
        Running = "running",
        /// It is reached.
        Complete = "complete",
        /// It cannot go on by itself.
        Blocked = "blocked",
        /// The person stopped it.
        Paused = "paused",
        /// There is none.
        #[default]
        None = "none",
        /// Its last turn was cancelled; it can go on.
        Cancelled = "cancelled",
        /// Its last turn failed; it goes on with the next prompt.
        Failed = "failed",
    }
}

object! {
    /// What a goal took.
    GoalRuntime {
        /// Rounds: answers without calls, or cut off.
        "turnsUsed" turns_used: u64 = Defaulted,
        /// Not used any more: 0.
        "turnsLimit" turns_limit: i64 = Defaulted,
        /// Tokens, in and out.
        "tokensUsed" tokens_used: u64 = Defaulted,
        /// Answers of the model.
        "requestsUsed" requests_used: Option<u64> = Lenient,
        /// Time from the beginning of each round to its end.
        "workDurationMs" work_duration_ms: Option<u64> = Lenient,
        /// Tokens at which it stops; 0: it does not.
        "tokensLimit" tokens_limit: u64 = Defaulted,
        /// Rounds in a row of which nothing came.
        "noProgressTurns" no_progress_turns: u64 = Defaulted,
        /// So many of them stop it.
        "noProgressLimit" no_progress_limit: u64 = Defaulted,
        /// What was said last of how it stands.
        "lastReason" last_reason: Option<String> = Lenient,
        /// Why it does not run, if the model did not say so itself.
        "stopCause" stop_cause: Option<String> = Lenient,
        /// Not used any more: 0.
        "budgetExtensions" budget_extensions: u64 = Defaulted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_goal_is_one_word_and_a_goal_has_all_its_numbers() {
        for text in [
            r#"{"goal":{"status":"none"}}"#,
            r#"{"goal":{"status":"blocked","objective":"o","runtime":{"turnsUsed":2,"turnsLimit":0,"tokensUsed":30,"requestsUsed":4,"workDurationMs":5,"tokensLimit":60,"noProgressTurns":1,"noProgressLimit":3,"lastReason":"r","stopCause":"budget_spend","budgetExtensions":0}}}"#,
        ] {
            let response: GoalResponse = serde_json::from_str(text).expect("it is one");
            assert_eq!(serde_json::to_string(&response).expect("json"), text);
        }
        // Of another version: what is not understood is none, not a fault.
        let response: GoalResponse =
            serde_json::from_str(r#"{"goal":{"status":"sleeping","runtime":7,"new":1}}"#)
                .expect("it is one");
        assert_eq!(response.goal.status, GoalStatus::Other("sleeping".into()));
        assert_eq!(response.goal.runtime, None);
        assert!(serde_json::from_str::<GoalRequest>("{}").is_err());
    }
}
