//! Sessions of the connection: opening, closing, and the frames that wait for either.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use core::num::NonZeroU64;

use crate::ids::SessionKey;
use crate::wire::{RequestKey, RpcError};

use super::super::events::AgentEvent;
use super::super::gates::{Gates, Offers};
use super::super::methods::{AgentMethod, AgentMethodKind, Asked};
use super::super::schema::{SessionId, SessionUpdate};
use super::super::slab::Slab;
use super::super::states::{Connection, ConnectionEvent, Session as State, SessionEvent};
use super::checks::coded;
use super::core::{Core, What};

/// All sessions, by number and by id.
pub(super) struct Sessions {
    slab: Slab<Session>,
    ids: BTreeMap<SessionId, u64>,
}

/// One session. Small: there can be many thousand that do nothing.
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) state: State,
    /// What the client advertised before it was opened.
    pub(super) gates: Gates,
    pub(super) turn: Option<NonZeroU64>,
    #[allow(clippy::box_collection)] // most sessions have none, and pay one pointer for it
    waiting: Option<Box<VecDeque<Held>>>,
}

impl Session {
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting.is_some()
    }
}

/// A frame that waits for its session.
pub(super) struct Held {
    session: u64,
    /// The request; none: a `session/cancel`.
    pub(super) key: Option<RequestKey>,
    pub(super) kind: AgentMethodKind,
    pub(super) method: Box<str>,
    params: Box<str>,
}

impl Held {
    pub(super) fn new(
        session: u64,
        key: Option<RequestKey>,
        kind: AgentMethodKind,
        method: &str,
        params: Option<&str>,
    ) -> Self {
        Self {
            session,
            key,
            kind,
            method: method.into(),
            params: params.unwrap_or_default().into(),
        }
    }

    pub(super) fn params(&self) -> Option<&str> {
        (!self.params.is_empty()).then_some(&*self.params)
    }

    pub(super) fn size(&self) -> usize {
        self.method.len() + self.params.len()
    }
}

/// How a session stands to a request for it.
pub(super) enum Scope {
    /// It takes the request now.
    Active(u64),
    /// The request has to wait.
    Waits(u64),
    /// It is not active.
    Unknown,
}

impl Sessions {
    pub(super) const fn new() -> Self {
        Self {
            slab: Slab::new(),
            ids: BTreeMap::new(),
        }
    }

    pub(super) fn find(&self, id: &SessionId) -> Option<u64> {
        self.ids.get(id).copied()
    }

    pub(super) fn get(&self, key: u64) -> Option<&Session> {
        self.slab.get(key)
    }

    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut Session> {
        self.slab.get_mut(key)
    }

    pub(super) fn waits(&self, key: u64, event: SessionEvent) -> bool {
        self.get(key)
            .is_some_and(|session| session.state.on(event).is_err())
    }

    fn insert(&mut self, id: SessionId, state: State, gates: Gates) -> u64 {
        let key = self.slab.insert(Session {
            id: id.clone(),
            state,
            gates,
            turn: None,
            waiting: None,
        });
        self.ids.insert(id, key);
        key
    }

    fn remove(&mut self, key: u64) -> Option<Session> {
        let session = self.slab.remove(key)?;
        self.ids.remove(&session.id);
        Some(session)
    }
}

impl Core {
    /// How the session with this id stands to a request that is `event` to it.
    pub(super) fn scope(&self, id: &SessionId, event: SessionEvent) -> Result<Scope, RpcError> {
        use alloc::string::ToString;
        if let Err(bad) = id.check() {
            return Err(RpcError::invalid_params(&bad.to_string()));
        }
        Ok(match self.sessions.find(id) {
            None => Scope::Unknown,
            Some(key) if self.sessions.waits(key, event) => Scope::Waits(key),
            Some(key) => Scope::Active(key),
        })
    }

    pub(super) fn room_for_session(&self) -> Result<(), RpcError> {
        if self.sessions.slab.len() < self.limits.max_sessions {
            Ok(())
        } else {
            Err(coded(
                RpcError::invalid_request("Too many sessions are open"),
                "too_many_sessions",
            ))
        }
    }

    /// Makes the place of a session that is loaded or resumed.
    pub(super) fn begin_opening(&mut self, id: &SessionId) -> Result<u64, RpcError> {
        self.room_for_session()?;
        Ok(self.sessions.insert(id.clone(), State::Opening, self.gates))
    }

    /// Makes the place of a session that is deleted and not open: what comes for it waits.
    pub(super) fn begin_removing(&mut self, key: RequestKey, id: &SessionId) {
        let session = self.sessions.insert(id.clone(), State::Opening, self.gates);
        self.move_session(session, SessionEvent::Remove);
        self.set_what(key, What::Closing(session));
    }

    /// Moves a session on; the caller has made sure that the table has the transition.
    pub(super) fn move_session(&mut self, key: u64, event: SessionEvent) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.state = session
            .state
            .on(event)
            .expect("the state was looked at before");
        match session.state {
            State::Open => self.release(key),
            State::Over => {
                self.release(key);
                self.sessions.remove(key);
                self.children.retain(|_, parent| *parent != key);
                self.abandon_asks_of(key);
            }
            State::Opening | State::Reopening | State::Closing | State::Removing => {}
        }
    }

    /// Ends an open session that nobody asked to end.
    #[cfg(feature = "agent")]
    pub(super) fn forget(&mut self, key: u64) {
        if self
            .sessions
            .get(key)
            .is_some_and(|session| session.state == State::Open && session.turn.is_none())
        {
            self.move_session(key, SessionEvent::Close);
            self.move_session(key, SessionEvent::Closed);
        }
    }

    /// Keeps a frame until its session is opened or closed.
    pub(super) fn hold(&mut self, held: Held) -> Result<(), RpcError> {
        let session = self.sessions.get_mut(held.session);
        // It was looked up by the caller just now.
        let session = session.expect("the session is there");
        let waiting = session.waiting.get_or_insert_default();
        let bytes = self.held_bytes + held.size();
        if waiting.len() >= self.limits.max_waiting_frames || bytes > self.limits.max_frame {
            return Err(coded(
                RpcError::invalid_request("Too much waits for this session to open or close"),
                "too_many_waiting",
            ));
        }
        self.held_bytes = bytes;
        let (key, place) = (held.key, held.session);
        waiting.push_back(held);
        if let Some(key) = key {
            self.set_what(key, What::Session(place));
        }
        Ok(())
    }

    /// Takes a request out of what waits for a session.
    pub(super) fn drop_held(&mut self, session: u64, key: RequestKey) {
        let waiting = self
            .sessions
            .get_mut(session)
            .and_then(|s| s.waiting.as_mut());
        let queue = match waiting {
            Some(waiting) if waiting.iter().any(|held| held.key == Some(key)) => &mut **waiting,
            Some(_) | None => &mut self.released,
        };
        if let Some(at) = queue.iter().position(|held| held.key == Some(key))
            && let Some(held) = queue.remove(at)
        {
            self.held_bytes -= held.size();
        }
    }

    fn release(&mut self, key: u64) {
        if let Some(session) = self.sessions.get_mut(key)
            && let Some(waiting) = session.waiting.take()
        {
            self.released.extend(*waiting);
        }
    }

    /// `session/close` or `session/delete`: the turn ends first, then the embedder is asked.
    pub(super) fn begin_closing(&mut self, key: RequestKey, session: u64, event: AgentEvent) {
        self.set_what(key, What::Closing(session));
        let turn = self.sessions.get(session).and_then(|s| s.turn);
        self.move_session(session, SessionEvent::Close);
        match turn.and_then(|turn| self.turns.get_mut(turn.get())) {
            Some(turn) => {
                turn.then = Some(Box::new(event));
                let turn = turn.key;
                self.cancel_turn(turn);
            }
            None => self.event(event),
        }
    }

    /// The embedder's answer to any request but a prompt. Gives the session it opened.
    pub(super) fn answer<M: AgentMethod>(
        &mut self,
        asked: Asked<M>,
        result: Result<M::Response, RpcError>,
    ) -> Option<SessionKey> {
        let open = self.requests.get(asked.key)?;
        let (what, gates, kind) = (open.what, open.gates, M::KIND);
        let good = result.is_ok();
        let offers = result.as_ref().ok().and_then(M::offers);
        let made = result.as_ref().ok().and_then(M::made);
        if let Some(id) = &made {
            assert!(
                id.check().is_ok(),
                "the embedder gave a session id of a wrong shape"
            );
            assert!(
                self.sessions.find(id).is_none(),
                "the embedder gave a session the id of an active one"
            );
        }
        match result {
            Ok(mut response) => {
                M::fit(&mut response, gates);
                self.succeed(asked.key, &response);
            }
            Err(error) => {
                self.fail(asked.key, &error);
            }
        }
        match what {
            What::Answer if kind == AgentMethodKind::Initialize => self.greeted(offers),
            What::Answer => {
                let key = self.sessions.insert(made?, State::Opening, gates);
                self.move_session(key, SessionEvent::Opened);
                return Some(SessionKey::new(key));
            }
            What::Opening(session) if good => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.gates = gates;
                }
                self.move_session(session, SessionEvent::Opened);
                return Some(SessionKey::new(session));
            }
            What::Opening(session) => self.move_session(session, SessionEvent::OpenFailed),
            What::Closing(session) if good => self.move_session(session, SessionEvent::Closed),
            What::Closing(session) => self.move_session(session, SessionEvent::CloseFailed),
            // Such requests give the embedder no right to answer.
            What::Turn(_) | What::Session(_) => {}
        }
        None
    }

    fn greeted(&mut self, offers: Option<Offers>) {
        let event = match offers {
            Some(offers) => {
                self.offers = offers;
                ConnectionEvent::Welcome
            }
            None => ConnectionEvent::Refuse,
        };
        if let Ok(next) = self.connection.on(event) {
            self.connection = next;
        }
        debug_assert_ne!(self.connection, Connection::Greeting);
    }

    /// An update outside a turn.
    pub(super) fn notify_session(&mut self, key: u64, update: &SessionUpdate) {
        let Some(session) = self.sessions.get(key) else {
            return;
        };
        let (id, gates) = (session.id.clone(), session.gates);
        if let Some(update) = gates.fit(update) {
            self.tells_of_child(key, &update);
            self.output.update(&id, &update);
        }
    }
}
