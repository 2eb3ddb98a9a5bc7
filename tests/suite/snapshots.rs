//! The exact frames of a handshake, a session and one whole turn. A change here is a change that
//! clients see: review it as one.

use reasonix_tests::json::{self, json};
use reasonix_tests::sim::{Sim, config};

/// The bytes the agent sent, one frame a paragraph, its version left out.
fn sent(sim: &Sim) -> String {
    let text = String::from_utf8(sim.bytes.clone()).expect("frames are UTF-8");
    text.replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn a_handshake_and_a_session() {
    let mut sim = Sim::new(config(), crate::machine::world());
    sim.open(json!({}), "/w");
    insta::assert_snapshot!(sent(&sim));
}

#[test]
fn a_turn_that_edits_a_file() {
    let mut sim = Sim::new(config(), crate::machine::world());
    let session = sim.open(json!({}), "/w");
    sim.bytes.clear();
    sim.ask(&json::prompt(1, &session, "edit"));
    insta::assert_snapshot!(sent(&sim));
}
