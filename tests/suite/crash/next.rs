//! The process that comes next, and how far what it finds agrees with what was there.

use reasonix_tests::disk::Disk;
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::sim::Sim;

use super::known::picture;
use super::script::begin;

/// What the next process made of a session.
pub(super) struct Loaded {
    pub(super) answer: Value,
    pub(super) picture: Vec<String>,
}

/// Another process on a disk that a crash has left.
pub(super) struct Next {
    pub(super) sim: Sim,
    pub(super) id: u64,
}

impl Next {
    pub(super) fn on(disk: Disk) -> Self {
        let mut sim = begin(disk, 8);
        sim.ask(&json::initialize(9001));
        Self { sim, id: 1 }
    }

    pub(super) fn load(&mut self, session: &str) -> Loaded {
        self.id += 1;
        let from = self.sim.frames.len();
        let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
        let answer = self
            .sim
            .ask(&json::request(self.id, "session/load", params));
        let picture = picture(&self.sim.frames[from..], session);
        Loaded { answer, picture }
    }

    pub(super) fn inbox(&mut self, session: &str, method: &str, mut params: Value) -> Value {
        self.id += 1;
        params["sessionId"] = json!(session);
        let method = format!("_reasonix.io/session/inbox/{method}");
        let answer = self.sim.ask(&json::request(self.id, &method, params));
        answer
            .get("result")
            .cloned()
            .unwrap_or_else(|| panic!("{method}: {answer}"))
    }

    /// What is in an inbox: text and state of each item, in order.
    pub(super) fn items(&mut self, session: &str) -> Vec<(String, String)> {
        let list = self.inbox(session, "list", json!({}));
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        items
            .iter()
            .map(|item| (text(&item["preview"]), text(&item["state"])))
            .collect()
    }

    pub(super) fn say(&mut self, session: &str) -> Value {
        self.id += 1;
        self.sim
            .ask(&json::prompt(self.id, session, "say something new"))
    }
}

/// Lines that are no more than what recovery adds to a history that broke off.
pub(super) fn is_mending(line: &str) -> bool {
    (line.starts_with("tool_call_update ") && line.contains(" \"failed\" "))
        || line.starts_with("agent_message_chunk \n\n[")
}

/// How many lines of the whole picture have to be there: all before the first prompt that was not
/// answered.
pub(super) fn due(whole: &[String], open: Option<&str>) -> usize {
    let line = open.map(|text| format!("user_message_chunk {text}"));
    let at = line.and_then(|line| whole.iter().position(|other| *other == line));
    at.unwrap_or(whole.len())
}

/// The recovered picture is a beginning of the whole one, with all in it that was answered, and at
/// its end what recovery added.
#[track_caller]
pub(super) fn is_beginning(context: &str, left: &[String], whole: &[String], open: Option<&str>) {
    let same = left.iter().zip(whole).take_while(|(a, b)| a == b).count();
    assert!(
        same >= due(whole, open),
        "{context}: what was answered is missing: {left:#?}\nof {whole:#?}"
    );
    let rest = &left[same..];
    assert!(
        rest.iter().all(|line| is_mending(line)),
        "{context}: not a beginning: {rest:#?}\nbehind {:#?}",
        &left[..same]
    );
}
