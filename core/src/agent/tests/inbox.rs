//! The inbox of a session, from the client's requests to what the model hears and what the disk has.

mod disks;
mod guidance;
mod references;

use alloc::string::ToString;

use super::stored::{Disk, world};
use super::*;
use crate::model::{ChatMessage, Part};

/// Answers to as many turns as a test has.
pub(super) fn says(n: usize) -> String {
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
    pub(super) fn asks(&mut self, method: &str, more: &str) -> Option<String> {
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
    pub(super) fn items(&mut self) -> Vec<String> {
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

pub(super) fn world_of_another_run(disk: &Disk, script: &str) -> World {
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

pub(super) const DONE: &str = "\"id\":1,\"result\":{\"stopReason\":\"end_turn\"";

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

impl World {
    fn disk_is_full(&mut self, full: bool) {
        self.disk.as_mut().expect("it has a disk").full = full;
    }
}
