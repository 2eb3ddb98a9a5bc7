//! What people and their inbox say to an engine: it begins a turn, or it is guidance for the one that
//! runs. Knows nothing of what comes of it.

use alloc::collections::VecDeque;
use alloc::string::String;

use super::record::{Author, Record};
use super::turn::{Phase, Turn};
use super::{Brain, Context, Ending, Engine, Message};
use crate::model::Part;

impl Engine {
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
    pub(super) fn claim_guidance(&mut self, cx: &mut Context<'_>) -> bool {
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
    pub(super) fn say(&mut self, cx: &mut Context<'_>, from: Author, message: Message) {
        let id = self.spoken.next();
        self.record(cx, Record::User(message.into_user(id, from)));
    }
}
