//! A turn as a person reads it: updates in, styled text out. Knows what was printed, prints
//! nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use reasonix_core::protocol::schema::{
    ContentBlock, ContentChunk, PlanEntryStatus, SessionUpdate, ToolCall, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolKind,
};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::diff::diff;
use super::styles::{BAD, BOLD, DIM, GOOD, NOTE, WARN, styled};
use super::text::{one_line, safe};

/// Longest title of a call, characters.
const MAX_TITLE: usize = 120;

/// Lines shown of what a command printed, or of why a call failed.
const MAX_OUTPUT: usize = 12;

/// What is on the screen, as far as it matters for what comes next.
#[derive(Debug)]
pub struct Screen {
    cwd: String,
    quiet: bool,
    stream: Stream,
    /// The message that the last text belongs to, if it has an id.
    message: Option<String>,
    line_open: bool,
    /// Something was printed.
    begun: bool,
    calls: BTreeMap<String, Call>,
    plan: String,
    usage: Option<(u64, u64)>,
}

/// What the last text belonged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Nothing,
    Message,
    Thought,
    /// What a person said.
    User,
}

/// A tool call, put together from its updates.
#[derive(Debug, Default)]
struct Call {
    title: String,
    kind: ToolKind,
    status: ToolCallStatus,
    content: Vec<ToolCallContent>,
    diffs_shown: bool,
    ended: bool,
}

/// The arguments of the tool that runs a command, and of no other that has more of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    command: String,
    #[serde(default)]
    workdir: Option<String>,
    #[serde(default, rename = "timeout_seconds")]
    _timeout: IgnoredAny,
    #[serde(default, rename = "run_in_background")]
    _background: IgnoredAny,
}

impl Screen {
    /// An empty screen; paths beneath `cwd` are shown without it. `quiet`: only the agent's
    /// message is shown.
    pub fn new(cwd: &str, quiet: bool) -> Self {
        Self {
            cwd: cwd.into(),
            quiet,
            stream: Stream::Nothing,
            message: None,
            line_open: false,
            begun: false,
            calls: BTreeMap::new(),
            plan: String::new(),
            usage: None,
        }
    }

    /// What to print for an update; may be empty.
    pub fn update(&mut self, update: &SessionUpdate) -> String {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.stream(Stream::Message, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => self.stream(Stream::Thought, chunk),
            SessionUpdate::UserMessageChunk(chunk) => self.user(chunk),
            SessionUpdate::ToolCall(call) => {
                self.announce(call);
                self.end_of(&call.tool_call_id)
            }
            SessionUpdate::ToolCallUpdate(update) => {
                self.merge(update);
                self.end_of(&update.tool_call_id)
            }
            SessionUpdate::Plan(plan) => {
                let mut text = String::new();
                for entry in &plan.entries {
                    let (mark, style) = match entry.status {
                        PlanEntryStatus::Completed => ("[x]", GOOD),
                        PlanEntryStatus::InProgress => ("[>]", NOTE),
                        PlanEntryStatus::Pending | _ => ("[ ]", DIM),
                    };
                    let what = one_line(&entry.content, MAX_TITLE);
                    let _ = writeln!(text, "  {} {what}", styled(style, mark));
                }
                if text == self.plan {
                    return String::new();
                }
                self.plan.clone_from(&text);
                self.line(&text)
            }
            SessionUpdate::Notice(notice) => {
                let text = one_line(&notice.title, MAX_TITLE * 2);
                self.line(&format!("{} {text}\n", styled(WARN, "note")))
            }
            SessionUpdate::UsageUpdate(usage) => {
                self.usage = Some((usage.used, usage.size));
                String::new()
            }
            SessionUpdate::PlanUpdate(_)
            | SessionUpdate::PlanRemoved(_)
            | SessionUpdate::AvailableCommandsUpdate(_)
            | SessionUpdate::CurrentModeUpdate(_)
            | SessionUpdate::ConfigOptionUpdate(_)
            | SessionUpdate::SessionInfoUpdate(_)
            | SessionUpdate::CompactionUpdate(_)
            | SessionUpdate::CompactionSummaryChunk(_)
            | SessionUpdate::SubagentUpdate(_)
            | SessionUpdate::SessionMessage(_)
            | SessionUpdate::SessionMessageChunk(_)
            | _ => String::new(),
        }
    }

    /// The call a card is about, with its changes and, for a command, all of it. `shown`: it is
    /// shown where the updates are, so that the changes need not be shown again.
    pub fn card(&mut self, call: &ToolCallUpdate, shown: bool) -> String {
        self.merge(call);
        let input = call.raw_input.as_ref();
        let command = input.and_then(|input| input.read::<Command>().ok());
        let mut text = self.close_line();
        let cwd = self.cwd.clone();
        let Some(known) = self.calls.get_mut(&call.tool_call_id) else {
            return text;
        };
        let title = one_line(&known.title, MAX_TITLE);
        let _ = writeln!(text, "{} {}", styled(WARN, "?"), styled(BOLD, title));
        // What would run is shown whole: nobody can allow what they do not see.
        let changes = |item: &ToolCallContent| matches!(item, ToolCallContent::Diff(_));
        let about = match (command, known.kind) {
            (
                Some(Command {
                    command, workdir, ..
                }),
                _,
            ) => match workdir {
                Some(folder) => format!("{command}\n(in {folder})"),
                None => command,
            },
            // Their titles say it.
            (None, ToolKind::Delete | ToolKind::Move | ToolKind::Fetch | ToolKind::SwitchMode) => {
                String::new()
            }
            (None, _) if known.content.iter().any(changes) => String::new(),
            (None, ToolKind::Execute) if !known.content.is_empty() => known.said(),
            (None, _) => input.map_or(String::new(), |it| it.get().into()),
        };
        for line in safe(&about).lines() {
            let _ = writeln!(text, "    {}", styled(NOTE, line));
        }
        text.push_str(&known.diffs(&cwd));
        known.diffs_shown |= shown;
        text
    }

    /// A line of the program's own between the updates.
    pub fn line(&mut self, text: &str) -> String {
        if self.quiet {
            return String::new();
        }
        let mut out = self.close_line();
        out.push_str(text);
        self.begun |= !text.is_empty();
        out
    }

    /// Ends the line that is open, if one is.
    pub fn close_line(&mut self) -> String {
        let mut out = String::new();
        if std::mem::take(&mut self.line_open) {
            out.push('\n');
        }
        // What a person said stands alone.
        if self.stream == Stream::User {
            out.push('\n');
        }
        self.stream = Stream::Nothing;
        self.message = None;
        out
    }

    /// Whether the cursor is at the beginning of a line.
    pub fn at_line_start(&self) -> bool {
        !self.line_open
    }

    /// What runs now, for the spinner.
    pub fn running(&self) -> Option<String> {
        let mut calls = self.calls.values();
        calls
            .find(|call| call.status == ToolCallStatus::InProgress)
            .map(|call| one_line(&call.title, 60))
    }

    /// Tokens in use and how many there can be, as last heard.
    pub fn usage(&self) -> Option<(u64, u64)> {
        self.usage
    }

    fn stream(&mut self, stream: Stream, chunk: &ContentChunk) -> String {
        let text = block(&chunk.content);
        if text.is_empty() || self.quiet && stream == Stream::Thought {
            return String::new();
        }
        let mut out = self.begin(stream, chunk);
        let text = safe(&text);
        self.line_open = !text.ends_with('\n');
        match stream {
            Stream::Thought => out.push_str(&styled(DIM, text)),
            Stream::Message | Stream::User | Stream::Nothing => out.push_str(&text),
        }
        out
    }

    /// What a person said: every line of it is marked.
    fn user(&mut self, chunk: &ContentChunk) -> String {
        let text = block(&chunk.content);
        if text.is_empty() || self.quiet {
            return String::new();
        }
        let apart = self.begun && self.stream != Stream::User;
        let mut out = self.begin(Stream::User, chunk);
        if apart {
            out.push('\n');
        }
        let alone = !matches!(chunk.content, ContentBlock::Text(_));
        if alone && std::mem::take(&mut self.line_open) {
            out.push('\n');
        }
        for line in safe(&text).split_inclusive('\n') {
            if !self.line_open {
                let _ = write!(out, "{} ", styled(DIM, ">"));
            }
            out.push_str(line);
            self.line_open = !line.ends_with('\n');
        }
        if alone && std::mem::take(&mut self.line_open) {
            out.push('\n');
        }
        out
    }

    /// Goes on with the message of `chunk`, or begins it on a line of its own.
    fn begin(&mut self, stream: Stream, chunk: &ContentChunk) -> String {
        let mut out = String::new();
        if self.stream != stream || self.message != chunk.message_id {
            out = self.close_line();
        }
        self.stream = stream;
        self.message.clone_from(&chunk.message_id);
        self.begun = true;
        out
    }

    fn announce(&mut self, call: &ToolCall) {
        let known = self.calls.entry(call.tool_call_id.clone()).or_default();
        known.title.clone_from(&call.title);
        known.kind = call.kind;
        known.status = call.status;
        known.content.clone_from(&call.content);
    }

    fn merge(&mut self, update: &ToolCallUpdate) {
        let known = self.calls.entry(update.tool_call_id.clone()).or_default();
        if let Some(title) = &update.title {
            known.title.clone_from(title);
        }
        if let Some(kind) = update.kind {
            known.kind = kind;
        }
        if let Some(status) = update.status {
            known.status = status;
        }
        if let Some(content) = &update.content {
            known.content.clone_from(content);
        }
    }

    /// The line of a call that has ended, with what it showed; once.
    fn end_of(&mut self, id: &str) -> String {
        let cwd = self.cwd.clone();
        let Some(call) = self.calls.get_mut(id) else {
            return String::new();
        };
        let mark = match call.status {
            ToolCallStatus::Completed => styled(GOOD, "✓"),
            ToolCallStatus::Failed => styled(BAD, "✗"),
            ToolCallStatus::Pending | ToolCallStatus::InProgress | _ => return String::new(),
        };
        if std::mem::replace(&mut call.ended, true) {
            return String::new();
        }
        let mut text = format!("{mark} {}\n", one_line(&call.title, MAX_TITLE));
        if !call.diffs_shown && call.status == ToolCallStatus::Completed {
            text.push_str(&call.diffs(&cwd));
        }
        if call.status == ToolCallStatus::Failed || call.kind == ToolKind::Execute {
            text.push_str(&call.output());
        }
        // It is not shown again, and turns can be long.
        call.content = Vec::new();
        self.line(&text)
    }
}

impl Call {
    fn diffs(&self, cwd: &str) -> String {
        let mut out = String::new();
        for item in &self.content {
            if let ToolCallContent::Diff(item) = item {
                let path = beneath(&item.path, cwd);
                out.push_str(&diff(path, item.old_text.as_deref(), &item.new_text));
            }
        }
        out
    }

    /// Its texts, one after the other.
    fn said(&self) -> String {
        let mut all = String::new();
        for item in &self.content {
            if let ToolCallContent::Content(item) = item {
                all.push_str(&block(&item.content));
                if !all.ends_with('\n') {
                    all.push('\n');
                }
            }
        }
        all
    }

    /// The end of what it printed, indented.
    fn output(&self) -> String {
        let all = self.said();
        let lines: Vec<_> = all.lines().collect();
        let hidden = lines.len().saturating_sub(MAX_OUTPUT);
        let mut out = String::new();
        if hidden > 0 {
            let _ = writeln!(out, "    {}", styled(DIM, format_args!("… {hidden} lines")));
        }
        for line in &lines[hidden..] {
            let _ = writeln!(out, "    {}", styled(DIM, safe(line)));
        }
        out
    }
}

/// A block as text; what is no text is named.
fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(_) => "[image]".into(),
        ContentBlock::Audio(_) => "[audio]".into(),
        ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        ContentBlock::Resource(_) | _ => "[resource]".into(),
    }
}

/// `path` without `cwd` before it.
fn beneath<'a>(path: &'a str, cwd: &str) -> &'a str {
    path.strip_prefix(cwd)
        .and_then(|rest| rest.strip_prefix('/'))
        .unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reasonix_core::protocol::schema::{Diff, ImageContent, Json};

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn message(text: &str) -> SessionUpdate {
        SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::text(text)))
    }

    fn thought(text: &str) -> SessionUpdate {
        SessionUpdate::AgentThoughtChunk(ContentChunk::new(ContentBlock::text(text)))
    }

    fn ended(id: &str, status: ToolCallStatus, content: Vec<ToolCallContent>) -> SessionUpdate {
        let mut update = ToolCallUpdate::new(id);
        update.status = Some(status);
        update.content = Some(content);
        SessionUpdate::ToolCallUpdate(update)
    }

    fn call(id: &str, title: &str, kind: ToolKind) -> SessionUpdate {
        let mut call = ToolCall::new(id, title);
        call.kind = kind;
        SessionUpdate::ToolCall(call)
    }

    #[track_caller]
    fn check(quiet: bool, updates: &[SessionUpdate], shown: &str) {
        let mut screen = Screen::new("/w", quiet);
        let mut text = String::new();
        for update in updates {
            text.push_str(&screen.update(update));
        }
        text.push_str(&screen.close_line());
        assert_eq!(plain(&text), shown);
    }

    #[test]
    fn text_streams_and_kinds_do_not_share_a_line() {
        check(
            false,
            &[
                thought("hm"),
                thought("m"),
                message("a"),
                message("b\n"),
                message("c"),
            ],
            "hmm\nab\nc\n",
        );
        assert!(
            Screen::new("/w", false)
                .update(&thought("hm"))
                .contains("\u{1b}[2m")
        );
    }

    #[test]
    fn each_message_begins_a_line() {
        let part = |id: &str, text: &str| {
            let mut chunk = ContentChunk::new(ContentBlock::text(text));
            chunk.message_id = Some(id.into());
            SessionUpdate::AgentMessageChunk(chunk)
        };
        let parts = [
            part("1", "a"),
            part("1", "b"),
            part("2", "c\n"),
            part("3", "d"),
        ];
        check(false, &parts, "ab\nc\nd\n");
        check(true, &parts, "ab\nc\nd\n");
    }

    #[test]
    fn what_a_person_said_is_marked_line_by_line() {
        let said = |block: ContentBlock| SessionUpdate::UserMessageChunk(ContentChunk::new(block));
        let text = |text: &str| said(ContentBlock::text(text));
        let image = said(ContentBlock::Image(ImageContent::new("", "image/png")));
        check(
            false,
            &[
                text("look at"),
                image.clone(),
                text("th"),
                text("is\nplease"),
                message("ok"),
                text("and\n"),
                message("ok"),
            ],
            "> look at\n> [image]\n> this\n> please\n\nok\n\n> and\n\nok\n",
        );
        check(true, &[text("x"), image, message("ok")], "ok\n");
    }

    #[test]
    fn a_call_is_one_line_when_it_ends() {
        let call = call("1", "Read\n a", ToolKind::Read);
        let end = ended("1", ToolCallStatus::Completed, vec![]);
        check(
            false,
            &[message("x"), call, end.clone(), end],
            "x\n✓ Read a\n",
        );
    }

    #[test]
    fn a_failed_call_says_why_and_a_command_what_it_printed() {
        let text = |text: &str| vec![ToolCallContent::text(text)];
        check(
            false,
            &[
                call("1", "Read a", ToolKind::Read),
                ended("1", ToolCallStatus::Failed, text("no such file")),
                call("2", "sh x", ToolKind::Execute),
                ended("2", ToolCallStatus::Completed, text("one\ntwo\n")),
            ],
            "✗ Read a\n    no such file\n✓ sh x\n    one\n    two\n",
        );
    }

    #[test]
    fn an_edit_shows_its_diff_once() {
        let mut change = Diff::new("/w/a", "2\n");
        change.old_text = Some("1\n".into());
        let content = vec![ToolCallContent::Diff(change)];
        let shown = "--- a\n+++ a\n@@ -1 +1 @@\n-1\n+2\n";

        let mut screen = Screen::new("/w", false);
        screen.update(&call("1", "Edit a", ToolKind::Edit));
        let mut card = ToolCallUpdate::new("1");
        card.content = Some(content.clone());
        assert_eq!(
            plain(&screen.card(&card, true)),
            format!("? Edit a\n{shown}")
        );
        let end = ended("1", ToolCallStatus::Completed, content.clone());
        assert_eq!(plain(&screen.update(&end)), "✓ Edit a\n");

        let end = ended("1", ToolCallStatus::Completed, content);
        let text = format!("✓ Edit a\n{shown}");
        check(false, &[call("1", "Edit a", ToolKind::Edit), end], &text);
    }

    #[test]
    fn a_card_shows_all_that_would_run() {
        let check = |kind, content, input: Option<&str>, expected: &str| {
            let mut screen = Screen::new("/w", false);
            let mut card = ToolCallUpdate::new("1");
            card.title = Some("t".into());
            card.kind = Some(kind);
            card.content = Some(content);
            card.raw_input = input.and_then(Json::from_text);
            assert_eq!(plain(&screen.card(&card, true)), expected);
        };
        let says = |text: &str| vec![ToolCallContent::text(text)];
        let lines: String = (0..40).map(|n| format!("    {n}\n")).collect();
        let shown = format!("? t\n{lines}");
        check(
            ToolKind::Execute,
            says(&lines.replace(' ', "")),
            None,
            &shown,
        );
        let command = Some("{\"command\":\"a\\nb\"}");
        let shown = "? t\n    a\n    b\n";
        check(ToolKind::Execute, says("x"), command, shown);
        let elsewhere = Some("{\"command\":\"a\",\"timeout_seconds\":9,\"workdir\":\"b\"}");
        let shown = "? t\n    a\n    (in b)\n";
        check(ToolKind::Execute, vec![], elsewhere, shown);
        let more = "{\"command\":\"a\",\"host\":\"b\"}";
        let shown = format!("? t\n    {more}\n");
        check(ToolKind::Execute, vec![], Some(more), &shown);
        // A tool of a server has any kind.
        let arguments = "{\"table\":\"users\"}";
        for kind in [ToolKind::Other, ToolKind::Search, ToolKind::Execute] {
            let shown = format!("? t\n    {arguments}\n");
            check(kind, vec![], Some(arguments), &shown);
        }
        check(ToolKind::Delete, vec![], Some(arguments), "? t\n");
    }

    #[test]
    fn quiet_is_the_message_alone() {
        let call = call("1", "Read a", ToolKind::Read);
        let end = ended("1", ToolCallStatus::Completed, vec![]);
        check(true, &[thought("hm"), message("x"), call, end], "x\n");
    }
}
