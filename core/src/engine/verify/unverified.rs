//! Whether what a turn wrote was verified, and what follows if not. Pure.

use alloc::string::String;

use super::Verifier;
use crate::settings::PauseUnverified;

/// What was written and not verified since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unverified {
    /// Something was written since the last verification that succeeded.
    open: bool,
    /// Something was written since [`begin_turn`](Self::begin_turn).
    wrote: bool,
    /// The last verification after that failed: its command line.
    failed: Option<String>,
}

impl Unverified {
    /// A turn begins: what was left open before it is no fault of it.
    pub fn begin_turn(&mut self) {
        self.wrote = false;
    }

    /// A call is over: whether it wrote files, and what it ran to its end. The same live and from the
    /// records of a session.
    pub fn take(&mut self, verifier: &Verifier, wrote: bool, ran: Option<&str>, ok: bool) {
        if wrote {
            self.wrote();
        }
        if let Some(line) = ran.filter(|line| verifier.verifies(line)) {
            self.verified(line, ok);
        }
    }

    /// Files were written.
    pub fn wrote(&mut self) {
        self.open = true;
        self.wrote = true;
        self.failed = None;
    }

    /// A command line that verifies ran to its end.
    pub fn verified(&mut self, line: &str, ok: bool) {
        if ok {
            *self = Self {
                wrote: self.wrote,
                ..Self::default()
            };
        } else if self.open {
            self.failed = Some(line.into());
        }
    }

    /// Whether something was written since the last verification that succeeded, in whatever turn.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Why the turn counts as paused, if it wrote something that was not verified after it.
    pub fn reason(&self) -> Option<String> {
        (self.open && self.wrote).then(|| self.why())
    }

    /// What is missing, in words.
    pub fn why(&self) -> String {
        match &self.failed {
            Some(line) => alloc::format!(
                "files were changed, and the check after that failed: {}",
                line.lines().next().unwrap_or_default()
            ),
            None => "files were changed, and no test, check or build succeeded after that".into(),
        }
    }
}

/// Whether a turn that wrote something unverified counts as paused.
pub const fn pauses(when: PauseUnverified, delivery: bool, goal: bool) -> bool {
    match when {
        PauseUnverified::Always => true,
        PauseUnverified::Delivery => delivery || goal,
        PauseUnverified::Never => false,
    }
}
