//! The inbox of a session at work: requests of the client, the calls they need, the answers that
//! wait for the disk. What may be done is decided by [`crate::store::inbox`].
//!
//! Requests of one session are taken in the order they came, one at a time: one whose references
//! are being read holds up those behind it, so that messages keep their order. An answer goes out
//! when all that was written for it, and before it, is safe.
//!
//! | file | what lives there |
//! | --- | --- |
//! | `requests` | from a request to its answer |
//! | `gather` | the files of a message |
//! | `shapes` | from an inbox to what is sent |
//! | `turns` | items and guidance in the turns of the session |
//! | `claims` | what a transcript shows of items |

mod claims;
mod gather;
mod requests;
mod shapes;
mod turns;

pub(super) use claims::Claims;
pub(super) use requests::read;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};

use super::saving::{Doing, StoreKey};
use super::{Agent, Level, Owner};
use crate::engine::Ending;
use crate::error::IoFault;
use crate::protocol::methods::Vendor;
use crate::protocol::schema::{Json, SessionId};
use crate::protocol::{AgentSide, Asked};
use crate::store::inbox::{Aside, Enqueued, Inbox, Reading, Recovery, hex};
use crate::store::{Journal, Place, Safe, SessionFiles};
use crate::wire::{RequestKey, RpcError};

use gather::Gathering;
use requests::Request;
use turns::Running;

/// The code of the notice that tells what was found of an inbox.
const RECOVERED: &str = "inbox_recovered";

/// What helps who is refused.
const ASK_AGAIN: &str = "Nothing was changed: ask again when that is mended";

/// What helps where nobody asked.
const TRIED_AGAIN: &str =
    "It is tried again with the next message, and when the next turn is over.";

/// The inbox of one session, and all that waits at it.
pub(super) struct Desk {
    inbox: Inbox,
    journal: Journal,
    /// It is kept: clients may use it. Otherwise it only holds guidance.
    kept: bool,
    id: SessionId,
    /// Requests that are not looked at yet.
    line: VecDeque<Request>,
    /// The request whose files are being read.
    gathering: Option<Gathering>,
    /// Where its session is safe, without which it is worth nothing.
    session: Place,
    /// What goes on when a place is safe.
    waits: VecDeque<(Place, Then)>,
    /// Which revisions of the inbox are on the disk when a place is safe.
    kept_at: VecDeque<(Place, u64)>,
    /// The item whose turn runs.
    running: Option<Running>,
    /// How an earlier turn of the open prompt ended, if not simply.
    before: Option<Ending>,
    /// That nothing can be written was said.
    told: bool,
    /// What the person should know, with its code: told as soon as the session is open.
    notice: Option<(&'static str, String)>,
}

/// What goes on when the disk has it.
enum Then {
    /// An answer that is known.
    Answer(Asked<Vendor>, Json),
    /// The items as they are by then.
    List(Asked<Vendor>),
    /// One item as it is by then.
    Get(Asked<Vendor>, String),
    /// Guidance is given to the turn, if it still runs.
    Guide {
        asked: Asked<Vendor>,
        done: Enqueued,
        /// By the method for guidance, which answers less.
        steer: bool,
    },
    /// The next item's turn begins.
    Begin(Ending),
}

impl Then {
    /// Whether it says that something is done; the others tell what is there by then.
    fn promises(&self) -> bool {
        match self {
            Self::Answer(..) | Self::Guide { .. } => true,
            Self::List(_) | Self::Get(..) | Self::Begin(_) => false,
        }
    }

    /// Whoever waits for it is answered with an error.
    fn refuse(self, side: &mut AgentSide, error: RpcError) {
        match self {
            Self::Answer(asked, _)
            | Self::List(asked)
            | Self::Get(asked, _)
            | Self::Guide { asked, .. } => side.answer(asked, Err(error)),
            Self::Begin(_) => {}
        }
    }
}

/// What was found of an inbox on the disk.
pub(super) enum Left {
    /// Its file, to the end; with the bytes to keep if it is damaged.
    Read(Box<Reading>, Option<Aside>),
    /// It cannot be read; why.
    Unreadable(String),
}

impl Desk {
    fn new(id: SessionId, inbox: Inbox, files: Option<&SessionFiles>) -> Self {
        let journal = match files {
            // Whatever is in it was read and found whole, or is replaced first.
            Some(files) => Journal::disk(files.inbox(), files.home.clone(), 0, false),
            None => Journal::memory(0),
        };
        Self {
            inbox,
            journal,
            kept: files.is_some(),
            id,
            line: VecDeque::new(),
            gathering: None,
            session: 0,
            waits: VecDeque::new(),
            kept_at: VecDeque::new(),
            running: None,
            before: None,
            told: false,
            notice: None,
        }
    }

    /// Whether nothing is written.
    pub(super) fn is_idle(&self) -> bool {
        self.journal.is_idle()
    }

    /// What the inbox is now is on the disk when all is that was given to be written.
    fn mark(&mut self) {
        let mark = (self.journal.place(), self.inbox.revision());
        self.kept_at.push_back(mark);
        self.see_kept();
    }

    /// Takes out who was to be answered that something is done which never will be on the disk. At once,
    /// wherever they stand: a renewal makes their places safe, but what they asked for is undone.
    fn refused(&mut self) -> VecDeque<(Place, Then)> {
        let waits = core::mem::take(&mut self.waits);
        let (refused, waits) = waits.into_iter().partition(|(place, then)| {
            then.promises() && self.journal.is_safe(*place) == Safe::Never
        });
        self.waits = waits;
        refused
    }

    /// Tells the inbox what is on the disk by now.
    fn see_kept(&mut self) {
        while let Some((place, revision)) = self.kept_at.front()
            && self.journal.is_safe(*place) == Safe::Yes
        {
            self.inbox.kept(*revision);
            self.kept_at.pop_front();
        }
    }
}

impl Agent {
    /// The name of this run: another one for every process.
    pub(super) fn run_id(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"run");
        hash.update(self.config.seed);
        hex(&hash.finalize()[..16])
    }

    /// The wall clock as an inbox has it.
    fn inbox_time(&self) -> i64 {
        i64::try_from(self.unix_ms().unwrap_or(0)).unwrap_or(i64::MAX)
    }

    /// The inbox of a session that is open; made if nobody used it yet.
    fn desk(&mut self, store: StoreKey) -> Option<&mut Desk> {
        let run = self.run_id();
        let stored = self.stores.get_mut(&store)?;
        if stored.desk.is_none() {
            let limits = &self.config.limits;
            let inbox = match &stored.read_only {
                Some(why) => Inbox::unreadable(run, why.clone(), limits),
                None => Inbox::new(run, limits),
            };
            let id = SessionId::from(stored.summary.id.as_str());
            stored.desk = Some(Box::new(Desk::new(id, inbox, stored.files())));
        }
        stored.desk.as_deref_mut()
    }

    /// The inbox of a session, if somebody used it.
    fn desk_of(&mut self, store: StoreKey) -> Option<&mut Desk> {
        self.stores.get_mut(&store)?.desk.as_deref_mut()
    }

    /// The inbox of a session that was loaded, with what its transcript shows.
    pub(super) fn recover_inbox(&mut self, store: StoreKey, found: Option<Left>, claims: &Claims) {
        let (run, at) = (self.run_id(), self.inbox_time());
        let limits = &self.config.limits;
        let Some(stored) = self.stores.get_mut(&store) else {
            return;
        };
        let found = match (&stored.read_only, found) {
            (_, None) => return,
            (_, Some(Left::Read(reading, _))) if reading.bytes() == 0 => return,
            (Some(why), Some(_)) => Left::Unreadable(why.clone()),
            (None, Some(found)) => found,
        };
        let id = SessionId::from(stored.summary.id.as_str());
        let mut desk = match found {
            Left::Unreadable(why) => {
                let notice = format!("The inbox cannot be used: {why}.");
                let inbox = Inbox::unreadable(run, why, limits);
                let mut desk = Desk::new(id, inbox, stored.files());
                desk.notice = Some((RECOVERED, notice));
                desk
            }
            Left::Read(reading, aside) => {
                let Recovery {
                    inbox,
                    rewrite,
                    lines,
                    findings,
                    ..
                } = reading.recover(at, |item| claims.of(&item.id));
                let mut desk = Desk::new(id, inbox, stored.files());
                if let Some((name, bytes)) = aside.map(Aside::end) {
                    desk.journal.keep_aside(&name, bytes);
                }
                if let Some(file) = rewrite {
                    desk.journal.replace(file);
                }
                desk.journal.push_lines(&lines, false);
                let notice = match desk.inbox.read_only() {
                    Some(why) => Some(format!("The inbox cannot be used: {why}.")),
                    None => findings.notice(),
                };
                desk.notice = notice.map(|notice| (RECOVERED, notice));
                desk
            }
        };
        if let Some((_, notice)) = &desk.notice {
            let text = format!("session {}: {notice}", desk.id);
            desk.told = desk.inbox.read_only().is_some();
            stored.desk = Some(Box::new(desk));
            self.report(Level::Warn, text);
        } else {
            stored.desk = Some(Box::new(desk));
        }
        self.write_inbox(store);
    }

    /// Takes what has to be written, and writes it.
    fn keep(&mut self, store: StoreKey, lines: Vec<u8>, durable: bool) {
        if let Some(stored) = self.stores.get_mut(&store)
            && let Some(desk) = stored.desk.as_deref_mut()
        {
            if durable {
                desk.session = stored.journal.sync();
            }
            desk.journal.push_lines(&lines, durable);
            if !lines.is_empty() {
                desk.mark();
            }
            self.save(store);
            self.write_inbox(store);
        }
    }

    /// An inbox that could not be written is written anew as a whole, with what comes next behind it:
    /// what was in the way may be gone.
    fn renew_inbox(&mut self, store: StoreKey) {
        if let Some(desk) = self.desk_of(store)
            && let Some(file) = desk.inbox.renewal()
        {
            desk.journal.renew(file);
            desk.mark();
            self.write_inbox(store);
        }
    }

    /// Starts what has to be written.
    fn write_inbox(&mut self, store: StoreKey) {
        let Some(desk) = self.desk_of(store) else {
            return;
        };
        if desk.journal.is_idle()
            && let Some(file) = desk.inbox.compaction()
        {
            desk.journal.replace(file);
        }
        if let Some(call) = desk.journal.begin() {
            self.start(Owner::Store(store, Doing::Inbox), call);
        }
    }

    /// What was written for an inbox is there, or is not.
    pub(super) fn inbox_written(&mut self, store: StoreKey, result: Result<(), IoFault>) {
        let Some(desk) = self.desk_of(store) else {
            return;
        };
        desk.journal.ended(result);
        desk.see_kept();
        match desk.journal.fault() {
            None => desk.told = false,
            Some(fault) => {
                let why = format!("{fault}");
                desk.kept_at.clear();
                desk.inbox.lost(format!("{why}. {ASK_AGAIN}"));
                if !core::mem::replace(&mut desk.told, true) {
                    let text = format!(
                        "the inbox of session {} is not saved any more: {why}",
                        desk.id
                    );
                    let notice = format!("The inbox is not saved any more: {why}. {TRIED_AGAIN}");
                    desk.notice = Some(("inbox_lost", notice));
                    self.report(Level::Error, text);
                }
            }
        }
        let refused = self.desk_of(store).map(Desk::refused).unwrap_or_default();
        for (_, then) in refused {
            self.inbox_goes_on_with(store, then, false);
        }
        self.write_inbox(store);
        self.inbox_goes_on(store);
        if let Some(session) = self.stores.get(&store).and_then(|stored| stored.session) {
            self.announce_inbox(session);
        }
    }

    /// Goes on with `then` when all that was given to be written is safe; at once if it is, or
    /// never will be.
    fn when_kept(&mut self, store: StoreKey, then: Then) {
        if let Some(desk) = self.desk_of(store) {
            let place = desk.journal.place();
            desk.waits.push_back((place, then));
            self.inbox_goes_on(store);
        } else {
            self.inbox_goes_on_with(store, then, false);
        }
    }

    pub(super) fn inbox_goes_on(&mut self, store: StoreKey) {
        while let Some(stored) = self.stores.get_mut(&store)
            && let Some(desk) = stored.desk.as_deref_mut()
        {
            let Some((place, _)) = desk.waits.front() else {
                return;
            };
            let both = [
                desk.journal.is_safe(*place),
                stored.journal.is_safe(desk.session),
            ];
            let safe = match both {
                [Safe::Never, _] | [_, Safe::Never] => false,
                [Safe::Yes, Safe::Yes] => true,
                [Safe::NotYet, _] | [_, Safe::NotYet] => return,
            };
            if let Some((_, then)) = desk.waits.pop_front() {
                self.inbox_goes_on_with(store, then, safe);
            }
        }
    }

    /// Whether one of our own requests was taken back, before anything came of it.
    pub(super) fn cancel_inbox(&mut self, key: RequestKey) {
        let found = self.stores.iter().find_map(|(store, stored)| {
            let desk = stored.desk.as_ref()?;
            let head = desk.gathering.as_ref().is_some_and(|g| g.is(key));
            let waits = desk.line.iter().any(|request| request.asked.key() == key);
            (head || waits).then_some(*store)
        });
        if let Some(store) = found {
            self.drop_request(store, key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::inbox::{Draft, Intent, NewItem};

    #[test]
    fn what_is_only_in_memory_is_kept_at_once() {
        let inbox = Inbox::new("run", &crate::limits::Limits::default());
        let mut desk = Desk::new(SessionId::from("s"), inbox, None);
        let new = NewItem {
            id: "a".into(),
            intent: Intent::Steer,
            source: "acp".into(),
            key: None,
            draft: Draft::plain("a"),
        };
        let done = desk.inbox.enqueue(1, new, true).expect("it is taken");
        desk.journal.push_lines(&done.lines, true);
        desk.mark();
        assert!(desk.kept_at.is_empty());
        desk.inbox.lost("nothing is written");
        assert_eq!(desk.inbox.items().len(), 1);
    }
}
