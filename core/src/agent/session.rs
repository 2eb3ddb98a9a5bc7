//! One open session: its engine, its axes, and what waits for a client that reads slowly.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use super::commands::{Calling, Refreshing, Scan, Shelf};
use super::editor::Editor;
use super::mcp::Servers;
use super::options::Axes;
use super::roots::Directories;
use super::saving::StoreKey;
use super::status::Status;
use crate::engine::{CardId, Decided, Engine, Message, Output};
use crate::ids::{AskId, CallId, TurnKey};
use crate::model::Part;
use crate::protocol::schema::{Json, SessionId, SessionUpdate, SystemPrompt};
use crate::time::{Deadline, Instant};
use crate::tools::{Answer, Question};

/// One open session.
pub(super) struct Session {
    pub(super) id: SessionId,
    /// Its working directory, as the client named it.
    pub(super) cwd: String,
    /// Its links resolved: the root that writes must stay beneath.
    pub(super) root: String,
    /// Its folders beside that.
    pub(super) directories: Directories,
    pub(super) axes: Axes,
    /// The client's part of its system prompt.
    pub(super) prompt: Option<SystemPrompt>,
    pub(super) engine: Engine,
    /// Its files.
    pub(super) store: StoreKey,
    /// How it stands.
    pub(super) status: Status,
    /// Its client asked to be told how it stands.
    pub(super) tells: bool,
    /// The engine left its mode by itself, and the client was not told.
    pub(super) drifted: bool,
    /// The open prompt.
    pub(super) turn: Option<TurnKey>,
    /// It was cancelled: nothing begins inside it any more.
    pub(super) cancelled: bool,
    /// When it is answered as cancelled though the disk has not taken its end; none while it is
    /// cancelled: that time has come.
    pub(super) patience: Option<Instant>,
    /// The open prompt is a command of the agent itself.
    pub(super) command: bool,
    /// The open prompt waits for the configuration to be read again.
    pub(super) reloading: bool,
    /// What is said when the command is done that reads it again.
    pub(super) reloaded: Option<String>,
    /// The same by a method of ours, which needs no prompt.
    pub(super) refreshing: Refreshing,
    /// The commands and skills that stand in files.
    pub(super) shelf: Shelf,
    /// Files are left out, and that is not said yet.
    pub(super) untold: bool,
    /// They are looked for again.
    pub(super) scan: Option<Scan>,
    /// The open prompt waits for the file of its command.
    pub(super) calling: Option<Calling>,
    /// The last decisions about calls, oldest first.
    pub(super) decided: VecDeque<Decided>,
    /// A prompt whose attachments are being saved.
    pub(super) preparing: Option<Preparing>,
    /// What the client is to see, in order, while it has no room. As long as something is here the
    /// engine makes nothing more, and its calls are not read.
    pub(super) outbox: VecDeque<Waiting>,
    /// Loads of it that replay it now: until they are done everything new waits behind what is old.
    pub(super) replaying: usize,
    /// Open requests to the client.
    pub(super) asks: BTreeMap<AskId, Asking>,
    /// What the client's editor carries out for it.
    pub(super) editor: Editor,
    /// Bytes that its calls brought since its engine last took in all there was.
    pub(super) unread: usize,
    /// It has a title.
    pub(super) titled: bool,
    /// Stands in the queue of sessions to be driven.
    pub(super) queued: bool,
    /// Its MCP servers.
    pub(super) servers: Servers,
    /// When the engine or its servers want to be woken, as it stands in the list of timers.
    pub(super) timer: Option<Deadline>,
}

/// Something that waits for a client that reads slowly.
pub(super) enum Waiting {
    /// What the engine said.
    Said(Output),
    /// What is seen of a record.
    Drawn(SessionUpdate),
    /// A terminal of the client's in the card of a call.
    Embed {
        /// The call.
        tool: String,
        /// The terminal.
        terminal: String,
    },
    /// How the session stands.
    Told(Json),
}

/// An open request to the client.
pub(super) enum Asking {
    /// May a call run?
    Permit {
        card: CardId,
        /// Whether "always" was offered.
        always: bool,
    },
    /// What does the person say? All questions in one form.
    Form {
        card: CardId,
        call: String,
        questions: Vec<Question>,
    },
    /// What does the person say? One question at a time.
    Question {
        card: CardId,
        call: String,
        questions: Vec<Question>,
        answers: Vec<Answer>,
    },
}

impl Asking {
    pub(super) fn card(&self) -> CardId {
        match self {
            Self::Permit { card, .. } | Self::Form { card, .. } | Self::Question { card, .. } => {
                *card
            }
        }
    }
}

/// A prompt whose attachments are being saved.
pub(super) struct Preparing {
    pub(super) message: Message,
    /// What the session is called from then on, if it has no title.
    pub(super) title: String,
    /// Being written, with the path that the prompt names.
    pub(super) writing: BTreeMap<CallId, Option<String>>,
}

impl Preparing {
    /// What the model is told of a file that could not be saved.
    pub(super) fn not_saved(&mut self, path: &str, why: &str) {
        if let Some(Part::Text(text)) = self.message.parts.first_mut() {
            text.push_str(&alloc::format!("\n\n[@{path} could not be saved: {why}]"));
        }
    }
}
