//! The one decision. Pure.

use alloc::format;
use alloc::string::String;

use super::action::{Access, Action, Target};
use super::grants::{Grant, Grants};
use super::posture::{Ceiling, Posture};
use super::rules::{Covered, Rules};

/// Everything a decision depends on, beside the action.
#[derive(Clone, Copy, Debug)]
pub struct Gate<'a> {
    /// What the session is set to.
    pub posture: Posture,
    /// What it cannot be above.
    pub ceiling: Ceiling,
    /// Whether edits inside the roots are allowed without a card (`acceptEdits`), but for what git
    /// keeps for itself there.
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
        why: String,
    },
    /// The user is asked.
    Ask {
        /// What "always" would grant; none: there is no such option on the card.
        always: Option<Grant>,
        /// For traces and `/permissions`.
        why: String,
    },
    /// It does not run.
    Deny {
        /// For the model and the user.
        why: String,
    },
}

/// Why nothing is written or run while a plan is being made, for the model.
pub const PLANNING: &str = "a plan is being made: nothing is written or run until the person \
    approves it. Look at what you need, set the plan with todo_write, and end your answer: the \
    person is asked then";

/// Decides about one action.
///
/// Never more under a lower posture than under a higher one; never anything that a deny rule
/// covers; never a protected action unasked.
pub fn decide(action: &Action, gate: &Gate<'_>) -> Verdict {
    let denied = gate.rules.denying(action);
    if let Covered::By(rule) = denied {
        return deny(format!("the rule `{rule}` of permissions.deny forbids it"));
    }
    let reads = matches!(action.access, Access::Read(_) | Access::Session);
    if gate.planning && !reads && !action.protected {
        return deny(PLANNING.into());
    }
    let posture = gate.ceiling.clip(gate.posture);
    if posture == Posture::ReadOnly && !reads {
        return deny("the session is read-only: nothing that writes or runs is allowed".into());
    }
    let told_to_ask = match (gate.rules.asking(action), denied) {
        (Covered::By(rule), _) => Some(format!("the rule `{rule}` says to ask")),
        (Covered::Perhaps(rule), _) | (Covered::No, Covered::Perhaps(rule)) => Some(format!(
            "it cannot be read whether the rule `{rule}` is about it"
        )),
        (Covered::No, Covered::No | Covered::By(_)) => None,
    };
    if action.protected || (told_to_ask.is_some() && posture < Posture::Yolo) {
        let why = told_to_ask.unwrap_or_else(|| "it always asks".into());
        return if posture > Posture::DontAsk {
            Verdict::Ask { always: None, why }
        } else {
            deny(format!(
                "{why}, and under the posture {posture} nobody is asked"
            ))
        };
    }
    if let Some(why) = covering(action, gate) {
        return Verdict::Allow { why };
    }
    match posture {
        Posture::ReadOnly | Posture::DontAsk => deny(format!(
            "no rule allows it, and under the posture {posture} nobody is asked"
        )),
        Posture::Ask => Verdict::Ask {
            always: Grant::for_action(action),
            why: "no rule and no grant allows it".into(),
        },
        Posture::Auto | Posture::Yolo => Verdict::Allow {
            why: format!("the posture {posture} allows what no rule is about"),
        },
    }
}

fn covering(action: &Action, gate: &Gate<'_>) -> Option<String> {
    match &action.access {
        Access::Session => return Some("it touches the session only".into()),
        Access::Read(targets) if targets.iter().all(|t| t.inside) => {
            return Some("it reads inside the folders of the session".into());
        }
        Access::Edit(targets) if gate.accept_edits && targets.iter().all(Target::is_project) => {
            return Some("edits are accepted".into());
        }
        Access::Read(_)
        | Access::Edit(_)
        | Access::Execute { .. }
        | Access::Network(_)
        | Access::Other => {}
    }
    if let Some(grant) = gate.grants.covering(action) {
        return Some(format!("{grant} was allowed for this session"));
    }
    let rule = gate.rules.allowing(action)?;
    Some(format!("the rule `{rule}` allows it"))
}

fn deny(why: String) -> Verdict {
    Verdict::Deny { why }
}

#[cfg(test)]
mod tests;
