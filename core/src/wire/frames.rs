//! Lines out of bytes (newline-delimited JSON). Knows nothing of what is in a line.

/// Cuts a stream of bytes into lines.
#[derive(Clone, Debug)]
pub struct FrameDecoder {
    max_frame: usize,
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
        Self { max_frame }
    }

    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let _ = (bytes, self.max_frame);
        todo!()
    }

    /// The stream is over: a last line without LF counts.
    pub fn finish(&mut self) {
        todo!()
    }

    /// The next line.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        todo!()
    }

    /// Bytes held.
    pub fn buffered(&self) -> usize {
        todo!()
    }

    /// Whether a line has begun and none is complete.
    pub fn is_incomplete(&self) -> bool {
        todo!()
    }

    /// Whether [`next_line`](Self::next_line) has something to give.
    pub fn has_line(&self) -> bool {
        todo!()
    }
}
