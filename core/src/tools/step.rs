//! What a running tool asks for, and what it ends with. Plain data.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::kind::ToolKind;
use super::state::JobId;
use crate::call::Call;
use crate::permission::Action;
use crate::secret::Secrets;

/// The next thing that must happen for a tool to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Start this call. A run has at most one open; its news come back by
    /// [`handle_news`](super::ToolRun::handle_news).
    Call(Call),
    /// Call this tool of an MCP server of the session, as if it were a [`Call`](Self::Call): the
    /// answer is [`Outcome::Custom`](crate::call::Outcome::Custom).
    CallServer {
        /// Its name, as the model knows it.
        name: String,
        /// Its arguments: the text of a JSON object.
        arguments: String,
    },
    /// Abort the open call. Its last news still come.
    Abort,
    /// Ask the gate; answer by [`permitted`](super::ToolRun::permitted) or
    /// [`denied`](super::ToolRun::denied).
    Permit(Proposal),
    /// Ask the user; answer by [`answered`](super::ToolRun::answered).
    Ask(Vec<Question>),
    /// Show this as the live output so far; each replaces the one before. At most one every
    /// [`Limits::live_output_every`](crate::limits::Limits::live_output_every).
    Progress(String),
    /// This is a folder of the session from now on: its real path. The person has agreed.
    AddRoot(String),
    /// Give this to a subagent. Nothing more is asked of the run: what comes of the subagent is
    /// its result.
    Delegate(Assignment),
    /// Show this plan, whole.
    Plan(Vec<Todo>),
    /// The open call is no longer this run's: its news go to
    /// [`ToolState::handle_job_news`](super::ToolState::handle_job_news) under this job from now
    /// on, and its room is [`ToolState::job_room`](super::ToolState::job_room).
    Detach(JobId),
    /// Abort the call of this job.
    AbortJob(JobId),
    /// Nothing to do until news, an answer, the deadline, or news of a background job.
    Wait,
    /// Over. Nothing follows.
    Done(ToolOutcome),
}

/// What a tool is about to do, as the gate and the card see it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proposal {
    /// For the decision.
    pub action: Action,
    /// For the card, as on the announced call.
    pub card: Card,
    /// What would change. Whole if that is short, else the changed regions.
    pub diffs: Vec<Diff>,
    /// What the card says beside that.
    pub text: Option<String>,
}

impl Proposal {
    /// The same without these.
    pub(super) fn redact(&mut self, secrets: &Secrets) {
        for diff in &mut self.diffs {
            diff.redact(secrets);
        }
        self.card.redact(secrets);
        if let Some(text) = &mut self.text {
            secrets.redact(text);
        }
    }
}

/// What a subagent is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assignment {
    /// A few words; for people.
    pub title: String,
    /// The task, whole: the subagent knows nothing else.
    pub prompt: String,
    /// It may read and search, and nothing else.
    pub read_only: bool,
}

/// What is shown of a call from its announcement on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Card {
    /// The tool's name.
    pub name: String,
    /// One line: the tool's name and what it is about.
    pub title: String,
    /// For the icon.
    pub kind: ToolKind,
    /// Files it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// The arguments: the text of a JSON object on one line, long strings cut with a note. None if
    /// they are no JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<String>,
}

impl Card {
    /// The same without these.
    pub(super) fn redact(&mut self, secrets: &Secrets) {
        secrets.redact(&mut self.title);
        if let Some(input) = &mut self.raw_input {
            secrets.redact(input);
        }
    }
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Location {
    /// Absolute.
    pub path: String,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Location {
    /// A place in a file; lines count from 1.
    pub fn new(path: impl Into<String>, line: Option<u32>) -> Self {
        Self {
            path: path.into(),
            line,
        }
    }
}

/// A change of a file, or of a region of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Diff {
    /// Absolute.
    pub path: String,
    /// What was there; none: the file is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// What will be there; empty if the file is emptied or removed.
    pub new: String,
}

impl Diff {
    /// The same without these.
    pub(super) fn redact(&mut self, secrets: &Secrets) {
        secrets.redact(&mut self.new);
        if let Some(old) = &mut self.old {
            secrets.redact(old);
        }
    }
}

/// How a tool ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// Whether it did what it was asked to.
    pub ok: bool,
    /// For the model; never empty; at most
    /// [`Limits::max_tool_result`](crate::limits::Limits::max_tool_result) bytes.
    pub text: String,
    /// For people, if it is not the text.
    pub shown: Option<String>,
    /// What was changed.
    pub diffs: Vec<Diff>,
    /// Where, with lines, if more is known than when the call was announced.
    pub locations: Vec<Location>,
    /// The result as data: the text of a JSON object on one line.
    pub raw_output: Option<String>,
    /// The session of the subagent that worked for it.
    pub session: Option<String>,
    /// Whether files were written by the tool.
    pub wrote: bool,
    /// The command line, if one ran to its end; `ok` says whether that was exit code 0. What counts
    /// as verification is decided by who knows the rule.
    pub ran: Option<String>,
}

impl ToolOutcome {
    /// The same without these. What ran keeps its words: they decide what counts as verification, and
    /// are the model's own.
    pub(super) fn redact(&mut self, secrets: &Secrets) {
        let texts = [&mut self.shown, &mut self.raw_output];
        for text in texts.into_iter().flatten() {
            secrets.redact(text);
        }
        secrets.redact(&mut self.text);
        for diff in &mut self.diffs {
            diff.redact(secrets);
        }
    }
}

/// How the text that an editor showed of a file stands to the file on the disk, where they are not
/// the same but for line ends, a byte order mark and a last newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditorText {
    /// It is another: not saved, or changed on the disk before it was first read.
    Differs,
    /// The disk has changed since it was read, and the editor shows it as it was.
    Old,
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// Unique within the call: `q1`, `q2` …
    pub id: String,
    /// A few words above it.
    pub header: Option<String>,
    /// The question.
    pub text: String,
    /// What can be chosen; empty: the answer is free text.
    pub options: Vec<Choice>,
    /// Whether several can be chosen.
    pub multi: bool,
    /// What its answer is.
    pub kind: AnswerKind,
}

/// What the answer to a question is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerKind {
    /// What can be chosen, or any text.
    #[default]
    Text,
    /// A number; nothing can be chosen.
    Number,
    /// Yes or no, the two that can be chosen.
    YesNo,
}

impl AnswerKind {
    /// The two of [`AnswerKind::YesNo`].
    pub const YES_NO: [&str; 2] = ["Yes", "No"];
}

/// One thing that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// Its name.
    pub label: String,
    /// What it means.
    pub description: Option<String>,
}

/// The user's answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The labels chosen; at least one.
    Chosen(Vec<String>),
    /// Free text.
    Text(String),
    /// None: declined, cancelled, nobody there.
    Unanswered,
    /// It could not be put to the user.
    NotAsked,
    /// What came does not fit the question, and this is why.
    Unfit(String),
}

/// One entry of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Todo {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
    /// Depth; 0 is the top, shown with high priority.
    #[serde(default)]
    pub level: u32,
}

/// How far an entry of the plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
}

impl TodoStatus {
    /// Its name in ACP and in the tool's arguments.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}
