//! Keys reach the provider they are for, and nobody else: no frame, no log, no transcript, no command.
//! Every test of the programs looks for the planted keys; here are those that ask for trouble.

use std::time::Duration;

use reasonix_core::permission::PermissionMode;
use reasonix_core::settings::Settings;
use reasonix_tests::json::{self, json};
use reasonix_tests::process::{PLANTED, leak};
use reasonix_tests::provider::{Answer, say, tool};
use reasonix_tests::sim::{Sim, config};
use reasonix_tests::world::{Command, World, http};

use crate::cases::{Case, Expect::*, case, check};

#[test]
fn the_scanner_sees_what_it_is_for() {
    for (name, key) in PLANTED {
        assert_eq!(leak(format!("x {key} y").as_bytes()), Some(name));
    }
    assert_eq!(leak(b"PLANTED_KEY DEEPSEEK_API_KEY sk-planted"), None);
}

#[test]
fn a_key_reaches_its_provider_and_no_command() {
    check(vec![
        Case {
            flags: &["--permission-mode", "bypassPermissions", "-vv"],
            drive: |run| {
                run.turn("go");
                let heads = run.provider.heads();
                let sent = heads.iter().filter(|head| head.contains(PLANTED[0].1));
                assert_eq!(sent.count(), heads.len(), "it is the provider's key");
                assert!(!heads.is_empty() && heads.iter().all(|h| !h.contains(PLANTED[1].1)));
            },
            ..case(
                "a command finds no key in its environment",
                vec![
                    tool("c1", "bash", json!({"command": "env; echo looked"})),
                    say("k"),
                ],
                vec![Stop("end_turn"), Ends(&["completed"])],
            )
        },
        Case {
            flags: &["-vv"],
            ..case(
                "a provider that says the key back in an error is not quoted",
                vec![Answer::plain(
                    401,
                    "application/json",
                    &format!(
                        r#"{{"error":{{"message":"no such key {}"}}}}"#,
                        PLANTED[0].1
                    ),
                )],
                vec![],
            )
        },
    ]);
}

#[test]
fn a_command_that_reads_the_file_of_keys_shows_nothing_of_them() {
    let env = "\"$REASONIX_HOME/.env\"";
    let fill = |count: usize, with: char| format!("head -c {count} /dev/zero | tr '\\0' {with}");
    // In pieces with pauses; at the edge of what is kept of a long output, at its beginning and at
    // its end; on the other stream; at the very end of what was printed before a time limit.
    let pieces = format!("for n in $(seq 1 45); do head -c $n {env} | tail -c 1; sleep 0.02; done");
    let head = format!(
        "{}; cat {env}; {}",
        fill((16 << 10) - 25, 'x'),
        fill(200_000, 'y')
    );
    let tail = format!(
        "{}; cat {env}; {}",
        fill(200_000, 'x'),
        fill((32 << 10) - 12, 'y')
    );
    let lines = [
        format!("cat {env}"),
        pieces,
        head,
        tail,
        format!("cat {env} >&2; exit 3"),
        format!("cat {env} {env} {env} | tr -d '\\n'; sleep 60"),
        format!("base64 -w0 {env}"),
        format!("printf x | cat - {env} | base64 -w0"),
        format!("od -An -v -tx1 {env} | tr -d ' \\n'"),
    ];
    check(
        lines
            .iter()
            .map(|line| Case {
                flags: &["--permission-mode", "bypassPermissions", "-vv"],
                drive: |run| {
                    run.turn("go");
                    let body = &run.provider.requests()[1];
                    let body = body.to_string();
                    assert!(body.contains("[redacted]"), "{body}");
                    assert_eq!(leak(body.as_bytes()), None);
                    // Nor a part of it that is worth something.
                    assert!(!body.contains("in-env-file") && !body.contains("5f1c9a"));
                    // Nor another spelling: `planted-in-env` in base64, twice, and in hexadecimal.
                    for part in [
                        "cGxhbnRlZC1pbi1lbn",
                        "LXBsYW50ZWQtaW4tZW",
                        "706c616e7465642d",
                    ] {
                        assert!(!body.contains(part), "{body}");
                    }
                },
                ..case(
                    "a command that prints .env",
                    vec![
                        tool("c1", "bash", json!({"command": line, "timeout_seconds": 3})),
                        say("k"),
                    ],
                    vec![Stop("end_turn")],
                )
            })
            .collect(),
    );
}

#[test]
fn no_tool_gives_a_key_whatever_it_reads() {
    check(vec![
        Case {
            flags: &["--permission-mode", "bypassPermissions", "-vv"],
            setup: |place| {
                let text = format!("a\nkey = {}\nb\n", PLANTED[0].1);
                place.write("notes.txt", text);
            },
            drive: |run| {
                run.turn("go");
                // The file has its key still; it is ours.
                let notes = run.place.file("notes.txt");
                let text = std::fs::read_to_string(&notes).expect("it is there");
                assert_eq!(text, format!("a\nkey = {}\nc\n", PLANTED[0].1));
                std::fs::remove_file(notes).expect("removed");
            },
            ..case(
                "a file of the project that holds the key",
                vec![
                    tool("c1", "read_file", json!({"path": "notes.txt"})),
                    tool("c2", "grep", json!({"pattern": "key"})),
                    tool(
                        "c3",
                        "edit_file",
                        json!({"path": "notes.txt", "old_string": "b\n", "new_string": "c\n"}),
                    ),
                    tool(
                        "c4",
                        "bash",
                        json!({"command": "cat notes.txt", "run_in_background": true}),
                    ),
                    tool("c5", "wait", json!({})),
                    say("k"),
                ],
                vec![
                    Stop("end_turn"),
                    Ends(&["completed"; 5]),
                    Told(1, "key = [redacted]"),
                    // A pattern could try the key letter by letter.
                    Told(2, "No matches."),
                    Told(5, "key = [redacted]"),
                ],
            )
        },
        Case {
            flags: &["--permission-mode", "bypassPermissions"],
            setup: |place| place.write("notes.txt", format!("k={}\n", PLANTED[0].1)),
            drive: |run| {
                run.turn("go");
                let notes = run.place.file("notes.txt");
                let text = std::fs::read_to_string(&notes).expect("it is there");
                assert_eq!(text, format!("k={}\n", PLANTED[0].1), "the key is not lost");
                std::fs::remove_file(notes).expect("removed");
            },
            ..case(
                "a file written as it was shown",
                vec![
                    tool("c1", "read_file", json!({"path": "notes.txt"})),
                    tool(
                        "c2",
                        "write_file",
                        json!({"path": "notes.txt", "content": "k=[redacted]\nmore\n"}),
                    ),
                    say("k"),
                ],
                vec![
                    Stop("end_turn"),
                    Ends(&["completed", "failed"]),
                    Told(2, "holds a key"),
                ],
            )
        },
        Case {
            flags: &["--permission-mode", "bypassPermissions"],
            ..case(
                "the file of keys itself",
                vec![
                    tool("c1", "read_file", json!({"path": "$W/../home/.env"})),
                    tool(
                        "c2",
                        "grep",
                        json!({"pattern": "sk-", "path": "$W/../home"}),
                    ),
                    say("k"),
                ],
                vec![Stop("end_turn"), Ends(&["failed"; 2])],
            )
        },
    ]);
}

#[test]
fn in_a_simulated_world_a_key_is_shown_by_no_live_output_and_no_record() {
    let (name, key) = PLANTED[0];
    for at in 1..key.len() {
        let mut config = config();
        config.ephemeral = false;
        config.permission_mode = PermissionMode::parse("bypassPermissions").expect("a mode");
        let mut world = World::with_files("/w", &[]);
        let (first, second) = key.split_at(at);
        let command = |contains: &str, output: String, takes| Command {
            contains: contains.into(),
            output: output.into_bytes(),
            takes: Some(takes),
            code: 0,
        };
        world.commands = vec![command(
            "show",
            format!("{name}={first}{second}\n"),
            Duration::from_secs(1),
        )];
        let call = json!({"command": "show"});
        world.answers = [http(&tool("c1", "bash", call)), http(&say("k"))].into();
        // The room of a call cuts its output where it likes.
        config.limits.call_window = name.len() + 1 + at;
        let mut sim = Sim::new(config, world);
        let session = sim.open(json!({}), "/w");
        let answer = sim.ask(&json::prompt(5, &session, "go"));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        let frames = format!("{:?}", sim.frames);
        assert!(frames.contains("PLANTED_KEY=[redacted]"), "{at}: {frames}");
        assert!(!frames.contains("sk-planted-in"), "{at}: {frames}");
    }
}

#[test]
fn after_a_logout_keys_are_used_by_nobody_until_somebody_authenticates() {
    let mut world = World::with_files("/w", &[]);
    world.answers = [http(&say("one")), http(&say("two"))].into();
    let settings: Settings = config().settings;
    world.settings = Some(Ok(settings));
    let mut sim = Sim::new(config(), world);
    let hello = sim.ask(&json::initialize(1));
    assert!(hello["result"]["agentCapabilities"]["auth"]["logout"].is_object());
    assert_eq!(hello["result"]["authMethods"], json!([]), "none is needed");
    let session = sim.open_another(2, "/w");
    let prompt = |id| json::prompt(id, &session, "go");
    assert_eq!(sim.ask(&prompt(3))["result"]["stopReason"], "end_turn");
    // Twice is the same as once.
    for id in [4, 5] {
        let out = sim.ask(&json::request(id, "logout", json!({})));
        assert_eq!(out["result"], json!({}), "{out}");
    }
    let refused = |answer: &json::Value| {
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
        let said = answer.to_string();
        assert!(said.contains("uthenticate"), "{said}");
        let data = &answer["error"]["data"];
        assert_eq!(data["code"], "auth_required", "{answer}");
        assert_eq!(data["model"], "local/tiny", "{answer}");
        assert!(data["howTo"].is_string(), "{answer}");
        // The client knows of no method yet.
        data["methodId"].clone()
    };
    refused(&sim.ask(&prompt(6)));
    refused(&sim.ask(&json::new_session(7, "/w")));
    // To read the configuration again is not to log in.
    sim.ask(&json::prompt(8, &session, "/reload"));
    refused(&sim.ask(&prompt(9)));
    refused(&sim.ask(&json::new_session(10, "/w")));
    assert_eq!(sim.world.requests.len(), 1, "nobody was asked");
    let other = json!({"methodId": "another"});
    let other = sim.ask(&json::request(14, "authenticate", other));
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let method = json!({"methodId": refused(&sim.ask(&prompt(15)))});
    let back = sim.ask(&json::request(11, "authenticate", method));
    assert_eq!(back["result"], json!({}), "{back}");
    assert_eq!(sim.ask(&prompt(12))["result"]["stopReason"], "end_turn");
    assert!(sim.ask(&json::new_session(13, "/w"))["result"].is_object());
    sim.laws.check();
}

#[test]
fn a_turn_that_runs_at_a_logout_has_its_one_answer() {
    let mut world = World::with_files("/w", &[]);
    let command = Command {
        contains: "slow".into(),
        output: Vec::new(),
        takes: Some(Duration::from_secs(5)),
        code: 0,
    };
    world.commands = vec![command];
    let call = tool("c1", "bash", json!({"command": "slow"}));
    world.answers = [http(&call), http(&say("k"))].into();
    let mut config = config();
    config.permission_mode = PermissionMode::parse("bypassPermissions").expect("a mode");
    let mut sim = Sim::new(config, world);
    let session = sim.open(json!({}), "/w");
    sim.send(&json::prompt(3, &session, "go"));
    sim.until("it runs", |sim| !sim.world.ran.is_empty());
    sim.ask(&json::request(4, "logout", json!({})));
    assert_eq!(sim.answer(3)["result"]["stopReason"], "end_turn");
    let next = sim.ask(&json::prompt(5, &session, "go"));
    assert_eq!(next["error"]["code"], -32000, "{next}");
    sim.laws.check();
}
