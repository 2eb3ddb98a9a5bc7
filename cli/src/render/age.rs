//! How long ago something was, as people say it. Knows no clock.

/// How long `then` is before `now`, both milliseconds since 1970: one word or three.
pub fn ago(now: u64, then: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = now.saturating_sub(then) / 1000;
    let (count, unit) = match seconds {
        0..MINUTE => return "just now".into(),
        MINUTE..HOUR => (seconds / MINUTE, "minute"),
        HOUR..DAY => (seconds / HOUR, "hour"),
        _ if seconds < 14 * DAY => (seconds / DAY, "day"),
        _ if seconds < 60 * DAY => (seconds / (7 * DAY), "week"),
        _ if seconds < 730 * DAY => (seconds / (30 * DAY), "month"),
        _ => (seconds / (365 * DAY), "year"),
    };
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{s} ago")
}

/// Milliseconds since 1970 of a moment in RFC 3339 in UTC, as the agent writes it.
pub fn unix_ms(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(str::parse::<u64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.splitn(3, ':').map(str::parse::<u64>);
    let (hour, minute, second) = (time.next()?.ok()?, time.next()?.ok()?, time.next()?.ok()?);
    let sound = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60
        && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !sound {
        return None;
    }
    let ms: u64 = format!("{fraction:0<3.3}").parse().ok()?;
    // Years are counted from March, so that the leap day is the last of its year.
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = 365 * year + leap_days + (153 * month + 2) / 5 + day - 1;
    // The 1st of January 1970 is this many days after the 1st of March of the year 0.
    let days = days.checked_sub(719_468)?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reasonix_core::time::rfc3339;

    #[test]
    fn ages_are_said_in_the_largest_unit_that_fits() {
        const S: u64 = 1000;
        const D: u64 = 86_400 * S;
        for (age, said) in [
            (0, "just now"),
            (59 * S, "just now"),
            (60 * S, "1 minute ago"),
            (3599 * S, "59 minutes ago"),
            (3600 * S, "1 hour ago"),
            (D, "1 day ago"),
            (13 * D, "13 days ago"),
            (14 * D, "2 weeks ago"),
            (60 * D, "2 months ago"),
            (700 * D, "23 months ago"),
            (730 * D, "2 years ago"),
        ] {
            assert_eq!(ago(5000 * D, 5000 * D - age), said);
        }
        assert_eq!(ago(5, 9), "just now", "a clock that was put back");
    }

    #[test]
    fn what_the_agent_writes_is_read_back() {
        let mut ms = 0;
        while ms < 5_000_000_000_000 {
            assert_eq!(unix_ms(&rfc3339(ms)), Some(ms), "{}", rfc3339(ms));
            // A prime number of milliseconds, a little over 11 days.
            ms += 987_654_323;
        }
        assert_eq!(unix_ms("1970-01-01T00:00:01Z"), Some(1000));
        assert_eq!(unix_ms("1970-01-01T00:00:00.5Z"), Some(500));
        for bad in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-13-01T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:00:00.xZ",
            "1969-12-31T23:59:59Z",
        ] {
            assert_eq!(unix_ms(bad), None, "{bad}");
        }
    }
}
