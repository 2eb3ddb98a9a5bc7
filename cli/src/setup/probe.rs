//! One small request, to see that what was written works: the same model code and the same
//! operation that a turn uses.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant as Clock};

use reasonix_blocking::config;
use reasonix_blocking::ops::{Told, http};
use reasonix_core::call::{Call, HttpRequest};
use reasonix_core::error::{IoFault, IoKind};
use reasonix_core::limits::Limits;
use reasonix_core::model::{ChatMessage, Endpoint, ModelEvent, ModelRun, Part};
use reasonix_core::time::Instant;

use super::files::Entry;

/// The whole test may take this long.
const TIME: Duration = Duration::from_secs(60);

/// Sends it; what went wrong is for a person.
pub fn probe(home: &Path, entry: &Entry) -> Result<(), String> {
    let settings = config::settings(Some(home));
    crate::logging::hide(&settings);
    if let Some(fault) = settings.fault {
        return Err(fault);
    }
    let provider = settings.providers.iter().find(|p| p.name == entry.provider);
    let model = provider.and_then(|p| p.models.iter().find(|m| m.id == entry.model));
    let (Some(mut provider), Some(mut model)) = (provider.cloned(), model.cloned()) else {
        return Err("the configuration does not hold what was written to it".into());
    };
    provider.max_retries = 0;
    provider.idle_timeout = provider.idle_timeout.min(TIME);
    model.max_output = Some(1);
    ask(&Endpoint::new(&provider, &model, None))
}

fn ask(endpoint: &Endpoint) -> Result<(), String> {
    let started = Clock::now();
    let now = || Instant::since_start(started.elapsed());
    let question = [ChatMessage::User(vec![Part::Text("Say ok.".into())])];
    let limits = Limits::default();
    let mut run = ModelRun::http(now(), endpoint, &question, &[], &limits, 0);
    let (sender, told) = channel();
    let mut handle = http::Handle::default();
    loop {
        while let Some(event) = run.next_event(now()) {
            match event {
                ModelEvent::Start(Call::Http(request)) => handle = start(request, &sender),
                ModelEvent::Start(_) => {
                    let fault = IoFault::new(IoKind::Unsupported, "not a request");
                    let _ = sender.send(Told::Failed(fault));
                }
                ModelEvent::Abort => handle.abort(),
                ModelEvent::Finished(_) => return Ok(()),
                ModelEvent::Failed(fault) => return Err(fault.message),
                ModelEvent::Attempt
                | ModelEvent::Text(_)
                | ModelEvent::Thought(_)
                | ModelEvent::Retrying { .. } => {}
            }
        }
        let deadline = run.deadline().map(|d| d.at.elapsed());
        let until = deadline.unwrap_or(TIME).min(TIME);
        match told.recv_timeout(until.saturating_sub(started.elapsed())) {
            Ok(told) => told.into_news(|news| run.handle_news(now(), &news)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)
                if started.elapsed() >= TIME =>
            {
                handle.abort();
                return Err(format!("no answer within {} seconds", TIME.as_secs()));
            }
            Err(_) => run.handle_timeout(now()),
        }
    }
}

/// Does the request on a thread of its own.
fn start(request: HttpRequest, sender: &Sender<Told>) -> http::Handle {
    let handle = http::Handle::default();
    // An answer of one token is small; the time bounds what a wrong address may send.
    handle.grant(Limits::default().max_answer);
    let (reader, sender) = (handle.clone(), sender.clone());
    thread::spawn(move || {
        http::run(&request, &reader, |told| {
            let _ = sender.send(told);
        });
    });
    handle
}
