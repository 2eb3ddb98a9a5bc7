//! What a server lists: tools that are offered before it is up, prompts that a person types, and how
//! it stands meanwhile.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::world::{ECHO, World, stdio};
use crate::call::News;
use crate::error::{IoFault, IoKind};
use crate::ids::CallId;
use crate::mcp::{Hub, Launch};

const TEXT: &str = r#"{"content":[{"type":"text","text":"hi"}]}"#;
const OTHER: &str = r#"{"tools":[{"name":"other"}]}"#;

/// What a server with the tool `echo` leaves for the next time.
fn kept() -> String {
    let mut world = World::new(Vec::from([stdio("s")]));
    world.shake(ECHO);
    assert_eq!((world.recalls.len(), world.kept.len()), (1, 1));
    world.kept.remove(0)
}

fn standing_by() -> World {
    let mut world = World::new(Vec::from([stdio("s")]));
    assert_eq!(
        (world.status(), world.names().len()),
        (Vec::from(["connecting"]), 0)
    );
    world.recall(&kept());
    assert_eq!(world.status(), ["standby"]);
    assert_eq!(world.names(), ["s__echo", "s__read_resource"]);
    world
}

impl World {
    fn recall(&mut self, text: &str) {
        let digest = self.recalls[0].clone();
        self.with(|hub, cx| hub.recall(cx, &digest, text.as_bytes()));
    }
}

#[test]
fn tools_of_another_time_are_offered_before_the_server_is_up_and_a_call_waits_for_it() {
    let mut world = standing_by();
    let call = world.call("s__echo", r#"{"a":1}"#);
    assert!(world.done.is_empty());
    let id = world.shake(ECHO);
    assert_eq!(world.status(), ["ready"]);
    let (_, asked) = world.next().unwrap();
    assert_eq!(asked.method, "tools/call");
    world.line(id, &asked.result(TEXT));
    assert_eq!(world.only(call), Ok("hi"));
    // The same tools are not kept again.
    assert_eq!(world.kept.len(), 0);
    world.line(
        id,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    );
    let (_, asked) = world.next().unwrap();
    world.line(id, &asked.result(OTHER));
    assert_eq!(world.kept.len(), 1);
}

#[test]
fn a_tool_that_the_server_has_no_more_is_said_to_be_gone() {
    let mut world = standing_by();
    let call = world.call("s__echo", "{}");
    world.shake(OTHER);
    assert_eq!(
        world.only(call),
        Err("The MCP server s has no tool s__echo now. It has: s__other, s__read_resource.")
    );
    assert_eq!(world.names(), ["s__other", "s__read_resource"]);
}

#[test]
fn a_call_of_a_kept_tool_is_told_why_its_server_is_not_up_and_the_next_one_starts_it_again() {
    let mut world = standing_by();
    let call = world.call("s__echo", "{}");
    world.news(
        world.started[0],
        News::Failed(IoFault::new(IoKind::NotFound, "no such program")),
    );
    assert_eq!(world.status(), ["failed"]);
    assert!(world.only(call).unwrap_err().contains("no such program"));
    assert_eq!(world.names().len(), 2, "it may come up again");
    world.fed.clear();
    let call = world.call("s__echo", "{}");
    assert_eq!(world.status(), ["standby"], "it rests first");
    assert_eq!(world.started.len(), 1);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.started.len(), 2);
    assert_eq!(world.recalls.len(), 1, "once is enough");
    let id = world.shake(ECHO);
    let (_, asked) = world.next().unwrap();
    world.line(id, &asked.result(TEXT));
    assert_eq!(world.only(call), Ok("hi"));
}

#[test]
fn what_was_kept_comes_too_late_for_a_server_that_said_itself() {
    let mut world = World::new(Vec::from([stdio("s")]));
    world.shake(OTHER);
    world.recall(&kept());
    assert_eq!(world.names(), ["s__other", "s__read_resource"]);
    world.with(Hub::close);
    world.recall(&kept());
    assert_eq!(world.status(), ["disabled"]);
}

#[test]
fn a_server_stands_in_one_of_seven_ways() {
    let mut world = World::new(Vec::new());
    let client = Default::default();
    world.with(|hub, cx| hub.add(cx, stdio("s"), Launch::Pending, &client, "/w"));
    assert_eq!(
        (world.status(), world.started.len()),
        (Vec::from(["pending"]), 0)
    );
    let call = world.call("s__echo", "{}");
    assert!(world.only(call).unwrap_err().contains("not approved"));
    world.with(|hub, cx| hub.decide(cx, "s", false));
    assert_eq!(world.status(), ["disabled"]);
    let call = world.call("s__echo", "{}");
    assert!(world.only(call).unwrap_err().contains("disabled"));
    world.with(|hub, cx| hub.decide(cx, "s", true));
    assert_eq!(world.status(), ["connecting"]);
    world.recall(&kept());
    assert_eq!(world.status(), ["standby"]);
    let id = world.shake(ECHO);
    assert_eq!(world.status(), ["ready"]);
    world.exit(id, 1);
    assert_eq!(world.status(), ["idle"]);
    world.call("s__echo", "{}");
    world.pass(Duration::from_secs(1));
    assert_eq!(
        world.status(),
        ["connecting"],
        "what it lists may be other tools"
    );
    world.pass(Duration::from_secs(10));
    assert_eq!(world.status(), ["failed"]);
    // Its approval is taken back: nothing of it runs on, and it has no tools.
    world.with(|hub, cx| hub.decide(cx, "s", true));
    assert_eq!(
        world.status(),
        ["failed"],
        "approving it again starts nothing"
    );
    world.with(|hub, cx| hub.decide(cx, "s", false));
    assert_eq!(
        (world.status(), world.names().len()),
        (Vec::from(["disabled"]), 0)
    );
    assert_eq!(world.running.len(), 0);
}

const HELLO: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"prompts":{}}}"#;
const PROMPTS: &str =
    r#"{"prompts":[{"name":"review","arguments":[{"name":"path","required":true}]}]}"#;
const FILLED: &str =
    r#"{"messages":[{"role":"user","content":{"type":"text","text":"Look at it."}}]}"#;

impl World {
    fn prompt(&mut self, command: &str, typed: &str) -> CallId {
        let id = CallId::new((1 << 33) + self.done.len() as u64 + self.started.len() as u64);
        self.with(|hub, cx| hub.prompt(cx, id, command, typed));
        id
    }

    /// Answers a handshake of a server with prompts and no tools.
    fn greet(&mut self) -> CallId {
        let (id, asked) = self.next().unwrap();
        self.line(id, &asked.result(HELLO));
        assert_eq!(self.next().unwrap().1.method, "notifications/initialized");
        assert_eq!(self.status(), ["ready"], "it does not wait for its prompts");
        id
    }

    fn list_prompts(&mut self, id: CallId, prompts: &str) {
        let (_, asked) = self.next().unwrap();
        assert_eq!(asked.method, "prompts/list");
        self.line(id, &asked.result(prompts));
    }

    fn commands(&self) -> Vec<&str> {
        self.hub.prompts().map(|it| it.command.as_str()).collect()
    }
}

#[test]
fn a_prompt_that_is_typed_before_the_server_is_up_is_filled_when_it_is() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let call = world.prompt("mcp:s:review", "src/lib.rs");
    let id = world.greet();
    assert!(world.done.is_empty());
    world.list_prompts(id, PROMPTS);
    assert_eq!(world.commands(), ["mcp:s:review"]);
    let (_, asked) = world.next().unwrap();
    assert_eq!(asked.method, "prompts/get");
    let params = r#""params":{"name":"review","arguments":{"path":"src/lib.rs"}}"#;
    assert!(asked.text.contains(params), "{}", asked.text);
    world.line(id, &asked.result(FILLED));
    assert_eq!(world.only(call), Ok("Look at it."));
}

#[test]
fn a_prompt_that_cannot_be_filled_says_why() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let early = world.prompt("mcp:s:nope", "");
    let id = world.greet();
    world.list_prompts(id, PROMPTS);
    let check = |world: &World, call, why: &str| {
        let found = world.only(call).unwrap_err();
        assert!(found.contains(why), "{found}");
    };
    check(&world, early, "has no prompt for /mcp:s:nope");
    let call = world.prompt("mcp:s:review", "");
    check(&world, call, "Say /mcp:s:review path.");
    let call = world.prompt("mcp:x:review", "");
    check(&world, call, "no MCP server with a prompt");
    let call = world.prompt("mcp:s:review", "x");
    let (_, asked) = world.next().unwrap();
    world.line(
        id,
        &format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32602,"message":"no such path"}}}}"#,
            asked.id
        ),
    );
    check(&world, call, "no such path");
    // A list that never comes is given up, and what waits for it.
    let mut world = World::new(Vec::from([stdio("s")]));
    let call = world.prompt("mcp:s:review", "x");
    world.greet();
    world.pass(world.limits.mcp_silence * 2);
    check(&world, call, "has no prompt");
}

#[test]
fn prompts_that_change_are_listed_anew_and_a_fault_leaves_those_there_were() {
    let mut world = World::new(Vec::from([stdio("s")]));
    let id = world.greet();
    world.list_prompts(id, r#"{"prompts":[{"name":"a"}],"nextCursor":"c"}"#);
    world.list_prompts(id, r#"{"prompts":[{"name":"b"}],"nextCursor":"c"}"#);
    assert_eq!(world.commands(), ["mcp:s:a", "mcp:s:b"]);
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;
    world.line(id, changed);
    world.list_prompts(id, PROMPTS);
    assert_eq!(world.commands(), ["mcp:s:review"]);
    world.line(id, changed);
    world.list_prompts(id, "7");
    assert_eq!(world.commands(), ["mcp:s:review"]);
    assert_eq!(world.status(), ["ready"]);
}

#[test]
fn a_list_that_changes_while_it_is_listed_is_listed_once_more_and_one_that_never_comes_is_given_up()
{
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let mut world = World::new(Vec::from([stdio("s")]));
    let (id, asked) = world.next().unwrap();
    world.line(id, &asked.result(super::world::HELLO));
    world.next().unwrap();
    let (_, asked) = world.next().unwrap();
    world.line(id, changed);
    world.line(id, &asked.result(ECHO));
    assert_eq!(world.names(), ["s__echo", "s__read_resource"]);
    let (_, asked) = world.next().unwrap();
    assert_eq!(asked.method, "tools/list");
    world.line(id, &asked.result(OTHER));
    assert_eq!(world.names(), ["s__other", "s__read_resource"]);
    world.line(id, changed);
    world.next().unwrap(); // not answered
    world.pass(world.limits.mcp_start);
    assert_eq!(world.status(), ["ready"]);
    world.line(id, changed);
    let (_, asked) = world.next().unwrap();
    world.line(id, &asked.result(ECHO));
    assert_eq!(world.names(), ["s__echo", "s__read_resource"]);
}

#[test]
fn a_server_that_failed_is_started_again_when_the_person_says_so() {
    let mut world = World::new(Vec::from([stdio("s")]));
    world.exit(world.started[0], 1);
    assert_eq!(world.status(), ["failed"]);
    world.with(|hub, cx| hub.retry(cx, Some("other")));
    assert_eq!(world.status(), ["failed"]);
    world.with(|hub, cx| hub.retry(cx, Some("s")));
    assert_eq!(world.status(), ["connecting"]);
    world.fed.clear();
    world.with(|hub, cx| hub.retry(cx, None));
    assert_eq!(world.started.len(), 2, "it is on its way");
}

#[test]
fn all_servers_of_a_session_share_one_room_for_what_they_offer() {
    let mut world = World::new(Vec::from([stdio("a"), stdio("b")]));
    let long = "x".repeat(600);
    let tools = |names: &[&str]| {
        let one = |name: &&str| format!(r#"{{"name":"{name}","description":"{long}"}}"#);
        let all: Vec<String> = names.iter().map(one).collect();
        format!(r#"{{"tools":[{}]}}"#, all.join(","))
    };
    world.limits.max_mcp_offered = 2000;
    let hello = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
    let offered = |world: &World| -> usize {
        let size =
            |it: &crate::mcp::Tool| it.name.len() + it.description.len() + it.parameters.len();
        world.hub.tools().map(size).sum()
    };
    let ids = world.started.clone();
    let mut listed = Vec::new();
    for _ in 0..2 {
        let (id, asked) = world.next().unwrap();
        world.line(id, &asked.result(hello));
    }
    while let Some((id, asked)) = world.next() {
        if asked.method == "tools/list" {
            listed.push((id, asked));
        }
    }
    for (id, asked) in &listed {
        world.line(*id, &asked.result(&tools(&["t1", "t2"])));
    }
    assert_eq!(world.status(), ["ready", "ready"]);
    assert_eq!(world.names(), ["a__t1", "a__t2", "b__t1"]);
    assert!(offered(&world) <= 2000);
    let said = |line: &String| line.contains("1 tools are left out: there is no room");
    assert!(world.logs.iter().any(said), "{:?}", world.logs);
    // What one gives back another may have with its next list.
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    for (id, names) in [(ids[0], &["t1"][..]), (ids[1], &["t1", "t2"])] {
        world.line(id, changed);
        let (_, asked) = world.next().unwrap();
        world.line(id, &asked.result(&tools(names)));
    }
    assert_eq!(world.names(), ["a__t1", "b__t1", "b__t2"]);
    // So does one that is not to be used any more.
    world.with(|hub, cx| hub.decide(cx, "b", false));
    world.line(ids[0], changed);
    let (_, asked) = world.next().unwrap();
    world.line(ids[0], &asked.result(&tools(&["t1", "t2", "t3"])));
    assert_eq!(world.names(), ["a__t1", "a__t2", "a__t3"]);
}
