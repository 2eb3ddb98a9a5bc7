//! The editor's side of a turn: files through its buffers, commands in its terminals, questions in its
//! forms. A simulated editor that answers well, badly, late, twice or never; here is how it is set up.

mod files;
mod questions;
mod schedules;
mod terminals;

use std::time::Duration;

use reasonix_core::agent::Config;
use reasonix_core::model::Script;
use reasonix_tests::editor::{Editor, Habit};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::sim::{Sim, config};
use reasonix_tests::world::{Command, World};

const SECOND: Duration = Duration::from_secs(1);

/// Habits that give nothing to work with.
const BAD: [Habit; 4] = [Habit::Fails, Habit::Malformed, Habit::OtherId, Habit::Never];

fn fs(reads: bool, writes: bool) -> Value {
    json!({"fs": {"readTextFile": reads, "writeTextFile": writes}})
}

fn terminals() -> Value {
    json!({"terminal": true})
}

/// A model that makes one call an answer, then says `done`.
fn script(calls: &[(&str, Value)]) -> Script {
    let mut lines = String::new();
    for (name, args) in calls {
        lines += &format!("{}\n", json!({"tool": name, "args": args}));
        lines += "{\"finish\":\"tool_calls\"}\n";
    }
    lines += "{\"text\":\"done\"}\n{\"finish\":\"stop\"}\n";
    Script::parse(&lines).expect("a script")
}

fn world(files: &[(&str, &str)]) -> World {
    let mut world = World::with_files("/w", files);
    world.commands = vec![Command {
        contains: "make".into(),
        output: b"built\n".to_vec(),
        takes: Some(SECOND),
        code: 0,
    }];
    world
}

fn start(capabilities: Value, editor: Editor, world: World, config: Config) -> (Sim, String) {
    let mut sim = Sim::new(config, world);
    sim.editor = Some(editor);
    let session = sim.open(capabilities, "/w");
    (sim, session)
}

fn scripted(calls: &[(&str, Value)]) -> Config {
    let mut config = config();
    config.script = Some(script(calls));
    config
}

fn editor_in(sim: &Sim) -> &Editor {
    sim.editor.as_ref().expect("it was put there")
}

/// One turn from its prompt to its answer, and what was seen of it.
struct Seen {
    sim: Sim,
    stop: Value,
    ends: Vec<String>,
    took: Duration,
}

fn turn(capabilities: Value, editor: Editor, world: World, calls: &[(&str, Value)]) -> Seen {
    turn_with(capabilities, editor, world, scripted(calls))
}

fn turn_with(capabilities: Value, editor: Editor, world: World, config: Config) -> Seen {
    let (mut sim, session) = start(capabilities, editor, world, config);
    let from = sim.now;
    let answer = sim.ask(&json::prompt(1, &session, "go"));
    let took = sim.now.since(from);
    sim.run_for(SECOND * 60);
    sim.finish();
    sim.laws.check();
    assert_eq!(sim.world.running(), 0, "something runs on");
    Seen {
        stop: answer["result"]["stopReason"].clone(),
        ends: json::tool_ends(&sim.frames, ""),
        took,
        sim,
    }
}

impl Seen {
    /// The text that the last tool call ended with.
    fn result(&self) -> String {
        let updates = self.sim.frames.iter().rev();
        let mut texts = updates.filter_map(|frame| {
            let update = json::update(frame, "")?;
            let ended = matches!(update["status"].as_str(), Some("completed" | "failed"));
            let items = update["content"].as_array().filter(|_| ended)?;
            let text = items.last()?["content"]["text"].as_str()?;
            Some(text.to_string())
        });
        texts.next().unwrap_or_default()
    }

    fn file(&self, path: &str) -> String {
        let bytes = self.sim.world.file(path).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }

    fn editor(&self) -> &Editor {
        editor_in(&self.sim)
    }
}

fn open_buffer(path: &str, text: &str) -> Editor {
    Editor {
        buffers: [(path.to_string(), text.to_string())].into(),
        command_takes: Some(SECOND),
        output: "from the terminal\n".into(),
        ..Editor::default()
    }
}

fn always(mut editor: Editor, method: &'static str, habit: Habit) -> Editor {
    editor.always.insert(method, habit);
    editor
}

fn read() -> (&'static str, Value) {
    ("read_file", json!({"path": "a.txt"}))
}

fn edit(old: &str, new: &str) -> (&'static str, Value) {
    let args = json!({"path": "a.txt", "old_string": old, "new_string": new});
    ("edit_file", args)
}

fn make() -> (&'static str, Value) {
    ("bash", json!({"command": "make"}))
}
