//! Who may do what: postures, the ceiling, rules, grants, and one pure decision. Knows nothing of
//! the protocol or of tools: a tool describes what it is about to do as an [`Action`].
//!
//! The order is deny > ask > allow > posture. Deny rules hold under every posture. A posture and
//! the ceiling meet, so nothing a session can say raises it. What is not understood is not
//! covered: a rule or a grant that allows applies only to what it names.

mod action;
mod decide;
mod grants;
mod pattern;
mod posture;
mod rules;
mod served;
pub mod shell;

pub use action::{Access, Action, Target};
pub use decide::{Gate, PLANNING, Verdict, decide};
pub use grants::{Grant, Grants};
pub use pattern::PathPattern;
pub use posture::{Ceiling, ModeError, PermissionMode, Posture};
pub use rules::{RuleError, Rules};
