//! One item of an inbox, and the names of what it can be. Knows no journal and no order.

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Bounds;
use super::refs::{FrozenRef, RefKind, RefNote, reference_block};
use super::text::{checksum, preview};
use crate::wire::json::write_value;

/// A closed set of names, the same in the journal and on the wire.
macro_rules! names {
    (
        $(#[$meta:meta])*
        $name:ident { $( $(#[$doc:meta])* $variant:ident = $text:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name { $( $(#[$doc])* $variant, )+ }

        impl $name {
            /// Its name.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }

            /// The one with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $( $text => Some(Self::$variant), )+ _ => None }
            }
        }
    };
}
pub(super) use names;

names! {
    /// What an item is for.
    Intent {
        /// A turn of its own, when those before it are over.
        FollowUp = "followup",
        /// Guidance for the turn that runs.
        Steer = "steer",
    }
}

names! {
    /// Where an item stands.
    State {
        /// It waits for its turn.
        Queued = "queued",
        /// The running turn took it, and reads it before it next calls the model.
        SteerAccepted = "steer_accepted",
        /// The running turn has read it.
        SteerConsumed = "steer_consumed",
        /// Its turn runs.
        Running = "running",
        /// It cannot run as it is: it waits for an update, a refresh or a retry.
        Blocked = "blocked",
        /// It is not known how far its turn came: it waits for a person's retry.
        Uncertain = "uncertain",
    }
}

impl State {
    /// Whether an item in this state can be updated and moved.
    pub const fn is_pending(self) -> bool {
        match self {
            Self::Queued | Self::Blocked | Self::Uncertain => true,
            Self::SteerAccepted | Self::SteerConsumed | Self::Running => false,
        }
    }
}

names! {
    /// Why an item does not simply wait.
    BlockCode {
        /// Guidance that was taken and not applied.
        SteerUnapplied = "steer_unapplied",
        /// The transcript could not be written when its turn was about to begin.
        TurnSnapshotFailed = "turn_snapshot_failed",
        /// The transcript could not be written when its turn was over.
        TurnAckFailed = "turn_ack_failed",
        /// The process that ran it ended before its turn did.
        OwnerInactive = "owner_inactive",
        /// The inbox was damaged, and this was found in it.
        ManifestSalvaged = "manifest_salvaged",
        /// A reference could not be frozen.
        ReferenceFailed = "reference_failed",
        /// Its turn failed in a way that trying again does not mend.
        TurnFailed = "turn_failed",
        /// Its turn failed as often as it is tried.
        AttemptsExhausted = "attempts_exhausted",
    }
}

/// Why an item does not simply wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The code.
    pub code: BlockCode,
    /// For people.
    pub reason: String,
}

/// An idempotency key, and the content it is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) bound: [u8; 32],
}

/// One item.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item {
    /// Its id; opaque, never used again.
    pub id: String,
    /// What it is for.
    pub intent: Intent,
    /// Where it stands.
    pub state: State,
    /// The revision of the inbox at which it was last changed.
    pub revision: u64,
    /// Who put it in.
    pub source: String,
    /// Its idempotency key.
    pub(super) key: Option<Key>,
    /// When it came, milliseconds since 1970.
    pub created: i64,
    /// When it was last changed, milliseconds since 1970.
    pub updated: i64,
    /// Why it does not simply wait.
    pub block: Option<Block>,
    /// Failures of a passing kind since it was last told to run.
    pub failures: u32,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// How many of its beginnings in the transcript are accounted for here.
    pub(super) settled: u32,
    pub(super) body: Encoded,
}

impl Item {
    /// Its idempotency key.
    pub fn key(&self) -> Option<&str> {
        self.key.as_ref().map(|key| key.text.as_str())
    }

    /// The beginning of its text.
    pub fn preview(&self) -> &str {
        &self.body.preview
    }

    /// Its references.
    pub fn refs(&self) -> &[RefNote] {
        &self.body.refs
    }

    /// Its length as it is stored, bytes.
    pub fn bytes(&self) -> usize {
        self.body.len()
    }

    /// The SHA-256 of what is stored of it.
    pub fn checksum(&self) -> [u8; 32] {
        self.body.sum
    }

    /// What it says.
    pub fn body(&self) -> Body {
        // It was read or written by `Body` when it came in.
        self.body.decode().expect("a body that was taken in")
    }
}

/// What an item says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Body {
    /// What the person says.
    pub text: String,
    /// What was frozen with it.
    pub refs: Vec<FrozenRef>,
}

impl Body {
    /// What the model is told: the text, and the frozen texts behind it.
    pub fn prompt(&self) -> String {
        let block = reference_block(&self.refs);
        if block.is_empty() {
            return self.text.clone();
        }
        let mut prompt = self.text.clone();
        prompt.push_str("\n\n");
        prompt.push_str(&block);
        prompt
    }

    pub(super) fn encode(&self, bounds: &Bounds) -> Encoded {
        let stored = Stored {
            text: self.text.clone(),
            refs: self.refs.iter().map(StoredRef::of).collect(),
        };
        let mut text = Vec::new();
        write_value(&mut text, &stored);
        let text = String::from_utf8(text).expect("JSON is text");
        let raw = RawValue::from_string(text).expect("what was written is JSON");
        let refs = self.refs.iter();
        Encoded {
            sum: checksum(raw.get()),
            raw: Arc::new(raw),
            preview: preview(&self.text, bounds.preview),
            refs: refs.map(|it| it.note(bounds.ref_preview)).collect(),
        }
    }
}

/// A body as it is stored: the text of a JSON object. It can be long, so what is shown of it and its
/// checksum are made once, and copies share it.
#[derive(Clone, Debug)]
pub(super) struct Encoded {
    raw: Arc<Box<RawValue>>,
    sum: [u8; 32],
    preview: String,
    refs: Vec<RefNote>,
}

impl Encoded {
    /// A body that was stored; none if it is none of ours.
    pub(super) fn read(raw: &RawValue, bounds: &Bounds) -> Option<Self> {
        let seen: Seen<'_> = serde_json::from_str(raw.get()).ok()?;
        let note = |stored: StoredRef| Some(stored.read()?.note(bounds.ref_preview));
        Some(Self {
            preview: preview(&seen.text, bounds.preview),
            refs: seen.refs.into_iter().map(note).collect::<Option<_>>()?,
            sum: checksum(raw.get()),
            raw: Arc::new(raw.to_owned()),
        })
    }

    pub(super) fn raw(&self) -> &RawValue {
        &self.raw
    }

    pub(super) fn len(&self) -> usize {
        self.raw.get().len()
    }

    /// The SHA-256 of it.
    pub(super) fn sum(&self) -> [u8; 32] {
        self.sum
    }

    pub(super) fn decode(&self) -> Option<Body> {
        let stored: Stored = serde_json::from_str(self.raw.get()).ok()?;
        let refs = stored.refs.into_iter().map(StoredRef::read);
        Some(Body {
            text: stored.text,
            refs: refs.collect::<Option<_>>()?,
        })
    }
}

impl PartialEq for Encoded {
    fn eq(&self, other: &Self) -> bool {
        self.raw.get() == other.raw.get()
    }
}

impl Eq for Encoded {}

#[derive(Serialize, Deserialize)]
struct Stored {
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refs: Vec<StoredRef>,
}

/// The same, as far as it has to be looked at.
#[derive(Deserialize)]
struct Seen<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(default)]
    refs: Vec<StoredRef>,
}

/// Content that is text is stored as text, so that a person can read the journal.
#[derive(Serialize, Deserialize)]
struct StoredRef {
    kind: String,
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl StoredRef {
    fn of(reference: &FrozenRef) -> Self {
        let bytes = reference.content.as_deref();
        let text = bytes.and_then(|bytes| core::str::from_utf8(bytes).ok());
        Self {
            kind: reference.kind.as_str().into(),
            path: reference.path.clone(),
            text: text.map(String::from),
            base64: match text {
                None => bytes.map(|bytes| STANDARD.encode(bytes)),
                Some(_) => None,
            },
            error: reference.error.clone(),
        }
    }

    fn read(self) -> Option<FrozenRef> {
        let content = match (self.text, self.base64) {
            (Some(text), _) => Some(text.into_bytes()),
            (None, Some(text)) => Some(STANDARD.decode(text).ok()?),
            (None, None) => None,
        };
        Some(FrozenRef {
            kind: RefKind::from_name(&self.kind)?,
            path: self.path,
            content,
            error: self.error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_as_it_was_written() {
        let reference = |kind, content: Option<&[u8]>, error: Option<&str>| FrozenRef {
            kind,
            path: "a\"\u{2028}b".into(),
            content: content.map(<[u8]>::to_vec),
            error: error.map(String::from),
        };
        let body = Body {
            text: "say \u{2028} \"it\"\n".into(),
            refs: Vec::from([
                reference(RefKind::Frozen, Some(b"text\n"), None),
                reference(RefKind::Frozen, Some(b"\xff\x00"), None),
                reference(RefKind::Frozen, Some(b""), None),
                reference(RefKind::External, None, Some("gone")),
            ]),
        };
        let bounds = Bounds::of(&crate::limits::Limits::default());
        let encoded = body.encode(&bounds);
        assert_eq!(encoded.decode(), Some(body));
        let again = Encoded::read(encoded.raw(), &bounds).expect("it is ours");
        assert_eq!(
            (&again, again.sum, &again.preview, &again.refs),
            (&encoded, encoded.sum, &encoded.preview, &encoded.refs)
        );
        assert!(!encoded.raw().get().contains('\n'));
    }

    #[test]
    fn the_model_is_told_the_text_and_what_was_frozen_with_it() {
        let mut body = Body {
            text: "fix @a".into(),
            refs: Vec::new(),
        };
        assert_eq!(body.prompt(), "fix @a");
        body.refs.push(FrozenRef {
            kind: RefKind::Frozen,
            path: "a".into(),
            content: Some(b"x".to_vec()),
            error: None,
        });
        assert_eq!(body.prompt(), "fix @a\n\n<file path=\"a\">\nx\n</file>");
    }
}
