//! `mcp list`.

use std::io::Write as _;

use reasonix_core::mcp::approval::PROJECT_FILE;
use reasonix_core::mcp::{Entry, Way};
use serde::Serialize;

use super::known::{Approval, Known, Server, Source};
use crate::out::{say, warn};
use crate::render::styles::{BOLD, DIM, GOOD, WARN, styled};
use crate::render::text::one_line;

/// Longest name and longest description that are shown, characters.
const SHOWN: (usize, usize) = (40, 120);

#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    source: &'static str,
    transport: &'static str,
    /// What is run or asked, without secrets.
    what: String,
    /// As `session/mcpStatus` says it before a session: `idle`, `pending` or `disabled`.
    status: &'static str,
    approval: &'static str,
}

/// Prints them.
pub fn list(known: &Known, json: bool) {
    if json {
        let mut lines = Vec::new();
        for server in &known.servers {
            serde_json::to_writer(&mut lines, &line(server)).expect("texts only");
            lines.push(b'\n');
        }
        let mut out = std::io::stdout().lock();
        // A reader that has seen enough is no fault.
        let _ = out.write_all(&lines).and_then(|()| out.flush());
        return;
    }
    if known.servers.is_empty() && known.fault.is_none() {
        warn(format_args!(
            "There is no MCP server yet: [mcp.servers.NAME] in config.toml or {PROJECT_FILE} in the \
             project names one."
        ));
    }
    let names: Vec<_> = known
        .servers
        .iter()
        .map(|server| one_line(&server.entry.name, SHOWN.0))
        .collect();
    let width = names.iter().map(|it| it.chars().count()).max().unwrap_or(0);
    for (server, name) in known.servers.iter().zip(names) {
        let from = match server.source {
            Source::Config => "config.toml",
            Source::Project => PROJECT_FILE,
        };
        let (style, state) = match server.approval {
            Approval::NotNeeded => (GOOD, "starts with a session"),
            Approval::Approved => (GOOD, "approved"),
            Approval::Pending => (WARN, "not approved"),
            Approval::Changed => (WARN, "changed since it was approved"),
            Approval::Hidden => (DIM, "not used: config.toml has one of this name"),
        };
        say(format_args!(
            "{}  {}  {}  {}",
            styled(BOLD, format_args!("{name:width$}")),
            styled(DIM, format_args!("{from:11}")),
            styled(style, state),
            styled(DIM, one_line(&server.entry.describe(), SHOWN.1)),
        ));
    }
    let waits = |it: &&Server| matches!(it.approval, Approval::Pending | Approval::Changed);
    if let Some(server) = known.servers.iter().find(waits) {
        warn(format_args!(
            "To let sessions in this folder start one: reasonix mcp approve '{}'",
            one_line(&server.entry.name, SHOWN.0)
        ));
    }
}

fn line(server: &Server) -> Line<'_> {
    let (status, approval) = match server.approval {
        Approval::NotNeeded => ("idle", "not_needed"),
        Approval::Approved => ("idle", "approved"),
        Approval::Pending => ("pending", "pending"),
        Approval::Changed => ("pending", "changed"),
        Approval::Hidden => ("disabled", "not_needed"),
    };
    Line {
        name: &server.entry.name,
        source: match server.source {
            Source::Config => "config",
            Source::Project => "project",
        },
        transport: transport(&server.entry),
        what: server.entry.describe(),
        status,
        approval,
    }
}

/// How a server is reached, as configuration files call it.
pub fn transport(entry: &Entry) -> &'static str {
    match &entry.way {
        Way::Stdio { .. } => "stdio",
        Way::Http { .. } => "http",
        Way::Sse { .. } => "sse",
    }
}
