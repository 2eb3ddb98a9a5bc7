//! The tools that change directories: move_file, delete_file. They touch a link itself, not what
//! it leads to.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::args::Args;
use super::diff;
use super::paths::{self, Place};
use super::run::{Begun, Context, Event, Work};
use super::step::{Diff, ToolOutcome};
use super::text;
use super::workspace::Workspace;
use crate::call::{Call, FileKind, Outcome, Resolved};
use crate::error::IoKind;
use crate::permission::Access;

pub(super) fn move_file(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let (from, to) = (
        args.string("source_path")?,
        args.string("destination_path")?,
    );
    let source = paths::absolute(ws, "source_path", &from)?;
    let destination = paths::absolute(ws, "destination_path", &to)?;
    if source == destination {
        return Err("`source_path` and `destination_path` are equal".into());
    }
    if paths::is_within(&destination, &source) {
        return Err("`destination_path` is inside `source_path`".into());
    }
    let subject = format!("{from} → {to}");
    let work = Entry::new(source.clone(), Some(destination.clone()));
    Ok(Begun::new(work, subject)
        .at(&source, None)
        .at(&destination, None))
}

pub(super) fn delete_file(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let path = args.string("path")?;
    let asked = paths::absolute(ws, "path", &path)?;
    Ok(Begun::new(Entry::new(asked.clone(), None), path).at(&asked, None))
}

#[derive(Debug)]
struct Entry {
    source: End,
    /// None: it is deleted.
    destination: Option<End>,
    /// What is being found out.
    stage: Stage,
    /// It is a folder, with all that is in it.
    folder: bool,
    diffs: Vec<Diff>,
}

/// One end of a move. Its directory is resolved, its name is not.
#[derive(Debug)]
struct End {
    asked: String,
    place: Option<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    SourceParent,
    Source,
    DestinationParent,
    Destination,
    Content,
    Acting,
}

impl Entry {
    fn new(source: String, destination: Option<String>) -> Self {
        let end = |asked| End { asked, place: None };
        Self {
            source: end(source),
            destination: destination.map(end),
            stage: Stage::SourceParent,
            folder: false,
            diffs: Vec::new(),
        }
    }

    fn resolved(&mut self, it: &Resolved, cx: &mut Context<'_>) -> Result<(), String> {
        match self.stage {
            Stage::SourceParent => {
                let real = self.source.find(it, cx.ws)?;
                self.go_on(Stage::Source, real, cx);
            }
            Stage::Source => {
                self.source.check_source(it, self.destination.is_some())?;
                self.folder = it.kind == FileKind::Directory && !it.link;
                if self.folder {
                    self.source.check_folder(cx.ws)?;
                }
                match &self.destination {
                    Some(to) => self.go_on(Stage::DestinationParent, parent(&to.asked)?, cx),
                    None if it.link || it.kind != FileKind::File => self.propose(cx),
                    None => self.read_content(cx),
                }
            }
            Stage::DestinationParent => {
                if let Some(to) = &mut self.destination {
                    let real = to.find(it, cx.ws)?;
                    self.go_on(Stage::Destination, real, cx);
                }
            }
            Stage::Destination => {
                if let Some(to) = &self.destination
                    && (it.kind != FileKind::Missing || it.link)
                {
                    return Err(format!("{} exists already", to.asked));
                }
                if let Some(to) = self.destination.as_ref().filter(|_| self.folder) {
                    to.check_folder(cx.ws)?;
                }
                self.propose(cx);
            }
            Stage::Content | Stage::Acting => {}
        }
        Ok(())
    }

    fn go_on(&mut self, stage: Stage, path: String, cx: &mut Context<'_>) {
        self.stage = stage;
        cx.call(Call::Resolve { path });
    }

    fn read_content(&mut self, cx: &mut Context<'_>) {
        if let Some(place) = &self.source.place {
            self.stage = Stage::Content;
            cx.call(Call::Read {
                path: place.target.real.clone(),
                beneath: Some(place.root.clone()),
                max: cx.ws.limits.max_file,
            });
        }
    }

    fn propose(&mut self, cx: &mut Context<'_>) {
        self.stage = Stage::Acting;
        let ends = [Some(&self.source), self.destination.as_ref()];
        let places = ends
            .into_iter()
            .flatten()
            .filter_map(|end| end.place.as_ref());
        let targets = places.map(|place| place.target.clone()).collect();
        cx.permit(Access::Edit(targets), self.diffs.clone());
    }

    fn act(&self, cx: &mut Context<'_>) {
        let Some(from) = &self.source.place else {
            return;
        };
        let to = self.destination.as_ref().and_then(|to| to.place.as_ref());
        cx.call(match to {
            Some(to) => Call::Rename {
                from: from.target.real.clone(),
                to: to.target.real.clone(),
                beneath: Some((from.root.clone(), to.root.clone())),
            },
            None => Call::Remove {
                path: from.target.real.clone(),
                beneath: Some(from.root.clone()),
            },
        });
    }

    fn acted(&mut self, cx: &mut Context<'_>) {
        let to = self.destination.as_ref();
        if let Some(from) = &self.source.place {
            let to = to
                .and_then(|to| to.place.as_ref())
                .map(|to| to.target.real.as_str());
            cx.state.moved(&from.target.real, to);
        }
        let text = match to {
            Some(to) => format!("Moved {} to {}.", self.source.asked, to.asked),
            None => format!("Deleted {}.", self.source.asked),
        };
        cx.end(ToolOutcome {
            ok: true,
            text,
            diffs: core::mem::take(&mut self.diffs),
            wrote: true,
            ..ToolOutcome::default()
        });
    }
}

impl End {
    /// Takes what the directory really is; gives the real path of the entry in it.
    fn find(&mut self, parent: &Resolved, ws: &Workspace) -> Result<String, String> {
        let asked = &self.asked;
        match parent.kind {
            FileKind::Directory | FileKind::Missing => {}
            FileKind::File | FileKind::Dangling | FileKind::Special => {
                return Err(format!("{asked} is in something that is no directory"));
            }
        }
        let (_, name) = paths::split(asked).ok_or("`/` is not touched")?;
        let real = paths::join(&paths::clean(&parent.real), name);
        let place = paths::vet(ws, asked, &real)?;
        if ws.roots.contains(&real) {
            return Err(format!("{asked} is a root of the workspace"));
        }
        self.place = Some(place);
        Ok(real)
    }

    /// What is in a folder goes where it goes: out of a rule that is about a place, or into one, and
    /// so would the agent's own files.
    fn check_folder(&self, ws: &Workspace) -> Result<(), String> {
        let asked = &self.asked;
        let Some(place) = &self.place else {
            return Ok(());
        };
        if let Some(rule) = ws.rules.reaching_into(&place.target) {
            return Err(format!(
                "the rule `{rule}` may be about files in {asked}; a folder is moved only where no \
                 rule that asks or denies is about what is in it: move its files one by one"
            ));
        }
        let home = ws.host.home.as_deref();
        if home.is_some_and(|home| paths::is_within(home, &place.target.real)) {
            return Err(format!("{asked} holds what belongs to the agent itself"));
        }
        Ok(())
    }

    fn check_source(&self, it: &Resolved, moves: bool) -> Result<(), String> {
        let asked = &self.asked;
        match it.kind {
            // A link is an entry, wherever it leads.
            _ if it.link => Ok(()),
            FileKind::Missing => Err(format!("{asked} does not exist")),
            FileKind::Directory if !moves => Err(format!(
                "{asked} is a directory; delete_file takes files only"
            )),
            FileKind::File | FileKind::Directory => Ok(()),
            FileKind::Dangling => Ok(()),
            FileKind::Special => Err(format!("{asked} is a pipe, socket or device")),
        }
    }
}

fn parent(path: &str) -> Result<String, String> {
    let (parent, _) = paths::split(path).ok_or("`/` is not touched")?;
    Ok(parent.into())
}

impl Work for Entry {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        let result = match event {
            Event::Started => {
                parent(&self.source.asked).map(|path| self.go_on(Stage::SourceParent, path, cx))
            }
            Event::Done(Outcome::Resolved(it)) => self.resolved(&it, cx),
            Event::Done(Outcome::Read(contents)) => {
                if let Some((old, _)) = text::decode(&contents.bytes) {
                    self.diffs = diff::diffs(&self.source.asked, Some(&old), "", &cx.ws.limits);
                }
                self.propose(cx);
                Ok(())
            }
            // Too large to show is not too large to delete.
            Event::Failed(fault)
                if self.stage == Stage::Content && fault.kind == IoKind::TooLarge =>
            {
                self.propose(cx);
                Ok(())
            }
            Event::Permitted => {
                self.act(cx);
                Ok(())
            }
            Event::Done(Outcome::Removed | Outcome::Renamed) => {
                self.acted(cx);
                Ok(())
            }
            Event::Done(_) => Err(format!(
                "{}: an answer that does not fit",
                self.source.asked
            )),
            Event::Failed(fault) => Err(format!("{}: {fault}", self.source.asked)),
            Event::Answered(_) | Event::Bytes(_) | Event::Due | Event::Idle => Ok(()),
        };
        if let Err(why) = result {
            cx.fail(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_a_path_is_known_but_for_the_top() {
        assert_eq!(parent("/a/b"), Ok("/a".into()));
        assert_eq!(parent("/"), Err("`/` is not touched".into()));
    }
}
