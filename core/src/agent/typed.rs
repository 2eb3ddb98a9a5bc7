//! What a person typed that may be a command, among the blocks of a prompt. Pure; knows no command.
//!
//! Editors put what a person mentions where it was typed, and what they attach by themselves before or
//! behind it. So:
//!
//! | block | is |
//! | --- | --- |
//! | the first text that is not blank, if it begins with `/` or `!`, and each text behind it | words |
//! | a link that words follow, or that a space stands before | a part of the words, where it stands |
//! | any other link, each file, each picture | beside them |

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::content::base_name;
use crate::protocol::schema::{ContentBlock, EmbeddedResourceResource};
use crate::shown;

/// Longest name by which a person is told of an attachment, bytes.
const MAX_NAME: usize = 120;

/// Attachments that a person is told of by their names.
const MAX_NAMED: usize = 8;

/// What a person typed that begins with `/` or `!`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Typed {
    /// The words from that sign on, with the links that are a part of them.
    pub text: String,
    /// The same without these links.
    pub plain: String,
    /// The links that are a part of the words.
    pub links: Vec<Beside>,
    /// What stands beside the words, in its order.
    pub beside: Vec<Beside>,
}

/// A block that is no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beside {
    /// What the model gets of it.
    pub told: String,
    /// What a person knows it by.
    pub name: String,
}

impl Typed {
    /// What may be a command in `blocks`, of each of which the model gets the text of the same place
    /// in `told`; none if it begins otherwise.
    pub(super) fn of(blocks: &[ContentBlock], told: &[String]) -> Option<Self> {
        let is_word = |block: &ContentBlock| {
            let text = block.as_text();
            text.is_some_and(|text| !text.trim().is_empty())
        };
        let first = blocks.iter().position(is_word)?;
        let last = blocks.iter().rposition(is_word)?;
        let sign = blocks[first].as_text()?.trim_start();
        if !sign.starts_with(['/', '!']) {
            return None;
        }
        let mut typed = Self::default();
        for (at, (block, told)) in blocks.iter().zip(told).enumerate() {
            if let Some(text) = block.as_text() {
                if at >= first {
                    add(&mut typed.text, text);
                    add(&mut typed.plain, text);
                }
                continue;
            }
            let beside = Beside {
                told: told.clone(),
                name: name(block),
            };
            let spaced = typed.text.ends_with(char::is_whitespace);
            let inside = first < at && (at < last || spaced);
            if inside && matches!(block, ContentBlock::ResourceLink(_)) {
                add(&mut typed.text, told);
                typed.links.push(beside);
            } else {
                typed.beside.push(beside);
            }
        }
        typed.text = typed.text.trim().into();
        typed.plain = typed.plain.trim().into();
        Some(typed)
    }

    /// Adds to what the model is told what stands beside the words.
    pub(super) fn tell_beside(&self, told: &mut String) {
        for beside in &self.beside {
            if !told.is_empty() {
                told.push_str("\n\n");
            }
            told.push_str(&beside.told);
        }
    }

    /// All that is no word, for a person: "a.rs", "a.rs and a picture", … None if there is nothing.
    pub(super) fn names(&self) -> Option<String> {
        let all: Vec<&Beside> = self.beside.iter().chain(&self.links).collect();
        let named = match all.len() > MAX_NAMED {
            true => MAX_NAMED - 1,
            false => all.len(),
        };
        let mut names: Vec<Cow<'_, str>> = all[..named]
            .iter()
            .map(|it| it.name.as_str().into())
            .collect();
        if all.len() > named {
            names.push((all.len() - named).to_string().into());
            names[named] += " more";
        }
        let (last, before) = names.split_last()?;
        Some(match before {
            [] => last.to_string(),
            _ => before.join(", ") + " and " + last,
        })
    }

    /// How many blocks are no words.
    pub(super) fn others(&self) -> usize {
        self.beside.len() + self.links.len()
    }
}

/// Adds a block to the words: apart, unless one of both is so by itself.
fn add(words: &mut String, text: &str) {
    let apart = |c: Option<char>| c.is_none_or(char::is_whitespace);
    if !apart(words.chars().last()) && !apart(text.chars().next()) {
        words.push(' ');
    }
    words.push_str(text);
}

/// What a person knows a block by.
fn name(block: &ContentBlock) -> String {
    let (name, otherwise) = match block {
        ContentBlock::ResourceLink(link) if !link.name.trim().is_empty() => {
            (Cow::Borrowed(link.name.as_str()), "a link")
        }
        ContentBlock::ResourceLink(link) => (base_name(&link.uri).into(), "a link"),
        ContentBlock::Resource(content) => {
            let uri = match &content.resource {
                EmbeddedResourceResource::Text(file) => &file.uri,
                EmbeddedResourceResource::Blob(file) => &file.uri,
            };
            (base_name(uri).into(), "a file")
        }
        ContentBlock::Image(_) => ("a picture".into(), "a picture"),
        ContentBlock::Audio(_) | ContentBlock::Text(_) => ("".into(), "a block"),
    };
    match shown::line(&name, MAX_NAME) {
        name if name.is_empty() => otherwise.into(),
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::schema::{
        EmbeddedResource, ImageContent, ResourceLink, TextResourceContents,
    };
    use alloc::format;

    fn text(text: &str) -> ContentBlock {
        ContentBlock::text(text)
    }

    fn link(name: &str) -> ContentBlock {
        ContentBlock::ResourceLink(ResourceLink::new(name, format!("file:///w/{name}")))
    }

    fn file() -> ContentBlock {
        ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::Text(
            TextResourceContents::new("inside", "file:///w/f.rs?x"),
        )))
    }

    fn picture() -> ContentBlock {
        ContentBlock::Image(ImageContent::new("", "image/png"))
    }

    fn read(blocks: &[ContentBlock]) -> Option<Typed> {
        let told = blocks.iter().map(|block| match block {
            ContentBlock::Text(it) => it.text.clone(),
            ContentBlock::ResourceLink(it) => format!("@{}", it.uri),
            ContentBlock::Image(_) | ContentBlock::Audio(_) | ContentBlock::Resource(_) => {
                "<it>".into()
            }
        });
        Typed::of(blocks, &told.collect::<Vec<_>>())
    }

    #[test]
    fn words_are_told_from_what_stands_beside_them() {
        // The blocks; the words with links and without; what is a part of them, and what is not.
        type Case<'a> = (
            &'a [ContentBlock],
            &'a str,
            &'a str,
            &'a [&'a str],
            &'a [&'a str],
        );
        let cases: &[Case<'_>] = &[
            (&[text(" /a b\n")], "/a b", "/a b", &[], &[]),
            (&[text("!a"), text(" b")], "!a b", "!a b", &[], &[]),
            // Attached before or behind.
            (&[link("x"), text("!a")], "!a", "!a", &[], &["x"]),
            (
                &[text(" \n"), link("x"), text("!a")],
                "!a",
                "!a",
                &[],
                &["x"],
            ),
            (&[text("!a"), link("x")], "!a", "!a", &[], &["x"]),
            (
                &[text("!a"), link("x"), text("\n")],
                "!a",
                "!a",
                &[],
                &["x"],
            ),
            (
                &[file(), picture(), text("/a"), file(), picture()],
                "/a",
                "/a",
                &[],
                &["f.rs", "a picture", "f.rs", "a picture"],
            ),
            // Mentioned in the middle and at the end.
            (
                &[text("/a"), link("x"), text("now")],
                "/a @file:///w/x now",
                "/a now",
                &["x"],
                &[],
            ),
            (
                &[text("!cat "), link("x")],
                "!cat @file:///w/x",
                "!cat",
                &["x"],
                &[],
            ),
            (
                &[
                    text("/a from "),
                    link("x"),
                    text(" to "),
                    link("y"),
                    link("z"),
                ],
                "/a from @file:///w/x to @file:///w/y",
                "/a from  to",
                &["x", "y"],
                &["z"],
            ),
            (
                &[text("/a "), file(), text("b")],
                "/a b",
                "/a b",
                &[],
                &["f.rs"],
            ),
        ];
        for (blocks, words, plain, links, beside) in cases {
            let typed = read(blocks).expect("it may be one");
            assert_eq!(
                (typed.text.as_str(), typed.plain.as_str()),
                (*words, *plain)
            );
            let names = |all: &[Beside]| all.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&typed.links), *links, "{words}");
            assert_eq!(names(&typed.beside), *beside, "{words}");
        }
        for blocks in [
            &[text("say /a")][..],
            &[link("/x")],
            &[text("x"), text("/a")],
            &[text(" "), link("x")],
            &[],
        ] {
            assert_eq!(read(blocks), None);
        }
    }

    #[test]
    fn what_is_no_word_is_named_in_one_line() {
        let named = |blocks: &[ContentBlock]| {
            let all = [&[text("!a")], blocks].concat();
            read(&all).expect("it may be one").names()
        };
        let unnamed = |uri: &str| ContentBlock::ResourceLink(ResourceLink::new(" ", uri));
        for (blocks, expected) in [
            (&[][..], None),
            (&[link("x")], Some("x")),
            (&[link("x"), picture()], Some("x and a picture")),
            (
                &[link("x"), file(), picture()],
                Some("x, f.rs and a picture"),
            ),
            (&[link("a\n\u{202e}b")], Some("a \\u{202e}b")),
            (&[unnamed("file:///w/y.md")], Some("y.md")),
        ] {
            assert_eq!(named(blocks).as_deref(), expected);
        }
        let many: Vec<ContentBlock> = (0..9).map(|n| link(&format!("{n}"))).collect();
        assert_eq!(
            named(&many).as_deref(),
            Some("0, 1, 2, 3, 4, 5, 6 and 2 more")
        );
        assert_eq!(
            named(&many[..8]).as_deref(),
            Some("0, 1, 2, 3, 4, 5, 6 and 7")
        );
        let long = named(&[link(&"x".repeat(1000))]).expect("it is named");
        assert!(long.len() <= MAX_NAME, "{long}");
    }
}
