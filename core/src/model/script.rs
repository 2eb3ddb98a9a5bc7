//! The scripted model: a JSON Lines file that says what a model answers. Knows no time.

use alloc::string::String;
use alloc::sync::Arc;

use thiserror::Error;

/// A parsed script. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script(Arc<Steps>);

#[derive(Debug, PartialEq, Eq)]
struct Steps {}

/// A line that is no step.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {reason}")]
#[non_exhaustive]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl Script {
    /// Parses the text of a script.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let _ = text;
        todo!()
    }

    /// The answers of one session, from the beginning.
    pub fn answers(&self) -> ScriptCursor {
        todo!()
    }
}

/// Where one session stands in a script.
#[derive(Clone, Debug)]
pub struct ScriptCursor {}

impl ScriptCursor {
    /// A prompt begins a turn; `texts` are its text blocks. The first branch whose text one of
    /// them contains is entered from its beginning.
    pub fn begin_turn<'t>(&mut self, texts: impl Iterator<Item = &'t str> + Clone) {
        let _ = texts;
        todo!()
    }

    /// What the next model call of this turn is answered with: `script ended` when nothing is
    /// left.
    pub fn next_answer(&mut self) -> ScriptAnswer {
        todo!()
    }

    /// Back to where a run really stopped.
    pub fn rewind(&mut self, position: Position) {
        let _ = position;
        todo!()
    }
}

/// A place in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {}

/// One answer of the script, with the answers its repeats would get.
#[derive(Clone, Debug)]
pub struct ScriptAnswer {}
