//! Messages as bytes: how one server is reached. Knows no method; hands on whole messages, and says
//! which request can have no answer any more.

mod exchange;
mod http;
mod sse;
mod stdio;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Context, Entry, Way};
use crate::call::News;
use crate::ids::CallId;
use crate::limits::Limits;
use crate::time::Instant;

pub(super) use http::Http;
pub(super) use sse::Sse;
pub(super) use stdio::Stdio;

/// A message on its way to the server.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    /// One line of JSON, its LF included.
    pub bytes: Vec<u8>,
    /// The id, if it is a request that waits for an answer.
    pub request: Option<u64>,
}

/// What came of a transport.
#[derive(Debug)]
pub(super) enum Arrived {
    /// The text of one message.
    Frame(Vec<u8>),
    /// The request with this id can have no answer any more.
    Unanswered { id: u64, why: String },
    /// The server does not know our session: it did not take the request with this id.
    Expired { id: Option<u64> },
    /// A message was longer than allowed and is lost; whose answer it was is not known.
    TooLong,
    /// Something that is no message; one line.
    Noise(String),
    /// Nothing can be sent or received any more.
    Down(Fault),
}

/// Why a server cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// For people.
    pub why: String,
    /// The status of the HTTP answer that said so.
    pub status: Option<u16>,
}

impl Fault {
    pub fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            status: None,
        }
    }
}

/// One of the three.
#[derive(Debug)]
pub(super) enum Transport {
    Stdio(Stdio),
    Http(Http),
    Sse(Sse),
}

impl Transport {
    /// Begins to reach the server.
    pub fn start(entry: &Entry, cwd: &str, cx: &mut Context<'_>) -> Self {
        match &entry.way {
            Way::Stdio { command, args, env } => {
                Self::Stdio(Stdio::start(command, args, env, cwd, cx))
            }
            Way::Http { url, headers } => Self::Http(Http::new(url, headers)),
            Way::Sse { url, headers } => Self::Sse(Sse::start(url, headers, cx)),
        }
    }

    pub fn send(&mut self, cx: &mut Context<'_>, message: Outgoing) {
        match self {
            Self::Stdio(it) => it.send(cx, message),
            Self::Http(it) => it.send(cx, message),
            Self::Sse(it) => it.send(cx, message),
        }
    }

    /// The handshake is done, with this version of the protocol: now the server may speak by itself.
    pub fn listen(&mut self, cx: &mut Context<'_>, version: &str) {
        match self {
            Self::Http(it) => it.listen(cx, version),
            Self::Stdio(_) | Self::Sse(_) => {}
        }
    }

    /// The handshake begins anew, without the session that the server does not know.
    pub fn forget_session(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Http(it) => it.forget_session(cx),
            Self::Stdio(_) | Self::Sse(_) => {}
        }
    }

    /// The request with this id waits for no answer any more.
    pub fn settled(&mut self, cx: &mut Context<'_>, request: u64) {
        match self {
            Self::Http(it) => it.settled(cx, request),
            Self::Stdio(_) | Self::Sse(_) => {}
        }
    }

    /// News of a call that it began; false if it is none of its own.
    pub fn handle_news(
        &mut self,
        cx: &mut Context<'_>,
        id: CallId,
        news: News<'_>,
        arrived: &mut VecDeque<Arrived>,
    ) -> bool {
        match self {
            Self::Stdio(it) => it.handle_news(cx, id, news, arrived),
            Self::Http(it) => it.handle_news(cx, id, news, arrived),
            Self::Sse(it) => it.handle_news(cx, id, news, arrived),
        }
    }

    pub fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Http(it) => it.handle_timeout(cx),
            Self::Stdio(_) | Self::Sse(_) => {}
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Http(it) => it.deadline(),
            Self::Stdio(_) | Self::Sse(_) => None,
        }
    }

    /// Ends it: nothing of it is heard any more. Says goodbye where that is asked for.
    pub fn close(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Stdio(it) => it.close(cx),
            Self::Http(it) => it.close(cx),
            Self::Sse(it) => it.close(cx),
        }
    }

    /// Bytes it will take now from a call; none if it is not known to be its own.
    pub fn room(&self, id: CallId, limits: &Limits) -> Option<usize> {
        match self {
            Self::Stdio(it) => it.room(id, limits),
            Self::Http(_) | Self::Sse(_) => None,
        }
    }

    /// What it waits for before anything can be sent.
    pub fn missing(&self) -> Option<&'static str> {
        match self {
            Self::Sse(it) => it.missing(),
            Self::Stdio(_) | Self::Http(_) => None,
        }
    }

    /// The last that the server said on its standard error.
    pub fn complaint(&self) -> &str {
        match self {
            Self::Stdio(it) => it.complaint(),
            Self::Http(_) | Self::Sse(_) => "",
        }
    }
}
