//! The rules of `[permissions]`: read once, then asked. A rule is `Tool` or `Tool(pattern)`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use thiserror::Error;

use super::action::{Access, Action, Target};
use super::pattern::PathPattern;
use super::served::Served;
use super::shell::{self, By, Runs};
use crate::settings::Permissions;

/// The rules of `[permissions]`.
///
/// `Read` covers all tools that read or search files, `Edit` (or `Write`) all that change them,
/// `Bash` command lines; `server__tool`, `server__*` and `mcp__server` tools of MCP servers; any other
/// name is one tool. `Read` and `Edit` take a
/// [`PathPattern`], `Bash` takes the words of a simple command, with `:*` (or ` *`) behind them if
/// more may follow. `WebFetch` takes `domain:example.org`, which is that host, or
/// `domain:*.example.org`, which are those beneath it; what is forbidden or asked for a host is so for
/// those beneath it too. To forbid reading a file forbids editing it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    deny: Vec<Rule>,
    ask: Vec<Rule>,
    allow: Vec<Rule>,
    bases: Vec<String>,
}

/// A rule that cannot be understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("permissions.{list}: `{rule}`: {why}")]
pub struct RuleError {
    /// `allow`, `ask` or `deny`.
    pub list: &'static str,
    /// The rule as it stands in the file.
    pub rule: String,
    /// What is wrong with it.
    pub why: String,
}

impl Rules {
    /// Reads the rules. `home` is the person's home directory, for patterns that begin with `~/`.
    pub fn parse(permissions: &Permissions, home: Option<&str>) -> Result<Self, RuleError> {
        let read = |list: &'static str, rules: &[String]| {
            let one = |rule: &String| {
                Rule::parse(rule, home).map_err(|why| RuleError {
                    list,
                    rule: rule.clone(),
                    why,
                })
            };
            rules.iter().map(one).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            deny: read("deny", &permissions.deny)?,
            ask: read("ask", &permissions.ask)?,
            allow: read("allow", &permissions.allow)?,
            bases: Vec::new(),
        })
    }

    /// Whether this is a rule, wherever the person's home may be.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn check(rule: &str) -> Result<(), String> {
        Rule::parse(rule, Some("/")).map(drop)
    }

    /// The same rules for a session with this working directory and these roots: relative patterns
    /// are beneath any of them.
    #[must_use]
    pub fn beneath(mut self, cwd: &str, roots: &[String]) -> Self {
        self.bases = core::iter::once(cwd.to_string())
            .chain(roots.iter().cloned())
            .collect();
        self
    }

    /// All rules as they stand in the file, with the list each is in, in the order in which they
    /// count.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let lists = [
            ("deny", &self.deny),
            ("ask", &self.ask),
            ("allow", &self.allow),
        ];
        lists
            .into_iter()
            .flat_map(|(list, rules)| rules.iter().map(move |rule| (list, rule.text.as_str())))
    }

    /// The rule that keeps this path from being read at all.
    pub fn hiding(&self, target: &Target) -> Option<&str> {
        let rule = self
            .deny
            .iter()
            .find(|r| r.tools == Tools::Read && r.any(target, &self.bases));
        rule.map(|rule| rule.text.as_str())
    }

    /// The rule that asks or denies before this path is read: a search does not show its hits.
    pub fn guarding(&self, target: &Target) -> Option<&str> {
        let asking = || {
            self.ask
                .iter()
                .find(|r| r.tools == Tools::Read && r.any(target, &self.bases))
        };
        self.hiding(target)
            .or_else(|| asking().map(|rule| rule.text.as_str()))
    }

    /// The rule that asks or denies for something that may be in this folder, by where it is: in
    /// another place the rule would not be about it.
    pub fn reaching_into(&self, folder: &Target) -> Option<&str> {
        let reaches = |rule: &&Rule| match &rule.pattern {
            Some(Pattern::Path(pattern)) => [&folder.real, &folder.asked]
                .into_iter()
                .any(|path| pattern.reaches_into(path, &self.bases)),
            Some(Pattern::Command { .. } | Pattern::Domain { .. }) | None => false,
        };
        let rule = self.deny.iter().chain(&self.ask).find(reaches);
        rule.map(|rule| rule.text.as_str())
    }

    pub(super) fn denying(&self, action: &Action) -> Covered<'_> {
        self.restricting(&self.deny, action)
    }

    pub(super) fn asking(&self, action: &Action) -> Covered<'_> {
        self.restricting(&self.ask, action)
    }

    pub(super) fn allowing(&self, action: &Action) -> Option<&str> {
        let rule = self
            .allow
            .iter()
            .find(|rule| rule.allows(action, &self.bases));
        rule.map(|rule| rule.text.as_str())
    }

    fn restricting<'a>(&'a self, rules: &'a [Rule], action: &Action) -> Covered<'a> {
        let mut covered = Covered::No;
        for rule in rules {
            match rule.restricts(action, &self.bases) {
                Runs::Yes => return Covered::By(&rule.text),
                Runs::Unknown => covered = Covered::Perhaps(&rule.text),
                Runs::No => {}
            }
        }
        covered
    }
}

/// Whether a rule covers an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Covered<'a> {
    No,
    /// The command cannot be understood, and may be covered by this rule.
    Perhaps(&'a str),
    By(&'a str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    text: String,
    tools: Tools,
    pattern: Option<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Tools {
    Read,
    Edit,
    Bash,
    /// Tools of MCP servers.
    Served(Served),
    Web,
    Named(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Path(PathPattern),
    Command {
        words: Vec<String>,
        exact: bool,
    },
    /// A host, lower case; or those beneath it.
    Domain {
        host: String,
        beneath: bool,
    },
}

impl Rule {
    fn parse(text: &str, home: Option<&str>) -> Result<Self, String> {
        let trimmed = text.trim();
        let (name, pattern) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((name, rest)) => {
                let inner = rest
                    .strip_suffix(')')
                    .ok_or("the closing parenthesis is missing")?;
                (name.trim(), Some(inner.trim()))
            }
        };
        let legal = |c: char| c.is_ascii_alphanumeric() || "_-.*".contains(c);
        if name.is_empty() || !name.chars().all(legal) {
            return Err("a rule is `Tool` or `Tool(pattern)`".into());
        }
        let tools = match name.to_ascii_lowercase().as_str() {
            "read" => Tools::Read,
            "edit" | "write" => Tools::Edit,
            "bash" => Tools::Bash,
            "webfetch" | "web_fetch" => Tools::Web,
            other => match Served::parse(name) {
                Some(served) => Tools::Served(served?),
                None => Tools::Named(other.into()),
            },
        };
        let pattern = match (pattern, &tools) {
            (None | Some("*"), _) => None,
            (Some("**"), Tools::Read | Tools::Edit) => None,
            (Some(path), Tools::Read | Tools::Edit) => {
                Some(Pattern::Path(PathPattern::parse(path, home)?))
            }
            (Some(line), Tools::Bash) => Some(command_pattern(line)?),
            (Some(domain), Tools::Web) => Some(domain_pattern(domain)?),
            (Some(_), Tools::Served(_)) => {
                return Err("a tool of an MCP server takes no pattern".into());
            }
            (Some(_), Tools::Named(name)) => {
                return Err(format!(
                    "`{name}` takes no pattern; Read, Edit, Bash and WebFetch do"
                ));
            }
        };
        Ok(Self {
            text: trimmed.into(),
            tools,
            pattern,
        })
    }

    /// Whether it forbids (or asks): the wide reading. One path of several is enough, and it counts
    /// both under the name that was asked for and under the real one.
    fn restricts(&self, action: &Action, bases: &[String]) -> Runs {
        let yes = |yes: bool| if yes { Runs::Yes } else { Runs::No };
        match (&self.tools, &action.access) {
            (Tools::Named(name), _) => yes(action.tool.eq_ignore_ascii_case(name)),
            (Tools::Served(served), _) => yes(served.is(&action.tool, false)),
            (Tools::Read, Access::Read(targets) | Access::Edit(targets))
            | (Tools::Edit, Access::Edit(targets)) => {
                yes(targets.iter().any(|t| self.any(t, bases)))
            }
            (Tools::Bash, Access::Execute { command, .. }) => match &self.pattern {
                Some(Pattern::Command { words, exact }) => shell::runs(command, words, *exact),
                Some(Pattern::Path(_) | Pattern::Domain { .. }) | None => Runs::Yes,
            },
            (Tools::Web, Access::Network(host)) => yes(self.is_host(host, true)),
            (Tools::Read | Tools::Edit | Tools::Bash | Tools::Web, _) => Runs::No,
        }
    }

    /// Whether it allows: the narrow reading. All paths, by their real names and inside the roots;
    /// one literal simple command.
    fn allows(&self, action: &Action, bases: &[String]) -> bool {
        match (&self.tools, &action.access) {
            (Tools::Named(name), Access::Read(targets) | Access::Edit(targets)) => {
                action.tool.eq_ignore_ascii_case(name) && targets.iter().all(|t| t.inside)
            }
            (Tools::Named(name), Access::Execute { inside, .. }) => {
                action.tool.eq_ignore_ascii_case(name) && *inside
            }
            (Tools::Named(name), Access::Session | Access::Network(_) | Access::Other) => {
                action.tool.eq_ignore_ascii_case(name)
            }
            (Tools::Served(served), Access::Other) => served.is(&action.tool, true),
            (Tools::Read, Access::Read(targets)) | (Tools::Edit, Access::Edit(targets)) => targets
                .iter()
                .all(|t| t.inside && self.path(&t.real, bases)),
            (Tools::Bash, Access::Execute { command, inside }) => {
                *inside
                    && match &self.pattern {
                        Some(Pattern::Command { words, exact }) => {
                            shell::covers(command, words, *exact, By::Rule)
                        }
                        Some(Pattern::Path(_) | Pattern::Domain { .. }) | None => true,
                    }
            }
            (Tools::Web, Access::Network(host)) => self.is_host(host, false),
            (Tools::Read | Tools::Edit | Tools::Bash | Tools::Web | Tools::Served(_), _) => false,
        }
    }

    fn any(&self, target: &Target, bases: &[String]) -> bool {
        self.path(&target.real, bases) || self.path(&target.asked, bases)
    }

    fn path(&self, path: &str, bases: &[String]) -> bool {
        match &self.pattern {
            Some(Pattern::Path(pattern)) => pattern.matches(path, bases),
            Some(Pattern::Command { .. } | Pattern::Domain { .. }) | None => true,
        }
    }

    /// Whether it is about this host; `wide`: those beneath one count as it.
    fn is_host(&self, asked: &str, wide: bool) -> bool {
        match &self.pattern {
            Some(Pattern::Domain { host, beneath }) => {
                let is_beneath = || {
                    let parent = asked.strip_suffix(host.as_str());
                    parent.is_some_and(|it| it.ends_with('.'))
                };
                asked == host && (!beneath || wide) || (*beneath || wide) && is_beneath()
            }
            Some(Pattern::Path(_) | Pattern::Command { .. }) | None => true,
        }
    }
}

fn domain_pattern(text: &str) -> Result<Pattern, String> {
    let why = "the pattern is `domain:` and a host, such as `domain:example.org` or \
               `domain:*.example.org`";
    let host = text.strip_prefix("domain:").ok_or(why)?.trim();
    let host = host.to_ascii_lowercase();
    let (host, beneath) = match host.strip_prefix("*.") {
        Some(host) => (host, true),
        None => (host.as_str(), false),
    };
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    if host.is_empty() || !host.chars().all(legal) {
        return Err(why.into());
    }
    let host = host.into();
    Ok(Pattern::Domain { host, beneath })
}

fn command_pattern(text: &str) -> Result<Pattern, String> {
    let (line, exact) = match text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")) {
        Some(line) => (line, false),
        None => (text, true),
    };
    let words = shell::literal_words(line).ok_or(
        "the pattern is the words of one simple command, with `:*` behind them if more may follow",
    )?;
    Ok(Pattern::Command { words, exact })
}
