//! A name in a directory that is held open, so that what is checked is what is used: between the
//! two nobody can swap a directory for a link. Knows nothing of what is done there.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::path::PathBuf;

use reasonix_core::error::{IoFault, IoKind};

use super::{fault, resolve};

/// A name in an open directory.
pub(super) struct Place {
    dir: Dir,
    name: OsString,
    real: PathBuf,
}

impl Place {
    /// The place of `real`, a path without links (its last part aside). With `beneath` it must be
    /// under that root, and the way there is walked without following a link. With `parents`
    /// missing directories are made.
    pub fn of(real: PathBuf, beneath: Option<&str>, parents: bool) -> Result<Self, IoFault> {
        let shown = real.display().to_string();
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(IoFault::new(
                IoKind::WrongKind,
                format!("{shown} does not name a file"),
            ));
        };
        let root = match beneath {
            Some(root) => resolve::real(root)?,
            None => parent.ancestors().last().unwrap_or(parent).to_owned(),
        };
        let way = parent.strip_prefix(&root).map_err(|_| {
            IoFault::new(
                IoKind::Escapes,
                format!("{shown} is not beneath {}", root.display()),
            )
        })?;
        let dir = Dir::walk(&root, way, beneath.is_some(), parents)
            .map_err(|error| entering(&shown, &error))?;
        let name = name.to_owned();
        Ok(Self { dir, name, real })
    }

    /// What is there; a link is not followed.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.dir.metadata(&self.name, &self.real)
    }

    /// Opened for reading, or for writing without cutting it; never waits, follows no link.
    pub fn open(&self, write: bool) -> io::Result<File> {
        self.dir.open(&self.name, write)
    }

    /// A new file beside it under a name of its own, removed when dropped unless it was moved.
    pub fn temporary(&self) -> io::Result<Temporary<'_>> {
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..8 {
            let mut random = [0; 8];
            getrandom::fill(&mut random).map_err(io::Error::other)?;
            let name = format!(".reasonix-{:016x}.tmp", u64::from_ne_bytes(random));
            match self.dir.create(OsStr::new(&name)) {
                Ok(file) => {
                    return Ok(Temporary {
                        place: self,
                        name: name.into(),
                        file,
                        moved: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Removes what is there.
    pub fn remove(&self) -> io::Result<()> {
        self.dir.remove(&self.name)
    }

    /// Moves what is there to `to`, never over something.
    pub fn move_to(&self, to: &Self) -> io::Result<()> {
        self.dir.rename(&self.name, &to.dir, &to.name, false)
    }

    /// Makes the names in its directory durable.
    pub fn sync(&self) -> io::Result<()> {
        self.dir.sync()
    }
}

/// A file under a temporary name.
pub(super) struct Temporary<'a> {
    place: &'a Place,
    name: OsString,
    /// The file, open for writing.
    pub file: File,
    moved: bool,
}

impl Temporary<'_> {
    /// Gives it the name of its place; only with `over` what has that name now is replaced.
    pub fn keep(mut self, over: bool) -> io::Result<()> {
        let dir = &self.place.dir;
        dir.rename(&self.name, dir, &self.place.name, over)?;
        self.moved = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.moved {
            let _ = self.place.dir.remove(&self.name);
        }
    }
}

/// A link on a way that had none a moment ago leads out of the root.
fn entering(shown: &str, error: &io::Error) -> IoFault {
    #[cfg(unix)]
    if matches!(
        rustix::io::Errno::from_io_error(error),
        Some(rustix::io::Errno::LOOP | rustix::io::Errno::XDEV)
    ) {
        return IoFault::new(IoKind::Escapes, format!("{shown} leads out of its root"));
    }
    fault("reach", shown, error)
}

#[cfg(unix)]
use unix::Dir;

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::{Component, Path};

    use rustix::fs::{AtFlags, Mode, OFlags};
    use rustix::io::Errno;

    const ENTER: OFlags = OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::CLOEXEC);

    pub struct Dir(OwnedFd);

    impl Dir {
        pub fn walk(root: &Path, way: &Path, confined: bool, make: bool) -> io::Result<Self> {
            let mut dir = rustix::fs::open(root, ENTER, Mode::empty())?;
            if !confined && !make {
                let found = enter(&dir, way.as_os_str(), ENTER);
                #[cfg(target_os = "linux")]
                if matches!(&found, Err(e) if e.kind() == io::ErrorKind::PermissionDenied) {
                    // It may be walked through without being readable itself.
                    return enter(&dir, way.as_os_str(), ENTER | OFlags::PATH);
                }
                return found;
            }
            #[cfg(target_os = "linux")]
            match enter_beneath(&dir, way) {
                Ok(found) => return Ok(Self(found)),
                Err(Errno::NOENT) if make => {}
                // An old kernel, or a filter that knows no such call: step by step, then.
                Err(Errno::NOSYS | Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
            for part in way.components() {
                let Component::Normal(name) = part else {
                    return Err(Errno::XDEV.into()); // real paths have no other parts
                };
                dir = match enter(&dir, name, ENTER | OFlags::NOFOLLOW) {
                    Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
                        match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
                            Ok(()) => Self(dir).synced()?.0,
                            Err(Errno::EXIST) => dir,
                            Err(error) => return Err(error.into()),
                        };
                        return Self::walk(root, way, confined, make);
                    }
                    found => found?.0,
                };
            }
            Ok(Self(dir))
        }

        pub fn metadata(&self, name: &OsStr, real: &Path) -> io::Result<Metadata> {
            #[cfg(target_os = "linux")]
            {
                let _ = real;
                let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let found = rustix::fs::openat(&self.0, name, look, Mode::empty())?;
                File::from(found).metadata()
            }
            #[cfg(not(target_os = "linux"))]
            {
                let _ = name;
                std::fs::symlink_metadata(real)
            }
        }

        pub fn open(&self, name: &OsStr, write: bool) -> io::Result<File> {
            let access = if write {
                OFlags::WRONLY
            } else {
                OFlags::RDONLY
            };
            let calm = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.0, name, access | calm, Mode::empty())?;
            Ok(File::from(file))
        }

        pub fn create(&self, name: &OsStr) -> io::Result<File> {
            let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let mode = Mode::from_raw_mode(0o666);
            let file = rustix::fs::openat(&self.0, name, new | OFlags::CLOEXEC, mode)?;
            Ok(File::from(file))
        }

        pub fn remove(&self, name: &OsStr) -> io::Result<()> {
            Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
        }

        pub fn rename(&self, from: &OsStr, to: &Self, name: &OsStr, over: bool) -> io::Result<()> {
            if over {
                return Ok(rustix::fs::renameat(&self.0, from, &to.0, name)?);
            }
            #[cfg(target_os = "linux")]
            {
                use rustix::fs::RenameFlags;
                let flags = RenameFlags::NOREPLACE;
                match rustix::fs::renameat_with(&self.0, from, &to.0, name, flags) {
                    // Not every file system can; a link never goes over a name either.
                    Err(Errno::INVAL | Errno::NOSYS) => {}
                    done => return Ok(done?),
                }
            }
            rustix::fs::linkat(&self.0, from, &to.0, name, AtFlags::empty())?;
            self.remove(from)
        }

        pub fn sync(&self) -> io::Result<()> {
            match rustix::fs::fsync(&self.0) {
                // A file system where directories need no sync, or one we may not read.
                Err(Errno::INVAL | Errno::BADF) => Ok(()),
                done => Ok(done?),
            }
        }

        fn synced(self) -> io::Result<Self> {
            self.sync()?;
            Ok(self)
        }
    }

    fn enter(dir: &OwnedFd, way: &OsStr, flags: OFlags) -> io::Result<Dir> {
        let way = if way.is_empty() { OsStr::new(".") } else { way };
        Ok(Dir(rustix::fs::openat(dir, way, flags, Mode::empty())?))
    }

    #[cfg(target_os = "linux")]
    fn enter_beneath(root: &OwnedFd, way: &Path) -> rustix::io::Result<OwnedFd> {
        use rustix::fs::ResolveFlags;
        let way = if way.as_os_str().is_empty() {
            Path::new(".")
        } else {
            way
        };
        let held = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        let mut last = Errno::AGAIN;
        for _ in 0..16 {
            match rustix::fs::openat2(root, way, ENTER, Mode::empty(), held) {
                // A rename somewhere on the way: the kernel asks for another try.
                Err(Errno::AGAIN) => last = Errno::AGAIN,
                done => return done,
            }
        }
        Err(last)
    }
}

#[cfg(not(unix))]
use other::Dir;

#[cfg(not(unix))]
mod other {
    //! By path: what is checked may not be what is used. Not claimed to hold against a racing
    //! process.
    use std::ffi::OsStr;
    use std::fs::{self, File, Metadata, OpenOptions};
    use std::io;
    use std::path::{Path, PathBuf};

    pub struct Dir(PathBuf);

    impl Dir {
        pub fn walk(root: &Path, way: &Path, _confined: bool, make: bool) -> io::Result<Self> {
            let dir = root.join(way);
            if make {
                fs::create_dir_all(&dir)?;
            }
            fs::metadata(&dir)?;
            Ok(Self(dir))
        }

        pub fn metadata(&self, name: &OsStr, _real: &Path) -> io::Result<Metadata> {
            fs::symlink_metadata(self.0.join(name))
        }

        pub fn open(&self, name: &OsStr, write: bool) -> io::Result<File> {
            let mut how = OpenOptions::new();
            how.read(!write).write(write).open(self.0.join(name))
        }

        pub fn create(&self, name: &OsStr) -> io::Result<File> {
            File::create_new(self.0.join(name))
        }

        pub fn remove(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }

        pub fn rename(&self, from: &OsStr, to: &Self, name: &OsStr, over: bool) -> io::Result<()> {
            let to = to.0.join(name);
            if !over && fs::symlink_metadata(&to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(self.0.join(from), to)
        }

        pub fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }
}
