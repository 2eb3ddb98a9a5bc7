//! `mcp approve` and `mcp revoke`: which servers of the project's own file may be started.

use serde_json::json;

use super::known::{Known, Server};
use crate::exit::{Exit, Failure};
use crate::out::say;
use crate::render::text::{one_line, safe};

/// Lets sessions of this folder start these servers, as their entries stand now.
pub fn approve(known: &Known, names: &[String], as_json: bool) -> Result<Exit, Failure> {
    let known = known.whole()?;
    let servers: Vec<&Server> = names
        .iter()
        .map(|name| known.find_in_project(name))
        .collect::<Result<_, _>>()?;
    for server in servers {
        let name = &server.entry.name;
        if !as_json {
            for line in server.entry.details().lines() {
                say(format_args!("  {}", safe(line)));
            }
        }
        let changed = known.change(|all| {
            if !all.approves(&known.project, name, &server.digest) {
                all.approve(&known.project, name, &server.digest);
            }
        })?;
        if as_json {
            print(known, name, true, changed);
            continue;
        }
        let word = if changed {
            "is approved"
        } else {
            "was approved before"
        };
        say(format_args!(
            "{} {word} for {}.",
            one_line(name, 80),
            safe(&known.project)
        ));
    }
    Ok(Exit::Ok)
}

/// Takes that back. The file need not name them any more.
pub fn revoke(known: &Known, names: &[String], as_json: bool) -> Result<Exit, Failure> {
    for name in names {
        let name = name.trim();
        let changed = known.change(|all| {
            all.revoke(&known.project, name);
        })?;
        if as_json {
            print(known, name, false, changed);
            continue;
        }
        let shown = one_line(name, 80);
        match changed {
            true => say(format_args!(
                "{shown} is not approved any more for {}. Sessions that are open keep it until they end.",
                safe(&known.project)
            )),
            false => say(format_args!(
                "{shown} was not approved; nothing is changed."
            )),
        }
    }
    Ok(Exit::Ok)
}

fn print(known: &Known, name: &str, approved: bool, changed: bool) {
    let project = &known.project;
    let line = json!({"name": name, "project": project, "approved": approved, "changed": changed});
    say(format_args!("{line}"));
}
