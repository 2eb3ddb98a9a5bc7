//! What this system is, what is configured on it, and the runtimes: the only place that knows
//! how they are called.

use std::io::{PipeReader, PipeWriter};
use std::path::PathBuf;

use reasonix_blocking::config;
use reasonix_core::agent::{Agent, Config};
use reasonix_core::settings::Settings;

use crate::Runtime;
use crate::exit::Failure;

/// The agent's own directory.
pub fn home() -> Option<PathBuf> {
    config::home()
}

/// What config.toml and .env say.
pub fn settings() -> Settings {
    config::settings(home().as_deref())
}

/// A configuration of an agent on this system, without settings.
pub fn config() -> Result<Config, Failure> {
    let seed = config::seed()
        .map_err(|e| Failure::failed(format!("the system gives no random bytes: {e}")))?;
    Ok(Config::new(seed, config::host()))
}

/// Runs an agent on standard input and output until its client is done.
pub fn serve_stdio(runtime: Runtime, agent: Agent) -> Result<(), String> {
    let _ = (runtime, agent);
    Err("not built in yet".into())
}

/// Runs an agent on two pipes until its client is done.
pub fn serve(
    runtime: Runtime,
    agent: Agent,
    input: PipeReader,
    output: PipeWriter,
) -> Result<(), String> {
    let _ = (runtime, agent, input, output);
    Err("not built in yet".into())
}
