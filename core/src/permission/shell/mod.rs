//! How far a command line can be understood without running it. Errs on the side of not
//! understanding: what allows applies to literal simple commands only whose every word is known to
//! do no more than was named; what forbids also looks into compound lines, wrappers and nested
//! shells.
//!
//! | file | what lives there |
//! | --- | --- |
//! | `read` | a line as the commands that can be seen in it |
//! | `programs` | what is known of programs and their words, as data, and the rule for what is not |
//! | `flags` | how that data is written, and what a word is by it |
//! | `known` | for who allows: whether all words of a command are known |
//! | `look` | for who forbids: whether a command runs somewhere in a line |
//! | `prefixes` | what an "always" may be given for, as data |

mod flags;
mod known;
mod look;
mod prefixes;
mod programs;
mod read;

use alloc::string::String;
use alloc::vec::Vec;

use known::is_known;
pub(super) use look::{Runs, runs};
use prefixes::PREFIXES;
use read::{Word, read};

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
    let all: Vec<&str> = words.iter().map(String::as_str).collect();
    is_known(&all, named, By::Grant).then(|| words[..named].to_vec())
}

/// Who named the words of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// A person in a rule: what the words do by themselves, with whatever they are told to do it.
    Rule,
    /// The button of a card: what the words do with the project at hand.
    Grant,
}

/// Whether a rule or a grant that names `words` allows `line`: one literal simple command that is
/// these words (`exact`), or begins with them, and every word behind them is known to choose nothing
/// else to run and no other place to work in. `sudo x` is not named by `x`, nor `find -exec x` by
/// `find`.
pub(super) fn covers(line: &str, words: &[String], exact: bool, by: By) -> bool {
    literal_words(line).is_some_and(|argv| {
        if exact {
            return argv == words;
        }
        let all: Vec<&str> = argv.iter().map(String::as_str).collect();
        argv.starts_with(words) && is_known(&all, words.len(), by)
    })
}

/// Longest line that is looked into, bytes: what is longer is not understood.
const MAX_LINE: usize = 16 << 10;

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while", "{", "}",
];

#[cfg(test)]
mod tests;
