//! Addresses of the web as the model and servers write them: checked, and made plain enough that
//! whoever sends the request reads the same host out of them as the gate did. Knows no tool.

use alloc::format;
use alloc::string::{String, ToString};
use core::net::IpAddr;

use fluent_uri::{Uri, UriRef};

/// An address that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    /// All of it but the fragment, in ASCII.
    text: String,
    /// The host: lower case, without the brackets of an IPv6 address and without a dot at its end.
    host: String,
    port: u16,
    secure: bool,
}

impl Url {
    /// Reads an address; the error is for the model.
    pub(super) fn parse(text: &str, max: usize) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > max {
            return Err(format!("is longer than {max} bytes"));
        }
        let uri = Uri::parse(plain(text))
            .map_err(|_| "is no address such as `https://example.org/page`".to_string())?;
        Self::of(&uri)
    }

    /// The address that `reference` means on a page of this one.
    pub(super) fn join(&self, reference: &str, max: usize) -> Result<Self, String> {
        if reference.len() > max {
            return Err(format!("is longer than {max} bytes"));
        }
        let not = |_| "is no address".to_string();
        // It was made from one.
        let base = Uri::parse(self.text.as_str()).map_err(|_| "is no address".to_string())?;
        let reference = UriRef::parse(plain(reference.trim())).map_err(not)?;
        let target = reference
            .resolve_against(&base)
            .map_err(|_| "is no address".to_string())?;
        // What is short at a long address is long.
        if target.as_str().len() > max {
            return Err(format!("is longer than {max} bytes"));
        }
        Self::of(&target)
    }

    fn of(uri: &Uri<String>) -> Result<Self, String> {
        let scheme = uri.scheme().as_str();
        let secure = scheme.eq_ignore_ascii_case("https");
        if !secure && !scheme.eq_ignore_ascii_case("http") {
            return Err("must begin with https:// or http://".into());
        }
        let authority = uri.authority().ok_or("names no host")?;
        if authority.has_userinfo() {
            return Err("must not hold a user name or a password".into());
        }
        let port = match authority.port_to_u16() {
            Ok(Some(0)) | Err(_) => return Err("has no port that there can be".into()),
            Ok(Some(port)) => port,
            Ok(None) if secure => 443,
            Ok(None) => 80,
        };
        let host = authority.host().to_ascii_lowercase();
        let host = match host.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            Some(inner) if inner.parse::<core::net::Ipv6Addr>().is_ok() => inner.to_string(),
            Some(_) => return Err("names no host".into()),
            None => {
                let legal = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
                let name = host.strip_suffix('.').unwrap_or(&host);
                if name.is_empty() || name.len() > 253 || !name.chars().all(legal) {
                    let why = "names no host, or one that is not written in ASCII (`xn--…`)";
                    return Err(why.into());
                }
                name.to_string()
            }
        };
        Ok(Self {
            text: uri.strip_fragment().as_str().to_string(),
            host,
            port,
            secure,
        })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The address that stands in the place of a name, if one does.
    pub(super) fn literal(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    pub(super) fn is_secure(&self) -> bool {
        self.secure
    }

    /// Whether who may ask for this one may ask for `other` too: the same host, at the same port or
    /// at the ports that the schemes have.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        let usual = |it: &Self| it.port == if it.secure { 443 } else { 80 };
        self.host == other.host && (self.port == other.port || usual(self) && usual(other))
    }
}

/// The same with everything that an address cannot hold as `%XX`, beyond its host: people and pages
/// write spaces and letters of all kinds.
fn plain(text: &str) -> String {
    // The host is left as it is: what is no host there must not become one.
    let host = text.find("//").filter(|at| {
        let scheme = text[..*at].strip_suffix(':').unwrap_or(&text[..*at]);
        scheme.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    let body = host.map_or(0, |at| {
        let host = &text[at + 2..];
        let end = host.find(['/', '?', '#']).unwrap_or(host.len());
        at + 2 + end
    });
    let (head, tail) = text.split_at(body);
    let mut out = String::from(head);
    let bytes = tail.as_bytes();
    let mut fragment = false;
    for (at, byte) in bytes.iter().enumerate() {
        let hex = |n: usize| bytes.get(at + n).is_some_and(u8::is_ascii_hexdigit);
        let legal = match byte {
            b'%' => hex(1) && hex(2),
            // One begins the fragment; there is no second one.
            b'#' => !core::mem::replace(&mut fragment, true),
            b'!' | b'$' | b'&'..=b';' | b'=' | b'?' | b'@' | b'_' | b'~' => true,
            byte => byte.is_ascii_alphanumeric(),
        };
        if legal {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 200;

    #[test]
    fn an_address_is_read_as_whoever_sends_the_request_reads_it() {
        #[track_caller]
        fn check(text: &str, url: &str, host: &str) {
            let read = Url::parse(text, MAX).expect(text);
            assert_eq!((read.as_str(), read.host()), (url, host));
            assert_eq!(Url::parse(url, MAX).as_ref(), Ok(&read), "{text}");
        }
        check("https://a.test/x", "https://a.test/x", "a.test");
        check(" http://A.Test. ", "http://A.Test.", "a.test");
        check("https://a.test/x#y", "https://a.test/x", "a.test");
        check("https://a.test:8443/", "https://a.test:8443/", "a.test");
        check(
            "https://a.test/ä b?q=<1>&r=[2]|%zz%41#ü",
            "https://a.test/%C3%A4%20b?q=%3C1%3E&r=%5B2%5D%7C%25zz%41",
            "a.test",
        );
        check("http://[::1]:8/x", "http://[::1]:8/x", "::1");
        check("http://127.0.0.1/@b", "http://127.0.0.1/@b", "127.0.0.1");
        check(
            "http://a.test?x=//b.test",
            "http://a.test?x=//b.test",
            "a.test",
        );
        check(
            "http://a.test/\\b.test",
            "http://a.test/%5Cb.test",
            "a.test",
        );
    }

    #[test]
    fn what_is_no_plain_address_of_the_web_is_refused() {
        for text in [
            "",
            "a.test/x",
            "//a.test/x",
            "/x",
            "ftp://a.test/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/plain,x",
            "http:///x",
            "http://",
            "http:a.test",
            "http://user@a.test/",
            "http://user:pass@a.test/",
            "http://@a.test/",
            "http://a.test:0/",
            "http://a.test:70000/",
            "http://a.test:x/",
            "http://a.test\\@b.test/",
            "http://a%2etest/",
            "http://ä.test/",
            "http://a b.test/",
            "http://[::1/",
            "http://[v1.x]/",
            "http://[fe80::1%25eth0]/",
            "http://a.test\0.b.test/",
            "http://a.test\r\nx: y/",
        ] {
            assert!(Url::parse(text, MAX).is_err(), "{text:?}");
        }
        assert!(Url::parse(&format!("http://a.test/{}", "x".repeat(MAX)), MAX).is_err());
        // A secret that stands in an address does not come back in the error.
        let error = Url::parse("http://me:hunter22@a.test/", MAX).expect_err("refused");
        assert!(!error.contains("hunter22"), "{error}");
    }

    #[test]
    fn a_reference_is_resolved_and_checked_like_an_address() {
        let base = Url::parse("https://a.test/x/y?q", MAX).expect("an address");
        let check = |reference: &str, url: Option<&str>| {
            let joined = base.join(reference, MAX).ok();
            assert_eq!(joined.as_ref().map(Url::as_str), url, "{reference}");
        };
        check("z", Some("https://a.test/x/z"));
        check("../../../z", Some("https://a.test/z"));
        check("/a b", Some("https://a.test/a%20b"));
        check("?r", Some("https://a.test/x/y?r"));
        check("//b.test", Some("https://b.test"));
        check("http://b.test/", Some("http://b.test/"));
        check("https://u:p@b.test/", None);
        check("file:///etc/passwd", None);
        check("javascript:x", None);
        check("//u@b.test/", None);
        assert!(base.literal().is_none());
        let long = format!("https://a.test/{}/p", "x".repeat(MAX - 30));
        let long = Url::parse(&long, MAX).expect("an address");
        assert!(long.join("y", MAX).is_ok() && long.join("y", 100).is_err());
        let literal = Url::parse("http://[::1]/", MAX).expect("an address");
        assert!(literal.literal().is_some_and(|ip| ip.is_loopback()));
    }

    #[test]
    fn what_is_beside_an_address_has_its_host_and_port() {
        let url = |text| Url::parse(text, MAX).expect(text);
        for (a, b, beside) in [
            ("http://a.test/x", "https://a.test/y", true),
            ("http://a.test/x", "http://a.test:80/", true),
            ("http://a.test:81/", "https://a.test:81/", true),
            ("http://a.test/", "http://a.test:81/", false),
            ("http://a.test/", "http://b.a.test/", false),
        ] {
            assert_eq!(url(a).is_beside(&url(b)), beside, "{a} {b}");
        }
    }
}
