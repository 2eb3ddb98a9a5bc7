//! The one decision. Pure.

use alloc::string::String;

use super::action::{Access, Action};
use super::grants::{Grant, Grants};
use super::posture::{Ceiling, Posture};
use super::rules::Rules;

/// Everything a decision depends on, beside the action.
#[derive(Clone, Copy, Debug)]
pub struct Gate<'a> {
    /// What the session is set to.
    pub posture: Posture,
    /// What it cannot be above.
    pub ceiling: Ceiling,
    /// Whether edits inside the roots are allowed without a card (`acceptEdits`).
    pub accept_edits: bool,
    /// Whether a plan is being made: nothing is written or run until it is approved.
    pub planning: bool,
    /// `[permissions]`.
    pub rules: &'a Rules,
    /// What the user allowed for this session.
    pub grants: &'a Grants,
}

/// What may happen to an action.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It runs.
    Allow {
        /// For traces and `/permissions`.
        why: &'static str,
    },
    /// The user is asked.
    Ask {
        /// What "always" would grant; none: there is no such option on the card.
        always: Option<Grant>,
    },
    /// It does not run.
    Deny {
        /// For the model and the user.
        why: String,
    },
}

/// Decides about one action.
pub fn decide(action: &Action, gate: &Gate<'_>) -> Verdict {
    let _ = (action, gate, Access::Session);
    todo!()
}
