//! Text for the wire: escaping and cutting. Knows nothing of frames.

use alloc::vec::Vec;

/// Appends `text` as the inside of a JSON string (no quotes), U+2028 and U+2029 escaped too.
pub fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let _ = (out, text);
    todo!()
}

/// As [`write_escaped`], but at most `max` bytes are appended; gives the rest of the text, from a
/// character boundary on.
pub fn write_escaped_within<'a>(out: &mut Vec<u8>, text: &'a str, max: usize) -> &'a str {
    let _ = (out, max);
    todo!("{text}")
}

/// The longest beginning of `text` of at most `max` bytes that ends on a character boundary.
pub fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
