//! What the parent gives an engine while its session lives, and from when on it counts: keys and rules at
//! once, a model and its tools from the next turn on.

use alloc::string::String;
use alloc::vec::Vec;

use super::turn::{Phase, Turn};
use super::{Brain, Context, Engine, Verifier};
use crate::permission::{Grant, Posture, Rules};
use crate::secret::Secrets;
use crate::settings::PauseUnverified;
use crate::tools::{self, Skill, Web};

impl Engine {
    /// Another model from the next turn on. History, grants and everything else stay.
    pub fn set_brain(&mut self, brain: Brain, context_window: Option<u64>) {
        self.next.brain = Some((brain, context_window));
        self.take_next();
    }

    /// Other tools of MCP servers, from the next call of the model on; `prefixes` are what the
    /// names of such tools begin with, known or not.
    pub fn set_external(&mut self, tools: Vec<tools::External>, prefixes: Vec<String>) {
        self.workspace.external = tools;
        self.workspace.external_prefixes = prefixes;
    }

    /// Another set of tools from the next turn on.
    pub fn set_light(&mut self, light: bool) {
        self.next.light = Some(light);
        self.take_next();
    }

    /// A turn goes on with the model and the tools it began with: what the provider has seen stays
    /// the same prefix.
    pub(super) fn take_next(&mut self) {
        if self.turn.is_some() {
            return;
        }
        if let Some((brain, context_window)) = self.next.brain.take() {
            self.brain = brain;
            self.context_window = context_window;
        }
        if let Some(light) = self.next.light.take() {
            self.light = light;
        }
    }

    /// Which commands verify.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Other settings of what verifies, and of when it matters, at once.
    pub fn set_verification(&mut self, verifier: Verifier, pause: PauseUnverified) {
        self.verifier = verifier;
        self.pause_unverified = pause;
    }

    /// Another posture, at once: a card that is open and need not be asked any more is settled as
    /// allowed. A call that runs is not withdrawn.
    pub fn set_posture(&mut self, cx: &mut Context<'_>, posture: Posture) {
        self.authority.set_posture(posture);
        self.recheck(cx);
    }

    /// What may run has changed: so have the cards that are open.
    pub(super) fn recheck(&mut self, cx: &mut Context<'_>) {
        if let Some(Turn {
            phase: Phase::Tools(batch),
            ..
        }) = &mut self.turn
        {
            batch.recheck(cx, &self.authority);
        }
        self.narrow_child(cx);
    }

    /// Other rules, at once: a card that is open is settled if they allow or forbid what it asks.
    pub fn set_rules(&mut self, cx: &mut Context<'_>, rules: Rules) {
        let rules = rules.beneath(&self.workspace.cwd, &self.workspace.roots);
        self.workspace.rules = rules.clone();
        if let Some(child) = self.child_mut() {
            child.workspace.rules = rules.clone();
        }
        self.authority.set_rules(rules);
        self.recheck(cx);
        self.narrow_child(cx);
    }

    /// Whether a file that a person refers to may be read for the model: its real path and the root it is
    /// beneath.
    ///
    /// # Errors
    ///
    /// Why not, for people.
    pub fn readable(
        &self,
        asked: &str,
        it: &crate::call::Resolved,
    ) -> Result<(String, String), String> {
        tools::readable(&self.workspace, asked, it)
    }

    /// Something else of the web may be read from now on. Whether there are tools for it stays as
    /// it is.
    pub fn set_web(&mut self, web: Web) {
        if let Some(child) = self.child_mut() {
            child.set_web(web);
        }
        self.workspace.web = web;
    }

    /// Other folders that commands can write in beside the roots, from the next command on.
    pub fn set_writable(&mut self, folders: Vec<String>) {
        if let Some(child) = self.child_mut() {
            child.set_writable(folders.clone());
        }
        if let Some(sandbox) = &mut self.workspace.sandbox {
            sandbox.writable = folders;
        }
    }

    /// Other keys that nothing of may be shown, from the next call of a tool on.
    pub fn set_secrets(&mut self, secrets: Secrets) {
        if let Some(child) = self.child_mut() {
            child.set_secrets(secrets.clone());
        }
        self.workspace.secrets = secrets;
    }

    /// Other skills than before, at once; the model is told so with the next prompt.
    pub fn set_skills(&mut self, skills: Vec<Skill>, note: String) {
        self.workspace.skills = skills;
        self.note = Some(note);
    }

    /// Takes back what the person allowed for this session. False: it was not there.
    pub fn revoke(&mut self, grant: &Grant) -> bool {
        self.authority.revoke(grant)
    }
}
