//! Sessions and their files: what is remembered goes to the journal, what waits for it goes on when
//! it is safe, and what is closed gives its lock back.
//!
//! A stored session outlives its open one until its last record is written and its lock is given
//! back or its folder is gone.

mod parting;

pub(super) use parting::Parting;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;

use super::inbox::Desk;
use super::{Agent, Level, Owner};
use crate::call::{Call, Expect, News, Outcome, Write};
use crate::engine::Ending;
use crate::engine::record::{Options, Record};
use crate::ids::SessionKey;
use crate::protocol::methods::{SetConfigOption, SetMode, SetModel, Vendor};
use crate::protocol::schema::{
    Json, SetSessionConfigOptionResponse, SetSessionModeResponse, SetSessionModelResponse,
};
use crate::protocol::{AgentSide, Asked};
use crate::store::{Journal, Place, Safe, SessionFiles, Summary};
use crate::wire::{RequestKey, RpcError};

/// A stored session, unique in the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoreKey(u64);

/// What a call does for a stored session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Records are appended.
    Append,
    /// The summary is written.
    Summary,
    /// The inbox is written.
    Inbox,
    /// The lock is given back.
    Unlock,
    /// What a list shows of it is removed: from here on it is gone, whatever else is left.
    Forget,
    /// The folder is removed.
    Remove,
}

/// The files of one session that this agent has open.
pub(super) struct Stored {
    /// Whose; none: it is being opened, or parts.
    pub(super) session: Option<SessionKey>,
    pub(super) journal: Journal,
    pub(super) summary: Summary,
    /// Its inbox; none: nobody used it yet.
    pub(super) desk: Option<Box<Desk>>,
    /// Where the files are; none: nothing is stored.
    files: Option<SessionFiles>,
    /// What goes on when a record is safe, in the order of the records.
    waits: VecDeque<(Place, Then)>,
    /// The summary changed since it was written.
    stale: bool,
    /// The summary is being written.
    writing: bool,
    /// That nothing can be written was said.
    told: bool,
    /// Why it is only in memory, if it should be stored.
    pub(super) unsaved: Option<String>,
    /// Why nothing may be written, if that is so: a later version wrote it.
    pub(super) read_only: Option<String>,
    parting: Option<Parting>,
}

/// What goes on when a record is safe.
pub(super) enum Then {
    /// The turn is answered.
    Finish(Ending),
    /// The claims of the inbox are there: the turn goes on.
    Claimed,
    /// The session that is opened by this request has its first records.
    Open(RequestKey),
    /// A request is answered.
    Reply(Reply),
}

/// An answer that waits for a record.
pub(super) enum Reply {
    /// `session/set_config_option`.
    ConfigOption(Asked<SetConfigOption>, SetSessionConfigOptionResponse),
    /// `session/set_model`.
    Model(Asked<SetModel>),
    /// `session/set_mode`.
    Mode(Asked<SetMode>),
    /// A method of our own.
    Vendor(Asked<Vendor>, Json),
}

impl Reply {
    /// Answers with an error instead.
    pub(super) fn refuse(self, side: &mut AgentSide, error: RpcError) {
        match self {
            Self::ConfigOption(asked, _) => side.answer(asked, Err(error)),
            Self::Model(asked) => side.answer(asked, Err(error)),
            Self::Mode(asked) => side.answer(asked, Err(error)),
            Self::Vendor(asked, _) => side.answer(asked, Err(error)),
        }
    }
}

impl Stored {
    /// A session that lives as long as the process.
    pub(super) fn in_memory(summary: Summary, most: usize) -> Self {
        Self::new(Journal::memory(most), summary, None)
    }

    /// A session in files that this agent has locked; its transcript has `size` bytes, and lacks a
    /// line end if it is `torn`.
    pub(super) fn on_disk(files: SessionFiles, summary: Summary, size: u64, torn: bool) -> Self {
        let journal = Journal::disk(files.transcript(), files.home.clone(), size, torn);
        Self::new(journal, summary, Some(files))
    }

    fn new(journal: Journal, summary: Summary, files: Option<SessionFiles>) -> Self {
        Self {
            session: None,
            journal,
            summary,
            desk: None,
            files,
            waits: VecDeque::new(),
            stale: false,
            writing: false,
            told: false,
            unsaved: None,
            read_only: None,
            parting: None,
        }
    }

    /// Where the files are; none: nothing is stored.
    pub(super) fn files(&self) -> Option<&SessionFiles> {
        self.files.as_ref()
    }

    /// Whether the engine has to stand still, since the disk is slow.
    pub(super) fn is_behind(&self, most: usize) -> bool {
        self.journal.backlog() > most
    }

    /// Why it is not saved, once.
    pub(super) fn trouble(&mut self) -> Option<String> {
        if self.told {
            return None;
        }
        let why = match (&self.unsaved, self.journal.fault()) {
            (Some(why), _) => why.clone(),
            (None, Some(fault)) => format!("{fault}"),
            (None, None) => return None,
        };
        self.told = true;
        Some(why)
    }

    /// The path of the transcript that people can read; none: there is none.
    pub(super) fn transcript(&self) -> Option<&str> {
        match self.journal.fault() {
            Some(_) => None,
            None => self.journal.path(),
        }
    }
}

impl Agent {
    /// The home that sessions are stored in; none: nothing is stored.
    pub(super) fn store_home(&self) -> Option<&str> {
        if self.config.ephemeral {
            return None;
        }
        self.config.host.home.as_deref()
    }

    pub(super) fn add_stored(&mut self, stored: Stored) -> StoreKey {
        let key = StoreKey(self.store_keys.next());
        self.stores.insert(key, stored);
        key
    }

    /// Remembers a record; the place says when it is safe.
    pub(super) fn remember(&mut self, key: StoreKey, record: &Record) -> Place {
        let now = self.unix_ms();
        let Some(stored) = self.stores.get_mut(&key) else {
            return 0;
        };
        if stored.read_only.is_some() {
            return 0;
        }
        stored.summary.prompts += u64::from(record.begins_turn().is_some());
        stored.stale |= record.is_listed();
        stored.summary.updated = now.unwrap_or(stored.summary.updated);
        let place = stored.journal.push(now, record, record.must_last());
        self.save(key);
        place
    }

    /// Remembers what the options of a session are now.
    pub(super) fn remember_options(&mut self, key: StoreKey, options: Options) -> Place {
        self.remember(key, &Record::Options(options))
    }

    /// Goes on with `then` when a record is safe; at once if it is, or never will be.
    pub(super) fn when_safe(&mut self, key: StoreKey, place: Place, then: Then) {
        match self.stores.get_mut(&key) {
            Some(stored) => {
                stored.waits.push_back((place, then));
                self.go_on(key);
            }
            None => self.go_on_with(None, then, true),
        }
    }

    /// Starts what has to be written.
    pub(super) fn save(&mut self, key: StoreKey) {
        let Some(stored) = self.stores.get_mut(&key) else {
            return;
        };
        if let Some(call) = stored.journal.begin() {
            self.start(Owner::Store(key, Doing::Append), call);
        }
        let Some(stored) = self.stores.get_mut(&key) else {
            return;
        };
        // A session that nobody prompted has no summary, and is in no list.
        if stored.stale
            && !stored.writing
            && stored.journal.fault().is_none()
            && stored.summary.prompts > 0
            && let Some(files) = &stored.files
        {
            stored.stale = false;
            stored.writing = true;
            let write = Write {
                path: files.state(),
                beneath: Some(files.home.clone()),
                bytes: stored.summary.write(),
                expect: Expect::Anything,
                parents: false,
                private: true,
            };
            self.start(Owner::Store(key, Doing::Summary), Call::Write(write));
        }
    }

    /// News of a call for a stored session.
    pub(super) fn store_news(&mut self, key: StoreKey, doing: Doing, news: News<'_>) {
        let result = match news {
            News::Done(outcome) => Ok(outcome),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        match doing {
            Doing::Append => {
                if let Some(stored) = self.stores.get_mut(&key) {
                    stored.journal.ended(result.map(|_: Outcome| ()));
                }
                self.report_fault(key);
                self.go_on(key);
                self.inbox_goes_on(key);
                // It may have stood still for the disk.
                if let Some(session) = self.stores.get(&key).and_then(|stored| stored.session) {
                    self.enqueue(session);
                }
            }
            Doing::Summary => {
                if let Some(stored) = self.stores.get_mut(&key) {
                    stored.writing = false;
                }
                if let Err(fault) = result {
                    self.report(Level::Warn, format!("a session's summary: {fault}"));
                }
            }
            Doing::Inbox => self.inbox_written(key, result.map(|_: Outcome| ())),
            Doing::Forget => return self.remove(key),
            Doing::Unlock | Doing::Remove => return self.parted(key, result.err()),
        }
        self.save(key);
        self.part_if_idle(key);
    }

    fn report_fault(&mut self, key: StoreKey) {
        let fault = self.stores.get(&key).and_then(|stored| {
            let fault = stored.journal.fault()?;
            Some(format!(
                "the session {} is not saved any more: {fault}",
                stored.summary.id
            ))
        });
        if let Some(text) = fault {
            self.report(Level::Error, text);
        }
    }

    /// Goes on with what waited for records that are safe now.
    fn go_on(&mut self, key: StoreKey) {
        loop {
            let Some(stored) = self.stores.get_mut(&key) else {
                return;
            };
            let Some((place, _)) = stored.waits.front() else {
                return;
            };
            let safe = match stored.journal.is_safe(*place) {
                Safe::NotYet => return,
                Safe::Yes => true,
                Safe::Never => false,
            };
            let session = stored.session;
            if let Some((_, then)) = stored.waits.pop_front() {
                self.go_on_with(session, then, safe);
            }
        }
    }

    /// The end of a turn is not waited for any more, nor what it claimed before. Returns whether one
    /// was.
    pub(super) fn stop_waiting(&mut self, key: StoreKey) -> bool {
        let Some(stored) = self.stores.get_mut(&key) else {
            return false;
        };
        let before = stored.waits.len();
        let ended = |(_, then): &(Place, Then)| matches!(then, Then::Finish(_));
        if !stored.waits.iter().any(ended) {
            return false;
        }
        stored
            .waits
            .retain(|(_, then)| !matches!(then, Then::Finish(_) | Then::Claimed));
        stored.waits.len() < before
    }

    fn go_on_with(&mut self, session: Option<SessionKey>, then: Then, safe: bool) {
        match (then, session) {
            (Then::Reply(Reply::ConfigOption(asked, response)), _) => {
                self.side.answer(asked, Ok(response));
            }
            (Then::Reply(Reply::Model(asked)), _) => {
                self.side
                    .answer(asked, Ok(SetSessionModelResponse::default()));
            }
            (Then::Reply(Reply::Mode(asked)), _) => {
                self.side
                    .answer(asked, Ok(SetSessionModeResponse::default()));
            }
            (Then::Reply(Reply::Vendor(asked, answer)), _) => self.side.answer(asked, Ok(answer)),
            (Then::Open(key), _) => self.stored_header(key),
            (Then::Finish(ending), Some(key)) => self.finish(key, ending),
            (Then::Claimed, Some(key)) if safe => {
                self.inbox_claimed(key);
                self.with_engine(key, |engine, cx| engine.claimed(cx));
            }
            (Then::Claimed, Some(key)) => self.with_engine(key, |engine, cx| {
                engine.unclaimed(
                    cx,
                    "The session cannot be saved, so a queued item is not begun.",
                );
            }),
            (Then::Finish(_) | Then::Claimed, None) => {}
        }
    }

    /// The wall clock, milliseconds since 1970, if it is known.
    pub(super) fn unix_ms(&self) -> Option<u64> {
        let (at, clock) = self.wall?;
        let said = u64::try_from(clock.unix_ms).ok()?;
        let since = u64::try_from(self.now.since(at).as_millis()).ok()?;
        Some(said.saturating_add(since))
    }
}
