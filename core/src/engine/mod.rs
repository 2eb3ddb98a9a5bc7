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
//! | `turn` | the phases |
//! | `compaction` | what to do before the context window is full |
//! | `mode` | how a session works with the person, and what the model is told of it |
//! | `rounds` | the end of an answer: a plan is put to the person, a goal goes on |
//! | `subagent` | an engine inside the call of an engine |
//! | `line` | a command line that the person runs themselves |
//! | `output` | what the engine says to its parent |
//! | `verify` | which commands verify, and whether what was written was verified |

mod authority;
mod batch;
mod compaction;
pub mod goal;
mod history;
mod instructions;
mod line;
pub mod mode;
mod output;
pub mod record;
mod rounds;
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

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::call::{News, Outcome};
use crate::ids::{CallId, Counter};
use crate::limits::Limits;
use crate::model::{ChatMessage, Endpoint, Part, ScriptCursor, ToolSpec};
use crate::permission::{Grant, Posture, Rules};
use crate::secret::Secrets;
use crate::settings::PauseUnverified;
use crate::time::{Deadline, Instant};
use crate::tools::{self, Answer, EditorText, JobId, Skill, ToolState, Web, Workspace};

use goal::Pursuit;
use mode::Mode;
use record::{Author, End, Extent, Reason, Subagent, ToolResult};
use subagent::Child;
use turn::{Phase, Turn};

/// More messages than the attempts of one answer can be.
const UNREMEMBERED: u32 = 1000;

/// What the model is told of a call that was under way when the agent ended.
const BROKEN_OFF: &str = "The agent ended while this ran: it may have taken effect in part.";

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

    /// Another model from the next turn on. History, grants and everything else stay.
    pub fn set_brain(&mut self, brain: Brain, context_window: Option<u64>) {
        self.next.brain = Some((brain, context_window));
        self.take_next();
    }

    /// Other tools of MCP servers, from the next call of the model on; `prefixes` are what the
    /// names of such tools begin with, known or not.
    pub fn set_external(&mut self, tools: Vec<tools::External>, prefixes: Vec<String>) {
        self.workspace.external = tools;
        self.workspace.external_prefixes = prefixes;
    }

    /// Another set of tools from the next turn on.
    pub fn set_light(&mut self, light: bool) {
        self.next.light = Some(light);
        self.take_next();
    }

    /// A turn goes on with the model and the tools it began with: what the provider has seen stays
    /// the same prefix.
    fn take_next(&mut self) {
        if self.turn.is_some() {
            return;
        }
        if let Some((brain, context_window)) = self.next.brain.take() {
            self.brain = brain;
            self.context_window = context_window;
        }
        if let Some(light) = self.next.light.take() {
            self.light = light;
        }
    }

    /// Which commands verify.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Other settings of what verifies, and of when it matters, at once.
    pub fn set_verification(&mut self, verifier: Verifier, pause: PauseUnverified) {
        self.verifier = verifier;
        self.pause_unverified = pause;
    }

    /// Another posture, at once: a card that is open and need not be asked any more is settled as
    /// allowed. A call that runs is not withdrawn.
    pub fn set_posture(&mut self, cx: &mut Context<'_>, posture: Posture) {
        self.authority.set_posture(posture);
        self.recheck(cx);
    }

    /// What may run has changed: so have the cards that are open.
    fn recheck(&mut self, cx: &mut Context<'_>) {
        if let Some(Turn {
            phase: Phase::Tools(batch),
            ..
        }) = &mut self.turn
        {
            batch.recheck(cx, &self.authority);
        }
        self.narrow_child(cx);
    }

    /// Other rules, at once: a card that is open is settled if they allow or forbid what it asks.
    pub fn set_rules(&mut self, cx: &mut Context<'_>, rules: Rules) {
        let rules = rules.beneath(&self.workspace.cwd, &self.workspace.roots);
        self.workspace.rules = rules.clone();
        if let Some(child) = self.child_mut() {
            child.workspace.rules = rules.clone();
        }
        self.authority.set_rules(rules);
        self.recheck(cx);
        self.narrow_child(cx);
    }

    /// Whether a file that a person refers to may be read for the model: its real path and the root it is
    /// beneath.
    ///
    /// # Errors
    ///
    /// Why not, for people.
    pub fn readable(
        &self,
        asked: &str,
        it: &crate::call::Resolved,
    ) -> Result<(String, String), String> {
        tools::readable(&self.workspace, asked, it)
    }

    /// Something else of the web may be read from now on. Whether there are tools for it stays as
    /// it is.
    pub fn set_web(&mut self, web: Web) {
        if let Some(child) = self.child_mut() {
            child.set_web(web);
        }
        self.workspace.web = web;
    }

    /// Other folders that commands can write in beside the roots, from the next command on.
    pub fn set_writable(&mut self, folders: Vec<String>) {
        if let Some(child) = self.child_mut() {
            child.set_writable(folders.clone());
        }
        if let Some(sandbox) = &mut self.workspace.sandbox {
            sandbox.writable = folders;
        }
    }

    /// Other keys that nothing of may be shown, from the next call of a tool on.
    pub fn set_secrets(&mut self, secrets: Secrets) {
        if let Some(child) = self.child_mut() {
            child.set_secrets(secrets.clone());
        }
        self.workspace.secrets = secrets;
    }

    /// Other skills than before, at once; the model is told so with the next prompt.
    pub fn set_skills(&mut self, skills: Vec<Skill>, note: String) {
        self.workspace.skills = skills;
        self.note = Some(note);
    }

    /// Takes back what the person allowed for this session. False: it was not there.
    pub fn revoke(&mut self, grant: &Grant) -> bool {
        self.authority.revoke(grant)
    }

    /// What a command of the agent itself has to say, in place of a turn: the model hears nothing.
    pub fn answer_command(&mut self, cx: &mut Context<'_>, text: String) {
        debug_assert!(self.turn.is_none(), "a command is no turn");
        self.record(cx, Record::Note { text });
        cx.out.push_back(Output::Finished(Ending::EndTurn));
    }

    /// Replaces the older part of the history by a summary now. False: there is nothing that could
    /// go.
    pub fn compact_now(&mut self, cx: &mut Context<'_>) -> bool {
        self.take_next();
        if self.history.cut_for(compaction::KEEP) < 2 {
            return false;
        }
        let mut turn = Turn::new(cx.now, false);
        turn.only_compacts = true;
        self.turn = Some(turn);
        if let Brain::Nobody(why) = &self.brain {
            let message = why.clone();
            self.finish(
                cx,
                Ending::Failed {
                    message,
                    auth: true,
                },
            );
            return true;
        }
        self.compact(cx, false)
    }

    /// A prompt begins a turn. The parent sees to it that none runs.
    ///
    /// One that comes from an item of the inbox waits for [`claimed`](Self::claimed) before the
    /// model is asked.
    pub fn prompt(&mut self, cx: &mut Context<'_>, message: Message) {
        let queued = message.item.is_some();
        self.open(cx, message);
        if !queued {
            self.ask_model(cx);
        }
    }

    /// The same, but the model is asked only when it is told to [go on](Self::go_on): by then the tools
    /// that it is offered may be others.
    pub fn prompt_and_expect(&mut self, cx: &mut Context<'_>, message: Message) {
        debug_assert!(message.item.is_none(), "an item waits for its claim");
        self.open(cx, message);
        if let Some(turn) = &mut self.turn {
            turn.phase = Phase::Expecting;
        }
    }

    /// What was expected is there, or is waited for no longer.
    pub fn go_on(&mut self, cx: &mut Context<'_>) {
        if matches!(&self.turn, Some(turn) if matches!(turn.phase, Phase::Expecting)) {
            self.ask_model(cx);
        }
    }

    fn open(&mut self, cx: &mut Context<'_>, message: Message) {
        debug_assert!(
            self.turn.is_none(),
            "the protocol admits one turn a session"
        );
        self.take_next();
        if let Brain::Script(cursor) = &mut self.brain {
            cursor.begin_turn(message.parts.iter().filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Image { .. } => None,
            }));
        }
        let from = if message.item.is_some() {
            Author::Queue
        } else {
            Author::Person
        };
        let goal = self.open_turn(cx, from, message);
        self.turn = Some(Turn::new(cx.now, goal));
    }

    /// Guidance for the turn that runs: the model hears it with its next call. What is left when
    /// the turn is over is given back by [`take_guidance`](Self::take_guidance).
    pub fn guide(&mut self, message: Message) {
        debug_assert!(self.turn.is_some(), "only a turn is guided");
        self.guidance.push_back(message);
    }

    /// Guidance that the model has not heard, oldest first.
    pub fn take_guidance(&mut self) -> VecDeque<Message> {
        core::mem::take(&mut self.guidance)
    }

    /// Takes back guidance by its item. False: the model has heard it.
    pub fn withdraw_guidance(&mut self, item: &str) -> bool {
        let before = self.guidance.len();
        self.guidance
            .retain(|message| message.item.as_deref() != Some(item));
        self.guidance.len() < before
    }

    /// The claims that were recorded are on the disk: the turn goes on.
    pub fn claimed(&mut self, cx: &mut Context<'_>) {
        if matches!(&self.turn, Some(turn) if matches!(turn.phase, Phase::Claiming)) {
            self.ask_model(cx);
        }
    }

    /// The claims cannot be written: what they are for must not be done, since it could be done
    /// again later.
    pub fn unclaimed(&mut self, cx: &mut Context<'_>, why: &str) {
        if matches!(&self.turn, Some(turn) if matches!(turn.phase, Phase::Claiming)) {
            let message = String::from(why);
            self.finish(
                cx,
                Ending::Failed {
                    message,
                    auth: false,
                },
            );
        }
    }

    /// The model is to hear what the person said meanwhile. Returns whether there was something,
    /// and a claim is waited for.
    fn claim_guidance(&mut self, cx: &mut Context<'_>) -> bool {
        let heard = self.take_guidance();
        let claims = heard.iter().any(|message| message.item.is_some());
        for message in heard {
            self.say(cx, Author::Guidance, message);
        }
        if let (true, Some(turn)) = (claims, &mut self.turn) {
            turn.phase = Phase::Claiming;
        }
        claims
    }

    /// Something is said to the model.
    fn say(&mut self, cx: &mut Context<'_>, from: Author, message: Message) {
        let id = self.spoken.next();
        self.record(cx, Record::User(message.into_user(id, from)));
    }

    /// Something happens that is remembered.
    pub fn record(&mut self, cx: &mut Context<'_>, record: Record) {
        self.history.apply(&record);
        cx.out.push_back(Output::Record(record));
    }

    /// Takes in a record of the session as it was left. In their order, before anything else.
    pub fn restore(&mut self, record: &Record) {
        self.history.apply(record);
        match record {
            Record::User(user) => {
                self.spoken.skip(user.id);
                self.broken_off = true;
                if let Some(mode) = user.mode.as_deref().and_then(Mode::named) {
                    self.told = mode;
                }
                if user.from.begins_turn() {
                    self.paused = None;
                    self.unverified.begin_turn();
                }
            }
            Record::Assistant(answer) => {
                self.messages.skip(answer.id);
                let tokens = answer
                    .usage
                    .map(|usage| usage.prompt.saturating_add(usage.completion));
                self.used = tokens.or(self.used);
                // Until a record of the goal says how many there were.
                if self.pursuit.runs() && answer.extent == Extent::Whole {
                    self.pursuit.spent(tokens.unwrap_or(0));
                }
            }
            Record::Goal(pursuit) => {
                if self.pursuit.is_draft() && !pursuit.is_draft() && pursuit.runs() {
                    // A goal is set: what was open before is no part of it.
                    self.unverified = Unverified::default();
                }
                self.pursuit = pursuit.clone();
            }
            Record::Options(options) => {
                self.enter(Mode::named(&options.mode).unwrap_or_default());
            }
            Record::Call { id, .. } => {
                self.shown_open.insert(id.clone());
            }
            Record::Result(result) => {
                self.shown_open.remove(&result.id);
                let ran = result.ran.as_deref();
                self.unverified
                    .take(&self.verifier, result.wrote, ran, result.ok);
            }
            Record::Plan { todos } => self.state.restore_todos(todos.clone()),
            Record::Subagent(subagent) => {
                if subagent.title.is_some() {
                    self.subagents.next();
                    self.child_open = Some(subagent.clone());
                }
                if subagent.ended.is_some() {
                    self.child_open = None;
                }
                if let Some(usage) = subagent.usage.filter(|_| self.pursuit.runs()) {
                    self.pursuit
                        .spent(usage.prompt.saturating_add(usage.completion));
                }
            }
            Record::Summary { id, .. } => {
                self.messages.skip(*id);
                self.used = None;
                self.told = Mode::Normal;
            }
            Record::End(end) => {
                self.broken_off = false;
                if end.reason == Reason::EndTurn {
                    self.paused.clone_from(&end.message);
                }
            }
            Record::Session(_)
            | Record::Roots { .. }
            | Record::Command { .. }
            | Record::Note { .. }
            | Record::Mended { .. }
            | Record::Unknown => {}
        }
    }

    /// All records were taken in: ends what the end of the agent broke off, by records of its own.
    pub fn mend(&mut self, cx: &mut Context<'_>) {
        if self.broken_off {
            // Messages were shown that are not remembered: no other one may have their numbers.
            self.messages.leap(UNREMEMBERED);
        }
        if let Some(open) = self.child_open.take() {
            self.record(cx, subagent::broken_off(open));
        }
        // A plan that was put before the person is a call of no answer.
        let shown = core::mem::take(&mut self.shown_open);
        let mut open = self.history.open_calls().to_vec();
        open.extend(
            shown
                .into_iter()
                .filter(|id| !self.history.open_calls().contains(id)),
        );
        for id in open {
            self.record(
                cx,
                Record::Result(ToolResult {
                    id,
                    text: BROKEN_OFF.into(),
                    ..ToolResult::default()
                }),
            );
        }
        if core::mem::take(&mut self.broken_off) {
            self.pursue(cx, |pursuit, _| {
                pursuit.break_round(None, core::time::Duration::ZERO);
            });
            self.record(
                cx,
                Record::End(End {
                    reason: Reason::Interrupted,
                    message: None,
                }),
            );
        }
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

    fn messages_to_send(&self) -> Vec<ChatMessage> {
        let mut messages = Vec::with_capacity(self.history.messages().len() + 1);
        messages.push(ChatMessage::System(self.system.clone()));
        messages.extend_from_slice(self.history.messages());
        messages
    }

    fn tool_specs(&self) -> Vec<ToolSpec> {
        let spec = |tool: &tools::Tool| ToolSpec {
            name: Cow::Borrowed(tool.name),
            description: Cow::Borrowed(tool.description),
            parameters: Cow::Borrowed(tool.parameters),
        };
        let elsewhere = |tool: &tools::External| ToolSpec {
            name: Cow::Owned(String::from(&*tool.name)),
            description: Cow::Owned(String::from(&*tool.description)),
            parameters: Cow::Owned(String::from(&*tool.parameters)),
        };
        let Workspace { web, closed, .. } = self.workspace;
        let offered = |tool: &&tools::Tool| {
            (web != Web::Off || !tools::is_web(tool.name))
                && !(closed && tools::adds_roots(tool.name))
        };
        let mut specs: Vec<ToolSpec> = if self.is_subagent {
            let tools = tools::catalogue().iter().filter(offered);
            tools
                .filter(|tool| tools::is_for_subagents(tool.name))
                .map(spec)
                .collect()
        } else if self.light {
            tools::light().filter(offered).map(spec).collect()
        } else {
            let tools = tools::catalogue().iter();
            tools.filter(offered).map(spec).collect()
        };
        let Workspace {
            custom, external, ..
        } = &self.workspace;
        let own = |tool: &&tools::External| tools::find(&tool.name).is_none();
        specs.extend(custom.iter().filter(own).map(elsewhere));
        // A name stands for one tool.
        let free = |tool: &&tools::External| custom.iter().all(|own| own.name != tool.name);
        specs.extend(external.iter().filter(free).map(elsewhere));
        specs
    }

    fn log(cx: &mut Context<'_>, text: impl ToString) {
        cx.out.push_back(Output::Log(text.to_string()));
    }
}
