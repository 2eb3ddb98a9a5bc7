//! What is known of a program's flags, written as text, and how one word of a command line is read
//! by it. Knows no programs.
//!
//! | in the text | is |
//! | --- | --- |
//! | `-x` | a letter, alone or among others: `-vx`, and with a number behind it: `-j4` |
//! | `-word`, `--word` | a whole word, never shortened, with or without `=value` |
//! | `-#` | a number: `-5` |
//! | `-` | letters do not stand together here: `-run` is one flag, `--run` is the same |
//! | `…=` | the next word is its value, unless that begins with `-` |
//! | `…==` | the next word is its value, whatever it is |
//! | `…=:` | its value is a plain name |
//! | `…=/` | its value is a place beneath the working directory |
//! | `…=@` | its value does not begin with `@` |
//! | `!…` | it chooses what runs, and what that is cannot be read |
//! | `~…` | it chooses another place, or something that can be read |
//!
//! What is not in the text is not known, and who allows does not allow it.

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing, or what is behind its `=`.
    Nothing,
    /// A value, unless the next word is a flag.
    Word,
    /// A value.
    Any,
    /// A plain name.
    Name,
    /// A place beneath the working directory.
    Place,
    /// A text that is not the name of a file.
    Text,
}

impl Takes {
    /// Whether the value is one that is known to do no more than the flag says.
    pub(super) fn admits(self, value: &str) -> bool {
        match self {
            Self::Nothing | Self::Word | Self::Any => true,
            Self::Name => is_name(value),
            Self::Place => is_place(value),
            Self::Text => !value.starts_with('@'),
        }
    }

    /// Whether the next word is the value.
    pub(super) fn consumes(self, next: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Any => true,
            Self::Word | Self::Name | Self::Place | Self::Text => !next.starts_with('-'),
        }
    }
}

/// What a word that begins with `-` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nobody knows.
    Unknown,
    /// It is harmless, and takes this from the next word.
    Harmless(Takes),
    /// It chooses what runs or where, and takes this from the next word.
    Chooses(Takes),
}

/// A flag as it is written in the text.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    name: &'a str,
    chooses: Option<char>,
    takes: Takes,
}

impl<'a> Token<'a> {
    fn read(text: &'a str) -> Self {
        let chooses = text.chars().next().filter(|c| "!~".contains(*c));
        let text = text.trim_start_matches(['!', '~']);
        let (name, takes) = match text.split_once('=') {
            None => (text, Takes::Nothing),
            Some((name, "")) => (name, Takes::Word),
            Some((name, ":")) => (name, Takes::Name),
            Some((name, "/")) => (name, Takes::Place),
            Some((name, "@")) => (name, Takes::Text),
            Some((name, _)) => (name, Takes::Any),
        };
        Self {
            name,
            chooses,
            takes,
        }
    }

    fn letter(self) -> Option<char> {
        let mut chars = self.name.strip_prefix('-')?.chars();
        let letter = chars.next()?;
        chars.next().is_none().then_some(letter)
    }

    fn meaning(self, takes: Takes) -> Meaning {
        match self.chooses {
            Some(_) => Meaning::Chooses(takes),
            None => Meaning::Harmless(takes),
        }
    }
}

fn tokens<'a>(lists: &'a [&'a str]) -> impl Iterator<Item = Token<'a>> {
    lists
        .iter()
        .flat_map(|list| list.split_ascii_whitespace())
        .map(Token::read)
}

fn is_whole(lists: &[&str]) -> bool {
    tokens(lists).any(|token| token.name == "-")
}

/// What `word`, which begins with `-`, is by these lists.
pub(super) fn meaning(lists: &[&str], word: &str) -> Meaning {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let whole = is_whole(lists);
    let second_dash = || name.strip_prefix('-').filter(|name| name.starts_with('-'));
    let is = |token: &Token<'_>| {
        let long = token.letter().is_none() && token.name != "-" && token.name != "-#";
        (long || whole) && (token.name == name || whole && second_dash() == Some(token.name))
    };
    // What chooses in one list chooses in all.
    let chooses = |token: &Token<'_>| token.chooses.is_some() && is(token);
    if let Some(token) = tokens(lists)
        .find(chooses)
        .or_else(|| tokens(lists).find(is))
    {
        return match value {
            Some(value) if token.takes.admits(value) => token.meaning(Takes::Nothing),
            Some(_) => Meaning::Unknown,
            None => token.meaning(token.takes),
        };
    }
    let letters = word.strip_prefix('-').unwrap_or_default();
    let number = !letters.is_empty() && letters.chars().all(|c| c.is_ascii_digit());
    if number && tokens(lists).any(|token| token.name == "-#") {
        return Meaning::Harmless(Takes::Nothing);
    }
    if whole || word.starts_with("--") {
        return Meaning::Unknown;
    }
    cluster(lists, letters)
}

/// What several letters behind one dash are.
fn cluster(lists: &[&str], letters: &str) -> Meaning {
    let mut rest = letters.chars();
    let mut meaning = Meaning::Harmless(Takes::Nothing);
    let mut first = true;
    while let Some(letter) = rest.next() {
        if !core::mem::take(&mut first) && letter.is_ascii_digit() {
            continue;
        }
        let is = |token: &Token<'_>| token.letter() == Some(letter);
        let chooses = |token: &Token<'_>| token.chooses.is_some() && is(token);
        let Some(token) = tokens(lists)
            .find(chooses)
            .or_else(|| tokens(lists).find(is))
        else {
            return Meaning::Unknown;
        };
        let chosen = token.chooses.is_some() || matches!(meaning, Meaning::Chooses(_));
        let with = |takes| match chosen {
            true => Meaning::Chooses(takes),
            false => Meaning::Harmless(takes),
        };
        meaning = with(Takes::Nothing);
        if token.takes != Takes::Nothing {
            let value = rest.as_str();
            return match value.strip_prefix('=').unwrap_or(value) {
                "" if value.is_empty() => with(token.takes),
                value if token.takes.admits(value) => meaning,
                _ => Meaning::Unknown,
            };
        }
    }
    meaning
}

/// Whether `word` may be a flag that chooses what runs, in a wide reading: a letter anywhere among
/// letters, a long flag also in short. `all`: also one that chooses what can be read.
pub(super) fn may_choose(lists: &[&str], word: &str, all: bool) -> bool {
    if matches!(meaning(lists, word), Meaning::Harmless(_)) {
        return false;
    }
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let whole = is_whole(lists);
    tokens(lists).any(|token| {
        let asked = token.chooses == Some('!') || all && token.chooses.is_some();
        asked
            && match token.name.strip_prefix("--") {
                Some(long) => {
                    let short = name.strip_prefix("--").unwrap_or_default();
                    short == long || (short.len() > 1 && long.starts_with(short))
                }
                None => match token.letter() {
                    Some(letter) if !whole => !word.starts_with("--") && word.contains(letter),
                    // `-Dname=value`.
                    Some('A'..='Z') => name.starts_with(token.name),
                    Some(_) | None => {
                        name == token.name || name.strip_prefix('-') == Some(token.name)
                    }
                },
            }
    })
}

/// A word of letters, digits, `_` and `-`: no path, no address, nothing with an ending.
pub(super) fn is_name(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with('-')
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// A place beneath the working directory, or no place at all: no absolute path, none that climbs,
/// no address, no version of something elsewhere, no file of arguments.
pub(super) fn is_place(word: &str) -> bool {
    !word.starts_with(['/', '~', '+', '\\'])
        && !word.contains(['@', '\0'])
        && !word.contains("://")
        && !word.split(['/', '\\']).any(|part| part == "..")
}
