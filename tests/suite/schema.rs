//! Ours and the official protocol are one: what official types write ours reads, and what ours writes
//! they read. That every frame of every test is official is a law of the exchange.

use std::sync::OnceLock;

use agent_client_protocol_schema::v1 as acp;
use proptest::prelude::*;
use reasonix_core::agent::Config;
use reasonix_core::protocol::schema as ours;
use reasonix_tests::chaos::{self, Cut};
use reasonix_tests::court::Court;
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::sim::{Card, Sim, config};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[test]
fn every_frame_of_a_long_exchange_is_official() {
    let capabilities =
        json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": false});
    let mut sim = Sim::new(config(), crate::machine::world());
    sim.cards = vec![Card::Choose("allow_always")];
    let session = sim.open(capabilities, "/w");
    let mut id = 0;
    let mut ask = |sim: &mut Sim, method: &str, params: Value| {
        id += 1;
        sim.ask(&json::request(id, method, params))
    };
    for word in [
        "say", "think", "read", "write", "edit", "test", "fail", "flaky", "/status",
    ] {
        let block = json!([{"type": "text", "text": word}]);
        ask(
            &mut sim,
            "session/prompt",
            json!({"sessionId": session, "prompt": block}),
        );
    }
    let on = json!({"sessionId": session});
    ask(
        &mut sim,
        "session/set_mode",
        json!({"sessionId": session, "modeId": "plan"}),
    );
    for (option, value) in [
        ("tool_approval", "auto"),
        ("tool_approval", "nobody"),
        ("mode", "normal"),
    ] {
        let params = json!({"sessionId": session, "configId": option, "value": value});
        ask(&mut sim, "session/set_config_option", params);
    }
    ask(&mut sim, "session/list", json!({}));
    ask(&mut sim, "authenticate", json!({"methodId": "nobody"}));
    ask(&mut sim, "session/close", on.clone());
    ask(&mut sim, "session/delete", on.clone());
    ask(
        &mut sim,
        "session/prompt",
        json!({"sessionId": session, "prompt": []}),
    );
    sim.send_bytes(b"nonsense\n[]\n{\"id\":5}\n");
    sim.finish();
    sim.laws.check();
    assert!(sim.frames.len() > 40, "a short exchange says little");
}

/// Every frame of a client that does anything, in any order.
fn judge_chaos(config: Config, data: &[u8]) -> usize {
    let mut court = Court::default();
    let mut judged = 0;
    for line in chaos::run(config, data, Cut::Whole) {
        if let Some(sent) = line.strip_prefix(chaos::SENT)
            && let Ok(frame) = serde_json::from_str(sent)
        {
            court.sent(&frame);
        }
        if let Some(heard) = line.strip_prefix("Transmit ") {
            let frame = serde_json::from_str(heard).expect("a frame is JSON");
            court
                .heard(&frame)
                .unwrap_or_else(|why| panic!("{why}: {heard}"));
            judged += 1;
        }
    }
    judged
}

/// Draws values that fit a JSON schema, by the bytes of a generated case.
struct Draw<'a> {
    root: &'a Value,
    dice: &'a [u8],
}

impl Draw<'_> {
    fn roll(&mut self, sides: usize) -> usize {
        let Some((first, rest)) = self.dice.split_first() else {
            return 0;
        };
        self.dice = rest;
        usize::from(*first) % sides.max(1)
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if let Some(name) = schema["$ref"].as_str() {
            let target = &self.root["$defs"][name.rsplit('/').next().unwrap_or_default()];
            return self.with_siblings(schema, target, depth);
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return values[self.roll(values.len())].clone();
        }
        for choice in ["oneOf", "anyOf"] {
            if let Some(options) = schema[choice].as_array() {
                let option = &options[self.roll(options.len())];
                return self.with_siblings(schema, option, depth);
            }
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let mut whole = self.object(schema, depth);
            for part in parts {
                merge(&mut whole, self.value(part, depth));
            }
            return whole;
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[self.roll(kinds.len())].as_str(),
            one => one.as_str(),
        };
        match kind {
            Some("object") => self.object(schema, depth),
            Some("array") => {
                let items = if depth > 6 { 0 } else { self.roll(3) };
                (0..items)
                    .map(|_| self.value(&schema["items"], depth + 1))
                    .collect()
            }
            Some("string") => {
                json!(["", "a", "é🙂\n\"\\", "/w/a.txt", "2025-01-01T00:00:00Z"][self.roll(5)])
            }
            Some("integer") => json!([0, 1, 7, 65535][self.roll(4)]),
            Some("number") => json!([0.5, 1.0, 12.25][self.roll(3)]),
            Some("boolean") => json!(self.roll(2) == 0),
            Some("null") => Value::Null,
            Some(_) | None if schema.get("properties").is_some() => self.object(schema, depth),
            Some(_) | None => json!({"k": self.roll(9)}),
        }
    }

    /// A drawn value, with what the schema around it says of the same object.
    fn with_siblings(&mut self, around: &Value, inner: &Value, depth: usize) -> Value {
        let mut value = self.value(inner, depth + 1);
        if around.get("properties").is_some() {
            merge(&mut value, self.object(around, depth));
        }
        value
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut members = serde_json::Map::new();
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let wanted = required.contains(&json!(name));
            if wanted || (depth < 6 && self.roll(2) == 0) {
                members.insert(name.clone(), self.value(member, depth + 1));
            }
        }
        Value::Object(members)
    }
}

fn merge(into: &mut Value, other: Value) {
    if let (Value::Object(into), Value::Object(other)) = (into, other) {
        into.extend(other);
    }
}

/// Draws an official value; ours must read it, and what ours writes must be the same to the
/// official type. False if the bytes drew nothing the official type takes.
fn same<T, U>(name: &str, root: &Value, dice: &[u8]) -> bool
where
    T: DeserializeOwned + Serialize,
    U: DeserializeOwned + Serialize,
{
    let drawn = Draw { root, dice }.value(root, 0);
    let Ok(official) = T::deserialize(&drawn) else {
        return false;
    };
    let text = serde_json::to_string(&official).expect("an official value is JSON");
    let ours: U = serde_json::from_str(&text)
        .unwrap_or_else(|fault| panic!("{name}: ours does not read it: {fault}\n{text}"));
    let written = serde_json::to_string(&ours).expect("a value of ours is JSON");
    let again: T = serde_json::from_str(&written).unwrap_or_else(|fault| {
        panic!("{name}: not official any more: {fault}\n{text}\n{written}")
    });
    let [before, after] = [&official, &again]
        .map(|value| without_null_meta(serde_json::to_value(value).expect("it is JSON")));
    assert_eq!(before, after, "{name}: something was lost\n{written}");
    true
}

/// Extra data that is null is no extra data; everywhere else null and absent differ.
fn without_null_meta(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(name, value)| name != "_meta" || !value.is_null())
            .map(|(name, value)| (name, without_null_meta(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_null_meta).collect(),
        plain => plain,
    }
}

macro_rules! same {
    ($dice:expr; $($name:ident)*) => {
        [$({
            // A schema takes longer to make than a hundred values to draw.
            static SCHEMA: OnceLock<Value> = OnceLock::new();
            let schema = SCHEMA.get_or_init(|| schemars::schema_for!(acp::$name).into());
            same::<acp::$name, ours::$name>(stringify!($name), schema, $dice)
        }),*]
    };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_frame_to_a_client_that_does_anything_is_official(
        data in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        judge_chaos(config(), &data);
    }

    #[test]
    fn every_official_message_is_ours_too(dice in prop::collection::vec(any::<u8>(), 0..160)) {
        let drawn = same!(&dice;
            InitializeRequest InitializeResponse AuthenticateRequest NewSessionRequest NewSessionResponse
            LoadSessionRequest ResumeSessionRequest ListSessionsRequest ListSessionsResponse CloseSessionRequest
            DeleteSessionRequest PromptRequest PromptResponse CancelNotification SetSessionModeRequest
            SetSessionConfigOptionRequest SetSessionConfigOptionResponse SessionNotification
            RequestPermissionRequest RequestPermissionResponse ReadTextFileRequest ReadTextFileResponse
            WriteTextFileRequest CreateTerminalRequest CreateTerminalResponse TerminalOutputRequest
            TerminalOutputResponse WaitForTerminalExitRequest WaitForTerminalExitResponse
            ReleaseTerminalRequest KillTerminalRequest
        );
        // Most draws must be of use, or this says little.
        prop_assert!(drawn.iter().filter(|drawn| **drawn).count() * 2 > drawn.len(), "{drawn:?}");
    }
}
