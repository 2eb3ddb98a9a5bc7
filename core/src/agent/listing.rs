//! `session/list` and `session/delete`: sessions that are stored, whether they are open or not.
//!
//! A list looks at the summary of every stored session, a few at a time, and keeps what it found for
//! its next pages, so that all pages together cost one look. One that has none yet, or
//! a damaged one, is read from the beginning of its transcript. What a crash left of a session that
//! was made or deleted halfway, and sessions that nobody ever prompted, go on the way.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;

use super::loading::{same_path, session_locked};
use super::opening::is_absolute;
use super::saving::{Parting, Stored};
use super::{Agent, Owner, content};
use crate::call::{Call, FileKind, News, Outcome, Part};
use crate::engine::record::Record;
use crate::error::{IoFault, IoKind};
use crate::ids::{CallId, SessionKey};
use crate::protocol::Asked;
use crate::protocol::methods::{DeleteSession, ListSessions};
use crate::protocol::schema::{
    DeleteSessionRequest, DeleteSessionResponse, ListSessionsRequest, ListSessionsResponse,
    SessionId, SessionInfo,
};
use crate::store::{Lines, SessionFiles, Summary, layout};
use crate::time::{Instant, rfc3339};
use crate::wire::{RequestKey, RpcError};

/// A `session/list` that is not answered yet.
pub(super) struct Listing {
    asked: Asked<ListSessions>,
    cwd: Option<String>,
    after: Option<Place>,
    /// Sessions that were not looked at.
    left: VecDeque<SessionId>,
    looking: BTreeMap<CallId, (SessionId, Look)>,
    found: Vec<Summary>,
    /// Some that were found are not kept.
    more: bool,
}

/// The rest of a list whose first pages were given.
pub(super) struct Listed {
    cwd: Option<String>,
    /// The last that was given.
    after: Place,
    rest: VecDeque<Summary>,
    /// There are more that were not kept.
    more: bool,
    made: Instant,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// The folder of all sessions.
    Folder,
    /// The summary of one.
    Summary,
    /// The beginning of its transcript.
    Transcript,
}

/// A place in a list: newest first, ties by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    updated: u64,
    id: String,
}

impl Listing {
    /// Takes in a session, if it belongs to the list; the farthest go where that are too many.
    fn find(&mut self, summary: Summary, most: usize) {
        let place = Place::of(&summary);
        let here = self
            .cwd
            .as_ref()
            .is_none_or(|cwd| same_path(&summary.cwd, cwd));
        let behind = self
            .after
            .as_ref()
            .is_none_or(|after| after.is_before(&place));
        if here && behind {
            self.found.push(summary);
        }
        if self.found.len() >= 2 * most {
            self.keep(most);
        }
    }

    /// Keeps the nearest, in their order.
    fn keep(&mut self, most: usize) {
        self.found
            .sort_by(|a, b| (b.updated, &a.id).cmp(&(a.updated, &b.id)));
        self.more |= self.found.len() > most;
        self.found.truncate(most);
    }
}

impl Place {
    fn of(summary: &Summary) -> Self {
        Self {
            updated: summary.updated,
            id: summary.id.clone(),
        }
    }

    fn is_before(&self, other: &Self) -> bool {
        (core::cmp::Reverse(self.updated), &self.id)
            < (core::cmp::Reverse(other.updated), &other.id)
    }

    /// Opaque to clients.
    fn cursor(&self) -> String {
        BASE64.encode(format!("{}.{}", self.updated, self.id))
    }

    fn of_cursor(cursor: &str) -> Option<Self> {
        let bytes = BASE64.decode(cursor).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (updated, id) = text.split_once('.')?;
        Some(Self {
            updated: updated.parse().ok()?,
            id: SessionId::checked(id).ok()?.as_str().into(),
        })
    }
}

/// What is left of a session, on its way out.
pub(super) struct Sweep {
    id: SessionId,
    files: SessionFiles,
    step: Sweeping,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweeping {
    Lock,
    Transcript,
    Inbox,
    Remove,
}

/// A `session/delete` of a session that is not open here.
///
/// Only what is a session of ours is removed: a folder that has the name of one that we made, or
/// holds the transcript of one that is named so. For anything else nothing is done.
pub(super) struct Deleting {
    asked: Asked<DeleteSession>,
    id: SessionId,
}

impl Agent {
    pub(super) fn list_sessions(
        &mut self,
        asked: Asked<ListSessions>,
        request: ListSessionsRequest,
    ) {
        let after = match request.cursor.as_deref().map(Place::of_cursor) {
            None => None,
            Some(Some(place)) => Some(place),
            Some(None) => {
                let error = RpcError::invalid_params("cursor is not one that this agent gave");
                return self.side.answer(asked, Err(error));
            }
        };
        if let Some(cwd) = &request.cwd
            && !is_absolute(cwd)
        {
            let error = RpcError::invalid_params("cwd must be an absolute path");
            return self.side.answer(asked, Err(error));
        }
        if let Some(listed) = self.listed.take() {
            let age = self.now.since(listed.made);
            let fresh = age < self.config.limits.list_fresh;
            if fresh && after.as_ref() == Some(&listed.after) && listed.cwd == request.cwd {
                return self.answer_page(asked, listed);
            }
        }
        let key = asked.key();
        let listing = Listing {
            asked,
            cwd: request.cwd,
            after,
            left: VecDeque::new(),
            looking: BTreeMap::new(),
            found: Vec::new(),
            more: false,
        };
        self.listings.insert(key, Box::new(listing));
        match self.store_home().map(layout::sessions) {
            Some(path) => {
                let max = self.config.limits.max_stored;
                let id = self.start(Owner::Listing(key), Call::List { path, max });
                if let Some(listing) = self.listings.get_mut(&key) {
                    // No session has this id.
                    let none = SessionId::from(String::new());
                    listing.looking.insert(id, (none, Look::Folder));
                }
            }
            None => self.look_on(key),
        }
    }

    /// Takes back a list that the client does not want any more.
    pub(super) fn cancel_listing(&mut self, key: RequestKey) {
        if let Some(listing) = self.listings.remove(&key) {
            self.side.answer(listing.asked, Err(RpcError::cancelled()));
        }
    }

    pub(super) fn listing_news(&mut self, key: RequestKey, call: CallId, news: News<'_>) {
        let outcome = match news {
            News::Done(outcome) => Ok(outcome),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        let Some(listing) = self.listings.get_mut(&key) else {
            return;
        };
        let Some((id, look)) = listing.looking.remove(&call) else {
            return;
        };
        match (look, outcome) {
            (Look::Folder, Ok(Outcome::Listed(folder))) => {
                let folders = folder
                    .entries
                    .iter()
                    .filter(|entry| entry.kind == FileKind::Directory && !entry.link);
                listing.left = folders
                    .filter_map(|entry| SessionId::checked(&entry.name).ok())
                    .collect();
            }
            // No session was ever stored.
            (Look::Folder, Err(fault)) if fault.kind == IoKind::NotFound => {}
            (Look::Folder, Err(fault)) => {
                if let Some(listing) = self.listings.remove(&key) {
                    let why = format!("the stored sessions cannot be listed: {fault}");
                    self.side
                        .answer(listing.asked, Err(RpcError::internal(&why)));
                }
                return;
            }
            (Look::Summary, Ok(Outcome::Part(part))) => {
                match Summary::read(&part.bytes, id.as_str()) {
                    Some(summary) => listing.find(summary, self.config.limits.list_kept),
                    None => self.look(key, id, Look::Transcript),
                }
            }
            (Look::Summary, _) => self.look(key, id, Look::Transcript),
            (Look::Transcript, Ok(Outcome::Part(part))) => {
                let max = self.config.limits.max_session_title;
                let whole = part.bytes.len() as u64 == part.size;
                match read_head(&part.bytes, &id, max) {
                    // What does not fit into one piece was prompted.
                    Some(summary) if summary.prompts > 0 || !whole => {
                        listing.find(summary, self.config.limits.list_kept);
                    }
                    Some(_) | None => {
                        if self.is_unused(&id, &part) {
                            self.sweep(id);
                        }
                    }
                }
            }
            // A part of it was made, or is left. Only what we name so can be ours.
            (Look::Transcript, Err(fault)) if fault.kind == IoKind::NotFound && id.is_v4() => {
                self.sweep(id);
            }
            // What cannot be read is not listed, and stays.
            (Look::Transcript, _) | (Look::Folder, Ok(_)) => {}
        }
        self.look_on(key);
    }

    fn look(&mut self, key: RequestKey, id: SessionId, look: Look) {
        let Some(files) = self.files(&id) else { return };
        let call = Call::ReadAt {
            path: match look {
                Look::Folder | Look::Summary => files.state(),
                Look::Transcript => files.transcript(),
            },
            beneath: files.home,
            at: 0,
            max: self.config.limits.store_piece,
        };
        let call = self.start(Owner::Listing(key), call);
        if let Some(listing) = self.listings.get_mut(&key) {
            listing.looking.insert(call, (id, look));
        }
    }

    /// Looks at the next ones, or answers.
    fn look_on(&mut self, key: RequestKey) {
        loop {
            let most = self.config.limits.parallel_lookups;
            let Some(listing) = self.listings.get_mut(&key) else {
                return;
            };
            if listing.looking.len() >= most {
                return;
            }
            let Some(id) = listing.left.pop_front() else {
                break;
            };
            self.look(key, id, Look::Summary);
        }
        if self
            .listings
            .get(&key)
            .is_some_and(|listing| listing.looking.is_empty())
            && let Some(listing) = self.listings.remove(&key)
        {
            self.answer_list(*listing);
        }
    }

    fn answer_list(&mut self, listing: Listing) {
        let mut listing = listing;
        // What is open here is known better.
        let open = self.sessions.values();
        let ids: BTreeSet<&str> = open.clone().map(|session| session.id.as_str()).collect();
        listing
            .found
            .retain(|summary| !ids.contains(summary.id.as_str()));
        for session in open {
            if let Some(stored) = self.stores.get(&session.store) {
                listing.find(stored.summary.clone(), self.config.limits.list_kept);
            }
        }
        listing.keep(self.config.limits.list_kept);
        let listed = Listed {
            cwd: listing.cwd,
            after: Place::default(),
            rest: listing.found.into(),
            more: listing.more,
            made: self.now,
        };
        self.answer_page(listing.asked, listed);
    }

    /// Answers with the next page, and keeps the rest.
    fn answer_page(&mut self, asked: Asked<ListSessions>, mut listed: Listed) {
        let page = self.config.limits.list_page.min(listed.rest.len());
        let found: Vec<Summary> = listed.rest.drain(..page).collect();
        let mut response =
            ListSessionsResponse::new(Vec::from_iter(found.iter().map(session_info)));
        if let Some(last) = found.last()
            && (listed.more || !listed.rest.is_empty())
        {
            listed.after = Place::of(last);
            response.next_cursor = Some(listed.after.cursor());
            self.listed = (!listed.rest.is_empty()).then_some(listed);
        }
        self.side.answer(asked, Ok(response));
    }

    /// Begins to remove what is stored of a session that nobody has open, if it is still nothing
    /// when nobody else can change it.
    fn sweep(&mut self, id: SessionId) {
        let Some(files) = self.files(&id) else { return };
        let call = Call::Lock {
            path: files.lock(),
            beneath: files.home.clone(),
        };
        let step = Sweeping::Lock;
        self.sweep_on(Sweep { id, files, step }, call);
    }

    fn sweep_on(&mut self, sweep: Sweep, call: Call) {
        let call = self.start(Owner::Sweeping, call);
        self.sweeping.insert(call, sweep);
    }

    pub(super) fn sweep_news(&mut self, call: CallId, news: News<'_>) {
        let outcome = match news {
            News::Done(outcome) => Ok(outcome),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        let Some(mut sweep) = self.sweeping.remove(&call) else {
            return;
        };
        let look = |sweep: &Sweep, path| Call::ReadAt {
            path,
            beneath: sweep.files.home.clone(),
            at: 0,
            max: self.config.limits.store_piece,
        };
        let gone = |fault: &IoFault| fault.kind == IoKind::NotFound;
        match (sweep.step, outcome) {
            (Sweeping::Lock, Ok(Outcome::Locked)) => {
                sweep.step = Sweeping::Transcript;
                let call = look(&sweep, sweep.files.transcript());
                self.sweep_on(sweep, call);
            }
            // Somebody has it, or it cannot be locked.
            (Sweeping::Lock, _) => {}
            (Sweeping::Transcript, Ok(Outcome::Part(part))) if self.is_unused(&sweep.id, &part) => {
                // Messages for later are no less than a prompt.
                sweep.step = Sweeping::Inbox;
                let call = look(&sweep, sweep.files.inbox());
                self.sweep_on(sweep, call);
            }
            (Sweeping::Transcript, Err(fault)) if gone(&fault) => self.sweep_away(sweep),
            (Sweeping::Inbox, Err(fault)) if gone(&fault) => self.sweep_away(sweep),
            (Sweeping::Remove, Ok(_)) => {}
            // It stays.
            (Sweeping::Transcript | Sweeping::Inbox | Sweeping::Remove, _) => {
                let path = sweep.files.lock();
                self.start(Owner::Nobody, Call::Unlock { path });
            }
        }
    }

    fn sweep_away(&mut self, mut sweep: Sweep) {
        sweep.step = Sweeping::Remove;
        let call = Call::RemoveTree {
            path: sweep.files.folder.clone(),
            beneath: sweep.files.home.clone(),
        };
        self.sweep_on(sweep, call);
    }

    /// Whether a transcript is that of a session that nobody prompted for long, or empty in a folder
    /// that only we name so. One that is damaged or only read in part is not.
    fn is_unused(&self, id: &SessionId, transcript: &Part) -> bool {
        if transcript.size == 0 {
            return id.is_v4();
        }
        let whole = transcript.bytes.len() as u64 == transcript.size;
        let summary = read_head(&transcript.bytes, id, 0);
        summary.is_some_and(|summary| {
            let most = u64::try_from(self.config.limits.unused_session.as_millis());
            let old = self
                .unix_ms()
                .is_some_and(|now| now.saturating_sub(summary.created) > most.unwrap_or(u64::MAX));
            whole && old && summary.prompts == 0
        })
    }

    pub(super) fn delete_session(
        &mut self,
        asked: Asked<DeleteSession>,
        session: Option<SessionKey>,
        request: &DeleteSessionRequest,
    ) {
        // What is gone is on no page.
        self.listed = None;
        if let Some(key) = session {
            return match self.close_session(key) {
                Some(store) => self.part(store, Parting::Delete(asked)),
                None => self
                    .side
                    .answer(asked, Ok(DeleteSessionResponse::default())),
            };
        }
        let id = request.session_id.clone();
        match self.files(&id) {
            // It is looked for first: a lock would make its folder.
            Some(files) => {
                let path = files.folder;
                let call = self.start(Owner::Deleting, Call::Resolve { path });
                self.deleting.insert(call, Deleting { asked, id });
            }
            None => self
                .side
                .answer(asked, Ok(DeleteSessionResponse::default())),
        }
    }

    pub(super) fn delete_news(&mut self, call: CallId, news: News<'_>) {
        let outcome = match news {
            News::Done(outcome) => Ok(outcome),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        let Some(Deleting { asked, id }) = self.deleting.remove(&call) else {
            return;
        };
        let Some(files) = self.files(&id) else {
            let response = DeleteSessionResponse::default();
            return self.side.answer(asked, Ok(response));
        };
        match outcome {
            Ok(Outcome::Resolved(found)) if found.link => {
                let why = format!("the session {id} is a link: remove it by hand");
                self.side.answer(asked, Err(RpcError::internal(&why)));
            }
            Ok(Outcome::Resolved(found)) if found.kind == FileKind::Directory && !id.is_v4() => {
                let call = Call::ReadAt {
                    path: files.transcript(),
                    beneath: files.home,
                    at: 0,
                    max: self.config.limits.store_piece,
                };
                let call = self.start(Owner::Deleting, call);
                self.deleting.insert(call, Deleting { asked, id });
            }
            Ok(Outcome::Resolved(found)) if found.kind == FileKind::Directory => {
                self.delete_locked(asked, id, files);
            }
            Ok(Outcome::Part(part)) if read_head(&part.bytes, &id, 0).is_some() => {
                self.delete_locked(asked, id, files);
            }
            Ok(Outcome::Locked) => {
                let stored = Stored::on_disk(files, Summary::default(), 0, false);
                let store = self.add_stored(stored);
                self.part(store, Parting::Delete(asked));
            }
            Ok(Outcome::Held(holder)) => {
                self.side.answer(asked, Err(session_locked(&id, &holder)));
            }
            Ok(_) => self
                .side
                .answer(asked, Ok(DeleteSessionResponse::default())),
            Err(IoFault {
                kind: IoKind::NotFound,
                ..
            }) => self
                .side
                .answer(asked, Ok(DeleteSessionResponse::default())),
            Err(fault) => {
                let why = format!("the session {id} cannot be removed: {fault}");
                self.side.answer(asked, Err(RpcError::internal(&why)));
            }
        }
    }

    fn delete_locked(&mut self, asked: Asked<DeleteSession>, id: SessionId, files: SessionFiles) {
        let lock = Call::Lock {
            path: files.lock(),
            beneath: files.home,
        };
        let call = self.start(Owner::Deleting, lock);
        self.deleting.insert(call, Deleting { asked, id });
    }
}

fn session_info(summary: &Summary) -> SessionInfo {
    let id = SessionId::from(summary.id.clone());
    let mut info = SessionInfo::new(id, summary.cwd.clone());
    info.additional_directories.clone_from(&summary.directories);
    info.title = (!summary.title.is_empty()).then(|| summary.title.clone());
    info.updated_at = (summary.updated > 0).then(|| rfc3339(summary.updated));
    info
}

/// The summary of a session whose transcript begins like this.
fn read_head(bytes: &[u8], id: &SessionId, max: usize) -> Option<Summary> {
    let mut head = Lines::new(bytes.len());
    head.push(bytes);
    let mut summary: Option<Summary> = None;
    while let Some(records) = head.next_line::<Record>() {
        for record in records {
            match (record, &mut summary) {
                (Record::Session(header), None) if header.id == id.as_str() => {
                    summary = Some(Summary::new(&header.id, &header.cwd, header.created));
                }
                (Record::User(user), Some(summary)) if user.from.begins_turn() => {
                    summary.prompts += 1;
                    if summary.title.is_empty() {
                        summary.title = content::title_of(&user, max);
                    }
                }
                (Record::Roots { directories }, Some(summary)) => summary.directories = directories,
                (_, _) => {}
            }
        }
    }
    if let Some(summary) = &mut summary {
        summary.updated = summary.updated.max(head.latest());
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_place_and_nothing_else_is() {
        let place = Place {
            updated: 12,
            id: "a.b".into(),
        };
        assert_eq!(Place::of_cursor(&place.cursor()), Some(place));
        for bad in ["", "!", "x", "MTIu", "YS5i", "MTIuLi4"] {
            assert_eq!(Place::of_cursor(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_list_goes_from_the_newest_to_the_oldest() {
        let place = |updated, id: &str| Place {
            updated,
            id: id.into(),
        };
        assert!(place(2, "b").is_before(&place(1, "a")));
        assert!(place(1, "a").is_before(&place(1, "b")));
        assert!(!place(1, "a").is_before(&place(1, "a")));
    }
}
