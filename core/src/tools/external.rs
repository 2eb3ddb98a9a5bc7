//! Tools that live elsewhere: an embedder's own, and those of the MCP servers of a session. Their calls
//! go out as they are, by name; what comes back is text. Knows no server.
//!
//! | a name is | its calls are |
//! | --- | --- |
//! | that of a tool of the agent itself | its own |
//! | that of a tool of the embedder | [`Call::Custom`], whatever servers there are |
//! | one that begins as those of a server do | [`Step::CallServer`] |
//! | any other | refused |

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use serde_json::value::RawValue;

use super::run::{Begun, Context, Event, Work};
use super::state::in_words;
use super::step::Step;
use super::text;
use super::workspace::Workspace;
use crate::call::{Call, CustomCall, Outcome};
use crate::error::IoKind;
use crate::permission::Access;
use crate::time::{Deadline, Instant, Timer};

/// A tool that lives elsewhere, as a model is told of it. [`new`](Self::new) makes one that models can be
/// offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// Its name: 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub name: Arc<str>,
    /// For the model.
    pub description: Arc<str>,
    /// The text of a JSON schema: an object.
    pub parameters: Arc<str>,
}

/// Why a tool cannot be offered to a model: a provider would refuse each request that names it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExternalFault {
    /// Providers take no such name.
    #[error("`{name}` is no name of a tool: it has to be 1 to 64 of A-Z a-z 0-9 _ -")]
    Name {
        /// The name, cut, on one line.
        name: String,
    },
    /// The parameters are described by something else than a JSON schema.
    #[error("the parameters of the tool `{name}` are no JSON object: {why}")]
    Parameters {
        /// The tool.
        name: String,
        /// What is wrong with them.
        why: String,
    },
}

impl External {
    /// A tool: its name, what a model is told of it, and the JSON schema of its arguments.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn new(name: &str, description: &str, parameters: &str) -> Result<Self, ExternalFault> {
        let tool = Self {
            name: name.into(),
            description: description.into(),
            parameters: parameters.into(),
        };
        tool.check().map(|()| tool)
    }

    /// Whether models can be offered it.
    ///
    /// # Errors
    ///
    /// If providers take no such name, or its parameters are no JSON object.
    pub fn check(&self) -> Result<(), ExternalFault> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !(1..=64).contains(&self.name.len()) || !self.name.bytes().all(plain) {
            let name = text::one_line(&self.name, 100);
            return Err(ExternalFault::Name { name });
        }
        let schema: Result<BTreeMap<String, &RawValue>, _> = serde_json::from_str(&self.parameters);
        match schema {
            Ok(_) => Ok(()),
            Err(error) => Err(ExternalFault::Parameters {
                name: String::from(&*self.name),
                why: format!("{error}"),
            }),
        }
    }
}

/// Where a tool is called that lives elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// By the embedder.
    Embedder,
    /// At a server of the session.
    Server,
}

/// Where a tool of this name is called; none: it is none that lives elsewhere. A server that is not
/// up yet has no tools that are known, so what its names begin with counts.
pub(super) fn place(name: &str, ws: &Workspace) -> Option<Place> {
    if ws.custom.iter().any(|tool| *tool.name == *name) {
        return Some(Place::Embedder);
    }
    let mut prefixes = ws.external_prefixes.iter();
    let servers = prefixes.any(|prefix| name.starts_with(prefix.as_str()));
    servers.then_some(Place::Server)
}

pub(super) fn external(place: Place, name: &str, arguments: &str, ws: &Workspace) -> Begun {
    // The text itself goes on: the order of its members and its numbers stay as they are.
    let work = Elsewhere {
        place,
        name: name.into(),
        arguments: arguments.into(),
        shown: None,
        // Those of servers are seen to where the servers are.
        limit: (place == Place::Embedder).then_some(ws.limits.custom_call),
        late: false,
    };
    Begun::new(work, String::new())
}

#[derive(Debug)]
struct Elsewhere {
    place: Place,
    name: String,
    arguments: String,
    /// When progress was shown last.
    shown: Option<Instant>,
    /// How long its call may take; none: somebody else sees to that.
    limit: Option<Duration>,
    /// It took longer, and was told to end.
    late: bool,
}

impl Work for Elsewhere {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        match event {
            // Whatever is said of the tool, it may change anything.
            Event::Started => cx.permit(Access::Other, alloc::vec::Vec::new()),
            Event::Permitted => {
                let name = self.name.clone();
                let arguments = core::mem::take(&mut self.arguments);
                cx.flow.steps.push_back(match self.place {
                    Place::Embedder => Step::Call(Call::Custom(CustomCall::new(name, arguments))),
                    Place::Server => Step::CallServer { name, arguments },
                });
            }
            Event::Bytes(bytes) => {
                let every = cx.ws.limits.live_output_every;
                if self.shown.is_some_and(|at| cx.now.since(at) < every) {
                    return;
                }
                self.shown = Some(cx.now);
                let text = String::from_utf8_lossy(bytes).into_owned();
                // Only the newest is worth showing.
                let steps = &mut cx.flow.steps;
                steps.retain(|step| !matches!(step, Step::Progress(_)));
                steps.push_back(Step::Progress(text));
            }
            Event::Done(Outcome::Custom(Ok(text))) => cx.succeed(text),
            Event::Done(Outcome::Custom(Err(why))) => cx.fail(why),
            Event::Done(_) => cx.fail("an answer that does not fit"),
            Event::Failed(_) if self.late => {
                let limit = in_words(self.limit.unwrap_or_default());
                cx.fail(format!(
                    "There was no answer within {limit}, so the call was given up; it may have taken \
                     effect."
                ));
            }
            Event::Failed(fault) if fault.kind == IoKind::Aborted => {
                cx.fail("The call was given up; it may have taken effect.");
            }
            Event::Failed(fault) => cx.fail(format!("{fault}")),
            Event::Due => {
                let opened = cx.opened();
                let due = self.deadline(opened).is_some_and(|it| it.at <= cx.now);
                if due {
                    self.late = true;
                    cx.flow.steps.push_back(Step::Abort);
                }
            }
            Event::Answered(_) | Event::Idle => {}
        }
    }

    fn deadline(&self, opened: Option<Instant>) -> Option<Deadline> {
        let limit = self.limit.filter(|_| !self.late)?;
        Some(Deadline {
            at: opened?.plus(limit),
            why: Timer::ToolLimit,
        })
    }
}
