//! Questions on the terminal. Written to standard error, so that standard output stays clean.

use std::io::{self, BufRead as _, Write as _};

use crate::exit::Failure;
use crate::terminal::hidden_line;

/// A line of text; `proposal` if it is empty. Asked again while it is refused by `check`.
pub fn line(
    question: &str,
    proposal: Option<&str>,
    check: impl Fn(&str) -> Result<String, String>,
) -> Result<String, Failure> {
    loop {
        let mut out = anstream::stderr();
        let _ = match proposal {
            Some(proposal) => write!(out, "{question} [{proposal}]: "),
            None => write!(out, "{question}: "),
        };
        let _ = out.flush();
        let mut text = String::new();
        let read = io::stdin().lock().read_line(&mut text);
        if read.map_err(|e| Failure::failed(e.to_string()))? == 0 {
            return Err(ended());
        }
        let text = match (text.trim(), proposal) {
            ("", Some(proposal)) => proposal,
            (text, _) => text,
        };
        match check(text) {
            Ok(text) => return Ok(text),
            Err(why) => {
                let _ = writeln!(out, "{why}");
            }
        }
    }
}

/// A secret, not shown while it is typed.
pub fn secret(question: &str) -> Result<String, Failure> {
    let text = hidden_line(&format!("{question}: "))
        .map_err(|e| Failure::failed(format!("the key could not be read: {e}")))?;
    let text = text.ok_or_else(ended)?;
    Ok(text.trim().into())
}

fn ended() -> Failure {
    Failure::failed("input ended; nothing was written")
}
