//! Lines, envelopes and ids.

use super::*;

/// Each input gives these errors (id, code, `data.code`), and the next request is served.
#[test]
fn what_is_no_request_is_answered_once_and_the_link_survives() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"session/list","params":{{"_meta":{}{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let bad: &[(&str, &[(&str, i32, &str)])] = &[
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"#,
            &[("null", -32700, "")],
        ),
        ("[]", &[("null", -32600, "")]),
        (
            r#"[{"jsonrpc":"2.0","id":7,"method":"no/such"}]"#,
            &[("null", -32600, "")],
        ),
        ("42", &[("null", -32600, "")]),
        (r#"{"id":7,"method":"session/list"}"#, &[("7", -32600, "")]),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"a","method":"b"}"#,
            &[("7", -32600, "")],
        ),
        (&deep, &[("null", -32700, "")]),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"foo/bar"}"#,
            &[("7", -32601, "")],
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"$/foo"}"#,
            &[("7", -32601, "")],
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"rpc.discover"}"#,
            &[("7", -32601, "")],
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"session/new"}"#,
            &[("7", -32602, "")],
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"session/list","params":[]}"#,
            &[("7", -32602, "")],
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"session/fork"}"#,
            &[("7", -32601, "")],
        ),
        (r#"{"jsonrpc":"2.0","method":"foo/bar"}"#, &[]),
        (r#"{"jsonrpc":"2.0","method":"$/foo"}"#, &[]),
        (
            r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"x":1}}"#,
            &[],
        ),
        (r#"{"jsonrpc":"2.0","id":99,"result":{}}"#, &[]),
        (r#"{"jsonrpc":"2.0","id":99,"error":"x"}"#, &[]),
        ("", &[]),
        ("  \r", &[]),
    ];
    for (line, errors) in bad {
        let mut agent = Agent::ready();
        agent.send(line);
        let got: Vec<_> = agent.sent().iter().map(|frame| error(frame)).collect();
        let want: Vec<_> = errors
            .iter()
            .map(|(id, code, data)| (id.to_string(), *code, data.to_string()))
            .collect();
        assert_eq!(got, want, "{line}");
        agent.events.clear();
        agent.send(&request(8, "session/list", "{}"));
        assert_eq!(agent.told_names(), ["ListSessions"], "{line}");
    }
}

#[test]
fn ids_are_echoed_exactly_and_told_apart_by_type() {
    for id in [
        "0",
        "-1",
        "9007199254740993",
        "18446744073709551616",
        r#""""#,
        r#""1""#,
        "null",
    ] {
        let mut agent = Agent::ready();
        agent.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"_x"}}"#));
        let Some(AgentEvent::VendorRequest {
            asked,
            method,
            params,
        }) = agent.events.pop()
        else {
            panic!()
        };
        assert_eq!((&*method, params), ("_x", None));
        agent.side.answer(
            asked,
            Ok(Json::from_text(r#"{"n":12345678901234567890123}"#).unwrap()),
        );
        agent.drain();
        assert_eq!(
            agent.sent(),
            [format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":12345678901234567890123}}}}"#
            )]
        );
    }
}

#[test]
fn an_id_that_is_open_is_refused_and_the_first_request_stays() {
    let mut agent = Agent::ready();
    agent.send(&request(5, "session/list", "{}"));
    agent.send(&request(5, "session/list", "{}"));
    agent.send(r#"{"jsonrpc":"2.0","id":"5","method":"session/list"}"#);
    assert_eq!(
        error(&agent.sent()[0]),
        ("5".into(), -32600, "id_in_use".into())
    );
    assert_eq!(agent.events.len(), 2);
    let AgentEvent::ListSessions { asked, .. } = agent.events.remove(0) else {
        panic!()
    };
    agent
        .side
        .answer(asked, Ok(ListSessionsResponse::new(Vec::new())));
    agent.drain();
    assert_eq!(agent.sent(), [r(5, r#"{"sessions":[]}"#)]);
    agent.send(&request(5, "session/list", "{}"));
    assert_eq!(
        agent.told_names(),
        ["ListSessions", "ListSessions"],
        "a settled id may come again"
    );
}

#[test]
fn errors_never_quote_the_input() {
    let mut agent = Agent::ready();
    for params in [
        r#"{"cwd":"/w","mcpServers":[{"name":"a","command":"/a","env":[{"name":"K","value":7,"x":"s3cret"}]}]}"#,
        r#"{"cwd":"/w","mcpServers":"s3cret"}"#,
        r#"{"cwd":["s3cret"],"mcpServers":[]}"#,
        r#"{"cwd":"/w","mcpServers":[{"type":"s3cret"}]}"#,
        r#"{"cwd":"/w","mcpServers":[],"systemPrompt":{"mode":"s3cret","content":[]}}"#,
    ] {
        agent.send(&request(1, "session/new", params));
        let frame = agent.frames.pop().unwrap();
        assert_eq!(error(&frame).1, -32602);
        assert!(!frame.contains("s3cret"), "{frame}");
    }
    agent.send(&request(1, "session/new", r#"{"mcpServers":[]}"#));
    assert!(
        agent.frames[0].contains("missing field `cwd`"),
        "{}",
        agent.frames[0]
    );
}

/// The log of everything, for one way of cutting the input.
fn log(cut: impl Fn(usize) -> usize) -> (Vec<String>, Vec<String>) {
    let mut agent = Agent::new();
    let text = [
        "\u{feff}".to_string() + INIT,
        String::new(),
        new_session(1) + "\r",
        "garbage".into(),
        request(
            2,
            "session/load",
            r#"{"cwd":"/w","mcpServers":[],"sessionId":"s"}"#,
        ),
        prompt(3, "s"),
        cancel("s"),
        request(4, "_x", r#"{"t":"é🙂漢"}"#),
        notification("$/cancel_request", r#"{"requestId":3}"#),
        prompt(5, "nope"),
    ]
    .join("\n");
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = bytes.len().min(at + cut(at).max(1));
        agent.feed(&bytes[at..end]);
        at = end;
    }
    agent.input(PeerInput::PeerFinished);
    let events = agent
        .events
        .iter()
        .map(|event| format!("{event:?}"))
        .collect();
    (agent.frames, events)
}

#[test]
fn any_cut_of_the_bytes_has_the_same_effects() {
    let whole = log(|_| usize::MAX);
    assert!(whole.0.len() >= 4 && whole.1.len() >= 4, "{whole:?}");
    assert_eq!(log(|_| 1), whole);
    for step in [2, 3, 7, 64, 1000] {
        assert_eq!(log(|at| 1 + (at * 31 + step) % step), whole);
    }
}

#[test]
fn a_line_over_the_limit_is_skipped_and_its_memory_bounded() {
    let limits = Limits {
        max_frame: 1000,
        ..Limits::default()
    };
    let mut agent = Agent::with(limits);
    agent.send(INIT);
    agent.sent();
    for _ in 0..100 {
        agent.feed(&[b'x'; 100]);
        assert!(room(&agent) > 0, "what is skipped must go on coming");
    }
    agent.send("");
    assert_eq!(
        error(&agent.sent()[0]),
        ("null".into(), -32600, "frame_too_large".into())
    );
    agent.send(&request(1, "session/list", "{}"));
    assert!(agent.told_names().contains(&"ListSessions".to_string()));
}

#[test]
fn too_many_open_requests_are_refused() {
    let mut agent = Agent::with(Limits {
        max_open_requests: 2,
        ..Limits::default()
    });
    agent.send(INIT);
    for id in 1..=3 {
        agent.send(&request(id, "session/list", "{}"));
    }
    assert_eq!(
        error(&agent.frames[1]),
        ("3".into(), -32600, "too_many_requests".into())
    );
    assert_eq!(agent.events.len(), 2);
}
