//! A directory removed with all it holds, from one open directory to the next, so that a link that
//! is put in the way is removed and never followed. Knows nothing of paths.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Directories in each other; each holds a descriptor while it is emptied.
const MAX_DEPTH: usize = 128;

/// How often a directory that others fill meanwhile is emptied again.
const TRIES: usize = 4;

/// Why it went no further.
enum Stop {
    /// Somebody has made it anew meanwhile and holds a lock in it: that is not ours to remove.
    Anew,
    Failed(Errno),
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::Failed(error)
    }
}

/// Removes `name` of this directory, whatever it is. Nothing there is no fault. What others put
/// there meanwhile goes too, unless it is locked.
pub(super) fn remove(dir: impl AsFd, name: &OsStr) -> io::Result<()> {
    name.into_with_c_str(
        |name| match remove_at(dir.as_fd(), name, MAX_DEPTH, false) {
            Ok(()) | Err(Stop::Anew) => Ok(()),
            Err(Stop::Failed(error)) => Err(error),
        },
    )?;
    Ok(())
}

/// With `again` this is no first look: what is there was put there meanwhile.
fn remove_at(dir: BorrowedFd<'_>, name: &CStr, depth: usize, again: bool) -> Result<(), Stop> {
    // Held until its name is gone, so that nobody takes it in between.
    let _held = match again {
        true => hold(dir, name)?,
        false => None,
    };
    let refused = match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // What the systems say of a directory.
        Err(error @ (Errno::ISDIR | Errno::PERM)) => error,
        Err(error) => return Err(error.into()),
    };
    let enter = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = match openat(dir, name, enter, Mode::empty()) {
        Ok(inner) => inner,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(refused.into()),
        Err(error) => return Err(error.into()),
    };
    let depth = depth.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
    for pass in 0..TRIES {
        for name in names(&inner)? {
            remove_at(inner.as_fd(), &name, depth, again || pass > 0)?;
        }
        match unlinkat(dir, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::NOTEMPTY.into())
}

/// The lock of a file, if it is one that can be opened.
fn hold(dir: BorrowedFd<'_>, name: &CStr) -> Result<Option<File>, Stop> {
    // A pipe must not make us wait.
    let look = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(dir, name, look, Mode::empty()) else {
        return Ok(None);
    };
    let file = File::from(file);
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Stop::Anew),
        // Where there are no locks nobody holds one.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
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
