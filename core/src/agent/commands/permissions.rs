//! `/permissions`: what may run, what was allowed for good, and why the last calls ran or did not.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::super::Agent;
use super::super::session::Session;
use crate::ids::SessionKey;
use crate::permission::{Grant, Posture};

impl Agent {
    /// Does it; what it says.
    pub(super) fn permissions(&mut self, key: SessionKey, rest: &str) -> String {
        let Some(session) = self.sessions.get_mut(&key) else {
            return String::new();
        };
        let mut words = rest.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (None, _, _) => shown(session),
            (Some("revoke"), Some(which), None) => revoke(session, which),
            _ => "Say /permissions, /permissions revoke NUMBER or /permissions revoke all.".into(),
        }
    }
}

fn revoke(session: &mut Session, which: &str) -> String {
    let held: Vec<Grant> = session
        .engine
        .authority()
        .grants()
        .list()
        .cloned()
        .collect();
    if which == "all" {
        for grant in &held {
            session.engine.revoke(grant);
        }
        return format!("Taken back: all {} that were allowed.", held.len());
    }
    let number = which.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    match number.and_then(|n| held.get(n)) {
        Some(grant) => {
            session.engine.revoke(grant);
            format!("Taken back: {grant}. It is asked about again.")
        }
        None => format!("There is no number {which}; /permissions lists them."),
    }
}

fn shown(session: &Session) -> String {
    let authority = session.engine.authority();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "Approvals: {}", authority.posture());
    let ceiling = authority.mode().ceiling.posture();
    if ceiling < Posture::Yolo {
        let _ = write!(text, " (nothing is above {ceiling} here)");
    }
    let _ = writeln!(text, ". {}", meaning(authority.posture()));
    if authority.mode().accept_edits {
        text.push_str("Edits inside the folders of the session are accepted.\n");
    }
    if authority.is_planning() {
        text.push_str("A plan is being made: nothing is written or run until it is approved.\n");
    }
    let mut rules = authority.rules().texts().peekable();
    if rules.peek().is_some() {
        text.push_str("\nRules of config.toml, in the order in which they count:\n");
        for (list, rule) in rules {
            let _ = writeln!(text, "- {list} `{rule}`");
        }
    }
    let mut grants = authority.grants().list().enumerate().peekable();
    if grants.peek().is_some() {
        text.push_str("\nAllowed for this session (take back with /permissions revoke NUMBER):\n");
        for (n, grant) in grants {
            let _ = writeln!(text, "{}. {grant}", n + 1);
        }
    } else {
        text.push_str("\nNothing was allowed for this session.\n");
    }
    if !session.decided.is_empty() {
        text.push_str("\nThe last decisions, newest first:\n");
        for decided in session.decided.iter().rev() {
            let _ = writeln!(
                text,
                "- {}: {}: {}",
                decided.ruling, decided.call, decided.why
            );
        }
    }
    text
}

const fn meaning(posture: Posture) -> &'static str {
    match posture {
        Posture::ReadOnly => "Nothing that writes or runs is allowed.",
        Posture::DontAsk => "What no rule allows is denied; nobody is asked.",
        Posture::Ask => "What no rule allows is asked about.",
        Posture::Auto => "Only what a rule says to ask about is asked about.",
        Posture::Yolo => "Only protected decisions are asked about.",
    }
}
