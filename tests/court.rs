//! Whether what an agent sends may be sent to this client: its frames are those of the protocol, its
//! answers are to what was asked, and nothing goes to a client that did not declare it. Knows one
//! exchange, and frames only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::official::{Part, judge};
use crate::sense;

/// Follows one exchange and judges each frame of the agent.
#[derive(Clone, Debug, Default)]
pub struct Court {
    /// The methods of the requests that are open, by their ids.
    asked: BTreeMap<String, Vec<String>>,
    /// What the client declared, in any `initialize`.
    declared: BTreeSet<Gate>,
}

/// Something that only clients get that declared it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gate {
    ReadFile,
    WriteFile,
    Terminal,
    TerminalLogin,
    Form,
    Page,
    Boolean,
    Plan,
    Subagents,
    Notices,
    Compaction,
    StatusUpdates,
}

/// Where a client declares something, and the value of it that counts: `true`, or any object.
const GATES: [(Gate, &str, bool); 12] = [
    (Gate::ReadFile, "/fs/readTextFile", true),
    (Gate::WriteFile, "/fs/writeTextFile", true),
    (Gate::Terminal, "/terminal", true),
    (Gate::TerminalLogin, "/auth/terminal", true),
    (Gate::Form, "/elicitation/form", false),
    (Gate::Page, "/elicitation/url", false),
    (Gate::Boolean, "/session/configOptions/boolean", false),
    (Gate::Plan, "/plan", false),
    (Gate::Subagents, "/subagents", false),
    (Gate::Notices, "/session/notices", false),
    (Gate::Compaction, "/session/compaction", false),
    (
        Gate::StatusUpdates,
        "/_meta/reasonix.io/statusUpdates/supported",
        true,
    ),
];

impl Court {
    /// The client sent this.
    pub fn sent(&mut self, frame: &Value) {
        let (Some(id), Some(method)) = (frame.get("id"), frame["method"].as_str()) else {
            return;
        };
        let asked = self.asked.entry(id.to_string()).or_default();
        asked.push(method.into());
        if method == "initialize" {
            let capabilities = &frame["params"]["clientCapabilities"];
            let counts = |(_, at, flag): &&(Gate, &str, bool)| match capabilities.pointer(at) {
                Some(Value::Bool(true)) => *flag,
                Some(Value::Object(_)) => !flag,
                _ => false,
            };
            let declared = GATES.iter().filter(counts);
            self.declared.extend(declared.map(|(gate, ..)| *gate));
        }
    }

    /// The agent sent this.
    ///
    /// # Errors
    ///
    /// Why it may not.
    pub fn heard(&mut self, frame: &Value) -> Result<(), String> {
        self.heard_line(frame, frame.to_string().as_bytes())
    }

    /// The same, of a frame that went over the wire as this line.
    ///
    /// # Errors
    ///
    /// Why it may not.
    pub fn heard_line(&mut self, frame: &Value, line: &[u8]) -> Result<(), String> {
        let members = frame.as_object().ok_or("a frame is an object")?;
        let has = |name: &str| frame.get(name).is_some();
        if frame["jsonrpc"] != "2.0" {
            return Err("a frame says which JSON-RPC it is".into());
        }
        let known = ["id", "method", "params", "result", "error"];
        let known = known.iter().filter(|name| has(name)).count();
        if known + 1 != members.len() {
            return Err("a frame has a member that is not of JSON-RPC".into());
        }
        match (frame.get("method"), has("id"), has("params")) {
            (Some(method), _, true) if !has("result") && !has("error") => {
                let method = method.as_str().ok_or("a method is a text")?;
                if has("id") && !matches!(frame["id"], Value::String(_) | Value::Number(_)) {
                    return Err("a request of the agent has an id of its own".into());
                }
                if (has("id")) == told(method) {
                    return Err("a notification has no id, a request has one".into());
                }
                self.check(Part::Params, method, &frame["params"], line)
            }
            (None, true, false) if has("result") != has("error") => self.answered(frame, line),
            _ => Err("neither a request, nor a notification, nor an answer".into()),
        }
    }

    fn answered(&mut self, frame: &Value, line: &[u8]) -> Result<(), String> {
        let id = frame["id"].to_string();
        let asked = self.asked.get_mut(&id);
        if let Some(error) = frame.get("error") {
            // Of two with one id the second is refused.
            asked.and_then(Vec::pop);
            judge(Part::Error, "", error)?;
            return sense::of_error(error);
        }
        let asked = asked.filter(|asked| !asked.is_empty());
        let method = asked.ok_or("a result that nobody asked for")?.remove(0);
        self.check(Part::Result, &method, &frame["result"], line)
    }

    /// It is as it should be, and everything in it that needs a declaration has it.
    fn check(&self, part: Part, method: &str, value: &Value, line: &[u8]) -> Result<(), String> {
        let needs = judged(part, method, value, line)?;
        let missing = needs.into_iter().find(|gate| !self.declared.contains(gate));
        match missing {
            Some(gate) => Err(format!("the client did not declare {gate:?}")),
            None => Ok(()),
        }
    }
}

/// Lines that are kept, of those found good.
const KEPT: usize = 1 << 17;

/// What this needs, if it may be said at all. What was said before, word for word, is not judged
/// again: thousands of exchanges begin alike.
fn judged(part: Part, method: &str, value: &Value, line: &[u8]) -> Result<Vec<Gate>, String> {
    static GOOD: Mutex<BTreeMap<[u8; 32], Vec<Gate>>> = Mutex::new(BTreeMap::new());
    // Another test that failed says nothing of this one.
    let good = || GOOD.lock().unwrap_or_else(PoisonError::into_inner);
    let mut key = Sha256::new();
    for part in [&[part as u8][..], method.as_bytes(), b"\n", line] {
        key.update(part);
    }
    let key: [u8; 32] = key.finalize().into();
    if let Some(needs) = good().get(&key) {
        return Ok(needs.clone());
    }
    judge(part, method, value)?;
    sense::of(method, value)?;
    let needs = needed(method, value);
    let mut good = good();
    if good.len() < KEPT {
        good.insert(key, needs.clone());
    }
    Ok(needs)
}

/// Whether a method of the agent is a notification.
fn told(method: &str) -> bool {
    ["session/update", "elicitation/complete", "$/cancel_request"].contains(&method)
        || method.ends_with("_update")
}

/// What a client must have declared to get this.
fn needed(method: &str, value: &Value) -> Vec<Gate> {
    let mut needs = Vec::new();
    match method {
        "fs/read_text_file" => needs.push(Gate::ReadFile),
        "fs/write_text_file" => needs.push(Gate::WriteFile),
        "elicitation/create" if value["mode"] == "url" => needs.push(Gate::Page),
        "elicitation/create" => needs.push(Gate::Form),
        "elicitation/complete" => needs.push(Gate::Page),
        "session/update" => update(&value["update"], &mut needs),
        "session/request_permission" => content(&value["toolCall"], &mut needs),
        "initialize" => {
            let methods = value["authMethods"].as_array();
            if methods.is_some_and(|all| all.iter().any(|one| one["type"] == "terminal")) {
                needs.push(Gate::TerminalLogin);
            }
        }
        _ if method.starts_with("terminal/") => needs.push(Gate::Terminal),
        _ if method.starts_with('_') && told(method) => needs.push(Gate::StatusUpdates),
        _ => options(value, &mut needs),
    }
    needs
}

fn update(update: &Value, needs: &mut Vec<Gate>) {
    match update["sessionUpdate"].as_str().unwrap_or_default() {
        "plan_update" | "plan_removed" => needs.push(Gate::Plan),
        "notice" => needs.push(Gate::Notices),
        "compaction_update" | "compaction_summary_chunk" => needs.push(Gate::Compaction),
        "subagent_update" | "session_message" | "session_message_chunk" => {
            needs.push(Gate::Subagents);
        }
        "config_option_update" => options(update, needs),
        "tool_call" | "tool_call_update" => content(update, needs),
        _ => {}
    }
}

fn content(call: &Value, needs: &mut Vec<Gate>) {
    for item in call["content"].as_array().into_iter().flatten() {
        match item["type"].as_str() {
            Some("session") => needs.push(Gate::Subagents),
            Some("terminal") => needs.push(Gate::Terminal),
            _ => {}
        }
    }
}

fn options(value: &Value, needs: &mut Vec<Gate>) {
    let options = value["configOptions"].as_array();
    if options.is_some_and(|all| all.iter().any(|option| option["type"] == "boolean")) {
        needs.push(Gate::Boolean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{self, json};

    /// What the court says of `frame`, sent to a client with these capabilities that had asked for
    /// a session as 2.
    fn verdict(capabilities: Value, frame: &Value) -> Result<(), String> {
        let mut court = Court::default();
        court.sent(&json::initialize_with(1, capabilities));
        court.sent(&json::new_session(2, "/w"));
        court.heard(frame)
    }

    #[test]
    fn what_needs_a_declaration_is_only_for_clients_that_made_it() {
        let on = |more: Value| {
            let mut params = json!({"sessionId": "s"});
            params
                .as_object_mut()
                .expect("one")
                .extend(more.as_object().cloned().expect("one"));
            params
        };
        let update =
            |update: Value| json::notification("session/update", on(json!({"update": update})));
        let call = |content: Value| {
            update(
                json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "content": [content]}),
            )
        };
        let form = json!({"type": "object", "properties": {}});
        let boolean = json!([{"id": "o", "name": "O", "type": "boolean", "currentValue": true}]);
        let ask = |method: &str, more: Value| json::request(1, method, on(more));
        let told = json!({
            "schemaVersion": 1, "sessionId": "s", "servers": []
        });
        for (declares, frame) in [
            (
                json!({"fs": {"readTextFile": true}}),
                ask("fs/read_text_file", json!({"path": "/a"})),
            ),
            (
                json!({"fs": {"writeTextFile": true}}),
                ask("fs/write_text_file", json!({"path": "/a", "content": ""})),
            ),
            (
                json!({"terminal": true}),
                ask("terminal/create", json!({"command": "ls"})),
            ),
            (
                json!({"terminal": true}),
                ask("terminal/release", json!({"terminalId": "t"})),
            ),
            (
                json!({"terminal": true}),
                call(json!({"type": "terminal", "terminalId": "t"})),
            ),
            (
                json!({"subagents": {}}),
                call(json!({"type": "session", "sessionId": "c"})),
            ),
            (
                json!({"subagents": {}}),
                update(json!({"sessionUpdate": "subagent_update", "sessionId": "c"})),
            ),
            (
                json!({"plan": {}}),
                update(json!({"sessionUpdate": "plan_removed", "planId": "p"})),
            ),
            (
                json!({"session": {"notices": {}}}),
                update(json!({"sessionUpdate": "notice", "severity": "info", "title": "t"})),
            ),
            (
                json!({"session": {"compaction": {}}}),
                update(
                    json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress"}),
                ),
            ),
            (
                json!({"session": {"configOptions": {"boolean": {}}}}),
                update(
                    json!({"sessionUpdate": "config_option_update", "configOptions": boolean.clone()}),
                ),
            ),
            (
                json!({"session": {"configOptions": {"boolean": {}}}}),
                json::result(
                    &json!(2),
                    json!({"sessionId": "s", "configOptions": boolean}),
                ),
            ),
            (
                json!({"elicitation": {"form": {}}}),
                ask(
                    "elicitation/create",
                    json!({"mode": "form", "message": "m", "requestedSchema": form}),
                ),
            ),
            (
                json!({"elicitation": {"url": {}}}),
                ask(
                    "elicitation/create",
                    json!({"mode": "url", "message": "m", "elicitationId": "e", "url": "https://x.test"}),
                ),
            ),
            (
                json!({"elicitation": {"url": {}}}),
                json::notification("elicitation/complete", json!({"elicitationId": "e"})),
            ),
            (
                json!({"_meta": {"reasonix.io": {"statusUpdates": {"supported": true}}}}),
                json::notification("_reasonix.io/session/mcpStatus_update", told),
            ),
        ] {
            assert_eq!(verdict(declares.clone(), &frame), Ok(()), "{frame}");
            let refused = verdict(json!({"fs": {}, "elicitation": {}, "session": {}}), &frame);
            assert!(refused.is_err_and(|why| why.contains("declare")), "{frame}");
            // What is not as it should be declares nothing.
            let text = declares
                .to_string()
                .replace("{}", "true")
                .replace(":true", ":\"yes\"");
            let wrong = serde_json::from_str(&text).expect("json");
            assert!(verdict(wrong, &frame).is_err(), "{text}: {frame}");
        }
    }

    #[test]
    fn a_frame_is_a_request_a_notification_or_an_answer_to_what_was_asked() {
        let opened = json::result(&json!(2), json!({"sessionId": "s"}));
        assert_eq!(verdict(json!({}), &opened), Ok(()));
        let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}});
        let chunk =
            json::notification("session/update", json!({"sessionId": "s", "update": chunk}));
        assert_eq!(verdict(json!({}), &chunk), Ok(()));
        let with = |frame: &Value, name: &str, value: Value| {
            let mut frame = frame.clone();
            frame[name] = value;
            frame
        };
        for frame in [
            json!([opened.clone()]),
            with(&opened, "jsonrpc", json!("1.0")),
            with(&opened, "zzz", json!(1)),
            with(&opened, "id", json!("2")),
            with(&opened, "id", json!(3)),
            with(&opened, "error", json!({"code": 1, "message": "m"})),
            with(&opened, "result", json!({})),
            with(&chunk, "id", json!(1)),
            with(&chunk, "method", json!("session/updated")),
            with(&chunk, "method", json!("_session/update")),
            json!({"jsonrpc": "2.0", "method": "session/update"}),
            json!({"jsonrpc": "2.0", "id": 1}),
            json::request(
                Value::Null,
                "fs/read_text_file",
                json!({"sessionId": "s", "path": "/a"}),
            ),
        ] {
            let capabilities = json!({"fs": {"readTextFile": true}});
            assert!(verdict(capabilities, &frame).is_err(), "{frame}");
        }
    }
}
