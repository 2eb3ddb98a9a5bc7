//! Tests of goals.

use super::*;
use alloc::vec;
use proptest::prelude::*;

fn limits() -> Limits {
    Limits {
        goal_tokens: 100,
        goal_stuck: 2,
        max_goal_steps: 3,
        max_goal_objective: 40,
        ..Limits::default()
    }
}

fn running() -> Pursuit {
    let mut pursuit = Pursuit::default();
    pursuit.set_draft();
    assert_eq!(
        pursuit.begin_turn(" make it work ", &limits()),
        Opening::Set
    );
    pursuit
}

fn report(claim: GoalClaim) -> Option<GoalReport> {
    Some(GoalReport {
        claim,
        reason: "because".into(),
        next_action: None,
    })
}

fn round(report: Option<GoalReport>, open: &[&str], progress: bool) -> Round {
    Round {
        report,
        open: open.iter().map(|entry| String::from(*entry)).collect(),
        progress,
        worked: Duration::from_millis(5),
        ..Round::default()
    }
}

fn goal(pursuit: &Pursuit) -> &Goal {
    pursuit.goal().expect("a goal")
}

#[test]
fn a_round_is_followed_by_what_the_table_says() {
    use GoalClaim::{Blocked, Complete, Continue};
    use GoalStatus::Running;
    #[track_caller]
    fn check(
        round: Round,
        tokens: u64,
        idle_before: u32,
        status: GoalStatus,
        cause: Option<StopCause>,
        told: &[&str],
    ) {
        let mut pursuit = running();
        pursuit.spent(tokens);
        if let Some(goal) = &mut pursuit.goal {
            goal.no_progress = idle_before;
        }
        let follows = pursuit.end_round(round, &limits());
        assert_eq!(
            (goal(&pursuit).status, goal(&pursuit).cause),
            (status, cause)
        );
        match follows {
            Follows::End => assert!(status != Running),
            Follows::Round(text) => {
                assert!(status == Running && text.contains("make it work"), "{text}");
                for part in told {
                    assert!(text.contains(part), "{part}: {text}");
                }
            }
        }
    }
    let budget = Some(StopCause::BudgetSpend);
    let stuck = Some(StopCause::GoalStuck);
    // 2: blocked comes before everything.
    check(
        round(report(Blocked), &["x"], false),
        1000,
        9,
        GoalStatus::Blocked,
        None,
        &[],
    );
    // 3: complete, and nothing is missing: also at the end of the tokens and of patience.
    check(
        round(report(Complete), &[], true),
        0,
        0,
        GoalStatus::Complete,
        None,
        &[],
    );
    check(
        round(report(Complete), &[], false),
        1000,
        9,
        GoalStatus::Complete,
        None,
        &[],
    );
    // Not complete: something is open, or not verified.
    let gap = &["open in the plan: x", "Go on."];
    check(
        round(report(Complete), &["x"], true),
        0,
        0,
        Running,
        None,
        gap,
    );
    let unverified = Round {
        unverified: Some("files were changed".into()),
        ..round(report(Complete), &[], true)
    };
    check(unverified, 0, 0, Running, None, &["- files were changed"]);
    // 4: the tokens, before 5.
    check(
        round(None, &[], false),
        100,
        9,
        GoalStatus::Blocked,
        budget,
        &[],
    );
    check(
        round(None, &[], true),
        99,
        9,
        Running,
        None,
        &["call update_goal"],
    );
    // 5: nothing came of it.
    check(
        round(None, &[], false),
        0,
        1,
        GoalStatus::Blocked,
        stuck,
        &[],
    );
    check(
        round(report(Complete), &["x"], false),
        0,
        1,
        GoalStatus::Blocked,
        stuck,
        &[],
    );
    check(round(None, &[], false), 0, 0, Running, None, &[]);
    // 6: on, with what the model said comes next.
    let next = Some(GoalReport {
        claim: Continue,
        reason: "r".into(),
        next_action: Some("write the test".into()),
    });
    check(
        round(next, &["x"], true),
        0,
        0,
        Running,
        None,
        &["as you said: write the test"],
    );
}

#[test]
fn a_budget_of_zero_is_none() {
    let limits = Limits {
        goal_tokens: 0,
        ..limits()
    };
    let mut pursuit = Pursuit::default();
    pursuit.set_draft();
    pursuit.begin_turn("x", &limits);
    pursuit.spent(u64::MAX);
    let follows = pursuit.end_round(round(None, &[], true), &limits);
    assert!(matches!(follows, Follows::Round(_)));
}

#[test]
fn a_goal_that_was_stopped_during_a_round_has_no_other() {
    let mut paused = running();
    paused.pause().expect("it runs");
    let follows = paused.end_round(round(report(GoalClaim::Complete), &[], true), &limits());
    assert_eq!(follows, Follows::End);
    assert_eq!(goal(&paused).status, GoalStatus::Paused);
    assert_eq!(goal(&paused).turns, 1);
    let mut cleared = running();
    cleared.clear();
    assert_eq!(cleared.end_round(Round::default(), &limits()), Follows::End);
    assert_eq!(cleared.goal(), None);
}

#[test]
fn a_draft_becomes_a_goal_with_the_next_prompt_also_while_one_runs() {
    let mut pursuit = Pursuit::default();
    assert_eq!(pursuit.begin_turn("a", &limits()), Opening::None);
    let mut pursuit = running();
    assert_eq!(goal(&pursuit).objective, "make it work");
    pursuit.spent(7);
    assert_eq!(pursuit.begin_turn("more", &limits()), Opening::Continued);
    assert_eq!(goal(&pursuit).tokens, 7);
    pursuit.set_draft();
    assert!(pursuit.runs(), "it goes on until the next prompt");
    assert_eq!(pursuit.begin_turn("instead", &limits()), Opening::Set);
    assert_eq!(
        (goal(&pursuit).objective.as_str(), goal(&pursuit).tokens),
        ("instead", 0)
    );
    pursuit.pause().expect("it runs");
    assert_eq!(pursuit.begin_turn("a question", &limits()), Opening::None);
    pursuit.set_draft();
    assert_eq!(pursuit.begin_turn("another", &limits()), Opening::Set);
    assert_eq!(
        (goal(&pursuit).objective.as_str(), goal(&pursuit).tokens),
        ("another", 0)
    );
    pursuit.pause().expect("it runs");
    pursuit.set_draft();
    pursuit.begin_turn(" ", &limits());
    assert_ne!(
        goal(&pursuit).objective,
        "",
        "that would be a goal that is reached"
    );
    pursuit.pause().expect("it runs");
    pursuit.set_draft();
    let long = "é".repeat(100);
    pursuit.begin_turn(&long, &limits());
    let objective = &goal(&pursuit).objective;
    assert!(
        objective.len() <= 40 && objective.ends_with('…'),
        "{objective}"
    );
}

#[test]
fn a_label_says_how_the_turn_ended_and_stops_nothing() {
    for (label, resumes) in [(Label::Cancelled, true), (Label::Failed, false)] {
        let mut pursuit = running();
        pursuit.spent(7);
        pursuit.break_round(Some(label), Duration::from_millis(9));
        let before = goal(&pursuit).clone();
        assert_eq!(
            (before.status, before.label),
            (GoalStatus::Running, Some(label))
        );
        assert_eq!((before.turns, before.work_ms), (1, 9));
        let mut resumed = pursuit.clone();
        let wanted = if resumes {
            Ok(())
        } else {
            Err(GoalError::NothingToResume)
        };
        assert_eq!(resumed.resume(&limits()), wanted);
        if resumes {
            assert_eq!(
                goal(&resumed).clone(),
                Goal {
                    label: None,
                    ..before
                }
            );
        }
        let mut paused = pursuit.clone();
        assert_eq!(paused.pause(), Ok(()));
        assert_eq!(goal(&paused).label, None);
        assert_eq!(pursuit.begin_turn("go on", &limits()), Opening::Continued);
        assert_eq!(goal(&pursuit).label, None);
    }
}

#[test]
fn what_does_not_run_can_be_resumed_and_what_runs_can_be_paused() {
    let mut none = Pursuit::default();
    assert_eq!(none.pause(), Err(GoalError::NotRunning));
    assert_eq!(none.resume(&limits()), Err(GoalError::NothingToResume));
    let mut pursuit = running();
    assert_eq!(pursuit.resume(&limits()), Err(GoalError::NothingToResume));
    pursuit.pause().expect("it runs");
    assert_eq!(goal(&pursuit).cause, Some(StopCause::Manual));
    assert_eq!(pursuit.pause(), Err(GoalError::NotRunning));
    pursuit.set_draft();
    pursuit.resume(&limits()).expect("it was paused");
    assert!(!pursuit.is_draft());
    assert_eq!(goal(&pursuit).cause, None);
    pursuit.end_round(round(report(GoalClaim::Blocked), &[], true), &limits());
    assert_eq!(pursuit.pause(), Err(GoalError::NotRunning));
    pursuit.resume(&limits()).expect("it was blocked");
    pursuit.end_round(round(report(GoalClaim::Complete), &[], true), &limits());
    assert_eq!(goal(&pursuit).objective, "");
    assert_eq!(pursuit.resume(&limits()), Err(GoalError::NothingToResume));
    assert_eq!(pursuit.pause(), Err(GoalError::NotRunning));
}

#[test]
fn a_goal_that_is_resumed_gets_what_it_had_used_up() {
    let mut pursuit = running();
    pursuit.spent(130);
    pursuit.end_round(round(None, &[], true), &limits());
    pursuit.resume(&limits()).expect("blocked");
    assert_eq!(
        goal(&pursuit).tokens_limit,
        230,
        "a whole slice, not what is left of one"
    );
    assert_eq!(goal(&pursuit).tokens, 130);
    for _ in 0..2 {
        pursuit.end_round(round(None, &[], false), &limits());
    }
    assert_eq!(goal(&pursuit).cause, Some(StopCause::GoalStuck));
    pursuit.resume(&limits()).expect("blocked");
    assert_eq!(goal(&pursuit).tokens_limit, 230);
    let follows = pursuit.end_round(round(None, &[], false), &limits());
    assert!(matches!(follows, Follows::Round(_)), "its patience is new");
}

#[test]
fn the_last_completed_steps_are_kept() {
    let mut pursuit = running();
    for n in 0..5 {
        let step = GoalStep {
            step: format!("{n}"),
            result: "r".into(),
            evidence: Vec::new(),
            notes: None,
        };
        let round = Round {
            steps: vec![step],
            ..round(None, &[], true)
        };
        pursuit.end_round(round, &limits());
    }
    let steps = goal(&pursuit).steps.iter();
    assert_eq!(
        steps.map(|s| s.step.as_str()).collect::<Vec<_>>(),
        ["2", "3", "4"]
    );
}

#[derive(Clone, Debug)]
enum Act {
    Draft,
    Clear,
    Begin,
    Spend(u64),
    End(Option<GoalClaim>, bool, bool),
    Break(Option<Label>),
    Pause,
    Resume,
}

fn any_act() -> impl Strategy<Value = Act> {
    let claim = proptest::option::of(proptest::sample::select(&GoalClaim::ALL[..]));
    let label = proptest::option::of(prop_oneof![Just(Label::Cancelled), Just(Label::Failed)]);
    prop_oneof![
        2 => Just(Act::Draft),
        1 => Just(Act::Clear),
        3 => Just(Act::Begin),
        4 => (0..80_u64).prop_map(Act::Spend),
        6 => (claim, any::<bool>(), any::<bool>()).prop_map(|(c, o, p)| Act::End(c, o, p)),
        2 => label.prop_map(Act::Break),
        2 => Just(Act::Pause),
        2 => Just(Act::Resume),
    ]
}

proptest! {
    #[test]
    fn counters_are_never_lost_and_a_stopped_goal_never_goes_on(
        acts in proptest::collection::vec(any_act(), 0..60),
    ) {
        let limits = limits();
        let mut pursuit = Pursuit::default();
        for act in acts {
            let before = pursuit.clone();
            let mut set = false;
            match act {
                Act::Draft => pursuit.set_draft(),
                Act::Clear => pursuit.clear(),
                Act::Begin => {
                    set = pursuit.begin_turn("x", &limits) == Opening::Set;
                    prop_assert_eq!(set, before.is_draft());
                    prop_assert!(!pursuit.is_draft());
                }
                Act::Spend(tokens) => pursuit.spent(tokens),
                Act::End(claim, open, progress) => {
                    let open: &[&str] = if open { &["o"] } else { &[] };
                    let follows =
                        pursuit.end_round(round(claim.and_then(report), open, progress), &limits);
                    prop_assert!(before.runs() || follows == Follows::End);
                    prop_assert_eq!(follows != Follows::End, pursuit.runs());
                }
                Act::Break(label) => pursuit.break_round(label, Duration::from_millis(1)),
                Act::Pause => prop_assert_eq!(pursuit.pause().is_ok(), before.runs()),
                Act::Resume => {
                    if pursuit.resume(&limits).is_err() {
                        prop_assert_eq!(&pursuit, &before);
                    } else {
                        prop_assert!(pursuit.runs());
                    }
                }
            }
            // Only a draft and a resume make something run that did not.
            if pursuit.runs() && !before.runs() {
                prop_assert!(set || matches!(act, Act::Resume));
            }
            match (before.goal(), pursuit.goal()) {
                (Some(old), Some(new)) if !set => {
                    prop_assert!(new.turns >= old.turns && new.tokens >= old.tokens);
                    prop_assert!(new.requests >= old.requests && new.work_ms >= old.work_ms);
                    prop_assert!(new.tokens_limit >= old.tokens_limit);
                }
                (Some(_), None) => prop_assert!(matches!(act, Act::Clear)),
                (_, Some(new)) => prop_assert_eq!((new.turns, new.tokens), (0, 0)),
                (None, None) => {}
            }
            let text = serde_json::to_string(&pursuit).expect("json");
            prop_assert_eq!(&serde_json::from_str::<Pursuit>(&text).expect("its own"), &pursuit);
        }
    }
}
