//! The MCP servers of a project's file: nothing of it starts before the person said so, and what
//! they said holds for what they saw.

use super::stored::Disk;
use super::*;
use crate::call::Program;

mod spoken;

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
    // An earlier agent of the same seed had a session of the id that is known here.
    let disk = world.disk.iter_mut();
    disk.for_each(|disk| {
        disk.files
            .retain(|file, _| !file.starts_with("/h/sessions/"))
    });
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

#[test]
fn a_command_about_servers_waits_until_it_is_known_which_there_are() {
    for (typed, said) in [
        ("/mcp", "docs, from .mcp.json: pending"),
        ("/mcp approve docs", "The MCP server docs may be started"),
        ("/mcp retry nope", "There is no MCP server nope"),
    ] {
        let mut world = world_with(&disk(ONE), HI, |_| {});
        world.held = |call| {
            let path = if let Call::Resolve { path } | Call::Read { path, .. } = call {
                path.as_str()
            } else {
                ""
            };
            path == FILE || matches!(call, Call::Process(_))
        };
        world.open_session(100);
        world.lines.clear();
        let block = format!("{{\"type\":\"text\",\"text\":\"{typed}\"}}");
        world.prompt(&block);
        assert!(
            !world.has("agent_message_chunk"),
            "{typed}: {:?}",
            world.lines
        );
        // Who does not wait any more is not answered twice.
        world.cancel();
        world.sees("\"stopReason\":\"cancelled\"");
        world.prompt(&block);
        world.held = |call| matches!(call, Call::Process(_));
        world.drive();
        let told = world.sees("agent_message_chunk");
        assert!(told.contains(said), "{typed}: {told}");
        world.sees("\"stopReason\":\"end_turn\"");
        assert!(
            !world.has("agent_message_chunk"),
            "{typed}: {:?}",
            world.lines
        );
    }
}
