//! The terminal, if there is one: whether a person is at it, and lines that are not shown.

use std::io::{self, IsTerminal as _, Write as _};

/// Whether there is somebody who sees a question and can answer it.
pub fn somebody_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Columns of the terminal on standard output, if that is one.
#[cfg(unix)]
pub fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// Columns of the terminal on standard output; not known here.
#[cfg(not(unix))]
pub fn width() -> Option<usize> {
    None
}

/// Asks for a line that is not shown while it is typed; none if the person gave up.
#[cfg(unix)]
pub fn hidden_line(question: &str) -> io::Result<Option<String>> {
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    struct Restore(Termios);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        }
    }

    const CTRL_C: char = '\u{3}';
    let before = tcgetattr(io::stdin())?;
    let mut hidden = before.clone();
    // Ctrl-C as a character, so that it cannot leave a terminal behind that shows nothing.
    hidden.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
    let restore = Restore(before);
    tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
    // Only now: nothing that answers the question is shown.
    let _ = write!(io::stderr(), "{question}");
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    drop(restore);
    let _ = writeln!(io::stderr());
    match read? {
        0 => Ok(None),
        _ if line.contains(CTRL_C) => Ok(None),
        _ => Ok(Some(line)),
    }
}

/// Asks for a line that is not shown while it is typed; none if the person gave up.
#[cfg(not(unix))]
pub fn hidden_line(question: &str) -> io::Result<Option<String>> {
    let _ = write!(io::stderr(), "{question}");
    match rpassword::read_password() {
        Ok(line) => Ok(Some(line)),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}
