//! Operations, journals and recoveries of an inbox, as data.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::recovery::replayed;
use super::*;
use crate::limits::Limits;

const RUN: &str = "run-1";

fn limits() -> Limits {
    Limits {
        max_inbox_items: 4,
        max_inbox_item: 200,
        max_inbox: 340,
        max_inbox_receipts: 2,
        max_inbox_attempts: 2,
        max_inbox_waste: 4096,
        ..Limits::default()
    }
}

/// An inbox and its file.
struct Desk {
    inbox: Inbox,
    file: Vec<u8>,
    ids: u32,
}

impl Desk {
    fn new() -> Self {
        Self {
            inbox: Inbox::new(RUN, &limits()),
            file: Vec::new(),
            ids: 0,
        }
    }

    /// Appends what an operation did; what is read back is what is there.
    fn done<T>(&mut self, done: Done<T>) -> T {
        self.file.extend_from_slice(&done.lines);
        assert_eq!(replayed(&self.file, RUN, &limits()), self.inbox);
        done.answer
    }

    fn try_add(&mut self, new: NewItem, steerable: bool) -> Result<Enqueued, Refusal> {
        let done = self.inbox.enqueue(1, new, steerable)?;
        Ok(self.done(done))
    }

    fn new_item(&mut self, text: &str) -> NewItem {
        self.ids += 1;
        NewItem {
            id: self.ids.to_string(),
            intent: Intent::FollowUp,
            source: "acp".into(),
            key: None,
            draft: Draft::plain(text),
        }
    }

    fn add(&mut self, text: &str) -> String {
        let new = self.new_item(text);
        self.try_add(new, false).unwrap().id
    }

    fn keyed(&mut self, key: &str, text: &str) -> Result<Enqueued, Refusal> {
        let mut new = self.new_item(text);
        new.key = Some(key.into());
        self.try_add(new, false)
    }

    fn steer(&mut self, text: &str) -> Enqueued {
        let mut new = self.new_item(text);
        new.intent = Intent::Steer;
        self.try_add(new, true).unwrap()
    }

    fn begin(&mut self) -> String {
        let id = self.inbox.next().unwrap().id.clone();
        let done = self.inbox.begin(2, &id).unwrap();
        self.done(done);
        id
    }

    /// Ids with states.
    fn states(&self) -> String {
        let mut text = String::new();
        for item in self.inbox.items() {
            text.push_str(&format!("{}:{} ", item.id, item.state.as_str()));
        }
        text.trim_end().into()
    }

    fn recover(&self, run: &str, claim: impl Fn(&str) -> Claim) -> Recovery {
        recover(&self.file, run, claim)
    }
}

fn recover(file: &[u8], run: &str, claim: impl Fn(&str) -> Claim) -> Recovery {
    let recovery = Inbox::recover(file, run, 9, &limits(), |item| claim(&item.id));
    let mut after = recovery.rewrite.clone().unwrap_or_else(|| file.to_vec());
    after.extend_from_slice(&recovery.lines);
    if recovery.inbox.read_only().is_none() && !after.is_empty() {
        // What it left on the disk is what it gave.
        assert_eq!(replayed(&after, run, &limits()), recovery.inbox);
        assert!(!recovery.inbox.items().is_empty() || !recovery.inbox.is_paused());
    }
    recovery
}

fn states(inbox: &Inbox) -> Vec<(&str, State)> {
    let items = inbox.items().iter();
    items.map(|item| (item.id.as_str(), item.state)).collect()
}

fn code<T: core::fmt::Debug>(result: Result<T, Refusal>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn an_inbox_that_nobody_uses_has_no_journal() {
    let mut desk = Desk::new();
    let done = desk.inbox.set_paused(false).unwrap();
    assert_eq!(done.lines, b"");
    let recovery = recover(b"", "x", |_| Claim::Absent);
    assert_eq!(recovery.inbox, Inbox::new("x", &limits()));
    assert_eq!((recovery.rewrite, recovery.lines), (None, Vec::new()));
}

#[test]
fn items_run_in_order_and_what_is_set_aside_is_passed_over() {
    let mut desk = Desk::new();
    let added: Vec<_> = ["a", "b", "c"].iter().map(|text| desk.add(text)).collect();
    assert_eq!(added, ["1", "2", "3"]);
    assert_eq!(desk.begin(), "1");
    let done = desk.inbox.fail(3, "1", false, "no such model");
    desk.done(done);
    assert_eq!(desk.states(), "1:blocked 2:queued 3:queued");
    assert_eq!(desk.begin(), "2");
    let done = desk.inbox.finish("2");
    desk.done(done);
    assert_eq!(desk.begin(), "3");
    let done = desk.inbox.release(4, "3");
    desk.done(done);
    assert_eq!(desk.states(), "1:blocked 3:queued");
    let done = desk.inbox.set_paused(true).unwrap();
    assert!(desk.done(done));
    assert_eq!(desk.inbox.next(), None);
    assert_eq!(code(desk.inbox.begin(5, "3")), "paused");
}

#[test]
fn a_passing_failure_is_tried_again_and_then_set_aside_with_its_error() {
    let mut desk = Desk::new();
    desk.add("a");
    for (failures, state) in [(1, State::Queued), (2, State::Blocked)] {
        desk.begin();
        let done = desk.inbox.fail(3, "1", true, "503");
        desk.done(done);
        let item = desk.inbox.get("1").unwrap();
        assert_eq!((item.failures, item.state), (failures, state));
        assert_eq!(item.last_error.as_deref(), Some("503"));
    }
    let block = desk.inbox.get("1").unwrap().block.clone().unwrap();
    assert_eq!(block.code, BlockCode::AttemptsExhausted);
    let done = desk.inbox.retry(4, "1").unwrap();
    desk.done(done);
    let item = desk.inbox.get("1").unwrap();
    assert_eq!((item.failures, item.state), (0, State::Queued));
    assert_eq!((&item.block, &item.last_error), (&None, &None));
}

#[test]
fn capacity_and_length_are_bounded_and_a_known_key_needs_none() {
    let mut desk = Desk::new();
    assert_eq!(code(desk.keyed("k", " \n")), "empty");
    let long = "x".repeat(201);
    assert_eq!(code(desk.keyed("k", &long)), "item_too_large");
    let first = desk.keyed("k", "a").unwrap();
    for text in ["b", "c", "d"] {
        desk.add(text);
    }
    assert_eq!(code(desk.keyed("l", "e")), "inbox_full");
    let again = desk.keyed("k", "a").unwrap();
    assert_eq!((again.id, again.position), (first.id, 1));
    assert!(again.idempotent && !first.idempotent);
    assert_eq!(code(desk.keyed("k", "b")), "idempotency_conflict");

    let mut desk = Desk::new();
    let text = "x".repeat(150);
    desk.add(&text);
    desk.add(&text);
    let new = desk.new_item(&text);
    assert_eq!(
        desk.try_add(new, false).unwrap_err(),
        Refusal::NoRoom { max: 340 }
    );
    let longer = Draft::plain("x".repeat(180));
    let refused = desk.inbox.update(2, "1", longer).unwrap_err();
    assert_eq!(refused.code(), "inbox_full");
    let shorter = Draft::plain("x");
    let done = desk.inbox.update(2, "1", shorter).unwrap();
    desk.done(done);
    let new = desk.new_item("y");
    assert!(desk.try_add(new, false).is_ok());
}

#[test]
fn keys_have_a_shape() {
    let mut desk = Desk::new();
    for bad in ["", "a b", "a/b", "é", &"k".repeat(129)] {
        assert_eq!(code(desk.keyed(bad, "a")), "invalid_key", "{bad}");
    }
    assert!(desk.keyed(&"k".repeat(128), "a").is_ok());
    assert!(desk.keyed("A.z_0:9-", "a").is_ok());
}

#[test]
fn a_key_outlives_its_item_and_the_process() {
    let mut desk = Desk::new();
    desk.keyed("ran", "a").unwrap();
    desk.keyed("deleted", "b").unwrap();
    desk.begin();
    let done = desk.inbox.finish("1");
    desk.done(done);
    let done = desk.inbox.delete("2").unwrap();
    desk.done(done);
    desk.inbox = desk.recover("run-2", |_| Claim::Absent).inbox;
    for (key, text, disposition) in [
        ("ran", "a", Disposition::Acknowledged),
        ("deleted", "b", Disposition::Discarded),
    ] {
        let known = desk.inbox.admits(text, "acp", Some(key)).unwrap().unwrap();
        assert_eq!((known.disposition, known.position), (disposition, 0));
        assert!(known.idempotent);
        assert_eq!(
            code(desk.inbox.admits("z", "acp", Some(key))),
            "idempotency_conflict"
        );
    }
    // Two are remembered here: one more, and the oldest is forgotten.
    let new = NewItem {
        key: Some("third".into()),
        ..desk.new_item("c")
    };
    let id = desk.inbox.enqueue(1, new, false).unwrap().answer.id;
    let _ = desk.inbox.delete(&id).unwrap();
    assert_eq!(desk.inbox.admits("a", "acp", Some("ran")), Ok(None));
}

#[test]
fn states_decide_what_a_client_may_do() {
    let mut desk = Desk::new();
    desk.add("queued");
    desk.begin();
    desk.steer("accepted");
    desk.steer("consumed");
    let done = desk.inbox.consume(2, "3");
    desk.done(done);
    assert_eq!(desk.states(), "1:running 2:steer_accepted 3:steer_consumed");
    for id in ["1", "2", "3"] {
        assert_eq!(
            code(desk.inbox.update(3, id, Draft::plain("x"))),
            "wrong_state"
        );
        assert_eq!(code(desk.inbox.move_to(3, id, 0)), "wrong_state");
        assert_eq!(code(desk.inbox.retry(3, id)), "wrong_state");
    }
    assert_eq!(code(desk.inbox.delete("1")), "wrong_state");
    assert_eq!(desk.inbox.delete("3"), Err(Refusal::AlreadyApplied));
    let done = desk.inbox.delete("2").unwrap();
    desk.done(done);
    assert_eq!(desk.states(), "1:running 3:steer_consumed");
    assert_eq!(code(desk.inbox.delete("2")), "item_not_found");
    assert_eq!(code(desk.inbox.retry(3, "2")), "item_not_found");
}

#[test]
fn an_item_can_be_put_at_any_place() {
    for (id, to, is) in [
        ("1", 2, "2 3 1"),
        ("3", 0, "3 1 2"),
        ("3", -5, "3 1 2"),
        ("1", i64::MAX, "2 3 1"),
        ("2", 1, "1 2 3"),
    ] {
        let mut desk = Desk::new();
        for text in ["a", "b", "c"] {
            desk.add(text);
        }
        let before = desk.inbox.revision();
        let done = desk.inbox.move_to(2, id, to).unwrap();
        let still = done.lines.is_empty();
        desk.done(done);
        let order: Vec<_> = desk.inbox.items().iter().map(|i| i.id.as_str()).collect();
        assert_eq!(order.join(" "), is, "{id} to {to}");
        assert_eq!(still, is == "1 2 3");
        assert_eq!(desk.inbox.revision() == before, still);
    }
}

#[test]
fn guidance_that_is_not_read_waits_in_its_place_as_a_follow_up() {
    let mut desk = Desk::new();
    desk.add("a");
    assert_eq!(desk.steer("s").disposition, Disposition::SteerAccepted);
    desk.add("b");
    let done = desk.inbox.give_back(2);
    assert_eq!(desk.done(done), 1);
    assert_eq!(desk.states(), "1:queued 2:queued 3:queued");
    assert_eq!(desk.inbox.get("2").unwrap().intent, Intent::FollowUp);
    let done = desk.inbox.set_paused(true).unwrap();
    desk.done(done);
    let late = desk.steer("s");
    assert_eq!(late.disposition, Disposition::QueuedFollowup);
    assert!(late.paused);
}

#[test]
fn a_reference_that_fails_blocks_the_item_and_pauses_the_inbox() {
    let mut desk = Desk::new();
    let broken = Draft {
        failed: Some("@a: gone".into()),
        ..Draft::plain("see @a")
    };
    let new = NewItem {
        draft: broken.clone(),
        ..desk.new_item("")
    };
    let answer = desk.try_add(new, false).unwrap();
    assert!(answer.paused);
    assert_eq!(desk.states(), "1:blocked");
    let done = desk.inbox.refresh(2, "1", broken).unwrap();
    assert_eq!(done.lines, b"", "nothing has changed");
    let done = desk.inbox.refresh(2, "1", Draft::plain("see @a")).unwrap();
    desk.done(done);
    assert_eq!(desk.states(), "1:queued");
    assert!(desk.inbox.is_paused());
    assert_eq!(desk.inbox.get("1").unwrap().block, None);
}

#[test]
fn a_store_that_is_lost_lets_nothing_begin_and_says_why() {
    let mut desk = Desk::new();
    desk.add("a");
    desk.add("b");
    desk.begin();
    desk.inbox.lost("disk full");
    desk.inbox.lost("later");
    assert_eq!(desk.inbox.read_only(), Some("disk full"));
    assert_eq!(desk.inbox.next(), None);
    for refused in [
        desk.inbox.admits("x", "acp", None).map(|_| ()),
        desk.inbox.delete("2").map(|_| ()),
        desk.inbox.set_paused(true).map(|_| ()),
        desk.inbox.begin(3, "2").map(|_| ()),
        desk.inbox.retry(3, "2").map(|_| ()),
    ] {
        assert_eq!(code(refused), "read_only");
    }
    // What its turn still does is seen, and not written.
    assert_eq!(desk.inbox.finish("1").lines, b"");
    assert_eq!(desk.states(), "2:queued");
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
