//! The keys that nothing of may be shown, whosever they are: those of providers, those that the agent's
//! `.env` holds for others, those of MCP servers. A command finds them in files and in the list of
//! processes, so what tools print is searched for all of them, in every session.
//!
//! None goes out of here because it goes out of use: commands can still read it, and what they printed
//! before is shown later.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::Agent;
use crate::ids::SessionKey;
use crate::limits::Limits;
use crate::secret::{Secret, Secrets};

/// They, and how they are looked for.
#[derive(Default)]
pub(super) struct Known {
    /// The one that was named last is last.
    keys: VecDeque<Secret>,
    secrets: Secrets,
}

impl Known {
    /// How they are looked for.
    pub(super) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// These are known too, at most as many in all as `limits` say: the one that was not named for
    /// longest goes. Returns whether there are others than before.
    fn add(&mut self, keys: impl IntoIterator<Item = Secret>, limits: &Limits) -> bool {
        let mut changed = false;
        let fit = |key: &Secret| key.reveal().len() <= limits.max_known_key;
        for key in keys.into_iter().filter(fit) {
            match self.keys.iter().position(|known| *known == key) {
                Some(at) => drop(self.keys.remove(at)),
                None => changed = true,
            }
            self.keys.push_back(key);
        }
        let over = self.keys.len().saturating_sub(limits.max_known_keys);
        self.keys.drain(..over);
        if changed {
            self.secrets = Secrets::new(self.keys.iter().cloned());
        }
        changed
    }
}

impl Agent {
    /// The keys of the settings as they are now are known.
    pub(super) fn know_settings(&mut self) {
        self.know(Vec::new());
    }

    /// The keys that the MCP servers of a session were given are known.
    pub(super) fn know_servers(&mut self, key: SessionKey) {
        if let Some(session) = self.sessions.get(&key) {
            self.know(session.servers.hub.keys().collect());
        }
    }

    /// Those of the settings are named each time, so that none in use is the one that goes.
    fn know(&mut self, mut keys: Vec<Secret>) {
        let settings = &self.config.settings;
        keys.extend(settings.mcp.iter().flat_map(|entry| entry.keys()));
        keys.extend(settings.secrets.iter().cloned());
        let providers = settings.providers.iter();
        keys.extend(providers.filter_map(|it| it.api_key.clone()));
        if self.known.add(keys, &self.config.limits) {
            for session in self.sessions.values_mut() {
                session.engine.set_secrets(self.known.secrets.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn a_key_stays_known_till_too_many_others_were_named_since() {
        let key = |value: &str| Secret::new("K", value);
        let mut known = Known::default();
        let limits = Limits {
            max_known_keys: 3,
            max_known_key: 100,
            ..Limits::default()
        };
        let shown = |known: &Known, text: &str| {
            let mut text = String::from(text);
            known.secrets().redact(&mut text);
            text
        };
        assert!(known.add([key("key-00000001"), key("key-00000002")], &limits));
        assert!(!known.add([key("key-00000001"), key(&"x".repeat(101))], &limits));
        assert!(known.add([key("key-00000003"), key("key-00000004")], &limits));
        assert_eq!(
            shown(
                &known,
                "key-00000001 key-00000002 key-00000003 key-00000004"
            ),
            "[redacted] key-00000002 [redacted] [redacted]"
        );
    }
}
