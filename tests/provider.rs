//! A scripted chat provider on a local port: the n-th request gets the n-th answer, and every
//! request is kept. It can cut, stall, reset and dribble. Plain std sockets, one thread a connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::json::{Value, json};

/// One step of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// These bytes of the body, as one write.
    Bytes(Vec<u8>),
    /// The same, one byte a write.
    Dribble(Vec<u8>),
    /// Silence for this long.
    Pause(Duration),
    /// Silence until the client closes; the fact is recorded.
    Hang,
    /// The connection is cut here, with no end of the body.
    Cut,
    /// As [`Step::Hang`], then a reset rather than a close.
    HangThenReset,
}

/// One answer: its head and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The content type.
    pub kind: &'static str,
    /// What follows.
    pub steps: Vec<Step>,
}

impl Answer {
    /// A stream of events: these pieces.
    pub fn stream(pieces: impl IntoIterator<Item = String>) -> Self {
        let steps = pieces
            .into_iter()
            .map(|piece| Step::Bytes(piece.into_bytes()));
        Self {
            status: 200,
            kind: "text/event-stream",
            steps: steps.collect(),
        }
    }

    /// A plain answer.
    pub fn plain(status: u16, kind: &'static str, body: &str) -> Self {
        Self {
            status,
            kind,
            steps: vec![Step::Bytes(body.into())],
        }
    }

    /// The same with one more step.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

/// One event with this payload.
pub fn data(payload: &Value) -> String {
    format!("data: {payload}\n\n")
}

/// A content delta.
pub fn text(text: &str) -> String {
    delta(json!({"content": text}))
}

/// A reasoning delta.
pub fn reasoning(text: &str) -> String {
    delta(json!({"reasoning_content": text}))
}

/// A tool call delta, whole.
pub fn call(index: u64, id: &str, tool: &str, arguments: &str) -> String {
    delta(
        json!({"tool_calls": [{"index": index, "id": id, "type": "function",
        "function": {"name": tool, "arguments": arguments}}]}),
    )
}

/// A delta.
pub fn delta(delta: Value) -> String {
    data(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

/// An empty delta with a finish reason.
pub fn finish(reason: &str) -> String {
    data(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

/// The end mark.
pub fn done() -> String {
    "data: [DONE]\n\n".into()
}

/// An answer that says this and stops.
pub fn say(words: &str) -> Answer {
    Answer::stream([text(words), finish("stop"), done()])
}

/// An answer that calls one tool.
pub fn tool(id: &str, name: &str, arguments: Value) -> Answer {
    calls(&[(id, name, &arguments.to_string())])
}

/// An answer that calls tools, their arguments as raw text.
pub fn calls(list: &[(&str, &str, &str)]) -> Answer {
    let mut pieces: Vec<_> = (0..)
        .zip(list)
        .map(|(index, (id, name, arguments))| call(index, id, name, arguments))
        .collect();
    pieces.extend([finish("tool_calls"), done()]);
    Answer::stream(pieces)
}

/// These pieces, then silence until the client closes.
pub fn hang(pieces: impl IntoIterator<Item = String>) -> Answer {
    Answer::stream(pieces).then(Step::Hang)
}

/// The server: stops when dropped.
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    answers: Vec<Answer>,
    requests: Vec<Value>,
    heads: Vec<String>,
    streaming: usize,
    most_streaming: usize,
    hung_up: usize,
    stopped: bool,
}

impl Provider {
    /// A server with these answers. When they are used up, the last one is given again.
    pub fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a local port is free");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let shared = Arc::new(Shared::default());
        shared.lock().answers = answers;
        let server = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if server.lock().stopped {
                    break;
                }
                let server = server.clone();
                // A client that hangs up ends its connection; there is nobody to tell.
                std::thread::spawn(move || server.serve(stream).unwrap_or_default());
            }
        });
        Self { address, shared }
    }

    /// What goes into `base_url`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.lock().requests.clone()
    }

    /// The heads of the requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.shared.lock().heads.clone()
    }

    /// The most answers that were streamed at once.
    pub fn most_streaming(&self) -> usize {
        self.shared.lock().most_streaming
    }

    /// Waits until this many hanging answers saw their client close.
    pub fn hung_up(&self, times: usize, within: Duration) -> bool {
        self.shared.wait(within, |state| state.hung_up >= times)
    }

    /// Waits until this many requests have come.
    pub fn requested(&self, times: usize, within: Duration) -> bool {
        self.shared
            .wait(within, |state| state.requests.len() >= times)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        // Wakes the accepting thread so that it sees the mark.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wait(&self, within: Duration, done: impl Fn(&State) -> bool) -> bool {
        let end = Instant::now() + within;
        let mut state = self.lock();
        while !done(&state) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = match self.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        true
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut head = String::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            head.push_str(&line);
        }
        if head.is_empty() {
            return Ok(());
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let answer = {
            let mut state = self.lock();
            let at = state
                .requests
                .len()
                .min(state.answers.len().saturating_sub(1));
            let answer = state.answers.get(at).cloned();
            state
                .requests
                .push(serde_json::from_slice(&body).unwrap_or(Value::Null));
            state.heads.push(head);
            state.streaming += 1;
            state.most_streaming = state.most_streaming.max(state.streaming);
            answer.unwrap_or_else(|| Answer::plain(500, "text/plain", "no script"))
        };
        self.changed.notify_all();
        let played = self.play(stream, &answer);
        self.update(|state| state.streaming -= 1);
        played
    }

    fn play(&self, mut stream: TcpStream, answer: &Answer) -> std::io::Result<()> {
        write!(
            stream,
            "HTTP/1.1 {} Scripted\r\ncontent-type: {}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n",
            answer.status, answer.kind
        )?;
        let chunk = |bytes: &[u8]| -> std::io::Result<()> {
            let framed = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
            (&stream).write_all(&framed)
        };
        for step in &answer.steps {
            match step {
                Step::Bytes(bytes) => chunk(bytes)?,
                Step::Dribble(bytes) => {
                    for byte in bytes {
                        chunk(std::slice::from_ref(byte))?;
                    }
                }
                Step::Pause(time) => std::thread::sleep(*time),
                Step::Cut => return stream.shutdown(Shutdown::Both),
                Step::Hang | Step::HangThenReset => {
                    // Returns when the client closes its end.
                    (&stream).read_to_end(&mut Vec::new()).unwrap_or_default();
                    self.update(|state| state.hung_up += 1);
                    if *step == Step::HangThenReset {
                        // Writing to a closed peer is answered by a reset on both sides.
                        let _ = (&stream).write_all(b"5\r\nreset\r\n");
                    }
                    return Ok(());
                }
            }
        }
        stream.write_all(b"0\r\n\r\n")?;
        stream.shutdown(Shutdown::Write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_order_and_requests_are_kept() {
        let provider = Provider::start(vec![say("one"), hang([text("two")])]);
        let mut heard = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(provider.address).unwrap();
            let body = "{\"n\":1}";
            write!(
                stream,
                "POST /v1 HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            let mut all = Vec::new();
            let mut buffer = [0; 4096];
            while !String::from_utf8_lossy(&all).contains("\"two\"") {
                match stream.read(&mut buffer).unwrap() {
                    0 => break,
                    read => all.extend_from_slice(&buffer[..read]),
                }
            }
            heard.push(String::from_utf8(all).unwrap());
        }
        assert!(
            heard[0].contains("\"one\"") && heard[0].ends_with("0\r\n\r\n"),
            "{}",
            heard[0]
        );
        assert!(heard[1].contains("\"two\""), "{}", heard[1]);
        assert!(provider.hung_up(1, Duration::from_secs(5)));
        assert_eq!(provider.requests(), [json!({"n": 1}), json!({"n": 1})]);
    }
}
