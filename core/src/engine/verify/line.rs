//! How a command line is put together, as far as its exit code tells which of its commands
//! succeeded. Knows no command by name. What is not understood makes the whole line not understood:
//! substitutions, here-documents, compound commands, functions.

use alloc::string::String;
use alloc::vec::Vec;
use core::iter::Peekable;
use core::str::Chars;

/// Longest line that is looked into, bytes.
const MAX_LINE: usize = 16 << 10;
/// Groups in groups that are looked into.
const MAX_DEPTH: u8 = 8;

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// Without its quotes.
    pub(super) text: String,
    /// The program may get something else: a variable, a glob, a brace, a tilde.
    pub(super) dynamic: bool,
}

/// Chains, one after the other: `a; b`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct List(pub(super) Vec<Chain>);

/// Pipelines that depend on each other: `a && b || c`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) pipelines: Vec<Pipeline>,
    /// There is a `||` in it, or a `&` after it: its exit code does not speak for all of it.
    pub(super) lenient: bool,
}

/// Commands side by side: `a | b`.
pub(super) type Pipeline = Vec<Item>;

/// One command of a pipeline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Words, never none of them. Redirections are left out.
    Simple(Vec<Word>),
    /// `( … )`
    Group(List),
}

/// Reads a line; `None` if it is not understood.
pub(super) fn parse(line: &str) -> Option<List> {
    if line.len() > MAX_LINE {
        return None;
    }
    let mut tokens = Tokens {
        chars: line.chars().peekable(),
    }
    .all()?
    .into_iter()
    .peekable();
    let list = list(&mut tokens, 0)?;
    tokens.next().is_none().then_some(list)
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(Word),
    And,
    Or,
    Pipe,
    /// `;` or a line end.
    Next {
        line: bool,
    },
    Background,
    Open,
    Close,
}

type Rest = Peekable<alloc::vec::IntoIter<Token>>;

fn list(rest: &mut Rest, depth: u8) -> Option<List> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut chains = Vec::new();
    loop {
        skip_line_ends(rest);
        if matches!(rest.peek(), None | Some(Token::Close)) {
            return Some(List(chains));
        }
        let mut chain = chain(rest, depth)?;
        match rest.peek() {
            Some(Token::Background) => {
                chain.lenient = true;
                rest.next();
            }
            Some(Token::Next { .. }) => {
                rest.next();
            }
            None | Some(Token::Close) => {}
            Some(Token::Word(_) | Token::And | Token::Or | Token::Pipe | Token::Open) => {
                return None;
            }
        }
        chains.push(chain);
    }
}

fn chain(rest: &mut Rest, depth: u8) -> Option<Chain> {
    let mut chain = Chain::default();
    loop {
        chain.pipelines.push(pipeline(rest, depth)?);
        match rest.next_if(|token| matches!(token, Token::And | Token::Or)) {
            Some(token) => chain.lenient |= token == Token::Or,
            None => return Some(chain),
        }
        skip_line_ends(rest);
    }
}

fn pipeline(rest: &mut Rest, depth: u8) -> Option<Pipeline> {
    let mut items = Vec::from([item(rest, depth)?]);
    while rest.next_if_eq(&Token::Pipe).is_some() {
        skip_line_ends(rest);
        items.push(item(rest, depth)?);
    }
    Some(items)
}

fn item(rest: &mut Rest, depth: u8) -> Option<Item> {
    if rest.next_if_eq(&Token::Open).is_some() {
        let list = list(rest, depth + 1)?;
        rest.next_if_eq(&Token::Close)?;
        return Some(Item::Group(list));
    }
    let mut words = Vec::new();
    while let Some(Token::Word(word)) = rest.next_if(|token| matches!(token, Token::Word(_))) {
        words.push(word);
    }
    let first = words.first()?;
    (!RESERVED.contains(&first.text.as_str())).then_some(Item::Simple(words))
}

fn skip_line_ends(rest: &mut Rest) {
    while rest.next_if_eq(&Token::Next { line: true }).is_some() {}
}

/// First words of what is no simple command.
const RESERVED: &[&str] = &[
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "in", "select", "then", "until", "while", "{", "}",
];

struct Tokens<'a> {
    chars: Peekable<Chars<'a>>,
}

impl Tokens<'_> {
    fn all(mut self) -> Option<Vec<Token>> {
        let mut out = Vec::new();
        // A word after a redirection is its target.
        let mut target = false;
        while let Some(c) = self.chars.next() {
            let token = match c {
                ' ' | '\t' => continue,
                '\\' if self.chars.next_if_eq(&'\n').is_some() => continue,
                '#' => {
                    while self.chars.next_if(|c| *c != '\n').is_some() {}
                    continue;
                }
                '\n' => Token::Next { line: true },
                ';' if self.chars.peek() == Some(&';') => return None,
                ';' => Token::Next { line: false },
                '&' if self.chars.next_if_eq(&'&').is_some() => Token::And,
                '&' if self.chars.next_if_eq(&'>').is_some() => {
                    self.chars.next_if_eq(&'>');
                    target = true;
                    continue;
                }
                '&' => Token::Background,
                '|' if self.chars.next_if_eq(&'|').is_some() => Token::Or,
                '|' => {
                    self.chars.next_if_eq(&'&');
                    Token::Pipe
                }
                '(' => Token::Open,
                ')' => Token::Close,
                '<' | '>' => {
                    self.redirection(c)?;
                    target = true;
                    continue;
                }
                c => {
                    let word = self.word(c)?;
                    let number = !word.text.is_empty() && word.text.bytes().all(is_digit);
                    if number && !target && matches!(self.chars.peek(), Some('<' | '>')) {
                        // The number of what is redirected.
                        continue;
                    }
                    if core::mem::take(&mut target) {
                        continue;
                    }
                    Token::Word(word)
                }
            };
            // `f()` defines a function.
            let call = token == Token::Open && matches!(out.last(), Some(Token::Word(_)));
            if target || call {
                return None;
            }
            out.push(token);
        }
        (!target).then_some(out)
    }

    /// What follows the first sign of a redirection, up to its target.
    fn redirection(&mut self, first: char) -> Option<()> {
        let here = first == '<' && self.chars.peek() == Some(&'<');
        if here || self.chars.peek() == Some(&'(') {
            return None;
        }
        self.chars.next_if(|c| ">|&".contains(*c));
        (self.chars.peek() != Some(&'(')).then_some(())
    }

    fn word(&mut self, first: char) -> Option<Word> {
        let mut word = Word::default();
        let mut next = Some(first);
        while let Some(c) = next {
            match c {
                '\'' => loop {
                    match self.chars.next()? {
                        '\'' => break,
                        c => word.text.push(c),
                    }
                },
                '"' => self.quoted(&mut word)?,
                '\\' => match self.chars.next() {
                    Some('\n') => {}
                    Some(c) => word.text.push(c),
                    None => return None,
                },
                '`' => return None,
                '$' => self.variable(&mut word)?,
                '*' | '?' | '[' | '~' => {
                    word.dynamic = true;
                    word.text.push(c);
                }
                '{' | '}' => {
                    // Alone it begins or ends a compound command.
                    let alone = word.text.is_empty() && self.chars.peek().is_none_or(ends);
                    word.dynamic = !alone;
                    word.text.push(c);
                }
                c if c.is_control() => return None,
                c => word.text.push(c),
            }
            next = self.chars.next_if(|c| !ends(c));
        }
        Some(word)
    }

    fn quoted(&mut self, word: &mut Word) -> Option<()> {
        loop {
            match self.chars.next()? {
                '"' => return Some(()),
                '`' => return None,
                '$' => self.variable(word)?,
                '\\' => match self.chars.next()? {
                    '\n' => {}
                    c if "\"\\$`".contains(c) => word.text.push(c),
                    c => word.text.extend(['\\', c]),
                },
                c => word.text.push(c),
            }
        }
    }

    /// A variable can stand in a word; a substitution runs who knows what.
    fn variable(&mut self, word: &mut Word) -> Option<()> {
        word.dynamic = true;
        word.text.push('$');
        match self.chars.peek() {
            Some('(' | '\'' | '"') => None,
            Some('{') => loop {
                match self.chars.next()? {
                    '}' => return Some(()),
                    '(' | '`' | '\'' | '"' | '\\' | '\n' => return None,
                    _ => {}
                }
            },
            _ => Some(()),
        }
    }
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// Whether a word ends before this.
fn ends(c: &char) -> bool {
    " \t\n;&|()<>".contains(*c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn show_list(List(chains): &List) -> String {
        let show = |chain: &Chain| {
            let show = |items: &Pipeline| {
                let show = |item: &Item| match item {
                    Item::Group(list) => format!("({})", show_list(list)),
                    Item::Simple(words) => words
                        .iter()
                        .map(|word| {
                            let sign = if word.dynamic { "~" } else { "" };
                            format!("{sign}{}", word.text)
                        })
                        .collect::<Vec<_>>()
                        .join("_"),
                };
                items.iter().map(show).collect::<Vec<_>>().join("|")
            };
            let all = chain.pipelines.iter().map(show).collect::<Vec<_>>();
            format!("{}{}", all.join("&"), if chain.lenient { "?" } else { "" })
        };
        chains.iter().map(show).collect::<Vec<_>>().join(";")
    }

    #[test]
    fn what_a_line_is_made_of() {
        #[track_caller]
        fn check(line: &str, shape: Option<&str>) {
            let got = parse(line);
            assert_eq!(got.as_ref().map(show_list).as_deref(), shape, "{line:?}");
        }
        check("a b", Some("a_b"));
        check(" a\t'b c' \"d\" e\\ f\n", Some("a_b c_d_e f"));
        check("a && b;c|d &\n e || f", Some("a&b;c|d?;e&f?"));
        check("a &&\n\n b |\n c", Some("a&b|c"));
        check("(a; b) && c", Some("(a;b)&c"));
        check("a 2>&1 >x 2>/dev/null <y &>z >>w >|v b", Some("a_b"));
        check("a 2 b3>c", Some("a_2_b3"));
        check(
            "A=1 b $C ${D} *.e {f,g} ~h \"$i\"",
            Some("A=1_b_~$C_~$_~*.e_~{f,g}_~~h_~$i"),
        );
        check("a # b && c\nd", Some("a;d"));
        check("a x#y", Some("a_x#y"));
        check("a \\\n b", Some("a_b"));
        check("a |& b", Some("a|b"));
        check("", Some(""));
        check("a '$(b)'", Some("a_$(b)"));
        for line in [
            "a $(b)",
            "a `b`",
            "a \"$(b)\"",
            "a \"`b`\"",
            "a <<E",
            "a <(b)",
            "a > >(b)",
            "a $'b'",
            "a 'b",
            "a \"b",
            "a \\",
            "(a",
            "a)",
            "a |",
            "| a",
            "a && ; b",
            "a;; b",
            "; a",
            "if a",
            "{ a; }",
            "f() { a; }",
            "f () a",
            "! a",
            "[[ a ]]",
            "a >",
            "a > ; b",
            "a ${b$(c)}",
            "a ${b",
            "() a",
            "a\u{7}b",
            "a ( b )",
            "a & && b",
        ] {
            check(line, None);
        }
        check(&"(".repeat(100), None);
        check(&"a".repeat(MAX_LINE + 1), None);
    }

    proptest! {
        #[test]
        fn quoting_a_word_gives_it_back(word in "[ -~\u{e9}\n]{1,20}", first in "[a-z]{1,5}") {
            let quoted = format!("{first}x '{}'", word.replace('\'', "'\\''"));
            let List(chains) = parse(&quoted).expect("it is quoted");
            let expected = Item::Simple(Vec::from([
                Word { text: format!("{first}x"), dynamic: false },
                Word { text: word.to_string(), dynamic: false },
            ]));
            prop_assert_eq!(&chains[0].pipelines[0][0], &expected);
        }

        #[test]
        fn any_line_is_read_or_refused(line in "[a ;&|()<>$`'\"\\\\{}#!\n*1]{0,40}") {
            let _ = parse(&line);
        }
    }
}
