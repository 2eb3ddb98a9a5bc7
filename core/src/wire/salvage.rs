//! The id of an answer in a line that cannot be read: whoever asked waits for it, and nothing else
//! will come. Trusts nothing in the line but where its outermost members begin and end.

use super::id::RequestId;

/// The id of the answer that a broken line is, if it looks like one: an object with a result or an error,
/// no method, and one id that is a whole number, as all of ours are. Texts may hold anything, values may
/// be no JSON, and nothing is too deep.
pub(super) fn answer_id(frame: &[u8]) -> Option<RequestId> {
    let mut line = Line { rest: frame };
    (line.next()? == b'{').then_some(())?;
    let (mut id, mut answers) = (None, false);
    while let Some(b'"') = line.next() {
        let key = line.text()?;
        (line.next()? == b':').then_some(())?;
        let value = line.value();
        match key {
            b"method" => return None,
            b"id" if id.is_some() => return None,
            b"id" => id = Some(value),
            b"result" | b"error" => answers = true,
            _ => {}
        }
    }
    let digits = id.filter(|id| answers && !id.is_empty() && id.iter().all(u8::is_ascii_digit))?;
    RequestId::from_token(core::str::from_utf8(digits).ok()?)
}

struct Line<'a> {
    rest: &'a [u8],
}

impl<'a> Line<'a> {
    /// The next byte that is no space.
    fn next(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// What is left of a text whose quote was read, without the one that ends it.
    fn text(&mut self) -> Option<&'a [u8]> {
        let mut at = 0;
        loop {
            match self.rest.get(at)? {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        let text = &self.rest[..at];
        self.rest = &self.rest[at + 1..];
        Some(text)
    }

    /// A value, up to the comma or bracket behind it, which is read too.
    fn value(&mut self) -> &'a [u8] {
        let whole = self.rest;
        let mut depth = 0usize;
        loop {
            let before = self.rest.len();
            match self.next() {
                Some(b'"') => drop(self.text()),
                Some(b'{' | b'[') => depth += 1,
                Some(b',' | b'}' | b']') if depth == 0 => {
                    let end = whole.len() - self.rest.len() - 1;
                    return whole[..end].trim_ascii();
                }
                Some(b'}' | b']') => depth -= 1,
                Some(_) => {}
                None => return whole[..whole.len() - before].trim_ascii(),
            }
        }
    }
}
