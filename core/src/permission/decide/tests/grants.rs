//! What an "always" of the person covers.

use super::*;

#[test]
fn an_always_grants_what_its_label_says_and_nothing_beside_it() {
    #[track_caller]
    fn check(first: Action, label: Option<&str>, then: &[(Action, bool)]) {
        let (rules, mut held) = (Rules::default(), grants(&[]));
        let verdict = judge(&first, Posture::Ask, &rules, &held);
        let Verdict::Ask { always, .. } = verdict else {
            panic!("{first:?}: {verdict:?}");
        };
        assert_eq!(always.as_ref().map(Grant::label).as_deref(), label);
        if let Some(grant) = always {
            assert!(held.add(grant));
        }
        for (action, allowed) in then {
            let got = judge(action, Posture::Ask, &rules, &held);
            assert_eq!(matches!(got, Verdict::Allow { .. }), *allowed, "{action:?}");
        }
    }
    check(
        edit("/w/a"),
        Some("Allow edits in this session"),
        &[
            (edit("/w/b"), true),
            (
                Action::new("write_file", Access::Edit(vec![target("/w/c")])),
                true,
            ),
            (edit("/out/b"), false),
            (
                Action::new(
                    "move_file",
                    Access::Edit(vec![target("/w/a"), target("/out/a")]),
                ),
                false,
            ),
            (bash("ls"), false),
            (Action::new("srv__tool", Access::Other), false),
        ],
    );
    check(
        bash("cargo test --lib"),
        Some("Allow `cargo test` in this session"),
        &[
            (bash("cargo test"), true),
            (bash("cargo test -- --nocapture"), true),
            (bash("cargo 'test'"), true),
            (bash("cargo testing"), false),
            (bash("cargo build"), false),
            (bash("cargo +x test"), false),
            (bash("cargo test; rm x"), false),
            (bash("cargo test && rm x"), false),
            (bash("cargo test | sh"), false),
            (bash("cargo test\nrm x"), false),
            (bash("cargo test $(rm x)"), false),
            (bash("cargo test `rm x`"), false),
            (bash("cargo test > /etc/x"), false),
            (bash("X=1 cargo test"), false),
            (bash("env cargo test"), false),
            (edit("/w/a"), false),
        ],
    );
    check(
        bash("rm -rf x"),
        Some("Allow exactly `rm -rf x` in this session"),
        &[
            (bash("rm -rf x"), true),
            (bash("rm -rf x y"), false),
            (bash("rm -rf /"), false),
        ],
    );
    check(
        bash("a\nb"),
        Some("Allow exactly this command in this session"),
        &[(bash("a\nb"), true), (bash("a"), false)],
    );
    check(
        Action::new("srv__tool", Access::Other),
        Some("Allow `srv__tool` in this session"),
        &[
            (Action::new("srv__tool", Access::Other), true),
            (Action::new("srv__tool2", Access::Other), false),
        ],
    );
    check(
        Action::new("web_fetch", Access::Network("h".into())),
        None,
        &[],
    );
    check(
        Action::new("add_root", Access::Other).protected(),
        None,
        &[],
    );
}

#[test]
fn a_command_outside_the_roots_is_covered_by_no_grant_and_no_rule() {
    let outside = |command: &str| {
        let command = command.into();
        Action::new(
            "bash",
            Access::Execute {
                command,
                inside: false,
            },
        )
    };
    let held = grants(&[Grant::Command(vec!["cargo".into(), "test".into()])]);
    let rules = rules(&[], &[], &["Bash(make:*)"]);
    for command in ["cargo test", "make"] {
        assert!(matches!(
            judge(&outside(command), Posture::Ask, &rules, &held),
            Verdict::Ask { always: None, .. }
        ));
    }
}

#[test]
fn grants_are_bounded_listed_and_revoked() {
    let mut grants = Grants::new(1);
    assert!(grants.add(Grant::Edits));
    assert!(grants.add(Grant::Edits));
    assert!(!grants.add(Grant::Tool("x".into())));
    assert_eq!(
        grants.list().map(ToString::to_string).collect::<Vec<_>>(),
        ["edits"]
    );
    assert!(grants.revoke(&Grant::Edits));
    assert!(!grants.revoke(&Grant::Edits));
    assert!(grants.covering(&edit("/w/a")).is_none());
}
