//! The types of the `_reasonix.io/…` methods, both ways. Plain data; knows no state.

pub mod inbox;
