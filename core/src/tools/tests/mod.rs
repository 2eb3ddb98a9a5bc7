//! Whole tool calls against a small world in memory.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what a test does not expect is one thing: a failure"
)]

mod add_root;
mod bash;
mod disorder;
mod files;
mod gate;
mod goal;
mod host;
mod look;
mod web;
