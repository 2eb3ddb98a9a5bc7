//! Questions to the person as a form: `elicitation/create`, and what its answers mean (ACP page:
//! elicitation). Pure; decides nothing.
//!
//! One form holds all questions of a call. Whoever does not send it has answered nothing.
//!
//! | the client answers | the questions |
//! | --- | --- |
//! | `accept` | are answered, each that was filled in with what fits it; of others it is said why not |
//! | `accept`, and it is too long | all that were filled in have an answer that is too long |
//! | `decline`, `cancel`, an unknown action | are not answered |
//! | −32601, −32602: it has no forms after all | are asked as cards |
//! | another error, something malformed | could not be asked |

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde::Serialize;

use super::fit;
use crate::limits::Limits;
use crate::protocol::schema::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationMode,
    ElicitationScope, Json, SessionId,
};
use crate::tools::{Answer, AnswerKind, Choice, Question};
use crate::wire::RpcError;

/// A form: a flat JSON schema.
#[derive(Serialize)]
struct Form<'a> {
    r#type: &'static str,
    properties: BTreeMap<&'a str, Field<'a>>,
}

/// One field of a form.
#[derive(Serialize)]
struct Field<'a> {
    r#type: &'static str,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    /// What can be chosen, if one can be.
    #[serde(rename = "oneOf", skip_serializing_if = "Option::is_none")]
    one_of: Option<Vec<Offered<'a>>>,
    /// What can be chosen, if several can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Items<'a>>,
}

#[derive(Serialize)]
struct Items<'a> {
    #[serde(rename = "anyOf")]
    any_of: Vec<Offered<'a>>,
}

#[derive(Serialize)]
struct Offered<'a> {
    r#const: &'a str,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
}

/// The form that asks these questions; none if it would be longer than a frame.
pub(super) fn request(
    session: SessionId,
    call: &str,
    questions: &[Question],
    limits: &Limits,
) -> Option<CreateElicitationRequest> {
    let fields = questions
        .iter()
        .map(|question| (question.id.as_str(), field(question)));
    let form = Json::of(&Form {
        r#type: "object",
        properties: fields.collect(),
    })?;
    let message = match questions {
        [question] => cut_chars(&question.text, limits.max_form_message),
        _ => format!("{} questions", questions.len()),
    };
    let scope = ElicitationScope::Session {
        session_id: session,
        tool_call_id: Some(call.into()),
    };
    if !fit::fits(&[&message], form.get(), limits) {
        return None;
    }
    let mode = ElicitationMode::Form {
        requested_schema: form,
    };
    Some(CreateElicitationRequest::new(scope, message, mode))
}

fn field(question: &Question) -> Field<'_> {
    let mut field = Field {
        r#type: "string",
        title: question.header.as_deref().unwrap_or(&question.text),
        description: question.header.as_ref().map(|_| question.text.as_str()),
        one_of: None,
        items: None,
    };
    match question.kind {
        AnswerKind::Text => {}
        AnswerKind::Number => field.r#type = "number",
        AnswerKind::YesNo => {
            field.r#type = "boolean";
            return field;
        }
    }
    if question.options.is_empty() {
        return field;
    }
    let mut offered: Vec<Offered<'_>> = Vec::new();
    for Choice { label, description } in &question.options {
        // What is named alike cannot be told apart.
        if offered.iter().all(|known| known.title != label) {
            offered.push(Offered {
                r#const: label,
                title: label,
                description: description.as_deref(),
            });
        }
    }
    if question.multi {
        field.r#type = "array";
        field.items = Some(Items { any_of: offered });
    } else {
        field.one_of = Some(offered);
    }
    field
}

/// What an answer to the form means; none: the client has no forms, ask in another way.
pub(super) fn answers(
    reply: &Result<CreateElicitationResponse, RpcError>,
    questions: &[Question],
    limits: &Limits,
) -> Option<Vec<Answer>> {
    let all = |answer: Answer| Some(vec![answer; questions.len()]);
    match reply {
        Ok(response) => match &response.action {
            ElicitationAction::Accept { content: None } => all(Answer::Unanswered),
            ElicitationAction::Accept {
                content: Some(content),
            } => Some(read(content, questions, limits)),
            ElicitationAction::Decline
            | ElicitationAction::Cancel
            | ElicitationAction::Other(_) => all(Answer::Unanswered),
        },
        Err(error) if matches!(error.code, -32601 | -32602) => None,
        Err(_) => all(Answer::NotAsked),
    }
}

/// The answers in a form that was sent.
fn read(content: &BTreeMap<String, Json>, questions: &[Question], limits: &Limits) -> Vec<Answer> {
    let size = |value: &Json| value.get().len();
    let all: usize = content.values().map(size).sum();
    let answer = |question: &Question| match content.get(&question.id) {
        None => Answer::Unanswered,
        Some(value) if value.get() == "null" => Answer::Unanswered,
        Some(value) if size(value) > limits.max_form_value => Answer::Unfit(format!(
            "it has {} bytes, at most {} are taken",
            size(value),
            limits.max_form_value
        )),
        Some(_) if all > limits.max_form_values => Answer::Unfit(format!(
            "all answers together have {all} bytes, at most {} are taken",
            limits.max_form_values
        )),
        Some(value) => read_value(value, question).unwrap_or_else(|why| Answer::Unfit(why.into())),
    };
    questions.iter().map(answer).collect()
}

/// The answer to one question, or why it is none.
fn read_value(value: &Json, question: &Question) -> Result<Answer, &'static str> {
    match question.kind {
        AnswerKind::Text => {}
        AnswerKind::Number => {
            // As it was written: no digit is lost.
            value.read::<f64>().map_err(|_| "it is no number")?;
            return Ok(Answer::Text(value.get().into()));
        }
        AnswerKind::YesNo => {
            let [yes, no] = AnswerKind::YES_NO;
            let said = value.read::<bool>().map_err(|_| "it is no yes or no")?;
            let said = if said { yes } else { no };
            return Ok(Answer::Chosen(vec![said.into()]));
        }
    }
    let no_text = |_| "it is no text";
    let known = |label: &String| question.options.iter().any(|choice| choice.label == *label);
    if question.options.is_empty() {
        let text: String = value.read().map_err(no_text)?;
        return Ok(match text.trim().is_empty() {
            true => Answer::Unanswered,
            false => Answer::Text(text),
        });
    }
    let mut chosen: Vec<String> = if question.multi {
        value.read().map_err(|_| "it is no list of choices")?
    } else {
        vec![value.read().map_err(no_text)?]
    };
    if !chosen.iter().all(known) {
        return Err("it is none of the choices");
    }
    let mut seen: Vec<String> = Vec::new();
    chosen.retain(|label| {
        let fresh = !seen.contains(label);
        seen.push(label.to_string());
        fresh
    });
    Ok(match chosen.is_empty() {
        true => Answer::Unanswered,
        false => Answer::Chosen(chosen),
    })
}

/// At most so many characters, with a mark where some are missing.
fn cut_chars(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.into(),
        Some(_) => {
            let kept: String = text.chars().take(max.saturating_sub(1)).collect();
            format!("{kept}…")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(id: &str, options: &[&str], multi: bool) -> Question {
        let choice = |label: &&str| Choice {
            label: (*label).into(),
            description: None,
        };
        Question {
            id: id.into(),
            header: None,
            text: format!("{id}?"),
            options: options.iter().map(choice).collect(),
            multi,
            kind: AnswerKind::Text,
        }
    }

    #[test]
    fn a_number_and_a_yes_or_no_are_asked_and_answered_as_such() {
        let mut number = question("q1", &[], false);
        number.kind = AnswerKind::Number;
        let mut yes_no = question("q2", &AnswerKind::YES_NO, false);
        yes_no.kind = AnswerKind::YesNo;
        let both = [number, yes_no];
        let form = request("s".into(), "c", &both, &Limits::default()).expect("it fits");
        let form = serde_json::to_string(&form).expect("JSON");
        let fields = r#""properties":{"q1":{"type":"number","title":"q1?"},"q2":{"type":"boolean","title":"q2?"}}"#;
        assert!(form.contains(fields), "{form}");
        let unfit = |why: &str| Answer::Unfit(why.into());
        for (content, expected) in [
            (
                r#"{"q1":1.50,"q2":false}"#,
                vec![
                    Answer::Text("1.50".into()),
                    Answer::Chosen(vec!["No".into()]),
                ],
            ),
            (
                r#"{"q2":true}"#,
                vec![Answer::Unanswered, Answer::Chosen(vec!["Yes".into()])],
            ),
            (
                r#"{"q1":"1"}"#,
                vec![unfit("it is no number"), Answer::Unanswered],
            ),
            (
                r#"{"q1":2,"q2":"true"}"#,
                vec![Answer::Text("2".into()), unfit("it is no yes or no")],
            ),
        ] {
            let text = format!(r#"{{"action":"accept","content":{content}}}"#);
            let got = answers(&reply(&text), &both, &Limits::default());
            assert_eq!(got, Some(expected), "{content}");
        }
    }

    fn three() -> [Question; 3] {
        [
            question("q1", &["a", "b", "a"], false),
            question("q2", &["a", "b"], true),
            question("q3", &[], false),
        ]
    }

    fn reply(text: &str) -> Result<CreateElicitationResponse, RpcError> {
        Ok(serde_json::from_str(text).expect("an answer"))
    }

    #[test]
    fn a_form_is_flat_and_says_what_can_be_chosen() {
        let form = request("s".into(), "c1", &three(), &Limits::default()).expect("it fits");
        let expected = concat!(
            r#"{"sessionId":"s","toolCallId":"c1","message":"3 questions","mode":"form","#,
            r#""requestedSchema":{"type":"object","properties":{"#,
            r#""q1":{"type":"string","title":"q1?","oneOf":["#,
            r#"{"const":"a","title":"a"},{"const":"b","title":"b"}]},"#,
            r#""q2":{"type":"array","title":"q2?","items":{"anyOf":["#,
            r#"{"const":"a","title":"a"},{"const":"b","title":"b"}]}},"#,
            r#""q3":{"type":"string","title":"q3?"}}}}"#
        );
        assert_eq!(serde_json::to_string(&form).expect("JSON"), expected);
    }

    #[test]
    fn what_does_not_fit_a_frame_is_no_form_and_the_message_is_bounded() {
        let mut long = question("q1", &[], false);
        long.text = "é".repeat(5000);
        let limits = Limits::default();
        let form = request("s".into(), "c", &[long.clone()], &limits).expect("it fits");
        assert_eq!(form.message.chars().count(), limits.max_form_message);
        assert!(form.message.ends_with('…'));
        long.text = "é".repeat(50_000);
        assert_eq!(request("s".into(), "c", &[long], &limits), None);
    }

    #[test]
    fn an_answer_counts_if_it_fits_and_of_others_it_is_said_why_not() {
        let chosen = |labels: &[&str]| Answer::Chosen(labels.iter().map(|l| (*l).into()).collect());
        let none = || vec![Answer::Unanswered; 3];
        let unfit = |why: &str| Answer::Unfit(why.into());
        let only = |at: usize, answer: Answer| {
            let mut all = none();
            all[at] = answer;
            all
        };
        let long = format!(r#"{{"q3":"{}"}}"#, "x".repeat(20 << 10));
        let many: String = (0..5)
            .map(|n| format!(r#""x{n}":"{}","#, "x".repeat(15 << 10)))
            .collect();
        let many = format!(r#"{{{many}"q3":"x"}}"#);
        for (content, expected) in [
            (
                r#"{"q1":"b","q2":["b","a","b"],"q3":"free"}"#,
                vec![
                    chosen(&["b"]),
                    chosen(&["b", "a"]),
                    Answer::Text("free".into()),
                ],
            ),
            (r#"{"q2":[],"q3":" ","other":5}"#, none()),
            (r#"{"q1":null}"#, none()),
            ("{}", none()),
            (r#"{"q1":"c"}"#, only(0, unfit("it is none of the choices"))),
            (r#"{"q1":["a"]}"#, only(0, unfit("it is no text"))),
            (
                r#"{"q1":"a","q2":"a"}"#,
                vec![
                    chosen(&["a"]),
                    unfit("it is no list of choices"),
                    Answer::Unanswered,
                ],
            ),
            (
                r#"{"q2":["a","c"]}"#,
                only(1, unfit("it is none of the choices")),
            ),
            (r#"{"q3":5}"#, only(2, unfit("it is no text"))),
            (
                long.as_str(),
                only(2, unfit("it has 20482 bytes, at most 16384 are taken")),
            ),
            (
                many.as_str(),
                only(
                    2,
                    unfit("all answers together have 76813 bytes, at most 65536 are taken"),
                ),
            ),
        ] {
            let text = format!(r#"{{"action":"accept","content":{content}}}"#);
            let got = answers(&reply(&text), &three(), &Limits::default());
            assert_eq!(got, Some(expected), "{content}");
        }
    }

    #[test]
    fn what_is_no_accept_answers_nothing() {
        for (text, answer) in [
            (r#"{"action":"accept"}"#, Answer::Unanswered),
            (
                r#"{"action":"decline","content":{"q1":"a"}}"#,
                Answer::Unanswered,
            ),
            (r#"{"action":"cancel"}"#, Answer::Unanswered),
            (
                r#"{"action":"approve","content":{"q1":"a"}}"#,
                Answer::Unanswered,
            ),
        ] {
            let got = answers(&reply(text), &three(), &Limits::default());
            assert_eq!(got, Some(vec![answer; 3]), "{text}");
        }
        let failed = |error| answers(&Err(error), &three(), &Limits::default());
        let bad = Some(vec![Answer::NotAsked; 3]);
        assert_eq!(failed(RpcError::internal("no")), bad);
        assert_eq!(failed(RpcError::cancelled()), bad);
        assert_eq!(failed(RpcError::invalid_params("no forms")), None);
        assert_eq!(
            failed(RpcError::method_not_found("elicitation/create")),
            None
        );
    }
}
