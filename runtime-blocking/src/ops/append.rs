//! Bytes at the end of a file, durable where that is asked: the file, and every name on the way to
//! it. What the bytes are and when they must last is decided in the machine.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use reasonix_core::call::Append;
use reasonix_core::error::IoFault;

use super::files::regular;
use super::place::{Parents, Place};
use super::{fault, resolve};

/// Most files that are remembered; beyond it names are synced once more than they need.
const MAX_NAMES: usize = 1024;

/// The files whose names are durable: a file that was made without a sync, and the folders made
/// for it, are synced with the first bytes that must last. Files of earlier processes too, since
/// those may have ended in between.
#[derive(Debug, Default)]
pub struct Names(Mutex<BTreeMap<PathBuf, FileId>>);

/// Which file has a name.
pub(super) type FileId = (u64, u64);

impl Names {
    /// Says that what is at this path, or beneath it, is not the file it was.
    pub(super) fn forget(&self, real: &Path) {
        self.lock().retain(|path, _| !path.starts_with(real));
    }

    fn has(&self, real: &Path, id: FileId) -> bool {
        self.lock().get(real) == Some(&id)
    }

    fn add(&self, real: &Path, id: FileId) {
        let mut names = self.lock();
        if names.len() >= MAX_NAMES {
            names.clear();
        }
        names.insert(real.to_owned(), id);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, FileId>> {
        // Nothing that could panic is done under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds bytes to the end of a file. The file and missing folders, its root too, are made for us
/// alone.
///
/// # Errors
///
/// `Full`, `TooLarge`, `Denied`, `Escapes`; `WrongKind` if it is no regular file: a link is not
/// followed, and a pipe not opened, so that it cannot make this wait. What was written of bytes
/// that did not fit is taken back where the system lets us.
pub fn append(append: &Append, names: &Names) -> Result<(), IoFault> {
    let path = append.path.as_str();
    let tell = |e: io::Error| fault("write", path, &e);
    let real = resolve::real_parent(path)?;
    let place = Place::of(real, Some(&append.beneath), Parents::Private)?;
    match place.metadata() {
        Ok(data) => regular(path, &data)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(tell(error)),
    }
    let (mut file, made) = place.open_or_make(true).map_err(tell)?;
    let data = file.metadata().map_err(tell)?;
    // Once more: it may have been swapped in between.
    regular(path, &data)?;
    if made {
        names.forget(place.real());
    }
    if let Err(error) = file.write_all(&append.bytes) {
        let _ = file.set_len(data.len());
        return Err(tell(error));
    }
    if !append.durable {
        return Ok(());
    }
    let id = id(&data);
    if names.has(place.real(), id) {
        return file.sync_data().map_err(tell);
    }
    file.sync_all()
        .and_then(|()| place.sync_way())
        .map_err(tell)?;
    names.add(place.real(), id);
    Ok(())
}

#[cfg(unix)]
pub(super) fn id(data: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (data.dev(), data.ino())
}

#[cfg(not(unix))]
pub(super) fn id(_data: &Metadata) -> FileId {
    (0, 0)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::ops::testing::{again, dir, kind, links, own_process};
    use crate::ops::{Kept, files};
    use reasonix_core::error::IoKind;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn to(root: &str, path: &str, bytes: &str, durable: bool) -> Append {
        Append {
            path: format!("{root}/{path}"),
            beneath: root.to_owned(),
            bytes: bytes.into(),
            durable,
        }
    }

    fn mode(path: &str) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o7777
    }

    #[test]
    fn a_file_and_its_folders_are_made_for_us_alone_and_grow() {
        let (_keep, w) = dir();
        let home = format!("{w}/no/home");
        let names = Names::default();
        for (bytes, durable) in [("one\n", false), ("two\n", true), ("three\n", false)] {
            append(&to(&home, "sessions/a/t", bytes, durable), &names).expect("added");
        }
        let file = format!("{home}/sessions/a/t");
        assert_eq!(
            fs::read_to_string(&file).expect("there"),
            "one\ntwo\nthree\n"
        );
        for dir in [
            &format!("{w}/no"),
            &home,
            &format!("{home}/sessions"),
            &format!("{home}/sessions/a"),
        ] {
            assert_eq!(mode(dir), 0o700, "{dir}");
        }
        assert_eq!(mode(&file), 0o600);
    }

    #[test]
    fn names_are_made_durable_once_and_again_for_another_file() {
        let (_keep, home) = dir();
        let kept = Kept::default();
        let names = &kept.0.names;
        let known = || {
            let real = Path::new(&home).join("s/t");
            fs::metadata(&real).is_ok_and(|data| names.has(&real, id(&data)))
        };
        let add = |durable| append(&to(&home, "s/t", "x", durable), names).expect("added");
        add(false);
        assert!(!known(), "made, but nothing was synced");
        add(true);
        assert!(known());
        add(false);
        assert!(known(), "its names are what they were");
        files::remove_tree(&format!("{home}/s"), &home, &kept).expect("removed");
        add(false);
        assert!(!known(), "a new file, whatever its number is");
        add(true);
        fs::write(format!("{home}/new"), "").expect("written");
        fs::rename(format!("{home}/new"), format!("{home}/s/t")).expect("moved");
        assert!(!known(), "another file has the name");
        add(true);
        assert!(known());
        for n in 0..MAX_NAMES + 10 {
            names.add(&Path::new(&home).join(n.to_string()), (1, 1));
        }
        assert!(names.lock().len() <= MAX_NAMES);
    }

    #[test]
    fn nothing_but_a_file_beneath_the_root_is_added_to() {
        let (_keep, w) = dir();
        let home = links(&w);
        let pipe = format!("{home}/pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo runs").success());
        let names = Names::default();
        for durable in [false, true] {
            for (path, want) in [
                ("out/t", IoKind::Escapes),
                ("out/new/t", IoKind::Escapes),
                ("s/out/t", IoKind::Escapes),
                ("../t", IoKind::Escapes),
                ("dangling/t", IoKind::Escapes),
                ("s/to_file", IoKind::WrongKind),
                ("s/to_outside", IoKind::WrongKind),
                ("s/to_nothing", IoKind::WrongKind),
                ("s", IoKind::WrongKind),
                ("pipe", IoKind::WrongKind),
                ("s/file/t", IoKind::NotFound),
            ] {
                let got = append(&to(&home, path, "x", durable), &names);
                assert_eq!(kind(got), want, "{path}");
            }
        }
        let null = append(&to("/dev", "null", "x", true), &names);
        assert_eq!(kind(null), IoKind::WrongKind);
        let outside: Vec<_> = fs::read_dir(format!("{w}/outside"))
            .expect("there")
            .collect();
        assert_eq!(outside.len(), 1, "nothing was made there");
        let secret = fs::read_to_string(format!("{w}/outside/secret"));
        assert_eq!(secret.expect("there"), "s");
        assert!(fs::metadata(format!("{w}/gone")).is_err());
        append(&to(&home, "inside/new", "x", true), &names).expect("a link that stays inside");
        assert!(fs::metadata(format!("{home}/s/new")).is_ok());
    }

    #[test]
    fn a_root_that_became_a_link_is_not_followed() {
        let (_keep, w) = dir();
        let root = format!("{w}/root");
        fs::create_dir(&root).expect("made");
        let names = Names::default();
        append(&to(&root, "t", "x", true), &names).expect("it is a folder");
        fs::rename(&root, format!("{w}/other")).expect("moved");
        symlink(format!("{w}/other"), &root).expect("linked");
        for durable in [false, true] {
            let got = append(&to(&root, "t", "y", durable), &names);
            assert_eq!(kind(got), IoKind::Escapes);
        }
        let text = fs::read_to_string(format!("{w}/other/t")).expect("there");
        assert_eq!(text, "x");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_folder_that_takes_nothing_says_so() {
        // One that takes nothing from the superuser either.
        let got = append(
            &to("/sys/kernel", "reasonix", "x", false),
            &Names::default(),
        );
        assert_eq!(kind(got), IoKind::Denied);
    }

    #[test]
    fn what_does_not_fit_is_told_and_taken_back() {
        if !own_process() {
            return again("ops::append::tests::what_does_not_fit_is_told_and_taken_back");
        }
        use rustix::process::{Resource, Rlimit, setrlimit};
        let came = std::sync::Arc::default();
        signal_hook::flag::register(signal_hook::consts::SIGXFSZ, came).expect("registered");
        let limit = Rlimit {
            current: Some(10_000),
            maximum: None,
        };
        setrlimit(Resource::Fsize, limit).expect("it may be lowered");
        let (_keep, home) = dir();
        let names = Names::default();
        append(&to(&home, "t", "a line\n", true), &names).expect("it fits");
        let much = append(&to(&home, "t", &"x".repeat(100_000), false), &names);
        let fault = much.expect_err("it does not fit");
        assert_eq!(fault.kind, IoKind::TooLarge);
        assert!(fault.message.starts_with("cannot write "), "{fault}");
        let text = fs::read_to_string(format!("{home}/t")).expect("there");
        assert_eq!(text, "a line\n", "no part of it is left");
    }
}
