//! Prompt blocks to what the model gets. Pure: what has to be saved is returned, not written.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sha2::{Digest, Sha256};

use super::typed::Typed;
use crate::engine::record::{Shown, User};
use crate::model::Part;
use crate::protocol::schema::{
    BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent,
    TextContent, TextResourceContents,
};
use crate::shown;

/// Where attachments go, beneath the working directory.
pub(super) const FOLDER: &str = ".reasonix/attachments";

/// Clients pad or do not: both are taken.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A prompt, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prompt {
    /// What the model gets: one text, then the images.
    pub parts: Vec<Part>,
    /// What the person said, where it is not the same.
    pub shown: Option<Vec<Shown>>,
    /// What has to be saved first.
    pub files: Vec<Attachment>,
    /// What was typed, if that may be a command.
    pub typed: Option<Typed>,
    /// The words of the goal that it sets, if it does by a command.
    pub goal: Option<String>,
}

impl Prompt {
    /// What the person said, where it is not one text, without the help of its pictures.
    pub(super) fn shown_by_itself(&self) -> Option<Vec<Shown>> {
        let picture = |at: usize, block: Option<&String>| match self.parts.get(at + 1) {
            Some(Part::Image { mime, data }) => {
                let beside = block.and_then(|block| serde_json::from_str(block).ok());
                let mut content = match beside {
                    Some(ContentBlock::Image(beside)) => beside,
                    Some(_) | None => ImageContent::new("", mime.clone()),
                };
                content.data.clone_from(data);
                let block = ContentBlock::Image(content);
                Some(Shown::Block(
                    serde_json::to_string(&block).unwrap_or_default(),
                ))
            }
            Some(Part::Text(_)) | None => None,
        };
        let whole = |part: &Shown| match part {
            Shown::Image(at) => picture(*at, None),
            Shown::ImageBlock { at, block } => picture(*at, Some(block)),
            Shown::Text(_) | Shown::TextBlock { .. } | Shown::Block(_) => Some(part.clone()),
        };
        Some(self.shown.as_ref()?.iter().filter_map(whole).collect())
    }

    /// Its text.
    pub(super) fn text(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            Some(Part::Image { .. }) | None => "",
        }
    }
}

/// A picture that the model gets, if it is one.
pub(super) fn picture(bytes: &[u8]) -> Option<Part> {
    let (_, mime) = sniff(bytes)?;
    Some(Part::Image {
        mime: mime.into(),
        data: BASE64.encode(bytes),
    })
}

/// A file to save before the turn begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attachment {
    /// Beneath the working directory.
    pub path: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Reads the blocks of a prompt. The error names the block that cannot be used.
pub(super) fn read(blocks: &[ContentBlock]) -> Result<Prompt, String> {
    let mut texts: Vec<String> = Vec::new();
    let mut images = Vec::new();
    let mut files: Vec<Attachment> = Vec::new();
    let mut shown = Vec::new();
    for (n, block) in blocks.iter().enumerate() {
        shown.push(as_shown(block, images.len()));
        match block {
            ContentBlock::Text(content) => texts.push(content.text.clone()),
            ContentBlock::Image(content) => {
                let bytes = decode(&content.data)
                    .ok_or_else(|| format!("block {n} (image): data is not base64"))?;
                let (extension, mime) = sniff(&bytes).ok_or_else(|| {
                    format!("block {n} (image): the data is no PNG, JPEG, GIF or WebP picture")
                })?;
                let path = format!("{FOLDER}/{}.{extension}", digest(&bytes));
                texts.push(format!("@{path}"));
                let data = BASE64.encode(&bytes);
                if data != content.data
                    && let Some(shown) = shown.last_mut()
                {
                    // Not as we would write it: it is shown again as it was.
                    *shown = Shown::Block(json(block));
                }
                images.push(Part::Image {
                    mime: mime.into(),
                    data,
                });
                files.push(Attachment { path, bytes });
            }
            ContentBlock::Resource(content) => match &content.resource {
                EmbeddedResourceResource::Text(file) => texts.push(format!(
                    "<file uri=\"{}\">\n{}\n</file>",
                    attribute(&file.uri),
                    file.text
                )),
                EmbeddedResourceResource::Blob(file) => {
                    let bytes = decode(&file.blob)
                        .ok_or_else(|| format!("block {n} (resource): blob is not base64"))?;
                    let path = format!("{FOLDER}/{}-{}", digest(&bytes), base_name(&file.uri));
                    texts.push(format!("@{path}"));
                    files.push(Attachment { path, bytes });
                }
            },
            ContentBlock::ResourceLink(link) => texts.push(format!("@{}", link.uri)),
            // The protocol side refuses it, since it is not advertised.
            ContentBlock::Audio(_) => {
                return Err(format!("block {n} (audio): sound is not supported"));
            }
        }
    }
    let typed = Typed::of(blocks, &texts);
    let mut parts = Vec::with_capacity(images.len() + 1);
    parts.push(Part::Text(texts.join("\n\n")));
    parts.append(&mut images);
    files.dedup();
    // One text is the same for the model and for people.
    let shown = (!matches!(shown.as_slice(), [Shown::Text(_)])).then_some(shown);
    Ok(Prompt {
        parts,
        shown,
        files,
        typed,
        goal: None,
    })
}

/// A block without its text and its bytes: what a client says beside them.
pub(super) fn beside(block: &ContentBlock) -> ContentBlock {
    match block {
        ContentBlock::Text(it) => {
            let mut rest = TextContent::new("");
            rest.annotations.clone_from(&it.annotations);
            rest.meta.clone_from(&it.meta);
            ContentBlock::Text(rest)
        }
        ContentBlock::Image(it) => {
            let mut rest = ImageContent::new("", it.mime_type.clone());
            rest.uri.clone_from(&it.uri);
            rest.annotations.clone_from(&it.annotations);
            rest.meta.clone_from(&it.meta);
            ContentBlock::Image(rest)
        }
        ContentBlock::Resource(it) => {
            let inside = match &it.resource {
                EmbeddedResourceResource::Text(file) => {
                    let mut rest = TextResourceContents::new("", file.uri.clone());
                    rest.mime_type.clone_from(&file.mime_type);
                    rest.meta.clone_from(&file.meta);
                    EmbeddedResourceResource::Text(rest)
                }
                EmbeddedResourceResource::Blob(file) => {
                    let mut rest = BlobResourceContents::new("", file.uri.clone());
                    rest.mime_type.clone_from(&file.mime_type);
                    rest.meta.clone_from(&file.meta);
                    EmbeddedResourceResource::Blob(rest)
                }
            };
            let mut rest = EmbeddedResource::new(inside);
            rest.annotations.clone_from(&it.annotations);
            rest.meta.clone_from(&it.meta);
            ContentBlock::Resource(rest)
        }
        ContentBlock::Audio(_) | ContentBlock::ResourceLink(_) => block.clone(),
    }
}

/// What the person is shown of a block, whose picture is the one at `at` if it is one. What its text
/// or its bytes are is kept once: with the message.
fn as_shown(block: &ContentBlock, at: usize) -> Shown {
    match block {
        ContentBlock::Text(it) if it.annotations.is_none() && it.meta.is_none() => {
            Shown::Text(it.text.clone())
        }
        ContentBlock::Text(it) => Shown::TextBlock {
            text: it.text.clone(),
            block: json(&beside(block)),
        },
        ContentBlock::Image(it)
            if it.uri.is_none() && it.annotations.is_none() && it.meta.is_none() =>
        {
            Shown::Image(at)
        }
        ContentBlock::Image(_) => Shown::ImageBlock {
            at,
            block: json(&beside(block)),
        },
        ContentBlock::Audio(_) | ContentBlock::ResourceLink(_) | ContentBlock::Resource(_) => {
            Shown::Block(json(block))
        }
    }
}

fn json(block: &ContentBlock) -> String {
    serde_json::to_string(block).unwrap_or_default()
}

/// What a session is called after its first prompt: the text, white space collapsed, at most `max`
/// characters. Empty if there is no text.
pub(super) fn title(prompt: &Prompt, max: usize) -> String {
    title_said(prompt.text(), prompt.shown.as_deref(), max)
}

/// The same for what a session remembers.
pub(super) fn title_of(user: &User, max: usize) -> String {
    title_said(&user.text, user.shown.as_deref(), max)
}

fn title_said(text: &str, shown: Option<&[Shown]>, max: usize) -> String {
    match shown {
        None => title_words([text].into_iter(), max),
        Some(shown) => title_words(shown.iter().filter_map(Shown::text), max),
    }
}

fn title_words<'a>(texts: impl Iterator<Item = &'a str>, max: usize) -> String {
    let mut title = String::new();
    for word in texts.flat_map(str::split_whitespace) {
        let word = shown::line(word, max.saturating_mul(8));
        if !title.is_empty() && !word.is_empty() {
            title.push(' ');
        }
        title.push_str(&word);
        // A character has at most four bytes: more cannot be needed.
        if title.len() > max.saturating_mul(4) {
            break;
        }
    }
    if title.chars().nth(max).is_some() {
        title = title.chars().take(max.saturating_sub(3)).collect();
        title.push_str("...");
    }
    title
}

fn decode(data: &str) -> Option<Vec<u8>> {
    BASE64.decode(data).ok()
}

/// What a picture is, by its first bytes, whatever its media type says.
fn sniff(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some(("png", "image/png")),
        [0xFF, 0xD8, 0xFF, ..] => Some(("jpg", "image/jpeg")),
        [b'G', b'I', b'F', b'8', ..] => Some(("gif", "image/gif")),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some(("webp", "image/webp")),
        _ => None,
    }
}

/// The beginning of the digest of `bytes`: the same picture is saved once.
fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The last segment of an address, as a harmless file name.
pub(super) fn base_name(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let name: String = path
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or_default()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
                c
            } else {
                '_'
            }
        })
        .take(64)
        .collect();
    if name.trim_matches('.').is_empty() {
        "resource".into()
    } else {
        name
    }
}

fn attribute(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::schema::ResourceLink;
    use alloc::string::ToString;
    use alloc::vec;

    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

    fn text_of(prompt: &Prompt) -> &str {
        match &prompt.parts[0] {
            Part::Text(text) => text,
            Part::Image { .. } => panic!("the text comes first"),
        }
    }

    #[test]
    fn a_link_stands_where_it_was_and_a_text_is_marked_as_a_file() {
        let prompt = read(&[
            ContentBlock::text("look at"),
            ContentBlock::ResourceLink(ResourceLink::new("x", "file:///w/x")),
            ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::Text(
                TextResourceContents::new("inside", "file:///w/\"y"),
            ))),
        ])
        .expect("all can be used");
        assert_eq!(
            text_of(&prompt),
            "look at\n\n@file:///w/x\n\n<file uri=\"file:///w/&quot;y\">\ninside\n</file>"
        );
        assert!(prompt.files.is_empty());
    }

    #[test]
    fn the_first_words_are_the_title() {
        let long = "漢".repeat(81);
        for (texts, expected) in [
            (vec!["  fix\n\tthe  bug "], "fix the bug".to_string()),
            (vec!["a", "b"], "a b".into()),
            (vec![" \n"], String::new()),
            (
                vec!["a\u{1b}[31m\u{7} \u{202e}b"],
                "a [31m \\u{202e}b".into(),
            ),
            (vec!["\u{1b} \u{9b}"], String::new()),
            (vec![&long[3..]], "漢".repeat(80)),
            (vec![&long], "漢".repeat(77) + "..."),
        ] {
            let blocks: Vec<_> = texts.into_iter().map(ContentBlock::text).collect();
            assert_eq!(title(&read(&blocks).expect("texts"), 80), expected);
        }
    }

    #[test]
    fn a_picture_is_saved_under_what_it_is_and_sent() {
        let prompt = read(&[ContentBlock::Image(ImageContent::new(PNG, "image/jpeg"))])
            .expect("it is a picture");
        assert!(text_of(&prompt).starts_with("@.reasonix/attachments/"));
        assert!(text_of(&prompt).ends_with(".png"));
        assert!(matches!(&prompt.parts[1], Part::Image { mime, .. } if mime == "image/png"));
        assert_eq!(prompt.files.len(), 1);
    }

    #[test]
    fn what_a_block_says_beside_its_text_or_picture_is_kept_without_them() {
        for (block, expected) in [
            (r#"{"type":"text","text":"a"}"#, None),
            (
                r#"{"type":"text","text":"a","annotations":{"audience":["user"],"priority":0.50},"_meta":{"z":1,"a":2}}"#,
                Some(Shown::TextBlock {
                    text: "a".into(),
                    block: r#"{"type":"text","text":"","annotations":{"audience":["user"],"priority":0.50},"_meta":{"z":1,"a":2}}"#.into(),
                }),
            ),
            (
                &format!(r#"{{"type":"image","data":"{PNG}","mimeType":"image/png"}}"#),
                Some(Shown::Image(0)),
            ),
            (
                &format!(r#"{{"type":"image","data":"{PNG}","mimeType":"image/png","uri":"file:///x","_meta":{{"b":[]}}}}"#),
                Some(Shown::ImageBlock {
                    at: 0,
                    block: r#"{"type":"image","data":"","mimeType":"image/png","uri":"file:///x","_meta":{"b":[]}}"#.into(),
                }),
            ),
            // The bytes are those that were sent, with padding or without.
            (
                &format!(r#"{{"type":"image","data":"{}","mimeType":"image/png"}}"#, PNG.trim_end_matches('=')),
                Some(Shown::Block(format!(r#"{{"type":"image","data":"{}","mimeType":"image/png"}}"#, PNG.trim_end_matches('=')))),
            ),
        ] {
            let parsed: ContentBlock = serde_json::from_str(block).expect("a block");
            let prompt = read(&[parsed]).expect("it can be used");
            assert_eq!(prompt.shown, expected.map(|one| vec![one]), "{block}");
        }
    }

    #[test]
    fn a_name_in_an_address_cannot_lead_anywhere_else() {
        for (uri, name) in [
            ("file:///a/b.pdf?x#y", "b.pdf"),
            ("..", "resource"),
            ("a/../..", "resource"),
            ("x/\u{e9}\u{0}y", "__y"),
            ("", "resource"),
        ] {
            assert_eq!(base_name(uri), name, "{uri}");
        }
    }

    #[test]
    fn a_block_that_cannot_be_used_is_named() {
        let blocks = vec![
            (
                ContentBlock::Image(ImageContent::new("!", "image/png")),
                "block 0 (image)",
            ),
            (
                ContentBlock::Image(ImageContent::new("aGk=", "image/png")),
                "no PNG",
            ),
            (
                ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::Blob(
                    BlobResourceContents::new("!", "x"),
                ))),
                "block 0 (resource)",
            ),
        ];
        for (block, part) in blocks {
            let error = read(&[block]).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
