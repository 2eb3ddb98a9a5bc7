//! A host of its own around the agent, without a runtime: a world in memory, a tool of the host's, a
//! script for a model and a client beside it. `cargo run -p reasonix-core --example host`

#![expect(clippy::wildcard_enum_match_arm, reason = "a host does what it can do")]

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reasonix_core::agent::{Agent, Config, Effect, Input, WallClock};
use reasonix_core::call::{Call, FileKind, Outcome, Resolved};
use reasonix_core::error::{IoFault, IoKind};
use reasonix_core::ids::CallId;
use reasonix_core::model::Script;
use reasonix_core::protocol::methods::{Initialize, NewSession, Prompt};
use reasonix_core::protocol::schema::{
    ContentBlock, InitializeRequest, NewSessionRequest, PromptRequest, ProtocolVersion,
    RequestPermissionOutcome, RequestPermissionResponse, SelectedPermissionOutcome,
};
use reasonix_core::protocol::{AgentAnswer, ClientEvent, ClientSide, PeerInput, SideEffect};
use reasonix_core::settings::{Host, Sandboxing};
use reasonix_core::time::{Deadline, Instant};
use reasonix_core::tools::External;
use reasonix_core::{Machine, Next, Source};

const SCRIPT: &str = r#"{"text":"I look. "}
{"tool":"lookup","args":{"of":"tides"}}
{"finish":"tool_calls"}
{"text":"Done."}"#;

fn main() {
    let host = Host {
        os: "memory".into(),
        shell: "none".into(),
        user_home: None,
        home: None, // nothing is stored
        tmp: "/tmp".into(),
        sandbox: Sandboxing::None,
    };
    // A host takes 32 bytes from its system's source of randomness, for every agent anew.
    let mut config = Config::new([0; 32], host);
    config.script = Script::parse(SCRIPT).ok();
    let schema = r#"{"type":"object","properties":{"of":{"type":"string"}}}"#;
    config.tools = External::new("lookup", "Looks it up.", schema)
        .into_iter()
        .collect();

    let mut client = ClientSide::new(config.limits.clone());
    client.request::<Initialize>(&InitializeRequest::new(ProtocolVersion::V1));
    let mut agent = Agent::new(config);
    let start = std::time::Instant::now();
    let unix = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let unix_ms = i64::try_from(unix.as_millis()).unwrap_or(i64::MAX);
    agent.handle_input(Instant::ZERO, Input::Wall(WallClock { unix_ms }));

    let (mut to_client, mut to_agent) = (Vec::new(), VecDeque::new());
    let (mut calls, mut finished) = (BTreeMap::new(), false);
    loop {
        let now = Instant::since_start(start.elapsed());
        let Some(deadline) = drain(&mut agent, now, &mut calls, &mut to_client) else {
            return;
        };
        // A client in memory takes all there is. One at a socket may leave some: that is what is said.
        client.handle_input(now, PeerInput::Received(&to_client));
        let sent = !std::mem::take(&mut to_client).is_empty();
        agent.handle_input(now, Input::Unsent(0));
        let (waits, over) = talk(&mut client, &mut to_agent);
        if over && !std::mem::replace(&mut finished, over) {
            agent.handle_input(now, Input::PeerFinished);
        }
        client.handle_input(now, PeerInput::Unsent(to_agent.len()));

        let room = agent.room(Source::Peer).min(to_agent.len());
        let bytes: Vec<u8> = to_agent.drain(..room).collect();
        if !bytes.is_empty() {
            agent.handle_input(now, Input::Received(&bytes));
        } else if let Some((id, call)) = calls.pop_first() {
            let news = carry_out(call).into();
            agent.handle_input(now, Input::Call { id, news });
        } else if !sent {
            let at = Deadline::earlier(deadline, waits).map(|deadline| deadline.at);
            std::thread::sleep(at.map_or(Duration::from_secs(1), |at| at.since(now)));
            let now = Instant::since_start(start.elapsed());
            agent.handle_timeout(now);
            client.handle_timeout(now);
        }
    }
}

/// Does all that the agent wants done: when it next wants to be woken, or none at its end.
fn drain(
    agent: &mut Agent,
    now: Instant,
    calls: &mut BTreeMap<CallId, Call>,
    to_client: &mut Vec<u8>,
) -> Option<Option<Deadline>> {
    loop {
        let aborted = match agent.poll_effect() {
            Next::Do(Effect::Transmit(frame)) => {
                to_client.extend_from_slice(frame);
                None
            }
            Next::Do(Effect::Start { id, call }) => calls.insert(id, call).map(|_| id),
            // One that is over is not there any more, and there are no news of it.
            Next::Do(Effect::Abort { id }) => calls.remove(&id).map(|_| id),
            Next::Do(Effect::Feed { .. } | Effect::FeedEnd { .. }) => None, // no processes here
            Next::Do(Effect::Report(report)) => {
                eprintln!("[{:?}: {}]", report.level, report.text);
                None
            }
            Next::Do(Effect::Close(_)) => return None,
            Next::Wait(deadline) => return Some(deadline),
        };
        if let Some(id) = aborted {
            let news = Err(IoFault::new(IoKind::Aborted, "aborted")).into();
            agent.handle_input(now, Input::Call { id, news });
        }
    }
}

/// The world: one folder with nothing in it, and a tool.
fn carry_out(call: Call) -> Result<Outcome, IoFault> {
    match call {
        Call::Resolve { path } => Ok(Outcome::Resolved(Resolved {
            kind: if path == "/" {
                FileKind::Directory
            } else {
                FileKind::Missing
            },
            real: path,
            link: false,
            owned: true,
            links: 1,
            size: 0,
        })),
        Call::Read { .. } | Call::List { .. } => Err(IoFault::new(IoKind::NotFound, "not there")),
        Call::Custom(call) => Ok(Outcome::Custom(Ok(format!(
            "{} knows: {}",
            call.name, call.arguments
        )))),
        _ => Err(IoFault::new(IoKind::Unsupported, "not in this world")),
    }
}

/// The client: prompts once, agrees to everything and shows what is said. When it wants to be woken,
/// and whether it has ended.
fn talk(client: &mut ClientSide, to_agent: &mut VecDeque<u8>) -> (Option<Deadline>, bool) {
    let mut over = false;
    loop {
        match client.poll_effect() {
            Next::Do(SideEffect::Transmit(frame)) => to_agent.extend(frame),
            Next::Do(SideEffect::Event(event)) => match event {
                ClientEvent::Answered {
                    answer: AgentAnswer::Initialize(Ok(_)),
                    ..
                } => {
                    client.request::<NewSession>(&NewSessionRequest::new("/"));
                }
                ClientEvent::Answered {
                    answer: AgentAnswer::NewSession(Ok(new)),
                    ..
                } => {
                    let prompt = vec![ContentBlock::text("What of the tides?")];
                    client.request::<Prompt>(&PromptRequest::new(new.session_id, prompt));
                }
                ClientEvent::Answered { answer, .. } => {
                    println!("{answer:?}");
                    client.close();
                }
                ClientEvent::RequestPermission { asked, request } => {
                    let option = request.options[0].option_id.clone();
                    let chosen = SelectedPermissionOutcome::new(option);
                    let outcome = RequestPermissionOutcome::Selected(chosen);
                    client.answer(asked, Ok(RequestPermissionResponse::new(outcome)));
                }
                ClientEvent::Update(note) => println!("{:?}", note.update),
                _ => {}
            },
            Next::Do(SideEffect::Close(_)) => over = true,
            Next::Wait(deadline) => return (deadline, over),
        }
    }
}
