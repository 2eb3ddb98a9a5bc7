//! The tools that read: read_file, ls, glob, grep.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::time::Duration;

use super::args::Args;
use super::paths::{self, Place};
use super::run::{Begun, Context, Event, Work};
use super::state::digest;
use super::step::EditorText;
use super::text;
use super::workspace::Workspace;
use crate::call::{Call, Contents, Cut, FileKind, Found, Hit, Listing, Outcome, Pattern, Search};
use crate::permission::{Access, Target};
use crate::shown;
use crate::time::Instant;

pub(super) fn read_file(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let path = args.string("path")?;
    let asked = paths::absolute(ws, "path", &path)?;
    let offset = args.opt_count("offset")?.unwrap_or(0);
    let limit = args
        .opt_count("limit")?
        .unwrap_or(ws.limits.read_lines.into());
    if limit == 0 {
        return Err("`limit` must be 1 or more".into());
    }
    let line = (offset > 0).then(|| u32::try_from(offset.saturating_add(1)).unwrap_or(u32::MAX));
    let look = Look::new(asked.clone(), What::File { offset, limit });
    Ok(Begun::new(look, path).at(&asked, line))
}

pub(super) fn ls(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let path = args.opt_string("path")?.unwrap_or_else(|| ".".into());
    let asked = paths::absolute(ws, "path", &path)?;
    Ok(Begun::new(Look::new(asked, What::Directory), path))
}

pub(super) fn glob(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let pattern = args.words("pattern")?;
    let path = args.opt_string("path")?.unwrap_or_else(|| ".".into());
    let asked = paths::absolute(ws, "path", &path)?;
    // Models like to write the whole path into the pattern.
    let mut relative = match pattern.strip_prefix('/') {
        None => pattern.clone(),
        Some(_) if paths::is_within(&pattern, &asked) => pattern
            [asked.trim_end_matches('/').len()..]
            .trim_start_matches('/')
            .to_string(),
        Some(_) => return Err(format!("`pattern` must be relative to {asked}")),
    };
    if relative.is_empty() {
        relative.push_str("**");
    }
    let what = What::Search {
        what: Pattern::Glob(relative),
        time: ws.limits.search_time,
    };
    Ok(Begun::new(Look::new(asked, what), pattern))
}

pub(super) fn grep(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let regex = args.string("pattern")?;
    if regex.is_empty() {
        return Err("`pattern` is empty".into());
    }
    let path = args.opt_string("path")?.unwrap_or_else(|| ".".into());
    let asked = paths::absolute(ws, "path", &path)?;
    let longest = ws.limits.search_time.max(Duration::from_secs(300));
    let time = args
        .opt_seconds("timeout_seconds", longest)?
        .unwrap_or(ws.limits.search_time);
    let what = What::Search {
        what: Pattern::Text {
            regex: regex.clone(),
            glob: args.opt_words("glob")?,
        },
        time,
    };
    Ok(Begun::new(Look::new(asked, what), regex))
}

#[derive(Debug)]
struct Look {
    asked: String,
    what: What,
    place: Option<Place>,
    hits: Hits,
}

/// What a search has found that is shown: in several rounds, where hits that are not shown displace
/// those that are.
#[derive(Debug, Default)]
struct Hits {
    rows: Vec<String>,
    /// All of them so far, shown or not.
    passed: usize,
    rounds: u32,
    /// When the last round has to be over.
    until: Option<Instant>,
}

#[derive(Debug)]
enum What {
    File { offset: u64, limit: u64 },
    Directory,
    Search { what: Pattern, time: Duration },
}

impl Look {
    fn new(asked: String, what: What) -> Self {
        Self {
            asked,
            what,
            place: None,
            hits: Hits::default(),
        }
    }

    /// Whether this tool can look at what is there.
    fn fits(&self, kind: FileKind) -> Result<(), String> {
        let asked = &self.asked;
        match (kind, &self.what) {
            (FileKind::Missing, _) => Err(format!("{asked} does not exist")),
            (FileKind::Dangling, _) => Err(format!("{asked} is a link that leads nowhere")),
            (FileKind::Special, _) => Err(format!("{asked} is a pipe, socket or device")),
            (FileKind::Directory, What::File { .. }) => {
                Err(format!("{asked} is a directory; use ls"))
            }
            (FileKind::File, What::Directory) => Err(format!("{asked} is a file; use read_file")),
            (FileKind::File, What::File { .. } | What::Search { .. })
            | (FileKind::Directory, What::Directory | What::Search { .. }) => Ok(()),
        }
    }

    fn call(&self, place: &Place, now: Instant, ws: &Workspace) -> Call {
        let path = place.target.real.clone();
        match &self.what {
            What::File { .. } => Call::Read {
                path,
                beneath: Some(place.root.clone()),
                max: ws.limits.max_file,
            },
            What::Directory => Call::List {
                path,
                max: ws.limits.list_entries,
            },
            What::Search { what, .. } => Call::Search(Search {
                root: path,
                what: what.clone(),
                skip: self.hits.passed,
                // More than is shown, since some may not be.
                max_hits: ws.limits.search_hits.saturating_mul(LEFT_OUT),
                // Whole lines: where one holds a key is nothing to find out by its end.
                max_line: ws.limits.search_line,
                max_text: ws.limits.search_text,
                time: self.hits.until.unwrap_or(now).since(now),
            }),
        }
    }
}

impl Work for Look {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        match event {
            Event::Started => cx.call(Call::Resolve {
                path: self.asked.clone(),
            }),
            Event::Done(Outcome::Resolved(it)) => {
                let place = paths::vet_resolved(cx.ws, &self.asked, &it)
                    .and_then(|place| self.fits(it.kind).map(|()| place));
                match place {
                    Ok(place) => {
                        cx.permit(Access::Read(vec![place.target.clone()]), Vec::new());
                        self.place = Some(place);
                    }
                    Err(why) => cx.fail(why),
                }
            }
            Event::Permitted => {
                if let What::Search { time, .. } = &self.what {
                    self.hits.until = Some(cx.now.plus(*time));
                }
                if let Some(place) = &self.place {
                    cx.call(self.call(place, cx.now, cx.ws));
                }
            }
            Event::Done(Outcome::Read(contents)) => self.show_file(&contents, cx),
            Event::Done(Outcome::Listed(listing)) => cx.succeed(show_listing(&listing)),
            Event::Done(Outcome::Found(found)) => self.found(&found, cx),
            Event::Done(_) => cx.fail(format!("{}: an answer that does not fit", self.asked)),
            Event::Failed(fault) => cx.fail(format!("{}: {fault}", self.asked)),
            Event::Answered(_) | Event::Bytes(_) | Event::Due | Event::Idle => {}
        }
    }
}

impl Look {
    fn show_file(&self, contents: &Contents, cx: &mut Context<'_>) {
        let (What::File { offset, limit }, Some(place)) = (&self.what, &self.place) else {
            return;
        };
        let Some((mut file, _)) = text::decode(&contents.bytes) else {
            let size = contents.bytes.len();
            return cx.fail(format!("{} is a binary file of {size} bytes", self.asked));
        };
        cx.state.know(&place.target.real, digest(&contents.bytes));
        // Before long lines are cut, and keys in them.
        cx.ws.secrets.redact(&mut file);
        let note = cx.editor_text().map_or("", |text| match text {
            EditorText::Differs => DIFFERS,
            EditorText::Old => OLD,
        });
        match number_lines(&file, *offset, *limit, note.len(), cx.ws) {
            Ok(mut numbered) => {
                numbered.push_str(note);
                cx.succeed(numbered);
            }
            Err(why) => cx.fail(format!("{}: {why}", self.asked)),
        }
    }

    /// A round of a search is over. What is left out leaves no trace, or a pattern could try a file, or a
    /// key, letter by letter: hits that it displaced are looked for, and nothing counts but what is shown.
    fn found(&mut self, found: &Found, cx: &mut Context<'_>) {
        let Some(place) = &self.place else { return };
        let most = cx.ws.limits.search_hits;
        for hit in &found.hits {
            if self.hits.rows.len() > most {
                break;
            }
            self.hits.rows.extend(row(hit, place, cx.ws));
        }
        self.hits.passed += found.hits.len();
        self.hits.rounds += 1;
        let mut late = found.cut == Some(Cut::Time);
        let wanting = self.hits.rows.len() <= most && !found.hits.is_empty();
        if wanting && found.cut == Some(Cut::Hits) {
            let again = self.hits.rounds < cx.ws.limits.search_rounds
                && self.hits.until.is_some_and(|until| until > cx.now);
            if again {
                return cx.call(self.call(place, cx.now, cx.ws));
            }
            late = true;
        }
        cx.succeed(show_hits(&self.hits.rows, most, late));
    }
}

/// What is shown of a hit, if it is.
fn row(hit: &Hit, place: &Place, ws: &Workspace) -> Option<String> {
    let path = paths::clean(&hit.path);
    let target = Target {
        asked: path.clone(),
        inside: paths::is_within(&path, &place.root),
        real: path,
    };
    let own = paths::vet(ws, &target.asked, &target.real).is_err();
    if !target.inside || own || ws.rules.guarding(&target).is_some() {
        return None;
    }
    let mut row = shown::name(paths::shown(ws, &target.real)).to_string();
    if let Some((number, line)) = &hit.line {
        let line = line.trim_end_matches(['\n', '\r']);
        // One that is as long may be cut, and nobody knows what was behind it.
        if line.len() + char::MAX.len_utf8() > ws.limits.search_line {
            return None;
        }
        let mut redacted = String::from(line);
        ws.secrets.redact(&mut redacted);
        if redacted != line {
            return None;
        }
        let line = text::cut(line, ws.limits.max_line);
        let _ = write!(row, ":{number}:{line}");
    }
    Some(row)
}

fn show_hits(rows: &[String], most: usize, late: bool) -> String {
    let shown = rows.len().min(most);
    let mut out = rows[..shown].join("\n");
    if shown == 0 {
        out.push_str("No matches.");
    }
    if rows.len() > most {
        let _ = write!(
            out,
            "\n[only the first {shown} matches; narrow the pattern or the path]"
        );
    } else if late {
        out.push_str("\n[the time was up; there may be more matches]");
    }
    out
}

/// How many times as many hits are looked for as are shown.
const LEFT_OUT: usize = 10;

/// What the model is told of a text that is an editor's.
const DIFFERS: &str = "\n[this is the text in the editor: it is not saved, or the file has changed \
    on the disk; commands see the file on the disk]";
const OLD: &str = "\n[this is the text in the editor, as it was before the file changed on the disk; \
    commands see the file on the disk, and it cannot be changed here until it is saved or loaded \
    again in the editor]";

/// Lines with their numbers, as many as were asked for and fit beside a note of so many bytes, and
/// where to go on.
fn number_lines(
    file: &str,
    offset: u64,
    limit: u64,
    note: usize,
    ws: &Workspace,
) -> Result<String, String> {
    let total = file.lines().count() as u64;
    if total == 0 && offset == 0 {
        return Ok("(empty file)".into());
    }
    if offset >= total {
        return Err(format!(
            "offset {offset} is past its end: it has {total} lines"
        ));
    }
    // Room for the last line, which says how to go on.
    let room = ws.limits.max_tool_result.saturating_sub(128 + note);
    let max_line = ws.limits.max_line;
    let mut out = String::new();
    let mut next = offset;
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    for line in file.lines().skip(skip) {
        let shown = text::cut(line, max_line);
        let mut row = format!("{}→{shown}", next + 1);
        if shown.len() < line.len() {
            let _ = write!(
                row,
                "… [{} bytes of this line not shown]",
                line.len() - shown.len()
            );
        }
        let full = next > offset && out.len() + row.len() + 1 > room;
        if next - offset >= limit || full {
            break;
        }
        out.push_str(&row);
        out.push('\n');
        next += 1;
    }
    if next < total {
        let _ = write!(
            out,
            "[lines {} to {next} of {total}; go on with offset {next}]",
            offset + 1
        );
    } else {
        out.pop();
    }
    Ok(out)
}

fn show_listing(listing: &Listing) -> String {
    if listing.entries.is_empty() && listing.more == 0 {
        return "(empty directory)".into();
    }
    let mut out = String::new();
    for entry in &listing.entries {
        let name = shown::name(&entry.name);
        let link = if entry.link { "@" } else { "" };
        let _ = match entry.kind {
            FileKind::Directory => writeln!(out, "{name}/{link}"),
            FileKind::File => writeln!(out, "{name}{link}  {} bytes", entry.size),
            FileKind::Missing | FileKind::Dangling => {
                writeln!(out, "{name}{link}  (leads nowhere)")
            }
            FileKind::Special => writeln!(out, "{name}{link}  (pipe, socket or device)"),
        };
    }
    if listing.more > 0 {
        let _ = write!(out, "[{} more entries not shown]", listing.more);
    } else {
        out.pop();
    }
    out
}
