//! The inbox of a session, from the client's requests to what the model hears and what the disk has.

use alloc::string::ToString;

use super::stored::{Disk, world};
use super::*;
use crate::model::{ChatMessage, Part};

/// Answers to as many turns as a test has.
fn says(n: usize) -> String {
    (1..=n)
        .map(|n| format!("{{\"text\":\"answer {n}\"}}\n{{\"finish\":\"stop\"}}\n"))
        .collect()
}

/// A turn that waits for a command, and then answers; more answers for what follows.
fn works() -> String {
    let tool = "{\"tool\":\"bash\",\"args\":{\"command\":\"x\"},\"id\":\"a\"}\n{\"finish\":\"tool_calls\"}\n";
    format!("{tool}{}", says(6))
}

fn is_append(call: &Call) -> bool {
    matches!(call, Call::Append(append) if append.path.ends_with("inbox.jsonl"))
}

fn is_claim(call: &Call) -> bool {
    matches!(call, Call::Append(append)
        if append.bytes.windows(8).any(|part| part == b"\"item\":\""))
}

fn is_process(call: &Call) -> bool {
    matches!(call, Call::Process(_))
}

impl World {
    /// A request to the inbox of the session; its answer, if there is one by now.
    fn asks(&mut self, method: &str, more: &str) -> Option<String> {
        self.wish(70, method, more);
        self.answered(70)
    }

    fn wish(&mut self, id: u32, method: &str, more: &str) {
        let params = format!("{{\"sessionId\":\"{SESSION}\"{more}}}");
        self.request(id, &format!("_reasonix.io/session/{method}"), &params);
    }

    fn answered(&mut self, id: u32) -> Option<String> {
        let start = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},");
        let at = self
            .lines
            .iter()
            .position(|line| line.starts_with(&start))?;
        Some(self.lines.remove(at))
    }

    #[track_caller]
    fn enqueues(&mut self, text: &str) -> String {
        let more = format!(",\"text\":\"{text}\"");
        let line = self.asks("inbox/enqueue", &more).expect("it is answered");
        item_id(&line)
    }

    #[track_caller]
    fn steers(&mut self, text: &str) -> String {
        let more = format!(",\"prompt\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]");
        self.asks("steer", &more).expect("it is answered")
    }

    /// The items: text and state.
    #[track_caller]
    fn items(&mut self) -> Vec<String> {
        let list = self.list();
        let items = list["items"].as_array().expect("a list");
        let text =
            |item: &serde_json::Value, key: &str| item[key].as_str().expect("a text").to_string();
        let of = |item| format!("{} {}", text(item, "preview"), text(item, "state"));
        items.iter().map(of).collect()
    }

    #[track_caller]
    fn list(&mut self) -> serde_json::Value {
        let line = self.asks("inbox/list", "").expect("it is answered");
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        line["result"].clone()
    }

    /// What the person said, as the model has it.
    fn heard(&self) -> Vec<String> {
        let said = self
            .history()
            .into_iter()
            .filter_map(|message| match message {
                ChatMessage::User(parts) => Some(parts),
                ChatMessage::System(_)
                | ChatMessage::Assistant { .. }
                | ChatMessage::Tool { .. } => None,
            });
        said.map(|parts| {
            let texts = parts.iter().map(|part| match part {
                Part::Text(text) => text.clone(),
                Part::Image { mime, .. } => format!("[{mime}]"),
            });
            texts.collect::<Vec<_>>().join(" ")
        })
        .collect()
    }

    /// The command that is waited for ends.
    fn command_ends(&mut self) {
        self.held = |_| false;
        self.drive();
    }

    /// Another process, after this one was killed.
    fn killed(&mut self, script: &str) -> World {
        let mut next = world_of_another_run(&self.ends(), script);
        next.load(5, SESSION);
        next
    }
}

fn world_of_another_run(disk: &Disk, script: &str) -> World {
    let mut next = world(disk, script);
    next.agent.config.seed = [8; 32];
    next
}

#[track_caller]
fn item_id(line: &str) -> String {
    let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let id = line["result"]["itemId"].as_str();
    id.unwrap_or_else(|| panic!("no item in {line}"))
        .to_string()
}

fn yolo(script: &str) -> World {
    let mut world = world(&Disk::default(), script);
    world.agent.config.permission_mode = PermissionMode::parse("bypassPermissions").expect("known");
    world.session()
}

const DONE: &str = "\"id\":1,\"result\":{\"stopReason\":\"end_turn\"";

#[test]
fn what_it_can_do_is_said_at_the_beginning() {
    let mut world = World::new(HANG);
    world.request(0, "initialize", "{\"protocolVersion\":1}");
    let line = world.sees("\"id\":0");
    for part in [
        "\"sessionSteer\":{\"method\":\"_reasonix.io/session/steer\"}",
        "\"sessionInbox\":{\"schemaVersion\":1,\"methods\":{\"enqueue\":\"_reasonix.io/session/inbox/enqueue\"",
        "\"move\":\"_reasonix.io/session/inbox/move\"",
        "\"setPaused\":\"_reasonix.io/session/inbox/setPaused\"",
        "\"refresh\":\"_reasonix.io/session/inbox/refresh\"}}",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[test]
fn items_run_after_the_turn_in_order_inside_the_same_prompt() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.enqueues("one");
    world.enqueues("two");
    assert_eq!(world.items(), ["one queued", "two queued"]);
    assert!(
        world.lines.is_empty(),
        "nothing begins while no prompt is open"
    );
    world.go();
    for part in ["answer 1", "\"one\"", "answer 2", "\"two\"", "answer 3"] {
        world.sees(part);
    }
    world.sees_only(DONE);
    assert_eq!(world.heard(), ["go", "one", "two"]);
    assert_eq!(world.items(), Vec::<String>::new());
    // And once is enough, whoever reads it.
    let mut next = world.killed(&says(1));
    next.sees("\"id\":5,\"result\"");
    assert_eq!(next.heard(), ["go", "one", "two"]);
    assert_eq!(next.items(), Vec::<String>::new());
}

#[test]
fn every_line_of_a_transcript_is_an_object_also_when_a_message_came_before_the_first_prompt() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.enqueues("one");
    world.go();
    world.sees(DONE);
    let disk = world.ends();
    let transcript = disk.files.get(&format!("/h/sessions/{SESSION}/transcript.jsonl"));
    let text = str::from_utf8(transcript.expect("it is there")).expect("it is text");
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        assert!(line["at"].is_u64() && line["type"].is_string(), "{line}");
    }
}

#[test]
fn an_answer_waits_for_the_disk_and_so_does_the_items_turn() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.held = is_append;
    world.wish(70, "inbox/enqueue", ",\"text\":\"one\"");
    world.wish(71, "inbox/list", "");
    assert_eq!(world.lines, Vec::<String>::new());
    world.go();
    world.sees("answer 1");
    assert_eq!(world.lines, Vec::<String>::new(), "the prompt stays open");
    assert_eq!(world.heard(), ["go"]);
    world.held = |_| false;
    world.drive();
    let line = world.answered(70).expect("it is answered");
    for part in [
        "\"disposition\":\"queued_followup\"",
        "\"position\":1,\"paused\":false,\"idempotent\":false",
    ] {
        assert!(line.contains(part), "{line}");
    }
    world.sees("\"id\":71");
    world.sees("answer 2");
    world.sees_only(DONE);
}

#[test]
fn the_model_is_not_asked_before_the_claim_is_on_the_disk() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.enqueues("one");
    world.held = is_claim;
    world.go();
    world.sees("answer 1");
    world.sees("user_message_chunk");
    assert_eq!(world.lines, Vec::<String>::new());
    // Killed now, it was not begun.
    let mut next = world.killed(&says(2));
    assert_eq!(next.items(), ["one queued"]);
    assert_eq!(next.list()["paused"], true);
    world.held = |_| false;
    world.drive();
    world.sees("answer 2");
    // Killed in its turn, nobody knows.
    world.held = is_append;
    let mut late = self::world(&Disk::default(), &format!("{}{HANG}", says(1))).session();
    late.enqueues("one");
    late.go();
    late.sees("\"I\"");
    let mut next = late.killed(&says(2));
    next.sees(
        "[warning] 1 queued message was recovered. It is not known whether 1 of them has run.",
    );
    assert_eq!(next.items(), ["one uncertain"]);
    let list = next.list();
    assert_eq!(list["recovered"], true);
    assert_eq!(list["recoveredCount"], 1);
    assert_eq!(list["items"][0]["blockCode"], "owner_inactive");
    // It does not run by itself.
    next.go();
    next.sees(DONE);
    assert_eq!(next.heard(), ["go", "one", "go"]);
    let id = list["items"][0]["id"].as_str().expect("an id").to_string();
    next.asks("inbox/retry", &format!(",\"itemId\":\"{id}\""));
    next.asks("inbox/setPaused", ",\"paused\":false");
    assert_eq!(next.items(), ["one queued"]);
    next.go();
    next.sees("script ended");
    assert_eq!(next.heard(), ["go", "one", "go", "go", "one"]);
}

#[test]
fn guidance_is_heard_before_the_next_model_call() {
    let mut world = yolo(&works());
    world.held = is_process;
    world.go();
    world.sees("in_progress");
    let line = world.steers("left");
    assert!(
        line.contains("\"disposition\":\"steer_accepted\""),
        "{line}"
    );
    let more = ",\"text\":\"up\",\"intent\":\"STEER\"";
    let line = world.asks("inbox/enqueue", more).expect("an answer");
    assert!(
        line.contains("\"disposition\":\"steer_accepted\",\"position\":2"),
        "{line}"
    );
    assert_eq!(world.items(), ["left steer_accepted", "up steer_accepted"]);
    // The second is taken back in time.
    let id = item_id(&line);
    let line = world.asks("inbox/delete", &format!(",\"itemId\":\"{id}\""));
    assert!(line.expect("an answer").contains("\"ok\":true"));
    world.command_ends();
    world.sees("\"left\"");
    world.sees("answer 1");
    world.sees_only(DONE);
    let history = world.history();
    let left = history.iter().position(|message| {
        matches!(message, ChatMessage::User(parts) if parts == &[Part::Text("left".into())])
    });
    let tool = history
        .iter()
        .position(|m| matches!(m, ChatMessage::Tool { .. }));
    assert_eq!(left, tool.map(|at| at + 1));
    assert_eq!(world.items(), Vec::<String>::new());
}

#[test]
fn guidance_that_a_turn_has_no_step_left_to_hear_is_a_follow_up() {
    let mut world = world(&Disk::default(), &works());
    world.agent.config.permission_mode = PermissionMode::parse("bypassPermissions").expect("known");
    world.agent.config.max_steps = Some(1);
    let mut world = world.session();
    world.held = is_process;
    world.go();
    world.sees("in_progress");
    let line = world.steers("left");
    assert!(line.contains("steer_accepted"), "{line}");
    world.command_ends();
    world.sees("\"left\"");
    world.sees("answer 1");
    world.sees("\"id\":1,\"result\":{\"stopReason\":\"max_turn_requests\"");
    assert_eq!(world.items(), Vec::<String>::new());
}

#[test]
fn a_line_that_the_person_runs_takes_no_guidance() {
    let mut world = yolo(&says(2));
    world.held = is_process;
    let params = format!(
        "{{\"sessionId\":\"{SESSION}\",\"prompt\":[{{\"type\":\"text\",\"text\":\"!make\"}}]}}"
    );
    world.request(1, "session/prompt", &params);
    world.sees("in_progress");
    let line = world.steers("left");
    assert!(line.contains("queued_followup"), "{line}");
    world.command_ends();
    world.sees(DONE);
    assert_eq!(world.items(), ["left queued"]);
    world.go();
    world.sees("answer 2");
    assert_eq!(world.items(), Vec::<String>::new());
}

#[test]
fn guidance_that_comes_too_late_is_a_follow_up() {
    // No turn runs.
    let mut world = world(&Disk::default(), &says(4)).session();
    let line = world.steers("early");
    assert!(
        line.contains("\"disposition\":\"queued_followup\""),
        "{line}"
    );
    item_id(&line);
    world.go();
    world.sees(DONE);
    assert_eq!(world.heard(), ["go", "early"]);
    // The turn ends before it is on the disk.
    let mut world = yolo(&works());
    world.held = |call| is_process(call) || is_append(call);
    world.go();
    world.sees("in_progress");
    let more = ",\"prompt\":[{\"type\":\"text\",\"text\":\"late\"}]";
    world.wish(70, "steer", more);
    world.held = is_append;
    world.drive();
    world.sees("answer 1");
    assert_eq!(world.lines, Vec::<String>::new());
    world.held = |_| false;
    world.drive();
    let line = world.answered(70).expect("it is answered");
    assert!(
        line.contains("\"disposition\":\"queued_followup\""),
        "{line}"
    );
    world.sees("answer 2");
    world.sees(DONE);
    assert_eq!(world.heard(), ["go", "late"]);
}

#[test]
fn a_cancel_begins_nothing_and_keeps_what_was_said() {
    let mut world = yolo(&works());
    world.enqueues("later");
    world.held = is_process;
    world.go();
    world.sees("in_progress");
    world.steers("left");
    world.cancel();
    world.command_ends();
    world.sees("\"id\":1,\"result\":{\"stopReason\":\"cancelled\"");
    assert_eq!(world.items(), ["later queued", "left queued"]);
    assert_eq!(world.heard(), ["go"]);
    world.go();
    world.sees(DONE);
    assert_eq!(world.heard(), ["go", "go", "later", "left"]);
}

#[test]
fn a_cancel_between_two_turns_begins_nothing() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.enqueues("one");
    // The end of the first turn waits for the disk.
    world.held = |call| {
        matches!(call, Call::Append(append)
        if append.bytes.windows(12).any(|part| part == b"\"type\":\"end\""))
    };
    world.go();
    world.sees("answer 1");
    world.cancel();
    world.held = |_| false;
    world.drive();
    world.sees_only("\"id\":1,\"result\":{\"stopReason\":\"cancelled\"");
    assert_eq!(world.items(), ["one queued"]);
    // What is put in waits for the disk, and the next turn for it.
    world.held = is_append;
    world.wish(75, "inbox/enqueue", ",\"text\":\"two\"");
    world.go();
    world.sees("answer 2");
    world.cancel();
    // However slow the disk is.
    world.sees_only("\"id\":1,\"result\":{\"stopReason\":\"cancelled\"");
    world.held = |_| false;
    world.drive();
    assert_eq!(world.items(), ["one queued", "two queued"]);
    assert_eq!(world.heard(), ["go", "go"]);
}

#[test]
fn an_item_that_fails_fails_the_prompt_and_is_tried_again_then_set_aside() {
    let fails = "{\"error\":{\"status\":400}}\n";
    let script = format!("{}{fails}{}{fails}{}{fails}", says(1), says(1), says(1));
    let mut world = world(&Disk::default(), &script).session();
    world.enqueues("one");
    world.enqueues("two");
    for (attempt, state) in [(1, "queued"), (2, "queued"), (3, "blocked")] {
        world.go();
        world.pass(Duration::from_secs(60));
        let line = world.sees("\"id\":1,\"error\"");
        assert!(line.contains("turn_failed"), "{line}");
        let list = world.list();
        assert_eq!(list["items"][0]["state"], state);
        assert_eq!(list["items"][0]["attempts"], attempt);
        assert!(list["items"][0]["lastError"].is_string());
        assert_eq!(
            list["items"][1]["state"], "queued",
            "nothing behind it begins"
        );
        assert_eq!(list["paused"], false);
    }
    let list = world.list();
    assert_eq!(list["items"][0]["blockCode"], "attempts_exhausted");
    // The next one is not held up by it.
    world.go();
    world.sees(DONE);
    assert_eq!(world.items(), ["one blocked"]);
}

#[test]
fn a_paused_inbox_lets_nothing_begin() {
    let mut world = world(&Disk::default(), &says(3)).session();
    let one = world.enqueues("one");
    let line = world.asks("inbox/setPaused", ",\"paused\":true");
    assert!(
        line.expect("an answer")
            .ends_with("\"result\":{\"paused\":true}}")
    );
    world.go();
    world.sees(DONE);
    assert_eq!(world.items(), ["one queued"]);
    world.asks("inbox/setPaused", ",\"paused\":false");
    let two = world.enqueues("two");
    let line = world.asks(
        "inbox/move",
        &format!(",\"itemId\":\"{two}\",\"toIndex\":0"),
    );
    assert!(line.expect("an answer").contains("\"ok\":true"));
    let more = format!(",\"itemId\":\"{one}\",\"text\":\"1\"");
    let line = world.asks("inbox/update", &more).expect("an answer");
    assert!(
        line.contains(&format!("\"result\":{{\"id\":\"{one}\",")),
        "{line}"
    );
    assert!(line.contains("\"preview\":\"1\""), "{line}");
    let line = world
        .asks("inbox/get", &format!(",\"itemId\":\"{two}\""))
        .expect("an answer");
    assert!(line.contains("\"displayText\":\"two\",\"rawText\":\"two\",\"submitText\":\"two\""));
    world.go();
    world.sees("script ended");
    assert_eq!(world.heard(), ["go", "go", "two", "1"]);
}

#[test]
fn a_key_is_known_after_its_item_ran_in_another_process_too() {
    let mut first = world(&Disk::default(), &says(3)).session();
    let more = ",\"text\":\"one\",\"idempotencyKey\":\"k\"";
    let id = item_id(&first.asks("inbox/enqueue", more).expect("an answer"));
    first.go();
    first.sees(DONE);
    let mut next = first.killed(&says(3));
    for world in [&mut first, &mut next] {
        let line = world.asks("inbox/enqueue", more).expect("an answer");
        assert_eq!(item_id(&line), id);
        assert!(line.contains("\"idempotent\":true"), "{line}");
        let other = ",\"text\":\"two\",\"idempotencyKey\":\"k\"";
        let line = world.asks("inbox/enqueue", other).expect("an answer");
        assert!(
            line.contains("-32600") && line.contains("idempotency_conflict"),
            "{line}"
        );
        assert_eq!(world.items(), Vec::<String>::new());
    }
}

#[test]
fn what_cannot_be_done_is_said_with_its_code() {
    let mut world = world(&Disk::default(), HANG).session();
    for (method, more, code) in [
        ("inbox/enqueue", ",\"text\":\" \"", "-32602"),
        ("inbox/enqueue", "", "-32602"),
        (
            "inbox/enqueue",
            ",\"text\":\"t\",\"idempotencyKey\":\"a b\"",
            "invalid_key",
        ),
        ("inbox/get", ",\"itemId\":\"none\"", "item_not_found"),
        ("inbox/delete", ",\"itemId\":\"none\"", "item_not_found"),
        (
            "inbox/update",
            ",\"itemId\":\"none\",\"text\":\"t\"",
            "item_not_found",
        ),
        (
            "inbox/move",
            ",\"itemId\":\"none\",\"toIndex\":0",
            "item_not_found",
        ),
        ("inbox/refresh", ",\"itemId\":\"none\"", "item_not_found"),
        ("inbox/setPaused", ",\"paused\":1", "-32602"),
        ("steer", ",\"prompt\":[]", "-32602"),
        (
            "steer",
            ",\"prompt\":[{\"type\":\"audio\",\"mimeType\":\"a/b\",\"data\":\"\"}]",
            "-32602",
        ),
        ("inbox/none", "", "-32601"),
    ] {
        let line = world.asks(method, more).expect("an answer");
        assert!(
            line.contains("\"error\"") && line.contains(code),
            "{method}{more}: {line}"
        );
    }
    let id = world.enqueues("t");
    for (method, more, code) in [
        ("inbox/retry", "", "wrong_state"),
        ("inbox/update", ",\"text\":\" \"", "\"empty\""),
    ] {
        let more = format!(",\"itemId\":\"{id}\"{more}");
        let line = world.asks(method, &more).expect("an answer");
        assert!(
            line.contains("-32600") && line.contains(code),
            "{method}{more}: {line}"
        );
    }
    let params = "{\"sessionId\":\"nope\"}";
    world.request(70, "_reasonix.io/session/inbox/list", params);
    let line = world.answered(70).expect("an answer");
    assert!(
        line.contains("-32602") && line.contains("session_not_found"),
        "{line}"
    );
    world.request(71, "session/steer", params);
    assert!(world.answered(71).expect("an answer").contains("-32601"));
}

#[test]
fn a_session_that_is_not_stored_has_guidance_and_no_inbox() {
    let mut world = world(&Disk::default(), &works());
    world.agent.config.ephemeral = true;
    world.agent.config.permission_mode = PermissionMode::parse("bypassPermissions").expect("known");
    let mut world = world.session();
    let line = world.steers("early");
    assert!(
        line.contains("-32600") && line.contains("not_running"),
        "{line}"
    );
    let line = world.asks("inbox/list", "").expect("an answer");
    assert!(
        line.contains("-32600") && line.contains("not_persisted"),
        "{line}"
    );
    world.held = is_process;
    world.go();
    world.sees("in_progress");
    let line = world.steers("left");
    assert!(
        line.ends_with("\"result\":{\"disposition\":\"steer_accepted\"}}"),
        "{line}"
    );
    world.command_ends();
    world.sees(DONE);
    assert_eq!(world.heard(), ["go", "left"]);
}

#[test]
fn references_are_frozen_when_an_item_is_put_in() {
    let mut disk = Disk::default();
    disk.files.insert("/w/src/a.rs".into(), b"old".to_vec());
    let mut world = world(&disk, &says(3)).session();
    world.enqueues("fix @src/a.rs for @alice");
    if let Some(disk) = &mut world.disk {
        disk.files.insert("/w/src/a.rs".into(), b"new".to_vec());
    }
    let list = world.list();
    // Compared as values: the order of a text depends on who else is in the build.
    let refs = r#"[{"bytes":3,"kind":"frozen","path":"src/a.rs","preview":"old"}]"#;
    let refs: serde_json::Value = serde_json::from_str(refs).expect("it is JSON");
    assert_eq!(list["items"][0]["refs"], refs);
    world.go();
    let line = world.sees("user_message_chunk");
    assert!(
        line.contains("\"text\":\"fix @src/a.rs for @alice\""),
        "{line}"
    );
    world.sees(DONE);
    assert_eq!(
        world.heard()[1],
        "fix @src/a.rs for @alice\n\n<file path=\"src/a.rs\">\nold\n</file>"
    );
    // One that is not there.
    let more = ",\"text\":\"see @src/b.rs\"";
    let line = world.asks("inbox/enqueue", more).expect("an answer");
    assert!(line.contains("\"paused\":true"), "{line}");
    let id = item_id(&line);
    let list = world.list();
    assert_eq!(list["items"][0]["state"], "blocked");
    assert_eq!(list["items"][0]["blockCode"], "reference_failed");
    if let Some(disk) = &mut world.disk {
        disk.files.insert("/w/src/b.rs".into(), b"b".to_vec());
    }
    world.asks("inbox/refresh", &format!(",\"itemId\":\"{id}\""));
    assert_eq!(world.items(), ["see @src/b.rs queued"]);
}

#[test]
fn what_the_tools_may_not_read_is_not_frozen_and_no_key_is() {
    let mut disk = Disk::default();
    for (path, text) in [
        ("/w/conf", "key sk-abcdefgh12345678 end"),
        ("/w/secret/a", "hidden"),
        ("/h/.env", "hidden"),
        ("/etc/x", "hidden"),
    ] {
        disk.files.insert(path.into(), text.as_bytes().to_vec());
    }
    for (path, frozen) in [
        ("./conf", true),
        ("./secret/a", false),
        ("/h/.env", false),
        ("/etc/x", false),
    ] {
        let mut world = world(&disk, &says(2));
        let settings = &mut world.agent.config.settings;
        settings.permissions.deny.push("Read(secret/**)".into());
        let key = crate::secret::Secret::new("K", "sk-abcdefgh12345678");
        settings.secrets.push(key);
        world.agent.know_settings();
        let mut world = world.session();
        let more = format!(",\"text\":\"see @{path}\"");
        let line = world.asks("inbox/enqueue", &more).expect("an answer");
        assert_eq!(line.contains("\"paused\":true"), !frozen, "{line}");
        let shown = world.list().to_string();
        assert!(
            !shown.contains("hidden") && !shown.contains("sk-abc"),
            "{shown}"
        );
        if frozen {
            world.go();
            world.sees(DONE);
            let heard = world.heard();
            assert!(heard[1].contains("key [redacted] end"), "{heard:?}");
        }
        let kept = world.disk.as_ref().expect("it has a disk").files.iter();
        let mut kept = kept.filter(|(path, _)| path.starts_with("/h/sessions/"));
        let leaks = |bytes: &Vec<u8>| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.contains("hidden") || text.contains("sk-abc")
        };
        assert!(!kept.any(|(_, bytes)| leaks(bytes)), "{path}");
    }
}

#[test]
fn a_link_to_a_file_is_frozen_as_its_path_is() {
    let mut disk = Disk::default();
    disk.files.insert("/w/src/a b.rs".into(), b"old".to_vec());
    let mut world = world(&disk, &says(2)).session();
    world.enqueues("see @file:///w/src/a%20b.rs#L3");
    world.go();
    world.sees(DONE);
    assert_eq!(
        world.heard()[1],
        "see @file:///w/src/a%20b.rs#L3\n\n<file path=\"file:///w/src/a%20b.rs\">\nold\n</file>"
    );
    let line = world.asks("inbox/enqueue", ",\"text\":\"see @file:///w/none\"");
    assert!(line.expect("an answer").contains("\"paused\":true"));
}

#[test]
fn a_message_does_not_overtake_one_whose_references_are_read() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.held = |call| matches!(call, Call::Read { .. });
    world.wish(70, "inbox/enqueue", ",\"text\":\"one @a\"");
    world.wish(71, "inbox/enqueue", ",\"text\":\"two\"");
    world.wish(72, "inbox/enqueue", ",\"text\":\"three\"");
    assert_eq!(world.lines, Vec::<String>::new());
    // One that waits is taken back, and so is one that is being read.
    world.say("\"method\":\"$/cancel_request\",\"params\":{\"requestId\":71}");
    world.sees_only("\"id\":71,\"error\":{\"code\":-32800");
    world.held = |_| false;
    world.drive();
    world.sees("\"id\":70,\"result\"");
    world.sees_only("\"id\":72,\"result\"");
    assert_eq!(world.items(), ["one @a queued", "three queued"]);
    world.held = |call| matches!(call, Call::Read { .. });
    world.wish(73, "inbox/enqueue", ",\"text\":\"four @a\"");
    world.wish(74, "inbox/list", "");
    world.say("\"method\":\"$/cancel_request\",\"params\":{\"requestId\":73}");
    world.sees("\"id\":73,\"error\":{\"code\":-32800");
    world.sees_only("\"id\":74,\"result\"");
    world.held = |_| false;
    world.drive();
    assert_eq!(world.items(), ["one @a queued", "three queued"]);
}

#[test]
fn pictures_of_guidance_reach_the_model() {
    let mut world = yolo(&works());
    world.held = is_process;
    world.go();
    world.sees("in_progress");
    let image = format!("{{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"{PNG}\"}}");
    let more = format!(",\"prompt\":[{{\"type\":\"text\",\"text\":\"this\"}},{image}]");
    let line = world.asks("steer", &more).expect("an answer");
    assert!(line.contains("steer_accepted"), "{line}");
    world.command_ends();
    world.sees(DONE);
    let heard = world.heard();
    assert!(
        heard[1].starts_with("this\n\n@.reasonix/attachments/"),
        "{heard:?}"
    );
    assert!(heard[1].ends_with(".png [image/png]"), "{heard:?}");
}

#[test]
fn a_disk_that_fails_refuses_who_waits_and_begins_nothing() {
    let mut world = world(&Disk::default(), &says(3)).session();
    let id = world.enqueues("one");
    if let Some(disk) = &mut world.disk {
        disk.full = true;
    }
    let line = world
        .asks("inbox/enqueue", ",\"text\":\"two\"")
        .expect("an answer");
    assert!(
        line.contains("-32600") && line.contains("read_only"),
        "{line}"
    );
    let line = world
        .asks("inbox/delete", &format!(",\"itemId\":\"{id}\""))
        .expect("an answer");
    assert!(line.contains("read_only"), "{line}");
    if let Some(disk) = &mut world.disk {
        disk.full = false;
    }
    assert_eq!(world.list()["readonly"], true);
    world.go();
    world.sees(DONE);
    assert_eq!(world.heard(), ["go"]);
    // What was answered is there.
    let mut next = world.killed(&says(1));
    assert_eq!(next.items(), ["one queued"]);
}

#[test]
fn a_transcript_that_fails_runs_no_item() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.enqueues("one");
    world.held = is_claim;
    world.go();
    world.sees("user_message_chunk");
    if let Some(disk) = &mut world.disk {
        disk.full = true;
    }
    world.held = |_| false;
    world.drive();
    let line = world.sees("\"id\":1,\"error\"");
    assert!(line.contains("turn_failed"), "{line}");
    let list = world.list();
    assert_eq!(list["items"][0]["state"], "uncertain");
    assert_eq!(list["items"][0]["blockCode"], "turn_snapshot_failed");
    assert_eq!(list["paused"], true);
}

#[test]
fn a_message_for_a_session_that_is_lost_is_refused_and_why() {
    let mut world = world(&Disk::default(), &says(3)).session();
    if let Some(disk) = &mut world.disk {
        disk.full = true;
    }
    world.go();
    world.sees(DONE);
    if let Some(disk) = &mut world.disk {
        disk.full = false;
    }
    let line = world
        .asks("inbox/enqueue", ",\"text\":\"two\"")
        .expect("an answer");
    assert!(
        line.contains("read_only") && line.contains("not saved any more: no space is left"),
        "{line}"
    );
}

#[test]
fn the_inbox_goes_with_its_session() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.enqueues("one");
    let params = format!("{{\"sessionId\":\"{SESSION}\"}}");
    world.held = |call| matches!(call, Call::Read { .. });
    world.wish(70, "inbox/enqueue", ",\"text\":\"two @a\"");
    world.request(6, "session/close", &params);
    world.sees("\"id\":70,\"error\"");
    world.sees("\"id\":6,\"result\"");
    world.held = |_| false;
    world.drive();
    world.load(7, SESSION);
    world.sees("\"id\":7,\"result\"");
    // The same process finds it as it left it.
    assert_eq!(world.items(), ["one queued"]);
    assert_eq!(world.list()["paused"], false);
    world.request(8, "session/delete", &params);
    world.sees("\"id\":8,\"result\"");
    let files = &world.disk.as_ref().expect("a disk").files;
    assert!(files.is_empty(), "{:?}", files.keys());
}

#[test]
fn a_damaged_inbox_is_kept_aside_and_said() {
    let mut first = world(&Disk::default(), &says(3)).session();
    first.enqueues("one");
    first.enqueues("two");
    let mut disk = first.ends();
    let path = format!("/h/sessions/{SESSION}/inbox.jsonl");
    let file = disk.files.get_mut(&path).expect("it is there");
    let at = file
        .windows(3)
        .position(|part| part == b"one")
        .expect("it is there");
    file[at] = b'O';
    let before = file.clone();
    let mut next = world_of_another_run(&disk, &says(3));
    next.load(5, SESSION);
    next.sees("kept aside");
    assert_eq!(next.items(), ["One uncertain", "two uncertain"]);
    let files = &next.disk.as_ref().expect("a disk").files;
    let aside = files
        .iter()
        .find(|(name, _)| name.contains("inbox.damaged-"));
    assert_eq!(aside.map(|(_, bytes)| bytes), Some(&before));
}

#[test]
fn what_ran_does_not_run_again_when_the_inbox_is_gone() {
    for gone in [true, false] {
        let mut first = world(&Disk::default(), &says(9)).session();
        for text in ["one", "two", "three"] {
            first.enqueues(text);
        }
        first.go();
        first.sees("\"id\":1,\"result\"");
        let mut disk = first.ends();
        let path = format!("/h/sessions/{SESSION}/inbox.jsonl");
        if gone {
            disk.files.remove(&path);
        } else {
            disk.files.insert(path, Vec::new());
        }
        let mut next = world_of_another_run(&disk, &says(9));
        next.load(5, SESSION);
        next.sees("\"id\":5,\"result\"");
        assert_eq!(next.items(), Vec::<String>::new());
        next.go();
        next.sees("\"id\":1,\"result\"");
        let heard = next.heard();
        for text in ["one", "two", "three"] {
            let times = heard.iter().filter(|it| *it == text).count();
            assert_eq!(times, 1, "{text}: {heard:?}");
        }
    }
}

#[test]
fn a_message_for_one_session_is_never_told_in_another() {
    for method in ["session/close", "session/delete"] {
        let mut world = world(&Disk::default(), &says(9)).session();
        world.enqueues("only for the first");
        let params = format!("{{\"sessionId\":\"{SESSION}\"}}");
        world.request(6, method, &params);
        world.sees("\"id\":6,\"result\"");
        world.request(7, "session/new", "{\"cwd\":\"/w\"}");
        let line = world.sees("\"id\":7,\"result\"");
        let at = line.find("sessionId\":\"").expect("an id") + 12;
        let other = &line[at..at + 36];
        let block = "{\"type\":\"text\",\"text\":\"hi\"}";
        let params = format!("{{\"sessionId\":\"{other}\",\"prompt\":[{block}]}}");
        world.request(8, "session/prompt", &params);
        world.sees("\"id\":8,\"result\"");
        let told = format!("{:?}", world.history());
        assert!(told.contains("hi") && !told.contains("first"), "{told}");
    }
}
