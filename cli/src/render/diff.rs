//! A unified diff for people: coloured, with the changed words of a line marked.

use std::fmt::Write as _;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use reasonix_core::shown;

use super::styles::{BAD, BOLD, DIM, GOOD, NOTE, styled};
use super::text::safe;

/// Lines shown of one diff; the rest is counted.
const MAX_LINES: usize = 200;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// Where the words of a line are compared, that may take this long: a person waits.
const WORD_TIME: Duration = Duration::from_millis(100);

/// The change of the file `path` from `old` (none: it is new) to `new`, each line ended.
pub fn diff(path: &str, old: Option<&str>, new: &str) -> String {
    let before = old.unwrap_or_default();
    let text = TextDiff::configure()
        .timeout(Duration::from_secs(1))
        .diff_lines(before, new);
    let path = shown::name(path);
    let mut out = String::new();
    let from = if old.is_some() { &*path } else { "/dev/null" };
    let _ = writeln!(out, "{}", styled(BOLD, format_args!("--- {from}")));
    let _ = writeln!(out, "{}", styled(BOLD, format_args!("+++ {path}")));
    let mut lines = 0usize;
    let mut hidden = 0usize;
    for hunk in text.unified_diff().context_radius(CONTEXT).iter_hunks() {
        if lines < MAX_LINES {
            let _ = writeln!(out, "{}", styled(NOTE, hunk.header()));
        }
        for op in hunk.ops() {
            let deadline = std::time::Instant::now() + WORD_TIME;
            for change in text.iter_inline_changes_deadline(op, Some(deadline)) {
                lines += 1;
                if lines > MAX_LINES {
                    hidden += 1;
                    continue;
                }
                let (sign, style) = match change.tag() {
                    ChangeTag::Delete => ('-', Some(BAD)),
                    ChangeTag::Insert => ('+', Some(GOOD)),
                    ChangeTag::Equal => (' ', None),
                };
                write_line(&mut out, sign, style, &change);
            }
        }
    }
    if hidden > 0 {
        let _ = writeln!(
            out,
            "{}",
            styled(DIM, format_args!("… {hidden} more lines"))
        );
    }
    out
}

fn write_line(
    out: &mut String,
    sign: char,
    style: Option<anstyle::Style>,
    change: &similar::InlineChange<'_, str>,
) {
    let base = style.unwrap_or_default();
    let _ = write!(out, "{base}{sign}");
    for (emphasized, part) in change.iter_strings_lossy() {
        let part = safe(part.strip_suffix('\n').unwrap_or(&part)).into_owned();
        if emphasized && style.is_some() {
            let marked = base.bold().underline();
            let _ = write!(out, "{base:#}{marked}{part}{marked:#}{base}");
        } else {
            out.push_str(&part);
        }
    }
    let _ = writeln!(out, "{base:#}");
    if change.missing_newline() {
        let _ = writeln!(out, "{}", styled(DIM, "\\ No newline at end of file"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The diff as a pipe sees it.
    fn plain(path: &str, old: Option<&str>, new: &str) -> String {
        anstream::adapter::strip_str(&diff(path, old, new)).to_string()
    }

    #[test]
    fn a_change_shows_its_lines_and_some_around() {
        assert_eq!(
            plain("a.txt", Some("1\n2\n3\n4\n5\n6\n"), "1\n2\n3\n4\nfive\n6\n"),
            "--- a.txt\n+++ a.txt\n@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-5\n+five\n 6\n"
        );
    }

    #[test]
    fn a_new_file_comes_from_nothing() {
        assert_eq!(
            plain("n", None, "x"),
            "--- /dev/null\n+++ n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn colours_mark_what_changed() {
        let text = diff("a", Some("same word\n"), "same thing\n");
        assert!(text.contains("\u{1b}[31m-"), "{text:?}");
        assert!(text.contains("\u{1b}[32m+"), "{text:?}");
    }

    #[test]
    fn a_large_diff_is_bounded_and_says_so() {
        let text = plain("a", None, &"x\n".repeat(10_000));
        assert!(text.lines().count() < MAX_LINES + 10);
        assert!(text.ends_with("… 9800 more lines\n"), "{text}");
    }

    #[test]
    fn a_file_cannot_drive_the_terminal() {
        let text = plain("a", None, "\x1b]0;title\x07\n");
        assert!(text.contains("\u{241b}]0;title\u{2407}"), "{text}");
        let text = plain("a\n+++ b\u{202e}", None, "x\n");
        assert!(text.contains("+++ a\\u{a}+++ b\\u{202e}\n"), "{text}");
    }
}
