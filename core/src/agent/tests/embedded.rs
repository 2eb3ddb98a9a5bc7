//! What an embedder relies on: ids that are its sessions' own.

use super::stored::Disk;
use super::*;

/// A second agent of the first one's seed, on a disk.
fn second(disk: &Disk) -> World {
    stored::world(disk, "{\"text\":\"x\"}\n")
}

#[test]
fn agents_of_one_seed_on_one_home_do_not_write_into_each_others_sessions() {
    for ended in [false, true] {
        let mut first = second(&Disk::default()).session();
        first.go();
        first.sees("end_turn");
        let disk = match ended {
            true => first.ends(),
            false => first.disk.clone().expect("it has a disk"),
        };
        let path = format!("/h/sessions/{SESSION}/transcript.jsonl");
        let before = disk.files[&path].clone();
        let mut world = second(&disk);
        world.open_session(5);
        let opened = world.sees("\"id\":5,\"result\"");
        assert!(!opened.contains(SESSION), "{opened}");
        let after = &world.disk.as_ref().expect("it has a disk").files;
        assert_eq!(after[&path], before);
        let transcripts = after.keys().filter(|it| it.ends_with("/transcript.jsonl"));
        assert_eq!(transcripts.count(), 2, "the new one is saved too");
        // Nothing of the other session is held.
        world.load(6, SESSION);
        let loaded = world
            .lines
            .iter()
            .any(|it| it.contains("\"id\":6,\"result\""));
        assert_eq!(loaded, ended, "{:?}", world.lines);
    }
}

#[test]
fn a_new_session_is_refused_when_no_id_is_free() {
    let mut first = second(&Disk::default()).session();
    let mut config = first.agent.config().clone();
    config.limits.max_taken_ids = 0;
    let mut world = World::of(config);
    world.disk = Some(first.ends());
    world.open_session(5);
    let refused = world.sees("\"id\":5,\"error\"");
    assert!(refused.contains("seed"), "{refused}");
    assert!(world.agent.openings.is_empty());
}
