//! What the client knew at a moment, and a session as it is seen.

use std::collections::BTreeMap;

use reasonix_tests::json::{self, Value, json};
use reasonix_tests::sim::Moment;

use super::script::{Asked, Life, What};

/// What the client knew at a moment.
pub(super) struct Known<'a> {
    pub(super) life: &'a Life,
    /// How many commands had been started.
    pub(super) ran: usize,
    /// Requests it had sent, and whether they were answered.
    pub(super) asked: Vec<(&'a Asked, Option<&'a Value>)>,
}

impl<'a> Known<'a> {
    pub(super) fn at(life: &'a Life, moment: &Moment) -> Self {
        let frames = &life.sim.frames;
        let answers = life.answers.get_or_init(|| {
            let answers = frames.iter().enumerate().rev();
            let answers = answers.filter(|(_, frame)| frame.get("method").is_none());
            answers
                .filter_map(|(at, frame)| Some((frame["id"].as_u64()?, at)))
                .collect()
        });
        let answer = |asked: &Asked| {
            let at = answers.get(&asked.id)?;
            frames[..moment.frames].get(*at)
        };
        Self {
            life,
            ran: moment.ran,
            asked: life
                .asked
                .iter()
                .filter(|asked| asked.sent <= moment.sent)
                .map(|asked| (asked, answer(asked)))
                .collect(),
        }
    }

    pub(super) fn answered(&self, what: impl Fn(&What) -> bool) -> usize {
        let answered =
            |(asked, answer): &&(&Asked, Option<&Value>)| answer.is_some() && what(&asked.what);
        self.asked.iter().filter(answered).count()
    }

    pub(super) fn sent(&self, what: impl Fn(&What) -> bool) -> bool {
        self.asked.iter().any(|(asked, _)| what(&asked.what))
    }

    /// Sessions whose making was answered, by place and id.
    pub(super) fn sessions(&self) -> Vec<(usize, &'a str)> {
        let made = self.answered(|what| matches!(what, What::New(_)));
        let ids = self.life.sessions[..made].iter();
        ids.map(String::as_str).enumerate().collect()
    }

    /// The texts of a session's prompts that were answered.
    pub(super) fn prompts(&self, session: usize) -> Vec<&'a str> {
        let text = |(asked, answer): &(&'a Asked, Option<&Value>)| match &asked.what {
            What::Prompt { session: of, text } if *of == session && answer.is_some() => {
                Some(text.as_str())
            }
            _ => None,
        };
        self.asked.iter().filter_map(text).collect()
    }

    /// The first of a session's prompts that was not answered, sent or not.
    pub(super) fn open_prompt(&self, session: usize) -> Option<&'a str> {
        let answered = self.prompts(session).len();
        let mut all = self
            .life
            .asked
            .iter()
            .filter_map(|asked| match &asked.what {
                What::Prompt { session: of, text } if *of == session => Some(text.as_str()),
                _ => None,
            });
        all.nth(answered)
    }

    /// Values of an option that may hold: the last that was answered, and any asked for since.
    pub(super) fn options(&self, session: usize, option: &str) -> Vec<&'a str> {
        let mut may = Vec::new();
        for (asked, answer) in &self.asked {
            if let What::Option { session: of, value } = &asked.what
                && *of == session
                && let Some(value) = value.strip_prefix(&format!("{option}="))
            {
                if answer.is_some() {
                    may.clear();
                }
                may.push(value);
            }
        }
        may
    }
}

/// A replay in words: one line an item, chunks of one message joined, ids left out.
pub(super) fn picture(frames: &[Value], session: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut titles: BTreeMap<String, String> = BTreeMap::new();
    let mut message = Value::Null;
    for update in frames
        .iter()
        .filter_map(|frame| json::update(frame, session))
    {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        if !update["_meta"]["reasonix.io"]["notice"].is_null() {
            continue;
        }
        if kind.ends_with("_chunk") {
            let text = update["content"]["text"].as_str().unwrap_or_default();
            let id = json!([kind, update["messageId"]]);
            match lines.last_mut() {
                Some(line) if id == message && !update["messageId"].is_null() => {
                    line.push_str(text);
                }
                _ => lines.push(format!("{kind} {text}")),
            }
            message = id;
            continue;
        }
        message = Value::Null;
        match kind {
            "tool_call" | "tool_call_update" => {
                let id = update["toolCallId"].to_string();
                if let Some(title) = update["title"].as_str() {
                    titles.insert(id.clone(), title.into());
                }
                let title = titles.get(&id).map_or("?", String::as_str);
                let content = update["content"].to_string();
                lines.push(format!("{kind} {title} {} {content}", update["status"]));
            }
            "plan" => lines.push(format!("plan {}", update["entries"])),
            // What is told when a session opens is not of its history.
            _ => {}
        }
    }
    lines
}
