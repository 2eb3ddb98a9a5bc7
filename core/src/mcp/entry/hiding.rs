//! What of an entry must not be shown. Two answers: in what its server says everything counts that a
//! person would not have said back, since nothing is lost by that; elsewhere only what is surely a key,
//! or else an ordinary word that some variable has for its value would be hidden wherever it stands.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::address;
use super::Way;
use crate::secret::Secret;

/// What is hidden of what the server itself says; the longest first, since one may be part of another.
pub(super) fn said(way: &Way) -> Vec<Secret> {
    let mut secrets = Vec::new();
    match way {
        Way::Stdio { args, env, .. } => {
            // A folder that a server is told of is in all that it says of its files.
            let plain =
                |name: &str, value: &Secret| value.reveal().starts_with('/') && !is_telling(name);
            let env = env.iter().filter(|(name, value)| !plain(name, value));
            secrets.extend(env.map(|(_, value)| value.clone()));
            of_arguments(args, false, &mut secrets);
        }
        Way::Http { url, headers } | Way::Sse { url, headers } => {
            for (_, value) in headers {
                of_header(value, &mut secrets);
            }
            of_address(url, false, &mut secrets);
        }
    }
    let spelled: Vec<Secret> = secrets.iter().filter_map(in_json).collect();
    secrets.extend(spelled);
    secrets.sort_by_key(|secret| core::cmp::Reverse(secret.reveal().len()));
    secrets
}

/// What is hidden wherever it is met.
///
/// No value with a blank in it: a key has none, and a file that a project brings along could name one
/// to have a part of a command line hidden from the person who is asked about it.
pub(super) fn keys(way: &Way) -> Vec<Secret> {
    let mut secrets = Vec::new();
    match way {
        Way::Stdio { args, env, .. } => {
            for (name, value) in env {
                let text = value.reveal();
                if is_key(name, text) {
                    // It may be a whole header.
                    of_header(value, &mut secrets);
                }
                // The address of a database is no secret, how one logs in there is.
                of_address(text, true, &mut secrets);
            }
            of_arguments(args, true, &mut secrets);
        }
        Way::Http { url, headers } | Way::Sse { url, headers } => {
            for (name, value) in headers {
                if is_key(name, value.reveal()) {
                    of_header(value, &mut secrets);
                }
            }
            of_address(url, true, &mut secrets);
        }
    }
    let blank = |secret: &Secret| secret.reveal().contains(char::is_whitespace);
    secrets.retain(|secret| !blank(secret) && !is_path(secret.reveal()));
    let spelled: Vec<Secret> = secrets.iter().filter_map(in_json).collect();
    secrets.extend(spelled);
    secrets
}

/// What follows a flag that takes a key, headers behind whatever flag, and keys in addresses; only what
/// is one for `sure`, or all that may be.
fn of_arguments(args: &[String], sure: bool, secrets: &mut Vec<Secret>) {
    let telling = |name: &str, value: &str| match sure {
        true => is_key(name, value),
        false => is_telling(name),
    };
    let mut flag = "";
    for arg in args {
        let mut key = |value: &str| secrets.push(Secret::new("argument", value));
        let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
        if !flag.is_empty() && telling(flag, arg) {
            key(arg);
        } else if !value.is_empty() && telling(name, value) {
            key(value);
        }
        flag = match arg.starts_with('-') && !arg.contains('=') {
            true => arg,
            false => "",
        };
        // A header, with its flag or behind it.
        if let Some((name, value)) = arg.split_once(':')
            && let value = value.trim()
            && !value.starts_with('/')
            && telling(name.rsplit('=').next().unwrap_or(name), value)
        {
            key(value);
            key(value.split_once(' ').map_or(value, |(_, bare)| bare.trim()));
        }
        if sure || address::is_http(arg) {
            of_address(arg, sure, secrets);
        }
    }
}

/// The keys in an address, as they stand and as they are meant.
fn of_address(url: &str, sure: bool, secrets: &mut Vec<Secret>) {
    for (name, text) in address::secrets(url) {
        if !sure || is_key(name, text) {
            let decoded = address::decoded(text);
            secrets.extend(decoded.map(|text| Secret::new("address", text)));
            secrets.push(Secret::new("address", text));
        }
    }
    // What HTTP makes of a login.
    if let Some(login) = address::login(url) {
        let colon = if login.contains(':') { "" } else { ":" };
        let sent = STANDARD.encode(format!("{login}{colon}"));
        secrets.push(Secret::new("address", sent));
    }
}

fn of_header(value: &Secret, secrets: &mut Vec<Secret>) {
    secrets.push(value.clone());
    // Who shows what was sent may show it without its scheme.
    if let Some((_, key)) = value.reveal().split_once(' ') {
        secrets.push(Secret::new(value.name(), key.trim()));
    }
}

/// The secret as it stands in a JSON text, if that is another spelling: some writers escape `/` too.
fn in_json(secret: &Secret) -> Option<Secret> {
    let plain = secret.reveal();
    let escaped = plain
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('/', "\\/");
    (escaped != plain).then(|| Secret::new(secret.name(), escaped))
}

/// Whether a flag or variable of this name has something that must not be shown.
pub(super) fn is_telling(flag: &str) -> bool {
    let flag = flag.to_ascii_lowercase();
    ["key", "token", "secret", "pass", "auth", "header", "cred"]
        .iter()
        .any(|word| flag.contains(word))
}

/// Whether this is surely a key, by what it is called or by how it looks.
fn is_key(name: &str, value: &str) -> bool {
    names_a_key(name) || looks_random(value)
}

/// `OAUTH_MODE` or `KEYBOARD` name no key, though they are telling; `PGPASSWORD` and `accessToken` do.
fn names_a_key(name: &str) -> bool {
    const ENDS: [&str; 6] = ["token", "secret", "password", "passwd", "pwd", "apikey"];
    const WORDS: [&str; 18] = [
        "key",
        "keys",
        "apikey",
        "token",
        "tok",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "pass",
        "pw",
        "pat",
        "jwt",
        "credential",
        "credentials",
        "authorization",
        "cookie",
        "bearer",
    ];
    let name = name.to_ascii_lowercase();
    let names = |part: &str| WORDS.contains(&part) || ENDS.iter().any(|end| part.ends_with(end));
    name.split(['_', '-', '.']).any(names)
}

/// Whether a text is what only a machine writes: a run of letters and digits mixed that is long, or that
/// is long with the marks between its parts. No path, no version, no name of a host or a model is.
fn looks_random(text: &str) -> bool {
    let mixed = |part: &str| {
        part.bytes().any(|b| b.is_ascii_digit()) && part.bytes().any(|b| b.is_ascii_alphabetic())
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.~+/=:".contains(&b);
    let letters = text.bytes().filter(u8::is_ascii_alphanumeric).count();
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric());
    !is_path(text)
        && !text.contains("://")
        && text.bytes().all(plain)
        && mixed(text)
        && (letters >= 32 && !text.contains('.')
            || parts.clone().any(|part| part.len() >= 12 && mixed(part)))
}

/// A place in the file system, which is in all that is said of what is there. A key may begin with a
/// slash; it has no folders.
fn is_path(text: &str) -> bool {
    let rest = text.strip_prefix(['/', '~', '.']);
    rest.is_some_and(|rest| rest.contains('/')) || text.starts_with("./")
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::*;

    fn stdio(args: &[&str], env: &[(&str, &str)]) -> Way {
        Way::Stdio {
            command: "x".into(),
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
    fn what_a_variable_holds_is_a_key_by_its_name_or_by_its_look() {
        #[track_caller]
        fn check(name: &str, value: &str, hidden: bool) {
            let keys = keys(&stdio(&[], &[(name, value)]));
            let found = keys.iter().any(|key| key.reveal() == value);
            assert_eq!(found, hidden, "{name}={value}: {keys:?}");
        }
        for (name, value) in [
            ("GITHUB_TOKEN", "ordinary"),
            ("github-token", "ordinary"),
            ("DB_PASSWORD", "correct-horse"),
            ("DB_PW", "correct-horse"),
            ("PGPASSWORD", "correct-horse"),
            ("MYSQL_PWD", "correct-horse"),
            ("accessToken", "correct-horse"),
            ("API_KEY", "/a+b=="),
            ("TOK", "CFGSEKRETVALUE9"),
            ("X", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
            ("X", "sk-ant-api03-aB3dE5fG7hI9"),
            ("X", "AKIAIOSFODNN7EXAMPLE"),
            ("X", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            ("X", "550e8400-e29b-41d4-a716-446655440000"),
            (
                "X",
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3",
            ),
            ("X", "0123456789abcdef0123456789abcdef"),
        ] {
            check(name, value, true);
        }
        for (name, value) in [
            ("NODE_ENV", "production"),
            ("LOG_LEVEL", "verbose"),
            ("KEYBOARD", "colemak-dh"),
            ("OAUTH_MODE", "interactive"),
            ("PATH", "/usr/bin:/home/me/a1b2c3d4e5f6g7/bin"),
            ("KEY_FILE", "/home/me/.config/key"),
            ("PWD", "/home/me/project"),
            ("ROOT", "./target/debug0123456789ab"),
            ("IMAGE", "node:20.11.0-alpine"),
            ("MODEL", "claude-3-5-sonnet-20241022"),
            ("HOST", "ec2-54-12-1-9.eu-west-1.compute.example.com"),
            ("URL", "http://localhost:8080/mcp/v1"),
            ("PROJECT", "my-project-123456"),
            ("WHEN", "2026-01-31T12:30:00+01:00"),
            // It could be part of a command that a person is asked about.
            ("SECRET", "curl evil | sh"),
        ] {
            check(name, value, false);
        }
    }

    #[test]
    fn of_addresses_the_login_is_a_key_and_the_rest_is_not() {
        #[track_caller]
        fn check(way: Way, hidden: &[&str]) {
            let keys = keys(&way);
            let mut keys: Vec<&str> = keys.iter().map(Secret::reveal).collect();
            keys.sort_unstable();
            assert_eq!(keys, hidden);
        }
        for header in [
            &["-H", "Authorization:Bearer sk-12345"][..],
            &["--header=Authorization: Bearer sk-12345"],
            &["--header", "Authorization: Bearer sk-12345"],
        ] {
            check(stdio(header, &[]), &["sk-12345"]);
        }
        check(
            stdio(&[], &[("AUTH_KEY", "Bearer sk-12345")]),
            &["sk-12345"],
        );
        check(stdio(&["--volume", "/etc/key:/run/secrets"], &[]), &[]);
        let login = "postgres://me:pw%2F12345@db.example/main?sslmode=require";
        let basic = "bWU6cHclMkYxMjM0NQ==";
        let whole = ["me:pw%2F12345", "me:pw/12345", "me:pw\\/12345"];
        let password = ["pw%2F12345", "pw/12345", "pw\\/12345"];
        let all = [&[basic], &whole[..], &password[..]].concat();
        check(stdio(&[login], &[]), &all);
        check(stdio(&[], &[("DATABASE_URL", login)]), &all);
        check(
            http("https://h/mcp?mode=readonly&api_key=key-1234", &[]),
            &["key-1234"],
        );
        check(
            stdio(
                &[
                    "--port",
                    "8080",
                    "--token",
                    "tok-1234",
                    "--api-key=key-1234",
                ],
                &[],
            ),
            &["key-1234", "tok-1234"],
        );
        check(
            http(
                "https://h/mcp",
                &[
                    ("authorization", "Bearer sk-1234"),
                    ("accept-language", "de"),
                ],
            ),
            &["sk-1234"],
        );
    }

    #[test]
    fn no_secret_of_an_entry_is_shown() {
        let way = stdio(
            &[
                "--token",
                "tok-123456",
                "--api-key=key-123456",
                "/a/path/that/is/long",
            ],
            &[("PASSWORD", "pw-1234567")],
        );
        let entry = Entry::new("a", way).unwrap();
        let mut text = String::from("tok-123456 key-123456 pw-1234567 /a/path/that/is/long");
        entry.redact(&mut text);
        assert_eq!(
            text,
            "[redacted] [redacted] [redacted] /a/path/that/is/long"
        );
        assert_eq!(format!("{entry:?}"), "Entry(\"a\", stdio)");
        let paths = stdio(&[], &[("ROOT", "/home/me/a"), ("KEY_FILE", "/etc/key")]);
        let mut text = String::from("/home/me/a/b /etc/key");
        Entry::new("a", paths).unwrap().redact(&mut text);
        assert_eq!(text, "/home/me/a/b [redacted]");
        let spelled = stdio(&[], &[("A", "a/b\"cdefg")]);
        let mut text = String::from(r#"a/b"cdefg a\/b\"cdefg"#);
        Entry::new("a", spelled).unwrap().redact(&mut text);
        assert_eq!(text, "[redacted] [redacted]");
        let sent = "https://tok%2Fen-0123@h/0123456789abcdefghij/sse";
        let mut text = format!("{sent} tok/en-0123 dG9rJTJGZW4tMDEyMzo=");
        let entry = Entry::new("a", http(sent, &[])).unwrap();
        entry.redact(&mut text);
        assert_eq!(
            text,
            "https://[redacted]@h/[redacted]/sse [redacted] [redacted]"
        );
        let bridge = [
            "https://me:password@h/?key=abcdefgh",
            "-H",
            "Authorization: Bearer sk-12345678",
        ];
        let mut text = format!("{} sk-12345678", bridge.join(" "));
        Entry::new("a", stdio(&bridge, &[]))
            .unwrap()
            .redact(&mut text);
        assert_eq!(
            text,
            "https://[redacted]@h/?key=[redacted] -H Authorization: [redacted] [redacted]"
        );
        let url = "https://me:password@h/?key=abcdefgh";
        let entry = Entry::new("b", http(url, &[("Authorization", "Bearer sk-12345678")])).unwrap();
        let mut text = format!("{url} Bearer sk-12345678, sk-12345678");
        entry.redact(&mut text);
        assert_eq!(
            text,
            "https://[redacted]@h/?key=[redacted] [redacted], [redacted]"
        );
        assert_eq!(format!("{entry:?}"), "Entry(\"b\", http)");
    }
}
