//! What a person sees: pure functions from updates to styled text. Prints nothing.

pub mod age;
pub mod diff;
pub mod screen;
pub mod styles;
pub mod text;
