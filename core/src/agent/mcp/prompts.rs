//! Prompts of servers as slash commands. What is typed is filled by the server, and what comes of
//! that is the prompt of a turn; people see what was typed.
//!
//! | while it is filled | then |
//! | --- | --- |
//! | the server answers | the turn begins with its text |
//! | it does not, or cannot be used | the command says why, no model is asked |
//! | the prompt is cancelled | it is over; the server is told |

use alloc::string::String;
use alloc::vec::Vec;

use crate::agent::Agent;
use crate::agent::content::{self, Prompt};
use crate::engine::Message;
use crate::engine::record::{Record, Shown};
use crate::ids::{CallId, SessionKey};
use crate::model::Part;

/// A prompt that is being filled.
pub(super) struct Filling {
    pub(super) call: CallId,
    /// What the person typed.
    typed: String,
}

impl Agent {
    /// Has a server fill the prompt that a text names; false if it names none.
    pub(in crate::agent) fn fill_prompt(&mut self, key: SessionKey, text: &str) -> bool {
        let typed = text.trim();
        let Some(command) = typed.strip_prefix('/') else {
            return false;
        };
        let (command, rest) = command
            .split_once(char::is_whitespace)
            .unwrap_or((command, ""));
        let Some(session) = self.sessions.get_mut(&key) else {
            return false;
        };
        if !session.servers.hub.has_prompts_like(command) {
            return false;
        }
        let call = CallId::new(self.ids.next());
        session.servers.calls.insert(call);
        session.servers.filling = Some(Filling {
            call,
            typed: typed.into(),
        });
        self.with_servers(key, |hub, cx| hub.prompt(cx, call, command, rest));
        true
    }

    /// A prompt is filled, or is not.
    pub(super) fn prompt_filled(&mut self, key: SessionKey, result: Result<String, String>) {
        let session = self.sessions.get_mut(&key);
        let Some((session, filling)) =
            session.and_then(|it| it.servers.filling.take().map(|filling| (it, filling)))
        else {
            return;
        };
        let typed = filling.typed;
        match result {
            Ok(text) => {
                let said = Prompt {
                    parts: Vec::from([Part::Text(typed.clone())]),
                    ..Prompt::default()
                };
                let title = content::title(&said, self.config.limits.max_session_title);
                self.set_title(key, title);
                let message = Message {
                    parts: Vec::from([Part::Text(text)]),
                    shown: Some(Vec::from([Shown::Text(typed)])),
                    item: None,
                };
                self.with_engine(key, |engine, cx| engine.prompt(cx, message));
            }
            Err(why) => {
                session.command = true;
                self.with_engine(key, |engine, cx| {
                    engine.record(
                        cx,
                        Record::Command {
                            text: typed,
                            shown: None,
                        },
                    );
                });
                self.servers_command_done(key, why);
            }
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
