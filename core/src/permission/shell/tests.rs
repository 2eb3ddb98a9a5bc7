//! Lines, and what is understood of them.

use super::*;
use crate::permission::{
    Access, Action, Ceiling, Gate, Grant, Grants, Posture, Rules, Verdict, decide,
};
use crate::settings::Permissions;
use alloc::format;
use alloc::vec;

#[test]
fn only_one_literal_simple_command_has_words() {
    #[track_caller]
    fn check(line: &str, words: Option<&[&str]>) {
        let got = literal_words(line);
        let got: Option<Vec<&str>> = got.as_ref().map(|w| w.iter().map(|s| &**s).collect());
        assert_eq!(got.as_deref(), words, "{line:?}");
    }
    check("cargo test", Some(&["cargo", "test"]));
    check(
        "  cargo\ttest -- --nocapture\n",
        Some(&["cargo", "test", "--", "--nocapture"]),
    );
    check(
        "git commit -m 'a; b && $(c)'",
        Some(&["git", "commit", "-m", "a; b && $(c)"]),
    );
    check(
        "git commit -m \"it's\"",
        Some(&["git", "commit", "-m", "it's"]),
    );
    check("echo ''", Some(&["echo", ""]));
    check("a --b=c", Some(&["a", "--b=c"]));
    check("a x#y", Some(&["a", "x#y"]));
    for dynamic in [
        "",
        " ",
        "a; b",
        "a && b",
        "a || b",
        "a | b",
        "a & b",
        "a &",
        "a\nb",
        "a $(b)",
        "a `b`",
        "a $B",
        "a \"$B\"",
        "a \"`b`\"",
        "a > b",
        "a < b",
        "a 2>&1",
        "A=1 b",
        "a *",
        "a b?",
        "a [b]",
        "a {b,c}",
        "a ~",
        "a ~/b",
        "a \\b",
        "a \"\\b\"",
        "a # b",
        "! a",
        "a 'b",
        "a \"b",
        "( a )",
        "{ a; }",
        "if a",
        "time a",
        "a \"b!c\"",
        "a\rb",
        "a 'b\nc'",
        "a\u{0}b",
        "'' a",
        "a $'b'",
        "a <<E",
        "a <(b)",
        "f() { a; }",
        "[[ a ]]",
        "while a",
    ] {
        check(dynamic, None);
    }
}

#[test]
fn an_always_is_offered_for_words_that_name_what_runs() {
    #[track_caller]
    fn check(line: &str, words: &[&str]) {
        assert_eq!(prefix(line).unwrap_or_default(), words, "{line:?}");
    }
    check("cargo test --lib foo", &["cargo", "test"]);
    check("cargo run --bin x", &["cargo", "run"]);
    check("git status", &["git", "status"]);
    check("npm run build -- -w", &["npm", "run", "build"]);
    check("npm test", &["npm", "test"]);
    for whole in [
        "npm run",
        "npm run -- x",
        "npm exec x",
        "cargo",
        "cargo install x",
        "cargo +nightly test",
        "git -c a=b status",
        "git rebase -x",
        "rm -rf x",
        "ls",
        "sudo cargo test",
        "env cargo test",
        "xargs cargo test",
        "sh -c 'cargo test'",
        "python3 x.py",
        "cargo test; x",
        "/tmp/cargo test",
        "FOO=1 cargo test",
    ] {
        check(whole, &[]);
    }
}

#[test]
fn a_forbidden_command_is_seen_wherever_it_hides() {
    #[track_caller]
    fn check(line: &str, expected: Runs) {
        let words = vec!["git".into(), "push".into()];
        assert_eq!(runs(line, &words, false), expected, "{line:?}");
    }
    for line in [
        "git push",
        "git push origin main",
        "/usr/bin/git push",
        "git -C x push",
        "cd x && git push",
        "a; git push",
        "a | git push",
        "a\ngit push",
        "(git push)",
        "echo $(git push)",
        "echo `git push`",
        "echo \"$(git push)\"",
        "X=1 git push",
        "env X=1 git push",
        "sudo git push",
        "sh -c 'git push'",
        "bash -lc \"cd x; git push\"",
        "xargs git push",
        "g'i't pu\\sh",
        "if true; then git push; fi",
        "{ git push; }",
        "eval 'git push'",
        "timeout 5 git push",
        "sh -c \"sh -c 'git push'\"",
        "! git push",
        "git push > x",
        "echo 'git push",
    ] {
        check(line, Runs::Yes);
    }
    for line in [
        "git status",
        "ls *.rs",
        "echo 'git push'",
        "cargo test",
        "echo $HOME",
        "gits push",
    ] {
        check(line, Runs::No);
    }
    for line in [
        "$X push",
        "git $X",
        "echo \"$(x)\"",
        "sh -c \"$X\"",
        "g?t status",
    ] {
        check(line, Runs::Unknown);
    }
}

#[test]
fn where_output_goes_makes_no_other_command() {
    let words = vec!["make".into(), "all".into()];
    for line in [
        "make all > x",
        "make all >x 2>&1",
        "make all 2>/dev/null",
        "make >x all",
        "<in make all",
        "make all &> x",
        "make all <<<x",
        "sh -c 'make all > x'",
        "make all > \"a b\"",
    ] {
        assert_eq!(runs(line, &words, true), Runs::Yes, "{line}");
    }
    for line in [
        "make > all",
        "make all 2 > x",
        "make all x >y",
        "cat <(make) all",
    ] {
        assert_eq!(runs(line, &words, true), Runs::No, "{line}");
    }
}

#[test]
fn a_line_of_any_length_is_judged_in_a_moment() {
    let words = vec!["git".into(), "push".into()];
    for line in [
        "sudo git ".repeat(1 << 20),
        "sh -c '".repeat(1 << 20),
        "git ".repeat(4000),
    ] {
        assert_eq!(literal_words(&line).is_some(), line.len() <= MAX_LINE);
        assert_ne!(runs(&line, &words, true), Runs::Yes);
    }
    assert_eq!(
        runs(&format!("{} git push", "x ".repeat(1 << 20)), &words, false),
        Runs::Yes
    );
}

/// What stands for characters that a text file had better not hold.
const SIGNS: [(char, char); 6] = [
    ('⏎', '\n'),
    ('␍', '\r'),
    ('⇥', '\t'),
    ('⍽', '\u{a0}'),
    ('␀', '\0'),
    ('⊘', '\u{200b}'),
];

/// A section of the file of lines.
#[derive(Default)]
struct Section {
    posture: Option<Posture>,
    permissions: Permissions,
    grants: Vec<String>,
}

impl Section {
    /// What becomes of a line.
    fn judge(&self, line: &str) -> char {
        let bash = |line: &str| {
            Action::new(
                "bash",
                Access::Execute {
                    command: line.into(),
                    inside: true,
                },
            )
        };
        let rules = Rules::parse(&self.permissions, None).expect("the rules parse");
        let mut grants = Grants::new(16);
        for line in &self.grants {
            assert!(grants.add(Grant::for_action(&bash(line)).expect("it has an always")));
        }
        let gate = Gate {
            posture: self.posture.expect("a section says its posture"),
            ceiling: Ceiling::TOP,
            accept_edits: false,
            planning: false,
            rules: &rules,
            grants: &grants,
        };
        match decide(&bash(line), &gate) {
            Verdict::Allow { .. } => '+',
            Verdict::Ask { .. } => '?',
            Verdict::Deny { .. } => '-',
        }
    }
}

#[test]
fn every_line_of_the_file_gets_its_verdict() {
    let mut section = Section::default();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (number, line) in (1..).zip(include_str!("lines.txt").lines()) {
        let Some((sign, rest)) = line.split_once(' ') else {
            assert!(line.is_empty(), "line {number} of the file: {line}");
            continue;
        };
        match sign {
            "#" => {}
            "==" => {
                section = Section {
                    posture: Posture::from_name(rest),
                    ..Section::default()
                };
            }
            "allow" => section.permissions.allow.push(rest.into()),
            "ask" => section.permissions.ask.push(rest.into()),
            "deny" => section.permissions.deny.push(rest.into()),
            "always" => section.grants.push(rest.into()),
            "+" | "?" | "-" => {
                let mut text = String::from(rest);
                for (sign, meant) in SIGNS {
                    text = text.replace(sign, meant.encode_utf8(&mut [0; 4]));
                }
                let got = section.judge(&text);
                if !sign.starts_with(got) {
                    wrong.push(format!("line {number}: {got}, not {line}"));
                }
                count += 1;
            }
            _ => panic!("line {number} of the file: {line}"),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 300, "lines are missing: there are {count}");
}
