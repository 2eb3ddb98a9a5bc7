//! Opening a session: what has to be known before it exists. Refuses as a whole: nothing a client
//! asked for is ignored.
//!
//! | step | `session/new` | `session/load`, `session/resume` |
//! | --- | --- | --- |
//! | 1 | the working directory is resolved | the transcript's head is read, the lock is taken |
//! | 2 | the project's files are read, the lock is taken | the working directory is resolved, the project's files are read |
//! | 3 | the first records are written | the transcript is read, and replayed by a load |
//! | 4 | the answer | what broke off is mended; the answer |

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::loading::Loading;
use super::options::Axes;
use super::saving::{Parting, StoreKey, Stored, Then};
use super::session::Session;
use super::{Agent, Level, Owner, Preset, models};
use crate::call::{Call, FileKind, News, Outcome};
use crate::engine::record::{Header, Record, VERSION};
use crate::engine::{
    Authority, Brain, Detail, Engine, MAX_PROJECT_BYTES, PROJECT_FILES, ProjectFile, Setup,
    Verifier, system_prompt,
};
use crate::error::{IoFault, IoKind};
use crate::ids::CallId;
use crate::permission::Rules;
use crate::protocol::Asked;
use crate::protocol::methods::{LoadSession, NewSession, ResumeSession};
use crate::protocol::schema::{
    LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse, ResumeSessionResponse,
    SessionId, SystemPrompt,
};
use crate::settings::Settings;
use crate::store::{SessionFiles, Summary};
use crate::tools::Workspace;
use crate::wire::text::cut;
use crate::wire::{RequestKey, RpcError};

/// A request that opens a session and is not answered yet.
pub(super) struct Opening {
    pub(super) how: How,
    pub(super) id: SessionId,
    pub(super) cwd: String,
    pub(super) axes: Axes,
    root: Option<String>,
    /// Project files being read, by the place they have in the prompt.
    reading: BTreeMap<CallId, usize>,
    project: Vec<Option<ProjectFile>>,
    /// The call for its lock, or for its transcript.
    pub(super) store_call: Option<CallId>,
    pub(super) store: Option<StoreKey>,
    /// Its first records are written.
    recorded: bool,
    /// Why it is not stored, though it should be.
    unsaved: Option<String>,
    /// What is loaded of it.
    pub(super) loading: Option<Box<Loading>>,
}

/// Which request opens it.
pub(super) enum How {
    New(Asked<NewSession>),
    Load(Asked<LoadSession>),
    Resume(Asked<ResumeSession>),
}

#[derive(Serialize)]
struct Code<'a> {
    code: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AuthRequired<'a> {
    code: &'a str,
    model: &'a str,
    how_to: &'a str,
}

/// −32602 with a code.
pub(super) fn refused(code: &str, message: &str) -> RpcError {
    RpcError::invalid_params(message).with_data(&Code { code })
}

/// −32000: no key, or no model, that can be used.
pub(super) fn auth_required(model: &str, how_to: &str) -> RpcError {
    RpcError::auth_required(how_to).with_data(&AuthRequired {
        code: "auth_required",
        model,
        how_to,
    })
}

impl Opening {
    pub(super) fn new(how: How, id: SessionId, cwd: String, axes: Axes) -> Self {
        Self {
            how,
            id,
            cwd,
            axes,
            root: None,
            reading: BTreeMap::new(),
            project: Vec::new(),
            store_call: None,
            store: None,
            recorded: false,
            unsaved: None,
            loading: None,
        }
    }
}

impl Agent {
    pub(super) fn new_session(&mut self, asked: Asked<NewSession>, request: NewSessionRequest) {
        let NewSessionRequest {
            cwd,
            mcp_servers,
            additional_directories,
            system_prompt,
            ..
        } = request;
        let checked = check_setup(
            &cwd,
            &mcp_servers,
            &additional_directories,
            system_prompt.as_ref(),
        );
        match checked.and_then(|()| self.new_axes()) {
            Err(error) => self.side.answer(asked, Err(error)),
            Ok(axes) => {
                let key = asked.key();
                let id = SessionId::v4(self.random());
                let opening = Opening::new(How::New(asked), id, cwd, axes);
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

    /// What new sessions are set to.
    fn new_axes(&self) -> Result<Axes, RpcError> {
        let model = self.usable_model()?;
        Ok(Axes {
            model,
            effort: None,
            preset: self.config.preset,
            posture: self.config.permission_mode.start,
            mode: Default::default(),
        })
    }

    /// The name of the model that new sessions start with, if it can be used.
    pub(super) fn usable_model(&self) -> Result<String, RpcError> {
        if self.config.script.is_some() {
            return Ok(models::SCRIPT.into());
        }
        let settings = &self.config.settings;
        if let Some(fault) = &settings.fault {
            return Err(auth_required("", fault));
        }
        let asked = self.config.model.as_deref();
        let choice = models::default(settings, asked).map_err(|why| {
            auth_required(
                asked
                    .or(settings.default_model.as_deref())
                    .unwrap_or_default(),
                &why,
            )
        })?;
        match models::how_to(settings, choice.provider) {
            Some(how_to) => Err(auth_required(&choice.name(), &how_to)),
            None => Ok(choice.name()),
        }
    }

    pub(super) fn opening_news(&mut self, key: RequestKey, id: CallId, news: News<'_>) {
        let outcome = match news {
            News::Done(outcome) => Ok(outcome),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        let Some(opening) = self.openings.get_mut(&key) else {
            return self.late_lock(id, outcome);
        };
        if let Some(at) = opening.reading.remove(&id) {
            if let Ok(Outcome::Read(contents)) = outcome {
                let text = String::from_utf8_lossy(&contents.bytes).into_owned();
                opening.project[at] = Some(ProjectFile {
                    path: PROJECT_FILES[at].into(),
                    text,
                });
            }
            return self.open_when_ready(key);
        }
        if opening.store_call == Some(id) {
            opening.store_call = None;
            return match opening.how {
                How::New(_) => self.locked_new(key, outcome),
                How::Load(_) | How::Resume(_) => self.stored_news(key, outcome),
            };
        }
        match outcome {
            Ok(Outcome::Resolved(found)) if found.kind == FileKind::Directory => {
                opening.root = Some(found.real.clone());
                let new = matches!(opening.how, How::New(_));
                self.read_project(key, &found.real);
                if new {
                    self.lock_new(key);
                }
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

    fn refuse_cwd(&mut self, key: RequestKey, why: &str) {
        self.refuse_opening(key, refused("cwd_missing", why));
    }

    /// Answers the request with an error, and gives back what was taken for it.
    pub(super) fn refuse_opening(&mut self, key: RequestKey, error: RpcError) {
        let Some(opening) = self.openings.remove(&key) else {
            return;
        };
        match opening.how {
            How::New(asked) => self.side.answer(asked, Err(error)),
            How::Load(asked) => self.side.answer(asked, Err(error)),
            How::Resume(asked) => self.side.answer(asked, Err(error)),
        }
        if let Some(loading) = &opening.loading {
            self.replayed_live(loading);
        }
        let locked = opening.loading.is_some_and(|loading| loading.locked);
        match opening.store {
            Some(store) => self.part(store, Parting::Left),
            None if locked => {
                if let Some(files) = self.files(&opening.id) {
                    let path = files.lock();
                    self.start(Owner::Nobody, Call::Unlock { path });
                }
            }
            None => {}
        }
        if let Some(id) = opening.store_call {
            // A lock that is taken after all is given back when it comes.
            self.late_locks.insert(id, opening.id);
        }
    }

    /// A lock came for a session that nobody wants any more.
    fn late_lock(&mut self, call: CallId, outcome: Result<Outcome, IoFault>) {
        let Some(id) = self.late_locks.remove(&call) else {
            return;
        };
        if let (Ok(Outcome::Locked), Some(files)) = (outcome, self.files(&id)) {
            let path = files.lock();
            self.start(Owner::Nobody, Call::Unlock { path });
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
        let why = match outcome {
            Ok(Outcome::Locked) => None,
            Ok(_) => Some("its lock is held by another process".into()),
            Err(fault) => Some(format!("{fault}")),
        };
        let files = self
            .openings
            .get(&key)
            .and_then(|opening| self.files(&opening.id));
        match why {
            None => self.record_header(key, files),
            Some(why) => {
                if let Some(opening) = self.openings.get_mut(&key) {
                    opening.unsaved = Some(why);
                }
                self.record_header(key, None);
            }
        }
    }

    /// Writes the first records of a new session, to its files or to memory.
    fn record_header(&mut self, key: RequestKey, files: Option<SessionFiles>) {
        let now = self.unix_ms().unwrap_or(0);
        let Some(opening) = self.openings.get(&key) else {
            return;
        };
        let summary = Summary::new(opening.id.as_str(), &opening.cwd, now);
        let header = Record::Session(self.header(&opening.id, &opening.cwd));
        let options = opening.axes.record();
        let stored = match files {
            Some(files) => Stored::on_disk(files, summary, 0, false),
            None => Stored::in_memory(summary),
        };
        let store = self.add_stored(stored);
        if let Some(opening) = self.openings.get_mut(&key) {
            opening.store = Some(store);
        }
        // Nothing has to last yet: an empty session that a loss of power takes is no loss.
        if let Some(stored) = self.stores.get_mut(&store) {
            stored.journal.push(Some(now), &header, false);
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
    }

    /// Goes on when all that was asked for is there.
    fn open_when_ready(&mut self, key: RequestKey) {
        let Some(opening) = self.openings.get(&key) else {
            return;
        };
        if !opening.reading.is_empty() || opening.root.is_none() {
            return;
        }
        match opening.how {
            How::New(_) if opening.recorded => self.open(key),
            How::New(_) => {}
            How::Load(_) | How::Resume(_) => self.read_transcript(key),
        }
    }

    /// The engine of a session that is being opened.
    pub(super) fn make_engine(&mut self, key: RequestKey) -> Result<Engine, RpcError> {
        let jitter = self.jitter();
        let Some(opening) = self.openings.get_mut(&key) else {
            return Err(RpcError::cancelled());
        };
        let stored = opening.loading.is_some();
        let project = core::mem::take(&mut opening.project);
        let axes = opening.axes.clone();
        let cwd = opening.cwd.clone();
        // It was resolved before the project's files were read.
        let root = opening.root.clone().unwrap_or_else(|| cwd.clone());
        let rules = self.rules().map_err(|why| refused("bad_rules", &why))?;
        let brain = match self.brain(&axes) {
            Ok(brain) => brain,
            // History can be read without a key.
            Err(_) if stored => self.brain_or_nobody(&axes),
            Err(why) => return Err(auth_required(&axes.model, &why)),
        };
        // Patterns of files are meant beneath this session's folders.
        let rules = rules.beneath(&cwd, core::slice::from_ref(&root));
        let setup = Setup {
            brain,
            system: system_prompt(
                match axes.preset {
                    Preset::Light => Detail::Short,
                    Preset::Balanced => Detail::Full,
                    Preset::Delivery => Detail::Verified,
                },
                &self.config.host,
                &cwd,
                &bounded(project),
            ),
            workspace: {
                let mut workspace = Workspace::new(
                    cwd.clone(),
                    Vec::from([root]),
                    self.config.host.clone(),
                    self.config.limits.clone(),
                );
                workspace.rules = rules.clone();
                workspace
            },
            authority: Authority::new(self.config.permission_mode, rules, &self.config.limits),
            light: axes.preset == Preset::Light,
            max_steps: self
                .config
                .max_steps
                .unwrap_or(self.config.limits.max_steps),
            context_window: context_window(&self.config.settings, &axes.model),
            jitter,
            verifier: Verifier::new(&self.config.settings.verification),
            pause_unverified: self.config.settings.pause_unverified,
            delivery: axes.preset == Preset::Delivery,
        };
        Ok(Engine::new(setup, &self.config.limits))
    }

    fn open(&mut self, key: RequestKey) {
        match self.make_engine(key) {
            Ok(engine) => self.answer_opened(key, engine),
            Err(error) => self.refuse_opening(key, error),
        }
    }

    /// The session exists: its answer goes out before anything else of it.
    pub(super) fn answer_opened(&mut self, key: RequestKey, engine: Engine) {
        let Some(opening) = self.openings.remove(&key) else {
            return;
        };
        let options = Some(self.options(&opening.axes));
        let modes = Some(super::standing::modes(opening.axes.mode));
        let status = opening.loading.map(|loading| loading.status);
        let status = status.unwrap_or_default();
        let session = match opening.how {
            How::New(asked) => {
                let mut response = NewSessionResponse::new(opening.id.clone());
                response.modes = modes;
                response.config_options = options;
                self.side.open(asked, response)
            }
            How::Load(asked) => {
                let response = LoadSessionResponse {
                    modes,
                    config_options: options,
                    ..Default::default()
                };
                self.side.open(asked, response)
            }
            How::Resume(asked) => {
                let response = ResumeSessionResponse {
                    modes,
                    config_options: options,
                    ..Default::default()
                };
                self.side.open(asked, response)
            }
        };
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
                axes: opening.axes,
                engine,
                store,
                status,
                tells: super::standing::wants_status(self.side.client()),
                drifted: false,
                turn: None,
                cancelled: false,
                preparing: None,
                outbox: Default::default(),
                replaying: 0,
                asks: BTreeMap::new(),
                unread: 0,
                titled,
                queued: false,
                timer: None,
            }),
        );
        self.announce_inbox(session);
        self.enqueue(session);
        self.tell_usage(session);
    }

    fn rules(&self) -> Result<Rules, String> {
        Rules::parse(
            &self.config.settings.permissions,
            self.config.host.user_home.as_deref(),
        )
        .map_err(|error| format!("{error}"))
    }

    /// Who answers for these axes, or that nobody does.
    pub(super) fn brain_or_nobody(&self, axes: &Axes) -> Brain {
        self.brain(axes).unwrap_or_else(|why| {
            let why = self.usable_model().err().map_or(why, |error| error.message);
            Brain::Nobody(why)
        })
    }

    /// Who answers for these axes. Fails if the model is not configured any more.
    pub(super) fn brain(&self, axes: &Axes) -> Result<Brain, String> {
        match &self.config.script {
            Some(script) if axes.model == models::SCRIPT => {
                Ok(Brain::Script(Box::new(script.answers(&self.config.limits))))
            }
            Some(_) | None => {
                let choice = models::find(&self.config.settings, &axes.model)?;
                Ok(Brain::Endpoint(Box::new(
                    choice.endpoint(axes.effort.as_deref()),
                )))
            }
        }
    }
}

/// Whether a session may be opened like this.
pub(super) fn check_setup(
    cwd: &str,
    servers: &[McpServer],
    directories: &[String],
    prompt: Option<&SystemPrompt>,
) -> Result<(), RpcError> {
    if !is_absolute(cwd) {
        return Err(refused("cwd_not_absolute", "cwd must be an absolute path"));
    }
    if !servers.is_empty() {
        return Err(refused(
            "mcp_unsupported",
            "mcpServers must be empty: this version does not connect to MCP servers yet",
        ));
    }
    if !directories.is_empty() {
        return Err(refused(
            "acp.additional_directories.disabled",
            "additionalDirectories must be empty: it is not advertised",
        ));
    }
    if prompt.is_some() {
        return Err(RpcError::invalid_params("systemPrompt is not advertised"));
    }
    Ok(())
}

/// The size of a model's context, if it is known.
pub(super) fn context_window(settings: &Settings, model: &str) -> Option<u64> {
    models::find(settings, model).ok()?.model.context_window
}

/// The project's files, together no longer than their bound.
fn bounded(project: Vec<Option<ProjectFile>>) -> Vec<ProjectFile> {
    let mut left = MAX_PROJECT_BYTES;
    project
        .into_iter()
        .flatten()
        .map(|mut file| {
            file.text.truncate(cut(&file.text, left).len());
            left -= file.text.len();
            file
        })
        .filter(|file| !file.text.trim().is_empty())
        .collect()
}

/// Lexical and for every platform: `/x`, `C:\x`, `\\server\share`.
pub(super) fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    path.starts_with('/')
        || path.starts_with("\\\\")
        || (bytes.len() >= 3
            && bytes[0].is_ascii_alphabetic()
            && bytes[1] == b':'
            && matches!(bytes[2], b'\\' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_is_lexical_and_knows_every_platform() {
        for path in ["/x", "/", "C:\\x", "c:/x", "\\\\srv\\s"] {
            assert!(is_absolute(path), "{path}");
        }
        for path in ["", "x", "./x", "C:", "C:x", "~", " /x"] {
            assert!(!is_absolute(path), "{path}");
        }
    }

    #[test]
    fn the_projects_files_share_one_bound() {
        let file = |n: usize| {
            Some(ProjectFile {
                path: "A".into(),
                text: "x".repeat(n),
            })
        };
        let kept = bounded(Vec::from([file(MAX_PROJECT_BYTES - 1), None, file(10)]));
        assert_eq!(
            kept.iter().map(|file| file.text.len()).sum::<usize>(),
            MAX_PROJECT_BYTES
        );
    }
}
