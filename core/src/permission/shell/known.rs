//! Whether all words of a command behind those that somebody named are known to do no more than
//! the named ones say. Knows nothing of lines.

use super::By;
use super::flags::{self, Meaning, Takes, is_place};
use super::programs::{Behind, Form, How, Operands, Program, is_flag};

/// Whether of `argv`, whose first `named` words somebody named (one at least), the others choose
/// nothing else to run and no other place to work in, as far as that is known.
pub(super) fn is_known(argv: &[&str], named: usize, by: By) -> bool {
    let Some(program) = argv.first().and_then(|name| Program::of(name)) else {
        return is_own(argv, named);
    };
    let walk = Walk {
        program,
        argv,
        named,
        by,
    };
    walk.all()
}

/// The words of one command.
struct Walk<'a> {
    program: &'static Program,
    argv: &'a [&'a str],
    named: usize,
    by: By,
}

impl Walk<'_> {
    fn all(&self) -> bool {
        let mut form = self.program.form;
        let mut verbs = !self.program.verbs.is_empty();
        let mut ended = false;
        let mut operands = 0;
        let mut at = 0;
        loop {
            at += 1;
            let Some(&word) = self.argv.get(at) else {
                return true;
            };
            let trusted = at < self.named;
            if !trusted && self.program.is_sign(word) {
                return false;
            }
            if word == "--" && !ended {
                match form.behind {
                    Behind::Same => {}
                    Behind::Operands => ended = true,
                    Behind::Own => return self.own_from(at + 1),
                    Behind::Flags(flags, operands) => {
                        form = Form {
                            flags,
                            operands,
                            behind: Behind::Operands,
                        };
                    }
                    Behind::Nothing => return self.argv.len() <= self.named.max(at + 1),
                }
                continue;
            }
            if is_flag(word) && !ended {
                let (chooses, takes) = match flags::meaning(form.flags, word) {
                    Meaning::Unknown if !trusted => return false,
                    Meaning::Unknown => (false, Takes::Nothing),
                    Meaning::Harmless(takes) => (false, takes),
                    Meaning::Chooses(_) if !trusted => return false,
                    Meaning::Chooses(takes) => (true, takes),
                };
                if chooses && matches!(self.program.how, How::Shell | How::Code) {
                    return self.code(at, word);
                }
                if let Some(value) = self.argv.get(at + 1)
                    && takes.consumes(value)
                {
                    at += 1;
                    if at >= self.named && (!takes.admits(value) || self.program.is_sign(value)) {
                        return false;
                    }
                }
                continue;
            }
            if verbs {
                verbs = false;
                match self.program.verb(word) {
                    Some(verb) => form = verb.form,
                    None => {
                        let rest = self.argv.get(self.named..).unwrap_or_default();
                        return trusted
                            && self.own_from(at + 1)
                            && !rest.iter().any(|word| self.program.strays(word));
                    }
                }
                continue;
            }
            match self.operand(form.operands, word, at, operands) {
                Next::Bad => return false,
                Next::Good => operands += 1,
                Next::Aside => {}
                Next::Own => return self.own_from(at + 1),
                Next::Program => return self.program(at),
            }
        }
    }

    fn operand(&self, operands: Operands, word: &str, at: usize, before: usize) -> Next {
        let good = |good: bool| match good {
            true => Next::Good,
            false => Next::Bad,
        };
        let trusted = at < self.named;
        match operands {
            Operands::Program(_) if word.contains('=') => match trusted {
                // What a variable does to a program is not known.
                true => Next::Aside,
                false => Next::Bad,
            },
            Operands::Program(words) if before < words => Next::Good,
            Operands::Program(_) => match trusted {
                true => Next::Program,
                false => Next::Bad,
            },
            // A dash is what comes from elsewhere.
            Operands::Script if trusted || (!word.starts_with(['+', '@']) && word != "-") => {
                Next::Own
            }
            Operands::OwnScript if trusted || is_place(word) => Next::Own,
            Operands::Script | Operands::OwnScript => Next::Bad,
            Operands::Tar if at == 1 => good(trusted || word.chars().all(is_tar_letter)),
            Operands::Sed if before == 0 => good(trusted || is_plain_sed(word)),
            _ if trusted => Next::Good,
            Operands::Any | Operands::Tar | Operands::Sed => Next::Good,
            Operands::No => Next::Bad,
            Operands::Places => good(is_place(word)),
            Operands::Projects => good(self.by == By::Rule && is_place(word)),
            Operands::Packages => good(self.by == By::Rule && is_package(word)),
            Operands::Remotes => good(is_remote(word)),
            Operands::Addresses => good(is_address(word)),
            Operands::OneOf(words) => good(match before {
                0 => words.contains(&word),
                _ => is_place(word),
            }),
            Operands::Targets => {
                let amount = word.chars().all(|c| c.is_ascii_digit());
                let target = self.named < 2 && !word.contains('=') && !word.starts_with('+');
                // A part of a builder by its coordinates, which is fetched.
                let fetched = word.contains('.') && word.matches(':').count() > 1;
                good(amount || target && !fetched && is_place(word))
            }
            Operands::Sql => good(!word.trim_start().starts_with(['.', '\\'])),
        }
    }

    /// Behind a flag with code, or with the name of a module.
    fn code(&self, at: usize, word: &str) -> bool {
        let code = at + 1;
        if code >= self.named {
            return false;
        }
        match word.ends_with('m') && self.program.how == How::Code {
            true => is_known(&self.argv[code..], self.named - code, self.by),
            false => self.own_from(code + 1),
        }
    }

    /// A program that runs at `at`, which is named.
    fn program(&self, at: usize) -> bool {
        // A line is read once more where it runs.
        let rest = self.argv.get(self.named..).unwrap_or_default();
        let plain =
            self.program.how != How::Line || !rest.iter().any(|word| word.contains(is_special));
        plain && is_known(&self.argv[at..], self.named - at, self.by)
    }

    /// Words from `at` on are for a program of which nothing is known.
    fn own_from(&self, at: usize) -> bool {
        is_own(self.argv, self.named.max(at))
    }
}

/// What an operand means for those behind it.
enum Next {
    /// It is not known to be harmless.
    Bad,
    Good,
    /// It does not count.
    Aside,
    /// The rest is for a program of which nothing is known.
    Own,
    /// A program with its own words.
    Program,
}

/// Whether the words behind the first `named` are such as a person who named a program of which
/// nothing is known means with it: none says that it runs something.
fn is_own(argv: &[&str], named: usize) -> bool {
    !argv.iter().skip(named).any(|word| speaks(word))
}

/// Whether a flag says by its name that it runs something.
pub(super) fn speaks(word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    is_flag(word)
        && !name.starts_with("--no-")
        && name
            .split(['-', '_', '.'])
            .any(|part| SPEAKING.contains(&part.to_ascii_lowercase().as_str()))
}

const SPEAKING: &[&str] = &[
    "cmd", "command", "eval", "exec", "execdir", "execute", "hook", "launcher", "pager", "plugin",
    "pre", "preload", "require", "rsh", "script", "shell", "wrapper",
];

/// Whether the shell that reads a word once more may take it for more than a word.
fn is_special(c: char) -> bool {
    c.is_whitespace() || ";&|$`(){}[]<>*?~!#\"'\\=".contains(c)
}

/// A package of the registry: a name, with a scope or a version.
fn is_package(word: &str) -> bool {
    let name = word.strip_prefix('@').unwrap_or(word);
    let slashes = name.chars().filter(|c| *c == '/').count();
    let scoped = name.len() < word.len();
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.@/^~<>=!+[],*".contains(c);
    let file = |end: &&str| name.ends_with(end);
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && slashes == usize::from(scoped)
        && name.chars().all(legal)
        && !name.contains("..")
        && !PACKED.iter().any(file)
}

/// Ends of files that are packages themselves.
const PACKED: &[&str] = &[
    ".tgz", ".tar", ".gz", ".bz2", ".xz", ".whl", ".zip", ".deb", ".rpm", ".apk", ".rb",
];

/// A repository, or a name of one, or a reference: by a protocol that git speaks itself.
fn is_remote(word: &str) -> bool {
    if word.contains("::") {
        return false;
    }
    match word.split_once("://") {
        Some((protocol, rest)) => {
            ["http", "https", "ssh", "git"].contains(&protocol) && !rest.starts_with('-')
        }
        // `me@host:path`.
        None if word.contains(':') => !word.starts_with(['/', '~', '-']),
        None => !word.starts_with(['/', '~']) && !word.split('/').any(|part| part == ".."),
    }
}

fn is_address(word: &str) -> bool {
    match word.split_once("://") {
        Some((protocol, _)) => ["http", "https"].contains(&protocol),
        None => !word.contains(":/") && !word.starts_with(['@', '/']),
    }
}

/// Letters with which tar only packs, unpacks and lists, as it is asked in the line.
fn is_tar_letter(c: char) -> bool {
    "cxturvfzjJaphkmO".contains(c)
}

/// A program for sed of one command that only selects or replaces: addresses of numbers or of one
/// plain pattern, then `p`, `d`, `q`, `=`, or `s` with flags that neither run nor write.
pub(super) fn is_plain_sed(script: &str) -> bool {
    let mut rest = script.trim_matches(' ');
    loop {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "$,~+".contains(c));
        let pattern = number
            .strip_prefix('/')
            .and_then(|pattern| pattern.split_once('/'))
            .filter(|(pattern, _)| !pattern.contains(['\\', '[', '\n']));
        let next = pattern.map_or(number, |(_, next)| next);
        if next.len() == rest.len() {
            break;
        }
        rest = next;
    }
    let rest = rest.trim_start_matches(['!', ' ']);
    let Some(behind) = rest.strip_prefix(['s', 'y']) else {
        return ["p", "d", "q", "="].contains(&rest) || rest.is_empty();
    };
    let Some(mark) = behind.chars().next() else {
        return false;
    };
    if mark.is_ascii_alphanumeric() || mark.is_whitespace() || mark == '\\' {
        return false;
    }
    // The mark stands three times and nowhere else, so that all ways to read it agree.
    let parts: alloc::vec::Vec<&str> = behind.split(mark).collect();
    let [_, from, to, flags] = parts[..] else {
        return false;
    };
    let ends = |part: &str| part.ends_with('\\');
    !ends(from)
        && !ends(to)
        && !script.contains('\n')
        && flags
            .chars()
            .all(|c| c.is_ascii_digit() || "gpiI".contains(c))
}
