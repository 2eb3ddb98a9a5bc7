//! The sockets of requests: each is known to the handle of the request that uses it now, so that
//! an abort can shut it down while something waits on it. Knows nothing of HTTP.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
};

use super::Handle;

thread_local! {
    /// The request that this thread is doing.
    static CURRENT: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// Makes `handle` the request of this thread till the guard is dropped.
pub(super) fn serve(handle: &Handle) -> impl Drop {
    struct Guard;
    impl Drop for Guard {
        fn drop(&mut self) {
            CURRENT.set(None);
        }
    }
    CURRENT.set(Some(handle.clone()));
    Guard
}

/// Says that the request of this thread waits on this socket from here on.
fn attach(socket: &Arc<TcpStream>) -> io::Result<()> {
    let attached = CURRENT.with_borrow(|it| it.as_ref().is_none_or(|handle| handle.attach(socket)));
    if attached {
        Ok(())
    } else {
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

/// Makes TCP connections.
#[derive(Debug)]
pub(super) struct Sockets;

impl<In: Transport> Connector<In> for Sockets {
    type Out = Either<In, Socket>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        if chained.is_some() {
            return Ok(chained.map(Either::A)); // a proxy's connection
        }
        let config = &details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        let time = details.timeout.not_zero().map(|t| *t);
        let mut left = details.addrs.len() as u32;
        let mut last = Error::ConnectionFailed;
        for addr in &details.addrs {
            // What is left is shared out: the first gets half of it, the last one all.
            let share = if left > 1 { 2 } else { 1 };
            left -= 1;
            match connect(*addr, time.map(|time| time / share)) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Some(Either::B(Socket {
                        stream,
                        buffers,
                        read_time: None,
                        write_time: None,
                    })));
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                    return Err(error.into());
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    last = Error::Timeout(ureq::Timeout::Connect);
                }
                Err(error) => last = error.into(),
            }
        }
        Err(last)
    }
}

/// One TCP connection.
#[derive(Debug)]
pub(super) struct Socket {
    stream: Arc<TcpStream>,
    buffers: LazyBuffers,
    read_time: Option<Duration>,
    write_time: Option<Duration>,
}

impl Transport for Socket {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        attach(&self.stream)?;
        let time = timeout.not_zero().map(|t| *t);
        if time != self.write_time {
            self.stream.set_write_timeout(time)?;
            self.write_time = time;
        }
        let sent = (&*self.stream).write_all(&self.buffers.output()[..amount]);
        sent.map_err(|error| late(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        attach(&self.stream)?;
        let time = timeout.not_zero().map(|t| *t);
        if time != self.read_time {
            self.stream.set_read_timeout(time)?;
            self.read_time = time;
        }
        let count = loop {
            match (&*self.stream).read(self.buffers.input_append_buf()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|error| late(error, timeout))?,
            }
        };
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        let quiet = || -> io::Result<bool> {
            self.stream.set_nonblocking(true)?;
            let quiet = match self.stream.peek(&mut [0]) {
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
                Ok(_) => false, // closed, or bytes that nobody asked for
            };
            self.stream.set_nonblocking(false)?;
            Ok(quiet)
        };
        quiet().unwrap_or(false)
    }
}

fn late(error: io::Error, timeout: NextTimeout) -> Error {
    if matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    ) {
        Error::Timeout(timeout.reason)
    } else {
        error.into()
    }
}

/// Connects; the socket is attached before that waits.
#[cfg(unix)]
fn connect(addr: SocketAddr, time: Option<Duration>) -> io::Result<Arc<TcpStream>> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::net::{AddressFamily, SocketType};

    let family = match addr {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    // At once where it can be: a program started between two calls would keep the socket open.
    #[cfg(not(target_vendor = "apple"))]
    let socket = {
        use rustix::net::{SocketFlags, socket_with};
        socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?
    };
    #[cfg(target_vendor = "apple")]
    let socket = {
        let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        socket
    };
    let stream = Arc::new(TcpStream::from(socket));
    stream.set_nonblocking(true)?;
    attach(&stream)?;
    match rustix::net::connect(&*stream, &addr) {
        Ok(()) => {}
        Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::INTR) => {
            let start = std::time::Instant::now();
            loop {
                let left = time.map(|time| time.saturating_sub(start.elapsed()));
                let left = left.and_then(|left| Timespec::try_from(left).ok());
                let mut wanted = [PollFd::new(&*stream, PollFlags::OUT)];
                match poll(&mut wanted, left.as_ref()) {
                    Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                    Ok(_) => break,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if let Some(error) = stream.take_error()? {
                return Err(error);
            }
            attach(&stream)?; // an abort looks like a connection otherwise
        }
        Err(error) => return Err(error.into()),
    }
    stream.set_nonblocking(false)?;
    Ok(stream)
}

#[cfg(not(unix))]
fn connect(addr: SocketAddr, time: Option<Duration>) -> io::Result<Arc<TcpStream>> {
    let stream = match time {
        Some(time) => TcpStream::connect_timeout(&addr, time)?,
        None => TcpStream::connect(addr)?,
    };
    let stream = Arc::new(stream);
    attach(&stream)?;
    Ok(stream)
}
