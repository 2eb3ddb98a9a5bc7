//! What fits into one frame. Texts, changes and lists are cut with a visible note: readers on the
//! other side give up on longer lines. Knows no protocol: it counts bytes of JSON.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::limits::Limits;
use crate::tools::{self, Diff};
use crate::wire::scan::scan;
use crate::wire::text::cut;

/// What stands around the parts that are counted: method, ids, names of members.
const AROUND: usize = 2 << 10;

/// How deep what stands around may be nested.
const AROUND_DEPTH: usize = 8;

/// A note has room for this much.
const NOTE: usize = 64;

/// A text in pieces that each fit into a frame.
pub(super) fn pieces<'a>(
    text: &'a str,
    limits: &Limits,
) -> impl Iterator<Item = &'a str> + use<'a> {
    pieces_beside(text, 0, limits)
}

/// The same, with so many bytes beside each.
pub(super) fn pieces_beside<'a>(
    text: &'a str,
    beside: usize,
    limits: &Limits,
) -> impl Iterator<Item = &'a str> + use<'a> {
    // A piece is never empty: a character fits into any frame that the limits allow.
    let most = limits.max_out_frame.saturating_sub(AROUND + beside).max(16);
    let mut rest = text;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let piece = cut_json(rest, most);
        rest = &rest[piece.len()..];
        Some(piece)
    })
}

/// Whether texts and a JSON value fit into one frame together.
pub(super) fn fits(texts: &[&str], json: &str, limits: &Limits) -> bool {
    let all = texts.iter().map(|text| cost(text)).sum::<usize>() + raw_cost(json);
    all + AROUND <= limits.max_out_frame
}

/// Bytes of JSON that are left in a frame.
#[derive(Debug)]
pub(super) struct Room {
    left: usize,
    /// How deep JSON may be nested that is put into it.
    depth: usize,
}

impl Room {
    /// A whole frame.
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            left: limits.max_out_frame.saturating_sub(AROUND),
            depth: limits.max_depth.saturating_sub(AROUND_DEPTH),
        }
    }

    /// Half a frame, for a list with others beside it.
    pub(super) fn half(limits: &Limits) -> Self {
        let whole = Self::new(limits);
        Self {
            left: whole.left / 2,
            ..whole
        }
    }

    /// Bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Whether a text of this cost goes in; then it has gone in.
    pub(super) fn take(&mut self, cost: usize) -> bool {
        if cost > self.left {
            return false;
        }
        self.left -= cost;
        true
    }

    /// The text in at most `most` bytes of JSON, and `bytes` bytes of its own.
    pub(super) fn text(&mut self, text: &str, most: usize, bytes: usize) -> String {
        let most = most.min(self.left);
        let kept = cut(text, bytes);
        if kept.len() == text.len() && cost(text) <= most {
            self.left -= cost(text);
            return text.into();
        }
        let kept = cut_json(kept, most.saturating_sub(NOTE));
        let more = text[kept.len()..].chars().count();
        let shown = format!("{kept}\n…({more} more chars truncated)");
        self.left = self.left.saturating_sub(cost(&shown));
        shown
    }

    /// One line in at most `most` bytes of JSON.
    pub(super) fn line(&mut self, text: String, most: usize) -> String {
        let mut line = text;
        if cost(&line) > most.min(self.left) {
            line.truncate(cut_json(&line, most.min(self.left).saturating_sub(8)).len());
            line.push('…');
        }
        self.left = self.left.saturating_sub(cost(&line));
        line
    }

    /// The arguments of a tool in at most `most` bytes: their long strings are cut more and more.
    pub(super) fn arguments(&mut self, json: String, most: usize) -> String {
        let most = most.min(self.left);
        let mut fitting = self.sound(json);
        for max in [2048, 512, 128, 32] {
            if raw_cost(&fitting) <= most {
                break;
            }
            if let Some(shorter) = tools::shown_arguments(&fitting, max) {
                fitting = shorter;
            }
        }
        if raw_cost(&fitting) > most {
            fitting = format!("{{\"note\":\"{} bytes not shown\"}}", fitting.len());
        }
        self.left = self.left.saturating_sub(raw_cost(&fitting));
        fitting
    }

    /// A result as data, or a note in its place.
    pub(super) fn data(&mut self, json: String, most: usize) -> String {
        let json = self.sound(json);
        let data = if raw_cost(&json) <= most.min(self.left) {
            json
        } else {
            format!("{{\"note\":\"{} bytes not shown\"}}", json.len())
        };
        self.left = self.left.saturating_sub(raw_cost(&data));
        data
    }

    /// JSON that others wrote, or a note where a client could not read the frame that holds it: nested
    /// too deep, a key twice, half a character.
    fn sound(&self, json: String) -> String {
        match scan(json.as_bytes(), self.depth) {
            Ok(read) if !read.duplicates => json,
            Ok(_) | Err(_) => format!("{{\"note\":\"{} bytes not shown\"}}", json.len()),
        }
    }

    /// Changes, all but `keep` bytes of what is left for them.
    pub(super) fn diffs(&mut self, diffs: Vec<Diff>, keep: usize) -> Vec<Diff> {
        let mut shown: Vec<Diff> = Vec::with_capacity(diffs.len());
        let all = diffs.len();
        for mut diff in diffs {
            let whole = diff_cost(&diff);
            let left = self.left.saturating_sub(keep);
            if whole + NOTE <= left {
                self.left -= whole;
                shown.push(diff);
                continue;
            }
            if shown.is_empty() {
                // Half for what was there and half for what comes.
                let half = left.saturating_sub(cost(&diff.path) + 2 * NOTE) / 2;
                diff.new = cut_side(&diff.new, half);
                diff.old = diff.old.map(|old| cut_side(&old, half));
                self.left = self.left.saturating_sub(diff_cost(&diff));
                shown.push(diff);
            }
            break;
        }
        let more = all - shown.len();
        if more > 0
            && let Some(last) = shown.last_mut()
        {
            // On both sides, so that it does not look like a change.
            let note = format!("\n[… {more} more changed regions not shown]\n");
            last.new.push_str(&note);
            last.old.get_or_insert_default().push_str(&note);
            self.left = self.left.saturating_sub(2 * cost(&note));
        }
        shown
    }
}

/// Bytes of a text in JSON, its quotes left out.
pub(super) fn cost(text: &str) -> usize {
    text.chars().map(char_cost).sum()
}

fn char_cost(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => 6,
        c => c.len_utf8(),
    }
}

/// Bytes of a text that is JSON already: only line separators grow on the way out.
pub(super) fn raw_cost(json: &str) -> usize {
    let separators = json.matches(['\u{2028}', '\u{2029}']).count();
    json.len() + 3 * separators
}

fn diff_cost(diff: &Diff) -> usize {
    cost(&diff.path) + cost(&diff.new) + diff.old.as_deref().map_or(0, cost) + NOTE
}

/// The longest beginning of a text that has at most `max` bytes in JSON.
pub(super) fn cut_json(text: &str, max: usize) -> &str {
    let mut room = max;
    for (at, c) in text.char_indices() {
        match room.checked_sub(char_cost(c)) {
            Some(left) => room = left,
            None => return &text[..at],
        }
    }
    text
}

fn cut_side(text: &str, max: usize) -> String {
    if cost(text) <= max {
        return text.into();
    }
    let kept = cut_json(text, max);
    format!("{kept}\n[… {} bytes not shown]\n", text.len() - kept.len())
}
