//! Folders of a session beside its working directory, with the real programs on a real disk: which
//! are taken, what the tools do in them, and what is left when one is gone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};
use reasonix_tests::sim::Card;

fn text(path: &Path) -> String {
    path.to_str()
        .expect("a test folder has a plain name")
        .into()
}

/// A script of one turn a branch: its name is the prompt, each call an answer of its own.
fn script(turns: &[(&str, &[(&str, Value)])]) -> String {
    let mut lines = String::new();
    for (prompt, calls) in turns {
        lines.push_str(&format!(
            "{}\n",
            json!({"when": {"prompt_contains": prompt}})
        ));
        for (n, (tool, args)) in calls.iter().enumerate() {
            let id = format!("{prompt}{n}");
            let call = json!({"tool": tool, "args": args, "id": id});
            lines.push_str(&format!("{call}\n{}\n", json!({"finish": "tool_calls"})));
        }
        lines.push_str("{\"text\":\"k\"}\n{\"finish\":\"stop\"}\n");
    }
    lines
}

fn start(program: &str, place: &Place, lines: &str, flags: &[&str]) -> Running {
    let model = format!("script:{}", place.script(lines).display());
    let mut args = vec!["--model", &model];
    args.extend(flags);
    let mut agent = Running::start(program, place, &args);
    agent.ask(&json::initialize(1));
    agent
}

fn new(id: u64, cwd: &Path, directories: &[String]) -> Value {
    let params = json!({"cwd": text(cwd), "mcpServers": [], "additionalDirectories": directories});
    json::request(id, "session/new", params)
}

fn again(id: u64, method: &str, session: &str, cwd: &Path, directories: &[String]) -> Value {
    let params = json!({
        "sessionId": session, "cwd": text(cwd), "mcpServers": [],
        "additionalDirectories": directories,
    });
    json::request(id, method, params)
}

#[track_caller]
fn session(answer: &Value) -> String {
    let id = answer["result"]["sessionId"].as_str();
    id.unwrap_or_else(|| panic!("no session: {answer}")).into()
}

#[track_caller]
fn refused(answer: &Value, code: &str, path: &str) {
    let error = &answer["error"];
    assert_eq!(error["code"], -32602, "{answer}");
    assert_eq!(error["data"]["code"], code, "{answer}");
    assert_eq!(error["data"]["path"], path, "{answer}");
}

/// The last text of each ended call.
fn results(agent: &Running) -> Vec<(String, String)> {
    let updates = agent
        .frames
        .iter()
        .filter_map(|frame| json::update(frame, ""));
    updates
        .filter(|update| update["status"] == "completed" || update["status"] == "failed")
        .map(|update| (update["status"].to_string(), update["content"].to_string()))
        .collect()
}

#[test]
fn folders_are_taken_all_or_none_and_the_first_fault_is_named() {
    for program in PROGRAMS {
        let place = Place::new();
        let (work, out) = (place.work(), place.out());
        let at = |name: &str| text(&out.join(name));
        for folder in ["a", "b", "keys/.ssh", "more/id"] {
            fs::create_dir_all(out.join(folder)).expect("made");
        }
        fs::write(out.join("more/id_ed25519"), "k").expect("written");
        fs::write(out.join("file"), "x").expect("written");
        for (to, link) in [
            ("a", "to_a"),
            ("keys/.ssh", "to_keys"),
            ("/etc", "to_etc"),
            ("gone", "to_nothing"),
        ] {
            symlink(to, out.join(link)).expect("linked");
        }
        let mut rows = vec![
            ("a", "not_absolute"),
            ("", "not_absolute"),
            ("~/a", "not_absolute"),
            ("/etc", "protected"),
            ("/", "protected"),
        ];
        let (home, holder) = (text(&place.home()), text(out.parent().expect("one")));
        rows.extend([(home.as_str(), "protected"), (holder.as_str(), "protected")]);
        let mut rows: Vec<(String, &str)> = rows.iter().map(|(p, c)| ((*p).into(), *c)).collect();
        for (name, code) in [
            ("none", "missing"),
            ("a\0b", "missing"),
            ("to_nothing", "missing"),
            ("file", "not_a_directory"),
            ("keys", "protected"),
            ("keys/.ssh", "protected"),
            ("more", "protected"),
            ("to_keys", "link"),
            ("to_etc", "link"),
            ("a/", "overlap"),
            ("to_a", "overlap"),
            ("b/../a", "overlap"),
        ] {
            rows.push((at(name), code));
        }
        rows.push((text(&work), "overlap"));
        // Only root can give a folder away.
        fs::create_dir(out.join("theirs")).expect("made");
        if std::os::unix::fs::chown(out.join("theirs"), Some(54321), None).is_ok() {
            rows.push((at("theirs"), "not_owned"));
        }
        let mut agent = start(program, &place, "{\"text\":\"k\"}\n", &[]);
        let offered = &agent.frames[0]["result"]["agentCapabilities"]["sessionCapabilities"];
        assert_eq!(offered["additionalDirectories"], json!({}));
        for (n, (path, code)) in rows.iter().enumerate() {
            let answer = agent.ask(&new(10 + n as u64, &work, &[at("a"), path.clone()]));
            refused(&answer, &format!("workspace_roots.{code}"), path);
        }
        let many: Vec<String> = (0..33).map(|n| at(&format!("m{n}"))).collect();
        let answer = agent.ask(&new(90, &work, &many));
        refused(&answer, "workspace_roots.too_many", &many[32]);
        many.iter()
            .for_each(|path| fs::create_dir(path).expect("made"));
        session(&agent.ask(&new(91, &work, &many[..32])));
        session(&agent.ask(&new(92, &work, &[at("to_a"), at("b")])));
        let (ended, laws) = agent.finish();
        laws.check();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

#[test]
fn every_tool_works_in_each_folder_and_in_no_other() {
    for program in PROGRAMS {
        let place = Place::new();
        let (work, out) = (place.work(), place.out());
        fs::create_dir(out.join("a")).expect("made");
        fs::write(out.join("a/f"), "needle\n").expect("written");
        fs::write(out.join("beside"), "s").expect("written");
        let a = |name: &str| text(&out.join("a").join(name));
        let lines = script(&[(
            "go",
            &[
                ("read_file", json!({"path": a("f")})),
                (
                    "edit_file",
                    json!({"path": a("f"), "old_string": "needle", "new_string": "pin"}),
                ),
                (
                    "write_file",
                    json!({"path": a("new/g"), "content": "pin\n"}),
                ),
                (
                    "move_file",
                    json!({"source_path": a("new/g"), "destination_path": text(&work.join("g"))}),
                ),
                ("grep", json!({"pattern": "pin", "path": a("")})),
                ("glob", json!({"pattern": "*", "path": a(".")})),
                ("ls", json!({"path": a("")})),
                (
                    "bash",
                    json!({"command": "pwd; touch here", "workdir": a("")}),
                ),
                ("read_file", json!({"path": text(&out.join("beside"))})),
                (
                    "write_file",
                    json!({"path": a("../beside"), "content": "x"}),
                ),
                ("delete_file", json!({"path": a("")})),
            ],
        )]);
        let mut agent = start(program, &place, &lines, &[]);
        let id = session(&agent.ask(&new(5, &work, &[a("")])));
        let answer = agent.ask(&json::prompt(6, &id, "go"));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        let results = results(&agent);
        let ends: Vec<&str> = results
            .iter()
            .map(|(end, _)| end.trim_matches('"'))
            .collect();
        assert_eq!(ends[..8], ["completed"; 8], "{results:#?}");
        assert_eq!(ends[8..], ["failed"; 3], "{results:#?}");
        assert!(results[4].1.contains(&a("f")), "{results:#?}");
        assert!(
            results[8].1.contains("outside the workspace"),
            "{results:#?}"
        );
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        assert_eq!(read(&out.join("a/f")), "pin\n");
        assert_eq!(read(&work.join("g")), "pin\n");
        assert!(out.join("a/here").exists());
        assert_eq!(read(&out.join("beside")), "s");
    }
}

#[test]
fn a_session_keeps_its_folders_in_the_list_and_takes_others_when_it_is_opened_again() {
    for program in PROGRAMS {
        let place = Place::new();
        let (work, out) = (place.work(), place.out());
        let at = |name: &str| text(&out.join(name));
        for name in ["a", "b"] {
            fs::create_dir(out.join(name)).expect("made");
        }
        let lines = script(&[
            ("go", &[]),
            (
                "write",
                &[("write_file", json!({"path": at("b/f"), "content": "x"}))],
            ),
        ]);
        let listed = |agent: &mut Running, id: u64| {
            let answer = agent.ask(&json::request(id, "session/list", json!({})));
            answer["result"]["sessions"][0]["additionalDirectories"].clone()
        };
        let mut agent = start(program, &place, &lines, &[]);
        let id = session(&agent.ask(&new(5, &work, &[at("a"), at("b")])));
        agent.ask(&json::prompt(6, &id, "go"));
        assert_eq!(listed(&mut agent, 7), json!([at("a"), at("b")]));
        for (n, method) in [(10, "session/load"), (20, "session/resume")] {
            let other = agent.ask(&again(n, method, &id, &work, &[at("b")]));
            refused(&other, "acp.additional_directories.session_open", &at("b"));
            let none = agent.ask(&again(n + 1, method, &id, &work, &[]));
            let code = &none["error"]["data"]["code"];
            assert_eq!(*code, "acp.additional_directories.session_open");
            let same = agent.ask(&again(n + 2, method, &id, &work, &[at("b"), at("a")]));
            assert!(same["result"].is_object(), "{same}");
        }
        agent.finish().1.check();
        // Opened by another process: with what the request says, and nothing else.
        let mut agent = start(program, &place, &lines, &[]);
        assert_eq!(listed(&mut agent, 4), json!([at("a"), at("b")]));
        let bad = agent.ask(&again(5, "session/load", &id, &work, &["/etc".into()]));
        refused(&bad, "workspace_roots.protected", "/etc");
        let answer = agent.ask(&again(6, "session/load", &id, &work, &[at("a")]));
        assert!(answer["result"].is_object(), "{answer}");
        agent.ask(&json::prompt(7, &id, "write"));
        assert!(!out.join("b/f").exists());
        assert_eq!(listed(&mut agent, 8), json!([at("a")]));
        agent.finish().1.check();
        let mut agent = start(program, &place, &lines, &[]);
        assert_eq!(listed(&mut agent, 4), json!([at("a")]));
    }
}

#[test]
fn with_the_workspace_only_no_other_folder_is_taken() {
    for program in PROGRAMS {
        let place = Place::new();
        let out = text(&place.out());
        let mut agent = start(program, &place, "{\"text\":\"k\"}\n", &["--workspace-only"]);
        let offered = &agent.frames[0]["result"]["agentCapabilities"]["sessionCapabilities"];
        assert_eq!(offered["additionalDirectories"], Value::Null);
        let answer = agent.ask(&new(5, &place.work(), std::slice::from_ref(&out)));
        refused(&answer, "acp.additional_directories.disabled", &out);
        session(&agent.ask(&new(6, &place.work(), &[])));
    }
}

#[test]
fn a_folder_that_disappears_is_missed_by_name() {
    for program in PROGRAMS {
        let place = Place::new();
        let (work, out) = (place.work(), place.out());
        fs::create_dir(out.join("a")).expect("made");
        let a = |name: &str| text(&out.join("a").join(name));
        let lines = script(&[
            ("there", &[("read_file", json!({"path": a("f")}))]),
            (
                "gone",
                &[
                    ("read_file", json!({"path": a("f")})),
                    (
                        "edit_file",
                        json!({"path": a("f"), "old_string": "x", "new_string": "y"}),
                    ),
                    ("write_file", json!({"path": a("f"), "content": "x"})),
                    ("delete_file", json!({"path": a("f")})),
                    ("grep", json!({"pattern": "x", "path": a("")})),
                    ("bash", json!({"command": "pwd", "workdir": a("")})),
                    ("bash", json!({"command": "pwd"})),
                ],
            ),
            (
                "link",
                &[("write_file", json!({"path": a("f"), "content": "x"}))],
            ),
        ]);
        let mut agent = start(program, &place, &lines, &[]);
        let id = session(&agent.ask(&new(5, &work, &[a("")])));
        agent.ask(&json::prompt(6, &id, "there"));
        fs::remove_dir(out.join("a")).expect("removed");
        agent.ask(&json::prompt(7, &id, "gone"));
        symlink(".", out.join("a")).expect("linked");
        agent.ask(&json::prompt(8, &id, "link"));
        let results = results(&agent);
        let gone = format!(
            "The folder {} of the workspace is gone",
            text(&out.join("a"))
        );
        let outside = "outside the workspace";
        let wanted = [
            ("failed", "does not exist"),
            ("failed", &gone),
            ("failed", &gone),
            ("failed", &gone),
            ("failed", &gone),
            ("failed", &gone),
            ("failed", "does not exist (any more)"),
            ("completed", "exit code 0"),
            ("failed", outside),
        ];
        assert_eq!(results.len(), wanted.len(), "{results:#?}");
        for ((end, said), (wanted, says)) in results.iter().zip(wanted) {
            assert!(end.contains(wanted) && said.contains(says), "{end} {said}");
        }
        assert!(!out.join("f").exists());
        agent.finish().1.check();
    }
}

#[test]
fn a_folder_that_the_model_asks_for_is_added_by_a_card_and_stays_in_the_session() {
    for program in PROGRAMS {
        let place = Place::new();
        let (work, out) = (place.work(), place.out());
        let at = |name: &str| text(&out.join(name));
        for name in ["a", "b"] {
            fs::create_dir(out.join(name)).expect("made");
        }
        let lines = script(&[
            (
                "before",
                &[("write_file", json!({"path": at("a/early"), "content": "x"}))],
            ),
            (
                "ask",
                &[("add_root", json!({"path": at("a"), "reason": "why"}))],
            ),
            (
                "after",
                &[
                    ("write_file", json!({"path": at("a/f"), "content": "x"})),
                    (
                        "bash",
                        json!({"command": format!("echo y > {}", at("a/g"))}),
                    ),
                    ("write_file", json!({"path": at("b/f"), "content": "x"})),
                ],
            ),
            ("more", &[("add_root", json!({"path": at("b")}))]),
        ]);
        // Whatever the posture: it always asks.
        let flags = ["--permission-mode", "bypassPermissions"];
        let mut agent = start(program, &place, &lines, &flags);
        let id = session(&agent.ask(&new(5, &work, &[])));
        for (n, prompt) in [(10, "before"), (11, "ask"), (12, "after")] {
            agent.ask(&json::prompt(n, &id, prompt));
        }
        let [asked] = &agent.asked[..] else {
            panic!("one card: {:#?}", agent.asked);
        };
        let params = asked;
        assert_eq!(params["toolCall"]["title"], format!("add_root {}", at("a")));
        assert!(
            params["toolCall"]["content"].to_string().contains("why"),
            "{asked}"
        );
        let options = params["options"].as_array().expect("options");
        let kinds: Vec<_> = options
            .iter()
            .filter_map(|it| it["kind"].as_str())
            .collect();
        assert_eq!(kinds, ["allow_once", "reject_once"]);
        let ends = json::tool_ends(&agent.frames, &id);
        assert_eq!(
            ends,
            ["failed", "completed", "completed", "completed", "failed"],
            "{:#?}",
            results(&agent)
        );
        assert!(!out.join("a/early").exists() && !out.join("b/f").exists());
        let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
        assert_eq!((read("a/f").as_str(), read("a/g").as_str()), ("x", "y\n"));
        // A no adds nothing.
        agent.cards = [Card::Choose("reject_once")].into();
        agent.ask(&json::prompt(13, &id, "more"));
        let listed = |agent: &mut Running, n: u64| {
            let answer = agent.ask(&json::request(n, "session/list", json!({})));
            answer["result"]["sessions"][0]["additionalDirectories"].clone()
        };
        assert_eq!(listed(&mut agent, 14), json!([at("a")]));
        // It is named by what it was opened with, or by all it has.
        for (n, folders) in [(15, vec![]), (16, vec![at("a")])] {
            let answer = agent.ask(&again(n, "session/resume", &id, &work, &folders));
            assert!(answer["result"].is_object(), "{answer}");
        }
        agent.finish().1.check();
        // Another process has it from the list, and confines commands to it.
        let mut agent = start(program, &place, &lines, &flags);
        let folders = listed(&mut agent, 4);
        assert_eq!(folders, json!([at("a")]));
        let answer = agent.ask(&again(5, "session/resume", &id, &work, &[at("a")]));
        assert!(answer["result"].is_object(), "{answer}");
        for name in ["a/f", "a/g"] {
            fs::remove_file(out.join(name)).expect("removed");
        }
        agent.ask(&json::prompt(6, &id, "after"));
        assert_eq!((read("a/f").as_str(), read("a/g").as_str()), ("x", "y\n"));
        assert!(agent.asked.is_empty(), "{:#?}", agent.asked);
        agent.finish().1.check();
    }
}

#[test]
fn no_posture_and_no_flag_lets_a_folder_be_added_unasked() {
    for program in PROGRAMS {
        for (flags, cards) in [
            (vec!["--permission-mode", "read-only"], 0),
            (vec!["--permission-mode", "dontAsk"], 0),
            (vec!["--permission-mode", "auto"], 1),
            (
                vec!["--workspace-only", "--permission-mode", "bypassPermissions"],
                0,
            ),
        ] {
            let place = Place::new();
            let out = text(&place.out());
            let lines = script(&[("ask", &[("add_root", json!({"path": out}))])]);
            let mut agent = start(program, &place, &lines, &flags);
            agent.cards = [Card::Choose("reject_once")].into();
            let id = session(&agent.ask(&new(5, &place.work(), &[])));
            agent.ask(&json::prompt(6, &id, "ask"));
            assert_eq!(json::tool_ends(&agent.frames, &id), ["failed"], "{flags:?}");
            assert_eq!(agent.asked.len(), cards, "{flags:?}");
            agent.finish().1.check();
        }
    }
}
