//! The phases of a turn, and the ways between them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::batch::Batch;
use super::history::History;
use super::record::{Author, End, Extent, Message, Reason, Record, ToolResult};
use super::rounds::{Deed, Deeds};
use super::saying::Saying;
use super::{Brain, CardId, Compacting, Context, Ending, Engine, Output, Update};
use crate::call::News;
use crate::ids::CallId;
use crate::limits::Limits;
use crate::model::{
    Answer, FaultKind, FinishReason, ModelEvent, ModelFault, ModelRun, Text, ToolUse,
};
use crate::time::{Deadline, Instant, Timer};
use crate::tools::{ToolState, Workspace};

/// What a cut answer is followed by: the model goes on where it stopped.
const CONTINUE: &str = "Your answer was cut by its length. Go on exactly where it stopped.";

/// One turn, from its prompt to its end.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) phase: Phase,
    /// Model calls so far.
    pub(super) steps: u32,
    /// What the attempt of the moment has said.
    saying: Saying,
    /// An answer was cut by its length, and the continuation was asked for.
    continued: bool,
    /// The history was compacted because the provider said it was too long.
    pub(super) compacted: bool,
    /// To compact was tried since the last answer: not again before the next one.
    pub(super) tried: bool,
    /// It is there to compact the history, and the model is asked nothing else.
    pub(super) only_compacts: bool,
    /// It is there for a command line of the person's own, and no model is asked.
    pub(super) only_runs: bool,
    /// It belongs to a goal.
    pub(super) goal: bool,
    /// What came of its round so far.
    pub(super) deeds: Deeds,
}

/// Where a turn stands.
#[derive(Debug)]
pub(super) enum Phase {
    /// Servers that have only just started may offer tools, which the model would not be told of.
    Expecting,
    /// What was said comes from the inbox: the model is asked once the claim is on the disk, since
    /// an item must not be done twice.
    Claiming,
    /// The model answers.
    Answering { run: ModelRun, call: Option<CallId> },
    /// The tools of its answer run.
    Tools(Batch),
    /// The model makes a summary of the older part of the history.
    Compacting {
        run: ModelRun,
        call: Option<CallId>,
        /// The number of the compaction.
        id: u64,
        cut: usize,
        /// The turn cannot go on with the history as it is.
        forced: bool,
    },
    /// The person decides about the plan that the model made.
    Approving {
        card: CardId,
        /// The call by which it is shown.
        call: String,
    },
    /// The turn was cancelled; its calls settle.
    Settling { open: Vec<CallId>, until: Instant },
}

impl Turn {
    pub(super) fn new(now: Instant, goal: bool) -> Self {
        Self {
            goal,
            deeds: Deeds::new(now),
            phase: Phase::Claiming,
            steps: 0,
            saying: Saying::default(),
            continued: false,
            compacted: false,
            tried: false,
            only_compacts: false,
            only_runs: false,
        }
    }

    pub(super) fn handle_news(
        &mut self,
        cx: &mut Context<'_>,
        id: CallId,
        news: News<'_>,
        workspace: &Workspace,
        state: &mut ToolState,
    ) {
        match &mut self.phase {
            Phase::Answering { run, call } | Phase::Compacting { run, call, .. } => {
                if *call == Some(id) {
                    run.handle_news(cx.now, &news);
                }
            }
            Phase::Tools(batch) => batch.handle_news(cx.now, id, news, workspace, state),
            Phase::Expecting | Phase::Claiming | Phase::Approving { .. } => {}
            Phase::Settling { open, .. } => {
                if matches!(news, News::Done(_) | News::Failed(_)) {
                    open.retain(|call| *call != id);
                }
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Answering { run, .. } | Phase::Compacting { run, .. } => run.handle_timeout(now),
            Phase::Tools(batch) => batch.handle_timeout(now),
            Phase::Expecting | Phase::Claiming | Phase::Approving { .. } => {}
            Phase::Settling { until, open } => {
                if *until <= now {
                    open.clear();
                }
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Deadline> {
        match &self.phase {
            Phase::Answering { run, .. } | Phase::Compacting { run, .. } => run.deadline(),
            Phase::Tools(batch) => batch.deadline(),
            Phase::Expecting | Phase::Claiming | Phase::Approving { .. } => None,
            Phase::Settling { until, .. } => Some(Deadline {
                at: *until,
                why: Timer::CancelGrace,
            }),
        }
    }

    pub(super) fn room(&self, id: CallId, limits: &Limits) -> Option<usize> {
        match &self.phase {
            Phase::Answering { run, call } | Phase::Compacting { run, call, .. } => {
                (*call == Some(id)).then(|| run.room().min(limits.call_window))
            }
            Phase::Tools(batch) => batch.room(id).map(|room| room.min(limits.call_window)),
            Phase::Expecting | Phase::Claiming | Phase::Approving { .. } => None,
            // What is read now is thrown away; a process must not wait for a reader to die.
            Phase::Settling { open, .. } => open.contains(&id).then_some(limits.call_window),
        }
    }

    pub(super) fn held_until(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Answering { run, .. } | Phase::Compacting { run, .. } => run.held_until(now),
            Phase::Expecting
            | Phase::Claiming
            | Phase::Tools(_)
            | Phase::Approving { .. }
            | Phase::Settling { .. } => {}
        }
    }

    /// The attempt of the moment breaks off; what it said is remembered.
    pub(super) fn break_off(
        &mut self,
        cx: &mut Context<'_>,
        history: &mut History,
        extent: Extent,
    ) {
        let Phase::Answering { run, .. } = &self.phase else {
            return;
        };
        let mut said = self.saying.take(run.partial_text(), run.partial_thought());
        if said.said.is_empty() {
            return;
        }
        said.extent = extent;
        let record = Record::Assistant(said);
        history.apply(&record);
        cx.out.push_back(Output::Record(record));
    }

    pub(super) fn cancel(
        &mut self,
        cx: &mut Context<'_>,
        history: &mut History,
        brain: &mut Brain,
    ) -> Vec<Deed> {
        let mut deeds = Vec::new();
        let open = match &mut self.phase {
            Phase::Settling { .. } => return deeds,
            Phase::Expecting | Phase::Claiming => Vec::new(),
            Phase::Approving { card, call } => {
                cx.out.push_back(Output::Withdraw { card: *card });
                let record = Record::Result(ToolResult {
                    id: core::mem::take(call),
                    text: "Cancelled by the person before it was decided.".into(),
                    ..ToolResult::default()
                });
                cx.out.push_back(Output::Record(record));
                Vec::new()
            }
            Phase::Answering { run, call } => {
                stop_run(cx, run, *call, brain);
                self.break_off(cx, history, Extent::Partial);
                // The machine settles an HTTP call itself: nothing is waited for.
                Vec::new()
            }
            Phase::Compacting { run, call, id, .. } => {
                stop_run(cx, run, *call, brain);
                cx.out.push_back(Output::Update(Update::Compacting {
                    id: *id,
                    stage: Compacting::Cancelled,
                }));
                Vec::new()
            }
            Phase::Tools(batch) => {
                let open = batch.cancel(cx, history);
                deeds = batch.take_deeds();
                open
            }
        };
        self.phase = Phase::Settling {
            open,
            until: cx.now.plus(cx.limits.cancel_grace),
        };
        deeds
    }
}

impl Turn {
    /// Another round begins: what an answer may do once it may do again.
    pub(super) fn begin_round(&mut self, now: Instant) {
        self.deeds = Deeds::new(now);
        self.continued = false;
        self.compacted = false;
    }

    /// The model says something more.
    fn say(&mut self, cx: &mut Context<'_>, thought: bool, text: Text) {
        self.saying.add(thought, text.len());
        cx.out.push_back(Output::Update(Update::Text {
            thought,
            text,
            message: self.saying.id,
        }));
    }
}

impl End {
    pub(super) fn of(ending: &Ending) -> Self {
        let (reason, message) = match ending {
            Ending::EndTurn => (Reason::EndTurn, None),
            Ending::MaxTokens => (Reason::MaxTokens, None),
            Ending::MaxSteps => (Reason::MaxTurnRequests, None),
            Ending::Refusal => (Reason::Refusal, None),
            Ending::Cancelled => (Reason::Cancelled, None),
            Ending::Failed { message, .. } => (Reason::Failed, Some(message.clone())),
        };
        Self { reason, message }
    }
}

fn stop_run(cx: &mut Context<'_>, run: &mut ModelRun, call: Option<CallId>, brain: &mut Brain) {
    run.cancel();
    if let (Brain::Script(cursor), Some(position)) = (brain, run.script_position()) {
        cursor.rewind(position);
    }
    while let Some(event) = run.next_event(cx.now) {
        match event {
            ModelEvent::Abort => cx.out.extend(call.map(|id| Output::Abort { id })),
            ModelEvent::Start(_)
            | ModelEvent::Attempt
            | ModelEvent::Text(_)
            | ModelEvent::Thought(_)
            | ModelEvent::Retrying { .. }
            | ModelEvent::Finished(_)
            | ModelEvent::Failed(_) => {}
        }
    }
}

impl Engine {
    pub(super) fn model_event(&mut self, cx: &mut Context<'_>, event: ModelEvent) {
        let Some(turn) = &mut self.turn else { return };
        let summary = matches!(turn.phase, Phase::Compacting { .. });
        match event {
            ModelEvent::Start(call) => {
                let id = CallId::new(cx.ids.next());
                if let Phase::Answering { call: current, .. }
                | Phase::Compacting { call: current, .. } = &mut turn.phase
                {
                    *current = Some(id);
                }
                let tool = None;
                cx.out.push_back(Output::Start { id, call, tool });
            }
            ModelEvent::Abort => {
                if let Phase::Answering { call, .. } | Phase::Compacting { call, .. } =
                    &mut turn.phase
                {
                    cx.out.extend(call.take().map(|id| Output::Abort { id }));
                }
            }
            ModelEvent::Attempt => turn.saying.id = self.messages.next(),
            ModelEvent::Text(_) | ModelEvent::Thought(_) if summary => {}
            ModelEvent::Text(text) => turn.say(cx, false, text),
            ModelEvent::Thought(text) => turn.say(cx, true, text),
            ModelEvent::Retrying { after, why } => {
                turn.break_off(cx, &mut self.history, Extent::Dropped);
                cx.out.push_back(Output::Update(Update::Retrying {
                    after,
                    why: why.clone(),
                }));
                Self::log(
                    cx,
                    format!(
                        "the model is asked again in {} ms: {why}",
                        after.as_millis()
                    ),
                );
            }
            ModelEvent::Finished(answer) if summary => self.compacted(cx, Ok(answer)),
            ModelEvent::Failed(fault) if summary => self.compacted(cx, Err(fault)),
            ModelEvent::Finished(answer) => self.model_finished(cx, answer),
            ModelEvent::Failed(fault) => self.model_failed(cx, fault),
        }
    }

    fn model_finished(&mut self, cx: &mut Context<'_>, answer: Answer) {
        if let Some(usage) = answer.usage {
            self.used = Some(usage.prompt.saturating_add(usage.completion));
        }
        if let Some(turn) = &mut self.turn {
            turn.tried = false;
        }
        self.spent(answer.usage.as_ref());
        let cost = self.cost(answer.usage.as_ref());
        if answer.finish == FinishReason::ContentFilter {
            // It was shown, though the model forgets it.
            if let Some(turn) = &mut self.turn {
                let mut said = turn.saying.take(&answer.text, &answer.reasoning);
                said.extent = Extent::Partial;
                said.usage = answer.usage;
                said.cost = cost;
                self.record(cx, Record::Assistant(said));
            }
            return self.finish(cx, Ending::Refusal);
        }
        // Only some providers get it back; kept for the others it would count and cost memory.
        let echo = matches!(&self.brain, Brain::Endpoint(endpoint) if endpoint.echo_reasoning);
        let Some(turn) = &mut self.turn else { return };
        let mut said = turn.saying.take(&answer.text, &answer.reasoning);
        said.usage = answer.usage;
        said.cost = cost;
        said.echo = echo && !answer.reasoning.is_empty();
        if answer.calls.is_empty() {
            self.record(cx, Record::Assistant(said));
            return self.said_all(cx, answer.finish);
        }
        let uses: Vec<ToolUse> = answer
            .calls
            .iter()
            .map(|call| ToolUse {
                id: self.history.mint(&call.id),
                name: History::tool_name(&call.name),
                arguments: call.history_arguments().into(),
            })
            .collect();
        said.calls.clone_from(&uses);
        self.record(cx, Record::Assistant(said));
        let cut = answer.finish == FinishReason::Length;
        let batch = Batch::new(
            cx,
            uses,
            answer.calls,
            cut,
            self.is_subagent,
            &self.workspace,
        );
        if let Some(turn) = &mut self.turn {
            turn.phase = Phase::Tools(batch);
        }
    }

    /// An answer without calls.
    fn said_all(&mut self, cx: &mut Context<'_>, finish: FinishReason) {
        let Some(turn) = &mut self.turn else { return };
        match finish {
            FinishReason::Length if turn.continued => self.finish(cx, Ending::MaxTokens),
            FinishReason::Length => {
                turn.continued = true;
                self.say(cx, Author::Host, Message::text(CONTINUE));
                self.ask_model(cx);
            }
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::ContentFilter => {
                self.round_over(cx);
            }
        }
    }

    fn model_failed(&mut self, cx: &mut Context<'_>, fault: ModelFault) {
        let Some(turn) = &mut self.turn else { return };
        if fault.kind == FaultKind::ContextOverflow && !turn.compacted {
            turn.compacted = true;
            turn.break_off(cx, &mut self.history, Extent::Dropped);
            if self.compact(cx, true) {
                return;
            }
        }
        if let Some(turn) = &mut self.turn {
            turn.break_off(cx, &mut self.history, Extent::Partial);
        }
        let auth = fault.kind == FaultKind::Auth;
        self.finish(
            cx,
            Ending::Failed {
                message: fault.message,
                auth,
            },
        );
    }

    /// Ends a cancelled turn once its calls have settled.
    pub(super) fn settle(&mut self, cx: &mut Context<'_>) {
        if let Some(Turn {
            phase: Phase::Settling { open, .. },
            ..
        }) = &self.turn
            && open.is_empty()
        {
            self.finish(cx, Ending::Cancelled);
        }
    }

    pub(super) fn finish(&mut self, cx: &mut Context<'_>, ending: Ending) {
        self.close_turn(cx, &ending);
        if self.turn.take().is_none() {
            return;
        }
        let mut end = End::of(&ending);
        if ending == Ending::EndTurn {
            end.message.clone_from(&self.paused);
        }
        self.record(cx, Record::End(end));
        if let Some((used, size)) = self.usage() {
            cx.out
                .push_back(Output::Update(Update::Usage { used, size }));
        }
        cx.out.push_back(Output::Finished(ending));
    }
}
