//! `_reasonix.io/session/reloadExtensions`: what `/reload` does, as a method. It needs no turn, and one that
//! is asked for in a turn, whatever that waits for, happens behind it.
//!
//! | the session | asked for it | answered |
//! | --- | --- | --- |
//! | is idle | begins | `{}` when commands and skills were looked for; −32603 if the configuration cannot be read, and nothing is changed |
//! | has a turn, or one is under way | once more, when that is over | `{"queued":true}` at once |
//! | ends before it is done | | −32603 |

use alloc::format;
use core::mem;

use serde::{Deserialize, Serialize};

use super::super::dispatch::gone;
use super::super::{Agent, Level, Owner};
use crate::call::{Call, News, Outcome};
use crate::ids::SessionKey;
use crate::protocol::Asked;
use crate::protocol::methods::Vendor;
use crate::protocol::schema::{Json, SessionId};
use crate::wire::RpcError;

/// Reads configuration, commands and skills again.
pub(in crate::agent) const RELOAD: &str = "_reasonix.io/session/reloadExtensions";

/// What of it a session has under way.
#[derive(Default)]
pub(in crate::agent) struct Refreshing {
    open: Option<Open>,
    /// Once more, when what runs is over.
    queued: bool,
}

/// One that is under way.
struct Open {
    /// Who asked; none: it was answered when it was queued.
    asked: Option<Asked<Vendor>>,
    /// The configuration is read, commands are looked for.
    scans: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    session_id: SessionId,
}

#[derive(Serialize)]
struct Response {
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    queued: bool,
}

impl Agent {
    /// Answers it, now or when it is done.
    pub(in crate::agent) fn reload_request(&mut self, asked: Asked<Vendor>, params: Option<&Json>) {
        let request = params.and_then(|params| params.read::<Request>().ok());
        let key = request
            .ok_or_else(|| RpcError::invalid_params("sessionId must be a string"))
            .and_then(|request| self.vendor_session(&request.session_id));
        let key = match key {
            Ok(key) => key,
            Err(error) => return self.side.answer(asked, Err(error)),
        };
        let Some(session) = self.sessions.get_mut(&key) else {
            return self.side.answer(asked, Err(gone()));
        };
        if session.turn.is_some() || session.refreshing.open.is_some() {
            session.refreshing.queued = true;
            self.side.answer(asked, response(true));
        } else {
            self.refresh(key, Some(asked));
        }
    }

    fn refresh(&mut self, key: SessionKey, asked: Option<Asked<Vendor>>) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.refreshing.queued = false;
            session.refreshing.open = Some(Open {
                asked,
                scans: false,
            });
            self.start(Owner::Refreshing(key), Call::Reconfigure);
        }
    }

    /// The session is idle: what was queued begins.
    pub(in crate::agent) fn refresh_if_queued(&mut self, key: SessionKey) {
        let session = self.sessions.get(&key);
        let waits = session.is_some_and(|session| {
            let refreshing = &session.refreshing;
            refreshing.queued && refreshing.open.is_none() && session.turn.is_none()
        });
        if waits {
            self.refresh(key, None);
        }
    }

    /// The configuration was read again.
    pub(in crate::agent) fn refreshed(&mut self, key: SessionKey, news: News<'_>) {
        let read = match news {
            News::Done(Outcome::Reconfigured(read)) => read,
            News::Failed(fault) => Err(format!("{fault}")),
            News::Done(_) => Err("the configuration was not read".into()),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        let session = self.sessions.get_mut(&key);
        let Some(open) = session.and_then(|session| session.refreshing.open.as_mut()) else {
            return;
        };
        open.scans = read.is_ok();
        match read.and_then(|settings| self.take_settings(*settings)) {
            Ok(_) => self.scan_all_again(),
            Err(why) => self.refresh_over(key, Err(why)),
        }
    }

    /// Commands and skills were looked for: that was the last of it, if one was under way.
    pub(super) fn scanned(&mut self, key: SessionKey) {
        let session = self.sessions.get(&key);
        let open = session.and_then(|session| session.refreshing.open.as_ref());
        if open.is_some_and(|open| open.scans) {
            self.refresh_over(key, Ok(()));
        }
    }

    fn refresh_over(&mut self, key: SessionKey, result: Result<(), alloc::string::String>) {
        let session = self.sessions.get_mut(&key);
        let open = session.and_then(|session| session.refreshing.open.take());
        let Some(Open { asked, .. }) = open else {
            return;
        };
        let result = result.map_err(|mut why| {
            self.known.secrets().redact(&mut why);
            format!("Nothing is changed: {why}")
        });
        match (asked, result) {
            (Some(asked), Ok(())) => self.side.answer(asked, response(false)),
            (Some(asked), Err(why)) => self.side.answer(asked, Err(RpcError::internal(&why))),
            (None, Ok(())) => {}
            (None, Err(why)) => self.report(Level::Warn, why),
        }
        self.refresh_if_queued(key);
    }

    /// The session ends before it is done.
    pub(in crate::agent) fn leave_refresh(&mut self, key: SessionKey) {
        let session = self.sessions.get_mut(&key);
        let left = session.map(|session| mem::take(&mut session.refreshing));
        if let Some(asked) = left.and_then(|it| it.open).and_then(|it| it.asked) {
            self.side.answer(asked, Err(gone()));
        }
    }
}

fn response(queued: bool) -> Result<Json, RpcError> {
    // A struct with names for keys always has a JSON form.
    Json::of(&Response { queued }).ok_or_else(|| RpcError::internal("the answer cannot be written"))
}
