//! What happens when the model has said all: a plan is put before the person, a goal goes on with
//! another round, or the turn ends; and what the person does to mode and goal meanwhile.
//!
//! | the answer ends, and | follows |
//! | --- | --- |
//! | plan mode is on, and a plan was set in this round | the person is asked about the plan |
//! | a goal runs | another round, if [`Pursuit::end_round`](super::goal::Pursuit::end_round) says so |
//! | otherwise | the end of the turn |
//!
//! | the person says to the plan | follows |
//! | --- | --- |
//! | allow | normal mode, and another round that carries it out |
//! | anything else, or nothing | the end of the turn, in plan mode |
//! | cancel | the turn is cancelled, in plan mode |

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use super::goal::{Follows, Goal, GoalError, GoalStatus, Label, Opening, Pursuit, Round};
use super::mode::{self, APPROVED, Mode};
use super::record::{Author, Message, Record, ToolResult, User};
use super::turn::{Phase, Turn};
use super::verify::pauses;
use super::{CardId, Context, Decision, Ending, Engine, Output};
use crate::model::{Cost, Usage};
use crate::permission::{Access, Action, Verdict};
use crate::time::Instant;
use crate::tools::{Card, Proposal, Todo, TodoStatus, ToolKind, ToolOutcome};

/// The name of the call by which the person is shown a plan.
const PLAN: &str = "plan";

/// What came of the round so far.
#[derive(Debug)]
pub(super) struct Deeds {
    /// When it began.
    began: Instant,
    /// A call succeeded that was not about the goal itself.
    progress: bool,
    /// A plan was set.
    planned: bool,
}

impl Deeds {
    pub(super) fn new(began: Instant) -> Self {
        Self {
            began,
            progress: false,
            planned: false,
        }
    }
}

/// What a tool call came to, for the round and for what was verified.
#[derive(Debug)]
pub(super) struct Deed {
    tool: String,
    ok: bool,
    wrote: bool,
    ran: Option<String>,
}

impl Deed {
    pub(super) fn of(tool: &str, outcome: &ToolOutcome) -> Self {
        Self {
            tool: tool.into(),
            ok: outcome.ok,
            wrote: outcome.wrote,
            ran: outcome.ran.clone(),
        }
    }
}

impl Engine {
    /// How the session works together with the person.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Its goal, if there is one.
    pub fn goal(&self) -> Option<&Goal> {
        self.pursuit.goal()
    }

    /// What is left to do, if the last turn ended as it should but counts as paused: what it wrote
    /// is not verified.
    pub fn paused(&self) -> Option<&str> {
        self.paused.as_deref()
    }

    /// Another mode, at once. Choosing goal mode makes the next prompt a goal, in the place of one
    /// that runs; choosing another one gives the goal up. A call that runs is not withdrawn.
    pub fn set_mode(&mut self, cx: &mut Context<'_>, mode: Mode) {
        self.enter(mode);
        self.pursue(cx, |pursuit, _| match mode {
            Mode::Goal => pursuit.set_draft(),
            Mode::Normal | Mode::Plan => pursuit.clear(),
        });
        self.recheck(cx);
        match &mut self.turn {
            Some(Turn {
                phase: Phase::Approving { card, .. },
                ..
            }) if mode != Mode::Plan => {
                // There is nothing to approve any more.
                let card = *card;
                cx.out.push_back(Output::Withdraw { card });
                self.plan_decided(cx, card, Decision::Unanswered);
            }
            Some(_) | None => {}
        }
    }

    /// The person stops the goal: the round that runs goes on to its end, and none follows.
    pub fn pause_goal(&mut self, cx: &mut Context<'_>) -> Result<(), GoalError> {
        self.pursue(cx, |pursuit, _| pursuit.pause())
    }

    /// The person lets a goal that was stopped go on, with the next prompt. Goal mode is on then.
    pub fn resume_goal(&mut self, cx: &mut Context<'_>) -> Result<(), GoalError> {
        self.pursue(cx, |pursuit, cx| pursuit.resume(cx.limits))?;
        self.enter(Mode::Goal);
        Ok(())
    }

    /// Whether work counts only when verified (the delivery preset).
    pub fn set_delivery(&mut self, on: bool) {
        self.delivery = on;
    }

    /// The mode and what hangs on it; the goal is not touched.
    pub(super) fn enter(&mut self, mode: Mode) {
        self.mode = mode;
        self.authority.set_planning(mode == Mode::Plan);
        self.state.set_goal_mode(mode == Mode::Goal);
    }

    /// Does something to the goal, and remembers it if it changed.
    pub(super) fn pursue<T>(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut Pursuit, &mut Context<'_>) -> T,
    ) -> T {
        let before = self.pursuit.clone();
        let came = act(&mut self.pursuit, cx);
        if before != self.pursuit {
            self.record(cx, Record::Goal(self.pursuit.clone()));
        }
        came
    }

    /// A prompt begins a turn: what it means for the goal, and what the model is told of the mode.
    /// Returns whether the turn belongs to a goal.
    pub(super) fn open_turn(
        &mut self,
        cx: &mut Context<'_>,
        from: Author,
        mut message: Message,
    ) -> bool {
        let id = self.spoken.next();
        let goal = message.goal.take();
        let mut user = message.into_user(id, from);
        let said = goal.unwrap_or_else(|| said(&user));
        let opening = self.pursue(cx, |pursuit, cx| pursuit.begin_turn(&said, cx.limits));
        if opening == Opening::Set {
            // What was open before is no part of it.
            self.unverified = Default::default();
        }
        if let Some(note) = mode::note(self.told, self.mode, opening) {
            user.add_note(note);
            user.mode = Some(self.mode.name().into());
            self.told = self.mode;
        }
        if let Some(note) = self.note.take() {
            user.add_note(&note);
        }
        self.unverified.begin_turn();
        self.paused = None;
        // What was said of another goal, or of the same in a turn that was cut off.
        self.state.take_report();
        self.state.take_steps();
        self.record(cx, Record::User(user));
        opening != Opening::None
    }

    /// The model answered, for the turn or for a summary.
    pub(super) fn spent(&mut self, usage: Option<&Usage>) {
        let tokens = usage.map_or(0, |usage| usage.prompt.saturating_add(usage.completion));
        if self.turn.as_ref().is_some_and(|turn| turn.goal) {
            self.pursuit.spent(tokens);
        }
    }

    /// What an answer cost, if that is known.
    pub(super) fn cost(&self, usage: Option<&Usage>) -> Option<Cost> {
        match &self.brain {
            super::Brain::Endpoint(endpoint) => endpoint.tariff.as_ref()?.cost(usage?),
            super::Brain::Script(_) | super::Brain::Nobody(_) => None,
        }
    }

    /// Calls are over.
    pub(super) fn take_deeds(&mut self, deeds: Vec<Deed>) {
        let Some(turn) = &mut self.turn else { return };
        for deed in deeds {
            self.unverified
                .take(&self.verifier, deed.wrote, deed.ran.as_deref(), deed.ok);
            turn.deeds.progress |= deed.ok && deed.tool != "update_goal";
            turn.deeds.planned |= deed.ok && deed.tool == "todo_write";
        }
    }

    /// The model has said all.
    pub(super) fn round_over(&mut self, cx: &mut Context<'_>) {
        let Some(turn) = &mut self.turn else { return };
        let planned = mem::take(&mut turn.deeds.planned);
        if self.mode == Mode::Plan && planned && self.ask_about_plan(cx) {
            return;
        }
        let Some(turn) = &mut self.turn else { return };
        if !turn.goal {
            return self.finish(cx, Ending::EndTurn);
        }
        let deeds = mem::replace(&mut turn.deeds, Deeds::new(cx.now));
        let round = Round {
            report: self.state.take_report(),
            steps: self.state.take_steps(),
            open: open(self.state.todos()),
            unverified: self.unverified_why(),
            progress: deeds.progress,
            worked: cx.now.since(deeds.began),
        };
        let follows = self.pursue(cx, |pursuit, cx| pursuit.end_round(round, cx.limits));
        match follows {
            Follows::Round(text) => self.next_round(cx, text),
            Follows::End => {
                let complete = self
                    .goal()
                    .is_some_and(|goal| goal.status == GoalStatus::Complete);
                // Another goal may have been wished for meanwhile.
                if complete && !self.pursuit.is_draft() {
                    self.enter(Mode::Normal);
                }
                self.finish(cx, Ending::EndTurn);
            }
        }
    }

    /// The turn goes on with something that the agent says.
    fn next_round(&mut self, cx: &mut Context<'_>, text: impl Into<String>) {
        if let Some(turn) = &mut self.turn {
            turn.begin_round(cx.now);
        }
        self.say(cx, Author::Round, Message::text(text));
        self.ask_model(cx);
    }

    /// The turn ends: what that means for its goal, and what is left to do.
    pub(super) fn close_turn(&mut self, cx: &mut Context<'_>, ending: &Ending) {
        let Some(turn) = &self.turn else { return };
        if turn.only_compacts {
            return;
        }
        if turn.only_runs {
            return self.line_over();
        }
        let (goal, worked) = (turn.goal, cx.now.since(turn.deeds.began));
        let label = match ending {
            Ending::EndTurn => {
                let counts = self.verification_counts(goal);
                self.paused = self.unverified.reason().filter(|_| counts);
                if let Some(why) = self.paused.clone() {
                    // The line of its own begins a chunk, so that programs find it.
                    for text in ["\n\n".into(), format!("[paused] Not verified, {why}.")] {
                        self.record(cx, Record::Note { text });
                    }
                }
                return;
            }
            Ending::Cancelled => Some(Label::Cancelled),
            Ending::Failed { .. } => Some(Label::Failed),
            Ending::MaxTokens | Ending::MaxSteps | Ending::Refusal => None,
        };
        if goal {
            self.pursue(cx, |pursuit, _| pursuit.break_round(label, worked));
        }
    }

    fn verification_counts(&self, goal: bool) -> bool {
        pauses(
            self.pause_unverified,
            self.delivery,
            goal || self.mode == Mode::Goal,
        )
    }

    fn unverified_why(&self) -> Option<String> {
        let counts = self.verification_counts(true) && self.unverified.is_open();
        counts.then(|| self.unverified.why())
    }

    /// Puts the plan before the person; false if they are not to be asked.
    fn ask_about_plan(&mut self, cx: &mut Context<'_>) -> bool {
        let action = Action::new(PLAN, Access::Session).protected();
        let asked = matches!(self.authority.decide(&action), Verdict::Ask { .. });
        if !asked || open(self.state.todos()).is_empty() {
            return false;
        }
        let card = CardId(self.cards.next());
        let call = self.history.mint(PLAN);
        let proposal = Proposal {
            action,
            card: Card {
                name: PLAN.into(),
                title: "Carry out this plan?".into(),
                kind: ToolKind::SwitchMode,
                locations: Vec::new(),
                raw_input: None,
            },
            diffs: Vec::new(),
            text: Some(self.plan_text()),
        };
        let Some(turn) = &mut self.turn else {
            return false;
        };
        turn.phase = Phase::Approving {
            card,
            call: call.clone(),
        };
        self.record(
            cx,
            Record::Call {
                id: call.clone(),
                card: proposal.card.clone(),
                line: None,
            },
        );
        cx.out.push_back(Output::Permit {
            card,
            call,
            proposal,
            always: None,
        });
        true
    }

    fn plan_text(&self) -> String {
        let mut text = String::from(self.history.last_said().unwrap_or_default().trim());
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str("Plan:");
        for todo in self.state.todos() {
            let sign = match todo.status {
                TodoStatus::Completed => "x",
                TodoStatus::InProgress | TodoStatus::Pending => " ",
            };
            let indent = if todo.level > 0 { "  " } else { "" };
            text.push_str(&format!("\n{indent}- [{sign}] {}", todo.content));
        }
        text
    }

    /// The person decided about the plan. Another card, or one that is not open, is none of it.
    pub(super) fn plan_decided(&mut self, cx: &mut Context<'_>, card: CardId, said: Decision) {
        let Some(Turn {
            phase: Phase::Approving { card: open, call },
            ..
        }) = &mut self.turn
        else {
            return;
        };
        if *open != card {
            return;
        }
        let id = mem::take(call);
        let approved = match said {
            Decision::Once | Decision::Always => true,
            Decision::Reject | Decision::Unanswered | Decision::Unasked => false,
        };
        let text = match said {
            Decision::Once | Decision::Always => "The plan was approved.",
            Decision::Reject => "The plan was not approved. Plan mode stays on.",
            Decision::Unanswered | Decision::Unasked => "The plan was not decided on.",
        };
        let result = ToolResult {
            id,
            ok: approved,
            text: text.into(),
            ..ToolResult::default()
        };
        self.record(cx, Record::Result(result));
        if approved {
            self.enter(Mode::Normal);
            self.told = Mode::Normal;
            self.next_round(cx, APPROVED);
        } else {
            self.finish(cx, Ending::EndTurn);
        }
    }
}

/// What the person said, without what belongs to it.
fn said(user: &User) -> String {
    match &user.shown {
        None => user.text.clone(),
        Some(shown) => {
            let texts: Vec<&str> = shown.iter().filter_map(|part| part.text()).collect();
            texts.join("\n\n")
        }
    }
}

fn open(todos: &[Todo]) -> Vec<String> {
    let open = todos
        .iter()
        .filter(|todo| todo.status != TodoStatus::Completed);
    open.map(|todo| todo.content.clone()).collect()
}
