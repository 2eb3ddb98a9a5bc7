//! Sessions beside one that takes long to load, and what a killed agent left behind.

use super::inbox::{DONE, says, world_of_another_run};
use super::stored::{Disk, world};
use super::*;

/// Bytes that are read of a file at once here.
const PIECE: usize = 1000;

/// An agent with a small inbox.
fn small(mut world: World) -> World {
    let limits = &mut world.agent.config.limits;
    limits.store_piece = PIECE;
    limits.max_inbox_items = 10;
    limits.max_inbox_item = 4000;
    limits.max_inbox = 30_000;
    world
}

/// A disk with one session whose inbox takes nothing more.
fn full() -> Disk {
    let mut first = small(world(&Disk::default(), &says(1))).session();
    let text = "x".repeat(3980);
    let more = format!(",\"text\":\"{text}\"");
    while let Some(line) = first.asks("inbox/enqueue", &more) {
        if line.contains("inbox_full") {
            assert_eq!(first.items().len(), 7);
            return first.ends();
        }
    }
    panic!("a refusal is an answer");
}

fn is_piece(call: &Call) -> bool {
    matches!(call, Call::ReadAt { path, .. } if path.ends_with("inbox.jsonl"))
}

impl World {
    /// A session beside the one that is loaded; its id.
    fn beside(&mut self) -> String {
        // Not by the seed that named the first session of the process before.
        self.agent.random = ChaCha20Rng::from_seed([8; 32]);
        self.open_session(100);
        let line = self.sees("\"id\":100,\"result\"");
        let at = line.find("sessionId\":\"").expect("an id") + 12;
        line[at..at + 36].into()
    }

    fn prompts(&mut self, session: &str) {
        let block = "{\"type\":\"text\",\"text\":\"go\"}";
        let params = format!("{{\"sessionId\":\"{session}\",\"prompt\":[{block}]}}");
        self.request(1, "session/prompt", &params);
    }

    /// Answers the read that is waited for; false if there is none.
    fn reads_on(&mut self) -> bool {
        let Some((id, call)) = self.open.iter().find(|(_, call)| is_piece(call)) else {
            return false;
        };
        let (id, call) = (*id, call.clone());
        assert!(
            matches!(call, Call::ReadAt { max, .. } if max <= PIECE),
            "{call:?}"
        );
        self.answer(id, &call);
        self.drive();
        true
    }
}

#[test]
fn other_sessions_go_on_while_a_full_inbox_is_loaded() {
    let disk = full();
    let size = disk.files[&format!("/h/sessions/{SESSION}/inbox.jsonl")].len();
    let mut world = small(world_of_another_run(&disk, &says(99)));
    let beside = world.beside();
    world.held = is_piece;
    world.load(5, SESSION);
    let mut steps = 0;
    loop {
        world.prompts(&beside);
        world.sees(DONE);
        assert!(!world.lines.iter().any(|line| line.contains("\"id\":5,")));
        if !world.reads_on() {
            panic!("it is loaded before its inbox is read");
        }
        steps += 1;
        if world.lines.iter().any(|line| line.contains("\"id\":5,")) {
            break;
        }
    }
    assert_eq!(steps, size.div_ceil(PIECE));
    world.sees("\"id\":5,\"result\"");
    assert_eq!(world.items().len(), 7);
}

#[test]
fn a_load_is_taken_back_between_two_pieces_of_its_inbox() {
    let mut world = small(world_of_another_run(&full(), &says(9)));
    world.held = is_piece;
    world.load(5, SESSION);
    for _ in 0..3 {
        assert!(world.reads_on());
    }
    world.say("\"method\":\"$/cancel_request\",\"params\":{\"requestId\":5}");
    world.sees_only("\"id\":5,\"error\":{\"code\":-32800");
    // The lock is free by then.
    world.load(6, SESSION);
    world.held = |_| false;
    world.drive();
    world.sees("\"id\":6,\"result\"");
    assert_eq!(world.items().len(), 7);
}

#[test]
fn what_a_killed_agent_left_of_temporary_files_goes_with_the_next_that_has_the_session() {
    let left = format!("/tmp/reasonix-{SESSION}/x");
    let is_left = |world: &World| {
        let disk = world.disk.as_ref().expect("a disk");
        disk.files.contains_key(&left)
    };
    let mut disk = full();
    disk.files.insert(left.clone(), b"x".to_vec());
    let params = format!("{{\"sessionId\":\"{SESSION}\"}}");
    for method in ["session/load", "session/resume", "session/delete"] {
        let mut world = world(&disk, &says(1));
        // Somebody has it open: it is theirs.
        world.held = |call| matches!(call, Call::Lock { .. });
        let ask = |world: &mut World| {
            if method == "session/delete" {
                world.request(5, method, &params);
            } else {
                let params =
                    format!("{{\"sessionId\":\"{SESSION}\",\"cwd\":\"/w\",\"mcpServers\":[]}}");
                world.request(5, method, &params);
            }
        };
        ask(&mut world);
        let lock = world
            .open
            .iter()
            .find(|(_, call)| matches!(call, Call::Lock { .. }));
        let id = *lock.expect("it is locked first").0;
        world.open.remove(&id);
        let held = Outcome::Held(Default::default());
        world.input(Input::Call {
            id,
            news: News::Done(held),
        });
        world.sees("session_locked");
        assert!(is_left(&world), "{method}");
        // It is gone before the session can be used.
        world.held =
            |call| matches!(call, Call::RemoveTree { path, .. } if path.starts_with("/tmp/"));
        ask(&mut world);
        assert!(
            !world
                .lines
                .iter()
                .any(|line| line.contains("\"id\":5,\"result\""))
        );
        world.held = |_| false;
        world.drive();
        world.sees("\"id\":5,\"result\"");
        assert!(!is_left(&world), "{method}");
    }
    // One that is open here has its own.
    let mut world = world(&disk, &says(1));
    world.load(5, SESSION);
    world.sees("\"id\":5,\"result\"");
    let its = world.disk.as_mut().expect("a disk");
    its.files.insert(left.clone(), b"x".to_vec());
    world.load(6, SESSION);
    world.sees("\"id\":6,\"result\"");
    assert!(is_left(&world));
}
