//! Slash commands, and command lines of the person's own.
//!
//! A prompt is a command if its first text that is not blank begins with `/` and a name that is known,
//! or with `!`, whatever other blocks stand before or behind it (`../typed`); everything else is said to
//! the model as it is. Where a name is known in several places, the first of these counts:
//!
//! | | what it is | what it does | with files, pictures and links |
//! | --- | --- | --- | --- |
//! | 1 | one that the agent does itself | runs instead of a turn: the model hears nothing of it, what it says is a chunk | says that they were not used; a goal that is set goes to the model with them |
//! | 2 | a file of commands | its text, with what was typed filled in, is the prompt of a turn | they go with it |
//! | 3 | a skill | the same, with what was typed behind it | they go with it |
//!
//! The names of prompts of MCP servers are those of no others; files, pictures and links go with them.
//! A `!line` says what was not used, and with a link among its words it does not run.
//!
//! What stands in files is text for the model and nothing else: it runs nothing and allows nothing.
//! What was typed is remembered and shown, also by a load.
//!
//! | command | does | file |
//! | --- | --- | --- |
//! | `/permissions` | shows what may run and why, takes back what was allowed | `permissions` |
//! | `/status` | says how the session stands | `standing` |
//! | `/goal` | shows, sets, pauses, resumes or gives up the goal | `standing` |
//! | `/compact` | replaces the older part of the history by a summary: the one that asks the model | here |
//! | `/mcp:server:prompt` | a prompt of an MCP server, filled by it: the prompt of a turn | `../mcp/prompts` |
//! | `/mcp` | lists the MCP servers, approves and forbids those of the project | `mcp` |
//! | `/reload` | reads the configuration, commands and skills again, for all sessions | `reload`; as a method: `refresh` |
//! | `/name` | gives the model the text of a file | `files`; where they are: `shelf`; what is in them: `text` |
//! | `!line` | runs a command line of the person's own | `line` |

mod files;
mod line;
mod mcp;
mod permissions;
mod refresh;
mod reload;
mod shelf;
mod standing;
mod text;

pub(super) use files::Calling;
pub(super) use refresh::{RELOAD, Refreshing};
pub(super) use shelf::{Scan, Shelf};

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::content::Prompt;
use super::fit::{self, Room};
use super::render::{LINE, OPTION};
use super::{Agent, Level};
use crate::engine::Decided;
use crate::engine::record::{Record, Shown};
use crate::ids::SessionKey;
use crate::limits::Limits;
use crate::model::Part;
use crate::protocol::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate,
};

/// What the agent does itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BuiltIn {
    Permissions,
    Status,
    Goal,
    Compact,
    Mcp,
    Reload,
}

impl BuiltIn {
    const ALL: [Self; 6] = [
        Self::Permissions,
        Self::Status,
        Self::Goal,
        Self::Compact,
        Self::Mcp,
        Self::Reload,
    ];

    /// Its name, what it does, and what may follow it.
    const fn describe(self) -> (&'static str, &'static str, Option<&'static str>) {
        match self {
            Self::Permissions => (
                "permissions",
                "What may run and why; takes back what was allowed",
                Some("revoke NUMBER, or revoke all"),
            ),
            Self::Status => ("status", "How the session stands", None),
            Self::Goal => (
                "goal",
                "The goal: shows it, sets it, or changes how it goes on",
                Some("what is to be reached, or pause, resume, clear"),
            ),
            Self::Compact => ("compact", "Replaces the older history by a summary", None),
            Self::Mcp => (
                "mcp",
                "The MCP servers: how they stand, and which of the project may be started",
                Some("approve NAME, revoke NAME or retry NAME"),
            ),
            Self::Reload => ("reload", "Reads the configuration again", None),
        }
    }

    fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|command| command.describe().0 == name)
    }
}

/// What a typed name means. The one place that knows the order of the sources.
enum Source {
    BuiltIn(BuiltIn),
    /// The text of a file; of a skill, if it has a name.
    File {
        path: String,
        beneath: String,
        skill: Option<String>,
    },
}

impl Source {
    fn of(name: &str, shelf: &Shelf) -> Option<Self> {
        if let Some(command) = BuiltIn::named(name) {
            return Some(Self::BuiltIn(command));
        }
        if let Some(command) = shelf.commands.get(name) {
            return Some(Self::File {
                path: command.path.clone(),
                beneath: command.beneath.clone(),
                skill: None,
            });
        }
        let skill = shelf.skills.get(name)?;
        Some(Self::File {
            path: skill.path.clone(),
            beneath: skill.beneath.clone(),
            skill: Some(skill.name.clone()),
        })
    }
}

/// The name of the command that a text may be, with what follows it.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim().strip_prefix('/')?;
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    Some((name, rest.trim()))
}

/// What a client is told, as far as it fits into a frame: all of them work, told or not.
fn available(
    shelf: &Shelf,
    prompts: &[&crate::mcp::Prompt],
    limits: &Limits,
) -> Vec<AvailableCommand> {
    let mut all: Vec<(&str, &str, Option<&str>)> = Vec::new();
    all.extend(BuiltIn::ALL.into_iter().map(|it| {
        let (name, description, hint) = it.describe();
        (name, description, hint)
    }));
    all.extend(shelf.commands.iter().map(|(name, it)| {
        let hint = it.hint.as_deref();
        (name.as_str(), it.description.as_str(), hint)
    }));
    // One that is called by another thing's name is told by the tool only.
    let skills = shelf.skills.values();
    all.extend(
        skills
            .filter(|it| {
                BuiltIn::named(&it.name).is_none() && !shelf.commands.contains_key(&it.name)
            })
            .map(|it| {
                (
                    it.name.as_str(),
                    it.description.as_str(),
                    Some("instructions"),
                )
            }),
    );
    let usages: Vec<String> = prompts.iter().map(|prompt| prompt.usage()).collect();
    all.extend(prompts.iter().zip(&usages).map(|(prompt, usage)| {
        let about = match prompt.description.as_str() {
            "" => "A prompt of an MCP server",
            about => about,
        };
        let usage = (!usage.is_empty()).then_some(usage.as_str());
        (prompt.command.as_str(), about, usage)
    }));
    let mut room = Room::new(limits);
    let mut told = Vec::new();
    for (name, description, hint) in all {
        let cost = OPTION + fit::cost(name);
        if room.left() < cost + 2 * LINE || !room.take(cost) {
            break;
        }
        let mut command = AvailableCommand::new(name, room.line(description.into(), LINE));
        command.input = hint.map(|hint| AvailableCommandInput::new(room.line(hint.into(), LINE)));
        told.push(command);
    }
    told
}

impl Agent {
    /// Tells a client what commands there are.
    pub(super) fn tell_commands(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let prompts: Vec<_> = session.servers.hub.prompts().collect();
        let told = available(&session.shelf, &prompts, &self.config.limits);
        if let Some(mut session) = self.side.session(key) {
            let update = AvailableCommandsUpdate::new(told);
            session.notify(&SessionUpdate::AvailableCommandsUpdate(update));
        }
    }

    /// Does what a prompt asks the agent itself to do, or begins to read what it means. What is for
    /// the model as it is is given back.
    pub(super) fn run_command(&mut self, key: SessionKey, prompt: Prompt) -> Option<Prompt> {
        let Some(typed) = &prompt.typed else {
            return Some(prompt);
        };
        // A picture in Markdown is none.
        let line = typed.plain.strip_prefix('!');
        if let Some(line) = line.filter(|line| !line.starts_with('[')) {
            let line = String::from(line.trim());
            self.run_line(key, &prompt, &line);
            return None;
        }
        let Some((name, rest)) = split(&typed.text) else {
            return Some(prompt);
        };
        if self.is_servers_prompt(key, name) {
            self.fill_prompt(key, prompt);
            return None;
        }
        let session = self.sessions.get(&key);
        let source = session.and_then(|session| Source::of(name, &session.shelf));
        match source {
            Some(Source::BuiltIn(command)) => self.run_built_in(key, command, prompt),
            None => Some(prompt),
            Some(Source::File {
                path,
                beneath,
                skill,
            }) => {
                let rest = rest.into();
                self.read_command(key, Calling::new(prompt, rest, skill), path, beneath);
                None
            }
        }
    }

    fn run_built_in(
        &mut self,
        key: SessionKey,
        command: BuiltIn,
        prompt: Prompt,
    ) -> Option<Prompt> {
        let behind = |text: &str| split(text).map(|(_, rest)| String::from(rest));
        let typed = prompt.typed.as_ref();
        // What a command is told to do is words alone: `/goal pause` with a file pauses.
        let rest = typed
            .and_then(|typed| behind(&typed.plain))
            .unwrap_or_default();
        if command == BuiltIn::Goal && standing::is_objective(&rest) {
            let words = typed
                .and_then(|typed| behind(&typed.text))
                .unwrap_or_default();
            // The words are the prompt of a turn.
            return Some(self.set_goal(key, prompt, words));
        }
        let rest = rest.as_str();
        self.record_command(key, &prompt);
        let (name, ..) = command.describe();
        self.say_unused(key, &prompt, &format!("/{name}"));
        let said = match command {
            BuiltIn::Permissions => self.permissions(key, rest),
            BuiltIn::Status => self.status_text(key),
            BuiltIn::Goal => self.change_or_show_goal(key, rest),
            BuiltIn::Compact => {
                let mut begun = false;
                self.with_engine(key, |engine, cx| begun = engine.compact_now(cx));
                if begun {
                    return None;
                }
                "There is nothing to compact yet.".into()
            }
            BuiltIn::Mcp => self.servers_command(key, rest)?,
            BuiltIn::Reload => {
                self.reload(key);
                return None;
            }
        };
        self.answer_command(key, said);
        None
    }

    /// What was to be kept of the servers is, or is not: the command that waited for it says so.
    pub(super) fn servers_command_done(&mut self, key: SessionKey, said: String) {
        self.answer_command(key, said);
    }

    /// A command that was to become a prompt does not: it says why, and no model is asked.
    pub(super) fn command_failed(&mut self, key: SessionKey, prompt: &Prompt, why: String) {
        self.record_command(key, prompt);
        self.answer_command(key, why);
    }

    /// What was typed runs in place of a turn, and is remembered.
    fn record_command(&mut self, key: SessionKey, prompt: &Prompt) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.command = true;
        }
        let (text, shown) = (String::from(prompt.text()), prompt.shown_by_itself());
        self.with_engine(key, |engine, cx| {
            engine.record(cx, Record::Command { text, shown });
        });
    }

    /// Says what came with a prompt that `command` does not use, so that nothing is lost in silence.
    fn say_unused(&mut self, key: SessionKey, prompt: &Prompt, command: &str) {
        let Some(typed) = &prompt.typed else { return };
        let Some(names) = typed.names() else { return };
        let were = if typed.others() == 1 { "was" } else { "were" };
        let mut text = format!("{names} {were} not used: {command} takes only words.\n\n");
        self.known.secrets().redact(&mut text);
        self.with_engine(key, |engine, cx| engine.record(cx, Record::Note { text }));
    }

    /// A command is done, and says so.
    fn answer_command(&mut self, key: SessionKey, mut text: String) {
        self.known.secrets().redact(&mut text);
        self.with_engine(key, |engine, cx| engine.answer_command(cx, text));
    }

    /// Keeps a decision for people who ask, and puts it in the log.
    pub(super) fn note_decision(&mut self, key: SessionKey, decided: Decided) {
        let most = self.config.limits.kept_decisions;
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let Decided { call, ruling, why } = &decided;
        let text = format!("session {}: {ruling}: {call}: {why}", session.id.as_str());
        session.decided.push_back(decided);
        while session.decided.len() > most {
            session.decided.pop_front();
        }
        self.report(Level::Info, text);
    }
}

/// The prompt that says `text` to the model in place of what was typed, which people are shown. What
/// stood beside that goes with it.
pub(super) fn prompt_of(mut text: String, mut typed: Prompt) -> Prompt {
    if let Some(typed) = &typed.typed {
        typed.tell_beside(&mut text);
    }
    if typed.shown.is_none() {
        typed.shown = Some(Vec::from([Shown::Text(typed.text().into())]));
    }
    match typed.parts.first_mut() {
        Some(Part::Text(first)) => *first = text,
        Some(Part::Image { .. }) | None => typed.parts.insert(0, Part::Text(text)),
    }
    typed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_name_that_is_known_at_the_beginning() {
        let typed = |text: &'static str| {
            let (name, rest) = split(text)?;
            match Source::of(name, &Shelf::default())? {
                Source::BuiltIn(command) => Some((command, rest)),
                Source::File { .. } => None,
            }
        };
        for (text, expected) in [
            ("/permissions", Some((BuiltIn::Permissions, ""))),
            (
                " /permissions  revoke 1\n",
                Some((BuiltIn::Permissions, "revoke 1")),
            ),
            ("/goal\nreach it", Some((BuiltIn::Goal, "reach it"))),
            ("/statusx", None),
            ("/Status", None),
            ("/", None),
            ("// status", None),
            ("/usr/bin/status", None),
            ("say /status", None),
            ("status", None),
        ] {
            assert_eq!(typed(text), expected, "{text:?}");
        }
    }
}
