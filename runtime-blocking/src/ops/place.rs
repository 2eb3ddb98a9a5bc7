//! A name in a directory that is held open, so that what is checked is what is used: between the
//! two nobody can swap a directory for a link. Knows nothing of what is done there.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use reasonix_core::error::{IoFault, IoKind};

use super::{fault, resolve};

/// What becomes of directories that are missing on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parents {
    /// Nothing: it is a fault.
    Expected,
    /// They are made, as open as the person's umask lets them be, and durable.
    Made,
    /// They and the root are made for us alone. [`Place::sync_way`] makes them durable.
    Private,
}

/// A name in an open directory.
pub(super) struct Place {
    dir: Dir,
    name: OsString,
    real: PathBuf,
    root: PathBuf,
}

impl Place {
    /// The place of `real`, a path without links (its last part aside). With `beneath` it must be
    /// under that root, and the way there is walked without following a link. The root is a path
    /// without links too: one that leads elsewhere by now was swapped since it was looked at.
    pub fn of(real: PathBuf, beneath: Option<&str>, parents: Parents) -> Result<Self, IoFault> {
        let shown = real.display().to_string();
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(IoFault::new(
                IoKind::WrongKind,
                format!("{shown} does not name a file"),
            ));
        };
        let root = match beneath {
            Some(root) => {
                let found = resolve::real(root)?;
                if found != Path::new(root) {
                    let found = found.display();
                    return Err(IoFault::new(
                        IoKind::Escapes,
                        format!("the folder {root} leads to {found} now"),
                    ));
                }
                found
            }
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
        Ok(Self {
            dir,
            name,
            real,
            root,
        })
    }

    /// Its path, the links on the way resolved.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// What is there; a link is not followed.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.dir.metadata(&self.name, &self.real)
    }

    /// Opened for reading, or for writing without cutting it; never waits, follows no link.
    pub fn open(&self, write: bool) -> io::Result<File> {
        self.dir.open(&self.name, write)
    }

    /// Opened to add to its end, or for reading and writing; made for us alone if it is missing,
    /// and whether it was. Never waits, follows no link.
    pub fn open_or_make(&self, append: bool) -> io::Result<(File, bool)> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for _ in 0..8 {
            match self.dir.open_own(&self.name, append, false) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                found => return Ok((found?, false)),
            }
            match self.dir.open_own(&self.name, append, true) {
                // Another one was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                made => return Ok((made?, true)),
            }
        }
        Err(last)
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

    /// Removes what is there, a directory with all it holds. Nothing there is no fault, and no link
    /// is followed.
    pub fn remove_tree(&self) -> io::Result<()> {
        self.dir.remove_tree(&self.name)
    }

    /// Moves what is there to `to`, never over something.
    pub fn move_to(&self, to: &Self) -> io::Result<()> {
        self.dir.rename(&self.name, &to.dir, &to.name, false)
    }

    /// Makes the names in its directory durable.
    pub fn sync(&self) -> io::Result<()> {
        self.dir.sync()
    }

    /// Makes every name on the way from its root to it durable, and that of the root.
    pub fn sync_way(&self) -> io::Result<()> {
        self.dir.sync()?;
        let above = self.real.parent().into_iter().flat_map(Path::ancestors);
        for dir in above.skip(1).take_while(|dir| dir.starts_with(&self.root)) {
            let way = dir.strip_prefix(&self.root).unwrap_or(dir);
            Dir::walk(&self.root, way, true, Parents::Expected)?.sync()?;
        }
        let Some(above) = self.root.parent() else {
            return Ok(());
        };
        match Dir::walk(above, Path::new(""), false, Parents::Expected) {
            Ok(dir) => dir.sync(),
            // Who may not look in there has made nothing in there.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Makes a root that is missing, for us alone. It comes once in the life of a home, so it is made
/// durable at once.
fn make_root(root: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = root.ancestors().take_while(|dir| !dir.exists()).collect();
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(root)?;
    for above in missing.iter().filter_map(|dir| dir.parent()) {
        Dir::walk(above, Path::new(""), false, Parents::Expected)?.sync()?;
    }
    Ok(())
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

    use super::super::tree;
    use super::{Parents, make_root};

    const ENTER: OFlags = OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::CLOEXEC);

    pub struct Dir(OwnedFd);

    impl Dir {
        pub fn walk(root: &Path, way: &Path, confined: bool, parents: Parents) -> io::Result<Self> {
            let make = parents != Parents::Expected;
            let mut dir = match open_root(root, confined) {
                Err(Errno::NOENT) if parents == Parents::Private => {
                    make_root(root)?;
                    open_root(root, confined)?
                }
                found => found?,
            };
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
                        let private = parents == Parents::Private;
                        let mode = if private { 0o700 } else { 0o777 };
                        match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(mode)) {
                            Ok(()) if private => {}
                            Ok(()) => Self(dir).sync()?,
                            Err(Errno::EXIST) => {}
                            Err(error) => return Err(error.into()),
                        }
                        return Self::walk(root, way, confined, parents);
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

        pub fn open_own(&self, name: &OsStr, append: bool, new: bool) -> io::Result<File> {
            let how = if append {
                OFlags::WRONLY | OFlags::APPEND
            } else {
                OFlags::RDWR
            };
            let calm = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let make = if new {
                OFlags::CREATE | OFlags::EXCL
            } else {
                OFlags::empty()
            };
            let mode = Mode::from_raw_mode(0o600);
            let file = rustix::fs::openat(&self.0, name, how | calm | make, mode)?;
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

        pub fn remove_tree(&self, name: &OsStr) -> io::Result<()> {
            tree::remove(&self.0, name)
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
                // A file system where directories need no sync, or one we may not read or write.
                Err(Errno::INVAL | Errno::BADF | Errno::NOTSUP | Errno::ROFS) => Ok(()),
                done => Ok(done?),
            }
        }
    }

    /// A root; one that is confined to is a path without links, wherever the kernel can see to that.
    fn open_root(root: &Path, confined: bool) -> rustix::io::Result<OwnedFd> {
        #[cfg(target_os = "linux")]
        if confined {
            use rustix::fs::{CWD, ResolveFlags};
            match rustix::fs::openat2(CWD, root, ENTER, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
                // An old kernel, or a filter that knows no such call.
                Err(Errno::NOSYS | Errno::PERM) => {}
                found => return found,
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = confined;
        rustix::fs::open(root, ENTER, Mode::empty())
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

    use super::{Parents, make_root};

    pub struct Dir(PathBuf);

    impl Dir {
        pub fn walk(root: &Path, way: &Path, _: bool, parents: Parents) -> io::Result<Self> {
            let dir = root.join(way);
            match parents {
                Parents::Expected => {}
                Parents::Made => fs::create_dir_all(&dir)?,
                Parents::Private => make_root(&dir)?,
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

        pub fn open_own(&self, name: &OsStr, append: bool, new: bool) -> io::Result<File> {
            let mut how = OpenOptions::new();
            how.read(!append).append(append).write(!append);
            how.create_new(new).open(self.0.join(name))
        }

        pub fn create(&self, name: &OsStr) -> io::Result<File> {
            File::create_new(self.0.join(name))
        }

        pub fn remove(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }

        pub fn remove_tree(&self, name: &OsStr) -> io::Result<()> {
            let path = self.0.join(name);
            let data = match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                data => data?,
            };
            if data.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            }
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
