//! `initialize`, capabilities, and the opening of sessions.

use super::*;

#[test]
fn nothing_but_initialize_is_served_before_it_is_answered() {
    let mut agent = Agent::new();
    agent.send(&new_session(1));
    agent.send(&cancel("s"));
    assert_eq!(
        error(&agent.sent()[0]),
        ("1".into(), -32600, "not_initialized".into())
    );
    assert!(agent.told_names().is_empty());
    agent.send(INIT);
    assert_eq!(agent.sent().len(), 1);
    agent.send(&new_session(1));
    assert_eq!(agent.told_names(), ["NewSession"]);
    // A second one is answered like the first, and what is open stays.
    agent.send(&request(2, "initialize", r#"{"protocolVersion":7}"#));
    assert_eq!(agent.sent().len(), 1);
}

#[test]
fn what_follows_initialize_in_one_write_waits_for_its_answer() {
    let mut agent = Agent::new();
    agent.capabilities = None;
    agent.feed(format!("{INIT}\n{}\n", new_session(1)).as_bytes());
    let Some(AgentEvent::Initialize { asked, .. }) = agent.events.pop() else {
        panic!()
    };
    assert!(agent.events.is_empty());
    agent
        .side
        .answer(asked, Ok(InitializeResponse::new(ProtocolVersion::V1)));
    agent.drain();
    assert_eq!(agent.told_names(), ["NewSession"]);
}

#[test]
fn malformed_parameters_of_initialize_are_refused_and_it_can_be_tried_again() {
    for params in [
        "{}",
        r#"{"protocolVersion":"1"}"#,
        r#"{"protocolVersion":1.0}"#,
        "[]",
    ] {
        let mut agent = Agent::new();
        agent.send(&request(0, "initialize", params));
        assert_eq!(
            error(&agent.sent()[0]),
            ("0".into(), -32602, String::new()),
            "{params}"
        );
        agent.send(INIT);
        assert_eq!(agent.sent().len(), 1);
    }
}

#[test]
fn a_method_that_was_not_advertised_does_not_exist() {
    let id = r#"{"sessionId":"s","cwd":"/w","mcpServers":[]}"#;
    for method in [
        "session/load",
        "session/resume",
        "session/list",
        "session/close",
        "session/delete",
        "logout",
    ] {
        let mut agent = Agent::new();
        agent.capabilities = Some(AgentCapabilities::default());
        agent.send(INIT);
        agent.sent();
        agent.send(&request(1, method, id));
        assert_eq!(error(&agent.sent()[0]).1, -32601, "{method}");
        let mut agent = Agent::ready();
        agent.send(&request(1, method, id));
        let answered = agent
            .sent()
            .first()
            .is_some_and(|frame| frame.contains("-32601"));
        assert!(!answered, "{method}");
    }
}

#[test]
fn a_session_is_refused_as_a_whole_for_one_thing_that_is_wrong() {
    let plain = r#"{"cwd":"/w","mcpServers":[]"#;
    for (offers, params, code) in [
        (true, r#"{"cwd":"rel","mcpServers":[]}"#.to_string(), "cwd_not_absolute"),
        (true, r#"{"cwd":"","mcpServers":[]}"#.to_string(), "cwd_not_absolute"),
        (true, format!(r#"{plain},"additionalDirectories":["a"]}}"#), "workspace_roots.not_absolute"),
        (true, format!(r#"{plain},"additionalDirectories":[1]}}"#), ""),
        (true, format!(r#"{plain},"additionalDirectories":{{}}}}"#), ""),
        (false, format!(r#"{plain},"additionalDirectories":["/a"]}}"#), "acp.additional_directories.disabled"),
        (true, r#"{"cwd":"/w","mcpServers":[{"name":"a"}]}"#.to_string(), ""),
        (false, r#"{"cwd":"/w","mcpServers":[{"type":"http","name":"a","url":"http://x","headers":[]}]}"#.to_string(), ""),
        (true, format!(r#"{plain},"systemPrompt":{{"mode":"replace","content":[{{"type":"text","text":"a"}}]}}}}"#), ""),
        (true, format!(r#"{plain},"systemPrompt":{{"mode":"override","content":[{{"type":"text","text":"a"}}]}}}}"#), ""),
        (true, format!(r#"{plain},"systemPrompt":{{"mode":"append","content":[]}}}}"#), ""),
        (false, format!(r#"{plain},"systemPrompt":{{"mode":"append","content":[{{"type":"text","text":"a"}}]}}}}"#), ""),
    ] {
        let mut agent = Agent::new();
        if !offers {
            agent.capabilities = Some(AgentCapabilities::default());
        }
        agent.send(INIT);
        agent.sent();
        agent.send(&request(1, "session/new", &params));
        assert_eq!(error(&agent.sent()[0]), ("1".into(), -32602, code.into()), "{params}");
        assert!(agent.told_names().is_empty(), "{params}");
    }
    for params in [
        format!("{plain}}}"),
        r#"{"cwd":"/w"}"#.into(),
        r#"{"cwd":"C:\\w","mcpServers":null,"additionalDirectories":null,"systemPrompt":null}"#
            .into(),
        format!(
            r#"{plain},"systemPrompt":{{"mode":"append","content":[{{"type":"text","text":"a"}}]}},"additionalDirectories":["/b","/a"]}}"#
        ),
    ] {
        let mut agent = Agent::ready();
        agent.send(&request(1, "session/new", &params));
        assert_eq!(agent.told_names(), ["NewSession"], "{params}");
    }
}

#[test]
fn updates_that_were_not_asked_for_become_plainer_or_nothing() {
    let plan = || {
        vec![PlanEntry::new(
            "a",
            PlanEntryPriority::High,
            PlanEntryStatus::Pending,
        )]
    };
    let mut call = ToolCall::new("c", "t");
    call.content = vec![
        ToolCallContent::text("x"),
        ToolCallContent::Session(SessionReference::new("child")),
    ];
    let updates = [
        SessionUpdate::Notice(Notice::new(NoticeSeverity::Info, "n")),
        SessionUpdate::PlanUpdate(PlanUpdate::new(PlanUpdateContent::Items(PlanItems::new(
            "p",
            plan(),
        )))),
        SessionUpdate::PlanRemoved(PlanRemoved::new("p")),
        SessionUpdate::CompactionUpdate(CompactionUpdate::new("k", CompactionStatus::InProgress)),
        SessionUpdate::SubagentUpdate(SubagentUpdate::new("child")),
        SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(vec![
            SessionConfigOption::boolean("b", "B", true),
        ])),
        SessionUpdate::ToolCall(call),
    ];
    let sent = |capabilities: &str| {
        let (mut agent, _) = Agent::ready_for(capabilities).with_session("s");
        let turn = agent.prompt(1, "s");
        for update in &updates {
            agent.side.turn(turn).unwrap().update(update).unwrap();
        }
        agent.drain();
        agent.sent().join("\n")
    };
    const GATED: [(&str, &[&str]); 5] = [
        (r#""plan":{}"#, &["plan_update", "plan_removed"]),
        (r#""subagents":{}"#, &["subagent_update", "child"]),
        (r#""notices":{}"#, &["notice"]),
        (r#""compaction":{}"#, &["compaction_update"]),
        (r#""configOptions":{"boolean":{}}"#, &["boolean"]),
    ];
    for asked in 0_u32..1 << GATED.len() {
        let chosen = |of: core::ops::Range<usize>| {
            let parts = of.filter(|at| asked >> at & 1 == 1).map(|at| GATED[at].0);
            parts.collect::<Vec<_>>().join(",")
        };
        let outer = chosen(0..2);
        let comma = if outer.is_empty() { "" } else { "," };
        let frames = sent(&format!(
            r#"{{{outer}{comma}"session":{{{}}}}}"#,
            chosen(2..GATED.len())
        ));
        for (at, (_, kinds)) in GATED.iter().enumerate() {
            for kind in *kinds {
                let wanted = asked >> at & 1 == 1;
                assert_eq!(frames.contains(kind), wanted, "{kind}: {frames}");
            }
        }
        for plain in [
            r#""sessionUpdate":"plan","entries":[{"content":"a""#,
            r#""sessionUpdate":"plan","entries":[]"#,
        ] {
            let wanted = asked & 1 == 0;
            assert_eq!(frames.contains(plain), wanted, "{plain}: {frames}");
        }
    }
}

#[test]
fn options_the_client_does_not_take_are_in_no_answer() {
    for (capabilities, shown) in [
        ("{}", false),
        (r#"{"session":{"configOptions":{"boolean":{}}}}"#, true),
        (r#"{"session":{"configOptions":{"boolean":true}}}"#, false),
    ] {
        let mut agent = Agent::ready_for(capabilities);
        agent.send(&new_session(1));
        let Some(AgentEvent::NewSession { asked, .. }) = agent.events.pop() else {
            panic!()
        };
        let mut response = NewSessionResponse::new("s");
        response.config_options = Some(vec![SessionConfigOption::boolean("b", "B", true)]);
        agent.side.open(asked, response);
        agent.drain();
        assert_eq!(agent.sent()[0].contains("boolean"), shown, "{capabilities}");
    }
}

#[test]
fn capabilities_of_a_later_initialize_count_for_later_sessions() {
    let (mut agent, _) = Agent::ready().with_session("old");
    let params = r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true}}}"#;
    agent.send(&request(0, "initialize", params));
    agent.sent();
    agent.open("new");
    let ask = |agent: &mut Agent, id: &str| {
        agent
            .side
            .ask::<methods::ReadTextFile>(&ReadTextFileRequest::new(id, "/f"))
            .is_ok()
    };
    assert!(!ask(&mut agent, "old"));
    assert!(ask(&mut agent, "new"));
    assert!(agent.side.client().fs.read_text_file);
}

#[test]
fn the_client_is_asked_only_for_what_it_advertised() {
    use crate::error::CommandError::{Gone, NotOffered};
    for (capabilities, read, write, terminal, form, url) in [
        ("{}", false, false, false, false, false),
        (
            r#"{"fs":{"readTextFile":true}}"#,
            true,
            false,
            false,
            false,
            false,
        ),
        (
            r#"{"fs":{"writeTextFile":true}}"#,
            false,
            true,
            false,
            false,
            false,
        ),
        (r#"{"terminal":true}"#, false, false, true, false, false),
        (r#"{"elicitation":{}}"#, false, false, false, false, false),
        (
            r#"{"elicitation":{"form":{},"url":null}}"#,
            false,
            false,
            false,
            true,
            false,
        ),
        (
            r#"{"elicitation":{"url":{}}}"#,
            false,
            false,
            false,
            false,
            true,
        ),
    ] {
        let (mut agent, _) = Agent::ready_for(capabilities).with_session("s");
        let side = &mut agent.side;
        let scope = || ElicitationScope::Session {
            session_id: "s".into(),
            tool_call_id: None,
        };
        let asked = [
            side.ask::<methods::ReadTextFile>(&ReadTextFileRequest::new("s", "/f")),
            side.ask::<methods::WriteTextFile>(&WriteTextFileRequest::new("s", "/f", "")),
            side.ask::<methods::CreateTerminal>(&CreateTerminalRequest::new("s", "ls")),
            side.ask::<methods::CreateElicitation>(&CreateElicitationRequest::new(
                scope(),
                "m",
                ElicitationMode::Form {
                    requested_schema: Json::from_text("{}").unwrap(),
                },
            )),
            side.ask::<methods::CreateElicitation>(&CreateElicitationRequest::new(
                scope(),
                "m",
                ElicitationMode::Url {
                    elicitation_id: "e".into(),
                    url: "https://x".into(),
                },
            )),
        ];
        let wanted = [read, write, terminal, form, url];
        for (asked, wanted) in asked.iter().zip(wanted) {
            assert_eq!(asked.is_ok(), wanted, "{capabilities}");
            assert!(wanted || *asked == Err(NotOffered(())), "{capabilities}");
        }
        let gone = side.ask::<methods::ReadTextFile>(&ReadTextFileRequest::new("zzz", "/f"));
        assert_eq!(gone, Err(Gone(())));
        agent.drain();
        assert_eq!(
            agent.sent().len(),
            wanted.iter().filter(|wanted| **wanted).count()
        );
    }
}

#[test]
fn a_request_that_is_broken_off_is_still_heard_and_a_terminal_is_given_back_to_the_last() {
    use crate::error::CommandError::Gone;
    let (mut agent, key) = Agent::ready_for(r#"{"terminal":true}"#).with_session("s");
    let create = CreateTerminalRequest::new("s", "ls");
    let ask = agent.side.ask::<methods::CreateTerminal>(&create);
    let ask = ask.expect("it was advertised");
    agent.side.cancel_ask(ask);
    // The session is over before the client answers.
    agent.send(&request(5, "session/close", r#"{"sessionId":"s"}"#));
    let close = agent
        .events
        .iter()
        .position(|event| matches!(event, AgentEvent::CloseSession { .. }));
    let AgentEvent::CloseSession { asked, .. } = agent.events.remove(close.expect("it is asked"))
    else {
        unreachable!("just looked at");
    };
    agent
        .side
        .answer(asked, Ok(CloseSessionResponse::default()));
    agent.drain();
    assert!(!agent.side.takes(key, Gates::TERMINAL));
    let settled = |agent: &Agent| {
        let mut settled = agent.events.iter();
        settled.any(|event| matches!(event, AgentEvent::Settled { .. }))
    };
    assert!(!settled(&agent));
    agent.send(&format!(
        r#"{{"jsonrpc":"2.0","id":{ask},"result":{{"terminalId":"t"}}}}"#
    ));
    assert!(settled(&agent));
    let release = ReleaseTerminalRequest::new("s", "t");
    agent.side.release_terminal(&release);
    agent.drain();
    assert!(
        agent
            .sent()
            .iter()
            .any(|frame| frame.contains("terminal/release"))
    );

    // While the connection ends nothing is asked, but given back.
    let (mut agent, _) = Agent::ready_for(r#"{"terminal":true}"#).with_session("s");
    agent.prompt(6, "s");
    agent.input(PeerInput::PeerFinished);
    agent.sent();
    assert_eq!(
        agent.side.ask::<methods::CreateTerminal>(&create),
        Err(Gone(()))
    );
    agent.side.release_terminal(&release);
    agent.drain();
    assert!(
        agent
            .sent()
            .iter()
            .any(|frame| frame.contains("terminal/release"))
    );
}

#[test]
fn the_end_of_a_page_is_told_only_to_who_takes_pages() {
    use crate::error::CommandError::NotOffered;
    for (capabilities, told) in [
        ("{}", false),
        (r#"{"elicitation":{}}"#, false),
        (r#"{"elicitation":{"form":{}}}"#, false),
        (r#"{"elicitation":{"url":{}}}"#, true),
    ] {
        let mut agent = Agent::ready_for(capabilities);
        let result = agent.side.complete_elicitation("e1");
        assert_eq!(
            result,
            told.then_some(()).ok_or(NotOffered(())),
            "{capabilities}"
        );
        agent.drain();
        let sent: Vec<_> = agent
            .sent()
            .iter()
            .map(|frame| frame.trim().to_string())
            .collect();
        let frame =
            r#"{"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"e1"}}"#;
        let expected: &[&str] = if told { &[frame] } else { &[] };
        assert_eq!(sent, expected);
    }
}
