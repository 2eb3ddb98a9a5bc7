//! Which MCP servers there are: those of config.toml, those of the project's file, and what was approved
//! of these. Writes nothing but approvals.

use std::path::{Path, PathBuf};

use reasonix_blocking::ops::{files, resolve};
use reasonix_core::call::{Expect, FileKind, Write};
use reasonix_core::error::IoKind;
use reasonix_core::limits::Limits;
use reasonix_core::mcp::Entry;
use reasonix_core::mcp::approval::{
    APPROVALS_FILE, Approvals, MAX_FILE, PROJECT_FILE, ProjectServer, project_servers,
};
use sha2::{Digest as _, Sha256};

use crate::exit::Failure;
use crate::flags::invocation::McpPlan;
use crate::render::text::one_line;

/// How often a change is tried while others change the same file.
const TRIES: u32 = 4;

/// Where a server is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// In config.toml.
    Config,
    /// In the project's own file.
    Project,
}

/// Whether a server may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Nobody has to say so.
    NotNeeded,
    /// The person said so.
    Approved,
    /// Nobody said so.
    Pending,
    /// The person said so of another entry of this name.
    Changed,
    /// config.toml has one of this name, which counts.
    Hidden,
}

/// One server.
pub struct Server {
    /// What it is.
    pub entry: Entry,
    /// Where it is named.
    pub source: Source,
    /// Whether it may be started.
    pub approval: Approval,
    /// What of it an approval is for.
    pub digest: String,
}

/// The servers of one folder.
pub struct Known {
    /// In the order of their names, config.toml first.
    pub servers: Vec<Server>,
    /// The folder, its links resolved.
    pub project: String,
    /// What is wrong with the project's file, if something is: nothing of it is started.
    pub fault: Option<String>,
    /// Variables that no server sees.
    pub hidden: Vec<String>,
    home: PathBuf,
}

impl Known {
    /// Reads the files.
    pub fn read(plan: &McpPlan) -> Result<Self, Failure> {
        if let Some(fault) = &plan.settings.fault {
            return Err(Failure::usage(fault.clone()));
        }
        let (approvals, _) = stored(&plan.home)?;
        let mut servers: Vec<Server> = plan
            .settings
            .mcp
            .iter()
            .map(|entry| Server {
                digest: entry.digest(),
                entry: entry.clone(),
                source: Source::Config,
                approval: Approval::NotNeeded,
            })
            .collect();
        let (found, fault) = match project_file(&plan.cwd) {
            Ok(found) => (found, None),
            Err(why) => (
                Vec::new(),
                Some(format!("{}/{PROJECT_FILE} is not used: {why}", plan.cwd)),
            ),
        };
        for server in found {
            let name = server.entry.name.as_str();
            let mut said = approvals.of(&plan.cwd).filter(|(known, _)| *known == name);
            let approval = if plan.settings.mcp.iter().any(|it| it.name == name) {
                Approval::Hidden
            } else if approvals.approves(&plan.cwd, name, &server.digest) {
                Approval::Approved
            } else if said.next().is_some() {
                Approval::Changed
            } else {
                Approval::Pending
            };
            servers.push(Server {
                entry: server.entry,
                source: Source::Project,
                approval,
                digest: server.digest,
            });
        }
        Ok(Self {
            servers,
            project: plan.cwd.clone(),
            fault,
            hidden: reasonix_blocking::config::key_names(&plan.settings),
            home: plan.home.clone(),
        })
    }

    /// The same, if the project's file makes sense.
    pub fn whole(&self) -> Result<&Self, Failure> {
        match &self.fault {
            None => Ok(self),
            Some(fault) => Err(Failure::usage(one_line(fault, 400))),
        }
    }

    /// The server of this name that counts.
    pub fn find(&self, name: &str) -> Result<&Server, Failure> {
        let found = self.servers.iter().find(|it| it.entry.name == name);
        found.ok_or_else(|| self.unknown(name))
    }

    /// The server of the project's file with this name.
    pub fn find_in_project(&self, name: &str) -> Result<&Server, Failure> {
        let of = |it: &&Server| it.entry.name == name && it.source == Source::Project;
        match self.servers.iter().find(of) {
            Some(server) if server.approval == Approval::Hidden => Err(Failure::usage(format!(
                "config.toml names a server {} too, and that one counts: nothing is to be approved",
                one_line(name, 80)
            ))),
            Some(server) => Ok(server),
            None if self.servers.iter().any(|it| it.entry.name == name) => {
                Err(Failure::usage(format!(
                    "{} is a server of config.toml, which needs no approval",
                    one_line(name, 80)
                )))
            }
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> Failure {
        let name = one_line(name, 80);
        let mut why = format!("there is no MCP server {name} in config.toml or {PROJECT_FILE}");
        let names = self.servers.iter().map(|it| one_line(&it.entry.name, 80));
        let names: Vec<_> = names.collect();
        if !names.is_empty() {
            why.push_str(&format!("; there are: {}", names.join(", ")));
        }
        if let Some(fault) = &self.fault {
            why.push_str(&format!("; {}", one_line(fault, 400)));
        }
        Failure::usage(why)
    }

    /// Changes what is approved; what others change meanwhile is kept. Returns whether something is
    /// another than before.
    pub fn change(&self, mut act: impl FnMut(&mut Approvals)) -> Result<bool, Failure> {
        let path = self.home.join(APPROVALS_FILE);
        let shown = path.display();
        let text = path
            .to_str()
            .ok_or_else(|| Failure::usage(format!("{shown} has a name that is no text")))?;
        for _ in 0..TRIES {
            let (before, digest) = stored(&self.home)?;
            let mut after = before.clone();
            act(&mut after);
            if after == before {
                return Ok(false);
            }
            let write = Write {
                path: text.into(),
                beneath: None,
                bytes: after.to_bytes(),
                expect: digest.map_or(Expect::Absent, Expect::Digest),
                parents: true,
                private: true,
            };
            match files::write(&write) {
                Ok(()) => return Ok(true),
                Err(fault) if matches!(fault.kind, IoKind::Changed | IoKind::Exists) => {}
                Err(fault) => return Err(Failure::failed(format!("{shown}: {fault}"))),
            }
        }
        Err(Failure::failed(format!(
            "{shown} is changed by somebody else all the time; nothing was written"
        )))
    }
}

/// What was approved, and the digest of the file that says so.
fn stored(home: &Path) -> Result<(Approvals, Option<[u8; 32]>), Failure> {
    let path = home.join(APPROVALS_FILE);
    let bytes = match files::read(&path.to_string_lossy(), None, MAX_FILE) {
        Ok(bytes) => Some(bytes),
        Err(fault) if fault.kind == IoKind::NotFound => None,
        Err(fault) => return Err(Failure::usage(format!("{fault}"))),
    };
    let bytes = bytes.map(|contents| contents.bytes);
    let approvals = Approvals::parse(bytes.as_deref())
        .map_err(|why| Failure::usage(format!("{}: {why}", path.display())))?;
    let digest = bytes.map(|bytes| Sha256::digest(&bytes).into());
    Ok((approvals, digest))
}

/// The servers of the project's file; no file: none.
fn project_file(project: &str) -> Result<Vec<ProjectServer>, String> {
    let path = format!("{project}/{PROJECT_FILE}");
    let found = resolve::resolve(&path).map_err(|fault| fault.to_string())?;
    match found.kind {
        FileKind::Missing if !found.link => return Ok(Vec::new()),
        FileKind::File if !found.link => {}
        FileKind::Missing
        | FileKind::File
        | FileKind::Directory
        | FileKind::Dangling
        | FileKind::Special => return Err("it is a link, or no regular file".into()),
    }
    let bytes = files::read(&path, Some(project), MAX_FILE).map_err(|fault| fault.to_string())?;
    project_servers(&bytes.bytes, Limits::default().max_mcp_servers)
}
