//! One read or write of a tool's file, between the disk and the editor. Pure: events in, one step
//! out. Knows no session and no wire.
//!
//! The disk is always looked at first, with the bounds the tool gave (the root it stays beneath, the
//! largest size): what no tool may read is not asked of an editor either, and a file that is no plain
//! UTF-8 text stays on the disk in its own encoding.
//!
//! | stage | event | next | does |
//! | --- | --- | --- | --- |
//! | `Disk` | a read: text | `Buffer` | asks for the editor's text |
//! | | a read: anything else, a fault | over | that |
//! | | a write: text, as it must be | `Buffer`, or as if that had failed | asks for the editor's text |
//! | | a write: nothing, as it must be | `Writing` | asks the editor to write |
//! | | a write: no plain text | over | the write, on the disk |
//! | | a write: a fault, or not as it must be | over | the fault: nothing is written |
//! | `Buffer` | a read: a text, an error, too late | over | the editor's text, else that of the disk |
//! | | a write: a text, an error, too late; it is as it must be | `Writing` | asks the editor to write |
//! | | the same, and the editor does not write | over | the write, on the disk |
//! | | a write: not as it must be, or on an old text | over | the fault: nothing is written |
//! | `Writing` | written | `Checking` | looks at the disk once more |
//! | | an error, too late | over | the fault: the disk stays as it is |
//! | `Checking` | other line ends or another end than the file had | `Mending` | asks the editor to write them |
//! | | anything else, a fault | over | written |
//! | `Mending` | written, an error, too late | `Settling` | looks at the disk a last time |
//! | `Settling` | what is there, a fault | over | written |
//!
//! A write is never repeated on the disk once the editor was asked: it could happen twice. What it
//! must find is compared with the editor's text, since that is what the model saw. That text is old if
//! the disk has changed while the editor went on showing it: what a command wrote there since, or what was
//! written past the editor, would be lost under it. So what is on both sides is kept after a write as well. Editors that keep lines show no newline at the end of a file: where that is all they do
//! not show, it is put back.
//!
//! Some editors show LF for CRLF and write what they are given byte by byte, others end a text that ends
//! with a newline by an empty line. Both change what nobody asked for. What became of the file says
//! which it is, and it is asked once more, for a text that such an editor makes the right file of.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::call::{Call, Contents, Expect, Outcome, Write};
use crate::error::{IoFault, IoKind};
use crate::limits::Limits;
use crate::time::{Duration, Instant};
use crate::tools::{EditorText, digest};

/// What a client takes of files. Each may be there without the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Takes {
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// What the editor showed of a file, and what was on the disk then: digests, that of the text whatever
/// its byte order mark, line ends and last newline, which an editor may show otherwise than it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    text: [u8; 32],
    disk: [u8; 32],
}

impl Seen {
    fn of(text: &str, disk: &[u8]) -> Self {
        Self {
            text: digest(plain_form(text).as_bytes()),
            disk: digest(disk),
        }
    }

    /// Whether the disk has changed, and the editor goes on showing what it showed.
    fn is_old(&self, text: &str, disk: &[u8]) -> bool {
        let now = Self::of(text, disk);
        self.text == now.text && self.disk != now.disk && !is_same(text, disk)
    }
}

/// A file call on its way.
#[derive(Debug)]
pub(super) struct FileRoute {
    job: Job,
    takes: Takes,
    stage: Stage,
    seen: Option<Seen>,
    shows: Option<EditorText>,
    due: Option<Instant>,
    read_time: Duration,
    write_time: Duration,
    /// The largest file that is looked at, bytes.
    max: u64,
}

#[derive(Debug)]
enum Job {
    Read {
        path: String,
        beneath: Option<String>,
        max: u64,
    },
    Write(Write),
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Disk,
    /// With the bytes on the disk.
    Buffer(Vec<u8>),
    Writing(Sent),
    Checking(Sent),
    /// With the text that it was asked for.
    Mending(String),
    Settling(String),
}

/// What an editor was asked to write, and what was on the disk before, if there was a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sent {
    text: String,
    before: Option<Vec<u8>>,
}

/// What happened to a file call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileEvent {
    /// What is on the disk.
    Disk(Result<Vec<u8>, IoFault>),
    /// The editor's text, or why there is none.
    Text(Result<String, String>),
    /// The editor wrote, or why it did not.
    Written(Result<(), String>),
    /// Its time is up.
    Due,
}

/// What a file call needs next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileStep {
    /// Ask for the editor's text.
    Read,
    /// Ask the editor to write this.
    Write(String),
    /// Look at the disk by this call; [`FileEvent::Disk`] follows.
    Look(Call),
    /// Over: the call is the disk's affair.
    OnDisk(Call),
    /// Over, so.
    Over(Result<Outcome, IoFault>),
    /// Nothing: this does not belong to where it stands.
    Nothing,
}

impl FileRoute {
    /// Takes a call that this client may have a part in, or gives it back. `seen` says what was seen of a
    /// file before.
    pub(super) fn begin(
        call: Call,
        takes: Takes,
        limits: &Limits,
        seen: impl Fn(&str) -> Option<Seen>,
    ) -> Result<(Self, Call), Call> {
        let job = if let Call::Read { path, beneath, max } = &call
            && takes.reads
        {
            Job::Read {
                path: path.clone(),
                beneath: beneath.clone(),
                max: *max,
            }
        } else if let Call::Write(write) = &call
            && has_part(write, takes)
        {
            Job::Write(write.clone())
        } else {
            return Err(call);
        };
        let path = match &job {
            Job::Read { path, .. } => path,
            Job::Write(write) => &write.path,
        };
        let route = Self {
            seen: seen(path),
            shows: None,
            job,
            takes,
            stage: Stage::Disk,
            due: None,
            read_time: limits.editor_read,
            write_time: limits.editor_write,
            max: limits.max_file,
        };
        let look = route.look();
        Ok((route, look))
    }

    /// The file, its links resolved.
    pub(super) fn path(&self) -> &str {
        match &self.job {
            Job::Read { path, .. } => path,
            Job::Write(write) => &write.path,
        }
    }

    /// What has been seen of the file, once this is over.
    pub(super) fn seen(&self) -> Option<Seen> {
        self.seen
    }

    /// How a text that was read stands to the disk, if it is not the same.
    pub(super) fn shows(&self) -> Option<EditorText> {
        self.shows
    }

    /// Whether the editor has written it, whatever is still to be said of its form.
    pub(super) fn is_written(&self) -> bool {
        matches!(
            self.stage,
            Stage::Checking(_) | Stage::Mending(_) | Stage::Settling(_)
        )
    }

    /// When it wants [`FileEvent::Due`].
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn on(&mut self, now: Instant, event: FileEvent) -> FileStep {
        match (&mut self.stage, event) {
            (Stage::Disk, FileEvent::Disk(found)) => self.looked(now, found),
            (Stage::Buffer(_), FileEvent::Text(text)) => self.heard(now, text.ok()),
            (Stage::Buffer(_), FileEvent::Due) => self.heard(now, None),
            (Stage::Writing(sent), FileEvent::Written(Ok(()))) => {
                self.seen = None;
                self.due = None;
                self.stage = Stage::Checking(core::mem::take(sent));
                FileStep::Look(self.look())
            }
            (Stage::Checking(sent), FileEvent::Disk(found)) => {
                let found = found.ok();
                let Some(text) = found.as_ref().and_then(|found| sent.mended(found)) else {
                    self.seen = found.map(|found| Seen::of(&sent.text, &found));
                    return over(Outcome::Written);
                };
                self.stage = Stage::Mending(text.clone());
                self.due = Some(now.plus(self.write_time));
                FileStep::Write(text)
            }
            // It was written, in whatever form.
            (Stage::Mending(text), FileEvent::Written(_) | FileEvent::Due) => {
                self.due = None;
                self.stage = Stage::Settling(core::mem::take(text));
                FileStep::Look(self.look())
            }
            (Stage::Settling(text), FileEvent::Disk(found)) => {
                self.seen = found.ok().map(|found| Seen::of(text, &found));
                over(Outcome::Written)
            }
            (Stage::Writing(_), FileEvent::Written(Err(why))) => {
                let why = format!("the editor did not write it: {why}");
                fault(IoKind::Other, why)
            }
            (Stage::Writing(_), FileEvent::Due) => fault(
                IoKind::TimedOut,
                format!(
                    "the editor did not say within {} s whether it wrote it; read it again",
                    self.write_time.as_secs()
                ),
            ),
            (Stage::Disk, FileEvent::Text(_) | FileEvent::Written(_) | FileEvent::Due)
            | (Stage::Buffer(_), FileEvent::Disk(_) | FileEvent::Written(_))
            | (Stage::Writing(_) | Stage::Mending(_), FileEvent::Disk(_) | FileEvent::Text(_))
            | (
                Stage::Checking(_) | Stage::Settling(_),
                FileEvent::Text(_) | FileEvent::Written(_) | FileEvent::Due,
            ) => FileStep::Nothing,
        }
    }

    /// The call that looks at the file.
    fn look(&self) -> Call {
        let (path, beneath, max) = match &self.job {
            Job::Read { path, beneath, max } => (path, beneath, *max),
            Job::Write(write) => (&write.path, &write.beneath, self.max),
        };
        Call::Read {
            path: path.clone(),
            beneath: beneath.clone(),
            max,
        }
    }

    fn looked(&mut self, now: Instant, found: Result<Vec<u8>, IoFault>) -> FileStep {
        let write = match &self.job {
            Job::Read { .. } => None,
            Job::Write(write) => Some(write),
        };
        let absent = write.is_some_and(|write| write.expect == Expect::Absent);
        let bytes = match found {
            Ok(_) if absent => return fault(IoKind::Exists, "it exists already"),
            Ok(bytes) => bytes,
            Err(it) if absent && it.kind == IoKind::NotFound => {
                return self.write(now, None, None);
            }
            Err(it) if write.is_some() && it.kind == IoKind::NotFound => return changed(),
            Err(it) => return FileStep::Over(Err(it)),
        };
        if !is_plain_text(&bytes) {
            return match write {
                Some(write) => FileStep::OnDisk(Call::Write(write.clone())),
                None => over(Outcome::Read(Contents { bytes })),
            };
        }
        self.stage = Stage::Buffer(bytes);
        if self.takes.reads {
            self.due = Some(now.plus(self.read_time));
            return FileStep::Read;
        }
        self.heard(now, None)
    }

    /// The editor's text is known, or there is none to be had.
    fn heard(&mut self, now: Instant, text: Option<String>) -> FileStep {
        self.due = None;
        let Stage::Buffer(disk) = &mut self.stage else {
            return FileStep::Nothing;
        };
        let disk = core::mem::take(disk);
        let old = match (&text, &self.seen) {
            (Some(text), Some(seen)) => seen.is_old(text, &disk),
            (None, _) | (_, None) => false,
        };
        match &self.job {
            Job::Read { max, .. } => {
                if let Some(text) = &text {
                    if !old {
                        self.seen = Some(Seen::of(text, &disk));
                    }
                    self.shows = match (old, is_same(text, &disk)) {
                        (true, _) => Some(EditorText::Old),
                        (false, false) => Some(EditorText::Differs),
                        (false, true) => None,
                    };
                }
                let bytes = text.map_or(disk, String::into_bytes);
                if bytes.len() as u64 > *max {
                    return fault(
                        IoKind::TooLarge,
                        format!("it has more than {max} bytes in the editor"),
                    );
                }
                over(Outcome::Read(Contents { bytes }))
            }
            Job::Write(write) => {
                let current = text.as_deref().map_or(disk.as_slice(), str::as_bytes);
                if write.expect != Expect::Digest(digest(current)) {
                    return changed();
                }
                if old {
                    return fault(IoKind::Other, OLD);
                }
                self.write(now, Some(disk), text.as_deref())
            }
        }
    }

    /// All is as it must be; `disk` is what is there, if there is a file, and `shown` what the editor
    /// shows of it.
    fn write(&mut self, now: Instant, disk: Option<Vec<u8>>, shown: Option<&str>) -> FileStep {
        let Job::Write(write) = &mut self.job else {
            return FileStep::Nothing;
        };
        let both = disk.as_deref().zip(shown);
        let hidden = both.is_some_and(|(disk, shown)| hides_end(shown, disk));
        if hidden && write.bytes.last().is_some_and(|last| *last != b'\n') {
            write.bytes.push(b'\n');
        }
        if self.takes.writes
            && let Ok(text) = core::str::from_utf8(&write.bytes)
        {
            self.stage = Stage::Writing(Sent {
                text: text.into(),
                before: disk,
            });
            self.due = Some(now.plus(self.write_time));
            return FileStep::Write(text.into());
        }
        let mut write = write.clone();
        // An editor that goes on showing this will be behind the disk.
        self.seen = both.map(|(disk, shown)| Seen::of(shown, disk));
        if let Some(disk) = disk {
            write.bytes = as_on_disk(&disk, write.bytes);
            write.expect = Expect::Digest(digest(&disk));
        }
        FileStep::OnDisk(Call::Write(write))
    }
}

/// Why nothing is written on an old text.
const OLD: &str = "it has changed on the disk, and the editor still shows it as it was; nothing was \
    written. Once it is saved or loaded again in the editor, read it again";

fn has_part(write: &Write, takes: Takes) -> bool {
    match write.expect {
        Expect::Digest(_) => takes.reads || takes.writes,
        Expect::Absent => takes.writes,
        // Tools always know what they write over.
        Expect::Anything => false,
    }
}

fn over(outcome: Outcome) -> FileStep {
    FileStep::Over(Ok(outcome))
}

fn fault(kind: IoKind, message: impl Into<String>) -> FileStep {
    FileStep::Over(Err(IoFault::new(kind, message)))
}

fn changed() -> FileStep {
    fault(IoKind::Changed, "it has changed")
}

/// Whether an editor can be asked about it without a loss.
fn is_plain_text(bytes: &[u8]) -> bool {
    core::str::from_utf8(bytes).is_ok() && !bytes.contains(&0)
}

const MARK: &[u8] = &[0xEF, 0xBB, 0xBF];

/// Text as an editor gave it, in the form of the file that is on the disk: editors show a text
/// without its byte order mark and with line ends of one kind.
fn as_on_disk(disk: &[u8], text: Vec<u8>) -> Vec<u8> {
    let mut text = text;
    if disk.starts_with(MARK) && !text.starts_with(MARK) {
        text.splice(..0, MARK.iter().copied());
    }
    if !text.contains(&b'\r') && disk.windows(2).any(|pair| pair == CRLF) {
        text = with_ends_of(disk, &text);
    }
    text
}

const CRLF: &[u8] = b"\r\n";

/// A text with the line ends of a file. Lines at its beginning and its end that are those of the file
/// keep theirs, and so do those between them if they are as many as before; else these get what most
/// lines of the file have.
fn with_ends_of(disk: &[u8], text: &[u8]) -> Vec<u8> {
    let lines = |bytes| -> Vec<&[u8]> { <[u8]>::split_inclusive(bytes, |b| *b == b'\n').collect() };
    let (old, new) = (lines(disk), lines(text));
    let crlf = old.iter().filter(|line| line.ends_with(CRLF)).count();
    let ends = old.iter().filter(|line| line.ends_with(b"\n")).count();
    let most = 2 * crlf > ends;
    let bare = |line: &[u8]| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line).len()
    };
    let same = |(old, new): &(&&[u8], &&[u8])| old[..bare(old)] == new[..bare(new)];
    let first = old.iter().zip(&new).take_while(same).count();
    let (rest_old, rest_new) = (&old[first..], &new[first..]);
    let last = rest_old.iter().rev().zip(rest_new.iter().rev());
    let last = last.take_while(same).count();
    let mut out = Vec::with_capacity(text.len() + ends);
    for (at, line) in new.iter().enumerate() {
        let Some(line) = line.strip_suffix(b"\n") else {
            out.extend_from_slice(line);
            continue;
        };
        let own = if at < first || old.len() == new.len() {
            old.get(at)
        } else if at + last >= new.len() {
            old.get(old.len() + at - new.len())
        } else {
            None
        };
        let own = own.filter(|own| own.ends_with(b"\n"));
        let crlf = own.map_or(most, |own| own.ends_with(CRLF));
        out.extend_from_slice(line);
        out.extend_from_slice(if crlf { CRLF } else { b"\n" });
    }
    out
}

impl Sent {
    /// What this editor has to be given for the file to be in the form that it had, by what became of
    /// it; none: it is, or it cannot be told.
    fn mended(&self, found: &[u8]) -> Option<String> {
        let sent = self.text.as_bytes();
        let want = match &self.before {
            Some(before) if found == before.as_slice() => return None,
            Some(before) => as_on_disk(before, sent.into()),
            None => sent.into(),
        };
        if found == want.as_slice() {
            return None;
        }
        // It writes what it is given.
        if found == sent {
            return String::from_utf8(want).ok();
        }
        // It ends each line, also the empty one behind the last newline.
        let end = found.strip_prefix(want.as_slice())?;
        let lines = want.ends_with(b"\n") && (end == b"\n" || end == CRLF);
        let shorter = self.text.strip_suffix('\n')?;
        lines.then(|| shorter.into())
    }
}

/// A text without what editors may show otherwise than they were given it.
fn plain_form(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut text = text.replace("\r\n", "\n");
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

/// Whether an editor's text is that of the file, in the form that editors show it.
fn is_same(text: &str, disk: &[u8]) -> bool {
    as_on_disk(disk, text.as_bytes().into()) == disk || hides_end(text, disk)
}

/// Whether the newline at the end of a file is all that an editor does not show of it, its form aside.
fn hides_end(text: &str, disk: &[u8]) -> bool {
    !text.ends_with('\n') && as_on_disk(disk, format!("{text}\n").into_bytes()) == disk
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const BOTH: Takes = Takes {
        reads: true,
        writes: true,
    };
    const READS: Takes = Takes {
        reads: true,
        writes: false,
    };
    const WRITES: Takes = Takes {
        reads: false,
        writes: true,
    };

    fn read() -> Call {
        Call::Read {
            path: "/w/f".into(),
            beneath: Some("/w".into()),
            max: 8,
        }
    }

    fn write(bytes: &[u8], expect: Expect) -> Call {
        Call::Write(Write {
            path: "/w/f".into(),
            beneath: Some("/w".into()),
            bytes: bytes.into(),
            expect,
            parents: false,
            private: false,
        })
    }

    fn sees(bytes: &[u8]) -> Expect {
        Expect::Digest(digest(bytes))
    }

    fn disk(bytes: &[u8]) -> FileEvent {
        FileEvent::Disk(Ok(bytes.into()))
    }

    fn missing() -> FileEvent {
        FileEvent::Disk(Err(IoFault::new(IoKind::NotFound, "no such file")))
    }

    fn text(text: &str) -> FileEvent {
        FileEvent::Text(Ok(text.into()))
    }

    fn no_text() -> FileEvent {
        FileEvent::Text(Err("no".into()))
    }

    /// A call, what happens to it, and what it needs after each.
    #[track_caller]
    fn check(call: Call, takes: Takes, rows: Vec<(FileEvent, FileStep)>) {
        check_after(None, call, takes, rows);
    }

    /// The same, after something was seen of the file. Gives what is seen of it now.
    #[track_caller]
    fn check_after(
        seen: Option<Seen>,
        call: Call,
        takes: Takes,
        rows: Vec<(FileEvent, FileStep)>,
    ) -> Option<Seen> {
        let (mut route, look) = FileRoute::begin(call, takes, &Limits::default(), |_| seen)
            .expect("the editor has a part in it");
        assert!(matches!(
            look,
            Call::Read {
                beneath: Some(_),
                ..
            }
        ));
        for (event, step) in rows {
            let shown = format!("{event:?}");
            assert_eq!(route.on(Instant::ZERO, event), step, "{shown}");
        }
        route.seen()
    }

    /// A look at what became of a file.
    fn look() -> FileStep {
        FileStep::Look(Call::Read {
            path: "/w/f".into(),
            beneath: Some("/w".into()),
            max: Limits::default().max_file,
        })
    }

    fn gives(bytes: &[u8]) -> FileStep {
        over(Outcome::Read(Contents {
            bytes: bytes.into(),
        }))
    }

    #[test]
    fn a_read_is_the_editors_text_and_falls_back_to_the_disk() {
        for (event, bytes) in [
            (text("unsaved"), &b"unsaved"[..]),
            (no_text(), b"saved"),
            (FileEvent::Due, b"saved"),
        ] {
            check(
                read(),
                BOTH,
                vec![(disk(b"saved"), FileStep::Read), (event, gives(bytes))],
            );
        }
        // What the editor is not asked about.
        for bytes in [&b"caf\xe9"[..], b"\xff\xfea\0", b"a\0b"] {
            check(read(), BOTH, vec![(disk(bytes), gives(bytes))]);
        }
        let too_large = fault(IoKind::TooLarge, "it has more than 8 bytes in the editor");
        check(
            read(),
            READS,
            vec![(disk(b"a"), FileStep::Read), (text("123456789"), too_large)],
        );
        let none = FileStep::Over(Err(IoFault::new(IoKind::NotFound, "no such file")));
        check(read(), BOTH, vec![(missing(), none)]);
    }

    #[test]
    fn a_write_goes_to_the_editor_and_never_to_the_disk_after_it() {
        for (event, step) in [
            (FileEvent::Written(Ok(())), look()),
            (
                FileEvent::Written(Err("read-only".into())),
                fault(IoKind::Other, "the editor did not write it: read-only"),
            ),
            (
                FileEvent::Due,
                fault(
                    IoKind::TimedOut,
                    "the editor did not say within 30 s whether it wrote it; read it again",
                ),
            ),
        ] {
            check(
                write(b"new", sees(b"unsaved")),
                BOTH,
                vec![
                    (disk(b"saved"), FileStep::Read),
                    (text("unsaved"), FileStep::Write("new".into())),
                    (event, step),
                ],
            );
        }
    }

    #[test]
    fn what_changed_since_it_was_seen_is_not_written() {
        for (takes, rows) in [
            (
                BOTH,
                vec![(disk(b"seen"), FileStep::Read), (text("typed"), changed())],
            ),
            (
                BOTH,
                vec![(disk(b"saved"), FileStep::Read), (no_text(), changed())],
            ),
            (WRITES, vec![(disk(b"saved"), changed())]),
            (WRITES, vec![(missing(), changed())]),
        ] {
            check(write(b"new", sees(b"seen")), takes, rows);
        }
        let exists = fault(IoKind::Exists, "it exists already");
        check(
            write(b"new", Expect::Absent),
            BOTH,
            vec![(disk(b"other"), exists)],
        );
    }

    #[test]
    fn nothing_is_written_on_a_text_that_is_older_than_the_disk() {
        let seen = |seen, text_now: &str, on_disk: &[u8]| {
            let rows = vec![
                (disk(on_disk), FileStep::Read),
                (text(text_now), gives(text_now.as_bytes())),
            ];
            check_after(seen, read(), BOTH, rows)
        };
        let first = seen(None, "typed", b"saved");
        assert_eq!(first, Some(Seen::of("typed", b"saved")));
        // That it is read again makes it no newer.
        assert_eq!(seen(first, "typed", b"by make"), first);
        let old = fault(IoKind::Other, OLD);
        for takes in [BOTH, READS] {
            let rows = vec![
                (disk(b"by make"), FileStep::Read),
                (text("typed"), old.clone()),
            ];
            let call = write(b"new", sees(b"typed"));
            assert_eq!(check_after(first, call, takes, rows), first);
        }
        // Loaded again, or typed on; saved, with line ends and a mark that the editor does not show.
        for (text_now, on_disk) in [
            ("by make", &b"by make"[..]),
            ("more", b"by make"),
            ("typed", b"typed"),
            ("typed", b"\xef\xbb\xbftyped"),
            ("typed", b"typed\n"),
        ] {
            let now = seen(first, text_now, on_disk);
            assert_eq!(now, Some(Seen::of(text_now, on_disk)), "{text_now}");
            let new = if on_disk == b"typed\n" {
                "new\n"
            } else {
                "new"
            };
            let rows = vec![
                (disk(on_disk), FileStep::Read),
                (text(text_now), FileStep::Write(new.into())),
                (FileEvent::Written(Ok(())), look()),
                (disk(b"something else"), over(Outcome::Written)),
            ];
            let call = write(b"new", sees(text_now.as_bytes()));
            let after = Some(Seen::of(new, b"something else"));
            assert_eq!(check_after(now, call, BOTH, rows), after, "{text_now}");
        }
    }

    #[test]
    fn what_a_command_wrote_after_an_edit_is_not_lost_under_the_next_one() {
        let old = fault(IoKind::Other, OLD);
        let next = |seen, takes, shown: &str, on_disk: &[u8], step: &FileStep| {
            let rows = vec![(disk(on_disk), FileStep::Read), (text(shown), step.clone())];
            check_after(seen, write(b"next", sees(shown.as_bytes())), takes, rows)
        };
        // Through the editor, which saved it; in whatever form it shows that now.
        let rows = vec![
            (disk(b"a\n"), FileStep::Read),
            (text("a\n"), FileStep::Write("b\n".into())),
            (FileEvent::Written(Ok(())), look()),
            (disk(b"b\n"), over(Outcome::Written)),
        ];
        let call = write(b"b\n", sees(b"a\n"));
        let written = check_after(None, call, BOTH, rows);
        for shown in ["b\n", "b", "b\r\n"] {
            next(written, BOTH, shown, b"b\nby make\n", &old);
        }
        // Loaded again, typed on, or formatted by the editor on both sides.
        let goes = FileStep::Write("next\n".into());
        next(written, BOTH, "b", b"b\n", &goes);
        for both in ["b\nby make\n", "typed\n"] {
            let goes = FileStep::Write("next".into());
            next(written, BOTH, both, b"b\nby make\n", &goes);
        }
        // Past an editor that only shows: its text is the one from before.
        let call = write(b"b\n", sees(b"a\n"));
        let rows = vec![
            (disk(b"a\n"), FileStep::Read),
            (text("a\n"), FileStep::OnDisk(call.clone())),
        ];
        let Call::Write(same) = &call else {
            return;
        };
        assert_eq!(same.expect, sees(b"a\n"));
        let written = check_after(None, call, READS, rows);
        next(written, READS, "a\n", b"b\n", &old);
        let goes = FileStep::OnDisk(write(b"next", sees(b"b\n")));
        next(written, READS, "b\n", b"b\n", &goes);
    }

    #[test]
    fn a_newline_at_the_end_that_the_editor_does_not_show_is_put_back() {
        for (on_disk, shown, new, written) in [
            (&b"a\nb\n"[..], "a\nb", "A\nb", "A\nb\n"),
            (b"a\nb\n", "a\nb", "A\nb\n", "A\nb\n"),
            (b"a\r\nb\r\n", "a\nb", "A\nb", "A\nb\n"),
            (b"a\n", "a", "", ""),
            // It shows all there is, or something else.
            (b"a\nb", "a\nb", "A\nb", "A\nb"),
            (b"a\n", "a\n", "A", "A"),
            (b"a\n", "typed", "T", "T"),
        ] {
            let rows = vec![
                (disk(on_disk), FileStep::Read),
                (text(shown), FileStep::Write(written.into())),
            ];
            check(write(new.as_bytes(), sees(shown.as_bytes())), BOTH, rows);
        }
        let rows = vec![
            (disk(b"\xef\xbb\xbfa\r\n"), FileStep::Read),
            (
                text("a"),
                FileStep::OnDisk(write(b"\xef\xbb\xbfA\r\n", sees(b"\xef\xbb\xbfa\r\n"))),
            ),
        ];
        check(write(b"A", sees(b"a")), READS, rows);
    }

    #[test]
    fn line_ends_and_the_end_of_a_file_that_an_editor_changed_are_asked_for_once_more() {
        // What was there, what the editor shows, what it is given, what became of the file, and what it
        // is given then.
        for (on_disk, shown, new, found, then) in [
            // It writes what it is given.
            (
                &b"a\r\nb\r\n"[..],
                "a\nb\n",
                "A\nb\n",
                &b"A\nb\n"[..],
                Some("A\r\nb\r\n"),
            ),
            (
                b"a\r\nb\r\n",
                "a\nb",
                "A\nb\n",
                b"A\nb\n",
                Some("A\r\nb\r\n"),
            ),
            (
                b"a\r\nb\nc\r\n",
                "a\nb\nc\n",
                "a\nB\nc\n",
                b"a\nB\nc\n",
                Some("a\r\nB\nc\r\n"),
            ),
            (
                b"\xef\xbb\xbfa\n",
                "a\n",
                "A\n",
                b"A\n",
                Some("\u{feff}A\n"),
            ),
            // It ends each line.
            (b"a\nb\n", "a\nb\n", "A\nb\n", b"A\nb\n\n", Some("A\nb")),
            (
                b"a\r\nb\r\n",
                "a\nb\n",
                "A\nb\n",
                b"A\r\nb\r\n\r\n",
                Some("A\nb"),
            ),
            // It is as it should be, not saved, or something that nobody can know.
            (b"a\r\nb\r\n", "a\nb\n", "A\nb\n", b"A\r\nb\r\n", None),
            (
                b"a\r\nb\r\n",
                "a\r\nb\r\n",
                "A\r\nb\r\n",
                b"A\r\nb\r\n",
                None,
            ),
            (b"a\nb\n", "a\nb\n", "A\nb\n", b"a\nb\n", None),
            (b"a\nb\n", "a\nb\n", "A\nb\n", b"A\n  b\n", None),
            (b"a\nb", "a\nb", "A\nb", b"A\nb\n", None),
            (b"a\n", "a\n", "a\n\n", b"a\n\n", None),
        ] {
            let written = || FileEvent::Written(Ok(()));
            for end in [
                written(),
                FileEvent::Written(Err("no".into())),
                FileEvent::Due,
            ] {
                let mut rows = vec![
                    (disk(on_disk), FileStep::Read),
                    (text(shown), FileStep::Write(new.into())),
                    (written(), look()),
                ];
                match then {
                    None => rows.push((disk(found), over(Outcome::Written))),
                    Some(then) => {
                        rows.push((disk(found), FileStep::Write(then.into())));
                        rows.push((disk(found), FileStep::Nothing));
                        rows.push((end, look()));
                        rows.push((disk(b"at last"), over(Outcome::Written)));
                    }
                }
                check(write(new.as_bytes(), sees(shown.as_bytes())), BOTH, rows);
            }
        }
        // A new file too.
        let rows = vec![
            (missing(), FileStep::Write("a\n".into())),
            (FileEvent::Written(Ok(())), look()),
            (disk(b"a\n\n"), FileStep::Write("a".into())),
            (FileEvent::Written(Ok(())), look()),
            (disk(b"a\n"), over(Outcome::Written)),
        ];
        check(write(b"a\n", Expect::Absent), BOTH, rows);
    }

    #[test]
    fn lines_that_are_the_files_keep_their_ends_and_others_get_what_most_have() {
        for (disk, text, expected) in [
            ("a\r\nb\r\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n"),
            ("a\r\nb\nc\r\n", "a\nb\nc\n", "a\r\nb\nc\r\n"),
            ("a\r\nb\nc\r\n", "a\nB\nc\n", "a\r\nB\nc\r\n"),
            ("a\r\nb\nc\r\n", "a\nB\nC\nc\n", "a\r\nB\r\nC\r\nc\r\n"),
            ("a\nb\r\nc\nd\n", "a\nb\nx\nd\n", "a\nb\r\nx\nd\n"),
            ("a\nb\r\nc", "c", "c"),
            ("a\nb\r\nc", "a\nb\nc\nd", "a\nb\r\nc\nd"),
            ("a\r\n", "", ""),
            ("a\r\na\na\r\n", "a\na\n", "a\r\na\n"),
            // It shows them itself, or there are none.
            ("a\r\nb\r\n", "a\r\nb\n", "a\r\nb\n"),
            ("a\nb\n", "a\nB\n", "a\nB\n"),
            ("\u{feff}a\r\nb\n", "a\nb\n", "\u{feff}a\r\nb\n"),
            ("\u{feff}a\n", "\u{feff}b\n", "\u{feff}b\n"),
            ("a\n", "\u{feff}b\n", "\u{feff}b\n"),
        ] {
            let got = as_on_disk(disk.as_bytes(), text.into());
            assert_eq!(
                String::from_utf8(got),
                Ok(expected.into()),
                "{disk:?} {text:?}"
            );
        }
    }

    #[test]
    fn a_text_that_the_disk_has_not_is_told() {
        let shows = |seen, on_disk: &[u8], shown: &str| {
            let (mut route, _) = FileRoute::begin(read(), BOTH, &Limits::default(), |_| seen)
                .expect("the editor has a part in it");
            route.on(Instant::ZERO, disk(on_disk));
            route.on(Instant::ZERO, text(shown));
            route.shows()
        };
        for (on_disk, shown, expected) in [
            (&b"a\n"[..], "a\n", None),
            (b"a\n", "a", None),
            (b"\xef\xbb\xbfa\r\nb\r\n", "a\nb", None),
            (b"a\r\nb\n", "a\nb\n", None),
            (b"a\n", "b\n", Some(EditorText::Differs)),
            (b"a", "a\n", Some(EditorText::Differs)),
            (b"", "a", Some(EditorText::Differs)),
        ] {
            assert_eq!(shows(None, on_disk, shown), expected, "{shown:?}");
        }
        let seen = Some(Seen::of("a", b"a"));
        assert_eq!(shows(seen, b"b", "a"), Some(EditorText::Old));
        assert_eq!(shows(seen, b"b", "b"), None);
        assert_eq!(shows(seen, b"b", "c"), Some(EditorText::Differs));
    }

    #[test]
    fn each_capability_alone_is_of_use() {
        check(
            write(b"new", sees(b"saved")),
            WRITES,
            vec![(disk(b"saved"), FileStep::Write("new".into()))],
        );
        check(
            write(b"new", Expect::Absent),
            WRITES,
            vec![(missing(), FileStep::Write("new".into()))],
        );
        check(
            write(b"a\nc", sees(b"a\nb")),
            READS,
            vec![
                (disk(b"\xef\xbb\xbfa\r\nb"), FileStep::Read),
                (
                    text("a\nb"),
                    FileStep::OnDisk(write(b"\xef\xbb\xbfa\r\nc", sees(b"\xef\xbb\xbfa\r\nb"))),
                ),
            ],
        );
        let limits = Limits::default();
        assert!(FileRoute::begin(read(), WRITES, &limits, |_| None).is_err());
        let fresh = write(b"new", Expect::Absent);
        assert!(FileRoute::begin(fresh, READS, &limits, |_| None).is_err());
    }

    #[test]
    fn another_encoding_stays_on_the_disk() {
        let utf16 = b"\xff\xfea\0";
        let call = write(b"\xff\xfeb\0", sees(utf16));
        check(
            call.clone(),
            BOTH,
            vec![(disk(utf16), FileStep::OnDisk(call))],
        );
        // Also where the new text would be plain.
        let call = write(b"cafe", sees(b"caf\xe9"));
        check(
            call.clone(),
            BOTH,
            vec![(disk(b"caf\xe9"), FileStep::OnDisk(call))],
        );
    }

    #[test]
    fn what_does_not_belong_to_the_stage_does_nothing() {
        check(
            write(b"new", sees(b"a")),
            BOTH,
            vec![
                (FileEvent::Written(Ok(())), FileStep::Nothing),
                (FileEvent::Due, FileStep::Nothing),
                (disk(b"a"), FileStep::Read),
                (disk(b"b"), FileStep::Nothing),
                (FileEvent::Written(Ok(())), FileStep::Nothing),
                (text("a"), FileStep::Write("new".into())),
                (text("a"), FileStep::Nothing),
                (FileEvent::Written(Ok(())), look()),
                (FileEvent::Written(Err("no".into())), FileStep::Nothing),
                (FileEvent::Due, FileStep::Nothing),
                (missing(), over(Outcome::Written)),
            ],
        );
    }
}
