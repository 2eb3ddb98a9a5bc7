//! Diagnostics: standard error or a file, one bounded line a record, no secrets. Never standard
//! output, which belongs to the protocol.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use env_logger::{Builder, Target};
use log::LevelFilter;
use reasonix_core::secret::Secrets;
use reasonix_core::settings::Settings;
use reasonix_core::shown;

/// Longest line, bytes, its end included: what reads our standard error may choke on longer ones.
pub const MAX_LINE: usize = 16 << 10;

/// What must not be shown.
static SECRETS: Mutex<Vec<Secrets>> = Mutex::new(Vec::new());

/// Starts logging. `verbose`: 0 warnings, 1 what happens, 2 every step. A file gets what happens
/// even without being asked.
pub fn start(file: Option<&Path>, verbose: u8) -> io::Result<()> {
    let target: Box<dyn Write + Send> = match file {
        Some(path) => Box::new(OpenOptions::new().create(true).append(true).open(path)?),
        None => Box::new(io::stderr()),
    };
    let stamped = file.is_some();
    let ours = match verbose.max(u8::from(stamped)) {
        0 => LevelFilter::Warn,
        1 => LevelFilter::Info,
        _ => LevelFilter::Debug,
    };
    Builder::new()
        .filter_level(LevelFilter::Warn)
        .filter_module("reasonix", ours)
        .target(Target::Pipe(target))
        .format(move |out, record| {
            let level = record.level().as_str().to_ascii_lowercase();
            let text = format!("{level}: {}", record.args());
            let text = if stamped {
                format!("{} {text}", stamp(SystemTime::now()))
            } else {
                format!("reasonix: {text}")
            };
            out.write_all(line(redacted(text)).as_bytes())
        })
        .try_init()
        .map_err(io::Error::other)
}

/// From here on the keys in `settings` are redacted.
pub fn hide(settings: &Settings) {
    let keys = settings.providers.iter().filter_map(|p| p.api_key.clone());
    let keys = keys.chain(settings.secrets.iter().cloned());
    if let Ok(mut secrets) = SECRETS.lock() {
        secrets.push(Secrets::new(keys));
    }
}

/// `text` without any known secret.
pub fn redacted(mut text: String) -> String {
    if let Ok(secrets) = SECRETS.lock() {
        for known in &*secrets {
            known.redact(&mut text);
        }
    }
    text
}

/// One line out of `text`: line ends inside become `\n`, nothing in it moves a terminal's cursor, and
/// what is too long is cut visibly.
fn line(text: String) -> String {
    const CUT: &str = " [cut]";
    let text = text.trim_end().replace('\n', "\\n").replace('\r', "\\r");
    let mut text = shown::name(&text.replace('\t', " ")).into_owned();
    if text.len() >= MAX_LINE {
        let mut end = MAX_LINE - 1 - CUT.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(CUT);
    }
    text.push('\n');
    text
}

/// Seconds since 1970, with milliseconds.
fn stamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:03}", since.as_secs(), since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_bounded_line() {
        assert_eq!(line("a\nb\r\n".into()), "a\\nb\n");
        assert_eq!(
            line("a\t\u{1b}[2J\u{202e}b".into()),
            "a \\u{1b}[2J\\u{202e}b\n"
        );
        let long = line("ä".repeat(MAX_LINE));
        assert!(long.len() <= MAX_LINE);
        assert!(long.ends_with(" [cut]\n"));
    }
}
