//! A world in memory that answers calls: files, links, special files; processes that a test scripts.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::call::*;
use crate::error::{IoFault, IoKind};
use crate::limits::Limits;
use crate::settings::Host;
use crate::time::Instant;
use crate::tools::*;

/// The world, a session's tools in it, and what they did.
pub(super) struct World {
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) links: BTreeMap<String, String>,
    pub(super) dirs: BTreeSet<String>,
    pub(super) special: BTreeSet<String>,
    /// Fails the next write like this.
    pub(super) write_fault: Option<IoKind>,
    /// Every call that was started.
    pub(super) calls: Vec<Call>,
    /// Every proposal that was made.
    pub(super) proposals: Vec<Proposal>,
    pub(super) ws: Workspace,
    pub(super) state: ToolState,
    pub(super) now: Instant,
}

impl World {
    /// `/w` is the only root; `/out` is beside it.
    pub(super) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(super) fn with(limits: Limits) -> Self {
        let host = Host {
            os: "linux".into(),
            shell: "bash".into(),
            user_home: Some("/home/me".into()),
            home: Some("/home/me/.reasonix".into()),
            tmp: "/tmp".into(),
            sandbox: Default::default(),
        };
        Self {
            files: BTreeMap::new(),
            links: BTreeMap::new(),
            dirs: ["/", "/w", "/out", "/w/src"].map(String::from).into(),
            special: BTreeSet::new(),
            write_fault: None,
            calls: Vec::new(),
            proposals: Vec::new(),
            state: ToolState::new(&limits),
            ws: Workspace::new("/w", vec!["/w".into()], host, limits),
            now: Instant::ZERO,
        }
    }

    pub(super) fn file(mut self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.files.insert(path.into(), bytes.as_ref().to_vec());
        self
    }

    pub(super) fn link(mut self, path: &str, to: &str) -> Self {
        self.links.insert(path.into(), to.into());
        self
    }

    pub(super) fn bytes(&self, path: &str) -> &[u8] {
        self.files.get(path).map_or(b"<missing>", |bytes| bytes)
    }

    pub(super) fn start(&self, name: &str, arguments: &str) -> ToolRun {
        ToolRun::start(name, arguments, &self.ws)
    }

    pub(super) fn step(&mut self, run: &mut ToolRun) -> Step {
        run.next_step(self.now, &self.ws, &mut self.state)
    }

    pub(super) fn news(&mut self, run: &mut ToolRun, news: News<'_>) {
        run.handle_news(self.now, news, &self.ws, &mut self.state);
    }

    pub(super) fn wait(&mut self, millis: u64) {
        self.now = self.now.plus(Duration::from_millis(millis));
    }

    /// A whole call: everything is permitted, file calls are answered.
    #[track_caller]
    pub(super) fn run(&mut self, name: &str, arguments: &str) -> ToolOutcome {
        let mut run = self.start(name, arguments);
        self.drive(&mut run)
    }

    #[track_caller]
    pub(super) fn drive(&mut self, run: &mut ToolRun) -> ToolOutcome {
        for _ in 0..100 {
            match self.step(run) {
                Step::Call(call) => {
                    let news = match self.answer(&call) {
                        Ok(outcome) => News::Done(outcome),
                        Err(fault) => News::Failed(fault),
                    };
                    self.calls.push(call);
                    self.news(run, news);
                }
                Step::Permit(proposal) => {
                    self.proposals.push(proposal);
                    run.permitted();
                }
                Step::Done(outcome) => {
                    assert!(!outcome.text.is_empty());
                    assert!(
                        matches!(self.step(run), Step::Wait),
                        "nothing follows the end"
                    );
                    return outcome;
                }
                Step::Plan(_) => {}
                step => panic!("{step:?}"),
            }
        }
        panic!("no end");
    }

    /// Drives a command to the point where its process is open.
    #[track_caller]
    pub(super) fn until_process(&mut self, run: &mut ToolRun) -> Process {
        for _ in 0..100 {
            match self.step(run) {
                Step::Call(Call::Process(process)) => return process,
                Step::Call(call) => {
                    let outcome = self.answer(&call).expect("resolves");
                    self.news(run, News::Done(outcome));
                }
                Step::Permit(proposal) => {
                    self.proposals.push(proposal);
                    run.permitted();
                }
                step => panic!("{step:?}"),
            }
        }
        panic!("no process");
    }

    /// The path with its links resolved, a few deep; what does not exist is appended.
    fn real(&self, path: &str) -> String {
        let mut real = String::from("/");
        let mut parts: Vec<String> = path.split('/').rev().map(ToString::to_string).collect();
        for _ in 0..100 {
            let Some(part) = parts.pop() else { break };
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    let cut = real.rfind('/').unwrap_or(0);
                    real.truncate(cut.max(1));
                    continue;
                }
                _ => {}
            }
            let next = format!("{}/{part}", real.trim_end_matches('/'));
            match self.links.get(&next) {
                Some(to) => {
                    if to.starts_with('/') {
                        real = "/".into();
                    }
                    parts.extend(to.split('/').rev().map(ToString::to_string));
                }
                None => real = next,
            }
        }
        real
    }

    fn kind(&self, real: &str) -> FileKind {
        if self.files.contains_key(real) {
            FileKind::File
        } else if self.dirs.contains(real) {
            FileKind::Directory
        } else if self.special.contains(real) {
            FileKind::Special
        } else {
            FileKind::Missing
        }
    }

    fn guard(&self, path: &str, beneath: Option<&String>) -> Result<(), IoFault> {
        let escapes = beneath.is_some_and(|root| !self.real(path).starts_with(root.as_str()));
        match escapes {
            true => Err(IoFault::new(IoKind::Escapes, "escapes")),
            false => Ok(()),
        }
    }

    pub(super) fn answer(&mut self, call: &Call) -> Result<Outcome, IoFault> {
        let fault = |kind, why: &str| Err(IoFault::new(kind, why));
        match call {
            Call::Resolve { path } => {
                let real = self.real(path);
                let link = self.links.contains_key(path);
                let kind = match self.kind(&real) {
                    FileKind::Missing if link => FileKind::Dangling,
                    kind => kind,
                };
                let size = self.files.get(&real).map_or(0, |bytes| bytes.len() as u64);
                Ok(Outcome::Resolved(Resolved {
                    real,
                    kind,
                    link,
                    owned: true,
                    links: 1,
                    size,
                }))
            }
            Call::Read { path, beneath, max } => {
                self.guard(path, beneath.as_ref())?;
                match self.files.get(&self.real(path)) {
                    Some(bytes) if bytes.len() as u64 > *max => {
                        fault(IoKind::TooLarge, "larger than the limit")
                    }
                    Some(bytes) => Ok(Outcome::Read(Contents {
                        bytes: bytes.clone(),
                    })),
                    None => fault(IoKind::NotFound, "no such file"),
                }
            }
            Call::Write(write) => {
                self.guard(&write.path, write.beneath.as_ref())?;
                if let Some(kind) = self.write_fault.take() {
                    return fault(kind, "the write failed");
                }
                let real = self.real(&write.path);
                let there = self.files.get(&real);
                match write.expect {
                    Expect::Absent if there.is_some() => return fault(IoKind::Exists, "exists"),
                    Expect::Digest(digest)
                        if there.map(|b| super::super::state::digest(b)) != Some(digest) =>
                    {
                        return fault(IoKind::Changed, "changed");
                    }
                    Expect::Anything | Expect::Absent | Expect::Digest(_) => {}
                }
                self.files.insert(real, write.bytes.clone());
                Ok(Outcome::Written)
            }
            Call::Remove { path, beneath } => {
                self.guard(
                    super::super::paths::split(path).expect("a parent").0,
                    beneath.as_ref(),
                )?;
                match self.links.remove(path).is_some() || self.files.remove(path).is_some() {
                    true => Ok(Outcome::Removed),
                    false => fault(IoKind::NotFound, "no such file"),
                }
            }
            Call::Rename { from, to, .. } => {
                if let Some(target) = self.links.remove(from) {
                    self.links.insert(to.clone(), target);
                } else if let Some(bytes) = self.files.remove(from) {
                    self.files.insert(to.clone(), bytes);
                } else {
                    return fault(IoKind::NotFound, "no such file");
                }
                Ok(Outcome::Renamed)
            }
            Call::List { path, max } => {
                let prefix = format!("{}/", path.trim_end_matches('/'));
                let names = self.files.keys().chain(&self.dirs).chain(self.links.keys());
                let names: BTreeSet<&str> = names
                    .filter_map(|path| path.strip_prefix(&prefix))
                    .filter(|name| !name.is_empty() && !name.contains('/'))
                    .collect();
                let entry = |name: &&str| {
                    let path = format!("{prefix}{name}");
                    Entry {
                        name: name.to_string(),
                        kind: self.kind(&self.real(&path)),
                        link: self.links.contains_key(&path),
                        size: 1,
                    }
                };
                Ok(Outcome::Listed(Listing {
                    entries: names.iter().take(*max).map(entry).collect(),
                    more: names.len().saturating_sub(*max),
                }))
            }
            Call::Search(search) => {
                let hit = |(path, bytes): (&String, &Vec<u8>)| {
                    let text = core::str::from_utf8(bytes).ok()?;
                    let line = match &search.what {
                        Pattern::Glob(_) => None,
                        Pattern::Text { regex, .. } => {
                            let (at, line) =
                                text.lines().enumerate().find(|(_, l)| l.contains(regex))?;
                            Some((at as u64 + 1, line.to_string()))
                        }
                    };
                    path.starts_with(&search.root).then(|| Hit {
                        path: path.clone(),
                        line,
                    })
                };
                let hits = self.files.iter().filter_map(hit);
                let hits: Vec<Hit> = hits.skip(search.skip).collect();
                Ok(Outcome::Found(Found {
                    cut: (hits.len() > search.max_hits).then_some(Cut::Hits),
                    hits: hits.into_iter().take(search.max_hits).collect(),
                }))
            }
            call => panic!("{call:?}"),
        }
    }
}
