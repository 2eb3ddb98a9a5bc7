//! Which request opens a session, and how it is answered. Knows nothing of what opening takes.

use alloc::vec::Vec;

use crate::ids::SessionKey;
use crate::protocol::methods::{LoadSession, NewSession, ResumeSession};
use crate::protocol::schema::{
    LoadSessionResponse, NewSessionResponse, ResumeSessionResponse, SessionConfigOption, SessionId,
    SessionModeState,
};
use crate::protocol::{AgentSide, Asked};
use crate::wire::{RequestKey, RpcError};

/// Which request opens it.
pub(in crate::agent) enum How {
    New(Asked<NewSession>),
    Load(Asked<LoadSession>),
    Resume(Asked<ResumeSession>),
}

impl How {
    /// The request.
    pub(in crate::agent) fn key(&self) -> RequestKey {
        match self {
            Self::New(asked) => asked.key(),
            Self::Load(asked) => asked.key(),
            Self::Resume(asked) => asked.key(),
        }
    }

    /// Answers it with an error.
    pub(in crate::agent) fn refuse(self, side: &mut AgentSide, error: RpcError) {
        match self {
            Self::New(asked) => side.answer(asked, Err(error)),
            Self::Load(asked) => side.answer(asked, Err(error)),
            Self::Resume(asked) => side.answer(asked, Err(error)),
        }
    }

    /// Answers it with a session that is set so; the session, if it is one now.
    pub(in crate::agent) fn open(
        self,
        side: &mut AgentSide,
        id: &SessionId,
        modes: SessionModeState,
        options: Vec<SessionConfigOption>,
    ) -> Option<SessionKey> {
        let (modes, config_options) = (Some(modes), Some(options));
        match self {
            Self::New(asked) => {
                let mut response = NewSessionResponse::new(id.clone());
                response.modes = modes;
                response.config_options = config_options;
                side.open(asked, response)
            }
            Self::Load(asked) => {
                let response = LoadSessionResponse {
                    modes,
                    config_options,
                    ..Default::default()
                };
                side.open(asked, response)
            }
            Self::Resume(asked) => {
                let response = ResumeSessionResponse {
                    modes,
                    config_options,
                    ..Default::default()
                };
                side.open(asked, response)
            }
        }
    }
}
