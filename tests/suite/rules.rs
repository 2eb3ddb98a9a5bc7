//! Rules of the protocol that are about one exchange: the handshake, signing in, sessions and their
//! lists, stop reasons. Each is a small conversation with a whole agent.

use std::collections::BTreeSet;
use std::time::Duration;

use reasonix_core::agent::Config;
use reasonix_core::model::Script;
use reasonix_tests::disk::{Disk, Keep};
use reasonix_tests::editor::Editor;
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::provider::{Answer, done, finish, hang, say, text, tool};
use reasonix_tests::sim::{Card, Sim, config};
use reasonix_tests::world::{World, http};

/// An agent that stores its sessions, on this disk, without a handshake.
fn stored(disk: Disk) -> Sim {
    let mut config = config();
    config.ephemeral = false;
    Sim::new(config, World::on(disk))
}

/// A disk with the folders `/w`, `/w/a` and `/w/b`.
fn folders() -> Disk {
    Disk::with_files("/w", &[("a/x.txt", "x"), ("b/x.txt", "x")])
}

fn scripted(script: &str) -> Config {
    let mut config = config();
    config.script = Some(Script::parse(script).expect("a script"));
    config
}

/// The code of an error, or 0.
fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

fn on(session: &str, more: Value) -> Value {
    let mut params = json!({"sessionId": session});
    let more = more.as_object().cloned().unwrap_or_default();
    params.as_object_mut().expect("just made").extend(more);
    params
}

fn listed(sim: &mut Sim, id: u64, params: Value) -> Vec<String> {
    let answer = sim.ask(&json::request(id, "session/list", params));
    let sessions = answer["result"]["sessions"].as_array();
    let sessions = sessions.unwrap_or_else(|| panic!("a list is there: {answer}"));
    let id = |session: &Value| session["sessionId"].as_str().unwrap_or_default().into();
    sessions.iter().map(id).collect()
}

#[test]
fn the_version_that_is_answered_is_the_one_that_is_spoken() {
    let with = |version: Value, more: Value| {
        let mut params = json!({"protocolVersion": version});
        let more = more.as_object().cloned().unwrap_or_default();
        params.as_object_mut().expect("just made").extend(more);
        params
    };
    let newer =
        json!({"info": 5, "capabilities": {"fs": {"readTextFile": true}, "terminal": true}});
    for (params, good) in [
        (with(json!(0), json!({})), true),
        (with(json!(1), json!({})), true),
        (with(json!(2), newer.clone()), true),
        (with(json!(65535), json!({})), true),
        (with(json!(1), json!({"clientInfo": null})), true),
        (with(json!(1), json!({"clientInfo": {"name": "x"}})), true),
        (
            with(json!(1), json!({"clientInfo": 5, "clientCapabilities": 5})),
            true,
        ),
        (
            with(
                json!(1),
                json!({"clientCapabilities": {"fs": [], "terminal": "yes"}}),
            ),
            true,
        ),
        (with(json!("1"), json!({})), false),
        (with(json!(1.5), json!({})), false),
        (with(Value::Null, json!({})), false),
        (json!({}), false),
    ] {
        let mut sim = Sim::new(config(), World::on(folders()));
        let answer = sim.ask(&json::request(1, "initialize", params.clone()));
        match good {
            true => assert_eq!(answer["result"]["protocolVersion"], 1, "{params}"),
            false => assert_eq!(code(&answer), -32602, "{params}: {answer}"),
        }
    }
    // What a later version would declare opens nothing.
    let mut sim = Sim::new(
        scripted(READ),
        World::with_files("/w", &[("a.txt", "alpha")]),
    );
    sim.ask(&json::request(1, "initialize", with(json!(2), newer)));
    let session = sim.open_another(2, "/w");
    let answer = sim.ask(&json::prompt(3, &session, "go"));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(json::tool_ends(&sim.frames, &session), ["completed"]);
    assert!(
        !sim.frames
            .iter()
            .any(|frame| frame.get("method").is_some() && frame.get("id").is_some())
    );
}

const READ: &str = "{\"tool\":\"read_file\",\"args\":{\"path\":\"a.txt\"}}\n\
    {\"finish\":\"tool_calls\"}\n{\"text\":\"done\"}\n{\"finish\":\"stop\"}\n";

#[test]
fn what_is_advertised_is_there_and_nothing_else_is() {
    let mut sim = stored(folders());
    let hello = sim.ask(&json::initialize(1));
    let offered = &hello["result"]["agentCapabilities"];
    assert_eq!(hello["result"]["agentInfo"]["name"], "reasonix");
    assert!(hello["result"]["agentInfo"]["version"].is_string());
    let yes = |at: &str| match offered.pointer(at) {
        Some(Value::Bool(yes)) => *yes,
        Some(value) => value.is_object(),
        None => false,
    };
    let session = sim.open_another(2, "/w");
    let mut id = 10;
    for (method, offered) in [
        ("session/load", yes("/loadSession")),
        ("session/resume", yes("/sessionCapabilities/resume")),
        ("session/list", yes("/sessionCapabilities/list")),
        ("session/close", yes("/sessionCapabilities/close")),
        ("session/delete", yes("/sessionCapabilities/delete")),
        ("logout", yes("/auth/logout")),
        ("session/fork", yes("/sessionCapabilities/fork")),
        ("session/archive", yes("/sessionCapabilities/archive")),
        ("session/unarchive", yes("/sessionCapabilities/archive")),
        ("session/status", yes("/sessionCapabilities/status")),
        ("session/options", yes("/sessionCapabilities/options")),
        ("session/set_title", yes("/sessionCapabilities/title")),
        ("auth/status", yes("/auth/status")),
        ("providers/list", yes("/providers")),
        ("providers/set", yes("/providers")),
        ("nes/start", false),
        ("document/didOpen", false),
        ("session/new", true),
        ("session/prompt", true),
        ("session/set_mode", true),
        ("session/set_config_option", true),
        ("authenticate", true),
    ] {
        id += 1;
        let cwd = json!({"cwd": "/w", "mcpServers": [], "modeId": "zzz", "configId": "zzz",
            "value": "zzz", "methodId": "zzz", "prompt": []});
        let answer = sim.ask(&json::request(id, method, on(&session, cwd)));
        assert_eq!(code(&answer) != -32601, offered, "{method}: {answer}");
    }
    // The methods of our own are listed by their names, and are there.
    let names = methods_in(&offered["_meta"]);
    assert!(names.len() > 12, "{names:?}");
    for name in names.iter().filter(|name| !name.ends_with("_update")) {
        id += 1;
        let answer = sim.ask(&json::request(id, name, json!({})));
        assert_eq!(code(&answer), -32602, "{name}: {answer}");
    }
    let answer = sim.ask(&json::request(
        9,
        "_reasonix.io/session/elsewhere",
        json!({}),
    ));
    assert_eq!(code(&answer), -32601, "{answer}");
}

/// Every name of a method of our own that is somewhere in there.
fn methods_in(value: &Value) -> BTreeSet<String> {
    match value {
        Value::String(name) if name.starts_with("_reasonix.io/") => [name.clone()].into(),
        Value::Array(all) => all.iter().flat_map(methods_in).collect(),
        Value::Object(all) => {
            let keys = all.keys().filter(|key| key.starts_with("_reasonix.io/"));
            let inner = all.values().flat_map(methods_in);
            keys.cloned().chain(inner).collect()
        }
        _ => BTreeSet::new(),
    }
}

#[test]
fn parameters_that_are_all_optional_may_be_left_out() {
    let mut sim = stored(folders());
    sim.ask(&json::initialize(1));
    for (id, params) in (2..).zip([None, Some(Value::Null), Some(json!({}))]) {
        let mut list = json!({"jsonrpc": "2.0", "id": id, "method": "session/list"});
        if let Some(params) = params {
            list["params"] = params;
        }
        let answer = sim.ask(&list);
        assert_eq!(answer["result"]["sessions"], json!([]), "{answer}");
    }
    for (id, method) in (10..).zip([
        "session/new",
        "session/prompt",
        "session/load",
        "authenticate",
    ]) {
        let none = sim.ask(&json!({"jsonrpc": "2.0", "id": id, "method": method}));
        assert_eq!(code(&none), -32602, "{method}: {none}");
    }
}

#[test]
fn without_a_model_a_session_is_refused_and_signing_in_reads_the_settings_again() {
    let mut config = config();
    let settings = std::mem::take(&mut config.settings);
    for (capabilities, kind) in [
        (json!({}), Value::Null),
        (json!({"auth": {"terminal": true}}), json!("terminal")),
    ] {
        let mut sim = Sim::new(config.clone(), World::on(folders()));
        let hello = sim.ask(&json::initialize_with(1, capabilities));
        let methods = hello["result"]["authMethods"].as_array().expect("a list");
        assert_eq!(methods.len(), 1);
        assert_eq!(methods[0]["type"], kind);
        assert!(
            methods[0].get("command").is_none(),
            "its command is the client's own"
        );
        let method = json!({"methodId": methods[0]["id"]});
        let refused = sim.ask(&json::new_session(2, "/w"));
        assert_eq!(code(&refused), -32000, "{refused}");
        let error = &refused["error"];
        let data = json!({
            "code": "auth_required",
            "model": "",
            "howTo": error["message"],
            "methodId": "reasonix-setup",
        });
        assert_eq!(error["data"], data, "{refused}");
        assert!(listed(&mut sim, 3, json!({})).is_empty());
        let unknown = sim.ask(&json::request(
            4,
            "authenticate",
            json!({"methodId": "nope"}),
        ));
        assert_eq!(code(&unknown), -32602, "{unknown}");
        let still = sim.ask(&json::request(5, "authenticate", method.clone()));
        assert_eq!(code(&still), -32000, "{still}");
        sim.world.settings = Some(Ok(settings.clone()));
        for id in [6, 7] {
            let good = sim.ask(&json::request(id, "authenticate", method.clone()));
            assert_eq!(good["result"], json!({}), "{good}");
        }
        sim.open_another(8, "/w");
    }
    // Who has a model has nothing to choose.
    let mut sim = Sim::new(self::config(), World::on(folders()));
    assert_eq!(
        sim.ask(&json::initialize(1))["result"]["authMethods"],
        json!([])
    );
}

#[test]
fn a_session_that_is_not_open_is_named_in_the_error_and_none_is_made() {
    let mut sim = stored(folders());
    sim.ask(&json::initialize(1));
    let closed = sim.open_another(2, "/w");
    sim.ask(&json::request(3, "session/close", on(&closed, json!({}))));
    let mut id = 10;
    for (method, more, only_unknown) in [
        (
            "session/prompt",
            json!({"prompt": [{"type": "text", "text": "x"}]}),
            false,
        ),
        ("session/set_mode", json!({"modeId": "plan"}), false),
        (
            "session/set_config_option",
            json!({"configId": "mode", "value": "plan"}),
            false,
        ),
        ("session/load", json!({"cwd": "/w", "mcpServers": []}), true),
        ("session/resume", json!({"cwd": "/w"}), true),
    ] {
        for session in ["nope-123", &closed] {
            if only_unknown && session == closed {
                continue;
            }
            id += 1;
            let answer = sim.ask(&json::request(id, method, on(session, more.clone())));
            assert_eq!(code(&answer), -32002, "{method}: {answer}");
            assert_eq!(
                answer["error"]["data"]["sessionId"], session,
                "{method}: {answer}"
            );
        }
    }
    // To close or to delete what is not there is done; to cancel there is nothing.
    for method in ["session/close", "session/delete"] {
        id += 1;
        let answer = sim.ask(&json::request(id, method, on("nope-123", json!({}))));
        assert_eq!(answer["result"], json!({}), "{method}: {answer}");
    }
    let heard = sim.frames.len();
    sim.send(&json::cancel("nope-123"));
    sim.run_for(Duration::from_secs(1));
    assert_eq!(sim.frames.len(), heard);
    assert!(!listed(&mut sim, 99, json!({})).contains(&"nope-123".to_string()));
}

#[test]
fn ids_of_sessions_are_never_given_twice() {
    let mut sim = stored(folders());
    sim.ask(&json::initialize(1));
    let mut seen = BTreeSet::new();
    for id in 10..210 {
        let session = sim.open_another(id, "/w");
        let gone = if id % 2 == 0 {
            "session/delete"
        } else {
            "session/close"
        };
        sim.ask(&json::request(id + 1000, gone, on(&session, json!({}))));
        assert!(seen.insert(session));
    }
    sim.finish();
    let mut config = config();
    config.ephemeral = false;
    config.seed = [9; 32];
    let mut next = Sim::new(
        config,
        World::on(sim.world.disk.after_crash(true, |_| Keep::All)),
    );
    next.ask(&json::initialize(1));
    assert!(seen.insert(next.open_another(2, "/w")), "after a restart");
}

#[test]
fn what_is_wrong_with_a_session_opens_none() {
    let mut sim = stored(folders());
    sim.ask(&json::initialize(1));
    let session = sim.open_another(2, "/w");
    sim.ask(&json::prompt(3, &session, "x"));
    sim.ask(&json::request(4, "session/close", on(&session, json!({}))));
    let stdio = |more: Value| {
        let mut server = json!({"name": "m", "command": "/bin/m", "args": [], "env": []});
        let more = more.as_object().cloned().unwrap_or_default();
        server.as_object_mut().expect("just made").extend(more);
        json!([server])
    };
    let mut id = 10;
    for wrong in [
        json!({"cwd": "rel"}),
        json!({"cwd": ""}),
        json!({"cwd": null}),
        json!({"cwd": "/w/none"}),
        json!({"mcpServers": [{"name": "a"}]}),
        json!({"mcpServers": {}}),
        json!({"mcpServers": [{"type": "quic", "name": "a", "url": "http://x"}]}),
        json!({"mcpServers": stdio(json!({"args": [1]}))}),
        json!({"mcpServers": stdio(json!({"env": [{"name": "A"}]}))}),
        json!({"additionalDirectories": ["a"]}),
        json!({"additionalDirectories": [""]}),
        json!({"additionalDirectories": [1]}),
        json!({"additionalDirectories": {}}),
        json!({"systemPrompt": {"mode": "replace", "content": [{"type": "text", "text": "x"}]}}),
        json!({"systemPrompt": {"mode": "append", "content": []}}),
        json!({"systemPrompt": 5}),
    ] {
        for method in ["session/new", "session/load", "session/resume"] {
            let mut params = json!({"cwd": "/w", "mcpServers": []});
            if method != "session/new" {
                params["sessionId"] = json!(session);
            }
            let wrong = wrong.as_object().cloned().unwrap_or_default();
            params.as_object_mut().expect("just made").extend(wrong);
            id += 1;
            let answer = sim.ask(&json::request(id, method, params.clone()));
            assert_eq!(code(&answer), -32602, "{method} {params}: {answer}");
        }
    }
    // A session belongs to its folder.
    let other = on(&session, json!({"cwd": "/w/a", "mcpServers": []}));
    let answer = sim.ask(&json::request(5, "session/load", other));
    assert_eq!(code(&answer), -32602, "{answer}");
    // Nothing came of all that.
    assert_eq!(
        listed(&mut sim, 6, json!({})),
        std::slice::from_ref(&session)
    );
    let prompt = sim.ask(&json::prompt(7, &session, "x"));
    assert_eq!(code(&prompt), -32002, "it is still closed: {prompt}");
}

#[test]
fn a_load_replays_before_its_answer_and_a_resume_replays_nothing() {
    let mut first = stored(folders());
    first.world.answers = [say("hello")].iter().map(http).collect();
    first.ask(&json::initialize(1));
    let session = first.open_another(2, "/w");
    first.ask(&json::prompt(3, &session, "hi"));
    first.finish();
    for (method, expected) in [("session/load", true), ("session/resume", false)] {
        let mut sim = stored(first.world.disk.after_crash(true, |_| Keep::All));
        sim.ask(&json::initialize(1));
        let heard = sim.frames.len();
        let params = on(&session, json!({"cwd": "/w", "mcpServers": []}));
        let answer = sim.ask(&json::request(2, method, params));
        assert!(answer["result"].is_object(), "{answer}");
        assert_eq!(answer["result"].get("sessionId"), None, "{answer}");
        sim.run_for(Duration::from_secs(1));
        let frames = &sim.frames[heard..];
        let at = frames
            .iter()
            .position(|frame| frame["id"] == 2)
            .expect("answered");
        let (before, after) = frames.split_at(at);
        let of_talk = |frames: &[Value]| {
            let kinds = frames.iter().filter_map(|frame| json::update(frame, ""));
            kinds
                .filter(|update| update.get("content").is_some())
                .count()
        };
        assert_eq!(of_talk(before) > 0, expected, "{method}: {before:#?}");
        assert_eq!(before.is_empty(), !expected, "{method}: {before:#?}");
        assert_eq!(of_talk(after), 0, "{method}: {after:#?}");
    }
}

#[test]
fn a_load_shows_no_terminal_of_the_process_before() {
    let call = || tool("c", "bash", json!({"command": "make"}));
    let begin = |disk: Disk| {
        let mut sim = stored(disk);
        sim.editor = Some(Editor {
            command_takes: Some(Duration::from_secs(1)),
            output: "built\n".into(),
            ..Editor::default()
        });
        sim.ask(&json::initialize_with(1, json!({"terminal": true})));
        sim
    };
    let shown = |sim: &Sim| {
        let updates = sim
            .frames
            .iter()
            .filter_map(|frame| json::update(frame, ""));
        let items = updates.filter_map(|update| update["content"].as_array());
        items
            .flatten()
            .filter(|item| item["type"] == "terminal")
            .count()
    };
    let mut first = begin(folders());
    first.world.answers = [call(), say("done")].iter().map(http).collect();
    let session = first.open_another(2, "/w");
    first.ask(&json::prompt(3, &session, "go"));
    assert_eq!(shown(&first), 1);
    first.finish();
    let mut next = begin(first.world.disk.after_crash(true, |_| Keep::All));
    let params = on(&session, json!({"cwd": "/w", "mcpServers": []}));
    next.ask(&json::request(2, "session/load", params));
    assert_eq!(shown(&next), 0);
    let said = json!(next.frames).to_string();
    assert!(said.contains("built"), "the output is text: {said}");
    next.world.answers = [call(), say("done")].iter().map(http).collect();
    let answer = next.ask(&json::prompt(3, &session, "again"));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(shown(&next), 1);
    next.finish();
    next.laws.check();
}

#[test]
fn a_second_handshake_leaves_sessions_and_their_turns_as_they_are() {
    let mut sim = stored(folders());
    sim.world.answers = [say("first"), hang([text("part")])]
        .iter()
        .map(http)
        .collect();
    let hello = sim.ask(&json::initialize(1));
    let session = sim.open_another(2, "/w");
    sim.ask(&json::prompt(3, &session, "x"));
    sim.send(&json::prompt(4, &session, "y"));
    sim.until("text", |sim| json::said(&sim.frames, "").ends_with("part"));
    let again = sim.ask(&json::initialize(5));
    assert_eq!(again["result"], hello["result"]);
    sim.send(&json::cancel(&session));
    assert_eq!(sim.answer(4)["result"]["stopReason"], "cancelled");
    sim.world.answers = [say("third")].iter().map(http).collect();
    let answer = sim.ask(&json::prompt(6, &session, "z"));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_list_has_what_is_asked_for_and_changes_nothing() {
    let mut sim = stored(folders());
    sim.ask(&json::initialize(1));
    let mut opened = Vec::new();
    for (id, cwd) in [(10, "/w/a"), (20, "/w/a"), (30, "/w/b")] {
        let session = sim.open_another(id, cwd);
        sim.ask(&json::prompt(id + 1, &session, "x"));
        opened.push(session);
    }
    for (id, cwd, count) in [
        (40, json!("/w/a"), 2),
        (41, json!("/w/b"), 1),
        (42, json!("/w"), 0),
        (43, json!("/w/a/"), 2),
        (44, Value::Null, 3),
    ] {
        assert_eq!(
            listed(&mut sim, id, json!({"cwd": cwd})).len(),
            count,
            "{cwd}"
        );
    }
    for (id, wrong) in (50..).zip([
        json!({"cwd": "w"}),
        json!({"cwd": ""}),
        json!({"cursor": "garbage"}),
        json!({"cursor": 5}),
    ]) {
        let answer = sim.ask(&json::request(id, "session/list", wrong.clone()));
        assert_eq!(code(&answer), -32602, "{wrong}: {answer}");
    }
    let disk = sim.world.disk.changes();
    let all = listed(&mut sim, 60, json!({}));
    assert_eq!(listed(&mut sim, 61, json!({})), all);
    assert_eq!(sim.world.disk.changes(), disk);
    // What is deleted is gone for good, and may be deleted again.
    for id in [70, 71] {
        let gone = sim.ask(&json::request(
            id,
            "session/delete",
            on(&opened[0], json!({})),
        ));
        assert_eq!(gone["result"], json!({}), "{gone}");
        assert!(!listed(&mut sim, id + 10, json!({})).contains(&opened[0]));
    }
}

#[test]
fn a_session_that_is_deleted_in_its_turn_answers_the_prompt_first() {
    for method in ["session/delete", "session/close"] {
        let mut sim = stored(folders());
        sim.world.answers = [hang([text("part")])].iter().map(http).collect();
        sim.ask(&json::initialize(1));
        let session = sim.open_another(2, "/w");
        sim.send(&json::prompt(3, &session, "x"));
        sim.until("text", |sim| !json::said(&sim.frames, "").is_empty());
        let gone = sim.ask(&json::request(4, method, on(&session, json!({}))));
        assert_eq!(gone["result"], json!({}), "{gone}");
        let at = |id: u64| {
            sim.frames
                .iter()
                .position(|f| f.get("method").is_none() && f["id"] == id)
        };
        assert!(at(3) < at(4), "{method}");
        assert_eq!(
            sim.answer(3)["result"]["stopReason"],
            "cancelled",
            "{method}"
        );
        assert_eq!(sim.world.running(), 0, "{method}");
    }
}

#[test]
fn modes_and_options_are_set_in_a_turn_and_only_to_what_is_offered() {
    let mut sim = stored(folders());
    sim.world.answers = [hang([text("part")])].iter().map(http).collect();
    sim.ask(&json::initialize(1));
    let session = sim.open_another(2, "/w");
    sim.send(&json::prompt(3, &session, "x"));
    sim.until("text", |sim| !json::said(&sim.frames, "").is_empty());
    let set = |sim: &mut Sim, id: u64, more: Value| {
        sim.ask(&json::request(
            id,
            "session/set_config_option",
            on(&session, more),
        ))
    };
    let mode = sim.ask(&json::request(
        4,
        "session/set_mode",
        on(&session, json!({"modeId": "plan"})),
    ));
    assert_eq!(mode["result"], json!({}), "{mode}");
    let shown = sim
        .frames
        .iter()
        .filter_map(|frame| json::update(frame, ""));
    let kinds: BTreeSet<_> = shown
        .filter_map(|update| update["sessionUpdate"].as_str())
        .collect();
    assert!(
        kinds.contains("current_mode_update") && kinds.contains("config_option_update"),
        "{kinds:?}"
    );
    // A type that nobody knows is read by its value.
    let answer = set(
        &mut sim,
        5,
        json!({"configId": "mode", "value": "normal", "type": "later"}),
    );
    assert_eq!(
        answer["result"]["configOptions"][0]["currentValue"], "normal",
        "{answer}"
    );
    let before = answer["result"]["configOptions"].clone();
    let wrong = [
        json!({"configId": "zzz", "value": "plan"}),
        json!({"configId": "mode", "value": "zzz"}),
        json!({"configId": "mode", "value": true}),
        json!({"configId": "mode", "type": "boolean", "value": true}),
        json!({"configId": "mode", "type": "boolean", "value": "plan"}),
        json!({"configId": "mode"}),
    ];
    for (id, wrong) in (10..).zip(wrong) {
        let answer = set(&mut sim, id, wrong.clone());
        assert_eq!(code(&answer), -32602, "{wrong}: {answer}");
    }
    let unknown = sim.ask(&json::request(
        20,
        "session/set_mode",
        on(&session, json!({"modeId": "zzz"})),
    ));
    assert_eq!(code(&unknown), -32602, "{unknown}");
    let after = set(&mut sim, 21, json!({"configId": "mode", "value": "normal"}));
    assert_eq!(
        after["result"]["configOptions"], before,
        "nothing has changed"
    );
    sim.send(&json::cancel(&session));
    assert_eq!(sim.answer(3)["result"]["stopReason"], "cancelled");
}

#[test]
fn every_stop_reason_has_its_cause_and_messages_their_own_ids() {
    let ended = |reason: &str| Answer::stream([text("some"), finish(reason), done()]);
    let broken = Answer::plain(400, "application/json", r#"{"error":{"message":"bad"}}"#);
    let look = || tool("c", "ls", json!({"path": "."}));
    for (answers, stop) in [
        (vec![say("k")], "end_turn"),
        (vec![look(), say("k")], "end_turn"),
        (vec![ended("length")], "max_tokens"),
        (vec![ended("content_filter")], "refusal"),
        (vec![look(), look(), look(), look()], "max_turn_requests"),
        (vec![broken], ""),
    ] {
        let mut config = config();
        config.max_steps = (stop == "max_turn_requests").then_some(3);
        let mut sim = Sim::new(config, World::on(folders()));
        // The last one is given again: an answer that was cut is asked to go on.
        sim.world.branches = vec![(String::new(), answers.iter().map(http).collect())];
        let session = sim.open(json!({}), "/w");
        let answer = sim.ask(&json::prompt(1, &session, "go"));
        match stop {
            "" => assert_eq!(code(&answer), -32603, "{answer}"),
            stop => assert_eq!(answer["result"]["stopReason"], stop, "{answer}"),
        }
        sim.finish();
        sim.laws.check();
    }
    // Two messages with a call between them: the pieces of each have an id of their own.
    let script = "{\"chunk\":2}\n{\"text\":\"first words\"}\n{\"tool\":\"ls\",\"args\":{}}\n\
        {\"finish\":\"tool_calls\"}\n{\"text\":\"second words\"}\n{\"finish\":\"stop\"}\n";
    let mut sim = Sim::new(scripted(script), World::on(folders()));
    let session = sim.open(json!({}), "/w");
    sim.ask(&json::prompt(1, &session, "go"));
    let mut said: Vec<(Value, String)> = Vec::new();
    for update in sim
        .frames
        .iter()
        .filter_map(|frame| json::update(frame, ""))
    {
        if update["sessionUpdate"] != "agent_message_chunk" {
            continue;
        }
        let (id, text) = (&update["messageId"], update["content"]["text"].as_str());
        match said.last_mut() {
            Some((last, whole)) if last == id => whole.push_str(text.unwrap_or_default()),
            _ => said.push((id.clone(), text.unwrap_or_default().into())),
        }
    }
    let texts: Vec<_> = said.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["first words", "second words"]);
    assert_ne!(said[0].0, said[1].0);
    assert!(said.iter().all(|(id, _)| id.is_string()));
}

#[test]
fn a_card_comes_before_its_call_runs_and_names_its_tool_once() {
    let script = "{\"tool\":\"write_file\",\"args\":{\"path\":\"n.txt\",\"content\":\"x\"}}\n\
        {\"finish\":\"tool_calls\"}\n{\"text\":\"done\"}\n{\"finish\":\"stop\"}\n";
    let mut sim = Sim::new(scripted(script), World::on(folders()));
    sim.cards = vec![Card::Choose("allow_once")];
    let session = sim.open(json!({}), "/w");
    sim.ask(&json::prompt(1, &session, "go"));
    let mut story = Vec::new();
    for frame in &sim.frames {
        if frame["method"] == "session/request_permission" {
            story.push(("card", frame["params"]["toolCall"]["toolCallId"].clone()));
        }
        let Some(update) = json::update(frame, "") else {
            continue;
        };
        let id = update["toolCallId"].clone();
        match (update["sessionUpdate"].as_str(), update["status"].as_str()) {
            (Some("tool_call"), _) => {
                assert_eq!(update["name"], "write_file", "{update}");
                story.push(("announced", id));
            }
            (Some("tool_call_update"), Some("in_progress")) => story.push(("runs", id)),
            (Some("tool_call_update"), Some("completed")) => story.push(("completed", id)),
            _ => continue,
        }
        assert!(
            update["sessionUpdate"] == "tool_call" || update.get("name").is_none(),
            "{update}"
        );
    }
    let words: Vec<_> = story.iter().map(|(word, _)| *word).collect();
    assert_eq!(words, ["announced", "card", "runs", "completed"]);
    assert!(story.iter().all(|(_, id)| *id == story[0].1));
}
