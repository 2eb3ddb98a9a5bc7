//! What the agent may say when: the turns and tool calls of each session, by the one table of
//! transitions. Knows no frames.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::error::PeerFault;

use super::super::schema::{SessionId, SessionUpdate, ToolCallStatus};
use super::super::states::{NotAllowed, ToolCall, ToolCallEvent, Turn, TurnEvent};

/// What was seen of each session.
#[derive(Default)]
pub(super) struct Follow {
    sessions: BTreeMap<SessionId, Seen>,
}

#[derive(Default)]
struct Seen {
    turn: Option<Turn>,
    /// Calls of the turn that runs, or of a replay.
    calls: BTreeMap<String, ToolCall>,
}

impl Follow {
    /// A prompt was sent. A second one while a turn runs is refused by the agent and ends nothing.
    pub(super) fn prompted(&mut self, session: &SessionId) {
        let seen = self.sessions.entry(session.clone()).or_default();
        seen.turn.get_or_insert(Turn::Running);
    }

    /// A prompt was answered, and it was not a refusal beside a turn that goes on.
    pub(super) fn answered(&mut self, session: &SessionId) -> Result<(), PeerFault> {
        let Some(seen) = self.sessions.get_mut(session) else {
            return Ok(());
        };
        let open = seen
            .calls
            .values()
            .any(|call| matches!(call, ToolCall::Pending | ToolCall::Running));
        let turn = seen.turn.take().unwrap_or(Turn::Over);
        seen.calls.clear();
        turn.on(TurnEvent::Answer).map_err(out_of_turn)?;
        if open {
            return Err(PeerFault::OutOfTurn {
                state: "a tool call has not ended",
                event: "prompt answered",
            });
        }
        Ok(())
    }

    /// An update came.
    pub(super) fn updated(
        &mut self,
        session: &SessionId,
        update: &SessionUpdate,
    ) -> Result<(), PeerFault> {
        let seen = self.sessions.entry(session.clone()).or_default();
        match update {
            SessionUpdate::ToolCall(call) => {
                let event = of_status(Some(call.status));
                // An id that comes again would merge two cards.
                if seen.calls.contains_key(&call.tool_call_id) {
                    return Err(PeerFault::OutOfTurn {
                        state: "a tool call of this id is known",
                        event: "tool_call",
                    });
                }
                let state = ToolCall::Pending.on(event).map_err(out_of_turn)?;
                seen.calls.insert(call.tool_call_id.clone(), state);
            }
            SessionUpdate::ToolCallUpdate(change) => {
                let Some(state) = seen.calls.get_mut(&change.tool_call_id) else {
                    return Err(PeerFault::OutOfTurn {
                        state: "no tool call of this id is known",
                        event: "tool_call_update",
                    });
                };
                *state = state.on(of_status(change.status)).map_err(out_of_turn)?;
            }
            // Nothing depends on when the others come.
            _ => {}
        }
        Ok(())
    }
}

fn of_status(status: Option<ToolCallStatus>) -> ToolCallEvent {
    match status {
        None | Some(ToolCallStatus::Pending) => ToolCallEvent::Show,
        Some(ToolCallStatus::InProgress) => ToolCallEvent::Start,
        Some(ToolCallStatus::Completed) => ToolCallEvent::Complete,
        Some(ToolCallStatus::Failed) => ToolCallEvent::Fail,
    }
}

fn out_of_turn(NotAllowed { state, event }: NotAllowed) -> PeerFault {
    PeerFault::OutOfTurn { state, event }
}
