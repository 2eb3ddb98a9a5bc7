//! The tool calls of one answer: which runs when, which is asked about, and what comes of it.
//!
//! Calls begin in order. Readers run together, but none overtakes a call that changes something;
//! what changes something runs alone. Results are released in the order of the calls, whatever the
//! order in which they came, so that equal news give equal frames.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Context;
use super::authority::Authority;
use super::history::History;
use super::output::{CardId, Decided, Decision, Output, Ruling, Update};
use super::record::{Record, ToolResult};
use super::rounds::Deed;
use crate::call::News;
use crate::ids::{CallId, Counter};
use crate::model::{ModelCall, ToolUse};
use crate::permission::{Action, Grant, PLANNING, Verdict};
use crate::time::{Deadline, Instant};
use crate::tools::{
    self, Answer, Assignment, Class, EditorText, JobId, Step, ToolOutcome, ToolRun, ToolState,
    Workspace,
};

const NOT_BEGUN: &str = "Cancelled by the person before it began.";
const CUT_OFF: &str = "Cancelled by the person while it ran: it may have taken effect in part.";
const NOT_DONE: &str = "Cancelled by the person before it was done.";

/// Why a line of the person's own does not run while a plan is being made.
const OWN_WHILE_PLANNING: &str = "a plan is being made, and nothing is written or run meanwhile, \
    your own lines neither. Choose another mode first, then say it again";

/// The tool calls of one answer.
#[derive(Debug)]
pub(super) struct Batch {
    slots: Vec<Slot>,
    /// How many results were released.
    released: usize,
    /// What they came to, since it was last asked for.
    deeds: Vec<Deed>,
}

#[derive(Debug)]
struct Slot {
    id: String,
    run: ToolRun,
    stage: Stage,
    /// The client knows that it runs.
    shown_running: bool,
    call: Option<CallId>,
    /// What it gives to a subagent that has not begun.
    assignment: Option<Assignment>,
    /// A folder that it adds and that is not there yet.
    root: Option<String>,
    outcome: Option<ToolOutcome>,
    /// It is a line of the person's own.
    own: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// Its turn has not come.
    Waiting,
    /// It may be asked for its next step.
    Going,
    /// It has something to ask, and another one is being asked: a person answers one at a time.
    Queued(Box<Step>),
    /// The person decides.
    Permit {
        card: CardId,
        action: Action,
        always: Option<Grant>,
    },
    /// The person answers.
    Ask { card: CardId },
    /// A subagent works for it.
    Delegated,
    /// It has ended.
    Over,
}

impl Batch {
    /// Announces the calls of an answer. With `cut`, the answer was cut by its length.
    pub(super) fn new(
        cx: &mut Context<'_>,
        uses: Vec<ToolUse>,
        calls: Vec<ModelCall>,
        cut: bool,
        subagent: bool,
        workspace: &Workspace,
    ) -> Self {
        let slots = uses
            .into_iter()
            .zip(calls)
            .enumerate()
            .map(|(n, (tool, call))| {
                let run = ToolRun::start(&call.name, &tool.arguments, workspace);
                cx.out.push_back(Output::Record(Record::Call {
                    id: tool.id.clone(),
                    card: run.card().clone(),
                    line: None,
                }));
                let refused = match call.fault {
                    Some(fault) if cut => Some(format!(
                        "Not run: the answer was cut by its length before the arguments were \
                         whole ({fault}). Ask again with shorter arguments."
                    )),
                    Some(fault) => Some(format!(
                        "Not run: the arguments are not the text of a JSON object: {fault}"
                    )),
                    None if subagent && !tools::is_for_subagents(&call.name) => Some(format!(
                        "Not run: a subagent has no tool `{}`.",
                        run.card().name
                    )),
                    None if n >= cx.limits.max_tool_calls => Some(format!(
                        "Not run: at most {} calls in one answer.",
                        cx.limits.max_tool_calls
                    )),
                    None => None,
                };
                Slot {
                    id: tool.id,
                    run,
                    stage: if refused.is_some() {
                        Stage::Over
                    } else {
                        Stage::Waiting
                    },
                    shown_running: false,
                    call: None,
                    assignment: None,
                    root: None,
                    outcome: refused.map(failed),
                    own: false,
                }
            })
            .collect();
        Self {
            slots,
            released: 0,
            deeds: Vec::new(),
        }
    }

    /// The one call by which the person runs a command line of their own. It passes the gate as
    /// those of the model do.
    pub(super) fn of_line(id: String, run: ToolRun) -> Self {
        let slot = Slot {
            id,
            run,
            stage: Stage::Waiting,
            shown_running: false,
            call: None,
            assignment: None,
            root: None,
            outcome: None,
            own: true,
        };
        Self {
            slots: Vec::from([slot]),
            released: 0,
            deeds: Vec::new(),
        }
    }

    /// What the results came to that were released since this was asked for.
    pub(super) fn take_deeds(&mut self) -> Vec<Deed> {
        core::mem::take(&mut self.deeds)
    }

    /// A folder that a call adds: what follows in the answer may be about it.
    pub(super) fn take_root(&mut self) -> Option<String> {
        self.slots.iter_mut().find_map(|slot| slot.root.take())
    }

    /// A call that waits for a subagent to begin.
    pub(super) fn take_assignment(&mut self) -> Option<(String, Assignment)> {
        let mut given = self.slots.iter_mut();
        given.find_map(|slot| Some((slot.id.clone(), slot.assignment.take()?)))
    }

    /// The subagent of this call has ended.
    pub(super) fn delegated(&mut self, call: &str, outcome: ToolOutcome) {
        let slot = self.slots.iter_mut().find(|slot| slot.id == call);
        if let Some(slot) = slot.filter(|slot| slot.stage == Stage::Delegated) {
            slot.stage = Stage::Over;
            slot.outcome = Some(outcome);
        }
    }

    /// Whether every result was released.
    pub(super) fn is_over(&self) -> bool {
        self.released == self.slots.len()
    }

    /// Does what can be done now. Returns whether anything happened.
    #[allow(clippy::too_many_arguments)] // the parts of one engine, lent for one step
    pub(super) fn step(
        &mut self,
        cx: &mut Context<'_>,
        workspace: &Workspace,
        state: &mut ToolState,
        authority: &Authority,
        cards: &mut Counter,
        jobs: &mut BTreeMap<CallId, JobId>,
        history: &mut History,
    ) -> bool {
        let mut moved = false;
        let mut asking = self.slots.iter().any(Slot::asks);
        for at in 0..self.slots.len() {
            if self.slots[at].stage == Stage::Waiting && self.may_begin(at, cx) {
                self.slots[at].stage = Stage::Going;
            }
            let slot = &mut self.slots[at];
            if let Stage::Queued(step) = &mut slot.stage {
                let step = core::mem::replace(&mut **step, Step::Wait);
                slot.stage = Stage::Going;
                slot.take(cx, step, authority, cards, jobs, &mut asking);
                moved |= !matches!(slot.stage, Stage::Queued(_));
            }
            while self.slots[at].stage == Stage::Going {
                let slot = &mut self.slots[at];
                let step = slot.run.next_step(cx.now, workspace, state);
                if step == Step::Wait {
                    break;
                }
                slot.take(cx, step, authority, cards, jobs, &mut asking);
                if slot.root.is_some() {
                    return true;
                }
                moved = true;
            }
        }
        self.release(cx, history) || moved
    }

    fn may_begin(&self, at: usize, cx: &Context<'_>) -> bool {
        let reader = |slot: &Slot| slot.run.class() == Class::Reader;
        let running = self.slots[..at]
            .iter()
            .filter(|slot| slot.stage != Stage::Over);
        if reader(&self.slots[at]) {
            running.clone().all(reader) && running.count() < cx.limits.parallel_reads
        } else {
            running.count() == 0
        }
    }

    /// Gives out the results that are due: to the model's memory and to the client.
    fn release(&mut self, cx: &mut Context<'_>, history: &mut History) -> bool {
        let before = self.released;
        while let Some(Slot {
            stage: Stage::Over,
            outcome,
            id,
            run,
            ..
        }) = self.slots.get_mut(self.released)
            && let Some(outcome) = outcome.take()
        {
            self.deeds.push(Deed::of(&run.card().name, &outcome));
            let record = Record::Result(ToolResult {
                id: id.clone(),
                ok: outcome.ok,
                text: outcome.text,
                shown: outcome.shown,
                diffs: outcome.diffs,
                output: outcome.raw_output,
                locations: outcome.locations,
                wrote: outcome.wrote,
                ran: outcome.ran,
                session: outcome.session,
            });
            history.apply(&record);
            cx.out.push_back(Output::Record(record));
            self.released += 1;
        }
        self.released > before
    }

    pub(super) fn handle_news(
        &mut self,
        now: Instant,
        id: CallId,
        news: News<'_>,
        workspace: &Workspace,
        state: &mut ToolState,
    ) {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.call == Some(id)) else {
            return;
        };
        if matches!(news, News::Done(_) | News::Failed(_)) {
            slot.call = None;
        }
        slot.run.handle_news(now, news, workspace, state);
    }

    pub(super) fn editor_shows(&mut self, id: CallId, text: EditorText) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.call == Some(id)) {
            slot.run.editor_shows(text);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for slot in &mut self.slots {
            if slot.stage == Stage::Going {
                slot.run.handle_timeout(now);
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Deadline> {
        self.slots
            .iter()
            .filter(|slot| slot.stage == Stage::Going)
            .fold(None, |soonest, slot| {
                Deadline::earlier(soonest, slot.run.deadline())
            })
    }

    /// Whether the deadline of a tool has come.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| deadline.at <= now)
    }

    pub(super) fn room(&self, id: CallId) -> Option<usize> {
        let slot = self.slots.iter().find(|slot| slot.call == Some(id))?;
        Some(slot.run.room())
    }

    pub(super) fn decided(
        &mut self,
        cx: &mut Context<'_>,
        card: CardId,
        decision: Decision,
        authority: &mut Authority,
    ) {
        for slot in &mut self.slots {
            let Stage::Permit {
                card: open, always, ..
            } = &mut slot.stage
            else {
                continue;
            };
            if *open != card {
                continue;
            }
            let always = always.take();
            slot.stage = Stage::Going;
            let (ruling, why) = match decision {
                Decision::Once => (Ruling::Allowed, "the person allowed it once"),
                Decision::Always => (Ruling::Allowed, "the person allowed it for this session"),
                Decision::Reject => (Ruling::Denied, "the person refused it"),
                Decision::Unanswered => (Ruling::Denied, "the person did not decide"),
                Decision::Unasked => (Ruling::Denied, "the person could not be asked"),
            };
            slot.tell(cx, ruling, why);
            match decision {
                Decision::Once => slot.permitted(cx),
                Decision::Always => {
                    if let Some(grant) = always {
                        authority.grant(grant);
                    }
                    slot.permitted(cx);
                }
                Decision::Reject => slot.run.denied("the person refused it"),
                Decision::Unanswered => slot
                    .run
                    .denied("the person was asked and did not decide; it was not refused for good"),
                Decision::Unasked => slot
                    .run
                    .denied("it needs the person's permission, and they could not be asked"),
            }
            return;
        }
    }

    pub(super) fn answered(&mut self, card: CardId, answers: Vec<Answer>) {
        if let Some(slot) = self
            .slots
            .iter_mut()
            .find(|slot| slot.stage == Stage::Ask { card })
        {
            slot.stage = Stage::Going;
            slot.run.answered(answers);
        }
    }

    /// Settles open cards that need not be asked any more, or must not.
    pub(super) fn recheck(&mut self, cx: &mut Context<'_>, authority: &Authority) {
        for slot in &mut self.slots {
            let Stage::Permit { card, action, .. } = &slot.stage else {
                continue;
            };
            match authority.decide(action) {
                Verdict::Allow { why } => {
                    cx.out.push_back(Output::Withdraw { card: *card });
                    slot.stage = Stage::Going;
                    slot.tell(cx, Ruling::Allowed, &why);
                    slot.permitted(cx);
                }
                // A plan is made now, or the posture or the rules are others: what was asked
                // before may not even be allowed.
                Verdict::Deny { why } => {
                    cx.out.push_back(Output::Withdraw { card: *card });
                    slot.stage = Stage::Going;
                    slot.tell(cx, Ruling::Denied, &why);
                    slot.denied(&why);
                }
                Verdict::Ask { .. } => {}
            }
        }
    }

    /// Ends what runs, starts nothing more, and shows every call as ended. Returns the calls that
    /// have to settle.
    pub(super) fn cancel(&mut self, cx: &mut Context<'_>, history: &mut History) -> Vec<CallId> {
        let mut open = Vec::new();
        for slot in &mut self.slots {
            match slot.stage {
                Stage::Permit { card, .. } | Stage::Ask { card } => {
                    cx.out.push_back(Output::Withdraw { card });
                }
                Stage::Waiting
                | Stage::Going
                | Stage::Queued(_)
                | Stage::Delegated
                | Stage::Over => {}
            }
            if let Some(id) = slot.call {
                cx.out.push_back(Output::Abort { id });
                open.push(id);
            }
            if slot.stage != Stage::Over {
                slot.stage = Stage::Over;
                // What it did before it heard of the cancel was done: the model must not think
                // otherwise.
                let outcome = slot.run.take_result();
                slot.outcome = Some(outcome.unwrap_or_else(|| failed(slot.cut_off().into())));
            }
        }
        self.release(cx, history);
        open
    }
}

impl Slot {
    /// Whether the person is being asked about it.
    fn asks(&self) -> bool {
        matches!(self.stage, Stage::Permit { .. } | Stage::Ask { .. })
    }

    /// It may not run.
    fn denied(&mut self, why: &str) {
        // What a model can do about it is nothing for a person.
        let why = match why {
            PLANNING if self.own => OWN_WHILE_PLANNING,
            why => why,
        };
        self.run.denied(why);
    }

    /// How far it came that is cancelled now.
    fn cut_off(&self) -> &'static str {
        if !self.shown_running {
            NOT_BEGUN
        } else if self.run.class() == Class::Reader {
            NOT_DONE
        } else if self.call.is_some() {
            CUT_OFF
        } else {
            NOT_BEGUN
        }
    }

    fn take(
        &mut self,
        cx: &mut Context<'_>,
        step: Step,
        authority: &Authority,
        cards: &mut Counter,
        jobs: &mut BTreeMap<CallId, JobId>,
        asking: &mut bool,
    ) {
        match step {
            Step::Call(call) => {
                let id = CallId::new(cx.ids.next());
                self.call = Some(id);
                // A reader has nothing to wait for; what changes something is shown as running
                // only once it may.
                if self.run.class() == Class::Reader {
                    self.show_running(cx);
                }
                let tool = Some(self.id.clone());
                cx.out.push_back(Output::Start { id, call, tool });
            }
            Step::CallServer { name, arguments } => {
                let id = CallId::new(cx.ids.next());
                self.call = Some(id);
                cx.out.push_back(Output::CallServer {
                    id,
                    name,
                    arguments,
                });
            }
            Step::Abort => cx.out.extend(self.call.map(|id| Output::Abort { id })),
            Step::Permit(proposal) => match authority.decide(&proposal.action) {
                Verdict::Allow { why } => {
                    self.tell(cx, Ruling::Allowed, &why);
                    self.permitted(cx);
                }
                Verdict::Deny { why } => {
                    self.tell(cx, Ruling::Denied, &why);
                    self.denied(&why);
                }
                Verdict::Ask { .. } if *asking => {
                    self.stage = Stage::Queued(Box::new(Step::Permit(proposal)));
                }
                Verdict::Ask { always, why } => {
                    *asking = true;
                    self.tell(cx, Ruling::Asked, &why);
                    let card = CardId(cards.next());
                    let label = always.as_ref().map(Grant::label);
                    self.stage = Stage::Permit {
                        card,
                        action: proposal.action.clone(),
                        always,
                    };
                    let call = self.id.clone();
                    cx.out.push_back(Output::Permit {
                        card,
                        call,
                        proposal,
                        always: label,
                    });
                }
            },
            Step::Ask(questions) if *asking => {
                self.stage = Stage::Queued(Box::new(Step::Ask(questions)));
            }
            Step::Ask(questions) => {
                *asking = true;
                let card = CardId(cards.next());
                self.show_running(cx);
                self.stage = Stage::Ask { card };
                cx.out.push_back(Output::Questions {
                    card,
                    call: self.id.clone(),
                    questions,
                });
            }
            Step::Progress(text) => {
                cx.out.push_back(Output::Update(Update::Progress {
                    id: self.id.clone(),
                    text,
                    session: None,
                }));
            }
            Step::AddRoot(root) => self.root = Some(root),
            Step::Delegate(assignment) => {
                self.stage = Stage::Delegated;
                self.assignment = Some(assignment);
            }
            Step::Plan(todos) => cx.out.push_back(Output::Record(Record::Plan { todos })),
            Step::Detach(job) => {
                if let Some(id) = self.call.take() {
                    jobs.insert(id, job);
                }
            }
            Step::AbortJob(job) => {
                let call = jobs
                    .iter()
                    .find(|(_, other)| **other == job)
                    .map(|(id, _)| *id);
                cx.out.extend(call.map(|id| Output::Abort { id }));
            }
            Step::Done(outcome) => {
                self.stage = Stage::Over;
                self.outcome = Some(outcome);
            }
            Step::Wait => {}
        }
    }

    fn tell(&self, cx: &mut Context<'_>, ruling: Ruling, why: &str) {
        cx.out.push_back(Output::Decided(Decided {
            call: self.run.card().title.clone(),
            ruling,
            why: why.into(),
        }));
    }

    fn permitted(&mut self, cx: &mut Context<'_>) {
        self.show_running(cx);
        self.run.permitted();
    }

    fn show_running(&mut self, cx: &mut Context<'_>) {
        if !self.shown_running {
            self.shown_running = true;
            cx.out.push_back(Output::Update(Update::Running {
                id: self.id.clone(),
            }));
        }
    }
}

fn failed(text: String) -> ToolOutcome {
    ToolOutcome {
        text,
        ..ToolOutcome::default()
    }
}
