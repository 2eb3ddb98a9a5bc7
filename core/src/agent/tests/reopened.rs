//! Sessions that are opened again, taken back, deleted and looked at while something else goes on.

use super::stored::{Disk, world};
use super::*;
use crate::settings::Settings;

const SAY: &str = "{\"text\":\"said\"}\n{\"finish\":\"stop\"}\n";

/// A disk with one session that was prompted.
fn with_session() -> Disk {
    let mut first = world(&Disk::default(), SAY).session();
    first.go();
    first.ends()
}

impl World {
    fn take_back(&mut self, id: u32) {
        self.say(&format!(
            "\"method\":\"$/cancel_request\",\"params\":{{\"requestId\":{id}}}"
        ));
    }

    fn delete(&mut self, id: u32, session: &str) {
        let params = format!("{{\"sessionId\":\"{session}\"}}");
        self.request(id, "session/delete", &params);
    }

    fn files(&self) -> Vec<&String> {
        let disk = self.disk.as_ref().expect("it has a disk");
        disk.files.keys().collect()
    }
}

#[test]
fn a_load_that_is_taken_back_is_answered_when_its_lock_is_given_back() {
    let held: [fn(&Call) -> bool; 4] = [
        |call| matches!(call, Call::Lock { .. }),
        |call| matches!(call, Call::Resolve { .. } | Call::Unlock { .. }),
        |call| matches!(call, Call::Read { .. } | Call::Unlock { .. }),
        |call| {
            matches!(call, Call::ReadAt { at: 0, path, .. } if path.contains("inbox"))
                || matches!(call, Call::Unlock { .. })
        },
    ];
    for (nth, held) in held.into_iter().enumerate() {
        let mut world = world(&with_session(), SAY);
        world.held = held;
        world.load(5, SESSION);
        world.take_back(5);
        // Whoever hears that it is over may open it at once.
        assert_eq!(world.lines, Vec::<String>::new(), "{nth}");
        world.load(6, SESSION);
        world.held = |_| false;
        world.drive();
        world.sees("\"id\":5,\"error\":{\"code\":-32800");
        world.sees("\"id\":6,\"result\"");
        assert!(world.agent.leaving.is_empty());
    }
}

#[test]
fn what_comes_for_a_session_while_it_is_deleted_waits_and_finds_none() {
    let held: [fn(&Call) -> bool; 3] = [
        |call| matches!(call, Call::Resolve { .. }),
        |call| matches!(call, Call::Lock { .. }),
        |call| matches!(call, Call::RemoveTree { .. }),
    ];
    for held in held {
        let mut world = world(&with_session(), SAY);
        world.held = held;
        world.delete(5, SESSION);
        world.load(6, SESSION);
        world.delete(7, SESSION);
        assert_eq!(world.lines, Vec::<String>::new());
        world.held = |_| false;
        world.drive();
        world.sees("\"id\":5,\"result\":{}");
        world.sees("\"id\":6,\"error\":{\"code\":-32002");
        world.sees_only("\"id\":7,\"result\":{}");
        assert_eq!(world.files(), Vec::<&String>::new());
    }
}

#[test]
fn only_what_is_a_session_of_ours_is_deleted_or_swept() {
    let header = |id: &str| {
        format!("{{\"type\":\"session\",\"v\":1,\"id\":\"{id}\",\"cwd\":\"/w\",\"created\":1}}\n")
    };
    let mut disk = Disk::default();
    let mut put = |path: &str, text: &str| {
        let path = format!("/h/sessions/{path}");
        disk.files.insert(path, text.as_bytes().to_vec());
    };
    put(".git/config", "precious");
    put("notes/transcript.jsonl", "precious\n");
    put("other/transcript.jsonl", &header("elsewhere"));
    put("empty/transcript.jsonl", "");
    put("mine-1/transcript.jsonl", &header("mine-1"));
    put("mine-2/transcript.jsonl", &header("mine-2"));
    put("mine-2/extra", "x");
    let precious: Vec<String> = disk
        .files
        .keys()
        .filter(|path| !path.contains("mine"))
        .cloned()
        .collect();
    let mut world = world(&disk, SAY);
    let week = Duration::from_secs(8 * 24 * 3600);
    world.pass(week);
    for id in [".git", "notes", "other", "empty", "nowhere", "mine-2"] {
        world.delete(5, id);
        world.sees_only("\"id\":5,\"result\":{}");
    }
    // The one that nobody prompted goes with the list, though a client gave it its id.
    world.request(6, "session/list", "{}");
    world.sees("\"id\":6,\"result\":{\"sessions\":[]}");
    world.drive();
    assert_eq!(world.files(), precious.iter().collect::<Vec<_>>());
}

#[test]
fn who_resumes_is_told_what_a_load_shows() {
    let disk = with_session();
    let mut world = world(&disk, SAY);
    world.agent.config.script = None;
    world.agent.config.settings.providers = Vec::from([Provider {
        name: "other".into(),
        base_url: "http://x".into(),
        api_key_env: None,
        api_key: None,
        max_retries: 0,
        idle_timeout: Duration::from_secs(1),
        models: Vec::from([Model {
            id: "tiny".into(),
            ..Model::default()
        }]),
    }]);
    let params = format!("{{\"sessionId\":\"{SESSION}\",\"cwd\":\"/w\"}}");
    world.request(5, "session/resume", &params);
    world.sees("\"id\":5,\"result\"");
    let note = world.sees("is not configured any more");
    assert!(note.contains("agent_message_chunk"), "{note}");
}

#[test]
fn settings_that_are_read_again_say_at_once_what_verifies() {
    let mut world = world(&with_session(), SAY);
    world.agent.config.script = None;
    world.load(5, SESSION);
    world.sees("\"id\":5,\"result\"");
    let verifies = |world: &World| {
        let session = world.agent.sessions.values().next();
        let engine = &session.expect("a session is open").engine;
        engine.verifier().verifies("./prove.sh")
    };
    assert!(!verifies(&world));
    world.held = |call| matches!(call, Call::Reconfigure);
    world.request(6, "authenticate", "{\"methodId\":\"reasonix-setup\"}");
    let (id, _) = world.open.pop_first().expect("settings are read");
    let settings = Settings {
        verification: Vec::from(["./prove.sh".into()]),
        ..Settings::default()
    };
    let outcome = Outcome::Reconfigured(Ok(settings.into()));
    world.input(Input::Call {
        id,
        news: News::Done(outcome),
    });
    assert!(verifies(&world));
}

#[test]
fn a_cancelled_turn_is_answered_though_the_disk_hangs() {
    let mut world = world(&Disk::default(), HANG).session();
    world.go();
    world.held = |call| matches!(call, Call::Append(_));
    world.cancel();
    let answered = |world: &World| world.lines.iter().any(|line| line.contains("\"id\":1,"));
    assert!(!answered(&world), "what is said to be over is on the disk");
    world.pass(Duration::from_millis(1999));
    world.sees("\"id\":1,\"result\":{\"stopReason\":\"cancelled\"");
    // The next one has its own end, when the disk is back.
    world.go();
    world.cancel();
    assert!(!answered(&world));
    world.held = |_| false;
    world.drive();
    world.sees("\"id\":1,\"result\":{\"stopReason\":\"cancelled\"");
    assert!(!answered(&world));
    world.pass(Duration::from_secs(5));
    assert!(!answered(&world));
}

#[test]
fn all_pages_of_a_list_cost_one_look_at_all_sessions() {
    let mut disk = Disk::default();
    for n in 0..5 {
        let id = format!("s-{n}");
        let mut summary = crate::store::Summary::new(&id, "/w", 10 + n);
        summary.prompts = 1;
        disk.files
            .insert(format!("/h/sessions/{id}/state.json"), summary.write());
    }
    let mut world = world(&disk, SAY);
    world.agent.config.limits.list_page = 2;
    let mut pages = Vec::new();
    let mut params = String::from("{}");
    loop {
        world.request(5, "session/list", &params);
        let line = world.sees("\"id\":5,\"result\"");
        let answer: serde_json::Value = serde_json::from_str(&line).expect("json");
        let sessions = answer["result"]["sessions"].as_array().cloned();
        for session in sessions.expect("a list") {
            pages.push(String::from(session["sessionId"].as_str().expect("an id")));
        }
        let Some(cursor) = answer["result"]["nextCursor"].as_str() else {
            break;
        };
        params = format!("{{\"cursor\":\"{cursor}\"}}");
        // For the next page only what is on it is read.
        world.held = |call| {
            if let Call::ReadAt { path, .. } = call {
                path.contains("s-4") || path.contains("s-3")
            } else {
                matches!(call, Call::List { .. })
            }
        };
    }
    assert_eq!(pages, ["s-4", "s-3", "s-2", "s-1", "s-0"]);
    // What is kept grows old.
    let first: Vec<&str> = params.split('"').collect();
    assert_eq!(first[1], "cursor");
    world.held = |_| false;
    world.request(6, "session/list", "{}");
    world.sees("\"id\":6,\"result\"");
    assert!(world.agent.listed.is_some());
    world.pass(Duration::from_secs(61));
    world.held = |call| matches!(call, Call::List { .. });
    world.request(7, "session/list", &params);
    assert_eq!(world.lines, Vec::<String>::new(), "it is looked again");
}

#[test]
fn what_another_process_added_meanwhile_is_not_written_over() {
    let mut one = world(&Disk::default(), SAY).session();
    one.go();
    let close = format!("{{\"sessionId\":\"{SESSION}\"}}");
    one.request(4, "session/close", &close);
    one.sees("\"id\":4,\"result\"");
    let go_on = |world: &mut World, text: &str| {
        world.load(5, SESSION);
        world.sees("\"id\":5,\"result\"");
        let block = format!("{{\"type\":\"text\",\"text\":\"{text}\"}}");
        let params = format!("{{\"sessionId\":\"{SESSION}\",\"prompt\":[{block}]}}");
        world.request(6, "session/prompt", &params);
        world.sees("\"id\":6,\"result\"");
    };
    let mut other = world(&one.ends(), SAY);
    go_on(&mut other, "added there");
    one.disk = Some(other.ends());
    // It writes the summary, the options and a turn of its own.
    go_on(&mut one, "added here");
    let params = format!(
        "{{\"sessionId\":\"{SESSION}\",\"configId\":\"tool_approval\",\"value\":\"auto\"}}"
    );
    one.request(7, "session/set_config_option", &params);
    one.sees("\"id\":7,\"result\"");
    let mut last = world(&one.ends(), SAY);
    last.load(5, SESSION);
    let at = ["go", "added there", "added here"].map(|text| {
        let said = format!("\"text\":\"{text}\"");
        let seen = |line: &String| line.contains("user_message_chunk") && line.contains(&said);
        let times = last.lines.iter().filter(|line| seen(line)).count();
        assert_eq!(times, 1, "{text}");
        last.lines.iter().position(seen)
    });
    assert!(at.is_sorted(), "{at:?}");
}
