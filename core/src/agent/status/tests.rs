//! Tests of how a session stands.

use super::*;
use crate::engine::record::{Author, ToolResult, User};
use alloc::vec;

fn end(reason: Reason, message: Option<&str>) -> End {
    End {
        reason,
        message: message.map(Into::into),
    }
}

fn goal(status: GoalStatus) -> Goal {
    Goal {
        status,
        reason: Some("because".into()),
        objective: "o".into(),
        ..Goal::default()
    }
}

fn user(from: Author) -> Record {
    Record::User(
        serde_json::from_str(r#"{"id":1,"text":"t"}"#)
            .map(|user| User { from, ..user })
            .expect("one"),
    )
}

fn said(text: &str, usage: bool) -> Record {
    Record::Assistant(Assistant {
        said: vec![Said::Text(text.into())],
        usage: usage.then(|| serde_json::from_str(r#"{"prompt":10,"completion":2}"#).expect("one")),
        ..Assistant::default()
    })
}

fn facts() -> Facts<'static> {
    Facts {
        session: SessionId::from("s"),
        model: "p/m",
        effort: "auto",
        mode: "normal",
        work_mode: "balanced",
        goal: None,
        sandbox: Sandbox::default(),
    }
}

fn snapshot(status: &Status) -> StatusSnapshot {
    status.snapshot(facts(), &Limits::default(), |_| {})
}

#[test]
fn a_turn_ends_as_the_table_says() {
    use GoalStatus::*;
    use Reason::*;
    #[track_caller]
    fn check(
        end_: End,
        status: Option<GoalStatus>,
        phase: Phase,
        kind: OutcomeKind,
        event: StatusEvent,
        ready: bool,
    ) {
        let mut tracker = Status::default();
        tracker.take(&user(Author::Person), None);
        let goal = status.map(goal);
        let told = tracker.take(&Record::End(end_.clone()), goal.as_ref());
        assert_eq!(told, Some(event), "{end_:?} {status:?}");
        let now = snapshot(&tracker);
        assert_eq!(
            (now.phase, now.turn_outcome.kind),
            (phase, kind),
            "{end_:?} {status:?}"
        );
        assert_eq!(now.final_readiness.ready_for_review, ready);
        assert_eq!(now.state, SessionState::Idle);
    }
    use OutcomeKind as K;
    use StatusEvent as E;
    let open = Some("files were changed");
    for status in [None, Some(Running), Some(Complete), Some(Blocked)] {
        let cancelled = end(Cancelled, None);
        check(
            cancelled,
            status,
            Phase::Cancelled,
            K::Cancelled,
            E::Completion,
            false,
        );
        let failed = end(Failed, Some("no"));
        check(failed, status, Phase::Error, K::Error, E::Error, false);
        let broken = end(Interrupted, None);
        check(
            broken,
            status,
            Phase::RecoveryPaused,
            K::Paused,
            E::Pause,
            false,
        );
        for reason in [MaxTokens, MaxTurnRequests, Refusal] {
            check(
                end(reason, None),
                status,
                Phase::Paused,
                K::Paused,
                E::Pause,
                false,
            );
        }
    }
    let done = || end(EndTurn, None);
    check(
        done(),
        Some(Complete),
        Phase::ReviewReady,
        K::Completed,
        E::Completion,
        true,
    );
    check(
        done(),
        None,
        Phase::Completed,
        K::Completed,
        E::Completion,
        true,
    );
    check(
        done(),
        Some(Blocked),
        Phase::Paused,
        K::Paused,
        E::Pause,
        false,
    );
    let unverified = || end(EndTurn, open);
    check(
        unverified(),
        Some(Blocked),
        Phase::Paused,
        K::Paused,
        E::Pause,
        false,
    );
    check(
        unverified(),
        None,
        Phase::ReadinessPaused,
        K::Paused,
        E::Pause,
        false,
    );
    check(
        unverified(),
        Some(Running),
        Phase::ReadinessPaused,
        K::Paused,
        E::Pause,
        false,
    );
    check(
        done(),
        Some(Running),
        Phase::Paused,
        K::Paused,
        E::Pause,
        false,
    );
    check(
        done(),
        Some(Paused),
        Phase::Paused,
        K::Paused,
        E::Pause,
        false,
    );
}

#[test]
fn the_reason_is_told_and_what_is_unverified_is_a_risk() {
    let mut tracker = Status::default();
    let blocked = goal(GoalStatus::Blocked);
    tracker.take(&Record::End(end(Reason::EndTurn, None)), Some(&blocked));
    assert_eq!(
        tracker.outcome().reason.as_deref(),
        Some("goal blocked: because")
    );
    tracker.take(
        &Record::End(end(Reason::EndTurn, Some("not checked"))),
        None,
    );
    let now = snapshot(&tracker);
    assert_eq!(now.turn_outcome.reason.as_deref(), Some("not checked"));
    assert_eq!(now.final_readiness.risks, ["not checked"]);
    tracker.take(&user(Author::Queue), None);
    let now = snapshot(&tracker);
    assert_eq!(now.turn_outcome.kind, OutcomeKind::None);
    assert!(now.final_readiness.risks.is_empty());
}

#[test]
fn every_change_counts_and_running_tools_are_told_only_after_a_wait() {
    let mut tracker = Status::default();
    assert_eq!(tracker.enter(Phase::Working), None, "no turn runs");
    assert_eq!(tracker.sequence, 0);
    let call = serde_json::from_str(
        r#"{"type":"call","id":"1","card":{"name":"ls","title":"ls","kind":"read"}}"#,
    );
    let call: Record = call.expect("one");
    let result = Record::Result(ToolResult::default());
    let told = [
        tracker.take(&user(Author::Person), None),
        tracker.enter(Phase::Working),
        tracker.enter(Phase::Working),
        tracker.take(&call, None),
        tracker.enter(Phase::WaitingPermission),
        tracker.take(&result, None),
        tracker.take(&result, None),
    ];
    let phase = || Some(StatusEvent::Phase);
    assert_eq!(told, [phase(), phase(), None, None, phase(), phase(), None]);
    assert_eq!(tracker.sequence, 5);
    assert_eq!(tracker.take(&user(Author::Guidance), None), None);
}

#[test]
fn what_a_turn_used_begins_anew_and_what_a_session_used_does_not() {
    let mut tracker = Status::default();
    tracker.take(&user(Author::Person), None);
    assert_eq!(
        tracker.take(&said("one", true), None),
        Some(StatusEvent::Usage)
    );
    tracker.take(&said(" ", true), None);
    tracker.take(&user(Author::Person), None);
    tracker.take(&said("", false), None);
    let now = snapshot(&tracker);
    assert_eq!(now.usage.turn.prompt_tokens, 0);
    assert_eq!(now.usage.cumulative.prompt_tokens, 20);
    assert_eq!(
        now.final_readiness.summary, "one",
        "the last that was not empty"
    );
}

#[test]
fn what_is_told_is_redacted_and_bounded() {
    let mut tracker = Status::default();
    tracker.take(&said(&"sk-1 é".repeat(10_000), true), None);
    let long = "sk-1 é".repeat(1000);
    tracker.take(&Record::End(end(Reason::EndTurn, Some(&long))), None);
    let mut goal = goal(GoalStatus::Blocked);
    goal.objective = "use sk-1".into();
    goal.reason = Some("sk-1 is wrong".into());
    let facts = Facts {
        goal: Some(&goal),
        ..facts()
    };
    let redact = |text: &mut String| *text = text.replace("sk-1", "[redacted]");
    let now = tracker.snapshot(facts, &Limits::default(), redact);
    let all = serde_json::to_string(&now).expect("json");
    assert!(!all.contains("sk-1"));
    assert!(now.final_readiness.summary.len() <= SUMMARY);
    assert!(
        now.turn_outcome
            .reason
            .is_some_and(|reason| reason.len() <= REASON)
    );
    assert!(
        now.final_readiness
            .risks
            .iter()
            .all(|risk| risk.len() <= REASON)
    );
}

#[test]
fn a_goal_is_told_by_its_label_then_its_status() {
    let limits = Limits::default();
    fn goal_told(goal: Option<&Goal>, limits: &Limits) -> told::Goal {
        super::goal_told(goal, limits, &|_| {})
    }
    assert_eq!(goal_told(None, &limits).status, told::GoalStatus::None);
    let mut goal = goal(GoalStatus::Paused);
    assert_eq!(
        goal_told(Some(&goal), &limits).status,
        told::GoalStatus::Paused
    );
    goal.label = Some(Label::Failed);
    assert_eq!(
        goal_told(Some(&goal), &limits).status,
        told::GoalStatus::Failed
    );
    goal.turns = 4;
    let runtime = goal_told(Some(&goal), &limits)
        .runtime
        .expect("it has an objective");
    assert_eq!((runtime.turns_used, runtime.no_progress_limit), (4, 3));
    goal.objective.clear();
    assert_eq!(goal_told(Some(&goal), &limits).runtime, None);
}
