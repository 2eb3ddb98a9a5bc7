//! The files that a person keeps for the agent, opened by their path: regular ones only, so that
//! nothing that stands in their place (a pipe, a device, a folder) makes anybody wait or reads
//! without an end. Knows nothing of what is in them.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use reasonix_core::error::{IoFault, IoKind};

use super::fault;
use super::files::regular;

/// Whether a link as the last part of a path is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Yes: where it leads is the person's own choice.
    Followed,
    /// No: who can change where it leads would choose what is read.
    Refused,
}

/// A regular file, open for reading. Never waits, whatever is there.
///
/// # Errors
///
/// `NotFound`, `Denied`; `WrongKind`, with a message that names the path and what it is, if it is
/// no regular file.
pub fn open(path: &Path, links: Links) -> Result<File, IoFault> {
    let shown = path.display().to_string();
    let tell = |e: io::Error| fault("read", &shown, &e);
    let there = match links {
        Links::Followed => fs::metadata(path),
        Links::Refused => fs::symlink_metadata(path),
    };
    // Before it is opened: to open a device can do something to it.
    regular(&shown, &there.map_err(tell)?)?;
    let file = calm(path, links).map_err(tell)?;
    // Once more: it may have been swapped in between.
    regular(&shown, &file.metadata().map_err(tell)?)?;
    Ok(file)
}

/// The text of an open file.
///
/// # Errors
///
/// `TooLarge` over `max` bytes; `Other` if it is not UTF-8.
pub fn text(file: File, path: &Path, max: u64) -> Result<String, IoFault> {
    let shown = path.display().to_string();
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|e| fault("read", &shown, &e))?;
    if bytes.len() as u64 > max {
        let message = format!("{shown} is larger than {} KiB", max >> 10);
        return Err(IoFault::new(IoKind::TooLarge, message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        IoFault::new(
            IoKind::Other,
            format!("{shown}, line {line}: it is not UTF-8 text"),
        )
    })
}

/// Both in one; none if there is no such file.
///
/// # Errors
///
/// As the two, `NotFound` aside.
pub fn read(path: &Path, links: Links, max: u64) -> Result<Option<String>, IoFault> {
    match open(path, links) {
        Ok(file) => text(file, path, max).map(Some),
        Err(fault) if fault.kind == IoKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Opened for reading without a wait, whatever it is.
#[cfg(unix)]
pub(super) fn calm(path: &Path, links: Links) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let follow = match links {
        Links::Followed => OFlags::empty(),
        Links::Refused => OFlags::NOFOLLOW,
    };
    let calm = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, calm | follow, Mode::empty())?.into())
}

#[cfg(not(unix))]
pub(super) fn calm(path: &Path, _links: Links) -> io::Result<File> {
    File::open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::ops::testing::{dir, pipe};
    use std::os::unix::fs::symlink;

    #[track_caller]
    fn check(path: &str, links: Links, want: &str) {
        let told = match read(Path::new(path), links, 1024) {
            Ok(None) => "none".to_owned(),
            Ok(Some(text)) => text,
            Err(fault) => fault.message,
        };
        assert_eq!(told, want.replace("PATH", path));
    }

    #[test]
    fn only_a_regular_file_is_read_and_what_else_is_there_is_named() {
        let (_keep, w) = dir();
        let at = |name: &str| format!("{w}/{name}");
        pipe(&at("pipe"));
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("bound");
        for (name, bytes) in [
            ("file", b"x\n".as_slice()),
            ("long", &[b'x'; 1025]),
            ("bad", b"a\n\xff"),
        ] {
            fs::write(at(name), bytes).expect("written");
        }
        for (to, link) in [("file", "link"), ("pipe", "to_pipe"), ("gone", "dangling")] {
            symlink(to, at(link)).expect("linked");
        }
        for (name, follows, refuses) in [
            ("file", "x\n", "x\n"),
            ("none", "none", "none"),
            ("file/x", "none", "none"),
            ("dangling", "none", "PATH is a link, not a file"),
            ("link", "x\n", "PATH is a link, not a file"),
            (
                "pipe",
                "PATH is a pipe, not a file",
                "PATH is a pipe, not a file",
            ),
            (
                "to_pipe",
                "PATH is a pipe, not a file",
                "PATH is a link, not a file",
            ),
            (
                "socket",
                "PATH is a socket, not a file",
                "PATH is a socket, not a file",
            ),
            (
                "",
                "PATH is a directory, not a file",
                "PATH is a directory, not a file",
            ),
            (
                "long",
                "PATH is larger than 1 KiB",
                "PATH is larger than 1 KiB",
            ),
            (
                "bad",
                "PATH, line 2: it is not UTF-8 text",
                "PATH, line 2: it is not UTF-8 text",
            ),
        ] {
            check(&at(name), Links::Followed, follows);
            check(&at(name), Links::Refused, refuses);
        }
        for links in [Links::Followed, Links::Refused] {
            check("/dev/zero", links, "PATH is a device, not a file");
        }
    }
}
