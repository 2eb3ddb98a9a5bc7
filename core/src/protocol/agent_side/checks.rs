//! What a request has to be before it becomes an event, and the errors that say what is wrong.

use alloc::string::String;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::RpcError;

use super::super::gates::Offers;
use super::super::methods::Method;
use super::super::schema::object::why_unread;
use super::super::schema::{
    ContentBlock, McpServer, PromptRequest, SessionId, SystemPrompt, SystemPromptMode,
};
use super::core::Core;

/// What requests that open a session have in common.
pub(super) struct Setup<'a> {
    pub(super) cwd: &'a str,
    pub(super) directories: &'a [String],
    pub(super) servers: &'a [McpServer],
    pub(super) prompt: Option<&'a SystemPrompt>,
}

impl Core {
    /// Whether a session may be opened like this.
    pub(super) fn check_setup(&self, setup: &Setup<'_>) -> Result<(), RpcError> {
        check_cwd(setup.cwd)?;
        if let Some(path) = setup.directories.first()
            && !self.offers.has(Offers::DIRECTORIES)
        {
            let why = "additionalDirectories has to be empty: sessions have no folder beside cwd";
            return Err(RpcError::invalid_params(why).with_data(&PathCode {
                code: "acp.additional_directories.disabled",
                path,
            }));
        }
        if let Some(path) = setup.directories.iter().find(|path| !is_absolute(path)) {
            let error =
                RpcError::invalid_params("additionalDirectories has to hold absolute paths");
            return Err(error.with_data(&PathCode {
                code: "workspace_roots.not_absolute",
                path,
            }));
        }
        if !setup
            .servers
            .iter()
            .all(|server| self.offers.takes_server(server))
        {
            return Err(RpcError::invalid_params(
                "mcpServers names a transport that was not advertised",
            ));
        }
        if let Some(prompt) = setup.prompt {
            self.check_system_prompt(prompt)?;
        }
        Ok(())
    }

    fn check_system_prompt(&self, prompt: &SystemPrompt) -> Result<(), RpcError> {
        let mode = match prompt.mode {
            SystemPromptMode::Append => self.offers.has(Offers::SYSTEM_PROMPT),
            SystemPromptMode::Override => self.offers.has(Offers::OVERRIDE),
            SystemPromptMode::Other(_) => false,
        };
        let text = prompt.content.iter().all(|block| block.as_text().is_some());
        if !mode {
            Err(RpcError::invalid_params(
                "systemPrompt has a mode that was not advertised",
            ))
        } else if !text || prompt.content.is_empty() {
            Err(RpcError::invalid_params(
                "systemPrompt.content has to hold text blocks",
            ))
        } else {
            Ok(())
        }
    }

    /// Whether a prompt may begin a turn.
    pub(super) fn check_prompt(&self, request: &PromptRequest) -> Result<(), RpcError> {
        let blocks = &request.prompt;
        let refused = |(_, block): &(usize, &ContentBlock)| !self.offers.takes_block(block);
        if let Some((n, block)) = blocks.iter().enumerate().find(refused) {
            let kind = match block {
                ContentBlock::Text(_) => "text",
                ContentBlock::Image(_) => "image",
                ContentBlock::Audio(_) => "audio",
                ContentBlock::ResourceLink(_) => "resource_link",
                ContentBlock::Resource(_) => "resource",
            };
            return Err(RpcError::invalid_params(&alloc::format!(
                "block {n} ({kind}): this type was not advertised"
            )));
        }
        let blank =
            |block: &ContentBlock| block.as_text().is_some_and(|text| text.trim().is_empty());
        if blocks.iter().all(blank) {
            return Err(RpcError::invalid_params("The prompt is empty"));
        }
        let size: usize = blocks
            .iter()
            .filter_map(|block| block.as_text())
            .map(str::len)
            .sum();
        if size > self.limits.max_prompt {
            return Err(coded(
                RpcError::invalid_params("The prompt is too long"),
                "prompt_too_long",
            ));
        }
        Ok(())
    }
}

/// An error with a code for programs.
#[derive(Serialize)]
struct Code {
    code: &'static str,
}

/// An error about a path.
#[derive(Serialize)]
struct PathCode<'a> {
    code: &'static str,
    path: &'a str,
}

/// The error with a code for programs.
pub(super) fn coded(error: RpcError, code: &'static str) -> RpcError {
    error.with_data(&Code { code })
}

/// −32002 for a session that is not active.
pub(super) fn no_session(id: &SessionId) -> RpcError {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct NoSession<'a> {
        session_id: &'a str,
        code: &'static str,
        details: String,
    }
    let details = alloc::format!("Session not found: {id}");
    RpcError::resource_not_found(&details).with_data(&NoSession {
        session_id: id.as_str(),
        code: "session_not_found",
        details: details.clone(),
    })
}

/// Reads parameters; the error names what is missing and quotes nothing.
pub(super) fn decode<M: Method>(params: Option<&str>) -> Result<M::Request, RpcError>
where
    M::Request: DeserializeOwned,
{
    let raw = params.unwrap_or("null");
    serde_json::from_str(raw).map_err(|error| {
        let why = why_unread(raw, &error);
        RpcError::invalid_params(&alloc::format!("{}: {why}", M::NAME))
    })
}

/// Whether a working directory is absolute.
pub(super) fn check_cwd(cwd: &str) -> Result<(), RpcError> {
    if is_absolute(cwd) {
        Ok(())
    } else {
        Err(
            RpcError::invalid_params("cwd has to be an absolute path").with_data(&PathCode {
                code: "cwd_not_absolute",
                path: cwd,
            }),
        )
    }
}

/// Whether a path is absolute on some system: `/x`, `C:\x`, `C:/x`, `\\server\share`.
fn is_absolute(path: &str) -> bool {
    match path.as_bytes() {
        [b'/', ..] | [b'\\', b'\\', ..] => true,
        [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}
