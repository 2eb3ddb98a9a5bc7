//! Whether a session may be opened as it was asked for, and the errors that say why not. Pure.

use alloc::string::String;

use serde::Serialize;

use super::super::roots::check_directories;
use crate::agent::prompts;
use crate::limits::Limits;
use crate::protocol::schema::{McpServer, SystemPrompt};
use crate::wire::RpcError;

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
    })
}

/// Whether a session may be opened like this.
pub(in crate::agent) fn check_setup(
    cwd: &str,
    servers: &[McpServer],
    directories: &[String],
    prompt: Option<&SystemPrompt>,
    limits: &Limits,
) -> Result<(), RpcError> {
    if !is_absolute(cwd) {
        return Err(refused("cwd_not_absolute", "cwd must be an absolute path"));
    }
    super::super::mcp::entries(servers, limits)?;
    check_directories(directories, limits)?;
    prompt.map_or(Ok(()), |prompt| prompts::check(prompt, limits))
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
