//! The tools of a server as a model is told of them: names made legal, unique and stable, schemas
//! passed on as they are or repaired. Knows no transport and no state.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::shapes::RawTool;
use crate::limits::Limits;
use crate::wire::text::cut;

/// Longest name of a tool, as providers allow it.
const MAX_NAME: usize = 64;

/// Longest name of a server within that.
const MAX_SERVER: usize = 32;

/// Longest description that a model is told, bytes.
const MAX_DESCRIPTION: usize = 4 << 10;

/// What a server without a schema for its tool means.
const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// A tool of a server. Its texts are shared: who passes them on copies none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// Its name for the model: `server__tool`, at most 64 of `A-Z a-z 0-9 _ -`.
    pub name: Arc<str>,
    /// For the model.
    pub description: Arc<str>,
    /// The text of a JSON schema, on one line.
    pub parameters: Arc<str>,
    /// What it is at the server.
    pub(super) what: What,
}

impl Tool {
    /// What a model is told of it, bytes.
    pub(super) fn size(&self) -> usize {
        self.name.len() + self.description.len() + self.parameters.len()
    }
}

/// What a tool is at its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A tool of this name.
    Tool(String),
    /// Its resources, listed or read.
    Resources,
}

/// Pages of tools that are still coming in.
#[derive(Debug, Default)]
pub(super) struct Pages {
    tools: Vec<Raw>,
    names: BTreeSet<String>,
    cursors: BTreeSet<String>,
    bytes: usize,
    /// Why something was left out.
    pub notices: Vec<String>,
}

#[derive(Debug)]
struct Raw {
    name: String,
    description: String,
    parameters: String,
}

impl Pages {
    /// Takes one tool; what cannot be offered is left out with a notice.
    pub fn take(&mut self, text: &str, limits: &Limits) {
        if self.tools.len() >= limits.max_mcp_tools {
            return self.notice("it has more tools than can be offered");
        }
        let Ok(tool) = serde_json::from_str::<RawTool<'_>>(text) else {
            return self.notice("a tool without a readable name is left out");
        };
        if tool.name.trim().is_empty() {
            return self.notice("a tool with an empty name is left out");
        }
        let shown = one_line(&tool.name, 80);
        let Some(parameters) = schema(tool.input_schema) else {
            return self.notice(&format!("{shown} is left out: its schema is no object"));
        };
        let description = tool.description.or(tool.title).unwrap_or_default();
        let description = String::from(cut(&description, MAX_DESCRIPTION));
        let bytes = tool.name.len() + description.len() + parameters.len();
        if parameters.len() > limits.max_mcp_schema
            || self.bytes.saturating_add(bytes) > limits.max_mcp_catalogue
        {
            return self.notice(&format!("{shown} is left out: it is too long"));
        }
        if !self.names.insert(tool.name.clone()) {
            return self.notice(&format!("{shown} is listed twice"));
        }
        self.bytes += bytes;
        self.tools.push(Raw {
            name: tool.name,
            description,
            parameters,
        });
    }

    /// Whether a page with this cursor is to be asked for: a cursor that repeats ends the list.
    pub fn follow(&mut self, cursor: &str, limits: &Limits) -> bool {
        if self.cursors.len() >= limits.max_mcp_pages || cursor.len() > limits.max_mcp_schema {
            self.notice("it has more pages of tools than are read");
            return false;
        }
        if !self.cursors.insert(cursor.into()) {
            self.notice("a cursor of its list of tools repeats: the list ends there");
            return false;
        }
        true
    }

    /// The tools of the server that is known by `slug`, and its resources if it has any.
    pub fn finish(self, slug: &str, resources: bool) -> Vec<Tool> {
        let names = exposed(slug, &self.tools);
        let mut tools: Vec<Tool> = self
            .tools
            .into_iter()
            .zip(names)
            .map(|(tool, name)| Tool {
                name: name.into(),
                description: tool.description.into(),
                parameters: tool.parameters.into(),
                what: What::Tool(tool.name),
            })
            .collect();
        // A server may call a tool what the mark of another makes it.
        let mut taken = BTreeSet::new();
        tools.retain(|tool| taken.insert(tool.name.clone()));
        let name = format!("{slug}__read_resource");
        if resources && tools.iter().all(|tool| *tool.name != name) {
            tools.push(Tool {
                name: name.into(),
                description: "Reads a resource of this server; without `uri` lists them.".into(),
                parameters: r#"{"type":"object","properties":{"uri":{"type":"string"}}}"#.into(),
                what: What::Resources,
            });
        }
        tools
    }

    fn notice(&mut self, why: &str) {
        if self.notices.len() < 16 && !self.notices.iter().any(|notice| notice == why) {
            self.notices.push(why.into());
        }
    }
}

/// The names of servers as they stand before `__`: legal, without `__`, each once.
pub(super) fn slugs<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    names
        .map(|name| {
            let plain = slug(name);
            let mut found = plain.clone();
            let mut number = 2;
            while !taken.insert(found.clone()) {
                let tail = format!("_{number}");
                let head = cut(&plain, MAX_SERVER - tail.len()).trim_end_matches('_');
                found = format!("{head}{tail}");
                number += 1;
            }
            found
        })
        .collect()
}

fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in legal(name).chars() {
        // So that the first `__` of a name is the one behind the server's.
        if c != '_' || !slug.ends_with('_') {
            slug.push(c);
        }
    }
    let slug = cut(slug.trim_matches('_'), MAX_SERVER).trim_end_matches('_');
    String::from(if slug.is_empty() { "server" } else { slug })
}

fn legal(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

/// Names for the tools of one server. A legal name that fits stays as it is; of those that had to
/// be changed, one that another has too gets a mark made from what it really is, so that the order
/// of the list does not matter.
fn exposed(slug: &str, tools: &[Raw]) -> Vec<String> {
    let room = MAX_NAME - slug.len() - 2;
    let plain = |name: &str| String::from(cut(&legal(name), room));
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for tool in tools {
        *count.entry(plain(&tool.name)).or_default() += 1;
    }
    tools
        .iter()
        .map(|tool| {
            let short = plain(&tool.name);
            let mark = if short == tool.name {
                None
            } else if short.len() < tool.name.chars().count() || count[&short] > 1 {
                Some(format!("_{:08x}", digest(&tool.name)))
            } else {
                None
            };
            match mark {
                Some(mark) => format!("{slug}__{}{mark}", cut(&short, room - mark.len())),
                None => format!("{slug}__{short}"),
            }
        })
        .collect()
}

/// FNV-1a, folded: names are told apart, nothing is protected.
fn digest(name: &str) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash ^ (hash >> 32)) as u32
}

/// The schema of a tool's parameters: as it is, or with its type; none if it can be no object.
fn schema(raw: Option<&RawValue>) -> Option<String> {
    let Some(text) = raw.map(RawValue::get).filter(|text| *text != "null") else {
        return Some(NO_PARAMETERS.into());
    };
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    // Line ends between members; in strings they are escaped.
    let text = text.replace(['\n', '\r', '\t'], " ");
    match members.get("type").map(|value| value.get()) {
        Some("\"object\"") => Some(text),
        Some(other) if other.contains("\"object\"") => Some(text),
        Some(_) => None,
        None if members.is_empty() => Some(NO_PARAMETERS.into()),
        None => Some(format!(
            "{{\"type\":\"object\",{}",
            text.trim_start().strip_prefix('{')?
        )),
    }
}

/// `text` on one line, at most `max` bytes.
pub(super) fn one_line(text: &str, max: usize) -> String {
    cut(text.trim(), max).replace(crate::shown::deceives, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(slug: &str, texts: &[&str]) -> (Vec<Tool>, Vec<String>) {
        let mut pages = Pages::default();
        for text in texts {
            pages.take(text, &Limits::default());
        }
        let notices = pages.notices.clone();
        (pages.finish(slug, false), notices)
    }

    #[test]
    fn servers_have_names_of_their_own() {
        let long = "x".repeat(200);
        // Cut for its number right behind a `_`.
        let split = format!("{}_zz", "y".repeat(29));
        let names = [
            "docs",
            "docs",
            "a b__c",
            "",
            "..",
            "é",
            long.as_str(),
            long.as_str(),
            split.as_str(),
            split.as_str(),
        ];
        let slugs = slugs(names.into_iter());
        assert_eq!(
            slugs[..6],
            ["docs", "docs_2", "a_b_c", "server", "server_2", "server_3"]
        );
        assert!(
            slugs
                .iter()
                .all(|slug| slug.len() <= 32 && !slug.contains("__"))
        );
        assert_eq!(slugs.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn names_of_tools_do_not_depend_on_their_order() {
        let listed = [
            r#"{"name":"a.b"}"#,
            r#"{"name":"a/b"}"#,
            r#"{"name":"a_b"}"#,
            r#"{"name":"c.d"}"#,
        ];
        let (one, _) = tools("s", &listed);
        let mut turned = listed;
        turned.reverse();
        let (other, _) = tools("s", &turned);
        let name = |tools: &[Tool], what: &str| {
            let what = What::Tool(what.into());
            tools
                .iter()
                .find(|tool| tool.what == what)
                .unwrap()
                .name
                .clone()
        };
        for what in ["a.b", "a/b", "a_b", "c.d"] {
            assert_eq!(name(&one, what), name(&other, what));
        }
        assert_eq!(*name(&one, "a_b"), *"s__a_b");
        assert_eq!(*name(&one, "c.d"), *"s__c_d");
        let unique: BTreeSet<_> = one.iter().map(|tool| &tool.name).collect();
        assert_eq!(unique.len(), 4);
    }

    #[test]
    fn names_are_legal_whatever_a_server_calls_its_tools() {
        let long = format!(r#"{{"name":"{}"}}"#, "y".repeat(200));
        let longer = format!(r#"{{"name":"{}z"}}"#, "y".repeat(200));
        let slug = "s".repeat(32);
        let listed = [
            long.as_str(),
            &longer,
            r#"{"name":""}"#,
            r#"{"nome":"x"}"#,
            "7",
        ];
        let (tools, notices) = tools(&slug, &listed);
        assert_eq!(tools.len(), 2);
        assert_ne!(tools[0].name, tools[1].name);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        for tool in &tools {
            assert!(
                tool.name.len() <= 64 && tool.name.chars().all(plain),
                "{}",
                tool.name
            );
        }
        assert_eq!(notices.len(), 2);
    }

    #[test]
    fn schemas_are_passed_on_as_they_are_or_repaired() {
        let check = |schema: &str, expected: Option<&str>| {
            let text = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
            let (tools, _) = tools("s", &[text.as_str()]);
            let found = tools.first().map(|tool| &*tool.parameters);
            assert_eq!(found, expected, "{schema}");
        };
        let whole = r#"{"type":"object","z":1,"properties":{"b":{},"a":{}},"$defs":{}}"#;
        check(whole, Some(whole));
        check("null", Some(NO_PARAMETERS));
        check("{}", Some(NO_PARAMETERS));
        check(
            r#"{"properties":{}}"#,
            Some(r#"{"type":"object","properties":{}}"#),
        );
        check(r#"{"type":"string"}"#, None);
        check("[]", None);
        check("true", None);
    }

    #[test]
    fn a_list_without_an_end_is_ended() {
        let limits = Limits::default();
        let mut pages = Pages::default();
        assert!(pages.follow("", &limits));
        assert!(pages.follow("a", &limits));
        assert!(!pages.follow("", &limits));
        let mut pages = Pages::default();
        let followed = (0..10_000).filter(|n| pages.follow(&format!("{n}"), &limits));
        assert_eq!(followed.count(), limits.max_mcp_pages);
        let mut pages = Pages::default();
        for n in 0..10_000 {
            pages.take(&format!(r#"{{"name":"t{n}"}}"#), &limits);
        }
        assert_eq!(pages.finish("s", true).len(), limits.max_mcp_tools + 1);
    }
}
