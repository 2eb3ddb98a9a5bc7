//! The agent's home and what lies in it. Reads, writes nothing.

use std::fs;
use std::io;
use std::path::Path;

use reasonix_blocking::config;
use reasonix_core::settings::Settings;

use super::Finding;

/// What is there and what is wrong with it.
pub(super) fn look(home: Option<&Path>, settings: &Settings) -> Vec<Finding> {
    let Some(home) = home else {
        return vec![Finding::problem(
            "home",
            "there is no place for configuration and conversations",
            "Set REASONIX_HOME or HOME",
        )];
    };
    let mut findings = vec![directory(home)];
    findings.push(config_file(home));
    findings.extend(keys(home, settings));
    findings
}

fn directory(home: &Path) -> Finding {
    let shown = home.display();
    match fs::metadata(home) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Finding::ok(
            "home",
            format!("{shown} is not there yet; it is made when it is needed"),
        ),
        Err(error) => Finding::problem("home", format!("{shown}: {error}"), ""),
        Ok(data) if !data.is_dir() => Finding::problem(
            "home",
            format!("{shown} is no folder"),
            "Move it away, or set REASONIX_HOME",
        ),
        Ok(data) if read_only(home, &data) => Finding::problem(
            "home",
            format!("nothing can be written in {shown}: conversations would be lost"),
            format!("Run: chmod u+rwx {shown}"),
        ),
        Ok(_) => match fs::read_dir(home.join("sessions")) {
            Ok(entries) => {
                let count = entries.count();
                Finding::ok("home", format!("{shown}, {count} conversations stored"))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Finding::ok("home", format!("{shown}, no conversations stored"))
            }
            Err(error) => Finding::problem(
                "home",
                format!("the conversations cannot be read: {shown}/sessions: {error}"),
                "Make it a folder of your own",
            ),
        },
    }
}

/// Whether this user may not write there, as the system says it.
#[cfg(unix)]
fn read_only(home: &Path, _data: &fs::Metadata) -> bool {
    use rustix::fs::{Access, access};
    access(home, Access::WRITE_OK | Access::EXEC_OK).is_err()
}

#[cfg(not(unix))]
fn read_only(_home: &Path, data: &fs::Metadata) -> bool {
    data.permissions().readonly()
}

fn config_file(home: &Path) -> Finding {
    let shown = home.join("config.toml");
    let shown = shown.display();
    match config::file(home) {
        Ok(None) => Finding::note(
            "configuration",
            format!("{shown} is not there"),
            "Run: reasonix setup",
        ),
        Ok(Some(settings)) => {
            let models: usize = settings.providers.iter().map(|p| p.models.len()).sum();
            let providers = settings.providers.len();
            Finding::ok(
                "configuration",
                format!("{shown}: {providers} providers, {models} models"),
            )
        }
        Err(fault) => {
            Finding::problem("configuration", fault, "Correct it, or run: reasonix setup")
        }
    }
}

/// The keys that are wanted, and where they are. Never what they are.
fn keys(home: &Path, settings: &Settings) -> Vec<Finding> {
    let path = home.join(".env");
    let shown = path.display();
    let names = match config::env_names(home) {
        Ok(names) => names,
        Err(fault) => return vec![Finding::problem("keys", fault, "")],
    };
    let mut findings = Vec::new();
    if settings.providers.is_empty() {
        // With a provider only its own key counts.
        for name in &settings.unused_keys {
            findings.push(Finding::note(
                "keys",
                format!("{name} stands in the environment, which is not used"),
                format!("Run: reasonix setup --from-env {name}, with the --provider it is for"),
            ));
        }
    }
    for provider in &settings.providers {
        let Some(name) = &provider.api_key_env else {
            continue;
        };
        findings.push(if names.contains(name) {
            Finding::ok("keys", format!("{name} of {} is in {shown}", provider.name))
        } else if settings.unused_keys.contains(name) {
            Finding::problem(
                "keys",
                format!(
                    "{name} of {} stands in the environment, which is not used",
                    provider.name
                ),
                format!(
                    "Run: reasonix setup --provider {} --from-env {name}",
                    provider.name
                ),
            )
        } else {
            Finding::problem(
                "keys",
                format!("{name} of {} is not in {shown}", provider.name),
                format!("Run: reasonix setup --provider {}", provider.name),
            )
        });
    }
    findings
}
