//! The servers that a project's own file names, and which of them the person approved. Pure: texts
//! in, texts out; who reads and writes the files is the business of others.
//!
//! A project's file comes with the project, so whoever wrote that decides what it runs. Nothing of
//! it is started before the person said so. What they said holds for the project's folder, the
//! name of the server and the digest of its entry: an entry that changed asks again.
//!
//! | file | where | holds |
//! | --- | --- | --- |
//! | `.mcp.json` | the session's working directory | `{"mcpServers":{NAME:{…}}}` |
//! | `mcp-approvals.json` | the agent's home | `{"schemaVersion":1,"approvals":[{"project","name","sha256"}]}` |

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::catalogue::one_line;
use super::entry::{Entry, Loose, Way};

/// The file in a project's folder.
pub const PROJECT_FILE: &str = ".mcp.json";

/// The file with what was approved, in the agent's home.
pub const APPROVALS_FILE: &str = "mcp-approvals.json";

/// Longest such file, of either kind, bytes.
pub const MAX_FILE: u64 = 1 << 20;

/// Longest entry that is shown to the person, bytes.
const MAX_SHOWN: usize = 16 << 10;

/// The version of the file with the approvals.
const SCHEMA_VERSION: u32 = 1;

/// Approvals that are kept; the oldest make room.
const MAX_APPROVALS: usize = 1000;

/// A server that a project's file names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProjectServer {
    /// The server.
    pub entry: Entry,
    /// What it is, as an approval remembers it.
    pub digest: String,
}

/// The servers of a project's file, in the order of their names.
///
/// # Errors
///
/// A file that is not right is refused as a whole, by a text for people that holds no value of it.
pub fn project_servers(bytes: &[u8], max: usize) -> Result<Vec<ProjectServer>, String> {
    let text = core::str::from_utf8(bytes).map_err(|_| String::from("it is not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let not = |line: usize, column: usize| {
        format!(
            "line {line}, column {column}: it is not {{\"mcpServers\":{{NAME:{{…}}}}}}, each name once"
        )
    };
    // Lists would be read by the places of what is in them.
    if !text.trim_start().starts_with('{') {
        return Err(not(1, 1));
    }
    // The words of the parser may quote what stands there.
    let file: File<'_> =
        serde_json::from_str(text).map_err(|error| not(error.line(), error.column()))?;
    let other = file.servers.map(|_| "servers");
    let other = other.or(file.snake.map(|_| "mcp_servers"));
    if let (true, Some(other)) = (file.mcp_servers.0.is_empty(), other) {
        return Err(format!(
            "its servers stand under \"{other}\", and are looked for under \"mcpServers\""
        ));
    }
    if file.mcp_servers.0.len() > max {
        return Err(format!("it names more than {max} servers"));
    }
    let mut names = BTreeSet::new();
    let one = |(name, raw): (String, &RawValue)| {
        let line = line_of(text, raw);
        let wrong =
            |why: &str| format!("line {line}: the server \"{}\": {why}", one_line(&name, 80));
        let way = way(raw.get()).map_err(wrong)?;
        let entry = Entry::new(&name, way).map_err(|fault| wrong(&format!("{fault}")))?;
        if !names.insert(entry.name.clone()) {
            return Err(wrong("its name is there twice"));
        }
        // Who approves it sees all of it, and a card is one frame.
        if entry.details().len() > MAX_SHOWN {
            return Err(wrong("it is too long to be shown whole"));
        }
        let digest = entry.digest();
        Ok(ProjectServer { entry, digest })
    };
    file.mcp_servers.0.into_iter().map(one).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(borrow, default)]
    mcp_servers: Named<'a>,
    /// Where other programs look for them.
    #[serde(default)]
    servers: Option<IgnoredAny>,
    #[serde(default, rename = "mcp_servers")]
    snake: Option<IgnoredAny>,
}

/// Members of an object, by their names, each of which stands there once.
#[derive(Default)]
struct Named<'a>(BTreeMap<String, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Named<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Named<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut named = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    // Which of two would count is nothing to guess about.
                    if named.insert(name, value).is_some() {
                        return Err(serde::de::Error::custom("a name is there twice"));
                    }
                }
                Ok(Named(named))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    headers: Option<BTreeMap<String, String>>,
}

fn way(text: &str) -> Result<Way, &'static str> {
    let raw: Option<Raw> = text
        .starts_with('{')
        .then(|| serde_json::from_str(text).ok())
        .flatten();
    let raw = raw.ok_or("it has `command`, `args` and `env`, or `url` and `headers`, as texts")?;
    let loose = Loose {
        kind: raw.kind,
        command: raw.command,
        args: raw.args.unwrap_or_default(),
        env: raw.env.unwrap_or_default(),
        url: raw.url,
        headers: raw.headers.unwrap_or_default(),
    };
    loose.way()
}

/// The line of `text`, from 1, in which a part of it begins.
fn line_of(text: &str, part: &RawValue) -> usize {
    let at = part.get().as_ptr().addr() - text.as_ptr().addr();
    1 + text.as_bytes()[..at]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}

/// The way out of a file that cannot be read.
const AWAY: &str = "; nothing is approved until you move it away and approve the servers again";

/// What was approved, in all projects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approvals {
    /// Oldest first.
    kept: Vec<Approval>,
}

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
struct Approval {
    /// The project's folder, its links resolved.
    project: String,
    name: String,
    sha256: String,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    schema_version: u32,
    approvals: Vec<Approval>,
}

impl Approvals {
    /// What the file says; no file: nothing was approved.
    ///
    /// # Errors
    ///
    /// A file that cannot be read approves nothing, and nothing is to be written over it. The text says
    /// what a person can do; which file it is says the caller.
    pub fn parse(bytes: Option<&[u8]>) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            schema_version: u32,
        }
        let Some(bytes) = bytes else {
            return Ok(Self::default());
        };
        let version: Version = serde_json::from_slice(bytes)
            .map_err(|_| format!("it is not what this program writes there{AWAY}"))?;
        if version.schema_version != SCHEMA_VERSION {
            return Err(format!(
                "it was written by another version of this program{AWAY}"
            ));
        }
        let stored: Stored = serde_json::from_slice(bytes)
            .map_err(|_| format!("it is not what this program writes there{AWAY}"))?;
        Ok(Self {
            kept: stored.approvals,
        })
    }

    /// Whether this entry of this project may be started.
    pub fn approves(&self, project: &str, name: &str, digest: &str) -> bool {
        self.of(project)
            .any(|(known, sha256)| known == name && sha256 == digest)
    }

    /// It may be from now on; what was said of this server before holds no more.
    pub fn approve(&mut self, project: &str, name: &str, digest: &str) {
        self.revoke(project, name);
        let over = (self.kept.len() + 1).saturating_sub(MAX_APPROVALS);
        self.kept.drain(..over);
        self.kept.push(Approval {
            project: project.into(),
            name: name.into(),
            sha256: digest.into(),
        });
    }

    /// It may not be any more. Whether it might before.
    pub fn revoke(&mut self, project: &str, name: &str) -> bool {
        let before = self.kept.len();
        self.kept
            .retain(|it| it.project != project || it.name != name);
        self.kept.len() != before
    }

    /// What was approved in one project: names, and digests of entries.
    pub fn of(&self, project: &str) -> impl Iterator<Item = (&str, &str)> {
        self.kept
            .iter()
            .filter(move |it| it.project == project)
            .map(|it| (it.name.as_str(), it.sha256.as_str()))
    }

    /// The text of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let stored = Stored {
            schema_version: SCHEMA_VERSION,
            approvals: self.kept.clone(),
        };
        // Texts and a number: they are always JSON.
        let mut bytes = serde_json::to_vec_pretty(&stored).expect("texts are JSON");
        bytes.push(b'\n');
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn read(text: &str) -> Result<Vec<ProjectServer>, String> {
        project_servers(text.as_bytes(), 3)
    }

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let names = |text: &str| -> Vec<String> {
            let servers = read(text).unwrap();
            servers.into_iter().map(|it| it.entry.name).collect()
        };
        let good = concat!(
            r#"{"mcpServers":{"b":{"command":"x","args":["1"],"env":{"A":"1"}},"#,
            r#""a":{"url":"http://h"},"c":{"type":"SSE","url":"http://h","headers":null}}}"#
        );
        assert_eq!(names(good), ["a", "b", "c"]);
        assert_eq!(names("\u{feff}{\"other\":[]}"), Vec::<String>::new());
        assert_eq!(
            names(r#"{"mcpServers":{"a":{"command":"x"}},"servers":{}}"#),
            ["a"]
        );
        for (bad, why) in [
            ("[", "line 1, column 1"),
            ("7", "line 1"),
            ("[]", "line 1"),
            (r#"[{"a":{"command":"s3cret"}}]"#, "line 1"),
            (
                r#"{"mcpServers":{"a":[null,"s3cret"]}}"#,
                "the server \"a\": it has",
            ),
            (r#"{"mcpServers":[]}"#, "line 1"),
            (
                r#"{"servers":{"a":{"command":"s3cret"}},"inputs":[]}"#,
                "stand under \"servers\", and are looked for under \"mcpServers\"",
            ),
            (
                r#"{"mcp_servers":{"a":{"command":"s3cret"}}}"#,
                "stand under \"mcp_servers\"",
            ),
            (
                r#"{"mcpServers":{"a":{"command":"s3cret"},"a":{"command":"y"}}}"#,
                "each name once",
            ),
            (
                r#"{"mcpServers":{"a":{"command":"s3cret"}," a":{"command":"y"}}}"#,
                "\"a\": its name is there twice",
            ),
            (r#"{"mcpServers":{"a":{}}}"#, "line 1: the server \"a\": "),
            (
                "\u{feff}{\"mcpServers\":{\n\"b\":{\"command\":\"x\"},\n\"a\":\n{}}}",
                "line 4: the server \"a\": ",
            ),
            (
                r#"{"mcpServers":{"a":"s3cret"}}"#,
                "the server \"a\": it has",
            ),
            (
                r#"{"mcpServers":{"a":{"command":"s3cret","env":{"B":7}}}}"#,
                "the server \"a\": it has",
            ),
            (
                r#"{"mcpServers":{"a":{"command":"s3cret","command":"y"}}}"#,
                "the server \"a\": it has",
            ),
            (
                r#"{"mcpServers":{"a":{"command":"s3cret","url":"http://h"}}}"#,
                "not both",
            ),
            (
                r#"{"mcpServers":{"a":{"type":"quic","url":"http://s3cret"}}}"#,
                "stdio, http or sse",
            ),
            (r#"{"mcpServers":{"":{"command":"s3cret"}}}"#, "empty"),
            (
                r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"x"},"c":{"command":"x"},"d":{"command":"x"}}}"#,
                "more than 3",
            ),
        ] {
            let found = read(bad).unwrap_err();
            assert!(found.contains(why), "{bad}: {found}");
            assert!(!found.contains("s3cret"), "{bad}: {found}");
        }
        let argument = |bytes: usize| {
            let long = "x".repeat(bytes);
            read(&format!(
                r#"{{"mcpServers":{{"a":{{"command":"x","args":["{long}"]}}}}}}"#
            ))
        };
        assert!(argument(MAX_SHOWN / 2).is_ok());
        assert!(argument(MAX_SHOWN).unwrap_err().contains("too long"));
        let found = project_servers(b"\xff", 3).unwrap_err();
        assert!(found.contains("UTF-8"));
    }

    #[test]
    fn an_approval_holds_for_one_entry_of_one_project_until_it_is_taken_back() {
        let mut all = Approvals::default();
        all.approve("/p", "a", "1");
        all.approve("/q", "a", "2");
        let again = Approvals::parse(Some(&all.to_bytes())).unwrap();
        assert_eq!(again, all);
        for (project, name, digest, expected) in [
            ("/p", "a", "1", true),
            ("/p", "a", "2", false),
            ("/p", "b", "1", false),
            ("/q", "a", "1", false),
            ("/q", "a", "2", true),
            ("/", "a", "1", false),
        ] {
            assert_eq!(
                all.approves(project, name, digest),
                expected,
                "{project} {name} {digest}"
            );
        }
        // What is approved anew is another entry of the same server.
        all.approve("/p", "a", "3");
        assert!(!all.approves("/p", "a", "1") && all.approves("/p", "a", "3"));
        assert!(all.revoke("/p", "a") && !all.revoke("/p", "a"));
        assert_eq!(all.of("/p").count() + all.of("/q").count(), 1);
    }

    #[test]
    fn what_cannot_be_read_approves_nothing_and_is_not_taken_for_empty() {
        assert_eq!(Approvals::parse(None), Ok(Approvals::default()));
        for bad in [
            "",
            "x",
            "{}",
            "[]",
            r#"{"schemaVersion":1}"#,
            r#"{"schemaVersion":2,"approvals":[]}"#,
            r#"{"schemaVersion":1,"approvals":[{"project":"/p","name":"a"}]}"#,
        ] {
            assert!(Approvals::parse(Some(bad.as_bytes())).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_oldest_approvals_make_room() {
        let mut all = Approvals::default();
        for n in 0..=MAX_APPROVALS {
            all.approve("/p", &format!("{n}"), "1");
        }
        let names: Vec<&str> = all.of("/p").map(|(name, _)| name).collect();
        assert_eq!(names.len(), MAX_APPROVALS);
        assert_eq!(vec![names[0], names[MAX_APPROVALS - 1]], ["1", "1000"]);
    }
}
