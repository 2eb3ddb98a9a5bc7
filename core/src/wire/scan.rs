//! The one scan of a frame: UTF-8, JSON grammar, depth, surrogates, duplicate keys, and where the
//! members of the envelope are. Knows no method and builds no values.

mod keys;

use alloc::borrow::Cow;

use thiserror::Error;

use super::swar::find_special;
use keys::{Keys, Stack};

/// What one scan found out about a text that is JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scan<'a> {
    /// What the text is, at the top.
    pub shape: Shape<'a>,
    /// Whether some object, at any level, has the same key twice.
    pub duplicates: bool,
}

/// What a JSON text is, at the top. Exhaustive: JSON has no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape<'a> {
    /// An object.
    Object(Envelope<'a>),
    /// An array.
    Array,
    /// A string, number, boolean or null.
    Scalar,
}

/// The texts of the members of an object that JSON-RPC knows. Of a key that occurs twice, the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Envelope<'a> {
    /// `jsonrpc`.
    pub jsonrpc: Option<&'a str>,
    /// `id`.
    pub id: Option<&'a str>,
    /// Whether `id` occurs twice, so that it names nothing.
    pub id_twice: bool,
    /// `method`.
    pub method: Option<&'a str>,
    /// `params`.
    pub params: Option<&'a str>,
    /// `result`.
    pub result: Option<&'a str>,
    /// `error`.
    pub error: Option<&'a str>,
}

/// Why a text is not JSON that can be taken. Holds nothing of the text: that may be secret.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ScanFault {
    /// Bytes that are no UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// Not what the grammar asks for.
    #[error("not JSON")]
    Grammar,
    /// Half a surrogate pair, which no text can hold.
    #[error("a lone surrogate in a string")]
    LoneSurrogate,
    /// Nested too deep.
    #[error("nested too deep")]
    TooDeep,
    /// 2 GiB or more.
    #[error("too long")]
    TooLong,
}

/// Scans a text of JSON that may be nested `max_depth` deep. Time is linear in its length (n log n
/// in the number of keys of one object); nothing is allocated unless objects have very many keys.
///
/// What passes is taken by `serde_json` too, up to its own limits (depth 128, the range of numbers).
pub fn scan(bytes: &[u8], max_depth: usize) -> Result<Scan<'_>, ScanFault> {
    let text = core::str::from_utf8(bytes).map_err(|_| ScanFault::NotUtf8)?;
    if bytes.len() > Keys::MAX_TEXT {
        return Err(ScanFault::TooLong);
    }
    let mut scanner = Scanner {
        text,
        bytes,
        at: 0,
        keys: Keys::new(bytes),
        depth: 0,
        top: ARRAY,
        around: Stack::new(),
        max_depth,
        envelope: Envelope::default(),
        member: None,
    };
    scanner.run()
}

/// The value of a JSON string that passed the scan, quotes included; none if it is no string.
pub fn string_value(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(text).ok().map(Cow::Owned)
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// Where the next byte is.
    at: usize,
    keys: Keys<'a>,
    /// How many containers are open.
    depth: usize,
    /// The innermost one, by where its keys begin; `ARRAY` if it is an array.
    top: u32,
    /// Those around it, outermost first.
    around: Stack<u32, 16>,
    max_depth: usize,
    envelope: Envelope<'a>,
    /// The member of the envelope whose value is being scanned, and where that begins.
    member: Option<(Member, usize)>,
}

const ARRAY: u32 = u32::MAX;

#[derive(Clone, Copy)]
enum Member {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl<'a> Scanner<'a> {
    fn run(&mut self) -> Result<Scan<'a>, ScanFault> {
        self.skip_space();
        let first = self.peek();
        self.values()?;
        self.skip_space();
        if self.at != self.bytes.len() {
            return Err(ScanFault::Grammar);
        }
        Ok(Scan {
            shape: match first {
                Some(b'{') => Shape::Object(self.envelope),
                Some(b'[') => Shape::Array,
                _ => Shape::Scalar,
            },
            duplicates: self.keys.duplicates,
        })
    }

    /// Scans one value with all that is in it. A loop over open containers and no recursion, so
    /// that depth costs no machine stack.
    fn values(&mut self) -> Result<(), ScanFault> {
        loop {
            match self.peek() {
                Some(b'{') => {
                    self.push(self.keys.base())?;
                    if self.peek() != Some(b'}') {
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.push(ARRAY)?;
                    if self.peek() != Some(b']') {
                        continue;
                    }
                }
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal(b"true")?,
                Some(b'f') => self.literal(b"false")?,
                Some(b'n') => self.literal(b"null")?,
                Some(_) | None => return Err(ScanFault::Grammar),
            }
            if self.close()? {
                return Ok(());
            }
        }
    }

    /// Behind a value: closes what ends here, up to the next value. True if nothing is left open.
    fn close(&mut self) -> Result<bool, ScanFault> {
        loop {
            match self.depth {
                0 => return Ok(true),
                1 => self.end_member(),
                _ => {}
            }
            self.skip_space();
            match (self.peek(), self.top == ARRAY) {
                (Some(b','), false) => {
                    self.at += 1;
                    self.skip_space();
                    self.key()?;
                    return Ok(false);
                }
                (Some(b','), true) => {
                    self.at += 1;
                    self.skip_space();
                    return Ok(false);
                }
                (Some(b'}'), false) => self.keys.close(self.top),
                (Some(b']'), true) => {}
                _ => return Err(ScanFault::Grammar),
            }
            self.at += 1;
            self.depth -= 1;
            if let Some(around) = self.around.pop() {
                self.top = around;
            }
        }
    }

    fn push(&mut self, container: u32) -> Result<(), ScanFault> {
        if self.depth >= self.max_depth {
            return Err(ScanFault::TooDeep);
        }
        if self.depth > 0 {
            self.around.push(self.top);
        }
        self.depth += 1;
        self.top = container;
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    /// A key and its colon, up to the value.
    fn key(&mut self) -> Result<(), ScanFault> {
        if self.peek() != Some(b'"') {
            return Err(ScanFault::Grammar);
        }
        let from = self.at;
        let escaped = self.string()?;
        let to = self.at;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(ScanFault::Grammar);
        }
        self.at += 1;
        self.skip_space();
        if escaped {
            let key = string_value(&self.text[from..to]).ok_or(ScanFault::Grammar)?;
            self.keys.add_decoded(self.top, &key);
            if self.depth == 1 {
                self.begin_member(key.as_bytes());
            }
        } else {
            self.keys.add(self.top, from + 1, to - 1);
            if self.depth == 1 {
                self.begin_member(&self.bytes[from + 1..to - 1]);
            }
        }
        Ok(())
    }

    /// Behind a key of the outermost object: takes note if it is one of the envelope's.
    fn begin_member(&mut self, key: &[u8]) {
        let (member, slot) = match key {
            b"jsonrpc" => (Member::Jsonrpc, self.envelope.jsonrpc),
            b"id" => (Member::Id, self.envelope.id),
            b"method" => (Member::Method, self.envelope.method),
            b"params" => (Member::Params, self.envelope.params),
            b"result" => (Member::Result, self.envelope.result),
            b"error" => (Member::Error, self.envelope.error),
            _ => return,
        };
        if slot.is_none() {
            self.member = Some((member, self.at));
        } else if let Member::Id = member {
            self.envelope.id_twice = true;
        }
    }

    fn end_member(&mut self) {
        let Some((member, from)) = self.member.take() else {
            return;
        };
        let value = Some(&self.text[from..self.at]);
        match member {
            Member::Jsonrpc => self.envelope.jsonrpc = value,
            Member::Id => self.envelope.id = value,
            Member::Method => self.envelope.method = value,
            Member::Params => self.envelope.params = value,
            Member::Result => self.envelope.result = value,
            Member::Error => self.envelope.error = value,
        }
    }

    /// A string with its quotes. True if it has escapes.
    fn string(&mut self) -> Result<bool, ScanFault> {
        let at = find_special::<false>(self.bytes, self.at + 1);
        if self.bytes.get(at) != Some(&b'"') {
            return self.string_with_escapes(at);
        }
        self.at = at + 1;
        Ok(false)
    }

    #[inline(never)]
    fn string_with_escapes(&mut self, first: usize) -> Result<bool, ScanFault> {
        let mut at = first;
        loop {
            match self.bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(true);
                }
                Some(b'\\') => at = find_special::<false>(self.bytes, self.escape(at)?),
                Some(_) | None => return Err(ScanFault::Grammar),
            }
        }
    }

    /// The end of the escape whose backslash is at `at`.
    fn escape(&self, at: usize) -> Result<usize, ScanFault> {
        match self.bytes.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
            Some(b'u') => match self.hex(at + 2)? {
                0xD800..=0xDBFF => {
                    if self.bytes.get(at + 6..at + 8) != Some(b"\\u") {
                        return Err(ScanFault::LoneSurrogate);
                    }
                    match self.hex(at + 8)? {
                        0xDC00..=0xDFFF => Ok(at + 12),
                        _ => Err(ScanFault::LoneSurrogate),
                    }
                }
                0xDC00..=0xDFFF => Err(ScanFault::LoneSurrogate),
                _ => Ok(at + 6),
            },
            Some(_) | None => Err(ScanFault::Grammar),
        }
    }

    fn hex(&self, at: usize) -> Result<u32, ScanFault> {
        let digits = self.bytes.get(at..at + 4).ok_or(ScanFault::Grammar)?;
        digits.iter().try_fold(0, |value, &digit| {
            let digit = char::from(digit).to_digit(16).ok_or(ScanFault::Grammar)?;
            Ok(value << 4 | digit)
        })
    }

    fn number(&mut self) -> Result<(), ScanFault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), ScanFault> {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == from {
            return Err(ScanFault::Grammar);
        }
        Ok(())
    }

    fn literal(&mut self, literal: &[u8]) -> Result<(), ScanFault> {
        let end = self.at + literal.len();
        if self.bytes.get(self.at..end) != Some(literal) {
            return Err(ScanFault::Grammar);
        }
        self.at = end;
        Ok(())
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests;
