//! Keys reach the provider they are for, and nobody else: no frame, no log, no transcript, no command.
//! Every test of the programs looks for the planted keys; here are those that ask for trouble.

use reasonix_tests::json::json;
use reasonix_tests::process::{PLANTED, leak};
use reasonix_tests::provider::{Answer, say, tool};

use crate::cases::{Case, Expect::*, case, check};

#[test]
fn the_scanner_sees_what_it_is_for() {
    for (name, key) in PLANTED {
        assert_eq!(leak(format!("x {key} y").as_bytes()), Some(name));
    }
    assert_eq!(leak(b"PLANTED_KEY DEEPSEEK_API_KEY sk-planted"), None);
}

#[test]
fn a_key_reaches_its_provider_and_no_command() {
    check(vec![
        Case {
            flags: &["--permission-mode", "bypassPermissions", "-vv"],
            drive: |run| {
                run.turn("go");
                let heads = run.provider.heads();
                let sent = heads.iter().filter(|head| head.contains(PLANTED[0].1));
                assert_eq!(sent.count(), heads.len(), "it is the provider's key");
                assert!(!heads.is_empty() && heads.iter().all(|h| !h.contains(PLANTED[1].1)));
            },
            ..case(
                "a command finds no key in its environment",
                vec![
                    tool("c1", "bash", json!({"command": "env; echo looked"})),
                    say("k"),
                ],
                vec![Stop("end_turn"), Ends(&["completed"])],
            )
        },
        Case {
            flags: &["-vv"],
            ..case(
                "a provider that says the key back in an error is not quoted",
                vec![Answer::plain(
                    401,
                    "application/json",
                    &format!(
                        r#"{{"error":{{"message":"no such key {}"}}}}"#,
                        PLANTED[0].1
                    ),
                )],
                vec![],
            )
        },
    ]);
}
