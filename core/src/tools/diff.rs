//! Before and after of a change, for cards: whole if it is short, else the changed regions.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use super::step::Diff;
use super::text;
use crate::limits::Limits;

/// The change of one file, in at most about [`Limits::max_diff`] bytes.
pub(super) fn diffs(path: &str, old: Option<&str>, new: &str, limits: &Limits) -> Vec<Diff> {
    let max = limits.max_diff;
    let diff = |old: Option<String>, new: String| Diff {
        path: path.into(),
        old,
        new,
    };
    if old.map_or(0, str::len) + new.len() <= max {
        return vec![diff(old.map(Into::into), new.into())];
    }
    let Some(old) = old else {
        return vec![diff(None, cut(new, max))];
    };
    let regions = regions(old, new, limits.diff_context);
    let mut out: Vec<Diff> = Vec::new();
    let mut room = max;
    for (shown, (before, after)) in regions.iter().enumerate() {
        if before.len() + after.len() <= room {
            room -= before.len() + after.len();
            out.push(diff(Some(before.clone()), after.clone()));
            continue;
        }
        let mut more = regions.len() - shown;
        if out.is_empty() {
            out.push(diff(Some(cut(before, max / 2)), cut(after, max / 2)));
            more -= 1;
        }
        if more > 0
            && let Some(last) = out.last_mut()
        {
            // On both sides, so that it does not look like a change.
            let note = format!("\n[… {more} more changed regions not shown]\n");
            last.new.push_str(&note);
            last.old.get_or_insert_default().push_str(&note);
        }
        break;
    }
    out
}

/// The first line that differs, from 1.
pub(super) fn first_changed_line(old: &str, new: &str) -> u32 {
    let same = old
        .bytes()
        .zip(new.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let lines = old.as_bytes()[..same]
        .iter()
        .filter(|b| **b == b'\n')
        .count();
    u32::try_from(lines + 1).unwrap_or(u32::MAX)
}

fn cut(text: &str, max: usize) -> String {
    let kept = text::cut(text, max);
    if kept.len() == text.len() {
        return text.into();
    }
    format!("{kept}\n[… {} bytes not shown]\n", text.len() - kept.len())
}

/// Lines compared one with another; more are one region, since the comparison can take the
/// product of both lengths.
const MAX_COMPARED: usize = 4000;

fn regions(old: &str, new: &str, context: usize) -> Vec<(String, String)> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let left = old.len().min(new.len()) - before;
    let pairs = old.iter().rev().zip(new.iter().rev());
    let after = pairs.take(left).take_while(|(a, b)| a == b).count();

    let start = before.saturating_sub(context);
    let keep = after.saturating_sub(context);
    let (old, new) = (&old[start..old.len() - keep], &new[start..new.len() - keep]);
    if old.len() + new.len() > MAX_COMPARED {
        return vec![(old.concat(), new.concat())];
    }
    let ops = capture_diff_slices(Algorithm::Myers, old, new);
    let region = |group: Vec<DiffOp>| {
        let first = group.first()?;
        let last = group.last()?;
        let old = &old[first.old_range().start..last.old_range().end];
        let new = &new[first.new_range().start..last.new_range().end];
        Some((old.concat(), new.concat()))
    };
    group_diff_ops(ops, context)
        .into_iter()
        .filter_map(region)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_diff: usize) -> Limits {
        Limits {
            max_diff,
            ..Limits::default()
        }
    }

    #[test]
    fn a_short_change_is_shown_whole_and_an_emptied_file_has_an_empty_new_text() {
        let all = diffs("/a", Some("x"), "", &limits(100));
        assert_eq!(all.len(), 1);
        assert_eq!(
            (all[0].old.as_deref(), all[0].new.as_str()),
            (Some("x"), "")
        );
        let new = diffs("/a", None, "x", &limits(100));
        assert_eq!((new[0].old.as_deref(), new[0].new.as_str()), (None, "x"));
    }

    #[test]
    fn a_long_change_is_shown_as_its_regions_with_lines_around() {
        let old: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let new = old
            .replace("line 100\n", "changed\n")
            .replace("line 900\n", "");
        let all = diffs("/a", Some(&old), &new, &limits(1000));
        assert_eq!(all.len(), 2);
        let context = |skip: &str, range: core::ops::Range<usize>, put: &str| -> String {
            range
                .map(|n| format!("line {n}\n"))
                .map(|line| if line == skip { put.into() } else { line })
                .collect()
        };
        assert_eq!(all[0].old.as_deref(), Some(&*context("", 97..104, "")));
        assert_eq!(all[0].new, context("line 100\n", 97..104, "changed\n"));
        assert_eq!(all[1].new, context("line 900\n", 897..904, ""));
        assert_eq!(first_changed_line(&old, &new), 101);
    }

    #[test]
    fn what_is_too_long_even_so_is_cut_with_a_note() {
        let size = |all: &[Diff]| -> usize {
            all.iter()
                .map(|d| d.new.len() + d.old.as_ref().map_or(0, String::len))
                .sum()
        };
        let old: String = (0..20_000).map(|n| format!("漢 {n}\n")).collect();
        let rewritten = old.replace('漢', "字");
        let one = diffs("/a", Some(&old), &rewritten, &limits(1000));
        assert_eq!(one.len(), 1);
        assert!(one[0].new.contains("bytes not shown"));
        let scattered = old.replace("0\n", "x\n");
        for all in [
            one,
            diffs(
                "/a",
                Some(&old[..30_000]),
                &scattered[..30_000],
                &limits(1000),
            ),
            diffs("/a", None, &old, &limits(1000)),
        ] {
            assert!(size(&all) < 1300, "{}", size(&all));
            let last = all.last().expect("a region");
            assert!(last.new.contains("not shown"), "{last:?}");
        }
    }
}
