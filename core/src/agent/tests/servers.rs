//! The MCP servers of a project's file: nothing of it starts before the person said so, and what
//! they said holds for what they saw.

use super::stored::Disk;
use super::*;
use crate::call::Program;

const FILE: &str = "/w/.mcp.json";
const APPROVALS: &str = "/h/mcp-approvals.json";
const ONE: &str = "{\"mcpServers\":{\"docs\":{\"command\":\"docs-mcp\",\"args\":[\"--all\"]}}}";
const OTHER: &str = "{\"mcpServers\":{\"docs\":{\"command\":\"docs-mcp\",\"args\":[\"--one\"]}}}";
const TWO: &str = "{\"mcpServers\":{\"a\":{\"command\":\"a-mcp\"},\"b\":{\"command\":\"b-mcp\"}}}";
const HI: &str = "{\"text\":\"hi\"}\n{\"finish\":\"stop\"}\n";

fn disk(project: &str) -> Disk {
    let mut disk = Disk::default();
    disk.files.insert(FILE.into(), project.into());
    disk
}

/// A session on this disk. Servers are programs that run until they are ended.
fn opened(disk: &Disk, script: &str) -> World {
    opened_as(disk, script, |_| {})
}

fn opened_as(disk: &Disk, script: &str, change: fn(&mut Config)) -> World {
    let mut world = world_with(disk, script, change);
    world.held = |call| matches!(call, Call::Process(_));
    world.session()
}

fn world_with(disk: &Disk, script: &str, change: fn(&mut Config)) -> World {
    let mut config = config();
    config.host.home = Some("/h".into());
    config.script = Some(Script::parse(script).expect("the script is good"));
    change(&mut config);
    let mut world = World::of(config);
    world.disk = Some(disk.clone());
    world.input(Input::Wall(WallClock { unix_ms: 1_000_000 }));
    world
}

impl World {
    /// How the servers stand.
    fn servers(&mut self) -> Vec<String> {
        let params = format!("{{\"sessionId\":\"{SESSION}\"}}");
        let kept = core::mem::take(&mut self.lines);
        self.request(900, "_reasonix.io/session/mcpStatus", &params);
        let line = self.sees("\"id\":900");
        self.lines = kept;
        let answer: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let servers = answer["result"]["servers"].as_array().expect("a list");
        let text = |value: &serde_json::Value| String::from(value.as_str().unwrap_or_default());
        servers
            .iter()
            .map(|it| format!("{} {}", text(&it["name"]), text(&it["status"])))
            .collect()
    }

    /// The command lines of the servers that run.
    fn running(&self) -> Vec<String> {
        let line = |call: &Call| {
            if let Call::Process(process) = call
                && let Program::Argv(words) = &process.program
            {
                Some(words.join(" "))
            } else {
                None
            }
        };
        let ended = |id: &CallId| self.aborted.contains(id);
        let open = self.open.iter().filter(|(id, _)| !ended(id));
        open.filter_map(|(_, call)| line(call)).collect()
    }

    /// The number of the card about a launch, which is there.
    #[track_caller]
    fn launch_card(&mut self) -> (u64, String) {
        let announced = self.sees("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"mcp-launch-");
        assert!(announced.contains("\"status\":\"pending\""), "{announced}");
        let line = self.sees("session/request_permission");
        assert!(line.contains("mcp-launch-"), "{line}");
        let card: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        (card["id"].as_u64().expect("a number"), line)
    }

    fn chooses(&mut self, id: u64, option: &str) {
        self.say(&format!(
            "\"id\":{id},\"result\":{{\"outcome\":{{\"outcome\":\"selected\",\"optionId\":\"{option}\"}}}}"
        ));
    }

    fn types(&mut self, command: &str) -> String {
        self.lines.clear();
        self.prompt(&format!("{{\"type\":\"text\",\"text\":\"{command}\"}}"));
        let said = self.sees("agent_message_chunk");
        self.sees("\"stopReason\":\"end_turn\"");
        said
    }

    fn has(&self, part: &str) -> bool {
        self.lines.iter().any(|line| line.contains(part))
    }
}

#[test]
fn a_launch_is_asked_about_while_the_turn_goes_on_and_always_means_this_entry_here() {
    let mut world = opened(&disk(ONE), HANG);
    assert_eq!(world.servers(), ["docs pending"]);
    assert!(!world.has("request_permission"), "there is no prompt yet");
    world.go();
    let (id, card) = world.launch_card();
    for part in [
        "argument: --all",
        "allow_always",
        "allow_once",
        "reject_once",
    ] {
        assert!(card.contains(part), "{card}");
    }
    world.sees("\"text\":\"I\""); // the model works on
    assert_eq!(
        (world.servers(), world.running()),
        (vec("docs pending"), Vec::new())
    );
    world.chooses(id, "allow_always");
    world.sees("\"status\":\"completed\"");
    assert_eq!(world.servers(), ["docs connecting"]);
    assert_eq!(world.running(), ["docs-mcp --all"]);
    // Another session: it is not asked again.
    let mut kept = world.ends();
    let text = String::from_utf8(kept.files[APPROVALS].clone()).expect("text");
    assert!(text.contains("\"project\": \"/w\"") && text.contains("\"schemaVersion\": 1"));
    let mut again = opened(&kept, HI);
    assert_eq!(again.running(), ["docs-mcp --all"]);
    again.go();
    assert!(!again.has("request_permission"));
    // An entry that changed is.
    kept.files.insert(FILE.into(), OTHER.into());
    let mut changed = opened(&kept, HI);
    assert_eq!(
        (changed.servers(), changed.running()),
        (vec("docs pending"), Vec::new())
    );
    changed.go();
    let (_, card) = changed.launch_card();
    assert!(card.contains("argument: --one"), "{card}");
}

fn vec(one: &str) -> Vec<String> {
    Vec::from([one.into()])
}

#[test]
fn what_an_answer_to_a_launch_card_means() {
    let check = |reply: &str, server: &str, runs: bool, kept: bool, asks_again: bool| {
        let mut world = opened(&disk(ONE), HANG);
        world.go();
        let (id, _) = world.launch_card();
        world.say(&format!("\"id\":{id},{reply}"));
        let ended = world.sees("\"sessionUpdate\":\"tool_call_update\"");
        assert_eq!(ended.contains("completed"), runs, "{reply}: {ended}");
        assert_eq!(world.servers(), [server], "{reply}");
        assert_eq!(!world.running().is_empty(), runs, "{reply}");
        let files = &world.disk.as_ref().expect("a disk").files;
        assert_eq!(files.contains_key(APPROVALS), kept, "{reply}");
        world.cancel();
        world.lines.clear();
        world.go();
        assert_eq!(world.has("mcp-launch-"), asks_again, "{reply}");
    };
    let chosen = |id: &str| {
        format!("\"result\":{{\"outcome\":{{\"outcome\":\"selected\",\"optionId\":\"{id}\"}}}}")
    };
    check(
        &chosen("allow_always"),
        "docs connecting",
        true,
        true,
        false,
    );
    check(&chosen("allow_once"), "docs connecting", true, false, false);
    check(&chosen("reject_once"), "docs disabled", false, false, false);
    let cancelled = "\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}";
    let error = "\"error\":{\"code\":-32603,\"message\":\"no\"}";
    for other in [
        &chosen("allow"),
        cancelled,
        error,
        "\"result\":{}",
        "\"result\":7",
    ] {
        check(other, "docs pending", false, false, true);
    }
}

#[test]
fn a_card_of_a_launch_ends_with_its_turn_and_the_next_prompt_asks_again() {
    let mut world = opened(&disk(ONE), HI);
    world.go();
    let (id, _) = world.launch_card();
    world.sees("$/cancel_request");
    let ended = world.sees("tool_call_update");
    assert!(ended.contains("/mcp approve docs starts it"), "{ended}");
    world.sees("\"stopReason\":\"end_turn\"");
    world.chooses(id, "allow_once"); // too late
    assert_eq!(
        (world.servers(), world.running()),
        (vec("docs pending"), Vec::new())
    );
    world.go();
    world.launch_card();
}

#[test]
fn servers_are_asked_about_one_after_the_other() {
    let mut world = opened(&disk(TWO), HANG);
    world.go();
    let (first, card) = world.launch_card();
    assert!(card.contains("a-mcp") && !world.has("b-mcp"));
    world.chooses(first, "reject_once");
    let (second, card) = world.launch_card();
    assert!(card.contains("b-mcp"));
    world.chooses(second, "allow_once");
    assert_eq!(world.servers(), ["a disabled", "b connecting"]);
}

#[test]
fn a_card_of_the_turn_waits_behind_that_of_a_launch() {
    let write = "{\"tool\":\"bash\",\"args\":{\"command\":\"make\"},\"id\":\"t\"}\n";
    let mut world = opened(&disk(ONE), write);
    world.go();
    let (id, _) = world.launch_card();
    world.sees("\"tool_call\"");
    assert!(!world.has("request_permission"), "one thing at a time");
    world.chooses(id, "reject_once");
    let card = world.sees("request_permission");
    assert!(card.contains("make"), "{card}");
    // Cancelled while both wait: neither is asked any more, and nothing hangs.
    let mut world = opened(&disk(ONE), write);
    world.go();
    world.launch_card();
    world.sees("\"tool_call\"");
    world.cancel();
    assert!(!world.has("request_permission"), "{:?}", world.lines);
    world.sees("$/cancel_request");
    world.sees("\"stopReason\":\"cancelled\"");
    assert!(!world.has("request_permission"));
    assert_eq!(world.servers(), ["docs pending"]);
    world.go();
    world.launch_card();
}

#[test]
fn nobody_is_asked_where_the_posture_asks_nobody_and_a_session_that_reads_starts_nothing() {
    let approved = {
        let mut world = opened(&disk(ONE), HANG);
        world.go();
        let (id, _) = world.launch_card();
        world.chooses(id, "allow_always");
        world.ends()
    };
    let check = |mode: &str, asks: bool, starts_approved: bool| {
        let change: fn(&mut Config) = match mode {
            "read-only" => |config| config.permission_mode = named("read-only"),
            "dontAsk" => |config| config.permission_mode = named("dontAsk"),
            "auto" => |config| config.permission_mode = named("auto"),
            _ => |config| config.permission_mode = named("bypassPermissions"),
        };
        let mut world = opened_as(&disk(ONE), HI, change);
        world.go();
        assert_eq!(world.has("mcp-launch-"), asks, "{mode}");
        assert_eq!(world.running().len(), 0, "{mode}");
        let world = opened_as(&approved, HI, change);
        assert_eq!(!world.running().is_empty(), starts_approved, "{mode}");
    };
    check("read-only", false, false);
    // One that may do more, and does so from some prompt on.
    let most: fn(&mut Config) = |config| config.permission_mode = named("bypassPermissions");
    let mut world = opened_as(&approved, HI, most);
    let set = |world: &mut World, posture: &str| {
        let params = format!(
            "{{\"sessionId\":\"{SESSION}\",\"configId\":\"tool_approval\",\"value\":\"{posture}\"}}"
        );
        world.request(8, "session/set_config_option", &params);
    };
    set(&mut world, "readOnly");
    world.go();
    assert_eq!(world.running().len(), 1, "it goes on");
    let mut again = world_with(&world.ends(), HI, most);
    again.held = |call| matches!(call, Call::Process(_));
    again.load(9, SESSION);
    assert_eq!(again.servers(), ["docs pending"]);
    set(&mut again, "ask");
    again.go();
    assert_eq!(again.running().len(), 1);
    assert!(!again.has("mcp-launch-"));
    check("dontAsk", false, true);
    // Protected: whoever lets all run has not read what this project names.
    check("auto", true, true);
    check("bypassPermissions", true, true);
}

fn named(mode: &str) -> PermissionMode {
    PermissionMode::parse(mode).expect("a mode")
}

#[test]
fn a_file_that_is_not_right_is_said_once_and_starts_nothing() {
    let check = |file: &[u8], link: bool, why: &str| {
        let mut disk = disk("");
        disk.files.insert(FILE.into(), file.into());
        disk.links.extend(link.then(|| FILE.into()));
        let mut world = world_with(&disk, HI, |_| {});
        world.open_session(100);
        let seen: Vec<&String> = world
            .lines
            .iter()
            .filter(|line| line.contains("is not used"))
            .collect();
        assert_eq!(seen.len(), 1, "{why}: {:?}", world.lines);
        assert!(seen[0].contains(why), "{why}: {seen:?}");
        assert_eq!((world.servers().len(), world.running().len()), (0, 0));
    };
    check(ONE.as_bytes(), true, "a link");
    check(&[b' '; (1 << 20) + 1], false, "longer than");
    check(b"{\"mcpServers\":7}", false, "line 1");
    check(b"\xff", false, "UTF-8");
    check(
        b"{\"mcpServers\":{\"a\":{}}}",
        false,
        "the server \\\"a\\\"",
    );
}

#[test]
fn approvals_that_cannot_be_read_approve_nothing_and_stay_as_they_are() {
    let mut broken = disk(ONE);
    broken
        .files
        .insert(APPROVALS.into(), b"{\"schemaVersion\":9}".to_vec());
    let mut world = world_with(&broken, HANG, |_| {});
    world.held = |call| matches!(call, Call::Process(_));
    world.open_session(100);
    world.sees("another version of this program");
    assert_eq!(
        (world.servers(), world.running()),
        (vec("docs pending"), Vec::new())
    );
    world.go();
    let (id, _) = world.launch_card();
    world.chooses(id, "allow_always");
    world.sees("is not kept");
    assert_eq!(world.running().len(), 1, "it was allowed here all the same");
    let files = world.ends().files;
    assert_eq!(files[APPROVALS], b"{\"schemaVersion\":9}");
}

#[test]
fn the_person_approves_and_takes_back_by_a_command() {
    let mut world = opened(&disk(ONE), HI);
    let listed = world.types("/mcp");
    for part in [
        "docs, from .mcp.json: pending",
        "/mcp approve docs",
        "command: docs-mcp\\nargument: --all",
    ] {
        assert!(listed.contains(part), "{listed}");
    }
    assert!(!world.has("mcp-launch-"), "a command asks about nothing");
    let said = world.types("/mcp approve nope");
    assert!(said.contains("no MCP server nope"), "{said}");
    world.types("/mcp approve docs");
    assert_eq!(world.running(), ["docs-mcp --all"]);
    let approved = world.ends();
    assert_eq!(opened(&approved, HI).running(), ["docs-mcp --all"]);
    world.types("/mcp revoke docs");
    assert_eq!(
        (world.servers(), world.running()),
        (vec("docs disabled"), Vec::new())
    );
    let mut again = opened(&world.ends(), HI);
    assert_eq!(again.servers(), ["docs pending"]);
    again.go();
    again.launch_card();
    let said = world.types("/mcp what");
    assert!(said.contains("Say /mcp"), "{said}");
}

#[test]
fn two_that_approve_at_once_lose_nothing() {
    // Somebody else approves something between the reading and the writing.
    let mut world = opened(&disk(ONE), HI);
    world.held = |call| {
        let writes = if let Call::Write(write) = call {
            write.path == APPROVALS
        } else {
            false
        };
        writes || matches!(call, Call::Process(_))
    };
    world.prompt("{\"type\":\"text\",\"text\":\"/mcp approve docs\"}");
    let theirs = {
        let mut other = opened(&disk(TWO), HI);
        other.types("/mcp approve a");
        other.ends().files[APPROVALS].clone()
    };
    let (id, _) = world
        .open
        .iter()
        .find(|(_, call)| matches!(call, Call::Write(_)))
        .map(|(id, call)| (*id, call.clone()))
        .expect("it writes");
    world.open.remove(&id);
    let files = &mut world.disk.as_mut().expect("a disk").files;
    files.insert(APPROVALS.into(), theirs);
    world.held = |call| matches!(call, Call::Process(_));
    let changed = IoFault::new(IoKind::Exists, "it is there");
    world.input(Input::Call {
        id,
        news: News::Failed(changed),
    });
    world.sees("\"stopReason\":\"end_turn\"");
    let text = String::from_utf8(world.ends().files[APPROVALS].clone()).expect("text");
    assert!(
        text.contains("\"docs\"") && text.contains("\"a\""),
        "{text}"
    );
}

#[test]
fn what_the_person_configured_needs_no_approval_and_comes_before_the_projects() {
    let mut world = opened_as(&disk(ONE), HI, |config| {
        let way = crate::mcp::Way::Stdio {
            command: "mine".into(),
            args: Vec::new(),
            env: Vec::new(),
        };
        let entry = crate::mcp::Entry::new("docs", way).expect("an entry");
        config.settings.mcp.push(entry);
    });
    assert_eq!(world.running(), ["mine"]);
    assert_eq!(world.servers(), ["docs connecting"]);
    let said = world.types("/mcp approve docs");
    assert!(said.contains("config.toml and needs no approval"), "{said}");
}

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
