//! Sessions and their engines in motion: who is driven next, what an engine says, and what waits
//! because the client has no room.

use super::saving::Then;
use super::session::{Asking, Waiting};
use super::{Agent, Level, WallClock, cards, editor, quote, render};
use crate::engine::record::Record;
use crate::engine::{Context, Decision, Ending, Engine, Output, Update};
use crate::error::CommandError;
use crate::ids::{CallId, SessionKey};
use crate::protocol::methods::RequestPermission;
use crate::protocol::schema::SessionUpdate;
use crate::protocol::schema::vendor::status::STATUS_UPDATE;
use crate::protocol::{TextKind, TurnMut};
use crate::time::{Deadline, Instant, Timer};

/// Steps of one session before the next one has its turn.
const STEPS: usize = 64;

impl Agent {
    /// Lends the engine of a session what it needs, and passes on what it says.
    pub(super) fn with_engine(
        &mut self,
        key: SessionKey,
        act: impl FnOnce(&mut Engine, &mut Context<'_>),
    ) {
        self.lend_tools(key);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let mut cx = Context {
            now: self.now,
            unix_seconds: unix_seconds(self.wall, self.now),
            ids: &mut self.ids,
            limits: &self.config.limits,
            out: &mut self.said,
        };
        act(&mut session.engine, &mut cx);
        self.pass_on(key);
        self.enqueue(key);
        self.set_timer(key);
    }

    /// An engine has the tools that its servers have now.
    pub(super) fn lend_tools(&mut self, key: SessionKey) {
        if let Some(session) = self.sessions.get_mut(&key)
            && let Some((tools, prefixes)) = session.servers.news_for_engine()
        {
            session.engine.set_external(tools, prefixes);
        }
    }

    pub(super) fn enqueue(&mut self, key: SessionKey) {
        if let Some(session) = self.sessions.get_mut(&key)
            && !session.queued
        {
            session.queued = true;
            self.queue.push_back(key);
        }
    }

    /// Drives the next session that may have something to do. Returns whether there was one.
    pub(super) fn drive_next(&mut self) -> bool {
        let Some(key) = self.queue.pop_front() else {
            return false;
        };
        if let Some(session) = self.sessions.get_mut(&key) {
            session.queued = false;
        }
        self.lend_tools(key);
        let mut more = true;
        for _ in 0..STEPS {
            let Some(session) = self.sessions.get_mut(&key) else {
                return true;
            };
            let behind = self
                .stores
                .get(&session.store)
                .is_some_and(|stored| stored.is_behind(self.config.limits.store_backlog));
            if (behind || !session.outbox.is_empty()) && !session.engine.is_due(self.now) {
                more = false;
                break;
            }
            let mut cx = Context {
                now: self.now,
                unix_seconds: unix_seconds(self.wall, self.now),
                ids: &mut self.ids,
                limits: &self.config.limits,
                out: &mut self.said,
            };
            more = session.engine.step(&mut cx);
            self.pass_on(key);
            if !more {
                break;
            }
        }
        if more {
            self.enqueue(key);
        } else {
            self.drained(key);
        }
        self.set_timer(key);
        true
    }

    /// What its calls brought was taken in, unless it waits for the client.
    fn drained(&mut self, key: SessionKey) {
        if let Some(session) = self.sessions.get_mut(&key)
            && session.outbox.is_empty()
        {
            self.unread -= core::mem::take(&mut session.unread);
        }
    }

    pub(super) fn set_timer(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let patience = session.patience.map(|at| Deadline {
            at,
            why: Timer::CancelGrace,
        });
        let wanted = Deadline::earlier(session.engine.deadline(), session.editor.deadline());
        let wanted = Deadline::earlier(wanted, patience);
        let servers = session.servers.hub.deadline(&self.config.limits);
        let wanted = Deadline::earlier(wanted, servers);
        let wanted = Deadline::earlier(wanted, session.servers.expected());
        if wanted != session.timer {
            if let Some(old) = session.timer {
                self.timers.remove(&(old, key));
            }
            if let Some(new) = wanted {
                self.timers.insert((new, key));
            }
            session.timer = wanted;
        }
    }

    pub(super) fn engine_room(&self, key: SessionKey, id: CallId) -> usize {
        match self.sessions.get(&key) {
            Some(session) => match session.engine.room(id, &self.config.limits) {
                // Given up before it settled: let it come and be over.
                None => self.config.limits.call_window,
                Some(_) if !session.outbox.is_empty() && !session.engine.is_settling() => 0,
                Some(room) => {
                    let all = self.config.limits.calls_window;
                    room.min(all.saturating_sub(self.unread))
                }
            },
            None => self.config.limits.call_window,
        }
    }

    /// Passes on what an engine said. Calls and their ends never wait for a slow client, and
    /// neither does what is remembered.
    fn pass_on(&mut self, key: SessionKey) {
        let mut claims = None;
        while let Some(output) = self.said.pop_front() {
            self.follow(key, &output);
            match output {
                Output::Start { id, call, tool } => self.carry_out(key, id, call, tool),
                Output::CallServer {
                    id,
                    name,
                    arguments,
                } => self.call_server(key, id, &name, &arguments),
                Output::Abort { id } if self.cancel_server(key, id) => {}
                Output::Abort { id } => self.abort_call(key, id),
                Output::Withdraw { card } => self.withdraw(key, card),
                Output::Log(text) => self.report(Level::Info, text),
                Output::Decided(decided) => self.note_decision(key, decided),
                Output::Rooted { root } => self.add_root(key, root),
                Output::Record(record) => {
                    self.inbox_sees(key, &record);
                    if let Some(session) = self.sessions.get(&key) {
                        let place = self.remember(session.store, &record);
                        if let Record::User(user) = &record
                            && user.item.is_some()
                        {
                            claims = Some(place);
                        }
                    }
                    if record.is_seen_live() {
                        for mut update in render::record(&record, &self.config.limits) {
                            self.keep_terminal(key, &mut update);
                            self.show_in_order(key, Waiting::Drawn(update));
                        }
                    }
                }
                output @ (Output::Update(_)
                | Output::Permit { .. }
                | Output::Questions { .. }
                | Output::Finished(_)) => self.show_in_order(key, Waiting::Said(output)),
            }
        }
        self.follow_mode(key);
        if let (Some(place), Some(session)) = (claims, self.sessions.get(&key)) {
            self.when_safe(session.store, place, Then::Claimed);
        }
    }

    /// The end of a call whose card shows a terminal leaves that in the card.
    fn keep_terminal(&mut self, key: SessionKey, update: &mut SessionUpdate) {
        if let SessionUpdate::ToolCallUpdate(change) = update
            && let Some(session) = self.sessions.get_mut(&key)
            && session.editor.take_shown(&change.tool_call_id)
        {
            change.content = None;
        }
    }

    /// Shows one thing after all that waits.
    pub(super) fn show_in_order(&mut self, key: SessionKey, next: Waiting) {
        let waits = self
            .sessions
            .get(&key)
            .is_none_or(|s| (s.replaying > 0 && !s.cancelled) || !s.outbox.is_empty());
        let refused = if waits {
            Some(next)
        } else {
            self.show(key, next)
        };
        if let (Some(next), Some(session)) = (refused, self.sessions.get_mut(&key)) {
            session.outbox.push_back(next);
        }
    }

    /// Room is there again: what waits goes first.
    pub(super) fn flush(&mut self, key: SessionKey) {
        loop {
            let Some(session) = self.sessions.get_mut(&key) else {
                return;
            };
            // What is old is shown first, but for a turn that is to end soon.
            if session.replaying > 0 && !session.cancelled {
                return;
            }
            let Some(next) = session.outbox.pop_front() else {
                session.engine.held_until(self.now);
                return;
            };
            if let Some(next) = self.show(key, next) {
                if let Some(session) = self.sessions.get_mut(&key) {
                    session.outbox.push_front(next);
                }
                return;
            }
        }
    }

    /// Shows one thing to the client; gives it back if there is no room.
    fn show(&mut self, key: SessionKey, next: Waiting) -> Option<Waiting> {
        match next {
            Waiting::Said(output) => self.show_output(key, output).map(Waiting::Said),
            Waiting::Told(update) => {
                self.side.notify_vendor(STATUS_UPDATE, &update);
                None
            }
            Waiting::Embed { tool, terminal } => {
                let turn = self.sessions.get(&key)?.turn?;
                let update = editor::embed(&tool, &terminal);
                match self.side.turn(turn)?.update(&update) {
                    Err(CommandError::Full(())) => return Some(Waiting::Embed { tool, terminal }),
                    Err(CommandError::Gone(()) | CommandError::NotOffered(())) => {}
                    Ok(()) => self.sessions.get_mut(&key)?.editor.show(tool),
                }
                None
            }
            Waiting::Drawn(update) => {
                let turn = self.sessions.get(&key)?.turn?;
                match self.side.turn(turn)?.update(&update) {
                    Err(CommandError::Full(())) => Some(Waiting::Drawn(update)),
                    Ok(()) | Err(CommandError::Gone(()) | CommandError::NotOffered(())) => None,
                }
            }
        }
    }

    pub(super) fn show_output(&mut self, key: SessionKey, output: Output) -> Option<Output> {
        let output = match output {
            card @ (Output::Permit { .. } | Output::Questions { .. }) => {
                self.waits_behind_launch(key, card)?
            }
            output @ (Output::Update(_)
            | Output::Start { .. }
            | Output::CallServer { .. }
            | Output::Abort { .. }
            | Output::Withdraw { .. }
            | Output::Record(_)
            | Output::Finished(_)
            | Output::Decided(_)
            | Output::Rooted { .. }
            | Output::Log(_)) => output,
        };
        match output {
            Output::Update(update) => self.show_update(key, update).map(Output::Update),
            Output::Permit {
                card,
                call,
                proposal,
                always,
            } => {
                let session = self.sessions.get_mut(&key)?;
                let offered = always.is_some();
                let limits = &self.config.limits;
                let request = cards::permission(session.id.clone(), call, proposal, always, limits);
                match self.side.ask::<RequestPermission>(&request) {
                    Ok(ask) => {
                        session.asks.insert(
                            ask,
                            Asking::Permit {
                                card,
                                always: offered,
                            },
                        );
                        self.asks.insert(ask, key);
                    }
                    // Who cannot be asked has not allowed it.
                    Err(_) => {
                        self.with_engine(key, |engine, cx| {
                            engine.decided(cx, card, Decision::Unasked);
                        });
                    }
                }
                None
            }
            Output::Questions {
                card,
                call,
                questions,
            } => {
                self.ask_questions(key, card, call, questions);
                None
            }
            // It is answered when nothing of it can be lost any more.
            Output::Finished(ending) => {
                let session = self.sessions.get(&key)?;
                if session.cancelled && session.patience.is_none() {
                    self.finish(key, Ending::Cancelled);
                    return None;
                }
                let store = session.store;
                let place = self.stores.get(&store)?.journal.place();
                self.when_safe(store, place, Then::Finish(ending));
                None
            }
            // These never wait.
            Output::Start { .. }
            | Output::CallServer { .. }
            | Output::Abort { .. }
            | Output::Withdraw { .. }
            | Output::Record(_)
            | Output::Decided(_)
            | Output::Rooted { .. }
            | Output::Log(_) => None,
        }
    }

    fn show_update(&mut self, key: SessionKey, update: Update) -> Option<Update> {
        let session = self.sessions.get(&key)?;
        let cost = match &update {
            Update::Usage { .. } => quote::cost(session.status.cumulative()),
            Update::Text { .. }
            | Update::Running { .. }
            | Update::Progress { .. }
            | Update::Compacting { .. }
            | Update::Retrying { .. } => None,
        };
        let mut turn = self.side.turn(session.turn?)?;
        match update {
            Update::Text {
                thought,
                text,
                message,
            } => {
                let kind = if thought {
                    TextKind::Thought
                } else {
                    TextKind::Message
                };
                match say(&mut turn, kind, text.as_str(), message) {
                    Err(CommandError::Full(())) => Some(Update::Text {
                        thought,
                        text,
                        message,
                    }),
                    Ok(()) | Err(CommandError::Gone(()) | CommandError::NotOffered(())) => None,
                }
            }
            Update::Running { .. }
            | Update::Progress { .. }
            | Update::Compacting { .. }
            | Update::Retrying { .. }
            | Update::Usage { .. } => {
                let mut frame = render::update(update.clone(), &self.config.limits);
                if let SessionUpdate::UsageUpdate(usage) = &mut frame {
                    usage.cost = cost;
                }
                match turn.update(&frame) {
                    Err(CommandError::Full(())) => Some(update),
                    Ok(()) | Err(CommandError::Gone(()) | CommandError::NotOffered(())) => None,
                }
            }
        }
    }
}

/// The wall clock at `now`, by what it was when it was last said.
fn unix_seconds(wall: Option<(Instant, WallClock)>, now: Instant) -> Option<u64> {
    let (at, clock) = wall?;
    let said = u64::try_from(clock.unix_ms).ok()?;
    Some((said / 1000).saturating_add(now.since(at).as_secs()))
}

/// Text by the way that allocates nothing.
fn say(
    turn: &mut TurnMut<'_>,
    kind: TextKind,
    text: &str,
    message: u64,
) -> Result<(), CommandError<()>> {
    let mut buffer = [0; 21];
    let id = render::message_id(message, &mut buffer);
    turn.text(kind, text, Some(id))
}
