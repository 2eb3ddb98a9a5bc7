//! What a provider can send, well or badly formed, and what a turn makes of it.

use std::time::Duration;

use reasonix_tests::json::json;
use reasonix_tests::provider::{
    Answer, Step, call, calls, data, delta, done, finish, say, text, tool,
};

use crate::cases::{Case, Expect::*, case, check};

const AT_ONCE: &str = "max_retries = 0";

fn bytes(raw: &str) -> Answer {
    Answer::stream([raw.to_string()])
}

#[test]
fn every_legal_spelling_of_a_stream_is_read() {
    let a = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#;
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let end = vec![Stop("end_turn"), Said("a"), Requests(1)];
    check(vec![
        case(
            "comments are not data",
            vec![Answer::stream([
                ": keep-alive\n\n".repeat(3),
                ":\n\n".into(),
                text("a"),
                ": x\n".into(),
                text("b"),
                finish("stop"),
                done(),
            ])],
            vec![Stop("end_turn"), Said("ab")],
        ),
        case(
            "a space behind the colon is optional",
            vec![bytes(&format!(
                "data:{a}\n\ndata:  {stop}\n\ndata:[DONE]\n\n"
            ))],
            end.clone(),
        ),
        case(
            "an event may take several data lines",
            vec![bytes(&format!(
                "data: {}\ndata: {}\n\ndata: {stop}\n\ndata: [DONE]\n\n",
                &a[..11],
                &a[11..]
            ))],
            end.clone(),
        ),
        case(
            "the end mark ends it, though the socket stays open",
            vec![Answer::stream([text("a"), finish("stop"), done()]).then(Step::Hang)],
            end.clone(),
        ),
        case(
            "carriage returns end lines too",
            vec![bytes(&format!(
                "data: {a}\r\n\r\ndata: {stop}\r\rdata: [DONE]\r\n\r\n"
            ))],
            end.clone(),
        ),
        case(
            "a stream cut at every byte is the same stream",
            vec![Answer {
                steps: vec![
                    Step::Dribble(format!("data: {}\n\n", a.replace("\"a\"", "\"a🙂é\"")).into()),
                    Step::Bytes((finish("stop") + &done()).into()),
                ],
                ..say("")
            }],
            vec![Stop("end_turn"), Said("a🙂é")],
        ),
        case(
            "chunks without choices are passed over",
            vec![Answer::stream([
                text("a"),
                finish("stop"),
                data(
                    &json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}),
                ),
                data(&json!({"choices": null, "usage": null})),
                data(&json!({})),
                done(),
            ])],
            end.clone(),
        ),
        case(
            "empty and null members say nothing",
            vec![Answer::stream([
                data(
                    &json!({"choices": [{"delta": {"content": null, "tool_calls": null, "role": ""}, "finish_reason": ""}]}),
                ),
                text("a"),
                data(
                    &json!({"choices": [{"delta": {"content": "", "role": null}, "finish_reason": ""}]}),
                ),
                finish("stop"),
                done(),
            ])],
            end.clone(),
        ),
        case(
            "an end mark without a finish reason is an end",
            vec![Answer::stream([text("a"), done()])],
            end.clone(),
        ),
    ]);
}

#[test]
fn a_broken_answer_is_never_taken_for_a_whole_one() {
    let failed = || vec![Fails(-32603, "turn_failed")];
    check(vec![
        Case {
            settings: AT_ONCE,
            ..case(
                "a stream that breaks off",
                vec![Answer::stream([text("par")]).then(Step::Cut)],
                failed(),
            )
        },
        Case {
            settings: AT_ONCE,
            ..case(
                "a tool call in a stream that breaks off is not run",
                vec![
                    Answer::stream([call(
                        0,
                        "c1",
                        "write_file",
                        r#"{"path":"n.txt","content":"x"}"#,
                    )])
                    .then(Step::Cut),
                ],
                vec![Fails(-32603, "turn_failed"), NoFile("n.txt"), Asked(0)],
            )
        },
        Case {
            settings: AT_ONCE,
            ..case(
                "an empty body",
                vec![Answer::plain(200, "text/event-stream", "")],
                failed(),
            )
        },
        Case {
            settings: AT_ONCE,
            ..case(
                "a page of HTML",
                vec![Answer::plain(200, "text/html", "<html>hi</html>")],
                failed(),
            )
        },
        Case {
            settings: "max_retries = 0\nidle_timeout_seconds = 1",
            ..case(
                "a provider that sends its head and nothing more",
                vec![Answer::stream([]).then(Step::Hang)],
                vec![Fails(-32603, "1 s"), Within(Duration::from_secs(4))],
            )
        },
        Case {
            settings: "max_retries = 0\nidle_timeout_seconds = 1",
            ..case(
                "comments count as life",
                vec![Answer {
                    steps: [": a\n", ": b\n", ": c\n"]
                        .iter()
                        .flat_map(|comment| {
                            [
                                Step::Bytes((*comment).into()),
                                Step::Pause(Duration::from_millis(600)),
                            ]
                        })
                        .chain([Step::Bytes((text("a") + &finish("stop") + &done()).into())])
                        .collect(),
                    ..say("")
                }],
                vec![Stop("end_turn"), Said("a")],
            )
        },
        Case {
            settings: AT_ONCE,
            ..case(
                "a finish reason that nobody knows",
                vec![Answer::stream([text("a"), finish("because"), done()])],
                failed(),
            )
        },
    ]);
}

#[test]
fn errors_of_the_provider_are_told_and_only_passing_ones_are_tried_again() {
    let permanent = [
        (400, -32603),
        (401, -32000),
        (402, -32603),
        (403, -32603),
        (404, -32603),
        (422, -32603),
    ];
    let mut cases: Vec<_> = permanent
        .into_iter()
        .map(|(status, code)| {
            let body = r#"{"error":{"message":"boom went the quota"}}"#;
            case(
                "a request that can never succeed is made once",
                vec![Answer::plain(status, "application/json", body)],
                vec![Fails(code, "boom went the quota"), Requests(1)],
            )
        })
        .collect();
    cases.push(Case {
        settings: "max_retries = 1",
        ..case(
            "a failure of the server is told after the retries, and asks nobody to log in",
            vec![Answer::plain(
                500,
                "application/json",
                r#"{"error":{"message":"boom"}}"#,
            )],
            vec![Fails(-32603, "boom"), Requests(2)],
        )
    });
    cases.push(Case {
        settings: "max_retries = 2",
        ..case(
            "a passing failure is tried again",
            vec![
                Answer::plain(503, "application/json", r#"{"error":{"message":"later"}}"#),
                say("a"),
            ],
            vec![Stop("end_turn"), Said("a"), Requests(2)],
        )
    });
    check(cases);
}

#[test]
fn tool_calls_are_put_together_as_they_were_meant() {
    let two = || {
        vec![
            Stop("end_turn"),
            Ends(&["completed", "completed"]),
            Requests(2),
        ]
    };
    let files: &[(&str, &[u8])] = &[("a.txt", b"AAA"), ("b.txt", b"BBB")];
    check(vec![
        Case {
            files,
            ..case(
                "two calls that share an index are two calls",
                vec![
                    Answer::stream([
                        call(0, "a", "read_file", r#"{"path":"a.txt"}"#),
                        call(0, "b", "read_file", r#"{"path":"b.txt"}"#),
                        finish("tool_calls"),
                        done(),
                    ]),
                    say("k"),
                ],
                [two(), vec![Told(1, "AAA"), Told(1, "BBB")]].concat(),
            )
        },
        Case {
            files,
            ..case(
                "a piece without an index belongs to the latest call",
                vec![
                    Answer::stream([
                        delta(
                            json!({"tool_calls": [{"id": "a", "function": {"name": "read_file", "arguments": "{\"pa"}}]}),
                        ),
                        delta(
                            json!({"tool_calls": [{"function": {"arguments": "th\":\"a.txt\"}"}}]}),
                        ),
                        delta(
                            json!({"tool_calls": [{"id": "b", "function": {"name": "read_file", "arguments": "{\"path\":\"b.txt\"}"}}]}),
                        ),
                        finish("tool_calls"),
                        done(),
                    ]),
                    say("k"),
                ],
                [two(), vec![Told(1, "AAA"), Told(1, "BBB")]].concat(),
            )
        },
        case(
            "empty arguments are no arguments",
            vec![
                calls(&[("c1", "ls", ""), ("c2", "read_file", "")]),
                say("k"),
            ],
            vec![
                Stop("end_turn"),
                Ends(&["completed", "failed"]),
                Told(1, "path"),
                Requests(2),
            ],
        ),
        case(
            "arguments that are cut are not executed",
            vec![
                calls(&[("c1", "write_file", r#"{"path":"n.txt","content":"abc"#)]),
                say("k"),
            ],
            vec![
                Stop("end_turn"),
                Ends(&["failed"]),
                NoFile("n.txt"),
                Told(1, "JSON"),
                Asked(0),
            ],
        ),
        Case {
            drive: |run| {
                run.turn("go");
                run.turn("again");
            },
            ..case(
                "broken arguments do not poison the history",
                vec![
                    calls(&[("c1", "read_file", "{path: 'a'")]),
                    say("k"),
                    say("k"),
                ],
                vec![
                    Stop("end_turn"),
                    Ends(&["failed"]),
                    Told(1, "JSON"),
                    Requests(3),
                ],
            )
        },
        Case {
            files,
            drive: |run| {
                for text in ["one", "two", "three"] {
                    run.turn(text);
                }
                let ids: std::collections::BTreeSet<_> = run
                    .agent
                    .frames
                    .iter()
                    .filter_map(|frame| reasonix_tests::json::update(frame, ""))
                    .filter(|update| update["sessionUpdate"] == "tool_call")
                    .map(|update| update["toolCallId"].to_string())
                    .collect();
                assert_eq!(ids.len(), 3, "{ids:?}");
            },
            ..case(
                "ids that a provider uses twice, or leaves out, are told apart",
                vec![
                    tool("call_1", "read_file", json!({"path": "a.txt"})),
                    say("k"),
                    tool("call_1", "read_file", json!({"path": "b.txt"})),
                    say("k"),
                    tool("", "read_file", json!({"path": "a.txt"})),
                    say("k"),
                ],
                vec![
                    Stop("end_turn"),
                    Ends(&["completed", "completed", "completed"]),
                    Requests(6),
                ],
            )
        },
        case(
            "a call that is sent twice runs once",
            vec![
                Answer::stream([
                    call(0, "c1", "bash", r#"{"command":"echo x >> log"}"#),
                    call(0, "c1", "bash", r#"{"command":"echo x >> log"}"#),
                    finish("tool_calls"),
                    done(),
                ]),
                say("k"),
            ],
            vec![
                Stop("end_turn"),
                Ends(&["completed"]),
                File("log", b"x\n"),
                Asked(1),
            ],
        ),
        case(
            "a tool that does not exist is a failed call, not a failed turn",
            vec![calls(&[("c1", "no_such_tool", "{}")]), say("k")],
            vec![
                Stop("end_turn"),
                Ends(&["failed"]),
                Told(1, "no_such_tool"),
                Requests(2),
            ],
        ),
    ]);
}
