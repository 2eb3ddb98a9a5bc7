//! What one session may do now: the inputs of the one decision, kept together.

use crate::limits::Limits;
use crate::permission::{
    Action, Ceiling, Gate, Grant, Grants, PermissionMode, Posture, Rules, Verdict, decide,
};

/// The posture, rules and grants of one session.
#[derive(Clone, Debug)]
pub struct Authority {
    mode: PermissionMode,
    posture: Posture,
    /// A plan is being made: nothing is written or run until it is approved.
    planning: bool,
    rules: Rules,
    grants: Grants,
}

impl Authority {
    /// Where a new session starts.
    pub fn new(mode: PermissionMode, rules: Rules, limits: &Limits) -> Self {
        Self {
            mode,
            posture: mode.start,
            planning: false,
            rules,
            grants: Grants::new(limits.max_grants),
        }
    }

    /// The posture that is in force: what was chosen, met with the ceiling.
    pub fn posture(&self) -> Posture {
        self.mode.ceiling.clip(self.posture)
    }

    /// What was given by the flag.
    pub fn mode(&self) -> PermissionMode {
        self.mode
    }

    /// What the person allowed for this session.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    pub(super) fn set_posture(&mut self, posture: Posture) {
        self.posture = posture;
    }

    /// Whether a plan is being made.
    pub fn is_planning(&self) -> bool {
        self.planning
    }

    /// Plan mode begins or ends. While it is on everything that writes or runs is denied, whatever
    /// the posture, the rules and the grants.
    pub fn set_planning(&mut self, on: bool) {
        self.planning = on;
    }

    /// What a subagent may do: what may be done here, and nothing above `most`.
    pub(super) fn narrowed(&self, most: Posture) -> Self {
        let mut narrow = self.clone();
        narrow.mode.ceiling = narrow.mode.ceiling.meet(Ceiling::at(most));
        narrow
    }

    /// Takes over what the person allowed there.
    pub(super) fn learn(&mut self, from: &Self) {
        self.grants = from.grants.clone();
    }

    /// The rules, which `/reload` reads again.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(super) fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    pub(super) fn revoke(&mut self, grant: &Grant) -> bool {
        self.grants.revoke(grant)
    }

    pub(super) fn grant(&mut self, grant: Grant) {
        // With too many grants the call is allowed once, and asked again.
        self.grants.add(grant);
    }

    /// The one decision.
    pub fn decide(&self, action: &Action) -> Verdict {
        decide(
            action,
            &Gate {
                posture: self.posture,
                ceiling: self.mode.ceiling,
                accept_edits: self.mode.accept_edits,
                planning: self.planning,
                rules: &self.rules,
                grants: &self.grants,
            },
        )
    }
}
