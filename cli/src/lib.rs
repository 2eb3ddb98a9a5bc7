//! The command line, for both binaries: they differ in the runtime only.
//!
//! | module | what lives there |
//! | --- | --- |
//! | `flags` | what was typed, and what it means |
//! | `acp` | serving an editor on standard input and output |
//! | `turn`, `run` | one turn in the terminal |
//! | `demo` | a turn on a scripted model, offline |
//! | `sessions` | what was said and done before |
//! | `mcp` | the MCP servers of a folder |
//! | `setup` | connecting a model |
//! | `doctor` | what keeps the agent from working |
//! | `render` | updates as styled text |
//! | `host` | what the system is and what is configured |

mod acp;
mod demo;
mod doctor;
mod exit;
mod flags;
mod host;
mod logging;
mod mcp;
mod out;
mod render;
mod run;
mod sessions;
mod setup;
mod terminal;
mod turn;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Command, CommandFactory as _, FromArgMatches as _};

use exit::{Exit, Failure};
use flags::invocation::Invocation;
use flags::low::LowArgs;

/// What does the IO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// async-io, one thread and a pool for what blocks.
    #[cfg(feature = "smol")]
    Smol,
    /// Plain threads.
    Blocking,
}

impl Runtime {
    /// The name of the program on it.
    const fn program(self) -> &'static str {
        match self {
            #[cfg(feature = "smol")]
            Self::Smol => "reasonix",
            Self::Blocking => "reasonix-blocking",
        }
    }
}

/// The whole program, from its command line to its exit code.
pub fn main(runtime: Runtime) -> ExitCode {
    let args = command(runtime)
        .try_get_matches()
        .and_then(|matches| LowArgs::from_arg_matches(&matches));
    let args = match args {
        Ok(args) => args,
        Err(error) => {
            // Help on a closed pipe is no fault.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match start(runtime, args) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let text = logging::redacted(failure.to_string());
            let text = render::text::safe(&text);
            out::warn(format_args!("{}: {text}", runtime.program()));
            failure.exit.into()
        }
    }
}

fn start(runtime: Runtime, args: LowArgs) -> Result<Exit, Failure> {
    if let Err(error) = logging::start(args.log_file.as_deref(), args.verbose) {
        let file = args.log_file.unwrap_or_default();
        return Err(Failure::usage(format!(
            "--log-file {}: {error}",
            file.display()
        )));
    }
    match Invocation::new(args)? {
        Invocation::Acp(config) => acp::serve(runtime, *config),
        Invocation::Run(plan) => run::run(runtime, *plan),
        Invocation::Demo(args) => demo::demo(runtime, args),
        Invocation::Sessions(plan) => sessions::sessions(runtime, *plan),
        Invocation::Mcp(plan) => mcp::mcp(&plan),
        Invocation::Setup { args, home } => setup::setup(&args, &home),
        Invocation::Doctor(plan) => doctor::doctor(runtime, &plan),
        Invocation::Completions(shell) => {
            let mut text = Vec::new();
            let mut command = command(runtime);
            clap_complete::generate(shell, &mut command, runtime.program(), &mut text);
            Ok(printed(&text))
        }
        Invocation::Man => Ok(printed(&manual(runtime))),
    }
}

fn command(runtime: Runtime) -> Command {
    LowArgs::command().name(runtime.program())
}

/// The manual: a page for the program and one for each command.
fn manual(runtime: Runtime) -> Vec<u8> {
    let mut text = Vec::new();
    let mut command = command(runtime);
    command.build();
    for page in with_all_beneath(&command) {
        let name = page.get_bin_name().unwrap_or_default().replace(' ', "-");
        let page = match name.is_empty() {
            true => page,
            false => page.name(name),
        };
        clap_mangen::Man::new(page)
            .render(&mut text)
            .expect("a vector takes all that is written");
    }
    text
}

fn with_all_beneath(command: &Command) -> Vec<Command> {
    let beneath = command.get_subcommands().flat_map(with_all_beneath);
    std::iter::once(command.clone()).chain(beneath).collect()
}

/// Writes `text` to standard output; a reader that has seen enough is no fault.
fn printed(text: &[u8]) -> Exit {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text).and_then(|()| out.flush());
    Exit::Ok
}
