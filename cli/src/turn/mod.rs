//! One turn, seen from the client's side: opens a session, prompts, shows what comes, answers what
//! is asked, and says how it ended. The agent behind it is an ordinary one: it is spoken to in
//! frames only.

mod approvals;
mod cards;
mod keys;
mod lines;
mod link;
mod output;
mod session;
mod spinner;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use reasonix_core::agent::Config;
use reasonix_core::ids::AskId;
use reasonix_core::limits::Limits;
use reasonix_core::protocol::methods::Initialize;
use reasonix_core::protocol::schema::{
    Implementation, InitializeRequest, ProtocolVersion, SessionId, StopReason,
};
use reasonix_core::protocol::{AgentAnswer, ClientEvent, ClientSide, PeerInput, SideEffect};
use reasonix_core::time::{Deadline, Instant};
use reasonix_core::{Machine as _, Next};

pub use approvals::Approvals;
pub use output::View;
pub use session::Opens;

use crate::Runtime;
use crate::exit::{Exit, Failure};
use crate::logging;
use crate::render::styles::{DIM, WARN, styled};
use crate::render::text::{one_line, safe};
use crate::sessions::probably_short;
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
    /// The session it belongs to.
    pub opens: Opens,
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
        let (ended, session) = match started {
            Ok(link) => {
                let mut running = Running::new(self, link, runtime.program());
                (running.run(), running.session)
            }
            Err(error) => {
                let why = format!("the agent could not start: {error}");
                (Err(Failure::failed(why)), None)
            }
        };
        if let (true, Err(failure)) = (json, &ended) {
            error_line(failure, session.as_ref());
        }
        ended
    }
}

/// The last line for scripts, if it failed; people read standard error, where it goes too.
pub fn error_line(failure: &Failure, session: Option<&SessionId>) {
    // Where it cannot be written, standard error has it.
    let _ = output::json_line(&Line::Error {
        message: &logging::redacted(failure.message.clone()),
        code: failure.code,
        exit: failure.exit as u8,
        session_id: session.map(SessionId::as_str),
    });
}

/// How far it is.
enum Stage {
    Initializing(AskId),
    Opening(AskId),
    /// What a session that goes on is set to; some answers are missing.
    Setting(BTreeSet<AskId>, SessionId),
    Prompting(AskId, SessionId),
    /// The turn is over; what was allowed for this run alone is taken back.
    Lowering(AskId, Result<StopReason, Failure>),
    /// The agent comes to rest.
    Over,
}

struct Running {
    turn: Turn,
    link: Link,
    side: ClientSide,
    output: Output,
    program: &'static str,
    stage: Stage,
    /// How it ended.
    ended: Option<Result<Exit, Failure>>,
    session: Option<SessionId>,
    card: Option<Card>,
    denied: u32,
    interrupted: bool,
    /// What ran without asking before the person wanted to be asked no more.
    approval: Option<String>,
    raising: Option<AskId>,
    raised: bool,
    incoming: Vec<u8>,
}

impl Running {
    fn new(turn: Turn, link: Link, program: &'static str) -> Self {
        let mut side = ClientSide::new(Limits::default());
        let mut hello = InitializeRequest::new(ProtocolVersion::V1);
        hello.client_info = Some(Implementation::new(
            "reasonix-run",
            env!("CARGO_PKG_VERSION"),
        ));
        let ask = side.request::<Initialize>(&hello);
        Self {
            output: Output::new(turn.view, turn.frames, &turn.cwd),
            program,
            stage: Stage::Initializing(ask),
            ended: None,
            session: None,
            card: None,
            denied: 0,
            interrupted: false,
            approval: None,
            raising: None,
            raised: false,
            incoming: Vec::new(),
            turn,
            link,
            side,
        }
    }

    fn run(&mut self) -> Result<Exit, Failure> {
        let mut rest = None;
        loop {
            let closed = self.drain();
            if self.output.closed().is_some() && !self.interrupted {
                self.interrupt();
                continue;
            }
            let deadline = match closed {
                Drained::Closed => None,
                Drained::Waits(deadline) => deadline.map(|d| d.at.elapsed()),
            };
            if matches!(self.stage, Stage::Over) && rest.is_none() {
                self.output.end(self.how_to_go_on().as_deref());
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
                    if !matches!(self.stage, Stage::Over) {
                        self.end_line(StopReason::Cancelled, Exit::Cancelled);
                    }
                    self.output.end(None);
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
    fn ending(&mut self) -> Result<Exit, Failure> {
        let broken = || Failure::failed("the agent ended in the middle of the turn");
        self.ended.take().unwrap_or_else(|| Err(broken()))
    }

    /// How a person goes on with the session, if it is kept.
    fn how_to_go_on(&self) -> Option<String> {
        let config = &self.turn.config;
        let session = self.session.as_ref()?;
        if config.ephemeral || config.host.home.is_none() {
            return None;
        }
        let id = probably_short(session);
        let here = std::env::current_dir().is_ok_and(|here| here == Path::new(&self.turn.cwd));
        let place = match here {
            true => String::new(),
            false => format!(" --cwd '{}'", safe(&self.turn.cwd)),
        };
        let program = self.program;
        Some(format!(
            "To go on: {program} run{place} --session {id} \"…\""
        ))
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
                    if self.card.is_none() && !matches!(self.stage, Stage::Over) {
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
            match answer.error() {
                None => self.raised = true,
                Some(error) => {
                    let why = one_line(&error.message, 200);
                    self.output.warn(&styled(
                        WARN,
                        format_args!("Approvals stay as they are: {why}"),
                    ));
                }
            }
            return;
        }
        match (&self.stage, answer) {
            (Stage::Initializing(own), AgentAnswer::Initialize(result)) if *own == ask => {
                match result {
                    Ok(_) => self.open(),
                    Err(error) => self.over(Err(Failure::answered(&error))),
                }
            }
            (Stage::Opening(own), AgentAnswer::NewSession(result)) if *own == ask => match result {
                Ok(opened) => self.opened(opened.session_id, opened.config_options),
                Err(error) => self.over(Err(Failure::answered(&error))),
            },
            (Stage::Opening(own), AgentAnswer::ResumeSession(result)) if *own == ask => {
                match (result, &self.turn.opens) {
                    (Ok(opened), Opens::GoesOn { found, .. }) => {
                        let id = found.id.clone();
                        self.opened(id, opened.config_options);
                    }
                    (Ok(_), Opens::New) => {}
                    (Err(error), _) => self.over(Err(Failure::answered(&error))),
                }
            }
            (Stage::Setting(own, _), AgentAnswer::SetConfigOption(result))
                if own.contains(&ask) =>
            {
                match result {
                    Ok(response) => self.set(ask, &response.config_options),
                    Err(error) => self.over(Err(Failure::answered(&error))),
                }
            }
            (Stage::Prompting(own, session), AgentAnswer::Prompt(result)) if *own == ask => {
                let session = session.clone();
                self.card_is_gone();
                let result = match result {
                    Ok(response) => Ok(response.stop_reason),
                    Err(error) => Err(Failure::answered(&error)),
                };
                self.lower(&session, result);
            }
            (Stage::Lowering(own, result), _) if *own == ask => {
                let result = result.clone();
                self.finished(result);
            }
            _ => {}
        }
    }

    fn finished(&mut self, result: Result<StopReason, Failure>) {
        match result {
            Ok(reason) => self.stopped(reason),
            Err(failure) => self.over(Err(failure)),
        }
    }

    /// The turn has an end.
    fn stopped(&mut self, reason: StopReason) {
        if let Some(why) = self.output.closed() {
            let why = format!("{why}; the turn was cancelled");
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
        if !matches!(self.stage, Stage::Over) {
            self.stage = Stage::Over;
            self.ended = Some(ended);
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
                if self.output.closed().is_none() {
                    self.output
                        .warn(&styled(DIM, "Cancelling; Ctrl-C again quits at once."));
                }
            }
            Stage::Initializing(_) | Stage::Opening(_) | Stage::Setting(..) => {
                self.end_line(StopReason::Cancelled, Exit::Cancelled);
                self.over(Ok(Exit::Cancelled));
            }
            Stage::Lowering(..) | Stage::Over => {}
        }
    }

    /// The last line for scripts.
    fn end_line(&mut self, reason: StopReason, exit: Exit) {
        self.output.json(&Line::End {
            stop_reason: reason.as_str(),
            denied: self.denied,
            exit: exit as u8,
            session_id: self.session.as_ref().map(SessionId::as_str),
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
