//! JSON that is passed on as it came: raw values, `_meta`, exact numbers, three-state members.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Any JSON value, kept as its text: key order and large numbers survive. Equal if the text is.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The JSON form of `value`. None if it has none (a map with keys that are no strings).
    pub fn of(value: &impl Serialize) -> Option<Self> {
        serde_json::value::to_raw_value(value).ok().map(Self)
    }

    /// The value whose text is `text`, if that is one JSON value.
    pub fn from_text(text: impl Into<String>) -> Option<Self> {
        RawValue::from_string(text.into()).ok().map(Self)
    }

    /// Its text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The raw value.
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Reads it as `T`.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw)
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }
}

impl From<Json> for Box<RawValue> {
    fn from(json: Json) -> Self {
        json.0
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(out)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from).map(Self)
    }
}

/// `_meta`: a JSON object, kept as its text.
#[derive(Clone, PartialEq, Eq)]
pub struct Meta(Json);

impl Meta {
    /// The object whose text is `text`, if that is one JSON object.
    pub fn from_text(text: impl Into<String>) -> Option<Self> {
        Json::from_text(text).and_then(Self::from_json)
    }

    /// The JSON form of `value`, if that is an object.
    pub fn of(value: &impl Serialize) -> Option<Self> {
        Json::of(value).and_then(Self::from_json)
    }

    /// Its text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Reads it as `T`.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        self.0.read()
    }

    fn from_json(json: Json) -> Option<Self> {
        json.get().starts_with('{').then_some(Self(json))
    }
}

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(out)
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::from_json(Json::deserialize(from)?)
            .ok_or_else(|| de::Error::custom("a member is wrong: expected an object"))
    }
}

/// A JSON number, kept as its text, so that a decimal stays exact.
#[derive(Clone, PartialEq, Eq)]
pub struct Number(Json);

impl Number {
    /// The number whose text is `text`, if that is one JSON number.
    pub fn from_text(text: impl Into<String>) -> Option<Self> {
        Json::from_text(text).and_then(Self::from_json)
    }

    /// Its text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    fn from_json(json: Json) -> Option<Self> {
        json.get()
            .starts_with(|c: char| c == '-' || c.is_ascii_digit())
            .then_some(Self(json))
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self::from_text(number.to_string()).expect("an integer is a JSON number")
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(out)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::from_json(Json::deserialize(from)?)
            .ok_or_else(|| de::Error::custom("a member is wrong: expected a number"))
    }
}

/// A member for which absent (unchanged), null (cleared) and a value are three things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// Not sent: unchanged.
    #[default]
    Absent,
    /// Null: cleared.
    Null,
    /// Set.
    Value(T),
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent | Self::Null => out.serialize_unit(),
            Self::Value(value) => value.serialize(out),
        }
    }
}
