//! What a record is to those who pass it on without a look at what it says: one table, so that a new
//! kind of record has to be given its place in it.

use super::{Author, Extent, Record, User};

/// A line of the table.
#[derive(Clone, Copy)]
struct Facts {
    must_last: bool,
    is_listed: bool,
    shows_model: bool,
    is_seen_live: bool,
}

/// What is remembered, seen when it happens, and safe with what comes after it.
const PLAIN: Facts = Facts {
    must_last: false,
    is_listed: false,
    shows_model: false,
    is_seen_live: true,
};

impl Record {
    /// Whether it must survive a loss of power before anything is built on it: what somebody said is
    /// not said again, and an end is what an answer stands for. What is between is safe with them.
    pub fn must_last(&self) -> bool {
        self.facts().must_last
    }

    /// Whether it changes what a list shows of its session.
    pub fn is_listed(&self) -> bool {
        self.facts().is_listed
    }

    /// Whether it shows that the model was heard: a turn without such a record had no effect.
    pub fn shows_model(&self) -> bool {
        self.facts().shows_model
    }

    /// Whether the client sees it when it is made. What a model says was seen as it came, and what a
    /// person types their client shows by itself.
    pub fn is_seen_live(&self) -> bool {
        self.facts().is_seen_live
    }

    /// The message of a person, if a turn begins with it.
    pub fn begins_turn(&self) -> Option<&User> {
        if let Self::User(user) = self {
            user.from.begins_turn().then_some(user)
        } else {
            None
        }
    }

    fn facts(&self) -> Facts {
        match self {
            Self::User(user) => Facts {
                must_last: true,
                is_listed: user.from.begins_turn(),
                is_seen_live: match user.from {
                    Author::Queue | Author::Guidance => true,
                    Author::Person | Author::Host | Author::Round => false,
                },
                ..PLAIN
            },
            Self::End(_) | Self::Roots { .. } => Facts {
                must_last: true,
                is_listed: true,
                ..PLAIN
            },
            Self::Options(_) | Self::Goal(_) => Facts {
                must_last: true,
                ..PLAIN
            },
            Self::Assistant(answer) => Facts {
                shows_model: match answer.extent {
                    Extent::Whole | Extent::Partial => true,
                    Extent::Dropped => false,
                },
                is_seen_live: false,
                ..PLAIN
            },
            Self::Call { .. } | Self::Result(_) => Facts {
                shows_model: true,
                ..PLAIN
            },
            Self::Command { .. } => Facts {
                is_seen_live: false,
                ..PLAIN
            },
            Self::Session(_)
            | Self::Plan { .. }
            | Self::Note { .. }
            | Self::Summary { .. }
            | Self::Subagent(_)
            | Self::Mended { .. }
            | Self::Unknown => PLAIN,
        }
    }
}
