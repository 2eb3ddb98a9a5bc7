//! What a transcript shows of the items of an inbox: which began, how often, and how their turns
//! ended.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use crate::engine::record::{Author, Reason, Record};
use crate::store::inbox::{Claim, TurnEnd};

/// What a transcript shows, as far as it was read.
#[derive(Debug, Default)]
pub(in crate::agent) struct Claims {
    items: BTreeMap<String, (u32, Option<TurnEnd>)>,
    /// Items whose turn runs, or that were read in it.
    within: BTreeSet<String>,
    /// The turn did something.
    acted: bool,
    /// Something could not be read.
    incomplete: bool,
}

impl Claims {
    /// Takes in the next record.
    pub(in crate::agent) fn take_in(&mut self, record: &Record) {
        self.acted |= record.shows_model();
        if record.begins_turn().is_some() {
            self.within.clear();
            self.acted = false;
        }
        if let Record::User(user) = record {
            if let (Some(item), true) = (&user.item, user.from != Author::Host) {
                let claim = self.items.entry(item.clone()).or_default();
                *claim = (claim.0.saturating_add(1), None);
                self.within.insert(item.clone());
            }
        } else if let Record::End(end) = record {
            let end = match end.reason {
                Reason::EndTurn | Reason::MaxTokens | Reason::MaxTurnRequests | Reason::Refusal => {
                    Some(TurnEnd::Finished)
                }
                Reason::Cancelled => Some(TurnEnd::Cancelled),
                Reason::Failed => Some(TurnEnd::Failed {
                    passing: !self.acted,
                }),
                Reason::Interrupted => None,
            };
            for item in core::mem::take(&mut self.within) {
                if let Some(claim) = self.items.get_mut(&item) {
                    claim.1 = end;
                }
            }
        }
    }

    /// Something of the transcript could not be read: an item that is not found may have been in it.
    pub(in crate::agent) fn lack(&mut self) {
        self.incomplete = true;
    }

    /// What it shows of an item.
    pub(super) fn of(&self, item: &str) -> Claim {
        match self.items.get(item) {
            Some(&(times, end)) => Claim::Begun { times, end },
            None if self.incomplete => Claim::Unreadable,
            None => Claim::Absent,
        }
    }
}
