//! What comes back of an inbox when its process has ended.

use super::*;

#[test]
fn a_line_that_is_too_long_is_a_damaged_one() {
    let mut desk = Desk::new();
    let new = desk.new_item("one");
    desk.try_add(new, false).unwrap();
    let long = [&b"{\"n\":9,\""[..], &[b'x'; 999], b"\"}"].concat();
    for (end, damaged) in [("\n", true), ("", false)] {
        let file = [&desk.file[..], &long, end.as_bytes()].concat();
        let mut small = limits();
        small.max_inbox_line = 500;
        let recovery = Inbox::recover(&file, RUN, 9, &small, |_| Claim::Absent);
        assert_eq!(recovery.aside.is_some(), damaged);
        assert!(recovery.rewrite.is_some());
        assert_eq!(recovery.inbox.items().len(), 1);
    }
}

#[test]
fn what_the_transcript_shows_decides_what_comes_back() {
    let begun = |times, end| Claim::Begun { times, end };
    let passing = Some(TurnEnd::Failed { passing: true });
    let lasting = Some(TurnEnd::Failed { passing: false });
    for (claim, state) in [
        (Claim::Absent, Some(State::Queued)),
        (begun(1, None), Some(State::Uncertain)),
        (begun(1, Some(TurnEnd::Finished)), None),
        (begun(1, Some(TurnEnd::Cancelled)), None),
        (begun(1, passing), Some(State::Queued)),
        (begun(2, passing), Some(State::Queued)),
        (begun(1, lasting), Some(State::Blocked)),
        (Claim::Unreadable, Some(State::Uncertain)),
    ] {
        // Whether the journal says that it began or not.
        for begins in [false, true] {
            let mut desk = Desk::new();
            desk.keyed("k", "a").unwrap();
            if begins {
                desk.begin();
            }
            let recovery = desk.recover("run-2", |_| claim);
            let inbox = &recovery.inbox;
            let found = inbox.get("1").map(|item| item.state);
            assert_eq!(found, state, "{claim:?} {begins}");
            assert_eq!(inbox.is_paused(), state.is_some());
            assert_eq!(inbox.recovered(), state.map(|_| 1));
            let known = inbox.admits("a", "acp", Some("k")).unwrap();
            assert!(known.unwrap().idempotent);
        }
    }
}

#[test]
fn guidance_comes_back_by_what_the_transcript_shows() {
    for (times, end, state) in [
        (0, None, Some(State::Queued)),
        (1, None, Some(State::Uncertain)),
        (1, Some(TurnEnd::Finished), None),
        (1, Some(TurnEnd::Failed { passing: true }), None),
    ] {
        for read in [false, true] {
            let mut desk = Desk::new();
            desk.steer("s");
            if read {
                let done = desk.inbox.consume(2, "1");
                desk.done(done);
            }
            let claim = match times {
                0 => Claim::Absent,
                times => Claim::Begun { times, end },
            };
            let inbox = desk.recover("run-2", |_| claim).inbox;
            assert_eq!(inbox.get("1").map(|item| item.state), state);
        }
    }
}

#[test]
fn a_beginning_that_is_accounted_for_is_not_news_again() {
    let mut desk = Desk::new();
    desk.add("a");
    desk.begin();
    let done = desk.inbox.fail(3, "1", true, "503");
    desk.done(done);
    let failed = Claim::Begun {
        times: 1,
        end: Some(TurnEnd::Failed { passing: true }),
    };
    let recovery = desk.recover(RUN, |_| failed);
    assert_eq!(recovery.lines, b"");
    assert_eq!(recovery.inbox.get("1").unwrap().failures, 1);
    assert_eq!(recovery.findings.notice(), None);
    // A person lets an uncertain one run again: the old beginning does not make it uncertain.
    let open = Claim::Begun {
        times: 2,
        end: None,
    };
    let mut recovery = desk.recover("run-2", |_| open);
    desk.file.extend_from_slice(&recovery.lines);
    let done = recovery.inbox.retry(4, "1").unwrap();
    desk.file.extend_from_slice(&done.lines);
    let inbox = desk.recover("run-3", |_| open).inbox;
    assert_eq!(states(&inbox), [("1", State::Queued)]);
    assert_eq!(inbox.recovered(), Some(1));
}

#[test]
fn another_process_finds_it_paused_and_the_same_one_as_it_left_it() {
    let mut desk = Desk::new();
    desk.add("a");
    let same = desk.recover(RUN, |_| Claim::Absent);
    assert_eq!(
        (same.inbox.is_paused(), same.inbox.recovered()),
        (false, None)
    );
    let mut other = desk.recover("run-2", |_| Claim::Absent);
    assert_eq!(
        (other.inbox.is_paused(), other.inbox.recovered()),
        (true, Some(1))
    );
    let notice = other.findings.notice().unwrap();
    assert_eq!(
        notice,
        "1 queued message was recovered. The inbox is paused until it is told to go on."
    );
    desk.file.extend_from_slice(&other.lines);
    // It goes on, and stays so for the process that let it.
    let done = other.inbox.set_paused(false).unwrap();
    assert!(!done.answer);
    desk.file.extend_from_slice(&done.lines);
    assert_eq!(other.inbox.recovered(), None);
    let again = desk.recover("run-2", |_| Claim::Absent);
    assert_eq!(again.inbox, other.inbox);
    assert_eq!(again.lines, b"");
}

#[test]
fn an_empty_inbox_never_comes_back_paused() {
    let mut desk = Desk::new();
    desk.add("a");
    let done = desk.inbox.set_paused(true).unwrap();
    desk.done(done);
    let done = desk.inbox.delete("1").unwrap();
    desk.done(done);
    for run in [RUN, "run-2"] {
        let recovery = desk.recover(run, |_| Claim::Absent);
        assert!(!recovery.inbox.is_paused());
        assert_eq!(recovery.findings.notice(), None);
    }
}
