//! URLs, as far as they must be understood: their origin, and what a reference in them means. Knows
//! no transport.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The parts of an absolute URL with an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts<'a> {
    scheme: &'a str,
    authority: &'a str,
    /// From the first `/` on; may be empty.
    path: &'a str,
}

/// Those of an `http` or `https` URL.
fn parts(url: &str) -> Option<Parts<'_>> {
    let web =
        |scheme: &str| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    parts_of_any(url).filter(|parts| web(parts.scheme))
}

fn parts_of_any(url: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '\\';
    if host.is_empty() || host.starts_with(':') || !url.chars().all(plain) {
        return None;
    }
    Some(Parts {
        scheme,
        authority,
        path,
    })
}

/// Whether it is an absolute URL that can be asked.
pub(super) fn is_http(url: &str) -> bool {
    parts(url).is_some()
}

/// Scheme, host and port, in one spelling; none if it is no such URL.
pub(super) fn origin(url: &str) -> Option<String> {
    let Parts {
        scheme, authority, ..
    } = parts(url)?;
    let scheme = scheme.to_ascii_lowercase();
    let host = authority.rsplit('@').next()?.to_ascii_lowercase();
    let default = if scheme == "https" { ":443" } else { ":80" };
    let host = host.strip_suffix(default).unwrap_or(&host);
    Some(format!("{scheme}://{host}"))
}

/// What `reference`, found at `base`, means (RFC 3986, without `.` and `..`). None if `base` is no
/// such URL or the reference leads to another scheme.
pub(super) fn resolve(base: &str, reference: &str) -> Option<String> {
    let reference = reference.trim();
    let Parts {
        scheme,
        authority,
        path,
    } = parts(base)?;
    let path = path.split(['?', '#']).next().unwrap_or("");
    let found = if reference.contains("://") {
        String::from(reference)
    } else if let Some(rest) = reference.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if reference.starts_with('/') {
        format!("{scheme}://{authority}{reference}")
    } else if reference.starts_with('?') {
        format!("{scheme}://{authority}{path}{reference}")
    } else {
        let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
        format!("{scheme}://{authority}{folder}{reference}")
    };
    let found = match found.split_once('#') {
        Some((before, _)) => String::from(before),
        None => found,
    };
    is_http(&found).then_some(found)
}

/// The address of an absolute path.
pub(super) fn of_path(path: &str) -> String {
    let mut uri = String::from("file://");
    if !path.starts_with('/') {
        uri.push('/');
    }
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' | b':' => {
                uri.push(char::from(byte));
            }
            b'\\' => uri.push('/'),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// What of a URL of any scheme must not be shown, each with what it is called: what stands before `@` (a `password`),
/// the values of its query, and parts of its path that look like keys (no name).
pub(super) fn secrets(url: &str) -> impl Iterator<Item = (&str, &str)> {
    let login = login(url);
    let password = login.and_then(|login| login.split_once(':'));
    let password = password.map(|(_, password)| password);
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let values = query
        .split(['&', '#'])
        .filter_map(|pair| pair.split_once('='));
    let path = parts_of_any(url).map_or("", |it| it.path);
    let path = path.split(['?', '#']).next().unwrap_or("").split('/');
    let key = |part: &&str| part.len() >= 20 && part.bytes().any(|byte| byte.is_ascii_digit());
    let keys = path.filter(key).map(|key| ("", key));
    let login = login.into_iter().chain(password);
    login
        .map(|text| ("password", text))
        .chain(values)
        .chain(keys)
}

/// What stands before `@`.
pub(super) fn login(url: &str) -> Option<&str> {
    let (login, _) = parts_of_any(url)?.authority.rsplit_once('@')?;
    Some(login)
}

/// `text` without its percent signs, if it has some and is text then.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let digits = more.get(..2).and_then(|two| core::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).ok().filter(|plain| plain != text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_mean_what_they_mean_where_they_were_found() {
        let base = "http://h:8080/base/sse?x=1";
        for (reference, expected) in [
            ("/messages?s=1", Some("http://h:8080/messages?s=1")),
            ("messages?x=1", Some("http://h:8080/base/messages?x=1")),
            ("?s=2", Some("http://h:8080/base/sse?s=2")),
            ("//o/m", Some("http://o/m")),
            ("https://o/m#f", Some("https://o/m")),
            ("ftp://o/m", None),
            ("http://", None),
        ] {
            assert_eq!(resolve(base, reference).as_deref(), expected, "{reference}");
        }
        assert_eq!(resolve("http://h", "m").as_deref(), Some("http://h/m"));
    }

    #[test]
    fn one_origin_has_one_spelling() {
        for (one, other, same) in [
            ("http://h/a", "HTTP://H:80/b", true),
            ("https://h/a", "https://h:443", true),
            ("https://h/a", "http://h/a", false),
            ("http://h:1/a", "http://h:2/a", false),
            ("http://u:p@h/a", "http://h/", true),
        ] {
            assert_eq!(origin(one) == origin(other), same, "{one} {other}");
        }
        for bad in [
            "",
            "h",
            "file:///x",
            "http://",
            "http:///x",
            "http://:80/",
            "http://a b/",
        ] {
            assert_eq!(origin(bad), None, "{bad}");
        }
    }

    #[test]
    fn logins_and_values_of_a_query_are_secret() {
        let found: Vec<_> = secrets("https://me:pw@h/a?key=abc&x=1#f").collect();
        let login = [("password", "me:pw"), ("password", "pw")];
        assert_eq!(found, [login[0], login[1], ("key", "abc"), ("x", "1")]);
        assert_eq!(secrets("pg://me:pw@h/a").collect::<Vec<_>>(), login);
        let found: Vec<_> = secrets("https://h/mcp/0123456789abcdefghij/sse#f").collect();
        assert_eq!(found, [("", "0123456789abcdefghij")]);
        for (text, expected) in [
            ("a%2Fb", Some("a/b")),
            ("a%", None),
            ("%ff", None),
            ("a", None),
        ] {
            assert_eq!(decoded(text).as_deref(), expected, "{text}");
        }
    }
}
