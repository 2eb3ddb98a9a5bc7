//! What is no regular file where the agent looks for one: nobody waits for a pipe that nobody writes
//! to or reads a device without an end, and where it matters it is said what is there.

use std::path::{Path, PathBuf};

use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};

#[derive(Clone, Copy, Debug)]
enum Made {
    Pipe,
    Folder,
    Zero,
}

const ALL: [Made; 3] = [Made::Pipe, Made::Folder, Made::Zero];

impl Made {
    fn at(self, path: &Path) {
        let folder = path.parent().expect("a file is in a folder");
        std::fs::create_dir_all(folder).expect("folders");
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
            Ok(()) | Err(_) => {}
        }
        match self {
            Self::Pipe => {
                let made = std::process::Command::new("mkfifo").arg(path).status();
                assert!(made.expect("mkfifo runs").success());
            }
            Self::Folder => std::fs::create_dir(path).expect("made"),
            Self::Zero => std::os::unix::fs::symlink("/dev/zero", path).expect("linked"),
        }
    }

    /// What is said of it where a link is followed.
    fn name(self) -> &'static str {
        match self {
            Self::Pipe => "is a pipe, not a file",
            Self::Folder => "is a directory, not a file",
            Self::Zero => "is a device, not a file",
        }
    }
}

fn start(program: &str, place: &Place) -> Running {
    let script = place.script("{\"text\":\"well\"}\n");
    let model = format!("script:{}", script.display());
    Running::start(program, place, &["--model", &model])
}

/// A session in the workspace, and the whole answer to the request for it.
fn opened(agent: &mut Running, place: &Place) -> Value {
    agent.ask(&json::initialize(1));
    let cwd = place.work().display().to_string();
    agent.ask(&json::new_session(2, &cwd))
}

#[test]
fn a_configuration_that_is_no_file_is_named_at_the_start_and_on_a_reload() {
    for program in PROGRAMS {
        for made in ALL {
            for name in ["config.toml", ".env"] {
                let what = format!("{program}: {made:?} {name}");
                let said = match (made, name) {
                    (Made::Zero, ".env") => "is a link, not a file",
                    _ => made.name(),
                };
                let place = Place::new();
                let path = place.home().join(name);
                let mut agent = start(program, &place);
                let session = opened(&mut agent, &place)["result"]["sessionId"].clone();
                let session = session.as_str().expect("a session").to_owned();
                made.at(&path);
                let answer = agent.ask(&json::prompt(3, &session, "/reload"));
                assert_eq!(
                    answer["result"]["stopReason"], "end_turn",
                    "{what}: {answer}"
                );
                let told = json::said(&agent.frames, &session);
                assert!(told.contains(said) && told.contains(name), "{what}: {told}");
                drop(agent);

                let mut agent = Running::start(program, &place, &[]);
                let refused = opened(&mut agent, &place);
                let why = refused["error"].to_string();
                assert!(
                    why.contains(said) && why.contains(name),
                    "{what}: {refused}"
                );
            }
        }
    }
}

#[test]
fn what_a_project_or_home_holds_in_place_of_a_file_holds_up_no_session() {
    type At = fn(&Place) -> PathBuf;
    let places: [(At, bool); 7] = [
        (|p| p.file("AGENTS.md"), true),
        (|p| p.file("CLAUDE.md"), true),
        (|p| p.file(".mcp.json"), false),
        (|p| p.file(".reasonix/commands/x.md"), false),
        (|p| p.file(".reasonix/skills/x/SKILL.md"), false),
        (|p| p.home().join("commands/x.md"), false),
        (|p| p.home().join("skills/x/SKILL.md"), false),
    ];
    for program in PROGRAMS {
        for made in ALL {
            let place = Place::new();
            let mut told = Vec::new();
            for (at, named) in places {
                let path = at(&place);
                made.at(&path);
                told.extend(named.then_some(path));
            }
            let mut agent = start(program, &place);
            let session = opened(&mut agent, &place)["result"]["sessionId"].clone();
            let session = session.as_str().expect("a session").to_owned();
            for (id, text) in [(3, "/reload"), (4, "go")] {
                let answer = agent.ask(&json::prompt(id, &session, text));
                assert_eq!(
                    answer["result"]["stopReason"], "end_turn",
                    "{made:?}: {answer}"
                );
            }
            assert!(json::said(&agent.frames, &session).ends_with("well"));
            let errors = agent.errors();
            for path in told {
                let name = path.file_name().and_then(|it| it.to_str()).expect("text");
                let line = errors.lines().find(|line| line.contains(name));
                assert!(
                    line.is_some_and(|it| it.contains("not used")),
                    "{made:?}: {errors}"
                );
            }
        }
    }
}

#[test]
fn a_transcript_that_is_no_file_is_one_session_less() {
    for program in PROGRAMS {
        for made in ALL {
            let place = Place::new();
            let mut agent = start(program, &place);
            let session = opened(&mut agent, &place)["result"]["sessionId"].clone();
            let session = session.as_str().expect("a session").to_owned();
            agent.ask(&json::prompt(3, &session, "go"));
            agent.finish();
            made.at(&place
                .home()
                .join(format!("sessions/{session}/transcript.jsonl")));
            let mut agent = start(program, &place);
            agent.ask(&json::initialize(1));
            let listed = agent.ask(&json::request(2, "session/list", json!({})));
            assert!(
                listed["result"]["sessions"].is_array(),
                "{made:?}: {listed}"
            );
            let cwd = place.work().display().to_string();
            let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
            let loaded = agent.ask(&json::request(3, "session/load", load));
            assert!(loaded["error"]["message"].is_string(), "{made:?}: {loaded}");
            let next = agent.ask(&json::new_session(4, &cwd));
            assert!(next["result"]["sessionId"].is_string(), "{made:?}: {next}");

            let shown = std::process::Command::new(reasonix_tests::process::program(program))
                .args(["sessions", "show", &session])
                .env("REASONIX_HOME", place.home())
                .output()
                .expect("it runs");
            let errors = String::from_utf8_lossy(&shown.stderr);
            assert!(!shown.status.success(), "{made:?}: {errors}");
            assert!(errors.contains("not a file"), "{made:?}: {errors}");
        }
    }
}
