//! `sessions`, and conversations that go on: in the terminal, in an editor, in the other program.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use reasonix_tests::laws::Laws;
use serde::Deserialize;

use crate::{Ended, PROGRAMS, Place, arg, finish, say};

/// Answers whatever is asked, with a call in between.
const SCRIPT: &str = r#"{"text":"I look.\n"}
{"tool":"read_file","args":{"path":"a.txt"},"id":"r"}
{"finish":"tool_calls"}
{"text":"Done."}
{"finish":"stop"}
"#;

/// A model for `place`.
fn model(place: &Place, script: &str) -> String {
    place.write("work/a.txt", "some text\n");
    format!("script:{}", arg(&place.write("script.jsonl", script)))
}

/// `run` with `args`.
#[track_caller]
fn run(place: &Place, program: &str, args: &[&str]) -> Ended {
    let model = model(place, SCRIPT);
    let mut all = vec!["run", "--json", "--model", &model];
    all.extend(args);
    place.run(program, &all)
}

/// The id of the session in which `prompt` was said.
#[track_caller]
fn said(place: &Place, program: &str, args: &[&str]) -> String {
    let ended = run(place, program, args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let first = ended.out.lines().next().expect("a line");
    let last = ended.out.lines().last().expect("a line");
    let id = text_of(first, "sessionId");
    assert_eq!(text_of(last, "sessionId"), id, "{last}");
    id
}

/// The text of a member of a JSON line; empty if there is none.
fn text_of(line: &str, name: &str) -> String {
    let rest = line.split_once(&format!("\"{name}\":\"")).map(|it| it.1);
    let text = rest.and_then(|rest| rest.split_once('"')).map(|it| it.0);
    text.unwrap_or_default().into()
}

/// `sessions` with `args`, which must do what it is for.
#[track_caller]
fn sessions(place: &Place, program: &str, args: &[&str]) -> String {
    let mut all = vec!["sessions"];
    all.extend(args);
    let ended = place.run(program, &all);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    ended.out
}

/// `sessions` or `run` with `args`, which must be refused with the reason.
#[track_caller]
fn refused(place: &Place, program: &str, args: &[&str], code: i32, why: &str) {
    let ended = place.run(program, args);
    assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
    assert!(ended.err.contains(why), "{args:?}: {}", ended.err);
    assert!(!ended.err.contains("panicked"), "{args:?}: {}", ended.err);
}

/// A stored session, made by hand.
fn store(place: &Place, id: &str, title: &str) {
    let cwd = place.path("work");
    let folder = place.path(&format!("home/.reasonix/sessions/{id}"));
    fs::create_dir_all(&folder).expect("made");
    let cwd = arg(&cwd);
    let text = format!(
        "{{\"at\":1,\"type\":\"session\",\"v\":1,\"id\":\"{id}\",\"cwd\":\"{cwd}\",\"created\":1}}\n\
         {{\"at\":2,\"type\":\"user\",\"id\":1,\"text\":\"{title}\"}}\n"
    );
    fs::write(folder.join("transcript.jsonl"), text).expect("written");
}

/// An editor at the other end of `acp`.
struct Editor {
    child: Child,
    out: BufReader<ChildStdout>,
    laws: Laws,
    asked: u32,
    /// What was not an answer.
    seen: String,
}

#[derive(Deserialize)]
struct Answer {
    id: Option<u32>,
    method: Option<String>,
}

impl Editor {
    fn new(place: &Place, program: &str, args: &[&str]) -> Self {
        let model = model(place, SCRIPT);
        let mut all = vec!["acp", "--model", &model];
        all.extend(args);
        let mut command = place.command(program, &all);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut editor = Self {
            child,
            out,
            laws: Laws::default(),
            asked: 0,
            seen: String::new(),
        };
        editor.ask(
            "initialize",
            "\"protocolVersion\":1,\"clientCapabilities\":{}",
        );
        editor
    }

    /// The answer to a request with these members.
    fn ask(&mut self, method: &str, params: &str) -> String {
        self.asked += 1;
        let id = self.asked;
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{{params}}}}}\n"
        );
        self.laws.sent(line.as_bytes());
        say(&mut self.child, &line);
        loop {
            let mut line = String::new();
            let count = self.out.read_line(&mut line).expect("lines");
            assert_ne!(count, 0, "it ended before it answered {method}");
            self.laws.heard(line.as_bytes());
            let answer: Answer = serde_json::from_str(&line).expect("a frame");
            if answer.method.is_none() && answer.id == Some(id) {
                return line;
            }
            self.seen.push_str(&line);
        }
    }

    /// Opens a new session.
    fn open(&mut self, place: &Place) -> String {
        let cwd = place.path("work");
        let cwd = arg(&cwd);
        let answer = self.ask(
            "session/new",
            &format!("\"cwd\":\"{cwd}\",\"mcpServers\":[]"),
        );
        text_of(&answer, "sessionId")
    }

    /// Opens a stored session, with what was seen of it.
    fn load(&mut self, place: &Place, id: &str) -> String {
        let cwd = place.path("work");
        let cwd = arg(&cwd);
        self.seen.clear();
        let answer = self.ask(
            "session/load",
            &format!("\"sessionId\":\"{id}\",\"cwd\":\"{cwd}\",\"mcpServers\":[]"),
        );
        assert!(answer.contains("\"result\""), "{answer}");
        format!("{}{answer}", std::mem::take(&mut self.seen))
    }

    fn prompt(&mut self, id: &str, text: &str) {
        let answer = self.ask(
            "session/prompt",
            &format!(
                "\"sessionId\":\"{id}\",\"prompt\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]"
            ),
        );
        assert!(answer.contains("end_turn"), "{answer}");
    }

    /// Closes it.
    fn end(mut self) {
        self.laws.check();
        drop(self.child.stdin.take());
        drop(self.out);
        assert_eq!(crate::wait(&mut self.child).code(), Some(0));
    }
}

#[test]
fn the_list_has_the_sessions_of_this_folder_and_says_when() {
    let place = Place::new();
    fs::create_dir(place.path("other")).expect("a folder");
    let other = place.path("other");
    for (program, twin) in [(PROGRAMS[0], PROGRAMS[1]), (PROGRAMS[1], PROGRAMS[0])] {
        let first = said(&place, program, &["the first prompt"]);
        let away = said(&place, program, &["--cwd", arg(&other), "an\nother"]);
        let second = said(&place, program, &["the second prompt"]);

        let list = sessions(&place, twin, &["list"]);
        let lines: Vec<_> = list.lines().take(2).collect();
        let wanted = [
            format!("{}  just now  the second prompt", &second[..8]),
            format!("{}  just now  the first prompt", &first[..8]),
        ];
        assert_eq!(lines, wanted, "newest first: {list}");
        assert!(!list.contains(&away[..8]), "{list}");
        assert!(!list.contains('\u{1b}'), "colours in a pipe: {list}");

        let there = sessions(&place, twin, &["list", "--cwd", arg(&other)]);
        assert!(
            there.starts_with(&format!("{}  just now  an other\n", &away[..8])),
            "{there}"
        );
        let all = sessions(&place, twin, &["list", "--all"]);
        for id in [&first, &away, &second] {
            assert!(all.contains(&id[..8]), "{all}");
        }
        assert!(all.contains(arg(&other)), "the folder is named: {all}");

        let json = sessions(&place, twin, &["list", "--json"]);
        let line = json.lines().next().expect("a line");
        assert_eq!(text_of(line, "sessionId"), second);
        assert_eq!(text_of(line, "title"), "the second prompt");
        assert_eq!(text_of(line, "cwd"), arg(&place.path("work")));
        let updated = text_of(line, "updatedAt");
        assert!(updated.ends_with('Z') && updated.contains('T'), "{line}");
    }
    let count = sessions(&place, PROGRAMS[0], &["list", "--all"])
        .lines()
        .count();
    assert_eq!(count, 6);
}

#[cfg(unix)]
#[test]
fn a_folder_is_the_same_by_a_link() {
    let place = Place::new();
    std::os::unix::fs::symlink(place.path("work"), place.path("link")).expect("a link");
    let link = place.path("link");
    let mut editor = Editor::new(&place, PROGRAMS[0], &[]);
    let params = format!("\"cwd\":\"{}\",\"mcpServers\":[]", arg(&link));
    let id = text_of(&editor.ask("session/new", &params), "sessionId");
    editor.prompt(&id, "by the link");
    editor.end();
    let list = sessions(&place, PROGRAMS[1], &["list"]);
    assert!(list.contains("by the link"), "{list}");
    assert_eq!(said(&place, PROGRAMS[1], &["--continue", "and on"]), id);
}

#[test]
fn where_nothing_was_said_the_list_is_empty() {
    for program in PROGRAMS {
        let place = Place::new();
        for (args, why) in [
            (&["sessions", "list"][..], "--all"),
            (&["sessions", "list", "--all"], "no session"),
        ] {
            let ended = place.run(program, args);
            assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""));
            assert!(ended.err.contains(why), "{}", ended.err);
        }
        let ended = place.run(program, &["sessions", "list", "--json"]);
        assert_eq!((ended.out.as_str(), ended.err.as_str()), ("", ""));
        assert!(
            !place.path("home/.reasonix").exists(),
            "a look makes nothing"
        );
    }
}

#[test]
fn a_session_is_shown_as_it_was_seen() {
    let place = Place::new();
    for program in PROGRAMS {
        let id = said(&place, program, &["say\nsomething"]);
        // There is no model and no key.
        for asked in [id.as_str(), &id[..8], "last"] {
            let shown = sessions(&place, program, &["show", asked]);
            let (head, body) = shown.split_once("\n\n").expect("a head");
            assert!(head.starts_with(&format!("Session {id}\n")), "{head}");
            assert_eq!(
                body,
                "> say\n> something\n\nI look.\n✓ read_file a.txt\nDone.\n"
            );
            assert!(!shown.contains('\u{1b}'), "colours in a pipe: {shown}");
        }
        let json = sessions(&place, program, &["show", &id, "--json"]);
        let file = place.read(&format!("home/.reasonix/sessions/{id}/transcript.jsonl"));
        assert_eq!(Some(json), file, "the lines as they are");
    }
}

#[test]
fn what_cannot_be_read_is_passed_over_and_said() {
    let place = Place::new();
    store(&place, "aa", "hello");
    let path = place.path("home/.reasonix/sessions/aa/transcript.jsonl");
    let whole = fs::read_to_string(&path).expect("there");
    for (text, unreadable) in [
        (format!("{whole}{{\"type\":\"assi"), ""),
        (
            format!("{whole}\0\0\n{{\"type\":\"end\",\"reason\":\"end_turn\"}}\n"),
            "One line",
        ),
    ] {
        fs::write(&path, text).expect("written");
        for args in [
            &["sessions", "show", "aa"][..],
            &["sessions", "show", "aa", "--json"],
        ] {
            let ended = place.run(PROGRAMS[0], args);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert!(ended.out.contains("hello"), "{ended:?}");
            assert!(ended.err.contains(unreadable), "{ended:?}");
            assert_eq!(ended.err.is_empty(), unreadable.is_empty(), "{ended:?}");
            let json = |line: &str| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
            assert!(args.len() < 4 || ended.out.lines().all(json), "{ended:?}");
        }
    }
}

#[test]
fn an_id_must_say_which() {
    for program in PROGRAMS {
        let place = Place::new();
        store(&place, "abc1", "one");
        store(&place, "abc2", "two");
        let secret = place.write("home/secret", "secret\n");
        for (id, why) in [
            ("abc", "2 sessions begin with abc:\n  abc1\n  abc2"),
            ("b", "there is no session b"),
            ("../../secret", "no session id"),
            ("..", "no session id"),
            (arg(&secret), "no session id"),
            ("", "no session id"),
        ] {
            for args in [
                &["sessions", "show", id][..],
                &["sessions", "show", "--json", id],
                &["sessions", "delete", "--yes", "abc1", id],
                &[
                    "run",
                    "--model",
                    &model(&place, SCRIPT),
                    "--session",
                    id,
                    "x",
                ],
            ] {
                refused(&place, program, args, 2, why);
            }
        }
        let left = sessions(&place, program, &["list"]).lines().count();
        assert_eq!(left, 2, "all or nothing is deleted");
        assert!(place.read("home/secret").is_some());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_standard_output_is_called_that() {
    let full = "cannot write to standard output: No space left on device";
    for program in PROGRAMS {
        let place = Place::new();
        store(&place, "aa", "one");
        let model = model(&place, SCRIPT);
        for args in [
            &["sessions", "show", "aa"][..],
            &["sessions", "show", "--json", "aa"],
            &["run", "--model", &model, "hello"],
            &["run", "--json", "--model", &model, "hello"],
        ] {
            let out = fs::File::options().write(true).open("/dev/full");
            let mut command = place.command(program, args);
            command.stdin(Stdio::null()).stderr(Stdio::piped());
            command.stdout(out.expect("it is there"));
            let ended = command.output().expect("it runs");
            let err = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(1), "{args:?}: {err}");
            assert!(err.contains(full), "{args:?}: {err}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_home_that_is_no_text_keeps_nothing_and_that_is_said() {
    use std::os::unix::ffi::OsStringExt as _;
    for program in PROGRAMS {
        let place = Place::new();
        let model = model(&place, SCRIPT);
        let mut command = place.command(program, &["run", "--model", &model, "hello"]);
        let mut home = place.path("home").into_os_string().into_vec();
        home.extend(b"/\xff");
        command.env("REASONIX_HOME", std::ffi::OsString::from_vec(home));
        command.stdin(Stdio::null());
        let ended = command.output().expect("it runs");
        let err = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{err}");
        assert!(
            err.contains("is no UTF-8 text: nothing is kept there"),
            "{err}"
        );
    }
}

#[test]
fn what_is_deleted_is_gone() {
    for program in PROGRAMS {
        let place = Place::new();
        for (id, title) in [("aa", "one"), ("ab", "two"), ("b", "three")] {
            store(&place, id, title);
        }
        refused(&place, program, &["sessions", "delete", "b"], 2, "--yes");
        let last = ["sessions", "delete", "--yes", "last"];
        refused(&place, program, &last, 2, "give its id");
        let out = sessions(&place, program, &["delete", "--yes", "aa", "b", "b"]);
        assert_eq!(out, "Deleted aa\nDeleted b\n");
        for id in ["aa", "b"] {
            assert!(
                !place
                    .path(&format!("home/.reasonix/sessions/{id}"))
                    .exists()
            );
        }
        let left = sessions(&place, program, &["list"]);
        assert!(left.lines().count() == 1 && left.contains("two"), "{left}");
    }
}

#[test]
fn what_no_list_has_can_be_named_in_full() {
    let place = Place::new();
    let mut editor = Editor::new(&place, PROGRAMS[0], &[]);
    let id = editor.open(&place);
    editor.end();
    assert!(
        !sessions_err(&place, &["list"]).is_empty(),
        "it was not prompted"
    );
    let shown = sessions(&place, PROGRAMS[0], &["show", &id]);
    assert!(shown.starts_with(&format!("Session {id}\n")), "{shown}");
    sessions(&place, PROGRAMS[0], &["delete", "--yes", &id]);
    assert!(
        !place
            .path(&format!("home/.reasonix/sessions/{id}"))
            .exists()
    );
}

fn sessions_err(place: &Place, args: &[&str]) -> String {
    let mut all = vec!["sessions"];
    all.extend(args);
    place.run(PROGRAMS[0], &all).err
}

#[test]
fn a_session_that_is_open_elsewhere_can_be_read_and_nothing_else() {
    for (program, twin) in [(PROGRAMS[0], PROGRAMS[1]), (PROGRAMS[1], PROGRAMS[0])] {
        let place = Place::new();
        let mut editor = Editor::new(&place, program, &[]);
        let id = editor.open(&place);
        editor.prompt(&id, "from the editor");
        let holder = format!("({} on ", editor.child.id());
        let model = model(&place, SCRIPT);
        let shown = sessions(&place, twin, &["show", "last"]);
        assert!(shown.contains("> from the editor\n"), "{shown}");
        let delete = ["sessions", "delete", "--yes", &id];
        refused(&place, twin, &delete, 1, &holder);
        let run = ["run", "--model", &model, "--continue", "x"];
        refused(&place, twin, &run, 1, &holder);
        // The editor did not notice.
        editor.prompt(&id, "again");
        editor.end();
        assert_eq!(said(&place, twin, &["--session", &id[..8], "on"]), id);
        sessions(&place, twin, &["delete", "--yes", &id]);
    }
}

#[test]
fn a_conversation_goes_on_in_the_terminal_the_editor_and_the_other_program() {
    let place = Place::new();
    let [one, other] = PROGRAMS;
    let id = said(&place, one, &["terminal one"]);
    assert_eq!(said(&place, other, &["--continue", "terminal two"]), id);

    let mut editor = Editor::new(&place, one, &[]);
    let seen = editor.load(&place, &id);
    assert!(
        seen.contains("terminal one") && seen.contains("terminal two"),
        "{seen}"
    );
    editor.prompt(&id, "editor one");
    editor.end();

    assert_eq!(said(&place, one, &["--session", &id, "terminal three"]), id);
    let mut editor = Editor::new(&place, other, &[]);
    let seen = editor.load(&place, &id);
    editor.end();
    let shown = sessions(&place, one, &["show", &id]);
    let mut from = (0, 0);
    for prompt in [
        "terminal one",
        "terminal two",
        "editor one",
        "terminal three",
    ] {
        let find = |text: &str, from: usize| Some(from + text[from..].find(prompt)?);
        from = (
            find(&seen, from.0).expect("seen in the editor, in order"),
            find(&shown, from.1).expect("shown, in order"),
        );
    }
    assert_eq!(shown.matches("✓ read_file a.txt").count(), 4, "{shown}");
    assert_eq!(sessions(&place, one, &["list", "--all"]).lines().count(), 1);
}

#[test]
fn what_goes_on_is_said_once_and_not_replayed() {
    let place = Place::new();
    for program in PROGRAMS {
        let id = said(&place, program, &["remember me"]);
        let model = model(&place, SCRIPT);
        let args = ["run", "--model", &model, "--continue", "more"];
        let ended = place.run(program, &args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let line = format!("Going on with {} “remember me”, just now\n", &id[..8]);
        assert_eq!(ended.err, line);
        assert_eq!(ended.out.matches("Done.").count(), 1, "{}", ended.out);
        assert!(
            !ended.out.contains("To go on"),
            "for terminals only: {}",
            ended.out
        );
        let quiet = ["run", "--quiet", "--model", &model, "--continue", "more"];
        assert_eq!(place.run(program, &quiet).err, "");
        let ended = run(&place, program, &["--continue", "more"]);
        let first = ended.out.lines().next().expect("a line");
        assert!(first.ends_with(",\"resumed\":true}"), "{first}");
    }
}

#[test]
fn without_a_session_nothing_goes_on() {
    for program in PROGRAMS {
        let place = Place::new();
        fs::create_dir(place.path("other")).expect("a folder");
        let other = place.path("other");
        let model = model(&place, SCRIPT);
        let run = |rest: &[&'static str]| [&["run", "--json", "--model", &model], rest].concat();
        let none = run(&["--continue", "x"]);
        refused(&place, program, &none, 2, "there is no session of");
        let ended = place.run(program, &none);
        let last = ended.out.lines().last().expect("a last line");
        assert!(
            last.starts_with("{\"type\":\"error\"") && last.contains("\"exit\":2"),
            "{last}"
        );

        let id = said(&place, program, &["--cwd", arg(&other), "there"]);
        refused(&place, program, &none, 2, "there is no session of");
        let away = ["run", "--model", &model, "--session", &id, "x"];
        let why = format!("--cwd '{}'", arg(&other));
        refused(&place, program, &away, 2, &why);
        let there = ["--cwd", arg(&other), "--session", &id, "x"];
        assert_eq!(said(&place, program, &there), id);
        fs::remove_dir_all(&other).expect("removed");
        refused(&place, program, &away, 2, "not there any more");
        let list = sessions(&place, program, &["list", "--cwd", arg(&other)]);
        assert!(
            list.contains("there"),
            "sessions outlive their folders: {list}"
        );
    }
}

/// The options of a session as an editor sees them.
fn options(place: &Place, id: &str) -> String {
    let mut editor = Editor::new(place, PROGRAMS[0], &[]);
    let seen = editor.load(place, id);
    editor.end();
    seen
}

#[test]
fn flags_change_a_session_that_goes_on_and_it_keeps_the_rest() {
    for program in PROGRAMS {
        let place = Place::new();
        let mut editor = Editor::new(&place, program, &[]);
        let id = editor.open(&place);
        editor.prompt(&id, "hello");
        let set = |option: &str, value: &str| {
            format!("\"sessionId\":\"{id}\",\"configId\":\"{option}\",\"value\":\"{value}\"")
        };
        editor.ask("session/set_config_option", &set("tool_approval", "auto"));
        editor.ask("session/set_config_option", &set("agent_preset", "light"));
        editor.end();

        let model = model(&place, SCRIPT);
        let plain = ["run", "--model", &model, "--continue", "x"];
        let ended = place.run(program, &plain);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.err.ends_with("; approval: auto\n"), "{}", ended.err);

        said(
            &place,
            program,
            &["--continue", "--permission-mode", "ask", "x"],
        );
        let seen = options(&place, &id);
        for (option, value) in [("tool_approval", "ask"), ("agent_preset", "light")] {
            let at = seen.rfind(&format!("\"id\":\"{option}\"")).expect(option);
            let current = text_of(&seen[at..], "currentValue");
            assert_eq!(current, value, "{option}");
        }
        said(
            &place,
            program,
            &["--continue", "--preset", "delivery", "x"],
        );
        let seen = options(&place, &id);
        let at = seen.rfind("\"id\":\"agent_preset\"").expect("there");
        assert_eq!(text_of(&seen[at..], "currentValue"), "delivery");
    }
}

#[test]
fn ephemeral_leaves_nothing_behind() {
    for program in PROGRAMS {
        let place = Place::new();
        let home = place.path("a-home");
        let model = model(&place, SCRIPT);
        let mut command = place.command(
            program,
            &["run", "--ephemeral", "--model", &model, "say something"],
        );
        let child = command.env("REASONIX_HOME", &home).spawn();
        let ended = finish(child.expect("it starts"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!home.exists(), "run");

        let mut editor = Editor::new(&place, program, &["--ephemeral"]);
        let id = editor.open(&place);
        editor.prompt(&id, "say something");
        editor.ask("session/list", "");
        editor.end();
        assert!(!place.path("home/.reasonix").exists(), "acp");
    }
}
