//! What a session's tools remember between calls: what was read, the plan, background commands.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use sha2::{Digest, Sha256};

use super::goal::Desk;
use super::step::Todo;
use super::text;
use crate::call::{Exit, News, Outcome};
use crate::ids::Counter;
use crate::limits::Limits;
use crate::secret::Secrets;
use crate::time::Instant;

/// A background command of a session. Shown to the model as `job-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(u64);

impl JobId {
    /// Reads what the model was shown; the bare number counts too.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        text.strip_prefix("job-")
            .unwrap_or(text)
            .parse()
            .ok()
            .map(Self)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job-{}", self.0)
    }
}

/// What the tools of one session remember between calls.
#[derive(Clone, Debug)]
pub struct ToolState {
    /// Real path → when it was noted, and the digest of the file as the model knows it.
    known: BTreeMap<String, (u64, [u8; 32])>,
    clock: Counter,
    jobs: BTreeMap<JobId, Job>,
    next_job: Counter,
    todos: Vec<Todo>,
    /// What the model says about a goal; none outside goal mode.
    pub(super) goal: Option<Desk>,
    max_known: usize,
    max_jobs: usize,
    window: usize,
    head: usize,
    tail: usize,
}

impl ToolState {
    /// Nothing yet.
    pub fn new(limits: &Limits) -> Self {
        Self {
            known: BTreeMap::new(),
            clock: Counter::default(),
            jobs: BTreeMap::new(),
            next_job: Counter::default(),
            todos: Vec::new(),
            goal: None,
            max_known: limits.read_marks,
            max_jobs: limits.max_jobs,
            window: limits.call_window,
            head: limits.output_head,
            tail: limits.output_tail,
        }
    }

    /// Takes news of a call that was handed over by [`Step::Detach`](super::Step::Detach). Runs
    /// that wait may go on afterwards: ask each for its next step.
    pub fn handle_job_news(&mut self, now: Instant, job: JobId, news: News<'_>) {
        let Some(job) = self.jobs.get_mut(&job).filter(|job| job.ended.is_none()) else {
            return;
        };
        let how = match news {
            News::Bytes { bytes, .. } => {
                job.output.push(bytes);
                return;
            }
            News::Opened(_) | News::Fed(_) => return,
            News::Done(Outcome::Exited(exit)) => {
                job.output.drop_more(exit.dropped);
                how_it_exited(&exit)
            }
            News::Done(_) => "ended".into(),
            News::Failed(fault) => fault.message,
        };
        job.ended = Some((now, how));
    }

    /// How many bytes the call of this job may deliver now. Never 0 while it runs: what is too
    /// much is dropped in the middle.
    pub fn job_room(&self, job: JobId) -> usize {
        let runs = self.jobs.get(&job).is_some_and(|job| job.ended.is_none());
        if runs { self.window } else { 0 }
    }

    /// Jobs whose calls are open: to abort when the session closes.
    pub fn running_jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        let running = self.jobs.iter().filter(|(_, job)| job.ended.is_none());
        running.map(|(id, _)| *id)
    }

    /// The plan as the model last wrote it.
    pub fn todos(&self) -> &[Todo] {
        &self.todos
    }

    /// One line a job, for `/status`.
    pub fn describe_jobs(&self, now: Instant) -> Vec<String> {
        self.jobs
            .iter()
            .map(|(id, job)| job.describe(*id, now))
            .collect()
    }

    /// The plan of a session as it was left.
    pub fn restore_todos(&mut self, todos: Vec<Todo>) {
        self.todos = todos;
    }

    pub(super) fn set_todos(&mut self, todos: Vec<Todo>) {
        self.todos = todos;
    }

    /// Notes a file as the model now knows it.
    pub(super) fn know(&mut self, real: &str, digest: [u8; 32]) {
        let at = self.clock.next();
        self.known.insert(real.into(), (at, digest));
        if self.known.len() > self.max_known {
            let oldest = self.known.iter().min_by_key(|(_, (at, _))| *at);
            if let Some(path) = oldest.map(|(path, _)| path.clone()) {
                self.known.remove(&path);
            }
        }
    }

    /// The file as the model knows it, if it does.
    pub(super) fn known(&self, real: &str) -> Option<[u8; 32]> {
        self.known.get(real).map(|(_, digest)| *digest)
    }

    pub(super) fn moved(&mut self, from: &str, to: Option<&str>) {
        if let Some((_, digest)) = self.known.remove(from)
            && let Some(to) = to
        {
            self.know(to, digest);
        }
    }

    pub(super) fn may_add_job(&self) -> Result<(), String> {
        match self.running_jobs().count() {
            n if n < self.max_jobs => Ok(()),
            n => Err(format!(
                "{n} background commands run already; wait or use kill_shell"
            )),
        }
    }

    pub(super) fn add_job(&mut self, now: Instant, command: &str) -> JobId {
        let id = JobId(self.next_job.next());
        let job = Job {
            command: command.into(),
            started: now,
            ended: None,
            output: Kept::new(self.head, self.tail),
        };
        self.jobs.insert(id, job);
        // Of those that are over as many are kept as may run.
        let over = self.jobs.iter().filter(|(_, job)| job.ended.is_some());
        if over.clone().count() > self.max_jobs
            && let Some(oldest) = over.map(|(id, _)| *id).next()
        {
            self.jobs.remove(&oldest);
        }
        id
    }

    pub(super) fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    pub(super) fn job(&mut self, id: JobId) -> Option<&mut Job> {
        self.jobs.get_mut(&id)
    }
}

/// The digest that [`Expect::Digest`](crate::call::Expect::Digest) means.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// How a process ended, in words.
pub(super) fn how_it_exited(exit: &Exit) -> String {
    match (exit.code, exit.signal) {
        (_, Some(signal)) => format!("killed by signal {signal}{}", signal_name(signal)),
        (Some(code), None) => format!("exit code {code}"),
        (None, None) => "ended without an exit code".into(),
    }
}

/// The signals that are the same on all systems.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// A time for people.
pub(super) fn in_words(time: Duration) -> String {
    let millis = time.as_millis();
    if millis < 1000 {
        format!("{millis} ms")
    } else if millis < 60_000 {
        format!("{}.{} s", millis / 1000, millis % 1000 / 100)
    } else {
        format!("{} min {} s", millis / 60_000, millis / 1000 % 60)
    }
}

/// A background command.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) command: String,
    pub(super) started: Instant,
    pub(super) ended: Option<(Instant, String)>,
    pub(super) output: Kept,
}

impl Job {
    pub(super) fn describe(&self, id: JobId, now: Instant) -> String {
        let command = text::one_line(&self.command, 80);
        match &self.ended {
            None => format!(
                "{id} runs since {}: {command}",
                in_words(now.since(self.started))
            ),
            Some((at, how)) => {
                format!(
                    "{id} is over, {how} after {}: {command}",
                    in_words(at.since(self.started))
                )
            }
        }
    }

    /// What is new, below a line that says how it stands.
    pub(super) fn report(&mut self, id: JobId, now: Instant, secrets: &Secrets) -> String {
        let state = self.describe(id, now);
        let output = self.output.take(self.ended.is_some(), secrets);
        if output.is_empty() {
            format!("[{state}]\n(no new output)")
        } else {
            format!("[{state}]\n{output}")
        }
    }
}

/// The beginning and the end of an output of any length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
    max_head: usize,
    max_tail: usize,
}

impl Kept {
    pub(super) fn new(max_head: usize, max_tail: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            dropped: 0,
            max_head,
            max_tail,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.max_head - self.head.len()));
        self.head.extend_from_slice(head);
        let skip = rest.len().saturating_sub(self.max_tail);
        let pushed = &rest[skip..];
        let over = (self.tail.len() + pushed.len()).saturating_sub(self.max_tail);
        self.tail.drain(..over);
        self.tail.extend(pushed);
        self.dropped += (skip + over) as u64;
    }

    /// More was dropped before it came here: between the head and the tail.
    pub(super) fn drop_more(&mut self, bytes: u64) {
        self.dropped += bytes;
    }

    /// All of it as text, with a note where something is missing, and without these.
    pub(super) fn text(&self, secrets: &Secrets) -> String {
        let safe = |bytes: &[u8]| {
            let mut text = text::from_output(bytes);
            secrets.redact_piece(&mut text);
            text
        };
        let (front, back) = self.tail.as_slices();
        let tail = [front, back].concat();
        if self.dropped == 0 {
            let all = safe(&[self.head.as_slice(), &tail].concat());
            if all.len() <= self.max_head + self.max_tail {
                return all;
            }
        }
        // What is no text takes more room as text. It is cut here, where it is known how much that is:
        // a third of what is too much at a time, since no byte becomes more than three.
        let too_much = |text: &str, max: usize| text.len().saturating_sub(max).div_ceil(3);
        let mut cut = text::complete(&self.head);
        let mut head = safe(&self.head[..cut]);
        while cut > 0 && head.len() > self.max_head {
            cut = text::complete(&self.head[..cut - too_much(&head, self.max_head).min(cut)]);
            head = safe(&self.head[..cut]);
        }
        let mut skip = text::first_whole(&tail);
        let mut end = safe(&tail[skip..]);
        while skip < tail.len() && end.len() > self.max_tail {
            skip = (skip + too_much(&end, self.max_tail)).min(tail.len());
            skip += text::first_whole(&tail[skip..]);
            end = safe(&tail[skip..]);
        }
        let left_out = self.dropped + (self.head.len() - cut + skip) as u64;
        format!("{head}\n[… {left_out} bytes left out …]\n{end}")
    }

    /// The last `max` bytes or so, for live output.
    pub(super) fn last(&self, max: usize) -> String {
        let bytes: Vec<u8> = self.head.iter().chain(&self.tail).copied().collect();
        let bytes = &bytes[bytes.len().saturating_sub(max)..];
        let start = text::first_whole(bytes);
        let text = text::from_output(&bytes[start..text::complete(bytes).max(start)]);
        text::cut_front(&text, max).into()
    }

    /// The text, which is not given again. What is left of a character that is not complete, or may
    /// be the beginning of one of these, stays for the next time, unless there will be none.
    fn take(&mut self, ended: bool, secrets: &Secrets) -> String {
        let mut bytes: Vec<u8> = Vec::new();
        if self.dropped == 0 && !ended {
            bytes.extend(self.head.iter().chain(&self.tail));
            let whole = text::complete(&bytes).min(bytes.len() - secrets.begun_by(&bytes));
            bytes.drain(..whole);
        }
        let mut given = self.clone();
        for _ in &bytes {
            if given.tail.pop_back().is_none() {
                given.head.pop();
            }
        }
        *self = Self::new(self.max_head, self.max_tail);
        self.push(&bytes);
        given.text(secrets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_any_length_keeps_its_beginning_and_its_end() {
        for piece in [1, 3, 7, 100] {
            let mut kept = Kept::new(10, 10);
            let all: Vec<u8> = (0..100).map(|n| b'0' + n % 10).collect();
            for bytes in all.chunks(piece) {
                kept.push(bytes);
            }
            assert_eq!(
                kept.text(&Secrets::default()),
                "0123456789\n[… 80 bytes left out …]\n0123456789"
            );
            assert_eq!(kept.last(5), "56789");
        }
        let mut short = Kept::new(10, 10);
        short.push(b"0123456789abc");
        assert_eq!(short.text(&Secrets::default()), "0123456789abc");
    }

    #[test]
    fn no_character_is_cut_in_two() {
        for ascii in 0..3 {
            let mut kept = Kept::new(10, 10);
            let text = format!("{}{}", "a".repeat(ascii), "漢".repeat(100));
            kept.push(text.as_bytes());
            assert!(
                !kept.text(&Secrets::default()).contains('\u{FFFD}'),
                "{}",
                kept.text(&Secrets::default())
            );
            assert!(!kept.last(5).contains('\u{FFFD}'), "{}", kept.last(5));
        }
    }

    #[test]
    fn of_output_that_is_no_text_it_is_said_how_much_of_it_is_missing() {
        for odd in [&b"\0"[..], b"\xFF", b"a\0", b"\0\xFFa"] {
            for times in [50, 1000] {
                let all = odd.repeat(times);
                let mut kept = Kept::new(60, 60);
                all.chunks(7).for_each(|bytes| kept.push(bytes));
                kept.drop_more(1 << 40);
                let text = kept.text(&Secrets::default());
                let (head, rest) = text.split_once("\n[… ").unwrap();
                let (left_out, tail) = rest.split_once(" bytes left out …]\n").unwrap();
                assert!(head.len() <= 60 && tail.len() <= 60, "{text}");
                // Each byte of these is one character of the text.
                let shown = head.chars().count() + tail.chars().count();
                let expected = (1_u64 << 40) + (all.len() - shown) as u64;
                assert_eq!(left_out, alloc::format!("{expected}"), "{odd:?}: {text}");
            }
        }
        // And little enough is shown as it is.
        let mut kept = Kept::new(60, 60);
        kept.push(&[0; 40]);
        assert_eq!(kept.text(&Secrets::default()), "\u{FFFD}".repeat(40));
        kept.push(&[0]);
        assert!(
            kept.text(&Secrets::default())
                .contains("[… 21 bytes left out …]")
        );
    }

    #[test]
    fn output_is_taken_once_and_a_character_that_is_not_complete_waits() {
        let mut kept = Kept::new(10, 10);
        kept.push(b"a\xE6\xBC");
        assert_eq!(kept.take(false, &Secrets::default()), "a");
        kept.push(b"\xA2b\xE6");
        assert_eq!(kept.take(true, &Secrets::default()), "漢b\u{FFFD}");
        assert_eq!(kept.take(true, &Secrets::default()), "");
    }

    #[test]
    fn a_key_is_in_no_part_of_an_output_however_it_comes() {
        const KEY: &str = "sk-0123456789abcdefXYZ";
        let secrets = Secrets::new([crate::secret::Secret::new("K", KEY)]);
        let whole = format!("a\n{KEY}\nb");
        for size in 1..=whole.len() {
            // Given all at once, with what was dropped, and as it comes.
            for max in [100, 8, 12] {
                let mut kept = Kept::new(max, max);
                let mut given = String::new();
                for bytes in whole.as_bytes().chunks(size) {
                    kept.push(bytes);
                    given.push_str(&kept.clone().take(false, &secrets));
                }
                given.push_str(&kept.text(&secrets));
                given.push_str(&kept.take(true, &secrets));
                for n in 6..=KEY.len() {
                    assert!(!given.contains(&KEY[..n]), "{size} {max}: {given}");
                    assert!(
                        !given.contains(&KEY[KEY.len() - n..]),
                        "{size} {max}: {given}"
                    );
                }
            }
            let mut kept = Kept::new(100, 100);
            let mut given = String::new();
            for bytes in whole.as_bytes().chunks(size) {
                kept.push(bytes);
                given.push_str(&kept.take(false, &secrets));
            }
            given.push_str(&kept.take(true, &secrets));
            assert_eq!(given, "a\n[redacted]\nb", "{size}");
        }
    }

    #[test]
    fn what_is_known_of_files_is_bounded_and_the_oldest_goes_first() {
        let limits = Limits {
            read_marks: 2,
            ..Limits::default()
        };
        let mut state = ToolState::new(&limits);
        for path in ["/b", "/a", "/b", "/c"] {
            state.know(path, digest(path.as_bytes()));
        }
        assert_eq!(state.known("/a"), None);
        assert_eq!(state.known("/b"), Some(digest(b"/b")));
        state.moved("/b", Some("/d"));
        assert_eq!(state.known("/b"), None);
        assert_eq!(state.known("/d"), Some(digest(b"/b")));
    }
}
