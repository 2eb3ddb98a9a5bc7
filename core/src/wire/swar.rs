//! Finding the rare bytes of a JSON string, eight at a time. Knows nothing of JSON's grammar.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The position, from `from` on, of the first byte that cannot stand for itself inside a JSON
/// string (a quote, a backslash, a control character) or, with `SEPARATORS`, that may begin U+2028
/// or U+2029 (0xE2); the length of `bytes` if there is none.
#[inline]
pub(super) fn find_special<const SEPARATORS: bool>(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    // Most runs are short, so the wide steps come only after two narrow ones have found nothing.
    for _ in 0..2 {
        let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else {
            return find_in_tail::<SEPARATORS>(bytes, at);
        };
        let hits = hits::<SEPARATORS>(u64::from_le_bytes(*word));
        if hits != 0 {
            return at + first(hits);
        }
        at += 8;
    }
    find_far::<SEPARATORS>(bytes, at)
}

/// As [`find_special`], for runs that turned out to be long.
#[inline(never)]
fn find_far<const SEPARATORS: bool>(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<64>()) {
        if any::<SEPARATORS, 64>(chunk) {
            break;
        }
        at += 64;
    }
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<16>()) {
        if any::<SEPARATORS, 16>(chunk) {
            break;
        }
        at += 16;
    }
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let hits = hits::<SEPARATORS>(u64::from_le_bytes(*word));
        if hits != 0 {
            return at + first(hits);
        }
        at += 8;
    }
    find_in_tail::<SEPARATORS>(bytes, at)
}

/// Fewer than eight bytes are left.
fn find_in_tail<const SEPARATORS: bool>(bytes: &[u8], from: usize) -> usize {
    let left = bytes.len() - from;
    match bytes.last_chunk() {
        _ if left == 0 => from,
        Some(word) => {
            // The zeros that are shifted in count as control characters: they stop the search.
            let word = u64::from_le_bytes(*word) >> (8 * (8 - left));
            from + first(hits::<SEPARATORS>(word))
        }
        None => bytes[from..]
            .iter()
            .position(|&byte| is_special::<SEPARATORS>(byte))
            .map_or(bytes.len(), |offset| from + offset),
    }
}

const fn is_special<const SEPARATORS: bool>(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\') | (SEPARATORS & (byte == 0xE2))
}

/// Written so that it compiles to vector instructions: no early exit.
fn any<const SEPARATORS: bool, const N: usize>(chunk: &[u8; N]) -> bool {
    chunk
        .iter()
        .fold(false, |any, &byte| any | is_special::<SEPARATORS>(byte))
}

/// The high bit of each byte that is special. Bytes above the lowest hit may be flagged wrongly
/// (a borrow travels upwards), so only the lowest and "none" can be trusted.
const fn hits<const SEPARATORS: bool>(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = zeros(word ^ (ONES * b'"' as u64));
    let backslash = zeros(word ^ (ONES * b'\\' as u64));
    let separator = if SEPARATORS {
        zeros(word ^ (ONES * 0xE2))
    } else {
        0
    };
    (control | quote | backslash | separator) & HIGH
}

const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word
}

const fn first(hits: u64) -> usize {
    (hits.trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn every_byte_is_classified_at_every_place() {
        for length in [1, 7, 8, 9, 16, 17, 24, 79, 80, 81, 150] {
            for place in 0..length {
                for byte in 0..=255u8 {
                    let mut bytes = vec![b'a'; length];
                    bytes[place] = byte;
                    // A second hit behind it must not hide the first.
                    if place + 1 < length {
                        bytes[place + 1] = b'"';
                    }
                    let plain = |with: bool| {
                        bytes
                            .iter()
                            .position(|&b| {
                                b < 0x20 || b == b'"' || b == b'\\' || (with && b == 0xE2)
                            })
                            .unwrap_or(length)
                    };
                    assert_eq!(find_special::<false>(&bytes, 0), plain(false), "{bytes:?}");
                    assert_eq!(find_special::<true>(&bytes, 0), plain(true), "{bytes:?}");
                    assert_eq!(find_far::<true>(&bytes, 0), plain(true), "{bytes:?}");
                }
            }
        }
    }
}
