//! Questions of an engine on their way to the person, and back if nobody waits for them any more.

use alloc::string::String;
use alloc::vec::Vec;

use super::session::{Asking, Waiting};
use super::{Agent, cards, forms};
use crate::engine::{CardId, Output};
use crate::ids::SessionKey;
use crate::protocol::methods::{CreateElicitation, RequestPermission};
use crate::tools::{Answer, Question};

impl Agent {
    /// Asks all questions at once by a form, where the client takes one that is long enough; else
    /// one after the other.
    pub(super) fn ask_questions(
        &mut self,
        key: SessionKey,
        card: CardId,
        call: String,
        questions: Vec<Question>,
    ) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let limits = &self.config.limits;
        let form = forms::request(session.id.clone(), &call, &questions, limits);
        let ask = form.and_then(|form| self.side.ask::<CreateElicitation>(&form).ok());
        let Some(ask) = ask else {
            return self.ask_question(key, card, call, questions, Vec::new());
        };
        let asking = Asking::Form {
            card,
            call,
            questions,
        };
        session.asks.insert(ask, asking);
        self.asks.insert(ask, key);
    }

    /// Asks the question after those that were answered; one that this client cannot be asked is
    /// passed over.
    pub(super) fn ask_question(
        &mut self,
        key: SessionKey,
        card: CardId,
        call: String,
        questions: Vec<Question>,
        mut answers: Vec<Answer>,
    ) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        while let Some(next) = questions.get(answers.len()) {
            let limits = &self.config.limits;
            let request = cards::question(session.id.clone(), &call, next, limits);
            let ask = request.and_then(|request| self.side.ask::<RequestPermission>(&request).ok());
            let Some(ask) = ask else {
                answers.push(Answer::NotAsked);
                continue;
            };
            let asking = Asking::Question {
                card,
                call,
                questions,
                answers,
            };
            session.asks.insert(ask, asking);
            self.asks.insert(ask, key);
            return;
        }
        self.with_engine(key, |engine, _| engine.answered(card, answers));
    }

    /// A card or question is no longer open: withdrawn if it was asked, forgotten if it waits.
    pub(super) fn withdraw(&mut self, key: SessionKey, card: CardId) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        session.servers.project.launches.withdraw(card);
        session.outbox.retain(|waiting| match waiting {
            Waiting::Said(
                Output::Permit { card: asked, .. } | Output::Questions { card: asked, .. },
            ) => *asked != card,
            Waiting::Said(
                Output::Update(_)
                | Output::Record(_)
                | Output::Start { .. }
                | Output::CallServer { .. }
                | Output::Abort { .. }
                | Output::Withdraw { .. }
                | Output::Finished(_)
                | Output::Decided(_)
                | Output::Rooted { .. }
                | Output::Log(_),
            )
            | Waiting::Drawn(_)
            | Waiting::Embed { .. }
            | Waiting::Told(_) => true,
        });
        let open = session
            .asks
            .iter()
            .find(|(_, asking)| asking.card() == card);
        if let Some(ask) = open.map(|(ask, _)| *ask) {
            session.asks.remove(&ask);
            self.asks.remove(&ask);
            self.side.withdraw(ask);
        }
    }
}
