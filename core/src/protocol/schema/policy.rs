//! What a member of an object does when it is absent, null or malformed, and when it is written.
//! Knows no type of the protocol.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json::Patch;
use super::object::{OWN, Unquoted, parse};

/// What a member does when it is absent, null or malformed.
pub(crate) trait Policy<'de, T> {
    /// Reads the member's value.
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<T, A::Error>;
    /// The value of an absent member.
    fn absent<E: de::Error>(name: &'static str) -> Result<T, E>;
}

/// Must be there and must be right.
pub(crate) struct Required;
/// A list of content blocks: must be there, every block must be right. The error says which is not.
pub(crate) struct Blocks;
/// May be absent or null; must be right otherwise.
pub(crate) struct Optional;
/// Absent, null and malformed are all the same.
pub(crate) struct Lenient;
/// Absent, null and malformed give the default. Always written.
pub(crate) struct Defaulted;
/// A list: absent or null is empty, every entry must be right. Written unless empty.
pub(crate) struct List;
/// As [`List`], always written.
pub(crate) struct ListShown;
/// `mcpServers`: a [`List`] whose faults name the entry.
pub(crate) struct Servers;
/// As [`Servers`], always written.
pub(crate) struct ServersShown;
/// A list of names and values; an object of strings is read as one too. Always written.
pub(crate) struct Pairs;
/// A list: what is malformed is left out. Written unless empty.
pub(crate) struct LenientList;
/// As [`LenientList`], always written.
pub(crate) struct LenientListShown;
/// A list that may be absent; what is malformed is left out.
pub(crate) struct MaybeList;
/// Absent, null and value are three things; malformed is absent.
pub(crate) struct Patched;

impl Required {
    pub(crate) fn shown<T>(_: &T) -> bool {
        true
    }
}

impl<'de, T: Deserialize<'de>> Policy<'de, T> for Required {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<T, A::Error> {
        map.next_value()
    }
    fn absent<E: de::Error>(name: &'static str) -> Result<T, E> {
        Err(E::missing_field(name))
    }
}

impl Optional {
    pub(crate) fn shown<T>(value: &Option<T>) -> bool {
        value.is_some()
    }
}

impl<'de, T: Deserialize<'de>> Policy<'de, Option<T>> for Optional {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Option<T>, A::Error> {
        map.next_value()
    }
    fn absent<E: de::Error>(_: &'static str) -> Result<Option<T>, E> {
        Ok(None)
    }
}

impl Lenient {
    pub(crate) fn shown<T>(value: &Option<T>) -> bool {
        value.is_some()
    }
}

impl<'de, T: Deserialize<'de>> Policy<'de, Option<T>> for Lenient {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Option<T>, A::Error> {
        let raw: &'de RawValue = map.next_value()?;
        Ok(serde_json::from_str::<Option<T>>(raw.get()).unwrap_or(None))
    }
    fn absent<E: de::Error>(_: &'static str) -> Result<Option<T>, E> {
        Ok(None)
    }
}

impl Defaulted {
    pub(crate) fn shown<T>(_: &T) -> bool {
        true
    }
}

impl<'de, T: Deserialize<'de> + Default> Policy<'de, T> for Defaulted {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<T, A::Error> {
        Ok(Lenient::read(map)?.unwrap_or_default())
    }
    fn absent<E: de::Error>(_: &'static str) -> Result<T, E> {
        Ok(T::default())
    }
}

impl Blocks {
    pub(crate) fn shown<T>(_: &[T]) -> bool {
        true
    }
}

impl<'de, T: Deserialize<'de>> Policy<'de, Vec<T>> for Blocks {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Vec<T>, A::Error> {
        use alloc::string::ToString;
        let blocks = map.next_value::<Vec<&'de RawValue>>()?;
        let read = |(n, block): (usize, &&'de RawValue)| {
            serde_json::from_str(block.get()).map_err(|error| {
                let why = Unquoted(&error).to_string();
                let why = why.strip_prefix(OWN).unwrap_or(&why);
                de::Error::custom(format_args!("{OWN}block {n}: {why}"))
            })
        };
        blocks.iter().enumerate().map(read).collect()
    }
    fn absent<E: de::Error>(name: &'static str) -> Result<Vec<T>, E> {
        Err(E::missing_field(name))
    }
}

impl List {
    pub(crate) fn shown<T>(value: &[T]) -> bool {
        !value.is_empty()
    }
}

impl<'de, T: Deserialize<'de>> Policy<'de, Vec<T>> for List {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Vec<T>, A::Error> {
        Ok(map.next_value::<Option<Vec<T>>>()?.unwrap_or_default())
    }
    fn absent<E: de::Error>(_: &'static str) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }
}

impl Servers {
    pub(crate) fn shown<T>(value: &[T]) -> bool {
        !value.is_empty()
    }
}

impl<'de, T: Deserialize<'de>> Policy<'de, Vec<T>> for Servers {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Vec<T>, A::Error> {
        numbered("mcpServers", map)
    }
    fn absent<E: de::Error>(_: &'static str) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }
}

impl ServersShown {
    pub(crate) fn shown<T>(_: &[T]) -> bool {
        true
    }
}

impl<'de, T: Deserialize<'de>> Policy<'de, Vec<T>> for ServersShown {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Vec<T>, A::Error> {
        numbered("mcpServers", map)
    }
    fn absent<E: de::Error>(_: &'static str) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }
}

/// A list; its faults name the entry, from 0.
fn numbered<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    list: &str,
    map: &mut A,
) -> Result<Vec<T>, A::Error> {
    use alloc::string::ToString;
    let entries = map.next_value::<Option<Vec<&'de RawValue>>>()?;
    let read = |(n, entry): (usize, &'de RawValue)| {
        serde_json::from_str(entry.get()).map_err(|error| {
            let why = Unquoted(&error).to_string();
            let why = why.strip_prefix(OWN).unwrap_or(&why);
            de::Error::custom(format_args!("{OWN}{list}[{n}]: {why}"))
        })
    };
    entries
        .into_iter()
        .flatten()
        .enumerate()
        .map(read)
        .collect()
}

impl ListShown {
    pub(crate) fn shown<T>(_: &[T]) -> bool {
        true
    }
}

impl<'de, T: Deserialize<'de>> Policy<'de, Vec<T>> for ListShown {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Vec<T>, A::Error> {
        List::read(map)
    }
    fn absent<E: de::Error>(_: &'static str) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }
}

impl Pairs {
    pub(crate) fn shown<T>(_: &[T]) -> bool {
        true
    }
}

impl<'de, T: Deserialize<'de> + From<(String, String)>> Policy<'de, Vec<T>> for Pairs {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Vec<T>, A::Error> {
        struct Object<T>(PhantomData<T>);
        impl<'de, T: From<(String, String)>> Visitor<'de> for Object<T> {
            type Value = Vec<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of names and values")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry::<String, String>()? {
                    pairs.push(T::from(pair));
                }
                Ok(pairs)
            }
        }
        let raw = map.next_value::<&'de RawValue>()?.get();
        if raw.starts_with('{') {
            serde_json::Deserializer::from_str(raw)
                .deserialize_map(Object(PhantomData))
                .map_err(|e| de::Error::custom(Unquoted(&e)))
        } else {
            Ok(parse::<Option<Vec<T>>, _>(raw)?.unwrap_or_default())
        }
    }
    fn absent<E: de::Error>(_: &'static str) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }
}

impl LenientList {
    pub(crate) fn shown<T>(value: &[T]) -> bool {
        !value.is_empty()
    }
}

impl<'de, T: Deserialize<'de>> Policy<'de, Vec<T>> for LenientList {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Vec<T>, A::Error> {
        Ok(MaybeList::read(map)?.unwrap_or_default())
    }
    fn absent<E: de::Error>(_: &'static str) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }
}

impl LenientListShown {
    pub(crate) fn shown<T>(_: &[T]) -> bool {
        true
    }
}

impl<'de, T: Deserialize<'de>> Policy<'de, Vec<T>> for LenientListShown {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Vec<T>, A::Error> {
        LenientList::read(map)
    }
    fn absent<E: de::Error>(_: &'static str) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }
}

impl MaybeList {
    pub(crate) fn shown<T>(value: &Option<Vec<T>>) -> bool {
        value.is_some()
    }
}

impl<'de, T: Deserialize<'de>> Policy<'de, Option<Vec<T>>> for MaybeList {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Vec<T>>, A::Error> {
        let raw: &'de RawValue = map.next_value()?;
        let Ok(items) = serde_json::from_str::<Vec<&'de RawValue>>(raw.get()) else {
            return Ok(None);
        };
        Ok(Some(
            items
                .into_iter()
                .filter_map(|item| serde_json::from_str(item.get()).ok())
                .collect(),
        ))
    }
    fn absent<E: de::Error>(_: &'static str) -> Result<Option<Vec<T>>, E> {
        Ok(None)
    }
}

impl Patched {
    pub(crate) fn shown<T>(value: &Patch<T>) -> bool {
        !matches!(value, Patch::Absent)
    }
}

impl<'de, T: Deserialize<'de>> Policy<'de, Patch<T>> for Patched {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Patch<T>, A::Error> {
        let raw: &'de RawValue = map.next_value()?;
        Ok(match serde_json::from_str::<Option<T>>(raw.get()) {
            Ok(Some(value)) => Patch::Value(value),
            Ok(None) => Patch::Null,
            Err(_) => Patch::Absent,
        })
    }
    fn absent<E: de::Error>(_: &'static str) -> Result<Patch<T>, E> {
        Ok(Patch::Absent)
    }
}
