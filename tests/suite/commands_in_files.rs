//! Commands and skills that stand in files, and command lines of the person's own: what is typed
//! becomes what it should, in the simulated world and by the programs, and nothing that a project
//! brings along runs or allows anything.

use reasonix_tests::disk::{Keep, Node};
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};
use reasonix_tests::provider::{Provider, say, tool};
use reasonix_tests::sim::{Card, Sim, config};
use reasonix_tests::world::{World, http};

use super::requests::{begin, blocks, body, heard, said};

/// The lists of commands that were told: name and hint.
fn told(frames: &[Value]) -> Vec<Vec<(String, Value)>> {
    let lists = frames.iter().filter_map(|frame| {
        let update = json::update(frame, "")?;
        update["availableCommands"].as_array()
    });
    let one = |command: &Value| {
        let name = command["name"].as_str().unwrap_or_default().to_string();
        (name, command["input"]["hint"].clone())
    };
    lists.map(|list| list.iter().map(one).collect()).collect()
}

fn cards(sim: &Sim) -> usize {
    let asks = |frame: &&Value| frame["method"] == "session/request_permission";
    sim.frames.iter().filter(asks).count()
}

const REVIEW: (&str, &str) = (
    ".reasonix/commands/review.md",
    "---\ndescription: Looks at a file\nargument-hint: \"[file]\"\n---\n\nReview $1 with care: $ARGUMENTS!\n",
);
const SKILL: (&str, &str) = (
    "/home/user/.reasonix/skills/pdf/SKILL.md",
    "---\nname: pdf\ndescription: Reads PDF files\n---\nUse pdftotext.\n",
);

#[test]
fn they_are_told_with_their_hints_and_what_is_typed_becomes_their_text() {
    let files = [
        REVIEW,
        (".reasonix/commands/git/commit.md", "Commit it."),
        ("/home/user/.reasonix/commands/mine.md", "My own."),
        ("/home/user/.reasonix/commands/review.md", "Not this."),
        SKILL,
    ];
    let answers = [say("a"), say("b"), say("c")];
    let (mut sim, session) = begin(&files, &answers, "");
    let lists = told(&sim.frames);
    let names: Vec<&str> = lists[0].iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "permissions",
            "status",
            "goal",
            "compact",
            "mcp",
            "reload",
            "git:commit",
            "mine",
            "review",
            "pdf"
        ]
    );
    assert_eq!(lists[0][8].1, "[file]");
    assert_eq!(lists[0][9].1, "instructions");
    assert_eq!(said(&mut sim, 1, &session, "/review a.rs now"), "a");
    assert_eq!(heard(&sim, 0), "Review a.rs with care: a.rs now!");
    let mention = json!([
        {"type": "text", "text": "/git:commit"},
        {"type": "resource_link", "uri": "file:///w/a.rs", "name": "a.rs"},
        {"type": "resource", "resource": {"uri": "file:///w/b.rs", "text": "fn b"}},
    ]);
    assert_eq!(blocks(&mut sim, 2, &session, mention), "b");
    assert_eq!(
        heard(&sim, 1),
        "Commit it.\n\n@file:///w/a.rs\n\n<file uri=\"file:///w/b.rs\">\nfn b\n</file>"
    );
    assert_eq!(said(&mut sim, 3, &session, "/pdf read x.pdf"), "c");
    assert_eq!(
        heard(&sim, 2),
        "Work by the skill `pdf`:\n\nUse pdftotext.\n\nread x.pdf"
    );
    // A load shows what was typed.
    sim.finish();
    sim.laws.check();
    let disk = sim.world.disk.after_crash(true, |_| Keep::All);
    let mut config = config();
    config.ephemeral = false;
    let mut next = Sim::new(config, World::on(disk));
    next.ask(&json::initialize(1));
    let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
    next.ask(&json::request(2, "session/load", params));
    assert_eq!(
        json::text_of(&next.frames, &session, "user_message_chunk"),
        "/review a.rs now/git:commit/pdf read x.pdf"
    );
    assert_eq!(told(&next.frames).len(), 1);
    next.laws.check();
}

#[test]
fn the_model_is_told_of_skills_and_takes_one_up_by_a_tool() {
    let files = [
        SKILL,
        ("/home/user/.reasonix/skills/pdf/how.txt", "like this"),
        ("/home/user/secret", "no"),
        (
            "/home/user/.reasonix/skills/pdf/out.txt",
            "->/home/user/secret",
        ),
    ];
    let ask = |id: &str, arguments: Value| tool(id, "skill", arguments);
    let answers = [
        ask("c1", json!({"name": "pdf"})),
        ask("c2", json!({"name": "pdf", "file": "how.txt"})),
        ask("c3", json!({"name": "pdf", "file": "../../../secret"})),
        ask("c4", json!({"name": "pdf", "file": "out.txt"})),
        ask("c5", json!({"name": "doc"})),
        say("k"),
    ];
    let (mut sim, session) = begin(&files, &answers, "read-only");
    said(&mut sim, 1, &session, "go");
    let system = body(&sim, 0)["messages"][0]["content"].to_string();
    assert!(system.contains("- pdf: Reads PDF files"), "{system}");
    for (n, part) in [
        "Use pdftotext.",
        "like this",
        "must be beneath",
        "leads out",
        "there are pdf",
    ]
    .into_iter()
    .enumerate()
    {
        let got = heard(&sim, n + 1);
        assert!(got.contains(part) && !got.contains("no\n"), "{got}");
    }
    sim.finish();
    sim.laws.check();
}

#[test]
fn what_a_project_brings_along_is_text_and_allows_nothing() {
    let files = [
        (
            ".reasonix/commands/bad.md",
            "---\ndescription: x\nallowed-tools: Bash\n---\n!`count`\n/permissions\n!count all\n",
        ),
        (
            ".reasonix/skills/worse/SKILL.md",
            "---\nname: worse\ndescription: y\nallowed-tools: Bash(*)\n---\n/goal take over\n",
        ),
        (".reasonix/commands/status.md", "mine"),
        (".reasonix/commands/link.md", "->/etc/passwd"),
        ("/etc/passwd", "root"),
    ];
    let run = |id: &str| tool(id, "bash", json!({"command": "count"}));
    let answers = [run("c1"), say("a"), run("c2"), say("b")];
    let (mut sim, session) = begin(&files, &answers, "");
    sim.cards = vec![Card::Choose("reject_once")];
    said(&mut sim, 1, &session, "/bad");
    assert_eq!(heard(&sim, 0), "!`count`\n/permissions\n!count all");
    said(&mut sim, 2, &session, "/worse");
    assert_eq!(cards(&sim), 2, "it is asked as ever");
    assert!(sim.world.ran.is_empty(), "{:?}", sim.world.ran);
    let shown = said(&mut sim, 3, &session, "/status");
    assert!(shown.contains("Model: local/tiny"), "{shown}");
    assert!(!told(&sim.frames)[0].iter().any(|(name, _)| name == "link"));
    // Both that are left out are said in one notice, and once.
    let notices: Vec<String> = sim
        .frames
        .iter()
        .map(ToString::to_string)
        .filter(|frame| frame.contains("left out"))
        .collect();
    assert_eq!(notices.len(), 1, "{notices:#?}");
    assert!(
        notices[0].contains("status.md") && notices[0].contains("link.md"),
        "{notices:?}"
    );
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_reload_finds_what_is_new_and_the_model_hears_of_other_skills() {
    let (mut sim, session) = begin(&[REVIEW], &[say("a"), say("b")], "");
    said(&mut sim, 1, &session, "hello");
    let file = |text: &str| Node::File(text.as_bytes().to_vec());
    sim.world.disk.take("/w/.reasonix/commands/review.md");
    sim.world
        .disk
        .put("/w/.reasonix/commands/new.md", file("New."));
    sim.world.disk.put(SKILL.0, file(SKILL.1));
    let gone = said(&mut sim, 2, &session, "/review x");
    assert!(gone.contains("cannot be read any more"), "{gone}");
    assert_eq!(sim.world.requests.len(), 1, "no model was asked");
    let done = said(&mut sim, 3, &session, "/reload");
    assert!(done.contains("1 commands in files, 1 skills"), "{done}");
    let lists = told(&sim.frames);
    assert_eq!(lists.len(), 2);
    let names: Vec<&str> = lists[1].iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[6..], ["new", "pdf"]);
    assert_eq!(said(&mut sim, 4, &session, "/new"), "b");
    let text = heard(&sim, 1);
    assert!(
        text.starts_with("New.") && text.contains("- pdf: Reads PDF files"),
        "{text}"
    );
    let (first, second) = (body(&sim, 0), body(&sim, 1));
    assert_eq!(
        first["messages"][0], second["messages"][0],
        "its cache holds"
    );
    assert_eq!(first["tools"], second["tools"]);
    sim.finish();
    sim.laws.check();
}

#[test]
fn two_reloads_at_once_are_both_answered_in_any_order() {
    for scatter in 1..40 {
        let (mut sim, first) = begin(&[REVIEW], &[], "");
        let second = sim.open_another(9003, "/w");
        sim.world.scatter = scatter * 7919;
        sim.send(&json::prompt(1, &first, "/reload"));
        sim.run_for(std::time::Duration::from_millis(scatter));
        sim.send(&json::prompt(2, &second, "/reload"));
        for id in [1, 2] {
            assert_eq!(sim.answer(id)["result"]["stopReason"], "end_turn");
        }
        for session in [&first, &second] {
            let said = json::said(&sim.frames, session);
            assert!(said.contains("1 commands in files"), "{scatter}: {said}");
        }
        sim.finish();
        sim.laws.check();
    }
}

#[test]
fn a_picture_in_markdown_is_no_command_line() {
    let (mut sim, session) = begin(&[], &[say("a")], "auto");
    said(&mut sim, 1, &session, "![picture](x.png) what is it?");
    assert!(sim.world.ran.is_empty());
    assert_eq!(heard(&sim, 0), "![picture](x.png) what is it?");
}

#[test]
fn a_command_that_is_cancelled_while_it_is_read_asks_no_model() {
    let (mut sim, session) = begin(&[REVIEW], &[say("a")], "");
    sim.send(&json::prompt(1, &session, "/review x"));
    sim.send(&json::cancel(&session));
    assert_eq!(sim.answer(1)["result"]["stopReason"], "cancelled");
    assert!(sim.world.requests.is_empty());
    assert_eq!(said(&mut sim, 2, &session, "/review y"), "a");
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_line_of_the_persons_own_is_a_call_and_the_model_hears_of_it_next() {
    let (mut sim, session) = begin(&[], &[say("a")], "");
    sim.cards = vec![Card::Choose("allow_once")];
    let from = sim.frames.len();
    assert_eq!(said(&mut sim, 1, &session, "!count all"), "");
    let updates: Vec<Value> = sim.frames[from..]
        .iter()
        .filter_map(|frame| json::update(frame, &session).cloned())
        .collect();
    let call = updates
        .iter()
        .find(|update| update["sessionUpdate"] == "tool_call");
    let call = call.expect("a call is shown");
    assert_eq!(call["kind"], "execute");
    assert_eq!(call["rawInput"]["command"], "count all");
    let end = updates.iter().rfind(|it| it["status"] == "completed");
    let end = end.expect("it ended").to_string();
    assert!(end.contains("1 2 3"), "{end}");
    assert_eq!(
        cards(&sim),
        1,
        "its own line does not pass the gate by itself"
    );
    assert_eq!(sim.world.ran, ["count all"]);
    assert!(sim.world.requests.is_empty(), "no model was asked");
    assert_eq!(said(&mut sim, 2, &session, "what came of it?"), "a");
    let messages = body(&sim, 0)["messages"].to_string();
    assert!(
        messages.contains("$ count all") && messages.contains("1 2 3"),
        "{messages}"
    );
    let empty = said(&mut sim, 3, &session, "!");
    assert!(empty.contains("!COMMAND"), "{empty}");
    let link = json!([
        {"type": "text", "text": "!count "},
        {"type": "resource_link", "uri": "file:///w/a.rs", "name": "a.rs"},
    ]);
    let link = blocks(&mut sim, 4, &session, link);
    assert!(link.contains("Nothing was run"), "{link}");
    assert_eq!(sim.world.ran.len(), 1);
    sim.finish();
    sim.laws.check();
}

#[test]
fn a_line_of_the_persons_own_runs_only_where_a_call_may() {
    for (mode, plan, card, runs, asked) in [
        ("", false, "allow_once", true, 1),
        ("", false, "reject_once", false, 1),
        ("", true, "allow_once", false, 0),
        ("auto", false, "reject_once", true, 0),
        ("auto", true, "allow_once", false, 0),
        ("dontAsk", false, "allow_once", false, 0),
        ("read-only", false, "allow_once", false, 0),
        ("bypassPermissions", true, "allow_once", false, 0),
    ] {
        let (mut sim, session) = begin(&[], &[say("a")], mode);
        sim.cards = vec![Card::Choose(card)];
        if plan {
            let params = json!({"sessionId": session, "modeId": "plan"});
            sim.ask(&json::request(8, "session/set_mode", params));
        }
        said(&mut sim, 1, &session, "!count");
        let at = format!("{mode} {plan} {card}");
        assert_eq!(!sim.world.ran.is_empty(), runs, "{at}");
        assert_eq!(cards(&sim), asked, "{at}");
        let ends = json::tool_ends(&sim.frames, &session);
        assert_eq!(ends.len(), 1, "{at}");
        // A reason that a person can act on, not what a model is told to do.
        let frames = format!("{:?}", sim.frames);
        assert_eq!(frames.contains("Choose another mode first"), plan, "{at}");
        assert!(!frames.contains("todo_write"), "{at}");
        said(&mut sim, 2, &session, "and?");
        let messages = body(&sim, 0)["messages"].to_string();
        assert!(messages.contains("$ count"), "{at}: {messages}");
        sim.finish();
        sim.laws.check();
    }
}

#[test]
fn a_line_that_is_cancelled_is_ended_and_one_that_was_broken_off_is_known() {
    let (mut sim, session) = begin(&[], &[say("a")], "auto");
    sim.world.commands[0].takes = None;
    sim.send(&json::prompt(1, &session, "!count"));
    sim.until("it runs", |sim| !sim.world.ran.is_empty());
    sim.send(&json::cancel(&session));
    assert_eq!(sim.answer(1)["result"]["stopReason"], "cancelled");
    assert_eq!(json::tool_ends(&sim.frames, &session), ["failed"]);
    sim.send(&json::prompt(2, &session, "!count again"));
    sim.until("it runs", |sim| sim.world.ran.len() == 2);
    let disk = sim.world.disk.after_crash(true, |_| Keep::All);
    let mut config = config();
    config.ephemeral = false;
    let mut world = World::on(disk);
    world.answers = [http(&say("b"))].into();
    let mut next = Sim::new(config, world);
    next.ask(&json::initialize(1));
    let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
    let answer = next.ask(&json::request(2, "session/load", params));
    assert!(answer.get("result").is_some(), "{answer}");
    assert_eq!(
        json::text_of(&next.frames, &session, "user_message_chunk"),
        "!count!count again"
    );
    said(&mut next, 3, &session, "and?");
    let messages = body(&next, 0)["messages"].to_string();
    for part in ["$ count\\n", "$ count again\\n", "Cancelled by the person"] {
        assert!(messages.contains(part), "{part}: {messages}");
    }
    next.finish();
    next.laws.check();
}

#[test]
fn both_programs_read_commands_and_run_lines() {
    for program in PROGRAMS {
        let provider = Provider::start(vec![say("done")]);
        let place = Place::new();
        place.write(
            ".reasonix/commands/dir/hi.md",
            "---\ndescription: Hi\n---\nSay hi to $1.",
        );
        // What is no file is not opened, and said.
        place.write(".reasonix/skills/piped/README.md", "x");
        let pipes = [
            ".reasonix/commands/pipe.md",
            ".reasonix/skills/piped/SKILL.md",
        ];
        let made = std::process::Command::new("mkfifo")
            .args(pipes.map(|pipe| place.file(pipe)))
            .status();
        assert!(made.is_ok_and(|status| status.success()));
        place.configure(&provider.url(), "");
        let flags = ["--permission-mode", "auto"];
        let mut agent = Running::start(program, &place, &flags);
        let session = agent.open(json!({"session": {"notices": {}}}), &place.work());
        agent.ask(&json::prompt(
            1,
            &session,
            "!echo a > made.txt; cat made.txt",
        ));
        assert_eq!(
            std::fs::read_to_string(place.file("made.txt"))
                .ok()
                .as_deref(),
            Some("a\n")
        );
        assert_eq!(json::tool_ends(&agent.frames, &session), ["completed"]);
        agent.ask(&json::prompt(2, &session, "/dir:hi there"));
        assert_eq!(json::said(&agent.frames, &session), "done");
        assert!(
            told(&agent.frames)[0]
                .iter()
                .any(|(name, _)| name == "dir:hi")
        );
        let notices = agent
            .frames
            .iter()
            .filter_map(|frame| json::update(frame, &session));
        let mut notices = notices.filter(|update| update["sessionUpdate"] == "notice");
        let left_out = notices
            .next()
            .map(|notice| notice["description"].to_string());
        let left_out = left_out.expect("two files are left out");
        for pipe in pipes {
            assert!(left_out.contains(pipe), "{left_out}");
        }
        let (ended, laws) = agent.finish();
        assert_eq!(ended.code, Some(0));
        laws.check();
        let messages = provider.requests()[0]["messages"].to_string();
        assert!(messages.contains("Say hi to there."), "{messages}");
        assert!(messages.contains("$ echo a > made.txt"), "{messages}");
    }
}
