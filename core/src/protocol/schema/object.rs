//! How schema types are read and written: the macros that make them. Knows no method and no type of
//! the protocol; what a member does when it is absent, null or malformed is in `policy`.
//!
//! An object is read strictly as an object (never from an array); `null` reads as an empty one, so
//! results without required members may be null. Unknown members are ignored.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde_json::value::RawValue;

pub(crate) use super::policy::{
    Blocks, Defaulted, Lenient, LenientList, LenientListShown, List, ListShown, MaybeList,
    Optional, Pairs, Patched, Policy, Required, Servers, ServersShown,
};

/// The members of an object, so that a tag can be written before them.
pub(crate) trait Fields {
    /// Writes the members into an open map.
    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// Writes `value` with the member `key: tag` before its own.
pub(crate) fn write_tagged<S, F>(out: S, key: &str, tag: &str, value: &F) -> Result<S::Ok, S::Error>
where
    S: serde::Serializer,
    F: Fields,
{
    let mut map = out.serialize_map(None)?;
    map.serialize_entry(key, tag)?;
    value.write(&mut map)?;
    map.end()
}

/// The string member `key` of an object, if it is there and is a string.
pub(crate) fn tag_of<'a>(object: &'a str, key: &str) -> Option<Cow<'a, str>> {
    struct Walk<'k>(&'k str);
    impl<'de> Visitor<'de> for Walk<'_> {
        type Value = Option<Cow<'de, str>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some(Key(name)) = map.next_key()? {
                if name == self.0 {
                    found = map.next_value::<Loose<Cow<'de, str>>>()?.0;
                } else {
                    map.next_value::<de::IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }
    serde_json::Deserializer::from_str(object)
        .deserialize_map(Walk(key))
        .ok()
        .flatten()
}

/// The raw text of one value, and its tag.
pub(crate) fn tagged<'de, D: Deserializer<'de>>(
    from: D,
    key: &str,
) -> Result<(&'de str, Option<Cow<'de, str>>), D::Error> {
    let raw = <&'de RawValue>::deserialize(from)?.get();
    Ok((raw, tag_of(raw, key)))
}

/// Reads `raw` as `T`; the error does not quote what it read.
pub(crate) fn parse<'de, T: Deserialize<'de>, E: de::Error>(raw: &'de str) -> Result<T, E> {
    serde_json::from_str(raw).map_err(|e| E::custom(Unquoted(&e)))
}

/// A serde error without the value it may quote: parts of a peer's input can be secrets.
pub(crate) struct Unquoted<'a>(pub(crate) &'a serde_json::Error);

impl fmt::Display for Unquoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use alloc::string::ToString;
        let whole = self.0.to_string();
        let text = match whole.rfind(" at line ") {
            Some(end) => &whole[..end],
            None => &whole,
        };
        if text.starts_with("missing field ") || text.starts_with(OWN) {
            f.write_str(text)
        } else if let Some((_, expected)) = text.rsplit_once(", expected ") {
            write!(f, "{OWN}expected {expected}")
        } else {
            write!(f, "{OWN}malformed")
        }
    }
}

/// Why `raw` was not read, for whoever sent it: with the member that is wrong, and nothing of what it
/// holds.
pub(crate) fn why_unread(raw: &str, error: &serde_json::Error) -> String {
    use alloc::string::ToString;
    let why = Unquoted(error).to_string();
    let Some(rest) = why.strip_prefix(OWN) else {
        return why;
    };
    match member_before(raw, error) {
        // A list says itself which of its entries is wrong.
        Some(member) if !rest.starts_with(member) && !rest.starts_with("block ") => {
            alloc::format!("{OWN}`{member}`: {rest}")
        }
        Some(_) | None => why,
    }
}

/// The last member of the object `raw` that begins before the place of an error.
fn member_before<'a>(raw: &'a str, error: &serde_json::Error) -> Option<&'a str> {
    if error.line() != 1 {
        return None;
    }
    let bytes = raw.as_bytes();
    let (mut depth, mut at, mut member) = (0_usize, 0, None);
    while at < error.column() {
        match bytes.get(at)? {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let begin = at + 1;
                at = begin;
                while *bytes.get(at)? != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                let rest = bytes.get(at + 1..)?.trim_ascii_start();
                if depth == 1 && rest.starts_with(b":") {
                    member = raw.get(begin..at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    // One of ours, and nothing that somebody made up.
    let ours = |it: &&str| it.len() <= 40 && it.bytes().all(|c| c.is_ascii_alphabetic());
    member.filter(ours)
}

/// How our own messages begin, so that they can be told from serde's.
pub(crate) const OWN: &str = "a member is wrong: ";

/// The name of a member, borrowed where it holds no escapes.
pub(crate) struct Key<'de>(pub(crate) Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.into())))
            }
        }
        from.deserialize_str(Text)
    }
}

/// A string, or anything else, which counts as none.
pub(crate) struct Loose<T>(pub(crate) Option<T>);

impl<'de, T: From<&'de str> + From<String>> Deserialize<'de> for Loose<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: From<&'de str> + From<String>> Visitor<'de> for Any<T> {
            type Value = Loose<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Loose(Some(T::from(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Loose(Some(T::from(String::from(text)))))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Loose(None))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Loose(None))
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Loose(None))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Loose(None))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Loose(None))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<de::IgnoredAny>()?.is_some() {}
                Ok(Loose(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map
                    .next_entry::<de::IgnoredAny, de::IgnoredAny>()?
                    .is_some()
                {}
                Ok(Loose(None))
            }
        }
        from.deserialize_any(Any(PhantomData))
    }
}

/// An object of the schema: the struct, its reading and its writing. Members before a `;` are the
/// arguments of `new`; without a `;` there is a `Default` instead.
macro_rules! object {
    (
        $(#[$meta:meta])*
        $name:ident {
            $( $(#[$rdoc:meta])* $rkey:literal $rfield:ident : $rty:ty = $rpolicy:ident, )+
            ;
            $( $(#[$doc:meta])* $key:literal $field:ident : $ty:ty = $policy:ident, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$rdoc])* pub $rfield: $rty, )*
            $( $(#[$doc])* pub $field: $ty, )*
            /// `_meta`: what the schema does not define.
            pub meta: Option<$crate::protocol::schema::Meta>,
        }

        impl $name {
            /// With its required members; the others are absent.
            #[allow(dead_code)] // objects that are only read have one too
            pub fn new($( $rfield: impl Into<$rty> ),*) -> Self {
                Self {
                    $( $rfield: $rfield.into(), )*
                    $( $field: Default::default(), )*
                    meta: None,
                }
            }
        }

        $crate::protocol::schema::object::object!(@io $name {
            $( $rkey $rfield : $rty = $rpolicy, )*
            $( $key $field : $ty = $policy, )*
        });
    };
    (
        $(#[$meta:meta])*
        $name:ident {
            $( $(#[$doc:meta])* $key:literal $field:ident : $ty:ty = $policy:ident, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$doc])* pub $field: $ty, )*
            /// `_meta`: what the schema does not define.
            pub meta: Option<$crate::protocol::schema::Meta>,
        }

        $crate::protocol::schema::object::object!(@io $name {
            $( $key $field : $ty = $policy, )*
        });
    };
    (@io $name:ident { $( $key:literal $field:ident : $ty:ty = $policy:ident, )* }) => {
        impl $crate::protocol::schema::object::Fields for $name {
            fn write<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                $(
                    if $crate::protocol::schema::object::$policy::shown(&self.$field) {
                        map.serialize_entry($key, &self.$field)?;
                    }
                )*
                if let Some(meta) = &self.meta {
                    map.serialize_entry("_meta", meta)?;
                }
                Ok(())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                let mut map = out.serialize_map(None)?;
                $crate::protocol::schema::object::Fields::write(self, &mut map)?;
                serde::ser::SerializeMap::end(map)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                use $crate::protocol::schema::object as o;
                struct Members;
                impl<'de> serde::de::Visitor<'de> for Members {
                    type Value = $name;
                    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
                        Ok($name {
                            $( $field: <o::$policy as o::Policy<'de, $ty>>::absent($key)?, )*
                            meta: None,
                        })
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        $( let mut $field: Option<$ty> = None; )*
                        let mut meta = None;
                        while let Some(o::Key(name)) = map.next_key()? {
                            match &*name {
                                $(
                                    $key => {
                                        $field = Some(
                                            <o::$policy as o::Policy<'de, $ty>>::read(&mut map)?,
                                        );
                                    }
                                )*
                                "_meta" => meta = o::Lenient::read(&mut map)?,
                                _ => {
                                    map.next_value::<serde::de::IgnoredAny>()?;
                                }
                            }
                        }
                        Ok($name {
                            $(
                                $field: match $field {
                                    Some(value) => value,
                                    None => <o::$policy as o::Policy<'de, $ty>>::absent($key)?,
                                },
                            )*
                            meta,
                        })
                    }
                }
                #[allow(unused_imports)]
                use o::Policy as _;
                from.deserialize_any(Members)
            }
        }
    };
}

/// A closed set of names.
macro_rules! names {
    (
        $(#[$meta:meta])*
        $name:ident { $( $(#[$doc:meta])* $variant:ident = $text:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name { $( $(#[$doc])* $variant, )+ }

        impl $name {
            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }

            /// The value with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $( $text => Some(Self::$variant), )+ _ => None }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let $crate::protocol::schema::object::Key(name) =
                    serde::Deserialize::deserialize(from)?;
                Self::from_name(&name).ok_or_else(|| {
                    serde::de::Error::custom(concat!(
                        "a member is wrong: expected one of", $( " ", $text, )+
                    ))
                })
            }
        }
    };
}

/// An open set of names: others are kept.
macro_rules! open_names {
    (
        $(#[$meta:meta])*
        $name:ident { $( $(#[$doc:meta])* $variant:ident = $text:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$doc])* $variant, )+
            /// Another one.
            Other(alloc::string::String),
        }

        impl $name {
            /// The name on the wire.
            pub fn as_str(&self) -> &str {
                match self { $( Self::$variant => $text, )+ Self::Other(name) => name }
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                match name { $( $text => Self::$variant, )+ other => Self::Other(other.into()) }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let $crate::protocol::schema::object::Key(name) =
                    serde::Deserialize::deserialize(from)?;
                Ok(Self::from(&*name))
            }
        }
    };
}

pub(crate) use {names, object, open_names};

#[cfg(test)]
mod tests {
    use super::why_unread;
    use crate::protocol::schema::{LoadSessionRequest, PromptRequest};

    #[test]
    fn what_is_wrong_is_named_and_not_quoted() {
        for (raw, why) in [
            (
                r#"{"sessionId":5,"cwd":"/w","mcpServers":[]}"#,
                "a member is wrong: `sessionId`: expected a name",
            ),
            (
                r#"{"_meta":{"cwd":"x"},"sessionId":"s","cwd" : ["s3cret"]}"#,
                "a member is wrong: `cwd`: expected a string",
            ),
            (
                r#"{"sessionId":"s","cwd":"\"a\\","mcpServers":"s3cret"}"#,
                "a member is wrong: `mcpServers`: expected a sequence",
            ),
            (r#"{"sessionId":"s"}"#, "missing field `cwd`"),
            ("[1]", "a member is wrong: expected an object"),
            ("null", "missing field `sessionId`"),
        ] {
            let error = serde_json::from_str::<LoadSessionRequest>(raw).expect_err(raw);
            let found = why_unread(raw, &error);
            assert_eq!(found, why, "{raw}");
        }
        let raw = r#"{"sessionId":"s","prompt":[{"type":"text","text":5}]}"#;
        let error = serde_json::from_str::<PromptRequest>(raw).expect_err(raw);
        let found = why_unread(raw, &error);
        assert!(found.starts_with("a member is wrong: block 0: "), "{found}");
    }
}
