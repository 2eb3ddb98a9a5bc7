//! What a schema cannot say of a frame: that values are among those offered, that ids are there once,
//! that what people read is a line. Knows single frames only.

use std::collections::BTreeSet;

use serde_json::Value;

/// Codes of errors: those of the protocol, and those of goals.
const CODES: [i64; 10] = [
    -32700, -32600, -32601, -32602, -32603, -32800, -32000, -32002, -32010, -32011,
];

/// Checks the `params` of what an agent says, or the `result` of what it was asked.
///
/// # Errors
///
/// What makes no sense.
pub fn of(method: &str, value: &Value) -> Result<(), String> {
    match method {
        "session/update" => update(&value["update"]),
        "session/request_permission" => card(value),
        "initialize" => once(&value["authMethods"], "id"),
        "session/list" => once(&value["sessions"], "sessionId"),
        _ => {
            modes(&value["modes"])?;
            options(&value["configOptions"])
        }
    }
}

/// Checks an error.
///
/// # Errors
///
/// What makes no sense.
pub fn of_error(error: &Value) -> Result<(), String> {
    let message = error["message"].as_str().unwrap_or_default();
    if message.is_empty() || message.contains(['\n', '\r']) {
        return Err("the message of an error is one line".into());
    }
    match error["code"].as_i64() {
        Some(code) if CODES.contains(&code) => Ok(()),
        code => Err(format!("{code:?} is no code that anybody documents")),
    }
}

fn update(update: &Value) -> Result<(), String> {
    match update["sessionUpdate"].as_str().unwrap_or_default() {
        "config_option_update" => options(&update["configOptions"]),
        "available_commands_update" => {
            let commands = update["availableCommands"].as_array();
            for command in commands.into_iter().flatten() {
                let name = command["name"].as_str().unwrap_or_default();
                if name.is_empty() || name.starts_with('/') || name.contains(char::is_whitespace) {
                    return Err("a command is named by a word without its slash".into());
                }
            }
            once(&update["availableCommands"], "name")
        }
        "usage_update" if update["size"] == 0 => Err("a size of nothing says nothing".into()),
        _ => Ok(()),
    }
}

fn card(params: &Value) -> Result<(), String> {
    let options = params["options"].as_array().ok_or("a card has options")?;
    let kind = |kind: &str| {
        let mut kinds = options.iter().filter_map(|option| option["kind"].as_str());
        kinds.any(|it| it.starts_with(kind))
    };
    if !kind("allow") || !kind("reject") {
        return Err("a card can be allowed and rejected".into());
    }
    once(&params["options"], "optionId")
}

fn modes(modes: &Value) -> Result<(), String> {
    if modes.is_null() {
        return Ok(());
    }
    let offered = modes["availableModes"].as_array();
    let mut offered = offered.into_iter().flatten();
    if !offered.any(|mode| mode["id"] == modes["currentModeId"]) {
        return Err("the mode is one of those offered".into());
    }
    once(&modes["availableModes"], "id")
}

fn options(options: &Value) -> Result<(), String> {
    for option in options.as_array().into_iter().flatten() {
        if option["type"] != "select" {
            continue;
        }
        let listed = option["options"].as_array().into_iter().flatten();
        let values = listed.flat_map(|one| match one["options"].as_array() {
            Some(group) => group.iter().collect(),
            None => vec![one],
        });
        let mut values = values.map(|one| &one["value"]);
        if !values.any(|value| *value == option["currentValue"]) {
            return Err(format!(
                "the value of {} is one of those offered",
                option["id"]
            ));
        }
    }
    once(options, "id")
}

/// In this list nothing has the same name as something else.
fn once(list: &Value, name: &str) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for one in list.as_array().into_iter().flatten() {
        let id = one[name].as_str().unwrap_or_default();
        if id.is_empty() || !seen.insert(id) {
            return Err(format!("each {name} is there, and once: {id:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn sense_passes_and_each_kind_of_nonsense_is_found() {
        let select = |value: &str, options: Value| json!({"configOptions": [{"id": "o", "type": "select", "currentValue": value, "options": options}]});
        let flat = json!([{"value": "a"}, {"value": "b"}]);
        let grouped = json!([{"group": "g", "options": [{"value": "a"}, {"value": "b"}]}]);
        let twice = json!({"configOptions": [{"id": "o", "type": "boolean"}, {"id": "o", "type": "boolean"}]});
        let modes = |now: &str, ids: [&str; 2]| {
            let all = ids.map(|id| json!({"id": id}));
            json!({"modes": {"currentModeId": now, "availableModes": all}})
        };
        let card = |kinds: [&str; 2], ids: [&str; 2]| {
            let all = [0, 1].map(|at| json!({"optionId": ids[at], "kind": kinds[at]}));
            json!({"options": all})
        };
        let told = |kind: &str, name: &str, value: Value| json!({"update": {"sessionUpdate": kind, name: value}});
        let commands = |names: [&str; 2]| {
            let all = names.map(|name| json!({"name": name}));
            told("available_commands_update", "availableCommands", json!(all))
        };
        let new = "session/new";
        for (method, value, good) in [
            (new, json!({"sessionId": "s"}), true),
            (new, select("b", flat.clone()), true),
            (new, select("b", grouped.clone()), true),
            (new, select("c", flat), false),
            ("session/set_config_option", select("c", grouped), false),
            (new, twice, false),
            (new, modes("a", ["a", "b"]), true),
            (new, modes("c", ["a", "b"]), false),
            (new, modes("a", ["a", "a"]), false),
            ("session/update", commands(["a", "b"]), true),
            ("session/update", commands(["/a", "b"]), false),
            ("session/update", commands(["a", "a"]), false),
            ("session/update", commands(["a b", "c"]), false),
            (
                "session/update",
                told("usage_update", "size", json!(0)),
                false,
            ),
            (
                "session/update",
                told("usage_update", "size", json!(9)),
                true,
            ),
            (
                "session/request_permission",
                card(["allow_once", "reject_once"], ["a", "b"]),
                true,
            ),
            (
                "session/request_permission",
                card(["allow_once", "reject_once"], ["a", "a"]),
                false,
            ),
            (
                "session/request_permission",
                card(["allow_once", "allow_always"], ["a", "b"]),
                false,
            ),
            ("session/request_permission", json!({"options": []}), false),
            (
                "initialize",
                json!({"authMethods": [{"id": "a"}, {"id": "a"}]}),
                false,
            ),
            (
                "session/list",
                json!({"sessions": [{"sessionId": "a"}, {"sessionId": "b"}]}),
                true,
            ),
            (
                "session/list",
                json!({"sessions": [{"sessionId": "a"}, {"sessionId": "a"}]}),
                false,
            ),
        ] {
            assert_eq!(of(method, &value).is_ok(), good, "{method}: {value}");
        }
        for (code, message, good) in [
            (-32602, "m", true),
            (-32010, "m", true),
            (-32602, "", false),
            (-32602, "a\nb", false),
            (-32099, "m", false),
            (7, "m", false),
        ] {
            let error = json!({"code": code, "message": message});
            assert_eq!(of_error(&error).is_ok(), good, "{error}");
        }
    }
}
