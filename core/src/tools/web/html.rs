//! The readable text of an HTML page: what a browser would show, with headings, lists, links and
//! code marked as in Markdown. One pass, forgiving as browsers are; runs no script and loads
//! nothing.

mod entities;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::url::Url;
use entities::decode;

/// Longest address of a link that is shown, bytes.
const LINK: usize = 500;
/// Links of one page that are shown as such: each of them is read at the address of the page.
const LINKS: usize = 10_000;
/// Text of one page that is made, bytes: far more than a model gets of it.
const MOST: usize = 1 << 20;
/// Lists in lists that are shown as such.
const DEEPEST: usize = 8;

/// The text of a page that was found at `base`.
pub(super) fn to_text(html: &str, base: &Url) -> String {
    let mut page = Page {
        base,
        title: String::new(),
        out: Writer::default(),
        lists: Vec::new(),
        link: None,
        links: 0,
        pre: 0,
    };
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        if page.out.out.len() > MOST {
            return page.finish();
        }
        page.text(&rest[..at]);
        rest = page.markup(&rest[at..]);
    }
    page.text(rest);
    page.finish()
}

struct Page<'a> {
    base: &'a Url,
    title: String,
    out: Writer,
    /// Open lists: the number of the next item, if they have numbers.
    lists: Vec<Option<u32>>,
    /// Where the open link begins in the text, and where it leads.
    link: Option<(usize, String)>,
    links: usize,
    pre: u32,
}

impl Page<'_> {
    fn text(&mut self, raw: &str) {
        if raw.is_empty() {
            return;
        }
        let text = decode(raw);
        self.out.text(&text, self.pre > 0);
    }

    /// Takes what begins with `<`; gives what is behind it.
    fn markup<'h>(&mut self, html: &'h str) -> &'h str {
        let behind = |mark: &str| html.find(mark).map_or("", |at| &html[at + mark.len()..]);
        if html.starts_with("<!--") {
            return behind("-->");
        }
        let (ends, name_at) = match html.as_bytes() {
            [_, b'/', c, ..] if c.is_ascii_alphabetic() => (true, 2),
            [_, c, ..] if c.is_ascii_alphabetic() => (false, 1),
            [_, b'!' | b'?' | b'/', ..] => return behind(">"),
            _ => {
                self.text("<");
                return &html[1..];
            }
        };
        let tag = Tag::read(&html[name_at..]);
        let rest = &html[name_at + tag.length..];
        let name = tag.name.to_ascii_lowercase();
        if !ends
            && matches!(
                name.as_str(),
                "script" | "style" | "svg" | "template" | "title"
            )
        {
            let end = end_of(rest, &name);
            if name == "title" && self.title.is_empty() {
                let mut title = Writer::default();
                title.text(&decode(&rest[..end]), false);
                self.title = title.out;
            }
            return &rest[end..];
        }
        if ends {
            self.close(&name);
        } else {
            self.open(&name, &tag);
        }
        rest
    }

    fn open(&mut self, name: &str, tag: &Tag<'_>) {
        match name {
            "br" => self.out.hard_break(),
            "hr" => {
                self.out.block(2);
                self.out.text("---", false);
                self.out.block(2);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.out.block(2);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.out.mark(&"######"[..level]);
                self.out.text(" ", true);
            }
            "ul" | "ol" => {
                self.out.block(if self.lists.is_empty() { 2 } else { 1 });
                if self.lists.len() < DEEPEST {
                    self.lists.push((name == "ol").then_some(1));
                }
            }
            "li" => {
                self.out.block(1);
                let depth = self.lists.len().saturating_sub(1);
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number = number.saturating_add(1);
                        format!("{}. ", *number - 1)
                    }
                    Some(None) | None => "- ".into(),
                };
                self.out.mark(&format!("{}{mark}", "  ".repeat(depth)));
            }
            "pre" => {
                self.out.block(2);
                self.out.mark("```\n");
                self.pre += 1;
            }
            "code" if self.pre == 0 => self.out.text("`", false),
            "td" | "th" if self.out.in_line() => self.out.text(" | ", false),
            "img" => {
                if let Some(alt) = tag.attribute("alt").filter(|alt| !alt.trim().is_empty()) {
                    self.out.text(&format!("[image: {}]", alt.trim()), false);
                }
            }
            "a" if self.links >= LINKS => self.close("a"),
            "a" => {
                self.close("a");
                self.links += 1;
                let target = tag.attribute("href");
                let url = target
                    .filter(|href| !href.trim_start().starts_with('#'))
                    .and_then(|href| self.base.join(&href, LINK).ok());
                if let Some(url) = url {
                    let at = self.out.mark("[");
                    self.link = Some((at, url.as_str().into()));
                }
            }
            _ => self.out.block(breaks(name)),
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "a" => {
                if let Some((at, url)) = self.link.take() {
                    if self.out.out[at..].trim() == "[" {
                        self.out.out.truncate(at);
                    } else {
                        self.out.mark(&format!("]({url})"));
                    }
                }
            }
            "pre" => {
                if self.pre > 0 {
                    self.pre -= 1;
                    self.out.block(1);
                    self.out.mark("```");
                }
                self.out.block(2);
            }
            "code" if self.pre == 0 => self.out.mark_behind("`"),
            "ul" | "ol" => {
                self.lists.pop();
                self.out.block(if self.lists.is_empty() { 2 } else { 1 });
            }
            "td" | "th" | "li" => {}
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.out.block(2),
            _ => self.out.block(breaks(name)),
        }
    }

    fn finish(mut self) -> String {
        self.close("a");
        let body = self.out.out.trim();
        let title = self.title.trim();
        if title.is_empty() {
            body.into()
        } else {
            format!("Title: {title}\n\n{body}")
        }
    }
}

/// How many line ends stand before and behind an element.
fn breaks(name: &str) -> usize {
    match name {
        "p" | "table" | "blockquote" | "dl" | "figure" | "article" | "section" => 2,
        "address" | "aside" | "body" | "caption" | "dd" | "details" | "div" | "dt" | "fieldset"
        | "figcaption" | "footer" | "form" | "head" | "header" | "html" | "legend" | "main"
        | "nav" | "option" | "select" | "summary" | "tbody" | "textarea" | "tfoot" | "thead"
        | "tr" => 1,
        _ => 0,
    }
}

/// The text so far: runs of white space are one space, and none stands at the ends of a line.
#[derive(Default)]
struct Writer {
    out: String,
    space: bool,
    breaks: usize,
}

impl Writer {
    fn text(&mut self, text: &str, exactly: bool) {
        for c in text.chars() {
            if exactly && c == '\n' {
                self.flush();
                self.out.push('\n');
            } else if c.is_whitespace() && !exactly {
                self.space = true;
            } else if !c.is_control() || c == '\t' {
                self.flush();
                self.out.push(c);
            }
        }
    }

    /// Something that stands as it is, behind what waits; gives where it begins.
    fn mark(&mut self, mark: &str) -> usize {
        self.flush();
        self.out.push_str(mark);
        self.out.len() - mark.len()
    }

    /// Something that stands close to what is before it.
    fn mark_behind(&mut self, mark: &str) {
        if self.breaks == 0 {
            self.out.push_str(mark);
        }
    }

    fn block(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(breaks);
        self.space &= breaks == 0;
    }

    fn hard_break(&mut self) {
        self.breaks = (self.breaks + 1).min(2);
        self.space = false;
    }

    /// Whether the next text goes on in the line.
    fn in_line(&self) -> bool {
        self.breaks == 0 && !self.out.is_empty() && !self.out.ends_with('\n')
    }

    fn flush(&mut self) {
        if !self.out.is_empty() {
            let ends = self.out.bytes().rev().take(self.breaks);
            let there = ends.take_while(|byte| *byte == b'\n').count();
            for _ in there..self.breaks {
                self.out.push('\n');
            }
            if self.space && self.breaks == 0 && !self.out.ends_with([' ', '\n']) {
                self.out.push(' ');
            }
        }
        self.breaks = 0;
        self.space = false;
    }
}

/// A tag, from its name on.
struct Tag<'h> {
    name: &'h str,
    attributes: &'h str,
    /// With its `>`.
    length: usize,
}

impl<'h> Tag<'h> {
    fn read(text: &'h str) -> Self {
        let is_end = |c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>');
        let name_end = text.find(is_end).unwrap_or(text.len());
        let mut quote = None;
        let mut value = false;
        let mut end = text.len();
        for (at, byte) in text.bytes().enumerate().skip(name_end) {
            match (quote, byte) {
                (Some(open), byte) if byte == open => quote = None,
                (Some(_), _) => {}
                // A quote means something only where a value begins.
                (None, b'"' | b'\'') if value => quote = Some(byte),
                (None, b'>') => {
                    end = at;
                    break;
                }
                (None, _) => {}
            }
            value = byte == b'=' || value && byte.is_ascii_whitespace();
        }
        Self {
            name: &text[..name_end],
            attributes: &text[name_end..end],
            length: (end + 1).min(text.len()),
        }
    }

    /// The value of an attribute, entities resolved.
    fn attribute(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            if rest.is_empty() {
                return None;
            }
            let is_end = |c: char| c.is_ascii_whitespace() || c == '=' || c == '/';
            // One character at least, or there would be no end.
            let first = rest.chars().next().map_or(0, char::len_utf8);
            let end = rest[first..]
                .find(is_end)
                .map_or(rest.len(), |at| at + first);
            let (name, behind) = rest.split_at(end);
            let behind = behind.trim_start();
            let Some(value) = behind.strip_prefix('=') else {
                rest = behind;
                continue;
            };
            let value = value.trim_start();
            let (value, behind) = match value.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    let inner = &value[1..];
                    let end = inner.find(quote).unwrap_or(inner.len());
                    (&inner[..end], inner.get(end + 1..).unwrap_or(""))
                }
                Some(_) | None => {
                    let end = value.find(|c: char| c.is_ascii_whitespace());
                    value.split_at(end.unwrap_or(value.len()))
                }
            };
            if name.eq_ignore_ascii_case(wanted) {
                return Some(decode(value));
            }
            rest = behind;
        }
    }
}

/// Where the element ends whose content is not markup.
fn end_of(text: &str, name: &str) -> usize {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let begins = from + at + 2;
        let end = bytes.get(begins..begins + name.len());
        if end.is_some_and(|end| end.eq_ignore_ascii_case(name.as_bytes())) {
            return begins - 2;
        }
        from = begins;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(html: &str, text: &str) {
        let base = Url::parse("https://a.test/d/p", 100).expect("an address");
        assert_eq!(to_text(html, &base), text, "{html}");
    }

    #[test]
    fn a_page_becomes_what_a_reader_sees() {
        check(
            "<!doctype html><html><head><title> A &amp; B\n</title><style>p{}</style></head>\
             <body><h1>Head</h1>\n<p>One <b>bold</b>\n word.<p>Two<br>lines</p>\
             <ul><li>a</li>\n<li>b<ol><li>c<li>d</ol></ul><div>end</div></body>",
            "Title: A & B\n\n# Head\n\nOne bold word.\n\nTwo\nlines\n\n- a\n- b\n  1. c\n  2. d\n\nend",
        );
        check(
            "<pre><code>fn a() {\n    b &lt; c\n}\n</code></pre>x <code>y</code>.",
            "```\nfn a() {\n    b < c\n}\n```\n\nx `y`.",
        );
        check(
            "<table><tr><th>a<th>b</tr><tr><td>1</td><td>2</td></tr></table>",
            "a | b\n1 | 2",
        );
        check(
            "<a href='/x?a=1&amp;b'>one</a>, <A HREF=\"https://b.test/\">two</A>, \
             <a href=\"#f\">three</a> <a href=javascript:x>four</a> <a href=/e></a> \
             <img alt='a > b' src=x><a href=y>six",
            "[one](https://a.test/x?a=1&b), [two](https://b.test/), three four \
             [image: a > b][six](https://a.test/d/y)",
        );
    }

    #[test]
    fn what_is_not_for_readers_is_left_out() {
        check("a<script>if (a<b) { '</p>' }</SCRIPT>b", "ab");
        check("a<!-- <p>no --> b<svg><title>no</title></svg>", "a b");
        check("a<script>never closed", "a");
        check("a<!-- never closed", "a");
        check("a<p title=\"never closed", "a");
        check("a\u{7}\u{1b}[1m&#27;&#0;&#xD800;b", "a[1m\u{fffd}b");
    }

    #[test]
    fn what_is_no_markup_stays() {
        check(
            "1 < 2 & 3 > 2 &bogus; &#xZ; &amp",
            "1 < 2 & 3 > 2 &bogus; &#xZ; &amp",
        );
        check("&uuml;&#252;&#xfc;&nbsp;&hellip;", "üüü …");
        check("", "");
        check("<", "<");
        check("</", "");
        check("<é>", "<é>");
    }

    #[test]
    fn a_page_that_means_harm_takes_no_longer_than_another() {
        // A link is as long as the address of its page.
        let base = format!("https://a.test/{}/", "x".repeat(8000));
        let base = Url::parse(&base, 8192).expect("an address");
        for piece in [
            "<",
            "<a",
            "<a ",
            "<a href=x>",
            "<!--",
            "<script>",
            "</",
            "&",
            "&#",
            "<ul>",
            "<a b='",
            "<li>",
            "<pre>\n",
            "<p>",
            "<title>",
            "<x =",
            "]",
            "<td>",
            "<a href=x>y",
            "<a href=x></a>",
        ] {
            let html = piece.repeat((1 << 18) / piece.len());
            let text = to_text(&html, &base);
            assert!(text.len() <= 2 << 20, "{piece}: {}", text.len());
        }
    }
}
