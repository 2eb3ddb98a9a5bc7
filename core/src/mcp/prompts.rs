//! The prompts of a server: templates that a person chooses as a slash command, filled with what
//! they typed behind it. Knows no transport and no state.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::catalogue::one_line;
use super::result;
use super::shapes::{PromptAnswer, RawPrompt};
use crate::limits::Limits;
use crate::wire::text::cut;

/// Longest name of a prompt in a command, bytes.
const MAX_NAME: usize = 64;

/// Longest description that people are shown, bytes.
const MAX_DESCRIPTION: usize = 400;

/// A prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// What is typed for it, without the `/`: `mcp:server:prompt`.
    pub command: String,
    /// For people, on one line.
    pub description: String,
    /// What it takes, in the order in which that is typed.
    pub arguments: Vec<Argument>,
    /// What the server calls it.
    pub(super) name: String,
}

/// One thing that a prompt takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Whether the prompt cannot do without it.
    pub required: bool,
}

impl Prompt {
    /// What is to be typed behind the command, for people.
    pub fn usage(&self) -> String {
        let one = |argument: &Argument| match argument.required {
            true => argument.name.clone(),
            false => format!("[{}]", argument.name),
        };
        let all: Vec<String> = self.arguments.iter().map(one).collect();
        all.join(" ")
    }

    /// The arguments that a text is: a word each, `"…"` and `'…'` around what holds spaces; all that
    /// is left goes to the last one.
    ///
    /// # Errors
    ///
    /// A text for people, if one is missing or one is too many.
    pub(super) fn fill(&self, typed: &str) -> Result<BTreeMap<String, String>, String> {
        let usage = || {
            let usage = self.usage();
            match usage.is_empty() {
                true => format!("/{} takes nothing behind it.", self.command),
                false => format!("Say /{} {usage}.", self.command),
            }
        };
        let mut rest = typed.trim();
        let mut filled = BTreeMap::new();
        for (at, argument) in self.arguments.iter().enumerate() {
            let last = at + 1 == self.arguments.len();
            let (word, more) = match last {
                true => (unquoted(rest), ""),
                false => word(rest),
            };
            if !word.is_empty() {
                filled.insert(argument.name.clone(), word.into());
            } else if argument.required {
                return Err(usage());
            }
            rest = more;
        }
        match rest.is_empty() {
            true => Ok(filled),
            false => Err(usage()),
        }
    }
}

/// The first word of a text, and what is behind it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    if let Some(quote) = quote
        && let Some((word, rest)) = text[1..].split_once(quote)
    {
        return (word, rest.trim_start());
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// A text without the quotes that are around all of it.
fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = text
            .strip_prefix(quote)
            .and_then(|it| it.strip_suffix(quote));
        if let Some(inner) = inner.filter(|inner| !inner.contains(quote)) {
            return inner;
        }
    }
    text
}

/// Prompts out of pages.
#[derive(Debug, Default)]
pub(super) struct PromptPages {
    prompts: Vec<Prompt>,
    commands: BTreeSet<String>,
    cursors: BTreeSet<String>,
}

impl PromptPages {
    /// Takes one prompt of the server that is known by `slug`; what cannot be typed is left out.
    pub fn take(&mut self, slug: &str, text: &str, limits: &Limits) {
        let Ok(raw) = serde_json::from_str::<RawPrompt>(text) else {
            return;
        };
        let plain = |c: char| match c.is_whitespace() || c.is_control() {
            true => '_',
            false => c,
        };
        let name: String = cut(raw.name.trim(), MAX_NAME).chars().map(plain).collect();
        let command = format!("mcp:{slug}:{name}");
        let full = self.prompts.len() >= limits.max_mcp_prompts;
        if full || name.is_empty() || raw.name.len() > 4 * MAX_NAME {
            return;
        }
        if !self.commands.insert(command.clone()) {
            return;
        }
        let about = raw.description.or(raw.title).unwrap_or_default();
        let arguments = raw.arguments.unwrap_or_default().into_iter().take(16);
        self.prompts.push(Prompt {
            command,
            description: one_line(&about, MAX_DESCRIPTION),
            arguments: arguments
                .map(|it| Argument {
                    name: one_line(&it.name, MAX_NAME),
                    required: it.required.unwrap_or(false),
                })
                .collect(),
            name: raw.name,
        });
    }

    /// Whether a page with this cursor is to be asked for.
    pub fn follow(&mut self, cursor: &str, limits: &Limits) -> bool {
        self.cursors.len() < limits.max_mcp_pages
            && cursor.len() <= limits.max_mcp_schema
            && self.cursors.insert(cursor.into())
    }

    /// All of them.
    pub fn finish(self) -> Vec<Prompt> {
        self.prompts
    }
}

/// The answer to `prompts/get`, as one text; what an assistant is made to have said is marked.
pub(super) fn text(answer: &str) -> Result<String, String> {
    let read = serde_json::from_str::<PromptAnswer>(answer);
    let Ok(read) = read else {
        return Err("the server's answer is not one that prompts/get can have".into());
    };
    let mut texts: Vec<String> = Vec::new();
    for message in read.messages {
        let said = result::part_text(message.content);
        if said.trim().is_empty() {
            continue;
        }
        texts.push(match message.role.as_str() {
            "user" => said,
            _ => format!("[said by the assistant before]\n{said}"),
        });
    }
    match texts.is_empty() {
        true => Err("the prompt is empty".into()),
        false => Ok(texts.join("\n\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts(texts: &[&str]) -> Vec<Prompt> {
        let mut pages = PromptPages::default();
        for text in texts {
            pages.take("s", text, &Limits::default());
        }
        pages.finish()
    }

    #[test]
    fn a_prompt_is_a_command_that_can_be_typed() {
        let found = prompts(&[
            r#"{"name":"review","description":"Looks\nat it","arguments":[{"name":"path","required":true},{"name":"how"}]}"#,
            r#"{"name":"two words","title":"T","arguments":null}"#,
            r#"{"name":"review"}"#,
            r#"{"name":""}"#,
            r#"{"nome":"x"}"#,
            "7",
        ]);
        let shown: Vec<String> = found
            .iter()
            .map(|it| format!("{} | {} | {}", it.command, it.description, it.usage()))
            .collect();
        assert_eq!(
            shown,
            [
                "mcp:s:review | Looks at it | path [how]",
                "mcp:s:two_words | T | "
            ]
        );
        assert_eq!(found[1].name, "two words");
        let many: Vec<String> = (0..1000).map(|n| format!(r#"{{"name":"p{n}"}}"#)).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(prompts(&many).len(), Limits::default().max_mcp_prompts);
    }

    #[test]
    fn what_is_typed_fills_the_arguments_in_order() {
        let with = |arguments: &str| {
            let text = format!(r#"{{"name":"p","arguments":[{arguments}]}}"#);
            prompts(&[&text]).remove(0)
        };
        let (a, b) = (
            r#"{"name":"a","required":true}"#,
            r#"{"name":"b","required":false}"#,
        );
        let check = |arguments: &str, typed: &str, expected: Result<&[(&str, &str)], &str>| {
            let found = with(arguments).fill(typed);
            let pair = |(name, value): &(&str, &str)| (String::from(*name), String::from(*value));
            let expected = expected.map(|all| all.iter().map(pair).collect());
            assert_eq!(
                found,
                expected.map_err(String::from),
                "{arguments}: {typed}"
            );
        };
        let both = format!("{a},{b}");
        check("", " ", Ok(&[]));
        check("", "x", Err("/mcp:s:p takes nothing behind it."));
        check(a, "", Err("Say /mcp:s:p a."));
        check(a, " all of  this ", Ok(&[("a", "all of  this")]));
        check(a, "\"all of this\"", Ok(&[("a", "all of this")]));
        check(
            a,
            "\"all\" or \"this\"",
            Ok(&[("a", "\"all\" or \"this\"")]),
        );
        check(&both, "x", Ok(&[("a", "x")]));
        check(&both, "x y z", Ok(&[("a", "x"), ("b", "y z")]));
        check(&both, "'x y' z", Ok(&[("a", "x y"), ("b", "z")]));
        check(&both, "it's z", Ok(&[("a", "it's"), ("b", "z")]));
        check(&both, "", Err("Say /mcp:s:p a [b]."));
    }

    #[test]
    fn a_filled_prompt_is_one_text() {
        let check = |answer: &str, expected: Result<&str, &str>| {
            let expected = expected.map(String::from).map_err(String::from);
            assert_eq!(text(answer), expected, "{answer}");
        };
        let user = r#"{"role":"user","content":{"type":"text","text":"Look at it."}}"#;
        let other = r#"{"role":"assistant","content":{"type":"text","text":"Yes."}}"#;
        let file =
            r#"{"role":"user","content":{"type":"resource","resource":{"uri":"f:a","text":"x"}}}"#;
        check(
            &format!(r#"{{"messages":[{user},{other},{file}]}}"#),
            Ok("Look at it.\n\n[said by the assistant before]\nYes.\n\nf:a\nx"),
        );
        check(r#"{"messages":[]}"#, Err("the prompt is empty"));
        check(
            "{}",
            Err("the server's answer is not one that prompts/get can have"),
        );
    }
}
