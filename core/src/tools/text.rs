//! Bytes of files and commands as text, and text cut to size. Loses nothing that is written back.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

pub(super) use crate::shown::line as one_line;

/// How a file's bytes stand for text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    /// With a byte order mark, which the model does not see.
    Utf8Marked,
    /// With a byte order mark.
    Utf16Le,
    /// With a byte order mark.
    Utf16Be,
    /// Any other text: one byte a character, so that what is not touched stays as it is.
    Latin1,
}

/// Reads a file's bytes; `None` if they are no text.
pub(super) fn decode(bytes: &[u8]) -> Option<(String, Encoding)> {
    if let Some(rest) = bytes.strip_prefix(&[0xEF, 0xBB, 0xBF])
        && let Ok(text) = core::str::from_utf8(rest)
    {
        return (!text.contains('\0')).then(|| (text.into(), Encoding::Utf8Marked));
    }
    for (mark, encoding) in [
        ([0xFF, 0xFE], Encoding::Utf16Le),
        ([0xFE, 0xFF], Encoding::Utf16Be),
    ] {
        if let Some(rest) = bytes.strip_prefix(&mark) {
            let (pairs, odd) = rest.as_chunks::<2>();
            let units = pairs.iter().map(|pair| match encoding {
                Encoding::Utf16Be => u16::from_be_bytes(*pair),
                Encoding::Utf8 | Encoding::Utf8Marked | Encoding::Utf16Le | Encoding::Latin1 => {
                    u16::from_le_bytes(*pair)
                }
            });
            let text: String = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
            return (odd.is_empty() && !text.contains('\0')).then_some((text, encoding));
        }
    }
    let start = &bytes[..bytes.len().min(SNIFFED)];
    if start.contains(&0) {
        return None;
    }
    if let Ok(text) = core::str::from_utf8(bytes) {
        return Some((text.into(), Encoding::Utf8));
    }
    let control = |b: &u8| *b < b' ' && !b"\t\n\r\x0c\x1b".contains(b);
    if start.iter().any(control) {
        return None;
    }
    Some((
        bytes.iter().map(|b| char::from(*b)).collect(),
        Encoding::Latin1,
    ))
}

/// Bytes looked at to tell text from other data.
const SNIFFED: usize = 8 << 10;

/// The bytes for a text in this encoding; `None` if it has no way to write it.
pub(super) fn encode(text: &str, encoding: Encoding) -> Option<Vec<u8>> {
    let units = |mark: [u8; 2], bytes: fn(u16) -> [u8; 2]| {
        let mut out = Vec::from(mark);
        out.extend(text.encode_utf16().flat_map(bytes));
        out
    };
    match encoding {
        Encoding::Utf8 => Some(text.as_bytes().to_vec()),
        Encoding::Utf8Marked => {
            let mut out = Vec::from([0xEF, 0xBB, 0xBF]);
            out.extend_from_slice(text.strip_prefix('\u{FEFF}').unwrap_or(text).as_bytes());
            Some(out)
        }
        Encoding::Utf16Le => Some(units([0xFF, 0xFE], u16::to_le_bytes)),
        Encoding::Utf16Be => Some(units([0xFE, 0xFF], u16::to_be_bytes)),
        Encoding::Latin1 => text
            .chars()
            .map(|c| u8::try_from(u32::from(c)).ok())
            .collect(),
    }
}

/// The longest beginning of `text` that fits in `max` bytes and ends on a character boundary.
pub(super) fn cut(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The longest end of `text` that fits in `max` bytes.
pub(super) fn cut_front(text: &str, max: usize) -> &str {
    let mut start = text.len().saturating_sub(max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// `text` in at most `max` bytes: the middle goes, with a note of how much.
pub(super) fn cut_middle(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    // The note's own length depends on the number in it; this is more than the longest.
    let room = max.saturating_sub(64);
    let head = cut(&text, room / 2);
    let tail = cut_front(&text, room - room / 2);
    let left_out = text.len() - head.len() - tail.len();
    let joined = format!("{head}\n[… {left_out} bytes left out …]\n{tail}");
    cut(&joined, max).into()
}

/// Output of a command as text: what is no UTF-8, and control characters that do more than end
/// lines, tab or colour, become U+FFFD.
pub(super) fn from_output(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let safe = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\x1b');
    if text.chars().all(safe) {
        return text.into();
    }
    text.chars()
        .map(|c| {
            if safe(c) {
                c
            } else {
                char::REPLACEMENT_CHARACTER
            }
        })
        .collect()
}

/// The length of `bytes` without a last character that is not complete.
pub(super) fn complete(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    for at in (start..bytes.len()).rev() {
        let expected = match bytes[at] {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => return bytes.len(),
        };
        return if bytes.len() - at < expected {
            at
        } else {
            bytes.len()
        };
    }
    bytes.len()
}

/// Where the first whole character of `bytes` begins, if it was cut out of a longer text.
pub(super) fn first_whole(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|b| matches!(b, 0x80..=0xBF))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_and_written_back_is_the_same_bytes() {
        #[track_caller]
        fn check(bytes: &[u8], text: &str, encoding: Encoding) {
            assert_eq!(decode(bytes), Some((text.into(), encoding)));
            assert_eq!(encode(text, encoding).as_deref(), Some(bytes));
        }
        check(b"", "", Encoding::Utf8);
        check("a漢\r\n".as_bytes(), "a漢\r\n", Encoding::Utf8);
        check(b"\xEF\xBB\xBFx\n", "x\n", Encoding::Utf8Marked);
        check(b"\xFF\xFEx\0\n\0", "x\n", Encoding::Utf16Le);
        check(b"\xFE\xFF\0x\0\n", "x\n", Encoding::Utf16Be);
        check(b"gr\xFC\xDFe\x80", "grüße\u{80}", Encoding::Latin1);
        assert_eq!(encode("漢", Encoding::Latin1), None);
    }

    #[test]
    fn what_is_no_text_is_not_read_as_text() {
        for bytes in [
            &b"a\0b"[..],
            b"\xFF\xFEx",
            b"\xFF\xFE\0\xD8",
            b"\xFF\x01\x02",
            b"\x7fELF\0",
        ] {
            assert_eq!(decode(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn text_is_cut_on_character_boundaries_at_every_length() {
        for ascii in 0..3 {
            let text = format!("{}{}", "a".repeat(ascii), "漢".repeat(200));
            for max in 0..text.len() + 2 {
                assert!(cut(&text, max).len() <= max);
                assert!(cut_front(&text, max).len() <= max);
                let middle = cut_middle(text.clone(), max);
                assert!(middle.len() <= max, "{max}");
                assert!(one_line(&text, max).len() <= max.max(3));
            }
        }
        let cut = cut_middle("x".repeat(1000), 200);
        assert!(cut.contains("[… 864 bytes left out …]"), "{cut}");
    }

    #[test]
    fn output_that_is_no_text_keeps_what_is() {
        let text = from_output(b"\xFF\xFE\0abc\x1b[1mbold\x07\r\n");
        assert_eq!(text, "\u{FFFD}\u{FFFD}\u{FFFD}abc\x1b[1mbold\u{FFFD}\r\n");
    }

    #[test]
    fn characters_cut_in_two_are_found() {
        let bytes = "漢漢".as_bytes();
        assert_eq!([3, 3, 3, 6], [3, 4, 5, 6].map(|n| complete(&bytes[..n])));
        assert_eq!([0, 2, 1, 0], [0, 1, 2, 3].map(|n| first_whole(&bytes[n..])));
        assert_eq!(complete(b"\x80\x80\x80\x80"), 4);
        assert_eq!(complete(&[]), 0);
        assert_eq!(first_whole(&[0x80; 10]), 3);
    }
}
