//! Programs that can run something else by their words, as data: which they are, and what is known
//! of their words. Knows no lines.
//!
//! **What a rule of a person, `Bash(words:*)`, and an "always" cover** is decided by what is known
//! of the words that follow, never by what is known to be bad:
//!
//! | the program | what may follow |
//! | --- | --- |
//! | is not in these tables | everything: the person named it, and what it does with its words is the person's to know; a flag that says in its name that it runs something (`--exec`, `--pager`) asks all the same |
//! | is in them | flags that are listed for it, in full; every other flag asks |
//! | has verbs (`git`, `cargo`) | a listed verb with the flags listed for that verb; every other verb asks, unless the rule names it: then it is as if it were a program that is not in the tables |
//! | runs a program among its words (`sudo`, `timeout`, `uv run`) | that program only if the rule names it, and then what may follow that one |
//! | runs a line (`eval`, `ssh host`) | as the one before, and plain words |
//! | runs a file (`bash x.sh`, `python3 x.py`) | the file, and for it everything as for the first |
//! | runs code (`-c`, `-e`) | nothing that the rule does not name |
//!
//! What stands where no flag stands is an [`Operands`], what follows `--` a [`Behind`].
//!
//! | file | what lives there |
//! | --- | --- |
//! | `wrap` | programs whose business is to run others, shells, what shells evaluate |
//! | `code` | interpreters, and languages in a word (`awk`, `sed`) |
//! | `files` | tools for files, archives and the network |
//! | `git` | git and its like |
//! | `project` | builders, package managers, testers |

mod code;
mod files;
mod git;
mod project;
mod wrap;

use super::base_name;
use super::flags::{self, Meaning};
use super::known::is_plain_sed;

/// How a program comes to run another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// By some of its flags only.
    Flags,
    /// Its first operand is the program.
    Program,
    /// Its operands are places and conditions; behind some of its flags is a program.
    Search,
    /// Its first operand is the program, and it adds arguments that are not in the line.
    Filled,
    /// Its operands together are a command line.
    Line,
    /// A shell: a line behind a flag, a file, or what comes from its standard input.
    Shell,
    /// It runs a file of commands where it stands.
    Source,
    /// An interpreter: code behind a flag, a file, or what comes from its standard input.
    Code,
    /// Behind some of its verbs.
    Verbs(&'static [&'static str]),
    /// Its operands are things to do, each of them.
    Targets,
    /// A part of the shell, which evaluates some of its words once more.
    Evaluates,
}

/// What the words are that are no flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    /// Anything.
    Any,
    /// There are none.
    No,
    /// Places beneath the working directory, and words that are no places.
    Places,
    /// The same, where each is a project that is built: an "always" names its own only.
    Projects,
    /// Names of packages in a registry: an "always" is for those the project has.
    Packages,
    /// Addresses of repositories by known protocols, and places.
    Remotes,
    /// Addresses of the web.
    Addresses,
    /// One of these words first, then anything.
    OneOf(&'static [&'static str]),
    /// Things to do: who names one has not named the others.
    Targets,
    /// So many words, then a program with its own.
    Program(usize),
    /// A file that is run, then its own words.
    Script,
    /// The same, beneath the working directory.
    OwnScript,
    /// A data base, then queries: no command of the program that reads them.
    Sql,
    /// A program for sed, then files.
    Sed,
    /// Letters without a dash, or a flag, then files.
    Tar,
}

/// What follows `--`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Behind {
    /// Operands only.
    Operands,
    /// It changes nothing.
    Same,
    /// Words for a program of the project itself.
    Own,
    /// Words of another program with flags of its own.
    Flags(&'static [&'static str], Operands),
    /// Nobody knows.
    Nothing,
}

/// What is known of the words of a program or of one of its verbs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// Its flags, as [`flags`] writes them.
    pub flags: &'static [&'static str],
    pub operands: Operands,
    pub behind: Behind,
}

/// A verb of a program.
#[derive(Debug)]
pub(super) struct Verb {
    /// Its names, with spaces between them.
    names: &'static str,
    pub form: Form,
}

const fn verb(
    names: &'static str,
    flags: &'static [&'static str],
    operands: Operands,
    behind: Behind,
) -> Verb {
    let form = Form {
        flags,
        operands,
        behind,
    };
    Verb { names, form }
}

/// A program that can run others.
#[derive(Debug)]
pub(super) struct Program {
    names: &'static [&'static str],
    pub how: How,
    /// Its own words: for a program with verbs, those before the verb.
    pub form: Form,
    /// Its verbs; none: it has no verbs.
    pub verbs: &'static [Verb],
    /// Parts of any word by which it runs something.
    signs: &'static [&'static str],
    /// Parts of any word that ask where somebody allows: for who forbids, they can be read.
    elsewhere: &'static [&'static str],
}

const fn program(names: &'static [&'static str], how: How) -> Program {
    let operands = match how {
        How::Program | How::Filled | How::Line => Operands::Program(0),
        How::Shell | How::Code => Operands::Script,
        How::Targets => Operands::Targets,
        How::Source => Operands::No,
        How::Flags | How::Search | How::Verbs(_) | How::Evaluates => Operands::Any,
    };
    Program {
        names,
        how,
        form: Form {
            flags: &[],
            operands,
            behind: Behind::Operands,
        },
        verbs: &[],
        signs: &[],
        elsewhere: match how {
            How::Evaluates => &["$", "`", "["],
            How::Flags
            | How::Program
            | How::Search
            | How::Filled
            | How::Line
            | How::Shell
            | How::Source
            | How::Code
            | How::Verbs(_)
            | How::Targets => &[],
        },
    }
}

impl Program {
    const fn flags(mut self, flags: &'static [&'static str]) -> Self {
        self.form.flags = flags;
        self
    }

    const fn operands(mut self, operands: Operands) -> Self {
        self.form.operands = operands;
        self
    }

    const fn behind(mut self, behind: Behind) -> Self {
        self.form.behind = behind;
        self
    }

    const fn verbs(mut self, verbs: &'static [Verb]) -> Self {
        self.verbs = verbs;
        self
    }

    const fn signs(mut self, signs: &'static [&'static str]) -> Self {
        self.signs = signs;
        self
    }

    const fn elsewhere(mut self, parts: &'static [&'static str]) -> Self {
        self.elsewhere = parts;
        self
    }

    /// The program of this name, if it is one of them.
    pub(super) fn of(program: &str) -> Option<&'static Self> {
        let name = base_name(program);
        // The loader of programs runs the one that it is given.
        let name = match name.starts_with("ld-") && name.contains(".so") {
            true => "ld.so",
            false => name,
        };
        let tables = [
            wrap::TABLE,
            code::TABLE,
            files::TABLE,
            git::TABLE,
            project::TABLE,
        ];
        tables
            .into_iter()
            .flatten()
            .find(|row| row.names.iter().any(|known| is_called(name, known)))
    }

    /// The verb of this name.
    pub(super) fn verb(&self, name: &str) -> Option<&'static Verb> {
        self.verbs
            .iter()
            .find(|verb| verb.names.split(' ').any(|known| known == name))
    }

    /// Whether one of its words chooses what runs, in a wide reading.
    pub(super) fn chooses(&self, words: &[&str]) -> bool {
        // Flags before a verb are the program's, those behind it the verb's.
        let verb = match self.verbs {
            [] => None,
            _ => self.operand(words),
        };
        let known = verb.and_then(|at| self.verb(words[at]));
        let sed = self.form.operands == Operands::Sed;
        words.iter().enumerate().any(|(at, word)| {
            let lists = match known {
                Some(known) if verb.is_some_and(|verb| at > verb) => known.form.flags,
                Some(_) | None => self.form.flags,
            };
            self.signs.iter().any(|sign| word.contains(sign))
                || is_flag(word) && flags::may_choose(lists, word, false)
                || sed && may_execute(word)
        })
    }

    /// Whether a word behind a verb of which nothing is known asks all the same.
    pub(super) fn strays(&self, word: &str) -> bool {
        self.is_sign(word) || is_flag(word) && flags::may_choose(self.form.flags, word, true)
    }

    /// Whether a word asks wherever it stands.
    pub(super) fn is_sign(&self, word: &str) -> bool {
        let mut parts = self.signs.iter().chain(self.elsewhere);
        parts.any(|part| word.contains(part))
    }

    /// The place of the first operand among `words`.
    pub(super) fn operand(&self, words: &[&str]) -> Option<usize> {
        let mut value = false;
        words.iter().enumerate().position(|(at, word)| {
            if core::mem::take(&mut value) {
                return false;
            }
            if word.starts_with('-') {
                let next = words.get(at + 1).copied().unwrap_or_default();
                value = match flags::meaning(self.form.flags, word) {
                    Meaning::Harmless(takes) | Meaning::Chooses(takes) => takes.consumes(next),
                    Meaning::Unknown => false,
                };
                return false;
            }
            let amount = word.starts_with(|c: char| c.is_ascii_digit());
            !amount && !word.contains('=')
        })
    }
}

/// Whether a word is read as a flag.
pub(super) fn is_flag(word: &str) -> bool {
    word.starts_with('-') && word.len() > 1
}

/// Whether a word for sed may be a program of it with the command `e`, or that flag of `s`.
fn may_execute(word: &str) -> bool {
    let word = word.strip_prefix("--expression=").unwrap_or(word);
    let word = word.strip_prefix("-e").unwrap_or(word);
    let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "_-.".contains(c));
    let places = word.char_indices().filter(|(_, c)| *c == 'e');
    let mut commands = places.map(|(at, _)| {
        let (before, behind) = (&word[..at], &word[at + 1..]);
        let before = before.chars().next_back();
        let alone = !letter(before) || before.is_some_and(|c| c.is_ascii_digit());
        let last = !letter(behind.chars().next()) && !word.contains('.');
        alone || last
    });
    !is_plain_sed(word) && commands.any(|command| command)
}

/// Whether `name` is the program `known`, with or without a version.
fn is_called(name: &str, known: &str) -> bool {
    name.strip_prefix(known).is_some_and(|rest| {
        rest.chars()
            .all(|c| c.is_ascii_digit() || c == '.' || c == '-')
    })
}
