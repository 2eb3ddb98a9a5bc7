//! Flags: what is taken, what is refused and how.

use crate::{PROGRAMS, Place, arg};

#[track_caller]
fn refused(place: &Place, args: &[&str], why: &str) {
    for program in PROGRAMS {
        let ended = place.run(program, args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert_eq!(
            ended.out, "",
            "{args:?}: nothing but frames on standard output"
        );
        assert!(ended.err.contains(why), "{args:?}: {}", ended.err);
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let place = Place::new();
    for (args, why) in [
        (&["acp", "--nope"][..], "--nope"),
        (&["acp", "--permission-mode", "plan"], "read-only"),
        (&["acp", "--permission-mode", "yolo"], "bypassPermissions"),
        (&["acp", "--preset", "economy"], "light"),
        (&["acp", "--max-steps", "0"], "--max-steps"),
        (&["acp", "--model", "nobody/nothing"], "reasonix setup"),
        (&["acp", "--log-file", "/nonexistent/x"], "--log-file"),
        (
            &["run", "--model", "script:/nonexistent", "x"],
            "/nonexistent",
        ),
        (&["run", "--cwd", "/nonexistent", "x"], "/nonexistent"),
        (&["run", " "], "empty"),
        (&["run"], "PROMPT"),
        (&["run", "--continue", "--session", "a", "x"], "--session"),
        (&["run", "--continue", "--ephemeral", "x"], "--ephemeral"),
        (
            &["run", "--session", "a", "--ephemeral", "x"],
            "--ephemeral",
        ),
        (&["sessions", "list", "--all", "--cwd", "/"], "--all"),
        (&["setup", "--provider", "a b"], "--provider"),
        (&["setup", "--provider", "local"], "--model is missing"),
        (&["setup", "--provider", "deepseek"], "--from-env"),
    ] {
        refused(&place, args, why);
    }
}

#[test]
fn a_model_that_is_not_configured_is_refused_with_the_list() {
    let place = Place::new();
    std::fs::create_dir(place.path("home/.reasonix")).expect("home");
    place.write(
        "home/.reasonix/config.toml",
        "[providers.local]\nbase_url = 'http://127.0.0.1:1'\n\
         models = [{ id = 'tiny', alias = 'small' }]\n",
    );
    refused(&place, &["acp", "--model", "large"], "local/tiny (small)");
    refused(
        &place,
        &["run", "--model", "large", "x"],
        "local/tiny (small)",
    );
}

#[test]
fn a_bad_line_of_a_script_is_named() {
    let place = Place::new();
    let script = place.write(
        "work/s.jsonl",
        "{\"text\":\"a\"}\n\n{\"finish\":\"never\"}\n",
    );
    let model = format!("script:{}", arg(&script));
    refused(&place, &["run", "--model", &model, "x"], "line 3");
    refused(&place, &["acp", "--model", &model], "line 3");
}

#[test]
fn the_version_names_the_protocol() {
    let place = Place::new();
    for program in PROGRAMS {
        let ended = place.run(program, &["--version"]);
        assert_eq!(ended.code, Some(0));
        let name = program.rsplit('/').next().expect("a name");
        let version = env!("CARGO_PKG_VERSION");
        let wanted = format!("{name} {version} (ACP v1, schema 1.20.0)\n");
        assert_eq!(ended.out, wanted);
    }
}

#[test]
fn help_says_what_there_is() {
    let place = Place::new();
    for (name, args) in [
        ("help", &["--help"][..]),
        ("help_acp", &["acp", "--help"]),
        ("help_run", &["run", "--help"]),
        ("help_demo", &["demo", "--help"]),
        ("help_setup", &["setup", "--help"]),
        ("help_doctor", &["doctor", "--help"]),
        ("help_mcp", &["mcp", "--help"]),
        ("help_mcp_list", &["mcp", "list", "--help"]),
        ("help_mcp_test", &["mcp", "test", "--help"]),
        ("help_mcp_approve", &["mcp", "approve", "--help"]),
        ("help_mcp_revoke", &["mcp", "revoke", "--help"]),
        ("help_sessions", &["sessions", "--help"]),
        ("help_sessions_list", &["sessions", "list", "--help"]),
        ("help_sessions_show", &["sessions", "show", "--help"]),
        ("help_sessions_delete", &["sessions", "delete", "--help"]),
    ] {
        let ended = place.run(PROGRAMS[0], args);
        assert_eq!(ended.code, Some(0));
        insta::assert_snapshot!(name, ended.out);
    }
}

#[test]
fn completions_and_the_manual_know_the_commands() {
    let place = Place::new();
    for args in [&["completions", "bash"][..], &["man"]] {
        let ended = place.run(PROGRAMS[0], args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for word in ["acp", "demo", "setup", "sessions", "delete", "continue"] {
            assert!(ended.out.contains(word), "{args:?}: {word}");
        }
        assert!(ended.out.contains("frames"), "{args:?}: flags of commands");
    }
}

#[test]
fn a_reader_that_is_gone_is_no_panic() {
    let place = Place::new();
    let script = place.write(
        "work/s.jsonl",
        "{\"repeat\":{\"chunks\":2000,\"size\":900}}\n",
    );
    let model = format!("script:{}", arg(&script));
    let ended = place.run(PROGRAMS[0], &["run", "--model", &model, "x"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for (args, code) in [
        (&["--help"][..], 0),
        (&["completions", "zsh"], 0),
        (&["man"], 0),
        (&["sessions", "list", "--all"], 0),
        (&["sessions", "show", "last"], 0),
        (&["sessions", "show", "last", "--json"], 0),
        (&["run", "--model", &model, "x"], 1),
        (&["run", "--json", "--model", &model, "x"], 1),
    ] {
        for program in PROGRAMS {
            let mut child = place.command(program, args).spawn().expect("it starts");
            drop(child.stdout.take());
            let ended = crate::finish(child);
            assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
            assert!(!ended.err.contains("panicked"), "{args:?}: {}", ended.err);
        }
    }
}
