//! Our requests to the client: each is settled once, by an answer that fits or as failed.

use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::Serialize;

use crate::error::{CommandError, PeerFault};
use crate::ids::AskId;
use crate::wire::requests::write_cancel_request;
use crate::wire::rpc::write_request;
use crate::wire::{RequestId, RequestKey, RpcError};

use super::super::events::AgentEvent;
use super::super::gates::Gates;
use super::super::methods::{
    BadAnswer, ClientAnswer, ClientMethod, ClientMethodKind, Method, ReleaseTerminal,
};
use super::super::schema::{
    CompleteElicitationNotification, Json, PermissionOption, ReleaseTerminalRequest,
    RequestPermissionOutcome,
};
use super::super::states::{Connection, Permission, PermissionEvent};
use super::core::Core;

/// An open request of ours.
pub(super) struct Ask {
    kind: ClientMethodKind,
    session: Option<u64>,
    /// The client's request that it belongs to, if it belongs to one.
    within: Option<RequestKey>,
    /// What may be chosen, if it is a permission request.
    choices: Box<[Box<str>]>,
}

impl Core {
    pub(super) fn ask<M: ClientMethod>(
        &mut self,
        request: &M::Request,
    ) -> Result<AskId, CommandError<()>> {
        let session = match M::scope(request) {
            None => None,
            Some(id) => Some(self.sessions.find(id).ok_or(CommandError::Gone(()))?),
        };
        // It can only be asked while that waits for its answer.
        let within = match M::within(request) {
            None => None,
            Some(id) => Some(self.open_request(id).ok_or(CommandError::Gone(()))?),
        };
        let gates = session
            .and_then(|key| self.sessions.get(key))
            .map_or(self.gates, |s| s.gates);
        if !M::offered(request, gates) {
            return Err(CommandError::NotOffered(()));
        }
        if let Some(open) = within.and_then(|key| self.requests.get_mut(key)) {
            open.asks = true;
        }
        let choices = M::choices(request).unwrap_or_default();
        self.send(
            M::NAME,
            request,
            Ask {
                kind: M::KIND,
                session,
                within,
                choices: choices.iter().map(option_id).collect(),
            },
        )
    }

    pub(super) fn ask_vendor(
        &mut self,
        method: &str,
        params: &Json,
    ) -> Result<AskId, CommandError<()>> {
        self.send(
            method,
            params,
            Ask {
                kind: ClientMethodKind::Vendor,
                session: None,
                within: None,
                choices: Box::default(),
            },
        )
    }

    fn send(
        &mut self,
        method: &str,
        params: &impl Serialize,
        ask: Ask,
    ) -> Result<AskId, CommandError<()>> {
        if self.connection != Connection::Ready || self.finished || self.lost.is_some() {
            return Err(CommandError::Gone(()));
        }
        let id = self.asks.open(ask);
        self.output
            .frame(|out| write_request(out, id, method, params));
        Ok(AskId::new(id))
    }

    pub(super) fn withdraw(&mut self, id: u64) {
        let asks = &mut self.asks;
        self.output.frame(|out| {
            asks.withdraw(id, out);
        });
    }

    pub(super) fn cancel_ask(&mut self, id: u64) {
        if let Some(ask) = self.asks.get_mut(id) {
            ask.session = None;
            // Ids are counted from 1 and do not come near 2^63.
            let id = RequestId::from(id as i64);
            self.output.frame(|out| write_cancel_request(out, &id));
        }
    }

    pub(super) fn release_terminal(&mut self, request: &ReleaseTerminalRequest) {
        if self.closed || self.lost.is_some() {
            return;
        }
        let id = self.asks.pass();
        self.output
            .frame(|out| write_request(out, id, ReleaseTerminal::NAME, request));
    }

    pub(super) fn complete_elicitation(&mut self, id: &str) -> Result<(), CommandError<()>> {
        if !self.gates.has(Gates::URL) {
            return Err(CommandError::NotOffered(()));
        }
        self.notify(
            "elicitation/complete",
            &CompleteElicitationNotification::new(id),
        );
        Ok(())
    }

    /// The client's answer to one of our requests. Late and unknown ones leave no trace.
    pub(super) fn take_answer(&mut self, id: &RequestId, result: Result<&str, RpcError>) {
        let Some((id, ask)) = self.asks.settle(id) else {
            return;
        };
        let answer = ask.kind.read(result).and_then(|answer| ask.judge(answer));
        let answer = answer.unwrap_or_else(|BadAnswer(reason)| self.bad_answer(ask.kind, reason));
        self.event(AgentEvent::Settled {
            ask: AskId::new(id),
            answer,
        });
    }

    /// An answer that could not even be read as one. Returns whether anything was asked under this
    /// id.
    pub(super) fn spoil_answer(&mut self, id: &RequestId) -> bool {
        let Some((id, ask)) = self.asks.settle(id) else {
            return false;
        };
        let answer = self.bad_answer(ask.kind, "not a JSON-RPC 2.0 response".into());
        self.event(AgentEvent::Settled {
            ask: AskId::new(id),
            answer,
        });
        true
    }

    /// Settles what was asked for a session that is over.
    pub(super) fn abandon_asks_of(&mut self, session: u64) {
        self.abandon_asks_that(|ask| ask.session == Some(session));
    }

    /// Settles what was asked for a request of the client that is answered now.
    pub(super) fn abandon_asks_within(&mut self, request: RequestKey) {
        self.abandon_asks_that(|ask| ask.within == Some(request));
    }

    fn open_request(&self, id: &Json) -> Option<RequestKey> {
        self.requests.find(&RequestId::from_json(id.get())?)
    }

    fn abandon_asks_that(&mut self, over: impl Fn(&Ask) -> bool) {
        let open: Vec<u64> = self
            .asks
            .iter()
            .filter(|(_, ask)| over(ask))
            .map(|(id, _)| id)
            .collect();
        for id in open {
            let kind = self.asks.get(id).map(|ask| ask.kind);
            self.withdraw(id);
            if let Some(kind) = kind {
                self.event(AgentEvent::Settled {
                    ask: AskId::new(id),
                    answer: kind.failed(RpcError::cancelled()),
                });
            }
        }
    }

    /// Settles all: no answer can come any more.
    pub(super) fn abandon_asks(&mut self) {
        for (id, ask) in self.asks.abandon() {
            self.events.push_back(AgentEvent::Settled {
                ask: AskId::new(id),
                answer: ask.kind.failed(RpcError::cancelled()),
            });
        }
    }

    fn bad_answer(
        &mut self,
        kind: ClientMethodKind,
        reason: alloc::string::String,
    ) -> ClientAnswer {
        let error = RpcError::internal(&alloc::format!(
            "The client's answer does not fit: {reason}"
        ));
        self.misbehaved(PeerFault::BadAnswer {
            method: kind.name(),
            reason,
        });
        kind.failed(error)
    }
}

impl Ask {
    /// Only an option that was offered chooses; whatever else comes denies.
    fn judge(&self, answer: ClientAnswer) -> Result<ClientAnswer, BadAnswer> {
        let ClientAnswer::RequestPermission(Ok(response)) = &answer else {
            return Ok(answer);
        };
        let event = match &response.outcome {
            RequestPermissionOutcome::Selected(option)
                if self.choices.iter().any(|id| **id == *option.option_id) =>
            {
                PermissionEvent::Choose
            }
            RequestPermissionOutcome::Selected(_) | RequestPermissionOutcome::Cancelled => {
                PermissionEvent::Refuse
            }
        };
        let selected = response.outcome != RequestPermissionOutcome::Cancelled;
        match Permission::Open.on(event) {
            Ok(Permission::Denied) if selected => {
                Err(BadAnswer("an option that was not offered".into()))
            }
            Ok(_) => Ok(answer),
            Err(not) => Err(BadAnswer(not.event.into())),
        }
    }
}

fn option_id(option: &PermissionOption) -> Box<str> {
    option.option_id.as_str().into()
}
