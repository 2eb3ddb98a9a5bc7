//! The keys of the objects that are open, to find the ones that occur twice. Knows no grammar.

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// As many keys of open objects as ordinary frames have.
const INLINE: usize = 24;

/// The keys of all open objects, the innermost object's last.
///
/// A new key is compared with those of its object that lie in the inline part, so at most `INLINE`
/// of them. Those that did not fit there are sorted when their object closes.
pub(super) struct Keys<'a> {
    text: &'a str,
    stack: Stack<Key, INLINE>,
    /// Keys that had escapes, without them, one behind the other.
    decoded: String,
    /// Whether some object so far had the same key twice.
    pub(super) duplicates: bool,
}

#[derive(Clone, Copy, Default)]
struct Key {
    hash: u32,
    start: u32,
    end: u32,
    decoded: bool,
}

impl<'a> Keys<'a> {
    /// No object is open in `text`, which is shorter than 4 GiB.
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            stack: Stack::new(),
            decoded: String::new(),
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
        let key = Key {
            hash: hash(&self.text.as_bytes()[start..end]),
            start: start as u32,
            end: end as u32,
            decoded: false,
        };
        self.add_key(base, key);
    }

    /// Adds a key that stands in the text with escapes to the object `base`.
    pub(super) fn add_decoded(&mut self, base: u32, value: &str) {
        let start = self.decoded.len();
        // Escapes are longer than what they stand for, so this stays shorter than the text.
        self.decoded.push_str(value);
        let key = Key {
            hash: hash(value.as_bytes()),
            start: start as u32,
            end: self.decoded.len() as u32,
            decoded: true,
        };
        self.add_key(base, key);
    }

    fn add_key(&mut self, base: u32, key: Key) {
        if self.duplicates {
            return;
        }
        let mut earlier = self.stack.inline(base as usize).iter();
        self.duplicates =
            earlier.any(|other| other.hash == key.hash && self.value(*other) == self.value(key));
        self.stack.push(key);
    }

    /// The object `base` is complete, and all that were opened in it.
    pub(super) fn close(&mut self, base: u32) {
        let base = base as usize;
        if self.stack.spilled(base).len() > 1 {
            let (text, decoded) = (self.text, &self.decoded);
            let spilled = self.stack.spilled(base);
            let order = |a: &Key, b: &Key| -> Ordering {
                let by_hash = a.hash.cmp(&b.hash);
                by_hash.then_with(|| value(text, decoded, *a).cmp(value(text, decoded, *b)))
            };
            spilled.sort_unstable_by(order);
            self.duplicates |= spilled
                .windows(2)
                .any(|pair| order(&pair[0], &pair[1]).is_eq());
        }
        self.stack.truncate(base);
    }

    fn value(&self, key: Key) -> &str {
        value(self.text, &self.decoded, key)
    }
}

fn value<'v>(text: &'v str, decoded: &'v str, key: Key) -> &'v str {
    let of = if key.decoded { decoded } else { text };
    &of[key.start as usize..key.end as usize]
}

/// Differs for keys that differ, nearly always; a peer that makes it agree gains nothing but the
/// comparison of the keys themselves.
fn hash(bytes: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |state: u64, word: u64| {
        let state = (state ^ word).wrapping_mul(FACTOR);
        state ^ (state >> 32)
    };
    let mut state = bytes.len() as u64;
    let mut words = bytes.chunks_exact(8);
    for word in words.by_ref() {
        let word = word.try_into().expect("chunks of 8 are 8 long");
        state = mix(state, u64::from_le_bytes(word));
    }
    let rest = words
        .remainder()
        .iter()
        .fold(0, |word, &byte| word << 8 | u64::from(byte));
    (mix(state, rest) >> 16) as u32
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

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, item: T) {
        match self.inline.get_mut(self.len) {
            Some(slot) => *slot = item,
            None => self.spill.push(item),
        }
        self.len += 1;
    }

    pub(super) fn last(&self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        self.inline.get(last).or_else(|| self.spill.last()).copied()
    }

    pub(super) fn truncate(&mut self, len: usize) {
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
