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

        /// The next key that is one of `wanted`; `None` when stopped or at the end of input.
        pub fn wait(self, wanted: &[char], stop: &StopKey) -> io::Result<Option<char>> {
            let stdin = io::stdin();
            while !stop.stopped() {
                let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
                match poll(&mut fds, Some(&LOOK)) {
                    Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                    Ok(_) => {}
                    Err(e) => return Err(e.into()),
                }
                let mut byte = [0u8; 1];
                let count = rustix::io::read(&stdin, &mut byte)?;
                if count == 0 || byte[0] == CTRL_D {
                    break;
                }
                let key = char::from(byte[0]);
                if wanted.contains(&key) {
                    return Ok(Some(key));
                }
            }
            Ok(None)
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
