//! The model that would be used, and whether its provider answers: one request for the list of its models, which costs
//! nothing.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use reasonix_blocking::ops::{Told, http};
use reasonix_core::agent::Config;
use reasonix_core::call::{HeaderValue, HttpRequest};
use reasonix_core::settings::{Provider, Settings};

use super::Finding;

/// The whole request may take this long.
const TIME: Duration = Duration::from_secs(10);

/// Most bytes of an answer that are read.
const MOST: usize = 1 << 20;

/// The model and its provider.
pub(super) fn look(config: &Config, offline: bool) -> Vec<Finding> {
    if config.script.is_some() {
        return vec![Finding::ok(
            "model",
            "a script: needs no key and no network",
        )];
    }
    let settings = &config.settings;
    let Some(name) = config.model.as_ref().or(settings.default_model.as_ref()) else {
        return vec![Finding::problem(
            "model",
            "none is selected",
            "Run: reasonix setup, or set default_model in config.toml",
        )];
    };
    let Some(provider) = of(settings, name) else {
        return vec![Finding::problem(
            "model",
            format!("{name} is not in config.toml"),
            "Add it to its provider's models, or run: reasonix setup",
        )];
    };
    let mut findings = vec![Finding::ok("model", name.clone())];
    if !provider.usable() {
        // What is missing is told with the keys.
        return findings;
    }
    findings.push(match offline {
        true => Finding::ok(
            "provider",
            format!("{} was not asked (--offline)", provider.name),
        ),
        false => reach(provider),
    });
    findings
}

fn of<'a>(settings: &'a Settings, model: &str) -> Option<&'a Provider> {
    let (provider, id) = model.split_once('/')?;
    let provider = settings.providers.iter().find(|p| p.name == provider)?;
    let known =
        |it: &reasonix_core::settings::Model| it.id == id || it.alias.as_deref() == Some(id);
    provider.models.iter().any(known).then_some(provider)
}

fn reach(provider: &Provider) -> Finding {
    let url = format!("{}/models", provider.base_url.trim_end_matches('/'));
    let mut headers = vec![(
        "accept".into(),
        HeaderValue::Plain("application/json".into()),
    )];
    if let Some(key) = &provider.api_key {
        headers.push(("authorization".into(), HeaderValue::Bearer(key.clone())));
    }
    let name = &provider.name;
    match status(&url, headers) {
        Ok(200..=299) => Finding::ok("provider", format!("{name} answers, and takes the key")),
        Ok(status @ (401 | 403)) => Finding::problem(
            "provider",
            format!("{name} answers, but refuses the key (HTTP {status})"),
            format!("Run: reasonix setup --provider {name}"),
        ),
        Ok(404 | 405) => Finding::ok(
            "provider",
            format!("{name} answers; it has no list of models, so the key was not tried"),
        ),
        Ok(status @ 500..) => Finding::problem(
            "provider",
            format!("{name} answers, but is in trouble (HTTP {status})"),
            "Try again later",
        ),
        Ok(status) => Finding::note(
            "provider",
            format!("{name} answers with HTTP {status} to {url}"),
            "See that base_url is the address before /chat/completions",
        ),
        Err(why) => Finding::problem(
            "provider",
            format!("{name} cannot be reached: {why}"),
            format!(
                "See base_url in config.toml ({}) and your network",
                provider.base_url
            ),
        ),
    }
}

/// The status of the answer to a GET.
fn status(url: &str, headers: Vec<(String, HeaderValue)>) -> Result<u16, String> {
    let request = HttpRequest {
        method: "GET",
        url: url.into(),
        headers,
        body: Vec::new(),
        connect_time: TIME,
        reach: reasonix_core::reach::Reach::Anywhere,
    };
    let handle = http::Handle::default();
    handle.grant(MOST);
    let (sender, told) = channel();
    let reader = handle.clone();
    thread::spawn(move || {
        http::run(&request, &reader, |told| {
            // Nobody listens any more once the status is known.
            let _ = sender.send(told);
        });
    });
    let first = told.recv_timeout(TIME);
    handle.abort();
    match first {
        Ok(Told::Opened(head)) => Ok(head.status),
        Ok(Told::Failed(fault)) => Err(fault.to_string()),
        Ok(_) => Err("an answer without a head".into()),
        Err(_) => Err(format!("no answer within {} seconds", TIME.as_secs())),
    }
}
