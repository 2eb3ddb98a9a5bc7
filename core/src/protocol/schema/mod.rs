//! The types of ACP v1 as the stable schema 1.20.0 has them, both ways. Plain data; knows no state.
//!
//! Reading is as tolerant as the schema says: optional members that may be malformed count as
//! absent, null lists are empty, unknown members are ignored. `_meta` is kept as its text.

mod commands;
mod config;
mod content;
mod elicitation;
mod extra;
mod fs;
mod ids;
mod initialize;
mod json;
mod mcp_server;
pub(crate) mod object;
mod permission;
mod plan;
mod policy;
mod prompt;
mod session;
mod terminal;
mod tool_call;
mod update;
pub mod vendor;

pub use commands::{AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate};
pub use config::{
    ConfigOptionUpdate, ConfigValue, CurrentModeUpdate, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigSelectGroup, SessionConfigSelectOption,
    SessionConfigSelectOptions, SessionMode, SessionModeState, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
    SetSessionModelRequest, SetSessionModelResponse,
};
pub use content::{
    Annotations, AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource,
    EmbeddedResourceResource, ImageContent, ResourceLink, Role, TextContent, TextResourceContents,
};
pub use elicitation::{
    CompleteElicitationNotification, CreateElicitationRequest, CreateElicitationResponse,
    ElicitationAction, ElicitationMode, ElicitationScope, ElicitationValue,
};
pub use extra::{
    Compacted, CompactionMeta, CompactionStatus, CompactionSummaryChunk, CompactionUpdate, Cost,
    Notice, NoticeSeverity, SessionInfoUpdate, SessionMessage, SessionMessageChunk,
    SubagentSessionCapabilities, SubagentUpdate, UsageUpdate,
};
pub use fs::{
    ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest, WriteTextFileResponse,
};
pub use ids::{BadSessionId, SessionId};
pub use initialize::{
    AgentAuthCapabilities, AgentCapabilities, AuthCapabilities, AuthMethod, AuthMethodAgent,
    AuthMethodTerminal, AuthenticateRequest, AuthenticateResponse, ClientCapabilities,
    ClientSessionCapabilities, ElicitationCapabilities, FileSystemCapabilities, Implementation,
    InitializeRequest, InitializeResponse, LogoutRequest, LogoutResponse, Marker, McpCapabilities,
    PromptCapabilities, ProtocolVersion, SessionCapabilities, SessionConfigOptionsCapabilities,
    SessionSystemPromptCapabilities, SessionSystemPromptModeCapabilities,
};
pub use json::{Json, Meta, Number, Patch};
pub use mcp_server::{
    EnvVariable, HttpHeader, McpServer, McpServerHttp, McpServerSse, McpServerStdio,
};
pub use permission::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome,
};
pub use plan::{
    Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, PlanItems, PlanMarkdown, PlanRemoved,
    PlanUpdate, PlanUpdateContent,
};
pub use prompt::{
    CancelNotification, CancelRequestNotification, PromptRequest, PromptResponse, StopReason,
};
pub use session::{
    CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest, DeleteSessionResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse,
    NewSessionRequest, NewSessionResponse, ResumeSessionRequest, ResumeSessionResponse,
    SessionInfo, SystemPrompt, SystemPromptMode,
};
pub use terminal::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, TerminalExitStatus, TerminalOutputRequest,
    TerminalOutputResponse, WaitForTerminalExitRequest, WaitForTerminalExitResponse,
};
pub use tool_call::{
    Content, Diff, SessionReference, Terminal, ToolCall, ToolCallContent, ToolCallLocation,
    ToolCallStatus, ToolCallUpdate, ToolKind,
};
pub use update::{ContentChunk, SessionNotification, SessionUpdate};
