//! A small edit by a model, judged by the file on disk and not by what the model says of it. A
//! scripted provider shows in every run that the judge works; a real one is asked when the
//! environment names it.

use std::io::Write as _;
use std::time::{Duration, Instant};

use reasonix_tests::json::{self, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};
use reasonix_tests::provider::{Answer, Provider, say, tool};

/// A provider and one of its models.
struct Model {
    base_url: String,
    id: String,
    key: Option<String>,
}

const BEFORE: &str = "Dear reader,\nthis sentense has a mistake.\nYours\n";
const AFTER: &str = "Dear reader,\nthis sentence has a mistake.\nYours\n";
const OTHER: &str = "this sentense stays as it is\n";
const TASK: &str = "The file letter.txt in this folder has one word that is spelled wrong: `sentense` \
    should be `sentence`. Correct it in letter.txt. Change nothing else, and no other file.";

/// Lets a model do it with `program`; the error says what is wrong with the outcome.
fn edit(program: &str, model: &Model) -> Result<(), String> {
    let place = Place::new();
    place.write("letter.txt", BEFORE);
    place.write("other.txt", OTHER);
    let key = match &model.key {
        Some(key) => {
            let file = place.home().join(".env");
            std::fs::write(&file, format!("TEST_KEY={key}\n")).expect("the home can be written");
            private(&file);
            "api_key_env = \"TEST_KEY\"\n"
        }
        None => "",
    };
    let (url, id) = (json!(model.base_url), json!(model.id));
    let config = format!(
        "default_model = {}\n[providers.test]\nbase_url = {url}\n{key}[[providers.test.models]]\nid = {id}\ncontext_window = 32768\n",
        json!(format!("test/{}", model.id)),
    );
    std::fs::write(place.home().join("config.toml"), config).expect("the home can be written");

    let mut agent = Running::start(program, &place, &["--max-steps", "20"]);
    let session = agent.open(json!({}), &place.work());
    agent.send(&json::prompt(1, &session, TASK));
    let end = Instant::now() + Duration::from_secs(300);
    while json::answer_to(&agent.frames, 1).is_none() {
        if agent.next("the end of the turn", end).is_none() {
            return Err(format!("it ended early: {}", agent.errors()));
        }
    }
    let answer = json::answer_to(&agent.frames, 1)
        .cloned()
        .unwrap_or_default();
    let said = json::said(&agent.frames, &session);
    let (ended, laws) = agent.finish();
    laws.check();
    if answer["result"]["stopReason"] != "end_turn" {
        return Err(format!("the turn did not end well: {answer}"));
    }
    if ended.code != Some(0) {
        return Err(format!("it did not end well: {ended:?}"));
    }
    let read = |name: &str| std::fs::read_to_string(place.file(name)).unwrap_or_default();
    if read("letter.txt") != AFTER {
        return Err(format!(
            "letter.txt is {:?}; it said {said:?}",
            read("letter.txt")
        ));
    }
    if read("other.txt") != OTHER {
        return Err(format!("other.txt is {:?}", read("other.txt")));
    }
    Ok(())
}

#[cfg(unix)]
fn private(file: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(file, mode).expect("it is ours");
}

#[cfg(not(unix))]
fn private(_: &std::path::Path) {}

fn scripted(answers: Vec<Answer>, program: &str) -> Result<(), String> {
    let provider = Provider::start(answers);
    let model = Model {
        base_url: provider.url(),
        id: "tiny".into(),
        key: Some("sk-test".into()),
    };
    let done = edit(program, &model);
    let head = provider.heads().concat().to_lowercase();
    assert!(head.contains("authorization: bearer sk-test"), "{head}");
    done
}

#[test]
fn the_judge_of_the_edit_looks_at_the_disk() {
    let read = || tool("r", "read_file", json!({"path": "letter.txt"}));
    let change = |path: &str, new: &str| {
        tool(
            "e",
            "edit_file",
            json!({"path": path, "old_string": "sentense", "new_string": new}),
        )
    };
    for program in PROGRAMS {
        let good = vec![read(), change("letter.txt", "sentence"), say("Done.")];
        assert_eq!(scripted(good, program), Ok(()), "{program}");
        for (what, lies) in [
            ("letter.txt", vec![say("I corrected letter.txt.")]),
            (
                "letter.txt",
                vec![read(), change("letter.txt", "sentance"), say("Done.")],
            ),
            (
                "other.txt",
                vec![
                    read(),
                    change("letter.txt", "sentence"),
                    tool("o", "read_file", json!({"path": "other.txt"})),
                    change("other.txt", "sentence"),
                    say("Done."),
                ],
            ),
            ("the turn", vec![Answer::plain(400, "text/plain", "no")]),
        ] {
            let verdict = scripted(lies, program).expect_err(what);
            assert!(verdict.starts_with(what), "{program}: {verdict}");
        }
    }
}

/// `REASONIX_TEST_BASE_URL` and `REASONIX_TEST_MODEL` name a provider and a model,
/// `REASONIX_TEST_KEY` is its key, if it wants one.
#[test]
fn a_real_model_makes_a_small_edit() {
    let name = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(base_url), Some(id)) = (name("REASONIX_TEST_BASE_URL"), name("REASONIX_TEST_MODEL"))
    else {
        // Not by a macro, whose output is kept back when a test passes.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: no real model was asked; set REASONIX_TEST_BASE_URL and REASONIX_TEST_MODEL \
             (and REASONIX_TEST_KEY)"
        );
        return;
    };
    let key = name("REASONIX_TEST_KEY");
    let model = Model { base_url, id, key };
    for program in PROGRAMS {
        if let Err(why) = edit(program, &model) {
            panic!("{program} with {}: {why}", model.id);
        }
    }
}
