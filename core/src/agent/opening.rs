//! Opening a session: what has to be known before it exists. Refuses as a whole: nothing a client
//! asked for is ignored.
//!
//! | step | `session/new` | `session/load`, `session/resume` |
//! | --- | --- | --- |
//! | 1 | the working directory is resolved | the transcript's head is read, the lock is taken, the inbox is read |
//! | 2 | the other folders are judged | the working directory is resolved, the other folders are judged |
//! | 3 | the project's files are read, the lock is taken, and the id found to be free | the project's files are read |
//! | 4 | the first records are written | the transcript is read, and replayed by a load |
//! | 5 | the answer | what broke off is mended; the answer |

mod checks;
mod engines;
mod how;

pub(super) use checks::{SETUP, Wanted, auth_required, is_absolute, refused};
pub(super) use engines::context_window;
pub(super) use how::How;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::commands::{Scan, Shelf};
use super::loading::Loading;
use super::options::Axes;
use super::roots::{Directories, Roots};
use super::saving::{Parting, StoreKey, Stored, Then};
use super::session::Session;
use super::{Agent, Level, Owner};
use crate::call::{Call, FileKind, News, Outcome};
use crate::engine::record::{Header, Record, VERSION};
use crate::engine::{Engine, PROJECT_FILES, ProjectFile};
use crate::error::{IoFault, IoKind};
use crate::ids::CallId;
use crate::protocol::Asked;
use crate::protocol::methods::NewSession;
use crate::protocol::schema::{
    ContentBlock, ContentChunk, McpServer, NewSessionRequest, SessionId, SessionUpdate,
    SystemPrompt,
};
use crate::store::{SessionFiles, Summary};
use crate::wire::{RequestKey, RpcError};

/// A request that opens a session and is not answered yet.
pub(super) struct Opening {
    pub(super) how: How,
    pub(super) id: SessionId,
    pub(super) cwd: String,
    pub(super) axes: Axes,
    /// Its links resolved.
    pub(super) root: Option<String>,
    /// Its folders beside that.
    pub(super) roots: Roots,
    /// Its MCP servers, which were checked.
    pub(super) servers: Vec<McpServer>,
    /// Project files being read, by the place they have in the prompt.
    reading: BTreeMap<CallId, usize>,
    project: Vec<Option<ProjectFile>>,
    /// Commands and skills being looked for, and found.
    scan: Option<Scan>,
    shelf: Shelf,
    /// The call for its lock, or for its transcript.
    pub(super) store_call: Option<CallId>,
    /// A new session's lock is held, and whether its id is free is being looked at.
    locked: bool,
    /// Ids of a new session that were found to be taken.
    taken: u32,
    pub(super) store: Option<StoreKey>,
    /// Its first records are written.
    recorded: bool,
    /// Why it is not stored, though it should be.
    unsaved: Option<String>,
    /// The client's part of its system prompt.
    pub(super) prompt: Option<SystemPrompt>,
    /// What is loaded of it.
    pub(super) loading: Option<Box<Loading>>,
}

/// A request that opens nothing, and is answered when the lock that it asked for is given back.
pub(super) struct Leaving {
    how: How,
    id: SessionId,
    error: RpcError,
}

impl Opening {
    pub(super) fn new(how: How, id: SessionId, wanted: Wanted, axes: Axes) -> Self {
        Self {
            how,
            id,
            cwd: wanted.cwd,
            axes,
            root: None,
            roots: Roots::new(wanted.directories),
            servers: wanted.servers,
            reading: BTreeMap::new(),
            project: Vec::new(),
            scan: None,
            shelf: Shelf::default(),
            store_call: None,
            locked: false,
            taken: 0,
            store: None,
            recorded: false,
            unsaved: None,
            prompt: wanted.prompt,
            loading: None,
        }
    }
}

impl Agent {
    pub(super) fn new_session(&mut self, asked: Asked<NewSession>, request: NewSessionRequest) {
        let wanted = Wanted::from(request);
        let checked = wanted.check(&self.config.limits);
        match checked
            .and_then(|()| self.new_axes())
            .and_then(|axes| self.check_sandbox().map(|()| axes))
        {
            Err(error) => self.side.answer(asked, Err(error)),
            Ok(axes) => {
                let key = asked.key();
                let id = self.draw_id();
                let opening = Opening::new(How::New(asked), id, wanted, axes);
                self.openings.insert(key, opening);
                self.resolve_cwd(key);
            }
        }
    }

    pub(super) fn resolve_cwd(&mut self, key: RequestKey) {
        if let Some(opening) = self.openings.get(&key) {
            let path = opening.cwd.clone();
            self.start(Owner::Opening(key), Call::Resolve { path });
        }
    }

    pub(super) fn opening_news(&mut self, key: RequestKey, id: CallId, news: News<'_>) {
        let outcome = match news {
            News::Done(outcome) => Ok(outcome),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        if self.root_news(key, id, &outcome) {
            return;
        }
        let Some(opening) = self.openings.get_mut(&key) else {
            return self.leave(key, id, outcome);
        };
        if let Some(scan) = &mut opening.scan
            && scan.take(id, &outcome, &self.config.limits)
        {
            return self.scan_opening(key);
        }
        if let Some(at) = opening.reading.remove(&id) {
            match outcome {
                Ok(Outcome::Read(contents)) => {
                    let text = String::from_utf8_lossy(&contents.bytes).into_owned();
                    opening.project[at] = Some(ProjectFile {
                        path: PROJECT_FILES[at].into(),
                        text,
                    });
                }
                Err(fault) if fault.kind != IoKind::NotFound => {
                    let name = PROJECT_FILES[at];
                    self.report(Level::Warn, format!("{name} is not used: {fault}"));
                }
                Ok(_) | Err(_) => {}
            }
            return self.open_when_ready(key);
        }
        if opening.store_call == Some(id) {
            opening.store_call = None;
            return match opening.how {
                How::New(_) if opening.locked => self.looked_new(key, outcome),
                How::New(_) => self.locked_new(key, outcome),
                How::Load(_) | How::Resume(_) => self.stored_news(key, outcome),
            };
        }
        match outcome {
            Ok(Outcome::Resolved(found)) if found.kind == FileKind::Directory => {
                opening.root = Some(found.real);
                self.vet_roots(key);
            }
            Ok(Outcome::Resolved(found)) if found.kind == FileKind::Missing => {
                self.refuse_cwd(key, "cwd does not exist");
            }
            Ok(_) => self.refuse_cwd(key, "cwd is not a directory"),
            Err(fault) if fault.kind == IoKind::NotFound => {
                self.refuse_cwd(key, "cwd does not exist");
            }
            Err(fault) => {
                let why = format!("cwd cannot be used: {fault}");
                self.refuse_cwd(key, &why);
            }
        }
    }

    /// All its folders are known.
    pub(super) fn rooted(&mut self, key: RequestKey, cwd: &str) {
        self.read_project(key, cwd);
        let new = |opening: &Opening| matches!(opening.how, How::New(_));
        if self.openings.get(&key).is_some_and(new) {
            self.lock_new(key);
        }
    }

    fn refuse_cwd(&mut self, key: RequestKey, why: &str) {
        self.refuse_opening(key, refused("cwd_missing", why));
    }

    /// Gives back what was taken for the request, and answers it with an error: by then the session
    /// can be opened by whoever asks next.
    pub(super) fn refuse_opening(&mut self, key: RequestKey, error: RpcError) {
        let Some(opening) = self.openings.remove(&key) else {
            return;
        };
        if let Some(loading) = &opening.loading {
            self.replayed_live(loading);
        }
        let (locks, locked) = match &opening.loading {
            Some(loading) => (loading.is_locking(), loading.locked),
            None => (!opening.locked, opening.locked),
        };
        let Opening {
            how,
            id,
            store,
            store_call,
            ..
        } = opening;
        let call = match (store, store_call) {
            (Some(store), _) => return self.part(store, Parting::Refused(how, error)),
            (None, Some(call)) if locks => Some(call),
            (None, _) if locked => self.unlock(key, &id),
            (None, _) => None,
        };
        match call {
            Some(call) => {
                self.leaving.insert(call, Leaving { how, id, error });
            }
            None => how.refuse(&mut self.side, error),
        }
    }

    fn unlock(&mut self, key: RequestKey, id: &SessionId) -> Option<CallId> {
        let path = self.files(id)?.lock();
        Some(self.start(Owner::Opening(key), Call::Unlock { path }))
    }

    /// A lock came for a session that nobody wants any more, or is given back.
    fn leave(&mut self, key: RequestKey, call: CallId, outcome: Result<Outcome, IoFault>) {
        let Some(leaving) = self.leaving.remove(&call) else {
            return;
        };
        let unlocking = match outcome {
            Ok(Outcome::Locked) => self.unlock(key, &leaving.id),
            Ok(_) | Err(_) => None,
        };
        match unlocking {
            Some(call) => {
                self.leaving.insert(call, leaving);
            }
            None => leaving.how.refuse(&mut self.side, leaving.error),
        }
    }

    /// Takes back a request that the client does not want any more.
    pub(super) fn cancel_opening(&mut self, key: RequestKey) {
        self.refuse_opening(key, RpcError::cancelled());
        self.cancel_listing(key);
    }

    /// The files of a session; none: sessions are not stored.
    pub(super) fn files(&self, id: &SessionId) -> Option<SessionFiles> {
        let home = self.store_home()?;
        Some(SessionFiles::new(home, id.as_str()))
    }

    fn lock_new(&mut self, key: RequestKey) {
        let Some(id) = self.openings.get(&key).map(|opening| opening.id.clone()) else {
            return;
        };
        match self.files(&id) {
            Some(files) => {
                let call = Call::Lock {
                    path: files.lock(),
                    beneath: files.home,
                };
                let call = self.start(Owner::Opening(key), call);
                if let Some(opening) = self.openings.get_mut(&key) {
                    opening.store_call = Some(call);
                }
            }
            None => self.record_header(key, None),
        }
    }

    fn locked_new(&mut self, key: RequestKey, outcome: Result<Outcome, IoFault>) {
        match outcome {
            Ok(Outcome::Locked) => self.look_new(key),
            // Who has it open has made it.
            Ok(_) => self.draw_again(key),
            Err(fault) => self.unsaved_new(key, format!("{fault}")),
        }
    }

    /// Looks whether the id is free: an agent of the same seed may have given it to a session before,
    /// and whatever is written then goes into that one.
    fn look_new(&mut self, key: RequestKey) {
        let id = self.openings.get(&key).map(|opening| &opening.id);
        let Some(files) = id.and_then(|id| self.files(id)) else {
            return;
        };
        let look = Call::ReadAt {
            path: files.transcript(),
            beneath: files.home,
            at: 0,
            max: 1,
        };
        let call = self.start(Owner::Opening(key), look);
        if let Some(opening) = self.openings.get_mut(&key) {
            opening.locked = true;
            opening.store_call = Some(call);
        }
    }

    fn looked_new(&mut self, key: RequestKey, outcome: Result<Outcome, IoFault>) {
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        let id = opening.id.clone();
        let free = match outcome {
            Ok(Outcome::Part(part)) => Ok(part.size == 0 && part.bytes.is_empty()),
            Ok(_) => Ok(false),
            Err(fault) if fault.kind == IoKind::NotFound => Ok(true),
            Err(fault) => Err(format!("{fault}")),
        };
        if free == Ok(true) {
            let files = self.files(&id);
            return self.record_header(key, files);
        }
        opening.locked = false;
        if let Some(files) = self.files(&id) {
            let path = files.lock();
            self.start(Owner::Nobody, Call::Unlock { path });
        }
        match free {
            Ok(_) => self.draw_again(key),
            Err(why) => self.unsaved_new(key, why),
        }
    }

    /// An id that no open session has: one that was loaded may be of the same seed.
    fn draw_id(&mut self) -> SessionId {
        loop {
            let id = SessionId::v4(self.random());
            if self.side.find_session(&id).is_none() {
                return id;
            }
        }
    }

    /// The id that was drawn is that of another session.
    fn draw_again(&mut self, key: RequestKey) {
        // The next numbers of this seed may be taken as well, those of another stream hardly are.
        let clock = self.unix_ms().unwrap_or(0);
        self.random.set_stream(clock);
        let id = self.draw_id();
        let most = self.config.limits.max_taken_ids;
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        if opening.taken >= most {
            let why = "no id is free for a new session: the agent's seed was used before";
            return self.refuse_opening(key, RpcError::internal(why));
        }
        opening.taken += 1;
        let old = core::mem::replace(&mut opening.id, id);
        let text = format!("another session has the id {old}: the agent's seed was used before");
        self.report(Level::Warn, text);
        self.lock_new(key);
    }

    fn unsaved_new(&mut self, key: RequestKey, why: String) {
        if let Some(opening) = self.openings.get_mut(&key) {
            opening.unsaved = Some(why);
        }
        self.record_header(key, None);
    }

    /// Writes the first records of a new session, to its files or to memory.
    fn record_header(&mut self, key: RequestKey, files: Option<SessionFiles>) {
        let now = self.unix_ms().unwrap_or(0);
        let Some(opening) = self.openings.get(&key) else {
            return;
        };
        let mut summary = Summary::new(opening.id.as_str(), &opening.cwd, now);
        let directories = opening.roots.asked.clone();
        summary.directories.clone_from(&directories);
        let header = Record::Session(self.header(&opening.id, &opening.cwd));
        let options = opening.axes.record();
        let stored = match files {
            Some(files) => Stored::on_disk(files, summary, 0, false),
            None => Stored::in_memory(summary, self.config.limits.max_kept),
        };
        let store = self.add_stored(stored);
        if let Some(opening) = self.openings.get_mut(&key) {
            opening.store = Some(store);
        }
        // Nothing has to last yet: an empty session that a loss of power takes is no loss.
        if let Some(stored) = self.stores.get_mut(&store) {
            stored.journal.push(Some(now), &header, false);
            if !directories.is_empty() {
                let roots = Record::Roots { directories };
                stored.journal.push(Some(now), &roots, false);
            }
            stored
                .journal
                .push(Some(now), &Record::Options(options), false);
        }
        self.save(store);
        let place = self
            .stores
            .get(&store)
            .map_or(0, |stored| stored.journal.place());
        self.when_safe(store, place, Then::Open(key));
    }

    /// What a session says of itself first.
    pub(super) fn header(&self, id: &SessionId, cwd: &str) -> Header {
        let identity = &self.config.identity;
        Header {
            v: VERSION,
            id: id.as_str().into(),
            cwd: cwd.into(),
            created: self.unix_ms().unwrap_or(0),
            agent: format!("{} {}", identity.name, identity.version),
        }
    }

    /// The first records are written, or cannot be.
    pub(super) fn stored_header(&mut self, key: RequestKey) {
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        opening.recorded = true;
        match opening.how {
            How::New(_) => self.open_when_ready(key),
            How::Load(_) | How::Resume(_) => self.replay_live(key),
        }
    }

    fn read_project(&mut self, key: RequestKey, root: &str) {
        for (at, name) in PROJECT_FILES.iter().enumerate() {
            let call = Call::Read {
                path: format!("{root}/{name}"),
                beneath: Some(root.into()),
                max: self.config.limits.max_file,
            };
            let id = self.start(Owner::Opening(key), call);
            if let Some(opening) = self.openings.get_mut(&key) {
                opening.reading.insert(id, at);
                opening.project.push(None);
            }
        }
        if let Some(opening) = self.openings.get_mut(&key) {
            opening.scan = Some(Scan::new(root, self.config.host.home.as_deref()));
            self.scan_opening(key);
        }
    }

    /// Looks for commands and skills.
    fn scan_opening(&mut self, key: RequestKey) {
        let limits = &self.config.limits;
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        if let Some(scan) = opening.scan.take_if(|scan| scan.is_over()) {
            opening.shelf = scan.into_shelf(limits);
            return self.open_when_ready(key);
        }
        let calls = opening.scan.as_ref().map(|scan| scan.calls(limits));
        for (at, call) in calls.unwrap_or_default() {
            let id = self.start(Owner::Opening(key), call);
            let scan = self.openings.get_mut(&key).and_then(|it| it.scan.as_mut());
            if let Some(scan) = scan {
                scan.opened(at, id);
            }
        }
    }

    /// Goes on when all that was asked for is there.
    fn open_when_ready(&mut self, key: RequestKey) {
        let Some(opening) = self.openings.get(&key) else {
            return;
        };
        if !opening.reading.is_empty() || opening.scan.is_some() || opening.root.is_none() {
            return;
        }
        match opening.how {
            How::New(_) if opening.recorded => self.open(key),
            How::New(_) => {}
            How::Load(_) | How::Resume(_) => self.read_transcript(key),
        }
    }

    fn open(&mut self, key: RequestKey) {
        match self.make_engine(key) {
            Ok(engine) => self.answer_opened(key, engine),
            Err(error) => self.refuse_opening(key, error),
        }
    }

    /// The session exists: its answer goes out before anything else of it.
    pub(super) fn answer_opened(&mut self, key: RequestKey, mut engine: Engine) {
        // Others may have become known since it was made: a long history takes its time to be read.
        engine.set_secrets(self.known.secrets().clone());
        let Some(opening) = self.openings.remove(&key) else {
            return;
        };
        let options = self.options(&opening.axes);
        let modes = super::standing::modes(opening.axes.mode);
        let resumed = matches!(opening.how, How::Resume(_));
        let (status, notes) = opening
            .loading
            .map(|loading| (loading.status, loading.notes))
            .unwrap_or_default();
        let session = opening
            .how
            .open(&mut self.side, &opening.id, modes, options);
        // The records of a session, in memory or not, are there since its first steps.
        let (Some(session), Some(store)) = (session, opening.store) else {
            if let Some(store) = opening.store {
                self.part(store, Parting::Left);
            }
            return;
        };
        let mut titled = false;
        if let Some(stored) = self.stores.get_mut(&store) {
            stored.session = Some(session);
            titled = !stored.summary.title.is_empty();
        }
        let root = opening.root.unwrap_or_else(|| opening.cwd.clone());
        if let Some(why) = opening.unsaved {
            let text = format!("the session {} is not saved: {why}", opening.id);
            self.report(Level::Error, text);
            if let Some(stored) = self.stores.get_mut(&store) {
                stored.unsaved = Some(why);
            }
        }
        self.sessions.insert(
            session,
            Box::new(Session {
                id: opening.id,
                cwd: opening.cwd,
                root,
                directories: Directories {
                    asked: opening.roots.asked,
                    added: Vec::new(),
                },
                axes: opening.axes,
                prompt: opening.prompt,
                engine,
                store,
                status,
                tells: super::standing::wants_status(self.side.client()),
                drifted: false,
                turn: None,
                cancelled: false,
                patience: None,
                command: false,
                reloading: false,
                reloaded: None,
                refreshing: Default::default(),
                shelf: opening.shelf,
                untold: false,
                scan: None,
                calling: None,
                decided: Default::default(),
                preparing: None,
                outbox: Default::default(),
                replaying: 0,
                asks: BTreeMap::new(),
                editor: Default::default(),
                unread: 0,
                titled,
                queued: false,
                servers: Default::default(),
                timer: None,
            }),
        );
        // A load has shown them in their place.
        for text in notes.into_iter().filter(|_| resumed) {
            if let Some(mut session) = self.side.session(session) {
                let chunk = ContentChunk::new(ContentBlock::text(text));
                session.notify(&SessionUpdate::AgentMessageChunk(chunk));
            }
        }
        self.announce_inbox(session);
        self.enqueue(session);
        self.tell_commands(session);
        self.tell_left_out(session);
        self.tell_home_within(session);
        self.tell_usage(session);
        self.take_servers(session, &opening.servers);
    }
}
