//! Who left the process group of its program on purpose (`setsid`, a daemon), found again by what is
//! handed down from a program to all it starts: a variable of its environment. Knows nothing of what
//! the programs are for.
//!
//! On Linux the system tells of every process of ours what its environment was when it began. To be
//! the parent of orphans (a subreaper) would not do: it is a property of the whole process, which may
//! be an embedder's, and it ends with us, when it is needed most. So whoever starts a program with
//! another environment than its own (`env -i`), or has somebody else start it (`at`, a container, a
//! service manager), is not found; nor is what runs as another user. Elsewhere than on Linux there are
//! no marks.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;

use rustix::process::{Pid, Signal};

/// The variable.
const NAME: &str = "REASONIX_RUN";

/// What is read of an environment, bytes.
const MAX_ENVIRONMENT: u64 = 4 << 20;

/// How often it is looked for those that somebody started while being killed.
const ROUNDS: usize = 16;

/// What all programs of one agent have in their environment.
#[derive(Debug)]
pub struct Mark {
    text: String,
    tags: u64,
}

impl Mark {
    /// A new one. None: this system has no way to look for it, or no random bytes.
    pub fn new() -> Option<Self> {
        let mut random = [0; 8];
        if !cfg!(target_os = "linux") || getrandom::fill(&mut random).is_err() {
            return None;
        }
        let text = format!("{:016x}", u64::from_ne_bytes(random));
        Some(Self { text, tags: 0 })
    }

    /// The one of the next program.
    pub fn tag(&mut self) -> Tag {
        self.tags += 1;
        Tag(format!("{NAME}={}-{}\0", self.text, self.tags))
    }

    /// That of all programs; none if there was none.
    pub(crate) fn all(&self) -> Option<Tag> {
        (self.tags > 0).then(|| Tag(self.variables()))
    }

    /// How the variable begins in each of the environments.
    pub(super) fn variables(&self) -> String {
        format!("{NAME}={}-", self.text)
    }
}

/// What one program, and all it starts, have in their environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag(String);

impl Tag {
    /// The variable and its value.
    pub(super) fn variable(&self) -> (&'static str, &str) {
        let value = self.0.trim_end_matches('\0');
        (NAME, &value[NAME.len() + 1..])
    }

    /// Asks those that have it to end; how many there are.
    pub fn ask_to_end(&self) -> usize {
        let found = self.found();
        found.iter().for_each(|pid| self.signal(*pid, Signal::TERM));
        found.len()
    }

    /// Kills those that have it, at once.
    pub fn kill(&self) {
        let mut killed = BTreeSet::new();
        for _ in 0..ROUNDS {
            let mut found = self.found();
            found.retain(|pid| killed.insert(pid.as_raw_nonzero()));
            if found.is_empty() {
                return;
            }
            found.iter().for_each(|pid| self.signal(*pid, Signal::KILL));
        }
    }

    /// Whether one that has it is alive.
    pub fn exists(&self) -> bool {
        !self.found().is_empty()
    }

    fn found(&self) -> Vec<Pid> {
        let own = rustix::process::getpid();
        let Ok(all) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let numbers = all
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(Pid::from_raw);
        numbers
            .filter(|pid| *pid != own && self.is_of(*pid))
            .collect()
    }

    /// The dead have no environment any more.
    fn is_of(&self, pid: Pid) -> bool {
        let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
        let Ok(file) = File::open(path) else {
            return false;
        };
        let mut bytes = Vec::new();
        let read = file.take(MAX_ENVIRONMENT).read_to_end(&mut bytes);
        let tag = self.0.as_bytes();
        let mut variables = bytes.split_inclusive(|byte| *byte == 0);
        read.is_ok() && variables.any(|variable| variable.starts_with(tag))
    }

    #[cfg(target_os = "linux")]
    fn signal(&self, pid: Pid, signal: Signal) {
        use rustix::process::{PidfdFlags, kill_process, pidfd_open, pidfd_send_signal};
        // Held before it is looked at again: the number cannot come to mean another one in between.
        let _ = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(held) if self.is_of(pid) => pidfd_send_signal(held, signal),
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => kill_process(pid, signal),
            Ok(_) | Err(_) => Ok(()),
        };
    }

    #[cfg(not(target_os = "linux"))]
    fn signal(&self, _pid: Pid, _signal: Signal) {}
}
