//! What keeps commands to their folders, with the real kernel where it can, and what is said and
//! refused where it cannot: both drivers, and both programs.

use std::fs;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use reasonix_blocking::{Ended, Stdio};
use reasonix_core::agent::{Agent, Config, Level, PermissionMode};
use reasonix_core::model::Script;
use reasonix_core::settings::Sandboxing;
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};
use reasonix_tests::sim::Sim;
use reasonix_tests::world::World;

const STATUS: &str = "_reasonix.io/session/status";

fn name(path: &Path) -> String {
    path.to_str()
        .expect("a test folder has a plain name")
        .into()
}

/// A script that runs these commands in its first turn.
fn script(commands: &[&str]) -> String {
    let mut lines = String::new();
    for (n, command) in commands.iter().enumerate() {
        let call = json!({"tool": "bash", "args": {"command": command}, "id": format!("c{n}")});
        lines.push_str(&format!("{call}\n{{\"finish\":\"tool_calls\"}}\n"));
    }
    lines.push_str("{\"text\":\"k\"}\n{\"finish\":\"stop\"}\n");
    lines
}

/// Whether this kernel cannot do what is tested; it is said.
fn without() -> bool {
    let level = reasonix_blocking::ops::confine::level();
    if !level.confines_network() {
        let _ = writeln!(std::io::stderr(), "skipped: this kernel has {level}");
    }
    !level.confines_network()
}

fn begin(program: &str, place: &Place, commands: &[&str], flags: &[&str]) -> (Running, String) {
    let model = format!("script:{}", place.script(&script(commands)).display());
    let mut args = vec!["--model", &model, "--permission-mode", "bypassPermissions"];
    args.extend(flags);
    let mut agent = Running::start(program, place, &args);
    let session = agent.open(json!({}), &place.work());
    (agent, session)
}

#[test]
fn a_command_is_kept_to_its_folders_and_that_is_told() {
    if without() {
        return;
    }
    for program in PROGRAMS {
        for flags in [
            &[][..],
            &["--require-sandbox"],
            &["--sandbox-bash", "enforce"],
        ] {
            let place = Place::new();
            let out = name(&place.out());
            let commands = [
                "echo x > in".into(),
                "echo $TMPDIR > tmp; echo x > $TMPDIR/x; stat -c %a $TMPDIR".into(),
                format!("echo x > {out}/a"),
                format!("ln -s {out} l; echo x > l/a"),
                "echo x > \"$HOME/a\"".into(),
                format!("cat {}/script.jsonl > copy", name(&place.home())),
            ];
            let lines: Vec<&str> = commands.iter().map(String::as_str).collect();
            let (mut agent, session) = begin(program, &place, &lines, flags);
            agent.ask(&json::prompt(1, &session, "go"));
            let ends = json::tool_ends(&agent.frames, &session);
            let kept = [
                "completed",
                "completed",
                "failed",
                "failed",
                "failed",
                "completed",
            ];
            assert_eq!(ends, kept, "{:#?}", agent.frames);
            assert!(!place.out().join("a").exists());
            let tmp = fs::read_to_string(place.file("tmp")).expect("it was written");
            let tmp = PathBuf::from(tmp.trim_end());
            assert!(tmp.join("x").exists() && tmp.ends_with(format!("reasonix-{session}")));
            let status = agent.ask(&json::request(2, STATUS, json!({"sessionId": session})));
            let told = &status["result"]["sandbox"];
            let mode = if flags.is_empty() { "auto" } else { "enforce" };
            assert_eq!(told["mode"], mode);
            assert_eq!(told["engine"], "landlock");
            assert_eq!(told["available"], true);
            assert_eq!(told["networkEnabled"], true);
            assert_eq!(told["writeRoots"], json!([name(&place.work())]));
            assert!(told["abi"].as_u64() >= Some(4), "{told}");
            // It goes with the session, or with the agent.
            if flags.is_empty() {
                let close = json::request(3, "session/close", json!({"sessionId": session}));
                agent.ask(&close);
            }
            let (ended, laws) = agent.finish();
            laws.check();
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert!(!tmp.exists(), "{}", tmp.display());
        }
    }
}

#[test]
fn the_network_of_commands_is_open_or_closed_as_it_is_asked() {
    if without() {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = server.local_addr().expect("bound").port();
    let line = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    for program in PROGRAMS {
        for (flag, open) in [("auto", true), ("on", true), ("off", false)] {
            let place = Place::new();
            let flags = ["--sandbox-network", flag];
            let (mut agent, session) = begin(program, &place, &[&line], &flags);
            agent.ask(&json::prompt(1, &session, "go"));
            let ends = json::tool_ends(&agent.frames, &session);
            assert_eq!(ends, [if open { "completed" } else { "failed" }], "{flag}");
            let status = agent.ask(&json::request(2, STATUS, json!({"sessionId": session})));
            assert_eq!(
                status["result"]["sandbox"]["networkEnabled"], open,
                "{flag}"
            );
        }
    }
}

/// An agent in this process and its client.
struct Local {
    input: PipeWriter,
    lines: std::io::Lines<BufReader<PipeReader>>,
    agent: JoinHandle<Ended>,
    frames: Vec<Value>,
}

impl Local {
    fn start(config: Config, serve: fn(Agent, Stdio) -> Ended) -> Self {
        let (agent_in, input) = std::io::pipe().expect("a pipe");
        let (output, agent_out) = std::io::pipe().expect("a pipe");
        let stdio = Stdio::over(agent_in.into(), agent_out.into());
        let agent = std::thread::spawn(move || serve(Agent::new(config), stdio));
        Self {
            input,
            lines: BufReader::new(output).lines(),
            agent,
            frames: Vec::new(),
        }
    }

    fn ask(&mut self, message: &Value) -> Value {
        writeln!(self.input, "{message}").expect("the agent reads");
        loop {
            let line = self.lines.next().expect("the agent answers");
            let frame: Value = serde_json::from_str(&line.expect("text")).expect("a frame");
            self.frames.push(frame.clone());
            if frame.get("method").is_none() && frame["id"] == message["id"] {
                return frame;
            }
        }
    }

    fn finish(self) {
        drop(self.input);
        self.lines.for_each(drop);
        let ended = self.agent.join().expect("the driver does not panic");
        assert_eq!(ended, Ended::Finished);
    }
}

fn on_threads(agent: Agent, io: Stdio) -> Ended {
    reasonix_blocking::serve(agent, io).expect("pipes can be served")
}

fn on_smol(agent: Agent, io: Stdio) -> Ended {
    async_io::block_on(reasonix_smol::serve(agent, io)).expect("pipes can be served")
}

/// A system of this level, as far as the agent is told.
fn told(place: &Place, level: Sandboxing, lines: &str) -> Config {
    let mut config = reasonix_tests::sim::config();
    config.host = reasonix_blocking::config::host();
    config.host.home = Some(name(&place.home()));
    config.host.sandbox = level;
    config.ephemeral = false;
    config.permission_mode = PermissionMode::parse("bypassPermissions").expect("known");
    config.script = Some(Script::parse(lines).expect("the script is good"));
    config
}

#[test]
fn where_nothing_confines_commands_it_is_said_or_no_session_opens() {
    for serve in [on_threads, on_smol] {
        for (level, no_network, lacks) in [
            (Sandboxing::None, false, true),
            (Sandboxing::Landlock { abi: 2 }, false, true),
            (Sandboxing::Landlock { abi: 3 }, true, true),
            (Sandboxing::Landlock { abi: 3 }, false, false),
        ] {
            if !lacks && without() {
                continue;
            }
            let place = Place::new();
            let lines = script(&["echo \"[$TMPDIR]\"; echo x > ../out/a"]);
            let mut config = told(&place, level, &lines);
            config.sandbox.no_network = no_network;
            let mut insists = config.clone();
            insists.sandbox.enforce = true;
            let new = json::new_session(2, &name(&place.work()));
            // It is said, and the commands run as they can.
            let mut agent = Local::start(config, serve);
            agent.ask(&json::initialize(1));
            let opened = agent.ask(&new);
            let session = opened["result"]["sessionId"].as_str().expect("it opens");
            agent.ask(&json::prompt(3, session, "go"));
            let status = agent.ask(&json::request(4, STATUS, json!({"sessionId": session})));
            let sandbox = &status["result"]["sandbox"];
            assert_eq!(sandbox["mode"], "auto");
            assert_eq!(sandbox["engine"], level.engine());
            assert_eq!(sandbox["available"], level.confines_files());
            assert_eq!(sandbox["networkEnabled"], true);
            let wrote = place.out().join("a").exists();
            assert_eq!(wrote, !level.confines_files(), "{level}");
            agent.finish();
            // Who insists gets none, new or old, and is told why.
            let mut agent = Local::start(insists, serve);
            agent.ask(&json::initialize(1));
            let load = json!({"sessionId": session, "cwd": name(&place.work()), "mcpServers": []});
            for request in [new.clone(), json::request(5, "session/load", load)] {
                let answer = agent.ask(&request);
                assert_eq!(answer["error"].is_object(), lacks, "{level}: {answer}");
                if lacks {
                    assert_eq!(answer["error"]["code"], -32603, "{answer}");
                    let data = &answer["error"]["data"];
                    assert_eq!(data["code"], "sandbox_unavailable", "{answer}");
                    assert_eq!(data["engine"], level.engine());
                }
            }
            agent.finish();
        }
    }
}

#[test]
fn the_log_says_what_is_enforced() {
    for (level, no_network, level_of, says) in [
        (
            Sandboxing::None,
            false,
            Level::Warn,
            "cannot be kept to folders here: no sandbox",
        ),
        (
            Sandboxing::Landlock { abi: 7 },
            false,
            Level::Info,
            "kept to their folders: Landlock, ABI 7",
        ),
        (
            Sandboxing::Landlock { abi: 7 },
            true,
            Level::Info,
            "and from the network: Landlock, ABI 7",
        ),
        (
            Sandboxing::Landlock { abi: 3 },
            true,
            Level::Warn,
            "kept from the network here: Landlock, ABI 3",
        ),
    ] {
        let mut config = reasonix_tests::sim::config();
        config.host.sandbox = level;
        config.sandbox.no_network = no_network;
        let mut sim = Sim::new(config, World::with_files("/w", &[]));
        sim.ask(&json::initialize(1));
        let report = sim
            .reports
            .iter()
            .find(|report| report.text.contains("commands"));
        let report = report.expect("it is said");
        assert!(report.text.contains(says), "{report:?}");
        assert_eq!(report.level, level_of);
    }
}

#[test]
fn folders_of_the_configuration_are_writable_for_commands_and_for_nothing_else() {
    if without() {
        return;
    }
    for program in PROGRAMS {
        for only in [false, true] {
            let place = Place::new();
            let out = place.out();
            fs::create_dir(out.join("cache")).expect("made");
            let cache = name(&out.join("cache"));
            let config = format!(
                "[sandbox]\nwritable = ['{cache}', '{}', '/etc']\n",
                name(&place.home())
            );
            fs::write(place.home().join("config.toml"), config).expect("written");
            let tool = json!({"tool": "write_file", "args": {"path": format!("{cache}/t"), "content": "x"}, "id": "t"});
            let commands = [
                format!("echo x > {cache}/c"),
                format!("echo x > {}/c", name(&out)),
                format!("echo x > {}/c", name(&place.home())),
            ];
            let lines: Vec<&str> = commands.iter().map(String::as_str).collect();
            let lines = format!("{tool}\n{{\"finish\":\"tool_calls\"}}\n{}", script(&lines));
            let model = format!("script:{}", place.script(&lines).display());
            let mut flags = vec!["--model", &model, "--permission-mode", "bypassPermissions"];
            flags.extend(only.then_some("--workspace-only"));
            let mut agent = Running::start(program, &place, &flags);
            let session = agent.open(json!({}), &place.work());
            agent.ask(&json::prompt(1, &session, "go"));
            let ends = json::tool_ends(&agent.frames, &session);
            let first = if only { "failed" } else { "completed" };
            assert_eq!(
                ends,
                ["failed", first, "failed", "failed"],
                "{:#?}",
                agent.frames
            );
            assert_eq!(out.join("cache/c").exists(), !only);
            assert!(!out.join("cache/t").exists() && !out.join("c").exists());
            let status = agent.ask(&json::request(2, STATUS, json!({"sessionId": session})));
            let mut roots = vec![name(&place.work())];
            roots.extend((!only).then_some(cache));
            assert_eq!(status["result"]["sandbox"]["writeRoots"], json!(roots));
            agent.ask(&json::prompt(3, &session, "/status"));
            let said = json::said(&agent.frames, &session);
            assert!(said.contains("Not writable: /etc "), "{said}");
            agent.finish().1.check();
            assert!(!place.home().join("c").exists());
        }
    }
}
