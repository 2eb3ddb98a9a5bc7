//! Finished frames on their way out, in one buffer: how many bytes wait, and how long nothing was
//! taken. Knows no message but the text chunk, which is written without any allocation.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use serde::Serialize;

use super::events::TextKind;
use super::schema::{SessionId, SessionUpdate};
use crate::time::Instant;
use crate::wire::rpc::write_notification;
use crate::wire::text::{write_escaped, write_escaped_within};

/// What a buffer keeps when it has run empty, bytes; a larger one is given back.
const KEEP: usize = 256 << 10;

#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    lengths: VecDeque<usize>,
    at: usize,
    handed: usize,
    unsent: usize,
    waiting_since: Option<Instant>,
    /// Since when frames are handed out of which nothing was said.
    unheard_since: Option<Instant>,
    dead: bool,
}

impl Output {
    /// Lets `write` append whole frames' bytes as one frame; nothing appended is no frame.
    #[inline]
    pub(super) fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.dead {
            return;
        }
        self.rewind();
        let before = self.bytes.len();
        write(&mut self.bytes);
        let length = self.bytes.len() - before;
        if length > 0 {
            self.lengths.push_back(length);
        }
    }

    /// Appends an update of a session.
    pub(super) fn update(&mut self, session: &SessionId, update: &SessionUpdate) {
        self.frame(|out| write_notification(out, "session/update", &Note { session, update }));
    }

    pub(super) fn has_frame(&self) -> bool {
        !self.lengths.is_empty()
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead
    }

    /// Takes the next frame to be handed out.
    #[inline]
    pub(super) fn next(&mut self, now: Instant) -> Option<Range<usize>> {
        let length = self.lengths.pop_front()?;
        let frame = self.at..self.at + length;
        self.at = frame.end;
        self.handed += length;
        self.unheard_since.get_or_insert(now);
        Some(frame)
    }

    /// The bytes of a frame that [`next`](Self::next) gave.
    #[inline]
    pub(super) fn bytes(&self, frame: Range<usize>) -> &[u8] {
        &self.bytes[frame]
    }

    /// Bytes that the peer has not taken: queued, or handed out and not known to be written.
    #[inline]
    pub(super) fn pressure(&self) -> usize {
        self.bytes.len() - self.at + self.handed + self.unsent
    }

    /// The driver tried to write: this many of the bytes handed out are left.
    pub(super) fn written(&mut self, now: Instant, unsent: usize) {
        let before = self.handed + self.unsent;
        if unsent == 0 {
            self.waiting_since = None;
        } else if unsent < before || self.waiting_since.is_none() {
            self.waiting_since = Some(now);
        }
        self.handed = 0;
        self.unsent = unsent;
        self.unheard_since = None;
    }

    /// Since when the peer has taken nothing though some waits for it.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        self.waiting_since
    }

    /// Since when the driver owes a word on what it was handed, if that is so much that everything
    /// waits for it.
    pub(super) fn unheard_since(&self, soft: usize) -> Option<Instant> {
        self.unheard_since.filter(|_| self.pressure() >= soft)
    }

    /// Nothing can be sent any more: drops all there is and all that comes.
    pub(super) fn kill(&mut self) {
        *self = Self {
            dead: true,
            ..Self::default()
        };
    }

    #[inline]
    fn rewind(&mut self) {
        if self.at == self.bytes.len() {
            self.at = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEEP {
                self.bytes = Vec::new();
            }
        }
    }
}

/// A `session/update` that borrows its parts.
#[derive(Serialize)]
struct Note<'a> {
    #[serde(rename = "sessionId")]
    session: &'a SessionId,
    update: &'a SessionUpdate,
}

const HEAD: &[u8] = br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#;
const MESSAGE: &[u8] =
    br#"","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""#;
const THOUGHT: &[u8] =
    br#"","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":""#;
const ID: &[u8] = br#""},"messageId":""#;
const TAIL_ID: &[u8] = b"\"}}}\n";
const TAIL: &[u8] = b"\"}}}}\n";

/// Appends a chunk of text as one frame of at most `max` bytes (or of a few characters, if `max` is
/// less than a frame needs). Gives the text that had no room.
pub(super) fn write_chunk<'t>(
    out: &mut Vec<u8>,
    session: &str,
    kind: TextKind,
    text: &'t str,
    message_id: Option<&str>,
    max: usize,
) -> &'t str {
    let around = HEAD.len() + MESSAGE.len() + ID.len() + TAIL.len();
    // Escapes grow a text at most sixfold.
    let ids = session.len() + 6 * message_id.map_or(0, str::len);
    let room = max.saturating_sub(around + ids).max(64);
    out.reserve(around + ids + room.min(text.len() + text.len() / 16));
    out.extend_from_slice(HEAD);
    // Ids of sessions that are open have a shape that needs no escapes.
    out.extend_from_slice(session.as_bytes());
    out.extend_from_slice(match kind {
        TextKind::Message => MESSAGE,
        TextKind::Thought => THOUGHT,
    });
    let rest = write_escaped_within(out, text, room);
    match message_id {
        Some(id) => {
            out.extend_from_slice(ID);
            write_escaped(out, id);
            out.extend_from_slice(TAIL_ID);
        }
        None => out.extend_from_slice(TAIL),
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::schema::{SessionNotification, SessionUpdate};
    use alloc::format;
    use alloc::string::String;
    use core::time::Duration;

    fn chunks(text: &str, id: Option<&str>, max: usize) -> String {
        let mut joined = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let mut out = Vec::new();
            rest = write_chunk(&mut out, "s-1", TextKind::Message, rest, id, max);
            assert!(out.len() <= max, "{} > {max}", out.len());
            assert_eq!(out.iter().filter(|b| **b == b'\n').count(), 1);
            let frame = core::str::from_utf8(&out).unwrap();
            let params = frame.find(r#""params":"#).unwrap() + 9;
            let params = &frame[params..frame.len() - 2];
            let note: SessionNotification = serde_json::from_str(params).unwrap();
            let SessionUpdate::AgentMessageChunk(chunk) = note.update else {
                panic!()
            };
            assert_eq!(chunk.message_id.as_deref(), id);
            joined.push_str(chunk.content.as_text().unwrap());
        }
        joined
    }

    #[test]
    fn long_text_is_split_on_characters_and_nothing_is_lost() {
        let text = "a\u{2028}é🙂\n\"\\漢".repeat(200);
        for max in [400, 401, 402, 403, 1000, usize::MAX] {
            assert_eq!(chunks(&text, None, max), text);
            assert_eq!(chunks(&text, Some("m\"1"), max), text);
        }
    }

    #[test]
    fn what_was_handed_out_counts_until_it_is_written() {
        let mut output = Output::default();
        let at = |s| Instant::since_start(Duration::from_secs(s));
        output.frame(|out| out.extend_from_slice(b"abc\n"));
        output.frame(|_| {});
        output.frame(|out| out.extend_from_slice(b"de\n"));
        assert_eq!(output.pressure(), 7);
        let frame = output.next(at(0)).unwrap();
        assert_eq!(output.bytes(frame), b"abc\n");
        let frame = output.next(at(0)).unwrap();
        assert_eq!(output.bytes(frame), b"de\n");
        assert_eq!(output.next(at(0)), None);
        assert_eq!(output.pressure(), 7);
        assert_eq!(
            (output.unheard_since(8), output.unheard_since(7)),
            (None, Some(at(0)))
        );
        output.written(at(1), 5);
        assert_eq!(
            (output.pressure(), output.waiting_since()),
            (5, Some(at(1)))
        );
        output.written(at(2), 5);
        assert_eq!(output.waiting_since(), Some(at(1)), "no progress");
        output.written(at(3), 4);
        assert_eq!(output.waiting_since(), Some(at(3)));
        output.written(at(4), 0);
        assert_eq!((output.pressure(), output.waiting_since()), (0, None));
        assert_eq!(output.unheard_since(0), None);
    }

    #[test]
    fn after_the_death_of_the_peer_nothing_is_kept() {
        let mut output = Output::default();
        output.frame(|out| out.extend_from_slice(format!("{}\n", 1).as_bytes()));
        output.kill();
        output.frame(|out| out.push(b'\n'));
        assert_eq!((output.pressure(), output.next(Instant::ZERO)), (0, None));
    }
}
