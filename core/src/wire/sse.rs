//! Server-sent events out of bytes (WHATWG HTML, "Interpreting an event stream"). Knows nothing of
//! what is in an event.

use thiserror::Error;

/// Decodes one stream of events.
#[derive(Clone, Debug)]
pub struct SseDecoder {
    max_event: usize,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent<'a> {
    /// The `event` field; none means `message`.
    pub event: Option<&'a str>,
    /// The `data` fields, joined by LF; never empty.
    pub data: &'a str,
    /// The last `id` field of the stream so far.
    pub id: Option<&'a str>,
    /// Whether the blank line behind it was seen. Without it the stream ended in the event, which
    /// may be cut.
    pub complete: bool,
}

/// The stream cannot be read on.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SseFault {
    /// One event is longer than allowed.
    #[error("an event of the stream is longer than {limit} bytes")]
    TooLong {
        /// The limit, bytes.
        limit: usize,
    },
}

impl SseDecoder {
    /// A decoder for events of at most `max_event` bytes.
    pub fn new(max_event: usize) -> Self {
        Self { max_event }
    }

    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let _ = (bytes, self.max_event);
        todo!()
    }

    /// The stream is over: what has begun is given as it is, with `complete: false`.
    pub fn finish(&mut self) {
        todo!()
    }

    /// The next event. A fault is given again on each call.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseFault> {
        todo!()
    }

    /// The `retry` field, milliseconds, if the stream had one.
    pub fn retry_ms(&self) -> Option<u64> {
        todo!()
    }

    /// Bytes held.
    pub fn buffered(&self) -> usize {
        todo!()
    }

    /// Whether a whole line came since this was asked last; comments count, they are signs of life.
    pub fn heard(&mut self) -> bool {
        todo!()
    }
}
