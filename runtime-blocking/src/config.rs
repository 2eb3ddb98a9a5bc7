//! Configuration from the disk: `config.toml` and `.env` of the agent's home, as [`Settings`].
//! What they mean is decided in the machine; here is only what they say, and clear words for what
//! is wrong with them.

mod file;

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::path::{Path, PathBuf};

use reasonix_core::call::{Call, Outcome};
#[cfg(unix)]
use reasonix_core::error::IoKind;
use reasonix_core::limits::Limits;
use reasonix_core::secret::Secret;
use reasonix_core::settings::{Host, Settings};
use reasonix_core::tools::{Vetted, Vetting};

use crate::ops;
use crate::ops::plain::{self, Links};

/// Variables that hold keys of well-known providers: never handed to commands, and named in
/// [`Settings::unused_keys`] if they stand in the environment.
pub const KEY_NAMES: [&str; 14] = [
    "ANTHROPIC_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "CEREBRAS_API_KEY",
    "DASHSCOPE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
];

/// The agent's own directory: `REASONIX_HOME`, else `.reasonix` in the person's home directory;
/// none if there is neither.
pub fn home() -> Option<PathBuf> {
    match env::var_os("REASONIX_HOME").filter(|value| !value.is_empty()) {
        Some(home) => std::path::absolute(home).ok(),
        None => env::home_dir()
            .filter(|home| home.is_absolute())
            .map(|home| home.join(".reasonix")),
    }
}

/// The system we run on. Its `home` is [`home()`] with every link resolved, as far as it is there:
/// what the machine compares real paths with, and keeps its files beneath.
pub fn host() -> Host {
    let text = |path: PathBuf| path.into_os_string().into_string().ok();
    // One that cannot be resolved is told of by whoever uses it.
    let real = |path: String| {
        ops::resolve::real(&path)
            .ok()
            .and_then(text)
            .unwrap_or(path)
    };
    Host {
        os: env::consts::OS.into(),
        shell: shell().into(),
        user_home: env::home_dir().and_then(text),
        home: home().and_then(text).map(real),
        tmp: real(env::temp_dir().to_string_lossy().into_owned()),
        sandbox: ops::confine::level(),
    }
}

/// Random bytes for [`Config::seed`](reasonix_core::agent::Config).
///
/// # Errors
///
/// If the system has no source of randomness.
pub fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(io::Error::other)?;
    Ok(seed)
}

/// What `config.toml` in `home` says by itself, keys aside; none if there is no such file.
///
/// # Errors
///
/// What is wrong with it, with file, line and key.
pub fn file(home: &Path) -> Result<Option<Settings>, String> {
    let path = home.join("config.toml");
    match plain::read(&path, Links::Followed, MAX_FILE) {
        Ok(Some(text)) => file::parse(&text, &path).map(Some),
        Ok(None) => Ok(None),
        Err(fault) => Err(fault.message),
    }
}

/// The names of the keys in `.env` of `home`, sorted; those without a value left out.
///
/// # Errors
///
/// What is wrong with it; never a part of it.
pub fn env_names(home: &Path) -> Result<Vec<String>, String> {
    Ok(keys(&home.join(".env"))?.into_keys().collect())
}

/// What `config.toml` and `.env` in `home` say. Missing files are empty ones; what is wrong with
/// them is told in [`Settings::fault`].
pub fn settings(home: Option<&Path>) -> Settings {
    let mut settings = Settings::default();
    let Some(home) = home else { return settings };
    match file(home) {
        Ok(read) => settings = read.unwrap_or_default(),
        Err(fault) => settings.fault = Some(fault),
    }
    vet_writable(&mut settings, home);
    let keys = keys(&home.join(".env")).unwrap_or_else(|fault| {
        settings.fault.get_or_insert(fault);
        BTreeMap::new()
    });
    for provider in &mut settings.providers {
        if let Some(name) = &provider.api_key_env
            && let Some(value) = keys.get(name)
        {
            provider.api_key = Some(Secret::new(name.clone(), value.clone()));
        }
    }
    settings.secrets = keys
        .iter()
        .filter(|(name, _)| is_key(name))
        .map(|(name, value)| Secret::new(name.clone(), value.clone()))
        .collect();
    settings.unused_keys = key_names(&settings)
        .into_iter()
        .filter(|name| !keys.contains_key(name))
        .filter(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
        .collect();
    settings
}

/// Whether a variable of this name holds a secret, whoever it is for.
fn is_key(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PAT"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Keeps those of the folders in `[sandbox] writable` that commands may write in: they are judged like
/// the folders of a session.
fn vet_writable(settings: &mut Settings, home: &Path) {
    if settings.writable.is_empty() {
        return;
    }
    let mut host = host();
    host.home = home.to_str().map(Into::into);
    let limits = Limits::default();
    for asked in std::mem::take(&mut settings.writable) {
        let path = match (asked.strip_prefix("~/"), &host.user_home) {
            (Some(rest), Some(home)) => format!("{}/{rest}", home.trim_end_matches('/')),
            (Some(_), None) | (None, _) => asked.clone(),
        };
        let mut judged = Vetting::begin(&path).map(|(vetting, call)| (vetting, Vetted::More(call)));
        let real = loop {
            match judged {
                Ok((mut vetting, Vetted::More(call))) => {
                    // It asks for one of these two.
                    let outcome = if let Call::List { path, max } = &call {
                        ops::list::list(path, *max).map(Outcome::Listed)
                    } else {
                        ops::resolve::resolve(&path).map(Outcome::Resolved)
                    };
                    let next = vetting.take(outcome, &host, &limits);
                    judged = next.map(|next| (vetting, next));
                }
                Ok((_, Vetted::Root(real))) => break Ok(real),
                Err(fault) => break Err(fault),
            }
        };
        match real {
            Ok(real) if settings.writable.contains(&real) => {}
            Ok(real) => settings.writable.push(real),
            Err(fault) => settings.not_writable.push(fault.to_string()),
        }
    }
}

/// The names of variables that hold keys: those of the configured providers, of well-known ones, and
/// of whatever else `.env` keeps secret, sorted.
pub fn key_names(settings: &Settings) -> Vec<String> {
    let known = KEY_NAMES.iter().map(|name| (*name).to_owned());
    let configured = settings
        .providers
        .iter()
        .filter_map(|p| p.api_key_env.clone());
    let kept = settings.secrets.iter().map(|it| it.name().to_owned());
    let mut names: Vec<String> = known.chain(configured).chain(kept).collect();
    names.sort();
    names.dedup();
    names
}

/// The keys in `.env`. No message holds a value, not even a part of a line.
fn keys(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let shown = path.display();
    let Some(text) = private(path)? else {
        return Ok(BTreeMap::new());
    };
    let mut keys = BTreeMap::new();
    for entry in dotenvy::from_read_iter(text.trim_start_matches('\u{feff}').as_bytes()) {
        match entry {
            Ok((name, value)) if value.is_empty() => drop(name), // as if it were not there
            Ok((name, value)) => drop(keys.insert(name, value)),
            Err(dotenvy::Error::LineParse(line, _)) => {
                let at = text.lines().position(|it| it.contains(line.trim()));
                let at = at.map_or(1, |at| at + 1);
                return Err(format!("{shown}, line {at}: not of the form NAME=value"));
            }
            Err(_) => return Err(format!("{shown} cannot be read")),
        }
    }
    Ok(keys)
}

/// Largest `config.toml`, and largest `.env`, bytes.
const MAX_FILE: u64 = 1 << 20;

/// The text of a file that nobody else can read or put there; none if there is no such file.
#[cfg(unix)]
fn private(path: &Path) -> Result<Option<String>, String> {
    use std::os::unix::fs::MetadataExt;

    let shown = path.display();
    // A link is not followed: who can change where it leads chooses the keys.
    let file = match plain::open(path, Links::Refused) {
        Ok(file) => file,
        Err(fault) if fault.kind == IoKind::NotFound => return Ok(None),
        Err(fault) if fault.kind == IoKind::WrongKind => {
            return Err(format!(
                "{}, so its keys are not used; put the file itself there",
                fault.message
            ));
        }
        Err(fault) => return Err(fault.message),
    };
    let data = file
        .metadata()
        .map_err(|error| format!("{shown}: {error}"))?;
    let user = rustix::process::geteuid().as_raw();
    if data.uid() != user && data.uid() != 0 {
        return Err(format!(
            "{shown} belongs to another user ({}), so its keys are not used; run: chown {user} {shown}",
            data.uid()
        ));
    }
    if data.mode() & 0o077 != 0 {
        return Err(format!(
            "{shown} can be read by others, so its keys are not used; run: chmod 600 {shown}"
        ));
    }
    plain::text(file, path, MAX_FILE)
        .map(Some)
        .map_err(|fault| fault.message)
}

/// The text of a file; none if there is no such file.
#[cfg(not(unix))]
fn private(path: &Path) -> Result<Option<String>, String> {
    plain::read(path, Links::Followed, MAX_FILE).map_err(|fault| fault.message)
}

fn shell() -> &'static str {
    let path = env::var_os("PATH").unwrap_or_default();
    let has_bash = env::split_paths(&path).any(|dir| dir.join("bash").is_file());
    if has_bash { "bash" } else { "sh" }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::ops::testing::{command_again, dir, own_process, pipe};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn write(home: &str, name: &str, mode: u32, text: &str) {
        let path = format!("{home}/{name}");
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
    }

    const CONFIG: &str = "[providers.p]\nbase_url = 'https://p.test'\napi_key_env = 'P_KEY'\n";

    #[test]
    fn keys_come_from_a_private_env_file_only() {
        let (_keep, home) = dir();
        let read = || settings(Some(Path::new(&home)));
        assert_eq!(read().fault, None, "no files are no fault");
        write(&home, "config.toml", 0o644, CONFIG);
        assert_eq!(read().providers[0].api_key, None);
        write(&home, ".env", 0o600, "# mine\nP_KEY=\"sk-1 2\"\nEMPTY=\n");
        let key = read().providers[0].api_key.clone();
        assert_eq!(key.expect("it is there").reveal(), "sk-1 2");
        write(&home, ".env", 0o640, "P_KEY=sk-12\n");
        let open = read();
        assert_eq!(open.providers[0].api_key, None);
        let fault = open.fault.expect("others can read it");
        assert!(fault.contains("chmod 600"), "{fault}");
    }

    #[test]
    fn a_file_of_keys_that_somebody_else_could_put_there_is_not_used() {
        use std::os::unix::fs::symlink;
        type Make = fn(&str);
        let cases: [(&str, Make); 5] = [
            ("is a link", |home| {
                write(home, "elsewhere", 0o600, "P_KEY=sk-12\n");
                symlink("elsewhere", format!("{home}/.env")).expect("linked");
            }),
            ("is a link", |home| {
                symlink("nowhere", format!("{home}/.env")).expect("linked");
            }),
            ("is a pipe, not a file", |home| {
                pipe(&format!("{home}/.env"))
            }),
            ("is a directory, not a file", |home| {
                fs::create_dir(format!("{home}/.env")).expect("made")
            }),
            ("larger than 1024 KiB", |home| {
                write(home, ".env", 0o600, &"# nothing\n".repeat(110_000));
            }),
        ];
        for (wanted, make) in cases {
            let (_keep, home) = dir();
            write(&home, "config.toml", 0o644, CONFIG);
            make(&home);
            let read = settings(Some(Path::new(&home)));
            assert_eq!(read.providers[0].api_key, None, "{wanted}");
            let fault = read.fault.expect("it is told");
            assert!(fault.contains(wanted), "{fault}");
        }
    }

    #[test]
    fn what_stands_in_place_of_a_configuration_is_named_and_not_waited_for() {
        type Make = fn(&str);
        let cases: [(&str, Make); 5] = [
            ("is a pipe, not a file", |at| pipe(at)),
            ("is a directory, not a file", |at| {
                fs::create_dir(at).expect("made")
            }),
            ("is a device, not a file", |at| {
                std::os::unix::fs::symlink("/dev/zero", at).expect("linked");
            }),
            ("is larger than 1024 KiB", |at| {
                fs::write(at, "# nothing\n".repeat(110_000)).expect("written");
            }),
            (", line 2: it is not UTF-8 text", |at| {
                fs::write(at, b"# a\n# \xff\n").expect("written");
            }),
        ];
        for (wanted, make) in cases {
            let (_keep, home) = dir();
            let path = format!("{home}/config.toml");
            make(&path);
            let fault = settings(Some(Path::new(&home))).fault.expect("it is told");
            assert!(
                fault.starts_with(&path) && fault.ends_with(wanted),
                "{fault}"
            );
        }
    }

    #[test]
    fn every_usual_way_to_write_a_key_is_read() {
        for text in [
            "P_KEY=sk-12",
            "P_KEY=sk-12\r\n",
            "export P_KEY=sk-12\n",
            "P_KEY='sk-12'\n",
            "P_KEY=\"sk-12\" # mine\n",
            "\u{feff}P_KEY=sk-12\n",
            "# a\n\nOTHER=x\nP_KEY = sk-12\n",
        ] {
            let (_keep, home) = dir();
            write(&home, "config.toml", 0o644, CONFIG);
            write(&home, ".env", 0o600, text);
            let read = settings(Some(Path::new(&home)));
            assert_eq!(read.fault, None, "{text:?}");
            let key = read.providers[0].api_key.clone();
            assert_eq!(key.expect(text).reveal(), "sk-12", "{text:?}");
        }
    }

    #[test]
    fn a_broken_env_file_is_told_without_its_content() {
        let (_keep, home) = dir();
        write(&home, "config.toml", 0o644, CONFIG);
        write(&home, ".env", 0o600, "A=b\nsk-secret-value here\n");
        let fault = settings(Some(Path::new(&home)))
            .fault
            .expect("it is broken");
        assert!(
            fault.ends_with(".env, line 2: not of the form NAME=value"),
            "{fault}"
        );
        assert!(!fault.contains("secret"));
    }

    #[test]
    fn folders_for_commands_are_judged_like_those_of_a_session() {
        let (_dir, dir) = dir();
        let at = |name: &str| format!("{dir}/{name}");
        let home = at("home");
        for name in ["home", "cache", "keys/.ssh"] {
            fs::create_dir_all(at(name)).expect("made");
        }
        std::os::unix::fs::symlink(at("cache"), at("link")).expect("linked");
        let listed =
            ["cache", "link", "keys", "gone", "home"].map(|name| format!("'{}'", at(name)));
        let text = format!("[sandbox]\nwritable = [{}, '/etc']\n", listed.join(", "));
        write(&home, "config.toml", 0o644, &text);
        let settings = settings(Some(Path::new(&home)));
        assert_eq!(settings.fault, None);
        // By its real path, and once.
        let cache = fs::canonicalize(at("cache")).expect("it is there");
        assert_eq!(settings.writable, [cache.to_str().expect("text")]);
        let refused = &settings.not_writable;
        assert_eq!(refused.len(), 4, "{refused:?}");
        for (why, name) in refused.iter().zip(["keys", "gone", "home"]) {
            assert!(why.starts_with(&at(name)), "{why}");
        }
        assert!(refused[3].starts_with("/etc "), "{refused:?}");
    }

    #[test]
    fn names_of_keys_are_known_without_configuration() {
        let (_keep, home) = dir();
        write(&home, "config.toml", 0o644, CONFIG);
        let names = key_names(&settings(Some(Path::new(&home))));
        assert!(names.contains(&"P_KEY".to_owned()));
        assert!(names.contains(&"OPENAI_API_KEY".to_owned()));
        // Nor is any other key of .env in the environment of a command.
        write(&home, ".env", 0o600, "MY_TOKEN=tok-123456\nPLAIN=x\n");
        let names = key_names(&settings(Some(Path::new(&home))));
        assert!(names.contains(&"MY_TOKEN".to_owned()));
        assert!(!names.contains(&"PLAIN".to_owned()));
        assert!(names.is_sorted());
    }

    #[test]
    fn the_machine_gets_its_home_without_links() {
        const NAME: &str = "config::tests::the_machine_gets_its_home_without_links";
        if own_process() {
            let w = env::var("REASONIX_TEST_DIR").expect("it was given");
            assert_eq!(host().home, Some(format!("{w}/real/not/yet")));
            assert_eq!(home(), Some(format!("{w}/link/not/yet").into()));
            return;
        }
        let (_keep, w) = dir();
        fs::create_dir(format!("{w}/real")).expect("made");
        std::os::unix::fs::symlink("real", format!("{w}/link")).expect("linked");
        let other = command_again(NAME)
            .env("REASONIX_TEST_DIR", &w)
            .env("REASONIX_HOME", format!("{w}/link/not/yet"))
            .output()
            .expect("it starts");
        let text = String::from_utf8_lossy(&other.stdout);
        assert!(text.contains("1 passed"), "{text}");
    }
}
