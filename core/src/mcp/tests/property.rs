//! Whatever a server does: no hang, nothing left over, every call answered once.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use proptest::prelude::*;

use super::world::{Asked, ECHO, HELLO, World, http, sse, stdio};
use crate::call::{Call, News};
use crate::error::{IoFault, IoKind};
use crate::mcp::{Hub, Reply};

#[derive(Clone, Debug)]
enum Deed {
    Call(bool),
    Cancel(usize),
    Say(usize, Word),
    Open(usize, u16, u8),
    End(usize),
    Fail(usize),
    Pass(u16),
    Answer(usize),
}

#[derive(Clone, Debug)]
enum Word {
    Answer(u8),
    Twice,
    Wrong,
    Error,
    Raw(String),
    Piece(String),
}

fn word() -> impl Strategy<Value = Word> {
    let raw = prop_oneof![
        Just("garbage"),
        Just("{\"jsonrpc\":\"2.0\"}"),
        Just("[]"),
        Just(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#),
        Just(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        Just(r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#),
        Just(
            r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}"#
        ),
        Just(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#),
        Just(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":4}}"#),
    ];
    prop_oneof![
        6 => (0u8..5).prop_map(Word::Answer),
        1 => Just(Word::Twice),
        1 => Just(Word::Wrong),
        1 => Just(Word::Error),
        3 => raw.prop_map(|text| Word::Raw(text.into())),
        1 => ".{0,20}".prop_map(Word::Piece),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    let at = 0usize..4;
    let status = prop_oneof![4 => Just(200u16), 1 => Just(202), 1 => Just(404), 1 => Just(401), 1 => Just(429), 1 => Just(307)];
    prop_oneof![
        4 => any::<bool>().prop_map(Deed::Call),
        1 => at.clone().prop_map(Deed::Cancel),
        10 => (at.clone(), word()).prop_map(|(at, word)| Deed::Say(at, word)),
        4 => (at.clone(), status, 0u8..3).prop_map(|(at, status, kind)| Deed::Open(at, status, kind)),
        3 => at.clone().prop_map(Deed::End),
        1 => at.clone().prop_map(Deed::Fail),
        2 => any::<u16>().prop_map(Deed::Pass),
        1 => at.prop_map(Deed::Answer),
    ]
}

/// What the server at this call was asked last.
fn asked(world: &World, id: crate::ids::CallId) -> Option<Asked> {
    if let Call::Http(request) = world.running.get(&id)? {
        let text = core::str::from_utf8(&request.body).ok()?;
        return (!text.is_empty()).then(|| Asked::read(text));
    }
    let fed = world.fed.iter().rev().find(|(process, _)| *process == id)?;
    Some(Asked::read(&fed.1))
}

fn text(asked: Option<&Asked>, word: &Word) -> String {
    let result = |asked: &Asked, n: u8| {
        let more = format!(r#"{{"tools":[{{"name":"t{n}"}}],"nextCursor":"{n}"}}"#);
        asked.result(match (asked.method.as_str(), n) {
            ("initialize", _) => HELLO,
            ("tools/list", 0) => &more,
            ("tools/list", _) => ECHO,
            (_, 0) => "7",
            _ => r#"{"content":[{"type":"text","text":"x"}]}"#,
        })
    };
    match (word, asked) {
        (Word::Answer(n), Some(asked)) => result(asked, *n),
        (Word::Twice, Some(asked)) => format!("{}\n{}", result(asked, 1), result(asked, 1)),
        (Word::Wrong, _) => r#"{"jsonrpc":"2.0","id":"x","result":{}}"#.into(),
        (Word::Error, Some(asked)) => {
            format!(
                r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":1,"message":"m"}}}}"#,
                asked.id
            )
        }
        (Word::Raw(raw), _) => raw.clone(),
        (Word::Answer(_) | Word::Twice | Word::Error | Word::Piece(_), _) => "x".into(),
    }
}

fn run(deeds: &[Deed]) {
    let entries = [stdio("s"), http("http://h/m"), sse("http://h/sse")];
    let mut world = World::new(Vec::from(entries));
    world.limits.max_mcp_message = 4096;
    let mut calls = Vec::new();
    let mut cancelled = BTreeSet::new();
    for deed in deeds {
        let pick = |world: &World, at: usize| world.running.keys().nth(at).copied();
        match deed {
            Deed::Call(web) => {
                let tool = if *web { "web__echo" } else { "s__echo" };
                calls.push(world.call(tool, "{}"));
            }
            Deed::Cancel(at) => {
                if let Some(&call) = calls.iter().rev().nth(*at)
                    && !world.done.contains_key(&call)
                {
                    cancelled.insert(call);
                    world.with(|hub, cx| hub.cancel(cx, call));
                }
            }
            Deed::Say(at, word) => {
                if let Some(id) = pick(&world, *at) {
                    let said = if let Word::Piece(piece) = word {
                        piece.clone()
                    } else {
                        let text = text(asked(&world, id).as_ref(), word);
                        match world.running.get(&id) {
                            Some(Call::Http(request)) if request.method == "GET" => {
                                format!("event: endpoint\ndata: /p\n\ndata: {text}\n\n")
                            }
                            Some(Call::Http(_)) if matches!(word, Word::Twice) => {
                                format!("id: 4\ndata: {text}\n\n")
                            }
                            _ => format!("{text}\n"),
                        }
                    };
                    if !said.is_empty() {
                        world.say(id, &said);
                    }
                }
            }
            Deed::Open(at, status, kind) => {
                if let Some(id) = pick(&world, *at)
                    && matches!(world.running.get(&id), Some(Call::Http(_)))
                {
                    let kind =
                        ["application/json", "text/event-stream", "text/html"][usize::from(*kind)];
                    let head = [
                        ("content-type", kind),
                        ("mcp-session-id", "s"),
                        ("location", "/x"),
                    ];
                    world.opened(id, *status, &head);
                }
            }
            Deed::End(at) => {
                if let Some(id) = pick(&world, *at) {
                    match world.running.get(&id) {
                        Some(Call::Http(_)) => world.ended(id),
                        _ => world.exit(id, 1),
                    }
                }
            }
            Deed::Fail(at) => {
                if let Some(id) = pick(&world, *at) {
                    world.news(id, News::Failed(IoFault::new(IoKind::Unreachable, "gone")));
                }
            }
            Deed::Pass(ms) => world.pass(Duration::from_millis(u64::from(*ms))),
            Deed::Answer(at) => {
                if let Some((ask, _)) = world.asks.iter().rev().nth(*at).cloned() {
                    world.with(|hub, cx| hub.answered(cx, ask, &Reply::Cancel));
                }
            }
        }
        while world.fed.len() > 64 {
            world.fed.pop_front();
        }
        assert!(world.running.len() < 64, "requests pile up");
    }
    // Nobody answers any more: every call is over in the end, but those a person is asked about.
    for (ask, _) in world.asks.clone() {
        world.with(|hub, cx| hub.answered(cx, ask, &Reply::Decline));
    }
    world.pass(world.limits.mcp_call * 2);
    for call in &calls {
        let times = world.done.get(call).map_or(0, Vec::len);
        let expected = usize::from(!cancelled.contains(call));
        assert_eq!(times, expected, "a call is answered {times} times");
    }
    world.with(Hub::close);
    let left: Vec<_> = world
        .running
        .values()
        .filter(|call| !matches!(call, Call::Http(request) if request.method == "DELETE"))
        .collect();
    assert!(left.is_empty(), "left: {left:?}");
    assert_eq!(world.hub.deadline(&world.limits), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_servers_do_every_call_is_answered_once(
        deeds in proptest::collection::vec(deed(), 0..120)
    ) {
        run(&deeds);
    }
}
