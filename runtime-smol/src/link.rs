//! The pump between two descriptors and a machine of your own, waited for by the reactor: the
//! [`Link`] of `reasonix-blocking`, and [`Waiter`] in place of its [`Link::wait`].

use std::io;
use std::time::Instant;

pub use reasonix_blocking::link::{Attached, Clock, Link};

use crate::watch::Watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Input,
    Output,
}

/// Waits for a link. Use one for a link from its beginning to its end.
#[derive(Debug)]
pub struct Waiter {
    watch: Watch<Name>,
    ready: Vec<Name>,
}

impl Default for Waiter {
    fn default() -> Self {
        Self::new()
    }
}

impl Waiter {
    /// One that has waited for nothing yet.
    pub fn new() -> Self {
        Self {
            watch: Watch::new(),
            ready: Vec::new(),
        }
    }

    /// Waits for the peer, or till `until`. `room` as the machine says.
    ///
    /// # Errors
    ///
    /// Those of the reactor.
    pub async fn wait(
        &mut self,
        link: &mut Link,
        room: usize,
        until: Option<Instant>,
    ) -> io::Result<()> {
        let [input, output] = link.wants(room);
        let input = input.map(|(fd, flags)| (Name::Input, fd, flags));
        let output = output.map(|(fd, flags)| (Name::Output, fd, flags));
        self.ready.clear();
        let wants = input.into_iter().chain(output);
        self.watch.wait(wants, until, &mut self.ready).await?;
        if self.ready.contains(&Name::Output) {
            link.unblock();
        }
        Ok(())
    }

    /// Lets other tasks of the thread, and the reactor, have a turn.
    pub async fn yield_now(&self) {
        crate::serve::yield_now().await;
    }
}
