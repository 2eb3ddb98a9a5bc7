//! The agent loop of one session: model → tools → model → stop. Knows no bytes, no JSON-RPC.
//!
//! A turn is in one of seven phases. `step` takes one event at a time, and only while the client
//! has room, so nothing runs ahead of a slow reader.
//!
//! | phase | left by | for |
//! | --- | --- | --- |
//! | `Expecting` | servers that have just started are known, or had their time | `Answering` |
//! | `Claiming` | what comes from the inbox is on the disk | `Answering` |
//! | `Answering` | answer with calls | `Tools` |
//! | | answer without calls | `Approving`, `Answering`, or over: as `rounds` says |
//! | | answer cut by its length | `Answering` once more, then over: `max_tokens` |
//! | | content filter | over: `refusal`, the turn is taken back |
//! | | context too long | `Compacting`, once |
//! | | fault | over: failed |
//! | `Tools` | every call ended | `Answering`; over: `max_turn_requests` when no step is left |
//! | | every call ended, the person's own command line | over: `end_turn` |
//! | `Approving` | the plan is approved | `Answering` |
//! | | it is not | over: `end_turn` |
//! | `Compacting` | summary, or fault | `Answering` |
//! | any | cancel | `Settling` |
//! | `Settling` | every call settled, or the grace is used up | over: `cancelled` |
//!
//! | file | what lives there |
//! | --- | --- |
//! | `record` | what a session remembers, as events |
//! | `goal` | a goal, and whether the agent goes on towards it |
//! | `history` | what the model is told, always well formed |
//! | `instructions` | the system prompt |
//! | `batch` | the tool calls of one answer: order, permission, results |
//! | `said` | what people and their inbox say: it begins turns, or guides them |
//! | `given` | what the parent changes while the session lives |
//! | `asking` | what the model is asked, with which tools |
//! | `restoring` | a session as it was left |
//! | `turn` | the phases |
//! | `compaction` | what to do before the context window is full |
//! | `mode` | how a session works with the person, and what the model is told of it |
//! | `rounds` | the end of an answer: a plan is put to the person, a goal goes on |
//! | `subagent` | an engine inside the call of an engine |
//! | `line` | a command line that the person runs themselves |
//! | `output` | what the engine says to its parent |
//! | `verify` | which commands verify, and whether what was written was verified |

mod asking;
mod authority;
mod batch;
mod compaction;
mod given;
pub mod goal;
mod history;
mod instructions;
mod line;
pub mod mode;
mod output;
pub mod record;
mod restoring;
mod rounds;
mod said;
mod saying;
mod subagent;
mod turn;
mod verify;

#[cfg(test)]
mod tests;

pub use authority::Authority;
pub use history::History;
pub use instructions::{Detail, MAX_PROJECT_BYTES, PROJECT_FILES, ProjectFile, system_prompt};
pub use output::{CardId, Compacting, Decided, Decision, Ending, Output, Ruling, Update};
pub use record::{Message, Record};
pub use verify::{Unverified, Verifier, pauses};

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::call::{News, Outcome};
use crate::ids::{CallId, Counter};
use crate::limits::Limits;
use crate::model::{Endpoint, ScriptCursor};
use crate::settings::PauseUnverified;
use crate::time::{Deadline, Instant};
use crate::tools::{Answer, EditorText, JobId, ToolState, Workspace};

use goal::Pursuit;
use mode::Mode;
use record::Subagent;
use subagent::Child;
use turn::{Phase, Turn};

/// What the parent lends for one call of a method.
pub struct Context<'a> {
    /// The time.
    pub now: Instant,
    /// The wall clock at `now`, seconds since 1970, if it is known.
    pub unix_seconds: Option<u64>,
    /// Numbers for calls; shared by all sessions, since a driver knows calls only.
    pub ids: &'a mut Counter,
    /// Every bound there is.
    pub limits: &'a Limits,
    /// Where everything goes that the parent must do or pass on, in order.
    pub out: &'a mut VecDeque<Output>,
}

/// Who answers.
#[derive(Clone, Debug)]
pub enum Brain {
    /// A provider.
    Endpoint(Box<Endpoint>),
    /// A script.
    Script(Box<ScriptCursor>),
    /// Nobody, for a reason that a person can act on.
    Nobody(String),
}

/// What one session's engine is made with.
#[derive(Debug)]
pub struct Setup {
    /// What its session is called: subagents are named after it.
    pub session: String,
    /// Who answers.
    pub brain: Brain,
    /// The system prompt; the same to the byte for the whole session.
    pub system: String,
    /// Where the tools work.
    pub workspace: Workspace,
    /// What may run.
    pub authority: Authority,
    /// Whether only the tools of the `light` preset are offered.
    pub light: bool,
    /// Model calls in one turn.
    pub max_steps: u32,
    /// Tokens the model can take in all; none: not known.
    pub context_window: Option<u64>,
    /// Spreads pauses between attempts.
    pub jitter: u64,
    /// Which commands verify.
    pub verifier: Verifier,
    /// When a turn that wrote something unverified counts as paused.
    pub pause_unverified: PauseUnverified,
    /// Whether work counts only when verified (the delivery preset).
    pub delivery: bool,
}

/// The agent loop of one session.
#[derive(Debug)]
pub struct Engine {
    session: String,
    brain: Brain,
    system: String,
    workspace: Workspace,
    authority: Authority,
    light: bool,
    max_steps: u32,
    context_window: Option<u64>,
    /// What was chosen during a turn and comes with the next one.
    next: Next,
    jitter: u64,
    history: History,
    state: ToolState,
    turn: Option<Turn>,
    jobs: BTreeMap<CallId, JobId>,
    /// Commands that are over while something they started runs on.
    left: BTreeSet<CallId>,
    messages: Counter,
    /// Numbers for what is said to the model.
    spoken: Counter,
    cards: Counter,
    /// What the person said while the turn runs, and the model has not heard yet.
    guidance: VecDeque<Message>,
    /// Tokens that the last request held, as the provider counted them.
    used: Option<u64>,
    /// The last turn that was restored has no end.
    broken_off: bool,
    mode: Mode,
    /// The mode that the model was told of last.
    told: Mode,
    pursuit: Pursuit,
    unverified: Unverified,
    verifier: Verifier,
    pause_unverified: PauseUnverified,
    delivery: bool,
    /// What is left to do, if the last turn counts as paused.
    paused: Option<String>,
    /// Calls that were shown and have no result, of those that were restored.
    shown_open: BTreeSet<String>,
    /// What the model is told with the next prompt.
    note: Option<String>,
    /// It works for another engine.
    is_subagent: bool,
    /// Who works for it now.
    child: Option<Box<Child>>,
    /// Numbers for those who work for it.
    subagents: Counter,
    /// A subagent that has no end, of those that were restored.
    child_open: Option<Subagent>,
}

/// What comes with the next turn.
#[derive(Debug, Default)]
struct Next {
    brain: Option<(Brain, Option<u64>)>,
    light: Option<bool>,
}

impl Engine {
    /// A session's engine, with nothing said yet.
    pub fn new(setup: Setup, limits: &Limits) -> Self {
        Self {
            session: setup.session,
            brain: setup.brain,
            system: setup.system,
            workspace: setup.workspace,
            authority: setup.authority,
            light: setup.light,
            max_steps: setup.max_steps,
            context_window: setup.context_window,
            next: Next::default(),
            jitter: setup.jitter,
            history: History::default(),
            state: ToolState::new(limits),
            turn: None,
            jobs: BTreeMap::new(),
            left: BTreeSet::new(),
            messages: Counter::default(),
            spoken: Counter::default(),
            cards: Counter::default(),
            guidance: VecDeque::new(),
            used: None,
            broken_off: false,
            mode: Mode::Normal,
            told: Mode::Normal,
            pursuit: Pursuit::default(),
            unverified: Unverified::default(),
            verifier: setup.verifier,
            pause_unverified: setup.pause_unverified,
            delivery: setup.delivery,
            paused: None,
            shown_open: BTreeSet::new(),
            note: None,
            is_subagent: false,
            child: None,
            subagents: Counter::default(),
            child_open: None,
        }
    }

    /// Whether no turn runs.
    pub fn is_idle(&self) -> bool {
        self.turn.is_none()
    }

    /// What the model was told so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The folders its tools work in, real paths, the working directory's first.
    pub fn roots(&self) -> &[String] {
        &self.workspace.roots
    }

    /// What may run.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Tokens in the context window, and how many it can hold, if both are known.
    pub fn usage(&self) -> Option<(u64, u64)> {
        Some((self.used?, self.context_window?))
    }

    /// The same where nothing is known to be in it yet.
    pub fn usage_at_rest(&self) -> Option<(u64, u64)> {
        Some((self.used.unwrap_or(0), self.context_window?))
    }

    /// What a command of the agent itself has to say, in place of a turn: the model hears nothing.
    pub fn answer_command(&mut self, cx: &mut Context<'_>, text: String) {
        debug_assert!(self.turn.is_none(), "a command is no turn");
        self.record(cx, Record::Note { text });
        cx.out.push_back(Output::Finished(Ending::EndTurn));
    }

    /// Something happens that is remembered.
    pub fn record(&mut self, cx: &mut Context<'_>, record: Record) {
        self.history.apply(&record);
        cx.out.push_back(Output::Record(record));
    }

    /// News of a call that this engine started. News of others, and late ones, do nothing.
    pub fn handle_news(&mut self, cx: &mut Context<'_>, id: CallId, news: News<'_>) {
        if matches!(&news, News::Done(Outcome::Exited(exit)) if exit.left) {
            self.left.insert(id);
            if self.left.len() > cx.limits.max_left {
                self.left.pop_first();
            }
        }
        if let Some(job) = self.jobs.get(&id).copied() {
            if matches!(news, News::Done(_) | News::Failed(_)) {
                self.jobs.remove(&id);
            }
            self.state.handle_job_news(cx.now, job, news);
            return;
        }
        let Some(news) = self.child_news(cx, id, news) else {
            return;
        };
        if let Some(turn) = &mut self.turn {
            turn.handle_news(cx, id, news, &self.workspace, &mut self.state);
        }
        self.settle(cx);
    }

    /// What the call brings is the text of an editor, which the file on the disk has not. To be said
    /// before its news.
    pub fn editor_shows(&mut self, id: CallId, text: EditorText) {
        if let Some(child) = self.child_mut() {
            child.editor_shows(id, text);
        }
        if let Some(Turn {
            phase: Phase::Tools(batch),
            ..
        }) = &mut self.turn
        {
            batch.editor_shows(id, text);
        }
    }

    /// The person decided. A card that is not open any more is ignored.
    pub fn decided(&mut self, cx: &mut Context<'_>, card: CardId, decision: Decision) {
        if self.child_decided(cx, card, decision) {
            return;
        }
        if let Some(Turn {
            phase: Phase::Tools(batch),
            ..
        }) = &mut self.turn
        {
            batch.decided(cx, card, decision, &mut self.authority);
        }
        self.plan_decided(cx, card, decision);
    }

    /// The person answered, one answer a question.
    pub fn answered(&mut self, card: CardId, answers: Vec<Answer>) {
        if let Some(its) = self.take_child_card(card) {
            if let Some(child) = self.child_mut() {
                child.answered(its, answers);
            }
            return;
        }
        if let Some(Turn {
            phase: Phase::Tools(batch),
            ..
        }) = &mut self.turn
        {
            batch.answered(card, answers);
        }
    }

    /// The passing of time. Early, late or twice is harmless.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.with_child(cx, Self::handle_timeout);
        if let Some(turn) = &mut self.turn {
            turn.handle_timeout(cx.now);
        }
        self.settle(cx);
    }

    /// When to wake it if nothing happens.
    pub fn deadline(&self) -> Option<Deadline> {
        Deadline::earlier(
            self.turn.as_ref().and_then(Turn::deadline),
            self.child().and_then(Self::deadline),
        )
    }

    /// Bytes it will take now from a call of its own; `None` for a call of another.
    pub fn room(&self, id: CallId, limits: &Limits) -> Option<usize> {
        if let Some(job) = self.jobs.get(&id) {
            return Some(self.state.job_room(*job).min(limits.call_window));
        }
        if let Some(room) = self.child().and_then(|child| child.room(id, limits)) {
            return Some(room);
        }
        self.turn.as_ref()?.room(id, limits)
    }

    /// Whether a tool's deadline has come: then a step is due even while the client is slow, since
    /// a command that is to be ended must not run on behind it. What that adds is little.
    pub fn is_due(&self, now: Instant) -> bool {
        self.child().is_some_and(|child| child.is_due(now))
            || matches!(
                &self.turn,
                Some(Turn { phase: Phase::Tools(batch), .. }) if batch.is_due(now)
            )
    }

    /// Whether the turn was cancelled and its calls settle. What they still say is thrown away.
    pub fn is_settling(&self) -> bool {
        matches!(
            &self.turn,
            Some(Turn {
                phase: Phase::Settling { .. },
                ..
            })
        )
    }

    /// The parent could pass nothing on until now, since its own client was slow.
    pub fn held_until(&mut self, now: Instant) {
        if let Some(turn) = &mut self.turn {
            turn.held_until(now);
        }
        if let Some(child) = self.child_mut() {
            child.held_until(now);
        }
    }

    /// Cancels the turn. Nothing new starts; it is over when every call has settled or the grace is
    /// used up. Without a turn it does nothing, also not to the next one.
    pub fn cancel(&mut self, cx: &mut Context<'_>) {
        let settle = self.cancel_child(cx);
        let Some(turn) = &mut self.turn else { return };
        let deeds = turn.cancel(cx, &mut self.history, &mut self.brain);
        if let Phase::Settling { open, .. } = &mut turn.phase {
            open.extend(settle);
        }
        self.take_deeds(deeds);
        self.settle(cx);
    }

    /// Ends the commands in the background, and what others left running: the session closes. The
    /// calls that are open still settle.
    pub fn dispose(&mut self, cx: &mut Context<'_>) {
        self.with_child(cx, Self::dispose);
        let left = core::mem::take(&mut self.left);
        for id in self.jobs.keys().copied().chain(left) {
            cx.out.push_back(Output::Abort { id });
        }
    }

    /// Whether a call is still open.
    pub fn is_quiet(&self) -> bool {
        self.turn.is_none() && self.jobs.is_empty()
    }

    /// One step of what can be done now. Returns whether there may be more; the parent stops
    /// calling while its client is slow.
    pub fn step(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(turn) = &mut self.turn else {
            return false;
        };
        match &mut turn.phase {
            Phase::Answering { run, .. } | Phase::Compacting { run, .. } => {
                let Some(event) = run.next_event(cx.now) else {
                    return false;
                };
                self.model_event(cx, event);
                true
            }
            Phase::Tools(batch) => {
                let moved = batch.step(
                    cx,
                    &self.workspace,
                    &mut self.state,
                    &self.authority,
                    &mut self.cards,
                    &mut self.jobs,
                    &mut self.history,
                );
                let root = batch.take_root();
                let over = batch.is_over();
                let deeds = batch.take_deeds();
                let task = batch.take_assignment();
                self.take_deeds(deeds);
                if let Some(root) = root {
                    self.add_root(cx, root);
                    return true;
                }
                if let Some((call, task)) = task {
                    self.delegate(cx, call, task);
                    return true;
                }
                if let Some(more) = self.with_child(cx, Self::step) {
                    return moved || more || self.child.is_none();
                }
                if over {
                    self.tools_over(cx);
                    return true;
                }
                moved
            }
            Phase::Settling { .. } => {
                self.settle(cx);
                false
            }
            Phase::Expecting | Phase::Claiming | Phase::Approving { .. } => false,
        }
    }

    /// The person agreed to one more folder.
    fn add_root(&mut self, cx: &mut Context<'_>, root: String) {
        self.workspace.roots.push(root.clone());
        let rules = self.authority.rules().clone();
        let rules = rules.beneath(&self.workspace.cwd, &self.workspace.roots);
        self.workspace.rules = rules.clone();
        self.authority.set_rules(rules);
        cx.out.push_back(Output::Rooted { root });
    }

    fn log(cx: &mut Context<'_>, text: impl ToString) {
        cx.out.push_back(Output::Log(text.to_string()));
    }
}
