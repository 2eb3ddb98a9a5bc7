//! The runtime on async-io: one task owns the agent and waits for the reactor when there is nothing
//! to do.

use std::future::poll_fn;
use std::task::Poll;

use reasonix_blocking::driver::{Advanced, Driver, Name};
use reasonix_blocking::{Ended, Error, Hooks, Served, Stdio};
use reasonix_core::agent::{Agent, Config};

use crate::watch::Watch;

/// Runs the agent to its end, as one task. The thread that polls it starts the agent's programs,
/// which on Linux die with that thread: poll it on one that lives as long, such as the main thread
/// with `async_io::block_on`. No program of the agent is left when this is done, nor when it is
/// dropped before.
///
/// # Errors
///
/// If the descriptors cannot be used, or the system has none left to wait with.
pub async fn serve(agent: Agent, io: Stdio) -> Result<Ended, Error> {
    serve_with(agent, io, Hooks::new()).await
}

/// As [`serve`], with what of an embedder's own the agent calls.
///
/// # Errors
///
/// As [`serve`], and as [`Hooks::check`].
pub async fn serve_with(agent: Agent, io: Stdio, hooks: Hooks) -> Result<Ended, Error> {
    let config = agent.config().clone();
    serve_machine(agent, &config, io, hooks).await
}

/// As [`serve_with`], for any machine with the agent's inputs and effects (one that records an agent,
/// say). `config` is what the agent was made with.
///
/// # Errors
///
/// As [`serve_with`].
pub async fn serve_machine<M: Served>(
    machine: M,
    config: &Config,
    io: Stdio,
    hooks: Hooks,
) -> Result<Ended, Error> {
    let hands = Box::new(|job| blocking::unblock(job).detach());
    let mut driver = Driver::new(machine, config, io, hooks, hands)?;
    let mut watch: Watch<Name> = Watch::new();
    let mut ready = Vec::new();
    loop {
        match driver.advance() {
            Advanced::Ended(reason) => {
                drop(watch);
                driver.end();
                return Ok(reason);
            }
            Advanced::Busy => yield_now().await,
            Advanced::Wait(until) => {
                let until = until.map(|at| driver.clock().system(at));
                watch.retain(|name| driver.is_open(name));
                ready.clear();
                watch.wait(driver.wants(), until, &mut ready).await?;
                let (output, bell) = (ready.contains(&Name::Output), ready.contains(&Name::Bell));
                driver.woken(output, bell);
            }
        }
    }
}

/// Lets other tasks of the thread, and the reactor, have a turn.
pub(crate) async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it is about"
)]
mod tests {
    use super::*;
    use futures_lite::future::{or, zip};
    use futures_lite::{AsyncReadExt, AsyncWriteExt};
    use reasonix_core::agent::{CloseReason, Effect, Input};
    use reasonix_core::call::{Call, Errors, HttpRequest, Keep, News, Process, Program};
    use reasonix_core::ids::CallId;
    use reasonix_core::machine::{Machine, Next, Source};
    use reasonix_core::time::{Deadline, Instant, Timer};
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;
    use std::rc::Rc;
    use std::time::Duration;

    type Out = VecDeque<Effect<'static>>;

    /// Notes what the driver says, and does what the test wants done about it.
    struct Puppet<F> {
        react: F,
        waiting: Out,
        heard: Rc<RefCell<Vec<String>>>,
        deadline: Option<Deadline>,
    }

    impl<F: FnMut(&Input<'_>, &mut Out)> Machine for Puppet<F> {
        type Input<'a> = Input<'a>;
        type Effect<'a>
            = Effect<'a>
        where
            Self: 'a;

        fn handle_input(&mut self, _: Instant, input: Input<'_>) {
            self.heard.borrow_mut().push(format!("{input:?}"));
            (self.react)(&input, &mut self.waiting);
            if matches!(input, Input::PeerFinished | Input::PeerGone) {
                let reason = CloseReason::Finished;
                self.waiting.push_back(Effect::Close(reason));
            }
        }

        fn handle_timeout(&mut self, _: Instant) {
            self.deadline = None;
            self.heard.borrow_mut().push("timeout".into());
        }

        fn poll_effect(&mut self) -> Next<Effect<'_>> {
            match self.waiting.pop_front() {
                Some(effect) => Next::Do(effect),
                None => Next::Wait(self.deadline),
            }
        }

        fn room(&self, _: Source) -> usize {
            64 << 10
        }
    }

    type Heard = Rc<RefCell<Vec<String>>>;

    /// Serves a puppet while `peer` does its part, till the puppet is at its end.
    fn play<P: Future<Output = ()>>(
        deadline: Option<Deadline>,
        react: impl FnMut(&Input<'_>, &mut Out) + 'static,
        peer: impl FnOnce(async_io::Async<UnixStream>, Heard) -> P,
    ) -> Vec<String> {
        let (near, far) = UnixStream::pair().expect("sockets can be made");
        let heard = Heard::default();
        let puppet = Puppet {
            react,
            waiting: Out::new(),
            heard: Rc::clone(&heard),
            deadline,
        };
        let output = near.try_clone().expect("it can be shared");
        let io = Stdio::over(near.into(), output.into());
        let config = Config::new([0; 32], reasonix_blocking::config::host());
        let far = async_io::Async::new(far).expect("the reactor takes it");
        let late = async {
            async_io::Timer::after(Duration::from_secs(20)).await;
            panic!("it does not end: {:?}", heard.borrow());
        };
        let both = zip(
            serve_machine(puppet, &config, io, Hooks::new()),
            peer(far, Rc::clone(&heard)),
        );
        let (ended, ()) = async_io::block_on(or(both, late));
        assert_eq!(ended.expect("it can be served"), CloseReason::Finished);
        heard.take()
    }

    /// Waits till the puppet has heard it.
    async fn hears(heard: &Heard, what: &str) {
        while !heard.borrow().iter().any(|it| it.contains(what)) {
            async_io::Timer::after(Duration::from_millis(1)).await;
        }
    }

    fn start(number: u64, call: Call) -> Effect<'static> {
        let id = CallId::new(number);
        Effect::Start { id, call }
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
    fn bytes_calls_time_and_the_end_reach_the_machine() {
        let deadline = Deadline {
            at: Instant::since_start(Duration::from_millis(30)),
            why: Timer::Script,
        };
        let heard = play(
            Some(deadline),
            |input, out| {
                if let Input::Received(_) = input {
                    out.push_back(Effect::Transmit(b"{}\n"));
                    out.push_back(start(1, shell("head -c 300000 /dev/zero; exit 4")));
                    out.push_back(start(2, Call::Resolve { path: "/".into() }));
                }
            },
            |mut far, heard| async move {
                far.write_all(b"go").await.expect("it listens");
                let mut line = [0; 3];
                far.read_exact(&mut line).await.expect("it answers");
                assert_eq!(&line, b"{}\n");
                hears(&heard, "CallId(1), news: Done(Exited(Exit { code: Some(4)").await;
                hears(&heard, "CallId(2), news: Done(Resolved(").await;
                hears(&heard, "timeout").await;
            },
        );
        assert!(heard[0].starts_with("Wall("), "{heard:?}");
        assert_eq!(heard.last().map(String::as_str), Some("PeerFinished"));
        assert_eq!(heard.iter().filter(|it| *it == "timeout").count(), 1);
    }

    #[test]
    fn an_aborted_request_is_settled_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let mut request = Some(HttpRequest {
            method: "POST",
            url: format!("http://{}/", listener.local_addr().expect("bound")),
            headers: Vec::new(),
            body: b"{}".to_vec(),
            connect_time: Duration::from_secs(5),
            reach: reasonix_core::reach::Reach::Anywhere,
        });
        let server = async_io::Async::new(listener).expect("the reactor takes it");
        play(
            None,
            move |input, out| {
                if let Input::Received(_) = input {
                    match request.take() {
                        Some(request) => out.push_back(start(1, Call::Http(request))),
                        None => out.push_back(Effect::Abort { id: CallId::new(1) }),
                    }
                }
            },
            |mut far, heard| async move {
                far.write_all(b"a").await.expect("it listens");
                let (mut served, _) = server.accept().await.expect("it comes");
                served.read_exact(&mut [0]).await.expect("it asks");
                let before = std::time::Instant::now();
                far.write_all(b"b").await.expect("it listens");
                hears(&heard, "kind: Aborted").await;
                assert!(before.elapsed() < Duration::from_millis(100));
            },
        );
    }

    #[test]
    fn no_process_is_left_at_the_end() {
        let (pid, pids) = std::sync::mpsc::channel();
        play(
            None,
            move |input, out| match input {
                Input::Received(_) => {
                    let line = "trap '' TERM; echo $$; while :; do sleep 0.05; done";
                    out.push_back(start(1, shell(line)));
                }
                Input::Call {
                    news: News::Bytes { bytes, .. },
                    ..
                } => {
                    let text = String::from_utf8_lossy(bytes).trim().to_owned();
                    pid.send(text).expect("the test waits");
                }
                _ => {}
            },
            |mut far, heard| async move {
                far.write_all(b"go").await.expect("it listens");
                hears(&heard, "news: Bytes").await;
            },
        );
        let pid = pids.recv().expect("it was told");
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        assert!(matches!(state, None | Some('Z' | 'X')), "{stat}");
    }
}
