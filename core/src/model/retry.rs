//! When an attempt is made again, and after what pause: pure decisions. Knows no connection.

use core::time::Duration;

use crate::call::Opened;
use crate::limits::Limits;

/// Why an attempt failed, as far as another one could help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// No connection, or it broke before the head of the answer.
    Network,
    /// The provider refused with this status.
    Status(u16),
    /// Silence.
    Timeout,
    /// The answer broke off after its head.
    Cut,
}

/// What is left of the repeats of one answer.
#[derive(Clone, Debug)]
pub(super) struct Retries {
    before_bytes: u32,
    cuts: u32,
    timeouts: u32,
    made: u32,
    random: u64,
    first: Duration,
    longest: Duration,
    longest_asked: Duration,
}

/// Pauses are spread by less than this, so that clients that failed together do not return
/// together.
const JITTER_MS: u64 = 250;

impl Retries {
    /// `max` repeats of what failed before its first byte; fewer of the rest.
    pub(super) fn new(max: u32, seed: u64, limits: &Limits) -> Self {
        Self {
            before_bytes: max,
            cuts: limits.model_repeats.min(max),
            timeouts: max.min(1),
            made: 0,
            random: seed,
            first: limits.retry_pause,
            longest: limits.max_retry_pause,
            longest_asked: limits.max_retry_after,
        }
    }

    /// How many repeats were granted.
    pub(super) fn made(&self) -> u32 {
        self.made
    }

    /// The pause before the next attempt; `None`: there is none. `asked` is what the provider
    /// asked for.
    pub(super) fn next(&mut self, cause: Cause, asked: Option<Duration>) -> Option<Duration> {
        let left = match cause {
            Cause::Network => &mut self.before_bytes,
            Cause::Status(status) if worth_repeating(status) => &mut self.before_bytes,
            Cause::Status(_) => return None,
            Cause::Timeout => &mut self.timeouts,
            Cause::Cut => &mut self.cuts,
        };
        *left = left.checked_sub(1)?;
        // 2^16 times the first pause is beyond any cap.
        let doubled = self.first.saturating_mul(1 << self.made.min(16));
        self.made += 1;
        let jitter = Duration::from_millis(self.draw() % JITTER_MS);
        Some(match asked {
            Some(asked) if !asked.is_zero() => asked.min(self.longest_asked),
            Some(_) | None => doubled.min(self.longest) + jitter,
        })
    }

    /// SplitMix64: enough to spread pauses.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn worth_repeating(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

/// What `Retry-After` asks for (RFC 9110 §10.2.3): seconds, or a date, which is measured from the
/// answer's own `Date`, or else from `wall`, seconds since 1970.
pub(super) fn retry_after(head: &Opened, wall: Option<u64>) -> Option<Duration> {
    let value = head.header("retry-after")?.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let then = http_date(value)?;
    let now = head.header("date").and_then(http_date).or(wall)?;
    Some(Duration::from_secs(then.saturating_sub(now)))
}

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7, the one form that may
/// be sent).
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words
        .next()?
        .parse()
        .ok()
        .filter(|d| (1..=31).contains(d))?;
    let name = words.next()?;
    let month = 1 + MONTHS.iter().position(|month| *month == name)? as u64;
    let year: u64 = words
        .next()?
        .parse()
        .ok()
        .filter(|y| (1970..10_000).contains(y))?;
    let mut clock = words.next()?.split(':').map(str::parse::<u64>);
    let mut part = |below| clock.next()?.ok().filter(|n| *n < below);
    let (hour, minute, second) = (part(24)?, part(60)?, part(61)?);
    (words.next()? == "GMT").then_some(())?;

    // Years begin in March here, so that the leap day is the last one.
    let (years, months) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day
        - 1
        - 719_468;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn retries(max: u32) -> Retries {
        Retries::new(max, 7, &Limits::default())
    }

    #[test]
    fn pauses_double_to_their_cap_and_end_with_the_retries() {
        let mut left = retries(10);
        let pauses: Vec<u64> = core::iter::from_fn(|| left.next(Cause::Network, None))
            .map(|p| p.as_millis() as u64)
            .collect();
        let base = [
            500, 1000, 2000, 4000, 8000, 15000, 15000, 15000, 15000, 15000,
        ];
        assert_eq!(pauses.len(), base.len());
        for (pause, base) in pauses.iter().zip(base) {
            assert!(
                (base..base + JITTER_MS).contains(pause),
                "{pause} for {base}"
            );
        }
        assert!(
            pauses.iter().zip(base).any(|(pause, base)| *pause != base),
            "spread"
        );
    }

    #[test]
    fn only_what_could_pass_later_is_sent_again() {
        for (cause, times) in [
            (Cause::Network, 10),
            (Cause::Status(408), 10),
            (Cause::Status(429), 10),
            (Cause::Status(500), 10),
            (Cause::Status(503), 10),
            (Cause::Status(400), 0),
            (Cause::Status(401), 0),
            (Cause::Status(402), 0),
            (Cause::Status(403), 0),
            (Cause::Status(404), 0),
            (Cause::Status(422), 0),
            (Cause::Timeout, 1),
            (Cause::Cut, 2),
        ] {
            let mut left = retries(10);
            let made = core::iter::from_fn(|| left.next(cause, None))
                .take(99)
                .count();
            assert_eq!(made, times, "{cause:?}");
            assert_eq!(
                retries(0).next(cause, None),
                None,
                "{cause:?} with no retries"
            );
        }
    }

    #[test]
    fn the_pause_a_provider_asks_for_is_kept_up_to_its_bound() {
        for (asked, pause) in [(1, 1000), (30, 30_000), (3600, 60_000)] {
            let got = retries(1).next(Cause::Status(429), Some(Duration::from_secs(asked)));
            assert_eq!(got, Some(Duration::from_millis(pause)));
        }
        let none = retries(1).next(Cause::Status(429), Some(Duration::ZERO));
        assert!(none.is_some_and(|pause| pause >= Duration::from_millis(500)));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let wall = Some(784_111_770);
        for (value, date, wall, seconds) in [
            ("7", None, None, Some(7)),
            (" 0 ", None, None, Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", None, wall, Some(7)),
            (
                "Sun, 06 Nov 1994 08:49:37 GMT",
                Some("Sun, 06 Nov 1994 08:49:30 GMT"),
                None,
                Some(7),
            ),
            (
                "Sun, 06 Nov 1994 08:49:37 GMT",
                Some("Sun, 06 Nov 1994 08:49:35 GMT"),
                wall,
                Some(2),
            ),
            ("Sun, 06 Nov 1994 08:49:00 GMT", None, wall, Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", None, None, None),
            (
                "Thu, 29 Feb 2024 00:00:00 GMT",
                None,
                Some(1_709_164_799),
                Some(1),
            ),
            ("Thu, 01 Jan 1970 00:00:09 GMT", None, Some(0), Some(9)),
            ("soon", None, wall, None),
            ("-1", None, wall, None),
            ("Sun, 99 Nov 1994 08:49:37 GMT", None, wall, None),
            ("Sun, 06 Nov 1994 08:49 GMT", None, wall, None),
        ] {
            let mut headers = Vec::from([("retry-after".into(), value.into())]);
            headers.extend(date.map(|date| ("date".into(), date.into())));
            let head = Opened {
                status: 429,
                headers,
            };
            let want = seconds.map(Duration::from_secs);
            assert_eq!(retry_after(&head, wall), want, "{value} {date:?} {wall:?}");
        }
    }
}
