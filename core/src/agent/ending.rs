//! The end of a turn: what follows it, and the answer to its prompt.

use alloc::string::String;

use super::Agent;
use super::dispatch::turn_failed;
use super::opening::auth_required;
use crate::engine::Ending;
use crate::ids::SessionKey;
use crate::protocol::schema::vendor::status::{PromptMeta, TurnMeta};
use crate::protocol::schema::{
    Meta, Notice, NoticeSeverity, PromptResponse, SessionUpdate, StopReason,
};

impl Agent {
    /// Time has passed for a turn that was cancelled: who cancelled it does not wait for a disk that
    /// hangs.
    pub(super) fn lose_patience(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if session.patience.is_none_or(|at| at > self.now) {
            return;
        }
        session.patience = None;
        let store = session.store;
        if self.stop_waiting(store) {
            self.finish(key, Ending::Cancelled);
        }
        self.set_timer(key);
    }

    /// A turn is over: the next item of the inbox has its turn, or the prompt is answered.
    pub(super) fn finish(&mut self, key: SessionKey, ending: Ending) {
        // What waits is for after a turn, and a command is none.
        if self
            .sessions
            .get(&key)
            .is_some_and(|session| session.command)
        {
            return self.answer_prompt(key, ending);
        }
        if let Some(ending) = self.next_from_inbox(key, ending) {
            self.answer_prompt(key, ending);
        }
    }

    /// Answers the prompt.
    pub(super) fn answer_prompt(&mut self, key: SessionKey, ending: Ending) {
        self.tell_drift(key);
        self.withdraw_launch(key, None);
        let mut outcome = self.turn_outcome(key);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if core::mem::take(&mut session.command) {
            // It says nothing of a turn.
            outcome = None;
        }
        let Some(turn) = session.turn.take() else {
            return;
        };
        session.patience = None;
        self.turns.remove(&turn);
        self.refresh_if_queued(key);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let model = session.axes.model.clone();
        let stored = self.stores.get_mut(&session.store);
        let (trouble, transcript) = stored.map_or((None, None), |stored| {
            (stored.trouble(), stored.transcript().map(String::from))
        });
        if let (Some(why), Some(mut session)) = (trouble, self.side.session(key)) {
            let mut notice = Notice::new(NoticeSeverity::Warning, "This session is not saved");
            notice.description = Some(why);
            session.notify(&SessionUpdate::Notice(notice));
        }
        let reason = match ending {
            Ending::EndTurn => StopReason::EndTurn,
            Ending::MaxTokens => StopReason::MaxTokens,
            Ending::MaxSteps => StopReason::MaxTurnRequests,
            Ending::Refusal => StopReason::Refusal,
            Ending::Cancelled => StopReason::Cancelled,
            Ending::Failed { mut message, auth } => {
                self.known.secrets().redact(&mut message);
                let error = if auth {
                    auth_required(&model, &message)
                } else {
                    turn_failed(message)
                };
                if let Some(turn) = self.side.turn(turn) {
                    turn.fail(error);
                }
                return;
            }
        };
        if let Some(turn) = self.side.turn(turn) {
            let mut response = PromptResponse::new(reason);
            let meta = TurnMeta {
                transcript_path: transcript,
                turn_outcome: outcome.filter(|_| reason == StopReason::EndTurn),
                meta: None,
            };
            if meta != TurnMeta::default() {
                response.meta = Meta::of(&PromptMeta::new(meta));
            }
            turn.finish(response);
        }
    }
}
