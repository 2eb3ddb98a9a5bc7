//! MCP servers in a simulated world: what entries are taken, and that nobody waits for servers that
//! do not answer.

use std::fmt::Write as _;
use std::time::Duration;

use reasonix_core::model::Script;
use reasonix_core::time::Instant;
use reasonix_core::tools::External;
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::provider::{hang, say, tool};
use reasonix_tests::sim::{Entry, Sim, Told, config};
use reasonix_tests::world::{Command, World, http};

/// A world in which the program `dead` never says a word and addresses take connections only.
fn deaf() -> World {
    let mut world = World::with_files("/w", &[("a.txt", "alpha")]);
    world.commands = vec![Command {
        contains: "dead".into(),
        output: Vec::new(),
        takes: None,
        code: 0,
    }];
    world.answers = (0..64).map(|_| http(&hang([]))).collect();
    world.branches = vec![("go".into(), vec![http(&say("gone")), http(&say("gone"))])];
    world
}

/// Entries of servers, none of which ever answers, of all three kinds.
fn dead(count: usize) -> Vec<Value> {
    let one = |n: usize| match n % 3 {
        0 => json!({"name": format!("s{n}"), "command": "dead", "args": [], "env": []}),
        1 => {
            json!({"name": format!("s{n}"), "type": "http", "url": "http://dead.test/mcp", "headers": []})
        }
        _ => {
            json!({"name": format!("s{n}"), "type": "sse", "url": "http://dead.test/sse", "headers": []})
        }
    };
    (0..count).map(one).collect()
}

/// Where in the log something is wanted whose text holds this.
fn wanted(sim: &Sim, text: &str) -> Option<usize> {
    let is = |entry: &Entry| matches!(entry, Entry::Out(effect) if effect.contains(text));
    sim.log.iter().position(is)
}

#[test]
fn nobody_waits_for_servers_that_do_not_answer() {
    let mut sim = Sim::new(config(), deaf());
    sim.ask(&json::initialize(1));
    let params = json!({"cwd": "/w", "mcpServers": dead(30)});
    let opened = sim.ask(&json::request(2, "session/new", params));
    let session = opened["result"]["sessionId"]
        .as_str()
        .expect("opened")
        .to_string();
    sim.run_for(Duration::ZERO);

    // The answer goes out before the first of them is so much as started.
    let answer = wanted(&sim, &session).expect("it was answered");
    for begin in ["dead.test", "\"dead\""] {
        let started = wanted(&sim, begin).expect("they are started");
        assert!(answer < started, "{begin}: {answer} {started}");
    }
    assert_eq!(sim.world.running(), 30, "all at once");

    // A turn runs from its beginning to its end while they are connecting.
    let done = sim.ask(&json::prompt(3, &session, "go"));
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(json::said(&sim.frames, &session), "gone");
    // Those that say nothing at all are given the moment in which a good one says what it offers.
    let moment = config().limits.mcp_patience;
    assert_eq!(
        sim.now,
        Instant::ZERO.plus(moment),
        "no more was waited for"
    );
    assert!(moment <= Duration::from_millis(500));
    let again = sim.ask(&json::prompt(30, &session, "go"));
    assert_eq!(again["result"]["stopReason"], "end_turn", "{again}");
    assert_eq!(sim.now, Instant::ZERO.plus(moment), "not even once more");
    let said = sim.log.iter().any(|entry| {
        matches!(entry, Entry::In(_, Told::Call(_, say)) if format!("{say:?}").contains("dead"))
    });
    assert!(!said, "a server spoke");
    let status = |sim: &mut Sim, id: u64| -> Vec<String> {
        let params = json!({"sessionId": session});
        let answer = sim.ask(&json::request(id, "_reasonix.io/session/mcpStatus", params));
        let servers = answer["result"]["servers"].as_array().cloned();
        let text = |it: &Value| it["status"].as_str().unwrap_or_default().to_string();
        servers.unwrap_or_default().iter().map(text).collect()
    };
    assert_eq!(status(&mut sim, 4), vec!["connecting"; 30]);

    // Each has its own deadline, and then nothing of them is left.
    sim.run_for(Duration::from_secs(11));
    assert_eq!(status(&mut sim, 5), vec!["failed"; 30]);
    sim.run_for(Duration::from_secs(1));
    assert_eq!(sim.world.running(), 0);
    sim.finish();
    sim.laws.check();
}

/// All that a server says which changes without end: it has other tools and prompts each time, asks
/// the person something and takes it back. What it answers is what it will have been asked.
fn restless(times: usize) -> String {
    let mut said = String::new();
    let mut asked = 0;
    let mut answer = |said: &mut String, result: &str| {
        asked += 1;
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{asked}");
        writeln!(said, "{head},\"result\":{result}}}").expect("a string takes it");
    };
    let hello = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}}}"#;
    answer(&mut said, hello);
    for n in 0..times {
        if n > 0 {
            for kind in ["tools", "prompts"] {
                let method = format!("notifications/{kind}/list_changed");
                writeln!(said, r#"{{"jsonrpc":"2.0","method":"{method}"}}"#).expect("it takes it");
            }
        }
        answer(&mut said, &format!(r#"{{"tools":[{{"name":"t{n}"}}]}}"#));
        answer(&mut said, &format!(r#"{{"prompts":[{{"name":"p{n}"}}]}}"#));
        let form = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
        let params = format!(r#"{{"message":"m{n}","requestedSchema":{form}}}"#);
        writeln!(
            said,
            r#"{{"jsonrpc":"2.0","id":"q{n}","method":"elicitation/create","params":{params}}}"#
        )
        .expect("a string takes it");
        if n + 1 < times {
            let params = format!(r#"{{"requestId":"q{n}"}}"#);
            writeln!(
                said,
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#
            )
            .expect("a string takes it");
        }
    }
    said
}

#[test]
fn a_server_that_changes_without_end_fills_nothing_for_a_client_that_does_not_read() {
    const TIMES: usize = 10_000;
    let last = TIMES - 1;
    let mut world = deaf();
    world.commands.insert(
        0,
        Command {
            contains: "restless".into(),
            output: restless(TIMES).into_bytes(),
            takes: None,
            code: 0,
        },
    );
    let mut sim = Sim::new(config(), world);
    let wants = json!({"reasonix.io": {"statusUpdates": {"supported": true}}});
    let capabilities = json!({"elicitation": {"form": {}}, "_meta": wants});
    sim.ask(&json::initialize_with(1, capabilities));
    sim.reads = false;
    let server = json!({"name": "s", "command": "restless", "args": [], "env": []});
    let params = json!({"cwd": "/w", "mcpServers": [server]});
    let opened = sim.ask(&json::request(2, "session/new", params));
    let session = opened["result"]["sessionId"].as_str().expect("opened");
    let session = session.to_string();
    sim.run_for(Duration::from_secs(1));
    let limits = config().limits;
    let most = limits.quiet_output + 2 * limits.max_out_frame;
    assert!(
        sim.bytes.len() < most,
        "{} bytes for nobody",
        sim.bytes.len()
    );

    // It reads again: it is told how things stand now, and nothing of what was between.
    let from = sim.frames.len();
    sim.read_again();
    sim.run_for(Duration::ZERO);
    let heard = &sim.frames[from..];
    assert!(heard.len() < 10, "{} frames", heard.len());
    let told = |part: &str| heard.iter().any(|frame| frame.to_string().contains(part));
    assert!(told(&format!("mcp:s:p{last}")), "{heard:#?}");
    assert!(told(&format!("m{last}")), "{heard:#?}");
    assert!(told("\"status\":\"ready\""), "{heard:#?}");
    // And so does the model.
    sim.ask(&json::prompt(3, &session, "go"));
    let asked = sim.world.requests.last().expect("the model is asked");
    let body = String::from_utf8_lossy(&asked.body).into_owned();
    assert!(body.contains(&format!("s__t{last}")) && !body.contains("s__t0\""));
    sim.finish();
    sim.laws.check();
}

/// Whether the first request of the session lists the tool of its server, if servers are waited for this
/// long; the prompt comes right behind the answer that opened it.
fn is_listed_at_once(patience: Duration, scatter: u64) -> bool {
    let mut world = deaf().scattered(scatter);
    world.commands.insert(
        0,
        Command {
            contains: "good".into(),
            output: restless(1).into_bytes(),
            takes: None,
            code: 0,
        },
    );
    let mut config = config();
    config.limits.mcp_patience = patience;
    config.limits.mcp_listing = config.limits.mcp_listing.min(4 * patience);
    let mut sim = Sim::new(config, world);
    sim.ask(&json::initialize(1));
    let server = json!({"name": "s", "command": "good", "args": [], "env": []});
    let params = json!({"cwd": "/w", "mcpServers": [server]});
    let opened = sim.ask(&json::request(2, "session/new", params));
    let session = opened["result"]["sessionId"].as_str().expect("opened");
    let session = session.to_string();
    let done = sim.ask(&json::prompt(3, &session, "go"));
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    let from = Instant::ZERO.plus(patience);
    assert!(
        patience.is_zero() || sim.now < from,
        "all of it was waited for"
    );
    let listed = String::from_utf8_lossy(&sim.world.requests[0].body).contains("s__t0");
    sim.finish();
    sim.laws.check();
    listed
}

#[test]
fn the_first_request_of_a_turn_lists_what_a_server_offers_that_has_just_started() {
    let patience = config().limits.mcp_patience;
    let scatters: Vec<u64> = (1..20).map(|n| n * 7919).collect();
    for scatter in &scatters {
        assert!(is_listed_at_once(patience, *scatter), "{scatter}");
    }
    // It is the patience that does it.
    let without = |scatter: &&u64| !is_listed_at_once(Duration::ZERO, **scatter);
    assert!(scatters.iter().any(|it| without(&it)));
}

#[test]
fn a_turn_that_waits_for_a_server_is_cancelled_at_once_and_what_was_said_is_kept() {
    let mut sim = Sim::new(config(), deaf());
    sim.ask(&json::initialize(1));
    let params = json!({"cwd": "/w", "mcpServers": dead(1)});
    let opened = sim.ask(&json::request(2, "session/new", params));
    let session = opened["result"]["sessionId"].as_str().expect("opened");
    let session = session.to_string();
    sim.send(&json::prompt(3, &session, "first words"));
    sim.run_for(Duration::ZERO);
    assert!(
        sim.world
            .requests
            .iter()
            .all(|it| !it.url.contains("model.test"))
    );
    sim.send(&json::cancel(&session));
    let done = sim.answer(3);
    assert_eq!(done["result"]["stopReason"], "cancelled", "{done}");
    assert_eq!(sim.now, Instant::ZERO);
    // The server is as silent as before, and has had its moment by the end of this one.
    let done = sim.ask(&json::prompt(4, &session, "go"));
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    let asked = sim.world.requests.last().expect("the model is asked");
    let body = String::from_utf8_lossy(&asked.body).into_owned();
    assert!(body.contains("first words"), "{body}");
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_tool_of_the_embedder_is_its_own_whatever_a_server_is_called() {
    for (name, answer) in [("s__x", "no tool s__x"), ("s__t0", "did not answer")] {
        let mut world = deaf();
        // What it lists is `t0`, and then it says nothing more.
        let said = restless(1).replace(
            "[{\"name\":\"t0\"}]",
            "[{\"name\":\"t0\"},{\"name\":\"x\"}]",
        );
        world.commands.insert(
            0,
            Command {
                contains: "restless".into(),
                output: said.into_bytes(),
                takes: None,
                code: 0,
            },
        );
        let calls = vec![http(&tool("c", name, json!({}))), http(&say("over"))];
        world.branches = vec![("go".into(), calls)];
        let mut config = config();
        config.tools.push(External {
            name: "s__x".into(),
            description: "The embedder's".into(),
            parameters: "{\"type\":\"object\"}".into(),
        });
        let mut sim = Sim::new(config, world);
        sim.ask(&json::initialize(1));
        let server = json!({"name": "s", "command": "restless", "args": [], "env": []});
        let params = json!({"cwd": "/w", "mcpServers": [server]});
        let opened = sim.ask(&json::request(2, "session/new", params));
        let session = opened["result"]["sessionId"].as_str().expect("opened");
        let session = session.to_string();
        sim.run_for(Duration::ZERO);
        sim.send(&json::prompt(3, &session, "go"));
        // Longer than a server is waited for.
        sim.run_for(Duration::from_secs(600));
        let asked = sim.world.requests.last().expect("the model is asked");
        let body = String::from_utf8_lossy(&asked.body).into_owned();
        assert_eq!(
            body.matches("\"name\":\"s__x\",\"desc").count(),
            1,
            "{body}"
        );
        assert!(body.contains("The embedder's") && body.contains("s__t0"));
        assert!(body.contains(answer), "{name}: {body}");
        sim.finish();
        sim.laws.check();
    }
}

#[test]
fn how_many_servers_stand_fits_into_a_frame_whatever_their_names_and_errors_are() {
    let mut world = deaf();
    world.commands[0] = Command {
        contains: "dead".into(),
        output: Vec::new(),
        takes: Some(Duration::ZERO),
        code: 3,
    };
    let limits = config().limits;
    let mut sim = Sim::new(config(), world);
    let wants = json!({"reasonix.io": {"statusUpdates": {"supported": true}}});
    sim.ask(&json::initialize_with(1, json!({"_meta": wants})));
    // Names that JSON makes twice as long.
    let server = |n: usize| {
        let name = format!("{n:03}{}", "\"".repeat(90));
        json!({"name": name, "command": "dead", "args": [], "env": []})
    };
    for count in [20, limits.max_mcp_servers] {
        let servers: Vec<Value> = (0..count).map(server).collect();
        let params = json!({"cwd": "/w", "mcpServers": servers});
        let opened = sim.ask(&json::request(count as u64, "session/new", params));
        let session = opened["result"]["sessionId"].as_str().expect("opened");
        let session = session.to_string();
        sim.run_for(Duration::from_secs(60));
        let params = json!({"sessionId": session});
        let id = 1000 + count as u64;
        let answer = sim.ask(&json::request(id, "_reasonix.io/session/mcpStatus", params));
        let listed = answer["result"]["servers"].as_array().expect("a list");
        assert_eq!(listed.len(), count);
        if count == 20 {
            let why = listed[19]["error"].as_str().expect("a reason");
            assert!(why.contains("exit code 3"), "{why}");
        }
        let most = sim.frames.iter().map(|frame| frame.to_string().len()).max();
        assert!(most <= Some(limits.max_out_frame), "{most:?} bytes");
    }
    sim.finish();
    sim.laws.check();
}

/// An entry, and whether it is taken.
const ENTRIES: &[(&str, bool)] = &[
    (r#"{"name":"a","command":"dead","args":[],"env":[]}"#, true),
    (r#"{"name":"a","command":"dead"}"#, true),
    (
        r#"{"name":"a","type":"stdio","command":"dead","args":null,"env":null}"#,
        true,
    ),
    (
        r#"{"name":" a ","type":"STDIO","command":"dead","args":["x"],"env":{"A":"$S"}}"#,
        true,
    ),
    (
        r#"{"name":"a","command":"dead","env":[{"name":"A","value":"$S"}]}"#,
        true,
    ),
    (
        r#"{"name":"a","command":"dead","env":[{"name":"A","value":""}],"_meta":{"x":1},"more":2}"#,
        true,
    ),
    (
        r#"{"name":"a","type":"http","url":"http://dead.test","headers":[]}"#,
        true,
    ),
    (
        r#"{"name":"a","type":"HTTP","url":"http://dead.test"}"#,
        true,
    ),
    (
        r#"{"name":"a","type":"streamable-http","url":"https://dead.test/x","headers":{"A":"$S"}}"#,
        true,
    ),
    (
        r#"{"name":"a","type":"Streamable_HTTP","url":"http://dead.test","headers":null}"#,
        true,
    ),
    (
        r#"{"name":"a","type":"sse","url":"http://dead.test","headers":[{"name":"A","value":"$S"}]}"#,
        true,
    ),
    (
        r#"{"name":"a","type":"Sse","url":"http://$S@dead.test/?key=$S","headers":{}}"#,
        true,
    ),
    ("7", false),
    ("null", false),
    ("[]", false),
    ("{}", false),
    (r#"{"name":"a"}"#, false),
    (r#"{"command":"dead"}"#, false),
    (r#"{"name":null,"command":"dead"}"#, false),
    (r#"{"name":7,"command":"dead"}"#, false),
    (r#"{"name":" ","command":"dead"}"#, false),
    (r#"{"name":"a","command":null}"#, false),
    (r#"{"name":"a","command":""}"#, false),
    (r#"{"name":"a","command":"dead","args":"$S"}"#, false),
    (r#"{"name":"a","command":"dead","args":[7]}"#, false),
    (r#"{"name":"a","command":"dead","args":["\u0000"]}"#, false),
    (r#"{"name":"a","command":"dead","env":"A=$S"}"#, false),
    (r#"{"name":"a","command":"dead","env":{"A":7}}"#, false),
    (r#"{"name":"a","command":"dead","env":{"":"$S"}}"#, false),
    (r#"{"name":"a","command":"dead","env":{"A=B":"$S"}}"#, false),
    (r#"{"name":"a","command":"dead","env":["$S"]}"#, false),
    (
        r#"{"name":"a","command":"dead","env":[{"name":"A"}]}"#,
        false,
    ),
    (
        r#"{"name":"a","command":"dead","env":[{"value":"$S"}]}"#,
        false,
    ),
    (
        r#"{"name":"a","command":"dead","env":[{"name":" ","value":"$S"}]}"#,
        false,
    ),
    (r#"{"name":"a","type":7,"command":"dead"}"#, false),
    (
        r#"{"name":"a","type":"quic","url":"http://dead.test"}"#,
        false,
    ),
    (r#"{"name":"a","type":"http","command":"dead"}"#, false),
    (r#"{"name":"a","type":"http","url":""}"#, false),
    (r#"{"name":"a","type":"http","url":"/mcp?$S"}"#, false),
    (r#"{"name":"a","type":"sse","url":"file:///$S"}"#, false),
    (
        r#"{"name":"a","type":"http","url":"http://dead.test","headers":"A: $S"}"#,
        false,
    ),
    (
        r#"{"name":"a","type":"http","url":"http://dead.test","headers":{"A":null}}"#,
        false,
    ),
    (
        r#"{"name":"a","type":"http","url":"http://dead.test","headers":{"A B":"$S"}}"#,
        false,
    ),
    (
        r#"{"name":"a","type":"http","url":"http://dead.test","headers":{"A":"$S\r\nB: 1"}}"#,
        false,
    ),
    (
        r#"{"name":"a","type":"http","url":"http://dead.test","headers":[{"name":"","value":"$S"}]}"#,
        false,
    ),
    (
        r#"{"name":"a","type":"http","url":"http://dead.test","headers":{"Mcp-Session-Id":"$S"}}"#,
        false,
    ),
];

/// What no answer may hold.
const SECRET: &str = "s3cret-0123456789";

#[test]
fn every_spelling_is_taken_and_everything_malformed_refused_as_a_whole() {
    // Under a name of its own.
    let good = ENTRIES[0].0.replacen("\"a\"", "\"before\"", 1);
    for method in ["session/new", "session/load", "session/resume"] {
        let mut config = config();
        config.ephemeral = false;
        config.script = Some(Script::parse("{\"text\":\"k\"}\n").expect("a script"));
        let mut sim = Sim::new(config, deaf());
        let stored = sim.open(json!({}), "/w");
        sim.ask(&json::prompt(1, &stored, "x"));
        let mut id = 10;
        let mut close = |sim: &mut Sim, session: &Value| {
            id += 1;
            let params = json!({"sessionId": session});
            let closed = sim.ask(&json::request(10_000 + id, "session/close", params));
            assert_eq!(closed["result"], json!({}), "{closed}");
        };
        close(&mut sim, &json!(stored));
        for (at, (entry, taken)) in (100..).zip(ENTRIES) {
            // Alone, and behind one that is good.
            for (more, before) in [String::new(), format!("{good},")].iter().enumerate() {
                let servers = format!("[{before}{entry}]").replace("$S", SECRET);
                let servers: Value = serde_json::from_str(&servers).expect("JSON");
                let mut params = json!({"cwd": "/w", "mcpServers": servers});
                if method != "session/new" {
                    params["sessionId"] = json!(stored);
                }
                let ran = (sim.world.ran.len(), sim.world.requests.len());
                let answer = sim.ask(&json::request(at * 2 + more, method, params));
                sim.run_for(Duration::ZERO);
                let started = (sim.world.ran.len(), sim.world.requests.len()) != ran;
                assert_eq!(started, *taken, "{method} {entry}: {answer}");
                assert!(!answer.to_string().contains(SECRET), "{method}: {answer}");
                if *taken {
                    let session = match method {
                        "session/new" => answer["result"]["sessionId"].clone(),
                        _ => json!(stored),
                    };
                    assert!(answer.get("result").is_some(), "{method} {entry}: {answer}");
                    close(&mut sim, &session);
                } else {
                    assert_eq!(
                        answer["error"]["code"], -32602,
                        "{method} {entry}: {answer}"
                    );
                    // Who has many can find it.
                    let message = answer["error"]["message"].as_str().unwrap_or_default();
                    let which = format!("mcpServers[{more}]: ");
                    assert!(message.contains(&which), "{method} {entry}: {answer}");
                    assert!(!message.contains("struct"), "{method} {entry}: {answer}");
                }
            }
        }
        sim.finish();
        sim.laws.check();
    }
}
