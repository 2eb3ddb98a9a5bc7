//! Text of strangers made safe for a terminal: what a model, a file or a tool says cannot move the
//! cursor, change a title or turn the reading direction around.

use std::borrow::Cow;

use reasonix_core::shown;

/// `text` with every control character but line feed and tab made visible.
pub fn safe(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            c if !is_unsafe(c) => out.push(c),
            '\0'..='\x1f' => out.push(picture(c)),
            '\x7f' => out.push('\u{2421}'),
            c => out.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// As [`safe`], on one line of at most `max` characters.
pub fn one_line(text: &str, max: usize) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let safe = safe(&joined);
    if safe.chars().count() <= max {
        return safe.into_owned();
    }
    let mut out: String = safe.chars().take(max.saturating_sub(1)).collect();
    out.push('…');
    out
}

fn is_unsafe(c: char) -> bool {
    !matches!(c, '\n' | '\t') && shown::deceives(c)
}

/// The control picture of a C0 character.
fn picture(c: char) -> char {
    char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_drive_the_terminal() {
        for (text, shown) in [
            ("plain\tä\n", "plain\tä\n"),
            ("\x1b[31mred\x07", "\u{241b}[31mred\u{2407}"),
            ("a\r\nb\rc", "a\nb\u{240d}c"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("x\u{202e}y", "x\\u{202e}y"),
            ("\x7f", "\u{2421}"),
        ] {
            assert_eq!(safe(text), shown);
        }
    }

    #[test]
    fn a_line_is_one_line_and_bounded() {
        assert_eq!(one_line("a\n  b\tc", 20), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }
}
