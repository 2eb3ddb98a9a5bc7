//! The permission gate on pipes: nothing runs before it was allowed, and whatever is not a yes is a
//! no.

use std::time::Duration;

use reasonix_tests::json::{self, json};
use reasonix_tests::provider::{say, tool};
use reasonix_tests::sim::Card;

use crate::cases::{Case, Expect::*, Run, case, check};

fn write_then_say() -> Vec<reasonix_tests::provider::Answer> {
    vec![
        tool(
            "c1",
            "write_file",
            json!({"path": "$W/n.txt", "content": "1"}),
        ),
        say("k"),
    ]
}

/// Answers that are no yes.
fn no_answers() -> Vec<(&'static str, Card)> {
    let raw = |text: &str| Card::Raw(text.into());
    vec![
        ("a rejection denies", Card::Choose("reject_once")),
        (
            "a cancelled card denies",
            raw(r#"{"outcome":{"outcome":"cancelled"}}"#),
        ),
        ("an error denies", Card::Error),
        (
            "an option that was never offered denies",
            raw(r#"{"outcome":{"outcome":"selected","optionId":"made-up"}}"#),
        ),
        (
            "a flat outcome denies",
            raw(r#"{"outcome":"selected","optionId":"allow_once"}"#),
        ),
        ("an empty answer denies", raw("{}")),
        ("a null answer denies", raw("null")),
        (
            "a selection of nothing denies",
            raw(r#"{"outcome":{"outcome":"selected"}}"#),
        ),
    ]
}

#[test]
fn what_is_not_a_yes_is_a_no() {
    check(
        no_answers()
            .into_iter()
            .map(|(name, card)| Case {
                card,
                ..case(
                    name,
                    write_then_say(),
                    vec![
                        Stop("end_turn"),
                        Ends(&["failed"]),
                        NoFile("n.txt"),
                        Asked(1),
                    ],
                )
            })
            .collect(),
    );
}

/// Reads until the card is open; gives its id and its params.
fn card(run: &mut Run) -> json::Value {
    run.agent.until("the card", |frame| {
        frame["method"] == "session/request_permission"
    })
}

#[test]
fn nothing_happens_before_the_yes() {
    check(vec![
        Case {
            card: Card::Silence,
            drive: |run| {
                let turn = run.prompt("go");
                let asked = card(run);
                let options = asked["params"]["options"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                let kinds: Vec<_> = options.iter().filter_map(|o| o["kind"].as_str()).collect();
                assert!(
                    kinds.iter().all(|kind| [
                        "allow_once",
                        "allow_always",
                        "reject_once",
                        "reject_always"
                    ]
                    .contains(kind)),
                    "{kinds:?}"
                );
                assert!(
                    kinds.iter().any(|kind| kind.starts_with("reject")),
                    "{kinds:?}"
                );
                let call = &asked["params"]["toolCall"]["toolCallId"];
                let cards: Vec<_> = run
                    .agent
                    .frames
                    .iter()
                    .filter_map(|frame| json::update(frame, ""))
                    .filter(|update| update["toolCallId"] == *call)
                    .cloned()
                    .collect();
                assert_eq!(
                    cards.len(),
                    1,
                    "announced once, and still pending: {cards:#?}"
                );
                assert_eq!(cards[0]["status"], "pending");
                assert!(!run.place.file("n.txt").exists());
                let yes = options.iter().find(|option| option["kind"] == "allow_once");
                let outcome =
                    json!({"outcome": "selected", "optionId": yes.expect("a yes")["optionId"]});
                run.agent
                    .send(&json::result(&asked["id"], json!({"outcome": outcome})));
                run.agent.answer(turn);
            },
            ..case(
                "a write waits for its card",
                write_then_say(),
                vec![Stop("end_turn"), Ends(&["completed"]), File("n.txt", b"1")],
            )
        },
        Case {
            card: Card::Silence,
            drive: |run| {
                let turn = run.prompt("go");
                let asked = card(run);
                run.cancel();
                run.agent.answer(turn);
                let options = asked["params"]["options"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                let yes = options.iter().find(|option| option["kind"] == "allow_once");
                let outcome =
                    json!({"outcome": "selected", "optionId": yes.expect("a yes")["optionId"]});
                run.agent
                    .send(&json::result(&asked["id"], json!({"outcome": outcome})));
                // Whatever the late yes did would come before the answer to this.
                let probe = json::request(88, "session/nothing", json!({}));
                let heard = run.agent.frames.len();
                run.agent.ask(&probe);
                assert_eq!(run.agent.frames.len(), heard + 1, "the late yes was heard");
            },
            ..case(
                "a cancel takes the open card with it, and a late yes does nothing",
                write_then_say(),
                vec![
                    Stop("cancelled"),
                    NoFile("n.txt"),
                    Within(Duration::from_secs(2)),
                ],
            )
        },
        Case {
            card: Card::Silence,
            drive: |run| {
                let turn = run.prompt("go");
                let asked = card(run);
                let both = json!({"jsonrpc": "2.0", "id": asked["id"],
                    "result": {"outcome": {"outcome": "selected", "optionId": asked["params"]["options"][0]["optionId"]}},
                    "error": {"code": -1, "message": "x"}});
                run.agent.send(&json::result(&json!(4711), json!({})));
                run.agent.send(&both);
                run.agent.answer(turn);
            },
            ..case(
                "an answer with a result and an error is no yes, and one that nobody asked for is nothing",
                write_then_say(),
                vec![Stop("end_turn"), Ends(&["failed"]), NoFile("n.txt")],
            )
        },
        Case {
            card: Card::Choose("allow_always"),
            drive: |run| {
                run.turn("go");
                let cwd = run.place.out();
                let other = run
                    .agent
                    .ask(&json::new_session(77, cwd.to_str().unwrap_or_default()));
                let first = std::mem::replace(
                    &mut run.session,
                    other["result"]["sessionId"]
                        .as_str()
                        .unwrap_or_default()
                        .into(),
                );
                assert_ne!(first, run.session);
                run.turn("go");
            },
            ..case(
                "a grant stays in its session",
                vec![
                    tool("c1", "write_file", json!({"path": "n.txt", "content": "1"})),
                    tool("c2", "write_file", json!({"path": "m.txt", "content": "1"})),
                    say("k"),
                    tool("c3", "write_file", json!({"path": "n.txt", "content": "2"})),
                    say("k"),
                ],
                vec![
                    Stop("end_turn"),
                    Asked(2),
                    File("n.txt", b"1"),
                    File("m.txt", b"1"),
                ],
            )
        },
        Case {
            flags: &["--permission-mode", "read-only"],
            ..case(
                "under a read-only ceiling nothing is asked and nothing runs",
                write_then_say(),
                vec![
                    Stop("end_turn"),
                    Asked(0),
                    Ends(&["failed"]),
                    NoFile("n.txt"),
                ],
            )
        },
        Case {
            flags: &["--permission-mode", "acceptEdits"],
            ..case(
                "with edits accepted a write inside the roots is not asked, a command is",
                vec![
                    tool("c1", "write_file", json!({"path": "n.txt", "content": "1"})),
                    tool("c2", "bash", json!({"command": "touch m.txt"})),
                    say("k"),
                ],
                vec![
                    Stop("end_turn"),
                    Asked(1),
                    File("n.txt", b"1"),
                    File("m.txt", b""),
                ],
            )
        },
        Case {
            flags: &["--permission-mode", "bypassPermissions"],
            ..case(
                "in yolo nothing is asked",
                vec![
                    tool("c1", "bash", json!({"command": "touch m.txt"})),
                    say("k"),
                ],
                vec![Stop("end_turn"), Asked(0), File("m.txt", b"")],
            )
        },
    ]);
}
