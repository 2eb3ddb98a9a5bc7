//! The one decision. Pure.

use alloc::format;
use alloc::string::String;

use super::action::{Access, Action};
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
        return deny(
            "a plan is being made: nothing is written or run until the person approves it. Look \
             at what you need, set the plan with todo_write, and end your answer: the person is \
             asked then"
                .into(),
        );
    }
    let posture = gate.ceiling.clip(gate.posture);
    if posture == Posture::ReadOnly && !reads {
        return deny("the session is read-only: nothing that writes or runs is allowed".into());
    }
    let told_to_ask = match (gate.rules.asking(action), denied) {
        (Covered::By(rule) | Covered::Perhaps(rule), _) | (Covered::No, Covered::Perhaps(rule)) => {
            Some(rule)
        }
        (Covered::No, Covered::No | Covered::By(_)) => None,
    };
    if action.protected || (told_to_ask.is_some() && posture < Posture::Yolo) {
        return if posture > Posture::DontAsk {
            Verdict::Ask { always: None }
        } else {
            let what = told_to_ask.map_or("it always asks".into(), |rule| {
                format!("the rule `{rule}` says to ask")
            });
            deny(format!(
                "{what}, and under the posture {posture} nobody is asked"
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
        },
        Posture::Auto | Posture::Yolo => Verdict::Allow { why: "posture" },
    }
}

fn covering(action: &Action, gate: &Gate<'_>) -> Option<&'static str> {
    match &action.access {
        Access::Session => return Some("touches the session only"),
        Access::Read(targets) if targets.iter().all(|t| t.inside) => {
            return Some("reads inside the roots");
        }
        Access::Edit(targets) if gate.accept_edits && targets.iter().all(|t| t.inside) => {
            return Some("edits are accepted");
        }
        Access::Read(_)
        | Access::Edit(_)
        | Access::Execute { .. }
        | Access::Network(_)
        | Access::Other => {}
    }
    if gate.grants.covering(action).is_some() {
        return Some("granted for this session");
    }
    gate.rules.allowing(action).map(|_| "rule")
}

fn deny(why: String) -> Verdict {
    Verdict::Deny { why }
}

#[cfg(test)]
mod tests;
