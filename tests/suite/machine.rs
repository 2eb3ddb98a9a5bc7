//! Properties of the whole machine in a simulated world: repeatable, indifferent to how bytes and
//! time are cut, bounded, and silent after its end.

use std::time::Duration;

use proptest::prelude::*;
use reasonix_core::agent::CloseReason;
use reasonix_core::ids::CallId;
use reasonix_tests::chaos::{self, Cut};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::provider::{
    Answer, Step, calls, done, finish, hang, reasoning, say, text, tool,
};
use reasonix_tests::sim::{Card, Entry, Sim, Told, config, replay};
use reasonix_tests::world::{Command, Say, World, http};

/// A folder, two files and two commands.
pub fn world() -> World {
    let mut world = World::with_files("/w", &[("a.txt", "alpha\nbeta\n"), ("b.txt", "gamma\n")]);
    let command = |contains: &str, output: &str, takes| Command {
        contains: contains.into(),
        output: output.into(),
        takes,
        code: 0,
    };
    world.commands = vec![
        command("make test", "ok\n", Some(Duration::from_millis(300))),
        command("sleep", "begun\n", None),
    ];
    world.branches = branches()
        .into_iter()
        .map(|(contains, answers)| (contains.into(), answers.iter().map(http).collect()))
        .collect();
    world
}

/// What the model does, by what the prompt contains.
fn branches() -> Vec<(&'static str, Vec<Answer>)> {
    let edit = json!({"path": "a.txt", "old_string": "beta", "new_string": "BETA"});
    vec![
        ("say", vec![say("hello there")]),
        (
            "think",
            vec![Answer::stream([
                reasoning("hm"),
                text("yes"),
                finish("stop"),
                done(),
            ])],
        ),
        (
            "slow",
            vec![Answer {
                steps: vec![
                    Step::Bytes(text("one ").into()),
                    Step::Pause(Duration::from_millis(400)),
                    Step::Bytes((text("two") + &finish("stop") + &done()).into()),
                ],
                ..say("")
            }],
        ),
        ("hang", vec![hang([text("part")])]),
        (
            "read",
            vec![
                calls(&[
                    ("r1", "read_file", r#"{"path":"a.txt"}"#),
                    ("r2", "read_file", r#"{"path":"b.txt"}"#),
                    ("r3", "ls", r#"{"path":"."}"#),
                ]),
                say("read"),
            ],
        ),
        (
            "write",
            vec![
                tool(
                    "w",
                    "write_file",
                    json!({"path": "n.txt", "content": "new"}),
                ),
                say("wrote"),
            ],
        ),
        (
            "edit",
            vec![
                tool("r", "read_file", json!({"path": "a.txt"})),
                tool("e", "edit_file", edit),
                say("edited"),
            ],
        ),
        (
            "test",
            vec![
                tool("b", "bash", json!({"command": "make test"})),
                say("tested"),
            ],
        ),
        (
            "sleep",
            vec![
                tool("b", "bash", json!({"command": "sleep 100"})),
                say("slept"),
            ],
        ),
        (
            "limited",
            vec![
                tool(
                    "b",
                    "bash",
                    json!({"command": "sleep 100", "timeout_seconds": 2}),
                ),
                say("on time"),
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
    ]
}

#[test]
fn two_prompts_in_one_write_are_both_answered() {
    let mut sim = Sim::new(config(), world());
    let session = sim.open(json!({}), "/w");
    let [one, two] = [1, 2].map(|id| json::line(&json::prompt(id, &session, "hang")));
    sim.send_bytes(&[one, two].concat());
    assert_eq!(sim.answer(2)["error"]["data"]["code"], "session_busy");
    sim.send(&json::cancel(&session));
    assert_eq!(sim.answer(1)["result"]["stopReason"], "cancelled");
}

#[test]
fn a_command_that_reaches_its_limit_fails_and_the_turn_goes_on() {
    let mut sim = Sim::new(config(), world());
    let session = sim.open(json!({}), "/w");
    let from = sim.now;
    let answer = sim.ask(&json::prompt(1, &session, "limited"));
    assert_eq!(
        answer["result"]["stopReason"],
        "end_turn",
        "{answer}\n{:#?}",
        sim.effects()
    );
    assert_eq!(json::tool_ends(&sim.frames, &session), ["failed"]);
    let took = sim.now.since(from);
    assert!(
        took >= Duration::from_secs(2) && took < Duration::from_secs(4),
        "{took:?}"
    );
}

const WORDS: [&str; 11] = [
    "say", "think", "slow", "hang", "read", "write", "edit", "test", "sleep", "fail", "flaky",
];

/// One thing a client does.
#[derive(Clone, Debug)]
enum Act {
    /// A prompt to a session.
    Prompt(usize, usize),
    /// A cancel of a session.
    Cancel(usize),
    /// Both in one write.
    PromptAndCancel(usize, usize),
    /// A close of a session.
    Close(usize),
    /// Time passes, milliseconds.
    Wait(u64),
    /// A request nobody knows.
    Unknown,
    /// The client stops or begins to read.
    Reads(bool),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..3_usize, 0..WORDS.len()).prop_map(|(session, word)| Act::Prompt(session, word)),
        2 => (0..3_usize).prop_map(Act::Cancel),
        1 => (0..3_usize, 0..WORDS.len()).prop_map(|(s, word)| Act::PromptAndCancel(s, word)),
        1 => (0..3_usize).prop_map(Act::Close),
        3 => (0..3000_u64).prop_map(Act::Wait),
        1 => Just(Act::Unknown),
        1 => any::<bool>().prop_map(Act::Reads),
    ]
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec(act(), 1..14)
}

/// A client with three sessions that does these things.
fn play(acts: &[Act], world: World, card: Card) -> Sim {
    let mut sim = Sim::new(config(), world);
    sim.cards = vec![card];
    let mut sessions = vec![sim.open(json!({}), "/w")];
    for id in [9003, 9004] {
        sessions.push(sim.open_another(id, "/w"));
    }
    for (id, act) in (1..).zip(acts) {
        match act {
            Act::Prompt(session, word) => {
                sim.send(&json::prompt(id, &sessions[*session], WORDS[*word]));
            }
            Act::Cancel(session) => sim.send(&json::cancel(&sessions[*session])),
            Act::PromptAndCancel(session, word) => {
                sim.send(&json::prompt(id, &sessions[*session], WORDS[*word]));
                sim.send(&json::cancel(&sessions[*session]));
            }
            Act::Close(session) => {
                let params = json!({"sessionId": sessions[*session]});
                sim.send(&json::request(id, "session/close", params));
            }
            Act::Wait(ms) => sim.run_for(Duration::from_millis(*ms)),
            Act::Unknown => sim.send(&json::request(id, "no/such", json!({}))),
            Act::Reads(true) => sim.read_again(),
            Act::Reads(false) => sim.reads = false,
        }
    }
    sim.read_again();
    sim
}

/// So many cases, or what the environment asks for.
pub fn cases(count: u32) -> ProptestConfig {
    // The environment may ask for more; then it knows what it does.
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(count),
    }
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn every_request_is_answered_and_the_end_is_the_end(
        acts in acts(),
        scatter in 0..4_u64,
        yes in any::<bool>(),
        gone in any::<bool>(),
    ) {
        let card = if yes { Card::Choose("allow_once") } else { Card::Silence };
        let mut sim = play(&acts, world().scattered(scatter), card);
        if gone {
            sim.run_for(Duration::ZERO);
            let heard = sim.frames.len();
            sim.tell(Told::PeerGone);
            sim.run_for(Duration::from_secs(20));
            prop_assert_eq!(sim.closed, Some(CloseReason::Gone));
            prop_assert_eq!(sim.frames.len(), heard, "a frame for nobody");
        } else {
            prop_assert_eq!(sim.finish(), CloseReason::Finished);
            sim.laws.check();
        }
        prop_assert_eq!(sim.world.running(), 0, "a call outlives the agent");
        // Silence, whatever is said.
        let effects = sim.effects().len();
        sim.tell(Told::Received(b"{}\n".to_vec()));
        sim.tell(Told::Timeout);
        sim.tell(Told::PeerFinished);
        sim.tell(Told::Call(CallId::new(1), Say::Done(reasonix_core::call::Outcome::Written)));
        prop_assert_eq!(sim.effects().len(), effects);
    }

    #[test]
    fn the_same_inputs_again_want_the_same_again(acts in acts(), scatter in 0..4_u64) {
        let mut sim = play(&acts, world().scattered(scatter), Card::Choose("allow_once"));
        sim.finish();
        let again = replay(config(), &sim.log);
        prop_assert_eq!(sim.effects(), again);
    }

    #[test]
    fn timeouts_that_come_early_or_twice_change_nothing(acts in acts(), every in 1..5_usize) {
        let mut sim = play(&acts, world(), Card::Choose("allow_once"));
        sim.finish();
        let mut noisy = Vec::new();
        for (at, entry) in sim.log.iter().filter(|entry| matches!(entry, Entry::In(..))).enumerate() {
            let Entry::In(now, _) = entry else { continue };
            noisy.push(entry.clone());
            if at % every == 0 {
                noisy.push(Entry::In(*now, Told::Timeout));
                noisy.push(Entry::In(*now, Told::Timeout));
            }
        }
        // A deadline that is due at this very moment may be served by the early one: the effects
        // are the same, in the same order.
        prop_assert_eq!(sim.effects(), replay(config(), &noisy));
    }

    #[test]
    fn late_and_unknown_news_are_ignored(acts in acts(), picks in prop::collection::vec(0..400_u64, 1..8)) {
        let mut sim = play(&acts, world(), Card::Choose("allow_once"));
        sim.run_for(Duration::from_secs(40));
        let over: Vec<_> = picks
            .into_iter()
            .map(CallId::new)
            .filter(|id| !sim.world.is_running(*id))
            .collect();
        let effects = sim.effects().len();
        for id in over {
            for say in [
                Say::Done(reasonix_core::call::Outcome::Written),
                Say::Bytes(reasonix_core::call::Stream::Out, b"late".to_vec()),
                Say::Fed(3),
                Say::Failed(reasonix_core::error::IoFault::new(reasonix_core::error::IoKind::Other, "late")),
            ] {
                sim.tell(Told::Call(id, say));
            }
        }
        prop_assert_eq!(sim.effects().len(), effects);
        sim.finish();
        sim.laws.check();
    }

    #[test]
    fn no_bytes_break_it_and_no_cut_changes_it(
        data in prop::collection::vec(any::<u8>(), 0..300),
        piece in 1..40_usize,
    ) {
        let whole = chaos::run(config(), &data, Cut::Whole);
        let pieces = chaos::run(config(), &data, Cut::Pieces(piece));
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn sessions_do_not_hear_each_other(
        scatter in 1..1000_u64,
        sizes in prop::collection::vec(1..60_usize, 2..12),
    ) {
        let mut world = world().scattered(scatter);
        let letter = |at: usize| char::from(b'A' + at as u8).to_string();
        world.branches = (0..sizes.len())
            .map(|at| {
                let pieces = std::iter::repeat_n(text(&letter(at)), sizes[at])
                    .chain([finish("stop"), done()]);
                let mut answer = http(&Answer::stream(pieces));
                for (n, piece) in answer.iter_mut().enumerate() {
                    piece.after = Duration::from_millis((n * (at + 3) % 7) as u64);
                }
                (format!("letter {at}."), vec![answer])
            })
            .collect();
        let mut sim = Sim::new(config(), world);
        let mut sessions = vec![sim.open(json!({}), "/w")];
        for at in 1..sizes.len() {
            sessions.push(sim.open_another(9100 + at as u64, "/w"));
        }
        for (at, session) in sessions.iter().enumerate() {
            sim.send(&json::prompt(at as u64, session, &format!("letter {at}.")));
        }
        for (at, session) in sessions.iter().enumerate() {
            let answer = sim.answer(at as u64);
            prop_assert_eq!(&answer["result"]["stopReason"], &json!("end_turn"));
            prop_assert_eq!(json::said(&sim.frames, session), letter(at).repeat(sizes[at]));
        }
        sim.finish();
        sim.laws.check();
    }
}

/// What the reference model knows of one session.
#[derive(Clone, Debug, Default)]
struct Session {
    closed: bool,
    /// The open turn: its id, its word, and when it ends by itself.
    turn: Option<(u64, usize, Option<u64>)>,
}

proptest! {
    #![proptest_config(cases(96))]

    /// A model small enough to be obviously right: one turn a session, a prompt on a busy one is
    /// refused, a cancel ends the open turn and nothing else, a closed session is unknown.
    #[test]
    fn turns_end_as_a_simple_model_says(
        acts in prop::collection::vec((0..2_usize, 0..5_u8, prop::sample::select(vec![0_usize, 2, 3, 8, 9])), 1..20),
    ) {
        let mut sim = Sim::new(config(), world());
        let names = [sim.open(json!({}), "/w"), sim.open_another(9003, "/w")];
        let mut model = [Session::default(), Session::default()];
        let mut due: Vec<(u64, Value)> = Vec::new();
        let mut clock = 0_u64;
        for (id, (at, what, word)) in (1_u64..).zip(acts) {
            // Everything rests between two acts, so the model needs no races.
            sim.run_for(Duration::from_millis(10));
            clock += 10;
            settle(&mut model, clock, &mut due);
            let session = &mut model[at];
            match what {
                0..=1 => {
                    sim.send(&json::prompt(id, &names[at], WORDS[word]));
                    if session.closed {
                        due.push((id, json!("session_not_found")));
                    } else if session.turn.is_some() {
                        due.push((id, json!("session_busy")));
                    } else {
                        let ends = match WORDS[word] {
                            "hang" | "sleep" => None,
                            "slow" => Some(clock + 400),
                            _ => Some(clock),
                        };
                        session.turn = Some((id, word, ends));
                    }
                }
                2 => {
                    sim.send(&json::cancel(&names[at]));
                    if let Some((turn, ..)) = session.turn.take() {
                        due.push((turn, json!("cancelled")));
                    }
                }
                3 => {
                    sim.run_for(Duration::from_millis(450));
                    clock += 450;
                }
                _ => {
                    let params = json!({"sessionId": names[at]});
                    sim.send(&json::request(id, "session/close", params));
                    if let Some((turn, ..)) = session.turn.take() {
                        due.push((turn, json!("cancelled")));
                    }
                    // To close what is closed already is done at once.
                    due.push((id, json!("closed")));
                    session.closed = true;
                }
            }
        }
        sim.run_for(Duration::from_millis(500));
        settle(&mut model, clock + 500, &mut due);
        sim.finish();
        sim.laws.check();
        for session in &mut model {
            if let Some((turn, ..)) = session.turn.take() {
                due.push((turn, json!("cancelled")));
            }
        }
        for (id, expected) in due {
            let answer = json::answer_to(&sim.frames, id).cloned().unwrap_or_default();
            let seen = [
                &answer["result"]["stopReason"],
                &answer["error"]["data"]["code"],
            ];
            let fits = seen.contains(&&expected)
                || (expected == "closed" && answer["result"] == json!({}));
            prop_assert!(fits, "{id}: {expected} but {answer}");
        }
    }
}

/// Turns that end by themselves have ended by now.
fn settle(model: &mut [Session; 2], clock: u64, due: &mut Vec<(u64, Value)>) {
    for session in model {
        if let Some((turn, word, Some(ends))) = session.turn
            && ends <= clock
        {
            session.turn = None;
            due.push((
                turn,
                match WORDS[word] {
                    "fail" => json!("turn_failed"),
                    _ => json!("end_turn"),
                },
            ));
        }
    }
}
