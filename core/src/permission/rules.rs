//! The rules of `[permissions]`: read once, then asked.

use alloc::string::String;

use thiserror::Error;

use crate::settings::Permissions;

/// The rules of `[permissions]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {}

impl Rules {
    /// Reads the rules. `home` is the person's home directory, for patterns that begin with `~/`.
    pub fn parse(permissions: &Permissions, home: Option<&str>) -> Result<Self, RuleError> {
        let _ = (permissions, home);
        todo!()
    }
}

/// A rule that cannot be understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("permissions.{list}: `{rule}`: {why}")]
pub struct RuleError {
    /// `allow`, `ask` or `deny`.
    pub list: &'static str,
    /// The rule as it stands in the file.
    pub rule: String,
    /// What is wrong with it.
    pub why: String,
}
