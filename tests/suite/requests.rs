//! What the model is sent: the project's own instructions, what a prompt brought along, and history
//! that only grows, so that the provider's cache of it holds.

use reasonix_core::agent::PermissionMode;
use reasonix_tests::disk::{Keep, Node};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::provider::{Answer, say, tool};
use reasonix_tests::sim::{Card, Sim, config};
use reasonix_tests::world::{Command, World, http};

/// An agent with these files in its working directory or at absolute paths, and one session.
pub(super) fn begin(files: &[(&str, &str)], answers: &[Answer], mode: &str) -> (Sim, String) {
    let mut config = config();
    config.ephemeral = false;
    if !mode.is_empty() {
        let mode = PermissionMode::parse(mode).expect("a mode");
        config.permission_mode = mode;
    }
    let mut world = World::with_files("/w", &[]);
    for (path, text) in files {
        let path = match path.starts_with('/') {
            true => path.to_string(),
            false => format!("/w/{path}"),
        };
        let node = match text.strip_prefix("->") {
            Some(to) => Node::Link(to.into()),
            None => Node::File(text.as_bytes().to_vec()),
        };
        world.disk.put(&path, node);
    }
    world.commands = vec![Command {
        contains: "count".into(),
        output: b"1 2 3\n".to_vec(),
        takes: Some(std::time::Duration::ZERO),
        code: 0,
    }];
    world.answers = answers.iter().map(http).collect();
    world.settings = Some(Ok(config.settings.clone()));
    let mut sim = Sim::new(config, world);
    let session = sim.open(json!({}), "/w");
    (sim, session)
}

/// Sends blocks; gives what was said.
#[track_caller]
pub(super) fn blocks(sim: &mut Sim, id: u64, session: &str, blocks: Value) -> String {
    let heard = sim.frames.len();
    let params = json!({"sessionId": session, "prompt": blocks});
    let answer = sim.ask(&json::request(id, "session/prompt", params));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    json::said(&sim.frames[heard..], session)
}

#[track_caller]
pub(super) fn said(sim: &mut Sim, id: u64, session: &str, text: &str) -> String {
    blocks(sim, id, session, json!([{"type": "text", "text": text}]))
}

/// The body of the n-th request to the model.
pub(super) fn body(sim: &Sim, n: usize) -> Value {
    serde_json::from_slice(&sim.world.requests[n].body).expect("JSON")
}

/// The text of the last message of the n-th request to the model.
pub(super) fn heard(sim: &Sim, n: usize) -> String {
    let body = body(sim, n);
    let last = body["messages"].as_array().and_then(|all| all.last());
    let content = &last.expect("a message")["content"];
    match content.as_str() {
        Some(text) => text.into(),
        None => content[0]["text"].as_str().unwrap_or_default().into(),
    }
}

/// What the model is told first.
fn system(sim: &Sim, n: usize) -> String {
    let body = body(sim, n);
    assert_eq!(body["messages"][0]["role"], "system");
    body["messages"][0]["content"]
        .as_str()
        .unwrap_or_default()
        .into()
}

#[test]
fn the_projects_instructions_are_told_first_also_after_a_load_and_only_its_own() {
    let long = "x".repeat(40 << 10);
    for (files, told, untold) in [
        (
            vec![("AGENTS.md", "Use tabs."), ("CLAUDE.md", "Be brief.")],
            vec![
                "from AGENTS.md:\nUse tabs.\n",
                "from CLAUDE.md:\nBe brief.\n",
            ],
            vec![],
        ),
        (vec![("a.txt", "Use tabs.")], vec![], vec!["Use tabs."]),
        // Out of the project by a link.
        (
            vec![("AGENTS.md", "->/etc/motd"), ("/etc/motd", "Use tabs.")],
            vec![],
            vec!["Use tabs.", "AGENTS.md:"],
        ),
        // All of them together are bounded.
        (
            vec![("AGENTS.md", &*long), ("CLAUDE.md", "Be brief.")],
            vec!["from AGENTS.md:\nxxx"],
            vec!["Be brief.", &*long],
        ),
    ] {
        let (mut sim, session) = begin(&files, &[say("a")], "");
        said(&mut sim, 1, &session, "hello");
        sim.finish();
        // The next process, on what this one left.
        let mut world = World::on(sim.world.disk.after_crash(true, |_| Keep::All));
        world.answers = [http(&say("b"))].into();
        let mut config = config();
        config.ephemeral = false;
        let mut next = Sim::new(config, world);
        next.ask(&json::initialize(9001));
        let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
        next.ask(&json::request(9002, "session/load", params));
        said(&mut next, 1, &session, "hello again");
        for sim in [&sim, &next] {
            let system = system(sim, 0);
            for part in &told {
                assert!(system.contains(part), "{part}: {system}");
            }
            for part in &untold {
                assert!(!system.contains(part), "{part}: {system}");
            }
        }
        next.finish();
        next.laws.check();
    }
}

/// The smallest picture there is.
pub(super) const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

#[test]
fn what_a_prompt_brings_along_is_saved_beside_a_gitignore_and_named_to_the_model() {
    let ignore = "/w/.reasonix/attachments/.gitignore";
    for own in [None, Some("mine")] {
        let mut files = Vec::new();
        files.extend(own.map(|own| (ignore, own)));
        let (mut sim, session) = begin(&files, &[say("a")], "");
        let prompt = json!([
            {"type": "text", "text": "look"},
            {"type": "image", "mimeType": "image/png", "data": PICTURE},
            {"type": "resource", "resource": {"uri": "file:///x/b.bin", "blob": "AAEC"}},
        ]);
        blocks(&mut sim, 1, &session, prompt);
        let saved = |end: &str| {
            let mut all = sim.world.disk.paths();
            let found = all.find(|(path, _)| {
                path.starts_with("/w/.reasonix/attachments/") && path.ends_with(end)
            });
            let path = found
                .map(|(path, _)| path.to_string())
                .expect("it is saved");
            let bytes = sim.world.file(&path).unwrap_or_default().to_vec();
            (path.trim_start_matches("/w/").to_string(), bytes)
        };
        let (picture, bytes) = saved(".png");
        assert!(bytes.starts_with(b"\x89PNG\r\n"));
        let (blob, bytes) = saved("b.bin");
        assert_eq!(bytes, [0, 1, 2]);
        let (_, ignored) = saved(".gitignore");
        assert_eq!(String::from_utf8_lossy(&ignored), own.unwrap_or("*\n"));
        let text = heard(&sim, 0);
        assert_eq!(text, format!("look\n\n@{picture}\n\n@{blob}"));
        sim.finish();
        sim.laws.check();
    }
}

#[test]
fn what_was_sent_stays_the_same_to_the_byte_whatever_is_changed_meanwhile() {
    let answers = [
        tool("a", "ls", json!({})),
        say("one"),
        tool("b", "bash", json!({"command": "count"})),
        say("two"),
        say("three"),
        say("four"),
        say("five"),
    ];
    let (mut sim, session) = begin(&[("AGENTS.md", "Use tabs.")], &answers, "");
    let on = |id: u64, method: &str, more: Value| {
        let mut params = more;
        params["sessionId"] = json!(session);
        json::request(id, method, params)
    };
    let option = |id: u64, option: &str, value: &str| {
        on(
            id,
            "session/set_config_option",
            json!({"configId": option, "value": value}),
        )
    };
    said(&mut sim, 1, &session, "hello");
    // Guidance while a card is open.
    sim.cards = vec![Card::Silence];
    sim.send(&json::prompt(2, &session, "count"));
    let card = |sim: &Sim| {
        let mut frames = sim.frames.iter();
        frames
            .find(|frame| frame["method"] == "session/request_permission")
            .map(|frame| frame["id"].clone())
    };
    sim.until("a card", |sim| card(sim).is_some());
    let blocks = json!({"prompt": [{"type": "text", "text": "from the right"}]});
    sim.ask(&on(3, "_reasonix.io/session/steer", blocks));
    let id = card(&sim).expect("just seen");
    let allow = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    sim.send(&json::result(&id, allow));
    sim.answer(2);
    // Approvals, mode and preset between turns.
    sim.ask(&option(4, "tool_approval", "auto"));
    said(&mut sim, 5, &session, "and now");
    sim.ask(&on(6, "session/set_mode", json!({"modeId": "plan"})));
    said(&mut sim, 7, &session, "and now");
    sim.ask(&on(8, "session/set_mode", json!({"modeId": "normal"})));
    sim.ask(&option(9, "tool_approval", "ask"));
    said(&mut sim, 10, &session, "and now");
    assert_eq!(sim.world.requests.len(), answers.len());
    let raw =
        |n: usize| String::from_utf8(sim.world.requests[n].body.clone()).expect("JSON is text");
    for n in 1..answers.len() {
        let (before, after) = (body(&sim, n - 1), body(&sim, n));
        let messages = |body: &Value| body["messages"].as_array().cloned().expect("a list");
        let (old, new) = (messages(&before), messages(&after));
        assert_eq!(new[..old.len()], old, "request {n}");
        assert_eq!(before["tools"], after["tools"], "request {n}");
        // To the byte: the list of messages begins as it did.
        let (before, after) = (raw(n - 1), raw(n));
        let list = |raw: &str| {
            let from = raw.find("\"messages\":[").expect("it has messages");
            raw[from..].to_string()
        };
        let (before, after) = (list(&before), list(&after));
        let last = serde_json::to_string(&old[old.len() - 1]["content"]).expect("JSON");
        let end = before.find(&last).map_or(0, |at| at + last.len());
        assert!(
            end > 0 && after.starts_with(&before[..end]),
            "request {n}: {before}\n{after}"
        );
    }
    sim.finish();
    sim.laws.check();
}
