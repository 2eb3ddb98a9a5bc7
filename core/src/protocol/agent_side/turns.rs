//! Turns and replays: what they send, in which order they get room, and how they end.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::num::NonZeroU64;

use crate::error::CommandError;
use crate::ids::{SessionKey, TurnKey};
use crate::limits::Limits;
use crate::wire::{RequestKey, RpcError};

use super::super::events::{AgentEvent, TextKind};
use super::super::gates::Gates;
use super::super::methods::AgentMethodKind;
use super::super::output::{Output, write_chunk};
use super::super::schema::{
    PromptRequest, PromptResponse, SessionId, SessionUpdate, StopReason, ToolCallStatus,
    ToolCallUpdate,
};
use super::super::states::{ToolCall, ToolCallEvent, Turn as State, TurnEvent};
use super::checks::coded;
use super::core::{Core, What};

/// A turn that is not over.
pub(super) struct Turn {
    pub(super) key: u64,
    request: RequestKey,
    session: u64,
    id: SessionId,
    gates: Gates,
    state: State,
    pace: Pace,
    tools: Tools,
    /// What is told to the embedder when it is over.
    pub(super) then: Option<Box<AgentEvent>>,
}

/// The replay of a session that is being loaded.
pub(super) struct Replay {
    id: SessionId,
    gates: Gates,
    pace: Pace,
}

/// Who waits for room.
#[derive(Clone, Copy)]
pub(super) enum Waiter {
    Turn(u64),
    Replay(RequestKey),
}

/// Frames sent since it had its turn, and whether it waits for the next one.
#[derive(Default)]
struct Pace {
    used: u32,
    queued: bool,
}

impl Pace {
    /// Whether one more may be sent now; else it waits in the queue, once.
    #[inline]
    fn admits(
        &mut self,
        limits: &Limits,
        output: &Output,
        waiters: &mut VecDeque<Waiter>,
        me: Waiter,
    ) -> bool {
        let spent = self.used >= limits.quantum && !waiters.is_empty();
        if output.pressure() < limits.soft_output && !spent && !self.queued {
            self.used = self.used.saturating_add(1);
            return true;
        }
        if !self.queued {
            self.queued = true;
            waiters.push_back(me);
        }
        false
    }
}

/// Tool calls by id, those that ended included: an end is final.
#[derive(Default)]
struct Tools(BTreeMap<Box<str>, ToolCall>);

impl Tools {
    /// The call an update is about and the state it moves to; `Err` if it may not.
    fn after<'u>(&self, update: &'u SessionUpdate) -> Result<Option<(&'u str, ToolCall)>, ()> {
        let (id, from, status) = if let SessionUpdate::ToolCall(call) = update {
            if self.0.contains_key(call.tool_call_id.as_str()) {
                return Err(());
            }
            (&call.tool_call_id, ToolCall::Pending, Some(call.status))
        } else if let SessionUpdate::ToolCallUpdate(call) = update {
            let from = self.0.get(call.tool_call_id.as_str()).copied();
            (&call.tool_call_id, from.ok_or(())?, call.status)
        } else {
            return Ok(None);
        };
        let to = from.on(event_of(status)).map_err(|_| ())?;
        Ok(Some((id, to)))
    }

    fn set(&mut self, change: Option<(&str, ToolCall)>) {
        if let Some((id, state)) = change {
            match self.0.get_mut(id) {
                Some(at) => *at = state,
                None => {
                    self.0.insert(id.into(), state);
                }
            }
        }
    }

    fn open(&self) -> Vec<Box<str>> {
        let open = |state: ToolCall| matches!(state, ToolCall::Pending | ToolCall::Running);
        self.0
            .iter()
            .filter(|(_, state)| open(**state))
            .map(|(id, _)| id.clone())
            .collect()
    }
}

/// What a status in an update does to a call.
pub(in super::super) fn event_of(status: Option<ToolCallStatus>) -> ToolCallEvent {
    match status {
        None | Some(ToolCallStatus::Pending) => ToolCallEvent::Show,
        Some(ToolCallStatus::InProgress) => ToolCallEvent::Start,
        Some(ToolCallStatus::Completed) => ToolCallEvent::Complete,
        Some(ToolCallStatus::Failed) => ToolCallEvent::Fail,
    }
}

impl Core {
    pub(super) fn turn(&mut self, key: u64) -> Option<TurnMut<'_>> {
        self.turns.get(key)?;
        Some(TurnMut { core: self, key })
    }

    /// Admits a prompt: from here on a cancel finds it.
    pub(super) fn begin_turn(
        &mut self,
        request_key: RequestKey,
        key: u64,
        request: PromptRequest,
    ) -> Result<(), RpcError> {
        let Some(session) = self.sessions.get_mut(key) else {
            return Ok(());
        };
        if session.turn.is_some() {
            return Err(coded(
                RpcError::invalid_request("A prompt is running in this session"),
                "session_busy",
            ));
        }
        let turn = self.turns.insert(Turn {
            key: 0,
            request: request_key,
            session: key,
            id: session.id.clone(),
            gates: session.gates,
            state: State::Running,
            pace: Pace::default(),
            tools: Tools::default(),
            then: None,
        });
        if let Some(made) = self.turns.get_mut(turn) {
            made.key = turn;
        }
        session.turn = NonZeroU64::new(turn);
        self.set_what(request_key, What::Turn(turn));
        self.event(AgentEvent::Prompt {
            turn: TurnKey::new(turn),
            session: SessionKey::new(key),
            request,
        });
        Ok(())
    }

    /// Tells the embedder once that a turn is to end.
    pub(super) fn cancel_turn(&mut self, key: u64) {
        let Some(turn) = self.turns.get_mut(key) else {
            return;
        };
        let before = turn.state;
        turn.state = before
            .on(TurnEvent::Cancel)
            .expect("a turn that is there can be cancelled");
        if before == State::Running {
            self.event(AgentEvent::Cancel {
                turn: TurnKey::new(key),
            });
        }
    }

    /// Ends a turn; its prompt is answered by the caller's answer, and as cancelled if it was.
    fn end_turn(&mut self, key: u64, result: Result<PromptResponse, RpcError>) {
        let Some(mut turn) = self.turns.remove(key) else {
            return;
        };
        for id in turn.tools.open() {
            let mut update = ToolCallUpdate::new(&*id);
            update.status = Some(ToolCallStatus::Failed);
            self.output
                .update(&turn.id, &SessionUpdate::ToolCallUpdate(update));
        }
        let cancelled = turn.state == State::Cancelling;
        turn.state = turn
            .state
            .on(TurnEvent::Answer)
            .expect("a turn that is there can end");
        match result {
            Ok(mut response) => {
                if cancelled {
                    response.stop_reason = StopReason::Cancelled;
                }
                self.succeed(turn.request, &response);
            }
            Err(_) if cancelled => {
                self.succeed(turn.request, &PromptResponse::new(StopReason::Cancelled));
            }
            Err(error) => {
                self.fail(turn.request, &error);
            }
        }
        if let Some(session) = self.sessions.get_mut(turn.session) {
            session.turn = None;
        }
        if let Some(event) = turn.then {
            self.event(*event);
        }
    }

    /// Answers a request that was cancelled before anything came of it.
    pub(super) fn answer_cancelled(&mut self, key: RequestKey, kind: AgentMethodKind) {
        if kind == AgentMethodKind::Prompt {
            self.succeed(key, &PromptResponse::new(StopReason::Cancelled));
        } else {
            self.fail(key, &RpcError::cancelled());
        }
    }

    pub(super) fn replay(&mut self, key: RequestKey) -> Option<ReplayMut<'_>> {
        let What::Opening(session) = self.requests.get(key)?.what else {
            return None;
        };
        if !self.replays.contains_key(&key) {
            let id = self.sessions.get(session)?.id.clone();
            self.replays.insert(
                key,
                Replay {
                    id,
                    gates: self.gates,
                    pace: Pace::default(),
                },
            );
        }
        Some(ReplayMut { core: self, key })
    }

    /// The next one that has room, if there is room. Asked when nothing else is left to do.
    pub(super) fn next_ready(&mut self) -> Option<AgentEvent> {
        if self.output.pressure() >= self.limits.soft_output {
            return None;
        }
        while let Some(waiter) = self.waiters.pop_front() {
            let pace = match waiter {
                Waiter::Turn(key) => self.turns.get_mut(key).map(|turn| &mut turn.pace),
                Waiter::Replay(key) => self.replays.get_mut(&key).map(|replay| &mut replay.pace),
            };
            if let Some(pace) = pace {
                *pace = Pace::default();
                return Some(match waiter {
                    Waiter::Turn(key) => AgentEvent::Ready {
                        turn: TurnKey::new(key),
                    },
                    Waiter::Replay(key) => AgentEvent::ReplayReady { key },
                });
            }
        }
        None
    }
}

/// A turn that is not over.
pub struct TurnMut<'a> {
    core: &'a mut Core,
    key: u64,
}

impl TurnMut<'_> {
    /// Its session.
    pub fn session(&self) -> SessionKey {
        SessionKey::new(self.turn().session)
    }

    /// Whether it is to end soon.
    pub fn is_cancelled(&self) -> bool {
        self.turn().state == State::Cancelling
    }

    /// Sends text of the agent. Longer text goes as several chunks, each at most
    /// [`Limits::max_out_frame`] long. `Full`: nothing was sent, [`AgentEvent::Ready`] says when to
    /// try again. A cancelled turn waits for room only at [`Limits::hard_output`], so that it can
    /// end soon.
    #[inline]
    pub fn text(
        &mut self,
        kind: TextKind,
        text: &str,
        message_id: Option<&str>,
    ) -> Result<(), CommandError<()>> {
        let Some(turn) = self.core.turns.get_mut(self.key) else {
            return Err(CommandError::Gone(()));
        };
        if !turn.admits(&self.core.limits, &self.core.output, &mut self.core.waiters) {
            return Err(CommandError::Full(()));
        }
        let max = self.core.limits.max_out_frame;
        let session = turn.id.as_str();
        let mut rest = text;
        while !rest.is_empty() {
            self.core.output.frame(|out| {
                rest = write_chunk(out, session, kind, rest, message_id, max);
            });
            if self.core.output.is_dead() {
                break;
            }
        }
        Ok(())
    }

    /// Sends an update. `Full` as for [`text`](Self::text). What the client does not take becomes
    /// something plainer or nothing. `Gone`: it is about a tool call that ended, or is announced
    /// twice, or was never announced.
    pub fn update(&mut self, update: &SessionUpdate) -> Result<(), CommandError<()>> {
        let Some(turn) = self.core.turns.get_mut(self.key) else {
            return Err(CommandError::Gone(()));
        };
        let Some(update) = turn.gates.fit(update) else {
            return Ok(());
        };
        let change = turn.tools.after(&update).map_err(CommandError::Gone)?;
        if !turn.admits(&self.core.limits, &self.core.output, &mut self.core.waiters) {
            return Err(CommandError::Full(()));
        }
        turn.tools.set(change);
        self.core.output.update(&turn.id, &update);
        let session = turn.session;
        self.core.tells_of_child(session, &update);
        Ok(())
    }

    /// Ends the turn well. Tool calls that did not end are reported as failed first. The stop
    /// reason of a cancelled turn is `cancelled`, whatever is given.
    pub fn finish(self, response: PromptResponse) {
        self.core.end_turn(self.key, Ok(response));
    }

    /// Ends the turn with an error; a cancelled turn ends as `cancelled` all the same.
    pub fn fail(self, error: RpcError) {
        self.core.end_turn(self.key, Err(error));
    }

    fn turn(&self) -> &Turn {
        let turn = self.core.turns.get(self.key);
        // The handle was made for a turn that is there, and borrows the side since.
        turn.expect("a turn with a handle is there")
    }
}

impl Turn {
    #[inline]
    fn admits(&mut self, limits: &Limits, output: &Output, waiters: &mut VecDeque<Waiter>) -> bool {
        // What a cancelled turn says is little, and its answer stands behind it.
        let hurries = self.state == State::Cancelling && output.pressure() < limits.hard_output;
        hurries
            || self
                .pace
                .admits(limits, output, waiters, Waiter::Turn(self.key))
    }
}

/// The replay of a session that is being loaded.
pub struct ReplayMut<'a> {
    core: &'a mut Core,
    key: RequestKey,
}

impl ReplayMut<'_> {
    /// Sends an update of the history. `Full`: nothing was sent, [`AgentEvent::ReplayReady`] says
    /// when to try again.
    pub fn update(&mut self, update: &SessionUpdate) -> Result<(), CommandError<()>> {
        let core = &mut *self.core;
        let Some(replay) = core.replays.get_mut(&self.key) else {
            return Err(CommandError::Gone(()));
        };
        let Some(update) = replay.gates.fit(update) else {
            return Ok(());
        };
        let me = Waiter::Replay(self.key);
        if !replay
            .pace
            .admits(&core.limits, &core.output, &mut core.waiters, me)
        {
            return Err(CommandError::Full(()));
        }
        core.output.update(&replay.id, &update);
        Ok(())
    }
}
