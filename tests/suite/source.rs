//! What is read off the source itself: rules that no compiler is asked for otherwise.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder of the workspace")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("source is text");
            found.push((path.display().to_string(), text));
        }
    }
}

#[test]
fn nothing_in_core_can_reach_the_world_or_depend_on_an_order_that_is_not_ours() {
    let mut found = Vec::new();
    sources(&root().join("core/src"), &mut found);
    let banned = [
        "HashMap",
        "HashSet",
        "extern crate std",
        "std::time",
        "std::env",
        "std::fs",
        "std::net",
        "std::thread",
        "std::process",
        "serde_json::Map",
    ];
    for (path, text) in &found {
        for (number, line) in (1..).zip(text.lines()) {
            let code = line.split("//").next().unwrap_or_default();
            for name in banned {
                assert!(!code.contains(name), "{path}:{number}: {name}");
            }
        }
    }
    assert!(found.len() > 50, "only {} files were read", found.len());
    let lib = std::fs::read_to_string(root().join("core/src/lib.rs")).expect("it is there");
    assert!(lib.contains("#![no_std]") && lib.contains("#![forbid(unsafe_code)]"));
}

#[test]
fn the_lints_that_carry_rules_are_on() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("it is there");
    for lint in [
        "missing_docs = \"warn\"",
        "wildcard_enum_match_arm = \"warn\"",
        "unused_must_use = \"deny\"",
    ] {
        assert!(manifest.contains(lint), "{lint}");
    }
    let clippy = std::fs::read_to_string(root().join(".clippy.toml")).expect("it is there");
    assert!(clippy.contains("std::collections::HashMap"));
    for member in ["core", "runtime-blocking", "runtime-smol", "cli"] {
        let manifest = std::fs::read_to_string(root().join(member).join("Cargo.toml"));
        let manifest = manifest.expect("it is there");
        assert!(manifest.contains("[lints]\nworkspace = true"), "{member}");
    }
}
