//! The person decides which servers of a project are started: by a card, or by `/mcp`.
//!
//! A card is asked while a prompt runs, and holds up nothing: the model works on, and a card of its
//! turn waits behind this one, since a person is asked one thing at a time. It stays open when the
//! turn ends first.
//!
//! | answer | the server |
//! | --- | --- |
//! | once | starts; so it does for as long as the session is open |
//! | always | starts; so it does in this project, until its entry changes or it is taken back |
//! | no | is disabled in this session |
//! | anything else, or the turn is cancelled | goes on waiting; asked again with the next prompt |
//!
//! Where the posture lets nothing be asked, nothing is; in a session that only reads nothing of a
//! project's file is started, approved or not.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::agent::session::Session;
use crate::agent::{Agent, cards};
use crate::engine::{CardId, Output};
use crate::ids::{AskId, SessionKey};
use crate::mcp::approval::PROJECT_FILE;
use crate::permission::{Access, Action, Posture, Verdict};
use crate::protocol::ClientAnswer;
use crate::protocol::methods::RequestPermission;
use crate::protocol::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionRequest, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolKind,
};

/// What the person is asked, and what they said, in one session.
#[derive(Default)]
pub(in crate::agent) struct Launches {
    /// Servers that the person has not decided about, in their order.
    waiting: Vec<String>,
    /// Those of them that they were asked about since the prompt began.
    asked: BTreeSet<String>,
    /// The card that is open, and whose.
    open: Option<(AskId, String)>,
    /// Cards of the turn that wait for that one.
    behind: VecDeque<Output>,
    /// Servers that were approved, in a session that only reads.
    held: Vec<String>,
    /// Names and entries that may be started in this session.
    allowed: BTreeSet<(String, String)>,
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
        self.open.take().map(|(ask, _)| ask)
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
            self.with_servers(key, |hub, cx| {
                for name in held {
                    hub.decide(cx, &name, true);
                }
            });
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
        if busy || session.turn.is_none() || session.cancelled || session.command {
            return;
        }
        let mut waiting = launches.waiting.iter();
        let Some(name) = waiting
            .find(|name| !launches.asked.contains(*name))
            .cloned()
        else {
            return;
        };
        let action = Action::new("mcp_launch", Access::Other).protected();
        let may_ask = match session.engine.authority().decide(&action) {
            Verdict::Ask { .. } => true,
            // It is protected: nothing but the person allows it.
            Verdict::Allow { .. } | Verdict::Deny { .. } => false,
        };
        if !may_ask {
            return;
        }
        let keeps = !self.config.ephemeral && self.config.host.home.is_some();
        let request = card(session, &name, keeps);
        let launches = &mut session.servers.project.launches;
        launches.asked.insert(name.clone());
        // Who cannot be asked has not approved it.
        if let Ok(ask) = self.side.ask::<RequestPermission>(&request) {
            launches.open = Some((ask, name));
            self.asks.insert(ask, key);
        }
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
        let Some((_, name)) = launches.open.take_if(|(open, _)| *open == ask) else {
            return false;
        };
        let chosen = if let ClientAnswer::RequestPermission(Ok(reply)) = answer {
            cards::selected(Some(reply))
        } else {
            None
        };
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
            self.with_servers(key, |hub, cx| hub.decide(cx, name, true));
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
            self.with_servers(key, |hub, cx| hub.decide(cx, name, false));
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
        let ours = open.take_if(|(_, about)| name.is_none_or(|name| about == name));
        if let Some((ask, _)) = ours {
            self.asks.remove(&ask);
            self.side.withdraw(ask);
        }
    }

    /// What waited for a card is asked now.
    pub(in crate::agent) fn after_launch_card(&mut self, key: SessionKey) {
        while let Some(session) = self.sessions.get_mut(&key) {
            let Some(card) = session.servers.project.launches.behind.pop_front() else {
                break;
            };
            // A card is never given back: it is a request of its own, not a part of the turn's text.
            let _ = self.show_output(key, card);
        }
        self.ask_to_launch(key);
    }
}

fn card(session: &Session, name: &str, keeps: bool) -> RequestPermissionRequest {
    let hub = &session.servers.hub;
    let slug = hub.status().find(|it| it.name == name).map(|it| it.slug);
    let mut about = ToolCallUpdate::new(format!("mcp-launch-{}", slug.unwrap_or_default()));
    about.title = Some(format!("Start the MCP server {name} of this project?"));
    about.kind = Some(ToolKind::Execute);
    about.status = Some(ToolCallStatus::Pending);
    let text = format!(
        "{PROJECT_FILE} of {} names it. It runs with your rights, outside of any sandbox.\n\n{}",
        session.cwd,
        hub.details(name).unwrap_or_default()
    );
    about.content = Some(Vec::from([ToolCallContent::text(text)]));
    let option = |id: &str, name: &str, kind| PermissionOption::new(id, name, kind);
    let mut options = Vec::from([
        option(
            cards::ALLOW_ONCE,
            "Start it in this session",
            PermissionOptionKind::AllowOnce,
        ),
        option(
            cards::ALLOW_ALWAYS,
            "Always start it in this project, until its entry changes",
            PermissionOptionKind::AllowAlways,
        ),
        option(
            cards::REJECT_ONCE,
            "Do not start it",
            PermissionOptionKind::RejectOnce,
        ),
    ]);
    // Where nothing is kept, always would be no more than once.
    options.retain(|it| keeps || it.kind != PermissionOptionKind::AllowAlways);
    RequestPermissionRequest::new(session.id.clone(), about, options)
}
