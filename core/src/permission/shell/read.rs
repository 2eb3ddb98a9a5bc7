//! Splits a command line into the commands that can be seen in it. Runs nothing, expands nothing,
//! and says where its sight ends. Where shells read a line in different ways, all ways are given.

use alloc::string::String;
use alloc::vec::Vec;
use core::iter::Peekable;
use core::str::Chars;

/// A word of a command.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    /// Without its quotes.
    pub text: String,
    /// Its text is not what the program gets.
    pub dynamic: bool,
    /// Some of it stood in quotes.
    quoted: bool,
}

/// What a line consists of.
#[derive(Debug)]
pub(super) struct Script {
    /// Every command that can be seen, in any reading of the line.
    pub commands: Vec<Vec<Word>>,
    /// Nothing but words and quotes.
    pub literal: bool,
    /// No command hides in a quoted substitution, behind a quote that does not end, or in a text
    /// that was handed over.
    pub clear: bool,
}

/// Readings of one command that are kept: more make the line unclear.
const MAX_FORKS: usize = 16;

/// A command that is being read.
#[derive(Debug, Default)]
struct Open {
    words: Vec<Word>,
    /// Where another shell, or another reading, begins a command of its own.
    forks: Vec<usize>,
}

/// What the next word is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// A part of the command.
    #[default]
    Argument,
    /// Where output goes or input comes from.
    Target,
    /// The line that ends a text which begins on the next line.
    Delimiter {
        /// Tabs before it do not count.
        tabs: bool,
    },
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    script: Script,
    open: Open,
    /// Commands around the one that is being read: it stands in parentheses.
    outer: Vec<Open>,
    word: Option<Word>,
    place: Place,
    /// Ends of the texts that begin on the next line.
    texts: Vec<(String, bool, bool)>,
    /// There was a parenthesis: where such a text begins is not sure any more.
    nested: bool,
}

/// Reads a line.
pub(super) fn read(line: &str) -> Script {
    let mut reader = Reader {
        chars: line.chars().peekable(),
        script: Script {
            commands: Vec::new(),
            literal: true,
            clear: true,
        },
        open: Open::default(),
        outer: Vec::new(),
        word: None,
        place: Place::Argument,
        texts: Vec::new(),
        nested: false,
    };
    while let Some(c) = reader.chars.next() {
        reader.take(c);
    }
    reader.end_command();
    while let Some(open) = reader.outer.pop() {
        reader.open = open;
        reader.end_command();
    }
    // A text that was announced and never came.
    reader.script.clear &= reader.texts.is_empty();
    reader.script
}

impl Reader<'_> {
    fn take(&mut self, c: char) {
        match c {
            ' ' | '\t' => self.end_word(),
            '&' if self.chars.peek() == Some(&'>') => {
                // One shell sends both outputs somewhere, another begins a new command here.
                self.script.literal = false;
                self.end_word();
                self.fork();
                self.redirect('&');
            }
            ';' | '&' | '|' => {
                self.script.literal = false;
                self.end_command();
            }
            '\n' => {
                self.script.literal = false;
                self.end_command();
                self.skip_texts();
            }
            '`' => {
                // What stands between two of these may hold quotes of its own.
                self.script.literal = false;
                self.script.clear = false;
                self.end_command();
            }
            '(' => self.enter(),
            ')' => self.leave(),
            '<' | '>' => {
                self.script.literal = false;
                // A number right before it is the descriptor that is meant.
                let number = |word: &Word| word.text.chars().all(|c| c.is_ascii_digit());
                self.word.take_if(|word| number(word));
                self.end_word();
                self.redirect(c);
            }
            '#' if self.word.is_none() => {
                self.script.literal = false;
                while self.chars.next_if(|c| *c != '\n').is_some() {}
            }
            '\'' => self.single(),
            '"' => self.double(),
            '\\' => {
                self.script.literal = false;
                match self.chars.next() {
                    Some('\n') | None => {}
                    Some(c) => {
                        let word = self.word();
                        word.quoted = true;
                        word.text.push(c);
                    }
                }
            }
            '{' | '}' if self.word.is_none() && self.at_blank() => {
                self.script.literal = false;
                self.end_command();
            }
            // The name of a command.
            '[' if self.word.is_none() && self.at_blank() => {
                self.script.literal = false;
                self.word().text.push(c);
            }
            '$' | '*' | '?' | '[' | '{' | '}' | '~' => {
                self.script.literal = false;
                // `$'…'` and `$"…"` are quotes of their own.
                self.script.clear &=
                    c != '$' || self.chars.peek().is_none_or(|c| !"'\"".contains(*c));
                let word = self.word();
                word.dynamic = true;
                word.text.push(c);
            }
            c => {
                let odd = is_odd(c);
                self.script.literal &= !(odd || c == '!' && self.word.is_none());
                let word = self.word();
                word.dynamic |= odd;
                word.text.push(c);
            }
        }
    }

    fn single(&mut self) {
        let mut closed = false;
        self.word().quoted = true;
        while let Some(c) = self.chars.next() {
            if c == '\'' {
                closed = true;
                break;
            }
            self.script.literal &= !is_odd(c) && c != '\n';
            self.word().text.push(c);
        }
        self.close_quote(closed);
    }

    fn double(&mut self) {
        let mut closed = false;
        self.word().quoted = true;
        while let Some(c) = self.chars.next() {
            match c {
                '"' => {
                    closed = true;
                    break;
                }
                '\\' => {
                    self.script.literal = false;
                    if self.chars.peek().is_none_or(|c| !"\"\\$`\n".contains(*c)) {
                        self.word().text.push('\\');
                    }
                    match self.chars.next() {
                        Some('\n') | None => {}
                        Some(c) => self.word().text.push(c),
                    }
                }
                '$' | '`' => {
                    self.script.literal = false;
                    // `$name` cannot run anything, `$(…)` and backticks can.
                    self.script.clear &= c == '$' && self.chars.peek() != Some(&'(');
                    let word = self.word();
                    word.dynamic = true;
                    word.text.push(c);
                }
                c => {
                    self.script.literal &= !(is_odd(c) || c == '\n' || c == '!');
                    self.word().text.push(c);
                }
            }
        }
        self.close_quote(closed);
    }

    fn close_quote(&mut self, closed: bool) {
        self.script.literal &= closed;
        self.script.clear &= closed;
    }

    /// A parenthesis opens: what stands in it is a command of its own, and the one around it goes
    /// on behind it.
    fn enter(&mut self) {
        self.script.literal = false;
        self.nested = true;
        if let Some(word) = &mut self.word {
            word.dynamic = true;
        }
        self.end_word();
        let target = core::mem::take(&mut self.place) != Place::Argument;
        if target {
            // `<(…)` is a word.
            self.open.words.push(Word {
                dynamic: true,
                ..Word::default()
            });
        }
        self.outer.push(core::mem::take(&mut self.open));
    }

    fn leave(&mut self) {
        self.script.literal = false;
        self.end_command();
        if let Some(outer) = self.outer.pop() {
            self.open = outer;
            // A pattern of `case` looks the same: then a command begins here.
            self.fork();
        }
    }

    fn redirect(&mut self, first: char) {
        let mut operator = String::from(first);
        while let Some(c) = self.chars.next_if(|c| "<>&|".contains(*c)) {
            operator.push(c);
        }
        self.place = match operator.as_str() {
            "<<" => Place::Delimiter {
                tabs: self.chars.next_if_eq(&'-').is_some(),
            },
            _ => Place::Target,
        };
    }

    /// Passes over the texts that begin on this line.
    fn skip_texts(&mut self) {
        for (end, tabs, quoted) in core::mem::take(&mut self.texts) {
            let mut found = false;
            let mut expands = false;
            while self.chars.peek().is_some() {
                let mut line = String::new();
                for c in self.chars.by_ref() {
                    if c == '\n' {
                        break;
                    }
                    line.push(c);
                }
                let bare = match tabs {
                    true => line.trim_start_matches('\t'),
                    false => &line,
                };
                if bare == end {
                    found = true;
                    break;
                }
                expands |= line.contains("$(") || line.contains('`') || line.ends_with('\\');
            }
            self.script.clear &= found && !self.nested && (quoted || !expands);
        }
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn at_blank(&mut self) -> bool {
        self.chars.peek().is_none_or(|c| c.is_whitespace())
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match core::mem::take(&mut self.place) {
            Place::Argument => self.open.words.push(word),
            Place::Target => {}
            Place::Delimiter { tabs } => self.texts.push((word.text, tabs, word.quoted)),
        }
    }

    /// Here another reading of the line begins a command.
    fn fork(&mut self) {
        let at = self.open.words.len();
        if at == 0 {
            return;
        }
        if self.open.forks.len() == MAX_FORKS {
            self.script.clear = false;
            return;
        }
        self.open.forks.push(at);
    }

    fn end_command(&mut self) {
        self.end_word();
        self.place = Place::Argument;
        let Open { words, forks } = core::mem::take(&mut self.open);
        for at in forks {
            let (before, behind) = words.split_at(at);
            for part in [before, behind] {
                if !part.is_empty() {
                    self.script.commands.push(part.to_vec());
                }
            }
        }
        if !words.is_empty() {
            self.script.commands.push(words);
        }
    }
}

/// Characters that look like others, like nothing, or like the end of a word: no person who reads
/// a line can say what it does.
fn is_odd(c: char) -> bool {
    (c.is_control() && c != '\t' && c != '\n')
        || (c.is_whitespace() && !c.is_ascii())
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
