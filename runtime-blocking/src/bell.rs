//! What wakes a thread that sits in `poll(2)`: other threads and signal handlers ring it. A pipe,
//! since a handler may write to nothing else that every Unix has.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The side that hears.
#[derive(Debug)]
pub(crate) struct Bell {
    reader: PipeReader,
    ringer: Ringer,
}

/// The side that rings.
#[derive(Clone, Debug)]
pub(crate) struct Ringer(Arc<PipeWriter>);

impl Ringer {
    pub fn ring(&self) {
        // Full: it is rung already. Closed: nobody hears any more.
        let _ = (&*self.0).write(&[1]);
    }
}

impl Bell {
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        let ringer = Ringer(Arc::new(writer));
        Ok(Self { reader, ringer })
    }

    pub fn ringer(&self) -> Ringer {
        self.ringer.clone()
    }

    /// Takes all rings so far.
    pub fn hush(&self) {
        let mut rings = [0; 64];
        while matches!((&self.reader).read(&mut rings), Ok(count) if count == rings.len()) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

/// SIGTERM, SIGINT and SIGHUP (a terminal or a remote login that closes), taken as the wish to end
/// while this lives. A second one ends the process the hard way.
#[derive(Debug)]
pub(crate) struct Signals {
    came: Arc<AtomicBool>,
    registered: Vec<SigId>,
}

impl Signals {
    pub fn ring(bell: &Bell) -> io::Result<Self> {
        use signal_hook::{flag, low_level};
        let mut signals = Self {
            came: Arc::default(),
            registered: Vec::new(),
        };
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            let came = || Arc::clone(&signals.came);
            let registered = [
                flag::register_conditional_default(signal, came())?,
                flag::register(signal, came())?,
                low_level::pipe::register(signal, bell.ringer.0.try_clone()?)?,
            ];
            signals.registered.extend(registered);
        }
        Ok(signals)
    }

    pub fn came(&self) -> bool {
        self.came.load(Ordering::Relaxed)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::wait;
    use rustix::event::{PollFd, PollFlags};
    use std::time::Duration;

    fn rung(bell: &Bell, time: Duration) -> bool {
        let mut fds = [PollFd::new(bell, PollFlags::IN)];
        wait(&mut fds, Some(time)).expect("poll works");
        !fds[0].revents().is_empty()
    }

    #[test]
    fn many_rings_are_heard_and_hushed() {
        let bell = Bell::new().expect("pipes can be made");
        assert!(!rung(&bell, Duration::ZERO));
        let ringer = bell.ringer();
        for _ in 0..100_000 {
            ringer.ring(); // more than the pipe holds, and it does not wait
        }
        assert!(rung(&bell, Duration::ZERO));
        bell.hush();
        assert!(!rung(&bell, Duration::ZERO));
    }

    #[test]
    fn a_signal_rings() {
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            let bell = Bell::new().expect("pipes can be made");
            let signals = Signals::ring(&bell).expect("handlers can be set");
            assert!(!signals.came());
            signal_hook::low_level::raise(signal).expect("it can be sent");
            // Whichever thread it was handled on.
            assert!(rung(&bell, Duration::from_secs(10)));
            assert!(signals.came());
        }
    }
}
