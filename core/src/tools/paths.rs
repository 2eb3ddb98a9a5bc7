//! Where a path may lead. Pure: the world has already said what the path really is.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::workspace::Workspace;
use crate::call::Resolved;
use crate::link;
use crate::permission::Target;

/// A path that may be touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) target: Target,
    /// The real path of the root it is beneath.
    pub(super) root: String,
}

/// `path` as an absolute, cleaned path; relative ones are beneath the working directory. An address
/// `file://…`, as editors name their files in prompts, is the path that it names.
pub(super) fn absolute(ws: &Workspace, parameter: &str, path: &str) -> Result<String, String> {
    if path.trim().is_empty() {
        return Err(format!("`{parameter}` is empty"));
    }
    let path = &*link::path(path).map_err(|why| format!("`{parameter}`: {why}"))?;
    if path.contains('\0') {
        return Err(format!("`{parameter}` holds a NUL byte"));
    }
    if path == "~" || path.starts_with("~/") {
        return Err(format!(
            "`{parameter}`: `~` is not expanded; give an absolute path"
        ));
    }
    Ok(if path.starts_with('/') {
        clean(path)
    } else {
        clean(&format!("{}/{path}", ws.cwd))
    })
}

/// An absolute path without `.`, `..`, doubled and trailing slashes.
pub(super) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The directory an absolute, cleaned path is in, and its name; `None` for `/`.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    let parent = if parent.is_empty() { "/" } else { parent };
    (!name.is_empty()).then_some((parent, name))
}

/// `name` in the directory `parent`.
pub(super) fn join(parent: &str, name: &str) -> String {
    format!("{}/{name}", parent.trim_end_matches('/'))
}

/// Whether `path` is `root` or beneath it. Both absolute and cleaned.
pub(super) fn is_within(path: &str, root: &str) -> bool {
    let root = root.trim_end_matches('/');
    path.strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Decides whether the tools may touch what `asked` really is.
pub(super) fn vet(ws: &Workspace, asked: &str, real: &str) -> Result<Place, String> {
    let Some(root) = ws.roots.iter().find(|root| is_within(real, root)) else {
        let roots = ws.roots.join(", ");
        let leads = if asked == real {
            String::new()
        } else {
            format!(" leads to {real}, which")
        };
        return Err(format!(
            "{asked}{leads} is outside the workspace; files are only touched inside: {roots}"
        ));
    };
    // A root that holds the agent's own directory does not open its keys and configuration.
    if let Some(home) = ws.host.home.as_deref() {
        let own = is_within(real, home) && !is_within(root, home);
        let keys = [".env", "config.toml"]
            .iter()
            .any(|name| real == join(home, name));
        if own || keys {
            return Err(format!(
                "{asked} belongs to the agent itself and is not touched"
            ));
        }
    }
    let target = Target {
        asked: asked.to_string(),
        real: real.to_string(),
        inside: true,
    };
    if let Some(rule) = ws.rules.hiding(&target) {
        return Err(format!(
            "the rule `{rule}` of permissions.deny forbids reading {asked}"
        ));
    }
    Ok(Place {
        target,
        root: root.clone(),
    })
}

/// [`vet`] for what [`Call::Resolve`](crate::call::Call::Resolve) answered.
pub(super) fn vet_resolved(ws: &Workspace, asked: &str, it: &Resolved) -> Result<Place, String> {
    vet(ws, asked, &clean(&it.real))
}

/// The real path of a file that a person refers to, and the root it is beneath, if the tools might read
/// it too: what they may not, nobody reads for the model in another way. The error says why not.
pub fn readable(ws: &Workspace, asked: &str, it: &Resolved) -> Result<(String, String), String> {
    if !ws
        .roots
        .iter()
        .any(|root| is_within(&clean(&it.real), root))
    {
        return Err("it leads out of the session's folder".into());
    }
    let place = vet_resolved(ws, asked, it)?;
    Ok((place.target.real, place.root))
}

/// A path as the model is shown it: relative to the working directory if it is beneath that.
pub(super) fn shown<'a>(ws: &'a Workspace, path: &'a str) -> &'a str {
    let bases = ws.roots.first().into_iter().chain([&ws.cwd]);
    for base in bases {
        if is_within(path, base) {
            let rest = path[base.trim_end_matches('/').len()..].trim_start_matches('/');
            return if rest.is_empty() { "." } else { rest };
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn workspace(home: Option<&str>) -> Workspace {
        let host = crate::settings::Host {
            os: "linux".into(),
            shell: "bash".into(),
            user_home: None,
            home: home.map(Into::into),
            tmp: "/tmp".into(),
            sandbox: Default::default(),
        };
        Workspace::new(
            "/w",
            vec!["/w".into(), "/x".into()],
            host,
            Default::default(),
        )
    }

    #[test]
    fn only_real_paths_inside_a_root_are_touched() {
        let ws = workspace(None);
        for real in ["/w", "/w/a", "/x/b/c"] {
            assert!(vet(&ws, "/w/a", real).is_ok(), "{real}");
        }
        for real in ["/", "/wx", "/wx/a", "/etc/passwd", "/y"] {
            let error = vet(&ws, "/w/link", real).unwrap_err();
            assert!(error.contains("inside: /w, /x"), "{error}");
        }
    }

    #[test]
    fn the_agents_own_files_are_not_touched() {
        let inside = workspace(Some("/w/.reasonix"));
        assert!(vet(&inside, "/w/a", "/w/a").is_ok());
        assert!(vet(&inside, "/w/.reasonix/x", "/w/.reasonix/x").is_err());
        let around = workspace(Some("/"));
        assert!(vet(&around, "/w/a", "/w/a").is_ok());
        let same = workspace(Some("/w"));
        assert!(vet(&same, "/w/a", "/w/a").is_ok());
        assert!(vet(&same, "/w/.env", "/w/.env").is_err());
        assert!(vet(&same, "/w/l", "/w/config.toml").is_err());
    }

    #[test]
    fn paths_are_cleaned_before_anything_looks_at_them() {
        let ws = workspace(None);
        let check = |path: &str| absolute(&ws, "path", path);
        assert_eq!(check("a/../b"), Ok("/w/b".into()));
        assert_eq!(check("../../etc"), Ok("/etc".into()));
        assert_eq!(check("/w//a/./b/"), Ok("/w/a/b".into()));
        assert_eq!(check("."), Ok("/w".into()));
        assert_eq!(check("file:///w/a%20b.rs#L3"), Ok("/w/a b.rs".into()));
        assert_eq!(check("file:///w/%2e%2e/etc"), Ok("/etc".into()));
        for bad in ["", " ", "a\0b", "~", "~/x", "file://h/x", "file:///a%00b"] {
            assert!(check(bad).unwrap_err().contains("`path`"), "{bad:?}");
        }
        assert_eq!(split("/w/a"), Some(("/w", "a")));
        assert_eq!(split("/w"), Some(("/", "w")));
        assert_eq!(split("/"), None);
        assert_eq!(shown(&ws, "/w/a"), "a");
        assert_eq!(shown(&ws, "/w"), ".");
        assert_eq!(shown(&ws, "/x/a"), "/x/a");
    }
}
