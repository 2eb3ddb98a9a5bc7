//! Tests of what verifies.

use super::*;
use crate::settings::PauseUnverified;
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
