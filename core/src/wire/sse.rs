//! Server-sent events out of bytes (WHATWG HTML, "Interpreting an event stream"). Knows nothing of
//! what is in an event.

use alloc::string::String;
use alloc::vec::Vec;

use memchr::memchr2;
use thiserror::Error;

/// Memory that is kept for the next events when a long one is gone, bytes.
const KEEP: usize = 64 << 10;

/// Decodes one stream of events. How the bytes were cut into pushes cannot be seen.
///
/// Lines end with LF, CR or both; a byte order mark at the beginning counts for nothing; bytes that
/// are no UTF-8 become U+FFFD. If events are taken after each push, no more is held than the
/// longest event allowed, twice, and one push.
#[derive(Clone, Debug)]
pub struct SseDecoder {
    max_event: usize,
    buf: Vec<u8>,
    /// Where the first line not yet read begins; no line end lies between here and `searched`.
    start: usize,
    searched: usize,
    /// The last line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    first: bool,
    finished: bool,
    /// The event in `fields` was given; the next call begins a new one.
    given: bool,
    fields: Fields,
    heard: bool,
    fault: Option<SseFault>,
}

/// What the lines of the stream have set.
#[derive(Clone, Debug, Default)]
struct Fields {
    event: String,
    data: String,
    has_data: bool,
    /// Stays from event to event.
    id: String,
    /// Stays too.
    retry_ms: Option<u64>,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent<'a> {
    /// The `event` field; none means `message`.
    pub event: Option<&'a str>,
    /// The `data` fields, joined by LF.
    pub data: &'a str,
    /// The last `id` field of the stream so far, unless it was empty.
    pub id: Option<&'a str>,
    /// Whether the blank line behind it was seen. Without it the stream ended in the event: the
    /// standard drops it, some servers mean it, and it may be cut anywhere.
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
    /// A decoder for events of at most `max_event` bytes: what is kept of it so far, and one line.
    pub fn new(max_event: usize) -> Self {
        Self {
            max_event,
            buf: Vec::new(),
            start: 0,
            searched: 0,
            after_cr: false,
            first: true,
            finished: false,
            given: false,
            fields: Fields::default(),
            heard: false,
            fault: None,
        }
    }

    /// Takes bytes; after [`finish`](Self::finish) or a fault they are ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.finished || self.fault.is_some() {
            return;
        }
        self.compact();
        self.buf.extend_from_slice(bytes);
    }

    /// The stream is over: an event that has begun is given with `complete: false`.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The next event. A fault is given again at each call.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseFault> {
        if self.given {
            self.given = false;
            self.fields.end_event();
        }
        while self.fault.is_none() {
            let Some((from, to)) = self.next_line() else {
                break;
            };
            let line = &self.buf[from..to];
            if line.len() > self.max_event - self.fields.size().min(self.max_event) {
                self.fail();
            } else if !line.is_empty() {
                self.heard = true;
                self.fields.set(line);
            } else if self.fields.has_data {
                return Ok(Some(self.give(true)));
            } else {
                self.fields.end_event();
            }
        }
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.finished && self.fields.has_data {
            return Ok(Some(self.give(false)));
        }
        self.compact();
        Ok(None)
    }

    /// The last `retry` field of the stream so far, milliseconds.
    pub fn retry_ms(&self) -> Option<u64> {
        self.fields.retry_ms
    }

    /// Bytes held.
    pub fn buffered(&self) -> usize {
        self.buf.len() - self.start + self.fields.size()
    }

    /// Whether a whole line that is not blank was read since this was asked last. Comments count:
    /// servers send them as signs of life.
    pub fn heard(&mut self) -> bool {
        core::mem::take(&mut self.heard)
    }

    fn give(&mut self, complete: bool) -> SseEvent<'_> {
        self.given = true;
        let fields = &self.fields;
        SseEvent {
            event: Some(fields.event.as_str()).filter(|text| !text.is_empty()),
            data: &fields.data,
            id: Some(fields.id.as_str()).filter(|text| !text.is_empty()),
            complete,
        }
    }

    /// Where the next line is, its end not counted.
    fn next_line(&mut self) -> Option<(usize, usize)> {
        if self.after_cr && self.start < self.buf.len() {
            self.after_cr = false;
            if self.buf[self.start] == b'\n' {
                self.start += 1;
            }
            self.searched = self.searched.max(self.start);
        }
        let end = match memchr2(b'\n', b'\r', &self.buf[self.searched..]) {
            Some(offset) => self.searched + offset,
            None => {
                self.searched = self.buf.len();
                let unread = self.searched - self.start;
                if !self.finished {
                    // Whatever ends this line, it will be too long.
                    if unread.saturating_add(self.fields.size()) > self.max_line() {
                        self.fail();
                    }
                    return None;
                }
                if unread == 0 {
                    return None;
                }
                self.searched
            }
        };
        let mut from = self.start;
        self.after_cr = self.buf.get(end) == Some(&b'\r');
        self.start = self.buf.len().min(end + 1);
        self.searched = self.start;
        if self.first {
            self.first = false;
            if self.buf[from..end].starts_with(b"\xEF\xBB\xBF") {
                from += 3;
            }
        }
        Some((from, end))
    }

    /// A mark at the beginning may still turn out not to count.
    fn max_line(&self) -> usize {
        self.max_event
            .saturating_add(if self.first { 3 } else { 0 })
    }

    fn fail(&mut self) {
        let limit = self.max_event;
        self.fault = Some(SseFault::TooLong { limit });
        self.buf = Vec::new();
        (self.start, self.searched) = (0, 0);
        self.fields = Fields::default();
    }

    /// Gives back what was read; moves no more bytes than were read since the last time.
    fn compact(&mut self) {
        if self.start > self.buf.len() - self.start || self.start == self.buf.len() {
            self.buf.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
            if self.buf.capacity() > KEEP && self.buf.len() < KEEP {
                self.buf.shrink_to(KEEP);
            }
        }
    }
}

impl Fields {
    fn size(&self) -> usize {
        self.event.len() + self.data.len()
    }

    fn end_event(&mut self) {
        self.event.clear();
        self.data.clear();
        self.has_data = false;
        if self.data.capacity() > KEEP {
            self.data = String::new();
        }
    }

    fn set(&mut self, line: &[u8]) {
        let colon = line.iter().position(|&byte| byte == b':');
        let (name, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(&String::from_utf8_lossy(value));
            }
            b"event" => {
                self.event.clear();
                self.event.push_str(&String::from_utf8_lossy(value));
            }
            b"id" if !value.contains(&0) => {
                self.id.clear();
                self.id.push_str(&String::from_utf8_lossy(value));
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let number = core::str::from_utf8(value).ok();
                self.retry_ms = number.and_then(|text| text.parse().ok()).or(self.retry_ms);
            }
            // Comments have no name; unknown fields are passed over.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use proptest::prelude::*;

    /// All events of `input`, pushed in pieces that end at `cuts`: `event|data|id`, the incomplete
    /// with `…`, a fault as `!`.
    fn events(input: &[u8], cuts: &[usize], max: usize) -> Vec<String> {
        let mut decoder = SseDecoder::new(max);
        let mut events = Vec::new();
        let mut drain = |decoder: &mut SseDecoder| {
            loop {
                match decoder.next_event() {
                    Ok(Some(event)) => events.push(format!(
                        "{}|{}|{}{}",
                        event.event.unwrap_or("-"),
                        event.data,
                        event.id.unwrap_or("-"),
                        if event.complete { "" } else { "…" },
                    )),
                    Ok(None) => break,
                    Err(SseFault::TooLong { limit }) => {
                        assert_eq!(limit, max);
                        if events.last().is_none_or(|last| last != "!") {
                            events.push("!".into());
                        }
                        break;
                    }
                }
            }
        };
        let mut from = 0;
        for &to in cuts.iter().chain([&input.len()]) {
            decoder.push(&input[from..to]);
            from = to;
            drain(&mut decoder);
            assert!(decoder.buffered() <= 2 * max + 3);
        }
        decoder.finish();
        drain(&mut decoder);
        drain(&mut decoder);
        events
    }

    fn check_bytes(input: &[u8], max: usize, expected: &[&str]) {
        let shown = String::from_utf8_lossy(input);
        assert_eq!(events(input, &[], max), expected, "{shown:?}");
        let each: Vec<usize> = (0..input.len()).collect();
        assert_eq!(
            events(input, &each, max),
            expected,
            "{shown:?} byte by byte"
        );
        for at in 0..input.len() {
            assert_eq!(events(input, &[at], max), expected, "{shown:?} cut at {at}");
        }
    }

    fn check(input: &str, expected: &[&str]) {
        check_bytes(input.as_bytes(), 1000, expected);
    }

    #[test]
    fn events_end_with_a_blank_line() {
        check("data: a\n\ndata: b\n\n", &["-|a|-", "-|b|-"]);
        check("event: x\ndata: a\n\ndata: b\n\n", &["x|a|-", "-|b|-"]);
        check("\n\n\n", &[]);
    }

    #[test]
    fn lines_end_with_lf_cr_or_both() {
        check(
            "data: a\r\n\r\ndata: b\r\rdata: c\n\r\n",
            &["-|a|-", "-|b|-", "-|c|-"],
        );
        check("data: a\r\rdata: b\r\n\n", &["-|a|-", "-|b|-"]);
        check("data: a\rdata: b\n\ndata:c\r", &["-|a\nb|-", "-|c|-…"]);
        check("data: \u{2028}\u{85}\n\n", &["-|\u{2028}\u{85}|-"]);
    }

    #[test]
    fn comments_and_unknown_fields_are_passed_over() {
        check(
            ": keep-alive\n\n:\n\ndata: a\n: x\ndata: b\nfoo: c\ndat\n\n:\n",
            &["-|a\nb|-"],
        );
    }

    #[test]
    fn one_space_behind_the_colon_is_optional() {
        check(
            "data:a\n\ndata: a\n\ndata:  a\n\ndata:\ta:b \n\n",
            &["-|a|-", "-|a|-", "-| a|-", "-|\ta:b |-"],
        );
        check("data:[DONE]\n\n", &["-|[DONE]|-"]);
    }

    #[test]
    fn lines_of_data_are_joined() {
        check("data: a\ndata:\ndata: b\ndata\n\n", &["-|a\n\nb\n|-"]);
        check(
            "data\n\ndata\ndata\n\ndata:\n",
            &["-||-", "-|\n|-", "-||-…"],
        );
    }

    #[test]
    fn an_event_without_data_is_none() {
        check("event: x\n\nid: 7\n\ndata: a\n\n", &["-|a|7"]);
    }

    #[test]
    fn the_id_stays_until_it_is_set_anew() {
        check(
            "id: 1\ndata: a\n\ndata: b\n\nid: \u{0}\ndata: c\n\nid\ndata: d\n\n",
            &["-|a|1", "-|b|1", "-|c|1", "-|d|-"],
        );
    }

    #[test]
    fn a_mark_counts_for_nothing_at_the_very_beginning_only() {
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["-|a|-"]);
        check("\u{feff}\n\ndata: b\n\n", &["-|b|-"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        check_bytes(b"data: a\xFFb\n\n", 99, &["-|a\u{fffd}b|-"]);
        check("data: é🙂漢\n\n", &["-|é🙂漢|-"]);
    }

    #[test]
    fn what_the_end_of_the_stream_cuts_is_marked() {
        check("data: a", &["-|a|-…"]);
        check("data: a\n", &["-|a|-…"]);
        check("data: a\n\nevent: x\n", &["-|a|-"]);
        check("data: a\n\ndata: b\nda", &["-|a|-", "-|b|-…"]);
    }

    #[test]
    fn events_too_long_end_the_stream() {
        let max = 10;
        check_bytes(
            b"data: 1234\n\ndata: 1234\r\n\r\n",
            max,
            &["-|1234|-", "-|1234|-"],
        );
        check_bytes(b"\xEF\xBB\xBFdata: 1234\n\n", max, &["-|1234|-"]);
        check_bytes(
            b"data: 1234\n\ndata: 12345\n\ndata: 1\n\n",
            max,
            &["-|1234|-", "!"],
        );
        let lines = b"data:1\ndata:2\ndata:3\ndata:4\n\n";
        check_bytes(lines, 11, &["-|1\n2\n3\n4|-"]);
        check_bytes(lines, 10, &["!"]);
    }

    #[test]
    fn a_line_that_never_ends_is_not_held() {
        let mut decoder = SseDecoder::new(1000);
        for _ in 0..100 {
            decoder.push(&[b'x'; 100]);
            let _ = decoder.next_event();
            assert!(decoder.buffered() <= 1000);
        }
        assert_eq!(decoder.next_event(), Err(SseFault::TooLong { limit: 1000 }));
    }

    #[test]
    fn comments_are_signs_of_life_and_halves_of_lines_are_not() {
        let mut decoder = SseDecoder::new(99);
        for (bytes, expected) in [
            (": pi", false),
            ("ng\n", true),
            ("\n", false),
            ("data", false),
            (":a\n", true),
        ] {
            decoder.push(bytes.as_bytes());
            assert_eq!(decoder.next_event(), Ok(None));
            assert_eq!(
                (decoder.heard(), decoder.heard()),
                (expected, false),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn retry_is_a_number_or_nothing() {
        for (input, expected) in [
            ("retry: 250\n", Some(250)),
            (
                "retry: 1\nretry: 2x\nretry:\nretry: 99999999999999999999\n",
                Some(1),
            ),
            ("retry: -1\n", None),
        ] {
            let mut decoder = SseDecoder::new(99);
            decoder.push(input.as_bytes());
            assert_eq!(decoder.next_event(), Ok(None));
            assert_eq!(decoder.retry_ms(), expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pieces_change_nothing(
            input in "(data|event|id|: ?|\n|\r|\r\n|\n\n|[a-c \u{feff}é]){0,40}",
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
            max in 4usize..30,
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
            cuts.sort_unstable();
            let whole = events(input.as_bytes(), &[], max);
            prop_assert_eq!(events(input.as_bytes(), &cuts, max), whole);
        }
    }
}
