//! A process that dies between any two effects, and a power that fails there: what the next process
//! finds on the disk is what the client was told, no more is done twice, and the model hears a
//! history that is well formed. Not sampled: every moment of a long script, each with all that a
//! crash may leave.

mod cuts;
mod known;
mod next;
mod recover;
mod script;

use std::collections::BTreeSet;

use reasonix_tests::disk::{Disk, Keep};
use reasonix_tests::sim::Moment;

use known::Known;
use next::Next;
use recover::recover;
use script::{Life, What, life};

/// What a crash may leave of a moment, and whether the power has to fail for it; the same disk is
/// not looked at twice.
fn crashes(disk: &Disk, seen: &mut BTreeSet<(bool, [u8; 32])>) -> Vec<(String, bool, Disk)> {
    let mut left = Vec::new();
    let mut add = |name: String, power: bool, disk: Disk| {
        if seen.insert((power, disk.image())) {
            left.push((name, power, disk));
        }
    };
    for begun in [true, false] {
        for keep in [Keep::All, Keep::Synced, Keep::Zeros] {
            let name = format!("begun {begun}, {keep:?}");
            add(name, keep != Keep::All, disk.after_crash(begun, |_| keep));
        }
    }
    let tails: Vec<(String, usize)> = disk
        .paths()
        .map(|(path, _)| (path.to_string(), disk.unsynced(path)))
        .filter(|(path, tail)| path.ends_with(".jsonl") && *tail > 0)
        .collect();
    for (path, tail) in tails {
        // This file is ahead of the others, or behind them.
        let keep = |yes: Keep, no: Keep| {
            let path = path.clone();
            disk.after_crash(true, move |at| if at == path { yes } else { no })
        };
        add(format!("only {path}"), true, keep(Keep::All, Keep::Synced));
        add(
            format!("all but {path}"),
            true,
            keep(Keep::Synced, Keep::All),
        );
        let bytes = disk.file(&path).map(<[u8]>::to_vec).unwrap_or_default();
        let from = bytes.len() - tail;
        let cut = |at: &usize| {
            let character = bytes[from + at] & 0xc0 == 0x80;
            character || *at == 1 || *at == tail / 2 || *at + 1 == tail
        };
        for at in (0..tail).filter(cut) {
            let disk = keep(Keep::Bytes(at), Keep::All);
            add(format!("{at} bytes of {tail} of {path}"), true, disk);
        }
    }
    left
}

/// Every session as it is when nothing broke, and as long as it was there.
fn whole(life: &Life, moments: &[Moment]) -> Vec<Vec<String>> {
    let picture = |nth: usize, session: &String| {
        let before =
            |moment: &&Moment| !Known::at(life, moment).sent(|what| *what == What::Delete(nth));
        let last = moments
            .iter()
            .rev()
            .find(before)
            .expect("it was there once");
        let mut next = Next::on(last.disk.after_crash(true, |_| Keep::All));
        next.load(session).picture
    };
    let sessions = life.sessions.iter().enumerate();
    sessions
        .map(|(nth, session)| picture(nth, session))
        .collect()
}

#[test]
fn whatever_a_crash_leaves_is_what_the_client_was_told() {
    let (life, moments) = life();
    let whole = whole(&life, &moments);
    assert!(
        whole[0].len() > 30,
        "the script does something: {:#?}",
        whole[0]
    );
    assert!(moments.len() > 200, "{} moments", moments.len());
    // From the end: a disk that is enough for what was told by then is enough for less.
    let mut seen = BTreeSet::new();
    let mut looked = 0;
    for (at, moment) in moments.iter().enumerate().rev() {
        let known = Known::at(&life, moment);
        for (left, power, disk) in crashes(&moment.disk, &mut seen) {
            let context = format!("moment {at}, {left}");
            recover(&context, disk, power, &known, &whole);
            looked += 1;
        }
    }
    eprintln!("{looked} disks of {} moments", moments.len());
    assert!(
        looked > moments.len(),
        "{looked} disks of {} moments",
        moments.len()
    );
}
