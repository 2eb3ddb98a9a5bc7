//! Conformance of reasonix: a client, a world and a clock that are data, laws that every exchange
//! keeps, scripted providers, and real programs on pipes. Knows nothing of the inside of the agent.

pub mod chaos;
pub mod court;
pub mod disk;
pub mod editor;
pub mod inbox;
pub mod json;
pub mod laws;
pub mod mcp;
pub mod official;
pub mod process;
pub mod provider;
pub mod sense;
pub mod sim;
pub mod world;
