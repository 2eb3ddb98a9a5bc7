//! The files of a message: those that came with it are saved, those it refers to are read and
//! frozen. Until then those behind it wait.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::content::{self, Attachment};
use super::super::dispatch::gone;
use super::super::prompting::saves;
use super::super::saving::StoreKey;
use super::super::vendor::no_session;
use super::super::{Agent, Owner};
use super::requests::{SOURCE, error, json};
use super::{Then, shapes};
use crate::call::{Call, FileKind, News, Outcome, Resolved};
use crate::error::{IoFault, IoKind};
use crate::ids::CallId;
use crate::link;
use crate::protocol::Asked;
use crate::protocol::methods::Vendor;
use crate::protocol::schema::SessionId;
use crate::protocol::schema::vendor::inbox::OkResponse;
use crate::secret::Secrets;
use crate::store::inbox::{Done, Draft, Found, Intent, NewItem, Reference, references};
use crate::wire::RequestKey;

/// A request whose files are being saved and read.
pub(super) struct Gathering {
    pub(super) asked: Asked<Vendor>,
    aim: Aim,
    text: String,
    /// What the references lead to, as far as it is known.
    found: Vec<(Reference, Option<Found>)>,
    calls: BTreeMap<CallId, Errand>,
}

/// What becomes of the text when its files are there.
pub(super) enum Aim {
    Enqueue {
        intent: Intent,
        key: Option<String>,
        steer: bool,
    },
    Update(String),
    Refresh(String),
}

/// What a call is for.
enum Errand {
    Save(Option<String>),
    /// To see what a reference leads to, by this path.
    Resolve(usize, String),
    Read(usize),
}

impl Gathering {
    /// Whether it is for this request.
    pub(super) fn is(&self, key: RequestKey) -> bool {
        self.asked.key() == key
    }
}

impl Agent {
    /// Saves the files that came with a text, and reads those it refers to.
    pub(super) fn gather(
        &mut self,
        store: StoreKey,
        asked: Asked<Vendor>,
        aim: Aim,
        text: String,
        files: Vec<Attachment>,
    ) {
        let limits = &self.config.limits;
        let mut gathering = Gathering {
            asked,
            aim,
            found: references(&text, limits.max_inbox_refs)
                .into_iter()
                .map(|reference| (reference, None))
                .collect(),
            text,
            calls: BTreeMap::new(),
        };
        let session = self.stores.get(&store).and_then(|stored| stored.session);
        let Some(session) = session.and_then(|key| self.sessions.get(&key)) else {
            let id = self.desk(store).map(|desk| desk.id.clone());
            let error = id.map_or_else(gone, |id| no_session(&id));
            return self.side.answer(gathering.asked, Err(error));
        };
        let (cwd, root) = (session.cwd.clone(), session.root.clone());
        for (reference, found) in &mut gathering.found {
            if let Some(file) = files.iter().find(|file| file.path == reference.path) {
                *found = Some(Found::Attachment(Some(file.bytes.clone())));
            }
        }
        for (call, path) in saves(&root, files) {
            let id = self.start(Owner::Inbox(store), call);
            gathering.calls.insert(id, Errand::Save(path));
        }
        for (at, (reference, found)) in gathering.found.iter().enumerate() {
            if found.is_none() {
                let path = join(&cwd, &reference.path);
                let call = Call::Resolve { path: path.clone() };
                let id = self.start(Owner::Inbox(store), call);
                gathering.calls.insert(id, Errand::Resolve(at, path));
            }
        }
        if gathering.calls.is_empty() {
            return self.gathered(store, gathering);
        }
        if let Some(desk) = self.desk(store) {
            desk.gathering = Some(gathering);
        }
    }

    /// News of a call for a request that waits for its files.
    pub(in crate::agent) fn inbox_news(&mut self, store: StoreKey, id: CallId, news: News<'_>) {
        let result = match news {
            News::Done(outcome) => Ok(outcome),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        let secrets = self.known.secrets().clone();
        let Some(desk) = self.desk_of(store) else {
            return;
        };
        let Some(gathering) = &mut desk.gathering else {
            return;
        };
        match (gathering.calls.remove(&id), result) {
            (None, _) => return,
            (Some(Errand::Resolve(at, path)), Ok(Outcome::Resolved(it))) => {
                self.read_reference(store, at, &path, &it);
            }
            (Some(Errand::Resolve(at, _)), result) => {
                if let Some((reference, found)) = gathering.found.get_mut(at) {
                    *found = Some(what_was_found(&reference.path, result));
                }
            }
            (Some(Errand::Save(Some(path))), Err(fault)) => {
                let note = format!("\n\n[@{path} could not be saved: {fault}]");
                gathering.text.push_str(&note);
            }
            (Some(Errand::Save(_)), _) => {}
            (Some(Errand::Read(at)), result) => {
                if let Some((reference, found)) = gathering.found.get_mut(at) {
                    let it = what_was_found(&reference.path, result);
                    *found = Some(without(it, &secrets));
                }
            }
        }
        let Some(desk) = self.desk_of(store) else {
            return;
        };
        let over = |gathering: &mut Gathering| gathering.calls.is_empty();
        if let Some(gathering) = desk.gathering.take_if(over) {
            self.gathered(store, gathering);
            self.serve_inbox(store);
        }
    }

    /// It is known what a reference leads to: read if the tools of its session might read it.
    fn read_reference(&mut self, store: StoreKey, at: usize, path: &str, it: &Resolved) {
        let session = self.stores.get(&store).and_then(|stored| stored.session);
        let engine = session.and_then(|key| self.sessions.get(&key));
        let readable = engine.map(|session| session.engine.readable(path, it));
        let limits = &self.config.limits;
        let (text_max, picture_max) = (limits.max_inbox_ref, limits.max_inbox_frozen);
        let found = match (it.kind, readable) {
            (FileKind::Missing | FileKind::Dangling, _) => Found::Missing,
            (FileKind::Special, _) => Found::Other,
            (_, None) => Found::Failed("the session is closed".into()),
            (_, Some(Err(why))) => Found::Failed(why),
            (FileKind::File | FileKind::Directory, Some(Ok((real, root)))) => {
                let gathering = self.desk_of(store).and_then(|it| it.gathering.as_ref());
                let reference = gathering.and_then(|it| it.found.get(at));
                let attached = reference.is_some_and(|(it, _)| is_attachment(&it.path));
                let call = Call::Read {
                    path: real,
                    beneath: Some(root),
                    max: if attached { picture_max } else { text_max } as u64,
                };
                let id = self.start(Owner::Inbox(store), call);
                if let Some(gathering) = self.desk_of(store).and_then(|it| it.gathering.as_mut()) {
                    gathering.calls.insert(id, Errand::Read(at));
                }
                return;
            }
        };
        let gathering = self.desk_of(store).and_then(|it| it.gathering.as_mut());
        if let Some((_, place)) = gathering.and_then(|it| it.found.get_mut(at)) {
            *place = Some(found);
        }
    }

    /// All files of a request are there, or are not.
    fn gathered(&mut self, store: StoreKey, gathering: Gathering) {
        let Gathering {
            asked,
            aim,
            text,
            found,
            ..
        } = gathering;
        // It may have failed while they were read.
        if let Some(error) = self.session_is_lost(store) {
            return self.side.answer(asked, Err(error));
        }
        let found = found
            .into_iter()
            .map(|(reference, found)| (reference, found.unwrap_or(Found::Missing)));
        let draft = Draft::frozen(text, found, &self.config.limits);
        let at = self.inbox_time();
        let steerable = self.is_steerable(store);
        let id = match &aim {
            Aim::Enqueue { .. } => SessionId::v4(self.random()).to_string(),
            Aim::Update(id) | Aim::Refresh(id) => id.clone(),
        };
        let Some(desk) = self.desk(store) else {
            return self.side.answer(asked, Err(gone()));
        };
        match aim {
            Aim::Enqueue { intent, key, steer } => {
                let new = NewItem {
                    id,
                    intent,
                    source: SOURCE.into(),
                    key,
                    draft,
                };
                match desk.inbox.enqueue(at, new, steerable) {
                    Ok(Done { answer, lines }) => {
                        self.keep(store, lines, true);
                        let then = Then::Guide {
                            asked,
                            done: answer,
                            steer,
                        };
                        self.when_kept(store, then);
                    }
                    Err(refusal) => self.side.answer(asked, Err(error(&refusal, true))),
                }
            }
            Aim::Update(_) => match desk.inbox.update(at, &id, draft) {
                Ok(done) => {
                    let meta = desk.inbox.get(&id);
                    let meta = meta.map(|item| shapes::meta(item, &desk.inbox, &desk.id));
                    self.keep(store, done.lines, true);
                    match meta {
                        Some(meta) => self.when_kept(store, Then::Answer(asked, json(&meta))),
                        // It was there when its text was changed.
                        None => self.side.answer(asked, Err(gone())),
                    }
                }
                Err(refusal) => self.side.answer(asked, Err(error(&refusal, false))),
            },
            Aim::Refresh(_) => match desk.inbox.refresh(at, &id, draft) {
                Ok(done) => {
                    self.keep(store, done.lines, true);
                    let answer = json(&OkResponse::new(true));
                    self.when_kept(store, Then::Answer(asked, answer));
                }
                Err(refusal) => self.side.answer(asked, Err(error(&refusal, false))),
            },
        }
    }
}

/// A path of a reference, from the working directory.
fn join(cwd: &str, path: &str) -> String {
    // What is no good address leads nowhere, as it stands.
    let path = &*link::path(path).unwrap_or(Cow::Borrowed(path));
    if super::super::opening::is_absolute(path) {
        path.into()
    } else {
        format!("{}/{path}", cwd.trim_end_matches('/'))
    }
}

/// What was found, without the keys that stand in a text.
fn without(found: Found, secrets: &Secrets) -> Found {
    let Found::File(bytes) = found else {
        return found;
    };
    Found::File(match String::from_utf8(bytes) {
        Ok(mut text) => {
            secrets.redact(&mut text);
            text.into_bytes()
        }
        Err(other) => other.into_bytes(),
    })
}

fn is_attachment(path: &str) -> bool {
    path.starts_with(content::FOLDER)
}

fn what_was_found(path: &str, result: Result<Outcome, IoFault>) -> Found {
    let attachment = is_attachment(path);
    match result {
        Ok(Outcome::Read(contents)) if attachment => Found::Attachment(Some(contents.bytes)),
        Ok(Outcome::Read(contents)) => Found::File(contents.bytes),
        Ok(_) => Found::Failed("it was not read".into()),
        Err(fault) => match fault.kind {
            IoKind::NotFound => Found::Missing,
            IoKind::TooLarge if attachment => Found::Attachment(None),
            IoKind::WrongKind | IoKind::TooLarge => Found::Other,
            IoKind::Escapes => Found::Failed("it leads out of the session's folder".into()),
            IoKind::Denied
            | IoKind::Exists
            | IoKind::Changed
            | IoKind::Full
            | IoKind::Unreachable
            | IoKind::TimedOut
            | IoKind::Aborted
            | IoKind::Unsupported
            | IoKind::Other => Found::Failed(fault.message),
        },
    }
}
