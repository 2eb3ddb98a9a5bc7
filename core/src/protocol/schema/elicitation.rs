//! Questions to the person (ACP page: elicitation). The form's schema is kept as its text.

use alloc::collections::BTreeMap;
use alloc::string::String;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::ids::SessionId;
use super::json::{Json, Meta};
use super::object::{OWN, object, parse, tagged};

/// `elicitation/create`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateElicitationRequest {
    /// What it belongs to.
    pub scope: ElicitationScope,
    /// What is asked.
    pub message: String,
    /// How it is asked.
    pub mode: ElicitationMode,
    /// `_meta`: what the schema does not define.
    pub meta: Option<Meta>,
}

impl CreateElicitationRequest {
    /// A question.
    pub fn new(scope: ElicitationScope, message: impl Into<String>, mode: ElicitationMode) -> Self {
        Self {
            scope,
            message: message.into(),
            mode,
            meta: None,
        }
    }

    /// The session it belongs to, if it belongs to one.
    pub fn session_id(&self) -> Option<&SessionId> {
        match &self.scope {
            ElicitationScope::Session { session_id, .. } => Some(session_id),
            ElicitationScope::Request { .. } => None,
        }
    }
}

/// What a question belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElicitationScope {
    /// A session.
    Session {
        /// The session.
        session_id: SessionId,
        /// The call that asks.
        tool_call_id: Option<String>,
    },
    /// A request of the client, by its id.
    Request {
        /// The id, as the client wrote it.
        request_id: Json,
    },
}

/// How a question is asked. Never for secrets by form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElicitationMode {
    /// A form.
    Form {
        /// The form: a flat JSON schema with `type: "object"` and `properties`.
        requested_schema: Json,
    },
    /// A page to open.
    Url {
        /// Unique among the open ones of the connection.
        elicitation_id: String,
        /// The page.
        url: String,
    },
}

/// The answer to `elicitation/create`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateElicitationResponse {
    /// What the person did.
    pub action: ElicitationAction,
    /// `_meta`: what the schema does not define.
    pub meta: Option<Meta>,
}

impl CreateElicitationResponse {
    /// An answer.
    pub fn new(action: ElicitationAction) -> Self {
        Self { action, meta: None }
    }
}

/// What the person did. An unknown action is none of the three.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElicitationAction {
    /// Answered, or agreed to open the page.
    Accept {
        /// The values by member; none: not given.
        content: Option<BTreeMap<String, ElicitationValue>>,
    },
    /// Refused.
    Decline,
    /// Dismissed.
    Cancel,
    /// Something else.
    Other(String),
}

/// A value of a form, kept as its text: a string, number, boolean or list of strings.
pub type ElicitationValue = Json;

object! {
    /// `elicitation/complete`: what was opened by URL is done.
    CompleteElicitationNotification {
        /// The id of the question.
        "elicitationId" elicitation_id: String = Required,
        ;
    }
}

object! {
    /// All members a question can have.
    RequestMembers {
        "message" message: String = Required,
        "mode" mode: String = Required,
        ;
        "sessionId" session_id: Option<SessionId> = Optional,
        "toolCallId" tool_call_id: Option<String> = Lenient,
        "requestId" request_id: Option<Json> = Optional,
        "requestedSchema" requested_schema: Option<Json> = Optional,
        "elicitationId" elicitation_id: Option<String> = Optional,
        "url" url: Option<String> = Optional,
    }
}

object! {
    /// What an accepted answer has.
    AcceptMembers {
        "content" content: Option<BTreeMap<String, Json>> = Optional,
    }
}

impl Serialize for CreateElicitationRequest {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(None)?;
        match &self.scope {
            ElicitationScope::Session {
                session_id,
                tool_call_id,
            } => {
                map.serialize_entry("sessionId", session_id)?;
                if let Some(call) = tool_call_id {
                    map.serialize_entry("toolCallId", call)?;
                }
            }
            ElicitationScope::Request { request_id } => {
                map.serialize_entry("requestId", request_id)?;
            }
        }
        map.serialize_entry("message", &self.message)?;
        match &self.mode {
            ElicitationMode::Form { requested_schema } => {
                map.serialize_entry("mode", "form")?;
                map.serialize_entry("requestedSchema", requested_schema)?;
            }
            ElicitationMode::Url {
                elicitation_id,
                url,
            } => {
                map.serialize_entry("mode", "url")?;
                map.serialize_entry("elicitationId", elicitation_id)?;
                map.serialize_entry("url", url)?;
            }
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for CreateElicitationRequest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let all = RequestMembers::deserialize(from)?;
        let scope = match (all.session_id, all.request_id) {
            (Some(session_id), _) => ElicitationScope::Session {
                session_id,
                tool_call_id: all.tool_call_id,
            },
            (None, Some(request_id)) => ElicitationScope::Request { request_id },
            (None, None) => return Err(de::Error::missing_field("sessionId")),
        };
        let mode = match all.mode.as_str() {
            "form" => ElicitationMode::Form {
                requested_schema: all
                    .requested_schema
                    .ok_or_else(|| de::Error::missing_field("requestedSchema"))?,
            },
            "url" => ElicitationMode::Url {
                elicitation_id: all
                    .elicitation_id
                    .ok_or_else(|| de::Error::missing_field("elicitationId"))?,
                url: all.url.ok_or_else(|| de::Error::missing_field("url"))?,
            },
            _ => {
                return Err(de::Error::custom(format_args!(
                    "{OWN}expected a mode of form or url"
                )));
            }
        };
        Ok(Self {
            scope,
            message: all.message,
            mode,
            meta: all.meta,
        })
    }
}

impl Serialize for CreateElicitationResponse {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(None)?;
        match &self.action {
            ElicitationAction::Accept { content } => {
                map.serialize_entry("action", "accept")?;
                if let Some(content) = content {
                    map.serialize_entry("content", content)?;
                }
            }
            ElicitationAction::Decline => map.serialize_entry("action", "decline")?,
            ElicitationAction::Cancel => map.serialize_entry("action", "cancel")?,
            ElicitationAction::Other(name) => map.serialize_entry("action", name)?,
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for CreateElicitationResponse {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (raw, tag) = tagged(from, "action")?;
        let all: AcceptMembers = parse(raw)?;
        let action = match tag.as_deref() {
            Some("accept") => ElicitationAction::Accept {
                content: all.content,
            },
            Some("decline") => ElicitationAction::Decline,
            Some("cancel") => ElicitationAction::Cancel,
            Some(other) => ElicitationAction::Other(other.into()),
            None => return Err(de::Error::missing_field("action")),
        };
        Ok(Self {
            action,
            meta: all.meta,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_one_of_three_or_unknown() {
        let read = |text| {
            serde_json::from_str::<CreateElicitationResponse>(text)
                .map(|r| r.action)
                .ok()
        };
        let accept = read(r#"{"action":"accept","content":{"a":1.50,"b":["x"]}}"#).unwrap();
        let ElicitationAction::Accept {
            content: Some(content),
        } = accept
        else {
            panic!()
        };
        assert_eq!(content["a"].get(), "1.50");
        assert_eq!(
            read(r#"{"action":"accept","content":null}"#),
            Some(ElicitationAction::Accept { content: None })
        );
        assert_eq!(
            read(r#"{"action":"decline"}"#),
            Some(ElicitationAction::Decline)
        );
        assert_eq!(
            read(r#"{"action":"cancel"}"#),
            Some(ElicitationAction::Cancel)
        );
        assert_eq!(
            read(r#"{"action":"zzz"}"#),
            Some(ElicitationAction::Other("zzz".into()))
        );
        assert_eq!(read("{}"), None);
        assert_eq!(read(r#"{"action":"accept","content":5}"#), None);
    }

    #[test]
    fn both_modes_and_scopes_come_back() {
        for text in [
            r#"{"sessionId":"s","toolCallId":"c","message":"m","mode":"form","requestedSchema":{"type":"object","properties":{}}}"#,
            r#"{"requestId":7,"message":"m","mode":"url","elicitationId":"e","url":"https://x"}"#,
        ] {
            let request: CreateElicitationRequest = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
        }
    }
}
