//! Path patterns of rules.

use alloc::string::String;

/// A pattern for paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern(String);
