//! The tools of a server as they are kept for another time, so that they can be offered before it is
//! up. Pure: a text for tools, tools for a text, which is believed no more than the server itself.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::Entry;
use super::catalogue::{Pages, Tool, What};
use crate::limits::Limits;

/// The version of the text; others are passed over.
const SCHEMA_VERSION: u32 = 1;

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept<'a> {
    schema_version: u32,
    resources: bool,
    /// As a server lists them.
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
}

/// The text for these tools; none if it would be too long, or hold what must not be shown.
pub(super) fn write(tools: &[Tool], entry: &Entry, limits: &Limits) -> Option<Vec<u8>> {
    let mut listed: Vec<String> = Vec::new();
    let mut resources = false;
    for tool in tools {
        match &tool.what {
            What::Tool(name) => {
                let one = Listed {
                    name,
                    description: &tool.description,
                    input_schema: serde_json::from_str(&tool.parameters).ok()?,
                };
                listed.push(serde_json::to_string(&one).ok()?);
            }
            What::Resources => resources = true,
        }
    }
    let all: Result<Vec<&RawValue>, _> = listed.iter().map(|it| serde_json::from_str(it)).collect();
    let kept = Kept {
        schema_version: SCHEMA_VERSION,
        resources,
        tools: all.ok()?,
    };
    let text = serde_json::to_string(&kept).ok()?;
    let mut shown = text.clone();
    entry.redact(&mut shown);
    (shown == text && text.len() <= most(limits)).then(|| text.into_bytes())
}

/// The tools that such a text is about, by their names for the model; none if it is no such text.
pub(super) fn read(bytes: &[u8], slug: &str, limits: &Limits) -> Option<Vec<Tool>> {
    if bytes.len() > most(limits) {
        return None;
    }
    let kept: Kept<'_> = serde_json::from_slice(bytes).ok()?;
    if kept.schema_version != SCHEMA_VERSION {
        return None;
    }
    let mut pages = Pages::default();
    for tool in kept.tools {
        pages.take(tool.get(), limits);
    }
    Some(pages.finish(slug, kept.resources))
}

/// Tells texts apart.
pub(super) fn mark(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn most(limits: &Limits) -> usize {
    limits.max_mcp_catalogue * 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::Way;
    use crate::secret::Secret;
    use alloc::format;

    fn entry(secret: &str) -> Entry {
        let way = Way::Stdio {
            command: "x".into(),
            args: Vec::new(),
            env: Vec::from([("KEY".into(), Secret::new("KEY", secret))]),
        };
        Entry::new("a", way).unwrap()
    }

    fn tools(texts: &[&str]) -> Vec<Tool> {
        let mut pages = Pages::default();
        for text in texts {
            pages.take(text, &Limits::default());
        }
        pages.finish("one", true)
    }

    const ECHO: &str = r#"{"name":"e.cho","description":"says \"it\"","inputSchema":{"type":"object","z":1,"a":{}}}"#;

    #[test]
    fn tools_come_back_as_they_were_under_the_name_of_their_server() {
        let limits = Limits::default();
        let kept = write(&tools(&[ECHO]), &entry("very-secret"), &limits).unwrap();
        assert_eq!(read(&kept, "one", &limits).unwrap(), tools(&[ECHO]));
        let names = |slug: &str| -> Vec<String> {
            let found = read(&kept, slug, &limits).unwrap();
            found.iter().map(|tool| String::from(&*tool.name)).collect()
        };
        assert_eq!(names("two"), ["two__e_cho", "two__read_resource"]);
    }

    #[test]
    fn a_text_that_is_not_ours_too_long_or_of_another_version_is_passed_over() {
        let limits = Limits::default();
        for bad in [
            "",
            "x",
            "[]",
            "{}",
            r#"{"schemaVersion":2,"resources":false,"tools":[]}"#,
            r#"{"schemaVersion":1,"resources":false,"tools":7}"#,
        ] {
            assert_eq!(read(bad.as_bytes(), "s", &limits), None, "{bad}");
        }
        let odd = r#"{"schemaVersion":1,"resources":false,"tools":[7,{"name":""},{"name":"a"}]}"#;
        assert_eq!(read(odd.as_bytes(), "s", &limits).unwrap().len(), 1);
        let small = Limits {
            max_mcp_catalogue: 16,
            ..Limits::default()
        };
        let kept = write(&tools(&[ECHO]), &entry("very-secret"), &limits).unwrap();
        assert_eq!(read(&kept, "s", &small), None);
        assert_eq!(write(&tools(&[ECHO]), &entry("very-secret"), &small), None);
    }

    #[test]
    fn what_holds_a_secret_of_the_server_is_not_kept() {
        let text = format!(r#"{{"name":"t","description":"{}"}}"#, "very-secret");
        let limits = Limits::default();
        assert_eq!(
            write(&tools(&[&text]), &entry("very-secret"), &limits),
            None
        );
        assert!(write(&tools(&[&text]), &entry("another-one"), &limits).is_some());
    }
}
