//! The options of a session: independent axes, the names they have on the wire, and the legacy
//! names that are still taken.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::config::{Config, Preset};
use super::fit::{self, Room};
use super::models;
use super::standing;
use crate::engine::mode::Mode;
use crate::engine::record::Options;
use crate::limits::Limits;
use crate::permission::{PermissionMode, Posture};
use crate::protocol::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
};
use crate::settings::Settings;

/// What a session is set to. No axis moves another, but for an effort that the model does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Axes {
    /// `provider/model`, or the scripted model.
    pub model: String,
    /// None: `auto`, the provider decides.
    pub effort: Option<String>,
    /// How much of the tools the model gets.
    pub preset: Preset,
    /// What was chosen for approvals; the ceiling is above it.
    pub posture: Posture,
    /// How the session works with the person.
    pub mode: Mode,
}

impl Axes {
    /// As a session remembers it.
    pub(super) fn record(&self) -> Options {
        Options {
            model: self.model.clone(),
            effort: self.effort.clone(),
            preset: self.preset.name().into(),
            approval: self.posture.name().into(),
            mode: self.mode.name().into(),
        }
    }

    /// What a session remembers; what it does not say, or says in a way that is not known, is as in
    /// new sessions.
    pub(super) fn of_record(options: &Options, config: &Config) -> Self {
        Self {
            model: options.model.clone(),
            effort: options.effort.clone(),
            preset: Preset::named(&options.preset).unwrap_or(config.preset),
            posture: Posture::from_name(&options.approval).unwrap_or(config.permission_mode.start),
            mode: Mode::named(&options.mode).unwrap_or_default(),
        }
    }
}

/// What stands around the texts of one value, bytes of JSON.
const VALUE: usize = 40;

/// One axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Mode,
    Model,
    Effort,
    Preset,
    Approval,
}

impl Axis {
    /// The axis of an option's id; legacy ids too.
    pub(super) fn of(id: &str) -> Option<Self> {
        match id {
            "mode" => Some(Self::Mode),
            "model" | "models" => Some(Self::Model),
            "effort" | "reasoning_effort" | "thought_level" => Some(Self::Effort),
            "agent_preset" | "work_mode" | "profile" | "runtime_profile" | "token_mode" => {
                Some(Self::Preset)
            }
            "tool_approval" | "approval" | "approval_mode" | "tool_approval_mode" => {
                Some(Self::Approval)
            }
            _ => None,
        }
    }
}

/// The efforts of a model, if it has any.
pub(super) fn efforts<'a>(settings: &'a Settings, model: &str) -> &'a [String] {
    models::find(settings, model).map_or(&[], |choice| choice.model.efforts.as_slice())
}

/// The options as the client sees them, most important first.
pub(super) fn list(
    axes: &Axes,
    settings: &Settings,
    mode: PermissionMode,
    limits: &Limits,
) -> Vec<SessionConfigOption> {
    let mut options = Vec::with_capacity(5);
    let values = Mode::ALL.iter().map(|mode| mode_value(*mode)).collect();
    let mut option = SessionConfigOption::select("mode", "Mode", axes.mode.name(), values);
    option.description = Some("How it works together with you".into());
    option.category = Some(SessionConfigOptionCategory::Mode);
    options.push(option);
    options.push(model(axes, settings, limits));
    let efforts = efforts(settings, &axes.model);
    if !efforts.is_empty() {
        let values = core::iter::once("auto").chain(efforts.iter().map(String::as_str));
        let current = axes.effort.as_deref().unwrap_or("auto");
        let mut option = SessionConfigOption::select(
            "effort",
            "Effort",
            current,
            values
                .map(|value| SessionConfigSelectOption::new(value, value))
                .collect(),
        );
        option.description = Some("How much the model thinks before it answers".into());
        option.category = Some(SessionConfigOptionCategory::ThoughtLevel);
        options.push(option);
    }
    let mut option = SessionConfigOption::select(
        "agent_preset",
        "Execution Setting",
        axes.preset.name(),
        Preset::ALL
            .iter()
            .map(|preset| preset_value(*preset))
            .collect(),
    );
    option.description = Some("How many tools and instructions the model gets".into());
    option.category = Some(SessionConfigOptionCategory::from("_agent_preset"));
    options.push(option);
    let current = mode.ceiling.clip(axes.posture);
    let mut option = SessionConfigOption::select(
        "tool_approval",
        "Tool Approval",
        current.name(),
        postures(mode, current).map(posture_value).collect(),
    );
    option.description = Some("What runs without asking".into());
    option.category = Some(SessionConfigOptionCategory::from("_tool_approval"));
    options.push(option);
    options
}

/// The postures to choose from: those of the flag, and the one that is set, which a session may have
/// from a process with another flag. What is set is always offered (ACP page: config options).
pub(super) fn postures(mode: PermissionMode, current: Posture) -> impl Iterator<Item = Posture> {
    let offered = move |posture: &Posture| mode.offered().any(|offered| offered == *posture);
    let all = Posture::ALL.into_iter();
    all.filter(move |posture| *posture == current || offered(posture))
}

/// The models, as far as they fit into a frame beside everything else; the one that is set is among them.
fn model(axes: &Axes, settings: &Settings, limits: &Limits) -> SessionConfigOption {
    let mut room = Room::half(limits);
    let mut values: Vec<_> = models::all(settings)
        .filter(|choice| {
            let name = choice.name();
            let cost = VALUE + 2 * fit::cost(&name) + fit::cost(&choice.provider.name);
            name == axes.model || room.take(cost)
        })
        .map(|choice| {
            let mut value = SessionConfigSelectOption::new(choice.name(), choice.name());
            value.description = Some(choice.provider.name.clone());
            value
        })
        .collect();
    if !values.iter().any(|value| value.value == axes.model) {
        values.push(SessionConfigSelectOption::new(
            axes.model.clone(),
            axes.model.clone(),
        ));
    }
    let mut option = SessionConfigOption::select("model", "Model", axes.model.to_string(), values);
    option.category = Some(SessionConfigOptionCategory::Model);
    option
}

fn mode_value(mode: Mode) -> SessionConfigSelectOption {
    let (name, description) = standing::describe(mode);
    let mut value = SessionConfigSelectOption::new(mode.name(), name);
    value.description = Some(description.into());
    value
}

fn preset_value(preset: Preset) -> SessionConfigSelectOption {
    let (name, description) = match preset {
        Preset::Light => ("Light", "A small tool set and a short prompt"),
        Preset::Balanced => ("Balanced", "All tools"),
        Preset::Delivery => ("Delivery", "All tools, and work counts only when verified"),
    };
    let mut value = SessionConfigSelectOption::new(preset.name(), name);
    value.description = Some(description.into());
    value
}

fn posture_value(posture: Posture) -> SessionConfigSelectOption {
    let (name, description) = match posture {
        Posture::ReadOnly => ("Read Only", "Nothing that writes or executes runs"),
        Posture::DontAsk => ("Don't Ask", "What would ask is denied"),
        Posture::Ask => ("Ask", "What no rule allows asks"),
        Posture::Auto => ("Auto", "Only what a rule says to ask asks"),
        Posture::Yolo => ("Yolo", "Only protected decisions ask"),
    };
    let mut value = SessionConfigSelectOption::new(posture.name(), name);
    value.description = Some(description.into());
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Model, Provider};
    use alloc::format;

    #[test]
    fn the_options_fit_into_a_frame_however_many_models_there_are() {
        let limits = Limits::default();
        for (count, all) in [(10, true), (3000, false)] {
            let model = |n: usize| Model {
                id: format!("a-model-with-a-name-{n}"),
                ..Model::default()
            };
            let provider = Provider {
                name: "provider".into(),
                base_url: "http://p".into(),
                api_key_env: None,
                api_key: None,
                max_retries: 0,
                idle_timeout: crate::time::Duration::from_secs(1),
                models: (0..count).map(model).collect(),
            };
            let settings = Settings {
                providers: Vec::from([provider]),
                ..Settings::default()
            };
            let axes = Axes {
                model: format!("provider/a-model-with-a-name-{}", count - 1),
                effort: None,
                preset: Preset::default(),
                posture: Posture::Ask,
                mode: Mode::default(),
            };
            let options = list(&axes, &settings, PermissionMode::default(), &limits);
            let text = serde_json::to_string(&options).expect("JSON");
            assert!(text.len() < limits.max_out_frame * 3 / 4, "{}", text.len());
            assert!(text.contains("name-5\""));
            assert_eq!(
                text.matches("\"description\":\"provider\"").count() == count,
                all
            );
            let chosen = format!("\"value\":\"{}\"", axes.model);
            assert!(text.contains(&chosen), "what is set is offered");
        }
    }
}
