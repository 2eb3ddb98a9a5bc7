//! Servers that answer: what becomes of their prompts, tools and questions.

use super::*;

const HELLO: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"search","annotations":{"readOnlyHint":true}}]}"#;
const PROMPTS: &str = r#"{"prompts":[{"name":"review","description":"Reviews a file","arguments":[{"name":"path","required":true}]}]}"#;

impl World {
    /// Answers what servers were asked, as one that works would.
    fn serve(&mut self) -> Vec<String> {
        let mut asked = Vec::new();
        while !self.fed.is_empty() {
            for (id, bytes) in core::mem::take(&mut self.fed) {
                let message: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
                let method = message["method"].as_str().unwrap_or_default();
                asked.push(format!("{method} {}", message["params"]));
                let result = match method {
                    "initialize" => HELLO,
                    "tools/list" => TOOLS,
                    "prompts/list" => PROMPTS,
                    "tools/call" => r#"{"content":[{"type":"text","text":"found it"}]}"#,
                    "prompts/get" => {
                        r#"{"messages":[{"role":"user","content":{"type":"text","text":"Review src."}}]}"#
                    }
                    _ => continue,
                };
                let id_of = &message["id"];
                let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id_of},\"result\":{result}}}\n");
                self.input(Input::Call {
                    id,
                    news: News::Bytes {
                        stream: Stream::Out,
                        bytes: line.as_bytes(),
                    },
                });
            }
        }
        asked
    }
}

/// A disk without a project's file.
fn bare() -> Disk {
    Disk::default()
}

fn configured(config: &mut Config) {
    let way = crate::mcp::Way::Stdio {
        command: "docs-mcp".into(),
        args: Vec::new(),
        env: Vec::new(),
    };
    let entry = crate::mcp::Entry::new("docs", way).expect("an entry");
    config.settings.mcp.push(entry);
}

#[test]
fn a_prompt_of_a_server_is_a_command_whose_text_the_model_gets_and_people_see_what_was_typed() {
    let mut world = opened_as(&bare(), HI, configured);
    world.serve();
    let told = world.sees("mcp:docs:review");
    assert!(told.contains("available_commands_update") && told.contains("\"hint\":\"path\""));
    assert!(
        told.contains("\"permissions\""),
        "all the others too: {told}"
    );
    world.lines.clear();
    world.prompt("{\"type\":\"text\",\"text\":\"/mcp:docs:review src\"}");
    assert!(!world.has("stopReason"), "the server fills it first");
    let asked = world.serve();
    // The order of members is not the test's.
    let [asked]: [String; 1] = asked.try_into().expect("one question");
    let params = asked.strip_prefix("prompts/get ").expect("the prompt");
    let params: serde_json::Value = serde_json::from_str(params).expect("JSON");
    assert_eq!(params["name"], "review");
    assert_eq!(params["arguments"]["path"], "src");
    world.sees("/mcp:docs:review src"); // the title
    world.sees("\"stopReason\":\"end_turn\"");
    let history = format!("{:?}", world.history());
    assert!(history.contains("Review src."), "{history}");
    // What is attached is no argument, and goes to the model.
    world.lines.clear();
    world.prompt(concat!(
        r#"{"type":"text","text":"/mcp:docs:review lib"},"#,
        r#"{"type":"resource_link","name":"open","uri":"file:///w/open.rs"}"#
    ));
    world.serve();
    world.sees("\"stopReason\":\"end_turn\"");
    let history = format!("{:?}", world.history());
    assert!(
        history.contains("Review src.\\n\\n@file:///w/open.rs"),
        "{history}"
    );
    // One that is wrong asks no model.
    let said = world.types("/mcp:docs:review");
    assert!(said.contains("Say /mcp:docs:review path."), "{said}");
    // What no server has is ordinary text.
    world.prompt("{\"type\":\"text\",\"text\":\"/mcp:other:review\"}");
    world.sees("script ended");
}

#[test]
fn a_prompt_that_is_cancelled_while_it_is_filled_is_over() {
    let mut world = opened_as(&bare(), HI, configured);
    world.serve();
    world.prompt("{\"type\":\"text\",\"text\":\"/mcp:docs:review src\"}");
    let asked = core::mem::take(&mut world.fed);
    world.cancel();
    world.sees("\"stopReason\":\"cancelled\"");
    world.fed.extend(asked);
    let asked = world.serve();
    let told = asked
        .iter()
        .any(|it| it.starts_with("notifications/cancelled"));
    assert!(told, "{asked:?}");
    world.lines.clear();
    world.go();
    world.sees("hi");
}

#[test]
fn tools_of_another_time_are_offered_at_once_and_a_call_waits_for_the_server() {
    let mut world = opened_as(&bare(), HI, configured);
    world.serve();
    assert_eq!(world.servers(), ["docs ready"]);
    let mut kept = world.ends();
    let files: Vec<&String> = kept
        .files
        .keys()
        .filter(|it| it.contains("cache/mcp"))
        .collect();
    assert_eq!(files.len(), 1);
    let file = files[0].clone();
    let script =
        "{\"tool\":\"docs__search\",\"args\":{},\"id\":\"t\"}\n{\"finish\":\"tool_calls\"}\n";
    let mut again = opened_as(&kept, script, configured);
    assert_eq!(again.servers(), ["docs standby"]);
    again.go();
    let card = again.sees("request_permission");
    assert!(card.contains("docs__search"), "{card}");
    again.chooses(1, "allow_once");
    assert!(!again.has("completed"), "the server is not up yet");
    again.serve();
    assert_eq!(again.servers(), ["docs ready"]);
    again.sees("found it");
    // What cannot be read is passed over.
    kept.files.insert(file, b"{".to_vec());
    assert_eq!(
        opened_as(&kept, HI, configured).servers(),
        ["docs connecting"]
    );
}

#[test]
fn a_server_that_lists_others_without_end_fills_no_queue_for_the_disk() {
    let mut world = opened_as(&bare(), HI, configured);
    world.held = |call| matches!(call, Call::Process(_) | Call::Write(_));
    world.serve();
    let process = |(id, call): (&CallId, &Call)| matches!(call, Call::Process(_)).then_some(*id);
    let id = world.open.iter().find_map(process).expect("it runs");
    let says = |world: &mut World, message: &str| {
        let line = format!("{{\"jsonrpc\":\"2.0\",{message}}}\n");
        let (stream, bytes) = (Stream::Out, line.as_bytes());
        let news = News::Bytes { stream, bytes };
        world.input(Input::Call { id, news });
    };
    for n in 0..20 {
        says(
            &mut world,
            "\"method\":\"notifications/tools/list_changed\"",
        );
        let (_, asked) = world.fed.pop().expect("a list is asked for");
        let asked: serde_json::Value = serde_json::from_slice(&asked).expect("JSON");
        let number = &asked["id"];
        says(
            &mut world,
            &format!("\"id\":{number},\"result\":{{\"tools\":[{{\"name\":\"t{n}\"}}]}}"),
        );
    }
    let writes = |call: &&Call| matches!(call, Call::Write(it) if it.path.contains("cache/mcp"));
    assert_eq!(world.open.values().filter(writes).count(), 1);
    // What it listed last is what is kept.
    world.held = |call| matches!(call, Call::Process(_));
    world.drive();
    let files = world.ends().files;
    let kept = files.iter().find(|(path, _)| path.contains("cache/mcp"));
    let text = String::from_utf8_lossy(kept.expect("a file").1);
    assert!(text.contains("t19") && !text.contains("t18"), "{text}");
}

#[test]
fn no_more_is_kept_of_servers_than_there_is_room_for() {
    let mut disk = bare();
    for n in 0..300 {
        disk.files
            .insert(format!("/h/cache/mcp/{n:064}.json"), Vec::new());
    }
    let mut world = opened_as(&disk, HI, configured);
    world.serve();
    let files = world.ends().files;
    let kept = files.keys().filter(|it| it.contains("cache/mcp"));
    assert_eq!(kept.count(), 256);
}

#[test]
fn what_was_allowed_of_a_server_does_not_hold_for_another_of_its_name() {
    let script = "{\"tool\":\"docs__search\",\"args\":{},\"id\":\"t\"}\n{\"finish\":\"tool_calls\"}\n\
                  {\"text\":\"x\"}\n{\"finish\":\"stop\"}\n\
                  {\"tool\":\"docs__search\",\"args\":{},\"id\":\"u\"}\n{\"finish\":\"tool_calls\"}\n\
                  {\"text\":\"x\"}\n{\"finish\":\"stop\"}\n\
                  {\"tool\":\"docs__search\",\"args\":{},\"id\":\"v\"}\n{\"finish\":\"tool_calls\"}\n";
    let mut world = opened_as(&bare(), script, configured);
    world.serve();
    world.go();
    let card = world.sees("request_permission");
    assert!(
        card.contains("Allow `docs__search` in this session"),
        "{card}"
    );
    world.chooses(1, "allow_always");
    world.serve();
    world.lines.clear();
    world.go();
    world.serve();
    assert!(!world.has("request_permission") && world.has("found it"));
    // The client takes the session up again with a server of its own of that name.
    let params = format!(
        "{{\"sessionId\":\"{SESSION}\",\"cwd\":\"/w\",\"mcpServers\":[{{\"name\":\"docs\",\"command\":\"/x\",\"args\":[],\"env\":[]}}]}}"
    );
    world.request(7, "session/resume", &params);
    assert_eq!(world.running(), ["/x"]);
    world.serve();
    world.lines.clear();
    world.go();
    assert!(world.has("request_permission"));
}

impl World {
    /// What the only server says.
    fn server_says(&mut self, rest: &str) {
        let process =
            |(id, call): (&CallId, &Call)| matches!(call, Call::Process(_)).then_some(*id);
        let id = self.open.iter().find_map(process).expect("it runs");
        let line = format!("{{\"jsonrpc\":\"2.0\",{rest}}}\n");
        let (stream, bytes) = (Stream::Out, line.as_bytes());
        let news = News::Bytes { stream, bytes };
        self.input(Input::Call { id, news });
    }

    /// How often something with this in it was said.
    fn count(&self, part: &str) -> usize {
        self.lines.iter().filter(|line| line.contains(part)).count()
    }
}

#[test]
fn a_client_that_takes_pages_is_told_once_that_one_is_done_and_no_other_client_is() {
    const COMPLETE: &str = "elicitation/complete";
    for pages in [true, false] {
        let mut world = world_with(&bare(), HI, configured);
        world.held = |call| matches!(call, Call::Process(_));
        let modes = if pages { "\"url\":{}" } else { "\"form\":{}" };
        world.request(
            0,
            "initialize",
            &format!(
                "{{\"protocolVersion\":1,\"clientCapabilities\":{{\"elicitation\":{{{modes}}}}}}}"
            ),
        );
        world.open_session(100);
        world.serve();
        let page = |world: &mut World, name: &str| {
            world.lines.clear();
            world.server_says(&format!(
                "\"id\":\"{name}\",\"method\":\"elicitation/create\",\"params\":{{\"mode\":\"url\",\
                 \"message\":\"m\",\"url\":\"https://h/x\",\"elicitationId\":\"{name}\"}}"
            ));
        };
        let done = |world: &mut World, name: &str| {
            world.server_says(&format!(
                "\"method\":\"notifications/elicitation/complete\",\
                 \"params\":{{\"elicitationId\":\"{name}\"}}"
            ));
        };
        page(&mut world, "a");
        if !pages {
            done(&mut world, "a");
            assert_eq!(
                (world.count("elicitation/create"), world.count(COMPLETE)),
                (0, 0)
            );
            continue;
        }
        let agree = |world: &mut World| -> String {
            let line = world.sees("elicitation/create");
            let asked: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            let (id, params) = (&asked["id"], &asked["params"]);
            world.say(&format!("\"id\":{id},\"result\":{{\"action\":\"accept\"}}"));
            String::from(params["elicitationId"].as_str().expect("an id"))
        };
        let first = agree(&mut world);
        assert_eq!(world.count(COMPLETE), 0);
        done(&mut world, "a");
        done(&mut world, "a");
        let told = world.sees(COMPLETE);
        assert!(
            told.contains(&format!("\"elicitationId\":\"{first}\"")),
            "{told}"
        );
        assert_eq!(world.count(COMPLETE), 0, "once");
        // Its server is lost while one is open.
        page(&mut world, "b");
        let second = agree(&mut world);
        assert_ne!(first, second);
        let process =
            |(id, call): (&CallId, &Call)| matches!(call, Call::Process(_)).then_some(*id);
        let id = world.open.iter().find_map(process).expect("it runs");
        world.open.remove(&id);
        world.input(Input::Call {
            id,
            news: News::Failed(IoFault::new(IoKind::NotFound, "gone")),
        });
        let told = world.sees(COMPLETE);
        assert!(told.contains(&second), "{told}");
        assert_eq!(world.count(COMPLETE), 0, "once");
    }
}

#[test]
fn a_page_is_asked_for_before_it_is_said_to_be_done_however_slowly_the_client_reads() {
    let mut world = world_with(&bare(), HI, configured);
    world.held = |call| matches!(call, Call::Process(_));
    let url = "{\"protocolVersion\":1,\"clientCapabilities\":{\"elicitation\":{\"url\":{}}}}";
    world.request(0, "initialize", url);
    world.open_session(100);
    world.serve();
    world.deaf = true;
    let long = "x".repeat(600);
    for n in 0..40 {
        world.say(&format!("\"id\":\"{long}{n}\",\"method\":\"no/such\""));
    }
    assert!(world.unsent > Limits::default().quiet_output);
    world.lines.clear();
    let page = |world: &mut World, name: &str| {
        world.server_says(&format!(
            "\"id\":\"{name}\",\"method\":\"elicitation/create\",\"params\":{{\"mode\":\"url\",\
             \"message\":\"m\",\"url\":\"https://h/x\",\"elicitationId\":\"{name}\"}}"
        ));
        world.server_says(&format!(
            "\"method\":\"notifications/elicitation/complete\",\
             \"params\":{{\"elicitationId\":\"{name}\"}}"
        ));
    };
    for name in ["a", "b"] {
        page(&mut world, name);
    }
    world.server_says("\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"a\"}");
    assert_eq!(world.count("elicitation"), 0, "{:?}", world.lines);
    world.deaf = false;
    world.input(Input::Unsent(0));
    assert_eq!(world.count("elicitation"), 2, "{:?}", world.lines);
    let asked = world.sees("elicitation/create");
    assert!(
        asked.contains("-b\""),
        "what was taken back is not asked: {asked}"
    );
    let told = world.sees("elicitation/complete");
    assert!(told.contains("-b\""), "{told}");
}
