//! A load or resume of a session that is open already: it is replayed as it stands, and its turn goes
//! on.

use super::super::opening::{How, refused};
use super::super::roots::session_open;
use super::super::saving::Then;
use super::super::{Agent, standing};
use super::faults::{mismatch, same_path};
use super::{Loading, Stage};
use crate::ids::SessionKey;
use crate::wire::RequestKey;

impl Agent {
    /// A session that is open already.
    pub(super) fn reopen_live(&mut self, key: RequestKey, live: SessionKey) {
        let Some(session) = self.sessions.get(&live) else {
            return self.refuse_lost(key);
        };
        let (store, axes, cwd) = (session.store, session.axes.clone(), session.cwd.clone());
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        if !same_path(&opening.cwd, &cwd) {
            return self.refuse_opening(key, mismatch(&cwd));
        }
        if !session.directories.are(&opening.roots.asked) {
            let error = session_open(&opening.roots.asked);
            return self.refuse_opening(key, error);
        }
        if opening.prompt.is_some() && opening.prompt != session.prompt {
            let why = "the session is open: its systemPrompt is set when it opens";
            return self.refuse_opening(key, refused("session_open", why));
        }
        opening.axes = axes;
        if let Some(loading) = &mut opening.loading {
            loading.live = Some(live);
        }
        if matches!(opening.how, How::Resume(_)) {
            return self.answer_live(key);
        }
        // What is remembered by now is replayed, so it has to be in the file first.
        let place = self
            .stores
            .get(&store)
            .map_or(0, |stored| stored.journal.place());
        self.when_safe(store, place, Then::Open(key));
    }

    /// What an open session remembers is in its file: it is replayed from there.
    pub(in crate::agent) fn replay_live(&mut self, key: RequestKey) {
        let Some(loading) = self.loading(key) else {
            return;
        };
        let Some(live) = loading.live else { return };
        loading.stage = Stage::Reading;
        let store = self.sessions.get_mut(&live).map(|session| {
            session.replaying += 1;
            session.store
        });
        let Some(stored) = store.and_then(|store| self.stores.get(&store)) else {
            return self.refuse_lost(key);
        };
        let size = stored.journal.size();
        if let Some(loading) = self.loading(key) {
            loading.until = Some(size);
        }
        self.load_on(key);
    }

    /// Reads the next lines of a session that is only in memory; false if it is not that.
    pub(super) fn read_kept(&mut self, key: RequestKey) -> bool {
        let max = self.config.limits.store_piece;
        let loading = self
            .openings
            .get_mut(&key)
            .and_then(|it| it.loading.as_mut());
        let Some(loading) = loading else { return false };
        let session = loading.live.and_then(|live| self.sessions.get(&live));
        let stored = session.and_then(|session| self.stores.get(&session.store));
        let at = loading.lines.read() + loading.missed;
        let Some((missed, lines)) = stored.and_then(|it| it.journal.kept_from(at, max)) else {
            return false;
        };
        // What is new by now follows when all this was shown.
        let left = loading
            .until
            .unwrap_or(u64::MAX)
            .saturating_sub(at + missed);
        let lines = &lines[..lines.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        loading.missed += missed;
        loading.lines.push(lines);
        loading.ended = lines.is_empty();
        true
    }

    pub(super) fn answer_live(&mut self, key: RequestKey) {
        let Some(opening) = self.openings.remove(&key) else {
            return;
        };
        let live = opening.loading.as_ref().and_then(|loading| loading.live);
        let servers = opening.servers;
        let replay = opening.loading;
        let axes = live
            .and_then(|live| self.sessions.get(&live))
            .map_or(opening.axes, |session| session.axes.clone());
        let (options, modes) = (self.options(&axes), standing::modes(axes.mode));
        opening
            .how
            .open(&mut self.side, &opening.id, modes, options);
        if let Some(loading) = replay {
            self.replayed_live(&loading);
        }
        if let Some(live) = live {
            self.tell_commands(live);
            self.tell_usage(live);
            self.take_servers(live, &servers);
        }
    }

    /// A load of an open session is over: what is new follows what was old.
    pub(in crate::agent) fn replayed_live(&mut self, loading: &Loading) {
        let Some(live) = loading.live.filter(|_| loading.stage != Stage::Head) else {
            return;
        };
        if let Some(session) = self.sessions.get_mut(&live) {
            session.replaying = session.replaying.saturating_sub(1);
            self.flush(live);
            self.enqueue(live);
        }
    }
}
