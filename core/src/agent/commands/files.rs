//! Commands and skills that stand in files, on their way: looked for when a session opens and again by
//! `/reload`, read when they are used.

use alloc::format;
use alloc::string::{String, ToString};
use core::mem;

use super::super::content::Prompt;
use super::super::{Agent, Level, Owner};
use super::prompt_of;
use super::shelf::{Scan, Shelf};
use super::text::{Text, fill};
use crate::call::{Call, News, Outcome};
use crate::error::IoFault;
use crate::ids::{CallId, SessionKey};
use crate::limits::Limits;
use crate::protocol::Gates;
use crate::protocol::schema::{Notice, NoticeSeverity, SessionUpdate};
use crate::wire::text::cut;

/// A prompt whose command is being read.
pub(in crate::agent) struct Calling {
    prompt: Prompt,
    /// What follows the name.
    rest: String,
    /// The skill, if it is one.
    skill: Option<String>,
    call: Option<CallId>,
}

impl Calling {
    pub(super) fn new(prompt: Prompt, rest: String, skill: Option<String>) -> Self {
        Self {
            prompt,
            rest,
            skill,
            call: None,
        }
    }

    /// What the model is told, by the bytes of the file.
    fn told(&self, bytes: &[u8]) -> Result<String, &'static str> {
        let text = core::str::from_utf8(bytes).map_err(|_| "it is no UTF-8 text")?;
        let body = Text::read(text)?.body.trim();
        let mut told = match &self.skill {
            None => fill(body, &self.rest),
            Some(name) => {
                let rest = &self.rest;
                format!("Work by the skill `{name}`:\n\n{body}\n\n{rest}")
            }
        };
        told.truncate(told.trim_end().len());
        Ok(told)
    }
}

impl Shelf {
    /// What the model is told of the skills; none: there are none.
    pub(in crate::agent) fn skills_text(&self, limits: &Limits) -> Option<String> {
        let mut text = String::new();
        for skill in self.skills.values() {
            let line = format!("- {}: {}\n", skill.name, skill.description);
            if text.len() + line.len() > limits.max_skills_text {
                break;
            }
            text.push_str(&line);
        }
        let head = "Skills (instructions for certain work; take one up with the tool `skill`):\n";
        (!text.is_empty()).then(|| format!("{head}{text}"))
    }

    /// The skills, for the tool.
    pub(in crate::agent) fn skills(&self) -> alloc::vec::Vec<crate::tools::Skill> {
        self.skills.values().cloned().collect()
    }

    /// How many there are, in words.
    fn count(&self) -> String {
        let (commands, skills) = (self.commands.len(), self.skills.len());
        format!("{commands} commands in files, {skills} skills")
    }
}

impl Agent {
    /// Begins to read the file of a command.
    pub(super) fn read_command(
        &mut self,
        key: SessionKey,
        mut calling: Calling,
        path: String,
        beneath: String,
    ) {
        let call = Call::Read {
            path,
            beneath: Some(beneath),
            max: self.config.limits.max_command_file,
        };
        calling.call = Some(self.start(Owner::Command(key), call));
        if let Some(session) = self.sessions.get_mut(&key) {
            session.calling = Some(calling);
        }
    }

    /// The file of a command is read, or a look for them has come further.
    pub(in crate::agent) fn command_news(&mut self, key: SessionKey, id: CallId, news: News<'_>) {
        let outcome = match news {
            News::Done(outcome) => Ok(outcome),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let mine = |calling: &mut Calling| calling.call == Some(id);
        if let Some(calling) = session.calling.take_if(mine) {
            return self.command_read(key, calling, outcome);
        }
        let Some(scan) = &mut session.scan else {
            return;
        };
        scan.take(id, &outcome, &self.config.limits);
        self.scan_on(key);
    }

    fn command_read(
        &mut self,
        key: SessionKey,
        calling: Calling,
        outcome: Result<Outcome, IoFault>,
    ) {
        let told: Result<String, String> = match outcome {
            Ok(Outcome::Read(contents)) => calling.told(&contents.bytes).map_err(Into::into),
            Ok(_) => Err("an answer that does not fit".into()),
            Err(fault) => Err(fault.to_string()),
        };
        match told {
            Ok(told) => self.begin_prompt(key, prompt_of(told, calling.prompt)),
            Err(why) => {
                let how = "/reload looks for commands again.";
                let why = format!("It cannot be read any more: {why}. {how}");
                self.command_failed(key, &calling.prompt, why);
            }
        }
    }

    /// Looks for commands and skills again.
    pub(super) fn scan_again(&mut self, key: SessionKey) {
        let home = self.config.host.home.clone();
        if let Some(session) = self.sessions.get_mut(&key) {
            session.scan = Some(Scan::new(&session.root, home.as_deref()));
            self.scan_on(key);
        }
    }

    fn scan_on(&mut self, key: SessionKey) {
        let limits = &self.config.limits;
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if let Some(scan) = session.scan.take_if(|scan| scan.is_over()) {
            let shelf = scan.into_shelf(limits);
            return self.put_shelf(key, shelf);
        }
        let calls = session.scan.as_ref().map(|scan| scan.calls(limits));
        for (at, call) in calls.unwrap_or_default() {
            let id = self.start(Owner::Command(key), call);
            if let Some(scan) = self.sessions.get_mut(&key).and_then(|it| it.scan.as_mut()) {
                scan.opened(at, id);
            }
        }
    }

    /// A session has these from now on.
    fn put_shelf(&mut self, key: SessionKey, shelf: Shelf) {
        let limits = self.config.limits.clone();
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let count = shelf.count();
        let old = mem::replace(&mut session.shelf, shelf);
        let (faults, other) = (old.faults != session.shelf.faults, old != session.shelf);
        let skills = (old.skills != session.shelf.skills).then(|| {
            let text = session.shelf.skills_text(&limits);
            let note = text.map_or_else(
                || "[The agent: there are no skills any more.]".into(),
                |text| {
                    format!(
                        "[The agent: the skills are others now. {}]",
                        text.trim_end()
                    )
                },
            );
            (session.shelf.skills(), note)
        });
        if let Some((skills, note)) = skills {
            self.with_engine(key, |engine, _| engine.set_skills(skills, note));
        }
        if other {
            self.tell_commands(key);
        }
        if faults {
            self.tell_left_out(key);
        }
        // Who asked for it waits; others, and who does not wait any more, are only told.
        let waits = self.sessions.get_mut(&key).and_then(|session| {
            // Without it the configuration is still being read for this one.
            let said = session.reloaded.take()?;
            mem::take(&mut session.reloading).then_some(said)
        });
        if let Some(said) = waits {
            self.answer_command(key, format!("{said} {count}."));
        }
        self.scanned(key);
    }

    /// Says once which files are left out: with the next prompt, where it can only be said as text.
    pub(in crate::agent) fn tell_left_out(&mut self, key: SessionKey) {
        let now = self.side.takes(key, Gates::NOTICES);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let faults = session.shelf.faults.clone();
        session.untold = !faults.is_empty() && !now && session.turn.is_none();
        if faults.is_empty() || session.untold {
            return;
        }
        let text = faults.join("\n");
        let title = match faults.len() {
            1 => "A command or skill is left out".into(),
            n => format!("{n} commands and skills are left out"),
        };
        for fault in faults {
            self.report(Level::Warn, fault);
        }
        if let Some(mut session) = self.side.session(key) {
            let mut notice = Notice::new(NoticeSeverity::Warning, title);
            let text = cut(&text, self.config.limits.max_tool_update);
            notice.description = Some(text.into());
            session.notify(&SessionUpdate::Notice(notice));
        }
    }
}
