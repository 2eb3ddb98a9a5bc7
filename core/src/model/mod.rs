//! One answer of a model: the provider's dialect, its retries, and the scripted model. Knows
//! nothing of ACP and of tools.
//!
//! [`ModelRun`] is the machine: one answer with all its attempts, over HTTP or from a script. Its
//! parent starts the calls it asks for, hands it their news, and drains its events.
//!
//! | file | what lives there |
//! | --- | --- |
//! | `types` | messages, tool uses, answers, events |
//! | `fault` | what can go wrong, and what a refusal says |
//! | `endpoint` | where requests go, and how efforts are spelled there |
//! | `encode` | the request body, byte for byte stable |
//! | `chunk`, `calls`, `decode` | the provider's JSON, tool calls put together, one attempt's answer |
//! | `retry` | when to try again, decided purely |
//! | `run`, `http`, `body` | the machine, over HTTP: attempts and their streams |
//! | `price` | what tokens cost, exactly |
//! | `script`, `cursor`, `playback` | the scripted model: its file, a session in it, a run of it |

mod body;
mod calls;
mod chunk;
mod cursor;
mod decode;
mod encode;
mod endpoint;
mod fault;
mod http;
mod playback;
mod price;
mod retry;
mod run;
pub mod script;
mod types;

#[cfg(test)]
mod tests;

pub use endpoint::{Dialect, Endpoint};
pub use fault::{FaultKind, ModelFault};
pub use price::{Amount, Cost, Rate, Spend, Tariff, UsageSource};
pub use run::ModelRun;
pub use script::{Script, ScriptCursor, ScriptError};
pub use types::{
    Answer, ChatMessage, FinishReason, ModelCall, ModelEvent, Part, Text, ToolSpec, ToolUse, Usage,
};
