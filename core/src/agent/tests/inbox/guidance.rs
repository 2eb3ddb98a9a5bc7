//! Guidance for the turn that runs, and what becomes of it when it comes too late.

use super::*;

#[test]
fn guidance_is_heard_before_the_next_model_call() {
    let mut world = yolo(&works());
    world.held = is_process;
    world.go();
    world.sees("in_progress");
    let line = world.steers("left");
    assert!(
        line.contains("\"disposition\":\"steer_accepted\""),
        "{line}"
    );
    let more = ",\"text\":\"up\",\"intent\":\"STEER\"";
    let line = world.asks("inbox/enqueue", more).expect("an answer");
    assert!(
        line.contains("\"disposition\":\"steer_accepted\",\"position\":2"),
        "{line}"
    );
    assert_eq!(world.items(), ["left steer_accepted", "up steer_accepted"]);
    // The second is taken back in time.
    let id = item_id(&line);
    let line = world.asks("inbox/delete", &format!(",\"itemId\":\"{id}\""));
    assert!(line.expect("an answer").contains("\"ok\":true"));
    world.command_ends();
    world.sees("\"left\"");
    world.sees("answer 1");
    world.sees_only(DONE);
    let history = world.history();
    let left = history.iter().position(|message| {
        matches!(message, ChatMessage::User(parts) if parts == &[Part::Text("left".into())])
    });
    let tool = history
        .iter()
        .position(|m| matches!(m, ChatMessage::Tool { .. }));
    assert_eq!(left, tool.map(|at| at + 1));
    assert_eq!(world.items(), Vec::<String>::new());
}

#[test]
fn guidance_that_a_turn_has_no_step_left_to_hear_is_a_follow_up() {
    let mut world = world(&Disk::default(), &works());
    world.agent.config.permission_mode = PermissionMode::parse("bypassPermissions").expect("known");
    world.agent.config.max_steps = Some(1);
    let mut world = world.session();
    world.held = is_process;
    world.go();
    world.sees("in_progress");
    let line = world.steers("left");
    assert!(line.contains("steer_accepted"), "{line}");
    world.command_ends();
    world.sees("\"left\"");
    world.sees("answer 1");
    world.sees("\"id\":1,\"result\":{\"stopReason\":\"max_turn_requests\"");
    assert_eq!(world.items(), Vec::<String>::new());
}

#[test]
fn a_line_that_the_person_runs_takes_no_guidance() {
    let mut world = yolo(&says(2));
    world.held = is_process;
    let params = format!(
        "{{\"sessionId\":\"{SESSION}\",\"prompt\":[{{\"type\":\"text\",\"text\":\"!make\"}}]}}"
    );
    world.request(1, "session/prompt", &params);
    world.sees("in_progress");
    let line = world.steers("left");
    assert!(line.contains("queued_followup"), "{line}");
    world.command_ends();
    world.sees(DONE);
    assert_eq!(world.items(), ["left queued"]);
    world.go();
    world.sees("answer 2");
    assert_eq!(world.items(), Vec::<String>::new());
}

#[test]
fn guidance_that_comes_too_late_is_a_follow_up() {
    // No turn runs.
    let mut world = world(&Disk::default(), &says(4)).session();
    let line = world.steers("early");
    assert!(
        line.contains("\"disposition\":\"queued_followup\""),
        "{line}"
    );
    item_id(&line);
    world.go();
    world.sees(DONE);
    assert_eq!(world.heard(), ["go", "early"]);
    // The turn ends before it is on the disk.
    let mut world = yolo(&works());
    world.held = |call| is_process(call) || is_append(call);
    world.go();
    world.sees("in_progress");
    let more = ",\"prompt\":[{\"type\":\"text\",\"text\":\"late\"}]";
    world.wish(70, "steer", more);
    world.held = is_append;
    world.drive();
    world.sees("answer 1");
    assert_eq!(world.lines, Vec::<String>::new());
    world.held = |_| false;
    world.drive();
    let line = world.answered(70).expect("it is answered");
    assert!(
        line.contains("\"disposition\":\"queued_followup\""),
        "{line}"
    );
    world.sees("answer 2");
    world.sees(DONE);
    assert_eq!(world.heard(), ["go", "late"]);
}

#[test]
fn pictures_of_guidance_reach_the_model() {
    let mut world = yolo(&works());
    world.held = is_process;
    world.go();
    world.sees("in_progress");
    let image = format!("{{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"{PNG}\"}}");
    let more = format!(",\"prompt\":[{{\"type\":\"text\",\"text\":\"this\"}},{image}]");
    let line = world.asks("steer", &more).expect("an answer");
    assert!(line.contains("steer_accepted"), "{line}");
    world.command_ends();
    world.sees(DONE);
    let heard = world.heard();
    assert!(
        heard[1].starts_with("this\n\n@.reasonix/attachments/"),
        "{heard:?}"
    );
    assert!(heard[1].ends_with(".png [image/png]"), "{heard:?}");
}
