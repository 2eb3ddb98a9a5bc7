//! One turn, seen from the client's side: opens a session, prompts, shows what comes, answers what
//! is asked, and says how it ended. The agent behind it is an ordinary one: it is spoken to in
//! frames only.

mod approvals;
mod keys;
mod lines;
mod link;
mod output;
mod spinner;

use std::time::Duration;

use reasonix_core::agent::Config;
use reasonix_core::ids::AskId;
use reasonix_core::limits::Limits;
use reasonix_core::protocol::methods::{
    Asked, Initialize, NewSession, Prompt, RequestPermission, SetConfigOption,
};
use reasonix_core::protocol::schema::{
    ConfigValue, ContentBlock, Implementation, InitializeRequest, NewSessionRequest,
    PermissionOption, PermissionOptionKind, PromptRequest, ProtocolVersion,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionId, SetSessionConfigOptionRequest, StopReason,
};
use reasonix_core::protocol::{AgentAnswer, ClientEvent, ClientSide, PeerInput, SideEffect};
use reasonix_core::time::{Deadline, Instant};
use reasonix_core::wire::{RequestKey, RpcError};
use reasonix_core::{Machine as _, Next};
use serde::Deserialize;

pub use approvals::Approvals;
pub use output::View;

use crate::Runtime;
use crate::exit::{Exit, Failure};
use crate::render::styles::{BAD, DIM, GOOD, WARN, styled};
use crate::render::text::{one_line, safe};
use approvals::{Choice, Chosen, choices, chosen, keys_line, of_kind, wanted};
use keys::Keys;
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
                message: &failure.message,
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

/// A card that waits for the person.
struct Card {
    asked: Asked<RequestPermission>,
    request: RequestPermissionRequest,
    choices: Vec<Choice>,
    key: u64,
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
        self.output.json(&Line::End {
            stop_reason: reason.as_str(),
            denied: self.denied,
            exit: exit as u8,
        });
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
            Stage::Initializing(_) | Stage::Opening(_) => self.over(Ok(Exit::Cancelled)),
            Stage::Over(_) => {}
        }
    }

    fn permission(&mut self, asked: Asked<RequestPermission>, request: RequestPermissionRequest) {
        match self.turn.approvals {
            _ if self.interrupted => self.settle(asked, &request, None, Some("cancelled")),
            Approvals::AllowAll => {
                let allow = of_kind(&request.options, PermissionOptionKind::AllowOnce).cloned();
                self.settle(asked, &request, allow, Some("--yes"));
            }
            Approvals::Nobody => {
                let title = title_of(&request);
                self.output.warn(&format!(
                    "{} {title}: it needs approval and there is no terminal to ask on. \
                     Allow it with --permission-mode (acceptEdits, auto, …).",
                    styled(BAD, "Denied:")
                ));
                self.settle(asked, &request, None, Some("nobody to ask"));
            }
            Approvals::Person => self.ask(asked, request),
        }
    }

    fn ask(&mut self, asked: Asked<RequestPermission>, request: RequestPermissionRequest) {
        self.output.card(&request.tool_call);
        let choices = choices(&request.options);
        // Ready before the question is shown: what is typed after it counts.
        match Keys::ready() {
            Ok(keys) => {
                self.output.ask(&format!("  {} ", keys_line(&choices)));
                let wanted = wanted(&choices);
                let key = self.link.wait_key(keys, wanted);
                self.card = Some(Card {
                    asked,
                    request,
                    choices,
                    key,
                });
            }
            Err(error) => {
                log::error!("the terminal gives no keys: {error}");
                self.settle(asked, &request, None, Some("no keys"));
            }
        }
    }

    fn key(&mut self, number: u64, key: Option<char>) {
        let Some(card) = self.card.take_if(|card| card.key == number) else {
            return;
        };
        match key.and_then(|key| chosen(&card.choices, key)).cloned() {
            // The end of input is no approval.
            None => {
                self.output.ask("\n");
                self.settle(card.asked, &card.request, None, Some("input ended"));
            }
            Some(Chosen::Option { id, .. }) => self.choose(card, &id),
            Some(Chosen::Auto { id }) => {
                if let Stage::Prompting(_, session) = &self.stage {
                    let value = ConfigValue::Id("auto".into());
                    let request =
                        SetSessionConfigOptionRequest::new(session, "tool_approval", value);
                    self.raising = Some(self.side.request::<SetConfigOption>(&request));
                }
                self.choose(card, &id);
            }
        }
    }

    fn choose(&mut self, card: Card, id: &str) {
        let option = card.request.options.iter().find(|o| o.option_id == id);
        let option = option.cloned();
        let said = match &option {
            Some(option) if allows(option.kind) => styled(GOOD, one_line(&option.name, 80)),
            Some(option) => styled(BAD, one_line(&option.name, 80)),
            None => String::new(),
        };
        self.output.ask(&format!("\r\x1b[K  {said}\n"));
        self.settle(card.asked, &card.request, option, None);
    }

    /// Answers a card. No option: denied.
    fn settle(
        &mut self,
        asked: Asked<RequestPermission>,
        request: &RequestPermissionRequest,
        option: Option<PermissionOption>,
        why: Option<&str>,
    ) {
        let option = option.or_else(|| match self.interrupted {
            true => None,
            false => of_kind(&request.options, PermissionOptionKind::RejectOnce).cloned(),
        });
        let allowed = option.as_ref().is_some_and(|option| allows(option.kind));
        if !allowed && !self.interrupted {
            self.denied += 1;
        }
        self.output.json(&Line::Permission {
            tool_call_id: &request.tool_call.tool_call_id,
            title: &title_of(request),
            answer: option
                .as_ref()
                .map_or("cancelled", |option| option.kind.as_str()),
            why,
        });
        let outcome = match option {
            Some(option) => {
                RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id))
            }
            None => RequestPermissionOutcome::Cancelled,
        };
        self.side
            .answer(asked, Ok(RequestPermissionResponse::new(outcome)));
    }

    /// The agent does not want an answer any more.
    fn withdrawn(&mut self, key: RequestKey) {
        if self
            .card
            .as_ref()
            .is_some_and(|card| card.asked.key() == key)
        {
            self.card_is_gone();
        }
    }

    fn card_is_gone(&mut self) {
        if let Some(card) = self.card.take() {
            self.link.stop_key();
            self.output.ask("\n");
            let outcome = RequestPermissionOutcome::Cancelled;
            self.side
                .answer(card.asked, Ok(RequestPermissionResponse::new(outcome)));
        }
    }
}

/// What a drain came to.
enum Drained {
    Closed,
    Waits(Option<Deadline>),
}

fn title_of(request: &RequestPermissionRequest) -> String {
    let call = &request.tool_call;
    one_line(call.title.as_deref().unwrap_or(&call.tool_call_id), 120)
}

fn allows(kind: PermissionOptionKind) -> bool {
    match kind {
        PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways => true,
        PermissionOptionKind::RejectOnce | PermissionOptionKind::RejectAlways | _ => false,
    }
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
