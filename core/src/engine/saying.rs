//! In which order a model says and thinks, while it does. The texts themselves are kept by the run
//! of the model: a long answer is in memory once.

use alloc::vec::Vec;

use super::record::{Assistant, Said};

/// Changes between saying and thinking that are kept apart in one answer; more of them are joined.
const MOST: usize = 1024;

/// What an attempt has said, by lengths.
#[derive(Debug, Default)]
pub(super) struct Saying {
    /// The number of the message.
    pub(super) id: u64,
    /// Whether it thought or said, and how many bytes.
    spans: Vec<(bool, usize)>,
}

impl Saying {
    /// It says or thinks so many bytes more.
    pub(super) fn add(&mut self, thought: bool, bytes: usize) {
        let joined = self.spans.len() >= MOST;
        let last = self.spans.iter_mut().rev();
        match last
            .take(if joined { 2 } else { 1 })
            .find(|span| span.0 == thought)
        {
            Some(span) => span.1 += bytes,
            None => self.spans.push((thought, bytes)),
        }
    }

    /// What was said, in its order, out of all texts and all thoughts of the attempt; of a load
    /// that was kept only in part there is less than was said. Nothing is left.
    pub(super) fn take<'a>(&mut self, mut text: &'a str, mut thought: &'a str) -> Assistant {
        let mut said = Vec::with_capacity(self.spans.len());
        let spans = core::mem::take(&mut self.spans);
        let last = |of| spans.iter().rposition(|span| span.0 == of);
        let (last_text, last_thought) = (last(false), last(true));
        for (n, (thinks, bytes)) in spans.iter().enumerate() {
            let all = if *thinks { &mut thought } else { &mut text };
            // The last piece is what is left.
            let end = Some(n) == last_text || Some(n) == last_thought;
            let bytes = if end { all.len() } else { *bytes };
            let piece = crate::wire::text::cut(all, bytes);
            *all = &all[piece.len()..];
            if !piece.is_empty() {
                said.push(if *thinks {
                    Said::Thought(piece.into())
                } else {
                    Said::Text(piece.into())
                });
            }
        }
        Assistant {
            id: self.id,
            said,
            ..Assistant::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn what_is_said_keeps_its_order() {
        let mut saying = Saying {
            id: 3,
            ..Saying::default()
        };
        for (thought, bytes) in [(true, 2), (true, 1), (false, 2), (true, 1), (false, 1)] {
            saying.add(thought, bytes);
        }
        let said = saying.take("abc", "wxyz").said;
        let text = |text: &str| Said::Text(text.into());
        let thought = |text: &str| Said::Thought(text.into());
        assert_eq!(
            said,
            vec![thought("wxy"), text("ab"), thought("z"), text("c")]
        );
        assert_eq!(saying.take("", "").said, vec![]);
    }

    #[test]
    fn what_was_kept_in_part_is_there_in_part() {
        let mut saying = Saying::default();
        saying.add(false, 1_000_000);
        assert_eq!(saying.take("kept", "").text(), "kept");
    }

    #[test]
    fn endless_changes_lose_their_order_and_no_text() {
        let mut saying = Saying::default();
        for n in 0..10_000 {
            saying.add(n % 2 == 0, 1);
        }
        assert!(saying.spans.len() <= MOST + 1);
        let whole = saying.take(&"a".repeat(5000), &"b".repeat(5000));
        assert_eq!((whole.text().len(), whole.thought().len()), (5000, 5000));
    }
}
