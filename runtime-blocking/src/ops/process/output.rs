//! One output of a program: its pipe, and what of it is kept.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use reasonix_core::call::{Keep, Stream};

use super::Told;

/// Most bytes read at once: what a pipe holds.
const PIECE: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Output {
    stream: Stream,
    pipe: Option<File>,
    /// What may still be read of a pipe that others than the program hold.
    rest: Option<usize>,
    kept: Option<Kept>,
}

impl Output {
    pub fn new(stream: Stream, pipe: PipeReader, keep: Keep) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let kept = match keep {
            Keep::All => None,
            Keep::HeadAndTail { head, tail } => Some(Kept {
                head,
                tail,
                ..Kept::default()
            }),
        };
        Ok(Self {
            stream,
            pipe: Some(File::from(OwnedFd::from(pipe))),
            rest: None,
            kept,
        })
    }

    pub fn stream(&self) -> Stream {
        self.stream
    }

    pub fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// The pipe, if it should be waited on.
    pub fn wants(&self, room: usize) -> Option<BorrowedFd<'_>> {
        let pipe = self.pipe.as_ref()?;
        (room > 0 || self.kept.is_some()).then(|| pipe.as_fd())
    }

    /// Whether all was told.
    pub fn over(&self) -> bool {
        self.pipe.is_none() && self.kept.as_ref().is_none_or(Kept::told)
    }

    pub fn dropped(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.dropped)
    }

    /// Reads once, and tells what there is room for. `late`: the program has ended a while ago, so
    /// only what is in the pipe now still counts.
    pub fn read(&mut self, late: bool, room: &mut usize, tell: &mut dyn FnMut(Told)) {
        if let Some(pipe) = &self.pipe
            && late
            && self.rest.is_none()
        {
            let held = rustix::io::ioctl_fionread(pipe).unwrap_or(0);
            self.rest = Some(usize::try_from(held).unwrap_or(usize::MAX));
        }
        let most = match self.kept {
            Some(_) => PIECE,
            None => PIECE.min(*room),
        };
        let most = most.min(self.rest.unwrap_or(usize::MAX));
        if self.rest == Some(0) {
            self.pipe = None;
        }
        if let Some(pipe) = &mut self.pipe
            && most > 0
        {
            let mut buf = vec![0; most];
            match pipe.read(&mut buf) {
                Ok(0) => self.pipe = None,
                Ok(count) => {
                    buf.truncate(count);
                    if let Some(rest) = &mut self.rest {
                        *rest -= count;
                    }
                    match &mut self.kept {
                        Some(kept) => kept.push(&buf),
                        None => {
                            *room -= count;
                            tell(Told::Bytes(self.stream, buf));
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.rest.is_some() {
                        self.pipe = None;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.pipe = None,
            }
        }
        // Nothing more will make it ready.
        if self.rest == Some(0) {
            self.pipe = None;
        }
        if let Some(kept) = &mut self.kept {
            if self.pipe.is_none() {
                kept.end();
            }
            let count = kept.ready.len().min(*room);
            if count > 0 {
                *room -= count;
                tell(Told::Bytes(
                    self.stream,
                    kept.ready.drain(..count).collect(),
                ));
            }
        }
    }
}

/// The beginning and the end of an output.
#[derive(Debug, Default)]
struct Kept {
    /// Bytes of the beginning still wanted.
    head: usize,
    /// Bytes of the end wanted.
    tail: usize,
    /// To be told.
    ready: VecDeque<u8>,
    /// The last bytes so far.
    last: VecDeque<u8>,
    dropped: u64,
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.head));
        self.head -= head.len();
        self.ready.extend(head);
        let kept = &rest[rest.len().saturating_sub(self.tail)..];
        self.last.extend(kept);
        let over = self.last.len().saturating_sub(self.tail);
        self.last.drain(..over);
        self.dropped += (rest.len() - kept.len() + over) as u64;
    }

    fn end(&mut self) {
        self.ready.append(&mut self.last);
    }

    fn told(&self) -> bool {
        self.ready.is_empty() && self.last.is_empty()
    }
}
