//! A server on its standard streams.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::world::{Asked, ECHO, World, stdio};
use crate::call::{Call, News, Stream};
use crate::error::{IoFault, IoKind};
use crate::mcp::{Question, Reply};

const TEXT: &str = r#"{"content":[{"type":"text","text":"hi"}]}"#;

fn ready() -> (World, crate::ids::CallId) {
    let mut world = World::new(Vec::from([stdio("s")]));
    let id = world.shake(ECHO);
    assert_eq!(world.status(), ["ready"]);
    (world, id)
}

#[test]
fn a_call_before_the_server_is_up_is_answered_when_it_is() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let call = world.call("s__echo", r#"{"a":1}"#);
    let id = world.shake(ECHO);
    let (_, asked) = world.next().unwrap();
    assert_eq!(asked.method, "tools/call");
    assert!(
        asked.text.contains(r#""name":"echo","arguments":{"a":1}"#),
        "{}",
        asked.text
    );
    world.line(id, &asked.result(TEXT));
    assert_eq!(world.only(call), Ok("hi"));
    assert_eq!(world.names(), ["s__echo", "s__read_resource"]);
}

#[test]
fn a_banner_on_standard_output_is_passed_over() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let id = world.started[0];
    world.say(id, "Starting…\n\n{\"level\":\"info\"}\nvery-secret\n");
    world.shake(ECHO);
    assert_eq!(world.status(), ["ready"]);
    assert_eq!(world.logs.len(), 3);
}

#[test]
fn every_page_of_tools_is_read_and_a_cursor_that_repeats_ends_the_list() {
    let page = |n: u32, cursor: &str| format!(r#"{{"tools":[{{"name":"t{n}"}}]{cursor}}}"#);
    let mut world = World::new(Vec::from([stdio("s")]));
    let id = world.shake(&page(1, r#","nextCursor":"c""#));
    let (_, asked) = world.next().unwrap();
    assert!(
        asked.text.contains(r#""params":{"cursor":"c"}"#),
        "{}",
        asked.text
    );
    world.line(id, &asked.result(&page(2, r#","nextCursor":"""#)));
    let (_, asked) = world.next().unwrap();
    assert!(
        asked.text.contains(r#""params":{"cursor":""}"#),
        "{}",
        asked.text
    );
    world.line(id, &asked.result(&page(3, r#","nextCursor":"""#)));
    assert_eq!(world.status(), ["ready"]);
    assert_eq!(
        world.names(),
        ["s__t1", "s__t2", "s__t3", "s__read_resource"]
    );
}

#[test]
fn a_cancel_reaches_the_server_and_leaves_it_alive() {
    let (mut world, id) = ready();
    let call = world.call("s__echo", "{}");
    let (_, asked) = world.next().unwrap();
    world.with(|hub, cx| hub.cancel(cx, call));
    let (_, told) = world.next().unwrap();
    assert_eq!(told.method, "notifications/cancelled");
    assert!(
        told.text.contains(&format!(r#""requestId":{}"#, asked.id)),
        "{}",
        told.text
    );
    world.line(id, &asked.result(TEXT)); // late
    assert!(!world.done.contains_key(&call));
    let second = world.call("s__echo", "{}");
    let (_, asked) = world.next().unwrap();
    world.line(id, &asked.result(TEXT));
    assert_eq!(world.only(second), Ok("hi"));
    assert!(world.aborted.is_empty());
}

#[test]
fn a_handshake_is_never_cancelled_only_given_up() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let call = world.call("s__echo", "{}");
    world.fed.clear();
    world.pass(Duration::from_secs(10));
    assert_eq!(world.status(), ["failed"]);
    assert!(
        world
            .only(call)
            .unwrap_err()
            .contains("not ready within 10 s")
    );
    assert!(world.fed.is_empty());
    assert_eq!(world.running.len(), 0);
}

#[test]
fn requests_of_the_server_are_answered_under_their_ids() {
    let (mut world, id) = ready();
    for (asked, answer) in [
        (r#""id":1,"method":"ping""#, r#""id":1,"result":{}"#),
        (r#""id":"p","method":"ping""#, r#""id":"p","result":{}"#),
        (
            r#""id":2,"method":"roots/list""#,
            r#""result":{"roots":[{"uri":"file:///w","name":"workspace"}]}"#,
        ),
        (
            r#""id":3,"method":"sampling/createMessage","params":{}"#,
            r#""code":-32601"#,
        ),
        (r#""id":4,"method":"foo/bar""#, r#""code":-32601"#),
        (
            r#""id":5,"method":"elicitation/create","params":{}"#,
            r#""action":"decline""#,
        ),
    ] {
        world.line(id, &format!(r#"{{"jsonrpc":"2.0",{asked}}}"#));
        let (_, line) = world.fed.pop_front().unwrap();
        assert!(line.contains(answer), "{line}");
    }
}

#[test]
fn an_error_of_a_tool_stays_one() {
    let (mut world, id) = ready();
    for (answer, expected) in [
        (
            r#""result":{"isError":true,"content":[{"type":"text","text":"disk full"}]}"#,
            "disk full",
        ),
        (
            r#""error":{"code":-1,"message":"no very-secret"}"#,
            "no [redacted]",
        ),
        (r#""result":7"#, "not one that tools/call can have"),
        (r#""result":1,"error":2"#, "cannot be read"),
    ] {
        let call = world.call("s__echo", "{}");
        let (_, asked) = world.next().unwrap();
        world.line(
            id,
            &format!(r#"{{"jsonrpc":"2.0","id":{},{answer}}}"#, asked.id),
        );
        let text = world.only(call).unwrap_err();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn answers_given_twice_and_to_nothing_leave_no_trace() {
    let (mut world, id) = ready();
    let call = world.call("s__echo", "{}");
    let (_, asked) = world.next().unwrap();
    world.line(id, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    world.line(id, r#"{"jsonrpc":"2.0","id":"1","result":{}}"#);
    world.line(id, &asked.result(TEXT));
    world.line(id, &asked.result(TEXT));
    assert_eq!(world.only(call), Ok("hi"));
}

#[test]
fn a_server_that_ends_in_a_call_is_started_again_at_its_next_use() {
    let (mut world, id) = ready();
    let call = world.call("s__echo", "{}");
    world.fed.clear();
    let bytes = b"panic: very-secret\n";
    world.news(
        id,
        News::Bytes {
            stream: Stream::Err,
            bytes,
        },
    );
    world.exit(id, 3);
    let text = world.only(call).unwrap_err();
    assert!(
        text.contains("exit code 3") && text.contains("panic: [redacted]"),
        "{text}"
    );
    assert_eq!(world.status(), ["idle"]);
    assert_eq!(world.names().len(), 2, "what it offers stays listed");
    world.pass(Duration::from_secs(60));
    assert_eq!(world.running.len(), 0, "nothing starts by itself");
    let again = world.call("s__echo", "{}");
    let id = world.shake(ECHO);
    let (_, asked) = world.next().unwrap();
    world.line(id, &asked.result(TEXT));
    assert_eq!(world.only(again), Ok("hi"));
}

#[test]
fn a_server_that_fails_at_every_start_is_not_started_at_every_call() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let mut starts = 0;
    for _ in 0..50 {
        let before = world.started.len();
        let call = world.call("s__echo", "{}");
        for _ in 0..3 {
            world.pass(Duration::from_secs(1));
            let last = world.started.last().copied();
            if let Some(id) = last.filter(|id| world.running.contains_key(id)) {
                let fault = IoFault::new(IoKind::NotFound, "no such program");
                world.news(id, News::Failed(fault));
            }
        }
        starts += world.started.len() - before;
        assert!(world.only(call).unwrap_err().contains("no such program"));
        world.fed.clear();
    }
    assert!(starts < 20, "{starts} starts");
}

#[test]
fn progress_is_passed_on_and_a_silent_call_is_given_up() {
    let (mut world, id) = ready();
    let call = world.call("s__echo", "{}");
    let (_, asked) = world.next().unwrap();
    for _ in 0..3 {
        world.pass(Duration::from_secs(299));
        world.line(id, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":1,"total":4,"message":"m"}}}}"#, asked.id));
    }
    assert_eq!(world.progress, ["1/4 m", "1/4 m", "1/4 m"]);
    assert!(!world.done.contains_key(&call));
    world.pass(Duration::from_secs(300));
    assert!(world.only(call).unwrap_err().contains("not answer in time"));
    assert_eq!(world.next().unwrap().1.method, "notifications/cancelled");
    assert_eq!(world.status(), ["ready"]);
}

#[test]
fn tools_that_change_are_listed_anew() {
    let (mut world, id) = ready();
    world.line(
        id,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    );
    world.line(
        id,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    );
    // Once for the first, and once more since it changed meanwhile.
    for _ in 0..2 {
        let (_, asked) = world.next().unwrap();
        assert_eq!(asked.method, "tools/list");
        world.line(id, &asked.result(r#"{"tools":[{"name":"other"}]}"#));
    }
    assert!(world.next().is_none());
    assert_eq!(world.names(), ["s__other", "s__read_resource"]);
    let call = world.call("s__echo", "{}");
    assert!(
        world
            .only(call)
            .unwrap_err()
            .contains("has no tool s__echo")
    );
}

#[test]
fn a_message_longer_than_is_taken_ends_its_call_and_nothing_else() {
    let (mut world, id) = ready();
    world.limits.max_mcp_message = 16 << 20;
    let call = world.call("s__echo", "{}");
    let (_, asked) = world.next().unwrap();
    world.say(
        id,
        &format!(r#"{{"jsonrpc":"2.0","id":{},"result":""#, asked.id),
    );
    let piece = "x".repeat(64 << 10);
    for _ in 0..1024 {
        world.say(id, &piece);
    }
    world.line(id, "\"}");
    assert!(
        world
            .only(call)
            .unwrap_err()
            .contains("longer than is taken")
    );
    let second = world.call("s__echo", "{}");
    let (_, asked) = world.next().unwrap();
    world.line(id, &asked.result(TEXT));
    assert_eq!(world.only(second), Ok("hi"));
}

#[test]
fn a_question_is_put_to_the_person_and_its_time_does_not_count() {
    let (mut world, id) = ready();
    let call = world.call("s__echo", "{}");
    let (_, asked) = world.next().unwrap();
    let form = r#"{"type":"object","properties":{"a":{"type":"string","default":"d"}}}"#;
    world.line(id, &format!(r#"{{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{{"message":"m","requestedSchema":{form}}}}}"#));
    let (ask, question) = world.asks[0].clone();
    let Question::Form { message, schema } = question else {
        panic!("no form");
    };
    assert_eq!(
        (message.as_str(), schema.as_str()),
        ("MCP server asks: m", form)
    );
    world.pass(Duration::from_secs(7200));
    assert!(!world.done.contains_key(&call));
    let values = BTreeMap::from([("a".into(), "\"x\"".into())]);
    let reply = Reply::Accept(values);
    world.with(|hub, cx| hub.answered(cx, ask, &reply));
    world.with(|hub, cx| hub.answered(cx, ask, &reply));
    let (_, line) = world.fed.pop_front().unwrap();
    assert!(
        line.contains(r#""id":"e","result":{"action":"accept","content":{"a":"x"}}"#),
        "{line}"
    );
    assert!(world.fed.is_empty());
    world.line(id, &asked.result(TEXT));
    assert_eq!(world.only(call), Ok("hi"));
}

#[test]
fn a_cancel_takes_the_question_back() {
    let (mut world, id) = ready();
    let call = world.call("s__echo", "{}");
    world.fed.clear();
    world.line(id, r#"{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}"#);
    world.with(|hub, cx| hub.cancel(cx, call));
    assert_eq!(world.withdrawn, [world.asks[0].0]);
}

#[test]
fn resources_are_listed_and_read_by_a_tool() {
    let (mut world, id) = ready();
    let list = world.call("s__read_resource", "{}");
    let (_, asked) = world.next().unwrap();
    assert_eq!(asked.method, "resources/list");
    world.line(id, &asked.result(r#"{"resources":[{"uri":"f:a"}]}"#));
    assert_eq!(world.only(list), Ok("f:a "));
    let read = world.call("s__read_resource", r#"{"uri":"f:a"}"#);
    let (_, asked) = world.next().unwrap();
    assert_eq!(asked.method, "resources/read");
    world.line(
        id,
        &asked.result(r#"{"contents":[{"uri":"f:a","text":"x"}]}"#),
    );
    assert_eq!(world.only(read), Ok("f:a\nx"));
}

#[test]
fn versions_that_are_not_known_are_refused() {
    for (version, status) in [
        ("2025-11-25", "connecting"),
        ("2025-06-18", "connecting"),
        ("2025-03-26", "connecting"),
        ("2024-11-05", "connecting"),
        ("1999-01-01", "failed"),
    ] {
        let mut world = World::new(Vec::from([stdio("s")]));
        let (id, asked) = world.next().unwrap();
        let hello = format!(r#"{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}}}}"#);
        world.line(id, &asked.result(&hello));
        assert_eq!(world.status(), [status], "{version}");
    }
}

#[test]
fn what_is_fed_is_one_object_a_line_without_headers() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let id = world.started[0];
    let Some(Call::Process(process)) = world.running.get(&id) else {
        panic!("no process");
    };
    assert!(process.stdin && process.cwd == "/w");
    assert!(!format!("{process:?}").contains("very-secret"));
    let (_, line) = world.fed.pop_front().unwrap();
    let asked = Asked::read(&line);
    assert_eq!(
        (asked.method.as_str(), asked.id.as_str()),
        ("initialize", "1")
    );
}

#[test]
fn the_end_of_the_session_ends_all_and_answers_all() {
    let (mut world, _) = ready();
    let call = world.call("s__echo", "{}");
    world.with(crate::mcp::Hub::close);
    assert!(world.only(call).is_err());
    assert!(world.running.is_empty());
    assert_eq!(world.hub.deadline(&world.limits), None);
    let late = world.call("s__echo", "{}");
    assert!(world.only(late).is_err());
}

#[test]
fn a_call_that_only_makes_progress_is_given_up_too() {
    let (mut world, id) = ready();
    let call = world.call("s__echo", "{}");
    let (_, asked) = world.next().unwrap();
    let params = format!(r#"{{"progressToken":{},"progress":1}}"#, asked.id);
    let progress =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#);
    let begun = world.now;
    while !world.done.contains_key(&call) {
        world.pass(Duration::from_secs(60));
        world.line(id, &progress);
        assert!(world.now.since(begun) <= world.limits.mcp_call);
    }
    assert_eq!(world.now.since(begun), world.limits.mcp_call);
    assert!(world.only(call).unwrap_err().contains("not answer in time"));
    assert_eq!(world.next().unwrap().1.method, "notifications/cancelled");
}

#[test]
fn a_call_goes_to_the_server_whose_name_stands_before_it_and_to_no_other() {
    let mut world = World::new(Vec::from([stdio("a"), stdio("a_b"), stdio("a b")]));
    let ids = world.started.clone();
    let hello = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
    for _ in 0..3 {
        let (id, asked) = world.next().unwrap();
        world.line(id, &asked.result(hello));
    }
    while let Some((id, asked)) = world.next() {
        if asked.method == "tools/list" {
            world.line(
                id,
                &asked.result(r#"{"tools":[{"name":"t"},{"name":"_b__t"}]}"#),
            );
        }
    }
    assert_eq!(world.status(), ["ready", "ready", "ready"]);
    for (tool, server) in [
        ("a__t", Some(0)),
        ("a_b__t", Some(1)),
        ("a_b_2__t", Some(2)),
        ("a___b__t", Some(0)),
        ("a_t", None),
        ("at", None),
        ("b__t", None),
        ("a_b_3__t", None),
    ] {
        let call = world.call(tool, "{}");
        let sent = world.next();
        assert_eq!(
            sent.map(|(id, _)| id),
            server.map(|at: usize| ids[at]),
            "{tool}"
        );
        assert_eq!(world.done.contains_key(&call), server.is_none(), "{tool}");
    }
}

#[test]
fn a_server_has_the_time_to_start_that_it_was_given() {
    for (given, seconds) in [(None, 10), (Some(90), 90), (Some(2), 2)] {
        let mut entry = stdio("s");
        entry.start = given.map(Duration::from_secs);
        let mut world = World::new(Vec::from([entry]));
        world.pass(Duration::from_secs(seconds) - Duration::from_millis(1));
        assert_eq!(world.status(), ["connecting"], "{given:?}");
        world.pass(Duration::from_millis(1));
        let found = world.hub.status().next().unwrap();
        let said = format!("it was not ready within {seconds} s");
        assert_eq!((found.status, found.error), ("failed", Some(said.as_str())));
    }
}

#[test]
fn who_is_given_up_is_told_of_what_came_in_place_of_an_answer() {
    for (lines, said) in [
        (
            &["{", "  \"jsonrpc\": \"2.0\","][..],
            "{ \"jsonrpc\": \"2.0\",",
        ),
        (
            &["Listening on very-secret:80"],
            "Listening on [redacted]:80",
        ),
        (
            &[r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#],
            r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#,
        ),
        (
            &[r#"{"jsonrpc":"2.0","id":"1","result":{}}"#],
            r#"an answer to the request "1", which was not asked"#,
        ),
    ] {
        let mut world = World::new(Vec::from([stdio("s")]));
        let (id, _) = world.next().unwrap();
        for line in lines {
            world.line(id, line);
        }
        // Only the beginning of what has no end.
        for _ in 0..1000 {
            world.line(id, "and so on and on");
        }
        world.pass(Duration::from_secs(10));
        let error = world.hub.status().next().unwrap().error.unwrap();
        let expected = format!(
            "it was not ready within 10 s; in place of an answer it said: {said} and so on"
        );
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.len() < 300, "{error}");
    }
}

#[test]
fn an_answer_that_is_no_json_ends_its_call_at_once() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (result, ends) in [
        (r#"{"content":[{"type":"text","text":"cut \ud83d"}]}"#, true),
        (
            r#"{"content":[],"structuredContent":{"id":99,"n":NaN}}"#,
            true,
        ),
        (r#"{"a":"}{\"id\":98,","b":"\ud83d"}"#, true),
        (deep.as_str(), true),
        // A request of the server's own is none.
        (r#"1,"method":"x","params":{"a":"\ud83d"}"#, false),
    ] {
        let (mut world, id) = ready();
        let call = world.call("s__echo", "{}");
        let (_, asked) = world.next().unwrap();
        world.line(id, &asked.result(result));
        assert_eq!(world.done.contains_key(&call), ends, "{result}");
        if ends {
            let why = world.only(call).unwrap_err();
            assert!(why.contains("its answer cannot be read"), "{why}");
        }
        assert_eq!(world.status(), ["ready"]);
    }
    // A list says why, and no deadline has to pass.
    let mut world = World::new(Vec::from([stdio("s")]));
    let id = world.shake(r#"{"tools":[{"name":"t","description":"\ud83d"}]}"#);
    let error = world.hub.status().next().unwrap().error.unwrap();
    assert!(error.contains("its answer cannot be read"), "{error}");
    world.exit(id, 0);
}
