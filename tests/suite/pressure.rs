//! A client that reads slowly, or not at all: the model's stream waits, nothing is lost, and a
//! cancel is heard all the same.

use std::time::Duration;

use reasonix_tests::json::{self, json};
use reasonix_tests::provider::{Answer, done, finish, text};
use reasonix_tests::sim::{Sim, config};
use reasonix_tests::world::http;

/// A provider that streams two megabytes, 1 KiB at a time.
fn flood() -> (Sim, String, String) {
    let piece = "0123456789abcdef".repeat(64);
    let count = 2048;
    let pieces = std::iter::repeat_n(text(&piece), count).chain([finish("stop"), done()]);
    let mut world = crate::machine::world();
    world
        .branches
        .insert(0, ("flood".into(), vec![http(&Answer::stream(pieces))]));
    let mut sim = Sim::new(config(), world);
    let session = sim.open(json!({}), "/w");
    (sim, session, piece.repeat(count))
}

#[test]
fn a_client_that_stops_reading_stops_the_model_and_loses_nothing() {
    let (mut sim, session, whole) = flood();
    sim.reads = false;
    sim.send(&json::prompt(1, &session, "flood"));
    sim.run_for(Duration::from_secs(20));
    let limits = &config().limits;
    let held = json::said(&sim.frames, &session).len();
    assert!(
        held < limits.soft_output + limits.max_out_frame,
        "{held} bytes were sent to nobody"
    );
    assert!(json::answer_to(&sim.frames, 1).is_none());
    // It begins to read again, a little at first.
    while json::answer_to(&sim.frames, 1).is_none() {
        let before = sim.bytes.len();
        sim.read_again();
        sim.reads = false;
        sim.run_for(Duration::from_millis(100));
        assert!(sim.bytes.len() > before, "it does not go on");
    }
    sim.read_again();
    assert_eq!(json::said(&sim.frames, &session), whole);
    assert_eq!(sim.answer(1)["result"]["stopReason"], "end_turn");
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_cancel_is_heard_while_the_client_reads_nothing() {
    let (mut sim, session, _) = flood();
    sim.reads = false;
    sim.send(&json::prompt(1, &session, "flood"));
    sim.run_for(Duration::from_secs(5));
    let before = json::said(&sim.frames, &session).len();
    sim.send(&json::cancel(&session));
    sim.run_for(Duration::from_secs(2));
    sim.read_again();
    assert_eq!(sim.answer(1)["result"]["stopReason"], "cancelled");
    let after = json::said(&sim.frames, &session).len();
    assert!(
        after - before < 64 << 10,
        "{} bytes after the cancel",
        after - before
    );
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_client_that_takes_no_byte_for_too_long_is_gone() {
    let (mut sim, session, _) = flood();
    sim.reads = false;
    sim.send(&json::prompt(1, &session, "flood"));
    sim.run_for(config().limits.peer_stalled + Duration::from_secs(30));
    assert_eq!(sim.closed, Some(reasonix_core::agent::CloseReason::Stalled));
    assert_eq!(sim.world.running(), 0);
}

#[test]
fn requests_wait_outside_while_nothing_is_read() {
    let (mut sim, _, _) = flood();
    sim.reads = false;
    for id in 0..30_000 {
        sim.send(&json::request(id, "no/such/method", json!({})));
    }
    sim.run_for(Duration::from_secs(5));
    let limits = &config().limits;
    let most = limits.hard_output + limits.peer_window * 8;
    assert!(
        sim.bytes.len() < most,
        "{} bytes wait for nobody",
        sim.bytes.len()
    );
    assert_eq!(sim.room(), 0);
    while json::answer_to(&sim.frames, 29_999).is_none() {
        let before = sim.frames.len();
        sim.read_again();
        sim.reads = false;
        sim.run_for(Duration::from_millis(10));
        assert!(sim.frames.len() > before, "it does not go on");
    }
    sim.read_again();
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_deadline_that_passes_while_nothing_is_read_is_served_and_does_not_stay() {
    let (mut sim, session, _) = flood();
    let other = sim.open_another(9003, "/w");
    sim.send(&json::prompt(1, &other, "limited"));
    sim.until("the command runs", |sim| !sim.world.ran.is_empty());
    sim.reads = false;
    sim.send(&json::prompt(2, &session, "flood"));
    // A deadline that stays in the past makes a driver spin; the simulation would say so.
    sim.run_for(Duration::from_secs(20));
    sim.read_again();
    assert_eq!(sim.answer(1)["result"]["stopReason"], "end_turn");
    assert_eq!(json::tool_ends(&sim.frames, &other), ["failed"]);
    sim.finish();
    sim.laws.check();
}
