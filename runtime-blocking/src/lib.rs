//! Runs a reasonix agent on plain threads.
//!
//! [`serve()`] connects an [`Agent`](reasonix_core::agent::Agent) to standard input and output, or to
//! any two descriptors: one thread owns the agent and sits in `poll(2)`; what blocks (files,
//! searches, HTTP) runs on a pool of threads that is made when first needed. [`link`] is the same
//! pump for a machine of your own, [`ops`] what the calls of the agent mean on this system,
//! [`config`] where its settings come from.

pub mod config;
pub mod ops;

#[cfg(unix)]
mod bell;
#[cfg(unix)]
mod calls;
#[cfg(unix)]
pub mod client;
#[cfg(unix)]
pub mod driver;
#[cfg(unix)]
mod hooks;
#[cfg(unix)]
pub mod link;
#[cfg(unix)]
mod pool;
#[cfg(unix)]
mod serve;

#[cfg(unix)]
pub use client::{Client, ClientError};
#[cfg(unix)]
pub use driver::{Ended, Error, Served, Stdio};
#[cfg(unix)]
pub use hooks::{CustomTool, Hooks};
#[cfg(unix)]
pub use serve::{serve, serve_machine, serve_with};
