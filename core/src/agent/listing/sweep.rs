//! What a crash left of a session that was made or deleted halfway, and sessions that nobody ever
//! prompted: gone, if they are still nothing when nobody else can change them.

use super::super::{Agent, Owner};
use super::head::read_head;
use crate::call::{Call, News, Outcome, Part};
use crate::error::{IoFault, IoKind};
use crate::ids::CallId;
use crate::protocol::schema::SessionId;
use crate::store::SessionFiles;

/// What is left of a session, on its way out.
pub(in crate::agent) struct Sweep {
    id: SessionId,
    files: SessionFiles,
    step: Sweeping,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweeping {
    Lock,
    Transcript,
    Inbox,
    Remove,
}

impl Agent {
    /// Begins to remove what is stored of a session that nobody has open, if it is still nothing
    /// when nobody else can change it.
    pub(super) fn sweep(&mut self, id: SessionId) {
        let Some(files) = self.files(&id) else { return };
        let call = Call::Lock {
            path: files.lock(),
            beneath: files.home.clone(),
        };
        let step = Sweeping::Lock;
        self.sweep_on(Sweep { id, files, step }, call);
    }

    fn sweep_on(&mut self, sweep: Sweep, call: Call) {
        let call = self.start(Owner::Sweeping, call);
        self.sweeping.insert(call, sweep);
    }

    pub(in crate::agent) fn sweep_news(&mut self, call: CallId, news: News<'_>) {
        let outcome = match news {
            News::Done(outcome) => Ok(outcome),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        let Some(mut sweep) = self.sweeping.remove(&call) else {
            return;
        };
        let look = |sweep: &Sweep, path| Call::ReadAt {
            path,
            beneath: sweep.files.home.clone(),
            at: 0,
            max: self.config.limits.store_piece,
        };
        let gone = |fault: &IoFault| fault.kind == IoKind::NotFound;
        match (sweep.step, outcome) {
            (Sweeping::Lock, Ok(Outcome::Locked)) => {
                sweep.step = Sweeping::Transcript;
                let call = look(&sweep, sweep.files.transcript());
                self.sweep_on(sweep, call);
            }
            // Somebody has it, or it cannot be locked.
            (Sweeping::Lock, _) => {}
            (Sweeping::Transcript, Ok(Outcome::Part(part))) if self.is_unused(&sweep.id, &part) => {
                // Messages for later are no less than a prompt.
                sweep.step = Sweeping::Inbox;
                let call = look(&sweep, sweep.files.inbox());
                self.sweep_on(sweep, call);
            }
            (Sweeping::Transcript, Err(fault)) if gone(&fault) => self.sweep_away(sweep),
            (Sweeping::Inbox, Err(fault)) if gone(&fault) => self.sweep_away(sweep),
            (Sweeping::Remove, Ok(_)) => {}
            // It stays.
            (Sweeping::Transcript | Sweeping::Inbox | Sweeping::Remove, _) => {
                let path = sweep.files.lock();
                self.start(Owner::Nobody, Call::Unlock { path });
            }
        }
    }

    fn sweep_away(&mut self, mut sweep: Sweep) {
        sweep.step = Sweeping::Remove;
        let call = Call::RemoveTree {
            path: sweep.files.folder.clone(),
            beneath: sweep.files.home.clone(),
        };
        self.sweep_on(sweep, call);
    }

    /// Whether a transcript is that of a session that nobody prompted for long, or empty in a folder
    /// that only we name so. One that is damaged or only read in part is not.
    pub(super) fn is_unused(&self, id: &SessionId, transcript: &Part) -> bool {
        if transcript.size == 0 {
            return id.is_v4();
        }
        let whole = transcript.bytes.len() as u64 == transcript.size;
        let summary = read_head(&transcript.bytes, id, 0);
        summary.is_some_and(|summary| {
            let most = u64::try_from(self.config.limits.unused_session.as_millis());
            let old = self
                .unix_ms()
                .is_some_and(|now| now.saturating_sub(summary.created) > most.unwrap_or(u64::MAX));
            whole && old && summary.prompts == 0
        })
    }
}
