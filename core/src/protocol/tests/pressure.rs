//! Room: who may send when the client reads slowly.

use super::*;
use crate::error::CommandError;

fn say(agent: &mut Agent, turn: TurnKey, text: &str) -> bool {
    let said = agent
        .side
        .turn(turn)
        .unwrap()
        .text(TextKind::Message, text, None);
    assert!(matches!(said, Ok(()) | Err(CommandError::Full(()))));
    said.is_ok()
}

#[test]
fn a_producer_stops_at_the_soft_mark_and_goes_on_when_there_is_room() {
    let (mut agent, _) = Agent::ready().with_session("s");
    let soft = Limits::default().soft_output;
    let turn = agent.prompt(1, "s");
    agent.reads = false;
    let mut said = 0;
    while say(&mut agent, turn, &"x".repeat(1000)) {
        said += 1;
    }
    assert!((soft / 1200..=soft / 1000).contains(&said), "{said}");
    assert!(
        !say(&mut agent, turn, "y"),
        "nothing of a refused text is sent"
    );
    agent.drain();
    assert_eq!(agent.sent().len(), said);
    assert!(agent.told_names().is_empty(), "handed out is not written");
    agent.input(PeerInput::Unsent(soft));
    assert!(agent.told_names().is_empty());
    agent.input(PeerInput::Unsent(soft - 1));
    assert_eq!(agent.events, [AgentEvent::Ready { turn }], "and once only");
    assert!(say(&mut agent, turn, "y"));
}

#[test]
fn room_is_handed_out_in_order_sixteen_frames_at_a_time() {
    let mut agent = Agent::ready();
    agent.reads = false;
    let turns: Vec<_> = (0..3)
        .map(|at| {
            agent.open(&format!("s{at}"));
            agent.prompt(at, &format!("s{at}"))
        })
        .collect();
    for turn in &turns {
        while say(&mut agent, *turn, &"x".repeat(1000)) {}
    }
    agent.drain();
    agent.sent();
    assert!(agent.events.is_empty());
    agent.side.handle_input(agent.now, PeerInput::Unsent(0));
    // Nobody sends more than its share while others wait, and all come in turn.
    let mut order = Vec::new();
    for _ in 0..9 {
        let ready = loop {
            match agent.side.poll_effect() {
                Next::Do(SideEffect::Event(AgentEvent::Ready { turn })) => break turn,
                Next::Do(SideEffect::Transmit(_)) => {}
                Next::Do(SideEffect::Event(_) | SideEffect::Close(_)) => panic!(),
                Next::Wait(_) => agent.side.handle_input(agent.now, PeerInput::Unsent(0)),
            }
        };
        let mut said = 0;
        while say(&mut agent, ready, "z") {
            said += 1;
        }
        order.push((turns.iter().position(|turn| *turn == ready).unwrap(), said));
    }
    let once = [(0, 16), (1, 16), (2, 16)];
    assert_eq!(order, [once, once, once].concat());
}

#[test]
fn a_turn_that_ended_in_the_queue_is_passed_over() {
    let mut agent = Agent::ready();
    agent.reads = false;
    let turns: Vec<_> = (0..2)
        .map(|at| {
            agent.open(&format!("s{at}"));
            agent.prompt(at, &format!("s{at}"))
        })
        .collect();
    for turn in &turns {
        while say(&mut agent, *turn, &"x".repeat(1000)) {}
    }
    agent.finish(turns[0], StopReason::EndTurn);
    agent.input(PeerInput::Unsent(0));
    assert_eq!(agent.events, [AgentEvent::Ready { turn: turns[1] }]);
}

#[test]
fn a_replay_waits_in_the_same_queue() {
    let mut agent = Agent::ready();
    agent.reads = false;
    let load = r#"{"sessionId":"s","cwd":"/w","mcpServers":[]}"#;
    agent.send(&request(1, "session/load", load));
    let Some(AgentEvent::LoadSession { asked, .. }) = agent.events.pop() else {
        panic!()
    };
    let said = ContentChunk::new(ContentBlock::text("x".repeat(1000)));
    let said = SessionUpdate::UserMessageChunk(said);
    while agent.side.replay(&asked).unwrap().update(&said).is_ok() {}
    agent.drain();
    agent.input(PeerInput::Unsent(0));
    assert_eq!(agent.events, [AgentEvent::ReplayReady { key: asked.key() }]);
}

#[test]
fn cancels_work_while_the_client_reads_nothing() {
    let (mut agent, _) = Agent::ready().with_session("s");
    agent.reads = false;
    let turn = agent.prompt(1, "s");
    while say(&mut agent, turn, &"x".repeat(1000)) {}
    agent.drain();
    assert!(room(&agent) > 0);
    agent.send(&cancel("s"));
    assert_eq!(agent.told_names(), ["Cancel"]);
    assert!(
        say(&mut agent, turn, "the end"),
        "a cancelled turn may say its last words"
    );
    agent.finish(turn, StopReason::Cancelled);
    assert_eq!(agent.sent().pop().unwrap(), stop(1, "cancelled"));
}

#[test]
fn over_the_hard_mark_nothing_is_read() {
    let (mut agent, key) = Agent::ready().with_session("s");
    agent.reads = false;
    let title = SessionInfoUpdate {
        title: Patch::Value("x".repeat(1000)),
        ..Default::default()
    };
    let update = SessionUpdate::SessionInfoUpdate(title);
    let hard = Limits::default().hard_output;
    for _ in 0..hard / 1000 {
        agent.side.session(key).unwrap().notify(&update);
    }
    agent.drain();
    assert_eq!(room(&agent), 0);
    agent.input(PeerInput::Unsent(hard - 1));
    assert_eq!(room(&agent), Limits::default().peer_window);
}

#[test]
fn the_peer_may_send_a_window_ahead_and_more_only_of_one_frame() {
    let mut agent = Agent::new();
    agent.capabilities = None;
    let window = Limits::default().peer_window;
    assert_eq!(room(&agent), window);
    agent.send(INIT);
    // The answer to initialize is due, so lines are only kept.
    agent.feed(b"{}\n");
    assert_eq!(room(&agent), window - 3);
    let mut agent = Agent::ready();
    agent.feed(&vec![b' '; window]);
    agent.feed(b"{\"a\":");
    agent.feed(&vec![b'1'; 2 * window]);
    assert_eq!(room(&agent), window, "an incomplete frame goes on coming");
}

#[test]
fn text_is_one_frame_if_the_limit_allows_and_pieces_otherwise() {
    let text = "0123456789".repeat(20_000);
    for (max, frames) in [(usize::MAX, 1), (48 << 10, 5)] {
        let mut agent = Agent::with(Limits {
            max_out_frame: max,
            ..Limits::default()
        });
        agent.send(INIT);
        agent.open("s");
        let turn = agent.prompt(1, "s");
        agent.sent();
        assert!(say(&mut agent, turn, &text));
        agent.drain();
        let sent = agent.sent();
        assert_eq!(sent.len(), frames);
        assert!(sent.iter().all(|frame| frame.len() < max));
    }
}

#[test]
fn a_peer_that_takes_nothing_for_too_long_is_gone() {
    let (mut agent, _) = Agent::ready().with_session("s");
    agent.reads = false;
    let turn = agent.prompt(1, "s");
    say(&mut agent, turn, "x");
    agent.drain();
    agent.input(PeerInput::Unsent(10));
    agent.later(599);
    agent.input(PeerInput::Unsent(9));
    agent.later(599);
    assert_eq!(agent.closed, None, "it took one byte");
    agent.later(1);
    assert_eq!(agent.told_names(), ["Cancel", "PeerGone"]);
    assert_eq!(agent.closed, Some(CloseReason::Stalled));
}
