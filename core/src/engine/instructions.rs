//! The system prompt. It is made once a session and stays the same to the byte, since the
//! provider's cache begins with it.

use alloc::format;
use alloc::string::String;

use crate::settings::Host;

/// How many instructions and tools the model gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Few.
    Short,
    /// All.
    Full,
    /// All, and nothing counts as done before it was verified.
    Verified,
}

/// A file with the project's own instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    /// Its path, for the model.
    pub path: String,
    /// Its text, cut to the bound.
    pub text: String,
}

/// The names of files with a project's own instructions, in the order they are looked for.
pub const PROJECT_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Most bytes of all project files together.
pub const MAX_PROJECT_BYTES: usize = 32 << 10;

/// The system prompt.
pub fn system_prompt(
    detail: Detail,
    host: &Host,
    cwd: &str,
    directories: &[String],
    confined: bool,
    project: &[ProjectFile],
) -> String {
    let mut text = String::from(
        "You are a coding agent that works in the person's editor, on the files of their project. \
         Do what they ask, with the tools you have, and say in few words what you did.\n",
    );
    match detail {
        Detail::Short => {}
        Detail::Full | Detail::Verified => text.push_str(
            "\n\
             - Look before you change: read what you edit, search rather than guess.\n\
             - Change only what the task needs, in the style that is there.\n\
             - Edits are exact: `old_string` must be in the file once. Read it first.\n\
             - Independent reads and searches can be asked for together.\n\
             - A tool that was refused is refused: do not try to get the same by another way. Say \
               what you need.\n\
             - When something fails, read the message and find the cause before you try again.\n\
             - Never invent a result. If you did not run it, say so.\n\
             - A folder may have an AGENTS.md or CLAUDE.md for what is in it: read it before you \
               change something there.\n",
        ),
    }
    if detail == Detail::Verified {
        text.push_str(
            "- After the last change run the project's own check (tests, linter, build). Without \
             it the work counts as not verified.\n",
        );
    }
    text.push_str(&format!(
        "\nSystem: {}. Commands run in {}. Working directory: {cwd}\n",
        host.os, host.shell
    ));
    if !directories.is_empty() {
        let directories = directories.join(", ");
        text.push_str(&format!(
            "Folders beside it that are yours too: {directories}\n"
        ));
    }
    if confined {
        text.push_str("Commands can write in these folders and in $TMPDIR only.\n");
    }
    for file in project {
        text.push_str(&format!(
            "\nThe project's instructions, from {}:\n{}\n",
            file.path,
            file.text.trim_end()
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host {
            os: "linux".into(),
            shell: "sh".into(),
            user_home: None,
            home: None,
            tmp: "/tmp".into(),
            sandbox: Default::default(),
        }
    }

    #[test]
    fn few_instructions_are_short_and_only_who_has_to_verify_is_told_so() {
        let told = |detail| system_prompt(detail, &host(), "/w", &[], false, &[]);
        let rules = |text: &str| text.lines().filter(|line| line.starts_with("- ")).count();
        let [short, full, verified] = [Detail::Short, Detail::Full, Detail::Verified].map(told);
        assert_eq!(rules(&short), 0, "{short}");
        assert!(rules(&full) > 3, "{full}");
        assert_eq!(rules(&verified), rules(&full) + 1, "{verified}");
        let verify = |text: &str| text.contains("own check");
        assert_eq!(
            [&short, &full, &verified].map(|it| verify(it)),
            [false, false, true]
        );
    }

    #[test]
    fn the_model_is_told_where_it_is_and_which_shell_it_has() {
        let host = host();
        let file = ProjectFile {
            path: "AGENTS.md".into(),
            text: "Use tabs.\n".into(),
        };
        let text = system_prompt(Detail::Full, &host, "/w", &["/x".into()], true, &[file]);
        for part in [
            "linux",
            "run in sh",
            "directory: /w",
            "too: /x\n",
            "in $TMPDIR only.\n",
            "from AGENTS.md:\nUse tabs.",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }
}
