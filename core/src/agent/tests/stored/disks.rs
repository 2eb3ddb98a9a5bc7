//! Sessions on disks that are full, slow, damaged or of a later version.

use super::*;

#[test]
fn what_was_under_way_when_the_agent_was_killed_is_ended_once() {
    let bash = "{\"tool\":\"bash\",\"args\":{\"command\":\"x\"},\"id\":\"a\"}\n{\"finish\":\"tool_calls\"}\n";
    let mut first = world(&Disk::default(), bash);
    first.agent.config.permission_mode = PermissionMode::parse("bypassPermissions").expect("known");
    let mut first = first.session();
    first.held = |call| matches!(call, Call::Process(_));
    first.go();
    first.sees("in_progress");
    let mut disk = first.ends();
    for round in 0..2 {
        let mut world = world(&disk, HANG);
        world.load(5, SESSION);
        let seen = picture(&world.lines);
        assert_eq!(seen.len(), 3, "{seen:#?}");
        assert!(seen[2].contains("\"failed\"") && seen[2].contains("The agent ended"));
        world.sees("\"id\":5,\"result\"");
        disk = world.ends();
        let text = core::str::from_utf8(disk.transcript()).expect("text");
        assert_eq!(text.matches("\"interrupted\"").count(), 1, "round {round}");
    }
}

#[test]
fn damage_is_passed_over_told_once_and_kept() {
    let two = "{\"text\":\"one\"}\n{\"finish\":\"stop\"}\n{\"text\":\"two\"}\n{\"finish\":\"stop\"}\n{\"text\":\"three\"}\n{\"finish\":\"stop\"}\n";
    let mut first = world(&Disk::default(), two).session();
    for _ in 0..3 {
        first.go();
    }
    let whole = first.ends();
    let mut damaged = whole.clone();
    let file = damaged.transcript();
    let at = file
        .windows(3)
        .position(|text| text == b"two")
        .expect("it is there");
    file[at - 20..at].fill(0);
    let before = file.clone();
    for round in 0..2 {
        let mut world = world(&damaged, HANG);
        world.load(5, SESSION);
        let seen = picture(&world.lines);
        for part in [
            "one",
            "three",
            "1 line of this session's history could not be read and is left out. It is still",
        ] {
            let found = seen.iter().filter(|line| line.contains(part)).count();
            assert_eq!(found, 1, "{part} in round {round}: {seen:#?}");
        }
        damaged = world.ends();
        assert!(damaged.transcript().starts_with(&before));
    }
    // A crash in the middle of the last append, at every byte.
    let mut file = whole.clone().transcript().clone();
    file.pop();
    let last = file.iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
    for cut in last..=file.len() {
        let mut torn = whole.clone();
        torn.transcript().truncate(cut);
        let mut world = world(&torn, two);
        world.load(5, SESSION);
        let seen = picture(&world.lines);
        assert!(
            seen.last().expect("a picture").contains("three"),
            "{seen:#?}"
        );
        world.sees("\"id\":5,\"result\"");
        world.go();
        world.sees("\"id\":1,\"result\"");
        // What was written behind it can be read.
        let mut third = self::world(&world.ends(), two);
        third.load(5, SESSION);
        let seen = picture(&third.lines);
        assert!(
            seen.last().expect("a picture").contains("one"),
            "{cut}: {seen:#?}"
        );
        assert!(
            !seen.iter().any(|line| line.contains("could not be read")),
            "{seen:#?}"
        );
    }
}

#[test]
fn an_answer_waits_for_what_it_stands_for() {
    let mut world = world(
        &Disk::default(),
        "{\"text\":\"I\"}\n{\"finish\":\"stop\"}\n",
    )
    .session();
    world.held = |call| matches!(call, Call::Append(append) if append.durable);
    world.go();
    world.sees("agent_message_chunk");
    assert!(!world.lines.iter().any(|line| line.contains("\"id\":1")));
    let params = format!(
        "{{\"sessionId\":\"{SESSION}\",\"configId\":\"agent_preset\",\"value\":\"light\"}}"
    );
    world.request(3, "session/set_config_option", &params);
    assert_eq!(world.lines, Vec::<String>::new());
    world.held = |_| false;
    world.drive();
    world.sees("\"id\":1,\"result\"");
    world.sees("\"id\":3,\"result\"");
    let mut second = self::world(&world.ends(), HANG);
    second.load(5, SESSION);
    let line = second.sees("\"id\":5,\"result\"");
    assert!(line.contains("\"currentValue\":\"light\""), "{line}");
}

#[test]
fn a_full_disk_is_told_once_and_the_turn_goes_on() {
    let say = "{\"text\":\"I\"}\n{\"finish\":\"stop\"}\n".repeat(2);
    let mut world = world(&Disk::default(), &say).session();
    world.disk.as_mut().expect("a disk").full = true;
    for told in [1, 0] {
        world.go();
        let told_now = world
            .lines
            .iter()
            .filter(|line| line.contains("[warning] This session is not saved: no space"))
            .count();
        assert_eq!(told_now, told);
        let answer = world.sees("\"id\":1,\"result\":{\"stopReason\":\"end_turn\"");
        assert!(!answer.contains("transcriptPath"), "{answer}");
    }
}

#[test]
fn what_a_later_version_wrote_is_read_and_not_changed() {
    let mut first = world(
        &Disk::default(),
        "{\"text\":\"I\"}\n{\"finish\":\"stop\"}\n",
    )
    .session();
    first.go();
    let mut disk = first.ends();
    let file = disk.transcript();
    let text = core::str::from_utf8(file)
        .expect("text")
        .replacen("\"v\":1", "\"v\":2", 1);
    *file = format!("{text}{{\"type\":\"later\",\"x\":1}}\n").into_bytes();
    let before = file.clone();
    let mut world = world(&disk, HANG);
    world.load(5, SESSION);
    assert_eq!(picture(&world.lines).len(), 2);
    world.sees("\"id\":5,\"result\"");
    world.go();
    world.sees("\"code\":\"read_only\"");
    assert_eq!(*world.ends().transcript(), before);
}

#[test]
fn a_turn_that_waited_for_a_slow_disk_goes_on() {
    let mut world = world(
        &Disk::default(),
        "{\"text\":\"I\"}\n{\"finish\":\"stop\"}\n",
    );
    world.agent.config.limits.store_backlog = 10;
    let mut world = world.session();
    world.held = |call| matches!(call, Call::Append(_));
    let params = format!(
        "{{\"sessionId\":\"{SESSION}\",\"configId\":\"agent_preset\",\"value\":\"light\"}}"
    );
    world.request(3, "session/set_config_option", &params);
    world.go();
    assert_eq!(
        world
            .lines
            .iter()
            .filter(|line| line.contains("agent_message"))
            .count(),
        0
    );
    world.held = |_| false;
    world.drive();
    world.sees("\"id\":3,\"result\"");
    world.sees("\"id\":1,\"result\"");
}
