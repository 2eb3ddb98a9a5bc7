//! Any client and any embedder, in any order: what holds whatever they do.

use alloc::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    /// A request with a new id.
    Request(Asks, u8),
    Cancel(u8),
    CancelRequest(u8),
    Garbage,
    /// An id that was used before.
    Again(u8),
    /// The embedder answers what it was told longest ago.
    Answer(bool),
    Say(u8),
    Announce(u8),
    Finish(u8, bool),
    Notify(u8),
    Card(u8),
    Withdraw(u8),
    Choose(u8),
    Unsent(u32),
    Later(u8),
    PeerFinished,
    PeerGone,
    Close,
}

#[derive(Clone, Copy, Debug)]
enum Asks {
    New,
    Load,
    Resume,
    Prompt,
    Close,
    Delete,
    SetMode,
    List,
    Vendor,
    Unknown,
    Bad,
}

fn op() -> impl Strategy<Value = Op> {
    use Asks::*;
    let asks = prop_oneof![
        3 => Just(New), 2 => Just(Load), 1 => Just(Resume), 6 => Just(Prompt), 1 => Just(Close),
        1 => Just(Delete), 1 => Just(SetMode), 1 => Just(List), 1 => Just(Vendor),
        1 => Just(Unknown), 1 => Just(Bad),
    ];
    let small = || 0..4u8;
    prop_oneof![
        12 => (asks, small()).prop_map(|(asks, at)| Op::Request(asks, at)),
        2 => small().prop_map(Op::Cancel),
        2 => (0..40u8).prop_map(Op::CancelRequest),
        1 => Just(Op::Garbage),
        1 => (0..40u8).prop_map(Op::Again),
        8 => proptest::bool::weighted(0.8).prop_map(Op::Answer),
        6 => small().prop_map(Op::Say),
        2 => small().prop_map(Op::Announce),
        3 => (small(), any::<bool>()).prop_map(|(at, good)| Op::Finish(at, good)),
        1 => small().prop_map(Op::Notify),
        2 => small().prop_map(Op::Card),
        1 => small().prop_map(Op::Withdraw),
        2 => small().prop_map(Op::Choose),
        4 => (0..2_000_000u32).prop_map(Op::Unsent),
        1 => (0..3u8).prop_map(Op::Later),
        // Seldom, since all is over then.
        1 => proptest::bool::weighted(0.1).prop_map(|yes| if yes { Op::PeerFinished } else { Op::Garbage }),
        1 => proptest::bool::weighted(0.1).prop_map(|yes| if yes { Op::PeerGone } else { Op::Garbage }),
        1 => proptest::bool::weighted(0.05).prop_map(|yes| if yes { Op::Close } else { Op::Garbage }),
    ]
}

struct Run {
    agent: Agent,
    next: u64,
    /// Requests that were sent while the side took input.
    sent: Vec<u64>,
    turns: Vec<TurnKey>,
    /// The prompt of each turn.
    prompts: BTreeMap<TurnKey, u64>,
    sessions: Vec<SessionKey>,
    asks: Vec<crate::ids::AskId>,
    settled: Vec<crate::ids::AskId>,
    withdrawn: Vec<crate::ids::AskId>,
    cancelled: Vec<TurnKey>,
    finished: bool,
    gone: bool,
}

impl Run {
    fn new() -> Self {
        let mut agent = Agent::ready();
        agent.reads = false;
        Self {
            agent,
            next: 1,
            sent: Vec::new(),
            turns: Vec::new(),
            prompts: BTreeMap::new(),
            sessions: Vec::new(),
            asks: Vec::new(),
            settled: Vec::new(),
            withdrawn: Vec::new(),
            cancelled: Vec::new(),
            finished: false,
            gone: false,
        }
    }

    fn step(&mut self, op: &Op) {
        let name = |at: u8| format!("s{at}");
        match op {
            Op::Request(asks, at) => self.request(*asks, *at),
            Op::Cancel(at) => self.agent.send(&cancel(&name(*at))),
            Op::CancelRequest(id) => {
                let params = format!(r#"{{"requestId":{id}}}"#);
                self.agent.send(&notification("$/cancel_request", &params));
            }
            Op::Garbage => self.agent.send(r#"{"jsonrpc":"2.0","#),
            Op::Again(id) => {
                if !self.finished {
                    self.sent.push(u64::from(*id));
                }
                self.agent.send(&request(u64::from(*id), "no/such", "{}"));
            }
            Op::Answer(good) => self.answer(*good),
            Op::Say(at) => {
                if let Some(turn) = self.pick(*at)
                    && let Some(mut handle) = self.agent.side.turn(turn)
                {
                    let text = format!("prompt {}", self.prompts[&turn]) + &"x".repeat(5000);
                    let _ = handle.text(TextKind::Message, &text, None);
                }
            }
            Op::Announce(at) => {
                if let Some(turn) = self.pick(*at)
                    && let Some(mut handle) = self.agent.side.turn(turn)
                {
                    let call = ToolCall::new(format!("c{}", self.next), "t");
                    let _ = handle.update(&SessionUpdate::ToolCall(call));
                }
            }
            Op::Finish(at, good) => {
                if let Some(turn) = self.pick(*at)
                    && let Some(handle) = self.agent.side.turn(turn)
                {
                    match good {
                        true => handle.finish(PromptResponse::new(StopReason::EndTurn)),
                        false => handle.fail(RpcError::internal("x")),
                    }
                    self.turns.retain(|other| *other != turn);
                }
            }
            Op::Notify(at) => {
                let key = self.sessions.get(usize::from(*at)).copied();
                if let Some(mut session) = key.and_then(|key| self.agent.side.session(key)) {
                    session.notify(&SessionUpdate::Plan(Plan::new(Vec::new())));
                }
            }
            Op::Card(at) => {
                let option = PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce);
                let call = ToolCallUpdate::new("c");
                let card = RequestPermissionRequest::new(name(*at), call, vec![option]);
                if let Ok(ask) = self.agent.side.ask::<methods::RequestPermission>(&card) {
                    self.asks.push(ask);
                }
            }
            Op::Withdraw(at) => {
                if let Some(ask) = self.asks.get(usize::from(*at)).copied() {
                    self.agent.side.withdraw(ask);
                    self.withdrawn.push(ask);
                }
            }
            Op::Choose(id) => self.agent.send(&r(
                u64::from(*id),
                r#"{"outcome":{"outcome":"selected","optionId":"yes"}}"#,
            )),
            Op::Unsent(bytes) => self.agent.input(PeerInput::Unsent(*bytes as usize)),
            Op::Later(seconds) => self.agent.later(u64::from(*seconds)),
            Op::PeerFinished => {
                self.finished = true;
                self.agent.input(PeerInput::PeerFinished);
            }
            Op::PeerGone => {
                self.gone |= self.agent.closed.is_none();
                self.finished = true;
                self.agent.input(PeerInput::PeerGone);
            }
            Op::Close => {
                self.finished = true;
                self.agent.side.close();
            }
        }
        self.agent.drain();
        self.take_events();
    }

    fn request(&mut self, asks: Asks, at: u8) {
        let id = self.next;
        self.next += 1;
        if !self.finished {
            self.sent.push(id);
        }
        let session = format!(r#""sessionId":"s{at}""#);
        let setup = r#""cwd":"/w","mcpServers":[]"#;
        self.agent.send(&match asks {
            Asks::New => new_session(id),
            Asks::Load => request(id, "session/load", &format!("{{{session},{setup}}}")),
            Asks::Resume => request(id, "session/resume", &format!("{{{session},{setup}}}")),
            Asks::Prompt => {
                let text = format!(r#"{{{session},"prompt":[{{"type":"text","text":"{id}"}}]}}"#);
                request(id, "session/prompt", &text)
            }
            Asks::Close => request(id, "session/close", &format!("{{{session}}}")),
            Asks::Delete => request(id, "session/delete", &format!("{{{session}}}")),
            Asks::SetMode => request(
                id,
                "session/set_mode",
                &format!(r#"{{{session},"modeId":"m"}}"#),
            ),
            Asks::List => request(id, "session/list", "{}"),
            Asks::Vendor => request(id, "_x", &format!("{{{session}}}")),
            Asks::Unknown => request(id, "no/such", "{}"),
            Asks::Bad => request(id, "session/prompt", "[]"),
        });
    }

    fn pick(&self, at: u8) -> Option<TurnKey> {
        self.turns
            .get(usize::from(at) % self.turns.len().max(1))
            .copied()
    }

    fn take_events(&mut self) {
        let mut kept = Vec::new();
        for event in self.agent.events.drain(..) {
            match event {
                AgentEvent::Prompt { turn, request, .. } => {
                    self.turns.push(turn);
                    let id = request.prompt[0].as_text().unwrap();
                    self.prompts.insert(turn, id.parse().unwrap());
                }
                AgentEvent::Cancel { turn } => self.cancelled.push(turn),
                AgentEvent::Settled { ask, .. } => self.settled.push(ask),
                other => kept.push(other),
            }
        }
        self.agent.events = kept;
    }

    fn answer(&mut self, good: bool) {
        let asked = |event: &AgentEvent| {
            !matches!(
                event,
                AgentEvent::Misbehaved(_)
                    | AgentEvent::Ready { .. }
                    | AgentEvent::PeerFinished
                    | AgentEvent::PeerGone
                    | AgentEvent::CancelRequest { .. }
            )
        };
        let Some(at) = self.agent.events.iter().position(asked) else {
            return;
        };
        let side = &mut self.agent.side;
        let no = || RpcError::internal("no");
        match self.agent.events.remove(at) {
            AgentEvent::NewSession { asked, .. } if good => {
                // Names of its own and names that a load may use as well.
                let id = (0..4)
                    .map(|at| format!("s{at}"))
                    .find(|id| side.find_session(&id.as_str().into()).is_none());
                let id = id.unwrap_or_else(|| format!("n{}", self.sessions.len()));
                self.sessions
                    .extend(side.open(asked, NewSessionResponse::new(id)));
            }
            AgentEvent::NewSession { asked, .. } => side.answer(asked, Err(no())),
            AgentEvent::LoadSession { asked, .. } => {
                let text = ContentChunk::new(ContentBlock::text("old"));
                if let Some(mut replay) = side.replay(&asked) {
                    let _ = replay.update(&SessionUpdate::UserMessageChunk(text));
                }
                side.answer(asked, good.then(Default::default).ok_or_else(no));
            }
            AgentEvent::ResumeSession { asked, .. } => {
                side.answer(asked, good.then(Default::default).ok_or_else(no));
            }
            AgentEvent::CloseSession { asked, .. } => {
                side.answer(asked, good.then(Default::default).ok_or_else(no));
            }
            AgentEvent::DeleteSession { asked, .. } => {
                side.answer(asked, good.then(Default::default).ok_or_else(no));
            }
            AgentEvent::SetMode { asked, .. } => {
                side.answer(asked, good.then(Default::default).ok_or_else(no));
            }
            AgentEvent::ListSessions { asked, .. } => {
                side.answer(asked, Ok(ListSessionsResponse::new(Vec::new())));
            }
            AgentEvent::VendorRequest { asked, .. } => side.answer(asked, Err(no())),
            other => panic!("{other:?}"),
        }
    }

    /// The end: whatever is open comes to rest by itself.
    fn end(&mut self) {
        self.step(&Op::PeerFinished);
        self.step(&Op::Later(100));
        self.step(&Op::Say(0));
        assert!(self.agent.closed.is_some());
    }

    fn check(&self) {
        let mut answers: BTreeMap<u64, usize> = BTreeMap::new();
        for frame in &self.agent.frames {
            if let Some(rest) = frame.strip_prefix(r#"{"jsonrpc":"2.0","id":"#)
                && !rest.contains(r#""method":"#)
                && let Ok(id) = rest[..rest.find(',').unwrap()].parse()
            {
                *answers.entry(id).or_default() += 1;
            }
        }
        let lost = self.agent.closed != Some(CloseReason::Finished);
        for id in &self.sent {
            let count = answers.get(id).copied().unwrap_or(0);
            // An id that was used again is answered again.
            assert!(
                count > 0 || lost || self.gone,
                "request {id} was never answered"
            );
        }
        let mut seen = self.cancelled.clone();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), self.cancelled.len(), "a turn is cancelled once");
        for ask in &self.asks {
            let count = self
                .settled
                .iter()
                .filter(|settled| *settled == ask)
                .count();
            let withdrawn = usize::from(self.withdrawn.contains(ask));
            assert!(
                count <= 1 && count + withdrawn >= 1,
                "{ask:?} is settled {count} times"
            );
        }
        for id in self.prompts.values() {
            let says = format!(r#""text":"prompt {id}x"#);
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason""#);
            let last = self
                .agent
                .frames
                .iter()
                .rposition(|frame| frame.contains(&says));
            let end = self
                .agent
                .frames
                .iter()
                .rposition(|frame| frame.starts_with(&answer));
            if let (Some(last), Some(end)) = (last, end) {
                assert!(last < end, "text of prompt {id} after its answer");
            }
        }
    }
}

// A seed is worth nothing once the steps change: what it shows becomes a test with a name.
proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_request_is_answered_and_every_ask_settled_once(ops in prop::collection::vec(op(), 0..120)) {
        let mut run = Run::new();
        for op in &ops {
            run.step(op);
        }
        run.end();
        run.check();
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut agent = Agent::ready();
        agent.feed(&bytes);
        agent.input(PeerInput::PeerFinished);
        agent.later(10);
        prop_assert!(agent.closed.is_some());
    }
}
