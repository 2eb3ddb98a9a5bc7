//! The runtime on plain threads: one thread owns the agent and sits in `poll(2)` when there is
//! nothing to do.

use reasonix_core::agent::{Agent, Config};
use rustix::event::PollFd;

use crate::driver::{Advanced, Driver, Ended, Error, Name, Served, Stdio};
use crate::hooks::Hooks;
use crate::link::wait;
use crate::pool::Pool;

/// Runs the agent to its end. The thread it is called on owns it and starts its programs, which on
/// Linux die with that thread; no program of the agent is left when this returns.
///
/// # Errors
///
/// If the descriptors cannot be used, or the system has none left to wait with.
pub fn serve(agent: Agent, io: Stdio) -> Result<Ended, Error> {
    serve_with(agent, io, Hooks::new())
}

/// As [`serve`], with what of an embedder's own the agent calls.
///
/// # Errors
///
/// As [`serve`], and as [`Hooks::check`].
pub fn serve_with(agent: Agent, io: Stdio, hooks: Hooks) -> Result<Ended, Error> {
    let config = agent.config().clone();
    serve_machine(agent, &config, io, hooks)
}

/// As [`serve_with`], for any machine with the agent's inputs and effects (one that records an agent,
/// say). `config` is what the agent was made with.
///
/// # Errors
///
/// As [`serve_with`].
pub fn serve_machine<M: Served>(
    machine: M,
    config: &Config,
    io: Stdio,
    hooks: Hooks,
) -> Result<Ended, Error> {
    let pool = Pool::default();
    let hands = Box::new(move |job| pool.run(job));
    let mut driver = Driver::new(machine, config, io, hooks, hands)?;
    loop {
        match driver.advance() {
            Advanced::Ended(reason) => {
                driver.end();
                return Ok(reason);
            }
            Advanced::Busy => {}
            Advanced::Wait(until) => {
                let time = until.map(|at| driver.clock().until(at));
                let mut names = Vec::new();
                let mut fds = Vec::new();
                for (name, fd, flags) in driver.wants() {
                    names.push(name);
                    fds.push(PollFd::from_borrowed_fd(fd, flags));
                }
                wait(&mut fds, time)?;
                let ready = |wanted| {
                    let mut all = names.iter().zip(&fds);
                    all.any(|(name, fd)| *name == wanted && !fd.revents().is_empty())
                };
                let (output, bell) = (ready(Name::Output), ready(Name::Bell));
                drop(fds);
                driver.woken(output, bell);
            }
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it is about"
)]
mod tests {
    use super::*;
    use crate::ops::testing::dir;
    use reasonix_core::agent::{CloseReason, Effect, Input};
    use reasonix_core::call::{
        Append, Call, Errors, Expect, HttpRequest, Keep, News, Outcome, Process, Program, Write,
    };
    use reasonix_core::ids::CallId;
    use reasonix_core::machine::{Machine, Next, Source};
    use reasonix_core::time::Instant;
    use std::collections::VecDeque;
    use std::io::{BufRead, BufReader, Read, Write as _};
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;
    use std::sync::{Arc, Mutex};
    use std::thread::{self, JoinHandle};
    use std::time::{Duration, Instant as Now};

    /// What a test lets the driver do when it hears something.
    enum Do {
        Send(Vec<u8>),
        Effect(Effect<'static>),
    }

    /// Notes what the driver says, and does what the test wants done about it.
    struct Puppet<F> {
        react: F,
        waiting: VecDeque<Do>,
        current: Vec<u8>,
        heard: Arc<Mutex<Vec<String>>>,
        room: usize,
    }

    impl<F: FnMut(&Input<'_>, &mut VecDeque<Do>)> Machine for Puppet<F> {
        type Input<'a> = Input<'a>;
        type Effect<'a>
            = Effect<'a>
        where
            Self: 'a;

        fn handle_input(&mut self, _: Instant, input: Input<'_>) {
            let mut heard = self.heard.lock().expect("nobody panics");
            heard.push(format!("{input:?}"));
            (self.react)(&input, &mut self.waiting);
        }

        fn handle_timeout(&mut self, _: Instant) {}

        fn poll_effect(&mut self) -> Next<Effect<'_>> {
            match self.waiting.pop_front() {
                Some(Do::Send(bytes)) => {
                    self.current = bytes;
                    Next::Do(Effect::Transmit(&self.current))
                }
                Some(Do::Effect(effect)) => Next::Do(effect),
                None => Next::Wait(None),
            }
        }

        fn room(&self, _: Source) -> usize {
            self.room
        }
    }

    struct Test {
        peer: UnixStream,
        heard: Arc<Mutex<Vec<String>>>,
        driver: JoinHandle<Ended>,
    }

    fn config() -> Config {
        Config::new([0; 32], crate::config::host())
    }

    fn begin(react: impl FnMut(&Input<'_>, &mut VecDeque<Do>) + Send + 'static) -> Test {
        let (peer, near) = UnixStream::pair().expect("sockets can be made");
        let heard = Arc::default();
        let puppet = Puppet {
            react,
            waiting: VecDeque::new(),
            current: Vec::new(),
            heard: Arc::clone(&heard),
            room: 64 << 10,
        };
        let output = near.try_clone().expect("it can be shared");
        let io = Stdio::over(near.into(), output.into());
        let driver = thread::spawn(move || {
            serve_machine(puppet, &config(), io, Hooks::new()).expect("it can be served")
        });
        Test {
            peer,
            heard,
            driver,
        }
    }

    impl Test {
        fn say(&mut self, text: &str) {
            self.peer.write_all(text.as_bytes()).expect("it listens");
        }

        fn hears(&self, what: &str) {
            let limit = Now::now() + Duration::from_secs(10);
            loop {
                let heard = self.heard.lock().expect("nobody panics");
                if heard.iter().any(|it| it.contains(what)) {
                    return;
                }
                assert!(Now::now() < limit, "{what} is not among {heard:?}");
                drop(heard);
                thread::yield_now();
            }
        }

        fn end(self) -> Vec<String> {
            drop(self.peer);
            self.driver.join().expect("it ends without a panic");
            let heard = self.heard.lock().expect("nobody panics");
            heard.clone()
        }
    }

    fn close_at_the_end(input: &Input<'_>, out: &mut VecDeque<Do>) {
        if matches!(input, Input::PeerFinished | Input::PeerGone) {
            out.push_back(Do::Effect(Effect::Close(CloseReason::Finished)));
        }
    }

    fn start(number: u64, call: Call) -> Do {
        let id = CallId::new(number);
        Do::Effect(Effect::Start { id, call })
    }

    fn shell(line: &str) -> Call {
        Call::Process(Process {
            program: Program::Shell(line.to_owned()),
            cwd: "/".into(),
            env: Vec::new(),
            stdin: false,
            errors: Errors::Merged,
            keep: Keep::All,
            sandbox: None,
        })
    }

    #[test]
    fn bytes_go_both_ways_and_the_end_is_the_end() {
        let mut test = begin(|input, out| {
            if let Input::Received(bytes) = input {
                out.push_back(Do::Send(bytes.to_ascii_uppercase()));
            }
            close_at_the_end(input, out);
        });
        test.say("hello\n");
        let mut line = String::new();
        let mut reader = BufReader::new(test.peer.try_clone().expect("it can be shared"));
        reader.read_line(&mut line).expect("it answers");
        assert_eq!(line, "HELLO\n");
        drop(reader);
        let heard = test.end();
        assert!(heard[0].starts_with("Wall("), "{heard:?}");
        assert_eq!(heard.last().map(String::as_str), Some("PeerFinished"));
    }

    #[test]
    fn calls_run_and_their_news_come_back() {
        let (_keep, w) = dir();
        let path = format!("{w}/f");
        let mut test = begin(move |input, out| {
            if let Input::Received(_) = input {
                out.push_back(start(1, shell("echo from a shell; exit 4")));
                let write = Call::Write(Write {
                    path: path.clone(),
                    beneath: None,
                    bytes: b"x".to_vec(),
                    expect: Expect::Absent,
                    parents: false,
                    private: false,
                });
                out.push_back(start(2, write));
                out.push_back(start(
                    3,
                    Call::Resolve {
                        path: "relative".into(),
                    },
                ));
            }
            close_at_the_end(input, out);
        });
        test.say("go");
        test.hears("id: CallId(1), news: Done(Exited(Exit { code: Some(4), signal: None");
        test.hears("id: CallId(2), news: Done(Written)");
        test.hears("id: CallId(3), news: Failed(");
        let heard = test.end();
        let shell: Vec<_> = heard.iter().filter(|it| it.contains("CallId(1)")).collect();
        assert_eq!(shell.len(), 2, "{shell:?}");
        assert_eq!(std::fs::read(format!("{w}/f")).expect("it is there"), b"x");
    }

    #[test]
    fn what_is_kept_on_disk_is_called_for_and_locks_end_with_the_driver() {
        let (_keep, w) = dir();
        let (home, file) = (format!("{w}/home"), format!("{w}/home/a/t"));
        let lock = |home: &str| Call::Lock {
            path: format!("{home}/a/lock"),
            beneath: home.to_owned(),
        };
        let mut calls = VecDeque::from([
            lock(&home),
            Call::Append(Append {
                path: file.clone(),
                beneath: home.clone(),
                bytes: b"line\n".to_vec(),
                durable: true,
            }),
            Call::ReadAt {
                path: file,
                beneath: home.clone(),
                at: 1,
                max: 2,
            },
            lock(&home),
        ]);
        let mut test = begin(move |input, out| {
            if let Input::Received(_) = input {
                let number = 4 - calls.len() as u64;
                out.push_back(start(number, calls.pop_front().expect("one a word")));
            }
            close_at_the_end(input, out);
        });
        for (number, news) in [
            "Done(Locked)",
            "Done(Appended)",
            "Done(Part(Part { bytes: [105, 110], size: 5 }))",
            "Done(Held(Holder { pid: Some(",
        ]
        .iter()
        .enumerate()
        {
            test.say("next");
            test.hears(&format!("id: CallId({number}), news: {news}"));
        }
        test.end();
        let stop = crate::ops::Stop::default();
        let (host, kept) = (crate::config::host(), crate::ops::Kept::default());
        for (call, outcome) in [
            (lock(&home), Outcome::Locked),
            (
                Call::Unlock {
                    path: format!("{home}/a/lock"),
                },
                Outcome::Unlocked,
            ),
            (
                Call::RemoveTree {
                    path: format!("{home}/a"),
                    beneath: home.clone(),
                },
                Outcome::Removed,
            ),
        ] {
            let told = crate::ops::run(call, &host, &kept, &stop);
            assert_eq!(told, crate::ops::Told::Done(outcome));
        }
        assert_eq!(std::fs::read_dir(&home).map_or(9, Iterator::count), 0);
    }

    #[test]
    fn an_aborted_request_is_settled_at_once_and_its_server_sees_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        let request = HttpRequest {
            method: "POST",
            url,
            headers: Vec::new(),
            body: b"{}".to_vec(),
            connect_time: Duration::from_secs(5),
            reach: reasonix_core::reach::Reach::Anywhere,
        };
        let mut request = Some(request);
        let mut test = begin(move |input, out| {
            if let Input::Received(_) = input {
                match request.take() {
                    Some(request) => out.push_back(start(1, Call::Http(request))),
                    None => out.push_back(Do::Effect(Effect::Abort { id: CallId::new(1) })),
                }
            }
            close_at_the_end(input, out);
        });
        test.say("a");
        let (mut server, _) = listener.accept().expect("it comes");
        let mut byte = [0];
        server.read_exact(&mut byte).expect("it asks");
        let before = Now::now();
        test.say("b");
        test.hears("kind: Aborted");
        assert!(before.elapsed() < Duration::from_millis(100));
        // The whole request, then the end.
        let mut rest = Vec::new();
        let _ = server.read_to_end(&mut rest);
        let heard = test.end();
        let ends = heard.iter().filter(|it| it.contains("CallId(1)")).count();
        assert_eq!(ends, 1, "{heard:?}");
    }

    #[test]
    fn no_process_is_left_when_the_peer_is_gone() {
        let (_keep, w) = dir();
        let pids = format!("{w}/pids");
        let line = format!(
            "trap '' TERM; sleep 1000 & echo $! >{pids}; (trap '' TERM; sleep 1001) & \
             echo $! >>{pids}; echo $$ >>{pids}; echo on; wait; sleep 1002"
        );
        let stays = "sleep 1003 & echo stays".to_owned();
        let mut test = begin(move |input, out| {
            if let Input::Received(_) = input {
                out.push_back(start(1, shell(&line)));
                out.push_back(start(2, shell(&stays)));
            }
            close_at_the_end(input, out);
        });
        test.say("go");
        test.hears("CallId(1), news: Bytes");
        test.hears("CallId(2), news: Done(Exited");
        let before = Now::now();
        test.end();
        assert!(before.elapsed() < Duration::from_secs(5));
        let limit = Now::now() + Duration::from_secs(5);
        let text = std::fs::read_to_string(&pids).expect("it was written");
        for pid in text.lines() {
            while alive(pid) {
                assert!(Now::now() < limit, "{pid} is left");
                thread::yield_now();
            }
        }
    }

    /// Whether it runs; one that was killed and waits for init to take note does not.
    fn alive(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        !matches!(state, None | Some('Z' | 'X'))
    }

    #[test]
    fn an_abort_reaches_who_stays_behind_a_command_that_is_over() {
        let mut steps = VecDeque::from([
            start(1, shell("sleep 1000 & echo $!")),
            start(2, shell("trap '' TERM; sleep 1000 & echo $!")),
            Do::Effect(Effect::Abort { id: CallId::new(1) }),
            Do::Effect(Effect::Abort { id: CallId::new(2) }),
        ]);
        let pids = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&pids);
        let mut test = begin(move |input, out| {
            match input {
                Input::Received(_) => out.push_back(steps.pop_front().expect("one a word")),
                Input::Call {
                    news: News::Bytes { bytes, .. },
                    ..
                } => {
                    let pid = String::from_utf8_lossy(bytes).trim().to_owned();
                    seen.lock().expect("nobody panics").push(pid);
                }
                _ => {}
            }
            close_at_the_end(input, out);
        });
        for number in [1, 2] {
            test.say("start");
            test.hears(&format!("CallId({number}), news: Done(Exited"));
        }
        let pids = pids.lock().expect("nobody panics").clone();
        let (one, two) = (&pids[0], &pids[1]);
        assert!(alive(one) && alive(two), "nobody asked them to end");
        let limit = Now::now() + Duration::from_secs(5);
        let gone = |pid: &str| {
            while alive(pid) {
                assert!(Now::now() < limit, "{pid} is left");
                thread::yield_now();
            }
        };
        test.say("abort");
        gone(one);
        assert!(alive(two), "it belongs to another call");
        test.say("abort");
        gone(two);
        let heard = test.end();
        let ends = heard.iter().filter(|it| it.contains("Done(Exited"));
        let failed = heard.iter().filter(|it| it.contains("Failed"));
        assert_eq!((ends.count(), failed.count()), (2, 0), "{heard:?}");
    }

    #[test]
    fn a_closed_output_is_no_panic() {
        let test = begin(|input, out| {
            if let Input::Received(_) | Input::Wall(_) = input {
                out.push_back(Do::Send(vec![b'x'; 100]));
            }
            close_at_the_end(input, out);
        });
        let heard = test.end();
        let last = heard.last().map(String::as_str);
        assert!(
            matches!(last, Some("PeerGone" | "PeerFinished")),
            "{heard:?}"
        );
    }

    #[test]
    fn news_of_calls_are_never_more_than_there_is_room_for() {
        let mut biggest = 0;
        let most = Arc::new(Mutex::new(0));
        let seen = Arc::clone(&most);
        let mut test = begin(move |input, out| {
            match input {
                Input::Received(_) => out.push_back(start(1, shell("head -c 1000000 /dev/zero"))),
                Input::Call {
                    news: News::Bytes { bytes, .. },
                    ..
                } => {
                    biggest = biggest.max(bytes.len());
                    *seen.lock().expect("nobody panics") = biggest;
                }
                Input::Call {
                    news: News::Done(Outcome::Exited(_)),
                    ..
                } => {}
                _ => {}
            }
            close_at_the_end(input, out);
        });
        test.say("go");
        test.hears("Done(Exited");
        test.end();
        let most = *most.lock().expect("nobody panics");
        assert!(most > 0 && most <= 64 << 10, "{most}");
    }
}
