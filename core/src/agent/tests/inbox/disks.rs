//! Inboxes on disks that fail, are killed, damaged or removed.

use super::*;

#[test]
fn every_line_of_a_transcript_is_an_object_also_when_a_message_came_before_the_first_prompt() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.enqueues("one");
    world.go();
    world.sees(DONE);
    let disk = world.ends();
    let transcript = disk
        .files
        .get(&format!("/h/sessions/{SESSION}/transcript.jsonl"));
    let text = str::from_utf8(transcript.expect("it is there")).expect("it is text");
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        assert!(line["at"].is_u64() && line["type"].is_string(), "{line}");
    }
}

#[test]
fn a_disk_that_fails_refuses_who_waits_and_what_was_refused_is_not_there() {
    for turn in [false, true] {
        let mut world = world(&Disk::default(), &says(9)).session();
        let id = world.enqueues("one");
        world.disk_is_full(true);
        for (method, more) in [
            ("inbox/enqueue", ",\"text\":\"two\"".into()),
            ("inbox/delete", format!(",\"itemId\":\"{id}\"")),
            ("inbox/setPaused", ",\"paused\":true".into()),
            (
                "steer",
                ",\"prompt\":[{\"type\":\"text\",\"text\":\"two\"}]".into(),
            ),
        ] {
            let line = world.asks(method, &more).expect("an answer");
            for part in [
                "-32600",
                "read_only",
                "no space is left. Nothing was changed: ask again",
            ] {
                assert!(line.contains(part), "{part} in {line}");
            }
            assert_eq!(world.items(), ["one queued"], "{method}");
            assert_eq!(world.list()["readonly"], true);
            assert_eq!(world.list()["paused"], false);
        }
        let told = "[warning] The inbox is not saved any more: no space is left";
        let told = world
            .lines
            .iter()
            .filter(|line| line.contains(told))
            .count();
        assert_eq!(told, 1, "it is said once");
        world.disk_is_full(false);
        let mut said = Vec::from(["go", "one", "three"]);
        if turn {
            // Whatever comes next finds that there is room.
            world.go();
            world.sees(DONE);
            said = Vec::from(["go", "one", "go", "three"]);
        }
        world.enqueues("three");
        assert!(world.list()["readonly"].is_null());
        world.go();
        world.sees(DONE);
        assert_eq!(world.heard(), said);
        let mut next = world.killed(&says(1));
        assert_eq!(next.items(), Vec::<String>::new());
    }
}

#[test]
fn what_was_answered_before_the_disk_failed_is_there_in_the_next_process() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.enqueues("one");
    world.disk_is_full(true);
    world.asks("inbox/enqueue", ",\"text\":\"two\"");
    // A turn on a full disk ends, and begins nothing that it cannot account for.
    world.go();
    world.sees(DONE);
    assert_eq!(world.heard(), ["go"]);
    let mut next = world.killed(&says(1));
    assert_eq!(next.items(), ["one queued"]);
}

#[test]
fn who_waits_behind_what_is_refused_is_refused_too_and_at_once() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.enqueues("one");
    world.held = is_append;
    world.wish(70, "inbox/enqueue", ",\"text\":\"two\"");
    world.wish(71, "inbox/enqueue", ",\"text\":\"three\"");
    world.disk_is_full(true);
    world.held = |_| false;
    world.drive();
    for id in [70, 71] {
        let line = world.answered(id).expect("an answer");
        assert!(line.contains("read_only"), "{line}");
    }
    assert_eq!(world.items(), ["one queued"]);
}

#[test]
fn who_is_refused_is_not_told_later_that_it_was_taken() {
    let mut world = world(&Disk::default(), &says(3)).session();
    // The session's own file is slow, its inbox fails at once.
    world.held = |call| matches!(call, Call::Append(_));
    world.wish(70, "inbox/enqueue", ",\"text\":\"one\"");
    world.disk_is_full(true);
    world.held = |call| matches!(call, Call::Append(_)) && !is_append(call);
    world.drive();
    let line = world.answered(70).expect("an answer");
    assert!(line.contains("read_only"), "{line}");
    world.disk_is_full(false);
    world.wish(71, "inbox/enqueue", ",\"text\":\"two\"");
    world.held = |_| false;
    world.drive();
    let line = world.answered(71).expect("an answer");
    assert!(line.contains("queued_followup"), "{line}");
    assert_eq!(world.items(), ["two queued"]);
}

#[test]
fn who_is_refused_is_told_at_once_also_behind_somebody_who_waits_for_the_transcript() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.held = |call| matches!(call, Call::Append(_)) && !is_append(call);
    world.wish(70, "inbox/enqueue", ",\"text\":\"one\"");
    world.held = |call| matches!(call, Call::Append(_));
    world.wish(71, "inbox/enqueue", ",\"text\":\"two\"");
    world.wish(72, "inbox/setPaused", ",\"paused\":true");
    world.disk_is_full(true);
    world.held = |call| matches!(call, Call::Append(_)) && !is_append(call);
    world.drive();
    for id in [71, 72] {
        let line = world.answered(id).expect("an answer");
        assert!(line.contains("read_only"), "{line}");
    }
    assert_eq!(world.answered(70), None, "its own change is on the disk");
    world.disk_is_full(false);
    world.wish(73, "inbox/enqueue", ",\"text\":\"three\"");
    world.held = |_| false;
    world.drive();
    for id in [70, 73] {
        let line = world.answered(id).expect("an answer");
        assert!(line.contains("queued_followup"), "{line}");
    }
    // Nobody is told twice.
    world.sees_only("The inbox is not saved any more");
    assert_eq!(world.items(), ["one queued", "three queued"]);
    assert_eq!(world.list()["paused"], false);
}

#[test]
fn a_transcript_that_fails_runs_no_item() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.enqueues("one");
    world.held = is_claim;
    world.go();
    world.sees("user_message_chunk");
    if let Some(disk) = &mut world.disk {
        disk.full = true;
    }
    world.held = |_| false;
    world.drive();
    let line = world.sees("\"id\":1,\"error\"");
    assert!(line.contains("turn_failed"), "{line}");
    let list = world.list();
    assert_eq!(list["items"][0]["state"], "uncertain");
    assert_eq!(list["items"][0]["blockCode"], "turn_snapshot_failed");
    assert_eq!(list["paused"], true);
}

#[test]
fn what_is_asked_of_a_session_that_is_lost_is_refused_with_why_and_nothing_is_changed() {
    let mut world = world(&Disk::default(), &says(3)).session();
    let id = world.enqueues("one");
    world.enqueues("two");
    let file = |world: &World| {
        let path = format!("/h/sessions/{SESSION}/inbox.jsonl");
        world.disk.as_ref().expect("a disk").files[&path].clone()
    };
    let before = file(&world);
    // The transcript fails while the references of one are read.
    world.held = |call| matches!(call, Call::Resolve { path } if path.ends_with("/a"));
    world.wish(71, "inbox/enqueue", ",\"text\":\"three @a\"");
    world.disk_is_full(true);
    world.go();
    world.sees(DONE);
    world.disk_is_full(false);
    assert_eq!(world.answered(71), None, "its file is still being read");
    world.held = |_| false;
    world.drive();
    let mut answers = Vec::from([world.answered(71)]);
    let item = format!(",\"itemId\":\"{id}\"");
    for (method, more) in [
        ("inbox/enqueue", ",\"text\":\"three\"".into()),
        (
            "steer",
            ",\"prompt\":[{\"type\":\"text\",\"text\":\"three\"}]".into(),
        ),
        ("inbox/delete", item.clone()),
        ("inbox/move", format!("{item},\"toIndex\":1")),
        ("inbox/update", format!("{item},\"text\":\"1\"")),
        ("inbox/refresh", item),
        ("inbox/setPaused", ",\"paused\":true".into()),
    ] {
        answers.push(world.asks(method, &more));
        assert_eq!(world.items(), ["one queued", "two queued"], "{method}");
    }
    for line in answers {
        let line = line.expect("an answer");
        for part in [
            "-32600",
            "read_only",
            "not saved any more: no space is left. Open it again",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }
    assert_eq!(world.list()["paused"], false);
    assert_eq!(file(&world), before);
}

#[test]
fn the_inbox_goes_with_its_session() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.enqueues("one");
    let params = format!("{{\"sessionId\":\"{SESSION}\"}}");
    world.held = |call| matches!(call, Call::Read { .. });
    world.wish(70, "inbox/enqueue", ",\"text\":\"two @a\"");
    world.request(6, "session/close", &params);
    world.sees("\"id\":70,\"error\"");
    world.sees("\"id\":6,\"result\"");
    world.held = |_| false;
    world.drive();
    world.load(7, SESSION);
    world.sees("\"id\":7,\"result\"");
    // The same process finds it as it left it.
    assert_eq!(world.items(), ["one queued"]);
    assert_eq!(world.list()["paused"], false);
    world.request(8, "session/delete", &params);
    world.sees("\"id\":8,\"result\"");
    let files = &world.disk.as_ref().expect("a disk").files;
    assert!(files.is_empty(), "{:?}", files.keys());
}

#[test]
fn a_damaged_inbox_is_kept_aside_and_said() {
    let mut first = world(&Disk::default(), &says(3)).session();
    first.enqueues("one");
    first.enqueues("two");
    let mut disk = first.ends();
    let path = format!("/h/sessions/{SESSION}/inbox.jsonl");
    let file = disk.files.get_mut(&path).expect("it is there");
    let at = file
        .windows(3)
        .position(|part| part == b"one")
        .expect("it is there");
    file[at] = b'O';
    let before = file.clone();
    let mut next = world_of_another_run(&disk, &says(3));
    // It is read in pieces, the second time too.
    next.agent.config.limits.store_piece = 300;
    next.load(5, SESSION);
    next.sees("kept aside");
    assert_eq!(next.items(), ["One uncertain", "two uncertain"]);
    let files = &next.disk.as_ref().expect("a disk").files;
    let aside = files
        .iter()
        .find(|(name, _)| name.contains("inbox.damaged-"));
    assert_eq!(aside.map(|(_, bytes)| bytes), Some(&before));
}

#[test]
fn a_damaged_inbox_is_kept_aside_before_it_is_replaced_also_where_the_disk_was_full() {
    for turn in [false, true] {
        let mut first = world(&Disk::default(), &says(3)).session();
        first.enqueues("one");
        let mut disk = first.ends();
        let path = format!("/h/sessions/{SESSION}/inbox.jsonl");
        let file = disk.files.get_mut(&path).expect("it is there");
        let at = file.windows(3).position(|part| part == b"one");
        file[at.expect("it is there")] = b'O';
        let before = file.clone();
        let mut next = world_of_another_run(&disk, &says(3));
        next.disk_is_full(true);
        next.load(5, SESSION);
        next.sees("The inbox is not saved any more");
        assert_eq!(next.disk.as_ref().expect("a disk").files[&path], before);
        next.disk_is_full(false);
        if turn {
            next.go();
            next.sees(DONE);
        } else {
            next.enqueues("two");
        }
        let files = &next.disk.as_ref().expect("a disk").files;
        assert_ne!(files[&path], before, "it is written anew");
        let aside = files
            .iter()
            .find(|(name, _)| name.contains("inbox.damaged-"));
        assert_eq!(aside.map(|(_, bytes)| bytes), Some(&before));
    }
}

#[test]
fn what_ran_does_not_run_again_when_the_inbox_is_gone() {
    for gone in [true, false] {
        let mut first = world(&Disk::default(), &says(9)).session();
        for text in ["one", "two", "three"] {
            first.enqueues(text);
        }
        first.go();
        first.sees("\"id\":1,\"result\"");
        let mut disk = first.ends();
        let path = format!("/h/sessions/{SESSION}/inbox.jsonl");
        if gone {
            disk.files.remove(&path);
        } else {
            disk.files.insert(path, Vec::new());
        }
        let mut next = world_of_another_run(&disk, &says(9));
        next.load(5, SESSION);
        next.sees("\"id\":5,\"result\"");
        assert_eq!(next.items(), Vec::<String>::new());
        next.go();
        next.sees("\"id\":1,\"result\"");
        let heard = next.heard();
        for text in ["one", "two", "three"] {
            let times = heard.iter().filter(|it| *it == text).count();
            assert_eq!(times, 1, "{text}: {heard:?}");
        }
    }
}

#[test]
fn a_message_for_one_session_is_never_told_in_another() {
    for method in ["session/close", "session/delete"] {
        let mut world = world(&Disk::default(), &says(9)).session();
        world.enqueues("only for the first");
        let params = format!("{{\"sessionId\":\"{SESSION}\"}}");
        world.request(6, method, &params);
        world.sees("\"id\":6,\"result\"");
        world.request(7, "session/new", "{\"cwd\":\"/w\"}");
        let line = world.sees("\"id\":7,\"result\"");
        let at = line.find("sessionId\":\"").expect("an id") + 12;
        let other = &line[at..at + 36];
        let block = "{\"type\":\"text\",\"text\":\"hi\"}";
        let params = format!("{{\"sessionId\":\"{other}\",\"prompt\":[{block}]}}");
        world.request(8, "session/prompt", &params);
        world.sees("\"id\":8,\"result\"");
        let told = format!("{:?}", world.history());
        assert!(told.contains("hi") && !told.contains("first"), "{told}");
    }
}
