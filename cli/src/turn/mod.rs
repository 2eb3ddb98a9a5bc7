//! One turn, seen from the client's side: opens a session, prompts, shows what comes, answers what
//! is asked, and says how it ended. The agent behind it is an ordinary one: it is spoken to in
//! frames only.

mod approvals;
mod cards;
mod keys;
mod lines;
mod link;
mod output;
mod spinner;

use std::time::Duration;

use reasonix_core::agent::Config;
use reasonix_core::ids::AskId;
use reasonix_core::limits::Limits;
use reasonix_core::protocol::methods::{Initialize, NewSession, Prompt};
use reasonix_core::protocol::schema::{
    ContentBlock, Implementation, InitializeRequest, NewSessionRequest, PromptRequest,
    ProtocolVersion, SessionId, StopReason,
};
use reasonix_core::protocol::{AgentAnswer, ClientEvent, ClientSide, PeerInput, SideEffect};
use reasonix_core::time::{Deadline, Instant};
use reasonix_core::wire::RpcError;
use reasonix_core::{Machine as _, Next};
use serde::Deserialize;

pub use approvals::Approvals;
pub use output::View;

use crate::Runtime;
use crate::exit::{Exit, Failure};
use crate::logging;
use crate::render::styles::{DIM, WARN, styled};
use crate::render::text::{one_line, safe};
use cards::Card;
use lines::Line;
use link::{Heard, Link};
use output::{Output, Way};

/// After the turn the agent has this long to come to rest: a little more than it takes itself.
const REST: Duration = Duration::from_secs(6);

/// What a turn is made of.
pub struct Turn {
    /// The agent.
    pub config: Config,
    /// Where it works: absolute.
    pub cwd: String,
    /// What it is asked.
    pub prompt: String,
    /// Who answers cards.
    pub approvals: Approvals,
    /// How it is shown.
    pub view: View,
    /// Whether every frame is shown.
    pub frames: bool,
}

impl Turn {
    /// Runs it to its end.
    pub fn run(self, runtime: Runtime) -> Result<Exit, Failure> {
        let json = self.view == View::Json;
        let started = Link::start(runtime, self.config.clone());
        let ended = match started {
            Ok(link) => Running::new(self, link).run(),
            Err(error) => Err(Failure::failed(format!(
                "the agent could not start: {error}"
            ))),
        };
        if let (true, Err(failure)) = (json, &ended) {
            // Scripts read the last line; people read standard error, where it goes too.
            output::json_line(&Line::Error {
                message: &logging::redacted(failure.message.clone()),
                code: failure.code,
                exit: failure.exit as u8,
            });
        }
        ended
    }
}

/// How far it is.
enum Stage {
    Initializing(AskId),
    Opening(AskId),
    Prompting(AskId, SessionId),
    /// How it ended; the agent comes to rest.
    Over(Result<Exit, Failure>),
}

struct Running {
    turn: Turn,
    link: Link,
    side: ClientSide,
    output: Output,
    stage: Stage,
    card: Option<Card>,
    denied: u32,
    interrupted: bool,
    raising: Option<AskId>,
    incoming: Vec<u8>,
}

impl Running {
    fn new(turn: Turn, link: Link) -> Self {
        let mut side = ClientSide::new(Limits::default());
        let mut hello = InitializeRequest::new(ProtocolVersion::V1);
        hello.client_info = Some(Implementation::new(
            "reasonix-run",
            env!("CARGO_PKG_VERSION"),
        ));
        let ask = side.request::<Initialize>(&hello);
        Self {
            output: Output::new(turn.view, turn.frames, &turn.cwd),
            stage: Stage::Initializing(ask),
            card: None,
            denied: 0,
            interrupted: false,
            raising: None,
            incoming: Vec::new(),
            turn,
            link,
            side,
        }
    }

    fn run(mut self) -> Result<Exit, Failure> {
        let mut rest = None;
        loop {
            let closed = self.drain();
            if self.output.is_closed() && !self.interrupted {
                self.interrupt();
                continue;
            }
            let deadline = match closed {
                Drained::Closed => None,
                Drained::Waits(deadline) => deadline.map(|d| d.at.elapsed()),
            };
            if matches!(self.stage, Stage::Over(_)) && rest.is_none() {
                self.output.end();
                self.link.finish();
                rest = Some(self.link.now() + REST);
            }
            let until = deadline.into_iter().chain(rest).min();
            let heard = self.link.hear(until);
            if heard.is_none() && rest.is_some_and(|rest| self.link.now() >= rest) {
                log::warn!("the agent did not come to rest");
                return self.ending();
            }
            match heard {
                None => self.side.handle_timeout(self.now()),
                Some(Heard::Bytes(bytes)) => self.received(&bytes),
                Some(Heard::Interrupt) if self.interrupted => {
                    // The second time: the terminal is put back, the rest is left to the system.
                    self.link.stop_key();
                    if !matches!(self.stage, Stage::Over(_)) {
                        self.end_line(StopReason::Cancelled, Exit::Cancelled);
                    }
                    self.output.end();
                    return Ok(Exit::Cancelled);
                }
                Some(Heard::Interrupt) => self.interrupt(),
                Some(Heard::Key(number, key)) => self.key(number, key),
                Some(Heard::Ended(result)) => {
                    if let Err(why) = result {
                        self.over(Err(Failure::failed(format!("the agent failed: {why}"))));
                    }
                    self.side.handle_input(self.now(), PeerInput::PeerFinished);
                    self.drain();
                    return self.ending();
                }
            }
        }
    }

    /// What `run` answers.
    fn ending(self) -> Result<Exit, Failure> {
        match self.stage {
            Stage::Over(ended) => ended,
            Stage::Initializing(_) | Stage::Opening(_) | Stage::Prompting(..) => {
                Err(Failure::failed("the agent ended in the middle of the turn"))
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::since_start(self.link.now())
    }

    fn received(&mut self, bytes: &[u8]) {
        if self.turn.frames {
            self.incoming.extend_from_slice(bytes);
            let incoming = std::mem::take(&mut self.incoming);
            let mut rest = incoming.as_slice();
            while let Some(end) = rest.iter().position(|b| *b == b'\n') {
                // A frame is shown before what it causes.
                self.output.frame(Way::ToClient, &rest[..end]);
                self.side
                    .handle_input(self.now(), PeerInput::Received(&rest[..=end]));
                self.drain();
                rest = &rest[end + 1..];
            }
            self.incoming = rest.to_vec();
        } else {
            self.side
                .handle_input(self.now(), PeerInput::Received(bytes));
        }
    }

    /// Does all the client's side wants done.
    fn drain(&mut self) -> Drained {
        loop {
            match self.side.poll_effect() {
                Next::Do(SideEffect::Transmit(frame)) => {
                    let text = frame.strip_suffix(b"\n").unwrap_or(frame);
                    self.output.frame(Way::ToAgent, text);
                    let sent = self.link.send(frame);
                    let input = match sent {
                        true => PeerInput::Unsent(0),
                        false => PeerInput::PeerGone,
                    };
                    self.side
                        .handle_input(Instant::since_start(self.link.now()), input);
                }
                Next::Do(SideEffect::Event(event)) => self.event(event),
                Next::Do(SideEffect::Close(_)) => {
                    self.link.finish();
                    return Drained::Closed;
                }
                Next::Wait(deadline) => {
                    if self.card.is_none() && !matches!(self.stage, Stage::Over(_)) {
                        self.output.wait("thinking");
                    }
                    return Drained::Waits(deadline);
                }
            }
        }
    }

    fn event(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Answered { ask, answer } => self.answered(ask, answer),
            ClientEvent::Update(notification) => self.output.update(&notification.update),
            ClientEvent::RequestPermission { asked, request } => self.permission(asked, request),
            ClientEvent::CancelRequest { key } => self.withdrawn(key),
            ClientEvent::Misbehaved(fault) => log::warn!("the agent broke a rule: {fault}"),
            // The end is heard from the link; the rest was not offered to the agent.
            ClientEvent::PeerFinished
            | ClientEvent::PeerGone
            | ClientEvent::ElicitationComplete { .. }
            | ClientEvent::ReadTextFile { .. }
            | ClientEvent::WriteTextFile { .. }
            | ClientEvent::CreateTerminal { .. }
            | ClientEvent::TerminalOutput { .. }
            | ClientEvent::WaitForTerminalExit { .. }
            | ClientEvent::KillTerminal { .. }
            | ClientEvent::ReleaseTerminal { .. }
            | ClientEvent::CreateElicitation { .. }
            | ClientEvent::VendorRequest { .. }
            | ClientEvent::VendorNotification { .. }
            | _ => {}
        }
    }

    fn answered(&mut self, ask: AskId, answer: AgentAnswer) {
        if self.raising == Some(ask) {
            self.raising = None;
            if let Some(error) = answer.error() {
                let why = one_line(&error.message, 200);
                self.output.warn(&styled(
                    WARN,
                    format_args!("Approvals stay as they are: {why}"),
                ));
            }
            return;
        }
        match (&self.stage, answer) {
            (Stage::Initializing(own), AgentAnswer::Initialize(result)) if *own == ask => {
                match result {
                    Ok(_) => {
                        let request = NewSessionRequest::new(self.turn.cwd.clone());
                        self.stage = Stage::Opening(self.side.request::<NewSession>(&request));
                    }
                    Err(error) => self.over(Err(failure(&error))),
                }
            }
            (Stage::Opening(own), AgentAnswer::NewSession(result)) if *own == ask => match result {
                Ok(opened) => {
                    self.output.json(&Line::Session {
                        session_id: opened.session_id.as_str(),
                        cwd: &self.turn.cwd,
                    });
                    let text = std::mem::take(&mut self.turn.prompt);
                    let blocks = vec![ContentBlock::text(text)];
                    let request = PromptRequest::new(&opened.session_id, blocks);
                    let ask = self.side.request::<Prompt>(&request);
                    self.stage = Stage::Prompting(ask, opened.session_id);
                }
                Err(error) => self.over(Err(failure(&error))),
            },
            (Stage::Prompting(own, _), AgentAnswer::Prompt(result)) if *own == ask => {
                self.card_is_gone();
                match result {
                    Ok(response) => self.stopped(response.stop_reason),
                    Err(error) => self.over(Err(failure(&error))),
                }
            }
            _ => {}
        }
    }

    /// The turn has an end.
    fn stopped(&mut self, reason: StopReason) {
        if self.output.is_closed() {
            let why = "nobody reads standard output any more; the turn was cancelled";
            return self.over(Err(Failure::failed(why)));
        }
        let exit = exit_of(reason, self.denied);
        self.end_line(reason, exit);
        let note = match reason {
            StopReason::EndTurn => None,
            StopReason::MaxTokens => Some("The answer was cut by the model's length limit."),
            StopReason::MaxTurnRequests => Some("The turn was ended by --max-steps."),
            StopReason::Refusal => Some("The model refused."),
            StopReason::Cancelled => Some("Cancelled."),
            _ => Some("The turn ended for a reason this program does not know."),
        };
        if let Some(note) = note {
            self.output.warn(&styled(WARN, note));
        }
        self.over(Ok(exit));
    }

    fn over(&mut self, ended: Result<Exit, Failure>) {
        self.card_is_gone();
        if !matches!(self.stage, Stage::Over(_)) {
            self.stage = Stage::Over(ended);
            self.side.close();
        }
    }

    fn interrupt(&mut self) {
        self.interrupted = true;
        self.card_is_gone();
        match &self.stage {
            Stage::Prompting(_, session) => {
                let session = session.clone();
                self.side.notify_cancel(&session);
                if !self.output.is_closed() {
                    self.output
                        .warn(&styled(DIM, "Cancelling; Ctrl-C again quits at once."));
                }
            }
            Stage::Initializing(_) | Stage::Opening(_) => {
                self.end_line(StopReason::Cancelled, Exit::Cancelled);
                self.over(Ok(Exit::Cancelled));
            }
            Stage::Over(_) => {}
        }
    }

    /// The last line for scripts.
    fn end_line(&mut self, reason: StopReason, exit: Exit) {
        self.output.json(&Line::End {
            stop_reason: reason.as_str(),
            denied: self.denied,
            exit: exit as u8,
        });
    }
}

/// What a drain came to.
enum Drained {
    Closed,
    Waits(Option<Deadline>),
}

/// The exit code for an end of a turn in which `denied` cards were denied.
fn exit_of(reason: StopReason, denied: u32) -> Exit {
    match reason {
        StopReason::EndTurn if denied == 0 => Exit::Ok,
        StopReason::EndTurn | StopReason::Refusal => Exit::Denied,
        StopReason::MaxTokens | StopReason::MaxTurnRequests => Exit::Limit,
        StopReason::Cancelled => Exit::Cancelled,
        _ => Exit::Failed,
    }
}

/// What an error of the agent says, and what can be done about it.
fn failure(error: &RpcError) -> Failure {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        how_to: Option<String>,
    }
    let data = error.data.as_ref();
    let data = data.and_then(|data| serde_json::from_str::<Data>(data.get()).ok());
    let mut message = safe(&error.message).into_owned();
    if let Some(how_to) = data.and_then(|data| data.how_to)
        && !message.contains(&how_to)
    {
        message = format!("{message}\n{}", safe(&how_to));
    }
    Failure {
        code: Some(error.code),
        ..Failure::failed(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_exit_code() {
        for (reason, denied, exit) in [
            (StopReason::EndTurn, 0, 0),
            (StopReason::EndTurn, 1, 3),
            (StopReason::Refusal, 0, 3),
            (StopReason::MaxTokens, 0, 4),
            (StopReason::MaxTurnRequests, 2, 4),
            (StopReason::Cancelled, 1, 130),
        ] {
            assert_eq!(exit_of(reason, denied) as u8, exit, "{reason:?}, {denied}");
        }
    }
}
