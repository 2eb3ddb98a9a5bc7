//! `session/list`: sessions that are stored or open, newest first.
//!
//! The order is that of their last use, and a folder is asked for by some, so a first page takes a look
//! at the summary of every stored session, a few at a time. Of those that are not on the page only the
//! places are kept, for the next pages: these look at their own sessions and no other. A session that has
//! no summary yet, or a damaged one, is read from the beginning of its transcript. What a crash left of
//! one goes on the way.
//!
//! | file | what lives there |
//! | --- | --- |
//! | `nearest` | places, cursors, and what is kept of what was found |
//! | `head` | what is shown of a session |
//! | `sweep` | what is nothing, and goes |
//! | `deleting` | `session/delete` |

mod deleting;
mod head;
mod nearest;
mod sweep;

pub(super) use deleting::Deleting;
pub(super) use sweep::Sweep;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::loading::same_path;
use super::opening::is_absolute;
use super::{Agent, Owner};
use crate::call::{Call, FileKind, News, Outcome};
use crate::error::IoKind;
use crate::ids::CallId;
use crate::protocol::Asked;
use crate::protocol::methods::ListSessions;
use crate::protocol::schema::{ListSessionsRequest, ListSessionsResponse, SessionId};
use crate::store::{Summary, layout};
use crate::time::Instant;
use crate::wire::{RequestKey, RpcError};

use head::{read_head, session_info};
use nearest::{Nearest, Place};

/// A `session/list` that is not answered yet.
pub(super) struct Listing {
    asked: Asked<ListSessions>,
    cwd: Option<String>,
    /// Sessions that were not looked at.
    left: VecDeque<SessionId>,
    looking: BTreeMap<CallId, (SessionId, Look)>,
    page: Page,
}

/// Which page it is.
enum Page {
    /// One behind this place, of all that is found.
    Any(Option<Place>, Nearest),
    /// The one that follows a page, of known places; and what is known behind it.
    Next {
        places: Vec<Place>,
        found: BTreeMap<String, Summary>,
        rest: VecDeque<Place>,
        more: bool,
    },
}

/// The places behind the pages that were given.
pub(super) struct Listed {
    cwd: Option<String>,
    /// The last that was given.
    after: Place,
    rest: VecDeque<Place>,
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

impl Listing {
    /// Takes in a session, if it belongs to the page.
    fn find(&mut self, summary: Summary) {
        let cwd = self.cwd.as_ref();
        if !cwd.is_none_or(|cwd| same_path(&summary.cwd, cwd)) {
            return;
        }
        match &mut self.page {
            Page::Any(after, nearest) => {
                let after = after.as_ref();
                if after.is_none_or(|after| after.is_before(&Place::of(&summary))) {
                    nearest.take(summary);
                }
            }
            // It keeps its place, though it may have been used since.
            Page::Next { found, .. } => drop(found.insert(summary.id.clone(), summary)),
        }
    }
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
        let key = asked.key();
        let limits = &self.config.limits;
        let follows = |listed: &Listed| {
            let fresh = self.now.since(listed.made) < limits.list_fresh;
            fresh && after.as_ref() == Some(&listed.after) && listed.cwd == request.cwd
        };
        let listed = self.listed.take().filter(follows);
        let (page, left) = match listed {
            Some(mut listed) => {
                let page = limits.list_page.min(listed.rest.len());
                let places: Vec<Place> = listed.rest.drain(..page).collect();
                let left = places.iter().map(|it| SessionId::from(it.id.as_str()));
                let left = left.collect();
                let page = Page::Next {
                    places,
                    found: BTreeMap::new(),
                    rest: listed.rest,
                    more: listed.more,
                };
                (page, Some(left))
            }
            None => {
                let nearest = Nearest::new(limits.list_page, limits.list_kept);
                (Page::Any(after, nearest), None)
            }
        };
        let known = left.is_some();
        let listing = Listing {
            asked,
            cwd: request.cwd,
            left: left.unwrap_or_default(),
            looking: BTreeMap::new(),
            page,
        };
        self.listings.insert(key, Box::new(listing));
        match self.store_home().map(layout::sessions) {
            Some(path) if !known => {
                let max = self.config.limits.max_stored;
                let id = self.start(Owner::Listing(key), Call::List { path, max });
                if let Some(listing) = self.listings.get_mut(&key) {
                    // No session has this id.
                    let none = SessionId::from(String::new());
                    listing.looking.insert(id, (none, Look::Folder));
                }
            }
            Some(_) | None => self.look_on(key),
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
                    Some(summary) => listing.find(summary),
                    None => self.look(key, id, Look::Transcript),
                }
            }
            (Look::Summary, _) => self.look(key, id, Look::Transcript),
            (Look::Transcript, Ok(Outcome::Part(part))) => {
                let max = self.config.limits.max_session_title;
                let whole = part.bytes.len() as u64 == part.size;
                match read_head(&part.bytes, &id, max) {
                    // What does not fit into one piece was prompted.
                    Some(summary) if summary.prompts > 0 || !whole => listing.find(summary),
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

    fn answer_list(&mut self, mut listing: Listing) {
        // What is open here is known better.
        let open: BTreeSet<&str> = self.sessions.values().map(|it| it.id.as_str()).collect();
        match &mut listing.page {
            Page::Any(_, nearest) => nearest.give_up(&open),
            Page::Next { found, .. } => found.retain(|id, _| !open.contains(id.as_str())),
        }
        for session in self.sessions.values() {
            if let Some(stored) = self.stores.get(&session.store) {
                listing.find(stored.summary.clone());
            }
        }
        let (shown, last, rest, more) = match listing.page {
            Page::Any(_, nearest) => {
                let (shown, rest, more) = nearest.finish();
                let last = shown.last().map(Place::of);
                (shown, last, rest, more)
            }
            Page::Next {
                mut places,
                mut found,
                rest,
                more,
            } => {
                let shown = places.iter().filter_map(|place| found.remove(&place.id));
                (shown.collect::<Vec<_>>(), places.pop(), rest, more)
            }
        };
        let mut response =
            ListSessionsResponse::new(Vec::from_iter(shown.iter().map(session_info)));
        if let Some(after) = last
            && (more || !rest.is_empty())
        {
            response.next_cursor = Some(after.cursor());
            self.listed = (!rest.is_empty()).then_some(Listed {
                cwd: listing.cwd,
                after,
                rest,
                more,
                made: self.now,
            });
        }
        self.side.answer(listing.asked, Ok(response));
    }
}
