//! For who forbids: whether a command runs somewhere in a line. Looks into lists, pipes,
//! substitutions, wrappers, nested shells, values of variables and what the shell evaluates. Where a
//! line may hide something, nobody knows: then it is asked.

use alloc::string::String;
use alloc::vec::Vec;

use super::known::speaks;
use super::programs::{How, Program};
use super::read::{Word, read};
use super::{MAX_LINE, RESERVED, base_name};

/// Whether a line runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::permission) enum Runs {
    /// It does not.
    No,
    /// Nobody knows.
    Unknown,
    /// It does.
    Yes,
}

/// Whether `line` runs a command that begins with `words` (or, if `exact`, is just these words), at
/// the top or inside a list, a pipe, a substitution, a wrapper or a nested shell. Words of the
/// pattern may have others between them: `git -C x push` runs `git push`; letters of one flag may
/// come as several: `rm -r -f` runs `rm -rf`.
pub(in crate::permission) fn runs(line: &str, words: &[String], exact: bool) -> Runs {
    let mut look = Look {
        words,
        exact,
        left: MAX_READ,
    };
    look.line(line, 0)
}

/// Nested shells that are looked into, one in the other.
const MAX_NESTING: u8 = 4;

/// Bytes that are looked into in all, since what stands in a line may be read in several ways.
const MAX_READ: usize = 8 * MAX_LINE;

/// A search for one command.
struct Look<'a> {
    words: &'a [String],
    exact: bool,
    left: usize,
}

impl Look<'_> {
    fn line(&mut self, line: &str, depth: u8) -> Runs {
        let mut found = Runs::Unknown;
        if line.len() <= MAX_LINE.min(self.left) && depth <= MAX_NESTING {
            self.left -= line.len();
            let script = read(line);
            found = if script.clear {
                Runs::No
            } else {
                Runs::Unknown
            };
            for command in &script.commands {
                found = found.max(self.command(command, depth));
            }
        }
        // What cannot be read but spells the words in their order is taken at its word.
        if found == Runs::Unknown && spells(line, self.words) {
            found = Runs::Yes;
        }
        found
    }

    fn command(&mut self, command: &[Word], depth: u8) -> Runs {
        let mut found = Runs::No;
        let mut rest = command;
        let mut timed = false;
        while let Some((first, tail)) = rest.split_first()
            && (is_assignment(&first.text)
                || RESERVED.contains(&first.text.as_str())
                || (timed && first.text.starts_with('-')))
        {
            timed |= first.text == "time";
            found = found.max(self.assigned(first, depth));
            if first.text == "[[" {
                found = found.max(self.evaluated(tail, depth));
            }
            rest = tail;
        }
        let Some((program, arguments)) = rest.split_first() else {
            return found;
        };
        found = found.max(self.evaluated(core::slice::from_ref(program), depth));
        found = found.max(is_named(rest, self.words, self.exact, false));
        if program.dynamic || found == Runs::Yes {
            return found;
        }
        found.max(self.handed_on(program, arguments, depth))
    }

    /// What a variable is set to may be run as a line, by the shell or by a program.
    fn assigned(&mut self, word: &Word, depth: u8) -> Runs {
        let Some((_, value)) = word.text.split_once('=') else {
            return Runs::No;
        };
        if !is_assignment(&word.text) || !value.contains(is_line_char) {
            return Runs::No;
        }
        match self.line(value, depth + 1) {
            // The shell sees to what is in it now; what it becomes is no line of its own.
            Runs::Unknown if !is_evaluated(value) => Runs::No,
            found @ (Runs::No | Runs::Unknown | Runs::Yes) => found,
        }
    }

    /// Words that the shell looks at once more.
    fn evaluated(&mut self, words: &[Word], depth: u8) -> Runs {
        let mut found = Runs::No;
        for word in words {
            if is_evaluated(&word.text) {
                found = found
                    .max(Runs::Unknown)
                    .max(self.line(&word.text, depth + 1));
            }
        }
        found
    }

    /// Whether a program that runs what its arguments say runs the command.
    fn handed_on(&mut self, program: &Word, arguments: &[Word], depth: u8) -> Runs {
        let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
        let Some(first) = Program::of(&program.text) else {
            // Of others it is known only if they say so.
            return match texts.iter().any(|text| speaks(text)) {
                true => Runs::Unknown,
                false => Runs::No,
            };
        };
        // Behind one such program there may be others.
        let mut programs = Vec::from([(first, 0)]);
        let inner = match first.how {
            How::Program | How::Search | How::Filled | How::Line | How::Shell => true,
            How::Verbs(verbs) => texts.iter().any(|text| verbs.contains(text)),
            How::Flags | How::Source | How::Code | How::Targets | How::Evaluates => false,
        };
        if inner {
            for (at, text) in texts.iter().enumerate() {
                // A place to search in, not the shell's word for reading a file.
                let here = *text == "." && first.how == How::Search;
                if let Some(program) = Program::of(text)
                    && !here
                    && !programs
                        .iter()
                        .any(|(known, _)| core::ptr::eq(*known, program))
                {
                    programs.push((program, at + 1));
                }
            }
        }
        let mut found = Runs::No;
        let mut filled = false;
        for (program, from) in &programs {
            let behind = texts.get(*from..).unwrap_or_default();
            let unseen = match program.how {
                // It reads commands that are not in the line.
                How::Shell => {
                    let asked = |letter| behind.iter().any(|a| is_letter(a, letter));
                    filled || asked('s') || (program.operand(behind).is_none() && !asked('c'))
                }
                How::Code => program.operand(behind).is_none(),
                How::Source => true,
                How::Filled => {
                    filled = true;
                    program.operand(behind).is_none()
                }
                How::Flags
                | How::Program
                | How::Search
                | How::Line
                | How::Verbs(_)
                | How::Targets
                | How::Evaluates => false,
            };
            if unseen || program.chooses(behind) {
                found = Runs::Unknown;
            }
        }
        let evaluates = first.how == How::Evaluates;
        if evaluates {
            found = found.max(self.evaluated(arguments, depth));
        }
        if inner || evaluates {
            for argument in arguments {
                found = found.max(self.assigned(argument, depth));
            }
        }
        if inner {
            for (at, argument) in arguments.iter().enumerate() {
                if found == Runs::Yes {
                    break;
                }
                // Each argument may be the program, and may be a whole line.
                found = found.max(is_named(&arguments[at..], self.words, self.exact, filled));
                if argument.text.contains(is_line_char) {
                    found = found.max(self.line(&argument.text, depth + 1));
                    // A flag with its value: what of it is the line is not known.
                    if argument.text.starts_with('-') {
                        found = found.max(Runs::Unknown);
                    }
                }
            }
        }
        if programs.iter().any(|(program, _)| program.how == How::Line) {
            found = found.max(self.line(&texts.join(" "), depth + 1));
        }
        found
    }
}

/// Whether the command, taken by itself, is the one that `words` name. `open`: it gets more
/// arguments than are seen.
fn is_named(command: &[Word], words: &[String], exact: bool, open: bool) -> Runs {
    let Some((program, arguments)) = command.split_first() else {
        return Runs::No;
    };
    if program.dynamic {
        return Runs::Unknown;
    }
    let Some((name, rest)) = words.split_first() else {
        return Runs::No;
    };
    let (name, called) = (base_name(name), base_name(&program.text));
    let rest = if name == called {
        rest
    } else if let Some((verb, rest)) = rest.split_first()
        && called
            .strip_prefix(name)
            .is_some_and(|it| it.strip_prefix('-') == Some(verb))
    {
        // `git-push` is `git push` by its other name.
        rest
    } else {
        return Runs::No;
    };
    let is_it = if exact {
        let same = |(a, b): (&Word, &String)| is_word(name, &a.text, b);
        arguments.len() == rest.len() && arguments.iter().zip(rest).all(same)
    } else {
        in_order(name, arguments, rest)
    };
    if is_it {
        Runs::Yes
    } else if open || arguments.iter().any(|word| word.dynamic) {
        Runs::Unknown
    } else {
        Runs::No
    }
}

/// Whether an argument of `program` is what a rule calls `word`: some programs have short names for
/// their verbs.
fn is_word(program: &str, argument: &str, word: &str) -> bool {
    let alias = |(known, short, long): &(&str, &str, &str)| {
        *known == program && *short == argument && *long == word
    };
    // npm takes every beginning that names one verb.
    let short = || program == "npm" && !argument.is_empty() && word.starts_with(argument);
    argument == word || ALIASES.iter().any(alias) || short()
}

/// Other names of verbs: program, name, what a rule calls it.
const ALIASES: &[(&str, &str, &str)] = &[
    ("cargo", "b", "build"),
    ("cargo", "c", "check"),
    ("cargo", "d", "doc"),
    ("cargo", "r", "run"),
    ("cargo", "rm", "remove"),
    ("cargo", "t", "test"),
    ("npm", "add", "install"),
    ("npm", "innit", "init"),
    ("npm", "r", "uninstall"),
    ("npm", "remove", "uninstall"),
    ("npm", "rm", "uninstall"),
    ("npm", "rum", "run"),
    ("npm", "run-script", "run"),
    ("npm", "tst", "test"),
    ("npm", "unlink", "uninstall"),
    ("npm", "upgrade", "update"),
    ("npm", "urn", "run"),
    ("npm", "x", "exec"),
    ("pnpm", "i", "install"),
    ("pnpm", "rm", "remove"),
    ("svn", "ci", "commit"),
    ("svn", "up", "update"),
    ("hg", "ci", "commit"),
];

/// Whether a shell that evaluates a text finds a command in it.
fn is_evaluated(text: &str) -> bool {
    text.contains("$(") || text.contains("${") || text.contains('`')
}

fn is_line_char(c: char) -> bool {
    c.is_whitespace() || ";&|$`(){}<>\"'\\".contains(c)
}

fn in_order(program: &str, arguments: &[Word], words: &[String]) -> bool {
    let mut rest = arguments.iter();
    words.iter().all(|word| {
        let letters = word.strip_prefix('-').filter(|letters| {
            !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphabetic())
        });
        match letters {
            Some(letters) => letters.chars().all(|c| has_letter(arguments, c)),
            None => rest.any(|a| is_word(program, &a.text, word)),
        }
    })
}

/// Whether one of the flags is this letter, alone or among others.
fn has_letter(arguments: &[Word], letter: char) -> bool {
    arguments
        .iter()
        .any(|argument| is_letter(&argument.text, letter))
}

fn is_letter(argument: &str, letter: char) -> bool {
    let letters = argument.strip_prefix(['-', '+']);
    letters.is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
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

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .trim_end_matches('+')
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
