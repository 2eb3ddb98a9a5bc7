//! What one server asks the person, and our answers to what it asks.

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

impl Server {
    pub fn withdraw_asks(&mut self, cx: &mut Context<'_>, tell: bool) {
        for (ask, (id, _)) in core::mem::take(&mut self.asks) {
            cx.out.push_back(Output::Withdraw { ask });
            if tell {
                self.reply(cx, &id, Reply::Cancel, None);
            }
        }
        self.asked_no_more(cx.now);
    }

    /// The person answered.
    pub fn answered(&mut self, cx: &mut Context<'_>, ask: u64, reply: Reply) {
        let Some((id, question)) = self.asks.remove(&ask) else {
            return;
        };
        self.asked_no_more(cx.now);
        let (reply, content) = match &reply {
            Reply::Accept(values) => match question.accepts(values) {
                Some(content) => (reply, Some(content)),
                None => (Reply::Decline, None),
            },
            Reply::Decline | Reply::Cancel => (reply, None),
        };
        self.log(cx, &super::form::receipt(&reply));
        let page = matches!(question, Question::Page { .. });
        self.reply(cx, &id, reply, content.filter(|_| !page));
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
