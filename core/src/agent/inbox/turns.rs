//! Items and guidance in the turns of a session. An item's turn runs inside the prompt that is open:
//! after a turn that ended well the next item begins, until none waits; one answer ends it all.

use alloc::string::String;
use alloc::vec::Vec;

use super::super::saving::StoreKey;
use super::super::{Agent, content};
use super::Then;
use crate::engine::Ending;
use crate::engine::record::{Author, Message, Record, Shown};
use crate::ids::SessionKey;
use crate::model::Part;
use crate::protocol::schema::{ContentBlock, ContentChunk, Meta, SessionUpdate};
use crate::store::inbox::{BlockCode, Body, RefKind};
use serde::Serialize;

/// An item whose turn runs.
pub(super) struct Running {
    id: String,
    /// Its message in the transcript is safe.
    claimed: bool,
    /// The model was heard.
    acted: bool,
}

/// `_meta` of a text that is a notice.
#[derive(Serialize)]
struct NoticeMeta {
    #[serde(rename = "reasonix.io")]
    ours: NoticeOurs,
}

#[derive(Serialize)]
struct NoticeOurs {
    notice: NoticeCode,
}

#[derive(Serialize)]
struct NoticeCode {
    code: &'static str,
}

impl Agent {
    /// Whether a turn runs that takes guidance. What the agent does itself, or the person has it run,
    /// asks no model that could hear any.
    pub(super) fn is_steerable(&self, store: StoreKey) -> bool {
        let session = self.stores.get(&store).and_then(|stored| stored.session);
        let session = session.and_then(|key| self.sessions.get(&key));
        session.is_some_and(|session| {
            let engine = &session.engine;
            session.turn.is_some()
                && !session.command
                && !session.cancelled
                && !engine.is_idle()
                && !engine.is_settling()
        })
    }

    /// A turn gets guidance that is on the disk.
    pub(super) fn give_guidance(&mut self, store: StoreKey, id: &str) {
        let Some(message) = self.message(store, id) else {
            return;
        };
        let key = self.stores.get(&store).and_then(|stored| stored.session);
        if let Some(session) = key.and_then(|key| self.sessions.get_mut(&key)) {
            session.engine.guide(message);
        }
    }

    /// Guidance was taken out of the inbox before the turn read it.
    pub(super) fn withdraw_guidance(&mut self, store: StoreKey, id: &str) {
        let key = self.stores.get(&store).and_then(|stored| stored.session);
        if let Some(session) = key.and_then(|key| self.sessions.get_mut(&key)) {
            session.engine.withdraw_guidance(id);
        }
    }

    /// What the model gets of an item, and what people are shown of it.
    fn message(&mut self, store: StoreKey, id: &str) -> Option<Message> {
        let body: Body = self.desk(store)?.inbox.get(id)?.body();
        let mut parts = Vec::from([Part::Text(body.prompt())]);
        for frozen in &body.refs {
            if let (RefKind::Frozen | RefKind::Attachment, Some(bytes)) =
                (frozen.kind, &frozen.content)
            {
                parts.extend(content::picture(bytes));
            }
        }
        let pictures = parts.len() - 1;
        let shown = (!body.refs.is_empty()).then(|| {
            let mut shown = Vec::from([Shown::Text(body.text)]);
            shown.extend((0..pictures).map(Shown::Image));
            shown
        });
        Some(Message {
            parts,
            shown,
            goal: None,
            item: Some(id.into()),
        })
    }

    /// Something was remembered of a session's turn.
    pub(in crate::agent) fn inbox_sees(&mut self, key: SessionKey, record: &Record) {
        let at = self.inbox_time();
        let Some(store) = self.sessions.get(&key).map(|session| session.store) else {
            return;
        };
        let Some(desk) = self.desk_of(store) else {
            return;
        };
        if let Some(running) = &mut desk.running {
            running.acted |= record.shows_model();
        }
        if let Record::User(user) = record
            && let (Author::Guidance, Some(id)) = (user.from, &user.item)
        {
            let lines = desk.inbox.consume(at, id).lines;
            self.keep(store, lines, false);
        }
    }

    /// The claims of a session's turn are safe.
    pub(in crate::agent) fn inbox_claimed(&mut self, key: SessionKey) {
        let Some(store) = self.sessions.get(&key).map(|session| session.store) else {
            return;
        };
        if let Some(desk) = self.desk_of(store)
            && let Some(running) = &mut desk.running
        {
            running.claimed = true;
        }
    }

    /// A prompt begins.
    pub(in crate::agent) fn inbox_begins_prompt(&mut self, store: StoreKey) {
        if let Some(desk) = self.desk_of(store) {
            desk.before = None;
        }
    }

    /// A turn is over, and its end is safe or never will be. Returns how the prompt is answered;
    /// none if it stays open for the next item.
    pub(in crate::agent) fn next_from_inbox(
        &mut self,
        key: SessionKey,
        ending: Ending,
    ) -> Option<Ending> {
        let Some(session) = self.sessions.get(&key) else {
            return Some(ending);
        };
        let (store, cancelled) = (session.store, session.cancelled);
        if self
            .stores
            .get(&store)
            .is_none_or(|stored| stored.desk.is_none())
        {
            return Some(ending);
        }
        self.settle_inbox(key, store, &ending);
        let well = match ending {
            Ending::EndTurn | Ending::MaxTokens | Ending::MaxSteps => true,
            Ending::Refusal | Ending::Cancelled | Ending::Failed { .. } => false,
        };
        let saved = self
            .stores
            .get(&store)
            .is_some_and(|stored| stored.journal.fault().is_none());
        let open = session_is_open(self, key) && well && saved && !cancelled;
        if open {
            self.renew_inbox(store);
        }
        let desk = self.desk(store)?;
        if !open || desk.inbox.next().is_none() {
            return Some(worse(desk.before.take(), ending));
        }
        // What is begun has to be known: it was put in before, but may not be on the disk yet.
        self.when_kept(store, Then::Begin(ending));
        None
    }

    /// The next item begins, if there still is one; otherwise the prompt is answered.
    pub(super) fn begin_or_end(&mut self, store: StoreKey, ending: Ending) {
        let at = self.inbox_time();
        let Some(key) = self.stores.get(&store).and_then(|stored| stored.session) else {
            return;
        };
        let cancelled = self
            .sessions
            .get(&key)
            .is_none_or(|session| session.cancelled);
        let Some(desk) = self.desk(store) else { return };
        let next = desk.inbox.next().map(|item| item.id.clone());
        let begun = match next.filter(|_| !cancelled) {
            Some(id) => desk.inbox.begin(at, &id).ok().map(|done| (id, done.lines)),
            None => None,
        };
        let Some((id, lines)) = begun else {
            let ending = worse(desk.before.take(), ending);
            return self.answer_prompt(key, ending);
        };
        desk.before = Some(worse(desk.before.take(), ending));
        desk.running = Some(Running {
            id: id.clone(),
            claimed: false,
            acted: false,
        });
        self.keep(store, lines, false);
        if let Some(message) = self.message(store, &id) {
            self.lend_tools(key);
            self.with_engine(key, |engine, cx| engine.prompt(cx, message));
        }
    }

    /// The prompt is cancelled while the next item waits for the disk: it does not begin. Returns
    /// whether that was so.
    pub(in crate::agent) fn cancel_next(&mut self, key: SessionKey) -> bool {
        let Some(store) = self.sessions.get(&key).map(|session| session.store) else {
            return false;
        };
        let Some(desk) = self.desk_of(store) else {
            return false;
        };
        let waits = desk.waits.len();
        desk.waits
            .retain(|(_, then)| !matches!(then, Then::Begin(_)));
        let stopped = desk.waits.len() < waits;
        if stopped {
            self.answer_prompt(key, Ending::Cancelled);
        }
        stopped
    }

    /// What a turn that is over means for its items.
    fn settle_inbox(&mut self, key: SessionKey, store: StoreKey, ending: &Ending) {
        let at = self.inbox_time();
        if let Some(session) = self.sessions.get_mut(&key) {
            // What is not read is in the inbox.
            session.engine.take_guidance();
        }
        let mut error = match ending {
            Ending::Failed { message, .. } => message.clone(),
            Ending::EndTurn
            | Ending::MaxTokens
            | Ending::MaxSteps
            | Ending::Refusal
            | Ending::Cancelled => String::new(),
        };
        self.known.secrets().redact(&mut error);
        let Some(stored) = self.stores.get_mut(&store) else {
            return;
        };
        let unsaved = stored
            .journal
            .fault()
            .map(|fault| alloc::format!("{fault}"));
        let Some(desk) = &mut stored.desk else { return };
        let mut lines = Vec::new();
        if let Some(running) = desk.running.take() {
            let id = &running.id;
            let done = match (&unsaved, ending) {
                (Some(why), _) if running.claimed => {
                    desk.inbox.uncertain(at, id, BlockCode::TurnAckFailed, why)
                }
                (Some(why), _) => desk
                    .inbox
                    .uncertain(at, id, BlockCode::TurnSnapshotFailed, why),
                (None, Ending::Failed { .. }) => desk.inbox.fail(at, id, !running.acted, &error),
                (
                    None,
                    Ending::EndTurn
                    | Ending::MaxTokens
                    | Ending::MaxSteps
                    | Ending::Refusal
                    | Ending::Cancelled,
                ) => desk.inbox.finish(id),
            };
            lines.extend(done.lines);
        }
        let read: Vec<_> = desk.inbox.consumed().map(|item| item.id.clone()).collect();
        for id in read {
            lines.extend(desk.inbox.finish(&id).lines);
        }
        lines.extend(desk.inbox.give_back(at).lines);
        self.keep(store, lines, false);
    }

    /// What the person should know of the inbox of a session that is open.
    pub(in crate::agent) fn announce_inbox(&mut self, key: SessionKey) {
        let Some(store) = self.sessions.get(&key).map(|session| session.store) else {
            return;
        };
        let desk = self.desk_of(store);
        let Some((code, notice)) = desk.and_then(|desk| desk.notice.take()) else {
            return;
        };
        if let Some(mut session) = self.side.session(key) {
            let text = alloc::format!("\n\n[warning] {notice}\n\n");
            let mut chunk = ContentChunk::new(ContentBlock::text(text));
            chunk.meta = Meta::of(&NoticeMeta {
                ours: NoticeOurs {
                    notice: NoticeCode { code },
                },
            });
            session.notify(&SessionUpdate::AgentMessageChunk(chunk));
        }
    }
}

fn session_is_open(agent: &Agent, key: SessionKey) -> bool {
    agent
        .sessions
        .get(&key)
        .is_some_and(|session| session.turn.is_some())
}

/// How a prompt of several turns ended: as the last one, unless that ended simply and an earlier
/// one did not.
fn worse(before: Option<Ending>, last: Ending) -> Ending {
    match (before, last) {
        (Some(before), Ending::EndTurn) => before,
        (_, last) => last,
    }
}
