//! The engine of a session that is being opened: which model answers, under which rules, told what.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::logout::LOGGED_OUT;
use super::super::options::Axes;
use super::super::{Agent, Preset, models, prompts};
use super::{auth_required, refused};
use crate::engine::{
    Authority, Brain, Detail, Engine, MAX_PROJECT_BYTES, ProjectFile, Setup, Verifier,
    system_prompt,
};
use crate::permission::Rules;
use crate::settings::{Permissions, Settings};
use crate::tools::{Web, Workspace};
use crate::wire::text::cut;
use crate::wire::{RequestKey, RpcError};

impl Agent {
    /// What new sessions are set to.
    pub(super) fn new_axes(&self) -> Result<Axes, RpcError> {
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
    pub(in crate::agent) fn usable_model(&self) -> Result<String, RpcError> {
        let settings = &self.config.settings;
        // Not for a script either: rules that cannot be read would not hold.
        if let Some(fault) = &settings.fault {
            return Err(auth_required("", fault));
        }
        if self.config.script.is_some() {
            return Ok(models::SCRIPT.into());
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
            Some(_) if self.logged_out => Err(auth_required(&choice.name(), LOGGED_OUT)),
            Some(how_to) => Err(auth_required(&choice.name(), &how_to)),
            None => Ok(choice.name()),
        }
    }

    /// The engine of a session that is being opened.
    pub(in crate::agent) fn make_engine(&mut self, key: RequestKey) -> Result<Engine, RpcError> {
        let jitter = self.jitter();
        let Some(opening) = self.openings.get_mut(&key) else {
            return Err(RpcError::cancelled());
        };
        let skills = opening.shelf.skills();
        let told = match opening.axes.preset {
            // It has no tool for them.
            Preset::Light => None,
            Preset::Balanced | Preset::Delivery => opening.shelf.skills_text(&self.config.limits),
        };
        let stored = opening.loading.is_some();
        let project = core::mem::take(&mut opening.project);
        let axes = opening.axes.clone();
        let prompt = opening.prompt.clone();
        let cwd = opening.cwd.clone();
        // It was resolved before the project's files were read.
        let id = opening.id.clone();
        let root = opening.root.clone().unwrap_or_else(|| cwd.clone());
        let further = opening.roots.asked.clone();
        let roots: Vec<String> = core::iter::once(root)
            .chain(opening.roots.real.iter().cloned())
            .collect();
        let rules = self.rules().map_err(|why| refused("bad_rules", &why))?;
        let brain = match self.brain(&axes) {
            Ok(brain) => brain,
            // History can be read without a key.
            Err(_) if stored => self.brain_or_nobody(&axes),
            Err(why) => return Err(auth_required(&axes.model, &why)),
        };
        // Patterns of files are meant beneath this session's folders.
        let rules = rules.beneath(&cwd, &roots);
        let setup = Setup {
            session: id.as_str().into(),
            brain,
            system: prompts::applied(
                prompt.as_ref(),
                system_prompt(
                    match axes.preset {
                        Preset::Light => Detail::Short,
                        Preset::Balanced => Detail::Full,
                        Preset::Delivery => Detail::Verified,
                    },
                    &self.config.host,
                    &cwd,
                    &further,
                    self.config.host.sandbox.confines_files(),
                    &bounded(project),
                ) + &told.map_or(String::new(), |told| format!("\n{told}")),
            ),
            workspace: {
                let mut workspace = Workspace::new(
                    cwd.clone(),
                    roots,
                    self.config.host.clone(),
                    self.config.limits.clone(),
                );
                workspace.rules = rules.clone();
                workspace.skills = skills;
                workspace.custom.clone_from(&self.config.tools);
                workspace.sandbox = self.sandbox(&id);
                workspace.web = self.web();
                workspace.secrets = self.known.secrets().clone();
                workspace.closed = self.config.workspace_only;
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

    /// What of the web the tools of sessions may read.
    pub(in crate::agent) fn web(&self) -> Web {
        match (self.config.web, self.config.settings.web_private) {
            (false, _) => Web::Off,
            (true, false) => Web::Public,
            (true, true) => Web::Private,
        }
    }

    /// The rules of the configuration. While that cannot be read, nobody knows what it denies: then
    /// nothing is changed and nothing is run, in sessions that are opened to be read.
    pub(in crate::agent) fn rules(&self) -> Result<Rules, String> {
        let closed = Permissions {
            deny: Vec::from(["Edit", "Bash", "WebFetch"].map(String::from)),
            ..Permissions::default()
        };
        let settings = &self.config.settings;
        let permissions = match settings.fault {
            Some(_) => &closed,
            None => &settings.permissions,
        };
        Rules::parse(permissions, self.config.host.user_home.as_deref())
            .map_err(|error| format!("{error}"))
    }

    /// Who answers for these axes, or that nobody does.
    pub(in crate::agent) fn brain_or_nobody(&self, axes: &Axes) -> Brain {
        let choice = models::find(&self.config.settings, &axes.model);
        if self.logged_out && choice.is_ok_and(|choice| !choice.provider.usable()) {
            return Brain::Nobody(LOGGED_OUT.into());
        }
        self.brain(axes).unwrap_or_else(|why| {
            let why = self.usable_model().err().map_or(why, |error| error.message);
            Brain::Nobody(why)
        })
    }

    /// Who answers for these axes. Fails if the model is not configured any more.
    pub(in crate::agent) fn brain(&self, axes: &Axes) -> Result<Brain, String> {
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
pub(in crate::agent) fn context_window(settings: &Settings, model: &str) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
