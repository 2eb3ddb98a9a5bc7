//! Replacing text: literal, unique unless told otherwise, line ends as they are in the file.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// One replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) all: bool,
}

/// Makes one replacement. Gives the new text and how many places changed.
pub(super) fn apply(text: &str, edit: &Edit) -> Result<(String, usize), String> {
    if edit.old.is_empty() {
        return Err("old_string is empty; to make a file use write_file".into());
    }
    if edit.old == edit.new {
        return Err("old_string and new_string are equal".into());
    }
    // Only text without a CR of its own can mean line ends of either kind.
    let found = if edit.old.contains('\n') && !edit.old.contains('\r') && text.contains("\r\n") {
        find_lines(text, &edit.old)
    } else {
        find(text, &edit.old)
    };
    match found.all {
        0 => return Err("old_string does not occur in the file".into()),
        1 => {}
        n if !edit.all => {
            return Err(format!(
                "old_string occurs {n} times; add lines around it to make it unique, or set \
                 replace_all"
            ));
        }
        _ => {}
    }
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for place in &found.places {
        out.push_str(&text[end..place.start]);
        push_with_ends(&mut out, text, place, edit);
        end = place.end;
    }
    out.push_str(&text[end..]);
    Ok((out, found.places.len()))
}

struct Found {
    /// Places that do not overlap, from the left.
    places: Vec<Range<usize>>,
    /// All places, those that overlap counted too: what makes a text ambiguous.
    all: usize,
}

fn find(text: &str, old: &str) -> Found {
    let places: Vec<_> = text
        .match_indices(old)
        .map(|(at, _)| at..at + old.len())
        .collect();
    Found {
        all: count_overlapping(text, old, places.len()),
        places,
    }
}

fn count_overlapping(text: &str, old: &str, apart: usize) -> usize {
    // Overlaps matter only for telling one from several.
    let step = old.chars().next().map_or(1, char::len_utf8);
    match text.find(old) {
        Some(first) if apart == 1 && text[first + step..].contains(old) => 2,
        _ => apart,
    }
}

/// Finds `old` in `text` with every CRLF read as LF.
fn find_lines(text: &str, old: &str) -> Found {
    let plain = text.replace("\r\n", "\n");
    // Where the CRs were, as offsets in the plain text: those at or before an offset shift it.
    let mut removed = Vec::new();
    for (count, (at, _)) in text.match_indices("\r\n").enumerate() {
        removed.push(at - count);
    }
    let found = find(&plain, old);
    let shift = |at: usize| at + removed.partition_point(|cr| *cr < at);
    Found {
        all: found.all,
        places: found
            .places
            .iter()
            .map(|p| shift(p.start)..shift(p.end))
            .collect(),
    }
}

/// Appends the new text with the line ends of the place it goes to. Its ends are taken in order
/// from those that were there; the last goes on for lines that are new.
fn push_with_ends(out: &mut String, text: &str, place: &Range<usize>, edit: &Edit) {
    let new = &edit.new;
    if !new.contains('\n') || new.contains('\r') || edit.old.contains('\r') {
        out.push_str(new);
        return;
    }
    let region = &text[place.clone()];
    let mut ends: Vec<bool> = line_ends(region).collect();
    if ends.is_empty() {
        // The end of the line it stands in, else of the line before.
        let after = line_ends(&text[place.end..]).next();
        let near = after.or_else(|| line_ends(&text[..place.start]).last());
        ends.push(near.unwrap_or(false));
    }
    for (at, line) in new.split('\n').enumerate() {
        if at > 0 {
            // Not empty: the branch above saw to it.
            let crlf = ends[(at - 1).min(ends.len() - 1)];
            out.push_str(if crlf { "\r\n" } else { "\n" });
        }
        out.push_str(line);
    }
}

/// For each line end whether it is CRLF.
fn line_ends(text: &str) -> impl Iterator<Item = bool> + '_ {
    let bytes = text.as_bytes();
    text.match_indices('\n')
        .map(move |(at, _)| at > 0 && bytes[at - 1] == b'\r')
}

/// `new` with the line ends of `old`, if those are all CRLF and `new` has no CR of its own.
pub(super) fn keep_ends(old: &str, new: &str) -> String {
    let mut ends = line_ends(old).peekable();
    if ends.peek().is_some() && ends.all(|crlf| crlf) && !new.contains('\r') {
        new.replace('\n', "\r\n")
    } else {
        new.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str, all: bool) -> Edit {
        Edit {
            old: old.into(),
            new: new.into(),
            all,
        }
    }

    #[track_caller]
    fn check(text: &str, old: &str, new: &str, expected: &str) {
        let got = apply(text, &edit(old, new, false));
        assert_eq!(got, Ok((expected.into(), 1)), "{old:?} → {new:?}");
    }

    #[test]
    fn files_with_both_kinds_of_line_end_change_only_where_the_match_is() {
        check("a\r\nb\nc\r\n", "b", "B", "a\r\nB\nc\r\n");
        check("a\r\nB\nc\r\n", "a\nB", "Q", "Q\nc\r\n");
        check("a\r\nb\r\nc\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\n");
        check("a\r\nb\nc\r\nd", "a\nb\nc\n", "1\n2\n3\n", "1\r\n2\n3\r\nd");
        check("a\r\nb\r\n", "a\r\nb", "x\ny", "x\ny\r\n");
        check("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n");
        check("a\nb\n", "b", "x\ny", "a\nx\ny\n");
        check("a\r\nb", "b", "x\ny", "a\r\nx\r\ny");
        check("漢\r\n漢a\r\nb", "漢a\nb", "é\nc", "漢\r\né\r\nc");
        check("x\r\n", "\n", "", "x");
    }

    #[test]
    fn the_new_text_is_no_pattern_and_neither_is_the_old() {
        check(
            "price\n",
            "price",
            "$1 $& \\1 $$ ${0}",
            "$1 $& \\1 $$ ${0}\n",
        );
        check("abc a.c", "a.c", "X", "abc X");
    }

    #[test]
    fn the_last_line_end_stays_as_it_is() {
        check("x", "x", "y", "y");
        check("x\n", "x", "y", "y\n");
        check("x\n\n", "x", "y", "y\n\n");
    }

    #[test]
    fn replace_all_goes_over_the_text_once() {
        assert_eq!(
            apply("a a", &edit("a", "aa", true)),
            Ok(("aa aa".into(), 2))
        );
        assert_eq!(apply("aaa", &edit("aa", "b", true)), Ok(("ba".into(), 1)));
        let mixed = "a\r\nb\na\nb\n";
        assert_eq!(
            apply(mixed, &edit("a\nb", "c\nd", true)),
            Ok(("c\r\nd\nc\nd\n".into(), 2))
        );
    }

    #[test]
    fn what_is_ambiguous_or_empty_or_nothing_is_refused() {
        #[track_caller]
        fn check(text: &str, old: &str, new: &str, message: &str) {
            for all in [false, true] {
                let got = apply(text, &edit(old, new, all));
                if !all || !message.contains("times") {
                    let error = got.expect_err(old);
                    assert!(error.contains(message), "{error}");
                }
            }
        }
        check("x=1\ny\nx=1\n", "x=1", "x=2", "occurs 2 times");
        check("aaa", "aa", "b", "occurs 2 times");
        check("a\nb\r\na\r\nb", "a\nb", "c", "occurs 2 times");
        check("abc", "", "X", "empty");
        check("abc", "b", "b", "equal");
        check("abc", "z", "b", "does not occur");
    }

    #[test]
    fn a_file_written_anew_keeps_its_kind_of_line_end() {
        assert_eq!(keep_ends("a\r\nb\r\n", "c\nd"), "c\r\nd");
        assert_eq!(keep_ends("a\r\nb\n", "c\nd"), "c\nd");
        assert_eq!(keep_ends("a", "c\nd"), "c\nd");
        assert_eq!(keep_ends("a\r\n", "c\r\nd\n"), "c\r\nd\n");
    }
}
