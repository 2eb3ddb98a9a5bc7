//! Stored sessions that are given up: when all of them is written, their lock is given back or their
//! folder goes, and who asked for that is answered.

use alloc::format;

use super::super::opening::How;
use super::super::{Agent, Owner};
use super::{Doing, StoreKey};
use crate::call::Call;
use crate::error::IoFault;
use crate::protocol::Asked;
use crate::protocol::methods::{CloseSession, DeleteSession};
use crate::protocol::schema::{CloseSessionResponse, DeleteSessionResponse, SessionId};
use crate::wire::RpcError;

/// Why a stored session is given up.
pub(in crate::agent) enum Parting {
    /// Nobody waits.
    Left,
    /// Its opening failed.
    Refused(How, RpcError),
    /// `session/close`.
    Close(Asked<CloseSession>),
    /// `session/delete`.
    Delete(Asked<DeleteSession>),
}

impl Agent {
    /// Gives a stored session up once all of it is written.
    pub(in crate::agent) fn part(&mut self, key: StoreKey, parting: Parting) {
        if let Some(stored) = self.stores.get_mut(&key) {
            stored.session = None;
            stored.parting = Some(parting);
            self.save(key);
            self.part_if_idle(key);
        }
    }

    pub(super) fn part_if_idle(&mut self, key: StoreKey) {
        let Some(stored) = self.stores.get(&key) else {
            return;
        };
        let desk = stored.desk.as_ref().is_none_or(|desk| desk.is_idle());
        if !stored.journal.is_idle() || !desk || stored.writing {
            return;
        }
        let (doing, call) = match (&stored.parting, &stored.files) {
            (None, _) => return,
            (Some(_), None) => return self.parted(key, None),
            (Some(Parting::Delete(_)), Some(files)) => (
                Doing::Forget,
                Call::Remove {
                    path: files.state(),
                    beneath: Some(files.home.clone()),
                },
            ),
            (Some(Parting::Left | Parting::Refused(..) | Parting::Close(_)), Some(files)) => {
                (Doing::Unlock, Call::Unlock { path: files.lock() })
            }
        };
        self.start(Owner::Store(key, doing), call);
        // Nothing more is done for it but this.
        if let Some(stored) = self.stores.get_mut(&key) {
            stored.writing = true;
        }
    }

    /// Removes the folder of a session that no list shows any more.
    pub(super) fn remove(&mut self, key: StoreKey) {
        if let Some(files) = self
            .stores
            .get(&key)
            .and_then(|stored| stored.files.clone())
        {
            let call = Call::RemoveTree {
                path: files.folder,
                beneath: files.home,
            };
            self.start(Owner::Store(key, Doing::Remove), call);
        }
    }

    pub(super) fn parted(&mut self, key: StoreKey, fault: Option<IoFault>) {
        let Some(stored) = self.stores.remove(&key) else {
            return;
        };
        if let (Some(_), Some(Parting::Delete(_)), Some(files)) =
            (&fault, &stored.parting, &stored.files)
        {
            // What is left of it can be deleted again, by anyone.
            let path = files.lock();
            self.start(Owner::Nobody, Call::Unlock { path });
        }
        match stored.parting {
            Some(Parting::Close(asked)) => {
                self.side.answer(asked, Ok(CloseSessionResponse::default()));
            }
            Some(Parting::Delete(asked)) => {
                let result = match fault {
                    None => Ok(DeleteSessionResponse::default()),
                    Some(fault) => Err(RpcError::internal(&format!(
                        "the session cannot be removed: {fault}"
                    ))),
                };
                let failed = result.is_err();
                self.side.answer(asked, result);
                // It is closed all the same.
                if failed
                    && let Some(key) = self.side.find_session(&SessionId::from(stored.summary.id))
                {
                    self.side.forget(key);
                }
            }
            Some(Parting::Refused(how, error)) => how.refuse(&mut self.side, error),
            Some(Parting::Left) | None => {}
        }
    }
}
