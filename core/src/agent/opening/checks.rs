//! Whether a session may be opened as it was asked for, and the errors that say why not. Pure.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::super::roots::check_directories;
use crate::agent::prompts;
use crate::limits::Limits;
use crate::protocol::schema::{
    LoadSessionRequest, McpServer, NewSessionRequest, ResumeSessionRequest, SystemPrompt,
};
use crate::wire::RpcError;

/// The one method to authenticate by, whatever its type is for a client.
pub(in crate::agent) const SETUP: &str = "reasonix-setup";

#[derive(Serialize)]
struct Code<'a> {
    code: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AuthRequired<'a> {
    code: &'a str,
    model: &'a str,
    how_to: &'a str,
    /// What `authenticate` takes: a client that was told of no method, since none was needed then, is
    /// told of it here.
    method_id: &'a str,
}

/// −32602 with a code.
pub(in crate::agent) fn refused(code: &str, message: &str) -> RpcError {
    RpcError::invalid_params(message).with_data(&Code { code })
}

/// −32000: no key, or no model, that can be used.
pub(in crate::agent) fn auth_required(model: &str, how_to: &str) -> RpcError {
    RpcError::auth_required(how_to).with_data(&AuthRequired {
        code: "auth_required",
        model,
        how_to,
        method_id: SETUP,
    })
}

/// What a request wants of the session that it opens.
pub(in crate::agent) struct Wanted {
    /// The working directory.
    pub(in crate::agent) cwd: String,
    /// The folders beside it.
    pub(in crate::agent) directories: Vec<String>,
    pub(in crate::agent) servers: Vec<McpServer>,
    /// The client's part of its system prompt.
    pub(in crate::agent) prompt: Option<SystemPrompt>,
}

macro_rules! wanted {
    ($($request:ty),*) => {$(
        impl From<$request> for Wanted {
            fn from(request: $request) -> Self {
                Self {
                    cwd: request.cwd,
                    directories: request.additional_directories,
                    servers: request.mcp_servers,
                    prompt: request.system_prompt,
                }
            }
        }
    )*};
}

wanted!(NewSessionRequest, LoadSessionRequest, ResumeSessionRequest);

impl Wanted {
    /// Whether a session may be opened like this.
    pub(in crate::agent) fn check(&self, limits: &Limits) -> Result<(), RpcError> {
        if !is_absolute(&self.cwd) {
            return Err(refused("cwd_not_absolute", "cwd must be an absolute path"));
        }
        super::super::mcp::entries(&self.servers, limits)?;
        check_directories(&self.directories, limits)?;
        let prompt = self.prompt.as_ref();
        prompt.map_or(Ok(()), |prompt| prompts::check(prompt, limits))
    }
}

/// Lexical and for every platform: `/x`, `C:\x`, `\\server\share`.
pub(in crate::agent) fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    path.starts_with('/')
        || path.starts_with("\\\\")
        || (bytes.len() >= 3
            && bytes[0].is_ascii_alphabetic()
            && bytes[1] == b':'
            && matches!(bytes[2], b'\\' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_is_lexical_and_knows_every_platform() {
        for path in ["/x", "/", "C:\\x", "c:/x", "\\\\srv\\s"] {
            assert!(is_absolute(path), "{path}");
        }
        for path in ["", "x", "./x", "C:", "C:x", "~", " /x"] {
            assert!(!is_absolute(path), "{path}");
        }
    }
}
