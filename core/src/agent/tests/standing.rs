//! Modes, goals and status on the wire.

use alloc::string::ToString;

use super::stored::{Disk, world};
use super::*;
use crate::settings::{Price, Settings};
use serde_json::Value;

const WRITE: &str = "{\"tool\":\"todo_write\",\"args\":{\"todos\":[{\"content\":\"x\",\"status\":\"pending\"}]}}\n{\"finish\":\"tool_calls\"}\n";
const BLOCKED: &str = "{\"tool\":\"update_goal\",\"args\":{\"status\":\"blocked\",\"reason\":\"no key\"}}\n{\"finish\":\"tool_calls\"}\n";
const COMPLETE: &str = "{\"tool\":\"update_goal\",\"args\":{\"status\":\"complete\",\"reason\":\"done\"}}\n{\"finish\":\"tool_calls\"}\n";
const SAY: &str = "{\"text\":\"said\"}\n{\"finish\":\"stop\"}\n";

impl World {
    fn mode(&mut self, id: &str) {
        let params = format!("{{\"sessionId\":\"{SESSION}\",\"modeId\":\"{id}\"}}");
        self.request(20, "session/set_mode", &params);
    }

    fn option(&mut self, id: &str, value: &str) {
        let params =
            format!("{{\"sessionId\":\"{SESSION}\",\"configId\":\"{id}\",\"value\":\"{value}\"}}");
        self.request(21, "session/set_config_option", &params);
    }

    fn own(&mut self, method: &str) {
        let params = format!("{{\"sessionId\":\"{SESSION}\"}}");
        self.request(22, &format!("_reasonix.io/session/{method}"), &params);
    }

    /// How the session stands.
    fn status(&mut self) -> Value {
        self.own("status");
        let line = self.sees("\"id\":22");
        let answer: Value = serde_json::from_str(&line).expect("json");
        answer["result"].clone()
    }

    /// The kinds of what it sent, the session's updates and notifications of our own.
    fn kinds(&mut self) -> Vec<String> {
        let lines = core::mem::take(&mut self.lines);
        let kind = |line: String| {
            let line: Value = serde_json::from_str(&line).expect("json");
            let update = &line["params"]["update"]["sessionUpdate"];
            match (update.as_str(), line["method"].as_str()) {
                (Some(kind), _) => String::from(kind),
                (None, Some("_reasonix.io/session/status_update")) => {
                    let params = &line["params"];
                    format!(
                        "{} {}",
                        text(&params["event"]),
                        text(&params["status"]["phase"])
                    )
                }
                (None, Some(method)) => String::from(method),
                (None, None) => format!("answer {}", line["id"]),
            }
        };
        lines.into_iter().map(kind).collect()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A client that asked to be told how sessions stand.
fn telling(script: &str) -> World {
    let mut world = World::new(script);
    let capabilities = r#"{"_meta":{"reasonix.io":{"statusUpdates":{"supported":true}}}}"#;
    let params = format!("{{\"protocolVersion\":1,\"clientCapabilities\":{capabilities}}}");
    world.request(0, "initialize", &params);
    world.lines.clear();
    world
}

#[test]
fn the_methods_of_goals_and_status_are_offered_by_their_names() {
    let mut world = World::new(SAY);
    world.request(9, "initialize", "{\"protocolVersion\":1}");
    let line = world.sees("\"id\":9");
    let answer: Value = serde_json::from_str(&line).expect("json");
    let offered = &answer["result"]["agentCapabilities"]["_meta"];
    for method in ["status", "status_update", "goal/resume", "goal/pause"] {
        let version = &offered[format!("_reasonix.io/session/{method}")];
        assert_eq!(version["schemaVersion"], 1, "{method}");
    }
}

#[test]
fn modes_and_the_option_of_modes_say_the_same() {
    let mut world = World::new(SAY);
    world.open_session(1);
    let line = world.sees("\"id\":1");
    let answer: Value = serde_json::from_str(&line).expect("json");
    let answer = &answer["result"];
    assert_eq!(answer["modes"]["currentModeId"], "normal");
    let ids: Vec<&str> = answer["modes"]["availableModes"]
        .as_array()
        .expect("modes")
        .iter()
        .map(|mode| text(&mode["id"]))
        .collect();
    assert_eq!(ids, ["normal", "plan", "goal"]);
    let first = &answer["configOptions"][0];
    assert_eq!(
        (text(&first["id"]), text(&first["category"])),
        ("mode", "mode")
    );
    let values: Vec<&str> = first["options"]
        .as_array()
        .expect("values")
        .iter()
        .map(|value| text(&value["value"]))
        .collect();
    assert_eq!(values, ids);
    assert_eq!(world.kinds(), ["available_commands_update"]);
    world.mode("plan");
    assert_eq!(
        world.kinds(),
        ["config_option_update", "current_mode_update", "answer 20"]
    );
    world.mode("plan");
    assert_eq!(world.kinds(), ["answer 20"], "it is on already");
    world.option("mode", "normal");
    let line = world.lines.last().cloned().unwrap_or_default();
    assert!(line.contains("\"currentValue\":\"normal\""), "{line}");
    assert_eq!(world.kinds(), ["current_mode_update", "answer 21"]);
    world.option("mode", "Plan");
    world.sees_only("-32602");
    world.mode("yolo");
    world.sees_only("-32602");
}

#[test]
fn the_legacy_modes_set_the_approvals_too_and_never_above_the_ceiling() {
    let mut world = World::new(SAY).session();
    world.mode("plan");
    world.lines.clear();
    world.mode("auto");
    let line = world.sees("config_option_update");
    assert!(line.contains("\"currentValue\":\"yolo\""), "{line}");
    assert_eq!(world.kinds(), ["current_mode_update", "answer 20"]);
    world.mode("default");
    let line = world.sees("config_option_update");
    assert!(line.contains("\"currentValue\":\"ask\""), "{line}");
    assert_eq!(world.kinds(), ["answer 20"]);
    let mut config = config();
    config.script = Some(Script::parse(SAY).expect("good"));
    config.permission_mode = PermissionMode::parse("dontAsk").expect("good");
    let mut world = World::of(config).session();
    for mode in ["auto", "default"] {
        world.mode(mode);
        let line = world.sees("\"id\":20");
        assert!(line.contains("acp.tool_approval.above_ceiling"), "{line}");
        assert_eq!(world.status()["mode"], "normal");
    }
}

#[test]
fn a_plan_that_is_approved_ends_its_mode_before_the_answer() {
    let script = format!("{WRITE}{SAY}{SAY}");
    let mut world = World::new(&script).session();
    world.mode("plan");
    world.lines.clear();
    world.go();
    let card = world.sees("session/request_permission");
    assert!(card.contains("\"kind\":\"switch_mode\""), "{card}");
    assert!(card.contains("said\\n\\nPlan:\\n- [ ] x"), "{card}");
    assert!(!card.contains("allow_always"), "{card}");
    world.say(
        "\"id\":1,\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}",
    );
    world.sees("agent_message_chunk");
    assert_eq!(
        world.kinds(),
        ["current_mode_update", "config_option_update", "answer 1"]
    );
    assert_eq!(world.status()["mode"], "normal");
}

#[test]
fn a_goal_is_paused_and_resumed_by_its_methods() {
    let script = format!("{BLOCKED}{SAY}{COMPLETE}{SAY}");
    let mut world = World::new(&script).session();
    world.own("goal/pause");
    world.sees_only("\"code\":-32011");
    world.own("goal/resume");
    world.sees_only("\"code\":-32010");
    world.mode("goal");
    world.go();
    let answer = world.sees("\"id\":1,");
    assert!(
        answer.contains(
            r#"{"reasonix.io":{"turnOutcome":{"kind":"paused","reason":"goal blocked: no key"}}}"#
        ),
        "{answer}"
    );
    let status = world.status();
    assert_eq!(status["goal"]["status"], "blocked");
    assert_eq!(status["goal"]["objective"], "go");
    assert_eq!(status["phase"], "paused");
    assert_eq!(status["mode"], "goal");
    world.own("goal/resume");
    let answer = world.sees("\"id\":22");
    assert!(answer.contains("\"status\":\"running\""), "{answer}");
    assert!(answer.contains("\"turnsUsed\":1"), "{answer}");
    world.own("goal/resume");
    world.sees_only("\"code\":-32010");
    world.own("goal/pause");
    let answer = world.sees("\"id\":22");
    assert!(answer.contains("\"status\":\"paused\""), "{answer}");
    assert!(answer.contains("\"stopCause\":\"manual\""), "{answer}");
    world.own("goal/resume");
    world.lines.clear();
    world.go();
    world.sees("\"result\":{\"stopReason\":\"end_turn\"}}");
    let status = world.status();
    assert_eq!(status["goal"]["status"], "complete");
    assert_eq!(status["goal"].get("objective"), None);
    assert_eq!(
        (text(&status["phase"]), text(&status["mode"])),
        ("review_ready", "normal")
    );
    assert_eq!(status["finalReadiness"]["readyForReview"], true);
}

#[test]
fn a_goal_that_another_mode_gave_up_is_gone() {
    let mut world = World::new(&format!("{BLOCKED}{SAY}")).session();
    world.mode("goal");
    world.go();
    world.lines.clear();
    world.own("goal/resume");
    assert_eq!(world.kinds(), ["answer 22"]);
    world.mode("plan");
    world.lines.clear();
    world.own("goal/resume");
    world.sees_only("\"code\":-32010");
}

#[test]
fn the_methods_of_a_session_that_is_not_there_say_so() {
    let mut world = World::new(SAY);
    for method in ["status", "goal/pause", "goal/resume"] {
        world.own(method);
        let line = world.sees("\"id\":22");
        assert!(
            line.contains("-32602") && line.contains("session_not_found"),
            "{line}"
        );
        world.request(23, &format!("_reasonix.io/session/{method}"), "{}");
        world.sees_only("\"id\":23,\"error\":{\"code\":-32602");
    }
    world.own("nothing");
    world.sees_only("-32601");
}

#[test]
fn a_client_that_asked_is_told_of_every_change_in_order() {
    let bash = "{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}\n{\"finish\":\"tool_calls\"}\n";
    let mut world = telling(&format!("{bash}{SAY}")).session();
    world.go();
    let first = world.kinds();
    assert_eq!(
        first,
        [
            "session_info_update",
            "phase starting",
            "usage starting",
            "tool_call",
            "phase waiting_permission",
            "session/request_permission",
        ]
    );
    world.say(
        "\"id\":1,\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"reject_once\"}}",
    );
    assert_eq!(
        world.kinds(),
        [
            "phase implementing",
            "tool_call_update",
            "phase working",
            "agent_message_chunk",
            "usage working",
            "completion completed",
            "answer 1",
        ]
    );
    let mut world = World::new(SAY).session();
    world.go();
    assert!(!world.kinds().iter().any(|kind| kind.starts_with("phase")));
}

#[test]
fn the_sequence_grows_by_one_with_every_change() {
    let mut world = telling(&format!("{WRITE}{SAY}")).session();
    let before = world.status()["sequence"].as_u64().expect("a number");
    world.go();
    let mut told = Vec::new();
    for line in core::mem::take(&mut world.lines) {
        let line: Value = serde_json::from_str(&line).expect("json");
        if line["method"] == "_reasonix.io/session/status_update" {
            assert_eq!(
                line["params"]["sequence"],
                line["params"]["status"]["sequence"]
            );
            told.push(line["params"]["sequence"].as_u64().expect("a number"));
        }
    }
    assert!(told.windows(2).all(|two| two[0] < two[1]), "{told:?}");
    assert_eq!(told[0], before + 1);
    assert_eq!(world.status()["sequence"].as_u64(), told.last().copied());
}

#[test]
fn what_was_written_and_not_verified_pauses_the_turn_of_the_delivery_preset() {
    let write = "{\"tool\":\"write_file\",\"args\":{\"path\":\"a\",\"content\":\"1\"}}\n{\"finish\":\"tool_calls\"}\n";
    let mut world = World::new(&format!("{write}{SAY}")).session();
    world.option("agent_preset", "delivery");
    world.option("tool_approval", "yolo");
    world.lines.clear();
    world.held = |call| matches!(call, Call::Resolve { path } if path == "/w/a");
    world.go();
    let (id, _) = world.open.pop_first().expect("the file is looked for");
    world.held = |_| false;
    let missing = Resolved {
        real: "/w/a".into(),
        kind: FileKind::Missing,
        link: false,
        owned: true,
        links: 0,
        size: 0,
    };
    world.input(Input::Call {
        id,
        news: News::Done(Outcome::Resolved(missing)),
    });
    let note = world.sees("[paused] Not verified,");
    assert!(
        note.contains("\"text\":\"[paused] Not verified, files were changed"),
        "{note}"
    );
    let answer = world.sees("\"id\":1,");
    assert!(answer.contains("\"stopReason\":\"end_turn\""), "{answer}");
    assert!(
        answer.contains("\"turnOutcome\":{\"kind\":\"paused\",\"reason\":\"files were"),
        "{answer}"
    );
    let status = world.status();
    assert_eq!(status["phase"], "readiness_paused");
    assert_eq!(status["workMode"], "delivery");
    assert_eq!(status["finalReadiness"]["readyForReview"], false);
    assert_eq!(
        status["finalReadiness"]["risks"].as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn mode_goal_and_what_was_used_are_there_after_a_load() {
    let script = format!("{BLOCKED}{SAY}");
    let mut first = world(&Disk::default(), &script).session();
    first.mode("goal");
    first.go();
    let before = first.status();
    let disk = first.ends();
    let mut second = world(&disk, &script);
    second.load(5, SESSION);
    let line = second.sees("\"id\":5,");
    assert!(line.contains("\"currentModeId\":\"goal\""), "{line}");
    let after = second.status();
    for member in ["goal", "mode", "phase", "turnOutcome", "finalReadiness"] {
        assert_eq!(after[member], before[member], "{member}");
    }
    assert_eq!(after["usage"]["cumulative"], before["usage"]["cumulative"]);
    assert_eq!(after["state"], "idle");
}

#[test]
fn a_turn_that_the_end_of_the_agent_broke_off_is_told_as_such() {
    let mut first = world(&Disk::default(), HANG).session();
    first.go();
    let disk = first.ends();
    let mut second = world(&disk, HANG);
    second.load(5, SESSION);
    let status = second.status();
    assert_eq!(
        (text(&status["state"]), text(&status["phase"])),
        ("idle", "recovery_paused")
    );
    assert_eq!(status["turnOutcome"]["kind"], "paused");
}

#[test]
fn a_cost_is_a_number_in_updates_and_exact_in_the_status() {
    let mut config = config();
    config.settings.providers.push(Provider {
        name: "p".into(),
        base_url: "http://p".into(),
        api_key_env: None,
        api_key: None,
        max_retries: 0,
        idle_timeout: Duration::from_secs(9),
        models: Vec::from([Model {
            id: "m".into(),
            context_window: Some(1000),
            price: Some(Price {
                currency: "USD".into(),
                input: "0.27".into(),
                cached_input: Some("0.07".into()),
                output: "1.1".into(),
            }),
            ..Model::default()
        }]),
    });
    let mut world = World::of(config);
    world.held = |call| matches!(call, Call::Http(_));
    world.open_session(100);
    world.sees("\"id\":100");
    let usage = world.sees("usage_update");
    assert!(usage.contains("\"used\":0,\"size\":1000}"), "{usage}");
    world.go();
    let (id, _) = world.open.pop_first().expect("the model is asked");
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10,\"prompt_tokens_details\":{\"cached_tokens\":60}}}\n\ndata: [DONE]\n\n";
    world.input(Input::Call {
        id,
        news: News::Opened(crate::call::Opened {
            status: 200,
            headers: Vec::from([("content-type".into(), "text/event-stream".into())]),
        }),
    });
    world.input(Input::Call {
        id,
        news: News::Bytes {
            stream: Stream::Out,
            bytes: body.as_bytes(),
        },
    });
    world.input(Input::Call {
        id,
        news: News::Done(Outcome::Ended),
    });
    // 40 · 0.27 + 60 · 0.07 + 10 · 1.1, for a million.
    let usage = world.sees("usage_update");
    assert!(
        usage.contains("\"cost\":{\"amount\":0.000026,\"currency\":\"USD\"}"),
        "{usage}"
    );
    world.sees("end_turn");
    let status = world.status();
    let turn = &status["usage"]["turn"];
    assert_eq!(turn["costQuote"]["selected"]["amount"], "0.000026");
    assert_eq!(turn["cacheHitRatio"].to_string(), "0.6");
    assert_eq!(
        (text(&status["model"]), text(&status["effort"])),
        ("p/m", "auto")
    );
}

#[test]
fn a_reload_by_its_method_is_answered_when_it_is_done_or_queued_behind_a_turn() {
    const METHOD: &str = "_reasonix.io/session/reloadExtensions";
    let params = format!("{{\"sessionId\":\"{SESSION}\"}}");
    let reads = |world: &World| -> Vec<CallId> {
        let read = |(id, call): (&CallId, &Call)| matches!(call, Call::Reconfigure).then_some(*id);
        world.open.iter().filter_map(read).collect()
    };
    let done = |world: &mut World, id: CallId, read: Result<Settings, String>| {
        world.open.remove(&id);
        let news = News::Done(Outcome::Reconfigured(read.map(Box::new)));
        world.input(Input::Call { id, news });
    };
    let mut world = World::new(HANG);
    world.request(9, "initialize", "{\"protocolVersion\":1}");
    let offers = world.sees("\"id\":9");
    assert!(offers.contains(&format!(
        "\"sessionReloadExtensions\":{{\"method\":\"{METHOD}\"}}"
    )));
    let mut world = world.session();
    world.held = |call| matches!(call, Call::Reconfigure);
    // Idle: it is answered when it is done, a second one is behind it.
    world.request(2, METHOD, &params);
    assert!(!world.lines.iter().any(|line| line.contains("\"id\":2")));
    world.request(3, METHOD, &params);
    world.sees("\"id\":3,\"result\":{\"queued\":true}");
    let id = reads(&world)[0];
    done(&mut world, id, Ok(Settings::default()));
    world.sees("\"id\":2,\"result\":{}");
    let id = reads(&world)[0];
    done(&mut world, id, Ok(Settings::default()));
    assert_eq!(reads(&world), []);
    // What cannot be read changes nothing and is said.
    world.request(4, METHOD, &params);
    let id = reads(&world)[0];
    done(&mut world, id, Err("it is broken".into()));
    world
        .sees("\"id\":4,\"error\":{\"code\":-32603,\"message\":\"Nothing is changed: it is broken");
    // In a turn it is queued, once however often it is asked for.
    world.go();
    for id in [5, 6] {
        world.request(id, METHOD, &params);
        world.sees(&format!("\"id\":{id},\"result\":{{\"queued\":true}}"));
    }
    assert_eq!(reads(&world), []);
    world.cancel();
    world.sees(CANCELLED);
    let id = reads(&world)[0];
    done(&mut world, id, Ok(Settings::default()));
    assert_eq!(reads(&world), []);
    // A session that ends leaves no question open.
    world.request(7, METHOD, &params);
    world.request(8, "session/close", &params);
    world.sees("\"id\":7,\"error\"");
    world.request(10, METHOD, &params);
    world.sees("\"id\":10,\"error\":{\"code\":-32602");
    world.request(11, METHOD, "{}");
    world.sees("\"id\":11,\"error\":{\"code\":-32602");
}
