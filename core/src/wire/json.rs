//! JSON out of values, straight into a frame. Knows neither frames nor messages.
//!
//! Without std serde_json writes into a buffer of its own only, and it leaves U+2028 and U+2029 as
//! they are; so this writer is ours. Its texts are those of serde_json otherwise, but for the sign of
//! large exponents (`1e300`, not `1e+300`).

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt::{self, Display};

use memchr::{memchr_iter, memchr3};
use serde::Serialize;
use serde::ser::{self, Serializer};

use super::id::write_int;
use super::text::{is_separator, write_string};

/// Appends a value as JSON in one line. U+2028 and U+2029 leave escaped.
///
/// A value that is no JSON (a map with keys that are no strings) is a bug of whoever wrote its type,
/// and panics.
pub fn write_value(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let mut writer = Writer { out, raw: false };
    value
        .serialize(&mut writer)
        .expect("a type for the wire has string keys and serialises");
}

/// The name under which serde_json's raw values ask to be copied as they are; a test holds it.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    /// The next string is JSON already.
    raw: bool,
}

/// The inside of an array or object.
struct Compound<'w, 'o> {
    writer: &'w mut Writer<'o>,
    first: bool,
    end: &'static [u8],
}

/// Why a value is no JSON.
#[derive(Debug)]
struct Fault(&'static str);

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for Fault {}

impl ser::Error for Fault {
    fn custom<T: Display>(_message: T) -> Self {
        Self("the type refused to be serialised")
    }
}

impl<'w, 'o> Writer<'o> {
    fn open(&'w mut self, begin: &[u8], end: &'static [u8]) -> Compound<'w, 'o> {
        self.out.extend_from_slice(begin);
        Compound {
            writer: self,
            first: true,
            end,
        }
    }

    fn open_variant(
        &'w mut self,
        name: &str,
        begin: &[u8],
        end: &'static [u8],
    ) -> Compound<'w, 'o> {
        self.out.push(b'{');
        write_string(self.out, name);
        self.out.push(b':');
        self.open(begin, end)
    }

    fn plain(&mut self, text: &str) -> Result<(), Fault> {
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

macro_rules! small_integers {
    ($($method:ident $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result<(), Fault> {
            write_int(self.out, i64::from(value));
            Ok(())
        })*
    };
}

impl<'w, 'o> Serializer for &'w mut Writer<'o> {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Compound<'w, 'o>;
    type SerializeTuple = Compound<'w, 'o>;
    type SerializeTupleStruct = Compound<'w, 'o>;
    type SerializeTupleVariant = Compound<'w, 'o>;
    type SerializeMap = Compound<'w, 'o>;
    type SerializeStruct = Compound<'w, 'o>;
    type SerializeStructVariant = Compound<'w, 'o>;

    small_integers!(serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32);

    fn serialize_bool(self, value: bool) -> Result<(), Fault> {
        self.plain(if value { "true" } else { "false" })
    }

    fn serialize_u64(self, value: u64) -> Result<(), Fault> {
        match i64::try_from(value) {
            Ok(value) => self.serialize_i64(value),
            Err(_) => self.plain(&value.to_string()),
        }
    }

    fn serialize_i128(self, value: i128) -> Result<(), Fault> {
        self.plain(&value.to_string())
    }

    fn serialize_u128(self, value: u128) -> Result<(), Fault> {
        self.plain(&value.to_string())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Fault> {
        if value.is_finite() {
            self.plain(&alloc::format!("{value:?}"))
        } else {
            self.serialize_unit()
        }
    }

    fn serialize_f64(self, value: f64) -> Result<(), Fault> {
        if value.is_finite() {
            self.plain(&alloc::format!("{value:?}"))
        } else {
            self.serialize_unit()
        }
    }

    fn serialize_char(self, value: char) -> Result<(), Fault> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Fault> {
        if self.raw {
            let start = self.out.len();
            self.out.extend_from_slice(value.as_bytes());
            keep_to_one_line(self.out, start);
        } else {
            write_string(self.out, value);
        }
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Fault> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Fault> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Fault> {
        self.plain("null")
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Fault> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Fault> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        let compound = self.open_variant(variant, b"", b"}");
        value.serialize(&mut *compound.writer)?;
        compound.close()
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Compound<'w, 'o>, Fault> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple(self, _len: usize) -> Result<Compound<'w, 'o>, Fault> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Compound<'w, 'o>, Fault> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Compound<'w, 'o>, Fault> {
        Ok(self.open_variant(variant, b"[", b"]}"))
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Compound<'w, 'o>, Fault> {
        Ok(self.open(b"{", b"}"))
    }

    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Compound<'w, 'o>, Fault> {
        if name == RAW_VALUE {
            self.raw = true;
            return Ok(self.open(b"", b""));
        }
        Ok(self.open(b"{", b"}"))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Compound<'w, 'o>, Fault> {
        Ok(self.open_variant(variant, b"{", b"}}"))
    }
}

impl Compound<'_, '_> {
    fn comma(&mut self) {
        if !self.first {
            self.writer.out.push(b',');
        }
        self.first = false;
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.comma();
        value.serialize(&mut *self.writer)
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Fault> {
        if self.writer.raw {
            // The one member of a raw value is its text.
            let written = value.serialize(&mut *self.writer);
            self.writer.raw = false;
            return written;
        }
        self.comma();
        write_string(self.writer.out, name);
        self.writer.out.push(b':');
        value.serialize(&mut *self.writer)
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        self.comma();
        let out_len = self.writer.out.len();
        key.serialize(&mut *self.writer)?;
        let out = &mut *self.writer.out;
        match out.get(out_len) {
            Some(b'"') => {}
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                out.insert(out_len, b'"');
                out.push(b'"');
            }
            Some(_) | None => return Err(Fault("a key is not a string")),
        }
        Ok(())
    }

    fn close(self) -> Result<(), Fault> {
        self.writer.out.extend_from_slice(self.end);
        Ok(())
    }
}

macro_rules! sequences {
    ($($trait:ident $method:ident),*) => {
        $(impl ser::$trait for Compound<'_, '_> {
            type Ok = ();
            type Error = Fault;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
                self.element(value)
            }

            fn end(self) -> Result<(), Fault> {
                self.close()
            }
        })*
    };
}

sequences!(SerializeSeq serialize_element, SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field);

macro_rules! records {
    ($($trait:ident),*) => {
        $(impl ser::$trait for Compound<'_, '_> {
            type Ok = ();
            type Error = Fault;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Fault> {
                self.member(name, value)
            }

            fn end(self) -> Result<(), Fault> {
                self.close()
            }
        })*
    };
}

records!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Compound<'_, '_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.writer.out.push(b':');
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), Fault> {
        self.close()
    }
}

/// Repairs what raw texts of others may have brought in: line ends between tokens, and separators
/// in strings.
fn keep_to_one_line(out: &mut Vec<u8>, start: usize) {
    let mut at = start;
    let mut separator = None;
    while let Some(offset) = memchr3(b'\n', b'\r', 0xE2, &out[at..]) {
        at += offset;
        if out[at] != 0xE2 {
            // In JSON a raw line end is white space between tokens.
            out[at] = b' ';
        } else if separator.is_none() && is_separator(&out[at..]) {
            separator = Some(at);
        }
        at += 1;
    }
    if let Some(at) = separator {
        let tail = out.split_off(at);
        escape_separators(out, &tail);
    }
}

fn escape_separators(out: &mut Vec<u8>, text: &[u8]) {
    let mut from = 0;
    for at in memchr_iter(0xE2, text) {
        if is_separator(&text[at..]) {
            out.extend_from_slice(&text[from..at]);
            let last = b'8' + (text[at + 2] - 0xA8);
            out.extend_from_slice(&[b'\\', b'u', b'2', b'0', b'2', last]);
            from = at + 3;
        }
    }
    out.extend_from_slice(&text[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use alloc::boxed::Box;
    use alloc::collections::BTreeMap;
    use alloc::string::String;
    use alloc::vec;
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    fn written(value: &(impl Serialize + ?Sized)) -> String {
        let mut out = Vec::from(*b"x");
        write_value(&mut out, value);
        String::from_utf8(out.split_off(1)).unwrap()
    }

    #[derive(Serialize)]
    enum Any {
        Unit,
        New(u8),
        Tuple(u8, ()),
        Struct { a: Option<u8>, b: [bool; 2] },
    }

    #[derive(Serialize)]
    struct All {
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u8>,
        integers: (i8, i64, u64, i128, u128),
        floats: (f32, f64, f64, f64, f64),
        any: Vec<Any>,
        text: (char, &'static str, ()),
        keys: (BTreeMap<i8, u8>, BTreeMap<bool, ()>, BTreeMap<char, u8>),
        raw: Box<RawValue>,
        behind: &'static str,
        empty: (Vec<u8>, BTreeMap<String, u8>),
        #[serde(flatten)]
        more: BTreeMap<String, u8>,
    }

    #[test]
    fn every_shape_is_written_as_by_serde_json() {
        let all = All {
            left_out: None,
            integers: (-8, i64::MIN, u64::MAX, i128::MIN, u128::MAX),
            floats: (0.1, 1.0, f64::NAN, -1.5e2, 1e-7),
            any: vec![
                Any::Unit,
                Any::New(1),
                Any::Tuple(2, ()),
                Any::Struct {
                    a: Some(3),
                    b: [true, false],
                },
                Any::Struct {
                    a: None,
                    b: [true, false],
                },
            ],
            text: ('\u{e9}', "\"\\\n\u{1}", ()),
            keys: (
                [(-1, 1), (2, 2)].into(),
                [(true, ())].into(),
                [('"', 1)].into(),
            ),
            raw: RawValue::from_string("{ \"b\":1.50, \"a\":\"\\u0061\"}".to_owned()).unwrap(),
            behind: "a raw value",
            empty: (vec![], BTreeMap::new()),
            more: [("x".to_owned(), 1), ("y".to_owned(), 2)].into(),
        };
        assert_eq!(written(&all), serde_json::to_string(&all).unwrap());
    }

    #[test]
    #[should_panic(expected = "string keys")]
    fn keys_that_are_no_strings_are_a_bug() {
        written(&BTreeMap::from([(vec![1], 1)]));
    }

    fn any_value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<u64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                proptest::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn values_are_written_as_by_serde_json(value in any_value()) {
            let expected = serde_json::to_string(&value)
                .unwrap()
                .replace('\u{2028}', "\\u2028")
                .replace('\u{2029}', "\\u2029");
            prop_assert_eq!(written(&value), expected);
        }

        #[test]
        fn floats_keep_their_value(value in any::<f64>()) {
            let text = written(&value);
            // serde_json reads floats a little off unless told otherwise; the grammar is its part.
            prop_assert!(serde_json::from_str::<Option<f64>>(&text).is_ok());
            prop_assert_eq!(text.parse().ok(), Some(value).filter(|value| value.is_finite()));
        }
    }
}
