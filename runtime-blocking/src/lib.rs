//! Runs a reasonix agent on plain threads.

pub mod config;
pub mod ops;
