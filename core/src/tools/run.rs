//! One tool call from its arguments to its result: what all tools have in common.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;

use super::args::{self, Args};
use super::catalogue::{self, Class};
use super::kind::ToolKind;
use super::state::ToolState;
use super::step::{Answer, Card, Diff, EditorText, Location, Proposal, Step, ToolOutcome};
use super::workspace::Workspace;
use super::{
    add_root, bash, change, entry, external, goal, look, paths, session, skill, task, text, web,
};
use crate::call::{Call, FileKind, News, Opened, Outcome};
use crate::error::{IoFault, IoKind};
use crate::permission::{Access, Action};
use crate::secret::Secrets;
use crate::time::{Deadline, Instant};

/// One tool call. Its parent drives it: [`next_step`](Self::next_step) until
/// [`Step::Wait`] or [`Step::Done`], after every input, after news of any background job, and when
/// its deadline has come.
#[derive(Debug)]
pub struct ToolRun {
    card: Card,
    class: Class,
    work: Box<dyn Work>,
    flow: Flow,
    window: usize,
    max_result: usize,
    secrets: Secrets,
    begun: bool,
    waiting: Option<Reply>,
}

impl ToolRun {
    /// Begins a call. Never fails: an unknown tool or bad arguments make a run that is `Done` with
    /// the reason at its first step.
    pub fn start(name: &str, arguments: &str, ws: &Workspace) -> Self {
        let mut shown_name = text::one_line(name, ws.limits.max_title);
        if shown_name.is_empty() {
            shown_name.push_str("(no name)");
        }
        let mut card = Card {
            title: shown_name.clone(),
            name: shown_name,
            kind: ToolKind::Other,
            locations: Vec::new(),
            raw_input: args::shown(arguments, ws.limits.max_raw_string),
        };
        let tool = catalogue::find(name);
        let elsewhere = external::place(name, ws).filter(|_| tool.is_none());
        let class = match tool {
            Some(tool) => tool.class,
            None if elsewhere.is_some() => Class::Writer,
            None => Class::Reader,
        };
        card.kind = tool.map_or(ToolKind::Other, |tool| tool.kind);
        let work = match Args::parse(arguments).and_then(|args| match elsewhere {
            // The text itself goes on: its members stay in their order.
            Some(place) => Ok(external::external(place, name, arguments)),
            None => begin(name, &args, ws),
        }) {
            Ok(begun) => {
                if !begun.subject.is_empty() {
                    let title = format!("{} {}", card.name, begun.subject);
                    card.title = text::one_line(&title, ws.limits.max_title);
                }
                card.locations = begun.locations;
                begun.work
            }
            Err(why) => Box::new(Refused(format!("{}: {why}", card.name))),
        };
        card.redact(&ws.secrets);
        Self {
            card,
            class,
            work,
            flow: Flow::default(),
            window: ws.limits.call_window,
            max_result: ws.limits.max_tool_result,
            secrets: ws.secrets.clone(),
            begun: false,
            waiting: None,
        }
    }

    /// What to show of the call from the beginning.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// What it does to the world: readers may run beside other readers. An unknown tool is a
    /// reader, since it does nothing.
    pub fn class(&self) -> Class {
        self.class
    }

    /// What must happen next.
    pub fn next_step(&mut self, now: Instant, ws: &Workspace, state: &mut ToolState) -> Step {
        if self.flow.over {
            return Step::Wait;
        }
        if let Some(reply) = self.waiting.take() {
            self.flow.missed = None;
            match reply {
                Reply::Permitted => self.give(now, Event::Permitted, ws, state),
                Reply::Denied(why) => self.flow.fail(format!("Not allowed: {why}")),
                Reply::Answered(answers) => self.give(now, Event::Answered(answers), ws, state),
                Reply::Cancelled => self.flow.cancel(state),
            }
        }
        if !self.begun && self.flow.steps.is_empty() {
            self.begun = true;
            self.give(now, Event::Started, ws, state);
        }
        if self.deadline().is_some_and(|deadline| deadline.at <= now) {
            self.give(now, Event::Due, ws, state);
        }
        if self.flow.steps.is_empty() && !self.flow.is_open() {
            self.give(now, Event::Idle, ws, state);
        }
        if self.flow.checking.is_some() && !self.flow.cancelled {
            return Step::Wait;
        }
        match self.flow.steps.pop_front() {
            Some(Step::Call(call)) => {
                self.flow.path = path_of(&call).map(Into::into);
                self.flow.editor = None;
                self.flow.opened = Some(now);
                Step::Call(call)
            }
            Some(step @ Step::CallServer { .. }) => {
                self.flow.path = None;
                self.flow.opened = Some(now);
                step
            }
            Some(Step::Detach(job)) => {
                self.flow.opened = None;
                Step::Detach(job)
            }
            Some(Step::Done(outcome)) if !outcome.ok && self.flow.missed.is_some() => {
                let root = self.flow.missed.take().unwrap_or_default();
                self.flow.steps.push_back(Step::Done(outcome));
                self.flow.opened = Some(now);
                self.flow.checking = Some(root.clone());
                Step::Call(Call::Resolve { path: root })
            }
            Some(Step::Done(mut outcome)) => {
                self.flow.over = true;
                outcome.redact(&self.secrets);
                outcome.text = text::cut_middle(outcome.text, self.max_result);
                Step::Done(outcome)
            }
            Some(Step::Progress(mut shown)) => {
                self.secrets.redact_piece(&mut shown);
                Step::Progress(shown)
            }
            Some(Step::Permit(mut proposal)) => {
                proposal.redact(&self.secrets);
                Step::Permit(proposal)
            }
            Some(step) => step,
            None => Step::Wait,
        }
    }

    /// Takes news of the open call. Ignored if there is none.
    pub fn handle_news(
        &mut self,
        now: Instant,
        news: News<'_>,
        ws: &Workspace,
        state: &mut ToolState,
    ) {
        if !self.flow.is_open() || self.flow.over {
            return;
        }
        let event = match news {
            News::Bytes { bytes, .. } => Event::Bytes(bytes),
            News::Done(outcome) => Event::Done(outcome),
            News::Failed(fault) => Event::Failed(fault),
            News::Opened(head) => {
                if !self.flow.cancelled && self.flow.checking.is_none() {
                    let mut cx = Context {
                        now,
                        ws,
                        state,
                        flow: &mut self.flow,
                        card: &self.card,
                    };
                    self.work.opened(&head, &mut cx);
                }
                return;
            }
            News::Fed(_) => return,
        };
        if self.flow.checking.is_some() && !self.flow.cancelled {
            if let Event::Done(_) | Event::Failed(_) = &event {
                self.flow.opened = None;
                self.flow.checked(&event);
            }
            return;
        }
        // A command says itself that its folder is gone.
        let files = self.class != Class::Executor && !self.flow.cancelled;
        if let Some(path) = missed(&event, self.flow.path.as_deref()).filter(|_| files) {
            let mut roots = ws.roots.iter();
            let root = roots.find(|root| paths::is_within(&path, root));
            self.flow.missed = root.cloned();
        }
        if matches!(event, Event::Done(_) | Event::Failed(_)) {
            self.flow.closed_after = self.flow.opened.take().map(|at| now.since(at));
            // An abort that was not handed out yet has nothing left to abort.
            self.flow.steps.retain(|step| *step != Step::Abort);
        }
        if !self.flow.cancelled {
            self.give(now, event, ws, state);
            return;
        }
        match event {
            Event::Done(outcome) => self.flow.cancelled_with(Some(&outcome)),
            Event::Failed(_) => self.flow.cancelled_with(None),
            Event::Started
            | Event::Permitted
            | Event::Answered(_)
            | Event::Bytes(_)
            | Event::Due
            | Event::Idle => {}
        }
    }

    /// The file that the open call reads was given by an editor, and is not so on the disk. To be said
    /// before the news of it.
    pub fn editor_shows(&mut self, text: EditorText) {
        if self.flow.is_open() {
            self.flow.editor = Some(text);
        }
    }

    /// The gate or the user allowed what [`Step::Permit`] proposed.
    pub fn permitted(&mut self) {
        self.reply(Reply::Permitted);
    }

    /// The gate or the user did not. The run ends without having done anything.
    pub fn denied(&mut self, why: &str) {
        self.reply(Reply::Denied(why.into()));
    }

    /// The user answered what [`Step::Ask`] asked: one answer a question, in order. Fewer count as
    /// unanswered.
    pub fn answered(&mut self, answers: Vec<Answer>) {
        self.reply(Reply::Answered(answers));
    }

    /// The turn is cancelled: an open call is aborted, nothing more is started, and the run ends
    /// when that call has settled, at once if there is none.
    pub fn cancel(&mut self) {
        self.waiting = Some(Reply::Cancelled);
    }

    /// The result of a run that has ended but was not asked for it yet. For a parent that will ask
    /// no more.
    pub fn take_result(&mut self) -> Option<ToolOutcome> {
        if self.flow.over || self.flow.is_open() {
            return None;
        }
        let undone = |step: &Step| {
            matches!(
                step,
                Step::Call(_) | Step::CallServer { .. } | Step::Detach(_)
            )
        };
        if self.flow.steps.iter().any(undone) {
            return None;
        }
        let Some(Step::Done(mut outcome)) = self.flow.steps.pop_back() else {
            return None;
        };
        self.flow.over = true;
        outcome.redact(&self.secrets);
        outcome.text = text::cut_middle(outcome.text, self.max_result);
        Some(outcome)
    }

    /// Takes the passing of time: what is due comes with the next step.
    pub fn handle_timeout(&mut self, _now: Instant) {}

    /// When it wants to be woken.
    pub fn deadline(&self) -> Option<Deadline> {
        let idle = self.flow.cancelled || self.flow.checking.is_some();
        if self.flow.over || idle || !self.begun {
            return None;
        }
        self.work.deadline(self.flow.opened)
    }

    /// How many bytes its open call may deliver now.
    pub fn room(&self) -> usize {
        if self.flow.is_open() { self.window } else { 0 }
    }

    /// Whether it has an open call.
    pub fn has_open_call(&self) -> bool {
        self.flow.is_open()
    }

    fn reply(&mut self, reply: Reply) {
        // An answer counts once, when one is waited for, and never after a cancel.
        if self.flow.asking && self.waiting.is_none() && !self.flow.cancelled {
            self.flow.asking = false;
            self.waiting = Some(reply);
        }
    }

    fn give(&mut self, now: Instant, event: Event<'_>, ws: &Workspace, state: &mut ToolState) {
        let mut cx = Context {
            now,
            ws,
            state,
            flow: &mut self.flow,
            card: &self.card,
        };
        self.work.handle(event, &mut cx);
    }
}

#[derive(Debug)]
enum Reply {
    Permitted,
    Denied(String),
    Answered(Vec<Answer>),
    Cancelled,
}

/// What a tool does between its steps. Steps go out by [`Context::flow`].
pub(super) trait Work: Debug + Send + Sync {
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
pub(super) enum Event<'a> {
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
pub(super) struct Context<'a> {
    pub(super) now: Instant,
    pub(super) ws: &'a Workspace,
    pub(super) state: &'a mut ToolState,
    pub(super) flow: &'a mut Flow,
    pub(super) card: &'a Card,
}

impl Context<'_> {
    /// When the open call began.
    pub(super) fn opened(&self) -> Option<Instant> {
        self.flow.opened
    }

    /// Whose text the news are, if it is an editor's and not the disk's.
    pub(super) fn editor_text(&mut self) -> Option<EditorText> {
        self.flow.editor.take()
    }

    pub(super) fn call(&mut self, call: Call) {
        self.flow.steps.push_back(Step::Call(call));
    }

    pub(super) fn permit(&mut self, access: Access, diffs: Vec<Diff>) {
        self.flow.asking = true;
        self.flow.steps.push_back(Step::Permit(Proposal {
            action: Action::new(self.card.name.clone(), access),
            card: self.card.clone(),
            diffs,
            text: None,
        }));
    }

    pub(super) fn succeed(&mut self, text: impl Into<String>) {
        self.end(ToolOutcome {
            ok: true,
            text: text.into(),
            ..ToolOutcome::default()
        });
    }

    pub(super) fn fail(&mut self, why: impl Into<String>) {
        self.flow.fail(why.into());
    }

    pub(super) fn end(&mut self, outcome: ToolOutcome) {
        self.flow.steps.push_back(Step::Done(outcome));
    }
}

/// The steps of a run that wait to be handed out, and what is open.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) steps: VecDeque<Step>,
    /// How long the last call was open.
    pub(super) closed_after: Option<core::time::Duration>,
    pub(super) asking: bool,
    /// What the open call is about.
    path: Option<String>,
    /// A root beneath which something was missed: perhaps it is gone itself.
    missed: Option<String>,
    /// A root that is looked for, before the run ends as it would.
    checking: Option<String>,
    opened: Option<Instant>,
    /// What is known of the text that the open call brings.
    editor: Option<EditorText>,
    cancelled: bool,
    over: bool,
}

impl Flow {
    fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    fn fail(&mut self, why: String) {
        self.steps.push_back(Step::Done(ToolOutcome {
            text: why,
            ..ToolOutcome::default()
        }));
    }

    /// A root that was looked for is there, or that is what has to be said.
    fn checked(&mut self, event: &Event<'_>) {
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

    fn cancel(&mut self, state: &mut ToolState) {
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

    fn cancelled_with(&mut self, outcome: Option<&Outcome>) {
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
fn missed(event: &Event<'_>, path: Option<&str>) -> Option<String> {
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
fn path_of(call: &Call) -> Option<&str> {
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
        Call::Http(_) | Call::Reconfigure | Call::Custom { .. } => None,
    }
}

/// A tool whose arguments were good.
pub(super) struct Begun {
    pub(super) work: Box<dyn Work>,
    /// What it is about, for the title.
    pub(super) subject: String,
    pub(super) locations: Vec<Location>,
}

impl Begun {
    pub(super) fn new(work: impl Work + 'static, subject: impl Into<String>) -> Self {
        Self {
            work: Box::new(work),
            subject: subject.into(),
            locations: Vec::new(),
        }
    }

    pub(super) fn at(mut self, path: &str, line: Option<u32>) -> Self {
        self.locations.push(Location::new(path, line));
        self
    }
}

fn begin(name: &str, args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    match name {
        "read_file" => look::read_file(args, ws),
        "ls" => look::ls(args, ws),
        "glob" => look::glob(args, ws),
        "grep" => look::grep(args, ws),
        "write_file" => change::write_file(args, ws),
        "edit_file" => change::edit_file(args, ws),
        "multi_edit" => change::multi_edit(args, ws),
        "notebook_edit" => change::notebook_edit(args, ws),
        "move_file" => entry::move_file(args, ws),
        "delete_file" => entry::delete_file(args, ws),
        "bash" => bash::bash(args, ws),
        "bash_output" => session::bash_output(args, ws),
        "kill_shell" => session::kill_shell(args, ws),
        "wait" => session::wait(args, ws),
        "todo_write" => session::todo_write(args, ws),
        "ask" => session::ask(args, ws),
        "skill" => skill::skill(args, ws),
        "task" => task::task(args, ws),
        "add_root" => add_root::add_root(args, ws),
        "web_fetch" => web::web_fetch(args, ws),
        "update_goal" => goal::update_goal(args, ws),
        "complete_step" => goal::complete_step(args, ws),
        _ => {
            let known: Vec<&str> = catalogue::catalogue()
                .iter()
                .map(|tool| tool.name)
                .collect();
            Err(format!(
                "there is no tool of this name; there are {}",
                known.join(", ")
            ))
        }
    }
}

/// A call that cannot even begin.
#[derive(Debug)]
struct Refused(String);

impl Work for Refused {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        if let Event::Started = event {
            cx.fail(core::mem::take(&mut self.0));
        }
    }
}
