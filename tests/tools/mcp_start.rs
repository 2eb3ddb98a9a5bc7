//! `mcp-start PROGRAM…`: how long `session/new` and the first turn take with 30 MCP servers of which 29
//! are dead, each in its own way. Prints one line a program and kind: medians and the worst, ms.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{Place, Running};

/// Fresh processes of each kind.
const ROUNDS: usize = 20;

const SERVERS: usize = 30;

/// The one that lives.
const ALIVE: &str = r#"read -r line
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}'
read -r line; read -r line
echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"hello","inputSchema":{"type":"object"}}]}}'
cat >/dev/null"#;

/// How the others are dead.
const KINDS: [&str; 6] = ["none", "missing", "silent", "refuses", "hangs", "mixed"];

fn dead(kind: &str, n: usize, hangs: &str) -> Value {
    let name = format!("dead{n}");
    match kind {
        "missing" => json!({"name": name, "command": "no-such-program", "args": [], "env": []}),
        "silent" => json!({"name": name, "command": "sleep", "args": ["600"], "env": []}),
        "refuses" => {
            json!({"type": "http", "name": name, "url": "http://127.0.0.1:1/", "headers": []})
        }
        "hangs" => json!({"type": "http", "name": name, "url": hangs, "headers": []}),
        _ => dead(KINDS[1 + n % 4], n, hangs),
    }
}

fn round(program: &str, kind: &str, hangs: &str) -> (Duration, Duration) {
    let place = Place::new();
    let script = place.script("{\"text\":\"here\"}\n{\"finish\":\"stop\"}\n");
    let mut command = Command::new(program);
    command
        .args(["acp", "--model", &format!("script:{}", script.display())])
        .env("REASONIX_HOME", place.home());
    let mut agent = Running::spawn(command);
    agent.ask(&json::initialize(1));
    let mut servers = Vec::new();
    if kind != "none" {
        servers.extend((1..SERVERS).map(|n| dead(kind, n, hangs)));
        servers.push(json!({"name": "alive", "command": "sh", "args": ["-c", ALIVE], "env": []}));
    }
    let cwd = place.work().display().to_string();
    let params = json!({"cwd": cwd, "mcpServers": servers});
    let from = Instant::now();
    let opened = agent.ask(&json::request(2, "session/new", params));
    let new = from.elapsed();
    let session = opened["result"]["sessionId"]
        .as_str()
        .expect("it opens")
        .to_string();
    let from = Instant::now();
    agent.send(&json::prompt(3, &session, "go"));
    agent.until("the first word", |frame| {
        json::update(frame, "").is_some_and(|it| it["sessionUpdate"] == "agent_message_chunk")
    });
    let turn = from.elapsed();
    agent.answer(3);
    agent.finish();
    (new, turn)
}

fn shown(mut times: Vec<Duration>) -> String {
    times.sort();
    let ms = |time: &Duration| time.as_secs_f64() * 1e3;
    let median = times.get(times.len() / 2).map_or(0.0, ms);
    format!(
        "{median:6.1} (at most {:6.1})",
        times.last().map_or(0.0, ms)
    )
}

fn main() {
    // Connections are taken by the system, and nobody ever answers.
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a local port is free");
    let hangs = format!("http://{}/", listener.local_addr().expect("it is bound"));
    for program in std::env::args().skip(1) {
        for kind in KINDS {
            let times = (0..ROUNDS).map(|_| round(&program, kind, &hangs));
            let (new, turn): (Vec<_>, Vec<_>) = times.unzip();
            println!(
                "{program}  {kind:8} session/new {}  first word {}",
                shown(new),
                shown(turn)
            );
        }
    }
}
