//! A coding agent that speaks the Agent Client Protocol (ACP), as one pure, synchronous state
//! machine.
//!
//! Nothing here does IO, reads a clock, draws a random number or spawns: bytes, news and time come
//! in as [`Machine`] inputs, and everything that must happen comes out as effects, all plain data.
//! The crate is `no_std`; two thin runtimes (`reasonix-smol`, `reasonix-blocking`) drive it.
//!
//! | layer | what lives there |
//! | --- | --- |
//! | `wire` | frames, one scan a frame, JSON-RPC, ids, open requests both ways, SSE |
//! | `permission` | postures, the ceiling, grants: one pure decision |
//! | `protocol` | ACP v1: own schema types, `AgentSide` and its mirror `ClientSide` |
//! | `mcp` | MCP servers: handshake, tools, calls, over stdio, Streamable HTTP and SSE |
//! | `model` | OpenAI-compatible chat completions, retry decisions, the scripted model |
//! | `tools` | the built-in tools: arguments → calls → result text, diff, locations |
//! | `engine` | the agent loop: model → tools → model → stop |
//! | `store` | what is written when, and what is recovered from any beginning of it |
//! | `agent` | all of it as one machine: what the runtimes drive |
//!
//! Each layer is a cargo feature that turns on the layers below it. An embedder with an engine of
//! its own takes `protocol` alone (`default-features = false, features = ["protocol"]`).
//!
//! Meant to be built on are `agent`, `call`, `error`, `ids`, `limits`, `machine`, `protocol`, `reach`,
//! `secret`, `settings` and `time`, with `tools::External` and `model::Script`. The other modules are
//! public for the packages beside this one, and change with these. `examples/host.rs` is a whole host.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod call;
pub mod error;
pub mod ids;
pub mod limits;
pub mod link;
pub mod machine;
pub mod reach;
pub mod secret;
pub mod settings;
pub mod shown;
pub mod time;

#[cfg(feature = "wire")]
pub mod wire;

#[cfg(feature = "permission")]
pub mod permission;

#[cfg(feature = "protocol")]
pub mod protocol;

#[cfg(feature = "mcp")]
pub mod mcp;

#[cfg(feature = "model")]
pub mod model;

#[cfg(feature = "tools")]
pub mod tools;

#[cfg(feature = "engine")]
pub mod engine;

#[cfg(feature = "store")]
pub mod store;

#[cfg(feature = "agent")]
pub mod agent;

pub use machine::{Machine, Next, Source};
