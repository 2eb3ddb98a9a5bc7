//! read_file, ls, glob and grep: what they show, and what nothing is found of.

use super::files::check_refused;
use super::host::World;
use crate::limits::Limits;
use crate::tools::Location;
use alloc::format;
use alloc::string::String;

#[test]
fn lines_come_with_numbers_and_the_last_line_names_the_next_offset() {
    let text: String = (1..=5).map(|n| format!("l{n}\r\n")).collect();
    let mut world = World::new().file("/w/a", text);
    let mut read = |rest: &str| world.run("read_file", &format!(r#"{{"path":"a"{rest}}}"#));
    assert_eq!(read("").text, "1→l1\n2→l2\n3→l3\n4→l4\n5→l5");
    assert_eq!(
        read(r#","offset":1,"limit":2"#).text,
        "2→l2\n3→l3\n[lines 2 to 3 of 5; go on with offset 3]"
    );
    assert_eq!(read(r#","offset":3,"limit":2"#).text, "4→l4\n5→l5");
    assert!(read(r#","offset":5"#).text.contains("it has 5 lines"));
    assert!(!read(r#","limit":0"#).ok);
    assert_eq!(read(r#","limit":1"#).text.lines().count(), 2);
    let run = world.start("read_file", r#"{"path":"a","offset":3}"#);
    assert_eq!(run.card().locations, [Location::new("/w/a", Some(4))]);
    let run = world.start("read_file", r#"{"path":"a"}"#);
    assert_eq!(run.card().locations, [Location::new("/w/a", None)]);
    let mut empty = World::new().file("/w/a", "");
    assert_eq!(
        empty.run("read_file", r#"{"path":"a"}"#).text,
        "(empty file)"
    );
}

#[test]
fn reading_is_bounded_and_never_cuts_a_character() {
    for ascii in 0..3 {
        let long = format!("{}{}", "a".repeat(ascii), "漢".repeat(200_000));
        let many: String = (0..20_000).map(|n| format!("漢字 {n}\n")).collect();
        let mut world = World::new().file("/w/long", &long).file("/w/many", &many);
        let one = world.run("read_file", r#"{"path":"long"}"#).text;
        assert!(
            one.contains("bytes of this line not shown"),
            "{}",
            one.len()
        );
        assert!(one.len() < 3000);
        let limit = r#"{"path":"many","limit":20000}"#;
        let all = world.run("read_file", limit).text;
        assert!(all.len() <= world.ws.limits.max_tool_result);
        let next: u64 = all
            .rsplit("offset ")
            .next()
            .and_then(|end| end.trim_end_matches(']').parse().ok())
            .expect("the next offset");
        let rest = world.run(
            "read_file",
            &format!(r#"{{"path":"many","offset":{next}}}"#),
        );
        assert!(
            rest.text
                .starts_with(&format!("{}→漢字 {next}\n", next + 1))
        );
        let found = world.run("grep", r#"{"pattern":"漢"}"#).text;
        assert!(found.len() < 8000);
    }
}

#[test]
fn searches_give_paths_relative_to_the_working_directory_and_say_when_there_is_more() {
    let limits = Limits {
        search_hits: 2,
        ..Limits::default()
    };
    let mut world = World::with(limits)
        .file("/w/a", "x\nneedle")
        .file("/w/src/b", "needle");
    assert_eq!(
        world.run("grep", r#"{"pattern":"needle"}"#).text,
        "a:2:needle\nsrc/b:1:needle"
    );
    assert_eq!(
        world.run("grep", r#"{"pattern":"none"}"#).text,
        "No matches."
    );
    assert_eq!(
        world.run("glob", r#"{"pattern":"*","path":"src"}"#).text,
        "src/b"
    );
    assert_eq!(
        world.run("glob", r#"{"pattern":"/w/src/*"}"#).text,
        "a\nsrc/b"
    );
    let mut world = world.file("/w/c", "needle");
    assert!(
        world
            .run("grep", r#"{"pattern":"needle"}"#)
            .text
            .contains("only the first 2")
    );
    assert_eq!(world.run("ls", "").text, "a  1 bytes\nc  1 bytes\nsrc/");
}

#[test]
fn a_name_cannot_forge_a_result_or_hide_a_part_of_itself() {
    let mut world = World::new()
        .file("/w/a\nb:1:needle", "needle")
        .file("/w/c\u{1b}[2K\u{202e}d", "needle");
    assert_eq!(
        world.run("grep", r#"{"pattern":"needle"}"#).text,
        "a\\u{a}b:1:needle:1:needle\nc\\u{1b}[2K\\u{202e}d:1:needle"
    );
    assert_eq!(
        world.run("glob", r#"{"pattern":"*"}"#).text,
        "a\\u{a}b:1:needle\nc\\u{1b}[2K\\u{202e}d"
    );
    assert_eq!(
        world.run("ls", "").text,
        "a\\u{a}b:1:needle  1 bytes\nc\\u{1b}[2K\\u{202e}d  1 bytes\nsrc/"
    );
}

#[test]
fn files_that_rules_hide_are_neither_read_nor_edited_nor_found() {
    let mut world = World::new()
        .file("/w/.env", "KEY=needle")
        .file("/w/a", "needle");
    let permissions = crate::settings::Permissions {
        deny: ["Read(.env)".into()].into(),
        ..Default::default()
    };
    let rules = crate::permission::Rules::parse(&permissions, None).expect("rules");
    world.ws.rules = rules.beneath("/w", &world.ws.roots);
    let mut world = world.link("/w/l", ".env");
    for path in [".env", "l"] {
        let arguments =
            format!(r#"{{"path":"{path}","old_string":"KEY","new_string":"x","content":""}}"#);
        for name in ["read_file", "edit_file", "write_file"] {
            check_refused(&mut world, name, &arguments, "`Read(.env)`");
        }
    }
    assert_eq!(
        world.run("grep", r#"{"pattern":"needle"}"#).text,
        "a:1:needle"
    );
}

#[test]
fn what_is_kept_from_being_read_cannot_be_guessed_by_searching() {
    let limits = Limits {
        search_hits: 2,
        max_line: 8,
        search_line: 60,
        ..Limits::default()
    };
    let mut world = World::with(limits)
        .file("/w/.env", "pin=4711 a")
        .file("/w/a", "key: sk-0123456789abcdef a")
        // At the edge of what is shown of a line, and behind it.
        .file("/w/a1", "edge: sk-0123456789abcdef a")
        .file("/w/a2", "behind the edge: sk-0123456789abcdef a")
        // Perhaps in what was not handed over of it.
        .file("/w/a3", format!("long a{}", " ".repeat(60)))
        .file("/w/b", "word a")
        .file("/w/c", "words a");
    // More of it than a search brings at once.
    for n in 0..45 {
        world = world.file(&format!("/w/a4{n:02}"), "many: sk-0123456789abcdef a");
    }
    world.ws.secrets =
        crate::secret::Secrets::new([crate::secret::Secret::new("KEY", "sk-0123456789abcdef")]);
    let permissions = crate::settings::Permissions {
        deny: ["Read(.env)".into()].into(),
        ..Default::default()
    };
    let rules = crate::permission::Rules::parse(&permissions, None).expect("rules");
    world.ws.rules = rules.beneath("/w", &world.ws.roots);
    for (pattern, shown) in [
        ("pin=4", "No matches."),
        ("pin=5", "No matches."),
        ("sk-0", "No matches."),
        ("sk-1", "No matches."),
        ("key: ", "No matches."),
        ("edge: ", "No matches."),
        ("edge: sk-0", "No matches."),
        ("behind", "No matches."),
        ("long", "No matches."),
        ("many", "No matches."),
        // What is left out takes no place from what is shown.
        ("a", "b:1:word a\nc:1:words a"),
    ] {
        let found = world.run("grep", &format!(r#"{{"pattern":"{pattern}"}}"#));
        assert_eq!(found.text, shown, "{pattern}");
    }
    // Whether there are more than are shown is a matter of those that may be.
    let mut world = world.file("/w/d", "swords a");
    let found = world.run("grep", r#"{"pattern":"a"}"#);
    assert_eq!(
        found.text,
        "b:1:word a\nc:1:words a\n[only the first 2 matches; narrow the pattern or the path]"
    );
    // It ends, however much is left out.
    world.ws.limits.search_rounds = 2;
    let found = world.run("grep", r#"{"pattern":"a"}"#);
    assert_eq!(
        found.text,
        "No matches.\n[the time was up; there may be more matches]"
    );
}
