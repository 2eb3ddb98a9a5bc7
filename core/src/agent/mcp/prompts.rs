//! Prompts of servers as slash commands. What is typed is filled by the server, and what comes of
//! that is the prompt of a turn; people see what was typed.
//!
//! | while it is filled | then |
//! | --- | --- |
//! | the server answers | the turn begins with its text |
//! | it does not, or cannot be used | the command says why, no model is asked |
//! | the prompt is cancelled | it is over; the server is told |

use alloc::string::String;

use crate::agent::Agent;
use crate::agent::commands::prompt_of;
use crate::agent::content::Prompt;
use crate::ids::{CallId, SessionKey};

/// A prompt that is being filled.
pub(super) struct Filling {
    pub(super) call: CallId,
    /// What the person said.
    prompt: Prompt,
}

impl Agent {
    /// Whether a command is called as the prompts of a session's servers are.
    pub(in crate::agent) fn is_servers_prompt(&self, key: SessionKey, command: &str) -> bool {
        let session = self.sessions.get(&key);
        session.is_some_and(|session| session.servers.hub.has_prompts_like(command))
    }

    /// Has a server fill the prompt that was typed.
    pub(in crate::agent) fn fill_prompt(&mut self, key: SessionKey, prompt: Prompt) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let typed = prompt.typed.as_ref().map(|typed| typed.text.as_str());
        let typed = typed
            .and_then(|text| text.strip_prefix('/'))
            .unwrap_or_default();
        let (command, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        let (command, rest) = (String::from(command), String::from(rest));
        let call = CallId::new(self.ids.next());
        session.servers.calls.insert(call);
        session.servers.filling = Some(Filling { call, prompt });
        self.with_servers(key, |hub, cx| hub.prompt(cx, call, &command, &rest));
    }

    /// A prompt is filled, or is not.
    pub(super) fn prompt_filled(&mut self, key: SessionKey, result: Result<String, String>) {
        let session = self.sessions.get_mut(&key);
        let Some(filling) = session.and_then(|it| it.servers.filling.take()) else {
            return;
        };
        match result {
            Ok(text) => self.begin_prompt(key, prompt_of(text, filling.prompt)),
            Err(why) => self.command_failed(key, &filling.prompt, why),
        }
    }

    /// Who typed it does not wait any more; false if nobody did.
    pub(super) fn leave_prompt(&mut self, key: SessionKey) -> bool {
        let session = self.sessions.get_mut(&key);
        let Some(filling) = session.and_then(|it| it.servers.filling.take()) else {
            return false;
        };
        if let Some(session) = self.sessions.get_mut(&key) {
            session.servers.calls.remove(&filling.call);
        }
        self.with_servers(key, |hub, cx| hub.cancel(cx, filling.call));
        true
    }
}
