//! Permission requests (ACP page: tool calls).

use alloc::string::String;
use alloc::vec::Vec;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::ids::SessionId;
use super::object::{OWN, names, object, parse, tagged, write_tagged};
use super::tool_call::ToolCallUpdate;

object! {
    /// `session/request_permission`.
    RequestPermissionRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The call it is about; announced before.
        "toolCall" tool_call: ToolCallUpdate = Required,
        /// What can be chosen; not empty, ids unique.
        "options" options: Vec<PermissionOption> = Required,
        ;
    }
}

object! {
    /// Something to choose.
    PermissionOption {
        /// Its id.
        "optionId" option_id: String = Required,
        /// Its name.
        "name" name: String = Required,
        /// What it means.
        "kind" kind: PermissionOptionKind = Required,
        ;
    }
}

names! {
    /// What choosing an option means.
    PermissionOptionKind {
        /// Allowed this time.
        AllowOnce = "allow_once",
        /// Allowed from now on.
        AllowAlways = "allow_always",
        /// Denied this time.
        RejectOnce = "reject_once",
        /// Denied from now on.
        RejectAlways = "reject_always",
    }
}

object! {
    /// The answer to `session/request_permission`.
    RequestPermissionResponse {
        /// What was chosen.
        "outcome" outcome: RequestPermissionOutcome = Required,
        ;
    }
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestPermissionOutcome {
    /// Nothing: the turn was cancelled before.
    Cancelled,
    /// An option.
    Selected(SelectedPermissionOutcome),
}

object! {
    /// An option that was chosen.
    SelectedPermissionOutcome {
        /// Its id.
        "optionId" option_id: String = Required,
        ;
    }
}

impl Serialize for RequestPermissionOutcome {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Cancelled => {
                let mut map = out.serialize_map(Some(1))?;
                map.serialize_entry("outcome", "cancelled")?;
                map.end()
            }
            Self::Selected(option) => write_tagged(out, "outcome", "selected", option),
        }
    }
}

impl<'de> Deserialize<'de> for RequestPermissionOutcome {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (raw, tag) = tagged(from, "outcome")?;
        match tag.as_deref() {
            Some("cancelled") => Ok(Self::Cancelled),
            Some("selected") => parse(raw).map(Self::Selected),
            Some(_) | None => Err(de::Error::custom(format_args!(
                "{OWN}expected an outcome of selected or cancelled"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_nested_shape_is_an_outcome() {
        let read = |text| serde_json::from_str::<RequestPermissionResponse>(text).ok();
        let selected = RequestPermissionResponse::new(RequestPermissionOutcome::Selected(
            SelectedPermissionOutcome::new("a"),
        ));
        let text = r#"{"outcome":{"outcome":"selected","optionId":"a"}}"#;
        assert_eq!(serde_json::to_string(&selected).unwrap(), text);
        assert_eq!(read(text), Some(selected));
        let cancelled = RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled);
        assert_eq!(
            read(r#"{"outcome":{"outcome":"cancelled"}}"#),
            Some(cancelled)
        );
        for text in [
            r#"{"outcome":"selected","optionId":"a"}"#,
            r#"{"outcome":{"outcome":"selected"}}"#,
            r#"{"outcome":{"outcome":"selected","optionId":null}}"#,
            r#"{"outcome":{"outcome":"granted","optionId":"a"}}"#,
            r#"{"outcome":{"optionId":"a"}}"#,
            r#"{"outcome":["selected","a"]}"#,
            r#"{"outcome":null}"#,
            r#"{}"#,
            r#"null"#,
            r#"true"#,
            r#"[]"#,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
