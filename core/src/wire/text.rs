//! Text for the wire: escaping and cutting. Knows nothing of frames.

use alloc::vec::Vec;

use super::swar::find_special;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` as the inside of a JSON string, without the quotes.
///
/// Escapes what JSON asks for, and U+2028 and U+2029, since some readers end a line there.
pub fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 8);
    let mut at = 0;
    while at < bytes.len() {
        let clean = find_special::<true>(bytes, at);
        match bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
            // A short run: a copy of fixed length, cut back, is cheaper than one of any length.
            Some(word) if clean - at < 8 => {
                let end = out.len() + (clean - at);
                out.extend_from_slice(word);
                out.truncate(end);
            }
            Some(_) | None => out.extend_from_slice(&bytes[at..clean]),
        }
        at = clean;
        if let Some(&byte) = bytes.get(at) {
            at += write_special(out, byte, &bytes[at..]);
        }
    }
}

/// As [`write_escaped`], but appends at most `max` bytes. Gives the rest of the text, which begins
/// on a character boundary; all of it if not even one character had room.
pub fn write_escaped_within<'a>(out: &mut Vec<u8>, text: &'a str, max: usize) -> &'a str {
    let end = out.len().saturating_add(max);
    let mut rest = text;
    // What fits even if all of it is escaped needs no counting.
    loop {
        let sure = cut(rest, (end - out.len()) / 6);
        if sure.is_empty() {
            break;
        }
        write_escaped(out, sure);
        rest = &rest[sure.len()..];
    }
    for character in rest.chars() {
        let before = out.len();
        let (sure, left) = rest.split_at(character.len_utf8());
        write_escaped(out, sure);
        if out.len() > end {
            out.truncate(before);
            break;
        }
        rest = left;
    }
    rest
}

/// Appends `text` as a JSON string, quotes included.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    write_escaped(out, text);
    out.push(b'"');
}

/// The longest beginning of `text` of at most `max` bytes that ends on a character boundary.
pub fn cut(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Whether the bytes begin with U+2028 or U+2029.
pub(super) fn is_separator(bytes: &[u8]) -> bool {
    matches!(bytes, [0xE2, 0x80, 0xA8 | 0xA9, ..])
}

/// Appends what stands for the special `byte`, with which `rest` begins; gives how many bytes of
/// the text that was.
fn write_special(out: &mut Vec<u8>, byte: u8, rest: &[u8]) -> usize {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0C => b'f',
        0xE2 => {
            if is_separator(rest) {
                out.extend_from_slice(b"\\u202");
                out.push(b'8' + (rest[2] - 0xA8));
            } else {
                // A character that begins so is three bytes long.
                out.extend_from_slice(&rest[..3]);
            }
            return 3;
        }
        control => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(control >> 4)]);
            out.push(HEX[usize::from(control & 0xF)]);
            return 1;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use proptest::prelude::*;

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        write_string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn separators_leave_escaped_and_their_neighbours_do_not() {
        assert_eq!(
            escaped("a\u{2028}b\u{2029}\u{2027}\u{202a}\u{85}“…”"),
            "\"a\\u2028b\\u2029\u{2027}\u{202a}\u{85}“…”\""
        );
    }

    #[test]
    fn cutting_keeps_characters_whole() {
        for (text, max, expected) in [
            ("añb", 1, "a"),
            ("añb", 2, "a"),
            ("añb", 3, "añ"),
            ("a", 9, "a"),
            ("漢", 2, ""),
        ] {
            assert_eq!(cut(text, max), expected);
        }
    }

    fn any_text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[a-z ]{0,40}",
            "[\u{0}-\u{80}]{0,20}",
            "[\u{2020}-\u{2030}]{0,10}",
            ".{0,20}",
            Just(String::from("\u{2028}")),
        ];
        proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn escaping_agrees_with_serde_json(text in any_text()) {
            let expected = serde_json::to_string(&text)
                .unwrap()
                .replace('\u{2028}', "\\u2028")
                .replace('\u{2029}', "\\u2029");
            prop_assert_eq!(escaped(&text), expected);
        }

        #[test]
        fn pieces_within_a_budget_join_to_the_whole(text in any_text(), max in 6usize..40) {
            let mut whole = Vec::new();
            write_escaped(&mut whole, &text);
            let (mut joined, mut rest) = (Vec::new(), text.as_str());
            while !rest.is_empty() {
                let mut piece = Vec::new();
                let left = write_escaped_within(&mut piece, rest, max);
                prop_assert!(piece.len() <= max);
                prop_assert!(left.len() < rest.len());
                // As full as it can be: another character would not fit.
                prop_assert!(left.is_empty() || piece.len() + 6 > max);
                prop_assert!(core::str::from_utf8(&piece).is_ok());
                joined.extend_from_slice(&piece);
                rest = left;
            }
            prop_assert_eq!(joined, whole);
        }
    }
}
