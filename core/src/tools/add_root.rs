//! The tool by which the model asks for one more folder. It is judged like the folders that a client
//! names, put before the person whatever the posture, and judged again when they have decided: what
//! was shown is what is added.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::args::Args;
use super::paths::{self, is_within};
use super::roots::{RootFault, Vetted, Vetting, overlaps};
use super::run::{Begun, Context, Event, Work};
use super::step::{Proposal, Step};
use super::text;
use super::workspace::Workspace;
use crate::call::Outcome;
use crate::error::IoFault;
use crate::permission::{Access, Action};

/// Whether the tool of this name adds folders.
#[cfg(feature = "engine")]
pub(crate) fn adds_roots(name: &str) -> bool {
    name == "add_root"
}

pub(super) fn add_root(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    if ws.closed {
        return Err("no folder can be added here (--workspace-only)".into());
    }
    let asked = paths::absolute(ws, "path", &args.words("path")?)?;
    let work = AddRoot {
        asked: asked.clone(),
        reason: args.opt_string("reason")?.unwrap_or_default(),
        vetting: None,
        shown: None,
    };
    Ok(Begun::new(work, asked.clone()).at(&asked, None))
}

#[derive(Debug)]
struct AddRoot {
    asked: String,
    reason: String,
    /// It is being judged.
    vetting: Option<Vetting>,
    /// The real path that the person was asked about.
    shown: Option<String>,
}

impl Work for AddRoot {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        match event {
            Event::Started | Event::Permitted => self.vet(cx),
            Event::Done(outcome) => self.judge(Ok(outcome), cx),
            Event::Failed(fault) => self.judge(Err(fault), cx),
            Event::Answered(_) | Event::Bytes(_) | Event::Due | Event::Idle => {}
        }
    }
}

impl AddRoot {
    fn vet(&mut self, cx: &mut Context<'_>) {
        match Vetting::begin(&self.asked) {
            Ok((vetting, call)) => {
                self.vetting = Some(vetting);
                cx.call(call);
            }
            Err(fault) => refuse(&fault, cx),
        }
    }

    fn judge(&mut self, outcome: Result<Outcome, IoFault>, cx: &mut Context<'_>) {
        let Some(vetting) = &mut self.vetting else {
            return;
        };
        match vetting.take(outcome, &cx.ws.host, &cx.ws.limits) {
            Ok(Vetted::More(call)) => cx.call(call),
            Ok(Vetted::Root(real)) => self.judged(real, cx),
            Err(fault) => refuse(&fault, cx),
        }
    }

    fn judged(&mut self, real: String, cx: &mut Context<'_>) {
        let ws = cx.ws;
        if let Some(root) = ws.roots.iter().find(|root| is_within(&real, root)) {
            let text = format!("{real} is in {root}, a folder of the session: it can be used.");
            return cx.succeed(text);
        }
        if let Err(fault) = overlaps(&self.asked, &real, &ws.roots) {
            return refuse(&fault, cx);
        }
        // The working directory is the first of them and does not count.
        if ws.roots.len() > ws.limits.max_roots {
            return refuse(&RootFault::too_many(&self.asked, &ws.limits), cx);
        }
        match &self.shown {
            None => self.ask(real, cx),
            Some(shown) if *shown == real => {
                cx.flow.steps.push_back(Step::AddRoot(real.clone()));
                cx.succeed(format!(
                    "{real} is a folder of the session now: files in it can be read and written, \
                     and commands can write there."
                ));
            }
            Some(_) => cx.fail(format!(
                "{} leads somewhere else now than when the person was asked; it was not added.",
                self.asked
            )),
        }
    }

    fn ask(&mut self, real: String, cx: &mut Context<'_>) {
        let mut said = format!(
            "Adds {real} to the folders of this session: files in it can be read, and written and \
             used by commands as far as that is allowed."
        );
        if !self.reason.trim().is_empty() {
            said.push_str(" Reason given: ");
            said.push_str(&text::one_line(&self.reason, 1000));
        }
        let mut card = cx.card.clone();
        card.title = text::one_line(&format!("{} {real}", card.name), cx.ws.limits.max_title);
        self.shown = Some(real);
        cx.flow.asking = true;
        cx.flow.steps.push_back(Step::Permit(Proposal {
            action: Action::new(cx.card.name.clone(), Access::Other).protected(),
            card,
            diffs: Vec::new(),
            text: Some(said),
        }));
    }
}

fn refuse(fault: &RootFault, cx: &mut Context<'_>) {
    cx.fail(format!("Not added: {fault}."));
}
