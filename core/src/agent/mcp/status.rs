//! How the MCP servers of a session stand: `_reasonix.io/session/mcpStatus`, and its notification
//! for clients that asked to be told.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::agent::fit::{self, Room};
use crate::ids::SessionKey;
use crate::mcp::Status;
use crate::protocol::Asked;
use crate::protocol::methods::Vendor;
use crate::protocol::schema::{Json, SessionId};
use crate::wire::RpcError;

/// The version of these messages.
const SCHEMA_VERSION: u32 = 1;

/// Tells how the servers of a session stand; starts nothing.
pub(in crate::agent) const STATUS: &str = "_reasonix.io/session/mcpStatus";

/// Tells it unasked.
const UPDATE: &str = "_reasonix.io/session/mcpStatus_update";

/// What `initialize` says of the methods here, by their names.
#[derive(Serialize)]
pub(in crate::agent) struct Offers {
    #[serde(rename = "_reasonix.io/session/mcpStatus")]
    status: Version,
    #[serde(rename = "_reasonix.io/session/mcpStatus_update")]
    update: Version,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    schema_version: u32,
}

pub(in crate::agent) const OFFERS: Offers = Offers {
    status: Version {
        schema_version: SCHEMA_VERSION,
    },
    update: Version {
        schema_version: SCHEMA_VERSION,
    },
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    session_id: SessionId,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot<'a> {
    schema_version: u32,
    session_id: &'a SessionId,
    servers: Vec<Server<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Server<'a> {
    name: &'a str,
    status: &'static str,
    tools: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
}

/// What stands around the name and the reason of one server, bytes of JSON.
const SERVER: usize = 96;

impl Agent {
    /// Answers `_reasonix.io/session/mcpStatus`.
    pub(in crate::agent) fn servers_request(
        &mut self,
        asked: Asked<Vendor>,
        params: Option<&Json>,
    ) {
        let wrong = || RpcError::invalid_params("sessionId must be a string");
        let request = params.and_then(|params| params.read::<Request>().ok());
        let answer = request
            .ok_or_else(wrong)
            .and_then(|request| self.vendor_session(&request.session_id))
            .and_then(|key| self.servers_snapshot(key).ok_or_else(wrong));
        self.side.answer(asked, answer);
    }

    /// Tells a client how the servers stand now.
    pub(super) fn tell_servers(&mut self, key: SessionKey) {
        if let Some(snapshot) = self.servers_snapshot(key) {
            self.side.notify_vendor(UPDATE, &snapshot);
        }
    }

    fn servers_snapshot(&self, key: SessionKey) -> Option<Json> {
        let session = self.sessions.get(&key)?;
        let mut room = Room::new(&self.config.limits);
        // All of them, for as many as there may be and whatever they are called.
        let fits = |it: &Status<'_>| room.take(SERVER + fit::cost(it.name));
        let listed: Vec<Status<'_>> = session.servers.hub.status().filter(fits).collect();
        // What is left is for reasons: an equal share each.
        let mut errors = listed.iter().filter(|it| it.error.is_some()).count();
        let mut servers = Vec::with_capacity(listed.len());
        for it in listed {
            let error = it.error.map(|error| {
                let share = room.left() / errors;
                errors -= 1;
                room.line(error.into(), share)
            });
            servers.push(Server {
                name: it.name,
                status: it.status,
                tools: it.tools,
                error: error.filter(|it| !it.is_empty()),
                http_status: it.http_status,
            });
        }
        let snapshot = Snapshot {
            schema_version: SCHEMA_VERSION,
            session_id: &session.id,
            servers,
        };
        let text: String = serde_json::to_string(&snapshot).ok()?;
        Json::from_text(text)
    }
}
