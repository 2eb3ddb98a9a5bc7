//! A directory removed with all it holds, from one open directory to the next, so that a link that
//! is put in the way is removed and never followed. Knows nothing of paths.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Directories in each other; each holds a descriptor while it is emptied.
const MAX_DEPTH: usize = 128;

/// How often a directory that others fill meanwhile is emptied again.
const TRIES: usize = 4;

/// Removes `name` of this directory, whatever it is. Nothing there is no fault.
pub(super) fn remove(dir: impl AsFd, name: &OsStr) -> io::Result<()> {
    Ok(name.into_with_c_str(|name| remove_at(dir.as_fd(), name, MAX_DEPTH))?)
}

fn remove_at(dir: BorrowedFd<'_>, name: &CStr, depth: usize) -> rustix::io::Result<()> {
    let refused = match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // What the systems say of a directory.
        Err(error @ (Errno::ISDIR | Errno::PERM)) => error,
        Err(error) => return Err(error),
    };
    let enter = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = match openat(dir, name, enter, Mode::empty()) {
        Ok(inner) => inner,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(refused),
        Err(error) => return Err(error),
    };
    let depth = depth.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
    for _ in 0..TRIES {
        for name in names(&inner)? {
            remove_at(inner.as_fd(), &name, depth)?;
        }
        match unlinkat(dir, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::NOTEMPTY)
}

fn names(dir: impl AsFd) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let name = entry?.file_name().to_owned();
        if name.as_bytes() != b"." && name.as_bytes() != b".." {
            names.push(name);
        }
    }
    Ok(names)
}
