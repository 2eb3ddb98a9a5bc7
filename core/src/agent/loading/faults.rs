//! Why a stored session is not opened, as it is answered; and whether two paths are the same. Pure.

use alloc::format;
use alloc::vec::Vec;

use serde::Serialize;

use super::super::opening::refused;
use crate::call::Holder;
use crate::protocol::schema::SessionId;
use crate::wire::RpcError;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NotFound<'a> {
    session_id: &'a str,
    code: &'a str,
    details: &'a str,
}

#[derive(Serialize)]
struct Locked<'a> {
    code: &'a str,
    holder: HolderShown<'a>,
}

#[derive(Serialize)]
struct HolderShown<'a> {
    pid: Option<u32>,
    host: Option<&'a str>,
    since: Option<&'a str>,
}

/// −32002: there is no such session.
pub(in crate::agent) fn not_found(id: &SessionId) -> RpcError {
    let details = format!("Session not found: {id}");
    RpcError::resource_not_found(&details).with_data(&NotFound {
        session_id: id.as_str(),
        code: "session_not_found",
        details: &details,
    })
}

/// −32600: another process has it open.
pub(in crate::agent) fn session_locked(id: &SessionId, holder: &Holder) -> RpcError {
    let mut why = format!("the session {id} is open in another process");
    if let Some(pid) = holder.pid {
        why.push_str(&format!(" ({pid}"));
        if let Some(host) = &holder.host {
            why.push_str(&format!(" on {host}"));
        }
        why.push(')');
    }
    why.push_str(": close it there first");
    RpcError::invalid_request(&why).with_data(&Locked {
        code: "session_locked",
        holder: HolderShown {
            pid: holder.pid,
            host: holder.host.as_deref(),
            since: holder.since.as_deref(),
        },
    })
}

pub(super) fn mismatch(cwd: &str) -> RpcError {
    let why = format!("the session belongs to the directory {cwd}: open it with that cwd");
    refused("cwd_mismatch", &why)
}

/// Whether two ways of writing a path mean the same without a look at the disk.
pub(in crate::agent) fn same_path(a: &str, b: &str) -> bool {
    cleaned(a).eq(cleaned(b))
}

fn cleaned(path: &str) -> impl Iterator<Item = &str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_as_they_are_meant() {
        for (a, b, same) in [
            ("/w", "/w/", true),
            ("/w/./x", "//w/x", true),
            ("/w/y/../x", "/w/x", true),
            ("/w", "/w2", false),
            ("/w", "/", false),
        ] {
            assert_eq!(same_path(a, b), same, "{a} {b}");
        }
    }
}
