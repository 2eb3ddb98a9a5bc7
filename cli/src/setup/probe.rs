//! One small request, to see that what was written works.

use std::path::Path;

use super::files::Entry;

/// Sends it; what went wrong is for a person.
pub fn probe(_home: &Path, _entry: &Entry) -> Result<(), String> {
    Err("not built in yet".into())
}
