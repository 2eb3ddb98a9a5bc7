//! The model is asked: whether it can be, with which messages and which tools.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::turn::Phase;
use super::{Brain, Context, Ending, Engine};
use crate::model::{ChatMessage, ModelRun, ToolSpec};
use crate::tools::{self, Web, Workspace};

impl Engine {
    /// Asks the model for the next answer of the turn, or compacts the history first.
    pub(super) fn ask_model(&mut self, cx: &mut Context<'_>) {
        if let Brain::Nobody(why) = &self.brain {
            let message = why.clone();
            return self.finish(
                cx,
                Ending::Failed {
                    message,
                    auth: true,
                },
            );
        }
        let Some(turn) = &self.turn else { return };
        if turn.steps >= self.max_steps {
            // What was said for it meanwhile is not heard, and waits for another turn.
            return self.finish(cx, Ending::MaxSteps);
        }
        if self.claim_guidance(cx) {
            return;
        }
        let Some(turn) = &self.turn else { return };
        if !turn.tried
            && let Some(forced) = self.compaction_is_due(cx.limits)
            && self.compact(cx, forced)
        {
            return;
        }
        if let Brain::Endpoint(endpoint) = &self.brain
            && let Some(name) = &endpoint.missing_key
        {
            let message = format!(
                "No key for {}: {name} is not in the .env file of the agent's home. Run \
                 `reasonix setup`.",
                endpoint.provider
            );
            return self.finish(
                cx,
                Ending::Failed {
                    message,
                    auth: true,
                },
            );
        }
        let run = self.model_run(cx, self.messages_to_send());
        // The turn is there: it was looked at above.
        let Some(turn) = &mut self.turn else { return };
        turn.steps += 1;
        turn.phase = Phase::Answering { run, call: None };
    }

    pub(super) fn model_run(
        &mut self,
        cx: &mut Context<'_>,
        messages: Vec<ChatMessage>,
    ) -> ModelRun {
        let specs = self.tool_specs();
        let mut run = match &mut self.brain {
            Brain::Endpoint(endpoint) => {
                // Another pause for every run, the same for the same run of the same seed.
                self.jitter = self
                    .jitter
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                ModelRun::http(cx.now, endpoint, &messages, &specs, cx.limits, self.jitter)
            }
            Brain::Script(cursor) => ModelRun::script(cx.now, cursor.next_answer(), cx.limits),
            // A turn without a model ends before it asks one, and the model does not change in it.
            Brain::Nobody(_) => unreachable!("a turn without a model is over"),
        };
        if let Some(seconds) = cx.unix_seconds {
            run.set_wall(cx.now, seconds);
        }
        run
    }

    pub(super) fn messages_to_send(&self) -> Vec<ChatMessage> {
        let mut messages = Vec::with_capacity(self.history.messages().len() + 1);
        messages.push(ChatMessage::System(self.system.clone()));
        messages.extend_from_slice(self.history.messages());
        messages
    }

    pub(super) fn tool_specs(&self) -> Vec<ToolSpec> {
        let spec = |tool: &tools::Tool| ToolSpec {
            name: Cow::Borrowed(tool.name),
            description: Cow::Borrowed(tool.description),
            parameters: Cow::Borrowed(tool.parameters),
        };
        let elsewhere = |tool: &tools::External| ToolSpec {
            name: Cow::Owned(String::from(&*tool.name)),
            description: Cow::Owned(String::from(&*tool.description)),
            parameters: Cow::Owned(String::from(&*tool.parameters)),
        };
        let Workspace { web, closed, .. } = self.workspace;
        let offered = |tool: &&tools::Tool| {
            (web != Web::Off || !tools::is_web(tool.name))
                && !(closed && tools::adds_roots(tool.name))
        };
        let mut specs: Vec<ToolSpec> = if self.is_subagent {
            let tools = tools::catalogue().iter().filter(offered);
            tools
                .filter(|tool| tools::is_for_subagents(tool.name))
                .map(spec)
                .collect()
        } else if self.light {
            tools::light().filter(offered).map(spec).collect()
        } else {
            let tools = tools::catalogue().iter();
            tools.filter(offered).map(spec).collect()
        };
        let Workspace {
            custom, external, ..
        } = &self.workspace;
        let own = |tool: &&tools::External| tools::find(&tool.name).is_none();
        specs.extend(custom.iter().filter(own).map(elsewhere));
        // A name stands for one tool.
        let free = |tool: &&tools::External| custom.iter().all(|own| own.name != tool.name);
        specs.extend(external.iter().filter(free).map(elsewhere));
        specs
    }
}
