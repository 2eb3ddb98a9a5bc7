//! Frames of the agent: what each means, and what is answered to those that mean nothing.

use serde::de::DeserializeOwned;

use crate::error::PeerFault;
use crate::ids::AskId;
use crate::wire::requests::{CANCEL_REQUEST, read_cancel_request};
use crate::wire::rpc::{self, write_error};
use crate::wire::{FrameDecoder, Line, Message, ReadFault, RequestId, RpcError};

use super::super::events::ClientEvent;
use super::super::methods::{AgentAnswer, Asked, ClientMethodKind};
use super::super::schema::{CompleteElicitationNotification, Json, SessionNotification};
use super::super::states::ConnectionEvent;
use super::{ClientSide, Open};

impl ClientSide {
    /// Processes one line; whether there was one.
    pub(super) fn process_line(&mut self) -> bool {
        // Out of the way while its line is looked at; a line never reaches the decoder again.
        let mut decoder = core::mem::replace(&mut self.decoder, FrameDecoder::new(0));
        let line = decoder.next_line();
        let some = line.is_some();
        match line {
            Some(Line::Frame(frame)) => match rpc::read(frame, self.limits.max_depth) {
                Ok(message) => self.message(message),
                Err(fault) => self.fault(*fault),
            },
            Some(Line::TooLong) => self.fault(*rpc::too_long(self.limits.max_frame)),
            None => {}
        }
        self.decoder = decoder;
        some
    }

    fn message(&mut self, message: Message<'_>) {
        match message {
            Message::Request { id, method, params } => self.asked(id, &method, params),
            Message::Notification { method, params } => self.notified(&method, params),
            Message::Response { id, result } => self.answered(&id, result),
        }
    }

    fn fault(&mut self, fault: ReadFault) {
        if let Some((id, error)) = &fault.reply {
            self.frames.add(|out| write_error(out, id, error));
        }
        self.events.push_back(ClientEvent::Misbehaved(fault.fault));
        if let Some(id) = &fault.spoils {
            self.answered(id, Err(RpcError::internal("The answer cannot be read")));
        }
    }

    fn misbehaved(&mut self, fault: PeerFault) {
        self.events.push_back(ClientEvent::Misbehaved(fault));
    }

    fn answered(&mut self, id: &RequestId, result: Result<&str, RpcError>) {
        let Some((number, Open { kind, prompt })) = self.outgoing.settle(id) else {
            return self.misbehaved(PeerFault::NotRpc("an answer to no open request"));
        };
        let ask = AskId::new(number);
        let answer = match kind.read(result) {
            Ok(answer) => answer,
            Err(bad) => {
                let error = RpcError::internal(&bad.0);
                self.misbehaved(PeerFault::BadAnswer {
                    method: kind.name(),
                    reason: bad.0,
                });
                kind.failed(error)
            }
        };
        if let AgentAnswer::Initialize(result) = &answer {
            let event = match result {
                Ok(response) => {
                    self.agent = response.agent_capabilities.clone();
                    ConnectionEvent::Welcome
                }
                Err(_) => ConnectionEvent::Refuse,
            };
            self.advance(event);
        }
        if let Some(session) = prompt {
            let others = self
                .outgoing
                .iter()
                .any(|(_, open)| open.prompt.as_ref() == Some(&session));
            // An error beside another open prompt is a refusal of a second one, not the turn's end.
            if !(others && answer.error().is_some())
                && let Err(fault) = self.follow.answered(&session)
            {
                self.misbehaved(fault);
            }
        }
        self.events.push_back(ClientEvent::Answered { ask, answer });
    }

    fn notified(&mut self, method: &str, params: Option<&str>) {
        match method {
            "session/update" => match read::<SessionNotification>(params) {
                Ok(notification) => {
                    let followed = self
                        .follow
                        .updated(&notification.session_id, &notification.update);
                    self.events.push_back(ClientEvent::Update(notification));
                    if let Err(fault) = followed {
                        self.misbehaved(fault);
                    }
                }
                Err(_) => self.misbehaved(PeerFault::NotRpc("a session/update does not fit")),
            },
            "elicitation/complete" => {
                if let Ok(done) = read::<CompleteElicitationNotification>(params) {
                    let elicitation_id = done.elicitation_id;
                    self.events
                        .push_back(ClientEvent::ElicitationComplete { elicitation_id });
                }
            }
            CANCEL_REQUEST => {
                let key = read_cancel_request(params).and_then(|id| self.incoming.find(&id));
                if let Some(key) = key
                    && let Some(withdrawn) = self.incoming.get_mut(key)
                    && !core::mem::replace(withdrawn, true)
                {
                    self.events.push_back(ClientEvent::CancelRequest { key });
                }
            }
            vendor if vendor.starts_with('_') => {
                let params = params.and_then(Json::from_text);
                self.events.push_back(ClientEvent::VendorNotification {
                    method: vendor.into(),
                    params,
                });
            }
            // Unknown notifications are passed over in silence.
            _ => {}
        }
    }

    fn asked(&mut self, id: RequestId, method: &str, params: Option<&str>) {
        let kind = ClientMethodKind::from_name(method);
        if kind.is_none() && !method.starts_with('_') {
            return self.refuse(&id, &RpcError::method_not_found(method));
        }
        let Ok(key) = self.incoming.open(id.clone(), false) else {
            self.misbehaved(PeerFault::NotRpc("the id of a request is open already"));
            return self.refuse(&id, &RpcError::invalid_request("The id is open already"));
        };
        match event(kind, key, method, params) {
            Ok(event) => self.events.push_back(event),
            Err(why) => {
                self.incoming.settle(key);
                self.misbehaved(PeerFault::NotRpc("the parameters of a request do not fit"));
                self.refuse(&id, &RpcError::invalid_params(&why));
            }
        }
    }

    fn refuse(&mut self, id: &RequestId, error: &RpcError) {
        self.frames.add(|out| write_error(out, id, error));
    }
}

/// The event of a request.
fn event(
    kind: Option<ClientMethodKind>,
    key: crate::wire::RequestKey,
    method: &str,
    params: Option<&str>,
) -> Result<ClientEvent, alloc::string::String> {
    macro_rules! ask {
        ($name:ident) => {
            ClientEvent::$name {
                asked: Asked::new(key),
                request: read(params)?,
            }
        };
    }
    Ok(match kind {
        Some(ClientMethodKind::RequestPermission) => ask!(RequestPermission),
        Some(ClientMethodKind::ReadTextFile) => ask!(ReadTextFile),
        Some(ClientMethodKind::WriteTextFile) => ask!(WriteTextFile),
        Some(ClientMethodKind::CreateTerminal) => ask!(CreateTerminal),
        Some(ClientMethodKind::TerminalOutput) => ask!(TerminalOutput),
        Some(ClientMethodKind::WaitForTerminalExit) => ask!(WaitForTerminalExit),
        Some(ClientMethodKind::KillTerminal) => ask!(KillTerminal),
        Some(ClientMethodKind::ReleaseTerminal) => ask!(ReleaseTerminal),
        Some(ClientMethodKind::CreateElicitation) => ask!(CreateElicitation),
        Some(ClientMethodKind::Vendor) | None => ClientEvent::VendorRequest {
            asked: Asked::new(key),
            method: method.into(),
            params: params.and_then(Json::from_text),
        },
    })
}

/// Reads parameters; the error does not quote them.
fn read<T: DeserializeOwned>(params: Option<&str>) -> Result<T, alloc::string::String> {
    super::super::methods::read_params(params)
}
