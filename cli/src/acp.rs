//! `acp`: serves a client on standard input and output. Nothing else reaches standard output.

use std::io::{self, IsTerminal as _};

use reasonix_core::agent::{Agent, Config};

use crate::Runtime;
use crate::exit::{Exit, Failure};
use crate::host;
use crate::out::warn;

/// Serves until the client is done.
pub fn serve(runtime: Runtime, config: Config) -> Result<Exit, Failure> {
    if io::stdin().is_terminal() {
        let hint = "this is for editors, which speak ACP on standard input and output; \
                    for the terminal there is `run` (Ctrl-C ends this)";
        warn(format_args!("{}: {hint}", runtime.program()));
    }
    host::serve_stdio(runtime, Agent::new(config)).map_err(Failure::failed)?;
    Ok(Exit::Ok)
}
