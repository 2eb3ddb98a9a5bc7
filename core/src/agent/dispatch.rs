//! What the client asks for: events of the protocol side to sessions and engines.

use alloc::format;
use alloc::string::String;

use super::opening::{How, SETUP, auth_required, context_window};
use super::options::{self, Axis};
use super::saving::{Parting, Reply, StoreKey, Then};
use super::session::Asking;
use super::{Agent, Level, Owned, Owner, Preset, cards, forms, models, prompts};
use crate::call::{Call, News, Outcome};
use crate::engine::Verifier;
use crate::engine::mode::Mode;
use crate::ids::{CallId, SessionKey};
use crate::permission::Posture;
use crate::protocol::methods::{Authenticate, Initialize, SetConfigOption, SetModel};
use crate::protocol::schema::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodTerminal, AuthenticateRequest,
    AuthenticateResponse, CloseSessionResponse, ConfigOptionUpdate, ConfigValue, Implementation,
    InitializeRequest, InitializeResponse, Marker, ProtocolVersion, SessionConfigOption,
    SessionUpdate, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
    SetSessionModelRequest,
};
use crate::protocol::{AgentEvent, Asked, ClientAnswer};
use crate::wire::{RequestKey, RpcError};
use serde::Serialize;

#[derive(Serialize)]
struct AboveCeiling<'a> {
    code: &'a str,
    ceiling: &'a str,
}

impl Agent {
    pub(super) fn handle_event(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Initialize { asked, request } => self.initialize(asked, &request),
            AgentEvent::Authenticate { asked, request } => self.authenticate(asked, &request),
            AgentEvent::NewSession { asked, request } => self.new_session(asked, request),
            AgentEvent::LoadSession {
                asked,
                session,
                request,
            } => {
                let id = request.session_id.clone();
                self.reopen(How::Load(asked), session, id, request.into());
            }
            AgentEvent::ResumeSession {
                asked,
                session,
                request,
            } => {
                let id = request.session_id.clone();
                self.reopen(How::Resume(asked), session, id, request.into());
            }
            AgentEvent::ReplayReady { key } => self.load_on(key),
            AgentEvent::ListSessions { asked, request } => self.list_sessions(asked, request),
            AgentEvent::DeleteSession {
                asked,
                session,
                request,
            } => self.delete_session(asked, session, &request),
            AgentEvent::CancelRequest { key } => {
                self.cancel_opening(key);
                self.cancel_authenticate(key);
                self.cancel_inbox(key);
            }
            AgentEvent::Prompt {
                turn,
                session,
                request,
            } => self.prompt(turn, session, &request),
            AgentEvent::Cancel { turn } => self.cancel_turn(turn),
            AgentEvent::CancelSubagent { session, subagent } => {
                self.with_engine(session, |engine, cx| {
                    engine.cancel_subagent(cx, subagent.as_str());
                });
            }
            AgentEvent::CloseSession { asked, session, .. } => match self.close_session(session) {
                Some(store) => self.part(store, Parting::Close(asked)),
                None => self.side.answer(asked, Ok(CloseSessionResponse::default())),
            },
            AgentEvent::SetConfigOption {
                asked,
                session,
                request,
            } => {
                self.set_config_option(asked, session, &request);
            }
            AgentEvent::SetModel {
                asked,
                session,
                request,
            } => {
                self.set_model(asked, session, &request);
            }
            AgentEvent::SetMode {
                asked,
                session,
                request,
            } => self.set_mode(asked, session, &request),
            AgentEvent::Settled { ask, answer } => self.settled(ask, &answer),
            AgentEvent::Ready { turn } => {
                if let Some(key) = self.turns.get(&turn).copied() {
                    self.flush(key);
                    self.ask_to_launch(key);
                    self.enqueue(key);
                }
            }
            AgentEvent::PeerFinished | AgentEvent::PeerGone => self.dispose(),
            AgentEvent::Misbehaved(fault) => self.report(Level::Warn, format!("client: {fault}")),
            AgentEvent::Logout { asked, .. } => self.logout(asked),
            AgentEvent::VendorRequest {
                asked,
                method,
                params,
            } => self.vendor_request(asked, &method, params.as_ref()),
            AgentEvent::VendorNotification { .. } => {}
        }
    }

    fn initialize(&mut self, asked: Asked<Initialize>, request: &InitializeRequest) {
        let mut capabilities = AgentCapabilities::default();
        capabilities.prompt_capabilities.image = true;
        capabilities.prompt_capabilities.embedded_context = true;
        capabilities.load_session = true;
        capabilities.auth.logout = Some(Marker::default());
        capabilities.mcp_capabilities.http = true;
        capabilities.mcp_capabilities.sse = true;
        capabilities.session_capabilities.close = Some(Marker::default());
        capabilities.session_capabilities.list = Some(Marker::default());
        capabilities.session_capabilities.resume = Some(Marker::default());
        capabilities.session_capabilities.delete = Some(Marker::default());
        capabilities.session_capabilities.system_prompt = Some(prompts::offered());
        if !self.config.workspace_only {
            capabilities.session_capabilities.additional_directories = Some(Marker::default());
        }
        capabilities.meta = super::vendor::offers();
        let identity = &self.config.identity;
        let mut info = Implementation::new(identity.name.clone(), identity.version.clone());
        info.title = Some(identity.title.clone());
        let mut response = InitializeResponse::new(ProtocolVersion::V1);
        response.agent_capabilities = capabilities;
        response.agent_info = Some(info);
        if request.client_capabilities.auth.terminal {
            let mut method = AuthMethodTerminal::new(SETUP, "Reasonix setup");
            method.description = Some("Sets up a provider and its key in a terminal".into());
            method.args.push("setup".into());
            response.auth_methods.push(AuthMethod::Terminal(method));
        } else if self.usable_model().is_err() {
            let mut method = AuthMethodAgent::new(SETUP, "Reasonix setup");
            method.description = Some(
                "Run `reasonix setup` in a terminal, then choose this to read it again".into(),
            );
            response.auth_methods.push(AuthMethod::Agent(method));
        }
        self.side.answer(asked, Ok(response));
        self.report_sandbox();
    }

    fn authenticate(&mut self, asked: Asked<Authenticate>, request: &AuthenticateRequest) {
        if request.method_id.trim() != SETUP {
            let why = format!("no such method: there is `{SETUP}`");
            return self.side.answer(asked, Err(RpcError::invalid_params(&why)));
        }
        if self.usable_model().is_ok() {
            return self.side.answer(asked, Ok(AuthenticateResponse::default()));
        }
        let id = self.start(Owner::Authenticating, Call::Reconfigure);
        self.authenticating.insert(id, asked);
    }

    /// Whoever asked to authenticate does not wait any more.
    fn cancel_authenticate(&mut self, key: RequestKey) {
        let mut open = self.authenticating.iter();
        let call = open
            .find(|(_, asked)| asked.key() == key)
            .map(|(id, _)| *id);
        if let Some(id) = call
            && let Some(asked) = self.authenticating.remove(&id)
        {
            self.effects.push_back(Owned::Abort(id));
            self.side.answer(asked, Err(RpcError::cancelled()));
        }
    }

    /// Configuration was read again.
    pub(super) fn reconfigured(&mut self, id: CallId, news: News<'_>) {
        let fault = match news {
            News::Done(Outcome::Reconfigured(Ok(settings))) => {
                self.log_in(*settings);
                self.settings_changed();
                None
            }
            News::Done(Outcome::Reconfigured(Err(why))) => Some(why),
            News::Failed(fault) => Some(format!("{fault}")),
            News::Done(_) => Some("the configuration was not read".into()),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        let Some(asked) = self.authenticating.remove(&id) else {
            return;
        };
        let result = match fault {
            Some(why) => Err(auth_required("", &why)),
            None => self.usable_model().map(|_| AuthenticateResponse::default()),
        };
        self.side.answer(asked, result);
    }

    /// What open sessions have of the settings is as they are now.
    fn settings_changed(&mut self) {
        let settings = &self.config.settings;
        let verifier = Verifier::new(&settings.verification);
        for session in self.sessions.values_mut() {
            session
                .engine
                .set_verification(verifier.clone(), settings.pause_unverified);
        }
    }

    /// The client's answer to a card or question.
    fn settled(&mut self, ask: crate::ids::AskId, answer: &ClientAnswer) {
        if self.answered_late(ask, answer) {
            return;
        }
        let Some(key) = self.asks.remove(&ask) else {
            return;
        };
        if self.editor_answered(key, ask, answer) || self.elicited(key, ask, answer) {
            return;
        }
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let Some(asking) = session.asks.remove(&ask) else {
            return;
        };
        // An error, a malformed answer, a lost connection: denied.
        let reply = if let ClientAnswer::RequestPermission(reply) = answer {
            reply.as_ref().ok()
        } else {
            None
        };
        match asking {
            Asking::Form {
                card,
                call,
                questions,
            } => {
                let ClientAnswer::CreateElicitation(reply) = answer else {
                    return;
                };
                match forms::answers(reply, &questions, &self.config.limits) {
                    Some(answers) => {
                        self.with_engine(key, |engine, _| engine.answered(card, answers));
                    }
                    None => self.ask_question(key, card, call, questions, alloc::vec::Vec::new()),
                }
            }
            Asking::Permit { card, always } => {
                let decision = cards::decision(reply, always);
                self.with_engine(key, |engine, cx| engine.decided(cx, card, decision));
            }
            Asking::Question {
                card,
                call,
                questions,
                mut answers,
            } => {
                let answer = cards::answer(reply, &questions[answers.len()]);
                let unanswered = answer == crate::tools::Answer::Unanswered;
                answers.push(answer);
                // Who does not answer one question is not asked the others.
                if unanswered || answers.len() == questions.len() {
                    self.with_engine(key, |engine, _| engine.answered(card, answers));
                } else {
                    self.ask_question(key, card, call, questions, answers);
                }
            }
        }
        self.ask_to_launch(key);
    }

    fn set_config_option(
        &mut self,
        asked: Asked<SetConfigOption>,
        key: SessionKey,
        request: &SetSessionConfigOptionRequest,
    ) {
        let before = self.sessions.get(&key).map(|session| session.axes.mode);
        let result = match &request.value {
            ConfigValue::Id(value) => self.set_axis(key, &request.config_id, value),
            ConfigValue::Boolean(_) => Err(RpcError::invalid_params(&format!(
                "option `{}` takes a string",
                request.config_id
            ))),
        };
        match result {
            Ok(options) => {
                self.tell_mode(key, before);
                let response = SetSessionConfigOptionResponse::new(options);
                self.reply_when_remembered(key, Reply::ConfigOption(asked, response));
            }
            Err(error) => self.side.answer(asked, Err(error)),
        }
    }

    /// Answers a change of the options when it is safe.
    pub(super) fn reply_when_remembered(&mut self, key: SessionKey, reply: Reply) {
        let Some(session) = self.sessions.get(&key) else {
            return reply.refuse(&mut self.side, gone());
        };
        let (store, options) = (session.store, session.axes.record());
        let place = self.remember_options(store, options);
        self.when_safe(store, place, Then::Reply(reply));
    }

    fn set_model(
        &mut self,
        asked: Asked<SetModel>,
        key: SessionKey,
        request: &SetSessionModelRequest,
    ) {
        let result = self.set_axis(key, "model", &request.model_id);
        if let (Ok(options), Some(mut session)) = (&result, self.side.session(key)) {
            let update = ConfigOptionUpdate::new(options.clone());
            session.notify(&SessionUpdate::ConfigOptionUpdate(update));
        }
        match result {
            Ok(_) => self.reply_when_remembered(key, Reply::Model(asked)),
            Err(error) => self.side.answer(asked, Err(error)),
        }
    }

    /// Sets one axis; the answer is all options with the values they have now. A change of the
    /// model or its effort takes effect with the next turn, one of the approvals at once.
    pub(super) fn set_axis(
        &mut self,
        key: SessionKey,
        id: &str,
        value: &str,
    ) -> Result<alloc::vec::Vec<SessionConfigOption>, RpcError> {
        let not_offered =
            || RpcError::invalid_params(&format!("option `{id}` has no value `{value}`"));
        self.check_writable(key)?;
        let axis = Axis::of(id)
            .ok_or_else(|| RpcError::invalid_params(&format!("there is no option `{id}`")))?;
        let settings = &self.config.settings;
        let session = self.sessions.get_mut(&key).ok_or_else(not_offered)?;
        let mut axes = session.axes.clone();
        match axis {
            Axis::Model => {
                if value != axes.model {
                    axes.model = match (value, &self.config.script) {
                        (models::SCRIPT, Some(_)) => value.into(),
                        (_, Some(_) | None) => models::find(settings, value)
                            .map_err(|_| not_offered())?
                            .name(),
                    };
                    let efforts = options::efforts(settings, &axes.model);
                    if !axes
                        .effort
                        .as_ref()
                        .is_some_and(|effort| efforts.contains(effort))
                    {
                        axes.effort = None;
                    }
                }
            }
            Axis::Effort => {
                let efforts = options::efforts(settings, &axes.model);
                axes.effort = match value {
                    "auto" if !efforts.is_empty() => None,
                    _ if efforts.iter().any(|effort| effort == value) => Some(value.into()),
                    _ => return Err(not_offered()),
                };
            }
            Axis::Mode => axes.mode = Mode::named(value).ok_or_else(not_offered)?,
            Axis::Preset => axes.preset = Preset::named(value).ok_or_else(not_offered)?,
            Axis::Approval => {
                let posture = Posture::from_name(value).ok_or_else(not_offered)?;
                let mode = self.config.permission_mode;
                if !mode.ceiling.admits(posture) {
                    let ceiling = mode.ceiling.posture().name();
                    let why = format!("`{value}` is above the ceiling `{ceiling}`");
                    return Err(RpcError::invalid_params(&why).with_data(&AboveCeiling {
                        code: "acp.tool_approval.above_ceiling",
                        ceiling,
                    }));
                }
                let current = mode.ceiling.clip(axes.posture);
                if !options::postures(mode, current).any(|offered| offered == posture) {
                    return Err(not_offered());
                }
                axes.posture = posture;
            }
        }
        let answers = (axes.model != session.axes.model) || (axes.effort != session.axes.effort);
        if answers {
            let brain = self
                .brain(&axes)
                .map_err(|why| RpcError::invalid_params(&why))?;
            let window = context_window(&self.config.settings, &axes.model);
            self.with_engine(key, |engine, _| engine.set_brain(brain, window));
        }
        if let Some(session) = self.sessions.get_mut(&key) {
            session.axes = axes.clone();
        }
        self.with_engine(key, |engine, cx| {
            engine.set_light(axes.preset == Preset::Light);
            engine.set_delivery(axes.preset == Preset::Delivery);
            engine.set_posture(cx, axes.posture);
            // Choosing a mode again means something: another goal, or none.
            if axis == Axis::Mode {
                engine.set_mode(cx, axes.mode);
            }
        });
        Ok(self.options(&axes))
    }

    /// Whether a session takes what changes it.
    pub(super) fn check_writable(&self, key: SessionKey) -> Result<(), RpcError> {
        let stored = self.sessions.get(&key);
        let stored = stored.and_then(|session| self.stores.get(&session.store));
        match stored.and_then(|stored| stored.read_only.as_deref()) {
            Some(why) => Err(read_only_session(why)),
            None => Ok(()),
        }
    }

    /// The options as they stand now.
    pub(super) fn options(&self, axes: &options::Axes) -> alloc::vec::Vec<SessionConfigOption> {
        let config = &self.config;
        options::list(
            axes,
            &config.settings,
            config.permission_mode,
            &config.limits,
        )
    }

    /// The session is not open any more; its files are still to be given up.
    pub(super) fn close_session(&mut self, key: SessionKey) -> Option<StoreKey> {
        self.with_engine(key, |engine, cx| engine.dispose(cx));
        self.leave_editor(key);
        self.leave_refresh(key);
        self.close_servers(key);
        let session = self.sessions.remove(&key)?;
        self.give_up_tmp(Some(key));
        self.leave_inbox(session.store);
        self.unread -= session.unread;
        for ask in session.asks.keys() {
            self.asks.remove(ask);
        }
        if let Some(timer) = session.timer {
            self.timers.remove(&(timer, key));
        }
        if let Some(turn) = session.turn {
            self.turns.remove(&turn);
        }
        Some(session.store)
    }
}

/// The session of a request is not open any more.
pub(super) fn gone() -> RpcError {
    RpcError::internal("the session is closed")
}

/// −32600: a session that a later version wrote.
pub(super) fn read_only_session(why: &str) -> RpcError {
    #[derive(Serialize)]
    struct Data {
        code: &'static str,
    }
    RpcError::invalid_request(why).with_data(&Data { code: "read_only" })
}

/// What the client could still do about a failed turn is in the code; the rest is for people.
pub(super) fn turn_failed(message: String) -> RpcError {
    #[derive(Serialize)]
    struct Data {
        code: &'static str,
    }
    RpcError::internal(&message).with_data(&Data {
        code: "turn_failed",
    })
}
