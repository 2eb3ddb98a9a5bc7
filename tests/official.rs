//! What an agent may say, as data: every method of ACP v1 with its official type and the JSON schema
//! of that type, made strict, and the few messages beside it. Knows no exchange, only single values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, OnceLock, PoisonError};

use agent_client_protocol_schema::v1 as acp;
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What part of a frame is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The `params` of what the agent asks or tells.
    Params,
    /// The `result` of what the client asked.
    Result,
    /// An `error`, whatever was asked.
    Error,
}

/// Judges a part of a frame by its method. What looks like something that was judged before is not
/// judged again: thousands of exchanges say the same.
///
/// # Errors
///
/// What is not as the protocol has it: an unknown method, an unknown or missing member, a wrong type,
/// a value of no known name.
pub fn judge(part: Part, method: &str, value: &Value) -> Result<(), String> {
    static SEEN: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
    let key = if part == Part::Error { "" } else { method };
    let mut shape = Shape(part as u64);
    shape.text(key);
    shape.of("", value);
    let seen = |f: &dyn Fn(&mut BTreeSet<u64>) -> bool| {
        // Another test that failed says nothing of this one.
        f(&mut SEEN.lock().unwrap_or_else(PoisonError::into_inner))
    };
    if seen(&|seen| seen.contains(&shape.0)) {
        return Ok(());
    }
    let judge = table()
        .get(&(part, key))
        .ok_or_else(|| format!("nobody knows {part:?} of `{method}`"))?;
    judge.check(value)?;
    seen(&|seen| seen.insert(shape.0));
    Ok(())
}

/// The messages that are not of ACP: answers and notifications of `_reasonix.io/…`, and of older
/// clients.
const EXTENSIONS: &str = include_str!("schema/extensions.json");

/// Reads a value as an official type.
type Parse = fn(&Value) -> Result<(), serde_json::Error>;

/// Checks one kind of value against its official type, where there is one, and its schema.
struct Judge {
    schema: fn(&str) -> Value,
    about: &'static str,
    parse: Option<Parse>,
    /// Made when first needed: that takes longer than a hundred values.
    validator: OnceLock<Validator>,
}

impl Judge {
    fn of<T: JsonSchema + DeserializeOwned>() -> Self {
        Self {
            schema: |_| schemars::schema_for!(T).into(),
            about: "",
            parse: Some(|value| T::deserialize(value).map(drop)),
            validator: OnceLock::new(),
        }
    }

    fn extension(at: &'static str) -> Self {
        Self {
            schema: |at| {
                let all: Value = serde_json::from_str(EXTENSIONS).expect("it is JSON");
                let (part, method) = at.split_once(' ').expect("two words");
                let mut schema = all[part][method].clone();
                schema["$defs"] = all["$defs"].clone();
                schema
            },
            about: at,
            parse: None,
            validator: OnceLock::new(),
        }
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        if let Some(Err(fault)) = self.parse.map(|parse| parse(value)) {
            return Err(format!("not the official type: {fault}"));
        }
        let validator = self.validator.get_or_init(|| {
            let schema = strict((self.schema)(self.about));
            jsonschema::validator_for(&schema).expect("a schema of the crate or of ours")
        });
        let faults: Vec<_> = validator
            .iter_errors(value)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        match faults.is_empty() {
            true => Ok(()),
            false => Err(format!("not the schema: {}", faults.join("; "))),
        }
    }
}

type Table = BTreeMap<(Part, &'static str), Judge>;

macro_rules! official {
    ($table:ident $part:ident: $($method:literal $ty:ident)*) => {
        $( $table.insert((Part::$part, $method), Judge::of::<acp::$ty>()); )*
    };
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table::new();
        official! { table Error: "" Error }
        official! { table Result:
            "initialize" InitializeResponse
            "authenticate" AuthenticateResponse
            "logout" LogoutResponse
            "session/new" NewSessionResponse
            "session/load" LoadSessionResponse
            "session/resume" ResumeSessionResponse
            "session/list" ListSessionsResponse
            "session/close" CloseSessionResponse
            "session/delete" DeleteSessionResponse
            "session/set_mode" SetSessionModeResponse
            "session/set_config_option" SetSessionConfigOptionResponse
            "session/prompt" PromptResponse
        }
        official! { table Params:
            "session/update" SessionNotification
            "session/request_permission" RequestPermissionRequest
            "fs/read_text_file" ReadTextFileRequest
            "fs/write_text_file" WriteTextFileRequest
            "terminal/create" CreateTerminalRequest
            "terminal/output" TerminalOutputRequest
            "terminal/wait_for_exit" WaitForTerminalExitRequest
            "terminal/kill" KillTerminalRequest
            "terminal/release" ReleaseTerminalRequest
            "elicitation/create" CreateElicitationRequest
            "elicitation/complete" CompleteElicitationNotification
            "$/cancel_request" CancelRequestNotification
        }
        let all: Value = serde_json::from_str(EXTENSIONS).expect("it is JSON");
        for (part, name) in [(Part::Result, "results"), (Part::Params, "params")] {
            for method in all[name].as_object().expect("an object").keys() {
                // Once in a process, and as long as it.
                let at: &'static str = format!("{name} {method}").leak();
                table.insert((part, &at[name.len() + 1..]), Judge::extension(at));
            }
        }
        table
    })
}

/// Below these everything is somebody else's.
const OPEN: [&str; 4] = ["_meta", "rawInput", "rawOutput", "data"];

/// Paths, which are always absolute.
const PATHS: [&str; 2] = ["path", "cwd"];

/// The schema with nothing left open that our side closes: members that are not named are faults
/// everywhere, so are alternatives for what a later version may bring, relative paths, and lines
/// counted from 0.
fn strict(mut schema: Value) -> Value {
    tighten(&mut schema);
    close(&mut schema);
    schema
}

/// Makes everything below a schema strict.
fn tighten(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    for choice in ["anyOf", "oneOf"] {
        if let Some(Value::Array(options)) = members.get_mut(choice) {
            // What matches what nothing else matches is for later versions.
            options.retain(|option| option.get("not").is_none());
            let named = options.iter().any(|option| option.get("const").is_some());
            for option in options.iter_mut().filter(|_| named) {
                if option.get("const").is_none() && option["type"] == "string" {
                    // Names of our own begin so; those of others are not ours to invent.
                    option["pattern"] = json!("^_");
                }
            }
        }
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        for (name, property) in properties {
            if OPEN.contains(&name.as_str()) {
                continue;
            }
            let text =
                property["type"] == "string" || property["type"] == json!(["string", "null"]);
            // Where a schema says itself what a path looks like, that counts.
            if PATHS.contains(&name.as_str()) && text && property.get("pattern").is_none() {
                property["pattern"] = json!(r"^(/|[A-Za-z]:\\)");
            }
            if name == "line" {
                property["minimum"] = json!(1);
            }
            close(property);
        }
    }
    for each in ["items", "additionalProperties"] {
        if let Some(schema @ Value::Object(_)) = members.get_mut(each) {
            close(schema);
        }
    }
    for (name, inner) in members.iter_mut() {
        match (name.as_str(), inner) {
            ("properties" | "$defs", Value::Object(all)) => {
                for (name, inner) in all {
                    if !OPEN.contains(&name.as_str()) {
                        tighten(inner);
                    }
                }
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => all.iter_mut().for_each(tighten),
            ("items" | "additionalProperties", inner) => tighten(inner),
            _ => {}
        }
    }
}

/// No member but those the schema names.
fn close(schema: &mut Value) {
    let structural = ["$ref", "anyOf", "oneOf", "allOf", "properties"];
    let Value::Object(members) = schema else {
        return;
    };
    if structural.iter().any(|name| members.contains_key(*name)) {
        members.insert("unevaluatedProperties".into(), json!(false));
    }
}

/// What a value looks like, as far as a schema can tell values apart: its members, the types of its
/// values, and those of its texts that are names. Lists are the set of what is in them. A hash of
/// that, a word at a time: it is made of every frame of every test.
#[derive(Clone, Copy)]
struct Shape(u64);

impl Shape {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn text(&mut self, text: &str) {
        for part in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.add(u64::from_le_bytes(word));
        }
        self.add(text.len() as u64);
    }

    fn of(&mut self, name: &str, value: &Value) {
        if OPEN.contains(&name) {
            return self.add(match value {
                Value::Null => 0,
                Value::Bool(_) => 1,
                Value::Number(_) => 2,
                Value::String(_) => 3,
                Value::Array(_) => 4,
                Value::Object(_) => 5,
            });
        }
        match value {
            Value::Null => self.add(16),
            Value::Bool(it) => self.add(17 + u64::from(*it)),
            Value::Number(it) => {
                let least = [1, 65_536, 1 << 32, 1 << 63];
                let size = it.as_u64().map_or(9, |it| {
                    least.into_iter().filter(|least| it >= *least).count() as u64
                });
                self.add(32 + size + 16 * u64::from(it.is_f64()));
            }
            Value::String(it) if names().contains(name) => {
                self.add(19);
                self.text(it);
            }
            Value::String(it) => {
                let first = it.bytes().next();
                self.add(20 + 32 * first.map_or(256, u64::from));
            }
            Value::Array(all) => {
                let each = |value| {
                    let mut one = Self(0);
                    one.of(name, value);
                    one.0
                };
                let kinds: BTreeSet<u64> = all.iter().map(each).collect();
                self.add(21);
                kinds.into_iter().for_each(|kind| self.add(kind));
            }
            Value::Object(members) => {
                self.add(22 + 32 * members.len() as u64);
                for (name, value) in members {
                    self.text(name);
                    self.of(name, value);
                }
            }
        }
    }
}

/// Members whose text is a name: the schema lists what it may be.
fn names() -> &'static BTreeSet<String> {
    static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = BTreeSet::new();
        for judge in table().values() {
            let schema = (judge.schema)(judge.about);
            gather(&schema, &schema, &mut names);
        }
        names
    })
}

fn gather(root: &Value, schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            for (name, inner) in members {
                if let ("properties", Value::Object(properties)) = (name.as_str(), inner) {
                    let listed = properties.iter().filter(|(_, it)| lists(root, it));
                    names.extend(listed.map(|(name, _)| name.clone()));
                }
                gather(root, inner, names);
            }
        }
        Value::Array(all) => all.iter().for_each(|inner| gather(root, inner, names)),
        _ => {}
    }
}

/// Whether a schema of a member lists values, itself or for what is in a list.
fn lists(root: &Value, schema: &Value) -> bool {
    if let Some(name) = schema["$ref"].as_str() {
        return lists(
            root,
            &root["$defs"][name.rsplit('/').next().unwrap_or_default()],
        );
    }
    let choices = ["anyOf", "oneOf", "allOf"];
    let mut inner = choices.iter().filter_map(|name| schema[name].as_array());
    schema.get("const").is_some()
        || schema.get("enum").is_some()
        || inner.any(|all| all.iter().any(|it| lists(root, it)))
        || schema.get("items").is_some_and(|items| lists(root, items))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(update: Value) -> Value {
        json!({"sessionId": "s", "update": update})
    }

    fn chunk() -> Value {
        update(json!({
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": "x", "_meta": {"any": [1]}}
        }))
    }

    /// Puts a value in at a path.
    fn with(mut value: Value, at: &str, new: Value) -> Value {
        let (parent, name) = at.rsplit_once('/').expect("a path");
        value.pointer_mut(parent).expect("it is there")[name] = new;
        value
    }

    #[test]
    fn every_message_there_is_has_its_judge_and_every_schema_can_be_made_strict() {
        for ((part, method), judge) in table() {
            let nothing = judge.check(&json!({"nobody": "knows"}));
            assert!(nothing.is_err(), "{part:?} of {method} takes anything");
        }
        assert!(judge(Part::Params, "session/elsewhere", &json!({})).is_err());
        assert!(judge(Part::Result, "session/fork", &json!({"sessionId": "s"})).is_err());
        for name in [
            "sessionUpdate",
            "type",
            "kind",
            "status",
            "mode",
            "audience",
            "category",
        ] {
            assert!(names().contains(name), "{name}");
        }
    }

    #[test]
    fn what_is_official_passes_and_each_fault_is_found_however_often_it_is_said() {
        let call = update(json!({
            "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "kind": "edit",
            "status": "pending", "rawInput": {"a": 1}, "locations": [{"path": "/w/a", "line": 3}],
            "content": [
                {"type": "diff", "path": "/w/a", "newText": "n"},
                {"type": "content", "content": {"type": "text", "text": "x"}}
            ]
        }));
        let form = json!({
            "mode": "form", "sessionId": "s", "message": "m",
            "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}
        });
        let options = json!({"configOptions": [{
            "id": "o", "name": "O", "category": "_own", "type": "select", "currentValue": "v",
            "options": [{"value": "v", "name": "V"}]
        }]});
        let notice = update(json!({"sessionUpdate": "notice", "severity": "info", "title": "t"}));
        let error = json!({"code": -32602, "message": "m", "data": {"any": 1}});
        let at = |part, method: &'static str, good: &Value| (part, method, good.clone());
        let updated = |good: &Value| at(Part::Params, "session/update", good);
        for ((part, method, good), faults) in [
            (
                updated(&chunk()),
                vec![
                    ("/zzz", json!(1)),
                    ("/update/zzz", json!(1)),
                    ("/update/content/zzz", json!(1)),
                    ("/update/content/text", json!(1)),
                    ("/update/content/type", json!("video")),
                    ("/update/sessionUpdate", json!("step_complete")),
                    // Not stable.
                    ("/update/sessionUpdate", json!("prompt_suggestions_update")),
                    ("/update/sessionUpdate", json!("cursor_update")),
                    ("/_meta", json!(5)),
                ],
            ),
            (
                updated(&call),
                vec![
                    ("/update/kind", json!("paint")),
                    ("/update/status", json!("cancelled")),
                    ("/update/locations/0/path", json!("w/a")),
                    ("/update/locations/0/line", json!(0)),
                    ("/update/locations/0/zzz", json!(0)),
                    ("/update/content/0/path", json!("a")),
                    ("/update/content/0/zzz", json!("a")),
                    ("/update/content/1/type", json!("text")),
                ],
            ),
            (
                updated(&notice),
                vec![
                    ("/update/severity", json!("loud")),
                    ("/update/title", json!("")),
                ],
            ),
            (
                at(Part::Params, "elicitation/create", &form),
                vec![
                    ("/mode", json!("page")),
                    ("/zzz", json!(1)),
                    ("/requestedSchema/properties/a/type", json!("object")),
                    ("/requestedSchema/properties/a/zzz", json!(1)),
                ],
            ),
            (
                at(Part::Result, "session/set_config_option", &options),
                vec![
                    ("/configOptions/0/category", json!("own")),
                    ("/configOptions/0/type", json!("text")),
                    ("/configOptions/0/options/0/zzz", json!(1)),
                ],
            ),
            (
                at(Part::Error, "session/new", &error),
                vec![
                    ("/code", json!("-1")),
                    ("/code", json!(1.5)),
                    ("/zzz", json!(1)),
                ],
            ),
            (
                at(Part::Result, "session/close", &json!({})),
                vec![("/zzz", json!(1))],
            ),
            (
                at(
                    Part::Result,
                    "_reasonix.io/session/inbox/setPaused",
                    &json!({"paused": true}),
                ),
                vec![("/zzz", json!(1)), ("/paused", json!("yes"))],
            ),
        ] {
            for _ in 0..2 {
                assert_eq!(judge(part, method, &good), Ok(()));
                for (path, value) in &faults {
                    let bad = with(good.clone(), path, value.clone());
                    assert!(judge(part, method, &bad).is_err(), "{path}: {bad}");
                }
            }
        }
    }
}
