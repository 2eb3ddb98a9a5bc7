//! `session/new`: what has to be known before a session exists. Refuses as a whole: nothing a
//! client asked for is ignored.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::options::Axes;
use super::{Agent, Owner, models};
use crate::call::{Call, FileKind, News, Outcome};
use crate::engine::{
    Authority, Brain, Detail, Engine, MAX_PROJECT_BYTES, PROJECT_FILES, ProjectFile, Setup,
    system_prompt,
};
use crate::error::IoKind;
use crate::ids::CallId;
use crate::permission::Rules;
use crate::protocol::Asked;
use crate::protocol::methods::NewSession;
use crate::protocol::schema::{NewSessionRequest, NewSessionResponse, SessionId};
use crate::settings::Settings;
use crate::tools::Workspace;
use crate::wire::text::cut;
use crate::wire::{RequestKey, RpcError};

/// A `session/new` that is not answered yet.
pub(super) struct Opening {
    asked: Asked<NewSession>,
    cwd: String,
    axes: Axes,
    root: Option<String>,
    /// Project files being read, by the place they have in the prompt.
    reading: BTreeMap<CallId, usize>,
    project: Vec<Option<ProjectFile>>,
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

impl Agent {
    pub(super) fn new_session(&mut self, asked: Asked<NewSession>, request: NewSessionRequest) {
        match self.check_new(&request) {
            Err(error) => self.side.answer(asked, Err(error)),
            Ok(axes) => {
                let key = asked.key();
                let path = request.cwd.clone();
                self.openings.insert(
                    key,
                    Opening {
                        asked,
                        cwd: request.cwd,
                        axes,
                        root: None,
                        reading: BTreeMap::new(),
                        project: Vec::new(),
                    },
                );
                self.start(Owner::Opening(key), Call::Resolve { path });
            }
        }
    }

    fn check_new(&self, request: &NewSessionRequest) -> Result<Axes, RpcError> {
        if !is_absolute(&request.cwd) {
            return Err(refused("cwd_not_absolute", "cwd must be an absolute path"));
        }
        if !request.mcp_servers.is_empty() {
            return Err(refused(
                "mcp_unsupported",
                "mcpServers must be empty: this version does not connect to MCP servers yet",
            ));
        }
        if !request.additional_directories.is_empty() {
            return Err(refused(
                "acp.additional_directories.disabled",
                "additionalDirectories must be empty: it is not advertised",
            ));
        }
        if request.system_prompt.is_some() {
            return Err(RpcError::invalid_params("systemPrompt is not advertised"));
        }
        let model = self.usable_model()?;
        Ok(Axes {
            model,
            effort: None,
            preset: self.config.preset,
            posture: self.config.permission_mode.start,
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
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        let outcome = match news {
            News::Done(outcome) => Ok(outcome),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        if let Some(at) = opening.reading.remove(&id) {
            if let Ok(Outcome::Read(contents)) = outcome {
                let text = String::from_utf8_lossy(&contents.bytes).into_owned();
                opening.project[at] = Some(ProjectFile {
                    path: PROJECT_FILES[at].into(),
                    text,
                });
            }
            if opening.reading.is_empty() {
                self.open(key);
            }
            return;
        }
        match outcome {
            Ok(Outcome::Resolved(found)) if found.kind == FileKind::Directory => {
                opening.root = Some(found.real.clone());
                self.read_project(key, &found.real);
            }
            Ok(_) => self.refuse_opening(key, "cwd is not a directory"),
            Err(fault) if fault.kind == IoKind::NotFound => {
                self.refuse_opening(key, "cwd does not exist");
            }
            Err(fault) => {
                let why = format!("cwd cannot be used: {fault}");
                self.refuse_opening(key, &why);
            }
        }
    }

    fn refuse_opening(&mut self, key: RequestKey, why: &str) {
        if let Some(opening) = self.openings.remove(&key) {
            self.side
                .answer(opening.asked, Err(refused("cwd_missing", why)));
        }
    }

    /// Takes back a `session/new` that the client does not want any more.
    pub(super) fn cancel_opening(&mut self, key: RequestKey) {
        if let Some(opening) = self.openings.remove(&key) {
            self.side.answer(opening.asked, Err(RpcError::cancelled()));
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

    fn open(&mut self, key: RequestKey) {
        let Some(opening) = self.openings.remove(&key) else {
            return;
        };
        let Opening {
            asked,
            cwd,
            axes,
            root,
            project,
            ..
        } = opening;
        // The root was resolved before the project's files were read.
        let root = root.unwrap_or_else(|| cwd.clone());
        let (rules, brain) = match (self.rules(), self.brain(&axes)) {
            (Ok(rules), Ok(brain)) => (rules, brain),
            (Err(why), _) => return self.side.answer(asked, Err(refused("bad_rules", &why))),
            (_, Err(why)) => {
                return self
                    .side
                    .answer(asked, Err(auth_required(&axes.model, &why)));
            }
        };
        let id = SessionId::v4(self.random());
        let setup = Setup {
            brain,
            system: system_prompt(
                match axes.preset {
                    super::Preset::Light => Detail::Short,
                    super::Preset::Balanced => Detail::Full,
                    super::Preset::Delivery => Detail::Verified,
                },
                &self.config.host,
                &cwd,
                &bounded(project),
            ),
            workspace: {
                let mut workspace = Workspace::new(
                    cwd.clone(),
                    Vec::from([root.clone()]),
                    self.config.host.clone(),
                    self.config.limits.clone(),
                );
                workspace.rules = rules.clone();
                workspace
            },
            authority: Authority::new(self.config.permission_mode, rules, &self.config.limits),
            light: axes.preset == super::Preset::Light,
            max_steps: self
                .config
                .max_steps
                .unwrap_or(self.config.limits.max_steps),
            context_window: context_window(&self.config.settings, &axes.model),
            jitter: self.jitter(),
        };
        let engine = Engine::new(setup, &self.config.limits);
        let mut response = NewSessionResponse::new(id.clone());
        response.config_options = Some(self.options(&axes));
        let Some(session) = self.side.open(asked, response) else {
            return;
        };
        self.sessions.insert(
            session,
            Box::new(super::session::Session {
                id,
                root,
                axes,
                engine,
                turn: None,
                preparing: None,
                outbox: Default::default(),
                asks: BTreeMap::new(),
                unread: 0,
                titled: false,
                queued: false,
                timer: None,
            }),
        );
    }

    fn rules(&self) -> Result<Rules, String> {
        Rules::parse(
            &self.config.settings.permissions,
            self.config.host.user_home.as_deref(),
        )
        .map_err(|error| format!("{error}"))
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
