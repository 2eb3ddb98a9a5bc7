//! The folders that a session has beside its working directory: judged before it opens, all or
//! none, and remembered with it.
//!
//! A session that is open has the folders it was opened with and those that were added since; a
//! request that opens it once more names one of the two lists. One that is not open is opened with
//! what the request names, whatever it had before (ACP page: session setup).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::loading::same_path;
use super::{Agent, Owner};
use crate::call::Outcome;
use crate::engine::record::Record;
use crate::error::IoFault;
use crate::ids::{CallId, SessionKey};
use crate::limits::Limits;
use crate::tools::{RootFault, Vetted, Vetting, overlaps};
use crate::wire::{RequestKey, RpcError};

/// The folders of a session that is being opened.
#[derive(Debug, Default)]
pub(super) struct Roots {
    /// As they were asked for, in their order.
    pub(super) asked: Vec<String>,
    /// Being judged, by their place in that order.
    open: BTreeMap<CallId, (usize, Vetting)>,
    judged: BTreeMap<usize, Result<String, RootFault>>,
    /// Their real paths, when all are judged.
    pub(super) real: Vec<String>,
}

impl Roots {
    pub(super) fn new(asked: Vec<String>) -> Self {
        Self {
            asked,
            ..Self::default()
        }
    }

    /// The real paths of all, if each can stand beside `cwd` and those before it; else the first
    /// fault.
    fn together(&self, cwd: &str) -> Result<Vec<String>, RootFault> {
        let mut roots = Vec::from([String::from(cwd)]);
        for (asked, judged) in self.asked.iter().zip(self.judged.values()) {
            let real = judged.clone()?;
            overlaps(asked, &real, &roots)?;
            roots.push(real);
        }
        roots.remove(0);
        Ok(roots)
    }
}

/// The folders of an open session.
#[derive(Debug, Default)]
pub(super) struct Directories {
    /// As its client asked for them.
    pub(super) asked: Vec<String>,
    /// As they were added since.
    pub(super) added: Vec<String>,
}

impl Directories {
    /// All of them.
    pub(super) fn all(&self) -> Vec<String> {
        self.asked.iter().chain(&self.added).cloned().collect()
    }

    /// Whether `asked` are these: those of its opening, or all.
    pub(super) fn are(&self, asked: &[String]) -> bool {
        let same = |mine: &[String]| {
            let all_in = |some: &[String], others: &[String]| {
                let is_in = |a: &String| others.iter().any(|b| same_path(a, b));
                some.iter().all(is_in)
            };
            all_in(mine, asked) && all_in(asked, mine)
        };
        same(&self.asked) || same(&self.all())
    }
}

#[derive(Serialize)]
struct PathCode<'a> {
    code: &'a str,
    path: Option<&'a str>,
}

/// −32602: a folder cannot be a root.
pub(super) fn root_refused(fault: &RootFault) -> RpcError {
    let why = alloc::format!("additionalDirectories: {fault}");
    RpcError::invalid_params(&why).with_data(&PathCode {
        code: fault.kind.code(),
        path: Some(&fault.path),
    })
}

/// −32602: the session is open with other folders.
pub(super) fn session_open(asked: &[String]) -> RpcError {
    let why = "the session is open with other additionalDirectories: close it first";
    RpcError::invalid_params(why).with_data(&PathCode {
        code: "acp.additional_directories.session_open",
        path: asked.first().map(String::as_str),
    })
}

/// What the paths alone show of the folders of a request.
pub(super) fn check_directories(asked: &[String], limits: &Limits) -> Result<(), RpcError> {
    if let Some(path) = asked.get(limits.max_roots) {
        return Err(root_refused(&RootFault::too_many(path, limits)));
    }
    for path in asked {
        Vetting::begin(path).map_err(|fault| root_refused(&fault))?;
    }
    Ok(())
}

impl Agent {
    /// Judges the folders that a session is to have beside its working directory.
    pub(super) fn vet_roots(&mut self, key: RequestKey) {
        let asked = match self.openings.get(&key) {
            Some(opening) => opening.roots.asked.clone(),
            None => return,
        };
        for (at, path) in asked.iter().enumerate() {
            let begun = Vetting::begin(path);
            let begun = begun.map(|(vetting, call)| {
                let id = self.start(Owner::Opening(key), call);
                (id, vetting)
            });
            let Some(opening) = self.openings.get_mut(&key) else {
                return;
            };
            match begun {
                Ok((id, vetting)) => drop(opening.roots.open.insert(id, (at, vetting))),
                Err(fault) => drop(opening.roots.judged.insert(at, Err(fault))),
            }
        }
        self.roots_judged(key);
    }

    /// Takes an answer about one of the folders; false: it is about something else.
    pub(super) fn root_news(
        &mut self,
        key: RequestKey,
        id: CallId,
        outcome: &Result<Outcome, IoFault>,
    ) -> bool {
        let (host, limits) = (&self.config.host, &self.config.limits);
        let Some(roots) = self.openings.get_mut(&key).map(|it| &mut it.roots) else {
            return false;
        };
        let Some((at, mut vetting)) = roots.open.remove(&id) else {
            return false;
        };
        match vetting.take(outcome.clone(), host, limits) {
            Ok(Vetted::More(call)) => {
                let id = self.start(Owner::Opening(key), call);
                if let Some(opening) = self.openings.get_mut(&key) {
                    opening.roots.open.insert(id, (at, vetting));
                }
            }
            Ok(Vetted::Root(real)) => drop(roots.judged.insert(at, Ok(real))),
            Err(fault) => drop(roots.judged.insert(at, Err(fault))),
        }
        self.roots_judged(key);
        true
    }

    fn roots_judged(&mut self, key: RequestKey) {
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        if !opening.roots.open.is_empty() {
            return;
        }
        let Some(cwd) = opening.root.clone() else {
            return;
        };
        match opening.roots.together(&cwd) {
            Ok(real) => {
                opening.roots.real = real;
                self.rooted(key, &cwd);
            }
            Err(fault) => self.refuse_opening(key, root_refused(&fault)),
        }
    }

    /// A folder was added to those of an open session.
    pub(super) fn add_root(&mut self, key: SessionKey, root: String) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        session.directories.added.push(root);
        let (store, all) = (session.store, session.directories.all());
        self.with_servers(key, |hub, cx| hub.set_roots(cx, all.clone()));
        self.remember_roots(store, all);
    }

    /// Remembers which folders a session has from here on.
    pub(super) fn remember_roots(&mut self, store: super::StoreKey, directories: Vec<String>) {
        if let Some(stored) = self.stores.get_mut(&store) {
            stored.summary.directories.clone_from(&directories);
        }
        self.remember(store, &Record::Roots { directories });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_session_is_named_by_either_of_its_lists_in_any_order() {
        let list = |paths: &[&str]| -> Vec<String> { paths.iter().map(|p| (*p).into()).collect() };
        let open = Directories {
            asked: list(&["/a", "/b/"]),
            added: list(&["/c"]),
        };
        for (asked, are) in [
            (list(&["/a", "/b"]), true),
            (list(&["/b", "/./a"]), true),
            (list(&["/a", "/b", "/c"]), true),
            (list(&["/a", "/a", "/b"]), true),
            (list(&["/a"]), false),
            (list(&["/a", "/c"]), false),
            (list(&["/a", "/b", "/d"]), false),
            (list(&[]), false),
        ] {
            assert_eq!(open.are(&asked), are, "{asked:?}");
        }
        assert!(Directories::default().are(&[]));
    }
}
