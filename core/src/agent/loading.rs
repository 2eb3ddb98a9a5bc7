//! `session/load` and `session/resume`: a stored session is read from its transcript, and replayed
//! by a load as it was seen. One that is open already is replayed as it stands; its turn goes on.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;

use serde::Serialize;

use super::inbox::{self, Claims};
use super::opening::{How, Opening, check_setup, refused};
use super::options::Axes;
use super::replay::Replay;
use super::saving::{Stored, Then};
use super::status::Status;
use super::{Agent, Level, Owner, Preset, content};
use crate::call::{Call, Holder, Outcome};
use crate::engine::record::{Header, Options, Record, VERSION};
use crate::engine::{Context, Engine, Output};
use crate::error::{CommandError, IoFault, IoKind};
use crate::ids::SessionKey;
use crate::protocol::Asked;
use crate::protocol::methods::{LoadSession, ResumeSession};
use crate::protocol::schema::{
    LoadSessionRequest, LoadSessionResponse, ResumeSessionRequest, ResumeSessionResponse,
    SessionId, SessionUpdate,
};
use crate::store::{Lines, Summary};
use crate::wire::{RequestKey, RpcError};

/// A session that is being read.
pub(super) struct Loading {
    stage: Stage,
    lines: Lines,
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
    inbox: Option<inbox::Stored>,
    /// What the transcript shows of the inbox.
    claims: Claims,
    /// Of its format; none: its first line is damaged.
    version: Option<u32>,
    /// This agent has its lock.
    pub(super) locked: bool,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The beginning of the transcript: what the session is.
    Head,
    /// Its lock.
    Lock,
    /// Its inbox.
    Inbox,
    /// The rest of what opening needs.
    Setup,
    /// The next part of the transcript, or room at the client.
    Reading,
    /// Room at the client for the last of it.
    Showing,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NotFound<'a> {
    session_id: &'a str,
    code: &'a str,
    details: &'a str,
}

#[derive(Serialize)]
struct Locked<'a> {
    code: &'a str,
    holder: HolderShown<'a>,
}

#[derive(Serialize)]
struct HolderShown<'a> {
    pid: Option<u32>,
    host: Option<&'a str>,
    since: Option<&'a str>,
}

/// −32002: there is no such session.
pub(super) fn not_found(id: &SessionId) -> RpcError {
    let details = format!("Session not found: {id}");
    RpcError::resource_not_found(&details).with_data(&NotFound {
        session_id: id.as_str(),
        code: "session_not_found",
        details: &details,
    })
}

/// −32600: another process has it open.
pub(super) fn session_locked(id: &SessionId, holder: &Holder) -> RpcError {
    let mut why = format!("the session {id} is open in another process");
    if let Some(pid) = holder.pid {
        why.push_str(&format!(" ({pid}"));
        if let Some(host) = &holder.host {
            why.push_str(&format!(" on {host}"));
        }
        why.push(')');
    }
    why.push_str(": close it there first");
    RpcError::invalid_request(&why).with_data(&Locked {
        code: "session_locked",
        holder: HolderShown {
            pid: holder.pid,
            host: holder.host.as_deref(),
            since: holder.since.as_deref(),
        },
    })
}

fn mismatch(cwd: &str) -> RpcError {
    let why = format!("the session belongs to the directory {cwd}: open it with that cwd");
    refused("cwd_mismatch", &why)
}

/// Whether two ways of writing a path mean the same without a look at the disk.
pub(super) fn same_path(a: &str, b: &str) -> bool {
    cleaned(a).eq(cleaned(b))
}

fn cleaned(path: &str) -> impl Iterator<Item = &str> {
    let mut parts: alloc::vec::Vec<&str> = alloc::vec::Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.into_iter()
}

impl Loading {
    fn new(limits: &crate::limits::Limits) -> Self {
        Self {
            stage: Stage::Head,
            lines: Lines::new(limits.max_record),
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
        }
    }
}

impl Agent {
    pub(super) fn load_session(
        &mut self,
        asked: Asked<LoadSession>,
        session: Option<SessionKey>,
        request: LoadSessionRequest,
    ) {
        let checked = check_setup(
            &request.cwd,
            &request.mcp_servers,
            &request.additional_directories,
            request.system_prompt.as_ref(),
        );
        let key = asked.key();
        let how = How::Load(asked);
        self.reopen(key, how, session, request.session_id, request.cwd, checked);
    }

    pub(super) fn resume_session(
        &mut self,
        asked: Asked<ResumeSession>,
        session: Option<SessionKey>,
        request: ResumeSessionRequest,
    ) {
        let checked = check_setup(
            &request.cwd,
            &request.mcp_servers,
            &request.additional_directories,
            request.system_prompt.as_ref(),
        );
        let key = asked.key();
        let how = How::Resume(asked);
        self.reopen(key, how, session, request.session_id, request.cwd, checked);
    }

    fn reopen(
        &mut self,
        key: RequestKey,
        how: How,
        live: Option<SessionKey>,
        id: SessionId,
        cwd: String,
        checked: Result<(), RpcError>,
    ) {
        // What it is set to is read from its transcript.
        let axes = Axes {
            model: String::new(),
            effort: None,
            preset: self.config.preset,
            posture: self.config.permission_mode.start,
            mode: Default::default(),
        };
        let mut opening = Opening::new(how, id.clone(), cwd, axes);
        opening.loading = Some(Box::new(Loading::new(&self.config.limits)));
        self.openings.insert(key, opening);
        if let Err(error) = checked {
            return self.refuse_opening(key, error);
        }
        match live {
            Some(session) => self.reopen_live(key, session),
            None if self.files(&id).is_none() => self.refuse_opening(key, not_found(&id)),
            None => self.read_on(key),
        }
    }

    /// A session that is open already.
    fn reopen_live(&mut self, key: RequestKey, live: SessionKey) {
        let Some(session) = self.sessions.get(&live) else {
            return;
        };
        let (store, axes, cwd) = (session.store, session.axes.clone(), session.cwd.clone());
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        if !same_path(&opening.cwd, &cwd) {
            return self.refuse_opening(key, mismatch(&cwd));
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
    pub(super) fn replay_live(&mut self, key: RequestKey) {
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
            return;
        };
        let (size, kept) = (
            stored.journal.size(),
            stored.journal.kept().map(<[u8]>::to_vec),
        );
        let Some(loading) = self.loading(key) else {
            return;
        };
        match kept {
            Some(kept) => {
                loading.lines.push(&kept);
                loading.ended = true;
                self.load_on(key);
            }
            None => {
                loading.until = Some(size);
                self.read_on(key);
            }
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
            return;
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
        let id = self.start(Owner::Opening(key), call);
        if let Some(opening) = self.openings.get_mut(&key) {
            opening.store_call = Some(id);
        }
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
                loading.stage = Stage::Inbox;
                self.read_inbox(key);
            }
            (Stage::Inbox, outcome) => {
                loading.inbox = inbox_found(outcome);
                loading.stage = Stage::Setup;
                self.resolve_cwd(key);
            }
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

    /// Reads the inbox, which nobody else can change now.
    fn read_inbox(&mut self, key: RequestKey) {
        let Some(opening) = self.openings.get(&key) else {
            return;
        };
        let Some(files) = self.files(&opening.id) else {
            return;
        };
        let max = self.config.limits.max_inbox_file;
        let call = Call::ReadAt {
            path: files.inbox(),
            beneath: files.home,
            at: 0,
            max: usize::try_from(max).unwrap_or(usize::MAX),
        };
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
            match record {
                Record::Session(found) => header = header.or(Some(found)),
                Record::Options(found) => first = first.or(Some(found)),
                Record::User(_)
                | Record::Assistant(_)
                | Record::Call { .. }
                | Record::Result(_)
                | Record::Plan { .. }
                | Record::Note { .. }
                | Record::Summary { .. }
                | Record::Goal(_)
                | Record::End(_)
                | Record::Mended { .. }
                | Record::Unknown => {}
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
        let Some(files) = self.files(&id) else { return };
        let call = Call::Lock {
            path: files.lock(),
            beneath: files.home,
        };
        let call = self.start(Owner::Opening(key), call);
        if let Some(opening) = self.openings.get_mut(&key) {
            opening.store_call = Some(call);
        }
    }

    /// The working directory and the project's files are there: the transcript is read.
    pub(super) fn read_transcript(&mut self, key: RequestKey) {
        match self.make_engine(key) {
            Ok(engine) => {
                if let Some(loading) = self.loading(key) {
                    loading.engine = Some(engine);
                    loading.stage = Stage::Reading;
                }
                self.read_on(key);
            }
            Err(error) => self.refuse_opening(key, error),
        }
    }

    /// Takes in what was read, and shows it as far as the client has room.
    pub(super) fn load_on(&mut self, key: RequestKey) {
        loop {
            if !self.show_replay(key) {
                return;
            }
            let Some(loading) = self.loading(key) else {
                return;
            };
            if loading.stage == Stage::Showing {
                return self.loaded(key);
            }
            match loading.lines.next_line::<Record>() {
                Some(records) => {
                    loading.unreadable += loading.lines.take_unreadable();
                    for record in records {
                        self.take_in(key, &record);
                    }
                }
                None if loading.ended => {
                    loading.lines.finish();
                    // A last line without its end is there now, if there is one.
                    if let Some(records) = loading.lines.next_line::<Record>() {
                        loading.unreadable += loading.lines.take_unreadable();
                        for record in records {
                            self.take_in(key, &record);
                        }
                    }
                    self.read_all(key);
                }
                None => return self.read_on(key),
            }
        }
    }

    fn take_in(&mut self, key: RequestKey, record: &Record) {
        let limits = &self.config.limits;
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        let replayed = matches!(opening.how, How::Load(_));
        let Some(loading) = &mut opening.loading else {
            return;
        };
        let mut goal = None;
        if let Some(engine) = &mut loading.engine {
            engine.restore(record);
            goal = engine.goal();
        }
        loading.status.take(record, goal);
        loading.claims.take_in(record);
        match record {
            Record::Options(options) => loading.options = Some(options.clone()),
            Record::Mended { .. } => loading.unreadable = 0,
            Record::User(user) if user.from.begins_turn() => {
                loading.summary.prompts += 1;
                if loading.summary.title.is_empty() {
                    let title = content::title_of(user, limits.max_session_title);
                    loading.summary.title = title;
                }
            }
            Record::Session(_)
            | Record::User(_)
            | Record::Assistant(_)
            | Record::Call { .. }
            | Record::Result(_)
            | Record::Plan { .. }
            | Record::Note { .. }
            | Record::Summary { .. }
            | Record::Goal(_)
            | Record::End(_)
            | Record::Unknown => {}
        }
        if replayed {
            let seen = loading.replay.updates(record, limits);
            loading.waiting.extend(seen);
        }
    }

    /// Replays what waits. False: the client has no room; it is called again when there is some.
    fn show_replay(&mut self, key: RequestKey) -> bool {
        let Some(opening) = self.openings.get_mut(&key) else {
            return false;
        };
        let (How::Load(asked), Some(loading)) = (&opening.how, &mut opening.loading) else {
            return true;
        };
        while let Some(update) = loading.waiting.pop_front() {
            let Some(mut replay) = self.side.replay(asked) else {
                continue;
            };
            if let Err(CommandError::Full(())) = replay.update(&update) {
                loading.waiting.push_front(update);
                return false;
            }
        }
        true
    }

    /// The transcript was read to its end.
    fn read_all(&mut self, key: RequestKey) {
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        let (id, cwd) = (opening.id.clone(), opening.cwd.clone());
        let Some(loading) = &mut opening.loading else {
            return;
        };
        loading.stage = Stage::Showing;
        let Some(mut engine) = loading.engine.take() else {
            return;
        };
        let (size, lacks_end) = (loading.lines.read(), loading.lines.lacks_end());
        let (unreadable, torn) = (loading.unreadable, loading.lines.is_torn());
        let (mut summary, version) = (loading.summary.clone(), loading.version);
        summary.updated = summary.updated.max(loading.lines.latest());
        let options = loading.options.take();
        let inbox = loading.inbox.take();
        let mut claims = core::mem::take(&mut loading.claims);
        if unreadable > 0 {
            claims.lack();
        }
        let Some(files) = self.files(&id) else { return };

        let mut stored = Stored::on_disk(files, summary, size, lacks_end);
        let unprompted = stored.summary.prompts == 0;
        stored.read_only = match version {
            Some(version) if version > VERSION => Some(format!(
                "The session was written by a later version (format {version}, this agent writes \
                 {VERSION}): it can be read, not continued."
            )),
            Some(_) => None,
            // A session that a loss of power took before anything was said in it is begun anew.
            None if unprompted => None,
            None => Some(
                "The first line of the session's transcript is damaged, so it is not known what \
                 wrote it: it can be read, not continued."
                    .into(),
            ),
        };
        let store = self.add_stored(stored);
        if version.is_none() && unprompted {
            let header = self.header(&id, &cwd);
            self.remember(store, &Record::Session(header));
        }
        self.recover_inbox(store, inbox, &claims);
        let (axes, notice) = match &options {
            Some(options) => self.stored_axes(options),
            None => self.stored_axes(&Options::default()),
        };
        let mut cx = Context {
            now: self.now,
            unix_seconds: None,
            ids: &mut self.ids,
            limits: &self.config.limits,
            out: &mut self.said,
        };
        engine.mend(&mut cx);
        if unreadable > 0 {
            let text = format!(
                "\n\n[warning] {unreadable} lines of this session's history could not be read and \
                 are left out. They are still in its transcript.\n\n"
            );
            engine.record(&mut cx, Record::Mended { unreadable });
            engine.record(&mut cx, Record::Note { text });
        } else if torn {
            engine.record(&mut cx, Record::Mended { unreadable: 1 });
        }
        if let Some(text) = notice {
            engine.record(&mut cx, Record::Note { text });
        }
        engine.set_light(axes.preset == Preset::Light);
        engine.set_delivery(axes.preset == Preset::Delivery);
        engine.set_posture(&mut cx, axes.posture);
        if unreadable > 0 || torn {
            self.report(
                Level::Warn,
                format!(
                    "session {id}: {unreadable} unreadable lines{}",
                    if torn { ", a torn end" } else { "" }
                ),
            );
        }
        let brain = self.brain_or_nobody(&axes);
        let window = super::opening::context_window(&self.config.settings, &axes.model);
        engine.set_brain(brain, window);
        while let Some(output) = self.said.pop_front() {
            match output {
                Output::Record(record) => {
                    self.remember(store, &record);
                    self.take_in(key, &record);
                }
                Output::Start { .. }
                | Output::Abort { .. }
                | Output::Update(_)
                | Output::Permit { .. }
                | Output::Questions { .. }
                | Output::Withdraw { .. }
                | Output::Finished(_)
                | Output::Log(_) => {}
            }
        }
        if let Some(opening) = self.openings.get_mut(&key) {
            opening.axes = axes;
            opening.store = Some(store);
            if let Some(loading) = &mut opening.loading {
                loading.engine = Some(engine);
            }
        }
    }

    /// All of it was shown: the session is open.
    fn loaded(&mut self, key: RequestKey) {
        let Some(loading) = self.loading(key) else {
            return;
        };
        if loading.live.is_some() {
            return self.answer_live(key);
        }
        if let Some(engine) = loading.engine.take() {
            self.answer_opened(key, engine);
        }
    }

    fn answer_live(&mut self, key: RequestKey) {
        let Some(opening) = self.openings.remove(&key) else {
            return;
        };
        let live = opening.loading.as_ref().and_then(|loading| loading.live);
        let replay = opening.loading;
        let axes = live
            .and_then(|live| self.sessions.get(&live))
            .map_or(opening.axes, |session| session.axes.clone());
        let options = Some(self.options(&axes));
        let modes = Some(super::standing::modes(axes.mode));
        match opening.how {
            How::Load(asked) => {
                let response = LoadSessionResponse {
                    modes,
                    config_options: options,
                    ..Default::default()
                };
                self.side.open(asked, response);
            }
            How::Resume(asked) => {
                let response = ResumeSessionResponse {
                    modes,
                    config_options: options,
                    ..Default::default()
                };
                self.side.open(asked, response);
            }
            // A new session is not open already.
            How::New(_) => {}
        }
        if let Some(loading) = replay {
            self.replayed_live(&loading);
        }
    }

    /// A load of an open session is over: what is new follows what was old.
    pub(super) fn replayed_live(&mut self, loading: &Loading) {
        let Some(live) = loading.live.filter(|_| loading.stage != Stage::Head) else {
            return;
        };
        if let Some(session) = self.sessions.get_mut(&live) {
            session.replaying = session.replaying.saturating_sub(1);
            self.flush(live);
            self.enqueue(live);
        }
    }

    /// What a session was set to, as far as it can still be that; and what to say if not.
    fn stored_axes(&self, options: &Options) -> (Axes, Option<String>) {
        let mut axes = Axes::of_record(options, &self.config);
        if self.brain(&axes).is_ok() {
            let efforts = super::options::efforts(&self.config.settings, &axes.model);
            axes.effort = axes.effort.filter(|effort| efforts.contains(effort));
            return (axes, None);
        }
        let Ok(model) = self.usable_model() else {
            return (axes, None);
        };
        let notice = (!axes.model.is_empty()).then(|| {
            format!(
                "\n\n[warning] The model {} is not configured any more: {model} answers now.\n\n",
                axes.model
            )
        });
        axes.model = model;
        axes.effort = None;
        (axes, notice)
    }
}

/// What was found of an inbox; none if there is none.
fn inbox_found(outcome: Result<Outcome, IoFault>) -> Option<inbox::Stored> {
    match outcome {
        Ok(Outcome::Part(part)) if part.bytes.len() as u64 == part.size => {
            Some(inbox::Stored::Bytes(part.bytes))
        }
        Ok(_) => Some(inbox::Stored::Unreadable("its file is too long".into())),
        Err(fault) if fault.kind == IoKind::NotFound => None,
        Err(fault) => Some(inbox::Stored::Unreadable(fault.message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_as_they_are_meant() {
        for (a, b, same) in [
            ("/w", "/w/", true),
            ("/w/./x", "//w/x", true),
            ("/w/y/../x", "/w/x", true),
            ("/w", "/w2", false),
            ("/w", "/", false),
        ] {
            assert_eq!(same_path(a, b), same, "{a} {b}");
        }
    }
}
