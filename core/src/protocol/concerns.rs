//! What the sides have to know of requests and answers beyond their method. Knows no state.

use super::gates::{Gates, Offers};
use super::schema::*;

/// What an answer offers, and what has to be taken out of it.
pub(super) trait Adapt {
    fn fit(&mut self, _: Gates) {}
    fn offers(&self) -> Option<Offers> {
        None
    }
    fn made(&self) -> Option<SessionId> {
        None
    }
}

impl Adapt for InitializeResponse {
    fn offers(&self) -> Option<Offers> {
        Some(Offers::of(&self.agent_capabilities))
    }
}
impl Adapt for NewSessionResponse {
    fn made(&self) -> Option<SessionId> {
        Some(self.session_id.clone())
    }
    fn fit(&mut self, gates: Gates) {
        gates.fit_options(self.config_options.as_mut());
    }
}
impl Adapt for LoadSessionResponse {
    fn fit(&mut self, gates: Gates) {
        gates.fit_options(self.config_options.as_mut());
    }
}
impl Adapt for ResumeSessionResponse {
    fn fit(&mut self, gates: Gates) {
        gates.fit_options(self.config_options.as_mut());
    }
}
impl Adapt for SetSessionConfigOptionResponse {
    fn fit(&mut self, gates: Gates) {
        gates.fit_options(Some(&mut self.config_options));
    }
}
impl Adapt for AuthenticateResponse {}
impl Adapt for LogoutResponse {}
impl Adapt for ListSessionsResponse {}
impl Adapt for CloseSessionResponse {}
impl Adapt for DeleteSessionResponse {}
impl Adapt for SetSessionModeResponse {}
impl Adapt for SetSessionModelResponse {}
impl Adapt for PromptResponse {}

/// What a request lets the person choose from, and the request of the client that it belongs to.
pub(super) trait Choose {
    fn choices(&self) -> Option<&[PermissionOption]> {
        None
    }
    fn within(&self) -> Option<&Json> {
        None
    }
}

impl Choose for RequestPermissionRequest {
    fn choices(&self) -> Option<&[PermissionOption]> {
        Some(&self.options)
    }
}
impl Choose for ReadTextFileRequest {}
impl Choose for WriteTextFileRequest {}
impl Choose for CreateTerminalRequest {}
impl Choose for TerminalOutputRequest {}
impl Choose for WaitForTerminalExitRequest {}
impl Choose for KillTerminalRequest {}
impl Choose for ReleaseTerminalRequest {}
impl Choose for CreateElicitationRequest {
    fn within(&self) -> Option<&Json> {
        match &self.scope {
            ElicitationScope::Request { request_id } => Some(request_id),
            ElicitationScope::Session { .. } => None,
        }
    }
}

/// What a request of the client is about.
pub(super) trait Concern {
    fn scope(&self) -> Option<&SessionId> {
        None
    }
    fn gates(&self) -> Option<Gates> {
        None
    }
}

impl Concern for InitializeRequest {
    fn gates(&self) -> Option<Gates> {
        Some(Gates::of(&self.client_capabilities))
    }
}
impl Concern for AuthenticateRequest {}
impl Concern for LogoutRequest {}
impl Concern for NewSessionRequest {}
impl Concern for ListSessionsRequest {}

macro_rules! concerns_a_session {
    ($( $request:ident )+) => {
        $( impl Concern for $request {
            fn scope(&self) -> Option<&SessionId> {
                Some(&self.session_id)
            }
        } )+
    };
}

concerns_a_session! {
    LoadSessionRequest ResumeSessionRequest CloseSessionRequest DeleteSessionRequest
    SetSessionModeRequest SetSessionConfigOptionRequest SetSessionModelRequest PromptRequest
}
