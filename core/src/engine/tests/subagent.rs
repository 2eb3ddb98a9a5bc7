//! Subagents: an engine inside the call of an engine.

use super::*;
use crate::error::{IoFault, IoKind};

const TASK: &str = r#"{"tool":"task","id":"t","args":{"description":"look","prompt":"find it"}}"#;
const READ_ONLY: &str =
    r#"{"tool":"task","id":"t","args":{"description":"look","prompt":"find it","read_only":true}}"#;
const CALL: &str = "{\"finish\":\"tool_calls\"}\n";

/// The parent gives the task, the subagent answers so, the parent ends.
fn world(task: &str, subagent: &str) -> World {
    let mut world = World::new(&format!("{task}\n{CALL}{subagent}{DONE}"));
    world.prompt("go");
    world
}

fn say(text: &str) -> String {
    format!("{{\"text\":\"{text}\"}}\n{{\"finish\":\"stop\"}}\n")
}

fn told(world: &World, call: &str) -> String {
    let messages = world.engine.history().messages();
    let text = messages.iter().find_map(|message| {
        if let ChatMessage::Tool { id, text } = message
            && id == call
        {
            Some(text.clone())
        } else {
            None
        }
    });
    text.unwrap_or_default()
}

#[test]
fn a_subagent_works_in_its_parents_session_and_its_last_word_is_the_result() {
    let mut world = world(TASK, &format!("{}{CALL}{}", bash("a", "ls"), say("found")));
    world.check(&["call t", "run t", "begin s.1 look", "call a", "permit 1 a"]);
    world.decide(1, Decision::Once);
    world.check(&[
        "run a",
        "end a well out",
        "progress t",
        "finish s.1 EndTurn",
        "end t well found",
        "say 2 done",
        "over EndTurn",
    ]);
    assert_eq!(told(&world, "t"), "found");
    // The parent's model hears nothing else of it.
    assert_eq!(world.engine.history().messages().len(), 4);
}

#[test]
fn its_calls_have_ids_of_their_own_in_the_session() {
    let mut world = world(TASK, &format!("{}{CALL}{}", bash("t", "ls"), say("found")));
    world.check(&[
        "call t",
        "run t",
        "begin s.1 look",
        "call t-1",
        "permit 1 t-1",
    ]);
    world.decide(1, Decision::Reject);
    assert_eq!(told(&world, "t"), "found");
}

#[test]
fn a_cancel_ends_it_with_all_it_started() {
    let mut world = world(TASK, &format!("{}{CALL}", bash("a", "hang")));
    world.decide(1, Decision::Once);
    world.heard();
    world.cancel();
    world.check(&[
        "abort",
        "end a badly Cancelled by the person while it ran: it may have taken effect in part.",
        "finish s.1 Cancelled",
        "end t badly Cancelled by the person while the subagent worked: what it had done stays \
         done.",
    ]);
    // The turn is over when the command is.
    let id = *world.open.keys().next().expect("it runs");
    world.open.clear();
    let killed = Outcome::Exited(Exit {
        code: None,
        signal: Some(9),
        dropped: 0,
        left: false,
    });
    world.act(|engine, cx| engine.handle_news(cx, id, News::Done(killed)));
    world.check(&["over Cancelled"]);

    // While it is asked about.
    let mut world = self::world(TASK, &format!("{}{CALL}", bash("a", "ls")));
    world.heard();
    world.cancel();
    world.check(&[
        "withdraw 1",
        "end a badly Cancelled by the person before it began.",
        "finish s.1 Cancelled",
        "end t badly Cancelled by the person while the subagent worked: what it had done stays \
         done.",
        "over Cancelled",
    ]);
    world.decide(1, Decision::Once);
    world.check(&[]);

    // While its model answers.
    let mut world = self::world(TASK, "{\"text\":\"hm\"}\n{\"hang\":true}\n");
    world.heard();
    world.cancel();
    assert!(world.engine.is_idle());
    world.prompt("again");
    assert_eq!(world.last_message(), "done");
}

#[test]
fn one_that_is_cancelled_by_itself_is_over_and_its_parent_goes_on() {
    let ended = [
        "finish s.1 Cancelled",
        "end t badly Cancelled by the person while the subagent worked: what it had done stays \
         done.",
        "say 2 done",
        "over EndTurn",
    ];
    let cancel = |world: &mut World, id: &str| {
        world.act(|engine, cx| engine.cancel_subagent(cx, id));
        world.run();
    };
    // While its command runs: it is over when that is.
    let mut world = world(TASK, &format!("{}{CALL}", bash("a", "hang")));
    world.decide(1, Decision::Once);
    world.heard();
    cancel(&mut world, "s.2");
    cancel(&mut world, "s");
    world.check(&[]);
    cancel(&mut world, "s.1");
    world.check(&[
        "abort",
        "end a badly Cancelled by the person while it ran: it may have taken effect in part.",
    ]);
    cancel(&mut world, "s.1");
    world.check(&[]);
    let id = *world.open.keys().next().expect("it runs");
    world.open.clear();
    let fault = IoFault::new(IoKind::Aborted, "aborted");
    world.act(|engine, cx| engine.handle_news(cx, id, News::Failed(fault)));
    world.run();
    world.check(&ended);
    cancel(&mut world, "s.1");
    world.check(&[]);

    // While it is asked about.
    let mut world = self::world(TASK, &format!("{}{CALL}", bash("a", "ls")));
    world.heard();
    cancel(&mut world, "s.1");
    let before = [
        "withdraw 1",
        "end a badly Cancelled by the person before it began.",
    ];
    world.check(&[&before[..], &ended[..]].concat());
    world.decide(1, Decision::Once);
    world.check(&[]);

    // While its model answers.
    let mut world = self::world(TASK, "{\"text\":\"hm\"}\n{\"hang\":true}\n");
    world.heard();
    cancel(&mut world, "s.1");
    world.run();
    let heard = world.heard();
    assert!(heard.contains(&ended[0].into()), "{heard:?}");
    assert_eq!(world.last_message(), "done");
}

#[test]
fn it_may_do_no_more_than_it_was_given() {
    let write =
        "{\"tool\":\"write_file\",\"id\":\"a\",\"args\":{\"path\":\"a\",\"content\":\"1\"}}\n";
    let mut world = world(READ_ONLY, &format!("{write}{CALL}{}", say("no")));
    world.run();
    assert!(world.files.is_empty());
    let heard = world.heard();
    assert!(
        heard
            .iter()
            .any(|line| line.starts_with("end a badly Not allowed"))
    );
    assert!(!heard.iter().any(|line| line.starts_with("permit")));

    // What is not its own tool is not run, whatever its model asks for.
    for name in ["task", "ask", "todo_write", "update_goal", "complete_step"] {
        let call = tool("a", name, "{\"description\":\"x\",\"prompt\":\"y\"}");
        let mut world = self::world(TASK, &format!("{call}{CALL}{}", say("no")));
        let lacks = format!("end a badly Not run: a subagent has no tool `{name}`.");
        assert!(world.heard().contains(&lacks), "{name}");
    }

    let limits = Limits::default();
    for own in Posture::ALL {
        for most in Posture::ALL {
            let mut authority =
                Authority::new(PermissionMode::default(), Rules::default(), &limits);
            authority.set_posture(own);
            let mut narrow = authority.narrowed(most);
            assert_eq!(narrow.posture(), own.min(most));
            // Nothing that it is set to later is above it.
            narrow.set_posture(Posture::Yolo);
            assert_eq!(narrow.posture(), most);
        }
    }
}

#[test]
fn what_its_parent_may_not_do_any_more_it_may_not_either() {
    let call = bash("a", "ls");
    let again = bash("b", "ls");
    let mut world = world(TASK, &format!("{call}{CALL}{again}{CALL}{}", say("found")));
    world.heard();
    // It began under `ask`, and does not rise with its parent.
    world.act(|engine, cx| engine.set_posture(cx, Posture::Yolo));
    world.check(&[]);
    world.act(|engine, cx| engine.set_posture(cx, Posture::ReadOnly));
    world.decide(1, Decision::Once);
    let heard = world.heard();
    assert!(
        heard
            .iter()
            .any(|line| line.starts_with("end b badly Not allowed")),
        "{heard:?}"
    );
}

#[test]
fn what_is_granted_to_it_holds_in_the_session() {
    let (first, second) = (bash("a", "ls"), bash("b", "ls"));
    let script = format!(
        "{TASK}\n{CALL}{first}{CALL}{}{second}{CALL}{DONE}",
        say("x")
    );
    let mut world = World::new(&script);
    world.prompt("go");
    world.heard();
    world.decide(1, Decision::Always);
    let heard = world.heard();
    assert!(heard.contains(&"end b well out".into()), "{heard:?}");
    assert!(!heard.iter().any(|line| line.starts_with("permit")));
}

#[test]
fn its_steps_are_its_own_and_bounded() {
    let mut world = World::with(
        &format!(
            "{TASK}\n{CALL}{}{CALL}{}{CALL}{DONE}",
            tool("a", "ls", "{}"),
            tool("b", "ls", "{}")
        ),
        |_, _| {},
    );
    world.limits.max_task_steps = 2;
    world.prompt("go");
    let heard = world.heard();
    assert!(
        heard.contains(&"finish s.1 MaxTurnRequests".into()),
        "{heard:?}"
    );
    assert!(told(&world, "t").starts_with("The subagent used all"));
    assert_eq!(heard.last().map(String::as_str), Some("over EndTurn"));
}

#[test]
fn one_that_the_end_of_the_agent_broke_off_is_mended() {
    let mut broken = world(TASK, &format!("{}{CALL}", bash("a", "ls")));
    broken.heard();
    let mut world = World::new(DONE);
    for record in &broken.records {
        world.engine.restore(record);
        world.records.push(record.clone());
    }
    world.act(Engine::mend);
    world.check(&[
        "finish s.1 Interrupted",
        "end t badly The agent ended while this ran: it may have taken effect in part.",
        "end a badly The agent ended while this ran: it may have taken effect in part.",
    ]);
    world.prompt("go on");
    assert_eq!(world.last_message(), "done");
}

#[test]
fn it_has_the_tools_of_its_parents_servers_and_they_count_as_writers() {
    let call = tool("a", "docs__look", "{}");
    for (task, asked) in [(TASK, true), (READ_ONLY, false)] {
        let script = format!("{task}\n{CALL}{call}{CALL}{}{DONE}", say("found"));
        let mut world = World::new(&script);
        let docs = Vec::from([String::from("docs__")]);
        world.act(|engine, _| engine.set_external(Vec::new(), docs));
        world.prompt("go");
        let heard = world.heard();
        let has = |begin: &str| heard.iter().any(|line| line.starts_with(begin));
        assert_eq!(has("permit 1 a"), asked, "{heard:?}");
        assert_eq!(has("end a badly Not allowed"), !asked, "{heard:?}");
    }
}

#[test]
fn what_counts_at_once_in_its_parents_session_counts_for_it_too() {
    let mut world = world(TASK, &format!("{}{CALL}", bash("a", "ls")));
    world.heard();
    let deny = Permissions {
        deny: Vec::from([String::from("Read(x/**)")]),
        ..Permissions::default()
    };
    let rules = Rules::parse(&deny, None).expect("they are good");
    let key = crate::secret::Secret::new("K", "sk-abcdefgh12345678");
    world.act(|engine, cx| {
        engine.set_rules(cx, rules);
        engine.set_secrets(Secrets::new([key]));
        engine.set_web(Web::Private);
    });
    let (ours, its) = (&world.engine, world.engine.child().expect("it works"));
    assert_eq!(its.workspace.rules, ours.workspace.rules);
    assert_eq!(its.workspace.web, ours.workspace.web);
    let shown = |engine: &Engine| {
        let mut text = String::from("sk-abcdefgh12345678");
        engine.workspace.secrets.redact(&mut text);
        text
    };
    assert_eq!(
        (shown(ours), shown(its)),
        ("[redacted]".into(), "[redacted]".into())
    );
}
