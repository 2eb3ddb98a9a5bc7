//! What the engine says and what a session remembers, as the client sees it. Pure; decides nothing.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::content;
use super::fit::{self, Room};
use crate::engine::record::{Author, Image, Reason, Record, Said, Shown, Subagent, User};
use crate::engine::{Compacting, Update};
use crate::limits::Limits;
use crate::protocol::schema::{
    CompactionMeta, CompactionStatus, CompactionSummaryChunk, CompactionUpdate, ContentBlock,
    ContentChunk, Diff, EmbeddedResourceResource, ImageContent, Json, Marker, Meta, Notice,
    NoticeSeverity, Patch, PlanEntry, PlanEntryPriority, PlanEntryStatus, PlanItems, PlanRemoved,
    PlanUpdate, PlanUpdateContent, ResourceLink, SessionMessage, SessionMessageChunk,
    SessionReference, SessionUpdate, SubagentSessionCapabilities, SubagentUpdate, TextContent,
    ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolKind,
    UsageUpdate,
};
use crate::tools::{self, Todo, TodoStatus};

/// Most of a line (a title, the name of a choice) in one frame, bytes of JSON.
pub(super) const LINE: usize = 1 << 10;
/// Most of a text beside other things in one frame, bytes of JSON.
pub(super) const SHOWN: usize = 16 << 10;
/// Most of a result as data, and what is kept free for arguments, bytes of JSON.
pub(super) const DATA: usize = 4 << 10;
/// What stands around an entry of a list, bytes of JSON.
pub(super) const OPTION: usize = 96;

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
            chunk.message_id = Some(message_id(message, &mut [0; 21]).into());
            if thought {
                SessionUpdate::AgentThoughtChunk(chunk)
            } else {
                SessionUpdate::AgentMessageChunk(chunk)
            }
        }
        Update::Running { id } => {
            let mut change = ToolCallUpdate::new(id);
            change.status = Some(ToolCallStatus::InProgress);
            SessionUpdate::ToolCallUpdate(change)
        }
        Update::Progress { id, text, session } => {
            let mut change = ToolCallUpdate::new(id);
            let text = room.text(&text, SHOWN, limits.max_tool_update);
            let mut content: Vec<_> = session.map(reference).into_iter().collect();
            content.push(ToolCallContent::text(text));
            change.content = Some(content);
            SessionUpdate::ToolCallUpdate(change)
        }
        Update::Usage { used, size } => SessionUpdate::UsageUpdate(UsageUpdate::new(used, size)),
        Update::Compacting { id, stage } => {
            let (status, error) = match stage {
                Compacting::Began => (CompactionStatus::InProgress, Patch::Absent),
                Compacting::Failed(why) => {
                    let why = room.text(&why, SHOWN, limits.max_tool_update);
                    (CompactionStatus::Failed, Patch::Value(why))
                }
                Compacting::Cancelled => (CompactionStatus::Cancelled, Patch::Absent),
            };
            let mut update = CompactionUpdate::new(compaction_id(id), status);
            update.error = error;
            SessionUpdate::CompactionUpdate(update)
        }
        Update::Retrying { after, why } => {
            let title = format!("The model is asked again in {} ms", after.as_millis());
            let mut notice = Notice::new(NoticeSeverity::Info, title);
            notice.description = Some(room.text(&why, SHOWN, limits.max_tool_update));
            SessionUpdate::Notice(notice)
        }
    }
}

/// What is seen of a record, live and when the session is loaded: nothing, one update, or more
/// where a text is longer than a frame.
pub(super) fn record(record: &Record, limits: &Limits) -> Vec<SessionUpdate> {
    let mut room = Room::new(limits);
    let one = |update| Vec::from([update]);
    match record {
        Record::User(user) => user_message(user, limits),
        Record::Assistant(answer) => {
            let mut id = [0; 21];
            let id = message_id(answer.id, &mut id);
            let mut updates = Vec::new();
            for said in &answer.said {
                let (text, thought) = match said {
                    Said::Text(text) => (text, false),
                    Said::Thought(text) => (text, true),
                };
                updates.extend(fit::pieces(text, limits).map(|piece| {
                    let mut chunk = ContentChunk::new(ContentBlock::text(piece));
                    chunk.message_id = Some(id.into());
                    if thought {
                        SessionUpdate::AgentThoughtChunk(chunk)
                    } else {
                        SessionUpdate::AgentMessageChunk(chunk)
                    }
                }));
            }
            updates
        }
        Record::Call { id, card, .. } => {
            let mut call = ToolCall::new(id.clone(), room.line(card.title.clone(), LINE));
            call.name = Some(room.line(card.name.clone(), LINE));
            call.kind = kind(card.kind);
            call.status = ToolCallStatus::Pending;
            call.locations = locations(card.locations.clone(), &mut room);
            let left = room.left();
            let input = card.raw_input.clone();
            let input = input.map(|input| room.arguments(input, left));
            call.raw_input = input.and_then(Json::from_text);
            one(SessionUpdate::ToolCall(call))
        }
        Record::Result(result) => {
            let mut change = ToolCallUpdate::new(result.id.clone());
            change.status = Some(if result.ok {
                ToolCallStatus::Completed
            } else {
                ToolCallStatus::Failed
            });
            if !result.locations.is_empty() {
                change.locations = Some(locations(result.locations.clone(), &mut room));
            }
            let output = result.output.clone().map(|output| room.data(output, DATA));
            change.raw_output = output.and_then(Json::from_text);
            let text = result.shown.as_ref().unwrap_or(&result.text);
            let text = room.text(text, SHOWN, limits.max_tool_update);
            let diffs = room.diffs(result.diffs.clone(), 0);
            let mut content: Vec<_> = result.session.clone().map(reference).into_iter().collect();
            content.extend(diffs.into_iter().map(diff));
            if !text.is_empty() {
                content.push(ToolCallContent::text(text));
            }
            change.content = Some(content);
            one(SessionUpdate::ToolCallUpdate(change))
        }
        Record::Plan { todos } if todos.is_empty() => {
            one(SessionUpdate::PlanRemoved(PlanRemoved::new(PLAN)))
        }
        Record::Plan { todos } => {
            let entries = plan(todos.clone(), &mut room);
            let plan = PlanUpdateContent::Items(PlanItems::new(PLAN, entries));
            one(SessionUpdate::PlanUpdate(PlanUpdate::new(plan)))
        }
        Record::Subagent(it) => subagent(it, limits),
        Record::Summary { gone, text, id, .. } => compaction(*id, *gone, text, limits),
        Record::Command { text, shown } => {
            let blocks = match shown {
                None => fit::pieces(text, limits).map(ContentBlock::text).collect(),
                Some(shown) => shown_blocks(shown, &[], limits),
            };
            let chunk = |block| SessionUpdate::UserMessageChunk(ContentChunk::new(block));
            blocks.into_iter().map(chunk).collect()
        }
        Record::Note { text } => fit::pieces(text, limits)
            .map(|piece| {
                SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::text(piece)))
            })
            .collect(),
        Record::Session(_)
        | Record::Options(_)
        | Record::Goal(_)
        | Record::End(_)
        | Record::Roots { .. }
        | Record::Mended { .. }
        | Record::Unknown => Vec::new(),
    }
}

/// What somebody said, block by block; nothing of what the agent itself says to the model.
fn user_message(user: &User, limits: &Limits) -> Vec<SessionUpdate> {
    if matches!(user.from, Author::Host | Author::Round) {
        return Vec::new();
    }
    let blocks = match &user.shown {
        None => {
            let text = fit::pieces(&user.text, limits).map(ContentBlock::text);
            text.chain(user.images.iter().map(image)).collect()
        }
        Some(shown) => shown_blocks(shown, &user.images, limits),
    };
    let id = format!("u{}", user.id);
    blocks
        .into_iter()
        .map(|block| {
            let mut chunk = ContentChunk::new(block);
            chunk.message_id = Some(id.clone());
            SessionUpdate::UserMessageChunk(chunk)
        })
        .collect()
}

/// What the person is shown of a message with these pictures.
fn shown_blocks(shown: &[Shown], images: &[Image], limits: &Limits) -> Vec<ContentBlock> {
    let mut blocks = Vec::new();
    for part in shown {
        match part {
            Shown::Text(said) => {
                blocks.extend(fit::pieces(said, limits).map(ContentBlock::text));
            }
            Shown::Image(at) => blocks.extend(images.get(*at).map(image)),
            Shown::TextBlock { text, block } => blocks.extend(text_blocks(text, block, limits)),
            Shown::ImageBlock { at, block } => {
                blocks.extend(images.get(*at).map(|image| image_block(image, block)));
            }
            // What a later version wrote and this one cannot read is left out.
            Shown::Block(json) => {
                blocks.extend(serde_json::from_str(json).map(|block| fitting(block, json, limits)));
            }
        }
    }
    blocks
}

/// A block that was kept whole, or what of it fits into a frame: the beginning of a text, and of bytes
/// where they came from. Pictures are always whole.
fn fitting(block: ContentBlock, json: &str, limits: &Limits) -> ContentBlock {
    let ContentBlock::Resource(resource) = &block else {
        return block;
    };
    if fit::fits(&[], json, limits) {
        return block;
    }
    let beside = content::beside(&block);
    let taken = serde_json::to_string(&beside).unwrap_or_default();
    match &resource.resource {
        EmbeddedResourceResource::Text(file) => {
            let mut room = Room::new(limits);
            room.take(taken.len());
            let text = room.text(&file.text, usize::MAX, usize::MAX);
            let mut shown = resource.clone();
            let mut inside = file.clone();
            inside.text = text;
            shown.resource = EmbeddedResourceResource::Text(inside);
            ContentBlock::Resource(shown)
        }
        EmbeddedResourceResource::Blob(file) => {
            let mut link = ResourceLink::new(content::base_name(&file.uri), file.uri.clone());
            link.mime_type.clone_from(&file.mime_type);
            link.annotations.clone_from(&resource.annotations);
            link.meta.clone_from(&resource.meta);
            ContentBlock::ResourceLink(link)
        }
    }
}

fn image(image: &Image) -> ContentBlock {
    ContentBlock::Image(ImageContent::new(image.data.clone(), image.mime.clone()))
}

/// A text in pieces, with what its block says beside it: with all of them where that is little.
fn text_blocks(text: &str, block: &str, limits: &Limits) -> Vec<ContentBlock> {
    let beside = match serde_json::from_str(block) {
        Ok(ContentBlock::Text(beside)) => Some(beside),
        // What a later version wrote and this one cannot read is left out.
        Ok(_) | Err(_) => None,
    };
    let little = block.len() <= DATA;
    let room = fit::raw_cost(block);
    let piece = |(n, piece): (usize, &str)| {
        let mut content = TextContent::new(piece);
        if let Some(beside) = beside.as_ref().filter(|_| n == 0 || little) {
            content.annotations.clone_from(&beside.annotations);
            content.meta.clone_from(&beside.meta);
        }
        ContentBlock::Text(content)
    };
    fit::pieces_beside(text, room, limits)
        .enumerate()
        .map(piece)
        .collect()
}

/// A picture with what its block says beside it.
fn image_block(image: &Image, block: &str) -> ContentBlock {
    let mut content = match serde_json::from_str(block) {
        Ok(ContentBlock::Image(beside)) => beside,
        Ok(_) | Err(_) => ImageContent::new("", image.mime.clone()),
    };
    content.data.clone_from(&image.data);
    ContentBlock::Image(content)
}

pub(super) fn diff(change: tools::Diff) -> ToolCallContent {
    let mut item = Diff::new(change.path, change.new);
    item.old_text = change.old;
    ToolCallContent::Diff(item)
}

pub(super) fn locations(places: Vec<tools::Location>, room: &mut Room) -> Vec<ToolCallLocation> {
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

pub(super) fn kind(kind: tools::ToolKind) -> ToolKind {
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

/// What a list of what is to be done is called where plans have ids.
const PLAN: &str = "todos";

fn compaction_id(number: u64) -> String {
    format!("c{number}")
}

/// The session of a subagent in the card of the call that it works for.
fn reference(session: String) -> ToolCallContent {
    ToolCallContent::Session(SessionReference::new(session.as_str()))
}

/// What a subagent does now.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct State {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'static str>,
}

/// A subagent begins or is over: how it stands, and what is said between the sessions.
fn subagent(it: &Subagent, limits: &Limits) -> Vec<SessionUpdate> {
    let mut room = Room::new(limits);
    let mut update = SubagentUpdate::new(it.id.as_str());
    let mut message = SessionMessage::new("");
    let state = |state, stop_reason| {
        let json = Json::of(&State { state, stop_reason });
        json.map_or(Patch::Absent, Patch::Value)
    };
    if let Some(title) = &it.title {
        update.title = Patch::Value(room.line(title.clone(), LINE));
        update.state = state("running", None);
        let may = SubagentSessionCapabilities {
            cancel: Some(Marker::default()),
            ..SubagentSessionCapabilities::default()
        };
        update.capabilities = Patch::Value(may);
        message.message_id = format!("{}.task", it.id);
        message.recipient_session_id = Patch::Value(it.id.as_str().into());
        let task = it.task.as_deref().unwrap_or_default();
        let mut call = ToolCallUpdate::new(it.call.clone());
        call.content = Some(Vec::from([reference(it.id.clone())]));
        let mut updates = Vec::from([
            SessionUpdate::SubagentUpdate(update),
            SessionUpdate::ToolCallUpdate(call),
        ]);
        updates.extend(session_message(message, task, limits));
        return updates;
    }
    let Some(ended) = it.ended else {
        return Vec::new();
    };
    update.capabilities = Patch::Null;
    update.state = state(
        "idle",
        Some(match ended {
            Reason::EndTurn => "end_turn",
            Reason::MaxTokens => "max_tokens",
            Reason::MaxTurnRequests => "max_turn_requests",
            Reason::Refusal => "refusal",
            Reason::Cancelled | Reason::Interrupted => "cancelled",
            Reason::Failed => "error",
        }),
    );
    let mut updates = Vec::new();
    if let Some(said) = &it.said {
        message.message_id = format!("{}.answer", it.id);
        message.sender_session_id = Patch::Value(it.id.as_str().into());
        updates.extend(session_message(message, said, limits));
    }
    updates.push(SessionUpdate::SubagentUpdate(update));
    updates
}

/// What is said between sessions; what does not fit into its frame comes in pieces behind it.
fn session_message(
    mut message: SessionMessage,
    text: &str,
    limits: &Limits,
) -> impl Iterator<Item = SessionUpdate> {
    let mut pieces = fit::pieces(text, limits).map(ContentBlock::text);
    let first = pieces.next().unwrap_or_else(|| ContentBlock::text(""));
    message.content = Patch::Value(Vec::from([first]));
    let id = message.message_id.clone();
    let rest = pieces.map(move |piece| {
        SessionUpdate::SessionMessageChunk(SessionMessageChunk::new(id.clone(), piece))
    });
    core::iter::once(SessionUpdate::SessionMessage(message)).chain(rest)
}

/// A compaction that is done. A summary that is longer than a frame comes in pieces before its end.
fn compaction(id: u64, gone: usize, text: &str, limits: &Limits) -> Vec<SessionUpdate> {
    let id = compaction_id(id);
    let mut done = CompactionUpdate::new(id.clone(), CompactionStatus::Completed);
    done.meta = Meta::of(&CompactionMeta::new(gone));
    let pieces: Vec<&str> = fit::pieces(text, limits).collect();
    let [summary] = pieces[..] else {
        let began = CompactionUpdate::new(id.clone(), CompactionStatus::InProgress);
        let mut updates = Vec::from([SessionUpdate::CompactionUpdate(began)]);
        updates.extend(pieces.into_iter().map(|piece| {
            let piece = ContentBlock::text(piece);
            SessionUpdate::CompactionSummaryChunk(CompactionSummaryChunk::new(id.clone(), piece))
        }));
        updates.push(SessionUpdate::CompactionUpdate(done));
        return updates;
    };
    done.summary = Patch::Value(Vec::from([ContentBlock::text(summary)]));
    Vec::from([SessionUpdate::CompactionUpdate(done)])
}

fn plan(todos: Vec<Todo>, room: &mut Room) -> Vec<PlanEntry> {
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
    entries
}

#[cfg(test)]
mod tests {
    use super::super::cards;
    use super::*;
    use crate::engine::record::ToolResult;
    use crate::tools::{Proposal, Question};
    use alloc::string::String;

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
                sandbox: Default::default(),
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
            let ended = Record::Result(ToolResult {
                id: "a".into(),
                ok: true,
                text: long.clone(),
                shown: None,
                diffs: diff(),
                output: Some(string.clone()),
                session: None,
                locations: Vec::from([tools::Location::new(long.as_str(), None)]),
                ..ToolResult::default()
            });
            let todo = tools::Todo {
                content: long.clone(),
                status: TodoStatus::Pending,
                level: 0,
            };
            let progress = Update::Progress {
                id: "a".into(),
                text: long.clone(),
                session: None,
            };
            let todos = alloc::vec![todo; 90];
            let call = Record::Call {
                id: "a".into(),
                card: card.clone(),
                line: None,
            };
            for (part, frames) in [
                ("truncated", record(&ended, &limits)),
                (
                    "more entries not shown",
                    record(&Record::Plan { todos }, &limits),
                ),
                ("truncated", Vec::from([update(progress, &limits)])),
                ("not shown", record(&call, &limits)),
            ] {
                let [frame] = &frames[..] else {
                    panic!("one update")
                };
                assert!(
                    length(frame) <= limits.max_out_frame,
                    "{part} {piece:?}: {}",
                    length(frame)
                );
                assert!(
                    serde_json::to_string(frame).expect("JSON").contains(part),
                    "{part}"
                );
            }
            for frame in record(&Record::Note { text: long.clone() }, &limits) {
                assert!(length(&frame) <= limits.max_out_frame);
            }
            let question = Question {
                id: "q1".into(),
                header: Some(long.clone()),
                text: long.clone(),
                options: alloc::vec![tools::Choice { label: long.clone(), description: None }; 200],
                multi: false,
                kind: Default::default(),
            };
            let frame =
                cards::question("s".into(), "a", &question, &limits).expect("it can be asked");
            assert!(
                length(&frame) <= limits.max_out_frame,
                "{piece:?}: {}",
                length(&frame)
            );
            let mut proposal = proposal(card);
            proposal.diffs = diff();
            let frame = cards::permission("s".into(), "a".into(), proposal, Some(long), &limits);
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
    fn a_long_message_between_sessions_comes_whole_in_pieces() {
        let limits = Limits::default();
        let text = "漢 \n".repeat(30_000);
        let frames = record(
            &Record::Subagent(Subagent {
                id: "s.1".into(),
                ended: Some(Reason::EndTurn),
                said: Some(text.clone()),
                ..Subagent::default()
            }),
            &limits,
        );
        let mut whole = String::new();
        for (n, frame) in frames.iter().enumerate() {
            assert!(length(frame) <= limits.max_out_frame);
            let block = if let SessionUpdate::SessionMessage(message) = frame {
                assert_eq!((n, message.message_id.as_str()), (0, "s.1.answer"));
                let Patch::Value(blocks) = &message.content else {
                    panic!("{frame:?}")
                };
                &blocks[0]
            } else if let SessionUpdate::SessionMessageChunk(chunk) = frame {
                assert_eq!(chunk.message_id, "s.1.answer");
                &chunk.content
            } else {
                assert!(matches!(frame, SessionUpdate::SubagentUpdate(_)));
                continue;
            };
            whole.push_str(block.as_text().expect("text"));
        }
        assert!(frames.len() > 3);
        assert_eq!(whole, text);
    }

    #[test]
    fn every_piece_of_a_long_text_says_what_its_block_says_if_that_is_little() {
        let limits = Limits::default();
        let text = "x".repeat(100_000);
        for (beside, carried) in [("b".into(), usize::MAX), ("b".repeat(DATA), 1)] {
            let block = format!(r#"{{"type":"text","text":"","_meta":{{"a":"{beside}"}}}}"#);
            let shown = Shown::TextBlock {
                text: text.clone(),
                block,
            };
            let user = User {
                id: 1,
                from: Author::Person,
                text: text.clone(),
                images: Vec::new(),
                shown: Some(Vec::from([shown])),
                item: None,
                mode: None,
            };
            let frames = record(&Record::User(user), &limits);
            assert!(frames.len() > 2);
            let mut whole = String::new();
            let mut with = 0;
            for frame in &frames {
                assert!(length(frame) <= limits.max_out_frame);
                let SessionUpdate::UserMessageChunk(chunk) = frame else {
                    panic!("{frame:?}")
                };
                let ContentBlock::Text(content) = &chunk.content else {
                    panic!("{frame:?}")
                };
                whole.push_str(&content.text);
                with += usize::from(content.meta.is_some());
            }
            assert_eq!(whole, text);
            assert_eq!(with, carried.min(frames.len()));
        }
    }

    #[test]
    fn a_thing_that_was_included_is_shown_again_in_a_frame() {
        let limits = Limits::default();
        let note = "n".repeat(limits.max_link - 200);
        let long = |member: &str, value: &str| {
            format!(
                r#"{{"type":"resource","resource":{{"{member}":"{value}","uri":"file:///w/a%20b.bin","mimeType":"m"}},"_meta":{{"n":"{note}"}}}}"#
            )
        };
        for (member, value, kind) in [
            ("text", "x".repeat(1 << 20), "resource"),
            ("text", "\\u2028".repeat(1 << 17), "resource"),
            ("text", "x".repeat(9), "resource"),
            ("blob", "AAAA".repeat(1 << 18), "resource_link"),
            ("blob", "AAAA".into(), "resource"),
        ] {
            let user = User {
                id: 1,
                from: Author::Person,
                text: String::new(),
                images: Vec::new(),
                shown: Some(Vec::from([Shown::Block(long(member, &value))])),
                item: None,
                mode: None,
            };
            let frames = record(&Record::User(user), &limits);
            let [frame] = &frames[..] else {
                panic!("one update")
            };
            assert!(
                length(frame) <= limits.max_out_frame,
                "{member}: {}",
                length(frame)
            );
            let text = serde_json::to_string(frame).expect("JSON");
            assert!(text.contains(&format!(r#""type":"{kind}""#)), "{member}");
            assert!(text.contains("file:///w/a%20b.bin") && text.contains(&note));
            let cut = text.contains("more chars truncated");
            assert_eq!(cut, member == "text" && value.len() > 100);
        }
    }

    #[test]
    fn what_a_model_wrote_makes_no_frame_that_nobody_can_read() {
        let limits = Limits::default();
        let deep = |n: usize| format!("{{\"a\":{}1{}}}", "[".repeat(n), "]".repeat(n));
        for (arguments, shown) in [
            (deep(100), true),
            (deep(200), false),
            (r#"{"a":{"b":1,"b":2}}"#.into(), false),
            (r#"{"a":"\ud800"}"#.into(), false),
        ] {
            let call = Record::Call {
                id: "a".into(),
                card: card(arguments.clone()),
                line: None,
            };
            let proposal = proposal(card(arguments.clone()));
            let asked = cards::permission("s".into(), "a".into(), proposal, None, &limits);
            let frames = record(&call, &limits);
            let frames = [
                serde_json::to_string(&frames[0]).expect("JSON"),
                serde_json::to_string(&asked).expect("JSON"),
            ];
            for frame in frames {
                let read = crate::wire::scan::scan(frame.as_bytes(), limits.max_depth - 2);
                assert!(read.is_ok_and(|read| !read.duplicates), "{frame}");
                assert_eq!(frame.contains(&arguments), shown, "{frame}");
            }
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
        let request = cards::permission("s".into(), "a".into(), proposal, None, &limits);
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
            text: None,
        }
    }
}
