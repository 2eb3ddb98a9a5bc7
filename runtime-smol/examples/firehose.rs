//! An agent that streams what the JSON in the prompt asks for, over the library's protocol layer
//! and its pump, on async-io: a load to measure, and the shape of an embedder with an engine of
//! its own. `{"chunks":5,"size":32}` is a plan.

#[path = "../../runtime-blocking/examples/firehose/engine.rs"]
mod engine;

use std::io;
use std::time::Duration;

use engine::Engine;
use reasonix_core::limits::Limits;
use reasonix_core::machine::{Machine, Next, Source};
use reasonix_core::protocol::{AgentSide, SideEffect};
use reasonix_core::time::Deadline;
use reasonix_smol::link::{Clock, Link, Waiter};

fn main() -> io::Result<()> {
    async_io::block_on(run())
}

async fn run() -> io::Result<()> {
    let clock = Clock::start();
    let mut link = Link::stdio()?;
    let mut waiter = Waiter::new();
    let mut engine = Engine::default();
    let mut side = AgentSide::new(limits());
    loop {
        match side.poll_effect() {
            Next::Do(SideEffect::Transmit(frame)) => link.send(frame),
            Next::Do(SideEffect::Event(event)) => engine.on_event(&mut side, event, clock.now()),
            Next::Do(SideEffect::Close(_)) => break,
            Next::Wait(deadline) => {
                let now = clock.now();
                engine.on_time(&mut side, now);
                if side.has_frame() || link.exchange(now, &mut side) {
                    continue;
                }
                let deadline = Deadline::earlier(deadline, link.deadline());
                let at = deadline.map(|deadline| deadline.at);
                let at = at.into_iter().chain(engine.deadline()).min();
                let room = side.room(Source::Peer);
                let at = at.map(|at| clock.system(at));
                waiter.wait(&mut link, room, at).await?;
                if deadline.is_some_and(|deadline| deadline.at <= clock.now()) {
                    side.handle_timeout(clock.now());
                }
            }
        }
        if link.is_full() {
            link.exchange(clock.now(), &mut side);
        }
    }
    link.finish(Duration::from_secs(1));
    Ok(())
}

/// Less in flight than a whole agent has: a cancel is heard sooner. And chunks as the plan has
/// them, not split for clients that read short lines only.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.soft_output = 48 << 10;
    limits.max_out_frame = 32 << 20;
    limits
}
