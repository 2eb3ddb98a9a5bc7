//! `session/delete`.

use alloc::format;

use super::super::loading::session_locked;
use super::super::saving::{Parting, Stored};
use super::super::{Agent, Owner};
use super::head::read_head;
use crate::call::{Call, FileKind, News, Outcome};
use crate::error::{IoFault, IoKind};
use crate::ids::{CallId, SessionKey};
use crate::protocol::Asked;
use crate::protocol::methods::DeleteSession;
use crate::protocol::schema::{DeleteSessionRequest, DeleteSessionResponse, SessionId};
use crate::store::{SessionFiles, Summary};
use crate::wire::RpcError;

/// A `session/delete` of a session that is not open here.
///
/// Only what is a session of ours is removed: a folder that has the name of one that we made, or
/// holds the transcript of one that is named so. For anything else nothing is done.
pub(in crate::agent) struct Deleting {
    asked: Asked<DeleteSession>,
    id: SessionId,
    /// Its lock is held, and what was left of its temporary files is being removed.
    locked: bool,
}

impl Deleting {
    fn new(asked: Asked<DeleteSession>, id: SessionId) -> Self {
        Self {
            asked,
            id,
            locked: false,
        }
    }
}

impl Agent {
    pub(in crate::agent) fn delete_session(
        &mut self,
        asked: Asked<DeleteSession>,
        session: Option<SessionKey>,
        request: &DeleteSessionRequest,
    ) {
        // What is gone is on no page.
        self.listed = None;
        if let Some(key) = session {
            return match self.close_session(key) {
                Some(store) => self.part(store, Parting::Delete(asked)),
                None => self
                    .side
                    .answer(asked, Ok(DeleteSessionResponse::default())),
            };
        }
        let id = request.session_id.clone();
        match self.files(&id) {
            // It is looked for first: a lock would make its folder.
            Some(files) => {
                let path = files.folder;
                let call = self.start(Owner::Deleting, Call::Resolve { path });
                self.deleting.insert(call, Deleting::new(asked, id));
            }
            None => self
                .side
                .answer(asked, Ok(DeleteSessionResponse::default())),
        }
    }

    pub(in crate::agent) fn delete_news(&mut self, call: CallId, news: News<'_>) {
        let outcome = match news {
            News::Done(outcome) => Ok(outcome),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        let Some(Deleting { asked, id, locked }) = self.deleting.remove(&call) else {
            return;
        };
        let Some(files) = self.files(&id) else {
            let response = DeleteSessionResponse::default();
            return self.side.answer(asked, Ok(response));
        };
        if locked {
            return self.delete_stored(asked, files);
        }
        match outcome {
            Ok(Outcome::Resolved(found)) if found.link => {
                let why = format!("the session {id} is a link: remove it by hand");
                self.side.answer(asked, Err(RpcError::internal(&why)));
            }
            Ok(Outcome::Resolved(found)) if found.kind == FileKind::Directory && !id.is_v4() => {
                let call = Call::ReadAt {
                    path: files.transcript(),
                    beneath: files.home,
                    at: 0,
                    max: self.config.limits.store_piece,
                };
                let call = self.start(Owner::Deleting, call);
                self.deleting.insert(call, Deleting::new(asked, id));
            }
            Ok(Outcome::Resolved(found)) if found.kind == FileKind::Directory => {
                self.delete_locked(asked, id, files);
            }
            Ok(Outcome::Part(part)) if read_head(&part.bytes, &id, 0).is_some() => {
                self.delete_locked(asked, id, files);
            }
            Ok(Outcome::Locked) => match self.left_tmp(&id) {
                Some(call) => {
                    let call = self.start(Owner::Deleting, call);
                    let locked = true;
                    self.deleting.insert(call, Deleting { asked, id, locked });
                }
                None => self.delete_stored(asked, files),
            },
            Ok(Outcome::Held(holder)) => {
                self.side.answer(asked, Err(session_locked(&id, &holder)));
            }
            Ok(_) => self
                .side
                .answer(asked, Ok(DeleteSessionResponse::default())),
            Err(IoFault {
                kind: IoKind::NotFound,
                ..
            }) => self
                .side
                .answer(asked, Ok(DeleteSessionResponse::default())),
            Err(fault) => {
                let why = format!("the session {id} cannot be removed: {fault}");
                self.side.answer(asked, Err(RpcError::internal(&why)));
            }
        }
    }

    fn delete_locked(&mut self, asked: Asked<DeleteSession>, id: SessionId, files: SessionFiles) {
        let lock = Call::Lock {
            path: files.lock(),
            beneath: files.home,
        };
        let call = self.start(Owner::Deleting, lock);
        self.deleting.insert(call, Deleting::new(asked, id));
    }

    /// Its lock is held: it goes.
    fn delete_stored(&mut self, asked: Asked<DeleteSession>, files: SessionFiles) {
        let stored = Stored::on_disk(files, Summary::default(), 0, false);
        let store = self.add_stored(stored);
        self.part(store, Parting::Delete(asked));
    }
}
