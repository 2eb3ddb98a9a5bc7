//! `logout`: keys are forgotten, and nothing is deleted. They are taken up again from `.env` when
//! somebody authenticates, and not by a mere `/reload` (ACP page: authentication).
//!
//! A turn that runs ends as it would; the next one of its session finds no key. What tools print
//! goes on being searched for the keys that were known.

use super::{Agent, models};
use crate::ids::SessionKey;
use crate::protocol::Asked;
use crate::protocol::methods::Logout;
use crate::protocol::schema::LogoutResponse;
use crate::settings::Settings;

/// What to do after it.
pub(super) const LOGGED_OUT: &str =
    "You have logged out. Authenticate to use the keys in the .env file of the agent's home again.";

impl Agent {
    pub(super) fn logout(&mut self, asked: Asked<Logout>) {
        self.logged_out = true;
        forget_keys(&mut self.config.settings);
        self.renew_brains();
        self.side.answer(asked, Ok(LogoutResponse::default()));
    }

    /// Somebody authenticated: these settings count, with their keys.
    pub(super) fn log_in(&mut self, settings: Settings) {
        self.logged_out = false;
        self.config.settings = settings;
        self.know_settings();
        self.renew_brains();
    }

    /// Settings that were read again for another reason bring no keys back.
    pub(super) fn forget_if_logged_out(&self, settings: &mut Settings) {
        if self.logged_out {
            forget_keys(settings);
        }
    }

    /// Who answers in open sessions is as the settings have it now, from the next turn on.
    fn renew_brains(&mut self) {
        let keys: alloc::vec::Vec<SessionKey> = self.sessions.keys().copied().collect();
        for key in keys {
            let Some(session) = self.sessions.get(&key) else {
                continue;
            };
            let axes = session.axes.clone();
            if axes.model == models::SCRIPT {
                continue;
            }
            let window = super::opening::context_window(&self.config.settings, &axes.model);
            let brain = self.brain_or_nobody(&axes);
            self.with_engine(key, |engine, _| engine.set_brain(brain, window));
        }
    }
}

fn forget_keys(settings: &mut Settings) {
    for provider in &mut settings.providers {
        provider.api_key = None;
    }
    settings.secrets.clear();
}
