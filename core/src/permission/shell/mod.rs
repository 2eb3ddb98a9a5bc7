//! How far a command line can be understood without running it. Errs on the side of not
//! understanding: what allows applies to literal simple commands only, and not to what they hand on
//! to others; what forbids also looks into compound lines, wrappers and nested shells.
//!
//! | file | what lives there |
//! | --- | --- |
//! | `read` | a line as the commands that can be seen in it |
//! | `runners` | programs that run what their arguments say, as data |
//! | `prefixes` | what an "always" may be given for, as data |

mod prefixes;
mod read;
mod runners;

use alloc::string::String;
use alloc::vec::Vec;

use prefixes::PREFIXES;
use read::{Word, read};
use runners::{How, Runner};

/// The words of a line that is exactly one literal simple command; `None` for everything else:
/// operators, newlines, substitutions, redirections, assignments, globs, braces, tildes, escapes,
/// comments, reserved words, characters that do not look like what they are.
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
    let mut named = 2;
    if verb == "run" && program != "cargo" {
        // `npm run` alone names nothing: the script's name is the command.
        let script = words.get(2).filter(|word| !word.starts_with('-'))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
        if !script.chars().all(plain) {
            return None;
        }
        named = 3;
    }
    (!reaches(&words, named)).then(|| words[..named].to_vec())
}

/// Whether a rule or a grant that names `words` allows `line`: one literal simple command that is
/// these words (`exact`), or begins with them and chooses nothing else to run behind them and no
/// other place to work in. `sudo x` is not named by `x`, nor `find -exec x` by `find`.
pub(super) fn covers(line: &str, words: &[String], exact: bool) -> bool {
    literal_words(line).is_some_and(|argv| match exact {
        true => argv == words,
        false => argv.starts_with(words) && !reaches(&argv, words.len()),
    })
}

/// Whether a command, beyond the first `named` of its words, chooses what runs or where.
fn reaches(argv: &[String], named: usize) -> bool {
    let mut words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let mut named = named;
    loop {
        let Some((program, arguments)) = words.split_first() else {
            return false;
        };
        let Some(runner) = Runner::of(program) else {
            return false;
        };
        let beyond = named.saturating_sub(1);
        if runner.strays_at(arguments.iter().copied(), beyond) {
            return true;
        }
        let operand = runner.operand(arguments);
        match runner.how {
            How::Flags | How::Search | How::Shell | How::Code => return false,
            How::Source => return operand.is_some_and(|at| at >= beyond),
            How::Verbs(verbs) => return arguments.iter().skip(beyond).any(|a| verbs.contains(a)),
            // Who names something to do has not named the others.
            How::Targets => {
                return named > 1
                    && runner
                        .operand(arguments.get(beyond..).unwrap_or_default())
                        .is_some();
            }
            How::Program | How::Filled | How::Line => {
                let Some(at) = operand else {
                    return false;
                };
                if at >= beyond {
                    return true;
                }
                named -= at + 1;
                words.drain(..=at);
            }
        }
    }
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
/// pattern may have others between them: `git -C x push` runs `git push`; letters of one flag may
/// come as several: `rm -r -f` runs `rm -rf`.
pub(super) fn runs(line: &str, words: &[String], exact: bool) -> Runs {
    let mut look = Look {
        words,
        exact,
        left: MAX_READ,
    };
    look.line(line, 0)
}

/// Nested shells that are looked into, one in the other.
const MAX_NESTING: u8 = 4;

/// Longest line that is looked into, bytes: what is longer is not understood.
const MAX_LINE: usize = 16 << 10;

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
        let mut rest = command;
        let mut timed = false;
        while let Some((first, tail)) = rest.split_first()
            && (is_assignment(&first.text)
                || RESERVED.contains(&first.text.as_str())
                || (timed && first.text.starts_with('-')))
        {
            timed |= first.text == "time";
            rest = tail;
        }
        let Some((program, arguments)) = rest.split_first() else {
            return Runs::No;
        };
        let found = is_named(rest, self.words, self.exact, false);
        if program.dynamic || found == Runs::Yes {
            return found;
        }
        found.max(self.handed_on(program, arguments, depth))
    }

    /// Whether a program that runs what its arguments say runs the command.
    fn handed_on(&mut self, program: &Word, arguments: &[Word], depth: u8) -> Runs {
        let Some(first) = Runner::of(&program.text) else {
            return Runs::No;
        };
        let texts = || arguments.iter().map(|word| word.text.as_str());
        // Behind one such program there may be others.
        let mut runners = Vec::from([(first, 0)]);
        let inner = match first.how {
            How::Program | How::Search | How::Filled | How::Line | How::Shell => true,
            How::Verbs(verbs) => texts().any(|text| verbs.contains(&text)),
            How::Flags | How::Source | How::Code | How::Targets => false,
        };
        if inner {
            for (at, text) in texts().enumerate() {
                if let Some(runner) = Runner::of(text)
                    && !runners
                        .iter()
                        .any(|(known, _)| core::ptr::eq(*known, runner))
                {
                    runners.push((runner, at + 1));
                }
            }
        }
        let mut found = Runs::No;
        let mut filled = false;
        for (runner, from) in &runners {
            let behind: Vec<&str> = texts().skip(*from).collect();
            let unseen = match runner.how {
                // It reads commands that are not in the line.
                How::Shell => {
                    let asked = |letter| behind.iter().any(|a| is_letter(a, letter));
                    filled || asked('s') || (runner.operand(&behind).is_none() && !asked('c'))
                }
                How::Code => runner.operand(&behind).is_none(),
                How::Source => true,
                How::Filled => {
                    filled = true;
                    runner.operand(&behind).is_none()
                }
                How::Flags
                | How::Program
                | How::Search
                | How::Line
                | How::Verbs(_)
                | How::Targets => false,
            };
            if unseen || runner.chooses(behind, 0) {
                found = Runs::Unknown;
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
        if runners.iter().any(|(runner, _)| runner.how == How::Line) {
            let joined = texts().collect::<Vec<_>>().join(" ");
            found = found.max(self.line(&joined, depth + 1));
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
    } else if open || arguments.iter().any(|word| word.dynamic) {
        Runs::Unknown
    } else {
        Runs::No
    }
}

fn is_line_char(c: char) -> bool {
    c.is_whitespace() || ";&|$`(){}<>\"'\\".contains(c)
}

fn in_order(arguments: &[Word], words: &[String]) -> bool {
    let mut rest = arguments.iter();
    words.iter().all(|word| {
        let letters = word.strip_prefix('-').filter(|letters| {
            !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphabetic())
        });
        match letters {
            Some(letters) => letters.chars().all(|c| has_letter(arguments, c)),
            None => rest.any(|a| a.text == *word),
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
    let letters = argument.strip_prefix('-');
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

const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while", "{", "}",
];

#[cfg(test)]
mod tests;
