//! The tool by which the model takes up a skill: instructions in a file, which it is told of by name and
//! description. Reads files of skills only; what they say grants nothing.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::args::Args;
use super::paths;
use super::run::{Begun, Context, Event, Work};
use super::text;
use super::workspace::Workspace;
use crate::call::{Call, FileKind, Outcome};
use crate::permission::{Access, Target};

/// A skill that a session has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// By which it is asked for.
    pub name: String,
    /// When it helps, on one line.
    pub description: String,
    /// Its file, links of the folder above resolved.
    pub path: String,
    /// The folder that its files must stay beneath, links resolved.
    pub beneath: String,
}

impl Skill {
    /// A skill.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        path: impl Into<String>,
        beneath: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            path: path.into(),
            beneath: beneath.into(),
        }
    }

    /// The folder that it stands in, with the files that belong to it.
    pub fn folder(&self) -> &str {
        paths::split(&self.path).map_or("/", |(folder, _)| folder)
    }
}

pub(super) fn skill(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let name = args.words("name")?;
    let name = name.trim().trim_start_matches('/');
    let Some(skill) = ws.skills.iter().find(|skill| skill.name == name) else {
        let known: Vec<&str> = ws.skills.iter().map(|skill| skill.name.as_str()).collect();
        return Err(match known.is_empty() {
            true => "there are no skills here".into(),
            false => format!("there is no skill `{name}`; there are {}", known.join(", ")),
        });
    };
    let path = match args.opt_words("file")? {
        None => skill.path.clone(),
        Some(file) => {
            let path = paths::clean(&format!("{}/{file}", skill.folder()));
            if !paths::is_within(&path, skill.folder()) {
                return Err(format!("`file` must be beneath {}", skill.folder()));
            }
            path
        }
    };
    let work = Use {
        whole: path == skill.path,
        path: path.clone(),
        real: String::new(),
        skill: skill.clone(),
    };
    Ok(Begun::new(work, name).at(&path, None))
}

#[derive(Debug)]
struct Use {
    skill: Skill,
    /// The file that is read, and whether it is the skill's own.
    path: String,
    whole: bool,
    real: String,
}

impl Work for Use {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        match event {
            Event::Started => cx.call(Call::Resolve {
                path: self.path.clone(),
            }),
            Event::Done(Outcome::Resolved(it)) => {
                let real = paths::clean(&it.real);
                if !paths::is_within(&real, &self.skill.beneath) {
                    return cx.fail(format!("{} leads out of the skill", self.path));
                }
                if it.kind != FileKind::File {
                    return cx.fail(format!("{} is no file", self.path));
                }
                // It was chosen to be read by being put there; rules that hide files still count.
                let target = Target {
                    asked: self.path.clone(),
                    real: real.clone(),
                    inside: true,
                };
                self.real = real;
                cx.permit(Access::Read(vec![target]), Vec::new());
            }
            Event::Permitted => cx.call(Call::Read {
                path: self.real.clone(),
                beneath: Some(self.skill.beneath.clone()),
                max: cx.ws.limits.max_file,
            }),
            Event::Done(Outcome::Read(contents)) => match text::decode(&contents.bytes) {
                Some((text, _)) if self.whole => {
                    let folder = self.skill.folder();
                    let name = &self.skill.name;
                    cx.succeed(format!(
                        "The skill `{name}` (its files are in {folder}; ask for one by `file`):\n\n{text}"
                    ));
                }
                Some((text, _)) if text.is_empty() => cx.succeed("(empty file)"),
                Some((text, _)) => cx.succeed(text),
                None => cx.fail(format!("{} is a binary file", self.path)),
            },
            Event::Done(_) => cx.fail(format!("{}: an answer that does not fit", self.path)),
            Event::Failed(fault) => cx.fail(format!("{}: {fault}", self.path)),
            Event::Answered(_) | Event::Bytes(_) | Event::Due | Event::Idle => {}
        }
    }
}
