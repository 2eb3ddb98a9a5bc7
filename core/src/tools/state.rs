//! What a session's tools remember between calls: what was read, the plan, background commands.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::step::Todo;
use crate::call::News;
use crate::limits::Limits;
use crate::time::Instant;

/// A background command of a session. Shown to the model as `job-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job-{}", self.0)
    }
}

/// What the tools of one session remember between calls.
#[derive(Clone, Debug)]
pub struct ToolState {}

impl ToolState {
    /// Nothing yet.
    pub fn new(limits: &Limits) -> Self {
        let _ = limits;
        Self {}
    }

    /// Takes news of a call that was handed over by [`Step::Detach`](super::Step::Detach). Runs
    /// that wait may go on afterwards: ask each for its next step.
    pub fn handle_job_news(&mut self, now: Instant, job: JobId, news: News<'_>) {
        let _ = (now, job, news);
        todo!()
    }

    /// How many bytes the call of this job may deliver now.
    pub fn job_room(&self, job: JobId) -> usize {
        let _ = job;
        todo!()
    }

    /// Jobs whose calls are open: to abort when the session closes.
    pub fn running_jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        core::iter::empty()
    }

    /// The plan as the model last wrote it.
    pub fn todos(&self) -> &[Todo] {
        &[]
    }

    /// One line a job, for `/status`.
    pub fn describe_jobs(&self, now: Instant) -> Vec<String> {
        let _ = now;
        Vec::new()
    }
}
