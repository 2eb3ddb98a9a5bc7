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
        LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
        tcsetattr,
    };
    use std::io::Stdin;

    /// Between two looks at the [`StopKey`].
    const LOOK: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };

    /// The end of input, as a key.
    const CTRL_D: u8 = 4;

    /// The terminal as it was, put back at the end.
    struct Restore(Stdin, Termios);

    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = tcsetattr(&self.0, OptionalActions::Now, &self.1);
        }
    }

    /// The next key; what was typed before the call does not count. `None` when stopped or at
    /// the end of input.
    pub fn key(stop: &StopKey) -> io::Result<Option<char>> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut keys = before.clone();
        keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        let _restore = Restore(io::stdin(), before);
        tcsetattr(&stdin, OptionalActions::Now, &keys)?;
        // A key hit before the question was read answers nothing.
        tcflush(&stdin, QueueSelector::IFlush)?;
        while !stop.stopped() {
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut fds, Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(e) => return Err(e.into()),
            }
            let mut byte = [0u8; 1];
            return Ok(match rustix::io::read(&stdin, &mut byte)? {
                0 => None,
                _ if byte[0] == CTRL_D => None,
                _ => Some(char::from(byte[0])),
            });
        }
        Ok(None)
    }
}

#[cfg(unix)]
pub use unix::key;

/// The first character of the next line: there are no single keys here.
#[cfg(not(unix))]
pub fn key(stop: &StopKey) -> io::Result<Option<char>> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line.trim().chars().next().filter(|_| !stop.stopped()))
}
