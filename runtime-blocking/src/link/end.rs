//! One descriptor, read and written without ever waiting in it, whatever it is and whoever shares it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;

/// What a descriptor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Read,
    Write,
}

/// One descriptor, used without ever waiting in it.
#[derive(Debug)]
pub(super) struct End {
    pub(super) fd: OwnedFd,
    pub(super) way: Way,
}

/// How not to wait. `O_NONBLOCK` belongs to the open file, which a parent or a sibling may share,
/// so it is only ever set on one that is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The open file is ours and non-blocking, or never waits.
    Nonblocking,
    /// A socket: each call says that it must not wait.
    Socket,
    /// Anything else: ask first, and write little at once.
    Ask,
}

/// What a terminal surely takes when it says it takes something.
const LITTLE: usize = 256;

impl End {
    pub(super) fn own(fd: OwnedFd, side: Side) -> io::Result<Self> {
        match Way::of(fd.as_fd())? {
            Some(way) => Ok(Self { fd, way }),
            None => Self::open(fd.as_fd(), side),
        }
    }

    pub(super) fn open(fd: BorrowedFd<'_>, side: Side) -> io::Result<Self> {
        if let Some(way) = Way::of(fd)? {
            let fd = fd.try_clone_to_owned()?;
            return Ok(Self { fd, way });
        }
        let way = Way::Nonblocking;
        if let Some(fd) = reopen(fd, side) {
            return Ok(Self { fd, way });
        }
        let fd = fd.try_clone_to_owned()?;
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self { fd, way })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn read(&self, buf: &mut [u8]) -> rustix::io::Result<usize> {
        match self.way {
            Way::Nonblocking => rustix::io::read(&self.fd, buf),
            Way::Socket => {
                use rustix::net::{RecvFlags, recv};
                recv(&self.fd, buf, RecvFlags::DONTWAIT).map(|(count, _)| count)
            }
            Way::Ask => {
                self.ask(PollFlags::IN)?;
                rustix::io::read(&self.fd, buf)
            }
        }
    }

    pub(super) fn write(&self, bytes: &[u8]) -> rustix::io::Result<usize> {
        match self.way {
            Way::Nonblocking => rustix::io::write(&self.fd, bytes),
            Way::Socket => {
                use rustix::net::{SendFlags, send};
                send(&self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            }
            Way::Ask => {
                self.ask(PollFlags::OUT)?;
                rustix::io::write(&self.fd, &bytes[..bytes.len().min(LITTLE)])
            }
        }
    }

    fn ask(&self, flags: PollFlags) -> rustix::io::Result<()> {
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), flags)];
        match poll(&mut fds, Some(&Timespec::default()))? {
            0 => Err(Errno::AGAIN),
            _ => Ok(()),
        }
    }
}

impl Way {
    /// None: a pipe, which must become ours first.
    fn of(fd: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
        Ok(match kind {
            FileType::Fifo => None,
            FileType::Socket => Some(Self::Socket),
            FileType::RegularFile => Some(Self::Nonblocking),
            FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Directory
            | FileType::Symlink
            | FileType::Unknown => Some(Self::Ask),
        })
    }
}

/// The same pipe, opened once more, non-blocking; none where that is not possible.
#[cfg(target_os = "linux")]
fn reopen(fd: BorrowedFd<'_>, side: Side) -> Option<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    use std::os::fd::AsRawFd;
    let access = match side {
        Side::Read => OFlags::RDONLY,
        Side::Write => OFlags::WRONLY,
    };
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn reopen(_fd: BorrowedFd<'_>, _side: Side) -> Option<OwnedFd> {
    None
}
