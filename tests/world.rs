//! A simulated host: a disk, commands and an HTTP provider as data, answering the call table. Knows
//! no agent: calls in, news out, each with a time at which it may be delivered.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use reasonix_core::call::{Call, Exit, HttpRequest, News, Opened, Outcome, Program, Stream};
use reasonix_core::error::{IoFault, IoKind};
use reasonix_core::ids::CallId;
use reasonix_core::reach::Reach;
use reasonix_core::settings::Settings;
use reasonix_core::time::Instant;

use crate::disk::{Disk, Ticket};
use crate::json;
use crate::provider::{Answer, Step};

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
    /// Its files.
    pub disk: Disk,
    /// Commands; the first that fits counts. Others end with 127.
    pub commands: Vec<Command>,
    /// Answers of the provider, one a request. When none is left it refuses the connection.
    pub answers: VecDeque<Vec<Piece>>,
    /// Answers by what the last user message contains; the n-th answer of a turn is the n-th of the
    /// branch, and the last one is given again. They come before `answers`.
    pub branches: Vec<(String, Vec<Vec<Piece>>)>,
    /// Pages of the web, by their addresses.
    pub pages: BTreeMap<String, Vec<Piece>>,
    /// Where hosts are; all others are at a public address.
    pub hosts: BTreeMap<String, IpAddr>,
    /// Every HTTP request that was made.
    pub requests: Vec<HttpRequest>,
    /// Every command that was started.
    pub ran: Vec<String>,
    /// What the configuration says when it is read again.
    pub settings: Option<Result<Settings, String>>,
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
    /// What it changed on the disk.
    change: Option<Ticket>,
}

impl World {
    /// A world with this directory and these files in it.
    pub fn with_files(root: &str, files: &[(&str, &str)]) -> Self {
        Self::on(Disk::with_files(root, files))
    }

    /// A world with this disk.
    pub fn on(disk: Disk) -> Self {
        Self {
            disk,
            ..Self::default()
        }
    }

    /// The same world, its calls answering at scattered times.
    #[must_use]
    pub fn scattered(mut self, by: u64) -> Self {
        self.scatter = by;
        self
    }

    /// The bytes of a file, if there is one.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.disk.file(path)
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
        let (mut pieces, change) = self.answer(call);
        if self.deaf {
            pieces.clear();
        }
        let mut due = now.plus(self.jitter(id));
        if let Some(first) = pieces.first() {
            due = due.plus(first.after);
        }
        let pieces = pieces.into();
        let before = self.running.insert(
            id,
            Running {
                pieces,
                due,
                change,
            },
        );
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
        // What changes the disk is not broken off: only its own end tells what happened.
        if let Some(run) = self.running.get_mut(&id)
            && run.change.is_none()
        {
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
            if let Some(change) = run.change {
                self.disk.told(change);
            }
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

    fn answer(&mut self, call: &Call) -> (Vec<Piece>, Option<Ticket>) {
        if let Some((outcome, change)) = self.disk.call(call) {
            let said = match outcome {
                Ok(outcome) => Say::Done(outcome),
                Err(fault) => Say::Failed(fault),
            };
            return (vec![at_once(said)], change);
        }
        let outcome = match call {
            Call::Http(request) => return (self.http(request), None),
            Call::Process(process) => {
                let line = match &process.program {
                    Program::Shell(line) => line.clone(),
                    Program::Argv(words) => words.join(" "),
                };
                return (self.process(line, &process.cwd), None);
            }
            Call::Custom(call) => Outcome::Custom(Err(format!("no tool {}", call.name))),
            _ => Outcome::Reconfigured(match &self.settings {
                Some(settings) => settings.clone().map(Box::new),
                None => Ok(Box::default()),
            }),
        };
        (vec![at_once(Say::Done(outcome))], None)
    }

    fn http(&mut self, request: &HttpRequest) -> Vec<Piece> {
        self.requests.push(request.clone());
        if request.reach != Reach::Anywhere {
            return self.page(request);
        }
        if let Some(pieces) = self.branch(&request.body) {
            return pieces;
        }
        self.answers.pop_front().unwrap_or_else(|| {
            let fault = IoFault::new(IoKind::Unreachable, "connection refused");
            vec![at_once(Say::Failed(fault))]
        })
    }

    /// The answer of the web, if the request may reach it.
    fn page(&self, request: &HttpRequest) -> Vec<Piece> {
        let rest = request.url.split_once("://").map_or("", |(_, rest)| rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let host = rest[..end].split(':').next().unwrap_or_default();
        let public = IpAddr::from([93, 184, 216, 34]);
        let at = self.hosts.get(host).copied().unwrap_or(public);
        let fault = if !request.reach.admits(at) {
            IoFault::new(IoKind::Denied, format!("{host} is at {at}"))
        } else if let Some(page) = self.pages.get(&request.url) {
            return page.clone();
        } else {
            IoFault::new(IoKind::Unreachable, "connection refused")
        };
        vec![at_once(Say::Failed(fault))]
    }

    fn branch(&self, body: &[u8]) -> Option<Vec<Piece>> {
        let body = json::read(body)?;
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

#[cfg(test)]
mod tests {
    use super::*;

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
                change: None,
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
