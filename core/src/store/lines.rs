//! The reading end of an append-only file of JSON lines: every record that can be read, whatever
//! happened to the file. Knows not what a record means.

use alloc::vec::Vec;

use serde::de::DeserializeOwned;

use crate::wire::frames::{FrameDecoder, Line};

/// The reading end of one append-only file.
///
/// A line that cannot be read is counted and passed over; records that stand on one line, since a
/// line end was lost, are read one by one; a last line without its end counts if it can be read,
/// and else is what a crash left of an append that nobody was told of.
#[derive(Debug)]
pub struct Lines {
    lines: FrameDecoder,
    /// The last byte was a line end, or there was none.
    whole: bool,
    finished: bool,
    read: u64,
    unreadable: usize,
    torn: bool,
    latest: u64,
}

impl Lines {
    /// A reader of lines of at most `max` bytes.
    pub fn new(max: usize) -> Self {
        Self {
            lines: FrameDecoder::new(max),
            whole: true,
            finished: false,
            read: 0,
            unreadable: 0,
            torn: false,
            latest: 0,
        }
    }

    /// Takes the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.whole = *last == b'\n';
        }
        self.read += bytes.len() as u64;
        self.lines.push(bytes);
    }

    /// There are no more bytes.
    pub fn finish(&mut self) {
        self.finished = true;
        self.lines.finish();
    }

    /// The records of the next line; none if more bytes are needed, or there are none. A line can
    /// hold none that can be read.
    pub fn next_line<T: DeserializeOwned>(&mut self) -> Option<Vec<T>> {
        let line = match self.lines.next_line()? {
            Line::Frame(line) => line,
            Line::TooLong => &[],
        };
        if let Some(at) = written_at(line) {
            self.latest = self.latest.max(at);
        }
        let mut records = Vec::new();
        let mut good = !line.is_empty();
        for record in serde_json::Deserializer::from_slice(line).into_iter() {
            match record {
                Ok(record) => records.push(record),
                Err(_) => {
                    good = false;
                    break;
                }
            }
        }
        if !good {
            // Nothing stands behind the last line.
            if self.finished && !self.whole && !self.lines.has_line() {
                self.torn = true;
            } else {
                self.unreadable += 1;
            }
        }
        Some(records)
    }

    /// Bytes taken so far: where the next ones begin.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Lines that held something that could not be read, since it was asked last.
    pub fn take_unreadable(&mut self) -> usize {
        core::mem::take(&mut self.unreadable)
    }

    /// When the latest of the lines that were read was made, milliseconds since 1970; 0: none says it.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// Whether the end of an append that broke off was passed over.
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    /// Whether the file does not end with a line end.
    pub fn lacks_end(&self) -> bool {
        !self.whole
    }
}

/// When a line was made: the journal writes that first.
fn written_at(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"{\"at\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    core::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Entry {
        n: u32,
    }

    fn read(bytes: &[u8], cut: usize) -> (Vec<u32>, usize, bool) {
        let mut lines = Lines::new(64);
        let mut found = Vec::new();
        let mut take = |lines: &mut Lines| {
            while let Some(records) = lines.next_line::<Entry>() {
                found.extend(records.into_iter().map(|entry| entry.n));
            }
        };
        for piece in bytes.chunks(cut) {
            lines.push(piece);
            take(&mut lines);
        }
        lines.finish();
        take(&mut lines);
        assert_eq!(lines.read(), bytes.len() as u64);
        (found, lines.take_unreadable(), lines.is_torn())
    }

    #[test]
    fn what_can_be_read_is_read_whatever_happened_to_the_rest() {
        let long = [
            b"{\"n\":1}\n{\"x\":\"".as_slice(),
            &[b'x'; 99],
            b"\"}\n{\"n\":2}\n",
        ]
        .concat();
        for (file, expected) in [
            ("".as_bytes(), (vec![], 0, false)),
            (b"{\"n\":1}\n{\"n\":2}\n", (vec![1, 2], 0, false)),
            // The line end was lost, or was never written.
            (b"{\"n\":1}{\"n\":2}\n{\"n\":3}", (vec![1, 2, 3], 0, false)),
            // A crash in the middle of an append, also within a character.
            (b"{\"n\":1}\n{\"n\":", (vec![1], 0, true)),
            (b"{\"n\":1}\n{\"n\":2,\"s\":\"\xE6", (vec![1], 0, true)),
            (b"{\"n\":1}\n{\"n\":2}{\"n", (vec![1, 2], 0, true)),
            // The same, and the session went on.
            (b"{\"n\":1}\n{\"n\":\n{\"n\":3}\n", (vec![1, 3], 1, false)),
            // A loss of power.
            (b"{\"n\":1}\n\0\0\0\0\n{\"n\":3}\n", (vec![1, 3], 1, false)),
            (b"{\"n\":1}\n\0\0\0\0", (vec![1], 0, true)),
            (b"\xFF\n[]\n{\"n\":3}\n", (vec![3], 2, false)),
            (&long, (vec![1, 2], 1, false)),
        ] {
            for cut in [1, 3, 1000] {
                assert_eq!(read(file, cut), expected, "{file:?} by {cut}");
            }
        }
    }
}
