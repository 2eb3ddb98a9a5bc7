//! One HTTP request with a streamed answer, read no faster than credit allows and given up at once
//! when it is aborted. Knows nothing of what is asked or answered.

mod reach;
mod socket;

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reasonix_core::call::{HeaderValue, HttpRequest, Opened, Outcome, Stream};
use reasonix_core::error::{IoFault, IoKind};
use reasonix_core::reach::Reach;
use ureq::config::AutoHeaderValue;
use ureq::http;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::transport::{ConnectProxyConnector, Connector, RustlsConnector};
use ureq::{Agent, Proxy};

use super::Told;

/// Most bytes of a body told at once.
const PIECE: usize = 16 << 10;

/// The other end of a running request: gives it credit and aborts it, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Handle(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    credit: usize,
    aborted: bool,
    socket: Option<Arc<TcpStream>>,
}

impl Handle {
    /// Lets the request read this many more bytes of the body.
    pub fn grant(&self, bytes: usize) {
        self.lock().credit += bytes;
        self.0.changed.notify_one();
    }

    /// Ends the request: its socket is shut down, so that nothing waits on it any more, and its
    /// last word will be that it was aborted.
    pub fn abort(&self) {
        let mut state = self.lock();
        state.aborted = true;
        if let Some(socket) = state.socket.take() {
            // An error means that it is closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(state);
        self.0.changed.notify_one();
    }

    /// Whether it was aborted.
    pub fn aborted(&self) -> bool {
        self.lock().aborted
    }

    /// Makes `socket` the one that an abort shuts down; false if the abort was first.
    fn attach(&self, socket: &Arc<TcpStream>) -> bool {
        let mut state = self.lock();
        if state.aborted {
            return false;
        }
        state.socket = Some(Arc::clone(socket));
        true
    }

    /// Lets go of the socket, which may serve another request from here on.
    fn detach(&self) {
        self.lock().socket = None;
    }

    /// Waits till there is credit, and takes up to a piece of it; none if it was aborted.
    fn take_credit(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.aborted {
                return None;
            }
            if state.credit > 0 {
                let piece = state.credit.min(PIECE);
                state.credit -= piece;
                return Some(piece);
            }
            let woken = self.0.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give_back(&self, bytes: usize) {
        self.lock().credit += bytes;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can panic half-way.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does the request: tells the head, the body in pieces for which `handle` has credit, and last
/// that it is over. Any status is an answer, redirects too.
pub fn run(request: &HttpRequest, handle: &Handle, mut tell: impl FnMut(Told)) {
    let _attached = socket::serve(handle);
    let last = match exchange(request, handle, &mut tell) {
        _ if handle.aborted() => Told::Failed(IoFault::new(IoKind::Aborted, "aborted")),
        Ok(()) => Told::Done(Outcome::Ended),
        Err(fault) => Told::Failed(fault),
    };
    handle.detach();
    tell(last);
}

fn exchange(
    request: &HttpRequest,
    handle: &Handle,
    tell: &mut impl FnMut(Told),
) -> Result<(), IoFault> {
    let uri: http::Uri = request
        .url
        .parse()
        .map_err(|e| IoFault::new(IoKind::Unsupported, format!("bad address: {e}")))?;
    let proxy = proxy_for(&uri, |name| std::env::var(name).ok());
    if let Some(proxy) = &proxy {
        let checked = reach::check_behind(proxy, &uri, request.reach);
        checked.map_err(|e| told(&ureq::Error::from(e)))?;
    }
    let agent = agent(request.connect_time, request.reach, proxy);
    let mut build = http::Request::builder().method(request.method).uri(uri);
    for (name, value) in &request.headers {
        build = match value {
            HeaderValue::Plain(text) => build.header(name, text),
            HeaderValue::Bearer(key) => build.header(name, format!("Bearer {}", key.reveal())),
            HeaderValue::Hidden(text) => build.header(name, text.reveal()),
        };
    }
    let bare = request.body.is_empty() && request.method != "POST";
    let answer = if bare {
        agent.run(build.body(()).map_err(unsent)?)
    } else {
        agent.run(build.body(request.body.as_slice()).map_err(unsent)?)
    };
    let mut answer = answer.map_err(|e| told(&e))?;
    tell(Told::Opened(head(&answer)));
    let mut body = answer.body_mut().as_reader();
    let mut buf = vec![0; PIECE];
    while let Some(credit) = handle.take_credit() {
        let count = loop {
            match body.read(&mut buf[..credit]) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read.map_err(|e| told(&ureq::Error::from(e)))?,
            }
        };
        if count == 0 {
            return Ok(());
        }
        handle.give_back(credit - count);
        if handle.aborted() {
            break;
        }
        tell(Told::Bytes(Stream::Out, buf[..count].to_vec()));
    }
    Ok(()) // aborted, which the caller sees
}

fn head(answer: &http::Response<ureq::Body>) -> Opened {
    let headers = answer.headers().iter().filter_map(|(name, value)| {
        let value = std::str::from_utf8(value.as_bytes()).ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    Opened {
        status: answer.status().as_u16(),
        headers: headers.collect(),
    }
}

fn unsent(error: http::Error) -> IoFault {
    IoFault::new(IoKind::Unsupported, format!("bad request: {error}"))
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enum is another crate's, and open"
)]
fn told(error: &ureq::Error) -> IoFault {
    if let ureq::Error::Io(error) = error
        && let Some(why) = error.get_ref().and_then(|it| it.downcast_ref())
    {
        let reach::NotAdmitted(why) = why;
        return IoFault::new(IoKind::Denied, why);
    }
    let kind = match error {
        ureq::Error::Timeout(_) => IoKind::TimedOut,
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => IoKind::Unreachable,
        ureq::Error::Io(error) => {
            let kind = super::kind(error);
            // What broke on the way, TLS faults aside: they come wrapped as bad data.
            let broken = error.kind() != std::io::ErrorKind::InvalidData;
            if kind == IoKind::Other && broken {
                IoKind::Unreachable
            } else {
                kind
            }
        }
        ureq::Error::BadUri(_) | ureq::Error::InvalidProxyUrl => IoKind::Unsupported,
        _ => IoKind::Other,
    };
    IoFault::new(kind, format!("request failed: {error}"))
}

/// The pool of connections for requests of this kind, made when first used: TLS and its
/// certificates are no part of a start.
fn agent(connect_time: Duration, reach: Reach, proxy: Option<Proxy>) -> Agent {
    type Kind = (Duration, Reach, Option<String>);
    static AGENTS: Mutex<Vec<(Kind, Agent)>> = Mutex::new(Vec::new());
    let at = proxy.as_ref().map(|proxy| proxy.uri().clone());
    // A connection that may be used again was made under the same reach.
    let key = (connect_time, reach, at.as_ref().map(ToString::to_string));
    let mut agents = AGENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, agent)) = agents.iter().find(|(known, _)| *known == key) {
        return agent.clone();
    }
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(proxy)
        .tls_config(tls)
        .user_agent(concat!("reasonix/", env!("CARGO_PKG_VERSION")))
        .accept(AutoHeaderValue::None)
        .accept_encoding(AutoHeaderValue::None)
        .timeout_resolve(Some(connect_time))
        .timeout_connect(Some(connect_time))
        .build();
    let connector =
        ().chain(ConnectProxyConnector::default())
            .chain(socket::Sockets)
            .chain(RustlsConnector::default());
    let resolver = reach::Admitted { reach, proxy: at };
    let agent = Agent::with_parts(config, connector, resolver);
    // Few kinds exist; a list that grew would be a fault elsewhere, and costs only reuse.
    agents.truncate(7);
    agents.push((key, agent.clone()));
    agent
}

/// The proxy that the environment names for `uri`: by its scheme, and none for this machine itself
/// or for what `NO_PROXY` lists.
fn proxy_for(uri: &http::Uri, env: impl Fn(&str) -> Option<String>) -> Option<Proxy> {
    let either = |name: &str| {
        env(&name.to_lowercase())
            .or_else(|| env(name))
            .filter(|value| !value.trim().is_empty())
    };
    let host = uri.host()?.trim_matches(['[', ']']).to_lowercase();
    let address: Option<std::net::IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|ip| ip.is_loopback()) {
        return None;
    }
    let spared = either("NO_PROXY").is_some_and(|list| {
        list.split(',').any(|entry| {
            let entry = entry.trim().to_lowercase();
            let entry = entry.trim_start_matches('*').trim_start_matches('.');
            let below = host.strip_suffix(entry);
            list.trim() == "*"
                || !entry.is_empty() && below.is_some_and(|b| b.is_empty() || b.ends_with('.'))
        })
    });
    if spared {
        return None;
    }
    let name = match uri.scheme_str() {
        Some("https") => "HTTPS_PROXY",
        _ => "HTTP_PROXY",
    };
    let address = either(name).or_else(|| either("ALL_PROXY"))?;
    match Proxy::new(&address) {
        Ok(proxy) => Some(proxy),
        Err(_) => {
            log::warn!("{name} is no address of a proxy; it is not used");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;

    /// A server for one connection; gets it after the head of the request was read.
    fn server(
        serve: impl FnOnce(BufReader<TcpStream>, Vec<String>) + Send + 'static,
    ) -> (String, thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
        let thread = thread::spawn(move || {
            let (stream, _) = listener.accept().expect("the client comes");
            let mut reader = BufReader::new(stream);
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("the head is text");
                match line.trim_end() {
                    "" => break,
                    line => head.push(line.to_owned()),
                }
            }
            serve(reader, head);
        });
        (url, thread)
    }

    fn post(url: &str, body: &str) -> HttpRequest {
        HttpRequest {
            method: "POST",
            url: url.to_owned(),
            headers: vec![
                ("content-type".into(), HeaderValue::Plain("text/x".into())),
                (
                    "authorization".into(),
                    HeaderValue::Bearer(reasonix_core::secret::Secret::new("K", "key")),
                ),
            ],
            body: body.into(),
            connect_time: Duration::from_secs(5),
            reach: Reach::Anywhere,
        }
    }

    /// Runs the request on a thread of its own; what it tells comes by the channel.
    fn start(request: HttpRequest, handle: &Handle) -> mpsc::Receiver<Told> {
        let (sender, told) = mpsc::channel();
        let handle = handle.clone();
        thread::spawn(move || run(&request, &handle, |it| drop(sender.send(it))));
        told
    }

    fn next(told: &mpsc::Receiver<Told>) -> Told {
        told.recv_timeout(Duration::from_secs(10))
            .expect("something is told in time")
    }

    #[test]
    fn an_answer_of_any_status_is_an_answer() {
        let (url, thread) = server(|mut reader, head| {
            assert!(
                head.contains(&"authorization: Bearer key".to_owned()),
                "{head:?}"
            );
            let mut body = [0; 4];
            reader.read_exact(&mut body).expect("the body comes");
            assert_eq!(&body, b"ping");
            let answer = "HTTP/1.1 302 Found\r\nLocation: /else\r\nX-A: b\r\n\
                          Content-Length: 4\r\n\r\npong";
            let sent = reader.get_mut().write_all(answer.as_bytes());
            sent.expect("the client reads");
        });
        let handle = Handle::default();
        handle.grant(100);
        let told = start(post(&url, "ping"), &handle);
        let Told::Opened(head) = next(&told) else {
            panic!("the head comes first");
        };
        assert_eq!((head.status, head.header("x-a")), (302, Some("b")));
        assert_eq!(next(&told), Told::Bytes(Stream::Out, b"pong".to_vec()));
        assert_eq!(next(&told), Told::Done(Outcome::Ended));
        thread.join().expect("the server saw what it should");
    }

    #[test]
    fn no_more_is_read_than_there_is_credit_for() {
        let (url, _thread) = server(|mut reader, _| {
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
            let sent = reader.get_mut().write_all(answer.as_bytes());
            sent.expect("the client reads");
        });
        let handle = Handle::default();
        let told = start(post(&url, ""), &handle);
        assert!(matches!(next(&told), Told::Opened(_)));
        assert!(told.recv_timeout(Duration::from_millis(50)).is_err());
        handle.grant(3);
        assert_eq!(next(&told), Told::Bytes(Stream::Out, b"012".to_vec()));
        assert!(told.recv_timeout(Duration::from_millis(50)).is_err());
        handle.grant(100);
        assert_eq!(next(&told), Told::Bytes(Stream::Out, b"3456789".to_vec()));
        assert_eq!(next(&told), Told::Done(Outcome::Ended));
    }

    #[test]
    fn a_body_that_breaks_off_is_a_failure() {
        let (url, _thread) = server(|mut reader, _| {
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n012";
            let sent = reader.get_mut().write_all(answer.as_bytes());
            sent.expect("the client reads");
        });
        let handle = Handle::default();
        handle.grant(100);
        let told = start(post(&url, ""), &handle);
        assert!(matches!(next(&told), Told::Opened(_)));
        assert!(matches!(next(&told), Told::Bytes(..)));
        let Told::Failed(fault) = next(&told) else {
            panic!("the rest is missing");
        };
        assert_eq!(fault.kind, IoKind::Unreachable);
    }

    #[test]
    fn an_abort_ends_a_request_at_once_wherever_it_hangs() {
        // Waits for the head; waits for the body; waits for credit.
        for (answer, credit) in [
            ("", 100),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 100),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123", 0),
        ] {
            let (came, comes) = mpsc::channel();
            let (url, thread) = server(move |mut reader, _| {
                let sent = reader.get_mut().write_all(answer.as_bytes());
                sent.expect("the client reads");
                came.send(()).expect("the test waits");
                // Sees the connection closed.
                let _ = reader.read(&mut [0; 16]);
                let _ = reader.read(&mut [0; 16]);
            });
            let handle = Handle::default();
            handle.grant(credit);
            let told = start(post(&url, ""), &handle);
            comes.recv().expect("the server is reached");
            if !answer.is_empty() {
                assert!(matches!(next(&told), Told::Opened(_)));
            }
            let before = Instant::now();
            handle.abort();
            let Told::Failed(fault) = next(&told) else {
                panic!("it was aborted");
            };
            assert_eq!(fault.kind, IoKind::Aborted);
            assert!(before.elapsed() < Duration::from_millis(100));
            thread.join().expect("the server sees the end");
        }
    }

    #[test]
    fn an_abort_ends_the_wait_for_a_connection_and_for_tls() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let here = listener.local_addr().expect("bound");
        // The server says nothing when it is greeted.
        let handle = Handle::default();
        let told = start(post(&format!("https://{here}/"), "x"), &handle);
        let (mut greeted, _) = listener.accept().expect("it comes");
        greeted.read_exact(&mut [0]).expect("it greets");
        let before = Instant::now();
        handle.abort();
        assert!(matches!(next(&told), Told::Failed(f) if f.kind == IoKind::Aborted));
        assert!(before.elapsed() < Duration::from_millis(100));
        // Nobody answers there; where the network refuses at once, there is nothing to abort.
        let handle = Handle::default();
        let told = start(post("http://192.0.2.1:9/", "x"), &handle);
        match told.recv_timeout(Duration::from_millis(100)) {
            Ok(early) => assert!(matches!(early, Told::Failed(_))),
            Err(_) => {
                let before = Instant::now();
                handle.abort();
                assert!(matches!(next(&told), Told::Failed(f) if f.kind == IoKind::Aborted));
                assert!(before.elapsed() < Duration::from_millis(100));
            }
        }
    }

    #[test]
    fn faults_say_whether_another_try_is_worth_it() {
        let port = {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
            listener.local_addr().expect("bound").port()
        };
        let check = |url: &str, kind| {
            let told = start(post(url, ""), &Handle::default());
            assert!(
                matches!(next(&told), Told::Failed(f) if f.kind == kind),
                "{url}"
            );
        };
        check(&format!("http://127.0.0.1:{port}/"), IoKind::Unreachable);
        check("not an address", IoKind::Unsupported);
        check("/path/only", IoKind::Unsupported);
    }

    #[test]
    fn what_a_request_may_not_reach_is_not_even_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("it can be");
        let port = listener.local_addr().expect("bound").port();
        for host in [
            "127.0.0.1",
            "localhost",
            "[::ffff:127.0.0.1]",
            "2130706433",
            "0x7f.1",
            "0.0.0.0",
            "[::]",
        ] {
            let mut request = post(&format!("http://{host}:{port}/"), "x");
            request.reach = Reach::Public;
            let told = start(request, &Handle::default());
            let Told::Failed(fault) = next(&told) else {
                panic!("{host} was reached");
            };
            // Some of these are no names anywhere but here.
            if fault.kind != IoKind::Denied {
                assert!(host.starts_with(['2', '0']), "{host}: {fault:?}");
            } else {
                assert!(fault.message.contains("public"), "{host}: {fault:?}");
            }
            assert!(listener.accept().is_err(), "{host} was connected to");
        }
        // A connection that another request has left open is not taken.
        let (url, _thread) = server(|mut reader, _| {
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
            let sent = reader.get_mut().write_all(answer.as_bytes());
            sent.expect("the client reads");
            let _ = reader.read(&mut [0; 16]);
        });
        let handle = Handle::default();
        handle.grant(100);
        let mut request = post(&url, "");
        request.reach = Reach::Private;
        let told = start(request.clone(), &handle);
        assert!(matches!(next(&told), Told::Opened(_)));
        while !next(&told).is_last() {}
        request.reach = Reach::Public;
        let told = start(request, &Handle::default());
        assert!(matches!(next(&told), Told::Failed(f) if f.kind == IoKind::Denied));
    }

    #[test]
    fn a_proxy_is_asked_only_for_what_may_be_reached() {
        let proxy = Proxy::new("http://127.0.0.1:1").expect("an address");
        let check = |url: &str, reach| {
            let uri = url.parse().expect("an address");
            reach::check_behind(&proxy, &uri, reach).is_ok()
        };
        assert!(check("http://10.0.0.1/", Reach::Anywhere));
        assert!(check("http://10.0.0.1/", Reach::Private));
        assert!(!check("http://10.0.0.1/", Reach::Public));
        assert!(!check("https://[fe80::1]/", Reach::Private));
        assert!(check("https://1.1.1.1/", Reach::Public));
        assert!(!check("https://nowhere.invalid/", Reach::Public));
        assert!(check("https://nowhere.invalid/", Reach::Anywhere));
    }

    #[test]
    fn the_proxy_follows_scheme_and_exceptions() {
        let env = |name: &str| match name {
            "HTTPS_PROXY" => Some("http://secure:1".to_owned()),
            "http_proxy" => Some("http://plain:2".to_owned()),
            "NO_PROXY" => Some("spared.test, .inner.test".to_owned()),
            _ => None,
        };
        let check = |url: &str, want: Option<&str>| {
            let uri = url.parse().expect("an address");
            let proxy = proxy_for(&uri, env).map(|p| p.host().to_owned());
            assert_eq!(proxy.as_deref(), want, "{url}");
        };
        check("https://api.test/", Some("secure"));
        check("http://api.test/", Some("plain"));
        check("https://spared.test/", None);
        check("https://a.inner.test/", None);
        check("https://xspared.test/", Some("secure"));
        check("http://localhost:80/", None);
        check("http://127.0.0.1:80/", None);
        check("http://[::1]:80/", None);
    }
}
