//! Names for things inside one run. Local handles are counted and never reused; what goes over
//! the wire is another type.

use core::fmt;

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// The handle with this number.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The number.
            pub const fn number(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

handle! {
    /// One call of the system-call table, from `Start` to its last news.
    CallId
}
handle! {
    /// One session on one connection, from its opening to its closing.
    SessionKey
}
handle! {
    /// One turn, from the admission of its prompt to the prompt's answer.
    TurnKey
}
handle! {
    /// One request of ours to the peer, from sending it to its settlement.
    AskId
}

/// Hands out numbers, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counter(u64);

impl Counter {
    /// Goes on behind `number`, if it is not there yet. A number that no count comes to is damage,
    /// and ignored.
    pub fn skip(&mut self, number: u64) {
        if number <= u64::MAX / 2 {
            self.0 = self.0.max(number);
        }
    }

    /// Leaves out so many numbers.
    pub fn leap(&mut self, numbers: u32) {
        self.0 += u64::from(numbers);
    }

    /// The next number, from 1.
    #[expect(
        clippy::should_implement_trait,
        reason = "an endless source is no iterator"
    )]
    pub fn next(&mut self) -> u64 {
        // 2^64 steps do not happen in one run.
        self.0 += 1;
        self.0
    }
}
