//! Frames as JSON: what a client says, and how to read what it hears.

pub use serde_json::{Value, json};

/// A request.
pub fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// A notification.
pub fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// A good answer to the agent's request `id`.
pub fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// A bad answer to the agent's request `id`.
pub fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// `initialize` of a client that can do nothing.
pub fn initialize(id: u64) -> Value {
    initialize_with(id, json!({}))
}

/// `initialize` of a client with these capabilities.
pub fn initialize_with(id: u64, capabilities: Value) -> Value {
    let params = json!({
        "protocolVersion": 1,
        "clientCapabilities": capabilities,
        "clientInfo": {"name": "tests", "version": "1"},
    });
    request(id, "initialize", params)
}

/// `session/new` in this directory.
pub fn new_session(id: u64, cwd: &str) -> Value {
    request(id, "session/new", json!({"cwd": cwd, "mcpServers": []}))
}

/// `session/prompt` with one block of text.
pub fn prompt(id: u64, session: &str, text: &str) -> Value {
    let block = json!({"type": "text", "text": text});
    request(
        id,
        "session/prompt",
        json!({"sessionId": session, "prompt": [block]}),
    )
}

/// `session/cancel`.
pub fn cancel(session: &str) -> Value {
    notification("session/cancel", json!({"sessionId": session}))
}

/// A frame as it goes over the wire.
pub fn line(message: &Value) -> Vec<u8> {
    let mut text = message.to_string();
    text.push('\n');
    text.into_bytes()
}

/// Bytes as JSON, if they are any. By what the library has for values: it is compiled there, optimised,
/// and what is made of its generic parts here is not.
pub fn read(bytes: &[u8]) -> Option<Value> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// The update in a `session/update` of this session; an empty session means any.
pub fn update<'a>(frame: &'a Value, session: &str) -> Option<&'a Value> {
    let params = frame.get("params")?;
    (frame["method"] == "session/update" && (session.is_empty() || params["sessionId"] == session))
        .then(|| &params["update"])
}

/// The text of every chunk of this kind in these frames, joined.
pub fn text_of(frames: &[Value], session: &str, kind: &str) -> String {
    frames
        .iter()
        .filter_map(|frame| update(frame, session))
        .filter(|update| update["sessionUpdate"] == kind)
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}

/// What the agent said, joined.
pub fn said(frames: &[Value], session: &str) -> String {
    text_of(frames, session, "agent_message_chunk")
}

/// The answer to request `id`.
pub fn answer_to(frames: &[Value], id: impl Into<Value>) -> Option<&Value> {
    let id = id.into();
    frames
        .iter()
        .find(|frame| frame.get("method").is_none() && frame["id"] == id)
}

/// The statuses that the tool calls ended with, in the order the calls were announced.
pub fn tool_ends(frames: &[Value], session: &str) -> Vec<String> {
    let mut calls: Vec<(String, String)> = Vec::new();
    for update in frames.iter().filter_map(|frame| update(frame, session)) {
        let (kind, id) = (&update["sessionUpdate"], update["toolCallId"].as_str());
        let Some(id) = id else { continue };
        if kind == "tool_call" && !calls.iter().any(|(known, _)| known == id) {
            calls.push((id.into(), String::new()));
        }
        if let (Some(status), Some(call)) = (
            update["status"].as_str(),
            calls.iter_mut().find(|(known, _)| known == id),
        ) {
            call.1 = status.into();
        }
    }
    calls.into_iter().map(|(_, status)| status).collect()
}
