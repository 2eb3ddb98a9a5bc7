//! Runs a reasonix agent on `async-io`, in one task, without tokio. Any executor will do that polls a task
//! on the thread that spawned it (`async_io::block_on`, `LocalExecutor`): the future is not `Send`, on
//! purpose, since on Linux the agent's programs die with the thread that started them.
//!
//! [`serve()`] connects an [`Agent`](reasonix_core::agent::Agent) to standard input and output, or to
//! any two descriptors. It is the driver of `reasonix-blocking` with another way to wait: the peer,
//! the pipes of processes and their ends, and time are waited for by the reactor of `async-io`;
//! what blocks (files, searches, HTTP) runs on the pool of `blocking`. The same agent sends the
//! same bytes on both.

#[cfg(unix)]
mod client;
#[cfg(unix)]
pub mod link;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod watch;

pub use reasonix_blocking::{config, ops};

#[cfg(unix)]
pub use client::Client;
#[cfg(unix)]
pub use reasonix_blocking::{ClientError, CustomTool, Ended, Error, Hooks, Served, Stdio};
#[cfg(unix)]
pub use serve::{serve, serve_machine, serve_with};
