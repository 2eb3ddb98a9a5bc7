//! The page on conformance says the truth: all its rules are there, and the tests it names exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How many rules there are, by area. The numbers run on from one area to the next.
const AREAS: [(char, usize); 24] = [
    ('A', 16),
    ('B', 30),
    ('C', 9),
    ('D', 19),
    ('E', 14),
    ('F', 22),
    ('G', 31),
    ('H', 8),
    ('I', 13),
    ('J', 18),
    ('K', 21),
    ('L', 6),
    ('M', 15),
    ('N', 7),
    ('O', 6),
    ('P', 3),
    ('Q', 9),
    ('R', 15),
    ('S', 6),
    ('T', 10),
    ('U', 10),
    ('V', 3),
    ('W', 6),
    ('X', 7),
];

/// Where the tests of a name's first part live.
const ROOTS: [(&str, &str); 7] = [
    ("core", "core/src"),
    ("suite", "tests/suite"),
    ("harness", "tests"),
    ("cli", "cli/tests/cli"),
    ("program", "cli/src"),
    ("blocking", "runtime-blocking/src"),
    ("smol", "runtime-smol/src"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A row: the rule's name, what it says, and who checks it.
struct Row {
    id: String,
    says: String,
    checks: Checks,
}

enum Checks {
    Tests(Vec<String>),
    /// Why there is none.
    Reason(String),
}

fn rows(page: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in page.lines() {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (Some(id), Some(says), Some(checks)) = (cells.next(), cells.next(), cells.next())
        else {
            continue;
        };
        let rest = id.strip_prefix(|first: char| first.is_ascii_uppercase());
        if rest.is_none_or(|rest| rest.parse::<usize>().is_err()) {
            continue;
        }
        let checks = match checks.strip_prefix('—') {
            Some(reason) => Checks::Reason(reason.trim().into()),
            None => {
                let names = checks.split_whitespace().map(|name| name.trim_matches('`'));
                Checks::Tests(names.map(Into::into).collect())
            }
        };
        rows.push(Row {
            id: id.into(),
            says: says.into(),
            checks,
        });
    }
    rows
}

/// The names of the tests in a source, those of properties too.
fn tests_in(source: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        if line == "#[test]" {
            marked = true;
        } else if let Some(rest) = line.strip_prefix("fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            if std::mem::take(&mut marked) {
                names.insert(name);
            }
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            marked = false;
        }
    }
    names
}

/// The source that a test's name leads to, and the name in it.
fn source_of(name: &str) -> Option<(PathBuf, &str)> {
    let (module, test) = name.rsplit_once("::")?;
    let (first, module) = module.split_once("::")?;
    let (_, folder) = ROOTS.iter().find(|(root, _)| *root == first)?;
    let path = root().join(folder).join(module.replace("::", "/"));
    let file = path.with_extension("rs");
    let file = if file.is_file() {
        file
    } else {
        path.join("mod.rs")
    };
    file.is_file().then_some((file, test))
}

#[test]
fn every_rule_is_there_once_and_every_test_it_names_exists() {
    let page = std::fs::read_to_string(root().join("docs/conformance.md")).expect("the page");
    let rows = rows(&page);
    let expected = AREAS.iter().flat_map(|(area, count)| vec![*area; *count]);
    let expected: Vec<_> = (1..)
        .zip(expected)
        .map(|(at, area)| format!("{area}{at}"))
        .collect();
    let ids: Vec<_> = rows.iter().map(|row| row.id.clone()).collect();
    assert_eq!(ids.len(), 304);
    assert_eq!(ids, expected);
    let mut sources: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in &rows {
        if row.says.len() < 12 {
            wrong.push(format!("{}: what is the rule?", row.id));
        }
        match &row.checks {
            Checks::Reason(reason) if reason.len() < 12 => {
                wrong.push(format!("{}: why is there no test?", row.id));
            }
            Checks::Reason(_) => {}
            Checks::Tests(names) => {
                if names.is_empty() {
                    wrong.push(format!("{}: no test and no reason", row.id));
                }
                for name in names {
                    let Some((path, test)) = source_of(name) else {
                        wrong.push(format!("{}: nothing is at {name}", row.id));
                        continue;
                    };
                    let source = sources
                        .entry(path.clone())
                        .or_insert_with(|| std::fs::read_to_string(&path).expect("it is a file"));
                    if !tests_in(source).contains(test) {
                        wrong.push(format!("{}: no test {name}", row.id));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn names_of_tests_are_found_where_they_are_and_nowhere_else() {
    let source = "#[test]\nfn one() {}\nfn helper() {}\nproptest! {\n    #[test]\n    // why\n    #[cfg(unix)]\n    fn two(a in 0..3) {}\n}\n#[test]\nstruct X;\nfn three() {}\n";
    assert_eq!(tests_in(source), BTreeSet::from(["one", "two"]));
    for (name, there) in [
        (
            "suite::table::names_of_tests_are_found_where_they_are_and_nowhere_else",
            true,
        ),
        ("core::protocol::tests::setup::x", true),
        ("core::agent::tests::x", true),
        ("core::protocol::x", true),
        ("core::nowhere::x", false),
        ("elsewhere::table::x", false),
        ("table", false),
    ] {
        assert_eq!(source_of(name).is_some(), there, "{name}");
    }
}
