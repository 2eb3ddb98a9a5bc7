//! Which session a person means. Pure but for a look at where folders really are.

use std::fs;
use std::path::Path;

use reasonix_core::protocol::schema::{SessionId, SessionInfo};

use crate::exit::Failure;

/// Fewest characters of an id that are shown.
const SHORT: usize = 8;

/// Sessions that an ambiguous beginning names, at most.
const NAMED: usize = 5;

/// The session whose id is `asked` or the only one that begins so.
pub fn by_id<'a>(all: &'a [SessionInfo], asked: &str) -> Result<&'a SessionInfo, Failure> {
    if SessionId::checked(asked).is_err() {
        return Err(Failure::usage(format!(
            "`{}` is no session id: give an id, or the beginning of one, as `sessions list` shows it",
            asked.escape_default()
        )));
    }
    let id = |session: &SessionInfo| session.session_id.as_str() == asked;
    if let Some(session) = all.iter().find(|session| id(session)) {
        return Ok(session);
    }
    let found: Vec<_> = all
        .iter()
        .filter(|session| session.session_id.as_str().starts_with(asked))
        .collect();
    match found[..] {
        [session] => Ok(session),
        [] => Err(Failure::usage(format!(
            "there is no session {asked}; `sessions list --all` shows which there are"
        ))),
        _ => {
            let mut message = format!("{} sessions begin with {asked}:", found.len());
            for session in found.iter().take(NAMED) {
                message.push_str(&format!("\n  {}", session.session_id));
            }
            if found.len() > NAMED {
                message.push_str("\n  …");
            }
            Err(Failure::usage(message))
        }
    }
}

/// The newest session of `folder`.
pub fn newest<'a>(all: &'a [SessionInfo], folder: &str) -> Result<&'a SessionInfo, Failure> {
    let mut here = all
        .iter()
        .filter(|session| same_folder(&session.cwd, folder));
    here.next().ok_or_else(|| {
        Failure::usage(format!(
            "there is no session of {folder} yet; `sessions list --all` shows those of other folders"
        ))
    })
}

/// Whether two paths lead to one folder. Clients name folders as they like: by a link, with a
/// slash at the end.
pub fn same_folder(one: &str, other: &str) -> bool {
    let same = |one: &Path, other: &Path| one.components().eq(other.components());
    same(one.as_ref(), other.as_ref())
        || match (fs::canonicalize(one), fs::canonicalize(other)) {
            (Ok(one), Ok(other)) => same(&one, &other),
            (Err(_), _) | (_, Err(_)) => false,
        }
}

/// How many characters of each id tell all of them apart.
pub fn short_length(all: &[SessionInfo]) -> usize {
    let mut ids: Vec<_> = all
        .iter()
        .map(|session| session.session_id.as_str())
        .collect();
    ids.sort_unstable();
    let shared = |pair: &[&str]| {
        let both = pair[0].bytes().zip(pair[1].bytes());
        both.take_while(|(one, other)| one == other).count()
    };
    let longest = ids.windows(2).map(shared).max().unwrap_or(0);
    SHORT.max(longest + 1)
}

/// The first `length` characters of an id.
pub fn short(id: &SessionId, length: usize) -> &str {
    // Ids are ASCII.
    id.as_str().get(..length).unwrap_or(id.as_str())
}

/// The beginning of an id where there is no list to tell it apart from others.
pub fn probably_short(id: &SessionId) -> &str {
    short(id, SHORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(ids: &[&str]) -> Vec<SessionInfo> {
        let info = |id: &&str| SessionInfo::new(*id, "/w");
        ids.iter().map(info).collect()
    }

    #[track_caller]
    fn check(ids: &[&str], asked: &str, wanted: Result<&str, &str>) {
        let all = sessions(ids);
        let found = by_id(&all, asked);
        match (found, wanted) {
            (Ok(found), Ok(wanted)) => assert_eq!(found.session_id.as_str(), wanted),
            (Err(why), Err(wanted)) => {
                assert!(why.message.contains(wanted), "{why}");
                assert_eq!(why.exit, crate::exit::Exit::Usage);
            }
            (found, wanted) => panic!("{asked}: {found:?}, not {wanted:?}"),
        }
    }

    #[test]
    fn the_beginning_of_an_id_is_enough_if_only_one_has_it() {
        let ids = ["ab12", "ab13", "c", "cd"];
        check(&ids, "ab12", Ok("ab12"));
        check(&ids, "ab13", Ok("ab13"));
        check(&ids, "c", Ok("c"));
        check(&ids, "cd", Ok("cd"));
        check(&ids, "ab", Err("2 sessions begin with ab:\n  ab12\n  ab13"));
        check(&ids, "b", Err("no session b"));
        check(&[], "a", Err("no session a"));
    }

    #[test]
    fn what_could_be_a_path_is_no_id() {
        for asked in ["../ab12", "/ab12", "ab12/", "..", ".", "", "a b", "~"] {
            check(&["ab12"], asked, Err("no session id"));
        }
    }

    #[test]
    fn short_ids_are_long_enough() {
        assert_eq!(short_length(&[]), 8);
        assert_eq!(short_length(&sessions(&["a", "b"])), 8);
        assert_eq!(
            short_length(&sessions(&["0123456789a", "x", "0123456789b"])),
            11
        );
        let id = SessionId::from("0123456789");
        assert_eq!(short(&id, 8), "01234567");
        assert_eq!(short(&id, 99), "0123456789");
    }

    #[cfg(unix)]
    #[test]
    fn folders_are_compared_by_where_they_lead() {
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder.path().join("real");
        let link = folder.path().join("link");
        fs::create_dir(&real).expect("made");
        std::os::unix::fs::symlink(&real, &link).expect("made");
        let [real, link] = [real, link].map(|path| path.to_str().expect("text").to_owned());
        assert!(same_folder(&real, &link));
        assert!(same_folder(&real, &format!("{real}/")));
        assert!(!same_folder(&real, &format!("{real}/..")));
        assert!(same_folder("/gone/x", "/gone/./x/"));
        assert!(!same_folder("/gone/x", "/gone/y"));
    }
}
