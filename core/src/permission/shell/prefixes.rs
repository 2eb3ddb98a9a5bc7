//! What an "always" may be given for, as data. Knows no lines.

/// Programs whose first argument says what they do, and the arguments that do no more than work on
/// the project at hand: those an "always" may be given for.
pub(super) const PREFIXES: &[(&str, &[&str])] = &[
    (
        "cargo",
        &[
            "bench", "build", "check", "clippy", "doc", "fmt", "metadata", "nextest", "run",
            "test", "tree",
        ],
    ),
    ("go", &["build", "doc", "fmt", "list", "mod", "test", "vet"]),
    (
        "git",
        &[
            "add",
            "blame",
            "branch",
            "checkout",
            "cherry-pick",
            "commit",
            "diff",
            "fetch",
            "log",
            "merge",
            "pull",
            "push",
            "remote",
            "restore",
            "show",
            "stash",
            "status",
            "switch",
            "tag",
        ],
    ),
    (
        "npm",
        &["audit", "ci", "install", "ls", "outdated", "run", "test"],
    ),
    (
        "pnpm",
        &["audit", "install", "ls", "outdated", "run", "test"],
    ),
    ("yarn", &["audit", "install", "outdated", "run", "test"]),
    ("bun", &["install", "run", "test"]),
    ("deno", &["check", "fmt", "lint", "test"]),
    ("uv", &["lock", "sync", "tree"]),
    ("poetry", &["check", "install", "lock", "show"]),
    ("dotnet", &["build", "format", "restore", "test"]),
    ("gradle", &["assemble", "build", "check", "test"]),
    ("./gradlew", &["assemble", "build", "check", "test"]),
    ("mvn", &["compile", "package", "test", "verify"]),
    ("mix", &["compile", "format", "test"]),
    ("swift", &["build", "test"]),
    ("zig", &["build", "fmt", "test"]),
    ("make", &["all", "build", "check", "fmt", "lint", "test"]),
    ("just", &["build", "check", "fmt", "lint", "test"]),
];
