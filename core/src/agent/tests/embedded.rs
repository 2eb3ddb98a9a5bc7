//! What an embedder relies on: ids that are its sessions' own, and tools of its own.

use super::stored::Disk;
use super::*;
use crate::tools::External;

/// A second agent of the first one's seed, on a disk.
fn second(disk: &Disk) -> World {
    stored::world(disk, "{\"text\":\"x\"}\n")
}

#[test]
fn agents_of_one_seed_on_one_home_do_not_write_into_each_others_sessions() {
    for ended in [false, true] {
        let mut first = second(&Disk::default()).session();
        first.go();
        first.sees("end_turn");
        let disk = match ended {
            true => first.ends(),
            false => first.disk.clone().expect("it has a disk"),
        };
        let path = format!("/h/sessions/{SESSION}/transcript.jsonl");
        let before = disk.files[&path].clone();
        let mut world = second(&disk);
        world.open_session(5);
        let opened = world.sees("\"id\":5,\"result\"");
        assert!(!opened.contains(SESSION), "{opened}");
        let after = &world.disk.as_ref().expect("it has a disk").files;
        assert_eq!(after[&path], before);
        let transcripts = after.keys().filter(|it| it.ends_with("/transcript.jsonl"));
        assert_eq!(transcripts.count(), 2, "the new one is saved too");
        // Nothing of the other session is held.
        world.load(6, SESSION);
        let loaded = world
            .lines
            .iter()
            .any(|it| it.contains("\"id\":6,\"result\""));
        assert_eq!(loaded, ended, "{:?}", world.lines);
    }
}

#[test]
fn a_new_session_is_refused_when_no_id_is_free() {
    let mut first = second(&Disk::default()).session();
    let mut config = first.agent.config().clone();
    config.limits.max_taken_ids = 0;
    let mut world = World::of(config);
    world.disk = Some(first.ends());
    world.open_session(5);
    let refused = world.sees("\"id\":5,\"error\"");
    assert!(refused.contains("seed"), "{refused}");
    assert!(world.agent.openings.is_empty());
}

fn with_tool(config: &mut Config) {
    let tool = "{\"tool\":\"lookup\",\"id\":\"t\",\"args\":{\"of\":1}}\n{\"finish\":\"tool_calls\"}\n\
                {\"text\":\"done\"}\n";
    config.permission_mode = PermissionMode::parse("bypassPermissions").expect("a mode");
    config.script = Some(Script::parse(tool).expect("the script is good"));
    config.tools.push(External {
        name: "lookup".into(),
        description: "looks it up".into(),
        parameters: "{\"type\":\"object\"}".into(),
    });
}

#[test]
fn a_tool_of_the_embedder_knows_for_whom_it_is_called() {
    let mut config = config();
    with_tool(&mut config);
    let mut world = World::of(config).session();
    world.held = |call| matches!(call, Call::Custom(_));
    world.go();
    let (id, call) = world.open.pop_first().expect("it is called");
    let Call::Custom(call) = call else {
        panic!("no call of a tool: {call:?}")
    };
    let is = [
        &call.session,
        &call.cwd,
        &call.tool_call,
        &call.name,
        &call.arguments,
    ];
    assert_eq!(is, [SESSION, "/w", "t", "lookup", "{\"of\":1}"]);
    let news = News::Done(Outcome::Custom(Ok("found".into())));
    world.input(Input::Call { id, news });
    world.sees("\"text\":\"found\"");
    world.sees("end_turn");
}

#[test]
fn a_tool_of_the_embedder_that_never_answers_is_given_up() {
    let mut config = config();
    with_tool(&mut config);
    config.limits.custom_call = Duration::from_secs(7);
    let mut world = World::of(config).session();
    world.held = |call| matches!(call, Call::Custom(_));
    world.go();
    let id = *world.open.keys().next().expect("it is called");
    let why = world.deadline.expect("it is waited for, but not for ever");
    assert_eq!(
        (why.at, why.why),
        (world.now.plus(Duration::from_secs(7)), Timer::ToolLimit)
    );
    world.pass(Duration::from_secs(7));
    assert_eq!(world.aborted, [id]);
    let late = world
        .deadline
        .is_some_and(|deadline| deadline.at <= world.now);
    assert!(!late, "a served deadline goes: {:?}", world.deadline);
    let news = News::Failed(IoFault::new(IoKind::Aborted, "aborted"));
    world.input(Input::Call { id, news });
    let told = world.sees("\"status\":\"failed\"");
    assert!(told.contains("no answer within 7"), "{told}");
    world.sees("end_turn");
}

#[test]
fn a_driver_that_never_says_what_was_sent_is_told_so_and_not_waited_for() {
    let load = "{\"repeat\":{\"chunks\":1000,\"size\":1000}}\n";
    let mut world = World::new(load).session();
    world.deaf = true;
    world.go();
    let deadline = world.deadline.expect("it does not wait for ever");
    assert_eq!(deadline.why, Timer::PeerStalled);
    world.agent.handle_timeout(deadline.at);
    let mut reports = Vec::new();
    let closed = loop {
        match world.agent.poll_effect() {
            Next::Do(Effect::Report(report)) => reports.push(report.text),
            Next::Do(Effect::Close(reason)) => break reason,
            Next::Do(_) => {}
            Next::Wait(deadline) => panic!("it goes on: {deadline:?}"),
        }
    };
    assert_eq!(closed, CloseReason::Stalled);
    assert!(
        reports.iter().any(|it| it.contains("`Input::Unsent`")),
        "{reports:?}"
    );
}

#[test]
fn tools_that_no_provider_takes_are_left_out_and_reported() {
    let mut config = config();
    with_tool(&mut config);
    let good = config.tools[0].clone();
    let tool = |name: &str, parameters: &str| External {
        name: name.into(),
        parameters: parameters.into(),
        ..good.clone()
    };
    let long = "x".repeat(65);
    for (name, parameters) in [
        ("", "{}"),
        ("two words", "{}"),
        ("line\nend", "{}"),
        (&long, "{}"),
        ("text", "no JSON"),
        ("list", "[]"),
        ("twice", "{} {}"),
        ("bash", "{}"),
        ("lookup", "{}"),
    ] {
        config.tools.push(tool(name, parameters));
    }
    let mut agent = Agent::new(config);
    assert_eq!(agent.config().tools, [good]);
    let mut reports = 0;
    while let Next::Do(effect) = agent.poll_effect() {
        reports += usize::from(matches!(effect, Effect::Report(_)));
    }
    assert_eq!(reports, 9);
}

#[test]
fn limits_with_which_nothing_could_happen_are_reported() {
    let mut config = config();
    config.limits.soft_output = 0;
    let mut agent = Agent::new(config);
    let Next::Do(Effect::Report(report)) = agent.poll_effect() else {
        panic!("it is not said");
    };
    assert!(report.text.contains("`soft_output`"), "{}", report.text);
}
