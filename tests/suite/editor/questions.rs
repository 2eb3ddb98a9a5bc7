//! Questions to the person: one form where the client takes forms, else cards.

use super::*;

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn which() -> (&'static str, Value) {
    let args = json!({"questions": [
        {"question": "Which?", "header": "Pick", "options": ["a", "b"]},
        {"question": "And why?"},
    ]});
    ("ask", args)
}

fn answered(form: Value) -> Editor {
    Editor {
        form: Some(form),
        ..Editor::default()
    }
}

#[test]
fn questions_are_one_form_where_the_client_takes_forms() {
    let form = json!({"action": "accept", "content": {"q1": "b", "q2": "it is better"}});
    let seen = turn(forms(), answered(form), world(&[]), &[which()]);
    assert_eq!(seen.ends, ["completed"]);
    assert_eq!(
        seen.result(),
        "Question: Which?\nAnswer: b\nQuestion: And why?\nAnswer: it is better"
    );
    let [form] = &seen.editor().forms[..] else {
        panic!("one form: {:?}", seen.editor().forms);
    };
    assert_eq!(form["mode"], "form");
    assert_eq!(form["requestedSchema"]["properties"]["q1"]["title"], "Pick");
    let cards = seen.sim.frames.iter();
    let cards = cards.filter(|frame| frame["method"] == "session/request_permission");
    assert_eq!(cards.count(), 0);
}

#[test]
fn an_unanswered_form_is_a_result_and_the_turn_goes_on() {
    let unanswered = "The user did not answer";
    let not_asked = "could not be put to the user";
    for (editor, said) in [
        (answered(json!({"action": "decline"})), unanswered),
        (answered(json!({"action": "cancel"})), unanswered),
        (answered(json!({"action": "approve"})), unanswered),
        (answered(json!({"action": "accept"})), unanswered),
        (answered(json!({"action": 5})), not_asked),
        (
            always(Editor::default(), "elicitation/create", Habit::Fails),
            not_asked,
        ),
        (
            always(Editor::default(), "elicitation/create", Habit::Malformed),
            not_asked,
        ),
    ] {
        let shown = format!("{:?} {:?}", editor.form, editor.always);
        let seen = turn(forms(), editor, world(&[]), &[which()]);
        assert_eq!(seen.stop, "end_turn", "{shown}");
        assert_eq!(seen.ends, ["completed"], "{shown}");
        assert_eq!(
            seen.result().matches(said).count(),
            2,
            "{shown}: {}",
            seen.result()
        );
    }
}

#[test]
fn an_answer_that_does_not_fit_is_called_that_and_takes_no_other_with_it() {
    let long = "x".repeat(17_000);
    for (q1, q2, why, other) in [
        (
            json!("c"),
            json!("it is better"),
            "it is none of the choices",
            "Answer: it is better",
        ),
        (
            json!(["a"]),
            json!(null),
            "it is no text",
            "The user did not answer",
        ),
        (
            json!("a"),
            json!(long),
            "it has 17002 bytes, at most 16384 are taken",
            "Answer: a",
        ),
    ] {
        let editor = answered(json!({"action": "accept", "content": {"q1": q1, "q2": q2}}));
        let seen = turn(forms(), editor, world(&[]), &[which()]);
        let result = seen.result();
        let taken = format!("The answer of the user could not be taken: {why}. ");
        assert_eq!(result.matches(&taken).count(), 1, "{result}");
        assert!(result.contains(other), "{result}");
        assert!(!result.contains("could not be put"), "{result}");
    }
}

#[test]
fn a_client_without_forms_is_asked_by_cards_and_one_with_pages_only_too() {
    for capabilities in [
        json!({}),
        json!({"elicitation": {}}),
        json!({"elicitation": {"url": {}}}),
        json!({"elicitation": {"form": null}}),
    ] {
        let seen = turn(capabilities, Editor::default(), world(&[]), &[which()]);
        assert_eq!(seen.editor().asked, [""; 0]);
        let mut cards = seen.sim.frames.iter();
        let card = cards.find(|frame| frame["method"] == "session/request_permission");
        let card = card.expect("a card");
        assert_eq!(card["params"]["toolCall"]["title"], "Which?");
        assert!(seen.result().contains("Answer: a"), "{}", seen.result());
    }
}

#[test]
fn a_cancel_withdraws_the_form() {
    let editor = always(
        Editor::default(),
        "elicitation/create",
        Habit::Late(5 * SECOND),
    );
    let (mut sim, session) = start(forms(), editor, world(&[]), scripted(&[which(), make()]));
    sim.send(&json::prompt(1, &session, "go"));
    sim.until("a form", |sim| !editor_in(sim).forms.is_empty());
    sim.send(&json::cancel(&session));
    assert_eq!(sim.answer(1)["result"]["stopReason"], "cancelled");
    assert_eq!(editor_in(&sim).broken_off.len(), 1);
    // The late answer reaches nobody, and the next turn is its own.
    sim.run_for(10 * SECOND);
    assert_eq!(json::tool_ends(&sim.frames, ""), ["failed"]);
    assert_eq!(sim.world.ran, [""; 0]);
    sim.finish();
    sim.laws.check();
}
