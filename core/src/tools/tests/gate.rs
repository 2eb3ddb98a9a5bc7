use super::host::World;
use crate::call::{Call, News, Outcome};
use crate::permission::Rules;
use crate::settings::Permissions;
use crate::tools::*;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

const WRITE: &str = r#"{"path":"n.txt","content":"1"}"#;

/// Drives a run until it asks the gate.
#[track_caller]
fn until_permit(world: &mut World, run: &mut ToolRun) -> Proposal {
    for _ in 0..10 {
        match world.step(run) {
            Step::Permit(proposal) => return proposal,
            Step::Call(call) => {
                let outcome = world.answer(&call).expect("an answer");
                world.news(run, News::Done(outcome));
            }
            step => panic!("{step:?}"),
        }
    }
    panic!("never asked");
}

#[test]
fn nothing_is_written_before_it_is_permitted_and_nothing_if_it_is_denied() {
    let mut world = World::new();
    let mut run = world.start("write_file", WRITE);
    let proposal = until_permit(&mut world, &mut run);
    assert_eq!(proposal.card, *run.card());
    assert_eq!(proposal.diffs[0].new, "1");
    assert!(matches!(world.step(&mut run), Step::Wait));
    assert!(world.files.is_empty());
    run.denied("the user said no");
    run.permitted();
    let outcome = world.drive(&mut run);
    assert!(!outcome.ok && outcome.text.contains("the user said no"));
    assert!(world.files.is_empty());
}

#[test]
fn moving_a_folder_takes_nothing_out_of_a_rule_or_into_one() {
    #[track_caller]
    fn check(deny: &[&str], ask: &[&str], home: &str, (from, to): (&str, &str), refused: &str) {
        let texts = |rules: &[&str]| rules.iter().map(|rule| String::from(*rule)).collect();
        let permissions = Permissions {
            deny: texts(deny),
            ask: texts(ask),
            ..Permissions::default()
        };
        let mut world = World::new().file("/w/conf/secrets/k", "k");
        world.dirs.insert("/w/conf".into());
        world.dirs.insert("/w/conf/secrets".into());
        let rules = Rules::parse(&permissions, None).expect("a rule");
        world.ws.rules = rules.beneath("/w", &["/w".into()]);
        world.ws.host.home = Some(home.into());
        let arguments = format!(r#"{{"source_path":"{from}","destination_path":"{to}"}}"#);
        let outcome = world.run("move_file", &arguments);
        let moved = world
            .calls
            .iter()
            .any(|call| matches!(call, Call::Rename { .. }));
        assert_eq!(
            moved,
            refused.is_empty(),
            "{from} to {to}: {}",
            outcome.text
        );
        assert!(outcome.text.contains(refused), "{}", outcome.text);
    }
    let home = "/home/me/.reasonix";
    let moves = ("conf", "c2");
    let read = "Read(conf/secrets/**)";
    check(&[read], &[], home, moves, "may be about files in /w/conf");
    check(&[], &[read], home, moves, "may be about files in /w/conf");
    check(
        &["Edit(c2/hooks/**)"],
        &[],
        home,
        moves,
        "may be about files in /w/c2",
    );
    check(
        &[],
        &[],
        "/w/conf/home",
        moves,
        "belongs to the agent itself",
    );
    // Where no rule can be about what is in it, it goes; and a file is no folder.
    check(
        &["Read(src/secrets/**)", "Edit(.env)"],
        &[],
        home,
        moves,
        "",
    );
    check(&["Read(conf/x/**)"], &[], home, ("conf/secrets/k", "k"), "");
}

#[test]
fn a_grant_that_comes_after_a_cancel_has_no_effect() {
    let mut world = World::new();
    for late in [false, true] {
        let mut run = world.start("write_file", WRITE);
        until_permit(&mut world, &mut run);
        if !late {
            run.permitted();
        }
        run.cancel();
        run.permitted();
        let outcome = world.drive(&mut run);
        assert!(!outcome.ok && !outcome.wrote, "{outcome:?}");
        run.permitted();
        assert!(matches!(world.step(&mut run), Step::Wait));
    }
    assert!(world.files.is_empty());
    assert!(world.calls.is_empty());
}

#[test]
fn a_cancel_aborts_the_open_call_and_ends_with_its_last_news() {
    let mut world = World::new().file("/w/a", "x");
    let mut run = world.start("read_file", r#"{"path":"a"}"#);
    assert!(matches!(
        world.step(&mut run),
        Step::Call(Call::Resolve { .. })
    ));
    run.cancel();
    assert_eq!(world.step(&mut run), Step::Abort);
    assert_eq!(world.step(&mut run), Step::Wait);
    world.news(&mut run, News::Done(Outcome::Written));
    let Step::Done(outcome) = world.step(&mut run) else {
        panic!()
    };
    assert!(outcome.text.contains("Cancelled") && outcome.wrote);
}

#[test]
fn an_unknown_tool_or_bad_arguments_fail_with_the_reason_and_start_nothing() {
    #[track_caller]
    fn check(name: &str, arguments: &str, why: &str) {
        let mut world = World::new();
        let outcome = world.run(name, arguments);
        assert!(
            !outcome.ok && outcome.text.contains(why),
            "{}",
            outcome.text
        );
        assert!(world.calls.is_empty() && world.proposals.is_empty());
    }
    check("no_such_tool", "{}", "there is no tool of this name");
    check("", "{}", "there is no tool of this name");
    check("read_file", "", "`path` is missing");
    check("read_file", "{path: 'a'", "no JSON object");
    check("read_file", r#"{"path":"a"#, "no JSON object");
    check(
        "read_file",
        r#"{"path":7}"#,
        "`path` must be a string, not a number",
    );
    check(
        "read_file",
        r#"{"path":"a","offset":-1}"#,
        "`offset` must be",
    );
    check("read_file", r#"{"path":" "}"#, "`path` is empty");
    check("write_file", r#"{"path":"a"}"#, "`content` is missing");
    check("grep", r#"{"pattern":""}"#, "`pattern` is empty");
    check("bash_output", r#"{"job_id":"x"}"#, "`job_id` must be");
    check(
        "bash_output",
        r#"{"job_id":"job-9"}"#,
        "there is no job job-9",
    );
    check("todo_write", r#"{"todos":"x"}"#, "`todos` must be an array");
    check("ask", "{}", "`questions` is missing");
    check("ask", r#"{"question":"a","type":"date"}"#, "`type` must be");
    check(
        "ask",
        r#"{"question":"a","type":"number","options":["1"]}"#,
        "no other `type`",
    );
}

#[test]
fn members_nobody_knows_are_ignored() {
    let mut world = World::new().file("/w/a", "x");
    assert!(
        world
            .run("read_file", r#"{"path":"a","zzz":{"a":[1]},"limit":null}"#)
            .ok
    );
}

#[test]
fn cards_have_short_one_line_titles_and_bounded_arguments() {
    let world = World::new();
    let command = "漢\n".repeat(20_000);
    let command = serde_json::to_string(&command).expect("a string");
    let run = world.start("bash", &alloc::format!("{{\n\"command\": {command}}}"));
    let card = run.card();
    assert!(card.title.len() <= world.ws.limits.max_title && !card.title.contains('\n'));
    assert!(card.title.starts_with("bash 漢 漢"));
    let raw = card.raw_input.as_ref().expect("an object");
    assert!(raw.len() < 20_000 && !raw.contains('\n') && raw.contains("not shown"));
    assert!(serde_json::from_str::<&serde_json::value::RawValue>(raw).is_ok());
    assert_eq!(world.start("x", "{broken").card().raw_input, None);
    let edit = world.start(
        "edit_file",
        r#"{"path":"src/a.rs","old_string":"","new_string":""}"#,
    );
    assert_eq!(edit.card().title, "edit_file src/a.rs");
    assert_eq!(edit.card().locations, [Location::new("/w/src/a.rs", None)]);
    assert_eq!(edit.card().kind.name(), "edit");
    for (name, arguments, title) in [
        (
            "bash",
            r#"{"command":"echo \u202e\u001b[2K\u0007x"}"#,
            "bash echo \\u{202e} [2K x",
        ),
        (
            "read_file",
            r#"{"path":"a\u2066\nb"}"#,
            "read_file a\\u{2066} b",
        ),
        ("x\u{202e}y", "{}", "x\\u{202e}y"),
    ] {
        assert_eq!(world.start(name, arguments).card().title, title);
    }
}

#[test]
fn the_plan_is_shown_whole_and_blank_entries_are_dropped() {
    let mut world = World::new();
    let todos = r#"{"todos":[{"content":"a","status":"completed"},{"content":" "},
        {"content":"b","status":"odd","level":1},{"content":"c","status":"in_progress"}]}"#;
    let mut run = world.start("todo_write", todos);
    until_permit(&mut world, &mut run);
    run.permitted();
    let Step::Plan(plan) = world.step(&mut run) else {
        panic!()
    };
    let plan: Vec<(&str, &str, u32)> = plan
        .iter()
        .map(|t| (t.content.as_str(), t.status.name(), t.level))
        .collect();
    assert_eq!(
        plan,
        [
            ("a", "completed", 0),
            ("b", "pending", 1),
            ("c", "in_progress", 0)
        ]
    );
    let outcome = world.drive(&mut run);
    assert_eq!(outcome.text, "The plan is set: 1 of 3 done.");
    assert_eq!(world.state.todos().len(), 3);
}

#[test]
fn questions_come_with_their_options_and_an_unanswered_one_says_so() {
    let ask = |answers: Vec<Answer>| {
        let mut world = World::new();
        let arguments = r#"{"questions":[
            {"question":"Which?","header":"H","options":[{"label":"A","description":"d"},
             {"label":"B"}],"multi":true},
            {"question":"Why?","options":["x","y"]},{"question":"What else?"}]}"#;
        let mut run = world.start("ask", arguments);
        until_permit(&mut world, &mut run);
        run.permitted();
        let Step::Ask(questions) = world.step(&mut run) else {
            panic!()
        };
        let ids: Vec<(&str, usize, bool)> = questions
            .iter()
            .map(|q| (q.id.as_str(), q.options.len(), q.multi))
            .collect();
        assert_eq!(ids, [("q1", 2, true), ("q2", 2, false), ("q3", 0, false)]);
        assert_eq!(world.step(&mut run), Step::Wait);
        run.answered(answers);
        let outcome = world.drive(&mut run);
        assert!(outcome.ok);
        outcome.text
    };
    let text: String = ask(vec![
        Answer::Chosen(vec!["A".into(), "B".into()]),
        Answer::Unanswered,
        Answer::Text("free".into()),
    ]);
    assert!(text.contains("Which?\nAnswer: A; B\n"), "{text}");
    assert!(text.contains("Why?\nThe user did not answer."), "{text}");
    assert!(text.ends_with("Answer: free"), "{text}");
    assert_eq!(ask(vec![]).matches("did not answer").count(), 3);
}
