//! From a request of the client to its answer.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::de::DeserializeOwned;

use super::super::dispatch::gone;
use super::super::saving::StoreKey;
use super::super::vendor::{no_session, refused};
use super::super::{Agent, content, links};
use super::gather::Aim;
use super::{Then, shapes};
use crate::error::IoFault;
use crate::protocol::Asked;
use crate::protocol::methods::Vendor;
use crate::protocol::schema::vendor::inbox::{
    self as schema, EnqueueRequest, EnqueueResponse, GetResponse, ItemRequest, ListRequest,
    MoveRequest, OkResponse, SetPausedRequest, SetPausedResponse, SteerRequest, SteerResponse,
    UpdateRequest,
};
use crate::protocol::schema::{ContentBlock, Json, SessionId};
use crate::store::inbox::{Enqueued, Intent, Refusal, State};
use crate::wire::{RequestKey, RpcError};

/// A request, and the right to answer it.
pub(super) struct Request {
    pub(super) asked: Asked<Vendor>,
    wish: Wish,
}

/// What a client asks of an inbox.
pub(in crate::agent) enum Wish {
    Steer(Vec<ContentBlock>),
    Enqueue {
        text: String,
        intent: Intent,
        key: Option<String>,
    },
    List,
    Get(String),
    Update(String, String),
    Delete(String),
    Move(String, i64),
    SetPaused(bool),
    Retry(String),
    Refresh(String),
}

/// Reads a request; none if it is for somebody else.
pub(in crate::agent) fn read(
    method: &str,
    params: Option<&Json>,
) -> Option<Result<(SessionId, Wish), RpcError>> {
    let item = |wish: fn(String) -> Wish| {
        decode::<ItemRequest>(method, params).map(|r| (r.session_id, wish(r.item_id)))
    };
    Some(match method {
        schema::STEER => {
            decode::<SteerRequest>(method, params).map(|r| (r.session_id, Wish::Steer(r.prompt)))
        }
        schema::ENQUEUE => decode::<EnqueueRequest>(method, params).map(|r| {
            let steer = r
                .intent
                .is_some_and(|i| i.trim().eq_ignore_ascii_case("steer"));
            let wish = Wish::Enqueue {
                text: r.text,
                intent: if steer {
                    Intent::Steer
                } else {
                    Intent::FollowUp
                },
                key: r.idempotency_key,
            };
            (r.session_id, wish)
        }),
        schema::LIST => decode::<ListRequest>(method, params).map(|r| (r.session_id, Wish::List)),
        schema::GET => item(Wish::Get),
        schema::UPDATE => decode::<UpdateRequest>(method, params)
            .map(|r| (r.session_id, Wish::Update(r.item_id, r.text))),
        schema::DELETE => item(Wish::Delete),
        schema::MOVE => decode::<MoveRequest>(method, params)
            .map(|r| (r.session_id, Wish::Move(r.item_id, r.to_index))),
        schema::SET_PAUSED => decode::<SetPausedRequest>(method, params)
            .map(|r| (r.session_id, Wish::SetPaused(r.paused))),
        schema::RETRY => item(Wish::Retry),
        schema::REFRESH => item(Wish::Refresh),
        _ => return None,
    })
}

fn decode<T: DeserializeOwned>(method: &str, params: Option<&Json>) -> Result<T, RpcError> {
    let text = params.map_or("null", Json::get);
    serde_json::from_str(text).map_err(|error| {
        let why = crate::protocol::schema::object::why_unread(text, &error);
        RpcError::invalid_params(&format!("{method}: {why}"))
    })
}

/// A refusal, as clients are told.
pub(super) fn error(refusal: &Refusal, blank_is_bad: bool) -> RpcError {
    let why = format!("{refusal}");
    if blank_is_bad && *refusal == Refusal::Empty {
        RpcError::invalid_params(&why)
    } else {
        refused(refusal.code(), &why)
    }
}

pub(super) fn json(value: &impl serde::Serialize) -> Json {
    Json::of(value).expect("a type for the wire has a JSON form")
}

impl Agent {
    /// A request for the inbox of a session.
    pub(in crate::agent) fn inbox_request(
        &mut self,
        asked: Asked<Vendor>,
        id: &SessionId,
        wish: Wish,
    ) {
        let store = self.vendor_session(id).and_then(|key| {
            let session = self.sessions.get(&key).ok_or_else(|| no_session(id))?;
            Ok(session.store)
        });
        let store = match store {
            Ok(store) => store,
            Err(error) => return self.side.answer(asked, Err(error)),
        };
        let Some(desk) = self.desk(store) else {
            return self.side.answer(asked, Err(no_session(id)));
        };
        if !desk.kept && !matches!(wish, Wish::Steer(_)) {
            let why = "the session is not stored, so it has no inbox";
            let error = refused("not_persisted", why);
            return self.side.answer(asked, Err(error));
        }
        desk.line.push_back(Request { asked, wish });
        self.serve_inbox(store);
    }

    /// Takes requests one after the other, until one has to wait for its files.
    pub(super) fn serve_inbox(&mut self, store: StoreKey) {
        loop {
            let Some(desk) = self.desk_of(store) else {
                return;
            };
            if desk.gathering.is_some() {
                return;
            }
            let Some(Request { asked, wish }) = desk.line.pop_front() else {
                return;
            };
            self.serve(store, asked, wish);
        }
    }

    fn serve(&mut self, store: StoreKey, asked: Asked<Vendor>, wish: Wish) {
        let at = self.inbox_time();
        if !matches!(wish, Wish::List | Wish::Get(_)) {
            if let Some(error) = self.session_is_lost(store) {
                return self.side.answer(asked, Err(error));
            }
            self.renew_inbox(store);
        }
        let Some(desk) = self.desk(store) else {
            return self.side.answer(asked, Err(gone()));
        };
        let ok = || json(&OkResponse::new(true));
        let result = match wish {
            Wish::Steer(blocks) => return self.steer(store, asked, &blocks),
            Wish::Enqueue { text, intent, key } => {
                return self.take_message(store, asked, text, intent, key);
            }
            Wish::List => return self.when_kept(store, Then::List(asked)),
            Wish::Get(id) => return self.when_kept(store, Then::Get(asked, id)),
            Wish::Update(id, text) => {
                let checked = match desk.inbox.pending(&id) {
                    Ok(_) if text.trim().is_empty() => Err(Refusal::Empty),
                    Ok(_) => Ok(()),
                    Err(refusal) => Err(refusal),
                };
                match checked {
                    Ok(()) => {
                        return self.gather(store, asked, Aim::Update(id), text, Vec::new());
                    }
                    Err(refusal) => Err(refusal),
                }
            }
            Wish::Refresh(id) => match desk.inbox.pending(&id) {
                Ok(item) => {
                    let text = item.body().text;
                    return self.gather(store, asked, Aim::Refresh(id), text, Vec::new());
                }
                Err(refusal) => Err(refusal),
            },
            Wish::Delete(id) => desk
                .inbox
                .delete(&id)
                .map(|done| (done.lines, ok(), Some(id))),
            Wish::Move(id, to) => {
                let done = desk.inbox.move_to(at, &id, to);
                done.map(|done| (done.lines, ok(), None))
            }
            Wish::SetPaused(paused) => desk.inbox.set_paused(paused).map(|done| {
                let answer = json(&SetPausedResponse::new(done.answer));
                (done.lines, answer, None)
            }),
            Wish::Retry(id) => {
                let done = desk.inbox.retry(at, &id);
                done.map(|done| (done.lines, ok(), None))
            }
        };
        match result {
            Ok((lines, answer, withdrawn)) => {
                if let Some(id) = withdrawn {
                    self.withdraw_guidance(store, &id);
                }
                self.keep(store, lines, true);
                self.when_kept(store, Then::Answer(asked, answer));
            }
            Err(refusal) => self.side.answer(asked, Err(error(&refusal, false))),
        }
    }

    /// The refusal of whatever would change the inbox of a session whose transcript is not written any
    /// more: none of it could be answered, or run.
    pub(super) fn session_is_lost(&self, store: StoreKey) -> Option<RpcError> {
        let fault = self.stores.get(&store)?.journal.fault()?;
        let why = not_saved(fault);
        Some(error(&Refusal::ReadOnly { why }, false))
    }

    fn steer(&mut self, store: StoreKey, asked: Asked<Vendor>, blocks: &[ContentBlock]) {
        let checked = links::check(blocks, &self.config.limits);
        let read = checked.and_then(|()| content::read(blocks));
        let prompt = match read {
            Ok(prompt) => prompt,
            Err(why) => {
                let error = RpcError::invalid_params(&why);
                return self.side.answer(asked, Err(error));
            }
        };
        let text = prompt.text().trim().to_string();
        let steerable = self.is_steerable(store);
        let Some(desk) = self.desk(store) else {
            return self.side.answer(asked, Err(gone()));
        };
        if !desk.kept && !steerable {
            let why = "no turn runs, and the session is not stored: nothing can be kept for later";
            let error = refused("not_running", why);
            return self.side.answer(asked, Err(error));
        }
        match desk.inbox.admits(&text, SOURCE, None) {
            Ok(_) => {
                let aim = Aim::Enqueue {
                    intent: Intent::Steer,
                    key: None,
                    steer: true,
                };
                self.gather(store, asked, aim, text, prompt.files);
            }
            Err(refusal) => self.side.answer(asked, Err(error(&refusal, true))),
        }
    }

    fn take_message(
        &mut self,
        store: StoreKey,
        asked: Asked<Vendor>,
        text: String,
        intent: Intent,
        key: Option<String>,
    ) {
        let Some(desk) = self.desk(store) else {
            return self.side.answer(asked, Err(gone()));
        };
        match desk.inbox.admits(&text, SOURCE, key.as_deref()) {
            Ok(Some(known)) => {
                let answer = json(&enqueued(&known));
                self.when_kept(store, Then::Answer(asked, answer));
            }
            Ok(None) => {
                let aim = Aim::Enqueue {
                    intent,
                    key,
                    steer: false,
                };
                self.gather(store, asked, aim, text, Vec::new());
            }
            Err(refusal) => self.side.answer(asked, Err(error(&refusal, true))),
        }
    }

    /// What waited for the disk goes on.
    pub(super) fn inbox_goes_on_with(&mut self, store: StoreKey, then: Then, safe: bool) {
        let limits = &self.config.limits;
        let stored = self.stores.get(&store);
        let fault = stored.and_then(|stored| stored.journal.fault());
        let Some(desk) = stored.and_then(|stored| stored.desk.as_ref()) else {
            return then.refuse(&mut self.side, gone());
        };
        let lost = || {
            let why = match (desk.inbox.read_only(), fault) {
                (Some(why), _) => why.into(),
                (None, Some(fault)) => not_saved(fault),
                (None, None) => "it is closed".into(),
            };
            error(&Refusal::ReadOnly { why }, false)
        };
        let (asked, result) = match then {
            Then::List(asked) => {
                let snapshot = shapes::snapshot(&desk.inbox, &desk.id, limits);
                (asked, Ok(json(&snapshot)))
            }
            Then::Get(asked, id) => {
                let answer = desk.inbox.get(&id).map(|item| {
                    let meta = shapes::meta(item, &desk.inbox, &desk.id);
                    json(&GetResponse::new(meta, shapes::envelope(item)))
                });
                let missing = || error(&Refusal::NotFound, false);
                (asked, answer.ok_or_else(missing))
            }
            Then::Answer(asked, answer) if safe => (asked, Ok(answer)),
            Then::Answer(asked, _) => (asked, Err(lost())),
            Then::Guide { asked, .. } if !safe => (asked, Err(lost())),
            Then::Guide {
                asked,
                mut done,
                steer,
            } => {
                if !done.idempotent {
                    self.guide(store, &mut done);
                }
                let kept = self.stores.get(&store).and_then(|s| s.desk.as_ref());
                let kept = kept.is_some_and(|desk| desk.kept);
                let answer = if steer {
                    let mut answer = SteerResponse::new(shapes::disposition(done.disposition));
                    answer.item_id = kept.then_some(done.id);
                    json(&answer)
                } else {
                    json(&enqueued(&done))
                };
                (asked, Ok(answer))
            }
            Then::Begin(ending) => return self.begin_or_end(store, ending),
        };
        self.side.answer(asked, result);
    }

    /// Guidance is on the disk: the turn gets it, if it still runs.
    fn guide(&mut self, store: StoreKey, done: &mut Enqueued) {
        let steerable = self.is_steerable(store);
        let at = self.inbox_time();
        let Some(desk) = self.desk(store) else { return };
        let accepted = |desk: &super::Desk| {
            let item = desk.inbox.get(&done.id);
            item.is_some_and(|item| item.state == State::SteerAccepted)
        };
        if accepted(desk) {
            if steerable {
                self.give_guidance(store, &done.id);
            } else {
                let lines = desk.inbox.give_back(at).lines;
                self.keep(store, lines, false);
            }
        }
        if let Some(item) = self.desk(store).and_then(|desk| desk.inbox.get(&done.id)) {
            done.disposition = match item.state {
                State::SteerAccepted | State::SteerConsumed => {
                    crate::store::inbox::Disposition::SteerAccepted
                }
                State::Queued | State::Running | State::Blocked | State::Uncertain => {
                    crate::store::inbox::Disposition::QueuedFollowup
                }
            };
        }
    }

    /// The session is not open any more: who still waits for a look at its inbox is told.
    pub(in crate::agent) fn leave_inbox(&mut self, store: StoreKey) {
        let Some(desk) = self.desk_of(store) else {
            return;
        };
        let id = desk.id.clone();
        let mut left: Vec<_> = desk.line.drain(..).map(|request| request.asked).collect();
        left.extend(desk.gathering.take().map(|gathering| gathering.asked));
        for asked in left {
            self.side.answer(asked, Err(no_session(&id)));
        }
    }

    /// A request is taken back before anything came of it.
    pub(super) fn drop_request(&mut self, store: StoreKey, key: RequestKey) {
        let Some(desk) = self.desk_of(store) else {
            return;
        };
        let asked = if desk.gathering.as_ref().is_some_and(|g| g.is(key)) {
            desk.gathering.take().map(|gathering| gathering.asked)
        } else {
            let at = desk.line.iter().position(|r| r.asked.key() == key);
            at.and_then(|at| desk.line.remove(at))
                .map(|request| request.asked)
        };
        if let Some(asked) = asked {
            self.side.answer(asked, Err(RpcError::cancelled()));
        }
        self.serve_inbox(store);
    }
}

/// Who puts items in, by the protocol.
pub(super) const SOURCE: &str = "acp";

/// Why nothing of a session is changed any more.
fn not_saved(fault: &IoFault) -> String {
    format!("the session is not saved any more: {fault}. Open it again")
}

fn enqueued(done: &Enqueued) -> EnqueueResponse {
    let disposition = shapes::disposition(done.disposition);
    let mut answer = EnqueueResponse::new(done.id.as_str(), disposition);
    // An inbox holds fewer items than a number of 32 bits counts.
    answer.position = u32::try_from(done.position).unwrap_or(u32::MAX);
    answer.paused = done.paused;
    answer.idempotent = done.idempotent;
    answer
}
