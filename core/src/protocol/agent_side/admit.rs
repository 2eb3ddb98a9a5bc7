//! What comes from the client: a line becomes an answer, a request that is registered, a cancel. The
//! id is registered here before anything else happens, so that a cancel behind it finds it.

use alloc::borrow::Cow;

use crate::error::PeerFault;
use crate::ids::SessionKey;
use crate::wire::requests::{CANCEL_REQUEST, read_cancel_request};
use crate::wire::{Line, Message, RequestId, RequestKey, RpcError, rpc};

use super::super::events::AgentEvent;
use super::super::methods::AgentMethodKind;
use super::super::schema::{CancelNotification, Json, SessionId};
use super::super::states::{Connection, Request, RequestEvent};
use super::checks::coded;
use super::core::{Core, Open, What};
use super::sessions::Held;

impl Core {
    /// Processes one line of the client.
    pub(super) fn take_line(&mut self, line: Line<'_>) {
        let message = match line {
            Line::Frame(frame) => rpc::read(frame, self.limits.max_depth),
            Line::TooLong => Err(rpc::too_long(self.limits.max_frame)),
        };
        match message {
            Ok(Message::Request { id, method, params }) => self.take_request(id, &method, params),
            Ok(Message::Notification { method, params }) => self.take_notification(method, params),
            Ok(Message::Response { id, result }) => self.take_answer(&id, result),
            Err(fault) => {
                self.misbehaved(fault.fault);
                let spoiled = fault.spoils.is_some_and(|id| self.spoil_answer(&id));
                if let Some((id, error)) = &fault.reply
                    && !spoiled
                {
                    self.refuse(id, error);
                }
            }
        }
    }

    fn take_request(&mut self, id: RequestId, method: &str, params: Option<&str>) {
        let vendor = method.starts_with('_').then_some(AgentMethodKind::Vendor);
        let kind = AgentMethodKind::from_name(method).or(vendor);
        let refusal = if self.requests.find(&id).is_some() {
            Some(coded(
                RpcError::invalid_request("A request with this id is open"),
                "id_in_use",
            ))
        } else if self.connection == Connection::Fresh && kind != Some(AgentMethodKind::Initialize)
        {
            Some(coded(
                RpcError::invalid_request("The first request has to be initialize"),
                "not_initialized",
            ))
        } else if self.requests.len() >= self.limits.max_open_requests {
            Some(coded(
                RpcError::invalid_request("Too many requests are open"),
                "too_many_requests",
            ))
        } else {
            None
        };
        if let Some(error) = refusal {
            return self.refuse(&id, &error);
        }
        let Some(kind) = kind else {
            return self.refuse(&id, &RpcError::method_not_found(method));
        };
        let open = Open {
            kind,
            state: Request::Open,
            what: What::Answer,
            gates: self.gates,
            asks: false,
        };
        // Neither of the two reasons for a refusal is left.
        let Ok(key) = self.requests.open(id, open) else {
            unreachable!("the id is new and there is room")
        };
        self.call(key, kind, method, params);
    }

    /// Admits a request that is registered: it becomes an event, waits, or is answered.
    pub(super) fn call(
        &mut self,
        key: RequestKey,
        kind: AgentMethodKind,
        method: &str,
        params: Option<&str>,
    ) {
        if let Err(error) = self.admit(key, kind, method, params) {
            self.fail(key, &error);
        }
    }

    fn take_notification(&mut self, method: Cow<'_, str>, params: Option<&str>) {
        if self.connection == Connection::Fresh {
            return;
        }
        if method == "session/cancel" {
            match serde_json::from_str::<CancelNotification>(params.unwrap_or("null")) {
                Ok(cancel) => self.cancel_session(&cancel.session_id, params),
                Err(_) => self.misbehaved(PeerFault::NotRpc("session/cancel with bad params")),
            }
        } else if method == CANCEL_REQUEST {
            match read_cancel_request(params) {
                Some(id) => {
                    if let Some(key) = self.requests.find(&id) {
                        self.cancel_request(key);
                    }
                }
                None => self.misbehaved(PeerFault::NotRpc("$/cancel_request with bad params")),
            }
        } else if method.starts_with('_') {
            self.event(AgentEvent::VendorNotification {
                method: method.into_owned(),
                params: params.and_then(Json::from_text),
            });
        }
    }

    /// `session/cancel`: its turn, and whatever waits for the session before it.
    fn cancel_session(&mut self, id: &SessionId, params: Option<&str>) {
        let Some(key) = self.sessions.find(id) else {
            // Only of a subagent that was announced as one that can be cancelled.
            if let Some(parent) = self.children.get(id) {
                self.event(AgentEvent::CancelSubagent {
                    session: SessionKey::new(*parent),
                    subagent: id.clone(),
                });
            }
            return;
        };
        let Some(session) = self.sessions.get(key) else {
            return;
        };
        let waits = session.has_waiting();
        if let Some(turn) = session.turn {
            self.cancel_turn(turn.get());
        }
        if waits {
            let held = Held::new(key, None, AgentMethodKind::Prompt, "session/cancel", params);
            // Without room for it the prompts it would have cancelled are few enough to be run.
            let _ = self.hold(held);
        }
    }

    /// A frame that waited for its session and waits no more.
    pub(super) fn resume(&mut self, held: Held) {
        self.held_bytes -= held.size();
        let params = held.params();
        match held.key {
            Some(key) => {
                if self.requests.get(key).is_some() {
                    self.set_what(key, What::Answer);
                    self.call(key, held.kind, &held.method, params);
                }
            }
            None => {
                if let Ok(cancel) =
                    serde_json::from_str::<CancelNotification>(params.unwrap_or("null"))
                {
                    self.cancel_session(&cancel.session_id, params);
                }
            }
        }
    }

    /// `$/cancel_request`, or the end of the input, for one open request.
    pub(super) fn cancel_request(&mut self, key: RequestKey) {
        let Some(open) = self.requests.get_mut(key) else {
            return;
        };
        let (kind, what) = (open.kind, open.what);
        let first = open.state == Request::Open;
        // Open requests are open or cancelled, and both can be cancelled.
        open.state = open
            .state
            .on(RequestEvent::Cancel)
            .expect("an open request can be cancelled");
        match what {
            What::Turn(turn) => self.cancel_turn(turn),
            What::Session(session) => {
                self.drop_held(session, key);
                self.answer_cancelled(key, kind);
            }
            What::Answer | What::Opening(_) | What::Closing(_) => {
                if first {
                    self.event(AgentEvent::CancelRequest { key });
                }
            }
        }
    }

    /// The answer is to hold what this session's client took when it was opened.
    pub(super) fn use_gates_of(&mut self, key: RequestKey, session: u64) {
        if let Some(session) = self.sessions.get(session)
            && let Some(open) = self.requests.get_mut(key)
        {
            open.gates = session.gates;
        }
    }

    pub(super) fn set_what(&mut self, key: RequestKey, what: What) {
        if let Some(open) = self.requests.get_mut(key) {
            open.what = what;
        }
    }
}
