//! Subagents: an engine inside the call of an engine.
//!
//! A model gives a task to another one by the tool `task`. The engine that runs the call holds the
//! engine of the subagent and drives it: the subagent has a history, a budget of steps and a list of
//! tools of its own, and nothing of its parent's but the system prompt, the model and the folders.
//! While it works its parent waits, since `task` runs alone.
//!
//! | the subagent says | its parent |
//! | --- | --- |
//! | start or abort a call | passes it on, and brings it the news |
//! | a tool call is announced, runs, or is over | announces it as one of its own session, under an id that is new there, and counts what it wrote and verified |
//! | may this run, a question | asks it of the person, under that id |
//! | an answer | shows its text as what the call of `task` has come to so far, and counts what it cost |
//! | its turn is over | ends the call of `task` with what it said last |
//! | all else | says nothing |
//!
//! | the parent's | the subagent |
//! | --- | --- |
//! | posture, mode or grants change | may what its parent may, met with the ceiling it began under: never more |
//! | turn is cancelled | is cancelled first; its calls settle with its parent's |
//! | client cancels the subagent's session | is cancelled, and is over when its calls have settled |
//! | session closes | its commands in the background end |
//!
//! What a reload shows is what was recorded: the calls of a subagent are records of its parent's
//! session, and so are its beginning and its end.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::record::End;
use super::record::{Extent, Message, Reason, Record, Subagent, ToolResult};
use super::turn::{Phase, Turn};
use super::{Brain, CardId, Context, Decision, Ending, Engine, Output, Setup, Update};
use crate::call::News;
use crate::ids::CallId;
use crate::permission::Posture;
use crate::settings::PauseUnverified;
use crate::tools::{Assignment, ToolOutcome};

/// What a subagent is told beside what its parent is told.
const ROLE: &str = "\nYou are a subagent: another agent gave you one task. Nobody reads along and \
    nobody can be asked. Do the task with the tools you have, then end with one answer that holds \
    all that the other agent needs, since it sees nothing else of what you did.\n";

/// A subagent at work.
#[derive(Debug)]
pub(super) struct Child {
    engine: Box<Engine>,
    /// The call of `task`.
    call: String,
    /// What its session is called.
    id: String,
    /// The most it may ever do.
    most: Posture,
    /// Its calls that are open.
    open: BTreeSet<CallId>,
    /// Its tool calls, and what they are called in its parent's session.
    names: BTreeMap<String, String>,
    /// Decisions that are waited for: its parent's, and what it calls them itself.
    cards: BTreeMap<CardId, CardId>,
    /// What it said and its parent has not heard.
    out: VecDeque<Output>,
}

impl Child {
    fn act<T>(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut Engine, &mut Context<'_>) -> T,
    ) -> T {
        let mut inner = Context {
            now: cx.now,
            unix_seconds: cx.unix_seconds,
            ids: cx.ids,
            limits: cx.limits,
            out: &mut self.out,
        };
        act(&mut self.engine, &mut inner)
    }

    /// What its tool call is called in its parent's session.
    fn name(&self, call: &str) -> String {
        self.names.get(call).cloned().unwrap_or_default()
    }

    /// A decision is not waited for any more.
    fn close_card(&mut self, card: CardId) -> Option<CardId> {
        let ours = self.cards.iter().find(|(_, its)| **its == card);
        let ours = ours.map(|(ours, _)| *ours)?;
        self.cards.remove(&ours);
        Some(ours)
    }

    /// Its model's place in a script.
    fn brain(&self) -> &Brain {
        &self.engine.brain
    }
}

impl Engine {
    /// The call of `task` may go on: the subagent begins.
    pub(super) fn delegate(&mut self, cx: &mut Context<'_>, call: String, task: Assignment) {
        let most = if task.read_only {
            Posture::ReadOnly
        } else {
            self.authority.posture()
        };
        let id = format!("{}.{}", self.session, self.subagents.next());
        self.jitter = self.jitter.wrapping_add(1);
        let setup = Setup {
            session: id.clone(),
            brain: self.brain.clone(),
            system: format!("{}{ROLE}", self.system),
            workspace: self.workspace.clone(),
            authority: self.authority.narrowed(most),
            light: false,
            max_steps: self.max_steps.min(cx.limits.max_task_steps),
            context_window: self.context_window,
            jitter: self.jitter,
            verifier: self.verifier.clone(),
            pause_unverified: PauseUnverified::Never,
            delivery: false,
        };
        let mut engine = Self::new(setup, cx.limits);
        engine.is_subagent = true;
        self.record(
            cx,
            Record::Subagent(Subagent {
                call: call.clone(),
                id: id.clone(),
                title: Some(task.title),
                task: Some(task.prompt.clone()),
                ..Subagent::default()
            }),
        );
        let mut child = Box::new(Child {
            engine: Box::new(engine),
            call,
            id,
            most,
            open: BTreeSet::new(),
            names: BTreeMap::new(),
            cards: BTreeMap::new(),
            out: VecDeque::new(),
        });
        child.act(cx, |engine, cx| {
            engine.prompt(cx, Message::text(task.prompt));
        });
        self.child = Some(child);
        self.hear_child(cx);
    }

    /// Lets the subagent do something, if there is one, and hears what it says.
    pub(super) fn with_child<T>(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut Engine, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let child = self.child.as_mut()?;
        let came = child.act(cx, act);
        self.hear_child(cx);
        Some(came)
    }

    /// The subagent that works now.
    pub(super) fn child(&self) -> Option<&Engine> {
        self.child.as_ref().map(|child| &*child.engine)
    }

    pub(super) fn child_mut(&mut self) -> Option<&mut Self> {
        self.child.as_mut().map(|child| &mut *child.engine)
    }

    /// News of a call, if it is the subagent's.
    pub(super) fn child_news<'n>(
        &mut self,
        cx: &mut Context<'_>,
        id: CallId,
        news: News<'n>,
    ) -> Option<News<'n>> {
        let Some(child) = &mut self.child else {
            return Some(news);
        };
        if !child.open.contains(&id) {
            return Some(news);
        }
        if matches!(news, News::Done(_) | News::Failed(_)) {
            child.open.remove(&id);
        }
        self.with_child(cx, |engine, cx| engine.handle_news(cx, id, news));
        None
    }

    /// The person decided about a call of the subagent. False: it is none of its.
    pub(super) fn child_decided(
        &mut self,
        cx: &mut Context<'_>,
        card: CardId,
        decision: Decision,
    ) -> bool {
        let Some(its) = self.take_child_card(card) else {
            return false;
        };
        self.with_child(cx, |engine, cx| engine.decided(cx, its, decision));
        // What was granted holds in the whole session.
        if let Some(child) = &self.child {
            self.authority.learn(&child.engine.authority);
        }
        true
    }

    /// A question of the subagent, by its own name for it.
    pub(super) fn take_child_card(&mut self, card: CardId) -> Option<CardId> {
        self.child.as_mut()?.cards.remove(&card)
    }

    /// What the session may do has changed: so has what the subagent may do.
    pub(super) fn narrow_child(&mut self, cx: &mut Context<'_>) {
        if let Some(child) = &self.child {
            let authority = self.authority.narrowed(child.most);
            self.with_child(cx, |engine, cx| {
                engine.authority = authority;
                engine.recheck(cx);
            });
        }
    }

    /// The subagent of this session is cancelled by itself: it ends when its calls have settled, and
    /// its parent goes on. Without such a subagent it does nothing.
    pub fn cancel_subagent(&mut self, cx: &mut Context<'_>, session: &str) {
        if self.child.as_ref().is_some_and(|child| child.id == session) {
            self.with_child(cx, Self::cancel);
        }
    }

    /// The turn is cancelled: the subagent ends. Returns the calls that have to settle.
    pub(super) fn cancel_child(&mut self, cx: &mut Context<'_>) -> Vec<CallId> {
        let Some(child) = &mut self.child else {
            return Vec::new();
        };
        child.act(cx, Engine::cancel);
        let open = match &child.engine.turn {
            Some(Turn {
                phase: Phase::Settling { open, .. },
                ..
            }) => open.clone(),
            Some(_) | None => Vec::new(),
        };
        self.hear_child(cx);
        if let Some(child) = self.child.take() {
            self.child_over(cx, *child, &Ending::Cancelled);
        }
        open
    }

    /// Passes on what the subagent said.
    fn hear_child(&mut self, cx: &mut Context<'_>) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        let mut ending = None;
        while let Some(output) = child.out.pop_front() {
            match output {
                Output::Start { id, call, tool } => {
                    child.open.insert(id);
                    let tool = tool.map(|tool| child.name(&tool));
                    cx.out.push_back(Output::Start { id, call, tool });
                }
                Output::CallServer { id, .. } => {
                    child.open.insert(id);
                    cx.out.push_back(output);
                }
                Output::Abort { .. }
                | Output::Log(_)
                | Output::Decided(_)
                | Output::Rooted { .. } => {
                    cx.out.push_back(output);
                }
                Output::Update(update) => cx.out.extend(passed(&child, update)),
                Output::Record(record) => self.child_record(cx, &mut child, record),
                Output::Permit {
                    card,
                    call,
                    proposal,
                    always,
                } => {
                    let ours = CardId(self.cards.next());
                    child.cards.insert(ours, card);
                    cx.out.push_back(Output::Permit {
                        card: ours,
                        call: child.name(&call),
                        proposal,
                        always,
                    });
                }
                Output::Questions {
                    card,
                    call,
                    questions,
                } => {
                    let ours = CardId(self.cards.next());
                    child.cards.insert(ours, card);
                    cx.out.push_back(Output::Questions {
                        card: ours,
                        call: child.name(&call),
                        questions,
                    });
                }
                Output::Withdraw { card } => {
                    let ours = child.close_card(card);
                    cx.out.extend(ours.map(|card| Output::Withdraw { card }));
                }
                Output::Finished(how) => ending = Some(how),
            }
        }
        match ending {
            None => self.child = Some(child),
            Some(ending) => self.child_over(cx, *child, &ending),
        }
    }

    /// Something that the subagent's own session would remember.
    fn child_record(&mut self, cx: &mut Context<'_>, child: &mut Child, record: Record) {
        if let Record::Call { id, card, line } = record {
            let name = self.history.mint(&id);
            child.names.insert(id, name.clone());
            let id = name;
            self.record(cx, Record::Call { id, card, line });
        } else if let Record::Result(result) = record {
            let id = child.name(&result.id);
            let ran = result.ran.as_deref();
            self.unverified
                .take(&self.verifier, result.wrote, ran, result.ok);
            self.record(cx, Record::Result(ToolResult { id, ..result }));
        } else if let Record::Assistant(answer) = record {
            let text = answer.text();
            if answer.extent == Extent::Whole && !text.trim().is_empty() {
                cx.out.push_back(Output::Update(Update::Progress {
                    id: child.call.clone(),
                    text,
                    session: Some(child.id.clone()),
                }));
            }
            self.child_spent(cx, child, answer.usage, answer.cost);
        } else if let Record::Summary { usage, cost, .. } = record {
            self.child_spent(cx, child, usage, cost);
        }
    }

    fn child_spent(
        &mut self,
        cx: &mut Context<'_>,
        child: &Child,
        usage: Option<crate::model::Usage>,
        cost: Option<crate::model::Cost>,
    ) {
        if usage.is_none() && cost.is_none() {
            return;
        }
        self.spent(usage.as_ref());
        self.record(
            cx,
            Record::Subagent(Subagent {
                call: child.call.clone(),
                id: child.id.clone(),
                usage,
                cost,
                ..Subagent::default()
            }),
        );
    }

    /// The subagent has ended: so does the call of `task`.
    fn child_over(&mut self, cx: &mut Context<'_>, mut child: Child, ending: &Ending) {
        child.act(cx, Engine::dispose);
        cx.out.append(&mut child.out);
        if let (Brain::Script(ours), Brain::Script(its)) = (&mut self.brain, child.brain()) {
            ours.go_on_from(its);
        }
        let said = child.engine.history.last_said().unwrap_or_default().trim();
        let (ok, text) = conclusion(ending, said);
        self.record(
            cx,
            Record::Subagent(Subagent {
                call: child.call.clone(),
                id: child.id.clone(),
                ended: Some(End::of(ending).reason),
                said: (!said.is_empty()).then(|| said.into()),
                ..Subagent::default()
            }),
        );
        let outcome = ToolOutcome {
            ok,
            text,
            session: Some(child.id),
            ..ToolOutcome::default()
        };
        if let Some(Turn {
            phase: Phase::Tools(batch),
            ..
        }) = &mut self.turn
        {
            batch.delegated(&child.call, outcome);
        }
    }
}

/// What the client sees of it while it works.
fn passed(child: &Child, update: Update) -> Option<Output> {
    let update = match update {
        Update::Running { id } => Update::Running {
            id: child.name(&id),
        },
        Update::Progress { id, text, session } => Update::Progress {
            id: child.name(&id),
            text,
            session,
        },
        Update::Retrying { after, why } => Update::Retrying { after, why },
        Update::Text { .. } | Update::Usage { .. } | Update::Compacting { .. } => return None,
    };
    Some(Output::Update(update))
}

/// What comes of the call of `task`: whether it did what it should, and what the model is told.
fn conclusion(ending: &Ending, said: &str) -> (bool, String) {
    let why = match ending {
        Ending::EndTurn if said.is_empty() => {
            return (true, "The subagent ended without a word.".into());
        }
        Ending::EndTurn => return (true, said.into()),
        Ending::MaxTokens => "The answer of the subagent was cut by its length.".into(),
        Ending::MaxSteps => "The subagent used all its model calls and was not done.".into(),
        Ending::Refusal => "The provider refused what the subagent was about.".into(),
        Ending::Cancelled => {
            "Cancelled by the person while the subagent worked: what it had done stays done.".into()
        }
        Ending::Failed { message, .. } => format!("The subagent failed: {message}"),
    };
    let text = if said.is_empty() {
        why
    } else {
        format!("{why} The last it said:\n{said}")
    };
    (false, text)
}

/// The end of a subagent that the end of the agent broke off.
pub(super) fn broken_off(open: Subagent) -> Record {
    Record::Subagent(Subagent {
        call: open.call,
        id: open.id,
        ended: Some(Reason::Interrupted),
        ..Subagent::default()
    })
}
