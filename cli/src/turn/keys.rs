//! Single keys from the terminal, without Enter and without echo. Knows no question.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops a wait for a key from another thread.
#[derive(Clone, Debug, Default)]
pub struct StopKey(Arc<AtomicBool>);

impl StopKey {
    /// The wait ends soon, without a key.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was stopped.
    pub fn stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::io::Write as _;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::termios::{
        LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
    };

    /// Between two looks at the [`StopKey`].
    const LOOK: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };

    /// The end of input, as a key.
    const CTRL_D: u8 = 4;

    /// What the keys begin with that send several characters, such as arrows.
    const ESC: u8 = 27;

    /// A terminal that gives single keys; it is put back as it was when this is dropped.
    pub struct Keys(Termios);

    impl Keys {
        /// Makes the terminal ready. What was typed before does not count: a key hit before the
        /// question could be read answers nothing.
        pub fn ready() -> io::Result<Self> {
            let stdin = io::stdin();
            let before = tcgetattr(&stdin)?;
            let mut keys = before.clone();
            keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            keys.special_codes[SpecialCodeIndex::VMIN] = 1;
            keys.special_codes[SpecialCodeIndex::VTIME] = 0;
            let ready = Self(before);
            tcsetattr(&stdin, OptionalActions::Flush, &keys)?;
            Ok(ready)
        }

        /// The next key that is one of `wanted`; `None` when stopped or at the end of input. Only
        /// a character that comes alone is a key: an arrow is several, and so is what is pasted, and
        /// a letter among them answers nothing. The bell rings for what answers nothing, once the next
        /// key counts again.
        pub fn wait(self, wanted: &[char], stop: &StopKey) -> io::Result<Option<char>> {
            let mut more = false;
            while !stop.stopped() {
                if !is_there()? {
                    // Silence ends what belongs together.
                    if std::mem::take(&mut more) {
                        ring();
                    }
                    continue;
                }
                let mut bytes = [0u8; 64];
                let count = rustix::io::read(io::stdin(), &mut bytes)?;
                let alone = count == 1 && !more;
                if count == 0 || alone && bytes[0] == CTRL_D {
                    break;
                }
                let key = char::from(bytes[0]);
                if alone && wanted.contains(&key) {
                    return Ok(Some(key));
                }
                more |= count > 1 || bytes[0] == ESC;
                if !more {
                    ring();
                }
            }
            Ok(None)
        }
    }

    fn ring() {
        let _ = io::stderr().write_all(b"\x07");
    }

    /// Whether something can be read, after at most [`LOOK`].
    fn is_there() -> io::Result<bool> {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(false),
            Ok(_) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    impl Drop for Keys {
        fn drop(&mut self) {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        }
    }
}

#[cfg(unix)]
pub use unix::Keys;

/// Whole lines, of which the first character counts: there are no single keys here.
#[cfg(not(unix))]
pub struct Keys(());

#[cfg(not(unix))]
impl Keys {
    /// Nothing has to be made ready.
    pub fn ready() -> io::Result<Self> {
        Ok(Self(()))
    }

    /// The first character of the next line that begins with one of `wanted`.
    pub fn wait(self, wanted: &[char], stop: &StopKey) -> io::Result<Option<char>> {
        while !stop.stopped() {
            let mut line = String::new();
            if io::stdin().read_line(&mut line)? == 0 {
                break;
            }
            let key = line.trim().chars().next();
            if key.is_some_and(|key| wanted.contains(&key)) {
                return Ok(key);
            }
        }
        Ok(None)
    }
}
