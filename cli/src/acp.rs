//! `acp`: serves a client on standard input and output. Nothing else reaches standard output.

use reasonix_core::agent::{Agent, Config};

use crate::Runtime;
use crate::exit::{Exit, Failure};
use crate::host;

/// Serves until the client is done.
pub fn serve(runtime: Runtime, config: Config) -> Result<Exit, Failure> {
    host::serve_stdio(runtime, Agent::new(config)).map_err(Failure::failed)?;
    Ok(Exit::Ok)
}
