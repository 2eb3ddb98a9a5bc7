//! How far a command line can be understood without running it. Errs on the side of not
//! understanding: what allows applies to literal simple commands only, what forbids also looks into
//! compound lines, wrappers and nested shells.

use alloc::string::String;
use alloc::vec::Vec;

/// The words of a line that is exactly one literal simple command; `None` for everything else:
/// operators, newlines, substitutions, redirections, assignments, globs, braces, tildes, escapes,
/// comments, reserved words.
///
/// Quoted words are taken without their quotes, so that what comes out is the argument vector.
pub fn literal_words(line: &str) -> Option<Vec<String>> {
    if line.len() > MAX_LINE {
        return None;
    }
    let script = read(line.trim_matches([' ', '\t', '\n']));
    if !script.literal {
        return None;
    }
    let [command] = <[Vec<Word>; 1]>::try_from(script.commands).ok()?;
    let words: Vec<String> = command.into_iter().map(|word| word.text).collect();
    let first = words.first()?;
    if first.is_empty() || first.contains('=') || RESERVED.contains(&first.as_str()) {
        return None;
    }
    Some(words)
}

/// The words an "always" for this line covers: a program and the words that say what it does with
/// the project at hand. `None`: only the line itself, byte for byte. Wrappers (`env`, `sudo`,
/// `xargs`, `sh -c` …) and programs that are not in the table have none.
pub fn prefix(line: &str) -> Option<Vec<String>> {
    let words = literal_words(line)?;
    let program = words.first()?;
    let (_, verbs) = PREFIXES.iter().find(|(name, _)| name == program)?;
    let verb = words.get(1)?;
    if !verbs.contains(&verb.as_str()) {
        return None;
    }
    if verb != "run" || program == "cargo" {
        return Some(words[..2].to_vec());
    }
    // `npm run` alone names nothing: the script's name is the command.
    let script = words.get(2).filter(|word| !word.starts_with('-'))?;
    script
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_:.".contains(c))
        .then(|| words[..3].to_vec())
}

/// Whether a line runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Runs {
    /// It does not.
    No,
    /// Nobody knows.
    Unknown,
    /// It does.
    Yes,
}

/// Whether `line` runs a command that begins with `words` (or, if `exact`, is just these words), at
/// the top or inside a list, a pipe, a substitution, a wrapper or a nested shell. Words of the
/// pattern may have others between them: `git -C x push` runs `git push`.
pub(super) fn runs(line: &str, words: &[String], exact: bool) -> Runs {
    runs_within(line, words, exact, 0)
}

/// Nested shells that are looked into, one in the other.
const MAX_NESTING: u8 = 4;

/// Longest line that is looked into, bytes: what is longer is not understood.
const MAX_LINE: usize = 16 << 10;

fn runs_within(line: &str, words: &[String], exact: bool, depth: u8) -> Runs {
    let mut found = Runs::Unknown;
    if line.len() <= MAX_LINE && depth <= MAX_NESTING {
        let script = read(line);
        found = if script.clear {
            Runs::No
        } else {
            Runs::Unknown
        };
        for command in &script.commands {
            found = found.max(command_runs(command, words, exact, depth));
        }
    }
    // What cannot be read but spells the words in their order is taken at its word.
    if found == Runs::Unknown && spells(line, words) {
        found = Runs::Yes;
    }
    found
}

fn command_runs(command: &[Word], words: &[String], exact: bool, depth: u8) -> Runs {
    let mut rest = command;
    while let Some((first, tail)) = rest.split_first()
        && (is_assignment(&first.text) || RESERVED.contains(&first.text.as_str()))
    {
        rest = tail;
    }
    let Some((program, arguments)) = rest.split_first() else {
        return Runs::No;
    };
    let mut found = is_named(rest, words, exact);
    if program.dynamic || !WRAPPERS.contains(&base_name(&program.text)) {
        return found;
    }
    for (at, argument) in arguments.iter().enumerate() {
        if found == Runs::Yes {
            break;
        }
        // Each argument may be the program, and may be a whole line.
        found = found.max(is_named(&arguments[at..], words, exact));
        if argument.text.contains(is_line_char) {
            found = found.max(runs_within(&argument.text, words, exact, depth + 1));
        }
    }
    found
}

/// Whether the command, taken by itself, is the one that `words` name.
fn is_named(command: &[Word], words: &[String], exact: bool) -> Runs {
    let Some((program, arguments)) = command.split_first() else {
        return Runs::No;
    };
    if program.dynamic {
        return Runs::Unknown;
    }
    let Some((name, rest)) = words.split_first() else {
        return Runs::No;
    };
    if base_name(name) != base_name(&program.text) {
        return Runs::No;
    }
    let is_it = if exact {
        arguments.len() == rest.len() && arguments.iter().zip(rest).all(|(a, b)| a.text == *b)
    } else {
        in_order(arguments, rest)
    };
    if is_it {
        Runs::Yes
    } else if arguments.iter().any(|word| word.dynamic) {
        Runs::Unknown
    } else {
        Runs::No
    }
}

fn is_line_char(c: char) -> bool {
    c.is_whitespace() || ";&|$`(".contains(c)
}

fn in_order(arguments: &[Word], words: &[String]) -> bool {
    let mut rest = arguments.iter();
    words.iter().all(|word| rest.any(|a| a.text == *word))
}

fn spells(line: &str, words: &[String]) -> bool {
    let mut rest = line;
    words.iter().all(|word| match rest.find(word.as_str()) {
        Some(at) => {
            rest = &rest[at + word.len()..];
            true
        }
        None => false,
    })
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .trim_end_matches('+')
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[derive(Debug, Default)]
struct Word {
    text: String,
    /// Its text is not what the program gets.
    dynamic: bool,
}

#[derive(Debug)]
struct Script {
    commands: Vec<Vec<Word>>,
    /// Nothing but words and quotes.
    literal: bool,
    /// No command hides in a quoted substitution or behind a quote that does not end.
    clear: bool,
}

/// Splits a line into the commands that can be seen in it.
fn read(line: &str) -> Script {
    let mut script = Script {
        commands: Vec::new(),
        literal: true,
        clear: true,
    };
    let mut command: Vec<Word> = Vec::new();
    let mut word: Option<Word> = None;
    // The next word is where output goes or input comes from, and no argument.
    let mut target = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => end_word(&mut word, &mut command, &mut target),
            ';' | '&' | '|' | '(' | ')' | '`' | '\n' => {
                script.literal = false;
                if let Some(open) = word.as_mut()
                    && (c == '(' || c == '`')
                {
                    open.dynamic = true;
                }
                end_word(&mut word, &mut command, &mut target);
                target = false;
                if !command.is_empty() {
                    script.commands.push(core::mem::take(&mut command));
                }
            }
            '<' | '>' => {
                script.literal = false;
                // A number right before it is the descriptor that is meant.
                let number = |word: &Word| word.text.chars().all(|c| c.is_ascii_digit());
                word.take_if(|word| number(word));
                end_word(&mut word, &mut command, &mut target);
                while chars.next_if(|c| "<>&|".contains(*c)).is_some() {}
                target = true;
            }
            '#' if word.is_none() => {
                script.literal = false;
                while chars.next_if(|c| *c != '\n').is_some() {}
            }
            '\'' => {
                let open = word.get_or_insert_default();
                let mut closed = false;
                for c in chars.by_ref() {
                    if c == '\'' {
                        closed = true;
                        break;
                    }
                    script.literal &= !c.is_control();
                    open.text.push(c);
                }
                if !closed {
                    script.literal = false;
                    script.clear = false;
                }
            }
            '"' => {
                let open = word.get_or_insert_default();
                let mut closed = false;
                while let Some(c) = chars.next() {
                    match c {
                        '"' => {
                            closed = true;
                            break;
                        }
                        '\\' => {
                            script.literal = false;
                            if chars.peek().is_none_or(|c| !"\"\\$`\n".contains(*c)) {
                                open.text.push('\\');
                            }
                            match chars.next() {
                                Some('\n') | None => {}
                                Some(c) => open.text.push(c),
                            }
                        }
                        '$' | '`' => {
                            script.literal = false;
                            open.dynamic = true;
                            // `$name` cannot run anything, `$(…)` and backticks can.
                            script.clear &= c == '$' && chars.peek() != Some(&'(');
                            open.text.push(c);
                        }
                        '!' => {
                            script.literal = false;
                            open.text.push(c);
                        }
                        c => {
                            script.literal &= !c.is_control();
                            open.text.push(c);
                        }
                    }
                }
                if !closed {
                    script.literal = false;
                    script.clear = false;
                }
            }
            '\\' => {
                script.literal = false;
                match chars.next() {
                    Some('\n') | None => {}
                    Some(c) => word.get_or_insert_default().text.push(c),
                }
            }
            '{' | '}' if word.is_none() && chars.peek().is_none_or(|c| c.is_whitespace()) => {
                script.literal = false;
                if !command.is_empty() {
                    script.commands.push(core::mem::take(&mut command));
                }
            }
            '$' | '*' | '?' | '[' | '{' | '}' | '~' => {
                script.literal = false;
                let open = word.get_or_insert_default();
                open.dynamic = true;
                // `$'…'` and `$"…"` are quotes of their own.
                script.clear &= c != '$' || chars.peek().is_none_or(|c| !"'\"".contains(*c));
                open.text.push(c);
            }
            c => {
                script.literal &= !(c.is_control() || c == '!' && word.is_none());
                word.get_or_insert_default().text.push(c);
            }
        }
    }
    end_word(&mut word, &mut command, &mut target);
    if !command.is_empty() {
        script.commands.push(command);
    }
    script
}

fn end_word(word: &mut Option<Word>, command: &mut Vec<Word>, target: &mut bool) {
    if let Some(word) = word.take()
        && !core::mem::take(target)
    {
        command.push(word);
    }
}

const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while", "{", "}",
];

/// Programs that run what their arguments say.
const WRAPPERS: &[&str] = &[
    "bash", "builtin", "busybox", "chroot", "command", "dash", "doas", "env", "eval", "exec", "fd",
    "find", "fish", "flock", "ionice", "ksh", "nice", "nohup", "parallel", "script", "setsid",
    "sh", "ssh", "stdbuf", "strace", "su", "sudo", "timeout", "trap", "unshare", "watch", "xargs",
    "zsh",
];

/// Programs whose first argument says what they do, and the arguments that do no more than work on
/// the project at hand: those an "always" may be given for.
const PREFIXES: &[(&str, &[&str])] = &[
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

#[cfg(test)]
mod tests {
    use super::*;
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
}
