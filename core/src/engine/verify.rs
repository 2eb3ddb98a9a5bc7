//! What counts as verification, and whether what a turn wrote was verified. The commands are data;
//! more of them come from the settings. Pure: a command line in, an answer out.
//!
//! A command verifies if it builds, checks or tests the work and its exit code says how that went.
//! Reading a file back does not count, and neither does a line whose exit code is another
//! command's: `cargo test || true`, `cargo test | tail`, `cargo test; echo done`. What counts is in
//! four tables, and `commands` of `[verification]` in `config.toml` adds to them:
//!
//! | table | an entry matches |
//! | --- | --- |
//! | `PROGRAMS` | the program, whatever its arguments |
//! | `SUBCOMMANDS` | the program and the first argument that is no option |
//! | `RUNNERS` | the program, and an argument that names a task by a word of `TASKS` |
//! | `WRAPPERS` | nothing by itself: the command behind it is looked at |
//! | `[verification] commands` | the words a command begins with, exactly |

mod line;
mod table;

use alloc::string::String;
use alloc::vec::Vec;

use crate::permission::shell;
use crate::settings::PauseUnverified;
use line::{Chain, Item, List, Word};
use table::{
    IDLE, LEAVING, NO_TASKS, PROGRAMS, RUNNERS, SHELLS, SUBCOMMANDS, TASKS, VALUED, WRAPPERS,
    Wrapper,
};

/// Which commands verify.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verifier {
    extra: Vec<Vec<String>>,
}

impl Verifier {
    /// With what `[verification] commands` adds: each is the words a command begins with, such as
    /// `make smoke`. One that is no list of literal words is left out.
    pub fn new(extra: &[String]) -> Self {
        Self {
            extra: extra
                .iter()
                .filter_map(|line| shell::literal_words(line))
                .collect(),
        }
    }

    /// Whether the line, when it ends with exit code 0, has verified something.
    pub fn verifies(&self, line: &str) -> bool {
        self.line_verifies(line, Options::default(), 0)
    }

    fn line_verifies(&self, line: &str, options: Options, depth: u8) -> bool {
        depth <= MAX_NESTING
            && line::parse(line).is_some_and(|list| self.list_verifies(&list, options, depth))
    }

    /// Whether exit code 0 of the list means that something verified.
    fn list_verifies(&self, List(chains): &List, mut options: Options, depth: u8) -> bool {
        let mut found = false;
        for (at, chain) in chains.iter().enumerate() {
            if let Some(set) = options_set(chain) {
                options = options.and(set);
                continue;
            }
            if leaves(chain) {
                return false;
            }
            // Before the last chain a failure ends the line only under `set -e`, and under that
            // only if it is not followed by `&&`.
            let last = at + 1 == chains.len();
            let decides = last || (options.errexit && chain.pipelines.len() == 1);
            found |= decides && self.chain_verifies(chain, options, depth);
        }
        found
    }

    fn chain_verifies(&self, chain: &Chain, options: Options, depth: u8) -> bool {
        !chain.lenient
            && chain.pipelines.iter().any(|items| {
                // The exit code of a pipeline is that of its last command.
                let first = if options.pipefail { 0 } else { items.len() - 1 };
                items[first..].iter().any(|item| match item {
                    Item::Group(list) => self.list_verifies(list, options, depth + 1),
                    Item::Simple(words) => self.command_verifies(words, depth),
                })
            })
    }

    fn command_verifies(&self, command: &[Word], depth: u8) -> bool {
        let mut words = command;
        loop {
            words = behind_assignments(words);
            if self.extra.iter().any(|extra| begins_with(words, extra)) {
                return true;
            }
            let Some(program) = words.first().filter(|word| !word.dynamic) else {
                return false;
            };
            let name = base_name(&program.text);
            if SHELLS.contains(&name) {
                return self.shell_verifies(&words[1..], depth);
            }
            match behind_wrapper(name, words) {
                Some(rest) => words = rest,
                None => return is_known(name, &words[1..]),
            }
        }
    }

    /// `sh -c 'line'`, with whatever letters beside the `c`.
    fn shell_verifies(&self, arguments: &[Word], depth: u8) -> bool {
        let [flags, line, ..] = arguments else {
            return false;
        };
        let letters = flags.text.strip_prefix('-').unwrap_or_default();
        let options = Options {
            errexit: letters.contains('e'),
            pipefail: false,
        };
        let is_line = letters.ends_with('c') && !letters.starts_with('-');
        is_line && !line.dynamic && self.line_verifies(&line.text, options, depth + 1)
    }
}

/// What was written and not verified since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unverified {
    /// Something was written since the last verification that succeeded.
    open: bool,
    /// Something was written since [`begin_turn`](Self::begin_turn).
    wrote: bool,
    /// The last verification after that failed: its command line.
    failed: Option<String>,
}

impl Unverified {
    /// A turn begins: what was left open before it is no fault of it.
    pub fn begin_turn(&mut self) {
        self.wrote = false;
    }

    /// Files were written.
    pub fn wrote(&mut self) {
        self.open = true;
        self.wrote = true;
        self.failed = None;
    }

    /// A command line that verifies ran to its end.
    pub fn verified(&mut self, line: &str, ok: bool) {
        if ok {
            *self = Self {
                wrote: self.wrote,
                ..Self::default()
            };
        } else if self.open {
            self.failed = Some(line.into());
        }
    }

    /// Whether something was written since the last verification that succeeded, in whatever turn.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Why the turn counts as paused, if it wrote something that was not verified after it.
    pub fn reason(&self) -> Option<String> {
        (self.open && self.wrote).then(|| self.why())
    }

    /// What is missing, in words.
    pub fn why(&self) -> String {
        match &self.failed {
            Some(line) => alloc::format!(
                "files were changed, and the check after that failed: {}",
                line.lines().next().unwrap_or_default()
            ),
            None => "files were changed, and no test, check or build succeeded after that".into(),
        }
    }
}

/// Whether a turn that wrote something unverified counts as paused.
pub const fn pauses(when: PauseUnverified, delivery: bool, goal: bool) -> bool {
    match when {
        PauseUnverified::Always => true,
        PauseUnverified::Delivery => delivery || goal,
        PauseUnverified::Never => false,
    }
}

/// Shells in shells that are looked into.
const MAX_NESTING: u8 = 4;

/// What `set` says of exit codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Options {
    errexit: bool,
    pipefail: bool,
}

impl Options {
    fn and(self, other: Self) -> Self {
        Self {
            errexit: self.errexit || other.errexit,
            pipefail: self.pipefail || other.pipefail,
        }
    }
}

/// The options that a chain sets, if it is `set` and nothing else; `set +e` is not understood and
/// sets nothing.
fn options_set(chain: &Chain) -> Option<Options> {
    let [pipeline] = &chain.pipelines[..] else {
        return None;
    };
    let [Item::Simple(words)] = &pipeline[..] else {
        return None;
    };
    let (set, arguments) = words.split_first()?;
    if set.text != "set" || arguments.iter().any(|word| word.text.starts_with('+')) {
        return None;
    }
    let letter = |letter| {
        let flags = arguments
            .iter()
            .filter_map(|word| word.text.strip_prefix('-'));
        flags.into_iter().any(|flags| flags.contains(letter))
    };
    Some(Options {
        errexit: letter('e'),
        pipefail: letter('o') && arguments.iter().any(|word| word.text == "pipefail"),
    })
}

/// Whether the line may end in this chain, so that what follows may not run, or may undo options.
fn leaves(chain: &Chain) -> bool {
    let items = chain.pipelines.iter().flatten();
    items.into_iter().any(|item| match item {
        Item::Simple(words) => LEAVING.contains(&words[0].text.as_str()),
        Item::Group(_) => false,
    })
}

fn behind_assignments(words: &[Word]) -> &[Word] {
    let is_assignment = |word: &Word| {
        word.text.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        })
    };
    let assigned = words.iter().take_while(|word| is_assignment(word)).count();
    &words[assigned..]
}

fn begins_with(words: &[Word], prefix: &[String]) -> bool {
    words.len() >= prefix.len()
        && words
            .iter()
            .zip(prefix)
            .all(|(word, wanted)| !word.dynamic && word.text == *wanted)
}

/// The name of a program without its folder, the ending that Windows gives it and a version.
fn base_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = [".exe", ".cmd", ".bat"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name);
    match name.strip_prefix("python") {
        Some(version) if version.bytes().all(|b| b.is_ascii_digit() || b == b'.') => "python",
        Some(_) | None => name,
    }
}

/// The command behind a wrapper; `None` if this is none.
fn behind_wrapper<'a>(name: &str, words: &'a [Word]) -> Option<&'a [Word]> {
    let fits = |wrapper: &&Wrapper| {
        wrapper.words[0] == name
            && wrapper.words.len() <= words.len()
            && wrapper.words[1..]
                .iter()
                .zip(&words[1..])
                .all(|(wanted, word)| *wanted == word.text)
    };
    let wrapper = WRAPPERS.iter().find(fits)?;
    let mut rest = &words[wrapper.words.len()..];
    let mut skip = wrapper.skip;
    while let Some((word, tail)) = rest.split_first() {
        if word.text == "--" {
            return Some(tail);
        } else if word.text.starts_with('-') {
            let valued = wrapper.valued.contains(&word.text.as_str());
            rest = tail.get(usize::from(valued)..).unwrap_or_default();
        } else if skip > 0 {
            skip -= 1;
            rest = tail;
        } else {
            break;
        }
    }
    Some(rest)
}

/// Whether a program with these arguments verifies.
fn is_known(name: &str, arguments: &[Word]) -> bool {
    let own = arguments.iter().take_while(|word| word.text != "--");
    if own.clone().any(|word| IDLE.contains(&word.text.as_str())) {
        return false;
    }
    if PROGRAMS.contains(&name) {
        return true;
    }
    let mut plain = Vec::new();
    let mut valued = false;
    for word in own {
        let is_option = word.text.starts_with(['-', '+']) || word.text.contains('=');
        let takes_one = VALUED.contains(&word.text.as_str());
        if !valued && !takes_one && !is_option {
            plain.push(word);
        }
        valued = takes_one && !valued;
    }
    if let Some((_, verbs)) = SUBCOMMANDS.iter().find(|(names, _)| names.contains(&name)) {
        return plain
            .first()
            .is_some_and(|word| !word.dynamic && verbs.contains(&word.text.as_str()));
    }
    let Some(runner) = RUNNERS.iter().find(|runner| runner.names.contains(&name)) else {
        return false;
    };
    if arguments
        .iter()
        .any(|word| runner.idle.contains(&word.text.as_str()))
    {
        return false;
    }
    let mut tasks = plain
        .iter()
        .filter(|word| !runner.verbs.contains(&word.text.as_str()));
    let is_task = |word: &&Word| !word.dynamic && names_a_task(&word.text);
    if runner.several {
        tasks.any(is_task)
    } else {
        tasks.next().is_some_and(is_task)
    }
}

/// Whether a task's name begins or ends with a word of [`TASKS`]: `test`, `test:unit`,
/// `:core:test`, `unit-test`, `testDebug`. A word of [`NO_TASKS`] in front makes it another thing.
fn names_a_task(name: &str) -> bool {
    let mut words: Vec<&str> = Vec::new();
    for part in name.split([':', '-', '_', '.', '/']) {
        let mut start = 0;
        for (at, c) in part.char_indices() {
            if at > start && c.is_ascii_uppercase() {
                words.push(&part[start..at]);
                start = at;
            }
        }
        words.push(&part[start..]);
    }
    words.retain(|word| !word.is_empty());
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return false;
    };
    let is_in = |words: &[&str], word: &str| words.iter().any(|w| w.eq_ignore_ascii_case(word));
    !is_in(NO_TASKS, first) && (is_in(TASKS, first) || is_in(TASKS, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[track_caller]
    fn check(lines: &[&str], expected: bool) {
        let verifier = Verifier::new(&["./ci.sh".into(), "make prove 'two words'".into()]);
        for line in lines {
            assert_eq!(verifier.verifies(line), expected, "{line:?}");
        }
    }

    #[test]
    fn tests_checks_and_builds_verify() {
        check(
            &[
                "cargo test",
                "cargo test --lib -- --list",
                "cargo +nightly test -p x",
                "cargo --locked --manifest-path x/Cargo.toml clippy --all-targets -- -D warnings",
                "cargo nextest run",
                "/usr/bin/cargo check",
                "npm test",
                "npm run test:unit -- --watch=false",
                "npm --prefix web run lint",
                "pnpm -r test",
                "pnpm --filter web typecheck",
                "yarn workspace web test",
                "yarn lint",
                "npx --yes eslint .",
                "npx tsc --noEmit -p .",
                "./node_modules/.bin/vitest run",
                "bun test",
                "pytest",
                "pytest -n 4 tests/*.py",
                "python3.12 -m pytest -q",
                "python -m unittest",
                "uv run --with x pytest",
                "poetry run mypy .",
                "ruff check .",
                "go test ./...",
                "go vet ./...",
                "make test",
                "make -j4 -C x clean test",
                "make unit-tests",
                "just lint",
                "./gradlew :core:test",
                "gradle testDebug --stacktrace",
                "mvn -q clean verify",
                "dotnet test",
                "ctest -V --test-dir build",
                "bundle exec rspec",
                "timeout -k 5 300 cargo test",
                "env RUST_BACKTRACE=1 cargo test",
                "'C:\\tools\\cargo.exe' test",
            ],
            true,
        );
    }

    #[test]
    fn what_looks_like_it_does_not() {
        check(
            &[
                "",
                "echo cargo test",
                "cat src/lib.rs",
                "git diff",
                "grep -rn 'cargo test' .",
                "cargo run -- test",
                "cargo fmt",
                "cargo --version",
                "cargo test --help",
                "cargo testing",
                "pytest --collect-only",
                "make -n test",
                "make",
                "make install",
                "make clean-test",
                "npm install",
                "npm run start",
                "npm run watch:test",
                "npm run test --if-present",
                "npm install test",
                "python x.py",
                "python -m http.server",
                "./test.sh",
                "ls tests",
                "$CARGO test",
                "cargo $VERB",
                "ruff format",
                "sh test",
                "mycargo test",
            ],
            false,
        );
    }

    #[test]
    fn a_line_verifies_if_its_exit_code_says_so() {
        check(
            &[
                "cd x && cargo test",
                "cd x; cargo test",
                "cargo fmt && cargo clippy && cargo test",
                "cargo test && echo ok",
                "cargo test 2>&1",
                "cargo test > out.txt 2>&1 && tail out.txt",
                "RUST_LOG=debug cargo test",
                "(cd x && cargo test)",
                "cat x | pytest",
                "bash -lc 'cd x && cargo test'",
                "sh -c \"sh -c 'make test'\"",
                "set -e; cargo test; echo done",
                "set -euo pipefail\ncargo test 2>&1 | tee log\ntail log",
                "set -o pipefail; cargo test | tail -20",
                "echo a | b || c; cargo test",
                "cargo test # all of them",
            ],
            true,
        );
        check(
            &[
                "cargo test || true",
                "true || cargo test",
                "cargo test; echo done",
                "cargo test | tail -20",
                "cargo test &",
                "cargo test & wait",
                "! cargo test",
                "if cargo test; then echo; fi",
                "echo $(cargo test)",
                "echo 'x; cargo test'",
                "sh -c 'cargo test; true'",
                "bash --version -c 'cargo test'",
                "set -e; cargo test && echo a; echo b",
                "set +e; cargo test; echo",
                "exit 0; cargo test",
                "cargo test() { true; }; cargo test",
                "alias cargo=true; cargo test",
                "cat <<E\ncargo test\nE",
                "cargo test && ",
            ],
            false,
        );
        let mut deep = "cargo test".to_string();
        for _ in 0..6 {
            deep = format!("sh -c '{}'", deep.replace('\'', "'\\''"));
        }
        check(&[&deep], false);
    }

    #[test]
    fn the_settings_add_commands_by_the_words_they_begin_with() {
        check(
            &[
                "./ci.sh",
                "./ci.sh --fast",
                "cd x && timeout 5 ./ci.sh",
                "make prove 'two words' x",
            ],
            true,
        );
        check(&["ci.sh", "./ci.sh2", "make prove", "echo ./ci.sh"], false);
        assert_eq!(
            Verifier::new(&["a; b".into(), "".into(), "$X".into()]),
            Verifier::default()
        );
    }

    #[test]
    fn what_was_written_stays_unverified_until_a_check_succeeds() {
        enum Did {
            Turn,
            Wrote,
            Checked(bool),
        }
        use Did::*;
        #[track_caller]
        fn check(events: &[Did], open: bool, reason: Option<&str>) {
            let mut unverified = Unverified::default();
            for event in events {
                match event {
                    Turn => unverified.begin_turn(),
                    Wrote => unverified.wrote(),
                    Checked(ok) => unverified.verified("cargo test\n", *ok),
                }
            }
            assert_eq!(unverified.is_open(), open);
            let got = unverified.reason();
            match reason {
                Some(part) => assert!(got.is_some_and(|why| why.contains(part)), "{part}"),
                None => assert_eq!(got, None),
            }
        }
        check(&[Turn], false, None);
        check(&[Turn, Wrote], true, Some("no test"));
        check(&[Turn, Wrote, Checked(true)], false, None);
        check(&[Turn, Wrote, Checked(true), Wrote], true, Some("no test"));
        check(&[Turn, Checked(true), Wrote], true, Some("no test"));
        check(
            &[Turn, Wrote, Checked(false)],
            true,
            Some("failed: cargo test"),
        );
        check(&[Turn, Wrote, Checked(false), Checked(true)], false, None);
        check(&[Turn, Wrote, Checked(false), Wrote], true, Some("no test"));
        check(&[Turn, Wrote, Turn], true, None);
        check(&[Turn, Wrote, Turn, Checked(false)], true, None);
        check(
            &[Turn, Wrote, Turn, Checked(true), Wrote],
            true,
            Some("no test"),
        );
        check(&[Turn, Checked(false)], false, None);
    }

    #[test]
    fn when_an_unverified_turn_counts_as_paused() {
        for (when, delivery, goal, expected) in [
            (PauseUnverified::Delivery, false, false, false),
            (PauseUnverified::Delivery, true, false, true),
            (PauseUnverified::Delivery, false, true, true),
            (PauseUnverified::Always, false, false, true),
            (PauseUnverified::Never, true, true, false),
        ] {
            assert_eq!(pauses(when, delivery, goal), expected);
        }
    }

    proptest! {
        #[test]
        fn nothing_before_an_and_takes_a_verification_away(before in "[a-z]{1,8}( [a-z]{1,5}){0,3}") {
            prop_assume!(!LEAVING.contains(&before.split(' ').next().unwrap_or_default()));
            prop_assume!(line::parse(&before).is_some());
            let verifier = Verifier::default();
            let line = format!("{before} && cargo test");
            prop_assert!(verifier.verifies(&line));
            let line = format!("{before} || cargo test");
            prop_assert!(!verifier.verifies(&line));
        }

        #[test]
        fn quoted_text_never_verifies(line in "[ -~]{0,40}") {
            let quoted = format!("echo '{}'", line.replace('\'', "'\\''"));
            prop_assert!(!Verifier::default().verifies(&quoted));
        }
    }
}
