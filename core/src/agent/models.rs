//! Which model answers: names, what they mean in the configuration, and why one cannot be used.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::model::Endpoint;
use crate::settings::{Model, Provider, Settings};

/// Keys of the environment that are pointed out; more are passed over.
const MOST_KEYS: usize = 4;

/// The value of the `model` option for the scripted model.
pub const SCRIPT: &str = "script";

/// One configured model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<'a> {
    /// Its provider.
    pub provider: &'a Provider,
    /// The model.
    pub model: &'a Model,
}

impl Choice<'_> {
    /// `provider/model`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider.name, self.model.id)
    }

    /// Where its requests go.
    pub fn endpoint(&self, effort: Option<&str>) -> Endpoint {
        Endpoint::new(self.provider, self.model, effort)
    }
}

/// Every configured model, in the order of the file.
pub fn all(settings: &Settings) -> impl Iterator<Item = Choice<'_>> {
    settings.providers.iter().flat_map(|provider| {
        provider
            .models
            .iter()
            .map(move |model| Choice { provider, model })
    })
}

/// The model that `name` means: `provider/model`, or an id or alias that only one has. The error is
/// for people and lists what there is.
pub fn find<'a>(settings: &'a Settings, name: &str) -> Result<Choice<'a>, String> {
    if let Some(exact) = all(settings).find(|choice| choice.name() == name) {
        return Ok(exact);
    }
    let named: Vec<_> = all(settings)
        .filter(|choice| choice.model.id == name || choice.model.alias.as_deref() == Some(name))
        .collect();
    match named.as_slice() {
        [one] => Ok(*one),
        [] => Err(format!("no model `{name}`; {}", list(settings))),
        [_, _, ..] => Err(format!(
            "more than one model `{name}`: {}",
            named
                .iter()
                .map(Choice::name)
                .collect::<Vec<_>>()
                .join(", ")
        )),
    }
}

/// The model a session starts with: the one that was asked for, else the configured default, else
/// the only or first one.
pub fn default<'a>(settings: &'a Settings, asked: Option<&str>) -> Result<Choice<'a>, String> {
    match asked.or(settings.default_model.as_deref()) {
        Some(name) => find(settings, name),
        None => all(settings).next().ok_or_else(|| {
            format!(
                "no model is configured: run `reasonix setup`.{}",
                unused(settings)
            )
        }),
    }
}

/// What can be done with keys that stand in the environment while nothing is configured.
fn unused(settings: &Settings) -> String {
    let mut text = String::new();
    for name in settings.unused_keys.iter().take(MOST_KEYS) {
        text.push_str(&format!(
            " A {name} in the environment is not used: {}.",
            take_over(name)
        ));
    }
    text
}

/// How a key is taken over from the environment. Names of keys are made of those of providers.
fn take_over(name: &str) -> String {
    let provider = name.strip_suffix("_API_KEY").unwrap_or_default();
    let provider = match provider {
        "" => String::new(),
        provider => format!(
            " --provider {}",
            provider.to_ascii_lowercase().replace('_', "-")
        ),
    };
    format!("take it over with `reasonix setup --from-env {name}{provider}`")
}

/// What to do so that the model can be used; none: it can.
pub fn how_to(settings: &Settings, provider: &Provider) -> Option<String> {
    if provider.usable() {
        return None;
    }
    let name = provider.api_key_env.as_deref().unwrap_or_default();
    let mut text = format!(
        "No key for {}: {name} is not in the .env file of the agent's home. Run `reasonix setup`.",
        provider.name
    );
    if settings.unused_keys.iter().any(|key| key == name) {
        text.push_str(&format!(
            " A {name} in the environment is not used: take it over with `reasonix setup \
             --from-env {name} --provider {}`.",
            provider.name
        ));
    }
    Some(text)
}

fn list(settings: &Settings) -> String {
    let names: Vec<_> = all(settings).map(|choice| choice.name()).collect();
    if names.is_empty() {
        "none is configured: run `reasonix setup`".into()
    } else {
        format!("there are: {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use core::time::Duration;

    fn settings() -> Settings {
        let model = |id: &str, alias: Option<&str>| Model {
            id: id.into(),
            alias: alias.map(Into::into),
            ..Model::default()
        };
        let provider = |name: &str, models| Provider {
            name: name.into(),
            base_url: "http://127.0.0.1".into(),
            api_key_env: Some("KEY".into()),
            api_key: None,
            max_retries: 0,
            idle_timeout: Duration::from_secs(1),
            models,
        };
        Settings {
            providers: vec![
                provider("a", vec![model("x", Some("fast")), model("y", None)]),
                provider("b", vec![model("y", None)]),
            ],
            unused_keys: vec!["KEY".into()],
            ..Settings::default()
        }
    }

    #[track_caller]
    fn check(name: &str, expected: Result<&str, &str>) {
        let settings = settings();
        match (find(&settings, name), expected) {
            (Ok(choice), Ok(expected)) => assert_eq!(choice.name(), expected),
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (got, _) => panic!("{name}: {got:?}"),
        }
    }

    #[test]
    fn a_model_is_named_by_provider_and_id_or_by_what_only_it_has() {
        check("a/x", Ok("a/x"));
        check("x", Ok("a/x"));
        check("fast", Ok("a/x"));
        check("b/y", Ok("b/y"));
        check("y", Err("more than one model `y`: a/y, b/y"));
        check("z", Err("there are: a/x, a/y, b/y"));
    }

    #[test]
    fn a_key_in_the_environment_is_pointed_out_and_not_used() {
        let settings = settings();
        let text = how_to(&settings, &settings.providers[0]).expect("no key is there");
        assert!(
            text.contains("`reasonix setup --from-env KEY --provider a`"),
            "{text}"
        );
        // Also where nothing is configured yet, which is what it is for.
        let keys = ["DEEPSEEK_API_KEY", "FIREWORKS_AI_API_KEY", "KEY"].map(String::from);
        let nothing = Settings {
            unused_keys: keys.into(),
            ..Settings::default()
        };
        let text = default(&nothing, None).expect_err("there is no model");
        for command in [
            "`reasonix setup --from-env DEEPSEEK_API_KEY --provider deepseek`.",
            "`reasonix setup --from-env FIREWORKS_AI_API_KEY --provider fireworks-ai`.",
            "`reasonix setup --from-env KEY`.",
        ] {
            assert!(text.contains(command), "{text}");
        }
        assert!(
            !default(&Settings::default(), None)
                .expect_err("none")
                .contains("--from-env")
        );
    }
}
