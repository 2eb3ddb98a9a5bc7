//! The programs killed at random moments on a real disk, again and again in the middle of the same
//! session: what was answered is there for the next process, messages for later too, and no command
//! runs twice.
//!
//! `REASONIX_TEST_KILLS` says how often, `REASONIX_TEST_SEED` repeats a run; `tests/kills` sets both.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::ops::Range;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};

/// Kills in one session.
const IN_A_ROW: u64 = 5;

/// Turns that the script knows.
const TURNS: u64 = 99;

/// Numbers by chance (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// A turn counts itself in a file by a command, writes a file of its own and says that it is done.
fn script() -> String {
    let mut lines = Vec::new();
    for turn in 0..TURNS {
        let name = format!("{turn:02}");
        lines.extend([
            json!({"when": {"prompt_contains": format!("turn {name}")}}),
            json!({"thought": "zählen"}),
            json!({"text": "I count. "}),
            json!({"tool": "bash", "args": {"command": format!("echo {name} >> log.txt")}}),
            json!({"finish": "tool_calls"}),
            json!({"tool": "write_file", "args": {"path": format!("f{name}.txt"), "content": name}}),
            json!({"finish": "tool_calls"}),
            json!({"text": format!("turn {name} ist erledigt.")}),
            json!({"when": {"prompt_contains": format!("later {name}")}}),
            json!({"tool": "bash", "args": {"command": format!("echo l{name} >> log.txt")}}),
            json!({"finish": "tool_calls"}),
            json!({"text": "And that. "}),
        ]);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// What the client knows of its session, over all processes.
#[derive(Debug, Default)]
struct Book {
    session: Option<String>,
    /// Turns that were asked for, in order, and whether they were answered.
    turns: Vec<(u64, bool)>,
    /// Messages for later that were put in, one before each turn, and whether they were answered.
    later: Vec<(u64, bool)>,
    /// What `agent_preset` may be: the last that was answered, and any asked for since.
    presets: Vec<&'static str>,
    request: u64,
}

impl Book {
    fn request(&mut self) -> u64 {
        self.request += 1;
        self.request
    }

    fn next_turn(&mut self) -> u64 {
        let turn = self.turns.len() as u64;
        assert!(turn < TURNS, "more turns than the script has");
        self.turns.push((turn, false));
        turn
    }
}

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
enum When {
    /// So long after its start.
    After(Duration),
    /// So soon after its n-th frame.
    Frame(u64, Duration),
}

impl When {
    fn by(chance: &mut Chance) -> Self {
        let soon = Duration::from_micros(chance.below(3000));
        match chance.below(2) {
            0 => Self::After(Duration::from_micros(chance.below(250_000))),
            _ => Self::Frame(chance.below(60), soon),
        }
    }
}

/// One process, until it is dead: by the kill, or in peace after two turns.
struct Life<'a> {
    agent: Running,
    place: &'a Place,
    book: &'a mut Book,
    kill: Option<When>,
    context: String,
    /// Its output has ended.
    over: bool,
}

impl Life<'_> {
    fn kill_after(&mut self, time: Duration) {
        self.kill = None;
        let pid = self.agent.pid().to_string();
        std::thread::spawn(move || {
            // The moment is what is tried here; nothing waits for it.
            std::thread::sleep(time);
            let _ = Command::new("kill").args(["-9", &pid]).status();
        });
    }

    /// The next frame; none: it is dead.
    fn next(&mut self) -> Option<Value> {
        if let Some(When::Frame(at, soon)) = self.kill
            && self.agent.frames.len() as u64 >= at
        {
            self.kill_after(soon);
        }
        let end = Instant::now() + Duration::from_secs(30);
        let frame = self.agent.next("a frame or the end", end);
        self.over = frame.is_none();
        frame
    }

    /// Reads until this is answered; none: it died first.
    fn answer(&mut self, message: &Value) -> Option<Value> {
        self.agent.send(message);
        loop {
            let frame = self.next()?;
            if frame.get("method").is_none() && frame["id"] == message["id"] {
                return Some(frame);
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Option<Value> {
        let id = self.book.request();
        let answer = self.answer(&json::request(id, method, params))?;
        let result = answer.get("result");
        assert!(result.is_some(), "{}: {method}: {answer}", self.context);
        result.cloned()
    }

    fn live(&mut self) -> Option<()> {
        let cwd = json!(self.place.work());
        let id = self.book.request();
        self.answer(&json::initialize(id))?;
        let mut params = json!({"cwd": cwd, "mcpServers": []});
        match self.book.session.clone() {
            None => {
                let result = self.ask("session/new", params)?;
                self.book.session = result["sessionId"].as_str().map(String::from);
            }
            Some(session) => {
                params["sessionId"] = json!(session);
                let from = self.agent.frames.len();
                let result = self.ask("session/load", params)?;
                let frames = self.agent.frames.len();
                let params = json!({"sessionId": session});
                let list = self.ask("_reasonix.io/session/inbox/list", params)?;
                self.check(&session, from..frames, &result, &list);
                // What was not begun has its turn.
                let params = json!({"sessionId": session, "paused": false});
                self.ask("_reasonix.io/session/inbox/setPaused", params)?;
            }
        }
        // A process that nobody kills goes on until it was used.
        for _ in 0..if self.kill.is_some() { TURNS } else { 2 } {
            let session = self.book.session.clone()?;
            self.put_in(&session)?;
            let turn = self.book.next_turn();
            let text = format!("turn {turn:02}, bitte schön");
            let id = self.book.request();
            let answer = self.answer(&json::prompt(id, &session, &text))?;
            let stop = &answer["result"]["stopReason"];
            assert_eq!(*stop, "end_turn", "{}: {answer}", self.context);
            self.book.turns[turn as usize].1 = true;
            let preset = ["light", "balanced"][turn as usize % 2];
            self.book.presets.push(preset);
            let params = json!({"sessionId": session, "configId": "agent_preset", "value": preset});
            self.ask("session/set_config_option", params)?;
            self.book.presets = vec![preset];
        }
        Some(())
    }

    /// Puts a message in for later.
    fn put_in(&mut self, session: &str) -> Option<()> {
        let nth = self.book.later.len() as u64;
        self.book.later.push((nth, false));
        let params = json!({
            "sessionId": session,
            "text": format!("later {nth:02}, ohne Eile"),
            "idempotencyKey": format!("k{nth}"),
        });
        self.ask("_reasonix.io/session/inbox/enqueue", params)?;
        self.book.later[nth as usize].1 = true;
        Some(())
    }

    /// What was loaded is what was answered.
    fn check(&self, session: &str, loaded: Range<usize>, result: &Value, list: &Value) {
        let context = &self.context;
        let frames = &self.agent.frames[loaded];
        let users = json::text_of(frames, session, "user_message_chunk");
        let said = json::said(frames, session);
        let in_order = |text: &str, words: &dyn Fn(u64) -> String| {
            let mut last = 0;
            for (turn, answered) in &self.book.turns {
                let words = words(*turn);
                let times = text.matches(&words).count();
                let may = if *answered { 1..=1 } else { 0..=1 };
                assert!(
                    may.contains(&times),
                    "{context}: {words:?} {times} times in {text:?}"
                );
                let at = text.find(&words).unwrap_or(last);
                assert!(at >= last, "{context}: {words:?} out of order in {text:?}");
                last = at;
            }
        };
        in_order(&users, &|turn| format!("turn {turn:02}, bitte schön"));
        in_order(&said, &|turn| format!("turn {turn:02} ist erledigt."));
        self.check_later(&users, list);
        let options = result["configOptions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let preset = options.iter().find(|option| option["id"] == "agent_preset");
        let value = preset
            .map(|option| option["currentValue"].clone())
            .unwrap_or_default();
        let may = &self.book.presets;
        assert!(
            may.iter().any(|may| value == *may),
            "{context}: the preset is {value}, not {may:?}"
        );
        self.check_disk();
    }

    /// What was put in for later waits, or was begun once.
    fn check_later(&self, users: &str, list: &Value) {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let log = std::fs::read_to_string(self.place.file("log.txt")).unwrap_or_default();
        let mut last = 0;
        for (nth, answered) in &self.book.later {
            let text = format!("later {nth:02}, ohne Eile");
            let context = format!("{}: {text:?}, of {list} and {users:?}", self.context);
            let waits: Vec<_> = items
                .iter()
                .filter(|item| item["preview"] == *text)
                .collect();
            let said = users.matches(&text).count();
            assert!(said <= 1 && waits.len() <= 1, "{context}");
            assert!(!answered || said + waits.len() > 0, "{context}: lost");
            let at = users.find(&text).unwrap_or(last);
            assert!(at >= last, "{context}: out of order");
            last = at;
            let ran = log.lines().any(|line| line == format!("l{nth:02}"));
            match waits.first() {
                Some(item) => {
                    let state = if said > 0 { "uncertain" } else { "queued" };
                    assert_eq!(item["state"], state, "{context}");
                    assert!(said > 0 || !ran, "{context}: ran, and waits");
                }
                None => assert_eq!(said > 0, ran, "{context}: over"),
            }
        }
    }

    /// What ran, ran once.
    fn check_disk(&self) {
        let context = &self.context;
        let log = std::fs::read_to_string(self.place.file("log.txt")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let once: BTreeSet<_> = lines.iter().collect();
        assert_eq!(
            lines.len(),
            once.len(),
            "{context}: a command ran twice: {log:?}"
        );
        for (turn, answered) in &self.book.turns {
            let name = format!("{turn:02}");
            if *answered {
                assert!(
                    lines.contains(&&*name),
                    "{context}: turn {name} left no line: {log:?}"
                );
                let file = std::fs::read_to_string(self.place.file(&format!("f{name}.txt")));
                assert_eq!(file.ok().as_deref(), Some(&*name), "{context}: its file");
            }
        }
    }
}

/// Starts a process and lets it live.
fn live(program: &str, place: &Place, book: &mut Book, kill: Option<When>, context: &str) {
    let script = place.script(&script());
    let model = format!("script:{}", script.to_str().expect("a plain name"));
    let flags = ["--model", &model, "--permission-mode", "bypassPermissions"];
    let agent = Running::start(program, place, &flags);
    let context = format!("{context}, {kill:?}");
    let mut life = Life {
        agent,
        place,
        book,
        kill,
        context,
        over: false,
    };
    if let Some(When::After(time)) = kill {
        life.kill_after(time);
        life.kill = Some(When::Frame(u64::MAX, time));
    }
    if life.live().is_some() {
        assert!(kill.is_none(), "{}: it was to be killed", life.context);
        life.check_disk();
        let Life { agent, context, .. } = life;
        let (ended, laws) = agent.finish();
        laws.check();
        assert_eq!(ended.code, Some(0), "{context}: {ended:?}");
    } else {
        assert!(
            kill.is_some() && life.over,
            "{}: it died: {}",
            life.context,
            life.agent.errors()
        );
        life.agent.laws.check();
        assert!(
            !life.agent.errors().contains("panicked"),
            "{}",
            life.agent.errors()
        );
    }
}

#[test]
fn a_program_that_is_killed_again_and_again_loses_nothing_and_does_nothing_twice() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse().ok())
    };
    let kills: u64 = number("REASONIX_TEST_KILLS").unwrap_or(25);
    let seed: u64 = number("REASONIX_TEST_SEED").unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos() as u64)
    });
    // Not by a macro, whose output is kept back when a test passes.
    let _ = writeln!(
        std::io::stderr(),
        "kills: {kills} with REASONIX_TEST_SEED={seed}"
    );
    let mut chance = Chance(seed);
    let (mut done, mut turns, mut broken) = (0, 0, 0);
    while done < kills {
        let program = PROGRAMS[(done / IN_A_ROW) as usize % PROGRAMS.len()];
        let place = Place::new();
        let mut book = Book {
            presets: vec!["balanced"],
            ..Book::default()
        };
        for _ in 0..IN_A_ROW.min(kills - done) {
            done += 1;
            let context = format!("seed {seed}, kill {done} ({program})");
            let kill = When::by(&mut chance);
            live(program, &place, &mut book, Some(kill), &context);
        }
        let context = format!("seed {seed}, after kill {done} ({program})");
        live(program, &place, &mut book, None, &context);
        turns += book.turns.len();
        broken += book.turns.iter().filter(|(_, answered)| !answered).count();
    }
    let _ = writeln!(
        std::io::stderr(),
        "kills: {done} done, {turns} turns, {broken} of them broken off, nothing lost"
    );
}
