//! One tool call from its arguments to its result: what all tools have in common.

mod work;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::args::{self, Args};
use super::catalogue::{self, Class};
use super::kind::ToolKind;
use super::state::ToolState;
use super::step::{Answer, Card, EditorText, Step, ToolOutcome};
use super::workspace::Workspace;
use super::{
    add_root, bash, change, entry, external, goal, look, paths, session, skill, task, text, web,
};
use crate::call::{Call, News};
use crate::secret::Secrets;
use crate::time::{Deadline, Instant};
pub(super) use work::{Begun, Context, Event, Flow, Work};
use work::{missed, path_of};

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
            Some(place) => Ok(external::external(place, name, arguments, ws)),
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
