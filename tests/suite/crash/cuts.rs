//! Every kind of line that is written, torn at every byte.

use std::collections::{BTreeMap, BTreeSet};

use reasonix_tests::disk::{Disk, Keep, Node};
use reasonix_tests::json::{self, json};
use reasonix_tests::sim::Moment;

use super::known::Known;
use super::next::{Next, is_beginning, is_mending};
use super::recover::{check_items, recover};
use super::script::{HOME, Life, What, life, rare_life};
use super::whole;
use crate::cases::well_formed;

/// The last line of each kind in a file of records, as where it begins and how long it is.
fn kinds(bytes: &[u8], member: &str) -> BTreeMap<String, (usize, usize)> {
    let mut kinds = BTreeMap::new();
    let mut from = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let record = json::read(line).unwrap_or_default();
        if let Some(kind) = record[member].as_str() {
            // The last of each kind, so that most stands before it.
            kinds.insert(kind.to_string(), (from, line.len()));
        }
        from += line.len();
    }
    kinds
}

/// Cuts the last record of each kind in the transcript of a session at every byte. A kind that was cut
/// is not cut again: what stands before a torn line was read before anything is made of the line.
fn cut_transcript(
    done: &mut BTreeSet<String>,
    life: &Life,
    disk: &Disk,
    nth: usize,
    whole: &[String],
) {
    let session = &life.sessions[nth];
    let path = format!("{HOME}/sessions/{session}/transcript.jsonl");
    let bytes = disk.file(&path).expect("it was written").to_vec();
    let is_end = |line: &&[u8]| json::read(line).is_some_and(|record| record["type"] == "end");
    let lines_until = |at: usize| bytes[..at].split(|byte| *byte == b'\n');
    let prompts: Vec<&str> = life
        .asked
        .iter()
        .filter_map(|asked| match &asked.what {
            What::Prompt { session, text } if *session == nth => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let mut kinds = kinds(&bytes, "type");
    kinds.retain(|kind, _| !done.contains(kind));
    for (kind, (from, length)) in &kinds {
        let ended = lines_until(*from).filter(is_end).count();
        for cut in 0..=*length {
            let mut left = disk.clone();
            left.put(&path, Node::File(bytes[..from + cut].to_vec()));
            let mut next = Next::on(left);
            let context = format!("{kind}, {cut} bytes of {length}");
            let loaded = next.load(session);
            if kind == "session" && cut + 1 < *length {
                // Without its first record there is nothing in it.
                let none = loaded.answer["error"]["code"] == -32002;
                let empty = loaded.picture.iter().all(|line| is_mending(line));
                assert!(none || empty, "{context}: {}", loaded.answer);
                continue;
            }
            assert!(
                loaded.answer.get("result").is_some(),
                "{context}: {}",
                loaded.answer
            );
            let last = usize::from(is_end(&&bytes[*from..from + cut]));
            let open = prompts.get(ended + last).copied();
            is_beginning(&context, &loaded.picture, whole, open);
            if cut % 7 == 0 {
                next.say(session);
                let request = next.sim.world.requests.last().expect("the model is asked");
                let body = serde_json::from_slice(&request.body).expect("a request is JSON");
                well_formed(&context, &body);
            }
        }
    }
    done.extend(kinds.into_keys());
}

#[test]
fn every_cut_of_every_kind_of_record_loses_no_more_than_the_record() {
    let mut cut = BTreeSet::new();
    for (life, moments) in [life(), rare_life()] {
        let whole = whole(&life, &moments);
        let disk = &moments[moments.len() - 1].disk;
        cut_transcript(&mut cut, &life, disk, 0, &whole[0]);
    }
    // What is written when a session is opened that broke off.
    let (life, moments) = rare_life();
    let whole = whole(&life, &moments);
    let mut left = moments[moments.len() - 1].disk.clone();
    let session = life.sessions[0].clone();
    let path = format!("{HOME}/sessions/{session}/transcript.jsonl");
    let bytes = left.file(&path).expect("it was written");
    left.put(&path, Node::File(bytes[..bytes.len() - 3].to_vec()));
    let mut next = Next::on(left);
    next.load(&session);
    next.sim.finish();
    let mended = next.sim.world.disk.after_crash(true, |_| Keep::All);
    cut_transcript(&mut cut, &life, &mended, 0, &whole[0]);
    let all = [
        "assistant",
        "call",
        "command",
        "end",
        "goal",
        "mended",
        "note",
        "options",
        "plan",
        "result",
        "roots",
        "session",
        "subagent",
        "summary",
        "user",
    ];
    assert_eq!(cut.iter().map(String::as_str).collect::<Vec<_>>(), all);
}

#[test]
fn every_cut_of_every_kind_of_change_of_an_inbox_loses_no_more_than_the_change() {
    let (life, moments) = life();
    let whole = whole(&life, &moments);
    let nth = life.items[0].session;
    let session = &life.sessions[nth];
    let path = format!("{HOME}/sessions/{session}/inbox.jsonl");
    let last = &moments[moments.len() - 1].disk;
    let bytes = last.file(&path).expect("it was written").to_vec();
    let mut cut_kinds = BTreeSet::new();
    for (kind, (from, length)) in kinds(&bytes, "op") {
        let is_there = |moment: &&Moment| {
            let there = moment.disk.file(&path).map_or(0, <[u8]>::len);
            there >= from + length
        };
        // The line is on its way, and nobody was told of it.
        let moment = moments.iter().find(is_there).expect("it was written");
        let known = Known::at(&life, moment);
        let now = moment.disk.after_crash(true, |_| Keep::All);
        for cut in 0..=length {
            let context = format!("{kind}, {cut} bytes of {length}");
            let mut left = now.clone();
            left.put(&path, Node::File(bytes[..from + cut].to_vec()));
            if cut % 16 == 0 || cut + 1 >= length {
                recover(&context, left.clone(), true, &known, &whole);
            }
            let mut next = Next::on(left);
            let loaded = next.load(session);
            assert!(loaded.answer.get("result").is_some(), "{context}");
            let items = next.items(session);
            check_items(&context, &known, nth, &items, &loaded.picture);
            is_not_damaged(&context, &next.sim.world.disk);
        }
        cut_kinds.insert(kind);
    }
    // Another process takes it over, and dies while it says so.
    let before = last.after_crash(true, |_| Keep::All);
    let mut next = Next::on(before.clone());
    next.load(session);
    let items = next.items(session);
    let bytes = next
        .sim
        .world
        .disk
        .file(&path)
        .expect("it is there")
        .to_vec();
    let (from, length) = kinds(&bytes, "op")["recover"];
    for cut in 0..=length {
        let context = format!("recover, {cut} bytes of {length}");
        let mut left = before.clone();
        left.put(&path, Node::File(bytes[..from + cut].to_vec()));
        let mut third = Next::on(left);
        third.load(session);
        assert_eq!(third.items(session), items, "{context}");
        let list = third.inbox(session, "list", json!({}));
        assert_eq!(list["paused"], true, "{context}: {list}");
        is_not_damaged(&context, &third.sim.world.disk);
    }
    cut_kinds.insert("recover".into());
    // The others (`keep`, `receipt`) are only written with a whole file, which is there or is not.
    let all = [
        "add", "drop", "edit", "inbox", "move", "pause", "recover", "set",
    ];
    assert_eq!(
        cut_kinds.iter().map(String::as_str).collect::<Vec<_>>(),
        all
    );
}

/// A torn line is no damage: nothing is set aside for it.
#[track_caller]
fn is_not_damaged(context: &str, disk: &Disk) {
    let aside = disk.paths().find(|(path, _)| path.contains("damaged"));
    assert_eq!(aside, None, "{context}");
}
