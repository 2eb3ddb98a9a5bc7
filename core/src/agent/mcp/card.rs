//! How the question whether a server of a project may start looks to a client: a tool call of its
//! own, its card, and how it ended. Pure.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::agent::cards;
use crate::agent::session::Session;
use crate::mcp::approval::PROJECT_FILE;
use crate::protocol::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionRequest, SessionUpdate, ToolCall,
    ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolKind,
};

/// What the question is called where a tool has a name.
pub(super) const NAME: &str = "mcp_launch";

/// The call, as it is announced before it is asked about.
pub(super) fn announced(session: &Session, server: &str, call: &str) -> SessionUpdate {
    let mut about = ToolCall::new(String::from(call), title(server));
    about.name = Some(NAME.into());
    about.kind = ToolKind::Execute;
    about.status = ToolCallStatus::Pending;
    about.content = Vec::from([ToolCallContent::text(details(session, server))]);
    SessionUpdate::ToolCall(about)
}

/// The card; where nothing is kept (`keeps`), always would be no more than once.
pub(super) fn card(
    session: &Session,
    server: &str,
    call: &str,
    keeps: bool,
) -> RequestPermissionRequest {
    let mut about = ToolCallUpdate::new(String::from(call));
    about.title = Some(title(server));
    about.name = Some(NAME.into());
    about.kind = Some(ToolKind::Execute);
    about.status = Some(ToolCallStatus::Pending);
    about.content = Some(Vec::from([ToolCallContent::text(details(session, server))]));
    let option = |id: &str, name: &str, kind| PermissionOption::new(id, name, kind);
    let mut options = Vec::from([
        option(
            cards::ALLOW_ONCE,
            "Start it in this session",
            PermissionOptionKind::AllowOnce,
        ),
        option(
            cards::ALLOW_ALWAYS,
            "Always start it in this project, until its entry changes",
            PermissionOptionKind::AllowAlways,
        ),
        option(
            cards::REJECT_ONCE,
            "Do not start it",
            PermissionOptionKind::RejectOnce,
        ),
    ]);
    options.retain(|it| keeps || it.kind != PermissionOptionKind::AllowAlways);
    RequestPermissionRequest::new(session.id.clone(), about, options)
}

/// What the person decided; none: nothing.
pub(super) fn ended(server: &str, call: &str, decided: Option<bool>) -> SessionUpdate {
    let (status, text) = match decided {
        Some(true) => (ToolCallStatus::Completed, String::from("It may start.")),
        Some(false) => (
            ToolCallStatus::Failed,
            String::from("It is not started in this session."),
        ),
        None => (
            ToolCallStatus::Failed,
            format!("Not decided. /mcp approve {server} starts it; the next prompt asks again."),
        ),
    };
    let mut about = ToolCallUpdate::new(String::from(call));
    about.status = Some(status);
    about.content = Some(Vec::from([ToolCallContent::text(text)]));
    SessionUpdate::ToolCallUpdate(about)
}

fn title(server: &str) -> String {
    format!("Start the MCP server {server} of this project?")
}

fn details(session: &Session, server: &str) -> String {
    format!(
        "{PROJECT_FILE} of {} names it. It runs with your rights, outside of any sandbox.\n\n{}",
        session.cwd,
        session.servers.hub.details(server).unwrap_or_default()
    )
}
