//! The body of a request: equal messages and tools give equal bytes, and a longer history begins
//! with the bytes of the shorter one, so that the provider's prefix cache holds. Knows no answer.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;
use serde_json::value::RawValue;

use super::endpoint::{Dialect, Endpoint};
use super::types::{ChatMessage, Part, ToolSpec, ToolUse};

/// The body of the request for the next answer.
pub(super) fn body(endpoint: &Endpoint, messages: &[ChatMessage], tools: &[ToolSpec]) -> Vec<u8> {
    let effort = endpoint.effort.as_deref();
    let thinking = match (endpoint.dialect, effort) {
        (Dialect::DeepSeek, Some(effort)) => Some(Thinking {
            kind: if is_off(effort) {
                "disabled"
            } else {
                "enabled"
            },
        }),
        (Dialect::DeepSeek, None) | (Dialect::OpenAi, _) => None,
    };
    let request = RequestWire {
        model: &endpoint.model,
        messages: messages
            .iter()
            .filter_map(|message| MessageWire::of(message, endpoint))
            .collect(),
        tools: tools.iter().map(ToolWire::of).collect(),
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
        max_tokens: endpoint.max_output,
        reasoning_effort: effort
            .filter(|effort| endpoint.dialect == Dialect::OpenAi || !is_off(effort)),
        thinking,
    };
    serde_json::to_vec(&request).expect("strings, numbers and raw JSON always serialize")
}

fn is_off(effort: &str) -> bool {
    matches!(effort, "off" | "none" | "disabled")
}

#[derive(Serialize)]
struct RequestWire<'a> {
    model: &'a str,
    messages: Vec<MessageWire<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolWire<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Thinking {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum MessageWire<'a> {
    System {
        content: &'a str,
    },
    User {
        content: ContentWire<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<CallWire<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

impl<'a> MessageWire<'a> {
    fn of(message: &'a ChatMessage, endpoint: &Endpoint) -> Option<Self> {
        Some(match message {
            ChatMessage::System(text) => Self::System { content: text },
            ChatMessage::User(parts) => Self::User {
                content: ContentWire::of(parts, endpoint),
            },
            // Providers refuse an assistant message that holds nothing.
            ChatMessage::Assistant { text, calls, .. } if text.is_empty() && calls.is_empty() => {
                return None;
            }
            ChatMessage::Assistant {
                text,
                reasoning,
                calls,
            } => Self::Assistant {
                content: (!text.is_empty()).then_some(text.as_str()),
                // DeepSeek refuses tool calls of a thinking model without the member.
                reasoning_content: match reasoning.as_deref() {
                    _ if !endpoint.echo_reasoning => None,
                    None if !calls.is_empty() => Some(""),
                    reasoning => reasoning,
                },
                tool_calls: calls.iter().map(CallWire::of).collect(),
            },
            ChatMessage::Tool { id, text } => Self::Tool {
                tool_call_id: id,
                content: text,
            },
        })
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum ContentWire<'a> {
    /// Some servers take nothing else.
    Text(String),
    One(&'a str),
    Parts(Vec<PartWire<'a>>),
}

/// What a model that takes no images is shown in their place.
const NO_IMAGE: &str = "[an image was here; this model takes none]";

impl<'a> ContentWire<'a> {
    fn of(parts: &'a [Part], endpoint: &Endpoint) -> Self {
        let has_image = |part: &Part| matches!(part, Part::Image { .. });
        if let [Part::Text(text)] = parts {
            return Self::One(text);
        }
        if endpoint.images && parts.iter().any(has_image) {
            return Self::Parts(parts.iter().map(PartWire::of).collect());
        }
        let mut joined = String::new();
        for part in parts {
            if !joined.is_empty() {
                joined.push('\n');
            }
            joined.push_str(match part {
                Part::Text(text) => text,
                Part::Image { .. } => NO_IMAGE,
            });
        }
        Self::Text(joined)
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum PartWire<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: UrlWire },
}

#[derive(Serialize)]
struct UrlWire {
    url: String,
}

impl<'a> PartWire<'a> {
    fn of(part: &'a Part) -> Self {
        match part {
            Part::Text(text) => Self::Text { text },
            Part::Image { mime, data } => Self::ImageUrl {
                image_url: UrlWire {
                    url: format!("data:{mime};base64,{data}"),
                },
            },
        }
    }
}

#[derive(Serialize)]
struct CallWire<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledWire<'a>,
}

#[derive(Serialize)]
struct CalledWire<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> CallWire<'a> {
    fn of(call: &'a ToolUse) -> Self {
        Self {
            id: &call.id,
            kind: "function",
            function: CalledWire {
                name: &call.name,
                arguments: &call.arguments,
            },
        }
    }
}

#[derive(Serialize)]
struct ToolWire<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionWire<'a>,
}

#[derive(Serialize)]
struct FunctionWire<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
}

impl<'a> ToolWire<'a> {
    fn of(tool: &'a ToolSpec) -> Self {
        Self {
            kind: "function",
            function: FunctionWire {
                name: &tool.name,
                description: &tool.description,
                // A schema that is no JSON is left out: a tool without one takes no arguments.
                parameters: serde_json::from_str(&tool.parameters).ok(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::vec;

    use super::super::endpoint::tests::provider;
    use super::*;
    use crate::settings::Model;

    fn endpoint(name: &str, effort: Option<&str>, change: impl Fn(&mut Model)) -> Endpoint {
        let mut model = Model {
            id: "m".into(),
            ..Model::default()
        };
        change(&mut model);
        Endpoint::new(&provider(name, "http://h"), &model, effort)
    }

    fn text(endpoint: &Endpoint, messages: &[ChatMessage], tools: &[ToolSpec]) -> String {
        String::from_utf8(body(endpoint, messages, tools)).unwrap()
    }

    fn history() -> Vec<ChatMessage> {
        vec![
            ChatMessage::System("be".into()),
            ChatMessage::user("read a"),
            ChatMessage::Assistant {
                text: String::new(),
                reasoning: Some("hm".into()),
                calls: vec![ToolUse {
                    id: "t1".into(),
                    name: "read_file".into(),
                    arguments: r#"{"path":"a"}"#.into(),
                }],
            },
            ChatMessage::Tool {
                id: "t1".into(),
                text: "A".into(),
            },
            ChatMessage::Assistant {
                text: String::new(),
                reasoning: None,
                calls: vec![],
            },
        ]
    }

    #[test]
    fn the_body_is_this_byte_for_byte() {
        let tool = ToolSpec {
            name: "read_file".into(),
            description: "Reads".into(),
            parameters: r#"{"type": "object","b":1,"a":2}"#.into(),
        };
        let plain = endpoint("x", None, |model| model.max_output = Some(9));
        assert_eq!(
            text(&plain, &history(), &[tool]),
            concat!(
                r#"{"model":"m","messages":[{"role":"system","content":"be"},{"role":"user","content":"read a"},"#,
                r#"{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]},"#,
                r#"{"role":"tool","tool_call_id":"t1","content":"A"}],"#,
                r#""tools":[{"type":"function","function":{"name":"read_file","description":"Reads","parameters":{"type": "object","b":1,"a":2}}}],"#,
                r#""stream":true,"stream_options":{"include_usage":true},"max_tokens":9}"#
            )
        );
    }

    #[test]
    fn a_longer_history_begins_with_the_bytes_of_the_shorter_one() {
        let endpoint = endpoint("x", None, |_| ());
        let history = history();
        let end = "],\"stream\"";
        let mut before = String::new();
        for count in 1..history.len() {
            let body = text(&endpoint, &history[..count], &[]);
            let upto = body[..body.find(end).unwrap()].to_owned();
            assert!(upto.starts_with(&before));
            before = upto;
        }
    }

    #[test]
    fn effort_is_spelled_as_the_endpoint_wants_it() {
        for (name, effort, tail) in [
            ("x", None, "}}"),
            ("x", Some("auto"), "}}"),
            ("x", Some("low"), r#"},"reasoning_effort":"low"}"#),
            ("deepseek", Some("auto"), "}}"),
            (
                "deepseek",
                Some("max"),
                r#"},"reasoning_effort":"max","thinking":{"type":"enabled"}}"#,
            ),
            (
                "deepseek",
                Some("off"),
                r#"},"thinking":{"type":"disabled"}}"#,
            ),
        ] {
            let body = text(&endpoint(name, effort, |_| ()), &[], &[]);
            let (_, got) = body.split_once(r#""include_usage":true"#).unwrap();
            assert_eq!(got, tail, "{name} {effort:?}");
        }
    }

    #[test]
    fn reasoning_goes_back_only_where_the_endpoint_asks_for_it() {
        let mut history = history();
        let silent = text(&endpoint("x", None, |_| ()), &history, &[]);
        assert!(!silent.contains("reasoning_content"));
        let echo = endpoint("x", None, |model| model.echo_reasoning = true);
        assert!(text(&echo, &history, &[]).contains(r#""reasoning_content":"hm""#));
        let ChatMessage::Assistant { reasoning, .. } = &mut history[2] else {
            unreachable!()
        };
        *reasoning = None;
        assert!(text(&echo, &history, &[]).contains(r#""reasoning_content":"""#));
    }

    #[test]
    fn an_image_is_a_data_url_or_a_line_of_text() {
        let message = [ChatMessage::User(vec![
            Part::Text("see".into()),
            Part::Image {
                mime: "image/png".into(),
                data: "QUJD".into(),
            },
        ])];
        let unknown = text(&endpoint("x", None, |_| ()), &message, &[]);
        assert!(unknown.contains(
            r#""content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]"#
        ));
        let blind = text(
            &endpoint("x", None, |m| m.images = Some(false)),
            &message,
            &[],
        );
        assert!(blind.contains(r#""content":"see\n[an image was here; this model takes none]""#));
    }
}
