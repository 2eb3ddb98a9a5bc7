//! The keys of the objects that are open, to find the ones that occur twice. Knows no grammar.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// As many keys of open objects as ordinary frames have.
const INLINE: usize = 16;

/// Marks a key that lies in `Keys::decoded` and not in the text.
const DECODED: u32 = 1 << 31;

/// The keys of all open objects, the innermost object's last.
///
/// A new key is compared with those of its object that lie in the inline part, so with at most
/// `INLINE` of them. Those that did not fit there are sorted when their object closes.
pub(super) struct Keys<'a> {
    text: &'a [u8],
    stack: Stack<Key, INLINE>,
    /// Keys that had escapes, without them, one behind the other.
    decoded: Vec<u8>,
    /// Whether some object so far had the same key twice.
    pub(super) duplicates: bool,
}

#[derive(Clone, Copy, Default)]
struct Key {
    print: u64,
    start: u32,
    end: u32,
}

impl<'a> Keys<'a> {
    /// The longest text whose keys can be held, bytes.
    pub(super) const MAX_TEXT: usize = DECODED as usize - 1;

    /// No object is open in `text`, which is no longer than `MAX_TEXT`.
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            stack: Stack::new(),
            decoded: Vec::new(),
            duplicates: false,
        }
    }

    /// What to call a new object by when it is closed: where its keys begin.
    pub(super) fn base(&self) -> u32 {
        // There are fewer keys than bytes in the text.
        self.stack.len() as u32
    }

    /// Adds the key that is `text[start..end]` to the object `base`.
    pub(super) fn add(&mut self, base: u32, start: usize, end: usize) {
        self.add_key(
            base,
            Key {
                print: fingerprint(self.text, start, end),
                start: start as u32,
                end: end as u32,
            },
        );
    }

    /// Adds a key that stands in the text with escapes to the object `base`.
    pub(super) fn add_decoded(&mut self, base: u32, value: &str) {
        let start = self.decoded.len();
        // Escapes are longer than what they stand for, so this stays shorter than the text.
        self.decoded.extend_from_slice(value.as_bytes());
        let end = self.decoded.len();
        self.add_key(
            base,
            Key {
                print: fingerprint(&self.decoded, start, end),
                start: start as u32 | DECODED,
                end: end as u32,
            },
        );
    }

    fn add_key(&mut self, base: u32, key: Key) {
        for earlier in self.stack.inline(base as usize) {
            if earlier.print == key.print && self.value(*earlier) == self.value(key) {
                self.duplicates = true;
            }
        }
        self.stack.push(key);
    }

    /// The object `base` is complete, and all that were opened in it.
    pub(super) fn close(&mut self, base: u32) {
        let base = base as usize;
        if self.stack.len() > INLINE {
            self.compare_spilled(base);
        }
        self.stack.truncate(base);
    }

    fn compare_spilled(&mut self, base: usize) {
        let (text, decoded) = (self.text, &self.decoded);
        let spilled = self.stack.spilled(base);
        let order = |a: &Key, b: &Key| -> Ordering {
            let by_print = a.print.cmp(&b.print);
            by_print.then_with(|| value(text, decoded, *a).cmp(value(text, decoded, *b)))
        };
        spilled.sort_unstable_by(order);
        self.duplicates |= spilled
            .windows(2)
            .any(|pair| order(&pair[0], &pair[1]).is_eq());
    }

    fn value(&self, key: Key) -> &[u8] {
        value(self.text, &self.decoded, key)
    }
}

fn value<'v>(text: &'v [u8], decoded: &'v [u8], key: Key) -> &'v [u8] {
    if key.start & DECODED == 0 {
        &text[key.start as usize..key.end as usize]
    } else {
        &decoded[(key.start & !DECODED) as usize..key.end as usize]
    }
}

/// Equal for equal keys, and differs for nearly all others of one object: made of the length and
/// the first and last eight bytes. A peer that makes it agree gains nothing but comparisons of keys.
fn fingerprint(bytes: &[u8], start: usize, end: usize) -> u64 {
    let length = end - start;
    let Some(word) = bytes.get(start..).and_then(|rest| rest.first_chunk()) else {
        let fold = |print, &byte: &u8| print << 8 | u64::from(byte);
        return bytes[start..end].iter().rev().fold(0, fold);
    };
    let first = u64::from_le_bytes(*word);
    match bytes[..end].last_chunk() {
        Some(word) if length >= 8 => {
            let last = u64::from_le_bytes(*word);
            // The length in a byte that text rarely fills, and the two words not in step.
            first ^ last.rotate_left(29) ^ ((length as u64) << 56)
        }
        _ => first & ((1 << (8 * length)) - 1),
    }
}

/// A stack that allocates nothing for its first `N` items.
pub(super) struct Stack<T, const N: usize> {
    inline: [T; N],
    len: usize,
    spill: Vec<T>,
}

impl<T: Copy + Default, const N: usize> Stack<T, N> {
    pub(super) fn new() -> Self {
        Self {
            inline: [T::default(); N],
            len: 0,
            spill: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, item: T) {
        match self.inline.get_mut(self.len) {
            Some(slot) => *slot = item,
            None => self.spill.push(item),
        }
        self.len += 1;
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        match self.inline.get(self.len) {
            Some(item) => Some(*item),
            None => self.spill.pop(),
        }
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.spill.truncate(self.len.saturating_sub(N));
    }

    /// The inline items from number `base` on.
    fn inline(&self, base: usize) -> &[T] {
        self.inline[..self.len.min(N)]
            .get(base..)
            .unwrap_or_default()
    }

    /// The other items from number `base` on.
    fn spilled(&mut self, base: usize) -> &mut [T] {
        self.spill
            .get_mut(base.saturating_sub(N)..)
            .unwrap_or_default()
    }
}
