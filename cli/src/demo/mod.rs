//! `demo`: a whole turn on a scripted model in a temporary folder, offline and without a key. What
//! it says at the end it has read from the disk itself.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use reasonix_core::model::Script;

use crate::Runtime;
use crate::exit::{Exit, Failure};
use crate::flags::low::DemoArgs;
use crate::host;
use crate::out::say;
use crate::render::styles::{BAD, BOLD, DIM, GOOD, styled};
use crate::turn::{Approvals, Opens, Turn, View};

/// What the model says and does.
const SCRIPT: &str = include_str!("script.jsonl");

/// The program with the mistake.
const PROGRAM: (&str, &str) = ("celsius.sh", include_str!("project/celsius.sh"));

/// The check that finds it.
const CHECK: (&str, &str) = ("check.sh", include_str!("project/check.sh"));

/// What the agent is asked.
const PROMPT: &str = "The check of this project fails. Find out why and fix it.";

/// Runs it.
pub fn demo(runtime: Runtime, args: DemoArgs) -> Result<Exit, Failure> {
    let approvals = match (args.yes, Approvals::asking()) {
        (true, _) => Approvals::AllowAll,
        (false, Approvals::Nobody) => {
            return Err(Failure::usage(
                "the demo asks before each step, and there is no terminal to ask on: add --yes",
            ));
        }
        (false, asking) => asking,
    };
    let broken = |e: std::io::Error| Failure::failed(format!("the demo's folder: {e}"));
    let folder = tempfile::Builder::new()
        .prefix("reasonix-demo-")
        .tempdir()
        .map_err(broken)?;
    // The system's temporary folder may be a link; the agent works with real paths.
    let path = fs::canonicalize(folder.path()).map_err(broken)?;
    for (name, text) in [PROGRAM, CHECK] {
        fs::write(path.join(name), text).map_err(broken)?;
    }
    introduce(&path);

    let mut config = host::config()?;
    config.ephemeral = true;
    config.script = Some(Script::parse(SCRIPT).expect("a test parses the script"));
    let turn = Turn {
        config,
        cwd: path.to_string_lossy().into_owned(),
        opens: Opens::New,
        prompt: PROMPT.into(),
        approvals,
        view: View::All,
        frames: args.frames,
    };
    let ended = turn.run(runtime);
    let fixed = verify(&path);
    if args.keep {
        let _ = folder.keep();
        say(format_args!("The folder is kept: {}", path.display()));
    }
    match (ended?, fixed) {
        (Exit::Ok, true) => Ok(Exit::Ok),
        (Exit::Ok, false) => Err(Failure::failed(
            "the turn ended, but the check does not pass",
        )),
        (other, _) => Ok(other),
    }
}

fn introduce(path: &Path) {
    let title = styled(
        BOLD,
        "A whole turn, offline: the model is a script, all else is real.",
    );
    say(format_args!("{title}"));
    say(format_args!("Folder: {}", path.display()));
    say(format_args!(
        "Before: `sh check.sh` {}",
        match check_passes(path) {
            true => styled(GOOD, "passes"),
            false => styled(BAD, "fails"),
        }
    ));
    say(format_args!("\n{} {PROMPT}\n", styled(DIM, ">")));
}

/// Looks at the disk, not at what the agent says.
fn verify(path: &Path) -> bool {
    let changed = fs::read_to_string(path.join(PROGRAM.0)).is_ok_and(|text| text != PROGRAM.1);
    let same = fs::read_to_string(path.join(CHECK.0)).is_ok_and(|text| text == CHECK.1);
    let passes = check_passes(path);
    let word = |good: bool, yes: &'static str, no: &'static str| match good {
        true => styled(GOOD, yes),
        false => styled(BAD, no),
    };
    say(format_args!(
        "\nOn the disk: {} {}, {} {}, and `sh check.sh` {}.",
        PROGRAM.0,
        word(changed, "is changed", "is not changed"),
        CHECK.0,
        word(same, "is as it was", "was changed too"),
        word(passes, "passes", "fails"),
    ));
    changed && same && passes
}

fn check_passes(path: &Path) -> bool {
    Command::new("sh")
        .arg(CHECK.0)
        .current_dir(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_one() {
        Script::parse(SCRIPT).expect("script");
    }

    #[test]
    fn the_mistake_is_found_and_the_repair_is_right() {
        let folder = tempfile::tempdir().expect("folder");
        for (name, text) in [PROGRAM, CHECK] {
            fs::write(folder.path().join(name), text).expect("write");
        }
        assert!(!check_passes(folder.path()));
        let repaired = PROGRAM.1.replace("+ 23", "+ 32");
        fs::write(folder.path().join(PROGRAM.0), repaired).expect("write");
        assert!(check_passes(folder.path()));
    }
}
