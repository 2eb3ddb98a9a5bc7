//! What was typed, put together with what is configured: complete, checked, ready to run.

use std::env;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser as _;
use clap_complete::Shell;
use reasonix_core::agent::Config;
use reasonix_core::agent::models::SCRIPT;
use reasonix_core::model::Script;
use reasonix_core::settings::Settings;

use super::low::{
    AcpArgs, AcpThen, AgentArgs, DemoArgs, DoctorArgs, LowArgs, LowCommand, McpCommand, RunArgs,
    SessionsCommand, SetupArgs,
};
use super::models;
use crate::doctor::editors::Editor;
use crate::exit::Failure;
use crate::{host, logging};

/// What is to be done.
pub enum Invocation {
    /// Serve a client on standard input and output.
    Acp(Box<Config>),
    /// One turn in the terminal.
    Run(Box<RunPlan>),
    /// The demonstration.
    Demo(DemoArgs),
    /// Conversations that were had.
    Sessions(Box<SessionsPlan>),
    /// MCP servers of a folder.
    Mcp(Box<McpPlan>),
    /// Connect a model.
    Setup {
        /// What is known already.
        args: SetupArgs,
        /// The agent's directory.
        home: PathBuf,
    },
    /// What keeps the agent from working.
    Doctor(Box<DoctorPlan>),
    /// Completions for a shell.
    Completions(Shell),
    /// The manual page.
    Man,
}

/// One turn.
pub struct RunPlan {
    /// What the agent is made with.
    pub config: Config,
    /// Where it works: absolute.
    pub cwd: String,
    /// What it is asked.
    pub prompt: String,
    /// The session that goes on; none: a new one.
    pub goes_on: Option<Which>,
    /// What a session that goes on is set to, by the ids of its options.
    pub set: Vec<(&'static str, String)>,
    /// How the turn is shown.
    pub show: Show,
}

/// A session, as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The newest of the folder.
    Newest,
    /// By its id or the beginning of it; not checked yet.
    Id(String),
}

/// Something about stored sessions.
pub struct SessionsPlan {
    /// What the agent that is asked is made with.
    pub config: Config,
    /// The agent's directory.
    pub home: String,
    /// The folder whose sessions are meant: absolute.
    pub cwd: String,
    /// What is to be done.
    pub task: SessionsTask,
}

/// What is to be done with stored sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionsTask {
    /// List them.
    List {
        /// Of all folders.
        all: bool,
        /// For scripts.
        json: bool,
    },
    /// Print one.
    Show {
        /// Which.
        which: Which,
        /// For scripts.
        json: bool,
    },
    /// Delete some.
    Delete {
        /// Their ids or beginnings of them.
        ids: Vec<String>,
        /// Without asking.
        yes: bool,
    },
}

/// Something about MCP servers.
pub struct McpPlan {
    /// The agent's directory.
    pub home: PathBuf,
    /// What is configured.
    pub settings: Settings,
    /// The project's folder: absolute, links resolved.
    pub cwd: String,
    /// What is to be done.
    pub task: McpTask,
}

/// What is to be done with MCP servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpTask {
    /// List them.
    List {
        /// For scripts.
        json: bool,
    },
    /// Try one out.
    Test {
        /// Its name.
        name: String,
        /// For scripts.
        json: bool,
    },
    /// Let some of the project's be started.
    Approve {
        /// Their names.
        names: Vec<String>,
        /// For scripts.
        json: bool,
    },
    /// Take that back.
    Revoke {
        /// Their names.
        names: Vec<String>,
        /// For scripts.
        json: bool,
    },
}

/// What is to be looked at.
pub struct DoctorPlan {
    /// What an agent with these flags is made with.
    pub config: Config,
    /// The agent's directory.
    pub home: Option<PathBuf>,
    /// The folder a session is opened in: absolute.
    pub cwd: String,
    /// The editor that is meant.
    pub editor: Option<Editor>,
    /// Ask no provider.
    pub offline: bool,
    /// For scripts.
    pub json: bool,
    /// Flags for `acp`, checked.
    pub acp: Vec<String>,
}

/// How a turn is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// For people.
    All,
    /// The agent's message alone.
    Answer,
    /// One JSON object a line.
    Json,
}

/// Longest prompt taken from standard input, bytes.
const MAX_PROMPT: u64 = 8 << 20;

impl Invocation {
    /// What `args` mean here and now. Reads configuration, scripts and a prompt; starts nothing.
    pub fn new(args: LowArgs) -> Result<Self, Failure> {
        Ok(match args.command {
            LowCommand::Acp(acp) => match acp.then {
                Some(AcpThen::Setup(args)) => Self::setup(args)?,
                None => Self::Acp(Box::new(acp_config(&acp.agent)?)),
            },
            LowCommand::Run(run) => Self::Run(Box::new(run_plan(&run)?)),
            LowCommand::Demo(demo) => Self::Demo(demo),
            LowCommand::Sessions(command) => Self::Sessions(Box::new(sessions_plan(command)?)),
            LowCommand::Mcp(command) => Self::Mcp(Box::new(mcp_plan(command)?)),
            LowCommand::Setup(args) => Self::setup(args)?,
            LowCommand::Doctor(doctor) => Self::Doctor(Box::new(doctor_plan(doctor)?)),
            LowCommand::Completions { shell } => Self::Completions(shell),
            LowCommand::Man => Self::Man,
        })
    }

    fn setup(args: SetupArgs) -> Result<Self, Failure> {
        let home = host::home().ok_or_else(|| {
            Failure::usage("there is no place for the configuration: set REASONIX_HOME or HOME")
        })?;
        Ok(Self::Setup { args, home })
    }
}

/// For `acp`: a bad configuration file is told to the client, so that editors can show it.
fn acp_config(args: &AgentArgs) -> Result<Config, Failure> {
    let settings = host::settings();
    config(args, settings)
}

fn run_plan(args: &RunArgs) -> Result<RunPlan, Failure> {
    let settings = host::settings();
    let scripted = args.agent.model.as_deref().is_some_and(is_script);
    if let (Some(fault), false) = (&settings.fault, scripted) {
        return Err(Failure::usage(fault.clone()));
    }
    let mut config = config(&args.agent, settings)?;
    // It has one turn: a server that is up only after that is of no use.
    config.limits.mcp_patience = Duration::from_secs(5);
    config.limits.mcp_listing = Duration::from_secs(10);
    let cwd = directory(args.cwd.as_deref())?;
    let prompt = match args.prompt.as_str() {
        "-" => from_stdin()?,
        text => text.to_owned(),
    };
    if prompt.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty"));
    }
    let show = match (args.json, args.quiet) {
        (true, _) => Show::Json,
        (false, true) => Show::Answer,
        (false, false) => Show::All,
    };
    let goes_on = match (&args.session, args.newest) {
        (Some(id), _) => Some(Which::Id(id.clone())),
        (None, true) => Some(Which::Newest),
        (None, false) => None,
    };
    Ok(RunPlan {
        set: set(&args.agent, &config),
        config,
        cwd,
        prompt,
        goes_on,
        show,
    })
}

/// What flags say about a session that has its own mind: only what was given.
fn set(args: &AgentArgs, config: &Config) -> Vec<(&'static str, String)> {
    let model = match &config.script {
        Some(_) => Some(SCRIPT.into()),
        None => config.model.clone(),
    };
    let preset = args.preset().map(|preset| preset.name().into());
    let approval = args.permission_mode.map(|mode| mode.start.name().into());
    [
        ("model", model),
        ("agent_preset", preset),
        ("tool_approval", approval),
    ]
    .into_iter()
    .filter_map(|(id, value)| Some((id, value?)))
    .collect()
}

fn sessions_plan(command: SessionsCommand) -> Result<SessionsPlan, Failure> {
    let config = host::config()?;
    let home = config.host.home.clone().ok_or_else(|| {
        Failure::usage("there is no place where sessions could be: set REASONIX_HOME or HOME")
    })?;
    let (folder, task) = match command {
        SessionsCommand::List { cwd, all, json } => (cwd, SessionsTask::List { all, json }),
        SessionsCommand::Show { id, json } => {
            let which = match id.as_str() {
                "last" => Which::Newest,
                _ => Which::Id(id),
            };
            (None, SessionsTask::Show { which, json })
        }
        SessionsCommand::Delete { ids, yes } => (None, SessionsTask::Delete { ids, yes }),
    };
    let cwd = match (folder, &task) {
        // Sessions outlive their folders.
        (Some(folder), _) if !folder.exists() => std::path::absolute(&folder)
            .unwrap_or(folder)
            .to_string_lossy()
            .into_owned(),
        (folder, SessionsTask::List { all: false, .. })
        | (
            folder,
            SessionsTask::Show {
                which: Which::Newest,
                ..
            },
        ) => directory(folder.as_deref())?,
        // No folder is meant, and the current one need not be usable.
        (
            _,
            SessionsTask::List { all: true, .. }
            | SessionsTask::Show {
                which: Which::Id(_),
                ..
            }
            | SessionsTask::Delete { .. },
        ) => String::new(),
    };
    Ok(SessionsPlan {
        config,
        home,
        cwd,
        task,
    })
}

fn mcp_plan(command: McpCommand) -> Result<McpPlan, Failure> {
    let home = host::home().ok_or_else(|| {
        Failure::usage("there is no place for the configuration: set REASONIX_HOME or HOME")
    })?;
    let settings = host::settings();
    logging::hide(&settings);
    let (at, task) = match command {
        McpCommand::List { at } => {
            let json = at.json;
            (at, McpTask::List { json })
        }
        McpCommand::Test { name, at } => {
            let json = at.json;
            (at, McpTask::Test { name, json })
        }
        McpCommand::Approve { names, at } => {
            let json = at.json;
            (at, McpTask::Approve { names, json })
        }
        McpCommand::Revoke { names, at } => {
            let json = at.json;
            (at, McpTask::Revoke { names, json })
        }
    };
    // As a session has it: links resolved.
    let cwd = match at.cwd {
        Some(cwd) => directory(Some(&cwd))?,
        None => directory(Some(Path::new(".")))?,
    };
    Ok(McpPlan {
        home,
        settings,
        cwd,
        task,
    })
}

fn doctor_plan(args: DoctorArgs) -> Result<DoctorPlan, Failure> {
    let line = ["reasonix".into(), "acp".into()];
    let low = LowArgs::try_parse_from(line.iter().chain(&args.acp))
        .map_err(|error| Failure::usage(format!("after `--`: {error}")))?;
    let LowCommand::Acp(AcpArgs { agent, then: None }) = low.command else {
        return Err(Failure::usage(
            "after `--` come flags of `acp`, and nothing else",
        ));
    };
    Ok(DoctorPlan {
        config: acp_config(&agent)?,
        home: host::home(),
        cwd: directory(None)?,
        editor: args.editor,
        offline: args.offline,
        json: args.json,
        acp: args.acp,
    })
}

fn config(args: &AgentArgs, settings: Settings) -> Result<Config, Failure> {
    logging::hide(&settings);
    let mut config = host::config()?;
    match args.model.as_deref() {
        None => {}
        Some(name) if is_script(name) => {
            config.script = Some(script(&name["script:".len()..])?);
        }
        // With a broken file nothing can be looked up; the client is told what is broken.
        Some(name) if settings.fault.is_some() => config.model = Some(name.into()),
        Some(name) => {
            let name = models::resolve(&settings, name)
                .map_err(|why| Failure::usage(format!("--model: {why}")))?;
            config.model = Some(name);
        }
    }
    config.settings = settings;
    config.permission_mode = args.permission_mode.unwrap_or_default();
    config.preset = args.preset().unwrap_or_default();
    config.max_steps = args.max_steps;
    config.ephemeral = args.ephemeral;
    config.workspace_only = args.workspace_only;
    config.sandbox = args.sandbox();
    config.web = args.web();
    Ok(config)
}

fn is_script(model: &str) -> bool {
    model.starts_with("script:")
}

/// The script in `file`, or which of its lines is wrong.
fn script(file: &str) -> Result<Script, Failure> {
    let text = fs::read_to_string(file)
        .map_err(|e| Failure::usage(format!("--model script:{file}: {e}")))?;
    Script::parse(&text).map_err(|e| Failure::usage(format!("--model script:{file}: {e}")))
}

/// The absolute path of the folder to work in.
fn directory(asked: Option<&Path>) -> Result<String, Failure> {
    let path = match asked {
        Some(path) => fs::canonicalize(path)
            .map_err(|e| Failure::usage(format!("--cwd {}: {e}", path.display())))?,
        None => env::current_dir()
            .map_err(|e| Failure::usage(format!("the current folder cannot be used: {e}")))?,
    };
    if !path.is_dir() {
        return Err(Failure::usage(format!(
            "--cwd {}: no folder",
            path.display()
        )));
    }
    match path.into_os_string().into_string() {
        Ok(path) => Ok(path),
        Err(path) => Err(Failure::usage(format!(
            "the folder {} has a name that is no text",
            path.display()
        ))),
    }
}

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    io::stdin()
        .lock()
        .take(MAX_PROMPT)
        .read_to_string(&mut text)
        .map_err(|e| Failure::usage(format!("the prompt could not be read: {e}")))?;
    Ok(text)
}
