//! The runtime on async-io: one task owns the agent and waits for the reactor when there is nothing
//! to do.

use std::future::poll_fn;
use std::task::Poll;

use reasonix_blocking::driver::{Advanced, Driver, Name};
use reasonix_blocking::ops::CustomTool;
use reasonix_blocking::{Ended, Error, Served, Stdio};
use reasonix_core::agent::{Agent, Config};

use crate::watch::Watch;

/// Runs the agent to its end, as one task. The thread that polls it starts the agent's programs,
/// which on Linux die with that thread: poll it on one that lives as long, such as the main thread
/// with `async_io::block_on`. No program of the agent is left when this is done, nor when it is
/// dropped before.
///
/// # Errors
///
/// If the descriptors cannot be used, or the system has none left to wait with.
pub async fn serve(agent: Agent, io: Stdio) -> Result<Ended, Error> {
    let config = agent.config().clone();
    serve_machine(agent, &config, io, None).await
}

/// As [`serve`], for any machine with the agent's inputs and effects (one that records an agent,
/// say), and with the tools that an embedder registered. `config` is what the agent was made with.
///
/// # Errors
///
/// As [`serve`].
pub async fn serve_machine<M: Served>(
    machine: M,
    config: &Config,
    io: Stdio,
    custom: Option<CustomTool>,
) -> Result<Ended, Error> {
    let hands = Box::new(|job| blocking::unblock(job).detach());
    let mut driver = Driver::new(machine, config, io, custom, hands)?;
    let mut watch: Watch<Name> = Watch::new();
    let mut ready = Vec::new();
    loop {
        match driver.advance() {
            Advanced::Ended(reason) => {
                drop(watch);
                driver.end();
                return Ok(reason);
            }
            Advanced::Busy => yield_now().await,
            Advanced::Wait(until) => {
                let until = until.map(|at| driver.clock().system(at));
                watch.retain(|name| driver.is_open(name));
                ready.clear();
                watch.wait(driver.wants(), until, &mut ready).await?;
                let (output, bell) = (ready.contains(&Name::Output), ready.contains(&Name::Bell));
                driver.woken(output, bell);
            }
        }
    }
}

/// Lets other tasks of the thread, and the reactor, have a turn.
pub(crate) async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
