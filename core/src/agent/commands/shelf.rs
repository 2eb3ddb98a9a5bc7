//! The commands and skills that stand in files: where they are looked for, and what is known of them.
//! Pure: says which calls are to be made, and takes what came of them. A file is read here for its
//! head only; its text is read when it is used.
//!
//! | folder | holds | called |
//! | --- | --- | --- |
//! | `<working directory>/.reasonix/commands` | `**/*.md` | `/name`, `/folder:name` |
//! | `<home>/commands` | the same | the same |
//! | `<working directory>/.reasonix/skills` | `*/SKILL.md` | `/name` |
//! | `<home>/skills` | the same | the same |
//!
//! Of two of one name the working directory's counts. What leads out of its folder by a link, is too
//! large or cannot be read is left out, and said once.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::text::Text;
use crate::call::{Call, FileKind, Listing, Outcome, Resolved};
use crate::error::{IoFault, IoKind};
use crate::ids::CallId;
use crate::limits::Limits;
use crate::shown;
use crate::tools::Skill;

/// The commands and skills of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::agent) struct Shelf {
    /// By the name that is typed.
    pub(super) commands: BTreeMap<String, Command>,
    /// By name.
    pub(super) skills: BTreeMap<String, Skill>,
    /// Why files are left out.
    pub(super) faults: Vec<String>,
}

/// A command that stands in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) description: String,
    /// What may follow its name.
    pub(super) hint: Option<String>,
    /// Its file.
    pub(super) path: String,
    /// The folder that it must stay beneath.
    pub(super) beneath: String,
}

/// A look at all the folders.
#[derive(Debug)]
pub(in crate::agent) struct Scan {
    places: Vec<Place>,
    open: BTreeMap<CallId, usize>,
}

/// Files of one folder whose faults are told; more are left out without a word.
const MOST_FAULTS: usize = 64;

/// One of the folders.
#[derive(Debug)]
struct Place {
    skills: bool,
    /// The folder, and what it must be beneath; none: anything.
    folder: String,
    within: Option<String>,
    /// Its links resolved.
    real: String,
    /// What is asked for next, in this order; the first one is being asked for.
    ahead: VecDeque<Look>,
    read: usize,
    /// Folders that are or were to be listed.
    folders: usize,
    found: Shelf,
}

/// What is looked at.
#[derive(Debug)]
enum Look {
    Folder,
    /// The entries of a folder, whose commands are called after it.
    Entries {
        path: String,
        prefix: Vec<String>,
    },
    File {
        path: String,
        name: String,
    },
}

impl Scan {
    /// Where to look for a session that works in `root`, its links resolved.
    pub(in crate::agent) fn new(root: &str, home: Option<&str>) -> Self {
        let place = |skills: bool, base: &str, within: Option<&str>| Place {
            skills,
            folder: format!(
                "{}/{}",
                base.trim_end_matches('/'),
                if skills { "skills" } else { "commands" }
            ),
            within: within.map(Into::into),
            real: String::new(),
            ahead: VecDeque::from([Look::Folder]),
            read: 0,
            folders: 1,
            found: Shelf::default(),
        };
        let own = format!("{}/.reasonix", root.trim_end_matches('/'));
        let mut places = Vec::new();
        for skills in [false, true] {
            // A project may have its folders elsewhere only in itself; a person may have them where
            // they like.
            places.push(place(skills, &own, Some(root)));
            places.extend(home.map(|home| place(skills, home, None)));
        }
        Self {
            places,
            open: BTreeMap::new(),
        }
    }

    /// The calls that can be made now; [`opened`](Self::opened) says under which id each was.
    pub(in crate::agent) fn calls(&self, limits: &Limits) -> Vec<(usize, Call)> {
        let waiting = (0..self.places.len()).filter(|at| self.open.values().all(|it| it != at));
        waiting
            .filter_map(|at| Some((at, self.places[at].call(limits)?)))
            .collect()
    }

    /// A call was made.
    pub(in crate::agent) fn opened(&mut self, at: usize, id: CallId) {
        self.open.insert(id, at);
    }

    /// What came of a call. False: it is none of these.
    pub(in crate::agent) fn take(
        &mut self,
        id: CallId,
        outcome: &Result<Outcome, IoFault>,
        limits: &Limits,
    ) -> bool {
        let Some(at) = self.open.remove(&id) else {
            return false;
        };
        self.places[at].take(outcome, limits);
        true
    }

    /// Whether all was looked at.
    pub(in crate::agent) fn is_over(&self) -> bool {
        self.places.iter().all(|place| place.ahead.is_empty())
    }

    /// What was found.
    pub(in crate::agent) fn into_shelf(self, limits: &Limits) -> Shelf {
        let mut shelf = Shelf::default();
        for place in self.places {
            for (name, command) in place.found.commands {
                // `mcp:` is what the prompts of MCP servers begin with.
                if super::BuiltIn::named(&name).is_some() || name.starts_with("mcp:") {
                    let why = "this name is the agent's own";
                    shelf
                        .faults
                        .push(format!("{}: {why}", shown::name(&command.path)));
                } else {
                    shelf.commands.entry(name).or_insert(command);
                }
            }
            for (name, skill) in place.found.skills {
                shelf.skills.entry(name).or_insert(skill);
            }
            shelf.faults.extend(place.found.faults);
        }
        let most = limits.max_commands;
        while shelf.commands.len() > most {
            shelf.commands.pop_last();
        }
        while shelf.skills.len() > most {
            shelf.skills.pop_last();
        }
        shelf
    }
}

impl Place {
    fn call(&self, limits: &Limits) -> Option<Call> {
        Some(match self.ahead.front()? {
            Look::Folder => Call::Resolve {
                path: self.folder.clone(),
            },
            Look::Entries { path, .. } => Call::List {
                path: path.clone(),
                max: limits.list_entries,
            },
            Look::File { path, .. } => Call::Read {
                path: path.clone(),
                beneath: Some(self.real.clone()),
                max: limits.max_command_file,
            },
        })
    }

    fn take(&mut self, outcome: &Result<Outcome, IoFault>, limits: &Limits) {
        match (self.ahead.pop_front(), outcome) {
            (Some(Look::Folder), Ok(Outcome::Resolved(it))) => self.enter(it),
            (Some(Look::Entries { path, prefix }), Ok(Outcome::Listed(listing))) => {
                self.list(&path, &prefix, listing, limits);
            }
            (Some(Look::File { path, name }), Ok(Outcome::Read(contents))) => {
                if let Err(why) = self.file(&path, name, &contents.bytes, limits) {
                    self.fault(&path, why);
                }
            }
            // A folder of skills may hold other folders, and what was there may be gone.
            (Some(_), Err(fault)) if fault.kind == IoKind::NotFound => {}
            (Some(look), Err(fault)) => {
                let path = match look {
                    Look::Folder => self.folder.clone(),
                    Look::Entries { path, .. } | Look::File { path, .. } => path,
                };
                let why = match fault.kind {
                    IoKind::TooLarge => {
                        format!("it is larger than {} KiB", limits.max_command_file >> 10)
                    }
                    IoKind::Escapes => "it leads out of its folder".into(),
                    IoKind::NotFound
                    | IoKind::Denied
                    | IoKind::Exists
                    | IoKind::Changed
                    | IoKind::WrongKind
                    | IoKind::Full
                    | IoKind::Unreachable
                    | IoKind::TimedOut
                    | IoKind::Aborted
                    | IoKind::Unsupported
                    | IoKind::Other => fault.to_string(),
                };
                self.fault(&path, &why);
            }
            (_, Ok(_)) | (None, Err(_)) => {}
        }
    }

    fn enter(&mut self, it: &Resolved) {
        match it.kind {
            FileKind::Missing => {}
            FileKind::Directory => {
                let inside = |root: &String| {
                    let rest = it.real.strip_prefix(root.trim_end_matches('/'));
                    rest.is_some_and(|rest| rest.starts_with('/'))
                };
                if self.within.as_ref().is_none_or(inside) {
                    self.real.clone_from(&it.real);
                    self.ahead.push_back(Look::Entries {
                        path: it.real.clone(),
                        prefix: Vec::new(),
                    });
                } else {
                    let folder = self.folder.clone();
                    self.fault(&folder, "it leads out of the working directory");
                }
            }
            FileKind::File | FileKind::Dangling | FileKind::Special => {
                let folder = self.folder.clone();
                self.fault(&folder, "it is no folder");
            }
        }
    }

    fn list(&mut self, path: &str, prefix: &[String], listing: &Listing, limits: &Limits) {
        if listing.more > 0 {
            let most = listing.entries.len();
            self.fault(
                path,
                &format!("only its first {most} entries are looked at"),
            );
        }
        // What is in a folder comes before what follows the folder.
        let mut here = VecDeque::new();
        for entry in &listing.entries {
            if entry.name.starts_with('.') {
                continue;
            }
            let at = format!("{path}/{}", entry.name);
            match entry.kind {
                FileKind::Directory if self.skills => {
                    here.push_back(Look::File {
                        path: format!("{at}/SKILL.md"),
                        name: entry.name.clone(),
                    });
                }
                FileKind::Directory if entry.link => {
                    self.fault(&at, "links to folders are not followed");
                }
                FileKind::Directory if prefix.len() + 1 >= limits.command_depth => {
                    self.fault(&at, "it is too deep");
                }
                FileKind::Directory if self.folders >= limits.max_commands => {
                    let most = limits.max_commands;
                    let folder = self.folder.clone();
                    self.fault(
                        &folder,
                        &format!("only its first {most} folders are looked at"),
                    );
                }
                FileKind::Directory => {
                    let mut prefix = prefix.to_vec();
                    prefix.push(entry.name.clone());
                    here.push_back(Look::Entries { path: at, prefix });
                    self.folders += 1;
                }
                FileKind::Dangling if !self.skills && entry.name.ends_with(".md") => {
                    self.fault(&at, "it is a link that leads nowhere");
                }
                FileKind::Special if !self.skills && entry.name.ends_with(".md") => {
                    self.fault(&at, "it is a pipe, socket or device");
                }
                FileKind::File if !self.skills => {
                    if let Some(stem) = entry.name.strip_suffix(".md") {
                        let mut name = prefix.to_vec();
                        name.push(stem.into());
                        here.push_back(Look::File {
                            path: at,
                            name: name.join(":"),
                        });
                    }
                }
                FileKind::File | FileKind::Dangling | FileKind::Missing | FileKind::Special => {}
            }
        }
        here.append(&mut self.ahead);
        self.ahead = here;
        let files = self
            .ahead
            .iter()
            .filter(|look| matches!(look, Look::File { .. }));
        let over = (self.read + files.count()).saturating_sub(limits.max_commands);
        if over > 0 {
            let mut over = over;
            while over > 0
                && let Some(last) = self.ahead.pop_back()
            {
                over -= usize::from(matches!(last, Look::File { .. }));
            }
            let most = limits.max_commands;
            let folder = self.folder.clone();
            self.fault(
                &folder,
                &format!("only its first {most} files are looked at"),
            );
        }
    }

    fn file(
        &mut self,
        path: &str,
        name: String,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<(), &'static str> {
        self.read += 1;
        let text = core::str::from_utf8(bytes).map_err(|_| "it is no UTF-8 text")?;
        let text = Text::read(text)?;
        let line = |text: &str| shown::line(text, limits.max_command_line);
        let name = match text.get("name").filter(|_| self.skills) {
            Some(name) => name.into(),
            None => name,
        };
        if !is_name(&name) || (self.skills && name.contains(':')) {
            return Err("its name has other characters than letters, digits, `-`, `_` and `.`");
        }
        if text.body.trim().is_empty() {
            return Err("there is nothing in it");
        }
        let beneath = self.real.clone();
        if self.skills {
            let description = text
                .get("description")
                .ok_or("its head has no description")?;
            let skill = Skill::new(name.clone(), line(description), path, beneath);
            self.found.skills.entry(name).or_insert(skill);
        } else {
            let description = text.get("description").unwrap_or_else(|| text.first_line());
            let command = Command {
                description: line(description),
                hint: text.get("argument-hint").map(line),
                path: path.into(),
                beneath,
            };
            self.found.commands.entry(name).or_insert(command);
        }
        Ok(())
    }

    fn fault(&mut self, path: &str, why: &str) {
        let fault = format!("{}: {why}", shown::name(path));
        let faults = &self.found.faults;
        if faults.len() < MOST_FAULTS && !faults.contains(&fault) {
            self.found.faults.push(fault);
        }
    }
}

/// Names that can be typed behind a slash, in parts that folders make.
fn is_name(name: &str) -> bool {
    let legal = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let part = |part: &str| !part.is_empty() && part.chars().all(legal);
    name.len() <= 128 && name.split(':').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Contents, Entry};
    use alloc::vec;

    /// A disk of files, links (`->`) and pipes (`|`), answering a scan.
    fn scan(files: &[(&str, &str)], limits: &Limits) -> Shelf {
        let mut scan = Scan::new("/w", Some("/h"));
        let mut ids = 0;
        for _ in 0..1000 {
            let calls = scan.calls(limits);
            if calls.is_empty() {
                break;
            }
            for (at, call) in calls {
                ids += 1;
                let id = CallId::new(ids);
                scan.opened(at, id);
                let outcome = answer(files, &call);
                assert!(scan.take(id, &outcome, limits));
            }
        }
        assert!(scan.is_over());
        scan.into_shelf(limits)
    }

    fn answer(files: &[(&str, &str)], call: &Call) -> Result<Outcome, IoFault> {
        let fault = |kind| Err(IoFault::new(kind, "no"));
        if let Call::Resolve { path } = call {
            let inside = format!("{path}/");
            let mut all = files.iter();
            let link = all.find(|(at, text)| at == path && text.starts_with("->"));
            let there = files.iter().any(|(at, _)| at.starts_with(&inside));
            return Ok(Outcome::Resolved(Resolved {
                real: link.map_or(path.as_str(), |(_, to)| &to[2..]).into(),
                kind: match there || link.is_some() {
                    true => FileKind::Directory,
                    false => FileKind::Missing,
                },
                link: link.is_some(),
                owned: true,
                links: 1,
                size: 0,
            }));
        }
        if let Call::List { path, .. } = call {
            let mut entries: BTreeMap<&str, Entry> = BTreeMap::new();
            for (at, text) in files {
                let Some(rest) = at.strip_prefix(&format!("{path}/")) else {
                    continue;
                };
                let (name, deeper) = match rest.split_once('/') {
                    Some((name, _)) => (name, true),
                    None => (rest, false),
                };
                let link = text.starts_with("->") && !deeper;
                let folder = deeper || (link && !name.ends_with(".md"));
                entries.entry(name).or_insert(Entry {
                    name: name.into(),
                    kind: match folder {
                        true => FileKind::Directory,
                        false if *text == "|" => FileKind::Special,
                        false => FileKind::File,
                    },
                    link,
                    size: 0,
                });
            }
            return Ok(Outcome::Listed(Listing {
                entries: entries.into_values().collect(),
                more: 0,
            }));
        }
        let Call::Read { path, beneath, max } = call else {
            panic!("{call:?}")
        };
        assert!(path.starts_with(beneath.as_deref().expect("always beneath")));
        match files.iter().find(|(at, _)| at == path) {
            None => fault(IoKind::NotFound),
            Some((_, text)) if text.starts_with("->") => fault(IoKind::Escapes),
            Some((_, text)) if *text == "|" => fault(IoKind::WrongKind),
            Some((_, text)) if text.len() as u64 > *max => fault(IoKind::TooLarge),
            Some((_, text)) => Ok(Outcome::Read(Contents {
                bytes: text.as_bytes().to_vec(),
            })),
        }
    }

    fn names(shelf: &Shelf) -> (Vec<&str>, Vec<&str>) {
        (
            shelf.commands.keys().map(String::as_str).collect(),
            shelf.skills.keys().map(String::as_str).collect(),
        )
    }

    #[test]
    fn folders_are_namespaces_and_the_working_directory_comes_first() {
        let shelf = scan(
            &[
                (
                    "/w/.reasonix/commands/review.md",
                    "---\ndescription: ours\nargument-hint: \"[file]\"\n---\nx",
                ),
                ("/w/.reasonix/commands/git/commit.md", "# Commit it\n"),
                ("/w/.reasonix/commands/git/.hidden.md", "x"),
                ("/w/.reasonix/commands/notes.txt", "x"),
                ("/h/commands/review.md", "theirs"),
                ("/h/commands/mine.md", "x"),
                (
                    "/w/.reasonix/skills/pdf/SKILL.md",
                    "---\nname: pdf\ndescription: Reads PDFs\n---\nhow",
                ),
                ("/w/.reasonix/skills/other/README.md", "x"),
                (
                    "/h/skills/pdf/SKILL.md",
                    "---\ndescription: older\n---\nhow",
                ),
            ],
            &Limits::default(),
        );
        assert_eq!(
            names(&shelf),
            (vec!["git:commit", "mine", "review"], vec!["pdf"])
        );
        let review = &shelf.commands["review"];
        assert_eq!(review.description, "ours");
        assert_eq!(review.hint.as_deref(), Some("[file]"));
        assert_eq!(shelf.commands["git:commit"].description, "Commit it");
        assert_eq!(shelf.skills["pdf"].description, "Reads PDFs");
        assert!(shelf.faults.is_empty(), "{:?}", shelf.faults);
    }

    #[test]
    fn what_a_file_says_of_itself_is_one_line_that_does_what_it_shows() {
        let text = "---\ndescription: \"a\u{1b}]0;t\u{7}\u{202e}b\u{2028}c\"\nargument-hint: x\u{9b}2J\n---\nx";
        let skill = "---\ndescription: d\u{2066}e\n---\nx";
        let files = [
            ("/w/.reasonix/commands/a.md", text),
            ("/w/.reasonix/commands/\u{1b}[2J\nb.md", "x"),
            ("/w/.reasonix/skills/s/SKILL.md", skill),
        ];
        let shelf = scan(&files, &Limits::default());
        assert_eq!(shelf.commands["a"].description, "a ]0;t \\u{202e}b c");
        assert_eq!(shelf.commands["a"].hint.as_deref(), Some("x 2J"));
        assert_eq!(shelf.skills["s"].description, "d\\u{2066}e");
        let [fault] = &shelf.faults[..] else {
            panic!("{:?}", shelf.faults);
        };
        assert!(fault.contains("\\u{1b}[2J\\u{a}b.md: its name"), "{fault}");
    }

    #[test]
    fn a_bad_file_is_left_out_and_said_and_the_others_count() {
        let long = format!("x{}", "y".repeat(70 << 10));
        let shelf = scan(
            &[
                ("/w/.reasonix/commands/good.md", "x"),
                ("/w/.reasonix/commands/long.md", &long),
                ("/w/.reasonix/commands/out.md", "->/etc/passwd"),
                ("/w/.reasonix/commands/folder", "->/etc"),
                ("/w/.reasonix/commands/pipe.md", "|"),
                ("/w/.reasonix/commands/pipe", "|"),
                ("/w/.reasonix/skills/piped/SKILL.md", "|"),
                ("/w/.reasonix/commands/a b.md", "x"),
                (
                    "/w/.reasonix/commands/empty.md",
                    "---\ndescription: x\n---\n \n",
                ),
                ("/w/.reasonix/commands/open.md", "---\ndescription: x\n"),
                ("/w/.reasonix/commands/status.md", "mine"),
                ("/w/.reasonix/commands/mcp/docs/x.md", "a server's"),
                (
                    "/w/.reasonix/skills/odd/SKILL.md",
                    "---\nname: a:b\ndescription: x\n---\nx",
                ),
                ("/w/.reasonix/commands/a/b/c/d/e/f/g/h/i/deep.md", "x"),
                ("/w/.reasonix/skills/none/SKILL.md", "no head"),
            ],
            &Limits::default(),
        );
        assert_eq!(names(&shelf), (vec!["good"], vec![]));
        for why in [
            "long.md: it is larger than 64 KiB",
            "out.md: it leads out of its folder",
            "folder: links to folders",
            "pipe.md: it is a pipe, socket or device",
            "piped/SKILL.md: no",
            "a b.md: its name",
            "empty.md: there is nothing",
            "open.md: its head",
            "status.md: this name",
            "docs/x.md: this name",
            "odd/SKILL.md: its name",
            "it is too deep",
            "none/SKILL.md: its head has no description",
        ] {
            let said = shelf.faults.iter().filter(|fault| fault.contains(why));
            assert_eq!(said.count(), 1, "{why}: {:#?}", shelf.faults);
        }
        assert_eq!(shelf.faults.len(), 13);
    }

    #[test]
    fn a_project_cannot_have_its_folder_outside_and_a_person_can() {
        let files = [
            ("/w/.reasonix/commands", "->/out"),
            ("/h/commands", "->/dots"),
            ("/out/a.md", "x"),
            ("/dots/b.md", "x"),
        ];
        let shelf = scan(&files, &Limits::default());
        assert_eq!(names(&shelf), (vec!["b"], vec![]));
        assert_eq!(
            shelf.faults,
            ["/w/.reasonix/commands: it leads out of the working directory"]
        );
    }

    #[test]
    fn folders_without_commands_are_bounded_too() {
        let limits = Limits {
            max_commands: 3,
            ..Limits::default()
        };
        let files: Vec<String> = (0..40)
            .map(|n| format!("/h/commands/{}/{n}/none.txt", n % 4))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|at| (at.as_str(), "x")).collect();
        let mut scan = Scan::new("/w", Some("/h"));
        let mut lists = 0;
        for id in 1..100 {
            let Some((at, call)) = scan.calls(&limits).pop() else {
                break;
            };
            lists += usize::from(matches!(call, Call::List { .. }));
            scan.opened(at, CallId::new(id));
            scan.take(CallId::new(id), &answer(&files, &call), &limits);
        }
        assert!(scan.is_over());
        assert_eq!(lists, 3);
        let faults = scan.into_shelf(&limits).faults;
        assert_eq!(
            faults,
            ["/h/commands: only its first 3 folders are looked at"]
        );
    }

    #[test]
    fn of_too_many_the_first_count() {
        let limits = Limits {
            max_commands: 3,
            ..Limits::default()
        };
        let files: Vec<(String, &str)> = (0..6)
            .map(|n| (format!("/h/commands/{}/c{n}.md", n / 3), "x"))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(at, it)| (at.as_str(), *it)).collect();
        let shelf = scan(&files, &limits);
        assert_eq!(names(&shelf).0, ["0:c0", "0:c1", "0:c2"]);
        assert_eq!(
            shelf.faults,
            ["/h/commands: only its first 3 files are looked at"]
        );
    }
}
