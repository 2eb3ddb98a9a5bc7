//! What a server asks the person (MCP, elicitation): whether it can be asked, and whether an answer
//! fits. Knows neither who asks nor how it is shown.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::shapes::Elicit;
use super::{Entry, address};
use crate::limits::Limits;

/// Longest schema, bytes: it goes to the client in one frame.
const MAX_FORM: usize = 32 << 10;

/// What a server asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// A form.
    Form {
        /// For the person, without control characters.
        message: String,
        /// The text of a flat JSON schema.
        schema: String,
    },
    /// A page to open.
    Page {
        /// For the person, without control characters.
        message: String,
        /// The page: an http or https address.
        url: String,
        /// What the server calls it.
        id: String,
    },
}

/// What the person answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A form filled in (members with the text of their values), or a page agreed to.
    Accept(BTreeMap<String, String>),
    /// Refused, or it could not be asked.
    Decline,
    /// Dismissed.
    Cancel,
}

impl Question {
    /// Reads `elicitation/create`; none if it can be asked of no person.
    pub(super) fn read(params: Option<&str>, limits: &Limits) -> Option<Self> {
        let asked: Elicit<'_> = serde_json::from_str(params?).ok()?;
        let message = message(&asked.message, limits.max_form_message);
        match asked.mode.as_deref() {
            None | Some("form") => {
                let schema = asked.requested_schema?.get();
                let fields = Fields::read(schema)?;
                if fields.properties.is_empty() {
                    return None;
                }
                let schema = schema.replace(['\n', '\r', '\t'], " ");
                Some(Self::Form { message, schema })
            }
            Some("url") => {
                // It is shown, and goes into one frame: whoever sees it must not see a login.
                let shows = |url: &String| {
                    let plain = address::is_http(url) && address::login(url).is_none();
                    plain && url.len() <= limits.max_url
                };
                let url = asked.url.filter(shows)?;
                let id = asked.elicitation_id.filter(|id| id.len() <= 256)?;
                Some(Self::Page { message, url, id })
            }
            Some(_) => None,
        }
    }

    /// The same without what must not be shown of the server that asks; none if it could not be
    /// answered then.
    pub(super) fn without(self, entry: &Entry) -> Option<Self> {
        let redacted = |mut text: String| {
            entry.redact(&mut text);
            text
        };
        match self {
            Self::Form { message, schema } => {
                let schema = redacted(schema);
                Fields::read(&schema)?;
                Some(Self::Form {
                    message: redacted(message),
                    schema,
                })
            }
            Self::Page { message, url, id } => {
                // An address that is another leads nowhere.
                let whole = redacted(url.clone()) == url && redacted(id.clone()) == id;
                whole.then(|| Self::Page {
                    message: redacted(message),
                    url,
                    id,
                })
            }
        }
    }

    /// The text of the content for the server, if the answer fits what was asked.
    pub(super) fn accepts(
        &self,
        values: &BTreeMap<String, String>,
        limits: &Limits,
    ) -> Option<String> {
        let Self::Form { schema, .. } = self else {
            return Some("{}".into());
        };
        let sizes = || values.values().map(String::len);
        if sizes().sum::<usize>() > limits.max_form_values
            || sizes().any(|size| size > limits.max_form_value)
        {
            return None;
        }
        let fields = Fields::read(schema)?;
        let fits = values.iter().all(|(name, value)| {
            fields
                .properties
                .get(name)
                .is_some_and(|field| field.takes(value))
        });
        let whole = fields.required.iter().all(|name| values.contains_key(name));
        if !fits || !whole {
            return None;
        }
        let raw: BTreeMap<&str, &RawValue> = values
            .iter()
            .map(|(name, value)| Some((name.as_str(), serde_json::from_str(value).ok()?)))
            .collect::<Option<_>>()?;
        serde_json::to_string(&raw).ok()
    }
}

/// The message for the person: at most `max` characters, and if there are more it says so, since what
/// is agreed to may stand there.
fn message(text: &str, max: usize) -> String {
    let mut message = String::from("MCP server asks: ");
    let plain = |c: char| c == '\n' || !c.is_control();
    message.extend(text.chars().filter(|c| plain(*c)));
    let over = message.chars().count().saturating_sub(max);
    if over == 0 {
        return message;
    }
    // What the note itself takes is missing too: its number has as many digits then, or one more.
    let room =
        format!("{}", over + 100).len() + "… [ more characters are not shown]".chars().count();
    let kept: String = message.chars().take(max.saturating_sub(room)).collect();
    let more = message.chars().count() - kept.chars().count();
    format!("{kept}… [{more} more characters are not shown]")
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, rename = "title")]
    _title: Option<String>,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(borrow)]
    properties: BTreeMap<String, Field<'a>>,
    #[serde(default)]
    required: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Field<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, borrow)]
    default: Option<&'a RawValue>,
    // Read so that a form which no client takes is not sent to one.
    #[serde(default, rename = "title")]
    _title: Option<String>,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default, rename = "pattern")]
    _pattern: Option<String>,
    #[serde(default)]
    format: Option<String>,
    #[serde(default, rename = "minLength")]
    _min_length: Option<u32>,
    #[serde(default, rename = "maxLength")]
    _max_length: Option<u32>,
    #[serde(default, rename = "minItems")]
    _min_items: Option<u64>,
    #[serde(default, rename = "maxItems")]
    _max_items: Option<u64>,
    #[serde(default)]
    minimum: Option<f64>,
    #[serde(default)]
    maximum: Option<f64>,
    #[serde(default, rename = "enum")]
    choices: Option<Vec<String>>,
    #[serde(default, rename = "oneOf")]
    one_of: Option<Vec<Choice>>,
    #[serde(default)]
    items: Option<Items>,
}

#[derive(Deserialize)]
struct Items {
    #[serde(default, rename = "enum")]
    choices: Option<Vec<String>>,
    #[serde(default, rename = "anyOf")]
    any_of: Option<Vec<Choice>>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(rename = "const")]
    value: String,
    #[serde(rename = "title")]
    _title: String,
}

impl<'a> Fields<'a> {
    fn read(schema: &'a str) -> Option<Self> {
        if schema.len() > MAX_FORM {
            return None;
        }
        let fields: Self = serde_json::from_str(schema).ok()?;
        let flat = |field: &Field<'_>| match field.kind.as_str() {
            "integer" => field.whole_bounds(),
            "string" => field
                .format
                .as_deref()
                .is_none_or(|it| FORMATS.contains(&it)),
            "number" | "boolean" => true,
            "array" => field
                .items
                .as_ref()
                .is_some_and(|items| items.values().is_some()),
            _ => false,
        };
        let sound =
            |field: &Field<'_>| flat(field) && field.default.is_none_or(|it| field.typed(it.get()));
        (fields.kind == "object" && fields.properties.values().all(sound)).then_some(fields)
    }
}

impl Items {
    fn values(&self) -> Option<Vec<&str>> {
        either(self.choices.as_ref(), self.any_of.as_ref())
    }
}

/// The formats of texts that there are.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

impl Field<'_> {
    /// Bounds of whole numbers are whole.
    fn whole_bounds(&self) -> bool {
        let bounds = [self.minimum, self.maximum];
        bounds.iter().flatten().all(|bound| bound % 1.0 == 0.0)
    }

    /// Whether the text of a value is of this kind, among the choices or not.
    fn typed(&self, value: &str) -> bool {
        match self.kind.as_str() {
            "string" => serde_json::from_str::<String>(value).is_ok(),
            "array" => serde_json::from_str::<Vec<String>>(value).is_ok(),
            _ => self.takes(value),
        }
    }

    /// Whether the text of a value is one of this field.
    fn takes(&self, value: &str) -> bool {
        match self.kind.as_str() {
            "string" => serde_json::from_str::<String>(value).is_ok_and(|text| {
                either(self.choices.as_ref(), self.one_of.as_ref())
                    .is_none_or(|known| known.contains(&text.as_str()))
            }),
            "boolean" => serde_json::from_str::<bool>(value).is_ok(),
            "integer" => {
                serde_json::from_str::<i64>(value).is_ok()
                    || serde_json::from_str::<f64>(value).is_ok_and(|n| n % 1.0 == 0.0)
            }
            "number" => serde_json::from_str::<f64>(value).is_ok(),
            "array" => {
                let known = self
                    .items
                    .as_ref()
                    .and_then(Items::values)
                    .unwrap_or_default();
                serde_json::from_str::<Vec<String>>(value)
                    .is_ok_and(|all| all.iter().all(|one| known.contains(&one.as_str())))
            }
            _ => false,
        }
    }
}

fn either<'a>(
    plain: Option<&'a Vec<String>>,
    titled: Option<&'a Vec<Choice>>,
) -> Option<Vec<&'a str>> {
    match (plain, titled) {
        (Some(plain), _) => Some(plain.iter().map(String::as_str).collect()),
        (None, Some(titled)) => Some(titled.iter().map(|choice| choice.value.as_str()).collect()),
        (None, None) => None,
    }
}

/// The text of one line for a log: that a question was asked, never what was answered.
pub(super) fn receipt(reply: &Reply) -> String {
    let what = match reply {
        Reply::Accept(_) => "accepted",
        Reply::Decline => "declined",
        Reply::Cancel => "dismissed",
    };
    format!("a question of the server was {what}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn what_no_person_can_be_asked_is_not_asked() {
        for (params, asked) in [
            (
                r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}"#,
                true,
            ),
            (
                r#"{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}"#,
                false,
            ),
            (
                r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}"#,
                false,
            ),
            (
                r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"array"}}}}"#,
                false,
            ),
            (
                r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","minLength":"x"}}}}"#,
                false,
            ),
            (
                r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"integer","default":"x"}}}}"#,
                false,
            ),
            (
                r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"integer","default":3,"minimum":1}}}}"#,
                true,
            ),
            (r#"{"message":"m"}"#, false),
            (
                r#"{"mode":"url","message":"m","url":"https://h/x","elicitationId":"e"}"#,
                true,
            ),
            (
                r#"{"mode":"url","message":"m","url":"file:///x","elicitationId":"e"}"#,
                false,
            ),
            (r#"{"mode":"url","message":"m","url":"https://h/x"}"#, false),
            (r#"{"mode":"voice","message":"m"}"#, false),
        ] {
            let read = Question::read(Some(params), &Limits::default());
            assert_eq!(read.is_some(), asked, "{params}");
        }
        let page = |url: &str| {
            let params =
                format!(r#"{{"mode":"url","message":"m","url":"{url}","elicitationId":"e"}}"#);
            Question::read(Some(&params), &Limits::default()).is_some()
        };
        let long = |bytes: usize| format!("https://h/{}", "x".repeat(bytes - 10));
        assert!(page(&long(Limits::default().max_url)));
        assert!(!page(&long(Limits::default().max_url + 1)));
        assert!(!page("https://me:pw@h/x") && !page("https://me@h/x"));
        let max = Limits::default().max_form_message;
        assert_eq!(max, 4000);
        assert_eq!(message("a\u{7}b\nc", max), "MCP server asks: ab\nc");
        let prefix = "MCP server asks: ".len();
        let whole = message(&"é".repeat(max - prefix), max);
        assert!(whole.ends_with("éé") && whole.chars().count() == max);
        for long in [max - prefix + 1, 5000, 99_999] {
            let cut = message(&"é".repeat(long), max);
            assert!(cut.chars().count() <= max && cut.chars().count() > max - 3);
            let kept = cut.chars().filter(|c| *c == 'é').count();
            let note = format!("é… [{} more characters are not shown]", long - kept);
            assert!(cut.ends_with(&note), "{}", &cut[cut.len() - 60..]);
        }
    }

    #[test]
    fn one_value_that_does_not_fit_declines_the_whole_form() {
        let question = Question::Form {
            message: String::new(),
            schema: r#"{"type":"object","required":["s"],"properties":{"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},"e":{"type":"string","enum":["x","y"]},"o":{"type":"string","oneOf":[{"const":"p","title":"P"}]},"m":{"type":"array","items":{"enum":["u","v"]}}}}"#.into(),
        };
        for (name, value, fits) in [
            ("s", "\"\"", true),
            ("s", "1", false),
            ("i", "3", true),
            ("i", "3.5", false),
            ("n", "3.5", true),
            ("b", "true", true),
            ("b", "\"true\"", false),
            ("e", "\"x\"", true),
            ("e", "\"z\"", false),
            ("o", "\"p\"", true),
            ("o", "\"P\"", false),
            ("m", "[\"u\",\"v\"]", true),
            ("m", "[\"w\"]", false),
            ("m", "\"u\"", false),
            ("unknown", "1", false),
        ] {
            let mut values = BTreeMap::from([(String::from("s"), String::from("\"a\""))]);
            values.insert(name.into(), value.into());
            let limits = Limits::default();
            let taken = question.accepts(&values, &limits);
            assert_eq!(taken.is_some(), fits, "{name} {value}");
        }
        let limits = Limits::default();
        assert_eq!(question.accepts(&BTreeMap::new(), &limits), None);
        // One value, and all of them, as long as forms of the agent's own take them.
        let list = |bytes: usize| {
            let words = vec!["\"u\""; bytes / 4].join(",");
            BTreeMap::from([
                (String::from("s"), String::from("\"a\"")),
                (String::from("m"), format!("[{words}]")),
            ])
        };
        assert!(
            question
                .accepts(&list(limits.max_form_value - 8), &limits)
                .is_some()
        );
        assert_eq!(
            question.accepts(&list(limits.max_form_value + 8), &limits),
            None
        );
        let small = Limits {
            max_form_values: 1000,
            ..Limits::default()
        };
        assert_eq!(question.accepts(&list(1000), &small), None);
    }
}
