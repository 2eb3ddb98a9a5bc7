//! The tools that change the text of a file: write_file, edit_file, multi_edit, notebook_edit.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::args::Args;
use super::diff;
use super::edit::{self, Edit};
use super::notebook::{self, CellEdit};
use super::paths::{self, Place};
use super::run::{Begun, Context, Event, Work};
use super::state::digest;
use super::step::{Diff, Location, ToolOutcome};
use super::text::{self, Encoding};
use super::workspace::Workspace;
use crate::call::{Call, Expect, FileKind, Outcome, Write};
use crate::error::{IoFault, IoKind};
use crate::permission::Access;

pub(super) fn write_file(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let path = args.string("path")?;
    let content = args.string("content")?;
    begin(ws, path, How::Whole(content))
}

pub(super) fn edit_file(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let path = args.string("path")?;
    begin(ws, path, How::Edits(vec![read_edit(args)?]))
}

pub(super) fn multi_edit(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let path = args.string("path")?;
    let list = args.opt_list("edits")?.ok_or("`edits` is missing")?;
    if list.is_empty() {
        return Err("`edits` is empty".into());
    }
    let edits = list.iter().map(read_edit).collect::<Result<_, _>>()?;
    begin(ws, path, How::Edits(edits))
}

pub(super) fn notebook_edit(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let path = args.string("path")?;
    begin(ws, path, How::Cell(notebook::read(args)?))
}

fn read_edit(args: &Args<'_>) -> Result<Edit, String> {
    Ok(Edit {
        old: args.string("old_string")?,
        new: args.string("new_string")?,
        all: args.flag("replace_all")?,
    })
}

fn begin(ws: &Workspace, path: String, how: How) -> Result<Begun, String> {
    let asked = paths::absolute(ws, "path", &path)?;
    let change = Change {
        asked: asked.clone(),
        how,
        place: None,
        ready: None,
    };
    Ok(Begun::new(change, path).at(&asked, None))
}

#[derive(Debug)]
struct Change {
    asked: String,
    how: How,
    place: Option<Place>,
    ready: Option<Ready>,
}

#[derive(Debug)]
enum How {
    Whole(String),
    Edits(Vec<Edit>),
    Cell(CellEdit),
}

/// A change that waits for permission.
#[derive(Debug)]
struct Ready {
    bytes: Vec<u8>,
    expect: Expect,
    diffs: Vec<Diff>,
    line: u32,
    report: String,
}

impl Work for Change {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        let result = match event {
            Event::Started => {
                cx.call(Call::Resolve {
                    path: self.asked.clone(),
                });
                Ok(())
            }
            Event::Done(Outcome::Resolved(it)) => paths::vet_resolved(cx.ws, &self.asked, &it)
                .and_then(|place| {
                    self.place = Some(place);
                    self.look(it.kind, cx)
                }),
            Event::Done(Outcome::Read(contents)) => self.prepare(&contents.bytes, cx),
            Event::Permitted => {
                self.write(cx);
                Ok(())
            }
            Event::Done(Outcome::Written) => {
                self.written(cx);
                Ok(())
            }
            Event::Done(_) => Err(format!("{}: an answer that does not fit", self.asked)),
            Event::Failed(fault) => Err(self.explain(&fault)),
            Event::Answered(_) | Event::Bytes(_) | Event::Due | Event::Idle => Ok(()),
        };
        if let Err(why) = result {
            cx.fail(why);
        }
    }
}

impl Change {
    fn look(&mut self, kind: FileKind, cx: &mut Context<'_>) -> Result<(), String> {
        let asked = &self.asked;
        match (kind, &self.how) {
            (FileKind::Missing, How::Whole(content)) => {
                check_size(asked, content.len(), cx.ws)?;
                let ready = Ready {
                    bytes: content.clone().into_bytes(),
                    expect: Expect::Absent,
                    diffs: diff::diffs(asked, None, content, &cx.ws.limits),
                    line: 1,
                    report: format!("Made {asked} ({} bytes).", content.len()),
                };
                self.propose(ready, cx);
                Ok(())
            }
            (FileKind::Missing, How::Edits(_) | How::Cell(_)) => {
                Err(format!("{asked} does not exist"))
            }
            (FileKind::File, _) => {
                if let Some(place) = &self.place {
                    cx.call(Call::Read {
                        path: place.target.real.clone(),
                        beneath: Some(place.root.clone()),
                        max: cx.ws.limits.max_file,
                    });
                }
                Ok(())
            }
            (FileKind::Directory, _) => Err(format!("{asked} is a directory")),
            (FileKind::Dangling, _) => Err(format!("{asked} is a link that leads nowhere")),
            (FileKind::Special, _) => Err(format!("{asked} is a pipe, socket or device")),
        }
    }

    fn prepare(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Result<(), String> {
        let asked = &self.asked;
        let Some(place) = &self.place else {
            return Ok(());
        };
        let found = digest(bytes);
        if cx
            .state
            .known(&place.target.real)
            .is_some_and(|known| known != found)
        {
            return Err(changed(asked));
        }
        let (old, encoding) = text::decode(bytes).ok_or_else(|| {
            format!("{asked} is a binary file, which the file tools do not change")
        })?;
        let (new, report) = match &self.how {
            How::Whole(content) => (whole(&old, content, encoding), format!("Wrote {asked}.")),
            How::Edits(edits) => apply_all(asked, &old, edits)?,
            How::Cell(edit) => {
                let (new, what) =
                    notebook::apply(&old, edit).map_err(|why| format!("{asked}: {why}"))?;
                (new, format!("{what} of {asked}."))
            }
        };
        check_size(asked, new.len(), cx.ws)?;
        if cx.ws.secrets.are_lost(&old, &new) {
            return Err(format!(
                "{asked} holds a key, which you see as `[redacted]`: these words would be written in \
                 its place. Use edit_file on the lines around it, and leave that one out"
            ));
        }
        if new == old {
            return match &self.how {
                How::Whole(_) => {
                    cx.state.know(&place.target.real, found);
                    cx.succeed(format!(
                        "{asked} has this content already; nothing was written."
                    ));
                    Ok(())
                }
                How::Edits(_) => Err(format!("{asked}: the edits cancel each other out")),
                How::Cell(_) => Err(format!("{asked}: the cell is like that already")),
            };
        }
        let bytes = text::encode(&new, encoding).ok_or_else(|| {
            format!("{asked} is no UTF-8, and its encoding has no way to write the new text")
        })?;
        let ready = Ready {
            bytes,
            expect: Expect::Digest(found),
            diffs: diff::diffs(asked, Some(&old), &new, &cx.ws.limits),
            line: diff::first_changed_line(&old, &new),
            report,
        };
        self.propose(ready, cx);
        Ok(())
    }

    fn propose(&mut self, ready: Ready, cx: &mut Context<'_>) {
        if let Some(place) = &self.place {
            let access = Access::Edit(vec![place.target.clone()]);
            cx.permit(access, ready.diffs.clone());
            self.ready = Some(ready);
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) {
        if let (Some(place), Some(ready)) = (&self.place, &self.ready) {
            cx.call(Call::Write(Write {
                path: place.target.real.clone(),
                beneath: Some(place.root.clone()),
                bytes: ready.bytes.clone(),
                expect: ready.expect,
                parents: ready.expect == Expect::Absent,
                private: false,
            }));
        }
    }

    fn written(&mut self, cx: &mut Context<'_>) {
        let Some(ready) = self.ready.take() else {
            return;
        };
        if let Some(place) = &self.place {
            cx.state.know(&place.target.real, digest(&ready.bytes));
        }
        cx.end(ToolOutcome {
            ok: true,
            text: ready.report,
            diffs: ready.diffs,
            locations: vec![Location::new(self.asked.clone(), Some(ready.line))],
            wrote: true,
            ..ToolOutcome::default()
        });
    }

    fn explain(&self, fault: &IoFault) -> String {
        let asked = &self.asked;
        match fault.kind {
            IoKind::Changed => changed(asked),
            IoKind::Exists => format!("{asked} has been made by something else; read it first"),
            IoKind::NotFound
            | IoKind::Denied
            | IoKind::WrongKind
            | IoKind::TooLarge
            | IoKind::Escapes
            | IoKind::Full
            | IoKind::Unreachable
            | IoKind::TimedOut
            | IoKind::Aborted
            | IoKind::Unsupported
            | IoKind::Other => format!("{asked}: {fault}"),
        }
    }
}

fn changed(asked: &str) -> String {
    format!("{asked} has changed since you read it; nothing was written. Read it again first.")
}

fn check_size(asked: &str, size: usize, ws: &Workspace) -> Result<(), String> {
    if size as u64 > ws.limits.max_file {
        return Err(format!(
            "{asked} would have {size} bytes; at most {} are written",
            ws.limits.max_file
        ));
    }
    Ok(())
}

/// The new text for a file that is replaced: the kind of line end and the mark stay.
fn whole(old: &str, content: &str, encoding: Encoding) -> String {
    let content = match encoding {
        Encoding::Utf8Marked | Encoding::Utf16Le | Encoding::Utf16Be => {
            content.strip_prefix('\u{FEFF}').unwrap_or(content)
        }
        Encoding::Utf8 | Encoding::Latin1 => content,
    };
    edit::keep_ends(old, content)
}

fn apply_all(asked: &str, old: &str, edits: &[Edit]) -> Result<(String, String), String> {
    let mut text = String::from(old);
    let mut places = 0;
    for (index, edit) in edits.iter().enumerate() {
        let (next, count) = edit::apply(&text, edit).map_err(|why| {
            if edits.len() == 1 {
                format!("{asked}: {why}")
            } else {
                let n = index + 1;
                format!(
                    "{asked}: edit {n} of {}: {why}; nothing was written",
                    edits.len()
                )
            }
        })?;
        text = next;
        places += count;
    }
    let line = diff::first_changed_line(old, &text);
    let report = match places {
        1 => format!("Changed {asked} at line {line}."),
        n => format!("Changed {asked} in {n} places, the first at line {line}."),
    };
    Ok((text, report))
}
