//! What one server asks the person, and our answers to what it asks.
//!
//! A page that the person is asked to open is done later than it is answered:
//!
//! | it | and then | who asked the person is told that it is done |
//! | --- | --- | --- |
//! | is asked | the server says that it is done | once; the answer is waited for all the same |
//! | | it is declined, dismissed or taken back | no: nobody waits for it |
//! | | the person agrees | |
//! | is open | the server says that it is done | once |
//! | | the server is lost, or ends with the session | once: nobody else will say it |
//! | | more are open than questions may be | of the oldest, once |

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;
use serde_json::value::RawValue;

use super::form::{Question, Reply};
use super::server::Server;
use super::shapes::Elicited;
use super::{Context, Output};
use crate::wire::rpc::{write_error, write_result};
use crate::wire::{RequestId, RpcError};

/// A question that is open.
#[derive(Debug)]
pub(super) struct Asked {
    /// The server's request.
    pub id: RequestId,
    question: Question,
    /// The server said already that it is done.
    done: bool,
}

impl Asked {
    pub fn new(id: RequestId, question: Question) -> Self {
        Self {
            id,
            question,
            done: false,
        }
    }
}

impl Server {
    /// The server says that a page is done.
    pub fn completed(&mut self, cx: &mut Context<'_>, page: &str) {
        let mut done: Vec<u64> = Vec::new();
        for (ask, asked) in &mut self.asks {
            if let Question::Page { id, .. } = &asked.question
                && id == page
                && !core::mem::replace(&mut asked.done, true)
            {
                done.push(*ask);
            }
        }
        self.opened.retain(|ask, id| {
            let over = id == page;
            done.extend(over.then_some(*ask));
            !over
        });
        for ask in done {
            let id = page.into();
            cx.out.push_back(Output::Completed { ask, id });
        }
    }

    /// No page of it will be done by its own word.
    pub fn complete_all(&mut self, cx: &mut Context<'_>) {
        for (ask, id) in core::mem::take(&mut self.opened) {
            cx.out.push_back(Output::Completed { ask, id });
        }
    }

    fn open_page(&mut self, cx: &mut Context<'_>, ask: u64, id: String) {
        self.opened.insert(ask, id);
        if self.opened.len() > cx.limits.max_mcp_asks
            && let Some((ask, id)) = self.opened.pop_first()
        {
            cx.out.push_back(Output::Completed { ask, id });
        }
    }

    pub fn withdraw_asks(&mut self, cx: &mut Context<'_>, tell: bool) {
        for (ask, Asked { id, .. }) in core::mem::take(&mut self.asks) {
            cx.out.push_back(Output::Withdraw { ask });
            if tell {
                self.reply(cx, &id, Reply::Cancel, None);
            }
        }
        self.asked_no_more(cx.now);
    }

    /// The person answered.
    pub fn answered(&mut self, cx: &mut Context<'_>, ask: u64, reply: Reply) {
        let Some(Asked { id, question, done }) = self.asks.remove(&ask) else {
            return;
        };
        self.asked_no_more(cx.now);
        let (reply, content) = match &reply {
            Reply::Accept(values) => match question.accepts(values, cx.limits) {
                Some(content) => (reply, Some(content)),
                None => (Reply::Decline, None),
            },
            Reply::Decline | Reply::Cancel => (reply, None),
        };
        self.log(cx, &super::form::receipt(&reply));
        let agreed = matches!(reply, Reply::Accept(_));
        match question {
            Question::Form { .. } => self.reply(cx, &id, reply, content),
            Question::Page { id: page, .. } => {
                self.reply(cx, &id, reply, None);
                if agreed && !done {
                    self.open_page(cx, ask, page);
                }
            }
        }
    }

    pub fn reply(
        &mut self,
        cx: &mut Context<'_>,
        id: &RequestId,
        reply: Reply,
        content: Option<String>,
    ) {
        let action = match reply {
            Reply::Accept(_) => "accept",
            Reply::Decline => "decline",
            Reply::Cancel => "cancel",
        };
        let content = content.as_deref();
        let content = content.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        let mut bytes = Vec::new();
        write_result(&mut bytes, id, &Elicited { action, content });
        self.send(cx, bytes, None);
    }

    pub fn refuse(&mut self, cx: &mut Context<'_>, id: &RequestId, error: &RpcError) {
        let mut bytes = Vec::new();
        write_error(&mut bytes, id, error);
        self.send(cx, bytes, None);
    }

    pub fn result(&mut self, cx: &mut Context<'_>, id: &RequestId, result: &impl Serialize) {
        let mut bytes = Vec::new();
        write_result(&mut bytes, id, result);
        self.send(cx, bytes, None);
    }
}
