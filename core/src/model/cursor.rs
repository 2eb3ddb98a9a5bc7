//! Where a session stands in a script, and which answers its model calls get. Knows no time.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::retry::{Cause, Retries};
use super::script::{End, Load, LoadText, Scripted, Step, Steps};
use crate::limits::Limits;

/// Where one session stands in a script.
#[derive(Clone, Debug)]
pub struct ScriptCursor {
    script: Arc<Steps>,
    limits: Limits,
    /// The next answer before any branch.
    plain: usize,
    /// The branch of this turn, and its next answer.
    branch: Option<(usize, usize)>,
    /// What the prompt of this turn asks for.
    plan: Option<Planned>,
    /// The text of the last load: making it again would cost more than sending it.
    last_text: Option<(LoadText, Arc<str>)>,
}

/// A place in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    branch: Option<usize>,
    next: usize,
}

/// One answer of the script, with the answers its repeats would get.
#[derive(Clone, Debug)]
pub struct ScriptAnswer {
    pub(super) attempts: Vec<Attempt>,
    pub(super) plan: Option<Planned>,
}

/// One attempt of a scripted answer.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    script: Arc<Steps>,
    /// Branch and number; `None`: nothing is left.
    at: Option<(Option<usize>, usize)>,
    /// Where the script stands behind it.
    pub(super) after: Position,
}

/// A load that is ready to go.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) load: Load,
    pub(super) text: Arc<str>,
}

impl ScriptCursor {
    pub(super) fn new(script: Arc<Steps>, limits: &Limits) -> Self {
        Self {
            script,
            limits: limits.clone(),
            plain: 0,
            branch: None,
            plan: None,
            last_text: None,
        }
    }

    /// A prompt begins a turn; `texts` are its text blocks. The first branch whose text one of
    /// them contains is entered from its beginning. The first block that is a JSON object is the
    /// plan of a `plan` step.
    pub fn begin_turn<'t>(&mut self, texts: impl Iterator<Item = &'t str> + Clone) {
        let branches = &self.script.branches;
        self.branch = branches
            .iter()
            .position(|(part, _)| texts.clone().any(|text| text.contains(part.as_str())))
            .map(|branch| (branch, 0));
        self.plan = None;
        let answers = self.answers();
        if answers
            .iter()
            .any(|answer| answer.steps.contains(&Step::Plan))
        {
            let mut loads = texts
                .filter(|text| text.trim_start().starts_with('{'))
                .filter_map(|text| serde_json::from_str::<Load>(text).ok());
            self.plan = loads.next().map(|load| self.planned(load));
        }
    }

    /// What the next model call of this turn is answered with: `script ended` when nothing is
    /// left. A last answer with a `plan` is given again and again.
    pub fn next_answer(&mut self) -> ScriptAnswer {
        let mut retries = Retries::new(self.limits.model_retries, 0, &self.limits);
        let mut attempts = Vec::new();
        loop {
            let attempt = self.take();
            let cause = attempt.scripted().and_then(|answer| match &answer.end {
                End::Error { status, .. } => Some(Cause::Status(*status)),
                End::Cut => Some(Cause::Cut),
                End::Finish(_) | End::Hang => None,
            });
            attempts.push(attempt);
            if cause.and_then(|cause| retries.next(cause, None)).is_none() {
                return ScriptAnswer {
                    attempts,
                    plan: self.plan.clone(),
                };
            }
        }
    }

    /// Another session took what it said from the same script: the steps before any branch go on
    /// where that one stands.
    pub fn go_on_from(&mut self, other: &Self) {
        self.plain = other.plain;
    }

    /// Back to where a run really stopped.
    pub fn rewind(&mut self, position: Position) {
        match (position.branch, &mut self.branch) {
            (None, _) => self.plain = position.next,
            (Some(branch), Some((current, next))) if branch == *current => *next = position.next,
            // The branch of an earlier turn.
            (Some(_), _) => {}
        }
    }

    fn answers(&self) -> &[Scripted] {
        match self.branch {
            Some((branch, _)) => &self.script.branches[branch].1,
            None => &self.script.plain,
        }
    }

    fn take(&mut self) -> Attempt {
        let answers = self.answers();
        let (branch, next) = match self.branch {
            Some((branch, next)) => (Some(branch), next),
            None => (None, self.plain),
        };
        let repeated = answers
            .last()
            .filter(|answer| next >= answers.len() && answer.steps.contains(&Step::Plan));
        let at = match repeated {
            Some(_) => Some(answers.len() - 1),
            None => (next < answers.len()).then_some(next),
        };
        let next = at.map_or(next, |at| at + 1);
        match &mut self.branch {
            Some((_, place)) => *place = next,
            None => self.plain = next,
        }
        Attempt {
            script: self.script.clone(),
            at: at.map(|at| (branch, at)),
            after: Position { branch, next },
        }
    }

    fn planned(&mut self, load: Load) -> Planned {
        let same = self
            .last_text
            .as_ref()
            .filter(|(of, text)| *of == load.text && text.len() == load.size);
        if let Some((_, text)) = same {
            return Planned {
                load,
                text: text.clone(),
            };
        }
        let planned = Planned::new(load, &self.limits);
        self.last_text = Some((load.text, planned.text.clone()));
        planned
    }
}

impl Planned {
    /// The load with its text; if that is too long, one chunk that says so.
    pub(super) fn new(load: Load, limits: &Limits) -> Self {
        let max = limits.max_load_chunk;
        if load.size <= max {
            return Self {
                load,
                text: load_text(load),
            };
        }
        let told = format!(
            "chunks of {} bytes were asked for; {max} at most",
            load.size
        );
        Self {
            load: Load {
                chunks: 1,
                ..Load::default()
            },
            text: told.into(),
        }
    }
}

impl Attempt {
    /// What it says and how it ends; `None`: nothing is left.
    pub(super) fn scripted(&self) -> Option<&Scripted> {
        let (branch, at) = self.at?;
        let answers = match branch {
            Some(branch) => &self.script.branches[branch].1,
            None => &self.script.plain,
        };
        answers.get(at)
    }
}

/// 64 bytes that JSON and UTF-8 have something to do with.
const MIXED: &str = "said \"so\"\n\tà la carte, 10 € \\ o/, 漢字かな 😀 or ß...\n";

/// The text of one chunk: exactly `size` bytes, a broken character at its end made full stops.
fn load_text(load: Load) -> Arc<str> {
    let block = match load.text {
        LoadText::Plain => "abcdefghijklmnopqrstuvwxyz",
        LoadText::Mixed => MIXED,
    };
    let mut text = String::with_capacity(load.size);
    while text.len() + block.len() <= load.size {
        text.push_str(block);
    }
    text.push_str(crate::wire::text::cut(block, load.size - text.len()));
    while text.len() < load.size {
        text.push('.');
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_load_has_exactly_its_size() {
        assert_eq!(MIXED.len(), 64);
        for size in 0..200 {
            for text in [LoadText::Plain, LoadText::Mixed] {
                let load = Load {
                    size,
                    text,
                    ..Load::default()
                };
                let text = load_text(load);
                assert_eq!(text.len(), size);
                assert_eq!(
                    text.contains('\n'),
                    load.text == LoadText::Mixed && size > 9
                );
            }
        }
    }
}
