//! Names become addresses here, and those that a request may not reach are left out: what is
//! connected to is what was looked at, whatever a name means a moment later. Knows nothing of HTTP.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use reasonix_core::reach::Reach;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::{Error, Proxy};

/// Looks up names for requests of one reach.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) reach: Reach,
    /// Where a proxy is, that may be anywhere: the person's environment names it.
    pub(super) proxy: Option<Uri>,
}

impl Resolver for Admitted {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let found = DefaultResolver::default().resolve(uri, config, timeout)?;
        if self.proxy.as_ref() == Some(uri) {
            return Ok(found);
        }
        let mut admitted = self.empty();
        for addr in &found {
            if self.reach.admits(addr.ip()) {
                admitted.push(*addr);
            }
        }
        if admitted.is_empty() {
            return Err(refused(uri, &found).into());
        }
        Ok(admitted)
    }
}

/// The same for a request that a proxy passes on. It looks up the name once more, out of our hands:
/// so it is asked only for what is admitted here, and for nothing that cannot be looked up here.
pub(super) fn check_behind(proxy: &Proxy, uri: &Uri, reach: Reach) -> io::Result<()> {
    if reach == Reach::Anywhere {
        return Ok(());
    }
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(443);
    let found: Vec<SocketAddr> = match (host.trim_matches(['[', ']']), port).to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(error) => {
            let why = format!(
                "{host} cannot be looked up here ({}), so it is not known whether the proxy {} \
                 would lead to a public address",
                crate::ops::reason(&error),
                proxy.host()
            );
            return Err(NotAdmitted(why).into());
        }
    };
    // It may take any of them.
    let other = found.iter().find(|addr| !reach.admits(addr.ip()));
    match other {
        Some(other) => Err(refused(uri, &[*other])),
        None if found.is_empty() => Err(refused(uri, &found)),
        None => Ok(()),
    }
}

/// No address of a name is admitted.
#[derive(Debug)]
pub(super) struct NotAdmitted(pub(super) String);

impl fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotAdmitted {}

impl From<NotAdmitted> for io::Error {
    fn from(why: NotAdmitted) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, why)
    }
}

fn refused(uri: &Uri, found: &[SocketAddr]) -> io::Error {
    let host = uri.host().unwrap_or_default();
    let at = match found.first() {
        Some(addr) => addr.ip().to_string(),
        None => "no address".into(),
    };
    NotAdmitted(format!("{host} is not at a public address: {at}")).into()
}
