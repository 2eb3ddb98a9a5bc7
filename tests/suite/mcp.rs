//! Both programs and an MCP server that misbehaves: whatever it does, a turn ends, the card of its
//! tool says what came of it, the session lives on, memory is bounded and no process is left.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reasonix_tests::json::{self, Value, json};
use reasonix_tests::mcp::Web;
use reasonix_tests::process::{PLANTED, PROGRAMS, Place, Running};

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Stdio,
    /// As a program that does not hear signals.
    Hard,
    Http,
    Sse,
}

use Way::{Hard, Http, Sse, Stdio};

/// What comes of one call of its tool `echo`: the status of the card and what its text holds.
type Comes = (&'static str, &'static str);

/// One misbehaviour.
struct Case {
    /// What is protected.
    name: &'static str,
    way: Way,
    manners: &'static str,
    /// A turn with one call each.
    comes: &'static [Comes],
    /// What `session/mcpStatus` says in the end: a status, and what its error holds.
    status: Comes,
}

const fn case(
    name: &'static str,
    way: Way,
    manners: &'static str,
    comes: &'static [Comes],
    status: Comes,
) -> Case {
    Case {
        name,
        way,
        manners,
        comes,
        status,
    }
}

const READY: Comes = ("ready", "");
const ECHOED: Comes = ("completed", "héllo");

/// A word that is on the command line of one server and its children, and nowhere else.
fn mark() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("mark-{}-{next}", std::process::id())
}

/// An agent with one server `srv`.
struct Run {
    agent: Running,
    /// Looked through for keys when it is dropped, behind the agent.
    place: Place,
    web: Option<Web>,
    session: String,
    mark: String,
    last: u64,
}

/// The entry of a server in `session/new`, and the server if it is not a program.
fn entry(way: Way, manners: &[String]) -> (Value, Option<Web>) {
    let program = env!("CARGO_BIN_EXE_mcp-server");
    let words = || ["stdio".into()].into_iter().chain(manners.iter().cloned());
    match way {
        Stdio => {
            let args: Vec<String> = words().collect();
            (
                json!({"name": "srv", "command": program, "args": args, "env": []}),
                None,
            )
        }
        Hard => {
            let line = "trap '' TERM HUP INT; exec \"$@\"";
            let shell = ["-c", line, "sh", program].map(String::from);
            let args: Vec<String> = shell.into_iter().chain(words()).collect();
            (
                json!({"name": "srv", "command": "sh", "args": args, "env": []}),
                None,
            )
        }
        Http | Sse => {
            let mut manners = manners.to_vec();
            let kind = match way == Sse {
                true => {
                    manners.push("legacy".into());
                    "sse"
                }
                false => "http",
            };
            let web = Web::start(&manners);
            let entry = json!({"type": kind, "name": "srv", "url": web.url(), "headers": []});
            (entry, Some(web))
        }
    }
}

/// A script in which each turn calls a tool once and says `done`.
fn script(tools: &[&str]) -> String {
    let mut lines = String::new();
    for tool in tools {
        lines += &format!("{}\n", json!({"tool": tool, "args": {"text": "héllo"}}));
        lines += "{\"finish\":\"tool_calls\"}\n{\"text\":\"done\"}\n{\"finish\":\"stop\"}\n";
    }
    lines
}

impl Run {
    fn start(program: &str, way: Way, manners: &str, script: &str) -> Self {
        let mark = mark();
        let words = manners.split_whitespace().chain([mark.as_str()]);
        let words: Vec<String> = words.map(String::from).collect();
        let (entry, web) = entry(way, &words);
        let run = Self::with(program, &entry, script, json!({}), &[]);
        Self { web, mark, ..run }
    }

    fn with(
        program: &str,
        entry: &Value,
        script: &str,
        capabilities: Value,
        flags: &[&str],
    ) -> Self {
        let place = Place::new();
        let model = format!("script:{}", place.script(script).display());
        let flags = [&["--model", &model], flags].concat();
        let mut agent = Running::start(program, &place, &flags);
        agent.ask(&json::initialize_with(1, capabilities));
        let cwd = place.work().display().to_string();
        let params = json!({"cwd": cwd, "mcpServers": [entry]});
        let opened = agent.ask(&json::request(2, "session/new", params));
        let session = opened["result"]["sessionId"].as_str();
        let session = session.unwrap_or_else(|| panic!("{opened}")).into();
        Self {
            agent,
            place,
            web: None,
            session,
            mark: mark(),
            last: 10,
        }
    }

    fn prompt(&mut self) -> u64 {
        self.last += 1;
        self.agent
            .send(&json::prompt(self.last, &self.session, "go"));
        self.last
    }

    /// One turn; gives the card of the tool that it called, as it ended.
    fn turn(&mut self) -> (String, String) {
        let from = self.agent.frames.len();
        let id = self.prompt();
        let answer = self.agent.answer(id);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        card(&self.agent.frames[from..])
    }

    /// How the server stands: its status and error.
    fn status(&mut self) -> (String, String) {
        self.last += 1;
        let params = json!({"sessionId": self.session});
        let method = "_reasonix.io/session/mcpStatus";
        let answer = self.agent.ask(&json::request(self.last, method, params));
        let server = &answer["result"]["servers"][0];
        let text = |name: &str| server[name].as_str().unwrap_or_default().to_string();
        (text("status"), text("error"))
    }

    /// Waits till the server is up.
    fn ready(&mut self) {
        let end = Instant::now() + Duration::from_secs(20);
        while self.status().0 != "ready" {
            assert!(Instant::now() < end, "it does not become ready");
            // Waits for a process, not for an order of events.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the agent; nobody is left behind, and it did not grow without bound.
    fn end(self, name: &str) -> Option<Web> {
        let peak = peak(self.agent.pid());
        let (ended, laws) = self.agent.finish();
        laws.check();
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        assert!(!ended.errors.contains("panicked"), "{name}: {ended:?}");
        assert!(ended.took < Duration::from_secs(5), "{name}: {ended:?}");
        assert!(peak < 200 << 10, "{name}: {peak} KiB");
        let end = Instant::now() + Duration::from_secs(5);
        while !left(&self.mark).is_empty() {
            assert!(Instant::now() < end, "{name}: left: {:?}", left(&self.mark));
            // Waits for processes, not for an order of events.
            std::thread::sleep(Duration::from_millis(5));
        }
        self.web
    }
}

/// The last status of the only tool call in these frames, and all text of its card.
fn card(frames: &[Value]) -> (String, String) {
    let (mut status, mut text) = (String::new(), String::new());
    for update in frames.iter().filter_map(|frame| json::update(frame, "")) {
        if update.get("toolCallId").is_some() {
            if let Some(now) = update["status"].as_str() {
                status = now.into();
            }
            for part in update["content"].as_array().into_iter().flatten() {
                text += part["content"]["text"].as_str().unwrap_or_default();
            }
        }
    }
    (status, text)
}

/// Peak memory of a process, KiB; 0 where that cannot be known.
fn peak(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The processes with this word on their command line; none where that cannot be known.
fn left(mark: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = all.filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(mark)).collect()
}

#[track_caller]
fn fits(name: &str, what: &str, found: &(String, String), expected: Comes) {
    let short = |text: &str| text.chars().take(2000).collect::<String>();
    assert!(
        found.0 == expected.0 && found.1.contains(expected.1),
        "{name}: {what} is {} {:?}, not {expected:?}",
        found.0,
        short(&found.1)
    );
}

fn check_one(program: &str, case: &Case) {
    let name = format!("{} ({program})", case.name);
    let tools = vec!["srv__echo"; case.comes.len()];
    let script = script(&tools) + "{\"text\":\"still here\"}\n{\"finish\":\"stop\"}\n";
    let mut run = Run::start(program, case.way, case.manners, &script);
    for (at, comes) in case.comes.iter().enumerate() {
        let found = run.turn();
        fits(&name, &format!("call {at}"), &found, *comes);
    }
    let status = run.status();
    fits(&name, "its status", &status, case.status);
    let from = run.agent.frames.len();
    run.turn();
    let said = json::said(&run.agent.frames[from..], "");
    assert_eq!(said, "still here", "{name}");
    run.end(&name);
}

/// Runs the cases, each against both programs; all at once, since most of them wait.
fn check(cases: &[Case]) {
    std::thread::scope(|scope| {
        for case in cases {
            for program in PROGRAMS {
                scope.spawn(move || check_one(program, case));
            }
        }
    });
}

#[test]
fn servers_that_say_too_much_are_heard_out() {
    check(&[
        case("a good one", Stdio, "", &[ECHOED, ECHOED], READY),
        case("noise on stdout", Stdio, "noise", &[ECHOED], READY),
        case(
            "a flood on stderr",
            Stdio,
            "flood",
            &[ECHOED, ECHOED],
            READY,
        ),
        case(
            "line ends of another system",
            Stdio,
            "loose",
            &[ECHOED],
            READY,
        ),
        case("every byte by itself", Stdio, "drips", &[ECHOED], READY),
        case(
            "answers given twice",
            Stdio,
            "twice",
            &[ECHOED, ECHOED],
            READY,
        ),
        case("a cursor that repeats", Stdio, "cursors", &[ECHOED], READY),
        case("names no model may say", Stdio, "names", &[ECHOED], READY),
        case("500 tools", Stdio, "many", &[ECHOED], READY),
        case(
            "a tool that fails",
            Stdio,
            "fails",
            &[("failed", "disk full"), ("failed", "disk full")],
            READY,
        ),
        case(
            "a list that never rests",
            Stdio,
            "restless",
            &[ECHOED],
            READY,
        ),
    ]);
}

#[test]
fn answers_that_are_too_long_end_their_call_and_nothing_else() {
    const TOO_LONG: Comes = ("failed", "longer than is taken");
    check(&[
        case("64 MiB in one line", Stdio, "huge", &[TOO_LONG], READY),
        case("64 MiB as JSON", Http, "huge", &[TOO_LONG], READY),
        case(
            "64 MiB as an event",
            Http,
            "huge events",
            &[TOO_LONG],
            READY,
        ),
        case(
            "4 MiB, cut for the card",
            Stdio,
            "long",
            &[("completed", "llll")],
            READY,
        ),
    ]);
}

#[test]
fn a_server_that_ends_says_why_and_is_started_again() {
    const LOST: Comes = ("failed", "it may have taken effect");
    check(&[
        case(
            "it ends before it is up",
            Stdio,
            "dies",
            &[(
                "failed",
                "exit code 3; its last words: cannot open its database",
            )],
            ("failed", "cannot open its database"),
        ),
        case(
            "it ends in mid call",
            Stdio,
            "exits",
            &[LOST, ("failed", "exit code 7; its last words: out of luck")],
            ("idle", "out of luck"),
        ),
        case(
            "its child holds its outputs",
            Stdio,
            "exits family",
            &[LOST],
            ("idle", "out of luck"),
        ),
        case(
            "it stays, with a child, until it is made to go",
            Hard,
            "stays family",
            &[ECHOED],
            READY,
        ),
        case(
            "it refuses the handshake",
            Stdio,
            "confesses",
            &[("failed", "it refused")],
            ("failed", "it refused"),
        ),
        case(
            "nobody knows its version",
            Stdio,
            "old",
            &[("failed", "version 1999-01-01")],
            ("failed", "1999-01-01"),
        ),
    ]);
}

#[test]
fn servers_at_an_address_are_taken_as_they_are() {
    const MOVED: Comes = (
        "failed",
        "HTTP 307 (a redirect; its address is not followed)",
    );
    check(&[
        case("JSON", Http, "", &[ECHOED, ECHOED], READY),
        case("events", Http, "events", &[ECHOED, ECHOED], READY),
        case(
            "chunks that end inside a character",
            Http,
            "split",
            &[ECHOED],
            READY,
        ),
        case(
            "an answer that breaks off inside a character",
            Http,
            "cuts",
            &[ECHOED],
            READY,
        ),
        case("every byte by itself", Http, "drips", &[ECHOED], READY),
        case("too busy once", Http, "busy", &[ECHOED], READY),
        case(
            "too busy for ever",
            Http,
            "swamped",
            &[("failed", "HTTP 429")],
            READY,
        ),
        case(
            "a session forgotten once",
            Http,
            "expires",
            &[ECHOED, ECHOED],
            READY,
        ),
        case(
            "every session forgotten",
            Http,
            "forgets",
            &[("failed", "it does not know the session it just began")],
            READY,
        ),
        case(
            "no credentials",
            Http,
            "401",
            &[("failed", "HTTP 401")],
            ("failed", "credentials"),
        ),
        case(
            "not allowed",
            Http,
            "403",
            &[("failed", "HTTP 403")],
            ("failed", "not allowed"),
        ),
        case(
            "nothing there",
            Http,
            "404",
            &[("failed", "HTTP 404")],
            ("failed", "nothing is"),
        ),
        case(
            "a fault of its own",
            Http,
            "500",
            &[("failed", "HTTP 500")],
            ("failed", "HTTP 500"),
        ),
        case(
            "a redirect",
            Http,
            "redirects",
            &[MOVED],
            ("failed", "redirect"),
        ),
        case(
            "a page for people",
            Http,
            "html",
            &[(
                "failed",
                "text/html, where application/json or text/event-stream was expected",
            )],
            ("failed", "text/html"),
        ),
        case(
            "connections closed at once",
            Http,
            "slams",
            &[("failed", "srv")],
            ("failed", ""),
        ),
        case(
            "no answer to the goodbye",
            Http,
            "no-goodbye",
            &[ECHOED],
            READY,
        ),
        case("the older transport", Sse, "", &[ECHOED, ECHOED], READY),
        case(
            "its chunks end inside a character",
            Sse,
            "split",
            &[ECHOED],
            READY,
        ),
        case(
            "its stream ends in mid call",
            Sse,
            "gone",
            &[("failed", "its stream of events ended"), ("failed", "")],
            ("idle", "ended"),
        ),
        case(
            "it posts elsewhere",
            Sse,
            "abroad",
            &[("failed", "another host")],
            ("failed", ""),
        ),
        case(
            "no credentials, older",
            Sse,
            "401",
            &[("failed", "HTTP 401")],
            ("failed", ""),
        ),
    ]);
}

#[test]
fn servers_that_never_answer_are_given_up() {
    const LATE: Comes = ("failed", "was not ready within 10 s");
    check(&[
        case("a program", Stdio, "deaf", &[LATE], LATE),
        case(
            "one that must be made to go",
            Hard,
            "deaf stays",
            &[LATE],
            LATE,
        ),
        case("an address", Http, "hangs", &[LATE], LATE),
        case("an older address", Sse, "hangs", &[LATE], LATE),
    ]);
}

#[test]
fn a_cancel_reaches_a_server_that_never_answers_and_leaves_it_alive() {
    for program in PROGRAMS {
        for (way, manners) in [(Stdio, "silent"), (Http, "silent events"), (Sse, "silent")] {
            let name = format!("{program}, {way:?}");
            let script = script(&["srv__echo"]) + "{\"text\":\"still here\"}\n";
            let mut run = Run::start(program, way, manners, &script);
            run.ready();
            let id = run.prompt();
            run.agent.until("the call is under way", |frame| {
                json::update(frame, "").is_some_and(|update| update["status"] == "in_progress")
            });
            let from = Instant::now();
            run.agent.send(&json::cancel(&run.session));
            let answer = run.agent.answer(id);
            assert_eq!(
                answer["result"]["stopReason"], "cancelled",
                "{name}: {answer}"
            );
            assert!(from.elapsed() < Duration::from_secs(2), "{name}");
            assert_eq!(json::tool_ends(&run.agent.frames, ""), ["failed"], "{name}");
            fits(&name, "its status", &run.status(), READY);
            let again = run.prompt();
            assert_eq!(run.agent.answer(again)["result"]["stopReason"], "end_turn");
            run.end(&name);
        }
    }
}

#[test]
fn what_a_server_asks_is_answered_and_no_model_lent() {
    for program in PROGRAMS {
        for way in [Stdio, Http, Sse] {
            let name = format!("{program}, {way:?}");
            let mut run = Run::start(program, way, "asks", &script(&["srv__echo"]));
            let (status, text) = run.turn();
            let work = run.place.work().display().to_string();
            for line in [
                "1: {}",
                "\"p\": {}",
                "3: -32601",
                "4: -32601",
                // No form can be shown.
                "5: {\"action\":\"decline\"}",
                work.as_str(),
            ] {
                assert!(text.contains(line), "{name}: {status} {text}");
            }
            run.end(&name);
        }
    }
}

#[test]
fn tools_that_change_in_mid_turn_can_be_called_in_it() {
    for program in PROGRAMS {
        let step = |tool: &str| {
            let call = json!({"tool": tool, "args": {"text": "héllo"}});
            format!("{call}\n{{\"finish\":\"tool_calls\"}}\n")
        };
        let script = step("srv__echo") + &step("srv__later") + "{\"text\":\"done\"}\n";
        let mut run = Run::start(program, Stdio, "changes", &script);
        run.turn();
        let ends = json::tool_ends(&run.agent.frames, "");
        assert_eq!(ends, ["completed", "completed"], "{program}");
        run.end(program);
    }
}

#[test]
fn credentials_go_to_the_host_they_are_for_and_not_where_it_sends_us() {
    let other = Web::start(&[]);
    for program in PROGRAMS {
        for (kind, manners) in [
            ("http", vec!["redirects".to_string()]),
            ("sse", vec!["redirects".to_string()]),
            ("sse", vec!["legacy".to_string(), "abroad".to_string()]),
        ] {
            let name = format!("{program}, {kind} {manners:?}");
            let to = format!("to={}", other.url().replace("127.0.0.1", "localhost"));
            let web = Web::start(&[manners, vec![to]].concat());
            let headers = json!({"X-Key": "a-key-of-this-host", "Authorization": "Bearer abc"});
            let entry = json!({"type": kind, "name": "srv", "url": web.url(), "headers": headers});
            let script = script(&["srv__echo"]);
            let mut run = Run::with(program, &entry, &script, json!({}), &[]);
            let (status, text) = run.turn();
            assert_eq!(status, "failed", "{name}: {text}");
            let heads = web.heads().join("\n").to_lowercase();
            assert!(
                heads.contains("x-key: a-key-of-this-host"),
                "{name}: {heads}"
            );
            run.end(&name);
        }
    }
    assert_eq!(
        other.heads(),
        Vec::<String>::new(),
        "nothing was asked there"
    );
}

/// Where keys of servers are put: in variables, arguments, headers and addresses.
const KEYS: [&str; 5] = ["MCP_ENV", "MCP_ARG", "MCP_HEADER", "MCP_LOGIN", "MCP_QUERY"];

fn key(name: &str) -> &'static str {
    let found = PLANTED.iter().find(|(known, _)| *known == name);
    found.expect("it is planted").1
}

/// The runs look for every planted key in all that the programs say, log and leave behind.
#[test]
fn no_key_of_a_server_is_shown_though_it_says_all_it_was_given() {
    let [variable, argument, header, login, query] = KEYS.map(key);
    let client = json!({"elicitation": {"form": {}, "url": {}}});
    // What comes of a call, and that what was said arrived at all.
    let all = [
        ("shows", "completed", "[redacted]"),
        ("shows events", "completed", "[redacted]"),
        ("blames", "failed", "[redacted]"),
        ("gossips events", "completed", "héllo"),
        ("confesses", "failed", "[redacted]"),
        ("401", "failed", "[redacted]"),
        ("500", "failed", "[redacted]"),
    ];
    for program in PROGRAMS {
        for (manners, status, said) in all {
            for kind in ["stdio", "http", "sse"] {
                if kind == "stdio" && manners.parse::<u16>().is_ok() {
                    continue;
                }
                let name = format!("{program}, {kind} {manners}");
                let mut words: Vec<String> = manners.split(' ').map(String::from).collect();
                let mut web = None;
                let entry = if kind == "stdio" {
                    let args = ["stdio".into()].into_iter().chain(words);
                    let args = args.chain(["--token".into(), argument.into()]);
                    let env = json!({"WORD": variable, "API_KEY": format!("{variable}-2")});
                    json!({
                        "name": "srv", "command": env!("CARGO_BIN_EXE_mcp-server"),
                        "args": args.collect::<Vec<String>>(), "env": env,
                    })
                } else {
                    if kind == "sse" {
                        words.push("legacy".into());
                    }
                    let server = Web::start(&words);
                    let url = server
                        .url()
                        .replace("http://", &format!("http://me:{login}@"));
                    web = Some(server);
                    json!({
                        "type": kind, "name": "srv", "url": format!("{url}?key={query}"),
                        "headers": {"X-Key": header, "X-Auth": format!("Token {header}")},
                    })
                };
                let script = script(&["srv__echo"]);
                let mut run = Run::with(program, &entry, &script, client.clone(), &["-vv"]);
                run.agent
                    .answers
                    .insert("elicitation/create".into(), json!({"action": "decline"}));
                let found = run.turn();
                fits(&name, "the call", &found, (status, said));
                // What HTTP makes of a login: `me:` and the key, in base 64.
                let sent = "bWU6bWNwLXBsYW50ZWQt";
                let told = String::from_utf8_lossy(&run.agent.bytes).into_owned();
                assert!(!told.contains(sent), "{name}: {told}");
                if let Some(web) = &web {
                    let heads = web.heads().join("\n");
                    assert!(heads.contains(sent), "{name}: {heads}");
                    for key in [header, query] {
                        assert!(heads.contains(key), "{name}: {heads}");
                    }
                }
                run.status();
                let end = run.end(&name);
                assert!(end.is_none());
            }
        }
    }
}

/// `ps` and `/proc` show every process of the user what each was started with, and the model has a shell.
#[cfg(target_os = "linux")]
#[test]
fn a_key_of_a_server_is_not_shown_to_a_model_that_looks_at_the_processes() {
    let [variable, argument, ..] = KEYS.map(key);
    for program in PROGRAMS {
        let mark = mark();
        let entry = json!({
            "name": "srv", "command": env!("CARGO_BIN_EXE_mcp-server"),
            "args": ["stdio", mark, "--token", argument],
            "env": {"API_KEY": variable, "COLOUR": "ultramarine"},
        });
        // Its own command line holds the pattern, which does not hold what it means.
        let pattern = format!("{}[{}]", &mark[..mark.len() - 1], &mark[mark.len() - 1..]);
        let look = format!(
            "for it in /proc/[0-9]*; do if tr '\\0' ' ' <$it/cmdline | grep -q '{pattern}'; then \
             tr '\\0' '\\n' <$it/cmdline; tr '\\0' '\\n' <$it/environ; fi; done 2>/dev/null | \
             grep -A1 -e --token -e API_KEY -e COLOUR; true"
        );
        let bash = json!({"tool": "bash", "args": {"command": look}});
        let script = script(&["srv__echo"])
            + &format!("{bash}\n{{\"finish\":\"tool_calls\"}}\n{{\"text\":\"done\"}}\n");
        let mut run = Run::with(program, &entry, &script, json!({}), &[]);
        run.mark = mark;
        fits(program, "the call", &run.turn(), ECHOED);
        let (status, text) = run.turn();
        assert_eq!(status, "completed", "{program}: {text}");
        for shown in [
            "--token\n[redacted]",
            "API_KEY=[redacted]",
            "COLOUR=ultramarine",
        ] {
            assert!(text.contains(shown), "{program}: {shown:?} in {text}");
        }
        run.end(program);
    }
}
