//! The session of a turn: a new one or one that goes on, what it is set to, and what is taken back
//! when the turn is over.

use std::collections::BTreeSet;

use reasonix_core::ids::AskId;
use reasonix_core::protocol::methods::{NewSession, Prompt, ResumeSession, SetConfigOption};
use reasonix_core::protocol::schema::{
    ConfigValue, ContentBlock, NewSessionRequest, PromptRequest, ResumeSessionRequest,
    SessionConfigKind, SessionConfigOption, SessionId, SetSessionConfigOptionRequest, StopReason,
};

use super::lines::Line;
use super::output::View;
use super::{Running, Stage};
use crate::exit::Failure;
use crate::render::styles::{DIM, styled};
use crate::sessions::Found;

/// The option that says what runs without asking.
const APPROVAL: &str = "tool_approval";

/// What is said of a session that goes on, if it is not so: a new one would do something else.
const USUAL: [(&str, &str, &str); 2] = [("mode", "mode", "normal"), (APPROVAL, "approval", "ask")];

/// The session a turn belongs to.
pub enum Opens {
    /// A new one.
    New,
    /// One that goes on.
    GoesOn {
        /// Which.
        found: Found,
        /// What it is set to, by the ids of its options; the rest stays.
        set: Vec<(&'static str, String)>,
    },
}

impl Running {
    pub(super) fn open(&mut self) {
        let cwd = self.turn.cwd.clone();
        let ask = match &self.turn.opens {
            Opens::New => self
                .side
                .request::<NewSession>(&NewSessionRequest::new(cwd)),
            Opens::GoesOn { found, .. } => {
                let mut request = ResumeSessionRequest::new(found.id.clone(), cwd);
                if !self.turn.config.workspace_only {
                    request
                        .additional_directories
                        .clone_from(&found.directories);
                }
                self.side.request::<ResumeSession>(&request)
            }
        };
        self.stage = Stage::Opening(ask);
    }

    /// The session is open: what was asked for is set, and then it is prompted.
    pub(super) fn opened(&mut self, id: SessionId, options: Option<Vec<SessionConfigOption>>) {
        let options = options.unwrap_or_default();
        self.output.json(&Line::Session {
            session_id: id.as_str(),
            cwd: &self.turn.cwd,
            resumed: matches!(self.turn.opens, Opens::GoesOn { .. }),
        });
        self.session = Some(id.clone());
        self.approval = value_of(&options, APPROVAL).map(Into::into);
        let mut asks = BTreeSet::new();
        if let Opens::GoesOn { set, .. } = &self.turn.opens {
            for (option, value) in set {
                // What is seen of the approval may be the ceiling, with another one above it.
                if *option == APPROVAL || value_of(&options, option) != Some(value) {
                    let value = ConfigValue::Id(value.clone());
                    let request = SetSessionConfigOptionRequest::new(&id, *option, value);
                    asks.insert(self.side.request::<SetConfigOption>(&request));
                }
            }
        }
        match asks.is_empty() {
            true => self.prompt(id, &options),
            false => self.stage = Stage::Setting(asks, id),
        }
    }

    /// One of the options is set.
    pub(super) fn set(&mut self, ask: AskId, options: &[SessionConfigOption]) {
        self.approval = value_of(options, APPROVAL).map(Into::into);
        if let Stage::Setting(asks, id) = &mut self.stage {
            asks.remove(&ask);
            if asks.is_empty() {
                let id = id.clone();
                self.prompt(id, options);
            }
        }
    }

    fn prompt(&mut self, id: SessionId, options: &[SessionConfigOption]) {
        if let (View::All, Opens::GoesOn { found, .. }) = (self.turn.view, &self.turn.opens) {
            let mut said = format!("Going on with {}", found.said);
            for (option, name, usual) in USUAL {
                if let Some(value) = value_of(options, option)
                    && value != usual
                {
                    said.push_str(&format!("; {name}: {value}"));
                }
            }
            self.output.warn(&styled(DIM, said));
        }
        let text = std::mem::take(&mut self.turn.prompt);
        let request = PromptRequest::new(&id, vec![ContentBlock::text(text)]);
        let ask = self.side.request::<Prompt>(&request);
        self.stage = Stage::Prompting(ask, id);
    }

    /// The turn is over. To ask no more was meant for this run, and sessions are kept.
    pub(super) fn lower(&mut self, session: &SessionId, result: Result<StopReason, Failure>) {
        match (self.raised && !self.turn.config.ephemeral, &self.approval) {
            (true, Some(before)) => {
                let value = ConfigValue::Id(before.clone());
                let request = SetSessionConfigOptionRequest::new(session, APPROVAL, value);
                let ask = self.side.request::<SetConfigOption>(&request);
                self.stage = Stage::Lowering(ask, result);
            }
            (_, _) => self.finished(result),
        }
    }
}

/// The value that an option has.
fn value_of<'a>(options: &'a [SessionConfigOption], id: &str) -> Option<&'a str> {
    let option = options.iter().find(|option| option.id == id)?;
    match &option.kind {
        SessionConfigKind::Select { current_value, .. } => Some(current_value),
        SessionConfigKind::Boolean { .. } | _ => None,
    }
}
