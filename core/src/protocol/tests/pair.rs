//! Both sides with a wire between them: what one says is what the other hears, and neither finds
//! fault with the other.

use super::*;

/// A client's side and an agent's side; the client is told of by `heard`.
struct Pair {
    agent: Agent,
    client: ClientSide,
    heard: Vec<ClientEvent>,
    closed: Option<CloseReason>,
}

impl Pair {
    fn new(capabilities: ClientCapabilities) -> Self {
        let mut pair = Self {
            agent: Agent::new(),
            client: ClientSide::new(Limits::default()),
            heard: Vec::new(),
            closed: None,
        };
        let mut request = InitializeRequest::new(ProtocolVersion::V1);
        request.client_capabilities = capabilities;
        pair.client.request::<methods::Initialize>(&request);
        pair.drive();
        assert!(matches!(
            pair.heard.pop(),
            Some(ClientEvent::Answered {
                answer: AgentAnswer::Initialize(Ok(_)),
                ..
            })
        ));
        assert!(pair.client.agent().load_session);
        pair
    }

    /// Moves frames both ways until both wait, one frame at a time.
    fn drive(&mut self) {
        for _ in 0..10_000 {
            let mut moved = false;
            match self.client.poll_effect() {
                Next::Do(SideEffect::Transmit(frame)) => {
                    moved = true;
                    let frame = frame.to_vec();
                    self.agent.feed(&frame);
                    self.client
                        .handle_input(Instant::ZERO, PeerInput::Unsent(0));
                }
                Next::Do(SideEffect::Event(event)) => {
                    moved = true;
                    self.heard.push(event);
                }
                Next::Do(SideEffect::Close(reason)) => self.closed = Some(reason),
                Next::Wait(_) => {}
            }
            self.agent.drain();
            for frame in self.agent.sent() {
                moved = true;
                self.client
                    .handle_input(Instant::ZERO, PeerInput::Received(frame.as_bytes()));
                self.client
                    .handle_input(Instant::ZERO, PeerInput::Received(b"\n"));
            }
            if !moved {
                return;
            }
        }
        panic!("they never come to rest");
    }

    fn open(&mut self, id: &str) {
        self.client
            .request::<methods::NewSession>(&NewSessionRequest::new("/w"));
        self.drive();
        let Some(AgentEvent::NewSession { asked, .. }) = self.agent.events.pop() else {
            panic!()
        };
        self.agent.side.open(asked, NewSessionResponse::new(id));
        self.drive();
        assert!(matches!(
            self.heard.pop(),
            Some(ClientEvent::Answered {
                answer: AgentAnswer::NewSession(Ok(_)),
                ..
            })
        ));
    }

    fn prompt(&mut self, id: &str) -> TurnKey {
        let blocks = vec![ContentBlock::text("hi")];
        self.client
            .request::<methods::Prompt>(&PromptRequest::new(id, blocks));
        self.drive();
        match self.agent.events.pop() {
            Some(AgentEvent::Prompt { turn, .. }) => turn,
            other => panic!("{other:?}"),
        }
    }

    fn faults(&self) -> usize {
        self.heard
            .iter()
            .filter(|event| matches!(event, ClientEvent::Misbehaved(_)))
            .count()
    }
}

fn announce(id: &str) -> SessionUpdate {
    SessionUpdate::ToolCall(ToolCall::new(id, "t"))
}

fn card(id: &str) -> RequestPermissionRequest {
    RequestPermissionRequest::new(
        "s",
        ToolCallUpdate::new(id),
        vec![PermissionOption::new(
            "yes",
            "Allow",
            PermissionOptionKind::AllowOnce,
        )],
    )
}

#[test]
fn a_whole_turn_passes_without_a_fault() {
    let mut pair = Pair::new(ClientCapabilities::default());
    pair.open("s");
    let turn = pair.prompt("s");
    let mut handle = pair.agent.side.turn(turn).unwrap();
    handle
        .text(TextKind::Message, "x\u{2028}y", Some("m"))
        .unwrap();
    handle.update(&announce("c")).unwrap();
    let ask = pair
        .agent
        .side
        .ask::<methods::RequestPermission>(&card("c"))
        .unwrap();
    pair.drive();
    let Some(ClientEvent::RequestPermission { asked, request }) = pair.heard.pop() else {
        panic!()
    };
    assert_eq!(request, card("c"));
    let yes = SelectedPermissionOutcome::new("yes");
    let yes = RequestPermissionResponse::new(RequestPermissionOutcome::Selected(yes));
    pair.client.answer(asked, Ok(yes.clone()));
    pair.drive();
    let answer = ClientAnswer::RequestPermission(Ok(yes));
    assert_eq!(pair.agent.events, [AgentEvent::Settled { ask, answer }]);
    pair.agent.finish(turn, StopReason::EndTurn);
    pair.drive();
    assert_eq!(pair.faults(), 0, "{:?}", pair.heard);
    assert!(matches!(
        pair.heard.last(),
        Some(ClientEvent::Answered {
            answer: AgentAnswer::Prompt(Ok(_)),
            ..
        })
    ));
    let texts: Vec<_> = pair
        .heard
        .iter()
        .filter_map(|event| match event {
            ClientEvent::Update(note) => match &note.update {
                SessionUpdate::AgentMessageChunk(chunk) => chunk.content.as_text(),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["x\u{2028}y"]);
}

#[test]
fn a_client_that_cancels_answers_its_open_cards_as_cancelled() {
    let mut pair = Pair::new(ClientCapabilities::default());
    pair.open("s");
    let turn = pair.prompt("s");
    pair.agent
        .side
        .turn(turn)
        .unwrap()
        .update(&announce("c"))
        .unwrap();
    pair.agent
        .side
        .ask::<methods::RequestPermission>(&card("c"))
        .unwrap();
    pair.drive();
    let Some(ClientEvent::RequestPermission { asked, .. }) = pair.heard.pop() else {
        panic!()
    };
    pair.client.notify_cancel(&"s".into());
    pair.drive();
    assert!(
        pair.heard
            .contains(&ClientEvent::CancelRequest { key: asked.key() })
    );
    let cancelled = RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled);
    assert!(matches!(
        &pair.agent.events[..],
        [
            AgentEvent::Cancel { .. },
            AgentEvent::Settled {
                answer: ClientAnswer::RequestPermission(Ok(outcome)),
                ..
            }
        ] if *outcome == cancelled
    ));
    // The embedder's own answer comes too late and leaves no trace.
    pair.client.answer(asked, Ok(cancelled));
    assert!(!pair.client.has_frame());
}

#[test]
fn a_client_tells_what_breaks_a_rule() {
    let update = |kind: &str| {
        notification(
            "session/update",
            &format!(r#"{{"sessionId":"s","update":{{{kind}}}}}"#),
        )
    };
    let text = r#""sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}"#;
    let call = r#""sessionUpdate":"tool_call","toolCallId":"c","title":"t""#;
    let done = r#""sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed""#;
    let late = r#""sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress""#;
    for (in_turn, frames, faults) in [
        (true, vec![update(text)], 0),
        (false, vec![update(text)], 1),
        (true, vec![update(call), update(done)], 0),
        (true, vec![update(call), update(call)], 1),
        (true, vec![update(done)], 1),
        (true, vec![update(call), update(done), update(late)], 1),
        (
            true,
            vec![update(
                r#""sessionUpdate":"notice","severity":"info","title":"n""#,
            )],
            1,
        ),
        (true, vec![update(r#""sessionUpdate":"zzz""#)], 1),
        (
            false,
            vec![update(r#""sessionUpdate":"plan","entries":[]"#)],
            0,
        ),
        (
            false,
            vec![notification(
                "session/update",
                r#"{"sessionId":"t","update":{"sessionUpdate":"plan","entries":[]}}"#,
            )],
            1,
        ),
        (
            false,
            vec![request(
                1,
                "fs/read_text_file",
                r#"{"sessionId":"s","path":"/f"}"#,
            )],
            1,
        ),
        (
            false,
            vec![r#"{"jsonrpc":"2.0","id":77,"result":{}}"#.to_string()],
            1,
        ),
        (false, vec!["nonsense".to_string()], 1),
    ] {
        let mut pair = Pair::new(ClientCapabilities::default());
        pair.open("s");
        if in_turn {
            pair.prompt("s");
        }
        for frame in &frames {
            let line = format!("{frame}\n");
            pair.client
                .handle_input(Instant::ZERO, PeerInput::Received(line.as_bytes()));
        }
        // What the client answers would only confuse the agent.
        loop {
            match pair.client.poll_effect() {
                Next::Do(SideEffect::Event(event)) => pair.heard.push(event),
                Next::Do(SideEffect::Transmit(_) | SideEffect::Close(_)) => {}
                Next::Wait(_) => break,
            }
        }
        assert_eq!(pair.faults(), faults, "{frames:?}: {:?}", pair.heard);
    }
}

#[test]
fn a_client_whose_agent_ends_hears_of_every_request() {
    let mut pair = Pair::new(ClientCapabilities::default());
    pair.open("s");
    pair.prompt("s");
    let list = pair
        .client
        .request::<methods::ListSessions>(&ListSessionsRequest::default());
    pair.drive();
    pair.client
        .handle_input(Instant::ZERO, PeerInput::PeerFinished);
    pair.drive();
    assert_eq!(pair.closed, Some(CloseReason::Finished));
    let settled = |ask| {
        let is = |event: &&ClientEvent| matches!(event, ClientEvent::Answered { ask: a, answer } if *a == ask && answer.error().is_some());
        pair.heard.iter().filter(is).count()
    };
    assert_eq!(settled(list), 1);
}

#[test]
fn both_close_when_the_client_is_done() {
    let mut pair = Pair::new(ClientCapabilities::default());
    pair.open("s");
    pair.client.close();
    pair.drive();
    assert_eq!(pair.closed, Some(CloseReason::Finished));
    pair.agent.input(PeerInput::PeerFinished);
    assert_eq!(pair.agent.closed, Some(CloseReason::Finished));
}

/// A client that takes forms.
fn with_forms() -> ClientCapabilities {
    serde_json::from_str(r#"{"elicitation":{"form":{}}}"#).unwrap()
}

fn form(scope: ElicitationScope) -> CreateElicitationRequest {
    let requested_schema = Json::from_text(r#"{"type":"object","properties":{}}"#).unwrap();
    CreateElicitationRequest::new(scope, "m", ElicitationMode::Form { requested_schema })
}

#[test]
fn a_question_before_there_is_a_session_is_for_its_request() {
    use crate::error::CommandError::Gone;
    let mut pair = Pair::new(with_forms());
    let authenticate = AuthenticateRequest::new("setup");
    let ours = pair.client.request::<methods::Authenticate>(&authenticate);
    pair.drive();
    let Some(AgentEvent::Authenticate { asked, .. }) = pair.agent.events.pop() else {
        panic!()
    };
    let key = asked.key();
    let scope = pair.agent.side.scope_of(key).expect("it waits");
    let question = form(scope);
    let ask = pair.agent.side.ask::<methods::CreateElicitation>(&question);
    let ask = ask.expect("forms are taken");
    pair.drive();
    let Some(ClientEvent::CreateElicitation {
        asked: card,
        request,
    }) = pair.heard.pop()
    else {
        panic!("{:?}", pair.heard)
    };
    assert_eq!(request, question);
    let yes = CreateElicitationResponse::new(ElicitationAction::Accept { content: None });
    pair.client.answer(card, Ok(yes.clone()));
    pair.drive();
    let answer = ClientAnswer::CreateElicitation(Ok(yes));
    assert_eq!(pair.agent.events, [AgentEvent::Settled { ask, answer }]);
    pair.agent.events.clear();
    let done = Ok(AuthenticateResponse::default());
    pair.agent.side.answer(asked, done);
    pair.drive();
    let answered = pair.heard.pop();
    assert!(
        matches!(answered, Some(ClientEvent::Answered { ask, .. }) if ask == ours),
        "{answered:?}"
    );
    // Nothing is for a request that is answered.
    assert_eq!(pair.agent.side.scope_of(key), None);
    let late = pair.agent.side.ask::<methods::CreateElicitation>(&question);
    assert_eq!(late, Err(Gone(())));
    assert_eq!(pair.faults(), 0, "{:?}", pair.heard);

    // A client sees that a question is for nothing that it asked.
    for id in ["99", "\"1\"", "null"] {
        let frame = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":70,\"method\":\"elicitation/create\",\"params\":{{\"requestId\":{id},\
             \"message\":\"m\",\"mode\":\"form\",\"requestedSchema\":{{}}}}}}\n"
        );
        let mut pair = Pair::new(with_forms());
        let line = PeerInput::Received(frame.as_bytes());
        pair.client.handle_input(Instant::ZERO, line);
        pair.drive();
        assert_eq!(pair.faults(), 1, "{id}: {:?}", pair.heard);
    }
}

#[test]
fn a_question_that_is_open_when_its_request_is_answered_is_withdrawn_first() {
    for id in [
        "7",
        "\"7\"",
        "\"\\u0061\"",
        "123456789012345678901234567890",
    ] {
        let mut agent = Agent::ready_for(r#"{"elicitation":{"form":{}}}"#);
        agent.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"authenticate","params":{{"methodId":"x"}}}}"#
        ));
        let Some(AgentEvent::Authenticate { asked, .. }) = agent.events.pop() else {
            panic!()
        };
        let scope = agent.side.scope_of(asked.key()).expect("it waits");
        let ask = agent.side.ask::<methods::CreateElicitation>(&form(scope));
        let ask = ask.expect("forms are taken");
        agent.drain();
        let asks = format!(r#""params":{{"requestId":{id},"message":"m""#);
        let sent = agent.sent();
        assert!(sent.len() == 1 && sent[0].contains(&asks), "{sent:?}");
        // The client takes its request back: it is the embedder that answers it.
        agent.send(&notification(
            "$/cancel_request",
            &format!(r#"{{"requestId":{id}}}"#),
        ));
        let taken = AgentEvent::CancelRequest { key: asked.key() };
        assert_eq!(agent.events, [taken]);
        agent.events.clear();
        agent.side.answer(asked, Err(RpcError::cancelled()));
        agent.drain();
        let sent = agent.sent();
        let withdrawn = format!(r#""method":"$/cancel_request","params":{{"requestId":{ask}}}"#);
        assert!(sent[0].contains(&withdrawn), "{sent:?}");
        assert!(
            sent[1].contains(&format!(r#""id":{id},"error":{{"code":-32800"#)),
            "{sent:?}"
        );
        let answer = ClientAnswer::CreateElicitation(Err(RpcError::cancelled()));
        assert_eq!(agent.events, [AgentEvent::Settled { ask, answer }]);
        agent.events.clear();
        agent.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{ask},"result":{{"action":"accept"}}}}"#
        ));
        assert_eq!((agent.events.len(), agent.sent().len()), (0, 0));
    }
}
