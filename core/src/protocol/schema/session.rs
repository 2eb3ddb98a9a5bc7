//! Opening, listing and closing sessions (ACP pages: session setup, list, delete).

use alloc::string::String;
use alloc::vec::Vec;

use super::config::{SessionConfigOption, SessionModeState};
use super::content::ContentBlock;
use super::ids::SessionId;
use super::mcp_server::McpServer;
use super::object::{object, open_names};

object! {
    /// `session/new`.
    NewSessionRequest {
        /// The working directory, absolute.
        "cwd" cwd: String = Required,
        ;
        /// MCP servers to connect to.
        "mcpServers" mcp_servers: Vec<McpServer> = ServersShown,
        /// More roots, absolute.
        "additionalDirectories" additional_directories: Vec<String> = List,
        /// The client's part of the system prompt.
        "systemPrompt" system_prompt: Option<SystemPrompt> = Optional,
    }
}

object! {
    /// The answer to `session/new`.
    NewSessionResponse {
        /// The new session.
        "sessionId" session_id: SessionId = Required,
        ;
        /// Its modes.
        "modes" modes: Option<SessionModeState> = Lenient,
        /// Its options.
        "configOptions" config_options: Option<Vec<SessionConfigOption>> = MaybeList,
    }
}

object! {
    /// `session/load`: open a stored session and replay it.
    LoadSessionRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// Its working directory, absolute.
        "cwd" cwd: String = Required,
        ;
        /// MCP servers to connect to.
        "mcpServers" mcp_servers: Vec<McpServer> = ServersShown,
        /// More roots, absolute.
        "additionalDirectories" additional_directories: Vec<String> = List,
        /// The client's part of the system prompt.
        "systemPrompt" system_prompt: Option<SystemPrompt> = Optional,
    }
}

object! {
    /// The answer to `session/load`, after the last replayed update.
    LoadSessionResponse {
        /// The session's modes.
        "modes" modes: Option<SessionModeState> = Lenient,
        /// The session's options.
        "configOptions" config_options: Option<Vec<SessionConfigOption>> = MaybeList,
    }
}

object! {
    /// `session/resume`: open a stored session without replay.
    ResumeSessionRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// Its working directory, absolute.
        "cwd" cwd: String = Required,
        ;
        /// MCP servers to connect to.
        "mcpServers" mcp_servers: Vec<McpServer> = Servers,
        /// More roots, absolute.
        "additionalDirectories" additional_directories: Vec<String> = List,
        /// The client's part of the system prompt.
        "systemPrompt" system_prompt: Option<SystemPrompt> = Optional,
    }
}

object! {
    /// The answer to `session/resume`.
    ResumeSessionResponse {
        /// The session's modes.
        "modes" modes: Option<SessionModeState> = Lenient,
        /// The session's options.
        "configOptions" config_options: Option<Vec<SessionConfigOption>> = MaybeList,
    }
}

object! {
    /// `session/list`.
    ListSessionsRequest {
        /// Only sessions of this directory, absolute.
        "cwd" cwd: Option<String> = Optional,
        /// Where to go on; opaque.
        "cursor" cursor: Option<String> = Optional,
    }
}

object! {
    /// A page of sessions.
    ListSessionsResponse {
        /// The sessions.
        "sessions" sessions: Vec<SessionInfo> = LenientListShown,
        ;
        /// Where to go on; none: this was the last page.
        "nextCursor" next_cursor: Option<String> = Lenient,
    }
}

object! {
    /// A session in a list.
    SessionInfo {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// Its working directory.
        "cwd" cwd: String = Required,
        ;
        /// Its further roots.
        "additionalDirectories" additional_directories: Vec<String> = LenientList,
        /// Its title.
        "title" title: Option<String> = Lenient,
        /// When it last changed, ISO 8601.
        "updatedAt" updated_at: Option<String> = Lenient,
    }
}

object! {
    /// `session/close`.
    CloseSessionRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        ;
    }
}

object! {
    /// The answer to `session/close`.
    CloseSessionResponse {}
}

object! {
    /// `session/delete`.
    DeleteSessionRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        ;
    }
}

object! {
    /// The answer to `session/delete`.
    DeleteSessionResponse {}
}

object! {
    /// A client's part of the system prompt. What cannot be applied refuses the request.
    SystemPrompt {
        /// How it is applied.
        "mode" mode: SystemPromptMode = Required,
        /// What it says.
        "content" content: Vec<ContentBlock> = Required,
        ;
    }
}

open_names! {
    /// How a client's system prompt is applied.
    SystemPromptMode {
        /// Behind the agent's own.
        Append = "append",
        /// In place of the agent's own.
        Override = "override",
    }
}
