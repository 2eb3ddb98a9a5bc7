//! A tiny engine on [`AgentSide`]: it streams what the JSON in the prompt asks for, and measures
//! nothing. Knows nothing of descriptors; both runtimes drive it.

#![expect(clippy::wildcard_enum_match_arm, reason = "events are an open enum")]

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use reasonix_core::error::CommandError;
use reasonix_core::ids::{AskId, TurnKey};
use reasonix_core::protocol::methods::RequestPermission;
use reasonix_core::protocol::schema::{
    ContentBlock, InitializeResponse, NewSessionResponse, PermissionOption, PermissionOptionKind,
    PromptResponse, ProtocolVersion, RequestPermissionRequest, SessionId, StopReason,
    ToolCallUpdate,
};
use reasonix_core::protocol::{AgentEvent, AgentSide, TextKind};
use reasonix_core::time::Instant;
use reasonix_core::wire::RpcError;

/// What a prompt asks for.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Plan {
    chunks: u64,
    size: usize,
    text: Option<String>,
    pace_us: u64,
    permissions: u64,
}

struct Turn {
    session: SessionId,
    text: Rc<str>,
    chunks: u64,
    pace: Duration,
    due: Instant,
    permissions: u64,
}

/// All turns that run.
#[derive(Default)]
pub struct Engine {
    sessions: u64,
    turns: BTreeMap<TurnKey, Turn>,
    asks: BTreeMap<AskId, TurnKey>,
    paced: BTreeSet<(Instant, TurnKey)>,
    /// The last text that was made, and of what.
    text: Option<(usize, bool, Rc<str>)>,
}

impl Engine {
    /// When [`on_time`](Self::on_time) is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.paced.first().map(|(at, _)| *at)
    }

    /// Goes on with the turns whose time has come.
    pub fn on_time(&mut self, side: &mut AgentSide, now: Instant) {
        while let Some((at, turn)) = self.paced.first().copied()
            && at <= now
        {
            self.paced.pop_first();
            self.run(side, turn, now);
        }
    }

    /// Acts on an event.
    pub fn on_event(&mut self, side: &mut AgentSide, event: AgentEvent, now: Instant) {
        match event {
            AgentEvent::Initialize { asked, .. } => {
                side.answer(asked, Ok(InitializeResponse::new(ProtocolVersion::V1)));
            }
            AgentEvent::NewSession { asked, .. } => {
                self.sessions += 1;
                let id = format!("s{:x}", self.sessions);
                side.open(asked, NewSessionResponse::new(id.as_str()));
            }
            AgentEvent::Prompt { turn, request, .. } => {
                let plan: Plan = request
                    .prompt
                    .iter()
                    .filter_map(ContentBlock::as_text)
                    .find_map(|text| serde_json::from_str(text).ok())
                    .unwrap_or_default();
                let begun = Turn {
                    session: request.session_id,
                    text: self.text(plan.size, plan.text.as_deref() == Some("mixed")),
                    chunks: plan.chunks,
                    pace: Duration::from_micros(plan.pace_us),
                    due: now,
                    permissions: plan.permissions,
                };
                self.turns.insert(turn, begun);
                self.run(side, turn, now);
            }
            AgentEvent::Ready { turn } => self.run(side, turn, now),
            AgentEvent::Cancel { turn } => self.end(side, turn, StopReason::Cancelled),
            AgentEvent::Settled { ask, .. } => {
                if let Some(turn) = self.asks.remove(&ask) {
                    self.run(side, turn, now);
                }
            }
            AgentEvent::Authenticate { asked, .. } => refuse(side, asked),
            AgentEvent::ListSessions { asked, .. } => refuse(side, asked),
            AgentEvent::LoadSession { asked, .. } => refuse(side, asked),
            AgentEvent::VendorRequest { asked, .. } => refuse(side, asked),
            _ => {} // nothing that was not advertised comes
        }
    }

    /// Sends what the turn has to send, till there is no room, it must wait, or it is over.
    fn run(&mut self, side: &mut AgentSide, key: TurnKey, now: Instant) {
        let Some(turn) = self.turns.get_mut(&key) else {
            return;
        };
        while turn.chunks > 0 {
            if turn.due > now {
                self.paced.insert((turn.due, key));
                return;
            }
            let Some(mut open) = side.turn(key) else {
                self.turns.remove(&key);
                return;
            };
            match open.text(TextKind::Message, &turn.text, None) {
                Ok(()) => {
                    turn.chunks -= 1;
                    turn.due = turn.due.plus(turn.pace);
                }
                Err(CommandError::Full(())) => return,
                Err(CommandError::Gone(()) | CommandError::NotOffered(())) => {
                    self.turns.remove(&key);
                    return;
                }
            }
        }
        if turn.permissions > 0 {
            turn.permissions -= 1;
            let call = ToolCallUpdate::new(format!("call_{}", turn.permissions));
            let allow = PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce);
            let request = RequestPermissionRequest::new(turn.session.clone(), call, vec![allow]);
            match side.ask::<RequestPermission>(&request) {
                Ok(ask) => drop(self.asks.insert(ask, key)),
                Err(_) => self.end(side, key, StopReason::EndTurn),
            }
            return;
        }
        self.end(side, key, StopReason::EndTurn);
    }

    fn end(&mut self, side: &mut AgentSide, key: TurnKey, why: StopReason) {
        if let Some(turn) = self.turns.remove(&key) {
            self.paced.remove(&(turn.due, key));
        }
        if let Some(turn) = side.turn(key) {
            turn.finish(PromptResponse::new(why));
        }
    }

    fn text(&mut self, size: usize, mixed: bool) -> Rc<str> {
        match &self.text {
            Some((known, kind, text)) if (*known, *kind) == (size, mixed) => Rc::clone(text),
            _ => {
                let block = if mixed {
                    "line \"one\"\n\tback\\slash, größer, 漢字, \u{1f980}; line two\nx"
                } else {
                    "abcdefghijklmnopqrstuvwxyz"
                };
                let mut text = String::with_capacity(size);
                for c in block.chars().cycle() {
                    if text.len() + c.len_utf8() > size {
                        break;
                    }
                    text.push(c);
                }
                // A character that would not fit leaves a gap.
                text.extend(std::iter::repeat_n('.', size - text.len()));
                let text: Rc<str> = text.into();
                self.text = Some((size, mixed, Rc::clone(&text)));
                text
            }
        }
    }
}

fn refuse<M: reasonix_core::protocol::AgentMethod>(
    side: &mut AgentSide,
    asked: reasonix_core::protocol::Asked<M>,
) {
    side.answer(asked, Err(RpcError::method_not_found(M::NAME)));
}
