//! Names and words of strangers (a file, a project, a server, a model) as people and models are shown
//! them: none can end its line, drive a terminal, or stand there as another one. Knows nothing of
//! where they are shown.

use alloc::borrow::Cow;
use alloc::string::String;

/// Whether a character does something else than to be seen: it ends a line, drives a terminal, turns
/// the reading direction around, or is meant to be read by machines only.
pub fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// A name, with what [`deceives`] in it written as its number (`\u{a}`): what is not in the name is
/// not seen, and nothing that is in it is lost.
pub fn name(name: &str) -> Cow<'_, str> {
    if !name.contains(deceives) {
        return Cow::Borrowed(name);
    }
    let mut shown = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        push(&mut shown, c);
    }
    Cow::Owned(shown)
}

/// Words on one line of at most `max` bytes: every run of white space and control characters becomes
/// one space, what else [`deceives`] is written as its number, and what is too long is cut visibly.
pub fn line(text: &str, max: usize) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if line.len() > max {
            break;
        }
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            push(&mut line, c);
            if line.len() > max {
                break;
            }
        }
    }
    if line.len() > max {
        let mut end = max.saturating_sub('…'.len_utf8());
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        line.truncate(end);
        line.push('…');
    }
    line
}

fn push(shown: &mut String, c: char) {
    match deceives(c) {
        true => shown.extend(c.escape_unicode()),
        false => shown.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_part_of_a_name_is_not_seen_as_one() {
        for (text, as_name, as_line) in [
            ("src/ä b.rs", "src/ä b.rs", "src/ä b.rs"),
            ("a\nb.rs:1:x", "a\\u{a}b.rs:1:x", "a b.rs:1:x"),
            ("a\r\tb", "a\\u{d}\\u{9}b", "a b"),
            ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}", "[31mred"),
            ("\u{9b}2J", "\\u{9b}2J", "2J"),
            ("x\u{202e}y", "x\\u{202e}y", "x\\u{202e}y"),
            (
                "x\u{2066}y\u{2069}",
                "x\\u{2066}y\\u{2069}",
                "x\\u{2066}y\\u{2069}",
            ),
            ("x\u{2028}y", "x\\u{2028}y", "x y"),
            ("x\u{e0041}y", "x\\u{e0041}y", "x\\u{e0041}y"),
        ] {
            assert_eq!(name(text), as_name);
            assert_eq!(line(text, 100), as_line);
        }
    }

    #[test]
    fn a_line_is_cut_on_a_character_and_visibly() {
        assert_eq!(line("  \n ", 9), "");
        assert_eq!(line("abcdef", 6), "abcdef");
        assert_eq!(line("abcdefg", 6), "abc…");
        for max in 3..40 {
            let cut = line(&"漢 \u{202e}ä".repeat(40), max);
            assert!(cut.len() <= max && cut.ends_with('…'), "{max}: {cut}");
        }
    }
}
