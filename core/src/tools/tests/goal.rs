use super::host::World;
use crate::tools::*;
use alloc::string::String;
use alloc::vec::Vec;

const PLAN: &str = r#"{"todos":[{"content":"one","status":"completed"},
    {"content":"two","status":"in_progress"}]}"#;

#[test]
fn outside_goal_mode_the_tools_of_a_goal_refuse_and_leave_nothing() {
    for (name, arguments) in [
        ("update_goal", r#"{"status":"complete","reason":"r"}"#),
        ("complete_step", r#"{"step":"one","result":"r"}"#),
    ] {
        let mut world = World::new();
        let mut run = world.start(name, arguments);
        let outcome = world.drive(&mut run);
        assert!(
            !outcome.ok && outcome.text.contains("There is no goal"),
            "{outcome:?}"
        );
        world.state.set_goal_mode(true);
        assert_eq!(world.state.take_report(), None);
        assert!(world.state.take_steps().is_empty());
    }
}

#[test]
fn a_report_is_kept_until_it_is_taken_and_the_last_one_counts() {
    let mut world = World::new();
    world.state.set_goal_mode(true);
    let say = |world: &mut World, arguments: &str| {
        let mut run = world.start("update_goal", arguments);
        let outcome = world.drive(&mut run);
        assert!(outcome.ok, "{outcome:?}");
        outcome.text
    };
    say(&mut world, r#"{"status":"blocked","reason":"no key"}"#);
    say(
        &mut world,
        r#"{"status":"continue","reason":" half ","next_action":"the rest"}"#,
    );
    // Leaving a mode that is on as it is loses nothing.
    world.state.set_goal_mode(true);
    assert_eq!(
        world.state.take_report(),
        Some(GoalReport {
            claim: GoalClaim::Continue,
            reason: "half".into(),
            next_action: Some("the rest".into()),
        })
    );
    assert_eq!(world.state.take_report(), None);
    say(
        &mut world,
        r#"{"status":"complete","reason":"r","next_action":"x"}"#,
    );
    let report = world.state.take_report().expect("a report");
    assert_eq!(
        (report.claim, report.next_action),
        (GoalClaim::Complete, None)
    );
    say(&mut world, r#"{"status":"complete","reason":"r"}"#);
    world.state.set_goal_mode(false);
    world.state.set_goal_mode(true);
    assert_eq!(world.state.take_report(), None, "it was about another goal");
}

#[test]
fn a_claim_that_all_is_done_names_what_is_open_in_the_plan() {
    let mut world = World::new();
    world.state.set_goal_mode(true);
    let mut run = world.start("todo_write", PLAN);
    world.drive(&mut run);
    let mut run = world.start("update_goal", r#"{"status":"complete","reason":"r"}"#);
    let text = world.drive(&mut run).text;
    assert!(text.ends_with(": two"), "{text}");
}

#[test]
fn a_completed_step_is_kept_and_marks_its_entry_of_the_plan() {
    let mut world = World::new();
    world.state.set_goal_mode(true);
    let mut run = world.start("todo_write", PLAN);
    world.drive(&mut run);
    let arguments = r#"{"step":"two","result":"works","notes":" ","evidence":[
        {"kind":"verification","summary":"all pass","command":"cargo test"},
        {"kind":"files","summary":"new","paths":["a","b"]}]}"#;
    let mut run = world.start("complete_step", arguments);
    let outcome = world.drive(&mut run);
    assert!(outcome.ok && outcome.text.contains("marked"), "{outcome:?}");
    let open = world.state.todos().iter();
    assert!(
        open.clone()
            .all(|todo| todo.status == TodoStatus::Completed)
    );
    let steps = world.state.take_steps();
    let kinds: Vec<&str> = steps[0].evidence.iter().map(|e| e.kind.as_str()).collect();
    assert_eq!(kinds, ["verification", "files"]);
    assert_eq!((steps[0].step.as_str(), &steps[0].notes), ("two", &None));
    assert!(world.state.take_steps().is_empty());
    let json = serde_json::to_string(&steps).expect("json");
    assert_eq!(
        serde_json::from_str::<Vec<GoalStep>>(&json).expect("its own"),
        steps
    );
}

#[test]
fn bad_arguments_are_refused_with_what_would_be_good() {
    let mut world = World::new();
    world.state.set_goal_mode(true);
    for (name, arguments, part) in [
        ("update_goal", r#"{"reason":"r"}"#, "`status` is missing"),
        (
            "update_goal",
            r#"{"status":"done","reason":"r"}"#,
            "continue, complete or blocked",
        ),
        (
            "update_goal",
            r#"{"status":"complete","reason":" "}"#,
            "`reason` is blank",
        ),
        ("complete_step", r#"{"step":"s"}"#, "`result` is missing"),
        (
            "complete_step",
            r#"{"step":"s","result":"r","evidence":[{"kind":"guess","summary":"s"}]}"#,
            "verification, diff, files or manual",
        ),
    ] {
        let mut run = world.start(name, arguments);
        let outcome = world.drive(&mut run);
        assert!(!outcome.ok && outcome.text.contains(part), "{outcome:?}");
    }
    assert_eq!(world.state.take_report(), None);
}

#[test]
fn what_the_model_says_about_a_goal_is_bounded() {
    let mut world = World::new();
    world.state.set_goal_mode(true);
    let long: String = "x".repeat(100_000);
    let most = world.ws.limits.max_goal_text;
    let arguments = alloc::format!(r#"{{"status":"blocked","reason":"{long}"}}"#);
    let mut run = world.start("update_goal", &arguments);
    world.drive(&mut run);
    assert!(world.state.take_report().expect("a report").reason.len() <= most);
    let evidence = r#"{"kind":"manual","summary":"s"},"#.repeat(100);
    let arguments = alloc::format!(
        r#"{{"step":"{long}","result":"r","evidence":[{}]}}"#,
        evidence.trim_end_matches(',')
    );
    for _ in 0..world.ws.limits.max_goal_steps + 5 {
        let mut run = world.start("complete_step", &arguments);
        world.drive(&mut run);
    }
    let steps = world.state.take_steps();
    assert_eq!(steps.len(), world.ws.limits.max_goal_steps);
    assert!(steps[0].step.len() <= most);
    assert_eq!(steps[0].evidence.len(), world.ws.limits.max_goal_evidence);
}
