//! Places in a list, and the next page of what was found so far: whole, and of all that is behind it
//! only the places. Pure.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;

use crate::protocol::schema::SessionId;
use crate::store::Summary;

/// A place in a list: newest first, ties by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    updated: u64,
    pub(super) id: String,
}

impl Place {
    pub(super) fn of(summary: &Summary) -> Self {
        Self {
            updated: summary.updated,
            id: summary.id.clone(),
        }
    }

    fn order(&self) -> (Reverse<u64>, &str) {
        (Reverse(self.updated), &self.id)
    }

    pub(super) fn is_before(&self, other: &Self) -> bool {
        self.order() < other.order()
    }

    /// Opaque to clients.
    pub(super) fn cursor(&self) -> String {
        BASE64.encode(format!("{}.{}", self.updated, self.id))
    }

    pub(super) fn of_cursor(cursor: &str) -> Option<Self> {
        let bytes = BASE64.decode(cursor).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (updated, id) = text.split_once('.')?;
        Some(Self {
            updated: updated.parse().ok()?,
            id: SessionId::checked(id).ok()?.as_str().into(),
        })
    }
}

/// The sessions nearest to the beginning of a list, of all that were taken in.
#[derive(Debug)]
pub(super) struct Nearest {
    /// How many are kept whole, and of how many the place.
    page: usize,
    most: usize,
    whole: Vec<Summary>,
    behind: Vec<Place>,
    /// The nearest of those that are not kept: what is behind it is not either.
    lost: Option<Place>,
}

impl Nearest {
    pub(super) fn new(page: usize, most: usize) -> Self {
        Self {
            page,
            most,
            whole: Vec::new(),
            behind: Vec::new(),
            lost: None,
        }
    }

    /// Takes in a session.
    pub(super) fn take(&mut self, summary: Summary) {
        self.whole.push(summary);
        if self.whole.len() >= 2 * self.page.max(1) {
            self.sort();
        }
    }

    /// Gives up sessions that are better known otherwise.
    pub(super) fn give_up(&mut self, ids: &BTreeSet<&str>) {
        self.whole
            .retain(|summary| !ids.contains(summary.id.as_str()));
        self.behind.retain(|place| !ids.contains(place.id.as_str()));
    }

    /// The next page in its order, the places behind it in theirs, and whether there are more.
    pub(super) fn finish(mut self) -> (Vec<Summary>, VecDeque<Place>, bool) {
        self.sort();
        self.sort_behind();
        // One that was given up is not made up for by one that is farther than others.
        let lost = self.lost.as_ref();
        if let Some(first) = self.behind.first().or(lost) {
            let before = |it: &Summary| (Reverse(it.updated), it.id.as_str()) < first.order();
            let near = self.whole.partition_point(before);
            let far = self.whole.drain(near..).map(|it| Place::of(&it));
            self.behind.extend(far.collect::<Vec<_>>());
            self.sort_behind();
        }
        let more = self.lost.is_some();
        (self.whole, self.behind.into(), more)
    }

    fn sort(&mut self) {
        self.whole
            .sort_by(|a, b| (Reverse(a.updated), &a.id).cmp(&(Reverse(b.updated), &b.id)));
        let behind = self.whole.drain(self.page.min(self.whole.len())..);
        self.behind.extend(behind.map(|it| Place::of(&it)));
        if self.behind.len() >= 2 * self.most.max(1) {
            self.sort_behind();
        }
    }

    fn sort_behind(&mut self) {
        self.behind.sort_by(|a, b| a.order().cmp(&b.order()));
        let known = match &self.lost {
            Some(lost) => self.behind.partition_point(|it| it.is_before(lost)),
            None => self.behind.len(),
        };
        let kept = self.most.min(known);
        if let Some(lost) = self.behind.drain(kept..).next() {
            let nearer = self.lost.as_ref().is_none_or(|it| lost.is_before(it));
            self.lost = if nearer { Some(lost) } else { self.lost.take() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_place_and_nothing_else_is() {
        let place = Place {
            updated: 12,
            id: "a.b".into(),
        };
        assert_eq!(Place::of_cursor(&place.cursor()), Some(place));
        for bad in ["", "!", "x", "MTIu", "YS5i", "MTIuLi4"] {
            assert_eq!(Place::of_cursor(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_page_is_whole_and_the_rest_are_places_however_they_come() {
        let place = |n: u64| Place {
            updated: n / 2,
            id: format!("{n:03}"),
        };
        for (page, most) in [
            (0, 0),
            (0, 1),
            (1, 0),
            (1, 1),
            (3, 4),
            (10, 50),
            (100, 200),
            (300, 1),
        ] {
            let mut nearest = Nearest::new(page, most);
            for n in 0..200 {
                // Each once, in no order.
                let place = place(n * 77 % 200);
                let mut summary = Summary::new(&place.id, "/w", place.updated);
                summary.title = "t".into();
                nearest.take(summary);
                assert!(nearest.whole.len() <= 2 * page.max(1));
                assert!(nearest.behind.len() <= 2 * most.max(1) + 2 * page.max(1));
            }
            // Given up, and come back as one that is old.
            nearest.give_up(&BTreeSet::from(["198"]));
            nearest.take(Summary::new("198", "/w", 0));
            let (whole, behind, more) = nearest.finish();
            let mut expected: Vec<Place> = (0..200).filter(|n| *n != 198).map(place).collect();
            expected.push(Place {
                updated: 0,
                id: "198".into(),
            });
            expected.sort_by(|a, b| a.order().cmp(&b.order()));
            let (least, all) = (page.min(200).saturating_sub(1), whole.len());
            assert!((least..=page).contains(&all), "{all}: {page} {most}");
            let kept: Vec<Place> = whole.iter().map(Place::of).chain(behind).collect();
            assert_eq!(kept, expected[..kept.len()], "{page} {most}");
            assert_eq!(more, kept.len() < 200, "{page} {most}");
        }
    }

    #[test]
    fn a_list_goes_from_the_newest_to_the_oldest() {
        let place = |updated, id: &str| Place {
            updated,
            id: id.into(),
        };
        assert!(place(2, "b").is_before(&place(1, "a")));
        assert!(place(1, "a").is_before(&place(1, "b")));
        assert!(!place(1, "a").is_before(&place(1, "a")));
    }
}
