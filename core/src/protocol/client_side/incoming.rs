//! What comes from the agent: updates, answers, requests. Each becomes an event; what breaks a rule
//! is told besides.

use serde::de::DeserializeOwned;

use crate::error::PeerFault;
use crate::ids::AskId;
use crate::wire::requests::{CANCEL_REQUEST, Refused, read_cancel_request};
use crate::wire::rpc::write_error;
use crate::wire::{Line, Message, RequestId, RequestKey, RpcError, rpc};

use super::super::events::ClientEvent;
use super::super::gates::Gates;
use super::super::methods::{
    AgentAnswer, Asked, BadAnswer, ClientMethod, ClientMethodKind, CreateElicitation,
    CreateTerminal, KillTerminal, ReadTextFile, ReleaseTerminal, RequestPermission, TerminalOutput,
    WaitForTerminalExit, WriteTextFile,
};
use super::super::schema::object::Unquoted;
use super::super::schema::{
    CompleteElicitationNotification, ElicitationScope, Json, SessionNotification,
};
use super::super::states::{ConnectionEvent, NotAllowed, Request, RequestEvent};
use super::{Core, Open};

impl Core {
    pub(super) fn take_line(&mut self, line: Line<'_>) {
        let message = match line {
            Line::Frame(frame) => rpc::read(frame, self.limits.max_depth),
            Line::TooLong => Err(rpc::too_long(self.limits.max_frame)),
        };
        match message {
            Ok(Message::Request { id, method, params }) => self.take_request(id, &method, params),
            Ok(Message::Notification { method, params }) => self.take_notification(&method, params),
            Ok(Message::Response { id, result }) => self.take_answer(&id, result),
            Err(fault) => {
                self.misbehaved(fault.fault);
                let asked =
                    |id: &RequestId| id.as_u64().is_some_and(|n| self.asks.get(n).is_some());
                let spoils = fault.spoils.filter(|id| fault.reply.is_none() || asked(id));
                if let Some((id, error)) = &fault.reply
                    && spoils.is_none()
                {
                    self.output.frame(|out| write_error(out, id, error));
                }
                if let Some(id) = &spoils {
                    self.take_answer(
                        id,
                        Err(RpcError::internal("The agent's answer is malformed")),
                    );
                }
            }
        }
    }

    fn misbehaved(&mut self, fault: PeerFault) {
        self.events.push_back(ClientEvent::Misbehaved(fault));
    }

    fn out_of_turn(&mut self, NotAllowed { state, event }: NotAllowed) {
        self.misbehaved(PeerFault::OutOfTurn { state, event });
    }

    fn take_notification(&mut self, method: &str, params: Option<&str>) {
        let text = params.unwrap_or("null");
        match method {
            "session/update" => match serde_json::from_str::<SessionNotification>(text) {
                Ok(note) => {
                    if !self.gates.has(Gates::needed(&note.update)) {
                        self.out_of_turn(NotAllowed {
                            state: "not advertised",
                            event: note.update.kind(),
                        });
                    }
                    if let Err(not) = self.mirror.updated(&note.session_id, &note.update) {
                        self.out_of_turn(not);
                    }
                    self.events.push_back(ClientEvent::Update(note));
                }
                Err(_) => self.misbehaved(PeerFault::NotRpc("session/update with bad params")),
            },
            "elicitation/complete" => {
                match serde_json::from_str::<CompleteElicitationNotification>(text) {
                    Ok(done) => self.events.push_back(ClientEvent::ElicitationComplete {
                        elicitation_id: done.elicitation_id,
                    }),
                    Err(_) => {
                        self.misbehaved(PeerFault::NotRpc("elicitation/complete with bad params"));
                    }
                }
            }
            CANCEL_REQUEST => {
                if let Some(id) = read_cancel_request(params)
                    && let Some(key) = self.requests.find(&id)
                    && let Some(open) = self.requests.get_mut(key)
                {
                    let first = open.state == Request::Open;
                    let next = open.state.on(RequestEvent::Cancel);
                    // Open requests are open or cancelled, and both can be cancelled.
                    open.state = next.expect("an open request can be cancelled");
                    if first {
                        self.events.push_back(ClientEvent::CancelRequest { key });
                    }
                }
            }
            _ if method.starts_with('_') => {
                self.events.push_back(ClientEvent::VendorNotification {
                    method: method.into(),
                    params: params.and_then(Json::from_text),
                });
            }
            _ => {}
        }
    }

    fn take_answer(&mut self, id: &RequestId, result: Result<&str, RpcError>) {
        let Some((id, ask)) = self.asks.settle(id) else {
            return self.misbehaved(PeerFault::OutOfTurn {
                state: "settled",
                event: "answer",
            });
        };
        let answer = ask.kind.read(result).unwrap_or_else(|BadAnswer(reason)| {
            let method = ask.kind.name();
            let error = alloc::format!("The agent's answer does not fit: {reason}");
            self.misbehaved(PeerFault::BadAnswer { method, reason });
            ask.kind.failed(RpcError::internal(&error))
        });
        if let AgentAnswer::Initialize(result) = &answer {
            if let Ok(response) = result {
                self.agent = response.agent_capabilities.clone();
            }
            self.connect(match result {
                Ok(_) => ConnectionEvent::Welcome,
                Err(_) => ConnectionEvent::Refuse,
            });
        }
        let ask_id = AskId::new(id);
        if let Err(not) = self.mirror.answered(&answer, ask.session.as_ref(), ask_id) {
            self.out_of_turn(not);
        }
        self.events.push_back(ClientEvent::Answered {
            ask: ask_id,
            answer,
        });
    }

    fn take_request(&mut self, id: RequestId, method: &str, params: Option<&str>) {
        let vendor = method.starts_with('_').then_some(ClientMethodKind::Vendor);
        let Some(kind) = ClientMethodKind::from_name(method).or(vendor) else {
            let error = RpcError::method_not_found(method);
            return self.output.frame(|out| write_error(out, &id, &error));
        };
        let open = Open {
            kind,
            state: Request::Open,
            session: None,
        };
        match self.requests.open(id.clone(), open) {
            Ok(key) => {
                if let Err(error) = self.admit(key, kind, method, params)
                    && let Some((id, _)) = self.requests.settle(key)
                {
                    self.output.frame(|out| write_error(out, &id, &error));
                }
            }
            Err(Refused::Duplicate(_) | Refused::Full(_)) => {
                self.misbehaved(PeerFault::NotRpc(
                    "an id that is open, or too many open requests",
                ));
                let error = RpcError::invalid_request("This request cannot be taken now");
                self.output.frame(|out| write_error(out, &id, &error));
            }
        }
    }

    fn admit(
        &mut self,
        key: RequestKey,
        kind: ClientMethodKind,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), RpcError> {
        use ClientMethodKind as K;
        let asked_for = match kind {
            K::RequestPermission => {
                let request = self.decode::<RequestPermission>(key, params)?;
                if let Err(not) = self.mirror.permission(&request) {
                    self.out_of_turn(not);
                }
                let asked = Asked::new(key);
                ClientEvent::RequestPermission { asked, request }
            }
            K::ReadTextFile => {
                let request = self.decode::<ReadTextFile>(key, params)?;
                let asked = Asked::new(key);
                ClientEvent::ReadTextFile { asked, request }
            }
            K::WriteTextFile => {
                let request = self.decode::<WriteTextFile>(key, params)?;
                let asked = Asked::new(key);
                ClientEvent::WriteTextFile { asked, request }
            }
            K::CreateTerminal => {
                let request = self.decode::<CreateTerminal>(key, params)?;
                let asked = Asked::new(key);
                ClientEvent::CreateTerminal { asked, request }
            }
            K::TerminalOutput => {
                let request = self.decode::<TerminalOutput>(key, params)?;
                let asked = Asked::new(key);
                ClientEvent::TerminalOutput { asked, request }
            }
            K::WaitForTerminalExit => {
                let request = self.decode::<WaitForTerminalExit>(key, params)?;
                let asked = Asked::new(key);
                ClientEvent::WaitForTerminalExit { asked, request }
            }
            K::KillTerminal => {
                let request = self.decode::<KillTerminal>(key, params)?;
                let asked = Asked::new(key);
                ClientEvent::KillTerminal { asked, request }
            }
            K::ReleaseTerminal => {
                let request = self.decode::<ReleaseTerminal>(key, params)?;
                let asked = Asked::new(key);
                ClientEvent::ReleaseTerminal { asked, request }
            }
            K::CreateElicitation => {
                let request = self.decode::<CreateElicitation>(key, params)?;
                if let ElicitationScope::Request { request_id } = &request.scope {
                    let id = RequestId::from_json(request_id.get()).and_then(|id| id.as_u64());
                    if id.is_none_or(|id| self.asks.get(id).is_none()) {
                        self.out_of_turn(NotAllowed {
                            state: Request::Settled.name(),
                            event: "elicitation/create",
                        });
                    }
                }
                let asked = Asked::new(key);
                ClientEvent::CreateElicitation { asked, request }
            }
            K::Vendor => ClientEvent::VendorRequest {
                asked: Asked::new(key),
                method: method.into(),
                params: params.and_then(Json::from_text),
            },
        };
        self.events.push_back(asked_for);
        Ok(())
    }

    /// Reads a request; refuses what was not advertised.
    fn decode<M: ClientMethod>(
        &mut self,
        key: RequestKey,
        params: Option<&str>,
    ) -> Result<M::Request, RpcError>
    where
        M::Request: DeserializeOwned,
    {
        match serde_json::from_str::<M::Request>(params.unwrap_or("null")) {
            Ok(request) if M::offered(&request, self.gates) => {
                if let Some(open) = self.requests.get_mut(key) {
                    open.session = M::scope(&request).cloned();
                }
                Ok(request)
            }
            Ok(_) => {
                self.out_of_turn(NotAllowed {
                    state: "not advertised",
                    event: M::NAME,
                });
                Err(RpcError::method_not_found(M::NAME))
            }
            Err(e) => {
                self.misbehaved(PeerFault::NotRpc("a request with bad params"));
                let error = alloc::format!("{}: {}", M::NAME, Unquoted(&e));
                Err(RpcError::invalid_params(&error))
            }
        }
    }
}
