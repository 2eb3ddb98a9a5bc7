//! The entries of a directory.

use std::fs;
use std::path::Path;

use reasonix_core::call::{Entry, FileKind, Listing};
use reasonix_core::error::{IoFault, IoKind};

use super::{fault, resolve};

/// The entries of the directory at `path`, sorted by name, at most `max` of them.
///
/// # Errors
///
/// `NotFound`, `Denied`, and `WrongKind` if it is no directory.
pub fn list(path: &str, max: usize) -> Result<Listing, IoFault> {
    let data = fs::metadata(path).map_err(|e| fault("list", path, &e))?;
    if !data.is_dir() {
        return Err(IoFault::new(
            IoKind::WrongKind,
            format!("{path} is not a directory"),
        ));
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(|e| fault("list", path, &e))? {
        names.push(entry.map_err(|e| fault("list", path, &e))?.file_name());
    }
    names.sort();
    let more = names.len().saturating_sub(max);
    names.truncate(max);
    let entries = names
        .into_iter()
        .map(|name| {
            let at = Path::new(path).join(&name);
            let link = fs::symlink_metadata(&at).is_ok_and(|data| data.is_symlink());
            let (kind, size) = match fs::metadata(&at) {
                Ok(data) => (resolve::kind(&data), data.len()),
                Err(_) if link => (FileKind::Dangling, 0),
                Err(_) => (FileKind::Missing, 0), // removed since the names were read
            };
            Entry {
                name: name.to_string_lossy().into_owned(),
                kind,
                link,
                size,
            }
        })
        .collect();
    Ok(Listing { entries, more })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::ops::testing::dir;

    #[test]
    fn entries_are_sorted_and_links_are_what_they_lead_to() {
        let (_keep, w) = dir();
        fs::write(format!("{w}/b"), "12345").expect("written");
        fs::create_dir(format!("{w}/a")).expect("made");
        std::os::unix::fs::symlink("a", format!("{w}/c")).expect("linked");
        std::os::unix::fs::symlink("gone", format!("{w}/d")).expect("linked");
        let all = list(&w, 10).expect("it can be read");
        let got: Vec<_> = all
            .entries
            .iter()
            .map(|e| (e.name.as_str(), e.kind, e.link))
            .collect();
        let want = [
            ("a", FileKind::Directory, false),
            ("b", FileKind::File, false),
            ("c", FileKind::Directory, true),
            ("d", FileKind::Dangling, true),
        ];
        assert_eq!(got, want);
        assert_eq!(all.more, 0);
        assert_eq!(all.entries[1].size, 5);
        let some = list(&w, 3).expect("it can be read");
        assert_eq!((some.entries.len(), some.more), (3, 1));
        let kind = |path: String| list(&path, 1).expect_err("no directory").kind;
        assert_eq!(kind(format!("{w}/b")), IoKind::WrongKind);
        assert_eq!(kind(format!("{w}/x")), IoKind::NotFound);
    }
}
