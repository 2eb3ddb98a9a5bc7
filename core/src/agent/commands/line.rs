//! `!line`: a command line of the person's own, run in place of a turn. What may run is decided as for
//! the model's calls: that the person typed it allows nothing.

use super::super::Agent;
use super::super::content::Prompt;
use crate::ids::SessionKey;

impl Agent {
    /// Runs it, without the links and files of its prompt, which no shell understands. With a link
    /// among its words it would be another line, and does not run.
    pub(super) fn run_line(&mut self, key: SessionKey, prompt: &Prompt, line: &str) {
        self.record_command(key, prompt);
        let links = prompt.typed.as_ref().is_some_and(|it| !it.links.is_empty());
        if links {
            let why = "Nothing was run: a link is no part of a command line. Write its path out.";
            return self.answer_command(key, why.into());
        }
        self.say_unused(key, prompt, "a command line");
        if line.is_empty() {
            let how = "Say !COMMAND to run a command line of your own.";
            return self.answer_command(key, how.into());
        }
        self.with_engine(key, |engine, cx| engine.run_line(cx, line));
    }
}
