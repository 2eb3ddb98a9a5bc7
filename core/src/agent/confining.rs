//! What keeps the commands of sessions to their folders, as far as the system can: whether a session
//! may open without it, what is told of it, and the folder for temporary files that each session has
//! and takes with it. Enforces nothing itself.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::session::Session;
use super::{Agent, Level, Owner};
use crate::call::Call;
use crate::ids::SessionKey;
use crate::protocol::Gates;
use crate::protocol::schema::vendor::status::Sandbox as Told;
use crate::protocol::schema::{Notice, NoticeSeverity, SessionId, SessionUpdate};
use crate::settings::Sandboxing;
use crate::tools::Sandbox;
use crate::wire::RpcError;

/// What is asked of the confinement of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxPolicy {
    /// `--sandbox-bash enforce`, `--require-sandbox`: no session opens where commands cannot be
    /// confined. Else they run without where that is so, and it is said.
    pub enforce: bool,
    /// `--sandbox-network off`: commands do not reach the network.
    pub no_network: bool,
}

impl SandboxPolicy {
    /// Whether commands are run here though the client offers a terminal: a client's terminal is
    /// outside every confinement of ours.
    pub(super) const fn keeps_commands(self) -> bool {
        self.enforce || self.no_network
    }

    /// What is asked of commands, if anything of it cannot be had here.
    fn lacks(self, level: Sandboxing) -> Option<String> {
        if !level.confines_files() {
            Some(format!("commands cannot be kept to folders here: {level}"))
        } else if self.no_network && !level.confines_network() {
            Some(format!(
                "commands cannot be kept from the network here: {level}"
            ))
        } else {
            None
        }
    }

    /// Whether commands reach the network.
    fn network(self, level: Sandboxing) -> bool {
        !self.no_network || !level.confines_network()
    }
}

impl Agent {
    /// −32603: what was insisted on cannot be enforced.
    pub(super) fn check_sandbox(&self) -> Result<(), RpcError> {
        #[derive(Serialize)]
        struct Data<'a> {
            code: &'a str,
            engine: &'a str,
        }
        let policy = self.config.sandbox;
        let level = self.config.host.sandbox;
        match policy.lacks(level).filter(|_| policy.enforce) {
            None => Ok(()),
            Some(why) => {
                let why = format!("{why}; the flags insist on it, so no session is opened");
                Err(RpcError::internal(&why).with_data(&Data {
                    code: "sandbox_unavailable",
                    engine: level.engine(),
                }))
            }
        }
    }

    /// Says in the log what is enforced, and what is not though it was asked for.
    pub(super) fn report_sandbox(&mut self) {
        let (policy, level) = (self.config.sandbox, self.config.host.sandbox);
        match policy.lacks(level) {
            None if policy.no_network => {
                self.report(
                    Level::Info,
                    format!("commands are kept to their folders and from the network: {level}"),
                );
            }
            None => self.report(
                Level::Info,
                format!("commands are kept to their folders: {level}"),
            ),
            Some(why) => self.report(Level::Warn, why),
        }
        for why in self.config.settings.not_writable.clone() {
            self.report(Level::Warn, format!("sandbox.writable: {why}"));
        }
    }

    /// The agent's own folder, if it is in that of a session: where commands are confined they can
    /// write there all the same, since the kernel takes nothing back beneath a folder.
    pub(super) fn home_within(&self, root: &str) -> Option<&str> {
        let home = self.config.host.home.as_deref()?;
        let rest = home.strip_prefix(root.trim_end_matches('/'))?;
        let within = rest.is_empty() || rest.starts_with('/');
        (within && self.config.host.sandbox.confines_files()).then_some(home)
    }

    /// Says so when such a session opens: in the log, and to a client that takes notices.
    pub(super) fn tell_home_within(&mut self, key: SessionKey) {
        let session = self.sessions.get(&key);
        let Some(home) = session.and_then(|session| self.home_within(&session.root)) else {
            return;
        };
        let title = "Commands of this session can change the agent's own files";
        let why = format!(
            "{home} is in the session's folder: what runs there can write rules, keys and stored \
             sessions. A project's folder of its own keeps commands from it."
        );
        self.report(Level::Warn, format!("{title}: {why}"));
        if self.side.takes(key, Gates::NOTICES)
            && let Some(mut session) = self.side.session(key)
        {
            let mut notice = Notice::new(NoticeSeverity::Warning, title);
            notice.description = Some(why);
            session.notify(&SessionUpdate::Notice(notice));
        }
    }

    /// What confines the commands of a session; none: nothing.
    pub(super) fn sandbox(&self, id: &SessionId) -> Option<Sandbox> {
        let (policy, host) = (self.config.sandbox, &self.config.host);
        host.sandbox.confines_files().then(|| Sandbox {
            tmp: self.tmp(id),
            writable: self.writable().to_vec(),
            network: policy.network(host.sandbox),
        })
    }

    /// The folder for temporary files of a session.
    fn tmp(&self, id: &SessionId) -> String {
        format!(
            "{}/reasonix-{id}",
            self.config.host.tmp.trim_end_matches('/')
        )
    }

    /// Removes what an agent that was killed left of a session's temporary files: its lock is held, so
    /// nobody uses them. None if nothing can be left: only ids that are ours name such folders.
    pub(super) fn left_tmp(&self, id: &SessionId) -> Option<Call> {
        let tmp = &self.config.host.tmp;
        (id.is_v4() && !tmp.is_empty()).then(|| Call::RemoveTree {
            path: self.tmp(id),
            beneath: self.config.host.tmp.clone(),
        })
    }

    /// Folders that commands can write in beside those of their session. With `--workspace-only`
    /// there is none.
    pub(super) fn writable(&self) -> &[String] {
        if self.config.workspace_only {
            return &[];
        }
        &self.config.settings.writable
    }

    /// The same as it is told.
    pub(super) fn sandbox_told(&self, session: &Session) -> Told {
        let (policy, level) = (self.config.sandbox, self.config.host.sandbox);
        let mode = if policy.enforce { "enforce" } else { "auto" };
        Told {
            mode: mode.into(),
            engine: level.engine().into(),
            abi: level.abi(),
            available: level.confines_files(),
            workspace_root: session.cwd.clone(),
            write_roots: session
                .engine
                .roots()
                .iter()
                .chain(self.writable())
                .cloned()
                .collect(),
            network_enabled: !level.confines_files() || policy.network(level),
            ..Told::default()
        }
    }

    /// A session starts a call: one that is confined has a folder for temporary files from then on.
    pub(super) fn notes_tmp(&mut self, key: SessionKey, call: &Call) {
        if let Call::Process(process) = call
            && let Some(sandbox) = &process.sandbox
        {
            let tmp = sandbox.tmp.clone();
            self.tmps.insert(key, tmp);
        }
    }

    /// A session is closed, or all are: what it made of temporary files goes when its calls have
    /// ended.
    pub(super) fn give_up_tmp(&mut self, key: Option<SessionKey>) {
        match key {
            Some(key) => self.old_tmps.extend(self.tmps.remove_entry(&key)),
            None => self.old_tmps.append(&mut self.tmps),
        }
        self.remove_tmps();
    }

    /// Removes the folders for temporary files of sessions that are closed and run nothing.
    pub(super) fn remove_tmps(&mut self) {
        let calls = &self.calls;
        let busy = |key: &SessionKey| {
            let mut owners = calls.values();
            owners.any(|owner| matches!(owner, Owner::Session(of) if of == key))
        };
        let over: Vec<SessionKey> = self
            .old_tmps
            .keys()
            .filter(|key| !busy(key))
            .copied()
            .collect();
        for key in over {
            if let Some(path) = self.old_tmps.remove(&key) {
                let beneath = self.config.host.tmp.clone();
                self.start(Owner::Nobody, Call::RemoveTree { path, beneath });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacked_is_what_was_asked_for_and_cannot_be_had() {
        let landlock = |abi| Sandboxing::Landlock { abi };
        for (level, no_network, lacks, network) in [
            (Sandboxing::None, false, true, true),
            (Sandboxing::None, true, true, true),
            (landlock(1), false, true, true),
            (landlock(3), false, false, true),
            (landlock(3), true, true, true),
            (landlock(4), true, false, false),
            (landlock(12), false, false, true),
        ] {
            let policy = SandboxPolicy {
                enforce: false,
                no_network,
            };
            assert_eq!(policy.lacks(level).is_some(), lacks, "{level} {no_network}");
            assert_eq!(policy.network(level), network, "{level} {no_network}");
        }
    }
}
