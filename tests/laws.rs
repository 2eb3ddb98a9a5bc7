//! Laws that hold of every exchange, whoever made it: what a client sent and what it heard. Knows
//! frames only, so the same laws judge a simulated agent and a program on pipes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::court::Court;
use crate::json;

/// Listens to both directions and keeps what it saw wrong.
#[derive(Debug, Default)]
pub struct Laws {
    court: Court,
    open: BTreeMap<String, Open>,
    sessions: BTreeSet<String>,
    /// Ids of malformed requests: they may be answered.
    malformed: BTreeSet<String>,
    asked: BTreeSet<String>,
    cards: BTreeMap<(String, String), u8>,
    closed: bool,
    broken: Vec<String>,
}

/// A request of the client that waits for its answer.
#[derive(Debug, Default)]
struct Open {
    answers_due: u32,
    /// The session it keeps busy: a prompt, or a load that replays.
    busies: Option<String>,
    opens: bool,
}

/// Updates that belong to a turn or a replay.
const IN_TURN: [&str; 6] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
];

impl Laws {
    /// The client sent this line.
    pub fn sent(&mut self, bytes: &[u8]) {
        let Some(frame) = json::read(bytes) else {
            return;
        };
        self.court.sent(&frame);
        let Some(id @ (Value::String(_) | Value::Number(_))) = frame.get("id") else {
            return;
        };
        let Some(method) = frame["method"]
            .as_str()
            .filter(|_| frame["jsonrpc"] == "2.0")
        else {
            self.malformed.insert(id.to_string());
            return;
        };
        let open = self.open.entry(id.to_string()).or_default();
        open.answers_due += 1;
        let session = frame["params"]["sessionId"].as_str().map(String::from);
        match method {
            "session/prompt" | "session/load" if open.answers_due == 1 => {
                open.busies = session.clone();
            }
            "session/new" if open.answers_due == 1 => open.opens = true,
            _ => {}
        }
        if matches!(method, "session/load" | "session/resume") {
            self.sessions.extend(session);
        }
    }

    /// The client sent these bytes by a way of its own: what is answered to them is judged too, but
    /// they need no answer.
    pub fn sent_raw(&mut self, bytes: &[u8]) {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        for line in bytes.split(|&byte| byte == b'\n') {
            if let Some(frame) = json::read(line) {
                self.court.sent(&frame);
            }
        }
    }

    /// The agent sent this line; gives it as JSON, if it is any. Panics at once if that is not what
    /// the protocol has, or not for this client.
    #[track_caller]
    pub fn heard(&mut self, bytes: &[u8]) -> Option<Value> {
        let frame = json::read(bytes);
        if let Some(frame) = &frame
            && let Err(why) = self.court.heard_line(frame, bytes)
        {
            panic!("{why}: {}", String::from_utf8_lossy(bytes));
        }
        self.follow(frame.as_ref(), bytes);
        frame
    }

    fn follow(&mut self, frame: Option<&Value>, bytes: &[u8]) {
        if self.closed {
            self.break_with("something was sent after the end", bytes);
        }
        let end = memchr::memchr(b'\n', bytes);
        if end.is_none_or(|end| end + 1 != bytes.len()) {
            self.break_with("a frame is not exactly one line", bytes);
        }
        let Some(frame) = frame else {
            return self.break_with("a frame is not JSON", bytes);
        };
        if frame["jsonrpc"] != "2.0" {
            self.break_with("a frame is not JSON-RPC 2.0", bytes);
        }
        match (frame.get("method"), frame.get("id")) {
            (None, Some(id)) => self.answered(id, frame, bytes),
            (Some(_), Some(id)) => {
                if !self.asked.insert(id.to_string()) {
                    self.break_with("an id was used for two requests", bytes);
                }
            }
            (Some(method), None) if method == "session/update" => self.updated(frame, bytes),
            (Some(_), None) => {}
            (None, None) => self.break_with("neither a request nor an answer", bytes),
        }
    }

    /// The agent closed the connection.
    pub fn closed(&mut self) {
        self.closed = true;
        let open: Vec<_> = self
            .open
            .iter()
            .filter(|(_, open)| open.answers_due > 0)
            .map(|(id, _)| id.clone())
            .collect();
        if !open.is_empty() {
            self.broken
                .push(format!("requests were left without an answer: {open:?}"));
        }
    }

    /// Requests that were sent and not answered yet.
    pub fn unanswered(&self) -> Vec<&str> {
        self.open
            .iter()
            .filter(|(_, open)| open.answers_due > 0)
            .map(|(id, _)| id.as_str())
            .collect()
    }

    /// Panics if a law was broken.
    #[track_caller]
    pub fn check(&self) {
        assert!(self.broken.is_empty(), "laws broken: {:#?}", self.broken);
    }

    fn answered(&mut self, id: &Value, frame: &Value, bytes: &[u8]) {
        if frame.get("result").is_some() == frame.get("error").is_some() {
            self.break_with("an answer needs a result or an error", bytes);
        }
        if id.is_null() {
            return;
        }
        let key = id.to_string();
        match self.open.get_mut(&key) {
            Some(open) if open.answers_due > 0 => {
                open.answers_due -= 1;
                if open.opens
                    && let Some(session) = frame["result"]["sessionId"].as_str()
                {
                    self.sessions.insert(session.into());
                }
                if open.answers_due == 0 {
                    self.open.remove(&key);
                }
            }
            _ if self.malformed.remove(&key) => {}
            _ => self.break_with("an answer that nobody waits for", bytes),
        }
    }

    fn updated(&mut self, frame: &Value, bytes: &[u8]) {
        let session = frame["params"]["sessionId"].as_str().unwrap_or_default();
        let update = &frame["params"]["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        if !self.sessions.contains(session) {
            self.break_with("an update for a session the client does not know", bytes);
        }
        let busy = self
            .open
            .values()
            .any(|open| open.busies.as_deref() == Some(session));
        // What the agent itself has to say belongs to no turn.
        let notice = !update["_meta"]["reasonix.io"]["notice"].is_null();
        if IN_TURN.contains(&kind) && !busy && !notice {
            self.break_with("an update of a turn that is over", bytes);
        }
        if let ("tool_call" | "tool_call_update", Some(id)) = (kind, update["toolCallId"].as_str())
        {
            let key = (session.to_string(), id.to_string());
            let before = self.cards.get(&key).copied();
            if kind == "tool_call_update" && before.is_none() {
                self.break_with("an update of a tool call that was not announced", bytes);
            }
            let rank = match update["status"].as_str() {
                None => before.unwrap_or(0),
                Some("pending") => 0,
                Some("in_progress") => 1,
                Some("completed" | "failed") => 2,
                Some(_) => return self.break_with("an unknown status", bytes),
            };
            // A replay announces a call again, with the status it had.
            if kind == "tool_call_update" && before.is_some_and(|before| rank < before) {
                self.break_with("the status of a tool call went back", bytes);
            }
            self.cards.insert(key, rank);
        }
    }

    fn break_with(&mut self, what: &str, bytes: &[u8]) {
        let shown = &bytes[..bytes.len().min(400)];
        self.broken
            .push(format!("{what}: {}", String::from_utf8_lossy(shown)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(exchange: &[(bool, Value)]) -> Vec<String> {
        let mut laws = Laws::default();
        for (sent, frame) in exchange {
            match sent {
                true => laws.sent(&json::line(frame)),
                false => laws.follow(Some(frame), &json::line(frame)),
            }
        }
        laws.broken
    }

    #[test]
    fn an_honest_exchange_breaks_nothing_and_each_fault_is_seen() {
        let chunk = |session: &str| {
            json::notification(
                "session/update",
                json::json!({"sessionId": session, "update": {
                    "sessionUpdate": "agent_message_chunk",
                    "content": {"type": "text", "text": "x"}}}),
            )
        };
        let card = |kind: &str, status: &str| {
            json::notification(
                "session/update",
                json::json!({"sessionId": "s", "update": {
                    "sessionUpdate": kind, "toolCallId": "c", "title": "t", "status": status}}),
            )
        };
        let opened = [
            (true, json::new_session(1, "/w")),
            (
                false,
                json::result(&1.into(), json::json!({"sessionId": "s"})),
            ),
            (true, json::prompt(2, "s", "hi")),
            (false, chunk("s")),
        ];
        let stop = (
            false,
            json::result(&2.into(), json::json!({"stopReason": "end_turn"})),
        );
        let with = |more: &[(bool, Value)]| broken(&[&opened[..], more].concat());
        assert_eq!(with(std::slice::from_ref(&stop)), Vec::<String>::new());
        for (more, what) in [
            (vec![stop.clone(), stop.clone()], "nobody waits"),
            (vec![stop.clone(), (false, chunk("s"))], "turn that is over"),
            (vec![(false, chunk("t"))], "does not know"),
            (
                vec![(false, card("tool_call_update", "failed"))],
                "not announced",
            ),
            (
                vec![
                    (false, card("tool_call", "pending")),
                    (false, card("tool_call_update", "completed")),
                    (false, card("tool_call_update", "in_progress")),
                ],
                "went back",
            ),
        ] {
            let broken = with(&more);
            assert!(
                broken.iter().any(|b| b.contains(what)),
                "{what}: {broken:?}"
            );
        }
    }
}
