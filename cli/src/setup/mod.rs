//! `setup`: connects a model. Asks for what the flags do not say, writes config.toml and .env,
//! and sends one small request to see that it works.

mod ask;
mod files;
mod probe;
mod providers;

use std::env;
use std::fs;
use std::io::{self, BufRead as _};
use std::net::IpAddr;
use std::path::Path;

use crate::exit::{Exit, Failure};
use crate::flags::low::SetupArgs;
use crate::out::{say, warn};
use crate::terminal::somebody_there;
use files::Entry;

/// Runs it for the agent whose directory is `home`.
pub fn setup(args: &SetupArgs, home: &Path) -> Result<Exit, Failure> {
    let config_file = home.join("config.toml");
    let env_file = home.join(".env");
    let config = read(&config_file, false)?;
    let env_text = read(&env_file, true)?;
    let (entry, key) = decide(args, &config, &env_text)?;
    let config = files::config_with(&config, &entry)
        .map_err(|why| Failure::usage(format!("{}: {why}", config_file.display())))?;

    make_home(home).map_err(|e| Failure::failed(format!("{}: {e}", home.display())))?;
    // The key first: a configuration that names a key which is not there would not work.
    if let (Some(name), Some(key)) = (&entry.key_name, &key) {
        write(&env_file, &files::env_with(&env_text, name, key), true)?;
    }
    write(&config_file, &config, false)?;
    say(format_args!("Written: {}", config_file.display()));
    if let (Some(name), Some(_)) = (&entry.key_name, &key) {
        say(format_args!(
            "Written: {} ({name}; only you can read it)",
            env_file.display()
        ));
    }
    if args.no_test {
        return Ok(Exit::Ok);
    }
    let name = format!("{}/{}", entry.provider, entry.model);
    say(format_args!("Testing {name} with one small request …"));
    match probe::probe(home, &entry) {
        Ok(()) => {
            say(format_args!(
                "It works. Try: reasonix run \"what is this project?\""
            ));
            Ok(Exit::Ok)
        }
        Err(why) => Err(Failure::failed(format!(
            "the test failed: {why}\nThe configuration is written all the same; run setup again to change it."
        ))),
    }
}

/// What to write, and the key if there is a new one.
fn decide(
    args: &SetupArgs,
    config: &str,
    env_text: &str,
) -> Result<(Entry, Option<String>), Failure> {
    let asks = somebody_there() && !args.key_stdin && !args.non_interactive;
    let provider = answer(
        args.provider.as_deref(),
        asks.then_some("Provider (deepseek, openai, openrouter, local, or a name of your own)"),
        Some(providers::KNOWN[0].name),
        "--provider",
        provider_name,
    )?;
    let known = providers::known(&provider);
    let there = configured(config, &provider);
    let base_url = there.base_url.as_deref().or(known.map(|k| k.base_url));
    let base_url = match (&args.base_url, base_url) {
        // What is known or configured already needs no question.
        (None, Some(url)) => web_address(url).map_err(Failure::usage)?,
        (given, _) => answer(
            given.as_deref(),
            asks.then_some("Address of its API, before /chat/completions"),
            None,
            "--base-url",
            web_address,
        )?,
    };
    let first_model = known.and_then(|k| k.model);
    let model = answer(
        args.model.as_deref().or(first_model.filter(|_| !asks)),
        asks.then_some("Model"),
        first_model,
        "--model",
        model_id,
    )?;
    let key_name = there
        .api_key_env
        .unwrap_or_else(|| format!("{}_API_KEY", shouted(&provider)));
    let wants = Wants {
        name: &key_name,
        there: files::env_has(env_text, &key_name),
        environment: env::var(&key_name).ok().filter(|key| !key.is_empty()),
        by_default: known.is_none_or(|k| k.key),
    };
    let key = key(args, asks, &wants)?;
    if key != Key::None && in_the_clear(&base_url) {
        warn(format_args!(
            "note: over http:// the key can be read on its way"
        ));
    }
    let entry = Entry {
        key_name: match key {
            Key::None => None,
            Key::Kept | Key::New(_) => Some(key_name),
        },
        provider,
        base_url,
        model,
        default: !args.keep_default,
    };
    let key = match key {
        Key::New(key) => Some(key),
        Key::None | Key::Kept => None,
    };
    Ok((entry, key))
}

/// What the configuration says of a provider already.
#[derive(Default)]
struct Configured {
    base_url: Option<String>,
    api_key_env: Option<String>,
}

fn configured(config: &str, provider: &str) -> Configured {
    let Ok(doc) = config.parse::<toml_edit::DocumentMut>() else {
        return Configured::default();
    };
    let text = |key: &str| {
        let table = doc.get("providers")?.get(provider)?;
        table.get(key)?.as_str().map(Into::into)
    };
    Configured {
        base_url: text("base_url"),
        api_key_env: text("api_key_env"),
    }
}

/// What is given, else what is answered, else the proposal, else an error that names the flag.
fn answer(
    given: Option<&str>,
    question: Option<&str>,
    proposal: Option<&str>,
    flag: &str,
    check: impl Fn(&str) -> Result<String, String>,
) -> Result<String, Failure> {
    match (given, question) {
        (Some(text), _) => check(text).map_err(|why| Failure::usage(format!("{flag}: {why}"))),
        (None, Some(question)) => ask::line(question, proposal, check),
        (None, None) => Err(Failure::usage(format!(
            "{flag} is missing, and nobody can be asked (no terminal, or --non-interactive)"
        ))),
    }
}

/// A key, or why there is none.
#[derive(Debug, PartialEq, Eq)]
enum Key {
    /// None is needed.
    None,
    /// The one in .env.
    Kept,
    /// This one.
    New(String),
}

/// What is known about the key before asking.
struct Wants<'a> {
    name: &'a str,
    there: bool,
    environment: Option<String>,
    by_default: bool,
}

fn key(args: &SetupArgs, asks: bool, wants: &Wants<'_>) -> Result<Key, Failure> {
    if args.no_key {
        return Ok(Key::None);
    }
    if let Some(name) = &args.from_env {
        let key = env::var(name)
            .map_err(|_| Failure::usage(format!("--from-env: {name} is not set (or no text)")))?;
        return usable_key(key.trim()).map(Key::New).map_err(Failure::usage);
    }
    if args.key_stdin {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        read.map_err(|e| Failure::failed(format!("--key-stdin: {e}")))?;
        return usable_key(line.trim())
            .map(Key::New)
            .map_err(Failure::usage);
    }
    match (wants.there, asks) {
        (true, false) => Ok(Key::Kept),
        (false, false) if !wants.by_default => Ok(Key::None),
        (false, false) => {
            let name = match wants.environment {
                Some(_) => wants.name,
                None => "NAME",
            };
            Err(Failure::usage(format!(
                "a key is missing, and nobody can be asked (no terminal, or --non-interactive): \
                 use --from-env {name}, --key-stdin or --no-key"
            )))
        }
        (there, true) => {
            let without = match (there, &wants.environment) {
                (true, _) => "Enter keeps the one in .env",
                (false, Some(_)) => "Enter copies the one in your environment",
                (false, None) => "Enter if it needs none",
            };
            loop {
                let text = ask::secret(&format!("Key for {} (not shown; {without})", wants.name))?;
                let text = match (text.is_empty(), there, &wants.environment) {
                    (true, true, _) => return Ok(Key::Kept),
                    (true, false, None) => return Ok(Key::None),
                    (true, false, Some(key)) => key,
                    (false, _, _) => &text,
                };
                match usable_key(text) {
                    Ok(key) => return Ok(Key::New(key)),
                    Err(why) => warn(format_args!("{why}")),
                }
            }
        }
    }
}

/// A key that a header and a line of .env can hold.
fn usable_key(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("the key is empty".into())
    } else if text.len() > 4096 || !text.bytes().all(|b| b.is_ascii_graphic() && b != b'\'') {
        Err("that is no key: it has spaces, quotes or characters that are not ASCII".into())
    } else {
        Ok(text.into())
    }
}

fn provider_name(text: &str) -> Result<String, String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !text.is_empty() && text.len() <= 64 && text.chars().all(legal) {
        true => Ok(text.into()),
        false => Err("a name is of letters, digits, `-` and `_`".into()),
    }
}

fn model_id(text: &str) -> Result<String, String> {
    let legal = |c: char| c.is_ascii_graphic();
    match !text.is_empty() && text.len() <= 256 && text.chars().all(legal) {
        true => Ok(text.into()),
        false => Err("a model's id is a word, as the provider writes it".into()),
    }
}

/// An address without what is added to it for each request.
fn web_address(text: &str) -> Result<String, String> {
    let text = text.trim_end_matches('/');
    let text = text.strip_suffix("/chat/completions").unwrap_or(text);
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .filter(|rest| !rest.is_empty() && !rest.starts_with('/'));
    match host {
        Some(_) if !text.contains(char::is_whitespace) => Ok(text.into()),
        _ => Err("an address begins with https:// or http://".into()),
    }
}

/// Whether what is sent there leaves this machine unencrypted.
fn in_the_clear(url: &str) -> bool {
    url.strip_prefix("http://").is_some_and(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        // What stands before the last `@` is a login, whatever it looks like.
        let place = authority.rsplit('@').next().unwrap_or_default();
        let host = match place.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => place.split(':').next().unwrap_or_default(),
        };
        let here = |address: IpAddr| address.is_loopback();
        host != "localhost" && !host.parse().is_ok_and(here)
    })
}

/// As the name of a variable.
fn shouted(name: &str) -> String {
    let name = name.to_ascii_uppercase().replace('-', "_");
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}

fn read(path: &Path, secret: bool) -> Result<String, Failure> {
    files::read(path, secret).map_err(|fault| Failure::failed(fault.message))
}

fn write(path: &Path, text: &str, secret: bool) -> Result<(), Failure> {
    files::replace(path, text, secret)
        .map_err(|e| Failure::failed(format!("{}: {e}", path.display())))
}

/// The agent's directory, which only its owner may enter if it is new.
fn make_home(home: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_asked_without_a_warning() {
        for (url, warns) in [
            ("https://evil.test", false),
            ("http://localhost:8080/v1", false),
            ("http://127.0.0.1/v1", false),
            ("http://127.9.9.9:1", false),
            ("http://[::1]:1/v1", false),
            ("http://me@127.0.0.1/v1", false),
            ("http://10.0.0.1", true),
            ("http://127.evil.test", true),
            ("http://localhost.evil.test", true),
            ("http://localhost:1@evil.test", true),
            ("http://[::2]:1", true),
        ] {
            assert_eq!(in_the_clear(url), warns, "{url}");
        }
    }

    #[test]
    fn addresses_are_what_comes_before_the_request() {
        for (text, wanted) in [
            ("https://a.example/v1/", Some("https://a.example/v1")),
            ("http://a/v1/chat/completions", Some("http://a/v1")),
            ("a.example", None),
            ("https://", None),
            ("https:///v1", None),
            ("ftp://a", None),
        ] {
            assert_eq!(web_address(text).ok().as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn a_key_fits_a_header_and_a_line() {
        assert_eq!(usable_key("sk-1$x").as_deref(), Ok("sk-1$x"));
        for text in ["", "two words", "it's", "ключ"] {
            assert!(usable_key(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_configured_provider_keeps_its_address_and_the_name_of_its_key() {
        let there = configured(
            "[providers.x]\nbase_url = \"http://x\"\napi_key_env = \"MY_KEY\"\n",
            "x",
        );
        assert_eq!(there.base_url.as_deref(), Some("http://x"));
        assert_eq!(there.api_key_env.as_deref(), Some("MY_KEY"));
        assert_eq!(shouted("my-own2"), "MY_OWN2");
    }
}
