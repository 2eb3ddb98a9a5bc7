//! `!line`: a command line of the person's own, run in place of a turn. What may run is decided as for
//! the model's calls: that the person typed it allows nothing.

use super::super::Agent;
use super::super::content::Prompt;
use crate::ids::SessionKey;

impl Agent {
    /// Runs it; `links` says whether there are links in it, which no shell understands.
    pub(super) fn run_line(&mut self, key: SessionKey, prompt: &Prompt, line: &str, links: bool) {
        self.record_command(key, prompt);
        if line.is_empty() {
            let how = "Say !COMMAND to run a command line of your own.";
            return self.answer_command(key, how.into());
        }
        if links {
            let why = "Nothing was run: a link is no part of a command line. Write its path out.";
            return self.answer_command(key, why.into());
        }
        self.with_engine(key, |engine, cx| engine.run_line(cx, line));
    }
}
