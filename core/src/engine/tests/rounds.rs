//! Modes, plans, goals and verification, with the whole engine.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks for the one thing it is about"
)]

use super::super::goal::{GoalError, GoalStatus, Label, StopCause};
use super::*;
use crate::engine::record::{Shown, User};

const WRITE: &str = r#"{"tool":"write_file","args":{"path":"a","content":"1"}}"#;
const TEST: &str = r#"{"tool":"bash","args":{"command":"cargo test"}}"#;
const FAILED_TEST: &str = r#"{"tool":"bash","args":{"command":"cargo test fail"}}"#;
const PLAN: &str =
    r#"{"tool":"todo_write","args":{"todos":[{"content":"one","status":"pending"}]}}"#;
const DONE_PLAN: &str =
    r#"{"tool":"todo_write","args":{"todos":[{"content":"one","status":"completed"}]}}"#;
const COMPLETE: &str = r#"{"tool":"update_goal","args":{"status":"complete","reason":"all done"}}"#;
const BLOCKED: &str = r#"{"tool":"update_goal","args":{"status":"blocked","reason":"no key"}}"#;
const NEXT: &str = r#"{"tool":"update_goal","args":{"status":"continue","reason":"half","next_action":"the rest"}}"#;

/// A script of answers, each of steps.
fn script(answers: &[&[&str]]) -> String {
    let mut text = String::new();
    for steps in answers {
        for step in *steps {
            text.push_str(step);
            text.push('\n');
        }
        text.push_str("{\"finish\":\"");
        let calls = steps.iter().any(|step| step.contains("\"tool\""));
        text.push_str(if calls { "tool_calls" } else { "stop" });
        text.push_str("\"}\n");
    }
    text
}

fn text(said: &str) -> String {
    format!(r#"{{"text":"{said}"}}"#)
}

fn world(mode: Mode, answers: &[&[&str]]) -> World {
    let mut world = World::with(&script(answers), |setup, permissions| {
        setup.max_steps = 50;
        permissions.allow = vec!["Edit".into(), "Bash".into()];
    });
    world.act(|engine, cx| engine.set_mode(cx, mode));
    world
}

fn users(world: &World) -> Vec<&User> {
    world
        .records
        .iter()
        .filter_map(|record| match record {
            Record::User(user) => Some(user),
            _ => None,
        })
        .collect()
}

#[track_caller]
fn said(world: &World, parts: &[&str]) {
    let all = world.said.join("\n");
    let mut rest = all.as_str();
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part}: {all}"));
        rest = &rest[at + part.len()..];
    }
}

fn goal(world: &World) -> &super::super::goal::Goal {
    world.engine.goal().expect("a goal")
}

/// The session as it is after its records were taken in anew.
fn restored(world: &World) -> World {
    let mut again = self::world(Mode::Normal, &[]);
    for record in &world.records {
        // As it is read from a transcript.
        let line = serde_json::to_string(record).expect("json");
        again
            .engine
            .restore(&serde_json::from_str(&line).expect("its own"));
    }
    again
}

/// What the model is told by the agent or the person, and by whom.
fn told(world: &World) -> Vec<(Author, &str)> {
    let users = users(world).into_iter();
    users.map(|user| (user.from, user.text.as_str())).collect()
}

#[test]
fn a_plan_is_put_before_the_person_and_carried_out_when_they_allow_it() {
    let i_would = text("I would write a.");
    let done = text("done");
    let answers: [&[&str]; 5] = [&[WRITE], &[PLAN], &[&i_would], &[WRITE], &[&done]];
    let mut world = world(Mode::Plan, &answers);
    world.prompt("change a");
    said(
        &world,
        &[
            "Not allowed: a plan is being made",
            "plan 1",
            "I would",
            "call plan",
            "permit 1 plan",
        ],
    );
    assert!(world.files.is_empty());
    assert!(!world.engine.is_idle(), "the turn waits for the person");
    world.decide(1, Decision::Once);
    said(
        &world,
        &[
            "end plan well The plan was approved.",
            "done",
            "over EndTurn",
        ],
    );
    assert_eq!(world.engine.mode(), Mode::Normal);
    assert_eq!(world.files.len(), 1);
    assert_eq!(
        told(&world)[1],
        (Author::Round, "The plan was approved. Carry it out.")
    );
    world.well_formed();
    world.act(|engine, cx| engine.prompt(cx, Message::text("thanks")));
    assert_eq!(
        told(&world)[2],
        (Author::Person, "thanks"),
        "it knows that the plan is over"
    );
}

#[test]
fn a_card_for_a_plan_shows_what_was_said_and_the_entries() {
    let i_would = text("I would write a.");
    let mut world = world(Mode::Plan, &[&[PLAN], &[&i_would]]);
    world.act(|engine, cx| engine.prompt(cx, Message::text("go")));
    let mut cx = Context {
        now: world.now,
        unix_seconds: None,
        ids: &mut world.ids,
        limits: &world.limits,
        out: &mut world.out,
    };
    while world.engine.step(&mut cx) {}
    let permit = cx.out.iter().find_map(|output| match output {
        Output::Permit {
            proposal, always, ..
        } => Some((proposal, always)),
        _ => None,
    });
    let (proposal, always) = permit.expect("a card");
    assert_eq!(
        proposal.text.as_deref(),
        Some("I would write a.\n\nPlan:\n- [ ] one")
    );
    assert!(proposal.action.protected && always.is_none());
}

#[test]
fn a_plan_that_is_not_approved_changes_nothing() {
    for (decision, line) in [
        (Some(Decision::Reject), "badly The plan was not approved."),
        (
            Some(Decision::Unanswered),
            "badly The plan was not decided on.",
        ),
        (
            Some(Decision::Unasked),
            "badly The plan was not decided on.",
        ),
        (None, "badly Cancelled by the person"),
    ] {
        let mut world = world(
            Mode::Plan,
            &[&[PLAN], &[&text("so")], &[WRITE], &[&text("no")]],
        );
        world.prompt("go");
        match decision {
            Some(decision) => {
                world.decide(1, decision);
                said(&world, &[line, "over EndTurn"]);
            }
            None => {
                world.cancel();
                said(&world, &["withdraw 1", line, "over Cancelled"]);
            }
        }
        assert_eq!(world.engine.mode(), Mode::Plan);
        world.decide(1, Decision::Once);
        assert_eq!(
            world.engine.mode(),
            Mode::Plan,
            "an answer that comes late has no effect"
        );
        world.prompt("again");
        said(&world, &["Not allowed: a plan is being made"]);
        assert!(world.files.is_empty());
    }
}

#[test]
fn in_plan_mode_the_person_is_asked_only_about_a_plan() {
    // No plan; one that is done already; one of a turn before.
    for answers in [
        [&[&*text("What do you mean?")][..], &[], &[]],
        [&[DONE_PLAN], &[&text("all there")], &[]],
    ] {
        let mut world = world(Mode::Plan, &answers);
        world.prompt("go");
        said(&world, &["over EndTurn"]);
        assert!(!world.said.join(" ").contains("permit"));
    }
    let mut world = world(Mode::Normal, &[&[PLAN], &[&text("so")], &[&text("hm")]]);
    world.prompt("go");
    world.act(|engine, cx| engine.set_mode(cx, Mode::Plan));
    world.prompt("and?");
    assert!(!world.said.join(" ").contains("permit"));
}

#[test]
fn where_nobody_is_asked_no_plan_is_approved() {
    let mut world = world(Mode::Plan, &[&[PLAN], &[&text("so")]]);
    world.act(|engine, cx| engine.set_posture(cx, Posture::DontAsk));
    world.prompt("go");
    said(&world, &["over EndTurn"]);
    assert!(!world.said.join(" ").contains("permit"));
    assert_eq!(world.engine.mode(), Mode::Plan);
}

#[test]
fn a_plan_is_asked_about_under_yolo_too() {
    let mut world = world(Mode::Plan, &[&[PLAN], &[&text("so")]]);
    world.act(|engine, cx| engine.set_posture(cx, Posture::Yolo));
    world.prompt("go");
    said(&world, &["permit 1"]);
}

#[test]
fn leaving_plan_mode_takes_the_question_back() {
    let mut world = world(Mode::Plan, &[&[PLAN], &[&text("so")]]);
    world.prompt("go");
    world.act(|engine, cx| engine.set_mode(cx, Mode::Normal));
    said(&world, &["permit 1", "withdraw 1", "over EndTurn"]);
}

#[test]
fn entering_plan_mode_denies_what_is_being_asked() {
    let mut world = World::with(&script(&[&[WRITE], &[&text("oh")]]), |_, _| {});
    world.prompt("go");
    said(&world, &["permit 1"]);
    world.act(|engine, cx| engine.set_mode(cx, Mode::Plan));
    world.run();
    world.decide(1, Decision::Once);
    said(
        &world,
        &[
            "withdraw 1",
            "badly Not allowed: a plan is being made",
            "over EndTurn",
        ],
    );
    assert!(world.files.is_empty());
}

#[test]
fn the_model_is_told_of_a_mode_and_the_person_is_not_shown_it() {
    let mut world = world(Mode::Plan, &[]);
    world.prompt("one");
    world.prompt("two");
    world.act(|engine, cx| engine.set_mode(cx, Mode::Normal));
    world.prompt("three");
    world.prompt("four");
    let users = users(&world);
    let (one, two) = (users[0], users[1]);
    assert!(
        one.text.starts_with("one\n\n[The agent: plan mode is on."),
        "{}",
        one.text
    );
    assert_eq!(one.shown, Some(vec![Shown::Text("one".into())]));
    assert_eq!((two.text.as_str(), &two.shown), ("two", &None));
    assert!(users[2].text.contains("plan mode is off"));
    assert_eq!(users[3].text, "four");
    // A session that is loaded knows what the model knows.
    let mut again = restored(&world);
    again.prompt("five");
    let fifth = self::users(&again)[0];
    assert_eq!(fifth.text, "five");
    assert_eq!(fifth.id, users[3].id + 1);
}

#[test]
fn a_goal_goes_on_in_one_turn_until_it_is_reached() {
    let (half, all) = (text("half"), text("all"));
    let mut world = world(
        Mode::Goal,
        &[
            &[PLAN, NEXT],
            &[&half],
            &[WRITE],
            &[TEST, DONE_PLAN, COMPLETE],
            &[&all],
        ],
    );
    world.prompt("make it so");
    said(&world, &["half", "all", "over EndTurn"]);
    let told = told(&world);
    assert_eq!(told.len(), 2);
    assert!(
        told[0]
            .1
            .starts_with("make it so\n\n[The agent: goal mode is on")
    );
    assert_eq!(told[1].0, Author::Round);
    assert!(
        told[1].1.contains("not reached yet: make it so"),
        "{}",
        told[1].1
    );
    assert!(told[1].1.contains("Next, as you said: the rest"));
    assert_eq!(goal(&world).status, GoalStatus::Complete);
    assert_eq!((goal(&world).turns, goal(&world).requests), (2, 5));
    assert_eq!(world.engine.mode(), Mode::Normal, "what is reached is over");
    assert_eq!(world.engine.paused(), None);
    world.well_formed();
}

#[test]
fn a_goal_is_not_reached_while_something_is_open_or_unverified() {
    let (one, two, three) = (text("one"), text("two"), text("three"));
    let mut world = world(
        Mode::Goal,
        &[
            &[PLAN, WRITE, COMPLETE],
            &[&one],
            &[DONE_PLAN, FAILED_TEST, COMPLETE],
            &[&two],
            &[TEST, COMPLETE],
            &[&three],
        ],
    );
    world.prompt("make it so");
    said(&world, &["one", "two", "three", "over EndTurn"]);
    let told = told(&world);
    assert!(
        told[1]
            .1
            .contains("- open in the plan: one\n- files were changed, and no test")
    );
    assert!(
        told[2]
            .1
            .contains("missing:\n- files were changed, and the check after that failed")
    );
    assert_eq!(goal(&world).status, GoalStatus::Complete);
}

#[test]
fn a_goal_stops_where_it_cannot_go_on() {
    let stop = text("stop");
    let mut blocked = world(Mode::Goal, &[&[BLOCKED], &[&stop]]);
    blocked.prompt("go");
    said(&blocked, &["stop", "over EndTurn"]);
    let goal_ = goal(&blocked);
    assert_eq!(
        (goal_.status, goal_.reason.as_deref()),
        (GoalStatus::Blocked, Some("no key"))
    );
    assert_eq!(blocked.engine.mode(), Mode::Goal);
    // Talk alone is no progress.
    let mut stuck = world(Mode::Goal, &[]);
    stuck.prompt("go");
    assert_eq!(goal(&stuck).cause, Some(StopCause::GoalStuck));
    assert_eq!(goal(&stuck).turns, 3);
    // The steps of a turn bound it too; then it goes on with the next prompt.
    let write = [&[WRITE][..]; 60];
    let mut long = world(Mode::Goal, &write);
    long.prompt("go");
    said(&long, &["over MaxSteps"]);
    assert_eq!(
        (goal(&long).status, goal(&long).label),
        (GoalStatus::Running, None)
    );
}

#[test]
fn a_goal_that_was_stopped_is_resumed_with_what_it_had() {
    let mut world = world(
        Mode::Goal,
        &[&[BLOCKED], &[&text("stop")], &[COMPLETE], &[&text("ok")]],
    );
    world.prompt("go");
    assert_eq!(
        world.act(|engine, cx| engine.pause_goal(cx)),
        Err(GoalError::NotRunning)
    );
    let before = goal(&world).clone();
    assert_eq!(world.act(|engine, cx| engine.resume_goal(cx)), Ok(()));
    assert!(world.engine.is_idle(), "no turn is started");
    assert_eq!(
        (goal(&world).turns, goal(&world).requests),
        (before.turns, before.requests)
    );
    world.prompt("here is the key");
    assert_eq!(goal(&world).status, GoalStatus::Complete);
    assert_eq!(goal(&world).turns, 2);
    let again = world.act(|engine, cx| engine.resume_goal(cx));
    assert_eq!(again, Err(GoalError::NothingToResume));
}

#[test]
fn a_pause_lets_the_round_end_and_none_follow() {
    let hang = r#"{"tool":"bash","args":{"command":"hang"}}"#;
    let mut world = world(Mode::Goal, &[&[hang], &[&text("end")], &[WRITE]]);
    world.prompt("go");
    world
        .act(|engine, cx| engine.pause_goal(cx))
        .expect("it runs");
    let (id, call) = world.open.pop_first().expect("a command runs");
    world.open.insert(id, call.clone());
    world.answer(id, &call);
    world.run();
    said(&world, &["end", "over EndTurn"]);
    assert!(world.files.is_empty());
    assert_eq!(
        (goal(&world).status, goal(&world).turns),
        (GoalStatus::Paused, 1)
    );
    world.prompt("a question");
    said(&world, &["over EndTurn", "over EndTurn"]);
    assert_eq!(goal(&world).turns, 1, "it does not belong to the goal");
}

#[test]
fn a_turn_that_is_cancelled_or_fails_does_not_stop_the_goal() {
    let hang = r#"{"tool":"bash","args":{"command":"hang"}}"#;
    let mut cancelled = world(Mode::Goal, &[&[hang], &[COMPLETE], &[&text("ok")]]);
    cancelled.prompt("go");
    cancelled.cancel();
    let (id, call) = cancelled.open.pop_first().expect("a command was ended");
    cancelled.open.insert(id, call.clone());
    cancelled.answer(id, &call);
    said(&cancelled, &["over Cancelled"]);
    assert_eq!(goal(&cancelled).label, Some(Label::Cancelled));
    assert_eq!(goal(&cancelled).status, GoalStatus::Running);
    cancelled.prompt("go on");
    assert_eq!(goal(&cancelled).status, GoalStatus::Complete);
    let error = r#"{"error":{"status":400}}"#;
    let mut failed = World::with(&format!("{error}\n"), |_, _| {});
    failed.act(|engine, cx| engine.set_mode(cx, Mode::Goal));
    failed.prompt("go");
    said(&failed, &["over Failed"]);
    assert_eq!(goal(&failed).label, Some(Label::Failed));
    let resumed = failed.act(|engine, cx| engine.resume_goal(cx));
    assert_eq!(resumed, Err(GoalError::NothingToResume));
    assert_eq!(failed.act(|engine, cx| engine.pause_goal(cx)), Ok(()));
}

#[test]
fn another_mode_gives_the_goal_up_and_ends_the_loop() {
    let hang = r#"{"tool":"bash","args":{"command":"hang"}}"#;
    let mut world = world(Mode::Goal, &[&[hang], &[&text("end")], &[WRITE]]);
    world.prompt("go");
    world.act(|engine, cx| engine.set_mode(cx, Mode::Normal));
    assert_eq!(world.engine.goal(), None);
    let (id, call) = world.open.pop_first().expect("a command runs");
    world.open.insert(id, call.clone());
    world.answer(id, &call);
    world.run();
    said(&world, &["end", "over EndTurn"]);
    assert!(world.files.is_empty());
}

#[test]
fn a_goal_is_there_after_the_session_is_loaded() {
    let mut world = world(
        Mode::Goal,
        &[&[PLAN, NEXT], &[&text("half")], &[BLOCKED], &[&text("b")]],
    );
    world.prompt("go");
    let mut again = restored(&world);
    assert_eq!(goal(&again), goal(&world));
    again
        .act(|engine, cx| engine.resume_goal(cx))
        .expect("it was blocked");
    assert_eq!(again.engine.mode(), Mode::Goal);
    // Broken off in the middle of a round: what the answers took counts all the same.
    let cut = world
        .records
        .iter()
        .rposition(|r| matches!(r, Record::Goal(_)));
    world.records.truncate(cut.expect("one for the last round"));
    let mut broken = restored(&world);
    broken.act(|engine, cx| engine.mend(cx));
    assert_eq!(goal(&broken).requests, goal(&world).requests);
    assert_eq!(goal(&broken).turns, 2);
    assert_eq!(goal(&broken).status, GoalStatus::Running);
}

#[test]
fn a_plan_that_was_before_the_person_when_the_agent_ended_is_mended() {
    let mut world = world(Mode::Plan, &[&[PLAN], &[&text("so")]]);
    world.prompt("go");
    let mut again = restored(&world);
    again.act(|engine, cx| engine.mend(cx));
    said(&again, &["end plan badly The agent ended"]);
    let ended = again
        .records
        .iter()
        .any(|record| matches!(record, Record::End(_)));
    assert!(ended);
}

#[test]
fn a_turn_that_wrote_and_did_not_verify_is_paused_where_that_counts() {
    use PauseUnverified::{Always, Delivery, Never};
    let done = text("done");
    #[track_caller]
    fn check(when: PauseUnverified, delivery: bool, answers: &[&[&str]], paused: bool) {
        let mut world = World::with(&script(answers), |setup, permissions| {
            setup.pause_unverified = when;
            setup.delivery = delivery;
            permissions.allow = vec!["Edit".into(), "Bash".into()];
        });
        world.prompt("go");
        let last = world.said.len() - 2;
        let note = world.said[last].starts_with("say 0 [paused] Not verified, files were changed");
        assert_eq!(note, paused, "{:?}", world.said);
        assert_eq!(world.engine.paused().is_some(), paused);
        let Some(Record::End(end)) = world.records.last() else {
            panic!("the end of a turn is its last record");
        };
        assert_eq!(
            (end.reason, end.message.is_some()),
            (Reason::EndTurn, paused)
        );
        let again = restored(&world);
        assert_eq!(again.engine.paused(), world.engine.paused());
        world.prompt("and?");
        assert_eq!(world.engine.paused(), None, "a turn that wrote nothing");
    }
    let wrote: &[&[&str]] = &[&[WRITE], &[&done]];
    check(Delivery, false, wrote, false);
    check(Delivery, true, wrote, true);
    check(Always, false, wrote, true);
    check(Never, true, wrote, false);
    check(Always, true, &[&[WRITE], &[TEST], &[&done]], false);
    check(Always, true, &[&[WRITE, TEST], &[&done]], false);
    check(Always, true, &[&[TEST, WRITE], &[&done]], true);
    check(Always, true, &[&[WRITE], &[FAILED_TEST], &[&done]], true);
    check(Always, true, &[&[TEST], &[&done]], false);
    check(Always, true, &[&[&done]], false);
}

#[test]
fn a_refusal_takes_back_only_the_round_that_was_refused() {
    let half = text("half");
    let mut script = script(&[&[PLAN, NEXT], &[&half]]);
    script.push_str("{\"finish\":\"content_filter\"}\n");
    let mut world = World::with(&script, |_, _| {});
    world.act(|engine, cx| engine.set_mode(cx, Mode::Goal));
    world.prompt("go");
    said(&world, &["over Refusal"]);
    assert_eq!(world.last_message(), "half");
    assert_eq!(goal(&world).status, GoalStatus::Running);
    world.well_formed();
}
