//! What a program is kept from: rules for the kernel, made before it starts and put on it between
//! fork and exec. Knows neither why it runs nor who asked for the rules.
//!
//! On Linux it is Landlock. From there on neither the program nor anything it starts can make,
//! write, cut, move or remove a file outside the given folders, by whatever name it is reached, or
//! open a TCP connection where the network is closed. Not kept from it: to read, to change owner,
//! mode and times of files it may see, to speak to programs over sockets that exist, and UDP before
//! level 10. Elsewhere nothing is enforced, and nothing is claimed.

use reasonix_core::settings::Sandboxing;

/// What this system can enforce, found once.
pub fn level() -> Sandboxing {
    system::level()
}

#[cfg(unix)]
pub(super) use system::{Rules, prepare};

#[cfg(target_os = "linux")]
mod system {
    use std::fs::{self, DirBuilder};
    use std::io;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    use std::path::Path;
    use std::sync::OnceLock;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
        RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    };
    use reasonix_core::call::Confinement;
    use reasonix_core::error::{IoFault, IoKind};
    use reasonix_core::settings::Sandboxing;
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
    use rustix::io::Errno;

    /// Devices that are no files: what is written to them is gone.
    const SINKS: [&str; 5] = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
    ];

    pub fn level() -> Sandboxing {
        static LEVEL: OnceLock<Sandboxing> = OnceLock::new();
        *LEVEL.get_or_init(|| {
            const VERSION: libc::c_uint = 1;
            let nothing = std::ptr::null::<libc::c_void>();
            // SAFETY: asked for its version with no attributes the call touches no memory of ours.
            #[expect(
                unsafe_code,
                reason = "no crate of ours gives the level as the kernel says it"
            )]
            let abi = unsafe {
                libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, VERSION)
            };
            match u32::try_from(abi) {
                Ok(abi @ 1..) => Sandboxing::Landlock { abi },
                Ok(0) | Err(_) => Sandboxing::None,
            }
        })
    }

    /// Rules that wait for the process they are for.
    #[derive(Debug)]
    pub struct Rules(RulesetCreated);

    impl Rules {
        /// Puts them on this process, for good. Between fork and exec: two system calls, and no
        /// memory is asked for unless they fail.
        pub fn enforce(self) -> io::Result<()> {
            match self.0.restrict_self() {
                Ok(_) => Ok(()),
                Err(_) => Err(io::ErrorKind::PermissionDenied.into()),
            }
        }
    }

    /// Makes the rules, and the folder for temporary files.
    pub fn prepare(wanted: &Confinement) -> Result<Rules, IoFault> {
        let level = level();
        if !level.confines_files() || !(wanted.network || level.confines_network()) {
            let why = format!("commands cannot be confined on this system: {level}");
            return Err(IoFault::new(IoKind::Unsupported, why));
        }
        make_tmp(&wanted.tmp)?;
        rules(wanted, level).map_err(|error| {
            let why = format!("commands cannot be confined: {error}");
            IoFault::new(IoKind::Unsupported, why)
        })
    }

    fn rules(wanted: &Confinement, level: Sandboxing) -> Result<Rules, RulesetError> {
        let files = AccessFs::from_write(ABI::V3);
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(files)?;
        if !wanted.network {
            rules = rules.handle_access(sockets(level))?;
        }
        let mut rules = rules.create()?;
        let folders = wanted.writable.iter().chain([&wanted.tmp]);
        for folder in folders.filter_map(|path| open(path, OFlags::DIRECTORY)) {
            rules = rules.add_rule(PathBeneath::new(folder, files))?;
        }
        for sink in SINKS.iter().filter_map(|path| open(path, OFlags::empty())) {
            let write = AccessFs::WriteFile | AccessFs::Truncate;
            rules = rules.add_rule(PathBeneath::new(sink, write))?;
        }
        Ok(Rules(rules))
    }

    /// What of the network this kernel can close.
    fn sockets(level: Sandboxing) -> BitFlags<AccessNet> {
        match level {
            Sandboxing::Landlock { abi: 10.. } => AccessNet::from_all(ABI::V10),
            Sandboxing::Landlock { .. } | Sandboxing::None => AccessNet::from_all(ABI::V4),
        }
    }

    /// Held open as what it is now. What is gone, or has a link on its way that had none, gives no
    /// right: fewer rights are no danger.
    fn open(path: &str, kind: OFlags) -> Option<OwnedFd> {
        let how = OFlags::PATH | OFlags::CLOEXEC | kind;
        let straight = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..16 {
            match rustix::fs::openat2(CWD, path, how, Mode::empty(), straight) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                found => return found.ok(),
            }
        }
        None
    }

    /// A folder for us alone, made if it is missing.
    fn make_tmp(path: &str) -> Result<(), IoFault> {
        let tell = |error: io::Error| super::super::fault("make", path, &error);
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(tell(error)),
        }
        let found = fs::symlink_metadata(Path::new(path)).map_err(tell)?;
        let ours = found.uid() == rustix::process::geteuid().as_raw();
        if found.is_dir() && ours && found.mode() & 0o077 == 0 {
            return Ok(());
        }
        let why = format!("{path} is not a folder of this user alone, and is not used");
        Err(IoFault::new(IoKind::Denied, why))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use reasonix_core::settings::Sandboxing;

    pub fn level() -> Sandboxing {
        Sandboxing::None
    }

    /// There are none.
    #[cfg(unix)]
    #[derive(Debug)]
    pub enum Rules {}

    #[cfg(unix)]
    impl Rules {
        pub fn enforce(self) -> std::io::Result<()> {
            match self {}
        }
    }

    #[cfg(unix)]
    pub fn prepare(
        _wanted: &reasonix_core::call::Confinement,
    ) -> Result<Rules, reasonix_core::error::IoFault> {
        use reasonix_core::error::{IoFault, IoKind};
        let why = "commands cannot be confined on this system";
        Err(IoFault::new(IoKind::Unsupported, why))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::symlink;

    use reasonix_core::call::{Confinement, Process};
    use reasonix_core::error::IoKind;

    use super::super::process::spawn;
    use super::super::process::tests::{drive_to_end, shell};
    use super::super::testing::{dir, kind};
    use super::*;

    /// A process that may write in `w/in`.
    fn confined(w: &str, line: &str, network: bool) -> Process {
        let sandbox = Confinement {
            writable: vec![format!("{w}/in")],
            tmp: format!("{w}/tmp"),
            network,
        };
        Process {
            cwd: w.into(),
            env: vec![(
                "TMPDIR".into(),
                reasonix_core::secret::Secret::new("TMPDIR", format!("{w}/tmp")),
            )],
            sandbox: Some(Box::new(sandbox)),
            ..shell(line)
        }
    }

    fn run(process: &Process) -> String {
        let running = spawn(process, "sh", &[], None, None).expect("it starts");
        String::from_utf8_lossy(&drive_to_end(running)).into_owned()
    }

    /// Nothing to test where there is nothing; it is said.
    fn without() -> bool {
        let without = !level().confines_network();
        if without {
            eprintln!("skipped: this kernel has {}", level());
        }
        without
    }

    #[test]
    fn a_command_writes_in_its_folders_only() {
        if without() {
            return;
        }
        let (_keep, w) = dir();
        for folder in ["in", "in/deep", "out"] {
            fs::create_dir(format!("{w}/{folder}")).expect("made");
        }
        fs::write(format!("{w}/out/secret"), "s").expect("written");
        symlink("../out", format!("{w}/in/up")).expect("linked");
        symlink("../out/new", format!("{w}/in/ahead")).expect("linked");
        for (line, works) in [
            ("echo x > in/a", true),
            ("echo x > in/deep/a && mv in/deep/a in/b && rm in/b", true),
            ("mkdir in/d && ln -s ../.. in/d/l && rm -r in/d", true),
            ("ln in/a in/c", true),
            ("mktemp", true),
            ("echo x > /dev/null", true),
            ("cat out/secret", true),
            ("sh -c 'sh -c \"echo x > in/e\"'", true),
            ("echo x > out/new", false),
            ("echo x > out/secret", false),
            ("echo x >> out/secret", false),
            ("truncate -s 0 out/secret", false),
            ("rm out/secret", false),
            ("mv out/secret in/", false),
            ("mv in/a out/", false),
            ("ln out/secret in/hard", false),
            ("ln in/a out/hard", false),
            ("mkdir out/d", false),
            ("ln -s x out/l", false),
            ("mkfifo out/p", false),
            ("echo x > in/up/new", false),
            ("echo x > in/ahead", false),
            ("echo x > in/../out/new", false),
            ("echo x > /proc/self/root/$PWD/out/new", false),
            ("echo x > /proc/$$/cwd/out/new", false),
            ("cd out && echo x > new", false),
            ("echo x > new", false),
            (
                "(setsid sh -c 'echo x > out/new'; true) && ls out/new",
                false,
            ),
            ("rmdir out || mv out in/moved || mv in out/moved", false),
            ("sh -c 'echo x > out/new' || exit 7", false),
        ] {
            let out = run(&confined(
                &w,
                &format!("{{ {line}; }} 2>&1 && echo :done"),
                true,
            ));
            assert_eq!(out.ends_with(":done\n"), works, "{line}: {out}");
            let left: Vec<_> = fs::read_dir(format!("{w}/out")).expect("there").collect();
            assert_eq!(left.len(), 1, "{line}: {left:?}");
            let secret = fs::read_to_string(format!("{w}/out/secret"));
            assert_eq!(secret.expect("there"), "s", "{line}");
        }
        let mode = fs::metadata(format!("{w}/tmp"))
            .expect("made")
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
    }

    #[test]
    fn the_network_is_closed_where_that_is_asked() {
        if without() {
            return;
        }
        let (_keep, w) = dir();
        fs::create_dir(format!("{w}/in")).expect("made");
        let server = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = server.local_addr().expect("bound").port();
        let line = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo open");
        for (network, says) in [(true, "open\n"), (false, "")] {
            let running = spawn(&confined(&w, &line, network), "bash", &[], None, None);
            let out = drive_to_end(running.expect("it starts"));
            let out = String::from_utf8_lossy(&out);
            assert_eq!(out.contains("open\n"), says == "open\n", "{out}");
        }
    }

    #[test]
    fn a_folder_that_is_gone_gives_no_right_and_no_fault() {
        if without() {
            return;
        }
        let (_keep, w) = dir();
        fs::create_dir(format!("{w}/out")).expect("made");
        let out = run(&confined(&w, "echo x > in/a || echo not there", true));
        assert!(out.ends_with("not there\n"), "{out}");
        // A link that takes its place gives none to where it leads.
        symlink("out", format!("{w}/in")).expect("linked");
        let out = run(&confined(&w, "echo x > in/a || echo kept out", true));
        assert!(out.ends_with("kept out\n"), "{out}");
    }

    #[test]
    fn a_temporary_folder_of_another_is_not_used() {
        if without() {
            return;
        }
        let (_keep, w) = dir();
        fs::create_dir(format!("{w}/in")).expect("made");
        symlink("in", format!("{w}/tmp")).expect("linked");
        let process = confined(&w, "true", true);
        assert_eq!(kind(spawn(&process, "sh", &[], None, None)), IoKind::Denied);
        fs::remove_file(format!("{w}/tmp")).expect("removed");
        fs::create_dir(format!("{w}/tmp")).expect("made");
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(format!("{w}/tmp"), open).expect("set");
        assert_eq!(kind(spawn(&process, "sh", &[], None, None)), IoKind::Denied);
    }
}
