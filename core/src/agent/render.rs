//! What the engine says, as the client sees it: engine updates to `session/update`, cards and
//! questions to `session/request_permission`. Pure; decides nothing.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::engine::{Decision, Update};
use crate::limits::Limits;
use crate::protocol::schema::{
    ContentBlock, ContentChunk, Diff, Json, PermissionOption, PermissionOptionKind, Plan,
    PlanEntry, PlanEntryPriority, PlanEntryStatus, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SessionId, SessionUpdate, ToolCall,
    ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolKind, UsageUpdate,
};
use crate::tools::{self, Answer, Proposal, Question, Todo, TodoStatus};
use crate::wire::text::cut;

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";

/// The id of a message on the wire, written without the heap.
pub(super) fn message_id(number: u64, buffer: &mut [u8; 21]) -> &str {
    let mut at = buffer.len();
    let mut rest = number;
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    at -= 1;
    buffer[at] = b'm';
    // Digits and a letter; 20 digits hold every number.
    core::str::from_utf8(&buffer[at..]).unwrap_or_default()
}

/// One update. Text goes by the faster way of the turn; here it is for completeness.
pub(super) fn update(update: Update, limits: &Limits) -> SessionUpdate {
    match update {
        Update::Text {
            thought,
            text,
            message,
        } => {
            let mut chunk = ContentChunk::new(ContentBlock::text(text.as_str()));
            chunk.message_id = message.map(|n| message_id(n, &mut [0; 21]).into());
            if thought {
                SessionUpdate::AgentThoughtChunk(chunk)
            } else {
                SessionUpdate::AgentMessageChunk(chunk)
            }
        }
        Update::Call { id, card } => {
            let mut call = ToolCall::new(id, card.title);
            call.name = Some(card.name);
            call.kind = kind(card.kind);
            call.status = ToolCallStatus::Pending;
            call.locations = locations(card.locations);
            call.raw_input = card.raw_input.and_then(Json::from_text);
            SessionUpdate::ToolCall(call)
        }
        Update::Running { id } => {
            let mut change = ToolCallUpdate::new(id);
            change.status = Some(ToolCallStatus::InProgress);
            SessionUpdate::ToolCallUpdate(change)
        }
        Update::Progress { id, text } => {
            let mut change = ToolCallUpdate::new(id);
            change.content = Some(Vec::from([ToolCallContent::text(shown(&text, limits))]));
            SessionUpdate::ToolCallUpdate(change)
        }
        Update::Ended {
            id,
            ok,
            text,
            diffs,
            output,
            locations: places,
        } => {
            let mut change = ToolCallUpdate::new(id);
            change.status = Some(if ok {
                ToolCallStatus::Completed
            } else {
                ToolCallStatus::Failed
            });
            let mut content = Vec::with_capacity(diffs.len() + 1);
            content.extend(diffs.into_iter().map(diff));
            if !text.is_empty() {
                content.push(ToolCallContent::text(shown(&text, limits)));
            }
            change.content = Some(content);
            change.raw_output = output.and_then(Json::from_text);
            if !places.is_empty() {
                change.locations = Some(locations(places));
            }
            SessionUpdate::ToolCallUpdate(change)
        }
        Update::Plan(todos) => SessionUpdate::Plan(plan(todos)),
        Update::Usage { used, size } => SessionUpdate::UsageUpdate(UsageUpdate::new(used, size)),
    }
}

/// The request for a card.
pub(super) fn permission(
    session: SessionId,
    call: String,
    proposal: Proposal,
    always: Option<String>,
) -> RequestPermissionRequest {
    let mut about = ToolCallUpdate::new(call);
    about.title = Some(proposal.card.title);
    about.name = Some(proposal.card.name);
    about.kind = Some(kind(proposal.card.kind));
    about.status = Some(ToolCallStatus::Pending);
    about.raw_input = proposal.card.raw_input.and_then(Json::from_text);
    about.locations = Some(locations(proposal.card.locations));
    if !proposal.diffs.is_empty() {
        about.content = Some(proposal.diffs.into_iter().map(diff).collect());
    }
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
) -> Option<RequestPermissionRequest> {
    if question.options.is_empty() {
        return None;
    }
    let mut about = ToolCallUpdate::new(call);
    about.title = Some(question.text.clone());
    about.kind = Some(ToolKind::Other);
    if let Some(header) = &question.header {
        about.content = Some(Vec::from([ToolCallContent::text(header.as_str())]));
    }
    let mut options: Vec<_> = question
        .options
        .iter()
        .enumerate()
        .map(|(n, choice)| {
            let name = match &choice.description {
                Some(description) => format!("{} - {description}", choice.label),
                None => choice.label.clone(),
            };
            PermissionOption::new(
                format!("{}:{}", question.id, n + 1),
                name,
                PermissionOptionKind::AllowOnce,
            )
        })
        .collect();
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

fn selected(answer: Option<&RequestPermissionResponse>) -> Option<&str> {
    match &answer?.outcome {
        RequestPermissionOutcome::Selected(chosen) => Some(&chosen.option_id),
        RequestPermissionOutcome::Cancelled => None,
    }
}

/// Tool output as it is shown: bounded, the note says how much is missing.
fn shown(text: &str, limits: &Limits) -> String {
    let kept = cut(text, limits.max_tool_update);
    if kept.len() == text.len() {
        return text.to_string();
    }
    let more = text[kept.len()..].chars().count();
    format!("{kept}\n…({more} more chars truncated)")
}

fn diff(change: tools::Diff) -> ToolCallContent {
    let mut item = Diff::new(change.path, change.new);
    item.old_text = change.old;
    ToolCallContent::Diff(item)
}

fn locations(places: Vec<tools::Location>) -> Vec<ToolCallLocation> {
    places
        .into_iter()
        .map(|place| {
            let mut location = ToolCallLocation::new(place.path);
            location.line = place.line;
            location
        })
        .collect()
}

fn kind(kind: tools::ToolKind) -> ToolKind {
    match kind {
        tools::ToolKind::Read => ToolKind::Read,
        tools::ToolKind::Edit => ToolKind::Edit,
        tools::ToolKind::Delete => ToolKind::Delete,
        tools::ToolKind::Move => ToolKind::Move,
        tools::ToolKind::Search => ToolKind::Search,
        tools::ToolKind::Execute => ToolKind::Execute,
        tools::ToolKind::Think => ToolKind::Think,
        tools::ToolKind::Fetch => ToolKind::Fetch,
        tools::ToolKind::SwitchMode => ToolKind::SwitchMode,
        tools::ToolKind::Other => ToolKind::Other,
    }
}

fn plan(todos: Vec<Todo>) -> Plan {
    Plan::new(
        todos
            .into_iter()
            .map(|todo| {
                PlanEntry::new(
                    todo.content,
                    if todo.level == 0 {
                        PlanEntryPriority::High
                    } else {
                        PlanEntryPriority::Medium
                    },
                    match todo.status {
                        TodoStatus::Pending => PlanEntryStatus::Pending,
                        TodoStatus::InProgress => PlanEntryStatus::InProgress,
                        TodoStatus::Completed => PlanEntryStatus::Completed,
                    },
                )
            })
            .collect::<Vec<_>>(),
    )
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

    #[test]
    fn message_ids_are_a_letter_and_the_number() {
        for (number, id) in [
            (0, "m0"),
            (7, "m7"),
            (120, "m120"),
            (u64::MAX, "m18446744073709551615"),
        ] {
            assert_eq!(message_id(number, &mut [0; 21]), id);
        }
    }

    #[test]
    fn output_is_cut_on_a_character_boundary_with_a_note() {
        let limits = Limits {
            max_tool_update: 4,
            ..Limits::default()
        };
        assert_eq!(shown("漢漢漢", &limits), "漢\n…(2 more chars truncated)");
        assert_eq!(shown("abcd", &limits), "abcd");
    }
}
