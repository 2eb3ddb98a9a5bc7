//! The durable inbox against the one on paper, through turns, crashes at any byte and reopenings; and
//! what must hold of every such life: each message is delivered once, and none is lost.

mod kills;
mod whole;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use reasonix_core::limits::Limits;
use reasonix_core::store::inbox::{
    Claim, Draft, Inbox, Intent, NewItem, Recovery, Refusal, State, TurnEnd,
};
use reasonix_tests::inbox::{Answer, Book, End, Sizes};

const SIZES: Sizes = Sizes {
    items: 5,
    item: 60,
    bytes: 150,
    stubs: 3,
    attempts: 2,
};

/// `""` and one that only looks empty, short ones, one that just fits, some that do not.
const TEXTS: [(&str, usize); 8] = [
    ("", 0),
    (" ", 3),
    ("a", 1),
    ("b", 2),
    ("c", 30),
    ("d", 49),
    ("e", 50),
    ("f", 61),
];

fn text(which: u8) -> String {
    let (letter, times) = TEXTS[usize::from(which) % TEXTS.len()];
    letter.repeat(times)
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limit(&mut limits, SIZES);
    limits.max_inbox_waste = 2048;
    limits
}

/// An inbox is as small as the one on paper.
fn limit(limits: &mut Limits, sizes: Sizes) {
    limits.max_inbox_items = sizes.items;
    limits.max_inbox_item = sizes.item;
    limits.max_inbox = sizes.bytes;
    limits.max_inbox_receipts = sizes.stubs;
    limits.max_inbox_attempts = sizes.attempts;
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Enqueue {
        text: u8,
        steer: bool,
        key: Option<u8>,
        broken: bool,
    },
    Update {
        which: u8,
        text: u8,
        broken: bool,
    },
    Refresh {
        which: u8,
        broken: bool,
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
    /// A prompt, if none is open.
    Prompt,
    /// The next item's turn begins, if the last turn ended well and the prompt is still open.
    Drain {
        asked: bool,
    },
    /// As that, but a cancel is faster.
    DrainCancelled,
    /// The turn reads its guidance.
    Read,
    EndTurn(Over),
    Sync,
    Compact,
    /// A share of what is not synced is lost.
    Crash {
        left: u16,
        claim: bool,
    },
    /// Closed in order and opened again by the same process.
    Reopen,
}

#[derive(Clone, Copy, Debug)]
enum Over {
    Finished,
    Cancelled,
    Passing,
    Lasting,
}

impl From<Over> for End {
    fn from(over: Over) -> Self {
        match over {
            Over::Finished => Self::Finished,
            Over::Cancelled => Self::Cancelled,
            Over::Passing => Self::Passing,
            Over::Lasting => Self::Lasting,
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    let which = || 0u8..6;
    let over = prop_oneof![
        6 => Just(Over::Finished), 2 => Just(Over::Cancelled),
        2 => Just(Over::Passing), 1 => Just(Over::Lasting),
    ];
    let rarely = || prop::bool::weighted(0.1);
    prop_oneof![
        12 => (0u8..8, prop::bool::weighted(0.4), prop::option::of(0u8..5), rarely())
            .prop_map(|(text, steer, key, broken)| Op::Enqueue { text, steer, key, broken }),
        2 => (which(), 0u8..8, rarely())
            .prop_map(|(which, text, broken)| Op::Update { which, text, broken }),
        1 => (which(), rarely()).prop_map(|(which, broken)| Op::Refresh { which, broken }),
        2 => which().prop_map(|which| Op::Delete { which }),
        2 => (which(), -1i64..7).prop_map(|(which, to)| Op::Move { which, to }),
        2 => prop::bool::weighted(0.2).prop_map(Op::SetPaused),
        3 => which().prop_map(|which| Op::Retry { which }),
        4 => Just(Op::Prompt),
        6 => prop::bool::weighted(0.8).prop_map(|asked| Op::Drain { asked }),
        1 => Just(Op::DrainCancelled),
        3 => Just(Op::Read),
        8 => over.prop_map(Op::EndTurn),
        3 => Just(Op::Sync),
        1 => Just(Op::Compact),
        2 => (any::<u16>(), any::<bool>()).prop_map(|(left, claim)| Op::Crash { left, claim }),
        1 => Just(Op::Reopen),
    ]
}

/// A line of the transcript, as far as an inbox is concerned.
#[derive(Clone, Debug)]
enum Told {
    User(Option<String>),
    End(End),
    Interrupted,
}

/// How often a transcript has an item, and how the last of its turns ended.
fn told(transcript: &[Told], id: &str) -> (u32, Option<End>) {
    let mut times = 0;
    let mut end = None;
    let mut within = false;
    for line in transcript {
        match line {
            Told::User(item) if item.as_deref() == Some(id) => {
                times += 1;
                within = true;
                end = None;
            }
            Told::User(_) => {}
            Told::End(how) => {
                if within {
                    end = Some(*how);
                }
                within = false;
            }
            Told::Interrupted => within = false,
        }
    }
    (times, end)
}

/// An inbox on a disk, a transcript, a client and the book.
struct Life {
    inbox: Inbox,
    file: Vec<u8>,
    synced: usize,
    /// Length of what was written as a whole.
    whole: usize,
    transcript: Vec<Told>,
    book: Book,
    runs: u32,
    ids: u32,
    open: bool,
    turn: Option<Option<String>>,
    /// The last line of the transcript is not synced, so the model was not asked.
    claiming: Option<String>,
    delivered: BTreeMap<String, u32>,
    allowed: BTreeMap<String, u32>,
    /// Put in, and the answer waits for the disk.
    waiting: BTreeSet<String>,
    acknowledged: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

impl Life {
    fn new() -> Self {
        Self {
            inbox: Inbox::new("run-0", &limits()),
            file: Vec::new(),
            synced: 0,
            whole: 0,
            transcript: Vec::new(),
            book: Book::new(SIZES),
            runs: 0,
            ids: 0,
            open: false,
            turn: None,
            claiming: None,
            delivered: BTreeMap::new(),
            allowed: BTreeMap::new(),
            waiting: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            deleted: BTreeSet::new(),
        }
    }

    fn append(&mut self, lines: &[u8]) {
        self.file.extend_from_slice(lines);
    }

    fn done<T>(&mut self, done: reasonix_core::store::inbox::Done<T>) -> T {
        self.append(&done.lines);
        done.answer
    }

    fn id(&self, which: u8) -> String {
        let item = self.inbox.items().get(usize::from(which));
        item.map_or("none".into(), |item| item.id.clone())
    }

    /// Both say the same, and what both did is the same.
    fn same<A, B>(real: Result<A, Refusal>, paper: Result<B, &'static str>) -> Option<(A, B)> {
        match (real, paper) {
            (Ok(real), Ok(paper)) => Some((real, paper)),
            (Err(real), Err(paper)) => {
                assert_eq!(real.code(), paper);
                None
            }
            (Ok(_), Err(paper)) => panic!("taken, though {paper}"),
            (Err(real), Ok(_)) => panic!("refused: {real}"),
        }
    }

    fn sync(&mut self) {
        self.synced = self.file.len();
        self.acknowledged.append(&mut self.waiting);
    }

    /// The claim is on the disk: the model is asked.
    fn ask(&mut self) {
        if let Some(id) = self.claiming.take() {
            let delivered = self.delivered.entry(id.clone()).or_default();
            *delivered += 1;
            let allowed = self.allowed.get(&id).copied().unwrap_or(1);
            assert!(
                *delivered <= allowed,
                "{id} was delivered {delivered} times"
            );
        }
    }

    fn claim(&mut self, id: &str) {
        self.transcript.push(Told::User(Some(id.into())));
        self.claiming = Some(id.into());
    }

    /// It may be delivered once more than it was.
    fn allow(&mut self, id: &str) {
        let delivered = self.delivered.get(id).copied().unwrap_or(0);
        self.allowed.insert(id.into(), delivered + 1);
    }

    fn end(&mut self, end: End) {
        let Some(item) = self.turn.take() else { return };
        self.transcript.push(Told::End(end));
        if let Some(id) = &item {
            let done = match end {
                End::Finished | End::Cancelled => self.inbox.finish(id),
                End::Passing => self.inbox.fail(2, id, true, "503"),
                End::Lasting => self.inbox.fail(2, id, false, "400"),
            };
            if end == End::Passing {
                self.allow(id);
            }
            self.done(done);
        }
        let read: Vec<_> = self.inbox.consumed().map(|item| item.id.clone()).collect();
        for id in read {
            let done = self.inbox.finish(&id);
            self.done(done);
        }
        let done = self.inbox.give_back(2);
        self.done(done);
        self.book.end(item.as_deref(), end);
        self.open &= end == End::Finished;
    }

    /// How many changes are whole in what is left of the file, beyond what was written as a whole.
    fn page(&self) -> usize {
        if self.file.is_empty() {
            return 0;
        }
        let mut lines = self.file[self.whole..]
            .split(|byte| *byte == b'\n')
            .collect::<Vec<_>>();
        let last = lines.pop().unwrap_or_default();
        let torn = serde_json::from_slice::<serde_json::Value>(last).is_err();
        let head = usize::from(self.whole == 0);
        (lines.len() + usize::from(!torn)).saturating_sub(head)
    }

    fn recover(&mut self) {
        let run = format!("run-{}", self.runs);
        let transcript = &self.transcript;
        let page = self.page();
        let recovery = Inbox::recover(&self.file, &run, 3, &limits(), |item| {
            let (times, end) = told(transcript, &item.id);
            match times {
                0 => Claim::Absent,
                times => Claim::Begun {
                    times,
                    end: end.map(|end| match end {
                        End::Finished => TurnEnd::Finished,
                        End::Cancelled => TurnEnd::Cancelled,
                        End::Passing => TurnEnd::Failed { passing: true },
                        End::Lasting => TurnEnd::Failed { passing: false },
                    }),
                },
            }
        });
        let Recovery {
            inbox,
            rewrite,
            lines,
            aside,
            findings,
            ..
        } = recovery;
        assert_eq!(aside, None, "a crash is no damage: {findings:?}");
        self.inbox = inbox;
        self.book
            .recover(page, self.runs, |id| told(transcript, id));
        if let Some(file) = rewrite {
            self.write(file);
        }
        self.append(&lines);
        if matches!(self.transcript.last(), Some(Told::User(_))) {
            self.transcript.push(Told::Interrupted);
        }
        for item in self.inbox.items() {
            let (_, end) = told(&self.transcript, &item.id);
            if item.state == State::Queued && end == Some(End::Passing) {
                let delivered = self.delivered.get(&item.id).copied().unwrap_or(0);
                self.allowed.insert(item.id.clone(), delivered + 1);
            }
        }
    }

    fn write(&mut self, file: Vec<u8>) {
        self.file = file;
        self.whole = self.file.len();
        self.book.begin_anew();
        self.sync();
    }

    fn crash(&mut self, left: u16, claim: bool) {
        let more = self.file.len() - self.synced;
        let kept = self.synced + more * usize::from(left) / usize::from(u16::MAX);
        self.file.truncate(kept);
        if self.claiming.take().is_some() && !claim {
            self.transcript.pop();
        }
        // Who was not answered does not know what became of it.
        self.waiting.clear();
        self.runs += 1;
        self.open = false;
        self.turn = None;
        self.recover();
    }

    fn act(&mut self, op: Op) {
        if !matches!(op, Op::Crash { .. }) {
            self.ask();
        }
        match op {
            Op::Enqueue {
                text: which,
                steer,
                key,
                broken,
            } => {
                self.ids += 1;
                let id = self.ids.to_string();
                let text = text(which);
                let key = key.map(|key| ["k", "l", "m", "n", " "][usize::from(key)]);
                let mut draft = Draft::plain(text.clone());
                draft.failed = broken.then(|| "gone".into());
                let new = NewItem {
                    id: id.clone(),
                    intent: if steer {
                        Intent::Steer
                    } else {
                        Intent::FollowUp
                    },
                    source: "acp".into(),
                    key: key.map(String::from),
                    draft,
                };
                let turn = self.turn.is_some();
                let real = self.inbox.enqueue(1, new, turn);
                let paper = self.book.enqueue(&id, &text, steer, key, broken, turn);
                if let Some((done, answer)) = Self::same(real, paper) {
                    let real = self.done(done);
                    let real: Answer = (
                        real.id,
                        real.disposition.as_str(),
                        real.position,
                        real.paused,
                        real.idempotent,
                    );
                    assert_eq!(real, answer);
                    if !answer.4 {
                        self.waiting.insert(id);
                    }
                }
            }
            Op::Update {
                which,
                text: said,
                broken,
            } => self.update(which, text(said), broken),
            Op::Refresh { which, broken } => {
                let item = self.inbox.items().get(usize::from(which));
                let text = item.map_or("x".into(), |item| item.body().text);
                self.update(which, text, broken);
            }
            Op::Delete { which } => {
                let id = self.id(which);
                let paper = self.book.delete(&id);
                if let Some((done, ())) = Self::same(self.inbox.delete(&id), paper) {
                    self.done(done);
                    self.deleted.insert(id);
                }
            }
            Op::Move { which, to } => {
                let id = self.id(which);
                let paper = self.book.move_to(&id, to);
                if let Some((done, ())) = Self::same(self.inbox.move_to(2, &id, to), paper) {
                    self.done(done);
                }
            }
            Op::SetPaused(paused) => {
                let done = self.inbox.set_paused(paused).expect("it can be written");
                assert_eq!(self.done(done), self.book.set_paused(paused));
            }
            Op::Retry { which } => {
                let id = self.id(which);
                let paper = self.book.retry(&id);
                if let Some((done, ())) = Self::same(self.inbox.retry(2, &id), paper) {
                    self.done(done);
                    self.allow(&id);
                }
            }
            Op::Prompt => {
                if !self.open {
                    self.open = true;
                    self.turn = Some(None);
                    self.transcript.push(Told::User(None));
                }
            }
            Op::Drain { .. } | Op::DrainCancelled => {
                let next = self.inbox.next().map(|item| item.id.clone());
                assert_eq!(next, self.book.next());
                if !self.open || self.turn.is_some() {
                    return;
                }
                let Some(id) = next else {
                    self.open = false;
                    return;
                };
                self.sync();
                let done = self.inbox.begin(2, &id).expect("it is next");
                self.done(done);
                self.book.begin(&id);
                if let Op::Drain { asked } = op {
                    self.claim(&id);
                    self.turn = Some(Some(id));
                    if asked {
                        self.ask();
                    }
                } else {
                    let done = self.inbox.release(2, &id);
                    self.done(done);
                    self.book.release(&id);
                    self.open = false;
                }
            }
            Op::Read => {
                let accepted: Vec<_> = self.inbox.accepted().map(|i| i.id.clone()).collect();
                assert!(accepted.is_empty() || self.turn.is_some());
                if !accepted.is_empty() {
                    self.sync();
                }
                for id in accepted {
                    self.ask();
                    self.claim(&id);
                    let done = self.inbox.consume(2, &id);
                    self.done(done);
                    self.book.consume(&id);
                }
            }
            Op::EndTurn(over) => self.end(over.into()),
            Op::Sync => self.sync(),
            Op::Compact => {
                if let Some(file) = self.inbox.compaction() {
                    self.write(file);
                }
            }
            Op::Crash { left, claim } => self.crash(left, claim),
            Op::Reopen => {
                self.end(End::Cancelled);
                self.open = false;
                self.sync();
                self.recover();
            }
        }
        self.compare();
    }

    fn update(&mut self, which: u8, text: String, broken: bool) {
        let id = self.id(which);
        let mut draft = Draft::plain(text.clone());
        draft.failed = broken.then(|| "gone".into());
        let paper = self.book.update(&id, &text, broken);
        if let Some((done, ())) = Self::same(self.inbox.update(2, &id, draft), paper) {
            self.done(done);
        }
    }

    fn compare(&self) {
        let items = self.inbox.items().iter().map(|item| {
            let steer = item.intent == Intent::Steer;
            let key = item.key().map(String::from);
            let block = item.block.as_ref().map(|block| block.code.as_str());
            let erred = item.last_error.is_some();
            let says = (item.id.clone(), item.body().text, steer, key);
            let stands = (item.state.as_str(), block, item.failures, erred);
            (says, stands, item.revision)
        });
        let slips = self.book.now.slips.iter().cloned().map(|slip| {
            let key = slip.key.map(|(key, _)| key);
            let says = (slip.id, slip.text, slip.steer, key);
            let stands = (slip.state, slip.block, slip.failures, slip.erred);
            (says, stands, slip.revision)
        });
        assert_eq!(items.collect::<Vec<_>>(), slips.collect::<Vec<_>>());
        assert_eq!(self.inbox.revision(), self.book.now.revision);
        assert_eq!(self.inbox.is_paused(), self.book.now.paused);
        assert_eq!(
            self.inbox.recovered().map(|n| n as usize),
            self.book.now.recovered
        );
        assert_eq!(self.page() + 1, self.book.pages.len(), "a line a change");
        for id in &self.acknowledged {
            let (times, end) = told(&self.transcript, id);
            let delivered = times > 0 && end.is_some();
            let there = self.inbox.get(id).is_some();
            assert!(
                there || delivered || self.deleted.contains(id),
                "{id} is lost"
            );
        }
        let bytes: usize = self.inbox.items().iter().map(|item| item.bytes()).sum();
        assert_eq!(self.inbox.bytes(), bytes);
        assert!(bytes <= SIZES.bytes && self.inbox.items().len() <= SIZES.items);
    }
}

fn live(ops: &[Op]) {
    let mut life = Life::new();
    for op in ops {
        life.act(*op);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_inbox_is_the_one_on_paper(ops in prop::collection::vec(op(), 1..60)) {
        live(&ops);
    }
}
