//! Lines out of bytes (newline-delimited JSON). Knows nothing of what is in a line.

use alloc::vec::Vec;

use memchr::memchr;

/// Memory that is kept for the next lines when a long one is gone, bytes.
const KEEP: usize = 128 << 10;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Cuts a stream of bytes into lines (ACP, Transports: LF ends a message, and nothing else).
///
/// Blank lines, one CR before the LF and a byte order mark at the very beginning are tolerated and
/// not shown. How the bytes were cut into pushes cannot be seen. Each byte is searched once and
/// moved a bounded number of times. If lines are taken after each push, no more is held than the
/// longest line allowed and one push.
#[derive(Clone, Debug)]
pub struct FrameDecoder {
    max_frame: usize,
    buf: Vec<u8>,
    /// Where the first line not yet given begins.
    start: usize,
    /// Where the first line that is not blank ends. While there is none, all bytes were searched.
    end: Option<usize>,
    /// Nothing of the first line was given yet.
    first: bool,
    /// The line that is coming in is too long; its bytes are dropped.
    skipping: bool,
    /// A line was skipped, and that was not said yet.
    skipped: bool,
    finished: bool,
}

/// What came between two line ends. Exhaustive: a line fits or it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line that is not blank, without its line end.
    Frame(&'a [u8]),
    /// A line longer than the limit was skipped.
    TooLong,
}

impl FrameDecoder {
    /// A decoder for lines of at most `max_frame` bytes, line end not counted.
    pub fn new(max_frame: usize) -> Self {
        Self {
            max_frame,
            buf: Vec::new(),
            start: 0,
            end: None,
            first: true,
            skipping: false,
            skipped: false,
            finished: false,
        }
    }

    /// Takes bytes; after [`finish`](Self::finish) they are ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if self.finished {
            return;
        }
        if self.skipping {
            let Some(lf) = memchr(b'\n', bytes) else {
                return;
            };
            self.end_skipping();
            bytes = &bytes[lf + 1..];
        }
        self.compact();
        let searched = self.buf.len();
        self.buf.extend_from_slice(bytes);
        if self.end.is_none() {
            self.seek(searched);
        }
    }

    /// The stream is over: a last line without LF counts.
    pub fn finish(&mut self) {
        if self.skipping {
            self.end_skipping();
        } else {
            self.push(b"\n");
        }
        self.finished = true;
    }

    /// The next line.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        if self.skipped {
            self.skipped = false;
            return Some(Line::TooLong);
        }
        if let Some(lf) = self.end.take() {
            let (from, to) = (self.start, self.without_cr(lf));
            self.start = lf + 1;
            self.seek(lf + 1);
            return Some(if to - from > self.max_frame {
                Line::TooLong
            } else {
                Line::Frame(&self.buf[from..to])
            });
        }
        // A mark at the beginning and a CR at the end may still turn out not to count.
        let most = self.max_frame.saturating_add(BOM.len() + 1);
        if self.buffered() > most {
            self.skipping = true;
            self.first = false;
            self.start = self.buf.len();
        }
        self.compact();
        None
    }

    /// Bytes held.
    pub fn buffered(&self) -> usize {
        self.buf.len() - self.start
    }

    /// Whether a line has begun and none is complete.
    pub fn is_incomplete(&self) -> bool {
        !self.has_line() && (self.skipping || self.buffered() > 0)
    }

    /// Whether [`next_line`](Self::next_line) has something to give.
    pub fn has_line(&self) -> bool {
        self.skipped || self.end.is_some()
    }

    fn end_skipping(&mut self) {
        self.skipping = false;
        self.skipped = true;
    }

    /// Finds the end of the next line that is not blank; nothing before `from` is a line end.
    fn seek(&mut self, from: usize) {
        let mut from = from;
        while let Some(offset) = memchr(b'\n', &self.buf[from..]) {
            let lf = from + offset;
            if self.first {
                self.first = false;
                if self.buf[self.start..lf].starts_with(BOM) {
                    self.start += BOM.len();
                }
            }
            // A line too long is skipped with its bytes unseen, so blank ones are no exception.
            let too_long = self.without_cr(lf) - self.start > self.max_frame;
            if too_long || !is_blank(&self.buf[self.start..lf]) {
                self.end = Some(lf);
                return;
            }
            self.start = lf + 1;
            from = self.start;
        }
    }

    fn without_cr(&self, lf: usize) -> usize {
        lf - usize::from(self.buf[self.start..lf].ends_with(b"\r"))
    }

    /// Gives back what was read; moves no more bytes than were read since the last time.
    fn compact(&mut self) {
        if self.start == self.buf.len() {
            self.buf.clear();
            self.start = 0;
        } else if self.start > self.buf.len() - self.start {
            self.buf.drain(..self.start);
            self.end = self.end.map(|end| end - self.start);
            self.start = 0;
        } else {
            return;
        }
        if self.buf.capacity() > KEEP && self.buf.len() < KEEP {
            self.buf.shrink_to(KEEP);
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec;
    use proptest::prelude::*;

    /// All lines of `input`, pushed in pieces that end at `cuts`; a line too long is `!`.
    fn lines(input: &[u8], cuts: &[usize], max: usize) -> Vec<String> {
        let mut decoder = FrameDecoder::new(max);
        let mut lines = Vec::new();
        let mut from = 0;
        let mut drain = |decoder: &mut FrameDecoder| {
            loop {
                let has_line = decoder.has_line();
                let Some(line) = decoder.next_line() else {
                    assert!(!has_line);
                    break;
                };
                assert!(has_line);
                lines.push(match line {
                    Line::Frame(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                    Line::TooLong => String::from("!"),
                });
            }
        };
        for &to in cuts.iter().chain([&input.len()]) {
            decoder.push(&input[from..to]);
            from = to;
            drain(&mut decoder);
            assert!(decoder.buffered() <= max + 4);
        }
        decoder.finish();
        drain(&mut decoder);
        assert!(!decoder.is_incomplete());
        assert_eq!(decoder.buffered(), 0);
        lines
    }

    fn check(input: &str, expected: &[&str]) {
        let whole = lines(input.as_bytes(), &[], 8);
        assert_eq!(whole, expected, "{input:?}");
        let each: Vec<usize> = (0..input.len()).collect();
        assert_eq!(
            lines(input.as_bytes(), &each, 8),
            expected,
            "{input:?} byte by byte"
        );
        for at in 0..input.len() {
            assert_eq!(
                lines(input.as_bytes(), &[at], 8),
                expected,
                "{input:?} cut at {at}"
            );
        }
    }

    #[test]
    fn lines_are_what_lf_ends() {
        check("", &[]);
        check("a\nb\n", &["a", "b"]);
        check("{\r\n}\r\n", &["{", "}"]);
        check("a\r\r\n", &["a\r"]);
        check("a\rb\n", &["a\rb"]);
    }

    #[test]
    fn blank_lines_are_not_shown() {
        check("\n\r\n   \n\t \r\na\n\n", &["a"]);
    }

    #[test]
    fn only_lf_ends_a_line() {
        check(
            "\u{2028}\u{85}\n\u{2029}\n",
            &["\u{2028}\u{85}", "\u{2029}"],
        );
    }

    #[test]
    fn a_mark_counts_for_nothing_at_the_very_beginning_only() {
        check("\u{feff}a\n\u{feff}b\n", &["a", "\u{feff}b"]);
        check("\u{feff}\na\n", &["a"]);
        check("\u{feff}", &[]);
        check("\u{feff}12345678\r\n", &["12345678"]);
    }

    #[test]
    fn a_last_line_without_lf_counts() {
        check("a\nb", &["a", "b"]);
        check("a\nb\r", &["a", "b"]);
        check("a\n  ", &["a"]);
    }

    #[test]
    fn lines_too_long_are_skipped_to_their_end() {
        check("12345678\n123456789\na\n", &["12345678", "!", "a"]);
        check("12345678\r\n123456789\r\na\n", &["12345678", "!", "a"]);
        check("1234567890123456789\n1234567890123456789\n", &["!", "!"]);
        check("a\n1234567890123456789", &["a", "!"]);
        check("                   \na\n", &["!", "a"]);
    }

    #[test]
    fn a_long_line_leaves_no_memory_behind() {
        let mut decoder = FrameDecoder::new(32 << 20);
        let piece = vec![b'x'; 4 << 10];
        for _ in 0..4 << 10 {
            decoder.push(&piece);
            assert!(decoder.is_incomplete());
            assert_eq!(decoder.next_line(), None);
        }
        decoder.push(b"\nab");
        assert!(matches!(decoder.next_line(), Some(Line::Frame(line)) if line.len() == 16 << 20));
        assert_eq!(decoder.next_line(), None);
        assert_eq!(decoder.buffered(), 2);
        assert!(decoder.buf.capacity() <= KEEP);
    }

    #[test]
    fn a_line_that_never_ends_is_not_held() {
        let mut decoder = FrameDecoder::new(1000);
        for _ in 0..1000 {
            decoder.push(&[b'x'; 100]);
            assert_eq!(decoder.next_line(), None);
            assert!(decoder.buffered() <= 1100);
        }
        assert!(decoder.buf.capacity() <= KEEP);
        decoder.push(b"\n{}\n");
        assert_eq!(decoder.next_line(), Some(Line::TooLong));
        assert_eq!(decoder.next_line(), Some(Line::Frame(b"{}")));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pieces_change_nothing(
            input in "[a\n\r \u{feff}]{0,60}",
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
            cuts.sort_unstable();
            let whole = lines(input.as_bytes(), &[], 8);
            // The plain definition: split at LF, take a CR off, drop what is blank.
            let plain: Vec<String> = input
                .strip_prefix('\u{feff}')
                .unwrap_or(&input)
                .split('\n')
                .map(|line| line.strip_suffix('\r').unwrap_or(line))
                .filter(|line| line.len() > 8 || !line.chars().all(|c| " \r".contains(c)))
                .map(|line| if line.len() > 8 { String::from("!") } else { line.into() })
                .collect();
            prop_assert_eq!(&whole, &plain);
            prop_assert_eq!(lines(input.as_bytes(), &cuts, 8), whole);
        }
    }
}
