//! Which folders can be roots of a session. Pure: a folder is described by the world, and judged
//! here. Knows neither who asks for it nor what it will be used for.

mod protected;

use alloc::format;
use alloc::string::String;

use thiserror::Error;

use super::paths::{clean, is_within};
use crate::call::{Call, FileKind, Outcome, Resolved};
use crate::error::IoFault;
use crate::limits::Limits;
use crate::settings::Host;
use protected::{keys_in, protected_place};

/// Why a folder cannot be a root.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{path} {why}")]
pub struct RootFault {
    /// What kind of fault it is.
    pub kind: RootFaultKind,
    /// The folder as it was asked for.
    pub path: String,
    /// For people: what follows the path in a sentence.
    pub why: String,
}

/// Kinds of faults of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RootFaultKind {
    /// Its path is not absolute.
    NotAbsolute,
    /// There is nothing, or nothing that can be looked at.
    Missing,
    /// It is no directory.
    NotADirectory,
    /// It belongs to somebody else.
    NotOwned,
    /// It is the agent's, the system's or the person's whole home, or keys are kept in it.
    Protected,
    /// It is reached over a link that leads to a protected folder.
    Link,
    /// It is another root, inside one or around one.
    Overlap,
    /// There are too many.
    TooMany,
}

impl RootFaultKind {
    /// Its name on the wire.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotAbsolute => "workspace_roots.not_absolute",
            Self::Missing => "workspace_roots.missing",
            Self::NotADirectory => "workspace_roots.not_a_directory",
            Self::NotOwned => "workspace_roots.not_owned",
            Self::Protected => "workspace_roots.protected",
            Self::Link => "workspace_roots.link",
            Self::Overlap => "workspace_roots.overlap",
            Self::TooMany => "workspace_roots.too_many",
        }
    }
}

impl RootFault {
    /// More folders than [`Limits::max_roots`] were asked for; `path` is the first that is too much.
    pub fn too_many(path: &str, limits: &Limits) -> Self {
        let why = format!("is one folder too many: at most {}", limits.max_roots);
        Self::new(RootFaultKind::TooMany, path, why)
    }

    fn new(kind: RootFaultKind, path: &str, why: impl Into<String>) -> Self {
        Self {
            kind,
            path: path.into(),
            why: why.into(),
        }
    }
}

/// One folder that is being judged: two calls, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vetting {
    asked: String,
    /// What it really is; none: that is being asked.
    real: Option<String>,
}

/// What follows of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vetted {
    /// This has to be asked next.
    More(Call),
    /// It can be a root: its real path. Whether it [overlaps] with others is another question.
    Root(String),
}

impl Vetting {
    /// Begins with what its path says.
    ///
    /// # Errors
    ///
    /// If it is not absolute, or none that can exist.
    pub fn begin(asked: &str) -> Result<(Self, Call), RootFault> {
        if !is_absolute(asked) {
            let why = "is not an absolute path";
            return Err(RootFault::new(RootFaultKind::NotAbsolute, asked, why));
        }
        if asked.contains('\0') {
            let why = "holds a NUL byte";
            return Err(RootFault::new(RootFaultKind::Missing, asked, why));
        }
        let call = Call::Resolve { path: asked.into() };
        let vetting = Self {
            asked: asked.into(),
            real: None,
        };
        Ok((vetting, call))
    }

    /// The folder as it was asked for.
    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// Takes what the world says about its last call.
    ///
    /// # Errors
    ///
    /// If it cannot be a root.
    pub fn take(
        &mut self,
        outcome: Result<Outcome, IoFault>,
        host: &Host,
        limits: &Limits,
    ) -> Result<Vetted, RootFault> {
        match (outcome, self.real.take()) {
            (Ok(Outcome::Resolved(it)), None) => {
                let real = self.judge(&it, host)?;
                let call = Call::List {
                    path: real.clone(),
                    max: limits.root_entries,
                };
                self.real = Some(real);
                Ok(Vetted::More(call))
            }
            (Ok(Outcome::Listed(listing)), Some(real)) => match keys_in(&listing) {
                Some(why) => Err(self.protected(&real, &why)),
                None => Ok(Vetted::Root(real)),
            },
            (Err(fault), Some(real)) => {
                let why = format!("cannot be looked into, so it may hold keys: {fault}");
                Err(self.protected(&real, &why))
            }
            (Err(fault), None) => {
                let why = format!("cannot be looked at: {fault}");
                Err(self.fault(RootFaultKind::Missing, why))
            }
            (Ok(_), _) => Err(self.fault(RootFaultKind::Missing, "could not be looked at")),
        }
    }

    fn judge(&self, it: &Resolved, host: &Host) -> Result<String, RootFault> {
        match it.kind {
            FileKind::Directory => {}
            FileKind::Missing => {
                return Err(self.fault(RootFaultKind::Missing, "does not exist"));
            }
            FileKind::Dangling => {
                let why = "is a link that leads nowhere";
                return Err(self.fault(RootFaultKind::Missing, why));
            }
            FileKind::File | FileKind::Special => {
                return Err(self.fault(RootFaultKind::NotADirectory, "is no folder"));
            }
        }
        let real = clean(&it.real);
        let asked = clean(&self.asked);
        if let Some(why) = protected_place(&real, host).or_else(|| protected_place(&asked, host)) {
            return Err(self.protected(&real, &why));
        }
        if !it.owned {
            let why = "belongs to another user";
            return Err(self.fault(RootFaultKind::NotOwned, why));
        }
        Ok(real)
    }

    fn protected(&self, real: &str, why: &str) -> RootFault {
        if clean(&self.asked) == real {
            return self.fault(RootFaultKind::Protected, why);
        }
        let why = format!("leads by a link to {real}, which {why}");
        self.fault(RootFaultKind::Link, why)
    }

    fn fault(&self, kind: RootFaultKind, why: impl Into<String>) -> RootFault {
        RootFault::new(kind, &self.asked, why)
    }
}

/// Judges whether a folder can stand beside these roots. All are real paths; `asked` is for people.
///
/// # Errors
///
/// If one of them is it, or is inside or around it.
pub fn overlaps(asked: &str, real: &str, roots: &[String]) -> Result<(), RootFault> {
    let other = roots
        .iter()
        .find(|root| is_within(real, root) || is_within(root, real));
    match other {
        None => Ok(()),
        Some(root) => {
            let why = format!("overlaps with {root}, which is a folder of the session already");
            Err(RootFault::new(RootFaultKind::Overlap, asked, why))
        }
    }
}

/// Whether a path is absolute on some system.
fn is_absolute(path: &str) -> bool {
    match path.as_bytes() {
        [b'/', ..] | [b'\\', b'\\', ..] => true,
        [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Entry, Listing};
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    fn host() -> Host {
        Host {
            os: "linux".into(),
            shell: "bash".into(),
            user_home: Some("/home/me".into()),
            home: Some("/home/me/.reasonix".into()),
            tmp: "/tmp".into(),
            sandbox: Default::default(),
        }
    }

    /// Judges `asked`, which really is `real` and holds these names.
    fn judge(asked: &str, real: &str, names: &[&str]) -> Result<String, RootFaultKind> {
        let it = Resolved {
            real: real.into(),
            kind: FileKind::Directory,
            link: asked != real,
            owned: true,
            links: 1,
            size: 0,
        };
        judge_it(asked, it, names)
    }

    fn judge_it(asked: &str, it: Resolved, names: &[&str]) -> Result<String, RootFaultKind> {
        let entry = |name: &&str| Entry {
            name: (*name).into(),
            kind: FileKind::File,
            link: false,
            size: 1,
        };
        let limits = Limits::default();
        let judged = Vetting::begin(asked).and_then(|(mut vetting, call)| {
            assert_eq!(call, Call::Resolve { path: asked.into() });
            let real = it.real.clone();
            let next = vetting.take(Ok(Outcome::Resolved(it)), &host(), &limits)?;
            assert!(
                matches!(&next, Vetted::More(Call::List { path, .. }) if *path == real),
                "not a look into it: {next:?}"
            );
            let listing = Listing {
                entries: names.iter().map(entry).collect(),
                more: 0,
            };
            match vetting.take(Ok(Outcome::Listed(listing)), &host(), &limits)? {
                Vetted::Root(real) => Ok(real),
                Vetted::More(call) => panic!("one look is enough: {call:?}"),
            }
        });
        judged.map_err(|fault| fault.kind)
    }

    #[test]
    fn a_folder_of_the_person_can_be_a_root() {
        for (asked, real) in [
            ("/home/me/lib", "/home/me/lib"),
            ("/home/me/lib/", "/home/me/lib"),
            ("/home/me/a/../lib", "/home/me/lib"),
            ("/home/me/link", "/home/me/lib"),
            ("/tmp/x", "/tmp/x"),
            ("/opt/work", "/opt/work"),
            ("/srv/git/x", "/srv/git/x"),
            ("/root/x", "/root/x"),
            ("/etcetera", "/etcetera"),
        ] {
            let names = ["src", ".env", "id_map.rs", "id_rsa.pub", "identity"];
            assert_eq!(judge(asked, real, &names), Ok(real.into()), "{asked}");
        }
    }

    #[test]
    fn what_is_not_the_persons_own_work_is_protected() {
        for path in [
            "/",
            "/etc",
            "/etc/ssl",
            "/usr",
            "/usr/lib/x",
            "/ETC",
            "/proc/self/root",
            "/dev/shm",
            "/home",
            "/tmp",
            "/home/me",
            "/home/me/.reasonix",
            "/home/me/.reasonix/sessions",
            "/home/me/.ssh",
            "/home/me/.SSH",
            "/home/me/.ssh/deeper",
            "/home/me/x/.aws",
        ] {
            let judged = judge(path, path, &[]);
            assert_eq!(judged, Err(RootFaultKind::Protected), "{path}");
            let over = judge("/home/me/link", path, &[]);
            assert_eq!(over, Err(RootFaultKind::Link), "a link to {path}");
        }
    }

    #[test]
    fn a_folder_that_holds_keys_is_protected() {
        let clean: &[&str] = &["id_x", "id_y.pub", ".sshx"];
        assert!(judge("/home/me/a", "/home/me/a", clean).is_ok());
        for names in [
            vec!["a", ".ssh"],
            vec![".GnuPG"],
            vec![".kube", "b"],
            vec!["id_rsa"],
            vec!["id_ed25519", "z"],
            vec!["id_work", "id_work.pub"],
        ] {
            let judged = judge("/home/me/a", "/home/me/a", &names);
            assert_eq!(judged, Err(RootFaultKind::Protected), "{names:?}");
            let over = judge("/home/me/b", "/home/me/a", &names);
            assert_eq!(over, Err(RootFaultKind::Link), "{names:?}");
        }
    }

    #[test]
    fn every_other_fault_has_its_own_kind() {
        let it = |kind, owned| Resolved {
            real: "/a".into(),
            kind,
            link: false,
            owned,
            links: 1,
            size: 0,
        };
        for (asked, it, kind) in [
            (
                "a",
                it(FileKind::Directory, true),
                RootFaultKind::NotAbsolute,
            ),
            (
                "",
                it(FileKind::Directory, true),
                RootFaultKind::NotAbsolute,
            ),
            (
                "~",
                it(FileKind::Directory, true),
                RootFaultKind::NotAbsolute,
            ),
            (
                "/a\0b",
                it(FileKind::Directory, true),
                RootFaultKind::Missing,
            ),
            ("/a", it(FileKind::Missing, false), RootFaultKind::Missing),
            ("/a", it(FileKind::Dangling, true), RootFaultKind::Missing),
            ("/a", it(FileKind::File, true), RootFaultKind::NotADirectory),
            (
                "/a",
                it(FileKind::Special, true),
                RootFaultKind::NotADirectory,
            ),
            (
                "/a",
                it(FileKind::Directory, false),
                RootFaultKind::NotOwned,
            ),
        ] {
            assert_eq!(judge_it(asked, it, &[]), Err(kind), "{asked:?}");
        }
    }

    #[test]
    fn what_cannot_be_looked_at_is_no_root() {
        use crate::error::IoKind;
        let denied = || Err(IoFault::new(IoKind::Denied, "not allowed"));
        let limits = Limits::default();
        let (mut vetting, _) = Vetting::begin("/a").expect("it is absolute");
        let fault = vetting.take(denied(), &host(), &limits).unwrap_err();
        assert_eq!(fault.kind, RootFaultKind::Missing);
        for outcome in [
            denied(),
            Ok(Outcome::Listed(Listing {
                entries: Vec::new(),
                more: 1,
            })),
        ] {
            let (mut vetting, _) = Vetting::begin("/a").expect("it is absolute");
            let it = Resolved {
                real: "/a".into(),
                kind: FileKind::Directory,
                link: false,
                owned: true,
                links: 1,
                size: 0,
            };
            let more = vetting.take(Ok(Outcome::Resolved(it)), &host(), &limits);
            assert!(more.is_ok(), "{more:?}");
            let fault = vetting.take(outcome, &host(), &limits).unwrap_err();
            assert_eq!(fault.kind, RootFaultKind::Protected);
        }
    }

    #[test]
    fn roots_stand_beside_each_other() {
        let roots = ["/w/a".to_string(), "/x".to_string()];
        for (real, fits) in [
            ("/w/b", true),
            ("/w/ab", true),
            ("/y", true),
            ("/w/a", false),
            ("/w/a/b", false),
            ("/w", false),
            ("/", false),
            ("/x/y", false),
        ] {
            assert_eq!(overlaps(real, real, &roots).is_ok(), fits, "{real}");
        }
    }
}
