//! The one trait of this crate: what a driver drives.

use crate::ids::CallId;
use crate::time::{Deadline, Instant};

/// A pure, synchronous state machine: inputs in, effects out, time as an argument.
///
/// The methods are of three kinds. `handle_*` take what the world did; they cannot fail, since a
/// bad peer is answered by effects and late news are ignored. [`poll_effect`](Self::poll_effect)
/// gives what the world must do. [`room`](Self::room) says how much more the machine will take.
///
/// A driver is one loop: drain `poll_effect` to [`Next::Wait`], wait for bytes (at most `room`),
/// news of a call or the deadline, feed what came, repeat. `docs/driving.md` is the contract.
pub trait Machine {
    /// What the world did.
    type Input<'a>;
    /// What the world must do.
    type Effect<'a>
    where
        Self: 'a;

    /// Takes one input. Time that runs backwards is read as standing still.
    fn handle_input(&mut self, now: Instant, input: Self::Input<'_>);

    /// Takes the passing of time. Early, late or twice is harmless.
    fn handle_timeout(&mut self, now: Instant);

    /// The next thing to do. Frames that wait are processed here, one at a time and only when no
    /// effect is queued, so that the way the input was cut into pieces cannot matter.
    fn poll_effect(&mut self) -> Next<Self::Effect<'_>>;

    /// How many bytes the machine will take now from `source`; a driver reads no more than that.
    /// 0 means: do not read. More may follow after any input or timeout. What a driver feeds beyond it
    /// is taken all the same, and is the one thing that makes memory grow.
    #[must_use]
    fn room(&self, source: Source) -> usize;
}

/// One answer of the drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next<E> {
    /// Do this, in order, then ask again.
    Do(E),
    /// Nothing is left to do. Only now may the driver sleep, and at most until the deadline:
    /// it is part of the proof that the queue is empty, so no driver can sleep past queued work.
    Wait(Option<Deadline>),
}

/// Where bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The other end of the protocol connection.
    Peer,
    /// A call: the body of an HTTP answer, the output of a process.
    Call(CallId),
}
