//! Modes, goals and status, between the client and the engine of a session: what is offered and
//! asked for, what the engine does by itself, and who is told of it when.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::dispatch::gone;
use super::options::Axes;
use super::saving::{Reply, Then};
use super::session::{Session, Waiting};
use super::status::{Facts, goal_told};
use super::{Agent, Preset, quote};
use crate::engine::goal::GoalError;
use crate::engine::mode::Mode;
use crate::engine::{Output, Update};
use crate::ids::SessionKey;
use crate::permission::Posture;
use crate::protocol::Asked;
use crate::protocol::methods::{SetMode, Vendor};
use crate::protocol::schema::vendor::goal::{self, GoalRequest, GoalResponse};
use crate::protocol::schema::vendor::status::{
    self, Phase, StatusEvent, StatusRequest, StatusSnapshot, StatusUpdate,
};
use crate::protocol::schema::{
    ClientCapabilities, ConfigOptionUpdate, CurrentModeUpdate, Json, SessionId, SessionMode,
    SessionModeState, SessionUpdate, SetSessionModeRequest, UsageUpdate,
};
use crate::wire::RpcError;

/// What there is to know of a mode.
pub(super) const fn describe(mode: Mode) -> (&'static str, &'static str) {
    match mode {
        Mode::Normal => (
            "Normal",
            "Works directly, and stops when it needs something",
        ),
        Mode::Plan => (
            "Plan",
            "Looks and proposes, and changes nothing before you approve",
        ),
        Mode::Goal => (
            "Goal",
            "Makes the next prompt a goal and works on it until it is reached or blocked",
        ),
    }
}

/// The modes of a session.
pub(super) fn modes(mode: Mode) -> SessionModeState {
    let offered = Mode::ALL.map(|mode| {
        let (name, description) = describe(mode);
        let mut offered = SessionMode::new(mode.name(), name);
        offered.description = Some(description.into());
        offered
    });
    SessionModeState::new(mode.name(), Vec::from(offered))
}

/// What `initialize` says of the methods here, by their names.
#[derive(Serialize)]
pub(super) struct Offers {
    #[serde(rename = "_reasonix.io/session/status")]
    status: Version,
    #[serde(rename = "_reasonix.io/session/status_update")]
    status_update: Version,
    #[serde(rename = "_reasonix.io/session/goal/resume")]
    goal_resume: Version,
    #[serde(rename = "_reasonix.io/session/goal/pause")]
    goal_pause: Version,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    schema_version: u32,
}

pub(super) const OFFERS: Offers = Offers {
    status: Version {
        schema_version: status::SCHEMA_VERSION,
    },
    status_update: Version {
        schema_version: status::SCHEMA_VERSION,
    },
    goal_resume: Version {
        schema_version: goal::SCHEMA_VERSION,
    },
    goal_pause: Version {
        schema_version: goal::SCHEMA_VERSION,
    },
};

/// Whether a client asked to be told how sessions stand. What is not as it should be is no.
pub(super) fn wants_status(client: &ClientCapabilities) -> bool {
    #[derive(Deserialize)]
    struct Asked {
        #[serde(rename = "reasonix.io")]
        ours: Ours,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Ours {
        status_updates: Supported,
    }
    #[derive(Deserialize)]
    struct Supported {
        supported: bool,
    }
    let asked = client
        .meta
        .as_ref()
        .and_then(|meta| meta.read::<Asked>().ok());
    asked.is_some_and(|asked| asked.ours.status_updates.supported)
}

impl Agent {
    /// `session/set_mode`, the legacy ids `default` and `auto` too, which also set the approvals.
    pub(super) fn set_mode(
        &mut self,
        asked: Asked<SetMode>,
        key: SessionKey,
        request: &SetSessionModeRequest,
    ) {
        let chosen = self
            .check_writable(key)
            .and_then(|()| self.choose_mode(key, &request.mode_id));
        match chosen {
            Ok(()) => self.reply_when_remembered(key, Reply::Mode(asked)),
            Err(error) => self.side.answer(asked, Err(error)),
        }
    }

    fn choose_mode(&mut self, key: SessionKey, id: &str) -> Result<(), RpcError> {
        let (mode, posture) = match id {
            "default" => (Mode::Normal, Some(Posture::Ask)),
            "auto" => (Mode::Normal, Some(Posture::Yolo)),
            name => {
                let mode = Mode::named(name).ok_or_else(|| {
                    let names = Mode::ALL.map(Mode::name).join(", ");
                    RpcError::invalid_params(&format!("there is no such mode; there are {names}"))
                })?;
                (mode, None)
            }
        };
        let before = self.sessions.get(&key).map(|session| session.axes.clone());
        if let Some(posture) = posture {
            self.set_axis(key, "tool_approval", posture.name())?;
        }
        let options = self.set_axis(key, "mode", mode.name())?;
        let after = self.sessions.get(&key).map(|session| session.axes.clone());
        if before != after
            && let Some(mut session) = self.side.session(key)
        {
            let update = ConfigOptionUpdate::new(options);
            session.notify(&SessionUpdate::ConfigOptionUpdate(update));
        }
        self.tell_mode(key, before.map(|axes| axes.mode));
        Ok(())
    }

    /// Tells the client of the mode, if it is another one than `before`.
    pub(super) fn tell_mode(&mut self, key: SessionKey, before: Option<Mode>) {
        let now = self.sessions.get(&key).map(|session| session.axes.mode);
        if let (Some(now), Some(mut session)) = (now, self.side.session(key))
            && before != Some(now)
        {
            let update = CurrentModeUpdate::new(now.name());
            session.notify(&SessionUpdate::CurrentModeUpdate(update));
        }
    }

    /// The engine may have left a mode by itself: that is remembered at once, and told at the end of
    /// the turn.
    pub(super) fn follow_mode(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let now = session.engine.mode();
        if now != session.axes.mode {
            session.axes.mode = now;
            session.drifted = true;
            let (store, options) = (session.store, session.axes.record());
            self.remember_options(store, options);
        }
    }

    /// Tells the client of a mode that the engine left or entered by itself.
    pub(super) fn tell_drift(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if !core::mem::take(&mut session.drifted) {
            return;
        }
        let axes = session.axes.clone();
        let options = self.options(&axes);
        self.tell_mode(key, None);
        if let Some(mut session) = self.side.session(key) {
            let update = ConfigOptionUpdate::new(options);
            session.notify(&SessionUpdate::ConfigOptionUpdate(update));
        }
    }

    /// What a session that was just opened says of its tokens.
    pub(super) fn tell_usage(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let Some((used, size)) = session.engine.usage_at_rest() else {
            return;
        };
        let mut update = UsageUpdate::new(used, size);
        update.cost = quote::cost(session.status.cumulative());
        if let Some(mut session) = self.side.session(key) {
            session.notify(&SessionUpdate::UsageUpdate(update));
        }
    }

    /// Takes a request about a goal or the status; gives back what is none.
    pub(super) fn standing_request(
        &mut self,
        asked: Asked<Vendor>,
        method: &str,
        params: Option<&Json>,
    ) -> Option<Asked<Vendor>> {
        match method {
            status::STATUS => {
                let answer = session_of(params, |request: StatusRequest| request.session_id)
                    .and_then(|id| self.vendor_session(&id))
                    .and_then(|key| self.snapshot(key))
                    .and_then(|snapshot| json(&snapshot));
                self.side.answer(asked, answer);
            }
            goal::PAUSE | goal::RESUME => {
                let key = session_of(params, |request: GoalRequest| request.session_id)
                    .and_then(|id| self.vendor_session(&id));
                let done = key.and_then(|key| {
                    self.change_goal(key, method == goal::RESUME)?;
                    Ok(key)
                });
                match done {
                    Ok(key) => self.answer_goal(asked, key),
                    Err(error) => self.side.answer(asked, Err(error)),
                }
            }
            _ => return Some(asked),
        }
        None
    }

    fn change_goal(&mut self, key: SessionKey, resume: bool) -> Result<(), RpcError> {
        let mut result = Ok(());
        self.with_engine(key, |engine, cx| {
            result = if resume {
                engine.resume_goal(cx)
            } else {
                engine.pause_goal(cx)
            };
        });
        self.tell_drift(key);
        result.map_err(|error| {
            let code = match error {
                GoalError::NothingToResume => goal::NOTHING_TO_RESUME,
                GoalError::NotRunning => goal::NOT_RUNNING,
            };
            RpcError::new(code, &format!("{error}"))
        })
    }

    /// Answers with the goal, once it is remembered.
    fn answer_goal(&mut self, asked: Asked<Vendor>, key: SessionKey) {
        let Some(session) = self.sessions.get(&key) else {
            return self.side.answer(asked, Err(gone()));
        };
        let redact = |text: &mut String| self.known.secrets().redact(text);
        let told = goal_told(session.engine.goal(), &self.config.limits, &redact);
        let store = session.store;
        let place = self
            .stores
            .get(&store)
            .map_or(0, |stored| stored.journal.place());
        match json(&GoalResponse::new(told)) {
            Ok(answer) => {
                self.when_safe(store, place, Then::Reply(Reply::Vendor(asked, answer)));
            }
            Err(error) => self.side.answer(asked, Err(error)),
        }
    }

    /// Follows what the engine of a session says, before it is passed on, and tells a client that
    /// asked for it.
    pub(super) fn follow(&mut self, key: SessionKey, output: &Output) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let Session { engine, status, .. } = &mut **session;
        let event = match output {
            Output::Record(record) => status.take(record, engine.goal()),
            Output::Update(Update::Text { .. }) => status.enter(match engine.mode() {
                Mode::Plan => Phase::Planning,
                Mode::Normal | Mode::Goal => Phase::Working,
            }),
            Output::Permit { .. } => status.enter(Phase::WaitingPermission),
            Output::Questions { .. } => status.enter(Phase::WaitingInput),
            Output::Update(
                Update::Running { .. }
                | Update::Progress { .. }
                | Update::Compacting { .. }
                | Update::Retrying { .. }
                | Update::Usage { .. },
            )
            | Output::Start { .. }
            | Output::CallServer { .. }
            | Output::Abort { .. }
            | Output::Withdraw { .. }
            | Output::Finished(_)
            | Output::Decided(_)
            | Output::Rooted { .. }
            | Output::Log(_) => None,
        };
        if let (Some(event), true) = (event, session.tells) {
            self.tell_status(key, event);
        }
    }

    fn tell_status(&mut self, key: SessionKey, event: StatusEvent) {
        let Ok(status) = self.snapshot(key) else {
            return;
        };
        let sequence = status.sequence;
        let mut update = StatusUpdate::new(status.session_id.clone(), event, status);
        update.schema_version = status::SCHEMA_VERSION;
        update.sequence = sequence;
        if let Ok(update) = json(&update) {
            self.show_in_order(key, Waiting::Told(update));
        }
    }

    fn snapshot(&self, key: SessionKey) -> Result<StatusSnapshot, RpcError> {
        let session = self.sessions.get(&key).ok_or_else(gone)?;
        let axes = &session.axes;
        let facts = Facts {
            session: session.id.clone(),
            model: &axes.model,
            effort: axes.effort.as_deref().unwrap_or("auto"),
            mode: axes.mode.name(),
            work_mode: work_mode(axes),
            goal: session.engine.goal(),
            sandbox: self.sandbox_told(session),
        };
        let redact = |text: &mut String| self.known.secrets().redact(text);
        Ok(session.status.snapshot(facts, &self.config.limits, redact))
    }

    /// What is left to do after a turn, for the answer to its prompt.
    pub(super) fn turn_outcome(&self, key: SessionKey) -> Option<status::TurnOutcome> {
        let mut outcome = self.sessions.get(&key)?.status.outcome().clone();
        if outcome.kind != status::OutcomeKind::Paused {
            return None;
        }
        if let Some(reason) = &mut outcome.reason {
            self.known.secrets().redact(reason);
            let kept = super::fit::cut_json(reason, 2048).len();
            reason.truncate(kept);
        }
        Some(outcome)
    }
}

/// The preset, by the name it had before.
fn work_mode(axes: &Axes) -> &'static str {
    match axes.preset {
        Preset::Light => "economy",
        Preset::Balanced => "balanced",
        Preset::Delivery => "delivery",
    }
}

fn session_of<'a, R: Deserialize<'a>>(
    params: Option<&'a Json>,
    id: impl FnOnce(R) -> SessionId,
) -> Result<SessionId, RpcError> {
    let request = params.and_then(|params| params.read::<R>().ok());
    request
        .map(id)
        .ok_or_else(|| RpcError::invalid_params("the parameters must hold a `sessionId`"))
}

fn json(value: &impl serde::Serialize) -> Result<Json, RpcError> {
    // Structs with names for keys always have a JSON form.
    Json::of(value).ok_or_else(|| RpcError::internal("the answer cannot be written"))
}
