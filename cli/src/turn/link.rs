//! An agent in this process: its driver on a thread of its own, its standard input and output two
//! pipes. What it says, what the person does and signals come in on one channel.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use reasonix_core::agent::{Agent, Config};

use super::keys::{Keys, StopKey};
use crate::Runtime;
use crate::host;

/// Pieces that may wait in the channel; the agent waits when they do.
const WAITING: usize = 64;

/// Most bytes of the agent in one piece.
const PIECE: usize = 16 << 10;

/// What came in.
#[derive(Debug)]
pub enum Heard {
    /// Bytes of the agent.
    Bytes(Vec<u8>),
    /// The agent has closed its output; an error if its driver failed.
    Ended(Result<(), String>),
    /// The person wants the turn to end.
    Interrupt,
    /// A key, asked for under this number; none: there is no input any more.
    Key(u64, Option<char>),
}

/// The agent and everything else a turn listens to.
pub struct Link {
    to_agent: Option<PipeWriter>,
    heard: Receiver<Heard>,
    sender: SyncSender<Heard>,
    keys: u64,
    asking: Option<(StopKey, JoinHandle<()>)>,
    started: Instant,
}

impl Link {
    /// Starts the agent and listens to signals.
    pub fn start(runtime: Runtime, config: Config) -> io::Result<Self> {
        let (sender, heard) = sync_channel(WAITING);
        let (agent_in, to_agent) = io::pipe()?;
        let (from_agent, agent_out) = io::pipe()?;
        let agent = thread::Builder::new()
            .name("agent".into())
            .spawn(move || host::serve(runtime, Agent::new(config), agent_in, agent_out))?;
        listen(from_agent, agent, sender.clone())?;
        #[cfg(unix)]
        signals(sender.clone())?;
        Ok(Self {
            to_agent: Some(to_agent),
            heard,
            sender,
            keys: 0,
            asking: None,
            started: Instant::now(),
        })
    }

    /// Time since the start.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Sends a frame; false if the agent takes none any more.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        match &mut self.to_agent {
            Some(pipe) => pipe.write_all(frame).is_ok(),
            None => false,
        }
    }

    /// Says that nothing more will be sent.
    pub fn finish(&mut self) {
        self.to_agent = None;
    }

    /// The next thing; `None` if there was none until `deadline`, a time since the start.
    pub fn hear(&mut self, deadline: Option<Duration>) -> Option<Heard> {
        match deadline {
            // The sender of our own keeps the channel open.
            None => self.heard.recv().ok(),
            Some(at) => {
                let time = at.saturating_sub(self.now());
                self.heard.recv_timeout(time).ok()
            }
        }
    }

    /// Waits for one of the keys `wanted` on a terminal that is ready for it; it comes as
    /// [`Heard::Key`] under the number given back.
    pub fn wait_key(&mut self, keys: Keys, wanted: Vec<char>) -> u64 {
        self.stop_key();
        self.keys += 1;
        let number = self.keys;
        let stop = StopKey::default();
        let (stopped, sender) = (stop.clone(), self.sender.clone());
        let thread = thread::spawn(move || {
            let key = keys.wait(&wanted, &stopped).ok().flatten();
            // Whoever stops the wait waits for this thread and takes nothing out of the channel.
            while !stopped.stopped() {
                match sender.try_send(Heard::Key(number, key)) {
                    Err(TrySendError::Full(_)) => thread::sleep(Duration::from_millis(5)),
                    Ok(()) | Err(TrySendError::Disconnected(_)) => break,
                }
            }
        });
        self.asking = Some((stop, thread));
        number
    }

    /// Waits for no key any more; the terminal is as it was when this returns.
    pub fn stop_key(&mut self) {
        if let Some((stop, thread)) = self.asking.take() {
            stop.stop();
            // It looks at the stop many times a second. Elsewhere than on Unix a line is read to
            // its end, which may never come, and the terminal was not changed.
            if cfg!(unix) || thread.is_finished() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop_key();
    }
}

fn listen(
    mut from_agent: PipeReader,
    agent: JoinHandle<Result<(), String>>,
    sender: SyncSender<Heard>,
) -> io::Result<()> {
    thread::Builder::new()
        .name("listen".into())
        .spawn(move || {
            let mut piece = vec![0; PIECE];
            loop {
                match from_agent.read(&mut piece) {
                    Ok(0) => break,
                    Ok(count) => {
                        if sender.send(Heard::Bytes(piece[..count].to_vec())).is_err() {
                            return;
                        }
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            let result = agent
                .join()
                .unwrap_or_else(|_| Err("the agent panicked".into()));
            let _ = sender.send(Heard::Ended(result));
        })?;
    Ok(())
}

#[cfg(unix)]
fn signals(sender: SyncSender<Heard>) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for _ in signals.forever() {
                if sender.send(Heard::Interrupt).is_err() {
                    break;
                }
            }
        })?;
    Ok(())
}
