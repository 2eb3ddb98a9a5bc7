use super::host::World;
use crate::call::{Call, Expect};
use crate::error::IoKind;
use crate::limits::Limits;
use crate::permission::Access;
use crate::tools::*;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

fn json(text: &str) -> String {
    serde_json::to_string(text).expect("a string")
}

fn edit(old: &str, new: &str, all: bool) -> String {
    let (old, new) = (json(old), json(new));
    format!(r#"{{"path":"a","old_string":{old},"new_string":{new},"replace_all":{all}}}"#)
}

/// One edit of one file.
#[track_caller]
fn check_edit(before: impl AsRef<[u8]>, old: &str, new: &str, all: bool, after: impl AsRef<[u8]>) {
    let mut world = World::new().file("/w/a", before);
    let outcome = world.run("edit_file", &edit(old, new, all));
    assert!(outcome.ok, "{outcome:?}");
    assert!(outcome.wrote);
    assert_eq!(world.bytes("/w/a"), after.as_ref());
}

#[track_caller]
pub(super) fn check_refused(world: &mut World, name: &str, arguments: &str, why: &str) {
    let before = world.files.clone();
    let outcome = world.run(name, arguments);
    assert!(!outcome.ok && !outcome.wrote, "{outcome:?}");
    assert!(outcome.text.contains(why), "{}", outcome.text);
    assert_eq!(world.files, before, "nothing is written");
}

#[test]
fn edits_keep_both_kinds_of_line_end_where_they_do_not_touch() {
    check_edit("a\r\nb\nc\r\n", "b", "B", false, "a\r\nB\nc\r\n");
    check_edit("a\r\nB\nc\r\n", "a\nB", "Q", false, "Q\nc\r\n");
}

#[test]
fn edits_keep_the_byte_order_mark_and_the_model_does_not_see_it() {
    check_edit(b"\xEF\xBB\xBFx\n", "x", "y", false, b"\xEF\xBB\xBFy\n");
    check_edit(b"\xFF\xFEx\0\n\0", "x", "y", false, b"\xFF\xFEy\0\n\0");
    let mut world = World::new().file("/w/a", b"\xEF\xBB\xBFx\n");
    assert_eq!(world.run("read_file", r#"{"path":"a"}"#).text, "1→x");
}

#[test]
fn edits_keep_an_encoding_that_is_no_utf8() {
    check_edit(b"gr\xFC\xDFe", "ü", "u", false, b"gru\xDFe");
    let mut world = World::new().file("/w/a", b"gr\xFC\xDFe");
    check_refused(&mut world, "edit_file", &edit("ü", "漢", false), "encoding");
}

#[test]
fn replacement_text_is_literal() {
    check_edit(
        "price\n",
        "price",
        "$1 $& \\1 $$ ${0}",
        false,
        "$1 $& \\1 $$ ${0}\n",
    );
    check_edit("abc a.c", "a.c", "X", false, "abc X");
}

#[test]
fn replace_all_does_not_find_what_it_put_there() {
    check_edit("a a", "a", "aa", true, "aa aa");
}

#[test]
fn an_empty_or_equal_old_text_changes_nothing() {
    let mut world = World::new().file("/w/a", "abc");
    for all in [false, true] {
        check_refused(&mut world, "edit_file", &edit("", "X", all), "empty");
        check_refused(&mut world, "edit_file", &edit("b", "b", all), "equal");
    }
}

#[test]
fn an_ambiguous_edit_says_how_many_places_there_are() {
    let mut world = World::new().file("/w/a", "x=1\ny\nx=1\n");
    check_refused(
        &mut world,
        "edit_file",
        &edit("x=1", "x=2", false),
        "2 times",
    );
    assert!(world.proposals.is_empty());
}

#[test]
fn a_link_stays_a_link_and_what_it_leads_to_is_written() {
    let mut world = World::new()
        .file("/w/real.txt", "x")
        .link("/w/a", "real.txt");
    assert!(world.run("edit_file", &edit("x", "y", false)).ok);
    assert_eq!(world.bytes("/w/real.txt"), b"y");
    assert!(world.links.contains_key("/w/a"));
}

#[test]
fn the_newline_at_the_end_is_neither_added_nor_lost() {
    check_edit("x", "x", "y", false, "y");
    check_edit("x\n", "x", "y", false, "y\n");
    check_edit("x\n\n", "x", "y", false, "y\n\n");
    let mut world = World::new().file("/w/a", "x\n");
    assert!(world.run("write_file", r#"{"path":"a","content":"z"}"#).ok);
    assert_eq!(world.bytes("/w/a"), b"z");
}

#[test]
fn an_emptied_file_has_an_empty_new_text_and_a_new_file_no_old_one() {
    let mut world = World::new().file("/w/a", "x");
    let emptied = world.run("edit_file", &edit("x", "", false));
    let diff = |outcome: &ToolOutcome| (outcome.diffs[0].old.clone(), outcome.diffs[0].new.clone());
    assert_eq!(diff(&emptied), (Some("x".into()), String::new()));
    assert_eq!(world.bytes("/w/a"), b"");
    let new = world.run("write_file", r#"{"path":"d/n","content":"1"}"#);
    assert_eq!(diff(&new), (None, "1".into()));
    assert_eq!(world.bytes("/w/d/n"), b"1");
}

#[test]
fn pipes_devices_and_directories_are_refused_with_the_reason() {
    let mut world = World::new();
    world.special.insert("/w/p".into());
    for (name, why) in [
        ("read_file", "pipe"),
        ("edit_file", "pipe"),
        ("grep", "pipe"),
    ] {
        let arguments =
            r#"{"path":"p","pattern":"x","content":"","old_string":"a","new_string":"b"}"#;
        check_refused(&mut world, name, arguments, why);
    }
    check_refused(&mut world, "read_file", r#"{"path":"src"}"#, "use ls");
    check_refused(
        &mut world,
        "write_file",
        r#"{"path":"src","content":""}"#,
        "directory",
    );
    check_refused(&mut world, "ls", r#"{"path":"none"}"#, "does not exist");
}

#[test]
fn a_file_that_changed_since_it_was_read_is_not_overwritten() {
    let mut world = World::new().file("/w/a", "one");
    world.run("read_file", r#"{"path":"a"}"#);
    world.files.insert("/w/a".into(), b"two".into());
    check_refused(
        &mut world,
        "write_file",
        r#"{"path":"a","content":"z"}"#,
        "has changed",
    );
    check_refused(
        &mut world,
        "edit_file",
        &edit("two", "z", false),
        "has changed",
    );
    world.run("read_file", r#"{"path":"a"}"#);
    assert!(world.run("write_file", r#"{"path":"a","content":"z"}"#).ok);
    assert!(
        world.run("edit_file", &edit("z", "zz", false)).ok,
        "its own writes are known"
    );
}

#[test]
fn a_file_that_changes_while_the_user_is_asked_is_not_overwritten() {
    let mut world = World::new().file("/w/a", "one");
    let mut run = world.start("edit_file", &edit("one", "two", false));
    for _ in 0..2 {
        let Step::Call(call) = world.step(&mut run) else {
            panic!()
        };
        let outcome = world.answer(&call).expect("an answer");
        world.news(&mut run, crate::call::News::Done(outcome));
    }
    assert!(matches!(world.step(&mut run), Step::Permit(_)));
    world.files.insert("/w/a".into(), b"other".into());
    run.permitted();
    let outcome = world.drive(&mut run);
    assert!(
        !outcome.ok && outcome.text.contains("has changed"),
        "{outcome:?}"
    );
    assert_eq!(world.bytes("/w/a"), b"other");
}

#[test]
fn a_write_says_what_must_be_there_and_what_it_must_stay_beneath() {
    let mut world = World::new().file("/w/a", "x");
    world.run("write_file", r#"{"path":"n","content":"1"}"#);
    world.run("edit_file", &edit("x", "y", false));
    let writes: Vec<_> = world
        .calls
        .iter()
        .filter_map(|call| match call {
            Call::Write(write) => Some((write.expect, write.beneath.as_deref(), write.parents)),
            _ => None,
        })
        .collect();
    let digest = super::super::state::digest(b"x");
    assert_eq!(
        writes,
        [
            (Expect::Absent, Some("/w"), true),
            (Expect::Digest(digest), Some("/w"), false)
        ]
    );
}

#[test]
fn a_write_that_fails_is_the_tools_error() {
    for kind in [
        IoKind::Full,
        IoKind::Denied,
        IoKind::Escapes,
        IoKind::Exists,
    ] {
        let mut world = World::new().file("/w/a", "x");
        world.write_fault = Some(kind);
        check_refused(&mut world, "edit_file", &edit("x", "y", false), "/w/a");
    }
}

#[test]
fn nothing_outside_the_roots_is_touched_by_whatever_way_it_is_named() {
    let mut world = World::new()
        .file("/out/a", "secret")
        .link("/w/dir", "/out")
        .link("/w/up", "..")
        .link("/w/file", "/out/a");
    for path in [
        "/out/a",
        "../out/a",
        "dir/a",
        "up/out/a",
        "file",
        "src/../../out/a",
        "file:///out/a",
        "file:///w/%2E%2e/out/%61",
    ] {
        for (name, arguments) in [
            ("read_file", format!(r#"{{"path":"{path}"}}"#)),
            (
                "write_file",
                format!(r#"{{"path":"{path}","content":"x"}}"#),
            ),
            (
                "edit_file",
                format!(r#"{{"path":"{path}","old_string":"secret","new_string":"x"}}"#),
            ),
            ("grep", format!(r#"{{"path":"{path}","pattern":"secret"}}"#)),
        ] {
            check_refused(&mut world, name, &arguments, "outside the workspace");
        }
    }
    for (name, arguments) in [
        ("delete_file", r#"{"path":"dir/a"}"#),
        (
            "move_file",
            r#"{"source_path":"dir/a","destination_path":"b"}"#,
        ),
        ("ls", r#"{"path":"dir"}"#),
        ("glob", r#"{"path":"..","pattern":"*"}"#),
        ("write_file", r#"{"path":"dir/new","content":"x"}"#),
    ] {
        check_refused(&mut world, name, arguments, "outside the workspace");
    }
    let mut world = world.file("/w/b", "b");
    let moved = r#"{"source_path":"b","destination_path":"dir/b"}"#;
    check_refused(&mut world, "move_file", moved, "outside the workspace");
    let reads = world
        .calls
        .iter()
        .filter(|call| !matches!(call, Call::Resolve { .. }));
    assert_eq!(reads.count(), 0, "nothing outside is even opened");
}

#[test]
fn binary_and_too_large_files_are_refused() {
    let limits = Limits {
        max_file: 10,
        ..Limits::default()
    };
    let mut world = World::with(limits)
        .file("/w/a", "x\0y")
        .file("/w/b", "x".repeat(11));
    check_refused(&mut world, "read_file", r#"{"path":"a"}"#, "binary");
    check_refused(&mut world, "edit_file", &edit("x", "y", false), "binary");
    check_refused(&mut world, "read_file", r#"{"path":"b"}"#, "larger");
    check_refused(
        &mut world,
        "write_file",
        r#"{"path":"c","content":"01234567890"}"#,
        "11 bytes",
    );
    let grown = edit("x", "0123456789ab", false);
    let mut world = world.file("/w/a", "x");
    check_refused(&mut world, "edit_file", &grown, "12 bytes");
}

#[test]
fn several_edits_are_made_as_a_whole_or_not_at_all() {
    let mut world = World::new().file("/w/a", "one two");
    let edits = |second: &str| {
        format!(
            r#"{{"path":"a","edits":[{{"old_string":"one","new_string":"1"}},
                {{"old_string":"{second}","new_string":"2"}}]}}"#
        )
    };
    check_refused(&mut world, "multi_edit", &edits("three"), "edit 2 of 2");
    assert!(world.run("multi_edit", &edits("1 two")).ok);
    assert_eq!(world.bytes("/w/a"), b"2");
    check_refused(
        &mut world,
        "multi_edit",
        r#"{"path":"a","edits":[]}"#,
        "empty",
    );
    let wrong = r#"{"path":"a","edits":[{"old_string":1}]}"#;
    check_refused(
        &mut world,
        "multi_edit",
        wrong,
        "`edits[1].old_string` must be a string",
    );
}

#[test]
fn a_cell_is_changed_by_the_rules_of_an_edit() {
    let book = r#"{"cells":[{"cell_type":"code","id":"x","metadata":{},"source":"old","outputs":[]}],"nbformat":4,"nbformat_minor":5}"#;
    let call = r#"{"path":"n.ipynb","cell_id":"x","new_source":"new"}"#;
    let mut world = World::new().file("/w/n.ipynb", book);
    let outcome = world.run("notebook_edit", call);
    assert!(outcome.ok && outcome.wrote, "{outcome:?}");
    assert_eq!(outcome.text, "Replaced cell 0 (id x) of /w/n.ipynb.");
    let changed = book.replace("old", "new");
    assert_eq!(world.bytes("/w/n.ipynb"), changed.as_bytes());
    assert_eq!(outcome.diffs[0].old.as_deref(), Some(book));
    assert_eq!(outcome.diffs[0].new, changed);
    assert!(matches!(&world.proposals[0].action.access, Access::Edit(_)));
    check_refused(&mut world, "notebook_edit", call, "like that already");
    // What it has not seen it does not write over.
    world.run("read_file", r#"{"path":"n.ipynb"}"#);
    world.files.insert("/w/n.ipynb".into(), book.into());
    check_refused(&mut world, "notebook_edit", call, "has changed since");
    check_refused(
        &mut world,
        "notebook_edit",
        r#"{"path":"none.ipynb","cell_id":"x","new_source":"new"}"#,
        "does not exist",
    );
}

#[test]
fn moves_and_removals_touch_the_link_itself_and_never_replace() {
    let mut world = World::new()
        .file("/w/a", "a")
        .file("/w/b", "b")
        .link("/w/l", "/out/x")
        .link("/w/m", "a");
    check_refused(
        &mut world,
        "move_file",
        r#"{"source_path":"a","destination_path":"b"}"#,
        "exists already",
    );
    check_refused(
        &mut world,
        "move_file",
        r#"{"source_path":"a","destination_path":"l"}"#,
        "exists already",
    );
    assert!(
        world
            .run("move_file", r#"{"source_path":"b","destination_path":"c"}"#)
            .ok
    );
    assert_eq!(
        (world.bytes("/w/c"), world.bytes("/w/b")),
        (&b"b"[..], &b"<missing>"[..])
    );
    assert!(world.run("delete_file", r#"{"path":"l"}"#).ok);
    assert!(world.run("delete_file", r#"{"path":"m"}"#).ok);
    assert!(world.links.is_empty());
    assert_eq!(world.bytes("/w/a"), b"a");
    let deleted = world.run("delete_file", r#"{"path":"a"}"#);
    assert_eq!(deleted.diffs[0].old.as_deref(), Some("a"));
    assert!(!world.files.contains_key("/w/a"));
    check_refused(
        &mut world,
        "delete_file",
        r#"{"path":"a"}"#,
        "does not exist",
    );
    check_refused(&mut world, "delete_file", r#"{"path":"src"}"#, "directory");
    check_refused(
        &mut world,
        "delete_file",
        r#"{"path":"."}"#,
        "root of the workspace",
    );
}

#[test]
fn what_was_read_is_known_under_its_new_name_after_a_move() {
    let mut world = World::new().file("/w/a", "one");
    world.run("read_file", r#"{"path":"a"}"#);
    world.run("move_file", r#"{"source_path":"a","destination_path":"b"}"#);
    world.files.insert("/w/b".into(), b"two".into());
    check_refused(
        &mut world,
        "write_file",
        r#"{"path":"b","content":"z"}"#,
        "has changed",
    );
}

#[test]
fn every_file_tool_passes_the_gate_with_real_paths() {
    let mut world = World::new().file("/w/real", "x").link("/w/a", "real");
    world.run("edit_file", &edit("x", "y", false));
    world.run("read_file", r#"{"path":"a"}"#);
    world.run(
        "move_file",
        r#"{"source_path":"real","destination_path":"b"}"#,
    );
    let real = |proposal: &Proposal| match &proposal.action.access {
        Access::Read(targets) | Access::Edit(targets) => targets
            .iter()
            .map(|t| t.real.clone())
            .collect::<Vec<_>>()
            .join(" "),
        access => panic!("{access:?}"),
    };
    let seen: Vec<String> = world.proposals.iter().map(real).collect();
    assert_eq!(seen, ["/w/real", "/w/real", "/w/real /w/b"]);
}
