//! The life of one terminal that the editor makes for a command. Pure: events in, one step out.
//! Knows no session and no wire.
//!
//! | stage | event | next | does |
//! | --- | --- | --- | --- |
//! | `Creating` | made | `Running` | the card shows it; asks for the end |
//! | | an error, no id | over | the command runs here |
//! | | too late | over | the command runs here; what is made after all is released |
//! | | abort | over | aborted; what is made after all is released |
//! | `Running` | the end, an error | `Reading` | asks for the output |
//! | | abort | `Killing` | asks to kill |
//! | `Killing` | the end | `Killing` | remembers it |
//! | | killed, an error | `Reading` | asks for the output |
//! | | too late | over | releases; what is known |
//! | `Reading` | the end | `Reading` | remembers it |
//! | | the output, an error | over | releases; what is known |
//! | | abort, too late | over | releases; what is known |
//!
//! The command runs here only on the ways from `Creating` to over, so never twice. Every way on from
//! `Running` comes through exactly one release.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::call::{Call, Exit, Keep, Process, Program};
use crate::error::{IoFault, IoKind};
use crate::limits::Limits;
use crate::time::{Duration, Instant};

/// A command on its way through the editor's terminal.
#[derive(Debug)]
pub(super) struct TerminalRoute {
    process: Process,
    stage: Stage,
    due: Option<Instant>,
    grace: Duration,
    /// It was told to end.
    aborted: bool,
    /// How it ended, as far as that was said.
    exit: Option<Exit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Creating,
    Running,
    Killing,
    Reading,
}

/// What happened to a terminal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TerminalEvent {
    /// It is made, under this id, or is not.
    Created(Option<String>),
    /// The command has ended, as far as is known how.
    Exited(Option<Exit>),
    /// The command was told to end, or that failed.
    Killed,
    /// The output, whether its beginning is missing, and how the command ended.
    Output(Option<(String, bool, Option<Exit>)>),
    /// Nobody waits for the command any more, or its own time is up.
    Abort,
    /// The time of the stage is up.
    Due,
}

/// What a terminal needs next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TerminalStep {
    /// Show it in the card, under this id; ask for the end.
    Show(String),
    /// Ask to end the command.
    Kill,
    /// Ask for the output.
    Read,
    /// Over: the command runs here. With `late`, a terminal may still be made.
    Here { call: Call, late: bool },
    /// Over before anything was made. A terminal may still be made.
    Never(IoFault),
    /// Over: release it.
    Over {
        /// The output.
        output: Vec<u8>,
        /// How the command ended.
        end: Result<Exit, IoFault>,
    },
    /// Nothing: this does not belong to where it stands, or there is more to wait for.
    Nothing,
}

impl TerminalRoute {
    /// Takes a command that somebody waits for, or gives the call back. A command in the background
    /// keeps all its output and is none of these: the person's editor is not to show it for hours.
    pub(super) fn begin(now: Instant, call: Call, limits: &Limits) -> Result<Self, Call> {
        let waited_for = |process: &Process| {
            !process.stdin
                && matches!(process.program, Program::Shell(_))
                && matches!(process.keep, Keep::HeadAndTail { .. })
        };
        if let Call::Process(process) = &call
            && waited_for(process)
        {
            return Ok(Self {
                process: process.clone(),
                stage: Stage::Creating,
                due: Some(now.plus(limits.terminal_create)),
                grace: limits.terminal_grace,
                aborted: false,
                exit: None,
            });
        }
        Err(call)
    }

    /// The command.
    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// When it wants [`TerminalEvent::Due`].
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn on(&mut self, now: Instant, event: TerminalEvent) -> TerminalStep {
        match (self.stage, event) {
            (Stage::Creating, TerminalEvent::Created(Some(id))) if !id.trim().is_empty() => {
                self.stage = Stage::Running;
                self.due = None;
                TerminalStep::Show(id)
            }
            (Stage::Creating, TerminalEvent::Created(_)) => self.here(false),
            (Stage::Creating, TerminalEvent::Due) => self.here(true),
            (Stage::Creating, TerminalEvent::Abort) => TerminalStep::Never(aborted()),
            (Stage::Running, TerminalEvent::Exited(exit)) => {
                self.exit = exit;
                self.read()
            }
            (Stage::Running, TerminalEvent::Abort) => {
                self.aborted = true;
                self.stage = Stage::Killing;
                self.due = Some(now.plus(self.grace));
                TerminalStep::Kill
            }
            (Stage::Killing | Stage::Reading, TerminalEvent::Exited(exit)) => {
                self.exit = self.exit.or(exit);
                TerminalStep::Nothing
            }
            (Stage::Killing, TerminalEvent::Killed) => self.read(),
            (Stage::Reading, TerminalEvent::Output(output)) => self.over(output),
            (Stage::Killing | Stage::Reading, TerminalEvent::Due)
            | (Stage::Reading, TerminalEvent::Abort) => self.over(None),
            (
                Stage::Creating,
                TerminalEvent::Exited(_) | TerminalEvent::Killed | TerminalEvent::Output(_),
            )
            | (
                Stage::Running,
                TerminalEvent::Created(_)
                | TerminalEvent::Killed
                | TerminalEvent::Output(_)
                | TerminalEvent::Due,
            )
            | (
                Stage::Killing,
                TerminalEvent::Created(_) | TerminalEvent::Output(_) | TerminalEvent::Abort,
            )
            | (Stage::Reading, TerminalEvent::Created(_) | TerminalEvent::Killed) => {
                TerminalStep::Nothing
            }
        }
    }

    fn read(&mut self) -> TerminalStep {
        self.stage = Stage::Reading;
        TerminalStep::Read
    }

    fn here(&self, late: bool) -> TerminalStep {
        TerminalStep::Here {
            call: Call::Process(self.process.clone()),
            late,
        }
    }

    fn over(&self, output: Option<(String, bool, Option<Exit>)>) -> TerminalStep {
        let (text, exit) = match output {
            Some((text, truncated, exit)) => {
                let text = if truncated {
                    format!("[… earlier output left out by the editor …]\n{text}")
                } else {
                    text
                };
                (text, exit.or(self.exit))
            }
            None if self.aborted => (String::new(), self.exit),
            None => ("[the editor did not give the output]\n".into(), self.exit),
        };
        let end = exit.ok_or_else(|| {
            if self.aborted {
                aborted()
            } else {
                IoFault::new(
                    IoKind::Other,
                    "the editor did not say how it ended; it may have done its work in part",
                )
            }
        });
        TerminalStep::Over {
            output: text.into_bytes(),
            end,
        }
    }
}

fn aborted() -> IoFault {
    IoFault::new(IoKind::Aborted, "aborted")
}

/// How a command ended, by what ACP says of it. With neither member it has ended, but how is not
/// known.
pub(super) fn exit(code: Option<u32>, signal: Option<&str>) -> Exit {
    Exit {
        // A negative code comes as what it is without its sign.
        code: code.map(u32::cast_signed),
        signal: signal.and_then(signal_number),
        dropped: 0,
        left: false,
    }
}

/// The signals that are the same on all systems, by name or number.
fn signal_number(name: &str) -> Option<i32> {
    let name = name.trim();
    let number = match name.strip_prefix("SIG").unwrap_or(name) {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "ILL" => 4,
        "TRAP" => 5,
        "ABRT" => 6,
        "FPE" => 8,
        "KILL" => 9,
        "SEGV" => 11,
        "PIPE" => 13,
        "ALRM" => 14,
        "TERM" => 15,
        number => return number.parse().ok(),
    };
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Errors;
    use TerminalEvent as E;
    use TerminalStep as S;
    use alloc::vec;

    fn process(keep: Keep) -> Process {
        Process {
            program: Program::Shell("make".into()),
            cwd: "/w".into(),
            env: Vec::new(),
            stdin: false,
            errors: Errors::Merged,
            keep,
            sandbox: None,
        }
    }

    fn foreground() -> Process {
        process(Keep::HeadAndTail { head: 1, tail: 1 })
    }

    #[track_caller]
    fn check(rows: Vec<(E, S)>) {
        let call = Call::Process(foreground());
        let route = TerminalRoute::begin(Instant::ZERO, call, &Limits::default());
        let mut route = route.expect("somebody waits for it");
        let mut releases = 0;
        let mut made = 0;
        for (event, step) in rows {
            let shown = format!("{event:?}");
            let next = route.on(Instant::ZERO, event);
            made += usize::from(matches!(next, S::Show(_)));
            releases += usize::from(matches!(next, S::Over { .. }));
            assert_eq!(next, step, "{shown}");
        }
        assert_eq!(made, releases, "each terminal is released once");
    }

    fn made() -> (E, S) {
        (E::Created(Some("t".into())), S::Show("t".into()))
    }

    fn over(output: &str, end: Result<Exit, IoFault>) -> S {
        S::Over {
            output: output.into(),
            end,
        }
    }

    fn output(text: &str, truncated: bool, exit: Option<Exit>) -> E {
        E::Output(Some((text.into(), truncated, exit)))
    }

    fn unknown_end() -> IoFault {
        IoFault::new(
            IoKind::Other,
            "the editor did not say how it ended; it may have done its work in part",
        )
    }

    #[test]
    fn a_command_that_ends_by_itself() {
        let good = exit(Some(0), None);
        check(vec![
            made(),
            (E::Exited(Some(good)), S::Read),
            (output("x", false, None), over("x", Ok(good))),
        ]);
        let note = "[… earlier output left out by the editor …]\nx";
        check(vec![
            made(),
            (E::Exited(Some(good)), S::Read),
            (output("x", true, None), over(note, Ok(good))),
        ]);
        // Who cannot wait may still say how it ended.
        check(vec![
            made(),
            (E::Exited(None), S::Read),
            (output("x", false, Some(good)), over("x", Ok(good))),
        ]);
        check(vec![
            made(),
            (E::Exited(None), S::Read),
            (output("x", false, None), over("x", Err(unknown_end()))),
        ]);
        let lost = "[the editor did not give the output]\n";
        check(vec![
            made(),
            (E::Exited(Some(good)), S::Read),
            (E::Output(None), over(lost, Ok(good))),
        ]);
    }

    #[test]
    fn a_command_that_is_told_to_end_is_killed_then_read_then_released() {
        let killed = exit(None, Some("SIGTERM"));
        check(vec![
            made(),
            (E::Abort, S::Kill),
            (E::Abort, S::Nothing),
            (E::Killed, S::Read),
            (E::Exited(Some(killed)), S::Nothing),
            (output("x", false, None), over("x", Ok(killed))),
        ]);
        check(vec![
            made(),
            (E::Abort, S::Kill),
            (E::Exited(Some(killed)), S::Nothing),
            (E::Due, over("", Ok(killed))),
        ]);
        check(vec![
            made(),
            (E::Abort, S::Kill),
            (E::Killed, S::Read),
            (E::Due, over("", Err(aborted()))),
        ]);
        let good = exit(Some(0), None);
        check(vec![
            made(),
            (E::Exited(Some(good)), S::Read),
            (
                E::Abort,
                over("[the editor did not give the output]\n", Ok(good)),
            ),
        ]);
    }

    #[test]
    fn it_runs_here_only_where_no_terminal_was_made() {
        let here = |late| S::Here {
            call: Call::Process(foreground()),
            late,
        };
        check(vec![(E::Created(None), here(false))]);
        check(vec![(E::Created(Some(" ".into())), here(false))]);
        check(vec![(E::Due, here(true))]);
        check(vec![(E::Abort, S::Never(aborted()))]);
    }

    #[test]
    fn what_runs_in_the_background_stays_here() {
        let limits = Limits::default();
        for process in [
            process(Keep::All),
            Process {
                stdin: true,
                ..foreground()
            },
            Process {
                program: Program::Argv(vec!["x".into()]),
                ..foreground()
            },
        ] {
            let call = Call::Process(process);
            assert!(TerminalRoute::begin(Instant::ZERO, call, &limits).is_err());
        }
    }

    #[test]
    fn neither_code_nor_signal_is_no_success() {
        for (code, signal, expected) in [
            (Some(0), None, (Some(0), None)),
            (Some(u32::MAX), None, (Some(-1), None)),
            (None, Some("SIGKILL"), (None, Some(9))),
            (None, Some("TERM"), (None, Some(15))),
            (None, Some("15"), (None, Some(15))),
            (None, Some("odd"), (None, None)),
            (None, None, (None, None)),
        ] {
            let exit = exit(code, signal);
            assert_eq!((exit.code, exit.signal), expected);
        }
    }
}
