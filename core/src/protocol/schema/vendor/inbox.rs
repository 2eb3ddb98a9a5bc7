//! Steering and the durable inbox: `_reasonix.io/session/steer` and the nine methods
//! `_reasonix.io/session/inbox/…` (schema version 1 of their messages).

use alloc::string::String;
use alloc::vec::Vec;

use crate::protocol::schema::object::{object, open_names};
use crate::protocol::schema::{ContentBlock, SessionId};

/// The version of these messages, as `initialize` says it.
pub const SCHEMA_VERSION: u32 = 1;

/// `_reasonix.io/session/steer`: [`SteerRequest`] to [`SteerResponse`].
pub const STEER: &str = "_reasonix.io/session/steer";
/// [`EnqueueRequest`] to [`EnqueueResponse`].
pub const ENQUEUE: &str = "_reasonix.io/session/inbox/enqueue";
/// [`ListRequest`] to [`Snapshot`].
pub const LIST: &str = "_reasonix.io/session/inbox/list";
/// [`ItemRequest`] to [`GetResponse`].
pub const GET: &str = "_reasonix.io/session/inbox/get";
/// [`UpdateRequest`] to [`ItemMeta`].
pub const UPDATE: &str = "_reasonix.io/session/inbox/update";
/// [`ItemRequest`] to [`OkResponse`].
pub const DELETE: &str = "_reasonix.io/session/inbox/delete";
/// [`MoveRequest`] to [`OkResponse`].
pub const MOVE: &str = "_reasonix.io/session/inbox/move";
/// [`SetPausedRequest`] to [`SetPausedResponse`].
pub const SET_PAUSED: &str = "_reasonix.io/session/inbox/setPaused";
/// [`ItemRequest`] to [`OkResponse`].
pub const RETRY: &str = "_reasonix.io/session/inbox/retry";
/// [`ItemRequest`] to [`OkResponse`].
pub const REFRESH: &str = "_reasonix.io/session/inbox/refresh";

object! {
    /// Guidance for the turn that runs.
    SteerRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// What the person says.
        "prompt" prompt: Vec<ContentBlock> = Required,
        ;
    }
}

object! {
    /// What became of guidance.
    SteerResponse {
        /// What became of it.
        "disposition" disposition: Disposition = Required,
        ;
        /// The item that it is; absent in a session that is not stored.
        "itemId" item_id: Option<String> = Lenient,
    }
}

object! {
    /// A message to keep for a turn of its own.
    EnqueueRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// What the person says.
        "text" text: String = Required,
        ;
        /// `steer`, whatever its case, is guidance for the turn that runs; all else a follow-up.
        "intent" intent: Option<String> = Lenient,
        /// The same key with the same content is the same item, whatever became of it.
        "idempotencyKey" idempotency_key: Option<String> = Optional,
    }
}

object! {
    /// The item that was put in, or had been before.
    EnqueueResponse {
        /// The item.
        "itemId" item_id: String = Required,
        /// What became of it.
        "disposition" disposition: Disposition = Required,
        ;
        /// Its place, from 1; 0 if it is gone.
        "position" position: u32 = Defaulted,
        /// Whether the inbox is paused.
        "paused" paused: bool = Defaulted,
        /// It was put in before, by the same key.
        "idempotent" idempotent: bool = Defaulted,
    }
}

object! {
    /// All that is in an inbox.
    ListRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        ;
    }
}

object! {
    /// One item of an inbox: to see, to delete, to try again, to freeze its references again.
    ItemRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The item.
        "itemId" item_id: String = Required,
        ;
    }
}

object! {
    /// Another text for an item.
    UpdateRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The item.
        "itemId" item_id: String = Required,
        /// What the person says instead.
        "text" text: String = Required,
        ;
    }
}

object! {
    /// Another place for an item.
    MoveRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The item.
        "itemId" item_id: String = Required,
        /// Its new place, from 0; what lies outside is the first or the last.
        "toIndex" to_index: i64 = Required,
        ;
    }
}

object! {
    /// Pauses an inbox, or lets it go on.
    SetPausedRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// Whether it is to be paused.
        "paused" paused: bool = Required,
        ;
    }
}

object! {
    /// Whether an inbox is paused.
    SetPausedResponse {
        /// Whether it is.
        "paused" paused: bool = Required,
        ;
    }
}

object! {
    /// It is done.
    OkResponse {
        /// Always true.
        "ok" ok: bool = Required,
        ;
    }
}

object! {
    /// One item, whole.
    GetResponse {
        /// What is known of it.
        "meta" about: ItemMeta = Required,
        /// What it says.
        "envelope" envelope: Envelope = Required,
        ;
    }
}

object! {
    /// An inbox.
    Snapshot {
        /// The version of the inbox as it is stored.
        "schemaVersion" schema_version: u32 = Defaulted,
        /// Grows with every change.
        "revision" revision: u64 = Defaulted,
        /// Whether nothing begins until it is told to go on.
        "paused" paused: bool = Defaulted,
        /// Whether items were found that another process had left.
        "recovered" recovered: bool = Defaulted,
        /// How many.
        "recoveredCount" recovered_count: Option<u32> = Lenient,
        /// Whether it cannot be changed; absent if it can.
        "readonly" readonly: Option<bool> = Lenient,
        /// The process that has it; opaque.
        "runId" run_id: Option<String> = Lenient,
        /// The items, in order.
        "items" items: Vec<ItemMeta> = ListShown,
        /// How full it is.
        "capacity" capacity: Capacity = Defaulted,
    }
}

object! {
    /// How full an inbox is, and can be.
    Capacity {
        /// Items in it.
        "items" items: u64 = Defaulted,
        /// Items it can hold.
        "maxItems" max_items: u64 = Defaulted,
        /// Length of all items, bytes.
        "bytes" bytes: u64 = Defaulted,
        /// Bytes it can hold.
        "maxBytes" max_bytes: u64 = Defaulted,
        /// Bytes one item can have.
        "maxItemBytes" max_item_bytes: u64 = Defaulted,
    }
}

object! {
    /// What is known of an item, without what it says.
    ItemMeta {
        /// Its id; opaque.
        "id" id: String = Required,
        ;
        /// The session.
        "sessionId" session_id: Option<SessionId> = Lenient,
        /// What it is for: `followup` or `steer`.
        "intent" intent: String = Defaulted,
        /// Where it stands.
        "state" state: Option<ItemState> = Lenient,
        /// The revision of the inbox at which it was last changed.
        "revision" revision: u64 = Defaulted,
        /// The name of its file, where it has one.
        "blobName" blob_name: Option<String> = Lenient,
        /// Who put it in.
        "source" source: Option<String> = Lenient,
        /// When it came, RFC 3339.
        "createdAt" created_at: Option<String> = Lenient,
        /// When it was last changed, RFC 3339.
        "updatedAt" updated_at: Option<String> = Lenient,
        /// The beginning of its text; what is longer ends in `…`.
        "preview" preview: String = Defaulted,
        /// Its length with all that was frozen for it, bytes.
        "byteSize" byte_size: u64 = Defaulted,
        /// Its SHA-256, hexadecimal digits.
        "checksum" checksum: String = Defaulted,
        /// Its idempotency key.
        "idempotencyKey" idempotency_key: Option<String> = Lenient,
        /// `host` if it was not a person who put it in.
        "origin" origin: Option<String> = Lenient,
        /// Its references.
        "refs" refs: Vec<RefMeta> = LenientList,
        /// Why it does not simply wait.
        "blockReason" block_reason: Option<String> = Lenient,
        /// The code of that.
        "blockCode" block_code: Option<String> = Lenient,
        /// The process that runs it; opaque.
        "runId" run_id: Option<String> = Lenient,
        /// How often its turn failed in a way that may pass.
        "attempts" attempts: Option<u32> = Lenient,
        /// What went wrong last.
        "lastError" last_error: Option<String> = Lenient,
    }
}

object! {
    /// A reference of an item, without its content.
    RefMeta {
        /// What it is: `clean_git`, `frozen`, `external`, `attachment`.
        "kind" kind: String = Required,
        ;
        /// The path as it stands in the text.
        "path" path: Option<String> = Lenient,
        /// The commit that has it.
        "commit" commit: Option<String> = Lenient,
        /// The length of what was frozen, bytes.
        "bytes" bytes: Option<u64> = Lenient,
        /// The beginning of what was frozen.
        "preview" preview: Option<String> = Lenient,
    }
}

object! {
    /// What an item says. An item that came by ACP has the same text three times.
    Envelope {
        /// What a person is shown.
        "displayText" display_text: String = Defaulted,
        /// What the person typed.
        "rawText" raw_text: String = Defaulted,
        /// What is submitted.
        "submitText" submit_text: String = Defaulted,
        /// References with their contents.
        "refs" refs: Vec<EnvelopeRef> = LenientList,
        /// What the model is told of the frozen ones.
        "frozenRefBlock" frozen_ref_block: Option<String> = Lenient,
        /// What could not be frozen, and why.
        "referenceErrors" reference_errors: Vec<String> = LenientList,
        /// Its idempotency key.
        "idempotencyKey" idempotency_key: Option<String> = Lenient,
        /// Who put it in.
        "source" source: Option<String> = Lenient,
    }
}

object! {
    /// A reference of an item, with its content.
    EnvelopeRef {
        /// What it is.
        "kind" kind: String = Required,
        ;
        /// The path as it stands in the text.
        "path" path: Option<String> = Lenient,
        /// The path as a person is shown it.
        "displayPath" display_path: Option<String> = Lenient,
        /// The content that was frozen, base64.
        "content" content: Option<String> = Lenient,
        /// The SHA-256 of that content, hexadecimal digits.
        "contentSha" content_sha: Option<String> = Lenient,
        /// Whether the content was cut.
        "truncated" truncated: Option<bool> = Lenient,
    }
}

open_names! {
    /// What became of a message.
    Disposition {
        /// Its turn has begun.
        Started = "started",
        /// The running turn took it.
        SteerAccepted = "steer_accepted",
        /// It waits for its turn.
        QueuedFollowup = "queued_followup",
        /// It has run.
        Acknowledged = "acknowledged",
        /// It was deleted.
        Discarded = "discarded",
    }
}

open_names! {
    /// Where an item stands.
    ItemState {
        /// It waits for its turn.
        Queued = "queued",
        /// The running turn took it.
        SteerAccepted = "steer_accepted",
        /// The running turn has read it.
        SteerConsumed = "steer_consumed",
        /// Its turn runs.
        Running = "running",
        /// It cannot run as it is.
        Blocked = "blocked",
        /// It is not known how far its turn came.
        Uncertain = "uncertain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Debug;
    use serde::{Deserialize, Serialize};

    /// Reads `text` and writes `is`, which reads the same.
    fn check<T>(text: &str, is: &str)
    where
        T: for<'a> Deserialize<'a> + Serialize + PartialEq + Debug,
    {
        let value: T = serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(serde_json::to_string(&value).unwrap(), is);
        assert_eq!(serde_json::from_str::<T>(is).unwrap(), value);
    }

    fn same<T>(text: &str)
    where
        T: for<'a> Deserialize<'a> + Serialize + PartialEq + Debug,
    {
        check::<T>(text, text);
    }

    #[test]
    fn requests_are_written_as_they_are_named() {
        same::<SteerRequest>(r#"{"sessionId":"s","prompt":[{"type":"text","text":"t"}]}"#);
        same::<EnqueueRequest>(
            r#"{"sessionId":"s","text":"t","intent":"steer","idempotencyKey":"k"}"#,
        );
        same::<ListRequest>(r#"{"sessionId":"s"}"#);
        same::<ItemRequest>(r#"{"sessionId":"s","itemId":"i"}"#);
        same::<UpdateRequest>(r#"{"sessionId":"s","itemId":"i","text":"t"}"#);
        same::<MoveRequest>(r#"{"sessionId":"s","itemId":"i","toIndex":-1}"#);
        same::<SetPausedRequest>(r#"{"sessionId":"s","paused":true}"#);
    }

    #[test]
    fn answers_are_written_as_they_are_named() {
        same::<SteerResponse>(r#"{"disposition":"steer_accepted","itemId":"i"}"#);
        same::<SteerResponse>(r#"{"disposition":"steer_accepted"}"#);
        same::<EnqueueResponse>(
            r#"{"itemId":"i","disposition":"queued_followup","position":1,"paused":false,"idempotent":false}"#,
        );
        same::<SetPausedResponse>(r#"{"paused":false}"#);
        same::<OkResponse>(r#"{"ok":true}"#);
        same::<GetResponse>(
            r#"{"meta":{"id":"i","sessionId":"s","intent":"followup","state":"blocked","revision":3,"source":"acp","createdAt":"a","updatedAt":"b","preview":"p…","byteSize":12,"checksum":"00","idempotencyKey":"k","refs":[{"kind":"frozen","path":"p","bytes":2,"preview":"x"}],"blockReason":"r","blockCode":"reference_failed","runId":"u","attempts":1,"lastError":"e"},"envelope":{"displayText":"t","rawText":"t","submitText":"t","refs":[{"kind":"frozen","path":"p","displayPath":"p","content":"eA==","contentSha":"00","truncated":false}],"frozenRefBlock":"f","referenceErrors":["e"],"idempotencyKey":"k","source":"acp"}}"#,
        );
    }

    #[test]
    fn an_inbox_without_items_is_written_with_an_empty_list_and_read_with_none() {
        let empty = r#"{"schemaVersion":2,"revision":0,"paused":false,"recovered":false,"items":[],"capacity":{"items":0,"maxItems":0,"bytes":0,"maxBytes":0,"maxItemBytes":0}}"#;
        same::<Snapshot>(empty);
        check::<Snapshot>(r#"{"schemaVersion":2,"items":null}"#, empty);
        same::<Snapshot>(
            r#"{"schemaVersion":2,"revision":7,"paused":true,"recovered":true,"recoveredCount":1,"readonly":true,"runId":"u","items":[{"id":"i","intent":"steer","state":"queued","revision":1,"preview":"","byteSize":0,"checksum":""}],"capacity":{"items":1,"maxItems":64,"bytes":9,"maxBytes":67108864,"maxItemBytes":4194304}}"#,
        );
    }

    #[test]
    fn what_is_missing_malformed_or_unknown_does_no_harm_where_it_can_be_done_without() {
        check::<EnqueueRequest>(
            r#"{"sessionId":"s","text":"t","intent":7,"idempotencyKey":null,"new":{}}"#,
            r#"{"sessionId":"s","text":"t"}"#,
        );
        check::<EnqueueResponse>(
            r#"{"itemId":"i","disposition":"rejected_busy"}"#,
            r#"{"itemId":"i","disposition":"rejected_busy","position":0,"paused":false,"idempotent":false}"#,
        );
        for bad in [
            r#"{"sessionId":"s"}"#,
            r#"{"text":"t"}"#,
            r#"{"sessionId":"s","text":null}"#,
            r#"{"sessionId":"s","text":1}"#,
            r#"{"sessionId":"s","text":"t","idempotencyKey":1}"#,
        ] {
            assert!(
                serde_json::from_str::<EnqueueRequest>(bad).is_err(),
                "{bad}"
            );
        }
        for bad in ["1.5", "1e30", "\"1\"", "null"] {
            let text = alloc::format!(r#"{{"sessionId":"s","itemId":"i","toIndex":{bad}}}"#);
            assert!(serde_json::from_str::<MoveRequest>(&text).is_err(), "{bad}");
        }
    }
}
