//! Changes to config.toml and .env as pure functions on their text, and how a file is replaced.
//! Whatever else stands in them stays as it is.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use reasonix_blocking::ops::plain::{self, Links};
use reasonix_core::error::IoFault;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, value};

/// Largest file that is changed, bytes.
const MAX_FILE: u64 = 1 << 20;

/// What setup found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The provider's name.
    pub provider: String,
    /// Its address.
    pub base_url: String,
    /// The model's id.
    pub model: String,
    /// The name of the key in .env; none: no key is needed.
    pub key_name: Option<String>,
    /// Whether the model becomes the default even if there is one.
    pub default: bool,
}

/// The text of config.toml with `entry` in it.
pub fn config_with(text: &str, entry: &Entry) -> Result<String, String> {
    let mut doc: DocumentMut = text.parse().map_err(|e| format!("{e}"))?;
    if entry.default || !doc.contains_key("default_model") {
        doc["default_model"] = value(format!("{}/{}", entry.provider, entry.model));
    }
    let providers = doc.entry("providers").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let inline = providers.is_value();
    let item = providers
        .as_table_like_mut()
        .ok_or("`providers` is no table")?
        .entry(&entry.provider)
        .or_insert_with(|| match inline {
            true => value(InlineTable::new()),
            false => Item::Table(Table::new()),
        });
    let standard = item.is_table();
    let provider = item
        .as_table_like_mut()
        .ok_or_else(|| format!("`providers.{}` is no table", entry.provider))?;
    set(provider, "base_url", &entry.base_url);
    match &entry.key_name {
        Some(name) => set(provider, "api_key_env", name),
        None => {
            provider.remove("api_key_env");
        }
    }
    add_model(provider, standard, &entry.model)
        .map_err(|()| format!("`providers.{}.models` is no list of tables", entry.provider))?;
    Ok(doc.to_string())
}

/// The text of .env with `name` set to `key`.
pub fn env_with(text: &str, name: &str, key: &str) -> String {
    let line = format!("{name}={}", quoted(key));
    let mut done = false;
    let mut out = String::with_capacity(text.len() + line.len() + 1);
    for old in text.lines() {
        if assigns(old, name) {
            if !done {
                out.push_str(&line);
                out.push('\n');
            }
            done = true;
        } else {
            out.push_str(old);
            out.push('\n');
        }
    }
    if !done {
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Whether .env sets `name` to something.
pub fn env_has(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        assigns(line, name)
            && line
                .split_once('=')
                .is_some_and(|(_, value)| !matches!(value.trim(), "" | "''" | "\"\""))
    })
}

/// Replaces a file as a whole, durably; what it is a link to, if it is one. `secret`: only its
/// owner may read it; else it keeps its mode.
pub fn replace(path: &Path, text: &str, secret: bool) -> io::Result<()> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = real.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    if !secret && let Ok(meta) = fs::metadata(&real) {
        file.as_file().set_permissions(meta.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&real).map_err(|e| e.error)?;
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The text of a file; empty if there is none. `secret`: a link is refused, as it is when keys are used.
pub fn read(path: &Path, secret: bool) -> Result<String, IoFault> {
    let links = if secret {
        Links::Refused
    } else {
        Links::Followed
    };
    Ok(plain::read(path, links, MAX_FILE)?.unwrap_or_default())
}

fn set(table: &mut dyn TableLike, key: &str, text: &str) {
    match table.get_mut(key) {
        Some(Item::Value(old)) => {
            // The comment behind the old value stays.
            let decor = old.decor().clone();
            *old = text.into();
            *old.decor_mut() = decor;
        }
        _ => {
            table.insert(key, value(text));
        }
    }
}

fn add_model(provider: &mut dyn TableLike, standard: bool, id: &str) -> Result<(), ()> {
    let same = |table: &dyn TableLike| table.get("id").and_then(Item::as_str) == Some(id);
    match provider.get_mut("models") {
        None => {
            // A table written as `{ … }` cannot hold `[[…]]`.
            let list = if standard {
                Item::ArrayOfTables([table(id)].into_iter().collect::<ArrayOfTables>())
            } else {
                value([inline(id)].into_iter().collect::<Array>())
            };
            provider.insert("models", list);
        }
        Some(Item::ArrayOfTables(list)) => {
            if !list.iter().any(|t| same(t)) {
                list.push(table(id));
            }
        }
        Some(item) => {
            let list = item.as_array_mut().ok_or(())?;
            let there = list
                .iter()
                .any(|v| v.as_inline_table().is_some_and(|t| same(t)));
            if !there {
                list.push(inline(id));
            }
        }
    }
    Ok(())
}

fn table(id: &str) -> Table {
    let mut table = Table::new();
    table.insert("id", value(id));
    table
}

fn inline(id: &str) -> InlineTable {
    let mut table = InlineTable::new();
    table.insert("id", id.into());
    table
}

fn assigns(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    line.strip_prefix(name)
        .is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// A value as it stands in .env: bare if nothing in it means something there.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+=:@%".contains(c);
    if text.chars().all(plain) {
        text.into()
    } else {
        format!("'{text}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            provider: "deepseek".into(),
            base_url: "https://api.deepseek.com".into(),
            model: "deepseek-chat".into(),
            key_name: Some("DEEPSEEK_API_KEY".into()),
            default: true,
        }
    }

    #[track_caller]
    fn check(before: &str, after: &str) {
        let got = config_with(before, &entry()).expect("config");
        assert_eq!(got, after);
        let again = config_with(&got, &entry()).expect("config");
        assert_eq!(again, after, "a second setup changes nothing");
    }

    #[test]
    fn an_empty_file_becomes_a_whole_configuration() {
        check(
            "",
            r#"default_model = "deepseek/deepseek-chat"

[providers.deepseek]
base_url = "https://api.deepseek.com"
api_key_env = "DEEPSEEK_API_KEY"

[[providers.deepseek.models]]
id = "deepseek-chat"
"#,
        );
    }

    #[test]
    fn what_is_there_stays() {
        check(
            r#"# mine
default_model = "local/tiny" # small

[providers.local]
base_url = "http://127.0.0.1:1/v1"
models = [ { id = "tiny", context_window = 8192 } ]

[providers.deepseek]
base_url = "http://old" # moved
max_retries = 3
models = [ { id = "other" } ]

[permissions]
deny = ["Bash(git push:*)"]
"#,
            r#"# mine
default_model = "deepseek/deepseek-chat"

[providers.local]
base_url = "http://127.0.0.1:1/v1"
models = [ { id = "tiny", context_window = 8192 } ]

[providers.deepseek]
base_url = "https://api.deepseek.com" # moved
max_retries = 3
models = [ { id = "other" } , { id = "deepseek-chat" }]
api_key_env = "DEEPSEEK_API_KEY"

[permissions]
deny = ["Bash(git push:*)"]
"#,
        );
    }

    #[test]
    fn an_inline_table_stays_valid() {
        let text = config_with("providers = { local = { base_url = \"x\" } }\n", &entry());
        let text = text.expect("config");
        let doc: DocumentMut = text.parse().expect("still TOML");
        assert_eq!(
            doc["providers"]["deepseek"]["models"][0]["id"].as_str(),
            Some("deepseek-chat"),
            "{text}"
        );
    }

    #[test]
    fn a_broken_file_is_an_error_with_its_line() {
        let error = config_with("a = 1\nb =\n", &entry()).expect_err("broken");
        assert!(error.contains("line 2"), "{error}");
        let error = config_with("providers = 3\n", &entry()).expect_err("no table");
        assert!(error.contains("providers"), "{error}");
    }

    #[test]
    fn a_key_is_replaced_where_it_stood() {
        for (before, after) in [
            ("", "KEY=sk-1\n"),
            ("# keys\nA=1\n", "# keys\nA=1\nKEY=sk-1\n"),
            ("KEY=old\nA=1", "KEY=sk-1\nA=1\n"),
            ("export KEY = old\nKEY=older\n", "KEY=sk-1\n"),
            ("KEYS=other\n", "KEYS=other\nKEY=sk-1\n"),
        ] {
            assert_eq!(env_with(before, "KEY", "sk-1"), after);
            assert!(env_has(after, "KEY"));
        }
        assert_eq!(env_with("", "KEY", "a$b"), "KEY='a$b'\n");
        assert!(!env_has("KEY=\nOTHER=x\n", "KEY"));
    }

    #[cfg(unix)]
    #[test]
    fn a_secret_file_is_its_owners_and_links_stay() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let folder = tempfile::tempdir().expect("folder");
        let real = folder.path().join("real");
        fs::write(&real, "old").expect("write");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o644)).expect("mode");
        let link = folder.path().join(".env");
        symlink(&real, &link).expect("link");
        let mode = |path| fs::metadata(path).expect("meta").permissions().mode() & 0o777;

        replace(&link, "new", false).expect("replace");
        assert_eq!(
            (read(&real, false).expect("read").as_str(), mode(&real)),
            ("new", 0o644)
        );
        replace(&link, "secret", true).expect("replace");
        assert_eq!(
            (read(&real, false).expect("read").as_str(), mode(&real)),
            ("secret", 0o600)
        );
        assert!(fs::symlink_metadata(&link).expect("meta").is_symlink());
        // It is not read for keys, so setup comes to no writing of them.
        assert_eq!(read(&link, false).expect("read"), "secret");
        let fault = read(&link, true).expect_err("a link");
        assert!(
            fault.message.ends_with(".env is a link, not a file"),
            "{fault}"
        );
    }
}
