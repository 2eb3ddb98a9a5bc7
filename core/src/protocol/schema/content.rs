//! Content blocks, of the shapes that MCP has (ACP page: content). Payloads pass unchanged.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::json::{Meta, Number};
use super::object::{Key, Lenient, Loose, OWN, Policy, names, object, write_tagged};

/// One piece of a prompt or of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(ImageContent),
    /// Sound.
    Audio(AudioContent),
    /// A thing the agent can fetch.
    ResourceLink(ResourceLink),
    /// A thing that is included.
    Resource(EmbeddedResource),
}

impl ContentBlock {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Its text, if it is a block of text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            Self::Image(_) | Self::Audio(_) | Self::ResourceLink(_) | Self::Resource(_) => None,
        }
    }
}

object! {
    /// Text.
    TextContent {
        /// The text.
        "text" text: String = Required,
        ;
        /// For whom, and how important.
        "annotations" annotations: Option<Annotations> = Lenient,
    }
}

object! {
    /// A picture.
    ImageContent {
        /// Its bytes in base64.
        "data" data: String = Required,
        /// Its media type.
        "mimeType" mime_type: String = Required,
        ;
        /// Where it comes from.
        "uri" uri: Option<String> = Lenient,
        /// For whom, and how important.
        "annotations" annotations: Option<Annotations> = Lenient,
    }
}

object! {
    /// Sound.
    AudioContent {
        /// Its bytes in base64.
        "data" data: String = Required,
        /// Its media type.
        "mimeType" mime_type: String = Required,
        ;
        /// For whom, and how important.
        "annotations" annotations: Option<Annotations> = Lenient,
    }
}

object! {
    /// A thing the agent can fetch.
    ResourceLink {
        /// Its name.
        "name" name: String = Required,
        /// Where it is.
        "uri" uri: String = Required,
        ;
        /// What it is.
        "description" description: Option<String> = Lenient,
        /// Its media type.
        "mimeType" mime_type: Option<String> = Lenient,
        /// Its size, bytes.
        "size" size: Option<i64> = Lenient,
        /// Its name for people.
        "title" title: Option<String> = Lenient,
        /// For whom, and how important.
        "annotations" annotations: Option<Annotations> = Lenient,
    }
}

object! {
    /// A thing that is included.
    EmbeddedResource {
        /// The thing.
        "resource" resource: EmbeddedResourceResource = Required,
        ;
        /// For whom, and how important.
        "annotations" annotations: Option<Annotations> = Lenient,
    }
}

object! {
    /// For whom a block is, and how important.
    Annotations {
        /// For whom; empty: not said.
        "audience" audience: Vec<Role> = LenientList,
        /// When it last changed, ISO 8601.
        "lastModified" last_modified: Option<String> = Lenient,
        /// From 0 (not at all) to 1 (most).
        "priority" priority: Option<Number> = Lenient,
    }
}

object! {
    /// A text that is included.
    TextResourceContents {
        /// The text.
        "text" text: String = Required,
        /// Where it comes from.
        "uri" uri: String = Required,
        ;
        /// Its media type.
        "mimeType" mime_type: Option<String> = Lenient,
    }
}

object! {
    /// Bytes that are included.
    BlobResourceContents {
        /// The bytes in base64.
        "blob" blob: String = Required,
        /// Where they come from.
        "uri" uri: String = Required,
        ;
        /// Their media type.
        "mimeType" mime_type: Option<String> = Lenient,
    }
}

names! {
    /// A party of the conversation.
    Role {
        /// The agent.
        Assistant = "assistant",
        /// The person.
        User = "user",
    }
}

/// The thing in an [`EmbeddedResource`]; with both `text` and `blob` it is a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmbeddedResourceResource {
    /// A text.
    Text(TextResourceContents),
    /// Bytes.
    Blob(BlobResourceContents),
}

impl Serialize for EmbeddedResourceResource {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(out),
            Self::Blob(blob) => blob.serialize(out),
        }
    }
}

impl<'de> Deserialize<'de> for EmbeddedResourceResource {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ResourceMembers)
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(block) => write_tagged(out, "type", "text", block),
            Self::Image(block) => write_tagged(out, "type", "image", block),
            Self::Audio(block) => write_tagged(out, "type", "audio", block),
            Self::ResourceLink(block) => write_tagged(out, "type", "resource_link", block),
            Self::Resource(block) => write_tagged(out, "type", "resource", block),
        }
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(BlockMembers)
    }
}

/// A string that must be there, in the end.
struct Must(&'static str, Option<Loose<String>>);

impl Must {
    fn get<E: de::Error>(self) -> Result<String, E> {
        match self.1 {
            None => Err(E::missing_field(self.0)),
            Some(Loose(Some(text))) => Ok(text),
            Some(Loose(None)) => Err(E::custom(format_args!(
                "{OWN}expected a string in `{}`",
                self.0
            ))),
        }
    }
}

struct ResourceMembers;

impl<'de> Visitor<'de> for ResourceMembers {
    type Value = EmbeddedResourceResource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut text, mut blob, mut uri) = (None, None, None);
        let mut mime_type: Option<Loose<String>> = None;
        let mut meta = None;
        while let Some(Key(name)) = map.next_key()? {
            match &*name {
                "text" => text = Some(map.next_value::<Loose<String>>()?),
                "blob" => blob = Some(map.next_value::<Loose<String>>()?),
                "uri" => uri = Some(map.next_value::<Loose<String>>()?),
                "mimeType" => mime_type = Some(map.next_value()?),
                "_meta" => meta = Lenient::read(&mut map)?,
                _ => {
                    map.next_value::<de::IgnoredAny>()?;
                }
            }
        }
        let mime_type = mime_type.and_then(|Loose(text)| text);
        let uri = Must("uri", uri);
        if let Some(Loose(Some(text))) = text {
            Ok(EmbeddedResourceResource::Text(TextResourceContents {
                text,
                uri: uri.get()?,
                mime_type,
                meta,
            }))
        } else if let Some(Loose(Some(blob))) = blob {
            Ok(EmbeddedResourceResource::Blob(BlobResourceContents {
                blob,
                uri: uri.get()?,
                mime_type,
                meta,
            }))
        } else {
            Err(de::Error::custom(format_args!(
                "{OWN}a resource needs `text` or `blob`"
            )))
        }
    }
}

/// All members of all blocks in one pass, since the tag may come last and the text may be long.
struct BlockMembers;

impl<'de> Visitor<'de> for BlockMembers {
    type Value = ContentBlock;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut tag: Option<Loose<Cow<'de, str>>> = None;
        let mut strings: [Option<Loose<String>>; 7] = Default::default();
        let [text, data, mime_type, uri, name, title, description] = &mut strings;
        let mut annotations: Option<Annotations> = None;
        let mut size: Option<i64> = None;
        let mut resource: Option<&'de serde_json::value::RawValue> = None;
        let mut meta: Option<Meta> = None;
        while let Some(Key(key)) = map.next_key()? {
            match &*key {
                "type" => tag = Some(map.next_value()?),
                "text" => *text = Some(map.next_value()?),
                "data" => *data = Some(map.next_value()?),
                "mimeType" => *mime_type = Some(map.next_value()?),
                "uri" => *uri = Some(map.next_value()?),
                "name" => *name = Some(map.next_value()?),
                "title" => *title = Some(map.next_value()?),
                "description" => *description = Some(map.next_value()?),
                "annotations" => annotations = Lenient::read(&mut map)?,
                "size" => size = Lenient::read(&mut map)?,
                "resource" => resource = Some(map.next_value()?),
                "_meta" => meta = Lenient::read(&mut map)?,
                _ => {
                    map.next_value::<de::IgnoredAny>()?;
                }
            }
        }
        let may = |member: &mut Option<Loose<String>>| member.take().and_then(|Loose(text)| text);
        let Some(tag) = tag else {
            return Err(de::Error::missing_field("type"));
        };
        match tag.0.as_deref() {
            Some("text") => Ok(ContentBlock::Text(TextContent {
                text: Must("text", text.take()).get()?,
                annotations,
                meta,
            })),
            Some("image") => Ok(ContentBlock::Image(ImageContent {
                data: Must("data", data.take()).get()?,
                mime_type: Must("mimeType", mime_type.take()).get()?,
                uri: may(uri),
                annotations,
                meta,
            })),
            Some("audio") => Ok(ContentBlock::Audio(AudioContent {
                data: Must("data", data.take()).get()?,
                mime_type: Must("mimeType", mime_type.take()).get()?,
                annotations,
                meta,
            })),
            Some("resource_link") => Ok(ContentBlock::ResourceLink(ResourceLink {
                name: Must("name", name.take()).get()?,
                uri: Must("uri", uri.take()).get()?,
                description: may(description),
                mime_type: may(mime_type),
                size,
                title: may(title),
                annotations,
                meta,
            })),
            Some("resource") => {
                let Some(resource) = resource else {
                    return Err(de::Error::missing_field("resource"));
                };
                Ok(ContentBlock::Resource(EmbeddedResource {
                    resource: super::object::parse(resource.get())?,
                    annotations,
                    meta,
                }))
            }
            Some(_) | None => Err(de::Error::custom(format_args!(
                "{OWN}expected a content block of type text, image, audio, resource_link or resource"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn read(text: &str) -> Result<ContentBlock, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn every_kind_is_read_and_written_back() {
        for text in [
            r#"{"type":"text","text":"a"}"#,
            r#"{"type":"image","data":"AA==","mimeType":"image/png","uri":"file:///x"}"#,
            r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#,
            r#"{"type":"resource_link","name":"n","uri":"file:///n","size":3}"#,
            r#"{"type":"resource","resource":{"text":"t","uri":"file:///t","mimeType":"text/plain"}}"#,
            r#"{"type":"resource","resource":{"blob":"AA==","uri":"file:///t"}}"#,
            r#"{"type":"text","text":"a","annotations":{"audience":["user"],"priority":0.50},"_meta":{"z":1,"a":2}}"#,
        ] {
            assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn malformed_optional_members_count_as_absent() {
        for text in [
            r#"{"type":"text","text":"a","annotations":5,"_meta":5,"size":"x","title":[1],"zzz":{}}"#,
            r#"{"text":"a","annotations":null,"_meta":null,"type":"text"}"#,
        ] {
            assert_eq!(read(text).unwrap(), ContentBlock::text("a"));
        }
    }

    #[test]
    fn a_block_without_what_it_needs_is_refused_and_not_quoted() {
        for text in [
            r#"{"type":"hologram","text":"s3cret"}"#,
            r#"{"text":"s3cret"}"#,
            r#"{"type":"text"}"#,
            r#"{"type":"text","text":5}"#,
            r#"{"type":"text","text":null}"#,
            r#"{"type":"image","data":"s3cret"}"#,
            r#"{"type":"resource_link","name":"n"}"#,
            r#"{"type":"resource","resource":{"uri":"s3cret"}}"#,
            r#"{"type":"resource"}"#,
            r#"["text","s3cret"]"#,
        ] {
            let error = read(text).unwrap_err();
            assert!(
                !super::super::object::Unquoted(&error)
                    .to_string()
                    .contains("s3cret"),
                "{text}"
            );
        }
    }

    #[test]
    fn text_wins_over_blob() {
        let block = read(r#"{"type":"resource","resource":{"blob":"AA==","text":"t","uri":"u"}}"#);
        let Ok(ContentBlock::Resource(block)) = block else {
            panic!("{block:?}")
        };
        assert!(matches!(block.resource, EmbeddedResourceResource::Text(_)));
    }
}
