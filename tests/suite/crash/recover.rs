//! One disk that a crash has left: what the next process makes of it is what the client was told.

use std::time::Duration;

use reasonix_tests::disk::{Disk, Keep};
use reasonix_tests::json::{Value, json};

use super::known::Known;
use super::next::{Next, is_beginning};
use super::script::What;
use crate::cases::well_formed;

/// What is in an inbox, and what has been said of it, is what the client was told.
#[track_caller]
pub(super) fn check_items(
    context: &str,
    known: &Known<'_>,
    session: usize,
    items: &[(String, String)],
    picture: &[String],
) {
    for (nth, item) in known.life.items.iter().enumerate() {
        if item.session != session {
            continue;
        }
        let put = |what: &What| matches!(what, What::Put { item, .. } if *item == nth);
        let drop = |what: &What| *what == What::Drop(nth);
        let change = |what: &What| *what == What::Change(nth);
        let said = |line: &&String| {
            let text = line.strip_prefix("user_message_chunk ");
            text.is_some_and(|text| item.is(text))
        };
        let said = picture.iter().filter(said).count();
        let waits: Vec<_> = items.iter().filter(|(text, _)| item.is(text)).collect();
        let context = format!(
            "{context}: {:?} is {waits:?}, said {said} times",
            item.texts
        );
        assert!(said <= 1 && waits.len() <= 1, "{context}");
        if known.answered(drop) > 0 {
            assert!(waits.is_empty() && said == 0, "{context}, and was deleted");
        } else if known.answered(put) > 0 && !known.sent(drop) {
            assert!(waits.len() + said > 0, "{context}, and was put in");
        }
        if !known.sent(put) {
            assert!(
                waits.is_empty() && said == 0,
                "{context}, and was never put in"
            );
        }
        if let (Some((text, state)), answered) = (waits.first(), known.answered(change) > 0) {
            let last = item.texts.last().expect("it has one");
            assert!(!answered || text == last, "{context}, and was changed");
            // Its message in the history is what decides whether it began.
            assert!(said == 0 || state == "uncertain", "{context}");
            assert!(said == 1 || state == "queued", "{context}");
        }
    }
}

/// Looks at one disk that is left of a moment.
pub(super) fn recover(
    context: &str,
    disk: Disk,
    power: bool,
    known: &Known<'_>,
    whole: &[Vec<String>],
) {
    let files: Vec<_> = disk
        .paths()
        .filter(|(path, _)| path.starts_with("/w"))
        .map(|(path, node)| (path.to_string(), node.clone()))
        .collect();
    let mut next = Next::on(disk);
    let mut open = Vec::new();
    for (nth, session) in known.sessions() {
        let context = format!("{context}, session {nth}");
        let loaded = next.load(session);
        let prompts = known.prompts(nth);
        let gone = |what: &What| *what == What::Delete(nth);
        let deleted = known.answered(gone) > 0;
        let found = loaded.answer.get("result").is_some();
        if deleted {
            assert!(!found, "{context}: deleted, and back: {}", loaded.answer);
        } else if !found {
            // What was made and not used may be lost with the power, what was to be deleted too.
            let put = |what: &What| matches!(what, What::Put { session, .. } if *session == nth);
            let used = !prompts.is_empty()
                || !known.options(nth, "").is_empty()
                || known.answered(put) > 0;
            let may = (power && !used) || known.sent(gone);
            assert!(may, "{context}: {}", loaded.answer);
        }
        if !found {
            assert_eq!(
                loaded.answer["error"]["code"], -32002,
                "{context}: {}",
                loaded.answer
            );
            continue;
        }
        if !known.sent(gone) {
            is_beginning(
                &context,
                &loaded.picture,
                &whole[nth],
                known.open_prompt(nth),
            );
            for option in ["tool_approval", "agent_preset"] {
                let may = known.options(nth, option);
                let options = loaded.answer["result"]["configOptions"].as_array().cloned();
                let value = options
                    .into_iter()
                    .flatten()
                    .find(|o| o["id"] == option)
                    .map(|o| o["currentValue"].clone())
                    .unwrap_or_default();
                let answered = known.answered(|what| {
                    matches!(what, What::Option { session, value } if *session == nth
                        && value.starts_with(option))
                });
                assert!(
                    answered == 0 || may.iter().any(|may| value == *may),
                    "{context}: {option} is {value}, not {may:?}"
                );
            }
            open.push((nth, session, loaded.picture));
        }
    }
    let mut left = Vec::new();
    for (nth, session, picture) in &open {
        if known.life.items.iter().any(|item| item.session == *nth) {
            let items = next.items(session);
            check_items(context, known, *nth, &items, picture);
            left = items;
        }
    }
    // Nothing goes on by itself.
    next.sim.run_for(Duration::from_secs(5));
    assert_eq!(
        next.sim.world.ran,
        Vec::<String>::new(),
        "{context}: it ran again"
    );
    assert_eq!(
        next.sim.world.requests.len(),
        0,
        "{context}: the model was asked"
    );
    let now: Vec<_> = next
        .sim
        .world
        .disk
        .paths()
        .filter(|(path, _)| path.starts_with("/w"))
        .map(|(path, node)| (path.to_string(), node.clone()))
        .collect();
    assert_eq!(files, now, "{context}: the workspace changed");
    // The one that something went on in; the others were looked at when they were that.
    let last = known
        .asked
        .iter()
        .rev()
        .find_map(|(asked, _)| asked.what.session());
    open.retain(|(nth, ..)| Some(*nth) == last);
    // Life goes on, with a history that is well formed and holds what was answered.
    for (nth, session, _) in &open {
        let context = format!("{context}, session {nth}");
        let before = next.sim.world.requests.len();
        let answer = next.say(session);
        assert_eq!(
            answer["result"]["stopReason"], "end_turn",
            "{context}: {answer}"
        );
        let requests = &next.sim.world.requests[before..];
        assert_eq!(requests.len(), 1, "{context}: one turn, one question");
        let body: Value = serde_json::from_slice(&requests[0].body).expect("a request is JSON");
        well_formed(&context, &body);
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let users: Vec<String> = messages
            .iter()
            .filter(|message| message["role"] == "user")
            .map(|message| message["content"].to_string())
            .collect();
        let mut rest = users.iter();
        for prompt in known.prompts(*nth) {
            assert!(
                rest.any(|user| user.contains(prompt)),
                "{context}: the model is not told of {prompt:?}: {users:#?}"
            );
        }
    }
    // What still waits has its turn when it is told to go on, and no more than once in all.
    for (nth, session, _) in &open {
        if left.is_empty() || known.life.items.iter().all(|item| item.session != *nth) {
            continue;
        }
        next.inbox(session, "setPaused", json!({"paused": false}));
        let answer = next.say(session);
        assert_eq!(
            answer["result"]["stopReason"], "end_turn",
            "{context}: {answer}"
        );
        let items = next.items(session);
        let ran = |command: &str| {
            let before = known.life.sim.world.ran[..known.ran].iter();
            before
                .chain(&next.sim.world.ran)
                .filter(|line| *line == command)
                .count()
        };
        for (text, state) in &left {
            let there = items.iter().any(|(other, _)| other == text);
            assert_eq!(
                there,
                state == "uncertain",
                "{context}: {text} was {state}: {items:?}"
            );
            if let Some(command) = ["count-a", "count-z"]
                .into_iter()
                .find(|it| text.contains(it))
            {
                let times = ran(command);
                let may = if there { 0..=1 } else { 1..=1 };
                assert!(
                    may.contains(&times),
                    "{context}: {command} ran {times} times"
                );
            }
        }
    }
    next.sim.finish();
    next.sim.laws.check();
    // And what recovery added is there once, for the one after.
    let disk = next.sim.world.disk.after_crash(true, |_| Keep::Synced);
    let mut last = Next::on(disk);
    for (nth, session, picture) in open {
        let again = last.load(session);
        let at = picture.len().min(again.picture.len());
        assert_eq!(
            again.picture[..at],
            picture,
            "{context}, session {nth}: mended twice"
        );
    }
}
