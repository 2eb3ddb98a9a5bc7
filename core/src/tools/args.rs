//! Arguments of tool calls: read with errors that name the parameter, and shown on one line.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::text;

/// The arguments of one call: the members of a JSON object. Members nobody asks for are ignored;
/// `null` counts as absent.
pub(super) struct Args<'a> {
    members: BTreeMap<String, &'a RawValue>,
    /// Where it stands in the arguments, as a prefix for names: `edits[2].`.
    at: String,
}

impl<'a> Args<'a> {
    /// Reads the text. Blank text counts as `{}`.
    pub(super) fn parse(arguments: &'a str) -> Result<Self, String> {
        let arguments = arguments.trim();
        let text = if arguments.is_empty() {
            "{}"
        } else {
            arguments
        };
        let members = serde_json::from_str(text)
            .map_err(|error| format!("the arguments are no JSON object: {error}"))?;
        Ok(Self {
            members,
            at: String::new(),
        })
    }

    pub(super) fn opt_string(&self, name: &str) -> Result<Option<String>, String> {
        self.read(name, "a string")
    }

    pub(super) fn string(&self, name: &str) -> Result<String, String> {
        self.required(name, self.opt_string(name)?)
    }

    /// A string that is not blank.
    pub(super) fn opt_words(&self, name: &str) -> Result<Option<String>, String> {
        match self.opt_string(name)? {
            Some(words) if words.trim().is_empty() => Err(format!("`{}{name}` is blank", self.at)),
            words => Ok(words),
        }
    }

    pub(super) fn words(&self, name: &str) -> Result<String, String> {
        self.required(name, self.opt_words(name)?)
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        Ok(self.read(name, "true or false")?.unwrap_or(false))
    }

    /// A whole number, not negative; `2.0` counts.
    pub(super) fn opt_count(&self, name: &str) -> Result<Option<u64>, String> {
        let what = "a whole number, 0 or more";
        let Some(number) = self.read::<f64>(name, what)? else {
            return Ok(None);
        };
        // Exact below 2^53, which no file has lines for.
        let count = number as u64;
        if number >= 0.0 && (count as f64 == number || number > 9e15) {
            Ok(Some(count))
        } else {
            Err(format!("`{}{name}` must be {what}, not {number}", self.at))
        }
    }

    /// A time above zero, in seconds; cut to `max`.
    pub(super) fn opt_seconds(
        &self,
        name: &str,
        max: Duration,
    ) -> Result<Option<Duration>, String> {
        let what = "a number of seconds above 0";
        let Some(seconds) = self.read::<f64>(name, what)? else {
            return Ok(None);
        };
        if seconds > 0.0 {
            let asked = Duration::try_from_secs_f64(seconds).unwrap_or(max);
            Ok(Some(asked.clamp(Duration::from_millis(1), max)))
        } else {
            Err(format!("`{}{name}` must be {what}, not {seconds}", self.at))
        }
    }

    /// The objects of an array.
    pub(super) fn opt_list(&self, name: &str) -> Result<Option<Vec<Args<'a>>>, String> {
        let what = "an array of objects";
        let Some(items) = self.read::<Vec<&'a RawValue>>(name, what)? else {
            return Ok(None);
        };
        let read = |(index, item): (usize, &&'a RawValue)| {
            let at = format!("{}{name}[{}].", self.at, index + 1);
            let members = serde_json::from_str(item.get()).map_err(|_| {
                let place = at.trim_end_matches('.');
                format!("`{place}` must be an object, not {}", kind(item))
            })?;
            Ok(Args { members, at })
        };
        items
            .iter()
            .enumerate()
            .map(read)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    pub(super) fn opt_strings(&self, name: &str) -> Result<Option<Vec<String>>, String> {
        self.read(name, "an array of strings")
    }

    /// Whether it is there and not null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members
            .get(name)
            .is_some_and(|raw| raw.get() != "null")
    }

    fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, String> {
        value.ok_or_else(|| format!("`{}{name}` is missing", self.at))
    }

    fn read<T: Deserialize<'a>>(&self, name: &str, what: &str) -> Result<Option<T>, String> {
        let Some(raw) = self.members.get(name).copied() else {
            return Ok(None);
        };
        if raw.get() == "null" {
            return Ok(None);
        }
        serde_json::from_str(raw.get())
            .map(Some)
            .map_err(|_| format!("`{}{name}` must be {what}, not {}", self.at, kind(raw)))
    }
}

fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(_) | None => "a number",
    }
}

/// The arguments for a card: the same JSON object on one line, strings over `max` bytes cut with a
/// note. None if the text is no JSON object.
pub(crate) fn shown(arguments: &str, max: usize) -> Option<String> {
    let arguments = arguments.trim();
    if arguments.is_empty() {
        return Some("{}".to_string());
    }
    serde_json::from_str::<BTreeMap<String, &RawValue>>(arguments).ok()?;
    let mut out = String::with_capacity(arguments.len());
    let mut rest = arguments;
    while let Some(c) = rest.chars().next() {
        if c == '"' {
            let end = string_end(rest);
            push_string(&mut out, &rest[..end], max);
            rest = &rest[end..];
        } else {
            if !c.is_ascii_whitespace() {
                out.push(c);
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    Some(out)
}

/// The length of the string literal that `text` begins with.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn push_string(out: &mut String, literal: &str, max: usize) {
    if literal.len() <= max {
        out.push_str(literal);
        return;
    }
    match serde_json::from_str::<String>(literal) {
        Ok(value) if value.len() > max => {
            let kept = text::cut(&value, max);
            let left_out = value.len() - kept.len();
            let cut = format!("{kept}… [{left_out} bytes not shown]");
            // A string always has a JSON form.
            out.push_str(&serde_json::to_string(&cut).unwrap_or_default());
        }
        Ok(_) | Err(_) => out.push_str(literal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_parameter_and_what_it_must_be() {
        let max = Duration::from_secs(60);
        let args = Args::parse(
            r#"{"s":1,"b":"true","n":-1,"f":1.5,"t":0,"u":"5","l":[1],"e":[{"x":3}],"z":null}"#,
        )
        .expect("an object");
        let none = "`missing` is missing";
        assert_eq!(args.string("missing").unwrap_err(), none);
        assert_eq!(args.string("z").unwrap_err(), "`z` is missing");
        assert_eq!(
            args.string("s").unwrap_err(),
            "`s` must be a string, not a number"
        );
        assert_eq!(
            args.flag("b").unwrap_err(),
            "`b` must be true or false, not a string"
        );
        assert!(args.opt_count("n").unwrap_err().contains("not -1"));
        assert!(args.opt_count("f").unwrap_err().contains("not 1.5"));
        assert!(
            args.opt_seconds("t", max)
                .unwrap_err()
                .contains("above 0, not 0")
        );
        assert!(args.opt_seconds("n", max).is_err());
        assert!(
            args.opt_seconds("u", max)
                .unwrap_err()
                .contains("not a string")
        );
        assert_eq!(
            args.opt_list("l").err().unwrap(),
            "`l[1]` must be an object, not a number"
        );
        let list = args.opt_list("e").unwrap().unwrap();
        assert_eq!(
            list[0].string("x").unwrap_err(),
            "`e[1].x` must be a string, not a number"
        );
    }

    #[test]
    fn blank_text_counts_as_no_arguments_and_cut_text_is_an_error() {
        assert!(Args::parse("").is_ok());
        assert!(Args::parse(" \n").is_ok());
        for bad in [
            "{",
            "[]",
            "null",
            "\"x\"",
            "{path: 'a'",
            "{\"a\":1}x",
            "{\"path\":\"a",
        ] {
            assert!(Args::parse(bad).is_err(), "{bad}");
            assert_eq!(shown(bad, 10), None, "{bad}");
        }
    }

    #[test]
    fn large_numbers_are_bounded() {
        let args = Args::parse(r#"{"t":1e12,"u":1e308,"n":1e30,"m":0.5,"w":3.0}"#).unwrap();
        let max = Duration::from_secs(60);
        assert_eq!(args.opt_seconds("t", max), Ok(Some(max)));
        assert_eq!(args.opt_seconds("u", max), Ok(Some(max)));
        assert_eq!(
            args.opt_seconds("m", max),
            Ok(Some(Duration::from_millis(500)))
        );
        assert_eq!(args.opt_count("n"), Ok(Some(u64::MAX)));
        assert_eq!(args.opt_count("w"), Ok(Some(3)));
    }

    #[test]
    fn shown_arguments_are_one_line_with_long_strings_cut_on_character_boundaries() {
        assert_eq!(shown("", 9).as_deref(), Some("{}"));
        let pretty = "{\n  \"a b\" : [ 1, \"x y\\n\" ]\n}";
        assert_eq!(shown(pretty, 9).as_deref(), Some(r#"{"a b":[1,"x y\n"]}"#));
        assert_eq!(
            shown(r#"{"a":"漢漢漢漢"}"#, 7).as_deref(),
            Some(r#"{"a":"漢漢… [6 bytes not shown]"}"#)
        );
        let escapes = r#"{"a":"\u0001\u0001\u0001\u0001"}"#;
        assert_eq!(shown(escapes, 4).as_deref(), Some(escapes));
    }
}
