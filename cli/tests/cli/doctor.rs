//! `doctor`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use crate::{Ended, PROGRAMS, Place, arg};

const EDITORS: [(&str, &str); 8] = [
    ("zed", "\"agent_servers\""),
    ("jetbrains", "\"agent_servers\""),
    ("nvim", "require(\"codecompanion\")"),
    ("avante", "require(\"avante\")"),
    ("emacs", "agent-shell-agent-configs"),
    ("vscode", "\"acp.agents\""),
    ("acpx", "acpx --agent"),
    ("toad", "toad acp"),
];

#[test]
fn every_editor_gets_its_snippet_and_begins_well() {
    for program in PROGRAMS {
        let place = Place::new();
        let script = place.write("script", "{\"text\":\"hello\"}\n");
        let model = format!("script:{}", arg(&script));
        for (editor, part) in EDITORS {
            let args = ["doctor", "--editor", editor, "--", "--model", &model];
            let ended = place.run(program, &args);
            assert_eq!(ended.code, Some(0), "{editor}: {ended:?}");
            for wanted in [
                part,
                "ok       session",
                "ok       standard output",
                "initialize is answered",
                "--model",
            ] {
                assert!(
                    ended.out.contains(wanted),
                    "{editor}, {wanted}: {}",
                    ended.out
                );
            }
        }
        assert!(
            !place.path("home/.reasonix").exists(),
            "it looks, and leaves nothing"
        );
    }
}

#[test]
fn nothing_configured_is_a_problem_that_says_what_to_do() {
    for program in PROGRAMS {
        let ended = Place::new().run(program, &["doctor"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        for wanted in [
            "PROBLEM  model: none is selected",
            "PROBLEM  session: session/new is refused",
            "reasonix setup --from-env OPENAI_API_KEY",
            "note     keys: OPENAI_API_KEY stands in the environment, which is not used",
        ] {
            assert!(ended.out.contains(wanted), "{wanted}: {}", ended.out);
        }
    }
}

#[test]
fn a_rule_or_a_key_that_is_none_is_a_problem_with_its_place() {
    for (text, wanted) in [
        (
            "[permissions]\nallow = [\n  \"Read\",\n  \"Bash(\",\n]\n",
            "config.toml, line 4, allow: `Bash(` is no rule: the closing parenthesis is missing; a rule \
             is a tool's name, and what it is about in parentheses, such as Bash(cargo test:*)",
        ),
        (
            "[permissions]\nalow = [\"Read\"]\n",
            "config.toml, line 2, alow: unknown field `alow`, expected one of `allow`, `ask`, `deny`",
        ),
    ] {
        for program in PROGRAMS {
            let place = Place::new();
            std::fs::create_dir(place.path("home/.reasonix")).expect("home");
            place.write("home/.reasonix/config.toml", text);
            let ended = place.run(program, &["doctor"]);
            assert_eq!(ended.code, Some(1), "{ended:?}");
            let lines = ended.out.lines();
            let mut problems = lines.filter(|line| line.starts_with("PROBLEM  configuration: "));
            let told = problems.next().unwrap_or_default();
            assert!(told.contains(wanted), "{wanted}: {}", ended.out);
        }
    }
}

/// A home with a provider at `url` whose key is `key`.
fn configured(url: &str, mode: u32) -> Place {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    std::fs::create_dir(place.path("home/.reasonix")).expect("home");
    place.write(
        "home/.reasonix/config.toml",
        &format!(
            "default_model = \"p/m\"\n[providers.p]\nbase_url = \"{url}\"\napi_key_env = \"P_KEY\"\n\
             models = [ {{ id = \"m\" }} ]\n"
        ),
    );
    let env = place.write("home/.reasonix/.env", &format!("P_KEY={KEY}\n"));
    std::fs::set_permissions(env, std::fs::Permissions::from_mode(mode)).expect("set");
    place
}

const KEY: &str = "sk-planted-0123456789";

/// Answers one request with this status line, and says what it was asked.
fn server(status: &'static str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("its address"));
    let thread = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a client");
        let mut asked = Vec::new();
        let mut byte = [0];
        while !asked.ends_with(b"\r\n\r\n") {
            socket.read_exact(&mut byte).expect("a request");
            asked.push(byte[0]);
        }
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{KEY}",
            KEY.len()
        );
        socket.write_all(answer.as_bytes()).expect("it listens");
        String::from_utf8(asked).expect("text")
    });
    (url, thread)
}

#[track_caller]
fn never_shown(ended: &Ended) {
    assert!(
        !ended.out.contains(KEY) && !ended.err.contains(KEY),
        "{ended:?}"
    );
}

#[test]
fn the_provider_is_asked_and_its_answer_understood() {
    for (status, code, wanted) in [
        ("200 OK", 0, "p answers, and takes the key"),
        (
            "401 Unauthorized",
            1,
            "p answers, but refuses the key (HTTP 401)",
        ),
        ("404 Not Found", 0, "p answers; it has no list of models"),
        ("503 Busy", 1, "is in trouble (HTTP 503)"),
        ("302 Found", 0, "with HTTP 302"),
    ] {
        let (url, thread) = server(status);
        let ended = configured(&url, 0o600).run(PROGRAMS[1], &["doctor"]);
        assert_eq!(ended.code, Some(code), "{status}: {ended:?}");
        assert!(ended.out.contains(wanted), "{status}: {}", ended.out);
        never_shown(&ended);
        let asked = thread.join().expect("the server").to_ascii_lowercase();
        assert!(asked.starts_with("get /v1/models "), "{asked}");
        assert!(
            asked.contains(&format!("authorization: bearer {KEY}")),
            "the key is tried"
        );
    }
}

#[test]
fn a_provider_that_is_not_there_is_told_and_offline_asks_nobody() {
    for program in PROGRAMS {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", free.local_addr().expect("its address"));
        let offline = configured(&url, 0o600).run(program, &["doctor", "--offline"]);
        assert_eq!(offline.code, Some(0), "{offline:?}");
        free.set_nonblocking(true).expect("set");
        assert!(free.accept().is_err(), "somebody came");
        drop(free);
        let ended = configured(&url, 0o600).run(program, &["doctor"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(
            ended.out.contains("PROBLEM  provider: p cannot be reached"),
            "{}",
            ended.out
        );
    }
}

#[test]
fn keys_and_files_are_judged_and_never_shown() {
    for (mode, change, wanted) in [
        (0o644, None, "can be read by others"),
        (
            0o600,
            Some((".env", "OTHER=x\n")),
            "PROBLEM  keys: P_KEY of p stands in the environment",
        ),
        (
            0o600,
            Some((".env", "P_KEY\n")),
            ".env, line 1: not of the form NAME=value",
        ),
        (
            0o600,
            Some(("config.toml", "default_modell = 1\n")),
            "config.toml, line 1, default_modell",
        ),
    ] {
        let place = configured("http://127.0.0.1:1", mode);
        if let Some((name, text)) = change {
            place.write(&format!("home/.reasonix/{name}"), text);
        }
        let mut command = place.command(PROGRAMS[1], &["doctor", "--json", "--offline"]);
        let child = command.env("P_KEY", KEY).spawn().expect("it starts");
        let ended = crate::finish(child);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let report: serde_json::Value = serde_json::from_str(&ended.out).expect("one object");
        assert_eq!(report["ok"], false);
        let findings = report["findings"].as_array().expect("findings");
        let said = findings.iter().any(|it| {
            let line = format!(
                "PROBLEM  {}: {}",
                it["what"].as_str().unwrap_or(""),
                it["text"].as_str().unwrap_or("")
            );
            it["level"] == "problem" && line.contains(wanted)
        });
        assert!(said, "{wanted}: {}", ended.out);
        never_shown(&ended);
    }
}

#[test]
fn flags_for_acp_are_checked_first() {
    for (args, wanted) in [
        (&["doctor", "--", "--modell", "x"][..], "after `--`"),
        (&["doctor", "--", "setup"], "flags of `acp`"),
        (&["doctor", "--editor", "ed"], "possible values: zed"),
    ] {
        let ended = Place::new().run(PROGRAMS[0], args);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains(wanted), "{}", ended.err);
    }
}
