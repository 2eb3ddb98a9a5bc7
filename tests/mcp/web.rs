//! The server at an address: Streamable HTTP, or with `legacy` the older transport. Plain sockets,
//! one thread a connection; every request is kept.
//!
//! | word | what it does |
//! | --- | --- |
//! | `legacy` | is the older transport: one stream, and an address to post to |
//! | `401`, `403`, `404`, `500` | refuses all with that status, and says all it was given |
//! | `hangs` | takes connections and never answers |
//! | `slams` | closes connections without an answer |
//! | `html` | answers with a page for people |
//! | `redirects` | sends every request to where `to=URL` says |
//! | `abroad` | names an address of `to=URL` to post to (older transport) |
//! | `busy`, `swamped` | answers the first call, every call with 429 |
//! | `expires`, `forgets` | does not know the session of the first call, of any call |
//! | `events` | answers by events |
//! | `split` | answers by events, whose chunks end inside characters |
//! | `cuts` | breaks its answer to a call off inside a character, and has it for who asks again |
//! | `drips` | writes one byte at a time |
//! | `gone` | ends its stream at the first call (older transport) |
//! | `no-goodbye` | never answers the end of a session |

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Act, Server};

/// The server: takes no more connections when dropped.
pub struct Web {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    manners: Vec<String>,
    server: Mutex<Server>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    heads: Vec<String>,
    stopped: bool,
    sessions: usize,
    refused: usize,
    /// The stream of the older transport.
    stream: Option<Sender<String>>,
    /// What a call that is held is answered in the end.
    late: Vec<String>,
    /// The answer that was broken off.
    rest: Option<String>,
}

struct Request {
    head: String,
    body: String,
}

impl Request {
    fn read(stream: &TcpStream) -> std::io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Self { head, body })
    }

    fn is(&self, method: &str) -> bool {
        self.head.starts_with(method)
    }

    fn calls(&self) -> bool {
        self.body.contains("\"tools/call\"")
    }
}

impl Web {
    /// Serves on a free local port.
    pub fn start(manners: &[String]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a local port is free");
        let address = listener.local_addr().expect("a bound socket has one");
        let shared = Arc::new(Shared {
            manners: manners.to_vec(),
            server: Mutex::new(Server::new(manners, String::new())),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let server = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if server.state().stopped {
                    break;
                }
                let server = server.clone();
                // A client that hangs up ends its connection; there is nobody to tell.
                std::thread::spawn(move || server.serve(&stream).unwrap_or_default());
            }
        });
        Self { address, shared }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The heads of the requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.shared.state().heads.clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.shared.state().stopped = true;
        // Wakes the accepting thread so that it sees the mark.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is(&self, word: &str) -> bool {
        self.manners.iter().any(|it| it == word)
    }

    fn to(&self) -> &str {
        let to = self.manners.iter().find_map(|it| it.strip_prefix("to="));
        to.unwrap_or("http://127.0.0.1:1/")
    }

    fn take(&self, request: &Request) -> Vec<Act> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.given.clone_from(&request.head);
        server.take(&request.body)
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let request = Request::read(stream)?;
        if request.head.is_empty() {
            return Ok(());
        }
        self.state().heads.push(request.head.clone());
        for (status, word) in [(401, "401"), (403, "403"), (404, "404"), (500, "500")] {
            if self.is(word) {
                let said = serde_json::json!({"error": request.head}).to_string();
                return answer(stream, status, "", &said);
            }
        }
        if self.is("hangs") || (request.is("DELETE") && self.is("no-goodbye")) {
            return till_gone(stream);
        }
        if self.is("slams") {
            return stream.shutdown(Shutdown::Both);
        }
        if self.is("html") {
            return answer(stream, 200, "content-type: text/html\r\n", "<p>Welcome</p>");
        }
        if self.is("redirects") {
            return answer(stream, 307, &format!("location: {}\r\n", self.to()), "");
        }
        match (self.is("legacy"), request.is("GET")) {
            (true, true) => self.stream(stream),
            (true, false) => self.posted(stream, &request),
            (false, true) => self.read_on(stream, &request),
            (false, false) if request.is("DELETE") => answer(stream, 200, "", ""),
            (false, false) => self.streamable(stream, &request),
        }
    }

    fn streamable(&self, stream: &TcpStream, request: &Request) -> std::io::Result<()> {
        if request.calls() {
            let mut state = self.state();
            state.refused += 1;
            let first = state.refused == 1;
            drop(state);
            if self.is("swamped") || (first && self.is("busy")) {
                return answer(stream, 429, "retry-after: 0\r\n", "not now");
            }
            if self.is("forgets") || (first && self.is("expires")) {
                return answer(stream, 404, "", "no such session");
            }
        }
        let acts = self.take(request);
        let message: serde_json::Value = serde_json::from_str(&request.body).unwrap_or_default();
        if message.get("method").is_none() || message.get("id").is_none() {
            for act in acts {
                if let Act::Say(text) = act {
                    self.state().late.push(text);
                    self.changed.notify_all();
                }
            }
            return answer(stream, 202, "", "");
        }
        let mut more = String::new();
        if request.body.contains("\"initialize\"") {
            let mut state = self.state();
            state.sessions += 1;
            more = format!("mcp-session-id: session-{}\r\n", state.sessions);
        }
        let says = acts.iter().filter_map(|act| match act {
            Act::Say(text) => Some(text.as_str()),
            Act::End(..) => None,
        });
        let says: Vec<&str> = says.collect();
        if acts.len() > says.len() {
            return stream.shutdown(Shutdown::Both);
        }
        let cuts = self.is("cuts") && request.calls();
        let plain = !["events", "split", "asks"].iter().any(|it| self.is(it));
        if let ([only], true, false) = (says.as_slice(), plain, cuts) {
            let more = format!("{more}content-type: application/json\r\n");
            return match self.is("drips") {
                true => slowly(stream, &more, only),
                false => answer(stream, 200, &more, only),
            };
        }
        let mut events = Events::begin(stream, &more, self.is("split"))?;
        if cuts {
            events.text("id: 7\nretry: 10\ndata:\n\n")?;
            let text = says.concat();
            self.state().rest = Some(text.clone());
            let half = text.find('é').unwrap_or(text.len() / 2) + 1;
            events.bytes(&[b"data: ", &text.as_bytes()[..half]].concat())?;
            return stream.shutdown(Shutdown::Both);
        }
        for text in says {
            events.event(text)?;
        }
        if self.is("asks") && request.calls() {
            let mut state = self.state();
            for _ in 0..1000 {
                if let Some(text) = state.late.pop() {
                    drop(state);
                    events.event(&text)?;
                    return events.end();
                }
                let time = Duration::from_millis(10);
                let woken = self.changed.wait_timeout(state, time);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        match self.is("silent") && request.calls() {
            true => till_gone(stream),
            false => events.end(),
        }
    }

    fn read_on(&self, stream: &TcpStream, request: &Request) -> std::io::Result<()> {
        let again = request.head.to_ascii_lowercase();
        let rest = again
            .contains("last-event-id: 7")
            .then(|| self.state().rest.take());
        match rest.flatten() {
            Some(text) => {
                let mut events = Events::begin(stream, "", false)?;
                events.event(&text)?;
                events.end()
            }
            None => answer(stream, 405, "", ""),
        }
    }

    fn stream(&self, stream: &TcpStream) -> std::io::Result<()> {
        let (send, says) = channel();
        let mut events = Events::begin(stream, "", self.is("split"))?;
        self.state().stream = Some(send);
        let at = match self.is("abroad") {
            true => self.to(),
            false => "/post?session=1",
        };
        events.text(&format!("event: endpoint\ndata: {at}\n\n"))?;
        for text in says {
            if text.is_empty() {
                break;
            }
            events.event(&text)?;
        }
        events.end()
    }

    fn posted(&self, stream: &TcpStream, request: &Request) -> std::io::Result<()> {
        let acts = self.take(request);
        let ends = self.is("gone") && request.calls();
        let state = self.state();
        let to = state.stream.as_ref();
        for act in acts {
            if let (Act::Say(text), false) = (act, ends) {
                to.map(|to| to.send(text)).transpose().unwrap_or_default();
            }
        }
        if ends {
            let end = to.map(|to| to.send(String::new()));
            end.transpose().unwrap_or_default();
        }
        drop(state);
        answer(stream, 202, "", "")
    }
}

/// A stream of events.
struct Events<'a> {
    stream: &'a TcpStream,
    split: bool,
}

impl<'a> Events<'a> {
    fn begin(mut stream: &'a TcpStream, more: &str, split: bool) -> std::io::Result<Self> {
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n{more}\r\n"
        )?;
        Ok(Self { stream, split })
    }

    fn event(&mut self, text: &str) -> std::io::Result<()> {
        self.text(&format!("event: message\ndata: {text}\n\n"))
    }

    fn text(&mut self, text: &str) -> std::io::Result<()> {
        let bytes = text.as_bytes();
        let at = bytes.iter().position(|byte| *byte >= 0x80);
        match at.filter(|_| self.split) {
            Some(at) => {
                self.bytes(&bytes[..=at])?;
                self.bytes(&bytes[at + 1..])
            }
            None => self.bytes(bytes),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let framed = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        self.stream.write_all(&framed)
    }

    fn end(&mut self) -> std::io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")?;
        self.stream.shutdown(Shutdown::Write)
    }
}

fn answer(mut stream: &TcpStream, status: u16, more: &str, body: &str) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-length: {}\r\n{more}\r\n",
        body.len()
    )?;
    stream.write_all(body.as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

fn slowly(mut stream: &TcpStream, more: &str, body: &str) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n{more}\r\n",
        body.len()
    );
    for byte in head.bytes().chain(body.bytes()) {
        stream.write_all(&[byte])?;
        // The point of it: slow.
        std::thread::sleep(Duration::from_micros(300));
    }
    stream.shutdown(Shutdown::Write)
}

/// Waits till the client closes its end.
fn till_gone(mut stream: &TcpStream) -> std::io::Result<()> {
    stream.read_to_end(&mut Vec::new()).map(drop)
}
