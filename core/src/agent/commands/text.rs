//! What stands in the file of a command or skill: a head of `key: value` lines between two lines of
//! `---`, and the text for the model. Pure.
//!
//! Of YAML it reads what such heads are made of: plain, quoted and folded values. Keys that nobody
//! asks for are passed over.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// The text of a file, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text<'a> {
    head: BTreeMap<String, String>,
    /// What comes behind the head.
    pub(super) body: &'a str,
}

impl<'a> Text<'a> {
    /// Reads a file. The error says what is wrong with it.
    pub(super) fn read(text: &'a str) -> Result<Self, &'static str> {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let mut lines = text.split_inclusive('\n');
        let first = lines.next().unwrap_or_default();
        if first.trim_end() != "---" {
            return Ok(Self {
                head: BTreeMap::new(),
                body: text,
            });
        }
        let mut read = first.len();
        let mut head = Vec::new();
        for line in lines {
            read += line.len();
            if line.trim_end() == "---" {
                return Ok(Self {
                    head: members(&head),
                    body: &text[read..],
                });
            }
            head.push(line.trim_end());
        }
        Err("its head begins with `---` and has no end")
    }

    /// The value of a key of the head, on one line; none if it is blank.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let value = self.head.get(key)?.as_str();
        (!value.is_empty()).then_some(value)
    }

    /// What it says first, without the marks of a title.
    pub(super) fn first_line(&self) -> &'a str {
        let mut lines = self.body.lines().map(str::trim);
        let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
        first.trim_start_matches('#').trim_start()
    }
}

/// The members of a head. Indented lines go on with the value before them.
fn members(lines: &[&str]) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in lines {
        if line.starts_with([' ', '\t']) || line.is_empty() {
            if let Some(value) = last.as_ref().and_then(|key| all.get_mut(key)) {
                let more = line.trim();
                if !value.is_empty() && !more.is_empty() {
                    value.push(' ');
                }
                value.push_str(more);
            }
            continue;
        }
        last = None;
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        if !key.starts_with('#') {
            let key = String::from(key.trim());
            // The marks of a value that stands on the lines behind it.
            let value = match value.trim() {
                ">" | "|" | ">-" | "|-" | ">+" | "|+" => "",
                value => value,
            };
            all.insert(key.clone(), value.into());
            last = Some(key);
        }
    }
    for value in all.values_mut() {
        *value = unquoted(value);
    }
    all
}

/// A value without its quotes.
fn unquoted(value: &str) -> String {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(inside) = inside('"') {
        return inside.replace("\\\"", "\"").replace("\\\\", "\\");
    }
    match inside('\'') {
        Some(inside) => inside.replace("''", "'"),
        // A comment behind a plain value.
        None => value
            .split(" #")
            .next()
            .unwrap_or_default()
            .trim_end()
            .into(),
    }
}

/// Fills in what was typed behind a command's name: `$ARGUMENTS` is all of it, `$1`, `$2`, … its
/// words (quotes keep words together). `\$` is a plain `$`. A text that asks for none of them gets it
/// at its end. What is filled in is not looked at again.
pub(super) fn fill(body: &str, arguments: &str) -> String {
    let words = words(arguments);
    let mut out = String::with_capacity(body.len() + arguments.len());
    let mut rest = body;
    let mut used = false;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('\\') {
            out.push_str(before);
            out.push('$');
            rest = &from[1..];
            continue;
        }
        out.push_str(before);
        let name = &from[1..];
        let digits = name.len() - name.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if let Some(after) = name.strip_prefix("ARGUMENTS") {
            out.push_str(arguments);
            rest = after;
            used = true;
        } else if digits > 0 && !name.starts_with('0') {
            let number: usize = name[..digits].parse().unwrap_or(usize::MAX);
            out.push_str(words.get(number - 1).map_or("", String::as_str));
            rest = &name[digits..];
            used = true;
        } else {
            out.push('$');
            rest = name;
        }
    }
    out.push_str(rest);
    if !used && !arguments.is_empty() {
        out.truncate(out.trim_end().len());
        out.push_str("\n\n");
        out.push_str(arguments);
    }
    out
}

/// Words apart by white space; what stands in quotes is one.
fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') if word.is_none() => {
                quote = Some(c);
                word = Some(String::new());
            }
            (None, c) if c.is_whitespace() => all.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_and_the_rest_is_left_as_it_is() {
        let file = "---\r\nname: x\n# no: key\ndescription: >-\n  Does\n  this: and\n\n  that\nargument-hint: \"[a \\\"b\\\"]\"\ntools: Read, Bash  # some\nlist:\n  - a\nempty:\nquote: 'it''s'\n---\n\n# Body\n---\n";
        let text = Text::read(file).expect("it is good");
        for (key, value) in [
            ("name", Some("x")),
            ("description", Some("Does this: and that")),
            ("argument-hint", Some("[a \"b\"]")),
            ("tools", Some("Read, Bash")),
            ("quote", Some("it's")),
            ("empty", None),
            ("# no", None),
            ("absent", None),
        ] {
            assert_eq!(text.get(key), value, "{key}");
        }
        assert_eq!(text.body, "\n# Body\n---\n");
        assert_eq!(text.first_line(), "Body");
    }

    #[test]
    fn a_file_without_a_head_is_all_body_and_one_without_an_end_is_refused() {
        for body in ["", "a\n---\nb", " ---\na: b\n---\n"] {
            let text = Text::read(body).expect("it is good");
            assert_eq!((text.body, text.head.len()), (body, 0));
        }
        assert_eq!(Text::read("\u{FEFF}---\n---\nx").expect("good").body, "x");
        assert!(Text::read("---\na: b\n").is_err());
    }

    #[test]
    fn what_was_typed_is_filled_in_once() {
        for (body, arguments, expected) in [
            ("do $ARGUMENTS now", "a b", "do a b now"),
            ("$2 and $1", "a 'b c'", "b c and a"),
            ("$1-$3", "a", "a-"),
            ("$10", "1 2 3 4 5 6 7 8 9 ten", "ten"),
            ("$1 $ARGUMENTS", "$2 x", "$2 $2 x"),
            ("costs \\$1, $0 $ $x $$1", "a", "costs $1, $0 $ $x $a"),
            ("do\n", "a b", "do\n\na b"),
            ("do\n", "", "do\n"),
            ("$99999999999999999999", "a", ""),
            ("x $1", "don't \"\" it's", "x don't"),
            ("[$2]", "a \"\"", "[]"),
        ] {
            assert_eq!(fill(body, arguments), expected, "{body:?} {arguments:?}");
        }
    }
}
