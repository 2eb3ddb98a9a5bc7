//! Finished frames that wait to be transmitted. Knows nothing of what is in them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Finished frames, one buffer for all.
#[derive(Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    /// Where the first one begins.
    head: usize,
    lengths: VecDeque<usize>,
}

impl Frames {
    /// Adds the frame that `write` appends.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.lengths.is_empty() {
            self.bytes.clear();
            self.head = 0;
        }
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.lengths.push_back(self.bytes.len() - start);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The next frame; empty if there is none.
    pub(super) fn next(&mut self) -> &[u8] {
        let start = self.head;
        self.head += self.lengths.pop_front().unwrap_or(0);
        &self.bytes[start..self.head]
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.lengths.clear();
    }
}
