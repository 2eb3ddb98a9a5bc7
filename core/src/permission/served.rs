//! Rules about the tools of MCP servers, by server and tool.
//!
//! | rule | is about |
//! | --- | --- |
//! | `docs__search` | this tool of the server `docs` |
//! | `docs__*`, `docs__get_*` | all its tools, or those whose names begin so |
//! | `mcp__docs__search`, `mcp__docs__*`, `mcp__docs` | the same, as others write it |
//! | `mcp__*` | the tools of all servers |
//!
//! What forbids or asks does so in whatever case a name is written; what allows, only as it is.

use alloc::string::String;
use alloc::vec::Vec;

/// What stands between a server and its tool.
const BETWEEN: &str = "__";

/// The tools that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Served {
    names: Vec<Name>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    text: String,
    /// More may follow.
    open: bool,
}

impl Served {
    /// Reads the name of a rule; none if it is about other tools.
    pub(super) fn parse(name: &str) -> Option<Result<Self, String>> {
        if !name.contains('*') && !name.contains(BETWEEN) {
            return None;
        }
        let (text, open) = match name.strip_suffix('*') {
            Some(text) => (text, true),
            None => (name, false),
        };
        if text.contains('*') || !text.contains(BETWEEN) {
            return Some(Err(
                "`*` stands at the end of what the names of a server's tools begin with, such as \
                 `server__*`"
                    .into(),
            ));
        }
        let one = |text: &str, open| Name {
            text: text.into(),
            open,
        };
        // A server may be called `mcp`.
        let mut names = Vec::from([one(text, open)]);
        match text.strip_prefix("mcp__") {
            Some("") if open => names.push(one("", true)),
            Some(rest) if rest.contains(BETWEEN) => names.push(one(rest, open)),
            Some(server) if !server.is_empty() && !open => {
                let mut all = String::from(server);
                all.push_str(BETWEEN);
                names.push(one(&all, true));
            }
            Some(_) | None => {}
        }
        Some(Ok(Self { names }))
    }

    /// Whether it is about this tool; `exactly`: as it is written.
    pub(super) fn is(&self, tool: &str, exactly: bool) -> bool {
        let same = |one: &str, other: &str| match exactly {
            true => one == other,
            false => one.eq_ignore_ascii_case(other),
        };
        let fits = |name: &Name| match name.open {
            true => tool
                .get(..name.text.len())
                .is_some_and(|begin| same(begin, &name.text)),
            false => same(tool, &name.text),
        };
        tool.contains(BETWEEN) && self.names.iter().any(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_about_the_tools_that_it_names_and_no_others() {
        for (rule, tool, expected) in [
            ("docs__search", "docs__search", true),
            ("docs__search", "docs__search2", false),
            ("docs__search", "other__search", false),
            ("docs__*", "docs__search", true),
            ("docs__*", "docs2__search", false),
            ("docs__*", "docs", false),
            ("docs__get_*", "docs__get_one", true),
            ("docs__get_*", "docs__set_one", false),
            ("mcp__docs__search", "docs__search", true),
            ("mcp__docs__search", "docs__other", false),
            ("mcp__docs__*", "docs__search", true),
            ("mcp__docs__*", "docs2__search", false),
            ("mcp__docs", "docs__search", true),
            ("mcp__docs", "docs2__search", false),
            ("mcp__docs", "mcp__docs", true),
            ("mcp__*", "docs__search", true),
            ("mcp__*", "bash", false),
        ] {
            let served = Served::parse(rule).unwrap().unwrap();
            assert_eq!(served.is(tool, true), expected, "{rule} {tool}");
            assert_eq!(served.is(tool, false), expected, "{rule} {tool}");
        }
        let served = Served::parse("docs__Search").unwrap().unwrap();
        assert!(served.is("docs__search", false) && !served.is("docs__search", true));
        for other in ["Read", "grep", "web_fetch", "todo_write"] {
            assert_eq!(Served::parse(other), None, "{other}");
        }
        for bad in ["*", "docs*", "docs__*x", "*__search", "docs__**"] {
            assert!(matches!(Served::parse(bad), Some(Err(_))), "{bad}");
        }
    }
}
