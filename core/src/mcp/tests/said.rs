//! What a server says that nobody may see, says for ever, or says too late.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::world::{ECHO, World, stdio};
use crate::mcp::{Question, Reply};

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const LATER: &str = r#"{"tools":[{"name":"later"}]}"#;

#[test]
fn no_secret_is_in_what_a_model_and_a_person_are_told() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let told = r#"{"tools":[{"name":"very-secret"},{"name":"a","description":"is very-secret",
        "inputSchema":{"type":"object","title":"very-secret"}}]}"#
        .replace('\n', " ");
    let id = world.shake(&told);
    assert_eq!(world.names(), ["s__a", "s__read_resource"]);
    let tool = world.hub.tools().next().unwrap();
    assert_eq!(&*tool.description, "is [redacted]");
    assert_eq!(
        &*tool.parameters,
        r#"{"type":"object","title":"[redacted]"}"#
    );
    let form = r#"{"type":"object","properties":{"a":{"type":"string","default":"very-secret"}}}"#;
    world.line(id, &format!(r#"{{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{{"message":"very-secret?","requestedSchema":{form}}}}}"#));
    let Question::Form { message, schema } = world.asks[0].1.clone() else {
        panic!("no form");
    };
    assert_eq!(message, "MCP server asks: [redacted]?");
    assert!(schema.contains(r#""default":"[redacted]""#), "{schema}");
}

#[test]
fn tools_that_are_as_they_were_are_no_change() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let id = world.shake(ECHO);
    let before = world.changes;
    for tools in [ECHO, ECHO, LATER, LATER] {
        world.line(id, CHANGED);
        let (_, asked) = world.next().unwrap();
        assert_eq!(asked.method, "tools/list");
        world.line(id, &asked.result(tools));
    }
    assert_eq!(world.changes, before + 1);
    assert_eq!(world.names(), ["s__later", "s__read_resource"]);
}

#[test]
fn a_call_waits_for_a_list_that_may_have_its_tool() {
    for (list, comes) in [
        (Some(LATER), Some("tools/call")),
        (Some(ECHO), None),
        (None, None),
    ] {
        let mut world = World::new(Vec::from([stdio("s")]));
        let id = world.shake(ECHO);
        world.line(id, CHANGED);
        let (_, asked) = world.next().unwrap();
        let call = world.call("s__later", "{}");
        assert!(world.done.is_empty() && world.next().is_none());
        // What is known can be called meanwhile.
        world.call("s__echo", "{}");
        assert_eq!(world.next().unwrap().1.method, "tools/call");
        let answer = match list {
            Some(list) => asked.result(list),
            None => format!(
                r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":1,"message":"no"}}}}"#,
                asked.id
            ),
        };
        world.line(id, &answer);
        let next = world.next().map(|(_, asked)| asked.method);
        assert_eq!(next.as_deref(), comes, "{list:?}");
        assert_eq!(world.done.contains_key(&call), comes.is_none(), "{list:?}");
    }
}

#[test]
fn the_time_of_a_question_is_none_of_its_call() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let id = world.shake(ECHO);
    let call = world.call("s__echo", "{}");
    let form = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
    world.line(id, &format!(r#"{{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{{"message":"m","requestedSchema":{form}}}}}"#));
    let ask = world.asks[0].0;
    world.pass(world.limits.mcp_call * 2);
    world.with(|hub, cx| hub.answered(cx, ask, &Reply::Decline));
    world.pass(Duration::from_secs(1));
    assert!(world.done.is_empty(), "{:?}", world.done);
    world.pass(world.limits.mcp_silence);
    assert!(world.only(call).is_err());
}

#[test]
fn a_question_under_an_id_that_is_open_is_refused_and_the_first_one_stays() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let id = world.shake(ECHO);
    let form = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
    let ask = |world: &mut World, question: u32| {
        world.line(id, &format!(r#"{{"jsonrpc":"2.0","id":{question},"method":"elicitation/create","params":{{"message":"m","requestedSchema":{form}}}}}"#));
    };
    ask(&mut world, 1);
    ask(&mut world, 1);
    assert_eq!(world.asks.len(), 1);
    let (_, line) = world.fed.pop_front().unwrap();
    assert!(
        line.contains(r#""id":1,"error":{"code":-32600"#),
        "a decline would be taken for the person's: {line}"
    );
    // And no more are open at once than a person can be asked.
    for question in 2..100 {
        ask(&mut world, question);
    }
    assert_eq!(world.asks.len(), world.limits.max_mcp_asks);
    assert_eq!(world.fed.len(), 99 - world.limits.max_mcp_asks);
}

#[test]
fn servers_are_told_of_all_folders_of_the_session_and_of_new_ones() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let id = world.shake(ECHO);
    let told = |world: &mut World| {
        world.line(id, r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
        world.fed.pop_front().unwrap().1
    };
    assert!(told(&mut world).contains(r#"{"roots":[{"uri":"file:///w","name":"workspace"}]}"#));
    let roots = Vec::from(["/a b/lib".into(), "/".into()]);
    world.with(|hub, cx| hub.set_roots(cx, roots.clone()));
    let (_, changed) = world.next().unwrap();
    assert_eq!(changed.method, "notifications/roots/list_changed");
    let more = r#"{"uri":"file:///a%20b/lib","name":"lib"},{"uri":"file:///","name":"/"}]}"#;
    let line = told(&mut world);
    assert!(line.contains(more), "{line}");
    world.with(|hub, cx| hub.set_roots(cx, roots));
    assert!(world.next().is_none(), "they are what they were");
}

#[test]
fn a_question_that_the_server_takes_back_is_taken_back_from_the_person() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let id = world.shake(ECHO);
    let call = world.call("s__echo", "{}");
    world.fed.clear();
    let form = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
    world.line(id, &format!(r#"{{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{{"message":"m","requestedSchema":{form}}}}}"#));
    let ask = world.asks[0].0;
    let cancelled = |request: &str| {
        let method = "notifications/cancelled";
        format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":{request}}}}}"#)
    };
    for other in ["1", "\"f\"", "null"] {
        world.line(id, &cancelled(other));
    }
    assert!(world.withdrawn.is_empty());
    world.line(id, &cancelled("\"e\""));
    assert_eq!(world.withdrawn, [ask]);
    // What the person says now is said to nobody, and the time of the call runs on.
    world.with(|hub, cx| hub.answered(cx, ask, &Reply::Decline));
    assert!(world.fed.is_empty());
    world.pass(world.limits.mcp_silence);
    assert!(world.only(call).is_err());
}
