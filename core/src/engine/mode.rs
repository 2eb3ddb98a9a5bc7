//! How a session works together with the person, and what the model is told of that. The system
//! prompt and the tools stay the same to the byte in every mode, so a mode is told with a message.

use super::goal::{GOAL_NOTE, Opening};

/// How a session works together with the person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// It works, and stops when it needs something.
    #[default]
    Normal,
    /// It looks and proposes; nothing is written or run until the person approves.
    Plan,
    /// It goes on after each answer until the goal is reached or it cannot.
    Goal,
}

impl Mode {
    /// All modes, in the order they are offered.
    pub const ALL: [Self; 3] = [Self::Normal, Self::Plan, Self::Goal];

    /// Its id on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Plan => "plan",
            Self::Goal => "goal",
        }
    }

    /// The mode of this id, exactly.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// What the model is told with a prompt in `mode`, if it was last told of `told`; `opening` is what
/// the prompt means for the goal.
pub(super) fn note(told: Mode, mode: Mode, opening: Opening) -> Option<&'static str> {
    match (told, mode, opening) {
        (_, _, Opening::Set) => Some(GOAL_NOTE),
        (Mode::Normal | Mode::Plan, Mode::Goal, Opening::Continued) => Some(GOAL_NOTE),
        (Mode::Normal | Mode::Goal, Mode::Plan, _) => Some(PLAN),
        (Mode::Plan, Mode::Normal | Mode::Goal, _) => Some(PLAN_OFF),
        (Mode::Goal, Mode::Normal, _) => Some(GOAL_OFF),
        (Mode::Normal, Mode::Normal | Mode::Goal, Opening::None | Opening::Continued)
        | (Mode::Plan, Mode::Plan, _)
        | (Mode::Goal, Mode::Goal, _) => None,
    }
}

/// What the model is told when its plan is approved.
pub(super) const APPROVED: &str = "The plan was approved. Carry it out.";

const PLAN: &str = "[The agent: plan mode is on. Nothing can be written or run until the person \
    has approved a plan. Look at what you need, set the plan with todo_write, say in your answer \
    how you would do it, and end the answer: the person is asked then. If you need to know \
    something first, just ask.]";

const PLAN_OFF: &str = "[The agent: plan mode is off. You can change and run things again.]";

const GOAL_OFF: &str = "[The agent: goal mode is off. There is no goal any more.]";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_told_of_a_mode_once_and_of_every_new_goal() {
        use Mode::{Goal, Normal, Plan};
        for (told, mode, opening, expected) in [
            (Normal, Normal, Opening::None, None),
            (Normal, Plan, Opening::None, Some(PLAN)),
            (Plan, Plan, Opening::None, None),
            (Plan, Normal, Opening::None, Some(PLAN_OFF)),
            (Normal, Goal, Opening::Set, Some(GOAL_NOTE)),
            (Goal, Goal, Opening::Set, Some(GOAL_NOTE)),
            (Plan, Goal, Opening::Set, Some(GOAL_NOTE)),
            (Goal, Goal, Opening::Continued, None),
            (Normal, Goal, Opening::Continued, Some(GOAL_NOTE)),
            (Normal, Goal, Opening::None, None),
            (Goal, Normal, Opening::None, Some(GOAL_OFF)),
            (Goal, Plan, Opening::None, Some(PLAN)),
        ] {
            assert_eq!(note(told, mode, opening), expected, "{told:?} {mode:?}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for mode in Mode::ALL {
            assert_eq!(Mode::named(mode.name()), Some(mode));
        }
        assert_eq!(Mode::named("Plan"), None);
    }
}
