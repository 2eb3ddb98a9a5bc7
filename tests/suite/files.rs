//! File tools on a real disk: what an edit leaves as it was, and what is refused.

use std::time::Duration;

use reasonix_tests::json::{Value, json};
use reasonix_tests::provider::{Answer, calls, say, tool};

use crate::cases::{Case, Expect::*, case, check};

/// A read, then an edit, then the end.
fn edit(path: &str, old: &str, new: &str, all: bool) -> Vec<Answer> {
    vec![
        tool("r", "read_file", json!({"path": path})),
        tool(
            "e",
            "edit_file",
            json!({"path": path, "old_string": old, "new_string": new, "replace_all": all}),
        ),
        say("k"),
    ]
}

const DONE: &[&str] = &["completed", "completed"];
const FAILED: &[&str] = &["completed", "failed"];

#[test]
fn an_edit_changes_its_match_and_nothing_else() {
    type Row = (
        &'static str,
        &'static [(&'static str, &'static [u8])],
        (&'static str, &'static str, bool),
        &'static [&'static str],
        &'static [u8],
    );
    let rows: Vec<Row> = vec![
        (
            "mixed line ends stay",
            &[("f", b"a\r\nb\nc\r\n")],
            ("b", "B", false),
            DONE,
            b"a\r\nB\nc\r\n",
        ),
        (
            "a byte order mark stays",
            &[("f", b"\xef\xbb\xbfx\n")],
            ("x", "y", false),
            DONE,
            b"\xef\xbb\xbfy\n",
        ),
        (
            "the new text is literal",
            &[("f", b"price\n")],
            ("price", "$1 $& \\1 $$ ${0}", false),
            DONE,
            b"$1 $& \\1 $$ ${0}\n",
        ),
        (
            "the old text is literal",
            &[("f", b"abc a.c\n")],
            ("a.c", "X", false),
            DONE,
            b"abc X\n",
        ),
        (
            "all of them, once each",
            &[("f", b"a a")],
            ("a", "aa", true),
            DONE,
            b"aa aa",
        ),
        (
            "an empty match is refused",
            &[("f", b"abc")],
            ("", "X", false),
            FAILED,
            b"abc",
        ),
        (
            "an empty match for all is refused",
            &[("f", b"abc")],
            ("", "X", true),
            FAILED,
            b"abc",
        ),
        (
            "no change is refused",
            &[("f", b"abc")],
            ("b", "b", false),
            FAILED,
            b"abc",
        ),
        (
            "two matches are refused",
            &[("f", b"x=1\ny\nx=1\n")],
            ("x=1", "x=2", false),
            FAILED,
            b"x=1\ny\nx=1\n",
        ),
        (
            "no line end at the end is added",
            &[("f", b"x")],
            ("x", "y", false),
            DONE,
            b"y",
        ),
        (
            "the line end at the end stays",
            &[("f", b"x\n")],
            ("x", "y", false),
            DONE,
            b"y\n",
        ),
        (
            "both line ends at the end stay",
            &[("f", b"x\n\n")],
            ("x", "y", false),
            DONE,
            b"y\n\n",
        ),
    ];
    check(
        rows.into_iter()
            .map(|(name, files, (old, new, all), ends, left)| Case {
                files,
                ..case(
                    name,
                    edit("f", old, new, all),
                    vec![Stop("end_turn"), Ends(ends), File("f", left)],
                )
            })
            .collect(),
    );
}

#[test]
fn files_keep_what_they_are() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    check(vec![
        Case {
            files: &[("real.txt", b"x")],
            setup: |place| symlink("real.txt", place.file("cur")).expect("a link"),
            drive: |run| {
                run.turn("go");
                let link = std::fs::symlink_metadata(run.place.file("cur"));
                assert!(
                    link.is_ok_and(|meta| meta.is_symlink()),
                    "the link was replaced"
                );
            },
            ..case(
                "an edit through a link changes what it leads to",
                edit("cur", "x", "y", false),
                vec![Stop("end_turn"), Ends(DONE), File("real.txt", b"y")],
            )
        },
        Case {
            files: &[("one.txt", b"x")],
            setup: |place| {
                std::fs::hard_link(place.file("one.txt"), place.file("two.txt")).expect("a link");
            },
            ..case(
                "a file with two names keeps both",
                edit("one.txt", "x", "y", false),
                vec![
                    Stop("end_turn"),
                    Ends(DONE),
                    File("one.txt", b"y"),
                    File("two.txt", b"y"),
                ],
            )
        },
        Case {
            files: &[("run.sh", b"#!/bin/sh\n")],
            setup: |place| {
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(place.file("run.sh"), mode).expect("a mode");
            },
            drive: |run| {
                run.turn("go");
                let meta = std::fs::metadata(run.place.file("run.sh")).expect("it is there");
                assert_eq!(meta.mode() & 0o777, 0o755);
                let names: Vec<_> = std::fs::read_dir(run.place.work())
                    .expect("a folder")
                    .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                    .collect();
                assert_eq!(names, ["run.sh"], "a temporary file was left");
            },
            ..case(
                "a file keeps its mode and no temporary file stays",
                edit("run.sh", "sh", "bash", false),
                vec![
                    Stop("end_turn"),
                    Ends(DONE),
                    File("run.sh", b"#!/bin/bash\n"),
                ],
            )
        },
        Case {
            setup: |place| {
                let made = std::process::Command::new("mkfifo")
                    .arg(place.file("p"))
                    .status();
                assert!(made.is_ok_and(|status| status.success()));
                place.write("a.txt", "needle\n");
                std::fs::create_dir(place.file("d")).expect("a folder");
            },
            ..case(
                "pipes, devices and folders are not read, and a search passes them by",
                vec![
                    calls(&[
                        ("a", "read_file", r#"{"path":"p"}"#),
                        ("b", "read_file", r#"{"path":"/dev/zero"}"#),
                        ("c", "read_file", r#"{"path":"d"}"#),
                        ("d", "grep", r#"{"pattern":"needle"}"#),
                    ]),
                    say("k"),
                ],
                vec![
                    Stop("end_turn"),
                    Ends(&["failed", "failed", "failed", "completed"]),
                    Told(1, "a.txt"),
                    Within(Duration::from_secs(4)),
                ],
            )
        },
        Case {
            files: &[("a.txt", b"needle\n")],
            setup: |place| {
                symlink(".", place.file("loop")).expect("a link");
                symlink("..", place.file("up")).expect("a link");
                std::fs::write(place.out().join("far.txt"), "needle\n").expect("a file");
            },
            drive: |run| {
                run.turn("go");
                let requests = run.provider.requests();
                let told: Vec<&Value> = requests[1]["messages"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|message| message["role"] == "tool")
                    .collect();
                let text = told[0]["content"].to_string();
                assert_eq!(text.matches("a.txt").count(), 1, "{text}");
                assert!(!text.contains("far.txt"), "{text}");
            },
            ..case(
                "a search follows no links, so it ends and stays inside",
                vec![tool("g", "grep", json!({"pattern": "needle"})), say("k")],
                vec![
                    Stop("end_turn"),
                    Ends(&["completed"]),
                    Within(Duration::from_secs(5)),
                ],
            )
        },
        Case {
            files: &[("f.txt", b"x")],
            ..case(
                "a whole-file write is what was written",
                vec![
                    tool("r", "read_file", json!({"path": "f.txt"})),
                    tool("w", "write_file", json!({"path": "f.txt", "content": "z"})),
                    say("k"),
                ],
                vec![Stop("end_turn"), Ends(DONE), File("f.txt", b"z")],
            )
        },
        Case {
            setup: |place| {
                std::fs::write(place.out().join("s.txt"), "secret").expect("a file");
                symlink(place.out(), place.file("leak")).expect("a link");
            },
            drive: |run| {
                run.turn("go");
                let far = std::fs::read_to_string(run.place.out().join("s.txt"));
                assert_eq!(far.expect("it is there"), "secret");
            },
            ..case(
                "nothing is written through a link that leads out",
                vec![
                    tool(
                        "w",
                        "write_file",
                        json!({"path": "leak/s.txt", "content": "gone"}),
                    ),
                    say("k"),
                ],
                vec![Stop("end_turn"), Ends(&["failed"])],
            )
        },
    ]);
}

#[test]
fn the_editors_text_is_what_the_model_sees() {
    let client = || json!({"fs": {"readTextFile": true, "writeTextFile": false}});
    check(vec![
        Case {
            files: &[("a.txt", b"old")],
            client,
            drive: |run| {
                let path = run
                    .place
                    .file("a.txt")
                    .to_str()
                    .unwrap_or_default()
                    .to_string();
                run.agent.buffers.insert(path, "unsaved".into());
                run.turn("go");
            },
            ..case(
                "an unsaved buffer is seen, and not the file",
                vec![tool("r", "read_file", json!({"path": "a.txt"})), say("k")],
                vec![Stop("end_turn"), Told(1, "unsaved"), NotTold(1, "old")],
            )
        },
        Case {
            files: &[("a.txt", b"old")],
            client,
            ..case(
                "what the editor declines to read is read from the disk",
                vec![tool("r", "read_file", json!({"path": "a.txt"})), say("k")],
                vec![Stop("end_turn"), Told(1, "old")],
            )
        },
        Case {
            files: &[("a.txt", b"old")],
            drive: |run| {
                run.turn("go");
                let asked = run.agent.frames.iter().any(|frame| {
                    frame["method"]
                        .as_str()
                        .is_some_and(|method| method.starts_with("fs/"))
                });
                assert!(!asked, "the client offers no files");
            },
            ..case(
                "a client without files is not asked for them",
                vec![tool("r", "read_file", json!({"path": "a.txt"})), say("k")],
                vec![Stop("end_turn"), Told(1, "old")],
            )
        },
    ]);
}
