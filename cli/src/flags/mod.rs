//! Flags in two layers: [`low`] is what was typed, [`invocation`] is what it means.

pub mod invocation;
pub mod low;
pub mod models;
