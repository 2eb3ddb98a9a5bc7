//! A client's part of the system prompt (ACP page: session setup). Pure.
//!
//! | mode | what the model is told |
//! | --- | --- |
//! | `append` | what the agent says itself, and behind it what the client says |
//! | `override` | what the client says, and nothing else |
//!
//! It holds as long as the session is open, and is not part of what is stored: who loads a session
//! says again what it is told.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::limits::Limits;
use crate::protocol::schema::{
    ContentBlock, Marker, SessionSystemPromptCapabilities, SessionSystemPromptModeCapabilities,
    SystemPrompt, SystemPromptMode,
};
use crate::wire::RpcError;

/// Both modes.
pub(super) fn offered() -> SessionSystemPromptCapabilities {
    SessionSystemPromptCapabilities {
        mode: Some(SessionSystemPromptModeCapabilities {
            r#override: Some(Marker::default()),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Whether it is short enough. Its mode and its blocks were looked at when it came in.
pub(super) fn check(prompt: &SystemPrompt, limits: &Limits) -> Result<(), RpcError> {
    let max = limits.max_system_prompt;
    if text(prompt).len() > max {
        let why = format!("systemPrompt is longer than {max} bytes");
        return Err(RpcError::invalid_params(&why));
    }
    Ok(())
}

/// The whole system prompt of a session whose own is `own`.
pub(super) fn applied(prompt: Option<&SystemPrompt>, own: String) -> String {
    match prompt {
        None => own,
        Some(prompt) => match prompt.mode {
            SystemPromptMode::Override => text(prompt),
            // Others were refused.
            SystemPromptMode::Append | SystemPromptMode::Other(_) => {
                format!("{own}\n{}\n", text(prompt).trim_end())
            }
        },
    }
}

fn text(prompt: &SystemPrompt) -> String {
    let texts: Vec<&str> = prompt
        .content
        .iter()
        .filter_map(ContentBlock::as_text)
        .collect();
    texts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(mode: SystemPromptMode) -> SystemPrompt {
        let blocks = ["be brief", "be kind"].map(ContentBlock::text);
        SystemPrompt::new(mode, Vec::from(blocks))
    }

    #[test]
    fn a_client_adds_to_the_system_prompt_or_takes_its_place() {
        for (given, told) in [
            (None, "own\n"),
            (
                Some(prompt(SystemPromptMode::Append)),
                "own\n\nbe brief\n\nbe kind\n",
            ),
            (
                Some(prompt(SystemPromptMode::Override)),
                "be brief\n\nbe kind",
            ),
        ] {
            assert_eq!(applied(given.as_ref(), "own\n".into()), told);
        }
    }

    #[test]
    fn one_that_is_too_long_is_refused() {
        let prompt = prompt(SystemPromptMode::Append);
        for (max_system_prompt, good) in [(17, true), (16, false)] {
            let limits = Limits {
                max_system_prompt,
                ..Limits::default()
            };
            assert_eq!(check(&prompt, &limits).is_ok(), good);
        }
    }
}
