//! `doctor`: looks at everything that can keep the agent from working, and says what to do about it. With `--editor` it
//! shows how that editor is told of the agent, and does with the agent what that editor does first.
//!
//! | module | what is looked at |
//! | --- | --- |
//! | `files` | the home, config.toml, .env |
//! | `provider` | the selected model, and whether its provider answers |
//! | `editors` | what each editor is told, and how it begins |
//! | `handshake` | the program itself, spoken to as an editor does |

pub mod editors;
mod files;
mod handshake;
mod provider;

use std::path::Path;

use anstyle::Style;
use reasonix_blocking::ops::confine;
use reasonix_core::settings::{Sandboxing, Settings};
use serde::Serialize;

use crate::Runtime;
use crate::exit::{Exit, Failure};
use crate::flags::invocation::DoctorPlan;
use crate::flags::low::VERSION;
use crate::logging::redacted;
use crate::out::say;
use crate::render::styles;
use crate::render::text::safe;

/// How a look at something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    /// Well.
    Ok,
    /// It works; a person may want to know.
    Note,
    /// It does not work.
    Problem,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    /// What was looked at.
    what: &'static str,
    level: Level,
    text: String,
    /// What a person can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    todo: Option<String>,
}

impl Finding {
    fn ok(what: &'static str, text: impl Into<String>) -> Self {
        Self::new(what, Level::Ok, text, None)
    }

    fn note(what: &'static str, text: impl Into<String>, todo: impl Into<String>) -> Self {
        Self::new(what, Level::Note, text, Some(todo.into()))
    }

    fn problem(what: &'static str, text: impl Into<String>, todo: impl Into<String>) -> Self {
        Self::new(what, Level::Problem, text, Some(todo.into()))
    }

    /// Keys are redacted, and nothing in it moves a terminal's cursor.
    fn new(
        what: &'static str,
        level: Level,
        text: impl Into<String>,
        todo: Option<String>,
    ) -> Self {
        let shown = |text: String| safe(&redacted(text)).into_owned();
        Self {
            what,
            level,
            text: shown(text.into()),
            todo: todo.filter(|todo| !todo.is_empty()).map(shown),
        }
    }
}

/// `--json`: everything at once.
#[derive(Serialize)]
struct Report<'a> {
    version: &'a str,
    program: &'a str,
    ok: bool,
    findings: &'a [Finding],
    #[serde(skip_serializing_if = "Option::is_none")]
    editor: Option<Told<'a>>,
}

/// How an editor is told of the agent.
#[derive(Serialize)]
struct Told<'a> {
    name: &'a str,
    file: &'a str,
    snippet: String,
}

/// Looks at everything. Failed if there is a problem.
pub fn doctor(runtime: Runtime, plan: &DoctorPlan) -> Result<Exit, Failure> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::failed(format!("this program cannot be found again: {e}")))?;
    let mut findings = vec![Finding::ok(
        "program",
        format!("{} {VERSION}, {}", runtime.program(), program.display()),
    )];
    findings.extend(files::look(plan.home.as_deref(), &plan.config.settings));
    findings.extend(provider::look(&plan.config, plan.offline));
    findings.push(confinement());
    findings.extend(writable(&plan.config.settings));
    findings.extend(handshake::look(&program, plan));

    let ok = findings.iter().all(|it| it.level != Level::Problem);
    let told = plan.editor.map(|editor| Told {
        name: editor.name(),
        file: editor.facts().file,
        snippet: editors::snippet(editor, &program, &plan.acp),
    });
    match plan.json {
        true => json(&Report {
            version: VERSION,
            program: runtime.program(),
            ok,
            findings: &findings,
            editor: told,
        }),
        false => print(&findings, told.as_ref(), &program),
    }
    Ok(match ok {
        true => Exit::Ok,
        false => Exit::Failed,
    })
}

/// What keeps commands in their folders here.
fn confinement() -> Finding {
    match confine::level() {
        Sandboxing::Landlock { abi } => Finding::ok(
            "confinement",
            format!("commands can be confined: Landlock, level {abi}"),
        ),
        Sandboxing::None => Finding::note(
            "confinement",
            "commands cannot be confined on this system: what is allowed runs as you",
            "With --require-sandbox the agent does not work where that is so",
        ),
    }
}

/// The folders that commands can write in beside those of their session.
fn writable(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !settings.writable.is_empty() {
        let folders = settings.writable.join(", ");
        findings.push(Finding::ok(
            "confinement",
            format!("commands can also write in {folders}"),
        ));
    }
    for why in &settings.not_writable {
        findings.push(Finding::problem(
            "confinement",
            format!("sandbox.writable in config.toml: {why}"),
            "Take it out, or name another folder",
        ));
    }
    findings
}

fn json(report: &Report<'_>) {
    let line = serde_json::to_string(report).expect("text and flags are JSON");
    say(format_args!("{line}"));
}

fn print(findings: &[Finding], told: Option<&Told<'_>>, program: &Path) {
    for it in findings {
        let (mark, style) = match it.level {
            Level::Ok => ("ok", styles::GOOD),
            Level::Note => ("note", styles::NOTE),
            Level::Problem => ("PROBLEM", styles::BAD),
        };
        line(mark, style, &format!("{}: {}", it.what, it.text));
        for todo in it.todo.iter().flat_map(|todo| todo.lines()) {
            say(format_args!("         {todo}"));
        }
    }
    if let Some(told) = told {
        say(format_args!(
            "\n{}, in {}:\n\n{}",
            told.name, told.file, told.snippet
        ));
        say(format_args!(
            "\nIf the editor does not find it, give the whole path: {}",
            program.display()
        ));
    }
}

fn line(mark: &str, style: Style, text: &str) {
    let reset = style.render_reset();
    let style = style.render();
    say(format_args!("{style}{mark:<8}{reset} {text}"));
}
