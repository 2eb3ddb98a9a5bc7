//! `mcp test`: one server, started outside of any session.

use serde::Serialize;

use super::known::{Approval, Known, Source};
use super::list::transport;
use super::probe::{Probed, probe};
use crate::exit::{Exit, Failure};
use crate::out::{say, warn};
use crate::render::styles::{BAD, BOLD, DIM, GOOD, styled};
use crate::render::text::one_line;

/// Longest line about something, characters.
const SHOWN: usize = 100;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    name: &'a str,
    source: &'static str,
    transport: &'static str,
    /// `ready` or `failed`.
    status: &'static str,
    milliseconds: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol_version: Option<&'a str>,
    tools: Vec<ToolLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
}

#[derive(Serialize)]
struct ToolLine<'a> {
    name: &'a str,
    description: &'a str,
}

/// Starts the server of this name, says what it offers, and ends it.
pub fn test(known: &Known, name: &str, json: bool) -> Result<Exit, Failure> {
    let server = known.find(name)?;
    let entry = &server.entry;
    if matches!(server.approval, Approval::Pending | Approval::Changed) {
        return Err(Failure {
            exit: Exit::Denied,
            message: format!(
                "{} comes with the project and is not approved: it would run or ask {}\n\
                 If that is well: reasonix mcp approve '{}'",
                one_line(&entry.name, 80),
                one_line(&entry.describe(), 400),
                one_line(&entry.name, 80),
            ),
            code: None,
        });
    }
    if !json {
        let what = one_line(&entry.describe(), 400);
        warn(format_args!(
            "{}",
            styled(DIM, format_args!("{}: {what}", transport(entry)))
        ));
    }
    let probed = probe(entry, &known.project, &known.hidden);
    match json {
        true => scripts(&probed, &entry.name, server.source, transport(entry)),
        false => people(&probed, &entry.name),
    }
    Ok(match probed.error {
        None => Exit::Ok,
        Some(_) => Exit::Failed,
    })
}

fn scripts(probed: &Probed, name: &str, source: Source, transport: &'static str) {
    let tools = probed
        .tools
        .iter()
        .map(|(name, description)| ToolLine { name, description });
    let report = Report {
        name,
        source: match source {
            Source::Config => "config",
            Source::Project => "project",
        },
        transport,
        status: if probed.error.is_none() {
            "ready"
        } else {
            "failed"
        },
        milliseconds: probed.took.as_millis(),
        server: probed.server.as_deref(),
        protocol_version: probed.protocol.as_deref(),
        tools: tools.collect(),
        error: probed.error.as_deref(),
        http_status: probed.http_status,
    };
    let text = serde_json::to_string(&report).expect("texts and numbers");
    say(format_args!("{text}"));
}

fn people(probed: &Probed, name: &str) {
    let (name, took) = (one_line(name, 80), probed.took.as_millis());
    let state = match &probed.error {
        None => styled(GOOD, format_args!("ready after {took} ms")),
        Some(_) => styled(BAD, format_args!("cannot be used, after {took} ms")),
    };
    say(format_args!("{}  {state}", styled(BOLD, name)));
    let about = [
        ("server", probed.server.clone()),
        ("protocol", probed.protocol.clone()),
        (
            "HTTP status",
            probed.http_status.map(|status| status.to_string()),
        ),
        ("because", probed.error.clone()),
    ];
    for (what, text) in about {
        if let Some(text) = text {
            say(format_args!("  {what:11} {}", one_line(&text, 600)));
        }
    }
    if probed.error.is_none() {
        say(format_args!("  {:11} {}", "tools", probed.tools.len()));
    }
    for (tool, description) in &probed.tools {
        let about = styled(DIM, one_line(description, SHOWN));
        say(format_args!("    {}  {about}", one_line(tool, 80)));
    }
}
