//! The whole agent, fed by hand: bytes of a client, news of calls, time.

mod beyond;
mod crowded;
mod embedded;
mod inbox;
mod reopened;
mod servers;
mod standing;
mod stored;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::*;
use crate::call::{FileKind, Outcome, Resolved, Stream};
use crate::error::{IoFault, IoKind};
use crate::limits::Limits;
use crate::model::Script;
use crate::settings::{Host, Model, Provider};
use crate::time::Duration;

/// An agent, its client and its calls.
struct World {
    agent: Agent,
    now: Instant,
    /// Every line it sent that was not looked at yet.
    lines: Vec<String>,
    open: BTreeMap<CallId, Call>,
    aborted: Vec<CallId>,
    /// What was fed to processes and nobody read.
    fed: Vec<(CallId, Vec<u8>)>,
    closed: Option<CloseReason>,
    deadline: Option<Deadline>,
    /// Calls of this kind are not answered.
    held: fn(&Call) -> bool,
    /// The client takes nothing.
    deaf: bool,
    unsent: usize,
    /// Where sessions are stored; none: nowhere.
    disk: Option<stored::Disk>,
}

const SESSION: &str = "f4009278-57aa-4641-94f5-61baacb37970";
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

impl World {
    fn new(script: &str) -> Self {
        let mut config = config();
        config.script = Some(Script::parse(script).expect("the script is good"));
        Self::of(config)
    }

    fn of(config: Config) -> Self {
        let mut world = Self {
            agent: Agent::new(config),
            now: Instant::ZERO,
            lines: Vec::new(),
            open: BTreeMap::new(),
            aborted: Vec::new(),
            fed: Vec::new(),
            closed: None,
            deadline: None,
            held: |_| false,
            deaf: false,
            unsent: 0,
            disk: None,
        };
        world.request(0, "initialize", "{\"protocolVersion\":1}");
        world.lines.clear();
        world
    }

    /// A session, with the id that the seed gives the first one.
    fn session(mut self) -> Self {
        self.open_session(100);
        assert!(self.lines[0].contains(SESSION), "{:?}", self.lines);
        self.lines.clear();
        self
    }

    fn open_session(&mut self, id: u32) {
        self.request(id, "session/new", "{\"cwd\":\"/w\",\"mcpServers\":[]}");
    }

    fn request(&mut self, id: u32, method: &str, params: &str) {
        self.say(&format!(
            "\"id\":{id},\"method\":\"{method}\",\"params\":{params}"
        ));
    }

    fn say(&mut self, rest: &str) {
        let line = format!("{{\"jsonrpc\":\"2.0\",{rest}}}\n");
        self.input(Input::Received(line.as_bytes()));
    }

    fn prompt(&mut self, blocks: &str) {
        let params = format!("{{\"sessionId\":\"{SESSION}\",\"prompt\":[{blocks}]}}");
        self.request(1, "session/prompt", &params);
    }

    fn go(&mut self) {
        self.prompt("{\"type\":\"text\",\"text\":\"go\"}");
    }

    fn cancel(&mut self) {
        let params = format!("{{\"sessionId\":\"{SESSION}\"}}");
        self.say(&format!(
            "\"method\":\"session/cancel\",\"params\":{params}"
        ));
    }

    fn input(&mut self, input: Input<'_>) {
        self.agent.handle_input(self.now, input);
        self.drive();
    }

    fn drive(&mut self) {
        for _ in 0..10_000 {
            match self.agent.poll_effect() {
                Next::Do(Effect::Transmit(frame)) => {
                    self.unsent += frame.len();
                    let line = core::str::from_utf8(frame).expect("frames are UTF-8");
                    self.lines.push(line.trim_end().into());
                }
                Next::Do(Effect::Start { id, call }) => {
                    self.open.insert(id, call);
                }
                Next::Do(Effect::Abort { id }) => self.aborted.push(id),
                Next::Do(Effect::Close(reason)) => {
                    assert_eq!(self.closed.replace(reason), None, "once");
                }
                Next::Do(Effect::Feed { id, bytes }) => self.fed.push((id, bytes)),
                Next::Do(Effect::FeedEnd { .. } | Effect::Report(_)) => {}
                Next::Wait(deadline) => {
                    self.deadline = deadline;
                    if self.unsent > 0 && !self.deaf {
                        self.unsent = 0;
                        self.agent.handle_input(self.now, Input::Unsent(0));
                        continue;
                    }
                    let ready = self.open.iter().find(|(_, call)| !(self.held)(call));
                    let Some((id, call)) = ready.map(|(id, call)| (*id, call.clone())) else {
                        return;
                    };
                    self.answer(id, &call);
                }
            }
        }
        panic!("it never comes to rest");
    }

    fn answer(&mut self, id: CallId, call: &Call) {
        self.open.remove(&id);
        if let Some(disk) = &mut self.disk
            && let Some(result) = disk.answer(call)
        {
            let news = match result {
                Ok(outcome) => News::Done(outcome),
                Err(fault) => News::Failed(fault),
            };
            return self.agent.handle_input(self.now, Input::Call { id, news });
        }
        let news = match call {
            Call::Resolve { path } if path.ends_with("/.mcp.json") => {
                News::Done(Outcome::Resolved(Resolved {
                    real: path.clone(),
                    kind: FileKind::Missing,
                    link: false,
                    owned: true,
                    links: 0,
                    size: 0,
                }))
            }
            Call::Resolve { path } => News::Done(Outcome::Resolved(Resolved {
                real: path.clone(),
                kind: FileKind::Directory,
                link: false,
                owned: true,
                links: 1,
                size: 1,
            })),
            Call::Write(_) => News::Done(Outcome::Written),
            Call::Http(_)
            | Call::Process(_)
            | Call::Read { .. }
            | Call::Remove { .. }
            | Call::Rename { .. }
            | Call::List { .. }
            | Call::Search(_)
            | Call::ReadAt { .. }
            | Call::Append(_)
            | Call::Lock { .. }
            | Call::Unlock { .. }
            | Call::RemoveTree { .. }
            | Call::Reconfigure
            | Call::Custom(_) => News::Failed(IoFault::new(IoKind::NotFound, "not there")),
        };
        self.agent.handle_input(self.now, Input::Call { id, news });
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        self.agent.handle_timeout(self.now);
        self.drive();
    }

    /// Takes the next line with `part` in it, and all before it.
    #[track_caller]
    fn sees(&mut self, part: &str) -> String {
        let at = self.lines.iter().position(|line| line.contains(part));
        let Some(at) = at else {
            panic!("no `{part}` in {:#?}", self.lines)
        };
        self.lines.drain(..=at).next_back().unwrap_or_default()
    }

    #[track_caller]
    fn sees_only(&mut self, part: &str) {
        self.sees(part);
        assert_eq!(self.lines, Vec::<String>::new());
    }
}

fn config() -> Config {
    let host = Host {
        os: "linux".into(),
        shell: "sh".into(),
        user_home: None,
        home: None,
        tmp: "/tmp".into(),
        sandbox: Default::default(),
    };
    Config::new([7; 32], host)
}

const CANCELLED: &str = "\"id\":1,\"result\":{\"stopReason\":\"cancelled\"}";
const HANG: &str = "{\"text\":\"I\"}\n{\"hang\":true}\n";

#[test]
fn a_cancel_while_attachments_are_saved_ends_the_turn_and_late_news_do_nothing() {
    let mut world = World::new(HANG).session();
    world.held = |call| matches!(call, Call::Write(_));
    let image = format!("{{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"{PNG}\"}}");
    world.prompt(&format!("{{\"type\":\"text\",\"text\":\"look\"}},{image}"));
    assert_eq!(world.open.len(), 2);
    world.cancel();
    world.sees_only(CANCELLED);
    world.held = |_| false;
    world.drive();
    assert!(world.open.is_empty());
    assert_eq!(world.lines, Vec::<String>::new());
    world.go();
    // Nothing is remembered of the first, so it is not what the session is called by.
    let line = world.sees("session_info_update");
    assert!(line.contains("\"title\":\"go\""), "{line}");
    world.sees("agent_message_chunk");
}

#[test]
fn a_session_that_is_taken_back_while_it_opens_leaves_nothing() {
    let mut world = World::new(HANG);
    world.held = |call| matches!(call, Call::Resolve { .. });
    world.open_session(5);
    world.say("\"method\":\"$/cancel_request\",\"params\":{\"requestId\":5}");
    world.sees_only("\"id\":5,\"error\":{\"code\":-32800");
    world.held = |_| false;
    world.drive();
    assert!(world.agent.openings.is_empty() && world.agent.sessions.is_empty());
    assert!(world.agent.calls.is_empty());
}

#[test]
fn nothing_begins_after_the_client_is_gone() {
    let mut world = World::new(HANG);
    world.held = |_| true;
    world.open_session(5);
    let (id, call) = world.open.pop_first().expect("the folder is looked at");
    world.input(Input::PeerGone);
    assert_eq!(world.aborted, [id]);
    world.answer(id, &call);
    world.drive();
    assert!(world.open.is_empty(), "{:?}", world.open);
    assert_eq!(world.closed, Some(CloseReason::Gone));
}

#[test]
fn the_end_takes_one_grace_in_all() {
    let mut world = World::new(HANG);
    world.held = |_| true;
    world.open_session(5);
    world.input(Input::PeerFinished);
    assert_eq!(world.closed, None);
    world.pass(Limits::default().close_grace);
    world.sees_only("\"id\":5,\"error\":{\"code\":-32800");
    assert_eq!(world.closed, Some(CloseReason::Finished));
}

#[test]
fn the_end_of_the_input_ends_a_turn_whatever_it_waits_for() {
    let bash = "{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}\n{\"finish\":\"tool_calls\"}\n";
    let ask = "{\"tool\":\"ask\",\"args\":{\"question\":\"?\",\"options\":[\"x\"]}}\n";
    for script in [HANG, bash, ask, "{\"error\":{\"status\":500}}\n"] {
        for gone in [false, true] {
            let mut world = World::new(script).session();
            world.go();
            world.lines.clear();
            if gone {
                world.input(Input::PeerGone);
                assert_eq!(world.closed, Some(CloseReason::Gone), "{script}");
                assert_eq!(world.lines, Vec::<String>::new());
            } else {
                world.input(Input::PeerFinished);
                world.sees_only(CANCELLED);
                assert_eq!(world.closed, Some(CloseReason::Finished), "{script}");
            }
            assert!(world.agent.asks.is_empty() && world.agent.turns.is_empty());
        }
    }
}

#[test]
fn a_session_that_closes_ends_its_turn_first_whatever_it_waits_for() {
    let bash = "{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}\n{\"finish\":\"tool_calls\"}\n";
    for script in [HANG, bash, "{\"error\":{\"status\":500}}\n"] {
        let mut world = World::new(script).session();
        world.go();
        let params = format!("{{\"sessionId\":\"{SESSION}\"}}");
        world.request(2, "session/close", &params);
        world.sees(CANCELLED);
        world.sees_only("\"id\":2,\"result\":{}");
        let agent = &world.agent;
        assert!(agent.sessions.is_empty() && agent.turns.is_empty() && agent.asks.is_empty());
        assert!(agent.timers.is_empty() && agent.calls.is_empty());
        assert_eq!(agent.unread, 0);
    }
}

#[test]
fn a_cancelled_turn_ends_though_the_client_reads_slowly() {
    let load = "{\"repeat\":{\"chunks\":1000,\"size\":1000}}\n";
    let mut world = World::new(load).session();
    world.deaf = true;
    world.go();
    assert!(!world.lines.iter().any(|line| line.contains("\"id\":1")));
    let before = world.unsent;
    world.agent.handle_input(world.now, Input::Unsent(before));
    world.cancel();
    world.sees_only(CANCELLED);
}

#[test]
fn a_command_is_ended_at_its_limit_though_the_client_takes_nothing() {
    let bash = "{\"tool\":\"bash\",\"args\":{\"command\":\"x\",\"timeout_seconds\":5}}\n";
    let mut config = config();
    config.permission_mode = PermissionMode::parse("bypassPermissions").expect("a mode");
    config.script = Some(Script::parse(bash).expect("the script is good"));
    let mut world = World::of(config).session();
    world.held = |call| matches!(call, Call::Process(_));
    world.go();
    let id = *world.open.keys().next().expect("it runs");
    world.deaf = true;
    world.agent.handle_input(world.now, Input::Unsent(100_000));
    // Live output finds no room and waits.
    for _ in 0..3 {
        let news = News::Bytes {
            stream: Stream::Out,
            bytes: b"out\n",
        };
        world.input(Input::Call { id, news });
        world.now = world.now.plus(Duration::from_millis(200));
    }
    world.pass(Duration::from_secs(6));
    assert_eq!(world.aborted, [id]);
    let late = world
        .deadline
        .is_some_and(|deadline| deadline.at <= world.now);
    assert!(
        !late,
        "a deadline that has come would keep a driver busy: {:?}",
        world.deadline
    );
}

#[test]
fn all_calls_together_bring_no_more_than_their_bound() {
    let mut config = config();
    config.limits.calls_window = 100;
    config.settings.providers.push(Provider {
        name: "p".into(),
        base_url: "http://127.0.0.1".into(),
        api_key_env: None,
        api_key: None,
        max_retries: 0,
        idle_timeout: Duration::from_secs(60),
        models: Vec::from([Model {
            id: "m".into(),
            ..Model::default()
        }]),
    });
    let mut world = World::of(config).session();
    world.held = |call| matches!(call, Call::Http(_));
    world.go();
    let id = *world.open.keys().next().expect("the model is asked");
    assert_eq!(world.agent.room(Source::Call(id)), 100);
    let head = crate::call::Opened {
        status: 200,
        headers: Vec::from([("content-type".into(), "text/event-stream".into())]),
    };
    world.input(Input::Call {
        id,
        news: News::Opened(head),
    });
    let news = News::Bytes {
        stream: Stream::Out,
        bytes: &[b' '; 60],
    };
    world
        .agent
        .handle_input(world.now, Input::Call { id, news });
    assert_eq!(world.agent.room(Source::Call(id)), 40);
    world.drive();
    assert_eq!(world.agent.room(Source::Call(id)), 100);
}

#[test]
fn the_first_prompt_names_the_session_once() {
    let mut world = World::new("{\"text\":\"x\"}\n").session();
    world.go();
    let line = world.sees("session_info_update");
    assert!(line.contains("\"title\":\"go\""), "{line}");
    world.sees_only("end_turn");
    world.go();
    assert!(
        !world
            .lines
            .iter()
            .any(|line| line.contains("session_info_update"))
    );
}

#[test]
fn a_question_that_this_client_cannot_be_asked_is_passed_over() {
    let ask = "{\"tool\":\"ask\",\"args\":{\"questions\":[{\"question\":\"free?\"},\
               {\"question\":\"which?\",\"options\":[\"x\",\"y\"]}]}}\n";
    let mut world = World::new(ask).session();
    world.go();
    let line = world.sees("session/request_permission");
    assert!(line.contains("which?"), "{line}");
    let answer = "{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"q2:2\"}}";
    world.say(&format!("\"id\":1,\"result\":{answer}"));
    let line = world.sees("\"status\":\"completed\"");
    assert!(
        line.contains("Answer: y") && line.contains("could not be put"),
        "{line}"
    );
}

#[test]
fn where_the_configuration_cannot_be_read_what_it_denies_is_not_taken_for_nothing() {
    let mut config = config();
    config.script = Some(Script::parse("{\"text\":\"x\"}").expect("the script is good"));
    config.settings.fault = Some("config.toml, line 2: no".into());
    let mut world = World::of(config);
    world.open_session(7);
    let refused = world.sees("\"id\":7");
    assert!(refused.contains("-32000") && refused.contains("config.toml, line 2"));
    // A session that is opened to be read runs nothing.
    let rules = world.agent.rules().expect("they are good");
    let denied: Vec<_> = rules.texts().collect();
    assert_eq!(
        denied,
        [("deny", "Edit"), ("deny", "Bash"), ("deny", "WebFetch")]
    );
}
