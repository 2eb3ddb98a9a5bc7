//! Turns on pipes: their one answer, their order, cancels, and what one turn leaves for the next.

use std::time::Duration;

use reasonix_tests::json::{self, json};
use reasonix_tests::provider::{
    Answer, Step, call, data, done, finish, hang, reasoning, say, text, tool,
};

use crate::cases::{Case, Expect::*, case, check};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_cancel_ends_its_own_turn_and_nothing_else() {
    check(vec![
        Case {
            drive: |run| {
                run.prompt("go");
                run.update("agent_message_chunk");
                run.cancel();
                run.agent.answer(run.last);
                assert!(run.provider.hung_up(1, SECOND * 2), "the socket stays open");
            },
            ..case(
                "a cancelled turn says so and closes its socket",
                vec![hang([text("part")])],
                vec![Stop("cancelled"), Said("part"), Within(SECOND * 2)],
            )
        },
        case(
            "a tool that reaches its own limit is no cancel",
            vec![
                tool(
                    "c1",
                    "bash",
                    json!({"command": "sleep 30", "timeout_seconds": 1}),
                ),
                say("ok"),
            ],
            vec![
                Stop("end_turn"),
                Ends(&["failed"]),
                Told(1, "tim"),
                Said("ok"),
            ],
        ),
        Case {
            drive: |run| {
                let turn = run.prompt("go");
                run.update("agent_message_chunk");
                let cwd = run.place.work();
                let params = json!({"sessionId": run.session, "cwd": cwd, "mcpServers": []});
                run.agent.send(&json::request(77, "session/load", params));
                run.cancel();
                run.agent.answer(turn);
                run.agent.answer(77);
            },
            ..case(
                "a load of a session leaves its running turn within reach",
                vec![hang([text("part")])],
                vec![Stop("cancelled"), Within(SECOND * 2)],
            )
        },
        Case {
            drive: |run| {
                let turn = run.prompt("go");
                run.update("agent_message_chunk");
                let cancel = json::cancel(&run.session);
                run.agent.send_all(&[cancel.clone(), cancel]);
                let answer = run.agent.answer(turn);
                assert_eq!(answer["result"]["stopReason"], "cancelled");
                run.turn("again");
            },
            ..case(
                "a second cancel does not reach the next turn",
                vec![hang([text("a")]), say("b")],
                vec![Stop("end_turn"), Said("ab")],
            )
        },
        Case {
            drive: |run| {
                run.turn("my word is KIWI");
                run.prompt("hang now");
                run.agent.until("the hanging text", |frame| {
                    json::update(frame, "").is_some_and(|u| u["content"]["text"] == "x")
                });
                run.cancel();
                run.agent.answer(run.last);
                run.turn("what was it");
            },
            ..case(
                "a cancel keeps the session and what was said in it",
                vec![say("ok"), hang([text("x")]), say("k")],
                vec![Stop("end_turn"), Told(2, "KIWI"), Told(2, "hang now")],
            )
        },
        Case {
            drive: |run| {
                let turn = run.prompt("go");
                run.status("in_progress");
                run.cancel();
                let answer = run.agent.answer(turn);
                assert_eq!(answer["result"]["stopReason"], "cancelled");
                run.turn("again");
                let left = std::process::Command::new("pgrep")
                    .args(["-f", "sleep 61.7"])
                    .output();
                assert!(
                    left.is_ok_and(|left| left.stdout.is_empty()),
                    "the command lives on"
                );
            },
            ..case(
                "a cancel inside a command ends it and frees the session",
                vec![
                    tool("c1", "bash", json!({"command": "sleep 61.7"})),
                    say("b"),
                ],
                vec![
                    Stop("end_turn"),
                    Ends(&["failed"]),
                    Said("b"),
                    Within(SECOND * 4),
                ],
            )
        },
        Case {
            drive: |run| {
                run.prompt("go");
                run.update("agent_message_chunk");
                run.cancel();
                run.agent.answer(run.last);
            },
            ..case(
                "a connection that is reset by the cancel is still a cancel",
                vec![Answer::stream([text("x")]).then(Step::HangThenReset)],
                vec![Stop("cancelled")],
            )
        },
        Case {
            drive: |run| {
                let turn = run.prompt("go");
                run.status("in_progress");
                let close = json!({"sessionId": run.session});
                let closed = run.agent.ask(&json::request(77, "session/close", close));
                assert_eq!(closed["result"], json!({}));
                let answer = run.agent.answer(turn);
                assert_eq!(answer["result"]["stopReason"], "cancelled");
                run.turn("again");
            },
            ..case(
                "closing a session ends its turn first",
                vec![tool("c1", "bash", json!({"command": "sleep 60"})), say("b")],
                vec![
                    Fails(-32002, "session_not_found"),
                    Requests(1),
                    Within(SECOND * 4),
                ],
            )
        },
    ]);
}

#[test]
fn turns_follow_each_other_and_keep_apart() {
    check(vec![
        Case {
            drive: |run| {
                let first = run.prompt("one");
                let second = run.turn("two");
                assert_eq!(second["error"]["data"]["code"], "session_busy");
                run.last = first;
                run.agent.answer(first);
            },
            ..case(
                "two turns of one session never overlap",
                vec![Answer {
                    steps: vec![
                        Step::Bytes(text("slow").into()),
                        Step::Pause(Duration::from_millis(200)),
                        Step::Bytes((finish("stop") + &done()).into()),
                    ],
                    ..say("")
                }],
                vec![Stop("end_turn"), Requests(1), Said("slow")],
            )
        },
        Case {
            drive: |run| {
                run.turn("same text");
                run.turn("same text");
            },
            ..case(
                "the same prompt again is another turn",
                vec![say("a"), say("b")],
                vec![Stop("end_turn"), Requests(2), Said("ab")],
            )
        },
        case(
            "text is sent once: neither the deltas again nor the prompt",
            vec![Answer::stream([
                text("He"),
                text("llo"),
                finish("stop"),
                done(),
            ])],
            vec![Stop("end_turn"), Said("Hello")],
        ),
        Case {
            drive: |run| {
                let blocks = json!([{"type": "text", "text": "see"},
                    {"type": "resource", "resource": {"uri": "file:///x/notes.txt", "text": "EMBEDDED"}}]);
                run.last += 1;
                let params = json!({"sessionId": run.session, "prompt": blocks});
                run.agent
                    .ask(&json::request(run.last, "session/prompt", params));
            },
            ..case(
                "embedded text reaches the model",
                vec![say("k")],
                vec![Stop("end_turn"), Told(0, "EMBEDDED"), Told(0, "notes.txt")],
            )
        },
        Case {
            drive: |run| {
                run.last += 1;
                let blocks = json!([{"type": "hologram", "data": "x"}]);
                let params = json!({"sessionId": run.session, "prompt": blocks});
                run.agent
                    .ask(&json::request(run.last, "session/prompt", params));
            },
            ..case(
                "a block of an unknown type is refused, not waited for",
                vec![say("k")],
                vec![Fails(-32602, ""), Requests(0), Within(SECOND * 2)],
            )
        },
        Case {
            drive: |run| {
                run.last += 1;
                let blocks = json!([{"type": "text", "text": "look"},
                    {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}]);
                let params = json!({"sessionId": run.session, "prompt": blocks});
                run.agent
                    .ask(&json::request(run.last, "session/prompt", params));
            },
            ..case(
                "an image block does not hang the turn",
                vec![say("k")],
                vec![Within(SECOND * 2)],
            )
        },
        Case {
            files: &[("a.txt", b"x")],
            drive: |run| {
                run.turn("go");
                let diff = run
                    .agent
                    .frames
                    .iter()
                    .filter_map(|frame| json::update(frame, ""))
                    .flat_map(|update| update["content"].as_array().cloned().unwrap_or_default())
                    .find(|content| content["type"] == "diff");
                let diff = diff.expect("an edit shows its diff");
                assert_eq!(
                    (&diff["oldText"], &diff["newText"]),
                    (&json!("x"), &json!(""))
                );
            },
            ..case(
                "an edit that empties a file says so in its diff",
                vec![
                    tool("c0", "read_file", json!({"path": "a.txt"})),
                    tool(
                        "c1",
                        "edit_file",
                        json!({"path": "a.txt", "old_string": "x", "new_string": ""}),
                    ),
                    say("k"),
                ],
                vec![
                    Stop("end_turn"),
                    Ends(&["completed", "completed"]),
                    File("a.txt", b""),
                ],
            )
        },
        case(
            "thoughts and words keep apart",
            vec![Answer::stream([
                reasoning("hm"),
                text("yes"),
                finish("stop"),
                data(
                    &json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}),
                ),
                done(),
            ])],
            vec![Stop("end_turn"), Said("yes")],
        ),
        case(
            "two calls of one answer both end before the next request",
            vec![
                Answer::stream([
                    call(0, "a", "ls", "{\"path\":\".\"}"),
                    call(1, "b", "ls", "{\"path\":\".\"}"),
                    finish("tool_calls"),
                    done(),
                ]),
                say("k"),
            ],
            vec![
                Stop("end_turn"),
                Ends(&["completed", "completed"]),
                Requests(2),
            ],
        ),
    ]);
}
