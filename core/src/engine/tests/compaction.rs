//! What becomes of a history that is too long: a summary, or what is done without one.

use super::*;

#[test]
fn a_history_that_stays_too_long_is_compacted_once_an_answer() {
    let mut world = full(&format!(
        "{{\"text\":\"short\"}}\n{{\"finish\":\"stop\"}}\n{DONE}"
    ));
    // What is kept is larger than the window all the same: the turn goes on with it.
    let long = "x".repeat(1000);
    world.check(&[
        "compacting 11 Began",
        "compacted 11 13",
        "say 13 done",
        "over EndTurn",
    ]);
    world.prompt(&long);
    world.prompt(&long);
    let said = world.heard();
    assert_eq!(said.last().map(String::as_str), Some("over EndTurn"));
}

#[test]
fn a_summary_that_fails_leaves_the_history_as_it_was() {
    let error = "{\"error\":{\"status\":400}}\n";
    let mut world = full(&format!("{error}{DONE}"));
    world.check(&[
        "compacting 11 Began",
        "compacting 11 Failed(\"script answered 400: as the script says\")",
        "say 13 done",
        "over EndTurn",
    ]);
    assert_eq!(world.engine.history().messages().len(), 22);
}

#[test]
fn half_a_summary_is_none_while_the_history_can_stay() {
    for finish in ["length", "content_filter"] {
        let half = format!("{{\"text\":\"sho\"}}\n{{\"finish\":\"{finish}\"}}\n");
        let mut world = full(&format!("{half}{DONE}"));
        world.check(&[
            "compacting 11 Began",
            "compacting 11 Failed(\"the model gave no summary\")",
            "say 13 done",
            "over EndTurn",
        ]);
        assert_eq!(world.engine.history().messages().len(), 22);
    }
}

#[test]
fn an_outage_while_the_history_has_to_go_ends_the_turn_and_keeps_it() {
    let script = format!(
        "{}{{\"hang\":true}}\n{{\"error\":{{\"status\":400}}}}\n{DONE}",
        DONE.repeat(10)
    );
    let mut world = World::new(&script);
    for _ in 0..10 {
        world.prompt("ask");
    }
    world.prompt("more");
    world.heard();
    let before = world.engine.history().messages().len();
    // The provider has said that the request is too long for it.
    world.act(|engine, cx| {
        engine.turn.as_mut().expect("it runs").compacted = true;
        assert!(engine.compact(cx, true));
    });
    world.run();
    let heard = world.heard();
    assert!(
        heard
            .iter()
            .any(|line| line.contains("Failed(\"script answered 400")),
        "{heard:?}"
    );
    assert!(
        heard
            .last()
            .is_some_and(|line| line.starts_with("over Failed")),
        "{heard:?}"
    );
    assert_eq!(world.engine.history().messages().len(), before);
    world.prompt("again");
    assert_eq!(world.last_message(), "done");
}

#[test]
fn an_outage_while_the_history_is_too_large_ends_the_turn_and_keeps_it_as_long_as_it_fits() {
    for (status, twice) in [(400, false), (401, false), (402, false), (400, true)] {
        let error = format!("{{\"error\":{{\"status\":{status}}}}}\n");
        let mut world = World::new(&format!("{}{error}{DONE}", DONE.repeat(10)));
        for _ in 0..10 {
            world.prompt("ask");
        }
        world.heard();
        let size = world.engine.history().size();
        let max = &mut world.limits.max_history;
        *max = if twice { size / 2 - 1 } else { size - 1 };
        world.prompt("more");
        let heard = world.heard();
        let end = heard.last().map_or("", String::as_str);
        if twice {
            assert!(heard.contains(&"compacted 11 13".into()), "{heard:?}");
            assert_eq!(end, "over EndTurn");
            continue;
        }
        assert!(end.starts_with("over Failed"), "{status}: {heard:?}");
        let advice = end.contains("Say it again later, or begin a new session.");
        assert_eq!(advice, status != 401, "{status}: {end}");
        assert_eq!(world.engine.history().messages().len(), 21, "{status}");
        // It is asked again, and goes on when the model is there.
        world.prompt("again");
        let heard = world.heard();
        assert!(
            heard.iter().any(|line| line.starts_with("compacted")),
            "{heard:?}"
        );
        assert_eq!(heard.last().map(String::as_str), Some("over EndTurn"));
    }
}
