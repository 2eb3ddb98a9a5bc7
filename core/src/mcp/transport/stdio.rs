//! A program on its standard streams: one message a line. What it says on its standard error is
//! drained, and the last of it is kept.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Arrived, Fault, Outgoing};
use crate::call::{Call, Errors, Exit, Keep, News, Outcome, Process, Program, Stream};
use crate::ids::CallId;
use crate::limits::Limits;
use crate::mcp::catalogue::one_line;
use crate::mcp::{Context, Output};
use crate::secret::Secret;
use crate::wire::{FrameDecoder, Line};

/// What is kept of the standard error, bytes.
const KEPT: usize = 4 << 10;

#[derive(Debug)]
pub(in crate::mcp) struct Stdio {
    process: CallId,
    lines: FrameDecoder,
    errors: Vec<u8>,
    complaint: String,
    over: bool,
    /// Bytes for it that it has not read.
    unread: usize,
    /// What it started runs on without it.
    left: bool,
}

impl Stdio {
    pub fn start(
        command: &str,
        args: &[String],
        env: &[(String, Secret)],
        cwd: &str,
        cx: &mut Context<'_>,
    ) -> Self {
        let id = CallId::new(cx.ids.next());
        let argv = core::iter::once(String::from(command)).chain(args.iter().cloned());
        let process = Process {
            program: Program::Argv(argv.collect()),
            cwd: cwd.into(),
            env: env.to_vec(),
            stdin: true,
            errors: Errors::Apart,
            keep: Keep::All,
            sandbox: None,
        };
        let call = Call::Process(process);
        cx.out.push_back(Output::Start { id, call });
        Self {
            process: id,
            lines: FrameDecoder::new(cx.limits.max_mcp_message),
            errors: Vec::new(),
            complaint: String::new(),
            over: false,
            unread: 0,
            left: false,
        }
    }

    pub fn send(&mut self, cx: &mut Context<'_>, message: Outgoing) {
        if !self.over {
            self.unread += message.bytes.len();
            cx.out.push_back(Output::Feed {
                id: self.process,
                bytes: message.bytes,
            });
        }
    }

    pub fn handle_news(
        &mut self,
        _cx: &mut Context<'_>,
        id: CallId,
        news: News<'_>,
        arrived: &mut VecDeque<Arrived>,
    ) -> bool {
        if id != self.process {
            return false;
        }
        match news {
            News::Bytes {
                stream: Stream::Out,
                bytes,
            } => {
                self.lines.push(bytes);
                self.read(arrived);
            }
            News::Bytes {
                stream: Stream::Err,
                bytes,
            } => self.complain(bytes),
            News::Done(Outcome::Exited(exit)) => {
                self.left = exit.left;
                self.lines.finish();
                self.read(arrived);
                self.end(format!("its program ended{}", how(exit)), arrived);
            }
            News::Done(_) => self.end("its program ended".into(), arrived),
            News::Failed(fault) => self.end(format!("{fault}"), arrived),
            News::Fed(bytes) => self.unread = self.unread.saturating_sub(bytes),
            News::Opened(_) => {}
        }
        true
    }

    /// Who does not read what was answered is not listened to.
    pub fn room(&self, id: CallId, limits: &Limits) -> Option<usize> {
        let full = self.unread > limits.max_mcp_message;
        (id == self.process).then_some(if full { 0 } else { limits.call_window })
    }

    pub fn close(&mut self, cx: &mut Context<'_>) {
        if !self.over {
            self.over = true;
            cx.out.push_back(Output::FeedEnd { id: self.process });
            cx.out.push_back(Output::Abort { id: self.process });
        } else if core::mem::take(&mut self.left) {
            cx.out.push_back(Output::Abort { id: self.process });
        }
    }

    pub fn complaint(&self) -> &str {
        &self.complaint
    }

    fn end(&mut self, why: String, arrived: &mut VecDeque<Arrived>) {
        if !self.over {
            self.over = true;
            arrived.push_back(Arrived::Down(Fault::new(why)));
        }
    }

    fn read(&mut self, arrived: &mut VecDeque<Arrived>) {
        while let Some(line) = self.lines.next_line() {
            arrived.push_back(match line {
                // A banner or a log line in the wrong place: no answer is due to it.
                Line::Frame(line) if !looks_like_message(line) => {
                    Arrived::Noise(one_line(&String::from_utf8_lossy(line), KEPT))
                }
                Line::Frame(line) => Arrived::Frame(line.to_vec()),
                Line::TooLong => Arrived::TooLong,
            });
        }
    }

    /// Keeps the end of what is complained, its last line that is not empty first of all.
    fn complain(&mut self, bytes: &[u8]) {
        let from = bytes.len().saturating_sub(KEPT);
        self.errors.extend_from_slice(&bytes[from..]);
        if self.errors.len() > KEPT {
            let more = self.errors.len() - KEPT;
            self.errors.drain(..more);
        }
        let text = String::from_utf8_lossy(&self.errors);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        if let Some(last) = last {
            // It is cut when its secrets are out; what begins in the middle may begin in one.
            let whole = self.errors.len() < KEPT || text.lines().count() > 1;
            let rest = last.split_once(' ').map_or("", |(_, rest)| rest);
            self.complaint = one_line(if whole { last } else { rest }, KEPT);
        }
    }
}

fn looks_like_message(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    line.starts_with(b"{") && memchr::memmem::find(line, b"\"jsonrpc\"").is_some()
}

fn how(exit: Exit) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!(" with exit code {code}"),
        (None, Some(signal)) => format!(" by signal {signal}"),
        (None, None) => String::new(),
    }
}
