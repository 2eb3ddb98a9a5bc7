//! What a tool is between its steps: what happens to it, what it works with, and the steps that wait
//! to be handed out. Knows nothing of which tools there are.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;

use crate::call::{Call, FileKind, Opened, Outcome};
use crate::error::{IoFault, IoKind};
use crate::permission::{Access, Action};
use crate::time::{Deadline, Instant};
use crate::tools::paths;
use crate::tools::state::ToolState;
use crate::tools::step::{Answer, Card, Diff, EditorText, Location, Proposal, Step, ToolOutcome};
use crate::tools::workspace::Workspace;

/// What a tool does between its steps. Steps go out by [`Context::flow`].
pub(in crate::tools) trait Work: Debug + Send + Sync {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>);

    /// The head of an HTTP answer.
    fn opened(&mut self, head: &Opened, cx: &mut Context<'_>) {
        let _ = (head, cx);
    }

    /// When it wants [`Event::Due`]; `opened` is when its open call began. Must move once served.
    fn deadline(&self, opened: Option<Instant>) -> Option<Deadline> {
        let _ = opened;
        None
    }
}

/// What happened.
#[derive(Debug)]
pub(in crate::tools) enum Event<'a> {
    Started,
    Permitted,
    Answered(Vec<Answer>),
    Bytes(&'a [u8]),
    Done(Outcome),
    Failed(IoFault),
    /// The deadline has come.
    Due,
    /// No call is open and no step is queued: perhaps something else has changed.
    Idle,
}

/// What a tool works with.
pub(in crate::tools) struct Context<'a> {
    pub(in crate::tools) now: Instant,
    pub(in crate::tools) ws: &'a Workspace,
    pub(in crate::tools) state: &'a mut ToolState,
    pub(in crate::tools) flow: &'a mut Flow,
    pub(in crate::tools) card: &'a Card,
}

impl Context<'_> {
    /// When the open call began.
    pub(in crate::tools) fn opened(&self) -> Option<Instant> {
        self.flow.opened
    }

    /// Whose text the news are, if it is an editor's and not the disk's.
    pub(in crate::tools) fn editor_text(&mut self) -> Option<EditorText> {
        self.flow.editor.take()
    }

    pub(in crate::tools) fn call(&mut self, call: Call) {
        self.flow.steps.push_back(Step::Call(call));
    }

    pub(in crate::tools) fn permit(&mut self, access: Access, diffs: Vec<Diff>) {
        self.flow.asking = true;
        self.flow.steps.push_back(Step::Permit(Proposal {
            action: Action::new(self.card.name.clone(), access),
            card: self.card.clone(),
            diffs,
            text: None,
        }));
    }

    pub(in crate::tools) fn succeed(&mut self, text: impl Into<String>) {
        self.end(ToolOutcome {
            ok: true,
            text: text.into(),
            ..ToolOutcome::default()
        });
    }

    pub(in crate::tools) fn fail(&mut self, why: impl Into<String>) {
        self.flow.fail(why.into());
    }

    pub(in crate::tools) fn end(&mut self, outcome: ToolOutcome) {
        self.flow.steps.push_back(Step::Done(outcome));
    }
}

/// The steps of a run that wait to be handed out, and what is open.
#[derive(Debug, Default)]
pub(in crate::tools) struct Flow {
    pub(in crate::tools) steps: VecDeque<Step>,
    /// How long the last call was open.
    pub(in crate::tools) closed_after: Option<core::time::Duration>,
    pub(in crate::tools) asking: bool,
    /// What the open call is about.
    pub(super) path: Option<String>,
    /// A root beneath which something was missed: perhaps it is gone itself.
    pub(super) missed: Option<String>,
    /// A root that is looked for, before the run ends as it would.
    pub(super) checking: Option<String>,
    pub(super) opened: Option<Instant>,
    /// What is known of the text that the open call brings.
    pub(super) editor: Option<EditorText>,
    pub(super) cancelled: bool,
    pub(super) over: bool,
}

impl Flow {
    pub(super) fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    pub(super) fn fail(&mut self, why: String) {
        self.steps.push_back(Step::Done(ToolOutcome {
            text: why,
            ..ToolOutcome::default()
        }));
    }

    /// A root that was looked for is there, or that is what has to be said.
    pub(super) fn checked(&mut self, event: &Event<'_>) {
        let Some(root) = self.checking.take() else {
            return;
        };
        let there = match event {
            Event::Done(Outcome::Resolved(it)) => {
                it.kind == FileKind::Directory && paths::clean(&it.real) == root
            }
            Event::Started
            | Event::Permitted
            | Event::Answered(_)
            | Event::Bytes(_)
            | Event::Done(_)
            | Event::Failed(_)
            | Event::Due
            | Event::Idle => false,
        };
        if let (false, Some(Step::Done(outcome))) = (there, self.steps.back_mut()) {
            outcome.text = format!(
                "The folder {root} of the workspace is gone, or something else has taken its \
                 place; nothing was done in it."
            );
        }
    }

    pub(super) fn cancel(&mut self, state: &mut ToolState) {
        if self.cancelled {
            return;
        }
        self.cancelled = true;
        self.missed = None;
        for step in self.steps.drain(..) {
            if let Step::Detach(job) = step {
                state.forget(job);
            }
        }
        if self.is_open() {
            self.steps.push_back(Step::Abort);
        } else {
            self.cancelled_with(None);
        }
    }

    pub(super) fn cancelled_with(&mut self, outcome: Option<&Outcome>) {
        let wrote = matches!(
            outcome,
            Some(Outcome::Written | Outcome::Removed | Outcome::Renamed)
        );
        let text = if wrote {
            "Cancelled by the user; the change had been made already."
        } else {
            "Cancelled by the user."
        };
        self.steps.push_back(Step::Done(ToolOutcome {
            text: text.into(),
            wrote,
            ..ToolOutcome::default()
        }));
    }
}

/// The path that was missed, if that is what happened; `path` is that of the open call.
pub(super) fn missed(event: &Event<'_>, path: Option<&str>) -> Option<String> {
    match event {
        Event::Done(Outcome::Resolved(it)) if it.kind == FileKind::Missing => {
            Some(paths::clean(&it.real))
        }
        Event::Failed(fault) if fault.kind == IoKind::NotFound => path.map(Into::into),
        Event::Done(_)
        | Event::Failed(_)
        | Event::Started
        | Event::Permitted
        | Event::Answered(_)
        | Event::Bytes(_)
        | Event::Due
        | Event::Idle => None,
    }
}

/// The path that a call is about.
pub(super) fn path_of(call: &Call) -> Option<&str> {
    match call {
        Call::Resolve { path }
        | Call::Read { path, .. }
        | Call::Remove { path, .. }
        | Call::Rename { from: path, .. }
        | Call::List { path, .. }
        | Call::ReadAt { path, .. }
        | Call::RemoveTree { path, .. }
        | Call::Lock { path, .. }
        | Call::Unlock { path } => Some(path),
        Call::Write(write) => Some(&write.path),
        Call::Search(search) => Some(&search.root),
        Call::Append(append) => Some(&append.path),
        Call::Process(process) => Some(&process.cwd),
        Call::Http(_) | Call::Reconfigure | Call::Custom(_) => None,
    }
}

/// A tool whose arguments were good.
pub(in crate::tools) struct Begun {
    pub(in crate::tools) work: Box<dyn Work>,
    /// What it is about, for the title.
    pub(in crate::tools) subject: String,
    pub(in crate::tools) locations: Vec<Location>,
}

impl Begun {
    pub(in crate::tools) fn new(work: impl Work + 'static, subject: impl Into<String>) -> Self {
        Self {
            work: Box::new(work),
            subject: subject.into(),
            locations: Vec::new(),
        }
    }

    pub(in crate::tools) fn at(mut self, path: &str, line: Option<u32>) -> Self {
        self.locations.push(Location::new(path, line));
        self
    }
}
