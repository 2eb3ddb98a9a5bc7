//! The person decides which servers of a project are started: by a card, or by `/mcp`.
//!
//! A card is asked while a prompt runs, and the model works on. Only a card of its turn waits behind
//! this one, however long, since a person is asked one thing at a time. To the client it is a tool
//! call of the turn, and it is withdrawn when the turn ends first.
//!
//! | answer | the server |
//! | --- | --- |
//! | once | starts; so it does for as long as the session is open |
//! | always | starts; so it does in this project, until its entry changes or it is taken back |
//! | no | is disabled in this session |
//! | anything else, or the turn is over | goes on waiting; asked again with the next prompt |
//!
//! Where the posture lets nothing be asked, nothing is; in a session that only reads nothing of a
//! project's file is started, approved or not.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::card;
use crate::agent::session::Waiting;
use crate::agent::{Agent, cards};
use crate::engine::{CardId, Output};
use crate::ids::{AskId, SessionKey};
use crate::permission::{Access, Action, Posture, Verdict};
use crate::protocol::ClientAnswer;
use crate::protocol::methods::RequestPermission;

/// What the person is asked, and what they said, in one session.
#[derive(Default)]
pub(in crate::agent) struct Launches {
    /// Servers that the person has not decided about, in their order.
    waiting: Vec<String>,
    /// Those of them that they were asked about since the prompt began.
    asked: BTreeSet<String>,
    /// The card that is open.
    open: Option<Open>,
    /// Cards that were asked.
    count: u32,
    /// Cards of the turn that wait for that one.
    behind: VecDeque<Output>,
    /// Servers that were approved, in a session that only reads.
    held: Vec<String>,
    /// Names and entries that may be started in this session.
    allowed: BTreeSet<(String, String)>,
}

/// A card that is open.
struct Open {
    ask: AskId,
    /// What the client knows it as.
    call: String,
    /// The server.
    name: String,
}

impl Launches {
    /// A server waits for the person.
    pub(super) fn wait(&mut self, name: String) {
        self.waiting.push(name);
    }

    /// A server is approved, but not for a session that only reads.
    pub(super) fn hold(&mut self, name: String) {
        self.held.push(name);
    }

    /// Whether this entry was allowed for the session.
    pub(super) fn was_allowed(&self, name: &str, digest: &str) -> bool {
        self.allowed.contains(&(name.into(), digest.into()))
    }

    /// No server waits any more: the session gets others. What was allowed holds for those too.
    pub(super) fn forget_servers(&mut self) -> Option<AskId> {
        self.waiting.clear();
        self.held.clear();
        self.asked.clear();
        self.open.take().map(|open| open.ask)
    }

    fn settle(&mut self, name: &str) {
        self.waiting.retain(|waits| waits != name);
        self.held.retain(|held| held != name);
    }

    /// A card of the turn is not wanted any more.
    pub(in crate::agent) fn withdraw(&mut self, card: CardId) {
        self.behind.retain(|output| match output {
            Output::Permit { card: waits, .. } | Output::Questions { card: waits, .. } => {
                *waits != card
            }
            Output::Update(_)
            | Output::Record(_)
            | Output::Start { .. }
            | Output::CallServer { .. }
            | Output::Abort { .. }
            | Output::Withdraw { .. }
            | Output::Finished(_)
            | Output::Decided(_)
            | Output::Rooted { .. }
            | Output::Log(_) => false,
        });
    }
}

impl Agent {
    /// A prompt begins: what the person left undecided is asked about again, and what was approved
    /// starts if the session does more than read by now.
    pub(in crate::agent) fn prompt_may_launch(&mut self, key: SessionKey) {
        let may_run = self.may_launch(key);
        if let Some(session) = self.sessions.get_mut(&key) {
            let launches = &mut session.servers.project.launches;
            launches.asked.clear();
            let held = match may_run {
                true => core::mem::take(&mut launches.held),
                false => Vec::new(),
            };
            for name in held {
                self.decide_server(key, &name, true);
            }
        }
        self.ask_to_launch(key);
    }

    /// Asks the person about the next server that waits, if they can be asked now.
    pub(in crate::agent) fn ask_to_launch(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let launches = &session.servers.project.launches;
        let busy = launches.open.is_some() || !session.asks.is_empty();
        let behind = session.replaying > 0 || !session.outbox.is_empty();
        if busy || behind || session.cancelled || session.command {
            return;
        }
        let mut waiting = launches.waiting.iter();
        let Some(name) = waiting
            .find(|name| !launches.asked.contains(*name))
            .cloned()
        else {
            return;
        };
        let action = Action::new(card::NAME, Access::Other).protected();
        let may_ask = match session.engine.authority().decide(&action) {
            Verdict::Ask { .. } => true,
            // It is protected: nothing but the person allows it.
            Verdict::Allow { .. } | Verdict::Deny { .. } => false,
        };
        if !may_ask {
            return;
        }
        let keeps = !self.config.ephemeral && self.config.host.home.is_some();
        let number = session.servers.project.launches.count + 1;
        let call = format!("mcp-launch-{number}");
        let announced = card::announced(session, &name, &call);
        let Some(mut turn) = session.turn.and_then(|turn| self.side.turn(turn)) else {
            return;
        };
        // Without room it is asked when there is some.
        if turn.update(&announced).is_err() {
            return;
        }
        let request = card::card(session, &name, &call, keeps);
        let launches = &mut session.servers.project.launches;
        launches.count = number;
        launches.asked.insert(name.clone());
        match self.side.ask::<RequestPermission>(&request) {
            Ok(ask) => {
                launches.open = Some(Open { ask, call, name });
                self.asks.insert(ask, key);
            }
            // Who cannot be asked has not approved it.
            Err(_) => self.show_launch_ended(key, &name, &call, None),
        }
    }

    fn show_launch_ended(
        &mut self,
        key: SessionKey,
        name: &str,
        call: &str,
        decided: Option<bool>,
    ) {
        self.show_in_order(key, Waiting::Drawn(card::ended(name, call, decided)));
    }

    /// Whether servers of the project's file may run in a session as it stands.
    pub(in crate::agent) fn may_launch(&self, key: SessionKey) -> bool {
        let session = self.sessions.get(&key);
        session.is_some_and(|session| session.engine.authority().posture() > Posture::ReadOnly)
    }

    /// A card of the turn; false if it can be asked now, else it waits.
    pub(in crate::agent) fn waits_behind_launch(
        &mut self,
        key: SessionKey,
        card: Output,
    ) -> Option<Output> {
        let launches = match self.sessions.get_mut(&key) {
            Some(session) => &mut session.servers.project.launches,
            None => return Some(card),
        };
        if launches.open.is_none() {
            return Some(card);
        }
        launches.behind.push_back(card);
        None
    }

    /// The client's answer to such a card; false if it was none.
    pub(super) fn launch_decided(
        &mut self,
        key: SessionKey,
        ask: AskId,
        answer: &ClientAnswer,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(&key) else {
            return false;
        };
        let launches = &mut session.servers.project.launches;
        let Some(Open { call, name, .. }) = launches.open.take_if(|open| open.ask == ask) else {
            return false;
        };
        let chosen = if let ClientAnswer::RequestPermission(Ok(reply)) = answer {
            cards::selected(Some(reply))
        } else {
            None
        };
        let decided = match chosen {
            Some(cards::ALLOW_ONCE | cards::ALLOW_ALWAYS) => Some(true),
            Some(cards::REJECT_ONCE) => Some(false),
            Some(_) | None => None,
        };
        self.show_launch_ended(key, &name, &call, decided);
        match chosen {
            Some(cards::ALLOW_ONCE) => self.allow_launch(key, &name),
            Some(cards::ALLOW_ALWAYS) => {
                self.allow_launch(key, &name);
                if let Some(digest) = self.launch_digest(key, &name) {
                    self.change_approval(key, name, Some(digest), None);
                }
            }
            Some(cards::REJECT_ONCE) => self.forbid_launch(key, &name),
            Some(_) | None => {}
        }
        self.after_launch_card(key);
        true
    }

    /// The digest of the entry of a server of the project's file.
    pub(in crate::agent) fn launch_digest(&self, key: SessionKey, name: &str) -> Option<String> {
        let session = self.sessions.get(&key)?;
        session.servers.project.digests.get(name).cloned()
    }

    /// A server of the project's file may run in this session.
    pub(in crate::agent) fn allow_launch(&mut self, key: SessionKey, name: &str) {
        self.withdraw_launch(key, Some(name));
        let may_run = self.may_launch(key);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let project = &mut session.servers.project;
        project.launches.settle(name);
        if let Some(digest) = project.digests.get(name) {
            let allowed = &mut project.launches.allowed;
            allowed.insert((name.into(), digest.clone()));
        }
        if may_run {
            self.decide_server(key, name, true);
        }
        self.after_launch_card(key);
    }

    /// It may not; it ends if it runs.
    pub(in crate::agent) fn forbid_launch(&mut self, key: SessionKey, name: &str) {
        self.withdraw_launch(key, Some(name));
        if let Some(session) = self.sessions.get_mut(&key) {
            let launches = &mut session.servers.project.launches;
            launches.settle(name);
            launches.allowed.retain(|(allowed, _)| allowed != name);
            self.decide_server(key, name, false);
        }
        self.after_launch_card(key);
    }

    /// A card about this server, or (`name` none) about any, is not wanted any more. What waits for
    /// it goes on waiting until [`Self::after_launch_card`].
    pub(in crate::agent) fn withdraw_launch(&mut self, key: SessionKey, name: Option<&str>) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let open = &mut session.servers.project.launches.open;
        let ours = open.take_if(|open| name.is_none_or(|name| open.name == name));
        if let Some(Open { ask, call, name }) = ours {
            self.asks.remove(&ask);
            self.side.withdraw(ask);
            self.show_launch_ended(key, &name, &call, None);
        }
    }

    /// What waited for a card is asked now.
    pub(in crate::agent) fn after_launch_card(&mut self, key: SessionKey) {
        while let Some(session) = self.sessions.get_mut(&key) {
            if session.servers.project.launches.open.is_some() {
                break;
            }
            let Some(card) = session.servers.project.launches.behind.pop_front() else {
                break;
            };
            // A card is never given back: it is a request of its own, not a part of the turn's text.
            let _ = self.show_output(key, card);
        }
        self.ask_to_launch(key);
    }
}
