//! Modes and configuration options (ACP pages: session modes, session config options).

use alloc::string::String;
use alloc::vec::Vec;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::ids::SessionId;
use super::json::Meta;
use super::object::{OWN, object, open_names, parse, tagged};

object! {
    /// The modes of a session.
    SessionModeState {
        /// The mode it is in.
        "currentModeId" current_mode_id: String = Required,
        /// All its modes.
        "availableModes" available_modes: Vec<SessionMode> = LenientListShown,
        ;
    }
}

object! {
    /// A mode.
    SessionMode {
        /// Its id.
        "id" id: String = Required,
        /// Its name.
        "name" name: String = Required,
        ;
        /// What it does.
        "description" description: Option<String> = Lenient,
    }
}

/// An option of a session. It always has a current value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionConfigOption {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// What it is about; a hint.
    pub category: Option<SessionConfigOptionCategory>,
    /// Its kind, value and choices.
    pub kind: SessionConfigKind,
    /// `_meta`: what the schema does not define.
    pub meta: Option<Meta>,
}

impl SessionConfigOption {
    /// An option to choose one of `options`; `current` is one of their values.
    pub fn select(
        id: impl Into<String>,
        name: impl Into<String>,
        current: impl Into<String>,
        options: Vec<SessionConfigSelectOption>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            description: None,
            category: None,
            kind: SessionConfigKind::Select {
                current_value: current.into(),
                options: SessionConfigSelectOptions::Flat(options),
            },
            meta: None,
        }
    }

    /// An option that is on or off. Sent only to clients that take such options.
    pub fn boolean(id: impl Into<String>, name: impl Into<String>, current: bool) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            description: None,
            category: None,
            kind: SessionConfigKind::Boolean {
                current_value: current,
            },
            meta: None,
        }
    }
}

/// The kind of an option, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionConfigKind {
    /// One of several values.
    Select {
        /// The value it has.
        current_value: String,
        /// The values it can have.
        options: SessionConfigSelectOptions,
    },
    /// On or off.
    Boolean {
        /// The value it has.
        current_value: bool,
    },
}

/// The values of an option: all in groups or none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionConfigSelectOptions {
    /// A list.
    Flat(Vec<SessionConfigSelectOption>),
    /// Groups.
    Grouped(Vec<SessionConfigSelectGroup>),
}

object! {
    /// A value to choose.
    SessionConfigSelectOption {
        /// The value.
        "value" value: String = Required,
        /// Its name.
        "name" name: String = Required,
        ;
        /// What it means.
        "description" description: Option<String> = Lenient,
    }
}

object! {
    /// A group of values.
    SessionConfigSelectGroup {
        /// Its id.
        "group" group: String = Required,
        /// Its name.
        "name" name: String = Required,
        /// Its values.
        "options" options: Vec<SessionConfigSelectOption> = LenientListShown,
        ;
    }
}

open_names! {
    /// What an option is about. A hint: nothing may depend on it. Our own begin with `_`.
    SessionConfigOptionCategory {
        /// The mode.
        Mode = "mode",
        /// The model.
        Model = "model",
        /// A setting of the model.
        ModelConfig = "model_config",
        /// How much the model thinks.
        ThoughtLevel = "thought_level",
    }
}

object! {
    /// `session/set_mode`.
    SetSessionModeRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The mode.
        "modeId" mode_id: String = Required,
        ;
    }
}

object! {
    /// The answer to `session/set_mode`.
    SetSessionModeResponse {}
}

object! {
    /// `session/set_model`: a method of older clients.
    SetSessionModelRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The model.
        "modelId" model_id: String = Required,
        ;
    }
}

object! {
    /// The answer to `session/set_model`.
    SetSessionModelResponse {}
}

/// `session/set_config_option`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetSessionConfigOptionRequest {
    /// The session.
    pub session_id: SessionId,
    /// The option.
    pub config_id: String,
    /// The value.
    pub value: ConfigValue,
    /// `_meta`: what the schema does not define.
    pub meta: Option<Meta>,
}

impl SetSessionConfigOptionRequest {
    /// A request to set an option.
    pub fn new(
        session_id: impl Into<SessionId>,
        config_id: impl Into<String>,
        value: ConfigValue,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            config_id: config_id.into(),
            value,
            meta: None,
        }
    }
}

/// The value of an option that is set: a boolean only with `type: "boolean"`, a string with any
/// other type or none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigValue {
    /// One of the values offered.
    Id(String),
    /// On or off.
    Boolean(bool),
}

object! {
    /// The answer to `session/set_config_option`.
    SetSessionConfigOptionResponse {
        /// All options with the values they have now.
        "configOptions" config_options: Vec<SessionConfigOption> = LenientListShown,
        ;
    }
}

object! {
    /// `current_mode_update`: the mode has changed.
    CurrentModeUpdate {
        /// The mode it is in.
        "currentModeId" current_mode_id: String = Required,
        ;
    }
}

object! {
    /// `config_option_update`: options have changed.
    ConfigOptionUpdate {
        /// All options with the values they have now.
        "configOptions" config_options: Vec<SessionConfigOption> = LenientListShown,
        ;
    }
}

object! {
    /// What all kinds of options have.
    OptionHead {
        "id" id: String = Required,
        "name" name: String = Required,
        ;
        "description" description: Option<String> = Lenient,
        "category" category: Option<SessionConfigOptionCategory> = Lenient,
    }
}

object! {
    /// What a `select` has.
    SelectTail {
        "currentValue" current_value: String = Required,
        "options" options: SessionConfigSelectOptions = Required,
        ;
    }
}

object! {
    /// What a `boolean` has.
    BooleanTail {
        "currentValue" current_value: bool = Required,
        ;
    }
}

impl Serialize for SessionConfigOption {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("name", &self.name)?;
        if let Some(description) = &self.description {
            map.serialize_entry("description", description)?;
        }
        if let Some(category) = &self.category {
            map.serialize_entry("category", category)?;
        }
        match &self.kind {
            SessionConfigKind::Select {
                current_value,
                options,
            } => {
                map.serialize_entry("type", "select")?;
                map.serialize_entry("currentValue", current_value)?;
                map.serialize_entry("options", options)?;
            }
            SessionConfigKind::Boolean { current_value } => {
                map.serialize_entry("type", "boolean")?;
                map.serialize_entry("currentValue", current_value)?;
            }
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for SessionConfigOption {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (raw, tag) = tagged(from, "type")?;
        let head: OptionHead = parse(raw)?;
        let kind = match tag.as_deref() {
            Some("select") => {
                let tail: SelectTail = parse(raw)?;
                SessionConfigKind::Select {
                    current_value: tail.current_value,
                    options: tail.options,
                }
            }
            Some("boolean") => SessionConfigKind::Boolean {
                current_value: parse::<BooleanTail, _>(raw)?.current_value,
            },
            Some(_) | None => {
                return Err(de::Error::custom(format_args!(
                    "{OWN}expected an option of type select or boolean"
                )));
            }
        };
        Ok(Self {
            id: head.id,
            name: head.name,
            description: head.description,
            category: head.category,
            kind,
            meta: head.meta,
        })
    }
}

impl Serialize for SessionConfigSelectOptions {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Flat(options) => options.serialize(out),
            Self::Grouped(groups) => groups.serialize(out),
        }
    }
}

impl<'de> Deserialize<'de> for SessionConfigSelectOptions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(from)?.get();
        match serde_json::from_str(raw) {
            Ok(options) => Ok(Self::Flat(options)),
            Err(_) => parse(raw).map(Self::Grouped),
        }
    }
}

impl Serialize for SetSessionConfigOptionRequest {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("sessionId", &self.session_id)?;
        map.serialize_entry("configId", &self.config_id)?;
        match &self.value {
            ConfigValue::Id(id) => map.serialize_entry("value", id)?,
            ConfigValue::Boolean(on) => {
                map.serialize_entry("type", "boolean")?;
                map.serialize_entry("value", on)?;
            }
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

object! {
    /// What all settings of options have.
    SettingHead {
        "sessionId" session_id: SessionId = Required,
        "configId" config_id: String = Required,
        "value" value: super::json::Json = Required,
        ;
    }
}

impl<'de> Deserialize<'de> for SetSessionConfigOptionRequest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (raw, tag) = tagged(from, "type")?;
        let head: SettingHead = parse(raw)?;
        let text = head.value.get();
        let value = if tag.as_deref() == Some("boolean") {
            match text {
                "true" => ConfigValue::Boolean(true),
                "false" => ConfigValue::Boolean(false),
                _ => {
                    return Err(de::Error::custom(format_args!(
                        "{OWN}expected a boolean in `value`"
                    )));
                }
            }
        } else if text.starts_with('"') {
            ConfigValue::Id(parse(text)?)
        } else {
            return Err(de::Error::custom(format_args!(
                "{OWN}expected a string in `value`"
            )));
        };
        Ok(Self {
            session_id: head.session_id,
            config_id: head.config_id,
            value,
            meta: head.meta,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_value_is_a_string_or_a_boolean_that_says_so() {
        let read = |rest: &str| {
            serde_json::from_str::<SetSessionConfigOptionRequest>(&alloc::format!(
                r#"{{"sessionId":"s","configId":"c",{rest}}}"#
            ))
            .map(|request| request.value)
            .ok()
        };
        let id = |text: &str| Some(ConfigValue::Id(text.into()));
        for (rest, value) in [
            (r#""value":"a""#, id("a")),
            (r#""type":"zzz","value":"a""#, id("a")),
            (r#""type":5,"value":"a\u0041""#, id("aA")),
            (
                r#""type":"boolean","value":true"#,
                Some(ConfigValue::Boolean(true)),
            ),
            (
                r#""value":false,"type":"boolean""#,
                Some(ConfigValue::Boolean(false)),
            ),
            (r#""value":true"#, None),
            (r#""type":"boolean","value":"true""#, None),
            (r#""value":null"#, None),
            (r#""value":5"#, None),
            (r#""zzz":5"#, None),
        ] {
            assert_eq!(read(rest), value, "{rest}");
        }
    }

    #[test]
    fn options_of_both_kinds_and_shapes_come_back() {
        let mut option = SessionConfigOption::select(
            "model",
            "Model",
            "a",
            vec![SessionConfigSelectOption::new("a", "A")],
        );
        option.category = Some("_own".into());
        let mut grouped = option.clone();
        grouped.kind = SessionConfigKind::Select {
            current_value: "a".into(),
            options: SessionConfigSelectOptions::Grouped(vec![SessionConfigSelectGroup::new(
                "g",
                "G",
                vec![SessionConfigSelectOption::new("a", "A")],
            )]),
        };
        for option in [
            option,
            grouped,
            SessionConfigOption::boolean("b", "B", true),
        ] {
            let text = serde_json::to_string(&option).unwrap();
            assert_eq!(
                serde_json::from_str::<SessionConfigOption>(&text).unwrap(),
                option
            );
        }
    }
}
