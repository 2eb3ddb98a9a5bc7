//! What the model reads of the web: whole agents in a simulated world, and both programs with a
//! server of their own.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, TcpListener};
use std::time::Duration;

use reasonix_core::agent::Config;
use reasonix_core::call::Opened;
use reasonix_core::permission::PermissionMode;
use reasonix_core::reach::Reach;
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};
use reasonix_tests::provider::{Answer, Step, say, tool};
use reasonix_tests::sim::{Card, Sim, config};
use reasonix_tests::world::{Piece, Say, World, at_once, http};

fn moved(to: &str) -> Vec<Piece> {
    let head = Opened {
        status: 302,
        headers: vec![("location".into(), to.into())],
    };
    let mut pieces = vec![at_once(Say::Opened(head))];
    pieces.extend(http(&Answer::plain(302, "", "")).into_iter().skip(1));
    pieces
}

fn free() -> Config {
    let mut config = config();
    config.permission_mode = PermissionMode::parse("bypassPermissions").expect("a mode");
    config
}

/// A turn in which the model fetches `url`; what it was told, and the agent afterwards.
#[track_caller]
fn fetch(config: Config, mut world: World, url: &str, card: &'static str) -> (String, Sim) {
    let call = http(&tool("c1", "web_fetch", json!({"url": url})));
    world.answers = [call, http(&say("k"))].into();
    let mut sim = Sim::new(config, world);
    sim.cards = vec![Card::Choose(card)];
    let session = sim.open(json!({}), "/w");
    let answer = sim.ask(&json::prompt(5, &session, "go"));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let last = sim.world.requests.last().expect("the model was asked");
    let body: Value = serde_json::from_slice(&last.body).expect("it is JSON");
    let messages = body["messages"].as_array().expect("messages");
    let told = messages
        .iter()
        .rfind(|message| message["role"] == "tool")
        .expect("the model was told");
    let text = told["content"].as_str().unwrap_or_default().to_string();
    sim.laws.check();
    (text, sim)
}

fn world(pages: Vec<(&str, Vec<Piece>)>) -> World {
    let mut world = World::with_files("/w", &[]);
    let pages = pages.into_iter().map(|(url, page)| (url.to_string(), page));
    world.pages = pages.collect();
    let inside: IpAddr = [10, 0, 0, 7].into();
    world.hosts.insert("inside.test".into(), inside);
    let metadata: IpAddr = [169, 254, 169, 254].into();
    world.hosts.insert("metadata.test".into(), metadata);
    world
}

fn page(text: &str) -> Vec<Piece> {
    http(&Answer::plain(200, "text/html", text))
}

/// Requests to the web that were made.
fn asked(sim: &Sim) -> Vec<&str> {
    let requests = sim.world.requests.iter();
    requests
        .filter(|request| request.reach != Reach::Anywhere)
        .map(|request| request.url.as_str())
        .collect()
}

fn cards(sim: &Sim) -> Vec<&Value> {
    let asked = |frame: &&Value| frame["method"] == "session/request_permission";
    sim.frames.iter().filter(asked).collect()
}

#[test]
fn a_page_is_read_when_the_person_allows_it_and_never_for_good() {
    let pages = || world(vec![("http://a.test/", page("<h1>Head</h1><p>text"))]);
    let (told, sim) = fetch(config(), pages(), "http://a.test/", "allow_once");
    assert!(told.ends_with("# Head\n\ntext"), "{told}");
    let [card] = &cards(&sim)[..] else {
        panic!("one card");
    };
    let call = &card["params"]["toolCall"];
    assert_eq!(call["kind"], "fetch");
    assert_eq!(call["title"], "web_fetch http://a.test/");
    let options = card["params"]["options"].as_array().expect("options");
    let kinds: Vec<_> = options
        .iter()
        .filter_map(|it| it["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["allow_once", "reject_once"]);
    let (told, sim) = fetch(config(), pages(), "http://a.test/", "reject_once");
    assert!(told.contains("Not allowed"), "{told}");
    assert!(asked(&sim).is_empty());
}

#[test]
fn the_posture_and_the_rules_decide_as_about_everything() {
    for (mode, allow, deny, reads) in [
        ("read-only", &[][..], &[][..], false),
        ("read-only", &["WebFetch"], &[], false),
        ("dontAsk", &[], &[], false),
        ("dontAsk", &["WebFetch(domain:a.test)"], &[], true),
        ("dontAsk", &["WebFetch(domain:b.test)"], &[], false),
        ("auto", &[], &[], true),
        (
            "bypassPermissions",
            &[],
            &["WebFetch(domain:a.test)"],
            false,
        ),
        ("bypassPermissions", &[], &["WebFetch(domain:b.test)"], true),
    ] {
        let mut config = config();
        config.permission_mode = PermissionMode::parse(mode).expect("a mode");
        let list = |rules: &[&str]| rules.iter().map(|rule| (*rule).into()).collect();
        config.settings.permissions.allow = list(allow);
        config.settings.permissions.deny = list(deny);
        let world = world(vec![("http://a.test/", page("text"))]);
        let (told, sim) = fetch(config, world, "http://a.test/", "reject_once");
        assert_eq!(
            told.ends_with("text"),
            reads,
            "{mode} {allow:?} {deny:?}: {told}"
        );
        assert_eq!(asked(&sim).is_empty(), !reads);
        assert!(cards(&sim).is_empty(), "{mode}");
    }
}

#[test]
fn nothing_leads_to_a_private_address() {
    let pages = vec![
        ("http://a.test/1", moved("http://127.0.0.1/")),
        ("http://a.test/2", moved("http://inside.test/")),
        ("http://a.test/3", moved("http://metadata.test/keys")),
        ("http://a.test/4", moved("//a.test/5")),
        ("http://a.test/5", moved("http://[::1]:80/")),
        ("http://127.0.0.1/", page("secret")),
        ("http://[::1]:80/", page("secret")),
        ("http://inside.test/", page("secret")),
        ("http://metadata.test/keys", page("secret")),
    ];
    for url in [
        "http://127.0.0.1/",
        "http://inside.test/",
        "http://metadata.test/keys",
        "http://a.test/1",
        "http://a.test/2",
        "http://a.test/3",
        "http://a.test/4",
    ] {
        let (told, _) = fetch(free(), world(pages.clone()), url, "allow_once");
        assert!(!told.contains("secret"), "{url}: {told}");
    }
    // With the person's leave, but never what tells keys to whoever asks.
    let mut open = free();
    open.settings.web_private = true;
    let (told, _) = fetch(
        open.clone(),
        world(pages.clone()),
        "http://a.test/2",
        "allow_once",
    );
    assert!(told.contains("secret"), "{told}");
    let (told, _) = fetch(open, world(pages), "http://a.test/3", "allow_once");
    assert!(!told.contains("secret"), "{told}");
}

#[test]
fn another_host_is_another_question() {
    let pages = || {
        world(vec![
            ("http://a.test/", moved("http://a.test/2")),
            ("http://a.test/2", moved("http://b.test/")),
            ("http://b.test/", page("there")),
        ])
    };
    let (told, sim) = fetch(config(), pages(), "http://a.test/", "allow_once");
    assert!(told.ends_with("there"), "{told}");
    let titles: Vec<_> = cards(&sim)
        .iter()
        .map(|card| card["params"]["toolCall"]["title"].clone())
        .collect();
    assert_eq!(
        titles,
        ["web_fetch http://a.test/", "web_fetch http://b.test/"]
    );
    let mut config = free();
    let rule = "WebFetch(domain:b.test)";
    config.settings.permissions.deny.push(rule.into());
    let (told, sim) = fetch(config, pages(), "http://a.test/", "allow_once");
    assert!(told.contains(rule), "{told}");
    assert_eq!(asked(&sim), ["http://a.test/", "http://a.test/2"]);
}

#[test]
fn what_has_no_end_in_bytes_or_in_time_is_left() {
    let huge = http(&Answer::plain(200, "text/plain", &"x".repeat(20 << 20)));
    let drip = Answer {
        status: 200,
        kind: "text/plain",
        steps: (0..1000)
            .flat_map(|_| {
                [
                    Step::Pause(Duration::from_secs(1)),
                    Step::Bytes(b"y".to_vec()),
                ]
            })
            .collect(),
    };
    let silent = Answer {
        status: 200,
        kind: "text/plain",
        steps: vec![Step::Hang],
    };
    let pages = vec![
        ("http://a.test/huge", huge),
        ("http://a.test/drip", http(&drip)),
        ("http://a.test/silent", http(&silent)),
    ];
    let (told, sim) = fetch(free(), world(pages.clone()), "http://a.test/huge", "");
    assert!(told.contains("the rest was not read"), "{}", &told[..200]);
    assert!(told.len() <= 64 << 10, "{}", told.len());
    assert_eq!(sim.world.running(), 0);
    for url in ["http://a.test/drip", "http://a.test/silent"] {
        let (told, sim) = fetch(free(), world(pages.clone()), url, "");
        assert!(told.contains("within 30 s"), "{told}");
        assert_eq!(sim.world.running(), 0);
        assert!(sim.now < reasonix_core::time::Instant::since_start(Duration::from_secs(40)));
    }
}

#[test]
fn a_cancel_ends_a_fetch_at_once() {
    let silent = Answer {
        status: 200,
        kind: "text/plain",
        steps: vec![Step::Hang],
    };
    let mut world = world(vec![("http://a.test/", http(&silent))]);
    let call = http(&tool("c1", "web_fetch", json!({"url": "http://a.test/"})));
    world.answers = [call].into();
    let mut sim = Sim::new(free(), world);
    let session = sim.open(json!({}), "/w");
    sim.send(&json::prompt(5, &session, "go"));
    sim.until("the page is asked for", |sim| sim.world.requests.len() == 2);
    let before = sim.now;
    sim.send(&json::cancel(&session));
    let answer = sim.answer(5);
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    assert!(sim.now.since(before) < Duration::from_secs(2));
    assert_eq!(sim.world.running(), 0);
    sim.laws.check();
}

#[test]
fn without_the_web_there_is_no_tool_and_no_request() {
    for web in [true, false] {
        let mut config = free();
        config.web = web;
        let world = world(vec![("http://a.test/", page("text"))]);
        let (told, mut sim) = fetch(config, world, "http://a.test/", "allow_once");
        assert_eq!(told.ends_with("text"), web, "{told}");
        assert_eq!(asked(&sim).is_empty(), !web);
        let first: Value = serde_json::from_slice(&sim.world.requests[0].body).expect("JSON");
        let tools = first["tools"].as_array().expect("tools");
        let offered = tools
            .iter()
            .any(|tool| tool["function"]["name"] == "web_fetch");
        assert_eq!(offered, web);
        let session = sim.open_another(7, "/w");
        sim.ask(&json::prompt(8, &session, "/status"));
        let said = json::said(&sim.frames, &session);
        assert_eq!(said.contains("--web off"), !web, "{said}");
    }
}

/// A server that gives `/page` and leads from `/moved` to it; it counts who connects.
fn server() -> (String, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let came = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counts = came.clone();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            counts.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                loop {
                    let mut first = String::new();
                    if reader.read_line(&mut first).unwrap_or(0) == 0 {
                        return;
                    }
                    let mut line = String::new();
                    while reader.read_line(&mut line).unwrap_or(0) > 2 {
                        line.clear();
                    }
                    let answer = if first.starts_with("GET /page ") {
                        let body = "<title>T</title><p>real &amp; local";
                        format!(
                            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}",
                            body.len()
                        )
                    } else {
                        "HTTP/1.1 302 Found\r\nLocation: page\r\nContent-Length: 0\r\n\r\n".into()
                    };
                    if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, came)
}

#[test]
fn both_programs_read_a_real_page_and_keep_away_from_this_machine_unless_told() {
    for program in PROGRAMS {
        for private in [false, true] {
            let (url, came) = server();
            let place = Place::new();
            // A name, so that only the look-up shows where it leads.
            let url = url.replace("127.0.0.1", "127.1");
            let call = json!({"tool": "web_fetch", "args": {"url": format!("{url}/moved")}});
            let lines = format!(
                "{call}\n{{\"finish\":\"tool_calls\"}}\n{{\"text\":\"k\"}}\n{{\"finish\":\"stop\"}}\n"
            );
            if private {
                let text = "[web]\nallow_private = true\n";
                std::fs::write(place.home().join("config.toml"), text).expect("written");
            }
            let model = format!("script:{}", place.script(&lines).display());
            let flags = ["--model", &model, "--permission-mode", "bypassPermissions"];
            let mut agent = Running::start(program, &place, &flags);
            let session = agent.open(json!({}), &place.work());
            agent.ask(&json::prompt(1, &session, "go"));
            let ends = json::tool_ends(&agent.frames, &session);
            let shown = format!("{:?}", agent.frames);
            let connected = came.load(std::sync::atomic::Ordering::SeqCst);
            if private {
                assert_eq!(ends, ["completed"], "{shown}");
                assert!(shown.contains("real & local"), "{shown}");
                assert!(connected > 0);
            } else {
                assert_eq!(ends, ["failed"], "{shown}");
                assert_eq!(connected, 0, "{program} connected");
            }
            let (ended, laws) = agent.finish();
            laws.check();
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
    }
}
