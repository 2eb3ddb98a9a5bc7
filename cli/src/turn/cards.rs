//! Permission cards of a turn: who answers them, and what the answer is. A card is settled exactly
//! once, and whatever is no choice of the person's denies.

use reasonix_core::protocol::methods::{Asked, RequestPermission, SetConfigOption};
use reasonix_core::protocol::schema::{
    ConfigValue, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
    SetSessionConfigOptionRequest,
};
use reasonix_core::wire::RequestKey;

use super::approvals::{Approvals, Choice, Chosen, choices, chosen, keys_line, of_kind, wanted};
use super::keys::Keys;
use super::lines::Line;
use super::{Running, Stage};
use crate::render::styles::{BAD, GOOD, styled};
use crate::render::text::one_line;

/// What a card is called that asks whether an MCP server of the project may start.
const LAUNCH: &str = "mcp_launch";

fn is_launch(request: &RequestPermissionRequest) -> bool {
    request.tool_call.name.as_deref() == Some(LAUNCH)
}

/// A card that waits for the person.
pub(super) struct Card {
    asked: Asked<RequestPermission>,
    request: RequestPermissionRequest,
    choices: Vec<Choice>,
    key: u64,
}

impl Running {
    pub(super) fn permission(
        &mut self,
        asked: Asked<RequestPermission>,
        request: RequestPermissionRequest,
    ) {
        match self.turn.approvals {
            _ if self.interrupted => self.settle(asked, &request, None, Some("cancelled")),
            Approvals::AllowAll => {
                let allow = of_kind(&request.options, PermissionOptionKind::AllowOnce).cloned();
                self.settle(asked, &request, allow, Some("--yes"));
            }
            Approvals::Nobody if is_launch(&request) => {
                self.output.warn(&format!(
                    "{} There is no terminal to ask on: not started. `reasonix mcp approve` \
                     allows it.",
                    title_of(&request)
                ));
                self.settle(asked, &request, None, Some("nobody to ask"));
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
        // A launch is asked about whatever the posture is.
        let choices = choices(&request.options, is_launch(&request));
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

    pub(super) fn key(&mut self, number: u64, key: Option<char>) {
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
        self.output.ask(&format!("→ {said}\n"));
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
        // What the turn was given to do goes on without a server that nobody was asked about.
        let beside = is_launch(request) && self.turn.approvals == Approvals::Nobody;
        if !allowed && !self.interrupted && !beside {
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
    pub(super) fn withdrawn(&mut self, key: RequestKey) {
        if self
            .card
            .as_ref()
            .is_some_and(|card| card.asked.key() == key)
        {
            self.card_is_gone();
        }
    }

    pub(super) fn card_is_gone(&mut self) {
        if let Some(card) = self.card.take() {
            self.link.stop_key();
            self.output.ask("\n");
            let outcome = RequestPermissionOutcome::Cancelled;
            self.side
                .answer(card.asked, Ok(RequestPermissionResponse::new(outcome)));
        }
    }
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
