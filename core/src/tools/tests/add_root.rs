//! Folders that the model asks for.

use super::host::World;
use crate::call::{Call, News};
use crate::tools::*;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Drives a call; `decide` is asked at the card, and may change the world. Gives the folders that
/// were added.
#[track_caller]
fn add(
    world: &mut World,
    path: &str,
    mut decide: impl FnMut(&mut World, &Proposal) -> bool,
) -> (ToolOutcome, Vec<String>) {
    let mut run = world.start(
        "add_root",
        &format!("{{\"path\":{path:?},\"reason\":\"why\"}}"),
    );
    let mut added = Vec::new();
    for _ in 0..50 {
        match world.step(&mut run) {
            Step::Call(call) => {
                assert!(
                    matches!(call, Call::Resolve { .. } | Call::List { .. }),
                    "it only looks: {call:?}"
                );
                let outcome = world.answer(&call).expect("an answer");
                world.news(&mut run, News::Done(outcome));
            }
            Step::Permit(proposal) => {
                assert!(proposal.action.protected, "it always asks");
                if decide(world, &proposal) {
                    run.permitted();
                } else {
                    run.denied("the person said no");
                }
            }
            Step::AddRoot(root) => added.push(root),
            Step::Done(outcome) => return (outcome, added),
            step => panic!("{step:?}"),
        }
    }
    panic!("no end");
}

fn world() -> World {
    let mut world = World::new()
        .link("/w/to_out", "/out")
        .link("/w/to_etc", "/etc");
    for dir in [
        "/etc",
        "/out/a",
        "/home",
        "/home/me",
        "/home/me/.ssh",
        "/other",
    ] {
        world.dirs.insert(dir.into());
    }
    world
}

#[test]
fn a_folder_is_added_when_the_person_says_so_by_its_real_path() {
    for path in ["/out", "../out", "/w/to_out", "/out/./"] {
        let (outcome, added) = add(&mut world(), path, |_, proposal| {
            let text = proposal.text.as_deref().unwrap_or_default();
            assert!(
                text.contains("Adds /out ") && text.contains("why"),
                "{text}"
            );
            assert_eq!(proposal.card.title, "add_root /out");
            true
        });
        assert!(outcome.ok, "{path}: {outcome:?}");
        assert_eq!(added, ["/out"], "{path}");
    }
    let (outcome, added) = add(&mut world(), "/out", |_, _| false);
    assert!(!outcome.ok && added.is_empty(), "{outcome:?}");
}

#[test]
fn what_can_be_no_root_is_refused_before_anybody_is_asked() {
    for path in [
        "/etc",
        "/",
        "/w/to_etc",
        "/home/me",
        "/home/me/.ssh",
        "/nothing",
        "~/x",
        "",
    ] {
        let (outcome, added) = add(&mut world(), path, |_, _| panic!("asked about {path}"));
        assert!(!outcome.ok && added.is_empty(), "{path}: {outcome:?}");
    }
    let mut full = world();
    full.ws.limits.max_roots = 0;
    let (outcome, _) = add(&mut full, "/out", |_, _| panic!("asked"));
    assert!(
        !outcome.ok && outcome.text.contains("too many"),
        "{outcome:?}"
    );
    // One that is there already needs no card, and is not added twice.
    let (outcome, added) = add(&mut world(), "/w/src", |_, _| panic!("asked"));
    assert!(outcome.ok && added.is_empty(), "{outcome:?}");
    // One around those that are there is not one more of them.
    let mut inner = world();
    inner.ws.roots.push("/out/a".into());
    let (outcome, added) = add(&mut inner, "/out", |_, _| panic!("asked"));
    assert!(
        !outcome.ok && added.is_empty() && outcome.text.contains("overlaps"),
        "{outcome:?}"
    );
}

#[test]
fn what_is_swapped_while_the_person_decides_is_not_added() {
    for swap in [
        |world: &mut World| drop(world.links.insert("/w/to_out".into(), "/other".into())),
        |world: &mut World| drop(world.links.insert("/w/to_out".into(), "/etc".into())),
        |world: &mut World| drop(world.links.insert("/out".into(), "/other".into())),
        |world: &mut World| assert!(world.dirs.remove("/out")),
    ] {
        let (outcome, added) = add(&mut world(), "/w/to_out", |world, _| {
            swap(world);
            true
        });
        assert!(!outcome.ok && added.is_empty(), "{outcome:?}");
    }
}

#[test]
fn nothing_is_added_where_the_session_has_one_folder_only() {
    let mut world = world();
    world.ws.closed = true;
    let (outcome, added) = add(&mut world, "/out", |_, _| panic!("asked"));
    assert!(
        !outcome.ok && outcome.text.contains("--workspace-only"),
        "{outcome:?}"
    );
    assert!(added.is_empty());
}
