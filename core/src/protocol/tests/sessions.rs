//! Opening and closing sessions, and what waits for either.

use super::*;

fn load(id: u64, session: &str) -> String {
    let params = format!(r#"{{"sessionId":"{session}","cwd":"/w","mcpServers":[]}}"#);
    request(id, "session/load", &params)
}

fn close(id: u64, session: &str) -> String {
    request(
        id,
        "session/close",
        &format!(r#"{{"sessionId":"{session}"}}"#),
    )
}

fn take_load(agent: &mut Agent) -> (Asked<methods::LoadSession>, Option<SessionKey>) {
    match agent.events.pop() {
        Some(AgentEvent::LoadSession { asked, session, .. }) => (asked, session),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_answer_that_makes_a_session_known_goes_out_before_anything_of_it() {
    let mut agent = Agent::ready();
    agent.send(&new_session(1));
    let Some(AgentEvent::NewSession { asked, .. }) = agent.events.pop() else {
        panic!()
    };
    let key = agent
        .side
        .open(asked, NewSessionResponse::new("s"))
        .unwrap();
    let commands = AvailableCommandsUpdate::new(Vec::new());
    let mut session = agent.side.session(key).unwrap();
    assert_eq!(session.id().as_str(), "s");
    session.notify(&SessionUpdate::AvailableCommandsUpdate(commands));
    agent.drain();
    let sent = agent.sent();
    assert_eq!(sent[0], r(1, r#"{"sessionId":"s"}"#));
    assert!(sent[1].contains("available_commands_update"));
    assert_eq!(agent.side.find_session(&"s".into()), Some(key));
}

#[test]
fn a_replay_goes_out_before_the_answer() {
    let mut agent = Agent::ready();
    agent.send(&load(1, "s"));
    let (asked, session) = take_load(&mut agent);
    assert_eq!(session, None);
    let said = ContentChunk::new(ContentBlock::text("x"));
    let mut replay = agent.side.replay(&asked).unwrap();
    replay
        .update(&SessionUpdate::UserMessageChunk(said))
        .unwrap();
    agent
        .side
        .open(asked, LoadSessionResponse::default())
        .unwrap();
    agent.drain();
    let sent = agent.sent();
    assert!(sent[0].contains("user_message_chunk"));
    assert_eq!(sent[1..], [r(1, "{}")]);
}

#[test]
fn frames_for_a_session_that_opens_wait_in_order_and_others_pass() {
    let (mut agent, _) = Agent::ready().with_session("other");
    agent.send(&load(1, "s"));
    let (asked, _) = take_load(&mut agent);
    agent.send(&prompt(2, "s"));
    agent.send(&cancel("s"));
    agent.send(&prompt(3, "other"));
    assert_eq!(agent.told_names(), ["Prompt"], "only the other one's");
    agent
        .side
        .open(asked, LoadSessionResponse::default())
        .unwrap();
    agent.drain();
    assert_eq!(
        agent.told_names(),
        ["Prompt", "Cancel"],
        "the cancel behind it finds it"
    );
    assert_eq!(agent.sent(), [r(1, "{}")]);
}

#[test]
fn frames_for_a_session_that_does_not_open_are_answered() {
    let mut agent = Agent::ready();
    agent.send(&load(1, "s"));
    let (asked, _) = take_load(&mut agent);
    agent.send(&prompt(2, "s"));
    agent.send(&request(
        3,
        "session/set_mode",
        r#"{"sessionId":"s","modeId":"m"}"#,
    ));
    agent
        .side
        .answer(asked, Err(RpcError::resource_not_found("no")));
    agent.drain();
    let codes: Vec<_> = agent
        .sent()
        .iter()
        .map(|frame| error(frame))
        .map(|(id, code, _)| (id, code))
        .collect();
    assert_eq!(
        codes,
        [
            ("1".into(), -32002),
            ("2".into(), -32002),
            ("3".into(), -32002)
        ]
    );
    agent.send(&load(4, "s"));
    assert_eq!(agent.told_names(), ["LoadSession"], "it can be tried again");
}

#[test]
fn what_waits_can_be_cancelled_by_its_id() {
    let mut agent = Agent::ready();
    agent.send(&load(1, "s"));
    let (asked, _) = take_load(&mut agent);
    agent.send(&prompt(2, "s"));
    agent.send(&request(
        3,
        "session/set_mode",
        r#"{"sessionId":"s","modeId":"m"}"#,
    ));
    for id in [2, 3] {
        agent.send(&notification(
            "$/cancel_request",
            &format!(r#"{{"requestId":{id}}}"#),
        ));
    }
    let sent = agent.sent();
    assert_eq!(sent[0], stop(2, "cancelled"));
    assert_eq!(error(&sent[1]), ("3".into(), -32800, String::new()));
    agent
        .side
        .open(asked, LoadSessionResponse::default())
        .unwrap();
    agent.drain();
    assert!(agent.told_names().is_empty());
    assert_eq!(agent.sent(), [r(1, "{}")]);
}

#[test]
fn no_more_waits_than_the_limit() {
    let mut agent = Agent::with(Limits {
        max_waiting_frames: 2,
        max_frame: 2000,
        ..Limits::default()
    });
    agent.send(INIT);
    agent.sent();
    agent.send(&load(1, "s"));
    for id in 2..=4 {
        agent.send(&prompt(id, "s"));
    }
    assert_eq!(
        error(&agent.sent()[0]),
        ("4".into(), -32600, "too_many_waiting".into())
    );
    // And no more bytes than one frame may have.
    agent.send(&load(5, "t"));
    let text = "x".repeat(1800);
    let big = |id| {
        let params = format!(r#"{{"sessionId":"t","prompt":[{{"type":"text","text":"{text}"}}]}}"#);
        request(id, "session/prompt", &params)
    };
    agent.send(&big(6));
    assert_eq!(
        error(&agent.sent()[0]),
        ("6".into(), -32600, "too_many_waiting".into())
    );
}

#[test]
fn a_load_of_an_active_session_leaves_its_turn_running_and_cancellable() {
    let (mut agent, key) = Agent::ready().with_session("s");
    let turn = agent.prompt(2, "s");
    agent.send(&load(3, "s"));
    let (asked, session) = take_load(&mut agent);
    assert_eq!(session, Some(key));
    agent
        .side
        .turn(turn)
        .unwrap()
        .text(TextKind::Message, "a", None)
        .unwrap();
    agent.send(&cancel("s"));
    assert_eq!(agent.told_names(), ["Cancel"]);
    assert_eq!(
        agent.side.open(asked, LoadSessionResponse::default()),
        Some(key)
    );
    agent.finish(turn, StopReason::Cancelled);
    assert_eq!(
        agent.sent(),
        [chunk("s", "a"), r(3, "{}"), stop(2, "cancelled")]
    );
}

#[test]
fn close_ends_the_turn_first_and_then_the_session() {
    for method in ["session/close", "session/delete"] {
        let (mut agent, key) = Agent::ready().with_session("s");
        let turn = agent.prompt(2, "s");
        let ask = agent
            .side
            .ask_vendor("_q", &Json::from_text("{}").unwrap())
            .unwrap();
        agent.drain();
        agent.sent();
        agent.send(&request(3, method, r#"{"sessionId":"s"}"#));
        assert_eq!(agent.told_names(), ["Cancel"]);
        agent.send(&prompt(4, "s"));
        agent.finish(turn, StopReason::EndTurn);
        assert_eq!(agent.sent(), [stop(2, "cancelled")]);
        match agent.events.pop() {
            Some(AgentEvent::CloseSession { asked, session, .. }) => {
                assert_eq!(session, key);
                agent
                    .side
                    .answer(asked, Ok(CloseSessionResponse::default()));
            }
            Some(AgentEvent::DeleteSession { asked, session, .. }) => {
                assert_eq!(session, Some(key));
                agent
                    .side
                    .answer(asked, Ok(DeleteSessionResponse::default()));
            }
            other => panic!("{other:?}"),
        }
        agent.drain();
        let sent = agent.sent();
        assert_eq!(sent[0], r(3, "{}"));
        assert_eq!(
            error(&sent[1]),
            ("4".into(), -32002, "session_not_found".into())
        );
        assert!(agent.side.session(key).is_none());
        agent.side.withdraw(ask);
        // It can be opened again.
        agent.send(&load(5, "s"));
        assert_eq!(take_load(&mut agent).1, None);
    }
}

#[test]
fn a_close_settles_what_was_asked_for_the_session() {
    let (mut agent, _) = Agent::ready().with_session("s");
    let card = RequestPermissionRequest::new("s", ToolCallUpdate::new("c"), Vec::new());
    let ask = agent.side.ask::<methods::RequestPermission>(&card).unwrap();
    agent.send(&close(3, "s"));
    let Some(AgentEvent::CloseSession { asked, .. }) = agent.events.pop() else {
        panic!()
    };
    agent
        .side
        .answer(asked, Ok(CloseSessionResponse::default()));
    agent.drain();
    let answer = ClientAnswer::RequestPermission(Err(RpcError::cancelled()));
    assert_eq!(agent.events, [AgentEvent::Settled { ask, answer }]);
    assert_eq!(
        agent.sent()[2],
        notification("$/cancel_request", r#"{"requestId":1}"#)
    );
}

#[test]
fn a_close_that_fails_leaves_the_session_open() {
    let (mut agent, key) = Agent::ready().with_session("s");
    agent.send(&close(3, "s"));
    let Some(AgentEvent::CloseSession { asked, .. }) = agent.events.pop() else {
        panic!()
    };
    agent.send(&prompt(4, "s"));
    assert!(agent.events.is_empty());
    agent.side.answer(asked, Err(RpcError::internal("no")));
    agent.drain();
    assert_eq!(agent.told_names(), ["Prompt"]);
    assert!(agent.side.session(key).unwrap().turn().is_some());
}

#[test]
fn close_of_an_unknown_session_succeeds_and_delete_is_the_embedders() {
    let mut agent = Agent::ready();
    agent.send(&close(1, "nope"));
    assert_eq!(agent.sent(), [r(1, "{}")]);
    agent.send(&request(2, "session/delete", r#"{"sessionId":"nope"}"#));
    assert_eq!(agent.told_names(), ["DeleteSession"]);
    agent.send(&request(3, "session/delete", r#"{"sessionId":"../nope"}"#));
    assert_eq!(error(&agent.sent()[0]).1, -32602);
}

#[test]
fn no_more_sessions_than_the_limit() {
    let mut agent = Agent::with(Limits {
        max_sessions: 1,
        ..Limits::default()
    });
    agent.send(INIT);
    agent.sent();
    agent.open("s");
    agent.send(&new_session(1));
    agent.send(&load(2, "t"));
    for frame in agent.sent() {
        assert_eq!(error(&frame).2, "too_many_sessions");
    }
}

#[test]
fn sessions_do_not_mix() {
    let mut agent = Agent::ready();
    let turns: Vec<_> = ["a", "b"]
        .into_iter()
        .enumerate()
        .map(|(at, id)| {
            agent.open(id);
            (id, agent.prompt(at as u64, id))
        })
        .collect();
    for _ in 0..50 {
        for (id, turn) in &turns {
            agent
                .side
                .turn(*turn)
                .unwrap()
                .text(TextKind::Message, id, None)
                .unwrap();
        }
    }
    agent.drain();
    let sent = agent.sent();
    for id in ["a", "b"] {
        assert_eq!(
            sent.iter().filter(|frame| **frame == chunk(id, id)).count(),
            50
        );
    }
    assert_eq!(sent.len(), 100);
}

#[test]
fn a_subagent_is_cancelled_only_while_it_was_said_that_it_can_be() {
    let update = |capabilities: Patch<SubagentSessionCapabilities>| {
        let mut update = SubagentUpdate::new("s.1");
        update.capabilities = capabilities;
        SessionUpdate::SubagentUpdate(update)
    };
    let can = || {
        let may = SubagentSessionCapabilities {
            cancel: Some(Marker::default()),
            ..SubagentSessionCapabilities::default()
        };
        Patch::Value(may)
    };
    let cannot = || Patch::Value(SubagentSessionCapabilities::default());
    for (declared, said, cancelled) in [
        (r#"{"subagents":{}}"#, vec![can()], true),
        (r#"{"subagents":{}}"#, vec![can(), Patch::Absent], true),
        (r#"{"subagents":{}}"#, vec![can(), Patch::Null], false),
        (r#"{"subagents":{}}"#, vec![can(), cannot()], false),
        (r#"{"subagents":{}}"#, vec![cannot()], false),
        (r#"{"subagents":{}}"#, vec![], false),
        // Who is not told of it cannot know.
        ("{}", vec![can()], false),
    ] {
        for in_turn in [true, false] {
            let (mut agent, key) = Agent::ready_for(declared).with_session("s");
            let turn = agent.prompt(1, "s");
            for capabilities in &said {
                let update = update(capabilities.clone());
                if in_turn {
                    let mut turn = agent.side.turn(turn).expect("it runs");
                    turn.update(&update).expect("there is room");
                } else {
                    let mut session = agent.side.session(key).expect("it is open");
                    session.notify(&update);
                }
            }
            agent.drain();
            agent.sent();
            agent.send(&cancel("s.1"));
            let subagent = "s.1".into();
            let event = AgentEvent::CancelSubagent {
                session: key,
                subagent,
            };
            let expected = Vec::from_iter(cancelled.then_some(event));
            assert_eq!(agent.events, expected, "{declared} {said:?}");
            assert!(agent.sent().is_empty());
            agent.events.clear();
            // It goes with the session of its parent.
            agent.finish(turn, StopReason::EndTurn);
            agent.side.forget(key);
            agent.send(&cancel("s.1"));
            assert_eq!(agent.events, []);
        }
    }
}
