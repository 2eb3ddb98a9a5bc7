//! Tools that live elsewhere: an embedder's own, and those of the MCP servers of a session. Their calls
//! go out as they are, by name; what comes back is text. Knows no server.
//!
//! | a name is | its calls are |
//! | --- | --- |
//! | that of a tool of the agent itself | its own |
//! | that of a tool of the embedder | [`Call::Custom`], whatever servers there are |
//! | one that begins as those of a server do | [`Step::CallServer`] |
//! | any other | refused |

use alloc::string::String;
use alloc::sync::Arc;

use super::run::{Begun, Context, Event, Work};
use super::step::Step;
use super::workspace::Workspace;
use crate::call::{Call, Outcome};
use crate::error::IoKind;
use crate::permission::Access;
use crate::time::Instant;

/// A tool that lives elsewhere, as a model is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// Its name.
    pub name: Arc<str>,
    /// For the model.
    pub description: Arc<str>,
    /// The text of a JSON schema.
    pub parameters: Arc<str>,
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

pub(super) fn external(place: Place, name: &str, arguments: &str) -> Begun {
    // The text itself goes on: the order of its members and its numbers stay as they are.
    let work = Elsewhere {
        place,
        name: name.into(),
        arguments: arguments.into(),
        shown: None,
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
                    Place::Embedder => Step::Call(Call::Custom { name, arguments }),
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
            Event::Failed(fault) if fault.kind == IoKind::Aborted => {
                cx.fail("The call was given up; it may have taken effect.");
            }
            Event::Failed(fault) => cx.fail(alloc::format!("{fault}")),
            Event::Answered(_) | Event::Due | Event::Idle => {}
        }
    }
}
