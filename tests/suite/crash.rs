//! A process that dies between any two effects, and a power that fails there: what the next process
//! finds on the disk is what the client was told, no more is done twice, and the model hears a
//! history that is well formed. Not sampled: every moment of a long script, each with all that a
//! crash may leave.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use reasonix_tests::disk::{Disk, Keep, Node};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::provider::{
    Answer, Step, calls, data, done, finish, hang, reasoning, say, text, tool,
};
use reasonix_tests::sim::{Card, Moment, Sim, config};
use reasonix_tests::world::{Command, World, http};

use crate::cases::well_formed;

const HOME: &str = "/home/user/.reasonix";

/// What the model does, by what the prompt contains.
fn branches() -> Vec<(&'static str, Vec<Answer>)> {
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
        ("Summarize the conversation", vec![say("alles bisher")]),
        ("fill the window", vec![full("voll")]),
    ]
}

/// An answer after which the model's window is full.
fn full(words: &str) -> Answer {
    let usage = json!({"prompt_tokens": 120_000, "completion_tokens": 9, "total_tokens": 120_009});
    let usage = data(&json!({"choices": [], "usage": usage}));
    Answer::stream([text(words), finish("stop"), usage, done()])
}

/// A world on this disk, as every process finds it.
fn world(disk: Disk) -> World {
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
    world.branches = branches()
        .into_iter()
        .map(|(contains, answers)| (contains.into(), answers.iter().map(http).collect()))
        .collect();
    world
}

/// A process on this disk.
fn begin(disk: Disk, seed: u8) -> Sim {
    let mut config = config();
    config.ephemeral = false;
    config.seed = [seed; 32];
    Sim::new(config, world(disk))
}

/// What the client asked for.
#[derive(Clone, Debug)]
struct Asked {
    id: u64,
    /// How many lines it had sent with it.
    sent: usize,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
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
    fn session(&self) -> Option<usize> {
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
struct Life {
    sim: Sim,
    asked: Vec<Asked>,
    sessions: Vec<String>,
    items: Vec<Item>,
}

/// A message for later.
#[derive(Clone, Debug)]
struct Item {
    session: usize,
    id: String,
    /// Its text, and the one it was given later.
    texts: Vec<&'static str>,
}

impl Item {
    fn is(&self, text: &str) -> bool {
        self.texts.contains(&text)
    }
}

impl Life {
    fn ask(&mut self, what: What, method: &str, params: Value) -> u64 {
        let id = self.asked.len() as u64 + 1;
        self.sim.send(&json::request(id, method, params));
        let sent = self.sim.sent();
        self.asked.push(Asked { id, sent, what });
        id
    }

    fn new_session(&mut self) -> usize {
        let nth = self.sessions.len();
        let params = json!({"cwd": "/w", "mcpServers": []});
        let id = self.ask(What::New(nth), "session/new", params);
        let answer = self.sim.answer(id);
        let session = answer["result"]["sessionId"].as_str();
        self.sessions.push(session.expect("a session opens").into());
        nth
    }

    fn on(&self, session: usize, mut params: Value) -> Value {
        params["sessionId"] = json!(self.sessions[session]);
        params
    }

    fn prompt(&mut self, session: usize, text: &str) -> u64 {
        let block = json!({"prompt": [{"type": "text", "text": text}]});
        let params = self.on(session, block);
        let text = text.into();
        self.ask(What::Prompt { session, text }, "session/prompt", params)
    }

    fn turn(&mut self, session: usize, text: &str) -> Value {
        let id = self.prompt(session, text);
        self.sim.answer(id)
    }

    fn option(&mut self, session: usize, option: &str, value: &str) {
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

    fn plain(&mut self, what: What, method: &str, params: Value) -> Value {
        let id = self.ask(what, method, params);
        let answer = self.sim.answer(id);
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn inbox(&mut self, session: usize, what: What, method: &str, params: Value) -> Value {
        let params = self.on(session, params);
        let method = format!("_reasonix.io/session/inbox/{method}");
        self.plain(what, &method, params)
    }

    fn put(&mut self, session: usize, text: &'static str, intent: &str) -> usize {
        let item = self.items.len();
        let params = json!({"text": text, "intent": intent, "idempotencyKey": format!("k{item}")});
        let result = self.inbox(session, What::Put { session, item }, "enqueue", params);
        self.remember(session, text, &result)
    }

    fn steer(&mut self, session: usize, text: &'static str) -> usize {
        let item = self.items.len();
        let params = self.on(session, json!({"prompt": [{"type": "text", "text": text}]}));
        let what = What::Put { session, item };
        let result = self.plain(what, "_reasonix.io/session/steer", params);
        self.remember(session, text, &result)
    }

    fn remember(&mut self, session: usize, text: &'static str, result: &Value) -> usize {
        let id = result["itemId"].as_str().expect("an item has an id").into();
        let texts = vec![text];
        self.items.push(Item { session, id, texts });
        self.items.len() - 1
    }

    /// A session whose prompts have others behind them.
    fn with_inbox(&mut self) {
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

    fn until_ran(&mut self, command: &str) {
        self.sim.until(command, |sim| {
            sim.world.ran.iter().any(|line| line == command)
        });
    }
}

/// A process at its beginning, from where on every moment is kept.
fn newborn() -> Life {
    let mut disk = Disk::with_files("/w", &[("a.txt", "alpha\nbeta\n")]);
    disk.put(HOME, Node::Dir);
    let mut sim = begin(disk, 7);
    sim.cards = vec![Card::Choose("allow_once")];
    sim.ask(&json::initialize(9001));
    sim.moments = Some(Vec::new());
    Life {
        sim,
        asked: Vec::new(),
        sessions: Vec::new(),
        items: Vec::new(),
    }
}

/// One session with the kinds of records that the long script has not.
fn rare_life() -> (Life, Vec<Moment>) {
    let mut life = newborn();
    let one = life.new_session();
    for nth in 0..6 {
        life.turn(one, &format!("say {nth}"));
    }
    life.turn(one, "fill the window");
    life.turn(one, "say it in short");
    life.option(one, "agent_preset", "delivery");
    life.turn(one, "write and do not check");
    life.option(one, "mode", "goal");
    life.turn(one, "reach it");
    life.option(one, "mode", "normal");
    life.turn(one, "say the end");
    let moments = life.sim.moments.take().expect("they were wanted");
    life.sim.finish();
    life.sim.laws.check();
    (life, moments)
}

/// The script, once, with every moment kept.
fn life() -> (Life, Vec<Moment>) {
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

/// What the client knew at a moment.
struct Known<'a> {
    life: &'a Life,
    /// How many commands had been started.
    ran: usize,
    /// Requests it had sent, and whether they were answered.
    asked: Vec<(&'a Asked, Option<&'a Value>)>,
}

impl<'a> Known<'a> {
    fn at(life: &'a Life, moment: &Moment) -> Self {
        let frames = &life.sim.frames[..moment.frames];
        let answer = |asked: &Asked| json::answer_to(frames, asked.id);
        Self {
            life,
            ran: moment.ran,
            asked: life
                .asked
                .iter()
                .filter(|asked| asked.sent <= moment.sent)
                .map(|asked| (asked, answer(asked)))
                .collect(),
        }
    }

    fn answered(&self, what: impl Fn(&What) -> bool) -> usize {
        let answered =
            |(asked, answer): &&(&Asked, Option<&Value>)| answer.is_some() && what(&asked.what);
        self.asked.iter().filter(answered).count()
    }

    fn sent(&self, what: impl Fn(&What) -> bool) -> bool {
        self.asked.iter().any(|(asked, _)| what(&asked.what))
    }

    /// Sessions whose making was answered, by place and id.
    fn sessions(&self) -> Vec<(usize, &'a str)> {
        let made = self.answered(|what| matches!(what, What::New(_)));
        let ids = self.life.sessions[..made].iter();
        ids.map(String::as_str).enumerate().collect()
    }

    /// The texts of a session's prompts that were answered.
    fn prompts(&self, session: usize) -> Vec<&'a str> {
        let text = |(asked, answer): &(&'a Asked, Option<&Value>)| match &asked.what {
            What::Prompt { session: of, text } if *of == session && answer.is_some() => {
                Some(text.as_str())
            }
            _ => None,
        };
        self.asked.iter().filter_map(text).collect()
    }

    /// The first of a session's prompts that was not answered, sent or not.
    fn open_prompt(&self, session: usize) -> Option<&'a str> {
        let answered = self.prompts(session).len();
        let mut all = self
            .life
            .asked
            .iter()
            .filter_map(|asked| match &asked.what {
                What::Prompt { session: of, text } if *of == session => Some(text.as_str()),
                _ => None,
            });
        all.nth(answered)
    }

    /// Values of an option that may hold: the last that was answered, and any asked for since.
    fn options(&self, session: usize, option: &str) -> Vec<&'a str> {
        let mut may = Vec::new();
        for (asked, answer) in &self.asked {
            if let What::Option { session: of, value } = &asked.what
                && *of == session
                && let Some(value) = value.strip_prefix(&format!("{option}="))
            {
                if answer.is_some() {
                    may.clear();
                }
                may.push(value);
            }
        }
        may
    }
}

/// A replay in words: one line an item, chunks of one message joined, ids left out.
fn picture(frames: &[Value], session: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut titles: BTreeMap<String, String> = BTreeMap::new();
    let mut message = Value::Null;
    for update in frames
        .iter()
        .filter_map(|frame| json::update(frame, session))
    {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        if !update["_meta"]["reasonix.io"]["notice"].is_null() {
            continue;
        }
        if kind.ends_with("_chunk") {
            let text = update["content"]["text"].as_str().unwrap_or_default();
            let id = json!([kind, update["messageId"]]);
            match lines.last_mut() {
                Some(line) if id == message && !update["messageId"].is_null() => {
                    line.push_str(text);
                }
                _ => lines.push(format!("{kind} {text}")),
            }
            message = id;
            continue;
        }
        message = Value::Null;
        match kind {
            "tool_call" | "tool_call_update" => {
                let id = update["toolCallId"].to_string();
                if let Some(title) = update["title"].as_str() {
                    titles.insert(id.clone(), title.into());
                }
                let title = titles.get(&id).map_or("?", String::as_str);
                let content = update["content"].to_string();
                lines.push(format!("{kind} {title} {} {content}", update["status"]));
            }
            "plan" => lines.push(format!("plan {}", update["entries"])),
            // What is told when a session opens is not of its history.
            _ => {}
        }
    }
    lines
}

/// What the next process made of a session.
struct Loaded {
    answer: Value,
    picture: Vec<String>,
}

/// Another process on a disk that a crash has left.
struct Next {
    sim: Sim,
    id: u64,
}

impl Next {
    fn on(disk: Disk) -> Self {
        let mut sim = begin(disk, 8);
        sim.ask(&json::initialize(9001));
        Self { sim, id: 1 }
    }

    fn load(&mut self, session: &str) -> Loaded {
        self.id += 1;
        let from = self.sim.frames.len();
        let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
        let answer = self
            .sim
            .ask(&json::request(self.id, "session/load", params));
        let picture = picture(&self.sim.frames[from..], session);
        Loaded { answer, picture }
    }

    fn inbox(&mut self, session: &str, method: &str, mut params: Value) -> Value {
        self.id += 1;
        params["sessionId"] = json!(session);
        let method = format!("_reasonix.io/session/inbox/{method}");
        let answer = self.sim.ask(&json::request(self.id, &method, params));
        answer
            .get("result")
            .cloned()
            .unwrap_or_else(|| panic!("{method}: {answer}"))
    }

    /// What is in an inbox: text and state of each item, in order.
    fn items(&mut self, session: &str) -> Vec<(String, String)> {
        let list = self.inbox(session, "list", json!({}));
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        items
            .iter()
            .map(|item| (text(&item["preview"]), text(&item["state"])))
            .collect()
    }

    fn say(&mut self, session: &str) -> Value {
        self.id += 1;
        self.sim
            .ask(&json::prompt(self.id, session, "say something new"))
    }
}

/// Lines that are no more than what recovery adds to a history that broke off.
fn is_mending(line: &str) -> bool {
    (line.starts_with("tool_call_update ") && line.contains(" \"failed\" "))
        || line.starts_with("agent_message_chunk \n\n[")
}

/// How many lines of the whole picture have to be there: all before the first prompt that was not
/// answered.
fn due(whole: &[String], open: Option<&str>) -> usize {
    let line = open.map(|text| format!("user_message_chunk {text}"));
    let at = line.and_then(|line| whole.iter().position(|other| *other == line));
    at.unwrap_or(whole.len())
}

/// The recovered picture is a beginning of the whole one, with all in it that was answered, and at
/// its end what recovery added.
#[track_caller]
fn is_beginning(context: &str, left: &[String], whole: &[String], open: Option<&str>) {
    let same = left.iter().zip(whole).take_while(|(a, b)| a == b).count();
    assert!(
        same >= due(whole, open),
        "{context}: what was answered is missing: {left:#?}\nof {whole:#?}"
    );
    let rest = &left[same..];
    assert!(
        rest.iter().all(|line| is_mending(line)),
        "{context}: not a beginning: {rest:#?}\nbehind {:#?}",
        &left[..same]
    );
}

/// What a crash may leave of a moment, and whether the power has to fail for it; the same disk is
/// not looked at twice.
fn crashes(disk: &Disk, seen: &mut BTreeSet<(bool, u64)>) -> Vec<(String, bool, Disk)> {
    let mut left = Vec::new();
    let mut add = |name: String, power: bool, disk: Disk| {
        let mut image = DefaultHasher::new();
        disk.paths().for_each(|file| file.hash(&mut image));
        if seen.insert((power, image.finish())) {
            left.push((name, power, disk));
        }
    };
    for begun in [true, false] {
        for keep in [Keep::All, Keep::Synced, Keep::Zeros] {
            let name = format!("begun {begun}, {keep:?}");
            add(name, keep != Keep::All, disk.after_crash(begun, |_| keep));
        }
    }
    let tails: Vec<(String, usize)> = disk
        .paths()
        .map(|(path, _)| (path.to_string(), disk.unsynced(path)))
        .filter(|(path, tail)| path.ends_with(".jsonl") && *tail > 0)
        .collect();
    for (path, tail) in tails {
        // This file is ahead of the others, or behind them.
        let keep = |yes: Keep, no: Keep| {
            let path = path.clone();
            disk.after_crash(true, move |at| if at == path { yes } else { no })
        };
        add(format!("only {path}"), true, keep(Keep::All, Keep::Synced));
        add(
            format!("all but {path}"),
            true,
            keep(Keep::Synced, Keep::All),
        );
        let bytes = disk.file(&path).map(<[u8]>::to_vec).unwrap_or_default();
        let from = bytes.len() - tail;
        let cut = |at: &usize| {
            let character = bytes[from + at] & 0xc0 == 0x80;
            character || *at == 1 || *at == tail / 2 || *at + 1 == tail
        };
        for at in (0..tail).filter(cut) {
            let disk = keep(Keep::Bytes(at), Keep::All);
            add(format!("{at} bytes of {tail} of {path}"), true, disk);
        }
    }
    left
}

/// What is in an inbox, and what has been said of it, is what the client was told.
#[track_caller]
fn check_items(
    context: &str,
    known: &Known<'_>,
    session: usize,
    items: &[(String, String)],
    picture: &[String],
) {
    for (nth, item) in known.life.items.iter().enumerate() {
        if item.session != session {
            continue;
        }
        let put = |what: &What| matches!(what, What::Put { item, .. } if *item == nth);
        let drop = |what: &What| *what == What::Drop(nth);
        let change = |what: &What| *what == What::Change(nth);
        let said = |line: &&String| {
            let text = line.strip_prefix("user_message_chunk ");
            text.is_some_and(|text| item.is(text))
        };
        let said = picture.iter().filter(said).count();
        let waits: Vec<_> = items.iter().filter(|(text, _)| item.is(text)).collect();
        let context = format!(
            "{context}: {:?} is {waits:?}, said {said} times",
            item.texts
        );
        assert!(said <= 1 && waits.len() <= 1, "{context}");
        if known.answered(drop) > 0 {
            assert!(waits.is_empty() && said == 0, "{context}, and was deleted");
        } else if known.answered(put) > 0 && !known.sent(drop) {
            assert!(waits.len() + said > 0, "{context}, and was put in");
        }
        if !known.sent(put) {
            assert!(
                waits.is_empty() && said == 0,
                "{context}, and was never put in"
            );
        }
        if let (Some((text, state)), answered) = (waits.first(), known.answered(change) > 0) {
            let last = item.texts.last().expect("it has one");
            assert!(!answered || text == last, "{context}, and was changed");
            // Its message in the history is what decides whether it began.
            assert!(said == 0 || state == "uncertain", "{context}");
            assert!(said == 1 || state == "queued", "{context}");
        }
    }
}

/// Looks at one disk that is left of a moment.
fn recover(context: &str, disk: Disk, power: bool, known: &Known<'_>, whole: &[Vec<String>]) {
    let files: Vec<_> = disk
        .paths()
        .filter(|(path, _)| path.starts_with("/w"))
        .map(|(path, node)| (path.to_string(), node.clone()))
        .collect();
    let mut next = Next::on(disk);
    let mut open = Vec::new();
    for (nth, session) in known.sessions() {
        let context = format!("{context}, session {nth}");
        let loaded = next.load(session);
        let prompts = known.prompts(nth);
        let gone = |what: &What| *what == What::Delete(nth);
        let deleted = known.answered(gone) > 0;
        let found = loaded.answer.get("result").is_some();
        if deleted {
            assert!(!found, "{context}: deleted, and back: {}", loaded.answer);
        } else if !found {
            // What was made and not used may be lost with the power, what was to be deleted too.
            let put = |what: &What| matches!(what, What::Put { session, .. } if *session == nth);
            let used = !prompts.is_empty()
                || !known.options(nth, "").is_empty()
                || known.answered(put) > 0;
            let may = (power && !used) || known.sent(gone);
            assert!(may, "{context}: {}", loaded.answer);
        }
        if !found {
            assert_eq!(
                loaded.answer["error"]["code"], -32002,
                "{context}: {}",
                loaded.answer
            );
            continue;
        }
        if !known.sent(gone) {
            is_beginning(
                &context,
                &loaded.picture,
                &whole[nth],
                known.open_prompt(nth),
            );
            for option in ["tool_approval", "agent_preset"] {
                let may = known.options(nth, option);
                let options = loaded.answer["result"]["configOptions"].as_array().cloned();
                let value = options
                    .into_iter()
                    .flatten()
                    .find(|o| o["id"] == option)
                    .map(|o| o["currentValue"].clone())
                    .unwrap_or_default();
                let answered = known.answered(|what| {
                    matches!(what, What::Option { session, value } if *session == nth
                        && value.starts_with(option))
                });
                assert!(
                    answered == 0 || may.iter().any(|may| value == *may),
                    "{context}: {option} is {value}, not {may:?}"
                );
            }
            open.push((nth, session, loaded.picture));
        }
    }
    let mut left = Vec::new();
    for (nth, session, picture) in &open {
        if known.life.items.iter().any(|item| item.session == *nth) {
            let items = next.items(session);
            check_items(context, known, *nth, &items, picture);
            left = items;
        }
    }
    // Nothing goes on by itself.
    next.sim.run_for(Duration::from_secs(5));
    assert_eq!(
        next.sim.world.ran,
        Vec::<String>::new(),
        "{context}: it ran again"
    );
    assert_eq!(
        next.sim.world.requests.len(),
        0,
        "{context}: the model was asked"
    );
    let now: Vec<_> = next
        .sim
        .world
        .disk
        .paths()
        .filter(|(path, _)| path.starts_with("/w"))
        .map(|(path, node)| (path.to_string(), node.clone()))
        .collect();
    assert_eq!(files, now, "{context}: the workspace changed");
    // The one that something went on in; the others were looked at when they were that.
    let last = known
        .asked
        .iter()
        .rev()
        .find_map(|(asked, _)| asked.what.session());
    open.retain(|(nth, ..)| Some(*nth) == last);
    // Life goes on, with a history that is well formed and holds what was answered.
    for (nth, session, _) in &open {
        let context = format!("{context}, session {nth}");
        let before = next.sim.world.requests.len();
        let answer = next.say(session);
        assert_eq!(
            answer["result"]["stopReason"], "end_turn",
            "{context}: {answer}"
        );
        let requests = &next.sim.world.requests[before..];
        assert_eq!(requests.len(), 1, "{context}: one turn, one question");
        let body: Value = serde_json::from_slice(&requests[0].body).expect("a request is JSON");
        well_formed(&context, &body);
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let users: Vec<String> = messages
            .iter()
            .filter(|message| message["role"] == "user")
            .map(|message| message["content"].to_string())
            .collect();
        let mut rest = users.iter();
        for prompt in known.prompts(*nth) {
            assert!(
                rest.any(|user| user.contains(prompt)),
                "{context}: the model is not told of {prompt:?}: {users:#?}"
            );
        }
    }
    // What still waits has its turn when it is told to go on, and no more than once in all.
    for (nth, session, _) in &open {
        if left.is_empty() || known.life.items.iter().all(|item| item.session != *nth) {
            continue;
        }
        next.inbox(session, "setPaused", json!({"paused": false}));
        let answer = next.say(session);
        assert_eq!(
            answer["result"]["stopReason"], "end_turn",
            "{context}: {answer}"
        );
        let items = next.items(session);
        let ran = |command: &str| {
            let before = known.life.sim.world.ran[..known.ran].iter();
            before
                .chain(&next.sim.world.ran)
                .filter(|line| *line == command)
                .count()
        };
        for (text, state) in &left {
            let there = items.iter().any(|(other, _)| other == text);
            assert_eq!(
                there,
                state == "uncertain",
                "{context}: {text} was {state}: {items:?}"
            );
            if let Some(command) = ["count-a", "count-z"]
                .into_iter()
                .find(|it| text.contains(it))
            {
                let times = ran(command);
                let may = if there { 0..=1 } else { 1..=1 };
                assert!(
                    may.contains(&times),
                    "{context}: {command} ran {times} times"
                );
            }
        }
    }
    next.sim.finish();
    next.sim.laws.check();
    // And what recovery added is there once, for the one after.
    let disk = next.sim.world.disk.after_crash(true, |_| Keep::Synced);
    let mut last = Next::on(disk);
    for (nth, session, picture) in open {
        let again = last.load(session);
        let at = picture.len().min(again.picture.len());
        assert_eq!(
            again.picture[..at],
            picture,
            "{context}, session {nth}: mended twice"
        );
    }
}

/// Every session as it is when nothing broke, and as long as it was there.
fn whole(life: &Life, moments: &[Moment]) -> Vec<Vec<String>> {
    let picture = |nth: usize, session: &String| {
        let before =
            |moment: &&Moment| !Known::at(life, moment).sent(|what| *what == What::Delete(nth));
        let last = moments
            .iter()
            .rev()
            .find(before)
            .expect("it was there once");
        let mut next = Next::on(last.disk.after_crash(true, |_| Keep::All));
        next.load(session).picture
    };
    let sessions = life.sessions.iter().enumerate();
    sessions
        .map(|(nth, session)| picture(nth, session))
        .collect()
}

#[test]
fn whatever_a_crash_leaves_is_what_the_client_was_told() {
    let (life, moments) = life();
    let whole = whole(&life, &moments);
    assert!(
        whole[0].len() > 30,
        "the script does something: {:#?}",
        whole[0]
    );
    assert!(moments.len() > 200, "{} moments", moments.len());
    // From the end: a disk that is enough for what was told by then is enough for less.
    let mut seen = BTreeSet::new();
    let mut looked = 0;
    for (at, moment) in moments.iter().enumerate().rev() {
        let known = Known::at(&life, moment);
        for (left, power, disk) in crashes(&moment.disk, &mut seen) {
            let context = format!("moment {at}, {left}");
            recover(&context, disk, power, &known, &whole);
            looked += 1;
        }
    }
    eprintln!("{looked} disks of {} moments", moments.len());
    assert!(
        looked > moments.len(),
        "{looked} disks of {} moments",
        moments.len()
    );
}

/// The last line of each kind in a file of records, as where it begins and how long it is.
fn kinds(bytes: &[u8], member: &str) -> BTreeMap<String, (usize, usize)> {
    let mut kinds = BTreeMap::new();
    let mut from = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let record: Value = serde_json::from_slice(line).unwrap_or_default();
        if let Some(kind) = record[member].as_str() {
            // The last of each kind, so that most stands before it.
            kinds.insert(kind.to_string(), (from, line.len()));
        }
        from += line.len();
    }
    kinds
}

/// Cuts the last record of each kind in the transcript of a session at every byte.
fn cut_transcript(life: &Life, disk: &Disk, nth: usize, whole: &[String]) -> BTreeSet<String> {
    let session = &life.sessions[nth];
    let path = format!("{HOME}/sessions/{session}/transcript.jsonl");
    let bytes = disk.file(&path).expect("it was written").to_vec();
    let ended = |upto: usize| {
        let lines = bytes[..upto].split(|byte| *byte == b'\n');
        let end = |line: &&[u8]| {
            serde_json::from_slice::<Value>(line).is_ok_and(|record| record["type"] == "end")
        };
        lines.filter(end).count()
    };
    let prompts: Vec<&str> = life
        .asked
        .iter()
        .filter_map(|asked| match &asked.what {
            What::Prompt { session, text } if *session == nth => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let kinds = kinds(&bytes, "type");
    for (kind, (from, length)) in &kinds {
        for cut in 0..=*length {
            let mut left = disk.clone();
            left.put(&path, Node::File(bytes[..from + cut].to_vec()));
            let mut next = Next::on(left);
            let context = format!("{kind}, {cut} bytes of {length}");
            let loaded = next.load(session);
            if kind == "session" && cut + 1 < *length {
                // Without its first record there is nothing in it.
                let none = loaded.answer["error"]["code"] == -32002;
                let empty = loaded.picture.iter().all(|line| is_mending(line));
                assert!(none || empty, "{context}: {}", loaded.answer);
                continue;
            }
            assert!(
                loaded.answer.get("result").is_some(),
                "{context}: {}",
                loaded.answer
            );
            let open = prompts.get(ended(from + cut)).copied();
            is_beginning(&context, &loaded.picture, whole, open);
            if cut % 7 == 0 {
                next.say(session);
                let request = next.sim.world.requests.last().expect("the model is asked");
                let body = serde_json::from_slice(&request.body).expect("a request is JSON");
                well_formed(&context, &body);
            }
        }
    }
    kinds.into_keys().collect()
}

#[test]
fn every_cut_of_every_kind_of_record_loses_no_more_than_the_record() {
    let mut cut = BTreeSet::new();
    for (life, moments) in [life(), rare_life()] {
        let whole = whole(&life, &moments);
        let disk = &moments[moments.len() - 1].disk;
        cut.extend(cut_transcript(&life, disk, 0, &whole[0]));
    }
    // What is written when a session is opened that broke off.
    let (life, moments) = rare_life();
    let whole = whole(&life, &moments);
    let mut left = moments[moments.len() - 1].disk.clone();
    let session = life.sessions[0].clone();
    let path = format!("{HOME}/sessions/{session}/transcript.jsonl");
    let bytes = left.file(&path).expect("it was written");
    left.put(&path, Node::File(bytes[..bytes.len() - 3].to_vec()));
    let mut next = Next::on(left);
    next.load(&session);
    next.sim.finish();
    let mended = next.sim.world.disk.after_crash(true, |_| Keep::All);
    cut.extend(cut_transcript(&life, &mended, 0, &whole[0]));
    let all = [
        "assistant",
        "call",
        "end",
        "goal",
        "mended",
        "note",
        "options",
        "plan",
        "result",
        "session",
        "summary",
        "user",
    ];
    assert_eq!(cut.iter().map(String::as_str).collect::<Vec<_>>(), all);
}

#[test]
fn every_cut_of_every_kind_of_change_of_an_inbox_loses_no_more_than_the_change() {
    let (life, moments) = life();
    let whole = whole(&life, &moments);
    let nth = life.items[0].session;
    let session = &life.sessions[nth];
    let path = format!("{HOME}/sessions/{session}/inbox.jsonl");
    let last = &moments[moments.len() - 1].disk;
    let bytes = last.file(&path).expect("it was written").to_vec();
    let mut cut_kinds = BTreeSet::new();
    for (kind, (from, length)) in kinds(&bytes, "op") {
        let is_there = |moment: &&Moment| {
            let there = moment.disk.file(&path).map_or(0, <[u8]>::len);
            there >= from + length
        };
        // The line is on its way, and nobody was told of it.
        let moment = moments.iter().find(is_there).expect("it was written");
        let known = Known::at(&life, moment);
        let now = moment.disk.after_crash(true, |_| Keep::All);
        for cut in 0..=length {
            let context = format!("{kind}, {cut} bytes of {length}");
            let mut left = now.clone();
            left.put(&path, Node::File(bytes[..from + cut].to_vec()));
            if cut % 16 == 0 || cut + 1 >= length {
                recover(&context, left.clone(), true, &known, &whole);
            }
            let mut next = Next::on(left);
            let loaded = next.load(session);
            assert!(loaded.answer.get("result").is_some(), "{context}");
            let items = next.items(session);
            check_items(&context, &known, nth, &items, &loaded.picture);
            is_not_damaged(&context, &next.sim.world.disk);
        }
        cut_kinds.insert(kind);
    }
    // Another process takes it over, and dies while it says so.
    let before = last.after_crash(true, |_| Keep::All);
    let mut next = Next::on(before.clone());
    next.load(session);
    let items = next.items(session);
    let bytes = next
        .sim
        .world
        .disk
        .file(&path)
        .expect("it is there")
        .to_vec();
    let (from, length) = kinds(&bytes, "op")["recover"];
    for cut in 0..=length {
        let context = format!("recover, {cut} bytes of {length}");
        let mut left = before.clone();
        left.put(&path, Node::File(bytes[..from + cut].to_vec()));
        let mut third = Next::on(left);
        third.load(session);
        assert_eq!(third.items(session), items, "{context}");
        let list = third.inbox(session, "list", json!({}));
        assert_eq!(list["paused"], true, "{context}: {list}");
        is_not_damaged(&context, &third.sim.world.disk);
    }
    cut_kinds.insert("recover".into());
    // The others (`keep`, `receipt`) are only written with a whole file, which is there or is not.
    let all = [
        "add", "drop", "edit", "inbox", "move", "pause", "recover", "set",
    ];
    assert_eq!(
        cut_kinds.iter().map(String::as_str).collect::<Vec<_>>(),
        all
    );
}

/// A torn line is no damage: nothing is set aside for it.
#[track_caller]
fn is_not_damaged(context: &str, disk: &Disk) {
    let aside = disk.paths().find(|(path, _)| path.contains("damaged"));
    assert_eq!(aside, None, "{context}");
}
