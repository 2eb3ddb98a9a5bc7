//! What each side may send, given what the other advertised (ACP page: initialization). What is
//! not advertised is never sent: it becomes something plainer, or nothing. Knows no state.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::schema::{
    AgentCapabilities, ClientCapabilities, CompactionMeta, CompactionStatus, ContentBlock,
    ContentChunk, CreateElicitationRequest, ElicitationMode, McpServer, NoticeSeverity, Plan,
    PlanUpdateContent, SessionConfigKind, SessionConfigOption, SessionUpdate, ToolCallContent,
    ToolCallUpdate,
};

/// What a client advertised, as far as it opens something. Each session keeps those of its
/// opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gates(u16);

impl Gates {
    /// `fs/read_text_file`.
    pub const READ_FILE: Self = Self(1);
    /// `fs/write_text_file`.
    pub const WRITE_FILE: Self = Self(1 << 1);
    /// `terminal/*`.
    pub const TERMINAL: Self = Self(1 << 2);
    /// `elicitation/create` with a form.
    pub const FORM: Self = Self(1 << 3);
    /// `elicitation/create` with a page, and `elicitation/complete`.
    pub const URL: Self = Self(1 << 4);
    /// Options of type `boolean`.
    pub const BOOLEAN: Self = Self(1 << 5);
    /// `notice`.
    pub const NOTICES: Self = Self(1 << 6);
    /// `compaction_update`, `compaction_summary_chunk`.
    pub const COMPACTION: Self = Self(1 << 7);
    /// `subagent_update`, `session_message`, `session_message_chunk`, content of type `session`.
    pub const SUBAGENTS: Self = Self(1 << 8);
    /// `plan_update`, `plan_removed`.
    pub const PLAN: Self = Self(1 << 9);

    /// What these capabilities open.
    pub fn of(client: &ClientCapabilities) -> Self {
        let session = client.session.as_ref();
        let elicitation = client.elicitation.as_ref();
        let mut gates = Self(0);
        for (open, gate) in [
            (client.fs.read_text_file, Self::READ_FILE),
            (client.fs.write_text_file, Self::WRITE_FILE),
            (client.terminal, Self::TERMINAL),
            (elicitation.is_some_and(|e| e.form.is_some()), Self::FORM),
            (elicitation.is_some_and(|e| e.url.is_some()), Self::URL),
            (
                session
                    .and_then(|s| s.config_options.as_ref())
                    .is_some_and(|o| o.boolean.is_some()),
                Self::BOOLEAN,
            ),
            (session.is_some_and(|s| s.notices.is_some()), Self::NOTICES),
            (
                session.is_some_and(|s| s.compaction.is_some()),
                Self::COMPACTION,
            ),
            (client.subagents.is_some(), Self::SUBAGENTS),
            (client.plan.is_some(), Self::PLAN),
        ] {
            if open {
                gates.0 |= gate.0;
            }
        }
        gates
    }

    /// Whether all of `gate` is open.
    pub const fn has(self, gate: Self) -> bool {
        self.0 & gate.0 == gate.0
    }

    /// Whether the question may be asked.
    pub(super) fn takes_elicitation(self, request: &CreateElicitationRequest) -> bool {
        match request.mode {
            ElicitationMode::Form { .. } => self.has(Self::FORM),
            ElicitationMode::Url { .. } => self.has(Self::URL),
        }
    }

    /// The gate an update needs; none: every client takes it.
    pub(super) fn needed(update: &SessionUpdate) -> Self {
        match update {
            SessionUpdate::PlanUpdate(_) | SessionUpdate::PlanRemoved(_) => Self::PLAN,
            SessionUpdate::Notice(_) => Self::NOTICES,
            SessionUpdate::CompactionUpdate(_) | SessionUpdate::CompactionSummaryChunk(_) => {
                Self::COMPACTION
            }
            SessionUpdate::SubagentUpdate(_)
            | SessionUpdate::SessionMessage(_)
            | SessionUpdate::SessionMessageChunk(_) => Self::SUBAGENTS,
            SessionUpdate::UserMessageChunk(_)
            | SessionUpdate::AgentMessageChunk(_)
            | SessionUpdate::AgentThoughtChunk(_)
            | SessionUpdate::ToolCall(_)
            | SessionUpdate::ToolCallUpdate(_)
            | SessionUpdate::Plan(_)
            | SessionUpdate::AvailableCommandsUpdate(_)
            | SessionUpdate::CurrentModeUpdate(_)
            | SessionUpdate::ConfigOptionUpdate(_)
            | SessionUpdate::SessionInfoUpdate(_)
            | SessionUpdate::UsageUpdate(_) => Self(0),
        }
    }

    /// The update as this client takes it: itself, something plainer, or nothing.
    pub(super) fn fit(self, update: &SessionUpdate) -> Option<Cow<'_, SessionUpdate>> {
        if !self.has(Self::needed(update)) {
            return plainer(update).map(Cow::Owned);
        }
        if let SessionUpdate::ConfigOptionUpdate(options) = update
            && !self.has(Self::BOOLEAN)
            && options.config_options.iter().any(is_boolean)
        {
            let mut options = options.clone();
            self.fit_options(Some(&mut options.config_options));
            return Some(Cow::Owned(SessionUpdate::ConfigOptionUpdate(options)));
        }
        if !self.has(Self::SUBAGENTS) {
            if let SessionUpdate::ToolCall(call) = update
                && call.content.iter().any(is_session)
            {
                let mut call = call.clone();
                call.content.retain(|item| !is_session(item));
                return Some(Cow::Owned(SessionUpdate::ToolCall(call)));
            }
            if let SessionUpdate::ToolCallUpdate(call) = update
                && call.content.iter().flatten().any(is_session)
            {
                let mut call = call.clone();
                let items = call.content.iter_mut();
                items.for_each(|items| items.retain(|item| !is_session(item)));
                let mut nothing = ToolCallUpdate::new(call.tool_call_id.clone());
                nothing.content = Some(Vec::new());
                if call == nothing {
                    return None;
                }
                return Some(Cow::Owned(SessionUpdate::ToolCallUpdate(call)));
            }
        }
        Some(Cow::Borrowed(update))
    }

    /// Takes out the options this client does not take.
    pub(super) fn fit_options(self, options: Option<&mut Vec<SessionConfigOption>>) {
        if let Some(options) = options
            && !self.has(Self::BOOLEAN)
        {
            options.retain(|option| !is_boolean(option));
        }
    }
}

/// What an agent advertised, as far as it opens something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers(u16);

impl Offers {
    /// `session/load`.
    pub const LOAD: Self = Self(1);
    /// `session/resume`.
    pub const RESUME: Self = Self(1 << 1);
    /// `session/list`.
    pub const LIST: Self = Self(1 << 2);
    /// `session/close`.
    pub const CLOSE: Self = Self(1 << 3);
    /// `session/delete`.
    pub const DELETE: Self = Self(1 << 4);
    /// `logout`.
    pub const LOGOUT: Self = Self(1 << 5);
    /// `additionalDirectories`.
    pub const DIRECTORIES: Self = Self(1 << 6);
    /// `systemPrompt`.
    pub const SYSTEM_PROMPT: Self = Self(1 << 7);
    /// `systemPrompt` with mode `override`.
    pub const OVERRIDE: Self = Self(1 << 8);
    /// Blocks of type `image`.
    pub const IMAGE: Self = Self(1 << 9);
    /// Blocks of type `audio`.
    pub const AUDIO: Self = Self(1 << 10);
    /// Blocks of type `resource`.
    pub const RESOURCE: Self = Self(1 << 11);
    /// MCP servers over HTTP.
    pub const MCP_HTTP: Self = Self(1 << 12);
    /// MCP servers over SSE.
    pub const MCP_SSE: Self = Self(1 << 13);

    /// What these capabilities open.
    pub fn of(agent: &AgentCapabilities) -> Self {
        let session = &agent.session_capabilities;
        let prompt = &agent.prompt_capabilities;
        let system = session.system_prompt.as_ref();
        let mut offers = Self(0);
        for (open, offer) in [
            (agent.load_session, Self::LOAD),
            (session.resume.is_some(), Self::RESUME),
            (session.list.is_some(), Self::LIST),
            (session.close.is_some(), Self::CLOSE),
            (session.delete.is_some(), Self::DELETE),
            (agent.auth.logout.is_some(), Self::LOGOUT),
            (session.additional_directories.is_some(), Self::DIRECTORIES),
            (system.is_some(), Self::SYSTEM_PROMPT),
            (
                system
                    .and_then(|s| s.mode.as_ref())
                    .is_some_and(|m| m.r#override.is_some()),
                Self::OVERRIDE,
            ),
            (prompt.image, Self::IMAGE),
            (prompt.audio, Self::AUDIO),
            (prompt.embedded_context, Self::RESOURCE),
            (agent.mcp_capabilities.http, Self::MCP_HTTP),
            (agent.mcp_capabilities.sse, Self::MCP_SSE),
        ] {
            if open {
                offers.0 |= offer.0;
            }
        }
        offers
    }

    /// Whether all of `offer` is open.
    pub const fn has(self, offer: Self) -> bool {
        self.0 & offer.0 == offer.0
    }

    /// Whether a block of this type may be in a prompt.
    pub(super) fn takes_block(self, block: &ContentBlock) -> bool {
        match block {
            ContentBlock::Text(_) | ContentBlock::ResourceLink(_) => true,
            ContentBlock::Image(_) => self.has(Self::IMAGE),
            ContentBlock::Audio(_) => self.has(Self::AUDIO),
            ContentBlock::Resource(_) => self.has(Self::RESOURCE),
        }
    }

    /// Whether an MCP server of this type may be named.
    pub(super) fn takes_server(self, server: &McpServer) -> bool {
        match server {
            McpServer::Stdio(_) => true,
            McpServer::Http(_) => self.has(Self::MCP_HTTP),
            McpServer::Sse(_) => self.has(Self::MCP_SSE),
        }
    }
}

fn is_boolean(option: &SessionConfigOption) -> bool {
    matches!(option.kind, SessionConfigKind::Boolean { .. })
}

fn is_session(item: &ToolCallContent) -> bool {
    matches!(item, ToolCallContent::Session(_))
}

/// What a client gets that does not take the update.
fn plainer(update: &SessionUpdate) -> Option<SessionUpdate> {
    if let SessionUpdate::PlanUpdate(update) = update {
        return Some(match &update.plan {
            PlanUpdateContent::Items(plan) => SessionUpdate::Plan(Plan::new(plan.entries.clone())),
            PlanUpdateContent::Markdown(plan) => message(&plan.content),
        });
    }
    if let SessionUpdate::PlanRemoved(_) = update {
        return Some(SessionUpdate::Plan(Plan::new(Vec::new())));
    }
    if let SessionUpdate::CompactionUpdate(update) = update
        && update.status == CompactionStatus::Completed
    {
        let meta = update.meta.as_ref();
        let meta = meta.and_then(|meta| meta.read::<CompactionMeta>().ok());
        return Some(message(&match meta {
            Some(meta) => format!("\n\n[compacted {} messages]\n\n", meta.ours.messages),
            None => "\n\n[compacted the conversation]\n\n".into(),
        }));
    }
    if let SessionUpdate::Notice(notice) = update
        && notice.severity != NoticeSeverity::Info
    {
        let more = notice.description.as_deref().unwrap_or_default();
        let between = if more.is_empty() { "" } else { ": " };
        let text = format!("\n\n[warning] {}{between}{more}\n\n", notice.title);
        return Some(message(&text));
    }
    None
}

fn message(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::text(text.to_string())))
}
