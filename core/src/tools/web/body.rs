//! What a server sent as text that a model can read. Knows neither requests nor permission.

use alloc::string::String;

use super::html;
use super::url::Url;
use crate::tools::text;

/// What the head of an answer says of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A page: it is made to readable text.
    Html,
    /// Text as it is.
    Text,
    /// Not said: the bytes show it.
    Unsaid,
}

impl Form {
    /// The form of a `content-type`; none: it is no text.
    pub(super) fn of(content_type: Option<&str>) -> Option<Self> {
        let Some(given) = content_type.map(essence).filter(|it| !it.is_empty()) else {
            return Some(Self::Unsaid);
        };
        let given = given.as_str();
        let data = given.strip_prefix("application/");
        let is_text = given.starts_with("text/")
            || given.ends_with("+json")
            || given.ends_with("+xml")
            || data.is_some_and(|it| TEXTS.contains(&it));
        match given {
            "text/html" | "application/xhtml+xml" => Some(Self::Html),
            "application/octet-stream" | "binary/octet-stream" => Some(Self::Unsaid),
            _ => is_text.then_some(Self::Text),
        }
    }
}

/// Types beneath `application/` that are text.
const TEXTS: [&str; 12] = [
    "ecmascript",
    "graphql",
    "javascript",
    "json",
    "json5",
    "jsonl",
    "rtf",
    "sql",
    "toml",
    "x-ndjson",
    "xml",
    "yaml",
];

/// The text of a body; none: it is no text after all.
pub(super) fn read(
    bytes: &[u8],
    form: Form,
    content_type: Option<&str>,
    at: &Url,
) -> Option<String> {
    // A last character that was cut off is no sign of other data.
    let bytes = &bytes[..text::complete(bytes)];
    let label = content_type.and_then(charset);
    let looks_like_page = || {
        let start = bytes.trim_ascii_start();
        let start = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start);
        [&b"<!doctype html"[..], b"<html", b"<head"]
            .iter()
            .any(|mark| {
                let start = start.get(..mark.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(mark))
            })
    };
    let is_page = form == Form::Html || form == Form::Unsaid && looks_like_page();
    let label = label.or_else(|| is_page.then(|| charset_in(bytes)).flatten());
    let one_byte = label.as_deref().is_some_and(|label| {
        ["iso-8859-1", "latin1", "us-ascii", "windows-1252", "cp1252"].contains(&label)
    });
    let whole = if one_byte && !bytes.contains(&0) {
        bytes.iter().map(|byte| from_1252(*byte)).collect()
    } else {
        match text::decode(bytes) {
            Some((whole, _)) => whole,
            None if form == Form::Unsaid || bytes.contains(&0) => return None,
            None => String::from_utf8_lossy(bytes).into_owned(),
        }
    };
    Some(if is_page {
        html::to_text(&whole, at)
    } else {
        let shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        whole.chars().filter(shown).collect()
    })
}

/// The type without its parameters, in lower case.
pub(super) fn essence(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

fn charset(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (_, value) = lower.split_once("charset=")?;
    let value = value.trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c));
    Some(value[..end.unwrap_or(value.len())].into())
}

/// The `charset` that a page itself names near its beginning.
fn charset_in(bytes: &[u8]) -> Option<String> {
    const LOOKED_AT: usize = 1024;
    let start = &bytes[..bytes.len().min(LOOKED_AT)];
    charset(&String::from_utf8_lossy(start))
}

/// A character of Windows-1252, which is what pages in Latin-1 are really written in.
fn from_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_text_is_taken_and_nothing_else() {
        for (content_type, form) in [
            (None, Some(Form::Unsaid)),
            (Some(""), Some(Form::Unsaid)),
            (Some("application/octet-stream"), Some(Form::Unsaid)),
            (Some("text/html; charset=utf-8"), Some(Form::Html)),
            (Some("TEXT/HTML"), Some(Form::Html)),
            (Some("application/xhtml+xml"), Some(Form::Html)),
            (Some("text/plain"), Some(Form::Text)),
            (Some("text/markdown"), Some(Form::Text)),
            (Some("application/json"), Some(Form::Text)),
            (Some("application/ld+json;x=y"), Some(Form::Text)),
            (Some("image/svg+xml"), Some(Form::Text)),
            (Some("image/png"), None),
            (Some("application/pdf"), None),
            (Some("application/zip"), None),
            (Some("video/mp4"), None),
        ] {
            assert_eq!(Form::of(content_type), form, "{content_type:?}");
        }
    }

    #[test]
    fn bytes_are_read_in_the_characters_they_are_written_in() {
        let at = Url::parse("http://a.test/", 100).expect("an address");
        let check = |bytes: &[u8], form, content_type, text: Option<&str>| {
            let read = read(bytes, form, content_type, &at);
            assert_eq!(read.as_deref(), text, "{bytes:?}");
        };
        let latin = Some("text/plain; charset=\"ISO-8859-1\"");
        check("grün\r\n".as_bytes(), Form::Text, None, Some("grün\n"));
        check(b"gr\xfcn \x93x\x94", Form::Text, latin, Some("grün “x”"));
        check(b"gr\xfcn", Form::Text, Some("text/plain"), Some("grün"));
        check(b"\xef\xbb\xbfx", Form::Text, None, Some("x"));
        check(b"<meta charset=latin1>\xfc", Form::Html, None, Some("ü"));
        check(b" <!DOCTYPE html><p>x", Form::Unsaid, None, Some("x"));
        check(
            b"{\"a\": \"<p>\"}",
            Form::Unsaid,
            None,
            Some("{\"a\": \"<p>\"}"),
        );
        check(b"\x7fELF\0\x01", Form::Unsaid, None, None);
        check(b"\x89PNG\r\n\x1a\n\0", Form::Text, None, None);
        check("漢字".as_bytes()[..4].into(), Form::Text, None, Some("漢"));
        check(b"a\x1b[31mb", Form::Text, None, Some("a[31mb"));
    }
}
