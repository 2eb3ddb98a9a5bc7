//! Streamable HTTP: each message is posted; an answer is one JSON text or a stream of events, which
//! is read on where it broke off; what the server says by itself comes on a stream of its own.
//!
//! A request ends in exactly one of: its answer as a frame, `Unanswered`, `Expired`, `Down`.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::exchange::{self, Body, Place, Said};
use super::{Arrived, Fault, Outgoing};
use crate::call::{HeaderValue, News, Opened};
use crate::error::{IoFault, IoKind};
use crate::ids::CallId;
use crate::mcp::{Context, Output, address};
use crate::secret::Secret;
use crate::time::Instant;

/// Requests at once, beyond which answers and notifications are dropped.
const MAX_OPEN: usize = 32;

/// Redirects of one message that are followed, on the same host.
const MAX_REDIRECTS: u8 = 3;

/// Repeats of a message that the server had no time for.
const MAX_BUSY: u8 = 3;

/// What a server can ask to wait before it is asked again.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Before a stream that ended is asked for again, unless the server says otherwise.
const WAIT: Duration = Duration::from_secs(1);

/// The same at least, whatever the server says: one that asks for none would be asked without end.
const MIN_WAIT: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(in crate::mcp) struct Http {
    url: String,
    headers: Vec<(String, Secret)>,
    session: Option<Secret>,
    version: Option<String>,
    open: BTreeMap<CallId, Exchange>,
    /// What is asked again later.
    later: Vec<(Instant, Wish)>,
    over: bool,
}

#[derive(Debug)]
struct Exchange {
    wish: Wish,
    body: Body,
    /// The session it was sent under.
    session: Option<Secret>,
}

/// What a request is for.
#[derive(Clone, Debug)]
struct Wish {
    what: What,
    place: Place,
    redirects: u8,
    busy: u8,
    /// Attempts to read a stream on that brought nothing.
    idle: u32,
}

#[derive(Clone, Debug)]
enum What {
    /// A message to post.
    Post(Outgoing),
    /// The rest of the answer to the request with this id.
    Rest(u64),
    /// What the server says by itself.
    Listen,
}

impl Wish {
    fn new(what: What) -> Self {
        Self {
            what,
            place: Place::default(),
            redirects: 0,
            busy: 0,
            idle: 0,
        }
    }

    fn request(&self) -> Option<u64> {
        match &self.what {
            What::Post(message) => message.request,
            What::Rest(id) => Some(*id),
            What::Listen => None,
        }
    }
}

impl Http {
    pub fn new(url: &str, headers: &[(String, Secret)]) -> Self {
        Self {
            url: url.into(),
            headers: headers.to_vec(),
            session: None,
            version: None,
            open: BTreeMap::new(),
            later: Vec::new(),
            over: false,
        }
    }

    pub fn send(&mut self, cx: &mut Context<'_>, message: Outgoing) {
        // What a server is answered that asks without end is not worth more.
        let waiting = self.open.len() + self.later.len();
        let crowd = message.request.is_none() && waiting >= MAX_OPEN;
        if !self.over && !crowd {
            self.begin(cx, Wish::new(What::Post(message)));
        }
    }

    pub fn listen(&mut self, cx: &mut Context<'_>, version: &str) {
        self.version = Some(version.into());
        let listens = |wish: &Wish| matches!(wish.what, What::Listen);
        let open = self.open.values().any(|it| listens(&it.wish));
        if !open && !self.later.iter().any(|(_, wish)| listens(wish)) {
            self.begin(cx, Wish::new(What::Listen));
        }
    }

    pub fn forget_session(&mut self, cx: &mut Context<'_>) {
        self.session = None;
        self.version = None;
        self.later
            .retain(|(_, wish)| !matches!(wish.what, What::Listen));
        let listening = |it: &Exchange| matches!(it.wish.what, What::Listen);
        self.abort(cx, listening);
    }

    pub fn settled(&mut self, cx: &mut Context<'_>, request: u64) {
        self.later
            .retain(|(_, wish)| wish.request() != Some(request));
        // A stream may stay open behind an answer for ever.
        self.abort(cx, |it| {
            it.wish.request() == Some(request) && !matches!(it.body, Body::Json(_))
        });
    }

    pub fn handle_news(
        &mut self,
        cx: &mut Context<'_>,
        id: CallId,
        news: News<'_>,
        arrived: &mut VecDeque<Arrived>,
    ) -> bool {
        let Some(exchange) = self.open.get_mut(&id) else {
            return false;
        };
        match news {
            News::Opened(head) => {
                let success = (200..300).contains(&head.status);
                let session = head.header("mcp-session-id").map(String::from);
                exchange.body.open(head, cx.limits);
                // Not the session of a request from before the one that was forgotten.
                if let (true, Some(session), None, None) =
                    (success, session, &self.session, &exchange.session)
                    && matches!(&exchange.wish.what, What::Post(post) if post.request.is_some())
                {
                    self.session = Some(Secret::new("session", session));
                }
            }
            News::Bytes { bytes, .. } => {
                let mut said = VecDeque::new();
                let wish = &mut exchange.wish;
                exchange
                    .body
                    .push(bytes, &mut wish.place, &mut said, cx.limits);
                let mut long = false;
                for said in said {
                    match said {
                        Said::Event { data, .. } => {
                            wish.idle = 0;
                            arrived.push_back(Arrived::Frame(data.into_bytes()));
                        }
                        Said::TooLong => long = true,
                    }
                }
                // It need not have an end.
                if long && let Some(Exchange { wish, .. }) = self.open.remove(&id) {
                    cx.out.push_back(Output::Abort { id });
                    match wish.request() {
                        Some(id) => {
                            let why = "its answer is longer than is taken".into();
                            arrived.push_back(Arrived::Unanswered { id, why });
                        }
                        None if matches!(wish.what, What::Listen) => {
                            self.read_on(cx, wish, arrived);
                        }
                        None => {}
                    }
                }
            }
            News::Done(_) => {
                if let Some(exchange) = self.open.remove(&id) {
                    self.ended(cx, exchange, None, arrived);
                }
            }
            News::Failed(fault) => {
                if let Some(exchange) = self.open.remove(&id) {
                    self.ended(cx, exchange, Some(&fault), arrived);
                }
            }
            News::Fed(_) => {}
        }
        true
    }

    pub fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        let due = |at: Instant| at <= cx.now;
        let (now, rest) = core::mem::take(&mut self.later)
            .into_iter()
            .partition(|(at, _)| due(*at));
        self.later = rest;
        let now: Vec<(Instant, Wish)> = now;
        for (_, wish) in now {
            self.begin(cx, wish);
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.later.iter().map(|(at, _)| *at).min()
    }

    pub fn close(&mut self, cx: &mut Context<'_>) {
        if self.over {
            return;
        }
        self.over = true;
        self.later.clear();
        self.abort(cx, |_| true);
        if self.session.is_some() {
            let more = self.common();
            // Nobody waits for what comes of it.
            exchange::start(cx, "DELETE", &self.url, &self.headers, more, Vec::new());
        }
    }

    fn abort(&mut self, cx: &mut Context<'_>, which: impl Fn(&Exchange) -> bool) {
        self.open.retain(|id, exchange| {
            let gone = which(exchange);
            if gone {
                cx.out.push_back(Output::Abort { id: *id });
            }
            !gone
        });
    }

    fn common(&self) -> Vec<(&'static str, HeaderValue)> {
        let session = self.session.clone().map(HeaderValue::Hidden);
        let version = self.version.clone().map(HeaderValue::Plain);
        let session = session.map(|value| ("mcp-session-id", value));
        let version = version.map(|value| ("mcp-protocol-version", value));
        session.into_iter().chain(version).collect()
    }

    fn begin(&mut self, cx: &mut Context<'_>, wish: Wish) {
        let plain = |text: &str| HeaderValue::Plain(text.into());
        let mut more = self.common();
        let (method, body) = match &wish.what {
            What::Post(message) => {
                more.push(("content-type", plain("application/json")));
                more.push(("accept", plain("application/json, text/event-stream")));
                ("POST", message.bytes.clone())
            }
            What::Rest(_) | What::Listen => {
                more.push(("accept", plain("text/event-stream")));
                ("GET", Vec::new())
            }
        };
        if !matches!(wish.what, What::Post(_))
            && let Some(last) = &wish.place.last
        {
            more.push(("last-event-id", plain(last)));
        }
        let id = exchange::start(cx, method, &self.url, &self.headers, more, body);
        let exchange = Exchange {
            wish,
            body: Body::Head,
            session: self.session.clone(),
        };
        self.open.insert(id, exchange);
    }

    fn ended(
        &mut self,
        cx: &mut Context<'_>,
        exchange: Exchange,
        fault: Option<&IoFault>,
        arrived: &mut VecDeque<Arrived>,
    ) {
        let Exchange {
            wish,
            mut body,
            session,
        } = exchange;
        if let Body::Refused { head, text } = &body {
            return self.refused(cx, wish, head, text, session.as_ref(), arrived);
        }
        if let (Some(fault), Body::Head) = (fault, &body) {
            return self.unreached(cx, wish, fault, arrived);
        }
        if let (None, Body::Foreign(kind)) = (fault, &body) {
            if let Some(id) = wish.request() {
                let why = format!(
                    "it answered with {kind}, where application/json or text/event-stream was \
                     expected: is its address that of an MCP server?"
                );
                arrived.push_back(Arrived::Unanswered { id, why });
            }
            return;
        }
        let events = matches!(body, Body::Events(_));
        let mut nothing = "the server took the message and gave no answer";
        if let (None, Some(text)) = (fault, body.finish()) {
            if !text.trim_ascii().is_empty() {
                nothing = "what it answered is no answer to this message";
                arrived.push_back(Arrived::Frame(text));
            }
        } else if events {
            return self.read_on(cx, wish, arrived);
        }
        // If the answer was there, nobody waits for this.
        if let Some(id) = wish.request() {
            let why = fault.map_or_else(|| nothing.into(), |fault| format!("{fault}"));
            arrived.push_back(Arrived::Unanswered { id, why });
        }
    }

    /// A stream ended before what it is for was there.
    fn read_on(&mut self, cx: &mut Context<'_>, mut wish: Wish, arrived: &mut VecDeque<Arrived>) {
        wish.idle += 1;
        let request = wish.request();
        let can = request.is_none() || wish.place.last.is_some();
        if !can || wish.idle > cx.limits.mcp_resumes {
            if let Some(id) = request {
                let why = "its stream broke off before the answer".into();
                arrived.push_back(Arrived::Unanswered { id, why });
            }
            return;
        }
        if let Some(id) = request {
            wish.what = What::Rest(id);
        }
        let wait = wish.place.retry.unwrap_or(WAIT * wish.idle);
        let wait = wait.clamp(MIN_WAIT, MAX_WAIT);
        self.later.push((cx.now.plus(wait), wish));
    }

    fn unreached(
        &mut self,
        cx: &mut Context<'_>,
        wish: Wish,
        fault: &IoFault,
        arrived: &mut VecDeque<Arrived>,
    ) {
        match &wish.what {
            What::Listen | What::Rest(_) => self.read_on(cx, wish, arrived),
            What::Post(_) if matches!(fault.kind, IoKind::Unreachable | IoKind::TimedOut) => {
                self.down(cx, Fault::new(format!("{fault}")), arrived);
            }
            What::Post(message) => {
                if let Some(id) = message.request {
                    let why = format!("{fault}");
                    arrived.push_back(Arrived::Unanswered { id, why });
                }
            }
        }
    }

    fn down(&mut self, cx: &mut Context<'_>, fault: Fault, arrived: &mut VecDeque<Arrived>) {
        self.session = None; // there is nobody to say goodbye to
        self.close(cx);
        arrived.push_back(Arrived::Down(fault));
    }

    fn refused(
        &mut self,
        cx: &mut Context<'_>,
        mut wish: Wish,
        head: &Opened,
        text: &[u8],
        session: Option<&Secret>,
        arrived: &mut VecDeque<Arrived>,
    ) {
        let is_post = matches!(wish.what, What::Post(_));
        match head.status {
            404 if is_post && session.is_some() => {
                let id = wish.request();
                // Only the session that the server does not know.
                if self.session.as_ref() == session || id.is_some() {
                    arrived.push_back(Arrived::Expired { id });
                }
                return;
            }
            // Answers that it has no time for are not kept without bound.
            429 if wish.busy < MAX_BUSY
                && (wish.request().is_some() || self.later.len() < MAX_OPEN) =>
            {
                wish.busy += 1;
                let asked = head
                    .header("retry-after")
                    .and_then(|it| it.trim().parse().ok());
                let wait = asked.map_or(WAIT * u32::from(wish.busy), Duration::from_secs);
                self.later.push((cx.now.plus(wait.min(MAX_WAIT)), wish));
                return;
            }
            307 | 308 => {
                if let Some(url) = self.same_host(head)
                    && wish.redirects < MAX_REDIRECTS
                {
                    wish.redirects += 1;
                    self.url = url;
                    return self.begin(cx, wish);
                }
            }
            // The server has nothing to say by itself.
            _ => {}
        }
        let mut why = exchange::refusal(head, text);
        if is_post && self.version.is_none() && head.status == 405 {
            why = format!("{why}; if it speaks the older transport, its `type` is sse");
        }
        match wish.what {
            What::Post(Outgoing {
                request: Some(id), ..
            }) if self.version.is_some() && !matches!(head.status, 401 | 403) => {
                arrived.push_back(Arrived::Unanswered { id, why });
            }
            What::Post(_) => {
                let status = Some(head.status);
                self.down(cx, Fault { why, status }, arrived);
            }
            What::Rest(id) => {
                let broke = "its stream broke off before the answer, and the rest cannot be had";
                let why = format!("{broke}: {why}");
                arrived.push_back(Arrived::Unanswered { id, why });
            }
            What::Listen => {}
        }
    }

    /// Where a redirect leads, if that is the same host: what it was trusted with goes nowhere else.
    fn same_host(&self, head: &Opened) -> Option<String> {
        let url = address::resolve(&self.url, head.header("location")?)?;
        (address::origin(&url) == address::origin(&self.url)).then_some(url)
    }
}
