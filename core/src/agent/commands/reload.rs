//! `/reload`: the configuration is read again, then commands and skills are looked for. Rules count at
//! once, models from the next turn on, in all sessions; what cannot be read changes nothing.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use super::super::opening::context_window;
use super::super::{Agent, Owner, models};
use crate::call::{Call, News, Outcome};
use crate::ids::SessionKey;
use crate::protocol::schema::{ConfigOptionUpdate, SessionUpdate};
use crate::settings::Settings;

impl Agent {
    /// Begins it.
    pub(super) fn reload(&mut self, key: SessionKey) {
        self.start(Owner::Reloading(key), Call::Reconfigure);
        if let Some(session) = self.sessions.get_mut(&key) {
            session.reloading = true;
            // What another one had to say, which was cancelled.
            session.reloaded = None;
        }
    }

    /// The configuration was read again.
    pub(in crate::agent) fn reloaded(&mut self, key: SessionKey, news: News<'_>) {
        let read = match news {
            News::Done(Outcome::Reconfigured(read)) => read,
            News::Failed(fault) => Err(format!("{fault}")),
            News::Done(_) => Err("the configuration was not read".into()),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        // A command that was cancelled changes nothing.
        let waits = self.sessions.get_mut(&key);
        if !waits.is_some_and(|session| mem::take(&mut session.reloading)) {
            return;
        }
        match read.and_then(|settings| self.take_settings(*settings)) {
            Ok(said) => {
                if let Some(session) = self.sessions.get_mut(&key) {
                    session.reloading = true;
                    session.reloaded = Some(said);
                }
                self.scan_all_again();
            }
            Err(why) => self.answer_command(key, format!("Nothing is changed: {why}")),
        }
    }

    /// Looks for the commands and skills of all sessions.
    pub(super) fn scan_all_again(&mut self) {
        let keys: Vec<SessionKey> = self.sessions.keys().copied().collect();
        for key in keys {
            self.scan_again(key);
        }
    }

    pub(super) fn take_settings(&mut self, mut settings: Settings) -> Result<String, String> {
        if let Some(fault) = &settings.fault {
            return Err(fault.clone());
        }
        self.forget_if_logged_out(&mut settings);
        let old = mem::replace(&mut self.config.settings, settings);
        let rules = match self.rules() {
            Ok(rules) => rules,
            Err(why) => {
                self.config.settings = old;
                return Err(why);
            }
        };
        self.know_settings();
        let web = self.web();
        let writable = self.writable().to_vec();
        let keys: Vec<SessionKey> = self.sessions.keys().copied().collect();
        for key in keys {
            let Some(session) = self.sessions.get(&key) else {
                continue;
            };
            let axes = session.axes.clone();
            let (rules, writable) = (rules.clone(), writable.clone());
            // A script goes on where it is.
            let brain = (axes.model != models::SCRIPT).then(|| self.brain_or_nobody(&axes));
            let window = context_window(&self.config.settings, &axes.model);
            self.with_engine(key, |engine, cx| {
                engine.set_rules(cx, rules);
                engine.set_web(web);
                engine.set_writable(writable);
                if let Some(brain) = brain {
                    engine.set_brain(brain, window);
                }
            });
            let options = self.options(&axes);
            if let Some(mut session) = self.side.session(key) {
                let update = ConfigOptionUpdate::new(options);
                session.notify(&SessionUpdate::ConfigOptionUpdate(update));
            }
        }
        self.configured_servers_changed();
        let settings = &self.config.settings;
        let permissions = &settings.permissions;
        let rules = permissions.allow.len() + permissions.ask.len() + permissions.deny.len();
        let mut said = format!(
            "The configuration was read again: {} models, {rules} rules.",
            models::all(settings).count()
        );
        if let Err(error) = self.usable_model() {
            said.push(' ');
            said.push_str(&error.message);
        }
        Ok(said)
    }
}
