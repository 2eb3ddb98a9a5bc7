//! Small things about text that the inbox needs. Knows no items.

use alloc::string::String;

use sha2::{Digest, Sha256};

/// At most `max` characters of `text`, and a `…` behind them if there are more.
pub(super) fn preview(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.into(),
        Some((end, _)) => {
            let mut short = String::from(&text[..end]);
            short.push('…');
            short
        }
    }
}

/// The SHA-256 of `parts`, each with its length before it, so that no two lists look the same.
pub(super) fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        // A length is no longer than 64 bits.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

/// The SHA-256 of `text` alone.
pub(super) fn checksum(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// `bytes` in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from(b"0123456789abcdef"[usize::from(n)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// The 32 bytes that 64 hexadecimal digits are.
pub(super) fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_cut_by_characters_and_says_so() {
        for (text, max, is) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "abc…"),
            ("äöüß", 3, "äöü…"),
            ("", 3, ""),
        ] {
            assert_eq!(preview(text, max), is);
        }
    }

    #[test]
    fn a_digest_tells_lists_apart_that_look_the_same_joined() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_ne!(digest(&["ab"]), digest(&["ab", ""]));
    }

    #[test]
    fn hexadecimal_digits_are_read_as_they_were_written() {
        let bytes = checksum("x");
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        for bad in ["", "0", &"0".repeat(63), &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(unhex(bad), None, "{bad}");
        }
    }
}
