//! What is shown when a session is loaded is what was shown when it was lived: the same texts and
//! thoughts under the same ids, the same calls with the same ends, diffs and plans, the same pictures,
//! subagents and compactions, in the same order. For generated sessions, shown by clients that can do
//! nothing and by those that can do all, loaded by the process that lives them and by the next.

use std::time::Duration;

use proptest::prelude::*;
use reasonix_tests::disk::{Disk, Keep, Node};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::provider::{self, Answer, Step};
use reasonix_tests::sim::{Card, Sim, config};
use reasonix_tests::world::{Command, World, http};

const HOME: &str = "/home/user/.reasonix";

/// The smallest picture there is.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// A block of a prompt.
#[derive(Clone, Debug)]
enum Block {
    Text(String),
    /// With what a client may say beside it.
    Noted(String),
    Picture,
    NotedPicture,
    /// Whose base64 has no padding.
    BarePicture,
    Link,
    Resource(String),
    /// Bytes, without padding.
    Blob,
    /// A text longer than a frame.
    Long(usize),
}

impl Block {
    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Noted(text) => json!({"type": "text", "text": text,
                "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"z": [1], "a": text}}),
            Self::Picture => json!({"type": "image", "mimeType": "image/png", "data": PICTURE}),
            Self::NotedPicture => json!({"type": "image", "mimeType": "image/png", "data": PICTURE,
                "uri": "file:///w/p.png", "annotations": {"lastModified": "2026"}, "_meta": {"n": 1}}),
            Self::BarePicture => json!({"type": "image", "mimeType": "image/png",
                "data": PICTURE.trim_end_matches('=')}),
            Self::Blob => json!({"type": "resource", "resource":
                {"uri": "file:///w/b.bin", "blob": "AAECAw"}}),
            Self::Long(characters) => {
                json!({"type": "text", "text": "lang 🙂 ".repeat(characters / 7)})
            }
            Self::Link => {
                json!({"type": "resource_link", "uri": "file:///w/a.txt", "name": "a.txt"})
            }
            Self::Resource(text) => json!({"type": "resource", "resource":
                {"uri": "file:///w/r.txt", "mimeType": "text/plain", "text": text}}),
        }
    }
}

/// An answer of the model.
#[derive(Clone, Debug)]
struct Words {
    said: Vec<(bool, String)>,
    calls: Vec<(&'static str, String)>,
    end: Ending,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    /// As it should.
    Well,
    /// It ends by this reason.
    By(&'static str),
    /// The stream breaks off.
    Cut,
    /// It goes silent, so that the turn is cancelled.
    Hang,
    /// Nothing but an error.
    Refused,
}

impl Words {
    fn answer(&self, nth: usize) -> Answer {
        if matches!(self.end, Ending::Refused) {
            let body = r#"{"error":{"message":"bad"}}"#;
            return Answer::plain(400, "application/json", body);
        }
        let mut pieces: Vec<_> = self
            .said
            .iter()
            .map(|(thought, text)| match thought {
                true => provider::reasoning(text),
                false => provider::text(text),
            })
            .collect();
        for (index, (tool, arguments)) in (0..).zip(&self.calls) {
            let id = format!("c{nth}-{index}");
            pieces.push(provider::call(index, &id, tool, arguments));
        }
        let reason = if self.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        match self.end {
            Ending::Cut => return Answer::stream(pieces).then(Step::Cut),
            Ending::Hang => return provider::hang(pieces),
            Ending::By(reason) => pieces.push(provider::finish(reason)),
            Ending::Well | Ending::Refused => pieces.push(provider::finish(reason)),
        }
        pieces.push(provider::done());
        Answer::stream(pieces)
    }
}

/// What the client does.
#[derive(Clone, Debug)]
enum Act {
    Turn {
        prompt: Vec<Block>,
        answers: Vec<Words>,
        /// What it says while the turn runs.
        steers: Vec<String>,
        /// What it puts behind the prompt.
        later: Option<String>,
        /// How it answers cards.
        card: &'static str,
    },
    Mode(&'static str),
    Option(&'static str, &'static str),
    /// It runs a command line of its own, or one of the agent's commands.
    Line(&'static str, &'static str),
    /// It has the history compacted.
    Compact(Words),
    /// It loads the session that is open.
    Load,
}

/// Every tool there is, in several ways, and calls that are none.
fn call() -> impl Strategy<Value = (&'static str, String)> {
    let calls = [
        ("read_file", json!({"path": "a.txt"})),
        ("read_file", json!({"path": "none.txt"})),
        ("ls", json!({"path": "."})),
        ("glob", json!({"pattern": "*.txt"})),
        ("grep", json!({"pattern": "beta"})),
        (
            "write_file",
            json!({"path": "new/ü.txt", "content": "eins\nzwei\n"}),
        ),
        ("write_file", json!({"path": "../out.txt", "content": "no"})),
        (
            "edit_file",
            json!({"path": "a.txt", "old_string": "alpha", "new_string": "ALPHA"}),
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "old_string": "nowhere", "new_string": ""}),
        ),
        (
            "multi_edit",
            json!({"path": "b.txt", "edits": [
            {"old_string": "one", "new_string": "uno"}, {"old_string": "two", "new_string": "due"}]}),
        ),
        (
            "move_file",
            json!({"source_path": "b.txt", "destination_path": "moved.txt"}),
        ),
        ("delete_file", json!({"path": "c.txt"})),
        (
            "notebook_edit",
            json!({"path": "n.ipynb", "cell_number": 0, "new_source": "b"}),
        ),
        ("skill", json!({"name": "none"})),
        ("bash", json!({"command": "count"})),
        ("bash", json!({"command": "unknown"})),
        ("bash", json!({"command": "sleep", "timeout_seconds": 2})),
        ("bash", json!({"command": "sleep"})),
        (
            "bash",
            json!({"command": "count", "run_in_background": true}),
        ),
        ("bash_output", json!({"job_id": "job-1"})),
        ("wait", json!({"timeout_seconds": 1})),
        ("kill_shell", json!({"job_id": "job-1"})),
        (
            "todo_write",
            json!({"todos": [
            {"content": "erst", "status": "completed"},
            {"content": "dann", "status": "in_progress", "level": 1}]}),
        ),
        ("todo_write", json!({"todos": []})),
        (
            "ask",
            json!({"questions": [{"question": "Which?", "options": [
            {"label": "this"}, {"label": "that", "description": "the other"}]}]}),
        ),
        ("ask", json!({"questions": [{"question": "What?"}]})),
        (
            "update_goal",
            json!({"status": "continue", "reason": "more", "next_action": "go on"}),
        ),
        (
            "update_goal",
            json!({"status": "complete", "reason": "done"}),
        ),
        ("complete_step", json!({"step": "erst", "result": "fertig"})),
        // What it says next are the words of the subagent.
        (
            "task",
            json!({"description": "look", "prompt": "find it", "max_steps": 3}),
        ),
        (
            "task",
            json!({"description": "read", "prompt": "read it", "read_only": true}),
        ),
        ("no_such_tool", json!({"x": 1})),
        ("read_file", json!([1])),
    ];
    let calls = calls.map(|(tool, arguments)| (tool, arguments.to_string()));
    let mut calls = Vec::from(calls);
    calls.push(("write_file", r#"{"path": "cut.txt", "con"#.into()));
    prop::sample::select(calls)
}

fn words() -> impl Strategy<Value = Words> {
    let text = "[a-zß🙂\n\\[\"\\\\ ]{1,24}";
    let long = (60_000_usize..120_000).prop_map(|size| "wört ".repeat(size / 5));
    let text = prop_oneof![40 => text.prop_map(String::from), 1 => long];
    let said = prop::collection::vec((any::<bool>(), text), 0..4);
    let ending = prop_oneof![
        12 => Just(Ending::Well),
        1 => Just(Ending::By("length")),
        1 => Just(Ending::By("content_filter")),
        1 => Just(Ending::Cut),
        1 => Just(Ending::Hang),
        1 => Just(Ending::Refused),
    ];
    let calls = prop_oneof![
        2 => Just(Vec::new()),
        4 => call().prop_map(|call| vec![call]),
        2 => prop::collection::vec(call(), 2..4),
    ];
    (said, calls, ending).prop_map(|(said, calls, end)| Words { said, calls, end })
}

fn act() -> impl Strategy<Value = Act> {
    let block = prop_oneof![
        6 => "[a-zß🙂@./ ]{0,12}x".prop_map(Block::Text),
        2 => "[a-z ]{0,8}x".prop_map(Block::Noted),
        1 => Just(Block::Picture),
        1 => Just(Block::NotedPicture),
        1 => Just(Block::BarePicture),
        1 => Just(Block::Blob),
        1 => Just(Block::Link),
        1 => "[a-z<>&\n ]{0,12}".prop_map(Block::Resource),
        1 => (60_000_usize..200_000).prop_map(Block::Long),
    ];
    let turn = (
        prop::collection::vec(block, 1..4),
        prop::collection::vec(words(), 0..5),
        prop::collection::vec("[a-z ]{0,8}s", 0..2),
        prop::option::weighted(0.2, "[a-z ]{0,8}q"),
        prop::sample::select(vec![
            "allow_once",
            "allow_once",
            "allow_always",
            "reject_once",
        ]),
    );
    prop_oneof![
        8 => turn.prop_map(|(prompt, answers, steers, later, card)| {
            Act::Turn { prompt, answers, steers, later, card }
        }),
        1 => prop::sample::select(vec!["plan", "goal", "normal"]).prop_map(Act::Mode),
        1 => prop::sample::select(vec![
            ("tool_approval", "auto"), ("tool_approval", "ask"),
            ("agent_preset", "delivery"), ("agent_preset", "light"), ("agent_preset", "balanced"),
        ]).prop_map(|(option, value)| Act::Option(option, value)),
        1 => (
            prop::sample::select(vec![
                "!count", "! unknown\nline", "!", "/status", "/permissions", "/goal sow", "/none",
            ]),
            prop::sample::select(vec!["allow_once", "reject_once"]),
        ).prop_map(|(line, card)| Act::Line(line, card)),
        1 => words().prop_map(Act::Compact),
        1 => Just(Act::Load),
    ]
}

/// What a client has in its window: a line a message, a call, the end of a call, a plan.
#[derive(Default)]
pub(crate) struct Window {
    lines: Vec<(String, Value)>,
    message: Value,
}

impl Window {
    /// The client shows what the person said by itself.
    fn prompt(&mut self, blocks: &[Block]) {
        self.message = Value::Null;
        for block in blocks {
            self.chunk("user_message_chunk", &json!("typed"), block.json());
        }
        self.message = Value::Null;
    }

    /// Texts of one message that follow each other are one, in however many pieces they come.
    fn chunk(&mut self, kind: &str, id: &Value, content: Value) {
        let message = json!([kind, id]);
        // Who typed a message sees no id of it.
        let kind = match id.as_str() {
            Some(id) if kind != "user_message_chunk" => format!("{kind} {id}"),
            Some(_) | None => kind.into(),
        };
        let text = content["text"].as_str();
        let plain =
            content["type"] == "text" && content.as_object().is_some_and(|it| it.len() == 2);
        let text = text.filter(|_| plain).map(String::from);
        if let (Some((last, Value::String(line))), Some(text)) = (self.lines.last_mut(), &text)
            && *last == kind
            && self.message == message
        {
            line.push_str(text);
            return;
        }
        self.message = message;
        self.lines.push((kind, text.map_or(content, Value::String)));
    }

    fn hear(&mut self, frame: &Value) {
        let Some(update) = json::update(frame, "") else {
            return;
        };
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        match kind {
            "user_message_chunk" => {
                self.chunk(kind, &update["messageId"], update["content"].clone());
            }
            "agent_message_chunk" | "agent_thought_chunk" => {
                let content = update["content"].clone();
                if update["messageId"].is_null() {
                    self.message = Value::Null;
                }
                self.chunk(kind, &update["messageId"], content);
            }
            "tool_call"
            | "plan"
            | "plan_update"
            | "plan_removed"
            | "subagent_update"
            | "session_message"
            | "compaction_summary_chunk" => self.lines.push((kind.into(), update.clone())),
            // That one was tried is gone when nothing came of it.
            "compaction_update" if update["status"] != "completed" => {}
            "compaction_update" => self.lines.push((kind.into(), update.clone())),
            // What a call does on its way is gone when it has ended.
            "tool_call_update" if !ends(update) => {}
            "tool_call_update" => self.lines.push((kind.into(), update.clone())),
            // How the session stands, not what was said in it.
            _ => {}
        }
    }

    /// What is in it after these frames.
    pub(crate) fn of(frames: &[Value]) -> Vec<(String, Value)> {
        let mut window = Self::default();
        frames.iter().for_each(|frame| window.hear(frame));
        window.lines
    }
}

fn ends(update: &Value) -> bool {
    update["status"] == "completed" || update["status"] == "failed"
}

/// Who shows the session.
#[derive(Clone, Copy, Debug)]
struct Client {
    /// It takes all that a client can ask for.
    all: bool,
    /// Messages after which the history is compacted; its summary is what the model says then.
    most: usize,
}

fn begin(disk: Disk, seed: u8, client: Client) -> Sim {
    let mut config = config();
    config.ephemeral = false;
    config.seed = [seed; 32];
    config.limits.max_history = client.most;
    let command = |contains: &str, takes| Command {
        contains: contains.into(),
        output: "gezählt\n".as_bytes().to_vec(),
        takes,
        code: 0,
    };
    let mut world = World::on(disk);
    world.commands = vec![
        command("count", Some(Duration::from_millis(50))),
        command("sleep", None),
    ];
    let mut sim = Sim::new(config, world);
    let capabilities = match client.all {
        true => json!({"plan": {}, "subagents": {}, "session": {"notices": {}, "compaction": {}}}),
        false => json!({}),
    };
    sim.ask(&json::initialize_with(9001, capabilities));
    sim
}

/// One session, as it is lived.
struct Life {
    sim: Sim,
    session: String,
    id: u64,
    window: Window,
    heard: usize,
    answers: usize,
    client: Client,
}

impl Life {
    fn begin(client: Client) -> Self {
        let files = [
            ("a.txt", "alpha\nbeta\n"),
            ("b.txt", "one two\n"),
            ("c.txt", ""),
            (
                "n.ipynb",
                r#"{"cells":[{"cell_type":"code","metadata":{},"source":"a"}],"nbformat":4}"#,
            ),
        ];
        let mut disk = Disk::with_files("/w", &files);
        disk.put(HOME, Node::Dir);
        let mut sim = begin(disk, 7, client);
        let session = sim.open_another(9002, "/w");
        Self {
            heard: sim.frames.len(),
            sim,
            session,
            id: 0,
            window: Window::default(),
            answers: 0,
            client,
        }
    }

    fn on(&mut self, method: &str, mut params: Value) -> Value {
        self.id += 1;
        params["sessionId"] = json!(self.session);
        json::request(self.id, method, params)
    }

    /// Takes in what was heard.
    fn hear(&mut self) {
        for frame in &self.sim.frames[self.heard..] {
            self.window.hear(frame);
        }
        self.heard = self.sim.frames.len();
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Turn {
                prompt,
                answers,
                steers,
                later,
                card,
            } => {
                self.turn(prompt, answers, steers, later.as_deref(), card);
            }
            Act::Mode(mode) => {
                let request = self.on("session/set_mode", json!({"modeId": mode}));
                self.sim.ask(&request);
            }
            Act::Option(option, value) => {
                let params = json!({"configId": option, "value": value});
                let request = self.on("session/set_config_option", params);
                self.sim.ask(&request);
            }
            Act::Line(line, card) => {
                self.turn(&[Block::Text((*line).into())], &[], &[], None, card);
            }
            Act::Compact(words) => {
                let answers = [words.clone()];
                self.turn(
                    &[Block::Text("/compact".into())],
                    &answers,
                    &[],
                    None,
                    "allow_once",
                );
            }
            Act::Load => {
                self.hear();
                let request = self.on("session/load", json!({"cwd": "/w", "mcpServers": []}));
                self.sim.ask(&request);
                let again = Window::of(&self.sim.frames[self.heard..]);
                assert_eq!(self.window.lines, again, "loaded while it is open");
                self.heard = self.sim.frames.len();
            }
        }
    }

    fn turn(
        &mut self,
        prompt: &[Block],
        answers: &[Words],
        steers: &[String],
        later: Option<&str>,
        card: &'static str,
    ) {
        self.sim.cards = vec![Card::Choose(card)];
        self.sim.world.answers = answers
            .iter()
            .map(|words| {
                self.answers += 1;
                http(&words.answer(self.answers))
            })
            .collect();
        self.hear();
        self.window.prompt(prompt);
        let blocks: Vec<_> = prompt.iter().map(Block::json).collect();
        let request = self.on("session/prompt", json!({"prompt": blocks}));
        let id = self.id;
        self.sim.send(&request);
        for steer in steers {
            let blocks = json!({"prompt": [{"type": "text", "text": steer}]});
            let request = self.on("_reasonix.io/session/steer", blocks);
            self.sim.send(&request);
        }
        if let Some(text) = later {
            let request = self.on("_reasonix.io/session/inbox/enqueue", json!({"text": text}));
            self.sim.send(&request);
        }
        self.sim.run_for(Duration::from_secs(20));
        if json::answer_to(&self.sim.frames, id).is_none() {
            self.sim.send(&json::cancel(&self.session));
            self.sim.answer(id);
        }
        self.hear();
    }

    /// The next process shows what this one showed.
    fn end(mut self) {
        self.act(&Act::Load);
        self.sim.finish();
        self.sim.laws.check();
        let disk = self.sim.world.disk.after_crash(true, |_| Keep::All);
        let mut next = begin(disk, 8, self.client);
        let from = next.frames.len();
        let params = json!({"sessionId": self.session, "cwd": "/w", "mcpServers": []});
        let answer = next.ask(&json::request(1, "session/load", params));
        if self
            .window
            .lines
            .iter()
            .any(|(kind, _)| kind == "user_message_chunk")
        {
            assert!(answer.get("result").is_some(), "{answer}");
        }
        let frames: Vec<_> = next.frames[from..]
            .iter()
            .filter(|frame| {
                let update = json::update(frame, "");
                update.is_none_or(|it| it["_meta"]["reasonix.io"]["notice"].is_null())
            })
            .cloned()
            .collect();
        assert_eq!(
            self.window.lines,
            Window::of(&frames),
            "loaded by the next process"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_load_shows_what_was_shown(
        acts in prop::collection::vec(act(), 1..7),
        all in any::<bool>(),
        most in prop::sample::select(vec![8, 16, 1000]),
    ) {
        let mut life = Life::begin(Client { all, most });
        for act in &acts {
            life.act(act);
        }
        life.end();
    }
}

#[test]
fn a_load_shows_a_subagent_as_it_worked() {
    let say = |text: &str| Words {
        said: vec![(false, text.into())],
        calls: Vec::new(),
        end: Ending::Well,
    };
    let call = |tool: &'static str, arguments: Value| Words {
        said: vec![(true, "hm".into())],
        calls: vec![(tool, arguments.to_string())],
        end: Ending::Well,
    };
    let task = || call("task", json!({"description": "look", "prompt": "find it"}));
    let ls = || call("ls", json!({"path": "."}));
    let hang = Words {
        end: Ending::Hang,
        ..say("h")
    };
    for all in [false, true] {
        let mut life = Life::begin(Client { all, most: 1000 });
        for answers in [
            vec![task(), ls(), say("found"), say("done")],
            // One that is cancelled while its subagent works.
            vec![task(), ls(), hang.clone()],
        ] {
            life.act(&Act::Turn {
                prompt: vec![Block::Text("go".into())],
                answers,
                steers: Vec::new(),
                later: None,
                card: "allow_once",
            });
        }
        let kinds = |kind: &str| {
            let lines = life.window.lines.iter();
            lines.filter(|(line, _)| line == kind).count()
        };
        let told = usize::from(all);
        assert_eq!(kinds("tool_call"), 4);
        assert_eq!(kinds("subagent_update"), 4 * told);
        assert_eq!(kinds("session_message"), 4 * told);
        life.end();
    }
}

#[test]
fn a_load_shows_a_compaction_as_it_was_shown() {
    let say = |text: &str| Words {
        said: vec![(false, text.into())],
        calls: Vec::new(),
        end: Ending::Well,
    };
    for all in [false, true] {
        let mut life = Life::begin(Client { all, most: 1000 });
        for text in ["one", "two", "three", "four", "five", "six"] {
            life.act(&Act::Turn {
                prompt: vec![Block::Text(text.into())],
                answers: vec![say("done")],
                steers: Vec::new(),
                later: None,
                card: "allow_once",
            });
        }
        life.act(&Act::Compact(say("all of it")));
        let shown = |(kind, line): &(String, Value)| match all {
            true => kind == "compaction_update",
            false => line.to_string().contains("[compacted "),
        };
        assert!(
            life.window.lines.iter().any(shown),
            "{:#?}",
            life.window.lines
        );
        life.end();
    }
}
