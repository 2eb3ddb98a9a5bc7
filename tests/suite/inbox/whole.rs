//! The inbox on paper beside a whole agent, as its client sees it: the nine methods and steers while turns
//! run, are cancelled and fail, sessions that are closed and opened, and processes that die between any two
//! effects of what was done last.

use std::time::Duration;

use proptest::prelude::*;
use reasonix_tests::disk::{Disk, Keep, Node};
use reasonix_tests::inbox::state::{ACCEPTED, CONSUMED, RUNNING};
use reasonix_tests::inbox::{Book, End, Sizes};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::provider::{Answer, Step, done, finish, text, tool};
use reasonix_tests::sim::{Moment, Sim, config};
use reasonix_tests::world::{Piece, World, http};

use super::{Told, told};

const HOME: &str = "/home/user/.reasonix";

const SIZES: Sizes = Sizes {
    items: 5,
    item: 4000,
    bytes: 1 << 20,
    stubs: 100,
    attempts: 2,
};

/// How long the model thinks before it ends an answer: the client has its time until then.
const THINKS: Duration = Duration::from_secs(10);

/// What becomes of a turn that nobody cancels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Finish,
    /// It looks around first, and hears its guidance then.
    Look,
    /// The provider is not there.
    Passing,
    /// It breaks off after some words.
    Lasting,
}

impl Plan {
    fn answers(self) -> Vec<Vec<Piece>> {
        let mut last = Answer::stream([text("well")]).then(Step::Pause(THINKS));
        last.steps.extend(match self {
            Self::Lasting => vec![Step::Cut],
            Self::Finish | Self::Look | Self::Passing => [finish("stop"), done()]
                .map(|piece| Step::Bytes(piece.into()))
                .into(),
        });
        let mut look = tool("look", "ls", json!({"path": "."}));
        look.steps.insert(0, Step::Pause(THINKS));
        let mut away = http(&Answer::plain(503, "text/plain", "away"));
        away[0].after = THINKS;
        match self {
            Self::Finish | Self::Lasting => vec![http(&last)],
            Self::Look => vec![http(&look), http(&last)],
            Self::Passing => vec![away],
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Enqueue {
        text: u8,
        intent: u8,
        key: Option<u8>,
    },
    Steer {
        text: u8,
    },
    Get {
        which: u8,
    },
    Update {
        which: u8,
        text: u8,
    },
    Refresh {
        which: u8,
    },
    Delete {
        which: u8,
    },
    Move {
        which: u8,
        to: i64,
    },
    SetPaused(bool),
    Retry {
        which: u8,
    },
    Prompt(Plan),
    /// The answer of the model ends; the next item's turn, if one begins, becomes this.
    GoOn(Plan),
    Cancel,
    /// Closed in order and loaded again by the same process.
    Reopen,
    /// The process dies at a moment of what was done last, and the next one loads the session.
    Crash {
        moment: u16,
        begun: bool,
        power: bool,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let which = || 0u8..6;
    let plan = || {
        prop_oneof![
            5 => Just(Plan::Finish), 3 => Just(Plan::Look),
            1 => Just(Plan::Passing), 1 => Just(Plan::Lasting),
        ]
    };
    prop_oneof![
        10 => (0u8..7, 0u8..4, prop::option::of(0u8..4))
            .prop_map(|(text, intent, key)| Op::Enqueue { text, intent, key }),
        4 => (0u8..7).prop_map(|text| Op::Steer { text }),
        1 => which().prop_map(|which| Op::Get { which }),
        2 => (which(), 0u8..7).prop_map(|(which, text)| Op::Update { which, text }),
        1 => which().prop_map(|which| Op::Refresh { which }),
        2 => which().prop_map(|which| Op::Delete { which }),
        2 => (which(), -1i64..7).prop_map(|(which, to)| Op::Move { which, to }),
        3 => prop::bool::weighted(0.2).prop_map(Op::SetPaused),
        2 => which().prop_map(|which| Op::Retry { which }),
        6 => plan().prop_map(Op::Prompt),
        8 => plan().prop_map(Op::GoOn),
        2 => Just(Op::Cancel),
        1 => Just(Op::Reopen),
        2 => (any::<u16>(), any::<bool>(), any::<bool>())
            .prop_map(|(moment, begun, power)| Op::Crash { moment, begun, power }),
    ]
}

/// Blank, short, one whose reference leads out of the workspace, and one that is too long.
fn words(which: u8) -> String {
    match which {
        0 => " ".into(),
        1 => "a".into(),
        2 => "b".into(),
        3 => "see @../x".into(),
        4 => "x".repeat(SIZES.item + 1),
        5 => "ß \"c\"\n".trim().into(),
        _ => "d".into(),
    }
}

/// Whether something that a text refers to cannot be frozen.
fn is_broken(text: &str) -> bool {
    text.contains("@..")
}

struct Turn {
    item: Option<String>,
    /// Answers of the model that are left.
    left: usize,
    end: End,
}

/// One session over all the processes that have it, and the book.
struct Life {
    sim: Sim,
    session: String,
    seed: u8,
    id: u64,
    book: Book,
    /// The prompt that is open, and the turn that runs in it.
    prompt: Option<u64>,
    turn: Option<Turn>,
    /// How the last turn ended.
    ended: Option<End>,
    /// How many changes were answered: those last.
    kept: usize,
    /// When the last thing done was answered, in frames, and how many changes last from then on.
    answered: Option<(usize, usize)>,
}

fn begin(disk: Disk, seed: u8) -> Sim {
    let mut config = config();
    config.ephemeral = false;
    config.seed = [seed; 32];
    config.settings.providers[0].max_retries = 0;
    super::limit(&mut config.limits, SIZES);
    let mut sim = Sim::new(config, World::on(disk));
    sim.keeps = false;
    sim.ask(&json::initialize(9001));
    sim
}

impl Life {
    fn new() -> Self {
        let mut disk = Disk::with_files("/w", &[]);
        disk.put(HOME, Node::Dir);
        let mut sim = begin(disk, 0);
        let session = sim.open_another(9002, "/w");
        // From here on a loss of power does not take the session.
        let params = json!({"sessionId": session, "configId": "tool_approval", "value": "auto"});
        let set = sim.ask(&json::request(9003, "session/set_config_option", params));
        assert!(set.get("result").is_some(), "{set}");
        Self {
            sim,
            session,
            seed: 0,
            id: 0,
            book: Book::new(SIZES),
            prompt: None,
            turn: None,
            ended: None,
            kept: 0,
            answered: None,
        }
    }

    fn path(&self, file: &str) -> String {
        format!("{HOME}/sessions/{}/{file}", self.session)
    }

    fn ask(&mut self, method: &str, mut params: Value) -> Result<Value, String> {
        self.id += 1;
        params["sessionId"] = json!(self.session);
        let answer = self.sim.ask(&json::request(self.id, method, params));
        let error = &answer["error"];
        match (&error["code"], &error["data"]["code"]) {
            (Value::Null, _) => Ok(answer["result"].clone()),
            (code, Value::String(why)) if *code == -32600 => Err(why.clone()),
            (code, Value::Null) if *code == -32602 => Err("empty".into()),
            (_, _) => panic!("{method}: {answer}"),
        }
    }

    fn inbox(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.ask(&format!("_reasonix.io/session/inbox/{method}"), params)
    }

    fn item(&self, which: u8) -> String {
        let slip = self.book.now.slips.get(usize::from(which));
        slip.map_or("none".into(), |slip| slip.id.clone())
    }

    /// Both say the same.
    #[track_caller]
    fn same<B>(real: Result<Value, String>, paper: Result<B, &'static str>) -> Option<(Value, B)> {
        match (real, paper) {
            (Ok(real), Ok(paper)) => Some((real, paper)),
            (Err(real), Err(paper)) => {
                assert_eq!(real, paper);
                None
            }
            (Ok(real), Err(paper)) => panic!("taken, though {paper}: {real}"),
            (Err(real), Ok(_)) => panic!("refused: {real}"),
        }
    }

    fn put(&mut self, text: &str, steer: bool, key: Option<&str>, real: Result<Value, String>) {
        let id = real
            .as_ref()
            .map_or("", |real| real["itemId"].as_str().unwrap_or_default());
        let (turn, broken) = (self.turn.is_some(), is_broken(text));
        let paper = self.book.enqueue(id, text, steer, key, broken, turn);
        let Some((real, (id, what, position, paused, known))) = Self::same(real, paper) else {
            return;
        };
        assert_eq!(
            (&real["itemId"], &real["disposition"]),
            (&json!(id), &json!(what))
        );
        if real.get("position").is_some() {
            let said = (&real["position"], &real["paused"], &real["idempotent"]);
            assert_eq!(said, (&json!(position), &json!(paused), &json!(known)));
        }
    }

    fn act(&mut self, op: Op) {
        if !matches!(op, Op::Crash { .. }) {
            self.settle();
            self.sim.moments = Some(Vec::new());
        }
        let before = self.book.pages.len();
        match op {
            Op::Enqueue { text, intent, key } => {
                let text = words(text);
                let intent = ["followup", "steer", " STEER ", "other"][usize::from(intent)];
                let key = key.map(|key| ["k", "l", "m:1", "no key"][usize::from(key)]);
                let mut params = json!({"text": text, "intent": intent});
                if let Some(key) = key {
                    params["idempotencyKey"] = json!(key);
                }
                let steer = intent.trim().eq_ignore_ascii_case("steer");
                let real = self.inbox("enqueue", params);
                self.put(&text, steer, key, real);
            }
            Op::Steer { text } => {
                let text = words(text);
                let params = json!({"prompt": [{"type": "text", "text": text}]});
                let real = self.ask("_reasonix.io/session/steer", params);
                self.put(&text, true, None, real);
            }
            Op::Get { which } => {
                let id = self.item(which);
                let real = self.inbox("get", json!({"itemId": id}));
                let slip = self.book.now.slips.iter().find(|slip| slip.id == id);
                let paper = slip.ok_or("item_not_found").cloned();
                if let Some((real, slip)) = Self::same(real, paper) {
                    assert_eq!(real["envelope"]["rawText"], slip.text.as_str());
                    let list = self.inbox("list", json!({})).expect("a list");
                    let items = list["items"].as_array().cloned().unwrap_or_default();
                    assert!(items.contains(&real["meta"]), "{real}");
                }
            }
            Op::Update { which, text } => {
                let (id, text) = (self.item(which), words(text));
                let real = self.inbox("update", json!({"itemId": id, "text": text}));
                let paper = self.book.update(&id, &text, is_broken(&text));
                if let Some((real, ())) = Self::same(real, paper) {
                    assert_eq!(real["id"], id.as_str());
                }
            }
            Op::Refresh { which } => {
                let id = self.item(which);
                let slip = self.book.now.slips.get(usize::from(which));
                let text = slip.map_or("x".into(), |slip| slip.text.clone());
                let real = self.inbox("refresh", json!({"itemId": id}));
                let paper = self.book.update(&id, &text, is_broken(&text));
                Self::same(real, paper);
            }
            Op::Delete { which } => {
                let id = self.item(which);
                let real = self.inbox("delete", json!({"itemId": id}));
                Self::same(real, self.book.delete(&id));
            }
            Op::Move { which, to } => {
                let id = self.item(which);
                let real = self.inbox("move", json!({"itemId": id, "toIndex": to}));
                Self::same(real, self.book.move_to(&id, to));
            }
            Op::SetPaused(paused) => {
                let real = self.inbox("setPaused", json!({"paused": paused}));
                assert_eq!(real, Ok(json!({"paused": self.book.set_paused(paused)})));
            }
            Op::Retry { which } => {
                let id = self.item(which);
                let real = self.inbox("retry", json!({"itemId": id}));
                Self::same(real, self.book.retry(&id));
            }
            Op::Prompt(plan) => self.prompt(plan),
            Op::GoOn(plan) => self.go_on(plan),
            Op::Cancel => {
                self.sim.send(&json::cancel(&self.session));
                if self.prompt.is_some() {
                    self.end(End::Cancelled);
                    self.is_answered();
                } else {
                    self.sim.run_for(Duration::ZERO);
                }
            }
            Op::Reopen => {
                let closed = self.ask("session/close", json!({}));
                assert_eq!(closed, Ok(json!({})));
                if self.prompt.is_some() {
                    self.end(End::Cancelled);
                    self.is_answered();
                }
                let disk = self.sim.world.disk.clone();
                let page = self.page(&disk);
                self.load();
                let lines = self.transcript(&disk);
                self.book
                    .recover(page, u32::from(self.seed), |id| told(&lines, id));
                // What it makes of it need not last before it is built on.
                self.answered = None;
                self.kept = self.kept.min(page);
                self.compare();
                return;
            }
            Op::Crash {
                moment,
                begun,
                power,
            } => self.crash(moment, begun, power),
        }
        // What the turns do with it need not last before it is built on.
        let turns = matches!(
            op,
            Op::Crash { .. } | Op::GoOn(_) | Op::Prompt(_) | Op::Cancel
        );
        let upto = self.book.pages.len();
        if upto > before && !turns {
            self.answered = Some((self.sim.frames.len(), upto - 1));
        }
        self.compare();
    }

    /// What was done before is over, and cannot be caught by a crash any more.
    fn settle(&mut self) {
        if let Some((_, upto)) = self.answered.take() {
            self.kept = self.kept.max(upto);
        }
    }

    fn prompt(&mut self, plan: Plan) {
        self.id += 1;
        let request = json::prompt(self.id, &self.session, "go");
        if self.prompt.is_some() {
            let answer = self.sim.ask(&request);
            assert_eq!(answer["error"]["data"]["code"], "session_busy", "{answer}");
            return;
        }
        self.sim.world.answers = plan.answers().into();
        let asked = self.sim.world.requests.len();
        self.sim.send(&request);
        self.sim
            .until("the model is asked", |sim| sim.world.requests.len() > asked);
        self.sim.run_for(Duration::ZERO);
        self.prompt = Some(self.id);
        self.turn = Some(Turn::new(plan, None));
    }

    fn go_on(&mut self, plan: Plan) {
        let (Some(prompt), Some(turn)) = (self.prompt, &mut self.turn) else {
            self.sim.run_for(THINKS);
            return;
        };
        turn.left -= 1;
        let over = turn.left == 0;
        let end = turn.end;
        if over {
            self.sim.world.answers = plan.answers().into();
        }
        let asked = self.sim.world.requests.len();
        self.sim.until("the next step", |sim| {
            sim.world.requests.len() > asked || json::answer_to(&sim.frames, prompt).is_some()
        });
        self.sim.run_for(Duration::ZERO);
        if !over {
            for slip in self.book.now.slips.clone() {
                if slip.state == ACCEPTED {
                    self.book.consume(&slip.id);
                    self.is_claimed(&slip.id);
                }
            }
            return;
        }
        self.end(end);
        match self.book.next().filter(|_| end == End::Finished) {
            None => self.is_answered(),
            Some(id) => {
                self.book.begin(&id);
                self.is_claimed(&id);
                self.prompt = Some(prompt);
                self.turn = Some(Turn::new(plan, Some(id)));
            }
        }
    }

    /// The turn is over, on paper.
    fn end(&mut self, end: End) {
        let item = self.turn.take().and_then(|turn| turn.item);
        self.book.end(item.as_deref(), end);
        self.ended = Some(end);
    }

    /// The prompt is answered, as its last turn ended.
    fn is_answered(&mut self) {
        let prompt = self.prompt.take().expect("one is open");
        let answer = self.sim.answer(prompt);
        let end = self.ended.take().expect("a turn ended");
        match end {
            End::Finished => assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}"),
            End::Cancelled => assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}"),
            End::Passing | End::Lasting => {
                assert_eq!(answer["error"]["data"]["code"], "turn_failed", "{answer}");
            }
        }
        self.sim.run_for(Duration::ZERO);
        self.sim.world.answers.clear();
    }

    /// The model was asked: a loss of power does not take what says so.
    fn is_claimed(&self, id: &str) {
        let path = self.path("transcript.jsonl");
        let lasting = self.sim.world.disk.lasting(&path).unwrap_or_default();
        let claim = format!("\"item\":\"{id}\"");
        let lasting = String::from_utf8_lossy(lasting);
        assert!(
            lasting.contains(&claim),
            "{id} was begun and is not claimed"
        );
    }

    fn load(&mut self) {
        let params = json!({"cwd": "/w", "mcpServers": []});
        let loaded = self.ask("session/load", params);
        assert!(loaded.is_ok(), "{loaded:?}");
    }

    fn crash(&mut self, moment: u16, begun: bool, power: bool) {
        let moments = self.sim.moments.take().unwrap_or_default();
        let at = moments.len() * usize::from(moment) / (usize::from(u16::MAX) + 1);
        let now = Moment {
            disk: self.sim.world.disk.clone(),
            frames: self.sim.frames.len(),
            sent: 0,
            ran: 0,
            requests: 0,
        };
        let moment = moments.get(at).unwrap_or(&now);
        let keep = if power { Keep::Synced } else { Keep::All };
        let disk = moment.disk.after_crash(begun, |_| keep);
        if self
            .answered
            .is_some_and(|(frames, _)| moment.frames >= frames)
        {
            self.settle();
        }
        self.answered = None;
        let page = self.page(&disk);
        assert!(
            page >= self.kept,
            "{page} changes are left of {} that were answered",
            self.kept
        );
        let lines = self.transcript(&disk);
        self.seed += 1;
        self.sim = begin(disk, self.seed);
        (self.prompt, self.turn) = (None, None);
        self.load();
        let writer = u32::from(self.seed);
        self.book.recover(page, writer, |id| told(&lines, id));
        self.kept = self.kept.min(page);
        let asked = self.sim.world.requests.len();
        self.sim.run_for(THINKS);
        assert_eq!(
            self.sim.world.requests.len(),
            asked,
            "nothing begins by itself"
        );
    }

    /// How many changes are in an inbox.
    fn page(&self, disk: &Disk) -> usize {
        let bytes = disk.file(&self.path("inbox.jsonl")).unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n');
        lines
            .filter(|line| !line.is_empty())
            .count()
            .saturating_sub(1)
    }

    fn transcript(&self, disk: &Disk) -> Vec<Told> {
        let bytes = disk
            .file(&self.path("transcript.jsonl"))
            .unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        let records: Vec<Value> = lines
            .map(|line| serde_json::from_slice(line).expect("a record"))
            .collect();
        told_in(&records)
    }

    /// What a client sees is what is on paper.
    fn compare(&mut self) {
        let moments = self.sim.moments.take();
        let real = self.inbox("list", json!({})).expect("a list");
        self.sim.moments = moments;
        let page = &self.book.now;
        let mut bytes = 0;
        let none = Vec::new();
        let items = real["items"].as_array().unwrap_or(&none);
        assert_eq!(items.len(), page.slips.len(), "{real}");
        for (real, slip) in items.iter().zip(&page.slips) {
            let runs = [RUNNING, ACCEPTED, CONSUMED].contains(&slip.state);
            let mut paper = json!({
                "id": slip.id, "state": slip.state, "preview": slip.text,
                "intent": if slip.steer { "steer" } else { "followup" },
                "revision": slip.revision, "source": "acp", "sessionId": self.session,
            });
            for (name, value) in [
                (
                    "idempotencyKey",
                    slip.key.as_ref().map(|(key, _)| json!(key)),
                ),
                ("blockCode", slip.block.map(|code| json!(code))),
                (
                    "attempts",
                    (slip.failures > 0).then(|| json!(slip.failures)),
                ),
            ] {
                if let Some(value) = value {
                    paper[name] = value;
                }
            }
            let mut seen = real.clone();
            let seen = seen.as_object_mut().expect("an object");
            bytes += seen["byteSize"].as_u64().unwrap_or_default();
            assert_eq!(seen.contains_key("runId"), runs, "{real}");
            assert_eq!(seen.contains_key("lastError"), slip.erred, "{real}");
            assert_eq!(
                seen.contains_key("blockReason"),
                slip.block.is_some(),
                "{real}"
            );
            assert_eq!(seen.contains_key("refs"), is_broken(&slip.text), "{real}");
            for other in [
                "byteSize",
                "checksum",
                "createdAt",
                "updatedAt",
                "runId",
                "lastError",
                "blockReason",
                "refs",
            ] {
                seen.remove(other);
            }
            assert_eq!(json!(seen), paper);
        }
        let mut paper = json!({
            "schemaVersion": 2, "revision": page.revision, "paused": page.paused,
            "recovered": page.recovered.is_some(), "runId": real["runId"], "items": real["items"],
            "capacity": {"items": items.len(), "maxItems": SIZES.items, "bytes": bytes,
                "maxBytes": SIZES.bytes, "maxItemBytes": SIZES.item},
        });
        if let Some(count) = page.recovered {
            paper["recoveredCount"] = json!(count);
        }
        assert_eq!(real, paper);
        let there = self.page(&self.sim.world.disk);
        assert_eq!(there + 1, self.book.pages.len(), "a line a change");
    }
}

impl Turn {
    fn new(plan: Plan, item: Option<String>) -> Self {
        Self {
            item,
            left: plan.answers().len(),
            end: match plan {
                Plan::Finish | Plan::Look => End::Finished,
                Plan::Passing => End::Passing,
                Plan::Lasting => End::Lasting,
            },
        }
    }
}

/// A transcript as far as an inbox is concerned.
fn told_in(records: &[Value]) -> Vec<Told> {
    let mut acted = false;
    let mut lines = Vec::new();
    for record in records {
        match record["type"].as_str().unwrap_or_default() {
            "user" => {
                let from = record["from"].as_str().unwrap_or("person");
                acted &= !["person", "queue"].contains(&from);
                lines.push(Told::User(record["item"].as_str().map(String::from)));
            }
            "assistant" => acted = true,
            "end" => lines.push(match record["reason"].as_str().unwrap_or_default() {
                "cancelled" => Told::End(End::Cancelled),
                "failed" if acted => Told::End(End::Lasting),
                "failed" => Told::End(End::Passing),
                "interrupted" => Told::Interrupted,
                _ => Told::End(End::Finished),
            }),
            _ => {}
        }
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_a_client_sees_of_an_inbox_is_what_is_on_paper(
        ops in prop::collection::vec(op(), 1..40),
    ) {
        let mut life = Life::new();
        for op in &ops {
            life.act(*op);
        }
        life.sim.finish();
        life.sim.laws.check();
    }
}
