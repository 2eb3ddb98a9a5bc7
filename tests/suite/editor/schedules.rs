//! Generated schedules: whatever an editor and its person do, and whenever, everything ends once,
//! nothing is left with the editor, and nothing is done that nobody allowed.

use std::collections::BTreeMap;

use proptest::prelude::*;
use reasonix_tests::sim::Told;

use super::*;

#[derive(Clone, Debug)]
struct Plan {
    /// Capabilities, a bit each.
    capabilities: u16,
    habits: Vec<Habit>,
    /// How and with what cards are answered, one a card; by a yes when none is left.
    cards: Vec<(Habit, usize)>,
    calls: Vec<usize>,
    command_takes: Option<Duration>,
    /// When what happens from outside happens.
    at: Duration,
    outside: Outside,
    slow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    Nothing,
    Cancel,
    CancelRequest,
    Close,
    Finish,
    Gone,
}

fn plan() -> impl Strategy<Value = Plan> {
    let ms = Duration::from_millis;
    let habit = prop_oneof![
        6 => Just(Habit::Good),
        2 => (0..20_000_u64).prop_map(move |late| Habit::Late(ms(late))),
        1 => Just(Habit::Twice),
        1 => Just(Habit::Malformed),
        1 => Just(Habit::Fails),
        1 => Just(Habit::OtherId),
        1 => Just(Habit::Never),
    ];
    let habit = habit.boxed();
    let outside = prop::sample::select(vec![
        Outside::Nothing,
        Outside::Cancel,
        Outside::CancelRequest,
        Outside::Close,
        Outside::Finish,
        Outside::Gone,
    ]);
    let takes = prop::option::of((0..4_000_u64).prop_map(ms));
    (
        0..1024_u16,
        prop::collection::vec(habit.clone(), 0..12),
        prop::collection::vec((habit, 0..9_usize), 0..5),
        prop::collection::vec(0..7_usize, 1..5),
        takes,
        (0..20_000_u64).prop_map(ms),
        outside,
        any::<bool>(),
    )
        .prop_map(
            |(capabilities, habits, cards, calls, command_takes, at, outside, slow)| Plan {
                capabilities,
                habits,
                cards,
                calls,
                command_takes,
                at,
                outside,
                slow,
            },
        )
}

impl Plan {
    fn has(&self, bit: u16) -> bool {
        self.capabilities & (1 << bit) != 0
    }

    /// Answers to cards; the first five are a yes.
    fn outcomes(&self) -> Vec<(Habit, Value)> {
        let outcome = |nth| match nth {
            0..5 => json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}),
            5 => json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}}),
            6 => json!({"outcome": {"outcome": "selected", "optionId": "made-up"}}),
            7 => json!({"outcome": {"outcome": "cancelled"}}),
            _ => json!({"outcome": {"outcome": "selected"}}),
        };
        let cards = self.cards.iter();
        cards.map(|(habit, nth)| (*habit, outcome(*nth))).collect()
    }

    fn capabilities(&self) -> Value {
        let marker = |bit| match self.has(bit) {
            true => json!({}),
            false => Value::Null,
        };
        json!({
            "fs": {"readTextFile": self.has(0), "writeTextFile": self.has(1)},
            "terminal": self.has(2),
            "elicitation": {"form": marker(3), "url": marker(4)},
            "session": {
                "configOptions": {"boolean": marker(5)},
                "notices": marker(6),
                "compaction": marker(7),
            },
            "subagents": marker(8),
            "plan": marker(9),
        })
    }

    fn config(&self) -> Config {
        let calls: Vec<_> = self
            .calls
            .iter()
            .map(|nth| match nth {
                0 => read(),
                1 => edit("beta", "BETA"),
                2 => ("write_file", json!({"path": "a.txt", "content": "new"})),
                3 => ("write_file", json!({"path": "n.txt", "content": "new"})),
                4 => make(),
                5 => ("ask", json!({"question": "Which?", "options": ["a", "b"]})),
                _ => (
                    "todo_write",
                    json!({"todos": [{"content": "x", "status": "pending"}]}),
                ),
            })
            .collect();
        scripted(&calls)
    }

    /// The capability that a frame needs and this client has not.
    fn ungated(&self, frame: &Value) -> Option<String> {
        let method = frame["method"].as_str()?;
        let kind = frame["params"]["update"]["sessionUpdate"].as_str();
        let bit = match (method, kind) {
            ("fs/read_text_file", _) => 0,
            ("fs/write_text_file", _) => 1,
            ("elicitation/create", _) => match frame["params"]["mode"].as_str() {
                Some("form") => 3,
                _ => 4,
            },
            ("elicitation/complete", _) => 4,
            (_, Some("notice")) => 6,
            (_, Some("compaction_update" | "compaction_summary_chunk")) => 7,
            (_, Some("subagent_update" | "session_message" | "session_message_chunk")) => 8,
            (_, Some("plan_update" | "plan_removed")) => 9,
            _ if method.starts_with("terminal/") => 2,
            _ => return None,
        };
        (!self.has(bit)).then(|| frame.to_string())
    }
}

fn play(plan: &Plan) -> Result<(), TestCaseError> {
    let editor = Editor {
        habits: plan.habits.clone().into(),
        cards: Some(plan.outcomes().into()),
        buffers: [("/w/a.txt".to_string(), "beta".to_string())].into(),
        command_takes: plan.command_takes,
        output: "x\n".into(),
        form: Some(json!({"action": "accept", "content": {"q1": "a"}})),
        ..Editor::default()
    };
    let world = world(&[("a.txt", "beta")]);
    let (mut sim, session) = start(plan.capabilities(), editor, world, plan.config());
    sim.reads = !plan.slow;
    sim.send(&json::prompt(1, &session, "go"));
    sim.run_for(plan.at);
    match plan.outside {
        Outside::Nothing => {}
        Outside::Cancel => sim.send(&json::cancel(&session)),
        Outside::CancelRequest => {
            sim.send(&json::notification(
                "$/cancel_request",
                json!({"requestId": 1}),
            ));
        }
        Outside::Close => {
            sim.send(&json::request(
                2,
                "session/close",
                json!({"sessionId": session}),
            ));
        }
        Outside::Finish => sim.tell(Told::PeerFinished),
        Outside::Gone => sim.tell(Told::PeerGone),
    }
    if plan.slow && sim.closed.is_none() {
        sim.run_for(SECOND);
        sim.read_again();
    }
    // Longer than the longest of everything, a command's own limit included.
    sim.run_for(SECOND * 600);
    let gone = plan.outside == Outside::Gone;
    // A person may take as long as they like over a form or a card: the waits without a limit.
    let mut asked = editor_in(&sim).asked.iter();
    let last = asked.rfind(|method| *method != "terminal/release");
    let persons = ["elicitation/create", "session/request_permission"];
    let person = last.is_some_and(|method| persons.contains(&&**method));
    if person && sim.closed.is_none() && !sim.laws.unanswered().is_empty() {
        sim.send(&json::cancel(&session));
        sim.run_for(SECOND * 10);
    }
    if !gone {
        prop_assert!(sim.laws.unanswered().is_empty(), "a turn did not end");
    }
    if sim.closed.is_none() {
        sim.finish();
    }
    if !gone {
        sim.laws.check();
    }
    prop_assert_eq!(sim.world.running(), 0);
    for frame in &sim.frames {
        prop_assert_eq!(plan.ungated(frame), None);
    }
    let editor = sim.editor.as_ref().expect("it was put there");
    if gone {
        // Nothing can be given back to nobody.
        prop_assert_eq!(&editor.wrong, &Vec::<String>::new());
        prop_assert!(editor.terminals.values().all(|it| it.released <= 1));
    } else {
        editor.check();
        // Every call ended, once.
        let ends = json::tool_ends(&sim.frames, "");
        let ended = |end: &String| end == "completed" || end == "failed";
        prop_assert!(ends.iter().all(ended), "{:?}", ends);
        let updates = sim
            .frames
            .iter()
            .filter_map(|frame| json::update(frame, ""));
        let finals =
            updates.filter(|u| matches!(u["status"].as_str(), Some("completed" | "failed")));
        prop_assert_eq!(finals.count(), ends.len());
    }
    cards(plan, &sim)?;
    // Who writes through the editor leaves the disk alone, refused or not.
    if plan.has(1) {
        prop_assert_eq!(sim.world.file("/w/a.txt"), Some(&b"beta"[..]));
        prop_assert_eq!(sim.world.file("/w/n.txt"), None);
    }
    // A command runs here or there.
    let there = editor
        .terminals
        .values()
        .filter(|it| it.told && it.shown)
        .count();
    let calls = plan.calls.iter().filter(|call| **call == 4).count();
    prop_assert!(there + sim.world.ran.len() <= calls);
    Ok(())
}

/// Every card is settled once: by its answer, or by being taken back. Without a yes nothing is done.
fn cards(plan: &Plan, sim: &Sim) -> Result<(), TestCaseError> {
    let asked = sim.frames.iter();
    let asked = asked.filter(|frame| frame["method"] == "session/request_permission");
    let ids: Vec<_> = asked.map(|frame| frame["id"].clone()).collect();
    let mut back = BTreeMap::new();
    for id in &editor_in(sim).broken_off {
        *back.entry(id.to_string()).or_insert(0) += 1;
    }
    prop_assert!(back.values().all(|times| *times == 1), "{:?}", back);
    let mut outcomes = plan.outcomes().into_iter();
    let mut allowed = 0;
    for id in &ids {
        let habit = outcomes.next();
        let (habit, outcome) = habit.unwrap_or((
            Habit::Good,
            json!({"outcome": {
            "outcome": "selected", "optionId": "allow_once"}}),
        ));
        let silent = matches!(habit, Habit::Never | Habit::OtherId);
        let prompt = !silent && !matches!(habit, Habit::Late(_));
        let back = back.contains_key(&id.to_string());
        if prompt {
            // Only one that came together with the end can have been taken back.
            let ended = plan.outside != Outside::Nothing;
            prop_assert!(!back || ended, "{} was answered and taken back", id);
        }
        if silent && !matches!(plan.outside, Outside::Gone | Outside::Finish) {
            prop_assert!(back, "{} was left open", id);
        }
        let yes = outcome["outcome"]["optionId"] == "allow_once";
        let good = matches!(habit, Habit::Good | Habit::Twice | Habit::Late(_));
        allowed += usize::from(yes && good);
    }
    let editor = editor_in(sim);
    let there = editor.writes.len() + editor.terminals.len();
    let changed = sim.world.file("/w/a.txt") != Some(&b"beta"[..]);
    let made = sim.world.file("/w/n.txt").is_some();
    let here = usize::from(changed) + usize::from(made);
    prop_assert!(editor.writes.len() + here <= allowed);
    if allowed == 0 {
        prop_assert_eq!((there, sim.world.ran.len(), here), (0, 0, 0));
    }
    Ok(())
}

proptest! {
    #![proptest_config(crate::machine::cases(256))]

    #[test]
    fn whatever_an_editor_does_everything_ends_once_and_nothing_is_left_with_it(plan in plan()) {
        play(&plan)?;
    }
}
