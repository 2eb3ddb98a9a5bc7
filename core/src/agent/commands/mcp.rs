//! `/mcp`: the MCP servers of the session and how each one stands; what a project's own file may
//! start.

use alloc::format;
use alloc::string::String;
use core::fmt::Write as _;

use super::super::Agent;
use crate::ids::SessionKey;
use crate::mcp::approval::PROJECT_FILE;

impl Agent {
    /// Does it; what it says, if that is known at once.
    pub(in crate::agent) fn servers_command(
        &mut self,
        key: SessionKey,
        rest: &str,
    ) -> Option<String> {
        if self.waits_for_project(key, rest) {
            return None;
        }
        let (verb, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        match (verb, name.trim()) {
            ("", _) => Some(self.servers_text(key)),
            ("approve", name) if !name.is_empty() => self.approve_server(key, name),
            ("retry", name) if !name.is_empty() => {
                if !self.is_configured(key, name) {
                    return Some(self.not_of_project(key, name));
                }
                self.with_servers(key, |hub, cx| hub.retry(cx, Some(name)));
                Some(self.servers_text(key))
            }
            ("revoke", name) if !name.is_empty() => self.revoke_server(key, name),
            _ => Some("Say /mcp, /mcp approve NAME, /mcp revoke NAME or /mcp retry NAME.".into()),
        }
    }

    fn servers_text(&self, key: SessionKey) -> String {
        let Some(session) = self.sessions.get(&key) else {
            return String::new();
        };
        let servers = &session.servers;
        if servers.hub.is_empty() {
            return "This session has no MCP servers.".into();
        }
        let mut text = String::from("MCP servers of this session:\n");
        for it in servers.hub.status() {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "- {}, from {}: {}, {} tools (`{}__…`)",
                it.name,
                servers.origin(it.name),
                it.status,
                it.tools,
                it.slug
            );
            if let Some(error) = it.error {
                let _ = write!(text, ": {error}");
            }
            let is_projects = self.launch_digest(key, it.name).is_some();
            if is_projects && matches!(it.status, "pending" | "disabled") {
                let what = servers.hub.details(it.name).unwrap_or_default();
                let _ = write!(
                    text,
                    "; /mcp approve {} starts it here and from now on:\n\n```text\n{what}```\n",
                    it.name
                );
            }
            text.push('\n');
        }
        text
    }

    fn approve_server(&mut self, key: SessionKey, name: &str) -> Option<String> {
        let Some(digest) = self.launch_digest(key, name) else {
            return Some(self.not_of_project(key, name));
        };
        self.allow_launch(key, name);
        let said = match self.may_launch(key) {
            true => format!(
                "The MCP server {name} may be started in this project, until its entry in \
                 {PROJECT_FILE} changes."
            ),
            false => format!(
                "The MCP server {name} may be started in this project, until its entry in \
                 {PROJECT_FILE} changes; not in this session, which only reads."
            ),
        };
        self.change_approval(key, name.into(), Some(digest), Some(said));
        None
    }

    fn revoke_server(&mut self, key: SessionKey, name: &str) -> Option<String> {
        let is_projects = self.launch_digest(key, name).is_some();
        if !is_projects && self.is_configured(key, name) {
            return Some(self.not_of_project(key, name));
        }
        if is_projects {
            self.forbid_launch(key, name);
        }
        let said = format!(
            "No MCP server {name} of {PROJECT_FILE} is started in this project any more without \
             asking; one that ran here has ended."
        );
        self.change_approval(key, name.into(), None, Some(said));
        None
    }

    fn is_configured(&self, key: SessionKey, name: &str) -> bool {
        let session = self.sessions.get(&key);
        session.is_some_and(|session| session.servers.hub.status().any(|it| it.name == name))
    }

    fn not_of_project(&self, key: SessionKey, name: &str) -> String {
        match self
            .sessions
            .get(&key)
            .filter(|_| self.is_configured(key, name))
        {
            Some(session) => format!(
                "The MCP server {name} is from {} and needs no approval.",
                session.servers.origin(name)
            ),
            None => format!("There is no MCP server {name} here; /mcp lists them."),
        }
    }
}
