//! How connections end.

use super::*;
use crate::time::Timer;

#[test]
fn the_end_of_the_input_cancels_turns_and_waits_for_every_answer() {
    let (mut agent, _) = Agent::ready().with_session("s");
    let turn = agent.prompt(2, "s");
    let card = RequestPermissionRequest::new("s", ToolCallUpdate::new("c"), Vec::new());
    let ask = agent.side.ask::<methods::RequestPermission>(&card).unwrap();
    agent.drain();
    agent.sent();
    // The last line has no end.
    agent.feed(request(3, "session/list", "{}").as_bytes());
    agent.input(PeerInput::PeerFinished);
    agent.input(PeerInput::PeerFinished);
    let Some(AgentEvent::ListSessions { .. }) = agent.events.first() else {
        panic!()
    };
    let AgentEvent::ListSessions { asked, .. } = agent.events.remove(0) else {
        panic!()
    };
    let answer = ClientAnswer::RequestPermission(Err(RpcError::cancelled()));
    assert_eq!(
        agent.events[..],
        [
            AgentEvent::PeerFinished,
            AgentEvent::Cancel { turn },
            AgentEvent::Settled { ask, answer }
        ]
    );
    assert!(
        agent.side.ask::<methods::RequestPermission>(&card).is_err(),
        "nothing new is asked"
    );
    assert_eq!(room(&agent), 0);
    agent.finish(turn, StopReason::Cancelled);
    assert_eq!(agent.closed, None);
    agent
        .side
        .answer(asked, Ok(ListSessionsResponse::new(Vec::new())));
    agent.drain();
    assert_eq!(
        agent.sent(),
        [stop(2, "cancelled"), r(3, r#"{"sessions":[]}"#)]
    );
    assert_eq!(agent.closed, Some(CloseReason::Finished));
}

#[test]
fn after_the_grace_the_side_answers_itself_and_then_there_is_silence() {
    let (mut agent, key) = Agent::ready().with_session("s");
    let turn = agent.prompt(2, "s");
    agent.send(&request(3, "session/list", "{}"));
    let Some(AgentEvent::ListSessions { asked, .. }) = agent.events.pop() else {
        panic!()
    };
    agent.side.handle_input(agent.now, PeerInput::PeerFinished);
    let deadline = agent.drain().unwrap();
    assert_eq!(deadline.why, Timer::CloseGrace);
    assert_eq!(deadline.at, agent.now.plus(Limits::default().close_grace));
    agent.later(3);
    assert_eq!(agent.closed, None);
    agent.later(1);
    let sent = agent.sent();
    assert_eq!(sent[0], stop(2, "cancelled"));
    assert_eq!(error(&sent[1]), ("3".into(), -32800, String::new()));
    assert_eq!(agent.closed, Some(CloseReason::Finished));
    // Whatever comes now.
    agent.events.clear();
    assert!(agent.side.turn(turn).is_none());
    agent
        .side
        .answer(asked, Ok(ListSessionsResponse::new(Vec::new())));
    if let Some(mut session) = agent.side.session(key) {
        session.notify(&SessionUpdate::Plan(Plan::new(Vec::new())));
    }
    agent.feed(format!("{}\n", prompt(4, "s")).as_bytes());
    agent.input(PeerInput::PeerGone);
    agent.side.close();
    agent.later(10_000);
    assert_eq!(agent.drain(), None);
    assert!(agent.sent().is_empty() && agent.events.is_empty());
}

#[test]
fn a_piped_run_gets_its_answers() {
    let mut agent = Agent::new();
    agent.side.handle_input(
        agent.now,
        PeerInput::Received(format!("{INIT}\n{}", new_session(1)).as_bytes()),
    );
    agent.side.handle_input(agent.now, PeerInput::PeerFinished);
    agent.drain();
    let AgentEvent::NewSession { asked, .. } = agent.events.remove(0) else {
        panic!()
    };
    agent.side.open(asked, NewSessionResponse::new("s"));
    agent.drain();
    assert_eq!(agent.sent()[1], r(1, r#"{"sessionId":"s"}"#));
    assert_eq!(agent.closed, Some(CloseReason::Finished));
}

#[test]
fn what_waits_for_a_session_is_answered_at_the_end_of_the_input() {
    let mut agent = Agent::ready();
    let load = r#"{"sessionId":"s","cwd":"/w","mcpServers":[]}"#;
    agent.send(&request(1, "session/load", load));
    let Some(AgentEvent::LoadSession { asked, .. }) = agent.events.pop() else {
        panic!()
    };
    agent.send(&prompt(2, "s"));
    agent.input(PeerInput::PeerFinished);
    agent.side.open(asked, LoadSessionResponse::default());
    agent.drain();
    assert_eq!(agent.sent(), [stop(2, "cancelled"), r(1, "{}")]);
    assert_eq!(agent.closed, Some(CloseReason::Finished));
}

#[test]
fn an_idle_connection_closes_at_once_whatever_came_before() {
    for lines in [
        vec![],
        vec![INIT.to_string()],
        vec![INIT.to_string(), r#"{"jsonrpc":"#.into()],
    ] {
        let mut agent = Agent::new();
        agent.feed(lines.join("\n").as_bytes());
        agent.input(PeerInput::PeerFinished);
        assert_eq!(agent.closed, Some(CloseReason::Finished), "{lines:?}");
    }
}

#[test]
fn a_peer_that_is_gone_hears_nothing_and_all_stops() {
    let (mut agent, _) = Agent::ready().with_session("s");
    let turn = agent.prompt(2, "s");
    let side = &mut agent.side;
    side.turn(turn)
        .unwrap()
        .text(TextKind::Message, "x", None)
        .unwrap();
    side.handle_input(agent.now, PeerInput::PeerGone);
    assert!(!side.has_frame());
    assert_eq!(
        side.turn(turn).unwrap().text(TextKind::Message, "x", None),
        Ok(()),
        "what is said to nobody is no fault"
    );
    let Next::Do(SideEffect::Event(event)) = side.poll_effect() else {
        panic!()
    };
    assert_eq!(event, AgentEvent::Cancel { turn });
    side.turn(turn)
        .unwrap()
        .finish(PromptResponse::new(StopReason::Cancelled));
    agent.drain();
    assert_eq!(agent.told_names(), ["PeerGone"]);
    assert_eq!(agent.closed, Some(CloseReason::Gone));
    assert!(agent.sent().is_empty());
}

#[test]
fn an_embedder_that_is_done_leaves_no_request_unanswered() {
    let (mut agent, _) = Agent::ready().with_session("s");
    agent.prompt(2, "s");
    agent.send(&request(3, "session/list", "{}"));
    agent.side.close();
    agent.drain();
    let sent = agent.sent();
    assert_eq!(sent[0], stop(2, "cancelled"));
    assert_eq!(error(&sent[1]), ("3".into(), -32800, String::new()));
    assert_eq!(agent.closed, Some(CloseReason::Finished));
}

#[test]
fn an_initialize_that_is_never_answered_does_not_hold_the_end_up() {
    let mut agent = Agent::new();
    agent.capabilities = None;
    agent.feed(format!("{INIT}\n{}\n", new_session(1)).as_bytes());
    agent.input(PeerInput::PeerFinished);
    assert_eq!(agent.closed, None);
    agent.later(5);
    assert_eq!(error(&agent.sent()[0]), ("0".into(), -32800, String::new()));
    assert_eq!(agent.closed, Some(CloseReason::Finished));
}
