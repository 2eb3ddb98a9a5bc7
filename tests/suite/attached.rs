//! Commands with files, links and pictures: which blocks are the words, what becomes of the others, and
//! that nothing is lost in silence.

use reasonix_tests::json::{Value, json};
use reasonix_tests::provider::{say, tool};

use super::requests::{PICTURE, begin, blocks, body, heard, said};

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn link(name: &str) -> Value {
    json!({"type": "resource_link", "uri": format!("file:///w/{name}"), "name": name})
}

fn file(name: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": format!("file:///w/{name}"), "text": "fn x"}})
}

fn picture() -> Value {
    json!({"type": "image", "mimeType": "image/png", "data": PICTURE})
}

#[test]
fn what_an_editor_attaches_does_not_decide_whether_a_command_runs() {
    let line = "a command line takes only words";
    for (prompt, runs, says) in [
        (json!([text("!count")]), true, ""),
        (
            json!([link("a.rs"), text("!count")]),
            true,
            &*format!("a.rs was not used: {line}.\n\n"),
        ),
        (
            json!([text("!count"), link("a.rs")]),
            true,
            &format!("a.rs was not used: {line}.\n\n"),
        ),
        (
            json!([
                file("b.rs"),
                text("\n"),
                text("!count"),
                picture(),
                link("a.rs")
            ]),
            true,
            &format!("b.rs, a picture and a.rs were not used: {line}.\n\n"),
        ),
        // It would be another line.
        (
            json!([text("!count "), link("a.rs"), text(" ")]),
            false,
            "Nothing was run: a link is no part of a command line. Write its path out.",
        ),
        (
            json!([text("!count "), link("a.rs"), text(" > b")]),
            false,
            "Nothing was run: a link is no part of a command line. Write its path out.",
        ),
        (
            json!([text("!"), file("b.rs")]),
            false,
            &format!(
                "b.rs was not used: {line}.\n\nSay !COMMAND to run a command line of your own."
            ),
        ),
    ] {
        let (mut sim, session) = begin(&[], &[], "auto");
        assert_eq!(
            blocks(&mut sim, 1, &session, prompt.clone()),
            says,
            "{prompt}"
        );
        assert_eq!(
            sim.world.ran.as_slice(),
            if runs { &["count"][..] } else { &[] },
            "{prompt}"
        );
        assert!(
            sim.world.requests.is_empty(),
            "no model was asked: {prompt}"
        );
        sim.finish();
        sim.laws.check();
    }
}

#[test]
fn the_agents_own_commands_run_whatever_is_attached_and_say_what_they_did_not_use() {
    for (prompt, says) in [
        (
            json!([text("/status"), file("b.rs")]),
            "b.rs was not used: /status takes only words.\n\nSession: ",
        ),
        (
            json!([link("a.rs"), text("/status")]),
            "a.rs was not used: /status takes only words.\n\nSession: ",
        ),
        (
            json!([picture(), text("/compact")]),
            "a picture was not used: /compact takes only words.\n\nThere is nothing",
        ),
        (
            json!([text("/reload"), link("a.rs")]),
            "a.rs was not used: /reload takes only words.\n\n",
        ),
        (
            json!([text("/permissions revoke all"), link("a.rs"), link("b.rs")]),
            "a.rs and b.rs were not used: /permissions takes only words.\n\n",
        ),
        // A word of a command, and a file that happens to be open: no goal of that name.
        (
            json!([text("/goal pause "), link("a.rs")]),
            "a.rs was not used: /goal takes only words.\n\n",
        ),
        (
            json!([text("/goal"), link("a.rs")]),
            "a.rs was not used: /goal takes only words.\n\nThere is no goal",
        ),
    ] {
        let (mut sim, session) = begin(&[], &[], "");
        let told = blocks(&mut sim, 1, &session, prompt.clone());
        assert!(told.starts_with(says), "{prompt}: {told}");
        assert!(
            sim.world.requests.is_empty(),
            "no model was asked: {prompt}"
        );
        sim.finish();
        sim.laws.check();
    }
}

#[test]
fn a_goal_is_its_words_with_the_links_among_them_and_the_model_gets_the_rest() {
    let blocked = json!({"status": "blocked", "reason": "r", "next_action": "n"});
    let answers = [tool("c1", "update_goal", blocked), say("stuck")];
    for (prompt, objective, rest) in [
        (json!([text("/goal make it green")]), "make it green", ""),
        (
            json!([text("/goal port "), link("a.rs"), text(" to C")]),
            "port @file:///w/a.rs to C",
            "",
        ),
        (
            json!([file("b.rs"), text("/goal make it green"), link("a.rs")]),
            "make it green",
            "\n\n<file uri=\"file:///w/b.rs\">\nfn x\n</file>\n\n@file:///w/a.rs",
        ),
    ] {
        let (mut sim, session) = begin(&[], &answers, "");
        blocks(&mut sim, 1, &session, prompt.clone());
        let got = body(&sim, 0)["messages"][1]["content"].to_string();
        let words = Value::from(format!("{objective}{rest}")).to_string();
        assert!(got.contains(words.trim_matches('"')), "{prompt}: {got}");
        assert!(!got.contains("/goal"), "{prompt}: {got}");
        let shown = said(&mut sim, 2, &session, "/goal");
        assert!(
            shown.ends_with(&format!(": {objective}")),
            "{prompt}: {shown}"
        );
        sim.finish();
        sim.laws.check();
    }
}

#[test]
fn commands_in_files_take_links_as_words_and_the_rest_behind_their_text() {
    let files = [(".reasonix/commands/review.md", "Review $1 ($ARGUMENTS).")];
    for (prompt, told) in [
        (
            json!([text("/review "), link("a.rs"), text(" now")]),
            "Review @file:///w/a.rs (@file:///w/a.rs now).",
        ),
        (
            json!([
                link("open.rs"),
                text("/review x"),
                link("a.rs"),
                file("b.rs")
            ]),
            "Review x (x).\n\n@file:///w/open.rs\n\n@file:///w/a.rs\n\n\
             <file uri=\"file:///w/b.rs\">\nfn x\n</file>",
        ),
    ] {
        let (mut sim, session) = begin(&files, &[say("a")], "");
        assert_eq!(
            blocks(&mut sim, 1, &session, prompt.clone()),
            "a",
            "{prompt}"
        );
        assert_eq!(heard(&sim, 0), told, "{prompt}");
        sim.finish();
        sim.laws.check();
    }
}
