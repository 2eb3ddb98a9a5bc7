//! Cards and questions, as the client sees them: `session/request_permission`, and what its answers
//! mean. Pure; decides nothing.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::fit::Room;
use super::render::{DATA, LINE, OPTION, SHOWN, diff, kind, locations};
use crate::engine::Decision;
use crate::limits::Limits;
use crate::protocol::schema::{
    Json, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SessionId, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolKind,
};
use crate::tools::{Answer, Proposal, Question};

pub(super) const ALLOW_ONCE: &str = "allow_once";
pub(super) const ALLOW_ALWAYS: &str = "allow_always";
pub(super) const REJECT_ONCE: &str = "reject_once";

/// The request for a card.
pub(super) fn permission(
    session: SessionId,
    call: String,
    proposal: Proposal,
    always: Option<String>,
    limits: &Limits,
) -> RequestPermissionRequest {
    let mut room = Room::new(limits);
    let mut about = ToolCallUpdate::new(call);
    about.title = Some(room.line(proposal.card.title, LINE));
    about.name = Some(room.line(proposal.card.name, LINE));
    about.kind = Some(kind(proposal.card.kind));
    about.status = Some(ToolCallStatus::Pending);
    about.locations = Some(locations(proposal.card.locations, &mut room));
    let always = always.map(|name| room.line(name, LINE));
    // What would change decides; the arguments say the same once more.
    let diffs = room.diffs(proposal.diffs, DATA);
    let mut content: Vec<_> = diffs.into_iter().map(diff).collect();
    if let Some(text) = proposal.text {
        let text = room.text(&text, SHOWN, limits.max_tool_update);
        content.push(ToolCallContent::text(text));
    }
    about.content = (!content.is_empty()).then_some(content);
    let left = room.left();
    let input = proposal.card.raw_input;
    let input = input.map(|input| room.arguments(input, left));
    about.raw_input = input.and_then(Json::from_text);
    let option = |id: &str, name: String, kind| PermissionOption::new(id, name, kind);
    let mut options = Vec::from([option(
        ALLOW_ONCE,
        "Allow".into(),
        PermissionOptionKind::AllowOnce,
    )]);
    options
        .extend(always.map(|name| option(ALLOW_ALWAYS, name, PermissionOptionKind::AllowAlways)));
    options.push(option(
        REJECT_ONCE,
        "Reject".into(),
        PermissionOptionKind::RejectOnce,
    ));
    RequestPermissionRequest::new(session, about, options)
}

/// What an answer to a card means: everything but an option that was offered denies.
pub(super) fn decision(answer: Option<&RequestPermissionResponse>, always: bool) -> Decision {
    match (answer, selected(answer)) {
        (_, Some(ALLOW_ONCE)) => Decision::Once,
        (_, Some(ALLOW_ALWAYS)) if always => Decision::Always,
        (_, Some(REJECT_ONCE)) => Decision::Reject,
        // No answer, or none that fits.
        (None, _) | (_, Some(_)) => Decision::Unasked,
        (Some(_), None) => Decision::Unanswered,
    }
}

/// The request that asks one question of a client that has no forms; none if it cannot be asked
/// this way, since there is nothing to choose.
pub(super) fn question(
    session: SessionId,
    call: &str,
    question: &Question,
    limits: &Limits,
) -> Option<RequestPermissionRequest> {
    if question.options.is_empty() {
        return None;
    }
    let mut room = Room::new(limits);
    let mut about = ToolCallUpdate::new(call);
    about.title = Some(room.text(&question.text, SHOWN, limits.max_tool_update));
    about.kind = Some(ToolKind::Other);
    let mut content = Vec::new();
    if let Some(header) = &question.header {
        content.push(ToolCallContent::text(room.line(header.clone(), LINE)));
    }
    let mut options: Vec<_> = question
        .options
        .iter()
        .enumerate()
        .map_while(|(n, choice)| {
            let name = match &choice.description {
                Some(description) => format!("{} - {description}", choice.label),
                None => choice.label.clone(),
            };
            if room.left() < 2 * LINE {
                return None;
            }
            let name = room.line(name, LINE);
            room.take(OPTION);
            Some(PermissionOption::new(
                format!("{}:{}", question.id, n + 1),
                name,
                PermissionOptionKind::AllowOnce,
            ))
        })
        .collect();
    let more = question.options.len() - options.len();
    if more > 0 {
        let note = format!("[… {more} more choices not shown]");
        content.push(ToolCallContent::text(note));
    }
    about.content = (!content.is_empty()).then_some(content);
    options.push(PermissionOption::new(
        format!("{}:cancel", question.id),
        "Cancel",
        PermissionOptionKind::RejectOnce,
    ));
    Some(RequestPermissionRequest::new(session, about, options))
}

/// What an answer to a question means.
pub(super) fn answer(reply: Option<&RequestPermissionResponse>, question: &Question) -> Answer {
    let chosen = selected(reply)
        .and_then(|id| id.strip_prefix(question.id.as_str())?.strip_prefix(':'))
        .and_then(|number| number.parse::<usize>().ok())
        .and_then(|number| question.options.get(number.checked_sub(1)?));
    match chosen {
        Some(choice) => Answer::Chosen(Vec::from([choice.label.clone()])),
        None => Answer::Unanswered,
    }
}

/// The option that was chosen, if one was.
pub(super) fn selected(answer: Option<&RequestPermissionResponse>) -> Option<&str> {
    match &answer?.outcome {
        RequestPermissionOutcome::Selected(chosen) => Some(&chosen.option_id),
        RequestPermissionOutcome::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::schema::SelectedPermissionOutcome;

    fn reply(id: &str) -> RequestPermissionResponse {
        RequestPermissionResponse::new(RequestPermissionOutcome::Selected(
            SelectedPermissionOutcome::new(id),
        ))
    }

    #[test]
    fn an_option_that_was_not_offered_denies() {
        for (id, always, expected) in [
            ("allow_once", false, Decision::Once),
            ("allow_always", true, Decision::Always),
            ("allow_always", false, Decision::Unasked),
            ("reject_once", true, Decision::Reject),
            ("made-up", true, Decision::Unasked),
            ("", true, Decision::Unasked),
        ] {
            assert_eq!(decision(Some(&reply(id)), always), expected, "{id}");
        }
        assert_eq!(decision(None, true), Decision::Unasked);
        let cancelled = RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled);
        assert_eq!(decision(Some(&cancelled), true), Decision::Unanswered);
    }
}
