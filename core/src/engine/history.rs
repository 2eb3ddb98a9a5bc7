//! What the model is told: the messages of a session, always well formed. Every tool call of an
//! assistant message has exactly one tool message before anything else follows; ids are unique and
//! not empty; `arguments` are always the text of a JSON object.
//!
//! Messages are only appended (what the provider has seen stays the same prefix: its cache is the
//! person's money), but for a refusal, which takes its turn back, and compaction.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::slice::SliceIndex;

use super::record::{Extent, Reason, Record};
use crate::model::{ChatMessage, Part, ToolUse};

/// The messages of a session without the system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    messages: Vec<ChatMessage>,
    ids: BTreeSet<String>,
    /// Calls of the last assistant message that have no tool message yet, in order.
    open: Vec<String>,
    /// Where the last round of a turn began.
    before: usize,
    /// The call by which the person runs a command line of their own, and that line.
    own: Option<(String, String)>,
}

impl History {
    /// The messages, oldest first.
    pub fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// What the model said last, if nothing was said to it since.
    pub fn last_said(&self) -> Option<&str> {
        match self.messages.last()? {
            ChatMessage::Assistant { text, .. } => Some(text),
            ChatMessage::System(_) | ChatMessage::User(_) | ChatMessage::Tool { .. } => None,
        }
    }

    /// Calls of the last answer that have no result yet, in order.
    pub fn open_calls(&self) -> &[String] {
        &self.open
    }

    /// Takes in what happened. The only way in which a session's history changes, live or loaded.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::User(user) => {
                if user.from.begins_turn() {
                    self.answer_open("not run");
                }
                if user.from.begins_round() {
                    self.before = self.messages.len();
                }
                self.user(user.parts());
            }
            Record::Assistant(answer) => match answer.extent {
                Extent::Whole | Extent::Partial => {
                    self.ids
                        .extend(answer.calls.iter().map(|call| call.id.clone()));
                    let thought = answer.echo.then(|| answer.thought());
                    let thought = thought.filter(|thought| !thought.is_empty());
                    self.assistant(answer.text(), thought, answer.calls.clone());
                }
                Extent::Dropped => {}
            },
            // A card of the agent itself belongs to no answer.
            Record::Call { id, line, .. } => {
                self.ids.insert(id.clone());
                if let Some(line) = line {
                    self.own = Some((id.clone(), line.clone()));
                }
            }
            Record::Result(result) => match self.own.take_if(|(own, _)| *own == result.id) {
                Some((_, line)) => {
                    let text = &result.text;
                    let told = format!("[The person ran this themselves:]\n$ {line}\n{text}");
                    self.user(Vec::from([Part::Text(told)]));
                }
                None => self.tool(&result.id, result.text.clone()),
            },
            Record::Summary { gone, text, .. } => self.replace(*gone, text.clone()),
            Record::End(end) => match end.reason {
                Reason::Refusal => self.rewind(),
                Reason::EndTurn
                | Reason::MaxTokens
                | Reason::MaxTurnRequests
                | Reason::Cancelled
                | Reason::Failed
                | Reason::Interrupted => {}
            },
            Record::Session(_)
            | Record::Options(_)
            | Record::Plan { .. }
            | Record::Command { .. }
            | Record::Note { .. }
            | Record::Goal(_)
            | Record::Roots { .. }
            | Record::Subagent(_)
            | Record::Mended { .. }
            | Record::Unknown => {}
        }
    }

    /// Forgets the last turn. Ids stay used: clients have seen them.
    fn rewind(&mut self) {
        self.messages.truncate(self.before);
        self.open.clear();
    }

    /// Adds what the person said.
    fn user(&mut self, parts: Vec<Part>) {
        self.answer_open("not run");
        self.messages.push(ChatMessage::User(parts));
    }

    /// Adds what the model said. An answer with nothing in it leaves no message, since providers
    /// refuse empty ones.
    fn assistant(&mut self, text: String, reasoning: Option<String>, calls: Vec<ToolUse>) {
        self.answer_open("not run");
        if text.is_empty() && calls.is_empty() {
            return;
        }
        self.open = calls.iter().map(|call| call.id.clone()).collect();
        self.messages.push(ChatMessage::Assistant {
            text,
            reasoning,
            calls,
        });
    }

    /// Adds the result of an open call; a call that is not open is not answered again.
    fn tool(&mut self, id: &str, text: String) {
        if let Some(at) = self.open.iter().position(|open| open == id) {
            let id = self.open.remove(at);
            self.messages.push(ChatMessage::Tool { id, text });
        }
    }

    /// Gives every open call the result `why`.
    fn answer_open(&mut self, why: &str) {
        for id in core::mem::take(&mut self.open) {
            self.messages.push(ChatMessage::Tool {
                id,
                text: why.into(),
            });
        }
    }

    /// An id for a call, unique in the session and not empty: the provider's own where that is
    /// possible, so that what it gets back is what it sent.
    pub fn mint(&mut self, wanted: &str) -> String {
        let usable = !wanted.is_empty()
            && wanted.len() <= 128
            && wanted
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
        let base = if usable { wanted } else { "call" };
        let mut id = String::from(base);
        let mut n = 1;
        while (n == 1 && !usable) || self.ids.contains(&id) {
            id = format!("{base}-{n}");
            n += 1;
        }
        self.ids.insert(id.clone());
        id
    }

    /// The name of a called tool as providers take it back: a model may make one up that they
    /// refuse, and with it every later request.
    pub fn tool_name(called: &str) -> String {
        let legal = |c: char| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        };
        let name: String = called.chars().take(64).map(legal).collect();
        if name.is_empty() {
            "unknown".into()
        } else {
            name
        }
    }

    /// Replaces the first `gone` messages, as [`cut_for`](Self::cut_for) counted them, by a
    /// summary.
    fn replace(&mut self, gone: usize, summary: String) {
        let gone = gone.min(self.messages.len());
        let mut rest = self.messages.split_off(gone);
        // In a transcript with a damaged line the count can be off: results without their call go.
        let orphans = rest
            .iter()
            .take_while(|message| matches!(message, ChatMessage::Tool { .. }))
            .count();
        rest.drain(..orphans);
        if !rest
            .iter()
            .any(|message| matches!(message, ChatMessage::Assistant { .. }))
        {
            self.open.clear();
        }
        self.messages.clear();
        self.messages
            .push(ChatMessage::User(alloc::vec![Part::Text(summary)]));
        self.messages.extend(rest);
        self.before = self.before.saturating_sub(gone) + 1;
    }

    /// How many messages a compaction that keeps about `keep` takes: more where those would hold
    /// over half of the bytes, since nothing would be won. The cut never separates a call from its
    /// results.
    pub fn cut_for(&self, keep: usize) -> usize {
        let last = self.messages.len().saturating_sub(1);
        let mut cut = self.messages.len().saturating_sub(keep);
        let mut kept = self.weight(cut..);
        let most = self.bytes() / 2;
        while cut > 0 && cut < last && kept > most {
            kept -= self.weight(cut..=cut);
            cut += 1;
        }
        // Only a tool message can be separated from what it answers. Looking backwards keeps more
        // rather than less.
        while cut > 0 && matches!(self.messages.get(cut), Some(ChatMessage::Tool { .. })) {
            cut -= 1;
        }
        cut
    }

    /// About how many bytes the provider would count.
    pub fn bytes(&self) -> usize {
        self.weight(..)
    }

    /// About how many bytes it takes in memory.
    pub fn size(&self) -> usize {
        sum(&self.messages, str::len)
    }

    fn weight(&self, range: impl SliceIndex<[ChatMessage], Output = [ChatMessage]>) -> usize {
        // Providers count an image as some thousand tokens whatever its bytes.
        sum(&self.messages[range], |_| 4096)
    }
}

fn sum(messages: &[ChatMessage], image: impl Fn(&str) -> usize) -> usize {
    messages
        .iter()
        .map(|message| match message {
            ChatMessage::System(text) => text.len(),
            ChatMessage::User(parts) => parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => text.len(),
                    Part::Image { data, .. } => image(data),
                })
                .sum(),
            ChatMessage::Assistant {
                text,
                reasoning,
                calls,
            } => {
                text.len()
                    + reasoning.as_ref().map_or(0, String::len)
                    + calls
                        .iter()
                        .map(|call| call.name.len() + call.arguments.len())
                        .sum::<usize>()
            }
            ChatMessage::Tool { text, .. } => text.len(),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn call(id: &str) -> ToolUse {
        ToolUse {
            id: id.into(),
            name: "ls".into(),
            arguments: "{}".into(),
        }
    }

    fn text(text: &str) -> Vec<Part> {
        vec![Part::Text(text.into())]
    }

    #[test]
    fn an_unanswered_call_is_answered_before_anything_else_follows() {
        let mut history = History::default();
        history.user(text("a"));
        history.assistant("".into(), None, vec![call("1"), call("2")]);
        history.tool("2", "done".into());
        history.user(text("b"));
        let tools: Vec<_> = history
            .messages()
            .iter()
            .filter_map(|message| match message {
                ChatMessage::Tool { id, text } => Some((id.as_str(), text.as_str())),
                ChatMessage::System(_) | ChatMessage::User(_) | ChatMessage::Assistant { .. } => {
                    None
                }
            })
            .collect();
        assert_eq!(tools, [("2", "done"), ("1", "not run")]);
    }

    #[test]
    fn a_call_is_answered_once() {
        let mut history = History::default();
        history.assistant("".into(), None, vec![call("1")]);
        history.tool("1", "first".into());
        history.tool("1", "second".into());
        assert_eq!(history.messages().len(), 2);
    }

    #[test]
    fn ids_are_the_providers_own_unless_they_are_empty_or_used() {
        let mut history = History::default();
        assert_eq!(history.mint("call_1"), "call_1");
        assert_eq!(history.mint("call_1"), "call_1-1");
        assert_eq!(history.mint(""), "call-1");
        assert_eq!(history.mint(""), "call-2");
        assert_eq!(history.mint("a\"b"), "call-3");
    }

    #[test]
    fn a_name_that_was_made_up_does_not_spoil_later_requests() {
        let long = "x".repeat(65);
        for (called, kept) in [
            ("read_file", "read_file"),
            ("server__tool-2", "server__tool-2"),
            ("", "unknown"),
            ("functions.read \n", "functions_read__"),
            ("漢", "_"),
            (long.as_str(), &long[..64]),
        ] {
            assert_eq!(History::tool_name(called), kept);
        }
    }

    #[test]
    fn an_empty_answer_leaves_no_message() {
        let mut history = History::default();
        history.assistant("".into(), Some("thought".into()), vec![]);
        assert!(history.messages().is_empty());
    }

    #[test]
    fn compaction_never_separates_a_call_from_its_result() {
        let mut history = History::default();
        for n in 0..4 {
            history.user(text("ask"));
            let id = history.mint("");
            history.assistant("".into(), None, vec![call(&id)]);
            history.tool(&id, "result".into());
            history.assistant(format!("answer {n}"), None, vec![]);
        }
        let gone = history.cut_for(6);
        assert_eq!(gone, 9);
        history.replace(gone, "summary".into());
        assert_eq!(history.messages()[0], ChatMessage::User(text("summary")));
        assert!(matches!(
            history.messages()[1],
            ChatMessage::Assistant { .. }
        ));
        assert_eq!(history.messages().len(), 8);
    }

    #[test]
    fn a_summary_behind_a_damaged_line_leaves_no_result_without_its_call() {
        let mut history = History::default();
        history.user(text("a"));
        history.assistant("".into(), None, vec![call("1")]);
        history.tool("1", "one".into());
        history.assistant("b".into(), None, vec![]);
        // Two messages were there, one of them could not be read.
        history.replace(2, "summary".into());
        assert!(
            !history
                .messages()
                .iter()
                .any(|message| matches!(message, ChatMessage::Tool { .. }))
        );
        assert_eq!(history.messages().len(), 2);
    }

    #[test]
    fn what_is_kept_holds_no_more_than_half_of_the_bytes_where_it_can() {
        for (before, heavy, results) in [(0, 8, 1), (5, 3, 1), (20, 4, 1), (6, 3, 20)] {
            let mut history = History::default();
            history.user(text("go"));
            for n in 0..before + heavy {
                let calls: Vec<_> = (0..results).map(|_| call(&history.mint(""))).collect();
                history.assistant("".into(), None, calls.clone());
                for call in calls {
                    let bytes = if n < before { 10 } else { 50_000 };
                    history.tool(&call.id, "x".repeat(bytes));
                }
            }
            let whole = history.bytes();
            let gone = history.cut_for(8);
            assert!(gone > 1);
            history.replace(gone, "summary".into());
            assert!(
                history.bytes() <= whole / 2 + 100,
                "{before} {heavy} {results}"
            );
            let last = history.messages().last();
            assert!(matches!(last, Some(ChatMessage::Tool { .. })), "it stays");
        }
    }
}
