//! What the engine says, as the client sees it: engine updates to `session/update`, cards and
//! questions to `session/request_permission`. Pure; decides nothing.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::fit::{self, Room};
use crate::engine::{Decision, Update};
use crate::limits::Limits;
use crate::protocol::schema::{
    ContentBlock, ContentChunk, Diff, Json, PermissionOption, PermissionOptionKind, Plan,
    PlanEntry, PlanEntryPriority, PlanEntryStatus, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SessionId, SessionUpdate, ToolCall,
    ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolKind, UsageUpdate,
};
use crate::tools::{self, Answer, Proposal, Question, Todo, TodoStatus};

/// Most of a line (a title, the name of a choice) in one frame, bytes of JSON.
const LINE: usize = 1 << 10;
/// Most of a text beside other things in one frame, bytes of JSON.
const SHOWN: usize = 16 << 10;
/// Most of a result as data, and what is kept free for arguments, bytes of JSON.
const DATA: usize = 4 << 10;
/// What stands around an entry of a list, bytes of JSON.
const OPTION: usize = 96;

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
    let mut room = Room::new(limits);
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
            let mut call = ToolCall::new(id, room.line(card.title, LINE));
            call.name = Some(room.line(card.name, LINE));
            call.kind = kind(card.kind);
            call.status = ToolCallStatus::Pending;
            call.locations = locations(card.locations, &mut room);
            let left = room.left();
            let input = card.raw_input.map(|input| room.arguments(input, left));
            call.raw_input = input.and_then(Json::from_text);
            SessionUpdate::ToolCall(call)
        }
        Update::Running { id } => {
            let mut change = ToolCallUpdate::new(id);
            change.status = Some(ToolCallStatus::InProgress);
            SessionUpdate::ToolCallUpdate(change)
        }
        Update::Progress { id, text } => {
            let mut change = ToolCallUpdate::new(id);
            let text = room.text(&text, SHOWN, limits.max_tool_update);
            change.content = Some(Vec::from([ToolCallContent::text(text)]));
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
            if !places.is_empty() {
                change.locations = Some(locations(places, &mut room));
            }
            let output = output.map(|output| room.data(output, DATA));
            change.raw_output = output.and_then(Json::from_text);
            let text = room.text(&text, SHOWN, limits.max_tool_update);
            let diffs = room.diffs(diffs, 0);
            let mut content: Vec<_> = diffs.into_iter().map(diff).collect();
            if !text.is_empty() {
                content.push(ToolCallContent::text(text));
            }
            change.content = Some(content);
            SessionUpdate::ToolCallUpdate(change)
        }
        Update::Plan(todos) => SessionUpdate::Plan(plan(todos, &mut room)),
        Update::Usage { used, size } => SessionUpdate::UsageUpdate(UsageUpdate::new(used, size)),
    }
}

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
    if !proposal.diffs.is_empty() {
        let diffs = room.diffs(proposal.diffs, DATA);
        about.content = Some(diffs.into_iter().map(diff).collect());
    }
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

fn selected(answer: Option<&RequestPermissionResponse>) -> Option<&str> {
    match &answer?.outcome {
        RequestPermissionOutcome::Selected(chosen) => Some(&chosen.option_id),
        RequestPermissionOutcome::Cancelled => None,
    }
}

fn diff(change: tools::Diff) -> ToolCallContent {
    let mut item = Diff::new(change.path, change.new);
    item.old_text = change.old;
    ToolCallContent::Diff(item)
}

fn locations(places: Vec<tools::Location>, room: &mut Room) -> Vec<ToolCallLocation> {
    // A path that is cut leads nowhere: it is left out.
    places
        .into_iter()
        .filter(|place| {
            let cost = fit::cost(&place.path) + OPTION;
            cost + DATA <= room.left() && room.take(cost)
        })
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

fn plan(todos: Vec<Todo>, room: &mut Room) -> Plan {
    let all = todos.len();
    let mut entries = Vec::with_capacity(all);
    for todo in todos {
        if room.left() < 3 * LINE {
            let note = format!("[… {} more entries not shown]", all - entries.len());
            let low = PlanEntryPriority::Low;
            entries.push(PlanEntry::new(note, low, PlanEntryStatus::Pending));
            break;
        }
        room.take(OPTION);
        entries.push(PlanEntry::new(
            room.line(todo.content, LINE),
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
        ));
    }
    Plan::new(entries)
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

    /// Bytes that our own writer makes of an update, with room for what stands around it.
    fn length(value: &impl serde::Serialize) -> usize {
        let mut out = Vec::new();
        crate::wire::rpc::write_notification(&mut out, "session/request_permission", value);
        out.len() + 256
    }

    fn card(raw_input: String) -> tools::Card {
        let ws = tools::Workspace::new(
            "/w",
            Vec::from(["/w".into()]),
            crate::settings::Host {
                os: "linux".into(),
                shell: "sh".into(),
                user_home: None,
                home: None,
                tmp: "/tmp".into(),
            },
            Limits::default(),
        );
        tools::ToolRun::start("multi_edit", &raw_input, &ws)
            .card()
            .clone()
    }

    #[test]
    fn no_frame_that_can_be_cut_is_too_long_and_every_cut_shows() {
        let limits = Limits::default();
        for piece in ["x", "\"\n", "\u{1}", "\u{2028}", "漢", "🙂"] {
            let long = piece.repeat(20_000);
            let some = piece.repeat(30_000 / piece.len());
            let string = serde_json::to_string(&some).expect("a string");
            let list = Vec::from_iter((0..40).map(|n| format!("\"k{n}\":{string}"))).join(",");
            let card = card(format!("{{{list}}}"));
            let diff = || {
                let mut diffs = Vec::new();
                for _ in 0..3 {
                    let run = tools::Diff {
                        path: "/w/a".into(),
                        old: Some(some.clone()),
                        new: some.clone(),
                    };
                    diffs.push(run);
                }
                diffs
            };
            let ended = Update::Ended {
                id: "a".into(),
                ok: true,
                text: long.clone(),
                diffs: diff(),
                output: Some(string.clone()),
                locations: Vec::from([tools::Location::new(long.as_str(), None)]),
            };
            let todo = tools::Todo {
                content: long.clone(),
                status: TodoStatus::Pending,
                level: 0,
            };
            for (part, update) in [
                ("truncated", ended),
                (
                    "more entries not shown",
                    Update::Plan(alloc::vec![todo; 90]),
                ),
                (
                    "truncated",
                    Update::Progress {
                        id: "a".into(),
                        text: long.clone(),
                    },
                ),
                (
                    "not shown",
                    Update::Call {
                        id: "a".into(),
                        card: card.clone(),
                    },
                ),
            ] {
                let frame = super::update(update, &limits);
                assert!(
                    length(&frame) <= limits.max_out_frame,
                    "{part} {piece:?}: {}",
                    length(&frame)
                );
                assert!(
                    serde_json::to_string(&frame).expect("JSON").contains(part),
                    "{part}"
                );
            }
            let question = Question {
                id: "q1".into(),
                header: Some(long.clone()),
                text: long.clone(),
                options: alloc::vec![tools::Choice { label: long.clone(), description: None }; 200],
                multi: false,
            };
            let frame =
                super::question("s".into(), "a", &question, &limits).expect("it can be asked");
            assert!(
                length(&frame) <= limits.max_out_frame,
                "{piece:?}: {}",
                length(&frame)
            );
            let mut proposal = proposal(card);
            proposal.diffs = diff();
            let frame = permission("s".into(), "a".into(), proposal, Some(long), &limits);
            assert!(
                length(&frame) <= limits.max_out_frame,
                "{piece:?}: {}",
                length(&frame)
            );
            let frame = serde_json::to_string(&frame).expect("JSON");
            assert!(frame.contains("changed regions not shown"), "{frame}");
        }
    }

    #[test]
    fn what_fits_is_not_touched() {
        let limits = Limits::default();
        let text = "x".repeat(15_000);
        let mut proposal = proposal(card("{\"path\":\"/w/a\"}".into()));
        proposal.diffs = Vec::from([tools::Diff {
            path: "/w/a".into(),
            old: Some(text.clone()),
            new: text.clone(),
        }]);
        let request = permission("s".into(), "a".into(), proposal, None, &limits);
        let frame = serde_json::to_string(&request).expect("JSON");
        assert_eq!(frame.matches(&text).count(), 2);
        assert!(
            frame.contains("\"rawInput\":{\"path\":\"/w/a\"}"),
            "{frame}"
        );
    }

    fn proposal(card: tools::Card) -> Proposal {
        use crate::permission::{Access, Action};
        Proposal {
            action: Action::new("bash", Access::Session),
            card,
            diffs: Vec::new(),
        }
    }
}
