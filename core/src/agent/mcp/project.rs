//! The MCP servers that a project's own file names: read when a session opens, added as servers
//! that wait, started as far as the person approved them. What the files say is read in
//! [`approval`](crate::mcp::approval), how the person is asked is in `launch`.
//!
//! | step | call | then |
//! | --- | --- | --- |
//! | `Look` | what is at `.mcp.json` | nothing there: over. A link, no regular file, too long: a notice, and over |
//! | `Read` | its bytes | not right: a notice, and over |
//! | `Approved` | the approvals in the agent's home | the servers are added; those that were approved start |
//! | `Change` | the same, before a change of them | the file is written, if nobody changed it meanwhile |
//! | `Write` | the changed file | done; or once more from `Change` |

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};

use super::launch::Launches;
use crate::agent::{Agent, Owner};
use crate::call::{Call, Expect, FileKind, News, Outcome, Write};
use crate::error::{IoFault, IoKind};
use crate::ids::{AskId, CallId, SessionKey};
use crate::mcp::Launch;
use crate::mcp::approval::{
    APPROVALS_FILE, Approvals, MAX_FILE, PROJECT_FILE, ProjectServer, project_servers,
};
use crate::protocol::schema::{Notice, NoticeSeverity, SessionUpdate};

/// How often a change is tried when others change the file at the same time.
const TRIES: u32 = 4;

/// What is known of the project's servers, in one session.
#[derive(Default)]
pub(in crate::agent) struct Project {
    doing: BTreeMap<CallId, Step>,
    /// Read from the project's file, not added yet.
    read: Vec<ProjectServer>,
    /// The digests of the entries of those that were added, by name.
    pub(super) digests: BTreeMap<String, String>,
    /// What is to be changed in the approvals, one after the other.
    changes: VecDeque<Change>,
    /// What was typed behind `/mcp` while it was not known yet which servers there are.
    typed: Option<String>,
    pub(in crate::agent) launches: Launches,
}

/// What a call is for.
enum Step {
    Look,
    Read,
    Approved,
    Change,
    Write,
}

/// One change of the approvals.
struct Change {
    name: String,
    /// The entry that may be started; none: nothing of this name may be.
    digest: Option<String>,
    tries: u32,
    /// A command waits for what comes of it, to say this.
    says: Option<String>,
}

impl Project {
    pub(super) fn is_being_read(&self) -> bool {
        self.doing.values().any(|step| match step {
            Step::Look | Step::Read | Step::Approved => true,
            Step::Change | Step::Write => false,
        })
    }

    /// The session gets other servers. What the person allowed holds, and what is to be kept of
    /// that is still kept.
    pub(super) fn forget_servers(&mut self) -> Option<AskId> {
        self.doing.retain(|_, step| match step {
            Step::Look | Step::Read | Step::Approved => false,
            Step::Change | Step::Write => true,
        });
        self.read.clear();
        self.digests.clear();
        self.launches.forget_servers()
    }
}

impl Agent {
    /// Reads the project's file, if there is one.
    pub(super) fn read_project_servers(&mut self, key: SessionKey) {
        let Some(path) = self.project_file(key) else {
            return;
        };
        self.step(key, Step::Look, Call::Resolve { path });
    }

    fn project_file(&self, key: SessionKey) -> Option<String> {
        let session = self.sessions.get(&key)?;
        Some(format!("{}/{PROJECT_FILE}", session.root))
    }

    fn step(&mut self, key: SessionKey, step: Step, call: Call) {
        let id = self.start(Owner::ServersFile(key), call);
        if let Some(session) = self.sessions.get_mut(&key) {
            session.servers.project.doing.insert(id, step);
        }
    }

    /// A file that says which servers a project has, or which were approved, was read or written.
    pub(in crate::agent) fn servers_file_news(
        &mut self,
        key: SessionKey,
        id: CallId,
        news: News<'_>,
    ) {
        if self.kept_news(key, id, &news) {
            return;
        }
        let result = match news {
            News::Done(outcome) => Ok(outcome),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        // A step of servers that the session does not have any more is not found.
        let session = self.sessions.get_mut(&key);
        let Some(step) = session.and_then(|it| it.servers.project.doing.remove(&id)) else {
            return;
        };
        match step {
            Step::Look => self.looked_at_project(key, result),
            Step::Read => self.project_read(key, result),
            Step::Approved => {
                let approved = self.read_approvals(result).map(|(approvals, _)| approvals);
                let approved = approved.unwrap_or_else(|why| {
                    self.servers_notice(key, "No approval of an MCP server counts", why);
                    Approvals::default()
                });
                self.add_project_servers(key, &approved);
            }
            Step::Change => match self.read_approvals(result) {
                Ok((approvals, bytes)) => self.change(key, approvals, bytes.as_deref()),
                Err(why) => self.changed(key, Err(why)),
            },
            Step::Write => self.written(key, result.map(drop)),
        }
        self.servers_are_known(key);
        self.go_on_when_known(key);
    }

    /// Whether the project's file is still being read: then a command about servers waits.
    pub(in crate::agent) fn waits_for_project(&mut self, key: SessionKey, typed: &str) -> bool {
        let Some(session) = self.sessions.get_mut(&key) else {
            return false;
        };
        let project = &mut session.servers.project;
        let reads = project.is_being_read();
        if reads {
            project.typed = Some(typed.into());
        }
        reads
    }

    /// A command that waited for the project's file goes on, if that is read.
    fn servers_are_known(&mut self, key: SessionKey) {
        let session = self.sessions.get_mut(&key);
        let project = session.map(|session| &mut session.servers.project);
        let Some(project) = project.filter(|project| !project.is_being_read()) else {
            return;
        };
        if let Some(typed) = project.typed.take()
            && let Some(said) = self.servers_command(key, &typed)
        {
            self.servers_command_done(key, said);
        }
    }

    fn looked_at_project(&mut self, key: SessionKey, result: Result<Outcome, IoFault>) {
        let why: String = match result {
            Ok(Outcome::Resolved(found)) => match found.kind {
                FileKind::Missing => return,
                _ if found.link => "it is a link".into(),
                FileKind::File if found.size <= MAX_FILE => {
                    let Some(session) = self.sessions.get(&key) else {
                        return;
                    };
                    let call = Call::Read {
                        path: format!("{}/{PROJECT_FILE}", session.root),
                        beneath: Some(session.root.clone()),
                        max: MAX_FILE,
                    };
                    return self.step(key, Step::Read, call);
                }
                FileKind::File => format!("it is longer than {MAX_FILE} bytes"),
                FileKind::Directory | FileKind::Dangling | FileKind::Special => {
                    "it is no regular file".into()
                }
            },
            Ok(_) => return,
            Err(fault) if fault.kind == IoKind::NotFound => return,
            Err(fault) => format!("{fault}"),
        };
        self.project_unused(key, why);
    }

    fn project_read(&mut self, key: SessionKey, result: Result<Outcome, IoFault>) {
        let read = match result {
            Ok(Outcome::Read(contents)) => {
                project_servers(&contents.bytes, self.config.limits.max_mcp_servers)
            }
            Ok(_) => return,
            Err(fault) if fault.kind == IoKind::NotFound => return,
            Err(fault) => Err(format!("{fault}")),
        };
        let read = match read {
            Ok(read) if read.is_empty() => return,
            Ok(read) => read,
            Err(why) => return self.project_unused(key, why),
        };
        if let Some(session) = self.sessions.get_mut(&key) {
            session.servers.project.read = read;
        }
        match self.approvals_file() {
            Some(call) => self.step(key, Step::Approved, call),
            None => self.add_project_servers(key, &Approvals::default()),
        }
    }

    fn project_unused(&mut self, key: SessionKey, why: String) {
        let title = format!("{PROJECT_FILE} of this project is not used");
        self.servers_notice(key, &title, format!("{why}; no server of it is started."));
    }

    /// How the approvals are read; none: nothing is kept.
    fn approvals_file(&self) -> Option<Call> {
        let home = self.store_home()?;
        Some(Call::Read {
            path: format!("{home}/{APPROVALS_FILE}"),
            beneath: Some(home.into()),
            max: MAX_FILE,
        })
    }

    fn add_project_servers(&mut self, key: SessionKey, approved: &Approvals) {
        let may_run = self.may_launch(key);
        let most = self.config.limits.max_mcp_servers;
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let (root, cwd) = (session.root.clone(), session.cwd.clone());
        let servers = &mut session.servers;
        let client = servers.client.clone();
        let project = &mut servers.project;
        let mut added = Vec::new();
        let mut left_out = 0;
        for ProjectServer { entry, digest, .. } in core::mem::take(&mut project.read) {
            // What the client or the person's own configuration names is nearer.
            if servers.entries.iter().any(|known| known.name == entry.name) {
                continue;
            }
            if servers.entries.len() + added.len() >= most {
                left_out += 1;
                continue;
            }
            let approved = approved.approves(&root, &entry.name, &digest)
                || project.launches.was_allowed(&entry.name, &digest);
            let launch = match approved && may_run {
                true => Launch::Now,
                false => Launch::Pending,
            };
            match (approved, may_run) {
                (true, true) => {}
                (true, false) => project.launches.hold(entry.name.clone()),
                (false, _) => project.launches.wait(entry.name.clone()),
            }
            project.digests.insert(entry.name.clone(), digest);
            added.push((entry, launch));
        }
        if left_out > 0 {
            let why = format!("with it there would be more than {most}.");
            let title = format!("{left_out} MCP servers of {PROJECT_FILE} are left out");
            self.servers_notice(key, &title, why);
        }
        self.with_servers(key, |hub, cx| {
            for (entry, launch) in added {
                hub.add(cx, entry, launch, &client, &cwd);
            }
        });
        self.know_servers(key);
        self.ask_to_launch(key);
    }

    /// Keeps that an entry of the project may be started, or (`digest` none) that nothing of this
    /// name may. A command that waits for it says `says`.
    pub(in crate::agent) fn change_approval(
        &mut self,
        key: SessionKey,
        name: String,
        digest: Option<String>,
        says: Option<String>,
    ) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let changes = &mut session.servers.project.changes;
        changes.push_back(Change {
            name,
            digest,
            tries: TRIES,
            says,
        });
        if changes.len() == 1 {
            self.next_change(key);
        }
    }

    fn next_change(&mut self, key: SessionKey) {
        let session = self.sessions.get_mut(&key);
        let waits = session.and_then(|it| it.servers.project.changes.front_mut());
        let Some(change) = waits else { return };
        change.tries = change.tries.saturating_sub(1);
        match self.approvals_file() {
            Some(call) => self.step(key, Step::Change, call),
            None => self.changed(key, Err("this program keeps nothing on the disk".into())),
        }
    }

    fn change(&mut self, key: SessionKey, mut approvals: Approvals, bytes: Option<&[u8]>) {
        let Some(home) = self.store_home().map(String::from) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let Some(change) = session.servers.project.changes.front() else {
            return;
        };
        match &change.digest {
            Some(digest) => approvals.approve(&session.root, &change.name, digest),
            None if !approvals.revoke(&session.root, &change.name) => {
                return self.changed(key, Ok(()));
            }
            None => {}
        }
        let write = Write {
            path: format!("{home}/{APPROVALS_FILE}"),
            beneath: Some(home),
            bytes: approvals.to_bytes(),
            expect: match bytes {
                Some(bytes) => Expect::Digest(Sha256::digest(bytes).into()),
                None => Expect::Absent,
            },
            parents: true,
            private: true,
        };
        self.step(key, Step::Write, Call::Write(write));
    }

    fn written(&mut self, key: SessionKey, result: Result<(), IoFault>) {
        let session = self.sessions.get_mut(&key);
        let tries = session.and_then(|it| it.servers.project.changes.front());
        let again = tries.is_some_and(|change| change.tries > 0);
        match result {
            // Somebody else changed it: their change stays.
            Err(fault) if again && matches!(fault.kind, IoKind::Changed | IoKind::Exists) => {
                self.next_change(key);
            }
            result => self.changed(key, result.map_err(|fault| format!("{fault}"))),
        }
    }

    fn changed(&mut self, key: SessionKey, result: Result<(), String>) {
        let session = self.sessions.get_mut(&key);
        let over = session.and_then(|it| it.servers.project.changes.pop_front());
        let Some(change) = over else { return };
        match (change.says, result) {
            (Some(said), Ok(())) => self.servers_command_done(key, said),
            (Some(said), Err(why)) => {
                let text = format!("{said}\n\nThat holds for this session only: {why}.");
                self.servers_command_done(key, text);
            }
            (None, Ok(())) => {}
            (None, Err(why)) => {
                let name = change.name;
                let title = format!("The approval of the MCP server {name} is not kept");
                self.servers_notice(key, &title, format!("{why}."));
            }
        }
        self.next_change(key);
    }

    /// What was approved, with the bytes of the file; no file: none.
    fn read_approvals(
        &self,
        result: Result<Outcome, IoFault>,
    ) -> Result<(Approvals, Option<Vec<u8>>), String> {
        let bytes = match result {
            Ok(Outcome::Read(contents)) => Some(contents.bytes),
            Ok(_) => None,
            Err(fault) if fault.kind == IoKind::NotFound => None,
            Err(fault) => return Err(format!("{fault}")),
        };
        let home = self.store_home().unwrap_or_default();
        let approvals = Approvals::parse(bytes.as_deref())
            .map_err(|why| format!("{home}/{APPROVALS_FILE}: {why}"))?;
        Ok((approvals, bytes))
    }

    /// Who typed a command that waits for the approvals does not wait any more.
    pub(in crate::agent) fn leave_servers_command(&mut self, key: SessionKey) -> bool {
        let Some(session) = self.sessions.get_mut(&key) else {
            return false;
        };
        let mut waited = session.servers.project.typed.take().is_some();
        for change in &mut session.servers.project.changes {
            waited |= change.says.take().is_some();
        }
        self.leave_prompt(key) || waited
    }

    /// Tells the person something about servers.
    pub(super) fn servers_notice(&mut self, key: SessionKey, title: &str, why: String) {
        let Some(mut session) = self.side.session(key) else {
            return;
        };
        let mut notice = Notice::new(NoticeSeverity::Warning, title);
        notice.description = Some(why);
        session.notify(&SessionUpdate::Notice(notice));
    }
}
