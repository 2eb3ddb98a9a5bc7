//! What a tool or resource of a server answered, as one text for a model. Knows no bounds but that
//! of a message: who shows the text cuts it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::shapes::{Contents, Part, ResourceAnswer, ResourcePage, ToolAnswer};

/// The answer to `tools/call`; `Err` is a failed tool.
pub(super) fn tool(text: &str) -> Result<String, String> {
    // An array would be taken for the members in order.
    let object = text.trim_start().starts_with('{');
    let answer = serde_json::from_str::<ToolAnswer<'_>>(text).ok();
    let Some(answer) = answer.filter(|_| object) else {
        return Err("the server's answer is not one that tools/call can have".into());
    };
    let mut parts: Vec<String> = Vec::new();
    let mut told = false;
    for part in &answer.content {
        match serde_json::from_str::<Part>(part.get()) {
            Ok(part) => {
                told |= part.kind == "text";
                parts.push(part_text(part));
            }
            Err(_) => parts.push("[a part that cannot be read]".into()),
        }
    }
    // Servers repeat as text what is structured; those that do not must not be silent.
    if let (false, Some(data)) = (told, answer.structured_content) {
        parts.push(data.to_string());
    }
    let failed = answer.is_error == Some(true);
    let mut text = parts.join("\n");
    if text.trim().is_empty() {
        text = if failed {
            "The tool failed and did not say why.".into()
        } else {
            "(no output)".into()
        };
    }
    if failed { Err(text) } else { Ok(text) }
}

/// The answer to `resources/read`.
pub(super) fn resource(text: &str) -> Result<String, String> {
    let Ok(answer) = serde_json::from_str::<ResourceAnswer>(text) else {
        return Err("the server's answer is not one that resources/read can have".into());
    };
    let parts: Vec<String> = answer.contents.into_iter().map(contents).collect();
    Ok(if parts.is_empty() {
        "(empty)".into()
    } else {
        parts.join("\n")
    })
}

/// The answer to `resources/list`: a line each.
pub(super) fn resources(text: &str) -> Result<String, String> {
    let Ok(page) = serde_json::from_str::<ResourcePage>(text) else {
        return Err("the server's answer is not one that resources/list can have".into());
    };
    let line = |resource: super::shapes::Resource| {
        let about = [resource.name, resource.description];
        let about: Vec<String> = about.into_iter().flatten().collect();
        format!("{} {}", resource.uri, about.join(": "))
    };
    let lines: Vec<String> = page.resources.into_iter().map(line).collect();
    Ok(if lines.is_empty() {
        "There are no resources.".into()
    } else {
        lines.join("\n")
    })
}

/// One part, as a text.
pub(super) fn part_text(part: Part) -> String {
    match part.kind.as_str() {
        "text" => part.text.unwrap_or_default(),
        "resource" => part.resource.map_or_else(String::new, contents),
        "resource_link" => format!(
            "[resource {} {}]",
            part.uri.unwrap_or_default(),
            part.name.unwrap_or_default()
        ),
        kind => data(kind, part.mime_type.as_deref(), part.data.as_deref()),
    }
}

fn contents(contents: Contents) -> String {
    match (contents.text, contents.blob) {
        (Some(text), _) => format!("{}\n{text}", contents.uri).trim_start().into(),
        (None, blob) => format!(
            "{} {}",
            contents.uri,
            data("data", contents.mime_type.as_deref(), blob.as_deref())
        ),
    }
}

fn data(kind: &str, mime: Option<&str>, base64: Option<&str>) -> String {
    let bytes = base64.map_or(0, |text| text.len() / 4 * 3);
    let kind = super::catalogue::one_line(kind, 40);
    let mime = super::catalogue::one_line(mime.unwrap_or("of unknown type"), 80);
    format!("[{kind} {mime}, about {bytes} bytes, not shown]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_told_and_an_error_stays_one() {
        for (text, expected) in [
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
                Ok("a\nb"),
            ),
            (
                r#"{"isError":true,"content":[{"type":"text","text":"disk full"}]}"#,
                Err("disk full"),
            ),
            (
                r#"{"isError":true}"#,
                Err("The tool failed and did not say why."),
            ),
            (r#"{"content":[]}"#, Ok("(no output)")),
            (
                r#"{"structuredContent":{"z":1,"a":2}}"#,
                Ok(r#"{"z":1,"a":2}"#),
            ),
            (
                r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{}}"#,
                Ok("a"),
            ),
            (
                r#"{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}"#,
                Ok("[image image/png, about 3 bytes, not shown]"),
            ),
            (
                r#"{"content":[{"type":"resource","resource":{"uri":"f:a","text":"x"}}]}"#,
                Ok("f:a\nx"),
            ),
            (
                r#"{"content":[{"type":"resource_link","uri":"f:a","name":"n"},7]}"#,
                Ok("[resource f:a n]\n[a part that cannot be read]"),
            ),
            (
                "[]",
                Err("the server's answer is not one that tools/call can have"),
            ),
        ] {
            let found = tool(text);
            let expected = expected.map(String::from).map_err(String::from);
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn resources_are_listed_and_read() {
        let list = r#"{"resources":[{"uri":"f:a","name":"n","description":"d"},{"uri":"f:b"}]}"#;
        assert_eq!(resources(list).unwrap(), "f:a n: d\nf:b ");
        let read = r#"{"contents":[{"uri":"f:a","text":"x"},{"uri":"f:b","blob":"AAAA"}]}"#;
        let expected = "f:a\nx\nf:b [data of unknown type, about 3 bytes, not shown]";
        assert_eq!(resource(read).unwrap(), expected);
    }
}
