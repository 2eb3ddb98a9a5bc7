//! Slash commands. One that the agent does itself runs instead of a turn: the model hears nothing
//! of it, what it says is a chunk, and both what was typed and what was said are remembered.
//!
//! A prompt is a command if it is one text that begins with `/` and a name that is known;
//! everything else is said to the model as it is.
//!
//! | command | does | file |
//! | --- | --- | --- |
//! | `/permissions` | shows what may run and why, takes back what was allowed | `permissions` |
//! | `/status` | says how the session stands | `standing` |
//! | `/goal` | shows, sets, pauses, resumes or gives up the goal | `standing` |
//! | `/compact` | replaces the older part of the history by a summary: the one that asks the model | here |
//! | `/mcp:server:prompt` | a prompt of an MCP server, filled by it: the prompt of a turn | `../mcp/prompts` |
//! | `/mcp` | lists the MCP servers, approves and forbids those of the project | `mcp` |
//! | `/reload` | reads the configuration again, for all sessions | `reload` |

mod mcp;
mod permissions;
mod reload;
mod standing;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::content::Prompt;
use super::{Agent, Level};
use crate::engine::Decided;
use crate::engine::record::{Record, Shown};
use crate::ids::SessionKey;
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
                Some("approve NAME, or revoke NAME"),
            ),
            Self::Reload => ("reload", "Reads the configuration again", None),
        }
    }

    fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|command| command.describe().0 == name)
    }
}

/// The command that a text is, with what follows its name.
fn typed(text: &str) -> Option<(BuiltIn, &str)> {
    let text = text.trim().strip_prefix('/')?;
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    Some((BuiltIn::named(name)?, rest.trim()))
}

fn available() -> Vec<AvailableCommand> {
    let one = |command: BuiltIn| {
        let (name, description, hint) = command.describe();
        let mut shown = AvailableCommand::new(name, description);
        shown.input = hint.map(AvailableCommandInput::new);
        shown
    };
    BuiltIn::ALL.into_iter().map(one).collect()
}

/// A prompt of an MCP server, as a command.
fn prompt(prompt: &crate::mcp::Prompt) -> AvailableCommand {
    let about = match prompt.description.as_str() {
        "" => "A prompt of an MCP server",
        about => about,
    };
    let mut shown = AvailableCommand::new(prompt.command.as_str(), about);
    let usage = prompt.usage();
    shown.input = (!usage.is_empty()).then(|| AvailableCommandInput::new(usage));
    shown
}

impl Agent {
    /// Tells a client what commands there are.
    pub(super) fn tell_commands(&mut self, key: SessionKey) {
        let mut all = available();
        if let Some(session) = self.sessions.get(&key) {
            all.extend(session.servers.hub.prompts().map(prompt));
        }
        if let Some(mut session) = self.side.session(key) {
            let update = AvailableCommandsUpdate::new(all);
            session.notify(&SessionUpdate::AvailableCommandsUpdate(update));
        }
    }

    /// Does what a prompt asks the agent itself to do. What is for the model is given back.
    pub(super) fn run_command(&mut self, key: SessionKey, prompt: Prompt) -> Option<Prompt> {
        if !prompt.is_one_text() {
            return Some(prompt);
        }
        let text = String::from(prompt.text());
        if self.fill_prompt(key, &text) {
            return None;
        }
        let Some((command, rest)) = typed(&text) else {
            return Some(prompt);
        };
        if command == BuiltIn::Goal && standing::is_objective(rest) {
            // The words are the prompt of a turn.
            return Some(self.set_goal(key, &text, rest));
        }
        if let Some(session) = self.sessions.get_mut(&key) {
            session.command = true;
        }
        self.with_engine(key, |engine, cx| {
            engine.record(cx, Record::Command { text: text.clone() });
        });
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

    /// A command is done, and says so.
    fn answer_command(&mut self, key: SessionKey, mut text: String) {
        if let Some(session) = self.sessions.get(&key) {
            session.servers.hub.redact(&mut text);
        }
        self.secrets().redact(&mut text);
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

/// A prompt of one text, of which people are shown another.
fn prompt_of(text: &str, shown: &str) -> Prompt {
    Prompt {
        parts: Vec::from([Part::Text(text.into())]),
        shown: Some(Vec::from([Shown::Text(shown.into())])),
        files: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_name_that_is_known_at_the_beginning() {
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
