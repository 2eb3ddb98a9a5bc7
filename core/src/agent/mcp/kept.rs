//! The tools of servers, kept in the agent's home for another time: read when a server starts,
//! written when it has listed others. What is kept is a convenience: whatever goes wrong with it is
//! passed over, and the server says the same a little later.
//!
//! One file an entry (`cache/mcp/<digest>.json`), since an entry that changed is another server. When
//! there are too many, some others go: their names are digests, so the first of them are any of them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::agent::{Agent, Owner};
use crate::call::{Call, Expect, News, Outcome, Write};
use crate::ids::{CallId, SessionKey};

/// The folder, in the agent's home.
const FOLDER: &str = "cache/mcp";

/// Files in it.
const MAX_KEPT: usize = 256;

/// What a call is for.
pub(super) enum Doing {
    /// What was kept of servers with this entry.
    Recall(String),
    /// Something is kept under this name.
    Write(String),
    /// How much there is now.
    Count(String),
}

impl Doing {
    /// What is being written, or was just.
    fn writes(&self) -> Option<&String> {
        match self {
            Self::Recall(_) => None,
            Self::Write(digest) | Self::Count(digest) => Some(digest),
        }
    }
}

impl Agent {
    pub(super) fn recall_tools(&mut self, key: SessionKey, digest: String) {
        let Some((home, path)) = self.kept_path(&digest) else {
            return;
        };
        let most = self.config.limits.max_mcp_catalogue * 2;
        let call = Call::Read {
            path,
            beneath: Some(home),
            max: most as u64,
        };
        self.keep_tools(key, Doing::Recall(digest), call);
    }

    pub(super) fn remember_tools(&mut self, key: SessionKey, digest: String, bytes: Vec<u8>) {
        let Some((home, path)) = self.kept_path(&digest) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        // A server may list others as fast as it likes: of what waits for the disk the newest counts.
        let servers = &mut session.servers;
        if servers
            .kept
            .values()
            .any(|doing| doing.writes() == Some(&digest))
        {
            servers.to_keep.insert(digest, bytes);
            return;
        }
        let call = Call::Write(Write {
            path,
            beneath: Some(home),
            bytes,
            expect: Expect::Anything,
            parents: true,
            private: true,
        });
        self.keep_tools(key, Doing::Write(digest), call);
    }

    fn kept_path(&self, digest: &str) -> Option<(String, String)> {
        let home = self.store_home()?;
        Some((home.into(), format!("{home}/{FOLDER}/{digest}.json")))
    }

    fn keep_tools(&mut self, key: SessionKey, doing: Doing, call: Call) {
        let id = self.start(Owner::ServersFile(key), call);
        if let Some(session) = self.sessions.get_mut(&key) {
            session.servers.kept.insert(id, doing);
        }
    }

    /// News of such a call; false if it is none.
    pub(super) fn kept_news(&mut self, key: SessionKey, id: CallId, news: &News<'_>) -> bool {
        let session = self.sessions.get_mut(&key);
        let Some(doing) = session.and_then(|it| it.servers.kept.remove(&id)) else {
            return false;
        };
        let written = match (&doing, news) {
            (Doing::Write(_), News::Done(_)) | (Doing::Recall(_), _) => None,
            (Doing::Write(digest) | Doing::Count(digest), _) => Some(digest.clone()),
        };
        match (doing, news) {
            (Doing::Recall(digest), News::Done(Outcome::Read(contents))) => {
                self.with_servers(key, |hub, cx| hub.recall(cx, &digest, &contents.bytes));
            }
            (Doing::Write(digest), News::Done(_)) => {
                if let Some(home) = self.store_home() {
                    let call = Call::List {
                        path: format!("{home}/{FOLDER}"),
                        max: 2 * MAX_KEPT,
                    };
                    self.keep_tools(key, Doing::Count(digest), call);
                }
            }
            (Doing::Count(digest), News::Done(Outcome::Listed(listing))) => {
                let all = listing.entries.len();
                let ours = format!("{digest}.json");
                let others = listing.entries.iter().filter(|entry| entry.name != ours);
                let names = others.take(all.saturating_sub(MAX_KEPT));
                let names: Vec<String> = names.map(|entry| entry.name.clone()).collect();
                for name in names {
                    let Some(home) = self.store_home().map(String::from) else {
                        break;
                    };
                    let path = format!("{home}/{FOLDER}/{name}");
                    let beneath = Some(home);
                    self.start(Owner::Nobody, Call::Remove { path, beneath });
                }
            }
            (Doing::Recall(_) | Doing::Write(_) | Doing::Count(_), _) => {}
        }
        if let Some(digest) = written
            && let Some(session) = self.sessions.get_mut(&key)
            && let Some(bytes) = session.servers.to_keep.remove(&digest)
        {
            self.remember_tools(key, digest, bytes);
        }
        true
    }
}
