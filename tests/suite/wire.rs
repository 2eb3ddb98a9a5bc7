//! Bytes on the wire of both programs: lines, envelopes, ids, the handshake, the end of input.

use std::time::{Duration, Instant};

use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};

/// What is written, and the answers it must have: id, and code or none for a result.
struct Row {
    name: &'static str,
    bytes: Vec<u8>,
    answers: Vec<(Value, Option<i64>)>,
}

fn row(name: &'static str, bytes: impl Into<Vec<u8>>, answers: &[(Value, Option<i64>)]) -> Row {
    Row {
        name,
        bytes: bytes.into(),
        answers: answers.to_vec(),
    }
}

/// Writes the bytes and closes the input; every answer must have come by then, and no other frame.
#[track_caller]
fn check(rows: &[Row]) {
    for row in rows {
        for program in PROGRAMS {
            let place = Place::new();
            let script = place.script("{\"text\":\"x\"}\n");
            let model = format!("script:{}", script.display());
            let mut agent = Running::start(program, &place, &["--model", &model]);
            agent.send_bytes(&row.bytes);
            agent.close_input();
            let end = Instant::now() + Duration::from_secs(10);
            while agent.next(row.name, end).is_some() {}
            let heard: Vec<_> = agent
                .frames
                .iter()
                .map(|frame| (frame["id"].clone(), frame["error"]["code"].as_i64()))
                .collect();
            assert_eq!(heard, row.answers, "{} ({program})", row.name);
            let ended = agent.wait(Instant::now());
            assert_eq!(ended.code, Some(0), "{} ({program}): {ended:?}", row.name);
            assert!(
                !ended.errors.contains("panicked"),
                "{}: {}",
                row.name,
                ended.errors
            );
        }
    }
}

fn hello() -> Vec<u8> {
    json::line(&json::initialize(0))
}

fn and_hello(bytes: &[u8]) -> Vec<u8> {
    [bytes, &hello()].concat()
}

#[test]
fn every_line_gets_the_answer_it_deserves() {
    let ok = (json!(0), None);
    let null = |code| (Value::Null, Some(code));
    check(&[
        row(
            "a last line without its end counts",
            &hello()[..hello().len() - 1],
            std::slice::from_ref(&ok),
        ),
        row(
            "blank lines are passed over",
            and_hello(b"\n\r\n   \n"),
            std::slice::from_ref(&ok),
        ),
        row(
            "a line may end as on other systems",
            [&hello()[..hello().len() - 1], b"\r\n"].concat(),
            std::slice::from_ref(&ok),
        ),
        row(
            "a byte order mark is passed over",
            and_hello(b"\xef\xbb\xbf"),
            std::slice::from_ref(&ok),
        ),
        row(
            "what cannot be read is answered to nobody",
            and_hello(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\n"),
            &[null(-32700), ok.clone()],
        ),
        row(
            "what is no UTF-8 is not read",
            and_hello(b"{\"a\":\"\xff\"}\n"),
            &[null(-32700), ok.clone()],
        ),
        row(
            "a batch is refused, an empty one too",
            and_hello(b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}]\n[]\n"),
            &[null(-32600), null(-32600), ok.clone()],
        ),
        row(
            "unknown requests are answered, unknown notifications are not",
            [
                hello(),
                json::line(&json::request(9, "foo/bar", json!({}))),
                json::line(&json::notification("foo/bar", json!({}))),
                json::line(&json::request(10, "_vendor/x", json!({}))),
                json::line(&json::notification("_vendor/x", json!({}))),
                json::line(&json::result(&json!(99), json!({}))),
            ]
            .concat(),
            &[
                ok.clone(),
                (json!(9), Some(-32601)),
                (json!(10), Some(-32601)),
            ],
        ),
        row(
            "nothing comes before the handshake",
            [json::line(&json::new_session(5, "/")), hello()].concat(),
            &[(json!(5), Some(-32600)), ok.clone()],
        ),
        row(
            "a second handshake is answered as the first",
            [hello(), json::line(&json::initialize(5))].concat(),
            &[ok.clone(), (json!(5), None)],
        ),
        row(
            "ids come back as they were",
            [
                json::line(&json::request(
                    "a\u{2028}",
                    "initialize",
                    json!({"protocolVersion": 1}),
                )),
                b"{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890,\"method\":\"x\"}\n".to_vec(),
            ]
            .concat(),
            &[
                (json!("a\u{2028}"), None),
                (json!(12_345_678_901_234_567_890_u64), Some(-32601)),
            ],
        ),
    ]);
}

#[test]
fn a_session_opens_in_an_absolute_folder_and_is_named_by_its_answer_first() {
    for program in PROGRAMS {
        let place = Place::new();
        let script = place.script("{\"text\":\"x\"}\n");
        let mut agent = Running::start(
            program,
            &place,
            &["--model", &format!("script:{}", script.display())],
        );
        agent.ask(&json::initialize(0));
        let file = script.to_str().expect("a plain name");
        for (id, cwd, code, why) in [
            (1, "proj", "cwd_not_absolute", "absolute"),
            (2, "/no/such/folder", "cwd_missing", "does not exist"),
            (5, file, "cwd_missing", "is not a directory"),
        ] {
            let answer = agent.ask(&json::new_session(id, cwd));
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            assert_eq!(answer["error"]["data"]["code"], code, "{answer}");
            let said = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(said.contains(why), "{answer}");
        }
        let params = json!({"cwd": place.work()});
        let answer = agent.ask(&json::request(3, "session/new", params));
        assert!(
            answer["result"]["sessionId"].is_string(),
            "servers may be left out: {answer}"
        );
        let unknown = agent.ask(&json::prompt(4, "nope-123", "hi"));
        assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
        agent.send(&json::cancel("nope-123"));
        let (ended, laws) = agent.finish();
        assert_eq!(ended.code, Some(0));
        laws.check();
    }
}

#[test]
fn text_is_whole_however_it_is_cut_and_whatever_it_holds() {
    for program in PROGRAMS {
        let place = Place::new();
        let words = "é🙂漢 a\u{2028}b\u{2029}c\u{85}d";
        let script = place.script(&format!("{}\n", json!({"text": words})));
        let mut agent = Running::start(
            program,
            &place,
            &["--model", &format!("script:{}", script.display())],
        );
        let session = agent.open(json!({}), &place.work());
        // One byte a write, so that every character is cut.
        let line = json::line(&json::prompt(1, &session, words));
        agent.laws.sent(&line);
        for byte in &line {
            agent.send_bytes(std::slice::from_ref(byte));
        }
        let answer = agent.answer(1);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        assert_eq!(json::said(&agent.frames, &session), words);
        let bytes = String::from_utf8(agent.bytes.clone()).expect("frames are UTF-8");
        assert!(
            !bytes.contains(['\u{2028}', '\u{2029}']),
            "some readers split there"
        );
        agent.finish().1.check();
    }
}

#[test]
fn a_large_message_costs_its_size_and_not_its_square() {
    for program in PROGRAMS {
        let place = Place::new();
        let script = place.script("{\"text\":\"x\"}\n");
        let mut agent = Running::start(
            program,
            &place,
            &["--model", &format!("script:{}", script.display())],
        );
        let session = agent.open(json!({}), &place.work());
        let from = Instant::now();
        let answer = agent.ask(&json::prompt(1, &session, &"long ".repeat(3 << 20)));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        assert!(
            from.elapsed() < Duration::from_secs(20),
            "{:?}",
            from.elapsed()
        );
        agent.finish().1.check();
    }
}

#[test]
fn the_end_of_input_ends_the_program_and_its_commands() {
    for program in PROGRAMS {
        let place = Place::new();
        let script = place.script(
            "{\"tool\":\"bash\",\"args\":{\"command\":\"echo pid=$$.; sleep 60\"}}\n{\"finish\":\"tool_calls\"}\n",
        );
        let model = format!("script:{}", script.display());
        let args = ["--model", &model, "--permission-mode", "bypassPermissions"];
        let mut agent = Running::start(program, &place, &args);
        let session = agent.open(json!({}), &place.work());
        agent.send(&json::prompt(1, &session, "go"));
        // Its own output says that it runs, and what it is.
        let mut pid = None;
        agent.until("the command", |frame| {
            let text = frame.to_string();
            let said = text
                .split_once("pid=")
                .and_then(|(_, rest)| rest.split_once('.'));
            pid = said.and_then(|(digits, _)| digits.parse::<u32>().ok());
            pid.is_some()
        });
        let (ended, laws) = agent.finish();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.took < Duration::from_secs(5), "{ended:?}");
        laws.check();
        let pid = pid.expect("the loop ends with one");
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(line.is_empty(), "the command lives on");
    }
}

#[test]
fn a_client_that_goes_away_is_no_panic() {
    for program in PROGRAMS {
        let place = Place::new();
        let script =
            place.script("{\"repeat\":{\"chunks\":100000,\"size\":100}}\n{\"hang\":true}\n");
        let model = format!("script:{}", script.display());
        let mut agent = Running::start(program, &place, &["--model", &model]);
        let session = agent.open(json!({}), &place.work());
        agent.send(&json::prompt(1, &session, "go"));
        agent.until("a chunk", |frame| json::update(frame, "").is_some());
        let from = Instant::now();
        agent.go_away();
        let ended = agent.wait(from);
        assert!(ended.code.is_some(), "ended by a signal: {ended:?}");
        assert!(!ended.errors.contains("panicked"), "{ended:?}");
        assert!(ended.took < Duration::from_secs(5), "{ended:?}");
        // What the person said is there for the next one.
        let mut next = Running::start(program, &place, &["--model", &model]);
        next.ask(&json::initialize(1));
        let params = json!({"sessionId": session, "cwd": place.work(), "mcpServers": []});
        let loaded = next.ask(&json::request(2, "session/load", params));
        assert!(loaded.get("result").is_some(), "{loaded}");
        assert_eq!(
            json::text_of(&next.frames, &session, "user_message_chunk"),
            "go"
        );
        next.finish().1.check();
    }
}
