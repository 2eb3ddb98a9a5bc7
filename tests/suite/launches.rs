//! The MCP servers of a project's file with the real programs: started when the person approved
//! them, ended with their session and with the program, started again when they crashed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running, program};
use reasonix_tests::sim::Card;

/// A server with one tool, in the shell; it says which process it is, and starts another one.
const SERVER: &str = r#"
echo $$ >> pids
sleep 1000 &
echo $! >> pids
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) answer='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) answer='{"tools":[{"name":"look"}]}' ;;
    *'"tools/call"'*) answer='{"content":[{"type":"text","text":"looked"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$answer"
done
"#;

const SCRIPT: &str = "{\"when\":{\"prompt_contains\":\"look\"}}\n\
    {\"tool\":\"docs__look\",\"args\":{},\"id\":\"t\"}\n{\"finish\":\"tool_calls\"}\n\
    {\"text\":\"over\"}\n{\"finish\":\"stop\"}\n\
    {\"when\":{\"prompt_contains\":\"work\"}}\n\
    {\"tool\":\"bash\",\"args\":{\"command\":\"true\"},\"id\":\"w\"}\n{\"finish\":\"tool_calls\"}\n\
    {\"text\":\"over\"}\n{\"finish\":\"stop\"}\n\
    {\"when\":{\"prompt_contains\":\"hello\"}}\n{\"text\":\"hi\"}\n{\"finish\":\"stop\"}\n";

fn project() -> Place {
    let place = Place::new();
    place.write("server.sh", SERVER);
    place.write(
        ".mcp.json",
        r#"{"mcpServers":{"docs":{"command":"sh","args":["server.sh"]}}}"#,
    );
    place
}

fn start(name: &str, place: &Place) -> (Running, String) {
    let script = format!("script:{}", place.script(SCRIPT).display());
    let mut agent = Running::start(name, place, &["--model", &script]);
    agent.cards = [Card::Choose("allow_always")].into();
    let session = agent.open(json!({}), &place.work());
    (agent, session)
}

/// The processes that servers of this place ever were.
fn pids(place: &Place) -> Vec<u32> {
    let text = std::fs::read_to_string(place.file("pids")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Whether a process runs: one that is over and not yet waited for does not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let state = |stat: String| stat.rsplit(')').next().map(|rest| rest.trim().to_owned());
    stat.ok()
        .and_then(state)
        .is_some_and(|state| !state.starts_with('Z'))
}

/// Waits until all these are gone.
#[track_caller]
fn gone(pids: &[u32]) {
    let end = Instant::now() + Duration::from_secs(10);
    while pids.iter().any(|pid| runs(*pid)) {
        assert!(Instant::now() < end, "some of {pids:?} run on");
        // Waits for processes, not for an order of events.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asks how the server stands until it stands so.
#[track_caller]
fn stands(agent: &mut Running, session: &str, status: &str) -> Value {
    let end = Instant::now() + Duration::from_secs(20);
    for id in 5000.. {
        let params = json!({"sessionId": session});
        let method = "_reasonix.io/session/mcpStatus";
        let answer = agent.ask(&json::request(id, method, params));
        let server = &answer["result"]["servers"][0];
        if server["status"] == status {
            return server.clone();
        }
        assert!(Instant::now() < end, "not {status}: {answer}");
        // Waits for a process, not for an order of events.
        std::thread::sleep(Duration::from_millis(5));
    }
    unreachable!("numbers do not end");
}

fn approvals(place: &Place) -> Option<String> {
    std::fs::read_to_string(place.home().join("mcp-approvals.json")).ok()
}

#[test]
fn a_projects_server_runs_once_it_is_approved_and_ends_with_its_session_and_with_the_program() {
    for name in PROGRAMS {
        let place = project();
        let (mut agent, session) = start(name, &place);
        stands(&mut agent, &session, "pending");
        assert_eq!(pids(&place), [0; 0], "{name}");
        // What the turn asks waits behind that card, so that the turn does not end before it.
        agent.ask(&json::prompt(1, &session, "work"));
        let server = stands(&mut agent, &session, "ready");
        assert_eq!(server["tools"], 1, "{name}");
        let about = |card: &Value| card["toolCall"]["name"].clone();
        let asked: Vec<Value> = agent.asked.iter().map(about).collect();
        assert_eq!(asked, ["mcp_launch", "bash"], "{name}");
        agent.ask(&json::prompt(2, &session, "look"));
        let ends = json::tool_ends(&agent.frames, &session);
        assert_eq!(ends, ["completed"; 3], "{name}");
        assert!(approvals(&place).is_some_and(|it| it.contains("\"docs\"")));
        private(&place.home().join("mcp-approvals.json"));
        let first = pids(&place);
        assert_eq!(first.len(), 2, "{name}");
        let close = json::request(3, "session/close", json!({"sessionId": session}));
        agent.ask(&close);
        gone(&first);
        // Another session: approved before, and its tools are known before it is up.
        let asked = agent.asked.len();
        let answer = agent.ask(&json::new_session(4, &place.work().display().to_string()));
        let again = answer["result"]["sessionId"]
            .as_str()
            .expect("an id")
            .to_owned();
        stands(&mut agent, &again, "ready");
        assert_eq!(agent.asked.len(), asked, "{name}");
        let all = pids(&place);
        assert_eq!(all.len(), 4, "{name}");
        assert!(all[2..].iter().all(|pid| runs(*pid)), "{name}");
        let (ended, laws) = agent.finish();
        laws.check();
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        gone(&all);
    }
}

#[test]
fn a_server_that_crashed_is_started_again_by_the_next_call() {
    for name in PROGRAMS {
        let place = project();
        let (mut agent, session) = start(name, &place);
        agent.ask(&json::prompt(1, &session, "work"));
        stands(&mut agent, &session, "ready");
        let first = pids(&place);
        let killed = Command::new("kill")
            .arg("-9")
            .arg(first[0].to_string())
            .status();
        assert!(killed.is_ok_and(|it| it.success()));
        stands(&mut agent, &session, "idle");
        agent.ask(&json::prompt(2, &session, "look"));
        let ends = json::tool_ends(&agent.frames, &session);
        assert_eq!(ends, ["completed"; 3], "{name}");
        stands(&mut agent, &session, "ready");
        assert_eq!(pids(&place).len(), 4, "{name}");
        agent.finish().1.check();
        gone(&pids(&place));
    }
}

#[test]
fn a_run_that_nobody_watches_starts_nothing_that_was_not_approved() {
    for name in PROGRAMS {
        let place = project();
        let run = || {
            let script = format!("script:{}", place.script(SCRIPT).display());
            let output = Command::new(program(name))
                .args(["run", "--model", &script, "hello"])
                .current_dir(place.work())
                .env("REASONIX_HOME", place.home())
                .env("HOME", place.home())
                .stdin(Stdio::null())
                .output()
                .expect("the program starts");
            assert!(output.status.success(), "{name}: {output:?}");
        };
        run();
        assert_eq!((pids(&place).len(), approvals(&place)), (0, None), "{name}");
    }
}

#[cfg(unix)]
fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600, "{}", path.display());
}

#[cfg(not(unix))]
fn private(_path: &Path) {}
