//! Exclusive locks: of the operating system, so that none outlives its process, with a file that
//! says who holds it. What they protect is decided in the machine.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use reasonix_core::call::Holder;
use reasonix_core::error::{IoFault, IoKind};
use serde::{Deserialize, Serialize};

use super::append::id;
use super::files::regular;
use super::place::{Parents, Place};
use super::{fault, resolve};

/// How often a lock is tried for whose file is removed meanwhile.
const TRIES: usize = 16;

/// What is read of a lock's file.
const MAX_HOLDER: u64 = 4096;

/// The locks that an agent holds.
#[derive(Debug, Default)]
pub struct Locks(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// By the path they were asked for with.
    held: BTreeMap<String, Lock>,
    closed: bool,
}

#[derive(Debug)]
struct Lock {
    file: File,
    real: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // To close the file is not enough: a child that is being started may have it open still.
        let _ = self.file.unlock();
    }
}

impl Locks {
    /// Gives a lock back; none held is no fault.
    pub fn unlock(&self, path: &str) {
        self.lock().held.remove(path);
    }

    /// Gives back what is held at or beneath this path, links resolved.
    pub(super) fn unlock_in(&self, real: &Path) {
        let mut table = self.lock();
        table.held.retain(|_, lock| !lock.real.starts_with(real));
    }

    /// Gives all back, also those that come after this.
    pub(super) fn close(&self) {
        let mut table = self.lock();
        table.closed = true;
        table.held.clear();
    }

    fn keep(&self, path: &str, lock: Lock) {
        let mut table = self.lock();
        if !table.closed {
            table.held.insert(path.to_owned(), lock);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing that could panic is done under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the wish for a lock ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is ours.
    Ours,
    /// Somebody has it; that may be we ourselves.
    Held(Holder),
}

/// What a lock's file says.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    pid: Option<u32>,
    host: Option<String>,
    since: Option<String>,
}

/// Takes the lock at `path` for `locks`, if nobody has it. Its file and missing folders, its root
/// too, are made for us alone.
///
/// # Errors
///
/// `Denied`, `Escapes`, `Full`; `WrongKind` if there is something else than a regular file;
/// `Unsupported` on a file system without locks.
pub fn lock(path: &str, beneath: &str, locks: &Locks) -> Result<Taken, IoFault> {
    let tell = |e: io::Error| fault("lock", path, &e);
    for _ in 0..TRIES {
        let place = Place::of(resolve::real_parent(path)?, Some(beneath), Parents::Private)?;
        match place.metadata() {
            Ok(data) => regular(path, &data)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(tell(error)),
        }
        let file = match place.open_or_make(false) {
            Ok((file, _)) => file,
            // Its folder was removed a moment ago.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(tell(error)),
        };
        let data = file.metadata().map_err(tell)?;
        regular(path, &data)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Taken::Held(holder(&file))),
            Err(TryLockError::Error(error)) => return Err(tell(error)),
        }
        let real = place.real().to_owned();
        let lock = Lock { file, real };
        // Who held it may have removed it, with its folder, before giving it back.
        let again = Place::of(
            resolve::real_parent(path)?,
            Some(beneath),
            Parents::Expected,
        );
        let there = again.ok().and_then(|place| place.metadata().ok());
        if there.is_none_or(|there| id(&there) != id(&data)) {
            continue;
        }
        if let Err(error) = sign(&lock.file) {
            // It is held all the same.
            log::warn!("{}", fault("write who holds", path, &error));
        }
        locks.keep(path, lock);
        return Ok(Taken::Ours);
    }
    Err(IoFault::new(
        IoKind::Other,
        format!("cannot lock {path}: it is removed again and again"),
    ))
}

/// Writes into a lock's file that it is ours.
fn sign(mut file: &File) -> io::Result<()> {
    let note = Note {
        pid: Some(std::process::id()),
        host: host(),
        since: Some(format!("{:.0}", Timestamp::now())),
    };
    let mut text = serde_json::to_vec(&note)?;
    text.push(b'\n');
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&text)
}

fn holder(file: &File) -> Holder {
    let mut text = Vec::new();
    // What cannot be read says nothing, but the lock is held.
    let _ = file.take(MAX_HOLDER).read_to_end(&mut text);
    let note: Note = serde_json::from_slice(&text).unwrap_or_default();
    Holder {
        pid: note.pid,
        host: note.host,
        since: note.since,
    }
}

#[cfg(unix)]
fn host() -> Option<String> {
    let name = rustix::system::uname();
    Some(name.nodename().to_string_lossy().into_owned())
}

#[cfg(not(unix))]
fn host() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::ops::testing::{command_again, dir, kind, links, own_process};
    use crate::ops::{Kept, files};
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    const HELD: &str = "home/sessions/a/lock";

    fn take(w: &str, locks: &Locks) -> Taken {
        lock(&format!("{w}/{HELD}"), &format!("{w}/home"), locks).expect("it can be tried")
    }

    fn is_ours(taken: &Taken) -> bool {
        match taken {
            Taken::Ours => true,
            Taken::Held(_) => false,
        }
    }

    #[test]
    fn one_holds_it_and_says_who() {
        let (_keep, w) = dir();
        let (one, other) = (Locks::default(), Locks::default());
        assert_eq!(take(&w, &one), Taken::Ours);
        for locks in [&other, &one] {
            let Taken::Held(holder) = take(&w, locks) else {
                panic!("it is held");
            };
            assert_eq!(holder.pid, Some(std::process::id()));
            assert!(holder.host.is_some_and(|host| !host.is_empty()));
            let since = holder.since.expect("it says since when");
            assert!(since.ends_with('Z') && since.len() == 20, "{since}");
            assert!(since.parse::<Timestamp>().is_ok(), "{since}");
        }
        other.unlock(&format!("{w}/{HELD}"));
        assert!(!is_ours(&take(&w, &other)), "it was not theirs to give");
        one.unlock(&format!("{w}/{HELD}"));
        one.unlock(&format!("{w}/{HELD}"));
        assert!(is_ours(&take(&w, &other)));
        drop(other);
        assert!(is_ours(&take(&w, &one)), "it ends with its holder");
        one.close();
        let late = Locks::default();
        assert!(is_ours(&take(&w, &late)));
        late.close();
        assert!(
            is_ours(&take(&w, &one)),
            "given back at once by who is closed"
        );
        assert!(is_ours(&take(&w, &Locks::default())));
    }

    #[test]
    fn a_note_is_read_as_far_as_it_can_be() {
        let (_keep, w) = dir();
        let locks = Locks::default();
        assert!(is_ours(&take(&w, &locks)));
        for (note, pid, host) in [
            ("", None, None),
            ("{", None, None),
            ("12", None, None),
            ("{\"pid\":7,\"more\":[1]}", Some(7), None),
            ("{\"host\":\"h\"}\n", None, Some("h")),
        ] {
            fs::write(format!("{w}/{HELD}"), note).expect("written");
            let Taken::Held(holder) = take(&w, &locks) else {
                panic!("it is held");
            };
            assert_eq!((holder.pid, holder.host.as_deref()), (pid, host), "{note}");
        }
    }

    #[test]
    fn only_a_file_beneath_the_root_is_a_lock() {
        let (_keep, w) = dir();
        let home = links(&w);
        let locks = Locks::default();
        for (path, want) in [
            ("out/lock", IoKind::Escapes),
            ("dangling/lock", IoKind::Escapes),
            ("s/to_file", IoKind::WrongKind),
            ("s/to_outside", IoKind::WrongKind),
            ("s/to_nothing", IoKind::WrongKind),
            ("s", IoKind::WrongKind),
        ] {
            let got = lock(&format!("{home}/{path}"), &home, &locks);
            assert_eq!(kind(got), want, "{path}");
        }
        let secret = fs::read_to_string(format!("{w}/outside/secret"));
        assert_eq!(secret.expect("there"), "s");
        assert!(fs::metadata(format!("{w}/gone")).is_err());
    }

    #[test]
    fn a_killed_process_leaves_no_lock() {
        const NAME: &str = "ops::lock::tests::a_killed_process_leaves_no_lock";
        if own_process() {
            let w = std::env::var("REASONIX_TEST_DIR").expect("it was given");
            let locks = Locks::default();
            assert!(is_ours(&take(&w, &locks)));
            println!("\nheld");
            // Till it is killed.
            let _ = std::io::stdin().read_line(&mut String::new());
            return;
        }
        let (_keep, w) = dir();
        let mut other = command_again(NAME)
            .env("REASONIX_TEST_DIR", &w)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(other.stdout.take().expect("it is piped")).lines();
        let held = lines.map_while(Result::ok).any(|line| line == "held");
        assert!(held, "it holds the lock");
        let locks = Locks::default();
        let Taken::Held(holder) = take(&w, &locks) else {
            panic!("another process holds it");
        };
        assert_eq!(holder.pid, Some(other.id()));
        other.kill().expect("it runs");
        other.wait().expect("it ends");
        assert!(is_ours(&take(&w, &locks)));
    }

    #[test]
    fn a_lock_goes_with_its_folder() {
        let (_keep, w) = dir();
        let kept = Kept::default();
        assert!(is_ours(&take(&w, &kept.0.locks)));
        let (folder, home) = (format!("{w}/home/sessions/a"), format!("{w}/home"));
        files::remove_tree(&folder, &home, &kept).expect("removed");
        assert!(kept.0.locks.lock().held.is_empty());
        assert!(is_ours(&take(&w, &Locks::default())));
    }

    #[test]
    fn two_never_hold_it_while_its_folder_comes_and_goes() {
        let (_keep, w) = dir();
        let inside = AtomicUsize::new(0);
        let taken = AtomicUsize::new(0);
        let one = || {
            let kept = Kept::default();
            for _ in 0..400 {
                match lock(&format!("{w}/{HELD}"), &format!("{w}/home"), &kept.0.locks) {
                    Ok(Taken::Held(_)) => continue,
                    // Removed again and again: nobody is to blame.
                    Err(fault) if fault.kind == IoKind::Other => continue,
                    taken => assert_eq!(taken, Ok(Taken::Ours)),
                }
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                taken.fetch_add(1, Ordering::SeqCst);
                thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
                let (folder, home) = (format!("{w}/home/sessions/a"), format!("{w}/home"));
                files::remove_tree(&folder, &home, &kept).expect("removed");
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(one);
            }
        });
        assert!(taken.load(Ordering::SeqCst) > 0);
    }
}
