//! Path patterns of rules: `*`, `?` and `**` over the components of a path. Pure text.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A pattern for paths, as in `Edit(src/**)`.
///
/// Without a slash it is a name: a file or directory so called, at any depth. With one it is
/// beneath the working directory (or any other root), with a leading `/` absolute, with a leading
/// `~/` beneath the person's home. What matches a directory matches all that is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    anchor: Anchor,
    parts: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    Name,
    Root,
    Absolute,
}

impl PathPattern {
    /// Reads a pattern; the error says what is not understood.
    pub fn parse(text: &str, home: Option<&str>) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the pattern is empty".into());
        }
        if let Some(c) = text
            .chars()
            .find(|c| "[]{}\\!".contains(*c) || c.is_control())
        {
            return Err(format!("{c:?} is not understood; use `*`, `?` and `**`"));
        }
        let expanded;
        let (anchor, rest) = if let Some(rest) = text.strip_prefix("~/") {
            let home = home.ok_or("the home directory is not known")?;
            expanded = format!("{home}/{rest}");
            (Anchor::Absolute, expanded.as_str())
        } else if text.starts_with('/') {
            (Anchor::Absolute, text)
        } else if text.trim_end_matches('/').contains('/') {
            (Anchor::Root, text)
        } else {
            (Anchor::Name, text)
        };
        let parts: Vec<String> = components(rest).map(ToString::to_string).collect();
        if parts.iter().any(|part| part == "..") {
            return Err("`..` is not understood".into());
        }
        if parts.iter().any(|part| part.contains("**") && part != "**") {
            return Err("`**` must stand alone between slashes".into());
        }
        Ok(Self { anchor, parts })
    }

    /// Whether it may cover something in the folder `path` by where that is, so that it would not
    /// cover it in another place.
    pub fn reaches_into(&self, path: &str, bases: &[String]) -> bool {
        let all: Vec<&str> = components(path).collect();
        match self.anchor {
            Anchor::Absolute => leads_into(&self.parts, &all),
            Anchor::Root => bases.iter().any(|base| {
                let base: Vec<&str> = components(base).collect();
                match all.strip_prefix(base.as_slice()) {
                    Some(inside) => leads_into(&self.parts, inside),
                    None => base.starts_with(&all),
                }
            }),
            // What is in it keeps its name wherever it goes.
            Anchor::Name => false,
        }
    }

    /// Whether it covers `path` (absolute, cleaned). `bases` are the directories that relative
    /// patterns are beneath.
    pub fn matches(&self, path: &str, bases: &[String]) -> bool {
        let all: Vec<&str> = components(path).collect();
        let beneath = |base: &String| {
            let base: Vec<&str> = components(base).collect();
            all.starts_with(&base).then(|| all[base.len()..].to_vec())
        };
        match self.anchor {
            Anchor::Absolute => covers(&self.parts, &all),
            Anchor::Root => bases
                .iter()
                .filter_map(beneath)
                .any(|p| covers(&self.parts, &p)),
            Anchor::Name => {
                let mut inside = bases.iter().filter_map(beneath).peekable();
                let named = |parts: &[&str]| {
                    let name = self.parts.first().map_or("", |p| p);
                    parts.iter().any(|part| part_matches(name, part))
                };
                if inside.peek().is_none() {
                    named(&all)
                } else {
                    inside.any(|parts| named(&parts))
                }
            }
        }
    }
}

fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
}

/// Whether the pattern matches the path or one of its ancestors. Work is bounded by the product of
/// the lengths: a row of "can stand here" per pattern part.
fn covers(pattern: &[String], path: &[&str]) -> bool {
    ends(pattern, path).into_iter().any(|end| end)
}

/// For each number of components whether the pattern matches so many.
fn ends(pattern: &[String], path: &[&str]) -> Vec<bool> {
    let mut can = alloc::vec![false; path.len() + 1];
    can[0] = true;
    for part in pattern {
        let mut next = alloc::vec![false; path.len() + 1];
        for at in 0..=path.len() {
            if part == "**" {
                next[at] = can[at] || (at > 0 && next[at - 1]);
            } else {
                next[at] = at > 0 && can[at - 1] && part_matches(part, path[at - 1]);
            }
        }
        can = next;
    }
    can
}

/// Whether the pattern may match something beneath the path: whether a part of it, from the
/// beginning, matches the path.
fn leads_into(pattern: &[String], path: &[&str]) -> bool {
    (0..pattern.len()).any(|parts| {
        let (first, rest) = pattern.split_at(parts);
        // `**` may stand for what is left of the path, and for more.
        let open = rest.first().is_some_and(|part| part == "**");
        matches_whole(first, path, open)
    })
}

/// Whether the pattern matches all of the path, or, if it is `open`, an ancestor.
fn matches_whole(pattern: &[String], path: &[&str], open: bool) -> bool {
    let ends = ends(pattern, path);
    ends.last() == Some(&true) || open && ends.into_iter().any(|end| end)
}

/// `*` and `?` inside one component.
fn part_matches(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut can = alloc::vec![false; text.len() + 1];
    can[0] = true;
    for p in pattern.chars() {
        let mut next = alloc::vec![false; text.len() + 1];
        for at in 0..=text.len() {
            next[at] = match p {
                '*' => can[at] || (at > 0 && next[at - 1]),
                '?' => at > 0 && can[at - 1],
                p => at > 0 && can[at - 1] && text[at - 1] == p,
            };
        }
        can = next;
    }
    can[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn patterns_cover_what_they_name_and_all_beneath_it() {
        #[track_caller]
        fn check(pattern: &str, path: &str, expected: bool) {
            let bases = vec!["/w".into(), "/other".into()];
            let pattern = PathPattern::parse(pattern, Some("/home/me")).expect(pattern);
            assert_eq!(
                pattern.matches(path, &bases),
                expected,
                "{pattern:?} {path}"
            );
        }
        check(".env", "/w/.env", true);
        check(".env", "/w/a/b/.env", true);
        check(".env", "/w/.env.local", false);
        check(".env*", "/w/.env.local", true);
        check("*.pem", "/w/keys/a.pem", true);
        check("w", "/w/a", false);
        check("secrets", "/w/secrets/a/b", true);
        check("src/**", "/w/src/a/b.rs", true);
        check("src/**", "/other/src/a", true);
        check("src/**", "/w/lib/src/a", false);
        check("src/*.rs", "/w/src/a.rs", true);
        check("src/*.rs", "/w/src/a/b.rs", false);
        check("./src/a.rs", "/w/src/a.rs", true);
        check("**/gen/*", "/w/a/b/gen/x", true);
        check("/etc", "/etc/passwd", true);
        check("/etc", "/w/etc", false);
        check("~/.ssh", "/home/me/.ssh/id", true);
        check("*", "/w/x", true);
        check("?.rs", "/w/a.rs", true);
        check("?.rs", "/w/ab.rs", false);
        check(".env", "/elsewhere/.env", true);
    }

    #[test]
    fn a_folder_holds_what_a_pattern_may_cover_by_its_place() {
        #[track_caller]
        fn check(pattern: &str, path: &str, expected: bool) {
            let bases = vec!["/w".into(), "/other".into()];
            let pattern = PathPattern::parse(pattern, Some("/home/me")).expect(pattern);
            assert_eq!(
                pattern.reaches_into(path, &bases),
                expected,
                "{pattern:?} {path}"
            );
        }
        check("conf/secrets/**", "/w/conf", true);
        check("conf/secrets/**", "/other/conf", true);
        check("conf/secrets/**", "/w", true);
        check("conf/secrets/**", "/", true);
        check("conf/secrets/**", "/w/conf2", false);
        check("conf/secrets/**", "/w/a/conf", false);
        check("conf/*/key", "/w/conf/a", true);
        check("conf/*/key", "/w/conf/a/b", false);
        check("**/gen/*", "/w/a/b", true);
        check("/w/conf/key", "/w/conf", true);
        check("/w/conf/key", "/w/src", false);
        check("~/.ssh", "/home/me", true);
        check(".env", "/w/conf", false);
        check("secrets", "/w/conf", false);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for bad in ["", " ", "[a]", "{a,b}", "!a", "../x", "a/**b", "a\\b"] {
            assert!(PathPattern::parse(bad, None).is_err(), "{bad:?}");
        }
        assert!(PathPattern::parse("~/x", None).is_err());
    }
}
