//! Pages that the person is asked to open: when they are done is told once, whoever ends first.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::world::{ECHO, World, stdio};
use crate::ids::CallId;
use crate::mcp::{Hub, Question, Reply};

fn ready() -> (World, CallId) {
    let mut world = World::asked(Vec::from([stdio("s")]), true);
    let id = world.shake(ECHO);
    (world, id)
}

impl World {
    /// The server asks for a page that it calls so; gives the number of the question.
    fn page(&mut self, id: CallId, name: &str) -> u64 {
        let number = self.asks.len();
        let params = format!(
            r#"{{"mode":"url","message":"m","url":"https://h/x","elicitationId":"{name}"}}"#
        );
        self.line(
            id,
            &format!(
                r#"{{"jsonrpc":"2.0","id":"p{number}","method":"elicitation/create","params":{params}}}"#
            ),
        );
        let (ask, question) = self.asks.last().unwrap();
        assert!(matches!(question, Question::Page { .. }));
        *ask
    }

    fn done(&mut self, id: CallId, name: &str) {
        let method = "notifications/elicitation/complete";
        self.line(
            id,
            &format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"elicitationId":"{name}"}}}}"#
            ),
        );
    }

    fn agrees(&mut self, ask: u64) {
        let reply = Reply::Accept(BTreeMap::new());
        self.with(|hub, cx| hub.answered(cx, ask, &reply));
    }

    #[track_caller]
    fn completed(&self, expected: &[(u64, &str)]) {
        let found: Vec<(u64, &str)> = self
            .completed
            .iter()
            .map(|(ask, id)| (*ask, id.as_str()))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn the_end_of_a_page_is_told_once() {
    let (mut world, id) = ready();
    let ask = world.page(id, "a");
    world.agrees(ask);
    world.completed(&[]);
    world.done(id, "b");
    world.completed(&[]);
    for _ in 0..3 {
        world.done(id, "a");
    }
    world.completed(&[(ask, "a")]);
    world.exit(id, 1);
    world.with(Hub::close);
    world.completed(&[(ask, "a")]);
}

#[test]
fn a_page_that_is_done_before_the_person_answered_is_done_and_the_answer_still_counts() {
    let (mut world, id) = ready();
    world.fed.clear();
    let ask = world.page(id, "a");
    world.done(id, "a");
    world.done(id, "a");
    world.completed(&[(ask, "a")]);
    world.agrees(ask);
    let (_, line) = world.fed.pop_back().unwrap();
    assert!(line.contains(r#""action":"accept""#), "{line}");
    world.done(id, "a");
    world.exit(id, 1);
    world.completed(&[(ask, "a")]);
}

#[test]
fn the_end_of_a_server_is_the_end_of_the_pages_that_were_open_for_it() {
    let end: [fn(&mut World, CallId); 3] = [
        |world, id| world.exit(id, 1),
        |world, _| world.with(Hub::close),
        |world, _| world.with(|hub, cx| hub.decide(cx, "s", false)),
    ];
    for end in end {
        let (mut world, id) = ready();
        let open = world.page(id, "a");
        let refused = world.page(id, "b");
        let unanswered = world.page(id, "c");
        world.agrees(open);
        world.with(|hub, cx| hub.answered(cx, refused, &Reply::Decline));
        end(&mut world, id);
        world.completed(&[(open, "a")]);
        assert_eq!(world.withdrawn, [unanswered]);
        end(&mut world, id);
        world.completed(&[(open, "a")]);
    }
}

#[test]
fn no_more_pages_are_waited_for_than_questions_may_be_open() {
    let (mut world, id) = ready();
    let mut asks = Vec::new();
    for n in 0..100 {
        let ask = world.page(id, &format!("p{n}"));
        world.agrees(ask);
        asks.push(ask);
    }
    let told: Vec<u64> = world.completed.iter().map(|(ask, _)| *ask).collect();
    assert_eq!(told, asks[..100 - world.limits.max_mcp_asks]);
    let last = String::from("p99");
    world.done(id, &last);
    assert_eq!(world.completed.last(), Some(&(asks[99], last)));
}
