//! A sign of life while nothing else is printed, on terminals only.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The spinner; hidden for good where standard output or standard error is no terminal.
pub struct Spinner {
    may: bool,
    bar: Option<ProgressBar>,
}

impl Spinner {
    /// A spinner that is not shown yet.
    pub fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            may: !dumb && std::io::stdout().is_terminal() && std::io::stderr().is_terminal(),
            bar: None,
        }
    }

    /// A spinner that is never shown.
    pub fn never() -> Self {
        Self {
            may: false,
            bar: None,
        }
    }

    /// Shows it with `what` is waited for. The cursor must be at the beginning of a line.
    pub fn show(&mut self, what: &str) {
        if !self.may {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {msg:.dim}") {
                bar.set_style(style);
            }
            bar
        });
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
    }

    /// Takes it away, before anything else is printed.
    pub fn hide(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.hide();
    }
}
