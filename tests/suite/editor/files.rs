//! Files through the editor: reads that fall back, writes that do not, what is compared with what, and
//! what cards and updates show of it.

use reasonix_core::agent::PermissionMode;
use reasonix_tests::disk::Node;
use reasonix_tests::sim::{Card, Told};

use super::*;

#[test]
fn a_read_falls_back_to_the_disk() {
    let good = [
        (Habit::Good, Duration::ZERO),
        (Habit::Twice, Duration::ZERO),
        (Habit::Late(9 * SECOND), 9 * SECOND),
    ];
    let bad = [
        (Habit::Fails, Duration::ZERO),
        (Habit::Malformed, Duration::ZERO),
        (Habit::OtherId, 10 * SECOND),
        (Habit::Never, 10 * SECOND),
        (Habit::Late(11 * SECOND), 10 * SECOND),
    ];
    let told = "unsaved\n[this is the text in the editor: it is not saved, or the file has changed on \
        the disk; commands see the file on the disk]";
    let rows = good.map(|row| (row, told));
    let rows = rows.into_iter().chain(bad.map(|row| (row, "saved")));
    for ((habit, takes), text) in rows {
        let editor = always(
            open_buffer("/w/a.txt", "unsaved"),
            "fs/read_text_file",
            habit,
        );
        let seen = turn(
            fs(true, false),
            editor,
            world(&[("a.txt", "saved")]),
            &[read()],
        );
        assert_eq!(seen.ends, ["completed"], "{habit:?}");
        assert_eq!(seen.result(), format!("1→{text}"), "{habit:?}");
        assert!(
            seen.took >= takes && seen.took < takes + SECOND,
            "{habit:?}"
        );
        let given_up = usize::from(takes == 10 * SECOND);
        assert_eq!(seen.editor().broken_off.len(), given_up, "{habit:?}");
    }
}

#[test]
fn a_write_does_not_fall_back() {
    for habit in BAD {
        for call in [
            edit("alpha", "ALPHA"),
            ("write_file", json!({"path": "a.txt", "content": "new"})),
            ("write_file", json!({"path": "n.txt", "content": "new"})),
        ] {
            let editor = always(
                open_buffer("/w/a.txt", "alpha"),
                "fs/write_text_file",
                habit,
            );
            let seen = turn(
                fs(true, true),
                editor,
                world(&[("a.txt", "alpha")]),
                &[read(), call.clone()],
            );
            assert_eq!(seen.stop, "end_turn", "{habit:?}");
            assert_eq!(seen.ends, ["completed", "failed"], "{habit:?} {call:?}");
            assert_eq!(seen.file("/w/a.txt"), "alpha", "{habit:?} {call:?}");
            assert_eq!(seen.sim.world.file("/w/n.txt"), None, "{habit:?}");
            assert!(
                seen.result().contains("the editor did not"),
                "{}",
                seen.result()
            );
            let asked = seen.editor().asked.iter();
            let writes = asked.filter(|method| *method == "fs/write_text_file");
            assert_eq!(writes.count(), 1, "it is asked once");
        }
    }
}

#[test]
fn an_edit_is_made_in_the_text_that_the_model_saw() {
    let edited = |reads, writes, disk: &str, buffer: &str| {
        let editor = open_buffer("/w/a.txt", buffer);
        let files = [("a.txt", disk)];
        turn(
            fs(reads, writes),
            editor,
            world(&files),
            &[read(), edit("beta", "BETA")],
        )
    };
    // The buffer is edited, and the disk is the editor's affair.
    let seen = edited(true, true, "old\r\n", "x\nbeta\n");
    assert_eq!(seen.ends, ["completed", "completed"]);
    assert_eq!(
        seen.editor().writes,
        [("/w/a.txt".to_string(), "x\nBETA\n".to_string())]
    );
    assert_eq!(seen.file("/w/a.txt"), "old\r\n");
    // It reads only: what it shows is written to the disk in the disk's own form.
    let seen = edited(true, false, "\u{feff}beta\r\n", "beta\nmore\n");
    assert_eq!(seen.ends, ["completed", "completed"]);
    assert_eq!(seen.file("/w/a.txt"), "\u{feff}BETA\r\nmore\r\n");
    assert!(
        !seen
            .editor()
            .asked
            .iter()
            .any(|m| m == "fs/write_text_file")
    );
    // It writes only: the disk is what there is to see, byte for byte.
    let seen = edited(false, true, "\u{feff}beta\r\n", "never asked for");
    assert_eq!(seen.ends, ["completed", "completed"]);
    assert_eq!(seen.editor().writes[0].1, "\u{feff}BETA\r\n");
    assert_eq!(seen.editor().asked, ["fs/write_text_file"]);
    // It does neither.
    let seen = edited(false, false, "beta", "never asked for");
    assert_eq!(seen.file("/w/a.txt"), "BETA");
    assert_eq!(seen.editor().asked, [""; 0]);
}

#[test]
fn what_the_person_typed_since_is_not_written_over() {
    let (mut sim, session) = start(
        fs(true, true),
        open_buffer("/w/a.txt", "beta"),
        world(&[("a.txt", "beta")]),
        scripted(&[read(), edit("beta", "BETA"), edit("beta", "BETA")]),
    );
    let type_in = |sim: &mut Sim, text: &str| {
        let editor = sim.editor.as_mut().expect("it was put there");
        editor.buffers.insert("/w/a.txt".into(), text.into());
    };
    // While the card of the first edit is open.
    sim.cards = vec![Card::Silence];
    sim.send(&json::prompt(1, &session, "go"));
    let card = |sim: &Sim, nth: usize| {
        let mut cards = sim
            .frames
            .iter()
            .filter(|frame| frame["method"] == "session/request_permission");
        cards.nth(nth).map(|card| card["id"].clone())
    };
    sim.until("the card", |sim| card(sim, 0).is_some());
    type_in(&mut sim, "beta, and more");
    let allow = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    sim.cards = vec![Card::Choose("allow_once")];
    let id = card(&sim, 0).expect("just seen");
    sim.send(&json::result(&id, allow));
    sim.answer(1);
    // The second edit finds another text than the one that was read: it is not even asked about.
    assert_eq!(
        json::tool_ends(&sim.frames, ""),
        ["completed", "failed", "failed"]
    );
    assert_eq!(card(&sim, 1), None);
    assert_eq!(editor_in(&sim).writes, []);
    assert_eq!(sim.world.file("/w/a.txt"), Some(&b"beta"[..]));
    sim.finish();
    sim.laws.check();
}

#[test]
fn files_that_are_no_plain_utf8_stay_on_the_disk() {
    let utf16: Vec<u8> = [0xFFu8, 0xFE].into_iter().chain(*b"b\0x\0").collect();
    for (before, after) in [
        (&utf16[..], &b"\xff\xfeB\0x\0"[..]),
        (b"caf\xe9 b", b"caf\xe9 B"),
    ] {
        let mut world = world(&[("a.txt", "")]);
        world.disk.put("/w/a.txt", Node::File(before.into()));
        let editor = open_buffer("/w/a.txt", "b in another encoding");
        let seen = turn(fs(true, true), editor, world, &[read(), edit("b", "B")]);
        assert_eq!(seen.ends, ["completed", "completed"]);
        assert_eq!(seen.sim.world.file("/w/a.txt"), Some(after));
        assert_eq!(seen.editor().asked, [""; 0]);
    }
}

#[test]
fn moves_and_deletions_are_the_disks_and_show_what_goes() {
    let calls = [
        (
            "move_file",
            json!({"source_path": "a.txt", "destination_path": "b.txt"}),
        ),
        ("delete_file", json!({"path": "b.txt"})),
    ];
    let seen = turn(
        fs(true, true),
        Editor::default(),
        world(&[("a.txt", "x")]),
        &calls,
    );
    assert_eq!(seen.ends, ["completed", "completed"]);
    assert_eq!(seen.sim.world.file("/w/a.txt"), None);
    assert_eq!(seen.sim.world.file("/w/b.txt"), None);
    assert_eq!(seen.editor().writes, []);
    let mut last = seen
        .sim
        .frames
        .iter()
        .filter_map(|frame| json::update(frame, ""));
    let last = last.rfind(|update| update["status"] == "completed");
    let diff = &last.expect("a call ended")["content"][0];
    assert_eq!(diff["type"], "diff");
    assert_eq!(
        (&diff["oldText"], &diff["newText"]),
        (&json!("x"), &json!(""))
    );
}

#[test]
fn an_edits_only_grant_edits_through_the_editor_and_runs_nothing() {
    let mut config = scripted(&[read(), edit("alpha", "ALPHA"), make()]);
    config.permission_mode = PermissionMode::parse("acceptEdits").expect("a mode");
    let mut capabilities = fs(true, true);
    capabilities["terminal"] = json!(true);
    let (mut sim, session) = start(
        capabilities,
        open_buffer("/w/a.txt", "alpha"),
        world(&[("a.txt", "alpha")]),
        config,
    );
    sim.cards = vec![Card::Choose("reject_once")];
    sim.ask(&json::prompt(1, &session, "go"));
    let cards = sim.frames.iter();
    let cards = cards.filter(|frame| frame["method"] == "session/request_permission");
    assert_eq!(cards.count(), 1, "only the command is asked about");
    assert_eq!(
        json::tool_ends(&sim.frames, ""),
        ["completed", "completed", "failed"]
    );
    assert_eq!(editor_in(&sim).writes.len(), 1);
    assert!(
        !editor_in(&sim)
            .asked
            .iter()
            .any(|method| method.starts_with("terminal/"))
    );
    assert_eq!(sim.world.ran, [""; 0]);
    sim.finish();
    sim.laws.check();
}

#[test]
fn losing_the_editor_refuses() {
    // With a card open, with a write open, with a terminal that is being made.
    for (capabilities, call, method) in [
        (
            fs(true, true),
            edit("alpha", "ALPHA"),
            "session/request_permission",
        ),
        (fs(true, true), edit("alpha", "ALPHA"), "fs/write_text_file"),
        (terminals(), make(), "terminal/create"),
    ] {
        for end in [Told::PeerFinished, Told::PeerGone] {
            let editor = always(open_buffer("/w/a.txt", "alpha"), method, Habit::Never);
            let config = scripted(&[read(), call.clone()]);
            let world = world(&[("a.txt", "alpha")]);
            let (mut sim, session) = start(capabilities.clone(), editor, world, config);
            if method == "session/request_permission" {
                sim.cards = vec![Card::Silence];
            }
            sim.send(&json::prompt(1, &session, "go"));
            sim.until(method, |sim| {
                sim.frames.iter().any(|frame| frame["method"] == method)
            });
            sim.tell(end.clone());
            sim.until("the end", |sim| sim.closed.is_some());
            assert_eq!(sim.world.file("/w/a.txt"), Some(&b"alpha"[..]), "{method}");
            assert_eq!(sim.world.ran, [""; 0], "{method}");
            assert_eq!(sim.world.running(), 0, "{method}");
            editor_in(&sim).check();
            if end == Told::PeerFinished {
                sim.laws.check();
            }
        }
    }
}

/// The diffs of the card and of the end of the only call: path, old text, new text.
fn diffs(seen: &Seen) -> [Vec<(String, Value, String)>; 2] {
    let frames = seen.sim.frames.iter();
    let mut shown = [Vec::new(), Vec::new()];
    for frame in frames {
        let card = frame["method"] == "session/request_permission";
        let content = match card {
            true => &frame["params"]["toolCall"]["content"],
            false => match json::update(frame, "") {
                Some(update) if update["status"] == "completed" => &update["content"],
                _ => continue,
            },
        };
        let items = content.as_array().into_iter().flatten();
        let items = items.filter(|item| item["type"] == "diff");
        let text = |value: &Value| value.as_str().expect("a text").to_string();
        shown[usize::from(!card)].extend(items.map(|item| {
            let old = item.get("oldText").cloned().unwrap_or_default();
            (text(&item["path"]), old, text(&item["newText"]))
        }));
    }
    shown
}

#[test]
fn a_card_and_the_end_show_the_same_diff_of_new_emptied_and_deleted_files_and_moves_show_both_ends()
{
    let old = json!("alpha\n");
    let file = |content: &str| json!({"path": "a.txt", "content": content});
    type Row = (&'static str, Value, &'static [(&'static str, &'static str)]);
    let rows: [(Row, Option<(Value, &str)>); 5] = [
        (("write_file", file("x\n"), &[]), Some((Value::Null, "x\n"))),
        (
            ("write_file", file("x\n"), &[("a.txt", "alpha\n")]),
            Some((old.clone(), "x\n")),
        ),
        (
            ("write_file", file(""), &[("a.txt", "alpha\n")]),
            Some((old.clone(), "")),
        ),
        (
            (
                "delete_file",
                json!({"path": "a.txt"}),
                &[("a.txt", "alpha\n")],
            ),
            Some((old, "")),
        ),
        (
            (
                "move_file",
                json!({"source_path": "a.txt", "destination_path": "d/b.txt"}),
                &[("a.txt", "alpha\n")],
            ),
            None,
        ),
    ];
    for ((tool, args, disk), diff) in rows {
        let seen = turn(
            fs(true, true),
            Editor::default(),
            world(disk),
            &[(tool, args)],
        );
        assert_eq!(seen.ends, ["completed"], "{tool}");
        let diff = diff.map(|(old, new)| ("/w/a.txt".to_string(), old, new.to_string()));
        let diff: Vec<_> = diff.into_iter().collect();
        assert_eq!(diffs(&seen), [diff.clone(), diff], "{tool}");
        if tool == "move_file" {
            let mut updates = seen.sim.frames.iter().filter_map(|f| json::update(f, ""));
            let call = updates.find(|update| update["sessionUpdate"] == "tool_call");
            let call = call.expect("a call");
            assert_eq!(call["kind"], "edit");
            let ends = json!([{"path": "/w/a.txt"}, {"path": "/w/d/b.txt"}]);
            assert_eq!(call["locations"], ends);
            assert_eq!(seen.file("/w/d/b.txt"), "alpha\n");
        }
    }
}

#[test]
fn each_file_of_several_roots_goes_through_the_editor_and_none_outside() {
    let edit = |path: &str| {
        let args = json!({"path": path, "old_string": "alpha", "new_string": "ALPHA"});
        ("edit_file", args)
    };
    let mut world = world(&[("a.txt", "alpha")]);
    for path in ["/v/b.txt", "/u/c.txt"] {
        world.disk.put(path, Node::File(b"alpha".into()));
    }
    let calls = [edit("a.txt"), edit("/v/b.txt"), edit("/u/c.txt")];
    let mut sim = Sim::new(scripted(&calls), world);
    sim.editor = Some(Editor {
        buffers: [("/v/b.txt".to_string(), "alpha, unsaved".to_string())].into(),
        ..Editor::default()
    });
    sim.ask(&json::initialize_with(9001, fs(true, true)));
    let params = json!({"cwd": "/w", "mcpServers": [], "additionalDirectories": ["/v"]});
    let opened = sim.ask(&json::request(9002, "session/new", params));
    let session = opened["result"]["sessionId"].as_str().expect("it opens");
    sim.ask(&json::prompt(1, session, "go"));
    let ends = json::tool_ends(&sim.frames, "");
    assert_eq!(ends, ["completed", "completed", "failed"]);
    let written = [("/w/a.txt", "ALPHA"), ("/v/b.txt", "ALPHA, unsaved")];
    let written = written.map(|(path, text)| (path.to_string(), text.to_string()));
    assert_eq!(editor_in(&sim).writes, written);
    for path in ["/w/a.txt", "/v/b.txt", "/u/c.txt"] {
        assert_eq!(sim.world.file(path), Some(&b"alpha"[..]), "{path}");
    }
    sim.finish();
    sim.laws.check();
}

#[test]
fn nothing_is_written_while_the_editor_shows_a_file_as_it_was_before_the_disk_changed() {
    // The model reads, a command changes the disk, the model edits what it has read.
    let changed_on_disk = |reads, writes, buffer: Option<&str>| {
        let editor = match buffer {
            Some(text) => open_buffer("/w/a.txt", text),
            None => open_buffer("", ""),
        };
        let calls = [read(), make(), edit("beta", "BETA")];
        let config = scripted(&calls);
        let world = world(&[("a.txt", "beta\n")]);
        let (mut sim, session) = start(fs(reads, writes), editor, world, config);
        sim.send(&json::prompt(1, &session, "go"));
        sim.until("a command", |sim| !sim.world.ran.is_empty());
        sim.world.disk.save("/w/a.txt", "beta, by make\n");
        sim.answer(1);
        let ends = json::tool_ends(&sim.frames, "");
        assert_eq!(ends[..2], ["completed", "completed"]);
        sim.finish();
        sim.laws.check();
        let disk = sim.world.file("/w/a.txt").unwrap_or_default();
        let disk = String::from_utf8_lossy(disk).into_owned();
        let writes = editor_in(&sim).writes.clone();
        (ends[2].clone(), disk, writes)
    };
    // Not open: the editor reads the disk, as we do. Open: what the command wrote would be lost.
    for buffer in [None, Some("beta\n"), Some("beta, unsaved\n")] {
        for writes in [true, false] {
            let (end, disk, written) = changed_on_disk(true, writes, buffer);
            let seen = (&*end, &*disk, written.len());
            assert_eq!(seen, ("failed", "beta, by make\n", 0), "{buffer:?}");
        }
    }
    // Who shows nothing is not asked, and the disk alone counts.
    let (end, disk, written) = changed_on_disk(false, true, Some("beta\n"));
    assert_eq!(
        (&*end, &*disk, written.len()),
        ("failed", "beta, by make\n", 0)
    );
}

#[test]
fn the_model_is_told_when_the_editor_shows_another_text_than_the_disk_has() {
    let shown = |hides_end, disk: &str, buffer: &str| {
        let mut editor = open_buffer("/w/a.txt", buffer);
        editor.manners.hides_end = hides_end;
        editor.manners.hides_returns = hides_end;
        let world = world(&[("a.txt", disk)]);
        turn(fs(true, false), editor, world, &[read()]).result()
    };
    for (disk, buffer, told) in [
        ("a\nb\n", "a\nb\n", false),
        ("a\r\nb\r\n", "a\r\nb\r\n", false),
        ("a\nb\n", "a\nb\nc\n", true),
        ("", "a\n", true),
    ] {
        for hides in [true, false] {
            let text = shown(hides, disk, buffer);
            let seen = text.contains("\n[this is the text in the editor: it is not saved");
            assert_eq!(seen, told, "{disk:?} {text}");
        }
    }
    // A command changes the disk after it was read, and the editor does not load it again.
    let editor = open_buffer("/w/a.txt", "beta\n");
    let config = scripted(&[read(), make(), read()]);
    let world = world(&[("a.txt", "beta\n")]);
    let (mut sim, session) = start(fs(true, true), editor, world, config);
    sim.send(&json::prompt(1, &session, "go"));
    sim.until("a command", |sim| !sim.world.ran.is_empty());
    sim.world.disk.save("/w/a.txt", "beta, by make\n");
    sim.answer(1);
    let texts: Vec<String> = sim.frames.iter().map(Value::to_string).collect();
    let told = |text: &str| texts.iter().filter(|frame| frame.contains(text)).count();
    let old = "[this is the text in the editor, as it was before the file changed on the disk";
    assert_eq!(told(old), 1, "{texts:#?}");
    assert_eq!(told("[this is the text in the editor: "), 0);
    sim.finish();
    sim.laws.check();
}

#[test]
fn line_ends_and_the_end_of_a_file_stay_whatever_the_editor_makes_of_them() {
    let edited = |editor: Editor, before: &str, calls: &[(&'static str, Value)]| {
        let world = world(&[("a.txt", before)]);
        let seen = turn(fs(true, true), editor, world, calls);
        let ends = seen.ends.clone();
        assert!(ends.iter().all(|end| end == "completed"), "{ends:?}");
        (seen.file("/w/a.txt"), seen.editor().writes.len())
    };
    let calls = [read(), edit("b", "B"), edit("c", "C")];
    for (before, after) in [
        ("a\nb\nc\n", "a\nB\nC\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nB\r\nC\r\n"),
        ("a\r\nb\nc\r\n", "a\r\nB\nC\r\n"),
    ] {
        // It writes what it is given, and shows the file so.
        for (hides_returns, hides_end) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let mut editor = open_buffer("/w/a.txt", before);
            editor.saves = Some(0);
            editor.manners.hides_returns = hides_returns;
            editor.manners.hides_end = hides_end;
            let (file, writes) = edited(editor, before, &calls);
            assert_eq!(file, after, "{hides_returns} {hides_end}");
            let twice = hides_returns && before.contains('\r');
            assert_eq!(writes, if twice { 4 } else { 2 }, "{before:?}");
        }
    }
    // It keeps lines and ends each of them in its own way when it saves.
    for (before, after, end) in [
        ("a\nb\nc\n", "a\nB\nC\n", "\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nB\r\nC\r\n", "\r\n"),
    ] {
        let mut editor = open_buffer("/w/a.txt", before);
        editor.saves = Some(0);
        editor.manners.hides_returns = true;
        editor.manners.line_end = Some(end);
        let (file, writes) = edited(editor, before, &calls);
        assert_eq!((&*file, writes), (after, 4));
    }
}
