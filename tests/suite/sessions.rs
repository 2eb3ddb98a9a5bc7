//! Sessions over several processes: what one has left open the next one still knows.

use std::time::Duration;

use reasonix_tests::disk::{Disk, Keep, Node};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};
use reasonix_tests::provider::{Answer, hang, say, text, tool};
use reasonix_tests::sim::{Sim, config};
use reasonix_tests::world::{Command, World, http};

use crate::replay::Window;

const HOME: &str = "/home/user/.reasonix";

fn begin(disk: Disk, seed: u8, answers: &[Answer]) -> Sim {
    let mut config = config();
    config.ephemeral = false;
    config.seed = [seed; 32];
    let mut world = World::on(disk);
    world.commands = vec![Command {
        contains: "cargo test".into(),
        output: b"ok\n".to_vec(),
        takes: Some(Duration::ZERO),
        code: 0,
    }];
    world.answers = answers.iter().map(http).collect();
    let mut sim = Sim::new(config, world);
    sim.ask(&json::initialize(9001));
    sim
}

/// A goal for which this is done, then the process ends, and the next one's model says that it is
/// reached. Gives what the model is told after that.
fn reached_after_a_restart(done: &[Answer]) -> Option<String> {
    let mut disk = Disk::with_files("/w", &[]);
    disk.put(HOME, Node::Dir);
    let answers = [done, &[hang([text("…")])]].concat();
    let mut sim = begin(disk, 7, &answers);
    let session = sim.open_another(1, "/w");
    let params = json!({"sessionId": session, "modeId": "goal"});
    sim.ask(&json::request(2, "session/set_mode", params));
    sim.send(&json::prompt(3, &session, "make a file"));
    sim.until("the hang", |sim| json::said(&sim.frames, "").contains('…'));
    let disk = sim.world.disk.after_crash(true, |_| Keep::All);
    let complete = json!({"status": "complete", "reason": "done"});
    let answers = [
        tool("u", "update_goal", complete),
        say("reached"),
        hang([text("…")]),
    ];
    let mut next = begin(disk, 8, &answers);
    let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
    next.ask(&json::request(4, "session/load", params));
    next.send(&json::prompt(5, &session, "go on"));
    next.run_for(Duration::from_secs(5));
    let body: Value = serde_json::from_slice(&next.world.requests.get(2)?.body).ok()?;
    Some(body["messages"].as_array()?.last()?["content"].to_string())
}

#[test]
fn what_was_written_before_a_restart_still_has_to_be_verified() {
    let write = || tool("w", "write_file", json!({"path": "a.txt", "content": "a"}));
    let check = || tool("c", "bash", json!({"command": "cargo test"}));
    let told = reached_after_a_restart(&[write(), say("written")]);
    assert!(
        told.as_ref()
            .is_some_and(|told| told.contains("no test, check or build succeeded")),
        "{told:?}"
    );
    let told = reached_after_a_restart(&[write(), check(), say("written and checked")]);
    assert_eq!(told, None, "the goal is reached");
}

#[test]
fn a_session_of_one_program_goes_on_in_the_other() {
    let script = concat!(
        "{\"when\":{\"prompt_contains\":\"make\"}}\n{\"thought\":\"so\"}\n{\"text\":\"I write. \"}\n",
        "{\"tool\":\"write_file\",\"args\":{\"path\":\"a.txt\",\"content\":\"ä\\n\"}}\n",
        "{\"finish\":\"tool_calls\"}\n{\"text\":\"Geschrieben.\"}\n{\"finish\":\"stop\"}\n",
        "{\"when\":{\"prompt_contains\":\"on\"}}\n{\"text\":\"Going on.\"}\n{\"finish\":\"stop\"}\n",
    );
    let [one, other] = PROGRAMS;
    for (maker, heir) in [(one, other), (other, one)] {
        let place = Place::new();
        let model = format!("script:{}", place.script(script).display());
        let args = ["--model", &model];
        let mut first = Running::start(maker, &place, &args);
        let session = first.open(json!({}), &place.work());
        let from = first.frames.len();
        let answer = first.ask(&json::prompt(1, &session, "make a file"));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        let lived = Window::of(&first.frames[from..]);
        let (ended, laws) = first.finish();
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        laws.check();
        let mut next = Running::start(heir, &place, &args);
        next.ask(&json::initialize(1));
        let list = next.ask(&json::request(2, "session/list", json!({})));
        let found = &list["result"]["sessions"][0];
        assert_eq!(found["sessionId"], session.as_str(), "{list}");
        assert_eq!(found["title"], "make a file", "{list}");
        let from = next.frames.len();
        let params = json!({"sessionId": session, "cwd": place.work(), "mcpServers": []});
        let answer = next.ask(&json::request(3, "session/load", params));
        assert!(answer.get("result").is_some(), "{answer}");
        let shown = Window::of(&next.frames[from..]);
        assert_eq!(shown[0].1, "make a file", "{shown:?}");
        assert_eq!(shown[1..], lived, "made by {maker}, loaded by {heir}");
        let from = next.frames.len();
        let answer = next.ask(&json::prompt(4, &session, "go on"));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        assert_eq!(json::said(&next.frames[from..], ""), "Going on.");
        let (ended, laws) = next.finish();
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        laws.check();
    }
}
