//! The Agent Client Protocol, version 1: own schema types, the agent's side of a connection and its
//! mirror. Knows nothing of models and tools.
//!
//! An embedder with an engine of its own drives an [`AgentSide`]: it feeds bytes
//! ([`PeerInput`]), sends what comes out ([`SideEffect::Transmit`]), and acts on
//! [`AgentEvent`]s by commands on the side, its sessions and its turns. A client does the same with
//! a [`ClientSide`].

pub mod agent_side;
pub mod client_side;
mod concerns;
mod events;
mod gates;
pub mod methods;
mod output;

pub mod schema;
mod slab;

pub mod states;

pub use agent_side::{AgentSide, ReplayMut, SessionMut, TurnMut};
pub use client_side::ClientSide;
pub use events::{AgentEvent, ClientEvent, CloseReason, PeerInput, SideEffect, TextKind};
pub use gates::{Gates, Offers};
pub use methods::{
    AgentAnswer, AgentMethod, Asked, ClientAnswer, ClientMethod, Method, Opens, Vendor,
};

#[cfg(test)]
mod tests;
