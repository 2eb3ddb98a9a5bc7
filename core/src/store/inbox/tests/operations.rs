//! What may be done with an inbox, and what is refused.

use super::*;

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
    desk.inbox.kept(desk.inbox.revision());
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
