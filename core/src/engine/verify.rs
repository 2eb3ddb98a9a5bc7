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
mod unverified;

pub use unverified::{Unverified, pauses};

use alloc::string::String;
use alloc::vec::Vec;

use crate::permission::shell;
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
mod tests;
