//! What may run: the one decision against a model that is written from the rules' meaning, not from
//! their code. Command lines are made from a tree, so the model knows what they run without reading
//! them; path patterns come with the list of what they cover.

use std::collections::BTreeSet;

use proptest::prelude::*;
use reasonix_core::permission::{
    Access, Action, Ceiling, Gate, Grant, Grants, PermissionMode, Posture, Rules, Target, Verdict,
    decide,
};
use reasonix_core::settings::Permissions;
use reasonix_tests::json::{self, Value, json};
use reasonix_tests::provider::{say, tool};
use reasonix_tests::sim::{Card, Sim, config};
use reasonix_tests::world::{Command, World, http};

/// A word of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Plain(&'static str),
    /// The same in quotes: the command gets it without them.
    Quoted(&'static str),
    /// What the command gets is not in the text.
    Unknown(&'static str),
}

/// A command line as a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
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
    fn text(&self) -> String {
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
/// names nothing else to make.
fn covers(argv: &[&str], named: &[&str]) -> bool {
    let Some(rest) = argv.strip_prefix(named) else {
        return false;
    };
    let makes = argv[0] == "make";
    let another = |word: &&str| !word.starts_with('-') && named.len() > 1;
    let elsewhere = |word: &&str| word.starts_with('-') && word.contains('f');
    !makes || !rest.iter().any(|word| another(word) || elsewhere(word))
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

fn line() -> impl Strategy<Value = Line> {
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
const FILES: [(&str, &str, bool); 6] = [
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
enum Rule {
    Read(usize),
    Edit(usize),
    Bash(usize),
    AnyBash,
    Tool(&'static str),
}

impl Rule {
    fn text(self) -> String {
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

fn list() -> impl Strategy<Value = Vec<Rule>> {
    prop::collection::vec(rule(), 0..3)
}

/// What is about to be done.
#[derive(Clone, Debug)]
enum Deed {
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
enum Held {
    Edits,
    Words(Vec<&'static str>),
    Exactly(String),
    Foreign,
}

impl Held {
    fn by(deed: &Deed) -> Option<Self> {
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
struct Setting {
    posture: Posture,
    ceiling: Posture,
    accept_edits: bool,
    planning: bool,
    deny: Vec<Rule>,
    ask: Vec<Rule>,
    allow: Vec<Rule>,
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

    /// What must come of a deed, given how sure it is that rules forbid it or ask about it.
    fn judge(&self, deed: &Deed, held: &BTreeSet<Held>, denied: Sure, asked: Sure) -> Word3 {
        let posture = self.posture.min(self.ceiling);
        let protected = matches!(deed, Deed::NewRoot);
        let blocked = denied == Sure::Yes
            || (self.planning && deed.writes() && !protected)
            || (posture == Posture::ReadOnly && deed.writes());
        if blocked {
            return Word3::Deny;
        }
        // A rule that may be about it makes it ask; yolo asks for protected decisions only.
        let told = (asked > Sure::No || denied == Sure::Maybe) && posture < Posture::Yolo;
        let free = matches!(deed, Deed::Todo)
            || (matches!(deed, Deed::Read(_)) && deed.inside())
            || (matches!(deed, Deed::Edit(_)) && deed.inside() && self.accept_edits)
            || held.iter().any(|held| held.covers(deed))
            || self.allow.iter().any(|rule| deed.allowed_by(*rule));
        let runs = !protected && !told && (free || posture >= Posture::Auto);
        match runs {
            true => Word3::Allow,
            false if posture < Posture::Ask => Word3::Deny,
            false => Word3::Ask(!protected && !told && Held::by(deed).is_some()),
        }
    }

    /// All that may come of a deed: what cannot be read may be taken for worse than it is, never
    /// for better.
    fn expect(&self, deed: &Deed, held: &BTreeSet<Held>) -> Vec<Word3> {
        let most = |rules: &[Rule]| {
            let each = rules.iter().map(|rule| deed.meant_by(*rule));
            each.max().unwrap_or(Sure::No)
        };
        let (denied, asked) = (most(&self.deny), most(&self.ask));
        let plain = match deed {
            Deed::Run(line, _) => line.plain(),
            _ => true,
        };
        if plain {
            return vec![self.judge(deed, held, denied, asked)];
        }
        let up = |from: Sure, rules: &[Rule]| {
            let worse = rules.iter().any(|rule| matches!(rule, Rule::Bash(_)));
            let to = if worse { Sure::Yes } else { from };
            [Sure::No, Sure::Maybe, Sure::Yes]
                .into_iter()
                .filter(move |sure| (from..=to).contains(sure))
                .collect::<Vec<_>>()
        };
        let mut all = Vec::new();
        for denied in up(denied, &self.deny) {
            for asked in up(asked, &self.ask) {
                all.push(self.judge(deed, held, denied, asked));
            }
        }
        all
    }
}

/// A verdict without its words; of a card, whether it has an "always".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word3 {
    Deny,
    Ask(bool),
    Allow,
}

proptest! {
    #![proptest_config(crate::machine::cases(1500))]

    #[test]
    fn every_verdict_is_the_one_the_rules_mean(
        setting in setting(),
        deeds in prop::collection::vec((deed(), any::<bool>()), 1..8),
    ) {
        let rules = setting.rules();
        let mut grants = Grants::new(64);
        let mut held = BTreeSet::new();
        for (deed, always) in &deeds {
            let action = deed.action();
            let gate = Gate {
                posture: setting.posture,
                ceiling: Ceiling::at(setting.ceiling),
                accept_edits: setting.accept_edits,
                planning: setting.planning,
                rules: &rules,
                grants: &grants,
            };
            let verdict = decide(&action, &gate);
            let seen = match &verdict {
                Verdict::Deny { .. } => Word3::Deny,
                Verdict::Ask { always } => Word3::Ask(always.is_some()),
                Verdict::Allow { .. } => Word3::Allow,
            };
            let expected = setting.expect(deed, &held);
            prop_assert!(
                expected.contains(&seen),
                "{action:?}: {verdict:?}, not {expected:?}\n{setting:?}\nheld: {held:?}"
            );
            // The person says "always" whenever the card has it, half of the time.
            if let (Verdict::Ask { always: Some(grant) }, true) = (verdict, *always) {
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
    }
}

/// A tool call of the model in a whole agent, and what the person says if they are asked.
#[derive(Clone, Debug)]
enum Step {
    Run(Line, Said),
    /// One of the first three files above.
    Write(usize, Said),
    /// The client moves the posture.
    Move(Posture),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Once,
    Always,
    No,
}

fn step() -> impl Strategy<Value = Step> {
    let said = || prop::sample::select(vec![Said::Once, Said::Always, Said::No]);
    prop_oneof![
        5 => (line(), said()).prop_map(|(line, said)| Step::Run(line, said)),
        2 => (0..3_usize, said()).prop_map(|(file, said)| Step::Write(file, said)),
        3 => prop::sample::select(Posture::ALL.to_vec()).prop_map(Step::Move),
    ]
}

proptest! {
    #![proptest_config(crate::machine::cases(96))]

    /// The same model over a whole agent: what ran, what was asked, and what the client may set.
    #[test]
    fn an_agent_does_what_its_flag_its_rules_and_its_person_allow(
        flag in prop::sample::select(vec![None, Some("read-only"), Some("dontAsk"), Some("ask"), Some("acceptEdits"), Some("auto"), Some("bypassPermissions")]),
        rules in (list(), list(), list()),
        steps in prop::collection::vec(step(), 1..8),
    ) {
        let mode = flag.map_or(PermissionMode::default(), |flag| {
            PermissionMode::parse(flag).expect("the flags above are known")
        });
        let mut setting = Setting {
            posture: mode.start,
            ceiling: mode.ceiling.posture(),
            accept_edits: mode.accept_edits,
            planning: false,
            deny: rules.0,
            ask: rules.1,
            allow: rules.2,
        };
        let texts = |rules: &[Rule]| rules.iter().map(|rule| rule.text()).collect::<Vec<_>>();
        let mut config = config();
        config.permission_mode = mode;
        config.settings.permissions = Permissions {
            allow: texts(&setting.allow),
            ask: texts(&setting.ask),
            deny: texts(&setting.deny),
        };
        let mut world = World::with_files("/w", &[]);
        world.commands = vec![Command {
            contains: String::new(),
            output: b"ran\n".to_vec(),
            takes: Some(std::time::Duration::ZERO),
            code: 0,
        }];
        let mut sim = Sim::new(config, world);
        let session = sim.open(json!({}), "/w");
        let mut held = BTreeSet::new();
        for (id, step) in (1_u64..).zip(&steps) {
            let (deed, arguments, said) = match step {
                Step::Move(posture) => {
                    let answer = sim.ask(&json::request(id, "session/set_config_option", json!({
                        "sessionId": session, "configId": "tool_approval", "value": posture.name(),
                    })));
                    let may = *posture <= setting.ceiling
                        && (flag.is_some() || *posture >= Posture::Ask);
                    prop_assert_eq!(answer.get("result").is_some(), may, "{}", answer);
                    if may {
                        setting.posture = *posture;
                    }
                    continue;
                }
                Step::Run(line, said) => {
                    (Deed::Run(line.clone(), true), json!({"command": line.text()}), *said)
                }
                Step::Write(file, said) => {
                    let content = format!("{id}");
                    let arguments = json!({"path": FILES[*file].0, "content": content});
                    (Deed::Edit(vec![*file]), arguments, *said)
                }
            };
            let write = matches!(step, Step::Write(..));
            let name = if write { "write_file" } else { "bash" };
            sim.world.answers = [
                http(&tool(&format!("c{id}"), name, arguments)),
                http(&say("k")),
            ]
            .into();
            sim.cards = vec![Card::Choose(match said {
                Said::Once => "allow_once",
                Said::Always => "allow_always",
                Said::No => "reject_once",
            })];
            let cards = |sim: &Sim| {
                let cards = sim.frames.iter();
                cards
                    .filter(|frame| frame["method"] == "session/request_permission")
                    .cloned()
                    .collect::<Vec<Value>>()
            };
            let before = (cards(&sim).len(), sim.world.ran.len());
            // A card without an "always" cannot be answered so: then it stays open.
            sim.send(&json::prompt(id, &session, "go"));
            sim.run_for(std::time::Duration::from_secs(1));
            let asked = cards(&sim).split_off(before.0);
            let offered = |card: &Value| {
                let options = card["params"]["options"].as_array().cloned().unwrap_or_default();
                options.iter().any(|option| option["kind"] == "allow_always")
            };
            let always = asked.first().map(offered);
            let stuck = always == Some(false) && said == Said::Always;
            if stuck {
                sim.send(&json::cancel(&session));
            }
            sim.answer(id);
            let ran = match step {
                Step::Write(file, _) => {
                    sim.world.file(FILES[*file].0) == Some(id.to_string().as_bytes())
                }
                _ => sim.world.ran.len() > before.1,
            };
            let expected = setting.expect(&deed, &held);
            let seen = match always {
                Some(always) => Word3::Ask(always),
                None if ran => Word3::Allow,
                None => Word3::Deny,
            };
            prop_assert!(
                expected.contains(&seen),
                "{step:?}: {seen:?}, not {expected:?}\n{setting:?}\nheld: {held:?}"
            );
            prop_assert!(asked.len() <= 1, "asked twice");
            if always.is_some() {
                prop_assert_eq!(ran, said != Said::No && !stuck, "{:?}: {:?}", step, said);
                if ran && said == Said::Always {
                    held.extend(Held::by(&deed));
                }
            }
        }
        sim.finish();
        sim.laws.check();
    }
}
