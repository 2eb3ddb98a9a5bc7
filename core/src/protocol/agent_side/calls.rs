//! What a registered request becomes: an event, a frame that waits for its session, or its answer.

use crate::ids::SessionKey;
use crate::wire::{RequestKey, RpcError};

use super::super::events::AgentEvent;
use super::super::gates::{Gates, Offers};
use super::super::methods::{self, AgentMethodKind, Asked};
use super::super::schema::object::tag_of;
use super::super::schema::{CloseSessionResponse, Json, SessionId};
use super::super::states::{ConnectionEvent, SessionEvent};
use super::checks::{Setup, check_cwd, decode, no_session};
use super::core::{Core, What};
use super::sessions::{Held, Scope};

impl Core {
    /// Admits a request that is registered; what it gives is the answer that is due at once.
    pub(super) fn admit(
        &mut self,
        key: RequestKey,
        kind: AgentMethodKind,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), RpcError> {
        use AgentMethodKind as K;
        let held = |session| Held::new(session, Some(key), kind, method, params);
        match kind {
            K::Initialize => {
                let request = decode::<methods::Initialize>(params)?;
                let next = self.connection.on(ConnectionEvent::Initialize);
                // Lines are taken in the states that allow it only.
                self.connection = next.expect("initialize is taken when fresh or ready");
                self.client = request.client_capabilities.clone();
                self.gates = Gates::of(&self.client);
                self.event(AgentEvent::Initialize {
                    asked: Asked::new(key),
                    request,
                });
            }
            K::Authenticate => {
                let request = decode::<methods::Authenticate>(params)?;
                self.event(AgentEvent::Authenticate {
                    asked: Asked::new(key),
                    request,
                });
            }
            K::Logout => {
                self.offered(Offers::LOGOUT, method)?;
                let request = decode::<methods::Logout>(params)?;
                self.event(AgentEvent::Logout {
                    asked: Asked::new(key),
                    request,
                });
            }
            K::NewSession => {
                let request = decode::<methods::NewSession>(params)?;
                self.check_setup(&Setup {
                    cwd: &request.cwd,
                    directories: &request.additional_directories,
                    servers: &request.mcp_servers,
                    prompt: request.system_prompt.as_ref(),
                })?;
                self.room_for_session()?;
                self.event(AgentEvent::NewSession {
                    asked: Asked::new(key),
                    request,
                });
            }
            K::LoadSession => {
                self.offered(Offers::LOAD, method)?;
                let request = decode::<methods::LoadSession>(params)?;
                self.check_setup(&Setup {
                    cwd: &request.cwd,
                    directories: &request.additional_directories,
                    servers: &request.mcp_servers,
                    prompt: request.system_prompt.as_ref(),
                })?;
                let Some(session) = self.opening(key, &request.session_id, held)? else {
                    return Ok(());
                };
                self.event(AgentEvent::LoadSession {
                    asked: Asked::new(key),
                    session,
                    request,
                });
            }
            K::ResumeSession => {
                self.offered(Offers::RESUME, method)?;
                let request = decode::<methods::ResumeSession>(params)?;
                self.check_setup(&Setup {
                    cwd: &request.cwd,
                    directories: &request.additional_directories,
                    servers: &request.mcp_servers,
                    prompt: request.system_prompt.as_ref(),
                })?;
                let Some(session) = self.opening(key, &request.session_id, held)? else {
                    return Ok(());
                };
                self.event(AgentEvent::ResumeSession {
                    asked: Asked::new(key),
                    session,
                    request,
                });
            }
            K::ListSessions => {
                self.offered(Offers::LIST, method)?;
                let request = decode::<methods::ListSessions>(params)?;
                if let Some(cwd) = &request.cwd {
                    check_cwd(cwd)?;
                }
                self.event(AgentEvent::ListSessions {
                    asked: Asked::new(key),
                    request,
                });
            }
            K::CloseSession => {
                self.offered(Offers::CLOSE, method)?;
                let request = decode::<methods::CloseSession>(params)?;
                match self.scope(&request.session_id, SessionEvent::Close)? {
                    Scope::Waits(session) => return self.hold(held(session)),
                    Scope::Unknown => {
                        self.succeed(key, &CloseSessionResponse::default());
                    }
                    Scope::Active(session) => {
                        let event = AgentEvent::CloseSession {
                            asked: Asked::new(key),
                            session: SessionKey::new(session),
                            request,
                        };
                        self.begin_closing(key, session, event);
                    }
                }
            }
            K::DeleteSession => {
                self.offered(Offers::DELETE, method)?;
                let request = decode::<methods::DeleteSession>(params)?;
                let scope = self.scope(&request.session_id, SessionEvent::Close)?;
                let asked = Asked::new(key);
                match scope {
                    Scope::Waits(session) => return self.hold(held(session)),
                    Scope::Unknown => {
                        self.begin_removing(key, &request.session_id);
                        self.event(AgentEvent::DeleteSession {
                            asked,
                            session: None,
                            request,
                        });
                    }
                    Scope::Active(session) => {
                        let event = AgentEvent::DeleteSession {
                            asked,
                            session: Some(SessionKey::new(session)),
                            request,
                        };
                        self.begin_closing(key, session, event);
                    }
                }
            }
            K::SetMode => {
                let request = decode::<methods::SetMode>(params)?;
                let Some(session) =
                    self.active(key, &request.session_id, SessionEvent::Use, held)?
                else {
                    return Ok(());
                };
                self.event(AgentEvent::SetMode {
                    asked: Asked::new(key),
                    session,
                    request,
                });
            }
            K::SetConfigOption => {
                let request = decode::<methods::SetConfigOption>(params)?;
                let Some(session) =
                    self.active(key, &request.session_id, SessionEvent::Use, held)?
                else {
                    return Ok(());
                };
                self.event(AgentEvent::SetConfigOption {
                    asked: Asked::new(key),
                    session,
                    request,
                });
            }
            K::SetModel => {
                let request = decode::<methods::SetModel>(params)?;
                let Some(session) =
                    self.active(key, &request.session_id, SessionEvent::Use, held)?
                else {
                    return Ok(());
                };
                self.event(AgentEvent::SetModel {
                    asked: Asked::new(key),
                    session,
                    request,
                });
            }
            K::Prompt => {
                let request = decode::<methods::Prompt>(params)?;
                let Some(session) =
                    self.active(key, &request.session_id, SessionEvent::Prompt, held)?
                else {
                    return Ok(());
                };
                self.check_prompt(&request)?;
                self.begin_turn(key, session.number(), request)?;
            }
            K::Vendor => {
                if let Some(id) = params.and_then(|params| tag_of(params, "sessionId"))
                    && let Some(session) = self.sessions.find(&SessionId::from(&*id))
                    && self.sessions.waits(session, SessionEvent::Use)
                {
                    return self.hold(held(session));
                }
                self.event(AgentEvent::VendorRequest {
                    asked: Asked::new(key),
                    method: method.into(),
                    params: params.and_then(Json::from_text),
                });
            }
        }
        Ok(())
    }

    /// The place of a session that is to be loaded or resumed, and its key if it is active; none if
    /// the request waits.
    fn opening(
        &mut self,
        key: RequestKey,
        id: &SessionId,
        held: impl FnOnce(u64) -> Held,
    ) -> Result<Option<Option<SessionKey>>, RpcError> {
        let (session, active) = match self.scope(id, SessionEvent::Reopen)? {
            Scope::Waits(session) => {
                self.hold(held(session))?;
                return Ok(None);
            }
            Scope::Active(session) => {
                self.move_session(session, SessionEvent::Reopen);
                (session, Some(SessionKey::new(session)))
            }
            Scope::Unknown => (self.begin_opening(id)?, None),
        };
        self.set_what(key, What::Opening(session));
        Ok(Some(active))
    }

    /// The session that takes a request now; none if the request waits.
    fn active(
        &mut self,
        key: RequestKey,
        id: &SessionId,
        event: SessionEvent,
        held: impl FnOnce(u64) -> Held,
    ) -> Result<Option<SessionKey>, RpcError> {
        match self.scope(id, event)? {
            Scope::Waits(session) => {
                self.hold(held(session))?;
                Ok(None)
            }
            Scope::Unknown => Err(no_session(id)),
            Scope::Active(session) => {
                self.use_gates_of(key, session);
                Ok(Some(SessionKey::new(session)))
            }
        }
    }

    fn offered(&self, offer: Offers, method: &str) -> Result<(), RpcError> {
        if self.offers.has(offer) {
            Ok(())
        } else {
            Err(RpcError::method_not_found(method))
        }
    }
}
