//! The types of the `_reasonix.io/…` methods, both ways. Plain data; knows no state.

pub mod goal;
pub mod inbox;
pub mod status;
