//! The id of a session: what goes over the wire. Knows nothing of sessions.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use thiserror::Error;

use super::object::Key;

/// `SessionId`. Cheap to copy; compared by text. What a peer sends can be any string: see
/// [`check`](Self::check).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(Arc<str>);

/// An id of a session that does not have the shape `[A-Za-z0-9._-]{1,128}`, or is `.` or `..`.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a session id is 1 to 128 of the characters A-Z a-z 0-9 . _ - and not . or ..")]
pub struct BadSessionId;

impl SessionId {
    /// Longest id, bytes.
    pub const MAX: usize = 128;

    /// The UUID, version 4 and in lower case, made of these random bytes.
    pub fn v4(mut bytes: [u8; 16]) -> Self {
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut text = [b'-'; 36];
        let mut at = 0;
        for (i, byte) in bytes.into_iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                at += 1;
            }
            text[at] = b"0123456789abcdef"[usize::from(byte >> 4)];
            text[at + 1] = b"0123456789abcdef"[usize::from(byte & 0xf)];
            at += 2;
        }
        Self(
            core::str::from_utf8(&text)
                .expect("hex digits and dashes")
                .into(),
        )
    }

    /// An id that has the allowed shape, so that it can be the name of a file.
    pub fn checked(text: &str) -> Result<Self, BadSessionId> {
        let id = Self(text.into());
        id.check()?;
        Ok(id)
    }

    /// Whether it has the allowed shape.
    pub fn check(&self) -> Result<(), BadSessionId> {
        let bytes = self.0.as_bytes();
        let shape = (1..=Self::MAX).contains(&bytes.len())
            && bytes
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
            && !matches!(bytes, b"." | b"..");
        if shape { Ok(()) } else { Err(BadSessionId) }
    }

    /// Whether it is a UUID as [`v4`](Self::v4) makes them.
    pub fn is_v4(&self) -> bool {
        let bytes = self.0.as_bytes();
        bytes.len() == 36
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => *byte == b'-',
                14 => *byte == b'4',
                _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            })
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SessionId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for SessionId {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&SessionId> for SessionId {
    fn from(id: &SessionId) -> Self {
        id.clone()
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Key::deserialize(from).map(|Key(text)| Self((*text).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_made_id_is_a_uuid_of_version_4_in_lower_case() {
        assert_eq!(
            SessionId::v4([0xff; 16]).to_string(),
            "ffffffff-ffff-4fff-bfff-ffffffffffff"
        );
        assert_eq!(
            SessionId::v4([0; 16]).to_string(),
            "00000000-0000-4000-8000-000000000000"
        );
    }

    #[test]
    fn only_names_that_are_safe_as_file_names_are_ids() {
        for good in ["a", "A.b_c-9", "...", &"x".repeat(128)] {
            assert!(SessionId::checked(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a b",
            "a/b",
            "é",
            "a\n",
            &"x".repeat(129),
        ] {
            assert_eq!(SessionId::checked(bad), Err(BadSessionId), "{bad}");
        }
    }
}
