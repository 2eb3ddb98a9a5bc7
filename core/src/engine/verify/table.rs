//! What is known of the commands that verify, as data; the rules are in `verify`. Knows no shell.

/// A program that runs the command it is given.
pub(super) struct Wrapper {
    /// How it begins.
    pub(super) words: &'static [&'static str],
    /// Options of its own that take the next word.
    pub(super) valued: &'static [&'static str],
    /// Words of its own that are no options.
    pub(super) skip: usize,
}

const fn wrapper(
    words: &'static [&'static str],
    valued: &'static [&'static str],
    skip: usize,
) -> Wrapper {
    Wrapper {
        words,
        valued,
        skip,
    }
}

/// A program that runs tasks of the project by their names.
pub(super) struct Runner {
    pub(super) names: &'static [&'static str],
    /// Its own words before the name of a task.
    pub(super) verbs: &'static [&'static str],
    /// Whether it takes several tasks at once.
    pub(super) several: bool,
    /// Options with which it does nothing.
    pub(super) idle: &'static [&'static str],
}

/// Commands that verify whatever their arguments.
pub(super) static PROGRAMS: &[&str] = &[
    "actionlint",
    "ava",
    "bats",
    "busted",
    "cppcheck",
    "ctest",
    "detekt",
    "eslint",
    "flake8",
    "golangci-lint",
    "hlint",
    "jest",
    "karma",
    "ktlint",
    "luacheck",
    "markdownlint",
    "mocha",
    "mypy",
    "nox",
    "phpstan",
    "phpunit",
    "psalm",
    "py.test",
    "pylint",
    "pyright",
    "pytest",
    "rspec",
    "rubocop",
    "shellcheck",
    "sorbet",
    "staticcheck",
    "stylelint",
    "swiftlint",
    "tox",
    "trial",
    "tsc",
    "unittest",
    "vitest",
    "vue-tsc",
    "yamllint",
    "compileall",
    "py_compile",
];

/// Commands that verify by their first argument that is no option.
pub(super) static SUBCOMMANDS: &[(&[&str], &[&str])] = &[
    (
        &["cargo", "cross"],
        &[
            "bench", "build", "b", "check", "c", "clippy", "hack", "miri", "nextest", "t", "test",
        ],
    ),
    (&["go"], &["build", "test", "vet"]),
    (&["dotnet"], &["build", "test"]),
    (&["swift"], &["build", "test"]),
    (&["zig"], &["build", "test"]),
    (&["mix"], &["compile", "credo", "dialyzer", "test"]),
    (&["rebar3"], &["compile", "ct", "dialyzer", "eunit", "xref"]),
    (&["sbt", "mill"], &["compile", "test"]),
    (&["lein", "clj"], &["check", "test"]),
    (
        &["stack", "cabal", "dune", "gleam", "elm"],
        &["build", "check", "runtest", "test"],
    ),
    (&["flutter", "dart"], &["analyze", "build", "test"]),
    (
        &["bazel", "bazelisk", "buck", "buck2", "pants"],
        &["build", "check", "lint", "test"],
    ),
    (&["deno"], &["check", "lint", "test"]),
    (&["bun"], &["test"]),
    (&["ruff", "biome", "oxlint"], &["check", "ci", "lint"]),
    (
        &["playwright", "react-scripts", "ng", "vite"],
        &["build", "lint", "test"],
    ),
    (&["cypress", "pre-commit"], &["run"]),
    (&["composer"], &["check", "lint", "test", "validate"]),
    (&["crystal"], &["build", "spec"]),
    (&["nim"], &["c", "check", "compile"]),
    (&["meson"], &["compile", "test"]),
    (&["terraform", "tofu"], &["test", "validate"]),
    (&["helm"], &["lint"]),
    (
        &["forge", "hardhat", "truffle"],
        &["build", "compile", "test"],
    ),
    (&["xcodebuild"], &["analyze", "build", "test"]),
    (&["rails"], &["test"]),
    (&["turbo"], &["build", "check", "lint", "test", "typecheck"]),
];

/// Programs that run tasks of the project.
pub(super) static RUNNERS: &[Runner] = &[
    Runner {
        names: &[
            "make", "gmake", "ninja", "samu", "just", "task", "rake", "invoke", "mage",
        ],
        verbs: &[],
        several: true,
        idle: &["-n"],
    },
    Runner {
        names: &["gradle", "gradlew", "mvn", "mvnw", "mvnd", "ant"],
        verbs: &[],
        several: true,
        idle: &["-m"],
    },
    Runner {
        names: &["npm", "pnpm", "yarn", "nx", "lerna"],
        verbs: &[
            "run",
            "run-script",
            "workspaces",
            "foreach",
            "affected",
            "run-many",
        ],
        several: false,
        idle: &["--if-present"],
    },
];

/// What the tasks are called that verify.
pub(super) static TASKS: &[&str] = &[
    "all",
    "assemble",
    "build",
    "check",
    "checks",
    "ci",
    "clippy",
    "compile",
    "coverage",
    "e2e",
    "eslint",
    "integration",
    "lint",
    "lints",
    "mypy",
    "pytest",
    "qa",
    "smoke",
    "spec",
    "specs",
    "test",
    "tests",
    "tsc",
    "typecheck",
    "types",
    "unit",
    "validate",
    "verify",
    "vet",
];

/// What a task is called that does something else with them.
pub(super) static NO_TASKS: &[&str] = &[
    "clean", "delete", "deps", "generate", "gen", "install", "list", "new", "prepare", "publish",
    "remove", "setup", "show", "update", "watch",
];

/// Programs that run another one with everything that follows.
pub(super) static WRAPPERS: &[Wrapper] = &[
    wrapper(&["time"], &[], 0),
    wrapper(&["nohup"], &[], 0),
    wrapper(&["command"], &[], 0),
    wrapper(&["env"], &["-u", "-C"], 0),
    wrapper(&["nice"], &["-n"], 0),
    wrapper(&["ionice"], &["-c", "-n"], 0),
    wrapper(&["stdbuf"], &["-i", "-o", "-e"], 0),
    wrapper(&["sudo"], &["-u", "-g"], 0),
    wrapper(&["timeout"], &["-k", "-s", "--kill-after", "--signal"], 1),
    wrapper(&["xvfb-run"], &["-n", "-s"], 0),
    wrapper(&["npx"], &["-p", "--package"], 0),
    wrapper(&["bunx"], &["-p", "--package"], 0),
    wrapper(
        &["npm", "exec"],
        &["-p", "--package", "-w", "--workspace"],
        0,
    ),
    wrapper(&["pnpm", "exec"], &["--filter", "-F"], 0),
    wrapper(&["pnpm", "dlx"], &["--package"], 0),
    wrapper(&["yarn", "exec"], &[], 0),
    wrapper(&["yarn", "dlx"], &["-p", "--package"], 0),
    wrapper(
        &["uv", "run"],
        &[
            "--with",
            "-p",
            "--python",
            "--extra",
            "--group",
            "--package",
        ],
        0,
    ),
    wrapper(&["uvx"], &["--with", "-p", "--python", "--from"], 0),
    wrapper(&["poetry", "run"], &[], 0),
    wrapper(&["pipenv", "run"], &[], 0),
    wrapper(&["pdm", "run"], &[], 0),
    wrapper(&["rye", "run"], &[], 0),
    wrapper(&["hatch", "run"], &[], 0),
    wrapper(&["bundle", "exec"], &[], 0),
    wrapper(&["python", "-m"], &[], 0),
    wrapper(&["coverage", "run", "-m"], &[], 0),
    wrapper(&["direnv", "exec"], &[], 1),
];

pub(super) const SHELLS: &[&str] = &["bash", "dash", "ksh", "sh", "zsh"];

/// Programs after which the rest of a line may not run, or not as it stands there.
pub(super) const LEAVING: &[&str] = &[
    "exit", "return", "exec", "set", "trap", "alias", "eval", "source", ".",
];

/// Options with which programs verify nothing.
pub(super) const IDLE: &[&str] = &[
    "--help",
    "-h",
    "--version",
    "--dry-run",
    "--just-print",
    "--collect-only",
    "--co",
    "--list",
    "-list",
    "--listTests",
    "--list-tests",
    "--show-only",
    "--print-config",
    "--init",
    "--showConfig",
];

/// Options that take the next word, of whatever program.
pub(super) const VALUED: &[&str] = &[
    "-C",
    "--cwd",
    "--dir",
    "--directory",
    "--file",
    "--filter",
    "-F",
    "--manifest-path",
    "--prefix",
    "--project",
    "--target-dir",
    "-f",
    "-j",
    "-p",
    "-w",
    "--workspace",
    "workspace",
    "--color",
    "--config",
    "-c",
];
