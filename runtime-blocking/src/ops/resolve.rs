//! What a path really is. Must not open what it looks at.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use reasonix_core::call::{FileKind, Resolved};
use reasonix_core::error::{IoFault, IoKind};

use super::fault;

/// Links followed on the way before the path counts as a cycle; the kernel's own number.
const MAX_LINKS: usize = 40;

/// The path with every link resolved, and what is there.
///
/// # Errors
///
/// `Denied` if a directory on the way cannot be looked into, `WrongKind` for a cycle of links or a
/// path that is not absolute, `Other` if the real path is no UTF-8.
pub fn resolve(path: &str) -> Result<Resolved, IoFault> {
    let real = real(path)?;
    let link = fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink());
    let (kind, owned, links, size) = match fs::symlink_metadata(&real) {
        Ok(data) => (kind(&data), owned(&data), links(&data), data.len()),
        Err(error) if missing(&error) => {
            let kind = if link {
                FileKind::Dangling
            } else {
                FileKind::Missing
            };
            (kind, false, 0, 0)
        }
        Err(error) => return Err(fault("look at", path, &error)),
    };
    Ok(Resolved {
        real: text(real)?,
        kind,
        link,
        owned,
        links,
        size,
    })
}

/// The path with every link resolved; what does not exist is taken as it is written.
pub(crate) fn real(path: &str) -> Result<PathBuf, IoFault> {
    let mut ahead: VecDeque<OsString> = VecDeque::new();
    let mut real = PathBuf::new();
    if !Path::new(path).is_absolute() {
        return Err(IoFault::new(
            IoKind::WrongKind,
            format!("{path} is not an absolute path"),
        ));
    }
    push_front(&mut ahead, &mut real, Path::new(path));
    let mut followed = 0;
    while let Some(part) = ahead.pop_front() {
        if part == ".." {
            real.pop();
            continue;
        }
        real.push(&part);
        match fs::symlink_metadata(&real) {
            Ok(data) if data.is_symlink() => {
                followed += 1;
                if followed > MAX_LINKS {
                    return Err(IoFault::new(
                        IoKind::WrongKind,
                        format!("{path} is a cycle of links"),
                    ));
                }
                let target = fs::read_link(&real).map_err(|e| fault("follow", path, &e))?;
                real.pop();
                push_front(&mut ahead, &mut real, &target);
            }
            Ok(_) => {}
            Err(error) if missing(&error) => {}
            Err(error) => return Err(fault("look at", path, &error)),
        }
    }
    Ok(real)
}

/// The path with the links of its parents resolved, but not a link that it is itself.
pub(super) fn real_parent(path: &str) -> Result<PathBuf, IoFault> {
    let whole = Path::new(path);
    let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
        return Err(IoFault::new(
            IoKind::WrongKind,
            format!("{path} does not name a file"),
        ));
    };
    // A prefix of a `str` at a separator is a `str`.
    let mut real = real(parent.to_str().unwrap_or_default())?;
    real.push(name);
    Ok(real)
}

/// What the metadata, links followed, say a thing is.
pub(super) fn kind(data: &fs::Metadata) -> FileKind {
    if data.is_file() {
        FileKind::File
    } else if data.is_dir() {
        FileKind::Directory
    } else {
        FileKind::Special
    }
}

fn push_front(ahead: &mut VecDeque<OsString>, real: &mut PathBuf, path: &Path) {
    for (at, part) in path
        .components()
        .filter_map(|part| match part {
            Component::Prefix(_) | Component::RootDir => {
                if part == Component::RootDir || cfg!(windows) {
                    real.push(part.as_os_str());
                }
                None
            }
            Component::CurDir => None,
            Component::ParentDir => Some(OsString::from("..")),
            Component::Normal(name) => Some(name.to_owned()),
        })
        .enumerate()
    {
        ahead.insert(at, part);
    }
}

fn missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn text(path: PathBuf) -> Result<String, IoFault> {
    path.into_os_string().into_string().map_err(|name| {
        IoFault::new(
            IoKind::Other,
            format!("{} is not UTF-8", name.to_string_lossy()),
        )
    })
}

#[cfg(unix)]
fn owned(data: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(data) == rustix::process::geteuid().as_raw()
}

#[cfg(unix)]
fn links(data: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(data)
}

#[cfg(not(unix))]
fn owned(_data: &fs::Metadata) -> bool {
    true
}

#[cfg(not(unix))]
fn links(_data: &fs::Metadata) -> u64 {
    1
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::ops::testing::dir;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_kind_of_path_is_told_apart() {
        let (_keep, w) = dir();
        fs::write(format!("{w}/a.txt"), "abc").expect("written");
        fs::create_dir(format!("{w}/d")).expect("made");
        symlink("a.txt", format!("{w}/to_file")).expect("linked");
        symlink(format!("{w}/d"), format!("{w}/to_dir")).expect("linked");
        symlink("gone", format!("{w}/dangling")).expect("linked");
        symlink("cycle", format!("{w}/cycle")).expect("linked");
        fs::hard_link(format!("{w}/a.txt"), format!("{w}/d/hard")).expect("linked");
        let check = |path: &str, real: &str, kind, link, links| {
            let got = resolve(&format!("{w}/{path}")).expect("it can be looked at");
            let want = (format!("{w}/{real}"), kind, link, links);
            assert_eq!((got.real, got.kind, got.link, got.links), want, "{path}");
        };
        check("a.txt", "a.txt", FileKind::File, false, 2);
        check("to_file", "a.txt", FileKind::File, true, 2);
        check("to_dir/hard", "d/hard", FileKind::File, false, 2);
        check("to_dir/../a.txt", "a.txt", FileKind::File, false, 2);
        check("to_dir/new/deep", "d/new/deep", FileKind::Missing, false, 0);
        check("dangling", "gone", FileKind::Dangling, true, 0);
        check("a.txt/below", "a.txt/below", FileKind::Missing, false, 0);
        let fault = resolve(&format!("{w}/cycle")).expect_err("a cycle is a fault");
        assert_eq!(fault.kind, IoKind::WrongKind);
        assert!(resolve("relative").is_err());
        let null = resolve("/dev/null").expect("it is there");
        assert_eq!(null.kind, FileKind::Special);
    }
}
