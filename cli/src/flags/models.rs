//! Which model a name means. Knows the settings, reads nothing.

use std::fmt::Write as _;

use reasonix_core::settings::{Model, Provider, Settings};

/// `provider/model` for what was asked: `provider/model`, or an id or alias that only one
/// provider has. The error is for people and lists what there is.
pub fn resolve(settings: &Settings, asked: &str) -> Result<String, String> {
    let all = || {
        settings
            .providers
            .iter()
            .flat_map(|p| p.models.iter().map(move |m| (p, m)))
    };
    if let Some((provider, model)) = all().find(|(p, m)| full_name(p, m) == asked) {
        return Ok(full_name(provider, model));
    }
    let mut hits = all().filter(|(p, m)| names(p, m, asked));
    match (hits.next(), hits.next()) {
        (Some((provider, model)), None) => Ok(full_name(provider, model)),
        (Some(_), Some(_)) => Err(format!(
            "more than one provider has a model `{asked}`; say which{}",
            list(settings)
        )),
        (None, _) => Err(format!("there is no model `{asked}`{}", list(settings))),
    }
}

/// What can be chosen, one a line, for the end of an error.
pub fn list(settings: &Settings) -> String {
    let mut out = String::new();
    for provider in &settings.providers {
        for model in &provider.models {
            let _ = write!(out, "\n  {}", full_name(provider, model));
            if let Some(alias) = &model.alias {
                let _ = write!(out, " ({alias})");
            }
        }
    }
    if out.is_empty() {
        ": none is configured; run `reasonix setup`, or give script:FILE".into()
    } else {
        format!(". Configured are:{out}\n  script:FILE")
    }
}

fn full_name(provider: &Provider, model: &Model) -> String {
    format!("{}/{}", provider.name, model.id)
}

/// Whether `asked` is the id or the alias of the model, alone or behind the provider's name.
fn names(provider: &Provider, model: &Model, asked: &str) -> bool {
    let is = |name: &str| model.id == name || model.alias.as_deref() == Some(name);
    is(asked)
        || asked
            .strip_prefix(provider.name.as_str())
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let provider = |name: &str, models: &[(&str, Option<&str>)]| Provider {
            name: name.into(),
            base_url: "http://127.0.0.1".into(),
            api_key_env: None,
            api_key: None,
            max_retries: 0,
            idle_timeout: std::time::Duration::from_secs(1),
            models: models
                .iter()
                .map(|(id, alias)| Model {
                    id: (*id).into(),
                    alias: alias.map(Into::into),
                    ..Model::default()
                })
                .collect(),
        };
        Settings {
            providers: vec![
                provider("one", &[("big", Some("pro")), ("shared", None)]),
                provider("two", &[("shared", None), ("org/small", None)]),
            ],
            ..Settings::default()
        }
    }

    #[track_caller]
    fn check(asked: &str, wanted: Result<&str, &str>) {
        let got = resolve(&settings(), asked);
        match (got, wanted) {
            (Ok(got), Ok(wanted)) => assert_eq!(got, wanted),
            (Err(got), Err(wanted)) => {
                assert!(got.contains(wanted), "{got}");
                assert!(got.contains("one/big (pro)"), "the list is missing: {got}");
            }
            (got, wanted) => panic!("{asked}: {got:?}, not {wanted:?}"),
        }
    }

    #[test]
    fn names_that_are_unique_are_enough() {
        check("one/big", Ok("one/big"));
        check("big", Ok("one/big"));
        check("pro", Ok("one/big"));
        check("one/pro", Ok("one/big"));
        check("org/small", Ok("two/org/small"));
        check("two/org/small", Ok("two/org/small"));
        check("two/shared", Ok("two/shared"));
    }

    #[test]
    fn other_names_are_refused_with_the_list() {
        check("shared", Err("more than one"));
        check("two/big", Err("no model `two/big`"));
        check("", Err("no model"));
    }

    #[test]
    fn an_empty_configuration_says_what_to_do() {
        let error = resolve(&Settings::default(), "x").expect_err("none");
        assert!(error.contains("reasonix setup"), "{error}");
    }
}
