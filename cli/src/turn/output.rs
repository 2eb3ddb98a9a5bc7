//! Where a turn is printed. A reader that is gone is noticed, not a reason to panic.

use std::io::{self, IsTerminal as _, Write as _};

use reasonix_core::protocol::schema::{SessionUpdate, ToolCallUpdate};

use super::lines::Line;
use super::spinner::Spinner;
use crate::render::screen::Screen;
use crate::render::styles::{DIM, NOTE, styled};
use crate::render::text::safe;

/// How a turn is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// For people.
    All,
    /// The agent's message alone.
    Answer,
    /// One JSON object a line.
    Json,
}

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From us to the agent.
    ToAgent,
    /// From the agent to us.
    ToClient,
}

/// Prints a line of JSON.
///
/// # Errors
///
/// If it cannot be written; what that is like has nothing to do with the line.
pub fn json_line(line: &Line<'_>) -> io::Result<()> {
    let mut text = serde_json::to_vec(line).expect("strings and numbers only");
    text.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush())
}

/// Standard output as a turn uses it.
pub struct Output {
    view: View,
    frames: bool,
    screen: Screen,
    spinner: Spinner,
    held: String,
    /// Why nothing can be written any more, for people.
    closed: Option<String>,
}

impl Output {
    /// For a turn in `cwd`.
    pub fn new(view: View, frames: bool, cwd: &str) -> Self {
        Self {
            view,
            frames,
            screen: Screen::new(cwd, view == View::Answer),
            spinner: match (view, frames) {
                (View::All, false) => Spinner::new(),
                (View::All | View::Answer | View::Json, _) => Spinner::never(),
            },
            held: String::new(),
            closed: None,
        }
    }

    /// Why nothing can be written any more; none: it can.
    pub fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    fn wrote(&mut self, result: &io::Result<()>) {
        if let Err(error) = result {
            let unread = error.kind() == io::ErrorKind::BrokenPipe;
            self.closed.get_or_insert_with(|| match unread {
                true => "nobody reads standard output any more".into(),
                false => format!("cannot write to standard output: {error}"),
            });
        }
    }

    /// Shows an update.
    pub fn update(&mut self, update: &SessionUpdate) {
        if self.view == View::Json {
            return self.json(&Line::Update { update });
        }
        let text = self.screen.update(update);
        let streams = matches!(
            update,
            SessionUpdate::AgentMessageChunk(_) | SessionUpdate::AgentThoughtChunk(_)
        );
        if self.frames && streams {
            // Between frames a piece of a sentence cannot be read: it comes as a whole.
            self.held.push_str(&text);
        } else {
            self.release();
            self.print(&text);
        }
    }

    /// Shows the person what a card is about.
    pub fn card(&mut self, call: &ToolCallUpdate) {
        self.release();
        let shared = self.view == View::All && io::stdout().is_terminal();
        let text = self.screen.card(call, shared);
        if shared {
            self.print(&text);
        } else {
            self.ask(&text);
        }
    }

    /// A question to the person, seen even if standard output is a file.
    pub fn ask(&mut self, text: &str) {
        self.spinner.hide();
        let mut err = anstream::stderr();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// A line of JSON, in that view only.
    pub fn json(&mut self, line: &Line<'_>) {
        if self.view != View::Json {
            return;
        }
        self.wrote(&json_line(line));
    }

    /// A frame of the protocol, its line end taken off.
    pub fn frame(&mut self, way: Way, frame: &[u8]) {
        if !self.frames {
            return;
        }
        let arrow = match way {
            Way::ToAgent => styled(NOTE, "client → agent"),
            Way::ToClient => styled(NOTE, "agent → client"),
        };
        let frame = String::from_utf8_lossy(frame);
        let text = format!("{arrow} {}\n", styled(DIM, safe(&frame)));
        self.print(&text);
    }

    /// A sign that something is going on.
    pub fn wait(&mut self, what: &str) {
        if self.screen.at_line_start() {
            match self.screen.running() {
                Some(running) => self.spinner.show(&running),
                None => self.spinner.show(what),
            }
        }
    }

    /// The end of the turn; `hint`: how to go on, for a person at a terminal.
    pub fn end(&mut self, hint: Option<&str>) {
        self.release();
        if self.view == View::Json {
            return;
        }
        let mut text = self.screen.close_line();
        if let (View::All, Some((used, size))) = (self.view, self.screen.usage())
            && used > 0
        {
            text.push_str(&styled(DIM, format_args!("{used} of {size} tokens in use")));
            text.push('\n');
        }
        if let (View::All, Some(hint)) = (self.view, hint)
            && io::stdout().is_terminal()
        {
            text.push_str(&styled(DIM, hint));
            text.push('\n');
        }
        self.print(&text);
        self.spinner.hide();
    }

    /// A line on standard error between what is printed.
    pub fn warn(&mut self, text: &str) {
        self.release();
        let line = self.screen.close_line();
        self.print(&line);
        self.ask(&format!("{text}\n"));
    }

    fn release(&mut self) {
        if !self.held.is_empty() {
            let mut text = std::mem::take(&mut self.held);
            text.push_str(&self.screen.close_line());
            self.print(&text);
        }
    }

    fn print(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.spinner.hide();
        let mut out = anstream::stdout();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        self.wrote(&written);
    }
}
