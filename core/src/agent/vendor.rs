//! The methods of our own, `_reasonix.io/…`: what is offered, and who answers what.

use serde::Serialize;

use super::commands::RELOAD;
use super::{Agent, inbox, mcp, standing};
use crate::ids::SessionKey;
use crate::protocol::Asked;
use crate::protocol::methods::Vendor;
use crate::protocol::schema::vendor::inbox as shapes;
use crate::protocol::schema::{Json, Meta, SessionId};
use crate::wire::RpcError;

/// What `initialize` says of them, in `agentCapabilities._meta`.
#[derive(Serialize)]
struct Offers {
    #[serde(rename = "reasonix.io")]
    ours: Ours,
    #[serde(flatten)]
    standing: standing::Offers,
    #[serde(flatten)]
    servers: mcp::Offers,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ours {
    session_steer: Method,
    session_inbox: Inbox,
    session_reload_extensions: Method,
}

#[derive(Serialize)]
struct Method {
    method: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inbox {
    schema_version: u32,
    methods: InboxMethods,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InboxMethods {
    enqueue: &'static str,
    list: &'static str,
    get: &'static str,
    update: &'static str,
    delete: &'static str,
    #[serde(rename = "move")]
    move_: &'static str,
    set_paused: &'static str,
    retry: &'static str,
    refresh: &'static str,
}

/// What `initialize` says of the methods of our own.
pub(super) fn offers() -> Option<Meta> {
    Meta::of(&Offers {
        ours: Ours {
            session_steer: Method {
                method: shapes::STEER,
            },
            session_inbox: Inbox {
                schema_version: shapes::SCHEMA_VERSION,
                methods: InboxMethods {
                    enqueue: shapes::ENQUEUE,
                    list: shapes::LIST,
                    get: shapes::GET,
                    update: shapes::UPDATE,
                    delete: shapes::DELETE,
                    move_: shapes::MOVE,
                    set_paused: shapes::SET_PAUSED,
                    retry: shapes::RETRY,
                    refresh: shapes::REFRESH,
                },
            },
            session_reload_extensions: Method { method: RELOAD },
        },
        standing: standing::OFFERS,
        servers: mcp::OFFERS,
    })
}

impl Agent {
    pub(super) fn vendor_request(
        &mut self,
        asked: Asked<Vendor>,
        method: &str,
        params: Option<&Json>,
    ) {
        match inbox::read(method, params) {
            Some(Ok((session, wish))) => self.inbox_request(asked, &session, wish),
            Some(Err(error)) => self.side.answer(asked, Err(error)),
            None if method == mcp::STATUS => self.servers_request(asked, params),
            None if method == RELOAD => self.reload_request(asked, params),
            None => {
                if let Some(asked) = self.standing_request(asked, method, params) {
                    let error = RpcError::method_not_found(method);
                    self.side.answer(asked, Err(error));
                }
            }
        }
    }

    /// The session that a request of our own is for; −32602 if there is none.
    pub(super) fn vendor_session(&self, id: &SessionId) -> Result<SessionKey, RpcError> {
        let key = self.side.find_session(id);
        key.filter(|key| self.sessions.contains_key(key))
            .ok_or_else(|| no_session(id))
    }
}

/// −32602: there is no such session, as the methods of our own say it.
pub(super) fn no_session(id: &SessionId) -> RpcError {
    let known = super::loading::not_found(id);
    let error = RpcError::invalid_params(&known.message);
    RpcError {
        data: known.data,
        ..error
    }
}

/// −32600: the state does not allow it, with a code.
pub(super) fn refused(code: &str, why: &str) -> RpcError {
    #[derive(Serialize)]
    struct Code<'a> {
        code: &'a str,
    }
    RpcError::invalid_request(why).with_data(&Code { code })
}
