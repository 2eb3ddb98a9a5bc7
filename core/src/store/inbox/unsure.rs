//! What clients asked for and the disk does not have yet: undone if it never will, so that what was
//! refused is not there. What turns did meanwhile has happened, and stays.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::Inbox;
use super::record::Change;

/// The changes that the disk may not have yet, from the first that a client asked for.
///
/// It is no part of what an inbox is: two that differ in it are the same to whoever looks.
#[derive(Clone, Debug, Default)]
pub(super) struct Unsure(Option<Box<Since>>);

#[derive(Clone, Debug)]
struct Since {
    /// The inbox before them.
    before: Inbox,
    changes: VecDeque<Unkept>,
    /// The change that is about to be made is one that a client asked for.
    asked: bool,
}

#[derive(Clone, Debug)]
struct Unkept {
    /// Of the inbox, with the change.
    revision: u64,
    asked: bool,
    change: Change,
}

impl PartialEq for Unsure {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Unsure {}

impl Unsure {
    /// A change is made.
    pub(super) fn follow(&mut self, revision: u64, change: &Change) {
        if let Some(since) = &mut self.0 {
            since.changes.push_back(Unkept {
                revision,
                asked: core::mem::take(&mut since.asked),
                change: change.clone(),
            });
        }
    }
}

impl Inbox {
    /// The next change is one that a client asks for.
    pub(super) fn doubt(&mut self) {
        if self.unsure.0.is_none() {
            // Its bodies are shared.
            let before = self.clone();
            self.unsure.0 = Some(Box::new(Since {
                before,
                changes: VecDeque::new(),
                asked: false,
            }));
        }
        if let Some(since) = &mut self.unsure.0 {
            since.asked = true;
        }
    }

    /// All that was changed up to this [revision](Self::revision) is on the disk.
    pub fn kept(&mut self, revision: u64) {
        let Some(since) = &mut self.unsure.0 else {
            return;
        };
        while let Some(first) = since.changes.front()
            && first.revision <= revision
        {
            since.before.apply(first.change.clone());
            since.changes.pop_front();
        }
        if !since.changes.iter().any(|change| change.asked) {
            self.unsure.0 = None;
        }
    }

    /// The journal cannot be written: what clients asked for since it could is undone, and the inbox is
    /// read-only until a [`renewal`](Self::renewal) is written. The first reason stays.
    pub fn lost(&mut self, why: impl Into<String>) {
        if let Some(since) = self.unsure.0.take() {
            let since = *since;
            let mut back = since.before;
            for change in since.changes.into_iter().filter(|change| !change.asked) {
                // What is about something that is not there any more does nothing.
                back.revision = change.revision - 1;
                back.apply(change.change);
            }
            back.revision = self.revision + 1;
            *self = back;
        }
        if self.read_only.is_none() {
            self.read_only = Some(why.into());
            self.lost = true;
        }
    }

    /// A whole new journal for an inbox that is [`lost`](Self::lost): it can be changed from here on, and
    /// is lost again if that cannot be written. None if it is not lost.
    pub fn renewal(&mut self) -> Option<Vec<u8>> {
        if !core::mem::take(&mut self.lost) {
            return None;
        }
        self.read_only = None;
        Some(self.rewrite())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Draft, Enqueued, Intent, NewItem};
    use super::*;
    use crate::limits::Limits;
    use alloc::string::ToString;

    fn add(inbox: &mut Inbox, id: &str) -> Enqueued {
        let new = NewItem {
            id: id.into(),
            intent: Intent::FollowUp,
            source: "acp".into(),
            key: Some(id.into()),
            draft: Draft::plain(id),
        };
        inbox.enqueue(1, new, false).expect("it is taken").answer
    }

    /// An inbox with two items, the first of which runs.
    fn inbox() -> Inbox {
        let mut inbox = Inbox::new("run", &Limits::default());
        add(&mut inbox, "a");
        add(&mut inbox, "b");
        let _ = inbox.begin(1, "a").expect("it waits");
        inbox.kept(inbox.revision());
        inbox
    }

    fn look(inbox: &Inbox) -> Vec<String> {
        let item = |item: &super::super::Item| {
            let text = item.body().text;
            alloc::format!("{} {} {text}", item.id, item.state.as_str())
        };
        let mut seen: Vec<_> = inbox.items().iter().map(item).collect();
        if inbox.is_paused() {
            seen.push("paused".into());
        }
        seen
    }

    #[test]
    fn what_was_refused_is_undone_and_what_a_turn_did_is_not() {
        type Act = fn(&mut Inbox);
        let asked: [(&str, Act); 6] = [
            ("add", |inbox| drop(add(inbox, "c"))),
            ("update", |inbox| {
                let _ = inbox
                    .update(2, "b", Draft::plain("other"))
                    .expect("it waits");
            }),
            ("delete", |inbox| {
                let _ = inbox.delete("b").expect("it waits");
            }),
            ("move", |inbox| {
                let _ = inbox.move_to(2, "b", 0).expect("it waits");
            }),
            ("pause", |inbox| {
                let _ = inbox.set_paused(true).expect("it can be");
            }),
            ("retry", |inbox| {
                let _ = inbox.retry(2, "b").expect("it is blocked");
            }),
        ];
        for (name, act) in asked {
            for kept in [false, true] {
                for turn_first in [false, true] {
                    let mut inbox = inbox();
                    if name == "retry" {
                        let code = super::super::BlockCode::OwnerInactive;
                        let _ = inbox.uncertain(2, "b", code, "why");
                    }
                    // What nobody doubts.
                    let mut without = inbox.clone();
                    let _ = without.finish("a");
                    if turn_first {
                        let _ = inbox.finish("a");
                    }
                    act(&mut inbox);
                    let revision = inbox.revision();
                    if !turn_first {
                        let _ = inbox.finish("a");
                    }
                    let with = look(&inbox);
                    let before = inbox.revision();
                    if kept {
                        inbox.kept(revision);
                    }
                    inbox.lost("the disk is full");
                    let expected = if kept { with } else { look(&without) };
                    let case = (name, kept, turn_first);
                    assert_eq!(look(&inbox), expected, "{case:?}");
                    let bytes: usize = inbox.items().iter().map(super::super::Item::bytes).sum();
                    assert_eq!(inbox.bytes(), bytes);
                    assert!(inbox.revision() >= before, "{case:?}");
                    assert_eq!(inbox.read_only(), Some("the disk is full"));
                    assert_eq!(inbox.next(), None);
                }
            }
        }
    }

    #[test]
    fn a_lost_inbox_is_changed_again_when_it_is_written_anew() {
        let mut inbox = inbox();
        add(&mut inbox, "c");
        assert_eq!(inbox.renewal(), None);
        for _ in 0..2 {
            inbox.lost("the disk is full");
            let _ = inbox.finish("a");
            let file = inbox.renewal().expect("it is lost");
            let again = super::super::reading::replayed(&file, "run", &Limits::default());
            assert_eq!(again, inbox);
            assert_eq!(look(&inbox), ["b queued b"]);
            assert_eq!(
                inbox.next().map(|item| item.id.to_string()),
                Some("b".into())
            );
        }
        // The key of what was refused is not taken.
        assert!(!add(&mut inbox, "c").idempotent);
        let mut other = Inbox::unreadable("run", "why", &Limits::default());
        other.lost("the disk is full");
        assert_eq!(
            other.renewal(),
            None,
            "what is not known is not overwritten"
        );
    }
}
