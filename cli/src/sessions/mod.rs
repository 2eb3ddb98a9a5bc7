//! `sessions`: what was said and done before. Lists and deletes by asking an agent, as editors do;
//! shows a transcript by reading it.

mod client;
mod delete;
mod find;
mod list;
mod show;

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use reasonix_core::agent::Config;
use reasonix_core::protocol::schema::{SessionId, SessionInfo};
use reasonix_core::store::SessionFiles;

use crate::Runtime;
use crate::exit::{Exit, Failure};
use crate::flags::invocation::{SessionsPlan, SessionsTask, Which};
use crate::render::age::{ago, unix_ms};
use crate::render::text::{one_line, safe};
use client::Client;
pub use find::probably_short;

/// Does it.
pub fn sessions(runtime: Runtime, plan: SessionsPlan) -> Result<Exit, Failure> {
    let SessionsPlan {
        config,
        home,
        cwd,
        task,
    } = plan;
    let person = config.host.user_home.clone();
    let mut client = Client::start(runtime, config)?;
    let all = client.list()?;
    let ended = match task {
        SessionsTask::List { all: true, json } => Ok(listed(&all, None, person, json)),
        SessionsTask::List { all: false, json } => Ok(listed(&all, Some(&cwd), person, json)),
        SessionsTask::Show { which, json } => {
            let id = match &which {
                Which::Newest => find::newest(&all, &cwd)?.session_id.clone(),
                Which::Id(asked) => {
                    let all = with_unlisted(all, &home, std::slice::from_ref(asked));
                    find::by_id(&all, asked)?.session_id.clone()
                }
            };
            match json {
                true => show::scripts(&home, &id),
                false => show::people(&home, &id, now()),
            }
        }
        SessionsTask::Delete { ids, yes } => {
            let all = with_unlisted(all, &home, &ids);
            delete::delete(&mut client, &all, &ids, yes, now())
        }
    };
    client.finish();
    ended
}

/// A session that goes on.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its id.
    pub id: SessionId,
    /// Its folder, as it is stored: the agent wants to hear it so.
    pub cwd: String,
    /// Its folders beside that which are there.
    pub directories: Vec<String>,
    /// For a person: which it is, what it is about and how old.
    pub said: String,
}

/// The session that is to go on in `cwd`.
pub fn to_go_on(
    runtime: Runtime,
    config: Config,
    which: &Which,
    cwd: &str,
) -> Result<Found, Failure> {
    let mut client = Client::start(runtime, config)?;
    let all = client.list()?;
    client.finish();
    let session = match which {
        Which::Newest => find::newest(&all, cwd)?,
        Which::Id(asked) => find::by_id(&all, asked)?,
    };
    let short = find::short(&session.session_id, find::short_length(&all));
    if !find::same_folder(&session.cwd, cwd) {
        let folder = safe(&session.cwd);
        let place = match Path::new(&session.cwd).is_dir() {
            true => format!("run it there, or with --cwd '{folder}'"),
            false => "it is not there any more".into(),
        };
        return Err(Failure::usage(format!(
            "the session {short} belongs to the folder {folder}: {place}"
        )));
    }
    let mut said = short.to_owned();
    if let Some(title) = &session.title {
        said.push_str(&format!(" “{}”", one_line(title, 80)));
    }
    if let Some(then) = session.updated_at.as_deref().and_then(unix_ms) {
        said.push_str(&format!(", {}", ago(now(), then)));
    }
    Ok(Found {
        id: session.session_id.clone(),
        cwd: session.cwd.clone(),
        directories: there(&session.additional_directories, &mut said),
        said,
    })
}

/// Those of a session's folders that are still there; what is said of it names the others.
fn there(directories: &[String], said: &mut String) -> Vec<String> {
    let (there, gone): (Vec<_>, Vec<_>) = directories
        .iter()
        .cloned()
        .partition(|path| Path::new(path).is_dir());
    if !gone.is_empty() {
        said.push_str(&format!(", without {}, which is gone", gone.join(", ")));
    }
    there
}

fn listed(all: &[SessionInfo], folder: Option<&str>, person: Option<String>, json: bool) -> Exit {
    match json {
        true => list::scripts(all, folder),
        false => list::people(all, folder, person.as_deref(), now()),
    }
}

/// `all`, and what is stored under one of `ids` though no list has it, since nobody prompted it yet
/// or it cannot be read.
fn with_unlisted(mut all: Vec<SessionInfo>, home: &str, ids: &[String]) -> Vec<SessionInfo> {
    for id in ids {
        let Ok(id) = SessionId::checked(id) else {
            continue;
        };
        let folder = SessionFiles::new(home, id.as_str()).folder;
        if !all.iter().any(|session| session.session_id == id)
            && fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir())
        {
            all.push(SessionInfo::new(id, ""));
        }
    }
    all
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
