//! Whether there is a person at a terminal.

use std::io::{self, IsTerminal as _};

/// Whether there is somebody who sees a question and can answer it.
pub fn somebody_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
