//! Prompts, cancels, and requests of ours within a turn.

use super::*;
use crate::error::CommandError;

#[test]
fn a_prompt_is_refused_without_a_turn_for_what_is_in_it() {
    let (mut agent, _) = Agent::ready().with_session("s");
    for blocks in [
        "[]",
        r#"[{"type":"text","text":" \n\t "}]"#,
        r#"[{"type":"text","text":"a"},{"type":"audio","data":"","mimeType":"audio/wav"}]"#,
        r#"[{"type":"hologram"}]"#,
        r#"[{"type":"text"}]"#,
        "null",
        r#"{"type":"text","text":"a"}"#,
    ] {
        let params = format!(r#"{{"sessionId":"s","prompt":{blocks}}}"#);
        agent.send(&request(1, "session/prompt", &params));
        assert_eq!(
            error(&agent.sent()[0]),
            ("1".into(), -32602, String::new()),
            "{blocks}"
        );
    }
    // Who sent many blocks is told which one it is about.
    let good = r#"{"type":"text","text":"a"}"#;
    for (block, named) in [
        (
            r#"{"type":"hologram"}"#,
            "block 1: expected a content block",
        ),
        (r#"{"type":"text"}"#, "block 1: missing field `text`"),
        (
            r#"{"type":"image","data":5,"mimeType":"image/png"}"#,
            "block 1: expected a string in `data`",
        ),
        (
            r#"{"type":"resource","resource":{"uri":"u"}}"#,
            "block 1: a resource needs `text` or `blob`",
        ),
        (
            r#"{"type":"audio","data":"","mimeType":"audio/wav"}"#,
            "block 1 (audio)",
        ),
    ] {
        let params = format!(r#"{{"sessionId":"s","prompt":[{good},{block}]}}"#);
        agent.send(&request(1, "session/prompt", &params));
        let sent = agent.sent().join("");
        assert!(sent.contains(named), "{named}: {sent}");
    }
    agent.prompt(2, "s");
    agent.send(&prompt(3, "s"));
    assert_eq!(
        error(&agent.sent()[0]),
        ("3".into(), -32600, "session_busy".into())
    );
    agent.send(&prompt(4, "nope"));
    assert_eq!(
        error(&agent.frames[0]),
        ("4".into(), -32002, "session_not_found".into())
    );
    assert!(agent.sent()[0].contains(r#""sessionId":"nope""#));
    for id in ["", "..", "../x", "a b"] {
        agent.send(&prompt(5, id));
        assert_eq!(error(&agent.sent()[0]).1, -32602, "{id}");
    }
}

#[test]
fn all_of_a_turn_goes_out_before_its_answer_and_nothing_after() {
    let (mut agent, _) = Agent::ready().with_session("s");
    let turn = agent.prompt(2, "s");
    let mut handle = agent.side.turn(turn).unwrap();
    handle.text(TextKind::Message, "a", None).unwrap();
    handle.text(TextKind::Thought, "b", Some("m\"1")).unwrap();
    handle.text(TextKind::Message, "", None).unwrap();
    handle.finish(PromptResponse::new(StopReason::EndTurn));
    assert!(agent.side.turn(turn).is_none());
    agent.drain();
    let sent = agent.sent();
    assert_eq!(sent[0], chunk("s", "a"));
    assert!(sent[1].contains("agent_thought_chunk") && sent[1].contains(r#""messageId":"m\"1""#));
    assert_eq!(sent[2..], [stop(2, "end_turn")]);
    let next = agent.prompt(3, "s");
    assert_ne!(next, turn);
}

#[test]
fn a_cancel_right_behind_the_prompt_cancels_it() {
    let (mut agent, _) = Agent::ready().with_session("s");
    agent.feed(format!("{}\n{}\n{}\n", prompt(2, "s"), cancel("s"), cancel("s")).as_bytes());
    let events = core::mem::take(&mut agent.events);
    let [
        AgentEvent::Prompt { turn, .. },
        AgentEvent::Cancel { turn: cancelled },
    ] = events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(turn, cancelled);
    assert!(agent.side.turn(turn).unwrap().is_cancelled());
    agent.finish(turn, StopReason::EndTurn);
    assert_eq!(
        agent.sent(),
        [stop(2, "cancelled")],
        "whatever reason is given"
    );
}

#[test]
fn a_cancel_of_an_idle_session_does_nothing_also_not_to_the_next_turn() {
    let (mut agent, _) = Agent::ready().with_session("s");
    agent.open("t");
    agent.send(&cancel("s"));
    agent.send(&cancel("zzz"));
    agent.feed(format!("{}\n{}\n", cancel("s"), prompt(2, "s")).as_bytes());
    let other = agent.prompt(3, "t");
    assert_eq!(agent.told_names(), ["Prompt"]);
    agent.send(&cancel("t"));
    agent.finish(other, StopReason::Cancelled);
    agent.send(&cancel("t"));
    agent.prompt(4, "t");
    assert_eq!(agent.told_names(), ["Cancel"]);
}

#[test]
fn a_failure_of_a_cancelled_turn_is_no_error() {
    for cancelled in [false, true] {
        let (mut agent, _) = Agent::ready().with_session("s");
        let turn = agent.prompt(2, "s");
        if cancelled {
            agent.send(&cancel("s"));
        }
        agent
            .side
            .turn(turn)
            .unwrap()
            .fail(RpcError::internal("reset by peer"));
        agent.drain();
        let frame = agent.sent().remove(0);
        if cancelled {
            assert_eq!(frame, stop(2, "cancelled"));
        } else {
            assert_eq!(error(&frame).1, -32603);
        }
    }
}

#[test]
fn cancel_request_matches_by_type_and_value_and_every_request_is_answered_once() {
    let (mut agent, _) = Agent::ready().with_session("s");
    let turn = agent.prompt(2, "s");
    agent.send(&request(3, "session/list", "{}"));
    let Some(AgentEvent::ListSessions { asked, .. }) = agent.events.pop() else {
        panic!()
    };
    for id in [r#""2""#, "2.0", "true", "null", "[2]", "99", r#""3""#] {
        agent.send(&notification(
            "$/cancel_request",
            &format!(r#"{{"requestId":{id}}}"#),
        ));
    }
    agent
        .events
        .retain(|event| !matches!(event, AgentEvent::Misbehaved(_)));
    assert!(agent.told_names().is_empty());
    for id in ["2", "2", "3", "3"] {
        agent.send(&notification(
            "$/cancel_request",
            &format!(r#"{{"requestId":{id}}}"#),
        ));
    }
    assert_eq!(
        agent.events[..],
        [
            AgentEvent::Cancel { turn },
            AgentEvent::CancelRequest { key: asked.key() }
        ]
    );
    agent.side.answer(asked, Err(RpcError::cancelled()));
    agent.finish(turn, StopReason::EndTurn);
    let sent = agent.sent();
    assert_eq!(error(&sent[0]), ("3".into(), -32800, String::new()));
    assert_eq!(sent[1..], [stop(2, "cancelled")]);
}

#[test]
fn tool_calls_only_move_on_and_all_end_with_their_turn() {
    let (mut agent, _) = Agent::ready().with_session("s");
    let turn = agent.prompt(2, "s");
    let announce = |id: &str| SessionUpdate::ToolCall(ToolCall::new(id, "t"));
    let status = |id: &str, status| {
        let mut update = ToolCallUpdate::new(id);
        update.status = Some(status);
        SessionUpdate::ToolCallUpdate(update)
    };
    let gone = Err(CommandError::Gone(()));
    let mut handle = agent.side.turn(turn).unwrap();
    use ToolCallStatus::{Completed, Failed, InProgress, Pending};
    for (update, result) in [
        (status("a", InProgress), gone),
        (announce("a"), Ok(())),
        (announce("a"), Err(CommandError::Gone(()))),
        (status("a", InProgress), Ok(())),
        (status("a", Pending), Ok(())),
        (status("a", Completed), Ok(())),
        (status("a", Failed), Err(CommandError::Gone(()))),
        (status("a", InProgress), Err(CommandError::Gone(()))),
        (announce("b"), Ok(())),
        (announce("c"), Ok(())),
        (status("c", InProgress), Ok(())),
    ] {
        assert_eq!(handle.update(&update), result, "{update:?}");
    }
    agent.drain();
    agent.sent();
    agent.finish(turn, StopReason::EndTurn);
    let sent = agent.sent();
    assert_eq!(sent.len(), 3);
    for (frame, id) in sent.iter().zip(["b", "c"]) {
        assert!(
            frame.contains(&format!(r#""toolCallId":"{id}","status":"failed""#)),
            "{frame}"
        );
    }
    assert_eq!(sent[2], stop(2, "end_turn"));
}

fn card() -> RequestPermissionRequest {
    RequestPermissionRequest::new(
        "s",
        ToolCallUpdate::new("c"),
        vec![
            PermissionOption::new("yes", "Allow", PermissionOptionKind::AllowOnce),
            PermissionOption::new("no", "Reject", PermissionOptionKind::RejectOnce),
        ],
    )
}

#[test]
fn only_an_option_that_was_offered_allows_and_every_other_answer_settles_once() {
    let yes = r#""result":{"outcome":{"outcome":"selected","optionId":"yes"}}"#;
    for (body, chosen) in [
        (yes, true),
        (r#""result":{"outcome":{"outcome":"cancelled"}}"#, false),
        (
            r#""result":{"outcome":{"outcome":"selected","optionId":"made-up"}}"#,
            false,
        ),
        (r#""result":{"outcome":"selected","optionId":"yes"}"#, false),
        (r#""result":{"outcome":{"outcome":"selected"}}"#, false),
        (
            r#""result":{"outcome":{"outcome":"granted","optionId":"yes"}}"#,
            false,
        ),
        (r#""result":{}"#, false),
        (r#""result":null"#, false),
        (r#""result":[]"#, false),
        (r#""result":true"#, false),
        (r#""error":{"code":-32800,"message":"x"}"#, false),
        (r#""error":{"code":12345,"message":"x"}"#, false),
        (r#""error":"x""#, false),
        (
            r#""outcome":{"outcome":"selected","optionId":"yes"}"#,
            false,
        ),
        (
            r#""result":{"outcome":{"outcome":"selected","optionId":"yes"}},"error":{"code":-1,"message":"x"}"#,
            false,
        ),
    ] {
        let (mut agent, _) = Agent::ready().with_session("s");
        agent.prompt(2, "s");
        let ask = agent
            .side
            .ask::<methods::RequestPermission>(&card())
            .unwrap();
        agent.drain();
        assert!(agent.sent()[0].contains(r#""id":1,"method":"session/request_permission""#));
        agent.send(&format!(r#"{{"jsonrpc":"2.0","id":1,{body}}}"#));
        agent.send(&format!(r#"{{"jsonrpc":"2.0","id":1,{yes}}}"#));
        let settled: Vec<_> = agent
            .events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::Settled {
                    ask: settled,
                    answer,
                } if *settled == ask => Some(answer),
                _ => None,
            })
            .collect();
        assert_eq!(settled.len(), 1, "{body}");
        let allowed = matches!(
            settled[0],
            ClientAnswer::RequestPermission(Ok(RequestPermissionResponse {
                outcome: RequestPermissionOutcome::Selected(option),
                ..
            })) if option.option_id == "yes"
        );
        assert_eq!(allowed, chosen, "{body}");
        assert!(agent.sent().is_empty(), "an answer is never answered");
    }
}

#[test]
fn a_request_that_was_withdrawn_is_cancelled_once_and_its_late_answer_leaves_no_trace() {
    let (mut agent, _) = Agent::ready().with_session("s");
    agent.prompt(2, "s");
    let ask = agent
        .side
        .ask::<methods::RequestPermission>(&card())
        .unwrap();
    agent.side.withdraw(ask);
    agent.side.withdraw(ask);
    agent.drain();
    let sent = agent.sent();
    assert_eq!(sent.len(), 2);
    assert_eq!(
        sent[1],
        notification("$/cancel_request", r#"{"requestId":1}"#)
    );
    agent.send(
        r#"{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}"#,
    );
    assert!(agent.told_names().is_empty() && agent.sent().is_empty());
}

#[test]
fn answers_come_in_any_order_and_null_is_an_empty_answer() {
    let caps = r#"{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}"#;
    let (mut agent, _) = Agent::ready_for(caps).with_session("s");
    let side = &mut agent.side;
    let read = side
        .ask::<methods::ReadTextFile>(&ReadTextFileRequest::new("s", "/f"))
        .unwrap();
    let write = side
        .ask::<methods::WriteTextFile>(&WriteTextFileRequest::new("s", "/f", "x"))
        .unwrap();
    let wait = side
        .ask::<methods::WaitForTerminalExit>(&WaitForTerminalExitRequest::new("s", "t"))
        .unwrap();
    agent.drain();
    agent.send(r#"{"jsonrpc":"2.0","id":3,"result":null}"#);
    agent.send(r#"{"jsonrpc":"2.0","id":2,"result":null}"#);
    agent.send(r#"{"jsonrpc":"2.0","id":1,"result":null}"#);
    agent
        .events
        .retain(|event| !matches!(event, AgentEvent::Misbehaved(_)));
    let settled = |ask, answer| AgentEvent::Settled { ask, answer };
    assert_eq!(
        agent.events[0],
        settled(
            wait,
            ClientAnswer::WaitForTerminalExit(Ok(Default::default()))
        )
    );
    assert_eq!(
        agent.events[1],
        settled(write, ClientAnswer::WriteTextFile(Ok(Default::default())))
    );
    let AgentEvent::Settled {
        ask,
        answer: ClientAnswer::ReadTextFile(Err(_)),
    } = &agent.events[2]
    else {
        panic!("{:?}", agent.events)
    };
    assert_eq!(*ask, read);
}
