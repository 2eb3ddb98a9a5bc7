//! What this system is, what is configured on it, and the runtimes: the only place that knows
//! how they are called.

use std::io::{PipeReader, PipeWriter};
use std::path::PathBuf;

use reasonix_blocking::{Stdio, config};
use reasonix_core::agent::{Agent, CloseReason, Config};
use reasonix_core::settings::Settings;

use crate::Runtime;
use crate::exit::Failure;
use crate::out::warn;

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
    let host = config::host();
    if let (Some(home), None) = (home(), &host.home) {
        warn(format_args!(
            "{} is no UTF-8 text: nothing is kept there. Set REASONIX_HOME to another folder.",
            home.display()
        ));
    }
    Ok(Config::new(seed, host))
}

/// Runs an agent on standard input and output until its client is done.
pub fn serve_stdio(runtime: Runtime, agent: Agent) -> Result<(), String> {
    on(runtime, agent, Stdio::process())
}

/// Runs an agent on two pipes until its client is done.
pub fn serve(
    runtime: Runtime,
    agent: Agent,
    input: PipeReader,
    output: PipeWriter,
) -> Result<(), String> {
    on(runtime, agent, Stdio::over(input.into(), output.into()))
}

fn on(runtime: Runtime, agent: Agent, io: Stdio) -> Result<(), String> {
    let ended = match runtime {
        #[cfg(feature = "smol")]
        Runtime::Smol => async_io::block_on(reasonix_smol::serve(agent, io)),
        Runtime::Blocking => reasonix_blocking::serve(agent, io),
    };
    match ended {
        Ok(CloseReason::Finished) => Ok(()),
        Ok(CloseReason::Gone) => Err("the client is gone".into()),
        Ok(CloseReason::Stalled) => Err("the client took nothing for too long".into()),
        Err(error) => Err(error.to_string()),
    }
}
