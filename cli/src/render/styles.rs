//! The few styles there are. `anstream` takes them out again where they cannot be shown.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

/// Thoughts and other things of second rank.
pub const DIM: Style = Style::new().dimmed();
/// Names.
pub const BOLD: Style = Style::new().bold();
/// Done, added.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Failed, removed.
pub const BAD: Style = AnsiColor::Red.on_default();
/// Positions in a diff, questions.
pub const NOTE: Style = AnsiColor::Cyan.on_default();
/// Waiting, denied.
pub const WARN: Style = AnsiColor::Yellow.on_default();

/// `text` in `style`.
pub fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}
