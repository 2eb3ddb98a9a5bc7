//! Standard output and standard error for people. A closed pipe is no reason to panic.

use std::fmt;
use std::io::Write as _;

/// A line on standard output. If nobody reads it any more, it is dropped.
pub fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(anstream::stdout(), "{line}");
}

/// A line on standard error.
pub fn warn(line: fmt::Arguments<'_>) {
    let _ = writeln!(anstream::stderr(), "{line}");
}
