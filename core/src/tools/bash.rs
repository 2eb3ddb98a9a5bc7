//! The tool that runs command lines, in the foreground or as a job of the session.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::args::Args;
use super::paths;
use super::run::{Begun, Context, Event, Work};
use super::state::{Kept, how_it_exited, in_words};
use super::step::{Step, ToolOutcome};
use super::workspace::Workspace;
use crate::call::{
    Call, Confinement, Errors, Exit, FileKind, Keep, Outcome, Process, Program, Resolved,
};
use crate::error::IoFault;
use crate::permission::Access;
use crate::secret::Secret;
use crate::time::{Deadline, Instant, Timer};

pub(super) fn bash(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let command = args.words("command")?;
    if command.contains('\0') {
        return Err("`command` holds a NUL byte".into());
    }
    let workdir = match args.opt_string("workdir")? {
        Some(workdir) if !workdir.trim().is_empty() => paths::absolute(ws, "workdir", &workdir)?,
        Some(_) | None => ws.cwd.clone(),
    };
    let limits = &ws.limits;
    let limit = args.opt_seconds("timeout_seconds", limits.max_command_time)?;
    let work = Bash {
        command: command.clone(),
        workdir,
        limit: limit.unwrap_or(limits.command_time.min(limits.max_command_time)),
        background: args.flag("run_in_background")?,
        output: Kept::new(limits.output_head, limits.output_tail),
        running: false,
        timed_out: false,
        shown: None,
        unshown: false,
        every: limits.live_output_every,
    };
    Ok(Begun::new(work, command))
}

#[derive(Debug)]
struct Bash {
    command: String,
    workdir: String,
    limit: Duration,
    background: bool,
    output: Kept,
    running: bool,
    timed_out: bool,
    /// When live output was last given.
    shown: Option<Instant>,
    /// Whether there is output that was not.
    unshown: bool,
    every: Duration,
}

impl Work for Bash {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        match event {
            Event::Started => cx.call(Call::Resolve {
                path: self.workdir.clone(),
            }),
            Event::Done(Outcome::Resolved(it)) => self.ask(&it, cx),
            Event::Permitted if self.background => self.hand_over(cx),
            Event::Permitted => {
                self.running = true;
                let keep = Keep::HeadAndTail {
                    head: cx.ws.limits.output_head,
                    tail: cx.ws.limits.output_tail,
                };
                cx.call(self.process(keep, cx.ws));
            }
            Event::Bytes(bytes) => {
                self.output.push(bytes);
                self.unshown = true;
                self.show(cx);
            }
            Event::Due => {
                self.show(cx);
                let over = self.limit_at(cx).is_some_and(|at| at <= cx.now);
                if over && !self.timed_out {
                    self.timed_out = true;
                    cx.flow.steps.push_back(Step::Abort);
                }
            }
            Event::Done(Outcome::Exited(exit)) => self.exited(&exit, cx),
            Event::Failed(fault) => self.failed(&fault, cx),
            Event::Done(_) => cx.fail("bash: an answer that does not fit"),
            Event::Answered(_) | Event::Idle => {}
        }
    }

    fn deadline(&self, opened: Option<Instant>) -> Option<Deadline> {
        let opened = opened.filter(|_| self.running)?;
        let limit = (!self.timed_out).then(|| Deadline {
            at: opened.plus(self.limit),
            why: Timer::ToolLimit,
        });
        let live = self.shown.filter(|_| self.unshown).map(|at| Deadline {
            at: at.plus(self.every),
            why: Timer::LiveOutput,
        });
        Deadline::earlier(limit, live)
    }
}

impl Bash {
    fn ask(&self, workdir: &Resolved, cx: &mut Context<'_>) {
        match workdir.kind {
            FileKind::Directory => {
                let real = paths::clean(&workdir.real);
                let inside = cx.ws.roots.iter().any(|root| paths::is_within(&real, root));
                let access = Access::Execute {
                    command: self.command.clone(),
                    inside,
                };
                cx.permit(access, Vec::new());
            }
            FileKind::Missing | FileKind::Dangling => cx.fail(format!(
                "The working directory {} does not exist (any more); nothing was run.",
                self.workdir
            )),
            FileKind::File | FileKind::Special => cx.fail(format!(
                "The working directory {} is no directory; nothing was run.",
                self.workdir
            )),
        }
    }

    fn process(&self, keep: Keep, ws: &Workspace) -> Call {
        let sandbox = ws.confinement();
        let secret = |it: &Confinement| Secret::new("TMPDIR", it.tmp.clone());
        let tmp = sandbox.as_deref().map(|it| ("TMPDIR".into(), secret(it)));
        Call::Process(Process {
            program: Program::Shell(self.command.clone()),
            cwd: self.workdir.clone(),
            env: tmp.into_iter().collect(),
            stdin: false,
            errors: Errors::Merged,
            keep,
            sandbox,
        })
    }

    fn hand_over(&mut self, cx: &mut Context<'_>) {
        if let Err(why) = cx.state.may_add_job() {
            return cx.fail(why);
        }
        let job = cx.state.add_job(cx.now, &self.command);
        cx.call(self.process(Keep::All, cx.ws));
        cx.flow.steps.push_back(Step::Detach(job));
        cx.succeed(format!(
            "Started {job} in the background. Use bash_output for its output, wait to wait for \
             its end, kill_shell to end it."
        ));
    }

    /// Gives live output, if it is time for it.
    fn show(&mut self, cx: &mut Context<'_>) {
        let due = self.shown.is_none_or(|at| at.plus(self.every) <= cx.now);
        if !due || !self.unshown {
            return;
        }
        self.shown = Some(cx.now);
        self.unshown = false;
        let steps = &mut cx.flow.steps;
        steps.retain(|step| !matches!(step, Step::Progress(_)));
        steps.push_back(Step::Progress(
            self.output.last(cx.ws.limits.max_tool_update),
        ));
    }

    fn limit_at(&self, cx: &Context<'_>) -> Option<Instant> {
        let opened = cx.opened().filter(|_| self.running)?;
        Some(opened.plus(self.limit))
    }

    fn exited(&mut self, exit: &Exit, cx: &mut Context<'_>) {
        self.output.drop_more(exit.dropped);
        let took = cx.flow.closed_after.unwrap_or_default();
        let how = if self.timed_out {
            format!(
                "timed out after {}; it was ended with all it started",
                in_words(self.limit)
            )
        } else {
            format!("{} after {}", how_it_exited(exit), in_words(took))
        };
        let ok = exit.code == Some(0) && exit.signal.is_none() && !self.timed_out;
        self.end(ok, &how, Some(exit), took, cx);
    }

    fn failed(&mut self, fault: &IoFault, cx: &mut Context<'_>) {
        if !self.running {
            return cx.fail(format!("{}: {fault}", self.workdir));
        }
        let took = cx.flow.closed_after.unwrap_or_default();
        let how = if self.timed_out {
            format!(
                "timed out after {}; it was ended with all it started",
                in_words(self.limit)
            )
        } else {
            format!("failed after {}: {fault}", in_words(took))
        };
        self.end(false, &how, None, took, cx);
    }

    fn end(
        &mut self,
        ok: bool,
        how: &str,
        exit: Option<&Exit>,
        took: Duration,
        cx: &mut Context<'_>,
    ) {
        cx.flow.steps.clear();
        let output = self.output.text(&cx.ws.secrets);
        let output = match output.trim_end_matches('\n') {
            "" => "(no output)",
            output => output,
        };
        let number = |n: Option<i32>| n.map_or("null".into(), |n| format!("{n}"));
        let raw = format!(
            r#"{{"exitCode":{},"signal":{},"timedOut":{},"durationMs":{}}}"#,
            number(exit.and_then(|exit| exit.code)),
            number(exit.and_then(|exit| exit.signal)),
            self.timed_out,
            took.as_millis(),
        );
        let ran = exit.is_some() && !self.timed_out;
        cx.end(ToolOutcome {
            ok,
            text: format!("{output}\n[{how}]"),
            raw_output: Some(raw),
            ran: ran.then(|| core::mem::take(&mut self.command)),
            diffs: vec![],
            ..ToolOutcome::default()
        });
    }
}
