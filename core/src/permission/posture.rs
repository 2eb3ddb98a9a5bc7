//! Postures, the ceiling over them, and what `--permission-mode` means. Knows no actions.

use alloc::string::String;
use core::fmt;

use thiserror::Error;

/// How much runs unasked, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Posture {
    /// Nothing that writes or executes runs.
    ReadOnly,
    /// What a rule or a grant allows runs; what would ask is denied.
    DontAsk,
    /// What no rule or grant allows asks.
    Ask,
    /// Nothing asks but what a rule says to ask, and protected decisions.
    Auto,
    /// Nothing asks but protected decisions.
    Yolo,
}

impl Posture {
    /// All of them, lowest first.
    pub const ALL: [Self; 5] = [
        Self::ReadOnly,
        Self::DontAsk,
        Self::Ask,
        Self::Auto,
        Self::Yolo,
    ];

    /// Its value in the `tool_approval` option and in `data.ceiling`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "readOnly",
            Self::DontAsk => "dontAsk",
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Yolo => "yolo",
        }
    }

    /// The posture with this [`name`](Self::name), exactly.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|posture| posture.name() == name)
    }
}

impl fmt::Display for Posture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The highest posture there can be in this process. It can be lowered by [`meet`](Self::meet)
/// and has no other operation that makes one from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ceiling(Posture);

impl Ceiling {
    /// Nothing is above it.
    pub const TOP: Self = Self(Posture::Yolo);

    /// A ceiling at `posture`.
    pub const fn at(posture: Posture) -> Self {
        Self(posture)
    }

    /// The lower of the two.
    #[must_use]
    pub fn meet(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// `wanted`, or the ceiling if that is lower: what holds.
    pub fn clip(self, wanted: Posture) -> Posture {
        self.0.min(wanted)
    }

    /// Whether `wanted` is not above it.
    pub fn admits(self, wanted: Posture) -> bool {
        wanted <= self.0
    }

    /// Where it is.
    pub const fn posture(self) -> Posture {
        self.0
    }
}

/// What `--permission-mode` says. Only the command line can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionMode {
    /// What new sessions start in.
    pub start: Posture,
    /// What no session gets above.
    pub ceiling: Ceiling,
    /// Whether edits inside the roots are allowed without a card.
    pub accept_edits: bool,
    /// Whether the flag was given: only then `readOnly` and `dontAsk` are offered to clients.
    pub given: bool,
}

impl Default for PermissionMode {
    /// Without the flag: sessions start in `ask` and the client may choose up to `yolo`.
    fn default() -> Self {
        Self {
            start: Posture::Ask,
            ceiling: Ceiling::TOP,
            accept_edits: false,
            given: false,
        }
    }
}

impl PermissionMode {
    /// Reads the value of `--permission-mode`: `read-only`, `dontAsk`, `manual` or `ask`, `auto`,
    /// `acceptEdits`, `bypassPermissions`. `plan` is refused with the reason.
    pub fn parse(value: &str) -> Result<Self, ModeError> {
        let (start, accept_edits) = match value {
            "read-only" | "readOnly" => (Posture::ReadOnly, false),
            "dontAsk" => (Posture::DontAsk, false),
            "manual" | "ask" => (Posture::Ask, false),
            "auto" => (Posture::Auto, false),
            "acceptEdits" => (Posture::Ask, true),
            "bypassPermissions" => (Posture::Yolo, false),
            "plan" => return Err(ModeError::Plan),
            other => return Err(ModeError::Unknown(other.into())),
        };
        Ok(Self {
            start,
            ceiling: Ceiling::at(start),
            accept_edits,
            given: true,
        })
    }

    /// The values to offer as `tool_approval`, lowest first: none above the ceiling, and `readOnly`
    /// and `dontAsk` only if the flag was given.
    pub fn offered(self) -> impl Iterator<Item = Posture> {
        Posture::ALL
            .into_iter()
            .filter(move |p| self.ceiling.admits(*p) && (self.given || *p >= Posture::Ask))
    }
}

/// Why a value of `--permission-mode` is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModeError {
    /// `plan` is no ceiling.
    #[error(
        "`plan` is not a permission mode: planning is a mode of a session, chosen by the client; \
         use read-only to let nothing write or run"
    )]
    Plan,
    /// No such value.
    #[error(
        "unknown permission mode `{0}`: use read-only, dontAsk, ask, acceptEdits, auto or \
         bypassPermissions"
    )]
    Unknown(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn meet_is_commutative_associative_idempotent_and_never_raises() {
        let all = Posture::ALL.map(Ceiling::at);
        for a in all {
            assert_eq!(a.meet(a), a);
            assert_eq!(a.meet(Ceiling::TOP), a);
            for b in all {
                assert_eq!(a.meet(b), b.meet(a));
                assert!(a.meet(b).posture() <= a.posture());
                for c in all {
                    assert_eq!(a.meet(b).meet(c), a.meet(b.meet(c)));
                }
            }
        }
    }

    #[test]
    fn a_posture_above_the_ceiling_opens_at_the_ceiling() {
        for ceiling in Posture::ALL {
            for wanted in Posture::ALL {
                let ceiling = Ceiling::at(ceiling);
                let got = ceiling.clip(wanted);
                assert!(ceiling.admits(got));
                assert_eq!(ceiling.admits(wanted), got == wanted);
            }
        }
    }

    #[test]
    fn names_are_read_back() {
        for posture in Posture::ALL {
            assert_eq!(Posture::from_name(posture.name()), Some(posture));
        }
        assert_eq!(Posture::from_name("Ask"), None);
    }

    #[test]
    fn each_permission_mode_means_what_the_flag_promises() {
        #[track_caller]
        fn check(value: &str, start: Posture, accept_edits: bool, offered: &[Posture]) {
            let mode = PermissionMode::parse(value).expect(value);
            assert_eq!(mode.start, start, "{value}");
            assert_eq!(mode.ceiling.posture(), start, "{value}");
            assert_eq!(mode.accept_edits, accept_edits, "{value}");
            assert_eq!(mode.offered().collect::<Vec<_>>(), offered, "{value}");
        }
        use Posture::*;
        check("read-only", ReadOnly, false, &[ReadOnly]);
        check("dontAsk", DontAsk, false, &[ReadOnly, DontAsk]);
        check("manual", Ask, false, &[ReadOnly, DontAsk, Ask]);
        check("ask", Ask, false, &[ReadOnly, DontAsk, Ask]);
        check("acceptEdits", Ask, true, &[ReadOnly, DontAsk, Ask]);
        check("auto", Auto, false, &[ReadOnly, DontAsk, Ask, Auto]);
        check("bypassPermissions", Yolo, false, &Posture::ALL);
        assert_eq!(PermissionMode::parse("plan"), Err(ModeError::Plan));
        assert!(PermissionMode::parse("yolo").is_err());
        let unset = PermissionMode::default();
        assert_eq!(unset.start, Ask);
        assert_eq!(unset.offered().collect::<Vec<_>>(), [Ask, Auto, Yolo]);
    }
}
