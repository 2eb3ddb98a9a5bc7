//! What one server lists: its tools, page by page or as they were kept another time, and its prompts.
//! Knows neither how the server starts nor what is called.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::catalogue::{Pages, Tool};
use super::hub::Shared;
use super::prompts::PromptPages;
use super::server::{Sent, Server, State};
use super::shapes::{ListParams, PromptPage, ToolPage};
use super::transport::Fault;
use super::{Context, Output, standby};
use crate::wire::RequestId;

/// Lists that have changed while they were listed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Again {
    pub tools: bool,
    pub prompts: bool,
}

impl Server {
    /// Its tools as they were kept another time: they are offered until it lists its own.
    pub fn recall(&mut self, cx: &mut Context<'_>, bytes: &[u8], shared: &mut Shared) {
        let starts = match self.state {
            State::Connecting { .. } | State::Resting { .. } | State::Down { .. } => true,
            State::Pending | State::Disabled | State::Ready | State::Closed => false,
        };
        if self.listed || !starts {
            return;
        }
        if let Some(tools) = standby::read(bytes, &self.slug, cx.limits) {
            self.kept = Some(standby::mark(bytes));
            self.standby = true;
            let tools = self.fitting(cx, tools, shared);
            self.set_tools(tools, shared);
            cx.out.push_back(Output::Changed);
        }
    }

    /// Keeps the tools that it listed for another time, if they are others than those kept.
    fn remember(&mut self, cx: &mut Context<'_>) {
        let Some(bytes) = standby::write(&self.tools, &self.entry, cx.limits) else {
            return;
        };
        let mark = standby::mark(&bytes);
        if self.kept != Some(mark) {
            self.kept = Some(mark);
            let digest = self.entry.digest();
            cx.out.push_back(Output::Remember { digest, bytes });
        }
    }

    /// One page of its tools: the next one is asked for, or they are all there.
    pub fn page(&mut self, cx: &mut Context<'_>, text: &str, shared: &mut Shared) {
        let Ok(page) = serde_json::from_str::<ToolPage<'_>>(text) else {
            return self.no_tools(cx, "its list of tools cannot be read");
        };
        let mut pages = self.pages.take().unwrap_or_default();
        for tool in page.tools {
            pages.take(tool.get(), cx.limits);
        }
        match page.next_cursor {
            Some(cursor) if pages.follow(&cursor, cx.limits) => {
                self.pages = Some(pages);
                let params = ListParams {
                    cursor: Some(&cursor),
                };
                self.request(cx, Sent::Tools, "tools/list", &params);
            }
            Some(_) | None => self.whole(cx, pages, shared),
        }
    }

    /// The same of its prompts.
    pub fn prompt_page(&mut self, cx: &mut Context<'_>, text: &str) {
        let Ok(page) = serde_json::from_str::<PromptPage<'_>>(text) else {
            return self.no_prompts(cx, "the list cannot be read");
        };
        let mut pages = self.prompt_pages.take().unwrap_or_default();
        for prompt in page.prompts {
            pages.take(&self.slug, prompt.get(), cx.limits);
        }
        match page.next_cursor {
            Some(cursor) if pages.follow(&cursor, cx.limits) => {
                self.prompt_pages = Some(pages);
                let params = ListParams {
                    cursor: Some(&cursor),
                };
                self.request(cx, Sent::Prompts, "prompts/list", &params);
            }
            Some(_) | None => self.prompts_listed(cx, pages),
        }
    }

    /// All pages of its tools are there, or it has none.
    pub fn whole(&mut self, cx: &mut Context<'_>, pages: Pages, shared: &mut Shared) {
        self.pages = None;
        self.listed(cx, pages, shared);
    }

    /// Its tools cannot be listed: those known before stay, if it was up.
    pub fn no_tools(&mut self, cx: &mut Context<'_>, why: &str) {
        self.pages = None;
        if self.state == State::Ready {
            self.log(cx, why);
            self.send_waiting(cx);
        } else {
            self.down(cx, Fault::new(why));
        }
    }

    /// Lists its tools; once more behind that if it does so now.
    pub fn list_tools(&mut self, cx: &mut Context<'_>) {
        if self.pages.is_some() {
            self.list_again.tools = true;
        } else {
            self.pages = Some(Pages::default());
            self.request(cx, Sent::Tools, "tools/list", &ListParams { cursor: None });
        }
    }

    /// All pages are there: it is ready, and what waits is sent.
    pub fn listed(&mut self, cx: &mut Context<'_>, pages: Pages, shared: &mut Shared) {
        for notice in &pages.notices {
            self.log(cx, notice);
        }
        let mut tools = pages.finish(&self.slug, self.resources);
        let redacted = |text: &str| {
            let mut shown = String::from(text);
            self.entry.redact(&mut shown);
            (shown != text).then(|| Arc::from(shown))
        };
        let before = tools.len();
        tools.retain(|tool| redacted(&tool.name).is_none());
        for tool in &mut tools {
            for text in [&mut tool.description, &mut tool.parameters] {
                if let Some(shown) = redacted(text) {
                    *text = shown;
                }
            }
        }
        if tools.len() < before {
            self.log(cx, "a tool whose name holds a secret is left out");
        }
        let tools = self.fitting(cx, tools, shared);
        self.failures = 0;
        self.standby = false;
        self.listed = true;
        let was_up = core::mem::replace(&mut self.state, State::Ready) == State::Ready;
        // Some servers say without end that the same tools have changed.
        if !was_up || self.tools != tools {
            self.set_tools(tools, shared);
            cx.out.push_back(Output::Changed);
            self.remember(cx);
        }
        if !was_up && self.has_prompts {
            self.list_prompts(cx);
        }
        self.send_waiting(cx);
        if core::mem::take(&mut self.list_again.tools) {
            self.list_tools(cx);
        }
    }

    /// Those of its tools for which there is room beside the tools of the other servers.
    fn fitting(
        &mut self,
        cx: &mut Context<'_>,
        mut tools: Vec<Tool>,
        shared: &Shared,
    ) -> Vec<Tool> {
        let others = shared.offered - self.offered;
        let mut room = cx.limits.max_mcp_offered.saturating_sub(others);
        let before = tools.len();
        tools.retain(|tool| {
            let fits = tool.size() <= room;
            room -= if fits { tool.size() } else { 0 };
            fits
        });
        if tools.len() < before {
            let left = before - tools.len();
            let why = "there is no room for them beside those of the other servers";
            self.log(cx, &format!("{left} tools are left out: {why}"));
        }
        tools
    }

    /// These are its tools now.
    pub fn set_tools(&mut self, tools: Vec<Tool>, shared: &mut Shared) {
        // What is counted for all servers holds what is counted for this one.
        shared.offered -= self.offered;
        self.offered = tools.iter().map(Tool::size).sum();
        shared.offered += self.offered;
        self.tools = tools;
    }

    /// Lists its prompts; once more behind that if it does so now.
    pub fn list_prompts(&mut self, cx: &mut Context<'_>) {
        if self.prompt_pages.is_some() {
            self.list_again.prompts = true;
        } else {
            self.prompt_pages = Some(PromptPages::default());
            let params = ListParams { cursor: None };
            self.request(cx, Sent::Prompts, "prompts/list", &params);
        }
    }

    /// All pages of prompts are there.
    fn prompts_listed(&mut self, cx: &mut Context<'_>, pages: PromptPages) {
        self.prompt_pages = None;
        let prompts = pages.finish();
        if self.prompts != prompts {
            self.prompts = prompts;
            cx.out.push_back(Output::Prompts);
        }
        self.send_waiting(cx);
        if core::mem::take(&mut self.list_again.prompts) {
            self.list_prompts(cx);
        }
    }

    /// Lists are not waited for any more: those known before stay. With `silently` nobody is told.
    pub fn give_up_lists(&mut self, cx: &mut Context<'_>, silently: bool) {
        let is_list = |(id, sent): (u64, &Sent)| match sent {
            Sent::Tools | Sent::Prompts | Sent::Initialize => Some(id),
            Sent::Call(_) => None,
        };
        let open: Vec<u64> = self.requests.iter().filter_map(is_list).collect();
        for id in open {
            self.settled(cx, id);
            if silently {
                self.requests.settle(&RequestId::from(id as i64));
            } else {
                self.unanswered(cx, id, "it takes too long");
            }
        }
        self.pages = None;
        self.prompt_pages = None;
    }

    /// Whether a list is under way that it can do without.
    pub fn lists(&self) -> bool {
        self.state == State::Ready && (self.pages.is_some() || self.prompt_pages.is_some())
    }

    /// Its prompts cannot be listed: those known before stay.
    pub fn no_prompts(&mut self, cx: &mut Context<'_>, why: &str) {
        self.prompt_pages = None;
        self.log(cx, &format!("its prompts cannot be listed: {why}"));
        self.send_waiting(cx);
    }
}
