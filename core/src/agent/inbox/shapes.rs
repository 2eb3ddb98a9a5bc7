//! From an inbox to what is sent of it.

use alloc::format;
use alloc::string::String;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::limits::Limits;
use crate::protocol::schema::SessionId;
use crate::protocol::schema::vendor::inbox::{
    Capacity, Disposition, Envelope, EnvelopeRef, ItemMeta, ItemState, RefMeta, Snapshot,
};
use crate::store::inbox::{self, Inbox, Item, State, hex, reference_block};
use crate::time::rfc3339;

/// All of an inbox.
pub(super) fn snapshot(inbox: &Inbox, session: &SessionId, limits: &Limits) -> Snapshot {
    let items = inbox.items().iter();
    Snapshot {
        schema_version: inbox.version(),
        revision: inbox.revision(),
        paused: inbox.is_paused(),
        recovered: inbox.recovered().is_some(),
        recovered_count: inbox.recovered(),
        readonly: inbox.read_only().map(|_| true),
        run_id: Some(inbox.run().into()),
        items: items.map(|item| meta(item, inbox, session)).collect(),
        capacity: Capacity {
            items: inbox.items().len() as u64,
            max_items: limits.max_inbox_items as u64,
            bytes: inbox.bytes() as u64,
            max_bytes: limits.max_inbox as u64,
            max_item_bytes: limits.max_inbox_item as u64,
            meta: None,
        },
        meta: None,
    }
}

/// What is known of an item.
pub(super) fn meta(item: &Item, inbox: &Inbox, session: &SessionId) -> ItemMeta {
    let date = |ms: i64| rfc3339(u64::try_from(ms).unwrap_or(0));
    let mut meta = ItemMeta::new(item.id.as_str());
    meta.session_id = Some(session.clone());
    meta.intent = item.intent.as_str().into();
    meta.state = Some(ItemState::from(item.state.as_str()));
    meta.revision = item.revision;
    meta.source = Some(item.source.clone());
    meta.created_at = Some(date(item.created));
    meta.updated_at = Some(date(item.updated));
    meta.preview = item.preview().into();
    meta.byte_size = item.bytes() as u64;
    meta.checksum = hex(&item.checksum());
    meta.idempotency_key = item.key().map(String::from);
    meta.refs = item.refs().iter().map(reference).collect();
    if let Some(block) = &item.block {
        meta.block_code = Some(block.code.as_str().into());
        meta.block_reason = Some(block.reason.clone());
    }
    meta.run_id = match item.state {
        State::Running | State::SteerAccepted | State::SteerConsumed => Some(inbox.run().into()),
        State::Queued | State::Blocked | State::Uncertain => None,
    };
    meta.attempts = (item.failures > 0).then_some(item.failures);
    meta.last_error = item.last_error.clone();
    meta
}

fn reference(note: &inbox::RefNote) -> RefMeta {
    let mut meta = RefMeta::new(note.kind.as_str());
    meta.path = Some(note.path.clone());
    meta.bytes = note.bytes;
    meta.preview = note.preview.clone();
    meta
}

/// What an item says.
pub(super) fn envelope(item: &Item) -> Envelope {
    let body = item.body();
    let mut envelope = Envelope::default();
    envelope.display_text.clone_from(&body.text);
    envelope.raw_text.clone_from(&body.text);
    let block = reference_block(&body.refs);
    envelope.frozen_ref_block = (!block.is_empty()).then_some(block);
    for frozen in &body.refs {
        let mut shown = EnvelopeRef::new(frozen.kind.as_str());
        shown.path = Some(frozen.path.clone());
        shown.display_path = Some(frozen.path.clone());
        if let Some(content) = &frozen.content {
            shown.content = Some(STANDARD.encode(content));
            shown.content_sha = Some(hex(&Sha256::digest(content)));
        }
        envelope.refs.push(shown);
        if let Some(why) = &frozen.error {
            let why = format!("@{}: {why}", frozen.path);
            envelope.reference_errors.push(why);
        }
    }
    envelope.submit_text = body.text;
    envelope.idempotency_key = item.key().map(String::from);
    envelope.source = Some(item.source.clone());
    envelope
}

/// What became of an item, as clients are told.
pub(super) fn disposition(of: inbox::Disposition) -> Disposition {
    Disposition::from(of.as_str())
}
