//! Why the inbox refuses. The codes are contract, the messages are for people.

use alloc::string::String;

use thiserror::Error;

use super::item::State;

/// Why an operation on the inbox was refused. Nothing was changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// No room for one more item.
    #[error("the inbox holds {max} items already: delete one, or wait until one has run")]
    Full {
        /// How many it may hold.
        max: usize,
    },
    /// No room for so many bytes more.
    #[error("the items of the inbox together must not be longer than {max} bytes")]
    NoRoom {
        /// How many bytes it may hold.
        max: usize,
    },
    /// The item is too long.
    #[error("the item has {bytes} bytes with its references; at most {max} are possible")]
    TooLarge {
        /// How many it has.
        bytes: usize,
        /// How many it may have.
        max: usize,
    },
    /// There is no such item.
    #[error("there is no such item in the inbox")]
    NotFound,
    /// The state of the item does not allow it.
    #[error("not possible while the item is {}", .state.as_str())]
    WrongState {
        /// Its state.
        state: State,
    },
    /// Guidance that the turn has read cannot be taken back.
    #[error("the guidance was already applied")]
    AlreadyApplied,
    /// The inbox is paused.
    #[error("the inbox is paused")]
    Paused,
    /// The idempotency key belongs to other content.
    #[error("the idempotency key was used with other content before")]
    Conflict,
    /// The idempotency key does not have the allowed shape.
    #[error("an idempotency key is 1 to 128 of the characters A-Z a-z 0-9 . _ : -")]
    InvalidKey,
    /// There is no text.
    #[error("the text is empty")]
    Empty,
    /// The inbox cannot be changed.
    #[error("the inbox cannot be changed: {why}")]
    ReadOnly {
        /// Why.
        why: String,
    },
}

impl Refusal {
    /// The code: contract.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Full { .. } | Self::NoRoom { .. } => "inbox_full",
            Self::TooLarge { .. } => "item_too_large",
            Self::NotFound => "item_not_found",
            Self::WrongState { .. } | Self::AlreadyApplied => "wrong_state",
            Self::Paused => "paused",
            Self::Conflict => "idempotency_conflict",
            Self::InvalidKey => "invalid_key",
            Self::Empty => "empty",
            Self::ReadOnly { .. } => "read_only",
        }
    }
}
