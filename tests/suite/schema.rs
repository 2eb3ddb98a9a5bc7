//! Every frame of ours is one of the official protocol: it parses as the type of the official crate
//! and fits the JSON schema that crate makes of itself.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1 as acp;
use jsonschema::Validator;
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::sim::{Card, Sim, config};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// Checks one `params` or `result` against the official type and its schema.
struct Judge {
    validator: Validator,
    parse: fn(&Value) -> Result<(), serde_json::Error>,
}

impl Judge {
    fn of<T: JsonSchema + DeserializeOwned>() -> Self {
        let schema = schemars::schema_for!(T);
        Self {
            validator: jsonschema::validator_for(schema.as_value()).expect("a schema of the crate"),
            parse: |value| T::deserialize(value).map(drop),
        }
    }

    #[track_caller]
    fn check(&self, what: &str, value: &Value) {
        if let Err(fault) = (self.parse)(value) {
            panic!("{what} does not parse as the official type: {fault}\n{value:#}");
        }
        let faults: Vec<_> = self
            .validator
            .iter_errors(value)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert!(
            faults.is_empty(),
            "{what} does not fit the schema: {faults:#?}\n{value:#}"
        );
    }
}

/// What the agent sends, by method: results of its answers and params of its requests.
struct Court {
    results: BTreeMap<&'static str, Judge>,
    params: BTreeMap<&'static str, Judge>,
}

impl Court {
    fn new() -> Self {
        Self {
            results: BTreeMap::from([
                ("initialize", Judge::of::<acp::InitializeResponse>()),
                ("authenticate", Judge::of::<acp::AuthenticateResponse>()),
                ("session/new", Judge::of::<acp::NewSessionResponse>()),
                ("session/load", Judge::of::<acp::LoadSessionResponse>()),
                ("session/resume", Judge::of::<acp::ResumeSessionResponse>()),
                ("session/list", Judge::of::<acp::ListSessionsResponse>()),
                ("session/close", Judge::of::<acp::CloseSessionResponse>()),
                ("session/delete", Judge::of::<acp::DeleteSessionResponse>()),
                ("session/prompt", Judge::of::<acp::PromptResponse>()),
                (
                    "session/set_mode",
                    Judge::of::<acp::SetSessionModeResponse>(),
                ),
                (
                    "session/set_config_option",
                    Judge::of::<acp::SetSessionConfigOptionResponse>(),
                ),
            ]),
            params: BTreeMap::from([
                ("session/update", Judge::of::<acp::SessionNotification>()),
                (
                    "session/request_permission",
                    Judge::of::<acp::RequestPermissionRequest>(),
                ),
                ("fs/read_text_file", Judge::of::<acp::ReadTextFileRequest>()),
                (
                    "fs/write_text_file",
                    Judge::of::<acp::WriteTextFileRequest>(),
                ),
            ]),
        }
    }

    /// Judges every frame; gives how many were judged by their method.
    fn judge(&self, frames: &[Value], asked: &BTreeMap<String, String>) -> usize {
        let error = Judge::of::<acp::Error>();
        let mut judged = 0;
        for frame in frames {
            if let Some(fault) = frame.get("error") {
                error.check("an error", fault);
                continue;
            }
            let (what, judge, value) = match frame["method"].as_str() {
                Some(method) => (method, self.params.get(method), &frame["params"]),
                None => {
                    let method = asked.get(&frame["id"].to_string());
                    let method = method.map(String::as_str).unwrap_or_default();
                    (method, self.results.get(method), &frame["result"])
                }
            };
            if let Some(judge) = judge {
                judge.check(what, value);
                judged += 1;
            } else {
                assert!(
                    what.starts_with('_') || what.starts_with('$'),
                    "nobody judges {what}"
                );
            }
        }
        judged
    }
}

#[test]
fn every_frame_of_a_long_exchange_is_official() {
    let capabilities =
        json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": false});
    let mut sim = Sim::new(config(), crate::machine::world());
    sim.cards = vec![Card::Choose("allow_always")];
    let mut asked = BTreeMap::from([
        ("9001".to_string(), "initialize".to_string()),
        ("9002".to_string(), "session/new".to_string()),
    ]);
    let session = sim.open(capabilities, "/w");
    let mut id = 0;
    let mut ask = |sim: &mut Sim, method: &str, params: Value| {
        id += 1;
        asked.insert(id.to_string(), method.into());
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
    let judged = Court::new().judge(&sim.frames, &asked);
    assert!(judged > 40, "only {judged} frames were judged");
}
