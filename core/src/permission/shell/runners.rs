//! Programs that run what their arguments say, as data: which they are, and which of their
//! arguments choose something else to run or another place to work in. Knows no lines.

use super::base_name;

/// How a program comes to run another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// By some of its flags only.
    Flags,
    /// Its first operand is the program.
    Program,
    /// Its operands are places and conditions; behind some of its flags is a program.
    Search,
    /// Its first operand is the program, and it adds arguments that are not in the line.
    Filled,
    /// Its operands together are a command line.
    Line,
    /// A shell: a line behind a flag, a file, or what comes from its standard input.
    Shell,
    /// It runs a file of commands where it stands.
    Source,
    /// An interpreter: code behind a flag, a file, or what comes from its standard input.
    Code,
    /// Behind some of its verbs.
    Verbs(&'static [&'static str]),
    /// Its operands are things to do, each of them.
    Targets,
}

/// A program that runs others.
#[derive(Debug)]
pub(super) struct Runner {
    names: &'static [&'static str],
    pub how: How,
    /// Arguments that choose what runs. A letter is looked for among letters (`-lc`), a long flag
    /// also in short (`--upload-p=x`), `=` means exactly so, `^` before the first operand, `*`
    /// anywhere inside any argument.
    flags: &'static [&'static str],
    /// Arguments that do so for who allows, because something goes elsewhere or is taken from
    /// elsewhere; for who forbids, what they name can be read.
    strays: &'static [&'static str],
    /// Letters of flags that are followed by a value.
    valued: &'static str,
}

const fn runner(names: &'static [&'static str], how: How) -> Runner {
    Runner {
        names,
        how,
        flags: &[],
        strays: &[],
        valued: "",
    }
}

impl Runner {
    const fn flags(mut self, flags: &'static [&'static str]) -> Self {
        self.flags = flags;
        self
    }

    const fn strays(mut self, strays: &'static [&'static str]) -> Self {
        self.strays = strays;
        self
    }

    const fn valued(mut self, valued: &'static str) -> Self {
        self.valued = valued;
        self
    }

    /// The runner of this name, if it is one.
    pub(super) fn of(program: &str) -> Option<&'static Self> {
        let name = base_name(program);
        RUNNERS
            .iter()
            .find(|runner| runner.names.iter().any(|known| is_called(name, known)))
    }

    /// Whether one of `arguments`, from `from` on, chooses what runs.
    pub(super) fn chooses<'a>(
        &self,
        arguments: impl IntoIterator<Item = &'a str>,
        from: usize,
    ) -> bool {
        flagged(self.flags, arguments, from)
    }

    /// Whether one of `arguments`, from `from` on, chooses what runs or where it works.
    pub(super) fn strays_at<'a>(
        &self,
        arguments: impl IntoIterator<Item = &'a str> + Clone,
        from: usize,
    ) -> bool {
        flagged(self.flags, arguments.clone(), from) || flagged(self.strays, arguments, from)
    }

    /// The place of the first operand among `arguments`.
    pub(super) fn operand(&self, arguments: &[&str]) -> Option<usize> {
        let mut value = false;
        arguments.iter().position(|argument| {
            if core::mem::take(&mut value) {
                return false;
            }
            if let Some(flag) = argument.strip_prefix('-') {
                let mut letters = flag.chars();
                value = letters
                    .next_back()
                    .is_some_and(|last| !flag.starts_with('-') && self.valued.contains(last));
                return false;
            }
            let amount = argument.starts_with(|c: char| c.is_ascii_digit());
            !amount && !argument.contains('=')
        })
    }
}

/// Whether `name` is the program `known`, with or without a version.
fn is_called(name: &str, known: &str) -> bool {
    name.strip_prefix(known).is_some_and(|rest| {
        rest.chars()
            .all(|c| c.is_ascii_digit() || c == '.' || c == '-')
    })
}

fn flagged<'a>(flags: &[&str], arguments: impl IntoIterator<Item = &'a str>, from: usize) -> bool {
    if flags.is_empty() {
        return false;
    }
    let (mut operands, mut ended) = (false, false);
    for (at, argument) in arguments.into_iter().enumerate() {
        let option = argument.starts_with('-') && argument.len() > 1 && !ended;
        let chosen = at >= from
            && flags.iter().any(|flag| {
                if let Some(part) = flag.strip_prefix('*') {
                    argument.contains(part)
                } else if let Some(flag) = flag.strip_prefix('=') {
                    option && is_flag(flag, argument, true)
                } else if let Some(flag) = flag.strip_prefix('^') {
                    option && !operands && is_flag(flag, argument, true)
                } else {
                    option && is_flag(flag, argument, false)
                }
            });
        if chosen {
            return true;
        }
        ended |= argument == "--";
        operands |= !option;
    }
    false
}

fn is_flag(flag: &str, argument: &str, alone: bool) -> bool {
    let name = argument.split_once('=').map_or(argument, |(name, _)| name);
    if let Some(long) = flag.strip_prefix("--") {
        let short = name.strip_prefix("--").unwrap_or_default();
        return short == long || (short.len() > 1 && long.starts_with(short));
    }
    let letters = flag.strip_prefix('-').unwrap_or(flag);
    if alone || letters.len() > 1 {
        // Some take a second dash as well.
        return name == flag || name.strip_prefix('-') == Some(flag);
    }
    !argument.starts_with("--") && argument.contains(letters)
}

use How::{Code, Filled, Flags, Line, Program, Search, Shell, Source, Targets, Verbs};

static RUNNERS: &[Runner] = &[
    // What wraps another program.
    runner(&["env"], Program)
        .flags(&["-S", "--split-string"])
        .strays(&["-C", "--chdir"])
        .valued("uC"),
    runner(&["sudo", "doas"], Program)
        .flags(&["-e", "-i", "-s", "--edit", "--shell", "--login"])
        .valued("ugpChrRtTUD"),
    runner(&["nice"], Program).valued("n"),
    runner(&["ionice"], Program).valued("cnp"),
    runner(&["timeout", "gtimeout"], Program).valued("ks"),
    runner(&["time"], Program).valued("fo"),
    runner(&["stdbuf"], Program).valued("ioe"),
    runner(&["chrt", "taskset"], Program).valued("pc"),
    runner(&["setpriv", "prlimit", "setarch", "numactl"], Program),
    runner(
        &["chroot", "unshare", "nsenter", "bwrap", "firejail"],
        Program,
    ),
    runner(&["proot", "fakeroot", "fakechroot", "systemd-run"], Program),
    runner(&["gosu", "su-exec", "pkexec", "runuser"], Program).valued("ug"),
    runner(
        &["nohup", "setsid", "disown", "command", "builtin"],
        Program,
    ),
    runner(&["exec"], Program).valued("a"),
    runner(&["coproc", "busybox", "toybox"], Program),
    runner(&["strace", "ltrace", "valgrind", "perf", "rr"], Program).valued("eopsu"),
    runner(&["caffeinate", "unbuffer", "rlwrap", "faketime"], Program),
    runner(&["torsocks", "proxychains", "xvfb-run"], Program),
    runner(
        &["dbus-run-session", "start-stop-daemon", "daemonize"],
        Program,
    ),
    runner(&["flock"], Program)
        .flags(&["-c", "--command"])
        .valued("wE"),
    runner(&["chronic", "ifne", "sem", "cpulimit", "entr"], Program),
    runner(&["watchexec", "nodemon", "hyperfine", "direnv"], Program),
    runner(&["npx", "bunx", "pnpx", "uvx", "pipx"], Program)
        .flags(&["-c", "--call", "-p", "--package"])
        .valued("pc"),
    runner(&["cross-env", "dotenv", "env-cmd"], Program).valued("ef"),
    runner(&["find", "gfind"], Search).strays(&[
        "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls",
    ]),
    runner(&["fd", "fdfind"], Search).strays(&[
        "-x",
        "-X",
        "--exec",
        "--exec-batch",
        "-C",
        "--base-directory",
    ]),
    runner(&["xargs", "gxargs"], Filled).valued("adEILnPs"),
    runner(&["parallel", "rush", "run-parts"], Filled).valued("aINnPjLS"),
    // What makes a line of its arguments.
    runner(&["eval", "trap"], Line),
    runner(&["ssh", "mosh", "rsh"], Line)
        .flags(&["-o", "-F", "-J", "-w"])
        .valued("BbcDEeFIiJLlmOopQRSWw"),
    runner(&["watch"], Line).valued("n"),
    runner(&["su"], Line)
        .flags(&["-c", "--command", "-s", "--shell"])
        .valued("csgG"),
    runner(&["script"], Line)
        .flags(&["-c", "--command"])
        .valued("cEIOBT"),
    runner(
        &["tmux", "screen", "at", "batch", "crontab", "expect"],
        Line,
    )
    .flags(&["-c", "-f", "-S", "-X"])
    .valued("cfLST"),
    // Shells, and what they read.
    runner(
        &[
            "sh",
            "bash",
            "dash",
            "ash",
            "ksh",
            "mksh",
            "zsh",
            "fish",
            "csh",
            "tcsh",
            "yash",
            "rbash",
            "pwsh",
            "powershell",
            "nu",
            "elvish",
            "xonsh",
        ],
        Shell,
    )
    .strays(&[
        "-c",
        "-s",
        "-i",
        "--rcfile",
        "--init-file",
        "--command",
        "-e",
        "-Command",
    ])
    .valued("coO"),
    runner(&["source", "."], Source),
    // Interpreters, and others that take code.
    runner(&["python", "pypy", "ipython"], Code)
        .flags(&["-c", "-m"])
        .valued("cmWX"),
    runner(&["perl"], Code)
        .flags(&["-e", "-E", "-M", "-m", "-d"])
        .valued("eEI"),
    runner(&["ruby", "irb"], Code)
        .flags(&["-e", "-r"])
        .valued("eIr"),
    runner(&["node", "nodejs", "tsx", "ts-node"], Code)
        .flags(&[
            "-e",
            "-p",
            "-r",
            "--eval",
            "--print",
            "--require",
            "--import",
            "--loader",
        ])
        .valued("eprC"),
    runner(&["bun"], Verbs(&["x", "exec", "create", "repl"])).flags(&[
        "-e",
        "-p",
        "-r",
        "--eval",
        "--print",
        "--preload",
        "--config",
    ]),
    runner(&["deno"], Verbs(&["eval", "task", "install", "upgrade"])).flags(&[
        "--import-map",
        "-c",
        "--config",
        "--preload",
        "--require",
    ]),
    runner(&["php"], Code)
        .flags(&["-r", "-B", "-R", "-E", "-d", "-z"])
        .valued("rBREdcf"),
    runner(&["lua", "luajit", "texlua"], Code)
        .flags(&["-e", "-l"])
        .valued("el"),
    runner(&["Rscript", "R"], Code).flags(&["-e"]).valued("ef"),
    runner(
        &[
            "julia",
            "elixir",
            "groovy",
            "scala",
            "guile",
            "racket",
            "osascript",
            "tclsh",
        ],
        Code,
    )
    .flags(&["-e", "-E", "--eval", "-L", "-r"])
    .valued("eELr"),
    runner(&["awk", "gawk", "mawk", "nawk"], Code)
        .flags(&[
            "*system",
            "*|",
            "-f",
            "-e",
            "-i",
            "-l",
            "--file",
            "--source",
            "--include",
            "--load",
        ])
        .strays(&["*>", "*getline"])
        .valued("fFvei"),
    runner(&["sed", "gsed"], Flags)
        .flags(&["*e ", "*/e", "*|e", "*;e", "-f", "--file"])
        .strays(&["*e", "*w", "*W", "-i", "--in-place"]),
    runner(&["jq", "yq"], Flags).flags(&["-f", "-L", "--from-file"]),
    runner(
        &[
            "vi", "vim", "nvim", "view", "ex", "ed", "emacs", "nano", "less", "more", "man",
        ],
        Flags,
    )
    .flags(&[
        "*!", "-c", "-S", "-s", "-u", "-P", "*+", "--cmd", "--eval", "--load", "--batch", "-l",
        "-H",
    ]),
    runner(&["gdb", "lldb"], Flags).flags(&[
        "-x",
        "-ex",
        "-ix",
        "-iex",
        "-o",
        "-s",
        "-S",
        "--args",
        "--command",
        "--eval-command",
    ]),
    runner(&["tar", "gtar", "bsdtar"], Flags).flags(&[
        "--checkpoint-action",
        "--to-command",
        "--use-compress-program",
        "-I",
        "--info-script",
        "--new-volume-script",
        "--rsh-command",
        "-F",
    ]),
    runner(&["rsync", "scp", "sftp"], Flags).flags(&[
        "-e",
        "--rsh",
        "--rsync-path",
        "-S",
        "-o",
        "-F",
        "-J",
    ]),
    runner(&["zip", "unzip", "7z"], Flags).flags(&["-TT", "--unzip-command", "-T"]),
    runner(&["split", "sort"], Flags)
        .flags(&["--filter", "--compress-program"])
        .strays(&["-o", "--output"]),
    runner(&["curl", "wget"], Flags)
        .flags(&["-K", "--config", "--use-askpass", "-e", "--execute"])
        .strays(&["-o", "-O", "--output"]),
    runner(
        &[
            "alias",
            "hash",
            "enable",
            "complete",
            "bind",
            "mapfile",
            "readarray",
        ],
        Flags,
    )
    .flags(&["*"]),
    // Tools that work on a project.
    runner(
        &["git"],
        Verbs(&[
            "bisect",
            "config",
            "difftool",
            "filter-branch",
            "filter-repo",
            "hook",
            "mergetool",
            "submodule",
            "send-email",
            "maintenance",
            "daemon",
        ]),
    )
    .flags(&[
        "^-c",
        "^--config-env",
        "^--exec-path",
        "--upload-pack",
        "--receive-pack",
        "--exec",
        "--extcmd",
        "--open-files-in-pager",
        "--ext-diff",
        "--template",
        "*ext::",
    ])
    .strays(&[
        "^-C",
        "^--git-dir",
        "^--work-tree",
        "--output",
        "--separate-git-dir",
    ]),
    runner(&["hg", "svn", "jj"], Flags).flags(&[
        "--config",
        "--config-option",
        "--config-toml",
        "--config-file",
        "--diff-cmd",
    ]),
    runner(&["cargo"], Verbs(&["install", "watch"]))
        .flags(&["--config", "-Z"])
        .strays(&[
            "-C",
            "--manifest-path",
            "--target-dir",
            "--out-dir",
            "--artifact-dir",
            "--lockfile-path",
        ]),
    runner(
        &["rustup", "mise", "asdf", "rtx"],
        Verbs(&["run", "exec", "x"]),
    ),
    runner(&["go"], Verbs(&["generate", "tool"]))
        .flags(&[
            "-exec",
            "-toolexec",
            "-vettool",
            "-overlay",
            "-ldflags",
            "-modfile",
        ])
        .strays(&["=-C", "=-o"]),
    runner(
        &["npm", "pnpm", "yarn"],
        Verbs(&[
            "exec", "x", "dlx", "create", "init", "explore", "config", "set", "edit",
        ]),
    )
    .flags(&[
        "--script-shell",
        "--shell",
        "--node-options",
        "--userconfig",
        "--globalconfig",
    ])
    .strays(&["-C", "--prefix", "--cwd", "--dir", "-g", "--global"]),
    runner(
        &[
            "uv", "poetry", "pipenv", "pdm", "hatch", "rye", "conda", "mamba",
        ],
        Verbs(&["run", "shell", "exec", "tool"]),
    )
    .strays(&["--project", "--directory", "-C"]),
    runner(
        &["bundle", "bundler", "rbenv", "nvm", "volta", "nix", "guix"],
        Verbs(&["exec", "run", "shell", "develop"]),
    )
    .flags(&["-c", "--command"]),
    runner(
        &[
            "docker", "podman", "nerdctl", "kubectl", "oc", "lxc", "vagrant", "flatpak",
        ],
        Verbs(&["exec", "run", "compose", "build", "debug", "ssh"]),
    ),
    runner(&["make", "gmake", "ninja"], Targets).flags(&[
        "*=",
        "-f",
        "-C",
        "-I",
        "-E",
        "--file",
        "--makefile",
        "--directory",
        "--include-dir",
        "--eval",
    ]),
    runner(&["just", "task", "rake"], Targets).flags(&[
        "*=",
        "-f",
        "-d",
        "-c",
        "-r",
        "-e",
        "-t",
        "--justfile",
        "--working-directory",
        "--shell",
        "--shell-arg",
        "--set",
        "--command",
        "--dotenv-path",
        "--taskfile",
    ]),
    runner(&["gradle", "gradlew"], Targets).flags(&[
        "-I",
        "-b",
        "-c",
        "-p",
        "-g",
        "-D",
        "--init-script",
        "--build-file",
        "--settings-file",
        "--project-dir",
        "--include-build",
        "--gradle-user-home",
    ]),
    runner(&["mvn", "mvnw"], Targets).flags(&[
        "-f",
        "-s",
        "-g",
        "-D",
        "--file",
        "--settings",
        "--global-settings",
    ]),
    runner(&["dotnet"], Verbs(&["exec", "tool", "script"])).flags(&[
        "-p",
        "*/p:",
        "*-p:",
        "--property",
    ]),
    runner(&["mix"], Verbs(&["run", "eval", "do", "cmd"])).flags(&[
        "-e",
        "-r",
        "--eval",
        "--require",
    ]),
    runner(&["swift"], Flags).flags(&["-e", "-X", "--toolchain", "--package-path"]),
    runner(&["zig"], Verbs(&["run"])).flags(&["--build-file", "--build-runner"]),
];
