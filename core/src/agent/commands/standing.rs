//! `/status` and `/goal`, in words.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Write as _;

use super::super::{Agent, quote};
use super::prompt_of;
use crate::agent::content::Prompt;
use crate::engine::goal::{Goal, GoalStatus};
use crate::engine::mode::Mode;
use crate::ids::SessionKey;

/// Whether what follows `/goal` is a new goal.
pub(super) fn is_objective(rest: &str) -> bool {
    !matches!(rest, "" | "pause" | "resume" | "clear")
}

impl Agent {
    /// What `/status` says.
    pub(super) fn status_text(&self, key: SessionKey) -> String {
        let Some(session) = self.sessions.get(&key) else {
            return String::new();
        };
        let (axes, engine) = (&session.axes, &session.engine);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Session: {}", session.id.as_str());
        let _ = writeln!(text, "Folder: {}", session.cwd);
        let _ = writeln!(
            text,
            "Model: {}, effort {}",
            axes.model,
            axes.effort.as_deref().unwrap_or("auto")
        );
        let _ = writeln!(text, "Mode: {}", axes.mode.name());
        let _ = writeln!(text, "Preset: {}", axes.preset.name());
        let _ = writeln!(text, "Approvals: {}", engine.authority().posture());
        if !self.config.web {
            let _ = writeln!(text, "Web: off, there are no tools for it (--web off)");
        } else if self.config.settings.web_private {
            let _ = writeln!(text, "Web: private addresses too (allow_private)");
        }
        for root in engine.roots().iter().skip(1) {
            let _ = writeln!(text, "Folder beside it: {root}");
        }
        let confined = self.config.host.sandbox;
        if confined.confines_files() {
            let _ = writeln!(text, "Commands are kept to these folders: {confined}");
            for folder in self.writable() {
                let _ = writeln!(text, "Commands can write in: {folder}");
            }
            if let Some(home) = self.home_within(&session.root) {
                let _ = writeln!(
                    text,
                    "Commands can change the agent's own files, which are in its folder: {home}"
                );
            }
        } else {
            let _ = writeln!(text, "Commands are not confined: {confined}");
        }
        for why in &self.config.settings.not_writable {
            let _ = writeln!(text, "Not writable: {why}");
        }
        if let Some((used, size)) = engine.usage() {
            let _ = writeln!(text, "Context: {used} of {size} tokens");
        }
        if let Some(cost) = quote::cost(session.status.cumulative()) {
            let _ = writeln!(text, "Cost: {} {}", cost.amount.get(), cost.currency);
        }
        if let Some(goal) = engine.goal() {
            let _ = writeln!(text, "{}", goal_text(goal));
        }
        if let Some(why) = engine.paused() {
            let _ = writeln!(text, "Paused: {why}");
        }
        text
    }

    /// What `/goal` says, if no new one is set by it.
    pub(super) fn change_or_show_goal(&mut self, key: SessionKey, rest: &str) -> String {
        let mut result = Ok(());
        match rest {
            "pause" => self.with_engine(key, |engine, cx| result = engine.pause_goal(cx)),
            "resume" => self.with_engine(key, |engine, cx| result = engine.resume_goal(cx)),
            "clear" => {
                if let Err(error) = self.set_axis(key, "mode", Mode::Normal.name()) {
                    return error.message.to_string();
                }
                if let Some(session) = self.sessions.get_mut(&key) {
                    // The client did not ask for it by an option.
                    session.drifted = true;
                    let (store, options) = (session.store, session.axes.record());
                    self.remember_options(store, options);
                }
            }
            _ => {}
        }
        if let Err(error) = result {
            return format!("{error}");
        }
        let goal = self.sessions.get(&key).and_then(|s| s.engine.goal());
        match (goal, rest) {
            (Some(goal), "resume") => {
                format!("{} It goes on with your next prompt.", goal_text(goal))
            }
            (Some(goal), _) => goal_text(goal),
            (None, _) => "There is no goal. Set one with /goal and what is to be reached.".into(),
        }
    }

    /// Makes what follows `/goal` the goal of a turn.
    pub(super) fn set_goal(&mut self, key: SessionKey, typed: Prompt, words: String) -> Prompt {
        // Only a session of a later version refuses it, and that takes no prompts either.
        if self.set_axis(key, "mode", Mode::Goal.name()).is_ok()
            && let Some(session) = self.sessions.get_mut(&key)
        {
            session.drifted = true;
            let (store, options) = (session.store, session.axes.record());
            self.remember_options(store, options);
        }
        let mut prompt = prompt_of(words.clone(), typed);
        prompt.goal = Some(words);
        prompt
    }
}

fn goal_text(goal: &Goal) -> String {
    let status = match goal.status {
        GoalStatus::Running => "runs",
        GoalStatus::Paused => "is paused",
        GoalStatus::Blocked => "is blocked",
        GoalStatus::Complete => "is reached",
    };
    let rounds = if goal.turns == 1 { "round" } else { "rounds" };
    format!(
        "The goal {status} after {} {rounds} and {} tokens: {}",
        goal.turns, goal.tokens, goal.objective
    )
}
