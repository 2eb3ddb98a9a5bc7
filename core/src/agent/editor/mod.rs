//! Where a tool's call is carried out: in the world, or by the client's editor. The one place that
//! knows; tools and engine ask for files and commands and are answered the same way by both.
//!
//! | call | the client takes | where |
//! | --- | --- | --- |
//! | a file read | `fs/read_text_file` | the editor, else the disk |
//! | a file written | `fs/write_text_file` | the editor, never the disk after it |
//! | | `fs/read_text_file` only | the disk, if the editor's text is as it must be |
//! | a command that is waited for | `terminal/*` | the editor's terminal; here if none was made |
//! | anything else | | the world |
//!
//! Searches, lists, moves and deletions are the disk's. What each call goes through is in `files` and
//! `terminal`, as one table each; this file turns their steps into requests, calls and news.
//!
//! A call that was started ends in news to its engine exactly once, whatever the client does: each
//! wait here has a time limit, or is ended by an abort of the tool's own limit.

mod files;
mod terminal;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::session::Waiting;
use super::{Agent, Owned, Owner};
use crate::call::{Call, News, Outcome, Program, Stream};
use crate::error::{IoFault, IoKind};
use crate::ids::{AskId, CallId, SessionKey};
use crate::protocol::methods::{
    CreateTerminal, KillTerminal, ReadTextFile, TerminalOutput, WaitForTerminalExit, WriteTextFile,
};
use crate::protocol::schema::{
    CreateTerminalRequest, KillTerminalRequest, ReadTextFileRequest, ReleaseTerminalRequest,
    SessionId, SessionUpdate, Terminal, TerminalExitStatus, TerminalOutputRequest, ToolCallContent,
    ToolCallUpdate, WaitForTerminalExitRequest, WriteTextFileRequest,
};
use crate::protocol::{ClientAnswer, ClientMethod, Gates};
use crate::time::{Deadline, Timer};

use files::{FileEvent, FileRoute, FileStep, Seen, Takes};
use terminal::{TerminalEvent, TerminalRoute, TerminalStep};

/// What the editor carries out for one session now.
#[derive(Debug, Default)]
pub(super) struct Editor {
    /// By the call that a tool waits for.
    routes: BTreeMap<CallId, Route>,
    /// Requests to the client, and the call each is for.
    asks: BTreeMap<AskId, CallId>,
    /// Looks at the disk, and the call each is for.
    looks: BTreeMap<CallId, CallId>,
    /// What was seen of files, by their real paths, and when: a count.
    seen: BTreeMap<String, (u64, Seen)>,
    last_seen: u64,
    /// Tool calls whose cards show a terminal.
    shown: BTreeSet<String>,
}

#[derive(Debug)]
enum Route {
    File(FileRoute),
    Terminal {
        route: TerminalRoute,
        /// The tool call it is for.
        tool: String,
        /// Its id, once it is made.
        id: Option<String>,
    },
}

impl Editor {
    /// When it wants to be woken.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        let due = self.routes.values().filter_map(Route::due).min()?;
        Some(Deadline {
            at: due,
            why: Timer::Editor,
        })
    }

    /// The card of this call shows a terminal, or will not any more.
    pub(super) fn show(&mut self, tool: String) {
        self.shown.insert(tool);
    }

    /// The call is over. Whether its card shows a terminal, which says all there is to see: another
    /// list of what it shows would take it away, or name it when it is released.
    pub(super) fn take_shown(&mut self, tool: &str) -> bool {
        self.shown.remove(tool)
    }

    /// Keeps what is seen of a file now; of `most` files at most, those that were seen last.
    fn keep(&mut self, path: String, seen: Option<Seen>, most: usize) {
        self.seen.remove(&path);
        let Some(seen) = seen else {
            return;
        };
        if self.seen.len() >= most {
            let all = self.seen.iter();
            let oldest = all.min_by_key(|(_, (when, _))| *when);
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                self.seen.remove(&oldest);
            }
        }
        self.last_seen += 1;
        self.seen.insert(path, (self.last_seen, seen));
    }

    fn asks_of(&self, call: CallId) -> Vec<AskId> {
        let mine = self.asks.iter().filter(|(_, of)| **of == call);
        mine.map(|(ask, _)| *ask).collect()
    }
}

impl Route {
    fn due(&self) -> Option<crate::time::Instant> {
        match self {
            Self::File(route) => route.due(),
            Self::Terminal { route, .. } => route.due(),
        }
    }
}

/// The update that shows a terminal in the card of a call.
pub(super) fn embed(tool: &str, terminal: &str) -> SessionUpdate {
    let mut change = ToolCallUpdate::new(tool);
    let item = ToolCallContent::Terminal(Terminal::new(terminal));
    change.content = Some(Vec::from([item]));
    SessionUpdate::ToolCallUpdate(change)
}

impl Agent {
    /// Carries out a call of an engine; `tool` is the tool call it is for, if it is for one.
    pub(super) fn carry_out(
        &mut self,
        key: SessionKey,
        id: CallId,
        call: Call,
        tool: Option<String>,
    ) {
        let left = match tool {
            Some(tool) if matches!(call, Call::Custom(_)) => self.custom(key, call, tool),
            Some(tool) => self.through_editor(key, id, call, tool),
            None => Some(call),
        };
        if let Some(call) = left {
            self.in_world(key, id, call);
        }
    }

    /// A call of an embedder's tool says whose it is.
    fn custom(&self, key: SessionKey, mut call: Call, tool: String) -> Option<Call> {
        if let (Call::Custom(custom), Some(session)) = (&mut call, self.sessions.get(&key)) {
            custom.session = session.id.as_str().into();
            custom.cwd.clone_from(&session.cwd);
            custom.tool_call = tool;
        }
        Some(call)
    }

    fn in_world(&mut self, key: SessionKey, id: CallId, call: Call) {
        self.notes_tmp(key, &call);
        self.calls.insert(id, Owner::Session(key));
        self.effects.push_back(Owned::Start(id, call));
    }

    /// Begins what the editor has a part in; gives the call back if it has none.
    fn through_editor(
        &mut self,
        key: SessionKey,
        id: CallId,
        call: Call,
        tool: String,
    ) -> Option<Call> {
        let takes = Takes {
            reads: self.side.takes(key, Gates::READ_FILE),
            writes: self.side.takes(key, Gates::WRITE_FILE),
        };
        let editor = &self.sessions.get(&key)?.editor;
        let seen = |path: &str| editor.seen.get(path).map(|(_, seen)| *seen);
        let call = match FileRoute::begin(call, takes, &self.config.limits, seen) {
            Ok((route, look)) => {
                let number = self.start(Owner::Editor(key), look);
                let editor = &mut self.sessions.get_mut(&key)?.editor;
                editor.routes.insert(id, Route::File(route));
                editor.looks.insert(number, id);
                return None;
            }
            Err(call) => call,
        };
        if self.config.sandbox.keeps_commands() || !self.side.takes(key, Gates::TERMINAL) {
            return Some(call);
        }
        let route = match TerminalRoute::begin(self.now, call, &self.config.limits) {
            Ok(route) => route,
            Err(call) => return Some(call),
        };
        let session = self.sessions.get_mut(&key)?;
        let line = match &route.process().program {
            Program::Shell(line) => line.clone(),
            Program::Argv(words) => words.join(" "),
        };
        let mut request = CreateTerminalRequest::new(session.id.clone(), line);
        request.cwd = Some(route.process().cwd.clone());
        request.output_byte_limit = Some(self.config.limits.terminal_output);
        let route = Route::Terminal {
            route,
            tool,
            id: None,
        };
        session.editor.routes.insert(id, route);
        if !self.ask_editor::<CreateTerminal>(key, id, &request) {
            self.terminal_event(key, id, TerminalEvent::Created(None));
        }
        None
    }

    /// Ends a call of an engine.
    pub(super) fn abort_call(&mut self, key: SessionKey, id: CallId) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return self.effects.push_back(Owned::Abort(id));
        };
        match session.editor.routes.get(&id) {
            None => self.effects.push_back(Owned::Abort(id)),
            Some(Route::File(route)) => {
                let end = match route.is_written() {
                    true => Ok(Outcome::Written),
                    false => Err(IoFault::new(IoKind::Aborted, "aborted")),
                };
                session.editor.routes.remove(&id);
                let looks = &mut session.editor.looks;
                if let Some(look) = looks.iter().find(|(_, of)| **of == id).map(|(it, _)| *it) {
                    looks.remove(&look);
                    self.effects.push_back(Owned::Abort(look));
                }
                self.withdraw_asks(key, id);
                self.tell_engine(key, id, &[], end);
            }
            Some(Route::Terminal { .. }) => self.terminal_event(key, id, TerminalEvent::Abort),
        }
    }

    /// News of a look at the disk.
    pub(super) fn looked(&mut self, key: SessionKey, look: CallId, news: News<'_>) {
        let found = match news {
            News::Done(Outcome::Read(contents)) => Ok(contents.bytes),
            News::Done(_) => Err(IoFault::new(
                IoKind::Other,
                "an answer that does not fit a read",
            )),
            News::Failed(fault) => Err(fault),
            News::Opened(_) | News::Bytes { .. } | News::Fed(_) => return,
        };
        let session = self.sessions.get_mut(&key);
        if let Some(id) = session.and_then(|session| session.editor.looks.remove(&look)) {
            self.file_event(key, id, FileEvent::Disk(found));
        }
    }

    /// The client's answer to a request. Gives back whether it was one of these.
    pub(super) fn editor_answered(
        &mut self,
        key: SessionKey,
        ask: AskId,
        answer: &ClientAnswer,
    ) -> bool {
        let session = self.sessions.get_mut(&key);
        let Some(id) = session.and_then(|session| session.editor.asks.remove(&ask)) else {
            return false;
        };
        match answer {
            ClientAnswer::ReadTextFile(it) => {
                let text = it.as_ref().map(|it| it.content.clone());
                let text = text.map_err(|error| error.message.clone());
                self.file_event(key, id, FileEvent::Text(text));
            }
            ClientAnswer::WriteTextFile(it) => {
                let done = it.as_ref().map(|_| ());
                let done = done.map_err(|error| error.message.clone());
                self.file_event(key, id, FileEvent::Written(done));
            }
            ClientAnswer::CreateTerminal(it) => {
                let made = it.as_ref().ok().map(|it| it.terminal_id.clone());
                self.terminal_event(key, id, TerminalEvent::Created(made));
            }
            ClientAnswer::WaitForTerminalExit(it) => {
                let it = it.as_ref().ok();
                let exit = it.map(|it| terminal::exit(it.exit_code, it.signal.as_deref()));
                self.terminal_event(key, id, TerminalEvent::Exited(exit));
            }
            ClientAnswer::KillTerminal(_) => self.terminal_event(key, id, TerminalEvent::Killed),
            ClientAnswer::TerminalOutput(it) => {
                let known = |status: &TerminalExitStatus| {
                    let exit = terminal::exit(status.exit_code, status.signal.as_deref());
                    (exit.code.is_some() || exit.signal.is_some()).then_some(exit)
                };
                let output = it.as_ref().ok().map(|it| {
                    let exit = it.exit_status.as_ref().and_then(known);
                    (it.output.clone(), it.truncated, exit)
                });
                self.terminal_event(key, id, TerminalEvent::Output(output));
            }
            // Not asked for a call.
            ClientAnswer::RequestPermission(_)
            | ClientAnswer::ReleaseTerminal(_)
            | ClientAnswer::CreateElicitation(_)
            | ClientAnswer::Vendor(_) => {}
        }
        true
    }

    /// A request that nobody waits for any more was answered: what it made is given back. Gives back
    /// whether it was one of these.
    pub(super) fn answered_late(&mut self, ask: AskId, answer: &ClientAnswer) -> bool {
        let Some(at) = self.late.iter().position(|(late, _)| *late == ask) else {
            return false;
        };
        if let Some((_, session)) = self.late.remove(at)
            && let ClientAnswer::CreateTerminal(Ok(made)) = answer
            && !made.terminal_id.trim().is_empty()
        {
            let request = ReleaseTerminalRequest::new(session, made.terminal_id.clone());
            self.side.release_terminal(&request);
        }
        true
    }

    /// Ends all waits of a session whose time is up.
    pub(super) fn editor_due(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let due = |route: &Route| route.due().is_some_and(|due| due <= self.now);
        let all = session.editor.routes.iter();
        let due: Vec<(CallId, bool)> = all
            .filter(|(_, route)| due(route))
            .map(|(id, route)| (*id, matches!(route, Route::File(_))))
            .collect();
        for (id, file) in due {
            if file {
                self.withdraw_asks(key, id);
                self.file_event(key, id, FileEvent::Due);
            } else {
                self.terminal_event(key, id, TerminalEvent::Due);
            }
        }
    }

    /// The session is closed: everything is given up, and given back.
    pub(super) fn leave_editor(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        session.editor.looks.clear();
        let session_id = session.id.clone();
        for (id, route) in core::mem::take(&mut session.editor.routes) {
            match route {
                Route::File(_) => self.withdraw_asks(key, id),
                Route::Terminal { id: None, .. } => self.leave_late(key, id),
                Route::Terminal {
                    id: Some(terminal), ..
                } => {
                    self.withdraw_asks(key, id);
                    let request = ReleaseTerminalRequest::new(session_id.clone(), terminal);
                    self.side.release_terminal(&request);
                }
            }
        }
    }

    fn file_event(&mut self, key: SessionKey, id: CallId, event: FileEvent) {
        let mut next = Some(event);
        while let Some(event) = next.take() {
            let now = self.now;
            let Some(session) = self.sessions.get_mut(&key) else {
                return;
            };
            let Some(Route::File(route)) = session.editor.routes.get_mut(&id) else {
                return;
            };
            let step = route.on(now, event);
            let (file, seen) = (String::from(route.path()), route.seen());
            let shows = route.shows();
            let path = as_named(route.path(), &session.root, &session.cwd);
            let of = session.id.clone();
            match step {
                FileStep::Read => {
                    let request = ReadTextFileRequest::new(of, path);
                    if !self.ask_editor::<ReadTextFile>(key, id, &request) {
                        next = Some(FileEvent::Text(Err("it is gone".into())));
                    }
                }
                FileStep::Write(text) => {
                    let request = WriteTextFileRequest::new(of, path, text);
                    if !self.ask_editor::<WriteTextFile>(key, id, &request) {
                        next = Some(FileEvent::Written(Err("it is gone".into())));
                    }
                }
                FileStep::Look(call) => {
                    let look = self.start(Owner::Editor(key), call);
                    if let Some(session) = self.sessions.get_mut(&key) {
                        session.editor.looks.insert(look, id);
                    }
                }
                FileStep::OnDisk(call) => {
                    session
                        .editor
                        .keep(file, seen, self.config.limits.read_marks);
                    session.editor.routes.remove(&id);
                    self.in_world(key, id, call);
                }
                FileStep::Over(end) => {
                    session
                        .editor
                        .keep(file, seen, self.config.limits.read_marks);
                    session.editor.routes.remove(&id);
                    if let Some(shows) = shows {
                        session.engine.editor_shows(id, shows);
                    }
                    self.tell_engine(key, id, &[], end);
                }
                FileStep::Nothing => {}
            }
        }
        self.set_timer(key);
    }

    fn terminal_event(&mut self, key: SessionKey, id: CallId, event: TerminalEvent) {
        let mut next = Some(event);
        while let Some(event) = next.take() {
            let now = self.now;
            let Some(session) = self.sessions.get_mut(&key) else {
                return;
            };
            let Some(Route::Terminal {
                route,
                tool,
                id: made,
            }) = session.editor.routes.get_mut(&id)
            else {
                return;
            };
            let step = route.on(now, event);
            let of = session.id.clone();
            // Only what was made is asked for more.
            let terminal = made.clone().unwrap_or_default();
            match step {
                TerminalStep::Show(terminal) => {
                    *made = Some(terminal.clone());
                    let tool = tool.clone();
                    let request = WaitForTerminalExitRequest::new(of, terminal.clone());
                    self.show_in_order(key, Waiting::Embed { tool, terminal });
                    if !self.ask_editor::<WaitForTerminalExit>(key, id, &request) {
                        next = Some(TerminalEvent::Exited(None));
                    }
                }
                TerminalStep::Kill => {
                    let request = KillTerminalRequest::new(of, terminal);
                    if !self.ask_editor::<KillTerminal>(key, id, &request) {
                        next = Some(TerminalEvent::Killed);
                    }
                }
                TerminalStep::Read => {
                    let request = TerminalOutputRequest::new(of, terminal);
                    if !self.ask_editor::<TerminalOutput>(key, id, &request) {
                        next = Some(TerminalEvent::Output(None));
                    }
                }
                TerminalStep::Here { call, late } => {
                    session.editor.routes.remove(&id);
                    if late {
                        self.leave_late(key, id);
                    }
                    self.in_world(key, id, call);
                }
                TerminalStep::Never(fault) => {
                    session.editor.routes.remove(&id);
                    self.leave_late(key, id);
                    self.tell_engine(key, id, &[], Err(fault));
                }
                TerminalStep::Over { output, end } => {
                    // What is released is not shown any more.
                    session.outbox.retain(
                        |waiting| !matches!(waiting, Waiting::Embed { terminal: it, .. } if *it == terminal),
                    );
                    session.editor.routes.remove(&id);
                    self.withdraw_asks(key, id);
                    let request = ReleaseTerminalRequest::new(of, terminal);
                    self.side.release_terminal(&request);
                    self.tell_engine(key, id, &output, end.map(Outcome::Exited));
                }
                TerminalStep::Nothing => {}
            }
        }
        self.set_timer(key);
    }

    /// Asks the client something for a call. Not, if it cannot be asked.
    fn ask_editor<M: ClientMethod>(
        &mut self,
        key: SessionKey,
        id: CallId,
        request: &M::Request,
    ) -> bool {
        let Ok(ask) = self.side.ask::<M>(request) else {
            return false;
        };
        if let Some(session) = self.sessions.get_mut(&key) {
            session.editor.asks.insert(ask, id);
            self.asks.insert(ask, key);
        }
        true
    }

    fn withdraw_asks(&mut self, key: SessionKey, id: CallId) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        for ask in session.editor.asks_of(id) {
            session.editor.asks.remove(&ask);
            self.asks.remove(&ask);
            self.side.withdraw(ask);
        }
    }

    /// Nobody waits for a terminal any more that was asked for.
    fn leave_late(&mut self, key: SessionKey, id: CallId) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        for ask in session.editor.asks_of(id) {
            session.editor.asks.remove(&ask);
            self.asks.remove(&ask);
            self.side.cancel_ask(ask);
            self.late.push_back((ask, session.id.clone()));
        }
        while self.late.len() > self.config.limits.max_late_terminals {
            if let Some((ask, _)) = self.late.pop_front() {
                self.side.withdraw(ask);
            }
        }
    }

    fn tell_engine(
        &mut self,
        key: SessionKey,
        id: CallId,
        output: &[u8],
        end: Result<Outcome, IoFault>,
    ) {
        self.with_engine(key, |engine, cx| {
            if !output.is_empty() {
                let stream = Stream::Out;
                let bytes = output;
                engine.handle_news(cx, id, News::Bytes { stream, bytes });
            }
            let end = match end {
                Ok(outcome) => News::Done(outcome),
                Err(fault) => News::Failed(fault),
            };
            engine.handle_news(cx, id, end);
        });
    }
}

/// Requests whose answers nobody waits for, but which may still make something.
pub(super) type Late = alloc::collections::VecDeque<(AskId, SessionId)>;

/// A real path under the name that the client gave its root: editors know their files by that.
fn as_named(real: &str, root: &str, named: &str) -> String {
    match real.strip_prefix(root.trim_end_matches('/')) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            format!("{}{rest}", named.trim_end_matches('/'))
        }
        Some(_) | None => real.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_editor_hears_of_files_by_the_name_of_its_own_root() {
        for (real, root, named, path) in [
            ("/data/w/a/b", "/data/w", "/home/u/w", "/home/u/w/a/b"),
            ("/data/wx/a", "/data/w", "/home/u/w", "/data/wx/a"),
            ("/w/a", "/w", "/w", "/w/a"),
            ("/a", "/", "/", "/a"),
        ] {
            assert_eq!(as_named(real, root, named), path);
        }
    }
}
