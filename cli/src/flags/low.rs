//! What was typed, checked for shape. Touches no file and knows no configuration.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use reasonix_core::agent::{PermissionMode, Preset, SandboxPolicy};

use crate::doctor::editors::Editor;

/// The protocol and the schema this program speaks, as `--version` says it.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (ACP v1, schema 1.20.0)");

/// The command line.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "reasonix",
    version = VERSION,
    about = "A coding agent that any editor drives over the Agent Client Protocol",
    after_help = "New here? `reasonix demo` shows a whole turn offline; `reasonix setup` connects a model.",
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct LowArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: LowCommand,

    /// Write diagnostics to this file (appended) instead of standard error
    #[arg(long, global = true, value_name = "FILE", help_heading = "Diagnostics")]
    pub log_file: Option<PathBuf>,

    /// Say more in the diagnostics (twice: every step)
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Diagnostics")]
    pub verbose: u8,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum LowCommand {
    /// Serve an editor: the protocol on standard input and output
    Acp(AcpArgs),
    /// Run one turn in the terminal
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// See a whole turn, offline and without a key, in a temporary folder
    Demo(DemoArgs),
    /// List, read and delete the conversations that were had here
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// List the MCP servers of this folder, try one out, and say which may be started
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Connect a model: writes config.toml and .env, and tests the connection
    #[command(after_help = SETUP_HELP)]
    Setup(SetupArgs),
    /// Look for what keeps the agent from working here or in an editor, and say what to do
    Doctor(DoctorArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff)
    Man,
}

/// `acp`.
#[derive(Clone, Debug, Args)]
#[command(subcommand_negates_reqs = true)]
pub struct AcpArgs {
    /// The agent's flags.
    #[command(flatten)]
    pub agent: AgentArgs,
    /// What a client appended: the `args` of the terminal authentication method.
    #[command(subcommand)]
    pub then: Option<AcpThen>,
}

/// What a client may append to `acp`.
#[derive(Clone, Debug, Subcommand)]
pub enum AcpThen {
    /// Connect a model instead of serving (what clients append to sign in)
    Setup(SetupArgs),
}

/// Flags of everything that runs an agent.
#[derive(Clone, Debug, Default, Args)]
pub struct AgentArgs {
    /// The model: `provider/model`, a unique model id or alias, or `script:FILE`
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// How much of the tools and instructions the model gets: light, balanced or delivery
    #[arg(long, value_name = "PRESET", value_parser = ["light", "balanced", "delivery"], hide_possible_values = true)]
    pub preset: Option<String>,

    /// Older name of --preset: economy, balanced or delivery
    #[arg(long, value_name = "PROFILE", value_parser = ["economy", "balanced", "delivery"], hide_possible_values = true, conflicts_with = "preset")]
    pub profile: Option<String>,

    /// Where sessions start, and a ceiling that nothing can raise: read-only, dontAsk,
    /// manual (or ask), auto, acceptEdits or bypassPermissions
    #[arg(long, value_name = "MODE", value_parser = permission_mode)]
    pub permission_mode: Option<PermissionMode>,

    /// Model calls in one turn, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,

    /// Let sessions have their working directory and no other folder
    #[arg(long)]
    pub workspace_only: bool,

    /// Keep commands to the session's folders where the system can (auto), or open no session where
    /// it cannot (enforce)
    #[arg(long, value_name = "MODE", value_parser = ["auto", "enforce"], hide_possible_values = true)]
    pub sandbox_bash: Option<String>,

    /// The same as --sandbox-bash enforce
    #[arg(long)]
    pub require_sandbox: bool,

    /// Whether commands reach the network: on, off, or auto, which is on
    #[arg(long, value_name = "WHETHER", value_parser = ["auto", "on", "off"], hide_possible_values = true)]
    pub sandbox_network: Option<String>,

    /// Whether the model has tools that read the web: on or off; on, unless --sandbox-network is off
    #[arg(long, value_name = "WHETHER", value_parser = ["on", "off"], hide_possible_values = true)]
    pub web: Option<String>,

    /// Keep sessions in memory only: nothing is written beneath the agent's home
    #[arg(long)]
    pub ephemeral: bool,
}

impl AgentArgs {
    /// What the flags ask of the confinement of commands.
    pub fn sandbox(&self) -> SandboxPolicy {
        let mut policy = SandboxPolicy::default();
        policy.enforce = self.require_sandbox || self.sandbox_bash.as_deref() == Some("enforce");
        policy.no_network = self.sandbox_network.as_deref() == Some("off");
        policy
    }

    /// Whether the model has tools that read the web. Who closes the network to commands does not
    /// want it open beside them, unless they say so.
    pub fn web(&self) -> bool {
        match self.web.as_deref() {
            Some(given) => given == "on",
            None => self.sandbox_network.as_deref() != Some("off"),
        }
    }

    /// The preset that `--preset` or `--profile` names.
    pub fn preset(&self) -> Option<Preset> {
        let name = self.preset.as_deref().or(self.profile.as_deref())?;
        Preset::named(name)
    }
}

/// `run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// What the agent is asked to do; `-` reads it from standard input
    pub prompt: String,

    /// The agent's flags.
    #[command(flatten)]
    pub agent: AgentArgs,

    /// Work in this folder
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// Go on with the newest conversation of this folder
    #[arg(long = "continue", conflicts_with_all = ["session", "ephemeral"])]
    pub newest: bool,

    /// Go on with this conversation: an id, or the beginning of one, as `sessions list` shows it
    #[arg(long, value_name = "ID", conflicts_with = "ephemeral")]
    pub session: Option<String>,

    /// Print one JSON object a line, for scripts
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,

    /// Print the agent's answer only
    #[arg(short, long)]
    pub quiet: bool,
}

/// `sessions`.
#[derive(Clone, Debug, Subcommand)]
pub enum SessionsCommand {
    /// List those of this folder, newest first
    List {
        /// Those of this folder instead
        #[arg(short = 'C', long, value_name = "DIR", conflicts_with = "all")]
        cwd: Option<PathBuf>,

        /// Those of all folders
        #[arg(short, long)]
        all: bool,

        /// Print one JSON object a line, as the protocol has it
        #[arg(long)]
        json: bool,
    },
    /// Print one as it was seen; it may be open elsewhere, and no key is needed
    Show {
        /// Its id, or the beginning of it; `last` is the newest of this folder
        id: String,

        /// Print its records as they are stored, one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Delete some for good, with all that is stored of them
    Delete {
        /// Their ids, or the beginnings of them
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,

        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

/// `mcp`.
#[derive(Clone, Debug, Subcommand)]
pub enum McpCommand {
    /// List those of config.toml and of the project's .mcp.json
    List {
        /// Where and how.
        #[command(flatten)]
        at: McpArgs,
    },
    /// Start one outside of any session: what it offers, or why it cannot be used
    #[command(after_help = MCP_TEST_HELP)]
    Test {
        /// Its name
        name: String,

        /// Where and how.
        #[command(flatten)]
        at: McpArgs,
    },
    /// Let sessions in this folder start servers of its .mcp.json, as they stand there now
    Approve {
        /// Their names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,

        /// Where and how.
        #[command(flatten)]
        at: McpArgs,
    },
    /// Take that back
    Revoke {
        /// Their names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,

        /// Where and how.
        #[command(flatten)]
        at: McpArgs,
    },
}

/// Flags of all commands of `mcp`.
#[derive(Clone, Debug, Args)]
pub struct McpArgs {
    /// The project's folder instead of this one
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// Print one JSON object a line, for scripts
    #[arg(long)]
    pub json: bool,
}

/// How `mcp test` ends.
const MCP_TEST_HELP: &str = "\
Exit code:
  0  it is ready
  1  it cannot be used
  2  there is no server of this name, or a file makes no sense
  3  it comes with the project and was not approved";

/// `demo`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct DemoArgs {
    /// Allow every step without asking
    #[arg(short, long)]
    pub yes: bool,

    /// Show every frame of the protocol, both ways
    #[arg(long)]
    pub frames: bool,

    /// Keep the temporary folder
    #[arg(long)]
    pub keep: bool,
}

/// `doctor`.
#[derive(Clone, Debug, Default, Args)]
pub struct DoctorArgs {
    /// Show what this editor is told, and begin with the agent as it does
    #[arg(long, value_name = "EDITOR")]
    pub editor: Option<Editor>,

    /// Ask no provider
    #[arg(long)]
    pub offline: bool,

    /// Print one JSON object, for scripts
    #[arg(long)]
    pub json: bool,

    /// Flags that the editor gives to `acp`
    #[arg(last = true, value_name = "FLAGS")]
    pub acp: Vec<String>,
}

/// `setup`.
#[derive(Clone, Debug, Default, Args)]
pub struct SetupArgs {
    /// The provider's name in the configuration: deepseek, openai, openrouter, local, or your own
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,

    /// Address of its OpenAI-compatible API, before `/chat/completions`
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// The model's id at the provider
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,

    /// Take the key from this environment variable
    #[arg(long, value_name = "NAME", conflicts_with_all = ["key_stdin", "no_key"])]
    pub from_env: Option<String>,

    /// Take the key from the first line of standard input
    #[arg(long, conflicts_with = "no_key")]
    pub key_stdin: bool,

    /// The provider needs no key
    #[arg(long)]
    pub no_key: bool,

    /// Ask nothing, on a terminal either: what is missing is an error
    #[arg(long)]
    pub non_interactive: bool,

    /// Do not send a request to test the connection
    #[arg(long)]
    pub no_test: bool,

    /// Keep the default model that is configured
    #[arg(long)]
    pub keep_default: bool,
}

/// How `setup` ends, and where keys come from.
const SETUP_HELP: &str = "\
A key is never an argument, where others could see it: it is typed, read from standard input
(--key-stdin), or copied from a variable (--from-env).

Without a terminal, and with --non-interactive, nothing is asked:
  reasonix setup --non-interactive --provider deepseek --from-env DEEPSEEK_API_KEY
  reasonix setup --non-interactive --provider deepseek --key-stdin < key-file

Exit code:
  0  it is written, and the connection works (or --no-test)
  1  it is written and the test failed, or it cannot be written
  2  something is missing or makes no sense; nothing is written";

/// What `run` prints and how it ends.
const RUN_HELP: &str = "\
Exit code:
  0    the turn ended
  1    it failed: provider, connection, configuration of the model
  2    flags or files that make no sense; nothing was started
  3    something was denied (by you, or with nobody to ask), or the model refused
  4    it was cut short: the model's length limit, or --max-steps
  130  cancelled with Ctrl-C (once cancels the turn, twice quits)

Without a terminal there is nobody to ask: what needs approval is denied, unless
--permission-mode allows it.

With --json every line is an object with a `type`:
  session     {sessionId, cwd, resumed?}: resumed is true if it goes on
  update      {update}: a session update exactly as the protocol has it
  permission  {toolCallId, title, answer}: answer is allow_once, allow_always,
              reject_once or cancelled; why is there if nobody was asked
  end         {stopReason, denied, exit, sessionId?}
  error       {message, code?, exit, sessionId?}; the last line is an `end` or an `error`

A conversation that goes on keeps what it was set to: --model, --preset and --permission-mode
change that if they are given.";

/// A spelling of `--permission-mode`.
fn permission_mode(text: &str) -> Result<PermissionMode, String> {
    PermissionMode::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<LowArgs, String> {
        LowArgs::try_parse_from(line.split_whitespace()).map_err(|e| e.to_string())
    }

    #[test]
    fn the_definitions_are_sound() {
        LowArgs::command().debug_assert();
    }

    #[test]
    fn every_spelling_of_the_permission_mode_is_taken() {
        let spellings = [
            "read-only",
            "dontAsk",
            "manual",
            "ask",
            "acceptEdits",
            "auto",
            "bypassPermissions",
        ];
        for name in spellings {
            let mode = PermissionMode::parse(name).expect(name);
            let args = parse(&format!("reasonix acp --permission-mode {name}")).expect(name);
            let LowCommand::Acp(acp) = args.command else {
                panic!("acp")
            };
            assert_eq!(acp.agent.permission_mode, Some(mode), "{name}");
        }
    }

    #[test]
    fn plan_is_refused_with_the_reason() {
        let error = parse("reasonix acp --permission-mode plan").expect_err("plan");
        assert!(error.contains("read-only"), "{error}");
    }

    #[test]
    fn setup_can_be_appended_to_acp() {
        let args = parse("reasonix acp --model a/b setup").expect("setup");
        let LowCommand::Acp(acp) = args.command else {
            panic!("acp")
        };
        assert!(matches!(acp.then, Some(AcpThen::Setup(_))));
    }

    #[test]
    fn economy_is_light_and_one_name_is_enough() {
        let args = parse("reasonix acp --profile economy").expect("economy");
        let LowCommand::Acp(acp) = args.command else {
            panic!("acp")
        };
        assert_eq!(acp.agent.preset(), Some(Preset::Light));
        assert!(parse("reasonix acp --profile economy --preset light").is_err());
        assert!(parse("reasonix acp --preset economy").is_err());
    }

    #[test]
    fn the_web_is_off_where_the_network_is_unless_it_is_asked_for() {
        for (flags, web) in [
            ("", true),
            ("--web on", true),
            ("--web off", false),
            ("--sandbox-network auto", true),
            ("--sandbox-network off", false),
            ("--sandbox-network off --web on", true),
        ] {
            let args = parse(&format!("reasonix acp {flags}")).expect(flags);
            let LowCommand::Acp(acp) = args.command else {
                panic!("acp")
            };
            assert_eq!(acp.agent.web(), web, "{flags}");
        }
    }

    #[test]
    fn nothing_unknown_is_taken() {
        for line in [
            "reasonix",
            "reasonix acp --nope",
            "reasonix acp --max-steps 0",
            "reasonix acp surplus",
            "reasonix acp --web",
            "reasonix run --web maybe x",
            "reasonix run",
            "reasonix setup --no-key --key-stdin",
            "reasonix run --continue --session a x",
            "reasonix run --continue --ephemeral x",
            "reasonix run --session a --ephemeral x",
            "reasonix sessions",
            "reasonix sessions list --all --cwd /",
            "reasonix sessions show",
            "reasonix sessions delete",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
