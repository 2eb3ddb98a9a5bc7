//! Plans (ACP page: agent plan). Each update holds the whole plan.

use alloc::string::String;
use alloc::vec::Vec;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use super::object::{OWN, names, object, parse, tagged, write_tagged};

object! {
    /// `plan`: all entries as they are now.
    Plan {
        /// The entries.
        "entries" entries: Vec<PlanEntry> = LenientListShown,
        ;
    }
}

object! {
    /// A step of a plan.
    PlanEntry {
        /// What is to be done.
        "content" content: String = Required,
        /// How important it is.
        "priority" priority: PlanEntryPriority = Required,
        /// How far it is.
        "status" status: PlanEntryStatus = Required,
        ;
    }
}

names! {
    /// How important a step is.
    PlanEntryPriority {
        /// Very.
        High = "high",
        /// Somewhat.
        Medium = "medium",
        /// Little.
        Low = "low",
    }
}

names! {
    /// How far a step is.
    PlanEntryStatus {
        /// Not begun.
        Pending = "pending",
        /// Begun.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
    }
}

object! {
    /// `plan_update`: one of several plans. Only for clients with the `plan` capability.
    PlanUpdate {
        /// The plan.
        "plan" plan: PlanUpdateContent = Required,
        ;
    }
}

/// A plan with an id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanUpdateContent {
    /// As steps.
    Items(PlanItems),
    /// As text.
    Markdown(PlanMarkdown),
}

object! {
    /// A plan as steps.
    PlanItems {
        /// Its id.
        "planId" plan_id: String = Required,
        /// The steps.
        "entries" entries: Vec<PlanEntry> = LenientListShown,
        ;
    }
}

object! {
    /// A plan as text.
    PlanMarkdown {
        /// Its id.
        "planId" plan_id: String = Required,
        /// The text.
        "content" content: String = Required,
        ;
        /// The file it is in, absolute.
        "path" path: Option<String> = Lenient,
    }
}

object! {
    /// `plan_removed`. Only for clients with the `plan` capability.
    PlanRemoved {
        /// The id of the plan.
        "planId" plan_id: String = Required,
        ;
    }
}

impl Serialize for PlanUpdateContent {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Items(plan) => write_tagged(out, "type", "items", plan),
            Self::Markdown(plan) => write_tagged(out, "type", "markdown", plan),
        }
    }
}

impl<'de> Deserialize<'de> for PlanUpdateContent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (raw, tag) = tagged(from, "type")?;
        match tag.as_deref() {
            Some("items") => parse(raw).map(Self::Items),
            Some("markdown") => parse(raw).map(Self::Markdown),
            Some(_) | None => Err(de::Error::custom(format_args!(
                "{OWN}expected a plan of type items or markdown"
            ))),
        }
    }
}
