//! Time as plain data. Nothing in this crate can read a clock: the driver says what time it is.

pub use core::time::Duration;

/// A moment: how long after an origin that the driver picked once.
///
/// Unlike `std::time::Instant` it can be made from nothing, stored and replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Duration);

impl Instant {
    /// The origin itself.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// The moment `elapsed` after the origin.
    pub const fn since_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The moment `later` after this one; saturates.
    pub const fn plus(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// How long after the origin this is.
    pub const fn elapsed(self) -> Duration {
        self.0
    }
}

/// When a machine wants to be woken if nothing else happens, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    /// The moment.
    pub at: Instant,
    /// The reason; for people and traces, drivers need not look.
    pub why: Timer,
}

impl Deadline {
    /// The earlier of two deadlines, either of which may be absent.
    pub fn earlier(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// Every reason to wake, in one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Timer {
    /// Model text was held back to be joined with more (16 ms).
    Coalesce,
    /// The scripted model pauses.
    Script,
    /// A model attempt is repeated after a pause.
    Retry,
    /// The model has been silent for too long.
    ModelIdle,
    /// A tool reached its own time limit.
    ToolLimit,
    /// The live output of a running command is due.
    LiveOutput,
    /// The editor did not answer in time.
    Editor,
    /// What was aborted did not settle in time.
    CancelGrace,
    /// The end of the connection did not come to rest in time.
    CloseGrace,
    /// An MCP server has a deadline, or is tried again.
    Mcp,
    /// The peer has taken no byte for too long.
    PeerStalled,
    /// An embedder's own timer.
    Embedder,
}

/// A moment in RFC 3339 with milliseconds, in UTC; `unix_ms` since 1970.
pub fn rfc3339(unix_ms: u64) -> alloc::string::String {
    let (seconds, ms) = (unix_ms / 1000, unix_ms % 1000);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years are counted from March, so that the leap day is the last of its year; 400 of them
    // repeat. Day 0 of this count is the 1st of March of the year 0.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let day = day - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = 400 * era + year + u64::from(month <= 2);
    alloc::format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{ms:03}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_never_go_below_zero() {
        let early = Instant::since_start(Duration::from_secs(1));
        let late = early.plus(Duration::from_secs(2));
        assert_eq!(late.since(early), Duration::from_secs(2));
        assert_eq!(early.since(late), Duration::ZERO);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (ms, date) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_709_164_800_001, "2024-02-29T00:00:00.001Z"),
            (1_796_083_199_000, "2026-11-30T23:59:59.000Z"),
            (4_102_444_800_000, "2100-01-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms), date);
        }
    }

    #[test]
    fn the_earlier_deadline_wins_whichever_side_it_is_on() {
        let at = |s| {
            Some(Deadline {
                at: Instant::since_start(Duration::from_secs(s)),
                why: Timer::Script,
            })
        };
        assert_eq!(Deadline::earlier(at(1), at(2)), at(1));
        assert_eq!(Deadline::earlier(at(2), at(1)), at(1));
        assert_eq!(Deadline::earlier(None, at(1)), at(1));
        assert_eq!(Deadline::earlier(None, None), None);
    }
}
