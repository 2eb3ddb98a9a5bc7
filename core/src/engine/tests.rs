//! The engine in memory: a script answers, a fake system runs its calls. One line for each thing
//! it says, in order.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::record::{Author, Reason};
use super::*;
use crate::call::{Call, Contents, Exit, FileKind, Listing, Outcome, Program, Resolved, Stream};
use crate::model::{ChatMessage, Script};
use crate::permission::{PermissionMode, Posture, Rules};
use crate::secret::Secrets;
use crate::settings::{Host, Permissions};
use crate::time::Timer;
use crate::tools::Web;

mod compaction;
mod rounds;
mod subagent;

/// An engine, its system, and what it said.
struct World {
    engine: Engine,
    now: Instant,
    ids: Counter,
    limits: Limits,
    out: VecDeque<Output>,
    said: Vec<String>,
    /// What is remembered.
    records: Vec<Record>,
    /// Calls that were started and have not ended.
    open: BTreeMap<CallId, Call>,
    left: Vec<CallId>,
    files: BTreeMap<String, Vec<u8>>,
}

impl World {
    fn new(script: &str) -> Self {
        Self::with(script, |_, _| {})
    }

    fn with(script: &str, change: impl FnOnce(&mut Setup, &mut Permissions)) -> Self {
        let limits = Limits::default();
        let host = Host {
            os: "linux".into(),
            shell: "sh".into(),
            user_home: None,
            home: None,
            tmp: "/tmp".into(),
            sandbox: Default::default(),
        };
        let mut permissions = Permissions::default();
        let mut setup = Setup {
            session: "s".into(),
            brain: brain(script),
            system: "be good".into(),
            workspace: Workspace::new("/w", vec!["/w".into()], host, limits.clone()),
            authority: Authority::new(PermissionMode::default(), Rules::default(), &limits),
            light: false,
            max_steps: 9,
            context_window: None,
            jitter: 1,
            verifier: Verifier::default(),
            pause_unverified: PauseUnverified::default(),
            delivery: false,
        };
        change(&mut setup, &mut permissions);
        let rules = Rules::parse(&permissions, None).expect("the rules are good");
        setup.authority = Authority::new(PermissionMode::default(), rules, &limits);
        Self {
            engine: Engine::new(setup, &limits),
            now: Instant::ZERO,
            ids: Counter::default(),
            limits,
            out: VecDeque::new(),
            said: Vec::new(),
            records: Vec::new(),
            open: BTreeMap::new(),
            left: Vec::new(),
            files: BTreeMap::new(),
        }
    }

    fn act<T>(&mut self, act: impl FnOnce(&mut Engine, &mut Context<'_>) -> T) -> T {
        let mut cx = Context {
            now: self.now,
            unix_seconds: None,
            ids: &mut self.ids,
            limits: &self.limits,
            out: &mut self.out,
        };
        let result = act(&mut self.engine, &mut cx);
        while let Some(output) = self.out.pop_front() {
            self.hear(output);
        }
        result
    }

    fn hear(&mut self, output: Output) {
        let line = match output {
            Output::Start { id, call, .. } => {
                let line = format!("start {}", name(&call));
                self.open.insert(id, call);
                line
            }
            Output::CallServer { name, .. } => format!("server {name}"),
            Output::Abort { id } => {
                let known = self.open.contains_key(&id) || self.left.contains(&id);
                assert!(known, "only what runs is aborted");
                "abort".into()
            }
            Output::Update(update) => match update {
                Update::Text { text, message, .. } => format!("say {message} {}", text.trim()),
                Update::Running { id } => format!("run {id}"),
                Update::Progress { id, .. } => format!("progress {id}"),
                Update::Usage { used, size } => format!("used {used} of {size}"),
                Update::Compacting { id, stage } => format!("compacting {id} {stage:?}"),
                Update::Retrying { .. } => return,
            },
            Output::Record(record) => {
                let line = match &record {
                    Record::Call { id, .. } => Some(format!("call {id}")),
                    Record::Result(result) => {
                        let text = result.shown.as_ref().unwrap_or(&result.text);
                        let first = text.lines().next().unwrap_or_default();
                        let how = if result.ok { "well" } else { "badly" };
                        Some(format!("end {} {how} {first}", result.id))
                    }
                    Record::Plan { todos } => Some(format!("plan {}", todos.len())),
                    Record::Note { text } => Some(format!("say 0 {}", text.trim())),
                    Record::Subagent(it) => match (&it.title, it.ended) {
                        (Some(title), _) => Some(format!("begin {} {title}", it.id)),
                        (None, Some(how)) => Some(format!("finish {} {how:?}", it.id)),
                        (None, None) => None,
                    },
                    Record::Summary { gone, id, .. } => Some(format!("compacted {id} {gone}")),
                    Record::Session(_)
                    | Record::Options(_)
                    | Record::User(_)
                    | Record::Command { .. }
                    | Record::Assistant(_)
                    | Record::Goal(_)
                    | Record::End(_)
                    | Record::Roots { .. }
                    | Record::Mended { .. }
                    | Record::Unknown => None,
                };
                self.records.push(record);
                let Some(line) = line else { return };
                line
            }
            Output::Permit { card, call, .. } => format!("permit {} {call}", card.0),
            Output::Questions { card, call, .. } => format!("ask {} {call}", card.0),
            // What it says of itself is tested where it is shown.
            Output::Decided(_) => return,
            Output::Rooted { root } => format!("root {root}"),
            Output::Withdraw { card } => format!("withdraw {}", card.0),
            Output::Finished(ending) => format!("over {ending:?}"),
            Output::Log(_) => return,
        };
        self.said.push(line);
    }

    /// Steps and answers calls until nothing more happens by itself.
    fn run(&mut self) {
        for _ in 0..1000 {
            if self.act(Engine::step) {
                continue;
            }
            let ready = self.open.iter().find(|(_, call)| !hangs(call));
            let Some((id, call)) = ready.map(|(id, call)| (*id, call.clone())) else {
                return;
            };
            self.answer(id, &call);
        }
        panic!("it never comes to rest: {:?}", self.said);
    }

    fn answer(&mut self, id: CallId, call: &Call) {
        self.open.remove(&id);
        let outcome = match call {
            Call::Resolve { path } => Outcome::Resolved(Resolved {
                real: path.clone(),
                kind: match self.files.get(path) {
                    Some(_) => FileKind::File,
                    None if path == "/w" || path == "/" => FileKind::Directory,
                    None => FileKind::Missing,
                },
                link: false,
                owned: true,
                links: 1,
                size: 1,
            }),
            Call::Read { path, .. } => Outcome::Read(Contents {
                bytes: self.files.get(path).cloned().unwrap_or_default(),
            }),
            Call::Write(write) => {
                self.files.insert(write.path.clone(), write.bytes.clone());
                Outcome::Written
            }
            Call::List { .. } => Outcome::Listed(Listing {
                entries: Vec::new(),
                more: 0,
            }),
            Call::Process(process) => {
                // Commands with an `&` in them leave something running.
                let left = matches!(&process.program, Program::Shell(line) if line.contains('&'));
                self.left.extend(left.then_some(id));
                let news = News::Bytes {
                    stream: Stream::Out,
                    bytes: b"out\n",
                };
                self.act(|engine, cx| engine.handle_news(cx, id, news));
                Outcome::Exited(Exit {
                    code: Some(fails(call).into()),
                    signal: None,
                    dropped: 0,
                    left,
                })
            }
            Call::Http(_)
            | Call::Remove { .. }
            | Call::Rename { .. }
            | Call::Search(_)
            | Call::ReadAt { .. }
            | Call::Append(_)
            | Call::Lock { .. }
            | Call::Unlock { .. }
            | Call::RemoveTree { .. }
            | Call::Reconfigure
            | Call::Custom(_) => panic!("the fake system has no {call:?}"),
        };
        self.act(|engine, cx| engine.handle_news(cx, id, News::Done(outcome)));
    }

    fn prompt(&mut self, text: &str) {
        self.act(|engine, cx| engine.prompt(cx, Message::text(text)));
        self.run();
    }

    fn cancel(&mut self) {
        self.act(|engine, cx| engine.cancel(cx));
        self.run();
    }

    fn decide(&mut self, card: u64, decision: Decision) {
        self.act(|engine, cx| engine.decided(cx, CardId(card), decision));
        self.run();
    }

    /// Lets the time come that the engine waits for.
    fn wait(&mut self) -> Timer {
        let deadline = self.engine.deadline().expect("it waits for a time");
        assert!(deadline.at > self.now, "a deadline that is served moves");
        self.now = deadline.at;
        self.act(|engine, cx| engine.handle_timeout(cx));
        self.run();
        deadline.why
    }

    /// What was said since the last look, calls left out.
    fn heard(&mut self) -> Vec<String> {
        let mut said = core::mem::take(&mut self.said);
        said.retain(|line| !line.starts_with("start"));
        said
    }

    #[track_caller]
    fn check(&mut self, expected: &[&str]) {
        assert_eq!(self.heard(), expected);
        self.well_formed();
    }

    /// Every tool use has exactly one result before anything else follows, unless it still runs.
    #[track_caller]
    fn well_formed(&self) {
        // Whoever takes in what is remembered has the same history, at any moment.
        let mut restored = History::default();
        for record in &self.records {
            let line = serde_json::to_string(record).expect("a record is JSON");
            let record = serde_json::from_str(&line).expect("its own JSON is a record");
            restored.apply(&record);
        }
        assert_eq!(restored.messages(), self.engine.history().messages());
        if !self.engine.is_idle() {
            return;
        }
        let mut open: Vec<&str> = Vec::new();
        for message in self.engine.history().messages() {
            match message {
                ChatMessage::Tool { id, .. } => {
                    let at = open.iter().position(|open| open == id);
                    open.remove(at.expect("a result has a use"));
                }
                ChatMessage::Assistant { calls, .. } => {
                    assert!(open.is_empty(), "{open:?}");
                    open = calls.iter().map(|call| call.id.as_str()).collect();
                }
                ChatMessage::System(_) | ChatMessage::User(_) => assert!(open.is_empty()),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    fn last_message(&self) -> String {
        match self.engine.history().messages().last() {
            Some(ChatMessage::Assistant { text, .. } | ChatMessage::Tool { text, .. }) => {
                text.clone()
            }
            Some(ChatMessage::User(parts)) => format!("{parts:?}"),
            Some(ChatMessage::System(_)) | None => String::new(),
        }
    }
}

fn brain(script: &str) -> Brain {
    let script = Script::parse(script).expect("the script is good");
    Brain::Script(alloc::boxed::Box::new(script.answers(&Limits::default())))
}

fn name(call: &Call) -> &'static str {
    if matches!(call, Call::Process(_)) {
        "process"
    } else {
        "file"
    }
}

/// Commands with `fail` in them end badly.
fn fails(call: &Call) -> bool {
    matches!(call, Call::Process(process)
        if matches!(&process.program, Program::Shell(line) if line.contains("fail")))
}

/// Commands with `hang` in them run until they are ended.
fn hangs(call: &Call) -> bool {
    matches!(call, Call::Process(process)
        if matches!(&process.program, Program::Shell(line) if line.contains("hang")))
}

fn tool(id: &str, name: &str, args: &str) -> String {
    format!("{{\"tool\":\"{name}\",\"args\":{args},\"id\":\"{id}\"}}\n")
}

fn bash(id: &str, command: &str) -> String {
    tool(id, "bash", &format!("{{\"command\":\"{command}\"}}"))
}

const CALLS: &str = "{\"finish\":\"tool_calls\"}\n";
const DONE: &str = "{\"text\":\"done\"}\n{\"finish\":\"stop\"}\n";

/// One turn of a script that nobody disturbs.
#[track_caller]
fn check(script: &str, expected: &[&str]) {
    let mut world = World::with(script, |setup, _| setup.max_steps = 3);
    world.prompt("go");
    world.check(expected);
    assert!(world.engine.is_quiet(), "nothing runs on");
    assert_eq!(world.engine.deadline(), None);
}

/// A turn of three model calls, the first two with a command, and guidance while each command runs.
fn guided(max_steps: u32) -> (World, Vec<String>) {
    let script = format!(
        "{}{CALLS}{}{CALLS}{DONE}",
        bash("a", "hang"),
        bash("b", "hang")
    );
    let mut world = World::with(&script, |setup, _| setup.max_steps = max_steps);
    world.prompt("go");
    for card in [1, 2] {
        world.decide(card, Decision::Once);
        world.act(|engine, _| engine.guide(Message::text("left")));
        let Some((id, call)) = world
            .open
            .iter()
            .next()
            .map(|(id, call)| (*id, call.clone()))
        else {
            break;
        };
        world.answer(id, &call);
        world.run();
        // What was heard was safe at once.
        world.act(Engine::claimed);
        world.run();
    }
    let heard = world.heard();
    (world, heard)
}

#[test]
fn guidance_costs_no_step_and_is_not_taken_by_a_turn_that_asks_no_more() {
    let told = |world: &World| {
        let messages = world.engine.history().messages().iter();
        let is = |message: &&ChatMessage| matches!(message, ChatMessage::User(parts) if format!("{parts:?}").contains("left"));
        messages.filter(is).count()
    };
    let (world, heard) = guided(3);
    assert_eq!(
        heard.last().map(String::as_str),
        Some("over EndTurn"),
        "{heard:?}"
    );
    assert_eq!(told(&world), 2);
    // It has used its last step: who says something now is not heard by it.
    let (mut world, heard) = guided(2);
    assert_eq!(
        heard.last().map(String::as_str),
        Some("over MaxSteps"),
        "{heard:?}"
    );
    assert_eq!(told(&world), 1);
    assert_eq!(world.engine.take_guidance().len(), 1);
}

#[test]
fn a_turn_goes_through_its_phases_and_ends() {
    let ls = tool("a", "ls", "{\"path\":\"/w\"}");
    check(DONE, &["say 1 done", "over EndTurn"]);
    check(
        &format!("{ls}{CALLS}{DONE}"),
        &[
            "call a",
            "run a",
            "end a well (empty directory)",
            "say 2 done",
            "over EndTurn",
        ],
    );
    let cut = "{\"text\":\"half\"}\n{\"finish\":\"length\"}\n";
    check(
        &format!("{cut}{DONE}"),
        &["say 1 half", "say 2 done", "over EndTurn"],
    );
    check(
        &format!("{cut}{cut}"),
        &["say 1 half", "say 2 half", "over MaxTokens"],
    );
    check(
        "{\"text\":\"no\"}\n{\"finish\":\"content_filter\"}\n",
        &["say 1 no", "over Refusal"],
    );
    check(
        &format!("{ls}{CALLS}{ls}{CALLS}{ls}{CALLS}{ls}{CALLS}"),
        &[
            "call a",
            "run a",
            "end a well (empty directory)",
            "call a-1",
            "run a-1",
            "end a-1 well (empty directory)",
            "call a-2",
            "run a-2",
            "end a-2 well (empty directory)",
            "over MaxSteps",
        ],
    );
}

#[test]
fn a_cancel_ends_a_turn_in_every_phase() {
    let hang = "{\"text\":\"I\"}\n{\"hang\":true}\n";
    let mut world = World::new(&format!("{hang}{DONE}"));
    world.prompt("go");
    world.check(&["say 1 I"]);
    world.cancel();
    world.check(&["over Cancelled"]);
    assert_eq!(world.last_message(), "I", "what was seen stays");
    world.cancel();
    world.check(&[]);
    world.prompt("again");
    world.check(&["say 2 done", "over EndTurn"]);

    // A pause between two attempts.
    let mut world = World::new("{\"error\":{\"status\":500}}\n");
    world.prompt("go");
    assert_eq!(world.engine.deadline().expect("a pause").why, Timer::Retry);
    world.cancel();
    world.check(&["over Cancelled"]);

    // A command that runs, and one behind it.
    let two = format!("{}{}{CALLS}{DONE}", bash("a", "hang"), bash("b", "ls"));
    let mut world = World::new(&two);
    world.prompt("go");
    world.decide(1, Decision::Once);
    world.check(&["call a", "call b", "permit 1 a", "run a"]);
    world.cancel();
    world.check(&[
        "abort",
        "end a badly Cancelled by the person while it ran: it may have taken effect in part.",
        "end b badly Cancelled by the person before it began.",
    ]);
    let mut late = core::mem::replace(&mut world, World::new(DONE));
    assert_eq!(late.wait(), Timer::CancelGrace);
    late.check(&["over Cancelled"]);

    // The same, and the call settles in time.
    let mut world = World::new(&two);
    world.prompt("go");
    world.decide(1, Decision::Once);
    world.cancel();
    world.heard();
    let (id, call) = world.open.pop_first().expect("the command runs");
    world.answer(id, &call);
    world.check(&["over Cancelled"]);

    // An open card, an open question.
    let mut world = World::new(&two);
    world.prompt("go");
    world.heard();
    world.cancel();
    world.check(&[
        "withdraw 1",
        "end a badly Cancelled by the person before it began.",
        "end b badly Cancelled by the person before it began.",
        "over Cancelled",
    ]);
    world.decide(1, Decision::Once);
    world.check(&[]);
    let question = tool(
        "a",
        "ask",
        "{\"question\":\"Why?\",\"options\":[\"x\",\"y\"]}",
    );
    let mut world = World::new(&format!("{question}{CALLS}"));
    world.prompt("go");
    world.check(&["call a", "run a", "ask 1 a"]);
    world.cancel();
    world.check(&[
        "withdraw 1",
        "end a badly Cancelled by the person before it began.",
        "over Cancelled",
    ]);

    // The summary of a compaction.
    let mut world = full(hang);
    world.check(&["compacting 11 Began"]);
    world.cancel();
    world.check(&["compacting 11 Cancelled", "over Cancelled"]);
    assert!(world.engine.history().messages().len() > 10);
}

/// A session whose next prompt makes the history too long for its window; `script` is what the
/// model says then.
fn full(script: &str) -> World {
    let mut world = World::new(&format!("{}{script}", DONE.repeat(10)));
    for _ in 0..10 {
        world.prompt(&"ask ".repeat(10));
    }
    world.heard();
    world.engine.context_window = Some(100);
    world.prompt("more");
    world
}

#[test]
fn a_model_and_tools_chosen_during_a_turn_come_with_the_next_one() {
    let ls = bash("a", "ls");
    let mut world = World::new(&format!("{ls}{CALLS}{DONE}"));
    world.prompt("go");
    world
        .engine
        .set_brain(brain("{\"text\":\"other\"}\n"), Some(7));
    world.engine.set_light(true);
    assert!(!world.engine.light);
    world.decide(1, Decision::Once);
    assert_eq!(world.last_message(), "done");
    world.prompt("go");
    assert_eq!(world.last_message(), "other");
    assert!(world.engine.light);
    assert_eq!(world.engine.context_window, Some(7));
}

#[test]
fn cards_are_asked_one_at_a_time_and_an_answer_for_all_spares_the_others() {
    let read = |id: &str| tool(id, "read_file", &format!("{{\"path\":\"/w/{id}\"}}"));
    let script = format!("{}{}{}{CALLS}{DONE}", read("a"), read("b"), read("c"));
    let world = || {
        let mut world = World::with(&script, |_, rules| rules.ask.push("Read".into()));
        for path in ["/w/a", "/w/b", "/w/c"] {
            world.files.insert(path.into(), b"text".to_vec());
        }
        world.prompt("go");
        world
    };
    let mut one = world();
    let cards = |world: &mut World| {
        let mut said = world.heard();
        said.retain(|line| line.starts_with("permit"));
        said
    };
    assert_eq!(cards(&mut one), ["permit 1 a"]);
    one.decide(1, Decision::Reject);
    assert_eq!(cards(&mut one), ["permit 2 b"]);
    one.decide(2, Decision::Once);
    assert_eq!(cards(&mut one), ["permit 3 c"]);
    one.decide(3, Decision::Once);
    assert!(one.engine.is_idle());
    // A cancel with some that wait for their card.
    let mut one = world();
    one.heard();
    one.cancel();
    let said = one.heard();
    assert_eq!(
        said.iter()
            .filter(|line| line.starts_with("withdraw"))
            .count(),
        1
    );
    assert_eq!(
        said.iter().filter(|line| line.starts_with("end")).count(),
        3
    );
    assert_eq!(said.last().map(String::as_str), Some("over Cancelled"));
    // A posture that needs no card any more.
    let bashes = format!("{}{}{CALLS}{DONE}", bash("a", "ls"), bash("b", "ls"));
    let mut world = World::new(&bashes);
    world.prompt("go");
    world.heard();
    world.act(|engine, cx| engine.set_posture(cx, Posture::Yolo));
    world.run();
    world.check(&[
        "withdraw 1",
        "run a",
        "end a well out",
        "run b",
        "end b well out",
        "say 2 done",
        "over EndTurn",
    ]);
}

#[test]
fn what_was_done_before_a_cancel_is_told_as_done() {
    let write = tool("a", "write_file", "{\"path\":\"/w/a\",\"content\":\"x\"}");
    let mut world = World::new(&format!("{write}{CALLS}{DONE}"));
    world.prompt("go");
    world.act(|engine, cx| engine.decided(cx, CardId(1), Decision::Once));
    while world.act(Engine::step) {}
    let (id, call) = world.open.pop_first().expect("it is written");
    world.answer(id, &call);
    assert!(world.files.contains_key("/w/a"));
    // The client was slow: the engine has not gone on since.
    world.heard();
    world.cancel();
    let said = world.heard();
    assert!(said[0].starts_with("end a well"), "{said:?}");
    assert_eq!(said[1], "over Cancelled");
}

#[test]
fn the_model_is_told_why_a_call_was_not_allowed() {
    for (decision, why) in [
        (Decision::Reject, "refused"),
        (Decision::Unanswered, "did not decide"),
        (Decision::Unasked, "could not be asked"),
    ] {
        let mut world = World::new(&format!("{}{CALLS}{DONE}", bash("a", "ls")));
        world.prompt("go");
        world.decide(1, decision);
        let told =
            world.engine.history().messages().iter().any(
                |message| matches!(message, ChatMessage::Tool { text, .. } if text.contains(why)),
            );
        assert!(told, "{decision:?}: {:?}", world.engine.history());
    }
}

#[test]
fn a_command_that_reaches_its_limit_is_due_and_its_deadline_moves() {
    let command = tool("a", "bash", "{\"command\":\"hang\",\"timeout_seconds\":5}");
    let mut world = World::new(&format!("{command}{CALLS}{DONE}"));
    world.prompt("go");
    world.decide(1, Decision::Once);
    world.heard();
    assert!(!world.engine.is_due(world.now));
    assert_eq!(world.wait(), Timer::ToolLimit);
    world.check(&["abort"]);
    assert!(!world.engine.is_due(world.now));
    assert_eq!(world.engine.deadline(), None);
}

#[test]
fn what_a_command_left_running_is_ended_with_the_session() {
    let commands = ["ls", "one &", "two &", "three &"];
    let script: String = commands
        .iter()
        .map(|line| format!("{}{CALLS}", bash(line, line)))
        .collect();
    let mut world = World::new(&format!("{script}{DONE}"));
    world.limits.max_left = 2;
    world.prompt("go");
    for card in 1..=4 {
        world.decide(card, Decision::Once);
    }
    assert!(world.engine.is_quiet(), "they are not waited for");
    world.heard();
    let newest = world.left.split_off(1);
    world.left = newest;
    world.act(Engine::dispose);
    world.check(&["abort", "abort"]);
    world.act(Engine::dispose);
    world.check(&[]);
}
