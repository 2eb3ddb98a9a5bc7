//! What the client does, step by step, and the world that it does it in.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use reasonix_tests::disk::{Disk, Node};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::provider::{
    Answer, Step, calls, data, done, finish, hang, reasoning, say, text, tool,
};
use reasonix_tests::sim::{Card, Moment, Sim, config};
use reasonix_tests::world::{Command, Piece, World, http};

pub(super) const HOME: &str = "/home/user/.reasonix";

/// What the model does, by what the prompt contains.
pub(super) fn branches() -> Vec<(&'static str, Vec<Answer>)> {
    let bash = |id: &str, command: &str| tool(id, "bash", json!({"command": command}));
    vec![
        (
            "reach",
            vec![
                tool(
                    "g1",
                    "update_goal",
                    json!({"status": "continue", "reason": "mehr", "next_action": "reach on"}),
                ),
                say("not yet"),
                tool(
                    "g2",
                    "update_goal",
                    json!({"status": "blocked", "reason": "größer"}),
                ),
                say("blocked"),
            ],
        ),
        ("count-a", vec![bash("qa", "count-a"), say("counted a")]),
        ("count-z", vec![bash("qz", "count-z"), say("counted z")]),
        ("steerable", vec![bash("qs", "count-s"), say("not steered")]),
        ("guidance", vec![say("guided")]),
        ("say", vec![say("grüße 🙂")]),
        (
            "think",
            vec![Answer::stream([
                reasoning("hm, ß"),
                text("yes"),
                finish("stop"),
                done(),
            ])],
        ),
        ("hang", vec![hang([text("part of it")])]),
        (
            "look",
            vec![
                calls(&[
                    ("r1", "read_file", r#"{"path":"a.txt"}"#),
                    ("r2", "ls", r#"{"path":"."}"#),
                ]),
                say("looked"),
            ],
        ),
        (
            "write",
            vec![
                tool("w", "write_file", json!({"path": "n.txt", "content": "nü"})),
                say("wrote"),
            ],
        ),
        (
            "edit",
            vec![
                tool("r", "read_file", json!({"path": "a.txt"})),
                tool(
                    "e",
                    "edit_file",
                    json!({"path": "a.txt", "old_string": "beta", "new_string": "βeta"}),
                ),
                say("edited"),
            ],
        ),
        (
            "test",
            vec![
                bash("b1", "count one"),
                bash("b2", "count two"),
                say("tested"),
            ],
        ),
        ("sleep", vec![bash("s", "sleep"), say("slept")]),
        (
            "plan",
            vec![
                tool(
                    "p",
                    "todo_write",
                    json!({"todos": [{"content": "ein Stück", "status": "in_progress"}]}),
                ),
                say("planned"),
            ],
        ),
        (
            "fail",
            vec![Answer::plain(
                400,
                "application/json",
                r#"{"error":{"message":"bad"}}"#,
            )],
        ),
        (
            "flaky",
            vec![Answer::stream([text("half")]).then(Step::Cut), say("whole")],
        ),
        (
            "delegate",
            vec![
                tool(
                    "k",
                    "task",
                    json!({"description": "schau", "prompt": "subtask: look"}),
                ),
                say("delegated"),
            ],
        ),
        ("subtask", vec![say("hätte nichts gefunden")]),
        ("Summarize the conversation", vec![say("alles bisher")]),
        ("fill the window", vec![full("voll")]),
    ]
}

/// An answer after which the model's window is full.
pub(super) fn full(words: &str) -> Answer {
    let usage = json!({"prompt_tokens": 120_000, "completion_tokens": 9, "total_tokens": 120_009});
    let usage = data(&json!({"choices": [], "usage": usage}));
    Answer::stream([text(words), finish("stop"), usage, done()])
}

/// A world on this disk, as every process finds it.
pub(super) fn world(disk: Disk) -> World {
    let command = |contains: &str, takes| Command {
        contains: contains.into(),
        output: b"counted\n".to_vec(),
        takes,
        code: 0,
    };
    let mut world = World::on(disk);
    world.commands = vec![
        command("count", Some(Duration::from_millis(50))),
        command("sleep", None),
    ];
    // Thousands of processes find the same.
    static BRANCHES: LazyLock<Vec<(String, Vec<Vec<Piece>>)>> = LazyLock::new(|| {
        let pieces = |answers: Vec<Answer>| answers.iter().map(http).collect();
        let all = branches().into_iter();
        all.map(|(contains, answers)| (contains.into(), pieces(answers)))
            .collect()
    });
    world.branches = BRANCHES.clone();
    world
}

/// A process on this disk.
pub(super) fn begin(disk: Disk, seed: u8) -> Sim {
    let mut config = config();
    config.ephemeral = false;
    config.seed = [seed; 32];
    Sim::new(config, world(disk))
}

/// What the client asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) id: u64,
    /// How many lines it had sent with it.
    pub(super) sent: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A new session, the n-th.
    New(usize),
    Prompt {
        session: usize,
        text: String,
    },
    Option {
        session: usize,
        value: String,
    },
    Close(usize),
    Delete(usize),
    /// The n-th message for later, in its session.
    Put {
        session: usize,
        item: usize,
    },
    /// Its text becomes another.
    Change(usize),
    Drop(usize),
    /// Something else that an inbox is asked for.
    Inbox,
    Other,
}

impl What {
    pub(super) fn session(&self) -> Option<usize> {
        match self {
            Self::New(session)
            | Self::Prompt { session, .. }
            | Self::Option { session, .. }
            | Self::Close(session)
            | Self::Put { session, .. }
            | Self::Delete(session) => Some(*session),
            Self::Change(_) | Self::Drop(_) | Self::Inbox | Self::Other => None,
        }
    }
}

/// A client that does its script, and what it was told on the way.
pub(super) struct Life {
    pub(super) sim: Sim,
    pub(super) asked: Vec<Asked>,
    pub(super) sessions: Vec<String>,
    pub(super) items: Vec<Item>,
    /// Which frame answers a request, when all is over.
    pub(super) answers: OnceCell<BTreeMap<u64, usize>>,
}

/// A message for later.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) session: usize,
    pub(super) id: String,
    /// Its text, and the one it was given later.
    pub(super) texts: Vec<&'static str>,
}

impl Item {
    pub(super) fn is(&self, text: &str) -> bool {
        self.texts.contains(&text)
    }
}

impl Life {
    pub(super) fn ask(&mut self, what: What, method: &str, params: Value) -> u64 {
        let id = self.asked.len() as u64 + 1;
        self.sim.send(&json::request(id, method, params));
        let sent = self.sim.sent();
        self.asked.push(Asked { id, sent, what });
        id
    }

    pub(super) fn new_session(&mut self) -> usize {
        self.session_in(json!([]))
    }

    /// One with folders beside its working directory.
    pub(super) fn session_in(&mut self, directories: Value) -> usize {
        let nth = self.sessions.len();
        let params = json!({"cwd": "/w", "mcpServers": [], "additionalDirectories": directories});
        let id = self.ask(What::New(nth), "session/new", params);
        let answer = self.sim.answer(id);
        let session = answer["result"]["sessionId"].as_str();
        self.sessions.push(session.expect("a session opens").into());
        nth
    }

    pub(super) fn on(&self, session: usize, mut params: Value) -> Value {
        params["sessionId"] = json!(self.sessions[session]);
        params
    }

    pub(super) fn prompt(&mut self, session: usize, text: &str) -> u64 {
        let block = json!({"prompt": [{"type": "text", "text": text}]});
        let params = self.on(session, block);
        let text = text.into();
        self.ask(What::Prompt { session, text }, "session/prompt", params)
    }

    pub(super) fn turn(&mut self, session: usize, text: &str) -> Value {
        let id = self.prompt(session, text);
        self.sim.answer(id)
    }

    pub(super) fn option(&mut self, session: usize, option: &str, value: &str) {
        let params = self.on(session, json!({"configId": option, "value": value}));
        let value = format!("{option}={value}");
        let id = self.ask(
            What::Option { session, value },
            "session/set_config_option",
            params,
        );
        let answer = self.sim.answer(id);
        assert!(answer.get("result").is_some(), "{answer}");
    }

    pub(super) fn plain(&mut self, what: What, method: &str, params: Value) -> Value {
        let id = self.ask(what, method, params);
        let answer = self.sim.answer(id);
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    pub(super) fn inbox(
        &mut self,
        session: usize,
        what: What,
        method: &str,
        params: Value,
    ) -> Value {
        let params = self.on(session, params);
        let method = format!("_reasonix.io/session/inbox/{method}");
        self.plain(what, &method, params)
    }

    pub(super) fn put(&mut self, session: usize, text: &'static str, intent: &str) -> usize {
        let item = self.items.len();
        let params = json!({"text": text, "intent": intent, "idempotencyKey": format!("k{item}")});
        let result = self.inbox(session, What::Put { session, item }, "enqueue", params);
        self.remember(session, text, &result)
    }

    pub(super) fn steer(&mut self, session: usize, text: &'static str) -> usize {
        let item = self.items.len();
        let params = self.on(session, json!({"prompt": [{"type": "text", "text": text}]}));
        let what = What::Put { session, item };
        let result = self.plain(what, "_reasonix.io/session/steer", params);
        self.remember(session, text, &result)
    }

    pub(super) fn remember(&mut self, session: usize, text: &'static str, result: &Value) -> usize {
        let id = result["itemId"].as_str().expect("an item has an id").into();
        let texts = vec![text];
        self.items.push(Item { session, id, texts });
        self.items.len() - 1
    }

    /// A session whose prompts have others behind them.
    pub(super) fn with_inbox(&mut self) {
        let four = self.new_session();
        let a = self.put(four, "count-a, später", "");
        let b = self.put(four, "say queued b", "");
        let c = self.put(four, "think about c", "");
        let d = self.put(four, "say queued d", "");
        let id = |life: &Self, item: usize| json!(life.items[item].id);
        let params = json!({"itemId": id(self, c), "toIndex": 0});
        self.inbox(four, What::Inbox, "move", params);
        let params = json!({"itemId": id(self, d)});
        self.inbox(four, What::Drop(d), "delete", params);
        self.items[b].texts.push("say queued b, anew");
        let params = json!({"itemId": id(self, b), "text": "say queued b, anew"});
        self.inbox(four, What::Change(b), "update", params);
        self.inbox(four, What::Inbox, "setPaused", json!({"paused": true}));
        self.turn(four, "say first");
        self.inbox(four, What::Inbox, "setPaused", json!({"paused": false}));
        self.turn(four, "say second");
        for item in [a, b, c] {
            let text = *self.items[item].texts.last().expect("it has one");
            let heard = |frame: &Value| frame.to_string().contains(text);
            assert!(self.sim.frames.iter().any(heard), "{text} had its turn");
        }
        // Guidance that is heard, and guidance that is kept.
        let id = self.prompt(four, "steerable now");
        self.until_ran("count-s");
        self.steer(four, "guidance: weiter");
        self.sim.answer(id);
        let id = self.prompt(four, "sleep until more");
        let slept = self
            .sim
            .world
            .ran
            .iter()
            .filter(|line| *line == "sleep")
            .count();
        self.sim.until("the command", |sim| {
            sim.world.ran.iter().filter(|line| *line == "sleep").count() > slept
        });
        self.steer(four, "say kept guidance");
        self.put(four, "say kept too", "steer");
        let cancel = json::cancel(&self.sessions[four]);
        self.sim.send(&cancel);
        assert_eq!(self.sim.answer(id)["result"]["stopReason"], "cancelled");
        self.turn(four, "say third");
        self.put(four, "count-z, last of all", "");
    }

    pub(super) fn until_ran(&mut self, command: &str) {
        self.sim.until(command, |sim| {
            sim.world.ran.iter().any(|line| line == command)
        });
    }
}

/// A process at its beginning, from where on every moment is kept.
pub(super) fn newborn() -> Life {
    let mut disk = Disk::with_files("/w", &[("a.txt", "alpha\nbeta\n")]);
    disk.put(HOME, Node::Dir);
    disk.put("/more", Node::Dir);
    let mut sim = begin(disk, 7);
    sim.cards = vec![Card::Choose("allow_once")];
    sim.ask(&json::initialize(9001));
    sim.moments = Some(Vec::new());
    Life {
        sim,
        asked: Vec::new(),
        sessions: Vec::new(),
        items: Vec::new(),
        answers: OnceCell::new(),
    }
}

/// One session with the kinds of records that the long script has not.
pub(super) fn rare_life() -> (Life, Vec<Moment>) {
    let mut life = newborn();
    let one = life.session_in(json!(["/more"]));
    for nth in 0..6 {
        life.turn(one, &format!("say {nth}"));
    }
    life.turn(one, "fill the window");
    life.turn(one, "say it in short");
    life.option(one, "agent_preset", "delivery");
    life.turn(one, "write and do not check");
    life.option(one, "mode", "goal");
    life.turn(one, "reach it");
    life.turn(one, "/status");
    life.turn(one, "delegate it");
    life.option(one, "mode", "normal");
    life.turn(one, "say the end");
    let moments = life.sim.moments.take().expect("they were wanted");
    life.sim.finish();
    life.sim.laws.check();
    (life, moments)
}

/// The script, once, with every moment kept.
pub(super) fn life() -> (Life, Vec<Moment>) {
    let mut life = newborn();
    let one = life.new_session();
    life.turn(one, "say it: größer");
    life.option(one, "tool_approval", "auto");
    life.turn(one, "write a file");
    life.turn(one, "edit a file");
    life.turn(one, "test it");
    let two = life.new_session();
    let both = [
        life.prompt(one, "look around"),
        life.prompt(two, "test this too"),
    ];
    for id in both {
        life.sim.answer(id);
    }
    life.option(one, "agent_preset", "light");
    life.turn(one, "plan it");
    let hung = life.prompt(one, "hang on");
    life.sim.until("some of it", |sim| {
        json::said(&sim.frames, "").contains("part of it")
    });
    let cancel = json::cancel(&life.sessions[one]);
    life.sim.send(&cancel);
    assert_eq!(life.sim.answer(hung)["result"]["stopReason"], "cancelled");
    let slept = life.prompt(one, "sleep well");
    life.until_ran("sleep");
    life.sim.send(&cancel);
    assert_eq!(life.sim.answer(slept)["result"]["stopReason"], "cancelled");
    life.turn(one, "fail now");
    life.turn(two, "think");
    life.turn(one, "flaky lines");
    life.plain(What::Other, "session/list", json!({}));
    let params = life.on(two, json!({}));
    life.plain(What::Close(two), "session/close", params);
    let params = life.on(two, json!({"cwd": "/w", "mcpServers": []}));
    life.plain(What::Other, "session/resume", params);
    life.turn(two, "say it again");
    let three = life.new_session();
    life.turn(three, "write for nothing");
    let params = life.on(three, json!({}));
    life.plain(What::Delete(three), "session/delete", params);
    life.with_inbox();
    life.new_session();
    life.turn(one, "think at last");
    let moments = life.sim.moments.take().expect("they were wanted");
    life.sim.finish();
    life.sim.laws.check();
    (life, moments)
}
