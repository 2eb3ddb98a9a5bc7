//! Process groups that we made, and how all that is left of them is ended. Knows nothing of what
//! runs in them.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use reasonix_core::call::Exit;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::kin::Mark;
use super::{PATIENCE, Running};

/// A process group that we made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(pub(super) Pid);

impl Group {
    /// Whether a process is left in it.
    pub fn exists(self) -> bool {
        test_kill_process_group(self.0) != Err(rustix::io::Errno::SRCH)
    }

    /// Asks whoever is left in it to end.
    pub fn ask_to_end(self) {
        self.signal(Signal::TERM);
    }

    /// Kills whoever is left in it, at once.
    pub fn kill(self) {
        self.signal(Signal::KILL);
    }

    fn signal(self, signal: Signal) {
        // An error means that nobody is left to hear it.
        let _ = kill_process_group(self.0, signal);
    }
}

/// Ends all that is left of these, as an abort does, and of all that has the mark, and waits till it is
/// gone: half a second if someone ignores the polite signal.
pub fn end_all(running: Vec<Running>, groups: &[Group], mark: Option<&Mark>) {
    let mut groups: Vec<Group> = groups.to_vec();
    groups.extend(running.iter().map(|it| it.group));
    groups.retain(|group| group.exists());
    let kin = mark.and_then(Mark::all);
    if groups.is_empty() && kin.is_none() {
        return;
    }
    for group in &groups {
        group.ask_to_end();
    }
    let asked = kin.as_ref().is_some_and(|kin| kin.ask_to_end() > 0);
    let mut running = running;
    let end = Instant::now() + PATIENCE;
    while !groups.is_empty() && Instant::now() < end {
        for it in &mut running {
            if it.exit.is_none()
                && let Ok(Some(status)) = it.child.try_wait()
            {
                it.exit = Some(Exit {
                    code: status.code(),
                    signal: status.signal(),
                    dropped: 0,
                    left: false,
                });
            }
        }
        groups.retain(|group| group.exists());
        if !groups.is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    for group in groups {
        group.kill();
    }
    if let Some(kin) = kin {
        while asked && kin.exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        kin.kill();
    }
    drop(running); // reaps
}
