//! Both runtimes give the same bytes for the same conversation: their drivers in this process, and
//! the programs on pipes. The scripts keep one call open at a time, so the order of news is given.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use reasonix_core::agent::{Agent, Config};
use reasonix_core::model::Script;
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::laws::Laws;
use reasonix_tests::process::{Place, program};
use reasonix_tests::sim::{Card, reply_to_card};

/// What the model does in one answer.
#[derive(Clone, Debug)]
enum Step {
    Text(String),
    Thought(String),
    Chunk(usize),
    Sleep(u64),
    Tool(&'static str, Value),
}

/// What the client does.
#[derive(Clone, Debug)]
enum Talk {
    Prompt(String),
    Option(&'static str, &'static str),
    Mode(&'static str),
    Garbage(&'static str),
    Unknown,
}

fn step() -> impl Strategy<Value = Step> {
    let tool = prop::sample::select(vec![
        ("read_file", json!({"path": "a.txt"})),
        ("read_file", json!({"path": "none.txt"})),
        (
            "write_file",
            json!({"path": "new/n.txt", "content": "one\ntwo\n"}),
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "old_string": "alpha", "new_string": "ALPHA"}),
        ),
        ("ls", json!({"path": "."})),
        ("glob", json!({"pattern": "**/*.txt"})),
        ("grep", json!({"pattern": "beta"})),
        ("delete_file", json!({"path": "b.txt"})),
        ("no_such_tool", json!({})),
        (
            "todo_write",
            json!({"todos": [{"content": "x", "status": "pending"}]}),
        ),
    ]);
    prop_oneof![
        3 => "[a-zé🙂\n\"\\\\ ]{1,40}".prop_map(Step::Text),
        1 => "[a-z ]{1,20}".prop_map(Step::Thought),
        1 => (1..40_usize).prop_map(Step::Chunk),
        1 => (0..3_u64).prop_map(Step::Sleep),
        3 => tool.prop_map(|(name, arguments)| Step::Tool(name, arguments)),
    ]
}

fn talk() -> impl Strategy<Value = Talk> {
    prop_oneof![
        5 => "[a-z ]{0,12}x".prop_map(Talk::Prompt),
        1 => prop::sample::select(vec![("tool_approval", "auto"), ("tool_approval", "ask"), ("agent_preset", "light"), ("no", "such")])
            .prop_map(|(option, value)| Talk::Option(option, value)),
        1 => prop::sample::select(vec!["plan", "normal", "nothing"]).prop_map(Talk::Mode),
        1 => prop::sample::select(vec!["nonsense", "[]", "{\"jsonrpc\":\"2.0\",\"id\":[]}", "{\"a\":1,\"a\":2}"])
            .prop_map(Talk::Garbage),
        1 => Just(Talk::Unknown),
    ]
}

/// The script's text: a tool ends its answer, so that one call is open at a time, and no two files
/// are written at what a file system takes for the same time.
fn script(steps: &[Step]) -> String {
    let mut lines = Vec::new();
    for step in steps {
        match step {
            Step::Text(text) => lines.push(json!({"text": text})),
            Step::Thought(text) => lines.push(json!({"thought": text})),
            Step::Chunk(size) => lines.push(json!({"chunk": size})),
            Step::Sleep(ms) => lines.push(json!({"sleep_ms": ms})),
            Step::Tool(name, arguments) => {
                lines.push(json!({"tool": name, "args": arguments}));
                lines.push(json!({"finish": "tool_calls"}));
                if matches!(*name, "write_file" | "edit_file") {
                    // The clock of a file system ticks a few times in this: what `glob` shows newest
                    // first was written at another time by each.
                    lines.push(json!({"sleep_ms": 20}));
                }
            }
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// One request after the other, each when the one before was answered. Gives what was heard.
fn converse(mut input: impl Write, output: impl BufRead, talk: &[Talk], cwd: &str) -> String {
    let mut laws = Laws::default();
    let mut heard = String::new();
    let mut lines = output.lines();
    let mut session = String::new();
    let mut say = |input: &mut dyn Write, message: &str, until: &dyn Fn(&Value) -> bool| {
        laws.sent(message.as_bytes());
        writeln!(input, "{message}").expect("the agent reads");
        loop {
            let line = lines
                .next()
                .expect("the agent answers")
                .expect("it writes text");
            laws.heard(format!("{line}\n").as_bytes());
            heard.push_str(&line);
            heard.push('\n');
            let frame: Value = serde_json::from_str(&line).expect("a frame is JSON");
            if frame["method"] == "session/request_permission" {
                let yes =
                    reply_to_card(&frame["id"], &frame["params"], &Card::Choose("allow_once"));
                writeln!(input, "{}", yes.expect("a card offers a yes")).expect("the agent reads");
            }
            if until(&frame) {
                return frame;
            }
        }
    };
    let answered =
        |id: Value| move |frame: &Value| frame.get("method").is_none() && frame["id"] == id;
    let hello = json::initialize(9001);
    say(&mut input, &hello.to_string(), &answered(json!(9001)));
    let new = json::new_session(9002, cwd);
    let opened = say(&mut input, &new.to_string(), &answered(json!(9002)));
    session.push_str(opened["result"]["sessionId"].as_str().unwrap_or_default());
    for (id, talk) in (1_u64..).zip(talk) {
        let on = |mut params: Value| {
            params["sessionId"] = json!(session);
            params
        };
        let message = match talk {
            Talk::Prompt(text) => json::prompt(id, &session, text),
            Talk::Option(option, value) => json::request(
                id,
                "session/set_config_option",
                on(json!({"configId": option, "value": value})),
            ),
            Talk::Mode(mode) => json::request(id, "session/set_mode", on(json!({"modeId": mode}))),
            Talk::Unknown => json::request(id, "no/such", json!({})),
            Talk::Garbage(line) => {
                say(&mut input, line, &answered(Value::Null));
                continue;
            }
        };
        say(&mut input, &message.to_string(), &answered(json!(id)));
    }
    drop(input);
    for line in lines {
        let line = line.expect("it writes text");
        laws.heard(format!("{line}\n").as_bytes());
        heard.push_str(&line);
        heard.push('\n');
    }
    laws.closed();
    laws.check();
    heard.replace(&session, "SESSION").replace(cwd, "CWD")
}

fn place() -> Place {
    let place = Place::new();
    // Which of them is newer does not depend on how fast they are written.
    for (name, text, age) in [("a.txt", "alpha\nbeta\n", 60), ("b.txt", "beta\n", 120)] {
        place.write(name, text);
        let file = std::fs::File::options().write(true).open(place.file(name));
        let then = SystemTime::now() - Duration::from_secs(age);
        file.and_then(|file| file.set_modified(then))
            .expect("the workspace is ours");
    }
    place
}

/// A conversation with an agent in this process, on the driver that `serve` is.
fn in_process(
    script: &str,
    talk: &[Talk],
    serve: fn(Agent, reasonix_blocking::Stdio) -> reasonix_blocking::Ended,
) -> String {
    let place = place();
    let mut config: Config = reasonix_tests::sim::config();
    config.host = reasonix_blocking::config::host();
    config.host.home = Some(name(&place.home()));
    config.ephemeral = false;
    config.script = Some(Script::parse(script).expect("a generated script parses"));
    let (agent_in, input) = std::io::pipe().expect("a pipe");
    let (output, agent_out) = std::io::pipe().expect("a pipe");
    let stdio = reasonix_blocking::Stdio::over(agent_in.into(), agent_out.into());
    let agent = std::thread::spawn(move || serve(Agent::new(config), stdio));
    let heard = converse(input, BufReader::new(output), talk, &name(&place.work()));
    let ended = agent.join().expect("the driver does not panic");
    assert_eq!(ended, reasonix_blocking::Ended::Finished);
    heard.replace(&name(&place.home()), "HOME")
}

/// The same with a program on pipes.
fn on_pipes(name_of: &str, script: &str, talk: &[Talk]) -> String {
    let place = place();
    let file = place.script(script);
    let mut child = Command::new(program(name_of))
        .args(["acp", "--model", &format!("script:{}", name(&file))])
        .env("REASONIX_HOME", place.home())
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (input, output) = (input.expect("piped"), output.expect("piped"));
    let heard = converse(input, BufReader::new(output), talk, &name(&place.work()));
    assert!(child.wait().is_ok_and(|status| status.success()));
    heard.replace(&name(&place.home()), "HOME")
}

fn name(path: &Path) -> String {
    path.to_str()
        .expect("a test folder has a plain name")
        .into()
}

fn on_threads(agent: Agent, io: reasonix_blocking::Stdio) -> reasonix_blocking::Ended {
    reasonix_blocking::serve(agent, io).expect("pipes can be served")
}

fn on_smol(agent: Agent, io: reasonix_blocking::Stdio) -> reasonix_blocking::Ended {
    async_io::block_on(reasonix_smol::serve(agent, io)).expect("pipes can be served")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_drivers_give_the_same_bytes(
        steps in prop::collection::vec(step(), 0..12),
        talk in prop::collection::vec(talk(), 1..6),
    ) {
        let script = script(&steps);
        let one = in_process(&script, &talk, on_threads);
        let other = in_process(&script, &talk, on_smol);
        prop_assert_eq!(one, other);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn the_programs_give_the_same_bytes(
        steps in prop::collection::vec(step(), 0..12),
        talk in prop::collection::vec(talk(), 1..6),
    ) {
        let script = script(&steps);
        let one = on_pipes("reasonix", &script, &talk);
        let other = on_pipes("reasonix-blocking", &script, &talk);
        prop_assert_eq!(one, other);
    }
}
