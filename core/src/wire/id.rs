//! The id of a request. Knows neither messages nor which side made it.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use super::scan::{Shape, scan, string_value};
use super::text::write_string;

/// The id of a request, echoed exactly as it came: `Display`, `Serialize` and
/// [`write_json`](Self::write_json) give the JSON token.
///
/// Equal by JSON type and value: `"a"` is `"\u0061"`, `1` is not `"1"`. A number that is not
/// written as a signed 64-bit integer (`1.0`, `1e3`, 2^64) is equal to the same literal only.
/// Integers are held without allocation.
#[derive(Clone)]
pub struct RequestId(Repr);

#[derive(Clone)]
enum Repr {
    Null,
    Int(i64),
    Number(Box<str>),
    /// The value of a string whose token `write_string` gives back.
    Text(Box<str>),
    /// A string whose token has other escapes.
    Escaped(Box<Escaped>),
}

#[derive(Clone)]
struct Escaped {
    value: String,
    token: String,
}

/// What an id is compared by.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Value<'a> {
    Null,
    Int(i64),
    Number(&'a str),
    Text(&'a str),
}

impl RequestId {
    /// `null`: the id of an answer to what had no readable id.
    pub const NULL: Self = Self(Repr::Null);

    /// The id that the JSON text is: a string, a number or null; else none.
    pub fn from_json(text: &str) -> Option<Self> {
        match scan(text.as_bytes(), 0).ok()?.shape {
            Shape::Scalar => Self::from_token(text.trim_matches([' ', '\t', '\r', '\n'])),
            Shape::Object(_) | Shape::Array => None,
        }
    }

    /// As [`from_json`](Self::from_json), for a text that passed the scan and has no space around.
    pub(super) fn from_token(token: &str) -> Option<Self> {
        let repr = match token.as_bytes().first()? {
            b'n' => Repr::Null,
            b'-' | b'0'..=b'9' => match token.parse() {
                // The only integer that can be written in two ways.
                Ok(number) if token != "-0" => Repr::Int(number),
                _ => Repr::Number(token.into()),
            },
            b'"' => match string_value(token)? {
                Cow::Borrowed(value) => Repr::Text(value.into()),
                Cow::Owned(value) => Self::escaped(value, token),
            },
            _ => return None,
        };
        Some(Self(repr))
    }

    fn escaped(value: String, token: &str) -> Repr {
        let mut plain = Vec::with_capacity(token.len());
        write_string(&mut plain, &value);
        if plain == token.as_bytes() {
            return Repr::Text(value.into());
        }
        // The one liberty taken with a token: raw separators leave us escaped.
        let token = token
            .replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029");
        Repr::Escaped(Box::new(Escaped { value, token }))
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self.0, Repr::Null)
    }

    /// The number, if it is written as an integer from 0 to 2^63−1.
    pub fn as_u64(&self) -> Option<u64> {
        match &self.0 {
            Repr::Int(number) => u64::try_from(*number).ok(),
            Repr::Null | Repr::Number(_) | Repr::Text(_) | Repr::Escaped(_) => None,
        }
    }

    /// Appends the JSON token.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Null => out.extend_from_slice(b"null"),
            Repr::Int(number) => write_int(out, *number),
            Repr::Number(token) => out.extend_from_slice(token.as_bytes()),
            Repr::Text(value) => write_string(out, value),
            Repr::Escaped(escaped) => out.extend_from_slice(escaped.token.as_bytes()),
        }
    }

    fn json(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        String::from_utf8(out).expect("made of texts and ASCII")
    }

    fn value(&self) -> Value<'_> {
        match &self.0 {
            Repr::Null => Value::Null,
            Repr::Int(number) => Value::Int(*number),
            Repr::Number(token) => Value::Number(token),
            Repr::Text(value) => Value::Text(value),
            Repr::Escaped(escaped) => Value::Text(&escaped.value),
        }
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Eq for RequestId {}

impl PartialOrd for RequestId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RequestId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value().cmp(&other.value())
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self(Repr::Int(number))
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self(Repr::Text(text.into()))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({self})")
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Null => serializer.serialize_unit(),
            Repr::Int(number) => serializer.serialize_i64(*number),
            Repr::Text(value) => serializer.serialize_str(value),
            Repr::Number(_) | Repr::Escaped(_) => {
                let token = self.json();
                serde_json::from_str::<&RawValue>(&token)
                    .expect("the token of an id is JSON")
                    .serialize(serializer)
            }
        }
    }
}

/// From serde_json's formats only, since others have no token to keep.
impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <Box<RawValue>>::deserialize(deserializer)?;
        Self::from_json(raw.get())
            .ok_or_else(|| de::Error::custom("an id is a string, a number or null"))
    }
}

/// Appends an integer in decimal.
pub(super) fn write_int(out: &mut Vec<u8>, number: i64) {
    let mut digits = [0; 20]; // i64::MIN has 19 digits and a sign
    let mut from = digits.len();
    let mut left = number.unsigned_abs();
    loop {
        from -= 1;
        digits[from] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if number < 0 {
        from -= 1;
        digits[from] = b'-';
    }
    out.extend_from_slice(&digits[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn ids_are_echoed_exactly() {
        for token in [
            "null",
            "0",
            "-1",
            "-0",
            "7",
            "9007199254740993",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "123456789012345678901234567890",
            "1.5",
            "1.0",
            "1e3",
            "1E+3",
            "\"\"",
            "\"1\"",
            "\"ü\\\"\"",
            "\"\\u0061\"",
            "\"\\u00FC\\/\\n\"",
            "\"\\ud83d\\ude00\"",
            "\"\\u2028\"",
        ] {
            let id = RequestId::from_json(token).expect(token);
            assert_eq!(id.to_string(), token);
            assert_eq!(
                serde_json::to_string(&id)
                    .unwrap()
                    .replace('\u{2028}', "\\u2028"),
                token
            );
            assert_eq!(serde_json::from_str::<RequestId>(token).unwrap(), id);
        }
        let raw = RequestId::from_json("\"a\u{2028}\"").unwrap();
        assert_eq!(raw.to_string(), "\"a\\u2028\"");
    }

    #[test]
    fn what_is_no_id_is_none() {
        for text in [
            "true",
            "false",
            "[]",
            "{}",
            "",
            "x",
            "1 2",
            "01",
            "\"\\ud800\"",
            "[1]",
        ] {
            assert_eq!(RequestId::from_json(text), None, "{text}");
        }
    }

    #[test]
    fn ids_are_equal_by_type_and_value() {
        let id = |text: &str| RequestId::from_json(text).unwrap();
        assert_eq!(id("\"a\""), id("\"\\u0061\""));
        assert_eq!(id("\"\\/\""), RequestId::from("/"));
        assert_eq!(id(" 1 "), RequestId::from(1));
        let mut all = [
            "\"1\"", "1", "1.0", "1e0", "null", "-1", "\"\"", "\"null\"", "-0", "0",
        ]
        .map(id);
        all.sort();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
    }

    #[test]
    fn only_plain_integers_are_numbers() {
        for (text, expected) in [
            ("0", Some(0)),
            ("42", Some(42)),
            ("-1", None),
            ("1.0", None),
            ("\"1\"", None),
            ("null", None),
        ] {
            assert_eq!(RequestId::from_json(text).unwrap().as_u64(), expected);
        }
    }
}
