//! Clients as they are: what each says first, what it offers, and its habits, as data in
//! `tests/profiles`. One interpreter plays a person's day with each of them, against both programs and
//! in the simulated world: a start without a model, an edit that is looked at, one that is turned
//! down, one that the editor does not write, a command, cancels, and the history after a restart.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use reasonix_core::model::Script;
use reasonix_tests::disk::{Disk, Keep, Node};
use reasonix_tests::editor::{Editor, Manners};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};
use reasonix_tests::sim::{Card, Sim, config};
use reasonix_tests::world::{Command, World};

const HOME: &str = "/home/user/.reasonix";

/// What a client is, and of which kind its values are.
const MEMBERS: [(&str, &str); 19] = [
    // What people call it, and what the doctor calls it.
    ("name", "text"),
    ("doctor", "text"),
    // The params of its first request.
    ("initialize", "object"),
    // It gives up on a request after so long.
    ("patience_ms", "number"),
    // "at once", "when refused" or "never": when it authenticates, with the first method there is.
    ("signs_in", "text"),
    // It ends an agent that opens no session.
    ("gives_up", "bool"),
    // What it says in `session/new` beside the folder.
    ("new", "object"),
    // It looks for old sessions with `session/list`, else it keeps their ids itself.
    ("lists", "bool"),
    // Methods that it calls before each prompt, to set what is set already.
    ("before_prompt", "list"),
    // What it says in `session/cancel` beside the session.
    ("cancel", "object"),
    // "cancelled" or "silent": what it answers to a card that is open when it cancels.
    ("open_card", "text"),
    // What it answers to a card that is closed and not chosen from.
    ("dismissed", "object"),
    // It keeps lines: the newline at the end of a file is not in what it says of it.
    ("hides_last_newline", "bool"),
    // It says LF for CRLF.
    ("hides_returns", "bool"),
    // It ends every line of an open file when it saves, also the empty one behind the last newline.
    ("ends_last_line", "bool"),
    // The result of a file that it wrote.
    ("written", "object or null"),
    // "error" or "text": how it tells that it did not write a file.
    ("refuses_by", "text"),
    // It knows `terminal/kill`.
    ("kills_terminals", "bool"),
    // How it opens an old session.
    ("again", "text"),
];

/// What ends its agent: "end of input", "termination" or "kill".
const ENDS: &str = "ends";

/// What the model does, by what the prompt holds.
fn script() -> String {
    let call = |tool: &str, args: Value| format!("{}\n", json!({"tool": tool, "args": args}));
    let edit = |file: &str| {
        let args = json!({"path": file, "old_string": "alpha", "new_string": "ALPHA"});
        call("edit_file", args)
    };
    let finish = "{\"finish\":\"tool_calls\"}\n";
    let mut lines = String::new();
    for (prompt, calls) in [
        (
            "edit it",
            vec![call("read_file", json!({"path": "a.txt"})), edit("a.txt")],
        ),
        ("dismiss it", vec![edit("b.txt")]),
        ("refuse it", vec![edit("locked.txt")]),
        (
            "make one",
            vec![call(
                "write_file",
                json!({"path": "new.txt", "content": "made\n"}),
            )],
        ),
        (
            "run it",
            vec![call("bash", json!({"command": "echo built"}))],
        ),
        (
            "run on",
            vec![
                call("bash", json!({"command": "sleep 31.5"})),
                edit("b.txt"),
            ],
        ),
        ("leave it", vec![edit("b.txt"), edit("b.txt")]),
        ("still there", vec![]),
    ] {
        lines += &format!("{}\n", json!({"when": {"prompt_contains": prompt}}));
        for call in calls {
            lines += &call;
            lines += finish;
        }
        lines += &format!("{}\n", json!({"text": format!("done: {prompt}")}));
        lines += "{\"finish\":\"stop\"}\n";
    }
    lines
}

const FILES: [(&str, &str); 3] = [
    ("a.txt", "alpha\nbeta\n"),
    ("b.txt", "alpha\n"),
    ("locked.txt", "alpha\n"),
];

/// An agent, simulated or not, as its client sees it.
trait Peer {
    fn send(&mut self, message: &Value);
    fn answer(&mut self, id: u64) -> Value;
    /// Goes on until a frame, from the `from`th on, is as it should be.
    fn until(&mut self, from: usize, what: &str, done: &dyn Fn(&Value) -> bool) -> Value;
    fn frames(&self) -> &[Value];
    fn editor(&mut self) -> &mut Editor;
    /// How cards are answered from here on.
    fn cards(&mut self, card: Card);
    /// The time since it was started.
    fn time(&self) -> Duration;
    /// Its end, as a client brings it about.
    fn end(self: Box<Self>, how: &str);
}

struct Program {
    running: Running,
    begun: Instant,
}

impl Peer for Program {
    fn send(&mut self, message: &Value) {
        self.running.send(message);
    }

    fn answer(&mut self, id: u64) -> Value {
        self.running.answer(id)
    }

    fn until(&mut self, from: usize, what: &str, done: &dyn Fn(&Value) -> bool) -> Value {
        let seen = self.running.frames[from..].iter().find(|frame| done(frame));
        match seen.cloned() {
            Some(frame) => frame,
            None => self.running.until(what, done),
        }
    }

    fn frames(&self) -> &[Value] {
        &self.running.frames
    }

    fn editor(&mut self) -> &mut Editor {
        self.running.editor.as_mut().expect("it was put there")
    }

    fn cards(&mut self, card: Card) {
        self.running.cards = [card].into();
    }

    fn time(&self) -> Duration {
        self.begun.elapsed()
    }

    fn end(mut self: Box<Self>, how: &str) {
        match how {
            "kill" => self.running.kill(),
            "termination" => {
                self.running.terminate();
                let from = Instant::now();
                let end = from + Duration::from_secs(10);
                while self.running.next("the end of its output", end).is_some() {}
                let ended = self.running.wait(from);
                assert_eq!(ended.code, Some(0), "{ended:?}");
                self.running.laws.check();
            }
            _ => {
                let (ended, laws) = self.running.finish();
                assert_eq!(ended.code, Some(0), "{ended:?}");
                laws.check();
            }
        }
    }
}

struct Simulated {
    sim: Sim,
    /// Where the disk goes at the end.
    disk: Rc<RefCell<Disk>>,
}

impl Peer for Simulated {
    fn send(&mut self, message: &Value) {
        self.sim.send(message);
    }

    fn answer(&mut self, id: u64) -> Value {
        self.sim.answer(id)
    }

    fn until(&mut self, from: usize, what: &str, done: &dyn Fn(&Value) -> bool) -> Value {
        self.sim
            .until(what, |sim| sim.frames[from..].iter().any(done));
        let seen = self.sim.frames[from..].iter().find(|frame| done(frame));
        seen.expect("just seen").clone()
    }

    fn frames(&self) -> &[Value] {
        &self.sim.frames
    }

    fn editor(&mut self) -> &mut Editor {
        self.sim.editor.as_mut().expect("it was put there")
    }

    fn cards(&mut self, card: Card) {
        self.sim.cards = vec![card];
    }

    fn time(&self) -> Duration {
        self.sim.now.since(reasonix_core::time::Instant::ZERO)
    }

    fn end(mut self: Box<Self>, how: &str) {
        if how != "kill" {
            self.sim.finish();
            self.sim.laws.check();
            assert_eq!(self.sim.world.running(), 0, "something runs on");
        }
        self.disk
            .replace(self.sim.world.disk.after_crash(true, |_| Keep::All));
    }
}

/// Where a client finds its agents and its files.
enum Ground {
    Programs { name: &'static str, place: Place },
    Simulation { disk: Rc<RefCell<Disk>>, starts: u8 },
}

impl Ground {
    fn programs(name: &'static str) -> Self {
        let place = Place::new();
        for (file, text) in FILES {
            place.write(file, text);
        }
        Self::Programs { name, place }
    }

    fn simulation() -> Self {
        let mut disk = Disk::with_files("/w", &FILES);
        disk.put(HOME, Node::Dir);
        Self::Simulation {
            disk: Rc::new(RefCell::new(disk)),
            starts: 0,
        }
    }

    fn cwd(&self) -> String {
        match self {
            Self::Programs { place, .. } => place.work().to_str().expect("a plain name").into(),
            Self::Simulation { .. } => "/w".into(),
        }
    }

    fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.cwd())
    }

    /// The bytes of a file. A simulated one is known when its agent has ended.
    fn file(&self, name: &str) -> Option<String> {
        match self {
            Self::Programs { place, .. } => std::fs::read_to_string(place.file(name)).ok(),
            Self::Simulation { disk, .. } => {
                let disk = disk.borrow();
                let bytes = disk.file(&self.path(name))?;
                Some(String::from_utf8_lossy(bytes).into_owned())
            }
        }
    }

    fn start(&mut self, editor: Editor) -> Box<dyn Peer> {
        match self {
            Self::Programs { name, place } => {
                let model = format!("script:{}", place.script(&script()).display());
                let mut running = Running::start(name, place, &["--model", &model]);
                running.editor = Some(editor);
                let begun = Instant::now();
                Box::new(Program { running, begun })
            }
            Self::Simulation { disk, starts } => {
                *starts += 1;
                let mut config = config();
                config.ephemeral = false;
                config.seed = [*starts; 32];
                config.script = Some(Script::parse(&script()).expect("a script"));
                let mut world = World::on(disk.borrow().clone());
                let command = |contains: &str, output: &str, takes| Command {
                    contains: contains.into(),
                    output: output.as_bytes().into(),
                    takes,
                    code: 0,
                };
                world.commands = vec![
                    command("echo", "built\n", Some(Duration::ZERO)),
                    command("sleep", "", None),
                ];
                let mut sim = Sim::new(config, world);
                sim.editor = Some(editor);
                let disk = disk.clone();
                Box::new(Simulated { sim, disk })
            }
        }
    }
}

/// One client and the agent that it has started.
struct Client<'a> {
    profile: &'a Value,
    cwd: String,
    peer: Box<dyn Peer>,
    session: String,
    /// What `session/new` or its like answered.
    opened: Value,
    id: u64,
}

impl<'a> Client<'a> {
    /// Starts an agent, and says what the client says before it opens a session.
    fn start(profile: &'a Value, ground: &mut Ground) -> Self {
        let paths = FILES.map(|(file, _)| ground.path(file));
        let text = |path: &String| {
            let file = Path::new(path).file_name()?.to_str()?;
            Some((path.clone(), ground.file(file)?))
        };
        let editor = Editor {
            buffers: paths.iter().filter_map(text).collect(),
            locked: [ground.path("locked.txt")].into(),
            saves: Some(0),
            command_takes: Some(Duration::ZERO),
            output: "built\n".into(),
            manners: Manners {
                written: profile["written"].clone(),
                refuses_by_text: profile["refuses_by"] == "text",
                kills: profile["kills_terminals"] == true,
                hides_end: profile["hides_last_newline"] == true,
                hides_returns: profile["hides_returns"] == true,
                line_end: (profile["ends_last_line"] == true).then_some("\n"),
            },
            ..Editor::default()
        };
        let mut client = Self {
            profile,
            cwd: ground.cwd(),
            peer: ground.start(editor),
            session: String::new(),
            opened: Value::Null,
            id: 0,
        };
        client.hello();
        client
    }

    fn does(&self, what: &str) -> bool {
        self.profile[what] == true
    }

    fn is(&self, what: &str, value: &str) -> bool {
        self.profile[what] == value
    }

    /// What it offers.
    fn offers(&self, what: &str) -> bool {
        let of = &self.profile["initialize"]["clientCapabilities"];
        of[what] == true || of["fs"][what] == true
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.id += 1;
        self.peer.send(&json::request(self.id, method, params));
        self.id
    }

    /// The answer to a request that this client does not wait long for.
    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let from = self.peer.time();
        let id = self.send(method, params);
        let answer = self.peer.answer(id);
        let patience = self.profile["patience_ms"].as_u64().expect("a number");
        let took = self.peer.time() - from;
        assert!(took < Duration::from_millis(patience), "{method}: {took:?}");
        answer
    }

    fn hello(&mut self) {
        let answer = self.ask("initialize", self.profile["initialize"].clone());
        let (result, name) = (&answer["result"], &self.profile["name"]);
        assert_eq!(result["protocolVersion"], 1, "{name}: {answer}");
        assert_eq!(result["agentCapabilities"]["loadSession"], true, "{name}");
        let resumes = &result["agentCapabilities"]["sessionCapabilities"]["resume"];
        assert!(resumes.is_object(), "{name}: {answer}");
        // A model can be used, so there is nothing to sign in with but a terminal, for who takes it.
        let methods = result["authMethods"].as_array().expect("a list");
        let terminal = &self.profile["initialize"]["clientCapabilities"]["auth"]["terminal"];
        assert_eq!(methods.len(), usize::from(*terminal == true), "{name}");
        for method in methods.clone() {
            assert_eq!(method["type"], "terminal", "{name}");
            if self.is("signs_in", "at once") {
                let signed = self.ask("authenticate", json!({"methodId": method["id"]}));
                assert!(signed["result"].is_object(), "{name}: {signed}");
            }
        }
    }

    /// The params of `session/new`, and of `session/load` but for the session.
    fn setup(&self) -> Value {
        let mut params = self.profile["new"].clone();
        params["cwd"] = json!(self.cwd);
        params
    }

    fn open(&mut self) {
        let answer = self.ask("session/new", self.setup());
        let session = answer["result"]["sessionId"].as_str();
        self.session = session.unwrap_or_else(|| panic!("{answer}")).into();
        self.opened = answer["result"].clone();
    }

    /// What this client sets before a prompt, then the prompt.
    fn begin(&mut self, text: &str) -> u64 {
        let methods = self.profile["before_prompt"].as_array().expect("a list");
        for method in methods {
            let method = method.as_str().expect("a method");
            let options = self.opened["configOptions"].as_array().expect("options");
            let model = options.iter().find(|option| option["category"] == "model");
            let model = model.expect("there is a model");
            let mut params = match method {
                "session/set_mode" => json!({"modeId": self.opened["modes"]["currentModeId"]}),
                "session/set_model" => json!({"modelId": model["currentValue"]}),
                _ => json!({"configId": model["id"], "value": model["currentValue"]}),
            };
            params["sessionId"] = json!(self.session);
            let answer = self.ask(method, params);
            assert!(answer["result"].is_object(), "{method}: {answer}");
        }
        let block = json!({"type": "text", "text": text});
        let params = json!({"sessionId": self.session, "prompt": [block]});
        self.send("session/prompt", params)
    }

    /// A turn, and how it and the calls in it ended.
    fn turn(&mut self, text: &str) -> (Value, Vec<String>, Vec<Value>) {
        let from = self.peer.frames().len();
        let id = self.begin(text);
        let answer = self.peer.answer(id);
        let seen = &self.peer.frames()[from..];
        let ends = json::tool_ends(seen, &self.session);
        (answer["result"]["stopReason"].clone(), ends, seen.to_vec())
    }

    fn cancel(&mut self) {
        let mut params = self.profile["cancel"].clone();
        params["sessionId"] = json!(self.session);
        self.peer
            .send(&json::notification("session/cancel", params));
    }

    /// Nothing was asked or told that this client did not offer, and of no other session.
    fn check(&mut self) {
        let name = &self.profile["name"];
        let reads = self.offers("readTextFile");
        let writes = self.offers("writeTextFile");
        let terminal = self.offers("terminal");
        for frame in self.peer.frames() {
            let Some(method) = frame["method"].as_str() else {
                continue;
            };
            let offered = match method {
                "fs/read_text_file" => reads,
                "fs/write_text_file" => writes,
                "session/update" | "session/request_permission" | "$/cancel_request" => true,
                method => method.starts_with("terminal/") && terminal,
            };
            assert!(offered, "{name}: {frame}");
            let plain = [
                "user_message_chunk",
                "agent_message_chunk",
                "agent_thought_chunk",
                "tool_call",
                "tool_call_update",
                "plan",
                "available_commands_update",
                "current_mode_update",
                "config_option_update",
                "session_info_update",
                "usage_update",
            ];
            if method == "session/update" {
                let kind = frame["params"]["update"]["sessionUpdate"].as_str();
                assert!(plain.contains(&kind.unwrap_or_default()), "{name}: {frame}");
            }
            if method != "$/cancel_request" {
                let session = frame["params"]["sessionId"].as_str();
                assert_eq!(session, Some(&*self.session), "{name}: {frame}");
            }
        }
        self.peer.editor().check();
    }

    fn end(mut self) {
        self.check();
        let how = self.profile[ENDS].as_str().expect("a word");
        self.peer.end(how);
    }
}

fn is_card(frame: &Value) -> bool {
    frame["method"] == "session/request_permission"
}

fn cards(frames: &[Value]) -> Vec<&Value> {
    frames.iter().filter(|frame| is_card(frame)).collect()
}

/// The diffs that the card and the end of the last call in these frames show.
fn diffs(frames: &[Value]) -> Vec<Value> {
    let shown = frames.iter().flat_map(|frame| {
        let content = match is_card(frame) {
            true => &frame["params"]["toolCall"]["content"],
            false => {
                json::update(frame, "").map_or(&Value::Null, |update| match &update["status"] {
                    status if status == "completed" => &update["content"],
                    _ => &Value::Null,
                })
            }
        };
        content.as_array().into_iter().flatten().cloned()
    });
    shown.filter(|item| item["type"] == "diff").collect()
}

/// A person's day with this client.
fn day(profile: &Value, ground: &mut Ground) {
    let name = &profile["name"];
    let mut client = Client::start(profile, ground);
    client.open();
    let (there, writes) = (client.offers("terminal"), client.offers("writeTextFile"));

    // An edit, looked at and allowed.
    let (stop, ends, seen) = client.turn("edit it");
    assert_eq!(stop, "end_turn", "{name}");
    assert_eq!(ends, ["completed", "completed"], "{name}");
    assert_eq!(cards(&seen).len(), 1, "{name}");
    let diffs = diffs(&seen);
    assert_eq!(diffs.len(), 2, "{name}: one in the card, one at the end");
    let shown = |text: &'static str| match profile["hides_last_newline"] == true {
        true => text.trim_end(),
        false => text,
    };
    for diff in diffs {
        assert_eq!(diff["path"], *ground.path("a.txt"), "{name}");
        assert_eq!(diff["oldText"], *shown("alpha\nbeta\n"), "{name}");
        assert_eq!(diff["newText"], *shown("ALPHA\nbeta\n"), "{name}");
    }
    let mut written = vec![(ground.path("a.txt"), "ALPHA\nbeta\n".to_string())];
    if client.does("ends_last_line") {
        // It made an empty line of the last newline, and is given the text without it.
        written.push((ground.path("a.txt"), "ALPHA\nbeta".to_string()));
    }
    assert_eq!(client.peer.editor().writes, written, "{name}");

    // A file that was not there.
    let (_, ends, _) = client.turn("make one");
    assert_eq!(ends, ["completed"], "{name}");
    written.push((ground.path("new.txt"), "made\n".to_string()));
    assert_eq!(client.peer.editor().writes, written, "{name}");

    // One that is not allowed, and one that the editor does not write.
    client
        .peer
        .cards(Card::Raw(profile["dismissed"].to_string()));
    let (stop, ends, _) = client.turn("dismiss it");
    assert_eq!(
        (stop, ends),
        (json!("end_turn"), vec!["failed".into()]),
        "{name}"
    );
    client.peer.cards(Card::Choose("allow_once"));
    let (stop, ends, _) = client.turn("refuse it");
    assert_eq!(
        (stop, ends),
        (json!("end_turn"), vec!["failed".into()]),
        "{name}"
    );
    assert_eq!(client.peer.editor().writes, written, "{name}");
    assert!(writes, "{name}: all of them write");

    // A command, where the client runs it.
    let (stop, ends, seen) = client.turn("run it");
    assert_eq!(
        (stop, ends),
        (json!("end_turn"), vec!["completed".into()]),
        "{name}"
    );
    let made = client.peer.editor().terminals.len();
    assert_eq!(made, usize::from(there), "{name}");
    let updates = seen.iter().filter_map(|frame| json::update(frame, ""));
    let items = updates.flat_map(|update| update["content"].as_array().into_iter().flatten());
    let (terminals, texts): (Vec<_>, Vec<_>) = items.partition(|item| item["type"] == "terminal");
    assert_eq!(!terminals.is_empty(), there, "{name}");
    let said = texts.iter().any(|item| item.to_string().contains("built"));
    assert_eq!(
        said, !there,
        "{name}: what a terminal shows is not said again"
    );

    // A cancel while a command runs, and one with a card open.
    client.peer.editor().command_takes = None;
    let from = client.peer.frames().len();
    let id = client.begin("run on");
    client.peer.until(from, "a command", &|frame| match there {
        true => frame["method"] == "terminal/wait_for_exit",
        false => json::update(frame, "").is_some_and(|it| it["status"] == "in_progress"),
    });
    let begun = client.peer.time();
    client.cancel();
    let answer = client.peer.answer(id);
    assert_eq!(
        answer["result"]["stopReason"], "cancelled",
        "{name}: {answer}"
    );
    assert!(
        client.peer.time() - begun < Duration::from_secs(2),
        "{name}"
    );
    client.peer.cards(Card::Silence);
    let from = client.peer.frames().len();
    let id = client.begin("leave it");
    let card = client.peer.until(from, "a card", &is_card);
    client.cancel();
    if client.is("open_card", "cancelled") {
        let outcome = json!({"outcome": {"outcome": "cancelled"}});
        client.peer.send(&json::result(&card["id"], outcome));
    }
    let answer = client.peer.answer(id);
    assert_eq!(
        answer["result"]["stopReason"], "cancelled",
        "{name}: {answer}"
    );
    client.peer.cards(Card::Choose("allow_once"));
    let (stop, ends, _) = client.turn("still there");
    assert_eq!((stop, ends), (json!("end_turn"), vec![]), "{name}");
    assert_eq!(client.peer.editor().writes, written, "{name}");
    let made = client.peer.editor().terminals.len();
    assert_eq!(made, 2 * usize::from(there), "{name}");
    let session = client.session.clone();
    client.end();
    for (file, text) in [
        ("a.txt", "ALPHA\nbeta\n"),
        ("b.txt", "alpha\n"),
        ("locked.txt", "alpha\n"),
        ("new.txt", "made\n"),
    ] {
        assert_eq!(ground.file(file).as_deref(), Some(text), "{name}: {file}");
    }
    evening(profile, ground, &session);
}

/// The history after a restart, and a session that is not there any more.
fn evening(profile: &Value, ground: &mut Ground, session: &str) {
    let name = &profile["name"];
    let mut client = Client::start(profile, ground);
    if client.does("lists") {
        let answer = client.ask("session/list", json!({"cwd": ground.cwd()}));
        let listed = &answer["result"]["sessions"][0];
        assert_eq!(listed["sessionId"], *session, "{name}: {answer}");
    }
    let again = profile["again"].as_str().expect("a method");
    // A session that was never there: the reason is where each client looks for it.
    let mut params = client.setup();
    params["sessionId"] = json!("gone");
    let answer = client.ask(again, params.clone());
    let error = &answer["error"];
    assert_eq!(
        error["data"]["code"], "session_not_found",
        "{name}: {answer}"
    );
    assert_eq!(
        error["data"]["details"], "Session not found: gone",
        "{name}"
    );
    assert!(
        error["message"].as_str().is_some_and(|it| !it.is_empty()),
        "{name}"
    );
    let block = json!({"type": "text", "text": "still there"});
    let lost = json!({"sessionId": "gone", "prompt": [block]});
    let answer = client.ask("session/prompt", lost);
    let details = &answer["error"]["data"]["details"];
    assert_eq!(*details, "Session not found: gone", "{name}: {answer}");
    // The one that was.
    client.session = session.into();
    params["sessionId"] = json!(session);
    let from = client.peer.frames().len();
    let answer = client.ask(again, params);
    assert!(answer["result"].is_object(), "{name}: {answer}");
    client.opened = answer["result"].clone();
    let shown = &client.peer.frames()[from..];
    let said = json::text_of(shown, session, "user_message_chunk");
    match again {
        "session/load" => {
            assert!(said.starts_with("edit it"), "{name}: {said}");
            assert!(said.ends_with("still there"), "{name}: {said}");
            let ends = json::tool_ends(shown, session);
            let over = |end: &String| end == "completed" || end == "failed";
            assert!(ends.len() >= 8 && ends.iter().all(over), "{name}: {ends:?}");
        }
        _ => assert_eq!(said, "", "{name}"),
    }
    // Nothing that lives on only in the client that is gone.
    for frame in shown {
        assert!(!frame.to_string().contains("terminalId"), "{name}: {frame}");
        assert!(!is_card(frame), "{name}: {frame}");
    }
    let (stop, _, seen) = client.turn("edit it");
    assert_eq!(stop, "end_turn", "{name}");
    assert_eq!(json::said(&seen, session), "done: edit it", "{name}");
    client.end();
}

/// Every client, by the name of its file.
fn profiles() -> Vec<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles");
    let files = std::fs::read_dir(folder).expect("it is there").flatten();
    let mut files: Vec<_> = files.map(|file| file.path()).collect();
    files.sort();
    let text = files
        .iter()
        .map(|file| std::fs::read_to_string(file).expect("text"));
    text.map(|text| serde_json::from_str(&text).expect("JSON"))
        .collect()
}

#[test]
fn every_profile_says_all_there_is_to_know_and_nothing_else() {
    let profiles = profiles();
    assert_eq!(profiles.len(), 9);
    let mut members: BTreeSet<_> = MEMBERS.iter().map(|(name, _)| *name).collect();
    members.insert(ENDS);
    for profile in profiles {
        let name = &profile["name"];
        let object = profile.as_object().expect("an object");
        let has: BTreeSet<_> = object.keys().map(String::as_str).collect();
        assert_eq!(has, members, "{name}");
        for (member, kinds) in MEMBERS {
            let kind = match &profile[member] {
                Value::Null => "null",
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "text",
                Value::Array(_) => "list",
                Value::Object(_) => "object",
            };
            assert!(kinds.contains(kind), "{name}: {member} is {kind}");
        }
        for (member, words) in [
            ("signs_in", &["at once", "when refused", "never"][..]),
            ("open_card", &["cancelled", "silent"]),
            ("refuses_by", &["error", "text"]),
            ("again", &["session/load", "session/resume"]),
            (ENDS, &["end of input", "termination", "kill"]),
        ] {
            let word = profile[member].as_str().expect("a word");
            assert!(words.contains(&word), "{name}: {member} is {word}");
        }
    }
}

#[test]
fn every_client_has_its_day_in_the_simulated_world() {
    for profile in profiles() {
        day(&profile, &mut Ground::simulation());
    }
}

#[test]
fn every_client_has_its_day_with_each_program() {
    for profile in profiles() {
        for program in PROGRAMS {
            day(&profile, &mut Ground::programs(program));
        }
    }
}

/// An agent without a model tells each client what is to be done, in time, and works as soon as it is
/// done: in the same process for who signs in when it is refused, in the next one for all others.
#[test]
fn a_first_start_without_a_model_tells_what_to_do() {
    for profile in profiles() {
        for program in PROGRAMS {
            let name = format!("{} {program}", profile["name"]);
            let place = Place::new();
            let patience = profile["patience_ms"].as_u64().expect("a number");
            let patience = Duration::from_millis(patience.min(20_000));
            let mut agent = Running::start(program, &place, &[]);
            let mut id = 0;
            let mut ask = |agent: &mut Running, method: &str, params: Value| {
                id += 1;
                let from = Instant::now();
                let answer = agent.ask(&json::request(id, method, params));
                assert!(from.elapsed() < patience, "{name}: {method}");
                answer
            };
            let helps = |answer: &Value| {
                let error = &answer["error"];
                assert_eq!(error["code"], -32000, "{name}: {answer}");
                let why = error["message"].as_str().unwrap_or_default();
                assert!(why.contains("reasonix setup"), "{name}: {answer}");
            };
            let hello = ask(&mut agent, "initialize", profile["initialize"].clone());
            let method = hello["result"]["authMethods"][0].clone();
            let sign_in = json!({"methodId": method["id"]});
            if profile["signs_in"] == "at once" {
                helps(&ask(&mut agent, "authenticate", sign_in.clone()));
            }
            let mut params = profile["new"].clone();
            params["cwd"] = json!(place.work());
            helps(&ask(&mut agent, "session/new", params.clone()));
            if profile["signs_in"] == "when refused" {
                // Not done yet, then done.
                helps(&ask(&mut agent, "authenticate", sign_in.clone()));
                place.configure("http://127.0.0.1:9/v1", "");
                let signed = ask(&mut agent, "authenticate", sign_in);
                assert!(signed["result"].is_object(), "{name}: {signed}");
                let opened = ask(&mut agent, "session/new", params.clone());
                assert!(
                    opened["result"]["sessionId"].is_string(),
                    "{name}: {opened}"
                );
            }
            let from = Instant::now();
            match profile["gives_up"] == true || profile[ENDS] != "end of input" {
                true => agent.terminate(),
                false => agent.close_input(),
            }
            while agent
                .next("its end", from + Duration::from_secs(10))
                .is_some()
            {}
            assert_eq!(agent.wait(from).code, Some(0), "{name}");
            place.configure("http://127.0.0.1:9/v1", "");
            let mut agent = Running::start(program, &place, &[]);
            ask(&mut agent, "initialize", profile["initialize"].clone());
            let opened = ask(&mut agent, "session/new", params);
            assert!(
                opened["result"]["sessionId"].is_string(),
                "{name}: {opened}"
            );
        }
    }
}
