//! The command line, for both binaries: they differ in the runtime only.

mod exit;
pub mod flags;
mod logging;
mod out;
pub mod render;
mod setup;

use std::process::ExitCode;

/// What does the IO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// async-io, one thread and a pool for what blocks.
    #[cfg(feature = "smol")]
    Smol,
    /// Plain threads.
    Blocking,
}

/// The whole program.
pub fn main(_runtime: Runtime) -> ExitCode {
    ExitCode::SUCCESS
}
