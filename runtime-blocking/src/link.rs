//! The pump between two descriptors and a machine: bytes in, at most what it has room for; frames
//! out, written when there are enough of them or nothing else is to be done. Never waits by itself
//! but in [`Link::wait`]. Knows nothing of what the bytes mean.

mod end;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use reasonix_core::limits::Limits;
use reasonix_core::machine::{Machine, Source};
use reasonix_core::protocol::{AgentSide, ClientSide, PeerInput};
use reasonix_core::time::{Deadline, Instant, Timer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use end::{End, Side};

/// Output is written when this much waits: half of a pipe, so that writer and reader overlap.
const FULL: usize = 32 << 10;

/// Most bytes read at once: what a pipe holds.
const PIECE: usize = 64 << 10;

/// A buffer that has grown beyond this is given back when it is empty.
const KEEP: usize = 1 << 20;

/// A machine at the end of a link.
pub trait Attached {
    /// Takes what the link says.
    fn hear(&mut self, now: Instant, said: PeerInput<'_>);
    /// How many bytes of the peer it will take now.
    fn peer_room(&self) -> usize;
}

impl Attached for AgentSide {
    fn hear(&mut self, now: Instant, said: PeerInput<'_>) {
        self.handle_input(now, said);
    }

    fn peer_room(&self) -> usize {
        self.room(Source::Peer)
    }
}

impl Attached for ClientSide {
    fn hear(&mut self, now: Instant, said: PeerInput<'_>) {
        self.handle_input(now, said);
    }

    fn peer_room(&self) -> usize {
        self.room(Source::Peer)
    }
}

/// The clock of a driver: the origin is its making.
#[derive(Clone, Copy, Debug)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// The time.
    pub fn now(self) -> Instant {
        Instant::since_start(self.0.elapsed())
    }

    /// The same moment by the system's clock.
    pub fn system(self, at: Instant) -> std::time::Instant {
        // What cannot be said is further away than anything lasts.
        let far = Duration::from_secs(1 << 30);
        self.0.checked_add(at.elapsed()).unwrap_or(self.0 + far)
    }

    /// How long till `at`; zero if it is past.
    pub fn until(self, at: Instant) -> Duration {
        at.since(self.now())
    }
}

/// Two descriptors and what waits to be written.
#[derive(Debug)]
pub struct Link {
    input: Option<End>,
    output: Option<End>,
    unsent: Vec<u8>,
    written: usize,
    /// What the machine was last told of `unsent`.
    reported: usize,
    /// The output takes no more till it says so.
    blocked: bool,
    /// Since when it has taken nothing, while bytes wait.
    stalled: Option<Instant>,
    patience: Duration,
    inbox: Box<[u8]>,
}

impl Link {
    /// A link over this process's standard input and output.
    ///
    /// # Errors
    ///
    /// If one of them is closed.
    pub fn stdio() -> io::Result<Self> {
        let input = End::open(rustix::stdio::stdin(), Side::Read)?;
        let output = End::open(rustix::stdio::stdout(), Side::Write)?;
        Ok(Self::between(input, output))
    }

    /// A link over any two descriptors: pipes, sockets, terminals, files.
    ///
    /// # Errors
    ///
    /// If one of them cannot be used.
    pub fn over(input: OwnedFd, output: OwnedFd) -> io::Result<Self> {
        let input = End::own(input, Side::Read)?;
        let output = End::own(output, Side::Write)?;
        Ok(Self::between(input, output))
    }

    fn between(input: End, output: End) -> Self {
        Self {
            input: Some(input),
            output: Some(output),
            unsent: Vec::new(),
            written: 0,
            reported: 0,
            blocked: false,
            stalled: None,
            patience: Limits::default().peer_stalled,
            inbox: Box::default(),
        }
    }

    /// A peer that takes no byte for this long, while some wait for it, is gone.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// When [`exchange`](Self::exchange) is due even if nothing moves.
    pub fn deadline(&self) -> Option<Deadline> {
        let at = self.stalled?.plus(self.patience);
        let why = Timer::PeerStalled;
        Some(Deadline { at, why })
    }

    /// Takes a frame to be written.
    pub fn send(&mut self, frame: &[u8]) {
        if self.output.is_some() {
            self.unsent.extend_from_slice(frame);
        }
    }

    /// Whether so much waits that [`exchange`](Self::exchange) is due before the drain goes on.
    pub fn is_full(&self) -> bool {
        self.unsent() >= FULL && !self.blocked
    }

    /// Bytes that wait.
    pub fn unsent(&self) -> usize {
        self.unsent.len() - self.written
    }

    /// Writes what waits, says how much is left, and looks whether the peer has written meanwhile.
    /// Whether the machine was told anything: if not, and its drain is at its end, nothing is left
    /// to do but wait.
    pub fn exchange(&mut self, now: Instant, machine: &mut impl Attached) -> bool {
        let mut told = false;
        let tries = self.unsent() > 0 && !self.blocked;
        if tries {
            told |= self.write(now, machine);
        }
        if self.unsent() == 0 {
            self.stalled = None;
        } else if now.since(*self.stalled.get_or_insert(now)) >= self.patience {
            log::warn!("the client has taken no byte for {:?}", self.patience);
            told |= self.lose(now, machine);
        }
        let unsent = self.unsent();
        // Also if it is what it was: the machine counts what it sends, and waits to hear this.
        if tries && !told || unsent != self.reported {
            self.reported = unsent;
            machine.hear(now, PeerInput::Unsent(unsent));
            told = true;
        }
        told | self.read(now, machine)
    }

    /// What to wait on, if it is not waited for by [`wait`](Self::wait): the input if there is
    /// room, the output if it was full.
    pub fn wants(&self, room: usize) -> [Option<(BorrowedFd<'_>, PollFlags)>; 2] {
        let input = self.input.as_ref().filter(|_| room > 0);
        let output = self.output.as_ref().filter(|_| self.blocked);
        // Without anything to write the output still says when its reader is gone; but a closed
        // standard input says so first for every real client, and this costs no descriptor.
        [
            input.map(|end| (end.fd(), PollFlags::IN)),
            output.map(|end| (end.fd(), PollFlags::OUT)),
        ]
    }

    /// Says that the output may take bytes again; [`wait`](Self::wait) does so by itself.
    pub fn unblock(&mut self) {
        self.blocked = false;
    }

    /// Waits for the peer, or till `time` is over. `room` as the machine says.
    ///
    /// # Errors
    ///
    /// Those of `poll(2)`.
    pub fn wait(&mut self, room: usize, time: Option<Duration>) -> io::Result<()> {
        let mut fds: Vec<_> = self
            .wants(room)
            .into_iter()
            .flatten()
            .map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags))
            .collect();
        wait(&mut fds, time)?;
        let writable = fds
            .iter()
            .any(|fd| fd.revents().intersects(!PollFlags::IN) && !fd.revents().is_empty());
        drop(fds);
        if writable {
            self.unblock();
        }
        Ok(())
    }

    /// Writes what is left, at most till `time` is over, and closes both ends.
    pub fn finish(mut self, time: Duration) {
        let end = std::time::Instant::now() + time;
        while self.unsent() > 0
            && let Some(output) = &self.output
        {
            match output.write(&self.unsent[self.written..]) {
                Ok(count) => self.written += count,
                Err(Errno::AGAIN) => {
                    let left = end.saturating_duration_since(std::time::Instant::now());
                    let mut fds = [PollFd::from_borrowed_fd(output.fd(), PollFlags::OUT)];
                    if left.is_zero() || wait(&mut fds, Some(left)).is_err() {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn write(&mut self, now: Instant, machine: &mut impl Attached) -> bool {
        while let Some(output) = &self.output {
            match output.write(&self.unsent[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    self.stalled = None;
                    if self.written == self.unsent.len() {
                        self.unsent.clear();
                        self.written = 0;
                        if self.unsent.capacity() > KEEP {
                            self.unsent = Vec::new();
                        }
                    } else {
                        self.blocked = true;
                        // Each byte is moved once or twice in all, however small the pieces.
                        if self.written > KEEP && self.written >= self.unsent.len() / 2 {
                            self.unsent.drain(..self.written);
                            self.written = 0;
                        }
                    }
                    return false;
                }
                Err(Errno::AGAIN) => {
                    self.blocked = true;
                    return false;
                }
                Err(Errno::INTR) => {}
                Err(error) => {
                    log::debug!("the client takes nothing more: {error}");
                    return self.lose(now, machine);
                }
            }
        }
        false
    }

    fn lose(&mut self, now: Instant, machine: &mut impl Attached) -> bool {
        self.output = None;
        self.unsent = Vec::new();
        self.written = 0;
        self.reported = 0;
        self.stalled = None;
        machine.hear(now, PeerInput::PeerGone);
        true
    }

    fn read(&mut self, now: Instant, machine: &mut impl Attached) -> bool {
        let room = machine.peer_room().min(PIECE);
        let Some(input) = self.input.as_ref().filter(|_| room > 0) else {
            return false;
        };
        if self.inbox.is_empty() {
            self.inbox = vec![0; PIECE].into();
        }
        match input.read(&mut self.inbox[..room]) {
            Ok(0) => {
                self.input = None;
                machine.hear(now, PeerInput::PeerFinished);
                true
            }
            Ok(count) => {
                machine.hear(now, PeerInput::Received(&self.inbox[..count]));
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => false,
            Err(error) => {
                log::debug!("the client can be read no more: {error}");
                self.input = None;
                machine.hear(now, PeerInput::PeerFinished);
                true
            }
        }
    }
}

/// `poll(2)`; a signal counts as nothing ready.
pub(crate) fn wait(fds: &mut [PollFd<'_>], time: Option<Duration>) -> io::Result<()> {
    // Too far away to be said is as good as never.
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    match poll(fds, time.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    /// Notes what it hears.
    #[derive(Default)]
    struct Ear {
        room: usize,
        heard: Vec<String>,
    }

    impl Attached for Ear {
        fn hear(&mut self, _: Instant, said: PeerInput<'_>) {
            let said = match said {
                PeerInput::Received(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                PeerInput::Unsent(count) => format!("unsent {count}"),
                PeerInput::PeerFinished => "finished".into(),
                PeerInput::PeerGone => "gone".into(),
            };
            self.heard.push(said);
        }

        fn peer_room(&self) -> usize {
            self.room
        }
    }

    /// A link and the far ends of its input and output.
    type Made = (Link, Box<dyn Write>, Box<dyn Read>);

    fn pipes() -> Made {
        let (input, far_in) = io::pipe().expect("pipes can be made");
        let (far_out, output) = io::pipe().expect("pipes can be made");
        let link = Link::over(input.into(), output.into()).expect("pipes can be used");
        (link, Box::new(far_in), Box::new(far_out))
    }

    fn sockets() -> Made {
        let (near, far) = UnixStream::pair().expect("sockets can be made");
        let input = near.try_clone().expect("it can be shared");
        let link = Link::over(input.into(), near.into()).expect("sockets can be used");
        let reader = far.try_clone().expect("it can be shared");
        (link, Box::new(far), Box::new(reader))
    }

    fn ear(room: usize) -> Ear {
        Ear {
            room,
            ..Ear::default()
        }
    }

    #[test]
    fn no_more_is_read_than_there_is_room_for() {
        for make in [pipes, sockets] {
            let (mut link, mut peer, _reader) = make();
            let mut machine = ear(4);
            assert!(!link.exchange(Instant::ZERO, &mut machine), "nothing waits");
            peer.write_all(b"123456").expect("it fits");
            assert!(link.exchange(Instant::ZERO, &mut machine));
            machine.room = 0;
            assert!(!link.exchange(Instant::ZERO, &mut machine));
            assert!(link.wants(0)[0].is_none());
            machine.room = 9;
            assert!(link.exchange(Instant::ZERO, &mut machine));
            assert_eq!(machine.heard, ["1234", "56"]);
        }
    }

    #[test]
    fn the_end_of_input_is_told_once() {
        let (mut link, peer, _reader) = pipes();
        drop(peer);
        let mut machine = ear(4);
        assert!(link.exchange(Instant::ZERO, &mut machine));
        assert!(!link.exchange(Instant::ZERO, &mut machine));
        assert_eq!(machine.heard, ["finished"]);
    }

    #[test]
    fn a_reader_that_is_gone_is_told_once_and_no_panic() {
        for make in [pipes, sockets] {
            let (mut link, peer, reader) = make();
            drop((peer, reader));
            let mut machine = ear(0);
            link.send(b"{}\n");
            assert!(link.exchange(Instant::ZERO, &mut machine));
            link.send(b"{}\n");
            assert!(!link.exchange(Instant::ZERO, &mut machine));
            assert_eq!(machine.heard, ["gone"]);
            assert_eq!(link.unsent(), 0);
        }
    }

    #[test]
    fn a_slow_reader_is_waited_for_and_gets_everything_in_order() {
        for make in [pipes, sockets] {
            let (mut link, _peer, mut reader) = make();
            let mut machine = ear(0);
            let frames: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
            for frame in frames.chunks(100) {
                link.send(frame);
                if link.is_full() {
                    link.exchange(Instant::ZERO, &mut machine);
                }
            }
            link.exchange(Instant::ZERO, &mut machine);
            let left = link.unsent();
            assert!(left > 0, "no pipe holds all of it");
            assert_eq!(machine.heard.last(), Some(&format!("unsent {left}")));
            assert!(link.wants(0)[1].is_some());
            let mut got = vec![0; frames.len()];
            let mut at = 0;
            while at < got.len() {
                at += reader.read(&mut got[at..]).expect("it is open");
                link.wait(0, Some(Duration::ZERO)).expect("poll works");
                link.exchange(Instant::ZERO, &mut machine);
            }
            assert!(got == frames);
            assert_eq!(machine.heard.last().map(String::as_str), Some("unsent 0"));
        }
    }

    #[test]
    fn a_reader_that_takes_nothing_is_given_up_in_time() {
        let (link, _peer, mut reader) = pipes();
        let mut link = link.with_patience(Duration::from_secs(600));
        let mut machine = ear(0);
        let at = |seconds| Instant::since_start(Duration::from_secs(seconds));
        link.send(&vec![b'x'; 200_000]);
        link.exchange(at(100), &mut machine);
        assert_eq!(link.deadline().map(|d| d.at), Some(at(700)));
        // A byte taken begins the wait anew.
        reader.read_exact(&mut [0; 50_000]).expect("it is open");
        link.wait(0, Some(Duration::ZERO)).expect("poll works");
        link.exchange(at(650), &mut machine);
        link.exchange(at(1249), &mut machine);
        assert!(!machine.heard.contains(&"gone".to_owned()));
        link.exchange(at(1250), &mut machine);
        assert_eq!(machine.heard.last().map(String::as_str), Some("gone"));
        assert_eq!(link.deadline(), None);
    }

    #[test]
    fn the_flags_of_the_others_are_left_alone() {
        let (input, _far_in) = io::pipe().expect("pipes can be made");
        let (_far_out, output) = io::pipe().expect("pipes can be made");
        let shared = (
            input.try_clone().expect("it can be shared"),
            output.try_clone().expect("it can be shared"),
        );
        let _link = Link::over(input.into(), output.into()).expect("pipes can be used");
        for fd in [shared.0.as_fd(), shared.1.as_fd()] {
            let flags = rustix::fs::fcntl_getfl(fd).expect("it is open");
            assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
        }
    }

    #[test]
    fn files_work_as_well() {
        let mut from = tempfile::tempfile().expect("it can be made");
        from.write_all(b"abc").expect("it fits");
        io::Seek::rewind(&mut from).expect("it is a file");
        let mut to = tempfile::tempfile().expect("it can be made");
        let output: File = to.try_clone().expect("it can be shared");
        let mut link = Link::over(from.into(), output.into()).expect("files can be used");
        let mut machine = ear(9);
        link.send(&[b'x'; 1000]);
        while link.exchange(Instant::ZERO, &mut machine) {
            link.unblock();
        }
        link.finish(Duration::from_secs(1));
        assert!(machine.heard.contains(&"abc".to_owned()));
        let mut written = Vec::new();
        io::Seek::rewind(&mut to).expect("it is a file");
        to.read_to_end(&mut written).expect("it is open");
        assert_eq!(written, [b'x'; 1000]);
    }
}
