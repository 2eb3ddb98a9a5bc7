//! `mcp`: which servers there are, whether one works, and which of a project's may be started.

use std::fs;

use crate::{Ended, PROGRAMS, Place};

/// A server with one tool that says hello.
const GOOD: &str = r#"read -r line
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"0.1"}}}'
read -r line
read -r line
echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"hello","description":"Says hello","inputSchema":{"type":"object"}}]}}'
cat >/dev/null
"#;

/// One that says its key and dies.
const BAD: &str = "echo \"no database for $KEY\" >&2\nexit 3\n";

const KEY: &str = "sk-of-a-server-0123456789";

fn place() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.path("home/.reasonix")).expect("made");
    place.write("work/good.sh", GOOD);
    place.write("work/bad.sh", BAD);
    let config = format!(
        "[mcp.servers.docs]\ncommand = \"sh\"\nargs = [\"good.sh\"]\n\n\
         [mcp.servers.broken]\ncommand = \"sh\"\nargs = [\"bad.sh\"]\nenv = {{ KEY = \"{KEY}\" }}\n"
    );
    place.write("home/.reasonix/config.toml", &config);
    project(&place, "good.sh");
    place
}

/// The project's own file: a server `own` that runs this, and one that config.toml has too.
fn project(place: &Place, script: &str) {
    let text = format!(
        r#"{{"mcpServers":{{"own":{{"command":"sh","args":["{script}"],"env":{{"KEY":"{KEY}"}}}},
            "docs":{{"url":"http://127.0.0.1:1/mcp"}}}}}}"#
    );
    place.write("work/.mcp.json", &text);
}

/// `mcp` with `args`: how it ends and what it prints holds.
#[track_caller]
fn check(place: &Place, program: &str, args: &[&str], code: i32, holds: &[&str]) -> Ended {
    let all: Vec<&str> = ["mcp"].iter().chain(args).copied().collect();
    let ended = place.run(program, &all);
    let said = format!("{}{}", ended.out, ended.err);
    assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
    for text in holds {
        assert!(said.contains(text), "{args:?}: {text}: {ended:?}");
    }
    assert!(!said.contains(KEY), "{args:?}: {ended:?}");
    assert!(!said.contains("panicked"), "{args:?}: {ended:?}");
    ended
}

#[test]
fn servers_are_listed_with_where_they_come_from() {
    for program in PROGRAMS {
        let place = place();
        let listed = check(
            &place,
            program,
            &["list"],
            0,
            &[
                "starts with a session",
                "not approved",
                "not used: config.toml has one of this name",
                "reasonix mcp approve 'own'",
            ],
        );
        let names = listed.out.lines().map(|line| line.split(' ').next());
        let names: Vec<_> = names.flatten().collect();
        assert_eq!(names, ["broken", "docs", "docs", "own"]);
        let lines = check(&place, program, &["list", "--json"], 0, &[]).out;
        let lines: Vec<_> = lines.lines().collect();
        assert_eq!(
            lines[3],
            r#"{"name":"own","source":"project","transport":"stdio","what":"sh good.sh","status":"pending","approval":"pending"}"#
        );
        assert!(lines[2].contains(r#""status":"disabled""#), "{}", lines[2]);

        for (text, line) in [
            ("{\"mcpServers\":[]}", "line 1"),
            ("{\n\"mcpServers\":", "line 2"),
            ("{\"mcpServers\":\n{\n\"own\":{}}}", "line 3"),
        ] {
            place.write("work/.mcp.json", text);
            let said = format!("work/.mcp.json is not used: {line}");
            let bad = [said.as_str()];
            let listed = check(&place, program, &["list"], 2, &bad);
            assert!(listed.out.contains("docs"), "{listed:?}");
            assert!(listed.err.contains(&said), "{listed:?}");
            check(&place, program, &["list", "--json"], 2, &bad);
            check(&place, program, &["approve", "own"], 2, &bad);
            check(&place, program, &["test", "own"], 2, &bad);
            check(&place, program, &["test", "docs"], 0, &[]);
            check(&place, program, &["revoke", "own"], 0, &[]);
        }
        place.write("home/.reasonix/config.toml", "[mcp.servers.a]\n");
        check(&place, program, &["list"], 2, &["config.toml, line 1"]);
    }
}

#[test]
fn a_server_is_tried_out_without_a_session() {
    for program in PROGRAMS {
        let place = place();
        check(
            &place,
            program,
            &["test", "docs"],
            0,
            &[
                "ready after",
                "shell 0.1",
                "2025-11-25",
                "docs__hello",
                "Says hello",
            ],
        );
        let json = check(
            &place,
            program,
            &["test", "docs", "--json"],
            0,
            &[
                r#"{"name":"docs","source":"config","transport":"stdio","status":"ready","#,
                r#""server":"shell 0.1","protocolVersion":"2025-11-25","tools":[{"name":"docs__hello","description":"Says hello"}]}"#,
            ],
        );
        assert_eq!(json.out.lines().count(), 1, "{json:?}");
        check(
            &place,
            program,
            &["test", "broken"],
            1,
            &["exit code 3", "no database for [redacted]"],
        );
        check(
            &place,
            program,
            &["test", "broken", "--json"],
            1,
            &[r#""status":"failed""#, "no database for [redacted]"],
        );
        check(
            &place,
            program,
            &["test", "nobody"],
            2,
            &["no MCP server nobody", "broken, docs"],
        );
        let stored = place.path("home/.reasonix/sessions");
        assert!(!stored.exists(), "no session was made");
    }
}

#[test]
fn a_project_s_server_starts_once_it_is_approved_and_till_it_changes() {
    for program in PROGRAMS {
        let place = place();
        check(
            &place,
            program,
            &["test", "own"],
            3,
            &["sh good.sh", "mcp approve 'own'"],
        );
        check(
            &place,
            program,
            &["approve", "docs"],
            2,
            &["that one counts"],
        );
        check(
            &place,
            program,
            &["approve", "broken"],
            2,
            &["needs no approval"],
        );
        check(
            &place,
            program,
            &["approve", "own", "nobody"],
            2,
            &["no MCP server nobody"],
        );
        check(&place, program, &["test", "own"], 3, &[]);
        check(
            &place,
            program,
            &["approve", "own"],
            0,
            &[
                "own is approved for",
                "command: sh",
                "argument: good.sh",
                "KEY",
            ],
        );
        check(
            &place,
            program,
            &["approve", "own"],
            0,
            &["was approved before"],
        );
        check(&place, program, &["test", "own"], 0, &["own__hello"]);
        check(&place, program, &["list"], 0, &["  approved  "]);

        project(&place, "bad.sh");
        check(
            &place,
            program,
            &["list"],
            0,
            &["changed since it was approved"],
        );
        check(&place, program, &["test", "own"], 3, &["sh bad.sh"]);
        project(&place, "good.sh");
        check(&place, program, &["test", "own"], 0, &[]);

        let json = ["revoke", "own", "--json"];
        check(
            &place,
            program,
            &json,
            0,
            &[r#""approved":false"#, r#""changed":true"#],
        );
        check(
            &place,
            program,
            &["revoke", "own"],
            0,
            &["was not approved"],
        );
        check(&place, program, &["test", "own"], 3, &[]);

        place.write("home/.reasonix/mcp-approvals.json", "{\"schemaVersion\":2}");
        check(
            &place,
            program,
            &["approve", "own"],
            2,
            &["another version"],
        );
        let kept = place.read("home/.reasonix/mcp-approvals.json");
        assert_eq!(kept.as_deref(), Some("{\"schemaVersion\":2}"));
    }
}

#[cfg(unix)]
#[test]
fn what_is_approved_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = place();
    check(&place, PROGRAMS[0], &["approve", "own"], 0, &[]);
    let path = place.path("home/.reasonix/mcp-approvals.json");
    let mode = fs::metadata(path).expect("written").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
