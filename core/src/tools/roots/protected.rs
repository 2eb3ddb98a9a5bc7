//! Places that are never anybody's workspace, as data: system folders, homes, and folders with keys.

use alloc::format;
use alloc::string::{String, ToString};

use crate::call::{Entry, FileKind, Listing};
use crate::settings::Host;
use crate::tools::paths::{clean, is_within};

/// How much of a folder of the system is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The folder; what is in it may belong to people.
    Itself,
    /// The folder with all that is in it.
    All,
}

/// Folders of systems. Compared without regard to case, which some of them do not have.
const SYSTEM: &[(&str, Reach)] = &[
    ("/", Reach::Itself),
    ("/Applications", Reach::All),
    ("/Library", Reach::All),
    ("/System", Reach::All),
    ("/Users", Reach::Itself),
    ("/Volumes", Reach::Itself),
    ("/bin", Reach::All),
    ("/boot", Reach::All),
    ("/dev", Reach::All),
    ("/etc", Reach::All),
    ("/home", Reach::Itself),
    ("/lib", Reach::All),
    ("/lib32", Reach::All),
    ("/lib64", Reach::All),
    ("/libx32", Reach::All),
    ("/media", Reach::Itself),
    ("/mnt", Reach::Itself),
    ("/opt", Reach::Itself),
    ("/private", Reach::Itself),
    ("/private/etc", Reach::All),
    ("/private/tmp", Reach::Itself),
    ("/private/var", Reach::Itself),
    ("/proc", Reach::All),
    ("/root", Reach::Itself),
    ("/run", Reach::Itself),
    ("/sbin", Reach::All),
    ("/srv", Reach::Itself),
    ("/sys", Reach::All),
    ("/tmp", Reach::Itself),
    ("/usr", Reach::Itself),
    ("/usr/bin", Reach::All),
    ("/usr/include", Reach::All),
    ("/usr/lib", Reach::All),
    ("/usr/lib32", Reach::All),
    ("/usr/lib64", Reach::All),
    ("/usr/libexec", Reach::All),
    ("/usr/local", Reach::Itself),
    ("/usr/sbin", Reach::All),
    ("/usr/share", Reach::All),
    ("/var", Reach::Itself),
    ("/var/lib", Reach::Itself),
    ("/var/log", Reach::All),
    ("/var/run", Reach::Itself),
    ("/var/spool", Reach::All),
    ("/var/tmp", Reach::Itself),
];

/// Folders that keys are kept in.
const KEY_STORES: &[&str] = &[".aws", ".azure", ".gnupg", ".kube", ".ssh"];

/// Names that private keys have by default.
const KEYS: &[&str] = &[
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "id_rsa",
];

/// Why a folder is protected by where it is. Real or at least cleaned paths.
pub(super) fn protected_place(path: &str, host: &Host) -> Option<String> {
    let lower = path.to_ascii_lowercase();
    for (folder, reach) in SYSTEM {
        let folder = folder.to_ascii_lowercase();
        let hit = match reach {
            Reach::Itself => lower == folder,
            Reach::All => is_within(&lower, &folder),
        };
        if hit {
            return Some("is a folder of the system".into());
        }
    }
    if let Some(store) = path.split('/').find_map(key_store) {
        return Some(format!("is in `{store}`, where keys are kept"));
    }
    if let Some(home) = &host.home {
        let home = clean(home);
        if is_within(path, &home) || is_within(&home, path) {
            return Some("is, holds or is in the agent's own folder".into());
        }
    }
    if let Some(home) = &host.user_home {
        let home = clean(home);
        if home != "/" && is_within(&home, path) {
            return Some("is or holds the whole home folder".into());
        }
    }
    None
}

/// What in a folder shows that keys are kept in it.
pub(super) fn keys_in(listing: &Listing) -> Option<String> {
    let mut entries = listing.entries.iter();
    if let Some(store) = entries.find_map(|entry| key_store(&entry.name)) {
        return Some(format!("holds `{store}`, where keys are kept"));
    }
    let has = |name: &str| listing.entries.iter().any(|entry| entry.name == name);
    let private = |entry: &&Entry| {
        let name = entry.name.as_str();
        let pair = name.starts_with("id_") && has(&format!("{name}.pub"));
        entry.kind == FileKind::File && (pair || KEYS.contains(&name))
    };
    if let Some(key) = listing.entries.iter().find(private) {
        return Some(format!("holds the private key `{}`", key.name));
    }
    (listing.more > 0)
        .then(|| "has too many entries to be looked through, so it may hold keys".to_string())
}

fn key_store(name: &str) -> Option<&'static str> {
    let mut stores = KEY_STORES.iter();
    stores
        .find(|store| store.eq_ignore_ascii_case(name))
        .copied()
}
