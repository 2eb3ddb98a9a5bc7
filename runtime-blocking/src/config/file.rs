//! The text of `config.toml`: its shape, and what is checked beyond it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use reasonix_core::mcp::{Entry, Loose};
use reasonix_core::model::Rate;
use reasonix_core::permission::Rules;
use reasonix_core::permission::shell::literal_words;
use reasonix_core::settings::{Model, PauseUnverified, Permissions, Price, Provider, Settings};
use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    default_model: Option<Spanned<String>>,
    #[serde(default)]
    providers: BTreeMap<String, RawProvider>,
    #[serde(default)]
    permissions: RawPermissions,
    #[serde(default)]
    pause_unverified: RawPause,
    #[serde(default)]
    verification: RawVerification,
    #[serde(default)]
    sandbox: RawSandbox,
    #[serde(default)]
    web: RawWeb,
    #[serde(default)]
    mcp: RawMcp,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawSandbox {
    writable: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawWeb {
    allow_private: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProvider {
    base_url: Spanned<String>,
    api_key_env: Option<Spanned<String>>,
    #[serde(default = "ten")]
    max_retries: u32,
    #[serde(default = "five_minutes")]
    idle_timeout_seconds: Spanned<u64>,
    #[serde(default)]
    models: Vec<RawModel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    id: Spanned<String>,
    alias: Option<Spanned<String>>,
    context_window: Option<u64>,
    max_output: Option<u64>,
    #[serde(default)]
    efforts: Vec<String>,
    images: Option<bool>,
    #[serde(default)]
    reasoning_content: RawReasoning,
    price: Option<RawPrice>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPrice {
    currency: String,
    input: Spanned<String>,
    cached_input: Option<Spanned<String>>,
    output: Spanned<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawPermissions {
    allow: Vec<Spanned<String>>,
    ask: Vec<Spanned<String>>,
    deny: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawVerification {
    commands: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawMcp {
    servers: BTreeMap<String, Spanned<RawServer>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawServer {
    r#type: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    start_timeout_seconds: Option<u64>,
}

/// How long a server can be given to be ready, seconds.
const START: std::ops::RangeInclusive<u64> = 1..=600;

impl RawServer {
    fn entry(self, name: &str) -> Result<Entry, String> {
        let loose = Loose {
            kind: self.r#type,
            command: self.command,
            args: self.args,
            env: self.env,
            url: self.url,
            headers: self.headers,
        };
        let seconds = self.start_timeout_seconds;
        if seconds.is_some_and(|it| !START.contains(&it)) {
            let (least, most) = (START.start(), START.end());
            return Err(format!("start_timeout_seconds is from {least} to {most}"));
        }
        let way = loose.way().map_err(str::to_owned)?;
        let mut entry = Entry::new(name, way).map_err(|fault| fault.to_string())?;
        entry.start = seconds.map(Duration::from_secs);
        Ok(entry)
    }
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawPause {
    #[default]
    Delivery,
    Always,
    Never,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum RawReasoning {
    Echo,
    #[default]
    Omit,
}

fn ten() -> u32 {
    10
}

fn five_minutes() -> Spanned<u64> {
    Spanned::new(0..0, 300)
}

/// What a rule looks like, for people.
const A_RULE: &str = "a rule is a tool's name, and what it is about in parentheses, such as \
                      Bash(cargo test:*), Edit(src/**), Read or WebFetch(domain:docs.rs)";

/// What the text says, or one message with file, line and key.
pub(super) fn parse(text: &str, path: &Path) -> Result<Settings, String> {
    let at = |span: Range<usize>, why: &str| place(text, path, span, why);
    let file: File =
        toml::from_str(text).map_err(|error| at(error.span().unwrap_or(0..0), error.message()))?;
    let rules = |rules: Vec<Spanned<String>>| {
        let checked = |rule: Spanned<String>| match Rules::check(rule.get_ref()) {
            Ok(()) => Ok(rule.into_inner()),
            Err(why) => {
                let why = format!("`{}` is no rule: {why}; {A_RULE}", rule.get_ref());
                Err(at(rule.span(), &why))
            }
        };
        rules.into_iter().map(checked).collect::<Result<_, _>>()
    };
    let mut settings = Settings {
        permissions: Permissions {
            allow: rules(file.permissions.allow)?,
            ask: rules(file.permissions.ask)?,
            deny: rules(file.permissions.deny)?,
        },
        web_private: file.web.allow_private,
        pause_unverified: match file.pause_unverified {
            RawPause::Delivery => PauseUnverified::Delivery,
            RawPause::Always => PauseUnverified::Always,
            RawPause::Never => PauseUnverified::Never,
        },
        ..Settings::default()
    };
    for command in file.verification.commands {
        if literal_words(command.get_ref()).is_none() {
            let why = "must be the words a command begins with, such as \"make smoke\"";
            return Err(at(command.span(), why));
        }
        settings.verification.push(command.into_inner());
    }
    for folder in file.sandbox.writable {
        let path = folder.get_ref();
        if !path.starts_with('/') && !path.starts_with("~/") {
            let why = "must be an absolute path, or one that begins with ~/";
            return Err(at(folder.span(), why));
        }
        settings.writable.push(folder.into_inner());
    }
    for (name, raw) in file.mcp.servers {
        let span = raw.span();
        let entry = raw.into_inner().entry(&name);
        settings.mcp.push(entry.map_err(|why| at(span, &why))?);
    }
    for (name, raw) in file.providers {
        let url = raw.base_url.get_ref().trim_end_matches('/').to_owned();
        if !(url.starts_with("https://") || url.starts_with("http://")) {
            return Err(at(
                raw.base_url.span(),
                "must begin with https:// or http://",
            ));
        }
        if name.is_empty() || name.contains('/') {
            let why = format!("the provider's name \"{name}\" must not be empty or hold a slash");
            return Err(at(raw.base_url.span(), &why));
        }
        if let Some(key) = &raw.api_key_env
            && !is_variable(key.get_ref())
        {
            let why = "must be the name of a variable in .env, not the key itself";
            return Err(at(key.span(), why));
        }
        if *raw.idle_timeout_seconds.get_ref() == 0 {
            return Err(at(raw.idle_timeout_seconds.span(), "must be 1 or more"));
        }
        let mut models: Vec<Model> = Vec::new();
        for raw in raw.models {
            if raw.id.get_ref().is_empty() {
                return Err(at(raw.id.span(), "must not be empty"));
            }
            if models.iter().any(|known| known.id == *raw.id.get_ref()) {
                return Err(at(
                    raw.id.span(),
                    "this provider has a model of this id already",
                ));
            }
            if let Some(price) = &raw.price {
                let numbers = [
                    Some(&price.input),
                    price.cached_input.as_ref(),
                    Some(&price.output),
                ];
                for number in numbers.into_iter().flatten() {
                    if Rate::from_text(number.get_ref()).is_none() {
                        let why = "must be a decimal such as \"0.27\", with at most 9 digits \
                                   before the point and 12 after it";
                        return Err(at(number.span(), why));
                    }
                }
            }
            models.push(Model {
                id: raw.id.into_inner(),
                alias: raw.alias.map(Spanned::into_inner),
                context_window: raw.context_window,
                max_output: raw.max_output,
                efforts: raw.efforts,
                images: raw.images,
                echo_reasoning: raw.reasoning_content == RawReasoning::Echo,
                price: raw.price.map(|price| Price {
                    currency: price.currency,
                    input: price.input.into_inner(),
                    cached_input: price.cached_input.map(Spanned::into_inner),
                    output: price.output.into_inner(),
                }),
            });
        }
        settings.providers.push(Provider {
            name,
            base_url: url,
            api_key_env: raw.api_key_env.map(Spanned::into_inner),
            api_key: None,
            max_retries: raw.max_retries,
            idle_timeout: Duration::from_secs(raw.idle_timeout_seconds.into_inner()),
            models,
        });
    }
    settings.default_model = file.default_model.map(Spanned::into_inner);
    Ok(settings)
}

/// The message for what is wrong at `span`. No value is shown: it may be a key in the wrong place.
fn place(text: &str, path: &Path, span: Range<usize>, why: &str) -> String {
    // Spans begin where a token does.
    let before = text.get(..span.start).unwrap_or_default();
    let number = before.matches('\n').count() + 1;
    // In an inline table the key is the last one before the fault.
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let upto = text.get(start..span.start).unwrap_or_default();
    let before_value = upto.trim_end().strip_suffix('=').unwrap_or("");
    let key = match before_value.rsplit([',', '{', '[']).next().map(str::trim) {
        Some(key) if !key.is_empty() => key,
        // In a list over several lines it stands where the list begins.
        _ => text
            .lines()
            .take(number)
            .filter_map(key_of)
            .last()
            .unwrap_or_default(),
    };
    let key = match key.len() {
        1..=64 => format!(", {key}"),
        _ => String::new(),
    };
    let mut why = why.lines().next().unwrap_or(why).to_owned();
    if let Some(rest) = why.strip_prefix("invalid type: string ")
        && let Some(at) = rest.rfind(", expected")
    {
        why = format!("invalid type: a string{}", &rest[at..]);
    }
    format!("{}, line {number}{key}: {why}", path.display())
}

/// The key that a line gives a value, or the table that it begins; not what else may stand there.
fn key_of(line: &str) -> Option<&str> {
    let line = line.trim();
    let key = match line.split_once('=') {
        Some((key, _)) => key.trim(),
        None => line,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let named = |key: &str| !key.is_empty() && key.chars().all(plain);
    let table = line.starts_with('[').then_some(line);
    let inside = |table: &str| named(table.trim_matches(['[', ']']).trim());
    match table {
        Some(table) => (table.ends_with(']') && inside(table)).then_some(table),
        None => named(key).then_some(key),
    }
}

fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_documented_is_understood() {
        let text = r#"
            default_model = "deepseek/deepseek-chat"
            pause_unverified = "always"
            [providers.deepseek]
            base_url = "https://api.deepseek.com/"
            api_key_env = "DEEPSEEK_API_KEY"
            [[providers.deepseek.models]]
            id = "deepseek-chat"
            alias = "deepseek-pro"
            context_window = 128000
            efforts = ["low", "high", "max"]
            images = false
            reasoning_content = "echo"
            price = { currency = "USD", input = "0.27", cached_input = "0.07", output = "1.10" }
            [providers.local]
            base_url = "http://127.0.0.1:8080/v1"
            max_retries = 0
            idle_timeout_seconds = 7
            models = [ { id = "tiny", context_window = 8192 } ]
            [permissions]
            allow = ["Read", "Bash(cargo test:*)"]
            deny = ["Bash(git push:*)"]
            [verification]
            commands = ["make smoke"]
            [sandbox]
            writable = ["~/.cargo", "/var/cache/mine"]
            [web]
            allow_private = true
            [mcp.servers.docs]
            command = "docs-mcp"
            args = ["--all"]
            env = { A = "1" }
            start_timeout_seconds = 60
            [mcp.servers.api]
            url = "https://mcp.test/api"
            headers = { authorization = "Bearer x" }
        "#;
        let settings = parse(text, Path::new("c")).expect("it is the documented example");
        let [deepseek, local] = &settings.providers[..] else {
            panic!("two providers");
        };
        assert_eq!(
            settings.default_model.as_deref(),
            Some("deepseek/deepseek-chat")
        );
        assert_eq!(settings.pause_unverified, PauseUnverified::Always);
        assert_eq!(settings.writable, ["~/.cargo", "/var/cache/mine"]);
        assert!(settings.web_private && !Settings::default().web_private);
        assert_eq!(settings.permissions.allow.len(), 2);
        assert_eq!(settings.verification, ["make smoke"]);
        assert_eq!(deepseek.base_url, "https://api.deepseek.com");
        assert_eq!(
            (deepseek.max_retries, deepseek.idle_timeout.as_secs()),
            (10, 300)
        );
        assert!(deepseek.models[0].echo_reasoning);
        let price = deepseek.models[0].price.as_ref().expect("it has one");
        assert_eq!(price.cached_input.as_deref(), Some("0.07"));
        assert_eq!((local.max_retries, local.idle_timeout.as_secs()), (0, 7));
        assert!(local.usable() && !deepseek.usable());
        assert_eq!(local.models[0].context_window, Some(8192));
        let servers: Vec<String> = settings
            .mcp
            .iter()
            .map(|it| format!("{}: {}", it.name, it.describe()))
            .collect();
        assert_eq!(
            servers,
            ["api: https://mcp.test/api", "docs: docs-mcp --all"]
        );
        let times: Vec<_> = settings.mcp.iter().map(|it| it.start).collect();
        assert_eq!(times, [None, Some(Duration::from_secs(60))]);
    }

    #[test]
    fn a_fault_names_file_line_and_key() {
        let check = |text: &str, want: &str| {
            let fault = parse(text, Path::new("config.toml")).expect_err("it is faulty");
            assert_eq!(fault, want);
        };
        check(
            "\ndefault_modell = 'x'",
            "config.toml, line 2, default_modell: unknown field `default_modell`, expected one of \
             `default_model`, `providers`, `permissions`, `pause_unverified`, `verification`, \
             `sandbox`, `web`, `mcp`",
        );
        check(
            "[providers.p]\nbase_url = 7",
            "config.toml, line 2, base_url: invalid type: integer `7`, expected a string",
        );
        check(
            "[providers.p]\nbase_url = 'p.test'",
            "config.toml, line 2, base_url: must begin with https:// or http://",
        );
        check(
            "[providers.p]\nbase_url = 'http://p'\napi_key_env = 'sk-0123'",
            "config.toml, line 3, api_key_env: must be the name of a variable in .env, not the \
             key itself",
        );
        check(
            "[providers.p]\nbase_url = 'http://p'\nmodels = [ { id = 'a' }, { id = 'a' } ]",
            "config.toml, line 3, id: this provider has a model of this id already",
        );
        check(
            "[providers.p]\nbase_url = 'http://p'\nmax_retries = 'sk-0123'",
            "config.toml, line 3, max_retries: invalid type: a string, expected u32",
        );
        check(
            "[verification]\ncommands = ['make smoke', 'a; b']",
            "config.toml, line 2, commands: must be the words a command begins with, such as \
             \"make smoke\"",
        );
        check(
            "[sandbox]\nwritable = ['/a', 'b']",
            "config.toml, line 2, writable: must be an absolute path, or one that begins with ~/",
        );
        let price = "{ currency = 'USD', input = '1', output = '1e3' }";
        check(
            &format!(
                "[providers.p]\nbase_url = 'http://p'\nmodels = [ {{ id = 'a', price = {price} }} ]"
            ),
            "config.toml, line 3, output: must be a decimal such as \"0.27\", with at most 9 digits \
             before the point and 12 after it",
        );
        check(
            "[mcp.servers.a]\nargs = ['sk-0123']",
            "config.toml, line 1, [mcp.servers.a]: it has a command, with args and env, or a url, \
             with headers, and not both",
        );
        check(
            "[mcp.servers]\na = { type = 'quic', url = 'http://h' }",
            "config.toml, line 2, a: its type is not stdio, http or sse",
        );
        check(
            "[mcp.servers.a]\nurl = 'sk-0123'",
            "config.toml, line 1, [mcp.servers.a]: its url is not an absolute http or https address",
        );
        for seconds in ["0", "601"] {
            check(
                &format!("[mcp.servers.a]\ncommand = 'x'\nstart_timeout_seconds = {seconds}"),
                "config.toml, line 1, [mcp.servers.a]: start_timeout_seconds is from 1 to 600",
            );
        }
        check(
            "[mcp.servers.a]\ncommand = 'x'\nenv = 'sk-0123'",
            "config.toml, line 3, env: invalid type: a string, expected a map",
        );
        for (rule, why) in [
            ("Bash(", "the closing parenthesis is missing"),
            ("", "a rule is `Tool` or `Tool(pattern)`"),
            (
                "Bash(:*)",
                "the pattern is the words of one simple command, with `:*` behind them if more \
                 may follow",
            ),
            (
                "Bash(ls && rm)",
                "the pattern is the words of one simple command, with `:*` behind them if more \
                 may follow",
            ),
            (
                "Bsh(ls)",
                "`bsh` takes no pattern; Read, Edit, Bash and WebFetch do",
            ),
            (
                "WebFetch(docs.rs)",
                "the pattern is `domain:` and a host, such as `domain:example.org` or \
                 `domain:*.example.org`",
            ),
            ("Edit(../x)", "`..` is not understood"),
        ] {
            let want = format!("config.toml, line 2, LIST: `{rule}` is no rule: {why}; {A_RULE}");
            for list in ["allow", "ask", "deny"] {
                check(
                    &format!("[permissions]\n{list} = ['Read', '{rule}']"),
                    &want.replace("LIST", list),
                );
                check(
                    &format!("[permissions]\n{list} = [\n  'Read',\n  '{rule}',\n]"),
                    &want.replace("LIST", list).replace("line 2", "line 4"),
                );
            }
        }
        check(
            "[permissions]\nalow = ['Read']",
            "config.toml, line 2, alow: unknown field `alow`, expected one of `allow`, `ask`, `deny`",
        );
        check(
            "[verification]\ncommands = [\n  'sk-0123;',\n]",
            "config.toml, line 3, commands: must be the words a command begins with, such as \
             \"make smoke\"",
        );
        check(
            "[providers.p]\n\n",
            "config.toml, line 1, [providers.p]: missing field `base_url`",
        );
    }
}
