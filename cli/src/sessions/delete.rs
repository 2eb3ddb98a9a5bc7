//! `sessions delete`.

use std::io::{self, BufRead as _, Write as _};

use reasonix_core::protocol::schema::SessionInfo;

use super::client::Client;
use super::find;
use crate::exit::{Exit, Failure};
use crate::logging;
use crate::out::{say, warn};
use crate::render::age::{ago, unix_ms};
use crate::render::styles::{BAD, BOLD, DIM, styled};
use crate::render::text::one_line;
use crate::terminal;

/// Removes the sessions that `asked` name, all or none of which are there. `yes`: nobody is asked.
pub fn delete(
    client: &mut Client,
    all: &[SessionInfo],
    asked: &[String],
    yes: bool,
    now: u64,
) -> Result<Exit, Failure> {
    let mut found: Vec<&SessionInfo> = Vec::new();
    for asked in asked {
        // The newest is another one a moment later: what is gone for good is named.
        if asked == "last"
            && all
                .iter()
                .all(|it| !it.session_id.as_str().starts_with(asked))
        {
            return Err(Failure::usage(
                "`last` is not deleted by that word: give its id, which `sessions list` shows first",
            ));
        }
        let session = find::by_id(all, asked)?;
        if !found
            .iter()
            .any(|other| other.session_id == session.session_id)
        {
            found.push(session);
        }
    }
    if !yes && !confirmed(&found, now)? {
        say(format_args!("Nothing was deleted."));
        return Ok(Exit::Ok);
    }
    let mut exit = Exit::Ok;
    for session in found {
        match client.delete(&session.session_id) {
            Ok(()) => say(format_args!("Deleted {}", session.session_id)),
            // The others can still go.
            Err(failure) => {
                let why = one_line(&logging::redacted(failure.message), usize::MAX);
                warn(format_args!("{} {why}", styled(BAD, "Not deleted:")));
                exit = Exit::Failed;
            }
        }
    }
    Ok(exit)
}

fn confirmed(sessions: &[&SessionInfo], now: u64) -> Result<bool, Failure> {
    if !terminal::somebody_there() {
        return Err(Failure::usage(
            "there is no terminal to ask on whether to delete: add --yes",
        ));
    }
    let mut err = anstream::stderr();
    for session in sessions {
        let id = find::probably_short(&session.session_id);
        let updated = session.updated_at.as_deref().and_then(unix_ms);
        let age = updated.map_or_else(String::new, |then| ago(now, then));
        let title = one_line(session.title.as_deref().unwrap_or("(no text)"), 80);
        let _ = writeln!(err, "{}  {}  {title}", styled(BOLD, id), styled(DIM, age));
    }
    let what = match sessions.len() {
        1 => "this session".into(),
        count => format!("these {count} sessions"),
    };
    let _ = write!(err, "Delete {what} for good? [y/N] ");
    let _ = err.flush();
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|e| Failure::failed(format!("the terminal could not be read: {e}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}
