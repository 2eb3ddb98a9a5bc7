//! What a client can know of the agent's sessions: enough to see when a rule is broken. The rules
//! themselves are the table in `states`.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::ids::AskId;

use super::super::agent_side::event_of;
use super::super::methods::{AgentAnswer, AgentMethodKind};
use super::super::schema::{RequestPermissionRequest, SessionId, SessionUpdate};
use super::super::states::{NotAllowed, Session as State, SessionEvent, ToolCall, Turn, TurnEvent};

#[derive(Default)]
pub(super) struct Mirror {
    sessions: BTreeMap<SessionId, Session>,
}

struct Session {
    state: State,
    turn: Option<AskId>,
    tools: BTreeMap<Box<str>, ToolCall>,
}

impl Session {
    fn new(state: State) -> Self {
        Self {
            state,
            turn: None,
            tools: BTreeMap::new(),
        }
    }
}

impl Mirror {
    /// A request of ours for a session went out. The agent may still refuse it.
    pub(super) fn asked(&mut self, kind: AgentMethodKind, id: &SessionId, ask: AskId) {
        let opens = matches!(
            kind,
            AgentMethodKind::LoadSession | AgentMethodKind::ResumeSession
        );
        match self.sessions.get_mut(id) {
            Some(session) => {
                if opens && let Ok(next) = session.state.on(SessionEvent::Reopen) {
                    session.state = next;
                    session.tools.clear();
                }
                if kind == AgentMethodKind::Prompt && session.turn.is_none() {
                    session.turn = Some(ask);
                }
            }
            None if opens => {
                self.sessions
                    .insert(id.clone(), Session::new(State::Opening));
            }
            None => {}
        }
    }

    /// A request of ours was answered.
    pub(super) fn answered(
        &mut self,
        answer: &AgentAnswer,
        id: Option<&SessionId>,
        ask: AskId,
    ) -> Result<(), NotAllowed> {
        match answer {
            AgentAnswer::NewSession(Ok(response)) => {
                let new = Session::new(State::Opening.on(SessionEvent::Opened)?);
                if self
                    .sessions
                    .insert(response.session_id.clone(), new)
                    .is_some()
                {
                    return Err(NotAllowed {
                        state: "open",
                        event: "session/new with the id of an active session",
                    });
                }
            }
            AgentAnswer::LoadSession(result) => self.opened(id, result.is_ok()),
            AgentAnswer::ResumeSession(result) => self.opened(id, result.is_ok()),
            AgentAnswer::CloseSession(Ok(_)) | AgentAnswer::DeleteSession(Ok(_)) => {
                if let Some(session) = id.and_then(|id| self.sessions.remove(id))
                    && session.turn.is_some()
                {
                    return Err(NotAllowed {
                        state: Turn::Running.name(),
                        event: SessionEvent::Closed.name(),
                    });
                }
            }
            AgentAnswer::Prompt(_) => {
                if let Some(session) = id.and_then(|id| self.sessions.get_mut(id))
                    && session.turn == Some(ask)
                {
                    Turn::Running.on(TurnEvent::Answer)?;
                    session.turn = None;
                    let open =
                        |state: &ToolCall| matches!(state, ToolCall::Pending | ToolCall::Running);
                    if let Some(state) = session.tools.values().find(|state| open(state)) {
                        let state = state.name();
                        session.tools.retain(|_, state| !open(state));
                        return Err(NotAllowed {
                            state,
                            event: "the end of its turn",
                        });
                    }
                }
            }
            AgentAnswer::Initialize(_)
            | AgentAnswer::Authenticate(_)
            | AgentAnswer::Logout(_)
            | AgentAnswer::NewSession(Err(_))
            | AgentAnswer::ListSessions(_)
            | AgentAnswer::CloseSession(Err(_))
            | AgentAnswer::DeleteSession(Err(_))
            | AgentAnswer::SetMode(_)
            | AgentAnswer::SetConfigOption(_)
            | AgentAnswer::SetModel(_)
            | AgentAnswer::Vendor(_) => {}
        }
        Ok(())
    }

    fn opened(&mut self, id: Option<&SessionId>, good: bool) {
        let Some(id) = id else { return };
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let event = if good {
            SessionEvent::Opened
        } else {
            SessionEvent::OpenFailed
        };
        match session.state.on(event) {
            Ok(State::Over) => {
                self.sessions.remove(id);
            }
            Ok(next) => session.state = next,
            Err(_) => {}
        }
    }

    /// An update came.
    pub(super) fn updated(
        &mut self,
        id: &SessionId,
        update: &SessionUpdate,
    ) -> Result<(), NotAllowed> {
        let Some(session) = self.sessions.get_mut(id) else {
            return Err(NotAllowed {
                state: State::Over.name(),
                event: TurnEvent::Update.name(),
            });
        };
        let replays = matches!(session.state, State::Opening | State::Reopening);
        let (call, status, from) = if let SessionUpdate::ToolCall(call) = update {
            if session.tools.contains_key(call.tool_call_id.as_str()) {
                return Err(NotAllowed {
                    state: "announced",
                    event: "tool_call",
                });
            }
            (&call.tool_call_id, Some(call.status), ToolCall::Pending)
        } else if let SessionUpdate::ToolCallUpdate(call) = update {
            let Some(from) = session.tools.get(call.tool_call_id.as_str()) else {
                return Err(NotAllowed {
                    state: "not announced",
                    event: "tool_call_update",
                });
            };
            (&call.tool_call_id, call.status, *from)
        } else {
            let text = matches!(
                update,
                SessionUpdate::AgentMessageChunk(_) | SessionUpdate::AgentThoughtChunk(_)
            );
            if text && session.turn.is_none() && !replays {
                Turn::Over.on(TurnEvent::Update)?;
            }
            return Ok(());
        };
        let to = from.on(event_of(status))?;
        session.tools.insert(call.as_str().into(), to);
        if session.turn.is_none() && !replays {
            Turn::Over.on(TurnEvent::Update)?;
        }
        Ok(())
    }

    /// A permission is asked for.
    pub(super) fn permission(&self, request: &RequestPermissionRequest) -> Result<(), NotAllowed> {
        let fault = |state| {
            Err(NotAllowed {
                state,
                event: "session/request_permission",
            })
        };
        let Some(session) = self.sessions.get(&request.session_id) else {
            return fault(State::Over.name());
        };
        match session.tools.get(request.tool_call.tool_call_id.as_str()) {
            Some(ToolCall::Pending) => {}
            Some(state) => return fault(state.name()),
            None => return fault("not announced"),
        }
        let ids = || {
            request
                .options
                .iter()
                .map(|option| option.option_id.as_str())
        };
        let unique = ids()
            .enumerate()
            .all(|(at, id)| ids().take(at).all(|other| other != id));
        if request.options.is_empty() || !unique {
            return fault("without options, or with one twice");
        }
        Ok(())
    }
}
