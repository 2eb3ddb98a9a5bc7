//! `reasonix-blocking`: the agent on plain threads.

use std::process::ExitCode;

fn main() -> ExitCode {
    reasonix_cli::main(reasonix_cli::Runtime::Blocking)
}
