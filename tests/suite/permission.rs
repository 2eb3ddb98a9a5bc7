//! What may run: the one decision against a model that is written from the rules' meaning, not from
//! their code. Command lines are made from a tree, so the model knows what they run without reading
//! them; path patterns come with the list of what they cover.

use std::cell::Cell;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use reasonix_core::permission::{
    Access, Action, Ceiling, Gate, Grant, Grants, Posture, Rules, Target, Verdict, decide,
};
use reasonix_core::settings::Permissions;

/// A word of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Plain(&'static str),
    /// The same in quotes: the command gets it without them.
    Quoted(&'static str),
    /// What the command gets is not in the text.
    Unknown(&'static str),
}

/// A command line as a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Simple(Vec<Word>),
    /// Two lines with an operator between them.
    Both(Box<Line>, &'static str, Box<Line>),
    /// Behind a program that runs what its arguments say.
    Wrapped(&'static str, Vec<Word>),
    /// In a shell of its own.
    Nested(Box<Line>),
    /// Its output is an argument of something harmless.
    Substituted(&'static str, Box<Line>, &'static str),
    /// With something before or behind it that makes it more than a simple command.
    Dressed(&'static str, Vec<Word>, &'static str),
}

/// What the model is sure of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sure {
    No,
    Maybe,
    Yes,
}

const PROGRAMS: [&str; 6] = ["git", "/usr/bin/git", "cargo", "make", "rm", "node"];
const ARGUMENTS: [&str; 8] = [
    "push", "status", "test", "build", "-f", "-rf", "./x", "origin",
];

impl Line {
    pub fn text(&self) -> String {
        let words = |words: &[Word]| {
            let texts = words.iter().map(|word| match word {
                Word::Plain(text) => text.to_string(),
                Word::Quoted(text) => format!("\"{text}\""),
                Word::Unknown(text) => text.to_string(),
            });
            texts.collect::<Vec<_>>().join(" ")
        };
        match self {
            Self::Simple(simple) => words(simple),
            Self::Both(one, operator, other) => {
                format!("{}{operator}{}", one.text(), other.text())
            }
            Self::Wrapped(wrapper, simple) => format!("{wrapper} {}", words(simple)),
            Self::Nested(line) => format!("sh -c '{}'", line.text()),
            Self::Substituted(open, line, close) => format!("echo {open}{}{close}", line.text()),
            Self::Dressed(before, simple, behind) => format!("{before}{}{behind}", words(simple)),
        }
    }

    /// Every simple command in it.
    fn commands(&self) -> Vec<&[Word]> {
        match self {
            Self::Simple(words) | Self::Wrapped(_, words) | Self::Dressed(_, words, _) => {
                vec![words]
            }
            Self::Both(one, _, other) => [one.commands(), other.commands()].concat(),
            Self::Nested(line) | Self::Substituted(_, line, _) => line.commands(),
        }
    }

    /// The argument vector, if it is one literal simple command and nothing else.
    fn literal(&self) -> Option<Vec<&'static str>> {
        let Self::Simple(words) = self else {
            return None;
        };
        let text = |word: &Word| match word {
            Word::Plain(text) | Word::Quoted(text) => Some(*text),
            Word::Unknown(_) => None,
        };
        words.iter().map(text).collect()
    }

    fn runs(&self, pattern: &[&str], exact: bool) -> Sure {
        let each = self
            .commands()
            .into_iter()
            .map(|words| is(words, pattern, exact));
        each.max().unwrap_or(Sure::No)
    }

    /// Whether the text alone says all that it runs, to a reader who takes no risk with quotes in
    /// quotes and with backquotes.
    fn plain(&self) -> bool {
        let quoted = matches!(self, Self::Substituted("\"$(" | "`", ..));
        let unknown = |word: &Word| matches!(word, Word::Unknown(_));
        let filled = matches!(self, Self::Wrapped("xargs", _));
        !quoted
            && !filled
            && !self.commands().concat().iter().any(unknown)
            && !self.commands().into_iter().any(reads_more)
            && self.inner().is_none_or(Line::plain)
    }

    fn inner(&self) -> Option<&Line> {
        match self {
            Self::Nested(line) | Self::Substituted(_, line, _) => Some(line),
            Self::Both(one, _, other) if one.plain() => Some(other),
            Self::Both(one, ..) => Some(one),
            Self::Simple(_) | Self::Wrapped(..) | Self::Dressed(..) => None,
        }
    }
}

/// Whether a command takes what it runs from something that is not in the line.
fn reads_more(words: &[Word]) -> bool {
    let text = |word: &Word| match word {
        Word::Plain(text) | Word::Quoted(text) | Word::Unknown(text) => *text,
    };
    let (flags, others): (Vec<&str>, Vec<&str>) = words[1..]
        .iter()
        .map(text)
        .partition(|text| text.starts_with('-'));
    let has = |letter: char| flags.iter().any(|flag| flag.contains(letter));
    match text(&words[0]) {
        "node" => others.is_empty() || has('r'),
        "make" => has('f'),
        _ => false,
    }
}

/// Whether words that are named cover an argument vector: it begins with them, and what follows
/// names nothing else to make and has no flag that nobody knows.
fn covers(argv: &[&str], named: &[&str]) -> bool {
    let Some(rest) = argv.strip_prefix(named) else {
        return false;
    };
    let another = |word: &&str| argv[0] == "make" && !word.starts_with('-') && named.len() > 1;
    // Of the flags above, `-f` forces a push; of `rm`, nothing is known, and all is meant.
    let known = |word: &&str| match argv[0] {
        "git" => argv.get(1) == Some(&"push") && **word == *"-f",
        program => !matches!(program, "cargo" | "make"),
    };
    !rest
        .iter()
        .any(|word| another(word) || word.starts_with('-') && !known(word))
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether one simple command is the one the pattern names.
fn is(words: &[Word], pattern: &[&str], exact: bool) -> Sure {
    let text = |word: &Word| match word {
        Word::Plain(text) | Word::Quoted(text) => Some(*text),
        Word::Unknown(_) => None,
    };
    let Some(program) = text(&words[0]) else {
        return Sure::Maybe;
    };
    if base(program) != base(pattern[0]) {
        return Sure::No;
    }
    let arguments: Vec<_> = words[1..].iter().map(text).collect();
    let fits = match exact {
        true => arguments
            .iter()
            .copied()
            .eq(pattern[1..].iter().map(|word| Some(*word))),
        false => {
            let mut rest = arguments.iter();
            pattern[1..]
                .iter()
                .all(|word| rest.any(|a| *a == Some(*word)))
        }
    };
    match fits {
        true => Sure::Yes,
        false if arguments.contains(&None) => Sure::Maybe,
        false => Sure::No,
    }
}

fn words() -> impl Strategy<Value = Vec<Word>> {
    let argument = prop_oneof![
        6 => prop::sample::select(ARGUMENTS.to_vec()).prop_map(Word::Plain),
        2 => prop::sample::select(ARGUMENTS.to_vec()).prop_map(Word::Quoted),
        1 => prop::sample::select(vec!["$X", "*", "~/x", "{push,test}"]).prop_map(Word::Unknown),
    ];
    let program = prop_oneof![
        12 => prop::sample::select(PROGRAMS.to_vec()).prop_map(Word::Plain),
        1 => Just(Word::Quoted("git")),
        1 => Just(Word::Unknown("$X")),
    ];
    (program, prop::collection::vec(argument, 0..4)).prop_map(|(program, mut rest)| {
        rest.insert(0, program);
        rest
    })
}

pub fn line() -> impl Strategy<Value = Line> {
    let leaf = prop_oneof![
        6 => words().prop_map(Line::Simple),
        2 => (prop::sample::select(vec!["sudo", "env", "timeout 5", "nohup", "xargs", "command"]), words())
            .prop_map(|(wrapper, words)| Line::Wrapped(wrapper, words)),
        2 => (prop::sample::select(vec![("A=1 ", ""), ("", " > out"), ("", " &"), ("! ", ""), ("(", ")"), ("", " # x\n")]), words())
            .prop_map(|((before, behind), words)| Line::Dressed(before, words, behind)),
    ];
    leaf.prop_recursive(2, 4, 2, |inner| {
        let inner = inner.prop_map(Box::new);
        let operator = prop::sample::select(vec!["; ", " && ", " || ", " | ", " & ", "\n"]);
        let quotes = prop::sample::select(vec![("$(", ")"), ("`", "`"), ("\"$(", ")\"")]);
        prop_oneof![
            4 => (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| Line::Both(a, op, b)),
            2 => inner.clone().prop_filter("one quote in another", |line| !line.text().contains(['\'', '#']))
                .prop_map(Line::Nested),
            2 => (quotes, inner).prop_filter("one quote in another", |(_, line)| !line.text().contains(['"', '`', '#']))
                .prop_map(|((open, close), line)| Line::Substituted(open, line, close)),
        ]
    })
}

/// Files: as they are asked for, what they really are, and whether that is inside the root.
pub const FILES: [(&str, &str, bool); 6] = [
    ("/w/src/a.rs", "/w/src/a.rs", true),
    ("/w/.env", "/w/.env", true),
    ("/w/secrets/key", "/w/secrets/key", true),
    ("/out/x", "/out/x", false),
    ("/w/ln", "/w/.env", true),
    ("/w/src/out", "/out/x", false),
];

/// Patterns of paths, and all of the names above that they cover.
const PATTERNS: [(&str, &[&str]); 7] = [
    ("src/**", &["/w/src/a.rs", "/w/src/out"]),
    (".env", &["/w/.env"]),
    ("secrets", &["/w/secrets/key"]),
    ("/out", &["/out/x"]),
    ("*.rs", &["/w/src/a.rs"]),
    ("/w/ln", &["/w/ln"]),
    (
        "**",
        &[
            "/w/src/a.rs",
            "/w/.env",
            "/w/secrets/key",
            "/out/x",
            "/w/ln",
            "/w/src/out",
        ],
    ),
];

/// Patterns of commands.
const COMMANDS: [(&[&str], bool); 6] = [
    (&["git", "push"], false),
    (&["git", "push"], true),
    (&["cargo", "test"], false),
    (&["make"], true),
    (&["make"], false),
    (&["rm", "-rf"], false),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Read(usize),
    Edit(usize),
    Bash(usize),
    AnyBash,
    Tool(&'static str),
}

impl Rule {
    pub fn text(self) -> String {
        match self {
            Self::Read(pattern) => format!("Read({})", PATTERNS[pattern].0),
            Self::Edit(pattern) => format!("Edit({})", PATTERNS[pattern].0),
            Self::Bash(command) => {
                let (words, exact) = COMMANDS[command];
                let more = if exact { "" } else { ":*" };
                format!("Bash({}{more})", words.join(" "))
            }
            Self::AnyBash => "Bash".into(),
            Self::Tool(name) => name.into(),
        }
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    let tools = vec!["write_file", "srv__tool", "web_fetch", "read_file"];
    prop_oneof![
        2 => (0..PATTERNS.len()).prop_map(Rule::Read),
        2 => (0..PATTERNS.len()).prop_map(Rule::Edit),
        4 => (0..COMMANDS.len()).prop_map(Rule::Bash),
        1 => Just(Rule::AnyBash),
        1 => prop::sample::select(tools).prop_map(Rule::Tool),
    ]
}

pub fn list() -> impl Strategy<Value = Vec<Rule>> {
    prop::collection::vec(rule(), 0..3)
}

/// What is about to be done.
#[derive(Clone, Debug)]
pub enum Deed {
    Read(usize),
    Edit(Vec<usize>),
    Run(Line, bool),
    Todo,
    Fetch,
    Foreign,
    NewRoot,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        2 => (0..FILES.len()).prop_map(Deed::Read),
        3 => prop::collection::vec(0..FILES.len(), 1..3).prop_map(Deed::Edit),
        8 => (line(), prop::bool::weighted(0.9)).prop_map(|(line, inside)| Deed::Run(line, inside)),
        1 => Just(Deed::Todo),
        1 => Just(Deed::Fetch),
        1 => Just(Deed::Foreign),
        1 => Just(Deed::NewRoot),
    ]
}

impl Deed {
    fn tool(&self) -> &'static str {
        match self {
            Self::Read(_) => "read_file",
            Self::Edit(_) => "write_file",
            Self::Run(..) => "bash",
            Self::Todo => "todo_write",
            Self::Fetch => "web_fetch",
            Self::Foreign => "srv__tool",
            Self::NewRoot => "add_root",
        }
    }

    fn action(&self) -> Action {
        let target = |file: &usize| {
            let (asked, real, inside) = FILES[*file];
            Target {
                asked: asked.into(),
                real: real.into(),
                inside,
            }
        };
        let access = match self {
            Self::Read(file) => Access::Read(vec![target(file)]),
            Self::Edit(files) => Access::Edit(files.iter().map(target).collect()),
            Self::Run(line, inside) => Access::Execute {
                command: line.text(),
                inside: *inside,
            },
            Self::Todo => Access::Session,
            Self::Fetch => Access::Network("example.org".into()),
            Self::Foreign | Self::NewRoot => Access::Other,
        };
        let action = Action::new(self.tool(), access);
        match self {
            Self::NewRoot => action.protected(),
            _ => action,
        }
    }

    fn files(&self) -> &[usize] {
        match self {
            Self::Read(file) => std::slice::from_ref(file),
            Self::Edit(files) => files,
            _ => &[],
        }
    }

    /// Whether all of it is beneath the roots, as far as that can be said.
    fn inside(&self) -> bool {
        match self {
            Self::Run(_, inside) => *inside,
            _ => self.files().iter().all(|file| FILES[*file].2),
        }
    }

    fn writes(&self) -> bool {
        !matches!(self, Self::Read(_) | Self::Todo)
    }

    /// Whether a rule that forbids or asks is about it. One file of several is enough, under either
    /// of its names; to forbid reading is to forbid editing.
    fn meant_by(&self, rule: Rule) -> Sure {
        let sure = |yes| if yes { Sure::Yes } else { Sure::No };
        let covered = |pattern: usize| {
            let covers = PATTERNS[pattern].1;
            let either =
                |file: &usize| covers.contains(&FILES[*file].0) || covers.contains(&FILES[*file].1);
            sure(self.files().iter().any(either))
        };
        match (rule, self) {
            (Rule::Read(pattern), Self::Read(_) | Self::Edit(_))
            | (Rule::Edit(pattern), Self::Edit(_)) => covered(pattern),
            (Rule::Bash(command), Self::Run(line, _)) => {
                let (words, exact) = COMMANDS[command];
                line.runs(words, exact)
            }
            (Rule::AnyBash, Self::Run(..)) => Sure::Yes,
            (Rule::Tool(name), _) => sure(name == self.tool()),
            (Rule::Read(_) | Rule::Edit(_) | Rule::Bash(_) | Rule::AnyBash, _) => Sure::No,
        }
    }

    /// Whether a rule allows it. Every file, by its real name; one literal simple command.
    fn allowed_by(&self, rule: Rule) -> bool {
        let covered = |pattern: usize| {
            let files = self.files().iter();
            files
                .map(|file| FILES[*file].1)
                .all(|real| PATTERNS[pattern].1.contains(&real))
        };
        self.inside()
            && match (rule, self) {
                (Rule::Read(pattern), Self::Read(_)) | (Rule::Edit(pattern), Self::Edit(_)) => {
                    covered(pattern)
                }
                (Rule::Bash(command), Self::Run(line, _)) => {
                    let (words, exact) = COMMANDS[command];
                    line.literal().is_some_and(|argv| match exact {
                        true => argv == words,
                        false => covers(&argv, words),
                    })
                }
                (Rule::AnyBash, Self::Run(..)) => true,
                (Rule::Tool(name), _) => name == self.tool(),
                (Rule::Read(_) | Rule::Edit(_) | Rule::Bash(_) | Rule::AnyBash, _) => false,
            }
    }
}

/// What the person said yes to for good.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    Edits,
    Words(Vec<&'static str>),
    Exactly(String),
    Foreign,
}

impl Held {
    pub fn by(deed: &Deed) -> Option<Self> {
        match deed {
            Deed::Edit(_) => deed.inside().then_some(Self::Edits),
            Deed::Run(line, _) => deed.inside().then(|| match line.literal() {
                Some(argv)
                    if matches!(argv[0], "cargo" | "git" | "make")
                        && known_verb(argv[0], argv.get(1))
                        && covers(&argv, &argv[..2]) =>
                {
                    Self::Words(argv[..2].to_vec())
                }
                _ => Self::Exactly(line.text()),
            }),
            Deed::Foreign => Some(Self::Foreign),
            Deed::Read(_) | Deed::Todo | Deed::Fetch | Deed::NewRoot => None,
        }
    }

    fn covers(&self, deed: &Deed) -> bool {
        match (self, deed) {
            (Self::Edits, Deed::Edit(_)) => deed.inside(),
            (Self::Words(words), Deed::Run(line, true)) => {
                line.literal().is_some_and(|argv| covers(&argv, words))
            }
            (Self::Exactly(text), Deed::Run(line, true)) => line.text() == *text,
            (Self::Foreign, Deed::Foreign) => true,
            _ => false,
        }
    }
}

/// The verbs above that an "always" may be given for.
fn known_verb(program: &str, verb: Option<&&str>) -> bool {
    let verbs: &[&str] = match program {
        "cargo" | "make" => &["test", "build"],
        _ => &["push", "status"],
    };
    verb.is_some_and(|verb| verbs.contains(verb))
}

/// A gate in words.
#[derive(Clone, Debug)]
pub struct Setting {
    pub posture: Posture,
    pub ceiling: Posture,
    pub accept_edits: bool,
    pub planning: bool,
    pub deny: Vec<Rule>,
    pub ask: Vec<Rule>,
    pub allow: Vec<Rule>,
}

fn setting() -> impl Strategy<Value = Setting> {
    let posture = || prop::sample::select(Posture::ALL.to_vec());
    let ceiling = prop_oneof![Just(Posture::Yolo), posture()];
    (
        posture(),
        ceiling,
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.2),
        (list(), list(), list()),
    )
        .prop_map(
            |(posture, ceiling, accept_edits, planning, (deny, ask, allow))| Setting {
                posture,
                ceiling,
                accept_edits,
                planning,
                deny,
                ask,
                allow,
            },
        )
}

impl Setting {
    fn rules(&self) -> Rules {
        let texts = |rules: &[Rule]| rules.iter().map(|rule| rule.text()).collect();
        let permissions = Permissions {
            allow: texts(&self.allow),
            ask: texts(&self.ask),
            deny: texts(&self.deny),
        };
        let rules = Rules::parse(&permissions, Some("/home/me")).expect("the rules above parse");
        rules.beneath("/w", &["/w".into()])
    }

    /// What there is to know of a deed, whatever the posture.
    fn weigh(&self, deed: &Deed, held: &BTreeSet<Held>) -> Facts {
        let most = |rules: &[Rule]| {
            let each = rules.iter().map(|rule| deed.meant_by(*rule));
            each.max().unwrap_or(Sure::No)
        };
        // What cannot be read may be taken for worse than it is, never for better.
        let plain = match deed {
            Deed::Run(line, _) => line.plain(),
            _ => true,
        };
        let all = |rules: &[Rule]| {
            let from = most(rules);
            let worse = !plain && rules.iter().any(|rule| matches!(rule, Rule::Bash(_)));
            let to = if worse { Sure::Yes } else { from };
            let range = [Sure::No, Sure::Maybe, Sure::Yes].into_iter();
            range.filter(|sure| (from..=to).contains(sure)).collect()
        };
        Facts {
            writes: deed.writes(),
            protected: matches!(deed, Deed::NewRoot),
            edit: matches!(deed, Deed::Edit(_)) && deed.inside(),
            free: matches!(deed, Deed::Todo)
                || (matches!(deed, Deed::Read(_)) && deed.inside())
                || held.iter().any(|held| held.covers(deed))
                || self.allow.iter().any(|rule| deed.allowed_by(*rule)),
            always: Held::by(deed).is_some(),
            denied: all(&self.deny),
            asked: all(&self.ask),
        }
    }

    /// All that may come of a deed.
    pub fn expect(&self, deed: &Deed, held: &BTreeSet<Held>) -> Vec<Word3> {
        self.at().expect(&self.weigh(deed, held))
    }

    pub fn at(&self) -> At {
        At {
            posture: self.posture,
            ceiling: self.ceiling,
            accept_edits: self.accept_edits,
            planning: self.planning,
        }
    }
}

/// What there is to know of a deed.
#[derive(Clone, Debug)]
struct Facts {
    writes: bool,
    protected: bool,
    /// An edit inside the roots.
    edit: bool,
    /// It needs no leave, or has it.
    free: bool,
    /// It can be allowed for good.
    always: bool,
    /// How sure it is that a rule forbids it: all that a careful reader may think.
    denied: Vec<Sure>,
    /// The same, that a rule says to ask.
    asked: Vec<Sure>,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    posture: Posture,
    ceiling: Posture,
    accept_edits: bool,
    planning: bool,
}

impl At {
    /// Every place a session can stand at.
    fn everywhere() -> impl Iterator<Item = Self> {
        let flags = [(false, false), (false, true), (true, false), (true, true)];
        Posture::ALL.into_iter().flat_map(move |ceiling| {
            Posture::ALL.into_iter().flat_map(move |posture| {
                flags.into_iter().map(move |(accept_edits, planning)| Self {
                    posture,
                    ceiling,
                    accept_edits,
                    planning,
                })
            })
        })
    }

    fn judge(self, facts: &Facts, denied: Sure, asked: Sure) -> Word3 {
        let posture = self.posture.min(self.ceiling);
        let blocked = denied == Sure::Yes
            || (self.planning && facts.writes && !facts.protected)
            || (posture == Posture::ReadOnly && facts.writes);
        if blocked {
            return Word3::Deny;
        }
        // A rule that may be about it makes it ask; yolo asks for protected decisions only.
        let told = (asked > Sure::No || denied == Sure::Maybe) && posture < Posture::Yolo;
        let free = facts.free || (facts.edit && self.accept_edits);
        let runs = !facts.protected && !told && (free || posture >= Posture::Auto);
        match runs {
            true => Word3::Allow,
            false if posture < Posture::Ask => Word3::Deny,
            false => Word3::Ask(!facts.protected && !told && facts.always),
        }
    }

    fn expect(self, facts: &Facts) -> Vec<Word3> {
        let mut all = Vec::with_capacity(1);
        for denied in &facts.denied {
            for asked in &facts.asked {
                all.push(self.judge(facts, *denied, *asked));
            }
        }
        all
    }

    fn decide(self, action: &Action, rules: &Rules, grants: &Grants) -> Verdict {
        let gate = Gate {
            posture: self.posture,
            ceiling: Ceiling::at(self.ceiling),
            accept_edits: self.accept_edits,
            planning: self.planning,
            rules,
            grants,
        };
        decide(action, &gate)
    }
}

/// A verdict without its words; of a card, whether it has an "always".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word3 {
    Deny,
    Ask(bool),
    Allow,
}

impl Word3 {
    fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Deny { .. } => Self::Deny,
            Verdict::Ask { always, .. } => Self::Ask(always.is_some()),
            Verdict::Allow { .. } => Self::Allow,
        }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Deny => 0,
            Self::Ask(_) => 1,
            Self::Allow => 2,
        }
    }
}

/// Decisions that are compared with the model in every run.
const DECISIONS: u64 = 1_000_000;

#[test]
fn every_verdict_is_the_one_the_rules_mean() {
    let config = ProptestConfig {
        source_file: Some(file!()),
        ..crate::machine::cases(3000)
    };
    let enough = config.cases >= 3000;
    let mut runner = TestRunner::new(config);
    let deeds = prop::collection::vec((deed(), any::<bool>()), 3..5);
    let decisions = Cell::new(0);
    let result = runner.run(&(setting(), deeds), |(setting, deeds)| {
        let rules = setting.rules();
        let mut grants = Grants::new(64);
        let mut held = BTreeSet::new();
        for (deed, always) in &deeds {
            let action = deed.action();
            let facts = setting.weigh(deed, &held);
            let mut below: [[u8; 5]; 4] = [[0; 5]; 4];
            for (n, at) in At::everywhere().enumerate() {
                let verdict = at.decide(&action, &rules, &grants);
                let seen = Word3::of(&verdict);
                let expected = at.expect(&facts);
                prop_assert!(
                    expected.contains(&seen),
                    "{action:?}: {verdict:?}, not {expected:?}\n{at:?} {setting:?}\nheld: {held:?}"
                );
                // A higher posture and a higher ceiling take nothing away.
                let (column, flags) = (n / 4 % 5, n % 4);
                let left = if column == 0 {
                    0
                } else {
                    below[flags][column - 1]
                };
                prop_assert!(
                    seen.rank() >= left.max(below[flags][column]),
                    "{at:?} {action:?}"
                );
                below[flags][column] = seen.rank();
                decisions.set(decisions.get() + 1);
            }
            // The person says "always" whenever the card has it, half of the time.
            let verdict = setting.at().decide(&action, &rules, &grants);
            if let (
                Verdict::Ask {
                    always: Some(grant),
                    ..
                },
                true,
            ) = (verdict, *always)
            {
                let expected = Held::by(deed).expect("only what can be held is offered");
                let same = match (&grant, &expected) {
                    (Grant::Edits, Held::Edits) => true,
                    (Grant::Command(words), Held::Words(argv)) => words == argv,
                    (Grant::Line(line), Held::Exactly(text)) => line == text,
                    (Grant::Tool(name), Held::Foreign) => name == "srv__tool",
                    _ => false,
                };
                prop_assert!(same, "{grant:?}, not {expected:?}");
                grants.add(grant);
                held.insert(expected);
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}\n{runner}");
    }
    assert!(
        !enough || decisions.get() >= DECISIONS,
        "{}",
        decisions.get()
    );
}

proptest! {
    #![proptest_config(crate::machine::cases(256))]

    /// What a rule forbids or asks about can only take away, what one allows only give, and neither
    /// a posture nor a grant gives anything back.
    #[test]
    fn rules_only_do_what_their_list_is_for(
        setting in setting(),
        deed in deed(),
        more in rule(),
    ) {
        let action = deed.action();
        let none = Grants::new(1);
        let with = |list: usize| {
            let mut setting = setting.clone();
            [&mut setting.deny, &mut setting.ask, &mut setting.allow][list].push(more);
            Word3::of(&setting.at().decide(&action, &setting.rules(), &none)).rank()
        };
        let plain = Word3::of(&setting.at().decide(&action, &setting.rules(), &none)).rank();
        prop_assert!(with(0) <= plain, "a deny rule gave something");
        prop_assert!(with(1) <= plain, "an ask rule gave something");
        prop_assert!(with(2) >= plain, "an allow rule took something away");
        let mut grants = Grants::new(1);
        if let Some(grant) = Grant::for_action(&action) {
            grants.add(grant);
            let held = Word3::of(&setting.at().decide(&action, &setting.rules(), &grants)).rank();
            prop_assert!(held >= plain, "a grant took something away");
            let planning = At { planning: true, ..setting.at() };
            let free = At { planning: false, ..setting.at() };
            let rank = |at: At| Word3::of(&at.decide(&action, &setting.rules(), &grants)).rank();
            prop_assert!(rank(planning) <= rank(free), "planning gave something");
        }
    }

    /// Ceilings only meet: in any order, any number of times, and never to something higher.
    #[test]
    fn ceilings_meet_in_any_order(
        ceilings in prop::collection::vec(prop::sample::select(Posture::ALL.to_vec()), 1..6),
        wanted in prop::sample::select(Posture::ALL.to_vec()),
    ) {
        let meet = |postures: &mut dyn Iterator<Item = &Posture>| {
            postures.fold(Ceiling::TOP, |met, posture| met.meet(Ceiling::at(*posture)))
        };
        let met = meet(&mut ceilings.iter());
        prop_assert_eq!(met, meet(&mut ceilings.iter().rev()));
        prop_assert_eq!(met, meet(&mut ceilings.iter().chain(&ceilings)));
        let lowest = ceilings.iter().min().copied();
        prop_assert_eq!(Some(met.posture()), lowest);
        prop_assert_eq!(met.clip(wanted), wanted.min(met.posture()));
        prop_assert_eq!(met.admits(wanted), met.clip(wanted) == wanted);
    }
}
