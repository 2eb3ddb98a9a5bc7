//! `session/load` and `session/resume`: a stored session is read from its transcript, and replayed
//! by a load as it was seen. One that is open already is replayed as it stands; its turn goes on.

mod faults;
mod left;
mod live;
mod transcript;

pub(super) use faults::{not_found, same_path, session_locked};

use faults::mismatch;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::inbox::{self, Claims};
use super::opening::{How, Opening, Wanted};
use super::options::Axes;
use super::replay::Replay;
use super::status::Status;
use super::{Agent, Owner};
use crate::call::{Call, Outcome};
use crate::engine::Engine;
use crate::engine::record::{Header, Options, Record};
use crate::error::{IoFault, IoKind};
use crate::ids::SessionKey;
use crate::protocol::schema::{SessionId, SessionUpdate};
use crate::store::{Lines, Summary};
use crate::wire::{RequestKey, RpcError};

/// A session that is being read.
pub(super) struct Loading {
    stage: Stage,
    lines: Lines,
    /// Bytes that went before they could be read: those of a session in memory that goes on.
    missed: u64,
    /// The session's engine, which takes in what is read; none: it is open already.
    engine: Option<Engine>,
    /// It is open already.
    live: Option<SessionKey>,
    /// Where to stop, if it grows meanwhile.
    until: Option<u64>,
    /// All bytes are there.
    ended: bool,
    /// What the client is to see, while it has no room.
    waiting: VecDeque<SessionUpdate>,
    /// What the client has seen.
    replay: Replay,
    /// Lines that could not be read, since the session was mended last.
    unreadable: usize,
    options: Option<Options>,
    summary: Summary,
    /// How it stands, from its records.
    pub(super) status: Status,
    /// Its inbox as it was left.
    inbox: Option<inbox::Left>,
    /// What the transcript shows of the inbox.
    claims: Claims,
    /// Of its format; none: its first line is damaged.
    version: Option<u32>,
    /// This agent has its lock.
    pub(super) locked: bool,
    /// What has to be said of it beside its history.
    pub(super) notes: Vec<String>,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The beginning of the transcript: what the session is.
    Head,
    /// Its lock.
    Lock,
    /// That what a killed agent left of its temporary files is gone.
    Tmp,
    /// The next part of its inbox.
    Inbox,
    /// The rest of what opening needs.
    Setup,
    /// The next part of the transcript, or room at the client.
    Reading,
    /// Room at the client for the last of it.
    Showing,
}

impl Loading {
    fn new(limits: &crate::limits::Limits) -> Self {
        Self {
            stage: Stage::Head,
            lines: Lines::new(limits.max_record),
            missed: 0,
            engine: None,
            live: None,
            until: None,
            ended: false,
            waiting: VecDeque::new(),
            replay: Replay::new(),
            unreadable: 0,
            options: None,
            summary: Summary::default(),
            status: Status::default(),
            inbox: None,
            claims: Claims::default(),
            version: None,
            locked: false,
            notes: Vec::new(),
        }
    }

    /// Whether its lock is asked for.
    pub(super) fn is_locking(&self) -> bool {
        self.stage == Stage::Lock
    }
}

impl Agent {
    /// `session/load`, `session/resume`: `live` if the session is open already.
    pub(super) fn reopen(
        &mut self,
        how: How,
        live: Option<SessionKey>,
        id: SessionId,
        wanted: Wanted,
    ) {
        let key = how.key();
        let checked = wanted.check(&self.config.limits);
        // What it is set to is read from its transcript.
        let axes = Axes {
            model: String::new(),
            effort: None,
            preset: self.config.preset,
            posture: self.config.permission_mode.start,
            mode: Default::default(),
        };
        let mut opening = Opening::new(how, id.clone(), wanted, axes);
        opening.loading = Some(Box::new(Loading::new(&self.config.limits)));
        self.openings.insert(key, opening);
        if let Err(error) = checked.and_then(|()| self.check_sandbox()) {
            return self.refuse_opening(key, error);
        }
        match live {
            Some(session) => self.reopen_live(key, session),
            None if self.files(&id).is_none() => self.refuse_opening(key, not_found(&id)),
            None => self.read_on(key),
        }
    }

    /// Refuses a request whose session has gone meanwhile.
    fn refuse_lost(&mut self, key: RequestKey) {
        if let Some(opening) = self.openings.get(&key) {
            let error = not_found(&opening.id);
            self.refuse_opening(key, error);
        }
    }

    fn loading(&mut self, key: RequestKey) -> Option<&mut Loading> {
        self.openings.get_mut(&key)?.loading.as_deref_mut()
    }

    /// Reads the next part of the transcript.
    fn read_on(&mut self, key: RequestKey) {
        let piece = self.config.limits.store_piece;
        let Some(opening) = self.openings.get(&key) else {
            return;
        };
        let Some(files) = self.files(&opening.id) else {
            return self.refuse_lost(key);
        };
        let Some(loading) = self.loading(key) else {
            return;
        };
        let at = loading.lines.read();
        let left = loading.until.map_or(u64::MAX, |until| until - at);
        let call = Call::ReadAt {
            path: files.transcript(),
            beneath: files.home,
            at,
            max: piece.min(usize::try_from(left).unwrap_or(usize::MAX)),
        };
        self.call_opening(key, call);
    }

    /// An answer of the store for a session that is being read.
    pub(super) fn stored_news(&mut self, key: RequestKey, outcome: Result<Outcome, IoFault>) {
        let Some(opening) = self.openings.get(&key) else {
            return;
        };
        let id = opening.id.clone();
        let Some(loading) = self.loading(key) else {
            return;
        };
        match (loading.stage, outcome) {
            (Stage::Head, Ok(Outcome::Part(part))) if !part.bytes.is_empty() => {
                let whole = part.bytes.len() as u64 == part.size;
                self.stored_head(key, &part.bytes, whole);
            }
            (Stage::Head, Ok(_)) => self.refuse_opening(key, not_found(&id)),
            (Stage::Head, Err(fault)) if fault.kind == IoKind::NotFound => {
                self.refuse_opening(key, not_found(&id));
            }
            (Stage::Lock, Ok(Outcome::Locked)) => {
                loading.locked = true;
                loading.stage = Stage::Tmp;
                match self.left_tmp(&id) {
                    Some(call) => self.call_opening(key, call),
                    None => self.read_inbox(key),
                }
            }
            (Stage::Tmp, _) => self.read_inbox(key),
            (Stage::Inbox, outcome) => self.inbox_part(key, outcome),
            (Stage::Lock, Ok(Outcome::Held(holder))) => {
                self.refuse_opening(key, session_locked(&id, &holder));
            }
            (Stage::Reading, Ok(Outcome::Part(part))) => {
                loading.ended = part.bytes.is_empty();
                loading.lines.push(&part.bytes);
                let read = loading.lines.read();
                loading.ended |= read >= loading.until.unwrap_or(part.size);
                self.load_on(key);
            }
            (_, Ok(_)) => {}
            // It was deleted meanwhile.
            (Stage::Reading, Err(fault)) if fault.kind == IoKind::NotFound => {
                self.refuse_opening(key, not_found(&id));
            }
            (_, Err(fault)) => {
                let why = format!("the session {id} cannot be read: {fault}");
                self.refuse_opening(key, RpcError::internal(&why));
            }
        }
    }

    /// Begins a call that the request waits for.
    fn call_opening(&mut self, key: RequestKey, call: Call) {
        let id = self.start(Owner::Opening(key), call);
        if let Some(opening) = self.openings.get_mut(&key) {
            opening.store_call = Some(id);
        }
    }

    /// The beginning of a transcript says what the session is.
    fn stored_head(&mut self, key: RequestKey, bytes: &[u8], whole: bool) {
        let mut head = Lines::new(self.config.limits.max_record);
        head.push(bytes);
        if whole {
            head.finish();
        }
        let mut header: Option<Header> = None;
        let mut first: Option<Options> = None;
        for record in core::iter::from_fn(|| head.next_line::<Record>())
            .flatten()
            .take(8)
        {
            if let Record::Session(found) = record {
                header.get_or_insert(found);
            } else if let Record::Options(found) = record {
                first.get_or_insert(found);
            }
        }
        let axes = first.as_ref().map(|options| self.stored_axes(options).0);
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        if let Some(header) = &header {
            if header.id != opening.id.as_str() {
                let error = not_found(&opening.id);
                return self.refuse_opening(key, error);
            }
            if !same_path(&header.cwd, &opening.cwd) {
                let error = mismatch(&header.cwd);
                return self.refuse_opening(key, error);
            }
        }
        if let Some(axes) = axes {
            opening.axes = axes;
        }
        let id = opening.id.clone();
        let cwd = opening.cwd.clone();
        if let Some(loading) = &mut opening.loading {
            loading.stage = Stage::Lock;
            loading.version = header.as_ref().map(|header| header.v);
            let created = header.as_ref().map_or(0, |header| header.created);
            loading.summary = Summary::new(id.as_str(), &cwd, created);
        }
        let Some(files) = self.files(&id) else {
            return self.refuse_lost(key);
        };
        let call = Call::Lock {
            path: files.lock(),
            beneath: files.home,
        };
        self.call_opening(key, call);
    }
}
