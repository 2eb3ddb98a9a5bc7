//! `reasonix`: the agent on async-io.

use std::process::ExitCode;

fn main() -> ExitCode {
    reasonix_cli::main(reasonix_cli::Runtime::Smol)
}
