//! Journals that are cut, damaged, of another version or long.

use super::*;

/// A file with an item that ran, one that waits and one that is moved before it.
fn sample() -> Vec<u8> {
    let mut desk = Desk::new();
    desk.keyed("k", "one").unwrap();
    desk.add("two");
    desk.add("three");
    let done = desk.inbox.move_to(2, "3", 1).unwrap();
    desk.done(done);
    desk.begin();
    let done = desk.inbox.finish("1");
    desk.done(done);
    desk.file
}

fn lines(file: &[u8]) -> Vec<Vec<u8>> {
    file.split_inclusive(|b| *b == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

#[test]
fn any_beginning_of_a_journal_is_read_without_a_word_of_damage() {
    let file = sample();
    let mut before = 0;
    for end in 0..=file.len() {
        let recovery = recover(&file[..end], RUN, |_| Claim::Absent);
        assert!(!recovery.findings.damaged, "{end}");
        assert_eq!(recovery.aside, None);
        let torn = end > 0 && file[end - 1] != b'\n';
        assert_eq!(recovery.rewrite.is_some(), torn, "{end}");
        let revision = recovery.inbox.revision();
        assert!(revision + 1 >= before, "{end}");
        before = revision;
    }
}

#[test]
fn lines_that_come_twice_or_run_together_are_taken_once() {
    let file = sample();
    let whole = recover(&file, RUN, |_| Claim::Absent).inbox;
    let all = lines(&file);
    let mut twice = Vec::new();
    for line in &all {
        twice.extend_from_slice(line);
        twice.extend_from_slice(line);
    }
    let mut all_twice = file.clone();
    all_twice.extend_from_slice(&file);
    let mut glued = all.concat();
    glued.retain(|b| *b != b'\n');
    glued.push(b'\n');
    let mut begun_again = all[..2].concat();
    begun_again.extend_from_slice(&all[2][..20]);
    begun_again.extend_from_slice(&all[2..].concat());
    let mut blank = b"\xEF\xBB\xBF"[..0].to_vec();
    for line in &all {
        blank.extend_from_slice(b"\r\n  \n");
        blank.extend_from_slice(line);
    }
    for variant in [twice, all_twice, glued, begun_again, blank] {
        let recovery = recover(&variant, RUN, |_| Claim::Absent);
        assert!(!recovery.findings.damaged);
        assert_eq!(recovery.inbox.items(), whole.items());
        assert_eq!(recovery.inbox.revision(), whole.revision());
    }
}

#[test]
fn a_damaged_journal_is_kept_aside_and_what_is_left_waits_for_a_person() {
    let all = lines(&sample());
    let with = |at: usize, line: &[u8]| {
        let mut lines = all.clone();
        lines[at] = line.to_vec();
        lines.concat()
    };
    let altered = String::from_utf8(all[2].clone()).unwrap();
    for (file, left) in [
        // The beginning is missing, is something else, or is of no version there is.
        (with(0, b""), "3 2"),
        (with(0, b"nonsense\n"), "3 2"),
        (
            with(0, b"{\"n\":0,\"op\":\"inbox\",\"version\":1}\n"),
            "3 2",
        ),
        // A change is missing or is something else.
        (with(2, b""), "3"),
        (with(2, b"{}\n"), "3"),
        (with(2, &all[2][..40]), "3"),
        // An item is not what it was.
        (with(2, altered.replace("two", "tow").as_bytes()), "3 2"),
        // The number of a line is not what it was.
        (
            with(2, altered.replace("\"n\":2", "\"n\":1").as_bytes()),
            "3 2",
        ),
        // The end of an item is missing: it is there again.
        (with(6, b"\0\0\0\n"), "1 3 2"),
    ] {
        let recovery = recover(&file, RUN, |_| Claim::Absent);
        let inbox = &recovery.inbox;
        assert!(recovery.findings.damaged);
        assert!(recovery.rewrite.is_some() && inbox.is_paused());
        let name = recovery.aside.as_deref().unwrap();
        assert!(name.starts_with("inbox.damaged-") && name.ends_with(".jsonl"));
        let order: Vec<_> = inbox.items().iter().map(|i| i.id.as_str()).collect();
        assert_eq!(order.join(" "), left, "{}", String::from_utf8_lossy(&file));
        for item in inbox.items() {
            assert_eq!(item.state, State::Uncertain);
            let code = item.block.as_ref().map(|block| block.code);
            assert_eq!(code, Some(BlockCode::ManifestSalvaged));
        }
        assert!(recovery.findings.notice().unwrap().contains("kept aside"));
    }
}

#[test]
fn of_a_damaged_journal_too_what_ran_does_not_run_again() {
    let mut file = lines(&sample());
    file.remove(6);
    let ran = |id: &str| match id {
        "1" => Claim::Begun {
            times: 1,
            end: Some(TurnEnd::Finished),
        },
        _ => Claim::Absent,
    };
    // Its last line is gone, so nobody can know that there was one.
    let recovery = recover(&file.concat(), RUN, ran);
    assert!(!recovery.findings.damaged);
    assert_eq!(states(&recovery.inbox).len(), 2);
    file.remove(2);
    let recovery = recover(&file.concat(), RUN, ran);
    assert!(recovery.findings.damaged);
    assert_eq!(states(&recovery.inbox), [("3", State::Uncertain)]);
    let known = recovery.inbox.admits("one", "acp", Some("k")).unwrap();
    assert_eq!(known.unwrap().disposition, Disposition::Acknowledged);
}

#[test]
fn a_newer_journal_and_one_that_cannot_be_read_stay_as_they_are() {
    let newer = b"{\"n\":0,\"op\":\"inbox\",\"version\":3,\"paused\":\"maybe\"}\nwhatever\n";
    let recovery = recover(newer, RUN, |_| Claim::Absent);
    assert_eq!((&recovery.aside, &recovery.rewrite), (&None, &None));
    assert_eq!(recovery.lines, b"");
    assert_eq!(recovery.inbox.version(), 3);
    for inbox in [recovery.inbox, Inbox::unreadable(RUN, "denied", &limits())] {
        assert!(inbox.is_paused());
        assert_eq!(code(inbox.admits("x", "acp", None)), "read_only");
    }
}

#[test]
fn a_long_journal_is_written_anew_and_says_the_same() {
    let mut desk = Desk::new();
    desk.keyed("k", "a").unwrap();
    desk.begin();
    let done = desk.inbox.finish("1");
    desk.done(done);
    desk.add("b");
    desk.steer("s");
    desk.begin();
    let done = desk.inbox.fail(3, "2", true, "503");
    desk.done(done);
    let mut rewritten = 0;
    for round in 0..500 {
        let text = format!("text {round}");
        let done = desk.inbox.update(round, "2", Draft::plain(text)).unwrap();
        desk.done(done);
        if let Some(file) = desk.inbox.compaction() {
            rewritten += 1;
            assert!(file.len() < desk.file.len());
            desk.file = file;
            let again = replayed(&desk.file, RUN, &limits());
            assert_eq!(again, desk.inbox);
        }
        assert!(desk.file.len() < 16 << 10, "{round}");
    }
    assert!(rewritten > 5);
    let known = desk.inbox.admits("a", "acp", Some("k")).unwrap();
    assert!(known.unwrap().idempotent);
    // Lines of the new file that are lost are missed.
    let mut lost = lines(&desk.file);
    lost.truncate(2);
    assert!(
        recover(&lost.concat(), RUN, |_| Claim::Absent)
            .findings
            .damaged
    );
}
