//! A simulated host: files, commands and an HTTP provider as data, answering the call table. Knows
//! no agent: calls in, news out, each with a time at which it may be delivered.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use reasonix_core::call::{
    Call, Contents, Cut, Entry, Exit, Expect, FileKind, Found, Hit, HttpRequest, Listing, News,
    Opened, Outcome, Pattern, Program, Resolved, Search, Stream, Write,
};
use reasonix_core::error::{IoFault, IoKind};
use reasonix_core::ids::CallId;
use reasonix_core::time::Instant;

use crate::provider::{Answer, Step};

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// One piece of what a call says, and how long after the piece before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The pause before it.
    pub after: Duration,
    /// What is said.
    pub say: Say,
}

/// [`News`] that own their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Say {
    /// The head of an HTTP answer.
    Opened(Opened),
    /// Output.
    Bytes(Stream, Vec<u8>),
    /// Input was taken.
    Fed(usize),
    /// The end, well.
    Done(Outcome),
    /// The end, badly.
    Failed(IoFault),
}

impl Say {
    /// The same, as the machine takes it.
    pub fn news(&self) -> News<'_> {
        match self {
            Self::Opened(opened) => News::Opened(opened.clone()),
            Self::Bytes(stream, bytes) => News::Bytes {
                stream: *stream,
                bytes,
            },
            Self::Fed(bytes) => News::Fed(*bytes),
            Self::Done(outcome) => News::Done(outcome.clone()),
            Self::Failed(fault) => News::Failed(fault.clone()),
        }
    }

    fn ends(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Failed(_))
    }
}

/// A command the world knows: its output, how long it takes, how it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// A command line that contains this is this command.
    pub contains: String,
    /// What it prints.
    pub output: Vec<u8>,
    /// How long it takes; none: until it is aborted.
    pub takes: Option<Duration>,
    /// Its exit code.
    pub code: i32,
}

/// The simulated host.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Every file, by absolute path. `/` is there by itself.
    pub files: BTreeMap<String, Node>,
    /// Commands; the first that fits counts. Others end with 127.
    pub commands: Vec<Command>,
    /// Answers of the provider, one a request. When none is left it refuses the connection.
    pub answers: VecDeque<Vec<Piece>>,
    /// Answers by what the last user message contains; the n-th answer of a turn is the n-th of the
    /// branch, and the last one is given again. They come before `answers`.
    pub branches: Vec<(String, Vec<Vec<Piece>>)>,
    /// Every HTTP request that was made.
    pub requests: Vec<HttpRequest>,
    /// Every command that was started.
    pub ran: Vec<String>,
    /// Calls that never say anything until they are aborted.
    pub deaf: bool,
    /// How long an aborted call takes to say so.
    pub abort_takes: Duration,
    /// Scatters when calls answer; 0: at once, in the order they were made.
    pub scatter: u64,
    running: BTreeMap<CallId, Running>,
    most_running: usize,
}

#[derive(Clone, Debug)]
struct Running {
    pieces: VecDeque<Piece>,
    due: Instant,
}

impl World {
    /// A world with this directory and these files in it.
    pub fn with_files(root: &str, files: &[(&str, &str)]) -> Self {
        let mut world = Self::default();
        world.make_dirs(root);
        for (path, text) in files {
            let path = format!("{root}/{path}");
            world.make_dirs(parent(&path));
            world
                .files
                .insert(path, Node::File(text.as_bytes().to_vec()));
        }
        world
    }

    /// The same world, its calls answering at scattered times.
    #[must_use]
    pub fn scattered(mut self, by: u64) -> Self {
        self.scatter = by;
        self
    }

    /// The bytes of a file, if there is one.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        match self.files.get(path) {
            Some(Node::File(bytes)) => Some(bytes),
            Some(Node::Dir | Node::Link(_) | Node::Special) | None => None,
        }
    }

    /// Calls that have not ended.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Whether this call has not ended.
    pub fn is_running(&self, id: CallId) -> bool {
        self.running.contains_key(&id)
    }

    /// The most calls that ran at once.
    pub fn most_running(&self) -> usize {
        self.most_running
    }

    /// Begins a call.
    pub fn start(&mut self, now: Instant, id: CallId, call: &Call) {
        let mut pieces = self.answer(call);
        if self.deaf {
            pieces.clear();
        }
        let mut due = now.plus(self.jitter(id));
        if let Some(first) = pieces.first() {
            due = due.plus(first.after);
        }
        let pieces = pieces.into();
        let before = self.running.insert(id, Running { pieces, due });
        assert!(before.is_none(), "call {id} was started twice");
        self.most_running = self.most_running.max(self.running.len());
    }

    /// Input for a process: taken whole.
    pub fn feed(&mut self, now: Instant, id: CallId, bytes: usize) {
        if let Some(run) = self.running.get_mut(&id) {
            run.due = run.due.min(now);
            run.pieces.push_front(at_once(Say::Fed(bytes)));
        }
    }

    /// Ends a call; it still says so.
    pub fn abort(&mut self, now: Instant, id: CallId) {
        if let Some(run) = self.running.get_mut(&id) {
            run.pieces = [at_once(Say::Failed(IoFault::new(
                IoKind::Aborted,
                "aborted",
            )))]
            .into();
            run.due = now.plus(self.abort_takes);
        }
    }

    /// When the next thing will be said, among the calls that `room` gives a byte for.
    pub fn next_due(&self, room: impl Fn(CallId) -> usize) -> Option<(Instant, CallId)> {
        self.running
            .iter()
            .filter(
                |(id, run)| match run.pieces.front().map(|piece| &piece.say) {
                    Some(Say::Bytes(..)) => room(**id) > 0,
                    Some(_) => true,
                    None => false,
                },
            )
            .map(|(id, run)| (run.due, *id))
            .min()
    }

    /// Takes the next thing a call says, at most `room` bytes of it.
    pub fn take(&mut self, now: Instant, id: CallId, room: usize) -> Option<Say> {
        let run = self.running.get_mut(&id)?;
        let front = run.pieces.front_mut()?;
        if let Say::Bytes(stream, bytes) = &mut front.say
            && bytes.len() > room
        {
            let rest = bytes.split_off(room);
            let head = std::mem::replace(bytes, rest);
            return Some(Say::Bytes(*stream, head));
        }
        let said = run.pieces.pop_front()?.say;
        if said.ends() {
            self.running.remove(&id);
        } else if let Some(next) = run.pieces.front() {
            run.due = now.plus(next.after);
        }
        Some(said)
    }

    fn jitter(&self, id: CallId) -> Duration {
        if self.scatter == 0 {
            return Duration::ZERO;
        }
        let mixed = (id.number() ^ self.scatter).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        Duration::from_micros(mixed % 5000)
    }

    fn answer(&mut self, call: &Call) -> Vec<Piece> {
        let outcome = match call {
            Call::Http(request) => return self.http(request),
            Call::Process(process) => {
                let line = match &process.program {
                    Program::Shell(line) => line.clone(),
                    Program::Argv(words) => words.join(" "),
                };
                return self.process(line, &process.cwd);
            }
            Call::Resolve { path } => Ok(Outcome::Resolved(self.resolve(path))),
            Call::Read { path, beneath, max } => self.read(path, beneath.as_deref(), *max),
            Call::Write(write) => self.write(write),
            Call::Remove { path, beneath } => self.remove(path, beneath.as_deref()),
            Call::Rename { from, to, .. } => self.rename(from, to),
            Call::List { path, max } => self.list(path, *max),
            Call::Search(search) => Ok(Outcome::Found(self.search(search))),
            Call::ReadAt { .. }
            | Call::Append(_)
            | Call::Lock { .. }
            | Call::Unlock { .. }
            | Call::RemoveTree { .. } => Err(IoFault::new(IoKind::Unsupported, "no store")),
            Call::Reconfigure => Ok(Outcome::Reconfigured(Ok(Box::default()))),
            Call::Custom { name, .. } => Ok(Outcome::Custom(Err(format!("no tool {name}")))),
        };
        vec![at_once(match outcome {
            Ok(outcome) => Say::Done(outcome),
            Err(fault) => Say::Failed(fault),
        })]
    }

    fn http(&mut self, request: &HttpRequest) -> Vec<Piece> {
        self.requests.push(request.clone());
        if let Some(pieces) = self.branch(&request.body) {
            return pieces;
        }
        self.answers.pop_front().unwrap_or_else(|| {
            let fault = IoFault::new(IoKind::Unreachable, "connection refused");
            vec![at_once(Say::Failed(fault))]
        })
    }

    fn branch(&self, body: &[u8]) -> Option<Vec<Piece>> {
        let body: serde_json::Value = serde_json::from_slice(body).ok()?;
        let messages = body["messages"].as_array()?;
        let last = messages
            .iter()
            .rposition(|message| message["role"] == "user")?;
        let text = messages[last]["content"].to_string();
        let nth = messages[last..]
            .iter()
            .filter(|message| message["role"] == "assistant")
            .count();
        let (_, answers) = self
            .branches
            .iter()
            .find(|(contains, _)| text.contains(contains))?;
        answers.get(nth).or(answers.last()).cloned()
    }

    fn process(&mut self, line: String, cwd: &str) -> Vec<Piece> {
        let known = self
            .commands
            .iter()
            .find(|command| line.contains(&command.contains));
        let (output, takes, code) = match known {
            Some(command) => (command.output.clone(), command.takes, command.code),
            None if line.trim() == "pwd" => {
                (format!("{cwd}\n").into_bytes(), Some(Duration::ZERO), 0)
            }
            None => (b"not found\n".to_vec(), Some(Duration::ZERO), 127),
        };
        self.ran.push(line);
        let mut pieces = Vec::new();
        if !output.is_empty() {
            pieces.push(at_once(Say::Bytes(Stream::Out, output)));
        }
        if let Some(after) = takes {
            let exit = Exit {
                code: Some(code),
                signal: None,
                dropped: 0,
                left: false,
            };
            pieces.push(Piece {
                after,
                say: Say::Done(Outcome::Exited(exit)),
            });
        }
        pieces
    }

    /// The path with its links followed, at most 32 of them.
    fn real(&self, path: &str) -> (String, bool) {
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
            Some(Node::Dir | Node::Link(_) | Node::Special) => Err(IoFault::new(
                IoKind::WrongKind,
                format!("{path} is no file"),
            )),
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
            FileKind::Missing if write.parents => self.make_dirs(&up),
            FileKind::Missing => return Err(missing(&up)),
            FileKind::File | FileKind::Dangling | FileKind::Special => {
                return Err(IoFault::new(
                    IoKind::WrongKind,
                    format!("{up} is no directory"),
                ));
            }
        }
        self.files.insert(real, Node::File(write.bytes.clone()));
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
                self.files.remove(&real);
                Ok(Outcome::Removed)
            }
            None => Err(missing(path)),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<Outcome, IoFault> {
        if self.files.contains_key(to) {
            return Err(IoFault::new(IoKind::Exists, format!("{to} exists")));
        }
        let node = self.files.remove(from).ok_or_else(|| missing(from))?;
        self.make_dirs(parent(to));
        self.files.insert(to.into(), node);
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
        let cut = (hits.len() > search.max_hits).then_some(Cut::Hits);
        hits.truncate(search.max_hits);
        Found { hits, cut }
    }

    fn make_dirs(&mut self, path: &str) {
        for (at, _) in path.match_indices('/').skip(1) {
            self.files.entry(path[..at].into()).or_insert(Node::Dir);
        }
        if path != "/" && !path.is_empty() {
            self.files.entry(path.into()).or_insert(Node::Dir);
        }
    }
}

/// An answer of a scripted provider, as the simulated world gives it.
pub fn http(answer: &Answer) -> Vec<Piece> {
    let mut pieces = vec![at_once(Say::Opened(Opened {
        status: answer.status,
        headers: vec![("content-type".into(), answer.kind.into())],
    }))];
    let mut after = Duration::ZERO;
    for step in &answer.steps {
        let bytes = |bytes: &[u8]| Say::Bytes(Stream::Out, bytes.to_vec());
        let mut say = |say| {
            let after = std::mem::take(&mut after);
            pieces.push(Piece { after, say });
        };
        match step {
            Step::Bytes(all) if all.is_empty() => {}
            Step::Bytes(all) => say(bytes(all)),
            Step::Dribble(all) => all.chunks(1).for_each(|one| say(bytes(one))),
            Step::Pause(time) => after += *time,
            Step::Cut => {
                say(Say::Failed(IoFault::new(
                    IoKind::Unreachable,
                    "connection reset",
                )));
                return pieces;
            }
            Step::Hang | Step::HangThenReset => return pieces,
        }
    }
    pieces.push(Piece {
        after,
        say: Say::Done(Outcome::Ended),
    });
    pieces
}

/// Something that is said without a pause.
pub fn at_once(say: Say) -> Piece {
    Piece {
        after: Duration::ZERO,
        say,
    }
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
        let mut world = World::with_files("/w", &[("a/real.txt", "x"), ("../out.txt", "secret")]);
        world
            .files
            .insert("/out.txt".into(), Node::File(b"o".to_vec()));
        world
            .files
            .insert("/w/cur".into(), Node::Link("a/real.txt".into()));
        world
            .files
            .insert("/w/leak".into(), Node::Link("/out.txt".into()));
        for (path, real, kind) in [
            ("/w/cur", "/w/a/real.txt", FileKind::File),
            ("/w/a/../cur", "/w/a/real.txt", FileKind::File),
            ("/w/none/b", "/w/none/b", FileKind::Missing),
            ("/", "/", FileKind::Directory),
        ] {
            let resolved = world.resolve(path);
            assert_eq!(
                (resolved.real.as_str(), resolved.kind),
                (real, kind),
                "{path}"
            );
        }
        let fault = world.read("/w/leak", Some("/w"), 9).unwrap_err();
        assert_eq!(fault.kind, IoKind::Escapes);
    }

    #[test]
    fn bytes_come_no_faster_than_there_is_room() {
        let mut world = World {
            commands: vec![Command {
                contains: "yes".into(),
                output: b"abcdef".to_vec(),
                takes: Some(Duration::from_secs(1)),
                code: 0,
            }],
            ..World::default()
        };
        let id = CallId::new(1);
        let pieces = world.process("yes".into(), "/");
        world.running.insert(
            id,
            Running {
                pieces: pieces.into(),
                due: Instant::ZERO,
            },
        );
        assert_eq!(world.next_due(|_| 0), None);
        let said = world.take(Instant::ZERO, id, 4);
        assert_eq!(said, Some(Say::Bytes(Stream::Out, b"abcd".to_vec())));
        let said = world.take(Instant::ZERO, id, 4);
        assert_eq!(said, Some(Say::Bytes(Stream::Out, b"ef".to_vec())));
        let second = Instant::since_start(Duration::from_secs(1));
        assert_eq!(world.next_due(|_| 0), Some((second, id)));
    }
}
