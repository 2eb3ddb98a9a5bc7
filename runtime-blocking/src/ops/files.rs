//! Files read, written, removed and moved. What may be touched is decided in the machine; here it
//! is kept beneath its root and done as a whole or not at all.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, Write as _};

use reasonix_core::call::{Contents, Expect, Part, Write};
use reasonix_core::error::{IoFault, IoKind};
use sha2::{Digest, Sha256};

use super::place::{Parents, Place};
use super::{Kept, fault, resolve};

/// A whole file.
///
/// # Errors
///
/// `NotFound`, `Denied`, `Escapes`; `WrongKind` if it is no regular file (it is not opened then, so
/// a pipe cannot make this wait); `TooLarge` over `max` bytes.
pub fn read(path: &str, beneath: Option<&str>, max: u64) -> Result<Contents, IoFault> {
    let tell = |e: io::Error| fault("read", path, &e);
    let file = open(path, beneath)?;
    let bytes = contents(file, max).map_err(tell)?.ok_or_else(|| {
        IoFault::new(
            IoKind::TooLarge,
            format!("{path} has more than {max} bytes"),
        )
    })?;
    Ok(Contents { bytes })
}

/// The part of a file that begins `at` bytes from its beginning, at most `max` bytes long; empty at
/// the end and behind it.
///
/// # Errors
///
/// As [`read`], never `TooLarge`.
pub fn read_at(path: &str, beneath: &str, at: u64, max: usize) -> Result<Part, IoFault> {
    let tell = |e: io::Error| fault("read", path, &e);
    let mut file = open(path, Some(beneath))?;
    let mut size = file.metadata().map_err(tell)?.len();
    let mut bytes = Vec::new();
    if at < size {
        // Bounded by what is there, so that a large `max` costs nothing.
        let there = usize::try_from(size - at).unwrap_or(usize::MAX);
        bytes.reserve_exact(there.min(max));
        file.seek(io::SeekFrom::Start(at)).map_err(tell)?;
        file.take(max as u64)
            .read_to_end(&mut bytes)
            .map_err(tell)?;
    }
    if !bytes.is_empty() {
        // It may have grown since.
        size = size.max(at.saturating_add(bytes.len() as u64));
    }
    Ok(Part { bytes, size })
}

/// A whole file replaced or made.
///
/// # Errors
///
/// `Changed` or `Exists` if what is there is not what was expected, `WrongKind` if it is no regular
/// file, `Full`, `Denied`, `Escapes`, `NotFound` without its parent. Nothing is written then (to a
/// file with several names: perhaps a part, if the disk fails in between).
pub fn write(write: &Write) -> Result<(), IoFault> {
    let path = write.path.as_str();
    let tell = |e: io::Error| fault("write", path, &e);
    let make = write.parents && !matches!(write.expect, Expect::Digest(_));
    let parents = if make {
        Parents::Made
    } else {
        Parents::Expected
    };
    let beneath = write.beneath.as_deref();
    let place = match Place::of(resolve::real(path)?, beneath, parents) {
        Err(fault) if fault.kind == IoKind::NotFound && !make && write.parents => {
            return Err(changed(path));
        }
        place => place?,
    };
    let there = match place.metadata() {
        Ok(data) => Some(data),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(tell(error)),
    };
    if let Some(data) = &there {
        regular(path, data)?;
    }
    match (&write.expect, &there) {
        (Expect::Anything, _) | (Expect::Absent, None) => {}
        (Expect::Absent, Some(_)) => {
            return Err(IoFault::new(
                IoKind::Exists,
                format!("{path} exists already"),
            ));
        }
        (Expect::Digest(_), None) => return Err(changed(path)),
        (Expect::Digest(digest), Some(_)) => {
            if digest_of(place.open(false).map_err(tell)?).map_err(tell)? != *digest {
                return Err(changed(path));
            }
        }
    }
    match &there {
        Some(data) if names(data) > 1 => in_place(&place, &write.bytes).map_err(tell),
        _ => replace(&place, there.as_ref(), write).map_err(tell),
    }
}

/// A file removed; a link itself, not what it leads to.
///
/// # Errors
///
/// `NotFound`, `Denied`, `Escapes`; `WrongKind` for a directory.
pub fn remove(path: &str, beneath: Option<&str>) -> Result<(), IoFault> {
    let tell = |e: io::Error| fault("remove", path, &e);
    let place = Place::of(resolve::real_parent(path)?, beneath, Parents::Expected)?;
    if place.metadata().map_err(tell)?.is_dir() {
        return Err(IoFault::new(
            IoKind::WrongKind,
            format!("{path} is a directory"),
        ));
    }
    place.remove().map_err(tell)?;
    place.sync().map_err(tell)
}

/// Whatever is there removed, a folder with all it holds; nothing there is no fault. Links are
/// removed, not followed. A lock in it is given back when its file is gone, so that nobody takes
/// one that will not last.
///
/// # Errors
///
/// `Denied`, `Escapes`. What could be removed before is gone then.
pub fn remove_tree(path: &str, beneath: &str, kept: &Kept) -> Result<(), IoFault> {
    let tell = |e: io::Error| fault("remove", path, &e);
    let real = resolve::real_parent(path)?;
    match Place::of(real.clone(), Some(beneath), Parents::Expected) {
        Ok(place) => {
            place.remove_tree().map_err(tell)?;
            place.sync().map_err(tell)?;
        }
        Err(fault) if fault.kind == IoKind::NotFound => {}
        Err(fault) => return Err(fault),
    }
    kept.0.names.forget(&real);
    kept.0.locks.unlock_in(&real);
    Ok(())
}

/// A file moved, never over an existing one; missing parents of `to` are made.
///
/// # Errors
///
/// `Exists`, `NotFound`, `Denied`, `Escapes`; `Unsupported` from one file system to another.
pub fn rename(from: &str, to: &str, beneath: Option<(&str, &str)>) -> Result<(), IoFault> {
    let tell = |e: io::Error| {
        if e.kind() == io::ErrorKind::CrossesDevices {
            let message = format!("cannot move {from} to {to}: they are on different file systems");
            return IoFault::new(IoKind::Unsupported, message);
        }
        fault("move", &format!("{from} to {to}"), &e)
    };
    let root = beneath.map(|b| b.0);
    let source = Place::of(resolve::real_parent(from)?, root, Parents::Expected)?;
    source.metadata().map_err(|e| fault("move", from, &e))?;
    let root = beneath.map(|b| b.1);
    let target = Place::of(resolve::real_parent(to)?, root, Parents::Made)?;
    source.move_to(&target).map_err(tell)?;
    target.sync().and_then(|()| source.sync()).map_err(tell)
}

/// A regular file, open for reading.
fn open(path: &str, beneath: Option<&str>) -> Result<File, IoFault> {
    let place = Place::of(resolve::real(path)?, beneath, Parents::Expected)?;
    let tell = |e: io::Error| fault("read", path, &e);
    regular(path, &place.metadata().map_err(tell)?)?;
    let file = place.open(false).map_err(tell)?;
    // Once more: it may have been swapped in between.
    regular(path, &file.metadata().map_err(tell)?)?;
    Ok(file)
}

/// A new file takes the old one's name when all of it is on the disk.
fn replace(place: &Place, there: Option<&Metadata>, write: &Write) -> io::Result<()> {
    let mut temporary = place.temporary()?;
    match there {
        Some(data) => like(&temporary.file, data)?,
        None if write.private => close(&temporary.file)?,
        None => {}
    }
    temporary.file.write_all(&write.bytes)?;
    temporary.file.sync_all()?;
    temporary.keep(write.expect != Expect::Absent)?;
    place.sync()
}

/// The other names of the file must see the change, so it cannot be a new file.
fn in_place(place: &Place, bytes: &[u8]) -> io::Result<()> {
    let mut file = place.open(true)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_all()
}

fn contents(file: File, max: u64) -> io::Result<Option<Vec<u8>>> {
    let size = file.metadata()?.len();
    if size > max {
        return Ok(None);
    }
    // Bounded by the check above, so that it fits a usize wherever `max` does.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max).then_some(bytes))
}

fn digest_of(mut file: File) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut buf = vec![0; 64 << 10];
    loop {
        match file.read(&mut buf)? {
            0 => return Ok(hash.finalize().into()),
            count => hash.update(&buf[..count]),
        }
    }
}

pub(super) fn regular(path: &str, data: &Metadata) -> Result<(), IoFault> {
    let what = if data.is_file() {
        return Ok(());
    } else if data.is_dir() {
        "a directory"
    } else if data.is_symlink() {
        "a link"
    } else {
        special(data)
    };
    Err(IoFault::new(
        IoKind::WrongKind,
        format!("{path} is {what}, not a file"),
    ))
}

#[cfg(unix)]
fn special(data: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let kind = data.file_type();
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn special(_data: &Metadata) -> &'static str {
    "a pipe, socket or device"
}

fn changed(path: &str) -> IoFault {
    IoFault::new(IoKind::Changed, format!("{path} has changed"))
}

#[cfg(unix)]
fn names(data: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(data)
}

/// Gives the new file the owner and the mode of the old one. The owner may be refused: then it is
/// ours, as with every file we make.
#[cfg(unix)]
fn like(file: &File, data: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    if (ours.uid(), ours.gid()) != (data.uid(), data.gid()) {
        let _ = std::os::unix::fs::fchown(file, Some(data.uid()), Some(data.gid()));
    }
    file.set_permissions(data.permissions())
}

/// Nobody else may read it.
#[cfg(unix)]
fn close(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn close(_file: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn names(_data: &Metadata) -> u64 {
    1
}

#[cfg(not(unix))]
fn like(file: &File, data: &Metadata) -> io::Result<()> {
    file.set_permissions(data.permissions())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::ops::testing::{again, command_again, dir, kind, links, own_process};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn to(path: &str, bytes: &str) -> Write {
        Write {
            path: path.to_owned(),
            beneath: None,
            bytes: bytes.into(),
            expect: Expect::Anything,
            parents: false,
            private: false,
        }
    }

    fn text(path: &str) -> String {
        fs::read_to_string(path).expect("it is there")
    }

    fn names_in(dir: &str) -> usize {
        fs::read_dir(dir).expect("it is there").count()
    }

    #[test]
    fn a_save_is_whole_and_keeps_the_mode() {
        let (_keep, w) = dir();
        let path = format!("{w}/run.sh");
        fs::write(&path, "old").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        let inode = fs::metadata(&path).expect("there").ino();
        write(&to(&path, "new")).expect("written");
        let data = fs::metadata(&path).expect("there");
        assert_eq!((text(&path).as_str(), data.mode() & 0o7777), ("new", 0o755));
        assert_ne!(data.ino(), inode, "a new file took the name");
        assert_eq!(names_in(&w), 1, "no temporary file is left");
    }

    /// A write of five million of this byte.
    fn much(path: &str, byte: u8) -> Write {
        Write {
            bytes: vec![byte; 5_000_000],
            ..to(path, "")
        }
    }

    #[test]
    fn who_is_killed_while_saving_leaves_the_old_or_the_new_and_the_mode() {
        const NAME: &str =
            "ops::files::tests::who_is_killed_while_saving_leaves_the_old_or_the_new_and_the_mode";
        if own_process() {
            let path = std::env::var("REASONIX_TEST_FILE").expect("it is given");
            println!("\nbegins");
            for byte in b"ab".iter().cycle() {
                write(&much(&path, *byte)).expect("written");
            }
        }
        let (_keep, w) = dir();
        let path = format!("{w}/run.sh");
        fs::write(&path, "a").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        for n in 0..12 {
            let mut child = command_again(NAME)
                .env("REASONIX_TEST_FILE", &path)
                .stdout(std::process::Stdio::piped())
                .spawn()
                .expect("it starts");
            let out = std::io::BufReader::new(child.stdout.take().expect("piped"));
            let began = std::io::BufRead::lines(out).map_while(Result::ok);
            assert!(began.into_iter().any(|line| line == "begins"));
            // Not an order of events: the end comes wherever it comes.
            std::thread::sleep(std::time::Duration::from_micros(2_500 * n));
            child.kill().expect("it runs");
            child.wait().expect("it ended");
            let text = text(&path);
            let same = text.bytes().all(|byte| byte == text.as_bytes()[0]);
            assert!(
                same && matches!(text.len(), 1 | 5_000_000),
                "{}",
                text.len()
            );
            let mode = fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o755);
        }
    }

    #[test]
    fn what_does_not_fit_leaves_the_old_and_nothing_beside_it() {
        if !own_process() {
            return again(
                "ops::files::tests::what_does_not_fit_leaves_the_old_and_nothing_beside_it",
            );
        }
        use rustix::process::{Resource, Rlimit, setrlimit};
        let came = std::sync::Arc::default();
        signal_hook::flag::register(signal_hook::consts::SIGXFSZ, came).expect("registered");
        let limit = Rlimit {
            current: Some(10_000),
            maximum: None,
        };
        setrlimit(Resource::Fsize, limit).expect("it may be lowered");
        let (_keep, w) = dir();
        let path = format!("{w}/f");
        fs::write(&path, "old").expect("written");
        assert_eq!(kind(write(&much(&path, b'x'))), IoKind::TooLarge);
        assert_eq!((text(&path).as_str(), names_in(&w)), ("old", 1));
    }

    #[test]
    fn a_private_file_is_made_for_its_owner_alone() {
        let (_keep, w) = dir();
        let path = format!("{w}/state.json");
        for mode in [0o600, 0o640] {
            let mut save = to(&path, "{}");
            save.private = true;
            write(&save).expect("written");
            let data = fs::metadata(&path).expect("there");
            assert_eq!(
                data.mode() & 0o7777,
                mode,
                "that of the file that was there"
            );
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
        }
    }

    #[test]
    fn a_save_goes_through_links_and_keeps_other_names_together() {
        let (_keep, w) = dir();
        let (real, link, hard) = (format!("{w}/real"), format!("{w}/cur"), format!("{w}/hard"));
        fs::write(&real, "x").expect("written");
        symlink("real", &link).expect("linked");
        write(&to(&link, "y")).expect("written");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(text(&real), "y");
        fs::hard_link(&real, &hard).expect("linked");
        write(&to(&real, "longer")).expect("written");
        assert_eq!(
            (text(&real), text(&hard)),
            ("longer".into(), "longer".into())
        );
        write(&to(&hard, "z")).expect("written");
        assert_eq!(text(&real), "z");
        symlink("fresh", format!("{w}/ahead")).expect("linked");
        write(&to(&format!("{w}/ahead"), "made")).expect("written");
        assert_eq!(text(&format!("{w}/fresh")), "made");
    }

    #[test]
    fn what_was_not_expected_is_not_overwritten() {
        let (_keep, w) = dir();
        let path = format!("{w}/a");
        let expecting = |expect| Write {
            expect,
            ..to(&path, "new")
        };
        let old: [u8; 32] = Sha256::digest("old").into();
        assert_eq!(
            kind(write(&expecting(Expect::Digest(old)))),
            IoKind::Changed
        );
        write(&expecting(Expect::Absent)).expect("nothing is there");
        assert_eq!(kind(write(&expecting(Expect::Absent))), IoKind::Exists);
        assert_eq!(
            kind(write(&expecting(Expect::Digest(old)))),
            IoKind::Changed
        );
        fs::write(&path, "old").expect("written");
        write(&expecting(Expect::Digest(old))).expect("as expected");
        assert_eq!((text(&path).as_str(), names_in(&w)), ("new", 1));
    }

    #[test]
    fn nothing_leaves_its_root() {
        let (_keep, w) = dir();
        let root = format!("{w}/root");
        fs::create_dir_all(format!("{root}/in")).expect("made");
        fs::write(format!("{w}/secret"), "s").expect("written");
        symlink("..", format!("{root}/up")).expect("linked");
        symlink(format!("{root}/in"), format!("{root}/inside")).expect("linked");
        let beneath = |path: &str| Write {
            beneath: Some(root.clone()),
            parents: true,
            private: false,
            ..to(&format!("{root}/{path}"), "n")
        };
        for path in ["up/secret", "../secret", "up/new/deep"] {
            assert_eq!(kind(write(&beneath(path))), IoKind::Escapes, "{path}");
            let path = format!("{root}/{path}");
            assert_eq!(kind(read(&path, Some(&root), 9)), IoKind::Escapes);
            assert_eq!(kind(remove(&path, Some(&root))), IoKind::Escapes);
            let roots = Some((root.as_str(), root.as_str()));
            let inner = format!("{root}/in/x");
            assert_eq!(kind(rename(&path, &inner, roots)), IoKind::Escapes);
        }
        assert_eq!(
            (text(&format!("{w}/secret")).as_str(), names_in(&w)),
            ("s", 2)
        );
        write(&beneath("inside/a/b/c")).expect("a link that stays inside is followed");
        assert_eq!(text(&format!("{root}/in/a/b/c")), "n");
        remove(&format!("{root}/up"), Some(&root)).expect("the link itself is inside");
    }

    #[test]
    fn only_files_are_read_and_nothing_waits() {
        let (_keep, w) = dir();
        let pipe = format!("{w}/p");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo runs").success());
        for path in [pipe.as_str(), "/dev/zero", w.as_str()] {
            assert_eq!(kind(read(path, None, 100)), IoKind::WrongKind, "{path}");
            assert_eq!(kind(write(&to(path, "x"))), IoKind::WrongKind, "{path}");
        }
        let file = format!("{w}/f");
        fs::write(&file, "12345").expect("written");
        assert_eq!(read(&file, None, 5).expect("it fits").bytes, b"12345");
        assert_eq!(kind(read(&file, None, 4)), IoKind::TooLarge);
        assert_eq!(kind(read("/proc/self/status", None, 4)), IoKind::TooLarge);
        assert_eq!(kind(read(&format!("{w}/none"), None, 4)), IoKind::NotFound);
        assert_eq!(kind(remove(&w, None)), IoKind::WrongKind);
    }

    #[test]
    fn a_move_makes_parents_and_replaces_nothing() {
        let (_keep, w) = dir();
        let (a, b, c) = (format!("{w}/a"), format!("{w}/b"), format!("{w}/x/y/c"));
        fs::write(&a, "a").expect("written");
        fs::write(&b, "b").expect("written");
        assert_eq!(kind(rename(&a, &b, None)), IoKind::Exists);
        assert_eq!(kind(rename(&format!("{w}/no"), &b, None)), IoKind::NotFound);
        rename(&a, &c, Some((&w, &w))).expect("moved");
        assert_eq!((text(&c), text(&b)), ("a".into(), "b".into()));
        assert!(fs::metadata(&a).is_err());
        remove(&c, Some(&w)).expect("removed");
        assert_eq!(kind(remove(&c, Some(&w))), IoKind::NotFound);
    }

    #[test]
    fn a_part_is_read_and_the_whole_is_measured() {
        let (_keep, w) = dir();
        let home = links(&w);
        let path = format!("{home}/s/file");
        fs::write(&path, "0123456789").expect("written");
        for (at, max, part) in [
            (0, 4, "0123"),
            (4, 4, "4567"),
            (8, 4, "89"),
            (0, usize::MAX, "0123456789"),
            (3, 0, ""),
            (10, 4, ""),
            (u64::MAX, 4, ""),
        ] {
            let got = read_at(&path, &home, at, max).expect("it is there");
            let want = Part {
                bytes: part.into(),
                size: 10,
            };
            assert_eq!(got, want, "{at} {max}");
        }
        for (path, want) in [
            ("s", IoKind::WrongKind),
            ("none", IoKind::NotFound),
            ("none/none", IoKind::NotFound),
            ("out/secret", IoKind::Escapes),
            ("s/to_outside", IoKind::Escapes),
        ] {
            let got = read_at(&format!("{home}/{path}"), &home, 0, 9);
            assert_eq!(kind(got), want, "{path}");
        }
        let inside = read_at(&format!("{home}/inside/to_file"), &home, 9, 9);
        assert_eq!(inside.expect("a link that stays inside").bytes, b"9");
        let homeless = read_at(&format!("{w}/no/f"), &format!("{w}/no"), 0, 9);
        assert_eq!(kind(homeless), IoKind::NotFound);
    }

    #[test]
    fn a_tree_goes_whole_and_nothing_that_it_links_to() {
        let (_keep, w) = dir();
        let home = links(&w);
        let kept = Kept::default();
        let remove = |path: &str| remove_tree(&format!("{home}/{path}"), &home, &kept);
        fs::create_dir_all(format!("{home}/s/deep/er")).expect("made");
        for n in 0..300 {
            fs::write(format!("{home}/s/deep/er/{n}"), "x").expect("written");
        }
        assert_eq!(kind(remove("out/secret")), IoKind::Escapes);
        assert_eq!(kind(remove("../outside")), IoKind::Escapes);
        assert_eq!(kind(remove("")), IoKind::Escapes, "not the root itself");
        for path in ["inside", "out", "dangling", "s", "s", "none/none", "s/x/y"] {
            remove(path).expect(path);
        }
        assert_eq!(names_in(&home), 0);
        assert_eq!(text(&format!("{w}/outside/secret")), "s");
        let file = format!("{home}/f");
        fs::write(&file, "x").expect("written");
        remove("f").expect("a file too");
        assert!(fs::metadata(&file).is_err());
        remove_tree(&format!("{w}/no/f"), &format!("{w}/no"), &kept).expect("no home, no tree");
    }

    #[test]
    fn a_tree_too_deep_is_refused_and_not_run_into() {
        let (_keep, w) = dir();
        let deep = format!("{w}/d{}", "/d".repeat(500));
        fs::create_dir_all(&deep).expect("made");
        let before = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        assert!(remove_tree(&format!("{w}/d"), &w, &Kept::default()).is_err());
        let after = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        assert!(after < before + 100, "descriptors are closed again");
    }
}
