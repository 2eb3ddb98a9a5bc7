use super::super::{RuleError, Target};
use super::*;
use crate::settings::Permissions;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

mod grants;

fn target(path: &str) -> Target {
    Target {
        asked: path.into(),
        real: path.into(),
        inside: path.starts_with("/w/"),
    }
}

fn read(path: &str) -> Action {
    Action::new("read_file", Access::Read(vec![target(path)]))
}

fn edit(path: &str) -> Action {
    Action::new("edit_file", Access::Edit(vec![target(path)]))
}

fn bash(command: &str) -> Action {
    let command = command.into();
    Action::new(
        "bash",
        Access::Execute {
            command,
            inside: true,
        },
    )
}

fn rules(deny: &[&str], ask: &[&str], allow: &[&str]) -> Rules {
    let list = |rules: &[&str]| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
    let permissions = Permissions {
        allow: list(allow),
        ask: list(ask),
        deny: list(deny),
    };
    let rules = Rules::parse(&permissions, Some("/home/me")).expect("rules");
    rules.beneath("/w", &["/w".into()])
}

fn grants(held: &[Grant]) -> Grants {
    let mut grants = Grants::new(16);
    for grant in held {
        assert!(grants.add(grant.clone()));
    }
    grants
}

fn judge(action: &Action, posture: Posture, rules: &Rules, grants: &Grants) -> Verdict {
    let gate = Gate {
        posture,
        ceiling: Ceiling::TOP,
        accept_edits: false,
        planning: false,
        rules,
        grants,
    };
    decide(action, &gate)
}

/// `-` denied, `?` asked, `+` allowed; one sign a posture, lowest first.
fn signs(action: &Action, rules: &Rules, grants: &Grants) -> String {
    let sign = |posture| match judge(action, posture, rules, grants) {
        Verdict::Deny { .. } => '-',
        Verdict::Ask { .. } => '?',
        Verdict::Allow { .. } => '+',
    };
    Posture::ALL.into_iter().map(sign).collect()
}

fn actions() -> Vec<Action> {
    vec![
        read("/w/a"),
        read("/out/a"),
        edit("/w/a"),
        edit("/w/.env"),
        edit("/out/a"),
        bash("cargo test"),
        bash("cargo test; rm x"),
        bash("git push"),
        bash("$X"),
        Action::new("todo_write", Access::Session),
        Action::new("web_fetch", Access::Network("example.org".into())),
        Action::new("srv__tool", Access::Other),
        Action::new("add_root", Access::Other).protected(),
    ]
}

#[test]
fn each_posture_gives_what_it_promises() {
    #[track_caller]
    fn check(action: Action, expected: &str) {
        assert_eq!(
            signs(&action, &Rules::default(), &grants(&[])),
            expected,
            "{action:?}"
        );
    }
    check(read("/w/a"), "+++++");
    check(edit("/w/a"), "--?++");
    check(bash("ls"), "--?++");
    check(Action::new("srv__read_only_honest", Access::Other), "--?++");
    check(Action::new("todo_write", Access::Session), "+++++");
    check(Action::new("add_root", Access::Other).protected(), "--???");
}

#[test]
fn rules_are_obeyed_in_the_order_deny_ask_allow() {
    #[track_caller]
    fn check(deny: &[&str], ask: &[&str], allow: &[&str], action: Action, expected: &str) {
        let rules = rules(deny, ask, allow);
        assert_eq!(signs(&action, &rules, &grants(&[])), expected, "{action:?}");
    }
    check(
        &["Bash(git push:*)"],
        &[],
        &["Bash"],
        bash("git push"),
        "-----",
    );
    check(
        &["Bash(git push:*)"],
        &[],
        &["Bash"],
        bash("cd x && git push -f"),
        "-----",
    );
    check(&["Bash(git push:*)"], &[], &[], bash("git $X"), "--??+");
    check(
        &[],
        &["Bash(git push:*)"],
        &["Bash"],
        bash("git push"),
        "--??+",
    );
    check(
        &[],
        &[],
        &["Bash(cargo test:*)"],
        bash("cargo test --lib"),
        "-++++",
    );
    check(
        &[],
        &[],
        &["Bash(cargo test:*)"],
        bash("cargo test; rm x"),
        "--?++",
    );
    check(
        &[],
        &[],
        &["Bash(cargo test:*)"],
        bash("cargo testx"),
        "--?++",
    );
    check(
        &[],
        &[],
        &["Bash(cargo test)"],
        bash("cargo test --lib"),
        "--?++",
    );
    check(&["Edit(.env)"], &[], &["Edit"], edit("/w/.env"), "-----");
    check(&["Edit(.env)"], &[], &["Edit"], edit("/w/a"), "-++++");
    check(&["Edit(.env)"], &[], &[], read("/w/.env"), "+++++");
    check(&["Read(.env)"], &[], &[], read("/w/.env"), "-----");
    check(&["Read(.env)"], &[], &["Edit"], edit("/w/.env"), "-----");
    check(
        &[],
        &["Read(secrets/**)"],
        &[],
        read("/w/secrets/a"),
        "--??+",
    );
    check(&[], &[], &["Edit(src/**)"], edit("/w/src/a"), "-++++");
    check(&[], &[], &["Edit"], edit("/out/a"), "--?++");
    check(
        &["srv__tool"],
        &[],
        &[],
        Action::new("srv__tool", Access::Other),
        "-----",
    );
    check(
        &[],
        &[],
        &["srv__tool"],
        Action::new("srv__tool", Access::Other),
        "-++++",
    );
    check(&["write_file"], &[], &[], edit("/w/a"), "--?++");
    let served = || Action::new("srv__tool", Access::Other);
    check(&["srv__*"], &[], &["srv__tool"], served(), "-----");
    check(&["mcp__SRV"], &[], &[], served(), "-----");
    check(&[], &["srv__*"], &["srv__tool"], served(), "--??+");
    check(&[], &[], &["mcp__srv"], served(), "-++++");
    check(&[], &[], &["srv__*"], served(), "-++++");
    check(&[], &[], &["SRV__*"], served(), "--?++");
    check(&[], &[], &["other__*"], served(), "--?++");
}

#[test]
fn a_link_to_a_forbidden_file_is_forbidden_and_a_link_from_an_allowed_name_is_not_allowed() {
    let access = |asked: &str, real: &str| {
        let target = Target {
            asked: asked.into(),
            real: real.into(),
            inside: true,
        };
        Action::new("edit_file", Access::Edit(vec![target]))
    };
    let none = grants(&[]);
    let deny = rules(&["Edit(.env)"], &[], &[]);
    assert_eq!(signs(&access("/w/x", "/w/.env"), &deny, &none), "-----");
    assert_eq!(signs(&access("/w/.env", "/w/x"), &deny, &none), "-----");
    let allow = rules(&[], &[], &["Edit(ok/**)"]);
    assert_eq!(signs(&access("/w/ok/x", "/w/x"), &allow, &none), "--?++");
}

#[test]
fn no_posture_does_more_than_a_higher_one() {
    let rank = |sign: char| "-?+".find(sign);
    let held = grants(&[
        Grant::Edits,
        Grant::Command(vec!["cargo".into(), "test".into()]),
    ]);
    for rules in [
        Rules::default(),
        rules(
            &["Bash(git push:*)", "Read(.env)"],
            &["Bash(cargo:*)"],
            &["Bash"],
        ),
        rules(&["Edit"], &["Read", "srv__tool"], &["web_fetch"]),
    ] {
        for grants in [&grants(&[]), &held] {
            for action in actions() {
                let signs: Vec<_> = signs(&action, &rules, grants).chars().map(rank).collect();
                assert!(signs.is_sorted(), "{action:?} {signs:?}");
            }
        }
    }
}

#[test]
fn nothing_runs_above_the_ceiling() {
    let (rules, grants) = (Rules::default(), grants(&[]));
    for ceiling in Posture::ALL {
        for posture in Posture::ALL {
            for action in actions() {
                let gate = Gate {
                    posture,
                    ceiling: Ceiling::at(ceiling),
                    accept_edits: false,
                    planning: false,
                    rules: &rules,
                    grants: &grants,
                };
                let at = judge(&action, posture.min(ceiling), &rules, &grants);
                assert_eq!(decide(&action, &gate), at);
            }
        }
    }
}

#[test]
fn planning_blocks_writes_and_commands_under_every_posture() {
    let (rules, grants) = (rules(&[], &[], &["Edit", "Bash"]), grants(&[Grant::Edits]));
    for posture in Posture::ALL {
        let gate = Gate {
            posture,
            ceiling: Ceiling::TOP,
            accept_edits: true,
            planning: true,
            rules: &rules,
            grants: &grants,
        };
        for action in [
            edit("/w/a"),
            bash("ls"),
            Action::new("srv__tool", Access::Other),
        ] {
            assert!(
                matches!(decide(&action, &gate), Verdict::Deny { .. }),
                "{action:?}"
            );
        }
        assert!(matches!(
            decide(&read("/w/a"), &gate),
            Verdict::Allow { .. }
        ));
    }
}

#[test]
fn planning_only_ever_takes_away_and_takes_nothing_from_readers() {
    let held = grants(&[Grant::Edits, Grant::Command(vec!["cargo".into()])]);
    for rules in [
        Rules::default(),
        rules(
            &["Read(.env)"],
            &["Bash(cargo:*)"],
            &["Bash", "Edit", "srv__tool"],
        ),
    ] {
        for posture in Posture::ALL {
            for accept_edits in [false, true] {
                for action in actions() {
                    let verdict = |planning| {
                        let gate = Gate {
                            posture,
                            ceiling: Ceiling::TOP,
                            accept_edits,
                            planning,
                            rules: &rules,
                            grants: &held,
                        };
                        decide(&action, &gate)
                    };
                    let harmless = matches!(action.access, Access::Read(_) | Access::Session);
                    if harmless || action.protected {
                        assert_eq!(verdict(true), verdict(false), "{action:?}");
                    } else {
                        assert!(matches!(verdict(true), Verdict::Deny { .. }), "{action:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_plan_is_approved_by_a_person_under_every_posture_that_asks() {
    let approval = Action::new("plan", Access::Session).protected();
    let held = grants(&[Grant::Edits]);
    let all = rules(&[], &[], &["plan", "Edit", "Bash"]);
    assert_eq!(signs(&approval, &all, &held), "--???");
}

#[test]
fn accepted_edits_are_those_inside_the_roots_and_stay_while_the_posture_moves() {
    let (rules, grants) = (Rules::default(), grants(&[]));
    let allowed = |action: &Action, posture| {
        let gate = Gate {
            posture,
            ceiling: Ceiling::at(Posture::Ask),
            accept_edits: true,
            planning: false,
            rules: &rules,
            grants: &grants,
        };
        matches!(decide(action, &gate), Verdict::Allow { .. })
    };
    assert!(allowed(&edit("/w/a"), Posture::Ask));
    assert!(allowed(&edit("/w/a"), Posture::DontAsk));
    assert!(!allowed(&edit("/w/a"), Posture::ReadOnly));
    assert!(!allowed(&edit("/out/a"), Posture::Ask));
    assert!(!allowed(&bash("ls"), Posture::Ask));
}

#[test]
fn leave_to_edit_is_no_leave_to_say_what_git_runs() {
    let (rules, held) = (Rules::default(), grants(&[Grant::Edits]));
    let gate = Gate {
        posture: Posture::Ask,
        ceiling: Ceiling::TOP,
        accept_edits: true,
        planning: false,
        rules: &rules,
        grants: &held,
    };
    let led = |asked: &str, real: &str| {
        let target = Target {
            asked: asked.into(),
            ..target(real)
        };
        Action::new("edit_file", Access::Edit(vec![target]))
    };
    for own in [
        edit("/w/.git"),
        edit("/w/.git/config"),
        edit("/w/.GIT/hooks/pre-commit"),
        edit("/w/sub/.git/hooks/x"),
        led("/w/link", "/w/.git/config"),
        led("/w/.git/config", "/w/a"),
        Action::new(
            "move_file",
            Access::Edit(vec![target("/w/a"), target("/w/.git")]),
        ),
    ] {
        let verdict = decide(&own, &gate);
        assert!(
            matches!(verdict, Verdict::Ask { always: None, .. }),
            "{own:?}: {verdict:?}"
        );
    }
    for other in [
        edit("/w/.gitignore"),
        edit("/w/.github/x"),
        edit("/w/git/x"),
    ] {
        let verdict = decide(&other, &gate);
        assert!(matches!(verdict, Verdict::Allow { .. }), "{other:?}");
    }
}

#[test]
fn a_rule_that_is_not_understood_is_a_clear_error() {
    #[track_caller]
    fn check(rule: &str, message: &str) {
        let permissions = Permissions {
            deny: vec![rule.into()],
            ..Permissions::default()
        };
        let error: RuleError = Rules::parse(&permissions, None).expect_err(rule);
        assert_eq!(error.to_string(), message);
    }
    check(
        "",
        "permissions.deny: ``: a rule is `Tool` or `Tool(pattern)`",
    );
    check(
        "Bash(x",
        "permissions.deny: `Bash(x`: the closing parenthesis is missing",
    );
    check(
        "a b",
        "permissions.deny: `a b`: a rule is `Tool` or `Tool(pattern)`",
    );
    check(
        "Bash(a && b)",
        "permissions.deny: `Bash(a && b)`: the pattern is the words of one simple command, with \
         `:*` behind them if more may follow",
    );
    check(
        "grep(x)",
        "permissions.deny: `grep(x)`: `grep` takes no pattern; Read, Edit, Bash and \
         WebFetch do",
    );
    check("Read()", "permissions.deny: `Read()`: the pattern is empty");
}

#[test]
fn a_rule_about_the_web_is_about_hosts() {
    let ask = |host: &str| Action::new("web_fetch", Access::Network(host.into()));
    let read = |list: &str, rule: &str| {
        let rules = Vec::from([String::from(rule)]);
        let mut permissions = Permissions::default();
        match list {
            "allow" => permissions.allow = rules,
            _ => permissions.deny = rules,
        }
        Rules::parse(&permissions, None).expect(rule)
    };
    for (rule, host, allows, denies) in [
        ("WebFetch", "a.test", true, true),
        ("web_fetch", "a.test", true, true),
        ("WebFetch(domain:a.test)", "a.test", true, true),
        ("WebFetch(domain:A.Test.)", "a.test", true, true),
        ("WebFetch(domain:a.test)", "b.a.test", false, true),
        ("WebFetch(domain:a.test)", "ba.test", false, false),
        ("WebFetch(domain:a.test)", "a.test.b", false, false),
        ("WebFetch(domain:*.a.test)", "b.a.test", true, true),
        ("WebFetch(domain:*.a.test)", "c.b.a.test", true, true),
        ("WebFetch(domain:*.a.test)", "a.test", false, true),
        ("WebFetch(domain:*.a.test)", "ba.test", false, false),
        ("WebFetch(domain:[::1])", "::1", true, true),
        ("Read", "a.test", false, false),
        ("Bash", "a.test", false, false),
    ] {
        let allowed = read("allow", rule).allowing(&ask(host)).is_some();
        let denied = read("deny", rule);
        let denied = matches!(denied.denying(&ask(host)), Covered::By(_));
        assert_eq!((allowed, denied), (allows, denies), "{rule} {host}");
    }
    for bad in [
        "WebFetch(a.test)",
        "WebFetch(domain:)",
        "WebFetch(domain:a/b)",
    ] {
        let mut permissions = Permissions::default();
        permissions.deny.push(bad.into());
        assert!(Rules::parse(&permissions, None).is_err(), "{bad}");
    }
}
