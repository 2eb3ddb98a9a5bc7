//! A simulated disk: what a process sees, and what a loss of power would leave of it. Knows no agent
//! and no clock; what it is asked for are the calls that touch files.
//!
//! A call that changes something is done when it begins and told when its news is taken. In between
//! it may have happened or not, which is what a crash decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reasonix_core::call::{
    Append, Call, Contents, Cut, Entry, Expect, FileKind, Found, Hit, Holder, Listing, Outcome,
    Part, Pattern, Resolved, Search, Write,
};
use reasonix_core::error::{IoFault, IoKind};

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A directory.
    Dir,
    /// A file and its bytes.
    File(Vec<u8>),
    /// A link and where it leads.
    Link(String),
    /// A pipe or device.
    Special,
}

/// The simulated disk. A copy of it shares its files with it, until one of the two changes them.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Every file, by absolute path, as processes see them. `/` is there by itself.
    files: Arc<Files>,
    /// The same, as it is after a loss of power.
    lasting: Arc<Files>,
    locks: BTreeSet<String>,
    /// Both as they were before the first change that the process was not told of, and what it has
    /// changed since.
    before: (Arc<Files>, Arc<Files>),
    deeds: Vec<Deed>,
    /// How many changes came before those.
    past: usize,
    /// Whether there may be links.
    linked: bool,
}

type Files = BTreeMap<String, Node>;

/// A call that changed something.
#[derive(Clone, Debug)]
struct Deed {
    call: Arc<Call>,
    told: bool,
}

/// Names a change until it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(usize);

/// What a crash leaves of what was written and not synced, file by file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of it: only the process died.
    All,
    /// Nothing: the power was lost before anything reached the disk by itself.
    Synced,
    /// Of bytes that were added to a file, this many; of anything else nothing.
    Bytes(usize),
    /// The size of the file, but zeros where the bytes should be.
    Zeros,
}

impl Disk {
    /// A disk with this directory and these files in it.
    pub fn with_files(root: &str, files: &[(&str, &str)]) -> Self {
        let mut disk = Self::default();
        make_dirs(Arc::make_mut(&mut disk.files), root);
        for (path, text) in files {
            disk.put(
                &format!("{root}/{path}"),
                Node::File(text.as_bytes().to_vec()),
            );
        }
        disk.settle();
        disk
    }

    /// Puts something at a path, for good.
    pub fn put(&mut self, path: &str, node: Node) {
        self.linked |= matches!(node, Node::Link(_));
        let files = Arc::make_mut(&mut self.files);
        make_dirs(files, parent(path));
        files.insert(path.into(), node);
        self.settle();
    }

    /// Writes a file as another program does while the agent runs.
    pub fn save(&mut self, path: &str, text: &str) {
        let write = Call::Write(Write {
            path: path.into(),
            beneath: None,
            bytes: text.as_bytes().into(),
            expect: Expect::Anything,
            parents: true,
            private: false,
        });
        if let Some((_, Some(ticket))) = self.call(&write) {
            self.told(ticket);
        }
    }

    /// Takes away what is at a path, for good.
    pub fn take(&mut self, path: &str) {
        Arc::make_mut(&mut self.files).remove(path);
        self.settle();
    }

    /// The bytes of a file, if there is one.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        match self.files.get(path) {
            Some(Node::File(bytes)) => Some(bytes),
            Some(Node::Dir | Node::Link(_) | Node::Special) | None => None,
        }
    }

    /// Stands for what is at every path: disks that differ have others.
    pub fn image(&self) -> [u8; 32] {
        use sha2::Digest as _;
        let mut image = sha2::Sha256::new();
        let mut part = |bytes: &[u8]| {
            image.update(bytes.len().to_le_bytes());
            image.update(bytes);
        };
        for (path, node) in self.paths() {
            part(path.as_bytes());
            match node {
                Node::Dir => part(b"dir"),
                Node::File(bytes) => {
                    part(b"file");
                    part(bytes);
                }
                Node::Link(to) => {
                    part(b"link");
                    part(to.as_bytes());
                }
                Node::Special => part(b"special"),
            }
        }
        image.finalize().into()
    }

    /// Every path there is, with what is at it.
    pub fn paths(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.files.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// What would be left of a file if the power were lost now.
    pub fn lasting(&self, path: &str) -> Option<&[u8]> {
        match self.lasting.get(path) {
            Some(Node::File(bytes)) => Some(bytes),
            Some(Node::Dir | Node::Link(_) | Node::Special) | None => None,
        }
    }

    /// Does what a call asks for, if it is one about files, and gives the name of the change if it
    /// made one.
    pub fn call(&mut self, call: &Call) -> Option<(Result<Outcome, IoFault>, Option<Ticket>)> {
        let outcome = match call {
            Call::Resolve { path } => Ok(Outcome::Resolved(self.resolve(path))),
            Call::Read { path, beneath, max } => self.read(path, beneath.as_deref(), *max),
            Call::ReadAt {
                path,
                beneath,
                at,
                max,
            } => self.read_at(path, beneath, *at, *max),
            Call::List { path, max } => self.list(path, *max),
            Call::Search(search) => Ok(Outcome::Found(self.search(search))),
            Call::Lock { path, beneath } => self.lock(path, beneath),
            Call::Unlock { path } => {
                self.locks.remove(path);
                Ok(Outcome::Unlocked)
            }
            Call::Write(_)
            | Call::Remove { .. }
            | Call::Rename { .. }
            | Call::Append(_)
            | Call::RemoveTree { .. } => {
                let outcome = self.change(call);
                let told = outcome.is_err();
                if !told {
                    let call = Arc::new(call.clone());
                    let ticket = Ticket(self.past + self.deeds.len());
                    self.deeds.push(Deed { call, told });
                    return Some((outcome, Some(ticket)));
                }
                outcome
            }
            Call::Http(_) | Call::Process(_) | Call::Reconfigure | Call::Custom(_) => {
                return None;
            }
        };
        Some((outcome, None))
    }

    /// The process hears that this change is done: what it promised holds from here on.
    pub fn told(&mut self, ticket: Ticket) {
        let at = ticket.0.checked_sub(self.past);
        let Some(deed) = at.and_then(|at| self.deeds.get_mut(at)) else {
            return;
        };
        deed.told = true;
        let call = deed.call.clone();
        self.make_last(&call);
        self.advance();
    }

    /// What is told, with all before it, no crash can change any more.
    fn advance(&mut self) {
        let sure = self.deeds.iter().take_while(|deed| deed.told).count();
        if sure == 0 {
            return;
        }
        let (files, lasting) = std::mem::take(&mut self.before);
        let mut then = Self {
            files,
            lasting,
            linked: self.linked,
            ..Self::default()
        };
        for deed in self.deeds.drain(..sure) {
            // It went well the first time.
            let _ = then.change(&deed.call);
            then.make_last(&deed.call);
        }
        self.past += sure;
        self.before = (then.files, then.lasting);
    }

    /// Another process takes this lock.
    pub fn lock_by_another(&mut self, path: &str) {
        self.locks.insert(path.into());
    }

    /// How many changes there were since the process began, and how many of them it was told.
    pub fn changes(&self) -> (usize, usize) {
        let told = self.deeds.iter().filter(|deed| deed.told);
        (self.past + self.deeds.len(), self.past + told.count())
    }

    /// Bytes of a file that a loss of power could take.
    pub fn unsynced(&self, path: &str) -> usize {
        let all = self.file(path).map_or(0, <[u8]>::len);
        all.saturating_sub(self.lasting(path).map_or(0, <[u8]>::len))
    }

    /// The disk as the next process finds it. `begun`: what was not told has happened. `keep` says
    /// what is left of each file that was not synced. Locks die with the process.
    pub fn after_crash(&self, begun: bool, keep: impl Fn(&str) -> Keep) -> Self {
        let (files, lasting) = self.before.clone();
        let mut disk = Self {
            files,
            lasting,
            linked: self.linked,
            ..Self::default()
        };
        for deed in &self.deeds {
            if deed.told || begun {
                // It went well the first time, or would have.
                let _ = disk.change(&deed.call);
            }
            if deed.told {
                disk.make_last(&deed.call);
            }
        }
        let paths: BTreeSet<&String> = disk.files.keys().chain(disk.lasting.keys()).collect();
        let mut left = Files::new();
        for path in paths {
            let (now, lasting) = (disk.files.get(path), disk.lasting.get(path));
            if let Some(node) = survives(now, lasting, keep(path)) {
                make_dirs(&mut left, parent(path));
                left.insert(path.clone(), node);
            }
        }
        // A directory whose files are all gone may be gone too; one with a file is there.
        disk.files = Arc::new(left);
        disk.settle();
        disk
    }

    /// Everything there is lasts, and a process begins.
    fn settle(&mut self) {
        self.lasting = self.files.clone();
        self.before = (self.files.clone(), self.lasting.clone());
        self.past += self.deeds.len();
        self.deeds.clear();
        self.locks.clear();
    }

    fn change(&mut self, call: &Call) -> Result<Outcome, IoFault> {
        match call {
            Call::Write(write) => self.write(write),
            Call::Remove { path, beneath } => self.remove(path, beneath.as_deref()),
            Call::Rename { from, to, .. } => self.rename(from, to),
            Call::Append(append) => self.append(append),
            Call::RemoveTree { path, beneath } => self.remove_tree(path, beneath),
            _ => Err(IoFault::new(IoKind::Unsupported, "not a change")),
        }
    }

    /// What a change promised when it was told as done.
    fn make_last(&mut self, call: &Call) {
        match call {
            Call::Append(append) if !append.durable => {}
            Call::Append(Append { path, .. }) | Call::Write(Write { path, .. }) => {
                let (real, _) = self.real(path);
                if let Some(node) = self.files.get(&real).cloned() {
                    let lasting = Arc::make_mut(&mut self.lasting);
                    make_dirs(lasting, parent(&real));
                    lasting.insert(real, node);
                }
            }
            Call::Remove { path, .. } | Call::RemoveTree { path, .. } => {
                let inside = format!("{path}/");
                let files = &self.files;
                Arc::make_mut(&mut self.lasting).retain(|at, _| {
                    (at != path && !at.starts_with(&inside)) || files.contains_key(at)
                });
            }
            Call::Rename { from, to, .. } => {
                let lasting = Arc::make_mut(&mut self.lasting);
                lasting.remove(from);
                if let Some(node) = self.files.get(to).cloned() {
                    make_dirs(lasting, parent(to));
                    lasting.insert(to.clone(), node);
                }
            }
            _ => {}
        }
    }

    fn read_at(&self, path: &str, beneath: &str, at: u64, max: usize) -> Result<Outcome, IoFault> {
        let real = self.inside(path, Some(beneath))?;
        match self.files.get(&real) {
            Some(Node::File(bytes)) => {
                let from = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                let to = from.saturating_add(max).min(bytes.len());
                Ok(Outcome::Part(Part {
                    bytes: bytes[from..to].to_vec(),
                    size: bytes.len() as u64,
                }))
            }
            Some(Node::Dir | Node::Link(_) | Node::Special) => Err(no_file(path)),
            None => Err(missing(path)),
        }
    }

    fn append(&mut self, append: &Append) -> Result<Outcome, IoFault> {
        let real = self.inside(&append.path, Some(&append.beneath))?;
        let files = Arc::make_mut(&mut self.files);
        make_dirs(files, parent(&real));
        match files.entry(real).or_insert(Node::File(Vec::new())) {
            Node::File(bytes) => bytes.extend_from_slice(&append.bytes),
            Node::Dir | Node::Link(_) | Node::Special => return Err(no_file(&append.path)),
        }
        Ok(Outcome::Appended)
    }

    fn lock(&mut self, path: &str, beneath: &str) -> Result<Outcome, IoFault> {
        let real = self.inside(path, Some(beneath))?;
        if !self.locks.insert(real.clone()) {
            return Ok(Outcome::Held(Holder::default()));
        }
        let files = Arc::make_mut(&mut self.files);
        make_dirs(files, parent(&real));
        files.entry(real).or_insert(Node::File(Vec::new()));
        Ok(Outcome::Locked)
    }

    fn remove_tree(&mut self, path: &str, beneath: &str) -> Result<Outcome, IoFault> {
        let real = self.inside(path, Some(beneath))?;
        let inside = format!("{real}/");
        let gone = |at: &String| *at == real || at.starts_with(&inside);
        Arc::make_mut(&mut self.files).retain(|at, _| !gone(at));
        self.locks.retain(|at| !gone(at));
        Ok(Outcome::Removed)
    }

    /// The path with its links followed, at most 32 of them.
    fn real(&self, path: &str) -> (String, bool) {
        // Most paths are clean and most disks have no links.
        let plain = |part: &str| !matches!(part, "" | "." | "..");
        if !self.linked
            && let Some(rest) = path.strip_prefix('/')
            && rest.split('/').all(plain)
        {
            return (path.into(), false);
        }
        let mut real = String::new();
        let mut waiting: Vec<String> = path.rsplit('/').map(String::from).collect();
        let mut dangling = false;
        for _ in 0..256 {
            let Some(part) = waiting.pop() else { break };
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    real.truncate(real.rfind('/').unwrap_or(0));
                    continue;
                }
                part => {
                    real.push('/');
                    real.push_str(part);
                }
            }
            if let Some(Node::Link(target)) = self.files.get(&real) {
                dangling = true;
                match target.starts_with('/') {
                    true => real.clear(),
                    false => real.truncate(real.rfind('/').unwrap_or(0)),
                }
                waiting.extend(target.rsplit('/').map(String::from));
            } else if self.files.contains_key(&real) {
                dangling = false;
            }
        }
        if real.is_empty() {
            real.push('/');
        }
        (real, dangling)
    }

    fn kind(&self, real: &str) -> FileKind {
        match self.files.get(real) {
            _ if real == "/" => FileKind::Directory,
            Some(Node::Dir) => FileKind::Directory,
            Some(Node::File(_)) => FileKind::File,
            Some(Node::Link(_)) => FileKind::Dangling,
            Some(Node::Special) => FileKind::Special,
            None => FileKind::Missing,
        }
    }

    fn size(&self, real: &str) -> u64 {
        self.file(real).map_or(0, |bytes| bytes.len() as u64)
    }

    fn resolve(&self, path: &str) -> Resolved {
        let (real, dangling) = self.real(path);
        let link = matches!(self.files.get(path), Some(Node::Link(_)));
        let mut kind = self.kind(&real);
        if kind == FileKind::Missing && dangling {
            kind = FileKind::Dangling;
        }
        Resolved {
            size: self.size(&real),
            real,
            kind,
            link,
            owned: true,
            links: 1,
        }
    }

    fn inside(&self, path: &str, beneath: Option<&str>) -> Result<String, IoFault> {
        let (real, _) = self.real(path);
        match beneath {
            Some(root) if !real.starts_with(&format!("{root}/")) && real != root => {
                Err(IoFault::new(IoKind::Escapes, format!("{path} leads out")))
            }
            _ => Ok(real),
        }
    }

    fn read(&self, path: &str, beneath: Option<&str>, max: u64) -> Result<Outcome, IoFault> {
        let real = self.inside(path, beneath)?;
        match self.files.get(&real) {
            Some(Node::File(bytes)) if bytes.len() as u64 > max => Err(IoFault::new(
                IoKind::TooLarge,
                format!("{path} is too large"),
            )),
            Some(Node::File(bytes)) => Ok(Outcome::Read(Contents {
                bytes: bytes.clone(),
            })),
            Some(Node::Dir | Node::Link(_) | Node::Special) => Err(no_file(path)),
            None => Err(missing(path)),
        }
    }

    fn write(&mut self, write: &Write) -> Result<Outcome, IoFault> {
        let real = self.inside(&write.path, write.beneath.as_deref())?;
        let before = self.file(&real);
        match (&write.expect, before) {
            (Expect::Anything, _) | (Expect::Absent, None) => {}
            (Expect::Absent, Some(_)) => {
                return Err(IoFault::new(IoKind::Exists, format!("{real} exists")));
            }
            (Expect::Digest(digest), Some(bytes)) if sha256(bytes) == *digest => {}
            (Expect::Digest(_), _) => {
                return Err(IoFault::new(IoKind::Changed, format!("{real} changed")));
            }
        }
        let up = parent(&real).to_string();
        match self.kind(&up) {
            FileKind::Directory => {}
            FileKind::Missing if write.parents => {
                make_dirs(Arc::make_mut(&mut self.files), &up);
            }
            FileKind::Missing => return Err(missing(&up)),
            FileKind::File | FileKind::Dangling | FileKind::Special => {
                return Err(IoFault::new(
                    IoKind::WrongKind,
                    format!("{up} is no directory"),
                ));
            }
        }
        Arc::make_mut(&mut self.files).insert(real, Node::File(write.bytes.clone()));
        Ok(Outcome::Written)
    }

    fn remove(&mut self, path: &str, beneath: Option<&str>) -> Result<Outcome, IoFault> {
        let real = match self.files.get(path) {
            Some(Node::Link(_)) => path.to_string(),
            Some(Node::Dir | Node::File(_) | Node::Special) | None => self.inside(path, beneath)?,
        };
        match self.files.get(&real) {
            Some(Node::Dir) => Err(IoFault::new(IoKind::WrongKind, "a directory")),
            Some(Node::File(_) | Node::Link(_) | Node::Special) => {
                Arc::make_mut(&mut self.files).remove(&real);
                Ok(Outcome::Removed)
            }
            None => Err(missing(path)),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<Outcome, IoFault> {
        if self.files.contains_key(to) {
            return Err(IoFault::new(IoKind::Exists, format!("{to} exists")));
        }
        let files = Arc::make_mut(&mut self.files);
        let node = files.remove(from).ok_or_else(|| missing(from))?;
        make_dirs(files, parent(to));
        files.insert(to.into(), node);
        Ok(Outcome::Renamed)
    }

    fn list(&self, path: &str, max: usize) -> Result<Outcome, IoFault> {
        let (real, _) = self.real(path);
        match self.kind(&real) {
            FileKind::Directory => {}
            FileKind::Missing => return Err(missing(path)),
            FileKind::File | FileKind::Dangling | FileKind::Special => {
                return Err(IoFault::new(
                    IoKind::WrongKind,
                    format!("{path} is no directory"),
                ));
            }
        }
        let inside = if real == "/" {
            real
        } else {
            format!("{real}/")
        };
        let names: Vec<_> = self
            .files
            .keys()
            .filter_map(|path| path.strip_prefix(&inside))
            .filter(|name| !name.is_empty() && !name.contains('/'))
            .collect();
        let entries = names.iter().take(max).map(|name| {
            let path = format!("{inside}{name}");
            let resolved = self.resolve(&path);
            Entry {
                name: name.to_string(),
                kind: resolved.kind,
                link: resolved.link,
                size: resolved.size,
            }
        });
        Ok(Outcome::Listed(Listing {
            entries: entries.collect(),
            more: names.len().saturating_sub(max),
        }))
    }

    /// Patterns are taken literally, `*` apart: enough for tests of what is done with the hits.
    fn search(&self, search: &Search) -> Found {
        let inside = format!("{}/", search.root);
        let files = self.files.iter().filter_map(|(path, node)| match node {
            Node::File(bytes) if path.starts_with(&inside) || *path == search.root => {
                Some((path, bytes))
            }
            Node::File(_) | Node::Dir | Node::Link(_) | Node::Special => None,
        });
        let mut hits = Vec::new();
        for (path, bytes) in files {
            match &search.what {
                Pattern::Glob(glob) => {
                    if fits(glob, path.strip_prefix(&inside).unwrap_or(path)) {
                        hits.push(Hit {
                            path: path.clone(),
                            line: None,
                        });
                    }
                }
                Pattern::Text { regex, .. } => {
                    let text = String::from_utf8_lossy(bytes);
                    let lines = text
                        .lines()
                        .zip(1..)
                        .filter(|(line, _)| line.contains(regex));
                    hits.extend(lines.map(|(line, number)| Hit {
                        path: path.clone(),
                        line: Some((number, line.into())),
                    }));
                }
            }
        }
        hits.drain(..search.skip.min(hits.len()));
        let cut = (hits.len() > search.max_hits).then_some(Cut::Hits);
        hits.truncate(search.max_hits);
        Found { hits, cut }
    }
}

/// What is left of a path.
fn survives(now: Option<&Node>, lasting: Option<&Node>, keep: Keep) -> Option<Node> {
    if now == lasting || keep == Keep::All {
        return now.cloned();
    }
    let tail = match (now, lasting) {
        (Some(Node::File(now)), Some(Node::File(before))) => now.strip_prefix(&before[..]),
        (Some(Node::File(now)), None) => Some(&now[..]),
        _ => None,
    };
    let (Some(Node::File(all)), Some(tail)) = (now, tail) else {
        return lasting.cloned();
    };
    let before = &all[..all.len() - tail.len()];
    let more = match keep {
        Keep::All | Keep::Synced => return lasting.cloned(),
        Keep::Bytes(many) => tail[..many.min(tail.len())].to_vec(),
        Keep::Zeros => vec![0; tail.len()],
    };
    Some(Node::File([before, &more].concat()))
}

fn make_dirs(files: &mut Files, path: &str) {
    if files.contains_key(path) {
        // With all above it.
        return;
    }
    for (at, _) in path.match_indices('/').skip(1) {
        files.entry(path[..at].into()).or_insert(Node::Dir);
    }
    if path != "/" && !path.is_empty() {
        files.entry(path.into()).or_insert(Node::Dir);
    }
}

fn no_file(path: &str) -> IoFault {
    IoFault::new(IoKind::WrongKind, format!("{path} is no file"))
}

fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

fn missing(path: &str) -> IoFault {
    IoFault::new(IoKind::NotFound, format!("{path} does not exist"))
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).into()
}

/// Whether `name` fits `glob`, in which `*` stands for anything.
fn fits(glob: &str, name: &str) -> bool {
    match glob.split_once('*') {
        None => glob == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|tail| {
            let rest = rest.trim_start_matches(['*', '/']);
            (0..=tail.len())
                .filter(|at| tail.is_char_boundary(*at))
                .any(|at| fits(rest, &tail[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_where_they_point_and_roots_hold() {
        let mut disk = Disk::with_files("/w", &[("a/real.txt", "x"), ("../out.txt", "secret")]);
        disk.put("/out.txt", Node::File(b"o".to_vec()));
        disk.put("/w/cur", Node::Link("a/real.txt".into()));
        disk.put("/w/leak", Node::Link("/out.txt".into()));
        for (path, real, kind) in [
            ("/w/cur", "/w/a/real.txt", FileKind::File),
            ("/w/a/../cur", "/w/a/real.txt", FileKind::File),
            ("/w/none/b", "/w/none/b", FileKind::Missing),
            ("/", "/", FileKind::Directory),
        ] {
            let resolved = disk.resolve(path);
            assert_eq!(
                (resolved.real.as_str(), resolved.kind),
                (real, kind),
                "{path}"
            );
        }
        let fault = disk.read("/w/leak", Some("/w"), 9).unwrap_err();
        assert_eq!(fault.kind, IoKind::Escapes);
    }

    fn append(path: &str, text: &str, durable: bool) -> Call {
        Call::Append(Append {
            path: path.into(),
            beneath: "/h".into(),
            bytes: text.into(),
            durable,
        })
    }

    /// Does these, and tells all but the last `untold`.
    fn done(calls: &[Call], untold: usize) -> Disk {
        let mut disk = Disk::default();
        let tickets: Vec<_> = calls
            .iter()
            .map(|call| {
                let (outcome, ticket) = disk.call(call).expect("a call about files");
                outcome.expect("it goes well");
                ticket.expect("it changes something")
            })
            .collect();
        for ticket in &tickets[..tickets.len() - untold] {
            disk.told(*ticket);
        }
        disk
    }

    #[test]
    fn a_crash_leaves_what_was_synced_and_what_it_likes_of_the_rest() {
        let first = append("/h/s/t", "one\n", true);
        let second = append("/h/s/t", "tw\u{f6}\n", false);
        let both = [first.clone(), second.clone()];
        #[track_caller]
        fn check(disk: &Disk, begun: bool, keep: Keep, left: Option<&[u8]>) {
            let after = disk.after_crash(begun, |_| keep);
            assert_eq!(after.file("/h/s/t"), left, "{begun} {keep:?}");
            assert_eq!(
                after.lasting("/h/s/t"),
                left,
                "what the next one finds lasts"
            );
        }
        let disk = done(&both, 0);
        check(&disk, true, Keep::All, Some("one\ntw\u{f6}\n".as_bytes()));
        check(&disk, true, Keep::Synced, Some(b"one\n"));
        check(&disk, true, Keep::Bytes(3), Some(b"one\ntw\xc3"));
        check(&disk, true, Keep::Zeros, Some(b"one\n\0\0\0\0\0"));
        // Not told: it may not have happened, and its sync is promised to nobody.
        let disk = done(&both[..1], 1);
        check(&disk, false, Keep::All, None);
        check(&disk, true, Keep::All, Some(b"one\n"));
        check(&disk, true, Keep::Synced, None);
        check(&disk, true, Keep::Bytes(2), Some(b"on"));
        // A sync takes what came before it along.
        let disk = done(&[second, first], 0);
        check(
            &disk,
            true,
            Keep::Synced,
            Some("tw\u{f6}\none\n".as_bytes()),
        );
    }

    #[test]
    fn a_write_is_whole_or_not_there_and_a_removal_that_was_told_stays() {
        let write = |text: &str| {
            Call::Write(Write {
                path: "/h/state".into(),
                beneath: None,
                bytes: text.into(),
                expect: Expect::Anything,
                parents: true,
                private: false,
            })
        };
        let disk = done(&[write("old"), write("new")], 1);
        for keep in [Keep::Synced, Keep::Bytes(1), Keep::Zeros] {
            let after = disk.after_crash(true, |_| keep);
            assert_eq!(after.file("/h/state"), Some(&b"old"[..]), "{keep:?}");
        }
        let after = disk.after_crash(true, |_| Keep::All);
        assert_eq!(after.file("/h/state"), Some(&b"new"[..]));
        let tree = Call::RemoveTree {
            path: "/h".into(),
            beneath: "/h".into(),
        };
        let gone = done(&[write("old"), tree.clone()], 0);
        let after = gone.after_crash(false, |_| Keep::Synced);
        assert_eq!(after.file("/h/state"), None);
        let perhaps = done(&[write("old"), tree], 1);
        for (keep, left) in [(Keep::All, None), (Keep::Synced, Some(&b"old"[..]))] {
            assert_eq!(perhaps.after_crash(true, |_| keep).file("/h/state"), left);
        }
    }

    #[test]
    fn a_lock_is_held_once_and_dies_with_its_process() {
        let mut disk = Disk::default();
        let lock = Call::Lock {
            path: "/h/s/lock".into(),
            beneath: "/h".into(),
        };
        let take = |disk: &mut Disk| disk.call(&lock).expect("a call about files").0;
        assert_eq!(take(&mut disk), Ok(Outcome::Locked));
        assert_eq!(take(&mut disk), Ok(Outcome::Held(Holder::default())));
        let mut after = disk.after_crash(true, |_| Keep::All);
        assert_eq!(take(&mut after), Ok(Outcome::Locked));
    }
}
