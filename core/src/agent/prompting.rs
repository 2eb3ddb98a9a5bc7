//! A prompt on its way to the engine: what it holds is looked at and saved, it gives the session its
//! title, and it can be taken back.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::content::Attachment;
use super::dispatch::read_only_session;
use super::session::Preparing;
use super::{Agent, Owner, content, links};
use crate::call::{Call, Expect, News, Write};
use crate::engine::Message;
use crate::error::IoKind;
use crate::ids::{CallId, SessionKey, TurnKey};
use crate::protocol::schema::{Patch, PromptRequest, SessionInfoUpdate, SessionUpdate};
use crate::wire::RpcError;

impl Agent {
    pub(super) fn prompt(&mut self, turn: TurnKey, key: SessionKey, request: &PromptRequest) {
        let blocks = &request.prompt;
        let checked = links::check(blocks, &self.config.limits);
        let read = checked.and_then(|()| content::read(blocks));
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let prompt = match read {
            Ok(prompt) => prompt,
            Err(why) => {
                if let Some(turn) = self.side.turn(turn) {
                    turn.fail(RpcError::invalid_params(&why));
                }
                return;
            }
        };
        let read_only = self
            .stores
            .get(&session.store)
            .and_then(|stored| stored.read_only.as_deref());
        if let Some(why) = read_only {
            if let Some(turn) = self.side.turn(turn) {
                turn.fail(read_only_session(why));
            }
            return;
        }
        session.turn = Some(turn);
        session.cancelled = false;
        session.patience = None;
        let store = session.store;
        self.inbox_begins_prompt(store);
        self.turns.insert(turn, key);
        if self
            .sessions
            .get(&key)
            .is_some_and(|session| session.untold)
        {
            self.tell_left_out(key);
        }
        if let Some(prompt) = self.run_command(key, prompt) {
            self.begin_prompt(key, prompt);
        }
    }

    /// Begins the turn of a prompt, when its files are saved.
    pub(super) fn begin_prompt(&mut self, key: SessionKey, prompt: content::Prompt) {
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let root = session.root.clone();
        self.prompt_may_launch(key);
        let title = content::title(&prompt, self.config.limits.max_session_title);
        let message = Message {
            parts: prompt.parts,
            shown: prompt.shown,
            goal: prompt.goal,
            item: None,
        };
        let mut preparing = Preparing {
            message,
            title,
            writing: Default::default(),
        };
        for (call, path) in saves(&root, prompt.files) {
            let id = self.start(Owner::Preparing(key), call);
            preparing.writing.insert(id, path);
        }
        if preparing.writing.is_empty() {
            return self.begin_turn(key, preparing);
        }
        if let Some(session) = self.sessions.get_mut(&key) {
            session.preparing = Some(preparing);
        }
    }

    /// All that belongs to a prompt is there.
    fn begin_turn(&mut self, key: SessionKey, prepared: Preparing) {
        self.set_title(key, prepared.title);
        self.prompt_engine(key, prepared.message);
    }

    /// The first words that a person says name the session.
    pub(super) fn set_title(&mut self, key: SessionKey, title: String) {
        let Some(session) = self
            .sessions
            .get_mut(&key)
            .filter(|session| !session.titled && !title.is_empty())
        else {
            return;
        };
        session.titled = true;
        if let Some(stored) = self.stores.get_mut(&session.store) {
            stored.summary.title.clone_from(&title);
        }
        let info = SessionInfoUpdate {
            title: Patch::Value(title),
            ..SessionInfoUpdate::default()
        };
        if let Some(mut session) = self.side.session(key) {
            session.notify(&SessionUpdate::SessionInfoUpdate(info));
        }
    }

    /// An attachment is saved, or is not.
    pub(super) fn prepared(&mut self, key: SessionKey, id: CallId, news: News<'_>) {
        let fault = match news {
            News::Done(_) => None,
            News::Failed(fault) => Some(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let Some(preparing) = &mut session.preparing else {
            return;
        };
        let Some(path) = preparing.writing.remove(&id) else {
            return;
        };
        match (path, fault) {
            (Some(path), Some(fault)) => preparing.not_saved(&path, &fault.message),
            // The file that keeps attachments out of version control is there, or cannot be.
            (None, Some(fault)) if fault.kind == IoKind::Exists => {}
            (None, Some(_)) | (_, None) => {}
        }
        if preparing.writing.is_empty()
            && let Some(preparing) = session.preparing.take()
        {
            self.begin_turn(key, preparing);
        }
    }

    pub(super) fn cancel_turn(&mut self, turn: TurnKey) {
        let Some(key) = self.turns.get(&turn).copied() else {
            return;
        };
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if !core::mem::replace(&mut session.cancelled, true) {
            session.patience = Some(self.now.plus(self.config.limits.cancel_patience));
        }
        self.withdraw_launch(key, None);
        let waited = self.sessions.get_mut(&key).is_some_and(|session| {
            core::mem::take(&mut session.reloading)
                || session.preparing.take().is_some()
                || session.calling.take().is_some()
        });
        if waited || self.leave_servers_command(key) {
            self.finish(key, crate::engine::Ending::Cancelled);
            return;
        }
        if self.cancel_next(key) {
            return;
        }
        self.with_engine(key, |engine, cx| engine.cancel(cx));
        self.after_launch_card(key);
        // A cancelled turn has more room, so that its end is not held up.
        self.flush(key);
    }
}

/// The calls that save what came with a message beneath `root`, each with the path that the message
/// names it by; none for the file that keeps them out of version control.
pub(super) fn saves(
    root: &str,
    files: Vec<Attachment>,
) -> impl Iterator<Item = (Call, Option<String>)> {
    let ignore = (!files.is_empty()).then(|| Attachment {
        path: format!("{}/.gitignore", content::FOLDER),
        bytes: b"*\n".to_vec(),
    });
    let ignore = ignore.into_iter().map(|file| (file, None));
    let files = files.into_iter().map(|file| {
        let path = file.path.clone();
        (file, Some(path))
    });
    ignore.chain(files).map(move |(file, path)| {
        let call = Call::Write(Write {
            path: format!("{root}/{}", file.path),
            beneath: Some(root.into()),
            bytes: file.bytes,
            expect: match path {
                Some(_) => Expect::Anything,
                None => Expect::Absent,
            },
            parents: true,
            private: false,
        });
        (call, path)
    })
}
