//! Which path a `file:` address names: editors refer to files by such addresses, and models pass on
//! what they read. Knows no file system.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// The path that a `file:` address names (RFC 8089), its percent signs read, without a fragment (a
/// line, where editors name one) or query. Any other text is a path already and comes back as it is.
///
/// # Errors
///
/// What is wrong with the address: another host, no absolute path, a percent sign without its two
/// digits, bytes that are no UTF-8 text.
pub fn path(text: &str) -> Result<Cow<'_, str>, &'static str> {
    let Some(rest) = after_scheme(text) else {
        return Ok(Cow::Borrowed(text));
    };
    let rest = rest.split(['#', '?']).next().unwrap_or_default();
    let named = match rest.strip_prefix("//") {
        None => rest,
        Some(rest) => {
            let at = rest.find('/').unwrap_or(rest.len());
            let (host, named) = rest.split_at(at);
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return Err("it is an address on another host");
            }
            named
        }
    };
    if !named.starts_with('/') {
        return Err("it is an address without an absolute path");
    }
    decoded(named).map(Cow::Owned)
}

/// Whether a text is a `file:` address.
pub fn is_link(text: &str) -> bool {
    after_scheme(text).is_some()
}

/// What follows `file:`, also behind the `@` that marks it in a prompt.
fn after_scheme(text: &str) -> Option<&str> {
    let text = text.strip_prefix('@').unwrap_or(text);
    let (scheme, rest) = text.split_once(':')?;
    (scheme.eq_ignore_ascii_case("file") && rest.starts_with('/')).then_some(rest)
}

fn decoded(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err("it is an address with a percent sign that stands for nothing");
        };
        // Two hexadecimal digits are a byte.
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| "it is an address whose path is no UTF-8 text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_path_and_a_path_is_itself() {
        for (text, expected) in [
            ("file:///w/a.rs", Ok("/w/a.rs")),
            ("@file:///w/a.rs", Ok("/w/a.rs")),
            ("FILE://localhost/w/a.rs", Ok("/w/a.rs")),
            ("file:/w/a.rs", Ok("/w/a.rs")),
            ("file:///w/a%20b%C3%A9%23.rs#L10:20", Ok("/w/a bé#.rs")),
            ("file:///w/x?line=3", Ok("/w/x")),
            ("file://", Err("it is an address without an absolute path")),
            ("file://host/w/x", Err("it is an address on another host")),
            (
                "file://localhost",
                Err("it is an address without an absolute path"),
            ),
            (
                "file:///w/%2",
                Err("it is an address with a percent sign that stands for nothing"),
            ),
            (
                "file:///w/%zz",
                Err("it is an address with a percent sign that stands for nothing"),
            ),
            (
                "file:///w/%ff",
                Err("it is an address whose path is no UTF-8 text"),
            ),
            ("/w/a%20b", Ok("/w/a%20b")),
            ("a.rs", Ok("a.rs")),
            ("file:name", Ok("file:name")),
            ("@scope/package", Ok("@scope/package")),
            ("https://host/x", Ok("https://host/x")),
            ("", Ok("")),
        ] {
            assert_eq!(path(text), expected.map(Cow::Borrowed), "{text}");
        }
    }
}
