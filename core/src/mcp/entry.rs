//! One MCP server as somebody named it: what to run or where to ask, with what. Holds its secrets
//! and shows none of them.

mod hiding;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::address;
use crate::secret::Secret;

/// Longest name of a server, bytes: it stands in titles of cards and in every list.
const MAX_NAME: usize = 100;

/// A server that may be asked.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// What people call it; not empty, no spaces around it.
    pub name: String,
    /// How it is reached.
    pub way: Way,
    /// How long it has to be ready, each time; none: [`Limits::mcp_start`](crate::limits::Limits).
    pub start: Option<Duration>,
    /// What must never be shown.
    secrets: Vec<Secret>,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Way {
    /// A program, on its standard streams.
    Stdio {
        /// The program: absolute, or a name that is looked up.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables set for it.
        env: Vec<(String, Secret)>,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of every request; names in lower case.
        headers: Vec<(String, Secret)>,
    },
    /// HTTP with server-sent events, as it was before Streamable HTTP.
    Sse {
        /// The address.
        url: String,
        /// Headers of every request; names in lower case.
        headers: Vec<(String, Secret)>,
    },
}

/// A server as a file names it: whether its parts belong together is still to be seen.
#[derive(Clone, Default)]
pub struct Loose {
    /// `stdio`, `http` (also `streamable-http` and `streamable_http`) or `sse`, in any case; none:
    /// `http` if there is an address, else `stdio`.
    pub kind: Option<String>,
    /// The program.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables.
    pub env: BTreeMap<String, String>,
    /// The address.
    pub url: Option<String>,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
}

impl Loose {
    /// How the server is reached.
    ///
    /// # Errors
    ///
    /// A text for people, without values.
    pub fn way(self) -> Result<Way, &'static str> {
        let pairs = |pairs: BTreeMap<String, String>| {
            let pair = |(name, value): (String, String)| (name.clone(), Secret::new(name, value));
            pairs.into_iter().map(pair).collect()
        };
        let kind = match (self.kind, &self.url) {
            (Some(kind), _) => kind.trim().to_ascii_lowercase(),
            (None, Some(_)) => "http".into(),
            (None, None) => "stdio".into(),
        };
        match (kind.as_str(), self.command, self.url) {
            ("stdio", Some(command), None) if self.headers.is_empty() => Ok(Way::Stdio {
                command,
                args: self.args,
                env: pairs(self.env),
            }),
            ("http" | "streamable-http" | "streamable_http" | "sse", None, Some(url))
                if self.args.is_empty() && self.env.is_empty() =>
            {
                let headers = pairs(self.headers);
                Ok(match kind.as_str() {
                    "sse" => Way::Sse { url, headers },
                    _ => Way::Http { url, headers },
                })
            }
            ("stdio" | "http" | "streamable-http" | "streamable_http" | "sse", _, _) => {
                Err("it has a command, with args and env, or a url, with headers, and not both")
            }
            _ => Err("its type is not stdio, http or sse"),
        }
    }
}

/// What is wrong with an entry. Names no value: that may be secret.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryFault {
    /// No name.
    #[error("its name is empty")]
    Name,
    /// A name that could look like more than a name where it is shown.
    #[error("its name is longer than 100 bytes, or holds characters that are not seen")]
    Shown,
    /// No program.
    #[error("its command is empty")]
    Command,
    /// A text that no program can be given.
    #[error("a command, argument or variable holds a NUL")]
    Nul,
    /// A variable without a name, or with one that cannot be.
    #[error("a variable of its env has a name that is empty or holds `=`")]
    Variable,
    /// No address.
    #[error("its url is not an absolute http or https address")]
    Url,
    /// A header that cannot be sent.
    #[error("a header has a name or value that HTTP does not allow")]
    Header,
    /// A header that the transport sets itself.
    #[error("a header is one that the connection sets itself")]
    Reserved,
}

impl Entry {
    /// A server; the name loses the spaces around it.
    ///
    /// # Errors
    ///
    /// What cannot be run or asked is refused here, not when it is tried.
    pub fn new(name: &str, way: Way) -> Result<Self, EntryFault> {
        let name = name.trim();
        if name.is_empty() {
            return Err(EntryFault::Name);
        }
        if name.len() > MAX_NAME || name.contains(hides) {
            return Err(EntryFault::Shown);
        }
        let way = checked(way)?;
        let mut entry = Self {
            name: name.into(),
            start: None,
            secrets: Vec::new(),
            way,
        };
        entry.secrets = hiding::said(&entry.way);
        Ok(entry)
    }

    /// What it is, as 64 hexadecimal digits: the SHA-256 of all that says what is run or asked and
    /// with what, the values of variables and headers too. Not of its name.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        // With its length, so that no two lists of texts are the same bytes.
        let mut text = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        let pairs: &[(String, Secret)] = match &self.way {
            Way::Stdio { command, args, env } => {
                text("stdio");
                text(command);
                text(&format!("{}", args.len()));
                args.iter().for_each(|arg| text(arg));
                env
            }
            Way::Http { url, headers } => {
                text("http");
                text(url);
                headers
            }
            Way::Sse { url, headers } => {
                text("sse");
                text(url);
                headers
            }
        };
        let mut pairs: Vec<_> = pairs.iter().map(|(n, value)| (n, value.reveal())).collect();
        pairs.sort_unstable();
        for (name, value) in pairs {
            text(name);
            text(value);
        }
        let digest = hash.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// `text` without what must not be shown.
    pub fn redact(&self, text: &mut String) {
        for secret in &self.secrets {
            secret.redact(text);
        }
    }

    /// What of it is a key wherever it is met: who reads the list of processes meets it outside of
    /// what the server says. Not of a value that could be an ordinary word.
    pub fn keys(&self) -> Vec<Secret> {
        hiding::keys(&self.way)
    }

    /// What is run or asked, on one line, without what must not be shown.
    pub fn describe(&self) -> String {
        let mut text = match &self.way {
            Way::Stdio { command, args, .. } => {
                let words = core::iter::once(command.as_str());
                let words: Vec<&str> = words.chain(args.iter().map(String::as_str)).collect();
                words.join(" ")
            }
            Way::Http { url, .. } | Way::Sse { url, .. } => url.clone(),
        };
        self.redact(&mut text);
        super::catalogue::one_line(&text, 1000)
    }

    /// An entry of a project's file at length, for who is to decide on it: every part on a line of
    /// its own, what does not print shown by its number. Nothing is left out by which it could choose
    /// what is run: values are hidden of headers, and of variables whose names say that they hold a key.
    pub fn details(&self) -> String {
        let mut text = String::new();
        let mut line = |what: &str, value: &str| {
            text.push_str(&format!("{what}: {}\n", printable(value)));
        };
        let (kind, pairs) = match &self.way {
            Way::Stdio { command, args, env } => {
                line("command", command);
                for arg in args {
                    line("argument", arg);
                }
                ("variable", env)
            }
            Way::Http { url, headers } | Way::Sse { url, headers } => {
                line("address", url);
                ("header", headers)
            }
        };
        for (name, value) in pairs {
            // A program that is asked for a password is a program.
            let key = hiding::is_telling(name) && !name.to_ascii_uppercase().ends_with("ASKPASS");
            let hidden = kind == "header" || key;
            let value = if hidden {
                "[not shown]"
            } else {
                value.reveal()
            };
            line(kind, &format!("{name}={value}"));
        }
        text
    }
}

/// Whether a character could hide a part of a text, or make it look like another.
fn hides(c: char) -> bool {
    crate::shown::deceives(c)
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

/// `text` with what could hide a part of it shown by its number.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if hides(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

fn checked(way: Way) -> Result<Way, EntryFault> {
    match way {
        Way::Stdio { command, args, env } => {
            if command.trim().is_empty() {
                return Err(EntryFault::Command);
            }
            let texts = args.iter().chain([&command]);
            let values = env.iter().map(|(_, value)| value.reveal());
            if texts
                .map(String::as_str)
                .chain(values)
                .any(|it| it.contains('\0'))
            {
                return Err(EntryFault::Nul);
            }
            let bad = |name: &str| name.trim().is_empty() || name.contains(['=', '\0']);
            if env.iter().any(|(name, _)| bad(name)) {
                return Err(EntryFault::Variable);
            }
            Ok(Way::Stdio { command, args, env })
        }
        Way::Http { url, headers } => {
            let (url, headers) = checked_http(&url, headers)?;
            Ok(Way::Http { url, headers })
        }
        Way::Sse { url, headers } => {
            let (url, headers) = checked_http(&url, headers)?;
            Ok(Way::Sse { url, headers })
        }
    }
}

type Headers = Vec<(String, Secret)>;

fn checked_http(url: &str, headers: Headers) -> Result<(String, Headers), EntryFault> {
    let url = url.trim();
    if !address::is_http(url) {
        return Err(EntryFault::Url);
    }
    let mut checked = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let name = name.trim().to_ascii_lowercase();
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let visible = |c: char| c == '\t' || !c.is_control();
        if name.is_empty() || !name.bytes().all(token) || !value.reveal().chars().all(visible) {
            return Err(EntryFault::Header);
        }
        const OURS: [&str; 7] = [
            "content-length",
            "content-type",
            "transfer-encoding",
            "host",
            "connection",
            "mcp-session-id",
            "last-event-id",
        ];
        if OURS.contains(&name.as_str()) {
            return Err(EntryFault::Reserved);
        }
        checked.push((name, value));
    }
    Ok((url.into(), checked))
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({:?}, {:?})", self.name, self.way)
    }
}

/// Shows the kind only: addresses and arguments may hold secrets.
impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Sse { .. } => "sse",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stdio(command: &str, args: &[&str], env: &[(&str, &str)]) -> Way {
        Way::Stdio {
            command: command.into(),
            args: args.iter().map(|&arg| arg.into()).collect(),
            env: pairs(env),
        }
    }

    fn http(url: &str, headers: &[(&str, &str)]) -> Way {
        Way::Http {
            url: url.into(),
            headers: pairs(headers),
        }
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, Secret)> {
        let pair = |(name, value): &(&str, &str)| ((*name).into(), Secret::new(*name, *value));
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn what_cannot_be_run_or_asked_is_refused() {
        let check = |name: &str, way, expected| {
            assert_eq!(Entry::new(name, way).err(), expected, "{name}");
        };
        check("a", stdio("x", &["y"], &[("A", "1")]), None);
        check("  ", stdio("x", &[], &[]), Some(EntryFault::Name));
        check(&"a".repeat(MAX_NAME), stdio("x", &[], &[]), None);
        let long = "a".repeat(MAX_NAME + 1);
        for name in [long.as_str(), "a\nb", "a\u{1b}[31mb", "a\u{202e}b"] {
            check(name, stdio("x", &[], &[]), Some(EntryFault::Shown));
        }
        check("a", stdio(" ", &[], &[]), Some(EntryFault::Command));
        check("a", stdio("x", &["\0"], &[]), Some(EntryFault::Nul));
        check("a", stdio("x", &[], &[("A", "\0")]), Some(EntryFault::Nul));
        check(
            "a",
            stdio("x", &[], &[("A=", "")]),
            Some(EntryFault::Variable),
        );
        check(
            "a",
            stdio("x", &[], &[(" ", "")]),
            Some(EntryFault::Variable),
        );
        check("a", http("http://h", &[("X-Key", "1")]), None);
        check("a", http("ftp://h", &[]), Some(EntryFault::Url));
        check("a", http("/mcp", &[]), Some(EntryFault::Url));
        check(
            "a",
            http("http://h", &[("X Y", "1")]),
            Some(EntryFault::Header),
        );
        check(
            "a",
            http("http://h", &[("X", "1\r\nY: 2")]),
            Some(EntryFault::Header),
        );
        check(
            "a",
            http("http://h", &[("Host", "x")]),
            Some(EntryFault::Reserved),
        );
    }

    #[test]
    fn who_decides_sees_all_of_it_whatever_it_calls_a_secret() {
        let way = stdio(
            "sh",
            &["-c", "a\nb\u{202e}c", "--token", "tok-123456"],
            &[
                ("KEY", "tok-123456"),
                ("LD_PRELOAD", "./evil.so"),
                ("GIT_ASKPASS", "./evil"),
            ],
        );
        assert_eq!(
            Entry::new("a", way).unwrap().details(),
            "command: sh\nargument: -c\nargument: a\\u{a}b\\u{202e}c\nargument: --token\n\
             argument: tok-123456\nvariable: KEY=[not shown]\nvariable: LD_PRELOAD=./evil.so\n\
             variable: GIT_ASKPASS=./evil\n"
        );
        let long = "x".repeat(100_000);
        let shown = Entry::new("a", stdio("sh", &[&long], &[]))
            .unwrap()
            .details();
        assert!(shown.contains(&long));
    }

    #[test]
    fn entries_that_are_not_the_same_have_other_digests() {
        let of = |way| Entry::new("a", way).unwrap().digest();
        let ways = [
            stdio("x", &[], &[]),
            stdio("y", &[], &[]),
            stdio("x", &["1"], &[]),
            stdio("x", &["1", "2"], &[]),
            stdio("x", &["12"], &[]),
            stdio("x", &["1", ""], &[]),
            stdio("x", &[], &[("1", "2")]),
            stdio("x", &[], &[("1", "3")]),
            stdio("x", &[], &[("2", "2")]),
            http("http://h", &[]),
            http("http://h/x", &[]),
            http("http://h", &[("a", "1")]),
            Way::Sse {
                url: "http://h".into(),
                headers: Vec::new(),
            },
        ];
        let digests: alloc::collections::BTreeSet<String> = ways.iter().cloned().map(of).collect();
        assert_eq!(digests.len(), ways.len());
        assert!(digests.iter().all(|digest| digest.len() == 64));
        // Where it stands in its file, and what it is called there, makes no difference.
        let one = stdio("x", &[], &[("A", "1"), ("B", "2")]);
        let other = stdio("x", &[], &[("B", "2"), ("A", "1")]);
        assert_eq!(of(one.clone()), of(other));
        assert_eq!(Entry::new("b", one.clone()).unwrap().digest(), of(one));
    }
}
