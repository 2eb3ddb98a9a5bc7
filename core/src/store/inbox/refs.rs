//! References of an item: the `@path`s in its text, and the contents that were frozen for it. Reads
//! no file: what is to be read is named, what was found is handed back.
//!
//! | what a reference is to | what becomes of it |
//! | --- | --- |
//! | a file of the roots, not too long | `frozen`: its content is kept with the item |
//! | a folder, a longer file, more files than the bounds allow | `external`: the tools may read it |
//! | a saved attachment | `attachment`: its name is its digest; a picture is kept for the model, if it fits |
//! | nothing, and it looks like the path of a file | the item is blocked |
//! | nothing, and it may be any word (`@alice`, `@scope/package`, `@decorator`) | ordinary text |
//! | what cannot be read, or leads out of the roots | the item is blocked |

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::item::names;
use super::text::preview;
use crate::limits::Limits;
use crate::link;

/// A `@path` in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// The path as it stands there, without marks and line numbers; not empty.
    pub path: String,
    /// It can only be meant as a path: if nothing is there, that is a failure.
    pub certain: bool,
}

/// What was found where a reference leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file, whole.
    File(Vec<u8>),
    /// A file that was saved for a prompt and is not changed any more; its bytes if they are known.
    Attachment(Option<Vec<u8>>),
    /// Something that is not frozen: a folder, a file that is too long.
    Other,
    /// Nothing.
    Missing,
    /// It cannot be read, or must not be; why.
    Failed(String),
}

names! {
    /// What a reference of an item is.
    RefKind {
        /// A file that the version control has as it is.
        CleanGit = "clean_git",
        /// A file whose content is kept with the item.
        Frozen = "frozen",
        /// Something that is read when the item runs, or not at all.
        External = "external",
        /// A saved attachment.
        Attachment = "attachment",
    }
}

/// A reference as it is kept with an item.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrozenRef {
    /// What it is.
    pub kind: RefKind,
    /// The path as it stands in the text.
    pub path: String,
    /// The content at the time it was frozen.
    pub content: Option<Vec<u8>>,
    /// Why it could not be frozen.
    pub error: Option<String>,
}

/// A reference as it is shown in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefNote {
    /// What it is.
    pub kind: RefKind,
    /// The path as it stands in the text.
    pub path: String,
    /// The length of the content that is kept, bytes.
    pub bytes: Option<u64>,
    /// The beginning of that content.
    pub preview: Option<String>,
}

/// The text of an item to be, with what its references lead to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Draft {
    /// What the person says.
    pub text: String,
    /// Its references, in the order of the text.
    pub refs: Vec<FrozenRef>,
    /// Why a reference could not be frozen; then the item is kept, but blocked.
    pub failed: Option<String>,
}

impl Draft {
    /// A text whose references, if it has any, are not frozen.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A text with what was found where its [`references`] lead.
    pub fn frozen(
        text: impl Into<String>,
        found: impl IntoIterator<Item = (Reference, Found)>,
        limits: &Limits,
    ) -> Self {
        let mut draft = Self::plain(text);
        let mut left = limits.max_inbox_frozen;
        for (reference, found) in found {
            let (kind, content, error) = match found {
                Found::File(bytes) if bytes.len() <= left.min(limits.max_inbox_ref) => {
                    left -= bytes.len();
                    (RefKind::Frozen, Some(bytes), None)
                }
                Found::File(_) | Found::Other => (RefKind::External, None, None),
                Found::Attachment(bytes) => {
                    let kept = bytes.filter(|bytes| bytes.len() <= left);
                    left -= kept.as_ref().map_or(0, Vec::len);
                    (RefKind::Attachment, kept, None)
                }
                Found::Missing if reference.certain => (
                    RefKind::External,
                    None,
                    Some(String::from("there is no such file")),
                ),
                Found::Missing => continue,
                Found::Failed(why) => (RefKind::External, None, Some(why)),
            };
            if let Some(why) = &error {
                let why = format!("@{}: {why}", reference.path);
                draft.failed.get_or_insert(why);
            }
            draft.refs.push(FrozenRef {
                kind,
                path: reference.path,
                content,
                error,
            });
        }
        draft
    }
}

impl FrozenRef {
    pub(super) fn note(&self, max_preview: usize) -> RefNote {
        let text = self
            .content
            .as_deref()
            .and_then(|bytes| core::str::from_utf8(bytes).ok());
        RefNote {
            kind: self.kind,
            path: self.path.clone(),
            bytes: self.content.as_ref().map(|bytes| bytes.len() as u64),
            preview: text.map(|text| preview(text, max_preview)),
        }
    }
}

/// What the model is told of frozen texts: a `<file>` element each. Empty if there is none.
pub fn reference_block(refs: &[FrozenRef]) -> String {
    let mut block = String::new();
    for reference in refs {
        let content = reference.content.as_deref().map(core::str::from_utf8);
        let frozen = reference.kind == RefKind::Frozen;
        if let (true, Some(Ok(text))) = (frozen, content) {
            if !block.is_empty() {
                block.push_str("\n\n");
            }
            let path = reference.path.replace('&', "&amp;").replace('"', "&quot;");
            let end = if text.ends_with('\n') { "" } else { "\n" };
            block.push_str(&format!("<file path=\"{path}\">\n{text}{end}</file>"));
        }
    }
    block
}

/// The `@path`s in a text, each path once, at most `max` of them.
///
/// A reference begins at the beginning or behind white space, an opening bracket or a quote, and
/// ends before white space or a quote; `@"a path"` holds spaces. Punctuation and line numbers
/// (`:12`, `:12-20`, `#L12`) behind it do not belong to it. Of addresses (`@https://…`) only those of
/// files (`@file:///…`) are any.
pub fn references(text: &str, max: usize) -> Vec<Reference> {
    let mut found: Vec<Reference> = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let mut at = 0;
        while let Some(mark) = line[at..].find('@').map(|mark| at + mark) {
            let before = line[..mark].chars().next_back();
            at = mark + 1;
            if !before.is_none_or(may_stand_before) {
                continue;
            }
            let (name, quoted, end) = token(&line[at..]);
            let Some(path) = path_of(name, quoted) else {
                continue;
            };
            at += end;
            let plain = !fenced && before.is_none_or(|c| !is_quote(c));
            let certain = plain && (quoted || looks_like_a_file(path));
            if let Some(known) = found.iter_mut().find(|known| known.path == path) {
                known.certain |= certain;
            } else if found.len() < max {
                let path = path.into();
                found.push(Reference { path, certain });
            }
        }
    }
    found
}

fn may_stand_before(c: char) -> bool {
    c.is_whitespace() || is_quote(c) || matches!(c, '(' | '[' | '{' | '<' | ',' | ';')
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`')
}

/// What stands behind an `@`: the name, whether it is quoted, and where it ends.
fn token(rest: &str) -> (&str, bool, usize) {
    if let Some(inside) = rest.strip_prefix('"')
        && let Some(end) = inside.find('"')
    {
        return (&inside[..end], true, end + 2);
    }
    let end = rest
        .find(|c: char| c.is_whitespace() || is_quote(c) || matches!(c, '<' | '>' | '|'))
        .unwrap_or(rest.len());
    let end = rest[..end].find(",@").unwrap_or(end);
    (&rest[..end], false, end)
}

fn path_of(name: &str, quoted: bool) -> Option<&str> {
    let path = if quoted { name } else { bare(name) };
    let elsewhere = path.contains("://") && !link::is_link(path);
    let usable = !path.is_empty() && !elsewhere && !path.contains(char::is_control);
    usable.then_some(path)
}

/// A name without what stands behind it in a sentence.
fn bare(mut name: &str) -> &str {
    loop {
        let before = name;
        name = name.trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '@']);
        for (open, close) in [('(', ')'), ('[', ']'), ('{', '}')] {
            let count = |c: char| name.matches(c).count();
            if name.ends_with(close) && count(close) > count(open) {
                name = &name[..name.len() - 1];
            }
            if let Some(rest) = name.strip_suffix(open) {
                name = rest;
            }
        }
        if let Some((path, lines)) = name.rsplit_once([':', '#'])
            && is_lines(lines)
        {
            name = path;
        }
        if name == before {
            return name;
        }
    }
}

/// `12`, `12-20`, `L12`, `L12-L20`.
fn is_lines(text: &str) -> bool {
    let number = |part: &str| {
        let digits = part.strip_prefix('L').unwrap_or(part);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    match text.split_once('-') {
        Some((from, to)) => number(from) && number(to),
        None => number(text),
    }
}

/// Whether a word can hardly be anything else: `./x`, `../x`, `/x`, `~/x`, `a/b.c`.
fn looks_like_a_file(path: &str) -> bool {
    let from_a_folder = ["./", "../", "/", "~/"]
        .iter()
        .any(|begin| path.len() > begin.len() && path.starts_with(begin));
    let with_extension = path.rsplit_once('/').is_some_and(|(_, file)| {
        file.rsplit_once('.')
            .is_some_and(|(stem, extension)| !stem.is_empty() && !extension.is_empty())
    });
    from_a_folder || with_extension || link::is_link(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, is: &[(&str, bool)]) {
        let found = references(text, 8);
        let found: Vec<_> = found
            .iter()
            .map(|reference| (reference.path.as_str(), reference.certain))
            .collect();
        assert_eq!(found, is, "{text}");
    }

    #[test]
    fn only_what_is_meant_as_a_path_is_a_reference() {
        check("look at @src/a.rs, please", &[("src/a.rs", true)]);
        check(
            "@README.md: fix (@./b) and @../c!",
            &[("README.md", false), ("./b", true), ("../c", true)],
        );
        check(
            "@\"my file.txt\" and @src/x(1).rs",
            &[("my file.txt", true), ("src/x(1).rs", true)],
        );
        check(
            "(see @src/a.rs) @src/a.rs:12-20 @src/a.rs#L3",
            &[("src/a.rs", true)],
        );
        check("@app/(group)/page.tsx", &[("app/(group)/page.tsx", true)]);
        check(
            "see @file:///w/Make%20file, @file:///w/a.rs#L3 and @https://h/a.rs",
            &[("file:///w/Make%20file", true), ("file:///w/a.rs", true)],
        );
        check("mail me@example.org or ask @alice", &[("alice", false)]);
        check("bump @angular/core to 17", &[("angular/core", false)]);
        check(
            "import x from '@scope/pkg/x.js'",
            &[("scope/pkg/x.js", false)],
        );
        check(
            "```\n@app.route(\"/x.y\")\n@a/b.c\n```\n@a/d.e",
            &[("app.route", false), ("a/b.c", false), ("a/d.e", true)],
        );
        check("see @https://example.org/a.rs @ @, @@ @\"\"", &[]);
        check("@a/ä.rs,@a/ö.rs", &[("a/ä.rs", true), ("a/ö.rs", true)]);
        check(
            "@a @b\n@c\r\n@d",
            &[("a", false), ("b", false), ("c", false), ("d", false)],
        );
    }

    #[test]
    fn there_is_a_bound_for_references() {
        let text = "@a @b @c @d @e @f @g @h @i @j";
        assert_eq!(references(text, 8).len(), 8);
    }

    #[test]
    fn what_cannot_be_frozen_blocks_and_what_is_no_path_does_not() {
        let limits = Limits {
            max_inbox_ref: 4,
            max_inbox_frozen: 6,
            ..Limits::default()
        };
        let reference = |path: &str, certain| Reference {
            path: path.into(),
            certain,
        };
        let draft = Draft::frozen(
            "t",
            [
                (reference("a", true), Found::File(b"1234".to_vec())),
                (reference("b", true), Found::File(b"12345".to_vec())),
                (reference("c", true), Found::File(b"123".to_vec())),
                (reference("d", false), Found::Missing),
                (
                    reference("e", true),
                    Found::Attachment(Some(b"12".to_vec())),
                ),
                (reference("g", true), Found::Attachment(Some(b"1".to_vec()))),
                (reference("f", true), Found::Other),
            ],
            &limits,
        );
        let kinds: Vec<_> = draft
            .refs
            .iter()
            .map(|r| (r.path.as_str(), r.kind))
            .collect();
        assert_eq!(
            kinds,
            [
                ("a", RefKind::Frozen),
                ("b", RefKind::External),
                ("c", RefKind::External),
                ("e", RefKind::Attachment),
                ("g", RefKind::Attachment),
                ("f", RefKind::External),
            ]
        );
        assert_eq!(draft.failed, None);
        let kept: Vec<_> = draft.refs.iter().map(|r| r.content.is_some()).collect();
        assert_eq!(kept, [true, false, false, true, false, false]);
        let draft = Draft::frozen(
            "t",
            [
                (reference("x/y.z", true), Found::Missing),
                (reference("q", false), Found::Failed("no".into())),
            ],
            &limits,
        );
        assert_eq!(
            draft.failed.as_deref(),
            Some("@x/y.z: there is no such file")
        );
        assert_eq!(draft.refs[1].error.as_deref(), Some("no"));
    }

    #[test]
    fn frozen_texts_are_told_and_nothing_else() {
        let frozen = |path: &str, content: &[u8]| FrozenRef {
            kind: RefKind::Frozen,
            path: path.into(),
            content: Some(content.to_vec()),
            error: None,
        };
        assert_eq!(
            reference_block(&[
                frozen("a\"b", b"x\n"),
                frozen("c", b"\xff"),
                frozen("d", b"y")
            ]),
            "<file path=\"a&quot;b\">\nx\n</file>\n\n<file path=\"d\">\ny\n</file>"
        );
        assert_eq!(reference_block(&[]), "");
    }

    proptest! {
        #[test]
        fn any_text_has_its_references_found(text in "[@a./:#\" \n(),é`-]{0,40}") {
            for reference in references(&text, 8) {
                prop_assert!(!reference.path.is_empty());
                prop_assert!(text.contains(&reference.path));
            }
        }
    }
}
